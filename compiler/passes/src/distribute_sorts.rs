//! Distributes sorts along split dimensions: each device sorts its own block, and takes from the sorted blocks of all devices the elements
//! of its block of the result. A sort of which only the first elements are used becomes a selection, also along a whole dimension.
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
//! If these are the only uses and the elements are the first ones of the order, as for `top_k`, devices do not sort their blocks but select
//! from them: `b` is `select_blocks(x, .., count=k)`. Along a whole dimension, these are the results. A selection from a few long lines is made
//! in two steps, of pieces of the lines and of the elements of all pieces, so that threads divide a line.
//!
//! It comes after `insert_reshards`, which has given operands and results the same blocks, and before `exchange_halos`, which would
//! fetch these elements from the whole result.

use spmdc_ir::program::build::Builder;
use spmdc_ir::program::local::window_of;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, Value};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::DimSharding;
use spmdc_layout::types::{DType, Type};
use spmdc_layout::window::DimMap;
use spmdc_ops::iota::Iota;
use spmdc_ops::reshard::Reshard;
use spmdc_ops::slice::{Slice, SliceRange};
use spmdc_ops::sort::{LineOrder, Sort};
use spmdc_sort_ops::blocks::SortBlocks;
use spmdc_sort_ops::merge::MergeSorted;
use spmdc_sort_ops::select::SelectBlocks;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A block has at least this number of elements for each one that is selected: sorts of more are faster.
const FEW: usize = 4;

/// The lines of a device from which threads select by whole lines.
const MANY_LINES: usize = 32;

/// The least number of elements of a piece of a line.
const PIECE: usize = if cfg!(debug_assertions) { 64 } else { 1 << 14 };

/// Gives every sort along a split dimension its two steps, and replaces sorts by selections.
pub fn distribute_sorts(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Propagated, "sorts are on whole dimensions of known layout");
    let mut body = std::mem::take(&mut module.func.body);
    let mut sorts = Sorts {
        mesh: &module.mesh,
        func: &mut module.func,
        taken: BTreeMap::new(),
        picked: BTreeMap::new(),
        same: BTreeMap::new(),
        uses: BTreeMap::new(),
        places: BTreeMap::new(),
    };
    body.each_use(&mut |value| *sorts.uses.entry(value).or_default() += 1);
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
    /// The number of uses of each value.
    uses: BTreeMap<Value, usize>,
    /// The values that hold the place of each element along a dimension, as i32, with that dimension.
    places: BTreeMap<Value, usize>,
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
    /// The order of a sort, and the number of blocks of its dimension.
    fn order(&self, stmt: &Stmt) -> Option<(LineOrder, usize)> {
        let Sort(order) = stmt.as_op::<Sort>()?;
        let parts = self.mesh.size_of(&self.func.ty(stmt.args[0]).sharding.dims[order.axis].axes);
        Some((order.clone(), parts))
    }

    /// The selection that replaces a sort: if only the first elements are used, and they are few.
    fn selection(&self, stmt: &Stmt, order: &LineOrder, parts: usize) -> Option<SelectBlocks> {
        let first = self.func.ty(stmt.args[0]);
        let count = self.taken.get(&stmt.results[0])?.last()? + 1;
        let uses: usize = stmt.results.iter().filter_map(|result| self.uses.get(result)).sum();
        let picks = self.picked.values().filter(|picked| picked.sort == stmt.results[0]).count();
        let alike = stmt.args.iter().all(|&arg| {
            let ty = self.func.ty(arg);
            ty.sharding == first.sharding && ty.varying == first.varying
        });
        let is_aligned = first.sharding.dims[order.axis].alignment.is_some();
        let places = matches!(stmt.args[..], [_, places] if self.places.get(&places) == Some(&order.axis));
        let select = SelectBlocks { order: order.clone(), parts, pieces: 1, count, places };
        let size = first.shape()[order.axis];
        let is_few = select.least(size) >= count && count.saturating_mul(FEW * parts) <= size;
        (order.keys == 1 && uses == picks && alike && !is_aligned && is_few).then_some(select)
    }

    /// The number of pieces of a line that threads select from at a time.
    fn pieces(&self, ty: &Type, select: &SelectBlocks) -> usize {
        let block = ty.block_shape(self.mesh);
        let lines = block.iter().product::<usize>() / block[select.order.axis].max(1);
        let most = select.least(ty.shape()[select.order.axis]) / select.count.saturating_mul(2 * FEW).max(PIECE);
        (MANY_LINES / lines.max(1)).min(most).max(1)
    }

    /// Finds the elements that are taken from each sort. `results` describes the sorts so far: the first result, the number, the dimension
    /// and the number of its blocks.
    fn find(&mut self, block: &Block, results: &mut BTreeMap<Value, (Value, usize, usize, usize)>) {
        for stmt in &block.stmts {
            stmt.blocks().for_each(|inner| self.find(inner, results));
            if let Some(Iota { ty, axis }) = stmt.as_op::<Iota>()
                && ty.dtype == DType::I32
            {
                self.places.insert(stmt.results[0], *axis);
            } else if let Some((order, parts)) = self.order(stmt) {
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
            if let Some((order, parts)) = self.order(&stmt) {
                match self.selection(&stmt, &order, parts) {
                    Some(select) => stmts.extend(self.select(&stmt, select)),
                    None if parts > 1 => stmts.extend(self.steps(&stmt, order, parts)),
                    None => {
                        self.picked.retain(|_, picked| picked.sort != stmt.results[0]);
                        stmts.push(stmt);
                    }
                }
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

    /// The steps of a selection, whose results are those of the sort at the places that are used.
    fn select(&mut self, stmt: &Stmt, select: SelectBlocks) -> Vec<Stmt> {
        let (axis, parts) = (select.order.axis, select.parts);
        let origin = reason(stmt, axis);
        let types: Vec<Type> = stmt.results.iter().map(|&result| self.func.ty(result).clone()).collect();
        let places: Vec<usize> = self.taken[&stmt.results[0]].iter().copied().collect();
        let pieces = self.pieces(&types[0], &select);
        let mut made = |size: usize, split: bool| -> Vec<Value> {
            let sized = |ty: &Type| {
                let mut ty = ty.clone();
                ty.array.shape[axis] = size;
                if !split {
                    ty.sharding.dims[axis] = DimSharding::default();
                }
                self.func.new_value(ty, stmt.origin.clone())
            };
            types.iter().map(sized).collect()
        };
        let selected = made(parts * select.count, true);
        let merged = (parts > 1).then(|| made(places.len(), false));
        let of_pieces = (pieces > 1).then(|| made(parts * pieces * select.count, true));
        let order = select.order.clone();
        let args = if select.places { &stmt.args[..1] } else { &stmt.args[..] };
        let mut build = Builder::new(self.func, self.mesh);
        if let Some(some) = &of_pieces {
            build.define(SelectBlocks { pieces, ..select.clone() }, args, some, &stmt.origin);
            build.define(SelectBlocks { places: false, ..select }, some, &selected, &stmt.origin);
        } else {
            build.define(select, args, &selected, &stmt.origin);
        }
        if let Some(merged) = &merged {
            let merge = MergeSorted { order, parts, places: Some(places.clone()) };
            build.define(merge, &selected, merged, &origin);
        }
        let stmts = build.finish();
        for picked in self.picked.values_mut().filter(|picked| picked.sort == stmt.results[0]) {
            if let Some(merged) = &merged {
                let first = places.binary_search(&picked.places.start).expect("the place was noted");
                picked.places = first..first + picked.places.len();
                picked.from = Some(merged[picked.number]);
            } else {
                picked.from = Some(selected[picked.number]);
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
