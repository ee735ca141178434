//! The edits that resolve an ambiguous layout on explicit axes. Each edit is tried before it is listed: the expression is checked again with it,
//! and its statements are removed.
//!
//! An op proposes layouts for its operands and its result. A shipped function may compute its operands from the arguments of the call, and may be
//! ambiguous in several places, so an edit can need several arguments. If no proposal can be written, arguments are tried whole, and in the layouts
//! of other arguments.

use crate::Checker;
use crate::types::layouts::{LayoutEdit, choose};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::term::{ShardingTerm, Term};
use spmdc_ir::program::Value;
use spmdc_ir::program::choice::{Choice, ChoiceEdit, cost_of_move, spaced, then};
use spmdc_layout::sharding::Sharding;
use spmdc_ops::reshard::Reshard;

/// The expression with an ambiguous layout, in the syntax of the program.
pub(crate) enum WrittenOperator<'a> {
    /// An operator, and the equivalent function if that takes `out=`.
    Operator(Option<&'a str>),
    Call(&'a str),
    Index,
    /// An assignment that begins with this value's name.
    Assignment(Value),
}

/// Checks the expression with other operands, and with this layout of its result.
pub(crate) type Again<'r> =
    &'r dyn Fn(&mut Checker<'_>, &[(Term, Span)], Option<&Sharding>) -> Result<Term, Diagnostic>;

/// An expression with an ambiguous layout.
struct Ambiguous<'r> {
    span: Span,
    written: &'r WrittenOperator<'r>,
    given: &'r [(Term, Span)],
    again: Again<'r>,
}

/// Another layout of an operand.
#[derive(Clone, Copy, PartialEq)]
enum Move {
    Reshard,
    /// It is also flattened: the function flattens an operand, and has no parameter for the layout of the flattened array.
    Ravel,
}

/// A change of the expression, with its cost.
#[derive(Clone, Default)]
struct Change {
    moves: Vec<(Span, Move, Sharding)>,
    out: Option<Sharding>,
    note: String,
    cost: f64,
}

impl Change {
    /// Whether the expression is the same after both.
    fn is_like(&self, other: &Change) -> bool {
        self.moves == other.moves && self.out == other.out
    }
}

/// Maximum number of choices, one after the other, in one edit.
const MAX_STEPS: usize = 4;

/// Maximum number of times that an expression is checked again.
const MAX_TRIALS: usize = 48;

/// Whether a shipped function has this parameter for programs.
fn takes(function: &str, parameter: &str) -> bool {
    spmdc_functions::builtin(function).is_some_and(|function| function.signature().takes(parameter))
}

impl Checker<'_> {
    /// Adds to an error about an ambiguous layout the possible edits of the source.
    pub(crate) fn with_choices(
        &mut self,
        mut diagnostic: Diagnostic,
        span: Span,
        written: &WrittenOperator<'_>,
        given: &[(Term, Span)],
        again: Again<'_>,
    ) -> Diagnostic {
        // The caller of a function of the prelude adds the edits itself.
        if self.in_prelude() || self.leaves_choices {
            return diagnostic;
        }
        let Some((operands, choices)) = self.build.take_conflict() else { return diagnostic };
        let expression = Ambiguous { span, written, given, again };
        let proposed = self.proposed(&expression, given, &operands, choices, &Change::default());
        let mut left = MAX_TRIALS;
        let mut found = self.resolved_of(&expression, proposed, &mut left);
        if found.is_empty() {
            let moved = self.of_arguments(&expression);
            found = self.resolved_of(&expression, moved, &mut left);
        }
        let ways: Vec<LayoutEdit> = found.into_iter().filter_map(|change| self.way_of(&expression, change)).collect();
        if ways.is_empty() {
            diagnostic.help = Some("`reshard` the arrays to the same layout first".to_string());
        }
        choose(diagnostic, ways)
    }

    /// Those of the changes after which the expression is right, each once.
    fn resolved_of(&mut self, expression: &Ambiguous<'_>, changes: Vec<Change>, left: &mut usize) -> Vec<Change> {
        let mut found: Vec<Change> = Vec::new();
        for change in changes {
            if let Some(change) = self.resolved(expression, change, MAX_STEPS, left)
                && !found.iter().any(|other| other.is_like(&change))
            {
                found.push(change);
            }
        }
        found
    }

    /// The change, with further choices where it leaves the expression ambiguous; None if the expression stays wrong.
    fn resolved(
        &mut self,
        expression: &Ambiguous<'_>,
        change: Change,
        steps: usize,
        left: &mut usize,
    ) -> Option<Change> {
        let is_possible = |to: &Sharding| to.used_axes().intersect(self.mapped_axes).is_empty();
        if !change.moves.iter().map(|(.., to)| to).chain(&change.out).all(is_possible) {
            return None;
        }
        *left = left.checked_sub(1)?;
        let next = match self.tried(expression, &change) {
            Ok(()) => return Some(change),
            Err(next) => next,
        };
        let steps = steps.checked_sub(1)?;
        let is_new = |next: &Change| !next.is_like(&change);
        next.into_iter().filter(is_new).find_map(|next| self.resolved(expression, next, steps, left))
    }

    /// Checks the expression after a change, and removes its statements; if it is still ambiguous, the change with each of the new choices.
    fn tried(&mut self, expression: &Ambiguous<'_>, change: &Change) -> Result<(), Vec<Change>> {
        let (mark, found) = (self.build.mark(), self.diagnostics.len());
        let span = self.build.span();
        let mut moved = Vec::new();
        for (term, place) in expression.given {
            moved.push((self.moved(term, *place, change), *place));
        }
        self.build.set_span(span);
        self.leaves_choices = true;
        let result = self.in_call(None, |checker| (expression.again)(checker, &moved, change.out.as_ref()));
        self.leaves_choices = false;
        let conflict = self.build.take_conflict();
        let is_right = result.is_ok_and(|term| !term.is_poisoned()) && self.diagnostics.len() == found;
        let next = match conflict {
            Some((operands, choices)) => self.proposed(expression, &moved, &operands, choices, change),
            None => Vec::new(),
        };
        self.diagnostics.truncate(found);
        self.build.roll_back(&mark);
        self.build.set_span(span);
        if is_right { Ok(()) } else { Err(next) }
    }

    /// An operand after a change.
    fn moved(&mut self, term: &Term, place: Span, change: &Change) -> Term {
        if let (Term::List(parts) | Term::Tuple(parts), Some(spans)) = (term, self.lists.get(&place).cloned()) {
            let parts = parts.iter().zip(spans).map(|(part, place)| self.moved(part, place, change)).collect();
            return if let Term::List(_) = term { Term::List(parts) } else { Term::Tuple(parts) };
        }
        let Some((_, step, to)) = change.moves.iter().find(|(other, ..)| *other == place) else { return term.clone() };
        self.build.set_span(place);
        if *step == Move::Ravel {
            let out = Term::Sharding(ShardingTerm { sharding: to.clone() });
            return self.call_builtin("ravel", vec![(None, term.clone(), place), (Some("out"), out, place)], place);
        }
        let mut reshard = |value: Value| self.build.emit1(Reshard::request(to.clone()), &[value]).map(Term::Array);
        let moved = match (term, term.planes()) {
            (_, Some([re, im])) => reshard(re).and_then(|re| Ok(Term::Complex(Box::new([re, reshard(im)?])))),
            (Term::Array(value), None) => reshard(*value),
            (_, None) => return term.clone(),
        };
        moved.unwrap_or(Term::Poison)
    }

    /// The change with each of these choices of an op, as far as the expression has the operands.
    fn proposed(
        &self,
        expression: &Ambiguous<'_>,
        given: &[(Term, Span)],
        operands: &[Value],
        choices: Vec<Choice>,
        before: &Change,
    ) -> Vec<Change> {
        let arrays = self.arrays_in(given);
        let is_index = matches!(expression.written, WrittenOperator::Index);
        let place = |operand: usize| {
            let value = operands.get(operand)?;
            let in_place = arrays.get(operand).filter(|_| arrays.len() == operands.len() || is_index);
            // One value may be given twice, and the call may have converted or cut its arguments.
            let itself = in_place.filter(|(array, _)| array == value);
            let elsewhere = || arrays.iter().find(|(array, _)| array == value);
            itself.or_else(elsewhere).or(in_place).copied()
        };
        let change = |choice: Choice| {
            let mut change = before.clone();
            let (mut note, mut cost) = (choice.note, choice.cost);
            let moves = match choice.edit {
                ChoiceEdit::Reshard { operand, to } => vec![(operand, to)],
                ChoiceEdit::Reshards(moves) => moves,
                ChoiceEdit::Out(to) => match expression.written {
                    WrittenOperator::Call(function) if !takes(function, "out") => {
                        let (array, place) = place(0).filter(|_| takes(function, "axis"))?;
                        let is_flattened = operands.len() == 1 && array == operands[0];
                        change.moves.push((is_flattened.then_some(place)?, Move::Ravel, to));
                        Vec::new()
                    }
                    WrittenOperator::Call(_) | WrittenOperator::Operator(Some(_)) => {
                        change.out = Some(to);
                        Vec::new()
                    }
                    WrittenOperator::Operator(None) | WrittenOperator::Index | WrittenOperator::Assignment(_) => {
                        return None;
                    }
                },
            };
            let is_one = moves.len() == 1;
            for (operand, to) in moves {
                let (array, place) = place(operand)?;
                let to = self.of_given(operands[operand], &to, array)?;
                if is_one && self.build.ty(operands[operand]).array.len() != self.build.ty(array).array.len() {
                    (note, cost) = cost_of_move(self.build.ty(array), &to, self.build.mesh());
                }
                change.moves.retain(|(other, ..)| *other != place);
                change.moves.push((place, Move::Reshard, to));
            }
            (change.note, change.cost) = match before.moves.is_empty() && before.out.is_none() {
                true => (note, cost),
                false => then(&(before.note.clone(), before.cost), &(note, cost)),
            };
            Some(change)
        };
        choices.into_iter().filter_map(change).collect()
    }

    /// Each argument whole along explicit axes, or in the layout of another argument of its shape; and all of them whole.
    fn of_arguments(&self, expression: &Ambiguous<'_>) -> Vec<Change> {
        let explicit = |value: Value| self.build.explicit_part(self.build.ty(value)).close();
        let arrays = self.arrays_in(expression.given);
        let moves_of = |(value, place): &(Value, Span), to: Sharding| {
            let (note, cost) = cost_of_move(self.build.ty(*value), &to, self.build.mesh());
            (explicit(*value) != to).then(|| Change { moves: vec![(*place, Move::Reshard, to)], out: None, note, cost })
        };
        let whole = |value: Value| {
            let mut to = explicit(value);
            to.dims.iter_mut().for_each(|dim| dim.axes.clear());
            to
        };
        let mut changes: Vec<Change> = arrays.iter().filter_map(|array| moves_of(array, whole(array.0))).collect();
        let all = changes.iter().fold(Change::default(), |mut all, change| {
            all.moves.extend(change.moves.iter().cloned());
            (all.note, all.cost) = then(&(all.note, all.cost), &(change.note.clone(), change.cost));
            all
        });
        let is_alike = |a: Value, b: Value| self.build.ty(a).shape() == self.build.ty(b).shape();
        for array in &arrays {
            let others = arrays.iter().filter(|other| is_alike(array.0, other.0));
            changes.extend(others.filter_map(|other| moves_of(array, explicit(other.0))));
        }
        if all.moves.len() > 1 {
            changes.push(all);
        }
        changes
    }

    /// The edit of the source that makes a change; None if the source does not contain the operands.
    fn way_of(&self, expression: &Ambiguous<'_>, change: Change) -> Option<LayoutEdit> {
        let Ambiguous { span, written, given, .. } = expression;
        let mut edits: Vec<(Span, String)> = Vec::new();
        let mut in_front = String::new();
        for (place, step, to) in &change.moves {
            let (text, to) = (self.source(*place), spaced(to, self.build.mesh()));
            let target = match written {
                WrittenOperator::Assignment(target) => self.arrays_in(given).contains(&(*target, *place)),
                WrittenOperator::Operator(_) | WrittenOperator::Call(_) | WrittenOperator::Index => false,
            };
            if target {
                let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
                let (name, rest) = text.split_at(end);
                if rest.starts_with('.') {
                    return None;
                }
                in_front = format!("{name} = reshard({name}, {to}); ");
            } else if *step == Move::Ravel {
                edits.push((*place, format!("ravel({text}, out={to})")));
            } else {
                edits.push((*place, format!("reshard({text}, {to})")));
            }
        }
        let (place, replacement) = match (&change.out, edits.as_slice()) {
            (None, [(place, text)]) if in_front.is_empty() => (*place, text.clone()),
            (None, _) => (*span, format!("{in_front}{}", self.edited(*span, &edits)?)),
            (Some(out), _) => {
                let out = format!("out={}", spaced(out, self.build.mesh()));
                let text = match (written, given) {
                    (WrittenOperator::Operator(Some(function)), [lhs, rhs]) => {
                        let (lhs, rhs) = (self.edited(lhs.1, &edits)?, self.edited(rhs.1, &edits)?);
                        format!("{function}({lhs}, {rhs}, {out})")
                    }
                    (WrittenOperator::Call(_), _) => {
                        format!("{}, {out})", self.edited(*span, &edits)?.strip_suffix(')')?)
                    }
                    (WrittenOperator::Operator(_) | WrittenOperator::Index | WrittenOperator::Assignment(_), _) => {
                        return None;
                    }
                };
                (*span, text)
            }
        };
        // `ravel()` has no argument before the comma.
        let replacement = replacement.replace("(, out=", "(out=");
        Some(LayoutEdit { place, replacement, at: "", note: change.note, cost: change.cost })
    }

    /// The text of a span after the edits within it; None if an edit is partly outside.
    fn edited(&self, span: Span, edits: &[(Span, String)]) -> Option<String> {
        let mut edits: Vec<&(Span, String)> =
            edits.iter().filter(|(place, _)| place.start < span.end && span.start < place.end).collect();
        edits.sort_by_key(|(place, _)| std::cmp::Reverse(place.start));
        let mut text = self.source(span).to_string();
        for (place, replacement) in edits {
            let at = |offset: u32| offset.checked_sub(span.start).map(|offset| offset as usize);
            let (start, end) = (at(place.start)?, at(place.end)?);
            text.get(start..end)?;
            text.replace_range(start..end, replacement);
        }
        Some(text)
    }

    /// The arrays among the arguments, including those in lists, each with its source position; of complex numbers the real parts.
    fn arrays_in(&self, given: &[(Term, Span)]) -> Vec<(Value, Span)> {
        let mut arrays = Vec::new();
        for (term, span) in given {
            match (term, self.lists.get(span)) {
                (Term::Array(value), _) => arrays.push((*value, *span)),
                (Term::List(parts) | Term::Tuple(parts), Some(spans)) => {
                    let parts: Vec<(Term, Span)> = parts.iter().cloned().zip(spans.iter().copied()).collect();
                    arrays.extend(self.arrays_in(&parts));
                }
                _ => arrays.extend(term.planes().map(|[re, _]| (re, *span))),
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
    pub(crate) fn source(&self, span: Span) -> &str {
        let text = &self.set.file(span.file).text;
        text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}

impl Checker<'_> {
    /// Checks an expression that reports its errors itself, and adds the possible edits if it is ambiguous.
    pub(crate) fn or_choose(
        &mut self,
        span: Span,
        written: &WrittenOperator<'_>,
        given: &[(Term, Span)],
        again: Again<'_>,
    ) -> Term {
        if self.in_prelude() || self.leaves_choices {
            let result = again(self, given, None);
            return self.or_report(result);
        }
        let found = self.diagnostics.len();
        self.build.set_conflict(None);
        self.leaves_choices = true;
        let result = again(self, given, None);
        self.leaves_choices = false;
        let term = self.or_report(result);
        // Both planes of complex numbers, and each of their products, have the same error.
        let is_one = self.diagnostics[found..]
            .windows(2)
            .all(|pair| (pair[0].code, pair[0].span) == (pair[1].code, pair[1].span));
        if self.build.has_conflict() && is_one && self.diagnostics.len() > found {
            self.diagnostics.truncate(found + 1);
            let diagnostic = self.diagnostics.pop().expect("one has been found");
            let diagnostic = self.with_choices(diagnostic, span, written, given, again);
            self.diagnostics.push(diagnostic);
        }
        term
    }
}

impl Checker<'_> {
    /// A call of a transformation or of a function with a function as its argument. If it is ambiguous outside of the text of the function, the
    /// message lists edits of the other arguments.
    pub(crate) fn or_move_arguments(
        &mut self,
        args: Vec<Arg>,
        span: Span,
        call: &dyn Fn(&mut Checker<'_>, Vec<Arg>) -> Term,
    ) -> Term {
        if self.in_prelude() || self.leaves_choices || !self.build.has_explicit_axes() {
            return call(self, args);
        }
        let found = self.diagnostics.len();
        let term = call(self, args.clone());
        let is_ambiguous = self.diagnostics.len() == found + 1
            && self.diagnostics.last().is_some_and(|diagnostic| {
                matches!(diagnostic.code, Code::E0301 | Code::E0302 | Code::E0306) && diagnostic.edits.is_empty()
            });
        if is_ambiguous {
            let diagnostic = self.diagnostics.pop().expect("one has been found");
            let given: Vec<(Term, Span)> = args.iter().map(|arg| (arg.term.clone(), arg.span)).collect();
            self.build.set_conflict(Some((Vec::new(), Vec::new())));
            let again: Again<'_> = &|checker, moved, _| Ok(call(checker, with_terms(&args, moved, None, span)));
            let diagnostic = self.with_choices(diagnostic, span, &WrittenOperator::Operator(None), &given, again);
            self.diagnostics.push(diagnostic);
        }
        term
    }
}

/// The arguments of a call with other terms.
pub(crate) fn with_terms(args: &[Arg], moved: &[(Term, Span)], out: Option<&Sharding>, span: Span) -> Vec<Arg> {
    let own = args.iter().zip(moved).filter(|(arg, _)| out.is_none() || arg.name.as_deref() != Some("out"));
    let mut args: Vec<Arg> = own.map(|(arg, (term, _))| Arg { term: term.clone(), ..arg.clone() }).collect();
    args.extend(out.map(|sharding| Arg {
        name: Some("out".to_string()),
        term: Term::Sharding(ShardingTerm { sharding: sharding.clone() }),
        span,
    }));
    args
}
