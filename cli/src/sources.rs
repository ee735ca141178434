//! The files of a program: read for the compiler, and kept for messages.

use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};

use miette::NamedSource;
use spmdc_check::CheckOptions;
use spmdc_check::sources::{Source, SourceSet, Sources};
use spmdc_compiler::pipeline::HostOptions;
use spmdc_compiler::sources;
use spmdc_grammar::diagnostic::{Diagnostic, Severity};
use spmdc_grammar::span::{FileId, Lines, Span};
use spmdc_kernel::machine::Machine;
use spmdc_layout::cost::Levels;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::describe;

use crate::CommandError;
use crate::machine;
use crate::options::{MachineOption, ProgramOptions};

/// Maximum size of a source file, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Maximum number of nested folders in which files are looked for.
const MAX_DEPTH: usize = 64;

/// The name of standard input, and of standard output, on the command line.
pub const STANDARD_INPUT: &str = "-";

/// One file, with its name as the user gave it.
pub struct SourceText {
    pub name: String,
    pub text: String,
    lines: Lines,
    /// The same file for messages.
    pub named: NamedSource<String>,
}

/// The texts of one compilation, by their [`FileId`].
#[derive(Default)]
pub struct SourceTexts {
    files: Vec<SourceText>,
}

impl SourceTexts {
    pub fn add(&mut self, name: &str, text: &str) {
        let named = NamedSource::new(name, text.to_string());
        self.files.push(SourceText { name: name.to_string(), text: text.to_string(), lines: Lines::new(text), named });
    }

    pub fn get(&self, file: FileId) -> Option<&SourceText> {
        self.files.get(usize::from(file.0))
    }

    pub fn iter(&self) -> impl Iterator<Item = &SourceText> {
        self.files.iter()
    }

    /// The one-based line and column of a span; zeros if they are unknown.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        self.get(span.file).map_or((0, 0), |file| file.lines.line_column(&file.text, span.start as usize))
    }

    /// `line:column` of a span; with the file's name before it, unless it is the main file.
    pub fn place(&self, span: Span) -> Option<String> {
        let file = self.get(span.file)?;
        let (line, column) = self.line_column(span);
        Some(match span.file {
            SourceSet::ROOT => format!("{line}:{column}"),
            _ => format!("{}:{line}:{column}", file.name),
        })
    }

    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> SourceTexts {
        let mut texts = SourceTexts::default();
        files.iter().for_each(|(name, text)| texts.add(name, text));
        texts
    }
}

/// A parsed program, and the command line's options for it.
pub struct ParsedProgram {
    pub set: SourceSet,
    pub options: CheckOptions,
    pub hosts: Option<HostOptions>,
}

/// Reads the program and its imports. The texts are kept even if they have errors: messages show them.
pub fn load(options: &ProgramOptions, texts: &mut SourceTexts) -> Result<ParsedProgram, CommandError> {
    let (name, text) = match options.program.to_str() {
        Some(STANDARD_INPUT) => ("<stdin>".into(), read_text(std::io::stdin().lock())),
        _ => (options.program.to_string_lossy(), read(&options.program)),
    };
    let text = text.map_err(|why| RunError::new(RunCode::E0703, format!("cannot read the program `{name}`: {why}")))?;
    let (set, diagnostics) = sources::load(&name, &text, &DiskSources);
    set.files.iter().for_each(|file| texts.add(&file.name, &file.text));
    if has_errors(&diagnostics) {
        return Err(CommandError::Program(diagnostics));
    }
    let (machine, levels) = match &options.machine {
        MachineOption::Real => (Machine::REAL, Levels::DEFAULT),
        MachineOption::Tiny => (Machine::TINY, Levels::DEFAULT),
        MachineOption::File(path) => {
            let unreadable = |why| format!("cannot read the machine file `{}`: {why}", path.display());
            let text = read(path).map_err(|why| RunError::new(RunCode::E0703, unreadable(why)))?;
            (Machine::REAL, machine::parse(path, &text)?)
        }
    };
    let given = options.hosts.map(|count| HostOptions { count, levels, refuses: true });
    let hosts = given.or(options.launched.map(|count| HostOptions { count, levels, refuses: false }));
    let options = CheckOptions {
        entry: options.entry.clone(),
        mesh: options.mesh.clone(),
        sets: options.settings.clone(),
        machine,
        ..CheckOptions::default()
    };
    Ok(ParsedProgram { set, options, hosts })
}

/// Files on disk; an imported path is relative to the folder of the importing file.
struct DiskSources;

impl Sources for DiskSources {
    fn read(&self, path: &str, from: &str) -> Result<Source, String> {
        let folder = Path::new(from).parent().unwrap_or(Path::new(""));
        let path = tidy(&folder.join(path));
        let text = read(&path)?;
        Ok(Source { name: path.to_string_lossy().into_owned(), text })
    }
}

/// The path without `.` and unnecessary `..`, so that one file has one name.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for component in path.components() {
        let ends_in_name = matches!(tidied.components().next_back(), Some(Component::Normal(_)));
        match component {
            Component::CurDir => {}
            Component::ParentDir if ends_in_name => {
                tidied.pop();
            }
            Component::ParentDir | Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                tidied.push(component);
            }
        }
    }
    tidied
}

/// The text of a file, or the reason why it cannot be read. Only regular files are read: others may be endless, or block.
pub fn read(path: &Path) -> Result<String, String> {
    let file_type = |metadata: Metadata| if metadata.is_file() { Ok(()) } else { Err(kind(&metadata).to_string()) };
    std::fs::metadata(path).map_err(|error| describe(&error)).and_then(file_type)?;
    let file = File::open(path).map_err(|error| describe(&error))?;
    file.metadata().map_err(|error| describe(&error)).and_then(file_type)?;
    read_text(file)
}

/// The named files, and all source files in the named folders, in order.
pub fn named_files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => add_folder(path, 0, &mut files)?,
            false => files.push(path.clone()),
        }
    }
    Ok(files)
}

/// Adds the source files below a folder. Hidden folders, folders of builds and links are left out.
fn add_folder(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let failed = |error: &std::io::Error| {
        let message = format!("cannot read `{}`: {}", folder.display(), describe(error));
        CommandError::from(RunError::new(RunCode::E0703, message))
    };
    let mut entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
        .map_err(|error| failed(&error))?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let is_hidden = name.to_string_lossy().starts_with('.') || name == "target";
        let kind = entry.file_type().map_err(|error| failed(&error))?;
        if kind.is_dir() && !is_hidden && depth < MAX_DEPTH {
            add_folder(&path, depth + 1, files)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "spmd") {
            files.push(path.strip_prefix(".").map_or(path.clone(), Path::to_path_buf));
        }
    }
    Ok(())
}

/// The kind of a file that is not a regular one.
fn kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() {
        "it is a directory"
    } else if metadata.file_type().is_fifo() {
        "it is a pipe; write `-` to read standard input"
    } else {
        "it is a device"
    }
}

/// The whole text, without the byte order mark that some editors write.
pub fn read_text(from: impl Read) -> Result<String, String> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| describe(&error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {} MiB", MAX_BYTES >> 20));
    }
    let mut text = String::from_utf8(bytes).map_err(|error| not_text(error.as_bytes()).to_string())?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// The reason why bytes are not a program. Bytecode of MLIR begins with `ML\xefR`, in files of `jax.export` after a header.
fn not_text(bytes: &[u8]) -> &'static str {
    let is_bytecode = bytes.windows(4).take(1 << 16).any(|four| four == b"ML\xefR");
    match is_bytecode {
        true => "it is bytecode of MLIR; write the text: `open(\"f.mlir\", \"w\").write(exported.mlir_module())`",
        false => "it is not UTF-8 text",
    }
}

/// Whether any of these is an error.
fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytecode_is_not_text() {
        assert_eq!(not_text(b"\xff\xfe"), "it is not UTF-8 text");
        assert!(not_text(b"header ML\xefR\x0dStableHLO_v1.13.0").contains("exported.mlir_module()"));
        assert!(read_text(&b"ML\xefR\x0d"[..]).is_err_and(|reason| reason.contains("bytecode of MLIR")));
    }

    #[test]
    fn one_file_has_one_name() {
        assert_eq!(tidy(Path::new("a/./b/../nn.spmd")), Path::new("a/nn.spmd"));
        assert_eq!(tidy(Path::new("../a/../nn.spmd")), Path::new("../nn.spmd"));
        assert_eq!(tidy(Path::new("/a/nn.spmd")), Path::new("/a/nn.spmd"));
    }
}
