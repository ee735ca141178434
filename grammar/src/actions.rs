//! Functions that build tree nodes for the rules of `grammar.lalrpop`, if that takes more than a constructor.

use lalrpop_util::ParseError;

use crate::ast::*;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::span::{FileId, Span};
use crate::token::Token;

type Action<'s, T> = Result<T, ParseError<usize, Token<'s>, Box<Diagnostic>>>;

fn refuse<'s, T>(span: Span, message: impl Into<String>, help: impl Into<String>) -> Action<'s, T> {
    Err(ParseError::User { error: Box::new(Diagnostic::error(Code::E0002, span, message).help(help)) })
}

pub fn span(file: FileId, start: usize, end: usize) -> Span {
    Span::new(file, start, end)
}

/// A list from its elements before the last comma and the optional last element.
pub fn and_last<T>(mut head: Vec<T>, last: Option<T>) -> Vec<T> {
    head.extend(last);
    head
}

pub fn first_and<T>(first: T, mut rest: Vec<T>) -> Vec<T> {
    rest.insert(0, first);
    rest
}

/// A statement; one that ends in a brace without `;` may turn out to be the value of its block.
pub struct BlockItem {
    pub stmt: StmtNode,
    pub is_bare: bool,
}

pub fn block(items: Vec<BlockItem>, value: Option<Expr>, span: Span) -> BlockNode {
    let mut value = value.map(Box::new);
    let mut stmts = Vec::with_capacity(items.len());
    let last = items.len().wrapping_sub(1);
    for (position, BlockItem { stmt, is_bare }) in items.into_iter().enumerate() {
        let may_be_last = is_bare && position == last && value.is_none();
        match stmt.kind {
            StmtNodeKind::Expr(expr) if may_be_last && may_have_value(&expr.kind) => value = Some(Box::new(expr)),
            kind @ (StmtNodeKind::Let { .. } | StmtNodeKind::Assign { .. } | StmtNodeKind::Expr(_)) => {
                stmts.push(StmtNode { kind, span: stmt.span });
            }
        }
    }
    BlockNode { stmts, value, span }
}

/// Whether an expression that ends in a brace can be the value of its block. A loop without `collect`, an `if` without `else` and a
/// block without a value cannot.
pub fn may_have_value(kind: &ExprKind) -> bool {
    if let ExprKind::For { collect, .. } = kind {
        *collect
    } else if let ExprKind::If { then, otherwise, .. } = kind {
        then.value.is_some() && otherwise.is_some()
    } else if let ExprKind::Block(block) = kind {
        block.value.is_some()
    } else {
        !matches!(kind, ExprKind::While { .. })
    }
}

pub fn assign<'s>(target: Expr, op: Option<InfixOp>, value: Expr) -> Action<'s, StmtNodeKind> {
    match &target.kind {
        ExprKind::Name(_) | ExprKind::Index { .. } | ExprKind::Field { .. } | ExprKind::TupleField { .. } => {
            Ok(StmtNodeKind::Assign { target, op, value })
        }
        ExprKind::Wildcard | ExprKind::Tuple(_) | ExprKind::Struct(_) => match op {
            None => Ok(StmtNodeKind::Assign { target, op, value }),
            Some(op) => refuse(
                target.span,
                format!("`{}=` changes one value", op.symbol()),
                "name it: a variable, an element `u[i]` or a field `p.w`",
            ),
        },
        ExprKind::Binary { .. } if op.is_none() => refuse(
            target.span,
            "an expression with operators cannot be assigned to",
            "`=` assigns to a name, an index or a field; `==` compares",
        ),
        ExprKind::Call { .. } => refuse(
            target.span,
            "the result of a call cannot be assigned to",
            "an element is assigned to with brackets: `u[i] = v;`",
        ),
        ExprKind::Binary { .. }
        | ExprKind::Int(_)
        | ExprKind::Float(_)
        | ExprKind::Bool(_)
        | ExprKind::Str(_)
        | ExprKind::None
        | ExprKind::Unary { .. }
        | ExprKind::Lambda { .. }
        | ExprKind::List(_)
        | ExprKind::Block(_)
        | ExprKind::If { .. }
        | ExprKind::For { .. }
        | ExprKind::While { .. }
        | ExprKind::Sharding(_)
        | ExprKind::Type(_) => refuse(
            target.span,
            "this cannot be assigned to",
            "assignment takes a name, an index or a field: `u = v;`, `u[0, :] = v;`, `p.w = v;`",
        ),
    }
}

pub fn lambda(params: Vec<ParamNode>, body: Expr, span: Span) -> Expr {
    Expr { kind: ExprKind::Lambda { params, body: Box::new(body) }, span }
}

pub fn binary(lhs: Expr, op: InfixOp, op_span: Span, rhs: Expr) -> Expr {
    let span = lhs.span.to(rhs.span);
    Expr { kind: ExprKind::Binary { op, op_span, lhs: Box::new(lhs), rhs: Box::new(rhs) }, span }
}

pub fn tuple_field(base: Expr, index: u64, index_span: Span, span: Span) -> Expr {
    // A tuple has far fewer fields; the checker reports it.
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    Expr { kind: ExprKind::TupleField { base: Box::new(base), index, index_span }, span }
}

pub fn on_mesh(ty: TypeExpr, mesh: Ident, span: Span) -> TypeExpr {
    let kind = match ty.kind {
        TypeExprKind::Array { dtype, dims, unreduced, varying, mesh: None } => {
            TypeExprKind::Array { dtype, dims, unreduced, varying, mesh: Some(mesh) }
        }
        kind @ (TypeExprKind::Array { .. }
        | TypeExprKind::Tuple(_)
        | TypeExprKind::Struct(_)
        | TypeExprKind::Named { .. }
        | TypeExprKind::Stream(_)
        | TypeExprKind::On { .. }) => TypeExprKind::On { ty: Box::new(TypeExpr { kind, span: ty.span }), mesh },
    };
    TypeExpr { kind, span }
}

/// `T[N]`
pub fn element_param(name: Ident, dims: Vec<DimExpr>) -> TypeExprKind {
    let dtype = ElementType::Param(name);
    TypeExprKind::Array { dtype, dims, unreduced: Vec::new(), varying: Vec::new(), mesh: None }
}

pub fn array_type<'s>(
    dtype: DTypeName,
    dims: Vec<DimExpr>,
    suffixes: Vec<(Ident, Vec<Ident>)>,
    span: Span,
) -> Action<'s, TypeExpr> {
    let (mut unreduced, mut varying) = (Vec::new(), Vec::new());
    for (letter, axes) in suffixes {
        let list = if letter.name == "U" { &mut unreduced } else { &mut varying };
        if !list.is_empty() {
            let message = format!("a type has one `{{{}:...}}` at most", letter.name);
            return refuse(letter.span, message, format!("list the axes in one: `{{{}:(X, Y)}}`", letter.name));
        }
        *list = axes;
    }
    let dtype = ElementType::Name(dtype);
    Ok(TypeExpr { kind: TypeExprKind::Array { dtype, dims, unreduced, varying, mesh: None }, span })
}

/// An entry between the commas of `P(...)`.
pub enum ShardingEntry {
    Dim(DimAxes),
    Keyword(Ident, Vec<Ident>),
}

pub fn sharding<'s>(entries: Vec<ShardingEntry>, span: Span) -> Action<'s, Expr> {
    let (mut dims, mut unreduced) = (Vec::new(), Vec::new());
    for entry in entries {
        match entry {
            ShardingEntry::Dim(dim) => dims.push(dim),
            ShardingEntry::Keyword(keyword, axes) if keyword.name == "unreduced" && unreduced.is_empty() => {
                unreduced = axes;
            }
            ShardingEntry::Keyword(keyword, _) if keyword.name == "unreduced" => {
                return refuse(keyword.span, "`unreduced` is given twice", "list the axes in one: `unreduced=(X, Y)`");
            }
            ShardingEntry::Keyword(keyword, _) => {
                let message = format!("a sharding has no `{}`", keyword.name);
                return refuse(
                    keyword.span,
                    message,
                    "besides its dimensions it takes only `unreduced=`: `P(X, unreduced=Y)`",
                );
            }
        }
    }
    Ok(Expr { kind: ExprKind::Sharding(ShardingExpr { dims, unreduced, span }), span })
}

/// A float in the form of the tree: no underscores, a digit on both sides of the point.
pub fn float(text: &str) -> String {
    let mut digits = text.replace('_', "").replace('E', "e");
    if digits.starts_with('.') {
        digits.insert(0, '0');
    }
    if let Some(point) = digits.find('.')
        && !digits[point + 1..].starts_with(|c: char| c.is_ascii_digit())
    {
        digits.insert(point + 1, '0');
    }
    digits
}

/// The characters of a string literal, given with its quotes.
pub fn string<'s>(text: &str, span: Span) -> Action<'s, String> {
    let inner = &text[1..text.len() - 1];
    let mut value = String::with_capacity(inner.len());
    let mut characters = inner.char_indices();
    while let Some((at, character)) = characters.next() {
        if character != '\\' {
            value.push(character);
            continue;
        }
        let Some((_, escaped)) = characters.next() else { break };
        value.push(match escaped {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            '0' => '\0',
            '\\' | '"' => escaped,
            other => {
                let start = span.start as usize + 1 + at;
                let place = Span::new(span.file, start, start + 1 + other.len_utf8());
                let diagnostic = Diagnostic::error(Code::E0001, place, format!("`\\{other}` stands for no character"))
                    .help("in a string, `\\n` is a new line, `\\t` a tab, `\\\\` a backslash and `\\\"` a quote");
                return Err(ParseError::User { error: Box::new(diagnostic) });
            }
        });
    }
    Ok(value)
}
