//! Several windows of one value, some places apart: stencils of any form, whose exchanges are shared.

use super::precision::Precision;
use super::programs::{Variable, Writer};
use super::{Array, Draw};
use spmdc_abi::Kind;

/// How far a window of a neighbourhood may reach.
const MOST: usize = 4;

impl Writer {
    /// Several windows of one value.
    pub(super) fn neighbours(&mut self) {
        let Some(x) = self.any(|v| !v.array.shape.is_empty()) else { return };
        let (expr, array, precision) = mean(&mut self.draw, &x);
        self.define(expr, array, precision);
    }
}

/// An element-by-element mean of such windows of a variable that has elements, its type, and how exact it is.
fn mean(draw: &mut Draw, x: &Variable) -> (String, Array, Precision) {
    let (name, array) = (&x.name, &x.array);
    let rank = array.shape.len();
    // How far it reaches to one side, and its step, along each dimension; at least along one it reaches further than nothing.
    let first = draw.below(rank);
    let mut reach = vec![(0, 1); rank];
    for (dim, reach) in reach.iter_mut().enumerate() {
        if dim == first || draw.chance(50) {
            *reach = (1 + draw.below(MOST), if draw.chance(15) { 2 } else { 1 });
        }
    }
    let count = 2 + draw.below(8);
    let (terms, array) = match draw.below(3) {
        0 => {
            let rolled = |draw: &mut Draw| {
                let moved = reach.iter().enumerate().filter(|(_, (far, _))| *far > 0);
                moved.fold(name.clone(), |of, (axis, &(far, _))| {
                    let far = far as i64;
                    format!("roll({of}, {}, axis={axis})", draw.between(-far, far))
                })
            };
            ((0..count).map(|_| rolled(draw)).collect(), array.clone())
        }
        // Within the array, or beyond its ends.
        kind => {
            let of = match kind {
                1 => name.clone(),
                _ => {
                    let widths: Vec<String> = reach.iter().map(|(far, _)| format!("({far}, {far})")).collect();
                    format!("pad({name}, ({},))", widths.join(", "))
                }
            };
            let mut result = array.clone();
            for (size, (far, step)) in result.shape.iter_mut().zip(&mut reach) {
                if kind == 1 {
                    *far = (*far).min((*size - 1) / 2);
                    *size -= 2 * *far;
                }
                *size = size.div_ceil(*step);
            }
            let sliced = |draw: &mut Draw| {
                let entry = |(&size, &(far, step)): (&usize, &(usize, usize))| {
                    let start = draw.below(2 * far + 1);
                    format!("{start}:{}:{step}", start + (size - 1) * step + 1)
                };
                let entries: Vec<String> = result.shape.iter().zip(&reach).map(entry).collect();
                format!("{of}[{}]", entries.join(", "))
            };
            ((0..count).map(|_| sliced(draw)).collect::<Vec<String>>(), result)
        }
    };
    let text = match array.dtype.kind() {
        Kind::Bool => terms.join(" ^ "),
        Kind::Float => format!("({}) / {count}", terms.join(" + ")),
        Kind::Signed | Kind::Unsigned | Kind::Key => format!("({}) % 9", terms.join(" + ")),
    };
    let precision = Precision::of(array.dtype, x.precision.size, count as f64 + 2.0, &[(1.0, x.precision)]);
    (text, array, precision)
}
