//! Assignments to the elements at indices from arrays: `x[i] = v`, `x[i, 1:3] += v`.
//!
//! Slices and numbers select a region of the array, which a `scatter` updates and which is written back. `+=`, `-=`, `*=` and `/=` combine
//! all updates of an element, as `add.at` of NumPy does. Other operators read the old elements and assign the new ones, so that the last
//! update of an element remains.

use crate::indexing::plan::{IndexItem, IndexPlan, IndexedDim, Taken, is_array, plan};
use spmdc_abi::ReduceOp;
use spmdc_grammar::ast::InfixOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::{Operand, Term};
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{AxisSet, DType};
use spmdc_ops::cast::cast;
use spmdc_ops::dynamic_slice::DynamicSlice;
use spmdc_ops::elementwise::{self, Unary};
use spmdc_ops::gather::Gather;
use spmdc_ops::promote::assigned;
use spmdc_ops::region::Places;
use spmdc_ops::reshape::reshape;
use spmdc_ops::scatter::{Onto, Scatter};
use spmdc_ops::slice::{SliceRange, slice};
use spmdc_ops::update::Update;

/// The update of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementUpdate {
    /// They take their place.
    Replace,
    /// They are combined with them.
    Combine(ReduceOp),
    /// They divide them.
    Divide,
}

/// `x[items] op= new` if an index is an array and the operator combines updates; None otherwise. `+=` also takes bools.
pub fn combine(
    build: &mut CallBuilder,
    value: Value,
    items: &[IndexItem],
    op: InfixOp,
    new: Operand<'_>,
    span: Span,
) -> Result<Option<Value>, Diagnostic> {
    let dtype = build.ty(value).dtype();
    let is_number = dtype.is_float() || dtype.is_integer();
    let update = if op == InfixOp::Add {
        ElementUpdate::Combine(if dtype == DType::Bool { ReduceOp::Or } else { ReduceOp::Sum })
    } else if op == InfixOp::Sub && is_number {
        ElementUpdate::Combine(ReduceOp::Sum)
    } else if op == InfixOp::Mul && is_number {
        ElementUpdate::Combine(ReduceOp::Product)
    } else if op == InfixOp::Div && dtype.is_float() {
        ElementUpdate::Divide
    } else {
        return Ok(None);
    };
    if dtype == DType::Key || !items.iter().any(|item| is_array(build, item)) {
        return Ok(None);
    }
    let sizes = build.ty(value).shape().to_vec();
    let plan = plan(build, &sizes, items, span)?;
    let mut updates = assigned(build, dtype, new)?;
    if op == InfixOp::Sub {
        updates = build.emit1(Unary(UnaryOp::Neg), &[updates])?;
    }
    put(build, value, &plan, (updates, new.1), update).map(Some)
}

/// The array with the elements that the plan takes updated by values that broadcast to them.
pub fn put(
    build: &mut CallBuilder,
    value: Value,
    plan: &IndexPlan,
    (updates, span): (Value, Span),
    update: ElementUpdate,
) -> Result<Value, Diagnostic> {
    let target = plan.result_shape();
    let from = build.ty(updates).shape().to_vec();
    if from.len() > target.len() || shape::broadcast(&[&from, &target]).ok().as_ref() != Some(&target) {
        let (from, to) = (shape::display(&from), shape::display(&target));
        let message = format!("values of shape {from} do not broadcast to the {to} elements assigned to");
        return Err(Diagnostic::error(Code::E0204, span, message));
    }
    let region = cut(build, value, plan)?;
    let (dims, at, arrays) = plan.gathered();
    let sizes = updates_shape(plan, &from, at);
    let updates = reshape(build, updates, &sizes)?;
    let places = Gather::new(dims, Vec::new(), at);
    let region = updated(build, region, places, updates, &arrays, update)?;
    put_back(build, value, plan, region)
}

/// The part of the array in which elements are updated.
fn cut(build: &mut CallBuilder, value: Value, plan: &IndexPlan) -> Result<Value, Diagnostic> {
    let sizes = build.ty(value).shape().to_vec();
    let ranges: Vec<SliceRange> = plan.taken.iter().zip(&sizes).map(|(taken, &size)| taken.range(size)).collect();
    let region = slice(build, value, &ranges)?;
    let (mut windows, mut args) = (Vec::new(), vec![region]);
    for (dim, taken) in plan.taken.iter().enumerate() {
        if let Taken::Window(start, len) = taken {
            windows.push((dim, *len));
            args.push(*start);
        }
    }
    if windows.is_empty() { Ok(region) } else { build.emit1(DynamicSlice { dims: windows }, &args) }
}

/// The shape in which updates of shape `from` broadcast to the elements that a gather of the region takes.
fn updates_shape(plan: &IndexPlan, from: &[usize], at: usize) -> Vec<usize> {
    // The sizes of the slots of the result, from the last one back; missing ones are 1.
    let mut sizes = from.iter().rev().copied().chain(std::iter::repeat(1));
    let mut of_dim = vec![1; plan.taken.len()];
    let mut of_places = Vec::new();
    for slot in plan.result.iter().rev() {
        match slot {
            IndexedDim::Dim(dim) => of_dim[*dim] = sizes.next().unwrap_or(1),
            IndexedDim::New => drop(sizes.next()),
            IndexedDim::Places => {
                of_places = plan.places.iter().map(|_| sizes.next().unwrap_or(1)).collect();
                of_places.reverse();
            }
        }
    }
    let kept = plan.taken.iter().zip(of_dim).filter(|(taken, _)| !taken.is_indexed());
    let mut shape: Vec<usize> = kept.map(|(_, size)| size).collect();
    shape.splice(at..at, of_places);
    shape
}

/// The region after the updates. Many of them are combined by themselves, so that devices need not have all of them.
fn updated(
    build: &mut CallBuilder,
    region: Value,
    places: Gather,
    updates: Value,
    arrays: &[Value],
    update: ElementUpdate,
) -> Result<Value, Diagnostic> {
    let target = build.ty(region).array.clone();
    let mut types = vec![&target];
    types.extend(build.func().arrays(arrays));
    let full = spmdc_ir::rules::Infer::infer(&places, &types).map_err(|mismatch| build.mismatch(mismatch))?;
    let many = full[0].len() >= target.len();
    let operands = |first: &[Value]| [first, &[updates], arrays].concat();
    let (op, alone) = match update {
        ElementUpdate::Replace => {
            let op = Scatter { places, combine: None, onto: Onto::Operand, out: None };
            return build.emit1(op, &operands(&[region]));
        }
        ElementUpdate::Combine(op) => (op, many),
        ElementUpdate::Divide => (ReduceOp::Product, true),
    };
    if !alone {
        let op = Scatter { places, combine: Some(op), onto: Onto::Operand, out: None };
        return build.emit1(op, &operands(&[region]));
    }
    let onto = if op == ReduceOp::Sum { Onto::Nothing(target.shape) } else { Onto::Identity(target.shape) };
    let mut scatter = Scatter { places, combine: Some(op), onto, out: None };
    scatter.out = layout_of_region(build, &scatter, &full[0].shape, [region, updates]);
    let combined = build.emit1(scatter, &operands(&[]))?;
    let with = match (update, op) {
        (ElementUpdate::Divide, _) => BinaryOp::Div,
        (_, ReduceOp::Sum) => BinaryOp::Add,
        (_, ReduceOp::Product) => BinaryOp::Mul,
        (_, ReduceOp::Max) => BinaryOp::Maximum,
        (_, ReduceOp::Min) => BinaryOp::Minimum,
        (_, ReduceOp::And) => BinaryOp::And,
        (_, ReduceOp::Or) => BinaryOp::Or,
    };
    build.emit1(elementwise::Binary(with), &[region, combined])
}

/// The layout on explicit axes of updates that are combined with each other: the layout of the region, so that a sum over split updates is
/// computed where it is needed. None if the updates split a dimension in another way, which is an error of the assignment.
fn layout_of_region(
    build: &CallBuilder,
    scatter: &Scatter,
    full: &[usize],
    [region, updates]: [Value; 2],
) -> Option<Sharding> {
    if !build.has_explicit_axes() {
        return None;
    }
    let mut own = build.explicit_part(build.ty(region));
    let of = build.explicit_part(build.ty(updates));
    let skipped = full.len() - of.dims.len();
    let rows = scatter.rows(&build.ty(region).array, full).into_iter().skip(skipped);
    let agrees = |(row, dim): (Option<usize>, &DimSharding)| {
        row.is_none_or(|row| dim.axes.is_empty() || dim.axes == own.dims[row].axes)
    };
    let agree = rows.zip(&of.dims).all(agrees);
    own.unreduced = AxisSet::EMPTY;
    agree.then_some(own)
}

/// The array with its region replaced.
fn put_back(build: &mut CallBuilder, value: Value, plan: &IndexPlan, region: Value) -> Result<Value, Diagnostic> {
    let sizes = build.ty(value).shape().to_vec();
    let (mut at, mut turned, mut args) = (Vec::new(), Vec::new(), vec![value]);
    for (taken, &size) in plan.taken.iter().zip(&sizes) {
        let range = taken.range(size);
        turned.push(SliceRange::all(range.len));
        at.push(match taken {
            Taken::Window(start, len) => {
                args.push(*start);
                *turned.last_mut().expect("a dimension has been added") = SliceRange::all(*len);
                Places::Dynamic(*len)
            }
            // Backward ranges become forward ranges with reversed values.
            Taken::Range(_) if range.step < 0 => {
                *turned.last_mut().expect("a dimension has been added") =
                    SliceRange { start: range.len - 1, step: -1, len: range.len };
                Places::Range(SliceRange { start: range.at(range.len - 1), step: -range.step, len: range.len })
            }
            Taken::Range(_) | Taken::Fixed(_) | Taken::Dynamic(_) | Taken::Places(_) => Places::Range(range),
        });
    }
    let is_whole = |(places, &size): (&Places, &usize)| *places == Places::Range(SliceRange::all(size));
    let region = slice(build, region, &turned)?;
    if at.iter().zip(&sizes).all(is_whole) {
        return Ok(region);
    }
    args.insert(1, region);
    build.emit1(Update::replacing(at), &args)
}

/// `x[items] = new` after the plan has been made, for index arrays.
pub fn set(
    build: &mut CallBuilder,
    value: Value,
    plan: &IndexPlan,
    (term, span): (&Term, Span),
) -> Result<Value, Diagnostic> {
    let dtype = build.ty(value).dtype();
    let new = assigned(build, dtype, (term, span))?;
    let new = cast(build, new, dtype)?;
    put(build, value, plan, (new, span), ElementUpdate::Replace)
}
