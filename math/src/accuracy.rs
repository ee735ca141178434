//! Special and known values of the functions; `tests/tests/suite/math.rs` measures their errors on samples, and the program `ulp`
//! on every number.

#![allow(clippy::unwrap_used)]

use super::*;

/// The distance of `got` from `truth` in units in the last place of a format with this number of digits, the last of which is 2^`last` for
/// subnormal numbers. Infinite if one is NaN or infinite and the other is not.
fn ulps(got: f64, truth: f64, digits: i32, last: i32) -> f64 {
    if got == truth || got.is_nan() && truth.is_nan() {
        return 0.0;
    }
    let exponent = (truth.abs().to_bits() >> 52) as i32 - 1023;
    let place = (exponent - digits + 1).max(last);
    let distance = (got - truth).abs() * 2.0_f64.powi(-(place / 2)) * 2.0_f64.powi(-(place - place / 2));
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// The values of the functions at 0, -0, infinity and -infinity, by annex F of C99.
#[test]
fn ends_and_zeros_are_those_of_c99() {
    for &f in MathFn::ALL {
        for (x, expected) in [0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY].into_iter().zip(f.description().ends) {
            is_value(f, x, expected);
        }
        is_value(f, f64::NAN, f64::NAN);
    }
}

/// In both widths, to the bit; the value is rounded for single precision.
fn is_value(f: MathFn, x: f64, expected: f64) {
    let got = eval_f64(f, x);
    assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(), "{}({x}) is {got}", f.name());
    let (got, expected) = (eval_f32(f, x as f32), expected as f32);
    let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
    assert!(same, "{}({x}_f32) is {got}", f.name());
}

#[test]
fn poles_and_exact_values_are_those_of_c99() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases = [
        (MathFn::Sqrt, -1.0, nan),
        (MathFn::Sqrt, 2.25, 1.5),
        (MathFn::Rsqrt, 0.0625, 4.0),
        (MathFn::Rsqrt, -1.0, nan),
        (MathFn::Cbrt, -8.0, -2.0),
        (MathFn::Exp2, -149.0, 2.0_f64.powi(-149)),
        (MathFn::Exp2, 127.0, 2.0_f64.powi(127)),
        (MathFn::Log, 1.0, 0.0),
        (MathFn::Log, -1.0, nan),
        (MathFn::Log2, 8.0, 3.0),
        (MathFn::Log2, 2.0_f64.powi(-149), -149.0),
        (MathFn::Log2, -1.0, nan),
        (MathFn::Log10, 1000.0, 3.0),
        (MathFn::Log10, -1.0, nan),
        (MathFn::Log1p, -1.0, -inf),
        (MathFn::Log1p, -1.5, nan),
        (MathFn::Asin, 1.5, nan),
        (MathFn::Acos, 1.0, 0.0),
        (MathFn::Acos, -1.5, nan),
        (MathFn::Acosh, 1.0, 0.0),
        (MathFn::Acosh, 0.5, nan),
        (MathFn::Acosh, -5.0, nan),
        (MathFn::Atanh, 1.0, inf),
        (MathFn::Atanh, -1.0, -inf),
        (MathFn::Atanh, -1.5, nan),
        (MathFn::ErfInv, 1.0, inf),
        (MathFn::ErfInv, -1.0, -inf),
        (MathFn::ErfInv, 1.5, nan),
        (MathFn::Lgamma, 1.0, 0.0),
        (MathFn::Lgamma, 2.0, 0.0),
        (MathFn::Lgamma, 3.0, std::f64::consts::LN_2),
        (MathFn::Lgamma, -3.0, inf),
        (MathFn::Lgamma, -1e300, inf),
        (MathFn::Digamma, -1.0, nan),
        (MathFn::Digamma, -1e300, nan),
        (MathFn::Floor, -0.5, -1.0),
        (MathFn::Ceil, -0.5, -0.0),
        (MathFn::Trunc, -0.5, -0.0),
        (MathFn::Round, -0.5, -0.0),
        (MathFn::Round, 2.5, 2.0),
        (MathFn::Round, 3.5, 4.0),
    ];
    for (f, x, expected) in cases {
        is_value(f, x, expected);
    }
}

/// Powers of two have exact logarithms to base two and back, powers of ten to base ten.
#[test]
fn exact_powers_have_exact_logarithms() {
    for k in -1074..1024 {
        let (power, exponent) = (2.0_f64.powi(k / 2) * 2.0_f64.powi(k - k / 2), f64::from(k));
        assert_eq!(eval_f64(MathFn::Log2, power), exponent);
        assert_eq!(eval_f64(MathFn::Exp2, exponent), power);
        if (-149..128).contains(&k) {
            assert_eq!(eval_f32(MathFn::Log2, power as f32), exponent as f32);
            assert_eq!(eval_f32(MathFn::Exp2, exponent as f32), power as f32);
        }
    }
    for k in 0..23 {
        assert_eq!(eval_f64(MathFn::Log10, 10.0_f64.powi(k)), f64::from(k));
        if k < 11 {
            assert_eq!(eval_f32(MathFn::Log10, 10.0_f32.powi(k)), k as f32);
        }
    }
}

/// The largest argument with a finite result, in single and double precision. The next one's is infinite: by far more than one
/// place, so that rounding has no say.
#[test]
fn results_overflow_where_they_must() {
    let cases = [
        (MathFn::Exp, 88.72283_f32, 709.782712893384),
        (MathFn::Exp2, 127.99999, 1023.9999999999999),
        (MathFn::Expm1, 88.72283, 709.782712893384),
        (MathFn::Sinh, 89.415985, 710.4758600739439),
        (MathFn::Cosh, 89.415985, 710.4758600739439),
    ];
    for (f, single, double) in cases {
        let name = f.name();
        assert!(eval_f32(f, single).is_finite() && eval_f32(f, single) > 1e38, "{name}({single}_f32)");
        assert_eq!(eval_f32(f, single.next_up()), f32::INFINITY, "{name} above {single}_f32");
        assert!(eval_f64(f, double).is_finite() && eval_f64(f, double) > 1e308, "{name}({double})");
        assert_eq!(eval_f64(f, double.next_up()), f64::INFINITY, "{name} above {double}");
    }
}

/// Functions that are close to the identity near zero are so for subnormal numbers, too.
#[test]
fn subnormal_numbers_are_kept() {
    for f in [
        MathFn::Expm1,
        MathFn::Log1p,
        MathFn::Sin,
        MathFn::Tan,
        MathFn::Asin,
        MathFn::Atan,
        MathFn::Sinh,
        MathFn::Tanh,
        MathFn::Asinh,
        MathFn::Atanh,
    ] {
        for bits in [1, 2, 3, 0x7f_ffff] {
            let (single, double) = (f32::from_bits(bits), f64::from_bits(u64::from(bits)));
            assert_eq!(eval_f32(f, -single), -single, "{}", f.name());
            assert_eq!(eval_f64(f, -double), -double, "{}", f.name());
        }
    }
}

#[test]
fn the_hardest_argument_of_sine_is_reduced_right() {
    // The double closest to a multiple of pi/2; from Muller, Elementary Functions, section 11.
    let x = 6381956970095103.0 * 2.0_f64.powi(797);
    assert_eq!(eval_f64(MathFn::Cos, x), -4.687165924254628e-19);
    assert_eq!(eval_f64(MathFn::Sin, x), 1.0);
}

/// Values of functions that Rust's library does not have, or has with larger errors; computed to many digits elsewhere.
#[test]
fn known_values_are_met() {
    let cases = [
        (MathFn::Erf, 1e-10, 1.1283791670955126e-10),
        (MathFn::Erf, 0.25, 0.27632639016823696),
        (MathFn::Erf, 0.75, 0.7111556336535151),
        (MathFn::Erf, 1.0, 0.8427007929497149),
        (MathFn::Erf, 2.5, 0.999593047982555),
        (MathFn::Erf, 5.0, 0.9999999999984626),
        (MathFn::Erfc, -3.0, 1.9999779095030015),
        (MathFn::Erfc, -0.25, 1.276326390168237),
        (MathFn::Erfc, 0.25, 0.7236736098317631),
        (MathFn::Erfc, 0.5625, 0.42632554338440803),
        (MathFn::Erfc, 1.0, 0.15729920705028513),
        (MathFn::Erfc, 6.0, 2.1519736712498913e-17),
        (MathFn::Erfc, 9.0, 4.13703174651381e-37),
        (MathFn::Erfc, 26.5, 2.2109076642637343e-307),
        (MathFn::ErfInv, 9.313225746154785e-10, 8.253631419062224e-10),
        (MathFn::ErfInv, 0.25, 0.2253120550121781),
        (MathFn::ErfInv, 0.75, 0.8134198475976185),
        (MathFn::ErfInv, 0.998046875, 2.190099968353768),
        (MathFn::ErfInv, 0.9999998807907104, 3.7439211627767994),
        (MathFn::ErfInv, 0.9999999999999999, 5.8635847487551676),
        (MathFn::Asinh, 9.5367431640625e-7, 9.536743164061055e-7),
        (MathFn::Asinh, 0.25, 0.24746646154726346),
        (MathFn::Asinh, 3.0, 1.8184464592320668),
        (MathFn::Asinh, 1.1805916207174113e21, 49.213449819756114),
        (MathFn::Acosh, 1.0000009536743164, 0.0013810678222475811),
        (MathFn::Acosh, 1.25, std::f64::consts::LN_2),
        (MathFn::Acosh, 3.0, 1.762747174039086),
        (MathFn::Acosh, 1.1805916207174113e21, 49.213449819756114),
        (MathFn::Exp, 0.5, 1.6487212707001282),
        (MathFn::Exp, 1.25, 3.4903429574618414),
        (MathFn::Exp, 88.5, 2.7230878250681117e38),
        (MathFn::Atanh, 9.5367431640625e-7, 9.53674316406539e-07),
        (MathFn::Atanh, 0.25, 0.25541281188299536),
        (MathFn::Atanh, 0.9999, 4.951718775643099),
        (MathFn::Exp, -745.0, 5e-324),
        (MathFn::Exp, 709.75, 1.7398368732641605e308),
        (MathFn::Sin, 1.2676506002282294e30, -0.8721836054182673),
        (MathFn::Tan, 1.0715086071862673e301, -0.16125837995065806),
    ];
    for (f, x, expected) in cases {
        let error = ulps(eval_f64(f, x), expected, 53, -1074);
        assert!(error <= 2.0, "{}({x:e}) is {error} ULP off", f.name());
        let single = f64::from(x as f32) == x && expected.abs() < f64::from(f32::MAX);
        let error = ulps(f64::from(eval_f32(f, x as f32)), expected, 24, -149);
        assert!(!single || error <= 1.0, "{}({x:e}_f32) is {error} ULP off", f.name());
    }
}

#[test]
fn powers_follow_c99() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let cases = [
        (-0.0, -3.0, -inf),
        (-0.0, -2.0, inf),
        (-0.0, -2.5, inf),
        (0.0, -inf, inf),
        (-0.0, 3.0, -0.0),
        (0.0, 0.5, 0.0),
        (-1.0, inf, 1.0),
        (-1.0, -inf, 1.0),
        (1.0, nan, 1.0),
        (nan, 0.0, 1.0),
        (nan, 1.0, nan),
        (-1.0, nan, nan),
        (-8.0, 1.0 / 3.0, nan),
        (-2.0, 3.0, -8.0),
        (0.5, -inf, inf),
        (2.0, -inf, 0.0),
        (-inf, -3.0, -0.0),
        (-inf, 3.0, -inf),
        (-inf, 0.5, inf),
        (inf, -0.5, 0.0),
        (10.0, 308.0, 1e308),
        (2.0, -1074.0, f64::from_bits(1)),
        (2.0, 1024.0, inf),
    ];
    for (x, y, expected) in cases {
        let got = eval2_f64(MathFn2::Pow, x, y);
        assert!(got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan(), "pow({x}, {y}) is {got}");
        let got = eval2_f32(MathFn2::Pow, x as f32, y as f32);
        let expected = expected as f32;
        let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
        assert!(same || y.abs() > 300.0, "pow({x}_f32, {y}) is {got}");
    }
}

#[test]
fn functions_of_two_numbers_have_their_special_values() {
    let (inf, nan, pi) = (f64::INFINITY, f64::NAN, std::f64::consts::PI);
    let cases = [
        (MathFn2::Atan2, 0.0, -0.0, pi),
        (MathFn2::Atan2, -0.0, 0.0, -0.0),
        (MathFn2::Atan2, -0.0, -1.0, -pi),
        (MathFn2::Atan2, 1.0, 0.0, pi / 2.0),
        (MathFn2::Atan2, inf, -inf, 3.0 * pi / 4.0),
        (MathFn2::Atan2, -inf, inf, -pi / 4.0),
        (MathFn2::Atan2, 1.0, inf, 0.0),
        (MathFn2::Atan2, nan, inf, nan),
        (MathFn2::Hypot, 3.0, -4.0, 5.0),
        (MathFn2::Hypot, 3.0 * 2.0_f64.powi(700), 4.0 * 2.0_f64.powi(700), 5.0 * 2.0_f64.powi(700)),
        (MathFn2::Hypot, 3.0 * 2.0_f64.powi(-700), 4.0 * 2.0_f64.powi(-700), 5.0 * 2.0_f64.powi(-700)),
        (MathFn2::Hypot, nan, -inf, inf),
        (MathFn2::Hypot, nan, 1.0, nan),
        (MathFn2::Logaddexp, -inf, -inf, -inf),
        (MathFn2::Logaddexp, inf, inf, inf),
        (MathFn2::Logaddexp, inf, -inf, inf),
        (MathFn2::Logaddexp, 3.0, -inf, 3.0),
        (MathFn2::Logaddexp, nan, 1.0, nan),
        (MathFn2::Logaddexp, 1000.0, 1000.0, 1000.6931471805599),
    ];
    for (f, x, y, expected) in cases {
        let got = eval2_f64(f, x, y);
        assert!(got == expected || got.is_nan() && expected.is_nan(), "{}({x}, {y}) is {got}", f.name());
        assert_eq!(got.is_sign_negative() && !got.is_nan(), expected.is_sign_negative() && !expected.is_nan());
        let got = eval2_f32(f, x as f32, y as f32);
        assert!(got == expected as f32 || got.is_nan() && expected.is_nan(), "{}({x}_f32, {y}) is {got}", f.name());
    }
}
