//! Statements that the derivatives of ops share.

use crate::broadcast::zeros_of;
use crate::collective::cast::cast_to;
use crate::reduce::reduce;
use crate::reshape::reshape;
use crate::reshard::Reshard;
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::Value;
use spmdc_layout::types::{AxisSet, Type};

/// Zeros like an array, in its layout on explicit axes.
pub fn zeros_like(build: &mut CallBuilder, like: Value) -> Result<Value, Diagnostic> {
    let zeros = zeros_of(build, like)?;
    build.in_layout_of(zeros, like)
}

/// A cotangent in the layout that a type decides, varying at least along its axes. Along manual axes it may stay a part: the sum of parts is taken later.
pub fn conformed(build: &mut CallBuilder, value: Value, to: &Type) -> Result<Value, Diagnostic> {
    let value = if build.manual().is_empty() { value } else { cast_to(build, value, to)? };
    let (own, mut wanted) = (build.explicit_part(build.ty(value)), build.explicit_part(to));
    // No layout is wanted along manual axes, where parts stay parts.
    let manual = build.manual();
    let states = |own: AxisSet, wanted: AxisSet| wanted.minus(manual).union(own.intersect(manual));
    wanted.reduced = states(own.reduced, wanted.reduced);
    let unreduced = states(own.unreduced, wanted.unreduced);
    let wanted = wanted.with_unreduced(unreduced, ReduceOp::Sum);
    let stays = own == wanted && !build.comes_in(value);
    let value = if stays { value } else { build.emit1(Reshard::request(wanted), &[value])? };
    build.vary(value, to.varying)
}

/// Zeros of this type, like an array of it.
pub fn zeros(build: &mut CallBuilder, like: Value, to: &Type) -> Result<Value, Diagnostic> {
    let zeros = zeros_of(build, like)?;
    conformed(build, zeros, to)
}

/// Zeros of the type of an array's gradient.
pub fn gradient_zeros(build: &mut CallBuilder, of: Value) -> Result<Value, Diagnostic> {
    let ty = build.gradient_type(of);
    zeros(build, of, &ty)
}

/// The sum over the dimensions along which an array was broadcast: the cotangent of that array. Where the type of the cotangent says so, the sum
/// stays partial along the axes that split these dimensions.
pub fn summed_to(build: &mut CallBuilder, value: Value, of: Value) -> Result<Value, Diagnostic> {
    let (from, shape) = (build.ty(value).shape().to_vec(), build.ty(of).shape().to_vec());
    if from == shape {
        return Ok(value);
    }
    let skipped = from.len() - shape.len();
    let was_broadcast = |dim: &usize| *dim < skipped || shape[dim - skipped] != from[*dim];
    let axes: Vec<usize> = (0..from.len()).filter(was_broadcast).collect();
    let split =
        |axis: &usize| build.ty(value).sharding.dims[*axis].axes.iter().map(|&axis| usize::from(axis)).collect();
    let partial = build.gradient_type(of).sharding.unreduced;
    let partial = axes.iter().map(split).fold(AxisSet::EMPTY, AxisSet::union).intersect(partial);
    let mut sum = reduce(build, ReduceOp::Sum, value, &axes, false)?;
    if !partial.is_empty() {
        let own = build.carried_type(sum).sharding;
        let unreduced = own.unreduced.union(partial);
        sum = build.emit1(Reshard::request(own.with_unreduced(unreduced, ReduceOp::Sum)), &[sum])?;
    }
    reshape(build, sum, &shape)
}
