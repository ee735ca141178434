//! The results of operations on one element, bit for bit.
//!
//! The evaluator, constant folding and the code generator's tests all rest on these functions. An element is its bits in the low
//! bytes of a word. Narrow floats compute in f32 and round the result to nearest even; conversions to them go through f32.
//! Integers wrap. Only NaNs are free: that a result is NaN is defined, its sign and payload are not; results leave a
//! program with one NaN only (`HostArray::with_one_nan`). A bitcast keeps the bits of a NaN.
//!
//! ```
//! use spmdc_kernel::{number, scalar::BinaryOp};
//! use spmdc_abi::DType;
//! assert_eq!(number::eval_binary(BinaryOp::FloorDiv, DType::I8, 0xf9, 2), Some(0xfc)); // -7 // 2 is -4
//! assert_eq!(number::eval_binary(BinaryOp::FloorDiv, DType::I8, 7, 0), None);
//! ```

use crate::scalar::{BinaryOp, CompareOp, IntegerOp, LogicalOp, UnaryOp};
use spmdc_abi::{DType, Kind, ReduceOp};
use spmdc_math::{eval_f32, eval_f64, eval2_f32, eval2_f64};

/// The value of a bool or integer element.
pub fn to_int(dtype: DType, bits: u64) -> i128 {
    let unused = 64 - 8 * dtype.size();
    match dtype.kind() {
        Kind::Bool => i128::from(bits != 0),
        Kind::Signed => i128::from((bits << unused) as i64 >> unused),
        Kind::Unsigned | Kind::Key => i128::from(bits & mask(dtype)),
        Kind::Float => unreachable!("{} holds no integer", dtype.name()),
    }
}

/// An integer cut to the width of an integer type; for bool, whether it is not zero.
pub fn from_int(dtype: DType, value: i128) -> u64 {
    if dtype == DType::Bool { u64::from(value != 0) } else { value as u64 & mask(dtype) }
}

/// The value of a float element; every type widens exactly.
pub fn to_float(dtype: DType, bits: u64) -> f64 {
    if dtype == DType::F64 { f64::from_bits(bits) } else { f64::from(to_f32(dtype, bits)) }
}

/// A number rounded to a float type; to narrow types through f32.
pub fn from_float(dtype: DType, value: f64) -> u64 {
    if dtype == DType::F64 { value.to_bits() } else { from_f32(dtype, value as f32) }
}

fn to_f32(dtype: DType, bits: u64) -> f32 {
    if dtype == DType::F32 {
        return f32::from_bits(bits as u32);
    }
    debug_assert!(dtype.is_narrow(), "{} does not compute in f32", dtype.name());
    dtype.widen(bits) as f32
}

fn from_f32(dtype: DType, value: f32) -> u64 {
    if dtype == DType::F32 {
        return value.to_bits().into();
    }
    debug_assert!(dtype.is_narrow(), "{} does not compute in f32", dtype.name());
    dtype.narrow(value.into())
}

/// All ones in the width of the type.
fn mask(dtype: DType) -> u64 {
    u64::MAX >> (64 - 8 * dtype.size())
}

/// Conversion as XLA does it: integers wrap, floats saturate and NaN becomes 0, bool is "not zero". A key is its two words, which as a
/// u64 are its upper and lower half; it has no other conversions.
pub fn cast(from: DType, to: DType, bits: u64) -> Option<u64> {
    if from == to {
        return Some(bits);
    }
    if from == DType::Key || to == DType::Key {
        // The first word comes first in memory.
        return (from == DType::U64 || to == DType::U64).then_some(bits.rotate_left(32));
    }
    if !from.is_float() {
        let value = to_int(from, bits);
        return Some(match to.is_float() {
            true if to == DType::F64 => (value as f64).to_bits(),
            true => from_f32(to, value as f32),
            false => from_int(to, value),
        });
    }
    let value = to_float(from, bits);
    Some(match to.kind() {
        Kind::Bool => u64::from(value != 0.0),
        Kind::Signed => {
            let most = (mask(to) >> 1) as i64;
            (value as i64).clamp(-most - 1, most) as u64 & mask(to)
        }
        Kind::Unsigned | Kind::Key => (value as u64).min(mask(to)),
        Kind::Float => from_float(to, value),
    })
}

/// None where the operation is not defined for the type.
pub fn eval_unary(op: UnaryOp, dtype: DType, bits: u64) -> Option<u64> {
    match dtype.kind() {
        Kind::Key => None,
        Kind::Bool if op == UnaryOp::Not => Some(bits ^ 1),
        Kind::Bool => (op == UnaryOp::Abs).then_some(bits),
        Kind::Float => {
            if let Some(holds) = float_test(op, to_float(dtype, bits)) {
                return Some(u64::from(holds));
            }
            if dtype == DType::F64 {
                return float_unary_f64(op, f64::from_bits(bits)).map(f64::to_bits);
            }
            float_unary_f32(op, to_f32(dtype, bits)).map(|y| from_f32(dtype, y))
        }
        Kind::Signed | Kind::Unsigned => {
            let x = to_int(dtype, bits);
            let y = match op.of_integers()? {
                IntegerOp::Neg => -x,
                IntegerOp::Not => !x,
                IntegerOp::Abs => x.abs(),
                IntegerOp::Sign => x.signum(),
                IntegerOp::Square => x.wrapping_mul(x),
                IntegerOp::Relu => x.max(0),
                IntegerOp::Popcount => bits.count_ones().into(),
                IntegerOp::Clz => i128::from(bits.leading_zeros()) - (64 - 8 * dtype.size() as i128),
            };
            Some(from_int(dtype, y))
        }
    }
}

/// The answer of an operation for which [`UnaryOp::is_test`] holds; None for any other.
fn float_test(op: UnaryOp, x: f64) -> Option<bool> {
    match op {
        UnaryOp::IsNan => Some(x.is_nan()),
        UnaryOp::IsInf => Some(x.is_infinite()),
        UnaryOp::IsFinite => Some(x.is_finite()),
        UnaryOp::Signbit => Some(x.is_sign_negative() && !x.is_nan()),
        UnaryOp::Neg
        | UnaryOp::Not
        | UnaryOp::Abs
        | UnaryOp::Sign
        | UnaryOp::Square
        | UnaryOp::Relu
        | UnaryOp::Reciprocal
        | UnaryOp::Math(_)
        | UnaryOp::Popcount
        | UnaryOp::Clz => None,
    }
}

/// None where the operation is not defined: for the type, or an integer divided by zero.
pub fn eval_binary(op: BinaryOp, dtype: DType, lhs: u64, rhs: u64) -> Option<u64> {
    match dtype.kind() {
        Kind::Key => None,
        Kind::Bool => op.of_bools().map(|op| match op {
            LogicalOp::And => lhs & rhs,
            LogicalOp::Or => lhs | rhs,
            LogicalOp::Xor => lhs ^ rhs,
        }),
        Kind::Float if op == BinaryOp::Nextafter => Some(next_after(dtype, lhs, rhs)),
        Kind::Float if dtype == DType::F64 => {
            float_binary_f64(op, f64::from_bits(lhs), f64::from_bits(rhs)).map(f64::to_bits)
        }
        Kind::Float => float_binary_f32(op, to_f32(dtype, lhs), to_f32(dtype, rhs)).map(|y| from_f32(dtype, y)),
        Kind::Signed | Kind::Unsigned => {
            int_binary(op, dtype, to_int(dtype, lhs), to_int(dtype, rhs)).map(|y| from_int(dtype, y))
        }
    }
}

/// `x * y + z`, rounded once; narrow floats compute in f32 and are rounded again. None for types other than floats.
pub fn eval_fma(dtype: DType, x: u64, y: u64, z: u64) -> Option<u64> {
    if !dtype.is_float() {
        return None;
    }
    if dtype == DType::F64 {
        return Some(f64::from_bits(x).mul_add(f64::from_bits(y), f64::from_bits(z)).to_bits());
    }
    Some(from_f32(dtype, to_f32(dtype, x).mul_add(to_f32(dtype, y), to_f32(dtype, z))))
}

/// None for keys. A NaN is unequal to everything and neither smaller nor larger.
pub fn eval_compare(op: CompareOp, dtype: DType, lhs: u64, rhs: u64) -> Option<bool> {
    let order = match dtype.kind() {
        Kind::Key => return None,
        Kind::Float => to_float(dtype, lhs).partial_cmp(&to_float(dtype, rhs)),
        Kind::Bool | Kind::Signed | Kind::Unsigned => Some(to_int(dtype, lhs).cmp(&to_int(dtype, rhs))),
    };
    Some(op.holds(order))
}

fn int_binary(op: BinaryOp, dtype: DType, x: i128, y: i128) -> Option<i128> {
    let width = 8 * dtype.size() as i128;
    Some(match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x.wrapping_mul(y),
        BinaryOp::Minimum => x.min(y),
        BinaryOp::Maximum => x.max(y),
        BinaryOp::And => x & y,
        BinaryOp::Or => x | y,
        BinaryOp::Xor => x ^ y,
        BinaryOp::FloorDiv if y != 0 => floor_div(x, y),
        BinaryOp::Rem if y != 0 => x - y * floor_div(x, y),
        BinaryOp::FloorDiv | BinaryOp::Rem => return None,
        BinaryOp::Pow => int_pow(x, y),
        BinaryOp::Shl if (0..width).contains(&y) => x.wrapping_shl(y as u32),
        BinaryOp::Shl => 0,
        BinaryOp::Shr if (0..width).contains(&y) => x >> y,
        BinaryOp::Shr if x < 0 => -1,
        BinaryOp::Shr => 0,
        BinaryOp::Gcd => greatest_common_divisor(x, y),
        BinaryOp::Div
        | BinaryOp::Atan2
        | BinaryOp::Hypot
        | BinaryOp::Logaddexp
        | BinaryOp::Copysign
        | BinaryOp::Nextafter => return None,
    })
}

/// By Euclid's algorithm.
fn greatest_common_divisor(x: i128, y: i128) -> i128 {
    let (mut x, mut y) = (x.abs(), y.abs());
    while y != 0 {
        (x, y) = (y, x % y);
    }
    x
}

/// The neighbour of the float `from` in the direction of `to`: numbers of one sign have the order of their bits.
fn next_after(dtype: DType, from: u64, to: u64) -> u64 {
    let (x, y) = (to_float(dtype, from), to_float(dtype, to));
    if x.is_nan() || y.is_nan() {
        return from_float(dtype, f64::NAN);
    }
    let sign = nothing_added(dtype);
    if x == y {
        to
    } else if x == 0.0 {
        (to & sign) | 1
    } else if (x < y) == (x > 0.0) {
        from + 1
    } else {
        from - 1
    }
}

fn floor_div(x: i128, y: i128) -> i128 {
    let quotient = x / y;
    if x % y != 0 && (x < 0) != (y < 0) { quotient - 1 } else { quotient }
}

/// By repeated squaring, wrapping. A negative exponent gives the truncated quotient `1 / x^-y`, and 0 for `x = 0`.
fn int_pow(x: i128, y: i128) -> i128 {
    if y < 0 {
        return match x {
            1 => 1,
            -1 if y % 2 == 0 => 1,
            -1 => -1,
            _ => 0,
        };
    }
    let (mut power, mut square, mut rest) = (1i128, x, y);
    while rest > 0 {
        if rest & 1 == 1 {
            power = power.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    power
}

macro_rules! float_operations {
    ($float:ident, $unary:ident, $binary:ident, $eval:ident, $eval2:ident) => {
        fn $unary(op: UnaryOp, x: $float) -> Option<$float> {
            Some(match op {
                UnaryOp::Neg => -x,
                UnaryOp::Abs => x.abs(),
                UnaryOp::Sign if x == 0.0 || x.is_nan() => x,
                UnaryOp::Sign => (1.0 as $float).copysign(x),
                UnaryOp::Square => x * x,
                UnaryOp::Relu => {
                    if x <= 0.0 {
                        0.0
                    } else {
                        x
                    }
                }
                UnaryOp::Reciprocal => 1.0 / x,
                UnaryOp::Not
                | UnaryOp::IsNan
                | UnaryOp::IsInf
                | UnaryOp::IsFinite
                | UnaryOp::Signbit
                | UnaryOp::Popcount
                | UnaryOp::Clz => return None,
                UnaryOp::Math(f) => $eval(f, x),
            })
        }

        fn $binary(op: BinaryOp, x: $float, y: $float) -> Option<$float> {
            Some(match op {
                BinaryOp::Add => x + y,
                BinaryOp::Sub => x - y,
                BinaryOp::Mul => x * y,
                BinaryOp::Div => x / y,
                // As Python's `divmod`: exact remainder first, then the quotient of what divides without rest.
                BinaryOp::FloorDiv => {
                    let rest = x % y;
                    let quotient = (if y == 0.0 { x } else { x - rest }) / y;
                    let below = rest != 0.0 && (rest < 0.0) != (y < 0.0);
                    (if below { quotient - 1.0 } else { quotient }).round()
                }
                BinaryOp::Rem => {
                    let rest = x % y;
                    if rest != 0.0 && (rest < 0.0) != (y < 0.0) { rest + y } else { rest }
                }
                BinaryOp::Minimum | BinaryOp::Maximum if x.is_nan() || y.is_nan() => x + y,
                // Of the two zeros, the positive one is the larger.
                BinaryOp::Minimum if x == y => $float::from_bits(x.to_bits() | y.to_bits()),
                BinaryOp::Minimum => x.min(y),
                BinaryOp::Maximum if x == y => $float::from_bits(x.to_bits() & y.to_bits()),
                BinaryOp::Maximum => x.max(y),
                BinaryOp::Copysign if y.is_nan() => x.abs(),
                BinaryOp::Copysign => x.copysign(y),
                BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Hypot | BinaryOp::Logaddexp => $eval2(op.math()?, x, y),
                // [`next_after`] has the neighbours of all float types.
                BinaryOp::Nextafter => return None,
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr | BinaryOp::Gcd => {
                    return None;
                }
            })
        }
    };
}

float_operations!(f32, float_unary_f32, float_binary_f32, eval_f32, eval2_f32);
float_operations!(f64, float_unary_f64, float_binary_f64, eval_f64, eval2_f64);

/// The bits that change nothing when they are added, also not the sign of zero.
pub fn nothing_added(dtype: DType) -> u64 {
    if dtype.is_float() { 1 << (8 * dtype.size() - 1) } else { 0 }
}

/// The identity element of a combination: it changes no element with which it is combined.
pub fn identity_element(op: ReduceOp, dtype: DType) -> u64 {
    // For floats infinity, or the largest number if the type has none.
    let extreme = |sign: f64| match dtype.format() {
        Some(format) => Some(dtype.narrow(sign * dtype.widen(format.last()))),
        None => cast(DType::F64, dtype, (sign * 1e30).to_bits()),
    };
    let bits = match op {
        ReduceOp::Sum | ReduceOp::Or => Some(0),
        ReduceOp::Product => cast(DType::I32, dtype, 1),
        ReduceOp::And => cast(DType::I64, dtype, u64::MAX),
        ReduceOp::Max if dtype == DType::Bool => Some(0),
        ReduceOp::Max => extreme(-1.0),
        ReduceOp::Min if dtype == DType::Bool => Some(1),
        ReduceOp::Min => extreme(1.0),
    };
    bits.expect("every type but keys converts")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn int(op: BinaryOp, dtype: DType, x: i128, y: i128) -> Option<i128> {
        eval_binary(op, dtype, from_int(dtype, x), from_int(dtype, y)).map(|bits| to_int(dtype, bits))
    }

    fn float(op: BinaryOp, x: f32, y: f32) -> f32 {
        f32::from_bits(eval_binary(op, DType::F32, x.to_bits().into(), y.to_bits().into()).unwrap() as u32)
    }

    #[test]
    fn integers_wrap_and_round_down() {
        assert_eq!(int(BinaryOp::Add, DType::I8, 127, 1), Some(-128));
        assert_eq!(int(BinaryOp::Mul, DType::U64, i128::from(u64::MAX), i128::from(u64::MAX)), Some(1));
        assert_eq!(int(BinaryOp::FloorDiv, DType::I32, -7, 2), Some(-4));
        assert_eq!(int(BinaryOp::Rem, DType::I32, -7, 2), Some(1));
        assert_eq!(int(BinaryOp::Rem, DType::I32, 7, -2), Some(-1));
        assert_eq!(int(BinaryOp::FloorDiv, DType::I32, i128::from(i32::MIN), -1), Some(i128::from(i32::MIN)));
        assert_eq!(int(BinaryOp::Rem, DType::U8, 7, 0), None);
        assert_eq!(eval_unary(UnaryOp::Abs, DType::I8, 0x80), Some(0x80));
    }

    #[test]
    fn integer_powers_and_shifts_follow_jax() {
        assert_eq!(int(BinaryOp::Pow, DType::I32, 3, 33), Some(-1504003197));
        let inverses: Vec<_> = (-2..3).map(|x| int(BinaryOp::Pow, DType::I32, x, -1).unwrap()).collect();
        assert_eq!(inverses, [0, -1, 0, 1, 0]);
        assert_eq!(int(BinaryOp::Shl, DType::I32, 1, 33), Some(0));
        assert_eq!(int(BinaryOp::Shr, DType::I32, -8, 33), Some(-1));
        assert_eq!(int(BinaryOp::Shr, DType::U8, 0x80, 7), Some(1));
        assert_eq!(int(BinaryOp::Shl, DType::I32, 1, -1), Some(0));
    }

    #[test]
    fn bits_are_counted_in_the_width_of_the_type() {
        let of = |op, dtype, x| eval_unary(op, dtype, from_int(dtype, x)).map(|bits| to_int(dtype, bits));
        assert_eq!([-1, 0, 6].map(|x| of(UnaryOp::Popcount, DType::I8, x)), [8, 0, 2].map(Some));
        assert_eq!([-1, 0, 6].map(|x| of(UnaryOp::Clz, DType::I8, x)), [0, 8, 5].map(Some));
        assert_eq!(of(UnaryOp::Clz, DType::U64, 1), Some(63));
        assert_eq!(eval_unary(UnaryOp::Clz, DType::Bool, 1), None);
        assert_eq!(eval_unary(UnaryOp::Popcount, DType::F32, 1), None);
    }

    #[test]
    fn common_divisors_are_not_negative() {
        assert_eq!(int(BinaryOp::Gcd, DType::I32, -12, 18), Some(6));
        assert_eq!(int(BinaryOp::Gcd, DType::U8, 0, 200), Some(200));
        assert_eq!(int(BinaryOp::Gcd, DType::I8, 0, 0), Some(0));
        assert_eq!(int(BinaryOp::Gcd, DType::I8, -128, 6), Some(2));
        // 128 does not fit.
        assert_eq!(int(BinaryOp::Gcd, DType::I8, -128, 0), Some(-128));
    }

    #[test]
    fn signs_are_those_of_numbers() {
        assert_eq!(float(BinaryOp::Copysign, 2.0, -0.0), -2.0);
        assert_eq!(float(BinaryOp::Copysign, -2.0, -f32::NAN), 2.0);
        assert_eq!(eval_unary(UnaryOp::Signbit, DType::Bf16, 0x8000), Some(1));
        assert_eq!(eval_unary(UnaryOp::Signbit, DType::F8e4m3, 0xff), Some(0));
    }

    #[test]
    fn neighbours_are_those_of_the_type() {
        assert_eq!(float(BinaryOp::Nextafter, 1.0, 2.0), 1.0f32.next_up());
        assert_eq!(float(BinaryOp::Nextafter, -1.0, 2.0), (-1.0f32).next_up());
        assert_eq!(float(BinaryOp::Nextafter, 0.0, -1.0).to_bits(), 0x8000_0001);
        assert_eq!(float(BinaryOp::Nextafter, -1e-45, 1.0).to_bits(), 0x8000_0000);
        assert_eq!(float(BinaryOp::Nextafter, 0.0, -0.0).to_bits(), 0x8000_0000);
        assert_eq!(float(BinaryOp::Nextafter, f32::INFINITY, 0.0), f32::MAX);
        assert_eq!(eval_binary(BinaryOp::Nextafter, DType::F16, 0x3c00, 0x4000), Some(0x3c01));
        assert_eq!(eval_binary(BinaryOp::Nextafter, DType::F8e5m2, 0x7b, 0x7c), Some(0x7c));
    }

    #[test]
    fn nan_wins_and_zeros_are_ordered() {
        assert!(float(BinaryOp::Minimum, 1.0, f32::NAN).is_nan());
        assert!(float(BinaryOp::Maximum, f32::NAN, 1.0).is_nan());
        assert_eq!(float(BinaryOp::Maximum, -0.0, 0.0).to_bits(), 0);
        assert_eq!(float(BinaryOp::Minimum, 0.0, -0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(float(BinaryOp::Maximum, 2.0, -3.0), 2.0);
    }

    #[test]
    fn float_division_rounds_down() {
        assert_eq!(float(BinaryOp::FloorDiv, -7.0, 2.0), -4.0);
        assert_eq!(float(BinaryOp::Rem, -7.0, 2.0), 1.0);
        assert_eq!(float(BinaryOp::Rem, 7.0, -2.0), -1.0);
        assert_eq!(float(BinaryOp::FloorDiv, 1.0, 0.0), f32::INFINITY);
        assert!(float(BinaryOp::Rem, 1.0, 0.0).is_nan());
        assert_eq!(float(BinaryOp::FloorDiv, 1.0, 0.1), 9.0);
    }

    #[test]
    fn halves_compute_in_single_precision() {
        let (one, tiny) = (0x3c00, 0x1000);
        // 1 + 2^-11 is a tie: it rounds to the even 1.
        assert_eq!(eval_binary(BinaryOp::Add, DType::F16, one, tiny), Some(one));
        assert_eq!(eval_unary(UnaryOp::Sign, DType::Bf16, 0x8000), Some(0x8000));
        assert_eq!(eval_unary(UnaryOp::IsInf, DType::F16, 0x7c00), Some(1));
    }

    #[test]
    fn casts_saturate_and_wrap() {
        let from = |x: f32, to| cast(DType::F32, to, x.to_bits().into()).unwrap();
        assert_eq!(from(f32::NAN, DType::I32), 0);
        assert_eq!(from(1e20, DType::I32), i32::MAX as u64);
        assert_eq!(from(-1e20, DType::U8), 0);
        assert_eq!(from(-3.9, DType::I8), u64::from(-3i8 as u8));
        assert_eq!(from(f32::NAN, DType::Bool), 1);
        assert_eq!(cast(DType::I32, DType::U8, 0x1_02), Some(2));
        // Through f32: 1 + 2^-11 + 2^-40 loses its last bit first and then rounds to even.
        let value = (1.0 + 2f64.powi(-11) + 2f64.powi(-40)).to_bits();
        assert_eq!(cast(DType::F64, DType::F16, value), Some(0x3c00));
        // Nothing is larger than 448 in a type without infinity; halfway to the next number, which is not there, it is still 448.
        let to = |x: f64, to| cast(DType::F64, to, x.to_bits());
        assert_eq!(
            [464.0, 464.1, -1e9, f64::NEG_INFINITY].map(|x| to(x, DType::F8e4m3)),
            [0x7e, 0x7f, 0xff, 0xff].map(Some)
        );
        assert_eq!([57344.0, 61439.0, 61440.0].map(|x| to(x, DType::F8e5m2)), [0x7b, 0x7b, 0x7c].map(Some));
        assert_eq!(identity_element(ReduceOp::Max, DType::F8e4m3), 0xfe);
        assert_eq!(identity_element(ReduceOp::Min, DType::F8e5m2), 0x7c);
        assert_eq!(cast(DType::Key, DType::I32, 0), None);
        assert_eq!(cast(DType::Key, DType::U64, 42 << 32), Some(42));
        assert_eq!(cast(DType::U64, DType::Key, 42), Some(42 << 32));
    }

    #[test]
    fn comparisons_know_signs_and_nan() {
        assert_eq!(eval_compare(CompareOp::Lt, DType::I8, 0xff, 0), Some(true));
        assert_eq!(eval_compare(CompareOp::Lt, DType::U8, 0xff, 0), Some(false));
        let nan = u64::from(f32::NAN.to_bits());
        assert_eq!(eval_compare(CompareOp::Ne, DType::F32, nan, nan), Some(true));
        assert_eq!(eval_compare(CompareOp::Ge, DType::F32, nan, 0), Some(false));
    }
}
