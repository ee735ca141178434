//! The elements of an array in a file, for repeated reads.

use std::path::PathBuf;

use super::{Bytes, unreadable};
use crate::errors::trap::RunError;
use spmdc_abi::DType;

/// The elements of an array in a file, row-major; several threads can read parts of them concurrently.
pub struct ElementsInFile {
    /// Its name in messages.
    name: PathBuf,
    bytes: Bytes,
    dtype: DType,
    /// The byte order of the elements differs from the machine's.
    swapped: bool,
}

impl ElementsInFile {
    pub(crate) fn new(name: PathBuf, bytes: Bytes, dtype: DType, swapped: bool) -> ElementsInFile {
        ElementsInFile { name, bytes, dtype, swapped }
    }

    /// Fills `out` with the elements from byte `start` on, in native byte order; a bool is 0 or 1. Both are whole elements.
    pub(crate) fn read_at(&self, start: u64, out: &mut [u8]) -> Result<(), RunError> {
        let size = self.dtype.size();
        debug_assert!(start.is_multiple_of(size as u64) && out.len().is_multiple_of(size), "whole elements are read");
        self.bytes.read_at(start, out).map_err(|why| unreadable(&self.name, why))?;
        if self.swapped {
            out.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        if self.dtype == DType::Bool {
            out.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(())
    }

    /// Tells the system that these bytes will be read soon. It may read them meanwhile, or not.
    pub(crate) fn announce(&self, start: u64, len: usize) {
        self.bytes.announce(start, len as u64);
    }
}
