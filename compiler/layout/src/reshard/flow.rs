//! The elements that devices receive in a change of layout, if each device fetches exactly the elements that it lacks.
//!
//! If sizes are divisible, there is a formula. An axis of size 4 is two digits of base 2. The list of axes of a dimension is a row of
//! digits, major to minor, which is the number of a device's block. Old and new block of a dimension overlap if their rows have a common
//! prefix, and then the smaller is inside the larger. So every device overlaps unless a digit of one axis replaces a digit of another; then
//! only those devices overlap for which all such digits are equal:
//!
//! ```text
//! 16@X -> 16@Y     X = (x), Y = (y z):  x must equal y, which holds on half of the devices
//! ```
//!
//! Otherwise the elements are counted device by device.

use crate::blocks::is_slice;
use crate::mesh::Mesh;
use crate::sharding::{DimSharding, Sharding, block_range};
use spmdc_abi::AxisSet;

/// Number of devices that are counted before a search uses an estimate.
pub const SAMPLE: usize = 128;

/// A change of layout, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReshardFlow {
    /// Maximum received by any device.
    pub worst: u64,
    /// Received by all devices together.
    pub total: u64,
    /// Whether every device was counted.
    pub exact: bool,
}

/// The properties of a change of layout that do not depend on sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReshardPattern {
    /// The axes along which devices fetch, if sizes divide.
    pub group: AxisSet,
    /// Whether every new block is inside one old block.
    pub single: bool,
    /// Whether in every dimension one list of axes is a prefix of the other: blocks are cut in place, or joined.
    pub straight: bool,
    /// One of this many devices has a part of its new block; None if digits do not decide.
    pub odds: Option<u64>,
}

/// Part of an axis: the axis, the position of the prime factor, and the factor.
type Digit = (u8, usize, usize);

fn digits(dim: &DimSharding, mesh: &Mesh) -> Vec<Digit> {
    let mut digits = Vec::new();
    for &axis in &dim.axes {
        let mut rest = mesh.axes[axis as usize].size;
        let mut factor = 2;
        let first = digits.len();
        while rest > 1 {
            if rest.is_multiple_of(factor) {
                digits.push((axis, digits.len() - first, factor));
                rest /= factor;
            } else {
                factor += 1;
            }
        }
    }
    digits
}

/// Sets of digits that must be equal (a disjoint-set forest).
#[derive(Default)]
struct Equal(Vec<(Digit, Digit)>);

impl Equal {
    fn find(&self, digit: Digit) -> Digit {
        match self.0.iter().find(|(of, _)| *of == digit) {
            Some(&(_, parent)) => self.find(parent),
            None => digit,
        }
    }

    /// Joins the sets of two digits; true if they were different.
    fn join(&mut self, a: Digit, b: Digit) -> bool {
        let (a, b) = (self.find(a), self.find(b));
        if a != b {
            self.0.push((a, b));
        }
        a != b
    }
}

/// The pattern of a change of layout.
pub fn pattern(from: &[DimSharding], to: &[DimSharding], mesh: &Mesh) -> ReshardPattern {
    let mut pattern = ReshardPattern { group: AxisSet::EMPTY, single: true, straight: true, odds: Some(1) };
    let mut equal = Equal::default();
    for (from, to) in from.iter().zip(to).filter(|(from, to)| from.axes != to.axes) {
        let (old, new) = (digits(from, mesh), digits(to, mesh));
        pattern.single &= mesh.size_of(&to.axes).is_multiple_of(mesh.size_of(&from.axes));
        let common = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
        pattern.straight &= common == old.len().min(new.len());
        if old.iter().zip(&new).any(|(a, b)| a.2 != b.2) {
            pattern.odds = None;
            let axes = old[common..].iter().map(|digit| usize::from(digit.0));
            pattern.group = pattern.group.union(axes.collect());
            continue;
        }
        for (i, &digit) in old.iter().enumerate().skip(common) {
            let moved = match new.get(i) {
                Some(&other) if other != digit => {
                    let factor = if equal.join(digit, other) { digit.2 as u64 } else { 1 };
                    pattern.odds = pattern.odds.map(|odds| odds * factor);
                    true
                }
                Some(_) => false,
                None => true,
            };
            if moved {
                pattern.group = pattern.group.union(AxisSet::of(digit.0.into()));
            }
        }
    }
    pattern
}

/// Whether all blocks of resplit dimensions have one length, and are not empty.
pub fn is_even(shape: &[usize], from: &[DimSharding], to: &[DimSharding], mesh: &Mesh) -> bool {
    let divides = |size: usize, dim: &DimSharding| size > 0 && size.is_multiple_of(mesh.size_of(&dim.axes));
    let mut dims = shape.iter().zip(from.iter().zip(to));
    dims.all(|(&size, (from, to))| from.axes == to.axes || divides(size, from) && divides(size, to))
}

/// The elements that devices receive. With a `limit`, at most that number of devices is counted without a formula.
pub fn flow(
    shape: &[usize],
    from: &[DimSharding],
    to: &[DimSharding],
    mesh: &Mesh,
    limit: Option<usize>,
) -> ReshardFlow {
    if shape.contains(&0) || from == to {
        return ReshardFlow { worst: 0, total: 0, exact: true };
    }
    let dims: Vec<(usize, &DimSharding, &DimSharding)> =
        shape.iter().zip(from.iter().zip(to)).map(|(&size, (from, to))| (size, from, to)).collect();
    // An unchanged dimension only multiplies the elements of the others.
    let (kept, moved): (Vec<_>, Vec<_>) = dims.into_iter().partition(|(_, from, to)| from.axes == to.axes);
    let even = is_even(shape, from, to, mesh);
    // Over all devices, a dimension split over `n` has `size / n` times as many elements as its length.
    let devices =
        kept.iter().fold(mesh.device_count(), |devices, (_, dim, _)| devices / mesh.size_of(&dim.axes)) as u64;
    let all = kept.iter().map(|(size, ..)| *size as u64).product::<u64>();
    let largest = kept.iter().map(|(size, dim, _)| size.div_ceil(mesh.size_of(&dim.axes)) as u64).product::<u64>();
    let (worst, total, exact) = match pattern(from, to, mesh).odds.filter(|_| even) {
        Some(odds) => {
            let blocks = |dim: &DimSharding| mesh.size_of(&dim.axes);
            let wanted: u64 = moved.iter().map(|(size, _, to)| (size / blocks(to)) as u64).product();
            let held = |(size, from, to): &(usize, &DimSharding, &DimSharding)| size / blocks(from).max(blocks(to));
            let held: u64 = moved.iter().map(|dim| held(dim) as u64).product();
            let worst = if odds > 1 { wanted } else { wanted - held };
            (worst, devices * wanted - devices / odds * held, true)
        }
        None => counted(&moved, devices, mesh, limit),
    };
    ReshardFlow { worst: worst * largest, total: total.saturating_mul(all), exact }
}

/// Counts dimensions whose blocks have different lengths, device by device, as far as their coordinates matter.
fn counted(
    dims: &[(usize, &DimSharding, &DimSharding)],
    devices: u64,
    mesh: &Mesh,
    limit: Option<usize>,
) -> (u64, u64, bool) {
    let used = dims.iter().flat_map(|(_, from, to)| from.axes.iter().chain(&to.axes)).map(|&axis| axis as usize);
    let used: Vec<usize> = used.collect::<AxisSet>().iter().collect();
    let combinations: usize = used.iter().map(|&axis| mesh.axes[axis].size).product();
    let looked_at = limit.map_or(combinations, |limit| limit.min(combinations));
    // An odd stride, so that coordinates along all axes change.
    let stride = if looked_at < combinations { (combinations / looked_at) | 1 } else { 1 };
    let mut at = vec![0; mesh.axes.len()];
    let (mut worst, mut sum) = (0u64, 0u64);
    for number in 0..looked_at {
        let mut rest = number * stride % combinations;
        for &axis in used.iter().rev() {
            at[axis] = rest % mesh.axes[axis].size;
            rest /= mesh.axes[axis].size;
        }
        let position =
            |axes: &[u8]| axes.iter().fold(0, |sum, &axis| sum * mesh.axes[axis as usize].size + at[axis as usize]);
        let (mut wanted, mut held) = (1u64, 1u64);
        for (size, from, to) in dims {
            let range = |dim: &DimSharding| block_range(*size, mesh.size_of(&dim.axes), position(&dim.axes));
            let (from, to) = (range(from), range(to));
            wanted *= to.len() as u64;
            held *= to.end.min(from.end).saturating_sub(to.start.max(from.start)) as u64;
        }
        worst = worst.max(wanted - held);
        sum += wanted - held;
    }
    (worst, (sum as u128 * u128::from(devices) / looked_at as u128) as u64, looked_at == combinations)
}

/// Whether every device already has the elements that it needs.
pub fn is_free(shape: &[usize], from: &[DimSharding], to: &[DimSharding], flow: ReshardFlow, mesh: &Mesh) -> bool {
    let sharding = |dims: &[DimSharding]| Sharding { dims: dims.to_vec(), ..Sharding::replicated(0) };
    flow.worst == 0 && (flow.exact || is_slice(shape, &sharding(from), &sharding(to), mesh))
}
