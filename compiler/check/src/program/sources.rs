//! The files of a program: the main file and its imports, each read and parsed once.
//!
//! The compiler does no IO: its caller supplies a [`Sources`]. Files whose path begins with `std/` are part of the compiler.

use crate::errors;
use spmdc_grammar::ast::{ItemKind, ProgramNode};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::FileId;
use std::collections::BTreeMap;

/// The supplier of imported files.
pub trait Sources {
    /// The file that the file named `from` imports as `path`; an error is a sentence for the user.
    fn read(&self, path: &str, from: &str) -> Result<Source, String>;
}

/// A file's text and a name that identifies the file, so that a file imported twice is read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The name that identifies the file.
    pub name: String,
    /// The text of the file.
    pub text: String,
}

/// A program of one file.
pub struct NoSources;

impl Sources for NoSources {
    fn read(&self, path: &str, _: &str) -> Result<Source, String> {
        Err(format!("`{path}` was not found: no files are available"))
    }
}

/// The files that are part of the compiler.
const SHIPPED: &[(&str, &str)] = &[
    ("std/linalg.spmd", include_str!("../../prelude/linalg.spmd")),
    ("std/nn.spmd", include_str!("../../prelude/nn.spmd")),
    ("std/optim.spmd", include_str!("../../prelude/optim.spmd")),
    ("std/stats.spmd", include_str!("../../prelude/stats.spmd")),
];

/// The names and texts of the files that are part of the compiler, as programs import them.
pub fn shipped_files() -> impl Iterator<Item = (&'static str, &'static str)> {
    SHIPPED.iter().copied()
}

/// The file that is part of the compiler and has a function of this name, and the name of the file without its folder and ending.
pub(crate) fn shipped_with(function: &str) -> Option<(&'static str, &'static str)> {
    let head = format!("\nfn {function}(");
    let (path, _) = SHIPPED.iter().find(|(_, text)| text.contains(&head))?;
    let module = path.strip_prefix("std/").and_then(|name| name.strip_suffix(".spmd"));
    Some((path, module.expect("its files are those of `std/`")))
}

/// A file of the program, parsed.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name that identifies the file, as in [`Source::name`].
    pub name: String,
    /// The text that spans in this file refer to.
    pub text: String,
    /// The syntax tree, without unreadable items.
    pub program: ProgramNode,
    /// The file of each `import` item, by the item's position; no entry if it could not be read.
    pub imports: BTreeMap<usize, FileId>,
    /// Whether it is part of the compiler.
    pub is_shipped: bool,
}

/// All files of a program; spans refer to them by position.
#[derive(Clone, Debug)]
pub struct SourceSet {
    /// The main file, then the imported ones in the order in which they were found.
    pub files: Vec<SourceFile>,
    /// The paths of the parameters and results of `main` in the JAX program from which it comes.
    pub second_names: SecondNames,
}

/// The paths of parameters and results in a JAX program, by their names in the language: `state.params['w']` by `arg1`.
#[derive(Clone, Debug, Default)]
pub struct SecondNames {
    /// The paths of parameters.
    pub params: BTreeMap<String, String>,
    /// The paths of results.
    pub results: BTreeMap<String, String>,
}

impl SourceSet {
    /// The program's main file.
    pub const ROOT: FileId = FileId(0);

    /// Reads the program's main file and all its imports. Returns all syntax errors of all files.
    pub fn load(name: &str, text: &str, sources: &dyn Sources) -> (SourceSet, Vec<Diagnostic>) {
        let mut set = SourceSet { files: Vec::new(), second_names: SecondNames::default() };
        let mut diagnostics = Vec::new();
        set.add(name.to_string(), text.to_string(), false, &mut diagnostics);
        // Files are appended during the iteration.
        let mut at = 0;
        while at < set.files.len() {
            set.follow_imports(FileId(at as u16), sources, &mut diagnostics);
            at += 1;
        }
        set.refuse_cycles(&mut diagnostics);
        (set, diagnostics)
    }

    /// A program of one file that was read from another language: spans refer to its text.
    pub fn of_program(name: &str, text: &str, program: ProgramNode, second_names: SecondNames) -> SourceSet {
        let (name, text) = (name.to_string(), text.to_string());
        let file = SourceFile { name, text, program, imports: BTreeMap::new(), is_shipped: false };
        SourceSet { files: vec![file], second_names }
    }

    /// The file with this number, which must be one of the set.
    pub fn file(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    fn add(&mut self, name: String, text: String, is_shipped: bool, diagnostics: &mut Vec<Diagnostic>) -> FileId {
        let id = FileId(self.files.len() as u16);
        let (program, mut found) = spmdc_grammar::parse(&text, id);
        diagnostics.append(&mut found);
        self.files.push(SourceFile { name, text, program, imports: BTreeMap::new(), is_shipped });
        id
    }

    fn follow_imports(&mut self, from: FileId, sources: &dyn Sources, diagnostics: &mut Vec<Diagnostic>) {
        let imports: Vec<(usize, String, spmdc_grammar::span::Span)> = self
            .file(from)
            .program
            .items
            .iter()
            .enumerate()
            .filter_map(|(at, item)| match &item.kind {
                ItemKind::Import { path, path_span, .. } => Some((at, path.clone(), *path_span)),
                ItemKind::Mesh(_)
                | ItemKind::Const { .. }
                | ItemKind::Type { .. }
                | ItemKind::Fn(_)
                | ItemKind::Test(_) => None,
            })
            .collect();
        for (at, path, span) in imports {
            let (source, is_shipped) = match shipped(&path) {
                Some(text) => (Ok(Source { name: path.clone(), text: text.to_string() }), true),
                None => (sources.read(&path, &self.file(from).name), false),
            };
            let source = match source {
                Ok(source) => source,
                Err(reason) => {
                    let shipped: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
                    diagnostics.push(errors::items::unreadable_import(&path, &reason, &shipped, span));
                    continue;
                }
            };
            let known = self.files.iter().position(|file| file.name == source.name);
            let id = match known {
                Some(position) => FileId(position as u16),
                None => self.add(source.name, source.text, is_shipped, diagnostics),
            };
            self.files[from.0 as usize].imports.insert(at, id);
        }
    }
}

impl SourceSet {
    /// Reports a file that imports itself, directly or through others, at the import that closes the cycle.
    fn refuse_cycles(&self, diagnostics: &mut Vec<Diagnostic>) {
        let mut state = vec![Visit::New; self.files.len()];
        self.visit(Self::ROOT, &mut state, diagnostics);
    }

    fn visit(&self, file: FileId, state: &mut [Visit], diagnostics: &mut Vec<Diagnostic>) {
        state[file.0 as usize] = Visit::Open;
        for (at, imported) in &self.file(file).imports {
            match state[imported.0 as usize] {
                Visit::New => self.visit(*imported, state, diagnostics),
                Visit::Open => {
                    if let ItemKind::Import { path, path_span, .. } = &self.file(file).program.items[*at].kind {
                        diagnostics.push(errors::items::import_cycle(path, *path_span));
                    }
                }
                Visit::Done => {}
            }
        }
        state[file.0 as usize] = Visit::Done;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    /// Its imports are being followed.
    Open,
    Done,
}

fn shipped(path: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
}
