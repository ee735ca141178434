//! Indexing.

use super::Checker;
use super::errors::items::not_yet;
use super::term::Term;
use crate::ir::Value;
use spmdc_grammar::ast::{BinaryOp, Index};
use spmdc_grammar::span::Span;

impl Checker<'_> {
    pub(super) fn index(&mut self, term: Term, indices: &[Index], span: Span, _base: Span) -> Term {
        match (&term, indices) {
            (Term::Poison, _) => Term::Poison,
            (Term::Tuple(parts) | Term::List(parts), [Index::Expr(index)]) => {
                let at = self.expr(index);
                self.index_tuple(&parts.clone(), &at, index.span)
            }
            _ => self.report(not_yet(span, "indexing")),
        }
    }

    pub(super) fn element(&mut self, _: Value, _: usize, span: Span) -> Term {
        self.report(not_yet(span, "taking an array apart"))
    }

    pub(super) fn index_assign(
        &mut self,
        _: Term,
        _: &[Index],
        _: Option<BinaryOp>,
        _: Term,
        _: Span,
        span: Span,
    ) -> Term {
        self.report(not_yet(span, "assignment to elements"))
    }
}
