//! Checks that a statement can run on the blocks of its operands and results.
//!
//! Layouts are interpreted as the range of each dimension that each device holds. An op is local if every device holds the same
//! range of each factor in all tensors that have the factor, and if results reduced on several devices are typed as their partial
//! sums. The code with which the compiler chooses layouts (`layout/projection.rs`, `program/local.rs`) is not used here, so that
//! the two can disagree.

use spmdc_abi::ReduceOp;
use spmdc_ir::op::Op;
use spmdc_ir::program::partial_sums::commutes_with_sum;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::rules::Effect;
use spmdc_layout::factors::{Factor, FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{AxisSet, Type};
use std::collections::BTreeMap;
use std::ops::Range;

/// The reason why a statement cannot run on its blocks, if it cannot.
pub fn misfit(func: &Func, mesh: &Mesh, (op, stmt): (&Op, &Stmt)) -> Option<String> {
    let rule = func.factors(op, stmt);
    let tensors = Tensors { func, mesh, stmt, rule: &rule };
    let sums = match kept_sums(func, op, stmt) {
        Ok(sums) => sums,
        Err(value) => return Some(format!("{} holds partial values", tensors.display(value))),
    };
    let partial = match tensors.partial(sums) {
        Ok(partial) => partial,
        Err(misfit) => return Some(misfit),
    };
    let mut reduced: BTreeMap<Vec<usize>, Vec<Vec<Range<usize>>>> = BTreeMap::new();
    for coordinates in tensors.devices(partial) {
        let held = match tensors.held(&coordinates) {
            Ok(held) => held,
            Err(misfit) => return Some(misfit),
        };
        if tensors.makes_nothing(&coordinates) {
            continue;
        }
        let outside = (0..coordinates.len()).filter(|&axis| !partial.contains(axis));
        let group = outside.map(|axis| coordinates[axis]).collect();
        reduced.entry(group).or_default().push(tensors.reduced(&held));
    }
    tensors.reduced_once(reduced.into_values(), partial)
}

/// The axes over which operands are partial sums so that the results are partial sums, too; an error for an operand that may not be
/// one.
pub fn kept_sums(func: &Func, op: &Op, stmt: &Stmt) -> Result<AxisSet, Value> {
    let args = func.types(&stmt.args);
    let sets: Vec<AxisSet> = args.iter().map(|ty| ty.sharding.unreduced).collect();
    let Some(first) = sets.iter().position(|set| !set.is_empty()) else { return Ok(AxisSet::EMPTY) };
    let all = sets.iter().fold(AxisSet::EMPTY, |all, &set| all.union(set));
    let is_sum = |ty: &Type| ty.sharding.unreduced.is_empty() || ty.sharding.combine == ReduceOp::Sum;
    let lies_so = stmt.results.iter().all(|&result| {
        let ty = func.ty(result);
        all.is_subset_of(ty.sharding.unreduced) && is_sum(ty)
    });
    let has_result = !stmt.results.is_empty() || shows_layouts(op);
    let holds = has_result && lies_so && args.iter().all(|ty| is_sum(ty)) && commutes_with_sum(op, &args, &sets);
    if holds { Ok(all) } else { Err(stmt.args[first]) }
}

/// Whether an op without results reads layouts alone, never elements.
fn shows_layouts(op: &Op) -> bool {
    matches!(op.rules().properties().effect, Effect::Layout)
}

/// The operands and results of a statement, and its rule.
struct Tensors<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    stmt: &'a Stmt,
    rule: &'a Factors,
}

/// The range of each factor that a device holds; None if no tensor decides.
type Held = Vec<Option<Range<usize>>>;

impl Tensors<'_> {
    fn display(&self, value: Value) -> String {
        format!("{value}: {}", self.func.ty(value).display(self.mesh))
    }

    /// Each dimension of each operand, then of each result: the number of the operand, the value, the dimension, its factors.
    fn dims(&self) -> impl Iterator<Item = (Option<usize>, Value, usize, &[usize])> {
        let operands = self.rule.operands.iter().zip(&self.stmt.args).enumerate();
        let operands = operands.map(|(at, (dims, &value))| (Some(at), value, dims));
        let results = self.rule.results.iter().zip(&self.stmt.results).map(|(dims, &value)| (None, value, dims));
        let all = operands.chain(results);
        all.flat_map(|(at, value, dims)| {
            dims.iter().enumerate().map(move |(dim, factors)| (at, value, dim, factors.as_slice()))
        })
    }

    /// The axes, besides `sums`, along which the results are partial.
    fn partial(&self, sums: AxisSet) -> Result<AxisSet, String> {
        let layouts = || self.stmt.results.iter().map(|&result| (result, &self.func.ty(result).sharding));
        let partial = layouts().next().map_or(AxisSet::EMPTY, |(_, layout)| layout.unreduced.minus(sums));
        match layouts().find(|(_, layout)| layout.unreduced.minus(sums) != partial) {
            Some((result, _)) => Err(format!("{} is not partial as the other results are", self.display(result))),
            None => Ok(partial),
        }
    }

    /// The coordinates of one device for each distinct combination of blocks or partial results.
    fn devices(&self, partial: AxisSet) -> impl Iterator<Item = Vec<usize>> {
        let split = self.dims().flat_map(|(_, value, dim, _)| &self.func.ty(value).sharding.dims[dim].axes);
        let axes: AxisSet = split.map(|&axis| usize::from(axis)).collect();
        let axes: Vec<u8> = axes.union(partial).iter().map(|axis| axis as u8).collect();
        (0..self.mesh.size_of(&axes)).map(move |position| self.mesh.positions(&axes, position))
    }

    /// The range of each factor that a device holds, the same in every tensor; otherwise an error.
    fn held(&self, coordinates: &[usize]) -> Result<Held, String> {
        let mut held: Held = vec![None; self.rule.factors.len()];
        let is_part = |operand: Option<usize>, dim| operand.and_then(|at| self.rule.part(at, dim));
        // If a device holds nothing of a dimension of several factors, other tensors decide which factor is empty.
        let mut empty = Vec::new();
        for (_, value, dim, factors) in self.dims().filter(|&(operand, _, dim, _)| is_part(operand, dim).is_none()) {
            let block = self.block(value, dim, coordinates);
            if block.is_empty() && factors.len() > 1 {
                empty.push((value, dim, factors));
                continue;
            }
            let sizes = || factors.iter().map(|&factor| self.rule.factors[factor].size).collect::<Vec<usize>>();
            let (one, several);
            let ranges = match factors {
                // The usual case needs no list.
                [_] => {
                    one = [block];
                    one.as_slice()
                }
                [] | [_, _, ..] => {
                    let Some(ranges) = as_box(&block, &sizes()) else {
                        return Err(format!("cannot run on the blocks of {}", self.display(value)));
                    };
                    several = ranges;
                    several.as_slice()
                }
            };
            for (&factor, range) in factors.iter().zip(ranges) {
                let Factor { size, kind } = self.rule.factors[factor];
                if kind == FactorKind::Whole && *range != (0..size) {
                    return Err(format!("requires the whole dimension {dim} of {}", self.display(value)));
                }
                if held[factor].as_ref().is_some_and(|known| known != range) {
                    return Err(self.disagrees(value, dim, coordinates));
                }
                held[factor] = Some(range.clone());
            }
        }
        let holds_some = |factor: &usize| held[*factor].as_ref().is_some_and(|range| !range.is_empty());
        if let Some((value, dim, _)) = empty.into_iter().find(|(_, _, factors)| factors.iter().all(holds_some)) {
            return Err(self.disagrees(value, dim, coordinates));
        }
        for (operand, value, dim, factors) in self.dims() {
            let (Some(part), [factor]) = (is_part(operand, dim), factors) else { continue };
            let Some(whole) = &held[*factor] else { return Err(self.disagrees(value, dim, coordinates)) };
            let size = self.func.ty(value).shape()[dim];
            // The first element at or after an index of the factor.
            let cut = |place: usize| place.saturating_sub(part.start).div_ceil(part.step.max(1)).min(size);
            if self.block(value, dim, coordinates) != normal(cut(whole.start)..cut(whole.end)) {
                return Err(self.disagrees(value, dim, coordinates));
            }
        }
        Ok(held)
    }

    /// The range of a dimension that a device holds.
    fn block(&self, value: Value, dim: usize, coordinates: &[usize]) -> Range<usize> {
        let ty = self.func.ty(value);
        let layout = &ty.sharding.dims[dim];
        normal(layout.range(ty.shape()[dim], self.mesh.position(&layout.axes, coordinates), self.mesh))
    }

    /// Whether a device holds no element of any result.
    fn makes_nothing(&self, coordinates: &[usize]) -> bool {
        let is_empty = |&result: &Value| {
            let rank = self.func.ty(result).rank();
            (0..rank).any(|dim| self.block(result, dim, coordinates).is_empty())
        };
        self.stmt.results.iter().all(is_empty)
    }

    fn disagrees(&self, value: Value, dim: usize, coordinates: &[usize]) -> String {
        let block = self.block(value, dim, coordinates);
        let names: Vec<&str> = self.mesh.axes.iter().map(|axis| axis.name.as_str()).collect();
        let at: Vec<String> = names.iter().zip(coordinates).map(|(name, at)| format!("{name}={at}")).collect();
        format!(
            "{} does not match the other operands and results: the device at {} has {}..{} of dimension {dim}",
            self.display(value),
            at.join(", "),
            block.start,
            block.end
        )
    }

    /// The factors that no result has: a device's range of them contributes to each element of its results.
    fn inner(&self) -> impl Iterator<Item = usize> {
        let outer: Vec<usize> = self.rule.results.iter().flatten().flatten().copied().collect();
        (0..self.rule.factors.len()).filter(move |factor| !self.rule.results.is_empty() && !outer.contains(factor))
    }

    /// The ranges that a device reduces.
    fn reduced(&self, held: &Held) -> Vec<Range<usize>> {
        self.inner().map(|factor| held[factor].clone().unwrap_or(0..0)).collect()
    }

    /// Checks that devices with partial results of the same elements reduce disjoint parts of the operands, and together all of
    /// them; the layouts of the results say how the results are combined.
    fn reduced_once(&self, groups: impl Iterator<Item = Vec<Vec<Range<usize>>>>, partial: AxisSet) -> Option<String> {
        let sizes: Vec<usize> = self.inner().map(|factor| self.rule.factors[factor].size).collect();
        if sizes.contains(&0) {
            return None;
        }
        let all: usize = sizes.iter().product();
        let volume = |part: &[Range<usize>]| part.iter().map(Range::len).product::<usize>();
        let mut splits = vec![false; sizes.len()];
        for mut parts in groups {
            parts.retain(|part| volume(part) > 0);
            let covered: usize = parts.iter().map(|part| volume(part)).sum();
            // Blocks are equal or disjoint.
            parts.sort_by_key(|part| part.iter().map(|range| range.start).collect::<Vec<_>>());
            if covered != all || parts.windows(2).any(|pair| pair[0] == pair[1]) {
                return Some("its results are not reduced over the devices that hold parts of them".to_string());
            }
            for part in parts {
                part.iter()
                    .zip(&sizes)
                    .zip(&mut splits)
                    .for_each(|((range, &size), split)| *split |= range.len() < size);
            }
        }
        if partial.is_empty() {
            return None;
        }
        let kinds =
            self.inner().zip(splits).filter(|(_, split)| *split).map(|(factor, _)| self.rule.factors[factor].kind);
        let mut layouts = self.stmt.results.iter().map(|&result| (result, &self.func.ty(result).sharding));
        let kinds: Vec<FactorKind> = kinds.collect();
        let wrong = layouts.find(|(_, layout)| kinds.iter().any(|kind| *kind != FactorKind::Reduce(layout.combine)));
        wrong.map(|(result, _)| format!("{} is not combined as the op reduces", self.display(result)))
    }
}

/// Makes all empty ranges equal.
fn normal(range: Range<usize>) -> Range<usize> {
    if range.is_empty() { 0..0 } else { range }
}

/// A range of a dimension as a range of each of its factors, major to minor; None if it is not a box.
pub fn as_box(block: &Range<usize>, sizes: &[usize]) -> Option<Vec<Range<usize>>> {
    let [_, minor @ ..] = sizes else { return (*block == (0..1)).then(Vec::new) };
    let row: usize = minor.iter().product();
    if minor.is_empty() {
        return Some(vec![block.clone()]);
    }
    if block.is_empty() {
        return None;
    }
    if block.start.is_multiple_of(row) && block.end.is_multiple_of(row) {
        let rows = block.start / row..block.end / row;
        return Some(std::iter::once(rows).chain(minor.iter().map(|&size| 0..size)).collect());
    }
    let first = block.start / row;
    if (block.end - 1) / row != first {
        return None;
    }
    let inner = as_box(&(block.start - first * row..block.end - first * row), minor)?;
    Some(std::iter::once(first..first + 1).chain(inner).collect())
}
