//! A file while it is written: it has another name, under which the processes that see it write into it.

use std::collections::hash_map::RandomState;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::os::fd::IntoRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::io::temporary::TemporaryPath;
use crate::io::{is_special, open_special, rename_to, resolve};

/// A mark at the beginning of a file until it is complete, by which a process recognises the file of this job.
pub(crate) type Token = [u8; 16];

/// The output of this process.
pub(crate) enum WriteTarget {
    /// A file under a temporary name, which is removed unless it has been renamed.
    File { file: File, temporary: TemporaryPath },
    /// Bytes that go through a device or a pipe when they are complete: nothing can be written there out of order.
    Whole(Vec<u8>),
    /// Others write.
    Elsewhere,
}

/// The description of a file for other processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Visible {
    pub temporary: PathBuf,
    pub token: Token,
}

impl WriteTarget {
    /// Begins a file that will have this name. `is_shared` is whether other processes are to find it.
    pub fn create(path: &Path, is_shared: bool) -> io::Result<(WriteTarget, Option<Visible>)> {
        if is_special(path) {
            return Ok((WriteTarget::Whole(Vec::new()), None));
        }
        if path.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a directory"));
        }
        let token = token();
        let temporary = TemporaryPath::beside_with(
            &resolve(path),
            u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|at| token[at])),
        );
        let file = OpenOptions::new().write(true).create_new(true).open(temporary.path())?;
        if !is_shared {
            return Ok((WriteTarget::File { file, temporary }, None));
        }
        file.write_all_at(&token, 0)?;
        // Other hosts see what has been written when the file is closed.
        close(file)?;
        let file = OpenOptions::new().write(true).open(temporary.path())?;
        let visible = Visible { temporary: temporary.path().to_path_buf(), token };
        Ok((WriteTarget::File { file, temporary }, Some(visible)))
    }

    /// The file that another process has begun; [`WriteTarget::Elsewhere`] if this process cannot write it, because hosts may have separate
    /// disks.
    pub fn find(visible: &Visible) -> WriteTarget {
        let found = || -> io::Result<Option<File>> {
            let mut file = OpenOptions::new().read(true).write(true).open(&visible.temporary)?;
            let mut begin = Token::default();
            file.read_exact(&mut begin)?;
            Ok((begin == visible.token).then_some(file))
        };
        match found() {
            // Whichever process ends last removes what is left.
            Ok(Some(file)) => WriteTarget::File { file, temporary: TemporaryPath::at(visible.temporary.clone()) },
            Ok(None) | Err(_) => WriteTarget::Elsewhere,
        }
    }

    /// Whether this process can write.
    pub fn is_here(&self) -> bool {
        match self {
            WriteTarget::File { .. } | WriteTarget::Whole(_) => true,
            WriteTarget::Elsewhere => false,
        }
    }

    /// Writes bytes at an offset.
    pub fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        match self {
            WriteTarget::File { file, .. } => file.write_all_at(bytes, at),
            WriteTarget::Whole(whole) => {
                let begin = usize::try_from(at).map_err(io::Error::other)?;
                debug_assert!(begin.checked_add(bytes.len()).is_some(), "a file has fewer bytes than can be addressed");
                whole.resize(whole.len().max(begin + bytes.len()), 0);
                whole[begin..begin + bytes.len()].copy_from_slice(bytes);
                Ok(())
            }
            WriteTarget::Elsewhere => Err(io::Error::other("it is on another host")),
        }
    }

    /// Ends the writing. Returns the guard of the temporary file until it is renamed.
    pub fn close(self) -> io::Result<Closed> {
        match self {
            WriteTarget::File { file, temporary } => close(file).map(|()| Closed::File(temporary)),
            WriteTarget::Whole(whole) => Ok(Closed::Whole(whole)),
            WriteTarget::Elsewhere => Ok(Closed::Elsewhere),
        }
    }
}

/// The bytes that this process has written completely.
pub(crate) enum Closed {
    File(TemporaryPath),
    Whole(Vec<u8>),
    Elsewhere,
}

impl Closed {
    /// Gives the complete file its name.
    pub fn appear(&self, path: &Path) -> io::Result<()> {
        match self {
            Closed::File(temporary) => rename_to(temporary.path(), path),
            Closed::Whole(whole) => io::Write::write_all(&mut open_special(path)?, whole),
            Closed::Elsewhere => Err(io::Error::other("it is on another host")),
        }
    }
}

/// Closes a file. Network file systems report some write errors only then.
fn close(file: File) -> io::Result<()> {
    // SAFETY: the descriptor is that of the file, which no longer owns it.
    if unsafe { libc::close(file.into_raw_fd()) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Random bytes; the standard library takes its keys from the system.
fn token() -> Token {
    let word = || RandomState::new().build_hasher().finish().to_le_bytes();
    let mut token = Token::default();
    token[..8].copy_from_slice(&word());
    token[8..].copy_from_slice(&word());
    token
}
