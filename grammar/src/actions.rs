//! Functions that build tree nodes for the rules of `grammar.lalrpop`, if that takes more than a constructor.

use lalrpop_util::ParseError;

use crate::ast::*;
use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::sentences::unknown;
use crate::span::{FileId, Span};
use crate::token::Token;

type Action<'s, T> = Result<T, ParseError<usize, Token<'s>, Box<Diagnostic>>>;

fn refuse<'s, T>(span: Span, message: impl Into<String>, help: impl Into<String>) -> Action<'s, T> {
    Err(ParseError::User { error: Box::new(Diagnostic::error(Code::E0002, span, message).help(help)) })
}

pub fn span(file: FileId, start: usize, end: usize) -> Span {
    Span::new(file, start, end)
}

/// A test with its name, which is a string literal.
pub fn test<'s>(literal: &str, place: Span, body: BlockNode) -> Action<'s, Box<ItemKind>> {
    string(literal, place)?;
    let name = Ident { name: format!("test {literal}"), span: place };
    let (size_params, params) = (Vec::new(), Vec::new());
    Ok(Box::new(ItemKind::Test(FnItem { region: None, name, size_params, params, ret: None, body })))
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

/// The elements of boxes.
pub fn unboxed<T>(boxes: Vec<Box<T>>) -> Vec<T> {
    boxes.into_iter().map(|element| *element).collect()
}

/// As [`unboxed`], of elements with names.
pub fn named<T>(boxes: Vec<(Ident, Box<T>)>) -> Vec<(Ident, T)> {
    boxes.into_iter().map(|(name, element)| (name, *element)).collect()
}

pub fn field_values(fields: Vec<(Ident, Option<Box<Expr>>)>) -> Vec<(Ident, Option<Expr>)> {
    fields.into_iter().map(|(name, value)| (name, value.map(|value| *value))).collect()
}

pub fn arguments(args: Vec<(Option<Ident>, Box<Expr>)>) -> Vec<ArgNode> {
    args.into_iter().map(|(name, value)| ArgNode { name, value: *value }).collect()
}

pub fn expr(kind: ExprKind, span: Span) -> Box<Expr> {
    Box::new(Expr { kind, span })
}

/// An expression whose position is not known yet.
pub fn node(kind: ExprKind) -> Box<Expr> {
    expr(kind, Span::default())
}

pub fn expr_at(mut expr: Box<Expr>, span: Span) -> Box<Expr> {
    expr.span = span;
    expr
}

/// A type whose position is not known yet.
pub fn ty(kind: TypeExprKind) -> Box<TypeExpr> {
    Box::new(TypeExpr { kind, span: Span::default() })
}

pub fn type_at(mut ty: Box<TypeExpr>, span: Span) -> Box<TypeExpr> {
    ty.span = span;
    ty
}

pub fn param(
    pattern: PatternNode,
    ty: Option<Box<TypeExpr>>,
    default: Option<Box<Expr>>,
    span: Span,
) -> Box<ParamNode> {
    Box::new(ParamNode { pattern, ty: ty.map(|ty| *ty), default: default.map(|default| *default), span })
}

pub fn slice(parts: [Option<Box<Expr>>; 3], span: Span) -> Box<IndexNode> {
    let [start, stop, step] = parts.map(|part| part.map(|part| *part));
    Box::new(IndexNode::Slice { start, stop, step, span })
}

/// A statement; one that ends in a brace without `;` may turn out to be the value of its block.
pub struct BlockItem {
    pub kind: Box<StmtNodeKind>,
    pub span: Span,
    pub is_bare: bool,
}

pub fn block(items: Vec<BlockItem>, mut value: Option<Box<Expr>>, block_span: Span) -> BlockNode {
    let mut stmts = Vec::with_capacity(items.len());
    let last = items.len().wrapping_sub(1);
    for (position, BlockItem { kind, span, is_bare }) in items.into_iter().enumerate() {
        let may_be_last = is_bare && position == last && value.is_none();
        match *kind {
            StmtNodeKind::Expr(expr) if may_be_last && may_have_value(&expr.kind) => value = Some(Box::new(expr)),
            kind @ (StmtNodeKind::Let { .. } | StmtNodeKind::Assign { .. } | StmtNodeKind::Expr(_)) => {
                stmts.push(StmtNode { kind, span });
            }
        }
    }
    BlockNode { stmts, value, span: block_span }
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

pub fn assign<'s>(target: Box<Expr>, op: Option<InfixOp>, value: Box<Expr>) -> Action<'s, Box<StmtNodeKind>> {
    let assignment = |target: Box<Expr>| Ok(Box::new(StmtNodeKind::Assign { target: *target, op, value: *value }));
    match &target.kind {
        ExprKind::Name(_) | ExprKind::Index { .. } | ExprKind::Field { .. } | ExprKind::TupleField { .. } => {
            assignment(target)
        }
        ExprKind::Wildcard | ExprKind::Tuple(_) | ExprKind::Struct(_) => match op {
            None => assignment(target),
            Some(op) => refuse(
                target.span,
                format!("`{}=` cannot assign to a pattern", op.symbol()),
                "assign to a variable, an element `u[i]` or a field `p.w`",
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
            "write brackets to assign to an element: `u[i] = v;`",
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
            "this expression cannot be assigned to",
            "assign to a variable, to elements or to a field: `u = v;`, `u[0, :] = v;`, `p.w = v;`",
        ),
    }
}

pub fn lambda(params: Vec<ParamNode>, body: Box<Expr>, span: Span) -> Box<Expr> {
    expr(ExprKind::Lambda { params, body }, span)
}

pub fn binary(lhs: Box<Expr>, op: InfixOp, op_span: Span, rhs: Box<Expr>) -> Box<Expr> {
    let span = lhs.span.to(rhs.span);
    expr(ExprKind::Binary { op, op_span, lhs, rhs }, span)
}

pub fn tuple_field(base: Box<Expr>, index: u64, index_span: Span, span: Span) -> Box<Expr> {
    // A tuple has far fewer fields; the checker reports it.
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    expr(ExprKind::TupleField { base, index, index_span }, span)
}

pub fn on_mesh(ty: TypeExpr, mesh: Ident, span: Span) -> Box<TypeExpr> {
    let kind = match ty.kind {
        TypeExprKind::Array { dtype, dims, unreduced, reduced, varying, turned, mesh: None } => {
            TypeExprKind::Array { dtype, dims, unreduced, reduced, varying, turned, mesh: Some(mesh) }
        }
        kind @ (TypeExprKind::Array { .. }
        | TypeExprKind::Tuple(_)
        | TypeExprKind::Struct(_)
        | TypeExprKind::Named { .. }
        | TypeExprKind::Stream(_)
        | TypeExprKind::On { .. }) => TypeExprKind::On { ty: Box::new(TypeExpr { kind, span: ty.span }), mesh },
    };
    Box::new(TypeExpr { kind, span })
}

/// `T[N]`
pub fn element_param(name: Ident, dims: Vec<DimExpr>) -> Box<TypeExpr> {
    let dtype = ElementType::Param(name);
    let [unreduced, reduced, varying, turned] = [const { Vec::new() }; 4];
    ty(TypeExprKind::Array { dtype, dims, unreduced, reduced, varying, turned, mesh: None })
}

pub fn array_type<'s>(
    dtype: DTypeName,
    dims: Vec<DimExpr>,
    suffixes: Vec<(Ident, Vec<Ident>)>,
    span: Span,
) -> Action<'s, Box<TypeExpr>> {
    let [mut unreduced, mut reduced, mut varying, mut turned] = [const { Vec::new() }; 4];
    for (letter, axes) in suffixes {
        let list = match letter.name.as_str() {
            "U" => &mut unreduced,
            "R" => &mut reduced,
            "T" => &mut turned,
            _ => &mut varying,
        };
        if !list.is_empty() {
            let message = format!("a type can contain only one `{{{}:...}}`", letter.name);
            return refuse(letter.span, message, format!("list all axes in one suffix: `{{{}:(X, Y)}}`", letter.name));
        }
        *list = axes;
    }
    let dtype = ElementType::Name(dtype);
    let kind = TypeExprKind::Array { dtype, dims, unreduced, reduced, varying, turned, mesh: None };
    Ok(Box::new(TypeExpr { kind, span }))
}

/// An entry between the commas of `P(...)`.
pub enum ShardingEntry {
    Dim(DimAxes),
    Keyword(Ident, Vec<Ident>),
}

pub fn sharding<'s>(entries: Vec<ShardingEntry>, span: Span) -> Action<'s, Box<Expr>> {
    let (mut dims, mut unreduced, mut reduced) = (Vec::new(), Vec::new(), Vec::new());
    for entry in entries {
        let (keyword, axes) = match entry {
            ShardingEntry::Dim(dim) => {
                dims.push(dim);
                continue;
            }
            ShardingEntry::Keyword(keyword, axes) => (keyword, axes),
        };
        let list = match keyword.name.as_str() {
            "unreduced" => &mut unreduced,
            "reduced" => &mut reduced,
            name => {
                let message = format!("`P(...)` has no argument `{name}`");
                let help = "its only named arguments are `unreduced=` and `reduced=`, as in `P(X, unreduced=Y)`";
                return refuse(keyword.span, message, help);
            }
        };
        if !list.is_empty() {
            let message = format!("`{}` is given twice", keyword.name);
            return refuse(keyword.span, message, format!("list all axes in one argument: `{}=(X, Y)`", keyword.name));
        }
        *list = axes;
    }
    Ok(expr(ExprKind::Sharding(ShardingExpr { dims, unreduced, reduced, span }), span))
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
                let diagnostic = Diagnostic::error(Code::E0001, place, unknown("escape", format_args!("\\{other}")))
                    .help("the escapes are `\\n` (line break), `\\t` (tab), `\\\\` (backslash) and `\\\"` (quote)");
                return Err(ParseError::User { error: Box::new(diagnostic) });
            }
        });
    }
    Ok(value)
}
