//! Several lanes at once, as arrays.
//!
//! The loops over the lanes are short and without branches, so the Rust compiler makes vector instructions of them where
//! the target has them: this is how a great many numbers are evaluated without a code generator.

use super::{Lanes, Rare};

/// A bundle of `N` lanes. A mask has all bits of a lane set or none.
pub struct Bundle<const N: usize>;

/// The operations of one width; the two halves of the trait differ only in their types.
macro_rules! bundle_half {
    ($float:ident, $int:ident, $uint:ident; $constant:ident $iconstant:ident $fma:ident $select:ident $to_bits:ident
     $from_bits:ident $shl:ident $shr:ident $rarely:ident $rare:ident;
     $($binary:ident = $binary_op:expr,)*; $($unary:ident = $unary_op:expr,)*; $($compare:ident = $compare_op:expr,)*;
     $($integer:ident = $integer_op:expr,)*; $($mask:ident = $mask_op:expr,)*) => {
        #[inline(always)]
        fn $constant(&mut self, value: $float) -> [$float; N] {
            [value; N]
        }
        #[inline(always)]
        fn $iconstant(&mut self, value: $int) -> [$int; N] {
            [value; N]
        }
        #[inline(always)]
        fn $fma(&mut self, a: [$float; N], b: [$float; N], c: [$float; N]) -> [$float; N] {
            std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
        }
        #[inline(always)]
        fn $select(&mut self, mask: [$uint; N], a: [$float; N], b: [$float; N]) -> [$float; N] {
            std::array::from_fn(|i| $float::from_bits(mask[i] & a[i].to_bits() | !mask[i] & b[i].to_bits()))
        }
        #[inline(always)]
        fn $to_bits(&mut self, a: [$float; N]) -> [$int; N] {
            a.map(|a| a.to_bits().cast_signed())
        }
        #[inline(always)]
        fn $from_bits(&mut self, a: [$int; N]) -> [$float; N] {
            a.map(|a| $float::from_bits(a.cast_unsigned()))
        }
        #[inline(always)]
        fn $shl(&mut self, a: [$int; N], by: u32) -> [$int; N] {
            a.map(|a| a << by)
        }
        #[inline(always)]
        fn $shr(&mut self, a: [$int; N], by: u32) -> [$int; N] {
            a.map(|a| (a.cast_unsigned() >> by).cast_signed())
        }
        #[inline(always)]
        fn $rarely(&mut self, mask: [$uint; N], common: [$float; N], rare: Rare, x: [$float; N]) -> [$float; N] {
            if mask.iter().all(|&lane| lane == 0) {
                return common;
            }
            let value = super::$rare(self, rare, x);
            self.$select(mask, value, common)
        }
        $(
            #[inline(always)]
            fn $binary(&mut self, a: [$float; N], b: [$float; N]) -> [$float; N] {
                std::array::from_fn(|i| $binary_op(a[i], b[i]))
            }
        )*
        $(
            #[inline(always)]
            fn $unary(&mut self, a: [$float; N]) -> [$float; N] {
                a.map($unary_op)
            }
        )*
        $(
            #[inline(always)]
            fn $compare(&mut self, a: [$float; N], b: [$float; N]) -> [$uint; N] {
                std::array::from_fn(|i| if $compare_op(&a[i], &b[i]) { $uint::MAX } else { 0 })
            }
        )*
        $(
            #[inline(always)]
            fn $integer(&mut self, a: [$int; N], b: [$int; N]) -> [$int; N] {
                std::array::from_fn(|i| $integer_op(a[i], b[i]))
            }
        )*
        $(
            #[inline(always)]
            fn $mask(&mut self, a: [$uint; N], b: [$uint; N]) -> [$uint; N] {
                std::array::from_fn(|i| $mask_op(a[i], b[i]))
            }
        )*
    };
}

impl<const N: usize> Lanes for Bundle<N> {
    type F32 = [f32; N];
    type F64 = [f64; N];
    type I32 = [i32; N];
    type I64 = [i64; N];
    type M32 = [u32; N];
    type M64 = [u64; N];

    bundle_half! {
        f32, i32, u32; const_f32 const_i32 fma_f32 select_f32 to_bits_f32 from_bits_f32 shl_i32 shr_i32 rarely_f32 rare_f32;
        add_f32 = std::ops::Add::add, sub_f32 = std::ops::Sub::sub, mul_f32 = std::ops::Mul::mul,
        div_f32 = std::ops::Div::div,;
        sqrt_f32 = f32::sqrt, neg_f32 = std::ops::Neg::neg, abs_f32 = f32::abs, nearest_f32 = f32::round_ties_even,
        floor_f32 = f32::floor, ceil_f32 = f32::ceil, trunc_f32 = f32::trunc,;
        eq_f32 = f32::eq, lt_f32 = f32::lt, le_f32 = f32::le,;
        add_i32 = i32::wrapping_add, sub_i32 = i32::wrapping_sub, and_i32 = std::ops::BitAnd::bitand,
        or_i32 = std::ops::BitOr::bitor, xor_i32 = std::ops::BitXor::bitxor,;
        and_m32 = std::ops::BitAnd::bitand, or_m32 = std::ops::BitOr::bitor,
    }

    bundle_half! {
        f64, i64, u64; const_f64 const_i64 fma_f64 select_f64 to_bits_f64 from_bits_f64 shl_i64 shr_i64 rarely_f64 rare_f64;
        add_f64 = std::ops::Add::add, sub_f64 = std::ops::Sub::sub, mul_f64 = std::ops::Mul::mul,
        div_f64 = std::ops::Div::div,;
        sqrt_f64 = f64::sqrt, neg_f64 = std::ops::Neg::neg, abs_f64 = f64::abs, nearest_f64 = f64::round_ties_even,
        floor_f64 = f64::floor, ceil_f64 = f64::ceil, trunc_f64 = f64::trunc,;
        eq_f64 = f64::eq, lt_f64 = f64::lt, le_f64 = f64::le,;
        add_i64 = i64::wrapping_add, sub_i64 = i64::wrapping_sub, and_i64 = std::ops::BitAnd::bitand,
        or_i64 = std::ops::BitOr::bitor, xor_i64 = std::ops::BitXor::bitxor,;
        and_m64 = std::ops::BitAnd::bitand, or_m64 = std::ops::BitOr::bitor,
    }

    #[inline(always)]
    fn widen(&mut self, a: [f32; N]) -> [f64; N] {
        a.map(f64::from)
    }
    #[inline(always)]
    fn narrow(&mut self, a: [f64; N]) -> [f32; N] {
        a.map(|a| a as f32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;

    #[test]
    fn many_lanes_compute_what_one_computes() {
        let numbers: [f32; 8] = [0.3, -0.7, 1.5, 12345.678, 3e9, -1e-40, f32::INFINITY, f32::NAN];
        for &f in MathFn::ALL {
            let same = unary_f32(&mut Bundle::<8>, f, numbers).iter().zip(numbers).all(|(y, x)| {
                let one = eval_f32(f, x);
                y.to_bits() == one.to_bits() || y.is_nan() && one.is_nan()
            });
            assert!(same, "{} in single precision", f.name());
            let wide = numbers.map(f64::from);
            let same = unary_f64(&mut Bundle::<8>, f, wide).iter().zip(wide).all(|(y, x)| {
                let one = eval_f64(f, x);
                y.to_bits() == one.to_bits() || y.is_nan() && one.is_nan()
            });
            assert!(same, "{} in double precision", f.name());
        }
    }
}
