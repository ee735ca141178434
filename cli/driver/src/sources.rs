//! The files of a program: read for the compiler, and kept for messages.

use std::cell::RefCell;
use std::path::Path;

use miette::NamedSource;
use spmdc_check::CheckOptions;
use spmdc_check::sources::{Source, SourceSet, Sources};
use spmdc_compiler::pipeline::HostOptions;
use spmdc_compiler::sources;
use spmdc_grammar::diagnostic::{Diagnostic, Severity};
use spmdc_grammar::span::{FileId, Lines, Span};

use crate::disk::{DiskSources, imported, read};
use crate::errors::CommandError;

/// One file, with its name as the user gave it.
pub struct SourceText {
    /// Its name.
    pub name: String,
    /// Its content.
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
    /// Adds the next file.
    pub fn add(&mut self, name: &str, text: &str) {
        let named = NamedSource::new(name, text.to_string());
        self.files.push(SourceText { name: name.to_string(), text: text.to_string(), lines: Lines::new(text), named });
    }

    /// The file with this number.
    pub fn get(&self, file: FileId) -> Option<&SourceText> {
        self.files.get(usize::from(file.0))
    }

    /// The files in the order of their numbers.
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

    /// Files with these names and contents.
    #[cfg(test)]
    pub fn of(files: &[(&str, &str)]) -> SourceTexts {
        let mut texts = SourceTexts::default();
        files.iter().for_each(|(name, text)| texts.add(name, text));
        texts
    }
}

/// A parsed program, and the command line's options for it.
pub struct ParsedProgram {
    /// The syntax trees.
    pub set: SourceSet,
    /// The options of the checker.
    pub options: CheckOptions,
    /// The hosts that share the devices, if the layouts depend on them.
    pub hosts: Option<HostOptions>,
}

/// Parses a program and its imports, or StableHLO text if the name ends in `.mlir`. The texts are kept even if they have errors: messages show
/// them.
pub fn parse(name: &str, text: &str, texts: &mut SourceTexts) -> Result<SourceSet, CommandError> {
    let (set, diagnostics) = sources::load(name, text, &DiskSources);
    set.files.iter().for_each(|file| texts.add(&file.name, &file.text));
    if has_errors(&diagnostics) {
        return Err(CommandError::Program(diagnostics));
    }
    Ok(set)
}

/// Calls `note` with the path of each file that a program imports, directly or not, before it is read; also if it cannot be read.
pub fn note_imports(path: &Path, note: &mut dyn FnMut(&Path)) {
    let noted = NotedSources { note: RefCell::new(note) };
    if let Ok(text) = read(path) {
        sources::load(&path.to_string_lossy(), &text, &noted);
    }
}

/// Files on disk, whose paths are noted.
struct NotedSources<'a> {
    note: RefCell<&'a mut dyn FnMut(&Path)>,
}

impl Sources for NotedSources<'_> {
    fn read(&self, path: &str, from: &str) -> Result<Source, String> {
        (self.note.borrow_mut())(&imported(path, from));
        DiskSources.read(path, from)
    }
}

/// Whether any of these is an error.
fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
}
