//! The time that work takes on one device, by the cost model: it decides which work is worth dividing.

use spmdc_abi::Scalar;
use spmdc_ir::lower::work::{Product, Work};
use spmdc_layout::cost::{ASSUMED_EXTENT, of_kernel, of_product};
use spmdc_layout::mesh::Mesh;

/// Estimated nanoseconds of a unit of work on one device; 0 for work that is not divided by its time.
pub(super) fn of_work(work: &Work, mesh: &Mesh) -> f64 {
    match work {
        Work::Kernel { kernel, .. } => of_kernel(kernel),
        Work::Product { product, .. } => of_product(multiply_adds(product, mesh)),
        Work::Tiles { tiles, .. } => {
            let rows = length(&tiles.rows, mesh);
            tiles.matrices.iter().map(|extent| length(extent, mesh)).product::<f64>() * rows * tiles.cost
        }
        Work::Library { calls, .. } => {
            calls.batch.iter().map(|extent| length(extent, mesh)).product::<f64>() * calls.cost
        }
        Work::Alias { .. }
        | Work::Copy { .. }
        | Work::Constant { .. }
        | Work::Exchange { .. }
        | Work::Reduce { .. }
        | Work::Permute { .. }
        | Work::Fetch { .. }
        | Work::CheckIndex { .. }
        | Work::Print { .. } => 0.0,
    }
}

pub(crate) fn multiply_adds(product: &Product, mesh: &Mesh) -> f64 {
    let dims = [&product.m, &product.n, &product.k].into_iter().chain(&product.loops).chain(&product.contracted);
    dims.map(|dim| length(&dim.extent, mesh)).product()
}

/// The extent of a dimension on a device, assumed if it is unknown.
pub(crate) fn length(extent: &Scalar, mesh: &Mesh) -> f64 {
    match extent {
        Scalar::Const(extent) => *extent as f64,
        Scalar::BlockLen(dim) => {
            dim.size.div_ceil(dim.axes.iter().map(|&axis| mesh.axes[axis as usize].size).product()) as f64
        }
        Scalar::BlockStart(_)
        | Scalar::Coordinate(_)
        | Scalar::Table { .. }
        | Scalar::Add(..)
        | Scalar::Mul(..)
        | Scalar::Min(..)
        | Scalar::Max(..) => ASSUMED_EXTENT,
    }
}
