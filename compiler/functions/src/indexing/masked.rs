//! Assignments to the elements that a mask selects: `x[mask] = v`, `x[mask, 1:] += v`.
//!
//! The number of selected elements is a run-time value, but shapes are known at compile time. So the new values must be the same for all
//! selected positions of the mask, such as a number or a row: `x[mask] = v` is then `where(mask, v, x)`. A mask has the shape of the
//! dimensions at its position, like `u[:, mask]`, and otherwise follows NumPy.

use crate::indexing::assign;
use crate::indexing::plan::{IndexItem, is_array, plan};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::{Operand, Term};
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_layout::types::DType;
use spmdc_ops::broadcast;
use spmdc_ops::elementwise::Select;
use spmdc_ops::promote::assigned;
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::SliceRange;

/// An index with a mask, applied to an array.
pub struct MaskedIndex {
    /// The index with the mask's dimensions whole.
    pub items: Vec<IndexItem>,
    /// The mask in a shape that broadcasts to the elements that `items` take.
    mask: Value,
    /// The shape of the elements that `items` take.
    region: Vec<usize>,
    /// The first dimension of the region that is the mask's, and their number.
    masked: (usize, usize),
    /// The dimension of NumPy's result that contains the selected elements.
    chosen: usize,
    /// Whether `items` take all elements in their order.
    is_whole: bool,
}

/// A mask: bools that have dimensions.
pub fn is_mask(build: &CallBuilder, item: &IndexItem) -> bool {
    let IndexItem::Place(term, _) = item else { return false };
    if let Term::Array(value) = term {
        let ty = build.ty(*value);
        return ty.rank() > 0 && ty.dtype() == DType::Bool;
    }
    matches!(first_leaf(term), Some(Term::Bool(_)))
}

/// The first number of a nested list.
fn first_leaf(term: &Term) -> Option<&Term> {
    let Term::List(items) = term else { return None };
    items.first().and_then(|item| first_leaf(item).or(Some(item)))
}

impl MaskedIndex {
    /// The mask of an index of `value`, or None if it has none.
    pub fn of(
        build: &mut CallBuilder,
        value: Value,
        items: &[IndexItem],
        span: Span,
    ) -> Result<Option<MaskedIndex>, Diagnostic> {
        let Some(at) = items.iter().position(|item| is_mask(build, item)) else { return Ok(None) };
        let IndexItem::Place(term, mask_span) = &items[at] else { return Ok(None) };
        if let Some(IndexItem::Place(_, other)) = items[at + 1..].iter().find(|item| is_array(build, item)) {
            let help = "combine masks of the same dimensions with `&`, or select with `where(mask, a, b)`";
            return Err(
                Diagnostic::error(Code::E0205, *other, "a mask cannot be combined with an index array").help(help)
            );
        }
        if let Some(IndexItem::Place(_, other)) = items[..at].iter().find(|item| is_array(build, item)) {
            return Err(Diagnostic::error(Code::E0205, *other, "a mask cannot be combined with an index array")
                .help("index with one of them at a time: take the rows, change them, and assign them back"));
        }
        let mask = build.materialize(term, Some(DType::Bool), *mask_span)?;
        let dims = build.ty(mask).shape().to_vec();
        let all = IndexItem::Range { start: None, stop: None, step: None, span: *mask_span };
        let whole = std::iter::repeat_n(all, dims.len());
        let expanded: Vec<IndexItem> =
            items[..at].iter().cloned().chain(whole).chain(items[at + 1..].iter().cloned()).collect();
        let extents = build.ty(value).shape().to_vec();
        let plan = plan(build, &extents, &expanded, span)?;
        let region = plan.result_shape();
        // The dimensions of the region before the mask's.
        let skipped = |item: &IndexItem| match item {
            IndexItem::Range { .. } | IndexItem::Window { .. } | IndexItem::NewAxis(_) => 1,
            IndexItem::Place(..) => 0,
            IndexItem::Ellipsis(_) => {
                let is_dim = |item: &&IndexItem| !matches!(item, IndexItem::NewAxis(_) | IndexItem::Ellipsis(_));
                extents.len() - expanded.iter().filter(is_dim).count()
            }
        };
        let first: usize = items[..at].iter().map(skipped).sum();
        debug_assert!(first + dims.len() <= region.len(), "the mask's dimensions remain");
        if region[first..first + dims.len()] != dims {
            let (mask, of) = (shape::display(&dims), shape::display(&region[first..first + dims.len()]));
            let message = format!("a mask of shape {mask} does not match dimensions of sizes {of}");
            return Err(Diagnostic::error(Code::E0205, *mask_span, message));
        }
        // As in NumPy, the chosen elements come first if slices separate the mask from a number.
        let is_place = |item: &IndexItem| matches!(item, IndexItem::Place(..));
        let run = items.iter().position(is_place).zip(items.iter().rposition(is_place));
        let is_separated = run.is_some_and(|(start, end)| !items[start..=end].iter().all(is_place));
        let after = region.len() - first - dims.len();
        let mask = reshape(build, mask, &[&dims[..], &vec![1; after]].concat())?;
        let is_whole = plan.taken.iter().zip(&extents).all(|(taken, &size)| taken.range(size) == SliceRange::all(size))
            && region == extents;
        let chosen = if is_separated { 0 } else { first };
        Ok(Some(MaskedIndex { items: expanded, mask, region, masked: (first, dims.len()), chosen, is_whole }))
    }

    /// The new values in a shape that broadcasts to the region. An error (E0204) unless they are the same for all chosen elements.
    pub fn spread(&self, build: &mut CallBuilder, new: Operand<'_>) -> Result<Term, Diagnostic> {
        if !matches!(new.0, Term::Array(_) | Term::List(_)) {
            return Ok(new.0.clone());
        }
        let value = build.materialize(new.0, None, new.1)?;
        let from = build.ty(value).shape().to_vec();
        let (first, masked) = self.masked;
        let mut target = self.region.clone();
        target.splice(first..first + masked, []);
        target.insert(self.chosen, 1);
        if from.len() > target.len() || shape::broadcast(&[&from, &target]).ok().as_ref() != Some(&target) {
            let mut shown: Vec<String> = target.iter().map(usize::to_string).collect();
            shown[self.chosen] = "n".to_string();
            let (from, to) = (shape::display(&from), format!("[{}]", shown.join(", ")));
            let message = format!("values of shape {from} cannot be assigned to the selected elements, of shape {to}");
            return Err(Diagnostic::error(Code::E0204, new.1, message).help(
                "assign a scalar or one row to all selected elements; for different values, write \
                 `x = where(mask, v, x)`",
            ));
        }
        let mut sizes = vec![1; target.len() - from.len()];
        sizes.extend(from);
        sizes.remove(self.chosen);
        sizes.splice(first..first, vec![1; masked]);
        debug_assert_eq!(sizes.len(), self.region.len(), "one size for each dimension of the region");
        reshape(build, value, &sizes).map(Term::Array)
    }

    /// The new values where the mask is true, and `other` elsewhere, for operations that stop the program for some numbers.
    pub fn guarded(
        &self,
        build: &mut CallBuilder,
        new: Operand<'_>,
        other: u64,
        dtype: DType,
    ) -> Result<Term, Diagnostic> {
        debug_assert!(dtype.is_integer(), "only integers stop the program");
        let value = assigned(build, dtype, new)?;
        let other = broadcast::filled(build, dtype, other, &[])?;
        build.emit1(Select, &[self.mask, value, other]).map(Term::Array)
    }

    /// The array with the chosen elements of the region, which now are `current`, replaced by the new values.
    pub fn set(
        &self,
        build: &mut CallBuilder,
        value: Value,
        current: Value,
        new: Operand<'_>,
        span: Span,
    ) -> Result<Value, Diagnostic> {
        debug_assert_eq!(build.ty(current).shape(), self.region, "the region's elements");
        let dtype = build.ty(value).dtype();
        let new = assigned(build, dtype, new)?;
        let chosen = build.emit1(Select, &[self.mask, new, current])?;
        if self.is_whole {
            return Ok(chosen);
        }
        assign::set(build, value, &self.items, (&Term::Array(chosen), span), span)
    }
}
