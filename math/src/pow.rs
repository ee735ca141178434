//! Powers with real exponents.
//!
//! `x^y = 2^(y log2 x)`. The product may be as large as 1074 and its error counts absolutely, so in double precision the
//! logarithm is a pair that is good to 2^-64:
//!
//! ```text
//! log2 x = e + log2 m,    log2 m = s (C + C/3 s^2 + s^4 P(s^2)),    s = (m - 1) / (m + 1),    C = 2 / ln 2
//! ```
//!
//! For results in single precision, plain double precision has digits to spare.

use super::exp::{exp2_of_pair, exp2_short};
use super::log::{FloatParts, split, split_normal};
use super::pair::Pair;
use super::value::{Double, Mask, Real, Single};

/// `2 / ln 2` and a third of it, in two parts each.
const C: [f64; 2] = [2.8853900817779268, 4.0710547481862066e-17];
const C_THIRD: [f64; 2] = [0.9617966939259756, 5.0577616648125907e-17];
/// `P` of the formula above: error 2^-64.0.
const LOG2_TAIL: &[f64] = &[
    0.1903975563006802,
    0.19125394334274204,
    0.22198404595413992,
    0.2623077001743572,
    0.3205989022832706,
    0.4121985830918925,
    0.5770780163556181,
];
/// The same for results in single precision: error 2^-35.3.
const LOG2_TAIL_SHORT: &[f64] = &[0.3378690063301818, 0.4118477100612603, 0.5770802147042347];

/// The binary logarithm of a positive, finite number, to about 2^-64 of itself or of one.
#[inline(always)]
fn log2_pair<X: Double>(x: X) -> Pair<X> {
    let FloatParts { exponent, mantissa, .. } = split(x);
    let one = x.constant(1.0);
    let top = Pair { high: mantissa - 1.0, low: x.zero() };
    let s = top.divided_by(Pair::sum(mantissa, one));
    let z = s.times(s);
    let inner = Pair::sum_of_ordered(x.constant(C_THIRD[0]), z.high * z.high.polynomial(LOG2_TAIL));
    let outer = z.times(inner.plus_small(x.constant(C_THIRD[1])));
    let factor = Pair::sum_of_ordered(x.constant(C[0]), outer.high).plus_small(outer.low + C[1]);
    let of_mantissa = s.times(factor);
    Pair::sum_of_ordered(exponent, of_mantissa.high).plus_small(of_mantissa.low).normalized()
}

/// The logarithms of zero and infinity, where the formula has given something else.
#[inline(always)]
fn with_ends<X: Real>(size: X, log: X) -> X {
    let at_infinity = size.less(f64::INFINITY).select(log, size);
    size.equals(0.0).select(f64::NEG_INFINITY, at_infinity)
}

pub(super) fn pow_f64<X: Double>(x: X, y: X) -> X {
    let size = x.abs();
    let log = log2_pair(size);
    let product = Pair::product(with_ends(size, log.high), y);
    // Infinite products and those that will overflow have no low part.
    let low = product.high.abs().less(2048.0).select(log.low.fma(y, product.low), x.zero());
    pow_specials(x, y, exp2_of_pair(Pair { high: product.high, low }))
}

pub(super) fn pow_f32<X: Single>(x: X, y: X) -> X {
    let (wide_x, wide_y) = (x.widen(), y.widen());
    let size = wide_x.abs();
    let FloatParts { exponent, mantissa, .. } = split_normal(size);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let factor = z.fma(z.fma(z.polynomial(LOG2_TAIL_SHORT), C_THIRD[0]), C[0]);
    let log = with_ends(size, s.fma(factor, exponent));
    let power = exp2_short((log * wide_y).at_least(-200.0).at_most(200.0));
    pow_specials(wide_x, wide_y, power).narrow()
}

/// The sign of a power, and the cases that C99 lists; `power` is the power of the magnitude of `x`.
#[inline(always)]
fn pow_specials<X: Real>(x: X, y: X, power: X) -> X {
    let size = x.abs();
    let half = y * 0.5;
    let integer = y.trunc().equals(y);
    let odd = (half - half.trunc()).abs().greater(0.0);
    let signed = odd.select(power.flip_sign_by(x), power);
    let negative = x.less(0.0) & x.greater(f64::NEG_INFINITY);
    let real = integer.select(signed, negative.select(f64::NAN, power));
    // The logarithm has lost a NaN.
    let number = size.less_equal(f64::INFINITY).select(real, x);
    let endless = size.equals(1.0) & y.abs().equals(f64::INFINITY);
    (endless | x.equals(1.0) | y.equals(0.0)).select(1.0, number)
}
