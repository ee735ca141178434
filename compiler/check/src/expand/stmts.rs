//! Blocks and statements: `let`, assignment.

use crate::errors::{self, types as errors_of_types};
use crate::types::declared::{SizeParams, Ty};
use crate::types::sizes::Bindings;
use crate::{Checker, with_stack};
use spmdc_functions::complex;
use spmdc_grammar::ast::{BlockNode, Expr, ExprKind, Ident, IndexNode, InfixOp, StmtNode, StmtNodeKind};
use spmdc_grammar::span::Span;
use spmdc_ir::call::term::{StaticScalar, Term};
use spmdc_ir::call::trees;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::Effect;

/// One step from a variable to the assigned part of it.
enum PathStep<'e> {
    Field(&'e Ident),
    TupleField(usize, Span),
    Index(&'e [IndexNode], Span),
}

/// Whether a statement prints, writes a file, or stops the program under a condition of the user's.
fn acts(stmt: &Stmt) -> bool {
    let effect = stmt.op().map(|op| op.rules().properties().effect);
    matches!(effect, Some(Effect::Text | Effect::File | Effect::Layout))
        || stmt.blocks().any(|block| block.stmts.iter().any(acts))
}

impl Checker<'_> {
    /// The value of a block; the empty tuple if it has none.
    pub(crate) fn block(&mut self, block: &BlockNode) -> Term {
        self.push_scope();
        let value = with_stack(|| self.block_in_scope(block));
        self.pop_scope();
        value
    }

    fn block_in_scope(&mut self, block: &BlockNode) -> Term {
        let around = self.statement;
        for (position, stmt) in block.stmts.iter().enumerate() {
            self.statement = stmt.span;
            self.stmt(stmt, block.value.is_none() && position + 1 == block.stmts.len());
        }
        let value = match &block.value {
            Some(value) => {
                self.statement = value.span;
                let (term, acts) = self.watched(value);
                self.value_acts = acts;
                term
            }
            None => Term::Tuple(Vec::new()),
        };
        self.statement = around;
        value
    }

    /// The expression's term, and whether computing it has a visible effect even if the term is unused.
    fn watched(&mut self, expr: &Expr) -> (Term, bool) {
        let before = self.build.innermost().stmts.len();
        let term = self.expr(expr);
        (term, self.build.innermost().stmts.iter().skip(before).any(acts))
    }

    /// Checks a statement; `is_last` if no statement follows in its block.
    fn stmt(&mut self, stmt: &StmtNode, is_last: bool) {
        match &stmt.kind {
            StmtNodeKind::Let { mutable, pattern, ty, value } => {
                let (first, found) = (self.build.value_count(), self.diagnostics.len());
                // In a dump the type says in which functions the statement is.
                let of_dump =
                    ty.as_ref().filter(|_| self.exact.is_some()).map(|ty| self.resolve(ty, &SizeParams::new()));
                let before = self.build.turn(of_dump.as_ref().map_or(self.build.turned(), Ty::turned));
                let mut term = self.expr(value);
                self.build.turn(before);
                let is_loop = matches!(value.kind, ExprKind::For { collect: false, .. } | ExprKind::While { .. });
                if is_loop && self.diagnostics.len() == found {
                    term = self.report(errors::control::no_collect(value.span));
                }
                if let Some(ty) = of_dump {
                    self.declare(&term, &ty, first, value.span);
                    self.bind_declared(pattern, term, *mutable, ty, first);
                    return;
                }
                if let Some(ty) = ty {
                    let ty = self.resolve(ty, &SizeParams::new());
                    term = self.annotate(term, &ty, &mut Bindings::new(), value.span, "this variable");
                }
                self.bind_pattern(pattern, term, *mutable);
            }
            StmtNodeKind::Assign { target, op, value } => {
                let value_term = self.expr(value);
                self.assign(target, *op, value_term, value.span, stmt.span);
            }
            StmtNodeKind::Expr(expr) => {
                let (term, acts) = self.watched(expr);
                if trees::is_something(&term) && !acts {
                    self.report(errors::control::unused_value(expr.span, is_last));
                }
            }
        }
    }

    fn assign(&mut self, target: &Expr, op: Option<InfixOp>, value: Term, value_span: Span, span: Span) {
        if let ExprKind::Wildcard = &target.kind {
            return;
        }
        if let ExprKind::Tuple(targets) = &target.kind {
            return self.assign_each(target, targets, op, (value, value_span), span);
        }
        let mut places = Vec::new();
        let mut root = target;
        let name = loop {
            if let ExprKind::Name(name) = &root.kind {
                break name;
            } else if let ExprKind::Field { base, name } = &root.kind {
                places.push(PathStep::Field(name));
                root = base;
            } else if let ExprKind::TupleField { base, index, index_span } = &root.kind {
                places.push(PathStep::TupleField(*index, *index_span));
                root = base;
            } else if let ExprKind::Index { base, indices } = &root.kind {
                places.push(PathStep::Index(indices, root.span));
                root = base;
            } else {
                self.report(errors::control::not_assignable(root.span));
                return;
            }
        };
        places.reverse();
        let Some(binding) = self.local(name) else {
            if self.names.find(self.file(), name).is_some() {
                self.report(errors::control::not_mutable(name, root.span, None));
            }
            return;
        };
        let old = binding.term.clone();
        if !binding.mutable {
            let declared = binding.span;
            let mut error = errors::control::not_mutable(name, root.span, Some(declared));
            let parameters = self
                .expansions
                .last()
                .filter(|expansion| expansion.item.is_some())
                .and_then(|expansion| expansion.scopes.first());
            if parameters.is_some_and(|scope| scope.iter().any(|binding| binding.span == declared)) {
                error = error.help(format!("parameters are immutable; write `let mut {name} = {name};` first"));
            }
            self.report(error);
            return;
        }
        let new = self.stored(old, &places, op, value, value_span, span);
        // In a dump the statement of a value gives it its name.
        if self.exact.is_none() {
            self.name_values(name, root.span, &new);
        }
        if let Some(binding) = self.local_mut(name) {
            binding.term = new;
        }
    }

    /// Assigns the parts of a tuple to their targets.
    fn assign_each(
        &mut self,
        target: &Expr,
        targets: &[Expr],
        op: Option<InfixOp>,
        (value, value_span): (Term, Span),
        span: Span,
    ) {
        if let Term::Poison = value {
            targets.iter().for_each(|target| self.assign(target, None, Term::Poison, value_span, span));
            return;
        }
        let terms = if let Term::Tuple(terms) = &value { terms.as_slice() } else { &[] };
        if !matches!(value, Term::Tuple(_)) || terms.len() != targets.len() {
            let (wanted, found) = (format!("a tuple of {}", targets.len()), self.display_term(&value));
            self.report(errors_of_types::pattern(&wanted, &found, target.span));
            return;
        }
        for (target, term) in targets.iter().zip(terms) {
            self.assign(target, op, term.clone(), value_span, span);
        }
    }

    /// `old` with another value at a path inside it.
    fn stored(
        &mut self,
        old: Term,
        places: &[PathStep],
        op: Option<InfixOp>,
        value: Term,
        value_span: Span,
        span: Span,
    ) -> Term {
        let Some((first, rest)) = places.split_first() else {
            return match op {
                Some(op) => self.binary_terms(op, span, (old, span), (value, value_span)),
                None => self.adapted(&old, value, value_span),
            };
        };
        match (first, old) {
            (_, Term::Poison) => Term::Poison,
            (PathStep::Field(name), Term::Struct(mut fields)) => {
                let Some(at) = fields.iter().position(|(field, _)| *field == name.name) else {
                    return self.field_of(Term::Struct(fields), name, name.span);
                };
                self.build.fields.link(fields[at].0.place, name.span);
                let part = fields[at].1.clone();
                fields[at].1 = self.stored(part, rest, op, value, value_span, span);
                Term::Struct(fields)
            }
            (PathStep::TupleField(index, index_span), Term::Tuple(mut parts)) => {
                let Some(part) = parts.get(*index).cloned() else {
                    return self.tuple_field(Term::Tuple(parts), *index, *index_span);
                };
                parts[*index] = self.stored(part, rest, op, value, value_span, span);
                Term::Tuple(parts)
            }
            (PathStep::Index(indices, place), old @ (Term::Array(_) | Term::Complex(_))) if rest.is_empty() => {
                self.index_assign(&old, indices, op, (value, value_span), *place, span)
            }
            (PathStep::Index(_, place), Term::Array(_) | Term::Complex(_)) => {
                self.report(errors::control::not_assignable(*place))
            }
            (PathStep::Index(_, place), other) if trees::is_number(&other) && rest.is_empty() => {
                match self.numeric(&other, *place) {
                    Some(array) => self.stored(array, places, op, value, value_span, span),
                    None => Term::Poison,
                }
            }
            (PathStep::Field(name), other) => self.field_of(other, name, name.span),
            (PathStep::TupleField(index, index_span), other) => self.tuple_field(other, *index, *index_span),
            (PathStep::Index(_, place), other) => {
                self.report(errors_of_types::wrong_kind("an array", other.describe(), *place))
            }
        }
    }

    /// A literal that is assigned to a typed scalar takes its type.
    fn adapted(&mut self, old: &Term, value: Term, span: Span) -> Term {
        if let (Some([re, _]), Some(_)) = (old.planes(), value.number()) {
            let dtype = self.build.ty(re).dtype();
            self.build.set_span(span);
            let adapted = match self.build.ty(re).is_scalar() {
                true => complex::complex(&mut self.build, (&value, span), Some(dtype)),
                false => Ok(value),
            };
            return self.or_report(adapted);
        }
        let Term::Array(old) = old else { return value };
        let ty = self.build.ty(*old);
        let dtype = ty.dtype();
        let fits = match value.static_scalar() {
            Some(StaticScalar::Int(_)) => dtype.is_integer() || dtype.is_float(),
            Some(StaticScalar::Float(_)) => dtype.is_float(),
            Some(StaticScalar::Bool(_)) | None => false,
        };
        if !fits || !ty.is_scalar() {
            return value;
        }
        self.build.set_span(span);
        let adapted = self.build.materialize(&value, Some(dtype), span).map(Term::Array);
        self.or_report(adapted)
    }
}
