//! Indexing: `x[1:-1, i, None]` and `u[0, :] = v`.
//!
//! The entries become terms here; `functions/indexing` emits the statements.

use crate::Checker;
use crate::errors::{indices as errors, types as errors_of_types};
use crate::expand::windows::SliceBound;
use crate::types::choices::WrittenOperator;
use crate::types::declared::SizeParams;
use crate::types::sizes::Bindings;
use spmdc_functions::indexing::get::indexed;
use spmdc_functions::indexing::masked::MaskedIndex;
use spmdc_functions::indexing::plan::IndexItem;
use spmdc_functions::indexing::{assign, assign_at_indices};
use spmdc_grammar::ast::{Expr, IndexNode, InfixOp};
use spmdc_grammar::span::Span;
use spmdc_ir::call::errors::{not_real, too_large};
use spmdc_ir::call::term::{Term, TypeTerm, whole_number};
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_layout::types::{ArrayType, DType};

impl Checker<'_> {
    pub(crate) fn index(&mut self, term: Term, indices: &[IndexNode], span: Span, base: Span) -> Term {
        match (&term, indices) {
            (Term::Poison, _) => {
                self.index_items(indices);
                return Term::Poison;
            }
            (Term::Tuple(parts) | Term::List(parts), [IndexNode::Expr(index)]) => {
                let parts = parts.clone();
                let at = self.expr(index);
                if let Term::Poison = at {
                    return Term::Poison;
                }
                return match whole_number(&at).is_some() || matches!(term, Term::Tuple(_)) {
                    true => self.index_tuple(&parts, &at, index.span),
                    false => self.index_list(&term, at, index.span, span, base),
                };
            }
            (Term::Type(ty), _) if ty.array.rank() == 0 => {
                return self.array_of((ty.array.dtype, ty.complex), indices, span);
            }
            _ => {}
        }
        let Some(items) = self.index_items(indices) else { return Term::Poison };
        let Some(array) = self.numeric(&term, base) else { return Term::Poison };
        if let Some(planes) = array.planes() {
            return self.index_complex(planes, &items, span, base);
        }
        let Term::Array(value) = array else { return Term::Poison };
        self.index_items_of(value, &items, span, base)
    }

    /// The elements of an array at these indices.
    pub(crate) fn index_items_of(&mut self, value: Value, items: &[IndexItem], span: Span, base: Span) -> Term {
        let given = [vec![(Term::Array(value), base)], arrays_of(items)].concat();
        self.or_choose(span, &WrittenOperator::Index, &given, &|checker, moved, _| {
            let Some([(Term::Array(value), _)]) = moved.first_chunk() else { return Ok(Term::Poison) };
            checker.build.set_span(span);
            indexed(&mut checker.build, *value, &with_arrays(items, &moved[1..]), span).map(Term::Array)
        })
    }

    /// `x.dtype[3, N]`: an element type followed by sizes is an array type.
    fn array_of(&mut self, (dtype, complex): (DType, bool), sizes: &[IndexNode], span: Span) -> Term {
        let mut shape = Vec::new();
        for size in sizes {
            let IndexNode::Expr(size) = size else {
                return self.report(errors_of_types::wrong_kind("a size", "a slice", span));
            };
            let found = self.size(size, &SizeParams::new());
            match self.length(&found, &Bindings::new(), size.span) {
                Some(size) => shape.push(size),
                None => return Term::Poison,
            }
        }
        if shape::elements(&shape).is_none() {
            return self.report(too_large(span));
        }
        let array = ArrayType::new(dtype, &shape);
        Term::Type(TypeTerm { array, complex, sharding: None, varying: Default::default() })
    }

    /// A list of numbers with a dynamic index becomes an array.
    fn index_list(&mut self, list: &Term, at: Term, place: Span, span: Span, base: Span) -> Term {
        let items = [IndexItem::Place(at, place)];
        let Some(array) = self.numeric(list, base) else { return Term::Poison };
        if let Some(planes) = array.planes() {
            return self.index_complex(planes, &items, span, base);
        }
        let Term::Array(value) = array else { return Term::Poison };
        self.build.set_span(span);
        let result = indexed(&mut self.build, value, &items, span).map(Term::Array);
        self.or_report(result)
    }

    /// One row of an array, for patterns.
    pub(crate) fn element(&mut self, value: Value, at: usize, span: Span) -> Term {
        self.build.set_span(span);
        let items = [IndexItem::Place(Term::Int(at as i128), span)];
        let result = indexed(&mut self.build, value, &items, span).map(Term::Array);
        self.or_report(result)
    }

    /// `old[indices] = value`, or `old[indices] op= value`: the array with the elements replaced.
    pub(crate) fn index_assign(
        &mut self,
        old: &Term,
        indices: &[IndexNode],
        op: Option<InfixOp>,
        value: (Term, Span),
        place: Span,
        span: Span,
    ) -> Term {
        let Some(items) = self.index_items(indices) else { return Term::Poison };
        if matches!(value.0, Term::Poison) {
            return Term::Poison;
        }
        if let Some(planes) = old.planes() {
            return self.assign_complex(planes, &items, op, value, (place, span));
        }
        let Term::Array(old) = *old else { return Term::Poison };
        if value.0.holds_complex() {
            return self.report(not_real(value.1));
        }
        self.assign_items(old, &items, op, value, place, span)
    }

    /// The array with the elements at these indices replaced.
    pub(crate) fn assign_items(
        &mut self,
        old: Value,
        items: &[IndexItem],
        op: Option<InfixOp>,
        value: (Term, Span),
        place: Span,
        span: Span,
    ) -> Term {
        let given = [vec![(Term::Array(old), place), value], arrays_of(items)].concat();
        self.or_choose(span, &WrittenOperator::Assignment(old), &given, &|checker, moved, _| {
            let Some([(Term::Array(old), _), value]) = moved.first_chunk() else { return Ok(Term::Poison) };
            let items = with_arrays(items, &moved[2..]);
            Ok(checker.assigned_items(*old, &items, op, value.clone(), place, span))
        })
    }

    fn assigned_items(
        &mut self,
        old: Value,
        items: &[IndexItem],
        op: Option<InfixOp>,
        value: (Term, Span),
        place: Span,
        span: Span,
    ) -> Term {
        let mut new = value;
        self.build.set_span(span);
        match MaskedIndex::of(&mut self.build, old, items, place) {
            Ok(None) => {}
            Ok(Some(masked)) => return self.masked_assign(old, &masked, op, new, (place, span)),
            Err(diagnostic) => return self.report(diagnostic),
        }
        if let Some(op) = op {
            match assign_at_indices::combine(&mut self.build, old, items, op, (&new.0, new.1), span) {
                Ok(None) => {}
                combined => {
                    let combined = combined.map(|value| value.map_or(Term::Nothing, Term::Array));
                    return self.or_report(combined);
                }
            }
            match assign::add(&mut self.build, old, items, op, (&new.0, new.1), span) {
                Ok(None) => {}
                added => {
                    let added = added.map(|value| value.map_or(Term::Nothing, Term::Array));
                    return self.or_report(added);
                }
            }
            self.build.set_span(place);
            let current = indexed(&mut self.build, old, items, place).map(Term::Array);
            let current = self.or_report(current);
            new = (self.binary_terms(op, span, (current, place), new), span);
        }
        if matches!(new.0, Term::Poison) {
            return Term::Poison;
        }
        self.build.set_span(span);
        let result = assign::set(&mut self.build, old, items, (&new.0, new.1), span).map(Term::Array);
        self.or_report(result)
    }

    /// `old[mask] = new`, or `old[mask] op= new`.
    fn masked_assign(
        &mut self,
        old: Value,
        masked: &MaskedIndex,
        op: Option<InfixOp>,
        new: (Term, Span),
        (place, span): (Span, Span),
    ) -> Term {
        let spread = masked.spread(&mut self.build, (&new.0, new.1));
        let mut new = (self.or_report(spread), new.1);
        self.build.set_span(place);
        let current = indexed(&mut self.build, old, &masked.items, place).map(Term::Array);
        let current = self.or_report(current);
        let Term::Array(elements) = current else { return Term::Poison };
        let dtype = self.build.ty(old).dtype();
        let divides = matches!(op, Some(InfixOp::FloorDiv | InfixOp::Rem)) && dtype.is_integer();
        if divides && !matches!(new.0, Term::Poison) {
            // A divisor of zero must not stop the program where nothing is divided.
            let guarded = masked.guarded(&mut self.build, (&new.0, new.1), 1, dtype);
            new.0 = self.or_report(guarded);
        }
        if let Some(op) = op {
            new = (self.binary_terms(op, span, (current, place), new), span);
        }
        if matches!(new.0, Term::Poison) {
            return Term::Poison;
        }
        self.build.set_span(span);
        let result = masked.set(&mut self.build, old, elements, (&new.0, new.1), span).map(Term::Array);
        self.or_report(result)
    }

    fn index_items(&mut self, indices: &[IndexNode]) -> Option<Vec<IndexItem>> {
        let mut items = Vec::new();
        let mut is_whole = true;
        for entry in indices {
            let item = match entry {
                IndexNode::Ellipsis(span) => Some(IndexItem::Ellipsis(*span)),
                IndexNode::Slice { start, stop, step, span } => {
                    let bounds = [start, stop, step].map(|bound| self.slice_bound(bound.as_ref()));
                    match bounds {
                        [Some(start), Some(stop), Some(step)] => self.slice_item([start, stop, step], *span),
                        _ => None,
                    }
                }
                IndexNode::Expr(expr) => self.index_place(expr),
            };
            match item {
                Some(item) => items.push(item),
                None => is_whole = false,
            }
        }
        is_whole.then_some(items)
    }

    fn index_place(&mut self, expr: &Expr) -> Option<IndexItem> {
        let term = self.expr(expr);
        match (whole_number(&term), term) {
            (_, Term::Poison) => None,
            (_, Term::Nothing) => Some(IndexItem::NewAxis(expr.span)),
            (Some(place), _) => Some(IndexItem::Place(Term::Int(place), expr.span)),
            (None, Term::Float(value)) => {
                self.report(spmdc_ir::call::errors::not_whole(value, expr.span));
                None
            }
            (None, Term::List(items)) if !items.iter().any(Term::holds_array) => {
                Some(IndexItem::Place(Term::List(items), expr.span))
            }
            (None, Term::List(items)) => {
                let value = self.value(&Term::List(items), expr.span)?;
                Some(IndexItem::Place(Term::Array(value), expr.span))
            }
            (None, Term::Array(value)) => Some(IndexItem::Place(Term::Array(value), expr.span)),
            (None, other) => {
                self.report(errors::not_an_index(other.describe(), expr.span));
                None
            }
        }
    }

    fn slice_item(&mut self, [start, stop, step]: [SliceBound; 3], span: Span) -> Option<IndexItem> {
        let known = |bound: SliceBound| match bound {
            SliceBound::Absent => Some(None),
            SliceBound::Number(number) => Some(Some(number)),
            SliceBound::Dynamic(_) => None,
        };
        if let (Some(start), Some(stop), Some(step)) = (known(start), known(stop), known(step)) {
            return Some(IndexItem::Range { start, stop, step, span });
        }
        match (self.slice_length(start, stop), start, step) {
            (_, _, SliceBound::Dynamic(_)) => self.report(errors::unknown_step(span)),
            (Some(_), _, SliceBound::Number(step)) if step != 1 => self.report(errors::dynamic_step(span)),
            (Some(len), SliceBound::Dynamic(start), _) => {
                let len = usize::try_from(len.max(0)).unwrap_or(usize::MAX);
                return Some(IndexItem::Window { start, len, span });
            }
            (Some(_), SliceBound::Number(_) | SliceBound::Absent, _) | (None, ..) => {
                self.report(errors::dynamic_slice_length(span))
            }
        };
        None
    }

    /// A bound of a slice; None if it is an error.
    fn slice_bound(&mut self, bound: Option<&Expr>) -> Option<SliceBound> {
        let Some(expr) = bound else { return Some(SliceBound::Absent) };
        let term = self.expr(expr);
        match (whole_number(&term), term) {
            (_, Term::Poison) => None,
            (_, Term::Nothing) => Some(SliceBound::Absent),
            (Some(place), _) => {
                Some(SliceBound::Number(place.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64))
            }
            (None, Term::Float(value)) => {
                self.report(spmdc_ir::call::errors::not_whole(value, expr.span));
                None
            }
            (None, Term::Array(value)) => {
                let ty = &self.build.ty(value).array;
                if ty.rank() == 0 && ty.dtype.is_integer() {
                    return Some(SliceBound::Dynamic(value));
                }
                let found = format!("a value of type {ty}");
                self.report(errors::not_an_index(&found, expr.span));
                None
            }
            (None, other) => {
                self.report(errors::not_an_index(other.describe(), expr.span));
                None
            }
        }
    }
}

/// The index arrays, each with its source position.
fn arrays_of(items: &[IndexItem]) -> Vec<(Term, Span)> {
    let array = |item: &IndexItem| match item {
        IndexItem::Place(term @ Term::Array(_), span) => Some((term.clone(), *span)),
        IndexItem::Place(..)
        | IndexItem::Range { .. }
        | IndexItem::Window { .. }
        | IndexItem::NewAxis(_)
        | IndexItem::Ellipsis(_) => None,
    };
    items.iter().filter_map(array).collect()
}

/// The entries of an index with other index arrays, as many as [`arrays_of`] gives.
fn with_arrays(items: &[IndexItem], arrays: &[(Term, Span)]) -> Vec<IndexItem> {
    let mut arrays = arrays.iter();
    let mut item = |item: &IndexItem| match item {
        IndexItem::Place(Term::Array(_), span) => {
            let (array, _) = arrays.next().expect("each index array is there");
            IndexItem::Place(array.clone(), *span)
        }
        IndexItem::Place(..)
        | IndexItem::Range { .. }
        | IndexItem::Window { .. }
        | IndexItem::NewAxis(_)
        | IndexItem::Ellipsis(_) => item.clone(),
    };
    items.iter().map(&mut item).collect()
}
