//! Functions that take elements of a sorted order: `quantile percentile nonzero unique`.

use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::{Arg, not_static};
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::unknown_value;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, MathFn, UnaryOp};
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::broadcast::{self, broadcast};
use spmdc_ops::cast::cast;
use spmdc_ops::concatenate::{concatenate, stacked};
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{Binary, Compare, Select, Unary};
use spmdc_ops::gather::Gather;
use spmdc_ops::iota::Iota;
use spmdc_ops::promote::inexact;
use spmdc_ops::reduce::{axes_of, reduce, reduced_shape};
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::{SliceRange, slice_dim};
use spmdc_ops::sort::{LineOrder, places, sort_together};
use spmdc_ops::transpose::transpose;

/// The calls of `quantile` and `percentile`.
pub struct Quantiles;

/// The calls of `nonzero` and `unique`.
pub struct Chosen;

/// The value between two elements of the order that a quantile takes.
#[derive(Clone, Copy, PartialEq)]
enum Method {
    Linear,
    Lower,
    Higher,
    Nearest,
    Midpoint,
}

const METHODS: [(&str, Method); 5] = [
    ("linear", Method::Linear),
    ("lower", Method::Lower),
    ("higher", Method::Higher),
    ("nearest", Method::Nearest),
    ("midpoint", Method::Midpoint),
];

impl Call for Quantiles {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The value below which a fraction q of the elements falls; between two elements by the method: linear, lower, higher, nearest, midpoint.
        quantile(a: Array, q: Of("number, list of numbers or array"), axis: Ints = None, [named] method: String = "linear", keepdims: Bool = false),
            NumbersAndBools, Refused(ORDER), "(x: f32[4, 6]) { quantile(x, 0.25, axis=1) }";
        /// As `quantile`, with q in percent.
        percentile(a: Array, q: Of("number, list of numbers or array"), axis: Ints = None, [named] method: String = "linear", keepdims: Bool = false),
            NumbersAndBools, Refused(ORDER), "(x: f32[4, 6]) { percentile(x, [25, 75], axis=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "a")?;
        let q = args.required("q")?;
        let scale = if name == "percentile" { 100.0 } else { 1.0 };
        let is_known = !q.term.one_or_more().iter().any(Term::holds_array);
        let fractions = if is_known { fractions(&q, scale)? } else { Vec::new() };
        let method = match args.take("method") {
            None => Method::Linear,
            Some(arg) => method(&arg)?,
        };
        let (axes, keepdims) = axes_of(args, build.ty(value).rank())?;
        let dtype = inexact(build.ty(value).dtype());
        let value = cast(build, value, dtype)?;
        let shape = reduced_shape(build.ty(value).shape(), &axes, keepdims);
        let (lines, axis) = lines(build, value, &axes)?;
        let len = build.ty(lines).shape()[axis];
        if len == 0 {
            return Err(Diagnostic::error(Code::E0205, args.span, format!("`{name}` of an empty array is undefined")));
        }
        let sorted =
            sort_together(build, &[lines], LineOrder { keys: 1, axis, descending: false, signed_zeros: false })?[0];
        let last = slice_dim(build, sorted, axis, SliceRange::between(len - 1, len))?;
        // NaN is the largest, so it is the last if there is any.
        let is_nan = build.emit1(Unary(UnaryOp::IsNan), &[last])?;
        if !is_known {
            let places = unknown_places(build, &q, scale, (dtype, len))?;
            let at = between_unknown(build, sorted, axis, &places, method)?;
            let is_nan = first_dim(build, is_nan, axis)?;
            let last = first_dim(build, last, axis)?;
            let at = build.emit1(Select, &[is_nan, last, at])?;
            let result = [&places.shape[..], &shape].concat();
            return reshape(build, at, &result).map(Term::Array);
        }
        let mut results = Vec::new();
        // No fractions: none of the results of one.
        let computed = if fractions.is_empty() { vec![0.0] } else { fractions.clone() };
        for fraction in computed {
            let at = between(build, sorted, axis, fraction, method)?;
            let result = build.emit1(Select, &[is_nan, last, at])?;
            results.push(Term::Array(reshape(build, result, &shape)?));
        }
        match q.term.sequence() {
            None => Ok(results.swap_remove(0)),
            Some(_) => {
                let all = stacked(build, &results, Some(dtype), args.span)?;
                slice_dim(build, all, 0, SliceRange::between(0, fractions.len())).map(Term::Array)
            }
        }
    }
}

/// Places in the order that are known when the program runs.
struct UnknownPlaces {
    /// The shape of the argument: one number, or a line of them.
    shape: Vec<usize>,
    /// Indices of the elements before and after each place, i64.
    low: Value,
    high: Value,
    /// The distance of each place from the previous element, from 0 to 1. A place past the ends takes the same element twice, so its
    /// distance does not matter. NaN for a fraction that is NaN.
    weight: Value,
}

/// The places of fractions in lines of `len` elements. They are computed in f32, or in f64 for elements of f64, as JAX does.
fn unknown_places(
    build: &mut CallBuilder,
    q: &Arg,
    scale: f64,
    (dtype, len): (DType, usize),
) -> Result<UnknownPlaces, Diagnostic> {
    let given = build.materialize(&q.term, None, q.span)?;
    let shape = build.ty(given).shape().to_vec();
    if shape.len() > 1 {
        let message = must_be("`q`", "a scalar or a vector", format_args!("{} dimensions", shape.len()));
        return Err(Diagnostic::error(Code::E0205, q.span, message));
    }
    let computed = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let fraction = cast(build, given, computed)?;
    let fraction = reshape(build, fraction, &[shape.iter().product()])?;
    let constant = |build: &mut CallBuilder, number: f64| build.emit1(Constant::float(computed, number), &[]);
    let binary = |build: &mut CallBuilder, op: BinaryOp, a: Value, b: Value| build.emit1(Binary(op), &[a, b]);
    let scale = constant(build, scale)?;
    let fraction = binary(build, BinaryOp::Div, fraction, scale)?;
    let last = constant(build, (len - 1) as f64)?;
    let place = binary(build, BinaryOp::Mul, fraction, last)?;
    let before = build.emit1(Unary(UnaryOp::Math(MathFn::Floor)), &[place])?;
    let after = build.emit1(Unary(UnaryOp::Math(MathFn::Ceil)), &[place])?;
    let weight = binary(build, BinaryOp::Sub, place, before)?;
    let zero = constant(build, 0.0)?;
    let index = |build: &mut CallBuilder, place: Value| {
        // NaN is no place: any element serves.
        let is_nan = build.emit1(Unary(UnaryOp::IsNan), &[place])?;
        let place = build.emit1(Select, &[is_nan, zero, place])?;
        let place = binary(build, BinaryOp::Maximum, place, zero)?;
        let place = binary(build, BinaryOp::Minimum, place, last)?;
        cast(build, place, DType::I64)
    };
    let (low, high) = (index(build, before)?, index(build, after)?);
    Ok(UnknownPlaces { shape, low, high, weight })
}

/// The value with a dimension of size 1 in front instead of at `axis`.
fn first_dim(build: &mut CallBuilder, value: Value, axis: usize) -> Result<Value, Diagnostic> {
    let mut shape = build.ty(value).shape().to_vec();
    debug_assert_eq!(shape[axis], 1, "the dimension has one element");
    shape.remove(axis);
    shape.insert(0, 1);
    reshape(build, value, &shape)
}

/// The values at places of sorted lines, before the other dimensions.
fn between_unknown(
    build: &mut CallBuilder,
    sorted: Value,
    axis: usize,
    places: &UnknownPlaces,
    method: Method,
) -> Result<Value, Diagnostic> {
    let (dtype, rank) = (build.ty(sorted).dtype(), build.ty(sorted).rank());
    let count: usize = places.shape.iter().product();
    let computed = build.ty(places.weight).dtype();
    let take =
        |build: &mut CallBuilder, places: Value| build.emit1(Gather::new(vec![axis], Vec::new(), 0), &[sorted, places]);
    let mut column = vec![1; rank];
    column[0] = count;
    match method {
        Method::Lower => return take(build, places.low),
        Method::Higher => return take(build, places.high),
        Method::Nearest => {
            let half = build.emit1(Constant::float(computed, 0.5), &[])?;
            let is_low = build.emit1(Compare(CompareOp::Le), &[places.weight, half])?;
            let nearest = build.emit1(Select, &[is_low, places.low, places.high])?;
            return take(build, nearest);
        }
        Method::Linear | Method::Midpoint => {}
    }
    let (low, high) = (take(build, places.low)?, take(build, places.high)?);
    let (before, after) = if method == Method::Midpoint {
        let half = build.emit1(Constant::float(computed, 0.5), &[])?;
        (half, half)
    } else {
        let after = reshape(build, places.weight, &column)?;
        let one = build.emit1(Constant::float(computed, 1.0), &[])?;
        (build.emit1(Binary(BinaryOp::Sub), &[one, after])?, after)
    };
    let side = |build: &mut CallBuilder, value: Value, weight: Value| {
        let value = cast(build, value, computed)?;
        build.emit1(Binary(BinaryOp::Mul), &[value, weight])
    };
    let (low, high) = (side(build, low, before)?, side(build, high, after)?);
    let result = build.emit1(Binary(BinaryOp::Add), &[low, high])?;
    cast(build, result, dtype)
}

/// The fractions of a call: E0210 or E0224 unless they are numbers known at compile time, E0225 unless they are from 0 to `scale`.
fn fractions(q: &Arg, scale: f64) -> Result<Vec<f64>, Diagnostic> {
    let fraction = |term: &Term| match term.number() {
        Some(number) if (0.0..=scale).contains(&number) => Ok(number / scale),
        Some(number) => {
            Err(Diagnostic::error(Code::E0225, q.span, must_be("`q`", format_args!("from 0 to {scale}"), number)))
        }
        None => Err(not_static("q", "a number", term, q.span)),
    };
    q.term.one_or_more().iter().map(fraction).collect()
}

fn method(arg: &Arg) -> Result<Method, Diagnostic> {
    let found = METHODS.iter().find(|(known, _)| matches!(&arg.term, Term::Str(name) if known == name));
    found.map(|&(_, method)| method).ok_or_else(|| {
        let names: Vec<&str> = METHODS.iter().map(|(name, _)| *name).collect();
        unknown_value("method", &names, &arg.term, arg.span)
    })
}

/// The array with these dimensions as lines along one dimension, and that dimension.
fn lines(build: &mut CallBuilder, value: Value, axes: &[usize]) -> Result<(Value, usize), Diagnostic> {
    if let [axis] = axes {
        return Ok((value, *axis));
    }
    let rank = build.ty(value).rank();
    let kept: Vec<usize> = (0..rank).filter(|dim| !axes.contains(dim)).collect();
    let order: Vec<usize> = kept.iter().copied().chain((0..rank).filter(|dim| axes.contains(dim))).collect();
    let moved = if order.is_sorted() { value } else { transpose(build, value, &order)? };
    let sizes = build.ty(moved).shape().to_vec();
    let mut shape = sizes[..kept.len()].to_vec();
    shape.push(sizes[kept.len()..].iter().product());
    Ok((reshape(build, moved, &shape)?, kept.len()))
}

/// The array with these dimensions as lines along the last one.
pub fn last_lines(build: &mut CallBuilder, value: Value, axes: &[usize]) -> Result<Value, Diagnostic> {
    let (lines, axis) = lines(build, value, axes)?;
    let rank = build.ty(lines).rank();
    let order: Vec<usize> = (0..rank).filter(|&dim| dim != axis).chain([axis]).collect();
    if order.is_sorted() { Ok(lines) } else { transpose(build, lines, &order) }
}

/// The value at a fraction of sorted lines, whose dimension gets size 1. The place is computed in the type of the elements, as JAX does.
fn between(
    build: &mut CallBuilder,
    sorted: Value,
    axis: usize,
    fraction: f64,
    method: Method,
) -> Result<Value, Diagnostic> {
    let (dtype, len) = (build.ty(sorted).dtype(), build.ty(sorted).shape()[axis]);
    let place =
        if dtype == DType::F64 { fraction * (len - 1) as f64 } else { f64::from(fraction as f32 * (len - 1) as f32) };
    let (low, high) = (place.floor(), place.ceil().min((len - 1) as f64));
    let weight = place - low;
    let element = |build: &mut CallBuilder, at: f64| {
        let at = at as usize;
        slice_dim(build, sorted, axis, SliceRange::between(at, at + 1))
    };
    let one = match method {
        Method::Lower => Some(low),
        Method::Higher => Some(high),
        // As in JAX the lower one in the middle; NumPy takes the one at an even place.
        Method::Nearest => Some(if weight <= 0.5 { low } else { high }),
        Method::Linear | Method::Midpoint => (low == high).then_some(low),
    };
    if let Some(at) = one {
        return element(build, at);
    }
    let side = |build: &mut CallBuilder, at: f64, weight: f64| {
        let value = element(build, at)?;
        // Narrow floats are rounded once.
        let value = cast(build, value, dtype.computed())?;
        let weight = build.emit1(Constant::float(dtype.computed(), weight), &[])?;
        build.emit1(Binary(BinaryOp::Mul), &[value, weight])
    };
    let weights = if method == Method::Midpoint { [0.5, 0.5] } else { [1.0 - weight, weight] };
    let (low, high) = (side(build, low, weights[0])?, side(build, high, weights[1])?);
    let result = build.emit1(Binary(BinaryOp::Add), &[low, high])?;
    cast(build, result, dtype)
}

impl Call for Chosen {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The indices of the nonzero elements, in order: for each dimension an array of `size` elements, padded with fill_value.
        nonzero(x: Array, [named] size: Int, [named] fill_value: Of("int, or tuple of ints") = 0), NumbersAndBools, Refused("`nonzero(z != 0, size=N)` gives the indices"), "(x: f32[4, 6]) { nonzero(x > 10, size=5) }";
        /// The first `size` distinct elements in ascending order, padded with fill_value, or with the smallest element.
        unique(x: Array, [named] size: Int, [named] fill_value: Of("number") = None), NumbersAndBools, Refused(ORDER), "(x: f32[4, 6]) { unique(floor(x / 4), size=8) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let size = args.int("size")?;
        let Ok(size) = usize::try_from(size) else {
            return Err(Diagnostic::error(
                Code::E0225,
                args.span,
                must_be(format_args!("`size` of `{name}`"), "at least 0", size),
            ));
        };
        let fill = args.take("fill_value");
        if name == "nonzero" { nonzero(build, value, size, fill) } else { unique(build, value, size, fill) }
    }
}

/// The first elements of an order, `size` of them; unspecified values after the last element.
fn first(build: &mut CallBuilder, value: Value, size: usize) -> Result<Value, Diagnostic> {
    let len = build.ty(value).shape()[0];
    let taken = slice_dim(build, value, 0, SliceRange::between(0, size.min(len)))?;
    if size <= len {
        return Ok(taken);
    }
    let dtype = build.ty(value).dtype();
    let zeros = broadcast::filled(build, dtype, 0, &[size - len])?;
    concatenate(build, &[taken, zeros], 0)
}

/// `chosen[i]` for i below `count`, else `fill`.
fn filled(build: &mut CallBuilder, chosen: Value, count: Value, fill: Value) -> Result<Value, Diagnostic> {
    let len = build.ty(chosen).shape()[0];
    let number = build.emit1(Iota { ty: ArrayType::new(DType::I32, &[len]), axis: 0 }, &[])?;
    let count = broadcast(build, count, &[len])?;
    let is_there = build.emit1(Compare(CompareOp::Lt), &[number, count])?;
    let fill = broadcast(build, fill, &[len])?;
    build.emit1(Select, &[is_there, chosen, fill])
}

/// The number of true elements, i32.
fn count(build: &mut CallBuilder, mask: Value) -> Result<Value, Diagnostic> {
    let ones = cast(build, mask, DType::I32)?;
    reduce(build, ReduceOp::Sum, ones, &[0], false)
}

/// The place of each true element, in order, before the places of false ones.
fn nonzero(build: &mut CallBuilder, value: Value, size: usize, fill: Option<Arg>) -> Result<Term, Diagnostic> {
    let shape = build.ty(value).shape().to_vec();
    if shape.is_empty() {
        return Err(Diagnostic::error(Code::E0206, build.span(), "`nonzero` is not defined for a scalar"));
    }
    let mask = cast(build, value, DType::Bool)?;
    let flat = reshape(build, mask, &[shape.iter().product()])?;
    let absent = build.emit1(Unary(UnaryOp::Not), &[flat])?;
    let numbers = places(build, flat, 0)?;
    let order = LineOrder { keys: 1, axis: 0, descending: false, signed_zeros: false };
    let sorted = sort_together(build, &[absent, numbers], order)?[1];
    let chosen = first(build, sorted, size)?;
    let count = count(build, flat)?;
    let fills = fill.map(|arg| (arg.term, arg.span)).unwrap_or((Term::Int(0), build.span()));
    let mut results = Vec::new();
    let mut stride: usize = 1;
    for dim in (0..shape.len()).rev() {
        let constant = |build: &mut CallBuilder, number: usize| -> Result<Value, Diagnostic> {
            broadcast::filled(build, DType::I32, number.max(1) as u64, &[size])
        };
        let by = constant(build, stride)?;
        let quotient = build.emit1(Binary(BinaryOp::FloorDiv), &[chosen, by])?;
        let extent = constant(build, shape[dim])?;
        let index = build.emit1(Binary(BinaryOp::Rem), &[quotient, extent])?;
        stride *= shape[dim].max(1);
        let own = match fills.0.sequence() {
            Some(items) if items.len() == shape.len() => items[dim].clone(),
            Some(_) => {
                let message = format!("`fill_value` must hold one number for each of the {} dimensions", shape.len());
                return Err(Diagnostic::error(Code::E0205, fills.1, message));
            }
            None => fills.0.clone(),
        };
        let fill = build.materialize(&own, Some(DType::I32), fills.1)?;
        results.push(Term::Array(filled(build, index, count, fill)?));
    }
    results.reverse();
    Ok(Term::Tuple(results))
}

/// The sorted elements that differ from the one before, before all others. NaNs are equal.
fn unique(build: &mut CallBuilder, value: Value, size: usize, fill: Option<Arg>) -> Result<Term, Diagnostic> {
    let len = build.ty(value).array.len();
    let dtype = build.ty(value).dtype();
    let given = match fill {
        Some(arg) => {
            let fill = build.materialize(&arg.term, Some(dtype), arg.span)?;
            Some(cast(build, fill, dtype)?)
        }
        None => None,
    };
    if len == 0 {
        let fill = match given {
            Some(fill) => fill,
            None if size == 0 => build.emit1(Constant::scalar(dtype, 0), &[])?,
            None => {
                let message = "`unique` of an empty array has no element to fill the result with";
                let error = Diagnostic::error(Code::E0205, build.span(), message);
                return Err(error.help("pass a value, as in unique(x, size=3, fill_value=0)"));
            }
        };
        return broadcast(build, fill, &[size]).map(Term::Array);
    }
    let flat = reshape(build, value, &[len])?;
    let order = LineOrder { keys: 1, axis: 0, descending: false, signed_zeros: false };
    let sorted = sort_together(build, &[flat], order.clone())?[0];
    let before = slice_dim(build, sorted, 0, SliceRange::between(0, len - 1))?;
    let behind = slice_dim(build, sorted, 0, SliceRange::between(1, len))?;
    let mut repeats = build.emit1(Compare(CompareOp::Eq), &[behind, before])?;
    if dtype.is_float() {
        // Sorted NaNs are neighbours.
        let is_nan = build.emit1(Unary(UnaryOp::IsNan), &[before])?;
        repeats = build.emit1(Binary(BinaryOp::Or), &[repeats, is_nan])?;
    }
    let no = broadcast::filled(build, DType::Bool, 0, &[1])?;
    let repeats = concatenate(build, &[no, repeats], 0)?;
    let chosen = sort_together(build, &[repeats, sorted], order)?[1];
    let chosen = first(build, chosen, size)?;
    let is_first = build.emit1(Unary(UnaryOp::Not), &[repeats])?;
    let count = count(build, is_first)?;
    let fill = match given {
        Some(fill) => fill,
        None => {
            let smallest = slice_dim(build, sorted, 0, SliceRange::between(0, 1))?;
            reshape(build, smallest, &[])?
        }
    };
    Ok(Term::Array(filled(build, chosen, count, fill)?))
}
