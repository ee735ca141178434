//! From tasks over values to the steps of the program, with barriers where devices access each other's memory.

use super::storage::Storage;
use super::sync::{MemoryAccess, NeededBarrier, Pending};
use crate::order::{Limit, Schedule, Task};
use spmdc_abi::{
    Bound, Check, Checked, CollectiveKind, ExchangeStep, FetchBoxes, FetchStep, GemmDim, GemmStep, KernelStep,
    LibraryArray, LibraryStep, PermuteStep, PrintValue, RangePart, ReduceStep, Scalar, Shards, Site, Step, TileBuffer,
    TileKernel, TileMember, TileProduct, TileStep,
};
use spmdc_grammar::span::Span;
use spmdc_ir::lower::calls::{CallArray, LibraryCalls};
use spmdc_ir::lower::tiles::{TiledBuffer, TiledGroup, TiledWork};
use spmdc_ir::lower::work::{Product, ProductDim, Side, Work, layout_of};
use spmdc_ir::program::Value;
use spmdc_kernel::grain::grain;
use spmdc_kernel::loops::{Extent, Kernel};
use spmdc_layout::cost::of_unit;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::operand;
use spmdc_layout::types::AxisSet;
use std::collections::BTreeMap;

/// Emits the steps of a schedule and collects their kernels, equal ones once.
pub struct StepEmitter<'a> {
    pub schedule: &'a Schedule,
    pub storage: &'a Storage,
    pub mesh: &'a Mesh,
    pub site: &'a dyn Fn(Span) -> Site,
    pub kernels: Vec<Kernel>,
    /// The number of visited tasks, counting every visit of tasks inside loops, and its bound.
    visited: usize,
    most: usize,
    /// The steps emitted for lists of tasks, by the address of the list.
    known: BTreeMap<usize, Vec<EmittedList>>,
    /// For each arena, the axes along which devices share it.
    shared: Vec<AxisSet>,
    several: AxisSet,
}

/// The steps of a list of tasks if these accesses are pending before it, and the accesses pending after it.
struct EmittedList {
    begin: Pending,
    end: Pending,
    steps: Vec<Step>,
}

/// The steps of the program, of a loop's body, or of a branch.
#[derive(Default)]
struct List {
    steps: Vec<Step>,
    /// The number of steps up to the last barrier, sum of products, loop, branch or print. No barrier is posted before: a device is at one barrier
    /// of a group at a time, and barriers along several axes are transitive only if one comes after the other.
    floor: usize,
}

impl List {
    /// Emits a barrier, if one is needed, and posts it as early as possible.
    fn barrier(&mut self, needed: NeededBarrier, (site, kind): (Site, Option<CollectiveKind>), pending: &mut Pending) {
        let group = needed.group;
        if group.is_empty() {
            return;
        }
        let since = needed.since.max(self.floor);
        debug_assert!(self.floor <= self.steps.len(), "a list only grows");
        debug_assert!(needed.since <= self.steps.len(), "a barrier orders accesses of steps that have been emitted");
        if since < self.steps.len() {
            pending.synced(group, since);
            pending.inserted(since);
            self.steps.insert(since, Step::Post { group, site });
            self.steps.push(Step::Await { group, kind, site });
        } else {
            self.steps.push(Step::Sync { group, kind, site });
            pending.synced(group, self.steps.len());
        }
        self.floor = self.steps.len();
    }

    /// Adds a step before which no later barrier may be posted.
    fn enclose(&mut self, step: Step, pending: &mut Pending) {
        self.steps.push(step);
        self.floor = self.steps.len();
        *pending = pending.elsewhere();
    }
}

impl<'a> StepEmitter<'a> {
    pub fn new(
        schedule: &'a Schedule,
        storage: &'a Storage,
        mesh: &'a Mesh,
        site: &'a dyn Fn(Span) -> Site,
    ) -> StepEmitter<'a> {
        let several = mesh.several();
        let shared = storage.arenas.iter().map(|arena| several.minus(arena.axes)).collect();
        StepEmitter {
            schedule,
            storage,
            mesh,
            site,
            kernels: Vec::new(),
            visited: 0,
            most: most_visits(&schedule.tasks),
            known: BTreeMap::new(),
            shared,
            several,
        }
    }

    pub fn program(&mut self) -> Vec<Step> {
        let mut pending = Pending::new(self.shared.len(), self.several);
        let mut list = List::default();
        self.tasks(&self.schedule.tasks, &mut pending, &mut list);
        debug_assert_eq!(
            list.steps.iter().filter(|step| matches!(step, Step::Post { .. })).count(),
            list.steps.iter().filter(|step| matches!(step, Step::Await { .. })).count(),
            "a barrier is posted and never awaited"
        );
        list.steps
    }

    fn tasks(&mut self, tasks: &[Task], pending: &mut Pending, list: &mut List) {
        for (at, task) in tasks.iter().enumerate() {
            self.task(task, &tasks[at + 1..], pending, list);
        }
    }

    /// The steps of a loop's body or a branch.
    fn inner(&mut self, tasks: &[Task], pending: &mut Pending) -> Vec<Step> {
        let begin = pending.elsewhere();
        // A nest of loops is emitted twice at every level, mostly with the same accesses pending as before.
        let key = tasks.as_ptr() as usize;
        let known = self.known.get(&key).into_iter().flatten().find(|known| known.begin == begin);
        if let Some(EmittedList { end, steps, .. }) = known {
            *pending = end.clone();
            return steps.clone();
        }
        let mut list = List::default();
        *pending = begin.clone();
        self.tasks(tasks, pending, &mut list);
        let has_loops = tasks.iter().any(|task| !matches!(task, Task::Work(_)));
        if has_loops {
            let known = EmittedList { begin, end: pending.clone(), steps: list.steps.clone() };
            self.known.entry(key).or_default().push(known);
        }
        list.steps
    }

    /// Emits one task; `behind` are the tasks after it in its list.
    fn task(&mut self, task: &Task, behind: &[Task], pending: &mut Pending, list: &mut List) {
        self.visited += 1;
        debug_assert!(self.visited <= self.most, "a nest of loops is visited more often than its depth allows");
        match task {
            Task::Work(work) => self.work(work, behind, pending, list),
            Task::For { counter, start, end, body, origin, .. } => {
                let site = (self.site)(origin.span);
                let limits: Vec<Value> = [start, end].iter().filter_map(|limit| limit.value()).collect();
                self.diverge(&limits, site, pending, list);
                let reads = limits.iter().map(|&value| self.access(value, false));
                let accesses: Vec<MemoryAccess> = reads.chain([self.access(*counter, true)]).collect();
                self.barrier_before(&accesses, site, pending, list);
                // The accesses pending after a trip are pending before the next.
                let mut inside = pending.clone();
                let mut trips = self.inner(body, &mut inside);
                if pending.grows_by(&inside) {
                    inside = pending.clone();
                    trips = self.inner(body, &mut inside);
                    pending.join(&inside);
                }
                let counter = self.storage.place(*counter);
                let (start, end) = (self.bound(*start), self.bound(*end));
                list.enclose(Step::For { counter, start, end, body: trips, site }, pending);
            }
            Task::While { cond, flag, body, origin, .. } => {
                let site = (self.site)(origin.span);
                self.diverge(&[*flag], site, pending, list);
                let (mut test, mut after, mut trips, inside) = self.trip(cond, *flag, body, pending, site);
                if pending.grows_by(&inside) {
                    (test, after, trips, _) = self.trip(cond, *flag, body, pending, site);
                }
                *pending = after;
                let flag = self.storage.place(*flag);
                list.enclose(Step::While { cond: test, flag, body: trips, site }, pending);
            }
            Task::If { flag, then, otherwise, origin, .. } => {
                let site = (self.site)(origin.span);
                self.diverge(&[*flag], site, pending, list);
                self.barrier_before(&[self.access(*flag, false)], site, pending, list);
                let mut other = pending.clone();
                let yes = self.inner(then, pending);
                let no = self.inner(otherwise, &mut other);
                pending.join(&other);
                let flag = self.storage.place(*flag);
                list.enclose(Step::If { flag, then: yes, otherwise: no, site }, pending);
            }
        }
    }

    /// The steps of the condition of a `while` that begins with these accesses pending, the accesses pending after it, the steps of
    /// the body, and the accesses pending after that.
    fn trip(
        &mut self,
        cond: &[Task],
        flag: Value,
        body: &[Task],
        pending: &Pending,
        site: Site,
    ) -> (Vec<Step>, Pending, Vec<Step>, Pending) {
        let mut test = List::default();
        let mut after = pending.elsewhere();
        self.tasks(cond, &mut after, &mut test);
        self.barrier_before(&[self.access(flag, false)], site, &mut after, &mut test);
        let mut inside = after.clone();
        let trips = self.inner(body, &mut inside);
        (test.steps, after, trips, inside)
    }

    /// Devices may diverge from here on: every access for which a barrier might be needed inside gets its barrier before.
    fn diverge(&self, deciding: &[Value], site: Site, pending: &mut Pending, list: &mut List) {
        let varying = deciding
            .iter()
            .fold(AxisSet::EMPTY, |set, value| set.union(self.schedule.types[value.0 as usize].varying))
            .intersect(self.several);
        if !varying.is_empty() {
            let needed = NeededBarrier { group: pending.before_divergence(varying), since: list.steps.len() };
            list.barrier(needed, (site, None), pending);
        }
    }

    /// Emits the barrier that these accesses need, and notes them.
    fn barrier_before(&self, accesses: &[MemoryAccess], site: Site, pending: &mut Pending, list: &mut List) {
        list.barrier(pending.conflicts(accesses), (site, None), pending);
        pending.add(accesses, list.steps.len() + 1);
    }

    fn access(&self, value: Value, written: bool) -> MemoryAccess {
        let place = self.storage.place(value);
        let bytes = self.storage.buffer(value).map_or(0, |buffer| buffer.bytes);
        let arena = place.arena as usize;
        debug_assert!(place.offset + bytes <= self.storage.arenas[arena].bytes, "{value} lies beyond its arena");
        MemoryAccess { arena, bytes: place.offset..place.offset + bytes, written, reach: self.shared[arena] }
    }

    fn bound(&self, limit: Limit) -> Bound {
        match limit {
            Limit::Const(value) => Bound::Const(value),
            Limit::Value(value) => {
                Bound::Memory(self.storage.place(value), self.schedule.types[value.0 as usize].dtype())
            }
        }
    }

    /// The axes along which devices divide the work of writing the value.
    fn split(&self, value: Value) -> AxisSet {
        self.shared[self.storage.place(value).arena as usize]
    }

    /// Emits one unit of work; `behind` are the tasks after it in its list.
    fn work(&mut self, work: &Work, behind: &[Task], pending: &mut Pending, list: &mut List) {
        let Some(span) = span_of(work) else { return };
        let site = (self.site)(span);
        let Some(step) = self.step(work, site) else { return };
        if let Step::Print { .. } = step {
            // A print is a barrier of all devices.
            list.enclose(step, pending);
            return pending.synced(self.several, list.steps.len());
        }
        let accesses = self.accesses(work);
        // A part of a kernel needs no barrier of its own: the part before it has waited for all operands, and each device works on
        // the same units of both.
        let continues = matches!(work, Work::Kernel { cutout: Some(cutout), .. } if cutout.continues);
        let none = NeededBarrier { group: AxisSet::EMPTY, since: 0 };
        let mut needed = if continues { none } else { pending.conflicts(&accesses) };
        if !needed.group.is_empty() {
            // Consecutive collectives share one barrier.
            let next = behind.iter().map_while(|task| match task {
                Task::Work(next) => next.is_collective().then(|| pending.conflicts(&self.accesses(next))),
                Task::For { .. } | Task::While { .. } | Task::If { .. } => None,
            });
            let group = needed.group;
            needed.since = next.filter(|next| next.group == group).fold(needed.since, |at, next| at.max(next.since));
        }
        list.barrier(needed, (site, kind_of(&step)), pending);
        pending.add(&accesses, list.steps.len() + 1);
        // Devices may meet between a product and its sum, so they cannot have posted another barrier.
        let meets_within = matches!(&step, Step::Reduce(reduce) if reduce.product.is_some());
        list.steps.push(step);
        if meets_within {
            list.floor = list.steps.len();
        }
    }

    /// The accesses of a unit of work. A collective reads the blocks of other devices.
    fn accesses(&self, work: &Work) -> Vec<MemoryAccess> {
        let group = self.group(work);
        let read = |value| {
            let access = self.access(value, false);
            MemoryAccess { reach: access.reach.union(group), ..access }
        };
        let reads = work.reads().into_iter().map(read);
        // With a product, devices read the partial values of others in the same step.
        let partial = if let Work::Reduce { from, product: Some(_), .. } = work { Some(from.value) } else { None };
        let write = |value| {
            let access = self.access(value, true);
            let reach = if Some(value) == partial { access.reach.union(group) } else { access.reach };
            MemoryAccess { reach, ..access }
        };
        reads.chain(work.writes().into_iter().map(write)).collect()
    }

    /// The axes along which devices read each other's blocks: the collective's axes, and the axes along which they share its target.
    fn group(&self, work: &Work) -> AxisSet {
        let axes = |axes: &[u8]| axes.iter().map(|&axis| axis as usize).collect::<AxisSet>();
        let group = match work {
            Work::Exchange { group, to, .. } | Work::Reduce { group, to, .. } => group.union(self.split(to.value)),
            Work::Permute { axes: group, to, .. } => axes(group).union(self.split(*to)),
            Work::Fetch { group, parts, .. } => {
                parts.iter().fold(*group, |group, part| group.union(self.split(part.to)))
            }
            Work::Product { product, .. } => product.ring.as_ref().map_or(AxisSet::EMPTY, |ring| axes(&ring.axes)),
            Work::Library { calls, .. } => calls.owners.as_ref().map_or(AxisSet::EMPTY, |owners| axes(&owners.axes)),
            Work::Kernel { .. }
            | Work::Tiles { .. }
            | Work::Alias { .. }
            | Work::Copy { .. }
            | Work::Constant { .. }
            | Work::CheckIndex { .. }
            | Work::Print { .. } => AxisSet::EMPTY,
        };
        group.intersect(self.several)
    }

    /// The step for a unit of work; None if it costs nothing.
    fn step(&mut self, work: &Work, site: Site) -> Option<Step> {
        let step = match work {
            Work::Alias { .. } | Work::Constant { .. } => return None,
            Work::Kernel { kernel, buffers, cutout, .. } => {
                debug_assert_eq!(kernel.buffers.len(), buffers.len(), "a kernel gets as many buffers as it names");
                let split = work.writes().first().map_or(AxisSet::EMPTY, |&value| self.split(value));
                let step = KernelStep {
                    kernel: self.kernel(kernel),
                    buffers: buffers.iter().map(|&value| self.storage.place(value)).collect(),
                    scalars: kernel.scalars.clone(),
                    range: cutout.as_ref().map_or_else(|| range(kernel), |cutout| cutout.whole.clone()),
                    part: cutout.as_ref().map(|cutout| RangePart { first: cutout.first.clone(), len: range(kernel) }),
                    split,
                    grain: cutout.as_ref().map_or_else(|| grain(kernel, &self.mesh.machine), |cutout| cutout.grain),
                    cost: of_unit(kernel) as f32,
                    site,
                    checks: kernel
                        .checks()
                        .iter()
                        .map(|check| Check { site: check.span.map_or(site, |span| (self.site)(span)), of: check.of })
                        .collect(),
                };
                Step::Kernel(step)
            }
            Work::Product { product, .. } => Step::Gemm(self.product(product, site)),
            Work::Tiles { tiles, .. } => Step::Tiles(Box::new(self.tiles(tiles, site))),
            Work::Library { calls, .. } => Step::Library(self.library(calls, site)),
            Work::Copy { from, to, .. } => {
                let (source, target) = (self.storage.place(*from), self.storage.place(*to));
                if source == target {
                    return None;
                }
                let bytes = self.schedule.types[to.0 as usize].block_bytes(self.mesh) as u64;
                debug_assert!(
                    self.storage.buffer(*to).is_some_and(|buffer| bytes <= buffer.bytes),
                    "a copy ends beyond its buffer"
                );
                Step::Copy { from: source, to: target, bytes, split: self.split(*to) }
            }
            Work::Exchange { kind, group, from, to, counts, .. } => {
                let bytes = self.bytes(*kind, *group, from, to);
                let (from, to) = (self.shards(from), self.shards(to));
                let step = ExchangeStep { kind: *kind, group: *group, from, to, bytes, counts: *counts, site };
                Step::Exchange(step)
            }
            Work::Reduce { kind, op, group, reduce, from, to, counts, product, .. } => {
                let bytes = self.bytes(*kind, *group, from, to);
                let (from, to) = (self.shards(from), self.shards(to));
                let (kind, op, group, reduce, counts) = (*kind, *op, *group, *reduce, *counts);
                let product = product.as_ref().map(|product| Box::new(self.product(product, site)));
                let step = ReduceStep { kind, op, group, reduce, from, to, bytes, counts, product, site };
                Step::Reduce(step)
            }
            Work::Permute { axes, source, from, to, .. } => {
                let step = PermuteStep {
                    axes: axes.clone(),
                    source: source.clone(),
                    from: self.storage.place(*from),
                    to: self.storage.place(*to),
                    bytes: self.schedule.types[from.0 as usize].block_bytes(self.mesh) as u64,
                    site,
                };
                Step::Permute(step)
            }
            Work::Fetch { kind, group, parts, bytes, .. } => {
                let parts = parts.iter().map(|part| FetchBoxes {
                    dtype: part.dtype,
                    from: self.storage.place(part.from),
                    to: self.storage.place(part.to),
                    dims: part.dims.clone(),
                });
                let step = FetchStep { kind: *kind, group: *group, parts: parts.collect(), bytes: *bytes, site };
                Step::Fetch(step)
            }
            Work::CheckIndex { index, extent, len, to, .. } => Step::CheckIndex {
                index: self.storage.place(*index),
                dtype: self.schedule.types[index.0 as usize].dtype(),
                extent: *extent,
                len: *len,
                to: self.storage.place(*to),
                site,
            },
            Work::Print { text, values, purpose, .. } => {
                let values = values.iter().map(|&value| {
                    let ty = &self.schedule.types[value.0 as usize];
                    PrintValue { place: self.storage.place(value), layout: layout_of(ty), varying: ty.varying }
                });
                Step::Print { text: text.clone(), values: values.collect(), purpose: purpose.clone(), site }
            }
        };
        Some(step)
    }

    fn kernel(&mut self, kernel: &Kernel) -> u32 {
        // Scalars are arguments, so kernels that differ only in scalars are one.
        let known = self.kernels.iter().position(|known| known == kernel);
        known.unwrap_or_else(|| {
            self.kernels.push(kernel.clone());
            self.kernels.len() - 1
        }) as u32
    }

    fn tiles(&mut self, tiles: &TiledGroup, site: Site) -> TileStep {
        let members = tiles.members.iter().map(|member| match member {
            TiledWork::Kernel(part) => {
                let kernel = self.kernel(&part.kernel);
                let own = part.kernel.scalars.len() - part.matrices.len();
                TileMember::Kernel(TileKernel {
                    kernel,
                    buffers: part.buffers.iter().map(|&buffer| self.tile_buffer(buffer)).collect(),
                    scalars: part.kernel.scalars[..own].to_vec(),
                    matrices: part.matrices.clone(),
                })
            }
            TiledWork::Product(part) => TileMember::Product(TileProduct {
                dtype: part.dtype,
                buffers: part.buffers.map(|buffer| self.tile_buffer(buffer)),
                m: gemm_dim(&part.m),
                n: gemm_dim(&part.n),
                k: gemm_dim(&part.k),
                matrices: part.matrices.iter().map(gemm_dim).collect(),
                contracted: part.contracted.iter().map(gemm_dim).collect(),
                rows: part.rows,
            }),
        });
        let members = members.collect();
        TileStep {
            matrices: tiles.matrices.clone(),
            rows: tiles.rows.clone(),
            tile: tiles.tile,
            panel: tiles.panel,
            chain: tiles.chain,
            members,
            scratch: self.storage.place(tiles.scratch),
            slots: tiles.slots,
            slot_bytes: tiles.slot_bytes,
            split: tiles.results().first().map_or(AxisSet::EMPTY, |&value| self.split(value)),
            cost: tiles.cost as f32,
            unstored: tiles.unstored,
            site,
        }
    }

    fn tile_buffer(&self, buffer: TiledBuffer) -> TileBuffer {
        match buffer {
            TiledBuffer::Memory(value) => TileBuffer::Memory(self.storage.place(value)),
            TiledBuffer::Scratch { offset, row } => TileBuffer::Scratch { offset, row },
        }
    }

    fn product(&self, product: &Product, site: Site) -> GemmStep {
        GemmStep {
            dtype: product.dtype,
            operands: product.operands,
            a: self.storage.place(product.a),
            b: self.storage.place(product.b),
            c: self.storage.place(product.c),
            m: gemm_dim(&product.m),
            n: gemm_dim(&product.n),
            k: gemm_dim(&product.k),
            loops: product.loops.iter().map(gemm_dim).collect(),
            contracted: product.contracted.iter().map(gemm_dim).collect(),
            split: self.split(product.c),
            ring: product.ring.as_deref().cloned(),
            site,
        }
    }

    fn library(&self, calls: &LibraryCalls, site: Site) -> LibraryStep {
        let array = |array: &CallArray| LibraryArray {
            place: self.storage.place(array.value),
            dtype: self.schedule.types[array.value.0 as usize].dtype(),
            batch: array.batch.clone(),
            dims: array.dims.clone(),
        };
        let check = |&(span, extent): &(Span, usize)| Check {
            site: (self.site)(span),
            of: Checked::Index { extent: extent as i64 },
        };
        LibraryStep {
            function: calls.function.clone(),
            operands: calls.operands.iter().map(array).collect(),
            results: calls.results.iter().map(array).collect(),
            batch: calls.batch.clone(),
            owners: calls.owners.clone(),
            split: calls.results.first().map_or(AxisSet::EMPTY, |result| self.split(result.value)),
            cost: calls.cost as f32,
            site,
            checks: calls.checks.iter().map(check).collect(),
        }
    }

    fn shards(&self, side: &Side) -> Shards {
        Shards { place: self.storage.place(side.value), layout: side.layout.clone() }
    }

    /// Bytes of one device's operand.
    fn bytes(&self, kind: CollectiveKind, group: AxisSet, from: &Side, to: &Side) -> u64 {
        let dims = from.layout.dims.iter().zip(&to.layout.dims);
        let dims = dims.map(|(from, to)| (from.size, from.axes.as_slice(), to.axes.as_slice()));
        operand(kind, group, dims, self.mesh).iter().product::<usize>() as u64 * from.layout.dtype.size() as u64
    }
}

fn gemm_dim(dim: &ProductDim) -> GemmDim {
    GemmDim { extent: dim.extent.clone(), a: dim.a, b: dim.b, c: dim.c }
}

/// Maximum number of visited tasks, far below the number if work doubled at every level of loops.
fn most_visits(tasks: &[Task]) -> usize {
    /// The number of tasks, and the maximum depth of loops and branches.
    fn size(tasks: &[Task]) -> (usize, usize) {
        let inner = |lists: &[&[Task]]| {
            let sizes = lists.iter().map(|list| size(list));
            let (count, depth) = sizes.fold((0, 0), |all, one| (all.0 + one.0, all.1.max(one.1)));
            (count + 1, depth + 1)
        };
        let sizes = tasks.iter().map(|task| match task {
            Task::Work(_) => (1, 0),
            Task::For { body, .. } => inner(&[body]),
            Task::While { cond, body, .. } => inner(&[cond, body]),
            Task::If { then, otherwise, .. } => inner(&[then, otherwise]),
        });
        sizes.fold((0, 0), |all, one| (all.0 + one.0, all.1.max(one.1)))
    }
    let (count, depth) = size(tasks);
    4 * count * (depth + 1) * (depth + 1)
}

/// The kind of collective that a step is or contains.
fn kind_of(step: &Step) -> Option<CollectiveKind> {
    match step {
        Step::Exchange(step) => Some(step.kind),
        Step::Reduce(step) => Some(step.kind),
        Step::Permute(_) => Some(CollectiveKind::CollectivePermute),
        Step::Fetch(step) => Some(step.kind),
        Step::Gemm(step) => step.ring.as_ref().map(|ring| ring.kind),
        Step::Library(step) => step.owners.as_ref().map(|owners| owners.kind),
        Step::Kernel(_)
        | Step::Panels { .. }
        | Step::GroupPanels(_)
        | Step::Tiles(_)
        | Step::Sync { .. }
        | Step::Post { .. }
        | Step::Await { .. }
        | Step::Copy { .. }
        | Step::CheckIndex { .. }
        | Step::For { .. }
        | Step::While { .. }
        | Step::If { .. }
        | Step::Print { .. } => None,
    }
}

/// The source position of a unit of work; None for work without steps.
fn span_of(work: &Work) -> Option<Span> {
    match work {
        Work::Alias { .. } | Work::Constant { .. } => None,
        Work::Kernel { origin, .. }
        | Work::Product { origin, .. }
        | Work::Tiles { origin, .. }
        | Work::Library { origin, .. }
        | Work::Copy { origin, .. }
        | Work::Exchange { origin, .. }
        | Work::Reduce { origin, .. }
        | Work::Permute { origin, .. }
        | Work::Fetch { origin, .. }
        | Work::CheckIndex { origin, .. }
        | Work::Print { origin, .. } => Some(origin.span),
    }
}

/// The extent of the dimension over which `begin..end` runs.
fn range(kernel: &Kernel) -> Scalar {
    match kernel.dims.first() {
        Some(dim) if kernel.range_dim => match dim.extent {
            Extent::Static(extent) => Scalar::Const(extent as i64),
            Extent::Scalar { slot, .. } => kernel.scalars[slot].clone(),
        },
        Some(_) | None => Scalar::Const(1),
    }
}
