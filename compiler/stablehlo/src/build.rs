//! Short forms for nodes of the syntax tree.

use crate::tree::{MlirElement, TensorType};
use spmdc_grammar::ast::{
    ArgNode, BlockNode, DTypeName, DimExpr, ElementType, Expr, ExprKind, Ident, IndexNode, InfixOp, ParamNode,
    PatternKind, PatternNode, PrefixOp, StmtNode, StmtNodeKind, TypeExpr, TypeExprKind,
};
use spmdc_grammar::span::Span;

/// Makes the nodes of one operation, which have its place.
#[derive(Clone, Copy)]
pub struct Build(pub Span);

impl Build {
    pub fn expr(self, kind: ExprKind) -> Expr {
        Expr { kind, span: self.0 }
    }

    pub fn ident(self, name: impl Into<String>) -> Ident {
        Ident { name: name.into(), span: self.0 }
    }

    pub fn name(self, name: impl Into<String>) -> Expr {
        self.expr(ExprKind::Name(name.into()))
    }

    pub fn int(self, value: i128) -> Expr {
        let magnitude = self.expr(ExprKind::Int(value.unsigned_abs() as u64));
        if value < 0 { self.negative(magnitude) } else { magnitude }
    }

    pub fn negative(self, value: Expr) -> Expr {
        self.expr(ExprKind::Unary { op: PrefixOp::Neg, arg: Box::new(value) })
    }

    pub fn not(self, value: Expr) -> Expr {
        self.expr(ExprKind::Unary { op: PrefixOp::Not, arg: Box::new(value) })
    }

    pub fn float(self, text: &str) -> Expr {
        match text.strip_prefix('-') {
            Some(magnitude) => self.negative(self.expr(ExprKind::Float(magnitude.to_string()))),
            None => self.expr(ExprKind::Float(text.to_string())),
        }
    }

    pub fn text(self, text: &str) -> Expr {
        self.expr(ExprKind::Str(text.to_string()))
    }

    pub fn flag(self, value: bool) -> Expr {
        self.expr(ExprKind::Bool(value))
    }

    pub fn tuple(self, items: Vec<Expr>) -> Expr {
        self.expr(ExprKind::Tuple(items))
    }

    /// Several values as a tuple, or the only one.
    pub fn together(self, mut values: Vec<Expr>) -> Expr {
        match values.len() {
            1 => values.pop().expect("there is one"),
            _ => self.tuple(values),
        }
    }

    /// The type of several values, or of the only one.
    pub fn types_together(self, mut types: Vec<TypeExpr>) -> TypeExpr {
        match types.len() {
            1 => types.pop().expect("there is one"),
            _ => TypeExpr { kind: TypeExprKind::Tuple(types), span: self.0 },
        }
    }

    pub fn list(self, items: Vec<Expr>) -> Expr {
        self.expr(ExprKind::List(items))
    }

    /// `(1, 2)`
    pub fn ints(self, values: impl IntoIterator<Item = usize>) -> Expr {
        self.tuple(values.into_iter().map(|value| self.int(value as i128)).collect())
    }

    pub fn binary(self, op: InfixOp, lhs: Expr, rhs: Expr) -> Expr {
        self.expr(ExprKind::Binary { op, op_span: self.0, lhs: Box::new(lhs), rhs: Box::new(rhs) })
    }

    /// `f(args)`
    pub fn call(self, function: &str, args: impl IntoIterator<Item = Expr>) -> Expr {
        self.call_with(function, args, [])
    }

    /// `f(args, name=value)`
    pub fn call_with<'n>(
        self,
        function: &str,
        args: impl IntoIterator<Item = Expr>,
        named: impl IntoIterator<Item = (&'n str, Expr)>,
    ) -> Expr {
        self.call_of(self.name(function), args, named)
    }

    pub fn call_of<'n>(
        self,
        callee: Expr,
        args: impl IntoIterator<Item = Expr>,
        named: impl IntoIterator<Item = (&'n str, Expr)>,
    ) -> Expr {
        let args = args.into_iter().map(|value| ArgNode { name: None, value });
        let named = named.into_iter().map(|(name, value)| ArgNode { name: Some(self.ident(name)), value });
        self.expr(ExprKind::Call { callee: Box::new(callee), args: args.chain(named).collect() })
    }

    /// `f32(value)`
    pub fn cast(self, element: MlirElement, value: Expr) -> Expr {
        self.call_of(self.expr(ExprKind::Type(Box::new(self.element(element)))), [value], [])
    }

    pub fn element(self, element: MlirElement) -> TypeExpr {
        self.ty(&TensorType { shape: Vec::new(), element })
    }

    /// `f32[8, 16]`
    pub fn ty(self, ty: &TensorType) -> TypeExpr {
        let size = |&size: &usize| DimExpr { size: self.int(size as i128), axes: None };
        self.ty_of(ty.element, ty.shape.iter().map(size).collect())
    }

    pub fn ty_of(self, element: MlirElement, dims: Vec<DimExpr>) -> TypeExpr {
        let dtype = DTypeName::named(element.name()).expect("every element type has its name in the language");
        let kind = TypeExprKind::Array {
            dtype: ElementType::Name(dtype),
            dims,
            unreduced: Vec::new(),
            reduced: Vec::new(),
            varying: Vec::new(),
            turned: Vec::new(),
            mesh: None,
        };
        TypeExpr { kind, span: self.0 }
    }

    /// The type as a value: `zeros(f32[8])`.
    pub fn type_value(self, ty: &TensorType) -> Expr {
        self.expr(ExprKind::Type(Box::new(self.ty(ty))))
    }

    pub fn pattern(self, name: &str) -> PatternNode {
        PatternNode { kind: PatternKind::Name(name.to_string()), span: self.0 }
    }

    pub fn patterns(self, names: &[String]) -> PatternNode {
        match names {
            [one] => self.pattern(one),
            _ => {
                let all = names.iter().map(|name| self.pattern(name)).collect();
                PatternNode { kind: PatternKind::Tuple(all), span: self.0 }
            }
        }
    }

    pub fn param(self, name: &str, ty: Option<TypeExpr>) -> ParamNode {
        ParamNode { pattern: self.pattern(name), ty, default: None, span: self.0 }
    }

    /// `let pattern = value;`
    pub fn bind(self, pattern: PatternNode, value: Expr) -> StmtNode {
        let kind = StmtNodeKind::Let { mutable: false, pattern, ty: None, value };
        StmtNode { kind, span: self.0 }
    }

    /// `let mut name = value;`
    pub fn bind_mutable(self, name: &str, value: Expr) -> StmtNode {
        let kind = StmtNodeKind::Let { mutable: true, pattern: self.pattern(name), ty: None, value };
        StmtNode { kind, span: self.0 }
    }

    /// `name = value;`
    pub fn assign(self, name: &str, value: Expr) -> StmtNode {
        StmtNode { kind: StmtNodeKind::Assign { target: self.name(name), op: None, value }, span: self.0 }
    }

    pub fn block(self, stmts: Vec<StmtNode>, value: Option<Expr>) -> BlockNode {
        BlockNode { stmts, value: value.map(Box::new), span: self.0 }
    }

    /// `|a, b| body`
    pub fn lambda(self, params: &[String], body: Expr) -> Expr {
        let params = params.iter().map(|name| self.param(name, None)).collect();
        self.expr(ExprKind::Lambda { params, body: Box::new(body) })
    }

    /// `start:stop:step` of a dimension of this size; `:` for all of it.
    pub fn range(self, (start, stop, step): (usize, usize, usize), size: usize) -> IndexNode {
        IndexNode::Slice {
            start: (start != 0).then(|| self.int(start as i128)),
            stop: (stop != size).then(|| self.int(stop as i128)),
            step: (step != 1).then(|| self.int(step as i128)),
            span: self.0,
        }
    }

    pub fn index(self, base: Expr, indices: Vec<IndexNode>) -> Expr {
        self.expr(ExprKind::Index { base: Box::new(base), indices })
    }

    /// `t.0`
    pub fn part(self, base: Expr, index: usize) -> Expr {
        self.expr(ExprKind::TupleField { base: Box::new(base), index, index_span: self.0 })
    }
}
