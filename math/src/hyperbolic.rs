//! Hyperbolic functions and their inverses.
//!
//! With `x = k ln 2 + r` the hyperbolic functions follow from those of the small `r` without a division:
//!
//! ```text
//! sinh x = a cosh r + b sinh r        a = (2^k - 2^-k) / 2
//! cosh x = b cosh r + a sinh r        b = (2^k + 2^-k) / 2
//! ```
//!
//! and nothing cancels near zero, where `a` is zero. In double precision `2^k` is left out of `a` and `b`, as it may be
//! out of range, and applied at the end.
//!
//! The inverse functions are logarithms. Near zero their arguments are close to one, so in double precision they come as
//! pairs: `asinh x = ln(x + sqrt(x^2 + 1))` to twice the precision, then [`log_of_pair`].

use std::f64::consts::{LN_2, LOG2_E};

use super::exp::{LN2, expm1_short, nearest_multiple, power_of_two, scale};
use super::log::{log_of_pair, log1p_any_short};
use super::pair::Pair;
use super::value::{Double, Mask, Real, Single};
use super::{Description, MathFunction, Symmetry};

/// `(sinh(r) - r) / r^3` as a polynomial in `r^2`: error 2^-60.8.
const SINH_TAIL: &[f64] =
    &[2.5109101432309138e-8, 2.7557244046518026e-6, 0.00019841269886264668, 0.008333333333321586, 0.16666666666666677];
/// `(cosh(r) - 1) / r^2` as a polynomial in `r^2`: error 2^-56.6.
const COSH_TAIL: &[f64] =
    &[2.763130367565403e-7, 2.48014898973525e-5, 0.001388888894704513, 0.041666666666515306, 0.5000000000000013];
/// The same for results in single precision: error 2^-37.5.
const SINH_TAIL_SHORT: &[f64] = &[0.00019904998989092292, 0.008333288923114216, 0.16666666754545076];
/// The same for `cosh`: error 2^-34.3.
const COSH_TAIL_SHORT: &[f64] = &[0.0013946132863802288, 0.04166626900239337, 0.500000007830523];

/// `x = k ln 2 + r` as the formulas above use it, for `x` that are not negative; everything over `2^k`.
struct HyperbolicParts<X: Real> {
    a: X,
    b: X,
    /// `b sinh r + a (cosh r - 1)`
    rest_of_sinh: X,
    /// `a sinh r + b (cosh r - 1)`
    rest_of_cosh: X,
    k: X::Bits,
}

impl<X: Double> HyperbolicParts<X> {
    fn new(x: X) -> HyperbolicParts<X> {
        let (k, bits) = nearest_multiple(x, LOG2_E);
        let exact = k.fma(-LN2[0], x);
        let r = k.fma(-LN2[1], exact);
        let low = k.fma(-LN2[1], exact - r);
        let square = r * r;
        let sinh_tail = (r * square).fma(square.polynomial(SINH_TAIL), low);
        let cosh_tail = square.fma(square.polynomial(COSH_TAIL), r * low);
        // From k = 30 on, 2^-2k no longer matters.
        let (_, twice_down) = nearest_multiple(k.at_most(30.0), -2.0);
        let tiny = power_of_two::<X>(twice_down) * 0.5;
        let a = Pair::sum_of_ordered(x.constant(0.5), -tiny);
        let b = Pair::sum_of_ordered(x.constant(0.5), tiny);
        let rest_of_sinh = b.high.fma(r, b.high.fma(sinh_tail, a.high.fma(cosh_tail, a.low)));
        let rest_of_cosh = a.high.fma(r, a.high.fma(sinh_tail, b.high.fma(cosh_tail, b.low)));
        HyperbolicParts { a: a.high, b: b.high, rest_of_sinh, rest_of_cosh, k: bits }
    }
}

pub(super) fn sinh_f64<X: Double>(x: X) -> X {
    let parts = HyperbolicParts::new(x.abs().at_most(711.0));
    scale(parts.a + parts.rest_of_sinh, parts.k).flip_sign_by(x)
}

pub(super) fn cosh_f64<X: Double>(x: X) -> X {
    let parts = HyperbolicParts::new(x.abs().at_most(711.0));
    scale(parts.b + parts.rest_of_cosh, parts.k)
}

pub(super) fn tanh_f64<X: Double>(x: X) -> X {
    // Beyond this limit the result is one.
    let parts = HyperbolicParts::new(x.abs().at_most(20.0));
    let sinh = Pair::sum_of_ordered(parts.a, parts.rest_of_sinh);
    let cosh = Pair::sum_of_ordered(parts.b, parts.rest_of_cosh);
    let y = sinh.divided_by(cosh).rounded();
    // The quotient's residue underflows for the smallest numbers.
    x.abs().less(1e-10).select(x, y.flip_sign_by(x))
}

/// `a`, `b`, `sinh r` and `cosh r` of the formulas above, in double precision for results in single precision.
#[inline(always)]
fn short_parts<X: Double>(x: X) -> [X; 4] {
    let (k, bits) = nearest_multiple(x, LOG2_E);
    let r = k.fma(-LN_2, x);
    let square = r * r;
    let sinh = (r * square).fma(square.polynomial(SINH_TAIL_SHORT), r);
    let cosh = square.fma(square.polynomial(COSH_TAIL_SHORT), 1.0);
    let up = power_of_two::<X>(bits) * 0.5;
    let down = power_of_two::<X>(up.zero().bits() - bits) * 0.5;
    [up - down, up + down, sinh, cosh]
}

pub(super) fn sinh_f32<X: Single>(x: X) -> X {
    let [a, b, sinh, cosh] = short_parts(x.widen().at_least(-100.0).at_most(100.0));
    b.fma(sinh, a * cosh).narrow().with_sign_of(x)
}

pub(super) fn cosh_f32<X: Single>(x: X) -> X {
    let [a, b, sinh, cosh] = short_parts(x.widen().at_least(-100.0).at_most(100.0));
    a.fma(sinh, b * cosh).narrow()
}

pub(super) fn tanh_f32<X: Single>(x: X) -> X {
    // Beyond these limits the result is one.
    let wide = x.widen().at_least(-10.0).at_most(10.0);
    let expm1 = expm1_short(wide + wide);
    (expm1 / (expm1 + 2.0)).narrow().with_sign_of(x)
}

pub(super) fn asinh_f64<X: Double>(x: X) -> X {
    let size = x.abs();
    let square = Pair::product(size, size);
    let root = Pair::sum(square.high, x.constant(1.0)).plus_small(square.low).normalized().sqrt();
    let sum = Pair::sum(size, root.high).plus_small(root.low).normalized();
    // Of large numbers, whose square may overflow, the root is the number itself.
    let large = size.greater(1073741824.0);
    let argument = Pair { high: large.select(size, sum.high), low: large.select(0.0, sum.low) };
    let y = log_of_pair(argument, large.select(1.0, x.zero())).rounded().with_sign_of(x);
    let finite = size.less(f64::INFINITY).select(y, x);
    size.less(1e-9).select(x, finite)
}

pub(super) fn acosh_f64<X: Double>(x: X) -> X {
    let square = Pair::product(x, x);
    let root = Pair::sum(square.high, x.constant(-1.0)).plus_small(square.low).normalized().sqrt();
    let sum = Pair::sum(x, root.high).plus_small(root.low).normalized();
    let large = x.greater(1073741824.0);
    let argument = Pair { high: large.select(x, sum.high), low: large.select(0.0, sum.low) };
    let y = log_of_pair(argument, large.select(1.0, x.zero())).rounded();
    let finite = x.less(f64::INFINITY).select(y, x);
    x.less(1.0).select(f64::NAN, finite)
}

pub(super) fn atanh_f64<X: Double>(x: X) -> X {
    let size = x.abs();
    let one = x.constant(1.0);
    let argument = Pair::sum(one, size).divided_by(Pair::sum(one, -size)).normalized();
    let y = log_of_pair(argument, x.zero()).rounded() * 0.5;
    let pole = size.equals(1.0).select(f64::INFINITY, x.constant(f64::NAN));
    let inside = size.less(1.0).select(y, pole).flip_sign_by(x);
    size.less(1e-9).select(x, inside)
}

pub(super) fn asinh_f32<X: Single>(x: X) -> X {
    let size = x.widen().abs();
    let square = size * size;
    let y = log1p_any_short(size + square / ((square + 1.0).sqrt() + 1.0)).narrow().with_sign_of(x);
    x.abs().less(f64::INFINITY).select(y, x)
}

pub(super) fn acosh_f32<X: Single>(x: X) -> X {
    let above = x.widen() - 1.0;
    let y = log1p_any_short(above + (above * (above + 2.0)).sqrt()).narrow();
    let finite = x.less(f64::INFINITY).select(y, x);
    x.less(1.0).select(f64::NAN, finite)
}

pub(super) fn atanh_f32<X: Single>(x: X) -> X {
    let size = x.widen().abs();
    let y = log1p_any_short((size + size) / (-size + 1.0)) * 0.5;
    let size = x.abs();
    let pole = size.equals(1.0).select(f64::INFINITY, x.constant(f64::NAN));
    size.less(1.0).select(y.narrow(), pole).flip_sign_by(x)
}

/// The hyperbolic sine.
pub(crate) struct Sinh;

impl MathFunction for Sinh {
    const DESCRIPTION: Description = Description {
        name: "sinh",
        example: "(x: f32[6]) { sinh(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::INFINITY, -f64::INFINITY],
        symmetry: Some(Symmetry::Odd),
        interval: (-750.0, 712.0),
        edges: &[710.4758600739439, 0.5 * LN_2, 10.0, -10.0, 20.8, 89.41599],
        reference: "F(sinh)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        sinh_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        sinh_f64(x)
    }
}

/// The hyperbolic cosine.
pub(crate) struct Cosh;

impl MathFunction for Cosh {
    const DESCRIPTION: Description = Description {
        name: "cosh",
        example: "(x: f32[6]) { cosh(x) }",
        is_instruction: false,
        ends: [1.0, 1.0, f64::INFINITY, f64::INFINITY],
        symmetry: Some(Symmetry::Even),
        interval: (-750.0, 712.0),
        edges: &[710.4758600739439, 0.5 * LN_2, 10.0, -10.0, 20.8, 89.41599],
        reference: "F(cosh)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        cosh_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        cosh_f64(x)
    }
}

/// The hyperbolic tangent.
pub(crate) struct Tanh;

impl MathFunction for Tanh {
    const DESCRIPTION: Description = Description {
        name: "tanh",
        example: "(x: f32[6]) { tanh(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, 1.0, -1.0],
        symmetry: Some(Symmetry::Odd),
        interval: (-20.0, 20.0),
        edges: &[19.06154746539849, 20.0, 0.5 * LN_2, 1e-10, 9.010913],
        reference: "F(tanh)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        tanh_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        tanh_f64(x)
    }
}

/// The inverse of sinh.
pub(crate) struct Asinh;

impl MathFunction for Asinh {
    const DESCRIPTION: Description = Description {
        name: "asinh",
        example: "(x: f32[6]) { asinh(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::INFINITY, -f64::INFINITY],
        symmetry: Some(Symmetry::Odd),
        interval: (-10.0, 10.0),
        edges: &[1073741824.0, 1e-9, 1.0, 0.75],
        reference: "F(asinh)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        asinh_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        asinh_f64(x)
    }
}

/// The inverse of cosh.
pub(crate) struct Acosh;

impl MathFunction for Acosh {
    const DESCRIPTION: Description = Description {
        name: "acosh",
        example: "(x: f32[6]) { acosh(x + 1) }",
        is_instruction: false,
        ends: [f64::NAN, f64::NAN, f64::INFINITY, f64::NAN],
        symmetry: None,
        interval: (1.0, 10.0),
        edges: &[1.0, 1073741824.0, 1.25],
        reference: "F(acosh)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        acosh_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        acosh_f64(x)
    }
}

/// The inverse of tanh.
pub(crate) struct Atanh;

impl MathFunction for Atanh {
    const DESCRIPTION: Description = Description {
        name: "atanh",
        example: "(x: f32[6]) { atanh(x / 6) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::NAN, f64::NAN],
        symmetry: Some(Symmetry::Odd),
        interval: (-1.0, 1.0),
        edges: &[1.0, -1.0, 1e-9, 0.17157287525381],
        reference: "F(atanh)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        atanh_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        atanh_f64(x)
    }
}
