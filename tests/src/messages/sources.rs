//! The parsed sources: functions and constants by name.

use crate::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use syn::visit::{self, Visit};

/// A function or a method with its body.
pub struct Function<'a> {
    /// The number of its file.
    pub file: usize,
    /// Its name.
    pub name: String,
    /// Its parameters without `self`; an empty name for a pattern.
    pub parameters: Vec<String>,
    /// Whether it takes `self`.
    pub is_method: bool,
    /// Its body.
    pub body: &'a syn::Block,
    /// Whether it returns text, and can so be a part of a message.
    pub is_text: bool,
}

/// A parsed file, with its path from the root.
pub struct Source {
    /// Such as `grammar/src/lexer.rs`.
    pub path: String,
    file: syn::File,
}

impl Source {
    /// The syntax tree.
    pub fn file(&self) -> &syn::File {
        &self.file
    }
}

/// The definitions of the sources.
#[derive(Default)]
pub struct Index<'a> {
    /// Every function, in the order of files and lines.
    pub functions: Vec<Function<'a>>,
    /// The functions of each name.
    by_name: BTreeMap<String, Vec<usize>>,
    /// The constants of each name.
    pub constants: BTreeMap<String, &'a syn::Expr>,
}

/// A call, as far as names tell what it calls.
#[derive(Clone, Copy)]
pub struct Called<'n> {
    /// The last name of the path.
    pub name: &'n str,
    /// The number of its arguments, without the receiver.
    pub arguments: usize,
    /// Whether it is a call of a method.
    pub is_method: bool,
}

/// The file of the forms of messages.
const SENTENCES: &str = "grammar/src/sentences.rs";

/// Where messages are made.
const FOLDERS: [&str; 4] = ["cli", "compiler", "grammar", "runtime"];

/// Every source of the compiler, the runtime and the command, without tests.
pub fn sources() -> Result<Vec<Source>, String> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        collect(&root().join(folder), "rs", &mut paths)?;
    }
    paths.sort();
    let parsed = paths.into_iter().map(|path| {
        let text = fs::read_to_string(root().join(&path)).map_err(|error| format!("{path}: {error}"))?;
        let file = syn::parse_file(&text).map_err(|error| format!("{path}: {error}"))?;
        Ok(Source { path, file })
    });
    parsed.collect()
}

/// The files of functions that are written in the language: their paths and texts.
pub fn prelude() -> Result<Vec<(String, String)>, String> {
    let mut paths = Vec::new();
    for folder in FOLDERS {
        collect(&root().join(folder), "spmd", &mut paths)?;
    }
    paths.retain(|path| path.contains("/prelude/"));
    paths.sort();
    let read = |path: String| {
        let text = fs::read_to_string(root().join(&path)).map_err(|error| format!("{path}: {error}"))?;
        Ok((path, text))
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, kind: &str, paths: &mut Vec<String>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().unwrap_or_default();
        if path.is_dir() && !["tests", "benches", "target"].iter().any(|skipped| name == *skipped) {
            collect(&path, kind, paths)?;
        } else if path.extension().is_some_and(|extension| extension == kind)
            && name != "tests.rs"
            && name != "build.rs"
        {
            let path = path.strip_prefix(root()).expect("the folder is below the root");
            paths.push(path.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// The functions and constants of the sources.
pub fn index(sources: &[Source]) -> Index<'_> {
    let mut index = Index::default();
    for (number, source) in sources.iter().enumerate() {
        Collector { index: &mut index, file: number }.visit_file(&source.file);
    }
    for (number, function) in index.functions.iter().enumerate() {
        index.by_name.entry(function.name.clone()).or_default().push(number);
    }
    index
}

impl Index<'_> {
    /// The form of messages that a call means. A file that imports a form defines no function of its name; others of the crate may.
    pub fn form(&self, name: &str, arguments: usize, file: usize, sources: &[Source]) -> Option<usize> {
        let of_name = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let fits = |number: &&usize| {
            let function = &self.functions[**number];
            !function.is_method && function.parameters.len() == arguments
        };
        if of_name.iter().filter(fits).any(|number| self.functions[*number].file == file) {
            return None;
        }
        of_name.iter().filter(fits).copied().find(|number| sources[self.functions[*number].file].path == SENTENCES)
    }

    /// The functions that a call from a file may mean: of this file, else of its crate, else of any. Some methods of the standard library have
    /// the names of methods of ours, which are therefore not looked for in other crates, nor is `expect` in other files.
    pub fn called(&self, call: Called<'_>, file: usize, sources: &[Source]) -> Vec<usize> {
        let Called { name, arguments, is_method } = call;
        let all = self.by_name.get(name).map_or(&[][..], Vec::as_slice);
        let fits = |number: &usize| {
            let function = &self.functions[*number];
            function.parameters.len() == arguments && function.is_method == is_method
        };
        let folder = |file: usize| sources[file].path.split("/src/").next();
        let near = |is_near: &dyn Fn(usize) -> bool| -> Vec<usize> {
            all.iter().copied().filter(|number| fits(number) && is_near(self.functions[*number].file)).collect()
        };
        let own = near(&|other| other == file);
        if !own.is_empty() {
            return own;
        }
        let of_crate = near(&|other| folder(other) == folder(file));
        if !of_crate.is_empty() || name == "expect" {
            return if name == "expect" { Vec::new() } else { of_crate };
        }
        if is_method { Vec::new() } else { near(&|_| true) }
    }
}

struct Collector<'i, 'a> {
    index: &'i mut Index<'a>,
    file: usize,
}

impl<'a> Collector<'_, 'a> {
    fn add(&mut self, signature: &'a syn::Signature, body: &'a syn::Block) {
        let parameters = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Receiver(_) => None,
            syn::FnArg::Typed(typed) => Some(match &*typed.pat {
                syn::Pat::Ident(name) => name.ident.to_string(),
                _ => String::new(),
            }),
        });
        self.index.functions.push(Function {
            file: self.file,
            name: signature.ident.to_string(),
            parameters: parameters.collect(),
            is_method: matches!(signature.inputs.first(), Some(syn::FnArg::Receiver(_))),
            body,
            is_text: matches!(&signature.output, syn::ReturnType::Type(_, kind) if is_text(kind)),
        });
    }
}

/// Whether a type is text, or an option of text.
fn is_text(kind: &syn::Type) -> bool {
    match kind {
        syn::Type::Reference(reference) => is_text(&reference.elem),
        syn::Type::Path(path) => path.path.segments.last().is_some_and(|last| match &last.arguments {
            syn::PathArguments::AngleBracketed(arguments) if last.ident == "Option" => arguments
                .args
                .iter()
                .any(|argument| matches!(argument, syn::GenericArgument::Type(kind) if is_text(kind))),
            _ => ["String", "str", "Cow"].iter().any(|name| last.ident == name),
        }),
        _ => false,
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

impl<'a> Visit<'a> for Collector<'_, 'a> {
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.add(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.add(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_const(&mut self, item: &'a syn::ItemConst) {
        self.index.constants.insert(item.ident.to_string(), &item.expr);
        visit::visit_item_const(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        self.index.constants.insert(item.ident.to_string(), &item.expr);
    }
}
