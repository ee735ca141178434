//! Which ops take partial sums as they are and give partial sums again.
//!
//! Such an op commutes with the sum, and makes no partial sum larger. Partial sums may be larger than their sum, so a
//! float product of one with a large factor may overflow where the product of the sum does not; and the zero that one device
//! holds times infinity is NaN. Integers wrap, which commutes with every product.
//!
//! Explicit axes refuse an op that is not one of these (E0306); on auto axes the sum is combined in front of it.

use crate::layout::types::{AxisSet, Type};
use crate::ops::Op;
use crate::ops::elementwise::{Binary, Unary};
use spmdc_abi::ReduceOp;
use spmdc_kernel::number::to_float;
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};

/// What is known at compile time of the elements of a value, as factors and divisors of partial sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Factor {
    /// Products with it are no larger: nonzero, of magnitude at most 1. Zero makes NaN of an infinite sum, where each of its partial
    /// sums may be finite.
    pub shrinks: bool,
    /// Quotients by it are no larger: finite, of magnitude at least 1.
    pub divides: bool,
}

impl Factor {
    /// What is known of the result of an op, given what is known of its operands.
    pub fn of(op: &Op, operands: &[Factor]) -> Factor {
        match op {
            Op::Constant(op) => {
                let dtype = op.array.dtype();
                if !dtype.is_float() {
                    return Factor::default();
                }
                let all = |fits: fn(f64) -> bool| op.array.bits.iter().all(|&bits| fits(to_float(dtype, bits)));
                Factor {
                    shrinks: all(|number| number != 0.0 && number.abs() <= 1.0),
                    divides: all(|number| number.is_finite() && number.abs() >= 1.0),
                }
            }
            // Every element of the result is one of the operand.
            Op::Broadcast(_) | Op::Reshape(_) | Op::Transpose(_) | Op::Slice(_) | Op::Flip(_) | Op::Roll(_) => {
                operands[0]
            }
            Op::Unary(Unary(UnaryOp::Neg)) => operands[0],
            _ => Factor::default(),
        }
    }
}

/// Whether an op commutes with the sum: `sets` are the axes over which each operand is partial.
pub fn commutes_with_sum(op: &Op, args: &[&Type], sets: &[AxisSet]) -> bool {
    let Some(first) = sets.iter().position(|set| !set.is_empty()) else { return true };
    let only_one = sets.iter().enumerate().all(|(at, set)| at == first || set.is_empty());
    let alike = sets.iter().all(|set| *set == sets[first]);
    match op {
        Op::Unary(Unary(op)) => *op == UnaryOp::Neg,
        Op::Binary(Binary(op)) => match op {
            BinaryOp::Add | BinaryOp::Sub => alike,
            BinaryOp::Mul => only_one,
            // Quotients of integers are rounded.
            BinaryOp::Div => only_one && first == 0 && args[0].dtype().is_float(),
            _ => false,
        },
        Op::Cast(cast) => args[first].dtype().is_float() && cast.to.is_float(),
        Op::Einsum(_) => only_one,
        Op::Reduce(reduce) => reduce.op == ReduceOp::Sum,
        // Zeros add nothing, however many devices have them.
        Op::Pad(pad) => pad.value == 0,
        Op::Window(window) => alike && window.map.fill == 0,
        Op::Concatenate(_) => alike,
        Op::Transpose(_) | Op::Reshape(_) | Op::Slice(_) | Op::Broadcast(_) | Op::Flip(_) | Op::Roll(_) => true,
        Op::Print(_) | Op::Assert(_) | Op::ShowSharding(_) => true,
        _ => false,
    }
}

/// Whether partial sums as operands give partial sums: the op commutes with the sum, and makes none of them larger than the
/// sum could be. `factors` says what is known of each operand.
pub fn passes_sums(op: &Op, args: &[&Type], sets: &[AxisSet], factors: &[Factor]) -> bool {
    commutes_with_sum(op, args, sets) && keeps_magnitude(op, args, sets, factors)
}

fn keeps_magnitude(op: &Op, args: &[&Type], sets: &[AxisSet], factors: &[Factor]) -> bool {
    let Some(first) = sets.iter().position(|set| !set.is_empty()) else { return true };
    let whole =
        |fits: fn(&Factor) -> bool| sets.iter().zip(factors).all(|(set, factor)| !set.is_empty() || fits(factor));
    let is_exact = !args[first].dtype().is_float();
    match op {
        Op::Binary(Binary(BinaryOp::Mul)) | Op::Einsum(_) => is_exact || whole(|factor| factor.shrinks),
        Op::Binary(Binary(BinaryOp::Div)) => whole(|factor| factor.divides),
        // A sum that a narrower type can hold may have parts that it cannot.
        Op::Cast(cast) => args[first].dtype().size() < cast.to.size() || args[first].dtype() == cast.to,
        _ => true,
    }
}

/// What an op that commutes with the sum needs so as to make no partial sum larger.
pub fn magnitude_needed(op: &Op) -> &'static str {
    match op {
        Op::Binary(Binary(BinaryOp::Div)) => "the whole sum or a constant divisor of at least 1",
        Op::Cast(_) => "the whole sum or a wider type",
        _ => "the whole sum or constant factors of at most 1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::types::DType;
    use crate::ops::constant::Constant;

    #[test]
    fn a_factor_makes_nothing_larger() {
        let of = |value: f64| {
            let known = Factor::of(&Constant::float(DType::F32, value).into(), &[]);
            (known.shrinks, known.divides)
        };
        assert_eq!([1.0, -1.0].map(of), [(true, true); 2]);
        assert_eq!([0.5, -1e-40].map(of), [(true, false); 2]);
        assert_eq!([2.0, -1.5].map(of), [(false, true); 2]);
        assert_eq!([0.0, -0.0, f64::INFINITY, f64::NAN].map(of), [(false, false); 4]);
    }
}
