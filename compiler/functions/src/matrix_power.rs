//! Powers of square matrices by repeated squaring, for `matrix_power`.

use spmdc_einsum_ops::contract::matmul;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_ops::{broadcast, makers};

/// Emits the products for the power; the exponent is not negative. E0205 unless the last two dimensions are equal.
pub fn power(build: &mut CallBuilder, value: Value, exponent: i64) -> Result<Value, Diagnostic> {
    debug_assert!(exponent >= 0, "a negative power is that of the inverse");
    let span = build.span();
    let shape = build.ty(value).shape().to_vec();
    let [.., rows, columns] = *shape else {
        let message = requires("`matrix_power`", "matrices", &build.ty(value).array);
        return Err(Diagnostic::error(Code::E0205, span, message));
    };
    if rows != columns {
        let message = requires("`matrix_power`", "square matrices", &build.ty(value).array);
        return Err(Diagnostic::error(Code::E0205, span, message));
    }
    if exponent == 0 {
        let dtype = build.ty(value).dtype();
        let identity = makers::identity(build, dtype, rows)?;
        return broadcast::broadcast(build, identity, &shape);
    }
    let product =
        |build: &mut CallBuilder, a: Value, b: Value| matmul(build, (&Term::Array(a), span), (&Term::Array(b), span));
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
            return Ok(power.unwrap_or(square));
        }
        square = product(build, square, square)?;
    }
}
