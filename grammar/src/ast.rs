//! The syntax tree. It knows no types and no functions; every node has a span.
//!
//! Dumps of later stages are read into the same tree: a dump is a program. A type name ends in `Node` if the typed program has a
//! type of the same meaning: [`StmtNode`] is a statement in the source.

use crate::span::Span;

/// A name with its source position.
#[derive(Clone, Debug, PartialEq)]
pub struct Ident {
    /// The text of the name.
    pub name: String,
    /// The source position of the name.
    pub span: Span,
}

/// A whole file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgramNode {
    /// `stage partitioned;` on the first line of a dump.
    pub stage: Option<Ident>,
    /// The items, in the order of the source.
    pub items: Vec<ItemNode>,
    /// Comments that are not documentation (`// ...`), in order, so that tools can keep them.
    pub comments: Vec<Comment>,
}

/// A comment that is not documentation: `// ...`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comment {
    /// Without the slashes and the space after them.
    pub text: String,
    /// Whether it follows code on the same line.
    pub trailing: bool,
    /// From the slashes to the end of the line.
    pub span: Span,
}

/// A mesh, constant, type, import or function with its documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemNode {
    /// `///` lines above the item, without the slashes.
    pub doc: Vec<String>,
    /// The declaration.
    pub kind: ItemKind,
    /// The whole item, without its documentation.
    pub span: Span,
}

/// The declaration of an item.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// `mesh (X = 2);`
    Mesh(MeshItem),
    /// `const N = 4096;`
    Const {
        /// The name of the constant.
        name: Ident,
        /// Its value.
        value: Expr,
    },
    /// `type Layer<I, O> = { ... };`
    Type {
        /// The name of the type.
        name: Ident,
        /// Its size parameters; empty without `<...>`.
        size_params: Vec<Ident>,
        /// The type that the name abbreviates.
        ty: TypeExpr,
    },
    /// `import "nn.spmd" as nn;` without `as`, the names are imported unqualified.
    Import {
        /// The path as written, escapes resolved.
        path: String,
        /// The source position of the path, with its quotes.
        path_span: Span,
        /// The name after `as`.
        alias: Option<Ident>,
    },
    /// `fn f(x) { ... }`
    Fn(FnItem),
    /// `test "sums are finite" { ... }`: a function without parameters whose name is `test "sums are finite"`, which no program can call.
    Test(FnItem),
}

/// `mesh (X = 2);` · `mesh other (a = 4) devices [0, 1, 2, 3];` · `mesh first = all[stage = 0];`
#[derive(Clone, Debug, PartialEq)]
pub struct MeshItem {
    /// None for the program's one unnamed mesh.
    pub name: Option<Ident>,
    /// Its axes, or the larger mesh that it is a part of.
    pub kind: MeshKind,
}

/// The definition of a mesh.
#[derive(Clone, Debug, PartialEq)]
pub enum MeshKind {
    /// `(X = 2, Y = 4) devices [3, 2, 1, 0]`
    Axes {
        /// The axes, major to minor.
        axes: Vec<MeshAxisNode>,
        /// The device at each position of the mesh, row-major; None: in the order of their numbers.
        devices: Option<Vec<Expr>>,
    },
    /// `all[stage = 0]`
    Sub {
        /// The larger mesh.
        of: Ident,
        /// The fixed axes of the larger mesh, with their coordinates.
        fixed: Vec<(Ident, Expr)>,
    },
}

/// One axis of a mesh: `X = 2`, `X: explicit = 2`.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshAxisNode {
    /// The name of the axis.
    pub name: Ident,
    /// The axis type; None for `auto`.
    pub kind: Option<(AxisKind, Span)>,
    /// The number of devices along it.
    pub size: Expr,
}

/// The axis type: who decides shardings along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// `auto`: the compiler decides.
    Auto,
    /// `explicit`: the types of the program decide.
    Explicit,
    /// `manual`: functions are written per device along the axis.
    Manual,
}

impl AxisKind {
    /// Its word in a program.
    pub fn name(self) -> &'static str {
        match self {
            AxisKind::Auto => "auto",
            AxisKind::Explicit => "explicit",
            AxisKind::Manual => "manual",
        }
    }
}

/// `manual(X, Y)`: who decides shardings along these axes inside of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionNode {
    /// Who decides.
    pub kind: AxisKind,
    /// The axes; empty for all of the mesh.
    pub axes: Vec<Ident>,
}

/// `fn f<N>(x: f32[N], lr = 0.1) -> f32[N] { ... }`
#[derive(Clone, Debug, PartialEq)]
pub struct FnItem {
    /// `manual(X, Y)`, `auto(X)` or `explicit(X)` before `fn`; None for an ordinary function.
    pub region: Option<RegionNode>,
    /// The name of the function.
    pub name: Ident,
    /// `<N, T>`: parameters for sizes and element types, inferred from arguments; empty without `<...>`.
    pub size_params: Vec<Ident>,
    /// The parameters, in order.
    pub params: Vec<ParamNode>,
    /// The type after `->`, if given.
    pub ret: Option<TypeExpr>,
    /// The body; its value is the result.
    pub body: BlockNode,
}

impl FnItem {
    /// Whether it is a `manual` function.
    pub fn is_manual(&self) -> bool {
        self.region.as_ref().is_some_and(|region| region.kind == AxisKind::Manual)
    }
}

/// A parameter of a function or lambda: `x`, `(a, b)`, `x: f32[4]`, `lr = 0.1`.
#[derive(Clone, Debug, PartialEq)]
pub struct ParamNode {
    /// The pattern that the argument is bound to.
    pub pattern: PatternNode,
    /// The type after the colon, if given.
    pub ty: Option<TypeExpr>,
    /// `lr = 0.1`: the value if a call passes none. Never in a lambda.
    pub default: Option<Expr>,
    /// From the pattern to the type or default value.
    pub span: Span,
}

/// Statements, then an optional value: `{ let y = f(x); y * 2 }`.
///
/// An expression without a value ends a block as a statement: `{ while c { .. } }` has one statement and no value. The same holds for a
/// `for` without `collect`, an `if` without `else`, and an `if` or block that itself has no value.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockNode {
    /// The statements, in order.
    pub stmts: Vec<StmtNode>,
    /// The last expression, without `;`.
    pub value: Option<Box<Expr>>,
    /// From brace to brace.
    pub span: Span,
}

/// A statement in the source.
#[derive(Clone, Debug, PartialEq)]
pub struct StmtNode {
    /// The kind of statement.
    pub kind: StmtNodeKind,
    /// The whole statement, with its `;` if it has one.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtNodeKind {
    /// `let x = e;` · `let mut x = e;` · `let (a, b): T = e;`
    Let {
        /// Whether `mut` is given.
        mutable: bool,
        /// The pattern that the value is bound to.
        pattern: PatternNode,
        /// The type after the colon, if given.
        ty: Option<TypeExpr>,
        /// The value.
        value: Expr,
    },
    /// `u = e;` · `u[0, :] = e;` · `u[i] += e;` · `p.w = e;`; `op` is the operator before `=`.
    Assign {
        /// A name, index or field; without `op` also `_`, a tuple or a struct.
        target: Expr,
        /// None for a plain `=`.
        op: Option<InfixOp>,
        /// The value, or the right operand of `op`.
        value: Expr,
    },
    /// An expression for its effect, or a loop or `if` used as a statement.
    Expr(Expr),
}

/// The target of a binding.
#[derive(Clone, Debug, PartialEq)]
pub struct PatternNode {
    /// The kind of pattern.
    pub kind: PatternKind,
    /// The whole pattern.
    pub span: Span,
}

/// The kinds of patterns.
#[derive(Clone, Debug, PartialEq)]
pub enum PatternKind {
    /// `x`
    Name(String),
    /// `_`
    Wildcard,
    /// `()`, `(a,)`, `(a, b)`
    Tuple(Vec<PatternNode>),
    /// `{ w, b: bias }`; a field without a pattern binds its own name.
    Struct(Vec<(Ident, Option<PatternNode>)>),
}

/// An expression. Parentheses have no node.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// The whole expression, with parentheses around it.
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// The digits as written, underscores removed: `12`, `0xff`.
    Int(u64),
    /// The text, underscores removed, so that it is rounded once from the decimal to its type.
    Float(String),
    /// `true`, `false`
    Bool(bool),
    /// `"{}"`, escapes resolved.
    Str(String),
    /// `x`: a variable, function, constant, type, module or axis.
    Name(String),
    /// `_` in a call, for "nothing here": `in_axes=(0, _)`.
    Wildcard,
    /// `None` among indices: a new dimension.
    None,
    /// `-x`, `!x`
    Unary {
        /// The operator.
        op: PrefixOp,
        /// The operand.
        arg: Box<Expr>,
    },
    /// `x + y`
    Binary {
        /// The operator.
        op: InfixOp,
        /// The source position of the operator.
        op_span: Span,
        /// The left operand.
        lhs: Box<Expr>,
        /// The right operand.
        rhs: Box<Expr>,
    },
    /// `f(x, axis=0)`, `f32(x)` (callee is a type), `grad(f)(x)`; a method `x.sum(axis=0)` is a call of a field.
    Call {
        /// The called expression.
        callee: Box<Expr>,
        /// The arguments, in the order of the source.
        args: Vec<ArgNode>,
    },
    /// `x[0, 1:-1]`
    Index {
        /// The indexed expression.
        base: Box<Expr>,
        /// At least one.
        indices: Vec<IndexNode>,
    },
    /// `p.w`, `nn.relu`, `x.shape`
    Field {
        /// The expression before the dot.
        base: Box<Expr>,
        /// The name after the dot.
        name: Ident,
    },
    /// `t.0`
    TupleField {
        /// The tuple.
        base: Box<Expr>,
        /// The number after the dot, from 0 on; `usize::MAX` for a larger one.
        index: usize,
        /// The source position of that number.
        index_span: Span,
    },
    /// `|a, g| a - g`
    Lambda {
        /// The parameters; empty for `|| e`.
        params: Vec<ParamNode>,
        /// The value.
        body: Box<Expr>,
    },
    /// `()`, `(a,)`, `(a, b)`
    Tuple(Vec<Expr>),
    /// `[a, b]`
    List(Vec<Expr>),
    /// `{ w: a, b }`; a field without a value takes the variable of its name. A single `{ w }` is a block; write `{ w, }`.
    Struct(Vec<(Ident, Option<Expr>)>),
    /// `{ let y = f(x); y * 2 }`
    Block(BlockNode),
    /// `if c { a } else { b }`
    If {
        /// The condition.
        cond: Box<Expr>,
        /// The value if the condition is true.
        then: BlockNode,
        /// A block, or another `if`; None without `else`.
        otherwise: Option<Box<Expr>>,
    },
    /// `for i in 0..n step 2 collect { ... }`
    For {
        /// The pattern that the counter is bound to.
        pattern: PatternNode,
        /// The first value of the counter.
        start: Box<Expr>,
        /// The exclusive end of the counter.
        end: Box<Expr>,
        /// `step 2`; None for 1.
        step: Option<Box<Expr>>,
        /// Whether `collect` is given: the values of the trips are stacked.
        collect: bool,
        /// One trip.
        body: BlockNode,
    },
    /// `while c { ... }`
    While {
        /// The condition, computed before each trip.
        cond: Box<Expr>,
        /// One trip.
        body: BlockNode,
    },
    /// `P(X, _, (Y, Z), ?, unreduced=Y, reduced=Z)`
    Sharding(ShardingExpr),
    /// A type in the position of a value: `zeros(f32[3, 4])`, `cast(x, bf16)`.
    Type(Box<TypeExpr>),
}

/// One argument of a call: `x`, `axis=0`.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgNode {
    /// The keyword, as in `axis=0`.
    pub name: Option<Ident>,
    /// The value.
    pub value: Expr,
}

/// One entry between the brackets of an index.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a program has few slices, and matching on them is frequent")]
pub enum IndexNode {
    /// `i`, `None`, or an array of indices.
    Expr(Expr),
    /// `1:-1`, `::2`, `:`
    Slice {
        /// The first index; None: the first element, or the last one for a negative step.
        start: Option<Expr>,
        /// The slice ends before this index; None: it includes all that follow.
        stop: Option<Expr>,
        /// The step; None for 1.
        step: Option<Expr>,
        /// The whole slice.
        span: Span,
    },
    /// `...`
    Ellipsis(Span),
}

impl IndexNode {
    /// The expressions in it: an index, or the bounds and the step of a slice.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        let exprs = match self {
            IndexNode::Expr(expr) => [Some(expr), None, None],
            IndexNode::Slice { start, stop, step, .. } => [start.as_ref(), stop.as_ref(), step.as_ref()],
            IndexNode::Ellipsis(_) => [None; 3],
        };
        exprs.into_iter().flatten()
    }
}

/// The operators with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrefixOp {
    /// `-x`
    Neg,
    /// `!x`
    Not,
}

impl PrefixOp {
    /// The operator in the source.
    pub fn symbol(self) -> &'static str {
        match self {
            PrefixOp::Neg => "-",
            PrefixOp::Not => "!",
        }
    }
}

/// The operators with two operands, in the order of the reference, loosest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InfixOp {
    /// `x || y`
    Or,
    /// `x && y`
    And,
    /// `x == y`
    Eq,
    /// `x != y`
    Ne,
    /// `x < y`
    Lt,
    /// `x <= y`
    Le,
    /// `x > y`
    Gt,
    /// `x >= y`
    Ge,
    /// `x | y`
    BitOr,
    /// `x ^ y`
    BitXor,
    /// `x & y`
    BitAnd,
    /// `x << y`
    Shl,
    /// `x >> y`
    Shr,
    /// `x + y`
    Add,
    /// `x - y`
    Sub,
    /// `x * y`
    Mul,
    /// `x / y`
    Div,
    /// `x // y`: the quotient, rounded down.
    FloorDiv,
    /// `x % y`: the remainder, with the sign of the divisor.
    Rem,
    /// `x @ y`
    MatMul,
    /// `x ** y`
    Pow,
}

impl InfixOp {
    /// The operator in the source.
    pub fn symbol(self) -> &'static str {
        match self {
            InfixOp::Or => "||",
            InfixOp::And => "&&",
            InfixOp::Eq => "==",
            InfixOp::Ne => "!=",
            InfixOp::Lt => "<",
            InfixOp::Le => "<=",
            InfixOp::Gt => ">",
            InfixOp::Ge => ">=",
            InfixOp::BitOr => "|",
            InfixOp::BitXor => "^",
            InfixOp::BitAnd => "&",
            InfixOp::Shl => "<<",
            InfixOp::Shr => ">>",
            InfixOp::Add => "+",
            InfixOp::Sub => "-",
            InfixOp::Mul => "*",
            InfixOp::Div => "/",
            InfixOp::FloorDiv => "//",
            InfixOp::Rem => "%",
            InfixOp::MatMul => "@",
            InfixOp::Pow => "**",
        }
    }
}

/// `P(...)`: for each dimension the axes, major to minor, or open.
#[derive(Clone, Debug, PartialEq)]
pub struct ShardingExpr {
    /// One entry for each dimension, outermost first.
    pub dims: Vec<DimAxes>,
    /// The axes along which the value is unreduced.
    pub unreduced: Vec<Ident>,
    /// The axes along which the value is reduced.
    pub reduced: Vec<Ident>,
    /// From `P(` to the parenthesis.
    pub span: Span,
}

/// The split of one dimension: `X`, `(X, Y)`, `_`, `?`, `(X, ?)`.
#[derive(Clone, Debug, PartialEq)]
pub struct DimAxes {
    /// The axes that split it, major to minor; empty for `_` and `?`.
    pub axes: Vec<Ident>,
    /// `?`, or `(X, ?)` after axes: the compiler may add axes.
    pub open: bool,
    /// An alignment, in dumps only.
    pub alignment: Option<AlignmentNode>,
    /// The whole entry.
    pub span: Span,
}

/// `X/32+1:2`: element `i` of the dimension is on the device of element `1 + 2 * i` of a dimension of 32 elements that is split over X.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AlignmentNode {
    /// Elements of the other dimension.
    pub size: u64,
    /// The index of element 0 in the other dimension; negative if it is before its start.
    pub start: i64,
    /// The distance between neighbours in the other dimension; 1 by default.
    pub step: u64,
}

/// A type in the source. Parentheses have no node.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeExpr {
    /// The kind of type.
    pub kind: TypeExprKind,
    /// The whole type.
    pub span: Span,
}

/// The kinds of types.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeExprKind {
    /// `f32`, `f32[4@X, 8]{U:Y}{V:X} on first`, `T[N]`
    Array {
        /// The element type.
        dtype: ElementType,
        /// The dimensions, outermost first; empty for a scalar.
        dims: Vec<DimExpr>,
        /// `{U:Y}`: the axes along which the value is unreduced.
        unreduced: Vec<Ident>,
        /// `{R:Y}`: the axes along which the value is reduced.
        reduced: Vec<Ident>,
        /// `{V:X}`: the axes along which the value varies.
        varying: Vec<Ident>,
        /// `{T:X}` in dumps: the axes that the function around turns.
        turned: Vec<Ident>,
        /// `on first`; None without `on`.
        mesh: Option<Ident>,
    },
    /// `()`, `(f32[4],)`, `(f32[4], key)`
    Tuple(Vec<TypeExpr>),
    /// `{ w: f32[4, 8], b: f32[8] }`
    Struct(Vec<(Ident, TypeExpr)>),
    /// `Layer<I, O>`, `nn.Layer<I, O>`
    Named {
        /// The module before the dot.
        module: Option<Ident>,
        /// The name of the type, or of an element type parameter.
        name: Ident,
        /// The arguments of the size parameters; empty without `<...>`.
        args: Vec<Expr>,
    },
    /// `stream u8[60000, 784]`: an array that stays in its file; of a parameter only.
    Stream(Box<TypeExpr>),
    /// `Layer<64, 8> on first`: a tuple, struct or named type placed as a whole; an array keeps its own `mesh`.
    On {
        /// The type without `on`.
        ty: Box<TypeExpr>,
        /// The mesh after `on`.
        mesh: Ident,
    },
}

/// One dimension of an array type: `4`, `N@X`, `2 * M@(X, ?)`.
#[derive(Clone, Debug, PartialEq)]
pub struct DimExpr {
    /// Integers, names (`N`, `nn.N`), `+ - * / // %`, unary minus and parentheses; `@` ends it.
    pub size: Expr,
    /// None if the type has no layout for this dimension; `4@_` is an empty list.
    pub axes: Option<DimAxes>,
}

/// The element type of an array in the source.
#[derive(Clone, Debug, PartialEq)]
pub enum ElementType {
    /// `f32`
    Name(DTypeName),
    /// A parameter of the function, followed by dimensions; alone it is a [`TypeExprKind::Named`].
    Param(Ident),
}

/// The element types by their names in the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DTypeName {
    /// `bool`
    Bool,
    /// `i8`
    I8,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `u8`
    U8,
    /// `u16`
    U16,
    /// `u32`
    U32,
    /// `u64`
    U64,
    /// `f8e4m3`
    F8e4m3,
    /// `f8e5m2`
    F8e5m2,
    /// `f16`
    F16,
    /// `bf16`
    Bf16,
    /// `f32`
    F32,
    /// `f64`
    F64,
    /// `c64`
    C64,
    /// `c128`
    C128,
    /// `key`: a random key.
    Key,
}

impl DTypeName {
    /// Every element type with its name, in the order of the variants.
    pub const ALL: &[(DTypeName, &'static str)] = &[
        (DTypeName::Bool, "bool"),
        (DTypeName::I8, "i8"),
        (DTypeName::I16, "i16"),
        (DTypeName::I32, "i32"),
        (DTypeName::I64, "i64"),
        (DTypeName::U8, "u8"),
        (DTypeName::U16, "u16"),
        (DTypeName::U32, "u32"),
        (DTypeName::U64, "u64"),
        (DTypeName::F8e4m3, "f8e4m3"),
        (DTypeName::F8e5m2, "f8e5m2"),
        (DTypeName::F16, "f16"),
        (DTypeName::Bf16, "bf16"),
        (DTypeName::F32, "f32"),
        (DTypeName::F64, "f64"),
        (DTypeName::C64, "c64"),
        (DTypeName::C128, "c128"),
        (DTypeName::Key, "key"),
    ];

    /// The name in the language.
    pub fn name(self) -> &'static str {
        DTypeName::ALL[self as usize].1
    }

    /// The element type of this name.
    pub fn named(name: &str) -> Option<DTypeName> {
        DTypeName::ALL.iter().find(|(_, known)| *known == name).map(|(dtype, _)| *dtype)
    }

    /// The element type that has this name in other languages.
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
            "float8_e4m3fn" | "float8_e4m3" | "e4m3" => "f8e4m3",
            "float8_e5m2" | "e5m2" => "f8e5m2",
            "float16" | "half" | "fp16" => "f16",
            "bfloat16" => "bf16",
            "float32" | "float" | "fp32" | "single" => "f32",
            "float64" | "double" | "fp64" => "f64",
            "complex64" | "cfloat" => "c64",
            "complex128" | "cdouble" => "c128",
            "prng_key" | "PRNGKey" => "key",
            _ => return None,
        })
    }
}
