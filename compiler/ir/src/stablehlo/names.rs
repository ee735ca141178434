//! Values, types and shardings as text.

use spmdc_abi::DType;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet};
use std::fmt;

/// An element type of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HloElement {
    /// A type of the language. A key is one unsigned integer of 64 bits, whose lower half is its first word.
    Real(DType),
    /// Complex numbers with planes of this type.
    Complex(DType),
}

/// A tensor type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HloType {
    /// The element type.
    pub element: HloElement,
    /// The size of each dimension.
    pub shape: Vec<usize>,
}

/// A value of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HloValue {
    /// Its name, such as `%3` or `%3#1`.
    pub name: String,
    /// Its type.
    pub ty: HloType,
}

impl HloType {
    /// A tensor of a type of the language.
    pub fn new(dtype: DType, shape: &[usize]) -> HloType {
        HloType { element: HloElement::Real(dtype), shape: shape.to_vec() }
    }

    /// The type of an array.
    pub fn of(ty: &ArrayType) -> HloType {
        HloType::new(ty.dtype, &ty.shape)
    }

    /// The type as an array of the language, with the planes' type for complex numbers.
    pub fn array(&self) -> ArrayType {
        ArrayType::of(self.dtype(), self.shape.clone())
    }

    /// The element type, or that of the planes of complex numbers.
    pub fn dtype(&self) -> DType {
        match self.element {
            HloElement::Real(dtype) | HloElement::Complex(dtype) => dtype,
        }
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same elements in another shape.
    pub fn with_shape(&self, shape: &[usize]) -> HloType {
        HloType { element: self.element, shape: shape.to_vec() }
    }

    /// The same shape with elements of another type.
    pub fn with_dtype(&self, dtype: DType) -> HloType {
        HloType { element: HloElement::Real(dtype), shape: self.shape.clone() }
    }
}

impl HloValue {
    /// The values `%3#0`, `%3#1` of an operation with several results, or `%3`.
    pub fn all(name: &str, types: &[HloType]) -> Vec<HloValue> {
        let value = |(at, ty): (usize, &HloType)| match types.len() {
            1 => HloValue { name: name.to_string(), ty: ty.clone() },
            _ => HloValue { name: format!("{name}#{at}"), ty: ty.clone() },
        };
        types.iter().enumerate().map(value).collect()
    }
}

impl fmt::Display for HloElement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HloElement::Real(dtype) => f.write_str(element_name(*dtype)),
            HloElement::Complex(dtype) => write!(f, "complex<{}>", element_name(*dtype)),
        }
    }
}

impl fmt::Display for HloType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tensor<")?;
        for size in &self.shape {
            write!(f, "{size}x")?;
        }
        write!(f, "{}>", self.element)
    }
}

/// The name of an element type in MLIR.
fn element_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "i1",
        DType::I8 => "i8",
        DType::I16 => "i16",
        DType::I32 => "i32",
        DType::I64 => "i64",
        DType::U8 => "ui8",
        DType::U16 => "ui16",
        DType::U32 => "ui32",
        DType::U64 | DType::Key => "ui64",
        DType::F8e4m3 => "f8E4M3FN",
        DType::F8e5m2 => "f8E5M2",
        DType::F16 => "f16",
        DType::Bf16 => "bf16",
        DType::F32 => "f32",
        DType::F64 => "f64",
    }
}

/// A sharding of Shardy, `<@mesh, [{"X"}, {?}]>`, without these axes.
///
/// Partial sums are whole values here. XLA also has them, but multiplies a value by the number of devices if it becomes partial where
/// nothing else fixes its layout (jaxlib 0.10.2).
pub fn sharding_text(sharding: &Sharding, mesh: &Mesh, without: AxisSet) -> String {
    let kept = |axis: &u8| !without.contains(usize::from(*axis));
    let name = |axis: u8| format!("\"{}\"", mesh.name(axis));
    let dim = |dim: &spmdc_layout::sharding::DimSharding| {
        let mut entries: Vec<String> = dim.axes.iter().copied().filter(kept).map(name).collect();
        entries.extend(dim.open.then(|| "?".to_string()));
        format!("{{{}}}", entries.join(", "))
    };
    let dims: Vec<String> = sharding.dims.iter().map(dim).collect();
    format!("<@mesh, [{}]>", dims.join(", "))
}
