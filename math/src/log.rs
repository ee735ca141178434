//! Logarithms.
//!
//! All of them split the argument as `x = 2^e (1 + f)` with `1 + f` between the root of a half and the root of two. So near one, where the
//! result is small, `e` is zero and nothing cancels. Then `ln x = e ln 2 + ln(1 + f)`.
//!
//! Single precision uses a polynomial in `f`. Double precision uses `ln(1 + f) = 2 atanh(s)`, `s = f / (2 + f)`, whose
//! series in the small `s^2` is short, arranged so that the rounded `s` only enters the small terms:
//!
//! ```text
//! ln(1 + f) = f - (h - s (h + R)),   h = f^2 / 2,   R = 2/3 s^2 + 2/5 s^4 + ...
//! ```

use std::f64::consts::SQRT_2;

use super::exp::{LN2, LN2_F32};
use super::pair::Pair;
use super::value::{Bits, Double, Mask, Real, Single};
use super::{Description, MathFunction};

/// The inverses of `ln 2` and `ln 10`.
#[allow(clippy::approx_constant, reason = "the parts belong together")]
const LOG2_E: [f64; 2] = [1.4426950408889634, 2.0355273740931033e-17];
#[allow(clippy::approx_constant, reason = "the parts belong together")]
const LOG10_E: [f64; 2] = [0.4342944819032518, 1.098319650216765e-17];
/// The decimal logarithm of two to 42 digits, whose product with any exponent is exact, and the rest.
const LOG10_2: [f64; 2] = [0.30102999566395283, 2.8363394551044964e-14];
/// `(ln(1 + f) - f + f^2 / 2) / f^3`, relative to `ln(1 + f)`: error 2^-27.0.
const LOG_TAIL_F32: &[f64] =
    &[-0.07634441, 0.12761557, -0.13160203, 0.14201766, -0.16623355, 0.20001227, -0.25000823, 0.3333333];
/// `(2 atanh(s) - 2 s) / s^3` as a polynomial in `s^2`, relative to `2 atanh(s)`: error 2^-57.9.
const ATANH_TAIL: &[f64] = &[
    0.14797035948024817,
    0.15313951184667474,
    0.1818356783592578,
    0.2222219851316133,
    0.28571428742895955,
    0.39999999999412755,
    0.6666666666666735,
];
/// The same for results in single precision: error 2^-29.2.
const ATANH_TAIL_SHORT: &[f64] = &[0.29872284135513955, 0.39977527983421646, 0.6666677642123406];

/// `x = 2^exponent * mantissa`.
pub(super) struct FloatParts<X: Real> {
    pub(super) exponent: X,
    pub(super) mantissa: X,
    /// The exponent plus `BIAS`.
    biased: X::Bits,
}

/// The bits of the root of a half, rounded down.
const fn root_half_bits(fraction: u32) -> i64 {
    if fraction == 23 { 0x3f35_04f3 } else { 0x3fe6_a09e_667f_3bcc }
}

/// Splits a normal, positive, finite number so that the mantissa is between the root of a half and the root of two.
#[inline(always)]
pub(super) fn split_normal<X: Real>(x: X) -> FloatParts<X> {
    split_with_offset(x, x.constant(plain_offset::<X>()))
}

/// The same for a number that was scaled by a power of two, which makes the offset another.
#[inline(always)]
fn split_with_offset<X: Real>(x: X, offset: X) -> FloatParts<X> {
    let root_half = root_half_bits(X::FRACTION);
    let shifted = x.bits() + (X::ONE - root_half);
    let biased = shifted.shift_right(X::FRACTION);
    let mantissa = (shifted & ((1 << X::FRACTION) - 1)) + root_half;
    // The integer becomes a number as the low bits of 2^FRACTION, which is then subtracted along with the bias.
    let two_to_fraction = (X::BIAS + i64::from(X::FRACTION)) << X::FRACTION;
    FloatParts { exponent: (biased | two_to_fraction).real() - offset, mantissa: mantissa.real(), biased }
}

/// The number to subtract from the biased exponent of a number that was not scaled.
fn plain_offset<X: Real>() -> f64 {
    (1_i64 << X::FRACTION) as f64 + X::BIAS as f64
}

/// Splits a positive, finite number.
#[inline(always)]
pub(super) fn split<X: Real>(x: X) -> FloatParts<X> {
    let subnormal = x.less(X::TINY);
    let scaled = subnormal.select(x * (1_i64 << X::FRACTION) as f64, x);
    let offset = plain_offset::<X>();
    let offset = subnormal.select(offset + f64::from(X::FRACTION), x.constant(offset));
    split_with_offset(scaled, offset)
}

/// Replaces the results for arguments without a finite logarithm; `y` is the result of the formula.
#[inline(always)]
pub(super) fn with_specials<X: Real>(x: X, y: X) -> X {
    let at_infinity = x.less(f64::INFINITY).select(y, x);
    let pole = x.equals(0.0).select(f64::NEG_INFINITY, x.constant(f64::NAN));
    x.less_equal(0.0).select(pole, at_infinity)
}

pub(super) fn log_f32<X: Single>(x: X) -> X {
    let FloatParts { exponent, mantissa, .. } = split(x);
    let f = mantissa - 1.0;
    let square = f * f;
    let tail = (square * f) * f.polynomial(LOG_TAIL_F32);
    let small = square.fma(-0.5, exponent.fma(LN2_F32[1], tail));
    with_specials(x, exponent.fma(LN2_F32[0], f + small))
}

/// `ln(1 + f) - f` for `1 + f` between the root of a half and the root of two.
#[inline(always)]
fn log1p_tail<X: Double>(f: X) -> X {
    let half_square = f * f * 0.5;
    let s = f / (f + 2.0);
    let z = s * s;
    s.fma(z.fma(z.polynomial(ATANH_TAIL), half_square), -half_square)
}

/// The logarithm of `u`, whose high part is normal, positive and finite, times `2^more`.
#[inline(always)]
pub(super) fn log_of_pair<X: Double>(u: Pair<X>, more: X) -> Pair<X> {
    let FloatParts { exponent, mantissa, biased } = split_normal(u.high);
    // The low part is scaled by 2^-exponent to stay beside the mantissa; in two steps, as 2^-1024 is subnormal.
    let down: X = (biased.constant(2 * X::BIAS + 1) - biased).shift_left(X::FRACTION).real();
    let f = Pair::sum_of_ordered(mantissa - 1.0, u.low * 0.5 * down);
    let small = f.low - f.low * f.high + log1p_tail(f.high);
    log_of_parts(exponent + more, f.high, small)
}

/// `exponent * ln 2 + f + small`
#[inline(always)]
fn log_of_parts<X: Double>(exponent: X, f: X, small: X) -> Pair<X> {
    Pair::sum_of_ordered(exponent * LN2[0], f).plus_small(exponent.fma(LN2[1], small))
}

pub(super) fn log_f64<X: Double>(x: X) -> X {
    let FloatParts { exponent, mantissa, .. } = split(x);
    let f = mantissa - 1.0;
    with_specials(x, log_of_parts(exponent, f, log1p_tail(f)).rounded())
}

/// The logarithm to another base, whose logarithm's inverse is `per`; `exponent * unit` is the logarithm of 2^exponent.
#[inline(always)]
fn log_to_base<X: Double>(x: X, per: [f64; 2], unit: [f64; 2]) -> X {
    let FloatParts { exponent, mantissa, .. } = split(x);
    let f = mantissa - 1.0;
    let natural = Pair::sum_of_ordered(f, log1p_tail(f));
    let product = Pair::product(natural.high, per[0]);
    let small = natural.low.fma(per[0], natural.high.fma(per[1], product.low));
    let sum = Pair::sum_of_ordered(exponent * unit[0], product.high);
    with_specials(x, sum.plus_small(exponent.fma(unit[1], small)).rounded())
}

pub(super) fn log2_f64<X: Double>(x: X) -> X {
    log_to_base(x, LOG2_E, [1.0, 0.0])
}

pub(super) fn log10_f64<X: Double>(x: X) -> X {
    log_to_base(x, LOG10_E, LOG10_2)
}

pub(super) fn log2_f32<X: Single>(x: X) -> X {
    let (exponent, natural) = log_short(x.widen());
    with_specials(x, natural.fma(LOG2_E[0], exponent).narrow())
}

pub(super) fn log10_f32<X: Single>(x: X) -> X {
    let (exponent, natural) = log_short(x.widen());
    let of_exponent = exponent * std::f64::consts::LOG10_2;
    with_specials(x, natural.fma(LOG10_E[0], of_exponent).narrow())
}

/// The exponent of a normal number and the natural logarithm of its mantissa, with a relative error of 2^-29.
#[inline(always)]
pub(super) fn log_short<X: Double>(x: X) -> (X, X) {
    let FloatParts { exponent, mantissa, .. } = split_normal(x);
    let f = mantissa - 1.0;
    (exponent, log1p_short(f))
}

/// `ln(1 + f)` with a relative error of 2^-29 for `1 + f` between the root of a half and the root of two.
#[inline(always)]
fn log1p_short<X: Double>(f: X) -> X {
    let s = f / (f + 2.0);
    let z = s * s;
    s.fma(z * z.polynomial(ATANH_TAIL_SHORT), s + s)
}

/// `ln(1 + x)` for finite `x > -1`, with a relative error of 2^-29.
#[inline(always)]
pub(super) fn log1p_any_short<X: Double>(x: X) -> X {
    let u = x + 1.0;
    let FloatParts { exponent, mantissa, .. } = split_normal(u);
    // Near one, `u` has lost digits of `x` that matter.
    let f = exponent.equals(0.0).select(x, mantissa - 1.0);
    exponent.fma(std::f64::consts::LN_2, log1p_short(f))
}

pub(super) fn log1p_f32<X: Single>(x: X) -> X {
    let y = log1p_any_short(x.widen()).narrow();
    with_log1p_specials(x, y)
}

pub(super) fn log1p_f64<X: Double>(x: X) -> X {
    let u = Pair::sum(x.constant(1.0), x);
    with_log1p_specials(x, log_of_pair(u, x.zero()).rounded())
}

/// As [`with_specials`], for the logarithm of `1 + x`.
#[inline(always)]
fn with_log1p_specials<X: Real>(x: X, y: X) -> X {
    let at_infinity = x.less(f64::INFINITY).select(y, x);
    let pole = x.equals(-1.0).select(f64::NEG_INFINITY, x.constant(f64::NAN));
    let right = x.less_equal(-1.0).select(pole, at_infinity);
    // Zero keeps its sign, and a subnormal its digits.
    x.abs().less(1e-17).select(x, right)
}

/// The natural logarithm.
pub(crate) struct Log;

impl MathFunction for Log {
    const DESCRIPTION: Description = Description {
        name: "log",
        example: "(x: f32[6]) { log(x + 1) }",
        is_instruction: false,
        ends: [-f64::INFINITY, -f64::INFINITY, f64::INFINITY, f64::NAN],
        symmetry: None,
        interval: (0.25, 4.0),
        edges: &[1.0, SQRT_2, 0.5 * SQRT_2, f64::MIN_POSITIVE],
        reference: "F(log)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        log_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        log_f64(x)
    }
}

/// The logarithm to base 2.
pub(crate) struct Log2;

impl MathFunction for Log2 {
    const DESCRIPTION: Description = Description {
        name: "log2",
        example: "(x: f32[6]) { log2(x + 1) }",
        is_instruction: false,
        ends: [-f64::INFINITY, -f64::INFINITY, f64::INFINITY, f64::NAN],
        symmetry: None,
        interval: (0.25, 4.0),
        edges: &[1.0, SQRT_2, 0.5 * SQRT_2, f64::MIN_POSITIVE],
        reference: "F(log2)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        log2_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        log2_f64(x)
    }
}

/// The logarithm to base 10.
pub(crate) struct Log10;

impl MathFunction for Log10 {
    const DESCRIPTION: Description = Description {
        name: "log10",
        example: "(x: f32[6]) { log10(x + 1) }",
        is_instruction: false,
        ends: [-f64::INFINITY, -f64::INFINITY, f64::INFINITY, f64::NAN],
        symmetry: None,
        interval: (0.25, 4.0),
        edges: &[1.0, SQRT_2, 0.5 * SQRT_2, f64::MIN_POSITIVE],
        reference: "F(log10)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        log10_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        log10_f64(x)
    }
}

/// log(1 + x), accurate for x close to 0.
pub(crate) struct Log1p;

impl MathFunction for Log1p {
    const DESCRIPTION: Description = Description {
        name: "log1p",
        example: "(x: f32[6]) { log1p(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::INFINITY, f64::NAN],
        symmetry: None,
        interval: (-1.0, 4.0),
        edges: &[-1.0, SQRT_2 - 1.0, 0.5 * SQRT_2 - 1.0, 1e-17, 1.0],
        reference: "F(log1p)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        log1p_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        log1p_f64(x)
    }
}
