//! Writes results into the files that `--out` names, or onto standard output.
//!
//! The destination of each result is checked before the program runs, so that no computed result is lost.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::array::HostArray;
use crate::io::npy::write_npy;
use crate::io::npz::write_npz;
use crate::io::{check_writable, resolve};
use crate::show;
use crate::suggest;
use crate::trap::RunError;
use spmdc_abi::Binding;

/// A file to write, and its results.
#[derive(Debug, PartialEq)]
struct OutputFile {
    path: PathBuf,
    content: OutputContent,
}

#[derive(Debug, PartialEq)]
enum OutputContent {
    Array(usize),
    /// Results with their names in the archive.
    Archive(Vec<(String, usize)>),
}

/// The destinations of the results; without any file, they are printed.
#[derive(Debug, PartialEq)]
pub struct Outputs {
    files: Vec<OutputFile>,
}

impl Outputs {
    /// `requests` are the texts after `--out`: `y.npy`, `loss=loss.npy`, `all.npz`, `p=p.npz`.
    pub fn plan(results: &[Binding], requests: &[String]) -> Result<Outputs, RunError> {
        let mut files: Vec<OutputFile> = Vec::new();
        for request in requests {
            let file = OutputFile::plan(results, request)?;
            if let Some(earlier) = files.iter().find(|earlier| resolve(&earlier.path) == resolve(&file.path)) {
                let (path, known) = (file.path.display(), earlier.path.display());
                let also =
                    if earlier.path == file.path { String::new() } else { format!(", which is also `{known}`,") };
                return Err(RunError::new("E0702", format!("`{path}`{also} would be written twice")));
            }
            check_writable(&file.path)?;
            files.push(file);
        }
        Ok(Outputs { files })
    }

    /// Whether results are printed, because no file was requested.
    pub fn is_printed(&self) -> bool {
        self.files.is_empty()
    }

    /// Whether a result is printed or written.
    pub fn needs(&self, result: usize) -> bool {
        self.is_printed()
            || self.files.iter().any(|file| match &file.content {
                OutputContent::Array(index) => *index == result,
                OutputContent::Archive(members) => members.iter().any(|(_, index)| *index == result),
            })
    }

    /// Writes all files. `arrays` contains every needed result.
    pub fn write(&self, arrays: &[Option<HostArray>]) -> Result<(), RunError> {
        let array = |index: usize| {
            arrays.get(index).and_then(Option::as_ref).ok_or_else(|| RunError::internal("a result was not gathered"))
        };
        for file in &self.files {
            match &file.content {
                OutputContent::Array(index) => write_npy(&file.path, array(*index)?)?,
                OutputContent::Archive(members) => {
                    let members: Result<Vec<_>, RunError> =
                        members.iter().map(|(name, index)| Ok((name.as_str(), array(*index)?))).collect();
                    write_npz(&file.path, &members?)?;
                }
            }
        }
        Ok(())
    }
}

/// Prints every result: its type, then its value in NumPy's format.
pub fn print(out: &mut dyn Write, results: &[Binding], arrays: &[Option<HostArray>]) -> io::Result<()> {
    debug_assert_eq!(results.len(), arrays.len(), "every result was gathered or left out");
    let is_named = results.len() > 1 || results.iter().any(|result| result.name != "0");
    for (result, array) in results.iter().zip(arrays) {
        if let Some(array) = array {
            let name = Some(result.name.as_str()).filter(|_| is_named);
            out.write_all(show::result(name, &result.ty, array).as_bytes())?;
        }
    }
    out.flush()
}

impl OutputFile {
    fn plan(results: &[Binding], request: &str) -> Result<OutputFile, RunError> {
        let (name, path) = match request.split_once('=') {
            Some((name, path)) => (Some(name.trim()), path.trim()),
            None => (None, request.trim()),
        };
        let path = PathBuf::from(path);
        let is_archive = match extension(&path).as_deref() {
            Some("npy") => false,
            Some("npz") => true,
            Some("safetensors") => {
                return Err(RunError::new("E0901", format!("`{request}`: .safetensors files are not supported yet"))
                    .with_help("write .npz instead"));
            }
            _ => {
                return Err(RunError::new("E0702", format!("`--out {request}` names no .npy or .npz file"))
                    .with_help("write --out FILE.npy, --out NAME=FILE.npy or --out FILE.npz"));
            }
        };
        let all = || results.iter().enumerate().map(|(i, result)| (result.name.clone(), i)).collect();
        let content = match name {
            None if is_archive => OutputContent::Archive(all()),
            None if results.len() == 1 => OutputContent::Array(0),
            None => {
                let known = list(results.iter().map(|result| result.name.as_str()));
                return Err(RunError::new(
                    "E0702",
                    format!("`--out {request}` does not say which result: there are {known}"),
                )
                .with_help("write --out NAME=FILE.npy, or all of them with --out FILE.npz"));
            }
            Some(name) => {
                let exact = results.iter().position(|result| result.name == name);
                let prefix = format!("{name}.");
                let parts: Vec<(String, usize)> = results
                    .iter()
                    .enumerate()
                    .filter_map(|(i, result)| Some((result.name.strip_prefix(&prefix)?.to_string(), i)))
                    .collect();
                match (exact, is_archive) {
                    (Some(index), false) => OutputContent::Array(index),
                    (Some(index), true) => OutputContent::Archive(vec![(name.to_string(), index)]),
                    (None, true) if !parts.is_empty() => OutputContent::Archive(parts),
                    (None, false) if !parts.is_empty() => {
                        let known = list(parts.iter().map(|(part, _)| part.as_str()));
                        return Err(RunError::new("E0702", format!("`{name}` has several parts: {known}"))
                            .with_help(format!("write them together with --out {name}=FILE.npz")));
                    }
                    (None, _) => return Err(unknown_result(results, name)),
                }
            }
        };
        Ok(OutputFile { path, content })
    }
}

fn unknown_result(results: &[Binding], name: &str) -> RunError {
    let names = || results.iter().map(|result| result.name.as_str());
    let error = RunError::new("E0702", format!("the program has no result `{name}`"));
    match suggest::nearest(name, names()) {
        Some(near) if near != "0" || results.len() > 1 => error.with_help(format!("did you mean `{near}`?")),
        _ if results.len() == 1 => error.with_help("it has a single one: write --out FILE.npy"),
        _ => error.with_help(format!("its results are {}", list(names()))),
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::io::npz::NpzArchive;
    use spmdc_abi::{DType, Layout, Place};

    fn results(names: &[&str]) -> Vec<Binding> {
        let layout = Layout { dtype: DType::I32, dims: Vec::new() };
        let place = Place { arena: 0, offset: 0 };
        let result =
            |name: &&str| Binding { name: name.to_string(), ty: "i32".to_string(), layout: layout.clone(), place };
        names.iter().map(result).collect()
    }

    fn scalar(value: i32) -> Option<HostArray> {
        Some(HostArray { dtype: DType::I32, shape: Vec::new(), bytes: value.to_ne_bytes().to_vec() })
    }

    #[test]
    fn results_go_where_they_are_sent() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let results = results(&["loss", "p.w", "p.b"]);
        let requests = [format!("loss={}", at("loss.npy").display()), format!("p={}", at("p.npz").display())];
        let outputs = Outputs::plan(&results, &requests).unwrap();
        assert!(!outputs.is_printed() && (0..3).all(|i| outputs.needs(i)));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "planning leaves nothing behind");
        outputs.write(&[scalar(1), scalar(2), scalar(3)]).unwrap();
        let archive = NpzArchive::open(&at("p.npz")).unwrap();
        assert_eq!(archive.names().collect::<Vec<_>>(), ["w", "b"]);
        assert_eq!(archive.array("b").unwrap().unwrap().read().unwrap(), scalar(3).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn requests_that_cannot_be_met_are_refused_beforehand() {
        let two = results(&["loss", "p.w"]);
        for (request, code, part) in [
            ("y.npy", "E0702", "there are `loss`, `p.w`"),
            ("lss=y.npy", "E0702", "no result `lss`"),
            ("p=p.npy", "E0702", "several parts: `w`"),
            ("loss=y.txt", "E0702", "names no .npy or .npz file"),
            ("all.safetensors", "E0901", "not supported yet"),
            ("loss=/no/such/folder/y.npy", "E0704", "cannot write `/no/such/folder/y.npy`: No such file or directory"),
        ] {
            let error = Outputs::plan(&two, &[request.to_string()]).unwrap_err();
            assert_eq!(error.code, code, "{request}");
            assert!(error.message.contains(part), "{}", error.message);
        }
    }

    #[test]
    fn one_file_is_written_once_however_it_is_called() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        std::fs::create_dir(at("deep")).unwrap();
        std::os::unix::fs::symlink("y.npy", at("link.npy")).unwrap();
        std::fs::write(at("y.npy"), "").unwrap();
        let two = results(&["loss", "n"]);
        let both = |a: &str, b: &str| {
            Outputs::plan(&two, &[format!("loss={}", at(a)), format!("n={}", at(b))]).err().map(|error| error.message)
        };
        for (a, b) in [("z.npy", "z.npy"), ("z.npy", "deep/../z.npy"), ("y.npy", "link.npy")] {
            assert!(both(a, b).is_some_and(|message| message.ends_with("would be written twice")), "{a} {b}");
        }
        assert_eq!(both("z.npy", "deep/z.npy"), None);
    }

    #[test]
    fn names_are_printed_where_they_tell_something() {
        let printed = |names: &[&str]| {
            let arrays: Vec<_> = (0..names.len()).map(|i| scalar(i as i32)).collect();
            let mut text = Vec::new();
            print(&mut text, &results(names), &arrays).unwrap();
            String::from_utf8(text).unwrap()
        };
        assert_eq!(printed(&["0"]), "i32\n0\n");
        assert_eq!(printed(&["0", "1"]), "0: i32\n0\n1: i32\n1\n");
        assert_eq!(printed(&["loss"]), "loss: i32\n0\n");
    }
}
