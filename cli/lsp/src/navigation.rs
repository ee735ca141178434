//! Definitions, references and renaming, over imports.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;

use lsp_types::{Location, TextEdit, Uri, WorkspaceEdit};
use spmdc_grammar::classify::is_name;

use crate::documents::ParsedFile;
use crate::fields;
use crate::positions::uri_of;
use crate::resolve::{self, Identity, identity};
use crate::shipped::is_shipped;
use crate::state::{NameView, ServerState};
use crate::symbols::Occurrence;
use crate::workspace::containing;

/// The definition of the name at a position, or the file of the import there.
pub fn definition(state: &ServerState, view: &NameView) -> Option<Location> {
    if let Some(path) = imported_path(view) {
        return state.location(&path, &(0..0));
    }
    let occurrence = view.occurrence()?;
    let found = identity(&state.documents, &view.file, occurrence)?;
    if let Identity::Field(_) = found
        && let Ok(names) = fields::names(state, &view.file, occurrence)
        && let Some((file, name)) = names.found.iter().find(|(_, name)| fields::is_of_type(name))
    {
        let is_here = file.path == view.file.path;
        return if is_here { state.location_in(view, &name.range) } else { state.location(&file.path, &name.range) };
    }
    let (path, range) = resolve::definition(&state.documents, &view.file, &found)?;
    if path == view.file.path { state.location_in(view, &range) } else { state.location(&path, &range) }
}

/// The file of the import whose path is at the position.
fn imported_path(view: &NameView) -> Option<PathBuf> {
    use spmdc_grammar::ast::ItemKind;
    view.file.tree.items.iter().find_map(|item| match &item.kind {
        ItemKind::Import { path, path_span, .. } => {
            let range = path_span.start as usize..path_span.end as usize;
            range.contains(&view.offset).then(|| view.file.imported(path))
        }
        ItemKind::Mesh(_) | ItemKind::Const { .. } | ItemKind::Type { .. } | ItemKind::Fn(_) | ItemKind::Test(_) => {
            None
        }
    })
}

/// A use of a name.
struct NameUse {
    file: Rc<ParsedFile>,
    range: Range<usize>,
    is_definition: bool,
    is_shorthand: bool,
}

/// All uses of the name at a position, with the thing that it denotes.
fn uses(state: &ServerState, view: &NameView) -> Option<(Identity, Vec<NameUse>)> {
    let occurrence = view.occurrence()?;
    let wanted = identity(&state.documents, &view.file, occurrence)?;
    let name = name_of(&wanted, view)?;
    if let Identity::Field(_) = wanted
        && let Ok(names) = fields::names(state, &view.file, occurrence)
    {
        return Some((wanted, names.found.into_iter().map(of_field).collect()));
    }
    let mut found = Vec::new();
    for file in candidates(state, view, &wanted, &name) {
        for occurrence in file.symbols.occurrences.iter().filter(|occurrence| occurrence.name == name) {
            if identity(&state.documents, &file, occurrence).as_ref() == Some(&wanted) {
                let Occurrence { range, is_definition, is_shorthand, .. } = occurrence.clone();
                found.push(NameUse { file: Rc::clone(&file), range, is_definition, is_shorthand });
            }
        }
    }
    Some((wanted, found))
}

fn of_field((file, occurrence): (Rc<ParsedFile>, Occurrence)) -> NameUse {
    let Occurrence { range, is_definition, is_shorthand, .. } = occurrence;
    NameUse { file, range, is_definition, is_shorthand }
}

fn name_of(identity: &Identity, view: &NameView) -> Option<String> {
    match identity {
        Identity::Local(..) => view.occurrence().map(|occurrence| occurrence.name.clone()),
        Identity::Item(_, name)
        | Identity::Module(_, name)
        | Identity::Axis(name)
        | Identity::Mesh(name)
        | Identity::Field(name)
        | Identity::Shipped(name)
        | Identity::ShippedParam(_, name) => Some(name.clone()),
    }
}

/// The files that may use a name.
fn candidates(state: &ServerState, view: &NameView, identity: &Identity, name: &str) -> Vec<Rc<ParsedFile>> {
    let documents = &state.documents;
    let mut paths: BTreeSet<PathBuf> = BTreeSet::from([view.file.path.clone()]);
    let open = || documents.recent().filter_map(|path| documents.file(path));
    match identity {
        Identity::Module(path, _) => paths.extend([path.clone()]),
        Identity::Axis(_) | Identity::Mesh(_) | Identity::Field(_) => {
            for root in open() {
                let files = resolve::program(documents, &root);
                if files.iter().any(|file| file.path == view.file.path) {
                    paths.extend(files.iter().map(|file| file.path.clone()));
                }
            }
        }
        Identity::Local(path, _) | Identity::Item(path, _) => {
            paths.insert(path.clone());
            paths.extend(open().map(|file| file.path.clone()));
            paths.extend(state.folders.iter().flat_map(|folder| containing(folder, name)));
        }
        Identity::Shipped(_) | Identity::ShippedParam(..) => {
            paths.extend(open().map(|file| file.path.clone()));
            paths.extend(state.folders.iter().flat_map(|folder| containing(folder, name)));
        }
    }
    let is_present = |file: &Rc<ParsedFile>| file.path != view.file.path;
    let others = paths.iter().filter_map(|path| documents.file(path)).filter(is_present);
    std::iter::once(Rc::clone(&view.file)).chain(others).collect()
}

/// The uses of the name at a position.
pub fn references(state: &ServerState, view: &NameView, with_definition: bool) -> Option<Vec<Location>> {
    let (_, found) = uses(state, view)?;
    let found = found.into_iter().filter(|found| with_definition || !found.is_definition);
    let location = |found: NameUse| match found.file.path == view.file.path {
        true => state.location_in(view, &found.range),
        false => state.location(&found.file.path, &found.range),
    };
    Some(found.filter_map(location).collect())
}

/// The ranges of the uses in the same file, and whether each binds the name.
pub fn highlights(state: &ServerState, view: &NameView) -> Option<Vec<(lsp_types::Range, bool)>> {
    let occurrence = view.occurrence()?;
    let wanted = identity(&state.documents, &view.file, occurrence)?;
    let present = state.documents.file(&view.file.path)?;
    let same = view.file.symbols.occurrences.iter().filter(|other| other.name == occurrence.name);
    let same = same.filter(|other| identity(&state.documents, &view.file, other).as_ref() == Some(&wanted));
    let range = |other: &Occurrence| {
        let range = view.present(&other.range)?;
        Some((present.lines.positions(&present.text, range), other.is_definition))
    };
    Some(same.filter_map(range).collect())
}

/// The range of the name at a position, if it can be renamed; otherwise the reason.
pub fn renamable(state: &ServerState, view: &NameView) -> Result<Option<lsp_types::Range>, String> {
    let Some(occurrence) = view.occurrence() else { return Ok(None) };
    let Some(found) = identity(&state.documents, &view.file, occurrence) else { return Ok(None) };
    let name = &occurrence.name;
    match &found {
        Identity::Shipped(_) | Identity::ShippedParam(..) => return Err(format!("`{name}` is a name of the compiler")),
        Identity::Field(_) => {
            fields::names(state, &view.file, occurrence)?;
        }
        Identity::Local(path, _) | Identity::Item(path, _) if is_shipped(path) => {
            return Err(format!("`{name}` is defined in a file of the compiler"));
        }
        Identity::Local(..) | Identity::Item(..) | Identity::Module(..) | Identity::Axis(_) | Identity::Mesh(_) => {}
    }
    let Some(range) = view.present(&occurrence.range) else { return Ok(None) };
    let present = state.documents.file(&view.file.path);
    Ok(present.map(|present| present.lines.positions(&present.text, range)))
}

/// The edits that rename the thing at a position, or the reason why it cannot have the name.
pub fn rename(state: &ServerState, view: &NameView, name: &str) -> Result<WorkspaceEdit, String> {
    let Some(_) = renamable(state, view)? else { return Err("this position does not have a name".to_string()) };
    if !is_name(name) {
        return Err(format!("`{name}` is not a name"));
    }
    if !view.file.is_whole {
        return Err("the file has syntax errors, so some uses of the name may be unknown".to_string());
    }
    if let Some(field) = view.occurrence()
        && let Some(Identity::Field(_)) = identity(&state.documents, &view.file, field)
    {
        return rename_field(state, view, field, name);
    }
    let Some((found, uses)) = uses(state, view) else { return Err("this position does not have a name".to_string()) };
    if uses.iter().any(|found| !found.file.is_whole) {
        return Err("a file that uses the name has syntax errors".to_string());
    }
    if let Some(reason) = clash(state, &found, name) {
        return Err(reason);
    }
    let mut edits: BTreeMap<PathBuf, Vec<TextEdit>> = BTreeMap::new();
    for NameUse { file, range, is_shorthand, .. } in uses {
        if is_shipped(&file.path) {
            continue;
        }
        let old = file.slice(range.start, range.end);
        let new_text = if is_shorthand { format!("{old}: {name}") } else { name.to_string() };
        let range = file.lines.positions(&file.text, range);
        edits.entry(file.path.clone()).or_default().push(TextEdit { range, new_text });
    }
    Ok(workspace_edit(edits))
}

/// The edits that rename a field, unless a program with it would have errors then.
fn rename_field(state: &ServerState, view: &NameView, field: &Occurrence, name: &str) -> Result<WorkspaceEdit, String> {
    let names = fields::names(state, &view.file, field)?;
    let mut edits: BTreeMap<PathBuf, Vec<TextEdit>> = BTreeMap::new();
    let mut texts: BTreeMap<PathBuf, String> = BTreeMap::new();
    // The last names come first, so that the places of the others stay.
    for (file, Occurrence { range, is_shorthand, .. }) in names.found.iter().rev() {
        let old = file.slice(range.start, range.end);
        let new_text = if *is_shorthand { format!("{name}: {old}") } else { name.to_string() };
        let text = texts.entry(file.path.clone()).or_insert_with(|| file.text.to_string());
        text.replace_range(range.clone(), &new_text);
        let range = file.lines.positions(&file.text, range.clone());
        edits.entry(file.path.clone()).or_default().push(TextEdit { range, new_text });
    }
    match fields::first_error(state, &names, texts) {
        Some(error) => Err(format!("with the name `{name}`, the program would have an error: {error}")),
        None => Ok(workspace_edit(edits)),
    }
}

/// An edit of several files.
pub fn workspace_edit(edits: BTreeMap<PathBuf, Vec<TextEdit>>) -> WorkspaceEdit {
    #[allow(clippy::mutable_key_type, reason = "the hash of an address does not change")]
    let changes: HashMap<Uri, Vec<TextEdit>> =
        edits.into_iter().filter_map(|(path, edits)| Some((uri_of(&path)?, edits))).collect();
    WorkspaceEdit { changes: Some(changes), ..WorkspaceEdit::default() }
}

/// The reason why the thing cannot have the name, because another one has it.
fn clash(state: &ServerState, identity: &Identity, name: &str) -> Option<String> {
    let taken = || Some(format!("`{name}` is already defined here"));
    match identity {
        Identity::Local(path, start) => {
            let file = state.documents.file(path)?;
            let own = file.symbols.binding(*start)?;
            let overlaps = |other: &crate::symbols::LocalBinding| {
                other.name == name && other.scope.start < own.scope.end && own.scope.start < other.scope.end
            };
            file.symbols.bindings.iter().any(overlaps).then(taken).flatten()
        }
        Identity::Item(path, _) | Identity::Module(path, _) => {
            let file = state.documents.file(path)?;
            resolve::item(&file, name).is_some().then(taken).flatten()
        }
        Identity::Axis(_) | Identity::Mesh(_) => {
            let known = state.documents.recent().filter_map(|path| state.documents.file(path));
            let mut known = known.filter(|file| {
                resolve::axis(&state.documents, file, name).is_some()
                    || resolve::mesh(&state.documents, file, name).is_some()
            });
            known.next().is_some().then(taken).flatten()
        }
        Identity::Field(_) | Identity::Shipped(_) | Identity::ShippedParam(..) => None,
    }
}
