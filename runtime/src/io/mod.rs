//! Files in and out: `.npy`, `.npz` and `.safetensors`, mapped into memory so that reading a block touches only its bytes.
//!
//! A file that cannot be understood is an E0703 that says why. Files are untrusted: no field of theirs is used for an
//! allocation or an address before it was checked against the length of the file.

pub mod generated;
pub mod npy;
pub mod npz;
pub mod safetensors;
mod zip;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;

use crate::trap::RunError;

/// A part of a file's content; copies share the memory.
#[derive(Clone)]
pub(crate) struct Bytes {
    content: Arc<Content>,
    range: Range<usize>,
}

enum Content {
    Mapped(Mmap),
    Owned(Vec<u8>),
}

impl Bytes {
    pub(crate) fn owned(content: Vec<u8>) -> Bytes {
        let range = 0..content.len();
        Bytes { content: Arc::new(Content::Owned(content)), range }
    }

    /// The whole content of a file: mapped, or read where that is impossible (a pipe).
    pub(crate) fn open(path: &Path) -> Result<Bytes, RunError> {
        let failed = |error: io::Error| unreadable(path, describe(&error));
        let mut file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_dir() {
            return Err(unreadable(path, "it is a directory"));
        }
        if metadata.is_file() && metadata.len() > 0 {
            // SAFETY: the map is only read. Another process that shortens the file while the program runs would make the
            // system stop the program; like other users of maps, we ask for inputs that are left alone meanwhile.
            let mapped = unsafe { Mmap::map(&file) };
            if let Ok(map) = mapped {
                let range = 0..map.len();
                return Ok(Bytes { content: Arc::new(Content::Mapped(map)), range });
            }
        }
        let mut content = Vec::new();
        file.read_to_end(&mut content).map_err(failed)?;
        Ok(Bytes::owned(content))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        let whole = match &*self.content {
            Content::Mapped(map) => &map[..],
            Content::Owned(content) => content,
        };
        &whole[self.range.clone()]
    }

    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// A part of this part, or `None` where it reaches past the end.
    pub(crate) fn part(&self, start: u64, len: u64) -> Option<Bytes> {
        let start = usize::try_from(start).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        if end > self.len() {
            return None;
        }
        let range = self.range.start + start..self.range.start + end;
        Some(Bytes { content: Arc::clone(&self.content), range })
    }
}

/// An E0703 about this file.
pub(crate) fn unreadable(name: impl AsRef<Path>, why: impl AsRef<str>) -> RunError {
    RunError::new("E0703", format!("cannot read `{}`: {}", name.as_ref().display(), why.as_ref()))
}

/// An E0704 about this file.
fn unwritable(path: &Path, error: &io::Error) -> RunError {
    RunError::new("E0704", format!("cannot write `{}`: {}", path.display(), describe(error)))
}

/// The system's words without its number: `No such file or directory`.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_string(),
        None => text,
    }
}

/// Whether a result can be written to this path later: creates and removes a file beside it.
pub fn check_writable(path: &Path) -> Result<(), RunError> {
    if path.is_dir() {
        let is_directory = io::Error::new(io::ErrorKind::IsADirectory, "it is a directory");
        return Err(unwritable(path, &is_directory));
    }
    if is_special(path) {
        return Ok(());
    }
    let temporary = temporary_path(&resolve(path));
    let created = OpenOptions::new().write(true).create(true).truncate(true).open(&temporary);
    created.map_err(|error| unwritable(path, &error))?;
    fs::remove_file(&temporary).map_err(|error| unwritable(path, &error))
}

/// Writes a file that appears under its name only when it is complete.
pub(crate) fn write_file(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), RunError> {
    let failed = |error: io::Error| unwritable(path, &error);
    if is_special(path) {
        let mut file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        return content(&mut file).map_err(failed);
    }
    let target = resolve(path);
    let temporary = temporary_path(&target);
    let written = File::create(&temporary).and_then(|file| {
        let mut buffered = io::BufWriter::with_capacity(1 << 16, file);
        content(&mut buffered)?;
        buffered.flush()?;
        fs::rename(&temporary, &target)
    });
    written.map_err(|error| {
        // What matters is the first error; a leftover would only be in the way.
        let _ = fs::remove_file(&temporary);
        failed(error)
    })
}

/// A device or a pipe, which must be written through and never be replaced.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Where a link leads, so that the link stays.
fn resolve(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// A hidden name in the same folder, so that renaming it is a matter of the directory only.
fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}
