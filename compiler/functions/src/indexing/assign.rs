//! Assignments to elements: `x[1:-1, 0] = v`, `x[k] += v`.

use crate::indexing::assign_at_indices;
use crate::indexing::plan::{IndexItem, IndexPlan, IndexedDim, Taken, is_array, plan};
use spmdc_grammar::ast::InfixOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::{Operand, Term};
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_kernel::scalar::UnaryOp;
use spmdc_ops::elementwise::Unary;
use spmdc_ops::promote::{self, assigned};
use spmdc_ops::region::Places;
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::SliceRange;
use spmdc_ops::update::Update;

/// `x[items] = new`: the array with the elements replaced.
pub fn set(
    build: &mut CallBuilder,
    value: Value,
    items: &[IndexItem],
    new: Operand<'_>,
    span: Span,
) -> Result<Value, Diagnostic> {
    let shape = build.ty(value).shape().to_vec();
    let plan = plan(build, &shape, items, span)?;
    if plan.has_arrays() {
        return assign_at_indices::set(build, value, &plan, new);
    }
    assign(build, value, &plan, new, false)
}

/// `x[items] op= new` for `+=` and `-=` with numbers that the type of the array can hold: the new values are added to the elements, and no
/// device needs another one's. None for all others.
pub fn add(
    build: &mut CallBuilder,
    value: Value,
    items: &[IndexItem],
    op: InfixOp,
    new: Operand<'_>,
    span: Span,
) -> Result<Option<Value>, Diagnostic> {
    let dtype = build.ty(value).dtype();
    let is_own = if let Term::Array(new) = new.0 {
        let given = build.ty(*new).dtype();
        given == dtype || promote::join(given, dtype) == Some(dtype)
    } else {
        matches!(new.0, Term::Int(_)) || matches!(new.0, Term::Float(_)) && dtype.is_float()
    };
    let is_addition = matches!(op, InfixOp::Add | InfixOp::Sub) && (dtype.is_float() || dtype.is_integer());
    if !is_own || !is_addition || items.iter().any(|item| is_array(build, item)) {
        return Ok(None);
    }
    let shape = build.ty(value).shape().to_vec();
    let plan = plan(build, &shape, items, span)?;
    let mut addend = assigned(build, dtype, new)?;
    let (target, from) = (plan.result_shape(), build.ty(addend).shape().to_vec());
    // A longer sum does not fit, and neither does a sum that is broadcast.
    if from.len() > target.len() || shape::broadcast(&[&from, &target]).ok().as_ref() != Some(&target) {
        return Ok(None);
    }
    if op == InfixOp::Sub {
        addend = build.emit1(Unary(UnaryOp::Neg), &[addend])?;
    }
    assign(build, value, &plan, (&Term::Array(addend), new.1), true).map(Some)
}

/// Assigns to the elements that the plan takes without index arrays.
fn assign(
    build: &mut CallBuilder,
    value: Value,
    plan: &IndexPlan,
    new: Operand<'_>,
    adds: bool,
) -> Result<Value, Diagnostic> {
    let ty = build.ty(value).array.clone();
    let mut new_value = assigned(build, ty.dtype, new)?;
    let target = plan.result_shape();
    let from = build.ty(new_value).shape().to_vec();
    let fits = from.len() <= target.len() && shape::broadcast(&[&from, &target]).ok().as_ref() == Some(&target);
    if !fits {
        let (from, to) = (shape::display(&from), shape::display(&target));
        let message = format!("values of shape {from} do not broadcast to the {to} elements assigned to");
        return Err(Diagnostic::error(Code::E0204, new.1, message));
    }
    // The new values by the dimensions of the array, from the last one back: new dimensions vanish, single elements have size 1.
    let mut sizes = Vec::new();
    let mut slots = plan.result.iter().rev().zip(from.iter().rev().map(Some).chain(std::iter::repeat(None)));
    for (dim, taken) in plan.taken.iter().enumerate().rev() {
        if matches!(taken, Taken::Fixed(_) | Taken::Dynamic(_)) {
            sizes.push(Some(1));
            continue;
        }
        let slot = slots.find(|(slot, _)| **slot == IndexedDim::Dim(dim));
        sizes.push(slot.and_then(|(_, size)| size.copied()));
    }
    sizes.reverse();
    // Leading dimensions that the new values lack are broadcast.
    let first = sizes.iter().position(|size| matches!(size, Some(size) if *size != 1)).unwrap_or(sizes.len());
    let sizes: Vec<usize> = sizes[first..].iter().map(|size| size.unwrap_or(1)).collect();
    // Backward ranges become forward ranges with reversed values.
    let mut at = Vec::new();
    let mut reversed = vec![false; ty.rank()];
    let mut args = vec![value];
    for (dim, taken) in plan.taken.iter().enumerate() {
        at.push(match taken {
            Taken::Fixed(range) => Places::Range(*range),
            Taken::Range(range) if range.step < 0 => {
                reversed[dim] = true;
                let start = range.at(range.len - 1);
                Places::Range(SliceRange { start, step: -range.step, len: range.len })
            }
            Taken::Range(range) => Places::Range(*range),
            Taken::Dynamic(place) => {
                args.push(*place);
                Places::Dynamic(1)
            }
            Taken::Window(place, len) => {
                args.push(*place);
                Places::Dynamic(*len)
            }
            Taken::Places(_) => continue,
        });
    }
    new_value = reshape(build, new_value, &sizes)?;
    let skipped = ty.rank() - sizes.len();
    let turned: Vec<SliceRange> = sizes
        .iter()
        .enumerate()
        .map(|(dim, &size)| match reversed[skipped + dim] && size > 1 {
            true => SliceRange { start: size - 1, step: -1, len: size },
            false => SliceRange::all(size),
        })
        .collect();
    new_value = crate::slice::slice(build, new_value, &turned)?;
    args.insert(1, new_value);
    build.emit1(Update { at, adds }, &args)
}
