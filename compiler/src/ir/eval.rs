//! The reference evaluator: what a program means, computed on whole arrays without regard to speed.

use crate::ir::types::{ArrayType, DType};
use spmdc_grammar::codes::Code;

/// What stops a running program: E0801 or E0802, and what happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    pub code: Code,
    pub message: String,
}

impl Trap {
    pub fn division_by_zero() -> Trap {
        Trap { code: Code::E0802, message: "integer division by zero".to_string() }
    }
}

/// A whole array; each element's bits in the low bytes of a word (sign bits are not extended), in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Array {
    pub ty: ArrayType,
    pub bits: Vec<u64>,
}

impl Array {
    pub fn new(ty: ArrayType, bits: Vec<u64>) -> Array {
        debug_assert_eq!(ty.len(), bits.len());
        Array { ty, bits }
    }

    pub fn scalar(dtype: DType, bits: u64) -> Array {
        Array { ty: ArrayType::scalar(dtype), bits: vec![bits] }
    }

    pub fn filled(ty: ArrayType, bits: u64) -> Array {
        let len = ty.len();
        Array { ty, bits: vec![bits; len] }
    }

    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

    pub fn shape(&self) -> &[usize] {
        &self.ty.shape
    }
}
