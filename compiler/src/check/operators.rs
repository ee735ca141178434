//! Operators.

use super::Checker;
use super::term::Term;
use crate::ir::Value;
use crate::ir::explicit::{Choice, Edit};
use crate::ir::sharding::Sharding;
use crate::ops::promote;
use spmdc_grammar::ast::{BinaryOp, UnaryOp};
use spmdc_grammar::diagnostic::Diagnostic;
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
        let function = (op == BinaryOp::MatMul).then_some("matmul");
        let result = result.map_err(|diagnostic| self.with_choices(diagnostic, span, function, &[lhs, rhs]));
        self.or_report(result)
    }

    /// Where a layout is ambiguous, the ways out as changes of the source. `function` is what an operator is called as.
    pub(super) fn with_choices(
        &mut self,
        mut diagnostic: Diagnostic,
        span: Span,
        function: Option<&str>,
        given: &[(Term, Span)],
    ) -> Diagnostic {
        let Some((operands, choices)) = self.build.conflict.take() else { return diagnostic };
        let place = |operand: usize| {
            let value = operands.get(operand)?;
            let same = given.iter().find(|(term, _)| matches!(term, Term::Array(given) if given == value));
            let is_operand = |(term, _): &&(Term, Span)| matches!(term, Term::Array(_) | Term::Int(_) | Term::Float(_));
            let by_position = given.get(operand).filter(is_operand).filter(|_| given.len() == operands.len());
            same.or(by_position).map(|(_, span)| *span)
        };
        let mut lines = Vec::new();
        for choice in &choices {
            let edit = match &choice.edit {
                Edit::Reshard { operand, to } => place(*operand).and_then(|place| {
                    let to = self.of_given(operands[*operand], to, place, given)?;
                    let choice = Choice { edit: Edit::Reshard { operand: *operand, to }, note: String::new() };
                    Some((place, choice.text(Some(self.source(place)), &self.build.mesh)))
                }),
                Edit::Out(_) => {
                    let out = choice.text(None, &self.build.mesh);
                    let call = match (function, given) {
                        (Some(function), [lhs, rhs]) => {
                            Some(format!("{function}({}, {}, {out})", self.source(lhs.1), self.source(rhs.1)))
                        }
                        _ => self.source(span).strip_suffix(')').map(|call| format!("{call}, {out})")),
                    };
                    call.map(|call| (span, call))
                }
            };
            let Some((place, replacement)) = edit else { continue };
            lines.push(format!("`{replacement}`: {}", choice.note));
            diagnostic = diagnostic.edit(place, replacement, choice.note.clone());
        }
        if lines.len() == choices.len() {
            diagnostic.help = Some(format!("the program must choose:\n{}", lines.join("\n")));
        }
        diagnostic
    }

    /// The sharding of an operand as one of the value that the user gave, which may lack dimensions of one element.
    fn of_given(&self, operand: Value, to: &Sharding, place: Span, given: &[(Term, Span)]) -> Option<Sharding> {
        let (Term::Array(given), _) = given.iter().find(|(_, span)| *span == place)? else { return Some(to.clone()) };
        let (from, wanted) = (self.build.ty(operand).shape(), self.build.ty(*given).shape());
        if from == wanted {
            return Some(to.clone());
        }
        let kept = to.dims.iter().zip(from).filter(|(_, size)| **size != 1);
        let (dims, sizes): (Vec<_>, Vec<usize>) = kept.map(|(dim, size)| (dim.clone(), *size)).unzip();
        (sizes == wanted).then(|| Sharding { dims, ..to.clone() })
    }

    /// The text of a place.
    fn source(&self, span: Span) -> &str {
        let text = &self.set.file(span.file).text;
        text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}
