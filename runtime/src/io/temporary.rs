//! Temporary files that are removed when the process ends, even if a signal ends it.
//!
//! A file is on a list from before it is created until after it has been renamed or removed. SIGINT, SIGTERM and SIGHUP, if no
//! other code handles or ignores them, remove the files on the list and then end the process as usual.

use std::ffi::CString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// Files and folders to remove, by their paths. A folder comes before its contents.
static LIST: [AtomicPtr<libc::c_char>; 16] = [const { AtomicPtr::new(ptr::null_mut()) }; 16];

/// The process id of a process that writes into a temporary folder, or 0.
static WRITER: AtomicI32 = AtomicI32::new(0);

/// The path of a temporary file or folder, which is removed on drop.
pub struct TemporaryPath {
    path: PathBuf,
    /// The position on the list; none if the list was full.
    place: Option<usize>,
}

impl TemporaryPath {
    /// A hidden name in the same folder as this file, so that renaming one to the other only changes the directory.
    pub fn beside(path: &Path) -> TemporaryPath {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        TemporaryPath::at(path.with_file_name(format!(".{name}.{}.tmp", std::process::id())))
    }

    /// As [`TemporaryPath::beside`], with a number by which no other process and no other file of this one makes the same name.
    pub fn beside_with(path: &Path, number: u64) -> TemporaryPath {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        TemporaryPath::at(path.with_file_name(format!(".{name}.{number:016x}.tmp")))
    }

    /// This path itself.
    pub fn at(path: PathBuf) -> TemporaryPath {
        static HANDLERS: Once = Once::new();
        HANDLERS.call_once(|| [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].into_iter().for_each(handle));
        let place = CString::new(path.as_os_str().as_bytes()).ok().and_then(enlist);
        TemporaryPath { path, place }
    }

    /// The path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for TemporaryPath {
    fn drop(&mut self) {
        // A renamed file is no longer there, and a failed removal could not be reported.
        if fs::remove_file(&self.path).is_err() {
            let _ = fs::remove_dir(&self.path);
        }
        if let Some(place) = self.place {
            let path = LIST[place].swap(ptr::null_mut(), Ordering::AcqRel);
            if !path.is_null() {
                // SAFETY: `CString::into_raw` made it, and the code that takes it from the list owns it.
                drop(unsafe { CString::from_raw(path) });
            }
        }
    }
}

/// Puts a path on the list, after all others.
fn enlist(path: CString) -> Option<usize> {
    let last = LIST.iter().rposition(|place| !place.load(Ordering::Acquire).is_null());
    let path = path.into_raw();
    for (place, entry) in LIST.iter().enumerate().skip(last.map_or(0, |last| last + 1)) {
        if entry.compare_exchange(ptr::null_mut(), path, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return Some(place);
        }
    }
    // SAFETY: as in `drop`; it is on no list.
    drop(unsafe { CString::from_raw(path) });
    None
}

/// Registers a process that writes into a temporary folder, while `wait` waits for it: a signal ends that process, too.
pub fn while_written_by<T>(process: u32, wait: impl FnOnce() -> T) -> T {
    WRITER.store(i32::try_from(process).unwrap_or(0), Ordering::Release);
    let done = wait();
    WRITER.store(0, Ordering::Release);
    done
}

/// Removes temporary files at this signal, unless the process handles or ignores it.
fn handle(signal: libc::c_int) {
    // SAFETY: both structures are plain data; the handler calls only async-signal-safe functions.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(signal, ptr::null(), &raw mut present) != 0 || present.sa_sigaction != libc::SIG_DFL {
            return;
        }
        let mut ours: libc::sigaction = std::mem::zeroed();
        let handler: extern "C" fn(libc::c_int) = remove_all;
        ours.sa_sigaction = handler as libc::sighandler_t;
        // The next signal, which the handler raises at its end, has its usual effect.
        ours.sa_flags = libc::SA_RESETHAND;
        libc::sigaction(signal, &raw const ours, ptr::null_mut());
    }
}

/// The handler. It calls only functions that POSIX declares async-signal-safe.
extern "C" fn remove_all(signal: libc::c_int) {
    let writer = WRITER.swap(0, Ordering::AcqRel);
    // SAFETY: paths on the list are valid until they are taken from it, and stay allocated after they have been taken here.
    unsafe {
        if writer > 0 {
            libc::kill(writer, libc::SIGTERM);
            let tick = libc::timespec { tv_sec: 0, tv_nsec: 10_000_000 };
            // Wait for 1 second, then kill a process that has not ended.
            let has_ended = (0..100).any(|_| {
                libc::nanosleep(&raw const tick, ptr::null_mut());
                libc::waitpid(writer, ptr::null_mut(), libc::WNOHANG) != 0
            });
            if !has_ended {
                libc::kill(writer, libc::SIGKILL);
            }
        }
        for place in LIST.iter().rev() {
            let path = place.swap(ptr::null_mut(), Ordering::AcqRel);
            if !path.is_null() && libc::unlink(path) != 0 {
                libc::rmdir(path);
            }
        }
        libc::raise(signal);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_folder_outlives_what_is_in_it() {
        let outer = tempfile::tempdir().unwrap();
        let folder = TemporaryPath::at(outer.path().join("folder"));
        fs::create_dir(folder.path()).unwrap();
        let files: Vec<TemporaryPath> =
            ["a", "b"].iter().map(|name| TemporaryPath::at(folder.path().join(name))).collect();
        files.iter().for_each(|file| fs::write(file.path(), "x").unwrap());
        assert!(files.iter().all(|file| file.place > folder.place));
        drop(files);
        drop(folder);
        assert_eq!(fs::read_dir(outer.path()).unwrap().count(), 0);
    }
}
