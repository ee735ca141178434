//! The positions of the blocks of one sharding in the blocks of another sharding of the same array.
//!
//! `f32[8@X,16]` and `f32[8@Y,16]` on a mesh (X = 2, Y = 4): device (0, 3) has rows 0..4 and needs rows 6..8, which the devices
//! with X = 1 hold. So blocks move along X; no device needs anything from a device with another Y.
//!
//! A device that looks for a part of an array asks the devices with its own coordinates along all axes that do not split it.

use crate::mesh::Mesh;
use crate::sharding::{DimSharding, Sharding};
use spmdc_abi::AxisSet;
use spmdc_abi::Scalar;
use std::ops::Range;

/// A number for each position along some axes.
pub fn table(axes: &[u8], values: Vec<i64>) -> Scalar {
    match values.first() {
        Some(first) if values.iter().all(|value| value == first) => Scalar::Const(*first),
        _ => Scalar::Table { axes: axes.to_vec(), values },
    }
}

/// All coordinates along these axes: each as a list indexed by axis, 0 along the others.
fn coordinates(axes: AxisSet, mesh: &Mesh) -> impl Iterator<Item = Vec<usize>> {
    let axes: Vec<u8> = axes.iter().map(|axis| axis as u8).collect();
    (0..mesh.size_of(&axes)).map(move |position| mesh.positions(&axes, position))
}

fn range(size: usize, dim: &DimSharding, coordinates: &[usize], mesh: &Mesh) -> Range<usize> {
    dim.range(size, mesh.position(&dim.axes, coordinates), mesh)
}

fn axes_of(dims: [&DimSharding; 2]) -> AxisSet {
    dims.iter().flat_map(|dim| &dim.axes).map(|&axis| axis as usize).collect()
}

/// Whether every device's block under `to` is a part of its own block under `from`.
pub fn is_slice(shape: &[usize], from: &Sharding, to: &Sharding, mesh: &Mesh) -> bool {
    shape.iter().zip(from.dims.iter().zip(&to.dims)).all(|(&size, (from, to))| {
        from.axes == to.axes
            || coordinates(axes_of([from, to]), mesh).all(|at| {
                let (held, wanted) = (range(size, from, &at, mesh), range(size, to, &at, mesh));
                wanted.is_empty() || held.start <= wanted.start && wanted.end <= held.end
            })
    })
}

/// Whether every device's own block, with zeros around it, is its summand of the array: along each dimension that is cut in another way, the minor
/// axes of `from` become unreduced.
pub fn is_summand(shape: &[usize], from: &Sharding, to: &Sharding, mesh: &Mesh) -> bool {
    let partial = to.unreduced.minus(from.unreduced);
    shape.iter().zip(from.dims.iter().zip(&to.dims)).all(|(&size, (from, to))| {
        let Some(minor) = from.axes.strip_prefix(to.axes.as_slice()) else { return false };
        let is_plain = from.alignment.is_none() && to.alignment.is_none();
        // Blocks of an uneven dimension do not lie within those of its major axes.
        let are_nested = to.axes.is_empty() || size.is_multiple_of(mesh.size_of(&from.axes));
        minor.is_empty() && from.alignment == to.alignment
            || is_plain && are_nested && minor.iter().all(|&axis| partial.contains(usize::from(axis)))
    })
}

/// The axes along which devices fetch missing elements to get layout `to`.
pub fn exchange_axes(shape: &[usize], from: &Sharding, to: &Sharding, mesh: &Mesh) -> AxisSet {
    let mut exchanged = AxisSet::EMPTY;
    for (&size, (from, to)) in shape.iter().zip(from.dims.iter().zip(&to.dims)) {
        if from.axes == to.axes || size == 0 {
            continue;
        }
        let block = size.div_ceil(mesh.size_of(&from.axes));
        for at in coordinates(axes_of([from, to]), mesh) {
            let wanted = range(size, to, &at, mesh);
            if wanted.is_empty() {
                continue;
            }
            for owner in wanted.start / block..=(wanted.end - 1) / block {
                let mut rest = owner;
                for &axis in from.axes.iter().rev() {
                    let count = mesh.axes[axis as usize].size;
                    if rest % count != at[axis as usize] {
                        exchanged = exchanged.union(AxisSet::of(axis as usize));
                    }
                    rest /= count;
                }
            }
        }
    }
    exchanged
}

/// The average number of elements that a device fetches from others.
pub fn received(shape: &[usize], from: &Sharding, to: &Sharding, mesh: &Mesh) -> f64 {
    let axes = from.used_axes().union(to.used_axes());
    let (mut sum, mut devices) = (0u64, 0u64);
    for at in coordinates(axes, mesh) {
        let (mut wanted, mut held) = (1, 1);
        for (&size, (from, to)) in shape.iter().zip(from.dims.iter().zip(&to.dims)) {
            let (from, to) = (range(size, from, &at, mesh), range(size, to, &at, mesh));
            wanted *= to.len() as u64;
            held *= to.end.min(from.end).saturating_sub(to.start.max(from.start)) as u64;
        }
        sum += wanted - held;
        devices += 1;
    }
    sum as f64 / devices.max(1) as f64
}
