//! Element types and their properties: one row of a table for each.

use serde::{Deserialize, Serialize};

/// Element types. Their order is the order of the language's reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum DType {
    /// Truth value, one byte: 0 or 1.
    Bool,
    /// Signed integer of 8 bits.
    I8,
    /// Signed integer of 16 bits.
    I16,
    /// Signed integer of 32 bits.
    I32,
    /// Signed integer of 64 bits.
    I64,
    /// Unsigned integer of 8 bits.
    U8,
    /// Unsigned integer of 16 bits.
    U16,
    /// Unsigned integer of 32 bits.
    U32,
    /// Unsigned integer of 64 bits.
    U64,
    /// IEEE half precision, computed in f32.
    F16,
    /// The upper 16 bits of an f32, computed in f32.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// A random key: two 32-bit words.
    Key,
}

/// The kind of the elements of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Truth values.
    Bool,
    /// Signed integers.
    Signed,
    /// Unsigned integers.
    Unsigned,
    /// Floats of any width.
    Float,
    /// Random keys.
    Key,
}

/// The difference between an element in memory and in computations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// None.
    Same,
    /// A byte that is 0 or 1, for a truth value.
    Truth,
    /// A float of fewer bits.
    Narrow,
}

/// A row of the table.
struct Row {
    dtype: DType,
    name: &'static str,
    /// Bytes of one element.
    size: usize,
    kind: Kind,
    /// The type of a value between loading and storing.
    computed: DType,
    /// The code in a `.npy` file, after the byte order; None: the elements are arrays there.
    npy: Option<&'static str>,
    /// The type in C, or one of the same size that holds the bits.
    c: &'static str,
    /// For floats, the bits of infinity, which are less than those of any NaN, and of the quiet NaN.
    limits: Option<[u64; 2]>,
}

impl Row {
    const fn new(dtype: DType, name: &'static str, size: usize, kind: Kind, computed: DType) -> Row {
        Row { dtype, name, size, kind, computed, npy: None, c: "", limits: None }
    }

    const fn files(mut self, npy: Option<&'static str>, c: &'static str) -> Row {
        (self.npy, self.c) = (npy, c);
        self
    }

    const fn limits(mut self, infinity: u64, nan: u64) -> Row {
        self.limits = Some([infinity, nan]);
        self
    }
}

/// The rows, in the order of the variants.
const TABLE: [Row; 14] = [
    Row::new(DType::Bool, "bool", 1, Kind::Bool, DType::Bool).files(Some("b1"), "bool"),
    Row::new(DType::I8, "i8", 1, Kind::Signed, DType::I8).files(Some("i1"), "int8_t"),
    Row::new(DType::I16, "i16", 2, Kind::Signed, DType::I16).files(Some("i2"), "int16_t"),
    Row::new(DType::I32, "i32", 4, Kind::Signed, DType::I32).files(Some("i4"), "int32_t"),
    Row::new(DType::I64, "i64", 8, Kind::Signed, DType::I64).files(Some("i8"), "int64_t"),
    Row::new(DType::U8, "u8", 1, Kind::Unsigned, DType::U8).files(Some("u1"), "uint8_t"),
    Row::new(DType::U16, "u16", 2, Kind::Unsigned, DType::U16).files(Some("u2"), "uint16_t"),
    Row::new(DType::U32, "u32", 4, Kind::Unsigned, DType::U32).files(Some("u4"), "uint32_t"),
    Row::new(DType::U64, "u64", 8, Kind::Unsigned, DType::U64).files(Some("u8"), "uint64_t"),
    Row::new(DType::F16, "f16", 2, Kind::Float, DType::F32).files(Some("f2"), "uint16_t").limits(0x7c00, 0x7e00),
    Row::new(DType::Bf16, "bf16", 2, Kind::Float, DType::F32).files(Some("V2"), "uint16_t").limits(0x7f80, 0x7fc0),
    Row::new(DType::F32, "f32", 4, Kind::Float, DType::F32).files(Some("f4"), "float").limits(0x7f80_0000, 0x7fc0_0000),
    Row::new(DType::F64, "f64", 8, Kind::Float, DType::F64)
        .files(Some("f8"), "double")
        .limits(0x7ff0_0000_0000_0000, 0x7ff8_0000_0000_0000),
    Row::new(DType::Key, "key", 8, Kind::Key, DType::Key).files(None, "uint32_t"),
];

impl DType {
    /// All element types, in the order of the variants.
    pub const ALL: [DType; TABLE.len()] = {
        let mut all = [DType::Bool; TABLE.len()];
        let mut at = 0;
        while at < all.len() {
            all[at] = TABLE[at].dtype;
            at += 1;
        }
        all
    };

    fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The name in the language, such as `f32`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// The type with this name in the language.
    pub fn named(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Bytes of one element; a bool is one byte, 0 or 1.
    pub fn size(self) -> usize {
        self.row().size
    }

    /// The kind of the elements: bools, integers, floats or keys.
    pub fn kind(self) -> Kind {
        self.row().kind
    }

    /// The type of values between loading and storing: narrow floats are computed in f32 and rounded after each operation.
    pub fn computed(self) -> DType {
        self.row().computed
    }

    /// The difference between an element in memory and in computations.
    pub fn stored(self) -> Stored {
        match self.kind() {
            Kind::Bool => Stored::Truth,
            Kind::Float if self.is_narrow() => Stored::Narrow,
            Kind::Signed | Kind::Unsigned | Kind::Float | Kind::Key => Stored::Same,
        }
    }

    /// Whether it is a float computed in a wider type.
    pub fn is_narrow(self) -> bool {
        self.computed() != self
    }

    /// The code in a `.npy` file, after the byte order; None for keys, which are pairs of `u4` there.
    pub fn npy(self) -> Option<&'static str> {
        self.row().npy
    }

    /// The type in C whose array holds the elements; a key is two of them.
    pub fn in_c(self) -> &'static str {
        self.row().c
    }

    /// For a float, the bits of infinity (those of every NaN are larger, apart from the sign) and of the positive quiet NaN.
    pub fn infinity_and_nan(self) -> Option<[u64; 2]> {
        self.row().limits
    }

    /// Whether it is `f16`, `bf16`, `f32` or `f64`.
    pub fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    /// Whether it is one of `i8` to `i64`.
    pub fn is_signed_integer(self) -> bool {
        self.kind() == Kind::Signed
    }

    /// Whether it is one of `u8` to `u64`.
    pub fn is_unsigned_integer(self) -> bool {
        self.kind() == Kind::Unsigned
    }

    /// Whether it is a signed or unsigned integer; bool is not.
    pub fn is_integer(self) -> bool {
        self.is_signed_integer() || self.is_unsigned_integer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_of_their_types() {
        for (at, dtype) in DType::ALL.into_iter().enumerate() {
            assert_eq!((dtype as usize, DType::named(dtype.name())), (at, Some(dtype)));
            assert_eq!(dtype.computed().computed(), dtype.computed());
            assert_eq!(dtype.infinity_and_nan().is_some(), dtype.is_float());
        }
    }
}
