//! Reads and writes files: `.npy`, `.npz` and `.safetensors`. Reading a block of an array reads only its part of the file.
//!
//! An unreadable file is an E0703 with the reason. Files are untrusted. No field is used for an allocation or an address before it has been
//! checked against the length of the file. Until the type of an array has been compared with the parameter's, only its header is read or
//! decoded.

pub(crate) mod arrays;
mod bytes;
pub mod generated;
pub mod in_file;
pub(crate) mod layout;
pub mod npy;
pub mod npz;
pub mod safetensors;
mod special;
pub mod temporary;
mod zip;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::errors::trap::{RunCode, RunError};

pub(crate) use bytes::{Bytes, OpenedInput, RowReader, next_of_pipe};
pub(crate) use special::open as open_special;
pub use special::{is_special, resolve};
use temporary::TemporaryPath;

/// An E0703 about this file.
pub(crate) fn unreadable(name: impl AsRef<Path>, why: impl AsRef<str>) -> RunError {
    RunError::new(RunCode::E0703, format!("cannot read `{}`: {}", name.as_ref().display(), why.as_ref()))
}

/// An E0704 about this file.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> RunError {
    RunError::new(RunCode::E0704, format!("cannot write `{}`: {}", path.display(), describe(error)))
}

/// An E0704 about standard output.
pub fn unwritable_output(error: &io::Error) -> RunError {
    RunError::new(RunCode::E0704, format!("cannot write to standard output: {}", describe(error)))
}

/// The system's message without its number: `No such file or directory`.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_string(),
        None => text,
    }
}

/// Gives a complete file the name of an output, in the folder of the file to which a link leads.
pub fn rename_to(complete: &Path, output: &Path) -> io::Result<()> {
    debug_assert!(!is_special(output), "a device is not replaced");
    fs::rename(complete, resolve(output))
}

/// A temporary path in the folder of the file to which an output leads.
pub fn beside_file(output: &Path) -> TemporaryPath {
    TemporaryPath::beside(&resolve(output))
}

/// Whether a result can be written to this path later: creates and removes a file in the same folder.
pub fn check_writable(path: &Path) -> Result<(), RunError> {
    if path.is_dir() {
        let is_directory = io::Error::new(io::ErrorKind::IsADirectory, "it is a directory");
        return Err(unwritable(path, &is_directory));
    }
    if is_special(path) {
        return Ok(());
    }
    let temporary = beside_file(path);
    let created = OpenOptions::new().write(true).create(true).truncate(true).open(temporary.path());
    created.map_err(|error| unwritable(path, &error))?;
    fs::remove_file(temporary.path()).map_err(|error| unwritable(path, &error))
}

/// Writes a file that appears under its name only when it is complete. A device or a pipe is written through, and a link stays. An error is
/// an E0704.
pub fn write_file(path: &Path, content: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), RunError> {
    let failed = |error: io::Error| unwritable(path, &error);
    if is_special(path) {
        let mut buffered = io::BufWriter::with_capacity(1 << 16, special::open(path).map_err(failed)?);
        return content(&mut buffered).and_then(|()| buffered.flush()).map_err(failed);
    }
    // Removed in every case, unless it has been renamed.
    let temporary = beside_file(path);
    let written = File::create(temporary.path()).and_then(|file| {
        let mut buffered = io::BufWriter::with_capacity(1 << 16, file);
        content(&mut buffered)?;
        buffered.flush()?;
        rename_to(temporary.path(), path)
    });
    written.map_err(failed)
}
