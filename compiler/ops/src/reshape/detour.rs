//! Layouts of reshapes on explicit axes, where none follows from the operand.

use spmdc_ir::op::Op;
use spmdc_ir::program::choice::{Choice, ChoiceEdit, cost_of_move, then};
use spmdc_ir::program::explicit::derived;
use spmdc_layout::explicit::explicit_part;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{ArrayType, AxisSet, Type};

/// A reshape whose layouts are looked for.
pub struct Reshaping<'r> {
    /// The operand.
    pub from: &'r Type,
    /// The result, without a layout.
    pub result: &'r ArrayType,
    /// The mesh that the layouts are of.
    pub mesh: &'r Mesh,
    /// The op that makes an array of the second shape from one of the first.
    pub op: fn(&[usize], &[usize]) -> Op,
}

impl Reshaping<'_> {
    /// The layout of the operand on the explicit axes with which the result has layout `out`, and nothing moves.
    fn before(&self, out: &Sharding) -> Option<Sharding> {
        let Reshaping { from, result, mesh, op } = self;
        let back = op(&result.shape, from.shape());
        let laid_out = Type { array: (*result).clone(), sharding: out.clone(), varying: AxisSet::EMPTY };
        let layout =
            derived(&back, &[&laid_out], std::slice::from_ref(&from.array), AxisSet::EMPTY, mesh).ok()?.pop()?;
        // The layout must also lead back: a dimension of one element loses its axes, for example.
        let operand = Type { sharding: layout.clone(), ..(*from).clone() };
        let there = op(from.shape(), &result.shape);
        let found = derived(&there, &[&operand], std::slice::from_ref(*result), AxisSet::EMPTY, mesh).ok()?.pop()?;
        (found.close().dims == on_explicit(out, mesh).dims).then_some(layout)
    }

    /// The cheapest detour to `out`.
    pub fn detour(&self, out: &Sharding) -> Option<Detour> {
        let Reshaping { result, mesh, .. } = *self;
        let from = Type { sharding: on_explicit(&self.from.sharding, mesh), ..self.from.clone() };
        let reshaping = Reshaping { from: &from, ..*self };
        let out = on_explicit(out, mesh);
        let detour = |dims: Vec<DimSharding>| {
            let layout = Sharding { dims, ..from.sharding.clone() };
            let operand = reshaping.before(&layout)?;
            let there = cost_of_move(&from, &operand.close(), mesh);
            let reshaped = Type { array: result.clone(), sharding: layout, varying: from.varying };
            let on = cost_of_move(&reshaped, &out, mesh);
            let (note, cost) = then(&there, &on);
            Some(Detour { operand, note, cost })
        };
        let tried = std::iter::once(out.dims.clone()).chain(dealt_out(&from.sharding, result.rank()));
        tried.filter_map(detour).min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    /// The possible layouts of the result if none follows: all axes of the operand on one dimension each, or none.
    pub fn choices(&self) -> Vec<Choice> {
        let own = on_explicit(&self.from.sharding, self.mesh);
        let axes: Vec<u8> = own.dims.iter().flat_map(|dim| dim.axes.clone()).collect();
        let whole = vec![DimSharding::closed(Vec::new()); self.result.rank()];
        let mut outs = vec![whole.clone()];
        for dim in 0..self.result.rank() {
            let mut dims = whole.clone();
            dims[dim].axes.clone_from(&axes);
            outs.push(dims);
        }
        let outs = outs.into_iter().map(|dims| Sharding { dims, ..own.clone() });
        let choice = |out: Sharding| {
            self.before(&out)?;
            let Detour { note, cost, .. } = self.detour(&out)?;
            Some(Choice { edit: ChoiceEdit::Out(out), note, cost })
        };
        outs.filter_map(choice).collect()
    }
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
