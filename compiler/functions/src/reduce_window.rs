//! `reduce_window`: reductions over windows, as padding, [`Patches`](spmdc_window_ops::patches::Patches) and a reduction over the elements of the windows.
//!
//! Any associative function of the program may combine the elements of each window. Then the elements of all windows are along a first
//! dimension. Neighbours are combined pairwise, so the number of applications of the function is logarithmic in the elements of a window,
//! each for one pair of every window. Padding is left out: a mask accompanies the elements, and if one side is padding, the other side is
//! the result.

use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, must_return, undefined, unknown};
use spmdc_grammar::span::Span;
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::expand::{Expand, Expanded, Expander};
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_kernel::number;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::types::DType;
use spmdc_ops::broadcast::{broadcast, filled};
use spmdc_ops::cast::cast;
use spmdc_ops::constant::filling_bits;
use spmdc_ops::elementwise::{Binary, Select};
use spmdc_ops::reduce::reduce;
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::{SliceRange, slice_dim};
use spmdc_window_ops::windowed::{Padding, WindowDim, check_sizes, counts, windows};

/// The calls of `reduce_window`.
pub struct ReduceWindow;

impl Call for ReduceWindow {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The reduction of each window by `"add"`, `"mul"`, `"max"`, `"min"`, `"and"`, `"or"` or an associative function; `init` comes first.
        reduce_window(x: Array, init: Of("number or None"), computation: Of("name or function"), window_dimensions: Ints, window_strides: Ints = None,
            padding: Of("\"SAME\", \"VALID\", int, or int or pair for each dimension") = "VALID", base_dilation: Ints = None, window_dilation: Ints = None),
            NumbersAndBools, Refused("reduce the planes `real(z)` and `imag(z)`"), "(x: f32[4, 6]) { reduce_window(x, None, \"max\", (2, 3)) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        reduce_window(args, build).map(Term::Array)
    }
}

impl Expand for ReduceWindow {
    const SIGNATURES: &'static [Signature] = <ReduceWindow as Call>::SIGNATURES;

    fn expand(_: &str, args: &mut Args<'_>, checker: &mut dyn Expander) -> Expanded<Term> {
        reduce_by_function(args, checker).map(Term::Array)
    }
}

/// Some elements of each window, along the first dimension, and a mask of the elements that are not padding; without a mask, none are
/// padding.
#[derive(Clone, Copy)]
struct WindowElements {
    value: Value,
    exist: Option<Value>,
}

/// The names of the computations of `reduce_window`, as in jax.lax.
const COMPUTATIONS: [(&str, ReduceOp, BinaryOp); 6] = [
    ("add", ReduceOp::Sum, BinaryOp::Add),
    ("mul", ReduceOp::Product, BinaryOp::Mul),
    ("max", ReduceOp::Max, BinaryOp::Maximum),
    ("min", ReduceOp::Min, BinaryOp::Minimum),
    ("and", ReduceOp::And, BinaryOp::And),
    ("or", ReduceOp::Or, BinaryOp::Or),
];

/// The reduction of each window, in the element type of the operand. Padding changes no result.
pub fn reduced(build: &mut CallBuilder, op: ReduceOp, value: Value, dims: &[WindowDim]) -> Result<Value, Diagnostic> {
    let (dtype, rank) = (build.ty(value).dtype(), build.ty(value).rank());
    let found = windows(build, value, dims, number::identity_element(op, dtype), rank)?;
    let elements: Vec<usize> = (rank..rank + found.dims.len()).collect();
    let value = reduce(build, op, found.value, &elements, false)?;
    cast(build, value, dtype)
}

/// The windows of a call of `reduce_window` over an array of this shape.
fn window_dims(args: &mut Args<'_>, shape: &[usize]) -> Result<Vec<WindowDim>, Diagnostic> {
    let rank = shape.len();
    let sizes = counts(args, "window_dimensions", rank, 1)?;
    let strides = counts(args, "window_strides", rank, 1)?;
    let base = counts(args, "base_dilation", rank, 1)?;
    let dilations = counts(args, "window_dilation", rank, 1)?;
    let padding = Padding::of(args.take("padding"), rank, Padding::Valid)?;
    let mut dims: Vec<WindowDim> = (0..rank)
        .map(|at| WindowDim {
            size: sizes[at],
            stride: strides[at],
            dilation: dilations[at],
            base_dilation: base[at],
            padding: (0, 0),
        })
        .collect();
    check_sizes(&dims, args.span)?;
    for (at, dim) in dims.iter_mut().enumerate() {
        dim.padding = padding.pair(at, shape[at], dim);
    }
    Ok(dims)
}

/// The elements of each window along a first dimension, in their order; `bits` is the padding.
fn elements_first(build: &mut CallBuilder, value: Value, dims: &[WindowDim], bits: u64) -> Result<Value, Diagnostic> {
    let found = windows(build, value, dims, bits, 0)?;
    let shape = build.ty(found.value).shape().to_vec();
    let (elements, rest) = shape.split_at(found.dims.len());
    debug_assert_eq!(rest.len(), dims.len(), "a window for each place");
    reshape(build, found.value, &[&[elements.iter().product()], rest].concat())
}

fn reduce_window(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let value = args.array(build, "x")?;
    let (shape, dtype) = (build.ty(value).shape().to_vec(), build.ty(value).dtype());
    let init = args.required("init")?;
    let span = args.peek("computation").map_or(args.span, |arg| arg.span);
    let name = args.string("computation")?;
    let Some(&(_, op, by)) = COMPUTATIONS.iter().find(|(known, ..)| *known == name) else {
        let message = unknown(format_args!("computation \"{name}\" of"), "reduce_window");
        return Err(Diagnostic::error(Code::E0225, span, message).help(known_computations()));
    };
    let defined = match op {
        ReduceOp::Sum | ReduceOp::Product => dtype.is_integer() || dtype.is_float(),
        ReduceOp::Max | ReduceOp::Min => dtype != DType::Key,
        ReduceOp::And | ReduceOp::Or => dtype == DType::Bool,
    };
    if !defined {
        let message = undefined(format_args!("`reduce_window` by \"{name}\""), dtype.name());
        return Err(Diagnostic::error(Code::E0215, args.span, message));
    }
    let dims = window_dims(args, &shape)?;
    let identity = number::identity_element(op, dtype);
    let is_none = matches!(init.term, Term::Nothing);
    let bits = if is_none { identity } else { filling_bits(&init.term, dtype, init.span)? };
    let value = reduced(build, op, value, &dims)?;
    if bits == identity {
        return Ok(value);
    }
    let result = build.ty(value).shape().to_vec();
    let first = filled(build, dtype, bits, &result)?;
    build.emit1(Binary(by), &[first, value])
}

fn known_computations() -> String {
    let names: Vec<String> = COMPUTATIONS.iter().map(|(name, ..)| format!("\"{name}\"")).collect();
    format!("the computations are {}, or a function of two elements", names.join(", "))
}

/// The reduction by a function of the program.
fn reduce_by_function(args: &mut Args<'_>, checker: &mut dyn Expander) -> Expanded<Value> {
    let span = args.span;
    let value = args.array(checker.build_mut(), "x")?;
    let (init, computation) = (args.required("init")?, args.required("computation")?);
    let (shape, dtype) = (checker.build().ty(value).shape().to_vec(), checker.build().ty(value).dtype());
    let dims = window_dims(args, &shape)?;
    let is_padded = dims.iter().any(|dim| dim.padding != (0, 0) || dim.base_dilation > 1);
    let whole = elements_first(checker.build_mut(), value, &dims, 0)?;
    let exist = if is_padded {
        let all = filled(checker.build_mut(), DType::Bool, 1, &shape)?;
        Some(elements_first(checker.build_mut(), all, &dims, 0)?)
    } else {
        None
    };
    let mut all = WindowElements { value: whole, exist };
    // An element without a partner follows all pairs of its level, and precedes the elements left over at earlier levels.
    let mut tail: Option<WindowElements> = None;
    let mut len = checker.build().ty(whole).shape()[0];
    while len > 1 {
        if len % 2 == 1 {
            let last = window_part(checker, all, len - 1, 1, 1)?;
            tail = Some(match tail {
                None => last,
                Some(tail) => combine_elements(checker, &computation, last, tail, span)?,
            });
        }
        let (first, second) = (window_part(checker, all, 0, 2, len / 2)?, window_part(checker, all, 1, 2, len / 2)?);
        all = combine_elements(checker, &computation, first, second, span)?;
        len /= 2;
    }
    debug_assert_eq!(checker.build().ty(all.value).shape()[0], 1, "windows have an element at least");
    if let Some(tail) = tail {
        all = combine_elements(checker, &computation, all, tail, span)?;
    }
    if !matches!(init.term, Term::Nothing) {
        let init = checker.build_mut().materialize(&init.term, Some(dtype), init.span)?;
        if checker.build().ty(init).rank() > 0 {
            let found = checker.build().display_closed(checker.build().ty(init));
            let message = must_be("`init`", "a scalar", format_args!("`{found}`"));
            return Err(Some(Diagnostic::error(Code::E0205, span, message)));
        }
        let init = cast(checker.build_mut(), init, dtype)?;
        let like = checker.build().ty(all.value).shape().to_vec();
        let first = broadcast(checker.build_mut(), init, &like)?;
        all = combine_elements(checker, &computation, WindowElements { value: first, exist: None }, all, span)?;
    }
    let result = checker.build().ty(all.value).shape()[1..].to_vec();
    Ok(reshape(checker.build_mut(), all.value, &result)?)
}

/// `len` elements of each window, `step` apart.
fn window_part(
    checker: &mut dyn Expander,
    all: WindowElements,
    start: usize,
    step: i64,
    len: usize,
) -> Expanded<WindowElements> {
    let range = SliceRange { start, step: if len == 1 { 1 } else { step }, len };
    let value = slice_dim(checker.build_mut(), all.value, 0, range)?;
    let exist = all.exist.map(|exist| slice_dim(checker.build_mut(), exist, 0, range)).transpose()?;
    Ok(WindowElements { value, exist })
}

/// The function's results for pairs of elements, which must be like its operands.
fn combine_elements(
    checker: &mut dyn Expander,
    function: &Arg,
    before: WindowElements,
    after: WindowElements,
    span: Span,
) -> Expanded<WindowElements> {
    let given = [before, after].map(|side| Arg { name: None, term: Term::Array(side.value), span });
    let term = checker.call(function, given.to_vec(), span);
    checker.build_mut().set_span(span);
    if term.is_poisoned() {
        return Err(None);
    }
    let expected = checker.build().ty(before.value).array.clone();
    let both = if let Term::Array(both) = term
        && checker.build().ty(both).array == expected
    {
        both
    } else {
        let (taken, given) = (checker.display(&Term::Array(before.value)), checker.display(&term));
        let message =
            must_return("the function of `reduce_window`", format_args!("`{taken}`"), format_args!("`{given}`"));
        let error = Diagnostic::error(Code::E0203, function.span, message);
        return Err(Some(error.help("it combines two elements, and must return an element of the same type")));
    };
    let build = checker.build_mut();
    let (value, exist) = match (before.exist, after.exist) {
        (None, None) => (both, None),
        (Some(mask), None) => (build.emit1(Select, &[mask, both, after.value])?, None),
        (None, Some(mask)) => (build.emit1(Select, &[mask, both, before.value])?, None),
        (Some(first), Some(second)) => {
            let one = build.emit1(Select, &[first, before.value, after.value])?;
            let are_both = build.emit1(Binary(BinaryOp::And), &[first, second])?;
            let value = build.emit1(Select, &[are_both, both, one])?;
            (value, Some(build.emit1(Binary(BinaryOp::Or), &[first, second])?))
        }
    };
    Ok(WindowElements { value, exist })
}
