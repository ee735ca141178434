//! The instructions that kernels consist of.

use super::LaneFormat;

/// A lane: its terms, or a sum.
pub(super) trait PanelLane: Copy + Default {
    /// The sum; of integers modulo their size.
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

impl PanelLane for f32 {
    #[inline(always)]
    fn plus(self, other: f32) -> f32 {
        self + other
    }

    #[inline(always)]
    fn negated(self) -> f32 {
        -self
    }

    #[inline(always)]
    fn of(value: i32) -> f32 {
        value as f32
    }
}

impl PanelLane for f64 {
    #[inline(always)]
    fn plus(self, other: f64) -> f64 {
        self + other
    }

    #[inline(always)]
    fn negated(self) -> f64 {
        -self
    }

    #[inline(always)]
    fn of(value: i32) -> f64 {
        f64::from(value)
    }
}

/// Two bf16 of an operand, the earlier term in the lower half; or a sum, as the bits of an f32.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FloatLane(pub u32);

impl FloatLane {
    /// The terms, as f32.
    #[inline(always)]
    pub(super) fn terms(self) -> [f32; 2] {
        [f32::from_bits(self.0 << 16), f32::from_bits(self.0 & 0xffff_0000)]
    }

    /// The sum in the lane.
    #[inline(always)]
    pub(super) fn sum(self) -> f32 {
        f32::from_bits(self.0)
    }
}

impl PanelLane for FloatLane {
    #[inline(always)]
    fn plus(self, other: FloatLane) -> FloatLane {
        FloatLane((self.sum() + other.sum()).to_bits())
    }

    #[inline(always)]
    fn negated(self) -> FloatLane {
        FloatLane((-self.sum()).to_bits())
    }

    #[inline(always)]
    fn of(value: i32) -> FloatLane {
        FloatLane((value as f32).to_bits())
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

    /// Brings the cache line at a place, which may be anywhere, nearer to the processor.
    unsafe fn fetch(from: *const Self::Lane);

    /// Whether it has [`transpose`](Self::transpose) and [`interleave`](Self::interleave).
    const TRANSPOSES: bool;

    /// Stores the columns of `LANES` vectors, each at the next one of `to` and `step` lanes apart. The vectors are at `from`, and each
    /// next one `stride` bytes after the one before it. Those after the first `len` are zeros and not read.
    unsafe fn transpose(from: *const u8, stride: isize, len: usize, to: *mut Self::Lane, step: usize);

    /// Stores lanes whose terms are the elements of several rows: the first `len` bytes of each, a multiple of 16. Rows are `stride` bytes
    /// apart. Elements have 16 or 8 bits, so that a lane of 32 bits has two or four of them, `GROUP`.
    unsafe fn interleave(rows: *const u8, stride: isize, len: usize, to: *mut Self::Lane);

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
