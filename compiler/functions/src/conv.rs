//! `conv`, `conv_transpose` and `convolve`: padding, [`Patches`](spmdc_window_ops::patches::Patches), and one product over the elements of the
//! windows and the channels.
//!
//! ```text
//! conv(x, w), x: f32[N,H,W,C], w: f32[3,3,C,O]       einsum("nabxyi,xyio->nabo", windows of x, w)
//! ```
//!
//! So the layouts follow the rules of windows and products: batches and output channels pass, split input channels leave partial sums, and
//! along split spatial dimensions devices fetch the rows that their windows read.

use spmdc_einsum_ops::contract::{Out, contract};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{requires, undefined};
use spmdc_grammar::span::Span;
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::unknown_value;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_layout::types::DType;
use spmdc_ops::flip::Flip;
use spmdc_ops::promote;
use spmdc_ops::reshape::reshape;
use spmdc_ops::transpose::transpose;
use spmdc_window_ops::windowed::{Padding, WindowDim, check_sizes, counts, windows};

/// The calls of convolutions.
pub struct Convolutions;

/// The operands of a convolution, of one element type: dimensions are batch, space, channels, and space, input, output channels.
fn operands(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<(Value, Value), Diagnostic> {
    let (x, w) = (args.required("x")?, args.required("w")?);
    let values = promote::promoted(build, &[(&x.term, x.span), (&w.term, w.span)])?;
    let (x, w) = (values[0], values[1]);
    let (tx, tw) = (build.ty(x).array.clone(), build.ty(w).array.clone());
    if matches!(tx.dtype, DType::Bool | DType::Key) {
        let message = undefined(format_args!("`{}`", args.function), tx.dtype.name());
        return Err(Diagnostic::error(Code::E0215, args.span, message));
    }
    if !(3..=5).contains(&tx.rank()) || tx.rank() != tw.rank() {
        let message = requires(
            format_args!("`{}`", args.function),
            "two operands with the same number of dimensions, from 3 to 5",
            format_args!("{tx} and {tw}"),
        );
        return Err(Diagnostic::error(Code::E0205, args.span, message)
            .help("an image is f32[batch, height, width, channels], its kernel f32[height, width, inputs, outputs]"));
    }
    if tw.shape[..tw.rank() - 2].contains(&0) {
        let message = format!("the kernel of `{}` is empty: {tw}", args.function);
        return Err(Diagnostic::error(Code::E0205, args.span, message));
    }
    Ok((x, w))
}

/// Rejects a number of input channels that does not match the operand.
fn check_channels(
    build: &CallBuilder,
    (x, w): (Value, Value),
    groups: usize,
    (function, span): (&str, Span),
) -> Result<(), Diagnostic> {
    let (tx, tw) = (&build.ty(x).array, &build.ty(w).array);
    let rank = tx.rank();
    let (channels, inputs, outputs) = (tx.shape[rank - 1], tw.shape[rank - 2], tw.shape[rank - 1]);
    if inputs.checked_mul(groups) != Some(channels) {
        let of_each = if groups == 1 { String::new() } else { format!(" in each of {groups} groups") };
        let message = format!(
            "the kernel {tw} of `{function}` takes {inputs} channels{of_each}, but the input {tx} has {channels} channels"
        );
        return Err(Diagnostic::error(Code::E0205, span, message));
    }
    if !outputs.is_multiple_of(groups) {
        let message = format!("`{function}` cannot divide {outputs} output channels into {groups} groups");
        return Err(Diagnostic::error(Code::E0205, span, message));
    }
    Ok(())
}

/// The convolution of an array with a kernel whose channels fit; `space` are the windows of the spatial dimensions.
fn convolved(
    build: &mut CallBuilder,
    (x, mut w): (Value, Value),
    space: &[WindowDim],
    groups: usize,
) -> Result<Value, Diagnostic> {
    let rank = build.ty(x).rank();
    let mut dims = vec![WindowDim::ONE; rank];
    dims[1..rank - 1].copy_from_slice(space);
    let found = windows(build, x, &dims, 0, rank - 1)?;
    let mut x = found.value;
    let (mut tx, tw) = (build.ty(x).shape().to_vec(), build.ty(w).shape().to_vec());
    let (inputs, outputs) = (tw[rank - 2], tw[rank - 1] / groups);
    // Letters: n for the batch, a, b, c for space, x, y, z for the elements of windows, g, i and o for groups and channels. Dimensions
    // of one element would only hinder the loops.
    let spatial: Vec<char> = ('a'..).take(rank - 2).collect();
    let elements: Vec<char> = found.dims.iter().map(|&dim| char::from(b'x' + dim as u8 - 1)).collect();
    let channels: Vec<(char, usize)> =
        [('g', groups), ('i', inputs)].into_iter().filter(|&(_, size)| size != 1).collect();
    let kernel: Vec<(char, usize)> =
        [('i', inputs), ('g', groups), ('o', outputs)].into_iter().filter(|&(_, size)| size != 1).collect();
    tx.pop();
    tx.extend(channels.iter().map(|(_, size)| size));
    x = reshape(build, x, &tx)?;
    let mut shape: Vec<usize> = found.dims.iter().map(|&dim| tw[dim - 1]).collect();
    shape.extend(kernel.iter().map(|(_, size)| size));
    w = reshape(build, w, &shape)?;
    let letters = |channels: &[(char, usize)]| channels.iter().map(|(letter, _)| *letter).collect::<Vec<char>>();
    let labels = [&['n'], spatial.as_slice(), &elements, &letters(&channels)].concat();
    let kernel_labels = [elements.as_slice(), &letters(&kernel)].concat();
    let kept: Vec<char> = letters(&kernel).into_iter().filter(|&letter| letter != 'i').collect();
    let output = [&['n'], spatial.as_slice(), &kept].concat();
    let value = contract(build, vec![(x, labels), (w, kernel_labels)], &output, &Out::default())?;
    let mut result = build.ty(value).shape()[..rank - 1].to_vec();
    result.push(groups * outputs);
    reshape(build, value, &result)
}

fn conv(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let (x, w) = operands(args, build)?;
    let groups = args.optional_int("groups")?.unwrap_or(1);
    let groups = usize::try_from(groups)
        .ok()
        .filter(|&groups| groups > 0)
        .ok_or_else(|| Diagnostic::error(Code::E0225, args.span, "`groups` must be positive".to_string()))?;
    check_channels(build, (x, w), groups, (args.function, args.span))?;
    let (tx, tw) = (build.ty(x).shape().to_vec(), build.ty(w).shape().to_vec());
    let rank = tx.len() - 2;
    let strides = counts(args, "stride", rank, 1)?;
    let dilations = counts(args, "dilation", rank, 1)?;
    let base = counts(args, "input_dilation", rank, 1)?;
    let padding = Padding::of(args.take("padding"), rank, Padding::Same { lower: false })?;
    if matches!(padding, Padding::Same { .. }) && base.iter().any(|&base| base > 1) {
        let message = "`padding` of `conv` must be given as numbers if there is an `input_dilation`";
        return Err(Diagnostic::error(Code::E0225, args.span, message)
            .help("`conv_transpose` computes the padding of a transposed convolution"));
    }
    let mut space: Vec<WindowDim> = (0..rank)
        .map(|at| WindowDim {
            size: tw[at],
            stride: strides[at],
            dilation: dilations[at],
            base_dilation: base[at],
            padding: (0, 0),
        })
        .collect();
    check_sizes(&space, args.span)?;
    for (at, dim) in space.iter_mut().enumerate() {
        dim.padding = padding.pair(at, tx[at + 1], dim);
    }
    convolved(build, (x, w), &space, groups)
}

/// The padding of one dimension of a transposed convolution, as jax.lax computes it: `span` is the extent of the dilated kernel.
pub fn transposed_padding(padding: &Padding, at: usize, span: usize, stride: usize) -> (i64, i64) {
    let (span, stride) = (span as i64, stride as i64);
    match padding {
        Padding::Pairs(pairs) => pairs[at],
        Padding::Same { .. } => {
            let all = span + stride - 2;
            let before = if stride > span - 1 { span - 1 } else { all - all / 2 };
            (before, all - before)
        }
        Padding::Valid => {
            let all = span + stride - 2 + (span - stride).max(0);
            (span - 1, all - (span - 1))
        }
    }
}

fn conv_transpose(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let (x, mut w) = operands(args, build)?;
    let rank = build.ty(x).rank() - 2;
    if args.optional_bool("transpose_kernel")?.unwrap_or(false) {
        w = build.emit1(Flip { axes: (0..rank).collect() }, &[w])?;
        let mut order: Vec<usize> = (0..rank).collect();
        order.extend([rank + 1, rank]);
        w = transpose(build, w, &order)?;
    }
    check_channels(build, (x, w), 1, (args.function, args.span))?;
    let strides = counts(args, "stride", rank, 1)?;
    let dilations = counts(args, "dilation", rank, 1)?;
    let padding = Padding::of(args.take("padding"), rank, Padding::Same { lower: false })?;
    let sizes = build.ty(w).shape().to_vec();
    let mut space: Vec<WindowDim> = (0..rank)
        .map(|at| WindowDim { size: sizes[at], dilation: dilations[at], base_dilation: strides[at], ..WindowDim::ONE })
        .collect();
    check_sizes(&space, args.span)?;
    for (at, dim) in space.iter_mut().enumerate() {
        let span = (dim.size - 1) * dim.dilation + 1;
        dim.padding = transposed_padding(&padding, at, span, strides[at]);
    }
    convolved(build, (x, w), &space, 1)
}

/// `convolve(a, v)` of vectors, as in NumPy: the shorter one is reversed and moved along the longer one.
fn convolve(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Value, Diagnostic> {
    let (a, v) = (args.required("a")?, args.required("v")?);
    let operands = [(&a.term, a.span), (&v.term, v.span)];
    let dtype = promote::inexact(promote::common_dtype(build, &operands)?);
    let a = promote::to_dtype(build, operands[0], dtype)?;
    let v = promote::to_dtype(build, operands[1], dtype)?;
    let vector = |value: Value, build: &CallBuilder| match *build.ty(value).shape() {
        [size] if size > 0 => Some(size),
        _ => None,
    };
    let (Some(n), Some(m)) = (vector(a, build), vector(v, build)) else {
        let message = requires(
            "`convolve`",
            "two nonempty vectors",
            format_args!("{} and {}", build.ty(a).array, build.ty(v).array),
        );
        return Err(Diagnostic::error(Code::E0205, args.span, message).help("`conv` convolves images"));
    };
    let (long, short, size) = if n < m { (v, a, n) } else { (a, v, m) };
    let mode = args.take("mode");
    let mode = mode.map_or((Term::Str("full".to_string()), args.span), |arg| (arg.term, arg.span));
    let padding = match &mode {
        (Term::Str(name), _) if name == "full" => (size - 1, size - 1),
        (Term::Str(name), _) if name == "same" => (size / 2, size - size / 2 - 1),
        (Term::Str(name), _) if name == "valid" => (0, 0),
        (other, span) => return Err(unknown_value("mode", &["full", "same", "valid"], other, *span)),
    };
    let short = build.emit1(Flip { axes: vec![0] }, &[short])?;
    let dim = WindowDim { size, padding: (padding.0 as i64, padding.1 as i64), ..WindowDim::ONE };
    let found = windows(build, long, &[dim], 0, 1)?;
    let (labels, kernel) = if found.dims.is_empty() { (vec!['i'], Vec::new()) } else { (vec!['i', 'k'], vec!['k']) };
    let shape: Vec<usize> = kernel.iter().map(|_| size).collect();
    let short = reshape(build, short, &shape)?;
    contract(build, vec![(found.value, labels), (short, kernel)], &['i'], &Out::default())
}

impl Call for Convolutions {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The convolution of images: dimensions are batch, space, channels for `x`, and space, inputs, outputs for `w`; `groups` divide the channels.
        conv(x: Array, w: Array, stride: Ints = 1, padding: Of("\"SAME\", \"VALID\", int, or int or pair for each dimension") = "SAME",
            dilation: Ints = 1, groups: Int = 1, input_dilation: Ints = 1),
            Numbers, Products(x, w), "(x: f32[1, 4, 6, 2], w: f32[3, 3, 2, 4]) { conv(x, w) }";
        /// The transposed convolution: `stride` is the distance between elements of `x` in the result, so images become larger.
        conv_transpose(x: Array, w: Array, stride: Ints = 1, padding: Of("\"SAME\", \"VALID\", int, or int or pair for each dimension") = "SAME",
            dilation: Ints = 1, transpose_kernel: Bool = false),
            Numbers, Products(x, w), "(x: f32[1, 2, 3, 2], w: f32[3, 3, 2, 4]) { conv_transpose(x, w, stride=2) }";
        /// The convolution of two vectors: the sums of products with the shorter one, reversed, at each position of the longer one.
        convolve(a: Array, v: Array, mode: String = "full"), NumbersAndBools, Products(a, v), "(a: f32[8], v: f32[3]) { convolve(a, v) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = match name {
            "conv_transpose" => conv_transpose(args, build)?,
            "convolve" => convolve(args, build)?,
            _ => conv(args, build)?,
        };
        Ok(Term::Array(value))
    }
}
