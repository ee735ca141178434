//! The sources of the compiler: the prelude, and the files of `std/`.
//!
//! Inside the server they are in a folder that no disk has. An editor gets copies in a folder of the user, so that it can open them.

use std::fs;
use std::path::{Path, PathBuf};

use spmdc_check::sources::shipped_files;
use spmdc_functions::prelude;

/// The folder of these files inside the server.
const ROOT: &str = "/<spmdc>";

/// The file of an import such as `std/nn.spmd`.
pub fn standard(path: &str) -> Option<PathBuf> {
    shipped_files().any(|(name, _)| name == path).then(|| Path::new(ROOT).join(path))
}

/// The text of a file of the compiler.
pub fn text(path: &Path) -> Option<&'static str> {
    let name = path.strip_prefix(ROOT).ok()?.to_str()?;
    match name.strip_prefix("prelude/") {
        Some(name) => prelude::FILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text),
        None => shipped_files().find(|(known, _)| *known == name).map(|(_, text)| text),
    }
}

/// The file and the range of the name of a function of the prelude.
pub fn definition(name: &str) -> Option<(PathBuf, std::ops::Range<usize>)> {
    let head = format!("\nfn {name}(");
    prelude::FILES.iter().find_map(|(file, text)| {
        let at = text.find(&head)? + "\nfn ".len();
        Some((Path::new(ROOT).join("prelude").join(file), at..at + name.len()))
    })
}

/// The copies of these files for editors.
#[derive(Clone, Debug, Default)]
pub struct Copies {
    /// The folder of the copies; None if the user has none for caches.
    pub folder: Option<PathBuf>,
}

impl Copies {
    /// The path by which an editor can open a file: of a file of the compiler, a copy that is written now.
    pub fn outside(&self, path: &Path) -> Option<PathBuf> {
        let Ok(name) = path.strip_prefix(ROOT) else { return Some(path.to_path_buf()) };
        let (copy, text) = (self.folder.as_ref()?.join(name), text(path)?);
        if fs::read(&copy).is_ok_and(|known| known == text.as_bytes()) {
            return Some(copy);
        }
        fs::create_dir_all(copy.parent()?).ok()?;
        fs::write(&copy, text).ok()?;
        Some(copy)
    }

    /// The path inside the server.
    pub fn inside(&self, path: PathBuf) -> PathBuf {
        let name = self.folder.as_ref().and_then(|folder| path.strip_prefix(folder).ok());
        name.map(|name| Path::new(ROOT).join(name)).filter(|inside| text(inside).is_some()).unwrap_or(path)
    }
}

/// Whether a file is a part of the compiler, which a program cannot change.
pub fn is_shipped(path: &Path) -> bool {
    path.starts_with(ROOT)
}
