//! Products of matrices.

use crate::{AxisSet, CollectiveKind, DType, Place, Scalar, Site};
use serde::{Deserialize, Serialize};

/// `c[..] (+)= a[..] * b[..]`, for every combination of `loops`. Strides are in elements. Sums of integers wrap around.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GemmStep {
    /// The element type of the result: f32, f64, or an integer of 32 or 64 bits.
    pub dtype: DType,
    /// The element types of `a` and `b`: that of the result; or, if it is an integer of 32 bits, any integers of at most 32 bits, and
    /// bools; or, if it is f32, bf16.
    pub operands: [DType; 2],
    /// The left operand.
    pub a: Place,
    /// The right operand.
    pub b: Place,
    /// The result.
    pub c: Place,
    /// The rows of `a` and of `c`.
    pub m: GemmDim,
    /// The columns of `b` and of `c`.
    pub n: GemmDim,
    /// The contracted dimension: the columns of `a` and the rows of `b`.
    pub k: GemmDim,
    /// Batch dimensions, and further free ones, outermost first.
    pub loops: Vec<GemmDim>,
    /// Further contracted dimensions: the first pass writes, later ones add.
    pub contracted: Vec<GemmDim>,
    /// As in [`KernelStep::split`](crate::KernelStep::split): the work is divided among these devices.
    pub split: AxisSet,
    /// Set if one operand is read in place, one block after the other.
    pub ring: Option<GemmRing>,
    /// The statement that the product computes.
    pub site: Site,
}

/// An operand of a product whose blocks are on several devices. Extents of dimensions that this operand has (with strides other
/// than 0) are the owner's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GemmRing {
    /// The collective that this replaces, for `--stats`.
    pub kind: CollectiveKind,
    /// Bytes of one device's operand.
    pub bytes: u64,
    /// Whether it is `b`; otherwise `a`.
    pub is_b: bool,
    /// The axes, major to minor, along which the owners have positions.
    pub axes: Vec<u8>,
    /// The index in the whole operand at which the owner's block begins. The products are summed, in the order of positions on
    /// every device, if the dimension is not in `c`.
    pub start: Scalar,
    /// The stride of the split dimension in the other operand, in elements.
    pub other: i64,
    /// The stride of the split dimension in `c`, in elements; 0 if the dimension is contracted.
    pub c: i64,
}

/// One dimension of a product and its stride in each operand (0 for an operand without it).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GemmDim {
    /// Elements of the dimension on the device.
    pub extent: Scalar,
    /// Stride in `a`, in elements.
    pub a: i64,
    /// Stride in `b`, in elements.
    pub b: i64,
    /// Stride in `c`, in elements.
    pub c: i64,
}

/// The elements of a product, given the types of its result and its operands; None for types that have no product.
///
/// Floats have one type, but sums of products of bf16 are in f32. Operands of 8 bits are i8, also unsigned ones and bools, which are 0 or 1.
/// Others are i16 if that type can hold them, or i32 or i64, whether signed or not.
pub fn product_elements(result: DType, operands: [DType; 2]) -> Option<DType> {
    let are = |types: &[DType]| operands.iter().all(|operand| types.contains(operand));
    let wide = [DType::Bool, DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32];
    match result {
        DType::F32 if are(&[DType::Bf16]) => Some(DType::Bf16),
        DType::F32 | DType::F64 => are(&[result]).then_some(result),
        DType::I32 | DType::U32 if are(&[DType::Bool, DType::I8, DType::U8]) => Some(DType::I8),
        DType::I32 | DType::U32 if are(&[DType::Bool, DType::I8, DType::U8, DType::I16]) => Some(DType::I16),
        DType::I32 | DType::U32 => are(&wide).then_some(DType::I32),
        DType::I64 | DType::U64 => are(&[result]).then_some(DType::I64),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::U8
        | DType::U16
        | DType::F16
        | DType::Bf16
        | DType::F8e4m3
        | DType::F8e5m2
        | DType::Key => None,
    }
}
