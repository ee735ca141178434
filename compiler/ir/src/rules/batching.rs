//! The batching of an op: the forms in which the file of an op gives it.
//!
//! A function that is mapped over a dimension becomes statements of arrays that have this dimension in front: see `transform/batching`. Values that
//! do not depend on mapped arguments stay as they are.

use crate::call::build::CallBuilder;
use crate::op::Op;
use crate::program::{Stmt, Value};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{AxisSet, Type};

/// The statements that compute an op for each element of a batch.
pub enum Batching<'a> {
    /// The same op: each element of the result is computed from the operands' elements at its index, after broadcasting.
    Elementwise,
    /// This op, which counts dimensions from the next one on. All operands have the mapped dimension in front.
    Shifted(Op),
    /// Separate statements.
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
    /// This op, which counts dimensions from the next one on.
    pub fn shifted<'a>(op: impl Into<Op>) -> Batching<'a> {
        Batching::Shifted(op.into())
    }

    /// As `batching`, for an op that stops the program unless its operand `at` is `harmless`.
    pub fn stops(at: usize, harmless: u8, batching: Batching<'_>) -> Batching<'_> {
        Batching::Stops { at, harmless, batching: Box::new(batching) }
    }
}

/// The rule of an op whose batched form is another op, or several.
pub trait Batched {
    /// The results for each element of a batch, with the mapped dimension first. At least one operand is mapped; the types of `stmt` are
    /// the types of one element.
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
    /// The type of a value with the mapped dimension first; `ty` is the type of one element.
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

    /// Removes the states along axes that split the elements.
    pub fn drop_states(&self, layout: &mut Sharding) {
        let axes: AxisSet = self.layout.axes.iter().map(|&axis| usize::from(axis)).collect();
        let unreduced = layout.unreduced.minus(axes);
        layout.reduced = layout.reduced.minus(axes);
        *layout = layout.clone().with_unreduced(unreduced, layout.combine);
    }
}

/// Dimensions after the mapped one.
pub fn shifted(dims: &[usize]) -> Vec<usize> {
    dims.iter().map(|dim| dim + 1).collect()
}
