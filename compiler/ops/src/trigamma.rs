//! The derivative of `digamma`, as a composition of elementwise operations, which have derivatives themselves.
//!
//! `psi'(x) = psi'(x + 1) + 1 / x^2` leads from small arguments to the asymptotic series, and all terms are positive, so none cancel.
//! Negative arguments take the reflection `psi'(x) = (pi / sin(pi x))^2 - psi'(1 - x)`.

use crate::arithmetic::Arithmetic;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::{CompareOp, MathFn, UnaryOp};
use std::f64::consts::PI;

/// So often the recurrence is applied. From there on the series is exact to the last digit of f64.
const STEPS: u32 = 10;
/// Bernoulli's numbers of even index, the largest first: the coefficients of the odd powers of `1 / x`, down to the third.
const SERIES: [f64; 8] =
    [-3617.0 / 510.0, 7.0 / 6.0, -691.0 / 2730.0, 5.0 / 66.0, -1.0 / 30.0, 1.0 / 42.0, -1.0 / 30.0, 1.0 / 6.0];

/// `psi'(x)`
pub fn trigamma(terms: &mut Arithmetic<'_>, x: Value) -> Result<Value, Diagnostic> {
    let (zero, half) = (terms.number(x, 0.0)?, terms.number(x, 0.5)?);
    let reflects = terms.compare(CompareOp::Lt, x, zero)?;
    let mirrored = terms.less_than(1.0, x)?;
    let positive = terms.select(reflects, mirrored, x)?;
    let sum = of_positive(terms, positive)?;
    // The distance from the next integer has the same sine but for its sign. Elsewhere the sine is that of a half, so that what is left out
    // is finite.
    let nearest = terms.math(MathFn::Round, x)?;
    let distance = terms.sub(x, nearest)?;
    let distance = terms.select(reflects, distance, half)?;
    let angle = terms.scaled(PI, distance)?;
    let sine = terms.math(MathFn::Sin, angle)?;
    let pi = terms.number(x, PI)?;
    let ratio = terms.div(pi, sine)?;
    let square = terms.unary(UnaryOp::Square, ratio)?;
    let reflected = terms.sub(square, sum)?;
    terms.select(reflects, reflected, sum)
}

/// `psi'(x)` for positive numbers and infinity; infinity at zero.
fn of_positive(terms: &mut Arithmetic<'_>, x: Value) -> Result<Value, Diagnostic> {
    let far = terms.number(x, f64::from(STEPS))?;
    let far = terms.add(x, far)?;
    let inverse = terms.inverse(far)?;
    let square = terms.unary(UnaryOp::Square, inverse)?;
    let mut series = terms.number(x, SERIES[0])?;
    for coefficient in &SERIES[1..] {
        let (rest, coefficient) = (terms.mul(square, series)?, terms.number(x, *coefficient)?);
        series = terms.add(coefficient, rest)?;
    }
    // 1 / x + 1 / (2 x^2) + 1 / (6 x^3) - ...
    let tail = terms.mul(inverse, series)?;
    let half = terms.number(x, 0.5)?;
    let tail = terms.add(half, tail)?;
    let tail = terms.mul(square, tail)?;
    let mut sum = terms.add(inverse, tail)?;
    // The smallest terms first.
    for step in (0..STEPS).rev() {
        let by = terms.number(x, f64::from(step))?;
        let place = terms.add(x, by)?;
        let inverse = terms.inverse(place)?;
        let term = terms.unary(UnaryOp::Square, inverse)?;
        sum = terms.add(sum, term)?;
    }
    Ok(sum)
}
