//! The `.npy` format: a short text header, then the elements.
//!
//! Versions 1 to 3 are read, in either byte order and either memory order. `ml_dtypes` stores a float that NumPy lacks as raw bytes, a
//! `bf16` as `V2`; these are read as the type of that size that a parameter has, and written in this form. A key is stored as two
//! `u32`.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::data::array::{ArrayView, BlockSource, HostArray, for_each_row};
use crate::errors::trap::RunError;
use crate::io::in_file::ElementsInFile;
use crate::io::zip::Packed;
use crate::io::{Bytes, OpenedInput, RowReader, next_of_pipe, unreadable, write_file};
use spmdc_abi::DType;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Maximum length of the header of an array, in bytes.
const MAX_HEADER_BYTES: usize = 1 << 20;

/// An array in a `.npy` file or in a member of an archive, read block by block.
pub struct NpySource {
    /// Its name in messages.
    name: PathBuf,
    dtype: DType,
    /// Whether the elements are complex: pairs of numbers of the type.
    complex: bool,
    shape: Vec<usize>,
    /// The first dimension varies fastest.
    fortran_order: bool,
    /// The byte order of the elements differs from the machine's.
    swapped: bool,
    /// The file does not state the type of the elements, only the number of bytes of each.
    is_raw: bool,
    elements: NpyElements,
}

/// The bytes of the elements, as far as they have been read. The type is compared with the parameter's before the first block is
/// read, so no larger array is ever read or decoded.
enum NpyElements {
    Ready(Bytes),
    /// In an archive, after a header of this length.
    Packed(Packed, usize),
    /// Not yet read from a pipe.
    Pipe(File),
}

impl NpySource {
    /// Opens a file or a pipe and reads its header. An error (E0703) if it cannot be read or is not a `.npy` file.
    pub fn open(path: &Path) -> Result<NpySource, RunError> {
        match OpenedInput::open(path)? {
            OpenedInput::File(content) => NpySource::from_bytes(content, path.to_path_buf()),
            OpenedInput::Pipe(pipe) => NpySource::of_pipe(pipe, path.to_path_buf()),
        }
    }

    /// Reads the header; `name` is the file's name in messages.
    fn from_bytes(content: Bytes, name: PathBuf) -> Result<NpySource, RunError> {
        let (header, data_start) =
            NpyHeader::read(&mut |len| content.head(len)).map_err(|why| unreadable(&name, why))?;
        let bytes = header.data_bytes().map_err(|why| unreadable(&name, why))?;
        let elements = content.part(data_start as u64, bytes as u64).ok_or_else(|| {
            let there = content.len().saturating_sub(data_start as u64);
            unreadable(&name, format!("it is truncated: {} takes {bytes} bytes, but it holds {there}", header.ty()))
        })?;
        Ok(header.source(name, NpyElements::Ready(elements)))
    }

    /// An array in an archive, whose size must be the one that the archive says.
    pub(crate) fn of_member(packed: Packed, name: PathBuf) -> Result<NpySource, RunError> {
        let (header, data_start) =
            NpyHeader::read(&mut |len| packed.head(len)).map_err(|why| unreadable(&name, why))?;
        let bytes = header.data_bytes().map_err(|why| unreadable(&name, why))?;
        let needed = data_start as u64 + bytes as u64;
        if packed.size != needed {
            let (ty, said) = (header.ty(), packed.size);
            let why = format!("its archive declares {said} bytes, but {ty} takes {needed}");
            return Err(unreadable(&name, why));
        }
        Ok(header.source(name, NpyElements::Packed(packed, data_start)))
    }

    fn of_pipe(mut pipe: File, name: PathBuf) -> Result<NpySource, RunError> {
        let mut begun = Vec::new();
        let mut head = |len: usize| -> Result<Vec<u8>, String> {
            begun.extend(next_of_pipe(&mut pipe, len.saturating_sub(begun.len()))?);
            Ok(begun.clone())
        };
        let (header, _) = NpyHeader::read(&mut head).map_err(|why| unreadable(&name, why))?;
        header.data_bytes().map_err(|why| unreadable(&name, why))?;
        Ok(header.source(name, NpyElements::Pipe(pipe)))
    }

    /// Little-endian elements in row-major order, as many as the shape says.
    pub(crate) fn in_place(name: PathBuf, dtype: DType, shape: Vec<usize>, elements: Bytes) -> NpySource {
        let swapped = cfg!(target_endian = "big") && dtype.size() > 1;
        let elements = NpyElements::Ready(elements);
        NpySource { name, dtype, complex: false, shape, fortran_order: false, swapped, is_raw: false, elements }
    }

    /// The same elements, interpreted as another type if the file does not determine it: raw bytes of the size in which this type is
    /// written.
    pub fn taken_for(mut self, dtype: DType) -> NpySource {
        if self.is_raw && dtype.npy() == self.dtype.npy() {
            self.dtype = dtype;
        }
        self
    }

    /// Whether the elements are complex. A block of them has pairs of numbers.
    pub fn is_complex(&self) -> bool {
        self.complex
    }

    /// Bytes of one element.
    fn element_size(&self) -> usize {
        self.dtype.size() * if self.complex { 2 } else { 1 }
    }

    /// The bytes of all elements.
    fn elements(&mut self) -> Result<&Bytes, String> {
        let len = self.shape.iter().product::<usize>() * self.element_size();
        let bytes = || len;
        let ready = match &mut self.elements {
            NpyElements::Ready(_) => None,
            NpyElements::Packed(packed, data_start) => {
                let content = packed.unpack()?;
                let start = *data_start as u64;
                Some(content.part(start, content.len().saturating_sub(start)).ok_or("it is truncated")?)
            }
            NpyElements::Pipe(pipe) => {
                let content = next_of_pipe(pipe, bytes())?;
                if content.len() < bytes() {
                    return Err(format!("it is truncated after {} bytes of {}", content.len(), bytes()));
                }
                Some(Bytes::owned(content))
            }
        };
        if let Some(ready) = ready {
            self.elements = NpyElements::Ready(ready);
        }
        match &self.elements {
            NpyElements::Ready(bytes) => Ok(bytes),
            NpyElements::Packed(..) | NpyElements::Pipe(_) => Err("it was not read".to_string()),
        }
    }

    /// The whole array; of complex numbers, the real and the imaginary parts are one more dimension.
    pub fn read(&mut self) -> Result<HostArray, RunError> {
        let pair = self.complex.then_some(2);
        let whole: Vec<usize> = self.shape.iter().copied().chain(pair).collect();
        let mut array = HostArray::zeros(self.dtype, &whole);
        let shape = self.shape.clone();
        self.read_block(&vec![0; shape.len()], &shape, &mut array.bytes)?;
        Ok(array)
    }
}

impl BlockSource for NpySource {
    fn dtype(&self) -> DType {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn read_block(&mut self, start: &[usize], len: &[usize], out: &mut [u8]) -> Result<(), RunError> {
        let (size, fortran_order, shape) = (self.element_size(), self.fortran_order, self.shape.clone());
        let read = self.elements().and_then(|elements| {
            if fortran_order {
                gather_fortran(elements, size, &shape, start, len, out)
            } else {
                read_rows(elements, size, &shape, start, len, out)
            }
        });
        read.map_err(|why| unreadable(&self.name, why))?;
        if self.swapped {
            out.chunks_exact_mut(self.dtype.size()).for_each(<[u8]>::reverse);
        }
        if self.dtype == DType::Bool {
            out.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(())
    }

    fn in_file(&mut self) -> Result<Option<ElementsInFile>, RunError> {
        let refused = |why: &str, help: &str| Err(unreadable(&self.name, why).with_help(help));
        if self.fortran_order && self.shape.len() > 1 {
            let why = "a stream is read row by row, but this array is in Fortran order, column by column";
            return refused(why, "write the array row by row: np.save(name, np.ascontiguousarray(x))");
        }
        let bytes = match &self.elements {
            NpyElements::Ready(bytes) => bytes.clone(),
            NpyElements::Packed(packed, data_start) => {
                let start = *data_start as u64;
                let content = packed.in_place().map(|content| content.part(start, content.len().saturating_sub(start)));
                match content {
                    Some(Some(bytes)) => bytes,
                    Some(None) => return refused("it is truncated", "write the file again"),
                    None => {
                        let help = "write the file without compression, with np.savez, or with np.save for one array";
                        return refused("a stream is read at any position, but this array is compressed", help);
                    }
                }
            }
            NpyElements::Pipe(_) => {
                let help = "write the data to a file, or remove `stream` to read it as a whole";
                return refused("a stream is read at any position, but this is a pipe", help);
            }
        };
        let file = || ElementsInFile::new(self.name.clone(), bytes.clone(), self.dtype, self.swapped);
        Ok(bytes.are_in_file().then(file))
    }
}

/// Reads a block of a row-major array.
fn read_rows(
    elements: &Bytes,
    size: usize,
    shape: &[usize],
    start: &[usize],
    len: &[usize],
    out: &mut [u8],
) -> Result<(), String> {
    debug_assert_eq!(out.len(), len.iter().product::<usize>() * size, "there is room for the block");
    debug_assert!(shape.iter().product::<usize>() * size <= elements.len() as usize, "the file has all elements");
    let mut rows = RowReader::new(elements);
    let mut done = Ok(());
    for_each_row(shape, start, len, |whole, packed, count| {
        if done.is_ok() {
            done = rows.read((whole * size) as u64, &mut out[packed * size..][..count * size]);
        }
    });
    done
}

/// Reads a block of an array whose first dimension varies fastest.
fn gather_fortran(
    elements: &Bytes,
    size: usize,
    shape: &[usize],
    start: &[usize],
    len: &[usize],
    out: &mut [u8],
) -> Result<(), String> {
    // With the dimensions reversed it is row-major.
    let reversed = |sizes: &[usize]| sizes.iter().rev().copied().collect::<Vec<_>>();
    let mut packed = vec![0; out.len()];
    read_rows(elements, size, &reversed(shape), &reversed(start), &reversed(len), &mut packed)?;
    let mut strides = vec![size; len.len()];
    for i in 1..len.len() {
        strides[i] = strides[i - 1] * len[i - 1];
    }
    debug_assert_eq!(packed.len(), out.len(), "both orders have the same elements");
    let mut index = vec![0; len.len()];
    let mut from = 0;
    for element in out.chunks_exact_mut(size) {
        element.copy_from_slice(&packed[from..from + size]);
        for i in (0..len.len()).rev() {
            index[i] += 1;
            from += strides[i];
            if index[i] < len[i] {
                break;
            }
            from -= index[i] * strides[i];
            index[i] = 0;
        }
    }
    Ok(())
}

fn show_shape(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    if sizes.is_empty() { String::new() } else { format!("[{}]", sizes.join(", ")) }
}

struct NpyHeader {
    dtype: DType,
    complex: bool,
    shape: Vec<usize>,
    fortran_order: bool,
    swapped: bool,
    is_raw: bool,
}

impl NpyHeader {
    /// Reads the header; also returns the offset of the elements. `head` returns the requested number of first bytes, or all bytes if there
    /// are fewer. The error describes the problem with the file.
    fn read(head: &mut dyn FnMut(usize) -> Result<Vec<u8>, String>) -> Result<(NpyHeader, usize), String> {
        let content = head(10)?;
        if !content.starts_with(MAGIC) || content.len() < 10 {
            return Err("it is not a .npy file".to_string());
        }
        let (prefix, len) = match (content[6], content[7]) {
            (1, 0) => (10, usize::from(u16::from_le_bytes([content[8], content[9]]))),
            (2 | 3, 0) => {
                let content = head(12)?;
                let len = content.get(8..12).and_then(|bytes| bytes.try_into().ok());
                (12, u32::from_le_bytes(len.ok_or("its header is truncated")?) as usize)
            }
            (major, minor) => return Err(format!("version {major}.{minor} of the .npy format is not supported")),
        };
        if len > MAX_HEADER_BYTES {
            return Err(format!("its header is longer than {} MiB", MAX_HEADER_BYTES >> 20));
        }
        let content = head(prefix + len)?;
        let text = content.get(prefix..prefix + len).ok_or("its header is truncated")?;
        let text = std::str::from_utf8(text).map_err(|_| "its header is not text")?;
        let fields = HeaderText { rest: text }.fields()?;
        let (dtype, complex, swapped, is_raw) = parse_descr(&fields.descr.ok_or("its header has no `descr`")?)?;
        let shape = fields.shape.ok_or("its header has no `shape`")?;
        let fortran_order = fields.fortran_order.ok_or("its header has no `fortran_order`")?;
        Ok((NpyHeader { dtype, complex, shape, fortran_order, swapped, is_raw }, prefix + len))
    }

    /// The number of bytes of the elements.
    fn data_bytes(&self) -> Result<usize, String> {
        let count = self.shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        let bytes = count.and_then(|count| count.checked_mul(self.dtype.size() * if self.complex { 2 } else { 1 }));
        // A whole file is no larger either.
        let bytes = bytes.filter(|&bytes| bytes <= isize::MAX as usize);
        bytes.ok_or_else(|| format!("its shape {} is too large", show_shape(&self.shape)))
    }

    fn ty(&self) -> String {
        let complex = if self.complex { self.dtype.complex_name() } else { None };
        format!("{}{}", complex.unwrap_or(self.dtype.name()), show_shape(&self.shape))
    }

    fn source(self, name: PathBuf, elements: NpyElements) -> NpySource {
        let NpyHeader { dtype, complex, shape, fortran_order, swapped, is_raw } = self;
        NpySource { name, dtype, complex, shape, fortran_order, swapped, is_raw, elements }
    }
}

/// The element type, whether the elements are pairs of it, whether its bytes must be swapped, and whether they are raw bytes.
fn parse_descr(descr: &str) -> Result<(DType, bool, bool, bool), String> {
    let (swapped, code) = match descr.as_bytes().first() {
        Some(b'<') => (cfg!(target_endian = "big"), &descr[1..]),
        Some(b'>') => (cfg!(target_endian = "little"), &descr[1..]),
        Some(b'|' | b'=') => (false, &descr[1..]),
        _ => (false, descr),
    };
    if let Some(plane) = DType::plane_in_npy(code) {
        return Ok((plane, true, swapped, false));
    }
    let dtype = match DType::named_in_npy(code) {
        Some(dtype) => dtype,
        None => {
            let kind = match code.as_bytes().first() {
                Some(b'O') => "Python objects, which are not supported",
                Some(b'c') => "complex numbers of an unsupported width",
                Some(b'U' | b'S' | b'a') => "text, which is not supported",
                Some(b'M' | b'm') => "dates or times, which are not supported",
                _ => "of an unsupported type",
            };
            return Err(format!("its elements (`{descr}`) are {kind}"));
        }
    };
    Ok((dtype, false, swapped && dtype.size() > 1, code.starts_with('V')))
}

#[derive(Default)]
struct Fields {
    descr: Option<String>,
    fortran_order: Option<bool>,
    shape: Option<Vec<usize>>,
}

/// Reads the header's Python dictionary: `{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }`.
struct HeaderText<'a> {
    rest: &'a str,
}

impl HeaderText<'_> {
    fn fields(mut self) -> Result<Fields, String> {
        let mut fields = Fields::default();
        self.expect('{')?;
        while !self.accept('}') {
            let name = self.string()?;
            self.expect(':')?;
            match name.as_str() {
                "descr" if self.rest.trim_start().starts_with('[') => {
                    return Err("it holds records with named fields, which are not supported".to_string());
                }
                "descr" => fields.descr = Some(self.string()?),
                "fortran_order" => fields.fortran_order = Some(self.truth()?),
                "shape" => fields.shape = Some(self.sizes()?),
                _ => return Err(format!("its header has an unknown field `{name}`")),
            }
            if !self.accept(',') {
                self.expect('}')?;
                break;
            }
        }
        Ok(fields)
    }

    fn accept(&mut self, symbol: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(symbol) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, symbol: char) -> Result<(), String> {
        if self.accept(symbol) { Ok(()) } else { Err(format!("its header is malformed: expected `{symbol}`")) }
    }

    fn string(&mut self) -> Result<String, String> {
        self.rest = self.rest.trim_start();
        let quote = self.rest.chars().next().filter(|&c| c == '\'' || c == '"');
        let quote = quote.ok_or("its header is malformed: expected a string")?;
        let rest = &self.rest[1..];
        let end = rest.find(quote).ok_or("its header is malformed: unterminated string")?;
        self.rest = &rest[end + 1..];
        Ok(rest[..end].to_string())
    }

    fn truth(&mut self) -> Result<bool, String> {
        self.rest = self.rest.trim_start();
        for (word, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(word) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err("its header is malformed: expected `True` or `False`".to_string())
    }

    fn sizes(&mut self) -> Result<Vec<usize>, String> {
        let mut sizes = Vec::new();
        self.expect('(')?;
        while !self.accept(')') {
            self.rest = self.rest.trim_start();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let size = self.rest[..end].parse();
            sizes.push(size.map_err(|_| "its header is malformed: a dimension is not a size")?);
            // Python 2 wrote long integers as `3L`.
            self.rest = self.rest[end..].trim_start_matches('L');
            if !self.accept(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(sizes)
    }
}

/// Writes the array as a `.npy` file; the file appears only when it is complete.
pub fn write_npy<'a>(path: &Path, array: impl Into<ArrayView<'a>>) -> Result<(), RunError> {
    let array = array.into();
    write_file(path, |out| write_to(out, array))
}

/// Writes header and elements, as in a separate file.
pub(crate) fn write_to<'a>(out: &mut dyn Write, array: impl Into<ArrayView<'a>>) -> io::Result<()> {
    let array: ArrayView<'_> = array.into();
    let len: usize = array.shape.iter().product();
    debug_assert_eq!(array.bytes.len(), len * array.element_size(), "the array has all its elements");
    out.write_all(&header_for(array))?;
    out.write_all(array.bytes)
}

/// A version 1 header, padded as NumPy does so that the elements are aligned to 64 bytes.
pub(crate) fn header_for<'a>(array: impl Into<ArrayView<'a>>) -> Vec<u8> {
    let array = array.into();
    let order = if cfg!(target_endian = "little") { '<' } else { '>' };
    let mut shape = array.shape.to_vec();
    let order = if array.dtype.size() == 1 { '|' } else { order };
    let complex = if array.complex { array.dtype.complex_npy() } else { None };
    let code = complex.or(array.dtype.npy()).unwrap_or_else(|| {
        shape.push(2);
        "u4"
    });
    let descr = format!("{order}{code}");
    let shape = match shape.as_slice() {
        [size] => format!("({size},)"),
        sizes => format!("({})", sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let len = u16::try_from(text.len()).expect("an array has few dimensions");
    let mut header = MAGIC.to_vec();
    header.extend([1, 0]);
    header.extend(len.to_le_bytes());
    header.extend(text.as_bytes());
    header
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::errors::trap::RunCode;

    fn file(header: &str, data: &[u8]) -> Bytes {
        let mut content = MAGIC.to_vec();
        content.extend([1, 0]);
        content.extend((header.len() as u16).to_le_bytes());
        content.extend(header.as_bytes());
        content.extend(data);
        Bytes::owned(content)
    }

    fn open(content: Bytes) -> Result<NpySource, RunError> {
        NpySource::from_bytes(content, PathBuf::from("x.npy"))
    }

    fn message(content: Bytes) -> String {
        open(content).err().unwrap().message
    }

    #[test]
    fn either_order_reads_alike() {
        let row_major: Vec<u8> = [1u16, 2, 3, 4, 5, 6].iter().flat_map(|x| x.to_le_bytes()).collect();
        let column_major: Vec<u8> = [1u16, 4, 2, 5, 3, 6].iter().flat_map(|x| x.to_be_bytes()).collect();
        let mut little =
            open(file("{'descr': '<u2', 'fortran_order': False, 'shape': (2, 3), }\n", &row_major)).unwrap();
        let mut big = open(file("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 3)}\n", &column_major)).unwrap();
        assert_eq!(little.read().unwrap(), big.read().unwrap());
        let mut block = [0; 4];
        for source in [&mut little, &mut big] {
            source.read_block(&[0, 2], &[2, 1], &mut block).unwrap();
            assert_eq!(block.map(u32::from), [3, 0, 6, 0]);
        }
        big.read_block(&[2, 0], &[0, 3], &mut []).unwrap();
    }

    #[test]
    fn what_is_written_reads_back() {
        for dtype in DType::ALL {
            if dtype == DType::Key {
                continue;
            }
            for shape in [vec![], vec![3], vec![2, 2], vec![2, 0, 3]] {
                let mut array = HostArray::zeros(dtype, &shape);
                array.bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i % 2) as u8);
                let mut content = Vec::new();
                write_to(&mut content, &array).unwrap();
                assert_eq!(header_for(&array).len() % 64, 0);
                let source = open(Bytes::owned(content)).unwrap();
                assert_eq!(source.taken_for(dtype).read().unwrap(), array);
            }
        }
    }

    #[test]
    fn raw_bytes_are_taken_for_a_type_that_is_written_so() {
        let read = |descr: &str, dtype: DType| {
            let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,), }}\n");
            open(file(&header, &[0x3c; 4])).unwrap().taken_for(dtype).dtype()
        };
        assert_eq!(read("<V1", DType::F8e4m3), DType::F8e4m3);
        assert_eq!(read("|V1", DType::F8e5m2), DType::F8e5m2);
        assert_eq!(read("<f1", DType::F8e5m2), DType::F8e5m2);
        // These say of which type they are, or of which size.
        assert_eq!(read("<f1", DType::F8e4m3), DType::F8e5m2);
        assert_eq!(read("|u1", DType::F8e4m3), DType::U8);
        assert_eq!(read("<V2", DType::F8e4m3), DType::Bf16);
        assert_eq!(read("|V1", DType::Bf16), DType::F8e4m3);
    }

    #[test]
    fn malformed_files_say_what_is_wrong() {
        let header =
            |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
        let cases = [
            (Bytes::owned(Vec::new()), "not a .npy file"),
            (Bytes::owned(b"PK\x03\x04 and so on".to_vec()), "not a .npy file"),
            (Bytes::owned(b"\x93NUMPY\x09\x00\x00\x00".to_vec()), "version 9.0"),
            (Bytes::owned(b"\x93NUMPY\x02\x00\xff\xff\x0f\x00{".to_vec()), "header is truncated"),
            (Bytes::owned(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec()), "header is longer than 1 MiB"),
            (file(&header("'<f4'", "(2, 2)"), &[0; 15]), "f32[2, 2] takes 16 bytes, but it holds 15"),
            (file(&header("'<f4'", "(4294967296, 4294967296)"), &[]), "too large"),
            (file(&header("'<f4'", "(99999999999999999999,)"), &[]), "not a size"),
            (file(&header("'<f4'", "(-1,)"), &[]), "not a size"),
            (file(&header("'|O'", "(2,)"), &[0; 16]), "Python objects"),
            (file(&header("'<c32'", "(2,)"), &[0; 64]), "complex"),
            (file(&header("[('a', '<f4')]", "(2,)"), &[0; 16]), "named fields"),
            (file("{'descr': '<f4', 'shape': (2,)}", &[0; 8]), "no `fortran_order`"),
            (file("{'descr': '<f4", &[]), "unterminated string"),
            (file("", &[]), "expected `{`"),
        ];
        for (content, part) in cases {
            let message = message(content);
            assert!(message.contains(part), "{message:?} lacks {part:?}");
        }
    }

    #[test]
    fn a_cut_or_changed_file_never_panics() {
        let mut content = Vec::new();
        write_to(&mut content, &HostArray::zeros(DType::F32, &[3, 4])).unwrap();
        for len in 0..content.len() {
            assert!(open(Bytes::owned(content[..len].to_vec())).is_err());
        }
        for i in 0..128 {
            for byte in [0, b'\'', b'9', b'(', 0xff] {
                let mut changed = content.clone();
                changed[i] = byte;
                if let Ok(mut source) = open(Bytes::owned(changed)) {
                    source.read().unwrap();
                }
            }
        }
    }

    #[test]
    fn a_file_that_is_made_shorter_meanwhile_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        write_npy(&path, &HostArray::zeros(DType::F32, &[1 << 20])).unwrap();
        let mut source = NpySource::open(&path).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_len(8192).unwrap();
        let error = source.read().unwrap_err();
        assert_eq!(error.code, RunCode::E0703);
        assert!(error.message.ends_with("x.npy`: it was truncated while it was being read"), "{}", error.message);
    }

    #[test]
    fn blocks_of_a_file_are_those_of_the_array() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        // Rows shorter and longer than the window of a read.
        for shape in [[3, 40_000], [900, 70], [64_000, 1]] {
            let mut array = HostArray::zeros(DType::U16, &shape);
            array.bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 7 / 3) as u8);
            write_npy(&path, &array).unwrap();
            let mut source = NpySource::open(&path).unwrap();
            for (start, len) in [([0, 0], shape), ([1, 0], [2, 1]), ([shape[0] - 1, 0], [1, shape[1]])] {
                let mut blocks = [vec![0; len[0] * len[1] * 2], vec![1; len[0] * len[1] * 2]];
                source.read_block(&start, &len, &mut blocks[0]).unwrap();
                array.read_block(&start, &len, &mut blocks[1]).unwrap();
                assert!(blocks[0] == blocks[1], "{shape:?} {start:?} {len:?}");
            }
        }
    }
}
