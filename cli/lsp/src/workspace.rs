//! The files of the folders that an editor has open.

use std::path::{Path, PathBuf};

use spmdc_driver::disk;

/// Maximum number of files of the workspace that are searched for uses of a name, and of folders inside each other.
const MAX_FILES: usize = 2000;
const MAX_DEPTH: usize = 8;

/// The programs in a folder whose text contains a word.
pub fn containing(folder: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_path_buf(), 0)];
    let mut seen = 0;
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_skipped = name.starts_with('.') || name == "target" || name == "node_modules";
            if path.is_dir() && !path.is_symlink() {
                if depth < MAX_DEPTH && !is_skipped {
                    folders.push((path, depth + 1));
                }
            } else if path.extension().is_some_and(|extension| extension == "spmd") && seen < MAX_FILES {
                seen += 1;
                if disk::read(&path).is_ok_and(|text| text.contains(word)) {
                    found.push(path);
                }
            }
        }
    }
    found
}
