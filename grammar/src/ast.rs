//! The syntax tree. It knows no types and no functions; every node has a span.
//!
//! Dumps of later stages are read into the same tree: a dump is a program. A type ends in `Node` where the typed program has a type
//! of the same meaning: [`StmtNode`] is a statement as written.

use crate::span::Span;

/// A name with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Ident {
    pub name: String,
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramNode {
    /// `stage partitioned;` on the first line of a dump.
    pub stage: Option<Ident>,
    pub items: Vec<ItemNode>,
    /// Comments that document nothing (`// ...`), in order, so that tools can keep them.
    pub comments: Vec<Comment>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    /// Without the slashes and the space after them.
    pub text: String,
    /// It stands behind code on the same line.
    pub trailing: bool,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ItemNode {
    /// `///` lines above the item, without the slashes.
    pub doc: Vec<String>,
    pub kind: ItemKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    Mesh(MeshItem),
    /// `const N = 4096;`
    Const {
        name: Ident,
        value: Expr,
    },
    /// `type Layer<I, O> = { ... };`
    Type {
        name: Ident,
        size_params: Vec<Ident>,
        ty: TypeExpr,
    },
    /// `import "nn.spmd" as nn;` without `as`, the names come in unqualified.
    Import {
        path: String,
        path_span: Span,
        alias: Option<Ident>,
    },
    Fn(FnItem),
}

/// `mesh (X = 2);` · `mesh other (a = 4) devices [0, 1, 2, 3];` · `mesh first = all[stage = 0];`
#[derive(Clone, Debug, PartialEq)]
pub struct MeshItem {
    /// None for the program's one unnamed mesh.
    pub name: Option<Ident>,
    pub kind: MeshKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MeshKind {
    Axes { axes: Vec<MeshAxisNode>, devices: Option<Vec<Expr>> },
    Sub { of: Ident, fixed: Vec<(Ident, Expr)> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct MeshAxisNode {
    pub name: Ident,
    /// `auto` when not given.
    pub kind: Option<(AxisKind, Span)>,
    pub size: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    Auto,
    Explicit,
    Manual,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FnItem {
    /// `manual(X, Y) fn`: its axes; `manual fn`: an empty list; None for an ordinary function.
    pub manual: Option<Vec<Ident>>,
    pub name: Ident,
    pub size_params: Vec<Ident>,
    pub params: Vec<ParamNode>,
    pub ret: Option<TypeExpr>,
    pub body: BlockNode,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ParamNode {
    pub pattern: PatternNode,
    pub ty: Option<TypeExpr>,
    /// `lr = 0.1`: the value where a call gives none. Never in a lambda.
    pub default: Option<Expr>,
    pub span: Span,
}

/// Statements, then perhaps a value: `{ let y = f(x); y * 2 }`.
///
/// What has no value ends a block as a statement: `{ while c { .. } }` has one statement and no value,
/// and so have a `for` without `collect`, an `if` without `else`, and an `if` or block that has no value itself.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockNode {
    pub stmts: Vec<StmtNode>,
    pub value: Option<Box<Expr>>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StmtNode {
    pub kind: StmtNodeKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum StmtNodeKind {
    Let {
        mutable: bool,
        pattern: PatternNode,
        ty: Option<TypeExpr>,
        value: Expr,
    },
    /// `u = e;` · `u[0, :] = e;` · `u[i] += e;` · `p.w = e;`; `op` is the operator before `=`.
    Assign {
        target: Expr,
        op: Option<BinaryOp>,
        value: Expr,
    },
    /// An expression for its effect, or a loop or `if` used as a statement.
    Expr(Expr),
}

#[derive(Clone, Debug, PartialEq)]
pub struct PatternNode {
    pub kind: PatternKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PatternKind {
    Name(String),
    Wildcard,
    Tuple(Vec<PatternNode>),
    /// `{ w, b: bias }`; a field without a pattern binds its own name.
    Struct(Vec<(Ident, Option<PatternNode>)>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// The digits as written, underscores removed: `12`, `0xff`.
    Int(u64),
    /// As written, underscores removed, so that each width rounds once from the decimal.
    Float(String),
    Bool(bool),
    Str(String),
    Name(String),
    /// `_` where a call takes "nothing here": `in_axes=(0, _)`.
    Wildcard,
    /// `None` among indices: a new dimension.
    None,
    Unary {
        op: UnaryOp,
        arg: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        op_span: Span,
        lhs: Box<Expr>,
        rhs: Box<Expr>,
    },
    /// `f(x, axis=0)`, `f32(x)` (callee is a type), `grad(f)(x)`; a method `x.sum(axis=0)` is a call of a field.
    Call {
        callee: Box<Expr>,
        args: Vec<ArgNode>,
    },
    Index {
        base: Box<Expr>,
        indices: Vec<IndexNode>,
    },
    Field {
        base: Box<Expr>,
        name: Ident,
    },
    /// `t.0`
    TupleField {
        base: Box<Expr>,
        index: usize,
        index_span: Span,
    },
    /// `|a, g| a - g`
    Lambda {
        params: Vec<ParamNode>,
        body: Box<Expr>,
    },
    /// `()`, `(a,)`, `(a, b)`
    Tuple(Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `{ w: a, b }`; a field without a value takes the variable of its name. A lone `{ w }` is a block; write `{ w, }`.
    Struct(Vec<(Ident, Option<Expr>)>),
    Block(BlockNode),
    If {
        cond: Box<Expr>,
        then: BlockNode,
        otherwise: Option<Box<Expr>>,
    },
    For {
        pattern: PatternNode,
        start: Box<Expr>,
        end: Box<Expr>,
        /// `step 2`; 1 when not given.
        step: Option<Box<Expr>>,
        collect: bool,
        body: BlockNode,
    },
    While {
        cond: Box<Expr>,
        body: BlockNode,
    },
    /// `P(X, _, (Y, Z), ?, unreduced=Y)`
    Sharding(ShardingExpr),
    /// A type where a value may stand: `zeros(f32[3, 4])`, `cast(x, bf16)`.
    Type(Box<TypeExpr>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ArgNode {
    /// The keyword, as in `axis=0`.
    pub name: Option<Ident>,
    pub value: Expr,
}

#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a program has few slices, and matching on them is frequent")]
pub enum IndexNode {
    Expr(Expr),
    /// `1:-1`, `::2`, `:`
    Slice {
        start: Option<Expr>,
        stop: Option<Expr>,
        step: Option<Expr>,
        span: Span,
    },
    /// `...`
    Ellipsis(Span),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Neg,
    Not,
}

impl UnaryOp {
    pub fn symbol(self) -> &'static str {
        match self {
            UnaryOp::Neg => "-",
            UnaryOp::Not => "!",
        }
    }
}

/// In the order of the reference, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BinaryOp {
    Or,
    And,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    BitOr,
    BitXor,
    BitAnd,
    Shl,
    Shr,
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Rem,
    MatMul,
    Pow,
}

impl BinaryOp {
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Or => "||",
            BinaryOp::And => "&&",
            BinaryOp::Eq => "==",
            BinaryOp::Ne => "!=",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => ">=",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::BitAnd => "&",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::FloorDiv => "//",
            BinaryOp::Rem => "%",
            BinaryOp::MatMul => "@",
            BinaryOp::Pow => "**",
        }
    }
}

/// `P(...)`: per dimension the axes major to minor, or open.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardingExpr {
    pub dims: Vec<DimAxes>,
    pub unreduced: Vec<Ident>,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub struct DimAxes {
    pub axes: Vec<Ident>,
    /// `?`, or `(X, ?)` after axes: the compiler may add axes.
    pub open: bool,
    /// In dumps.
    pub alignment: Option<AlignmentNode>,
    pub span: Span,
}

/// `X/32+1:2`: element `i` of the dimension lies where element `1 + 2 * i` of a dimension of 32 elements lies that is split over X.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignmentNode {
    pub size: u64,
    pub start: i64,
    pub step: u64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TypeExpr {
    pub kind: TypeExprKind,
    pub span: Span,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TypeExprKind {
    /// `f32`, `f32[4@X, 8]{U:Y}{V:X} on first`, `T[N]`
    Array {
        dtype: ElementType,
        dims: Vec<DimExpr>,
        unreduced: Vec<Ident>,
        varying: Vec<Ident>,
        mesh: Option<Ident>,
    },
    Tuple(Vec<TypeExpr>),
    Struct(Vec<(Ident, TypeExpr)>),
    /// `Layer<I, O>`, `nn.Layer<I, O>`
    Named {
        module: Option<Ident>,
        name: Ident,
        args: Vec<Expr>,
    },
    /// `Layer<64, 8> on first`: a tuple, struct or named type placed as a whole; an array keeps its own `mesh`.
    On {
        ty: Box<TypeExpr>,
        mesh: Ident,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct DimExpr {
    /// Integers, names (`N`, `nn.N`), `+ - * / // %`, unary minus and parentheses; `@` ends it.
    pub size: Expr,
    /// None where the type says nothing of this dimension; `4@_` is an empty list.
    pub axes: Option<DimAxes>,
}

/// The element type of an array as written.
#[derive(Clone, Debug, PartialEq)]
pub enum ElementType {
    Name(DTypeName),
    /// A parameter of the function, with dimensions behind it; alone it is a [`TypeExprKind::Named`].
    Param(Ident),
}

/// The element types by their names in the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DTypeName {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,
    F32,
    F64,
    Key,
}

impl DTypeName {
    pub const ALL: [(DTypeName, &'static str); 14] = [
        (DTypeName::Bool, "bool"),
        (DTypeName::I8, "i8"),
        (DTypeName::I16, "i16"),
        (DTypeName::I32, "i32"),
        (DTypeName::I64, "i64"),
        (DTypeName::U8, "u8"),
        (DTypeName::U16, "u16"),
        (DTypeName::U32, "u32"),
        (DTypeName::U64, "u64"),
        (DTypeName::F16, "f16"),
        (DTypeName::Bf16, "bf16"),
        (DTypeName::F32, "f32"),
        (DTypeName::F64, "f64"),
        (DTypeName::Key, "key"),
    ];

    pub fn name(self) -> &'static str {
        DTypeName::ALL[self as usize].1
    }

    /// The element type that other languages call so.
    ///
    /// ```
    /// use spmdc_grammar::ast::DTypeName;
    /// assert_eq!(DTypeName::meant_by("float32"), Some("f32"));
    /// assert_eq!(DTypeName::meant_by("f32"), None);
    /// ```
    pub fn meant_by(name: &str) -> Option<&'static str> {
        Some(match name {
            "boolean" | "bool_" | "pred" => "bool",
            "int8" | "byte" => "i8",
            "int16" | "short" => "i16",
            "int32" | "int" | "s32" => "i32",
            "int64" | "long" | "s64" => "i64",
            "uint8" => "u8",
            "uint16" => "u16",
            "uint32" | "uint" => "u32",
            "uint64" => "u64",
            "float16" | "half" | "fp16" => "f16",
            "bfloat16" => "bf16",
            "float32" | "float" | "fp32" | "single" => "f32",
            "float64" | "double" | "fp64" => "f64",
            "prng_key" | "PRNGKey" => "key",
            _ => return None,
        })
    }
}
