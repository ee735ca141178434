//! A call in a random program, with its parameters.

use super::Array;
use spmdc_abi::DType;

/// An expression over parameters `a`, `b`, ...
#[derive(Clone, Debug)]
pub struct Call {
    pub params: Vec<Array>,
    pub expr: String,
    /// Statements in front of the expression.
    pub before: String,
}

impl Call {
    pub fn new(params: &[(DType, &[usize])], expr: impl Into<String>) -> Call {
        let params = params.iter().map(|&(dtype, shape)| Array::new(dtype, shape)).collect();
        Call { params, expr: expr.into(), before: String::new() }
    }
}
