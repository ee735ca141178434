//! `max_pool` and `avg_pool`: reductions over windows of batches of images, as [`reduce_window`](crate::reduce_window) makes them.

use crate::reduce_window::reduced;
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{requires, undefined};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::types::DType;
use spmdc_ops::broadcast::filled;
use spmdc_ops::cast::cast;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::promote;
use spmdc_ops::reshape::reshape;
use spmdc_window_ops::windowed::{Padding, WindowDim, check_sizes, counts};

/// The calls of pools.
pub struct Pools;

impl Call for Pools {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The largest element of each window, per channel: dimensions are batch, space, channels.
        max_pool(x: Array, window_shape: Ints, strides: Ints = None, padding: Of("\"SAME\", \"VALID\", int, or int or pair for each dimension") = "VALID", [named] stride: Ints = None),
            NumbersAndBools, Refused(ORDER), "(x: f32[1, 4, 6, 2]) { max_pool(x, (2, 2), strides=(2, 2)) }";
        /// The mean of each window, per channel; `count_include_pad=false` leaves padding out of it.
        avg_pool(x: Array, window_shape: Ints, strides: Ints = None, padding: Of("\"SAME\", \"VALID\", int, or int or pair for each dimension") = "VALID",
            count_include_pad: Bool = true, [named] stride: Ints = None),
            NumbersAndBools, Planes(x), "(x: f32[1, 4, 6, 2]) { avg_pool(x, (2, 2), strides=(2, 2)) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = if name == "max_pool" { max_pool(args, build)? } else { avg_pool(args, build)? };
        Ok(Term::Array(value))
    }
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
