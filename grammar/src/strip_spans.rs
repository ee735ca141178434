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
use crate::nodes::nodes;
use crate::span::Span;

/// Sets every span of the tree to the empty one at the beginning of the first file.
pub fn strip_spans(program: &mut ProgramNode) {
    program.place(Span::default());
}

/// Sets every span of a function to one position, at which its findings are then reported.
pub fn move_spans(function: &mut FnItem, to: Span) {
    function.place(to);
}

/// The fields of a node are those of [`nodes!`], and the patterns below name all of them, so a new field cannot be forgotten.
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

macro_rules! placed {
    (
        structs { $($name:ident { $($field:ident),* })* }
        enums { $($choice:ident { $($variant:ident $(($part:ident))? $({ $($of:ident),* })?,)* })* }
    ) => {
        $(impl PlaceSpans for $name {
            fn place(&mut self, to: Span) {
                let $name { $($field),* } = self;
                $($field.place(to);)*
            }
        })*
        $(impl PlaceSpans for $choice {
            fn place(&mut self, to: Span) {
                match self {
                    $($choice::$variant $(($part))? $({ $($of),* })? => { $($part.place(to);)? $($($of.place(to);)*)? })*
                }
            }
        })*
    };
}

nodes!(placed);
