//! Writes results into the files that `--out` names, or onto standard output.
//!
//! The destination of each result is checked before the program runs, so that no computed result is lost.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::data::array::HostArray;
use crate::data::process_files::{LocalBlocks, Placeholder, ProcessFile, RangedBlock};
use crate::data::results::{WholeResult, list, named, whole};
use crate::errors::trap::{RunCode, RunError};
use crate::io::arrays::{WholeArray, write_arrays};
use crate::io::layout::FileFormat;
use crate::io::safetensors::METADATA;
use crate::io::{check_writable, resolve};
use crate::text::show;
use spmdc_abi::Binding;

/// An array of a file.
#[derive(Clone, Debug, PartialEq)]
pub struct ResultArray {
    /// Its name in the file.
    pub name: String,
    /// The number of the result that it is; of complex numbers the real part.
    pub array: usize,
    /// The number of the imaginary part.
    pub imaginary: Option<usize>,
}

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
    Archive(FileFormat, Vec<(String, usize)>),
}

/// The destinations of the results; without any file, they are printed.
#[derive(Debug, PartialEq)]
pub struct Outputs {
    results: Vec<WholeResult>,
    files: Vec<OutputFile>,
}

impl Outputs {
    /// `requests` are the texts after `--out`: `y.npy`, `loss=loss.npy`, `all.npz`, `p=p.safetensors`. `is_writer` is whether this
    /// process writes the files: then they must be writable.
    pub fn plan(results: &[Binding], requests: &[String], is_writer: bool) -> Result<Outputs, RunError> {
        let results = whole(results);
        let mut files: Vec<OutputFile> = Vec::new();
        for request in requests {
            let file = OutputFile::plan(&results, request)?;
            if let Some(earlier) = files.iter().find(|earlier| resolve(&earlier.path) == resolve(&file.path)) {
                let (path, known) = (file.path.display(), earlier.path.display());
                let also =
                    if earlier.path == file.path { String::new() } else { format!(", which is also `{known}`,") };
                return Err(RunError::new(RunCode::E0702, format!("`{path}`{also} would be written twice")));
            }
            if is_writer && Placeholder::of(&file.path).is_none() {
                check_writable(&file.path)?;
            }
            files.push(file);
        }
        Ok(Outputs { results, files })
    }

    /// Whether results are printed, because no file was requested.
    pub fn is_printed(&self) -> bool {
        self.files.is_empty()
    }

    /// The files.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.iter().map(|file| file.path.as_path())
    }

    /// The files that all processes write together: the path of each, and its arrays.
    pub fn whole_files(&self) -> impl Iterator<Item = (&Path, Vec<ResultArray>)> {
        self.files.iter().filter(|file| Placeholder::of(&file.path).is_none()).map(|file| {
            let array = |name: &str, index: usize| {
                let WholeResult { array, imaginary, .. } = self.results[index];
                ResultArray { name: name.to_string(), array, imaginary }
            };
            let arrays = match &file.content {
                OutputContent::Array(index) => vec![array("", *index)],
                OutputContent::Archive(_, members) => members.iter().map(|(name, index)| array(name, *index)).collect(),
            };
            (file.path.as_path(), arrays)
        })
    }

    /// The files that this process writes for itself or its devices, which must be writable.
    pub fn pieces(&self, results: &[Binding], blocks: &LocalBlocks) -> Result<Vec<ProcessOutput>, RunError> {
        let mut pieces: BTreeMap<PathBuf, Vec<ProcessMember>> = BTreeMap::new();
        for OutputFile { path, content } in &self.files {
            let Some(which) = Placeholder::of(path) else { continue };
            let members = match content {
                OutputContent::Array(index) => vec![(String::new(), *index)],
                OutputContent::Archive(_, members) => members.clone(),
            };
            for (name, index) in members {
                let WholeResult { array, imaginary, .. } = self.results[index];
                for file in blocks.of_result(array, &results[array], path, which)? {
                    let member = ProcessMember { name: name.clone(), array, imaginary, file };
                    pieces.entry(member.file.path.clone()).or_default().push(member);
                }
            }
        }
        let checked = |(path, members): (PathBuf, Vec<ProcessMember>)| {
            check_writable(&path)?;
            Ok(ProcessOutput { path, members })
        };
        pieces.into_iter().map(checked).collect()
    }
}

/// A file with this process's part of some results.
pub struct ProcessOutput {
    path: PathBuf,
    members: Vec<ProcessMember>,
}

/// A result in such a file: its arrays, by their numbers.
struct ProcessMember {
    name: String,
    array: usize,
    imaginary: Option<usize>,
    file: ProcessFile,
}

impl ProcessOutput {
    /// The arrays of the results in this file.
    pub fn arrays(&self) -> impl Iterator<Item = usize> {
        self.members.iter().flat_map(|member| [Some(member.array), member.imaginary]).flatten()
    }

    /// Writes the file. `blocks` are the blocks of its arrays on the devices of this process.
    pub fn write(&self, results: &[Binding], blocks: &BTreeMap<usize, Vec<RangedBlock>>) -> Result<(), RunError> {
        let mut arrays = Vec::new();
        for ProcessMember { array, imaginary, file, .. } in &self.members {
            let plane = |index: usize| file.array(results[index].layout.dtype, &blocks[&index]);
            arrays.push((plane(*array)?, imaginary.map(plane).transpose()?));
        }
        let named: Vec<(&str, WholeArray<'_>)> = self
            .members
            .iter()
            .zip(&arrays)
            .map(|(member, (array, imaginary))| (member.name.as_str(), WholeArray::new(array, imaginary.as_ref())))
            .collect();
        write_arrays(&self.path, &named)
    }
}

/// Prints every result: its type, then its value in NumPy's format.
pub fn print(out: &mut dyn Write, results: &[Binding], arrays: &[Option<HostArray>]) -> io::Result<()> {
    debug_assert_eq!(results.len(), arrays.len(), "every result was gathered or left out");
    let results = whole(results);
    let is_named = results.len() > 1 || results.iter().any(|result| result.name != "0");
    for result in &results {
        if let Some(array) = result.gathered(arrays) {
            let name = Some(result.name.as_str()).filter(|_| is_named);
            out.write_all(show::result(name, &result.ty, array.view()).as_bytes())?;
        }
    }
    out.flush()
}

impl OutputFile {
    fn plan(results: &[WholeResult], request: &str) -> Result<OutputFile, RunError> {
        let (name, path) = match request.split_once('=') {
            Some((name, path)) => (Some(name.trim()), path.trim()),
            None => (None, request.trim()),
        };
        let path = PathBuf::from(path);
        let archive = match FileFormat::of(&path) {
            Some(FileFormat::Npy) => None,
            Some(format @ (FileFormat::Npz | FileFormat::Safetensors)) => Some(format),
            None => {
                let why = format!("`--out {request}` does not name a .npy, .npz or .safetensors file");
                return Err(RunError::new(RunCode::E0702, why)
                    .with_help("write --out FILE.npy, --out NAME=FILE.npy, --out FILE.npz or --out FILE.safetensors"));
            }
        };
        let all = || results.iter().enumerate().map(|(i, result)| (result.name.clone(), i)).collect();
        let content = match (name, archive) {
            (None, Some(format)) => OutputContent::Archive(format, all()),
            (None, None) if results.len() == 1 => OutputContent::Array(0),
            (None, None) => {
                let known = list(results.iter().map(|result| result.name.as_str()));
                return Err(RunError::new(
                    RunCode::E0702,
                    format!("`--out {request}` does not name a result; the results are {known}"),
                )
                .with_help("write --out NAME=FILE.npy, or all of them with --out FILE.npz"));
            }
            (Some(name), _) => {
                let (exact, parts) = named(results, name, "write --out FILE.npy")?;
                match (exact, archive) {
                    (Some(index), None) => OutputContent::Array(index),
                    (Some(index), Some(format)) => OutputContent::Archive(format, vec![(name.to_string(), index)]),
                    (None, Some(format)) => OutputContent::Archive(format, parts),
                    (None, None) => {
                        let known = list(parts.iter().map(|(part, _)| part.as_str()));
                        return Err(RunError::new(RunCode::E0702, format!("`{name}` has several parts: {known}"))
                            .with_help(format!("write them together with --out {name}=FILE.npz")));
                    }
                }
            }
        };
        if let OutputContent::Archive(FileFormat::Safetensors, members) = &content
            && members.iter().any(|(name, _)| name == METADATA)
        {
            let why = format!("`--out {request}`: an array in a .safetensors file cannot be called `{METADATA}`");
            return Err(RunError::new(RunCode::E0702, why).with_help("write a .npz file instead"));
        }
        if let OutputContent::Archive(FileFormat::Safetensors, members) = &content
            && let Some((name, _)) = members.iter().find(|(_, index)| results[*index].imaginary.is_some())
        {
            let why =
                format!("`--out {request}`: `{name}` is complex, but a .safetensors file holds real numbers only");
            return Err(RunError::new(RunCode::E0702, why).with_help("write a .npz file instead"));
        }
        Ok(OutputFile { path, content })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::io::npz::NpzArchive;
    use crate::io::safetensors::SafetensorsFile;
    use spmdc_abi::{DType, Layout, Place};

    fn results(names: &[&str]) -> Vec<Binding> {
        let layout = Layout { dtype: DType::I32, dims: Vec::new() };
        let place = Place { arena: 0, offset: 0 };
        let result = |name: &&str| Binding {
            name: name.to_string(),
            second_name: None,
            ty: "i32".to_string(),
            plane: None,
            layout: layout.clone(),
            place: Some(place),
        };
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
        let requests = ["loss=loss.npy", "p=p.npz", "p=p.safetensors", "all.safetensors"].map(|request| {
            let (name, file) = request.rsplit_once('=').map_or((String::new(), request), |(n, f)| (format!("{n}="), f));
            format!("{name}{}", at(file).display())
        });
        let outputs = Outputs::plan(&results, &requests, true).unwrap();
        assert!(!outputs.is_printed());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "planning leaves nothing behind");
        for (path, arrays) in outputs.whole_files() {
            let values: Vec<_> = arrays.iter().map(|result| scalar(1 + result.array as i32).unwrap()).collect();
            let named: Vec<_> = arrays
                .iter()
                .zip(&values)
                .map(|(result, value)| (result.name.as_str(), WholeArray::new(value, None)))
                .collect();
            write_arrays(path, &named).unwrap();
        }
        let archive = NpzArchive::open(&at("p.npz")).unwrap();
        assert_eq!(archive.names().collect::<Vec<_>>(), ["w", "b"]);
        assert_eq!(archive.array("b").unwrap().unwrap().read().unwrap(), scalar(3).unwrap());
        for (file, names) in [("p.safetensors", &["b", "w"][..]), ("all.safetensors", &["loss", "p.b", "p.w"])] {
            let archive = SafetensorsFile::open(&at(file)).unwrap();
            assert_eq!(archive.names(), names);
            assert!(archive.array(names[0]).unwrap().unwrap().read().unwrap().shape.is_empty());
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn requests_that_cannot_be_met_are_refused_beforehand() {
        let two = results(&["loss", "p.w"]);
        let reserved = results(&["__metadata__"]);
        for (request, code, part) in [
            ("y.npy", RunCode::E0702, "the results are `loss`, `p.w`"),
            ("lss=y.npy", RunCode::E0702, "no result `lss`"),
            ("p=p.npy", RunCode::E0702, "several parts: `w`"),
            ("loss=y.txt", RunCode::E0702, "does not name a .npy, .npz or .safetensors file"),
            ("p.safetensors", RunCode::E0702, "cannot be called `__metadata__`"),
            (
                "loss=/no/such/folder/y.npy",
                RunCode::E0704,
                "cannot write `/no/such/folder/y.npy`: No such file or directory",
            ),
        ] {
            let results = if request == "p.safetensors" { &reserved } else { &two };
            let error = Outputs::plan(results, &[request.to_string()], true).unwrap_err();
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
            Outputs::plan(&two, &[format!("loss={}", at(a)), format!("n={}", at(b))], true)
                .err()
                .map(|error| error.message)
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
