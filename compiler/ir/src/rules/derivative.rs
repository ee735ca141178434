//! The derivative of an op: the forms in which the file of an op gives it.
//!
//! A rule serves both directions. The tangents of the results follow from the tangents of the operands (`jvp`), and the cotangents of the
//! operands from the cotangents of the results (`vjp`, `grad`): see `transform/derivatives`.

use crate::call::build::CallBuilder;
use crate::op::Op;
use crate::program::{Stmt, Value};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_layout::types::DType;

/// How the results of an op change with its operands.
pub enum Derivative<'a> {
    /// Not at all, or in steps: counted and compared numbers, positions, checks.
    Zero,
    /// Each element of the only result is a function of the operands' elements at its index, after broadcasting.
    Pointwise(&'a dyn Partials),
    /// The only result is linear in some of the operands.
    Linear(&'a dyn LinearMap),
    /// The only result is a reduction of the only operand, like a sum in which each element has a weight.
    Weighted(&'a dyn Weights),
    /// All results together are linear in all operands together.
    Joint(&'a dyn JointMap),
    /// The tangents of the results are computed from the tangents of the operands by linear ops.
    Tangents(&'a dyn Tangents),
    /// A rule does not exist yet, or passes insert the op, long after differentiation.
    Missing,
}

/// The rule of a pointwise op.
pub trait Partials {
    /// The partial derivative of the result by this operand.
    fn partial(&self, build: &mut CallBuilder, stmt: &Stmt, at: usize) -> Result<PartialDerivative, Diagnostic>;
}

/// A partial derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartialDerivative {
    /// 0
    Zero,
    /// 1
    One,
    /// -1
    MinusOne,
    /// An array that broadcasts to the shape of the result.
    Array(Value),
    /// An array times two; the product may be infinite.
    Double(Value),
    /// 1 where these conditions, of the shape of the result, hold. Elsewhere no tangent passes, infinities included.
    Where(Value),
}

/// The rule of a linear op.
pub trait LinearMap {
    /// The operands in which it is linear.
    fn linearity(&self, stmt: &Stmt) -> Linearity;

    /// The op that maps the tangents: itself, or itself without a constant.
    fn linear_part(&self) -> Option<Op> {
        None
    }

    /// The cotangent of this operand for the cotangent of the result. It may have more dimensions than the operand, if the operand was
    /// broadcast.
    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        at: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic>;
}

/// The operands in which an op is linear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Linearity {
    /// In all of these taken together, as a concatenation is.
    Together(Vec<usize>),
    /// In each of these while the others do not change, as a product is.
    Apart(Vec<usize>),
}

/// The rule of a reduction.
pub trait Weights {
    /// The weight of each element of the operand, of the operand's shape.
    fn weights(&self, build: &mut CallBuilder, stmt: &Stmt) -> Result<Value, Diagnostic>;

    /// The reduced dimensions, and whether they stay with size 1.
    fn reduced(&self) -> (&[usize], bool);
}

/// The rule of a linear op with several results.
pub trait JointMap {
    /// The cotangents of all operands for the cotangents of all results.
    fn transposed(&self, build: &mut CallBuilder, stmt: &Stmt, cotangents: &[Value]) -> Result<Vec<Value>, Diagnostic>;
}

/// The rule of an op whose derivative is a composition of other ops, such as a factorization.
pub trait Tangents {
    /// The rule for cotangents of these operands alone, if the op itself is linear in them.
    fn linear(&self, operands: &[usize]) -> Option<&dyn LinearMap> {
        let _ = operands;
        None
    }

    /// The tangents of the results for the tangents of the operands; None for values that do not change. Statements that depend on tangents
    /// are linear in them: the reverse transposes these statements by the rules of their ops.
    fn tangents(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        given: &[Option<Value>],
    ) -> Result<Vec<Option<Value>>, Diagnostic>;
}

/// Whether arrays of this type have derivatives.
pub fn is_differentiable(dtype: DType) -> bool {
    dtype.is_float()
}
