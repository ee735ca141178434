//! Element types and their properties: one row of a table for each.

use super::FloatFormat;
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
    /// 8 bits with 4 of exponent and 3 of mantissa, without infinities (`float8_e4m3fn`), computed in f32.
    F8e4m3,
    /// 8 bits with 5 of exponent and 2 of mantissa, computed in f32.
    F8e5m2,
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

/// The size of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    W8,
    /// Two bytes.
    W16,
    /// Four bytes.
    W32,
    /// Eight bytes.
    W64,
}

impl Width {
    const fn bytes(self) -> usize {
        match self {
            Width::W8 => 1,
            Width::W16 => 2,
            Width::W32 => 4,
            Width::W64 => 8,
        }
    }
}

/// A row of the table.
struct Row {
    dtype: DType,
    name: &'static str,
    width: Width,
    /// Bytes of one element.
    size: usize,
    kind: Kind,
    /// The type of a value between loading and storing.
    computed: DType,
    /// For floats, the fields of the bits.
    format: Option<FloatFormat>,
    /// The codes in a `.npy` file, after the byte order; the first one is written. None: the elements are arrays there.
    npy: &'static [&'static str],
    /// The name in a `.safetensors` file, if there is one.
    safetensors: Option<&'static str>,
    /// The type in C, or one of the same size that holds the bits.
    c: &'static str,
}

impl Row {
    const fn new(dtype: DType, name: &'static str, kind: Kind, width: Width) -> Row {
        let size = width.bytes();
        Row { dtype, name, width, size, kind, computed: dtype, format: None, npy: &[], safetensors: None, c: "" }
    }

    const fn float(dtype: DType, name: &'static str, format: FloatFormat) -> Row {
        let width = match 1 + format.exponent + format.mantissa {
            8 => Width::W8,
            16 => Width::W16,
            32 => Width::W32,
            64 => Width::W64,
            _ => panic!("a float has 8, 16, 32 or 64 bits"),
        };
        let mut row = Row::new(dtype, name, Kind::Float, width);
        row.format = Some(format);
        if row.size < 4 {
            row.computed = DType::F32;
        }
        row
    }

    const fn files(mut self, npy: &'static [&'static str], safetensors: &'static str, c: &'static str) -> Row {
        (self.npy, self.safetensors, self.c) = (npy, Some(safetensors), c);
        self
    }

    const fn in_c(mut self, c: &'static str) -> Row {
        self.c = c;
        self
    }
}

/// The rows, in the order of the variants.
const TABLE: [Row; 16] = [
    Row::new(DType::Bool, "bool", Kind::Bool, Width::W8).files(&["b1", "?"], "BOOL", "bool"),
    Row::new(DType::I8, "i8", Kind::Signed, Width::W8).files(&["i1"], "I8", "int8_t"),
    Row::new(DType::I16, "i16", Kind::Signed, Width::W16).files(&["i2"], "I16", "int16_t"),
    Row::new(DType::I32, "i32", Kind::Signed, Width::W32).files(&["i4"], "I32", "int32_t"),
    Row::new(DType::I64, "i64", Kind::Signed, Width::W64).files(&["i8"], "I64", "int64_t"),
    Row::new(DType::U8, "u8", Kind::Unsigned, Width::W8).files(&["u1"], "U8", "uint8_t"),
    Row::new(DType::U16, "u16", Kind::Unsigned, Width::W16).files(&["u2"], "U16", "uint16_t"),
    Row::new(DType::U32, "u32", Kind::Unsigned, Width::W32).files(&["u4"], "U32", "uint32_t"),
    Row::new(DType::U64, "u64", Kind::Unsigned, Width::W64).files(&["u8"], "U64", "uint64_t"),
    Row::float(DType::F8e4m3, "f8e4m3", FloatFormat::finite(4, 3)).files(&["V1"], "F8_E4M3", "uint8_t"),
    // `ml_dtypes` writes a code that NumPy refuses to read, so raw bytes are written here, too.
    Row::float(DType::F8e5m2, "f8e5m2", FloatFormat::ieee(5, 2)).files(&["V1", "f1"], "F8_E5M2", "uint8_t"),
    Row::float(DType::F16, "f16", FloatFormat::F16).files(&["f2"], "F16", "uint16_t"),
    Row::float(DType::Bf16, "bf16", FloatFormat::BF16).files(&["V2", "bfloat16"], "BF16", "uint16_t"),
    Row::float(DType::F32, "f32", FloatFormat::F32).files(&["f4"], "F32", "float"),
    Row::float(DType::F64, "f64", FloatFormat::F64).files(&["f8"], "F64", "double"),
    Row::new(DType::Key, "key", Kind::Key, Width::W64).in_c("uint32_t"),
];

/// Complex numbers: the type of their planes, the name in the language, and the code in `.npy` files.
const COMPLEX: [(DType, &str, &str); 2] = [(DType::F32, "c64", "c8"), (DType::F64, "c128", "c16")];

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

    #[inline]
    const fn row(self) -> &'static Row {
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
    #[inline]
    pub fn size(self) -> usize {
        self.row().size
    }

    /// The size of an element.
    #[inline]
    pub const fn width(self) -> Width {
        self.row().width
    }

    /// The kind of the elements: bools, integers, floats or keys.
    #[inline]
    pub const fn kind(self) -> Kind {
        self.row().kind
    }

    /// The type of values between loading and storing: narrow floats are computed in f32 and rounded after each operation.
    #[inline]
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

    /// Whether it is a float of less than 32 bits, which is computed in `f32`.
    #[inline]
    pub fn is_narrow(self) -> bool {
        self.computed() != self
    }

    /// The code in a `.npy` file, after the byte order; None for keys, which are pairs of `u4` there.
    pub fn npy(self) -> Option<&'static str> {
        self.row().npy.first().copied()
    }

    /// The type with this code in a `.npy` file, after the byte order.
    pub fn named_in_npy(code: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.row().npy.contains(&code))
    }

    /// Whether NumPy does not have the type: files hold its elements as raw bytes, which `ml_dtypes` interprets.
    pub fn is_foreign_to_numpy(self) -> bool {
        self.npy().is_some_and(|code| code.starts_with('V'))
    }

    /// The name in a `.safetensors` file; None for keys, which are pairs of `U32` there.
    pub fn safetensors(self) -> Option<&'static str> {
        self.row().safetensors
    }

    /// The type of this name in a `.safetensors` file.
    pub fn named_in_safetensors(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.row().safetensors == Some(name))
    }

    /// The name of the complex type whose planes have this type: `c64` for f32; None for types that planes cannot have.
    pub fn complex_name(self) -> Option<&'static str> {
        COMPLEX.iter().find(|(plane, ..)| *plane == self).map(|(_, name, _)| *name)
    }

    /// The type of the planes of these complex numbers: f32 for `c64`.
    pub fn plane_of(complex: &str) -> Option<DType> {
        COMPLEX.iter().find(|(_, name, _)| *name == complex).map(|(plane, ..)| *plane)
    }

    /// The code of the complex numbers of such planes in a `.npy` file, after the byte order.
    pub fn complex_npy(self) -> Option<&'static str> {
        COMPLEX.iter().find(|(plane, ..)| *plane == self).map(|(_, _, code)| *code)
    }

    /// The type of the planes of the complex numbers with this code in a `.npy` file.
    pub fn plane_in_npy(code: &str) -> Option<DType> {
        COMPLEX.iter().find(|(_, _, known)| *known == code).map(|(plane, ..)| *plane)
    }

    /// The type in C whose array holds the elements; a key is two of them.
    pub fn in_c(self) -> &'static str {
        self.row().c
    }

    /// For a float, the fields of its bits.
    pub const fn format(self) -> Option<FloatFormat> {
        self.row().format
    }

    /// The number with these bits, for a float type; every type widens exactly.
    #[inline]
    pub fn widen(self, bits: u64) -> f64 {
        match self.width() {
            Width::W8 | Width::W16 => self.known_format().widen(bits),
            Width::W32 => f32::from_bits(bits as u32).into(),
            Width::W64 => f64::from_bits(bits),
        }
    }

    /// The bits of the nearest number of a float type; in a tie, the number whose last bit is 0.
    #[inline]
    pub fn narrow(self, value: f64) -> u64 {
        match self.width() {
            Width::W8 | Width::W16 => self.known_format().narrow(value),
            Width::W32 => (value as f32).to_bits().into(),
            Width::W64 => value.to_bits(),
        }
    }

    fn known_format(self) -> FloatFormat {
        self.format().unwrap_or_else(|| panic!("{} is no float", self.name()))
    }

    /// Whether it is a float of any width.
    #[inline]
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

    /// The smallest and the largest number of an integer type.
    pub fn integer_bounds(self) -> (i128, i128) {
        debug_assert!(self.is_integer(), "{} is no integer", self.name());
        let bits = 8 * self.size();
        if self.is_signed_integer() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
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
            assert_eq!(dtype.format().is_some(), dtype.is_float());
            let bits = dtype.format().map(|format| 1 + format.exponent + format.mantissa);
            assert!(bits.is_none_or(|bits| bits as usize == 8 * dtype.size()));
        }
    }
}
