//! Half-precision numbers in single-precision lanes.
//!
//! In registers an `f16` or `bf16` is an `f32` with a representable value; only memory has 16 bits. Conversions are integer
//! arithmetic, the same for scalars and vectors; they round to nearest even and keep subnormals, infinities and NaN.

use super::vector::{Bundle, Vector};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, I32};
use spmdc_abi::DType;

const F32_INFINITY: i64 = 0x7f80_0000;
/// 2^-14, the smallest `f16` that is not subnormal.
const F16_SMALLEST_NORMAL: i64 = (127 - 14) << 23;
/// 2^16: from here on every `f32` exceeds the range of `f16`.
const F16_LIMIT: i64 = (127 + 16) << 23;
/// 0.5, whose unit in the last place is the smallest subnormal `f16`.
const F16_SUBNORMAL_MAGIC: i64 = (127 - 1) << 23;

impl Vector<'_, '_> {
    /// Numbers from 16 bits of memory, in the low half of `I32` lanes.
    pub fn decode_half(&mut self, dtype: DType, bits: Bundle) -> Bundle {
        if dtype == DType::Bf16 {
            let high = self.shift_left(bits, 16);
            return self.bitcast(F32, high);
        }
        let sign = self.and_int(bits, 0x8000);
        let sign = self.shift_left(sign, 16);
        let magnitude = self.and_int(bits, 0x7fff);
        let shifted = self.shift_left(magnitude, 13);
        // The exponent's bias is too small by 112: a product corrects it, also for subnormals, which are exact in f32.
        let small = self.bitcast(F32, shifted);
        let scale = self.float(F32, 2.0_f64.powi(112));
        let scaled = self.mul(small, scale);
        let scaled = self.bitcast(I32, scaled);
        let infinite = self.or_int(shifted, F32_INFINITY);
        let largest = self.int(I32, 0x7bff);
        let special = self.compare_ints(IntCC::SignedGreaterThan, magnitude, largest);
        let value = self.select(special, infinite, scaled);
        let value = self.or(value, sign);
        self.bitcast(F32, value)
    }

    /// The 16 bits of numbers that [`Vector::round_to_half`] has made representable, in `I32` lanes.
    pub fn encode_half(&mut self, dtype: DType, value: Bundle) -> Bundle {
        let bits = self.bitcast(I32, value);
        if dtype == DType::Bf16 {
            return self.shift_right(bits, 16);
        }
        let sign = self.shift_right(bits, 16);
        let sign = self.and_int(sign, 0x8000);
        let magnitude = self.and_int(bits, 0x7fff_ffff);
        // Normal: a smaller bias. Subnormal: multiples of the last place of the magic number. Infinity and NaN: all ones.
        let rebias = self.int(I32, (127 - 15) << 23);
        let normal = self.sub(magnitude, rebias);
        let normal = self.shift_right(normal, 13);
        let (float, magic) = (self.bitcast(F32, magnitude), self.int(I32, F16_SUBNORMAL_MAGIC));
        let magic_float = self.bitcast(F32, magic);
        let sum = self.add(float, magic_float);
        let sum = self.bitcast(I32, sum);
        let subnormal = self.sub(sum, magic);
        let smallest = self.int(I32, F16_SMALLEST_NORMAL);
        let is_subnormal = self.compare_ints(IntCC::SignedLessThan, magnitude, smallest);
        let finite = self.select(is_subnormal, subnormal, normal);
        let limit = self.int(I32, F16_LIMIT);
        let is_special = self.compare_ints(IntCC::SignedGreaterThanOrEqual, magnitude, limit);
        let fraction = self.shift_right(magnitude, 13);
        let fraction = self.and_int(fraction, 0x3ff);
        let special = self.or_int(fraction, 0x7c00);
        let half = self.select(is_special, special, finite);
        self.or(half, sign)
    }

    /// The nearest representable number; ties to even.
    pub fn round_to_half(&mut self, dtype: DType, value: Bundle) -> Bundle {
        let bits = self.bitcast(I32, value);
        let dropped = if dtype == DType::Bf16 { 16 } else { 13 };
        // Adding just under half of the last kept place, and the parity of that place, carries exactly if rounding up is required;
        // a carry out of the fraction gives the next exponent, or infinity.
        let parity = self.shift_right(bits, dropped);
        let parity = self.and_int(parity, 1);
        let under_half = self.int(I32, (1 << (dropped - 1)) - 1);
        let raised = self.add(bits, under_half);
        let raised = self.add(raised, parity);
        let rounded = self.and_int(raised, -(1 << dropped));
        let rounded = if dtype == DType::Bf16 { rounded } else { self.fit_f16(bits, rounded) };
        let rounded = self.bitcast(F32, rounded);
        // A NaN could carry into the sign or lose its fraction: use the quiet NaN.
        let quiet = self.int(I32, 0x7fc0_0000);
        let quiet = self.bitcast(F32, quiet);
        let is_nan = self.compare_floats(FloatCC::Unordered, value, value);
        self.select(is_nan, quiet, rounded)
    }

    /// Corrects `f16` values for which rounding the fraction alone is wrong: subnormals, and numbers beyond the range.
    fn fit_f16(&mut self, bits: Bundle, rounded: Bundle) -> Bundle {
        let sign = self.and_int(bits, 0x8000_0000);
        let magnitude = self.and_int(bits, 0x7fff_ffff);
        let (float, magic) = (self.bitcast(F32, magnitude), self.int(I32, F16_SUBNORMAL_MAGIC));
        let magic = self.bitcast(F32, magic);
        let sum = self.add(float, magic);
        let subnormal = self.sub(sum, magic);
        let subnormal = self.bitcast(I32, subnormal);
        let subnormal = self.or(subnormal, sign);
        let smallest = self.int(I32, F16_SMALLEST_NORMAL);
        let is_subnormal = self.compare_ints(IntCC::SignedLessThan, magnitude, smallest);
        let value = self.select(is_subnormal, subnormal, rounded);
        let (limit, infinity) = (self.int(I32, F16_LIMIT), self.or_int(sign, F32_INFINITY));
        let magnitude = self.and_int(value, 0x7fff_ffff);
        let overflows = self.compare_ints(IntCC::SignedGreaterThanOrEqual, magnitude, limit);
        self.select(overflows, infinity, value)
    }
}
