//! Square and cube roots, and the length of the hypotenuse.

use super::exp::power_of_two;
use super::pair::Pair;
use super::value::{Bits, Double, Mask, Real, Single};
use super::{Description, MathFunction, Symmetry};

/// `1 / sqrt(x)`, in either width.
///
/// Both the root and the quotient are rounded, which could cost 1.5 ULP; the fused residues of both are put back.
/// `s = sqrt(x) + e`, `e ~ (s*s - x) / (2 s)`, so `1/sqrt(x) ~ y + y * (1 - s*y + (s*s - x) * y*y / 2)` with `y ~ 1/s`.
pub(super) fn rsqrt<X: Real>(x: X) -> X {
    // Small numbers are scaled up by an even power of two, so that the residue of the root does not underflow.
    let up = 4.0_f64.powi(X::FRACTION as i32 + 6);
    let small = x.less(X::TINY * up);
    let scaled = small.select(x * up, x);
    let root = scaled.sqrt();
    let first = x.constant(1.0) / root;
    let root_residue = root.fma(root, -scaled);
    let residue = (-root).fma(first, 1.0) + root_residue * (first * first) * 0.5;
    let better = first.fma(residue, first);
    // Zero, infinity and NaN have no residue: the first quotient is already right.
    let good = residue.abs().less(1.0).select(better, first);
    small.select(good * up.sqrt(), good)
}

/// `m^(-1/3)` for `m` from one to two: error 2^-14.7.
const CUBE_START: &[f64] =
    &[0.028590701282233837, -0.221235865955288, 0.6954781507048774, -1.1728758236550167, 1.6700051724605711];

/// The parts of a positive, finite, normal number `x = m 2^(3q)` with `m` from one to eight. They are `m`, `q` as the low bits of an
/// integer and as a number, and the inverse of the cube root of `m` to 2^-52.
#[inline(always)]
fn cube_parts<X: Double>(x: X) -> (X, X, X) {
    let bits = x.bits();
    let mantissa = ((bits & ((1 << X::FRACTION) - 1)) | X::ONE).real();
    let two_to_fraction = (X::BIAS + i64::from(X::FRACTION)) << X::FRACTION;
    let biased = (bits.shift_right(X::FRACTION) | two_to_fraction).real() - (1_i64 << X::FRACTION) as f64;
    // The bias is a multiple of three. The half keeps the rounding of the third from mattering.
    let thirds = ((biased + 0.5) * (1.0 / 3.0)).floor();
    let rest = thirds.fma(-3.0, biased);
    // 2^rest, and its inverse cube root.
    let factor = rest.fma(rest.fma(0.5, 0.5), 1.0);
    let root =
        rest.equals(0.0).select(1.0, rest.equals(1.0).select(0.7937005259840998, x.constant(0.6299605249474366)));
    let start = mantissa.polynomial(CUBE_START) * root;
    let m = mantissa * factor;
    let miss = (start * start).fma(-start * m, 1.0);
    let series = miss.fma(miss.fma(14.0 / 81.0, 2.0 / 9.0), 1.0 / 3.0);
    let inverse = (start * miss).fma(series, start);
    (m, thirds - 341.0, inverse)
}

pub(super) fn cbrt_f32<X: Single>(x: X) -> X {
    let (m, q, inverse) = cube_parts(x.widen().abs());
    let y = m * inverse * inverse * power_of_two::<X::Wide>((q + X::Wide::MAGIC).bits());
    root_specials(x, y.narrow())
}

pub(super) fn cbrt_f64<X: Double>(x: X) -> X {
    let size = x.abs();
    let subnormal = size.less(X::TINY);
    let (m, q, inverse) = cube_parts(subnormal.select(size * 2.0_f64.powi(54), size));
    let q = q - subnormal.select(18.0, x.zero());
    let root = m * inverse * inverse;
    // One step of Newton's method with the residue m - root^3 to full precision.
    let square = Pair::product(root, root);
    let residue = (-root).fma(square.low, (-root).fma(square.high, m));
    let y = (residue * (inverse * inverse)).fma(1.0 / 3.0, root);
    root_specials(x, y * power_of_two::<X>((q + X::MAGIC).bits()))
}

/// The sign of `x` for `y`; zero, infinity and NaN are their own roots.
#[inline(always)]
fn root_specials<X: Real>(x: X, y: X) -> X {
    let y = y.flip_sign_by(x);
    let finite = x.abs().less(f64::INFINITY).select(y, x);
    x.equals(0.0).select(x, finite)
}

pub(super) fn hypot_f32<X: Single>(x: X, y: X) -> X {
    let (x, y) = (x.widen(), y.widen());
    hypot_specials(x, y, x.fma(x, y * y).sqrt()).narrow()
}

pub(super) fn hypot_f64<X: Double>(x: X, y: X) -> X {
    // Squares must neither overflow nor lose digits that matter.
    let size = x.abs().at_least(y.abs());
    let one = x.constant(1.0);
    let (large, small) = (size.greater(2.0_f64.powi(500)), size.less(2.0_f64.powi(-400)));
    let down = large.select(2.0_f64.powi(-600), small.select(2.0_f64.powi(600), one));
    let up = large.select(2.0_f64.powi(600), small.select(2.0_f64.powi(-600), one));
    let (a, b) = (x * down, y * down);
    let (a_square, b_square) = (Pair::product(a, a), Pair::product(b, b));
    let sum = Pair::sum(a_square.high, b_square.high).plus_small(a_square.low + b_square.low);
    hypot_specials(x, y, sum.normalized().sqrt().rounded() * up)
}

/// An infinite side makes the result infinite, even if the other is not a number.
#[inline(always)]
fn hypot_specials<X: Real>(x: X, y: X, z: X) -> X {
    let infinite = x.abs().equals(f64::INFINITY) | y.abs().equals(f64::INFINITY);
    infinite.select(f64::INFINITY, z)
}

/// The square root.
pub(crate) struct Sqrt;

impl MathFunction for Sqrt {
    const DESCRIPTION: Description = Description {
        name: "sqrt",
        example: "(x: f32[6]) { sqrt(x) }",
        is_instruction: true,
        ends: [0.0, -0.0, f64::INFINITY, f64::NAN],
        symmetry: None,
        interval: (0.0, 100.0),
        edges: &[1.0, 8.0, 4.0, f64::MIN_POSITIVE],
        reference: "F(sqrt)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        x.sqrt()
    }

    fn double<X: Double>(x: X) -> X {
        x.sqrt()
    }
}

/// 1 / sqrt(x).
pub(crate) struct Rsqrt;

impl MathFunction for Rsqrt {
    const DESCRIPTION: Description = Description {
        name: "rsqrt",
        example: "(x: f32[6]) { rsqrt(x + 1) }",
        is_instruction: false,
        ends: [f64::INFINITY, -f64::INFINITY, 0.0, f64::NAN],
        symmetry: None,
        interval: (0.0, 100.0),
        edges: &[1.0, 4.0, 2.5e-274, 6.9e-18],
        reference: "1 / F(sqrt)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        rsqrt(x)
    }

    fn double<X: Double>(x: X) -> X {
        rsqrt(x)
    }
}

/// The cube root.
pub(crate) struct Cbrt;

impl MathFunction for Cbrt {
    const DESCRIPTION: Description = Description {
        name: "cbrt",
        example: "(x: f32[6]) { cbrt(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::INFINITY, -f64::INFINITY],
        symmetry: Some(Symmetry::Odd),
        interval: (-10.0, 10.0),
        edges: &[1.0, 8.0, 4.0, f64::MIN_POSITIVE],
        reference: "F(cbrt)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        cbrt_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        cbrt_f64(x)
    }
}
