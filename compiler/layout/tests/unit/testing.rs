//! Common functions of the tests: a mesh.

use spmdc_layout::mesh::{Axis, AxisKind, Mesh};

/// A mesh of `X = 2, Y = 4`, all auto.
pub fn mesh() -> Mesh {
    let axis = |name: &str, size| Axis::new(name, size, AxisKind::Auto);
    Mesh { axes: vec![axis("X", 2), axis("Y", 4)], ..Mesh::default() }
}
