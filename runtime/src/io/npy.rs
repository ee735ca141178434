//! The `.npy` format: a short text header, then the elements.
//!
//! Versions 1 to 3 are read, in either byte order and either memory order. `ml_dtypes` stores a `bf16` as raw two-byte
//! elements (`V2`); those are taken for `bf16`, and written so. A key is stored as two `u32`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::abi::DType;
use crate::array::{BlockSource, HostArray, for_each_row};
use crate::io::{Bytes, unreadable, write_file};
use crate::trap::RunError;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// An array in a `.npy` file or in a member of an archive, read block by block.
pub struct NpySource {
    dtype: DType,
    shape: Vec<usize>,
    /// The first dimension varies fastest.
    fortran_order: bool,
    /// The bytes of each element are in the other order than the machine's.
    swapped: bool,
    elements: Bytes,
}

impl NpySource {
    pub fn open(path: &Path) -> Result<NpySource, RunError> {
        NpySource::from_bytes(Bytes::open(path)?, path.to_path_buf())
    }

    /// `name` is what messages call it.
    pub(crate) fn from_bytes(content: Bytes, name: PathBuf) -> Result<NpySource, RunError> {
        let malformed = |why: String| unreadable(&name, why);
        let (header, data_start) = Header::parse(content.as_slice()).map_err(malformed)?;
        let overflow = || unreadable(&name, format!("its shape {} is too large", show_shape(&header.shape)));
        let count = header.shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        let bytes = count.and_then(|count| count.checked_mul(header.dtype.size())).ok_or_else(overflow)?;
        let elements = content.part(data_start as u64, bytes as u64).ok_or_else(|| {
            let there = content.len() - data_start;
            let shape = show_shape(&header.shape);
            unreadable(
                &name,
                format!("it is cut off: {}{shape} takes {bytes} bytes, {there} are there", header.dtype.name()),
            )
        })?;
        let Header { dtype, shape, fortran_order, swapped } = header;
        Ok(NpySource { dtype, shape, fortran_order, swapped, elements })
    }

    /// Little-endian elements in row-major order, as many as the shape says.
    pub(crate) fn in_place(dtype: DType, shape: Vec<usize>, elements: Bytes) -> NpySource {
        let swapped = cfg!(target_endian = "big") && dtype.size() > 1;
        NpySource { dtype, shape, fortran_order: false, swapped, elements }
    }

    /// The whole array.
    pub fn read(&mut self) -> Result<HostArray, RunError> {
        let mut array = HostArray::zeros(self.dtype, &self.shape);
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
        let size = self.dtype.size();
        let elements = self.elements.as_slice();
        if self.fortran_order {
            gather_fortran(elements, size, &self.shape, start, len, out);
        } else {
            for_each_row(&self.shape, start, len, |whole, packed, count| {
                out[packed * size..][..count * size].copy_from_slice(&elements[whole * size..][..count * size]);
            });
        }
        if self.swapped {
            out.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
        if self.dtype == DType::Bool {
            out.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(())
    }
}

/// Copies a block of an array whose first dimension varies fastest.
fn gather_fortran(elements: &[u8], size: usize, shape: &[usize], start: &[usize], len: &[usize], out: &mut [u8]) {
    let mut strides = vec![size; shape.len()];
    for i in 1..shape.len() {
        strides[i] = strides[i - 1] * shape[i - 1];
    }
    let first: usize = start.iter().zip(&strides).map(|(start, stride)| start * stride).sum();
    let mut index = vec![0; len.len()];
    let mut from = first;
    for element in out.chunks_exact_mut(size) {
        element.copy_from_slice(&elements[from..from + size]);
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
}

fn show_shape(shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    if sizes.is_empty() { String::new() } else { format!("[{}]", sizes.join(", ")) }
}

struct Header {
    dtype: DType,
    shape: Vec<usize>,
    fortran_order: bool,
    swapped: bool,
}

impl Header {
    /// The header, and where the elements begin. The error says what is wrong with the file.
    fn parse(content: &[u8]) -> Result<(Header, usize), String> {
        if !content.starts_with(MAGIC) || content.len() < 10 {
            return Err("it is not a .npy file".to_string());
        }
        let (prefix, len) = match (content[6], content[7]) {
            (1, 0) => (10, usize::from(u16::from_le_bytes([content[8], content[9]]))),
            (2 | 3, 0) if content.len() >= 12 => {
                (12, u32::from_le_bytes([content[8], content[9], content[10], content[11]]) as usize)
            }
            (2 | 3, 0) => return Err("its header is cut off".to_string()),
            (major, minor) => return Err(format!("version {major}.{minor} of the .npy format is not known")),
        };
        let text = content[prefix..].get(..len).ok_or("its header is cut off")?;
        let text = std::str::from_utf8(text).map_err(|_| "its header is not text")?;
        let fields = HeaderText { rest: text }.fields()?;
        let (dtype, swapped) = parse_descr(&fields.descr.ok_or("its header has no `descr`")?)?;
        let shape = fields.shape.ok_or("its header has no `shape`")?;
        let fortran_order = fields.fortran_order.ok_or("its header has no `fortran_order`")?;
        Ok((Header { dtype, shape, fortran_order, swapped }, prefix + len))
    }
}

/// The element type, and whether its bytes must be swapped.
fn parse_descr(descr: &str) -> Result<(DType, bool), String> {
    let (swapped, code) = match descr.as_bytes().first() {
        Some(b'<') => (cfg!(target_endian = "big"), &descr[1..]),
        Some(b'>') => (cfg!(target_endian = "little"), &descr[1..]),
        Some(b'|' | b'=') => (false, &descr[1..]),
        _ => (false, descr),
    };
    let dtype = match code {
        "b1" | "?" => DType::Bool,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "f2" => DType::F16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "V2" | "bfloat16" => DType::Bf16,
        _ => {
            let kind = match code.as_bytes().first() {
                Some(b'O') => "Python objects, which are not read",
                Some(b'c') => "complex numbers, which the language does not have",
                Some(b'U' | b'S' | b'a') => "text, which the language does not have",
                Some(b'M' | b'm') => "dates or times, which the language does not have",
                _ => "of a kind that the language does not have",
            };
            return Err(format!("its elements (`{descr}`) are {kind}"));
        }
    };
    Ok((dtype, swapped && dtype.size() > 1))
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
                    return Err("it holds records with named fields, which are not read".to_string());
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
        if self.accept(symbol) { Ok(()) } else { Err(format!("its header is malformed: `{symbol}` expected")) }
    }

    fn string(&mut self) -> Result<String, String> {
        self.rest = self.rest.trim_start();
        let quote = self.rest.chars().next().filter(|&c| c == '\'' || c == '"');
        let quote = quote.ok_or("its header is malformed: a string expected")?;
        let rest = &self.rest[1..];
        let end = rest.find(quote).ok_or("its header is malformed: a string does not end")?;
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
        Err("its header is malformed: `True` or `False` expected".to_string())
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

/// Writes the array as a `.npy` file; nothing is seen of it before it is complete.
pub fn write_npy(path: &Path, array: &HostArray) -> Result<(), RunError> {
    write_file(path, |out| write_to(out, array))
}

/// Header and elements, as in a file of their own.
pub(crate) fn write_to(out: &mut dyn Write, array: &HostArray) -> io::Result<()> {
    out.write_all(&header_for(array))?;
    out.write_all(&array.bytes)
}

/// A version 1 header, padded as NumPy does so that the elements are aligned to 64 bytes.
pub(crate) fn header_for(array: &HostArray) -> Vec<u8> {
    let order = if cfg!(target_endian = "little") { '<' } else { '>' };
    let mut shape = array.shape.clone();
    let descr = match array.dtype {
        DType::Bool => "|b1".to_string(),
        DType::I8 => "|i1".to_string(),
        DType::U8 => "|u1".to_string(),
        DType::I16 => format!("{order}i2"),
        DType::I32 => format!("{order}i4"),
        DType::I64 => format!("{order}i8"),
        DType::U16 => format!("{order}u2"),
        DType::U32 => format!("{order}u4"),
        DType::U64 => format!("{order}u8"),
        DType::F16 => format!("{order}f2"),
        DType::F32 => format!("{order}f4"),
        DType::F64 => format!("{order}f8"),
        DType::Bf16 => format!("{order}V2"),
        DType::Key => {
            shape.push(2);
            format!("{order}u4")
        }
    };
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
                assert_eq!(open(Bytes::owned(content)).unwrap().read().unwrap(), array);
            }
        }
    }

    #[test]
    fn malformed_files_say_what_is_wrong() {
        let header =
            |descr: &str, shape: &str| format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}");
        let cases = [
            (Bytes::owned(Vec::new()), "not a .npy file"),
            (Bytes::owned(b"PK\x03\x04 and so on".to_vec()), "not a .npy file"),
            (Bytes::owned(b"\x93NUMPY\x09\x00\x00\x00".to_vec()), "version 9.0"),
            (Bytes::owned(b"\x93NUMPY\x02\x00\xff\xff\xff\xff{".to_vec()), "header is cut off"),
            (file(&header("'<f4'", "(2, 2)"), &[0; 15]), "f32[2, 2] takes 16 bytes, 15 are there"),
            (file(&header("'<f4'", "(4294967296, 4294967296)"), &[]), "too large"),
            (file(&header("'<f4'", "(99999999999999999999,)"), &[]), "not a size"),
            (file(&header("'<f4'", "(-1,)"), &[]), "not a size"),
            (file(&header("'|O'", "(2,)"), &[0; 16]), "Python objects"),
            (file(&header("'<c8'", "(2,)"), &[0; 16]), "complex"),
            (file(&header("[('a', '<f4')]", "(2,)"), &[0; 16]), "named fields"),
            (file("{'descr': '<f4', 'shape': (2,)}", &[0; 8]), "no `fortran_order`"),
            (file("{'descr': '<f4", &[]), "does not end"),
            (file("", &[]), "`{` expected"),
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
}
