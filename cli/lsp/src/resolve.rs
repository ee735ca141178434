//! The meaning of names over all files of a program.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use spmdc_functions::{Function, builtin};
use spmdc_grammar::ast::{FnItem, ItemKind, ItemNode, MeshKind};

use crate::documents::{Documents, ParsedFile};
use crate::symbols::{Meaning, Occurrence};

/// Maximum number of imports that are followed from a file to another.
const MAX_DEPTH: usize = 8;

/// The thing that a name denotes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// A variable or parameter of a file, by the offset at which it is bound.
    Local(PathBuf, usize),
    /// A function, constant or type of a file.
    Item(PathBuf, String),
    /// The name of an import in a file.
    Module(PathBuf, String),
    /// An axis.
    Axis(String),
    /// A mesh.
    Mesh(String),
    /// A field of structs, by its name; the checker knows which fields are the same.
    Field(String),
    /// A function of the compiler.
    Shipped(String),
    /// A parameter of a function of the compiler.
    ShippedParam(String, String),
}

/// The item of this name in a file, without the items that it imports.
pub fn item<'f>(file: &'f ParsedFile, name: &str) -> Option<&'f ItemNode> {
    file.tree.items.iter().find(|item| item_name(item).is_some_and(|ident| ident.name == name))
}

/// The name of a constant, type, function or import.
pub fn item_name(item: &ItemNode) -> Option<&spmdc_grammar::ast::Ident> {
    match &item.kind {
        ItemKind::Const { name, .. } | ItemKind::Type { name, .. } => Some(name),
        ItemKind::Fn(function) => Some(&function.name),
        ItemKind::Import { alias, .. } => alias.as_ref(),
        ItemKind::Mesh(_) | ItemKind::Test(_) => None,
    }
}

/// The function of this name in a file.
pub fn function<'f>(file: &'f ParsedFile, name: &str) -> Option<&'f FnItem> {
    item(file, name).and_then(|item| if let ItemKind::Fn(function) = &item.kind { Some(function) } else { None })
}

/// The file that an import with this name refers to.
pub fn module(documents: &Documents, file: &ParsedFile, alias: &str) -> Option<Rc<ParsedFile>> {
    match &item(file, alias)?.kind {
        ItemKind::Import { path, .. } => documents.file(&file.imported(path)),
        ItemKind::Mesh(_) | ItemKind::Const { .. } | ItemKind::Type { .. } | ItemKind::Fn(_) | ItemKind::Test(_) => {
            None
        }
    }
}

/// The files whose names a file sees without a dot, without the file itself.
pub fn unqualified(documents: &Documents, file: &ParsedFile) -> Vec<Rc<ParsedFile>> {
    let path = |item: &ItemNode| match &item.kind {
        ItemKind::Import { path, alias: None, .. } => documents.file(&file.imported(path)),
        ItemKind::Import { .. }
        | ItemKind::Mesh(_)
        | ItemKind::Const { .. }
        | ItemKind::Type { .. }
        | ItemKind::Fn(_)
        | ItemKind::Test(_) => None,
    };
    file.tree.items.iter().filter_map(path).collect()
}

/// A file and all files that it imports.
pub fn program(documents: &Documents, file: &Rc<ParsedFile>) -> Vec<Rc<ParsedFile>> {
    let mut files = vec![Rc::clone(file)];
    let mut from = 0;
    for _ in 0..MAX_DEPTH {
        let to = files.len();
        for at in from..to {
            let paths: Vec<PathBuf> = imports(&files[at]).collect();
            for path in paths {
                if files.iter().all(|known| known.path != path) {
                    files.extend(documents.file(&path));
                }
            }
        }
        from = to;
    }
    files
}

/// The paths of the imports of a file.
pub fn imports(file: &ParsedFile) -> impl Iterator<Item = PathBuf> {
    file.tree.items.iter().filter_map(|item| match &item.kind {
        ItemKind::Import { path, .. } => Some(file.imported(path)),
        ItemKind::Mesh(_) | ItemKind::Const { .. } | ItemKind::Type { .. } | ItemKind::Fn(_) | ItemKind::Test(_) => {
            None
        }
    })
}

/// The thing that a name of a file denotes; None for an unknown name.
pub fn identity(documents: &Documents, file: &Rc<ParsedFile>, occurrence: &Occurrence) -> Option<Identity> {
    let name = &occurrence.name;
    match &occurrence.meaning {
        Meaning::Local(start) => Some(Identity::Local(file.path.clone(), *start)),
        Meaning::Global { module: Some(alias) } => {
            let imported = module(documents, file, alias)?;
            let defining = defining(documents, &imported, name)?;
            Some(Identity::Item(defining.path.clone(), name.clone()))
        }
        Meaning::Global { module: None } => global(documents, file, name),
        Meaning::Method => match global(documents, file, name) {
            Some(found @ (Identity::Item(..) | Identity::Shipped(_))) => Some(found),
            Some(_) | None => Some(Identity::Field(name.clone())),
        },
        Meaning::Field => Some(Identity::Field(name.clone())),
        Meaning::Keyword { callee } => {
            let callee = file.symbols.occurrences.get((*callee)?)?;
            match identity(documents, file, callee)? {
                Identity::Item(path, function_name) => {
                    let defining = documents.file(&path)?;
                    let parameter = function(&defining, &function_name)?.params.iter().find(|param| {
                        let span = param.pattern.span;
                        defining.slice(span.start as usize, span.end as usize) == name
                    })?;
                    Some(Identity::Local(path, parameter.pattern.span.start as usize))
                }
                Identity::Shipped(function) => Some(Identity::ShippedParam(function, name.clone())),
                Identity::Local(..)
                | Identity::Module(..)
                | Identity::Axis(_)
                | Identity::Mesh(_)
                | Identity::Field(_)
                | Identity::ShippedParam(..) => None,
            }
        }
        Meaning::Axis => Some(Identity::Axis(name.clone())),
        Meaning::Mesh => Some(Identity::Mesh(name.clone())),
    }
}

/// The file among a file and its unqualified imports that defines a name.
fn defining(documents: &Documents, file: &Rc<ParsedFile>, name: &str) -> Option<Rc<ParsedFile>> {
    if item(file, name).is_some() {
        return Some(Rc::clone(file));
    }
    unqualified(documents, file).into_iter().find(|imported| item(imported, name).is_some())
}

fn global(documents: &Documents, file: &Rc<ParsedFile>, name: &str) -> Option<Identity> {
    if let Some(defining) = defining(documents, file, name) {
        let is_module = item(&defining, name).is_some_and(|item| matches!(item.kind, ItemKind::Import { .. }));
        let path = defining.path.clone();
        return Some(if is_module {
            Identity::Module(path, name.to_string())
        } else {
            Identity::Item(path, name.to_string())
        });
    }
    if axis(documents, file, name).is_some() {
        return Some(Identity::Axis(name.to_string()));
    }
    if mesh(documents, file, name).is_some() {
        return Some(Identity::Mesh(name.to_string()));
    }
    builtin(name).map(|_| Identity::Shipped(name.to_string()))
}

/// The shipped function of this name, if programs may call it.
pub fn shipped(name: &str) -> Option<Function> {
    builtin(name).filter(|function| function.instead().is_none())
}

/// The file that declares an axis, and the place of its name.
pub fn axis(documents: &Documents, file: &Rc<ParsedFile>, name: &str) -> Option<(PathBuf, Range<usize>)> {
    find(documents, file, &|item| {
        let ItemKind::Mesh(mesh) = &item.kind else { return None };
        let MeshKind::Axes { axes, .. } = &mesh.kind else { return None };
        let span = axes.iter().find(|axis| axis.name.name == name)?.name.span;
        Some(span.start as usize..span.end as usize)
    })
}

/// The file that declares a mesh, and the place of its name.
pub fn mesh(documents: &Documents, file: &Rc<ParsedFile>, name: &str) -> Option<(PathBuf, Range<usize>)> {
    find(documents, file, &|item| {
        let ItemKind::Mesh(mesh) = &item.kind else { return None };
        let span = mesh.name.as_ref().filter(|known| known.name == name)?.span;
        Some(span.start as usize..span.end as usize)
    })
}

/// The first place in a program; then in the open programs that import the file.
fn find(
    documents: &Documents,
    file: &Rc<ParsedFile>,
    place: &dyn Fn(&ItemNode) -> Option<Range<usize>>,
) -> Option<(PathBuf, Range<usize>)> {
    let in_files = |files: &[Rc<ParsedFile>]| {
        files.iter().find_map(|file| Some((file.path.clone(), file.tree.items.iter().find_map(place)?)))
    };
    let importers = || {
        let programs = documents.recent().filter_map(|path| documents.file(path)).map(|root| program(documents, &root));
        programs.filter(|files| files.iter().any(|known| known.path == file.path)).find_map(|files| in_files(&files))
    };
    in_files(&program(documents, file)).or_else(importers)
}

/// The place where a thing is defined.
pub fn definition(
    documents: &Documents,
    file: &Rc<ParsedFile>,
    identity: &Identity,
) -> Option<(PathBuf, Range<usize>)> {
    let named = |path: &Path, name: &str| {
        let defining = documents.file(path)?;
        let span = item_name(item(&defining, name)?)?.span;
        Some((path.to_path_buf(), span.start as usize..span.end as usize))
    };
    match identity {
        Identity::Local(path, start) => {
            let defining = if *path == file.path { Rc::clone(file) } else { documents.file(path)? };
            let range = defining.symbols.at(*start)?.range.clone();
            Some((path.clone(), range))
        }
        Identity::Item(path, name) => named(path, name),
        Identity::Module(path, alias) => {
            let importing = documents.file(path)?;
            Some((module(documents, &importing, alias)?.path.clone(), 0..0))
        }
        Identity::Axis(name) => axis(documents, file, name),
        Identity::Mesh(name) => mesh(documents, file, name),
        Identity::Field(name) => {
            let files = program(documents, file);
            files.iter().find_map(|file| {
                let is_field = |occurrence: &&Occurrence| {
                    occurrence.is_definition && occurrence.meaning == Meaning::Field && occurrence.name == *name
                };
                Some((file.path.clone(), file.symbols.occurrences.iter().find(is_field)?.range.clone()))
            })
        }
        Identity::Shipped(name) | Identity::ShippedParam(name, _) => crate::shipped::definition(name),
    }
}
