//! Where everything is in a file of arrays, by the types and shapes of the arrays alone.
//!
//! Whoever knows the layout of a file can write any part of it: the processes of a job write their own elements into one file.

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::npy::header_for;
use super::zip::{FileTexts, StoredMember, archive};
use super::{safetensors, unwritable, write_file};
use crate::data::array::ArrayView;
use crate::errors::trap::RunError;
use spmdc_abi::DType;
use spmdc_abi::sorted::order;

/// A format of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FileFormat {
    /// One array.
    Npy,
    /// Named arrays.
    Npz,
    /// Named arrays of real numbers.
    Safetensors,
}

impl FileFormat {
    /// The format for the extension of a name; None for any other extension.
    pub fn of(path: &Path) -> Option<FileFormat> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "npy" => Some(FileFormat::Npy),
            "npz" => Some(FileFormat::Npz),
            "safetensors" => Some(FileFormat::Safetensors),
            _ => None,
        }
    }

    /// Whether the elements of a file have the other byte order than those in memory.
    pub fn swaps(self) -> bool {
        match self {
            FileFormat::Npy | FileFormat::Npz => false,
            FileFormat::Safetensors => cfg!(target_endian = "big"),
        }
    }
}

/// The description of an array in a file: everything but its elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArrayForm {
    pub name: String,
    /// For complex numbers, the type of their planes.
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub complex: bool,
}

impl ArrayForm {
    /// Bytes of one element.
    pub fn element_size(&self) -> usize {
        self.dtype.size() * if self.complex { 2 } else { 1 }
    }

    /// Bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.shape.iter().product::<usize>() as u64 * self.element_size() as u64
    }

    fn npy_header(&self) -> Vec<u8> {
        header_for(ArrayView { dtype: self.dtype, shape: &self.shape, bytes: &[], complex: self.complex })
    }
}

/// Where everything is in a file.
#[derive(Debug, PartialEq)]
pub(crate) struct FileLayout {
    /// The bytes apart from the elements.
    pub texts: FileTexts,
    /// The offset of the elements of each array.
    pub begins: Vec<u64>,
}

impl FileLayout {
    /// The layout of a file of these arrays. Only texts of `.npz` files depend on the checksums of the elements, one for each array.
    pub fn new(format: FileFormat, arrays: &[ArrayForm], checksums: &[u32]) -> io::Result<FileLayout> {
        debug_assert_eq!(arrays.len(), checksums.len(), "each array has a checksum");
        match format {
            FileFormat::Npy => {
                let [array] = arrays else { return Err(io::Error::other("it holds a single array")) };
                let header = array.npy_header();
                Ok(FileLayout { begins: vec![header.len() as u64], texts: vec![(0, header)] })
            }
            FileFormat::Npz => {
                let headers: Vec<Vec<u8>> = arrays.iter().map(ArrayForm::npy_header).collect();
                let member = |((array, header), elements): ((&ArrayForm, &Vec<u8>), &u32)| StoredMember {
                    name: format!("{}.npy", array.name),
                    size: header.len() as u64 + array.bytes(),
                    checksum: shifted(crc32fast::hash(header), array.bytes()) ^ elements,
                };
                let members: Vec<StoredMember> = arrays.iter().zip(&headers).zip(checksums).map(member).collect();
                let (mut texts, contents) = archive(&members)?;
                let begins = contents.iter().zip(&headers).map(|(begin, header)| begin + header.len() as u64).collect();
                for ((_, text), header) in texts.iter_mut().zip(headers) {
                    text.extend(header);
                }
                Ok(FileLayout { texts, begins })
            }
            FileFormat::Safetensors => {
                if arrays.iter().any(|array| array.complex) {
                    return Err(io::Error::other("it holds real numbers only"));
                }
                let named: Vec<(&str, DType, &[usize])> =
                    arrays.iter().map(|array| (array.name.as_str(), array.dtype, array.shape.as_slice())).collect();
                let (header, begins) = safetensors::header(&named)?;
                Ok(FileLayout { texts: vec![(0, header)], begins })
            }
        }
    }
}

/// Bytes of the numbers that make up elements, whose byte order may have to be reversed.
pub(crate) fn word_size(dtype: DType) -> usize {
    // A key is two words.
    if dtype == DType::Key { 4 } else { dtype.size() }
}

/// The part of a checksum (CRC-32) that bytes with this one have where `after` bytes follow: the checksum of a whole is the exclusive or
/// of such parts, in any order.
pub(crate) fn shifted(checksum: u32, after: u64) -> u32 {
    let mut shifted = crc32fast::Hasher::new_with_initial(checksum);
    shifted.combine(&crc32fast::Hasher::new_with_initial_len(0, after));
    shifted.finalize()
}

/// Writes named arrays as one file, which appears only when it is complete.
pub(crate) fn write_views(path: &Path, format: FileFormat, arrays: &[(&str, ArrayView<'_>)]) -> Result<(), RunError> {
    let layout = layout_of(format, arrays).map_err(|error| unwritable(path, &error))?;
    write_file(path, |out| write_in_order(out, format, &layout, arrays))
}

fn layout_of(format: FileFormat, arrays: &[(&str, ArrayView<'_>)]) -> io::Result<FileLayout> {
    let form = |&(name, array): &(&str, ArrayView<'_>)| ArrayForm {
        name: name.to_string(),
        dtype: array.dtype,
        shape: array.shape.to_vec(),
        complex: array.complex,
    };
    let forms: Vec<ArrayForm> = arrays.iter().map(form).collect();
    let checksum =
        |(_, array): &(&str, ArrayView<'_>)| if format == FileFormat::Npz { crc32fast::hash(array.bytes) } else { 0 };
    FileLayout::new(format, &forms, &arrays.iter().map(checksum).collect::<Vec<_>>())
}

fn write_in_order(
    out: &mut dyn Write,
    format: FileFormat,
    layout: &FileLayout,
    arrays: &[(&str, ArrayView<'_>)],
) -> io::Result<()> {
    let texts = layout.texts.iter().map(|(at, text)| (*at, text.as_slice(), 1));
    let elements = layout.begins.iter().zip(arrays).map(|(at, (_, array))| {
        let swapped = if format.swaps() { word_size(array.dtype) } else { 1 };
        (*at, array.bytes, swapped)
    });
    let parts: Vec<(u64, &[u8], usize)> = texts.chain(elements).filter(|(_, bytes, _)| !bytes.is_empty()).collect();
    let begins: Vec<u64> = parts.iter().map(|(at, ..)| *at).collect();
    let mut position = 0;
    for (at, bytes, word) in order(&begins).into_iter().map(|part| parts[part]) {
        debug_assert_eq!(at, position, "the parts of a file follow each other");
        position = at + bytes.len() as u64;
        if word == 1 {
            out.write_all(bytes)?;
        } else {
            bytes.chunks_exact(word).try_for_each(|word| {
                let swapped: Vec<u8> = word.iter().rev().copied().collect();
                out.write_all(&swapped)
            })?;
        }
    }
    Ok(())
}

/// The bytes of a file.
#[cfg(test)]
pub(crate) fn file_of(format: FileFormat, arrays: &[(&str, ArrayView<'_>)]) -> Vec<u8> {
    let mut content = Vec::new();
    let layout = layout_of(format, arrays).expect("the names are short");
    write_in_order(&mut content, format, &layout, arrays).expect("memory is there");
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_parts_are_joined_in_any_order() {
        let bytes: Vec<u8> = (0..1000u32).map(|at| (at * at) as u8).collect();
        let ranges = [0..1, 1..300, 300..300, 300..999, 999..1000];
        let part = |range: &std::ops::Range<usize>| {
            shifted(crc32fast::hash(&bytes[range.clone()]), (bytes.len() - range.end) as u64)
        };
        let joined = ranges.iter().rev().fold(0, |all, range| all ^ part(range));
        assert_eq!(joined, crc32fast::hash(&bytes));
    }
}
