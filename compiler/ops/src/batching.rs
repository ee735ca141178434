//! Statements that bring operands into the form of a batch, which the batching of ops shares.

use crate::broadcast::broadcast;
use crate::reshape::reshape;
use crate::reshard::Reshard;
use crate::transpose::transpose;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::Value;
use spmdc_ir::rules::batching::{Batch, BatchedOperand};

/// Operands in the form of a batch.
pub trait BatchForms {
    /// The operand with the mapped dimension in front.
    fn mapped(&self, build: &mut CallBuilder, operand: BatchedOperand) -> Result<Value, Diagnostic>;

    /// The value, whose mapped dimension has the layout of the batch on explicit axes: every device takes its part. E0303 if the value is
    /// split over one of its axes along another dimension.
    fn laid_out(&self, build: &mut CallBuilder, value: Value) -> Result<Value, Diagnostic>;

    /// An operand whose dimensions after the mapped one align at the end with `rank` dimensions.
    fn aligned(&self, build: &mut CallBuilder, operand: BatchedOperand, rank: usize) -> Result<Value, Diagnostic>;
}

impl BatchForms for Batch {
    fn mapped(&self, build: &mut CallBuilder, operand: BatchedOperand) -> Result<Value, Diagnostic> {
        let value = match operand {
            BatchedOperand::Mapped(value) => return Ok(value),
            BatchedOperand::Same(value) => value,
        };
        let shape = [&[self.size], build.ty(value).shape()].concat();
        let value = broadcast(build, value, &shape)?;
        self.laid_out(build, value)
    }

    fn laid_out(&self, build: &mut CallBuilder, value: Value) -> Result<Value, Diagnostic> {
        let mut to = build.explicit_part(build.ty(value));
        if to.dims[0].axes == self.layout.axes {
            return Ok(value);
        }
        to.dims[0].axes.clone_from(&self.layout.axes);
        self.drop_states(&mut to);
        if let Some(axis) = to.repeated_axis() {
            return Err(split_elsewhere(build, value, axis));
        }
        build.emit1(Reshard::request(to), &[value])
    }

    fn aligned(&self, build: &mut CallBuilder, operand: BatchedOperand, rank: usize) -> Result<Value, Diagnostic> {
        let value = match operand {
            BatchedOperand::Mapped(value) => value,
            BatchedOperand::Same(value) => return Ok(value),
        };
        let mut shape = build.ty(value).shape().to_vec();
        let missing = (1 + rank).saturating_sub(shape.len());
        shape.splice(1..1, vec![1; missing]);
        reshape(build, value, &shape)
    }
}

/// E0303: the mapped dimension is split over an axis over which a value that needs this dimension is split already.
fn split_elsewhere(build: &CallBuilder, value: Value, axis: u8) -> Diagnostic {
    let (axis, mut ty) = (build.mesh().display_axes(&[axis]), build.ty(value).clone());
    ty.array.shape.remove(0);
    ty.sharding.dims.remove(0);
    let ty = build.display_closed(&ty);
    let message = format!("each element of this `vmap` needs `{ty}`, but the mapped dimension is split over {axis}");
    Diagnostic::error(Code::E0303, build.span(), message)
        .label(build.info(value).origin.span, format!("this is `{ty}` for each element"))
        .help("an axis can split only one dimension of an array; reshard the mapped argument or this value")
}

/// A value with one of its dimensions moved in front.
pub fn in_front(build: &mut CallBuilder, value: Value, dim: usize) -> Result<Value, Diagnostic> {
    let rank = build.ty(value).rank();
    let order: Vec<usize> = std::iter::once(dim).chain((0..rank).filter(|&other| other != dim)).collect();
    transpose(build, value, &order)
}

/// A value with its first dimension moved to another place.
pub fn from_front(build: &mut CallBuilder, value: Value, to: usize) -> Result<Value, Diagnostic> {
    let rank = build.ty(value).rank();
    let mut order: Vec<usize> = (1..rank).collect();
    order.insert(to, 0);
    transpose(build, value, &order)
}
