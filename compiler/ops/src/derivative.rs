//! Statements that the derivatives of ops share.

use crate::broadcast::broadcast;
use crate::collective::cast::cast_to;
use crate::constant::Constant;
use crate::elementwise::{Binary, Compare, Select, Unary};
use crate::reduce::reduce;
use crate::reshape::reshape;
use crate::reshard::Reshard;
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, MathFn, UnaryOp};
use spmdc_layout::types::{AxisSet, DType, Type};

/// Short forms for the statements of rules.
pub struct Terms<'b>(pub &'b mut CallBuilder);

impl Terms<'_> {
    /// A number of the element type of an array.
    pub fn number(&mut self, like: Value, number: f64) -> Result<Value, Diagnostic> {
        let dtype = self.0.ty(like).dtype();
        self.0.emit1(Constant::float(dtype, number), &[])
    }

    /// The smallest positive number of the element type of an array that is not subnormal.
    pub fn smallest_normal(&mut self, like: Value) -> Result<Value, Diagnostic> {
        let format = self.0.ty(like).dtype().format().expect("only floats have derivatives");
        self.number(like, format.smallest_normal())
    }

    /// The unary operation `op` of `x`.
    pub fn unary(&mut self, op: UnaryOp, x: Value) -> Result<Value, Diagnostic> {
        self.0.emit1(Unary(op), &[x])
    }

    /// The math function `f` of `x`.
    pub fn math(&mut self, f: MathFn, x: Value) -> Result<Value, Diagnostic> {
        self.unary(UnaryOp::Math(f), x)
    }

    /// The binary operation `op` of `x` and `y`.
    pub fn binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Result<Value, Diagnostic> {
        self.0.emit1(Binary(op), &[x, y])
    }

    /// `x * y`
    pub fn mul(&mut self, x: Value, y: Value) -> Result<Value, Diagnostic> {
        self.binary(BinaryOp::Mul, x, y)
    }

    /// `x / y`
    pub fn div(&mut self, x: Value, y: Value) -> Result<Value, Diagnostic> {
        self.binary(BinaryOp::Div, x, y)
    }

    /// `x - y`
    pub fn sub(&mut self, x: Value, y: Value) -> Result<Value, Diagnostic> {
        self.binary(BinaryOp::Sub, x, y)
    }

    /// `x + y`
    pub fn add(&mut self, x: Value, y: Value) -> Result<Value, Diagnostic> {
        self.binary(BinaryOp::Add, x, y)
    }

    /// `number * x`
    pub fn scaled(&mut self, number: f64, x: Value) -> Result<Value, Diagnostic> {
        let number = self.number(x, number)?;
        self.mul(number, x)
    }

    /// `number - x`
    pub fn less_than(&mut self, number: f64, x: Value) -> Result<Value, Diagnostic> {
        let number = self.number(x, number)?;
        self.sub(number, x)
    }

    /// `1 / x`
    pub fn inverse(&mut self, x: Value) -> Result<Value, Diagnostic> {
        self.unary(UnaryOp::Reciprocal, x)
    }

    /// The comparison `op` of `x` and `y`.
    pub fn compare(&mut self, op: CompareOp, x: Value, y: Value) -> Result<Value, Diagnostic> {
        self.0.emit1(Compare(op), &[x, y])
    }

    /// `where(condition, x, y)`
    pub fn select(&mut self, condition: Value, x: Value, y: Value) -> Result<Value, Diagnostic> {
        self.0.emit1(Select, &[condition, x, y])
    }

    /// 1 where the condition holds and 0 elsewhere, of the element type of an array.
    pub fn indicator(&mut self, condition: Value, like: Value) -> Result<Value, Diagnostic> {
        let (one, zero) = (self.number(like, 1.0)?, self.number(like, 0.0)?);
        self.select(condition, one, zero)
    }
}

/// Whether arrays of this type have derivatives.
pub fn is_differentiable(dtype: DType) -> bool {
    dtype.is_float()
}

/// Zeros like an array, in its layout on explicit axes.
pub fn zeros_like(build: &mut CallBuilder, like: Value) -> Result<Value, Diagnostic> {
    let zeros = zeros_of(build, like)?;
    build.in_layout_of(zeros, like)
}

/// Zeros of the element type and shape of an array.
pub fn zeros_of(build: &mut CallBuilder, like: Value) -> Result<Value, Diagnostic> {
    let (dtype, shape) = (build.ty(like).dtype(), build.ty(like).shape().to_vec());
    let zero = build.emit1(Constant::float(dtype, 0.0), &[])?;
    broadcast(build, zero, &shape)
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
