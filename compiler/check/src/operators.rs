//! Operators.

use super::Checker;
use super::layouts::{Way, choose};
use spmdc_grammar::ast::{InfixOp, PrefixOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::layout::sharding::Sharding;
use spmdc_ir::ops::call::term::Term;
use spmdc_ir::ops::{self, promote};
use spmdc_ir::program::Value;
use spmdc_ir::program::explicit::{ChoiceEdit, cost_of_move, spaced};

/// The expression with an ambiguous layout, in the syntax of the program.
pub(super) enum WrittenOperator<'a> {
    /// An operator, and the equivalent function if that takes `out=`.
    Operator(Option<&'a str>),
    Call(&'a str),
    Index,
    /// An assignment that begins with this value's name.
    Assignment(Value),
}

/// Whether a shipped function has this parameter for programs.
fn takes(function: &str, parameter: &str) -> bool {
    ops::builtin(function).is_some_and(|function| function.signature().takes(parameter))
}

impl Checker<'_> {
    pub(super) fn unary_terms(&mut self, op: PrefixOp, span: Span, arg: (Term, Span)) -> Term {
        if matches!(arg.0, Term::Poison) {
            return Term::Poison;
        }
        if arg.0.holds_complex() {
            return self.complex_prefix(op, span, arg);
        }
        self.build.span = span;
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
        self.build.span = span;
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
            let given = if is_part { vec![rhs] } else { vec![lhs, rhs] };
            self.with_choices(diagnostic, span, &written, &given)
        });
        self.or_report(result)
    }

    /// Adds to an error about an ambiguous layout the possible edits of the source.
    pub(super) fn with_choices(
        &mut self,
        diagnostic: Diagnostic,
        span: Span,
        written: &WrittenOperator<'_>,
        given: &[(Term, Span)],
    ) -> Diagnostic {
        // The caller of a function of the prelude adds the edits itself.
        if self.in_prelude() {
            return diagnostic;
        }
        let Some((operands, choices)) = self.build.conflict.take() else { return diagnostic };
        let arrays = self.arrays_in(given);
        let is_index = matches!(written, WrittenOperator::Index);
        let place = |operand: usize| {
            let value = operands.get(operand)?;
            let in_place = arrays.get(operand).filter(|_| arrays.len() == operands.len() || is_index);
            // One value may be given twice, and the call may have converted or cut its arguments.
            let itself = in_place.filter(|(array, _)| array == value);
            let elsewhere = || arrays.iter().find(|(array, _)| array == value);
            itself.or_else(elsewhere).or(in_place).copied()
        };
        let mut ways = Vec::new();
        for mut choice in choices {
            let edit = match choice.edit.clone() {
                ChoiceEdit::Reshard { operand, to } => place(operand).and_then(|(array, place)| {
                    let to = self.of_given(operands[operand], &to, array)?;
                    if self.build.ty(operands[operand]).array.len() != self.build.ty(array).array.len() {
                        choice.note = cost_of_move(self.build.ty(array), &to, &self.build.mesh).0;
                    }
                    choice.edit = ChoiceEdit::Reshard { operand, to };
                    let text = self.source(place);
                    let replacement = match written {
                        WrittenOperator::Assignment(target) if *target == array => {
                            let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
                            let (name, rest) = text.split_at(end);
                            if rest.starts_with('.') {
                                return None;
                            }
                            format!("{name} = {}; {text}", choice.text(Some(name), &self.build.mesh))
                        }
                        WrittenOperator::Operator(_)
                        | WrittenOperator::Call(_)
                        | WrittenOperator::Index
                        | WrittenOperator::Assignment(_) => choice.text(Some(text), &self.build.mesh),
                    };
                    Some((place, replacement))
                }),
                ChoiceEdit::Reshards(moves) => self.moved(span, &moves, &operands, place),
                ChoiceEdit::Out(_) => {
                    let out = choice.text(None, &self.build.mesh);
                    match (written, given) {
                        (WrittenOperator::Operator(Some(function)), [lhs, rhs]) => {
                            Some((span, format!("{function}({}, {}, {out})", self.source(lhs.1), self.source(rhs.1))))
                        }
                        (WrittenOperator::Call(function), _) if takes(function, "out") => {
                            self.source(span).strip_suffix(')').map(|call| (span, format!("{call}, {out})")))
                        }
                        // Without an axis, it flattens the array, and has no parameter for the layout of the flattened array.
                        (WrittenOperator::Call(function), _) if takes(function, "axis") => {
                            place(0).map(|(_, place)| (place, format!("ravel({}, {out})", self.source(place))))
                        }
                        _ => None,
                    }
                }
            };
            let Some((place, replacement)) = edit else { continue };
            // `ravel()` has no argument before the comma.
            let replacement = replacement.replace("(, out=", "(out=");
            ways.push(Way { place, replacement, at: "", note: choice.note, cost: choice.cost });
        }
        choose(diagnostic, ways)
    }

    /// The text of a call with some of its operands resharded.
    fn moved(
        &self,
        span: Span,
        moves: &[(usize, Sharding)],
        operands: &[Value],
        place: impl Fn(usize) -> Option<(Value, Span)>,
    ) -> Option<(Span, String)> {
        let mut edits = Vec::new();
        for (operand, to) in moves {
            let (array, place) = place(*operand)?;
            let to = self.of_given(operands[*operand], to, array)?;
            edits.push((place, format!("reshard({}, {})", self.source(place), spaced(&to, &self.build.mesh))));
        }
        edits.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        let mut text = self.source(span).to_string();
        for (place, replacement) in edits {
            let at = |offset: u32| offset.checked_sub(span.start).map(|offset| offset as usize);
            let (start, end) = (at(place.start)?, at(place.end)?);
            text.get(start..end)?;
            text.replace_range(start..end, &replacement);
        }
        Some((span, text))
    }

    /// The arrays among the arguments, including those in lists, each with its source position.
    fn arrays_in(&self, given: &[(Term, Span)]) -> Vec<(Value, Span)> {
        let mut arrays = Vec::new();
        for (term, span) in given {
            match (term, self.lists.get(span)) {
                (Term::Array(value), _) => arrays.push((*value, *span)),
                (Term::List(parts), Some(spans)) => {
                    let parts: Vec<(Term, Span)> = parts.iter().cloned().zip(spans.iter().copied()).collect();
                    arrays.extend(self.arrays_in(&parts));
                }
                _ => {}
            }
        }
        arrays
    }

    /// The sharding of an operand translated to the array that the user gave, which may lack dimensions of one element, or be
    /// larger.
    fn of_given(&self, operand: Value, to: &Sharding, given: Value) -> Option<Sharding> {
        let (from, wanted) = (self.build.ty(operand).shape(), self.build.ty(given).shape());
        if from == wanted {
            return Some(to.clone());
        }
        if from.len() == wanted.len() {
            let mut whole = self.build.ty(given).sharding.close();
            let own = &self.build.ty(operand).sharding.dims;
            for (dim, (own, to)) in whole.dims.iter_mut().zip(own.iter().zip(&to.dims)) {
                if !own.axes.is_empty() && to.axes.is_empty() {
                    dim.axes.clear();
                }
            }
            return Some(whole);
        }
        let kept = to.dims.iter().zip(from).filter(|(_, size)| **size != 1);
        let (dims, sizes): (Vec<_>, Vec<usize>) = kept.map(|(dim, size)| (dim.clone(), *size)).unzip();
        (sizes == wanted).then(|| Sharding { dims, ..to.clone() })
    }

    /// The source text of a span.
    pub(super) fn source(&self, span: Span) -> &str {
        let text = &self.set.file(span.file).text;
        text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}
