//! Hovers: the type and the layout of a value, a function with its rule, and the cause of a collective.

use std::fmt::Write as _;

use lsp_types::{Hover, HoverContents, MarkupContent, MarkupKind};
use spmdc_abi::words::bytes;
use spmdc_compiler::report::why;
use spmdc_grammar::ast::{ItemKind, ItemNode};
use spmdc_grammar::span::Span;
use spmdc_ir::program::{Stage, Value};
use spmdc_layout::draw::{Style, draw};

use crate::documents::ParsedFile;
use crate::hints::{described, types};
use crate::resolve::{self, Identity};
use crate::state::{NameView, ServerState};
use crate::symbols::{BindingKind, Meaning, Occurrence};
use crate::values::{NamedValue, Seen};

/// The columns of drawings.
const WIDTH: usize = 80;

/// Maximum number of devices of a drawing.
const MAX_DRAWN: usize = 64;

/// Maximum number of steps of the explanation of a layout.
const MAX_STEPS: usize = 6;

/// Maximum number of types of an expression, which has one for each expansion of its function.
const MAX_TYPES: usize = 3;

/// Maximum number of parts of a variable that are described, and of collectives of a line.
const MAX_PARTS: usize = 6;

/// The hover at a position.
pub fn hover(state: &ServerState, view: &NameView) -> Option<Hover> {
    let mut parts: Vec<String> = Vec::new();
    let occurrence = view.occurrence();
    if let Some(occurrence) = occurrence {
        parts.extend(of_name(state, view, occurrence));
    }
    if let Some(range) = view.present(&(view.offset..view.offset)) {
        let present = state.documents.file(&view.file.path)?;
        if parts.is_empty() {
            parts.extend(of_expression(state, &present, range.start));
        }
        let is_variable = |name: &Occurrence| {
            let binding = view.file.symbols.binding(name.range.start);
            binding.is_some_and(|binding| binding.kind == BindingKind::Variable)
        };
        match occurrence {
            Some(name) if name.is_definition && is_variable(name) => {
                parts.extend(of_collectives(state, &present, range.start, true));
            }
            // Arguments and parameters do not communicate; calls and operators do.
            Some(
                Occurrence { is_definition: true, .. } | Occurrence { meaning: Meaning::Local(_) | Meaning::Field, .. },
            ) => {}
            Some(_) | None => parts.extend(of_collectives(state, &present, range.start, false)),
        }
    }
    if parts.is_empty() {
        return None;
    }
    let present = state.documents.file(&view.file.path)?;
    let range = occurrence.and_then(|occurrence| view.present(&occurrence.range));
    Some(Hover {
        contents: HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value: parts.join("\n\n---\n\n") }),
        range: range.map(|range| present.lines.positions(&present.text, range)),
    })
}

fn code(text: &str) -> String {
    format!("```spmd\n{}\n```", text.trim_end())
}

fn of_name(state: &ServerState, view: &NameView, occurrence: &Occurrence) -> Option<String> {
    match resolve::identity(&state.documents, &view.file, occurrence)? {
        Identity::Local(path, start) => of_local(state, view, &path, start),
        Identity::Item(path, name) => {
            let file = state.documents.file(&path)?;
            Some(of_item(&file, resolve::item(&file, &name)?))
        }
        Identity::Module(path, alias) => {
            let importing = state.documents.file(&path)?;
            let module = resolve::module(&state.documents, &importing, &alias)?;
            let head: Vec<&str> = module.text.lines().map_while(|line| line.strip_prefix("//")).collect();
            let head: Vec<&str> = head.iter().map(|line| line.trim_start_matches(['!', '/']).trim()).collect();
            Some(format!(
                "{}\n\n{}",
                code(&format!("import \"{}\" as {alias}", module.path.display())),
                head.join("\n")
            ))
        }
        Identity::Axis(name) => {
            let (path, range) = resolve::axis(&state.documents, &view.file, &name)?;
            let file = state.documents.file(&path)?;
            let line = file.lines.range(&file.text, file.lines.line(range.start));
            Some(format!("{}\n\nAn axis of the mesh.", code(&file.text[line])))
        }
        Identity::Mesh(name) => {
            let (path, range) = resolve::mesh(&state.documents, &view.file, &name)?;
            let file = state.documents.file(&path)?;
            let line = file.lines.range(&file.text, file.lines.line(range.start));
            Some(code(&file.text[line]))
        }
        Identity::Field(name) => {
            if let Some(text) = of_field(state, &view.file, occurrence) {
                return Some(text);
            }
            let identity = Identity::Field(name.clone());
            let (path, range) = resolve::definition(&state.documents, &view.file, &identity)?;
            let file = state.documents.file(&path)?;
            let line = file.lines.range(&file.text, file.lines.line(range.start));
            Some(format!("{}\n\nA field.", code(file.text[line].trim())))
        }
        Identity::Shipped(name) => resolve::shipped(&name).map(|function| state.functions.of(&function).to_string()),
        Identity::ShippedParam(name, param) => {
            let function = resolve::shipped(&name)?;
            let found = function.signature().params.iter().find(|known| known.name == param)?;
            let default = found.default.map_or_else(String::new, |default| format!(" = {default}"));
            let head = code(&format!("{}: {}{default}", found.name, found.kind));
            Some(format!("{head}\n\nA parameter of `{name}`: {}", function.signature().line()))
        }
    }
}

/// The head of a function with its documentation; the whole text of other items.
fn of_item(file: &ParsedFile, item: &ItemNode) -> String {
    let end = match &item.kind {
        ItemKind::Fn(function) | ItemKind::Test(function) => function.body.span.start,
        ItemKind::Mesh(_) | ItemKind::Const { .. } | ItemKind::Type { .. } | ItemKind::Import { .. } => item.span.end,
    };
    let head = code(file.slice(item.span.start as usize, end as usize));
    if item.doc.is_empty() { head } else { format!("{head}\n\n{}", item.doc.join("\n")) }
}

fn of_local(state: &ServerState, view: &NameView, path: &std::path::Path, start: usize) -> Option<String> {
    let is_here = path == view.file.path;
    let file = if is_here { std::rc::Rc::clone(&view.file) } else { state.documents.file(path)? };
    let binding = file.symbols.binding(start)?;
    let kind = match binding.kind {
        BindingKind::Param => "parameter",
        BindingKind::SizeParam => "size",
        BindingKind::Variable => "let",
    };
    let present = if is_here { view.present(&binding.range)? } else { binding.range.clone() };
    let now = state.documents.file(path)?;
    for seen in Seen::all(state, &now) {
        let values: Vec<NamedValue<'_>> = seen
            .named()
            .into_iter()
            .filter(|(range, value)| {
                // The position of a parameter of the program is that of the whole parameter.
                let is_part = value.name.split('.').next() == Some(binding.name.as_str());
                range.start == present.start && (is_part || range.len() == present.len())
            })
            .map(|(_, value)| value)
            .collect();
        if values.is_empty() {
            continue;
        }
        let head = code(&format!("{kind} {}: {}", binding.name, types(&values)));
        return Some(described_values(head, values, &seen));
    }
    let line = file.lines.range(&file.text, file.lines.line(start));
    let owner = if binding.owner.is_empty() { String::new() } else { format!(" of `{}`", binding.owner) };
    let declared = match binding.kind {
        BindingKind::Variable => code(file.text[line].trim()),
        BindingKind::Param | BindingKind::SizeParam => code(&declaration(&file, start).unwrap_or(binding.name.clone())),
    };
    Some(format!("{declared}\n\nA {}{owner}.", if kind == "let" { "variable" } else { kind }))
}

/// A head, and the description of each different value.
fn described_values(head: String, mut values: Vec<NamedValue<'_>>, seen: &Seen) -> String {
    let mut known: Vec<(String, String)> = Vec::new();
    values.retain(|value| {
        let key = (value.name.clone(), value.shown());
        let is_new = !known.contains(&key);
        known.extend(is_new.then_some(key));
        is_new
    });
    let mut text = head;
    for value in values.iter().take(MAX_PARTS) {
        describe(value, values.len() == 1, seen, &mut text);
    }
    text
}

/// The type of the field of a variable: of `p.w` where `p` is a variable with parts.
fn of_field(state: &ServerState, file: &ParsedFile, occurrence: &Occurrence) -> Option<String> {
    let dot = occurrence.range.start.checked_sub(1)?;
    let base = file.symbols.at(dot).filter(|base| base.range.end == dot && file.slice(dot, dot + 1) == ".")?;
    let Meaning::Local(start) = base.meaning else { return None };
    for seen in Seen::all(state, file) {
        let values = seen.named().into_iter().filter(|(range, value)| {
            let mut path = value.name.split('.');
            range.start == start && path.next() == Some(&base.name) && path.next() == Some(&occurrence.name)
        });
        let values: Vec<NamedValue<'_>> = values.map(|(_, value)| value).collect();
        let name = format!("{}.{}", base.name, occurrence.name);
        let own: Vec<NamedValue<'_>> = values
            .iter()
            .map(|value| NamedValue { name: value.name.replacen(&name, &occurrence.name, 1), ..*value })
            .collect();
        if !values.is_empty() {
            return Some(described_values(code(&format!("{name}: {}", types(&own))), values, &seen));
        }
    }
    None
}

/// The text of the parameter that is bound at an offset.
fn declaration(file: &ParsedFile, start: usize) -> Option<String> {
    let mut params = file.tree.items.iter().flat_map(|item| match &item.kind {
        ItemKind::Fn(function) => function.params.as_slice(),
        ItemKind::Mesh(_)
        | ItemKind::Const { .. }
        | ItemKind::Type { .. }
        | ItemKind::Import { .. }
        | ItemKind::Test(_) => &[],
    });
    let span = params.find(|param| (param.span.start as usize..param.span.end as usize).contains(&start))?.span;
    Some(file.slice(span.start as usize, span.end as usize).to_string())
}

/// The block of a value, its drawing, and the sources of its axes.
fn describe(value: &NamedValue<'_>, is_whole: bool, seen: &Seen, text: &mut String) {
    let (ty, mesh) = (value.ty(), &value.module.mesh);
    if ty.array.is_stream {
        text.push_str("\n\nStays in its file.");
        return;
    }
    let devices = mesh.device_count();
    let block = ty.block_shape(mesh);
    let width = ty.dtype().size() as u64;
    let sizes: Vec<String> = block.iter().map(usize::to_string).collect();
    let of = |shape: &[usize]| bytes(width * shape.iter().map(|&size| size as u64).product::<u64>());
    let name = if is_whole { String::new() } else { format!("`{}`: ", value.name) };
    if devices > 1 && block != ty.shape() {
        let block_text = format!("{}[{}]", ty.dtype().name(), sizes.join(","));
        let _ =
            write!(text, "\n\n{name}{} in all, at most {} on a device: `{block_text}`.", of(ty.shape()), of(&block));
    } else {
        let _ = write!(text, "\n\n{name}{}{}.", of(ty.shape()), if devices > 1 { " on each device" } else { "" });
    }
    if !is_whole || devices == 1 {
        return;
    }
    if devices <= MAX_DRAWN && !ty.shape().is_empty() {
        let _ = write!(text, "\n\n```text\n{}```", draw(&ty, mesh, Style::Unicode, WIDTH));
    }
    let is_it = |span: Span| span == value.span;
    for layout in why::layouts(value.compilation, Some(&value.name), &is_it).into_iter().take(1) {
        for chain in &layout.axes {
            let _ = write!(text, "\n\n`{}` splits dimension {}:", chain.axis, chain.dim);
            for (step, span) in chain.steps.iter().take(MAX_STEPS) {
                let line = line_of(seen, *span).map_or_else(String::new, |line| format!(" (line {line})"));
                let _ = write!(text, "\n- {step}{line}");
            }
        }
    }
}

/// The line of a span in the compiled text, from 1; None for a span in another file.
fn line_of(seen: &Seen, span: Span) -> Option<usize> {
    let text = seen.compiled.text(seen.file);
    (span.file == seen.file && span != Span::default())
        .then(|| spmdc_grammar::span::line_column(text, span.start as usize).0)
}

/// The types of the smallest expression around an offset that is a value of a compiled program.
fn of_expression(state: &ServerState, file: &ParsedFile, offset: usize) -> Option<String> {
    for seen in Seen::all(state, file) {
        for compilation in seen.compiled.compilation.of_meshes() {
            let Some(module) = compilation.stage(Stage::Propagated) else { continue };
            let around = |span: Span| {
                let is_here = span.file == seen.file && span != Span::default();
                let range = seen.present(span).filter(|_| is_here)?;
                let is_near = range.contains(&offset) && file.lines.line(range.start) == file.lines.line(offset);
                is_near.then_some(range.len())
            };
            let values = module
                .func
                .values
                .iter()
                .enumerate()
                .filter(|(_, info)| info.derived_from.is_none() && info.origin.lineage.part.name().is_none());
            let values = values.filter_map(|(at, info)| Some((around(info.origin.span)?, at)));
            let values: Vec<(usize, usize)> = values.collect();
            let Some(&(smallest, _)) = values.iter().min() else { continue };
            let values: Vec<usize> =
                values.into_iter().filter(|(size, _)| *size == smallest).map(|(_, at)| at).collect();
            // The values of one expansion follow each other, and the last one is the result.
            let is_last = |at: &usize| !values.contains(&(at + 1));
            let mut shown: Vec<String> = Vec::new();
            for &at in values.iter().filter(|at| is_last(at)) {
                let ty = module.func.ty_in_program(Value(at as u32)).display(&module.mesh).to_string();
                if !shown.contains(&ty) {
                    shown.push(ty);
                }
            }
            shown.truncate(MAX_TYPES);
            return Some(code(&shown.join(" or ")));
        }
    }
    None
}

/// The collectives of the statement at an offset, and of its line if that defines the name there.
fn of_collectives(state: &ServerState, file: &ParsedFile, offset: usize, is_definition: bool) -> Option<String> {
    let line = file.lines.line(offset);
    let mut found: Vec<String> = Vec::new();
    for seen in Seen::all(state, file) {
        for collective in seen.compiled.collectives.iter().filter(|collective| collective.span.file == seen.file) {
            let Some(range) = seen.present(collective.span) else { continue };
            let is_here = range.contains(&offset) || is_definition && file.lines.line(range.start) == line;
            let text = described(collective);
            if is_here && !found.contains(&text) {
                found.push(text);
            }
        }
    }
    let more = found.len().saturating_sub(MAX_PARTS);
    found.truncate(MAX_PARTS);
    let mut text: Vec<String> = found.iter().map(|collective| format!("- {collective}")).collect();
    if more > 0 {
        text.push(format!("- and {more} more"));
    }
    (!text.is_empty()).then(|| format!("Collectives:\n{}", text.join("\n")))
}
