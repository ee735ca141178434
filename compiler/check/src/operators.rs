//! Operators.

use super::Checker;
use super::choices::{WrittenOperator, with_terms};
use spmdc_functions::builtin;
use spmdc_grammar::ast::{InfixOp, PrefixOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::term::Term;
use spmdc_ops::{self, promote};

impl Checker<'_> {
    pub(super) fn unary_terms(&mut self, op: PrefixOp, span: Span, arg: (Term, Span)) -> Term {
        if matches!(arg.0, Term::Poison) {
            return Term::Poison;
        }
        if arg.0.holds_complex() {
            return self.complex_prefix(op, span, arg);
        }
        self.build.set_span(span);
        let result = promote::unary(&mut self.build, op, (&arg.0, arg.1));
        self.or_report(result)
    }

    pub(super) fn binary_terms(&mut self, op: InfixOp, span: Span, lhs: (Term, Span), rhs: (Term, Span)) -> Term {
        if matches!(lhs.0, Term::Poison) || matches!(rhs.0, Term::Poison) {
            return Term::Poison;
        }
        if lhs.0.holds_complex() || rhs.0.holds_complex() {
            return self.complex_infix(op, span, lhs, rhs);
        }
        self.build.set_span(span);
        let result = promote::binary(&mut self.build, op, (&lhs.0, lhs.1), (&rhs.0, rhs.1));
        let result = result.map_err(|diagnostic| {
            if op == InfixOp::BitXor && diagnostic.code == Code::E0215 {
                return diagnostic.help("`^` is for bits; a power is `x ** n`");
            }
            // `c += b;`, and `c[0] += b;`, where only the other operand can be resharded in place.
            let written = if let (Term::Array(target), true) = (&lhs.0, lhs.1 == span) {
                WrittenOperator::Assignment(*target)
            } else {
                WrittenOperator::Operator((op == InfixOp::MatMul).then_some("matmul"))
            };
            let is_part = lhs.1 != span && self.source(span).ends_with(';');
            let given = if is_part { vec![rhs] } else { vec![lhs.clone(), rhs] };
            self.with_choices(diagnostic, span, &written, &given, &|checker, moved, out| {
                let (left, right) = match moved {
                    [left, right] => (left, right),
                    [right] => (&lhs, right),
                    _ => unreachable!("an operator has two operands"),
                };
                if out.is_some() {
                    let args = [left, right].map(|(term, span)| Arg { name: None, term: term.clone(), span: *span });
                    let moved = [left.clone(), right.clone()];
                    let matmul = builtin("matmul").expect("it is what the operator calls");
                    return checker.called(&matmul, with_terms(&args, &moved, out, span), span);
                }
                promote::binary(&mut checker.build, op, (&left.0, left.1), (&right.0, right.1))
            })
        });
        self.or_report(result)
    }
}
