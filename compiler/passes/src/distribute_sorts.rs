//! Distributes sorts along split dimensions: each device sorts its own block, and takes from the sorted blocks of all devices the elements
//! of its block of the result.
//!
//! ```text
//! let s: f32[16@Y] = sort_together(x, keys=1, axis=0);              // x: f32[16@Y], Y = 4
//! =>
//! let b: f32[16@Y] = sort_blocks(x, keys=1, axis=0, parts=4);
//! let s: f32[16@Y] = merge_sorted(b, keys=1, axis=0, parts=4);
//! ```
//!
//! If a program takes a few known elements of the order, as a median does, all of them come at once: `s[7:9]` and `s[15]` are slices of
//! `merge_sorted(b, .., places=(7, 8, 15))`, which is whole on every device. Without other uses, nothing else moves.
//!
//! It comes after `insert_reshards`, which has given operands and results the same blocks, and before `exchange_halos`, which would
//! fetch these elements from the whole result.

use spmdc_ir::program::build::Builder;
use spmdc_ir::program::local::window_of;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, Value};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::DimSharding;
use spmdc_layout::types::Type;
use spmdc_layout::window::DimMap;
use spmdc_ops::reshard::Reshard;
use spmdc_ops::slice::{Slice, SliceRange};
use spmdc_ops::sort::{LineOrder, Sort};
use spmdc_sort_ops::blocks::SortBlocks;
use spmdc_sort_ops::merge::MergeSorted;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Gives every sort along a split dimension its two steps.
pub fn distribute_sorts(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Propagated, "sorts are on whole dimensions of known layout");
    let mut body = std::mem::take(&mut module.func.body);
    let mut sorts = Sorts {
        mesh: &module.mesh,
        func: &mut module.func,
        taken: BTreeMap::new(),
        picked: BTreeMap::new(),
        same: BTreeMap::new(),
    };
    sorts.find(&body, &mut BTreeMap::new());
    sorts.rewrite(&mut body);
    let same = sorts.same;
    module.func.body = body;
    module.func.body.each_use_mut(&mut |value| *value = same.get(value).copied().unwrap_or(*value));
    module
}

/// The sorts along split dimensions, and the statements that take known elements of their order.
struct Sorts<'a> {
    mesh: &'a Mesh,
    func: &'a mut Func,
    /// For the first result of each sort, all places that are taken from its results.
    taken: BTreeMap<Value, BTreeSet<usize>>,
    /// For each result of a statement that takes elements of an order.
    picked: BTreeMap<Value, Picked>,
    /// Statements that take all elements at known places: the value that replaces the result.
    same: BTreeMap<Value, Value>,
}

/// Neighbouring elements of each line of a sort's result.
#[derive(Clone)]
struct Picked {
    /// The first result of the sort.
    sort: Value,
    /// The number of the result.
    number: usize,
    axis: usize,
    places: Range<usize>,
    /// The elements at all places that are taken from this result, once they are known.
    from: Option<Value>,
}

impl Sorts<'_> {
    /// The dimension of a sort, if it is split.
    fn split_axis(&self, stmt: &Stmt) -> Option<(LineOrder, usize)> {
        let Sort(order) = stmt.as_op::<Sort>()?;
        let parts = self.mesh.size_of(&self.func.ty(stmt.args[0]).sharding.dims[order.axis].axes);
        (parts > 1).then(|| (order.clone(), parts))
    }

    /// Finds the elements that are taken from each sort. `results` describes the sorts so far: the first result, the number, the dimension
    /// and the number of its blocks.
    fn find(&mut self, block: &Block, results: &mut BTreeMap<Value, (Value, usize, usize, usize)>) {
        for stmt in &block.stmts {
            stmt.blocks().for_each(|inner| self.find(inner, results));
            if let Some((order, parts)) = self.split_axis(stmt) {
                let first = stmt.results[0];
                results.extend(
                    stmt.results
                        .iter()
                        .enumerate()
                        .map(|(number, &result)| (result, (first, number, order.axis, parts))),
                );
            } else if let Some(&(sort, number, axis, parts)) = stmt.args.first().and_then(|arg| results.get(arg))
                && let Some(places) = self.few_places(stmt, axis, parts)
            {
                self.taken.entry(sort).or_default().extend(places.clone());
                self.picked.insert(stmt.results[0], Picked { sort, number, axis, places, from: None });
            }
        }
    }

    /// The places of each line that a statement takes, if they are neighbours and so few that a device would not rather have its block.
    fn few_places(&self, stmt: &Stmt, axis: usize, parts: usize) -> Option<Range<usize>> {
        let map = window_of(self.func, stmt)?;
        let (operand, result) = (&self.func.ty(stmt.args[0]).sharding, &self.func.ty(stmt.results[0]).sharding);
        let mut others = (0..map.dims.len()).filter(|&dim| dim != axis);
        let others_stay = others.all(|dim| map.dims[dim].is_identity() && operand.dims[dim] == result.dims[dim]);
        let DimMap { size, before, start, step, len, after } = map.dims[axis];
        let is_plain = before + after == 0 && (step == 1 || len == 1) && start + len <= size;
        let is_aligned = result.dims[axis].alignment.is_some();
        (others_stay && is_plain && !is_aligned && len > 0 && len * parts <= size).then(|| start..start + len)
    }

    fn rewrite(&mut self, block: &mut Block) {
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.blocks_mut().for_each(|inner| self.rewrite(inner));
            if let Some((order, parts)) = self.split_axis(&stmt) {
                stmts.extend(self.steps(&stmt, order, parts));
            } else if let Some(picked) = stmt.results.first().and_then(|result| self.picked.get(result)).cloned() {
                stmts.extend(self.pick(&stmt, &picked));
            } else {
                stmts.push(stmt);
            }
        }
        block.stmts = stmts;
    }

    /// The two steps of a sort, and the elements at known places.
    fn steps(&mut self, stmt: &Stmt, order: LineOrder, parts: usize) -> Vec<Stmt> {
        debug_assert_eq!(stmt.args.len(), stmt.results.len(), "a sort has a result for each operand");
        let origin = reason(stmt, order.axis);
        let types: Vec<Type> = stmt.args.iter().map(|&arg| self.func.ty(arg).clone()).collect();
        let blocks: Vec<Value> = types.iter().map(|ty| self.func.new_value(ty.clone(), stmt.origin.clone())).collect();
        let places = self.taken.get(&stmt.results[0]).map(|places| places.iter().copied().collect::<Vec<usize>>());
        let places = places.filter(|places| places.len() * parts <= types[0].shape()[order.axis]);
        let some = places.map(|places| {
            let few = |ty: &Type| {
                let mut ty = ty.clone();
                ty.array.shape[order.axis] = places.len();
                ty.sharding.dims[order.axis] = DimSharding::default();
                self.func.new_value(ty, stmt.origin.clone())
            };
            (types.iter().map(few).collect::<Vec<Value>>(), places)
        });
        let mut build = Builder::new(self.func, self.mesh);
        build.define(SortBlocks { order: order.clone(), parts }, &stmt.args, &blocks, &stmt.origin);
        build.define(MergeSorted { order: order.clone(), parts, places: None }, &blocks, &stmt.results, &origin);
        if let Some((values, places)) = &some {
            let merge = MergeSorted { order, parts, places: Some(places.clone()) };
            build.define(merge, &blocks, values, &origin);
        }
        let stmts = build.finish();
        for picked in self.picked.values_mut().filter(|picked| picked.sort == stmt.results[0]) {
            if let Some((values, places)) = &some {
                let first = places.binary_search(&picked.places.start).expect("the place was noted");
                picked.places = first..first + picked.places.len();
                picked.from = Some(values[picked.number]);
            }
        }
        stmts
    }

    /// Takes elements from those at known places; the statement itself if these would be too many.
    fn pick(&mut self, stmt: &Stmt, picked: &Picked) -> Vec<Stmt> {
        let Some(from) = picked.from else { return vec![stmt.clone()] };
        let wanted = self.func.ty(stmt.results[0]).clone();
        let origin = reason(stmt, picked.axis);
        let mut slice = Slice::identity(&self.func.ty(from).array);
        slice.ranges[picked.axis].0 = SliceRange::between(picked.places.start, picked.places.end);
        let mut ty = self.func.ty(from).clone();
        ty.array.shape[picked.axis] = picked.places.len();
        let whole = ty.sharding.clone();
        let takes_all = ty.shape() == self.func.ty(from).shape();
        let mut build = Builder::new(self.func, self.mesh);
        if takes_all && whole == wanted.sharding {
            self.same.insert(stmt.results[0], from);
        } else if takes_all {
            build.define(Reshard::request(wanted.sharding), &[from], &stmt.results, &origin);
        } else if whole == wanted.sharding {
            build.define(slice, &[from], &stmt.results, &origin);
        } else {
            let part = build.emit(slice, &[from], ty, &origin);
            build.define(Reshard::request(wanted.sharding), &[part], &stmt.results, &origin);
        }
        build.finish()
    }
}

fn reason(stmt: &Stmt, axis: usize) -> Origin {
    stmt.origin
        .because(format!("a sort along the split dimension {axis} moves elements to the devices of their places"))
}
