//! The operations that a back end must implement to run the math functions.
//!
//! Every function of this module is a straight line of the operations below: no branches, no tables, no loops that depend on data. Each
//! operation has one exactly defined result (IEEE 754, round to nearest even, subnormals kept). So every implementor computes the same
//! bits, whether it holds one number ([`super::SingleLane`]), records instructions for a code generator, or drives wide registers.
//!
//! A value of an associated type is a *bundle of lanes*: the implementor decides how many. All types of one implementor
//! have the same number of lanes, so `F64` may well be two registers where `F32` is one. Functions on `f64` use none of
//! the 32-bit types, so an implementor made for `f64` alone may leave those operations unreachable.
//!
//! Only NaNs are free: whether the result of an operation is NaN is defined, its sign and payload are not.

use super::Rare;

/// A bundle of lanes and the operations on it. `&mut self` is the builder: an implementor may record instead of compute.
///
/// The 32-bit half comes first, the 64-bit half mirrors it, conversions and the hook for rare arguments follow.
#[allow(clippy::wrong_self_convention, reason = "`self` is the builder, not what is converted")]
pub trait Lanes: Sized {
    /// Single precision numbers.
    type F32: Copy;
    /// Double precision numbers, one for each lane of `F32`.
    type F64: Copy;
    /// 32-bit integers; addition and subtraction wrap.
    type I32: Copy;
    /// 64-bit integers; addition and subtraction wrap.
    type I64: Copy;
    /// The outcome of comparing 32-bit numbers.
    type M32: Copy;
    /// The outcome of comparing 64-bit numbers.
    type M64: Copy;

    /// The same constant in every lane.
    fn const_f32(&mut self, value: f32) -> Self::F32;
    /// `a + b`, rounded to nearest even.
    fn add_f32(&mut self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a - b`, rounded to nearest even.
    fn sub_f32(&mut self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a * b`, rounded to nearest even.
    fn mul_f32(&mut self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a / b`, rounded to nearest even.
    fn div_f32(&mut self, a: Self::F32, b: Self::F32) -> Self::F32;
    /// The square root; NaN of a negative number.
    fn sqrt_f32(&mut self, a: Self::F32) -> Self::F32;
    /// `a * b + c`, rounded once.
    fn fma_f32(&mut self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32;
    /// Flips the sign bit.
    fn neg_f32(&mut self, a: Self::F32) -> Self::F32;
    /// Clears the sign bit.
    fn abs_f32(&mut self, a: Self::F32) -> Self::F32;
    /// To the nearest integer, ties to even; a zero result keeps the sign of `a`.
    fn nearest_f32(&mut self, a: Self::F32) -> Self::F32;
    /// The largest integer that is at most `a`.
    fn floor_f32(&mut self, a: Self::F32) -> Self::F32;
    /// The smallest integer that is at least `a`.
    fn ceil_f32(&mut self, a: Self::F32) -> Self::F32;
    /// The integer part: towards zero.
    fn trunc_f32(&mut self, a: Self::F32) -> Self::F32;
    /// False where an operand is NaN.
    fn eq_f32(&mut self, a: Self::F32, b: Self::F32) -> Self::M32;
    /// False where an operand is NaN.
    fn lt_f32(&mut self, a: Self::F32, b: Self::F32) -> Self::M32;
    /// False where an operand is NaN.
    fn le_f32(&mut self, a: Self::F32, b: Self::F32) -> Self::M32;
    /// `mask ? a : b`, bits unchanged.
    fn select_f32(&mut self, mask: Self::M32, a: Self::F32, b: Self::F32) -> Self::F32;
    /// `a < b ? a : b`: the second operand where one is NaN. Most machines have it as one instruction.
    fn min_f32(&mut self, a: Self::F32, b: Self::F32) -> Self::F32 {
        let less = self.lt_f32(a, b);
        self.select_f32(less, a, b)
    }
    /// `b < a ? a : b`: the second operand where one is NaN.
    fn max_f32(&mut self, a: Self::F32, b: Self::F32) -> Self::F32 {
        let less = self.lt_f32(b, a);
        self.select_f32(less, a, b)
    }
    /// The bits of each lane as an integer.
    fn to_bits_f32(&mut self, a: Self::F32) -> Self::I32;
    /// The number with these bits.
    fn from_bits_f32(&mut self, a: Self::I32) -> Self::F32;

    /// The same constant in every lane.
    fn const_i32(&mut self, value: i32) -> Self::I32;
    /// `a + b`, wrapping.
    fn add_i32(&mut self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// `a - b`, wrapping.
    fn sub_i32(&mut self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Bitwise and.
    fn and_i32(&mut self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Bitwise or.
    fn or_i32(&mut self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Bitwise exclusive or.
    fn xor_i32(&mut self, a: Self::I32, b: Self::I32) -> Self::I32;
    /// Left by a constant from 0 to 31.
    fn shl_i32(&mut self, a: Self::I32, by: u32) -> Self::I32;
    /// Right by a constant from 0 to 31, zeros coming in.
    fn shr_i32(&mut self, a: Self::I32, by: u32) -> Self::I32;

    /// Where both masks are set.
    fn and_m32(&mut self, a: Self::M32, b: Self::M32) -> Self::M32;
    /// Where either mask is set.
    fn or_m32(&mut self, a: Self::M32, b: Self::M32) -> Self::M32;

    /// The same constant in every lane.
    fn const_f64(&mut self, value: f64) -> Self::F64;
    /// `a + b`, rounded to nearest even.
    fn add_f64(&mut self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// `a - b`, rounded to nearest even.
    fn sub_f64(&mut self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// `a * b`, rounded to nearest even.
    fn mul_f64(&mut self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// `a / b`, rounded to nearest even.
    fn div_f64(&mut self, a: Self::F64, b: Self::F64) -> Self::F64;
    /// The square root; NaN of a negative number.
    fn sqrt_f64(&mut self, a: Self::F64) -> Self::F64;
    /// `a * b + c`, rounded once.
    fn fma_f64(&mut self, a: Self::F64, b: Self::F64, c: Self::F64) -> Self::F64;
    /// Flips the sign bit.
    fn neg_f64(&mut self, a: Self::F64) -> Self::F64;
    /// Clears the sign bit.
    fn abs_f64(&mut self, a: Self::F64) -> Self::F64;
    /// To the nearest integer, ties to even; a zero result keeps the sign of `a`.
    fn nearest_f64(&mut self, a: Self::F64) -> Self::F64;
    /// The largest integer that is at most `a`.
    fn floor_f64(&mut self, a: Self::F64) -> Self::F64;
    /// The smallest integer that is at least `a`.
    fn ceil_f64(&mut self, a: Self::F64) -> Self::F64;
    /// The integer part: towards zero.
    fn trunc_f64(&mut self, a: Self::F64) -> Self::F64;
    /// False where an operand is NaN.
    fn eq_f64(&mut self, a: Self::F64, b: Self::F64) -> Self::M64;
    /// False where an operand is NaN.
    fn lt_f64(&mut self, a: Self::F64, b: Self::F64) -> Self::M64;
    /// False where an operand is NaN.
    fn le_f64(&mut self, a: Self::F64, b: Self::F64) -> Self::M64;
    /// `mask ? a : b`, bits unchanged.
    fn select_f64(&mut self, mask: Self::M64, a: Self::F64, b: Self::F64) -> Self::F64;
    /// `a < b ? a : b`: the second operand where one is NaN. Most machines have it as one instruction.
    fn min_f64(&mut self, a: Self::F64, b: Self::F64) -> Self::F64 {
        let less = self.lt_f64(a, b);
        self.select_f64(less, a, b)
    }
    /// `b < a ? a : b`: the second operand where one is NaN.
    fn max_f64(&mut self, a: Self::F64, b: Self::F64) -> Self::F64 {
        let less = self.lt_f64(b, a);
        self.select_f64(less, a, b)
    }
    /// The bits of each lane as an integer.
    fn to_bits_f64(&mut self, a: Self::F64) -> Self::I64;
    /// The number with these bits.
    fn from_bits_f64(&mut self, a: Self::I64) -> Self::F64;

    /// The same constant in every lane.
    fn const_i64(&mut self, value: i64) -> Self::I64;
    /// `a + b`, wrapping.
    fn add_i64(&mut self, a: Self::I64, b: Self::I64) -> Self::I64;
    /// `a - b`, wrapping.
    fn sub_i64(&mut self, a: Self::I64, b: Self::I64) -> Self::I64;
    /// Bitwise and.
    fn and_i64(&mut self, a: Self::I64, b: Self::I64) -> Self::I64;
    /// Bitwise or.
    fn or_i64(&mut self, a: Self::I64, b: Self::I64) -> Self::I64;
    /// Bitwise exclusive or.
    fn xor_i64(&mut self, a: Self::I64, b: Self::I64) -> Self::I64;
    /// Left by a constant from 0 to 63.
    fn shl_i64(&mut self, a: Self::I64, by: u32) -> Self::I64;
    /// Right by a constant from 0 to 63, zeros coming in.
    fn shr_i64(&mut self, a: Self::I64, by: u32) -> Self::I64;

    /// Where both masks are set.
    fn and_m64(&mut self, a: Self::M64, b: Self::M64) -> Self::M64;
    /// Where either mask is set.
    fn or_m64(&mut self, a: Self::M64, b: Self::M64) -> Self::M64;

    /// Every `f32` is an `f64`: exact.
    fn widen(&mut self, a: Self::F32) -> Self::F64;
    /// To the nearest `f32`, ties to even, with subnormals and infinities as they come.
    fn narrow(&mut self, a: Self::F64) -> Self::F32;

    /// `mask ? rare(x) : common`, where `mask` is almost always false in every lane.
    ///
    /// The default computes both sides. A code generator should test the mask and jump around the rare side, or put
    /// [`super::rare_f32`] into a function of its own and call that.
    fn rarely_f32(&mut self, mask: Self::M32, common: Self::F32, rare: Rare, x: Self::F32) -> Self::F32 {
        let value = super::rare_f32(self, rare, x);
        self.select_f32(mask, value, common)
    }
    /// `mask ? rare(x) : common`, as [`Lanes::rarely_f32`].
    fn rarely_f64(&mut self, mask: Self::M64, common: Self::F64, rare: Rare, x: Self::F64) -> Self::F64 {
        let value = super::rare_f64(self, rare, x);
        self.select_f64(mask, value, common)
    }
}
