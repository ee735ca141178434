//! Functions as XLA computes them on CPUs, bit for bit in single precision: random numbers of other distributions than the uniform one
//! follow from these, and are to be those of JAX.
//!
//! They are less accurate than the functions of the language, which only the prelude calls them instead of. `f32` uses the polynomials of
//! the Cephes library (`logf`, `log1p`) and of M. Giles ("Approximating the erfinv function"), by Horner's rule with fused steps. XLA's
//! logarithm of an `f64` is that of the C library, which our own one equals except where the result is close to halfway between two
//! numbers.

use super::log::{log_f64, with_specials};
use super::value::{Bits, Double, Mask, Real, Single};
use super::xla_coefficients::*;
use super::{Description, MathFunction, Symmetry};

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
    let high = t.polynomial(&LOG_HIGH_F32);
    let middle = t.polynomial(&LOG_MIDDLE_F32);
    let low = t.polynomial(&LOG_LOW_F32);
    let series = high.fma(cube, middle).fma(cube, low).fma(cube, exponent * -2.12194440e-4);
    let sum = square.fma(-0.5, t) + series;
    exponent.fma(0.693359375, sum)
}

fn log1p_of<X: Real>(x: X, log: X) -> X {
    let square = x * x;
    let quotient = x.polynomial(&LOG1P_ABOVE) / x.polynomial(&LOG1P_BELOW);
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
        x * square.polynomial(&ERF_ABOVE_F32) / square.polynomial(&ERF_BELOW_F32)
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
        let near = (w - 2.5).polynomial(&ERF_INV_NEAR_F32);
        let far = (w.sqrt() - 3.0).polynomial(&ERF_INV_FAR_F32);
        inverse_of(x, w.less(5.0).select(near, far))
    }

    fn double<X: Double>(x: X) -> X {
        let w = -log1p_double(-x * x);
        let near = (w - 3.125).polynomial(&ERF_INV_NEAR);
        let root = w.sqrt();
        let middle = (root - 3.25).polynomial(&ERF_INV_MIDDLE);
        let far = (root - 5.0).polynomial(&ERF_INV_FAR);
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
