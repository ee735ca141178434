//! The element types of matrices.

use faer::traits::RealField;

/// An element type in which matrices are factorized: f32 or f64.
pub trait MatrixElement: RealField + Copy + Send + Sync + 'static {
    /// The distance from 1 to the next number.
    const EPSILON: f64;
    /// Sums of squares from here to its reciprocal have neither lost small terms nor overflowed.
    const SAFE: f64;
    /// The exponent of the largest power of two whose reciprocal is a normal number, too.
    const EXPONENT: i32;
    /// The nearest number of the type.
    fn of(value: f64) -> Self;
    /// The same number as f64.
    fn wide(self) -> f64;
    /// Memory of f64s as memory of this type, which may have more elements.
    fn memory(scratch: &mut [f64]) -> &mut [Self];
    /// The aligned part of memory of this type as memory of f64s.
    fn doubles(scratch: &mut [Self]) -> &mut [f64];
    /// The absolute value.
    fn magnitude(self) -> Self;
    /// The square root.
    fn root(self) -> Self;
    /// The root of the sum of two squares, which do not overflow.
    fn length(self, other: Self) -> Self;
    /// The magnitude of this number with the sign of the other.
    fn signed(self, other: Self) -> Self;
    /// Whether it is neither NaN nor infinite.
    fn is_number(self) -> bool;
}

impl MatrixElement for f32 {
    const EPSILON: f64 = f32::EPSILON as f64;
    const SAFE: f64 = 1e-24;
    const EXPONENT: i32 = 126;

    #[inline(always)]
    fn of(value: f64) -> f32 {
        value as f32
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        f64::from(self)
    }

    fn memory(scratch: &mut [f64]) -> &mut [f32] {
        let len = 2 * scratch.len();
        // SAFETY: the bytes of the slice, which is borrowed for as long; any bytes are f32s, and f64s are aligned for them.
        unsafe { std::slice::from_raw_parts_mut(scratch.as_mut_ptr().cast(), len) }
    }

    fn doubles(scratch: &mut [f32]) -> &mut [f64] {
        // SAFETY: any bytes are f64s.
        unsafe { scratch.align_to_mut().1 }
    }

    #[inline(always)]
    fn magnitude(self) -> f32 {
        self.abs()
    }

    #[inline(always)]
    fn root(self) -> f32 {
        self.sqrt()
    }

    #[inline(always)]
    fn length(self, other: f32) -> f32 {
        self.hypot(other)
    }

    #[inline(always)]
    fn signed(self, other: f32) -> f32 {
        self.copysign(other)
    }

    #[inline(always)]
    fn is_number(self) -> bool {
        self.is_finite()
    }
}

impl MatrixElement for f64 {
    const EPSILON: f64 = f64::EPSILON;
    const SAFE: f64 = 1e-240;
    const EXPONENT: i32 = 1021;

    #[inline(always)]
    fn of(value: f64) -> f64 {
        value
    }

    #[inline(always)]
    fn wide(self) -> f64 {
        self
    }

    fn memory(scratch: &mut [f64]) -> &mut [f64] {
        scratch
    }

    fn doubles(scratch: &mut [f64]) -> &mut [f64] {
        scratch
    }

    #[inline(always)]
    fn magnitude(self) -> f64 {
        self.abs()
    }

    #[inline(always)]
    fn root(self) -> f64 {
        self.sqrt()
    }

    #[inline(always)]
    fn length(self, other: f64) -> f64 {
        self.hypot(other)
    }

    #[inline(always)]
    fn signed(self, other: f64) -> f64 {
        self.copysign(other)
    }

    #[inline(always)]
    fn is_number(self) -> bool {
        self.is_finite()
    }
}
