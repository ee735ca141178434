//! Products of matrices, in terms of values.

use crate::program::value::Value;
use spmdc_abi::{DType, GemmRing, Scalar};

/// A product as the library computes it: `c (+)= a * b`, inside further loops. Strides are in elements of each block.
#[derive(Clone, Debug, PartialEq)]
pub struct Product {
    /// The element type of the result, as in [`spmdc_abi::GemmStep`].
    pub dtype: DType,
    /// The element types of both operands.
    pub operands: [DType; 2],
    /// The first operand, with dimensions `m` and `k`.
    pub a: Value,
    /// The second operand, with dimensions `k` and `n`.
    pub b: Value,
    /// The result, with dimensions `m` and `n`.
    pub c: Value,
    /// The free dimension of `a`.
    pub m: ProductDim,
    /// The free dimension of `b`.
    pub n: ProductDim,
    /// The contracted dimension.
    pub k: ProductDim,
    /// Batch dimensions and further free ones.
    pub loops: Vec<ProductDim>,
    /// Further contracted dimensions.
    pub contracted: Vec<ProductDim>,
    /// Set if one operand is read from the devices that hold its blocks.
    pub ring: Option<Box<GemmRing>>,
}

/// One dimension of a product: its extent, and its stride in each block, 0 for a block without it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProductDim {
    /// The number of elements on this device.
    pub extent: Scalar,
    /// Its stride in `a`.
    pub a: i64,
    /// Its stride in `b`.
    pub b: i64,
    /// Its stride in `c`.
    pub c: i64,
}
