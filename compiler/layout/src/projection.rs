//! Translates between the axes of a rule's factors and the axes of its tensors' dimensions.
//!
//! For `ik,kj->ij` with a left operand `f32[8@X,16@Y]`, factor `i` is split over X and `k` over Y. The axes of a dimension of several
//! factors fill them major to minor. With `ab->(ab)` of sizes 2 and 8, a dimension `16@(X,Y)` on X = 2, Y = 4 splits `a` over X and `b`
//! over Y. Blocks must not straddle factors, so every such factor divides evenly, and a later one is split only if all earlier ones are
//! split completely. A major factor alone may be split unevenly if the blocks are the same: `(46)@Y`, Y = 4, as `ab` of sizes 23 and 2.

use crate::factors::{DimFactors, FactorKind, Factors};
use crate::mesh::Mesh;
use crate::sharding::blocks_hold_whole;
use spmdc_abi::AxisSet;

/// For each factor the axes that split it, major to minor.
pub type Assignment = Vec<Vec<u8>>;

/// A rule, and the constraints that it puts on splitting its factors.
#[derive(Clone, Debug)]
pub struct Projection {
    /// The rule of the op.
    pub rule: Factors,
    /// For each factor, whether it is never split: `Whole` factors, factors of two dimensions of a tensor, and factors of size 1
    /// that share a dimension with others.
    pub whole: Vec<bool>,
    /// For each factor, whether it shares a dimension with others, so that its blocks must make up the blocks of the dimension.
    pub even: Vec<bool>,
}

impl Projection {
    /// The projection of a rule.
    pub fn new(rule: Factors) -> Projection {
        let mut whole: Vec<bool> = rule.factors.iter().map(|factor| factor.kind == FactorKind::Whole).collect();
        let mut even = vec![false; rule.factors.len()];
        for tensor in rule.operands.iter().chain(&rule.results) {
            let mut seen = vec![false; rule.factors.len()];
            for dim in tensor {
                for &factor in dim {
                    whole[factor] |= seen[factor] || rule.factors[factor].size == 1 && dim.len() > 1;
                    seen[factor] = true;
                }
                let several = significant(&rule, dim).count() > 1;
                significant(&rule, dim).for_each(|factor| even[factor] |= several);
            }
        }
        Projection { rule, whole, even }
    }

    /// The axes that split a factor of a tensor whose dimensions have `axes`; None if the tensor does not have the factor, or has
    /// it in a dimension with a split that factors cannot express.
    pub fn axes_of<'a>(
        &self,
        tensor: &[DimFactors],
        factor: usize,
        axes: impl Fn(usize) -> &'a [u8],
        mesh: &Mesh,
    ) -> Option<&'a [u8]> {
        tensor.iter().enumerate().rev().find_map(|(dim, factors)| {
            let position = factors.iter().rposition(|&other| other == factor)?;
            self.part(factors, position, axes(dim), mesh)
        })
    }

    /// The axes of every factor, as in [`Projection::axes_of`].
    pub fn factors_of<'a>(
        &self,
        tensor: &[DimFactors],
        axes: impl Fn(usize) -> &'a [u8],
        mesh: &Mesh,
    ) -> Vec<Option<&'a [u8]>> {
        (0..self.rule.factors.len()).map(|factor| self.axes_of(tensor, factor, &axes, mesh)).collect()
    }

    /// The axes of the factor at `position` when the axes of a dimension are distributed over its factors.
    fn part<'a>(&self, dim: &DimFactors, position: usize, axes: &'a [u8], mesh: &Mesh) -> Option<&'a [u8]> {
        let size = |at: usize| self.rule.factors[dim[at]].size;
        // Factors larger than 1 take axes one after the other; if there are none, the last factor does.
        let mut takers = (0..dim.len()).filter(|&at| size(at) != 1);
        let mut at = takers.next().unwrap_or(dim.len() - 1);
        if takers.clone().next().is_none() {
            return Some(if at == position { axes } else { &[] });
        }
        let major = at;
        let mut left = size(at);
        let (mut begin, mut end) = (0, 0);
        for (place, &axis) in axes.iter().enumerate() {
            let blocks = mesh.axes[axis as usize].size;
            if left == 1 && blocks > 1 {
                at = takers.next()?;
                left = size(at);
            }
            if !left.is_multiple_of(blocks) {
                let minor = dim.iter().map(|&factor| self.rule.factors[factor].size).product::<usize>() / size(major);
                let fits = at == major && blocks_hold_whole(size(major), minor, mesh.size_of(axes));
                return fits.then_some(if position == major { axes } else { &[] });
            }
            left /= blocks;
            if at < position {
                begin = place + 1;
            }
            if at <= position {
                end = place + 1;
            }
        }
        Some(&axes[begin..end])
    }

    /// The first axis of a dimension whose blocks straddle factors, and the sizes at which to cut it so that each part splits one factor,
    /// as far as possible. For `(ab)` with sizes 2 and 8, an axis of 4 is cut at 2.
    pub fn cuts(&self, dim: &DimFactors, axes: &[u8], mesh: &Mesh) -> Option<(u8, Vec<usize>)> {
        let mut sizes = significant(&self.rule, dim).map(|factor| self.rule.factors[factor].size);
        if axes.is_empty() || sizes.clone().count() < 2 || self.part(dim, 0, axes, mesh).is_some() {
            return None;
        }
        let mut left = 1;
        for &axis in axes {
            let size = mesh.axes[axis as usize].size;
            let (mut cuts, mut rest) = (Vec::new(), size);
            while rest > 1 {
                if left == 1 {
                    left = sizes.next()?;
                }
                let common = gcd(left, rest);
                if common == 1 {
                    break;
                }
                (left, rest) = (left / common, rest / common);
                cuts.extend((rest > 1).then_some(size / rest));
            }
            if rest > 1 || !cuts.is_empty() {
                return (!cuts.is_empty()).then_some((axis, cuts));
            }
        }
        None
    }

    /// The axes of each dimension of a tensor.
    pub fn dims_of(&self, tensor: &[DimFactors], assignment: &Assignment) -> Vec<Vec<u8>> {
        tensor.iter().map(|dim| dim.iter().flat_map(|&factor| assignment[factor].iter().copied()).collect()).collect()
    }

    /// Whether the op can run on blocks with this assignment.
    pub fn is_valid(&self, assignment: &Assignment, mesh: &Mesh) -> bool {
        let mut used = AxisSet::EMPTY;
        for (factor, axes) in assignment.iter().enumerate() {
            let blocks = mesh.size_of(axes);
            if !axes.is_empty() && self.whole[factor] || !self.fits(factor, blocks) {
                return false;
            }
            for &axis in axes {
                if used.contains(axis as usize) {
                    return false;
                }
                used = used.union(AxisSet::of(axis as usize));
            }
        }
        let dims = self.rule.operands.iter().chain(&self.rule.results).flatten();
        dims.into_iter().all(|dim| self.is_filled(dim, assignment, mesh))
    }

    /// Whether this many blocks of a factor make up the blocks of each dimension that contains it.
    pub fn fits(&self, factor: usize, blocks: usize) -> bool {
        let size = self.rule.factors[factor].size;
        if !self.even[factor] || size.is_multiple_of(blocks) {
            return true;
        }
        let dims = self.rule.operands.iter().chain(&self.rule.results).flatten().filter(|dim| dim.contains(&factor));
        dims.into_iter().all(|dim| {
            let others = significant(&self.rule, dim).filter(|&other| other != factor);
            let minor = others.map(|other| self.rule.factors[other].size).product();
            significant(&self.rule, dim).next() == Some(factor) && blocks_hold_whole(size, minor, blocks)
        })
    }

    /// Whether every factor before a split one is split completely.
    pub fn is_filled(&self, dim: &DimFactors, assignment: &Assignment, mesh: &Mesh) -> bool {
        let mut complete = true;
        for factor in significant(&self.rule, dim) {
            if !assignment[factor].is_empty() && !complete {
                return false;
            }
            complete &= mesh.size_of(&assignment[factor]) == self.rule.factors[factor].size;
        }
        true
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The factors of a dimension that are larger than 1.
fn significant<'a>(rule: &'a Factors, dim: &'a DimFactors) -> impl Iterator<Item = usize> + Clone + 'a {
    dim.iter().copied().filter(|&factor| rule.factors[factor].size != 1)
}
