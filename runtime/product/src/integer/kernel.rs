//! The instructions that kernels consist of.

use super::LaneFormat;

/// A lane: its elements, as a number.
pub(super) trait PanelLane: Copy + Default {
    /// The sum, modulo its size.
    fn plus(self, other: Self) -> Self;

    /// The number that makes it zero when it is added.
    fn negated(self) -> Self;

    /// The lane of a number of 32 bits.
    fn of(value: i32) -> Self;
}

impl PanelLane for i32 {
    #[inline(always)]
    fn plus(self, other: i32) -> i32 {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn negated(self) -> i32 {
        self.wrapping_neg()
    }

    #[inline(always)]
    fn of(value: i32) -> i32 {
        value
    }
}

impl PanelLane for i64 {
    #[inline(always)]
    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }

    #[inline(always)]
    fn negated(self) -> i64 {
        self.wrapping_neg()
    }

    #[inline(always)]
    fn of(value: i32) -> i64 {
        i64::from(value)
    }
}

/// The instructions of a kernel. A tile has `ROWS` rows and two vectors of columns.
pub(super) trait PanelKernel {
    type Lane: PanelLane;
    type Vector: Copy;
    const FORMAT: LaneFormat;
    /// The terms of a lane.
    const GROUP: usize;
    /// The lanes of a vector.
    const LANES: usize;

    /// A vector with copies of a lane.
    unsafe fn splat(lane: Self::Lane) -> Self::Vector;

    /// The vector at a place, which needs no alignment.
    unsafe fn load(from: *const Self::Lane) -> Self::Vector;

    /// Stores a vector at a place, which needs no alignment.
    unsafe fn store(to: *mut Self::Lane, vector: Self::Vector);

    /// The sums of lanes.
    unsafe fn add(a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// The sums, and the products of the terms of each lane.
    unsafe fn multiply_add(sums: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
}
