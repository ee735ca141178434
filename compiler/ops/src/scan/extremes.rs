//! The tangent of `cummax` and `cummin`: the tangent of the largest or smallest element so far, which equal ones share as in
//! `jax.lax.cummax`. There a tree of pairs computes the result, and each of two equal operands has half:
//!
//! ```text
//! x                 a     b     c     d     e
//! pairs                   ab          cd
//! their scan              ab          abcd
//! result            a     ab    abc   abcd  abcde
//! ```

use crate::arithmetic::Arithmetic;
use crate::concatenate::concatenate;
use crate::reshape::reshape;
use crate::scan::Scan;
use crate::slice::{SliceRange, slice_dim};
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};

/// A node of the tree: an extreme and its tangent, for all places of a level.
#[derive(Clone, Copy)]
struct Extreme {
    value: Value,
    tangent: Value,
}

/// The tangents of the results of a scan of these elements, all in the order of the scan.
pub fn tangent(
    build: &mut CallBuilder,
    scan: &Scan,
    elements: Value,
    results: Value,
    tangent: Value,
) -> Result<Value, Diagnostic> {
    debug_assert!(!scan.exclusive, "`cummax` has the element itself");
    let op = if scan.op == ReduceOp::Max { BinaryOp::Maximum } else { BinaryOp::Minimum };
    PairTree { build, axis: scan.axis, op }.scanned(Extreme { value: elements, tangent }, results)
}

struct PairTree<'b> {
    build: &'b mut CallBuilder,
    axis: usize,
    op: BinaryOp,
}

impl PairTree<'_> {
    fn size(&self, value: Value) -> usize {
        self.build.ty(value).shape()[self.axis]
    }

    /// `len` places from `start` on, `step` apart.
    fn places(&mut self, value: Value, start: usize, step: usize, len: usize) -> Result<Value, Diagnostic> {
        let step = if len == 1 { 1 } else { step as i64 };
        slice_dim(self.build, value, self.axis, SliceRange { start, step, len })
    }

    fn part(&mut self, of: Extreme, start: usize, step: usize, len: usize) -> Result<Extreme, Diagnostic> {
        let value = self.places(of.value, start, step, len)?;
        Ok(Extreme { value, tangent: self.places(of.tangent, start, step, len)? })
    }

    /// The tangent of the extreme of two, which is known. NaN does not contribute.
    fn shared(&mut self, a: Extreme, b: Extreme, extreme: Value) -> Result<Value, Diagnostic> {
        let mut terms = Arithmetic(self.build);
        let (zero, half) = (terms.number(extreme, 0.0)?, terms.number(extreme, 0.5)?);
        let one = terms.number(extreme, 1.0)?;
        let (left, right) =
            (terms.compare(CompareOp::Eq, a.value, extreme)?, terms.compare(CompareOp::Eq, b.value, extreme)?);
        let mut part = |own: Value, other: Value, tangent: Value| {
            let share = terms.select(other, half, one)?;
            let share = terms.select(own, share, zero)?;
            terms.mul(share, tangent)
        };
        let (left, right) = (part(left, right, a.tangent)?, part(right, left, b.tangent)?);
        terms.add(left, right)
    }

    /// The tangents of the extremes up to each element, which are `results`.
    fn scanned(&mut self, own: Extreme, results: Value) -> Result<Value, Diagnostic> {
        let size = self.size(own.value);
        if size < 2 {
            return Ok(own.tangent);
        }
        let pairs = size / 2;
        let (first, second) = (self.part(own, 0, 2, pairs)?, self.part(own, 1, 2, pairs)?);
        let value = Arithmetic(self.build).binary(self.op, first.value, second.value)?;
        let tangent = self.shared(first, second, value)?;
        let odd_results = self.places(results, 1, 2, pairs)?;
        let odd = self.scanned(Extreme { value, tangent }, odd_results)?;
        let first = self.places(own.tangent, 0, 1, 1)?;
        let others = (size - 1) / 2;
        if others == 0 {
            return concatenate(self.build, &[first, odd], self.axis);
        }
        let before = Extreme { value: odd_results, tangent: odd };
        let before = self.part(before, 0, 1, others)?;
        let single = self.part(own, 2, 2, others)?;
        let even_results = self.places(results, 2, 2, others)?;
        let even = self.shared(before, single, even_results)?;
        self.interleaved([first, even], odd)
    }

    /// The elements of two arrays in turn; the first one is given in parts, and has as many elements as the second, or one more.
    fn interleaved(&mut self, first: [Value; 2], second: Value) -> Result<Value, Diagnostic> {
        let axis = self.axis;
        let first = concatenate(self.build, &first, axis)?;
        let pairs = self.size(second);
        let rest = self.size(first) - pairs;
        let mut shape = self.build.ty(second).shape().to_vec();
        shape.insert(axis + 1, 1);
        let begin = self.places(first, 0, 1, pairs)?;
        let (left, right) = (reshape(self.build, begin, &shape)?, reshape(self.build, second, &shape)?);
        let both = concatenate(self.build, &[left, right], axis + 1)?;
        shape.remove(axis + 1);
        shape[axis] = 2 * pairs;
        let whole = reshape(self.build, both, &shape)?;
        if rest == 0 {
            return Ok(whole);
        }
        let last = self.places(first, pairs, 1, rest)?;
        concatenate(self.build, &[whole, last], axis)
    }
}
