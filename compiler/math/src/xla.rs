//! Functions as XLA computes them on CPUs, bit for bit in single precision: random numbers of other distributions than the uniform one
//! follow from these, and are to be those of JAX.
//!
//! They are less accurate than the functions of the language, which only the prelude calls them instead of. `f32` uses the polynomials of
//! the Cephes library (`logf`, `log1p`) and of M. Giles ("Approximating the erfinv function"), by Horner's rule with fused steps. XLA's
//! logarithm of an `f64` is that of the C library, which our own one equals except where the result is close to halfway between two
//! numbers.

// Coefficients are written as published.
#![allow(clippy::excessive_precision)]

use super::log::{log_f64, with_specials};
use super::value::{Bits, Double, Mask, Real, Single};
use super::{Description, MathFunction, Symmetry};

/// The coefficients of `log1p`: numerator and denominator.
const LOG1P_ABOVE: &[f64] = &[
    4.5270000862445199635215E-5,
    4.9854102823193375972212E-1,
    6.5787325942061044846969,
    2.9911919328553073277375E1,
    6.0949667980987787057556E1,
    5.7112963590585538103336E1,
    2.0039553499201281259648E1,
];
const LOG1P_BELOW: &[f64] = &[
    1.0,
    1.5062909083469192043167E1,
    8.3047565967967209469434E1,
    2.2176239823732856465394E2,
    3.0909872225312059774938E2,
    2.1642788614495947685003E2,
    6.0118660497603843919306E1,
];
/// Below this magnitude `log(1 + x)` is a rational function of `x`, and above it the logarithm of the sum.
const LOG1P_RATIONAL_BELOW: f64 = 0.41421356237309504880;

const ERF_ABOVE_F32: &[f64] =
    &[2.2905065861350646e-4, 3.4082910107109506e-3, 5.0955695062380861e-2, 1.8520832239976145e-1, 1.128379143519084];
const ERF_BELOW_F32: &[f64] = &[
    -1.1791602954361697e-7,
    2.3547966471313185e-5,
    1.0179625278914885e-3,
    1.4070470171167667e-2,
    1.1098505178285362e-1,
    4.9746925110067538e-1,
    1.0,
];

const ERF_INV_NEAR_F32: &[f64] = &[
    2.81022636e-08,
    3.43273939e-07,
    -3.5233877e-06,
    -4.39150654e-06,
    0.00021858087,
    -0.00125372503,
    -0.00417768164,
    0.246640727,
    1.50140941,
];
const ERF_INV_FAR_F32: &[f64] = &[
    -0.000200214257,
    0.000100950558,
    0.00134934322,
    -0.00367342844,
    0.00573950773,
    -0.0076224613,
    0.00943887047,
    1.00167406,
    2.83297682,
];

const ERF_INV_NEAR: &[f64] = &[
    -3.6444120640178196996e-21,
    -1.685059138182016589e-19,
    1.2858480715256400167e-18,
    1.115787767802518096e-17,
    -1.333171662854620906e-16,
    2.0972767875968561637e-17,
    6.6376381343583238325e-15,
    -4.0545662729752068639e-14,
    -8.1519341976054721522e-14,
    2.6335093153082322977e-12,
    -1.2975133253453532498e-11,
    -5.4154120542946279317e-11,
    1.051212273321532285e-09,
    -4.1126339803469836976e-09,
    -2.9070369957882005086e-08,
    4.2347877827932403518e-07,
    -1.3654692000834678645e-06,
    -1.3882523362786468719e-05,
    0.0001867342080340571352,
    -0.00074070253416626697512,
    -0.0060336708714301490533,
    0.24015818242558961693,
    1.6536545626831027356,
];
const ERF_INV_MIDDLE: &[f64] = &[
    2.2137376921775787049e-09,
    9.0756561938885390979e-08,
    -2.7517406297064545428e-07,
    1.8239629214389227755e-08,
    1.5027403968909827627e-06,
    -4.013867526981545969e-06,
    2.9234449089955446044e-06,
    1.2475304481671778723e-05,
    -4.7318229009055733981e-05,
    6.8284851459573175448e-05,
    2.4031110387097893999e-05,
    -0.0003550375203628474796,
    0.00095328937973738049703,
    -0.0016882755560235047313,
    0.0024914420961078508066,
    -0.0037512085075692412107,
    0.005370914553590063617,
    1.0052589676941592334,
    3.0838856104922207635,
];
const ERF_INV_FAR: &[f64] = &[
    -2.7109920616438573243e-11,
    -2.5556418169965252055e-10,
    1.5076572693500548083e-09,
    -3.7894654401267369937e-09,
    7.6157012080783393804e-09,
    -1.4960026627149240478e-08,
    2.9147953450901080826e-08,
    -6.7711997758452339498e-08,
    2.2900482228026654717e-07,
    -9.9298272942317002539e-07,
    4.5260625972231537039e-06,
    -1.9681778105531670567e-05,
    7.5995277030017761139e-05,
    -0.00021503011930044477347,
    -0.00013871931833623122026,
    1.0103004648645343977,
    4.8499064014085844221,
];

/// The logarithm of a positive, normal number.
fn log_f32<X: Single>(x: X) -> X {
    let bits = x.bits();
    // The integer becomes a number as the low bits of 2^23.
    let two_to_fraction = (X::BIAS + i64::from(X::FRACTION)) << X::FRACTION;
    let biased = (bits.shift_right(X::FRACTION) | two_to_fraction).real() - (1_i64 << X::FRACTION) as f64;
    // The mantissa lies between a half and one.
    let exponent = biased - (X::BIAS - 1) as f64;
    let mantissa = ((bits & ((1 << X::FRACTION) - 1)) | ((X::BIAS - 1) << X::FRACTION)).real();
    let is_low = mantissa.less(0.707_106_77);
    let exponent = is_low.select(exponent - 1.0, exponent);
    let t = mantissa - 1.0;
    let t = is_low.select(t + mantissa, t);
    let square = t * t;
    let cube = square * t;
    let high = t.polynomial(&[7.0376836292E-2, -1.1514610310E-1, 1.1676998740E-1]);
    let middle = t.polynomial(&[-1.2420140846E-1, 1.4249322787E-1, -1.6668057665E-1]);
    let low = t.polynomial(&[2.0000714765E-1, -2.4999993993E-1, 3.3333331174E-1]);
    let series = high.fma(cube, middle).fma(cube, low).fma(cube, exponent * -2.12194440e-4);
    let sum = square.fma(-0.5, t) + series;
    exponent.fma(0.693359375, sum)
}

fn log1p_of<X: Real>(x: X, log: X) -> X {
    let square = x * x;
    let quotient = x.polynomial(LOG1P_ABOVE) / x.polynomial(LOG1P_BELOW);
    let near = x + square.fma(-0.5, (x * square) * quotient);
    let y = x.abs().less(LOG1P_RATIONAL_BELOW).select(near, log);
    // Zero keeps its sign.
    x.equals(0.0).select(x, y)
}

fn log1p_single<X: Single>(x: X) -> X {
    let sum = x + 1.0;
    log1p_of(x, with_specials(sum, log_f32(sum)))
}

fn log1p_double<X: Double>(x: X) -> X {
    log1p_of(x, log_f64(x + 1.0))
}

/// `factor * x`, which is infinite where `x` is 1 or -1.
fn inverse_of<X: Real>(x: X, factor: X) -> X {
    let pole = x * f64::INFINITY;
    x.abs().equals(1.0).select(pole, factor * x)
}

/// The logarithm from which gumbel's distribution is computed.
pub(crate) struct XlaLog;

impl MathFunction for XlaLog {
    const DESCRIPTION: Description = Description {
        name: "xla_log",
        example: "",
        is_instruction: false,
        ends: [-f64::INFINITY, -f64::INFINITY, f64::INFINITY, f64::NAN],
        symmetry: None,
        interval: (0.25, 4.0),
        edges: &[1.0],
        reference: "F(log)(x)",
    };
    const IS_INTERNAL: bool = true;

    fn single<X: Single>(x: X) -> X {
        with_specials(x, log_f32(x))
    }

    fn double<X: Double>(x: X) -> X {
        log_f64(x)
    }
}

/// The logarithm of `1 + x`, from which the exponential distribution is computed.
pub(crate) struct XlaLog1p;

impl MathFunction for XlaLog1p {
    const DESCRIPTION: Description = Description {
        name: "xla_log1p",
        example: "",
        is_instruction: false,
        ends: [0.0, -0.0, f64::INFINITY, f64::NAN],
        symmetry: None,
        interval: (-1.0, 4.0),
        edges: &[-1.0, LOG1P_RATIONAL_BELOW, -LOG1P_RATIONAL_BELOW],
        reference: "F(log1p)(x)",
    };
    const IS_INTERNAL: bool = true;

    fn single<X: Single>(x: X) -> X {
        log1p_single(x)
    }

    fn double<X: Double>(x: X) -> X {
        log1p_double(x)
    }
}

/// The error function, which maps the bounds of the truncated normal distribution; in double precision the language's own.
pub(crate) struct XlaErf;

impl MathFunction for XlaErf {
    const DESCRIPTION: Description = Description {
        name: "xla_erf",
        example: "",
        is_instruction: false,
        ends: [0.0, -0.0, 1.0, -1.0],
        symmetry: Some(Symmetry::Odd),
        interval: (-6.5, 6.5),
        edges: &[3.832506856900711],
        reference: "F(erf)(x)",
    };
    const IS_INTERNAL: bool = true;

    fn single<X: Single>(x: X) -> X {
        let x = x.at_most(3.832506856900711).at_least(-3.832506856900711);
        let square = x * x;
        x * square.polynomial(ERF_ABOVE_F32) / square.polynomial(ERF_BELOW_F32)
    }

    fn double<X: Double>(x: X) -> X {
        super::erf::erf_f64(x)
    }
}

/// The inverse of the error function, which maps uniform numbers to normal ones.
pub(crate) struct XlaErfInv;

impl MathFunction for XlaErfInv {
    const DESCRIPTION: Description = Description {
        name: "xla_erf_inv",
        example: "",
        is_instruction: false,
        ends: [0.0, -0.0, f64::NAN, f64::NAN],
        symmetry: Some(Symmetry::Odd),
        interval: (-1.0, 1.0),
        edges: &[1.0, -1.0],
        reference: "NAME(erf_inv)(x)",
    };
    const IS_INTERNAL: bool = true;

    fn single<X: Single>(x: X) -> X {
        let w = -log1p_single(-x * x);
        let near = (w - 2.5).polynomial(ERF_INV_NEAR_F32);
        let far = (w.sqrt() - 3.0).polynomial(ERF_INV_FAR_F32);
        inverse_of(x, w.less(5.0).select(near, far))
    }

    fn double<X: Double>(x: X) -> X {
        let w = -log1p_double(-x * x);
        let near = (w - 3.125).polynomial(ERF_INV_NEAR);
        let root = w.sqrt();
        let middle = (root - 3.25).polynomial(ERF_INV_MIDDLE);
        let far = (root - 5.0).polynomial(ERF_INV_FAR);
        inverse_of(x, w.less(6.25).select(near, w.less(16.0).select(middle, far)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MathFn, eval_f32, eval_f64};

    /// JAX 0.10.2 on a CPU.
    #[test]
    fn known_values_are_those_of_jax() {
        let u = f32::from_bits(0x3f33_b60b);
        assert_eq!(eval_f32(MathFn::XlaErfInv, 1.0), f32::INFINITY);
        assert_eq!(eval_f32(MathFn::XlaErf, 10.0), 1.0);
        assert!((eval_f32(MathFn::XlaErfInv, u) - eval_f32(MathFn::ErfInv, u)).abs() < 1e-6);
        assert!((eval_f64(MathFn::XlaErfInv, 0.3) - eval_f64(MathFn::ErfInv, 0.3)).abs() < 1e-15);
        assert_eq!(eval_f64(MathFn::XlaErfInv, -1.0), f64::NEG_INFINITY);
    }
}
