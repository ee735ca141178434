//! `matrix_power(a, 5)`: powers of square matrices by repeated squaring, as in `numpy.linalg.matrix_power`. No op of its own.

use super::einsum::contract::matmul;
use super::{Call, broadcast, later, makers};
use crate::ops::call::args::Args;
use crate::ops::call::build::CallBuilder;
use crate::ops::call::signature::{Signature, signatures};
use crate::ops::call::term::Term;
use crate::program::Value;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;

/// The calls of `matrix_power`; they emit matrix products.
pub struct MatrixPower;

impl Call for MatrixPower {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The n-th power of a square matrix, or of each in the last two dimensions.
        matrix_power(a: Array, n: Int), NumbersAndBools, "(x: f32[4, 4]) { matrix_power(x, 3) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "a")?;
        let exponent = args.int("n")?;
        let shape = build.ty(value).shape().to_vec();
        let [.., rows, columns] = *shape else {
            let message = format!("`matrix_power` takes matrices, not {}", build.ty(value).array);
            return Err(Diagnostic::error(Code::E0205, args.span, message));
        };
        if rows != columns {
            let message = format!("`matrix_power` of a matrix that is not square: {}", build.ty(value).array);
            return Err(Diagnostic::error(Code::E0205, args.span, message));
        }
        if exponent < 0 {
            return Err(later::not_supported("a negative power of a matrix", args.span));
        }
        if exponent == 0 {
            let dtype = build.ty(value).dtype();
            let identity = makers::identity(build, dtype, rows)?;
            return Ok(Term::Array(broadcast::broadcast(build, identity, &shape)?));
        }
        let span = args.span;
        let product = |build: &mut CallBuilder, a: Value, b: Value| {
            matmul(build, (&Term::Array(a), span), (&Term::Array(b), span))
        };
        let (mut square, mut rest) = (value, exponent);
        let mut power: Option<Value> = None;
        loop {
            if rest % 2 == 1 {
                power = Some(match power {
                    None => square,
                    Some(power) => product(build, power, square)?,
                });
            }
            rest /= 2;
            if rest == 0 {
                return Ok(Term::Array(power.unwrap_or(square)));
            }
            square = product(build, square, square)?;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ops::testing::{self, int, integers};

    #[test]
    fn powers_are_repeated_products() {
        let power = |n: i64| {
            let args = |mut x: Vec<Term>| {
                x.push(int(n));
                x
            };
            testing::run("matrix_power", &[integers(&[2, 2], &[1, 1, 1, 0])], args, &[]).unwrap().ints()
        };
        assert_eq!(power(0), [1, 0, 0, 1]);
        assert_eq!(power(1), [1, 1, 1, 0]);
        assert_eq!(power(10), [89, 55, 55, 34]);
    }
}
