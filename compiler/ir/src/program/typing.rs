//! The types of an op's results: element type and shape from the op, sharding on explicit axes from its factors, varying axes as the union
//! of the operands' varying axes.
//!
//! Defined once for the checker, for passes through the builder, and for the verifier. On auto axes a result's dimensions stay open here;
//! `propagate` decides them.

use crate::mismatch::{Mismatch, called};
use crate::op::Op;
use crate::program::explicit;
use crate::program::streams::refused;
use crate::rules::{Elements, Typing};
use spmdc_layout::explicit::unknown_layout;
use spmdc_layout::mesh::{AxisKind, Mesh};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, Type};

/// The types of the results of a statement that is in a region over the axes `manual`; these are empty outside.
pub fn result_types(op: &Op, args: &[&Type], manual: AxisSet, mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
    check_streams(op, args)?;
    let results = match op.rules().typing() {
        Typing::ByFactors(op) => op.infer(&arrays(args))?,
        Typing::Placed(op) | Typing::OfBlocks(op) => return op.place(args, mesh),
    };
    let varying = varying(op, args);
    let summed = summed_by_group(op, args);
    let summed: Option<Vec<&Type>> = summed.as_ref().map(|summed| summed.iter().collect());
    let args = summed.as_deref().unwrap_or(args);
    let shardings = match mesh.of_kind(AxisKind::Explicit).union(manual).is_empty() {
        true => results.iter().map(|array| unknown_layout(array.rank(), mesh)).collect(),
        false => explicit::layouts(op, args, &results, manual, mesh)?,
    };
    let typed = |(array, sharding): (ArrayType, Sharding)| {
        // A value of which devices have different ones is not reduced.
        let reduced = sharding.reduced.minus(varying);
        Type { array, sharding: Sharding { reduced, ..sharding }, varying }
    };
    Ok(results.into_iter().zip(shardings).map(typed).collect())
}

/// As [`result_types`], without the rule of explicit axes: for stated layouts.
pub fn shapes(op: &Op, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
    check_streams(op, args)?;
    let results = match op.rules().typing() {
        Typing::ByFactors(op) => op.infer(&arrays(args))?,
        Typing::Placed(op) | Typing::OfBlocks(op) => return op.place(args, mesh),
    };
    let varying = varying(op, args);
    let typed = |array: ArrayType| Type { sharding: unknown_layout(array.rank(), mesh), array, varying };
    Ok(results.into_iter().map(typed).collect())
}

/// E0223 for a stream where an op needs an array.
fn check_streams(op: &Op, args: &[&Type]) -> Result<(), Mismatch> {
    let reads = usize::from(matches!(op.rules().properties().elements, Elements::Rows));
    match args.iter().skip(reads).find(|ty| ty.array.is_stream) {
        Some(ty) => Err(refused(&called(op.rules().name()), &ty.array)),
        None => Ok(()),
    }
}

/// The operands as a collective sees them that takes summands, as `psum` and `psum_scatter` do; None for other ops.
fn summed_by_group(op: &Op, args: &[&Type]) -> Option<Vec<Type>> {
    let properties = op.rules().properties();
    let group = properties.group().filter(|group| group.sums())?;
    let axes: AxisSet = group.axes().iter().map(|&axis| usize::from(axis)).collect();
    let without = |ty: &&Type| {
        let unreduced = ty.sharding.unreduced.minus(axes);
        Type { sharding: ty.sharding.clone().with_unreduced(unreduced, ty.sharding.combine), ..(*ty).clone() }
    };
    Some(args.iter().map(without).collect())
}

fn arrays<'a>(args: &[&'a Type]) -> Vec<&'a ArrayType> {
    args.iter().map(|ty| &ty.array).collect()
}

fn varying(op: &Op, args: &[&Type]) -> AxisSet {
    op.rules().properties().varying(args.iter().fold(AxisSet::EMPTY, |set, ty| set.union(ty.varying)))
}
