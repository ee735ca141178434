//! Programs that have been checked and compiled.

use std::path::{Path, PathBuf};

use spmdc_check::CheckOptions;
use spmdc_check::sources::SourceSet;
use spmdc_compiler::pipeline::Compilation;
use spmdc_compiler::report::lints::Lint;
use spmdc_compiler::totals::Collective;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::FileId;

/// The settings of the client.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The mesh, constants and entry function of programs.
    pub check: CheckOptions,
    /// The lints that warn.
    pub lints: Vec<Lint>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { check: CheckOptions { tests: true, ..CheckOptions::default() }, lints: Vec::new() }
    }
}

/// A program and its findings.
#[derive(Debug)]
pub struct CheckedProgram {
    /// The files, with the texts that spans refer to.
    pub set: SourceSet,
    /// The path of each file.
    pub paths: Vec<PathBuf>,
    /// The findings, those of the parser first.
    pub diagnostics: Vec<Diagnostic>,
    /// The number of findings of the parser and of imports; with any, the program is not checked.
    pub syntax_errors: usize,
}

/// A compiled program.
#[derive(Debug)]
pub struct CompiledProgram {
    /// The files, with the texts that spans refer to.
    pub set: SourceSet,
    /// The path of each file.
    pub paths: Vec<PathBuf>,
    /// The modules of all stages.
    pub compilation: Compilation,
    /// The collectives of all meshes.
    pub collectives: Vec<Collective>,
    /// The settings with which it was compiled.
    pub settings: Settings,
}

impl CompiledProgram {
    /// The number of a file in this program.
    pub fn file(&self, path: &Path) -> Option<FileId> {
        self.paths.iter().position(|known| known == path).map(|at| FileId(at as u16))
    }

    /// The text of a file of this program.
    pub fn text(&self, file: FileId) -> &str {
        self.set.files.get(usize::from(file.0)).map_or("", |file| file.text.as_str())
    }
}
