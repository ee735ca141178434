//! The types of an op's results: element type and shape from the op, sharding on explicit axes from its factors, varying axes
//! as the union of the operands'.
//!
//! Written once and used by the checker, by passes through the builder, and by the verifier.

use crate::ir::mesh::Mesh;
use crate::ir::types::{ArrayType, AxisSet, Type};
use crate::ops::{Mismatch, Op};

pub fn result_types(op: &Op, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
    let rules = op.rules();
    if let Some(types) = rules.result_types(args, mesh) {
        return types;
    }
    let arrays: Vec<&ArrayType> = args.iter().map(|ty| &ty.array).collect();
    let varying = args.iter().fold(AxisSet::EMPTY, |set, ty| set.union(ty.varying));
    let results = rules.infer(&arrays)?;
    Ok(results.into_iter().map(|array| Type { varying, ..Type::open(array) }).collect())
}
