//! `mean var std count_nonzero logsumexp norm`: reductions with arithmetic around them.
//!
//! They are not operations of the IR: a call emits the reductions and elementwise operations that it consists of, so their
//! sharding and their collectives are those of `sum` and `max`. Those of f16 and bf16 are computed in f32: what lies between the elements and
//! the result, such as a sum of squares, may be too large for them.

use super::elementwise::{Binary, Compare, Select, Unary, unary};
use super::promote::{cast, inexact};
use super::reduce::{axes_of, mask_of, reduce};
use super::{Call, later};
use crate::layout::types::DType;
use crate::ops::call::args::{Arg, Args};
use crate::ops::call::build::Builder;
use crate::ops::call::signature::{Signature, signatures};
use crate::ops::call::term::Term;
use crate::ops::constant::Constant;
use crate::program::Value;
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};

pub struct Statistics;

impl Call for Statistics {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The mean of the elements.
        mean(x: Array, axis: Ints = None, keepdims: Bool = false, [named] dtype: ElementType = None, [named] where: Of("mask") = None),
            NumbersAndBools, "(x: f32[4, 6]) { mean(x, axis=1) }";
        /// The variance: the mean of the squared differences from the mean, with n - ddof in place of n.
        var(x: Array, axis: Ints = None, keepdims: Bool = false, [named] dtype: ElementType = None, ddof: Int = 0, correction: Int = 0),
            NumbersAndBools, "(x: f32[4, 6]) { var(x, axis=1) }";
        /// The standard deviation, the root of the variance.
        std(x: Array, axis: Ints = None, keepdims: Bool = false, [named] dtype: ElementType = None, ddof: Int = 0, correction: Int = 0),
            NumbersAndBools, "(x: f32[4, 6]) { std(x, axis=1) }";
        /// How many elements are not zero.
        count_nonzero(x: Array, axis: Ints = None, keepdims: Bool = false), NumbersAndBools, "(x: f32[4, 6]) { count_nonzero(x, axis=1) }";
        /// log(sum(exp(x))), without overflow in between.
        logsumexp(x: Array, axis: Ints = None, keepdims: Bool = false), NumbersAndBools, "(x: f32[4, 6]) { logsumexp(x, axis=1) }";
        /// The norm of vectors or matrices, as `numpy.linalg.norm` defines it.
        norm(x: Array, ord: Of("number or string") = None, axis: Ints = None, keepdims: Bool = false),
            NumbersAndBools, "(x: f32[4, 6]) { norm(x, axis=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut Builder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let order = if name == "norm" { args.take("ord") } else { None };
        let (axes, keepdims) = axes_of(args, build.ty(value).rank())?;
        let over = Over { axes: &axes, keepdims };
        let averages = matches!(name, "mean" | "var" | "std");
        let value = match if averages { args.optional_dtype("dtype")? } else { None } {
            Some(dtype) => cast(build, value, dtype)?,
            None => value,
        };
        let dtype = inexact(build.ty(value).dtype());
        let value = match name {
            "std" | "logsumexp" | "norm" => cast(build, value, computed(dtype))?,
            _ => value,
        };
        let result = match name {
            "mean" => {
                let shape = build.ty(value).shape().to_vec();
                match mask_of(build, args, &shape)? {
                    Some(mask) => mean_where(build, value, mask, over),
                    None => mean(build, value, over),
                }
            }
            "var" | "std" => {
                let ddof = args.optional_int("ddof")?.or(args.optional_int("correction")?).unwrap_or(0);
                let variance = variance(build, value, over, ddof)?;
                if name == "std" { build.emit1(Unary(UnaryOp::Sqrt), &[variance]) } else { Ok(variance) }
            }
            "count_nonzero" => {
                let nonzero = cast(build, value, DType::Bool)?;
                reduce(build, ReduceOp::Sum, nonzero, over.axes, over.keepdims)
            }
            "logsumexp" => logsumexp(build, value, over),
            _ => norm(build, value, order, over),
        };
        let result = match name {
            "std" | "logsumexp" | "norm" => cast(build, result?, dtype)?,
            _ => result?,
        };
        Ok(Term::Array(result))
    }
}

/// What is reduced, and whether it stays with size 1.
#[derive(Clone, Copy)]
struct Over<'a> {
    axes: &'a [usize],
    keepdims: bool,
}

impl Over<'_> {
    fn count(self, build: &Builder, value: Value) -> usize {
        self.axes.iter().map(|&axis| build.ty(value).shape()[axis]).product()
    }

    fn keeping(self) -> Self {
        Over { keepdims: true, ..self }
    }
}

/// The type in which a float is averaged, given that of the result.
pub(super) fn computed(dtype: DType) -> DType {
    if dtype.size() < 4 { DType::F32 } else { dtype }
}

fn divided(build: &mut Builder, value: Value, by: f64) -> Result<Value, Diagnostic> {
    let count = build.emit1(Constant::float(build.ty(value).dtype(), by), &[])?;
    build.emit1(Binary(BinaryOp::Div), &[value, count])
}

fn mean(build: &mut Builder, value: Value, over: Over<'_>) -> Result<Value, Diagnostic> {
    let dtype = inexact(build.ty(value).dtype());
    let value = cast(build, value, computed(dtype))?;
    let sum = reduce(build, ReduceOp::Sum, value, over.axes, over.keepdims)?;
    let mean = divided(build, sum, over.count(build, value) as f64)?;
    cast(build, mean, dtype)
}

/// The mean of the elements that a mask chooses.
fn mean_where(build: &mut Builder, value: Value, mask: Value, over: Over<'_>) -> Result<Value, Diagnostic> {
    let dtype = inexact(build.ty(value).dtype());
    let value = cast(build, value, computed(dtype))?;
    let zero = build.emit1(Constant::float(computed(dtype), 0.0), &[])?;
    let chosen = build.emit1(Select, &[mask, value, zero])?;
    let sum = reduce(build, ReduceOp::Sum, chosen, over.axes, over.keepdims)?;
    let count = reduce(build, ReduceOp::Sum, mask, over.axes, over.keepdims)?;
    let count = cast(build, count, computed(dtype))?;
    let mean = build.emit1(Binary(BinaryOp::Div), &[sum, count])?;
    cast(build, mean, dtype)
}

fn variance(build: &mut Builder, value: Value, over: Over<'_>, ddof: i64) -> Result<Value, Diagnostic> {
    let dtype = inexact(build.ty(value).dtype());
    let value = cast(build, value, computed(dtype))?;
    let center = mean(build, value, over.keeping())?;
    let deviation = build.emit1(Binary(BinaryOp::Sub), &[value, center])?;
    let square = build.emit1(Unary(UnaryOp::Square), &[deviation])?;
    let sum = reduce(build, ReduceOp::Sum, square, over.axes, over.keepdims)?;
    let variance = divided(build, sum, over.count(build, value) as f64 - ddof as f64)?;
    cast(build, variance, dtype)
}

/// `log(sum(exp(x - m))) + m` with `m` the largest element, or 0 where that is not finite.
fn logsumexp(build: &mut Builder, value: Value, over: Over<'_>) -> Result<Value, Diagnostic> {
    let dtype = inexact(build.ty(value).dtype());
    let value = cast(build, value, dtype)?;
    if over.axes.iter().any(|&axis| build.ty(value).shape()[axis] == 0) {
        // The logarithm of nothing.
        let sum = reduce(build, ReduceOp::Sum, value, over.axes, over.keepdims)?;
        return build.emit1(Unary(UnaryOp::Log), &[sum]);
    }
    let largest = reduce(build, ReduceOp::Max, value, over.axes, true)?;
    let finite = build.emit1(Unary(UnaryOp::IsFinite), &[largest])?;
    let zero = build.emit1(Constant::float(dtype, 0.0), &[])?;
    let shift = build.emit1(Select, &[finite, largest, zero])?;
    let shifted = build.emit1(Binary(BinaryOp::Sub), &[value, shift])?;
    let powers = build.emit1(Unary(UnaryOp::Exp), &[shifted])?;
    let sum = reduce(build, ReduceOp::Sum, powers, over.axes, true)?;
    let log = build.emit1(Unary(UnaryOp::Log), &[sum])?;
    let result = build.emit1(Binary(BinaryOp::Add), &[log, shift])?;
    dropped(build, result, over)
}

/// What `ord=` asks for.
enum Order {
    /// The root of the sum of the squares, whatever the dimensions.
    Euclidean,
    Number(f64),
}

fn order(given: Option<Arg>, dims: usize) -> Result<Order, Diagnostic> {
    let Some(Arg { term, span, .. }) = given else { return Ok(Order::Euclidean) };
    let number = match &term {
        Term::Int(order) => *order as f64,
        Term::Float(order) => *order,
        Term::Str(name) => match name.as_str() {
            "fro" if dims == 2 => return Ok(Order::Euclidean),
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            "nuc" if dims == 2 => return Err(later::not_supported("the nuclear norm", span)),
            _ => {
                let message = format!("there is no norm called {name:?} over {dims} dimensions");
                let help = "orders are numbers, \"inf\", \"-inf\", and for matrices \"fro\"";
                return Err(Diagnostic::error(Code::E0210, span, message).help(help));
            }
        },
        other => {
            let message = format!("`ord` must be a number known at compile time, not {}", other.describe());
            return Err(Diagnostic::error(Code::E0210, span, message));
        }
    };
    match dims {
        1 if number == 2.0 => Ok(Order::Euclidean),
        1 => Ok(Order::Number(number)),
        2 if number.abs() == 2.0 => Err(later::not_supported("a norm by singular values", span)),
        2 if number.abs() == 1.0 || number.is_infinite() => Ok(Order::Number(number)),
        _ => {
            let message = format!("there is no norm of order {number} over {dims} dimensions");
            Err(Diagnostic::error(Code::E0210, span, message).help(
                "vectors have norms of every order, matrices of 1, -1, and plus and minus infinity; `axis=` says which",
            ))
        }
    }
}

/// Norms of vectors and matrices, as `numpy.linalg.norm` defines them.
fn norm(build: &mut Builder, value: Value, given: Option<Arg>, over: Over<'_>) -> Result<Value, Diagnostic> {
    let order = order(given, over.axes.len())?;
    let dtype = inexact(build.ty(value).dtype());
    let value = cast(build, value, dtype)?;
    let Order::Number(order) = order else {
        let square = build.emit1(Unary(UnaryOp::Square), &[value])?;
        let sum = reduce(build, ReduceOp::Sum, square, over.axes, over.keepdims)?;
        return build.emit1(Unary(UnaryOp::Sqrt), &[sum]);
    };
    if order == 0.0 {
        let zero = build.emit1(Constant::float(dtype, 0.0), &[])?;
        let nonzero = build.emit1(Compare(CompareOp::Ne), &[value, zero])?;
        let nonzero = cast(build, nonzero, dtype)?;
        return reduce(build, ReduceOp::Sum, nonzero, over.axes, over.keepdims);
    }
    let magnitude = unary(build, UnaryOp::Abs, value)?;
    let extreme = if order > 0.0 { ReduceOp::Max } else { ReduceOp::Min };
    match *over.axes {
        // The largest (or smallest) sum of a column or row: order 1 adds up columns, infinity rows.
        [row, column] => {
            let (summed, other) = if order.is_infinite() { (column, row) } else { (row, column) };
            let sums = reduce(build, ReduceOp::Sum, magnitude, &[summed], true)?;
            let found = reduce(build, extreme, sums, &[other], true)?;
            dropped(build, found, over)
        }
        _ if order.is_infinite() => reduce(build, extreme, magnitude, over.axes, over.keepdims),
        _ if order == 1.0 => reduce(build, ReduceOp::Sum, magnitude, over.axes, over.keepdims),
        _ => {
            let exponent = build.emit1(Constant::float(dtype, order), &[])?;
            let powers = build.emit1(Binary(BinaryOp::Pow), &[magnitude, exponent])?;
            let sum = reduce(build, ReduceOp::Sum, powers, over.axes, over.keepdims)?;
            let inverse = build.emit1(Constant::float(dtype, 1.0 / order), &[])?;
            build.emit1(Binary(BinaryOp::Pow), &[sum, inverse])
        }
    }
}

/// A result whose reduced dimensions are still there with size 1, as the call wants it.
fn dropped(build: &mut Builder, value: Value, over: Over<'_>) -> Result<Value, Diagnostic> {
    if over.keepdims {
        return Ok(value);
    }
    let shape = build.ty(value).shape().iter().enumerate();
    let kept: Vec<usize> = shape.filter(|(dim, _)| !over.axes.contains(dim)).map(|(_, &size)| size).collect();
    super::reshape::reshape(build, value, &kept)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::array::Array;
    use crate::ops::testing::{self, floats, int, integers};

    fn run(name: &'static str, array: Array, named: &[(&str, Term)]) -> Array {
        testing::run(name, &[array], |x| x, named).unwrap()
    }

    #[test]
    fn means_and_variances() {
        let x = floats(&[2, 2], &[1.0, 3.0, 2.0, 6.0]);
        assert_eq!(run("mean", x.clone(), &[("axis", int(1))]).floats(), [2.0, 4.0]);
        assert_eq!(run("var", x.clone(), &[("axis", int(1))]).floats(), [1.0, 4.0]);
        assert_eq!(run("var", x.clone(), &[("axis", int(1)), ("ddof", int(1))]).floats(), [2.0, 8.0]);
        assert_eq!(run("std", x, &[("axis", int(1))]).floats(), [1.0, 2.0]);
        let mean = run("mean", integers(&[2], &[1, 2]), &[]);
        assert_eq!((mean.dtype(), mean.floats()), (DType::F32, vec![1.5]));
        let halves = Array::from_floats(DType::F16, &[3], &[60000.0, 60000.0, 30000.0]);
        let mean = run("mean", halves, &[]);
        assert_eq!((mean.dtype(), mean.floats()), (DType::F16, vec![49984.0]));
    }

    #[test]
    fn counts_and_norms() {
        assert_eq!(run("count_nonzero", floats(&[4], &[0.0, -0.0, 2.0, f64::NAN]), &[]).ints(), [2]);
        assert_eq!(run("norm", floats(&[2], &[3.0, -4.0]), &[]).floats(), [5.0]);
        assert_eq!(run("norm", floats(&[2], &[3.0, -4.0]), &[("ord", int(1))]).floats(), [7.0]);
        assert_eq!(run("norm", floats(&[2], &[3.0, -4.0]), &[("ord", Term::Float(f64::INFINITY))]).floats(), [4.0]);
    }

    #[test]
    fn logsumexp_does_not_overflow() {
        let y = run(
            "logsumexp",
            floats(&[2, 2], &[1000.0, 1000.0, f64::NEG_INFINITY, f64::NEG_INFINITY]),
            &[("axis", int(1))],
        );
        assert!((y.floats()[0] - (1000.0 + 2f64.ln())).abs() < 1e-3);
        assert_eq!((y.shape(), y.floats()[1]), (&[2][..], f64::NEG_INFINITY));
    }
}
