//! The logarithm of the gamma function, and its derivative.
//!
//! Both are polynomials on an interval of length one, to which the recurrences `gamma(x + 1) = x gamma(x)` and
//! `psi(x + 1) = psi(x) + 1 / x` lead from small arguments, and Stirling's series for large ones. The polynomials are multiples of the
//! distances from the zeros, so that nothing is lost there:
//!
//! ```text
//! ln gamma(2 + t) = t (1 + t) P(t)      psi(3/2 + t) = (3/2 + t - 1.4616...) P(t)
//! ```
//!
//! Negative arguments take the reflections, whose terms cancel close to the zeros below -2, or below 0 for `psi`:
//!
//! ```text
//! ln gamma(-a) = ln pi - ln(a |sin(pi a)|) - ln gamma(a)      psi(-a) = psi(1 + a) + pi cot(pi a)
//! ```
//!
//! Single precision uses the same formulas, as the zeros take so many digits.

use super::log::log_of_pair;
use super::pair::Pair;
use super::trig::{PI, sin_cos_of_half_turns};
use super::value::{Double, Mask, Real, Single};
use super::{Description, MathFunction};

/// `ln gamma(2 + t) / (t (1 + t))` for `t` from -3/4 to a half: error 2^-56.9.
const LGAMMA_NEAR: &[f64] = &[
    3.797515953953538e-8,
    3.2389620297768476e-8,
    3.365044717729995e-9,
    -9.700035676997482e-8,
    8.27798195806237e-8,
    -1.641187423501463e-7,
    4.1392855483260136e-7,
    -8.605879442441394e-7,
    1.8041325285045316e-6,
    -3.846093030438396e-6,
    8.223024162738566e-6,
    -1.7661791820442218e-5,
    3.816878475616623e-5,
    -8.309512051507283e-5,
    0.0001825526469565,
    -0.00040570739762029834,
    0.0009153769219106833,
    -0.002108130833956997,
    0.0049986411647048356,
    -0.01238419219337122,
    0.03296500062115576,
    -0.10031730167435392,
    0.42278433509846713,
];
const LGAMMA_NEAR_REST: [f64; 1] = [5.035551513948449e-18];
/// The error of Stirling's formula for `ln gamma(x)`, times `x`, as a polynomial in `1 / x^2` from 7.49 on: error 2^-54.0.
const STIRLING_TAIL: &[f64] = &[
    0.004916232392101833,
    -0.0018835189913797385,
    0.0008413529144286323,
    -0.000595235671216129,
    0.0007936507865730516,
    -0.002777777777770003,
    0.08333333333333333,
];
/// `psi(3/2 + t)` over the distance from its zero, for `t` up to a half: error 2^-56.1.
const DIGAMMA_NEAR: &[f64] = &[
    0.0001212080051050547,
    -0.0001783826481405144,
    9.325039083136878e-5,
    -0.0001445948470171282,
    0.0003259055023898508,
    -0.00048606748498493195,
    0.0006902744458594821,
    -0.0010364222312580676,
    0.0015635048742506674,
    -0.0023455016170844303,
    0.003518088524615316,
    -0.005279936432122655,
    0.00792702334151796,
    -0.011908220167713238,
    0.017907248234894445,
    -0.02697579665700501,
    0.0407608339434102,
    -0.06192213327555715,
    0.09498872445284949,
    -0.14840492305388014,
    0.24054248424078722,
    -0.4236274212814606,
    0.9510558760318328,
];
const DIGAMMA_NEAR_REST: [f64; 1] = [4.3046699025167836e-17];
/// `(ln x - 1 / (2 x) - psi(x)) x^2` as a polynomial in `1 / x^2` from 4.99 on: error 2^-52.1.
const DIGAMMA_TAIL: &[f64] = &[
    0.9029106207461272,
    -0.3256666128341523,
    0.07927278544661395,
    -0.021005555370324214,
    0.007574621248738962,
    -0.0041666582118396345,
    0.003968253936447099,
    -0.008333333333287035,
    0.08333333333333333,
];
/// The logarithm of pi.
const LN_PI: [f64; 2] = [1.1447298858494002, 1.0265951162707826e-17];
/// The positive zero of `psi`.
const PSI_ZERO: [f64; 2] = [1.4616321449683622, 9.549995429965697e-17];
/// Half of the logarithm of `2 pi`, less a half.
const STIRLING_CONSTANT: f64 = 0.4189385332046727;

/// From here on Stirling's series serves.
const LARGE: f64 = 7.5;
/// The same for the derivative.
const LARGE_PSI: f64 = 5.0;
/// Below, `ln gamma(-a)` and `ln gamma(a)` are the same, and logarithms of subnormal numbers need scaling.
const SMALL: f64 = 1e-30;
/// 2 to the power of 120.
const SMALL_SCALE: f64 = 1329227995784915872903807060280344576.0;

/// The sum of two pairs. Where they cancel, the result need not be normalized.
#[inline(always)]
fn sum<X: Real>(a: Pair<X>, b: Pair<X>) -> Pair<X> {
    let high = Pair::sum(a.high, b.high);
    high.plus_small(a.low + b.low)
}

#[inline(always)]
fn negated<X: Real>(a: Pair<X>) -> Pair<X> {
    Pair { high: -a.high, low: -a.low }
}

/// `1 / x`
#[inline(always)]
fn inverse<X: Real>(x: X) -> Pair<X> {
    let high = x.constant(1.0) / x;
    Pair { high, low: (-high).fma(x, 1.0) * high }
}

/// `variable (last + t others)`, where `last` and `rest` are the coefficient of the lowest power.
#[inline(always)]
fn multiple<X: Real>(variable: Pair<X>, t: X, coefficients: &[f64], rest: f64) -> Pair<X> {
    let (others, last) = coefficients.split_at(coefficients.len() - 1);
    let slope = t.fma(t.polynomial(others), rest);
    let product = Pair::product(variable.high, last[0]);
    product.plus_small(variable.high.fma(slope, variable.low * last[0])).normalized()
}

/// `ln gamma(a)` for positive, finite `a`.
#[inline(always)]
fn lgamma_of_positive<X: Double>(a: X) -> Pair<X> {
    // `n + t` with `t` up to a half, or 3/4 where the result is smallest. Then gamma(a) is gamma(2 + t) times a product of n - 2 numbers
    // below `a`, or, if n is 0 or 1, over one of numbers from `a` on.
    let n = a.nearest();
    let n = a.greater_equal(1.25).select(n.at_least(2.0), n);
    let t = a - n;
    let small = a.less(SMALL);
    let scaled = small.select(a * SMALL_SCALE, a);
    let mut factor = n.equals(0.0).select(a.fma(scaled, scaled), a.constant(1.0));
    factor = n.equals(1.0).select(a, factor);
    for step in 1..=5 {
        let next = factor * (a - f64::from(step));
        factor = n.greater_equal(f64::from(step + 2)).select(next, factor);
    }
    let far = a.greater_equal(LARGE);
    let argument = far.select(a, factor);
    let zero = a.zero();
    let log = log_of_pair(Pair { high: argument, low: zero }, small.select(-120.0, zero));

    let below = n.less(1.5);
    let signed = |x: X| below.select(-x, x);
    let more = Pair::sum(a.constant(1.0), t);
    let variable = Pair::product(t, more.high).plus_small(t * more.low);
    let near = multiple(variable, t, LGAMMA_NEAR, LGAMMA_NEAR_REST[0]);
    let near = sum(Pair { high: signed(log.high), low: signed(log.low) }, near);

    // (a - 1/2) (ln a - 1) + (ln(2 pi) - 1) / 2 + P(1 / a^2) / a
    let inverse = far.select(a, a.constant(LARGE));
    let inverse = a.constant(1.0) / inverse;
    let tail = inverse * (inverse * inverse).polynomial(STIRLING_TAIL);
    let factor = Pair::sum(log.high, a.constant(-1.0)).plus_small(log.low);
    let half_less = a - 0.5;
    let product = Pair::product(half_less, factor.high);
    let low = half_less.fma(factor.low, product.low + (tail + STIRLING_CONSTANT));
    // Infinite results have no low part.
    let low = product.high.less(f64::INFINITY).select(low, zero);
    Pair { high: far.select(product.high, near.high), low: far.select(low, near.low) }
}

pub(super) fn lgamma_f64<X: Double>(x: X) -> X {
    let a = x.abs().at_most(f64::MAX);
    let positive = lgamma_of_positive(a);
    // The distance from the next integer, on which the sine depends.
    let rest = a - a.nearest();
    let (sin, _) = sin_cos_of_half_turns(rest.abs());
    let product = Pair::product(a, sin.high);
    let product = product.plus_small(a * sin.low);
    let pole = rest.equals(0.0) & x.less_equal(0.0);
    let reflects = x.less(-SMALL);
    // Where it does not count, a number that has a logarithm.
    let (zero, one) = (x.zero(), x.constant(1.0));
    let high = pole.select(one, reflects.select(product.high, one));
    let low = pole.select(zero, reflects.select(product.low, zero));
    let log = log_of_pair(Pair { high, low }, zero);
    let ln_pi = Pair { high: x.constant(LN_PI[0]), low: x.constant(LN_PI[1]) };
    let negative = sum(sum(ln_pi, negated(log)), negated(positive)).rounded();
    pole.select(f64::INFINITY, reflects.select(negative, positive.rounded()))
}

/// `psi(a)` for positive, finite `a`, and where `reflects` is set `psi(1 + a)`.
#[inline(always)]
fn digamma_of_positive<X: Double>(a: X, reflects: X::Mask) -> Pair<X> {
    let zero = a.zero();
    let one = a.constant(1.0);
    // `y` from one to two: only `a + 1` is rounded.
    let below = a.less(1.0);
    let m = (a.floor() - 1.0).at_least(0.0).at_most(3.0);
    let up = Pair::sum(one, a);
    let y = below.select(up.high, a - m);
    let y_low = below.select(up.low, zero);
    let distance = Pair::sum_of_ordered(y - PSI_ZERO[0], y_low - PSI_ZERO[1]);
    let base = multiple(distance, y - 1.5, DIGAMMA_NEAR, DIGAMMA_NEAR_REST[0]);
    // And 1 / (a - j) for j from 1 to m, less 1 / a below one; the reflection adds 1 / a.
    let own = below.select(reflects.select(0.0, -one), reflects.select(1.0, zero));
    let of_a = inverse(a);
    let mut near = sum(Pair { high: of_a.high * own, low: of_a.low * own }, base);
    for step in 1..=3 {
        let takes = m.greater_equal(f64::from(step));
        let term = inverse(takes.select(a - f64::from(step), one));
        near = sum(Pair { high: takes.select(term.high, zero), low: takes.select(term.low, zero) }, near);
    }

    let far = a.greater_equal(LARGE_PSI);
    let large = far.select(a, a.constant(LARGE_PSI));
    let log = log_of_pair(Pair { high: large, low: zero }, zero);
    let of_large = one / large;
    let square = of_large * of_large;
    let half = reflects.select(0.5, a.constant(-0.5));
    let tail = of_large.fma(half, -(square * square.polynomial(DIGAMMA_TAIL)));
    Pair { high: far.select(log.high, near.high), low: far.select(log.low + tail, near.low) }
}

pub(super) fn digamma_f64<X: Double>(x: X) -> X {
    let reflects = x.less(0.0);
    let tiny = x.abs().less(SMALL);
    let a = tiny.select(1.0, x.abs().at_most(f64::MAX));
    let of_size = digamma_of_positive(a, reflects);
    let rest = a - a.nearest();
    // Where it does not count, an angle whose cotangent is finite.
    let whole = rest.equals(0.0);
    let (sin, cos) = sin_cos_of_half_turns(whole.select(0.5, rest));
    let cotangent = cos.divided_by(sin).normalized();
    let pi = Pair { high: x.constant(PI[0]), low: x.constant(PI[1]) };
    let negative = sum(pi.times(cotangent), of_size).rounded();
    let y = reflects.select(negative, of_size.rounded());
    // Close to the pole psi is -1 / x.
    let y = tiny.select(x.constant(-1.0) / x, y);
    let y = x.equals(f64::INFINITY).select(f64::INFINITY, y);
    let is_pole = x.equals(0.0) | (reflects & (x.abs() - x.abs().nearest()).equals(0.0)) | x.equals(f64::NEG_INFINITY);
    is_pole.select(f64::NAN, y)
}

/// The logarithm of the magnitude of the gamma function.
pub(crate) struct Lgamma;

impl MathFunction for Lgamma {
    const DESCRIPTION: Description = Description {
        name: "lgamma",
        example: "(x: f32[6]) { lgamma(x + 1) }",
        is_instruction: false,
        ends: [f64::INFINITY, f64::INFINITY, f64::INFINITY, f64::INFINITY],
        symmetry: None,
        interval: (-12.0, 24.0),
        edges: &[
            0.5,
            1.0,
            1.5,
            2.0,
            2.5,
            LARGE,
            -1.0,
            -2.4570247382208006,
            -2.7476826467274127,
            -3.0,
            SMALL,
            4503599627370496.0,
        ],
        reference: "F(lgamma)(x)",
    };
    const TERMS: Option<&'static str> = Some("x < -2 ? F(lgamma)(-x) : 0");

    fn single<X: Single>(x: X) -> X {
        lgamma_f64(x.widen()).narrow()
    }

    fn double<X: Double>(x: X) -> X {
        lgamma_f64(x)
    }
}

/// The derivative of the logarithm of the gamma function.
pub(crate) struct Digamma;

impl MathFunction for Digamma {
    const DESCRIPTION: Description = Description {
        name: "digamma",
        example: "(x: f32[6]) { digamma(x + 1) }",
        is_instruction: false,
        ends: [f64::NAN, f64::NAN, f64::INFINITY, f64::NAN],
        symmetry: None,
        interval: (-12.0, 24.0),
        edges: &[
            1.0,
            PSI_ZERO[0],
            2.0,
            3.0,
            LARGE_PSI,
            -0.5040830082644554,
            -1.0,
            -1.5734984731623904,
            SMALL,
            4503599627370496.0,
        ],
        reference: "NAME(digamma)(x)",
    };
    const TERMS: Option<&'static str> = Some("x < 0 ? F(fabs)(NAME(digamma)(1 - x)) : 0");

    fn single<X: Single>(x: X) -> X {
        digamma_f64(x.widen()).narrow()
    }

    fn double<X: Double>(x: X) -> X {
        digamma_f64(x)
    }
}
