//! Combinations of the elements with equal indices: `segment_sum(x, i, num_segments=n)`, `bincount(x, length=n)`. They become a `scatter`
//! into identity elements. As in JAX, elements whose index is outside of the segments are ignored.

use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{expected, must_be, requires};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{DType, MAX_ELEMENTS};
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::cast::cast;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{Compare, Select, binary};
use spmdc_ops::gather::Gather;
use spmdc_ops::promote;
use spmdc_ops::reshape::reshape;
use spmdc_ops::reshard::{explicit_out, with_layout};
use spmdc_ops::scatter::{Onto, Scatter};

/// `segment_sum`, `segment_max`, `segment_min` and `bincount`.
pub struct Segments;

impl Call for Segments {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The sums of the rows with equal segment numbers.
        segment_sum(data: Array, segment_ids: Array, num_segments: Int, [named] out: Sharding = None),
            NumbersAndBools, Planes(data), "(x: f32[8, 4], i: i32[8]) { segment_sum(x, i, num_segments=4) }";
        /// The largest elements of the rows with equal segment numbers; the least number of the type for an empty segment.
        segment_max(data: Array, segment_ids: Array, num_segments: Int, [named] out: Sharding = None),
            NumbersAndBools, Refused(ORDER), "(x: f32[8, 4], i: i32[8]) { segment_max(x, i, num_segments=4) }";
        /// The smallest elements of the rows with equal segment numbers; the largest number of the type for an empty segment.
        segment_min(data: Array, segment_ids: Array, num_segments: Int, [named] out: Sharding = None),
            NumbersAndBools, Refused(ORDER), "(x: f32[8, 4], i: i32[8]) { segment_min(x, i, num_segments=4) }";
        /// The number of occurrences of each number from 0 to length - 1, or the sum of their weights; negative numbers count as 0.
        bincount(x: Array, weights: Array = None, minlength: Int = 0, [named] length: Int = None, [named] out: Sharding = None),
            Integers, Planes(weights), "(x: i32[12]) { bincount(x, length=8) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        if name == "bincount" {
            return bincount(args, build);
        }
        let data = args.array(build, "data")?;
        let ids = args.required("segment_ids")?;
        let places = integers(build, &ids)?;
        let count = size(args, "num_segments")?;
        let op = match name {
            "segment_sum" => ReduceOp::Sum,
            "segment_max" => ReduceOp::Max,
            _ => ReduceOp::Min,
        };
        combined(args, build, data, (places, &ids), count, op)
    }
}

/// A number of segments.
fn size(args: &mut Args<'_>, name: &str) -> Result<usize, Diagnostic> {
    let given = args.int(name)?;
    usize::try_from(given).ok().filter(|&size| size <= MAX_ELEMENTS).ok_or_else(|| {
        Diagnostic::error(Code::E0225, args.span, must_be(format_args!("`{name}`"), "at least 0", given))
    })
}

/// The integers of an argument.
fn integers(build: &mut CallBuilder, arg: &Arg) -> Result<Value, Diagnostic> {
    let value = build.materialize(&arg.term, None, arg.span)?;
    let ty = &build.ty(value).array;
    if !ty.dtype.is_integer() {
        return Err(Diagnostic::error(Code::E0203, arg.span, must_be("segment numbers", "integers", ty)));
    }
    Ok(value)
}

/// The rows of `data` combined by their segment numbers.
fn combined(
    args: &mut Args<'_>,
    build: &mut CallBuilder,
    data: Value,
    (ids, given): (Value, &Arg),
    count: usize,
    op: ReduceOp,
) -> Result<Term, Diagnostic> {
    let (ty, of) = (build.ty(data).array.clone(), build.ty(ids).array.clone());
    if of.rank() != 1 || ty.shape.first() != of.shape.first() {
        let message = expected(format_args!("one segment number for each row of {ty}"), &of);
        return Err(Diagnostic::error(Code::E0205, given.span, message));
    }
    let mut target = ty.shape.clone();
    target[0] = count;
    scattered(args, build, data, ids, target, op)
}

/// The elements of `data` combined in an array of shape `target`, at the indices `ids` of its first dimension.
fn scattered(
    args: &mut Args<'_>,
    build: &mut CallBuilder,
    data: Value,
    ids: Value,
    target: Vec<usize>,
    op: ReduceOp,
) -> Result<Term, Diagnostic> {
    let dtype = build.ty(data).dtype();
    let op = if op == ReduceOp::Sum && dtype == DType::Bool { ReduceOp::Or } else { op };
    // Numbers beyond i64 become negative ones, which are no segments either.
    let ids = cast(build, ids, DType::I64)?;
    let wide = if op == ReduceOp::Sum { dtype.computed() } else { dtype };
    let data = cast(build, data, wide)?;
    let out = told(args, build, target.len())?;
    let places = Gather::new(vec![0], Vec::new(), 0);
    let op = Scatter { places, combine: Some(op), onto: Onto::Identity(target), out };
    let result = build.emit1(op, &[data, ids])?;
    let result = cast(build, result, dtype)?;
    with_layout(args, build, result)
}

/// The part of the call's `out=` that the scatter must know; the rest remains an argument.
fn told(args: &Args<'_>, build: &CallBuilder, rank: usize) -> Result<Option<Sharding>, Diagnostic> {
    let Some(Arg { term: Term::Sharding(given), span, .. }) = args.peek("out") else { return Ok(None) };
    Ok(explicit_out(build, &complete(given.sharding.clone(), rank, *span)?))
}

/// Numbers of any shape are counted in place: if they were flattened first, uneven blocks would have to move.
fn bincount(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
    let given = args.required("x")?;
    let x = integers(build, &given)?;
    // The least length of a result whose length follows from the numbers, so it is always too little to know.
    args.optional_int("minlength")?;
    if args.peek("length").is_none() {
        let message = "`bincount` requires `length`: the result's shape would depend on run-time values";
        return Err(Diagnostic::error(Code::E0207, args.span, message)
            .help("write bincount(x, length=N) to count the numbers from 0 to N - 1"));
    }
    let length = size(args, "length")?;
    let shape = build.ty(x).shape().to_vec();
    let is_signed = build.ty(x).dtype().is_signed_integer();
    let x = match is_signed {
        true => binary(build, BinaryOp::Maximum, (&Term::Array(x), given.span), (&Term::Int(0), given.span))?,
        false => x,
    };
    let weights = match args.take("weights") {
        Some(arg) => {
            let weights = build.materialize(&arg.term, None, arg.span)?;
            let (found, len) = (build.ty(weights).array.len(), shape.iter().product::<usize>());
            if found != len {
                let message = expected(format_args!("one weight for each of the {len} numbers"), found);
                return Err(Diagnostic::error(Code::E0204, arg.span, message));
            }
            reshape(build, weights, &shape)?
        }
        None => {
            let one = build.emit1(Constant::scalar(DType::I32, 1), &[])?;
            let ids = cast(build, x, DType::I64)?;
            let op = Scatter {
                places: Gather::new(vec![0], Vec::new(), 0),
                combine: Some(ReduceOp::Sum),
                onto: Onto::Identity(vec![length]),
                out: told(args, build, 1)?,
            };
            let counts = build.emit1(op, &[one, ids])?;
            return with_layout(args, build, counts);
        }
    };
    scattered(args, build, weights, x, vec![length], ReduceOp::Sum)
}

/// `select([c, d], [x, y], 0)`: a chain of `where`.
pub struct SelectOf;

impl Call for SelectOf {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// For each position the element of the first choice whose condition holds, or the default.
        select(condlist: Of("list of bools"), choicelist: Of("list of arrays"), default: Array = 0),
            NumbersAndBools, Planes(choicelist, default), "(x: f32[6], y: f32[6]) { select([x > 3, x > 1], [x, y], 9) }";
        /// For each position the element of the case with the number at this position: false is the first case, true the second.
        select_n(which: Array, [rest] cases: Array), Any, Planes(cases), "(x: f32[6], y: f32[6], i: i32[6]) { select_n(i, x, y) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        if name == "select_n" {
            return select_n(args, build);
        }
        let (conditions, choices) = (args.required("condlist")?, args.required("choicelist")?);
        let default = args.take("default").unwrap_or(Arg { name: None, term: Term::Int(0), span: args.span });
        let (Some(tests), Some(values)) = (conditions.term.sequence(), choices.term.sequence()) else {
            return Err(Diagnostic::error(
                Code::E0210,
                args.span,
                "`select` requires a list of conditions and a list of choices",
            ));
        };
        if tests.len() != values.len() || tests.is_empty() {
            let message = requires(
                "`select`",
                "one choice per condition",
                format_args!("{} conditions and {} choices", tests.len(), values.len()),
            );
            return Err(Diagnostic::error(Code::E0201, args.span, message));
        }
        let mut all: Vec<(&Term, _)> = values.iter().map(|value| (value, choices.span)).collect();
        all.push((&default.term, default.span));
        let mut values = promote::promoted(build, &all)?;
        let tests = tests.iter().map(|test| {
            let test = build.materialize(test, None, conditions.span)?;
            let ty = &build.ty(test).array;
            if ty.dtype == DType::Bool {
                return Ok(test);
            }
            Err(Diagnostic::error(Code::E0203, conditions.span, must_be("a condition", "a bool", ty)))
        });
        let tests = tests.collect::<Result<Vec<Value>, Diagnostic>>()?;
        let last = values.pop().expect("the default has been added");
        let chosen = tests
            .into_iter()
            .zip(values)
            .rev()
            .try_fold(last, |rest, (test, value)| build.emit1(Select, &[test, value, rest]))?;
        Ok(Term::Array(chosen))
    }
}

/// The call of `select_n`. A number below 0 or above the last case takes the nearest case.
fn select_n(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
    let span = args.span;
    let which = args.array(build, "which")?;
    let cases = args.rest("cases");
    let numbers = build.ty(which).array.clone();
    let is_bool = numbers.dtype == DType::Bool;
    if !is_bool && !numbers.dtype.is_integer() {
        let message = format!("`which` must hold bools or case numbers; found {}", numbers.dtype.name());
        return Err(Diagnostic::error(Code::E0203, span, message));
    }
    if cases.is_empty() || (is_bool && cases.len() > 2) {
        let wanted = if is_bool { "one or two cases, for false and true" } else { "at least one case" };
        return Err(Diagnostic::error(Code::E0201, span, requires("`select_n`", wanted, cases.len())));
    }
    let operands: Vec<(&Term, _)> = cases.iter().map(|case| (&case.term, case.span)).collect();
    let mut values = promote::promoted(build, &operands)?;
    let mut chosen = values.remove(0);
    for (at, value) in (1i64..).zip(values) {
        let test = if is_bool {
            which
        } else {
            let number = build.emit1(Constant::float(numbers.dtype, at as f64), &[])?;
            build.emit1(Compare(CompareOp::Ge), &[which, number])?
        };
        chosen = build.emit1(Select, &[test, value, chosen])?;
    }
    let shape = shape::broadcast(&[build.ty(chosen).shape(), &numbers.shape]);
    let shape = shape.map_err(|mismatch| Diagnostic::error(mismatch.code, span, mismatch.message))?;
    broadcast(build, chosen, &shape).map(Term::Array)
}
