//! Lanes as values with operators, so that a math function reads like its formula.
//!
//! [`Lanes`] is convenient to implement but not to write formulas with. Here a bundle carries a reference to its builder,
//! and `(x * y).fma(2.0, z)` records a multiplication, a constant and a fused multiply-add. The functions are generic over
//! the traits [`Single`], [`Double`] or, where both widths share the algorithm, [`Real`]:
//!
//! ```text
//! fn rsqrt<X: Real>(x: X) -> X {
//!     x.constant(1.0) / x.sqrt()
//! }
//! ```
//!
//! A plain `f64` stands for the constant in every lane, rounded to the width of the other operand.

use std::cell::RefCell;
use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Sub};

use super::{Lanes, Rare};

/// The possible second operands of an operation on `V`: a value, or a constant.
pub(super) trait Operand<V> {
    fn lift(self, like: V) -> V;
}

impl<V: Real> Operand<V> for V {
    #[inline(always)]
    fn lift(self, _like: V) -> V {
        self
    }
}

impl<V: Real> Operand<V> for f64 {
    #[inline(always)]
    fn lift(self, like: V) -> V {
        like.constant(self)
    }
}

/// Floating-point lanes of either width.
pub(super) trait Real:
    Copy
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Add<f64, Output = Self>
    + Sub<f64, Output = Self>
    + Mul<f64, Output = Self>
    + Div<f64, Output = Self>
{
    type Bits: Bits<Real = Self>;
    type Mask: Mask<Real = Self>;

    /// Bits of a lane.
    const WIDTH: u32;
    /// Bits of the fraction field.
    const FRACTION: u32;
    /// The exponent field of 1.0.
    const BIAS: i64;
    /// The sign bit.
    const SIGN: i64;
    /// The smallest number that is not subnormal.
    const TINY: f64;
    /// The bits of 1.0.
    const ONE: i64 = Self::BIAS << Self::FRACTION;
    /// Added to a small number and subtracted again, this rounds to an integer; the sum's low bits hold that integer.
    const MAGIC: f64 = 1.5 * (1_u64 << Self::FRACTION) as f64;
    /// The bits of `MAGIC`, which equal the bits of its sum with zero.
    const MAGIC_BITS: i64 = ((Self::BIAS + Self::FRACTION as i64) << Self::FRACTION) + (1 << (Self::FRACTION - 1));

    /// The constant nearest to `value`, in the lanes of `self`.
    fn constant(self, value: f64) -> Self;
    /// `self * b + c`, rounded once.
    fn fma(self, b: impl Operand<Self>, c: impl Operand<Self>) -> Self;
    fn sqrt(self) -> Self;
    fn abs(self) -> Self;
    fn nearest(self) -> Self;
    fn floor(self) -> Self;
    fn ceil(self) -> Self;
    fn trunc(self) -> Self;
    /// The smaller of the two; `self` if either is NaN.
    fn at_most(self, limit: impl Operand<Self>) -> Self;
    /// The larger of the two; `self` if either is NaN.
    fn at_least(self, limit: impl Operand<Self>) -> Self;
    fn equals(self, other: impl Operand<Self>) -> Self::Mask;
    fn less(self, other: impl Operand<Self>) -> Self::Mask;
    fn less_equal(self, other: impl Operand<Self>) -> Self::Mask;
    fn bits(self) -> Self::Bits;

    #[inline(always)]
    fn greater(self, other: impl Operand<Self>) -> Self::Mask {
        other.lift(self).less(self)
    }
    #[inline(always)]
    fn greater_equal(self, other: impl Operand<Self>) -> Self::Mask {
        other.lift(self).less_equal(self)
    }
    /// The magnitude of `self`, which must not be negative, with the sign of `sign`.
    #[inline(always)]
    fn with_sign_of(self, sign: Self) -> Self {
        (self.bits() | (sign.bits() & Self::SIGN)).real()
    }
    /// `self`, negated where `sign` is negative.
    #[inline(always)]
    fn flip_sign_by(self, sign: Self) -> Self {
        (self.bits() ^ (sign.bits() & Self::SIGN)).real()
    }
    /// The polynomial with these coefficients, highest power first, by Horner's rule.
    #[inline(always)]
    fn polynomial(self, coefficients: &[f64]) -> Self {
        let mut sum = self.constant(coefficients[0]);
        for &coefficient in &coefficients[1..] {
            sum = sum.fma(self, coefficient);
        }
        sum
    }
    /// Zero, in the lanes of `self`.
    #[inline(always)]
    fn zero(self) -> Self {
        self.constant(0.0)
    }
}

/// Integer lanes, as wide as the floats they are the bits of.
pub(super) trait Bits:
    Copy
    + Add<Output = Self>
    + Sub<Output = Self>
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Add<i64, Output = Self>
    + Sub<i64, Output = Self>
    + BitAnd<i64, Output = Self>
    + BitOr<i64, Output = Self>
    + BitXor<i64, Output = Self>
{
    type Real: Real<Bits = Self>;

    /// `value`, cut to the width, in the lanes of `self`.
    fn constant(self, value: i64) -> Self;
    fn shift_left(self, by: u32) -> Self;
    /// Zeros come in.
    fn shift_right(self, by: u32) -> Self;
    /// The float with these bits.
    fn real(self) -> Self::Real;
}

/// The outcome of a comparison.
pub(super) trait Mask: Copy + BitAnd<Output = Self> + BitOr<Output = Self> {
    type Real: Real<Mask = Self>;

    /// `self ? a : b`
    fn select(self, a: impl Operand<Self::Real>, b: Self::Real) -> Self::Real;
    /// `self ? rare(x) : common`, for a mask that is almost never set.
    fn rarely(self, common: Self::Real, rare: Rare, x: Self::Real) -> Self::Real;
}

/// Lanes of `f32`.
pub(super) trait Single: Real {
    type Wide: Double<Narrow = Self>;
    fn widen(self) -> Self::Wide;
}

/// Lanes of `f64`. Functions on `f64` never narrow; only functions for `f32` do.
pub(super) trait Double: Real {
    type Narrow: Single<Wide = Self>;
    fn narrow(self) -> Self::Narrow;
}

/// The builder that all values of one function share.
type Builder<'a, L> = &'a RefCell<&'a mut L>;

macro_rules! width {
    ($value:ident $bits:ident $mask:ident, $lanes_real:ident $lanes_bits:ident $lanes_mask:ident,
     $float:ident $int:ident, $fraction:literal $bias:literal; $constant:ident $add:ident $sub:ident $mul:ident $div:ident
     $sqrt:ident $fma:ident $neg:ident $abs:ident $nearest:ident $floor:ident $ceil:ident $trunc:ident $eq:ident $lt:ident
     $le:ident $min:ident $max:ident $select:ident $to_bits:ident $from_bits:ident; $iconstant:ident $iadd:ident $isub:ident
     $iand:ident $ior:ident $ixor:ident $shl:ident $shr:ident; $mand:ident $mor:ident; $rarely:ident) => {
        pub(super) struct $value<'a, L: Lanes> {
            builder: Builder<'a, L>,
            pub(super) raw: L::$lanes_real,
        }
        pub(super) struct $bits<'a, L: Lanes> {
            builder: Builder<'a, L>,
            raw: L::$lanes_bits,
        }
        pub(super) struct $mask<'a, L: Lanes> {
            builder: Builder<'a, L>,
            raw: L::$lanes_mask,
        }
        width! { copy $value }
        width! { copy $bits }
        width! { copy $mask }
        width! { binary $value, Add add $add, Operand<Self> }
        width! { binary $value, Sub sub $sub, Operand<Self> }
        width! { binary $value, Mul mul $mul, Operand<Self> }
        width! { binary $value, Div div $div, Operand<Self> }
        width! { integer $bits, $iconstant $int, Add add $iadd }
        width! { integer $bits, $iconstant $int, Sub sub $isub }
        width! { integer $bits, $iconstant $int, BitAnd bitand $iand }
        width! { integer $bits, $iconstant $int, BitOr bitor $ior }
        width! { integer $bits, $iconstant $int, BitXor bitxor $ixor }
        width! { same $mask, BitAnd bitand $mand }
        width! { same $mask, BitOr bitor $mor }

        impl<'a, L: Lanes> $value<'a, L> {
            #[inline(always)]
            pub(super) fn new(builder: Builder<'a, L>, raw: L::$lanes_real) -> Self {
                $value { builder, raw }
            }
            #[inline(always)]
            fn unary(self, op: impl FnOnce(&mut L, L::$lanes_real) -> L::$lanes_real) -> Self {
                let raw = op(&mut self.builder.borrow_mut(), self.raw);
                $value { builder: self.builder, raw }
            }
        }

        impl<'a, L: Lanes> Neg for $value<'a, L> {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                self.unary(L::$neg)
            }
        }

        impl<'a, L: Lanes> Real for $value<'a, L> {
            type Bits = $bits<'a, L>;
            type Mask = $mask<'a, L>;
            const WIDTH: u32 = $int::BITS;
            const FRACTION: u32 = $fraction;
            const BIAS: i64 = $bias;
            const SIGN: i64 = $int::MIN as i64;
            const TINY: f64 = $float::MIN_POSITIVE as f64;

            #[inline(always)]
            fn constant(self, value: f64) -> Self {
                let raw = self.builder.borrow_mut().$constant(value as $float);
                $value { builder: self.builder, raw }
            }
            #[inline(always)]
            fn fma(self, b: impl Operand<Self>, c: impl Operand<Self>) -> Self {
                let (b, c) = (b.lift(self).raw, c.lift(self).raw);
                self.unary(|l, a| l.$fma(a, b, c))
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                self.unary(L::$sqrt)
            }
            #[inline(always)]
            fn abs(self) -> Self {
                self.unary(L::$abs)
            }
            #[inline(always)]
            fn nearest(self) -> Self {
                self.unary(L::$nearest)
            }
            #[inline(always)]
            fn floor(self) -> Self {
                self.unary(L::$floor)
            }
            #[inline(always)]
            fn ceil(self) -> Self {
                self.unary(L::$ceil)
            }
            #[inline(always)]
            fn trunc(self) -> Self {
                self.unary(L::$trunc)
            }
            #[inline(always)]
            fn at_most(self, limit: impl Operand<Self>) -> Self {
                let limit = limit.lift(self).raw;
                self.unary(|l, a| l.$min(limit, a))
            }
            #[inline(always)]
            fn at_least(self, limit: impl Operand<Self>) -> Self {
                let limit = limit.lift(self).raw;
                self.unary(|l, a| l.$max(limit, a))
            }
            #[inline(always)]
            fn equals(self, other: impl Operand<Self>) -> $mask<'a, L> {
                let other = other.lift(self).raw;
                $mask { builder: self.builder, raw: self.builder.borrow_mut().$eq(self.raw, other) }
            }
            #[inline(always)]
            fn less(self, other: impl Operand<Self>) -> $mask<'a, L> {
                let other = other.lift(self).raw;
                $mask { builder: self.builder, raw: self.builder.borrow_mut().$lt(self.raw, other) }
            }
            #[inline(always)]
            fn less_equal(self, other: impl Operand<Self>) -> $mask<'a, L> {
                let other = other.lift(self).raw;
                $mask { builder: self.builder, raw: self.builder.borrow_mut().$le(self.raw, other) }
            }
            #[inline(always)]
            fn bits(self) -> $bits<'a, L> {
                $bits { builder: self.builder, raw: self.builder.borrow_mut().$to_bits(self.raw) }
            }
        }

        impl<'a, L: Lanes> Bits for $bits<'a, L> {
            type Real = $value<'a, L>;
            #[inline(always)]
            fn constant(self, value: i64) -> Self {
                $bits { builder: self.builder, raw: self.builder.borrow_mut().$iconstant(value as $int) }
            }
            #[inline(always)]
            fn shift_left(self, by: u32) -> Self {
                $bits { builder: self.builder, raw: self.builder.borrow_mut().$shl(self.raw, by) }
            }
            #[inline(always)]
            fn shift_right(self, by: u32) -> Self {
                $bits { builder: self.builder, raw: self.builder.borrow_mut().$shr(self.raw, by) }
            }
            #[inline(always)]
            fn real(self) -> $value<'a, L> {
                $value { builder: self.builder, raw: self.builder.borrow_mut().$from_bits(self.raw) }
            }
        }

        impl<'a, L: Lanes> Mask for $mask<'a, L> {
            type Real = $value<'a, L>;
            #[inline(always)]
            fn select(self, a: impl Operand<$value<'a, L>>, b: $value<'a, L>) -> $value<'a, L> {
                let a = a.lift(b).raw;
                b.unary(|l, b| l.$select(self.raw, a, b))
            }
            #[inline(always)]
            fn rarely(self, common: $value<'a, L>, rare: Rare, x: $value<'a, L>) -> $value<'a, L> {
                x.unary(|l, x| l.$rarely(self.raw, common.raw, rare, x))
            }
        }
    };
    (copy $name:ident) => {
        // Not derived, as that would ask for `L: Copy`.
        impl<L: Lanes> Clone for $name<'_, L> {
            #[inline(always)]
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<L: Lanes> Copy for $name<'_, L> {}
    };
    (binary $name:ident, $trait:ident $method:ident $op:ident, $operand:ty) => {
        impl<L: Lanes, R: Operand<Self>> $trait<R> for $name<'_, L> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: R) -> Self {
                let other = other.lift(self).raw;
                self.unary(|l, a| l.$op(a, other))
            }
        }
    };
    (integer $name:ident, $constant:ident $int:ident, $trait:ident $method:ident $op:ident) => {
        width! { same $name, $trait $method $op }
        impl<L: Lanes> $trait<i64> for $name<'_, L> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: i64) -> Self {
                let mut l = self.builder.borrow_mut();
                let other = l.$constant(other as $int);
                $name { builder: self.builder, raw: l.$op(self.raw, other) }
            }
        }
    };
    (same $name:ident, $trait:ident $method:ident $op:ident) => {
        impl<L: Lanes> $trait for $name<'_, L> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                $name { builder: self.builder, raw: self.builder.borrow_mut().$op(self.raw, other.raw) }
            }
        }
    };
}

width! { Value32 Bits32 Mask32, F32 I32 M32, f32 i32, 23 127; const_f32 add_f32 sub_f32 mul_f32 div_f32
sqrt_f32 fma_f32 neg_f32 abs_f32 nearest_f32 floor_f32 ceil_f32 trunc_f32 eq_f32 lt_f32
le_f32 min_f32 max_f32 select_f32 to_bits_f32 from_bits_f32; const_i32 add_i32 sub_i32
and_i32 or_i32 xor_i32 shl_i32 shr_i32; and_m32 or_m32; rarely_f32 }

width! { Value64 Bits64 Mask64, F64 I64 M64, f64 i64, 52 1023; const_f64 add_f64 sub_f64 mul_f64 div_f64
sqrt_f64 fma_f64 neg_f64 abs_f64 nearest_f64 floor_f64 ceil_f64 trunc_f64 eq_f64 lt_f64
le_f64 min_f64 max_f64 select_f64 to_bits_f64 from_bits_f64; const_i64 add_i64 sub_i64
and_i64 or_i64 xor_i64 shl_i64 shr_i64; and_m64 or_m64; rarely_f64 }

impl<'a, L: Lanes> Single for Value32<'a, L> {
    type Wide = Value64<'a, L>;
    #[inline(always)]
    fn widen(self) -> Value64<'a, L> {
        Value64 { builder: self.builder, raw: self.builder.borrow_mut().widen(self.raw) }
    }
}

impl<'a, L: Lanes> Double for Value64<'a, L> {
    type Narrow = Value32<'a, L>;
    #[inline(always)]
    fn narrow(self) -> Value32<'a, L> {
        Value32 { builder: self.builder, raw: self.builder.borrow_mut().narrow(self.raw) }
    }
}
