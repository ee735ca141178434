//! The parameters that functions of windows share: strides, dilations and padding, and the statements that prepare
//! an array for its windows.

use crate::patches::patches;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::{Arg, as_ints};
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::too_large;
use spmdc_ir::call::term::{Term, whole_number};
use spmdc_ir::program::Value;
use spmdc_layout::patch::PatchDim;
use spmdc_layout::types::MAX_ELEMENTS;
use spmdc_ops::pad::Pad;
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::{SliceRange, slice_dim};

/// The windows along one dimension, as jax.lax describes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowDim {
    /// The number of elements of a window.
    pub size: usize,
    /// The distance between the first elements of neighbouring windows.
    pub stride: usize,
    /// The distance between neighbouring elements of a window.
    pub dilation: usize,
    /// The distance of the operand's elements after padding has been inserted between them.
    pub base_dilation: usize,
    /// The padding before and after the elements; negative where elements are left out.
    pub padding: (i64, i64),
}

impl WindowDim {
    /// Windows of one element, without padding.
    pub const ONE: WindowDim = WindowDim { size: 1, stride: 1, dilation: 1, base_dilation: 1, padding: (0, 0) };
}

/// The padding of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Padding {
    /// As much as gives one window for each `stride` elements; an odd element is put after the others, or before them if `lower`.
    Same {
        /// Whether an odd element is put before the others.
        lower: bool,
    },
    /// None.
    Valid,
    /// (before, after) for each dimension.
    Pairs(Vec<(i64, i64)>),
}

impl Padding {
    /// Reads `"SAME"`, `"SAME_LOWER"` or `"VALID"` in any case, a number for all sides, or for each of `rank` dimensions a number or
    /// a pair.
    pub fn of(arg: Option<Arg>, rank: usize, default: Padding) -> Result<Padding, Diagnostic> {
        let Some(Arg { term, span, .. }) = arg else { return Ok(default) };
        let unknown = |found: String| {
            let help =
                "pass \"SAME\", \"SAME_LOWER\", \"VALID\", a number, or a pair (before, after) for each dimension";
            Diagnostic::error(Code::E0225, span, format!("invalid `padding`: {found}")).help(help)
        };
        if let Term::Str(name) = &term {
            return match name.to_ascii_uppercase().as_str() {
                "SAME" => Ok(Padding::Same { lower: false }),
                "SAME_LOWER" => Ok(Padding::Same { lower: true }),
                "VALID" => Ok(Padding::Valid),
                _ => Err(unknown(format!("\"{name}\""))),
            };
        }
        let number = |term: &Term| {
            let width = whole_number(term).ok_or_else(|| unknown(term.describe().to_string()))?;
            if width.unsigned_abs() > MAX_ELEMENTS as u128 { Err(too_large(span)) } else { Ok(width as i64) }
        };
        let both = |term: &Term| number(term).map(|width| (width, width));
        let Some(items) = term.sequence() else { return both(&term).map(|pair| Padding::Pairs(vec![pair; rank])) };
        if items.len() != rank {
            let message = format!("`padding` has {} entries, but the windows have {rank} dimensions", items.len());
            return Err(Diagnostic::error(Code::E0205, span, message));
        }
        let pairs = items.iter().map(|item| match item.sequence() {
            Some([before, after]) => Ok((number(before)?, number(after)?)),
            Some(_) => Err(unknown("an entry is not a pair of numbers".to_string())),
            None => both(item),
        });
        Ok(Padding::Pairs(pairs.collect::<Result<_, _>>()?))
    }

    /// The padding of dimension number `at`, of `extent` elements, with these windows.
    pub fn pair(&self, at: usize, extent: usize, window: &WindowDim) -> (i64, i64) {
        match self {
            Padding::Valid => (0, 0),
            Padding::Pairs(pairs) => pairs[at],
            Padding::Same { lower } => {
                let windows = extent.div_ceil(window.stride);
                let span = PatchDim::span(window.size, window.dilation);
                let read = windows.checked_sub(1).map_or(0, |steps| steps * window.stride + span);
                let missing = read.saturating_sub(extent) as i64;
                let less = missing / 2;
                if *lower { (missing - less, less) } else { (less, missing - less) }
            }
        }
    }
}

/// Positive integers of parameter `name`, one for each of `rank` dimensions, or one for all; `default` if it is not given.
pub fn counts(args: &mut Args<'_>, name: &str, rank: usize, default: usize) -> Result<Vec<usize>, Diagnostic> {
    let Some(arg) = args.take(name) else { return Ok(vec![default; rank]) };
    let numbers = as_ints(&arg, name)?;
    let numbers = if arg.term.sequence().is_none() { vec![numbers[0]; rank] } else { numbers };
    if numbers.len() != rank {
        let message = format!("`{name}` has {} entries, but the windows have {rank} dimensions", numbers.len());
        return Err(Diagnostic::error(Code::E0205, arg.span, message));
    }
    let count = |&number: &i64| match usize::try_from(number) {
        Ok(0) | Err(_) => Err(Diagnostic::error(Code::E0225, arg.span, format!("`{name}` must be positive"))),
        Ok(number) if number > MAX_ELEMENTS => Err(too_large(arg.span)),
        Ok(number) => Ok(number),
    };
    numbers.iter().map(count).collect()
}

/// Checks that the windows are no larger than any array.
pub fn check_sizes(windows: &[WindowDim], span: Span) -> Result<(), Diagnostic> {
    let fits = |window: &WindowDim| {
        let reach = (window.size - 1).checked_mul(window.dilation);
        reach.is_some_and(|reach| reach < MAX_ELEMENTS)
    };
    if windows.iter().all(fits) { Ok(()) } else { Err(too_large(span)) }
}

/// The windows of an array, and the dimensions that have windows; the elements of the windows come before dimension `at`.
pub struct Windows {
    /// The array of windows.
    pub value: Value,
    /// The dimensions of the operand whose windows have a dimension of elements, in order.
    pub dims: Vec<usize>,
}

/// The windows of an array: `bits` is the padding.
pub fn windows(
    build: &mut CallBuilder,
    mut value: Value,
    windows: &[WindowDim],
    bits: u64,
    at: usize,
) -> Result<Windows, Diagnostic> {
    debug_assert_eq!(windows.len(), build.ty(value).rank(), "each dimension has its windows");
    for (dim, window) in windows.iter().enumerate() {
        value = dilated(build, value, dim, window.base_dilation, bits)?;
    }
    value = padded(build, value, windows, bits)?;
    if windows.iter().all(|window| window.size == 1) {
        for (dim, window) in windows.iter().enumerate() {
            let len = build.ty(value).shape()[dim].div_ceil(window.stride);
            let step = if len > 1 { window.stride as i64 } else { 1 };
            value = slice_dim(build, value, dim, SliceRange { start: 0, step, len })?;
        }
        return Ok(Windows { value, dims: Vec::new() });
    }
    // The padding of a dimension with windows is made together with them where the dimension is split.
    let plain = |window: &WindowDim| *window == WindowDim { dilation: window.dilation, ..WindowDim::ONE };
    let dims: Vec<usize> = (0..windows.len()).filter(|&dim| !plain(&windows[dim])).collect();
    let patched = dims.iter().map(|&dim| (dim, (windows[dim].size, windows[dim].stride, windows[dim].dilation)));
    let value = patches(build, value, &patched.collect::<Vec<_>>(), at)?;
    Ok(Windows { value, dims })
}

/// The array with `by - 1` elements of padding between the elements of a dimension.
fn dilated(build: &mut CallBuilder, value: Value, dim: usize, by: usize, bits: u64) -> Result<Value, Diagnostic> {
    let shape = build.ty(value).shape().to_vec();
    let size = shape[dim];
    if by == 1 || size <= 1 {
        return Ok(value);
    }
    let Some(whole) = size.checked_mul(by).filter(|&whole| whole <= MAX_ELEMENTS) else {
        return Err(too_large(build.span()));
    };
    let mut columns = shape.clone();
    columns.insert(dim + 1, 1);
    let value = reshape(build, value, &columns)?;
    let mut widths = vec![(0, 0); columns.len()];
    widths[dim + 1] = (0, by - 1);
    let value = build.emit1(Pad { widths, value: bits }, &[value])?;
    let mut joined = shape;
    joined[dim] = whole;
    let value = reshape(build, value, &joined)?;
    slice_dim(build, value, dim, SliceRange::between(0, whole - (by - 1)))
}

/// The array with the padding of its windows, whose bits are `bits`. E0205 if more elements are left out than there are.
pub fn padded(
    build: &mut CallBuilder,
    mut value: Value,
    windows: &[WindowDim],
    bits: u64,
) -> Result<Value, Diagnostic> {
    let mut widths = Vec::new();
    for (dim, window) in windows.iter().enumerate() {
        let (size, (before, after)) = (build.ty(value).shape()[dim], window.padding);
        let total = size as i64 + before + after;
        let Ok(total) = usize::try_from(total) else {
            let message = format!("the padding of dimension {dim} removes more elements than there are");
            return Err(Diagnostic::error(Code::E0205, build.span(), message));
        };
        let cut = |width: i64| usize::try_from(-width).unwrap_or(0).min(size);
        let kept = SliceRange::between(cut(before), size - cut(after));
        value = slice_dim(build, value, dim, kept)?;
        let before = if kept.len == 0 { total } else { usize::try_from(before).unwrap_or(0) };
        widths.push((before, total - before - kept.len));
    }
    if widths.iter().all(|&width| width == (0, 0)) {
        return Ok(value);
    }
    build.emit1(Pad { widths, value: bits }, &[value])
}
