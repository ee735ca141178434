//! Files of whole arrays, in the format that the name of the file asks for.

use std::path::Path;

use super::layout::{FileFormat, write_views};
use crate::data::array::{ArrayView, ComplexArray, HostArray};
use crate::errors::trap::RunError;

/// A whole array, of real or of complex numbers.
pub(crate) enum WholeArray<'a> {
    Real(&'a HostArray),
    Complex(ComplexArray),
}

impl<'a> WholeArray<'a> {
    /// The array with this real plane, and this imaginary one if its numbers are complex.
    pub fn new(re: &'a HostArray, im: Option<&HostArray>) -> WholeArray<'a> {
        im.map_or(WholeArray::Real(re), |im| WholeArray::Complex(ComplexArray::new(re, im)))
    }

    pub fn view(&self) -> ArrayView<'_> {
        match self {
            WholeArray::Real(array) => (*array).into(),
            WholeArray::Complex(array) => array.into(),
        }
    }
}

/// Writes named arrays as one file, which appears only when it is complete. The format must have been checked to keep them.
pub(crate) fn write_arrays(path: &Path, arrays: &[(&str, WholeArray<'_>)]) -> Result<(), RunError> {
    debug_assert!(
        arrays.iter().enumerate().all(|(at, (name, _))| arrays[..at].iter().all(|(other, _)| other != name)),
        "each array has a name of its own"
    );
    let Some(format) = FileFormat::of(path) else { return Err(RunError::internal("a file has no format")) };
    let views: Vec<(&str, ArrayView<'_>)> = arrays.iter().map(|(name, array)| (*name, array.view())).collect();
    write_views(path, format, &views)
}
