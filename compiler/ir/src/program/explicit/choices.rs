//! The errors about layouts that do not follow, and the edits of the program that resolve them, each with its cost.

use crate::mismatch::Mismatch;
use crate::program::choice::{Choice, ChoiceEdit, cost_of_move, in_turn, then};
use crate::program::explicit::{Context, FactorAxes, derived};
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, Type};

/// Messages: the error, and the possible edits with their costs.
impl Context<'_> {
    pub(super) fn axis_in_two_dims(
        &self,
        rule: &Factors,
        axis: u8,
        contracted: AxisSet,
        layout: &Sharding,
        results: &[ArrayType],
    ) -> Mismatch {
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
            let choices = holders.iter().map(|&at| {
                let mut others = holders.iter().filter(|&&other| other != at);
                let like = others.find_map(|&other| self.split_like(rule, axis, at, other, without(at)));
                self.reshard(at, like.unwrap_or_else(|| without(at)))
            });
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

    /// The layout `to` of an operand, with the axis on the dimension that another operand splits over it; None if the operand has none that
    /// can be split so.
    fn split_like(&self, rule: &Factors, axis: u8, operand: usize, other: usize, to: Sharding) -> Option<Sharding> {
        let mut there = self.args[other].sharding.dims.iter().zip(&rule.operands[other]);
        let (split, factors) = there.find(|(dim, _)| dim.axes.contains(&axis))?;
        let [factor] = factors.as_slice() else { return None };
        let is_part = |dim: usize| rule.parts.iter().any(|part| (part.operand, part.dim) == (operand, dim));
        let dim = rule.operands[operand].iter().position(|factors| factors.as_slice() == [*factor])?;
        let used = to.used_axes();
        let is_free = to.dims[dim].axes.is_empty() && split.axes.iter().all(|&axis| !used.contains(usize::from(axis)));
        let can_be_split = matches!(rule.factors[*factor].kind, FactorKind::Pass) && !is_part(dim) && is_free;
        can_be_split.then(|| {
            let mut to = to;
            to.dims[dim].axes.clone_from(&split.axes);
            to
        })
    }

    pub(super) fn disagreement(
        &self,
        rule: &Factors,
        factor: usize,
        first: usize,
        second: usize,
        shares: &[FactorAxes],
    ) -> Mismatch {
        let show = |operand: usize| self.mesh.display_axes(&shares[operand][factor]);
        let message = format!(
            "the operands of {} are `{}` and `{}`: a dimension is split over {} in one, and over {} in the other",
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
            let moves: Vec<(usize, Sharding)> = others.map(|(operand, _)| like(operand, wanted)).collect();
            let needed = moves.iter().map(|(operand, to)| {
                let needed = self.split_like_others(rule, *operand, to, shares);
                cost_of_move(self.args[*operand], &needed, self.mesh).1
            });
            let needed: f64 = needed.sum();
            let choice = self.reshards(moves);
            Choice { cost: choice.cost.min(needed), ..choice }
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

    /// The part of an operand in layout `to` that each device needs, where other operands split dimensions that it does not.
    fn split_like_others(&self, rule: &Factors, operand: usize, to: &Sharding, shares: &[FactorAxes]) -> Sharding {
        let mut needed = to.clone();
        for (dim, factors) in rule.operands[operand].iter().enumerate() {
            let [factor] = factors.as_slice() else { continue };
            let others = shares.iter().enumerate().filter(|(other, _)| *other != operand);
            let Some((_, share)) = others.into_iter().find(|(_, share)| !share[*factor].is_empty()) else { continue };
            let used = needed.used_axes();
            let is_free = share[*factor].iter().all(|&axis| !used.contains(usize::from(axis)));
            if needed.dims[dim].axes.is_empty() && is_free {
                needed.dims[dim].axes.clone_from(&share[*factor]);
            }
        }
        needed
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
            derived(self.op, &args, self.results, self.manual, self.mesh).ok().and_then(|mut layouts| layouts.pop());
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

    pub(super) fn as_other(&self, operand: usize, other: usize, dim: usize) -> Choice {
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
    pub(super) fn unmerged(&self, rule: &Factors, operands: &[Vec<Vec<u8>>], factors: &[usize]) -> Mismatch {
        let makes_up = |dim: &usize| {
            !operands[0][*dim].is_empty() && rule.operands[0][*dim].iter().any(|factor| factors.contains(factor))
        };
        // The last one: those before it may be split.
        let dim = (0..operands[0].len()).rev().find(makes_up).unwrap_or(0);
        self.does_not_follow(0, dim)
    }

    /// A dimension whose blocks are not blocks of the result.
    pub(super) fn does_not_follow(&self, operand: usize, dim: usize) -> Mismatch {
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

    pub(super) fn ambiguous_contraction(&self, contracted: AxisSet, layout: &Sharding, result: &ArrayType) -> Mismatch {
        let axes: Vec<u8> = contracted.iter().map(|axis| axis as u8).collect();
        let over = self.mesh.display_axes(&axes);
        let types: Vec<String> = (0..self.args.len()).map(|at| format!("`{}`", self.display(at))).collect();
        let message = format!(
            "the layout of {} is ambiguous: {} are both split over {over} where they are summed",
            self.name(),
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
            note: "no communication: each device keeps its partial sum".to_string(),
            cost: 0.0,
        });
        Mismatch::new(Code::E0301, message).choices(choices)
    }

    pub(super) fn reshards(&self, moves: Vec<(usize, Sharding)>) -> Choice {
        let mut moves: Vec<(usize, Sharding)> =
            moves.into_iter().map(|(operand, to)| (operand, consistent(to))).collect();
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

    pub(super) fn reshard(&self, operand: usize, to: Sharding) -> Choice {
        let to = consistent(to);
        let (note, cost) = cost_of_move(self.args[operand], &to, self.mesh);
        Choice { edit: ChoiceEdit::Reshard { operand, to }, note, cost }
    }
}

/// A layout in which no axis along which the value is split or partial is one along which it is reduced.
fn consistent(to: Sharding) -> Sharding {
    let reduced = to.reduced.minus(to.used_axes()).minus(to.unreduced);
    Sharding { reduced, ..to }
}
