//! The order of elements, as an order of unsigned integers.

use std::ops::{BitAnd, BitOr, BitXor, Not, Shr};

use spmdc_abi::{DType, Kind, SortLines};

/// An unsigned integer of the size of an element.
pub(super) trait Word:
    Copy
    + Ord
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
    + Shr<u32, Output = Self>
{
    const BYTES: usize = size_of::<Self>();
    const ZERO: Self;

    /// The highest bit in all bits.
    fn spread_sign(self) -> Self;

    /// The low bits of a number.
    fn low(bits: u64) -> Self;

    /// The number in 64 bits.
    fn wide(self) -> u64;

    /// The low bits as an index.
    fn low_bits(self) -> usize;
}

macro_rules! words {
    ($($ty:ty, $signed:ty;)*) => {
        $(impl Word for $ty {
            const ZERO: Self = 0;

            fn spread_sign(self) -> Self {
                (self as $signed >> (<$signed>::BITS - 1)) as $ty
            }

            fn low(bits: u64) -> Self {
                bits as $ty
            }

            fn wide(self) -> u64 {
                u64::from(self)
            }

            fn low_bits(self) -> usize {
                self as usize
            }
        })*
    };
}

words! { u8, i8; u16, i16; u32, i32; u64, i64; }

/// A mapping from the bits of elements to words with the same order as the elements. NaNs have the largest word, or the smallest in
/// descending order; -0 has the word of 0 unless zeros are signed.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyOrder<W> {
    sign: W,
    /// Floats: the bits of the largest number, which may be infinity; other elements: all bits but the sign's.
    largest: W,
    is_float: bool,
    /// Magnitudes below this one have the word of 0.
    least: W,
    /// All bits in descending order.
    flip: W,
}

impl<W: Word> KeyOrder<W> {
    pub fn new(dtype: DType, order: &SortLines) -> KeyOrder<W> {
        let (sign, largest, is_float) = match (dtype.kind(), dtype.format()) {
            (Kind::Signed, _) => (1 << (8 * W::BYTES - 1), u64::MAX, false),
            (Kind::Bool | Kind::Unsigned | Kind::Key, _) => (0, u64::MAX, false),
            (Kind::Float, Some(format)) => (format.sign(), format.last(), true),
            (Kind::Float, None) => unreachable!("a float has a format"),
        };
        debug_assert_eq!(W::BYTES, dtype.size(), "a word has the size of an element");
        let flip = if order.descending { !W::ZERO } else { W::ZERO };
        let least = W::low(u64::from(!order.signed_zeros));
        KeyOrder { sign: W::low(sign), largest: W::low(largest), is_float, least, flip }
    }

    pub fn is_float(self) -> bool {
        self.is_float
    }

    /// The word of a float.
    pub fn float(self, bits: W) -> W {
        // Selections rather than branches: signs are as good as random.
        let magnitude = bits & !self.sign;
        let key = bits ^ (bits.spread_sign() | self.sign);
        let key = if magnitude < self.least { self.sign } else { key };
        let key = if magnitude > self.largest { !W::ZERO } else { key };
        key ^ self.flip
    }

    /// The word of an integer or bool.
    pub fn whole(self, bits: W) -> W {
        bits ^ self.sign ^ self.flip
    }

    /// Whether other floats have the same word: NaNs, and zeros with a sign.
    pub fn is_merged(self, bits: W) -> bool {
        let magnitude = bits & !self.sign;
        (magnitude > self.largest) | ((magnitude < self.least) & (bits != W::ZERO))
    }

    /// The word of a float that is not merged with others.
    pub fn distinct(self, bits: W) -> W {
        bits ^ (bits.spread_sign() | self.sign) ^ self.flip
    }

    /// The float with a word of `distinct`.
    pub fn float_of(self, word: W) -> W {
        let word = word ^ self.flip;
        word ^ (!word.spread_sign() | self.sign)
    }

    pub fn key(self, bits: W) -> W {
        if self.is_float { self.float(bits) } else { self.whole(bits) }
    }
}

/// Calls a function with the mapping for the kind of elements as a closure, so that loops over elements contain no test of the kind.
macro_rules! with_key {
    ($order:expr, $function:ident($($argument:expr),*)) => {{
        let order = $order;
        if order.is_float() {
            $function($($argument,)* |bits| order.float(bits))
        } else {
            $function($($argument,)* |bits| order.whole(bits))
        }
    }};
}
pub(super) use with_key;

#[cfg(test)]
mod tests {
    use super::*;

    fn order(descending: bool, signed_zeros: bool) -> SortLines {
        SortLines { keys: 1, descending, signed_zeros }
    }

    #[test]
    fn words_have_the_order_of_elements() {
        let sorted = |dtype: DType, values: &[u64]| {
            let order = KeyOrder::<u32>::new(dtype, &order(false, false));
            let keys: Vec<u32> = values.iter().map(|&bits| order.key(bits as u32)).collect();
            keys.is_sorted()
        };
        let floats = [f32::NEG_INFINITY, -2.0, -1e-45, -0.0, 0.0, 1e-45, 3.0, f32::INFINITY, f32::NAN, -f32::NAN];
        assert!(sorted(DType::F32, &floats.map(|value| u64::from(value.to_bits()))));
        assert!(sorted(DType::I32, &[i32::MIN, -1, 0, i32::MAX].map(|value| value as u32 as u64)));
        assert!(sorted(DType::U32, &[0, 1, u32::MAX.into()]));
        let signed = KeyOrder::<u32>::new(DType::F32, &order(false, true));
        assert!(signed.key((-0f32).to_bits()) < signed.key(0) && signed.key(0) < signed.key(1));
        let order = KeyOrder::<u32>::new(DType::F32, &order(false, false));
        assert_eq!(order.key(0), order.key((-0f32).to_bits()));
        assert_eq!(order.key(f32::NAN.to_bits()), order.key((-f32::NAN).to_bits()));
    }

    #[test]
    fn narrow_floats_without_infinities_have_one_nan() {
        let order = KeyOrder::<u8>::new(DType::F8e4m3, &order(false, false));
        assert!(
            order.key(0x7e) < order.key(0x7f) && order.key(0xff) == order.key(0x7f) && order.key(0xfe) < order.key(0)
        );
    }

    #[test]
    fn floats_come_back_from_their_words() {
        let floats = [f32::NEG_INFINITY, -2.5, -1e-45, 0.0, 1e-45, 3.0, f32::MAX, f32::INFINITY].map(f32::to_bits);
        for descending in [false, true] {
            let order = KeyOrder::<u32>::new(DType::F32, &order(descending, false));
            for bits in floats {
                assert!(!order.is_merged(bits));
                assert_eq!(order.distinct(bits), order.float(bits));
                assert_eq!(order.float_of(order.distinct(bits)), bits);
            }
            assert!([f32::NAN, -f32::NAN, -0.0].iter().all(|value| order.is_merged(value.to_bits())));
        }
        assert!(!KeyOrder::<u32>::new(DType::F32, &order(false, true)).is_merged((-0f32).to_bits()));
    }

    #[test]
    fn descending_order_is_the_reverse() {
        let order = KeyOrder::<u64>::new(DType::F64, &order(true, false));
        let keys = [f64::NAN, 2.0, 0.0, -1.0].map(|value| order.key(value.to_bits()));
        assert!(keys.is_sorted());
    }
}
