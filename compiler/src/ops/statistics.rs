//! `mean var std count_nonzero logsumexp norm`: reductions with arithmetic around them.
//!
//! They are not operations of the IR: a call emits the reductions and elementwise operations that it consists of, so their
//! sharding and their collectives are those of `sum` and `max`. Means and variances of f16 and bf16 are computed in f32.

use super::elementwise::{Binary, BinaryOp, Compare, CompareOp, Select, Unary, UnaryOp, unary};
use super::promote::{cast, inexact};
use super::reduce::{axes_of, reduce};
use super::{Call, later};
use crate::check::args::Args;
use crate::check::term::Term;
use crate::ir::Value;
use crate::ir::build::Builder;
use crate::ir::types::DType;
use crate::ops::constant::Constant;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_runtime::abi::ReduceOp;

pub struct Statistics;

impl Call for Statistics {
    fn call(name: &str, args: &mut Args<'_>, build: &mut Builder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let order = if name == "norm" { args.take("ord") } else { None };
        let (axes, keepdims) = axes_of(args, build.ty(value).rank())?;
        let over = Over { axes: &axes, keepdims };
        let result = match name {
            "mean" => mean(build, value, over),
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
            _ => {
                let order = order.map(|arg| arg.term).filter(|term| !matches!(term, Term::Nothing));
                norm(build, value, order, over, args)
            }
        };
        Ok(Term::Array(result?))
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
fn computed(dtype: DType) -> DType {
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

fn variance(build: &mut Builder, value: Value, over: Over<'_>, ddof: i64) -> Result<Value, Diagnostic> {
    let dtype = inexact(build.ty(value).dtype());
    let value = cast(build, value, computed(dtype))?;
    let center = mean(build, value, over.keeping())?;
    let deviation = build.emit1(Binary(BinaryOp::Sub), &[value, center])?;
    let square = build.emit1(Unary(UnaryOp::Square), &[deviation])?;
    let sum = reduce(build, ReduceOp::Sum, square, over.axes, over.keepdims)?;
    let variance = divided(build, sum, (over.count(build, value) as i64 - ddof) as f64)?;
    cast(build, variance, dtype)
}

/// `log(sum(exp(x - m))) + m` with `m` the largest element, or 0 where that is not finite.
fn logsumexp(build: &mut Builder, value: Value, over: Over<'_>) -> Result<Value, Diagnostic> {
    let dtype = inexact(build.ty(value).dtype());
    let value = cast(build, value, dtype)?;
    let largest = reduce(build, ReduceOp::Max, value, over.axes, true)?;
    let finite = build.emit1(Unary(UnaryOp::IsFinite), &[largest])?;
    let zero = build.emit1(Constant::float(dtype, 0.0), &[])?;
    let shift = build.emit1(Select, &[finite, largest, zero])?;
    let shifted = build.emit1(Binary(BinaryOp::Sub), &[value, shift])?;
    let powers = build.emit1(Unary(UnaryOp::Exp), &[shifted])?;
    let sum = reduce(build, ReduceOp::Sum, powers, over.axes, true)?;
    let log = build.emit1(Unary(UnaryOp::Log), &[sum])?;
    let result = build.emit1(Binary(BinaryOp::Add), &[log, shift])?;
    if over.keepdims {
        return Ok(result);
    }
    let shape = build.ty(result).shape().iter().enumerate();
    let kept: Vec<usize> = shape.filter(|(dim, _)| !over.axes.contains(dim)).map(|(_, &size)| size).collect();
    super::reshape::reshape(build, result, &kept)
}

/// The Euclidean norm, or for vectors that of order 1, inf or -inf.
fn norm(
    build: &mut Builder,
    value: Value,
    order: Option<Term>,
    over: Over<'_>,
    args: &Args<'_>,
) -> Result<Value, Diagnostic> {
    let dtype = inexact(build.ty(value).dtype());
    let value = cast(build, value, dtype)?;
    let is_vector = over.axes.len() == 1;
    let magnitude = |build: &mut Builder| unary(build, UnaryOp::Abs, value);
    match order {
        None => {}
        Some(Term::Int(2)) if is_vector => {}
        Some(Term::Float(2.0)) if is_vector => {}
        Some(Term::Int(1)) if is_vector => {
            let magnitude = magnitude(build)?;
            return reduce(build, ReduceOp::Sum, magnitude, over.axes, over.keepdims);
        }
        Some(Term::Float(order)) if is_vector && order.is_infinite() => {
            let magnitude = magnitude(build)?;
            let op = if order > 0.0 { ReduceOp::Max } else { ReduceOp::Min };
            return reduce(build, op, magnitude, over.axes, over.keepdims);
        }
        Some(Term::Int(0)) if is_vector => {
            let zero = build.emit1(Constant::float(dtype, 0.0), &[])?;
            let nonzero = build.emit1(Compare(CompareOp::Ne), &[value, zero])?;
            let nonzero = cast(build, nonzero, dtype)?;
            return reduce(build, ReduceOp::Sum, nonzero, over.axes, over.keepdims);
        }
        Some(_) => return Err(later::not_supported("norm of this order", args.span)),
    }
    let square = build.emit1(Unary(UnaryOp::Square), &[value])?;
    let sum = reduce(build, ReduceOp::Sum, square, over.axes, over.keepdims)?;
    build.emit1(Unary(UnaryOp::Sqrt), &[sum])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ir::eval::Array;
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
