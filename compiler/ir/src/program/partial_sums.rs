//! Decides which ops map partial sums to partial sums.
//!
//! Such an op commutes with the sum, and does not increase any partial sum. Partial sums may be larger than their sum, so a float product
//! of one with a large factor may overflow where the product of the sum does not. Zero, which some devices hold, times infinity is NaN.
//! Integers wrap around, which commutes with every product.
//!
//! On auto axes the sum is combined before any other op, unless the program asks for parts of its result. On explicit axes the program has chosen partial sums, so all ops that commute
//! with the sum keep them, and any other op is an error (E0306).

use crate::op::Op;
use crate::rules::{Elements, Linear};
use spmdc_kernel::number::to_float;
use spmdc_layout::types::{AxisSet, Type};

/// Compile-time bounds of the elements of a value, as factors and divisors of partial sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FactorBounds {
    /// Products with it are not larger: nonzero, of magnitude at most 1. Zero times an infinite sum is NaN, although each of its partial
    /// sums may be finite.
    pub shrinks: bool,
    /// Quotients by it are not larger: finite, of magnitude at least 1.
    pub divides: bool,
}

impl FactorBounds {
    /// The bounds of an op's result, from the bounds of its operands.
    pub fn of(op: &Op, operands: &[FactorBounds]) -> FactorBounds {
        match op.rules().properties().elements {
            Elements::Literal(array) => {
                let dtype = array.dtype();
                if !dtype.is_float() {
                    return FactorBounds::default();
                }
                let all = |fits: fn(f64) -> bool| array.bits.iter().all(|&bits| fits(to_float(dtype, bits)));
                FactorBounds {
                    shrinks: all(|number| number != 0.0 && number.abs() <= 1.0),
                    divides: all(|number| number.is_finite() && number.abs() >= 1.0),
                }
            }
            // Every element of the result is one of the operand, or its opposite.
            Elements::Repeated | Elements::Moved | Elements::Window(_) | Elements::Chosen(_) | Elements::Negated => {
                operands[0]
            }
            Elements::Counted
            | Elements::Drawn
            | Elements::Rows
            | Elements::Framed(_)
            | Elements::Ordered(_)
            | Elements::Elementwise
            | Elements::Transferred(_)
            | Elements::Other => FactorBounds::default(),
        }
    }
}

/// Whether an op commutes with the sum: `sets` are the axes over which each operand is partial.
pub fn commutes_with_sum(op: &Op, args: &[&Type], sets: &[AxisSet]) -> bool {
    let Some(first) = sets.iter().position(|set| !set.is_empty()) else { return true };
    let only_one = sets.iter().enumerate().all(|(at, set)| at == first || set.is_empty());
    let alike = sets.iter().all(|set| *set == sets[first]);
    match op.rules().properties().linear {
        Linear::No => false,
        Linear::Together => alike,
        Linear::Places(operands) => sets.iter().enumerate().all(|(at, set)| match operands.contains(&at) {
            true => *set == sets[first],
            false => set.is_empty(),
        }),
        Linear::Apart => true,
        Linear::Product | Linear::Contraction => only_one,
        Linear::Quotient => only_one && first == 0 && args[0].dtype().is_float(),
        Linear::Conversion(to) => args[first].dtype().is_float() && to.is_float(),
    }
}

/// Whether an op maps partial sums to partial sums: it commutes with the sum, and makes none of them larger than the sum could be.
/// `factors` are the bounds of the operands.
pub fn passes_sums(op: &Op, args: &[&Type], sets: &[AxisSet], factors: &[FactorBounds]) -> bool {
    commutes_with_sum(op, args, sets) && keeps_magnitude(op, args, sets, factors)
}

fn keeps_magnitude(op: &Op, args: &[&Type], sets: &[AxisSet], factors: &[FactorBounds]) -> bool {
    let Some(first) = sets.iter().position(|set| !set.is_empty()) else { return true };
    let whole =
        |fits: fn(&FactorBounds) -> bool| sets.iter().zip(factors).all(|(set, factor)| !set.is_empty() || fits(factor));
    let is_exact = !args[first].dtype().is_float();
    match op.rules().properties().linear {
        Linear::Product | Linear::Contraction => is_exact || whole(|factor| factor.shrinks),
        Linear::Quotient => whole(|factor| factor.divides),
        // A sum that a narrower type can hold may have parts that it cannot.
        Linear::Conversion(to) => args[first].dtype().size() < to.size() || args[first].dtype() == to,
        Linear::No | Linear::Together | Linear::Places(_) | Linear::Apart => true,
    }
}
