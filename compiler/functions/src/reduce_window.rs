//! `reduce_window`, `max_pool` and `avg_pool`: reductions over windows, as padding, [`Patches`](spmdc_window_ops::patches::Patches) and a
//! reduction over the elements of the windows.

use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{requires, undefined, unknown};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_kernel::number;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::types::DType;
use spmdc_ops::broadcast::filled;
use spmdc_ops::cast::cast;
use spmdc_ops::constant::{Constant, filling_bits};
use spmdc_ops::elementwise::Binary;
use spmdc_ops::promote;
use spmdc_ops::reduce::reduce;
use spmdc_ops::reshape::reshape;
use spmdc_window_ops::windowed::{Padding, WindowDim, check_sizes, counts, windows};

/// The calls of reductions over windows.
pub struct WindowReductions;

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
fn reduced(build: &mut CallBuilder, op: ReduceOp, value: Value, dims: &[WindowDim]) -> Result<Value, Diagnostic> {
    let (dtype, rank) = (build.ty(value).dtype(), build.ty(value).rank());
    let found = windows(build, value, dims, number::identity_element(op, dtype), rank)?;
    let elements: Vec<usize> = (rank..rank + found.dims.len()).collect();
    let value = reduce(build, op, found.value, &elements, false)?;
    cast(build, value, dtype)
}

/// The windows of a call of `reduce_window` over an array of this shape.
pub fn window_dims(args: &mut Args<'_>, shape: &[usize]) -> Result<Vec<WindowDim>, Diagnostic> {
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
pub fn elements_first(
    build: &mut CallBuilder,
    value: Value,
    dims: &[WindowDim],
    bits: u64,
) -> Result<Value, Diagnostic> {
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

/// The windows of a pool: all dimensions except the batch and the channels, which are the first dimensions and the last one.
fn pool_dims(args: &mut Args<'_>, (shape, dtype): (&[usize], DType)) -> Result<Vec<WindowDim>, Diagnostic> {
    if dtype == DType::Key {
        let message = undefined(format_args!("`{}`", args.function), "key");
        return Err(Diagnostic::error(Code::E0215, args.span, message));
    }
    let given = args.peek("window_shape").and_then(|arg| arg.term.sequence().map(<[Term]>::len));
    let spatial = given.unwrap_or(shape.len().saturating_sub(2));
    let Some(first) = shape.len().checked_sub(spatial + 1).filter(|_| spatial > 0) else {
        let message = requires(
            format_args!("`{}`", args.function),
            format_args!("two dimensions more than the {spatial} of its windows"),
            shape.len(),
        );
        return Err(Diagnostic::error(Code::E0205, args.span, message)
            .help("the first dimension of the array is its batch, and the last one its channels"));
    };
    let sizes = counts(args, "window_shape", spatial, 1)?;
    // `stride` as in `conv`, `strides` as in flax.
    let name = if args.peek("stride").is_some() { "stride" } else { "strides" };
    let strides = counts(args, name, spatial, 1)?;
    let padding = Padding::of(args.take("padding"), spatial, Padding::Valid)?;
    let mut dims = vec![WindowDim::ONE; shape.len()];
    for at in 0..spatial {
        dims[first + at] = WindowDim { size: sizes[at], stride: strides[at], ..WindowDim::ONE };
    }
    check_sizes(&dims, args.span)?;
    for at in 0..spatial {
        dims[first + at].padding = padding.pair(at, shape[first + at], &dims[first + at]);
    }
    Ok(dims)
}

/// The number of elements in each window without padding, as an array that broadcasts to the pool; float or integer as `dtype`.
fn elements(build: &mut CallBuilder, shape: &[usize], dims: &[WindowDim], dtype: DType) -> Result<Value, Diagnostic> {
    let plain: usize = dims.iter().filter(|dim| dim.padding == (0, 0)).map(|dim| dim.size).product();
    let one = build.emit1(Constant::scalar(dtype, count_bits(dtype, plain)), &[])?;
    let mut product = one;
    for (at, dim) in dims.iter().enumerate().filter(|(_, dim)| dim.padding != (0, 0)) {
        let ones = filled(build, dtype, count_bits(dtype, 1), &[shape[at]])?;
        let counted = reduced(build, ReduceOp::Sum, ones, std::slice::from_ref(dim))?;
        // Leading dimensions of size 1 follow from broadcasting.
        let mut column = vec![1; dims.len() - at];
        column[0] = build.ty(counted).shape()[0];
        let counted = reshape(build, counted, &column)?;
        product = if product == one && plain == 1 {
            counted
        } else {
            build.emit1(Binary(BinaryOp::Mul), &[product, counted])?
        };
    }
    Ok(product)
}

fn count_bits(dtype: DType, count: usize) -> u64 {
    if dtype.is_float() { dtype.narrow(count as f64) } else { count as u64 }
}

fn avg_pool(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let value = args.array(build, "x")?;
    let counts_padding = args.optional_bool("count_include_pad")?.unwrap_or(true);
    let shape = build.ty(value).shape().to_vec();
    let dims = pool_dims(args, (&shape, build.ty(value).dtype()))?;
    // The mean of numbers below 32 bits is rounded once.
    let result = promote::inexact(build.ty(value).dtype());
    let wide = if result.size() < 4 { DType::F32 } else { result };
    let value = cast(build, value, wide)?;
    let sum = reduced(build, ReduceOp::Sum, value, &dims)?;
    let count = if counts_padding || dims.iter().all(|dim| dim.padding == (0, 0)) {
        let all: usize = dims.iter().map(|dim| dim.size).product();
        build.emit1(Constant::scalar(wide, count_bits(wide, all)), &[])?
    } else {
        elements(build, &shape, &dims, wide)?
    };
    let mean = build.emit1(Binary(BinaryOp::Div), &[sum, count])?;
    cast(build, mean, result)
}

fn max_pool(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let value = args.array(build, "x")?;
    let shape = build.ty(value).shape().to_vec();
    let dims = pool_dims(args, (&shape, build.ty(value).dtype()))?;
    reduced(build, ReduceOp::Max, value, &dims)
}

impl Call for WindowReductions {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The reduction of each window by `"add"`, `"mul"`, `"max"`, `"min"`, `"and"`, `"or"` or an associative function; `init` comes first.
        reduce_window(x: Array, init: Of("number or None"), computation: Of("name or function"), window_dimensions: Ints, window_strides: Ints = None,
            padding: Of("\"SAME\", \"VALID\", int, or int or pair for each dimension") = "VALID", base_dilation: Ints = None, window_dilation: Ints = None),
            NumbersAndBools, Refused("reduce the planes `real(z)` and `imag(z)`"), "(x: f32[4, 6]) { reduce_window(x, None, \"max\", (2, 3)) }";
        /// The largest element of each window, per channel: dimensions are batch, space, channels.
        max_pool(x: Array, window_shape: Ints, strides: Ints = None, padding: Of("\"SAME\", \"VALID\", int, or int or pair for each dimension") = "VALID", [named] stride: Ints = None),
            NumbersAndBools, Refused(ORDER), "(x: f32[1, 4, 6, 2]) { max_pool(x, (2, 2), strides=(2, 2)) }";
        /// The mean of each window, per channel; `count_include_pad=false` leaves padding out of it.
        avg_pool(x: Array, window_shape: Ints, strides: Ints = None, padding: Of("\"SAME\", \"VALID\", int, or int or pair for each dimension") = "VALID",
            count_include_pad: Bool = true, [named] stride: Ints = None),
            NumbersAndBools, Planes(x), "(x: f32[1, 4, 6, 2]) { avg_pool(x, (2, 2), strides=(2, 2)) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = match name {
            "max_pool" => max_pool(args, build)?,
            "avg_pool" => avg_pool(args, build)?,
            _ => reduce_window(args, build)?,
        };
        Ok(Term::Array(value))
    }
}
