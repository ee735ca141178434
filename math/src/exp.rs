//! Exponentials.
//!
//! All of them split the argument as `x = k ln 2 + r` with an integer `k` and `|r|` at most half of `ln 2`, approximate `exp(r)` by a
//! polynomial, and multiply by `2^k`. The multiple of `ln 2` is subtracted in two parts, the first with so few digits that the difference
//! is exact. The only remaining error is the rounding of `1 + (r + ...)`.
//!
//! ```text
//! exp(1) = 2^1 * exp(0.3069)        k = 1,  r = 1 - ln 2
//! ```
//!
//! Where `k` is out of the range of one exponent field, as for subnormal results, the power of two is applied in halves:
//! the first multiplication is exact, the second rounds once.

use std::f64::consts::{LN_2, LOG2_E};

use super::pair::Pair;
use super::value::{Bits, Double, Mask, Real, Single};
use super::{Description, MathFunction};

/// `ln 2` to 16 digits, whose product with any exponent of an `f32` is exact, and the rest.
pub(super) const LN2_F32: [f64; 2] = [0.693145751953125, 1.428606765330187e-6];
/// `ln 2` to 32 digits, whose product with any exponent of an `f64` is exact, and the rest.
pub(super) const LN2: [f64; 2] = [0.6931471806019545, -4.2009150726810846e-11];
/// `ln 2` as exactly as two numbers can.
const LN2_FULL_F32: [f64; 2] = [0.6931471824645996, -1.9046542121259336e-9];
#[allow(clippy::approx_constant, reason = "the parts belong together")]
const LN2_FULL: [f64; 2] = [0.6931471805599453, 2.3190468138462996e-17];

/// `(exp(r) - 1 - r) / r^2`, relative to `exp(r)`: error 2^-27.8.
pub(super) const EXP_TAIL_F32: &[f64] = &[0.0013814485, 0.008368782, 0.041668393, 0.1666652, 0.49999994];
/// The same for double precision, relative to `exp(r) - 1`: error 2^-56.2.
const EXP_TAIL: &[f64] = &[
    1.7687851676707655e-9,
    2.5105291227305224e-8,
    2.75679462538549e-7,
    2.7557255228061303e-6,
    2.4801574491675394e-5,
    0.00019841269874950088,
    0.0013888888895633967,
    0.008333333333326101,
    0.04166666666665218,
    0.1666666666666667,
    0.5000000000000001,
];
/// The same in double precision for results in single precision, relative to `exp(r) - 1`: error 2^-31.8.
const EXP_TAIL_SHORT: &[f64] = &[
    0.00019962541955144818,
    0.0013943311568446939,
    0.0083332193582275,
    0.04166632570257603,
    0.16666666904547411,
    0.5000000053359989,
];
/// `(2^r - 1 - r ln 2) / r^2`, relative to `2^r`: error 2^-27.9.
const EXP2_TAIL_F32: &[f64] = &[0.00015321176, 0.0013390164, 0.009618526, 0.05550362, 0.24022648];
/// The same for double precision: error 2^-57.7.
const EXP2_TAIL: &[f64] = &[
    4.4362897208786767e-10,
    7.073578066216233e-9,
    1.0178184738551677e-7,
    1.3215436616608126e-6,
    1.5252733546688641e-5,
    0.00015403530454051128,
    0.0013333558146686275,
    0.009618129107596997,
    0.05550410866482074,
    0.24022650695910122,
];

/// The integer nearest to `x * per`, as a number and as the low bits of one. It must be small.
#[inline(always)]
pub(super) fn nearest_multiple<X: Real>(x: X, per: f64) -> (X, X::Bits) {
    let shifted = x.fma(per, X::MAGIC);
    (shifted - X::MAGIC, shifted.bits())
}

/// `2^k` for a `k` as [`nearest_multiple`] gives it, in the range of normal numbers.
#[inline(always)]
pub(super) fn power_of_two<X: Real>(k: X::Bits) -> X {
    (k.shift_left(X::FRACTION) + X::ONE).real()
}

/// `y * 2^k`, rounded once, for any `k` that [`nearest_multiple`] may give within twice the range of exponents.
#[inline(always)]
pub(super) fn scale<X: Real>(y: X, k: X::Bits) -> X {
    let biased = k - (X::MAGIC_BITS - 2 * X::BIAS);
    let half = biased.shift_right(1);
    let rest = biased - half;
    y * half.shift_left(X::FRACTION).real() * rest.shift_left(X::FRACTION).real()
}

pub(super) fn exp_f32<X: Single>(x: X) -> X {
    // Beyond these limits the result is zero or infinite anyway.
    exp_within(x.at_least(-104.0).at_most(89.0), LN2_F32, EXP_TAIL_F32)
}

pub(super) fn exp_f64<X: Double>(x: X) -> X {
    exp_within(x.at_least(-746.0).at_most(710.0), LN2, EXP_TAIL)
}

#[inline(always)]
fn exp_within<X: Real>(x: X, [ln2_high, ln2_low]: [f64; 2], tail: &[f64]) -> X {
    let (k, bits) = nearest_multiple(x, LOG2_E);
    let exact = k.fma(-ln2_high, x);
    let r = k.fma(-ln2_low, exact);
    // The low part of k ln 2 joins the small terms, so that `r` is not rounded where it counts.
    let small = k.fma(-ln2_low, r * r * r.polynomial(tail));
    scale((exact + small) + 1.0, bits)
}

/// `1 / (1 + exp(-x))`: for negative `x` the quotient has `exp(x)` above and below, so that small results keep their digits.
pub(super) fn sigmoid_f32<X: Single>(x: X) -> X {
    let power = exp_short(-x.abs().at_most(104.0).widen());
    (x.widen().less(0.0).select(power, power.constant(1.0)) / (power + 1.0)).narrow()
}

pub(super) fn sigmoid_f64<X: Double>(x: X) -> X {
    let power = exp_f64(-x.abs());
    let one = x.constant(1.0);
    let above = Pair { high: x.less(0.0).select(power, one), low: x.zero() };
    let y = above.divided_by(Pair::sum_of_ordered(one, power)).rounded();
    // The quotient's residue underflows for the smallest numbers, whose divisor is one.
    x.less(-40.0).select(power, y)
}

pub(super) fn exp2_f32<X: Single>(x: X) -> X {
    exp2_within(x.at_least(-151.0).at_most(129.0), None, LN2_FULL_F32, EXP2_TAIL_F32)
}

pub(super) fn exp2_f64<X: Double>(x: X) -> X {
    exp2_within(x.at_least(-1076.0).at_most(1025.0), None, LN2_FULL, EXP2_TAIL)
}

/// `2^(x.high + x.low)`
pub(super) fn exp2_of_pair<X: Double>(x: Pair<X>) -> X {
    exp2_within(x.high.at_least(-1076.0).at_most(1025.0), Some(x.low), LN2_FULL, EXP2_TAIL)
}

#[inline(always)]
fn exp2_within<X: Real>(x: X, low: Option<X>, [ln2, ln2_rest]: [f64; 2], tail: &[f64]) -> X {
    let (k, bits) = nearest_multiple(x, 1.0);
    let exact = x - k;
    let r = low.map_or(exact, |low| exact + low);
    let small = r * r.polynomial(tail).fma(r, ln2_rest);
    let small = low.map_or(small, |low| ((exact - r) + low).fma(ln2, small));
    scale(r.fma(ln2, small) + 1.0, bits)
}

pub(super) fn expm1_f32<X: Single>(x: X) -> X {
    let y = expm1_short(x.widen().at_least(-80.0).at_most(100.0)).narrow();
    // Minus zero comes back as plus zero; all other signs are right already.
    y.with_sign_of(x)
}

/// `exp(x) - 1` with a relative error of 2^-31, for `x` in the range of single precision exponentials.
#[inline(always)]
pub(super) fn expm1_short<X: Double>(x: X) -> X {
    let (t, power) = expm1_parts_short(x);
    power.fma(t, power - 1.0)
}

/// `exp(x)` with a relative error of 2^-31, for `x` in the range of single precision exponentials.
#[inline(always)]
pub(super) fn exp_short<X: Double>(x: X) -> X {
    let (t, power) = expm1_parts_short(x);
    power.fma(t, power)
}

/// `exp(r) - 1` and `2^k`
#[inline(always)]
fn expm1_parts_short<X: Double>(x: X) -> (X, X) {
    let (k, bits) = nearest_multiple(x, LOG2_E);
    let r = k.fma(-LN_2, x);
    ((r * r).fma(r.polynomial(EXP_TAIL_SHORT), r), power_of_two(bits))
}

/// `2^x` with a relative error of 2^-31, in the range of normal numbers.
#[inline(always)]
pub(super) fn exp2_short<X: Double>(x: X) -> X {
    let (k, bits) = nearest_multiple(x, 1.0);
    let r = (x - k) * LN_2;
    let t = (r * r).fma(r.polynomial(EXP_TAIL_SHORT), r);
    (t + 1.0) * power_of_two::<X>(bits)
}

/// `exp(x)` over `2^k` to a few more digits than one number has, and `k` for [`scale`]; `x` is in the range of exponentials.
#[inline(always)]
pub(super) fn exp_parts<X: Double>(x: Pair<X>) -> (Pair<X>, X::Bits) {
    let (k, bits) = nearest_multiple(x.high, LOG2_E);
    let exact = k.fma(-LN2[0], x.high);
    let r = k.fma(-LN2[1], exact) + x.low;
    let small = k.fma(-LN2[1], (r * r).fma(r.polynomial(EXP_TAIL), x.low));
    (Pair::sum_of_ordered(r.constant(1.0), exact).plus_small(small).normalized(), bits)
}

pub(super) fn expm1_f64<X: Double>(x: X) -> X {
    let limited = x.at_least(-60.0).at_most(710.0);
    let (k, bits) = nearest_multiple(limited, LOG2_E);
    let exact = k.fma(-LN2[0], limited);
    let r = k.fma(-LN2[1], exact);
    let small = k.fma(-LN2[1], r * r * r.polynomial(EXP_TAIL));
    // With t + low = exp(r) - 1 the result is 2^k t + (2^k - 1). Half of it is computed, as 2^1024 does not exist.
    let t = exact + small;
    let low = (exact - t) + small;
    let power: X = power_of_two(bits - 1);
    let whole = power - 0.5;
    let part = power * t;
    let sum = whole + part;
    let rest = (whole - sum) + part;
    let half = sum + power.fma(low, rest);
    // Halving would round subnormals and lose the sign of zero.
    x.abs().less(1e-17).select(x, half * 2.0)
}

/// e raised to the power x.
pub(crate) struct Exp;

impl MathFunction for Exp {
    const DESCRIPTION: Description = Description {
        name: "exp",
        example: "(x: f32[6]) { exp(x) }",
        is_instruction: false,
        ends: [1.0, 1.0, f64::INFINITY, 0.0],
        symmetry: None,
        interval: (-750.0, 712.0),
        edges: &[709.782712893384, -745.1332191019412, -708.3964185322641, 0.5 * LN_2, 88.722839, -103.972084],
        reference: "F(exp)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        exp_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        exp_f64(x)
    }
}

/// 2 raised to the power x.
pub(crate) struct Exp2;

impl MathFunction for Exp2 {
    const DESCRIPTION: Description = Description {
        name: "exp2",
        example: "(x: f32[6]) { exp2(x) }",
        is_instruction: false,
        ends: [1.0, 1.0, f64::INFINITY, 0.0],
        symmetry: None,
        interval: (-1080.0, 1026.0),
        edges: &[1024.0, -1022.0, -1074.0, -1075.0, 0.5, -0.5, 128.0, -149.0, -150.0],
        reference: "F(exp2)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        exp2_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        exp2_f64(x)
    }
}

/// exp(x) - 1, accurate for x close to 0.
pub(crate) struct Expm1;

impl MathFunction for Expm1 {
    const DESCRIPTION: Description = Description {
        name: "expm1",
        example: "(x: f32[6]) { expm1(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::INFINITY, -1.0],
        symmetry: None,
        interval: (-750.0, 712.0),
        edges: &[709.782712893384, -36.04365338911715, 0.5 * LN_2, -0.5 * LN_2, 1e-17, 88.722839],
        reference: "F(expm1)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        expm1_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        expm1_f64(x)
    }
}

/// 1 / (1 + exp(-x)).
pub(crate) struct Sigmoid;

impl MathFunction for Sigmoid {
    const DESCRIPTION: Description = Description {
        name: "sigmoid",
        example: "(x: f32[6]) { sigmoid(x - 3) }",
        is_instruction: false,
        ends: [0.5, 0.5, 1.0, 0.0],
        symmetry: None,
        interval: (-750.0, 40.0),
        edges: &[-745.1332191019412, -708.3964185322641, 36.7368005696771, -103.972084, -87.33655, 16.635532],
        reference: "C(1.0) / (C(1.0) + F(exp)(-x))",
    };

    fn single<X: Single>(x: X) -> X {
        sigmoid_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        sigmoid_f64(x)
    }
}
