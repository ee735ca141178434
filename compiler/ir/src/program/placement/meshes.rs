//! The meshes of values, and those to which transfers go.

use crate::op::Op;
use crate::program::transfer_target::TransferTarget;
use crate::rules::Elements;

/// For each value, the mesh to which it is committed, by its position in [`Mesh::named`](spmdc_layout::mesh::Mesh::named);
/// None if it is made wherever it is needed.
pub type ValueMeshes = Vec<Option<u8>>;

/// The destination of a transfer; None for other ops.
pub fn destination(op: &Op) -> Option<TransferTarget> {
    let elements = op.rules().properties().elements;
    if let Elements::Transferred(destination) = elements { Some(destination) } else { None }
}
