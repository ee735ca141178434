//! The error function, its complement and its inverse.
//!
//! Near zero `erf x = x + x P(x^2)`. Elsewhere the complement comes first: it falls like `exp(-x^2)`, and what is left when
//! that is divided out is smooth enough for one polynomial, in a variable that maps all positive numbers to `(-1, 1)`:
//!
//! ```text
//! erfc a = exp(-a^2) (1 - q) P(q)        q = (a - 4) / (a + 4)
//! ```
//!
//! Single precision `erf` takes the logarithm of the complement as a polynomial instead: `1 - exp(-(a + a P(a)))`.
//!
//! The inverse is `x P(w)` with `w = -ln(1 - x^2)`; for large `w` the polynomial is in the root of `w` (the variables are
//! those of M. Giles, "Approximating the erfinv function").

use std::f64::consts::{LN_2, LOG2_E};

use super::exp::{EXP_TAIL_F32, LN2_F32, exp_parts, exp_short, nearest_multiple, power_of_two, scale};
use super::log::{log_of_pair, log_short};
use super::pair::Pair;
use super::value::{Double, Mask, Real, Single};
use super::{Description, MathFunction, Symmetry};

/// `erf(x) / x - 1` as a polynomial in `x^2` up to 0.81: error 2^-30.1.
const ERF_TAIL_F32: &[f64] =
    &[8.5126696e-5, -0.00081755384, 0.0052038506, -0.026860505, 0.11283715, -0.37612635, 0.12837917];
/// `-ln(erfc(a)) / a - 1` from 0.9 to four, relative to `erf(a)`: error 2^-26.6.
const ERF_EXPONENT_F32: &[f64] = &[-0.00021459724, 0.003219994, -0.022906091, 0.10528695, 0.6356993, 0.12851997];
/// `erf(x) / x - 1` as a polynomial in `x^2` up to a quarter: error 2^-56.0.
const ERF_TAIL: &[f64] = &[
    1.4722545247628864e-6,
    -1.4845520478844866e-5,
    0.00012053321893115789,
    -0.0008548297476255969,
    0.005223977369796336,
    -0.026866170632684025,
    0.11283791670924719,
    -0.37612638903183465,
    0.12837916709551256,
];
/// `exp(a^2) erfc(a) / (1 - q)` with `q = (a - 4) / (a + 4)`, from a half on: error 2^-54.9.
const ERFCX: &[f64] = &[
    -1.4836191449165115e-9,
    1.657189379351549e-10,
    1.4837031608652702e-8,
    -9.515652173898823e-9,
    -1.0520297114760062e-7,
    1.7807404164352314e-7,
    5.865088908008409e-7,
    -2.3576297587865546e-6,
    -4.543010360508309e-7,
    2.2101606484529536e-5,
    -5.688160537523655e-5,
    -3.5119858702204646e-5,
    0.000764006959550009,
    -0.003296256667509855,
    0.00954768936346604,
    -0.02175136715499223,
    0.041356448484759264,
    -0.06760672891415441,
    0.09665108778315452,
    -0.12206859113511025,
    0.13699945762506138,
];
/// The difference between the last two coefficients and their rounded values.
const ERFCX_REST: [f64; 2] = [-2.389179189057974e-18, 7.49327864017832e-18];
/// The same from zero to 10.1 with `q = (a - 3) / (a + 3)`, for results in single precision: error 2^-28.9.
const ERFCX_SHORT: &[f64] = &[
    -5.432514779427659e-5,
    -8.0728319149144e-5,
    0.0005133442024113942,
    -0.00020430348029594313,
    -0.0044732647618469625,
    0.019921494499860505,
    -0.05174434102575069,
    0.09837138409066677,
    -0.1472324141905378,
    0.1790011512835571,
];
/// `erf_inv(x) / x` up to `w = 6.25`, in `w - 3.125`: error 2^-55.1.
const ERF_INV_NEAR: &[f64] = &[
    -3.0015488792986703e-22,
    3.2193630321918896e-21,
    1.6538895116211023e-20,
    -3.4876451897958327e-19,
    6.95676897169145e-19,
    1.5545191394893088e-17,
    -1.234489464618693e-16,
    -3.9877899013290095e-17,
    6.533344284151313e-15,
    -4.001589837302909e-14,
    -8.079293300515274e-14,
    2.630503456733239e-12,
    -1.2978504108364332e-11,
    -5.4142946260521924e-11,
    1.0512225667656898e-9,
    -4.112660642878143e-9,
    -2.9070389895383576e-8,
    4.234788171204654e-7,
    -1.3654691772642101e-6,
    -1.3882523394197281e-5,
    0.00018673420802052954,
    -0.0007407025341545543,
    -0.006033670871426996,
    0.24015818242558834,
    1.6536545626831027,
];
const ERF_INV_NEAR_REST: [f64; 1] = [-1.8740018352554463e-17];
/// The same up to `w = 16`, in `sqrt(w) - 3.25`: error 2^-54.6.
const ERF_INV_MIDDLE: &[f64] = &[
    -1.6188469197732112e-8,
    6.399565833909539e-10,
    1.339455266776295e-7,
    -2.7120016801913026e-7,
    -3.027012681598287e-8,
    1.498559437088278e-6,
    -3.9840743445927585e-6,
    2.925817004872449e-6,
    1.2464431935806983e-5,
    -4.731901336796168e-5,
    6.828724908983821e-5,
    2.403126273636215e-5,
    -0.0003550378308691896,
    0.00095328936311503,
    -0.0016882755342486142,
    0.002491442097016341,
    -0.003751208508263057,
    0.005370914553570948,
    1.0052589676941657,
    3.0838856104922208,
];
const ERF_INV_MIDDLE_REST: [f64; 1] = [-1.3152389526588856e-16];
/// The same from there on, in `sqrt(w) - 5`: error 2^-53.6.
const ERF_INV_FAR: &[f64] = &[
    3.8972930828624825e-11,
    -2.579239138220369e-11,
    -4.2205270514451436e-10,
    1.502137886851312e-9,
    -3.496398943482254e-9,
    7.625160915554768e-9,
    -1.5233969895743532e-8,
    2.913945233246196e-8,
    -6.756603998050175e-8,
    2.290090829834447e-7,
    -9.930268828191666e-7,
    4.52606143019837e-6,
    -1.9681771015983077e-5,
    7.59952771879288e-5,
    -0.0002150301198120076,
    -0.00013871931834441592,
    1.0103004648645453,
    4.849906401408584,
];
const ERF_INV_FAR_REST: [f64; 1] = [-3.1153148800587627e-16];
/// The same up to `w = 6.25` for results in single precision: error 2^-30.8.
const ERF_INV_NEAR_SHORT: &[f64] = &[
    -1.3092353820566484e-11,
    5.299964737250677e-12,
    1.051691572615522e-9,
    -4.7423091683428365e-9,
    -2.9127410766876246e-8,
    4.268831059762909e-7,
    -1.3649667171153434e-6,
    -1.3891704726016629e-5,
    0.00018673269740485278,
    -0.000740691794987816,
    -0.006033669382225756,
    0.24015817882033572,
    1.653654562458183,
];
/// The same from there on: error 2^-28.9.
const ERF_INV_FAR_SHORT: &[f64] = &[
    7.715443645662446e-5,
    -4.055094909666865e-5,
    -0.0003568464858409365,
    0.000985867604121042,
    -0.0016882718010159667,
    0.002484616331106369,
    -0.0037512093534004605,
    0.005371418811862783,
    1.0052589699231962,
    3.0838856045237413,
];

pub(super) fn erf_f32<X: Single>(x: X) -> X {
    let near = x.fma((x * x).polynomial(ERF_TAIL_F32), x);
    // From four on the result is one.
    let size = x.abs().at_most(4.0);
    let more = size.polynomial(ERF_EXPONENT_F32);
    let exponent = more.fma(size, size);
    let rounded_off = more.fma(size, size - exponent);
    let (k, bits) = nearest_multiple(-exponent, LOG2_E);
    let exact = k.fma(-LN2_F32[0], -exponent);
    let r = k.fma(-LN2_F32[1], exact);
    let small = k.fma(-LN2_F32[1], (r * r).fma(r.polynomial(EXP_TAIL_F32), -rounded_off));
    // 1 - 2^k (1 + t), without the rounding of 1 + t.
    let power = power_of_two::<X>(bits);
    let far = (-power).fma(exact + small, -power + 1.0);
    size.less(0.9).select(near, far.flip_sign_by(x))
}

pub(super) fn erfc_f32<X: Single>(x: X) -> X {
    let wide = x.widen();
    // Beyond this limit the result is zero.
    let a = wide.abs().at_most(10.1);
    let q = (a - 3.0) / (a + 3.0);
    let above = exp_short(-(a * a)) * ((-q + 1.0) * q.polynomial(ERFCX_SHORT));
    wide.less(0.0).select(-above + 2.0, above).narrow()
}

/// `erfc(a)` over `2^k`, for `a` from a half to 27.3.
#[inline(always)]
fn erfc_far<X: Double>(a: X) -> (Pair<X>, X::Bits) {
    let q = Pair::sum(a, a.constant(-4.0)).divided_by(Pair::sum(a, a.constant(4.0))).normalized();
    // The last two steps of Horner's rule in pairs, as the sums are smaller than their terms.
    let (others, last) = ERFCX.split_at(ERFCX.len() - 2);
    let inner = q.high.polynomial(others);
    let product = Pair::product(q.high, inner);
    let slope = Pair::sum(a.constant(last[0]), product.high);
    let slope = slope.plus_small(q.low.fma(inner, product.low) + ERFCX_REST[0]);
    let product = q.times(slope);
    let fraction = Pair::sum(a.constant(last[1]), product.high).plus_small(product.low + ERFCX_REST[1]);
    let complement = Pair::sum_of_ordered(a.constant(1.0), -q.high).plus_small(-q.low);
    let scaled = fraction.times(complement);

    let square = Pair::product(a, a);
    let (exp, k) = exp_parts(Pair { high: -square.high, low: -square.low });
    (scaled.times(exp), k)
}

pub(super) fn erf_f64<X: Double>(x: X) -> X {
    let near = x.fma((x * x).polynomial(ERF_TAIL), x);
    // From six on the result is one.
    let size = x.abs().at_least(0.5).at_most(6.0);
    let (above, k) = erfc_far(size);
    let far = (-power_of_two::<X>(k)).fma(above.rounded(), 1.0);
    x.abs().less(0.5).select(near, far.flip_sign_by(x))
}

pub(super) fn erfc_f64<X: Double>(x: X) -> X {
    let tail = x * (x * x).polynomial(ERF_TAIL);
    let near = Pair::sum_of_ordered(x.constant(1.0), -x).plus_small(-tail).rounded();
    // Beyond this limit the result is zero.
    let size = x.abs().at_least(0.5).at_most(27.3);
    let (above, k) = erfc_far(size);
    let above = scale(above.rounded(), k);
    let far = x.less(0.0).select(-above + 2.0, above);
    x.abs().less(0.5).select(near, far)
}

pub(super) fn erf_inv_f32<X: Single>(x: X) -> X {
    let wide = x.widen();
    let (exponent, log) = log_short(-(wide * wide) + 1.0);
    let w = -exponent.fma(LN_2, log);
    let near = (w - 3.125).polynomial(ERF_INV_NEAR_SHORT);
    let far = (w.sqrt() - 3.25).polynomial(ERF_INV_FAR_SHORT);
    let y = (w.less(6.25).select(near, far) * wide).narrow();
    at_the_ends(x, y)
}

pub(super) fn erf_inv_f64<X: Double>(x: X) -> X {
    // 1 - x^2 as a pair, whose terms cancel where x is close to one.
    let square = Pair::product(x, x);
    let complement = Pair::sum_of_ordered(x.constant(1.0), -square.high).plus_small(-square.low).normalized();
    // The polynomials are so steep that what is cut off from their variables counts.
    let log = log_of_pair(complement, x.zero()).normalized();
    let (w, w_low) = (-log.high, -log.low);
    let root = Pair { high: w, low: w_low }.sqrt();
    // Each polynomial as its last coefficient and the rest, which is smaller.
    let choose = |a: X, b: X, c: X| w.less(6.25).select(a, w.less(16.0).select(b, c));
    let slope = |t: X, coefficients: &[f64]| t.polynomial(&coefficients[..coefficients.len() - 1]);
    let (near, middle, far) = (w - 3.125, root.high - 3.25, root.high - 5.0);
    let slopes = choose(slope(near, ERF_INV_NEAR), slope(middle, ERF_INV_MIDDLE), slope(far, ERF_INV_FAR));
    let variable = Pair::product(choose(near, middle, far), slopes);
    let low = slopes.fma(choose(w_low, root.low, root.low), variable.low);
    let last = |coefficients: &[f64]| x.constant(coefficients[coefficients.len() - 1]);
    let constant = choose(last(ERF_INV_NEAR), last(ERF_INV_MIDDLE), last(ERF_INV_FAR));
    let rest = choose(last(&ERF_INV_NEAR_REST), last(&ERF_INV_MIDDLE_REST), last(&ERF_INV_FAR_REST));
    let factor = Pair::sum_of_ordered(constant, variable.high).plus_small(rest + low);
    at_the_ends(x, x.fma(factor.high, x * factor.low).with_sign_of(x))
}

/// Infinite if `x` is one in magnitude, and NaN above.
#[inline(always)]
fn at_the_ends<X: Real>(x: X, y: X) -> X {
    let size = x.abs();
    let pole = size.equals(1.0).select(f64::INFINITY, x.constant(f64::NAN)).flip_sign_by(x);
    size.less(1.0).select(y, pole)
}

/// The error function.
pub(crate) struct Erf;

impl MathFunction for Erf {
    const DESCRIPTION: Description = Description {
        name: "erf",
        example: "(x: f32[6]) { erf(x) }",
        is_instruction: false,
        ends: [0.0, -0.0, 1.0, -1.0],
        symmetry: Some(Symmetry::Odd),
        interval: (-6.5, 6.5),
        edges: &[0.5, 0.9, 4.0, 6.0, 5.921587195794508],
        reference: "F(erf)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        erf_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        erf_f64(x)
    }
}

/// 1 - erf(x), accurate for large x.
pub(crate) struct Erfc;

impl MathFunction for Erfc {
    const DESCRIPTION: Description = Description {
        name: "erfc",
        example: "(x: f32[6]) { erfc(x) }",
        is_instruction: false,
        ends: [1.0, 1.0, 0.0, 2.0],
        symmetry: None,
        interval: (-6.5, 28.0),
        edges: &[0.5, 26.54325845425098, 27.226017111108366, 27.3, -6.0, 10.05, 9.194],
        reference: "F(erfc)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        erfc_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        erfc_f64(x)
    }
}

/// The inverse of erf.
pub(crate) struct ErfInv;

impl MathFunction for ErfInv {
    const DESCRIPTION: Description = Description {
        name: "erf_inv",
        example: "(x: f32[6]) { erf_inv(x / 6) }",
        is_instruction: false,
        ends: [0.0, -0.0, f64::NAN, f64::NAN],
        symmetry: Some(Symmetry::Odd),
        interval: (-1.0, 1.0),
        edges: &[1.0, -1.0, 0.9990338455815258, 0.9999999437324099, 0.5],
        reference: "NAME(erf_inv)(x)",
    };

    fn single<X: Single>(x: X) -> X {
        erf_inv_f32(x)
    }

    fn double<X: Double>(x: X) -> X {
        erf_inv_f64(x)
    }
}
