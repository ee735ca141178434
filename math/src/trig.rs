//! Sine, cosine and tangent.
//!
//! The argument is split as `x = k pi/2 + r` with `|r|` at most `pi/4`; `k mod 4` says which of `sin r` and `cos r` is
//! wanted and with which sign. The multiple of `pi/2` is subtracted in three parts by fused multiply-adds. The first
//! difference is exact; the rounding error of the second is kept in a low part of `r`.
//!
//! ```text
//! sin(5) = sin(3 pi/2 + 0.2876) = -cos(0.2876)
//! ```
//!
//! Arguments are [`Rare`] if the multiple of `pi/2` has too many digits for this. They are multiplied by the digits of `2/pi` that do
//! not merely add multiples of four (Payne and Hanek's method).

use std::f64::consts::FRAC_PI_2;

use super::Rare;
use super::exp::nearest_multiple;
use super::pair::Pair;
use super::value::{Bits, Double, Mask, Real, Single};
use super::{Description, MathFunction, Symmetry};

const FRAC_2_PI: f64 = std::f64::consts::FRAC_2_PI;
/// `pi/2` in parts of 24 and of 53 digits.
const HALF_PI_F32: [f64; 3] = [1.5707963705062866, -4.371138828673793e-8, -1.7151245100058819e-15];
#[allow(clippy::approx_constant, reason = "the parts belong together")]
pub(super) const HALF_PI: [f64; 3] = [1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33];
/// `pi` in parts.
pub(super) const PI: [f64; 2] = [2.0 * HALF_PI[0], 2.0 * HALF_PI[1]];
/// From here on reductions are rare.
const LARGE_F32: f64 = 131072.0;
const LARGE: f64 = 1073741824.0;

/// `(sin(r) - r) / r^3` as a polynomial in `r^2`: error 2^-27.7.
const SIN_TAIL_F32: &[f64] = &[-0.00019508731, 0.008332113, -0.16666654];
/// `(cos(r) - 1 + r^2 / 2) / r^4` as a polynomial in `r^2`: error 2^-30.2.
const COS_TAIL_F32: &[f64] = &[2.442568e-5, -0.0013887251, 0.041666646];
/// The same for double precision: error 2^-56.6.
const SIN_TAIL: &[f64] = &[
    1.5892961280836763e-10,
    -2.5050692470234577e-8,
    2.755731327600755e-6,
    -0.00019841269828618823,
    0.00833333333332094,
    -0.16666666666666627,
];
/// The same for cosine: error 2^-59.3.
const COS_TAIL: &[f64] = &[
    -1.1356266452358827e-11,
    2.0875657572745046e-9,
    -2.7557313865584986e-7,
    2.480158728778326e-5,
    -0.0013888888888871377,
    0.04166666666666658,
];
/// The same for results in single precision: error 2^-37.4.
const SIN_TAIL_SHORT: &[f64] =
    &[2.7173663213078183e-6, -0.0001983923261377972, 0.008333329055916773, -0.16666666638638894];
/// The same for cosine: error 2^-42.8.
const COS_TAIL_SHORT: &[f64] =
    &[-2.719862826052037e-7, 2.4799372732761726e-5, -0.0013888883163472828, 0.041666666615509475];

/// The binary digits of `2/pi`, 53 at a time, times 2^128 so that none of the numbers is subnormal.
const FRAC_2_PI_DIGITS: [f64; 22] = [
    2.166304829699096e38,
    2.4386318509151237e22,
    3464640.856973028,
    2.8764035955568025e-10,
    1.1862827848483869e-26,
    1.6336035472120595e-42,
    3.9117078138307323e-60,
    4.004585006247815e-74,
    1.2779997548346236e-90,
    5.649169506234269e-106,
    7.283980789400713e-122,
    8.435906059866033e-138,
    3.4393354075691067e-154,
    4.164116026840121e-170,
    7.434845245611233e-186,
    5.793014893526207e-202,
    8.980777205703654e-218,
    1.830293918034326e-233,
    1.5872687587900484e-249,
    2.4106862911819918e-265,
    1.7770974051653473e-281,
    1.1736305351608019e-297,
];

/// An argument `quadrant * pi/2 + high + low`; only the two lowest bits of the quadrant are meant.
#[derive(Clone, Copy)]
struct Angle<X: Real> {
    quadrant: X::Bits,
    high: X,
    low: X,
}

impl<X: Real> Angle<X> {
    /// Reduces a number that is not negative and not large.
    #[inline(always)]
    fn reduce(x: X, [first, second, third]: [f64; 3]) -> Angle<X> {
        let (k, quadrant) = nearest_multiple(x, FRAC_2_PI);
        let exact = k.fma(-first, x);
        let part = Pair::product(k, second);
        let rest = Pair::sum(exact, -part.high);
        Angle { quadrant, high: rest.high, low: rest.low - k.fma(third, part.low) }
    }

    /// The angle a quarter of a turn further, whose sine is the cosine of this one.
    #[inline(always)]
    fn next(self) -> Angle<X> {
        Angle { quadrant: self.quadrant + 1, ..self }
    }

    /// Whether the quadrant is odd.
    #[inline(always)]
    fn odd(self) -> X::Mask {
        // The lowest bit becomes the sign of -1 or 1.
        (self.quadrant.shift_left(X::WIDTH - 1) | X::ONE).real().less(0.0)
    }

    #[inline(always)]
    fn sin_cos(self, sin_tail: &[f64], cos_tail: &[f64]) -> (Pair<X>, Pair<X>) {
        sin_cos(Pair { high: self.high, low: self.low }, sin_tail, cos_tail)
    }

    #[inline(always)]
    fn sin(self, sin_tail: &[f64], cos_tail: &[f64]) -> X {
        let (sin, cos) = self.sin_cos(sin_tail, cos_tail);
        let magnitude = self.odd().select(cos.rounded(), sin.rounded());
        (magnitude.bits() ^ (self.quadrant & 2).shift_left(X::WIDTH - 2)).real()
    }
}

/// The sine and cosine of an angle within `pi/4`, each as a large and a small term.
#[inline(always)]
fn sin_cos<X: Real>(Pair { high, low }: Pair<X>, sin_tail: &[f64], cos_tail: &[f64]) -> (Pair<X>, Pair<X>) {
    let square = high * high;
    let sin = Pair { high, low: (high * square).fma(square.polynomial(sin_tail), low) };
    // The rounding error of 1 - high^2 / 2 is known exactly.
    let half = high * 0.5;
    let cos = (-half).fma(high, 1.0);
    let error = (-half).fma(high, -cos + 1.0);
    let small = (square * square).fma(square.polynomial(cos_tail), (-high).fma(low, error));
    (sin, Pair { high: cos, low: small })
}

/// The sine and cosine of `pi r` for `r` up to a half.
#[inline(always)]
pub(super) fn sin_cos_of_half_turns<X: Double>(r: X) -> (Pair<X>, Pair<X>) {
    // -1, 0 or 1 right angles.
    let quadrant = (r + r).nearest();
    let rest = quadrant.fma(-0.5, r);
    let angle = Pair::product(rest, PI[0]);
    let angle = Pair { high: angle.high, low: rest.fma(PI[1], angle.low) };
    let (sin, cos) = sin_cos(angle, SIN_TAIL, COS_TAIL);
    let (sin, cos) = (sin.normalized(), cos.normalized());
    let even = quadrant.equals(0.0);
    let pick = |a: Pair<X>, b: X, c: X| Pair { high: even.select(a.high, b), low: even.select(a.low, c) };
    (pick(sin, cos.high * quadrant, cos.low * quadrant), pick(cos, -(sin.high * quadrant), -(sin.low * quadrant)))
}

impl<X: Double> Angle<X> {
    /// Reduces a large number, given five groups of digits of `2/pi` from the first that matters on.
    fn reduce_large(x: X, digits: [X; 5]) -> Angle<X> {
        let x = x * 0.5_f64.powi(128);
        let product = digits.map(|group| Pair::product(x, group));
        let modulo_4 = |t: X| (t * 0.25).nearest().fma(-4.0, t);
        let modulo_1 = |t: X| {
            let integer = t.nearest();
            (t - integer, integer)
        };
        // These two are multiples of 2^-51 below four: their sum is exact.
        let (first, mut turns) = modulo_1(modulo_4(product[0].high) + modulo_4(product[0].low));
        let mut sum = Pair { high: first, low: x.zero() };
        // The other terms come in order of size. Each may cancel what is there, so the sum is made canonical every time.
        for term in [modulo_4(product[1].high), modulo_4(product[1].low), modulo_4(product[2].high)] {
            let next = Pair::sum(sum.high, term);
            let (part, more) = modulo_1(next.high);
            turns = turns + more;
            sum = Pair::sum(part, sum.low + next.low);
        }
        for term in [product[2].low, product[3].high] {
            let next = Pair::sum(sum.high, term);
            sum = Pair::sum(next.high, sum.low + next.low);
        }
        let low = sum.low + (product[3].low + product[4].high);
        let fraction = Pair { high: sum.high, low }.normalized();
        let angle = Pair::product(fraction.high, HALF_PI[0]);
        let low = fraction.high.fma(HALF_PI[1], fraction.low.fma(HALF_PI[0], angle.low));
        let angle = Pair { high: angle.high, low }.normalized();
        let quadrant = (turns + X::MAGIC).bits();
        Angle { quadrant, high: angle.high, low: angle.low }
    }

    /// Reduces any number from 2 on and below 2^(53 * (N - 4)), by the first groups of digits of `2/pi`.
    fn reduce_any<const N: usize>(x: X) -> Angle<X> {
        // Zeros in front serve numbers below 2^53, for which all digits matter.
        let digits: [X; N] = std::array::from_fn(|i| {
            let group = if i == 0 { None } else { FRAC_2_PI_DIGITS.get(i - 1) };
            x.constant(group.copied().unwrap_or(0.0))
        });
        // The exponent of x, as a number: an integer in the low bits of 2^52, which is then subtracted.
        let biased = x.bits().shift_right(X::FRACTION) | ((X::BIAS + 52) << X::FRACTION);
        let exponent = biased.real() - (4503599627370496.0 + X::BIAS as f64);
        // Groups before this one only add multiples of four; the half keeps the division's rounding from mattering.
        let start = ((exponent - 0.5) * (1.0 / 53.0)).floor();
        Angle::reduce_large(x, window(start, digits))
    }

    #[inline(always)]
    fn tan(self, sin_tail: &[f64], cos_tail: &[f64]) -> X {
        let (sin, cos) = self.sin_cos(sin_tail, cos_tail);
        let (sin, cos) = (sin.normalized(), cos.normalized());
        let odd = self.odd();
        let pick = |a: X, b: X| odd.select(a, b);
        let top = Pair { high: pick(-cos.high, sin.high), low: pick(-cos.low, sin.low) };
        let bottom = Pair { high: pick(sin.high, cos.high), low: pick(sin.low, cos.low) };
        top.divided_by(bottom).rounded()
    }

    #[inline(always)]
    fn tan_short(self) -> X {
        let (sin, cos) = self.sin_cos(SIN_TAIL_SHORT, COS_TAIL_SHORT);
        let (sin, cos) = (sin.rounded(), cos.rounded());
        let odd = self.odd();
        odd.select(-cos, sin) / odd.select(sin, cos)
    }
}

/// Five of the values, from number `start` on, by a shifter that moves by falling powers of two.
fn window<X: Double, const N: usize>(mut start: X, mut values: [X; N]) -> [X; 5] {
    let mut step = (N - 4).next_power_of_two() / 2;
    while step > 0 {
        let shift = start.greater_equal(step as f64);
        // Later steps move by less than this one in total.
        for i in 0..(step + 4).min(N - step) {
            values[i] = shift.select(values[i + step], values[i]);
        }
        start = start - shift.select(step as f64, start.zero());
        step /= 2;
    }
    std::array::from_fn(|i| values[i])
}

pub(super) fn sin_f32<X: Single>(x: X) -> X {
    let size = x.abs();
    let y = Angle::reduce(size, HALF_PI_F32).sin(SIN_TAIL_F32, COS_TAIL_F32).flip_sign_by(x);
    size.greater(LARGE_F32).rarely(y, Rare::Sin, x)
}

pub(super) fn cos_f32<X: Single>(x: X) -> X {
    let size = x.abs();
    let y = Angle::reduce(size, HALF_PI_F32).next().sin(SIN_TAIL_F32, COS_TAIL_F32);
    size.greater(LARGE_F32).rarely(y, Rare::Cos, x)
}

pub(super) fn tan_f32<X: Single>(x: X) -> X {
    let size = x.abs();
    let y = Angle::reduce(size.widen(), HALF_PI).tan_short().narrow().flip_sign_by(x);
    size.greater(LARGE).rarely(y, Rare::Tan, x)
}

pub(super) fn sin_f64<X: Double>(x: X) -> X {
    let size = x.abs();
    let y = Angle::reduce(size, HALF_PI).sin(SIN_TAIL, COS_TAIL).flip_sign_by(x);
    size.greater(LARGE).rarely(y, Rare::Sin, x)
}

pub(super) fn cos_f64<X: Double>(x: X) -> X {
    let size = x.abs();
    let y = Angle::reduce(size, HALF_PI).next().sin(SIN_TAIL, COS_TAIL);
    size.greater(LARGE).rarely(y, Rare::Cos, x)
}

pub(super) fn tan_f64<X: Double>(x: X) -> X {
    let size = x.abs();
    let y = Angle::reduce(size, HALF_PI).tan(SIN_TAIL, COS_TAIL).flip_sign_by(x);
    size.greater(LARGE).rarely(y, Rare::Tan, x)
}

/// The functions of large arguments.
pub(super) fn rare_f32<X: Single>(rare: Rare, x: X) -> X {
    let angle = Angle::reduce_any::<7>(x.abs().widen());
    match rare {
        Rare::Sin => angle.sin(SIN_TAIL_SHORT, COS_TAIL_SHORT).narrow().flip_sign_by(x),
        Rare::Cos => angle.next().sin(SIN_TAIL_SHORT, COS_TAIL_SHORT).narrow(),
        Rare::Tan => angle.tan_short().narrow().flip_sign_by(x),
    }
}

/// The functions of large arguments.
pub(super) fn rare_f64<X: Double>(rare: Rare, x: X) -> X {
    let angle = Angle::reduce_any::<24>(x.abs());
    match rare {
        Rare::Sin => angle.sin(SIN_TAIL, COS_TAIL).flip_sign_by(x),
        Rare::Cos => angle.next().sin(SIN_TAIL, COS_TAIL),
        Rare::Tan => angle.tan(SIN_TAIL, COS_TAIL).flip_sign_by(x),
    }
}

/// The sine of an angle in radians.
pub(crate) struct Sin;

impl MathFunction for Sin {
    const DESCRIPTION: Description = Description {
        name: "sin",
        example: "(x: f32[6]) { sin(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::NAN, f64::NAN],
        symmetry: Some(Symmetry::Odd),
        interval: (-1e4, 1e4),
        edges: &[FRAC_PI_2, 0.5 * FRAC_PI_2, 1073741824.0, 131072.0, 9007199254740992.0],
        reference: "F(sin)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        sin_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        sin_f64(x)
    }
}

/// The cosine of an angle in radians.
pub(crate) struct Cos;

impl MathFunction for Cos {
    const DESCRIPTION: Description = Description {
        name: "cos",
        example: "(x: f32[6]) { cos(x) }",
        is_instruction: false,
        ends: [1.0, 1.0, f64::NAN, f64::NAN],
        symmetry: Some(Symmetry::Even),
        interval: (-1e4, 1e4),
        edges: &[FRAC_PI_2, 0.5 * FRAC_PI_2, 1073741824.0, 131072.0, 9007199254740992.0],
        reference: "F(cos)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        cos_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        cos_f64(x)
    }
}

/// The tangent of an angle in radians.
pub(crate) struct Tan;

impl MathFunction for Tan {
    const DESCRIPTION: Description = Description {
        name: "tan",
        example: "(x: f32[6]) { tan(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::NAN, f64::NAN],
        symmetry: Some(Symmetry::Odd),
        interval: (-1e4, 1e4),
        edges: &[FRAC_PI_2, 0.5 * FRAC_PI_2, 1073741824.0, 131072.0, 9007199254740992.0],
        reference: "F(tan)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        tan_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        tan_f64(x)
    }
}
