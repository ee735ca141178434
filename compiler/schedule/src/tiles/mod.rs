//! Runs products and the kernels between them tile by tile.
//!
//! ```text
//! s = q k^T; m = max over each row of s; e = exp(s - m); l = sum over each row of e; o = (e / l) v
//!     =>    for each matrix, for some rows of it at a time: all of these for these rows
//! ```
//!
//! A value that only members of the group use has the rows of one tile, in scratch memory. `s` and `e` above have as many elements as the
//! product of the lengths of `q` and `k`, and never exist as a whole. This is the idea of attention by blocks (Dao et al., 2022), without
//! a rescaled sum: a tile has whole rows, so each result is computed by the same operations as without tiles.
//!
//! A group begins with a product, whose matrices and rows are those of all members. A member is a product of rows of an operand, or over
//! the rows (`p^T g`: a sum that continues from tile to tile), or a kernel whose outer dimensions are the matrices and rows. Other
//! work in between runs before the group if it uses nothing of the group, and after it otherwise.

mod fit;
mod rows;

use crate::order::{Schedule, Task, new_value};
use crate::plan_memory::holes::TakenSpace;
use crate::plan_memory::lifetimes::{Interval, name_classes};
use crate::plan_memory::panels::may_stop;
use crate::plan_memory::storage::is_aligned;
use crate::plan_memory::time::length;
use crate::uses::{Uses, any_list};
use fit::{Domain, FittingKernel, FittingProduct, WrittenRows, classes_of, constant, domain_of, extent_of};
use rows::ArrayRows;
use spmdc_abi::{LayoutDim, Scalar, TileRows};
use spmdc_ir::lower::tiles::{TiledBuffer, TiledGroup, TiledKernel, TiledProduct, TiledWork};
use spmdc_ir::lower::work::{Product, ProductDim, Work};
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Func, Value};
use spmdc_kernel::loops::{Access, Affine, BufferSlot, Elem, Extent, Inst, Kernel, LoopDim, Store, affines_mut};
use spmdc_layout::cost::{of_product, of_unit};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, DType, Type};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of units of work that are considered for a group, so that the search takes linear time.
const MAX_WORK: usize = 64;

/// The most slots of scratch memory of all devices together, and the least and the most of one: more threads of a device wait.
const ALL_SLOTS: usize = 64;
const SLOTS: (usize, usize) = (2, 16);

/// Slots begin at multiples of this number of bytes.
const ALIGNMENT: u64 = 64;

/// Groups work that gains from it, in loops and branches too.
pub fn tile(schedule: Schedule, func: &Func, mesh: &Mesh) -> Schedule {
    let has_products = |tasks: &[Task]| tasks.iter().any(|task| matches!(task, Task::Work(Work::Product { .. })));
    if !any_list(&schedule.tasks, &has_products) {
        return schedule;
    }
    let classes = name_classes(&schedule);
    debug_assert_eq!(classes.len(), schedule.types.len(), "every value has a class");
    let uses = Uses::new(&schedule, func, &classes);
    let Schedule { tasks, types, constants } = schedule;
    let mut tiler = Tiler { mesh, classes, uses, types };
    let tasks = tiler.list(tasks);
    Schedule { tasks, types: tiler.types, constants }
}

struct Tiler<'a> {
    mesh: &'a Mesh,
    /// For each value its class: values of one class have the same bytes.
    classes: Vec<usize>,
    uses: Uses,
    types: Vec<Type>,
}

/// A unit of work that fits into a group.
enum Fitting {
    Kernel(FittingKernel),
    Product(FittingProduct),
}

/// Work from a first product on, by its index in the list.
struct TileGroup {
    domain: Domain,
    members: Vec<(usize, Fitting)>,
    before: Vec<usize>,
    behind: Vec<usize>,
    /// The first index that it does not contain.
    end: usize,
    rows: WrittenRows,
}

/// An array in the scratch memory of a group.
struct ScratchArray {
    /// The members that use it first and last.
    first: usize,
    last: usize,
    /// Elements of a row, and their bytes.
    len: i64,
    size: u64,
    /// The first byte in a slot.
    offset: u64,
    /// The array in whose place it is computed.
    in_place_of: Option<usize>,
}

impl ScratchArray {
    fn row(&self) -> u64 {
        self.len as u64 * self.size
    }
}

impl Tiler<'_> {
    fn list(&mut self, tasks: Vec<Task>) -> Vec<Task> {
        let mut done = Vec::with_capacity(tasks.len());
        let mut tasks: Vec<Option<Task>> = tasks.into_iter().map(Some).collect();
        let mut at = 0;
        while at < tasks.len() {
            if let Some(group) = self.group(&tasks, at)
                && let Some((tiles, first)) = self.tiles(&tasks, &group)
            {
                let mut take = |places: &[usize]| done.extend(places.iter().filter_map(|&place| tasks[place].take()));
                take(&group.before);
                let mut members = group.members.iter().filter_map(|(place, _)| tasks[*place].take());
                let origin = match members.next() {
                    Some(Task::Work(Work::Product { origin, .. })) => origin,
                    Some(_) | None => Origin::default(),
                };
                members.for_each(drop);
                done.extend(first.into_iter().map(Task::Work));
                done.push(Task::Work(Work::Tiles { tiles: Box::new(tiles), origin }));
                let behind: Vec<Task> = group.behind.iter().filter_map(|&place| tasks[place].take()).collect();
                // Another group may begin after this one.
                let rest = tasks.split_off(group.end);
                tasks = behind.into_iter().map(Some).chain(rest).collect();
                at = 0;
                continue;
            }
            let task = tasks[at].take().map(|task| task.map_blocks(&mut |inner| self.list(inner)));
            done.extend(task);
            at += 1;
        }
        done
    }

    fn class(&self, value: Value) -> usize {
        self.classes[value.0 as usize]
    }

    fn bytes(&self, value: Value) -> u64 {
        self.types[value.0 as usize].block_bytes(self.mesh) as u64
    }

    /// The group that begins with this product.
    fn group(&self, tasks: &[Option<Task>], first: usize) -> Option<TileGroup> {
        let Some(Task::Work(Work::Product { product, .. })) = &tasks[first] else { return None };
        if self.bytes(product.c) < self.mesh.machine.tiled_bytes {
            return None;
        }
        let matrices = product.loops.iter().map(|dim| length(&dim.extent, self.mesh)).product::<f64>();
        let least_chains = self.mesh.machine.least_chains.div_ceil(self.mesh.device_count().max(1));
        let domain = domain_of(product, matrices as u64 / least_chains.max(1) as u64)?;
        let mut group = TileGroup {
            domain,
            members: Vec::new(),
            before: Vec::new(),
            behind: Vec::new(),
            end: first,
            rows: BTreeMap::new(),
        };
        let (mut touched, mut late) = (BTreeSet::new(), BTreeSet::new());
        for (place, task) in tasks.iter().enumerate().skip(first).take(MAX_WORK) {
            let Some(Task::Work(work)) = task else { break };
            let may_move = match work {
                Work::Alias { .. } => {
                    group.before.push(place);
                    group.end = place + 1;
                    continue;
                }
                Work::Kernel { kernel, cutout, .. } => cutout.is_none() && !may_stop(kernel),
                Work::Product { product, .. } => {
                    product.ring.is_none() && product.dtype.is_float() && product.operands == [product.dtype; 2]
                }
                Work::Tiles { .. }
                | Work::Library { .. }
                | Work::Copy { .. }
                | Work::Constant { .. }
                | Work::Exchange { .. }
                | Work::Reduce { .. }
                | Work::Permute { .. }
                | Work::Fetch { .. }
                | Work::CheckIndex { .. }
                | Work::Print { .. } => false,
            };
            let reads: Vec<usize> = work.reads().into_iter().map(|value| self.class(value)).collect();
            let writes: Vec<usize> = work.writes().into_iter().map(|value| self.class(value)).collect();
            if !may_move || writes.iter().any(|class| touched.contains(class)) {
                break;
            }
            let once = writes.iter().all(|&class| self.uses.writes[class] == 1);
            let is_late = reads.iter().any(|class| late.contains(class));
            let values = || work.reads().into_iter().chain(work.writes());
            let is_aligned = values().any(|value| self.types[value.0 as usize].sharding.is_aligned());
            let fitting = if is_late || is_aligned || !once { None } else { self.fitting(work, &group) };
            let uses_group = reads.iter().any(|class| group.rows.contains_key(class));
            if let Some(fitting) = fitting {
                self.note(work, &fitting, &mut group.rows);
                group.members.push((place, fitting));
            } else if group.members.is_empty() {
                return None;
            } else if is_late || uses_group {
                late.extend(writes.iter().copied());
                group.behind.push(place);
            } else {
                group.before.push(place);
            }
            touched.extend(reads.into_iter().chain(writes));
            group.end = place + 1;
        }
        debug_assert!(group.end > first || group.members.is_empty(), "a group contains its members");
        self.trim(tasks, &mut group);
        (group.members.len() > 1).then_some(group)
    }

    /// How work fits into the group; None if it does not.
    fn fitting(&self, work: &Work, group: &TileGroup) -> Option<Fitting> {
        match work {
            Work::Kernel { kernel, buffers, .. } => {
                let classes: Vec<usize> = buffers.iter().map(|&value| self.class(value)).collect();
                let fitting = group.domain.kernel(kernel, &classes, &group.rows)?;
                let uses_group = classes.iter().any(|class| group.rows.contains_key(class));
                let is_large = || work.writes().iter().any(|&value| self.bytes(value) >= self.mesh.machine.tiled_bytes);
                (uses_group || is_large()).then_some(Fitting::Kernel(fitting))
            }
            Work::Product { product, .. } => {
                let classes = classes_of(product, |value| self.class(value));
                group.domain.product(product, classes, &group.rows).map(Fitting::Product)
            }
            Work::Tiles { .. }
            | Work::Library { .. }
            | Work::Alias { .. }
            | Work::Copy { .. }
            | Work::Constant { .. }
            | Work::Exchange { .. }
            | Work::Reduce { .. }
            | Work::Permute { .. }
            | Work::Fetch { .. }
            | Work::CheckIndex { .. }
            | Work::Print { .. } => None,
        }
    }

    fn note(&self, work: &Work, fitting: &Fitting, rows: &mut WrittenRows) {
        match (work, fitting) {
            (Work::Kernel { buffers, .. }, Fitting::Kernel(fitting)) => {
                let written = fitting.written.iter();
                rows.extend(written.map(|(buffer, rows)| (self.class(buffers[*buffer]), rows.clone())));
            }
            (Work::Product { product, .. }, Fitting::Product(fitting)) => {
                rows.insert(self.class(product.c), fitting.written.clone());
            }
            _ => debug_assert!(false, "work fits as what it is"),
        }
    }

    /// The classes that only members use, whose rows are known.
    fn internal(&self, tasks: &[Option<Task>], group: &TileGroup) -> BTreeMap<usize, ArrayRows> {
        let mut used: BTreeMap<usize, usize> = BTreeMap::new();
        for (place, _) in &group.members {
            let Some(Task::Work(work)) = &tasks[*place] else { continue };
            for value in work.reads().into_iter().chain(work.writes()) {
                *used.entry(self.class(value)).or_default() += 1;
            }
        }
        let rows = group.rows.iter().filter_map(|(class, rows)| Some((*class, rows.clone()?)));
        rows.filter(|(class, _)| used.get(class).is_some_and(|&used| used == self.uses.of[*class])).collect()
    }

    /// Takes the last members off that use no large array of the group.
    fn trim(&self, tasks: &[Option<Task>], group: &mut TileGroup) {
        while let Some((place, _)) = group.members.last() {
            let internal = self.internal(tasks, group);
            let Some(Task::Work(work)) = &tasks[*place] else { break };
            let uses_large = |value: Value| {
                internal.contains_key(&self.class(value)) && self.bytes(value) >= self.mesh.machine.tiled_bytes
            };
            if work.reads().into_iter().chain(work.writes()).any(uses_large) {
                break;
            }
            let at = group.behind.partition_point(|behind| behind < place);
            group.behind.insert(at, *place);
            for value in work.writes() {
                group.rows.remove(&self.class(value));
            }
            group.members.pop();
        }
    }

    /// The tiles of a group, and work that comes before it.
    fn tiles(&mut self, tasks: &[Option<Task>], group: &TileGroup) -> Option<(TiledGroup, Vec<Work>)> {
        let internal = self.internal(tasks, group);
        debug_assert!(group.members.len() > 1, "a group of one member");
        debug_assert!(group.members.windows(2).all(|pair| pair[0].0 < pair[1].0), "members keep their order");
        let (mut arrays, peak) = self.scratch(tasks, group, &internal);
        let machine = &self.mesh.machine;
        let Some((place, Fitting::Product(fitting))) = group.members.first() else { return None };
        let Some(Task::Work(Work::Product { product, .. })) = &tasks[*place] else { return None };
        if !internal.contains_key(&self.class(product.c)) {
            return None;
        }
        let row = if fitting.rows == TileRows::M { &product.m } else { &product.n };
        let matrices: Vec<Scalar> = fitting.matrices.iter().map(|dim| dim.extent.clone()).collect();
        let rows = row.extent.clone();
        let most_rows = length(&rows, self.mesh).max(1.0) as u64;
        let panel = (machine.panel_bytes / peak.max(1)).max(1);
        let tile = (machine.tile_bytes / peak.max(1)).max(machine.tile_rows).min(most_rows);
        let runs = runs_of_kernels(&group.members);
        for array in arrays.values_mut() {
            (array.first, array.last) = (runs[array.first].0, runs[array.last].1);
        }
        let slot_bytes = place_arrays(&mut arrays, tile);
        debug_assert!(slot_bytes.is_multiple_of(ALIGNMENT), "slots begin at multiples of cache lines");
        let chain = group.members.iter().map(|(_, fitting)| match fitting {
            Fitting::Kernel(_) => 0,
            Fitting::Product(fitting) => fitting.chain,
        });
        let chain = chain.max().unwrap_or(0);
        let matrix_count = matrices.iter().map(|extent| length(extent, self.mesh)).product::<f64>() as u64;
        let units = matrix_count.checked_div(chain).unwrap_or(matrix_count * most_rows.div_ceil(tile));
        let of_device = (ALL_SLOTS / self.mesh.device_count().max(1)).clamp(SLOTS.0, SLOTS.1);
        let slots = (of_device as u64).min(units).max(1);
        // A value that one member writes may be read by another name.
        let written: BTreeMap<usize, Value> = group
            .members
            .iter()
            .filter_map(
                |(place, _)| if let Some(Task::Work(work)) = &tasks[*place] { Some(work.writes()) } else { None },
            )
            .flatten()
            .map(|value| (self.class(value), value))
            .collect();
        let unstored: u64 =
            written.iter().filter(|(class, _)| arrays.contains_key(*class)).map(|(_, &value)| self.bytes(value)).sum();
        if (slots * slot_bytes).saturating_mul(100) > unstored.saturating_mul(machine.most_scratch) {
            return None;
        }
        let array = ArrayType::new(DType::F64, &[slots as usize, (slot_bytes / 8) as usize]);
        let ty = Type { array, sharding: Sharding::replicated(2), varying: self.mesh.all() };
        let scratch = self.new_value(ty);
        let mut cost = 0.0;
        let (mut members, mut first_work) = (Vec::new(), Vec::new());
        for (place, fitting) in &group.members {
            let buffer = |value: Value| {
                let class = self.classes[value.0 as usize];
                match arrays.get(&class) {
                    Some(array) => TiledBuffer::Scratch { offset: array.offset, row: array.row() },
                    None => TiledBuffer::Memory(written.get(&class).copied().unwrap_or(value)),
                }
            };
            let rows_of = |value: Value| internal.get(&self.classes[value.0 as usize]);
            match (&tasks[*place], fitting) {
                (Some(Task::Work(Work::Kernel { kernel, buffers, origin, .. })), Fitting::Kernel(fitting)) => {
                    let rows: Vec<Option<&ArrayRows>> = buffers.iter().map(|&value| rows_of(value)).collect();
                    let matrices = (0..fitting.outer).map(|dim| extent_of(kernel, dim)).collect();
                    let kernel = of_matrix(kernel, fitting.outer, &rows);
                    cost += of_unit(&kernel);
                    members.push(TiledWork::Kernel(TiledKernel {
                        kernel,
                        buffers: buffers.iter().map(|&value| buffer(value)).collect(),
                        matrices,
                        origin: origin.clone(),
                    }));
                }
                (Some(Task::Work(Work::Product { product, origin })), Fitting::Product(fitting)) => {
                    let rows = [product.a, product.b, product.c].map(rows_of);
                    let buffers = [product.a, product.b, product.c].map(buffer);
                    let mut part = tiled_product(product, fitting, (buffers, rows), origin);
                    if most_rows > tile {
                        first_work.extend(self.transposed_operand(&mut part));
                    }
                    let inner = [&part.m, &part.n, &part.k].into_iter().chain(&part.contracted);
                    let multiply_adds: f64 = inner.map(|dim| length(&dim.extent, self.mesh)).product();
                    cost += of_product(multiply_adds / most_rows as f64);
                    members.push(TiledWork::Product(part));
                }
                _ => return None,
            }
        }
        let tiles =
            TiledGroup { matrices, rows, tile, panel, chain, members, scratch, slots, slot_bytes, cost, unstored };
        Some((tiles, first_work))
    }

    /// Transposes the operand of a product that all tiles of a matrix share, if its order is not that of the result: the product would bring
    /// it into this order for each tile.
    fn transposed_operand(&mut self, part: &mut TiledProduct) -> Option<Work> {
        let (m, n, k) = (&part.m, &part.n, &part.k);
        let (shared, free, stride): (usize, &ProductDim, fn(&mut ProductDim) -> &mut i64) = match part.rows {
            TileRows::M if n.c == 1 && k.b == 1 && n.b != 1 => (1, n, |dim| &mut dim.b),
            TileRows::N if m.c == 1 && k.a == 1 && m.a != 1 => (0, m, |dim| &mut dim.a),
            TileRows::M | TileRows::N | TileRows::K => return None,
        };
        let TiledBuffer::Memory(value) = part.buffers[shared] else { return None };
        // From outer to inner: the matrices that have operands of their own, the contracted dimensions, and the result's last one.
        let mut dims: Vec<ProductDim> = part.matrices.clone();
        dims.extend(part.contracted.iter().chain([k, free]).cloned());
        let lens: Option<Vec<i64>> = dims.iter().map(|dim| constant(&dim.extent)).collect();
        let (lens, ty) = (lens?, &self.types[value.0 as usize]);
        debug_assert_eq!(lens.len(), dims.len(), "each dimension has a length");
        let read: Vec<i64> = dims.iter_mut().map(|dim| *stride(dim)).collect();
        let mut written = vec![0; dims.len()];
        let mut elements = 1;
        for (at, written) in written.iter_mut().enumerate().rev() {
            if read[at] != 0 {
                *written = elements;
                elements *= lens[at];
            }
        }
        let (dtype, varying) = (part.dtype, ty.distinct_axes());
        let array = ArrayType::new(dtype, &[elements as usize]);
        let len = ty.block_bytes(self.mesh) / dtype.size();
        let to = self.new_value(Type { array, sharding: Sharding::replicated(1), varying });
        let mut kernel = Kernel { range_dim: true, ..Kernel::default() };
        let address = |strides: &[i64]| {
            let kept = (0..read.len()).filter(|&at| read[at] != 0);
            let terms = kept.enumerate().map(|(dim, at)| (dim, strides[at])).filter(|(_, stride)| *stride != 0);
            Affine { terms: terms.collect(), ..Affine::default() }
        };
        let kept = (0..read.len()).filter(|&at| read[at] != 0);
        kernel.dims = kept.map(|at| LoopDim { extent: Extent::Static(lens[at] as u64), reduced: false }).collect();
        let slot = |len, written| BufferSlot { dtype, written, len, streamed: false };
        kernel.buffers = vec![slot(len, false), slot(elements as usize, true)];
        kernel.insts = vec![Inst::Load { access: Access { buffer: 0, address: address(&read) }, dtype }];
        let access = Access { buffer: 1, address: address(&written) };
        kernel.stores = vec![Store { access, dtype, value: Elem(0), combine: None }];
        let outer = part.matrices.iter_mut().chain(&mut part.contracted);
        let inner = [&mut part.k, if shared == 1 { &mut part.n } else { &mut part.m }];
        outer.chain(inner).zip(written).for_each(|(dim, written)| *stride(dim) = written);
        part.buffers[shared] = TiledBuffer::Memory(to);
        Some(Work::Kernel { kernel, buffers: vec![value, to], cutout: None, origin: part.origin.clone() })
    }

    /// A temporary value, which one unit of work writes and one reads.
    fn new_value(&mut self, ty: Type) -> Value {
        // No class has a number as large as that of a new value.
        self.classes.push(self.classes.len());
        self.uses.of.push(2);
        self.uses.writes.push(1);
        new_value(&mut self.types, ty)
    }

    /// The arrays in scratch memory, and the bytes of all rows that are in use at a time.
    fn scratch(
        &self,
        tasks: &[Option<Task>],
        group: &TileGroup,
        internal: &BTreeMap<usize, ArrayRows>,
    ) -> (BTreeMap<usize, ScratchArray>, u64) {
        let mut arrays: BTreeMap<usize, ScratchArray> = BTreeMap::new();
        for (number, (place, _)) in group.members.iter().enumerate() {
            let Some(Task::Work(work)) = &tasks[*place] else { continue };
            for value in work.reads().into_iter().chain(work.writes()) {
                let class = self.class(value);
                let Some(rows) = internal.get(&class) else { continue };
                let size = self.types[value.0 as usize].dtype().size() as u64;
                let new =
                    ScratchArray { first: number, last: number, len: rows.len, size, offset: 0, in_place_of: None };
                arrays.entry(class).or_insert(new).last = number;
            }
        }
        // A kernel computes in place of an operand that nobody needs afterwards.
        for (number, (place, _)) in group.members.iter().enumerate() {
            let Some(Task::Work(Work::Kernel { kernel, buffers, .. })) = &tasks[*place] else { continue };
            for (written, &to) in buffers.iter().enumerate().filter(|(at, _)| kernel.buffers[*at].written) {
                let Some(new) = arrays.get(&self.class(to)) else { continue };
                let old = buffers.iter().enumerate().find(|&(read, &from)| {
                    let ends = |old: &ScratchArray| {
                        let is_taken = arrays.values().any(|array| array.in_place_of == Some(self.class(from)));
                        old.last == number && old.first < number && old.row() == new.row() && !is_taken
                    };
                    arrays.get(&self.class(from)).is_some_and(ends) && is_aligned(kernel, read, written)
                });
                let old = old.map(|(_, &from)| self.class(from));
                if let Some(new) = arrays.get_mut(&self.class(to)) {
                    new.in_place_of = old;
                }
            }
        }
        let in_use = |number: usize| {
            let live = |array: &&ScratchArray| (array.first..=array.last).contains(&number);
            let own = |array: &&ScratchArray| array.in_place_of.is_none() || array.first < number;
            arrays.values().filter(live).filter(own).map(ScratchArray::row).sum::<u64>()
        };
        let peak = (0..group.members.len()).map(in_use).max().unwrap_or(0);
        (arrays, peak)
    }
}

/// For each member the first and the last of its neighbours that run with it, one panel of rows after the other: kernels with no product
/// between. An array that one of them uses for the last time still has rows of later panels when the next one runs.
fn runs_of_kernels(members: &[(usize, Fitting)]) -> Vec<(usize, usize)> {
    let is_kernel = |member: &(usize, Fitting)| matches!(member, (_, Fitting::Kernel(_)));
    let mut runs = Vec::with_capacity(members.len());
    for run in members.chunk_by(|one, next| is_kernel(one) && is_kernel(next)) {
        let first = runs.len();
        runs.extend(run.iter().map(|_| (first, first + run.len() - 1)));
    }
    runs
}

/// Gives the arrays of a tile of this many rows their places; returns the bytes of a slot.
fn place_arrays(arrays: &mut BTreeMap<usize, ScratchArray>, tile: u64) -> u64 {
    let mut order: Vec<usize> = arrays.keys().copied().collect();
    order.sort_by_key(|class| (arrays[class].first, *class));
    let lifetime = |array: &ScratchArray| [(array.first as u32, array.last as u32)];
    let lifetimes: Vec<[Interval; 1]> = arrays.values().map(lifetime).collect();
    let mut taken = TakenSpace::new(lifetimes.iter().map(|lifetime| lifetime.as_slice()));
    let mut end = ALIGNMENT;
    for class in order {
        let array = &arrays[&class];
        let size = (array.row() * tile).max(1).next_multiple_of(ALIGNMENT);
        let offset = match array.in_place_of {
            Some(old) => arrays[&old].offset,
            None => taken.best_fit(&lifetime(array), size, 0),
        };
        debug_assert!(array.first <= array.last && offset.is_multiple_of(ALIGNMENT), "an array lies at {offset}");
        taken.take(&lifetime(array), &(offset..offset + size));
        end = end.max(offset + size);
        if let Some(array) = arrays.get_mut(&class) {
            array.offset = offset;
        }
    }
    end
}

/// The kernel for one matrix: its `outer` first dimensions become its last scalars. Arrays with known rows have those of a tile only.
fn of_matrix(kernel: &Kernel, outer: usize, rows: &[Option<&ArrayRows>]) -> Kernel {
    let mut part = kernel.clone();
    let slots = part.scalars.len();
    debug_assert!(outer < kernel.dims.len(), "a dimension counts the rows");
    debug_assert_eq!(rows.len(), kernel.buffers.len(), "each buffer has rows or none");
    for dim in 0..outer {
        // Any number that has the bounds of the index.
        let bounds = LayoutDim { size: kernel.dims[dim].extent.most() as usize, axes: Vec::new() };
        part.scalars.push(Scalar::BlockStart(bounds));
    }
    part.dims.drain(..outer);
    let change = |affine: &mut Affine, rows: Option<&ArrayRows>| {
        let mut terms = Vec::new();
        for &(dim, stride) in &affine.terms {
            match dim.checked_sub(outer) {
                Some(0) => terms.push((0, rows.map_or(stride, |rows| rows.len))),
                Some(inner) => terms.push((inner, stride)),
                None if rows.is_none() => affine.scalars.push((slots + dim, stride)),
                None => {}
            }
        }
        affine.terms = terms;
    };
    for inst in &mut part.insts {
        let own = inst.load().and_then(|(access, _)| rows[access.buffer]);
        affines_mut(inst).for_each(|affine| change(affine, own));
    }
    for store in &mut part.stores {
        change(&mut store.access.address, rows[store.access.buffer]);
    }
    let most = part.dims.first().map_or(1, |dim| dim.extent.most()) as usize;
    for (slot, rows) in part.buffers.iter_mut().zip(rows) {
        slot.len = rows.map_or(slot.len, |rows| rows.len as usize * most);
    }
    debug_assert!(part.dims.first().is_some_and(|dim| !dim.reduced), "a range of rows");
    part
}

/// The product for one matrix. Operands with known rows have those of a tile only.
fn tiled_product(
    product: &Product,
    fitting: &FittingProduct,
    (buffers, rows): ([TiledBuffer; 3], [Option<&ArrayRows>; 3]),
    origin: &Origin,
) -> TiledProduct {
    let mut part = TiledProduct {
        dtype: product.dtype,
        buffers,
        m: product.m.clone(),
        n: product.n.clone(),
        k: product.k.clone(),
        matrices: fitting.matrices.clone(),
        contracted: fitting.contracted.clone(),
        rows: fitting.rows,
        origin: origin.clone(),
    };
    let row = fitting.rows.of(&mut part.m, &mut part.n, &mut part.k);
    let strides = [&mut row.a, &mut row.b, &mut row.c];
    strides.into_iter().zip(rows).for_each(|(stride, rows)| *stride = rows.map_or(*stride, |rows| rows.len));
    for dim in &mut part.matrices {
        let strides = [&mut dim.a, &mut dim.b, &mut dim.c];
        strides.into_iter().zip(rows).filter(|(_, rows)| rows.is_some()).for_each(|(stride, _)| *stride = 0);
    }
    part
}
