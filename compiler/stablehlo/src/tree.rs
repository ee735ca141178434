//! Programs as MLIR prints them: functions, operations with regions, attributes and types.

use spmdc_grammar::span::Span;
use std::collections::BTreeMap;

/// A module.
#[derive(Debug, Default)]
pub struct MlirModule {
    /// The meshes that `sdy.mesh` declares, in order.
    pub meshes: Vec<MeshDeclaration>,
    /// The functions, in order.
    pub functions: Vec<MlirFunction>,
}

/// `sdy.mesh @mesh = <["X"=2, "Y"=4], device_ids=[..]>`
#[derive(Clone, Debug)]
pub struct MeshDeclaration {
    /// Its name, without `@`.
    pub name: String,
    /// The axes with their sizes, major to minor.
    pub axes: Vec<(String, usize)>,
    /// The devices in row-major order; None for 0, 1, 2, ...
    pub devices: Option<Vec<usize>>,
    /// Its place in the text.
    pub span: Span,
}

/// `func.func public @main(..) -> (..) { .. }`
#[derive(Debug)]
pub struct MlirFunction {
    /// Its name, without `@`.
    pub name: String,
    /// The parameters.
    pub params: Vec<MlirParam>,
    /// The results: their types, attributes.
    pub results: Vec<(TensorType, Attributes)>,
    /// The statements.
    pub body: Vec<MlirOp>,
    /// Its place in the text.
    pub span: Span,
}

/// A parameter of a function.
#[derive(Debug)]
pub struct MlirParam {
    /// Its name, without `%`.
    pub name: String,
    /// Its type.
    pub ty: TensorType,
    /// `sdy.sharding`, `jax.buffer_donor` and others.
    pub attributes: Attributes,
    /// The location, as the text has it between the brackets of `loc(..)`.
    pub location: Option<String>,
    /// Its place in the text.
    pub span: Span,
}

/// Attributes by their names.
pub type Attributes = BTreeMap<String, Attribute>;

/// An operation.
#[derive(Debug)]
pub struct MlirOp {
    /// Its name with its dialect: `stablehlo.add`.
    pub name: String,
    /// The names of its results, each with the number of values under it: `%0:2`.
    pub results: Vec<(String, usize)>,
    /// The operands, in order.
    pub operands: Vec<ValueName>,
    /// Attributes and properties. The pretty forms have those of the generic form.
    pub attributes: Attributes,
    /// Its regions, each of one block.
    pub regions: Vec<MlirBlock>,
    /// The types of the results.
    pub types: Vec<TensorType>,
    /// The location, as the text has it between the brackets of `loc(..)`.
    pub location: Option<String>,
    /// Its place in the text.
    pub span: Span,
}

/// A block of a region.
#[derive(Debug, Default)]
pub struct MlirBlock {
    /// The names and types of its arguments.
    pub params: Vec<(String, TensorType)>,
    /// The statements; the last one returns.
    pub body: Vec<MlirOp>,
}

/// A use of a value: `%0`, `%0#1`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ValueName {
    /// Without `%`.
    pub base: String,
    /// The number after `#`; 0 without one.
    pub index: usize,
}

/// The type of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MlirElement {
    /// `i1`
    Bool,
    /// `i8`, `i16`, `i32`, `i64`
    Signed(u8),
    /// `ui8`, `ui16`, `ui32`, `ui64`
    Unsigned(u8),
    /// `f8E4M3FN`
    F8e4m3,
    /// `f8E5M2`
    F8e5m2,
    /// `f16`
    F16,
    /// `bf16`
    Bf16,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `complex<f32>`
    C64,
    /// `complex<f64>`
    C128,
}

impl MlirElement {
    /// Its name in the language.
    pub fn name(self) -> &'static str {
        match self {
            MlirElement::Bool => "bool",
            MlirElement::Signed(8) => "i8",
            MlirElement::Signed(16) => "i16",
            MlirElement::Signed(32) => "i32",
            MlirElement::Signed(_) => "i64",
            MlirElement::Unsigned(8) => "u8",
            MlirElement::Unsigned(16) => "u16",
            MlirElement::Unsigned(32) => "u32",
            MlirElement::Unsigned(_) => "u64",
            MlirElement::F8e4m3 => "f8e4m3",
            MlirElement::F8e5m2 => "f8e5m2",
            MlirElement::F16 => "f16",
            MlirElement::Bf16 => "bf16",
            MlirElement::F32 => "f32",
            MlirElement::F64 => "f64",
            MlirElement::C64 => "c64",
            MlirElement::C128 => "c128",
        }
    }

    /// Whether it is a real floating-point type.
    pub fn is_float(self) -> bool {
        match self {
            MlirElement::F8e4m3
            | MlirElement::F8e5m2
            | MlirElement::F16
            | MlirElement::Bf16
            | MlirElement::F32
            | MlirElement::F64 => true,
            MlirElement::Bool
            | MlirElement::Signed(_)
            | MlirElement::Unsigned(_)
            | MlirElement::C64
            | MlirElement::C128 => false,
        }
    }

    /// Whether it is an integer type.
    pub fn is_integer(self) -> bool {
        matches!(self, MlirElement::Signed(_) | MlirElement::Unsigned(_))
    }

    /// Whether it is a complex type.
    pub fn is_complex(self) -> bool {
        matches!(self, MlirElement::C64 | MlirElement::C128)
    }

    /// The number of bits of an element.
    pub fn bits(self) -> u32 {
        match self {
            MlirElement::Bool => 1,
            MlirElement::Signed(bits) | MlirElement::Unsigned(bits) => u32::from(bits),
            MlirElement::F8e4m3 | MlirElement::F8e5m2 => 8,
            MlirElement::F16 | MlirElement::Bf16 => 16,
            MlirElement::F32 => 32,
            MlirElement::F64 | MlirElement::C64 => 64,
            MlirElement::C128 => 128,
        }
    }
}

/// `tensor<8x16xf32>`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorType {
    /// The sizes; empty for a scalar.
    pub shape: Vec<usize>,
    /// The type of its elements.
    pub element: MlirElement,
}

impl TensorType {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// An array of these elements with another shape.
    pub fn with_shape(&self, shape: &[usize]) -> TensorType {
        TensorType { shape: shape.to_vec(), element: self.element }
    }

    /// An array of this shape with other elements.
    pub fn with(&self, element: MlirElement) -> TensorType {
        TensorType { shape: self.shape.clone(), element }
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute {
    /// `true`, `unit`, or an attribute without a value.
    Bool(bool),
    /// `3`, `3 : i64`
    Int(i128),
    /// `1.5e+00 : f32`, or its bits.
    Float(String),
    /// `"text"`
    Text(String),
    /// `@name`
    Symbol(String),
    /// `[a, b]`
    List(Vec<Attribute>),
    /// `{a = 1, b = 2}`
    Map(Attributes),
    /// `array<i64: 1, 2>`
    Ints(Vec<i128>),
    /// `dense<..> : tensor<..>`
    Dense(Dense),
    /// `#sdy.sharding<..>`: its name without `#`, and the text between the outer brackets.
    Custom(String, String),
    /// A word, such as `SIGNED`.
    Word(String),
}

impl Attribute {
    /// Integers in any of the forms in which they are printed.
    pub fn ints(&self) -> Option<Vec<i128>> {
        match self {
            Attribute::Ints(all) => Some(all.clone()),
            Attribute::Int(one) => Some(vec![*one]),
            Attribute::Bool(one) => Some(vec![i128::from(*one)]),
            Attribute::List(all) => all
                .iter()
                .map(|one| match one {
                    Attribute::Int(one) => Some(*one),
                    Attribute::Bool(one) => Some(i128::from(*one)),
                    Attribute::Float(_)
                    | Attribute::Text(_)
                    | Attribute::Symbol(_)
                    | Attribute::List(_)
                    | Attribute::Map(_)
                    | Attribute::Ints(_)
                    | Attribute::Dense(_)
                    | Attribute::Custom(..)
                    | Attribute::Word(_) => None,
                })
                .collect(),
            Attribute::Dense(dense) => dense.ints(),
            Attribute::Float(_)
            | Attribute::Text(_)
            | Attribute::Symbol(_)
            | Attribute::Map(_)
            | Attribute::Custom(..)
            | Attribute::Word(_) => None,
        }
    }
}

/// The elements of a constant.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    /// The type.
    pub ty: TensorType,
    /// One element for all, or all in row-major order; for complex types the parts after each other.
    pub elements: Vec<DenseNumber>,
}

/// A number in a constant.
#[derive(Clone, Debug, PartialEq)]
pub enum DenseNumber {
    /// An integer, or a bool.
    Int(i128),
    /// A decimal number, as it is written.
    Decimal(String),
    /// The bits of a float: `0x7FC00000`.
    Bits(u64),
}

impl DenseNumber {
    /// Whether it is 0 or -0.
    pub fn is_zero(&self) -> bool {
        match self {
            DenseNumber::Int(value) => *value == 0,
            DenseNumber::Decimal(text) => text.parse() == Ok(0.0),
            DenseNumber::Bits(bits) => *bits == 0,
        }
    }
}

impl Dense {
    /// The elements, if they are integers; a number for all is repeated.
    pub fn ints(&self) -> Option<Vec<i128>> {
        let known: Option<Vec<i128>> = self
            .elements
            .iter()
            .map(|number| match number {
                DenseNumber::Int(one) => Some(*one),
                DenseNumber::Bits(bits) => Some(i128::from(*bits)),
                DenseNumber::Decimal(_) => None,
            })
            .collect();
        let known = known?;
        match known.as_slice() {
            [one] => Some(vec![*one; self.ty.len()]),
            _ => Some(known),
        }
    }

    /// Whether one element stands for all.
    pub fn is_splat(&self) -> bool {
        let parts = if self.ty.element.is_complex() { 2 } else { 1 };
        self.elements.len() == parts
    }
}
