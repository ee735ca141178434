//! The division of a float's bits, and conversion between narrow formats and double precision.
//!
//! A float is a sign, an exponent and a mantissa, from the highest bit to the lowest. The evaluator, literals, files, random numbers and
//! collectives convert by these functions; the code generator emits the same steps (`compiler/cranelift/src/narrow_lanes.rs`).

const F64_MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;
const F64_BIAS: i64 = f64::MAX_EXP as i64 - 1;
const F64_SIGN: u64 = 1 << 63;

/// The division of a float's bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatFormat {
    /// Bits of the exponent, whose bias is half of its range.
    pub exponent: u32,
    /// Bits of the mantissa without the implicit first one.
    pub mantissa: u32,
    /// Whether there are infinities; the bits above them are NaNs. Without infinities the only NaN has all bits but the sign set,
    /// and numbers out of range become NaN.
    pub has_infinity: bool,
}

impl FloatFormat {
    /// IEEE half precision.
    pub const F16: FloatFormat = FloatFormat::ieee(5, 10);
    /// The upper half of an f32.
    pub const BF16: FloatFormat = FloatFormat::ieee(8, 7);
    /// IEEE single precision.
    pub const F32: FloatFormat = FloatFormat::ieee(8, 23);
    /// IEEE double precision.
    pub const F64: FloatFormat = FloatFormat::ieee(11, 52);

    /// A format with infinities.
    pub const fn ieee(exponent: u32, mantissa: u32) -> FloatFormat {
        FloatFormat { exponent, mantissa, has_infinity: true }
    }

    /// A format without infinities: `fn` in the names of other projects.
    pub const fn finite(exponent: u32, mantissa: u32) -> FloatFormat {
        FloatFormat { exponent, mantissa, has_infinity: false }
    }

    /// The bias of the exponent, which is subtracted from its bits.
    pub const fn bias(self) -> i64 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The bit of the sign.
    pub const fn sign(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }

    /// The bits of 1.
    pub const fn one(self) -> u64 {
        (self.bias() as u64) << self.mantissa
    }

    /// The bits of the largest finite number.
    pub const fn largest(self) -> u64 {
        if self.has_infinity { (((1 << self.exponent) - 1) << self.mantissa) - 1 } else { self.sign() - 2 }
    }

    /// The smallest positive number that is not subnormal.
    pub fn smallest_normal(self) -> f64 {
        f64::from_bits(((1 - self.bias() + F64_BIAS) as u64) << F64_MANTISSA)
    }

    /// The bits of infinity, or of the largest number in a format without it. Apart from the sign, the bits of every NaN are larger.
    pub const fn last(self) -> u64 {
        if self.has_infinity { self.largest() + 1 } else { self.largest() }
    }

    /// The bits of the positive quiet NaN.
    pub const fn nan(self) -> u64 {
        if self.has_infinity { self.last() | (1 << (self.mantissa - 1)) } else { self.sign() - 1 }
    }

    /// The number with these bits. A NaN keeps its sign and its mantissa.
    #[inline]
    pub fn widen(self, bits: u64) -> f64 {
        let sign = if bits & self.sign() == 0 { 0 } else { F64_SIGN };
        let magnitude = bits & (self.sign() - 1);
        let shifted = magnitude << (F64_MANTISSA - self.mantissa);
        if magnitude > self.largest() {
            let nan_or_infinity = if self.has_infinity { f64::INFINITY } else { f64::NAN };
            return f64::from_bits(shifted | nan_or_infinity.to_bits() | sign);
        }
        // The exponent's bias is too small: a product corrects it, also for subnormals, which are exact.
        let scale = f64::from_bits(((2 * F64_BIAS - self.bias()) as u64) << F64_MANTISSA);
        f64::from_bits((f64::from_bits(shifted) * scale).to_bits() | sign)
    }

    /// The bits of the nearest number; in a tie, the number whose last bit is 0. Numbers that round beyond the largest one become infinity,
    /// or NaN in a format without infinity. Not for double precision, which is not rounded.
    #[inline]
    pub fn narrow(self, value: f64) -> u64 {
        debug_assert!(self.mantissa < F64_MANTISSA, "there are bits to drop");
        let bits = value.to_bits();
        let sign = if bits & F64_SIGN == 0 { 0 } else { self.sign() };
        let magnitude = bits & !F64_SIGN;
        if value.is_nan() {
            let payload = magnitude >> (F64_MANTISSA - self.mantissa) & (self.sign() - 1);
            return sign | self.nan() | if self.has_infinity { payload } else { 0 };
        }
        let exponent = (magnitude >> F64_MANTISSA) as i64 - F64_BIAS;
        // Subnormals have the exponent of the smallest normal number, and lose one more bit for each power of two below it.
        let smallest_normal = 1 - self.bias();
        let lost = i64::from(F64_MANTISSA - self.mantissa) + (smallest_normal - exponent).max(0);
        if lost > i64::from(F64_MANTISSA) + 1 {
            return sign;
        }
        let significand = magnitude & ((1 << F64_MANTISSA) - 1) | 1 << F64_MANTISSA;
        // Adding just under half of the last kept place, and the parity of that place, carries exactly if rounding up is required;
        // a carry out of the mantissa gives the next exponent.
        let under_half = (1u64 << lost >> 1) - 1;
        let rounded = (significand + under_half + (significand >> lost & 1)) >> lost;
        let biased = (exponent.max(smallest_normal) + self.bias() - 1) as u64;
        let code = (biased << self.mantissa) + rounded;
        sign | if code > self.largest() { self.overflow() } else { code }
    }

    /// The bits that replace numbers out of range.
    const fn overflow(self) -> u64 {
        if self.has_infinity { self.last() } else { self.nan() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All bit patterns of a format of at most 16 bits.
    fn codes(format: FloatFormat) -> std::ops::RangeInclusive<u64> {
        0..=2 * format.sign() - 1
    }

    #[test]
    fn what_was_widened_narrows_to_the_same_bits() {
        for format in [FloatFormat::F16, FloatFormat::BF16, FloatFormat::finite(4, 3), FloatFormat::ieee(5, 2)] {
            for bits in codes(format) {
                let value = format.widen(bits);
                let is_nan = bits & !format.sign() > format.last();
                assert_eq!(value.is_nan(), is_nan, "{format:?} {bits:x}");
                let quiet = if is_nan { bits | format.nan() } else { bits };
                assert_eq!(format.narrow(value), quiet, "{format:?} {bits:x}");
            }
            assert_eq!(format.widen(format.one()), 1.0);
            assert_eq!(format.narrow(f64::MAX), format.overflow());
            assert_eq!(format.narrow(-1e-300), format.sign());
        }
    }

    #[test]
    fn the_nearest_number_is_found_around_every_boundary() {
        for format in [FloatFormat::F16, FloatFormat::BF16, FloatFormat::finite(4, 3), FloatFormat::ieee(5, 2)] {
            for bits in 0..format.largest() {
                let (below, above) = (format.widen(bits), format.widen(bits + 1));
                let middle = below + (above - below) / 2.0;
                assert_eq!(format.narrow(middle), bits + (bits & 1), "{format:?} {bits:x}");
                assert_eq!(format.narrow(middle.next_down()), bits, "{format:?} {bits:x}");
                assert_eq!(format.narrow(-middle.next_up()), (bits + 1) | format.sign(), "{format:?} {bits:x}");
            }
            // The midpoint between the largest number and the next one that a larger range would have.
            let largest = format.widen(format.largest());
            let limit = largest + (largest - format.widen(format.largest() - 1)) / 2.0;
            assert_eq!(format.narrow(limit.next_down()), format.largest());
            assert_eq!(format.narrow(limit.next_up()), format.overflow());
            let is_even = format.largest() & 1 == 0;
            assert_eq!(format.narrow(limit), if is_even { format.largest() } else { format.overflow() });
        }
        assert_eq!([464.0, 464.1, -480.0].map(|x| FloatFormat::finite(4, 3).narrow(x)), [0x7e, 0x7f, 0xff]);
        assert_eq!([61439.0, -61440.0].map(|x| FloatFormat::ieee(5, 2).narrow(x)), [0x7b, 0xfc]);
    }

    #[test]
    fn single_precision_rounds_as_the_machine_does() {
        for i in 0..200_000u64 {
            let value = f64::from_bits(i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 4 | (i & 1) << 63);
            let value = value * 1e-20;
            let narrowed = FloatFormat::F32.narrow(value);
            assert_eq!(narrowed, u64::from((value as f32).to_bits()), "{value:e}");
            assert_eq!(FloatFormat::F32.widen(narrowed), f64::from(value as f32));
        }
    }
}
