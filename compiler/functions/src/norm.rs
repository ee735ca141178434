//! `norm`: norms of vectors and matrices, as `numpy.linalg.norm` defines them.
//!
//! A call emits reductions and elementwise operations. It is not a function of the prelude, because these operations depend on a string or
//! number, and an invalid one has a specific error message.

use spmdc_abi::{MatrixFunction, ReduceOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::arg::not_static;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, MathFn, UnaryOp};
use spmdc_layout::types::DType;
use spmdc_linalg_ops::factorization::Factorization;
use spmdc_ops::cast::cast;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{Binary, Compare, Unary, unary};
use spmdc_ops::promote::inexact;
use spmdc_ops::reduce::{axes_of, reduce};
use spmdc_ops::transpose::transpose;

/// The calls of `norm`; they emit reductions and elementwise ops.
pub struct Norm;

impl Call for Norm {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The norm of vectors or matrices, as `numpy.linalg.norm` defines it.
        norm(x: Array, ord: Of("number or string") = None, axis: Ints = None, keepdims: Bool = false),
            NumbersAndBools, Written, "(x: f32[4, 6]) { norm(x, axis=1) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let order = args.take("ord");
        let (axes, keepdims) = axes_of(args, build.ty(value).rank())?;
        let dtype = inexact(build.ty(value).dtype());
        // Intermediate results, such as a sum of squares, may be too large for small floats.
        let computed = if dtype.size() < 4 { DType::F32 } else { dtype };
        let value = cast(build, value, computed)?;
        let result = norm(build, value, order, Over { axes: &axes, keepdims })?;
        Ok(Term::Array(cast(build, result, dtype)?))
    }
}

/// The reduced dimensions, and whether they stay with size 1.
#[derive(Clone, Copy)]
struct Over<'a> {
    axes: &'a [usize],
    keepdims: bool,
}

/// The order given by `ord=`.
enum NormOrder {
    /// The square root of the sum of the squares, for any number of dimensions.
    Euclidean,
    Number(f64),
    /// The largest or smallest singular value, or their sum.
    Singular(ReduceOp),
}

fn order(given: Option<Arg>, dims: usize) -> Result<NormOrder, Diagnostic> {
    let Some(Arg { term, span, .. }) = given else { return Ok(NormOrder::Euclidean) };
    let number = if let Term::Str(name) = &term {
        match name.as_str() {
            "fro" if dims == 2 => return Ok(NormOrder::Euclidean),
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            "nuc" if dims == 2 => return Ok(NormOrder::Singular(ReduceOp::Sum)),
            _ => {
                let message = format!("unknown norm {name:?} over {dims} dimensions");
                let help = "the orders are numbers, \"inf\" and \"-inf\", and for matrices \"fro\" and \"nuc\"";
                return Err(Diagnostic::error(Code::E0225, span, message).help(help));
            }
        }
    } else {
        term.number().ok_or_else(|| not_static("ord", "a number", &term, span))?
    };
    match dims {
        1 if number == 2.0 => Ok(NormOrder::Euclidean),
        1 => Ok(NormOrder::Number(number)),
        2 if number == 2.0 => Ok(NormOrder::Singular(ReduceOp::Max)),
        2 if number == -2.0 => Ok(NormOrder::Singular(ReduceOp::Min)),
        2 if number.abs() == 1.0 || number.is_infinite() => Ok(NormOrder::Number(number)),
        _ => {
            let message = format!("unknown norm of order {number} over {dims} dimensions");
            Err(Diagnostic::error(Code::E0225, span, message).help(
                "vector norms have any order, matrix norms the orders 1, -1, 2, -2, \"inf\" and \"-inf\"; `axis=` selects the dimensions",
            ))
        }
    }
}

/// Norms of vectors and matrices, as `numpy.linalg.norm` defines them.
fn norm(build: &mut CallBuilder, value: Value, given: Option<Arg>, over: Over<'_>) -> Result<Value, Diagnostic> {
    let order = order(given, over.axes.len())?;
    let dtype = inexact(build.ty(value).dtype());
    let value = cast(build, value, dtype)?;
    let order = match order {
        NormOrder::Number(order) => order,
        NormOrder::Euclidean => {
            let square = build.emit1(Unary(UnaryOp::Square), &[value])?;
            let sum = reduce(build, ReduceOp::Sum, square, over.axes, over.keepdims)?;
            return build.emit1(Unary(UnaryOp::Math(MathFn::Sqrt)), &[sum]);
        }
        NormOrder::Singular(op) => return of_singular_values(build, value, op, over),
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

/// A reduction of the singular values of matrices in two dimensions; their order does not matter for them.
fn of_singular_values(
    build: &mut CallBuilder,
    value: Value,
    op: ReduceOp,
    over: Over<'_>,
) -> Result<Value, Diagnostic> {
    let rank = build.ty(value).rank();
    let order: Vec<usize> = (0..rank).filter(|dim| !over.axes.contains(dim)).chain(over.axes.iter().copied()).collect();
    let matrices = if order.is_sorted() { value } else { transpose(build, value, &order)? };
    let values = build.emit1(Factorization(MatrixFunction::Svd { vectors: None }), &[matrices])?;
    let result = reduce(build, op, values, &[rank - 2], false)?;
    if !over.keepdims {
        return Ok(result);
    }
    let shape = build.ty(value).shape().iter().enumerate();
    let kept: Vec<usize> = shape.map(|(dim, &size)| if over.axes.contains(&dim) { 1 } else { size }).collect();
    spmdc_ops::reshape::reshape(build, result, &kept)
}

/// A result whose reduced dimensions have size 1, without these dimensions unless the call keeps them.
fn dropped(build: &mut CallBuilder, value: Value, over: Over<'_>) -> Result<Value, Diagnostic> {
    if over.keepdims {
        return Ok(value);
    }
    let shape = build.ty(value).shape().iter().enumerate();
    let kept: Vec<usize> = shape.filter(|(dim, _)| !over.axes.contains(dim)).map(|(_, &size)| size).collect();
    spmdc_ops::reshape::reshape(build, value, &kept)
}
