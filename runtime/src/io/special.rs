//! Outputs that are not regular files: devices, pipes, and open descriptors of this process, such as `/dev/stdout`. They are written
//! through and never replaced.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Time to wait for a reader of a pipe, before the first message and in all.
const SILENCE: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);

/// The most links from a path to its target, as in Linux.
const MAX_LINKS: usize = 40;

/// Whether a path is to be written through.
pub fn is_special(path: &Path) -> bool {
    let is_no_file = |metadata: fs::Metadata| !metadata.is_file() && !metadata.is_dir();
    fs::metadata(path).is_ok_and(is_no_file) || descriptor(path).is_some()
}

/// Opens such a path for writing. A pipe has to be read by another process: this one waits for it, and says so.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if let Some(descriptor) = descriptor(path) {
        // What has been printed comes first.
        io::stdout().flush()?;
        // SAFETY: `dup` fails for a descriptor that is not open.
        return match unsafe { libc::dup(descriptor) } {
            ..0 => Err(io::Error::last_os_error()),
            // SAFETY: the duplicate is open, and belongs to the file alone.
            duplicate => Ok(unsafe { File::from_raw_fd(duplicate) }),
        };
    }
    if fs::metadata(path)?.file_type().is_fifo() { open_pipe(path) } else { OpenOptions::new().write(true).open(path) }
}

/// Without `O_NONBLOCK`, the system waits forever for a reader.
fn open_pipe(path: &Path) -> io::Result<File> {
    let start = Instant::now();
    let mut has_spoken = false;
    let file = loop {
        match OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => {}
            opened => break opened?,
        }
        if start.elapsed() >= LONGEST {
            let message = format!("no other process opened this pipe for reading within {} seconds", LONGEST.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        if start.elapsed() >= SILENCE && !std::mem::replace(&mut has_spoken, true) {
            eprintln!("waiting for a process that reads the pipe `{}`", path.display());
        }
        thread::sleep(Duration::from_millis(10));
    };
    // From now on a reader that is slow is waited for.
    // SAFETY: the descriptor is open.
    let flags = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) };
    // SAFETY: as above.
    if flags < 0 || unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags & !libc::O_NONBLOCK) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// The descriptor of this process for a path like `/dev/stdout`, `/dev/fd/3` and links to them. Opening the descriptor's file again would
/// start at its beginning, and replacing it would lose the output of others.
fn descriptor(path: &Path) -> Option<RawFd> {
    let folders = [PathBuf::from(format!("/proc/{}/fd", std::process::id())), PathBuf::from("/dev/fd")];
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let folder = path.parent().and_then(|folder| fs::canonicalize(folder).ok());
        if folder.is_some_and(|folder| folders.contains(&folder)) {
            return path.file_name()?.to_str()?.parse().ok();
        }
        path = next(&path)?;
    }
    None
}

/// The target of a link.
fn next(link: &Path) -> Option<PathBuf> {
    let target = fs::read_link(link).ok()?;
    Some(link.parent().map_or_else(|| target.clone(), |folder| folder.join(&target)))
}

/// The file that is written for a path: the target of a link, even if it does not exist yet, so that the link remains. Two spellings of one
/// path give the same result.
pub fn resolve(path: &Path) -> PathBuf {
    let mut path = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        if let Ok(known) = fs::canonicalize(&path) {
            return known;
        }
        match next(&path) {
            Some(target) => path = target,
            None => break,
        }
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (fs::canonicalize(folder), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}
