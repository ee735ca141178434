//! Operators.

use super::Checker;
use super::term::Term;
use crate::ops::promote;
use spmdc_grammar::ast::{BinaryOp, UnaryOp};
use spmdc_grammar::span::Span;

impl Checker<'_> {
    pub(super) fn unary_terms(&mut self, op: UnaryOp, span: Span, arg: (Term, Span)) -> Term {
        if matches!(arg.0, Term::Poison) {
            return Term::Poison;
        }
        self.build.span = span;
        let result = promote::unary(&mut self.build, op, (&arg.0, arg.1));
        self.or_report(result)
    }

    pub(super) fn binary_terms(&mut self, op: BinaryOp, span: Span, lhs: (Term, Span), rhs: (Term, Span)) -> Term {
        if matches!(lhs.0, Term::Poison) || matches!(rhs.0, Term::Poison) {
            return Term::Poison;
        }
        self.build.span = span;
        let result = promote::binary(&mut self.build, op, (&lhs.0, lhs.1), (&rhs.0, rhs.1));
        self.or_report(result)
    }
}
