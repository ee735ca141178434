//! Removes the spans of a tree, so that trees of different texts can be compared.
//!
//! ```
//! use spmdc_grammar::{parse, span::FileId, strip_spans::strip_spans};
//!
//! let [mut a, mut b] = ["const N = 1+2;", "const N = (1 + 2);"].map(|text| parse(text, FileId::default()).0);
//! assert_ne!(a, b);
//! strip_spans(&mut a);
//! strip_spans(&mut b);
//! assert_eq!(a, b);
//! ```

use crate::ast::*;
use crate::span::Span;

/// Sets every span of the tree to the empty one at the beginning of the first file.
pub fn strip_spans(program: &mut ProgramNode) {
    program.place(Span::default());
}

/// Sets every span of a function to one position, at which its findings are then reported.
pub fn move_spans(function: &mut FnItem, to: Span) {
    function.place(to);
}

/// Every node names all of its fields below, so a new field cannot be forgotten.
trait PlaceSpans {
    fn place(&mut self, to: Span);
}

impl PlaceSpans for Span {
    fn place(&mut self, to: Span) {
        *self = to;
    }
}

impl<T: PlaceSpans> PlaceSpans for Vec<T> {
    fn place(&mut self, to: Span) {
        self.iter_mut().for_each(|part| part.place(to));
    }
}

impl<T: PlaceSpans> PlaceSpans for Option<T> {
    fn place(&mut self, to: Span) {
        self.iter_mut().for_each(|part| part.place(to));
    }
}

impl<T: PlaceSpans> PlaceSpans for Box<T> {
    fn place(&mut self, to: Span) {
        (**self).place(to);
    }
}

impl<A: PlaceSpans, B: PlaceSpans> PlaceSpans for (A, B) {
    fn place(&mut self, to: Span) {
        self.0.place(to);
        self.1.place(to);
    }
}

macro_rules! without_spans {
    ($($leaf:ty),*) => { $(impl PlaceSpans for $leaf { fn place(&mut self, _: Span) {} })* };
}

without_spans!(bool, u64, usize, String, AlignmentNode, AxisKind, DTypeName, PrefixOp, InfixOp);

macro_rules! structs {
    ($($name:ident { $($field:ident),* })*) => {
        $(impl PlaceSpans for $name {
            fn place(&mut self, to: Span) {
                let $name { $($field),* } = self;
                $($field.place(to);)*
            }
        })*
    };
}

structs! {
    Ident { name, span }
    ProgramNode { stage, items, comments }
    Comment { text, trailing, span }
    ItemNode { doc, kind, span }
    MeshItem { name, kind }
    MeshAxisNode { name, kind, size }
    FnItem { region, name, size_params, params, ret, body }
    RegionNode { kind, axes }
    ParamNode { pattern, ty, default, span }
    BlockNode { stmts, value, span }
    StmtNode { kind, span }
    PatternNode { kind, span }
    Expr { kind, span }
    ArgNode { name, value }
    ShardingExpr { dims, unreduced, reduced, span }
    DimAxes { axes, open, alignment, span }
    TypeExpr { kind, span }
    DimExpr { size, axes }
}

macro_rules! enums {
    ($($name:ident { $($variant:ident $(($part:ident))? $({ $($field:ident),* })?,)* })*) => {
        $(impl PlaceSpans for $name {
            fn place(&mut self, to: Span) {
                match self {
                    $($name::$variant $(($part))? $({ $($field),* })? => { $($part.place(to);)? $($($field.place(to);)*)? })*
                }
            }
        })*
    };
}

enums! {
    ItemKind {
        Mesh(mesh),
        Const { name, value },
        Type { name, size_params, ty },
        Import { path, path_span, alias },
        Fn(function),
    }
    MeshKind {
        Axes { axes, devices },
        Sub { of, fixed },
    }
    StmtNodeKind {
        Let { mutable, pattern, ty, value },
        Assign { target, op, value },
        Expr(expr),
    }
    PatternKind {
        Name(name),
        Wildcard,
        Tuple(parts),
        Struct(fields),
    }
    ExprKind {
        Int(value),
        Float(digits),
        Bool(value),
        Str(text),
        Name(name),
        Wildcard,
        None,
        Unary { op, arg },
        Binary { op, op_span, lhs, rhs },
        Call { callee, args },
        Index { base, indices },
        Field { base, name },
        TupleField { base, index, index_span },
        Lambda { params, body },
        Tuple(parts),
        List(parts),
        Struct(fields),
        Block(block),
        If { cond, then, otherwise },
        For { pattern, start, end, step, collect, body },
        While { cond, body },
        Sharding(sharding),
        Type(ty),
    }
    IndexNode {
        Expr(expr),
        Slice { start, stop, step, span },
        Ellipsis(span),
    }
    ElementType {
        Name(name),
        Param(name),
    }
    TypeExprKind {
        Array { dtype, dims, unreduced, reduced, varying, turned, mesh },
        Tuple(types),
        Struct(fields),
        Named { module, name, args },
        Stream(ty),
        On { ty, mesh },
    }
}
