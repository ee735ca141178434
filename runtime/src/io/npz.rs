//! The `.npz` format: a zip archive of `.npy` files, one for each array.
//!
//! `numpy.savez` stores members uncompressed: these are read in place, like a `.npy` file. `numpy.savez_compressed` deflates them:
//! such a member is decoded whole, once, when its elements are needed. The checksums of both are verified.

use std::path::{Path, PathBuf};

use crate::data::array::ArrayView;
use crate::errors::trap::RunError;
use crate::io::layout::{FileFormat, write_views};
use crate::io::npy::NpySource;
use crate::io::{Bytes, unreadable, zip};

/// An open `.npz` archive: a zip archive of `.npy` files.
pub struct NpzArchive {
    path: PathBuf,
    content: Bytes,
    members: Vec<zip::Member>,
}

impl NpzArchive {
    /// Opens a file and reads its directory. An error (E0703) if it cannot be read or is not an archive.
    pub fn open(path: &Path) -> Result<NpzArchive, RunError> {
        NpzArchive::from_bytes(Bytes::open(path)?, path)
    }

    fn from_bytes(content: Bytes, path: &Path) -> Result<NpzArchive, RunError> {
        let members = zip::directory(&content).map_err(|why| unreadable(path, why))?;
        Ok(NpzArchive { path: path.to_path_buf(), content, members })
    }

    /// The names of the arrays, in the order of the archive.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.iter().filter_map(|member| member.name.strip_suffix(".npy"))
    }

    /// The array of this name, or `None` if there is none.
    pub fn array(&self, name: &str) -> Result<Option<NpySource>, RunError> {
        let Some(member) = self.members.iter().find(|member| member.name.strip_suffix(".npy") == Some(name)) else {
            return Ok(None);
        };
        let shown = PathBuf::from(format!("{}:{name}", self.path.display()));
        let packed = member.find(&self.content).map_err(|why| unreadable(&shown, why))?;
        NpySource::of_member(packed, shown).map(Some)
    }
}

/// Writes named arrays as one archive; the file appears only when it is complete.
pub fn write_npz<'a, A: Copy + Into<ArrayView<'a>>>(path: &Path, arrays: &[(&str, A)]) -> Result<(), RunError> {
    let views: Vec<(&str, ArrayView<'_>)> = arrays.iter().map(|(name, array)| (*name, (*array).into())).collect();
    write_views(path, FileFormat::Npz, &views)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::data::array::{BlockSource, HostArray};
    use crate::io::layout::file_of;
    use crate::io::npy::header_for;
    use spmdc_abi::DType;

    /// Written by NumPy 2.4: `savez(f, w=arange(3, dtype="f4"), **{"layer.b": array(7)})`, and the same by `savez_compressed`.
    const STORED: &[u8] = include_bytes!("../../tests/golden/stored.npz");
    const DEFLATED: &[u8] = include_bytes!("../../tests/golden/deflated.npz");

    fn open(content: &[u8]) -> Result<NpzArchive, RunError> {
        NpzArchive::from_bytes(Bytes::owned(content.to_vec()), Path::new("p.npz"))
    }

    #[test]
    fn archives_of_numpy_read_whether_stored_or_deflated() {
        for content in [STORED, DEFLATED] {
            let archive = open(content).unwrap();
            assert_eq!(archive.names().collect::<Vec<_>>(), ["w", "layer.b"]);
            let w = archive.array("w").unwrap().unwrap().read().unwrap();
            let elements: Vec<u8> = [0f32, 1.0, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
            assert_eq!(w, HostArray { dtype: DType::F32, shape: vec![3], bytes: elements });
            let b = archive.array("layer.b").unwrap().unwrap().read().unwrap();
            assert_eq!((b.dtype, b.shape.len(), b.bytes[0]), (DType::I64, 0, 7));
            assert!(archive.array("absent").unwrap().is_none());
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.npz");
        let (a, b) = (HostArray::zeros(DType::I16, &[2, 3]), HostArray::zeros(DType::F64, &[]));
        write_npz(&path, &[("loss", &a), ("p.w", &b)]).unwrap();
        let archive = NpzArchive::open(&path).unwrap();
        assert_eq!(archive.names().collect::<Vec<_>>(), ["loss", "p.w"]);
        assert_eq!(archive.array("loss").unwrap().unwrap().read().unwrap(), a);
        assert_eq!(archive.array("p.w").unwrap().unwrap().read().unwrap(), b);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_cut_or_changed_archive_is_an_error_and_never_panics() {
        for content in [STORED, DEFLATED] {
            for len in 0..content.len() {
                assert!(open(&content[..len]).is_err());
            }
            for i in 0..content.len() {
                for byte in [0, 1, 0x7f, 0xff] {
                    let mut changed = content.to_vec();
                    changed[i] = byte;
                    let Ok(archive) = open(&changed) else { continue };
                    for name in ["w", "layer.b"] {
                        let Ok(Some(mut source)) = archive.array(name) else { continue };
                        let intact = open(content).unwrap().array(name).unwrap().unwrap().read().unwrap();
                        if let Ok(read) = source.read() {
                            assert_eq!(read, intact, "byte {i} as {byte}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_false_size_is_not_believed() {
        let mut content = DEFLATED.to_vec();
        let entry = content.windows(4).position(|bytes| bytes == b"PK\x01\x02").unwrap();
        content[entry + 24..entry + 28].copy_from_slice(&0xf000_0000u32.to_le_bytes());
        let error = open(&content).unwrap().array("w").err().unwrap();
        let words = "p.npz:w`: its archive declares 4026531840 bytes, but f32[3] takes 140";
        assert!(error.message.contains(words), "{}", error.message);
    }

    #[test]
    fn the_checksum_of_a_stored_member_is_compared() {
        let mut content = STORED.to_vec();
        let one = content.windows(4).position(|bytes| bytes == 1f32.to_le_bytes()).unwrap();
        content[one] ^= 1;
        let mut source = open(&content).unwrap().array("w").unwrap().unwrap();
        let error = source.read().unwrap_err();
        assert!(error.message.contains("p.npz:w`: its checksum is wrong"), "{}", error.message);
    }

    #[test]
    fn two_members_of_one_name_are_refused() {
        let array = HostArray::zeros(DType::F32, &[2]);
        let content = file_of(FileFormat::Npz, &["w", "b", "w"].map(|name| (name, (&array).into())));
        let error = open(&content).err().unwrap();
        assert!(error.message.contains("p.npz`: it has two members called `w.npy`"), "{}", error.message);
    }

    #[test]
    fn a_bomb_is_not_inflated() {
        // 2 GiB of zeros, after the header of a small array and after that of an array of this size.
        let (bytes, rows) = (2u64 << 30, 1u64 << 21);
        let small = header_for(&HostArray::zeros(DType::U8, &[4]));
        let large = String::from_utf8_lossy(&small[10..]).replace("(4,)", "(2097152, 1024)");
        let mut large_header = small[..10].to_vec();
        large_header.extend(large.as_bytes());
        large_header[8..10].copy_from_slice(&(large.len() as u16).to_le_bytes());
        assert_eq!(rows * 1024, bytes);
        for (header, is_known) in [(&small, false), (&large_header, true)] {
            let packed = deflated_zeros(header, bytes);
            let archive = open(&packed).unwrap();
            let begin = std::time::Instant::now();
            let source = archive.array("w");
            assert!(begin.elapsed().as_millis() < 500, "only the header is decoded");
            match source {
                Ok(source) => assert!(is_known && source.unwrap().shape() == [2_097_152, 1024]),
                Err(error) => assert!(!is_known && error.message.contains("its archive declares"), "{}", error.message),
            }
        }
    }

    /// An archive of one deflated member: a header and this many zeros.
    fn deflated_zeros(header: &[u8], zeros: u64) -> Vec<u8> {
        use miniz_oxide::deflate::core::{CompressorOxide, TDEFLFlush, compress, create_comp_flags_from_zip_params};
        let mut state = CompressorOxide::new(create_comp_flags_from_zip_params(1, -15, 0));
        let (mut packed, mut out, piece) = (Vec::new(), vec![0; 1 << 20], vec![0; 1 << 20]);
        let mut pieces = std::iter::once(header).chain((0..zeros >> 20).map(|_| &piece[..]));
        let mut rest: &[u8] = pieces.next().unwrap();
        loop {
            if rest.is_empty() {
                rest = pieces.next().unwrap_or_default();
            }
            let flush = if rest.is_empty() { TDEFLFlush::Finish } else { TDEFLFlush::None };
            let (status, read, written) = compress(&mut state, rest, &mut out, flush);
            packed.extend(&out[..written]);
            rest = &rest[read..];
            if status == miniz_oxide::deflate::core::TDEFLStatus::Done {
                break;
            }
        }
        let size = header.len() as u64 + zeros;
        zip::tests::archive_of_deflated("w.npy", &packed, u32::try_from(size).unwrap())
    }
}
