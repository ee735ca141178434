//! The logarithm of the sum of two numbers with known logarithms.
//!
//! ```text
//! ln(exp(x) + exp(y)) = max + ln(1 + exp(-d))        d = |x - y|
//! ```
//!
//! Where the sum of the exponentials is close to one, the two terms cancel. Single precision computes in double precision and
//! has digits to spare. Double precision then takes one step of Newton's method from what the formula gave, `z`:
//!
//! ```text
//! ln(exp(x) + exp(y)) = z + (exp(x - z) - 1) + exp(y - z)        z close to the result
//! ```
//!
//! with exponentials to about 88 digits, relative to `exp(y - z)`, the smaller one.

use super::exp::{LN2, exp_f64, exp_parts, nearest_multiple, power_of_two, scale};
use super::log::{log_of_pair, log1p_f64};
use super::pair::Pair;
use super::value::{Double, Mask, Real, Single};
use std::f64::consts::LOG2_E;

/// The rounding error of `LN2`.
const LN2_REST: f64 = -1.3124698417785255e-27;
/// `1/n!` from 20 down to 10.
const INVERSE_FACTORIALS: &[f64] = &[
    4.110317623312165e-19,
    8.22063524662433e-18,
    1.5619206968586225e-16,
    2.8114572543455206e-15,
    4.779477332387385e-14,
    7.647163731819816e-13,
    1.1470745597729725e-11,
    1.6059043836821613e-10,
    2.08767569878681e-09,
    2.505210838544172e-08,
    2.755731922398589e-07,
];
/// `1/n!` from nine down to one, in two parts each.
const INVERSE_FACTORIAL_PAIRS: [[f64; 2]; 9] = [
    [2.7557319223985893e-06, -1.858393274046472e-22],
    [2.48015873015873e-05, 2.1511947866775882e-23],
    [0.0001984126984126984, 1.7209558293420705e-22],
    [0.001388888888888889, -5.300543954373577e-20],
    [0.008333333333333333, 1.1564823173178714e-19],
    [0.041666666666666664, 2.3129646346357427e-18],
    [0.16666666666666666, 9.25185853854297e-18],
    [0.5, 0.0],
    [1.0, 0.0],
];

pub(super) fn logaddexp_f32<X: Single>(x: X, y: X) -> X {
    let (x, y) = (x.widen(), y.widen());
    let distance = x.equals(y).select(0.0, x - y).abs();
    let more = log1p_f64(exp_f64(-distance));
    let larger = x.at_least(y);
    distance.greater_equal(0.0).select(larger + more, distance).narrow()
}

pub(super) fn logaddexp_f64<X: Double>(x: X, y: X) -> X {
    let equal = x.equals(y);
    let difference = Pair::sum(x, -y);
    let far = difference.high.abs().less(1e4);
    let low = far.select(difference.low, x.zero()).flip_sign_by(difference.high);
    let distance = Pair { high: equal.select(0.0, difference.high).abs(), low: equal.select(0.0, low) };
    let (exp, k) = exp_parts(Pair { high: (-distance.high).at_least(-746.0), low: -distance.low });
    let (exp, low) = (scale(exp.high, k), scale(exp.low, k));
    let sum = Pair::sum_of_ordered(x.constant(1.0), exp).plus_small(low).normalized();
    let more = log_of_pair(sum, x.zero());
    let (larger, smaller) = (x.at_least(y), x.at_most(y));
    let result = Pair::sum(larger, more.high).plus_small(more.low).rounded();
    // The error of the logarithm counts as often as it is larger than the result.
    let cancelled = result.abs().less(more.high.abs() * 0.75) & distance.high.less(600.0);
    let result = cancelled.select(result + newton_step(larger, smaller, result), result);
    let finite = larger.abs().less(f64::INFINITY).select(result, larger);
    distance.high.greater_equal(0.0).select(finite, distance.high)
}

/// `exp(x - z) - 1 + exp(y - z)`, where that is close to zero, `x` is at least `y`, and they are at most 600 apart.
#[inline(always)]
fn newton_step<X: Double>(x: X, y: X, z: X) -> X {
    let one = x.constant(1.0);
    let (scale_x, expm1_x) = expm1_parts(Pair::sum(x, -z));
    let (scale_y, expm1_y) = expm1_parts(Pair::sum(y, -z));
    // scale (1 + m) - 1 without losing the digits of m.
    let scaled_x = Pair::sum(scale_x - one, scale_x * expm1_x.high);
    let scaled_y = Pair::sum_of_ordered(scale_y, scale_y * expm1_y.high);
    let sum = Pair::sum(scaled_x.high, scaled_y.high);
    let low_x = scale_x.fma(expm1_x.low, scaled_x.low);
    let low_y = scale_y.fma(expm1_y.low, scaled_y.low);
    sum.high + (sum.low + (low_x + low_y))
}

/// `2^k` and `exp(r) - 1` for `x = k ln 2 + r`, to about 2^-88 of themselves; `x` is at least -700 and not positive.
#[inline(always)]
fn expm1_parts<X: Double>(x: Pair<X>) -> (X, Pair<X>) {
    // Arguments beyond the limit are those of results that are not used.
    let high = x.high.at_least(-700.0).at_most(1.0);
    let (k, bits) = nearest_multiple(high, LOG2_E);
    let exact = k.fma(-LN2[0], high);
    let part = Pair::product(k, LN2[1]);
    let r = Pair::sum(exact, -part.high);
    let r = r.plus_small(k.fma(-LN2_REST, x.low - part.low)).normalized();
    let mut sum = Pair { high: r.high.polynomial(INVERSE_FACTORIALS), low: x.high.zero() };
    for [coefficient, rest] in INVERSE_FACTORIAL_PAIRS {
        let product = r.times(sum);
        sum = Pair::sum_of_ordered(x.high.constant(coefficient), product.high).plus_small(product.low + rest);
    }
    (power_of_two(bits), r.times(sum).normalized())
}
