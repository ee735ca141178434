//! The numbers with which code generators convert floats of less than 32 bits to `f32` and back with integer arithmetic.
//!
//! The generated steps are the steps of `spmdc_abi::FloatFormat`.

use spmdc_abi::{DType, FloatFormat};

const F32_BIAS: i64 = FloatFormat::F32.bias();
const F32_MANTISSA: u32 = FloatFormat::F32.mantissa;

/// The bits of the infinity of `f32`.
pub const F32_INFINITY: u32 = 0x7f80_0000;
/// The bits of the quiet NaN of `f32`.
pub const F32_NAN: u32 = 0x7fc0_0000;

/// A format with less bits than `f32`.
#[derive(Clone, Copy, Debug)]
pub struct NarrowFormat {
    /// The format.
    pub format: FloatFormat,
    /// Bits of an `f32`'s mantissa that the format does not have.
    pub dropped: u32,
    /// Distance between the sign bits of both, in bits.
    pub sign_shift: u32,
}

impl NarrowFormat {
    /// The format of a narrow float type.
    pub fn of(dtype: DType) -> NarrowFormat {
        let format = dtype.format().filter(|_| dtype.is_narrow()).expect("only narrow floats are converted");
        let dropped = F32_MANTISSA - format.mantissa;
        NarrowFormat { format, dropped, sign_shift: 31 - format.exponent - format.mantissa }
    }

    /// Whether the upper bits of an `f32` are a number of this format.
    pub fn is_upper_part(self) -> bool {
        self.format.exponent == FloatFormat::F32.exponent && self.format.has_infinity
    }

    /// The power of two that corrects the bias of a number whose bits were moved to the place of an `f32`.
    pub fn scale(self) -> f64 {
        2.0_f64.powi((F32_BIAS - self.format.bias()) as i32)
    }

    /// The difference between the biases, in place of an `f32`'s exponent.
    pub fn rebias(self) -> u32 {
        ((F32_BIAS - self.format.bias()) << F32_MANTISSA) as u32
    }

    /// The smallest normal number, as bits of an `f32`.
    pub fn smallest_normal(self) -> u32 {
        ((F32_BIAS + 1 - self.format.bias()) << F32_MANTISSA) as u32
    }

    /// The bits of the first `f32` above the range, once the last place is rounded.
    pub fn limit(self) -> u32 {
        ((self.format.largest() as u32 + 1) << self.dropped) + self.rebias()
    }

    /// The bits, as an `f32`, of the power of two whose unit in the last place is the smallest subnormal of the format.
    pub fn subnormal_magic(self) -> u32 {
        let smallest = 1 - self.format.bias() - i64::from(self.format.mantissa);
        ((F32_BIAS + smallest + i64::from(F32_MANTISSA)) << F32_MANTISSA) as u32
    }

    /// The bits of an `f32` above the range: infinity, or NaN if the format has no infinity.
    pub fn beyond(self) -> u32 {
        if self.format.has_infinity { F32_INFINITY } else { F32_NAN }
    }
}
