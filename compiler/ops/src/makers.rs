//! Functions that create arrays: `zeros`, `full`, `arange`, `eye`, `one_hot`, and the masks `tril` and `triu`.
//!
//! They are made of numbers, `iota` and elementwise ops, so each device computes its own block.

use crate::broadcast::{broadcast, filled};
use crate::cast::{Cast, cast};
use crate::constant::{Constant, filling_bits, number_bits};
use crate::elementwise::{Binary, Compare, Select};
use crate::iota::Iota;
use crate::reshape::reshape;
use crate::reshard::with_layout;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, requires, undefined};
use spmdc_grammar::span::Span;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::types::{ArrayType, DType};

/// The calls that create arrays; they emit constants, broadcasts, `iota` and elementwise ops.
pub struct Makers;

impl Call for Makers {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// An array of zeros; the type may state its layout.
        zeros(shape: Type, [named] out: Sharding = None), NumbersAndBools, Made, "() { zeros(f32[4, 6]) }";
        /// An array of ones; the type may state its layout.
        ones(shape: Type, [named] out: Sharding = None), NumbersAndBools, Made, "() { ones(f32[4, 6]) }";
        /// An array filled with one number; the type may state its layout.
        full(shape: Type, fill_value: Of("number or scalar"), [named] out: Sharding = None), NumbersAndBools, Planes(fill_value), "() { full(f32[4, 6], 1) }";
        /// An array of zeros, with the type, shape and explicit layout of another array.
        zeros_like(x: Array, [named] out: Sharding = None), NumbersAndBools, Planes(x), "(x: f32[4, 6]) { zeros_like(x) }";
        /// An array of ones, with the type, shape and explicit layout of another array.
        ones_like(x: Array, [named] out: Sharding = None), NumbersAndBools, Written, "(x: f32[4, 6]) { ones_like(x) }";
        /// An array filled with one number, with the type, shape and explicit layout of another array.
        full_like(x: Array, fill_value: Of("number or scalar"), [named] out: Sharding = None), NumbersAndBools, Planes(x, fill_value), "(x: f32[4, 6]) { full_like(x, 1) }";
        /// Equally spaced numbers from start, or from 0 with one argument, up to but not including stop.
        arange(start: Count, stop: Count = None, step: Count = 1, dtype: ElementType = None, [named] out: Sharding = None),
            Numbers, Made, "() { arange(2, 14, 3, dtype=f32) }";
        /// The given number of equally spaced numbers from start to stop.
        linspace(start: Of("number"), stop: Of("number"), num: Int = 50, endpoint: Bool = true, dtype: ElementType = f32, [named] out: Sharding = None),
            Floats, Made, "() { linspace(0, 1, 5, dtype=f32) }";
        /// The given number of numbers with equal ratios: powers of base whose exponents are equally spaced from start to stop.
        logspace(start: Of("number"), stop: Of("number"), num: Int = 50, endpoint: Bool = true, base: Of("number") = 10.0, dtype: ElementType = f32, [named] out: Sharding = None),
            Floats, Made, "() { logspace(0, 2, 5, dtype=f32) }";
        /// A matrix with ones on a diagonal and zeros elsewhere.
        eye(N: Int, M: Int = None, k: Int = 0, dtype: ElementType = f32, [named] out: Sharding = None), NumbersAndBools, Made, "() { eye(3, 4, dtype=f32) }";
        /// A new dimension, by default the last, with 1 at the index and 0 elsewhere.
        one_hot(x: Array, num_classes: Int, dtype: ElementType = f32, axis: Int = -1, [named] out: Sharding = None), Integers, Made, "(x: i32[4]) { one_hot(x, 5) }";
        /// The array with zeros above a diagonal of the last two dimensions.
        tril(x: Array, k: Int = 0, [named] out: Sharding = None), Any, Planes(x), "(x: f32[4, 6]) { tril(x) }";
        /// The array with zeros below a diagonal of the last two dimensions.
        triu(x: Array, k: Int = 0, [named] out: Sharding = None), Any, Planes(x), "(x: f32[4, 6]) { triu(x, k=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = match name {
            "zeros" | "ones" | "full" => {
                let ty = args.ty("shape")?.array;
                number_everywhere(name, args, build, &ty)?
            }
            "zeros_like" | "ones_like" | "full_like" => {
                let like = args.array(build, "x")?;
                let ty = build.ty(like).array.clone();
                let made = number_everywhere(name.trim_end_matches("_like"), args, build, &ty)?;
                // `out=` says the layout itself.
                if args.peek("out").is_none() { build.in_layout_of(made, like)? } else { made }
            }
            "arange" => arange(args, build)?,
            "linspace" => {
                let dtype = float_dtype(args)?;
                // Narrow floats are rounded once: their own numbers do not count far, and are NaN beyond the largest one.
                let points = linspace(args, build, dtype.computed())?;
                cast(build, points, dtype)?
            }
            "logspace" => logspace(args, build)?,
            "eye" => eye(args, build)?,
            "one_hot" => one_hot(args, build)?,
            _ => triangle(name, args, build)?,
        };
        with_layout(args, build, value)
    }
}

fn number_everywhere(
    name: &str,
    args: &mut Args<'_>,
    build: &mut CallBuilder,
    ty: &ArrayType,
) -> Result<Value, Diagnostic> {
    if name == "full" {
        let fill = args.required("fill_value")?;
        if let Term::Array(value) = fill.term {
            let value = cast(build, value, ty.dtype)?;
            return broadcast(build, value, &ty.shape);
        }
        return filled(build, ty.dtype, filling_bits(&fill.term, ty.dtype, fill.span)?, &ty.shape);
    }
    let number = Term::Int(i128::from(name == "ones"));
    filled(build, ty.dtype, filling_bits(&number, ty.dtype, args.span)?, &ty.shape)
}

/// An optional `dtype=` (or positional) argument.
fn dtype(args: &mut Args<'_>, default: DType) -> Result<DType, Diagnostic> {
    Ok(args.optional_dtype("dtype")?.unwrap_or(default))
}

fn indices(build: &mut CallBuilder, dtype: DType, sizes: &[usize], axis: usize) -> Result<Value, Diagnostic> {
    build.emit1(Iota { ty: ArrayType::new(dtype, sizes), axis }, &[])
}

fn binary(build: &mut CallBuilder, op: BinaryOp, lhs: Value, rhs: Value) -> Result<Value, Diagnostic> {
    build.emit1(Binary(op), &[lhs, rhs])
}

fn scalar(build: &mut CallBuilder, term: &Term, dtype: DType, span: Span) -> Result<Value, Diagnostic> {
    build.emit1(Constant::scalar(dtype, number_bits(term, dtype, span)?), &[])
}

fn number(term: &Term, name: &str, span: Span) -> Result<f64, Diagnostic> {
    term.number().ok_or_else(|| {
        let message = must_be(format_args!("`{name}`"), "a number known at compile time", term.describe());
        Diagnostic::error(Code::E0207, span, message)
    })
}

/// `arange(stop)`, `arange(start, stop, step)`: i32 for integers, f32 if any is a float.
fn arange(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let first = args.required("start")?;
    let (start, stop) = match args.take("stop") {
        Some(stop) => (first, stop),
        None => (Arg { name: None, term: Term::Int(0), span: first.span }, first),
    };
    let step = args.take("step").unwrap_or(Arg { name: None, term: Term::Int(1), span: args.span });
    let float = [&start, &stop, &step].iter().any(|arg| matches!(arg.term, Term::Float(_)));
    let dtype = dtype(args, if float { DType::F32 } else { DType::I32 })?;
    let (from, to) = (number(&start.term, "start", start.span)?, number(&stop.term, "stop", stop.span)?);
    let by = number(&step.term, "step", step.span)?;
    if by == 0.0 {
        return Err(Diagnostic::error(Code::E0402, step.span, "the step of `arange` is zero"));
    }
    let len = ((to - from) / by).ceil().max(0.0) as usize;
    // Narrow floats are rounded once, as in `linspace`.
    let computed = dtype.computed();
    let mut value = indices(build, computed, &[len], 0)?;
    if by != 1.0 {
        let by = scalar(build, &step.term, computed, step.span)?;
        value = binary(build, BinaryOp::Mul, value, by)?;
    }
    if from != 0.0 {
        let from = scalar(build, &start.term, computed, start.span)?;
        value = binary(build, BinaryOp::Add, value, from)?;
    }
    cast(build, value, dtype)
}

/// As [`dtype`], of floats alone.
fn float_dtype(args: &mut Args<'_>) -> Result<DType, Diagnostic> {
    let dtype = dtype(args, DType::F32)?;
    if dtype.is_float() {
        return Ok(dtype);
    }
    let message = undefined(format_args!("`{}`", args.function), dtype.name());
    Err(Diagnostic::error(Code::E0215, args.span, message))
}

/// The powers of a base with the exponents of `linspace`. Narrow floats are rounded once.
fn logspace(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let dtype = float_dtype(args)?;
    let computed = dtype.computed();
    let exponents = linspace(args, build, computed)?;
    let base = match args.take("base") {
        Some(base) => number(&base.term, "base", base.span)?,
        None => 10.0,
    };
    let base = build.emit1(Constant::scalar(computed, computed.narrow(base)), &[])?;
    let powers = binary(build, BinaryOp::Pow, base, exponents)?;
    cast(build, powers, dtype)
}

/// `num` numbers from start to stop, both ends included unless `endpoint=false`.
fn linspace(args: &mut Args<'_>, build: &mut CallBuilder, dtype: DType) -> Result<Value, Diagnostic> {
    let (start, stop) = (args.required("start")?, args.required("stop")?);
    let len = usize::try_from(args.optional_int("num")?.unwrap_or(50)).map_err(|_| {
        Diagnostic::error(
            Code::E0225,
            args.span,
            format!("the number of points of `{}` must be at least 0", args.function),
        )
    })?;
    let endpoint = args.optional_bool("endpoint")?.unwrap_or(true);
    let (from, to) = (number(&start.term, "start", start.span)?, number(&stop.term, "stop", stop.span)?);
    let gaps = if endpoint { len.saturating_sub(1) } else { len }.max(1);
    // start * (1 - t) + stop * t with t = i / gaps, and exactly `stop` at the end.
    let constant = |build: &mut CallBuilder, value: f64| build.emit1(Constant::scalar(dtype, dtype.narrow(value)), &[]);
    let index = indices(build, dtype, &[len], 0)?;
    let count = constant(build, gaps as f64)?;
    let t = binary(build, BinaryOp::Div, index, count)?;
    let one = constant(build, 1.0)?;
    let rest = binary(build, BinaryOp::Sub, one, t)?;
    let (first, last) = (constant(build, from)?, constant(build, to)?);
    let left = binary(build, BinaryOp::Mul, first, rest)?;
    let right = binary(build, BinaryOp::Mul, last, t)?;
    let inner = binary(build, BinaryOp::Add, left, right)?;
    if !endpoint || len < 2 {
        return Ok(inner);
    }
    let end = build.emit1(Compare(CompareOp::Eq), &[index, count])?;
    build.emit1(Select, &[end, last, inner])
}

/// A distance from the main diagonal that exceeds any element's, and is small enough to be added to an index.
const FAR_DIAGONAL: i64 = 1 << 30;

/// `row + k == column`, or `>=`, as a mask over the last two of `sizes`.
fn mask(build: &mut CallBuilder, sizes: &[usize], k: i64, op: CompareOp, span: Span) -> Result<Value, Diagnostic> {
    let rank = sizes.len();
    let matrix = &sizes[rank - 2..];
    // All diagonals beyond the corners are alike.
    let k = k.clamp(-FAR_DIAGONAL, FAR_DIAGONAL);
    let rows = indices(build, DType::I32, matrix, 0)?;
    let offset = scalar(build, &Term::Int(i128::from(k)), DType::I32, span)?;
    let rows = binary(build, BinaryOp::Add, rows, offset)?;
    let columns = indices(build, DType::I32, matrix, 1)?;
    build.emit1(Compare(op), &[rows, columns])
}

/// The identity matrix with this number of rows.
pub fn identity(build: &mut CallBuilder, dtype: DType, rows: usize) -> Result<Value, Diagnostic> {
    let diagonal = mask(build, &[rows, rows], 0, CompareOp::Eq, build.span())?;
    cast(build, diagonal, dtype)
}

/// `eye(n)`, `eye(n, m, k=1, dtype=i32)`
fn eye(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let mut given = vec![args.int("N")?];
    given.extend(args.optional_int("M")?);
    let sizes = crate::broadcast::sizes(&given, args)?;
    let sizes = [sizes[0], *sizes.last().unwrap_or(&sizes[0])];
    let k = args.optional_int("k")?.unwrap_or(0);
    let dtype = dtype(args, DType::F32)?;
    let diagonal = mask(build, &sizes, k, CompareOp::Eq, args.span)?;
    build.emit1(Cast { to: dtype }, &[diagonal])
}

/// `one_hot(x, classes, f32)`: a new dimension with 1 at each index, the last one or at `axis`; indices outside give zeros.
fn one_hot(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let value = args.array(build, "x")?;
    let ty = build.ty(value).array.clone();
    if !ty.dtype.is_integer() {
        let message = undefined("`one_hot`", &ty);
        return Err(Diagnostic::error(Code::E0215, args.span, message));
    }
    let given = args.int("num_classes")?;
    let classes = crate::broadcast::sizes(&[given], args)?[0];
    let dtype = dtype(args, DType::F32)?;
    let axis = shape::axis(args.optional_int("axis")?.unwrap_or(-1), ty.rank() + 1, args.span)?;
    let mut wider = ty.shape.clone();
    wider.insert(axis, 1);
    let value = reshape(build, value, &wider)?;
    // The classes lie along the new dimension, and are broadcast along the later ones.
    let mut sizes = vec![1; ty.rank() - axis + 1];
    sizes[0] = classes;
    let numbers = indices(build, ty.dtype, &sizes, 0)?;
    let hot = build.emit1(Compare(CompareOp::Eq), &[value, numbers])?;
    build.emit1(Cast { to: dtype }, &[hot])
}

/// `tril(x, k=0)` keeps the elements on or below the k-th diagonal, `triu` those on or above it.
fn triangle(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let value = args.array(build, "x")?;
    let ty = build.ty(value).array.clone();
    if ty.rank() < 2 {
        let message = requires(format_args!("`{name}`"), "matrices", &ty);
        return Err(Diagnostic::error(Code::E0205, args.span, message));
    }
    let k = args.optional_int("k")?.unwrap_or(0);
    let op = if name == "tril" { CompareOp::Ge } else { CompareOp::Le };
    let kept = mask(build, &ty.shape, k, op, args.span)?;
    let kept = broadcast(build, kept, &ty.shape)?;
    let zero = filled(build, ty.dtype, 0, &ty.shape)?;
    build.emit1(Select, &[kept, value, zero])
}
