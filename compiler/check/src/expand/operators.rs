//! Operators.

use crate::Checker;
use crate::types::choices::{WrittenOperator, with_terms};
use spmdc_functions::builtin;
use spmdc_functions::operators;
use spmdc_grammar::ast::{InfixOp, PrefixOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::term::Term;
use spmdc_ir::shape;

impl Checker<'_> {
    pub(crate) fn unary_terms(&mut self, op: PrefixOp, span: Span, arg: (Term, Span)) -> Term {
        if matches!(arg.0, Term::Poison) {
            return Term::Poison;
        }
        if arg.0.holds_complex() {
            return self.complex_prefix(op, span, arg);
        }
        self.build.set_span(span);
        let result = operators::unary(&mut self.build, op, (&arg.0, arg.1));
        self.or_report(result)
    }

    pub(crate) fn binary_terms(&mut self, op: InfixOp, span: Span, lhs: (Term, Span), rhs: (Term, Span)) -> Term {
        if matches!(lhs.0, Term::Poison) || matches!(rhs.0, Term::Poison) {
            return Term::Poison;
        }
        if lhs.0.holds_complex() || rhs.0.holds_complex() {
            return self.complex_infix(op, span, lhs, rhs);
        }
        self.build.set_span(span);
        let result = operators::binary(&mut self.build, op, (&lhs.0, lhs.1), (&rhs.0, rhs.1));
        let result = result.map_err(|diagnostic| {
            if op == InfixOp::BitXor && diagnostic.code == Code::E0215 {
                return diagnostic.help("`^` is for bits; a power is `x ** n`");
            }
            if diagnostic.code == Code::E0204 && op != InfixOp::MatMul {
                return self.with_added_dimension(diagnostic, op, (&lhs, &rhs), span);
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
                    let matmul = builtin("matmul").expect("`@` calls `matmul`");
                    return checker.called(&matmul, with_terms(&args, &moved, out, span), span);
                }
                operators::binary(&mut checker.build, op, (&left.0, left.1), (&right.0, right.1))
            })
        });
        self.or_report(result)
    }

    /// Shapes that do not broadcast, with the operand of lower rank written so that they do, if one more dimension suffices.
    fn with_added_dimension(
        &self,
        diagnostic: Diagnostic,
        op: InfixOp,
        (lhs, rhs): (&(Term, Span), &(Term, Span)),
        span: Span,
    ) -> Diagnostic {
        let (Some(left), Some(right)) = (self.shape_of(&lhs.0), self.shape_of(&rhs.0)) else { return diagnostic };
        let is_left = left.len() < right.len();
        let (low, low_shape, high_shape) = if is_left { (lhs, left, right) } else { (rhs, right, left) };
        let fits = |at: &usize| {
            let mut wider = low_shape.clone();
            wider.insert(*at, 1);
            shape::broadcast(&[&wider, &high_shape]).is_ok()
        };
        // The assigned variable of `x += y` cannot be written differently.
        let is_written = low.1 != span && lhs.1 != span;
        let at = (1..=low_shape.len()).rev().find(|at| low_shape.len() < high_shape.len() && is_written && fits(at));
        let Some(at) = at else { return diagnostic };
        let index = vec![":"; at].into_iter().chain(["None"]).collect::<Vec<_>>().join(", ");
        let wider = format!("{}[{index}]", parenthesised(self.source(low.1)));
        let [left, right] = [lhs, rhs].map(|(_, span)| self.source(*span));
        let (left, right) = if is_left { (wider.as_str(), right) } else { (left, wider.as_str()) };
        let written = format!("{left} {} {right}", op.symbol());
        let mut help = format!("write `{written}`");
        let made_at = if let Term::Array(value) = &low.0 { self.build.info(*value).origin.span } else { low.1 };
        if let Some(reduction) = reduction(self.source(made_at)) {
            help.push_str(&format!(", or pass `keepdims=true` to `{reduction}`"));
        }
        diagnostic.help(help).edit(span, written, "adds a dimension of size 1")
    }
}

/// The text of an operand, in parentheses if it has operators.
fn parenthesised(text: &str) -> String {
    let mut depth = 0_usize;
    let is_simple = text.chars().all(|c| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > 0 || c.is_alphanumeric() || "_.)]".contains(c)
    });
    if is_simple { text.to_string() } else { format!("({text})") }
}

/// The function of a call that reduces dimensions and does not keep them.
fn reduction(text: &str) -> Option<&'static str> {
    let arguments_at = text.find('(')?;
    let callee = text[..arguments_at].rsplit(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    let function = builtin(callee)?;
    let takes = function.signature().params.iter().any(|param| param.name == "keepdims");
    (takes && text.contains("axis") && !text.contains("keepdims")).then_some(function.name)
}
