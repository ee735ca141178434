//! Batching of ops: what the file of an op says of it, and what these rules share.
//!
//! A function that is mapped over a dimension becomes statements of arrays that have this dimension in front: see `transform/batching`. Values that
//! do not depend on mapped arguments stay as they are.

use super::Op;
use super::broadcast::broadcast;
use super::reshape::reshape;
use super::transpose::transpose;
use crate::ops::call::build::CallBuilder;
use crate::program::{Stmt, Value};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_layout::reshard::step::Reshard;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{AxisSet, Type};

/// The statements that compute an op for each element of a batch.
pub enum Batching<'a> {
    /// The same op: each element of the result is computed from the operands' elements at its index, after broadcasting.
    Elementwise,
    /// This op, which counts dimensions from the next one on. All operands have the mapped dimension in front.
    Shifted(Box<Op>),
    /// Statements of its own.
    Rule(&'a dyn Batched),
    /// As `batching`; where an element must not stop the program, its operand `at` is this number, for which the op never does.
    Stops {
        /// The position of the operand.
        at: usize,
        /// The number.
        harmless: u8,
        /// The statements.
        batching: Box<Batching<'a>>,
    },
    /// The op for one element after the other, in a loop.
    Loop,
    /// Nothing: the op has no operands, or passes insert it, long after functions have been mapped.
    Never,
}

impl Batching<'_> {
    pub(super) fn shifted<'a>(op: impl Into<Op>) -> Batching<'a> {
        Batching::Shifted(Box::new(op.into()))
    }

    pub(super) fn stops(at: usize, harmless: u8, batching: Batching<'_>) -> Batching<'_> {
        Batching::Stops { at, harmless, batching: Box::new(batching) }
    }
}

/// The rule of an op whose batched form is another op, or several.
pub trait Batched {
    /// The results for each element of a batch, with the mapped dimension in front. At least one operand is mapped; the types of `stmt`
    /// are those of one element.
    fn batched(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic>;
}

/// The elements over which a function is mapped.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Their number.
    pub size: usize,
    /// The layout of the mapped dimension on explicit axes.
    pub layout: DimSharding,
}

/// A value of the mapped function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchedOperand {
    /// One for each element, along the first dimension.
    Mapped(Value),
    /// The same for all elements.
    Same(Value),
}

impl BatchedOperand {
    /// The value, whether it has the mapped dimension or not.
    pub fn value(self) -> Value {
        match self {
            BatchedOperand::Mapped(value) | BatchedOperand::Same(value) => value,
        }
    }

    /// Whether it has the mapped dimension.
    pub fn is_mapped(self) -> bool {
        match self {
            BatchedOperand::Mapped(_) => true,
            BatchedOperand::Same(_) => false,
        }
    }
}

impl Batch {
    /// The type of a value with the mapped dimension in front; `ty` is that of one element.
    pub fn ty(&self, ty: &Type) -> Type {
        let mut ty = ty.clone();
        ty.array.shape.insert(0, self.size);
        self.add_to(&mut ty.sharding, 0);
        ty
    }

    /// Adds the mapped dimension to a layout of one element. Along an axis that splits the elements each device has all of its elements, so
    /// that no sum of theirs is partial, and no gradient.
    pub fn add_to(&self, layout: &mut Sharding, at: usize) {
        layout.dims.insert(at, self.layout.clone());
        self.drop_states(layout);
    }

    fn drop_states(&self, layout: &mut Sharding) {
        let axes: AxisSet = self.layout.axes.iter().map(|&axis| usize::from(axis)).collect();
        let unreduced = layout.unreduced.minus(axes);
        layout.reduced = layout.reduced.minus(axes);
        *layout = layout.clone().with_unreduced(unreduced, layout.combine);
    }

    /// The operand with the mapped dimension in front.
    pub fn mapped(&self, build: &mut CallBuilder, operand: BatchedOperand) -> Result<Value, Diagnostic> {
        let value = match operand {
            BatchedOperand::Mapped(value) => return Ok(value),
            BatchedOperand::Same(value) => value,
        };
        let shape = [&[self.size], build.ty(value).shape()].concat();
        let value = broadcast(build, value, &shape)?;
        self.laid_out(build, value)
    }

    /// The value, whose mapped dimension has the layout of the batch on explicit axes: every device takes its part. E0303 if the value is
    /// split over one of its axes along another dimension.
    pub fn laid_out(&self, build: &mut CallBuilder, value: Value) -> Result<Value, Diagnostic> {
        let mut to = build.explicit_part(build.ty(value));
        if to.dims[0].axes == self.layout.axes {
            return Ok(value);
        }
        to.dims[0].axes.clone_from(&self.layout.axes);
        self.drop_states(&mut to);
        if let Some(axis) = to.repeated_axis() {
            return Err(self.split_elsewhere(build, value, axis));
        }
        build.emit1(Reshard::request(to), &[value])
    }

    /// E0303: the mapped dimension is split over an axis over which a value that needs this dimension is split already.
    fn split_elsewhere(&self, build: &CallBuilder, value: Value, axis: u8) -> Diagnostic {
        let (axis, mut ty) = (build.mesh.display_axes(&[axis]), build.ty(value).clone());
        ty.array.shape.remove(0);
        ty.sharding.dims.remove(0);
        let ty = build.display_closed(&ty);
        let message =
            format!("each element of this `vmap` needs `{ty}`, but the mapped dimension is split over {axis}");
        Diagnostic::error(Code::E0303, build.span(), message)
            .label(build.func.info(value).origin.span, format!("this is `{ty}` for each element"))
            .help(format!(
                "an axis can split only one dimension of an array; reshard the mapped argument or this value"
            ))
    }

    /// An operand whose dimensions after the mapped one align at the end with `rank` dimensions.
    pub fn aligned(&self, build: &mut CallBuilder, operand: BatchedOperand, rank: usize) -> Result<Value, Diagnostic> {
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

/// Dimensions behind the mapped one.
pub(super) fn shifted(dims: &[usize]) -> Vec<usize> {
    dims.iter().map(|dim| dim + 1).collect()
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
