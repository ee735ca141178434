//! Content of input files, read part by part.
//!
//! Parts are read when they are needed and never mapped: if another process shortens a file meanwhile, a read returns an error,
//! while an access to a mapping would end the program by a signal.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::sync::Arc;

use super::{describe, unreadable};
use crate::errors::trap::RunError;

/// Rows shorter than this many bytes (16 KiB) are read several at a time, with the bytes between them.
const WINDOW: usize = 16 << 10;

/// An opened input.
pub(crate) enum OpenedInput {
    /// A regular file, which can be read at any position.
    File(Bytes),
    /// A pipe, which is read once and in order.
    Pipe(File),
}

impl OpenedInput {
    /// Opens an input. Devices are refused: `/dev/zero` has no end.
    pub(crate) fn open(path: &Path) -> Result<OpenedInput, RunError> {
        let failed = |error: io::Error| unreadable(path, describe(&error));
        let refuse_device = |is_device| if is_device { Err(unreadable(path, "it is a device")) } else { Ok(()) };
        // Checked before opening, too: opening some devices has side effects.
        let kind = std::fs::metadata(path).map_err(failed)?.file_type();
        refuse_device(kind.is_char_device() || kind.is_block_device())?;
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let kind = metadata.file_type();
        refuse_device(kind.is_char_device() || kind.is_block_device())?;
        if metadata.is_dir() {
            return Err(unreadable(path, "it is a directory"));
        }
        if !metadata.is_file() {
            return Ok(OpenedInput::Pipe(file));
        }
        Ok(OpenedInput::File(Bytes { content: Arc::new(FileContent::File(file)), range: 0..metadata.len() }))
    }
}

/// A part of a file's content; copies share the file.
#[derive(Clone)]
pub(crate) struct Bytes {
    content: Arc<FileContent>,
    range: Range<u64>,
}

enum FileContent {
    File(File),
    Owned(Vec<u8>),
}

impl Bytes {
    pub(crate) fn owned(content: Vec<u8>) -> Bytes {
        let range = 0..content.len() as u64;
        Bytes { content: Arc::new(FileContent::Owned(content)), range }
    }

    /// The content of a regular file. Archives need one, because their parts are in any order.
    pub(crate) fn open(path: &Path) -> Result<Bytes, RunError> {
        match OpenedInput::open(path)? {
            OpenedInput::File(bytes) => Ok(bytes),
            OpenedInput::Pipe(_) => Err(unreadable(path, "it is a pipe; archives can be read from files only")),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    /// A part of this part, or `None` if it reaches past the end.
    pub(crate) fn part(&self, start: u64, len: u64) -> Option<Bytes> {
        let end = start.checked_add(len)?;
        if end > self.len() {
            return None;
        }
        let range = self.range.start + start..self.range.start + end;
        debug_assert!(range.end <= self.range.end, "a part ends beyond the whole");
        Some(Bytes { content: Arc::clone(&self.content), range })
    }

    /// Fills `out` with the bytes from `start` on. The error describes the problem with the file.
    pub(crate) fn read_at(&self, start: u64, out: &mut [u8]) -> Result<(), String> {
        let cut_off = || "it is truncated".to_string();
        let part = self.part(start, out.len() as u64).ok_or_else(cut_off)?;
        match &*self.content {
            FileContent::File(file) => file.read_exact_at(out, part.range.start).map_err(|error| {
                let is_shorter = error.kind() == io::ErrorKind::UnexpectedEof;
                if is_shorter { "it was truncated while it was being read".to_string() } else { describe(&error) }
            }),
            FileContent::Owned(content) => {
                out.copy_from_slice(&content[part.range.start as usize..part.range.end as usize]);
                Ok(())
            }
        }
    }

    /// Whether the bytes are in a file, not in memory.
    pub(crate) fn are_in_file(&self) -> bool {
        match &*self.content {
            FileContent::File(_) => true,
            FileContent::Owned(_) => false,
        }
    }

    /// Tells the system that these bytes will be read soon.
    pub(crate) fn announce(&self, start: u64, len: u64) {
        let (Some(part), FileContent::File(file)) = (self.part(start, len), &*self.content) else { return };
        #[cfg(target_os = "linux")]
        // SAFETY: the file is open; the advice changes nothing that the program sees, and its result does not matter.
        unsafe {
            let (start, len) = (part.range.start as libc::off_t, len as libc::off_t);
            libc::posix_fadvise(file.as_raw_fd(), start, len, libc::POSIX_FADV_WILLNEED);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (part, file);
    }

    /// The first bytes: `len` of them, or all if there are fewer.
    pub(crate) fn head(&self, len: usize) -> Result<Vec<u8>, String> {
        let mut head = vec![0; self.len().min(len as u64) as usize];
        self.read_at(0, &mut head)?;
        Ok(head)
    }

    /// The whole content, piece by piece.
    pub(crate) fn for_each_piece(&self, mut visit: impl FnMut(&[u8])) -> Result<(), String> {
        let mut piece = vec![0; self.len().min(1 << 20) as usize];
        let mut at = 0;
        while at < self.len() {
            let len = (self.len() - at).min(piece.len() as u64) as usize;
            self.read_at(at, &mut piece[..len])?;
            debug_assert!(len > 0, "pieces go on until the end");
            visit(&piece[..len]);
            at += len as u64;
        }
        Ok(())
    }
}

/// Reads rows of an array in the order of the file.
pub(crate) struct RowReader<'a> {
    bytes: &'a Bytes,
    window: Vec<u8>,
    /// The start of the window.
    at: u64,
}

impl<'a> RowReader<'a> {
    pub(crate) fn new(bytes: &'a Bytes) -> RowReader<'a> {
        RowReader { bytes, window: Vec::new(), at: 0 }
    }

    pub(crate) fn read(&mut self, start: u64, out: &mut [u8]) -> Result<(), String> {
        if out.len() >= WINDOW {
            return self.bytes.read_at(start, out);
        }
        let is_inside = start >= self.at && start + out.len() as u64 <= self.at + self.window.len() as u64;
        if !is_inside {
            let rest = self.bytes.len().saturating_sub(start);
            self.window.resize(rest.min(WINDOW as u64) as usize, 0);
            self.at = start;
            self.bytes.read_at(start, &mut self.window)?;
        }
        debug_assert!(start >= self.at, "the window lies behind what is read");
        let first = (start - self.at) as usize;
        let row = self.window.get(first..first + out.len()).ok_or("it is truncated")?;
        out.copy_from_slice(row);
        Ok(())
    }
}

/// The next bytes of a pipe: `len` of them, or all up to its end if there are fewer.
pub(crate) fn next_of_pipe(pipe: &mut File, len: usize) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    pipe.by_ref().take(len as u64).read_to_end(&mut content).map_err(|error| describe(&error))?;
    Ok(content)
}
