//! The `.safetensors` format: a JSON header with the names, types, shapes and positions of arrays, then their elements.
//!
//! The elements are little-endian and row-major, so they are read in place. The whole header is checked before any element is read:
//! positions that overlap, leave gaps or exceed the end of the file are errors.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, TensorInfo};
use serde::Deserialize;
use serde::de::value::{Error as NameError, StrDeserializer};
use serde::de::{Deserializer, Error as _, IgnoredAny, IntoDeserializer, MapAccess, Visitor};

use crate::errors::trap::RunError;
use crate::io::npy::NpySource;
use crate::io::{Bytes, unreadable};
use crate::text::json::{JsonObject, array};
use spmdc_abi::DType;

/// Maximum length of a header, in bytes: it is read whole, and takes several times its size in memory.
const MAX_HEADER_BYTES: u64 = 16 << 20;

/// An open `.safetensors` file.
pub struct SafetensorsFile {
    path: PathBuf,
    /// The bytes after the header.
    elements: Bytes,
    arrays: BTreeMap<String, TensorInfo>,
}

impl SafetensorsFile {
    /// Opens a file and reads its header. An error (E0703) if it cannot be read or its header is wrong.
    pub fn open(path: &Path) -> Result<SafetensorsFile, RunError> {
        SafetensorsFile::from_bytes(Bytes::open(path)?, path)
    }

    fn from_bytes(content: Bytes, path: &Path) -> Result<SafetensorsFile, RunError> {
        let (arrays, elements) = read_header(&content).map_err(|why| unreadable(path, why))?;
        Ok(SafetensorsFile { path: path.to_path_buf(), elements, arrays })
    }

    /// The names of the arrays, in the order of the file.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<(usize, &String)> =
            self.arrays.iter().map(|(name, info)| (info.data_offsets.0, name)).collect();
        names.sort();
        names.into_iter().map(|(_, name)| name.clone()).collect()
    }

    /// The array of this name, or `None` if there is none.
    pub fn array(&self, name: &str) -> Result<Option<NpySource>, RunError> {
        let Some(TensorInfo { dtype, shape, data_offsets: (start, end) }) = self.arrays.get(name) else {
            return Ok(None);
        };
        let shown = PathBuf::from(format!("{}:{name}", self.path.display()));
        let known = DType::named_in_safetensors(&format!("{dtype:?}"))
            .ok_or_else(|| unreadable(&shown, format!("its elements are of an unsupported type ({dtype:?})")))?;
        let elements = self.elements.part(*start as u64, (end - start) as u64);
        let elements = elements.ok_or_else(|| unreadable(&shown, "it is truncated"))?;
        Ok(Some(NpySource::in_place(shown, known, shape.clone(), elements)))
    }
}

/// The key of the header's entry about the file itself, which no array can have as its name.
pub const METADATA: &str = "__metadata__";

/// The header of a file of these arrays, and the offset of each array after it. A key is two `U32`, along the last dimension.
///
/// Arrays with wide elements come first, so that every element is aligned to its size. Arrays of one type are in the order of their names,
/// as the format's own library writes them.
pub(crate) fn header(arrays: &[(&str, DType, &[usize])]) -> io::Result<(Vec<u8>, Vec<u64>)> {
    debug_assert!(arrays.iter().all(|(name, ..)| *name != METADATA), "no array has the reserved name");
    let kinds: Vec<Dtype> = arrays.iter().map(|(_, dtype, _)| named(*dtype)).collect::<io::Result<_>>()?;
    let mut order: Vec<usize> = (0..arrays.len()).collect();
    order.sort_unstable_by(|&a, &b| kinds[b].cmp(&kinds[a]).then(arrays[a].0.cmp(arrays[b].0)));
    let mut end = 0;
    let mut begins = vec![0; arrays.len()];
    let mut json = JsonObject::new();
    for at in order {
        let (name, dtype, shape) = arrays[at];
        let words = (dtype == DType::Key).then_some(2);
        let begin = end;
        begins[at] = begin;
        end += shape.iter().product::<usize>() * dtype.size();
        let shape: Vec<usize> = shape.iter().copied().chain(words).collect();
        debug_assert_eq!(end - begin, shape.iter().product::<usize>() * kinds[at].size(), "`{name}` fills its place");
        let info = JsonObject::new()
            .text("dtype", name_of(dtype))
            .field("shape", array(shape.iter().map(usize::to_string)))
            .field("data_offsets", array([begin, end].map(|offset| offset.to_string())));
        json = json.field(name, info.end());
    }
    let mut json = json.end().into_bytes();
    // The elements begin at a multiple of 8 bytes.
    json.resize(json.len().next_multiple_of(8), b' ');
    if json.len() as u64 > MAX_HEADER_BYTES {
        return Err(io::Error::other("the names of its arrays are too long"));
    }
    let header = [&(json.len() as u64).to_le_bytes()[..], &json].concat();
    let begins = begins.into_iter().map(|begin| (header.len() + begin) as u64).collect();
    Ok((header, begins))
}

/// The name of these elements in the format.
fn name_of(dtype: DType) -> &'static str {
    dtype.safetensors().unwrap_or("U32")
}

/// The format's own type of these elements.
fn named(dtype: DType) -> io::Result<Dtype> {
    let name: StrDeserializer<NameError> = name_of(dtype).into_deserializer();
    Dtype::deserialize(name).map_err(io::Error::other)
}

/// The header's entry for each array, and the bytes after it, which the arrays fill without gaps.
fn read_header(content: &Bytes) -> Result<(BTreeMap<String, TensorInfo>, Bytes), String> {
    let mut len = [0; 8];
    content.read_at(0, &mut len).map_err(|_| "it is not a .safetensors file")?;
    let len = u64::from_le_bytes(len);
    if len > content.len() - 8 {
        return Err("it is not a .safetensors file, or its header is truncated".to_string());
    }
    if len > MAX_HEADER_BYTES {
        return Err(format!("its header is longer than {} MiB", MAX_HEADER_BYTES >> 20));
    }
    let mut header = vec![0; len as usize];
    content.read_at(8, &mut header)?;
    let mut json = serde_json::Deserializer::from_slice(&header);
    let arrays = json.deserialize_map(Arrays).and_then(|arrays| json.end().map(|()| arrays));
    let arrays = arrays.map_err(|error| match error.to_string() {
        twice if twice.starts_with(TWICE) => twice.split(" at line").next().unwrap_or_default().to_string(),
        _ => "its header is malformed, or names an unknown element type".to_string(),
    })?;
    let elements = content.part(8 + len, content.len() - 8 - len).ok_or("it is truncated")?;

    let mut in_order: Vec<(&String, &TensorInfo)> = arrays.iter().collect();
    in_order.sort_by_key(|(_, info)| info.data_offsets);
    let mut end = 0;
    for (name, TensorInfo { dtype, shape, data_offsets }) in in_order {
        if data_offsets.0 != end || data_offsets.1 < end {
            return Err(format!("the bytes of `{name}` leave a gap or overlap another array"));
        }
        end = data_offsets.1;
        let bytes = shape.iter().try_fold(dtype.size(), |bytes, &size| bytes.checked_mul(size));
        let bytes = bytes.ok_or_else(|| format!("the shape of `{name}` is too large"))?;
        if bytes != end - data_offsets.0 {
            return Err(format!("the size of `{name}` does not match its shape"));
        }
    }
    if end as u64 != elements.len() {
        return Err("it is truncated, or longer than its header declares".to_string());
    }
    Ok((arrays, elements))
}

/// The beginning of the error about an array that is named twice.
const TWICE: &str = "it has two arrays called ";

/// Reads the header's JSON object.
struct Arrays;

impl<'de> Visitor<'de> for Arrays {
    type Value = BTreeMap<String, TensorInfo>;

    fn expecting(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str("the names of arrays")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut arrays = BTreeMap::new();
        while let Some(name) = map.next_key::<String>()? {
            if name == METADATA {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            let info = map.next_value()?;
            if arrays.contains_key(&name) {
                return Err(A::Error::custom(format!("{TWICE}`{name}`")));
            }
            arrays.insert(name, info);
        }
        Ok(arrays)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::data::array::{ArrayView, BlockSource, HostArray};
    use crate::io::layout::{FileFormat, write_views};

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn open(content: &[u8]) -> Result<SafetensorsFile, RunError> {
        SafetensorsFile::from_bytes(Bytes::owned(content.to_vec()), Path::new("p.safetensors"))
    }

    /// Two arrays and the metadata that other programs write.
    fn example() -> Vec<u8> {
        let header = r#"{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,2],"data_offsets":[2,18]},
            "h":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},"e":{"dtype":"I64","shape":[0,3],"data_offsets":[18,18]}}"#;
        let w = [1f32, 2.0, 3.0, 4.0].iter().flat_map(|x| x.to_le_bytes());
        file(header, &[0x80, 0x3f].into_iter().chain(w).collect::<Vec<u8>>())
    }

    #[test]
    fn arrays_are_found_by_name_and_read_by_block() {
        let archive = open(&example()).unwrap();
        assert_eq!(archive.names(), ["h", "w", "e"]);
        let mut w = archive.array("w").unwrap().unwrap();
        assert_eq!((w.dtype(), w.shape()), (DType::F32, &[2, 2][..]));
        let mut column = [0; 8];
        w.read_block(&[0, 1], &[2, 1], &mut column).unwrap();
        assert_eq!(column, [2f32.to_le_bytes(), 4f32.to_le_bytes()].concat()[..]);
        let h = archive.array("h").unwrap().unwrap().read().unwrap();
        assert_eq!(h, HostArray { dtype: DType::Bf16, shape: vec![1], bytes: vec![0x80, 0x3f] });
        assert_eq!(archive.array("e").unwrap().unwrap().read().unwrap().shape, [0, 3]);
        assert!(archive.array("absent").unwrap().is_none());
    }

    #[test]
    fn every_type_that_a_file_may_have_is_known() {
        let names = [
            "BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "I16", "U16", "F16", "BF16", "I32", "U32", "F32", "F64", "I64",
            "U64",
        ];
        for name in names {
            let dtype = DType::named_in_safetensors(name).unwrap();
            let size = dtype.size();
            let header = format!(r#"{{"w":{{"dtype":"{name}","shape":[3],"data_offsets":[0,{}]}}}}"#, 3 * size);
            let mut source = open(&file(&header, &vec![1; 3 * size])).unwrap().array("w").unwrap().unwrap();
            assert_eq!(source.read().unwrap(), HostArray { dtype, shape: vec![3], bytes: vec![1; 3 * size] });
        }
        assert_eq!(DType::ALL.into_iter().filter(|dtype| *dtype != DType::Key).count(), names.len());
    }

    fn write_safetensors(path: &Path, arrays: &[(&str, &HostArray)]) -> Result<(), RunError> {
        let views: Vec<(&str, ArrayView<'_>)> = arrays.iter().map(|(name, array)| (*name, (*array).into())).collect();
        write_views(path, FileFormat::Safetensors, &views)
    }

    /// Of every type, and the bytes of one file as `safetensors.numpy.save` writes them.
    #[test]
    fn what_is_written_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.safetensors");
        let arrays: Vec<(&str, HostArray)> = DType::ALL
            .into_iter()
            .map(|dtype| (dtype.name(), HostArray { dtype, shape: vec![3, 1], bytes: vec![1; 3 * dtype.size()] }))
            .chain([("empty", HostArray::zeros(DType::F32, &[0, 3])), ("layer.b", HostArray::zeros(DType::I64, &[]))])
            .collect();
        let named: Vec<(&str, &HostArray)> = arrays.iter().map(|(name, array)| (*name, array)).collect();
        write_safetensors(&path, &named).unwrap();
        let archive = SafetensorsFile::open(&path).unwrap();
        assert_eq!(archive.names().len(), arrays.len());
        for (name, array) in &arrays {
            let read = archive.array(name).unwrap().unwrap().read().unwrap();
            if array.dtype == DType::Key {
                assert_eq!(read, HostArray { dtype: DType::U32, shape: vec![3, 1, 2], bytes: array.bytes.clone() });
            } else {
                assert_eq!(read, *array);
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");

        let (b, w) = (HostArray::zeros(DType::U8, &[1]), HostArray::zeros(DType::Bf16, &[2]));
        write_safetensors(&path, &[("b", &b), ("w", &w)]).unwrap();
        let header = r#"{"w":{"dtype":"BF16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}"#;
        let padded = format!("{header:<width$}", width = header.len().next_multiple_of(8));
        assert_eq!(std::fs::read(&path).unwrap(), file(&padded, &[0; 5]));
    }

    #[test]
    fn a_cut_or_changed_file_is_an_error_and_never_panics() {
        let content = example();
        for len in 0..content.len() {
            assert!(open(&content[..len]).is_err(), "{len} bytes");
        }
        for i in 0..content.len() {
            for byte in [0, b'9', 0x7f, 0xff] {
                let mut changed = content.clone();
                changed[i] = byte;
                let Ok(archive) = open(&changed) else { continue };
                for name in archive.names() {
                    if let Ok(Some(mut source)) = archive.array(&name) {
                        source.read().unwrap();
                    }
                }
            }
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let message = |content: &[u8]| match open(content) {
            Err(error) => error.message,
            Ok(archive) => archive.array("w").err().unwrap().message,
        };
        let one = |dtype: &str, shape: &str, end: usize| {
            let header = format!(r#"{{"w":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[0,{end}]}}}}"#);
            file(&header, &[0; 4])
        };
        for (content, words) in [
            (b"PK".to_vec(), "it is not a .safetensors file"),
            (vec![0xff; 64], "its header is truncated"),
            (one("F32", "[1]", 4)[..52].to_vec(), "truncated"),
            (one("C64", "[1]", 4), "an unknown element type"),
            (one("F32", "[2]", 4), "does not match its shape"),
            (one("F32", "[4294967296,4294967296]", 4), "too large"),
            (one("F32", "[0]", 0), "longer than its header declares"),
            (
                file(
                    r#"{"w":{"dtype":"I8","shape":[4],"data_offsets":[0,4]},
                         "w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#,
                    &[0; 4],
                ),
                "it has two arrays called `w`",
            ),
            (file(&" ".repeat((16 << 20) + 1), &[]), "its header is longer than 16 MiB"),
        ] {
            assert!(message(&content).contains(words), "{words}: {}", message(&content));
        }
    }
}
