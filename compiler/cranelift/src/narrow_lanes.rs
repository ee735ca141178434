//! Floats of less than 32 bits in single-precision lanes.
//!
//! In registers a narrow float is an `f32` with a representable value; only memory has its few bits. Conversions are integer
//! arithmetic, the same for scalars and vectors; they round to nearest even and keep subnormals, infinities and NaN. The generated
//! steps are the ones of `spmdc_abi::FloatFormat`; a format with the exponent of `f32` needs few.

use super::vector::{Bundle, Vector};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{F32, I32};
use spmdc_abi::DType;
use spmdc_kernel::narrow::{F32_NAN, NarrowFormat};

impl Vector<'_, '_> {
    /// Numbers from bits of memory, in the low part of `I32` lanes.
    pub fn decode_narrow(&mut self, dtype: DType, bits: Bundle) -> Bundle {
        let narrow = NarrowFormat::of(dtype);
        let NarrowFormat { format, dropped, sign_shift } = narrow;
        if narrow.is_upper_part() {
            let high = self.shift_left(bits, dropped);
            return self.bitcast(F32, high);
        }
        let sign = self.and_int(bits, format.sign() as i64);
        let sign = self.shift_left(sign, sign_shift);
        let magnitude = self.and_int(bits, format.sign() as i64 - 1);
        let shifted = self.shift_left(magnitude, dropped);
        // The exponent's bias is too small: a product corrects it, also for subnormals, which are exact in f32.
        let small = self.bitcast(F32, shifted);
        let scale = self.float(F32, narrow.scale());
        let scaled = self.mul(small, scale);
        let scaled = self.bitcast(I32, scaled);
        let infinite = self.or_int(shifted, narrow.beyond().into());
        let largest = self.int(I32, format.largest() as i64);
        let special = self.compare_ints(IntCC::SignedGreaterThan, magnitude, largest);
        let value = self.select(special, infinite, scaled);
        let value = self.or(value, sign);
        self.bitcast(F32, value)
    }

    /// The bits of numbers that [`Vector::round_to_narrow`] has made representable, in `I32` lanes.
    pub fn encode_narrow(&mut self, dtype: DType, value: Bundle) -> Bundle {
        let narrow = NarrowFormat::of(dtype);
        let NarrowFormat { format, dropped, sign_shift } = narrow;
        let bits = self.bitcast(I32, value);
        if narrow.is_upper_part() {
            return self.shift_right(bits, dropped);
        }
        let sign = self.shift_right(bits, sign_shift);
        let sign = self.and_int(sign, format.sign() as i64);
        let magnitude = self.and_int(bits, 0x7fff_ffff);
        // Normal: a smaller bias. Subnormal: multiples of the last place of the magic number. Infinity and NaN: all ones.
        let rebias = self.int(I32, narrow.rebias().into());
        let normal = self.sub(magnitude, rebias);
        let normal = self.shift_right(normal, dropped);
        let (float, magic) = (self.bitcast(F32, magnitude), self.int(I32, narrow.subnormal_magic().into()));
        let magic_float = self.bitcast(F32, magic);
        let sum = self.add(float, magic_float);
        let sum = self.bitcast(I32, sum);
        let subnormal = self.sub(sum, magic);
        let smallest = self.int(I32, narrow.smallest_normal().into());
        let is_subnormal = self.compare_ints(IntCC::SignedLessThan, magnitude, smallest);
        let finite = self.select(is_subnormal, subnormal, normal);
        let limit = self.int(I32, narrow.limit().into());
        let is_special = self.compare_ints(IntCC::SignedGreaterThanOrEqual, magnitude, limit);
        let special = if format.has_infinity {
            let fraction = self.shift_right(magnitude, dropped);
            let fraction = self.and_int(fraction, (1 << format.mantissa) - 1);
            self.or_int(fraction, format.last() as i64)
        } else {
            self.int(I32, format.nan() as i64)
        };
        let code = self.select(is_special, special, finite);
        self.or(code, sign)
    }

    /// The nearest representable number; ties to even.
    pub fn round_to_narrow(&mut self, dtype: DType, value: Bundle) -> Bundle {
        let narrow = NarrowFormat::of(dtype);
        let dropped = narrow.dropped;
        let bits = self.bitcast(I32, value);
        // Adding just under half of the last kept place, and the parity of that place, carries exactly if rounding up is required;
        // a carry out of the fraction gives the next exponent, or infinity.
        let parity = self.shift_right(bits, dropped);
        let parity = self.and_int(parity, 1);
        let under_half = self.int(I32, (1 << (dropped - 1)) - 1);
        let raised = self.add(bits, under_half);
        let raised = self.add(raised, parity);
        let rounded = self.and_int(raised, -(1 << dropped));
        let rounded = if narrow.is_upper_part() { rounded } else { self.fit_narrow(narrow, bits, rounded) };
        let rounded = self.bitcast(F32, rounded);
        // A NaN could carry into the sign or lose its fraction: use the quiet NaN.
        let quiet = self.int(I32, F32_NAN.into());
        let quiet = self.bitcast(F32, quiet);
        let is_nan = self.compare_floats(FloatCC::Unordered, value, value);
        self.select(is_nan, quiet, rounded)
    }

    /// Corrects values for which rounding the fraction alone is wrong in a shorter exponent: subnormals, and numbers above the range.
    fn fit_narrow(&mut self, narrow: NarrowFormat, bits: Bundle, rounded: Bundle) -> Bundle {
        let sign = self.and_int(bits, 0x8000_0000);
        let magnitude = self.and_int(bits, 0x7fff_ffff);
        let (float, magic) = (self.bitcast(F32, magnitude), self.int(I32, narrow.subnormal_magic().into()));
        let magic = self.bitcast(F32, magic);
        let sum = self.add(float, magic);
        let subnormal = self.sub(sum, magic);
        let subnormal = self.bitcast(I32, subnormal);
        let subnormal = self.or(subnormal, sign);
        let smallest = self.int(I32, narrow.smallest_normal().into());
        let is_subnormal = self.compare_ints(IntCC::SignedLessThan, magnitude, smallest);
        let value = self.select(is_subnormal, subnormal, rounded);
        let (limit, beyond) = (self.int(I32, narrow.limit().into()), self.or_int(sign, narrow.beyond().into()));
        let magnitude = self.and_int(value, 0x7fff_ffff);
        let overflows = self.compare_ints(IntCC::SignedGreaterThanOrEqual, magnitude, limit);
        self.select(overflows, beyond, value)
    }
}
