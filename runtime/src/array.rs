//! A whole array in the host's memory: row-major, native byte order. What enters and leaves a program has this form.

use crate::abi::DType;

#[derive(Clone, Debug, PartialEq)]
pub struct HostArray {
    pub dtype: DType,
    pub shape: Vec<usize>,
    /// `shape.product() * dtype.size()` bytes.
    pub bytes: Vec<u8>,
}

impl HostArray {
    pub fn zeros(dtype: DType, shape: &[usize]) -> HostArray {
        let len = shape.iter().product::<usize>() * dtype.size();
        HostArray { dtype, shape: shape.to_vec(), bytes: vec![0; len] }
    }

    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
