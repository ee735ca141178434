//! What work costs a device, roughly: enough to tell what is worth being divided.

use spmdc_abi::Scalar;
use spmdc_ir::layout::mesh::Mesh;
use spmdc_ir::lower::work::{Product, Work};
use spmdc_kernel::loops::{Combine, Kernel};
use spmdc_kernel::work::work;

/// For each instruction on one element, where four elements share one.
const NANOSECONDS: f64 = 0.035;

/// Nanoseconds for all of it.
pub(super) fn of_work(work: &Work, mesh: &Mesh) -> f64 {
    match work {
        Work::Kernel { kernel, .. } => {
            let units = if kernel.range_dim { kernel.dims.first().map_or(1, |dim| dim.extent.most()) } else { 1 };
            units as f64 * of_unit(kernel)
        }
        Work::Product { product, .. } => of_product(product, mesh),
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

/// Small products reach about 100 GFLOP/s.
fn of_product(product: &Product, mesh: &Mesh) -> f64 {
    let dims = [&product.m, &product.n, &product.k].into_iter().chain(&product.loops).chain(&product.contracted);
    0.02 * dims.map(|dim| length(&dim.extent, mesh)).product::<f64>()
}

/// The extent of a dimension on a device. In `manual` code it may be anything: taken to be short.
fn length(extent: &Scalar, mesh: &Mesh) -> f64 {
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
        | Scalar::Max(..) => 1.0,
    }
}

/// Nanoseconds for one unit of the range, roughly.
pub(super) fn of_unit(kernel: &Kernel) -> f64 {
    let inner = if kernel.range_dim { 1 } else { 0 };
    let points: f64 = kernel.dims.iter().skip(inner).map(|dim| dim.extent.most() as f64).product();
    let point: f64 = NANOSECONDS * kernel.insts.iter().map(work).sum::<f64>()
        + kernel.stores.iter().map(|store| if store.combine == Some(Combine::ArgMax) { 0.4 } else { 0.1 }).sum::<f64>();
    points * point
}
