//! The collectives of `manual` functions: operations in which the devices along some manual axes exchange local values.
//!
//! Each defines its effect on a group of local values (`eval_group`) and the varying axes of its result; lowering describes the
//! group's local blocks as the blocks of one array.

pub mod axis_index;
pub mod cast;
pub mod vary;

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{counted, undefined};
use spmdc_ir::array::Array;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::lower::work::{Lowering, Side, layout_of};
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::group::GroupCollective;
use spmdc_ir::rules::{Combines, Effect, Elements, Linear, Manual, Placement, Properties};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::types::{AxisSet, DType};

/// The common properties of ops over a group of devices: each combines the values of its group itself, and no pass may move partial
/// values or alignments through it.
pub fn group_properties(op: &dyn GroupCollective) -> Properties<'_> {
    Properties {
        effect: Effect::None,
        manual: Manual::Group(op),
        placement: Placement::Follows,
        linear: Linear::No,
        combines: Combines::Nothing,
        elements: Elements::Other,
        keeps_alignment: false,
    }
}

/// The set of these axes.
pub fn axis_set(axes: &[u8]) -> AxisSet {
    axes.iter().map(|&axis| axis as usize).collect()
}

/// The layouts of operand and result on the devices of one coordinate along the manual axes.
pub fn sides(lowering: &Lowering<'_>, stmt: &Stmt) -> (Side, Side) {
    let side = |value: Value| Side { value, layout: layout_of(lowering.ty(value)) };
    (side(stmt.args[0]), side(stmt.results[0]))
}

/// The factor rule of a collective: dimensions that it cuts or joins are needed whole along the other axes, all others pass.
pub fn factors(from: &[usize], to: &[usize], whole: &[usize]) -> Factors {
    let mut rule = Factors::new();
    let (mut operand, mut result) = (Vec::new(), Vec::new());
    for (dim, (&before, &after)) in from.iter().zip(to).enumerate() {
        if whole.contains(&dim) {
            operand.push(vec![rule.add(before, FactorKind::Whole)]);
            result.push(vec![rule.add(after, FactorKind::Whole)]);
        } else {
            let factor = rule.add(before, FactorKind::Pass);
            operand.push(vec![factor]);
            result.push(vec![factor]);
        }
    }
    rule.operands.push(operand);
    rule.results.push(result);
    rule
}

/// E0215 for keys, which cannot be combined.
pub fn refuse_keys(name: &str, value: Value, build: &CallBuilder) -> Result<(), Diagnostic> {
    if build.ty(value).dtype() == DType::Key {
        return Err(Diagnostic::error(Code::E0215, build.span(), undefined(format_args!("`{name}`"), "key")));
    }
    Ok(())
}

/// The axes argument of a collective, checked against the region that is being built.
pub fn manual_axes(name: &str, args: &mut Args<'_>, build: &CallBuilder) -> Result<Vec<u8>, Diagnostic> {
    let span = args.span;
    if build.manual().is_empty() {
        let message = format!("`{name}` can only be called in a `manual` function");
        return Err(Diagnostic::error(Code::E0504, span, message).help(
            "it combines the blocks of devices, which only a `manual` function sees: `manual(X) fn f(x: f32[8@X]) ...`",
        ));
    }
    let axes = args.axes("axis_name")?;
    for (position, &axis) in axes.iter().enumerate() {
        let axis_name = build.mesh().name(axis);
        if !build.manual().contains(axis as usize) {
            let message = format!("the axis {axis_name} is not a manual axis of this function");
            let help = format!("the function's manual axes are {}", build.mesh().display_set(build.manual()));
            return Err(Diagnostic::error(Code::E0506, span, message).help(help));
        }
        if axes[..position].contains(&axis) {
            return Err(Diagnostic::error(Code::E0303, span, format!("the axis {axis_name} is named twice")));
        }
    }
    Ok(axes)
}

/// A dimension of an operand, counted from the end if negative.
pub fn dimension(name: &str, dim: i64, rank: usize, build: &CallBuilder) -> Result<usize, Diagnostic> {
    let from_start = if dim < 0 { dim + rank as i64 } else { dim };
    usize::try_from(from_start).ok().filter(|&dim| dim < rank).ok_or_else(|| {
        Diagnostic::error(
            Code::E0206,
            build.span(),
            format!("dimension {dim} of `{name}` is out of range for an array with {}", counted(rank, "dimension")),
        )
    })
}

/// The parts of a value cut into `parts` along a dimension.
pub fn cut(array: &Array, dim: usize, parts: usize) -> Vec<Array> {
    let shape = array.shape();
    let (outer, inner): (usize, usize) = (shape[..dim].iter().product(), shape[dim + 1..].iter().product());
    let block = shape[dim] / parts.max(1);
    let part = |index: usize| {
        let mut ty = array.ty.clone();
        ty.shape[dim] = block;
        let rows = (0..outer).flat_map(|row| {
            let start = (row * shape[dim] + index * block) * inner;
            array.bits[start..start + block * inner].iter().copied()
        });
        Array::new(ty, rows.collect())
    };
    (0..parts).map(part).collect()
}

/// Values of one shape, one after another along a dimension.
pub fn join(parts: &[&Array], dim: usize) -> Array {
    let shape = parts[0].shape();
    let (outer, row): (usize, usize) = (shape[..dim].iter().product(), shape[dim..].iter().product());
    let mut ty = parts[0].ty.clone();
    ty.shape[dim] *= parts.len();
    let rows = (0..outer)
        .flat_map(|index| parts.iter().flat_map(move |part| part.bits[index * row..(index + 1) * row].iter()));
    Array::new(ty, rows.copied().collect())
}
