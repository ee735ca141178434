//! Elementwise operations.

use super::reductions::RegionFunction;
use super::trips::decided;
use super::{FunctionReader, MlirReduction, MlirValue, ShapedExpr, ValueForm, at, malformed, result_type, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, Dense, DenseNumber, MlirElement, MlirOp, TensorType};
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

/// The function of a reduction that is the logarithm of a sum of exponentials.
const LOG_SUM_EXP: &str = "log(sum(exp(x)))";

impl FunctionReader<'_> {
    /// An elementwise operation; E0111 for one that is not known.
    pub(super) fn elementwise(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let name = operation.name.as_str();
        if let Some(known) = self.known_result(operation)? {
            self.define(operation, known);
            return Ok(());
        }
        if self.part_of_softmax(operation)? || self.drawn_bits(operation)? {
            return Ok(());
        }
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
                if let [p, x, y] = self.some_operands(operation)?
                    && let Some(chosen) = p.splat().map(|_| if p.is_number(0) { y } else { x })
                {
                    self.define(operation, chosen);
                    return Ok(());
                }
                let [p, mut x, mut y] = self.broadcast_operands(operation)?;
                let is_scalar_choice = p.ty.rank() == 0;
                if let (Some(one), Some(_)) = (number(&x), number(&y)) {
                    match is_scalar_choice {
                        // Nothing else has the shape.
                        true => [x, y] = self.some_operands(operation).map(|[_, x, y]| [x, y])?,
                        false => {
                            x.expr = build.cast(x.ty.element, super::constants::literal(build, x.ty.element, &one))
                        }
                    }
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
                let value = self.bound(operation, convert(build, &x, to))?;
                let is_truth = x.ty.element == MlirElement::Bool && to.is_integer();
                let form = if is_truth { ValueForm::Truth(x.expr) } else { ValueForm::Other };
                self.define(operation, MlirValue { form, ..value });
                return Ok(());
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

    /// Whether the operation is one of those of which `softmax` and `log_softmax` consist; then it is done.
    fn part_of_softmax(&mut self, operation: &MlirOp) -> Read<bool> {
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let is_wide = |x: &MlirValue| matches!(x.ty.element, MlirElement::F32 | MlirElement::F64);
        let call = |function: &str, of: &ShapedExpr, axis: usize| {
            build.call_with(function, [of.expr.clone()], [("axis", build.int(axis as i128))])
        };
        let (expr, form, repeats) = match (operation.name.as_str(), operands.as_slice()) {
            ("stablehlo.subtract", [x, least]) if is_wide(x) => {
                let Some(repeated) = &least.repeats else { return Ok(false) };
                if let ValueForm::Shifted(of, axis) = &x.form
                    && repeated.axis_of(LOG_SUM_EXP, &x.expr) == Some(*axis)
                {
                    (call("log_softmax", of, *axis), ValueForm::Other, None)
                } else if let Some(axis) = repeated.axis_of("max", &x.expr) {
                    (self.infix(operation, InfixOp::Sub)?, ValueForm::Shifted(x.shaped(), axis), None)
                } else {
                    return Ok(false);
                }
            }
            ("stablehlo.exponential", [x]) => {
                let ValueForm::Shifted(of, axis) = &x.form else { return Ok(false) };
                let form = ValueForm::Exponentials(of.clone(), *axis);
                // The sum of these is one of the shifted numbers, too.
                let of = MlirReduction { function: "exp", of: x.shaped(), axes: vec![*axis] };
                (build.call("exp", [x.expr.clone()]), form, Some(Box::new(of)))
            }
            ("stablehlo.log", [x]) => {
                let Some(repeated) = &x.repeats else { return Ok(false) };
                let Some(shifted) = self.exponentials_of(&repeated.of.expr) else { return Ok(false) };
                if repeated.function != "sum" || repeated.axes != shifted.axes {
                    return Ok(false);
                }
                let of = MlirReduction { function: LOG_SUM_EXP, ..shifted };
                (build.call("log", [x.expr.clone()]), ValueForm::Other, Some(Box::new(of)))
            }
            ("stablehlo.divide", [x, sums]) => {
                let (ValueForm::Exponentials(of, axis), Some(repeated)) = (&x.form, &sums.repeats) else {
                    return Ok(false);
                };
                if repeated.axis_of("sum", &x.expr) != Some(*axis) {
                    return Ok(false);
                }
                (call("softmax", of, *axis), ValueForm::Other, None)
            }
            _ => return Ok(false),
        };
        let value = self.bound(operation, expr)?;
        self.define(operation, MlirValue { form, repeats, ..value });
        Ok(true)
    }

    /// The numbers of which a variable has the exponentials, with the dimension along which they were shifted.
    fn exponentials_of(&self, x: &Expr) -> Option<MlirReduction> {
        let own = self.values.values().find(|value| value.expr.kind == x.kind)?;
        own.repeats.as_deref().filter(|repeated| repeated.function == "exp").cloned()
    }

    /// The result of an operation that computes nothing: an operand, or a number.
    fn known_result(&self, operation: &MlirOp) -> Read<Option<MlirValue>> {
        let operands = self.all_operands(operation)?;
        let ty = result_type(operation)?;
        if let Some(number) = folded(&operation.name, &operands, &ty) {
            return Ok(Some(constant_of(operation, ty, number)));
        }
        if let ("stablehlo.select", [p, x, y]) = (operation.name.as_str(), operands.as_slice())
            && let Some(DenseNumber::Int(chosen)) = p.splat()
        {
            let value = if *chosen != 0 { x } else { y };
            return Ok(Some(value.clone()).filter(|value| value.ty == ty));
        }
        let [x, y] = operands.as_slice() else { return Ok(None) };
        if let ("stablehlo.compare", Some(holds)) = (operation.name.as_str(), decided(direction(operation), x, y)) {
            return Ok(Some(constant_of(operation, ty, DenseNumber::Int(i128::from(holds)))));
        }
        if x.ty != ty && x.ty.element != MlirElement::Bool || x.ty != y.ty {
            return Ok(None);
        }
        let element = ty.element;
        let drops = |x: &MlirValue| match operation.name.as_str() {
            "stablehlo.compare" => {
                let direction = direction(operation);
                let is_bool = x.ty.element == MlirElement::Bool;
                is_bool && (direction == "NE" && x.is_number(0) || direction == "EQ" && x.is_number(1))
            }
            name => RegionFunction::of_operation(name, element).is_some_and(|function| match function {
                // The sum of -0 and 0 is 0.
                RegionFunction::Add => element.is_integer() && function.is_identity(x),
                RegionFunction::And => element == MlirElement::Bool && function.is_identity(x),
                RegionFunction::Multiply | RegionFunction::Max | RegionFunction::Min | RegionFunction::Or => {
                    !element.is_complex() && function.is_identity(x)
                }
            }),
        };
        Ok(if drops(y) {
            Some(x.clone())
        } else if drops(x) {
            Some(y.clone())
        } else {
            None
        })
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
        let shape = result_type(operation)?.shape;
        let fits = |operand: &MlirValue| operand.ty.shape == shape && !is_number(operand);
        let has_shape = |operand: &MlirValue| operand.narrow.is_none() && fits(operand);
        if !operands.iter().any(has_shape) && together(&operands) == Some(shape.clone()) {
            for operand in &mut operands {
                if let Some(narrow) = &operand.narrow {
                    operand.expr = narrow.expr.clone();
                }
            }
            return Ok(operands);
        }
        // Otherwise, the first operand that is not a number keeps its shape.
        let keeps = operands.iter().position(has_shape).or_else(|| operands.iter().position(fits));
        let Some(keeps) = keeps else { return Ok(operands) };
        let build = at(operation);
        for (place, operand) in operands.iter_mut().enumerate() {
            if place == keeps || has_shape(operand) {
                continue;
            }
            if let Some(number) = number(operand) {
                operand.expr = super::constants::literal(build, operand.ty.element, &number);
            } else if let Some(narrow) = &operand.narrow {
                operand.expr = narrow.expr.clone();
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
        let [x, y] = self.broadcast_operands(operation)?;
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
        let op = match direction(operation) {
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

/// The result of an operation whose elements are all this number.
fn constant_of(operation: &MlirOp, ty: TensorType, number: DenseNumber) -> MlirValue {
    let dense = Dense { ty, elements: vec![number] };
    let value = MlirValue::new(super::constants::constant(at(operation), &dense), dense.ty.clone());
    MlirValue { constant: Some(dense), ..value }
}

/// The shape to which NumPy broadcasts the narrow forms of these operands; None if one has none.
fn together(operands: &[MlirValue]) -> Option<Vec<usize>> {
    let mut shape: Vec<usize> = Vec::new();
    for operand in operands {
        let narrow = &operand.narrow.as_ref()?.shape;
        let missing = narrow.len().saturating_sub(shape.len());
        shape.splice(0..0, vec![1; missing]);
        let offset = shape.len() - narrow.len();
        for (dim, &size) in narrow.iter().enumerate().filter(|(_, size)| **size != 1) {
            shape[offset + dim] = size;
        }
    }
    Some(shape)
}

/// `LT` of a comparison; empty if it has no direction.
fn direction(operation: &MlirOp) -> &str {
    match operation.attributes.get("comparison_direction") {
        Some(Attribute::Word(word)) => word,
        // `#stablehlo<comparison_direction LT>`
        Some(Attribute::Custom(_, inside)) => inside.rsplit(' ').next().unwrap_or_default(),
        _ => "",
    }
}

/// The value of an operation on numbers whose result IEEE 754 defines exactly.
fn folded(name: &str, operands: &[MlirValue], ty: &TensorType) -> Option<DenseNumber> {
    if ty.rank() > 0 || !matches!(ty.element, MlirElement::F32 | MlirElement::F64) {
        return None;
    }
    let of = |operand: &MlirValue| match (operand.ty.element, operand.splat()?) {
        (MlirElement::F32, DenseNumber::Decimal(text)) => text.parse().ok().map(|value: f32| f64::from(value)),
        (MlirElement::F64, DenseNumber::Decimal(text)) => text.parse().ok(),
        (MlirElement::Signed(_) | MlirElement::Unsigned(_), DenseNumber::Int(value)) if name == "stablehlo.convert" => {
            // Other integers would be rounded twice.
            Some(*value as f64).filter(|_| value.unsigned_abs() < 1 << 24)
        }
        _ => None,
    };
    let numbers: Option<Vec<f64>> = operands.iter().map(of).collect();
    // The double holds sums, products, quotients and roots of singles with enough bits to be rounded again.
    let value = match (name, numbers?.as_slice()) {
        ("stablehlo.add", [x, y]) => x + y,
        ("stablehlo.subtract", [x, y]) => x - y,
        ("stablehlo.multiply", [x, y]) => x * y,
        ("stablehlo.divide", [x, y]) => x / y,
        ("stablehlo.sqrt", [x]) => x.sqrt(),
        ("stablehlo.negate", [x]) => -x,
        ("stablehlo.convert", [x]) => *x,
        _ => return None,
    };
    let text = match ty.element == MlirElement::F32 {
        true => Some(value as f32).filter(|value| value.is_finite()).map(|value| format!("{value:?}")),
        false => Some(value).filter(|value| value.is_finite()).map(|value| format!("{value:?}")),
    };
    text.map(DenseNumber::Decimal)
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
