//! Files of whole arrays, in the format that the name of the file asks for.

use std::path::Path;

use super::npy::write_npy;
use super::npz::write_npz;
use super::safetensors::write_safetensors;
use crate::array::{ArrayView, ComplexArray, HostArray};
use crate::trap::RunError;

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileFormat {
    /// One array.
    Npy,
    /// Named arrays.
    Npz,
    /// Named arrays of real numbers.
    Safetensors,
}

impl FileFormat {
    /// The format that the ending of a name stands for; None for any other ending.
    pub fn of(path: &Path) -> Option<FileFormat> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "npy" => Some(FileFormat::Npy),
            "npz" => Some(FileFormat::Npz),
            "safetensors" => Some(FileFormat::Safetensors),
            _ => None,
        }
    }
}

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
    match (FileFormat::of(path), arrays) {
        (Some(FileFormat::Npy), [(_, array)]) => write_npy(path, array.view()),
        (Some(FileFormat::Npz), _) => {
            let views: Vec<_> = arrays.iter().map(|(name, array)| (*name, array.view())).collect();
            write_npz(path, &views)
        }
        (Some(FileFormat::Safetensors), _) => {
            let real = arrays.iter().map(|(name, array)| match array {
                WholeArray::Real(array) => Ok((*name, *array)),
                WholeArray::Complex(_) => Err(RunError::internal("a .safetensors file has no complex arrays")),
            });
            write_safetensors(path, &real.collect::<Result<Vec<_>, RunError>>()?)
        }
        (Some(FileFormat::Npy), _) => Err(RunError::internal("a file of one array has several")),
        (None, _) => Err(RunError::internal("a file without a format")),
    }
}
