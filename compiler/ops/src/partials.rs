//! The derivatives of elementwise ops.

use crate::arithmetic::Arithmetic;
use crate::elementwise::{Binary, Select, Unary};
use crate::trigamma::trigamma;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity, PartialDerivative, Partials};
use spmdc_kernel::scalar::{BinaryOp, CompareOp, MathFn, UnaryOp};
use std::f64::consts::{FRAC_2_SQRT_PI, LN_2, LN_10, PI};

impl Unary {
    /// The derivative of this operation.
    pub fn own_derivative(&self) -> Derivative<'_> {
        match self.0 {
            UnaryOp::Sign
            | UnaryOp::Not
            | UnaryOp::IsNan
            | UnaryOp::IsInf
            | UnaryOp::IsFinite
            | UnaryOp::Signbit
            | UnaryOp::Popcount
            | UnaryOp::Clz => Derivative::Zero,
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Square | UnaryOp::Relu | UnaryOp::Reciprocal | UnaryOp::Math(_) => {
                Derivative::Pointwise(self)
            }
        }
    }
}

impl Partials for Unary {
    fn partial(&self, build: &mut CallBuilder, stmt: &Stmt, _: usize) -> Result<PartialDerivative, Diagnostic> {
        let (x, y) = (stmt.args[0], stmt.results[0]);
        let mut terms = Arithmetic(build);
        let partial = match self.0 {
            UnaryOp::Neg => return Ok(PartialDerivative::MinusOne),
            // 1 at zero, as in JAX.
            UnaryOp::Abs => {
                let (zero, one, less) = (terms.number(x, 0.0)?, terms.number(x, 1.0)?, terms.number(x, -1.0)?);
                let rises = terms.compare(CompareOp::Ge, x, zero)?;
                terms.select(rises, one, less)?
            }
            UnaryOp::Square => return Ok(PartialDerivative::Double(x)),
            // 0 at zero, unlike that of `maximum`.
            UnaryOp::Relu => {
                let zero = terms.number(x, 0.0)?;
                return Ok(PartialDerivative::Where(terms.compare(CompareOp::Gt, x, zero)?));
            }
            UnaryOp::Reciprocal => {
                let square = terms.unary(UnaryOp::Square, y)?;
                terms.unary(UnaryOp::Neg, square)?
            }
            UnaryOp::Math(f) => return math(f, &mut terms, x, y),
            UnaryOp::Sign
            | UnaryOp::Not
            | UnaryOp::IsNan
            | UnaryOp::IsInf
            | UnaryOp::IsFinite
            | UnaryOp::Signbit
            | UnaryOp::Popcount
            | UnaryOp::Clz => return Ok(PartialDerivative::Zero),
        };
        Ok(PartialDerivative::Array(partial))
    }
}

/// The derivative of y = f(x), in terms of both. At the ends of a domain it is the value of the formula, as in JAX.
fn math(f: MathFn, terms: &mut Arithmetic<'_>, x: Value, y: Value) -> Result<PartialDerivative, Diagnostic> {
    let square = UnaryOp::Square;
    let partial = match f {
        MathFn::Sqrt => {
            let half = terms.number(x, 0.5)?;
            terms.div(half, y)?
        }
        MathFn::Rsqrt => {
            let quotient = terms.div(y, x)?;
            terms.scaled(-0.5, quotient)?
        }
        MathFn::Cbrt => {
            // Not y / (3 x), which is NaN at zero and at infinities.
            let inverse = terms.inverse(y)?;
            let square = terms.unary(square, inverse)?;
            terms.scaled(1.0 / 3.0, square)?
        }
        MathFn::Exp => y,
        MathFn::Exp2 => terms.scaled(LN_2, y)?,
        MathFn::Expm1 => {
            let one = terms.number(y, 1.0)?;
            terms.add(y, one)?
        }
        MathFn::Sigmoid => {
            let rest = terms.less_than(1.0, y)?;
            terms.mul(y, rest)?
        }
        MathFn::Log | MathFn::XlaLog => terms.inverse(x)?,
        MathFn::Log2 => {
            let inverse = terms.inverse(x)?;
            terms.scaled(1.0 / LN_2, inverse)?
        }
        MathFn::Log10 => {
            let inverse = terms.inverse(x)?;
            terms.scaled(1.0 / LN_10, inverse)?
        }
        MathFn::Log1p | MathFn::XlaLog1p => {
            let one = terms.number(x, 1.0)?;
            let sum = terms.add(x, one)?;
            terms.inverse(sum)?
        }
        MathFn::Sin => terms.math(MathFn::Cos, x)?,
        MathFn::Cos => {
            let sin = terms.math(MathFn::Sin, x)?;
            terms.unary(UnaryOp::Neg, sin)?
        }
        MathFn::Tan => {
            let (own, one) = (terms.unary(square, y)?, terms.number(y, 1.0)?);
            terms.add(own, one)?
        }
        MathFn::Asin | MathFn::Acos => {
            let own = terms.unary(square, x)?;
            let rest = terms.less_than(1.0, own)?;
            let root = terms.math(MathFn::Rsqrt, rest)?;
            if f == MathFn::Asin { root } else { terms.unary(UnaryOp::Neg, root)? }
        }
        MathFn::Atan => {
            let (own, one) = (terms.unary(square, x)?, terms.number(x, 1.0)?);
            let sum = terms.add(own, one)?;
            terms.inverse(sum)?
        }
        MathFn::Deg2Rad => terms.number(x, PI / 180.0)?,
        MathFn::Rad2Deg => terms.number(x, 180.0 / PI)?,
        MathFn::Sinh => terms.math(MathFn::Cosh, x)?,
        MathFn::Cosh => terms.math(MathFn::Sinh, x)?,
        MathFn::Tanh => {
            let own = terms.unary(square, y)?;
            terms.less_than(1.0, own)?
        }
        MathFn::Asinh => {
            let (own, one) = (terms.unary(square, x)?, terms.number(x, 1.0)?);
            let sum = terms.add(own, one)?;
            terms.math(MathFn::Rsqrt, sum)?
        }
        MathFn::Acosh => {
            // Two roots, as the product of what is below them has a factor of zero at one, beside an infinite derivative. Below the domain
            // the derivative is that of the formula.
            let (size, one) = (terms.unary(UnaryOp::Abs, x)?, terms.number(x, 1.0)?);
            let (below, above) = (terms.sub(size, one)?, terms.add(size, one)?);
            let (below, above) = (terms.math(MathFn::Rsqrt, below)?, terms.math(MathFn::Rsqrt, above)?);
            terms.mul(below, above)?
        }
        MathFn::Atanh => {
            let own = terms.unary(square, x)?;
            let rest = terms.less_than(1.0, own)?;
            terms.inverse(rest)?
        }
        MathFn::Erf | MathFn::Erfc | MathFn::XlaErf => {
            let own = terms.unary(square, x)?;
            let exponent = terms.unary(UnaryOp::Neg, own)?;
            let density = terms.math(MathFn::Exp, exponent)?;
            terms.scaled(if f == MathFn::Erfc { -FRAC_2_SQRT_PI } else { FRAC_2_SQRT_PI }, density)?
        }
        MathFn::ErfInv | MathFn::XlaErfInv => {
            let own = terms.unary(square, y)?;
            let power = terms.math(MathFn::Exp, own)?;
            terms.scaled(1.0 / FRAC_2_SQRT_PI, power)?
        }
        MathFn::Lgamma => terms.math(MathFn::Digamma, x)?,
        MathFn::Digamma => trigamma(terms, x)?,
        MathFn::Floor | MathFn::Ceil | MathFn::Round | MathFn::Trunc => return Ok(PartialDerivative::Zero),
    };
    Ok(PartialDerivative::Array(partial))
}

impl Binary {
    /// The derivative of this operation.
    pub fn own_derivative(&self) -> Derivative<'_> {
        match self.0 {
            BinaryOp::FloorDiv
            | BinaryOp::Nextafter
            | BinaryOp::Gcd
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => Derivative::Zero,
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::Rem
            | BinaryOp::Pow
            | BinaryOp::Minimum
            | BinaryOp::Maximum
            | BinaryOp::Atan2
            | BinaryOp::Hypot
            | BinaryOp::Logaddexp
            | BinaryOp::Copysign => Derivative::Pointwise(self),
        }
    }
}

impl Partials for Binary {
    fn partial(&self, build: &mut CallBuilder, stmt: &Stmt, at: usize) -> Result<PartialDerivative, Diagnostic> {
        let (x, y, result) = (stmt.args[0], stmt.args[1], stmt.results[0]);
        let (own, other) = (stmt.args[at], stmt.args[1 - at]);
        let mut terms = Arithmetic(build);
        let partial = match self.0 {
            BinaryOp::Add => return Ok(PartialDerivative::One),
            BinaryOp::Sub => return Ok(if at == 0 { PartialDerivative::One } else { PartialDerivative::MinusOne }),
            BinaryOp::Mul => other,
            BinaryOp::Div if at == 0 => terms.inverse(y)?,
            // The other operand's derivative has this inverse, too.
            BinaryOp::Div => {
                let inverse = terms.inverse(y)?;
                let quotient = terms.mul(result, inverse)?;
                terms.unary(UnaryOp::Neg, quotient)?
            }
            BinaryOp::Rem if at == 0 => return Ok(PartialDerivative::One),
            BinaryOp::Rem => {
                let quotient = terms.binary(BinaryOp::FloorDiv, x, y)?;
                terms.unary(UnaryOp::Neg, quotient)?
            }
            BinaryOp::Pow => power(&mut terms, x, y, result, at)?,
            // Equal operands have half each.
            BinaryOp::Minimum | BinaryOp::Maximum => {
                let chosen = if self.0 == BinaryOp::Maximum { CompareOp::Gt } else { CompareOp::Lt };
                let (wins, ties) = (terms.compare(chosen, own, other)?, terms.compare(CompareOp::Eq, own, other)?);
                let (half, one, zero) = (terms.number(own, 0.5)?, terms.number(own, 1.0)?, terms.number(own, 0.0)?);
                let rest = terms.select(ties, half, zero)?;
                terms.select(wins, one, rest)?
            }
            BinaryOp::Atan2 => {
                // Not by the squares, which overflow and vanish.
                let size = terms.binary(BinaryOp::Hypot, x, y)?;
                let unit = terms.div(other, size)?;
                let quotient = terms.div(unit, size)?;
                if at == 0 { quotient } else { terms.unary(UnaryOp::Neg, quotient)? }
            }
            BinaryOp::Hypot => {
                let (zero, one) = (terms.number(result, 0.0)?, terms.number(result, 1.0)?);
                let is_zero = terms.compare(CompareOp::Eq, result, zero)?;
                let divisor = terms.select(is_zero, one, result)?;
                let quotient = terms.div(own, divisor)?;
                terms.select(is_zero, zero, quotient)?
            }
            // Of an infinite result, the infinite operand has all; two have half each.
            BinaryOp::Logaddexp => {
                let (is_infinite, zero) = (terms.unary(UnaryOp::IsInf, result)?, terms.number(own, 0.0)?);
                let difference = terms.sub(own, result)?;
                let difference = terms.select(is_infinite, zero, difference)?;
                let (share, half) = (terms.math(MathFn::Exp, difference)?, terms.number(own, 0.5)?);
                let (wins, ties) = (terms.compare(CompareOp::Eq, own, result)?, terms.compare(CompareOp::Eq, x, y)?);
                let all = terms.indicator(wins, own)?;
                let of_infinite = terms.select(ties, half, all)?;
                terms.select(is_infinite, of_infinite, share)?
            }
            BinaryOp::Copysign if at == 0 => {
                // That of `abs`, with the sign of the other operand.
                let (one, less, zero) = (terms.number(x, 1.0)?, terms.number(x, -1.0)?, terms.number(x, 0.0)?);
                let (rises, is_negative) = (terms.compare(CompareOp::Ge, x, zero)?, terms.unary(UnaryOp::Signbit, y)?);
                let (own, negated) = (terms.select(rises, one, less)?, terms.select(rises, less, one)?);
                terms.select(is_negative, negated, own)?
            }
            BinaryOp::Copysign
            | BinaryOp::FloorDiv
            | BinaryOp::Nextafter
            | BinaryOp::Gcd
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => return Ok(PartialDerivative::Zero),
        };
        Ok(PartialDerivative::Array(partial))
    }
}

/// `y x ** (y - 1)`, which is 0 for y = 0, and `log(x) x ** y`, which is 0 for x = 0.
fn power(terms: &mut Arithmetic<'_>, x: Value, y: Value, result: Value, at: usize) -> Result<Value, Diagnostic> {
    let (zero, one) = (terms.number(x, 0.0)?, terms.number(x, 1.0)?);
    if at == 1 {
        let is_zero = terms.compare(CompareOp::Eq, x, zero)?;
        let base = terms.select(is_zero, one, x)?;
        let logarithm = terms.math(MathFn::Log, base)?;
        return terms.mul(logarithm, result);
    }
    if let Some(number) = terms.0.literal(y)
        && number != 0.0
    {
        let less = terms.number(x, number - 1.0)?;
        let power = terms.binary(BinaryOp::Pow, x, less)?;
        return terms.mul(y, power);
    }
    // An exponent of zero has the derivative zero, also where `1 / x` is infinite.
    let (size, least) = (terms.unary(UnaryOp::Abs, x)?, terms.smallest_normal(x)?);
    let (is_small, is_flat) = (terms.compare(CompareOp::Lt, size, least)?, terms.compare(CompareOp::Eq, y, zero)?);
    let vanishes = terms.binary(BinaryOp::And, is_small, is_flat)?;
    let (base, less) = (terms.select(vanishes, one, x)?, terms.sub(y, one)?);
    let power = terms.binary(BinaryOp::Pow, base, less)?;
    terms.mul(y, power)
}

impl LinearMap for Select {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![1, 2])
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        at: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let mut terms = Arithmetic(build);
        let zero = terms.number(cotangent, 0.0)?;
        let (x, y) = if at == 1 { (cotangent, zero) } else { (zero, cotangent) };
        terms.select(stmt.args[0], x, y)
    }
}
