//! Code actions: the edits of findings, the layouts of variables, and the search for an edit that avoids a collective.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lsp_types::{CodeAction, CodeActionKind, TextEdit};
use serde::{Deserialize, Serialize};
use spmdc_abi::words::bytes;
use spmdc_compiler::pipeline::Options;
use spmdc_compiler::report::why;
use spmdc_grammar::diagnostic::Edit;
use spmdc_grammar::span::{Span, line_column};

use crate::documents::ParsedFile;
use crate::findings::ProgramPlaces;
use crate::navigation::workspace_edit;
use crate::positions::{LineIndex, TextShift};
use crate::programs::{CheckedProgram, CompiledProgram};
use crate::state::ServerState;
use crate::symbols::Annotation;
use crate::values::Seen;

/// The search for an edit that avoids the collectives of a line. The client sends it back when the user chooses the action.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LayoutSearch {
    /// The file.
    pub path: PathBuf,
    /// The line, from 0.
    pub line: usize,
}

/// The actions for a range of bytes that can be had at once.
pub fn actions(state: &ServerState, file: &ParsedFile, range: &Range<usize>) -> Vec<CodeAction> {
    let mut found: Vec<CodeAction> = Vec::new();
    for checked in state.analyst.checked(&file.path) {
        of_findings(&checked, file, range, &mut found);
    }
    for seen in Seen::all(state, file) {
        found.extend(annotations(&seen, file, range));
    }
    found.dedup_by(|next, action| next.title == action.title && next.edit == action.edit);
    found
}

/// Whether two ranges overlap or touch.
fn meets(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start <= other.end && other.start <= one.end
}

fn of_findings(checked: &CheckedProgram, file: &ParsedFile, range: &Range<usize>, found: &mut Vec<CodeAction>) {
    let places = ProgramPlaces::of(checked);
    let Some(number) = checked.paths.iter().position(|path| *path == file.path) else { return };
    let shift = TextShift::between(&checked.set.files[number].text, &file.text);
    for diagnostic in &checked.diagnostics {
        let span = diagnostic.span;
        if usize::from(span.file.0) != number {
            continue;
        }
        let present = shift.to_new(span.start as usize).zip(shift.to_new(span.end as usize));
        if !present.is_some_and(|(start, end)| meets(&(start..end), range)) {
            continue;
        }
        for edit in &diagnostic.edits {
            let Some(change) = change(checked, &places, edit, (number, shift, file)) else { continue };
            let shown = edit.replacement.split_whitespace().collect::<Vec<_>>().join(" ");
            let note = if edit.note.is_empty() { String::new() } else { format!(": {}", edit.note) };
            let verb = if edit.span.start == edit.span.end { "Insert" } else { "Write" };
            found.push(CodeAction {
                title: format!("{verb} `{shown}`{note}"),
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![places.shown(diagnostic)]),
                edit: Some(workspace_edit(change)),
                is_preferred: Some(diagnostic.edits.len() == 1),
                ..CodeAction::default()
            });
        }
    }
}

type Change = BTreeMap<PathBuf, Vec<TextEdit>>;

/// The edit in the present text; None if its place has changed.
fn change(
    checked: &CheckedProgram,
    places: &ProgramPlaces<'_>,
    edit: &Edit,
    (number, shift, file): (usize, TextShift, &ParsedFile),
) -> Option<Change> {
    let own = usize::from(edit.span.file.0);
    let path: &Path = checked.paths.get(own)?;
    if crate::shipped::is_shipped(path) {
        return None;
    }
    let range = if own == number {
        let (start, end) = (shift.to_new(edit.span.start as usize)?, shift.to_new(edit.span.end as usize)?);
        file.lines.positions(&file.text, start..end)
    } else {
        places.range(edit.span)
    };
    Some(BTreeMap::from([(path.to_path_buf(), vec![TextEdit { range, new_text: edit.replacement.clone() }])]))
}

/// Actions that write the types of variables which have none.
fn annotations(seen: &Seen, file: &ParsedFile, range: &Range<usize>) -> Vec<CodeAction> {
    let mut types: BTreeMap<usize, Vec<(String, String)>> = BTreeMap::new();
    for (place, value) in seen.named() {
        if meets(&place, range) {
            let found = types.entry(place.start).or_default();
            let entry = (value.name.clone(), value.shown());
            if !found.contains(&entry) {
                found.push(entry);
            }
        }
    }
    let action = |(start, found): (usize, Vec<(String, String)>)| {
        let binding = file.symbols.binding(start)?;
        let [(name, ty)] = found.as_slice() else { return None };
        if binding.annotation != Some(Annotation::Absent) || *name != binding.name {
            return None;
        }
        let at = file.lines.position(&file.text, binding.range.end);
        let edit = TextEdit { range: lsp_types::Range { start: at, end: at }, new_text: format!(": {ty}") };
        Some(CodeAction {
            title: format!("Write the type of `{name}`: `{ty}`"),
            kind: Some(CodeActionKind::REFACTOR_REWRITE),
            edit: Some(workspace_edit(BTreeMap::from([(file.path.clone(), vec![edit])]))),
            ..CodeAction::default()
        })
    };
    types.into_iter().filter_map(action).collect()
}

/// The compiled program with collectives on the line of an offset, if its text is the present one.
pub fn searched(state: &ServerState, file: &ParsedFile, offset: usize) -> Option<(LayoutSearch, Arc<CompiledProgram>)> {
    let line = file.lines.line(offset);
    let seen = Seen::all(state, file).into_iter().find(|seen| {
        let is_same = seen.compiled.text(seen.file) == &*file.text;
        let mut collectives = seen.compiled.collectives.iter().filter(|found| found.span.file == seen.file);
        is_same && collectives.any(|found| file.lines.line(found.span.start as usize) == line)
    })?;
    Some((LayoutSearch { path: file.path.clone(), line }, seen.compiled))
}

/// The action before its edit is known.
pub fn unresolved(search: &LayoutSearch) -> CodeAction {
    CodeAction {
        title: "Search for a layout that avoids the collectives of this line".to_string(),
        kind: Some(CodeActionKind::REFACTOR_REWRITE),
        data: serde_json::to_value(search).ok(),
        ..CodeAction::default()
    }
}

/// Compiles the program with changed annotations, and returns the edits that avoid collectives of the line, the one with the fewest bytes first.
pub fn resolve(search: &LayoutSearch, compiled: &CompiledProgram) -> Vec<CodeAction> {
    let Some(file) = compiled.file(&search.path) else { return Vec::new() };
    let text = compiled.text(file);
    let lines = LineIndex::new(text);
    let on_line = |span: Span| {
        span != Span::default() && span.file == file && line_column(text, span.start as usize).0 == search.line + 1
    };
    let options = Options { check: compiled.settings.check.clone(), ..Options::default() };
    let mut found: Vec<(u64, CodeAction)> = Vec::new();
    for of_mesh in compiled.compilation.of_meshes() {
        let (forced, _) = why::forced(of_mesh, &compiled.set, &options, &on_line);
        for forced in forced {
            let Some(edit) = forced.edit else { continue };
            let Some(path) = compiled.paths.get(usize::from(edit.span.file.0)) else { continue };
            if crate::shipped::is_shipped(path) {
                continue;
            }
            let range = if edit.span.file == file {
                lines.positions(text, edit.span.start as usize..edit.span.end as usize)
            } else {
                let text = compiled.text(edit.span.file);
                LineIndex::new(text).positions(text, edit.span.start as usize..edit.span.end as usize)
            };
            let new = TextEdit { range, new_text: edit.to.clone() };
            let action = CodeAction {
                title: format!(
                    "Write `{}` instead of `{}`: a device receives {} instead of {}",
                    edit.to,
                    edit.from,
                    bytes(edit.bytes_after),
                    bytes(edit.bytes_before)
                ),
                kind: Some(CodeActionKind::REFACTOR_REWRITE),
                edit: Some(workspace_edit(BTreeMap::from([(path.clone(), vec![new])]))),
                ..CodeAction::default()
            };
            if !found.iter().any(|(_, known)| *known == action) {
                found.push((edit.bytes_after, action));
            }
        }
    }
    found.sort_by_key(|(received, _)| *received);
    found.into_iter().map(|(_, action)| action).collect()
}
