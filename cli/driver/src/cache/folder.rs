//! The files of the cache.
//!
//! A file has the checksum of its key as its name, and appears under it when it is complete. Reading it makes it the most recent one;
//! writing one removes the least recent ones beyond the bound. Processes need no lock: a rename replaces a file at once, and a process
//! that has opened a file reads it to its end, even if another removes it. Only files and folders of this user are used that no one else
//! can write.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::entry::checksum;

/// Maximum bytes of all files, and their maximum number. The writing of a file lists all of them.
const MAX_BYTES: u64 = 256 << 20;
const MAX_FILES: usize = 1000;

/// Maximum bytes of a file, so that a single program does not replace all others.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// The age of an incomplete file whose process has certainly ended.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The folder of the cache.
pub struct CacheFolder {
    path: PathBuf,
    max_bytes: u64,
    max_files: usize,
}

impl CacheFolder {
    /// The folder of the user; None if no variable of the environment names it.
    pub fn of_user() -> Option<CacheFolder> {
        let path = folder_of_user()?;
        Some(CacheFolder { path, max_bytes: MAX_BYTES, max_files: MAX_FILES })
    }

    /// The content of the file for this key, which becomes the most recent one.
    pub fn read(&self, key: &[u8]) -> Option<Vec<u8>> {
        if !is_private(&fs::metadata(&self.path).ok()?) {
            return None;
        }
        // A pipe must not block, and a link leads to a file that is not of the cache.
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(self.file(key)).ok()?;
        let metadata = file.metadata().ok()?;
        if !metadata.is_file() || !is_private(&metadata) || metadata.len() > MAX_FILE_BYTES {
            return None;
        }
        let mut content = Vec::with_capacity(metadata.len() as usize);
        (&file).take(MAX_FILE_BYTES).read_to_end(&mut content).ok()?;
        // A folder that is read-only keeps its order.
        let _ = file.set_modified(SystemTime::now());
        Some(content)
    }

    /// Writes the file for this key and removes others beyond the bound. Content that cannot be written is not kept.
    pub fn write(&self, key: &[u8], content: &[u8]) {
        if content.len() as u64 > MAX_FILE_BYTES {
            return;
        }
        let _ = DirBuilder::new().recursive(true).mode(0o700).create(&self.path);
        if fs::metadata(&self.path).is_ok_and(|folder| folder.is_dir() && is_private(&folder)) {
            let _ = self.write_file(&self.file(key), content).and_then(|()| self.remove_least_recent());
        }
    }

    fn file(&self, key: &[u8]) -> PathBuf {
        self.path.join(format!("{:016x}.code", checksum(key)))
    }

    fn write_file(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        let temporary = path.with_extension(format!("{:016x}.tmp", RandomState::new().hash_one(std::process::id())));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let written = file.write_all(content).and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Removes the least recent files beyond the bound, and abandoned ones. Files that are not of the cache stay.
    fn remove_least_recent(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            // Another process may have removed it.
            let Ok(metadata) = entry.metadata() else { continue };
            let Ok(modified) = metadata.modified() else { continue };
            let (path, is_file) = (entry.path(), metadata.is_file());
            match path.extension().and_then(|extension| extension.to_str()) {
                Some("code") if is_file => files.push((modified, metadata.len(), path)),
                Some("tmp") if is_file && modified.elapsed().is_ok_and(|age| age > ABANDONED) => {
                    let _ = fs::remove_file(path);
                }
                _ => {}
            }
        }
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, len, _)| len).sum();
        let mut left = files.len();
        for (_, len, path) in files {
            if bytes <= self.max_bytes && left <= self.max_files {
                break;
            }
            let _ = fs::remove_file(path);
            (bytes, left) = (bytes - len, left - 1);
        }
        Ok(())
    }
}

/// The folder of the user's caches for spmdc; None if no variable of the environment names it.
pub fn folder_of_user() -> Option<PathBuf> {
    location(|name| std::env::var_os(name))
}

/// The folder `spmdc` in the folder of the user's caches. A relative path has no meaning.
fn location(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let of_home = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let caches = path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(of_home)))?;
    Some(caches.join("spmdc"))
}

/// Whether a file or folder belongs to the user of this process, and no one else can write it.
fn is_private(metadata: &Metadata) -> bool {
    // SAFETY: the function has no conditions.
    let user = unsafe { libc::geteuid() };
    metadata.uid() == user && metadata.mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_environment_names_the_folder() {
        let at = |variables: &[(&str, &str)]| {
            let value = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| value.into());
            location(value).map(|path| path.display().to_string())
        };
        let of_home = if cfg!(target_os = "macos") { "/u/Library/Caches/spmdc" } else { "/u/.cache/spmdc" };
        assert_eq!(at(&[("HOME", "/u")]).as_deref(), Some(of_home));
        assert_eq!(at(&[("HOME", "/u"), ("XDG_CACHE_HOME", "")]).as_deref(), Some(of_home));
        assert_eq!(at(&[("HOME", "/u"), ("XDG_CACHE_HOME", "/c")]).as_deref(), Some("/c/spmdc"));
        assert_eq!(at(&[("HOME", "u"), ("XDG_CACHE_HOME", "c")]), None);
    }

    #[test]
    fn the_least_recent_files_are_removed() {
        let outer = tempfile::tempdir().unwrap();
        let folder = CacheFolder { path: outer.path().join("spmdc"), max_bytes: 10, max_files: 3 };
        let is_there = |key: &[u8]| folder.file(key).exists();
        // Earlier, by so many seconds.
        let age = |key: &[u8], seconds| {
            let file = File::open(folder.file(key)).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        };
        folder.write(b"a", b"1234");
        age(b"a", 30);
        folder.write(b"b", b"1234");
        age(b"b", 20);
        assert_eq!(folder.read(b"a").as_deref(), Some(&b"1234"[..]));
        // Files of others are neither counted nor removed.
        fs::write(folder.path.join("notes"), "longer than the bound").unwrap();
        folder.write(b"c", b"1234");
        assert!(is_there(b"a") && !is_there(b"b") && is_there(b"c"));
        age(b"c", 10);
        for key in [b"d", b"e"] {
            folder.write(key, b"");
        }
        assert_eq!([b"a", b"c", b"d", b"e"].map(|key| is_there(key)), [true, false, true, true]);
        assert!(folder.path.join("notes").exists());
    }

    #[test]
    fn an_abandoned_file_is_removed() {
        let outer = tempfile::tempdir().unwrap();
        let folder = CacheFolder { path: outer.path().to_path_buf(), max_bytes: 10, max_files: 3 };
        let [old, new] = ["old.tmp", "new.tmp"].map(|name| outer.path().join(name));
        fs::write(&new, "").unwrap();
        File::create(&old).unwrap().set_modified(SystemTime::now() - 2 * ABANDONED).unwrap();
        fs::set_permissions(outer.path(), PermissionsExt::from_mode(0o700)).unwrap();
        folder.write(b"a", b"1234");
        assert!(new.exists() && !old.exists() && folder.file(b"a").exists());
    }

    #[test]
    fn only_private_files_are_read() {
        let outer = tempfile::tempdir().unwrap();
        let folder = CacheFolder { path: outer.path().join("spmdc"), max_bytes: 10, max_files: 3 };
        folder.write(b"a", b"1234");
        let (file, read) = (folder.file(b"a"), || folder.read(b"a").is_some());
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&folder.path), mode(&file), read()), (0o700, 0o600, true));
        fs::set_permissions(&file, PermissionsExt::from_mode(0o620)).unwrap();
        assert!(!read(), "the group can write the file");
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        fs::set_permissions(&folder.path, PermissionsExt::from_mode(0o702)).unwrap();
        assert!(!read(), "all users can write the folder");
        fs::set_permissions(&folder.path, PermissionsExt::from_mode(0o700)).unwrap();
        assert!(read());
        let elsewhere = outer.path().join("elsewhere");
        fs::rename(&file, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
        assert!(!read(), "the file is a link");
        // A file that cannot be read is replaced.
        folder.write(b"a", b"5678");
        assert_eq!(folder.read(b"a").as_deref(), Some(&b"5678"[..]));
        assert_eq!(fs::read(&elsewhere).unwrap(), b"1234");
    }
}
