//! `relu sigmoid gelu silu softplus softmax log_softmax`: neural functions, made of elementwise operations and reductions.
//!
//! Only the two softmaxes reduce: where their dimension is split, the maximum and the sum are combined over devices.

use super::constant::Constant;
use super::elementwise::{Binary, Compare, Select, Unary};
use super::promote::{cast, inexact};
use super::reduce::reduce;
use super::statistics::computed;
use super::{Call, shape};
use crate::layout::types::DType;
use crate::ops::call::args::{Arg, Args, as_ints};
use crate::ops::call::build::Builder;
use crate::ops::call::signature::{Signature, signatures};
use crate::ops::call::term::Term;
use crate::program::Value;
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};

pub struct Neural;

impl Call for Neural {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The larger of x and 0.
        relu(x: Array), NumbersAndBools, "(x: f32[6]) { relu(x - 3) }";
        /// 1 / (1 + exp(-x)).
        sigmoid(x: Array), NumbersAndBools, "(x: f32[6]) { sigmoid(x - 3) }";
        /// x * sigmoid(x).
        silu(x: Array), NumbersAndBools, "(x: f32[6]) { silu(x - 3) }";
        /// log(1 + exp(x)).
        softplus(x: Array), NumbersAndBools, "(x: f32[6]) { softplus(x - 3) }";
        /// The Gaussian error linear unit, in its tanh form unless approximate=false.
        gelu(x: Array, approximate: Bool = true), NumbersAndBools, "(x: f32[6]) { gelu(x - 3) }";
        /// exp(x) / sum(exp(x)), without overflow in between.
        softmax(x: Array, axis: Of("ints or None") = -1), NumbersAndBools, "(x: f32[4, 6]) { softmax(x) }";
        /// log(softmax(x)), without overflow in between.
        log_softmax(x: Array, axis: Of("ints or None") = -1), NumbersAndBools, "(x: f32[4, 6]) { log_softmax(x) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut Builder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let dtype = build.ty(value).dtype();
        let mut formula = Formula { build };
        if name == "relu" {
            let value = if dtype == DType::Bool { cast(formula.build, value, DType::I32)? } else { value };
            let zero = formula.number(0.0, value)?;
            return Ok(Term::Array(formula.binary(BinaryOp::Maximum, value, zero)?));
        }
        let x = cast(formula.build, value, inexact(dtype))?;
        let result = match name {
            "sigmoid" => formula.sigmoid(x),
            "silu" => {
                let gate = formula.sigmoid(x)?;
                formula.binary(BinaryOp::Mul, x, gate)
            }
            "softplus" => {
                let zero = formula.number(0.0, x)?;
                formula.binary(BinaryOp::Logaddexp, x, zero)
            }
            "gelu" if args.optional_bool("approximate")?.unwrap_or(true) => formula.gelu_by_tanh(x),
            "gelu" => formula.gelu(x),
            _ => {
                let rank = formula.build.ty(x).rank();
                // Over the last dimension, unless the call says another; `axis=None` is all of them.
                let axes = match args.take("axis") {
                    None => shape::axes(&[-1], rank, args.span)?,
                    Some(Arg { term: Term::Nothing, .. }) => (0..rank).collect(),
                    Some(arg) => shape::axes(&as_ints(&arg, "axis")?, rank, args.span)?,
                };
                formula.softmax(x, &axes, name == "log_softmax")
            }
        };
        Ok(Term::Array(result?))
    }
}

/// Emits the operations of a formula.
struct Formula<'a> {
    build: &'a mut Builder,
}

impl Formula<'_> {
    fn unary(&mut self, op: UnaryOp, x: Value) -> Result<Value, Diagnostic> {
        self.build.emit1(Unary(op), &[x])
    }

    fn binary(&mut self, op: BinaryOp, x: Value, y: Value) -> Result<Value, Diagnostic> {
        self.build.emit1(Binary(op), &[x, y])
    }

    /// A number of the type of `like`.
    fn number(&mut self, number: f64, like: Value) -> Result<Value, Diagnostic> {
        self.build.emit1(Constant::float(self.build.ty(like).dtype(), number), &[])
    }

    /// `x` times a number.
    fn times(&mut self, x: Value, number: f64) -> Result<Value, Diagnostic> {
        let number = self.number(number, x)?;
        self.binary(BinaryOp::Mul, x, number)
    }

    /// `x` plus a number.
    fn plus(&mut self, x: Value, number: f64) -> Result<Value, Diagnostic> {
        let number = self.number(number, x)?;
        self.binary(BinaryOp::Add, x, number)
    }

    /// `1 / (1 + exp(-x))` for positive x and `exp(x) / (1 + exp(x))` for negative: the power never overflows, and what is
    /// close to 0 keeps its digits.
    fn sigmoid(&mut self, x: Value) -> Result<Value, Diagnostic> {
        let magnitude = self.unary(UnaryOp::Abs, x)?;
        let exponent = self.unary(UnaryOp::Neg, magnitude)?;
        let power = self.unary(UnaryOp::Exp, exponent)?;
        let (zero, one) = (self.number(0.0, x)?, self.number(1.0, x)?);
        let positive = self.build.emit1(Compare(CompareOp::Ge), &[x, zero])?;
        let top = self.build.emit1(Select, &[positive, one, power])?;
        let bottom = self.binary(BinaryOp::Add, one, power)?;
        self.binary(BinaryOp::Div, top, bottom)
    }

    /// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`
    fn gelu_by_tanh(&mut self, x: Value) -> Result<Value, Diagnostic> {
        let square = self.unary(UnaryOp::Square, x)?;
        let cube = self.binary(BinaryOp::Mul, square, x)?;
        let cube = self.times(cube, 0.044715)?;
        let inner = self.binary(BinaryOp::Add, x, cube)?;
        let inner = self.times(inner, (2.0 / std::f64::consts::PI).sqrt())?;
        let tanh = self.unary(UnaryOp::Tanh, inner)?;
        let sum = self.plus(tanh, 1.0)?;
        let half = self.times(sum, 0.5)?;
        self.binary(BinaryOp::Mul, x, half)
    }

    /// `0.5 x erfc(-x / sqrt(2))`
    fn gelu(&mut self, x: Value) -> Result<Value, Diagnostic> {
        let scaled = self.times(x, -std::f64::consts::FRAC_1_SQRT_2)?;
        let tail = self.unary(UnaryOp::Erfc, scaled)?;
        let half = self.times(x, 0.5)?;
        self.binary(BinaryOp::Mul, half, tail)
    }

    fn softmax(&mut self, x: Value, axes: &[usize], log: bool) -> Result<Value, Diagnostic> {
        if axes.iter().any(|&axis| self.build.ty(x).shape()[axis] == 0) {
            return Ok(x);
        }
        // A sum of many powers is too large for f16.
        let dtype = self.build.ty(x).dtype();
        let x = cast(self.build, x, computed(dtype))?;
        let largest = reduce(self.build, ReduceOp::Max, x, axes, true)?;
        let shifted = self.binary(BinaryOp::Sub, x, largest)?;
        let power = self.unary(UnaryOp::Exp, shifted)?;
        let sum = reduce(self.build, ReduceOp::Sum, power, axes, true)?;
        let result = if log {
            let log = self.unary(UnaryOp::Log, sum)?;
            self.binary(BinaryOp::Sub, shifted, log)?
        } else {
            self.binary(BinaryOp::Div, power, sum)?
        };
        cast(self.build, result, dtype)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::array::Array;
    use crate::ops::testing::{self, floats, integers};

    fn run(name: &'static str, array: Array, named: &[(&str, Term)]) -> Vec<f64> {
        testing::run(name, &[array], |x| x, named).unwrap().floats()
    }

    fn close(found: &[f64], wanted: &[f64]) {
        assert_eq!(found.len(), wanted.len());
        for (found, wanted) in found.iter().zip(wanted) {
            assert!((found - wanted).abs() <= 2e-6 * wanted.abs().max(1e-30), "{found} is not {wanted}");
        }
    }

    #[test]
    fn sigmoid_is_right_at_both_ends() {
        let x = floats(&[4], &[-90.0, 0.0, 100.0, -3.0]);
        close(&run("sigmoid", x, &[]), &[(-90f64).exp(), 0.5, 1.0, 1.0 / (1.0 + 3f64.exp())]);
        close(&run("silu", floats(&[2], &[2.0, -2.0]), &[]), &[1.7615942, -0.23840584]);
    }

    #[test]
    fn relu_keeps_integers() {
        let y = testing::run("relu", &[integers(&[2], &[-4, 3])], |x| x, &[]).unwrap();
        assert_eq!(y.ints(), [0, 3]);
    }

    #[test]
    fn gelu_has_two_forms() {
        close(&run("gelu", floats(&[2], &[1.0, -1.0]), &[]), &[0.841192, -0.158808]);
        close(&run("gelu", floats(&[1], &[1.0]), &[("approximate", Term::Bool(false))]), &[0.8413447]);
    }

    #[test]
    fn softmax_sums_to_one() {
        let x = floats(&[2, 2], &[1000.0, 1000.0, 0.0, 3f64.ln()]);
        close(&run("softmax", x.clone(), &[]), &[0.5, 0.5, 0.25, 0.75]);
        close(&run("log_softmax", x, &[]), &[0.5f64.ln(), 0.5f64.ln(), 0.25f64.ln(), 0.75f64.ln()]);
    }
}
