//! Checks of shapes and axes, and their messages, common to all ops.

use crate::mismatch::Mismatch;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_layout::types::MAX_ELEMENTS;

/// NumPy's broadcasting: shapes align at the end, and a dimension of size 1 stretches.
///
/// ```
/// use spmdc_ir::shape::broadcast;
/// assert_eq!(broadcast(&[&[4, 1], &[3]]).map_err(|e| e.message), Ok(vec![4, 3]));
/// ```
pub fn broadcast(shapes: &[&[usize]]) -> Result<Vec<usize>, Mismatch> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut result = vec![1; rank];
    for shape in shapes {
        for (at, &size) in result[rank - shape.len()..].iter_mut().zip(*shape) {
            if *at == 1 {
                *at = size;
            } else if size != 1 && size != *at {
                let list: Vec<String> = shapes.iter().map(|shape| display(shape)).collect();
                let message = format!("shapes {} do not broadcast", list.join(" and "));
                let help = "counted from the last dimension, two sizes must be equal, or one of them must be 1";
                return Err(Mismatch::new(Code::E0204, message).help(help));
            }
        }
    }
    Ok(result)
}

/// The number of elements of an array of this shape; None if it exceeds the maximum.
pub fn elements(shape: &[usize]) -> Option<usize> {
    let product = shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size));
    product.filter(|&elements| elements <= MAX_ELEMENTS)
}

/// `[4,8]`
pub fn display(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("[{}]", sizes.join(","))
}

/// `(0, 1)`, the format of attributes; one entry keeps its comma.
pub fn tuple<T: std::fmt::Display>(items: &[T]) -> String {
    match items {
        [one] => format!("({one},)"),
        _ => format!("({})", items.iter().map(T::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// A dimension counted from the front; negative ones count from the back.
pub fn axis(axis: i64, rank: usize, span: Span) -> Result<usize, Diagnostic> {
    let from_front = if axis < 0 { axis + rank as i64 } else { axis };
    if (0..rank as i64).contains(&from_front) {
        return Ok(from_front as usize);
    }
    let message = match rank {
        0 => format!("axis {axis} is out of range: a scalar has no dimensions"),
        1 => format!("axis {axis} is out of range for an array with 1 dimension"),
        _ => format!("axis {axis} is out of range for an array with {rank} dimensions"),
    };
    Err(Diagnostic::error(Code::E0206, span, message)
        .help("axes are numbered from 0; negative ones count from the last"))
}

/// Several dimensions, each at most once, in the order given.
pub fn axes(given: &[i64], rank: usize, span: Span) -> Result<Vec<usize>, Diagnostic> {
    let mut result = Vec::new();
    for &one in given {
        let one = axis(one, rank, span)?;
        if result.contains(&one) {
            return Err(Diagnostic::error(Code::E0206, span, format!("axis {one} is given twice")));
        }
        result.push(one);
    }
    Ok(result)
}

/// Row-major strides, in elements.
pub fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim];
    }
    strides
}

/// The lines of a shape along a dimension: the number of the first element of each, in row-major order, and the distance between
/// elements.
pub fn lines(shape: &[usize], axis: usize) -> (Vec<usize>, usize) {
    let stride: usize = shape[axis + 1..].iter().product();
    let outer: usize = shape[..axis].iter().product();
    let firsts = (0..outer).flat_map(|at| (0..stride).map(move |inner| (at, inner)));
    (firsts.map(|(at, inner)| at * shape[axis] * stride + inner).collect(), stride)
}
