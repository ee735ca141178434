//! The entries of an index, and the elements of an array that they take.

use crate::indexing::places::{OutOfBounds, indices};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::term::Term;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_ops::index::CheckIndex;
use spmdc_ops::slice::SliceRange;

/// One entry of an index in the source.
#[derive(Clone, Debug)]
pub enum IndexItem {
    /// `1:-1`, `::2`
    Range {
        /// The first index, counted from the end if negative; None: the end of the dimension at which the range begins.
        start: Option<i64>,
        /// The exclusive end of the range, counted from the end if negative; None: the range reaches the end of the dimension.
        stop: Option<i64>,
        /// The distance between indices; None means 1, and 0 is an error (E0402).
        step: Option<i64>,
        /// The source position of the entry.
        span: Span,
    },
    /// `k : k + 4` with a dynamic scalar `k`: `len` elements from `k` on.
    Window {
        /// The first index: an integer scalar, counted from the end if negative.
        start: Value,
        /// The number of elements.
        len: usize,
        /// The source position of the entry.
        span: Span,
    },
    /// An integer known at compile time, or an array.
    Place(Term, Span),
    /// `None`: a new dimension of size 1.
    NewAxis(Span),
    /// `...`: the remaining dimensions, whole.
    Ellipsis(Span),
}

/// The elements of a dimension that an index takes.
#[derive(Clone, Debug)]
pub enum Taken {
    /// `a:b`
    Range(SliceRange),
    /// One element at a static index; the dimension vanishes.
    Fixed(SliceRange),
    /// A checked i64 scalar; the dimension vanishes.
    Dynamic(Value),
    /// This many elements from a checked i64 scalar on.
    Window(Value, usize),
    /// The elements at checked indices; the dimension vanishes.
    Places(Value),
}

impl Taken {
    /// The static range of a dimension of this size that contains the elements.
    pub fn range(&self, size: usize) -> SliceRange {
        match self {
            Taken::Range(range) | Taken::Fixed(range) => *range,
            Taken::Dynamic(_) | Taken::Window(..) | Taken::Places(_) => SliceRange::all(size),
        }
    }

    /// Whether the dimension is not in the result; the dimensions of index arrays replace such dimensions, together.
    pub fn has_vanished(&self) -> bool {
        match self {
            Taken::Fixed(_) | Taken::Dynamic(_) => true,
            Taken::Range(_) | Taken::Window(..) | Taken::Places(_) => false,
        }
    }

    /// Whether a gather with index arrays indexes the dimension.
    pub fn is_indexed(&self) -> bool {
        match self {
            Taken::Dynamic(_) | Taken::Places(_) => true,
            Taken::Range(_) | Taken::Fixed(_) | Taken::Window(..) => false,
        }
    }
}

/// A part of the shape of an index's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexedDim {
    /// A dimension of the array, by number.
    Dim(usize),
    /// A new dimension of size 1.
    New,
    /// The dimensions of the index arrays after broadcasting.
    Places,
}

/// An index applied to a shape.
pub struct IndexPlan {
    /// For each dimension of the array.
    pub taken: Vec<Taken>,
    /// The shape of the result.
    pub result: Vec<IndexedDim>,
    /// The shape of the index arrays after broadcasting; empty without arrays.
    pub places: Vec<usize>,
}

impl IndexPlan {
    /// The shape of the indexed elements.
    pub fn result_shape(&self) -> Vec<usize> {
        let len = |dim: usize| match &self.taken[dim] {
            Taken::Range(range) => range.len,
            Taken::Window(_, len) => *len,
            Taken::Fixed(_) | Taken::Dynamic(_) | Taken::Places(_) => 1,
        };
        let sizes = self.result.iter().flat_map(|slot| match slot {
            IndexedDim::Dim(dim) => vec![len(*dim)],
            IndexedDim::New => vec![1],
            IndexedDim::Places => self.places.clone(),
        });
        sizes.collect()
    }

    /// Whether an index is an array.
    pub fn has_arrays(&self) -> bool {
        self.result.contains(&IndexedDim::Places)
    }

    /// The dimensions that a gather with index arrays indexes, the position of the arrays' dimensions in its result, and the arrays.
    pub fn gathered(&self) -> (Vec<usize>, usize, Vec<Value>) {
        let (mut dims, mut arrays) = (Vec::new(), Vec::new());
        for (dim, taken) in self.taken.iter().enumerate() {
            if let Taken::Dynamic(place) | Taken::Places(place) = taken {
                dims.push(dim);
                arrays.push(*place);
            }
        }
        // The dimensions in front that the gather keeps; single elements at static indices vanish later.
        let before = self.result.iter().take_while(|slot| **slot != IndexedDim::Places);
        let last = before.filter_map(|slot| match slot {
            IndexedDim::Dim(dim) => Some(*dim),
            IndexedDim::New | IndexedDim::Places => None,
        });
        (dims, last.max().map_or(0, |last| last + 1), arrays)
    }

    /// Adds the dimensions of the index arrays to the result: after the dimensions so far, or first if the arrays are not adjacent.
    /// `before` is the previous entry.
    fn put_places(&mut self, before: Option<&IndexItem>) {
        let follows = |item: &IndexItem| matches!(item, IndexItem::Place(..));
        match self.result.iter().position(|slot| *slot == IndexedDim::Places) {
            None => self.result.push(IndexedDim::Places),
            Some(_) if before.is_some_and(follows) => {}
            Some(at) => {
                self.result.remove(at);
                self.result.insert(0, IndexedDim::Places);
            }
        }
    }
}

/// Reads an index; statements check dynamic indices.
pub fn plan(
    build: &mut CallBuilder,
    shape: &[usize],
    items: &[IndexItem],
    span: Span,
) -> Result<IndexPlan, Diagnostic> {
    let given = items.iter().filter(|item| !matches!(item, IndexItem::NewAxis(_) | IndexItem::Ellipsis(_))).count();
    let dots: Vec<Span> =
        items.iter().filter_map(|item| if let IndexItem::Ellipsis(span) = item { Some(*span) } else { None }).collect();
    if let [_, second, ..] = dots.as_slice() {
        return Err(Diagnostic::error(Code::E0205, *second, "an index can contain `...` only once"));
    }
    if given > shape.len() {
        let message = format!("too many indices: {given} for an array of shape {}", shape::display(shape));
        return Err(Diagnostic::error(Code::E0205, span, message));
    }
    let has_arrays = items.iter().any(|item| is_array(build, item));
    let mut plan = IndexPlan { taken: Vec::new(), result: Vec::new(), places: Vec::new() };
    let mut previous = None;
    let whole = |plan: &mut IndexPlan, count: usize| {
        for _ in 0..count {
            let dim = plan.taken.len();
            plan.taken.push(Taken::Range(SliceRange::all(shape[dim])));
            plan.result.push(IndexedDim::Dim(dim));
        }
    };
    for item in items {
        let dim = plan.taken.len();
        let at = |mismatch: Mismatch, span: Span| {
            let mut error = Diagnostic::error(mismatch.code, span, mismatch.message);
            error.help = mismatch.help;
            error
        };
        match item {
            IndexItem::Ellipsis(_) => whole(&mut plan, shape.len() - given),
            IndexItem::NewAxis(_) => plan.result.push(IndexedDim::New),
            IndexItem::Range { start, stop, step, span } => {
                let range = SliceRange::of(*start, *stop, *step, shape[dim]).map_err(|mismatch| at(mismatch, *span))?;
                plan.taken.push(Taken::Range(range));
                plan.result.push(IndexedDim::Dim(dim));
            }
            IndexItem::Window { len: 0, .. } => {
                plan.taken.push(Taken::Range(SliceRange::between(0, 0)));
                plan.result.push(IndexedDim::Dim(dim));
            }
            IndexItem::Window { start, len, span } => {
                if *len > shape[dim] {
                    let message =
                        format!("a slice of {len} elements does not fit into a dimension of size {}", shape[dim]);
                    return Err(Diagnostic::error(Code::E0401, *span, message));
                }
                plan.taken.push(Taken::Window(checked_place(build, *start, (shape[dim], *len), *span)?, *len));
                plan.result.push(IndexedDim::Dim(dim));
            }
            IndexItem::Place(Term::Int(place), span) => {
                let place = (*place).clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
                let range = SliceRange::one(place, shape[dim]).map_err(|mismatch| at(mismatch, *span))?;
                plan.taken.push(Taken::Fixed(range));
            }
            IndexItem::Place(term, span) if is_array(build, item) => {
                let places = indices(build, (term, *span), shape[dim], OutOfBounds::Raise)?.places;
                let of = build.ty(places).shape().to_vec();
                plan.places = shape::broadcast(&[&plan.places, &of]).map_err(|mismatch| at(mismatch, *span))?;
                plan.taken.push(Taken::Places(places));
            }
            IndexItem::Place(Term::Array(place), span) => {
                plan.taken.push(Taken::Dynamic(checked_place(build, *place, (shape[dim], 1), *span)?));
            }
            IndexItem::Place(other, span) => {
                let message = must_be("an index", "an integer", other.describe());
                return Err(Diagnostic::error(Code::E0210, *span, message));
            }
        }
        if has_arrays && matches!(item, IndexItem::Place(..)) {
            plan.put_places(previous);
        }
        previous = Some(item);
    }
    let left = shape.len() - plan.taken.len();
    whole(&mut plan, left);
    Ok(plan)
}

/// Whether an entry is an array of indices.
pub fn is_array(build: &CallBuilder, item: &IndexItem) -> bool {
    match item {
        IndexItem::Place(Term::Array(place), _) => build.ty(*place).rank() > 0,
        IndexItem::Place(term, _) => matches!(term, Term::List(_)),
        IndexItem::Range { .. } | IndexItem::Window { .. } | IndexItem::NewAxis(_) | IndexItem::Ellipsis(_) => false,
    }
}

/// The first index of `len` elements of a dimension, as an i64; the program stops unless all of them exist.
fn checked_place(
    build: &mut CallBuilder,
    place: Value,
    (extent, len): (usize, usize),
    span: Span,
) -> Result<Value, Diagnostic> {
    let ty = build.ty(place).array.clone();
    if ty.rank() > 0 || !ty.dtype.is_integer() {
        let message = must_be("an index", "an integer", &ty);
        return Err(Diagnostic::error(Code::E0203, span, message));
    }
    build.at(span, build.lineage(), |build| build.emit1(CheckIndex { extent, len }, &[place]))
}
