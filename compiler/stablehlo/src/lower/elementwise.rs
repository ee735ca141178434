//! Elementwise operations.

use super::{FunctionReader, MlirValue, at, malformed, result_type, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, DenseNumber, MlirElement, MlirOp};
use spmdc_grammar::ast::{Expr, InfixOp};

/// Functions of one operand that have another name in the language.
const UNARY: &[(&str, &str)] = &[
    ("stablehlo.abs", "abs"),
    ("stablehlo.cbrt", "cbrt"),
    ("stablehlo.ceil", "ceil"),
    ("stablehlo.cosine", "cos"),
    ("stablehlo.count_leading_zeros", "clz"),
    ("stablehlo.exponential", "exp"),
    ("stablehlo.exponential_minus_one", "expm1"),
    ("stablehlo.floor", "floor"),
    ("stablehlo.imag", "imag"),
    ("stablehlo.is_finite", "isfinite"),
    ("stablehlo.log", "log"),
    ("stablehlo.log_plus_one", "log1p"),
    ("stablehlo.logistic", "sigmoid"),
    ("stablehlo.popcnt", "popcount"),
    ("stablehlo.real", "real"),
    ("stablehlo.round_nearest_even", "round"),
    ("stablehlo.rsqrt", "rsqrt"),
    ("stablehlo.sign", "sign"),
    ("stablehlo.sine", "sin"),
    ("stablehlo.sqrt", "sqrt"),
    ("stablehlo.tan", "tan"),
    ("stablehlo.tanh", "tanh"),
    ("chlo.acos", "acos"),
    ("chlo.acosh", "acosh"),
    ("chlo.asin", "asin"),
    ("chlo.asinh", "asinh"),
    ("chlo.atan", "atan"),
    ("chlo.atanh", "atanh"),
    ("chlo.bessel_i1e", "i1e"),
    ("chlo.conj", "conj"),
    ("chlo.cosh", "cosh"),
    ("chlo.digamma", "digamma"),
    ("chlo.erf", "erf"),
    ("chlo.erf_inv", "erf_inv"),
    ("chlo.erfc", "erfc"),
    ("chlo.is_inf", "isinf"),
    ("chlo.lgamma", "lgamma"),
    ("chlo.sinh", "sinh"),
    ("chlo.square", "square"),
    ("chlo.tan", "tan"),
];

/// Functions of two operands.
const BINARY: &[(&str, &str)] = &[
    ("stablehlo.atan2", "atan2"),
    ("stablehlo.complex", "complex"),
    ("chlo.next_after", "nextafter"),
    ("chlo.polygamma", "polygamma"),
    ("chlo.zeta", "zeta"),
];

impl FunctionReader<'_> {
    /// An elementwise operation; E0111 for one that is not known.
    pub(super) fn elementwise(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let name = operation.name.as_str();
        if let Some((_, function)) = UNARY.iter().find(|(known, _)| *known == name) {
            let [x] = self.some_operands(operation)?;
            return self.emit(operation, build.call(function, [x.expr]));
        }
        if let Some((_, function)) = BINARY.iter().find(|(known, _)| *known == name) {
            let [x, y] = self.some_operands(operation)?;
            return self.emit(operation, build.call(function, [x.expr, y.expr]));
        }
        let expr = match name {
            "stablehlo.add" | "stablehlo.maximum" | "stablehlo.or" => {
                let [x, y] = self.broadcast_operands(operation)?;
                match (name, x.ty.element) {
                    (_, MlirElement::Bool) | ("stablehlo.or", _) => build.binary(InfixOp::BitOr, x.expr, y.expr),
                    ("stablehlo.add", _) => build.binary(InfixOp::Add, x.expr, y.expr),
                    (_, _) => build.call("maximum", [x.expr, y.expr]),
                }
            }
            "stablehlo.multiply" | "stablehlo.minimum" | "stablehlo.and" => {
                let [x, y] = self.broadcast_operands(operation)?;
                match (name, x.ty.element) {
                    (_, MlirElement::Bool) | ("stablehlo.and", _) => build.binary(InfixOp::BitAnd, x.expr, y.expr),
                    ("stablehlo.multiply", _) => build.binary(InfixOp::Mul, x.expr, y.expr),
                    (_, _) => build.call("minimum", [x.expr, y.expr]),
                }
            }
            "stablehlo.subtract" => self.infix(operation, InfixOp::Sub)?,
            "stablehlo.xor" => self.infix(operation, InfixOp::BitXor)?,
            "stablehlo.power" => self.infix(operation, InfixOp::Pow)?,
            "stablehlo.divide" => self.divide(operation)?,
            "stablehlo.remainder" => self.remainder(operation)?,
            "stablehlo.shift_left" => self.infix(operation, InfixOp::Shl)?,
            "stablehlo.shift_right_logical" | "stablehlo.shift_right_arithmetic" => self.shift_right(operation)?,
            "stablehlo.negate" => {
                let [x] = self.some_operands(operation)?;
                build.negative(x.expr)
            }
            "stablehlo.not" => {
                let [x] = self.some_operands(operation)?;
                build.not(x.expr)
            }
            "stablehlo.compare" => self.compare(operation)?,
            "stablehlo.select" => {
                let [p, mut x, mut y] = self.some_operands(operation)?;
                match (number(&x), number(&y)) {
                    (Some(one), None) => x.expr = super::literal(build, x.ty.element, &one),
                    (None, Some(one)) => y.expr = super::literal(build, y.ty.element, &one),
                    (Some(_), Some(_)) | (None, None) => {}
                }
                let factored = x.factored.or(y.factored);
                let value = self.bound(operation, build.call("where", [p.expr, x.expr, y.expr]))?;
                self.define(operation, MlirValue { factored, ..value });
                return Ok(());
            }
            "stablehlo.clamp" => {
                let [min, x, max] = self.some_operands(operation)?;
                build.call("clamp", [min.expr, x.expr, max.expr])
            }
            "stablehlo.convert" => {
                let [x] = self.some_operands(operation)?;
                let to = result_type(operation)?.element;
                if x.ty.element == to {
                    return self.same_as_operands(operation);
                }
                convert(build, &x, to)
            }
            "stablehlo.bitcast_convert" => return self.bitcast_convert(operation),
            "stablehlo.round_nearest_afz" => {
                let [x] = self.some_operands(operation)?;
                let x = self.variable(build, "x", x.expr);
                let whole = self.variable(build, "whole", build.call("trunc", [x.clone()]));
                let rest = build.call("abs", [build.binary(InfixOp::Sub, x.clone(), whole.clone())]);
                let rounds = build.binary(InfixOp::Ge, rest, build.float("0.5"));
                let step = build.call("where", [rounds, build.call("sign", [x]), build.float("0.0")]);
                build.binary(InfixOp::Add, whole, step)
            }
            "stablehlo.reduce_precision" => return self.reduce_precision(operation),
            "stablehlo.exp" => {
                let [x] = self.some_operands(operation)?;
                build.call("exp", [x.expr])
            }
            _ => return Err(unsupported(operation, "")),
        };
        self.emit(operation, expr)
    }

    /// Exactly `N` operands.
    pub(super) fn some_operands<const N: usize>(&self, operation: &MlirOp) -> Read<[MlirValue; N]> {
        let operands = self.operands(operation, N)?;
        operands.try_into().map_err(|_| malformed(operation, "wrong number of operands"))
    }

    /// Exactly `N` operands of an elementwise operation. Numbers stand for arrays of them, and narrow arrays for wide ones, as long as
    /// one operand has the shape of the result.
    fn broadcast_operands<const N: usize>(&self, operation: &MlirOp) -> Read<[MlirValue; N]> {
        let mut operands = self.some_operands::<N>(operation)?;
        let is_number = |operand: &MlirValue| number(operand).is_some();
        let has_shape = |operand: &MlirValue| operand.narrow.is_none() && !is_number(operand);
        // Without another one, the first one that is no number keeps its shape.
        let keeps =
            operands.iter().position(has_shape).or_else(|| operands.iter().position(|operand| !is_number(operand)));
        let Some(keeps) = keeps else { return Ok(operands) };
        let build = at(operation);
        for (place, operand) in operands.iter_mut().enumerate() {
            if place == keeps || has_shape(operand) {
                continue;
            }
            if let Some(number) = number(operand) {
                operand.expr = super::literal(build, operand.ty.element, &number);
            } else if let Some(narrow) = &operand.narrow {
                operand.expr = narrow.clone();
            }
        }
        Ok(operands)
    }

    fn infix(&self, operation: &MlirOp, op: InfixOp) -> Read<Expr> {
        let [x, y] = self.broadcast_operands(operation)?;
        Ok(at(operation).binary(op, x.expr, y.expr))
    }

    /// The quotient; that of integers is rounded towards zero, and -1 for a zero divisor.
    fn divide(&mut self, operation: &MlirOp) -> Read<Expr> {
        let [x, y] = self.some_operands(operation)?;
        match x.ty.element.is_integer() {
            true => self.whole_quotient(operation, &x, &y).map(|parts| parts.0),
            false => self.infix(operation, InfixOp::Div),
        }
    }

    /// The quotient and the remainder of integers, rounded towards zero.
    fn whole_quotient(&mut self, operation: &MlirOp, x: &MlirValue, y: &MlirValue) -> Read<(Expr, Expr)> {
        let build = at(operation);
        let element = x.ty.element;
        let is_safe = y.splat().is_some() && !y.is_number(0);
        let a = self.variable(build, "a", x.expr.clone());
        let mut b = y.expr.clone();
        let is_zero = build.binary(InfixOp::Eq, b.clone(), build.int(0));
        if !is_safe {
            let one = build.cast(element, build.int(1));
            b = self.variable(build, "b", build.call("where", [is_zero.clone(), one, b]));
        }
        let floor = self.variable(build, "floor", build.binary(InfixOp::FloorDiv, a.clone(), b.clone()));
        let product = build.binary(InfixOp::Mul, floor.clone(), b.clone());
        let mut rest = build.binary(InfixOp::Sub, a.clone(), product);
        let mut quotient = floor.clone();
        let known_signs = matches!(element, MlirElement::Unsigned(_));
        if !known_signs {
            rest = self.variable(build, "rest", rest);
            let differ = build.binary(
                InfixOp::Ne,
                build.binary(InfixOp::Lt, a.clone(), build.int(0)),
                build.binary(InfixOp::Lt, b.clone(), build.int(0)),
            );
            let inexact = build.binary(InfixOp::Ne, rest.clone(), build.int(0));
            let corrects = self.variable(build, "corrects", build.binary(InfixOp::BitAnd, inexact, differ));
            quotient = build.binary(InfixOp::Add, floor, build.cast(element, corrects.clone()));
            let zero = build.cast(element, build.int(0));
            rest = build.binary(InfixOp::Sub, rest, build.call("where", [corrects, b, zero]));
        }
        if !is_safe {
            let all_ones = build.not(build.cast(element, build.int(0)));
            quotient = build.call("where", [is_zero.clone(), all_ones, quotient]);
            rest = build.call("where", [is_zero, a, rest]);
        }
        Ok((quotient, rest))
    }

    /// The remainder, which has the sign of the dividend.
    fn remainder(&mut self, operation: &MlirOp) -> Read<Expr> {
        let build = at(operation);
        let [x, y] = self.some_operands(operation)?;
        if x.ty.element.is_integer() {
            return self.whole_quotient(operation, &x, &y).map(|parts| parts.1);
        }
        let abs = |value: Expr| build.call("abs", [value]);
        let rest = build.binary(InfixOp::Rem, abs(x.expr.clone()), abs(y.expr));
        Ok(build.call("copysign", [rest, x.expr]))
    }

    fn shift_right(&self, operation: &MlirOp) -> Read<Expr> {
        let build = at(operation);
        let [x, y] = self.some_operands(operation)?;
        let is_logical = operation.name == "stablehlo.shift_right_logical";
        let through = if let (MlirElement::Signed(bits), true) = (x.ty.element, is_logical) {
            Some(MlirElement::Unsigned(bits))
        } else if let (MlirElement::Unsigned(bits), false) = (x.ty.element, is_logical) {
            Some(MlirElement::Signed(bits))
        } else {
            None
        };
        Ok(match through {
            Some(other) => {
                let shifted = build.binary(InfixOp::Shr, build.cast(other, x.expr), build.cast(other, y.expr));
                build.cast(x.ty.element, shifted)
            }
            None => build.binary(InfixOp::Shr, x.expr, y.expr),
        })
    }

    fn compare(&self, operation: &MlirOp) -> Read<Expr> {
        let [x, y] = self.broadcast_operands(operation)?;
        let direction = match operation.attributes.get("comparison_direction") {
            Some(Attribute::Word(word)) => word.clone(),
            _ => String::new(),
        };
        let op = match direction.as_str() {
            "EQ" => InfixOp::Eq,
            "NE" => InfixOp::Ne,
            "LT" => InfixOp::Lt,
            "LE" => InfixOp::Le,
            "GT" => InfixOp::Gt,
            "GE" => InfixOp::Ge,
            _ => return Err(malformed(operation, "a comparison has a direction")),
        };
        Ok(at(operation).binary(op, x.expr, y.expr))
    }
}

/// The number that all elements are, if it can be written without its type beside another operand.
fn number(operand: &MlirValue) -> Option<DenseNumber> {
    let is_real = operand.ty.element != MlirElement::Bool && !operand.ty.element.is_complex();
    operand.splat().filter(|number| is_real && !matches!(number, DenseNumber::Bits(_))).cloned()
}

/// An array of another element type.
pub(super) fn convert(build: Build, x: &MlirValue, to: MlirElement) -> Expr {
    match (x.ty.element, to) {
        // The imaginary parts are dropped.
        (from, to) if from.is_complex() && !to.is_complex() => build.cast(to, build.call("real", [x.expr.clone()])),
        (_, to) => build.cast(to, x.expr.clone()),
    }
}
