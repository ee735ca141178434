//! The layouts of operands and results that make a statement local under its factor rule.

use crate::program::partial_sums::commutes_with_sum;
use crate::program::{Func, Stmt};
use crate::rules::Effect;
use spmdc_abi::ReduceOp;
use spmdc_layout::factors::FactorKind;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::projection::{Assignment, Projection};
use spmdc_layout::sharding::{self, Sharding};
use spmdc_layout::types::AxisSet;
use spmdc_layout::window::WindowMap;

/// The axes over which operands stay partial sums: the op commutes with the sum, and its results are partial over them.
pub fn kept_sums(func: &Func, stmt: &Stmt) -> AxisSet {
    let Some(op) = stmt.op() else { return AxisSet::EMPTY };
    let args = func.types(&stmt.args);
    let all = args.iter().fold(AxisSet::EMPTY, |set, ty| set.union(ty.sharding.unreduced));
    let wanted = match op.rules().properties().effect {
        // A layout is shown as it is.
        Effect::Layout => all,
        Effect::None | Effect::Stops | Effect::Check | Effect::Text | Effect::File | Effect::Message
            if stmt.results.is_empty() =>
        {
            AxisSet::EMPTY
        }
        Effect::None | Effect::Stops | Effect::Check | Effect::Text | Effect::File | Effect::Message => {
            stmt.results.iter().fold(all, |set, &result| set.intersect(func.ty(result).sharding.unreduced))
        }
    };
    let sets: Vec<AxisSet> = args.iter().map(|ty| ty.sharding.unreduced.intersect(wanted)).collect();
    let are_sums = args.iter().all(|ty| ty.sharding.unreduced.is_empty() || ty.sharding.combine == ReduceOp::Sum);
    if are_sums && commutes_with_sum(op, &args, &sets) { wanted } else { AxisSet::EMPTY }
}

/// For each factor the alignment of its blocks, if it has one.
pub type Alignments = Vec<Option<sharding::Alignment>>;

/// The alignments of a statement's factors, taken from its results, otherwise from its operands.
pub fn alignments_of(func: &Func, projection: &Projection, stmt: &Stmt, assignment: &Assignment) -> Alignments {
    let rule = &projection.rule;
    let results = rule.results.iter().zip(&stmt.results).map(|tensor| (None, tensor));
    let operands = rule.operands.iter().zip(&stmt.args).enumerate().map(|(i, tensor)| (Some(i), tensor));
    let mut alignments = vec![None; rule.factors.len()];
    let mut known = vec![false; rule.factors.len()];
    for (operand, (dims, &value)) in results.chain(operands) {
        for (dim, layout) in func.ty(value).sharding.dims.iter().enumerate() {
            let &[factor] = dims[dim].as_slice() else { continue };
            let is_part = operand.is_some_and(|operand| rule.part(operand, dim).is_some());
            if !is_part && !known[factor] && !layout.axes.is_empty() && layout.axes == assignment[factor] {
                (alignments[factor], known[factor]) = (layout.alignment, true);
            }
        }
    }
    alignments
}

/// The layout in which an op needs an operand of this shape under an assignment.
pub fn needed(
    projection: &Projection,
    (operand, shape): (usize, &[usize]),
    assignment: &Assignment,
    alignments: &Alignments,
    mesh: &Mesh,
) -> Sharding {
    let dims = &projection.rule.operands[operand];
    let mut layout = aligned(projection, dims, assignment, alignments);
    for (dim, layout) in layout.dims.iter_mut().enumerate() {
        if let Some(part) = projection.rule.part(operand, dim) {
            let whole = projection.rule.factors[dims[dim][0]].size;
            *layout = layout.part(whole, (part.start as i64, part.step), shape[dim], mesh);
        }
    }
    layout
}

fn aligned(projection: &Projection, dims: &[Vec<usize>], assignment: &Assignment, alignments: &Alignments) -> Sharding {
    let mut layout = Sharding::closed(projection.dims_of(dims, assignment));
    for (dim, factors) in layout.dims.iter_mut().zip(dims) {
        if let &[factor] = factors.as_slice() {
            dim.alignment = alignments[factor];
        }
    }
    layout
}

/// The layout of a result that is computed under this assignment from operands that are partial sums over `sums`.
pub fn natural(
    projection: &Projection,
    dims: &[Vec<usize>],
    assignment: &Assignment,
    alignments: &Alignments,
    sums: AxisSet,
) -> Sharding {
    let mut partial = sums;
    let mut combine = ReduceOp::Sum;
    for (factor, axes) in projection.rule.factors.iter().zip(assignment) {
        if let (FactorKind::Reduce(op), false) = (factor.kind, axes.is_empty()) {
            partial = partial.union(axes.iter().map(|&axis| axis as usize).collect());
            combine = op;
        }
    }
    aligned(projection, dims, assignment, alignments).with_unreduced(partial, combine)
}

/// The window that a statement is, if it is one.
pub fn window_of(func: &Func, stmt: &Stmt) -> Option<WindowMap> {
    let elements = stmt.op()?.rules().properties().elements;
    Some(elements.window()?.window(&func.arrays(&stmt.args)))
}
