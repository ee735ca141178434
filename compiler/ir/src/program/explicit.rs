//! Explicit axes: the layout of a result follows from the operands' by one rule.
//!
//! A result's dimension has the axes of the corresponding dimensions of the operands: operands that split a factor must agree.
//! `f32[8@X,16] + f32[8,16@Y]` is an `f32[8@X,16@Y]`. Axes of summed dimensions vanish; only if both operands of a product are
//! split by the same axes along a summed dimension is there a choice, which the program must make. A dimension that an op cuts,
//! pads, rotates or joins keeps its axes.
//!
//! A choice that the program must make is a [`Mismatch`] with its possible [`Choice`]s.

use crate::layout::factors::{FactorKind, Factors};
use crate::layout::mesh::{AxisKind, Mesh};
use crate::layout::sharding::{DimSharding, Sharding, blocks_hold_whole};
use crate::layout::types::{ArrayType, AxisSet, Type};
use crate::ops::reshape::Reshape;
use crate::ops::rules::Combines;
use crate::ops::{Mismatch, Op, called};
use crate::program::partial_sums::{FactorBounds, commutes_with_sum, magnitude_needed, passes_sums};
use crate::program::typing::explicit_part;
use crate::reshard;
use crate::reshard::step::ReshardStep;
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;

/// One way to make a layout unambiguous.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The change of the program.
    pub edit: ChoiceEdit,
    /// Its cost, in words.
    pub note: String,
    /// Maximum bytes received by any device.
    pub cost: f64,
}

impl Choice {
    /// `out=P(X, _)`, or `reshard(..., P(X, _))` with the operand's text if it is known.
    pub fn text(&self, operand: Option<&str>, mesh: &Mesh) -> String {
        match &self.edit {
            ChoiceEdit::Out(sharding) => format!("out={}", spaced(sharding, mesh)),
            ChoiceEdit::Reshard { to, .. } => format!("reshard({}, {})", operand.unwrap_or("..."), spaced(to, mesh)),
            ChoiceEdit::Reshards(moves) => {
                let moves = moves.iter().map(|(_, to)| format!("reshard(..., {})", spaced(to, mesh)));
                moves.collect::<Vec<_>>().join(" and ")
            }
        }
    }
}

/// A sharding with spaces, as in programs: `P(X, _)`.
pub fn spaced(sharding: &Sharding, mesh: &Mesh) -> String {
    sharding.display(mesh).replace(',', ", ")
}

/// The change of the program that makes a layout unambiguous.
#[derive(Clone, Debug, PartialEq)]
pub enum ChoiceEdit {
    /// `out=` on the call.
    Out(Sharding),
    /// `reshard` around an operand.
    Reshard {
        /// The position of the operand.
        operand: usize,
        /// Its layout after the change.
        to: Sharding,
    },
    /// `reshard` around several operands.
    Reshards(Vec<(usize, Sharding)>),
}

/// The axes of each factor; for one operand empty where it does not split the factor.
type FactorAxes = Vec<Vec<u8>>;

/// The layouts of an op's results on explicit axes; dimensions are open if there are auto axes, too. The choices of a mismatch are
/// ordered by their cost. `factors` are the bounds of the operands as factors of partial sums.
pub fn layouts(
    op: &Op,
    args: &[&Type],
    factors: &[FactorBounds],
    results: &[ArrayType],
    mesh: &Mesh,
) -> Result<Vec<Sharding>, Mismatch> {
    derived(op, args, factors, results, mesh).map_err(|mut mismatch| {
        if matches!(op, Op::Reshape(_)) && mismatch.code == Code::E0301 {
            mismatch.choices.extend(reshaped_choices(args[0], &results[0], mesh));
        }
        mismatch.choices.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        mismatch
    })
}

/// The layout of a reshape's operand on the explicit axes with which the result has layout `out`, and nothing moves.
fn before_reshape(from: &Type, result: &ArrayType, out: &Sharding, mesh: &Mesh) -> Option<Sharding> {
    let back = Op::Reshape(Reshape::new(&result.shape, from.shape()));
    let laid_out = Type { array: result.clone(), sharding: out.clone(), varying: AxisSet::EMPTY };
    let layout = derived(&back, &[&laid_out], &[], std::slice::from_ref(&from.array), mesh).ok()?.pop()?;
    // The layout must also lead back: a dimension of one element loses its axes, for example.
    let operand = Type { sharding: layout.clone(), ..from.clone() };
    let there = Op::Reshape(Reshape::new(from.shape(), &result.shape));
    let found = derived(&there, &[&operand], &[], std::slice::from_ref(result), mesh).ok()?.pop()?;
    (found.close().dims == on_explicit(out, mesh).dims).then_some(layout)
}

/// The part of a layout that the types decide, with closed dimensions.
fn on_explicit(sharding: &Sharding, mesh: &Mesh) -> Sharding {
    explicit_part(sharding, mesh).close()
}

/// If no layout of a reshape's result follows from its operand: a reshard of the operand to a layout from which one follows.
pub struct Detour {
    /// The layout of the operand then.
    pub operand: Sharding,
    /// The moves of the operand and of the result, in words.
    pub note: String,
    /// Maximum bytes received by any device.
    pub cost: f64,
}

/// Maximum number of layouts that are tried.
const MAX_DETOURS: usize = 64;

/// The cheapest detour to `out`.
pub fn around_reshape(from: &Type, result: &ArrayType, out: &Sharding, mesh: &Mesh) -> Option<Detour> {
    let from = Type { sharding: on_explicit(&from.sharding, mesh), ..from.clone() };
    let out = on_explicit(out, mesh);
    let detour = |dims: Vec<DimSharding>| {
        let layout = Sharding { dims, ..from.sharding.clone() };
        let operand = before_reshape(&from, result, &layout, mesh)?;
        let there = cost_of_move(&from, &operand.close(), mesh);
        let reshaped = Type { array: result.clone(), sharding: layout, varying: from.varying };
        let on = cost_of_move(&reshaped, &out, mesh);
        let (note, cost) = then(&there, &on);
        Some(Detour { operand, note, cost })
    };
    let tried = std::iter::once(out.dims.clone()).chain(dealt_out(&from.sharding, result.rank()));
    tried.filter_map(detour).min_by(|a, b| a.cost.total_cmp(&b.cost))
}

/// Layouts in which the axes of each dimension of an operand split one of `rank` dimensions, or none.
fn dealt_out(operand: &Sharding, rank: usize) -> Vec<Vec<DimSharding>> {
    let mut groups: Vec<&[u8]> =
        operand.dims.iter().map(|dim| dim.axes.as_slice()).filter(|axes| !axes.is_empty()).collect();
    let all = groups.concat();
    let too_many = u32::try_from(groups.len()).ok().and_then(|count| (rank + 1).checked_pow(count));
    if too_many.is_none_or(|count| count > MAX_DETOURS) {
        groups = vec![&all];
    }
    let mut layouts = vec![vec![DimSharding::closed(Vec::new()); rank]];
    for group in groups {
        let with = |layout: &Vec<DimSharding>, dim: usize| {
            let mut layout = layout.clone();
            layout[dim].axes.extend(group);
            layout
        };
        let more = layouts.iter().flat_map(|layout| (0..rank).map(move |dim| with(layout, dim)));
        layouts = layouts.iter().cloned().chain(more).collect();
    }
    layouts
}

/// The possible layouts of a reshape's result if none follows: all axes of the operand on one dimension each, or none.
fn reshaped_choices(from: &Type, result: &ArrayType, mesh: &Mesh) -> Vec<Choice> {
    let own = on_explicit(&from.sharding, mesh);
    let axes: Vec<u8> = own.dims.iter().flat_map(|dim| dim.axes.clone()).collect();
    let whole = vec![DimSharding::closed(Vec::new()); result.rank()];
    let mut outs = vec![whole.clone()];
    for dim in 0..result.rank() {
        let mut dims = whole.clone();
        dims[dim].axes.clone_from(&axes);
        outs.push(dims);
    }
    let outs = outs.into_iter().map(|dims| Sharding { dims, ..own.clone() });
    let choice = |out: Sharding| {
        before_reshape(from, result, &out, mesh)?;
        let Detour { note, cost, .. } = around_reshape(from, result, &out, mesh)?;
        Some(Choice { edit: ChoiceEdit::Out(out), note, cost })
    };
    outs.filter_map(choice).collect()
}

fn derived(
    op: &Op,
    args: &[&Type],
    factors: &[FactorBounds],
    results: &[ArrayType],
    mesh: &Mesh,
) -> Result<Vec<Sharding>, Mismatch> {
    let context = Context { op, args, factors, results, mesh, explicit: mesh.of_kind(AxisKind::Explicit) };
    let arrays: Vec<&ArrayType> = args.iter().map(|ty| &ty.array).collect();
    let rule = op.rules().factors(&arrays, &results.iter().collect::<Vec<_>>());
    let unreduced = context.unreduced()?;
    let operands: Vec<Vec<Vec<u8>>> = args.iter().map(|ty| context.explicit_axes(ty)).collect();
    if operands.iter().flatten().all(Vec::is_empty) && op.rules().properties().out().is_none() {
        let none = |array: &ArrayType| context.sharding(vec![Vec::new(); array.rank()], unreduced);
        return Ok(results.iter().map(none).collect());
    }
    context.check_gather(&operands)?;
    let shares = context.shares(&rule, &operands)?;
    let contracted = context.contracted(&rule, &shares);
    if let Some(out) = op.rules().properties().out() {
        // `out=` decides, even if the operands leave a choice or disagree.
        let whole = |array: &ArrayType| context.sharding(vec![Vec::new(); array.rank()], unreduced);
        return context.chosen(out, contracted, results.iter().map(whole).collect(), results);
    }
    let joined = context.joined(&rule, &shares)?;
    let mut layouts = Vec::new();
    for (position, array) in results.iter().enumerate() {
        let dims = context.result_dims(&rule, &joined, &operands, position, array)?;
        layouts.push(context.sharding(dims, unreduced));
    }
    for layout in &layouts {
        if let Some(axis) = layout.repeated_axis() {
            return Err(context.axis_in_two_dims(axis, contracted, layout, results));
        }
    }
    if contracted.is_empty() {
        return Ok(layouts);
    }
    Err(context.ambiguous_contraction(contracted, &layouts[0], &results[0]))
}

struct Context<'a> {
    op: &'a Op,
    args: &'a [&'a Type],
    factors: &'a [FactorBounds],
    results: &'a [ArrayType],
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
        Sharding { dims, unreduced, combine: ReduceOp::Sum }
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
            "dimension {dim} of `{}` is indexed while it is split over {axes}: the element is on one device along {axes}",
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
        contracted: AxisSet,
        mut layouts: Vec<Sharding>,
        results: &[ArrayType],
    ) -> Result<Vec<Sharding>, Mismatch> {
        let unreduced = out.unreduced.intersect(self.explicit);
        if !unreduced.is_subset_of(contracted) {
            let axes = self.mesh.display_set(unreduced.minus(contracted));
            let message = format!(
                "there are no partial sums over {axes} here: not both operands are split over it where they are summed"
            );
            return Err(Mismatch::new(Code::E0301, message));
        }
        let dims = out.dims.iter().map(|dim| self.only_explicit(&dim.axes)).collect();
        if let (Some(layout), Some(_)) = (layouts.first_mut(), results.first()) {
            *layout = self.sharding(dims, unreduced);
        }
        Ok(layouts)
    }
}

/// Partial sums as operands.
impl Context<'_> {
    /// The axes over which the results are partial sums: an op that commutes with the sum, and makes no partial sum larger, keeps
    /// them; others need the whole sum.
    fn unreduced(&self) -> Result<AxisSet, Mismatch> {
        let sets: Vec<AxisSet> = self.args.iter().map(|ty| ty.sharding.unreduced.intersect(self.explicit)).collect();
        let Some(first) = sets.iter().position(|set| !set.is_empty()) else { return Ok(AxisSet::EMPTY) };
        if passes_sums(self.op, self.args, &sets, self.factors) {
            return Ok(sets[first]);
        }
        let axes = self.mesh.display_set(sets[first]);
        let (name, shown) = (self.name(), self.display(first));
        let commutes = commutes_with_sum(self.op, self.args, &sets);
        let needed = if commutes { magnitude_needed(self.op) } else { "the whole sum" };
        let which = if commutes { ", which may be larger than their sum" } else { "" };
        let message = format!("{name} needs {needed}, but `{shown}` is partial sums over {axes}{which}");
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

/// Messages: the error, and the possible edits with their costs.
impl Context<'_> {
    fn axis_in_two_dims(&self, axis: u8, contracted: AxisSet, layout: &Sharding, results: &[ArrayType]) -> Mismatch {
        let name = self.mesh.name(axis);
        let holders: Vec<usize> =
            (0..self.args.len()).filter(|&at| self.args[at].sharding.used_axes().contains(usize::from(axis))).collect();
        let types: Vec<String> = holders.iter().map(|&at| format!("`{}`", self.display(at))).collect();
        let message = format!(
            "{} would split two dimensions of its result over `{name}`: the operands are {}",
            self.name(),
            types.join(" and ")
        );
        let without = |at: usize| {
            let mut to = self.args[at].sharding.close();
            to.dims.iter_mut().for_each(|dim| dim.axes.retain(|&other| other != axis));
            to
        };
        if contracted.is_empty() {
            let choices = holders.iter().map(|&at| self.reshard(at, without(at)));
            return Mismatch::new(Code::E0302, message).choices(choices.collect());
        }
        // The edit must also decide about the sum, so it names the output's layout: with the axis on one of the dimensions that
        // want it.
        let wanting: Vec<usize> = (0..layout.dims.len()).filter(|&dim| layout.dims[dim].axes.contains(&axis)).collect();
        let choices = wanting.iter().map(|&kept| {
            let mut to = layout.close();
            for (_, dim) in to.dims.iter_mut().enumerate().filter(|(dim, _)| *dim != kept) {
                dim.axes.retain(|&other| other != axis);
            }
            // The dimensions of the first operand come first, and the other operand moves.
            let moved = if kept == wanting[0] { holders[holders.len() - 1] } else { holders[0] };
            let sharding = to.clone().with_unreduced(contracted, ReduceOp::Sum);
            let partial = Type { array: results[0].clone(), sharding, varying: AxisSet::EMPTY };
            let operand = cost_of_move(self.args[moved], &without(moved), self.mesh);
            let sum = cost_of_move(&partial, &to, self.mesh);
            let (note, cost) = then(&operand, &sum);
            Choice { edit: ChoiceEdit::Out(to), note, cost }
        });
        Mismatch::new(Code::E0302, message).choices(choices.collect())
    }

    fn disagreement(
        &self,
        rule: &Factors,
        factor: usize,
        first: usize,
        second: usize,
        shares: &[FactorAxes],
    ) -> Mismatch {
        let show = |operand: usize| self.mesh.display_axes(&shares[operand][factor]);
        let message = format!(
            "the operands of {} are `{}` and `{}`: one is split over {} where the other is split over {}",
            self.name(),
            self.display(first),
            self.display(second),
            show(first),
            show(second)
        );
        let like = |operand: usize, wanted: &Vec<u8>| {
            let mut to = self.args[operand].sharding.close();
            for (dim, factors) in to.dims.iter_mut().zip(&rule.operands[operand]) {
                if factors.contains(&factor) {
                    dim.axes.clone_from(wanted);
                } else {
                    dim.axes.retain(|axis| !wanted.contains(axis));
                }
            }
            (operand, to)
        };
        // All operands split there get the layout of one of them.
        let all_as = |wanted: &Vec<u8>| {
            let split = shares.iter().enumerate().filter(|(_, share)| !share[factor].is_empty());
            let others = split.filter(|(_, share)| share[factor] != *wanted);
            self.reshards(others.map(|(operand, _)| like(operand, wanted)).collect())
        };
        let mut wanted: Vec<&Vec<u8>> = Vec::new();
        for share in shares.iter().map(|share| &share[factor]).filter(|axes| !axes.is_empty()) {
            if !wanted.contains(&share) {
                wanted.push(share);
            }
        }
        let choices = match rule.factors[factor].kind {
            // If both were split by the same axes, the sum would be ambiguous; with one operand whole, or by `out=`, it is not.
            FactorKind::Reduce(_) => {
                let [a, b] = [first, second].map(|operand| self.summed_whole(rule, factor, operand));
                let alike = [(first, second), (second, first)]
                    .map(|(operand, other)| (like(operand, &shares[other][factor]), &shares[other][factor]));
                let out = self.summed_alike(&a, &b, alike);
                [Some(a.0), Some(b.0), out].into_iter().flatten().collect()
            }
            FactorKind::Pass | FactorKind::Window | FactorKind::Whole => wanted.into_iter().map(all_as).collect(),
        };
        Mismatch::new(Code::E0302, message).choices(choices)
    }

    /// The operand whole along the summed dimension, then a sum over the axes that split the other operand there; with the layout
    /// of the result.
    fn summed_whole(&self, rule: &Factors, factor: usize, operand: usize) -> (Choice, Option<Sharding>) {
        let mut to = self.args[operand].sharding.close();
        for (dim, factors) in to.dims.iter_mut().zip(&rule.operands[operand]) {
            if factors.contains(&factor) {
                dim.axes.clear();
            }
        }
        let moved = Type { sharding: to.clone(), ..self.args[operand].clone() };
        let mut args = self.args.to_vec();
        args[operand] = &moved;
        let mut choice = self.reshard(operand, to);
        let after = Context { args: &args, ..*self };
        let operands: Vec<Vec<Vec<u8>>> = args.iter().map(|ty| after.explicit_axes(ty)).collect();
        let layout =
            derived(self.op, &args, self.factors, self.results, self.mesh).ok().and_then(|mut layouts| layouts.pop());
        // If the operands disagree elsewhere, too, this is the first of several edits.
        let (Some(layout), Ok(shares)) = (layout, after.shares(rule, &operands)) else { return (choice, None) };
        let layout = layout.close();
        let summed = shares.iter().flat_map(|share| rule.factors.iter().zip(share));
        let summed = summed.filter(|(info, _)| matches!(info.kind, FactorKind::Reduce(_)));
        let axes = summed.flat_map(|(_, axes)| axes).map(|&axis| usize::from(axis)).collect();
        (choice.note, choice.cost) = then(&(choice.note, choice.cost), &self.sum_over(axes, &layout));
        (choice, Some(layout))
    }

    /// `out=` with the layout of the result if one operand is whole: by the cheapest edit, which may also split one operand by the
    /// axes of the other.
    fn summed_alike(
        &self,
        a: &(Choice, Option<Sharding>),
        b: &(Choice, Option<Sharding>),
        alike: [((usize, Sharding), &Vec<u8>); 2],
    ) -> Option<Choice> {
        let layout = a.1.as_ref().or(b.1.as_ref())?;
        let whole = [a, b].into_iter().filter(|(_, other)| other.as_ref() == Some(layout));
        let mut ways: Vec<(String, f64)> = whole.map(|(choice, _)| (choice.note.clone(), choice.cost)).collect();
        for ((operand, to), wanted) in alike {
            if layout.dims.iter().flat_map(|dim| &dim.axes).any(|axis| wanted.contains(axis)) {
                continue;
            }
            let moved = cost_of_move(self.args[operand], &to, self.mesh);
            let sum = self.sum_over(wanted.iter().map(|&axis| usize::from(axis)).collect(), layout);
            ways.push(then(&moved, &sum));
        }
        let (note, cost) = ways.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Choice { edit: ChoiceEdit::Out(layout.clone()), note, cost })
    }

    /// The cost of summing the parts of the result over these axes.
    fn sum_over(&self, axes: AxisSet, layout: &Sharding) -> (String, f64) {
        let sharding = layout.clone().with_unreduced(layout.unreduced.union(axes), ReduceOp::Sum);
        let partial = Type { array: self.results[0].clone(), sharding, varying: AxisSet::EMPTY };
        cost_of_move(&partial, layout, self.mesh)
    }

    fn as_other(&self, operand: usize, other: usize, dim: usize) -> Choice {
        let mut to = self.args[operand].sharding.close();
        let wanted = self.only_explicit(&self.args[other].sharding.dims[dim].axes);
        for (position, own) in to.dims.iter_mut().enumerate() {
            if position == dim {
                own.axes.clone_from(&wanted);
            } else {
                own.axes.retain(|axis| !wanted.contains(axis));
            }
        }
        self.reshard(operand, to)
    }

    /// The split dimensions of the operand do not make up a dimension of the result.
    fn unmerged(&self, rule: &Factors, operands: &[Vec<Vec<u8>>], factors: &[usize]) -> Mismatch {
        let makes_up = |dim: &usize| {
            !operands[0][*dim].is_empty() && rule.operands[0][*dim].iter().any(|factor| factors.contains(factor))
        };
        // The last one: those before it may be split.
        let dim = (0..operands[0].len()).rev().find(makes_up).unwrap_or(0);
        self.does_not_follow(0, dim)
    }

    /// A dimension whose blocks are not blocks of the result.
    fn does_not_follow(&self, operand: usize, dim: usize) -> Mismatch {
        let message = format!(
            "the layout of {} does not follow from `{}`: the blocks of dimension {dim} are not blocks of the result",
            self.name(),
            self.display(operand)
        );
        let mut to = self.args[operand].sharding.close();
        if let Some(dim) = to.dims.get_mut(dim) {
            dim.axes.clear();
        }
        Mismatch::new(Code::E0301, message).choices(vec![self.reshard(operand, to)])
    }

    fn ambiguous_contraction(&self, contracted: AxisSet, layout: &Sharding, result: &ArrayType) -> Mismatch {
        let axes: Vec<u8> = contracted.iter().map(|axis| axis as u8).collect();
        let over = self.mesh.display_axes(&axes);
        let types: Vec<String> = (0..self.args.len()).map(|at| format!("`{}`", self.display(at))).collect();
        let message = format!(
            "the layout of this product is ambiguous: {} are both split over {over} where they are summed",
            types.join(" and ")
        );
        let layout = layout.close();
        let sharding = layout.clone().with_unreduced(contracted, ReduceOp::Sum);
        let partial = Type { array: result.clone(), sharding, varying: AxisSet::EMPTY };
        let out = |to: Sharding| {
            let (note, cost) = cost_of_move(&partial, &to, self.mesh);
            Choice { edit: ChoiceEdit::Out(to), note, cost }
        };
        let mut choices = vec![out(layout.clone())];
        for dim in 0..result.rank() {
            let mut to = layout.clone();
            to.dims[dim].axes.extend(&axes);
            choices.push(out(to));
        }
        let kept = layout.with_unreduced(contracted, ReduceOp::Sum);
        choices.push(Choice {
            edit: ChoiceEdit::Out(kept),
            note: "nothing moves: each device keeps its partial sum".to_string(),
            cost: 0.0,
        });
        Mismatch::new(Code::E0301, message).choices(choices)
    }

    fn reshards(&self, mut moves: Vec<(usize, Sharding)>) -> Choice {
        if moves.len() == 1
            && let Some((operand, to)) = moves.pop()
        {
            return self.reshard(operand, to);
        }
        let costs: Vec<(String, f64)> =
            moves.iter().map(|(operand, to)| cost_of_move(self.args[*operand], to, self.mesh)).collect();
        Choice {
            edit: ChoiceEdit::Reshards(moves),
            note: in_turn(costs.iter().map(|(note, _)| note.as_str())),
            cost: costs.iter().map(|(_, cost)| cost).sum(),
        }
    }

    fn reshard(&self, operand: usize, to: Sharding) -> Choice {
        let (note, cost) = cost_of_move(self.args[operand], &to, self.mesh);
        Choice { edit: ChoiceEdit::Reshard { operand, to }, note, cost }
    }
}

/// Several costs in one line.
fn in_turn<'a>(notes: impl Iterator<Item = &'a str>) -> String {
    let notes: Vec<&str> = notes.filter(|note| *note != NOTHING_MOVES).collect();
    if notes.is_empty() { NOTHING_MOVES.to_string() } else { notes.join(", then ") }
}

/// Two moves, one after the other.
fn then(first: &(String, f64), second: &(String, f64)) -> (String, f64) {
    (in_turn([first.0.as_str(), second.0.as_str()].into_iter()), first.1 + second.1)
}

const NOTHING_MOVES: &str = "nothing moves";

/// The cost of a reshard: in one line, and as the maximum bytes received by any device.
pub fn cost_of_move(ty: &Type, to: &Sharding, mesh: &Mesh) -> (String, f64) {
    let mut from = ty.sharding.close();
    let mut steps = Vec::new();
    let plan = reshard::plan(&ty.array, &from, to, mesh);
    for step in plan.steps {
        if let ReshardStep::Collective(kind) = step.step {
            let group = mesh.display_set(reshard::group(&ty.array, &from, &step.to, mesh));
            let [before, after] = [&from, &step.to].map(|at| Type { sharding: at.clone(), ..ty.clone() });
            let operand = reshard::traffic(kind, &before, &after, mesh).operand;
            let bytes = operand.iter().product::<usize>() * ty.dtype().size();
            steps.push(format!("one {} over {group}, {bytes} bytes per device", kind.name()));
        }
        from = step.to;
    }
    (in_turn(steps.iter().map(String::as_str)), plan.cost)
}

/// The axes of a dimension, distributed over its factors, major to minor; None if blocks would straddle factors.
fn split_over_factors(rule: &Factors, factors: &[usize], axes: &[u8], mesh: &Mesh) -> Option<Vec<Vec<u8>>> {
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
fn merge_factors(rule: &Factors, factors: &[usize], axes: &FactorAxes, mesh: &Mesh) -> Option<Vec<u8>> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::layout::factors::Factor;

    fn mesh() -> Mesh {
        let axis = |name: &str, size| crate::layout::mesh::Axis::new(name, size, AxisKind::Explicit);
        Mesh { axes: vec![axis("X", 2), axis("Y", 4)], ..Mesh::default() }
    }

    fn rule(sizes: &[usize]) -> Factors {
        let factors = sizes.iter().map(|&size| Factor { size, kind: FactorKind::Pass }).collect();
        Factors { factors, ..Factors::default() }
    }

    #[test]
    fn axes_of_a_dimension_go_to_its_factors() {
        let rule = rule(&[2, 8]);
        let split = |axes: &[u8]| split_over_factors(&rule, &[0, 1], axes, &mesh());
        assert_eq!(split(&[0]), Some(vec![vec![0], vec![]]));
        assert_eq!(split(&[0, 1]), Some(vec![vec![0], vec![1]]));
        assert_eq!(split(&[1]), None);
    }

    #[test]
    fn factors_merge_where_blocks_are_blocks() {
        let rule = rule(&[2, 8]);
        let merge = |axes: [&[u8]; 2]| merge_factors(&rule, &[0, 1], &axes.map(<[u8]>::to_vec).to_vec(), &mesh());
        assert_eq!(merge([&[0], &[]]), Some(vec![0]));
        assert_eq!(merge([&[0], &[1]]), Some(vec![0, 1]));
        assert_eq!(merge([&[], &[1]]), None);
    }
}
