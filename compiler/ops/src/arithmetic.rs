//! Short forms for statements on arrays of numbers.

use crate::constant::Constant;
use crate::elementwise::{Binary, Compare, Select, Unary};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, MathFn, UnaryOp};

/// Short forms for the statements of rules.
pub struct Arithmetic<'b>(pub &'b mut CallBuilder);

impl Arithmetic<'_> {
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
