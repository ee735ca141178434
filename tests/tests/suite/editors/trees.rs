//! The nodes of a program with their positions, once from the compiler's tree and once from that of the grammar for editors.
//!
//! Compared are items, statements, patterns, types, expressions, blocks, parameters, names and operators: everything with a position in the
//! compiler's tree. Three things are not: values such as digits, whose text the position determines, the words of axis types and regions,
//! and alignments, which have no position there.

use spmdc_grammar::ast::*;
use spmdc_grammar::span::Span;
use spmdc_grammar::walk::{SyntaxNode, Walk};
use std::collections::BTreeSet;
use tree_sitter::Node;

/// The kind of a node, with the offsets of its first byte and after its last.
pub type Place = (&'static str, usize, usize);

/// The nodes of the compiler's tree.
pub fn of_compiler(program: &ProgramNode) -> BTreeSet<Place> {
    let mut found = BTreeSet::new();
    program.walk(&mut |node| {
        found.extend(places(node).into_iter().map(|(kind, span)| (kind, span.start as usize, span.end as usize)));
    });
    found
}

fn places(node: SyntaxNode) -> Vec<(&'static str, Span)> {
    match node {
        SyntaxNode::Ident(name) => vec![("name", name.span)],
        SyntaxNode::ItemNode(item) => vec![(of_item(&item.kind), item.span)],
        SyntaxNode::MeshAxisNode(axis) => vec![("mesh axis", axis.name.span.to(axis.size.span))],
        SyntaxNode::ParamNode(param) => vec![("parameter", param.span)],
        SyntaxNode::BlockNode(block) => vec![("block", block.span)],
        SyntaxNode::StmtNode(stmt) => vec![(of_statement(&stmt.kind), stmt.span)],
        SyntaxNode::PatternNode(pattern) => vec![(of_pattern(&pattern.kind), pattern.span)],
        SyntaxNode::Expr(expr) => [vec![(of_expression(&expr.kind), expr.span)], parts(&expr.kind)].concat(),
        SyntaxNode::ArgNode(arg) => arg.name.iter().map(|name| ("argument", name.span.to(arg.value.span))).collect(),
        SyntaxNode::IndexNode(IndexNode::Slice { span, .. }) => vec![("slice", *span)],
        SyntaxNode::IndexNode(IndexNode::Ellipsis(span)) => vec![("ellipsis", *span)],
        SyntaxNode::DimAxes(axes) => vec![("axes", axes.span)],
        SyntaxNode::DimExpr(dim) => {
            vec![("dimension", dim.size.span.to(dim.axes.as_ref().map_or(dim.size.span, |axes| axes.span)))]
        }
        SyntaxNode::TypeExpr(ty) => vec![(of_type(&ty.kind), ty.span)],
        SyntaxNode::ProgramNode(_)
        | SyntaxNode::Comment(_)
        | SyntaxNode::MeshItem(_)
        | SyntaxNode::FnItem(_)
        | SyntaxNode::RegionNode(_)
        | SyntaxNode::ShardingExpr(_)
        | SyntaxNode::ItemKind(_)
        | SyntaxNode::MeshKind(_)
        | SyntaxNode::StmtNodeKind(_)
        | SyntaxNode::PatternKind(_)
        | SyntaxNode::ExprKind(_)
        | SyntaxNode::IndexNode(IndexNode::Expr(_))
        | SyntaxNode::ElementType(_)
        | SyntaxNode::TypeExprKind(_) => Vec::new(),
    }
}

fn of_item(kind: &ItemKind) -> &'static str {
    match kind {
        ItemKind::Mesh(_) => "mesh_item",
        ItemKind::Const { .. } => "const_item",
        ItemKind::Type { .. } => "type_item",
        ItemKind::Import { .. } => "import_item",
        ItemKind::Fn(_) => "function_item",
        ItemKind::Test(_) => "test_item",
    }
}

fn of_statement(kind: &StmtNodeKind) -> &'static str {
    match kind {
        StmtNodeKind::Let { .. } => "let_statement",
        StmtNodeKind::Assign { .. } => "assignment",
        StmtNodeKind::Expr(_) => "expression_statement",
    }
}

fn of_pattern(kind: &PatternKind) -> &'static str {
    match kind {
        PatternKind::Name(_) => "binding_identifier",
        PatternKind::Wildcard => "wildcard_pattern",
        PatternKind::Tuple(_) => "tuple_pattern",
        PatternKind::Struct(_) => "struct_pattern",
    }
}

fn of_expression(kind: &ExprKind) -> &'static str {
    match kind {
        ExprKind::Int(_) => "integer",
        ExprKind::Float(_) => "float",
        ExprKind::Bool(_) => "boolean",
        ExprKind::Str(_) => "string",
        ExprKind::Name(_) => "identifier",
        ExprKind::Wildcard => "wildcard",
        ExprKind::None => "none",
        ExprKind::Unary { .. } => "unary_expression",
        ExprKind::Binary { .. } => "binary_expression",
        ExprKind::Call { .. } => "call",
        ExprKind::Index { .. } => "index_expression",
        ExprKind::Field { .. } => "field_expression",
        ExprKind::TupleField { .. } => "tuple_field_expression",
        ExprKind::Lambda { .. } => "lambda",
        ExprKind::Tuple(_) => "tuple",
        ExprKind::List(_) => "list",
        ExprKind::Struct(_) => "struct",
        ExprKind::Block(_) => "block_expression",
        ExprKind::If { .. } => "if_expression",
        ExprKind::For { .. } => "for_expression",
        ExprKind::While { .. } => "while_expression",
        ExprKind::Sharding(_) => "sharding",
        ExprKind::Type(_) => "type_expression",
    }
}

/// The parts of an expression that are no nodes of their own.
fn parts(kind: &ExprKind) -> Vec<(&'static str, Span)> {
    if let ExprKind::Binary { op_span, .. } = kind {
        vec![("operator", *op_span)]
    } else if let ExprKind::TupleField { index_span, .. } = kind {
        vec![("index", *index_span)]
    } else {
        Vec::new()
    }
}

fn of_type(kind: &TypeExprKind) -> &'static str {
    match kind {
        TypeExprKind::Array { .. } => "array_type",
        TypeExprKind::Tuple(_) => "tuple_type",
        TypeExprKind::Struct(_) => "struct_type",
        TypeExprKind::Named { .. } => "named_type",
        TypeExprKind::Stream(_) => "stream_type",
        TypeExprKind::On { .. } => "placed_type",
    }
}

/// The nodes of an editor's tree that the compiler's has, too.
pub fn of_editor(root: Node) -> BTreeSet<Place> {
    let mut found = Found(BTreeSet::new());
    found.node(root, "", "");
    found.0
}

struct Found(BTreeSet<Place>);

/// The children that are no comments, each with the field that it is in.
fn children(node: Node<'_>) -> Vec<(Node<'_>, &str)> {
    let mut cursor = node.walk();
    let mut found = Vec::new();
    let mut more = cursor.goto_first_child();
    while more {
        if !cursor.node().is_extra() {
            found.push((cursor.node(), cursor.field_name().unwrap_or("")));
        }
        more = cursor.goto_next_sibling();
    }
    found
}

fn named_children(node: Node<'_>) -> Vec<(Node<'_>, &str)> {
    children(node).into_iter().filter(|(child, _)| child.is_named()).collect()
}

/// Whether a node has this word or other token.
fn has_token(node: Node, token: &str) -> bool {
    children(node).iter().any(|(child, _)| child.kind() == token)
}

/// The last statement of a block without a value, if it is an expression without a `;`.
fn last_expression(block: Node) -> Option<Node> {
    let (last, field) = named_children(block).pop()?;
    let is_bare = field != "value" && last.kind() == "expression_statement" && !has_token(last, ";");
    is_bare.then(|| named_children(last).pop()).flatten().map(|(expr, _)| expr)
}

/// Whether a block has a value. The compiler takes a last statement without `;` for the value if it can have one.
fn block_has_value(block: Node) -> bool {
    block.child_by_field_name("value").is_some() || last_expression(block).is_some_and(may_have_value)
}

fn may_have_value(node: Node) -> bool {
    match node.kind() {
        "block" => block_has_value(node),
        "for_expression" => has_token(node, "collect"),
        "if_expression" => {
            let then = node.child_by_field_name("consequence");
            then.is_some_and(block_has_value) && node.child_by_field_name("alternative").is_some()
        }
        _ => false,
    }
}

/// The type in parentheses, which have no node in the compiler's tree.
fn without_parentheses(ty: Node) -> Node {
    match named_children(ty).first() {
        Some(&(inner, _)) if ty.kind() == "parenthesized_type" => without_parentheses(inner),
        _ => ty,
    }
}

impl Found {
    fn add(&mut self, kind: &'static str, node: Node) {
        self.0.insert((kind, node.start_byte(), node.end_byte()));
    }

    fn children(&mut self, node: Node) {
        for (child, field) in named_children(node) {
            self.node(child, node.kind(), field);
        }
    }

    /// Adds a node and those below it. `parent` and `field` say where it is.
    fn node(&mut self, node: Node, parent: &str, field: &str) {
        self.node_at(node, node, parent, field);
    }

    /// The same for a node in parentheses, which count as a part of it.
    fn node_at(&mut self, node: Node, around: Node, parent: &str, field: &str) {
        match node.kind() {
            "parenthesized_expression" | "parenthesized_pattern" => {
                if let Some(&(inner, _)) = named_children(node).first() {
                    self.node_at(inner, around, parent, field);
                }
                return;
            }
            "block" => {
                let is_part = field == "consequence" || field == "body" && parent != "lambda";
                if !is_part {
                    self.add("block_expression", around);
                }
                self.add("block", node);
                let last = last_expression(node).filter(|last| may_have_value(*last));
                for (child, field) in named_children(node) {
                    // The value has no statement around it.
                    match last.filter(|last| last.parent() == Some(child)) {
                        Some(value) => self.node(value, "block", "value"),
                        None => self.node(child, "block", field),
                    }
                }
                return;
            }
            "placed_type" => {
                let inner = node.child_by_field_name("type").map(without_parentheses);
                // An array keeps its mesh, other types get a node around them.
                let array = inner.filter(|inner| inner.kind() == "array_type");
                self.add(if array.is_some() { "array_type" } else { "placed_type" }, node);
                array.into_iter().for_each(|array| self.children(array));
                for (child, _) in named_children(node).into_iter().skip(usize::from(array.is_some())) {
                    self.node(child, "placed_type", "");
                }
                return;
            }
            "stage_identifier"
            | "constant_identifier"
            | "function_identifier"
            | "module_identifier"
            | "mesh_identifier"
            | "axis_identifier"
            | "type_identifier"
            | "size_identifier"
            | "shorthand_field_identifier" => {
                self.add("name", node);
            }
            // `unreduced=` has no node.
            "field_identifier" if parent != "sharding_keyword" => self.add("name", node),
            "string" if parent == "test_item" => self.add("name", node),
            "string" if parent == "import_item" => {}
            "integer" if parent == "alignment" => {}
            "integer" if field == "index" => self.add("index", node),
            "wildcard" | "none" if parent == "axes" => {}
            "wildcard" if field == "pattern" || parent.ends_with("_pattern") => self.add("wildcard_pattern", around),
            "mesh_axis" => self.add("mesh axis", node),
            "keyword_argument" => self.add("argument", node),
            "binary_expression" => {
                self.add("binary_expression", around);
                let operator = children(node).into_iter().find(|(child, _)| !child.is_named());
                operator.into_iter().for_each(|(operator, _)| self.add("operator", operator));
            }
            kind => self.0.extend(KINDS.iter().find(|known| **known == kind).map(|kind| {
                let node = if kind.ends_with("_type") { node } else { around };
                (*kind, node.start_byte(), node.end_byte())
            })),
        }
        self.children(node);
    }
}

/// The kinds with the same name and position in both trees.
const KINDS: [&str; 43] = [
    "mesh_item",
    "const_item",
    "type_item",
    "import_item",
    "function_item",
    "test_item",
    "parameter",
    "let_statement",
    "assignment",
    "expression_statement",
    "binding_identifier",
    "tuple_pattern",
    "struct_pattern",
    "integer",
    "float",
    "boolean",
    "string",
    "identifier",
    "wildcard",
    "none",
    "unary_expression",
    "call",
    "index_expression",
    "field_expression",
    "tuple_field_expression",
    "lambda",
    "tuple",
    "list",
    "struct",
    "if_expression",
    "for_expression",
    "while_expression",
    "sharding",
    "type_expression",
    "slice",
    "ellipsis",
    "axes",
    "dimension",
    "array_type",
    "tuple_type",
    "struct_type",
    "named_type",
    "stream_type",
];
