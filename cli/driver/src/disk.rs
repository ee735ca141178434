//! Reads source files from disk.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use spmdc_check::sources::{Source, Sources};
use spmdc_runtime::io::describe;

/// Maximum size of a source file, in bytes.
pub const MAX_BYTES: u64 = 16 << 20;

/// Files on disk; an imported path is relative to the folder of the importing file.
pub struct DiskSources;

impl Sources for DiskSources {
    fn read(&self, path: &str, from: &str) -> Result<Source, String> {
        let path = imported(path, from);
        let text = read(&path)?;
        Ok(Source { name: path.to_string_lossy().into_owned(), text })
    }
}

/// The path of a file that the file `from` imports as `path`.
pub fn imported(path: &str, from: &str) -> PathBuf {
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    tidy(&folder.join(path))
}

/// The path without `.` and unnecessary `..`, so that one file has one name.
pub fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for component in path.components() {
        let ends_in_name = matches!(tidied.components().next_back(), Some(Component::Normal(_)));
        match component {
            Component::CurDir => {}
            Component::ParentDir if ends_in_name => {
                tidied.pop();
            }
            Component::ParentDir | Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                tidied.push(component);
            }
        }
    }
    tidied
}

/// The text of a file, or the reason why it cannot be read. Only regular files are read: others may be endless, or block.
pub fn read(path: &Path) -> Result<String, String> {
    let file_type = |metadata: Metadata| if metadata.is_file() { Ok(()) } else { Err(kind(&metadata).to_string()) };
    std::fs::metadata(path).map_err(|error| describe(&error)).and_then(file_type)?;
    let file = File::open(path).map_err(|error| describe(&error))?;
    file.metadata().map_err(|error| describe(&error)).and_then(file_type)?;
    read_text(file)
}

/// The kind of a file that is not a regular one.
fn kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() {
        "it is a directory"
    } else if metadata.file_type().is_fifo() {
        "it is a pipe; write `-` to read standard input"
    } else {
        "it is a device"
    }
}

/// The whole text, without the byte order mark that some editors write.
pub fn read_text(from: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| describe(&error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {} MiB", MAX_BYTES >> 20));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| not_text(error.as_bytes()).to_string())?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// The reason why bytes are not a program. Bytecode of MLIR begins with `ML\xefR`, in files of `jax.export` after a header.
fn not_text(bytes: &[u8]) -> &'static str {
    let is_bytecode = bytes.windows(4).take(1 << 16).any(|four| four == b"ML\xefR");
    match is_bytecode {
        true => "it is bytecode of MLIR; write the text: `open(\"f.mlir\", \"w\").write(exported.mlir_module())`",
        false => "it is not UTF-8 text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytecode_is_not_text() {
        assert_eq!(not_text(b"\xff\xfe"), "it is not UTF-8 text");
        assert!(not_text(b"header ML\xefR\x0dStableHLO_v1.13.0").contains("exported.mlir_module()"));
        assert!(read_text(&b"ML\xefR\x0d"[..]).is_err_and(|reason| reason.contains("bytecode of MLIR")));
    }

    #[test]
    fn one_file_has_one_name() {
        assert_eq!(tidy(Path::new("a/./b/../nn.spmd")), Path::new("a/nn.spmd"));
        assert_eq!(tidy(Path::new("../a/../nn.spmd")), Path::new("../nn.spmd"));
        assert_eq!(tidy(Path::new("/a/nn.spmd")), Path::new("/a/nn.spmd"));
    }
}
