//! The findings of the compiler as diagnostics of the protocol.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{
    Diagnostic as Shown, DiagnosticRelatedInformation, DiagnosticSeverity, Location, NumberOrString,
    PublishDiagnosticsParams,
};
use spmdc_grammar::diagnostic::{Diagnostic, Severity};
use spmdc_grammar::span::Span;

use crate::documents::Overlay;
use crate::positions::{LineIndex, uri_of};
use crate::programs::CheckedProgram;
use crate::shipped::Copies;

type Versioned = (Option<i32>, Vec<Shown>);

/// The findings that the client knows, by file.
#[derive(Debug)]
pub struct Published {
    copies: Copies,
    /// The findings of each file, with the version of an open document.
    known: BTreeMap<PathBuf, Versioned>,
}

impl Published {
    /// No findings.
    pub fn new(copies: Copies) -> Published {
        Published { copies, known: BTreeMap::new() }
    }

    /// Takes the findings of all files, and returns the messages for the files whose findings have changed.
    pub fn update(&mut self, found: BTreeMap<PathBuf, Vec<Shown>>, overlay: &Overlay) -> Vec<PublishDiagnosticsParams> {
        let found: BTreeMap<PathBuf, Versioned> =
            found.into_iter().map(|(path, shown)| (path.clone(), (overlay.version(&path), shown))).collect();
        let gone =
            self.known.keys().filter(|path| !found.contains_key(*path)).map(|path| (path.clone(), (None, Vec::new())));
        let changed = found.iter().filter(|(path, versioned)| self.known.get(*path) != Some(versioned));
        let changed: Vec<(PathBuf, Versioned)> =
            gone.chain(changed.map(|(path, versioned)| (path.clone(), versioned.clone()))).collect();
        self.known = found;
        let message = |(path, (version, diagnostics)): (PathBuf, Versioned)| {
            let uri = uri_of(&self.copies.outside(&path)?)?;
            Some(PublishDiagnosticsParams { uri, diagnostics, version })
        };
        changed.into_iter().filter_map(message).collect()
    }
}

/// The findings of all programs by file, each once. An open file has an entry even without findings.
pub fn shown(programs: &[Arc<CheckedProgram>], overlay: &Overlay) -> BTreeMap<PathBuf, Vec<Shown>> {
    let mut found: BTreeMap<PathBuf, Vec<Shown>> = BTreeMap::new();
    for program in programs {
        if let Some(root) = program.paths.first().filter(|root| overlay.text(root).is_some()) {
            found.entry(root.clone()).or_default();
        }
        let places = ProgramPlaces::of(program);
        for diagnostic in &program.diagnostics {
            let Some(path) = program.paths.get(usize::from(diagnostic.span.file.0)) else { continue };
            let diagnostic = places.shown(diagnostic);
            let of_file = found.entry(path.clone()).or_default();
            if !of_file.contains(&diagnostic) {
                of_file.push(diagnostic);
            }
        }
    }
    found
}

/// The lines of the files of a program.
pub struct ProgramPlaces<'a> {
    program: &'a CheckedProgram,
    lines: Vec<LineIndex>,
}

impl ProgramPlaces<'_> {
    pub fn of(program: &CheckedProgram) -> ProgramPlaces<'_> {
        let lines = program.set.files.iter().map(|file| LineIndex::new(&file.text)).collect();
        ProgramPlaces { program, lines }
    }

    pub fn range(&self, span: Span) -> lsp_types::Range {
        let file = usize::from(span.file.0);
        match (self.lines.get(file), self.program.set.files.get(file)) {
            (Some(lines), Some(file)) => lines.positions(&file.text, span.start as usize..span.end as usize),
            _ => lsp_types::Range::default(),
        }
    }

    fn location(&self, span: Span) -> Option<Location> {
        let path: &Path = self.program.paths.get(usize::from(span.file.0))?;
        Some(Location { uri: uri_of(path)?, range: self.range(span) })
    }

    pub fn shown(&self, diagnostic: &Diagnostic) -> Shown {
        let related = |span: Span, message: &str| {
            Some(DiagnosticRelatedInformation { location: self.location(span)?, message: message.to_string() })
        };
        let labels = diagnostic.labels.iter().filter_map(|label| related(label.span, &label.text));
        let help = diagnostic.help.iter().filter_map(|help| related(diagnostic.span, &format!("help: {help}")));
        let edits = diagnostic.further_edits().filter_map(|edit| {
            let note = if edit.note.is_empty() { String::new() } else { format!(": {}", edit.note) };
            related(edit.span, &format!("help: write `{}`{note}", edit.replacement.trim()))
        });
        let related: Vec<DiagnosticRelatedInformation> = labels.chain(help).chain(edits).collect();
        let mut message = diagnostic.message.clone();
        if !diagnostic.label.is_empty() {
            message = format!("{message}\n{}", diagnostic.label);
        }
        Shown {
            range: self.range(diagnostic.span),
            severity: Some(match diagnostic.severity {
                Severity::Error => DiagnosticSeverity::ERROR,
                Severity::Warning => DiagnosticSeverity::WARNING,
            }),
            code: Some(NumberOrString::String(diagnostic.code.name().to_string())),
            source: Some("spmdc".to_string()),
            message,
            related_information: (!related.is_empty()).then_some(related),
            ..Shown::default()
        }
    }
}
