//! One lane, computed immediately: used by the reference evaluator and the accuracy sweep.

use super::{Lanes, Rare};

/// A bundle of one lane. Rust's float operations are IEEE operations, so this is the plainest implementor.
pub struct SingleLane;

/// The operations of one width; the two halves of the trait differ only in their types.
macro_rules! scalar_half {
    ($float:ident, $int:ident; $constant:ident $add:ident $sub:ident $mul:ident $div:ident $sqrt:ident
     $fma:ident $neg:ident $abs:ident $nearest:ident $floor:ident $ceil:ident $trunc:ident $eq:ident $lt:ident $le:ident
     $select:ident $to_bits:ident $from_bits:ident; $iconstant:ident $iadd:ident $isub:ident $iand:ident $ior:ident
     $ixor:ident $shl:ident $shr:ident; $mand:ident $mor:ident; $rarely:ident $rare:ident) => {
        #[inline(always)]
        fn $constant(&mut self, value: $float) -> $float {
            value
        }
        #[inline(always)]
        fn $add(&mut self, a: $float, b: $float) -> $float {
            a + b
        }
        #[inline(always)]
        fn $sub(&mut self, a: $float, b: $float) -> $float {
            a - b
        }
        #[inline(always)]
        fn $mul(&mut self, a: $float, b: $float) -> $float {
            a * b
        }
        #[inline(always)]
        fn $div(&mut self, a: $float, b: $float) -> $float {
            a / b
        }
        #[inline(always)]
        fn $sqrt(&mut self, a: $float) -> $float {
            a.sqrt()
        }
        #[inline(always)]
        fn $fma(&mut self, a: $float, b: $float, c: $float) -> $float {
            a.mul_add(b, c)
        }
        #[inline(always)]
        fn $neg(&mut self, a: $float) -> $float {
            -a
        }
        #[inline(always)]
        fn $abs(&mut self, a: $float) -> $float {
            a.abs()
        }
        #[inline(always)]
        fn $nearest(&mut self, a: $float) -> $float {
            a.round_ties_even()
        }
        #[inline(always)]
        fn $floor(&mut self, a: $float) -> $float {
            a.floor()
        }
        #[inline(always)]
        fn $ceil(&mut self, a: $float) -> $float {
            a.ceil()
        }
        #[inline(always)]
        fn $trunc(&mut self, a: $float) -> $float {
            a.trunc()
        }
        #[inline(always)]
        fn $eq(&mut self, a: $float, b: $float) -> bool {
            a == b
        }
        #[inline(always)]
        fn $lt(&mut self, a: $float, b: $float) -> bool {
            a < b
        }
        #[inline(always)]
        fn $le(&mut self, a: $float, b: $float) -> bool {
            a <= b
        }
        #[inline(always)]
        fn $select(&mut self, mask: bool, a: $float, b: $float) -> $float {
            if mask { a } else { b }
        }
        #[inline(always)]
        fn $to_bits(&mut self, a: $float) -> $int {
            a.to_bits().cast_signed()
        }
        #[inline(always)]
        fn $from_bits(&mut self, a: $int) -> $float {
            $float::from_bits(a.cast_unsigned())
        }
        #[inline(always)]
        fn $iconstant(&mut self, value: $int) -> $int {
            value
        }
        #[inline(always)]
        fn $iadd(&mut self, a: $int, b: $int) -> $int {
            a.wrapping_add(b)
        }
        #[inline(always)]
        fn $isub(&mut self, a: $int, b: $int) -> $int {
            a.wrapping_sub(b)
        }
        #[inline(always)]
        fn $iand(&mut self, a: $int, b: $int) -> $int {
            a & b
        }
        #[inline(always)]
        fn $ior(&mut self, a: $int, b: $int) -> $int {
            a | b
        }
        #[inline(always)]
        fn $ixor(&mut self, a: $int, b: $int) -> $int {
            a ^ b
        }
        #[inline(always)]
        fn $shl(&mut self, a: $int, by: u32) -> $int {
            a << by
        }
        #[inline(always)]
        fn $shr(&mut self, a: $int, by: u32) -> $int {
            (a.cast_unsigned() >> by).cast_signed()
        }
        #[inline(always)]
        fn $mand(&mut self, a: bool, b: bool) -> bool {
            a & b
        }
        #[inline(always)]
        fn $mor(&mut self, a: bool, b: bool) -> bool {
            a | b
        }
        #[inline(always)]
        fn $rarely(&mut self, mask: bool, common: $float, rare: Rare, x: $float) -> $float {
            if mask { super::$rare(self, rare, x) } else { common }
        }
    };
}

impl Lanes for SingleLane {
    type F32 = f32;
    type F64 = f64;
    type I32 = i32;
    type I64 = i64;
    type M32 = bool;
    type M64 = bool;

    scalar_half! { f32, i32; const_f32 add_f32 sub_f32 mul_f32 div_f32 sqrt_f32
    fma_f32 neg_f32 abs_f32 nearest_f32 floor_f32 ceil_f32 trunc_f32 eq_f32 lt_f32 le_f32
    select_f32 to_bits_f32 from_bits_f32; const_i32 add_i32 sub_i32 and_i32 or_i32
    xor_i32 shl_i32 shr_i32; and_m32 or_m32; rarely_f32 rare_f32 }

    scalar_half! { f64, i64; const_f64 add_f64 sub_f64 mul_f64 div_f64 sqrt_f64
    fma_f64 neg_f64 abs_f64 nearest_f64 floor_f64 ceil_f64 trunc_f64 eq_f64 lt_f64 le_f64
    select_f64 to_bits_f64 from_bits_f64; const_i64 add_i64 sub_i64 and_i64 or_i64
    xor_i64 shl_i64 shr_i64; and_m64 or_m64; rarely_f64 rare_f64 }

    #[inline(always)]
    fn widen(&mut self, a: f32) -> f64 {
        f64::from(a)
    }
    #[inline(always)]
    fn narrow(&mut self, a: f64) -> f32 {
        a as f32
    }
}
