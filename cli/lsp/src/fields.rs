//! The fields of structs: all names of one field, over all programs that contain it.
//!
//! Types of structs are equal if their fields are, so the names of a field are those that the checker compares: in types, literals, patterns
//! and uses. Code that the checker does not expand, because nothing calls it, has fields whose types are unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use spmdc_check::fields as checked_fields;
use spmdc_check::sources::SourceSet;
use spmdc_grammar::diagnostic::Severity;
use spmdc_grammar::span::Span;

use crate::analysis::{has_main, is_about_entry, paths};
use crate::documents::{Overlay, ParsedFile};
use crate::resolve;
use crate::shipped::is_shipped;
use crate::state::ServerState;
use crate::symbols::{Meaning, Occurrence};
use crate::workspace::containing;

/// The place of a name: its file and its first byte.
type NamePlace = (PathBuf, usize);

/// The names of a field.
pub struct FieldNames {
    /// The files with the names in them.
    pub found: Vec<(Rc<ParsedFile>, Occurrence)>,
    /// The programs that contain it.
    programs: Vec<PathBuf>,
}

/// All names of the field that a name of a file stands for; otherwise the reason why they are unknown.
pub fn names(state: &ServerState, file: &Rc<ParsedFile>, occurrence: &Occurrence) -> Result<FieldNames, String> {
    let name = &occurrence.name;
    let overlay = state.documents.overlay();
    let programs = programs(state, file, name);
    let mut same = SamePlaces::default();
    let mut files: BTreeMap<PathBuf, Rc<ParsedFile>> = BTreeMap::from([(file.path.clone(), Rc::clone(file))]);
    for root in &programs {
        let links = links(state, root, &overlay).map_err(|error| {
            format!("`{}` has errors, so the uses of the field `{name}` are unknown: {error}", shown(root))
        })?;
        links.iter().for_each(|(one, other)| same.join(one, other));
        let root = state.documents.file(root);
        for file in root.iter().flat_map(|root| resolve::program(&state.documents, root)) {
            files.entry(file.path.clone()).or_insert(file);
        }
    }
    let wanted = same.class(&(file.path.clone(), occurrence.range.start));
    if wanted.as_ref().is_some_and(|class| same.has_shipped(class)) {
        return Err(format!("the field `{name}` is also named in a file of the compiler"));
    }
    let (mut found, mut unknown) = (Vec::new(), None);
    for present in files.values().filter(|file| !is_shipped(&file.path)) {
        let of_name = present.symbols.occurrences.iter().filter(|other| other.name == *name && is_field(other));
        for other in of_name {
            let class = same.class(&(present.path.clone(), other.range.start));
            let is_it = present.path == file.path && other == occurrence;
            if class.is_some() && class == wanted || class.is_none() && is_it {
                found.push((Rc::clone(present), other.clone()));
            } else if class.is_none() && !is_of_type(other) {
                unknown = Some((Rc::clone(present), other.range.start));
            }
        }
    }
    if wanted.is_none() && !occurrence.is_definition {
        unknown = Some((Rc::clone(file), occurrence.range.start));
    }
    if let Some((file, start)) = unknown {
        let line = file.lines.line(start) + 1;
        return Err(format!(
            "the struct of `{name}` in line {line} of `{}` is unknown: nothing calls the function around it",
            shown(&file.path)
        ));
    }
    if let [(file, only)] = found.as_slice()
        && !only.is_definition
        && file.slice(0, only.range.start).trim_end().ends_with('.')
    {
        return Err(format!("`{name}` is an attribute of arrays"));
    }
    Ok(FieldNames { found, programs })
}

/// The first error of the programs with these texts, if there is one.
pub fn first_error(state: &ServerState, names: &FieldNames, texts: BTreeMap<PathBuf, String>) -> Option<String> {
    let overlay = state.documents.overlay().with(texts);
    names.programs.iter().find_map(|root| links(state, root, &overlay).err())
}

fn shown(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a name is that of a field in a type.
pub fn is_of_type(occurrence: &Occurrence) -> bool {
    occurrence.is_definition && occurrence.meaning == Meaning::Field
}

/// Whether a name stands for a field, perhaps among others.
fn is_field(occurrence: &Occurrence) -> bool {
    matches!(occurrence.meaning, Meaning::Field | Meaning::Method) || occurrence.is_shorthand
}

/// The programs that share files with a file: open ones, and those of the workspace that contain the name.
fn programs(state: &ServerState, file: &Rc<ParsedFile>, name: &str) -> Vec<PathBuf> {
    let open = state.documents.recent().cloned();
    let others = state.folders.iter().flat_map(|folder| containing(folder, name));
    let roots: BTreeSet<PathBuf> = open.chain(others).chain([file.path.clone()]).collect();
    let files = |root: &PathBuf| -> Option<(PathBuf, Vec<PathBuf>)> {
        let parsed = state.documents.file(root).filter(|parsed| !parsed.is_stablehlo())?;
        let files = resolve::program(&state.documents, &parsed).into_iter().map(|file| file.path.clone());
        Some((root.clone(), files.filter(|path| !is_shipped(path)).collect()))
    };
    let mut left: Vec<(PathBuf, Vec<PathBuf>)> = roots.iter().filter_map(files).collect();
    let mut known = BTreeSet::from([file.path.clone()]);
    let mut found = Vec::new();
    loop {
        let (near, far): (Vec<_>, Vec<_>) =
            left.into_iter().partition(|(_, files)| files.iter().any(|path| known.contains(path)));
        if near.is_empty() {
            return found;
        }
        for (root, files) in near {
            known.extend(files);
            found.push(root);
        }
        left = far;
    }
}

/// The pairs of places of a program that name the same field, or its first error.
fn links(state: &ServerState, root: &Path, overlay: &Overlay) -> Result<Vec<(NamePlace, NamePlace)>, String> {
    let text = match overlay.text(root) {
        Some(text) => text.to_string(),
        None => spmdc_driver::disk::read(root)?,
    };
    let (set, mut findings) = SourceSet::load(&root.to_string_lossy(), &text, overlay);
    let mut pairs = Vec::new();
    if findings.is_empty() {
        let (links, found) = checked_fields(&set, &state.settings.check);
        findings = found;
        if !has_main(&set) {
            findings.retain(|finding| !is_about_entry(finding));
        }
        let paths = paths(&set);
        let place = |span: Span| Some((paths.get(usize::from(span.file.0))?.clone(), span.start as usize));
        pairs.extend(links.pairs.into_iter().filter_map(|(one, other)| Some((place(one)?, place(other)?))));
    }
    match findings.into_iter().find(|finding| finding.severity == Severity::Error) {
        Some(error) => Err(error.message),
        None => Ok(pairs),
    }
}

/// Places in classes of the same field.
#[derive(Default)]
struct SamePlaces {
    /// The number of each place, and for each number another one of its class; its own if it stands for the class.
    numbers: BTreeMap<NamePlace, usize>,
    parents: Vec<usize>,
}

impl SamePlaces {
    fn number(&mut self, place: &NamePlace) -> usize {
        if let Some(&number) = self.numbers.get(place) {
            return number;
        }
        let number = self.parents.len();
        self.parents.push(number);
        self.numbers.insert(place.clone(), number);
        number
    }

    fn root(&self, mut number: usize) -> usize {
        while self.parents[number] != number {
            number = self.parents[number];
        }
        number
    }

    fn join(&mut self, one: &NamePlace, other: &NamePlace) {
        let (one, other) = (self.number(one), self.number(other));
        let (one, other) = (self.root(one), self.root(other));
        self.parents[one.max(other)] = one.min(other);
    }

    /// The class of a place; None if the checker did not come to it.
    fn class(&self, place: &NamePlace) -> Option<usize> {
        self.numbers.get(place).map(|&number| self.root(number))
    }

    /// Whether a class has a place in a file of the compiler.
    fn has_shipped(&self, class: &usize) -> bool {
        self.numbers.iter().any(|((path, _), &number)| is_shipped(path) && self.root(number) == *class)
    }
}
