//! Completions.

use std::collections::BTreeSet;
use std::path::Path;
use std::rc::Rc;

use lsp_types::{CompletionItem, CompletionItemKind, Documentation, InsertTextFormat};
use spmdc_check::sources::shipped_files;
use spmdc_compiler::report::functions::functions;
use spmdc_functions::Function;
use spmdc_grammar::ast::{DTypeName, FnItem, ItemKind, ItemNode, MeshKind, TypeExpr, TypeExprKind};
use spmdc_grammar::classify::KEYWORDS;
use spmdc_ir::call::signature::{Given, ParamKind, Signature};

use crate::cursor::{OpenCall, TokenCursor};
use crate::documents::ParsedFile;
use crate::hints::types;
use crate::positions::TextShift;
use crate::resolve;
use crate::state::ServerState;
use crate::symbols::{BindingKind, LocalBinding};
use crate::values::{NamedValue, Seen};

/// Properties of every array.
const PROPERTIES: [(&str, &str); 5] = [
    ("shape", "the sizes of the dimensions"),
    ("dtype", "the element type"),
    ("ndim", "the number of dimensions"),
    ("size", "the number of elements"),
    ("T", "the transpose"),
];

/// The ranks of completions: nearer names come first.
#[derive(Clone, Copy)]
enum Rank {
    Keyword,
    Local,
    Item,
    Axis,
    Shipped,
    Word,
}

/// The completions at an offset.
pub fn completions(state: &ServerState, file: &Rc<ParsedFile>, offset: usize) -> Vec<CompletionItem> {
    let cursor = TokenCursor::new(&file.text, offset);
    if cursor.is_comment {
        return Vec::new();
    }
    let mut list = CompletionItems { state, file, items: Vec::new(), known: BTreeSet::new() };
    if let Some(start) = cursor.string {
        let is_import = cursor.back(0).is_some_and(|(_, text)| text == "import")
            || cursor.back(1).is_some_and(|(_, text)| text == "import");
        if is_import {
            list.paths(file.slice(start + 1, offset));
        }
        return list.items;
    }
    // A new name.
    if cursor.back(0).is_some_and(|(_, text)| matches!(text, "let" | "mut" | "fn" | "const" | "type" | "as" | "for")) {
        return Vec::new();
    }
    if let Some(receiver) = cursor.receiver() {
        list.members(receiver, offset);
        return list.items;
    }
    if cursor.takes_axes() {
        list.axes();
        if cursor.open_bracket().and_then(|open| cursor.back(open)).is_some_and(|(_, bracket)| bracket == "P(") {
            ["unreduced=", "reduced="].iter().for_each(|word| list.word(word, CompletionItemKind::KEYWORD));
        }
        return list.items;
    }
    if let Some(call) = cursor.call().filter(|call| call.is_start) {
        list.keywords_of(&call);
    }
    list.locals(offset);
    list.items_of(file, false);
    resolve::unqualified(&state.documents, file).iter().for_each(|imported| list.items_of(imported, false));
    list.axes();
    functions().iter().for_each(|function| list.shipped(function, false));
    DTypeName::ALL.iter().for_each(|(_, name)| list.word(name, CompletionItemKind::STRUCT));
    KEYWORDS.iter().for_each(|word| list.word(word, CompletionItemKind::KEYWORD));
    list.items
}

struct CompletionItems<'a> {
    state: &'a ServerState,
    file: &'a Rc<ParsedFile>,
    items: Vec<CompletionItem>,
    known: BTreeSet<String>,
}

impl CompletionItems<'_> {
    /// Adds a completion unless a nearer one has the name.
    fn add(&mut self, rank: Rank, item: CompletionItem) {
        if self.known.insert(item.label.clone()) {
            let sort_text = Some(format!("{}{}", rank as u8, item.label));
            self.items.push(CompletionItem { sort_text, ..item });
        }
    }

    fn word(&mut self, word: &str, kind: CompletionItemKind) {
        self.add(Rank::Word, CompletionItem { label: word.to_string(), kind: Some(kind), ..CompletionItem::default() });
    }

    /// A function; a client with placeholders puts the cursor between its parentheses.
    fn function(&mut self, rank: Rank, name: &str, detail: String, doc: String) {
        let has_snippets = self.state.client.has_snippets;
        let item = CompletionItem {
            label: name.to_string(),
            kind: Some(CompletionItemKind::FUNCTION),
            detail: Some(detail),
            documentation: (!doc.is_empty()).then_some(Documentation::String(doc)),
            insert_text: has_snippets.then(|| format!("{name}($0)")),
            insert_text_format: has_snippets.then_some(InsertTextFormat::SNIPPET),
            ..CompletionItem::default()
        };
        self.add(rank, item);
    }

    fn shipped(&mut self, function: &Function, only_methods: bool) {
        let signature = function.signature();
        let takes_array = |signature: &Signature| {
            signature.params.first().is_some_and(|param| {
                param.given == Given::Either && matches!(param.kind, ParamKind::Array | ParamKind::Of(_))
            })
        };
        if !only_methods || takes_array(signature) {
            self.function(Rank::Shipped, function.name, signature.to_string(), signature.line().to_string());
        }
    }

    fn locals(&mut self, offset: usize) {
        let seen = Seen::all(self.state, self.file);
        let values: Vec<(std::ops::Range<usize>, NamedValue<'_>)> = seen.iter().flat_map(Seen::named).collect();
        for (binding, place) in visible(self.state, self.file, offset) {
            let is_it = |(range, value): &&(std::ops::Range<usize>, NamedValue<'_>)| {
                Some(range.start) == place && value.name.split('.').next() == Some(binding.name.as_str())
            };
            let own = values.iter().filter(is_it).map(|(_, value)| value);
            let own: Vec<NamedValue<'_>> = own.map(|value| NamedValue { name: value.name.clone(), ..*value }).collect();
            let kind = match binding.kind {
                BindingKind::Param | BindingKind::Variable => CompletionItemKind::VARIABLE,
                BindingKind::SizeParam => CompletionItemKind::TYPE_PARAMETER,
            };
            let detail = (!own.is_empty()).then(|| types(&own));
            let item =
                CompletionItem { label: binding.name.clone(), kind: Some(kind), detail, ..CompletionItem::default() };
            self.add(Rank::Local, item);
        }
    }

    /// The items of a file; of an imported one without its imports.
    fn items_of(&mut self, file: &ParsedFile, is_imported: bool) {
        for item in &file.tree.items {
            let label = match resolve::item_name(item) {
                Some(name) => name.name.clone(),
                None => continue,
            };
            match &item.kind {
                ItemKind::Fn(function) => {
                    self.function(Rank::Item, &label, head(file, item, function), item.doc.join("\n"))
                }
                ItemKind::Import { .. } if is_imported => {}
                // A test has no name that a program could use.
                ItemKind::Test(_) => {}
                ItemKind::Const { .. } | ItemKind::Type { .. } | ItemKind::Import { .. } | ItemKind::Mesh(_) => {
                    let detail = file.slice(item.span.start as usize, item.span.end as usize).lines().next();
                    let completion = CompletionItem {
                        label,
                        kind: Some(kind(item)),
                        detail: detail.map(str::to_string),
                        ..CompletionItem::default()
                    };
                    self.add(Rank::Item, completion);
                }
            }
        }
    }

    fn axes(&mut self) {
        let mut files = resolve::program(&self.state.documents, self.file);
        files.extend(self.state.documents.recent().filter_map(|path| self.state.documents.file(path)));
        for file in files {
            for item in &file.tree.items {
                let ItemKind::Mesh(mesh) = &item.kind else { continue };
                let line = file.slice(item.span.start as usize, item.span.end as usize).to_string();
                let item = |label: &str, kind| CompletionItem {
                    label: label.to_string(),
                    kind: Some(kind),
                    detail: Some(line.clone()),
                    ..CompletionItem::default()
                };
                if let Some(name) = &mesh.name {
                    self.add(Rank::Axis, item(&name.name, CompletionItemKind::ENUM));
                }
                if let MeshKind::Axes { axes, .. } = &mesh.kind {
                    axes.iter()
                        .for_each(|axis| self.add(Rank::Axis, item(&axis.name.name, CompletionItemKind::ENUM_MEMBER)));
                }
            }
        }
    }

    /// The names after a dot.
    fn members(&mut self, receiver: &str, offset: usize) {
        let is_local = visible(self.state, self.file, offset).iter().any(|(binding, _)| binding.name == receiver);
        let module = (!is_local).then(|| resolve::module(&self.state.documents, self.file, receiver)).flatten();
        if let Some(module) = module {
            self.items_of(&module, true);
            return;
        }
        let field = |label: &str, detail: &str| CompletionItem {
            label: label.to_string(),
            kind: Some(CompletionItemKind::FIELD),
            detail: Some(detail.to_string()),
            ..CompletionItem::default()
        };
        for seen in Seen::all(self.state, self.file) {
            for (_, value) in seen.named() {
                let parts: Vec<&str> = value.name.split('.').collect();
                if let [base, name, ..] = parts.as_slice()
                    && *base == receiver
                    && name.chars().all(|c| c.is_alphanumeric() || c == '_')
                {
                    self.add(Rank::Local, field(name, &value.shown()));
                }
            }
        }
        for file in resolve::program(&self.state.documents, self.file) {
            for item in &file.tree.items {
                if let ItemKind::Type { ty, name, .. } = &item.kind {
                    for label in fields(ty) {
                        self.add(Rank::Item, field(label, &format!("field of {}", name.name)));
                    }
                }
            }
        }
        PROPERTIES.iter().for_each(|(name, doc)| self.add(Rank::Axis, field(name, doc)));
        for item in &self.file.tree.items {
            if let ItemKind::Fn(function) = &item.kind
                && !function.params.is_empty()
            {
                let name = function.name.name.clone();
                self.function(Rank::Item, &name, head(self.file, item, function), item.doc.join("\n"));
            }
        }
        functions().iter().for_each(|function| self.shipped(function, true));
    }

    /// The keywords of the arguments of a call.
    fn keywords_of(&mut self, call: &OpenCall) {
        let keyword = |name: &str, detail: String| CompletionItem {
            label: format!("{name}="),
            kind: Some(CompletionItemKind::PROPERTY),
            detail: Some(detail),
            ..CompletionItem::default()
        };
        match callee(self.state, self.file, call) {
            Some(Callee::Item(file, name)) => {
                let Some(function) = resolve::function(&file, &name) else { return };
                for param in &function.params {
                    let span = param.pattern.span;
                    let name = file.slice(span.start as usize, span.end as usize);
                    let text = file.slice(param.span.start as usize, param.span.end as usize);
                    self.add(Rank::Keyword, keyword(name, text.to_string()));
                }
            }
            Some(Callee::Shipped(function)) => {
                for param in function.signature().params {
                    match param.given {
                        Given::Either | Given::Named => {
                            let default = param.default.map_or_else(String::new, |default| format!(" = {default}"));
                            let text = format!("{}: {}{default}", param.name, param.kind);
                            self.add(Rank::Keyword, keyword(param.name, text));
                        }
                        Given::Rest | Given::InDumps(_) => {}
                    }
                }
            }
            None => {}
        }
    }

    /// The files that an import can name: the files of the compiler, and those below the folder of this file.
    fn paths(&mut self, typed: &str) {
        let file = |label: &str| CompletionItem {
            label: label.to_string(),
            kind: Some(CompletionItemKind::FILE),
            ..CompletionItem::default()
        };
        shipped_files().for_each(|(name, _)| self.add(Rank::Shipped, file(name)));
        let folder = self.file.path.parent().unwrap_or(Path::new("/"));
        let within = typed.rsplit_once('/').map_or("", |(within, _)| within);
        let Ok(entries) = std::fs::read_dir(folder.join(within)) else { return };
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        for name in names.iter().filter(|name| name.ends_with(".spmd")) {
            let label = if within.is_empty() { name.clone() } else { format!("{within}/{name}") };
            if folder.join(&label) != self.file.path {
                self.add(Rank::Local, file(&label));
            }
        }
    }
}

/// The function that a call names.
pub enum Callee {
    /// A function of a file.
    Item(Rc<ParsedFile>, String),
    /// A function of the compiler.
    Shipped(Function),
}

/// Finds the function that a call names.
pub fn callee(state: &ServerState, file: &Rc<ParsedFile>, call: &OpenCall) -> Option<Callee> {
    let module = call.base.as_ref().and_then(|base| resolve::module(&state.documents, file, base));
    let own = || std::iter::once(Rc::clone(file)).chain(resolve::unqualified(&state.documents, file));
    let files: Vec<Rc<ParsedFile>> = match module {
        Some(module) => vec![module],
        None => own().collect(),
    };
    let found = files.into_iter().find(|file| resolve::function(file, &call.name).is_some());
    match found {
        Some(file) => Some(Callee::Item(file, call.name.clone())),
        None => resolve::shipped(&call.name).map(Callee::Shipped),
    }
}

/// The bindings that are visible at an offset, each with the place of its name in the present text. Inside an item that cannot be parsed,
/// they are those of the last text without errors.
fn visible(state: &ServerState, file: &ParsedFile, offset: usize) -> Vec<(LocalBinding, Option<usize>)> {
    let here: Vec<(LocalBinding, Option<usize>)> =
        file.symbols.visible(offset).map(|binding| (binding.clone(), Some(binding.range.start))).collect();
    let is_inside = |item: &ItemNode| (item.span.start as usize..=item.span.end as usize).contains(&offset);
    if !here.is_empty() || file.tree.items.iter().any(is_inside) {
        return here;
    }
    let Some(good) = state.documents.good(&file.path) else { return here };
    let shift = TextShift::between(&good.text, &file.text);
    let old = shift.to_old(offset).unwrap_or_else(|| shift.start());
    good.symbols.visible(old).map(|binding| (binding.clone(), shift.to_new(binding.range.start))).collect()
}

/// The head of a function on one line.
pub fn head(file: &ParsedFile, item: &ItemNode, function: &FnItem) -> String {
    let text = file.slice(item.span.start as usize, function.body.span.start as usize);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn kind(item: &ItemNode) -> CompletionItemKind {
    match item.kind {
        ItemKind::Mesh(_) => CompletionItemKind::ENUM,
        ItemKind::Const { .. } => CompletionItemKind::CONSTANT,
        ItemKind::Type { .. } => CompletionItemKind::STRUCT,
        ItemKind::Import { .. } => CompletionItemKind::MODULE,
        ItemKind::Fn(_) | ItemKind::Test(_) => CompletionItemKind::FUNCTION,
    }
}

fn fields(ty: &TypeExpr) -> Vec<&str> {
    match &ty.kind {
        TypeExprKind::Struct(fields) => fields.iter().map(|(name, _)| name.name.as_str()).collect(),
        TypeExprKind::On { ty, .. } | TypeExprKind::Stream(ty) => fields(ty),
        TypeExprKind::Array { .. } | TypeExprKind::Tuple(_) | TypeExprKind::Named { .. } => Vec::new(),
    }
}
