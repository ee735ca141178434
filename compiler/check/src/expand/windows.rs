//! `x[k : k + 4]`: slices with dynamic bounds and static length.
//!
//! Both bounds are traced through the statements that compute them, as sums of multiples of other values; the length is known if
//! their difference is a number. So `x[i * B : (i + 1) * B]` has B elements, even if its bounds have names.

use crate::Checker;
use spmdc_ir::program::{Stmt, Value};
use spmdc_kernel::number::to_int;
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};
use spmdc_ops::cast::Cast;
use spmdc_ops::collective::vary::PVary;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{Binary, Unary};

/// Maximum number of statements searched for the definition of a value, and of steps in tracing a bound: a bound is computed near
/// the slice, and programs are large.
const NEAR: usize = 500;
const MAX_STEPS: usize = 200;

/// A bound of a slice.
#[derive(Clone, Copy)]
pub(crate) enum SliceBound {
    Absent,
    Number(i64),
    /// An integer scalar.
    Dynamic(Value),
}

/// A number plus multiples of values that are not traced further.
#[derive(Default)]
struct LinearIndex {
    parts: Vec<(Value, i128)>,
    number: i128,
}

impl LinearIndex {
    fn add(&mut self, value: Value, factor: i128, search: &RowSearch<'_>) -> Option<()> {
        match self.parts.iter_mut().find(|(other, _)| search.are_equal(*other, value, 0)) {
            Some((_, sum)) => *sum = sum.checked_add(factor)?,
            None => self.parts.push((value, factor)),
        }
        Some(())
    }
}

impl Checker<'_> {
    /// The statement that defines a value, if it is near.
    pub(crate) fn made_by(&self, value: Value) -> Option<&Stmt> {
        let near = self.build.blocks().iter().rev().flat_map(|block| block.stmts.iter().rev()).take(NEAR);
        near.into_iter().find(|stmt| stmt.results.contains(&value))
    }

    /// `stop - start`, if it is a number.
    pub(crate) fn slice_length(&self, start: SliceBound, stop: SliceBound) -> Option<i128> {
        let search = RowSearch(self);
        let mut difference = LinearIndex::default();
        let mut steps = 0;
        for (bound, factor) in [(stop, 1), (start, -1)] {
            match bound {
                SliceBound::Absent => return None,
                SliceBound::Number(number) => difference.number += i128::from(number) * factor,
                SliceBound::Dynamic(value) => search.trace(value, factor, &mut difference, &mut steps)?,
            }
        }
        difference.parts.iter().all(|&(_, factor)| factor == 0).then_some(difference.number)
    }
}

struct RowSearch<'a>(&'a Checker<'a>);

impl RowSearch<'_> {
    /// Adds a multiple of a value. Integers wrap around, but a slice with wrapped bounds is never inside an array.
    fn trace(&self, value: Value, factor: i128, sum: &mut LinearIndex, steps: &mut usize) -> Option<()> {
        *steps += 1;
        let made_by = self.0.made_by(value).filter(|_| *steps < MAX_STEPS);
        let Some(stmt) = made_by else { return sum.add(value, factor, self) };
        let arg = |at: usize| stmt.args[at];
        let Some(op) = stmt.op() else { return sum.add(value, factor, self) };
        if op.as_op::<Constant>().is_some() {
            sum.number = sum.number.checked_add(self.number(value)?.checked_mul(factor)?)?;
        } else if let Some(Binary(BinaryOp::Add)) = op.as_op::<Binary>() {
            self.trace(arg(0), factor, sum, steps)?;
            self.trace(arg(1), factor, sum, steps)?;
        } else if let Some(Binary(BinaryOp::Sub)) = op.as_op::<Binary>() {
            self.trace(arg(0), factor, sum, steps)?;
            self.trace(arg(1), factor.checked_neg()?, sum, steps)?;
        } else if let Some(Binary(BinaryOp::Mul)) = op.as_op::<Binary>() {
            match (self.number(arg(0)), self.number(arg(1))) {
                (Some(number), _) => self.trace(arg(1), factor.checked_mul(number)?, sum, steps)?,
                (None, Some(number)) => self.trace(arg(0), factor.checked_mul(number)?, sum, steps)?,
                (None, None) => sum.add(value, factor, self)?,
            }
        } else if let Some(Unary(UnaryOp::Neg)) = op.as_op::<Unary>() {
            self.trace(arg(0), factor.checked_neg()?, sum, steps)?;
        } else if op.is::<PVary>() || op.is::<Cast>() && self.is_integer(arg(0)) {
            self.trace(arg(0), factor, sum, steps)?;
        } else {
            sum.add(value, factor, self)?;
        }
        Some(())
    }

    fn is_integer(&self, value: Value) -> bool {
        self.0.build.ty(value).dtype().is_integer()
    }

    /// The constant value of a scalar.
    fn number(&self, value: Value) -> Option<i128> {
        let stmt = self.0.made_by(value)?;
        let op = stmt.op()?;
        if let Some(constant) = op.as_op::<Constant>() {
            let dtype = constant.array.dtype();
            let bits = constant.array.bits.first().filter(|_| dtype.is_integer())?;
            return Some(to_int(dtype, *bits));
        }
        let is_same = (op.is::<Cast>() || op.is::<PVary>()) && self.is_integer(stmt.args[0]);
        if is_same { self.number(stmt.args[0]) } else { None }
    }

    /// Whether two values are computed in the same way.
    fn are_equal(&self, one: Value, other: Value, depth: usize) -> bool {
        if one == other {
            return true;
        }
        let (Some(a), Some(b)) = (self.0.made_by(one), self.0.made_by(other)) else { return false };
        let alike = !a.is_control() && a.kind == b.kind && a.args.len() == b.args.len();
        let position = |stmt: &Stmt, value| stmt.results.iter().position(|&result| result == value);
        depth < 8
            && alike
            && position(a, one) == position(b, other)
            && a.args.iter().zip(&b.args).all(|(&one, &other)| self.are_equal(one, other, depth + 1))
    }
}
