//! The part of a layout that types decide, on explicit axes.

use crate::mesh::{AxisKind, Mesh};
use crate::sharding::{DimSharding, Sharding};

/// The initial layout of a value: open if there are auto axes, otherwise replicated.
pub fn unknown_layout(rank: usize, mesh: &Mesh) -> Sharding {
    let open = !mesh.of_kind(AxisKind::Auto).is_empty();
    let dims = vec![DimSharding { axes: Vec::new(), open, alignment: None }; rank];
    Sharding { dims, ..Sharding::replicated(0) }
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
    Sharding { dims: dims.collect(), reduced: layout.reduced.intersect(explicit), ..Sharding::replicated(0) }
        .with_unreduced(unreduced, layout.combine)
}
