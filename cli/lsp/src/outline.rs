//! The outline of a file, and its parts that can be folded.

use lsp_types::{DocumentSymbol, FoldingRange, FoldingRangeKind, SymbolKind};
use spmdc_grammar::ast::{ItemKind, ItemNode, MeshKind, TypeExprKind};
use spmdc_grammar::classify::{TokenClass, classified};
use spmdc_grammar::span::Span;

use crate::documents::ParsedFile;

/// The items of a file, with the axes of meshes, the fields of types and the parameters of functions.
pub fn symbols(file: &ParsedFile) -> Vec<DocumentSymbol> {
    file.tree.items.iter().filter_map(|item| symbol(file, item)).collect()
}

fn symbol(file: &ParsedFile, item: &ItemNode) -> Option<DocumentSymbol> {
    let text = |span: Span| file.slice(span.start as usize, span.end as usize);
    let child = |name: &str, kind, span| entry(file, name, kind, None, (span, span), Vec::new());
    let (name, kind, detail, place, children) = match &item.kind {
        ItemKind::Mesh(mesh) => {
            let axes = match &mesh.kind {
                MeshKind::Axes { axes, .. } => axes.as_slice(),
                MeshKind::Sub { .. } => &[],
            };
            let children =
                axes.iter().map(|axis| child(&axis.name.name, SymbolKind::ENUM_MEMBER, axis.name.span)).collect();
            let name = mesh.name.as_ref().map_or("mesh", |name| name.name.as_str());
            (name, SymbolKind::ENUM, None, mesh.name.as_ref().map_or(item.span, |name| name.span), children)
        }
        ItemKind::Const { name, value } => {
            (name.name.as_str(), SymbolKind::CONSTANT, Some(text(value.span)), name.span, Vec::new())
        }
        ItemKind::Type { name, ty, .. } => {
            let fields = match &ty.kind {
                TypeExprKind::Struct(fields) => fields.as_slice(),
                TypeExprKind::Array { .. }
                | TypeExprKind::Tuple(_)
                | TypeExprKind::Named { .. }
                | TypeExprKind::Stream(_)
                | TypeExprKind::On { .. } => &[],
            };
            let children = fields.iter().map(|(field, _)| child(&field.name, SymbolKind::FIELD, field.span)).collect();
            (name.name.as_str(), SymbolKind::STRUCT, None, name.span, children)
        }
        ItemKind::Import { path, path_span, alias } => {
            let name = alias.as_ref().map_or(path.as_str(), |alias| alias.name.as_str());
            let place = alias.as_ref().map_or(*path_span, |alias| alias.span);
            (name, SymbolKind::MODULE, Some(path.as_str()), place, Vec::new())
        }
        ItemKind::Test(function) => {
            (function.name.name.as_str(), SymbolKind::EVENT, None, function.name.span, Vec::new())
        }
        ItemKind::Fn(function) => {
            // In StableHLO text, the place of a parameter includes its type, and that of a result is all of the function's head.
            let name = |span| match file.is_stablehlo() {
                true => text(span).split(':').next().unwrap_or_default(),
                false => text(span),
            };
            let params = function.params.iter().map(|param| (name(param.pattern.span), param.pattern.span));
            let children = params.map(|(name, span)| child(name, SymbolKind::VARIABLE, span)).collect();
            let detail = function.ret.as_ref().filter(|_| !file.is_stablehlo()).map(|ret| text(ret.span));
            (function.name.name.as_str(), SymbolKind::FUNCTION, detail, function.name.span, children)
        }
    };
    (!name.is_empty()).then(|| entry(file, name, kind, detail, (item.span, place), children))
}

fn entry(
    file: &ParsedFile,
    name: &str,
    kind: SymbolKind,
    detail: Option<&str>,
    (whole, place): (Span, Span),
    children: Vec<DocumentSymbol>,
) -> DocumentSymbol {
    let range = |span: Span| file.lines.positions(&file.text, span.start as usize..span.end as usize);
    #[allow(deprecated, reason = "the type has no other constructor")]
    DocumentSymbol {
        name: name.to_string(),
        detail: detail.map(str::to_string),
        kind,
        tags: None,
        deprecated: None,
        range: range(whole),
        selection_range: range(place),
        children: (!children.is_empty()).then_some(children),
    }
}

/// Pairs of brackets, comments and imports that take several lines.
pub fn folding(file: &ParsedFile) -> Vec<FoldingRange> {
    let mut found: Vec<FoldingRange> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut comments: Option<(usize, usize)> = None;
    let mut fold = |start: usize, end: usize, kind: Option<FoldingRangeKind>| {
        if end > start {
            let (start_line, end_line) = (start as u32, end as u32);
            found.push(FoldingRange { start_line, end_line, kind, ..FoldingRange::default() });
        }
    };
    for token in classified(&file.text) {
        let line = file.lines.line(token.start);
        match token.class {
            TokenClass::Open => open.push(line),
            TokenClass::Close => {
                if let Some(start) = open.pop() {
                    // The line of the closing bracket stays visible.
                    fold(start, line.saturating_sub(1), None);
                }
            }
            TokenClass::Comment | TokenClass::DocComment => {
                comments = match comments {
                    Some((start, end)) if end + 1 == line => Some((start, line)),
                    Some((start, end)) => {
                        fold(start, end, Some(FoldingRangeKind::Comment));
                        Some((line, line))
                    }
                    None => Some((line, line)),
                };
            }
            TokenClass::Keyword
            | TokenClass::ElementType
            | TokenClass::Name
            | TokenClass::Number
            | TokenClass::String
            | TokenClass::Operator
            | TokenClass::Comma
            | TokenClass::Dot
            | TokenClass::Punctuation
            | TokenClass::Malformed => {}
        }
    }
    if let Some((start, end)) = comments {
        fold(start, end, Some(FoldingRangeKind::Comment));
    }
    let mut imports: Option<(usize, usize)> = None;
    for item in &file.tree.items {
        let line = |offset: u32| file.lines.line(offset as usize);
        match (&item.kind, imports) {
            (ItemKind::Import { .. }, Some((start, _))) => imports = Some((start, line(item.span.end))),
            (ItemKind::Import { .. }, None) => imports = Some((line(item.span.start), line(item.span.end))),
            (
                ItemKind::Mesh(_)
                | ItemKind::Const { .. }
                | ItemKind::Type { .. }
                | ItemKind::Fn(_)
                | ItemKind::Test(_),
                Some((start, end)),
            ) => {
                fold(start, end, Some(FoldingRangeKind::Imports));
                imports = None;
            }
            (
                ItemKind::Mesh(_)
                | ItemKind::Const { .. }
                | ItemKind::Type { .. }
                | ItemKind::Fn(_)
                | ItemKind::Test(_),
                None,
            ) => {}
        }
    }
    found
}
