//! Floats of less than 32 bits by integer arithmetic, with the numbers of [`NarrowFormat`].

use crate::graph::{Graph, Node};
use crate::ops::{Binary, Compared, Lane, Relation, Shift};
use spmdc_abi::DType;
use spmdc_kernel::narrow::{F32_NAN, NarrowFormat};

impl Graph {
    fn and_word(&mut self, x: Node, bits: u32) -> Node {
        let bits = self.word(bits);
        self.binary(Binary::And32, x, bits)
    }

    fn or_word(&mut self, x: Node, bits: u32) -> Node {
        let bits = self.word(bits);
        self.binary(Binary::Or32, x, bits)
    }

    pub fn decode_narrow(&mut self, dtype: DType, bits: Node) -> Node {
        let narrow = NarrowFormat::of(dtype);
        let sign = self.and_word(bits, narrow.format.sign() as u32);
        let sign = self.shift(Shift::Shl32, sign, narrow.sign_shift);
        let magnitude = self.and_word(bits, narrow.format.sign() as u32 - 1);
        let shifted = self.shift(Shift::Shl32, magnitude, narrow.dropped);
        // The exponent's bias is too small: a product corrects it, also for subnormals, which are exact in f32.
        let scale = self.float(Lane::Word, narrow.scale());
        let scaled = self.binary(Binary::MulF32, shifted, scale);
        let infinite = self.or_word(shifted, narrow.beyond());
        let largest = self.word(narrow.format.largest() as u32);
        let special = self.compare(Compared::S32, Relation::Greater, magnitude, largest);
        let value = self.select(special, infinite, scaled);
        self.binary(Binary::Or32, value, sign)
    }

    pub fn encode_narrow(&mut self, dtype: DType, bits: Node) -> Node {
        let narrow = NarrowFormat::of(dtype);
        let format = narrow.format;
        let sign = self.shift(Shift::Shr32, bits, narrow.sign_shift);
        let sign = self.and_word(sign, format.sign() as u32);
        let magnitude = self.and_word(bits, 0x7fff_ffff);
        // Normal: a smaller bias. Subnormal: multiples of the last place of the magic number. Infinity and NaN: all ones.
        let rebias = self.word(narrow.rebias());
        let normal = self.binary(Binary::SubI32, magnitude, rebias);
        let normal = self.shift(Shift::Shr32, normal, narrow.dropped);
        let magic = self.word(narrow.subnormal_magic());
        let sum = self.binary(Binary::AddF32, magnitude, magic);
        let subnormal = self.binary(Binary::SubI32, sum, magic);
        let smallest = self.word(narrow.smallest_normal());
        let is_subnormal = self.compare(Compared::S32, Relation::Less, magnitude, smallest);
        let finite = self.select(is_subnormal, subnormal, normal);
        let limit = self.word(narrow.limit());
        let is_special = self.compare(Compared::S32, Relation::GreaterOrEqual, magnitude, limit);
        let special = if format.has_infinity {
            let fraction = self.shift(Shift::Shr32, magnitude, narrow.dropped);
            let fraction = self.and_word(fraction, (1 << format.mantissa) - 1);
            self.or_word(fraction, format.last() as u32)
        } else {
            self.word(format.nan() as u32)
        };
        let code = self.select(is_special, special, finite);
        self.binary(Binary::Or32, code, sign)
    }

    /// The nearest number of the type; ties to even.
    pub fn round_to_narrow(&mut self, dtype: DType, value: Node) -> Node {
        let narrow = NarrowFormat::of(dtype);
        let dropped = narrow.dropped;
        // Adding just under half of the last kept place, and the parity of that place, carries exactly if rounding up is required;
        // a carry out of the fraction gives the next exponent, or infinity.
        let parity = self.shift(Shift::Shr32, value, dropped);
        let parity = self.and_word(parity, 1);
        let under_half = self.word((1 << (dropped - 1)) - 1);
        let raised = self.binary(Binary::AddI32, value, under_half);
        let raised = self.binary(Binary::AddI32, raised, parity);
        let rounded = self.and_word(raised, u32::MAX << dropped);
        let rounded = if narrow.is_upper_part() { rounded } else { self.fit_narrow(narrow, value, rounded) };
        // A NaN could carry into the sign or lose its fraction: use the quiet NaN.
        let quiet = self.word(F32_NAN);
        let is_nan = self.compare_floats(Relation::Unordered, value, value);
        self.select(is_nan, quiet, rounded)
    }

    /// Corrects values for which rounding the fraction alone is wrong in a shorter exponent: subnormals, and numbers above the range.
    fn fit_narrow(&mut self, narrow: NarrowFormat, bits: Node, rounded: Node) -> Node {
        let sign = self.and_word(bits, 0x8000_0000);
        let magnitude = self.and_word(bits, 0x7fff_ffff);
        let magic = self.word(narrow.subnormal_magic());
        let sum = self.binary(Binary::AddF32, magnitude, magic);
        let subnormal = self.binary(Binary::SubF32, sum, magic);
        let subnormal = self.binary(Binary::Or32, subnormal, sign);
        let smallest = self.word(narrow.smallest_normal());
        let is_subnormal = self.compare(Compared::S32, Relation::Less, magnitude, smallest);
        let value = self.select(is_subnormal, subnormal, rounded);
        let limit = self.word(narrow.limit());
        let beyond = self.or_word(sign, narrow.beyond());
        let magnitude = self.and_word(value, 0x7fff_ffff);
        let overflows = self.compare(Compared::S32, Relation::GreaterOrEqual, magnitude, limit);
        self.select(overflows, beyond, value)
    }
}
