//! A quick look at the accuracy of every function; the `ulp` program of the tests looks at every number.

#![allow(clippy::unwrap_used)]

use super::*;

/// How many numbers are tried, in steps through all bit patterns.
const POINTS: u64 = 40_000;

/// The distance of `got` from `truth` in units in the last place of a format with so many digits, the last of which a
/// subnormal number has at 2^`last`. Infinite if one is NaN or infinite and the other is not.
fn ulps(got: f64, truth: f64, digits: i32, last: i32) -> f64 {
    if got == truth || got.is_nan() && truth.is_nan() {
        return 0.0;
    }
    let exponent = (truth.abs().to_bits() >> 52) as i32 - 1023;
    let place = (exponent - digits + 1).max(last);
    let distance = (got - truth).abs() * 2.0_f64.powi(-(place / 2)) * 2.0_f64.powi(-(place - place / 2));
    if distance.is_nan() { f64::INFINITY } else { distance }
}

fn worst_f32(f: MathFn, truth: fn(f64) -> f64) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    for i in 0..POINTS {
        let x = f32::from_bits((i * ((1 << 32) / POINTS | 1)) as u32);
        let expected = truth(f64::from(x));
        let error = if (expected as f32).is_infinite() {
            ulps(f64::from(eval_f32(f, x)), f64::from(expected as f32), 24, -149)
        } else {
            ulps(f64::from(eval_f32(f, x)), expected, 24, -149)
        };
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

fn worst_f64(f: MathFn, truth: fn(f64) -> f64) -> (f64, f64) {
    let mut worst = (0.0, 0.0);
    for i in 0..POINTS {
        // Half are any numbers at all, half have ordinary magnitudes.
        let bits = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = if i % 2 == 0 {
            f64::from_bits(bits)
        } else {
            (bits >> 11) as f64 / 2.0_f64.powi(52 - (i % 9) as i32) - 1.0
        };
        let error = ulps(eval_f64(f, x), truth(x), 53, -1074);
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

/// The functions that Rust's library has as well.
const TRUTHS: &[(MathFn, fn(f64) -> f64)] = &[
    (MathFn::Sqrt, f64::sqrt),
    (MathFn::Rsqrt, |x| 1.0 / x.sqrt()),
    (MathFn::Exp, f64::exp),
    (MathFn::Exp2, f64::exp2),
    (MathFn::Expm1, f64::exp_m1),
    (MathFn::Log, f64::ln),
    (MathFn::Log2, f64::log2),
    (MathFn::Log10, f64::log10),
    (MathFn::Log1p, f64::ln_1p),
    (MathFn::Sin, f64::sin),
    (MathFn::Cos, f64::cos),
    (MathFn::Tan, f64::tan),
    (MathFn::Floor, f64::floor),
    (MathFn::Ceil, f64::ceil),
    (MathFn::Round, f64::round_ties_even),
    (MathFn::Trunc, f64::trunc),
];

#[test]
fn single_precision_is_within_one_ulp() {
    for &(f, truth) in TRUTHS {
        let (error, at) = worst_f32(f, truth);
        assert!(error <= 1.0, "{}({at:e}) is {error} ULP off", f.name());
    }
}

#[test]
fn double_precision_is_within_two_ulp() {
    for &(f, truth) in TRUTHS {
        let (error, at) = worst_f64(f, truth);
        // The library's own error may come on top of ours.
        assert!(error <= 3.0, "{}({at:e}) is {error} ULP off", f.name());
    }
}

#[test]
fn special_values_are_those_of_c99() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases = [
        (MathFn::Exp, inf, inf),
        (MathFn::Exp, -inf, 0.0),
        (MathFn::Exp, 710.0, inf),
        (MathFn::Exp2, -1074.0, f64::from_bits(1)),
        (MathFn::Expm1, -0.0, -0.0),
        (MathFn::Expm1, -inf, -1.0),
        (MathFn::Log, -0.0, -inf),
        (MathFn::Log, 1.0, 0.0),
        (MathFn::Log, -1.0, nan),
        (MathFn::Log2, 8.0, 3.0),
        (MathFn::Log10, 1000.0, 3.0),
        (MathFn::Log1p, -0.0, -0.0),
        (MathFn::Log1p, -1.0, -inf),
        (MathFn::Log1p, inf, inf),
        (MathFn::Sin, -0.0, -0.0),
        (MathFn::Sin, inf, nan),
        (MathFn::Cos, -0.0, 1.0),
        (MathFn::Cos, -inf, nan),
        (MathFn::Tan, -0.0, -0.0),
        (MathFn::Tan, inf, nan),
        (MathFn::Rsqrt, -0.0, -inf),
        (MathFn::Rsqrt, inf, 0.0),
        (MathFn::Round, -0.5, -0.0),
        (MathFn::Round, 2.5, 2.0),
    ];
    for (f, x, expected) in cases {
        let same = |got: f64| got.is_nan() && expected.is_nan() || got.to_bits() == expected.to_bits();
        assert!(same(eval_f64(f, x)), "{}({x}) is {}", f.name(), eval_f64(f, x));
        if x.abs() < 100.0 || x.is_infinite() {
            let got = f64::from(eval_f32(f, x as f32));
            assert!(same(got), "{}({x}_f32) is {got}", f.name());
        }
        assert!(eval_f32(f, f32::NAN).is_nan() && eval_f64(f, nan).is_nan(), "{}(nan)", f.name());
    }
}

#[test]
fn the_hardest_argument_of_sine_is_reduced_right() {
    // The double closest to a multiple of pi/2; from Muller, Elementary Functions, section 11.
    let x = 6381956970095103.0 * 2.0_f64.powi(797);
    assert_eq!(eval_f64(MathFn::Cos, x), -4.687165924254628e-19);
    assert_eq!(eval_f64(MathFn::Sin, x), 1.0);
}
