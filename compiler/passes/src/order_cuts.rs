//! Takes elements at dynamic positions and slices of one array in the order that moves the fewest bytes.
//!
//! ```text
//! let s: f32[2000,1@X,128] = x[:, 0:1, :];                  // x: f32[2000,64@X,128]
//! let y: f32[1,128] = index(s, k, dims=(0,));
//! =>
//! let r: f32[64@X,128] = index(x, k, dims=(0,));
//! let y: f32[1,128] = r[0:1, :];
//! ```
//!
//! `x[k, 0]` slices first and `x[k][0]` indexes first, and both mean the same. A cut of unsplit dimensions moves no data, so it comes
//! first, and the other cut then moves less. If both cuts or neither are of split dimensions, the one that leaves fewer elements is first.
//!
//! It runs when layouts are known, before reshards are inserted.

use spmdc_ir::program::build::Builder;
use spmdc_ir::program::{Block, Module, Stage, Stmt, Value};
use spmdc_ir::rules::Combines;
use spmdc_layout::factors::Factors;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, Type};
use spmdc_ops::slice::{Slice, SliceRange};
use std::collections::BTreeMap;

/// Orders the cuts of arrays. The module stays at its stage.
pub fn order_cuts(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Propagated, "the layouts of all arrays are known");
    let mut uses = vec![0; module.func.values.len()];
    module.func.body.each_use(&mut |value| uses[value.0 as usize] += 1);
    let mut body = std::mem::take(&mut module.func.body);
    let mut cuts = CutOrder { module: &mut module, uses };
    cuts.block(&mut body);
    module.func.body = body;
    module
}

struct CutOrder<'m> {
    module: &'m mut Module,
    uses: Vec<u32>,
}

/// A slice and a statement that takes elements at dynamic positions; one has the result of the other as its array.
struct CutPair<'s> {
    slice: &'s Stmt,
    places: &'s Stmt,
    slice_is_first: bool,
}

impl CutOrder<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut made: Vec<Option<Stmt>> = Vec::with_capacity(block.stmts.len());
        let mut makers = BTreeMap::new();
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.blocks_mut().for_each(|inner| self.block(inner));
            self.push(stmt, &mut made, &mut makers);
        }
        block.stmts = made.into_iter().flatten().collect();
    }

    /// Adds a statement, after the statements that should precede it.
    fn push(&mut self, stmt: Stmt, made: &mut Vec<Option<Stmt>>, makers: &mut BTreeMap<Value, usize>) {
        let maker = stmt.args.first().and_then(|arg| makers.get(arg)).copied();
        let swapped = maker.and_then(|at| self.swapped(made[at].as_ref()?, &stmt));
        match (maker, swapped) {
            (Some(at), Some([first, second])) => {
                made[at] = None;
                self.uses.resize(self.module.func.values.len(), 1);
                self.push(first, made, makers);
                self.push_here(second, made, makers);
            }
            _ => self.push_here(stmt, made, makers),
        }
    }

    fn push_here(&mut self, stmt: Stmt, made: &mut Vec<Option<Stmt>>, makers: &mut BTreeMap<Value, usize>) {
        if ranges(&stmt).is_some() || takes_places(&stmt) {
            makers.insert(stmt.results[0], made.len());
        }
        made.push(Some(stmt));
    }

    /// Both statements in the other order, if that is better.
    fn swapped(&mut self, first: &Stmt, second: &Stmt) -> Option<[Stmt; 2]> {
        if self.uses[first.results[0].0 as usize] != 1 {
            return None;
        }
        let pair = match (ranges(first).is_some(), ranges(second).is_some()) {
            (true, false) if takes_places(second) => CutPair { slice: first, places: second, slice_is_first: true },
            (false, true) if takes_places(first) => CutPair { slice: second, places: first, slice_is_first: false },
            _ => return None,
        };
        let plain = |value: Value| {
            let Type { array, sharding, .. } = self.module.func.ty(value);
            !array.is_stream && sharding.unreduced.is_empty() && !sharding.is_aligned()
        };
        if ![first.args[0], first.results[0], second.results[0]].into_iter().all(plain) {
            return None;
        }
        self.turned(&pair, first.args[0], second.results[0])
    }

    /// The pair in the other order: from `x` to `result`, with another array between them.
    fn turned(&mut self, pair: &CutPair<'_>, x: Value, result: Value) -> Option<[Stmt; 2]> {
        let (func, mesh) = (&mut self.module.func, &self.module.mesh);
        let (slice, op) = (ranges(pair.slice)?, pair.places.op()?);
        let rule = func.factors(op, pair.places);
        let kept = kept_dims(&rule);
        let (from, to) = (func.ty(x).clone(), func.ty(result).clone());
        let mut cut = Vec::new();
        for (dim, &(range, _)) in slice.iter().enumerate().filter(|(_, (range, size))| !range.is_all(*size)) {
            let of = |&&(own, of): &&(usize, usize)| if pair.slice_is_first { own == dim } else { of == dim };
            cut.push((*kept.iter().find(of)?, range));
        }
        let (mut sliced, mut taken) = (from.shape().to_vec(), to.shape().to_vec());
        for &((own, of), range) in &cut {
            (sliced[own], taken[of]) = (range.len, from.shape()[own]);
        }
        let is_split = |dim: usize| mesh.size_of(&from.sharding.dims[dim].axes) > 1;
        let cuts_split = cut.iter().any(|&((own, _), _)| is_split(own));
        let vanishes = |dim: &usize| !rule.results[0].contains(&rule.operands[0][*dim]);
        let takes_split = (0..from.rank()).filter(vanishes).any(is_split);
        let elements = |shape: &[usize]| shape.iter().fold(1_usize, |product, &size| product.saturating_mul(size));
        let slice_comes_first = match (cuts_split, takes_split) {
            (false, false) => pair.slice_is_first,
            (false, true) => true,
            (true, false) => elements(&sliced) < elements(to.shape()),
            (true, true) => elements(&sliced) < elements(&taken),
        };
        if slice_comes_first == pair.slice_is_first {
            return None;
        }
        // The dimensions of the array in between are those of `x`, or of the result.
        let (shape, mut dims) = match slice_comes_first {
            true => (sliced, from.sharding.dims.clone()),
            false => (taken, to.sharding.dims.clone()),
        };
        for &(own, of) in &kept {
            let is_cut = cut.iter().any(|&(pair, _)| pair == (own, of));
            match slice_comes_first {
                true if is_cut => dims[own] = to.sharding.dims[of].clone(),
                true => {}
                false => dims[of] = from.sharding.dims[own].clone(),
            }
        }
        let sharding = Sharding { dims, ..from.sharding.clone() };
        let axes: Vec<u8> = sharding.dims.iter().flat_map(|dim| dim.axes.iter().copied()).collect();
        if axes.iter().enumerate().any(|(at, axis)| axes[..at].contains(axis)) {
            return None;
        }
        let varying = if slice_comes_first { from.varying } else { to.varying };
        let between = Type { array: ArrayType::of(from.dtype(), shape), sharding, varying };
        let whole: Vec<usize> = if slice_comes_first { from.shape().to_vec() } else { between.shape().to_vec() };
        let mut ranges: Vec<(SliceRange, usize)> = whole.iter().map(|&size| (SliceRange::all(size), size)).collect();
        for &((own, of), range) in &cut {
            ranges[if slice_comes_first { own } else { of }].0 = range;
        }
        let (slice, op) = (Slice { ranges }, op.clone());
        let (of_slice, of_places) = (pair.slice.origin.clone(), pair.places.origin.clone());
        let places = |array: Value| [&[array], &pair.places.args[1..]].concat();
        let mut build = Builder::new(func, mesh);
        if slice_comes_first {
            let part = build.emit(slice, &[x], between, &of_slice);
            build.define(op, &places(part), &[result], &of_places);
        } else {
            let part = build.emit(op, &places(x), between, &of_places);
            build.define(slice, &[part], &[result], &of_slice);
        }
        build.finish().try_into().ok()
    }
}

fn takes_places(stmt: &Stmt) -> bool {
    stmt.op().is_some_and(|op| matches!(op.rules().properties().combines, Combines::Places(_)))
}

fn ranges(stmt: &Stmt) -> Option<&[(SliceRange, usize)]> {
    if let Some(slice) = stmt.as_op::<Slice>() { Some(&slice.ranges) } else { None }
}

/// The dimensions of the array that only it and the result have, each with the corresponding dimension of the result.
fn kept_dims(rule: &Factors) -> Vec<(usize, usize)> {
    let is_shared = |dim: &Vec<usize>| rule.operands[1..].iter().flatten().any(|other| other == dim);
    let pair = |(own, dim): (usize, &Vec<usize>)| {
        let of = rule.results[0].iter().position(|other| other == dim)?;
        (!is_shared(dim)).then_some((own, of))
    };
    rule.operands[0].iter().enumerate().filter_map(pair).collect()
}
