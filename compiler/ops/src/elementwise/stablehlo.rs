//! Elementwise operations in StableHLO: most have one of their own, others are composed.

use super::{Binary, Compare, Select, Unary};
use spmdc_abi::ReduceOp;
use spmdc_ir::stablehlo::{HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::scalar::{BinaryOp, CompareOp, MathFn, UnaryOp};
use spmdc_layout::types::DType;
use std::f64::consts::{LN_2, LN_10};

impl WritesStablehlo for Unary {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let x = &args[0];
        let dtype = x.ty.dtype();
        let is_unsigned = dtype == DType::Bool || dtype.is_unsigned_integer();
        Ok(vec![match self.0 {
            UnaryOp::Neg => hlo.unary("stablehlo.negate", x),
            UnaryOp::Not => hlo.unary("stablehlo.not", x),
            UnaryOp::Abs if is_unsigned => x.clone(),
            UnaryOp::Abs => hlo.unary("stablehlo.abs", x),
            UnaryOp::Sign if is_unsigned => {
                let one = hlo.whole_like(x, 1);
                hlo.binary("stablehlo.minimum", x, &one)
            }
            UnaryOp::Sign => hlo.unary("stablehlo.sign", x),
            UnaryOp::Square => hlo.binary("stablehlo.multiply", x, x),
            UnaryOp::Relu => {
                let zero = hlo.whole_like(x, 0);
                hlo.binary("stablehlo.maximum", x, &zero)
            }
            UnaryOp::Reciprocal => {
                let one = hlo.whole_like(x, 1);
                hlo.binary("stablehlo.divide", &one, x)
            }
            UnaryOp::Math(function) => computed_wide(hlo, x, |hlo, x| math(hlo, function, x)),
            UnaryOp::IsNan => hlo.compare("NE", x, x),
            UnaryOp::IsInf => {
                // A type without infinities has only finite numbers and NaN.
                let own = hlo_f32(hlo, x);
                let magnitude = hlo.unary("stablehlo.abs", &own);
                let infinity = hlo.float(magnitude.ty.dtype(), f64::INFINITY, &x.ty.shape);
                hlo.compare("EQ", &magnitude, &infinity)
            }
            UnaryOp::IsFinite => {
                let ty = x.ty.with_dtype(DType::Bool);
                hlo.emit(ty.clone(), &format!("stablehlo.is_finite {} : ({}) -> {ty}", x.name, x.ty))
            }
            UnaryOp::Signbit => has_sign(hlo, x),
            UnaryOp::Popcount => hlo.unary("stablehlo.popcnt", x),
            UnaryOp::Clz => hlo.unary("stablehlo.count_leading_zeros", x),
        }])
    }
}

/// Narrow floats as f32.
fn hlo_f32(hlo: &mut HloBuilder<'_>, x: &HloValue) -> HloValue {
    hlo.convert(x, x.ty.dtype().computed())
}

/// A function of floats that is computed in f32 for narrow ones, and rounded.
fn computed_wide(
    hlo: &mut HloBuilder<'_>,
    x: &HloValue,
    function: impl FnOnce(&mut HloBuilder<'_>, &HloValue) -> HloValue,
) -> HloValue {
    let dtype = x.ty.dtype();
    let wide = hlo_f32(hlo, x);
    let made = function(hlo, &wide);
    hlo.convert(&made, dtype)
}

/// Whether an element has a minus sign; false for NaN.
fn has_sign(hlo: &mut HloBuilder<'_>, x: &HloValue) -> HloValue {
    let bits = bits_of(hlo, x);
    let zero = hlo.whole_like(&bits, 0);
    let is_negative = hlo.compare("LT", &bits, &zero);
    let is_number = hlo.compare("EQ", x, x);
    hlo.binary("stablehlo.and", &is_negative, &is_number)
}

/// The bits of floats as signed integers.
fn bits_of(hlo: &mut HloBuilder<'_>, x: &HloValue) -> HloValue {
    let to = match x.ty.dtype().size() {
        1 => DType::I8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    };
    hlo.bitcast(x, to)
}

fn math(hlo: &mut HloBuilder<'_>, function: MathFn, x: &HloValue) -> HloValue {
    let scaled = |hlo: &mut HloBuilder<'_>, operation: &str, value: &HloValue, factor: f64| {
        let factor = hlo.float(value.ty.dtype(), factor, &value.ty.shape);
        hlo.binary(operation, value, &factor)
    };
    match function {
        MathFn::Sqrt => hlo.unary("stablehlo.sqrt", x),
        MathFn::Rsqrt => hlo.unary("stablehlo.rsqrt", x),
        MathFn::Cbrt => hlo.unary("stablehlo.cbrt", x),
        MathFn::Exp => hlo.unary("stablehlo.exponential", x),
        MathFn::Exp2 => {
            let two = hlo.whole_like(x, 2);
            hlo.binary("stablehlo.power", &two, x)
        }
        MathFn::Expm1 => hlo.unary("stablehlo.exponential_minus_one", x),
        MathFn::Sigmoid => hlo.unary("stablehlo.logistic", x),
        MathFn::Log | MathFn::XlaLog => hlo.unary("stablehlo.log", x),
        MathFn::Log2 => {
            let natural = hlo.unary("stablehlo.log", x);
            scaled(hlo, "stablehlo.divide", &natural, LN_2)
        }
        MathFn::Log10 => {
            let natural = hlo.unary("stablehlo.log", x);
            scaled(hlo, "stablehlo.divide", &natural, LN_10)
        }
        MathFn::Log1p | MathFn::XlaLog1p => hlo.unary("stablehlo.log_plus_one", x),
        MathFn::Sin => hlo.unary("stablehlo.sine", x),
        MathFn::Cos => hlo.unary("stablehlo.cosine", x),
        MathFn::Tan => hlo.unary("stablehlo.tan", x),
        MathFn::Asin => hlo.unary("chlo.asin", x),
        MathFn::Acos => hlo.unary("chlo.acos", x),
        MathFn::Atan => hlo.unary("chlo.atan", x),
        MathFn::Deg2Rad => scaled(hlo, "stablehlo.multiply", x, 1f64.to_radians()),
        MathFn::Rad2Deg => scaled(hlo, "stablehlo.multiply", x, 1f64.to_degrees()),
        MathFn::Sinh => hlo.unary("chlo.sinh", x),
        MathFn::Cosh => hlo.unary("chlo.cosh", x),
        MathFn::Tanh => hlo.unary("stablehlo.tanh", x),
        MathFn::Asinh => hlo.unary("chlo.asinh", x),
        MathFn::Acosh => hlo.unary("chlo.acosh", x),
        MathFn::Atanh => hlo.unary("chlo.atanh", x),
        MathFn::Erf | MathFn::XlaErf => hlo.unary("chlo.erf", x),
        MathFn::Erfc => hlo.unary("chlo.erfc", x),
        MathFn::ErfInv | MathFn::XlaErfInv => hlo.unary("chlo.erf_inv", x),
        MathFn::Lgamma => hlo.unary("chlo.lgamma", x),
        MathFn::Digamma => hlo.unary("chlo.digamma", x),
        MathFn::Floor => hlo.unary("stablehlo.floor", x),
        MathFn::Ceil => hlo.unary("stablehlo.ceil", x),
        MathFn::Round => hlo.unary("stablehlo.round_nearest_even", x),
        MathFn::Trunc => {
            let zero = hlo.whole_like(x, 0);
            let is_negative = hlo.compare("LT", x, &zero);
            let up = hlo.unary("stablehlo.ceil", x);
            let down = hlo.unary("stablehlo.floor", x);
            hlo.select(&is_negative, &up, &down)
        }
    }
}

impl WritesStablehlo for Binary {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let [x, y] = [0, 1].map(|at| hlo.broadcast(&args[at], &results[0].shape));
        let dtype = x.ty.dtype();
        // Types of 8 bits are computed in f32: not every back end of XLA has their arithmetic.
        let plain = |hlo: &mut HloBuilder<'_>, name: &str| match dtype.is_float() && dtype.size() == 1 {
            true => wide(hlo, [&x, &y], |hlo, [x, y]| hlo.binary(name, x, y)),
            false => hlo.binary(name, &x, &y),
        };
        Ok(vec![match self.0 {
            BinaryOp::Add => plain(hlo, "stablehlo.add"),
            BinaryOp::Sub => plain(hlo, "stablehlo.subtract"),
            BinaryOp::Mul => plain(hlo, "stablehlo.multiply"),
            BinaryOp::Div => plain(hlo, "stablehlo.divide"),
            BinaryOp::Minimum => plain(hlo, "stablehlo.minimum"),
            BinaryOp::Maximum => plain(hlo, "stablehlo.maximum"),
            BinaryOp::Pow if dtype.is_float() => wide(hlo, [&x, &y], |hlo, [x, y]| hlo.binary("stablehlo.power", x, y)),
            BinaryOp::Pow => plain(hlo, "stablehlo.power"),
            BinaryOp::Atan2 => wide(hlo, [&x, &y], |hlo, [x, y]| hlo.binary("stablehlo.atan2", x, y)),
            BinaryOp::And => plain(hlo, "stablehlo.and"),
            BinaryOp::Or => plain(hlo, "stablehlo.or"),
            BinaryOp::Xor => plain(hlo, "stablehlo.xor"),
            BinaryOp::Shl => plain(hlo, "stablehlo.shift_left"),
            BinaryOp::Shr if dtype.is_signed_integer() => plain(hlo, "stablehlo.shift_right_arithmetic"),
            BinaryOp::Shr => plain(hlo, "stablehlo.shift_right_logical"),
            BinaryOp::FloorDiv if dtype.is_float() => wide(hlo, [&x, &y], float_floor_divide),
            BinaryOp::Rem if dtype.is_float() => wide(hlo, [&x, &y], |hlo, [x, y]| remainder(hlo, x, y).0),
            BinaryOp::FloorDiv => {
                let quotient = plain(hlo, "stablehlo.divide");
                if dtype.is_unsigned_integer() {
                    quotient
                } else {
                    let (_, turns) = remainder(hlo, &x, &y);
                    let one = hlo.whole_like(&x, 1);
                    let below = hlo.binary("stablehlo.subtract", &quotient, &one);
                    hlo.select(&turns, &below, &quotient)
                }
            }
            BinaryOp::Rem => remainder(hlo, &x, &y).0,
            BinaryOp::Hypot => wide(hlo, [&x, &y], hypotenuse),
            BinaryOp::Logaddexp => wide(hlo, [&x, &y], log_add_exp),
            BinaryOp::Copysign => {
                let is_negative = has_sign(hlo, &y);
                let magnitude = hlo.unary("stablehlo.abs", &x);
                let negated = hlo.unary("stablehlo.negate", &magnitude);
                hlo.select(&is_negative, &negated, &magnitude)
            }
            BinaryOp::Nextafter => neighbour(hlo, &x, &y),
            BinaryOp::Gcd => greatest_common_divisor(hlo, &x, &y),
        }])
    }
}

/// A function of two floats that is computed in f32 for narrow ones, and rounded.
fn wide(
    hlo: &mut HloBuilder<'_>,
    args: [&HloValue; 2],
    function: impl FnOnce(&mut HloBuilder<'_>, [&HloValue; 2]) -> HloValue,
) -> HloValue {
    let dtype = args[0].ty.dtype();
    let [x, y] = args.map(|arg| hlo_f32(hlo, arg));
    let made = function(hlo, [&x, &y]);
    hlo.convert(&made, dtype)
}

/// The remainder with the sign of the divisor, and where it differs from that of the truncated quotient.
fn remainder(hlo: &mut HloBuilder<'_>, x: &HloValue, y: &HloValue) -> (HloValue, HloValue) {
    let rest = hlo.binary("stablehlo.remainder", x, y);
    let zero = hlo.whole_like(x, 0);
    let is_some = hlo.compare("NE", &rest, &zero);
    let [of_rest, of_divisor] = [&rest, y].map(|value| hlo.compare("LT", value, &zero));
    let differs = hlo.compare("NE", &of_rest, &of_divisor);
    let turns = hlo.binary("stablehlo.and", &is_some, &differs);
    let moved = hlo.binary("stablehlo.add", &rest, y);
    (hlo.select(&turns, &moved, &rest), turns)
}

/// The exact remainder first, then the quotient of the part without a rest.
fn float_floor_divide(hlo: &mut HloBuilder<'_>, [x, y]: [&HloValue; 2]) -> HloValue {
    let rest = hlo.binary("stablehlo.remainder", x, y);
    let (_, turns) = remainder(hlo, x, y);
    let zero = hlo.whole_like(x, 0);
    let is_zero = hlo.compare("EQ", y, &zero);
    let whole = hlo.binary("stablehlo.subtract", x, &rest);
    let divided = hlo.select(&is_zero, x, &whole);
    let quotient = hlo.binary("stablehlo.divide", &divided, y);
    let one = hlo.whole_like(x, 1);
    let below = hlo.binary("stablehlo.subtract", &quotient, &one);
    let chosen = hlo.select(&turns, &below, &quotient);
    hlo.unary("stablehlo.round_nearest_afz", &chosen)
}

/// `large * sqrt(1 + (small / large)^2)`; infinite if one of the numbers is.
fn hypotenuse(hlo: &mut HloBuilder<'_>, [x, y]: [&HloValue; 2]) -> HloValue {
    let [x, y] = [x, y].map(|value| hlo.unary("stablehlo.abs", value));
    let large = hlo.binary("stablehlo.maximum", &x, &y);
    let small = hlo.binary("stablehlo.minimum", &x, &y);
    let zero = hlo.whole_like(&x, 0);
    let one = hlo.whole_like(&x, 1);
    let is_zero = hlo.compare("EQ", &large, &zero);
    let divisor = hlo.select(&is_zero, &one, &large);
    let ratio = hlo.binary("stablehlo.divide", &small, &divisor);
    let square = hlo.binary("stablehlo.multiply", &ratio, &ratio);
    let sum = hlo.binary("stablehlo.add", &one, &square);
    let root = hlo.unary("stablehlo.sqrt", &sum);
    let length = hlo.binary("stablehlo.multiply", &large, &root);
    let infinity = hlo.float(x.ty.dtype(), f64::INFINITY, &x.ty.shape);
    let [first, second] = [&x, &y].map(|value| hlo.compare("EQ", value, &infinity));
    let is_infinite = hlo.binary("stablehlo.or", &first, &second);
    hlo.select(&is_infinite, &infinity, &length)
}

/// The larger number, and the logarithm of 1 and the exponential of the difference; equal infinities have no difference.
fn log_add_exp(hlo: &mut HloBuilder<'_>, [x, y]: [&HloValue; 2]) -> HloValue {
    let large = hlo.binary("stablehlo.maximum", x, y);
    let difference = hlo.binary("stablehlo.subtract", x, y);
    let is_nan = hlo.compare("NE", &difference, &difference);
    let sum = hlo.binary("stablehlo.add", x, y);
    let distance = hlo.unary("stablehlo.abs", &difference);
    let negated = hlo.unary("stablehlo.negate", &distance);
    let power = hlo.unary("stablehlo.exponential", &negated);
    let rest = hlo.unary("stablehlo.log_plus_one", &power);
    let total = hlo.binary("stablehlo.add", &large, &rest);
    hlo.select(&is_nan, &sum, &total)
}

/// The neighbour of `x` in the direction of `y`: numbers of one sign have the order of their bits.
fn neighbour(hlo: &mut HloBuilder<'_>, x: &HloValue, y: &HloValue) -> HloValue {
    let dtype = x.ty.dtype();
    if dtype.size() > 1 {
        return hlo.binary("chlo.next_after", x, y);
    }
    let [own, other] = [x, y].map(|value| bits_of(hlo, value));
    let one = hlo.whole_like(&own, 1);
    let zero = hlo.whole_like(x, 0);
    let sign = hlo.splat(DType::I8, 0x80, &x.ty.shape);
    let towards = hlo.binary("stablehlo.and", &other, &sign);
    let least = hlo.binary("stablehlo.or", &towards, &one);
    let [up, down] = ["stablehlo.add", "stablehlo.subtract"].map(|step| hlo.binary(step, &own, &one));
    let is_below = hlo.compare("LT", x, y);
    let is_positive = hlo.compare("GT", x, &zero);
    let grows = hlo.compare("EQ", &is_below, &is_positive);
    let moved = hlo.select(&grows, &up, &down);
    let is_zero = hlo.compare("EQ", x, &zero);
    let moved = hlo.select(&is_zero, &least, &moved);
    let is_equal = hlo.compare("EQ", x, y);
    let bits = hlo.select(&is_equal, &other, &moved);
    let next = hlo.bitcast(&bits, dtype);
    let [left, right] = [x, y].map(|value| hlo.compare("NE", value, value));
    let is_nan = hlo.binary("stablehlo.or", &left, &right);
    let nan = hlo.float(dtype, f64::NAN, &x.ty.shape);
    hlo.select(&is_nan, &nan, &next)
}

/// By Euclid's algorithm, in a loop until all rests are zero.
fn greatest_common_divisor(hlo: &mut HloBuilder<'_>, x: &HloValue, y: &HloValue) -> HloValue {
    let is_signed = x.ty.dtype().is_signed_integer();
    let [x, y] = [x, y].map(|value| if is_signed { hlo.unary("stablehlo.abs", value) } else { value.clone() });
    let some = |hlo: &mut HloBuilder<'_>, rest: &HloValue| {
        let zero = hlo.whole_like(rest, 0);
        hlo.compare("NE", rest, &zero)
    };
    let mut made = hlo.while_loop(
        &[x, y],
        |hlo, state| {
            let is_some = some(hlo, &state[1]);
            let dims: Vec<usize> = (0..is_some.ty.rank()).collect();
            hlo.reduce(ReduceOp::Or, &is_some, &dims)
        },
        |hlo, state| {
            let is_some = some(hlo, &state[1]);
            let rest = hlo.binary("stablehlo.remainder", &state[0], &state[1]);
            let zero = hlo.whole_like(&rest, 0);
            let divisor = hlo.select(&is_some, &state[1], &state[0]);
            let rest = hlo.select(&is_some, &rest, &zero);
            vec![divisor, rest]
        },
    );
    made.swap_remove(0)
}

impl WritesStablehlo for Compare {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let [x, y] = [0, 1].map(|at| hlo.broadcast(&args[at], &results[0].shape));
        let direction = match self.0 {
            CompareOp::Eq => "EQ",
            CompareOp::Ne => "NE",
            CompareOp::Lt => "LT",
            CompareOp::Le => "LE",
            CompareOp::Gt => "GT",
            CompareOp::Ge => "GE",
        };
        Ok(vec![hlo.compare(direction, &x, &y)])
    }
}

impl WritesStablehlo for Select {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let [condition, x, y] = [0, 1, 2].map(|at| hlo.broadcast(&args[at], &results[0].shape));
        Ok(vec![hlo.select(&condition, &x, &y)])
    }
}
