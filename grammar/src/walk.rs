//! Visits all nodes of a tree.
//!
//! ```
//! use spmdc_grammar::ast::{Expr, ExprKind};
//! use spmdc_grammar::walk::{SyntaxNode, Walk};
//! use spmdc_grammar::{parse, span::FileId};
//!
//! let (program, _) = parse("fn f(x) { g(x) + g(2) }", FileId::default());
//! let mut calls = 0;
//! program.walk(&mut |node| calls += usize::from(matches!(node, SyntaxNode::Expr(Expr { kind: ExprKind::Call { .. }, .. }))));
//! assert_eq!(calls, 2);
//! ```

use crate::ast::*;
use crate::nodes::nodes;
use crate::span::Span;

/// A part of the tree whose nodes can be visited.
pub trait Walk {
    /// Calls `see` for this node and all nodes below it, each before its parts, in the order of the fields.
    fn walk<'a>(&'a self, see: &mut dyn FnMut(SyntaxNode<'a>));
}

impl<T: Walk> Walk for Vec<T> {
    fn walk<'a>(&'a self, see: &mut dyn FnMut(SyntaxNode<'a>)) {
        self.iter().for_each(|part| part.walk(see));
    }
}

impl<T: Walk> Walk for Option<T> {
    fn walk<'a>(&'a self, see: &mut dyn FnMut(SyntaxNode<'a>)) {
        self.iter().for_each(|part| part.walk(see));
    }
}

impl<T: Walk> Walk for Box<T> {
    fn walk<'a>(&'a self, see: &mut dyn FnMut(SyntaxNode<'a>)) {
        (**self).walk(see);
    }
}

impl<A: Walk, B: Walk> Walk for (A, B) {
    fn walk<'a>(&'a self, see: &mut dyn FnMut(SyntaxNode<'a>)) {
        self.0.walk(see);
        self.1.walk(see);
    }
}

macro_rules! leaves {
    ($($leaf:ty),*) => { $(impl Walk for $leaf { fn walk<'a>(&'a self, _: &mut dyn FnMut(SyntaxNode<'a>)) {} })* };
}

leaves!(bool, u64, usize, String, Span, AlignmentNode, AxisKind, DTypeName, PrefixOp, InfixOp);

macro_rules! walked {
    (
        structs { $($name:ident { $($field:ident),* })* }
        enums { $($choice:ident { $($variant:ident $(($part:ident))? $({ $($of:ident),* })?,)* })* }
    ) => {
        /// A node of the tree, of the type of the same name.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs)]
        pub enum SyntaxNode<'a> {
            $($name(&'a $name),)*
            $($choice(&'a $choice),)*
        }
        $(impl Walk for $name {
            fn walk<'a>(&'a self, see: &mut dyn FnMut(SyntaxNode<'a>)) {
                see(SyntaxNode::$name(self));
                let $name { $($field),* } = self;
                $($field.walk(see);)*
            }
        })*
        $(impl Walk for $choice {
            fn walk<'a>(&'a self, see: &mut dyn FnMut(SyntaxNode<'a>)) {
                see(SyntaxNode::$choice(self));
                match self {
                    $($choice::$variant $(($part))? $({ $($of),* })? => { $($part.walk(see);)? $($($of.walk(see);)*)? })*
                }
            }
        })*
    };
}

nodes!(walked);
