//! Inverse trigonometric functions.
//!
//! `asin s = s + s^3 P(s^2)` up to a half. Beyond, `asin x = pi/2 - 2 asin(sqrt((1 - x) / 2))`, and `acos` has like rules.
//! The arc tangent of a quotient `y/x` of numbers that are not negative is brought into `[-0.4143, 0.4143]`, the tangents
//! of an eighth of a right angle either way, by one division:
//!
//! ```text
//! y/x < tan(pi/8)     atan(y/x)
//! y/x < tan(3pi/8)    atan((y - x) / (y + x)) + pi/4
//! otherwise           atan(-x/y) + pi/2
//! ```
//!
//! `atan` is the case `x = 1`.

use std::f64::consts::{FRAC_PI_2, SQRT_2};

use super::pair::Pair;
use super::trig::HALF_PI;
use super::value::{Double, Mask, Real, Single};
use super::{Description, MathFunction, Symmetry};

/// `(asin(s) - s) / s^3` as a polynomial in `s^2`: error 2^-58.2.
const ASIN_TAIL: &[f64] = &[
    0.03265374404264235,
    -0.021038224812394708,
    0.021734396529035343,
    0.0036956360552508967,
    0.010783022634516673,
    0.011398433076146712,
    0.013980877215502313,
    0.017351607450512663,
    0.02237221523210254,
    0.03038194269946735,
    0.04464285717477717,
    0.07499999999970636,
    0.1666666666666676,
];
/// The same for results in single precision: error 2^-31.8.
const ASIN_TAIL_SHORT: &[f64] = &[
    0.03752946844766738,
    0.014429753003401833,
    0.03180994333964714,
    0.044516703090362694,
    0.07500505422310941,
    0.16666659971628822,
];
/// `(atan(q) - q) / q^3` as a polynomial in `q^2`: error 2^-57.5.
const ATAN_TAIL: &[f64] = &[
    -0.01789003140745789,
    0.03804869010306422,
    -0.050386717256844425,
    0.05847746689898127,
    -0.06663084105859478,
    0.07692058424945004,
    -0.09090897654783858,
    0.11111110779788289,
    -0.14285714280121084,
    0.19999999999952817,
    -0.3333333333333319,
];
/// The same for results in single precision: error 2^-30.5.
const ATAN_TAIL_SHORT: &[f64] =
    &[-0.06075933452347789, 0.10592953686285837, -0.14243423325468563, 0.1999846606019383, -0.33333315106407496];

/// Slightly rounded, which does not matter: the polynomials reach a little further.
const TAN_PI_8: f64 = 0.414213562373095;
const TAN_3PI_8: f64 = 2.414213562373095;
/// `3 pi/4` and its rounding error.
const THREE_QUARTERS_PI: [f64; 2] = [2.356194490192345, 9.184850993605148e-17];

/// The common part of arc sine and arc cosine: `asin(root.high + root.low) = root.high + rest`.
struct Arc<X: Real> {
    /// Whether the argument is at most a half in magnitude; then the root is its magnitude.
    small: X::Mask,
    root: X,
    rest: X,
}

#[inline(always)]
fn arc<X: Double>(x: X) -> Arc<X> {
    let size = x.abs();
    let small = size.less_equal(0.5);
    let half = size.fma(-0.5, 0.5);
    let root = Pair { high: half, low: x.zero() }.sqrt();
    let square = small.select(size * size, half);
    let low = small.select(0.0, root.low);
    let root = small.select(size, root.high);
    Arc { small, root, rest: (root * square).fma(square.polynomial(ASIN_TAIL), low) }
}

pub(super) fn asin_f64<X: Double>(x: X) -> X {
    let Arc { small, root, rest } = arc(x);
    let far = Pair::sum_of_ordered(x.constant(HALF_PI[0]), root * -2.0);
    let far = far.plus_small(rest.fma(-2.0, HALF_PI[1])).rounded();
    small.select(root + rest, far).flip_sign_by(x)
}

pub(super) fn acos_f64<X: Double>(x: X) -> X {
    let Arc { small, root, rest } = arc(x);
    let negative = x.less(0.0);
    // The result is `base + factor (root + rest)`: pi/2 - asin x, or 2 asin(root), or pi - 2 asin(root).
    let factor = small.select(1.0, x.constant(2.0));
    let factor = negative.select(factor, -factor);
    let factor = small.select(factor, -factor);
    let whole = |part: f64, x: X| small.select(part, negative.select(2.0 * part, x.zero()));
    let sum = Pair::sum_of_ordered(whole(HALF_PI[0], x), root * factor);
    sum.plus_small(rest.fma(factor, whole(HALF_PI[1], x))).rounded()
}

#[inline(always)]
fn arc_short<X: Double>(x: X) -> (X::Mask, X) {
    let size = x.abs();
    let small = size.less_equal(0.5);
    let half = size.fma(-0.5, 0.5);
    let square = small.select(size * size, half);
    let root = small.select(size, half.sqrt());
    (small, (root * square).fma(square.polynomial(ASIN_TAIL_SHORT), root))
}

pub(super) fn asin_f32<X: Single>(x: X) -> X {
    let (small, arc) = arc_short(x.widen());
    small.select(arc, arc.fma(-2.0, HALF_PI[0])).narrow().flip_sign_by(x)
}

pub(super) fn acos_f32<X: Single>(x: X) -> X {
    let wide = x.widen();
    let (small, arc) = arc_short(wide);
    let near = -arc.flip_sign_by(wide) + HALF_PI[0];
    let far = wide.less(0.0).select(arc.fma(-2.0, 2.0 * HALF_PI[0]), arc + arc);
    small.select(near, far).narrow()
}

/// Which of the three cases a quotient falls in.
#[derive(Clone, Copy)]
struct QuotientCase<X: Real> {
    low: X::Mask,
    middle: X::Mask,
}

impl<X: Real> QuotientCase<X> {
    #[inline(always)]
    fn of(y: X, x: X) -> QuotientCase<X> {
        QuotientCase { low: y.less(x * TAN_PI_8), middle: y.less(x * TAN_3PI_8) }
    }

    #[inline(always)]
    fn choose(self, low: X, middle: X, high: X) -> X {
        self.low.select(low, self.middle.select(middle, high))
    }

    #[inline(always)]
    fn choose_constant(self, like: X, [low, middle, high]: [f64; 3]) -> X {
        self.choose(like.constant(low), like.constant(middle), like.constant(high))
    }
}

/// The angle of the point `(x, y)`, neither of which is negative; if `supplement` holds, pi minus this angle.
#[inline(always)]
fn angle<X: Double>(y: X, x: X, supplement: Option<X::Mask>) -> X {
    let case = QuotientCase::of(y, x);
    let (sum, difference) = (Pair::sum(y, x), Pair::sum(y, -x));
    let zero = x.zero();
    let numerator = Pair { high: case.choose(y, difference.high, -x), low: case.choose(zero, difference.low, zero) };
    let denominator = Pair { high: case.choose(x, sum.high, y), low: case.choose(zero, sum.low, zero) };
    let quotient = numerator.high / denominator.high;
    // What the quotient lacks, to a few digits.
    let residue = (-quotient).fma(denominator.high, numerator.high) + (-quotient).fma(denominator.low, numerator.low);
    let lacking = residue / denominator.high;
    let square = quotient * quotient;
    let rest = (quotient * square).fma(square.polynomial(ATAN_TAIL), lacking);
    let start = |part: usize| case.choose_constant(x, [0.0, HALF_PI[part] / 2.0, HALF_PI[part]]);
    let sum = Pair::sum_of_ordered(start(0), quotient).plus_small(start(1) + rest);
    let Some(supplement) = supplement else { return sum.rounded() };
    let start = |part: usize| case.choose_constant(x, [HALF_PI[part] * 2.0, THREE_QUARTERS_PI[part], HALF_PI[part]]);
    let other = Pair::sum_of_ordered(start(0), -quotient).plus_small(start(1) - rest);
    supplement.select(other.rounded(), sum.rounded())
}

/// The same for results in single precision.
#[inline(always)]
fn angle_short<X: Double>(y: X, x: X, supplement: Option<X::Mask>) -> X {
    let case = QuotientCase::of(y, x);
    let quotient = case.choose(y, y - x, -x) / case.choose(x, y + x, y);
    let square = quotient * quotient;
    let arc = (quotient * square).fma(square.polynomial(ATAN_TAIL_SHORT), quotient);
    let angle = case.choose_constant(x, [0.0, HALF_PI[0] / 2.0, HALF_PI[0]]) + arc;
    supplement.map_or(angle, |supplement| supplement.select(-angle + HALF_PI[0] * 2.0, angle))
}

pub(super) fn atan_f64<X: Double>(x: X) -> X {
    angle(x.abs().at_most(f64::MAX), x.constant(1.0), None).flip_sign_by(x)
}

pub(super) fn atan_f32<X: Single>(x: X) -> X {
    let wide = x.widen();
    angle_short(wide.abs(), wide.constant(1.0), None).narrow().flip_sign_by(x)
}

/// The magnitudes of `y` and `x`, or if their quotient does not exist, of a point at the same angle; and whether `x` is negative.
#[inline(always)]
fn quadrant<X: Double>(y: X, x: X) -> (X, X, Option<X::Mask>) {
    let (height, width) = (y.abs(), x.abs());
    // 0/0 counts as 0/1, infinities as ones and then finite numbers as zeros.
    let nothing = height.equals(0.0) & width.equals(0.0);
    let (high, wide) = (height.equals(f64::INFINITY), width.equals(f64::INFINITY));
    let infinite = high | wide;
    let height = infinite.select(high.select(1.0, height * 0.0), height);
    let width = infinite.select(wide.select(1.0, width * 0.0), width);
    let width = nothing.select(1.0, width);
    // The sign of zero decides, too.
    let left = x.constant(1.0).with_sign_of(x).less(0.0);
    (height, width, Some(left))
}

pub(super) fn atan2_f64<X: Double>(y: X, x: X) -> X {
    // Sums of large numbers must not overflow, and subnormal numbers must be comparable to their multiples.
    let size = y.abs().at_least(x.abs());
    let factor = size.less(1e-200).select(2.0_f64.powi(200), x.constant(1.0));
    let factor = size.greater(1e300).select(0.25, factor);
    let (height, width, left) = quadrant(y * factor, x * factor);
    angle(height, width, left).flip_sign_by(y)
}

pub(super) fn atan2_f32<X: Single>(y: X, x: X) -> X {
    let (height, width, left) = quadrant(y.widen(), x.widen());
    angle_short(height, width, left).narrow().flip_sign_by(y)
}

/// The angle whose sine is x.
pub(crate) struct Asin;

impl MathFunction for Asin {
    const DESCRIPTION: Description = Description {
        name: "asin",
        example: "(x: f32[6]) { asin(x / 6) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::NAN, f64::NAN],
        symmetry: Some(Symmetry::Odd),
        interval: (-1.0, 1.0),
        edges: &[0.5, -0.5, 1.0, -1.0],
        reference: "F(asin)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        asin_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        asin_f64(x)
    }
}

/// The angle whose cosine is x.
pub(crate) struct Acos;

impl MathFunction for Acos {
    const DESCRIPTION: Description = Description {
        name: "acos",
        example: "(x: f32[6]) { acos(x / 6) }",
        is_instruction: false,
        ends: [FRAC_PI_2, FRAC_PI_2, f64::NAN, f64::NAN],
        symmetry: None,
        interval: (-1.0, 1.0),
        edges: &[0.5, -0.5, 1.0, -1.0],
        reference: "F(acos)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        acos_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        acos_f64(x)
    }
}

/// The angle whose tangent is x.
pub(crate) struct Atan;

impl MathFunction for Atan {
    const DESCRIPTION: Description = Description {
        name: "atan",
        example: "(x: f32[6]) { atan(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, FRAC_PI_2, -FRAC_PI_2],
        symmetry: Some(Symmetry::Odd),
        interval: (-10.0, 10.0),
        edges: &[SQRT_2 - 1.0, SQRT_2 + 1.0, 1.0, 1e16],
        reference: "F(atan)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        atan_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        atan_f64(x)
    }
}
