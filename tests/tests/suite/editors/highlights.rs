//! The query for highlights: every token has the capture of its class in the lexer and of its role in the compiler's tree.

use super::{language, parsed};
use crate::format::all_programs;
use spmdc_grammar::ast::*;
use spmdc_grammar::classify::{TokenClass, classified};
use spmdc_grammar::parse;
use spmdc_grammar::span::{FileId, Span};
use spmdc_grammar::walk::{SyntaxNode, Walk};
use spmdc_tests::random::whole::program;
use spmdc_tests::root;
use std::collections::BTreeMap;
use std::fs;
use tree_sitter::{Query, QueryCursor, StreamingIterator};

/// A range of bytes.
type Bytes = (usize, usize);

fn query(name: &str) -> Query {
    let path = root().join("grammar/editors/tree-sitter-spmd/queries").join(name).with_extension("scm");
    Query::new(&language(), &fs::read_to_string(path).unwrap()).unwrap_or_else(|error| panic!("{name}.scm: {error}"))
}

/// The captures of nodes; the last pattern of a node counts.
fn captures(query: &Query, text: &str) -> BTreeMap<Bytes, String> {
    let tree = parsed(text);
    let mut cursor = QueryCursor::new();
    let mut matches = cursor.matches(query, tree.root_node(), text.as_bytes());
    let mut found: BTreeMap<Bytes, (usize, u32)> = BTreeMap::new();
    while let Some(one) = matches.next() {
        for capture in one.captures() {
            let place = (capture.node.start_byte(), capture.node.end_byte());
            let last = found.entry(place).or_default();
            *last = (*last).max((one.pattern_index, capture.index));
        }
    }
    let name = |(place, (_, index)): (Bytes, (usize, u32))| (place, query.capture_names()[index as usize].to_string());
    found.into_iter().map(name).collect()
}

/// The captures of the names of a program by their roles.
fn roles(program: &ProgramNode) -> BTreeMap<Bytes, &'static str> {
    let mut found = BTreeMap::new();
    program.walk(&mut |node| {
        for (role, span) in of_node(node) {
            // A node is before those inside it, which know less about a name.
            found.entry((span.start as usize, span.end as usize)).or_insert(role);
        }
    });
    found
}

fn named<'a>(role: &'static str, names: impl IntoIterator<Item = &'a Ident>) -> Vec<(&'static str, Span)> {
    names.into_iter().map(|name| (role, name.span)).collect()
}

fn of_node(node: SyntaxNode) -> Vec<(&'static str, Span)> {
    match node {
        SyntaxNode::ItemKind(ItemKind::Const { name, .. }) => named("constant", [name]),
        SyntaxNode::ItemKind(ItemKind::Type { name, size_params, .. }) => {
            [named("type", [name]), named("type.parameter", size_params)].concat()
        }
        SyntaxNode::ItemKind(ItemKind::Import { alias, path_span, .. }) => {
            [named("module", alias), vec![("string.special", *path_span)]].concat()
        }
        SyntaxNode::ItemKind(ItemKind::Fn(function)) => {
            [named("function", [&function.name]), named("type.parameter", &function.size_params)].concat()
        }
        SyntaxNode::ItemKind(ItemKind::Test(function)) => named("string.special", [&function.name]),
        SyntaxNode::MeshItem(mesh) => named("module", &mesh.name),
        SyntaxNode::MeshKind(MeshKind::Sub { of, fixed }) => {
            [named("module", [of]), named("attribute", fixed.iter().map(|(axis, _)| axis))].concat()
        }
        SyntaxNode::MeshAxisNode(axis) => {
            let words = axis.kind.iter().map(|(_, word)| ("keyword.modifier", *word));
            named("attribute", [&axis.name]).into_iter().chain(words).collect()
        }
        SyntaxNode::RegionNode(region) => named("attribute", &region.axes),
        SyntaxNode::DimAxes(axes) => named("attribute", &axes.axes),
        SyntaxNode::ShardingExpr(sharding) => named("attribute", sharding.unreduced.iter().chain(&sharding.reduced)),
        SyntaxNode::ParamNode(param) => {
            let mut names = Vec::new();
            param.pattern.walk(&mut |node| {
                if let SyntaxNode::PatternNode(PatternNode { kind: PatternKind::Name(_), span }) = node {
                    names.push(("variable.parameter", *span));
                }
            });
            names
        }
        SyntaxNode::PatternNode(PatternNode { kind: PatternKind::Name(_), span }) => vec![("variable", *span)],
        SyntaxNode::PatternKind(PatternKind::Struct(fields)) => {
            named("variable.member", fields.iter().map(|(name, _)| name))
        }
        SyntaxNode::ArgNode(arg) => named("variable.parameter", &arg.name),
        SyntaxNode::Expr(expr) => of_expression(expr),
        SyntaxNode::ElementType(ElementType::Param(name)) => named("type", [name]),
        SyntaxNode::TypeExprKind(ty) => of_type(ty),
        SyntaxNode::Ident(_)
        | SyntaxNode::ProgramNode(_)
        | SyntaxNode::Comment(_)
        | SyntaxNode::ItemNode(_)
        | SyntaxNode::FnItem(_)
        | SyntaxNode::ItemKind(ItemKind::Mesh(_))
        | SyntaxNode::MeshKind(MeshKind::Axes { .. })
        | SyntaxNode::BlockNode(_)
        | SyntaxNode::StmtNode(_)
        | SyntaxNode::StmtNodeKind(_)
        | SyntaxNode::PatternNode(_)
        | SyntaxNode::PatternKind(_)
        | SyntaxNode::ExprKind(_)
        | SyntaxNode::IndexNode(_)
        | SyntaxNode::ElementType(ElementType::Name(_))
        | SyntaxNode::DimExpr(_)
        | SyntaxNode::TypeExpr(_) => Vec::new(),
    }
}

#[allow(clippy::wildcard_enum_match_arm, reason = "other expressions have no names of their own")]
fn of_expression(expr: &Expr) -> Vec<(&'static str, Span)> {
    match &expr.kind {
        ExprKind::Name(_) => vec![("variable", expr.span)],
        ExprKind::Bool(_) => vec![("boolean", expr.span)],
        ExprKind::None => vec![("constant.builtin", expr.span)],
        ExprKind::Call { callee, .. } => match &callee.kind {
            ExprKind::Name(_) => vec![("function.call", callee.span)],
            ExprKind::Field { name, .. } => named("function.method.call", [name]),
            _ => Vec::new(),
        },
        ExprKind::Field { name, .. } => named("variable.member", [name]),
        ExprKind::Struct(fields) => named("variable.member", fields.iter().map(|(name, _)| name)),
        _ => Vec::new(),
    }
}

fn of_type(ty: &TypeExprKind) -> Vec<(&'static str, Span)> {
    match ty {
        TypeExprKind::Array { unreduced, reduced, varying, turned, mesh, .. } => {
            let axes = [unreduced, reduced, varying, turned].into_iter().flatten();
            [named("attribute", axes), named("module", mesh)].concat()
        }
        TypeExprKind::Struct(fields) => named("variable.member", fields.iter().map(|(name, _)| name)),
        TypeExprKind::Named { module, name, .. } => [named("module", module), named("type", [name])].concat(),
        TypeExprKind::On { mesh, .. } => named("module", [mesh]),
        TypeExprKind::Tuple(_) | TypeExprKind::Stream(_) => Vec::new(),
    }
}

/// The captures that a token of this class may have, without their endings.
fn of_class(class: TokenClass) -> &'static [&'static str] {
    const NAMES: &[&str] = &["variable", "function", "type", "constant", "attribute", "module", "label", "keyword"];
    match class {
        // A few words of the language are names in other places.
        TokenClass::Name => NAMES,
        TokenClass::Keyword => {
            &["keyword", "boolean", "constant", "variable", "function", "type", "attribute", "module"]
        }
        TokenClass::ElementType => &["type", "variable"],
        TokenClass::Number => &["number"],
        TokenClass::String => &["string"],
        TokenClass::Comment | TokenClass::DocComment => &["comment"],
        TokenClass::Operator => &["operator", "punctuation"],
        TokenClass::Open | TokenClass::Close | TokenClass::Comma | TokenClass::Dot | TokenClass::Punctuation => {
            &["punctuation"]
        }
        TokenClass::Malformed => &[],
    }
}

/// Compares the captures of a program with classes and roles; the number of tokens.
#[track_caller]
fn assert_captured(query: &Query, name: &str, text: &str) -> usize {
    let (program, _) = parse(text, FileId::default());
    let (captures, roles) = (captures(query, text), roles(&program));
    let tokens = classified(text);
    for token in &tokens {
        let place = (token.start, token.end);
        let shown =
            || format!("{name}: `{}` at byte {}, {:?}", &text[token.start..token.end], token.start, token.class);
        let capture = captures.get(&place).unwrap_or_else(|| panic!("{}: no capture\n{text}", shown())).as_str();
        let family = capture.split('.').next().unwrap_or_default();
        assert!(of_class(token.class).contains(&family), "{}: `@{capture}`", shown());
        // Words that `classify` does not know as such: `stage`, and `test`.
        let is_word = family == "keyword" && token.class == TokenClass::Name;
        assert!(!is_word || &text[token.start..token.end] == "stage", "{}: `@{capture}`", shown());
        match (roles.get(&place), token.class) {
            (Some(role), _) => assert_eq!(capture, *role, "{}", shown()),
            (None, TokenClass::Keyword) => assert_eq!(family, "keyword", "{}", shown()),
            (None, TokenClass::ElementType) => assert_eq!(capture, "type.builtin", "{}", shown()),
            (None, TokenClass::DocComment) => assert_eq!(capture, "comment.documentation", "{}", shown()),
            (None, TokenClass::Comment) => assert_eq!(capture, "comment", "{}", shown()),
            (None, _) => {}
        }
    }
    tokens.len()
}

#[test]
fn every_token_has_its_capture() {
    let query = query("highlights");
    let programs =
        all_programs().into_iter().filter(|(name, _)| name != "tests/cases/errors/several_syntax_errors.spmd");
    let mut count: usize = programs.map(|(name, text)| assert_captured(&query, &name, &text)).sum();
    for number in crate::numbers("EDITOR_PROGRAM", "EDITOR_PROGRAMS", 20) {
        count += assert_captured(&query, &format!("program {number}"), &program(number).unwrap().0);
    }
    assert!(count > 0, "no tokens");
}

/// Folds, indents and scopes name nodes of the grammar.
#[test]
fn queries_are_valid() {
    for name in ["folds", "indents", "locals"] {
        assert!(query(name).pattern_count() > 0, "{name}.scm");
    }
}
