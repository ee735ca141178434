//! Findings of the checker on an earlier text, while the present one has syntax errors.
//!
//! A text that does not parse is not checked. Its other findings are likely to remain, and would otherwise vanish and come back with each
//! bracket that is typed.

use spmdc_grammar::diagnostic::{Diagnostic, Edit, Label};
use spmdc_grammar::span::{FileId, Span};

use crate::positions::TextShift;
use crate::programs::CheckedProgram;

/// The findings of the checker on an earlier text of a program, at their places in the present one. Those inside changed parts are dropped.
pub fn carried(before: &CheckedProgram, now: &CheckedProgram) -> Vec<Diagnostic> {
    let files = before.paths.iter().zip(&before.set.files).map(|(path, old)| {
        let at = now.paths.iter().position(|known| known == path)?;
        Some((FileId(at as u16), TextShift::between(&old.text, &now.set.files.get(at)?.text)))
    });
    let files: Vec<Option<(FileId, TextShift)>> = files.collect();
    let span = |span: Span| {
        let (file, shift) = (*files.get(usize::from(span.file.0))?)?;
        let (start, end) = (shift.to_new(span.start as usize)?, shift.to_new(span.end as usize)?);
        // A change inside the span may have resolved the finding.
        let is_same = end.checked_sub(start)? == (span.end - span.start) as usize;
        is_same.then(|| Span::new(file, start, end))
    };
    let diagnostic = |diagnostic: &Diagnostic| {
        let label = |label: &Label| Some(Label { span: span(label.span)?, ..label.clone() });
        let edit = |edit: &Edit| Some(Edit { span: span(edit.span)?, ..edit.clone() });
        Some(Diagnostic {
            span: span(diagnostic.span)?,
            labels: diagnostic.labels.iter().filter_map(label).collect(),
            edits: diagnostic.edits.iter().filter_map(edit).collect(),
            ..diagnostic.clone()
        })
    };
    before.diagnostics.iter().skip(before.syntax_errors).filter_map(diagnostic).collect()
}
