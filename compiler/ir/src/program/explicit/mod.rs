//! Explicit axes: the layout of a result follows from the operands' by one rule.
//!
//! A result's dimension has the axes of the corresponding dimensions of the operands: operands that split a factor must agree.
//! `f32[8@X,16] + f32[8,16@Y]` is an `f32[8@X,16@Y]`. Axes of summed dimensions vanish; only if both operands of a product are
//! split by the same axes along a summed dimension is there a choice, which the program must make. A dimension that an op cuts,
//! pads, rotates or joins keeps its axes.
//!
//! A choice that the program must make is a [`Mismatch`] with its possible [`Choice`](crate::program::choice::Choice)s.

mod choices;

use crate::mismatch::{Mismatch, called};
use crate::op::Op;
use crate::program::partial_sums::commutes_with_sum;
use crate::rules::{Combines, Typing};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::{AxisKind, Mesh};
use spmdc_layout::sharding::{DimSharding, Sharding, blocks_hold_whole};
use spmdc_layout::types::{ArrayType, AxisSet, Type};

use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;

/// The axes of each factor; for one operand empty where it does not split the factor.
pub type FactorAxes = Vec<Vec<u8>>;

/// The layouts of an op's results on explicit axes; dimensions are open if there are also auto axes. The choices of a mismatch are ordered
/// by their cost. Types also decide the unreduced and reduced axes among the axes `manual`.
pub fn layouts(
    op: &Op,
    args: &[&Type],
    results: &[ArrayType],
    manual: AxisSet,
    mesh: &Mesh,
) -> Result<Vec<Sharding>, Mismatch> {
    derived(op, args, results, manual, mesh).map_err(|mut mismatch| {
        if let (Typing::ByFactors(op), Code::E0301) = (op.rules().typing(), mismatch.code) {
            mismatch.choices.extend(op.further_choices(args, results, mesh));
        }
        mismatch.choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        mismatch
    })
}

/// As [`layouts`], without further choices, and with choices in no order.
pub fn derived(
    op: &Op,
    args: &[&Type],
    results: &[ArrayType],
    manual: AxisSet,
    mesh: &Mesh,
) -> Result<Vec<Sharding>, Mismatch> {
    let context = Context { op, args, results, manual, mesh, explicit: mesh.of_kind(AxisKind::Explicit) };
    let arrays: Vec<&ArrayType> = args.iter().map(|ty| &ty.array).collect();
    let rule = op.rules().factors(&arrays, &results.iter().collect::<Vec<_>>());
    let unreduced = context.unreduced()?;
    let operands: Vec<Vec<Vec<u8>>> = args.iter().map(|ty| context.explicit_axes(ty)).collect();
    if operands.iter().flatten().all(Vec::is_empty) && op.rules().properties().out().is_none() {
        let none = |array: &ArrayType| context.sharding(vec![Vec::new(); array.rank()], unreduced);
        return Ok(results.iter().map(none).collect());
    }
    if op.rules().properties().out().is_none() {
        context.check_gather(&operands)?;
    }
    let shares = context.shares(&rule, &operands)?;
    let contracted = context.contracted(&rule, &shares);
    if let Some(out) = op.rules().properties().out() {
        // `out=` decides, even if the operands leave a choice or disagree.
        let whole = |array: &ArrayType| context.sharding(vec![Vec::new(); array.rank()], unreduced);
        let partial = unreduced.union(context.summed(&rule, &shares));
        return context.chosen(out, partial, results.iter().map(whole).collect(), results);
    }
    let joined = context.joined(&rule, &shares)?;
    let mut layouts = Vec::new();
    for (position, array) in results.iter().enumerate() {
        let dims = context.result_dims(&rule, &joined, &operands, position, array)?;
        layouts.push(context.sharding(dims, unreduced));
    }
    for layout in &layouts {
        if let Some(axis) = layout.repeated_axis() {
            return Err(context.axis_in_two_dims(&rule, axis, contracted, layout, results));
        }
    }
    if contracted.is_empty() {
        return Ok(layouts);
    }
    Err(context.ambiguous_contraction(contracted, &layouts[0], &results[0]))
}

/// The explicit axes over which an op can produce partial sums: axes over which operands are partial, and axes that split a summed
/// dimension of an operand.
pub fn partial_axes(op: &Op, args: &[&Type], result: &ArrayType, mesh: &Mesh) -> AxisSet {
    let (manual, explicit) = (AxisSet::EMPTY, mesh.of_kind(AxisKind::Explicit));
    let context = Context { op, args, results: std::slice::from_ref(result), manual, mesh, explicit };
    let arrays: Vec<&ArrayType> = args.iter().map(|ty| &ty.array).collect();
    let rule = op.rules().factors(&arrays, &[result]);
    let operands: Vec<Vec<Vec<u8>>> = args.iter().map(|ty| context.explicit_axes(ty)).collect();
    let split = context.shares(&rule, &operands).map_or(AxisSet::EMPTY, |shares| context.summed(&rule, &shares));
    context.unreduced().map_or(split, |partial| partial.union(split))
}

struct Context<'a> {
    op: &'a Op,
    args: &'a [&'a Type],
    results: &'a [ArrayType],
    manual: AxisSet,
    mesh: &'a Mesh,
    explicit: AxisSet,
}

impl Context<'_> {
    /// The name of the op in messages.
    fn name(&self) -> String {
        let name = called(self.op.rules().name());
        match name.strip_prefix("the ") {
            Some(noun) => format!("this {noun}"),
            None => name,
        }
    }

    fn only_explicit(&self, axes: &[u8]) -> Vec<u8> {
        axes.iter().copied().filter(|&axis| self.explicit.contains(usize::from(axis))).collect()
    }

    fn explicit_axes(&self, ty: &Type) -> Vec<Vec<u8>> {
        ty.sharding.dims.iter().map(|dim| self.only_explicit(&dim.axes)).collect()
    }

    fn sharding(&self, dims: Vec<Vec<u8>>, unreduced: AxisSet) -> Sharding {
        let open = !self.mesh.of_kind(AxisKind::Auto).is_empty();
        let dims = dims.into_iter().map(|axes| DimSharding { axes, open, alignment: None }).collect();
        Sharding { dims, unreduced, reduced: self.reduced(), combine: ReduceOp::Sum }
    }

    /// The axes of each factor in each operand.
    fn shares(&self, rule: &Factors, operands: &[Vec<Vec<u8>>]) -> Result<Vec<FactorAxes>, Mismatch> {
        let mut shares = vec![vec![Vec::new(); rule.factors.len()]; operands.len()];
        for (operand, dims) in operands.iter().enumerate() {
            for (dim, axes) in dims.iter().enumerate().filter(|(_, axes)| !axes.is_empty()) {
                let factors = &rule.operands[operand][dim];
                if let [factor] = factors.as_slice() {
                    shares[operand][*factor].clone_from(axes);
                    continue;
                }
                let split = split_over_factors(rule, factors, axes, self.mesh);
                let Some(split) = split else { return Err(self.does_not_follow(operand, dim)) };
                for (&factor, axes) in factors.iter().zip(split) {
                    shares[operand][factor] = axes;
                }
            }
        }
        Ok(shares)
    }

    /// Refuses an element at a dynamic index of a split dimension: the device that holds it is unknown.
    fn check_gather(&self, operands: &[Vec<Vec<u8>>]) -> Result<(), Mismatch> {
        let Combines::Places(dims) = self.op.rules().properties().combines else { return Ok(()) };
        let Some(dim) = dims.into_iter().find(|&dim| !operands[0][dim].is_empty()) else { return Ok(()) };
        let axes = self.mesh.display_axes(&operands[0][dim]);
        let message = format!(
            "dimension {dim} of `{}` is split over {axes}, so it cannot be indexed: the element is on one device along {axes}",
            self.display(0)
        );
        let mut to = self.args[0].sharding.close();
        to.dims[dim].axes.clear();
        Err(Mismatch::new(Code::E0301, message).choices(vec![self.reshard(0, to)]))
    }

    /// Checks that the operands that split a factor agree.
    fn joined(&self, rule: &Factors, shares: &[FactorAxes]) -> Result<FactorAxes, Mismatch> {
        let mut joined: FactorAxes = vec![Vec::new(); rule.factors.len()];
        for (factor, axes) in joined.iter_mut().enumerate() {
            let mut from = None;
            for (operand, share) in shares.iter().enumerate().filter(|(_, share)| !share[factor].is_empty()) {
                match from {
                    None => {
                        axes.clone_from(&share[factor]);
                        from = Some(operand);
                    }
                    Some(_) if *axes == share[factor] => {}
                    Some(first) => return Err(self.disagreement(rule, factor, first, operand, shares)),
                }
            }
        }
        Ok(joined)
    }

    /// The axes along which both operands of a product are split in summed dimensions.
    fn contracted(&self, rule: &Factors, shares: &[FactorAxes]) -> AxisSet {
        let mut axes = AxisSet::EMPTY;
        for (factor, info) in rule.factors.iter().enumerate() {
            let split: Vec<&Vec<u8>> =
                shares.iter().map(|share| &share[factor]).filter(|axes| !axes.is_empty()).collect();
            if matches!(info.kind, FactorKind::Reduce(_)) && split.len() > 1 {
                axes = axes.union(split[0].iter().map(|&axis| usize::from(axis)).collect());
            }
        }
        axes
    }

    /// The axes along which some operand is split in summed dimensions.
    fn summed(&self, rule: &Factors, shares: &[FactorAxes]) -> AxisSet {
        let of = |share: &FactorAxes| {
            let summed =
                rule.factors.iter().zip(share).filter(|(info, _)| info.kind == FactorKind::Reduce(ReduceOp::Sum));
            summed.flat_map(|(_, axes)| axes).map(|&axis| usize::from(axis)).collect()
        };
        shares.iter().map(of).fold(AxisSet::EMPTY, AxisSet::union)
    }

    fn result_dims(
        &self,
        rule: &Factors,
        joined: &FactorAxes,
        operands: &[Vec<Vec<u8>>],
        result: usize,
        array: &ArrayType,
    ) -> Result<Vec<Vec<u8>>, Mismatch> {
        let mut dims = Vec::new();
        for (dim, factors) in rule.results[result].iter().enumerate() {
            let axes = match factors.as_slice() {
                // A dimension of one element is on all devices.
                [factor] if rule.factors[*factor].kind == FactorKind::Window && array.shape[dim] == 1 => Vec::new(),
                [factor] if joined[*factor].is_empty() && array.shape[dim] == 1 => Vec::new(),
                [factor] if joined[*factor].is_empty() => self.kept(rule, operands, *factor, dim, array)?,
                _ => match merge_factors(rule, factors, joined, self.mesh) {
                    Some(axes) => axes,
                    None => return Err(self.unmerged(rule, operands, factors)),
                },
            };
            dims.push(axes);
        }
        Ok(dims)
    }

    /// The axes of a dimension that the op cuts, pads, rotates or joins: the operands' axes.
    fn kept(
        &self,
        rule: &Factors,
        operands: &[Vec<Vec<u8>>],
        factor: usize,
        dim: usize,
        array: &ArrayType,
    ) -> Result<Vec<u8>, Mismatch> {
        let mut kept: Vec<u8> = Vec::new();
        let mut from = None;
        for (operand, dims) in operands.iter().enumerate() {
            if dims.len() != array.rank() || dims[dim].is_empty() || self.args[operand].shape()[dim] <= 1 {
                continue;
            }
            let [own] = rule.operands[operand][dim].as_slice() else { continue };
            let appears = |factors: &Vec<usize>| factors.contains(own);
            let is_own = *own != factor
                && rule.factors[*own].kind == FactorKind::Whole
                && !rule.results.iter().flatten().any(appears);
            if !is_own {
                continue;
            }
            match from {
                None => {
                    kept.clone_from(&dims[dim]);
                    from = Some(operand);
                }
                Some(_) if kept == dims[dim] => {}
                Some(first) => {
                    let message = format!(
                        "the operands of {} are split differently along dimension {dim}: `{}` and `{}`",
                        self.name(),
                        self.display(first),
                        self.display(operand)
                    );
                    let choices = vec![self.as_other(first, operand, dim), self.as_other(operand, first, dim)];
                    return Err(Mismatch::new(Code::E0302, message).choices(choices));
                }
            }
        }
        Ok(kept)
    }

    fn display(&self, operand: usize) -> String {
        let ty = self.args[operand];
        Type { sharding: ty.sharding.close(), ..ty.clone() }.display(self.mesh)
    }

    /// The layouts given by `out=`, if they are possible.
    fn chosen(
        &self,
        out: &Sharding,
        partial: AxisSet,
        mut layouts: Vec<Sharding>,
        results: &[ArrayType],
    ) -> Result<Vec<Sharding>, Mismatch> {
        let unreduced = out.unreduced.intersect(self.explicit);
        if !unreduced.is_subset_of(partial) {
            let axes = self.mesh.display_set(unreduced.minus(partial));
            let message = format!(
                "the result cannot be partial sums over {axes}: no operand is split over it where it is summed"
            );
            return Err(Mismatch::new(Code::E0301, message));
        }
        let dims = out.dims.iter().map(|dim| self.only_explicit(&dim.axes)).collect();
        if let (Some(layout), Some(_)) = (layouts.first_mut(), results.first()) {
            // No `out=` names manual axes.
            let unreduced = unreduced.union(layout.unreduced.intersect(self.manual));
            let reduced = out.reduced.intersect(self.explicit).union(layout.reduced.intersect(self.manual));
            *layout = Sharding { reduced, ..self.sharding(dims, unreduced) };
        }
        Ok(layouts)
    }
}

/// Partial sums and reduced values as operands.
impl Context<'_> {
    /// The axes along which types decide the unreduced and reduced states.
    fn decided(&self) -> AxisSet {
        self.explicit.union(self.manual)
    }

    /// The axes along which the results are reduced: the axes of an operand, unless devices hold different parts of another one along them.
    fn reduced(&self) -> AxisSet {
        let all = |of: fn(&Type) -> AxisSet| self.args.iter().map(|ty| of(ty)).fold(AxisSet::EMPTY, AxisSet::union);
        all(|ty| ty.sharding.reduced).intersect(self.decided()).minus(all(Type::distinct_axes))
    }

    /// The axes over which the results are partial sums: an op that commutes with the sum keeps them; others need the whole sum.
    fn unreduced(&self) -> Result<AxisSet, Mismatch> {
        let decided = self.decided();
        let sets: Vec<AxisSet> = self.args.iter().map(|ty| ty.sharding.unreduced.intersect(decided)).collect();
        let Some(first) = sets.iter().position(|set| !set.is_empty()) else { return Ok(AxisSet::EMPTY) };
        let other = self.args.iter().position(|ty| !ty.varying.intersect(sets[first]).is_empty());
        // Where another operand is split along the axis, each device has another part of it beside its summand.
        let is_split = self.args.iter().any(|ty| !ty.sharding.used_axes().intersect(sets[first]).is_empty());
        if commutes_with_sum(self.op, self.args, &sets) && other.is_none() && !is_split {
            return Ok(sets[first]);
        }
        let axes = self.mesh.display_set(sets[first]);
        let (name, shown) = (self.name(), self.display(first));
        let message = format!("{name} requires the whole sum, but `{shown}` holds partial sums over {axes}");
        if !sets[first].intersect(self.manual).is_empty() {
            let cast = other.map_or(String::new(), |other| {
                format!(
                    "; `pcast(..., {axes}, to=\"unreduced\")` converts `{}` to partial sums, too",
                    self.display(other)
                )
            });
            return Err(Mismatch::new(Code::E0306, message).help(format!("`psum(..., {axes})` is the whole sum{cast}")));
        }
        let with = |at: usize, unreduced: AxisSet| Sharding { unreduced, ..self.args[at].sharding.close() };
        let mut choices = vec![self.reshard(first, with(first, AxisSet::EMPTY))];
        // If all operands may be partial over the same axes, whole ones become partial: the first device along the axes keeps the
        // value.
        let are_whole =
            |&at: &usize| sets[at].union(self.args[at].sharding.used_axes().intersect(sets[first])).is_empty();
        let others: Vec<usize> = (0..sets.len()).filter(|&at| sets[at] != sets[first]).collect();
        if !others.is_empty()
            && others.iter().all(are_whole)
            && commutes_with_sum(self.op, self.args, &vec![sets[first]; sets.len()])
        {
            choices.push(self.reshards(others.into_iter().map(|at| (at, with(at, sets[first]))).collect()));
        }
        Err(Mismatch::new(Code::E0306, message).choices(choices))
    }
}

/// The axes of a dimension, distributed over its factors, major to minor; None if blocks would straddle factors.
pub fn split_over_factors(rule: &Factors, factors: &[usize], axes: &[u8], mesh: &Mesh) -> Option<Vec<Vec<u8>>> {
    let mut split = vec![Vec::new(); factors.len()];
    if is_whole_in_major(rule, factors, mesh.size_of(axes)) {
        split[0] = axes.to_vec();
        return Some(split);
    }
    let mut axes = axes.iter().copied().peekable();
    for (share, &factor) in split.iter_mut().zip(factors) {
        let mut rest = rule.factors[factor].size;
        while let Some(&axis) = axes.peek() {
            let size = mesh.axes[usize::from(axis)].size;
            if rest == 1 && size > 1 {
                break;
            }
            if !rest.is_multiple_of(size) {
                return None;
            }
            rest /= size;
            share.push(axis);
            axes.next();
        }
        if rest > 1 {
            break;
        }
    }
    axes.peek().is_none().then_some(split)
}

/// Whether blocks of a dimension are uneven blocks of its major factor.
fn is_whole_in_major(rule: &Factors, factors: &[usize], blocks: usize) -> bool {
    let [major, minor @ ..] = factors else { return false };
    let major = rule.factors[*major].size;
    let minor = minor.iter().map(|&factor| rule.factors[factor].size).product();
    !major.is_multiple_of(blocks) && major > 1 && blocks_hold_whole(major, minor, blocks)
}

/// The axes of a dimension of several factors; None where the blocks of the factors are not blocks of the dimension.
pub fn merge_factors(rule: &Factors, factors: &[usize], axes: &FactorAxes, mesh: &Mesh) -> Option<Vec<u8>> {
    let mut merged = Vec::new();
    let mut is_complete = true;
    for (position, &factor) in factors.iter().enumerate() {
        let size = rule.factors[factor].size;
        let blocks = mesh.size_of(&axes[factor]);
        if !axes[factor].is_empty() && !is_complete {
            return None;
        }
        // Uneven blocks of a factor are blocks of the whole dimension only for the first factor, and not always.
        let is_whole = position == 0 && is_whole_in_major(rule, factors, blocks);
        if position + 1 < factors.len() && !size.is_multiple_of(blocks) && !is_whole {
            return None;
        }
        merged.extend(&axes[factor]);
        is_complete = is_complete && blocks == size;
    }
    Some(merged)
}
