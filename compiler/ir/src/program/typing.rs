//! The types of an op's results: element type and shape from the op, sharding on explicit axes from its factors, varying axes as
//! the union of those of the operands.
//!
//! Defined once for the checker, for passes through the builder, and for the verifier. On auto axes a result's dimensions stay open
//! here; `propagate` decides them.

use crate::layout::mesh::{AxisKind, Mesh};
use crate::layout::sharding::{DimSharding, Sharding};
use crate::layout::types::{ArrayType, AxisSet, Type};
use crate::ops::read_rows::refused;
use crate::ops::rules::Typing;
use crate::ops::{Mismatch, Op, called};
use crate::program::explicit;
use crate::program::partial_sums::FactorBounds;
use spmdc_abi::ReduceOp;

/// The types of the results; `factors` are the bounds of the operands' elements.
pub fn result_types(op: &Op, args: &[&Type], factors: &[FactorBounds], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
    check_streams(op, args)?;
    let results = match op.rules().typing() {
        Typing::ByFactors(op) => op.infer(&arrays(args))?,
        Typing::Placed(op) | Typing::OfBlocks(op) => return op.place(args, mesh),
    };
    let varying = varying(op, args);
    let shardings = match mesh.of_kind(AxisKind::Explicit).is_empty() {
        true => results.iter().map(|array| unknown_layout(array.rank(), mesh)).collect(),
        false => explicit::layouts(op, args, factors, &results, mesh)?,
    };
    Ok(results.into_iter().zip(shardings).map(|(array, sharding)| Type { array, sharding, varying }).collect())
}

/// As [`result_types`], without the rule of explicit axes: for layouts that are given.
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
    let reads = usize::from(matches!(op, Op::ReadRows(_)));
    match args.iter().skip(reads).find(|ty| ty.array.is_stream) {
        Some(ty) => Err(refused(&called(op.rules().name()), &ty.array)),
        None => Ok(()),
    }
}

fn arrays<'a>(args: &[&'a Type]) -> Vec<&'a ArrayType> {
    args.iter().map(|ty| &ty.array).collect()
}

fn varying(op: &Op, args: &[&Type]) -> AxisSet {
    op.rules().properties().varying(args.iter().fold(AxisSet::EMPTY, |set, ty| set.union(ty.varying)))
}

/// The initial layout of a value: open if there are auto axes, otherwise replicated.
pub fn unknown_layout(rank: usize, mesh: &Mesh) -> Sharding {
    let open = !mesh.of_kind(AxisKind::Auto).is_empty();
    let dims = vec![DimSharding { axes: Vec::new(), open, alignment: None }; rank];
    Sharding { dims, unreduced: AxisSet::EMPTY, combine: ReduceOp::Sum }
}

/// The part of a value's layout that its type decides: its explicit axes; all else is open.
pub fn explicit_part(layout: &Sharding, mesh: &Mesh) -> Sharding {
    let explicit = mesh.of_kind(AxisKind::Explicit);
    let open = !mesh.of_kind(AxisKind::Auto).is_empty();
    let dims = layout.dims.iter().map(|dim| {
        let axes = dim.axes.iter().copied().filter(|&axis| explicit.contains(usize::from(axis))).collect();
        DimSharding { axes, open, alignment: None }
    });
    let unreduced = layout.unreduced.intersect(explicit);
    Sharding { dims: dims.collect(), unreduced: AxisSet::EMPTY, combine: ReduceOp::Sum }
        .with_unreduced(unreduced, layout.combine)
}
