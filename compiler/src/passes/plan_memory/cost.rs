//! What work costs a device, roughly: enough to tell what is worth being divided.

use crate::codegen::loops::{Combine, Extent, Inst, Kernel};
use crate::codegen::lower::{Product, Work};
use crate::ir::mesh::Mesh;
use crate::ops::elementwise::{BinaryOp, UnaryOp};
use spmdc_runtime::abi::Scalar;

/// Nanoseconds for all of it.
pub(super) fn of_work(work: &Work, mesh: &Mesh) -> f64 {
    match work {
        Work::Kernel { kernel, .. } => {
            let units = if kernel.range_dim { kernel.dims.first().map_or(1, |dim| most(&dim.extent)) } else { 1 };
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
    let points: f64 = kernel.dims.iter().skip(inner).map(|dim| most(&dim.extent) as f64).product();
    let point: f64 = kernel.insts.iter().map(inst_cost).sum::<f64>()
        + kernel.stores.iter().map(|store| if store.combine == Some(Combine::ArgMax) { 0.4 } else { 0.1 }).sum::<f64>();
    points * point
}

fn most(extent: &Extent) -> u64 {
    match extent {
        Extent::Static(extent) => *extent,
        Extent::Scalar { max, .. } => *max,
    }
}

fn inst_cost(inst: &Inst) -> f64 {
    match inst {
        Inst::Const { .. } | Inst::LoopInvariant { .. } => 0.0,
        Inst::Load { .. }
        | Inst::Index { .. }
        | Inst::Compare { .. }
        | Inst::Select { .. }
        | Inst::Cast { .. }
        | Inst::InRange { .. } => 0.1,
        Inst::Unary { op, .. } => match op {
            UnaryOp::Neg | UnaryOp::Not | UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Square => 0.05,
            UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Trunc => 0.1,
            UnaryOp::IsNan | UnaryOp::IsInf | UnaryOp::IsFinite => 0.1,
            UnaryOp::Reciprocal | UnaryOp::Sqrt | UnaryOp::Rsqrt => 0.4,
            UnaryOp::Cbrt
            | UnaryOp::Exp
            | UnaryOp::Exp2
            | UnaryOp::Expm1
            | UnaryOp::Log
            | UnaryOp::Log2
            | UnaryOp::Log10
            | UnaryOp::Log1p
            | UnaryOp::Sin
            | UnaryOp::Cos
            | UnaryOp::Tan
            | UnaryOp::Asin
            | UnaryOp::Acos
            | UnaryOp::Atan
            | UnaryOp::Sinh
            | UnaryOp::Cosh
            | UnaryOp::Tanh
            | UnaryOp::Asinh
            | UnaryOp::Acosh
            | UnaryOp::Atanh
            | UnaryOp::Erf
            | UnaryOp::Erfc
            | UnaryOp::ErfInv => 1.0,
        },
        Inst::Binary { op, .. } => match op {
            BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Hypot | BinaryOp::Logaddexp => 2.0,
            BinaryOp::Div | BinaryOp::FloorDiv | BinaryOp::Rem => 0.5,
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Minimum | BinaryOp::Maximum => 0.05,
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr => 0.05,
        },
    }
}
