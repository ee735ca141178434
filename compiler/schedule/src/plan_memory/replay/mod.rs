//! Verifies a memory plan: replays the program and checks that every step reads the values that the schedule says.
//!
//! The planner merges buffers, reuses their bytes, writes in place and divides work among devices that share memory. The replay assumes
//! none of that. It executes the steps of the program together with the tasks from which they were made, for all devices. A shadow memory
//! maps each byte to the names of the values in it (`shadow.rs`), as regalloc2's checker does for registers. It fails where
//!
//! - a step reads a byte that holds another value than its task reads;
//! - a step reads or writes beyond the buffer of its value;
//! - two devices write one byte in one step, or one device reads a byte that another one writes in the same step;
//! - a kernel reads an element that it has overwritten already;
//! - kernels that run by panels touch in one panel an element that they write in another, on one device or on all of a group, unless their
//!   lags are large enough;
//! - devices that hold different data of a value share its memory, or may diverge before a write to memory that they share.
//!
//! A byte that no step has written has no name. So a value that is stored once for several devices, and that their shares do not cover, is
//! found at its first read, or at the end. Loops are replayed until the state no longer changes, and branches with both outcomes. Dynamic
//! indices take their first and then their last value. The order of steps of *different* devices is not checked here: `sync.rs` is
//! responsible for it.

mod accesses;
mod groups;
mod lags;
mod library;
mod shadow;
#[cfg(test)]
mod tests;
mod units;

use super::lifetimes::Lifetimes;
use super::storage::Storage;
use crate::order::{Limit, Schedule, Task};
use accesses::{Accesses, PanelSharers};
use groups::GroupAccesses;
use shadow::{Name, Shadow, ShadowMemory, Spot};
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{
    FetchBoxes, FetchRun, GemmDim, GemmStep, GroupPanels, KernelStep, Layout, Place, Program, Shards, Step, TileStep,
};
use spmdc_ir::lower::tiles::TiledGroup;
use spmdc_ir::lower::work::{Work, layout_of};
use spmdc_ir::program::{Func, Value};
use spmdc_kernel::loops::Kernel;
use spmdc_layout::types::AxisSet;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A memory plan, with the schedule that it was made for.
pub struct MemoryPlan<'a> {
    pub func: &'a Func,
    pub schedule: &'a Schedule,
    pub lifetimes: &'a Lifetimes<'a>,
    pub storage: &'a Storage,
    pub program: &'a Program,
    pub kernels: &'a [Kernel],
}

/// Maximum number of units of shadow memory; a unit takes 4 bytes, or 20 bytes where it is written.
const MAX_UNITS: u64 = 1 << 27;
/// Maximum number of replays of loops and branches: deep nests whose flags share memory reach ever new states.
const MAX_VISITS: u32 = 5_000;
/// The price of a loop or branch, in runs of neighbouring elements.
const VISIT: u64 = 1_000;
/// Maximum number of units of shadow memory that are kept for each loop or branch, besides its latest state.
const MAX_KEPT: usize = 1 << 22;

/// Replays a plan. True if it came to the end, false if it stopped because it would take more than `most` runs of neighbouring
/// elements or more than `most` KiB of memory; the error is the first fault.
pub fn replay(plan: &MemoryPlan<'_>, most: u64) -> Result<bool, String> {
    let mesh = DeviceMesh::new(&plan.program.mesh)?;
    let unit = plan.schedule.types.iter().map(|ty| ty.dtype().size() as u64).min().unwrap_or(1);
    let units = shadow::units(&plan.program.arenas, &mesh, unit);
    if units > MAX_UNITS || units.saturating_mul(unit) / 1024 > most {
        return Ok(false);
    }
    let mut replay = Replay {
        plan,
        mesh: &mesh,
        shadow: Shadow::new(&plan.program.arenas, &mesh, unit),
        diverged: AxisSet::EMPTY,
        looked: BTreeMap::new(),
        left: most,
        visits: 0,
        line: 0,
    };
    match replay.program() {
        Ok(()) => Ok(true),
        Err(Stopped::Enough) => Ok(false),
        Err(Stopped::Fault(fault)) => Err(format!("line {}: {fault}", replay.line)),
    }
}

/// Why a replay ends early.
enum Stopped {
    /// The plan is wrong.
    Fault(String),
    /// The replay would take too long.
    Enough,
}

fn fault<T>(message: impl Into<String>) -> Result<T, Stopped> {
    Err(Stopped::Fault(message.into()))
}

struct Replay<'a> {
    plan: &'a MemoryPlan<'a>,
    mesh: &'a DeviceMesh,
    shadow: Shadow,
    /// Axes along which devices may have diverged.
    diverged: AxisSet,
    /// For each loop or branch, the different states of memory before it, each with the state after it. A loop inside `n` others
    /// mostly has `n` of them, so that a nest of depth `n` costs n² and not 2ⁿ replays.
    looked: BTreeMap<*const Task, Vec<(ShadowMemory, ShadowMemory)>>,
    /// The number of runs of neighbouring elements that may still be replayed.
    left: u64,
    /// The number of loops and branches replayed so far.
    visits: u32,
    /// The source line of the present step, for the message of a fault.
    line: u32,
}

impl<'a> Replay<'a> {
    fn name(&self, value: Value) -> Name {
        self.plan.lifetimes.class_of[value.0 as usize] as Name
    }

    fn program(&mut self) -> Result<(), Stopped> {
        let program = self.plan.program;
        self.layouts()?;
        let values = &self.plan.func.body.params;
        for (binding, value) in program.params.iter().zip(values) {
            let Some(place) = binding.place else { continue };
            let name = self.name(*value);
            self.each_row(place, &binding.layout, |replay, spot| {
                replay.shadow.write(&spot, name);
                Ok(())
            })?;
        }
        for (constant, (value, _)) in program.constants.iter().zip(&self.plan.schedule.constants) {
            let name = self.name(*value);
            for device in 0..self.mesh.devices() {
                let spot = Spot { place: constant.place, device, at: 0, len: constant.bytes.len() as u64 };
                self.shadow.write(&spot, name);
            }
        }
        let schedule = self.plan.schedule;
        self.tasks(&schedule.tasks, &program.body)?;
        let results = &self.plan.func.body.results;
        for (binding, &value) in program.results.iter().zip(results) {
            let name = self.name(value);
            let Some(place) = binding.place else { return fault("a result is in no memory") };
            self.each_row(place, &binding.layout, |replay, spot| replay.reads(&spot, name, value))?;
        }
        Ok(())
    }

    /// Checks that devices that hold different data of a value do not share its memory.
    fn layouts(&self) -> Result<(), Stopped> {
        let several = self.mesh.axes();
        for (index, ty) in self.plan.schedule.types.iter().enumerate() {
            let value = Value(index as u32);
            if self.plan.storage.buffer(value).is_some_and(|buffer| buffer.values.contains(&value)) {
                let arena = self.plan.storage.place(value).arena as usize;
                let shared = several.minus(self.plan.program.arenas[arena].axes);
                if !ty.distinct_axes().intersect(shared).is_empty() {
                    return fault(format!("devices share the memory of {value}, of which they hold different blocks"));
                }
            }
        }
        Ok(())
    }

    /// Replays tasks and the steps that were made from them.
    fn tasks(&mut self, tasks: &'a [Task], steps: &'a [Step]) -> Result<(), Stopped> {
        let mut flat: Vec<(Flat<'a>, Option<GroupMember<'a>>)> = Vec::new();
        for step in steps {
            if let Step::GroupPanels(panels) = step {
                let mut inner = Vec::new();
                panels.steps.iter().for_each(|step| flatten(step, &mut inner));
                let left = (0..inner.len()).rev();
                flat.extend(inner.into_iter().zip(left).map(|(step, left)| (step, Some(GroupMember { panels, left }))));
            } else {
                let mut own = Vec::new();
                flatten(step, &mut own);
                flat.extend(own.into_iter().map(|step| (step, None)));
            }
        }
        let mut flat = flat.into_iter();
        let (mut panels, mut lags) = (Vec::new(), Vec::new());
        let mut group = GroupAccesses::default();
        for task in tasks {
            match task {
                Task::Work(Work::Alias { .. } | Work::Constant { .. }) => {}
                Task::Work(Work::Copy { from, to, .. }) if self.place(*from) == self.place(*to) => {
                    let (name, other) = (self.name(*from), self.name(*to));
                    let bytes = self.bytes(*from).max(self.bytes(*to));
                    self.shadow.rename(self.place(*from), bytes, name, other);
                }
                Task::Work(work) => {
                    let Some((step, of_group)) = flat.next() else { return fault("a task has no step") };
                    self.shadow.next_step();
                    self.work(work, step)?;
                    if let (Work::Kernel { buffers, .. }, Flat::Panels { kernel, lag, left }) = (work, step) {
                        panels.push(self.accesses(buffers, kernel));
                        lags.push(lag);
                        if left == 0 {
                            let (panels, lags) = (std::mem::take(&mut panels), std::mem::take(&mut lags));
                            match lags.iter().all(|lag| *lag == 0) {
                                true => accesses::run_by_panels(&panels, &PanelSharers::default(), self)?,
                                false => lags::run_with_lags(&panels, &lags, self)?,
                            }
                        }
                    }
                    if let Some(GroupMember { panels, left }) = of_group {
                        group.add(work, step);
                        if left == 0 {
                            std::mem::take(&mut group).run(panels, self)?;
                        }
                    }
                }
                Task::For { .. } | Task::While { .. } | Task::If { .. } => {
                    let Some((Flat::Other(step), None)) = flat.next() else {
                        return fault("a loop or branch has no step");
                    };
                    self.enclosed(task, step)?;
                }
            }
        }
        match flat.next() {
            Some(_) => fault("a step has no task"),
            None => Ok(()),
        }
    }

    /// Replays a loop or a branch. A known state of memory before it leads to the known state after it.
    fn enclosed(&mut self, task: &'a Task, step: &'a Step) -> Result<(), Stopped> {
        let key = std::ptr::from_ref(task);
        let before = self.shadow.memory.clone();
        let known = self.looked.get(&key).and_then(|known| known.iter().find(|(seen, _)| *seen == before));
        if let Some((_, after)) = known {
            self.shadow.memory = after.clone();
            return Ok(());
        }
        self.count(VISIT)?;
        self.visits += 1;
        if self.visits > MAX_VISITS {
            return Err(Stopped::Enough);
        }
        let diverged = self.diverged;
        match (task, step) {
            (Task::For { counter, start, end, stacked, body, .. }, Step::For { body: steps, counter: place, .. }) => {
                for limit in [start, end] {
                    if let Limit::Value(value) = limit {
                        self.reads_all(*value)?;
                        self.diverge(*value);
                    }
                }
                if *place != self.place(*counter) {
                    return fault("a loop counts elsewhere than its body looks");
                }
                // The trips fill a stack at dynamic indices, which are not tracked.
                for &stack in stacked {
                    self.writes_all(stack)?;
                }
                // A loop without trips accesses nothing; its stack has no element.
                let never = matches!((start, end), (Limit::Const(start), Limit::Const(end)) if start >= end);
                if !never {
                    let made = made_in(body);
                    self.until_stable(&made, stacked, &mut |replay| {
                        replay.writes_all(*counter)?;
                        replay.tasks(body, steps)
                    })?;
                }
            }
            (Task::While { cond, flag, body, .. }, Step::While { cond: test, body: steps, .. }) => {
                let mut made = made_in(cond);
                made.extend(made_in(body));
                self.diverge(*flag);
                self.until_stable(&made, &[], &mut |replay| {
                    replay.tasks(cond, test)?;
                    replay.reads_all(*flag)?;
                    replay.tasks(body, steps)
                })?;
                self.tasks(cond, test)?;
            }
            (Task::If { flag, then, otherwise, .. }, Step::If { then: yes, otherwise: no, .. }) => {
                self.reads_all(*flag)?;
                self.diverge(*flag);
                let here = self.shadow.memory.clone();
                self.tasks(then, yes)?;
                let there = std::mem::replace(&mut self.shadow.memory, here);
                self.tasks(otherwise, no)?;
                self.shadow.join(&there);
            }
            _ => return fault("a loop or branch became another step"),
        }
        self.diverged = diverged;
        let after = self.shadow.memory.clone();
        let most = (MAX_KEPT / after.len().max(1)).max(1);
        let known = self.looked.entry(key).or_default();
        // The latest states are searched first.
        known.truncate(most - 1);
        known.insert(0, (before, after));
        Ok(())
    }

    /// Replays trips of a loop until the state of memory before a trip does not change any more.
    fn until_stable(
        &mut self,
        made: &BTreeSet<Value>,
        kept: &[Value],
        trip: &mut dyn FnMut(&mut Self) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let kept: Vec<Name> = kept.iter().map(|&value| self.name(value)).collect();
        let names = made.iter().map(|&value| self.name(value)).filter(|name| !kept.contains(name));
        let names: Vec<Name> = names.collect();
        loop {
            let before = self.shadow.memory.clone();
            self.shadow.kill(&names);
            trip(self)?;
            self.shadow.join(&before);
            if self.shadow.memory == before {
                return Ok(());
            }
        }
    }

    fn diverge(&mut self, value: Value) {
        self.diverged = self.diverged.union(self.plan.schedule.types[value.0 as usize].varying);
    }

    fn place(&self, value: Value) -> Place {
        self.plan.storage.place(value)
    }

    /// Bytes of the value's buffer.
    fn bytes(&self, value: Value) -> u64 {
        self.plan.storage.buffer(value).map_or(0, |buffer| buffer.bytes)
    }

    // Reads and writes.

    fn reads(&mut self, spot: &Spot, name: Name, value: Value) -> Result<(), Stopped> {
        if spot.at + spot.len > self.bytes(value) {
            return fault(format!("{value} is read behind its end, at byte {}", spot.at));
        }
        self.count(spot.len >> 10)?;
        if self.shadow.holds(spot, name) {
            return Ok(());
        }
        let (at, found) = self.shadow.other(spot, name);
        fault(format!("device {} reads byte {at} of {value}, where {found:?} lies and not {name}", spot.device))
    }

    fn writes(&mut self, spot: &Spot, value: Value) -> Result<(), Stopped> {
        if spot.at + spot.len > self.bytes(value) {
            return fault(format!("{value} is written behind its end, at byte {}", spot.at));
        }
        let shared = self.mesh.axes().minus(self.plan.program.arenas[spot.place.arena as usize].axes);
        if !shared.intersect(self.diverged).is_empty() {
            return fault(format!("{value} is shared by devices of which not all may write it"));
        }
        Ok(())
    }

    /// Reads a scalar on all devices.
    fn reads_all(&mut self, value: Value) -> Result<(), Stopped> {
        let (name, len) = (self.name(value), self.plan.schedule.types[value.0 as usize].dtype().size() as u64);
        let place = self.place(value);
        (0..self.mesh.devices()).try_for_each(|device| self.reads(&Spot { place, device, at: 0, len }, name, value))
    }

    /// Writes a whole buffer on all devices.
    fn writes_all(&mut self, value: Value) -> Result<(), Stopped> {
        let (name, place, len) = (self.name(value), self.place(value), self.bytes(value));
        for device in 0..self.mesh.devices() {
            let spot = Spot { place, device, at: 0, len };
            self.writes(&spot, value)?;
            self.shadow.write(&spot, name);
        }
        Ok(())
    }

    /// Calls `row` for the runs of neighbours in each device's block.
    fn each_row(
        &mut self,
        place: Place,
        layout: &Layout,
        mut row: impl FnMut(&mut Self, Spot) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let size = layout.dtype.size() as u64;
        let stored = self.mesh.stored_shape(layout);
        for device in 0..self.mesh.devices() {
            let lens = self.mesh.blocks(layout, device).iter().map(|range| range.len() as i64).collect();
            for (at, len) in offsets(lens, &strides(&stored)) {
                self.count(1)?;
                row(self, Spot { place, device, at: at as u64 * size, len: len * size })?;
            }
        }
        Ok(())
    }

    fn count(&mut self, runs: u64) -> Result<(), Stopped> {
        self.left = self.left.saturating_sub(runs);
        if self.left == 0 { Err(Stopped::Enough) } else { Ok(()) }
    }

    // Steps.

    fn work(&mut self, work: &'a Work, step: Flat<'a>) -> Result<(), Stopped> {
        match (work, step) {
            (Work::Kernel { buffers, .. }, Flat::Kernel(step) | Flat::Panels { kernel: step, .. }) => {
                self.line = step.site.line;
                self.accesses(buffers, step).replay(self)
            }
            (Work::Product { product, .. }, Flat::Other(Step::Gemm(step))) => {
                self.line = step.site.line;
                self.product([product.a, product.b, product.c], step)
            }
            (Work::Tiles { tiles, .. }, Flat::Other(Step::Tiles(step))) => {
                self.line = step.site.line;
                self.tiles(tiles, step)
            }
            (Work::Library { calls, .. }, Flat::Other(Step::Library(step))) => {
                self.line = step.site.line;
                self.library(calls, step)
            }
            (Work::Copy { from, to, .. }, Flat::Other(Step::Copy { from: source, to: target, bytes, .. })) => {
                let devices = (0..self.mesh.devices()).map(|device| (device, Some(device))).collect();
                self.moves((*from, *source), (*to, *target), *bytes, devices)
            }
            (Work::Permute { from, to, .. }, Flat::Other(Step::Permute(step))) => {
                self.line = step.site.line;
                let axes = || step.axes.iter().map(|&axis| axis as usize);
                let devices = (0..self.mesh.devices()).map(|device| {
                    let source = step.source[self.mesh.linear(device, axes())];
                    (device, source.map(|source| self.mesh.at(device, axes(), source as usize)))
                });
                let devices = devices.collect();
                self.moves((*from, step.from), (*to, step.to), step.bytes, devices)
            }
            (Work::Exchange { from, to, .. }, Flat::Other(Step::Exchange(step))) => {
                self.line = step.site.line;
                self.collective((from.value, &step.from), (to.value, &step.to))
            }
            (Work::Reduce { from, to, product, .. }, Flat::Other(Step::Reduce(step))) => {
                self.line = step.site.line;
                if let (Some(product), Some(step)) = (product, &step.product) {
                    self.product([product.a, product.b, product.c], step)?;
                }
                self.collective((from.value, &step.from), (to.value, &step.to))
            }
            (Work::Fetch { parts, .. }, Flat::Other(Step::Fetch(step))) => {
                self.line = step.site.line;
                for (part, step) in parts.iter().zip(&step.parts) {
                    self.fetch((part.from, part.to), step)?;
                }
                Ok(())
            }
            (Work::CheckIndex { index, to, .. }, Flat::Other(Step::CheckIndex { site, .. })) => {
                self.line = site.line;
                self.reads_all(*index)?;
                self.writes_all(*to)
            }
            (Work::Print { values, .. }, Flat::Other(Step::Print { values: places, site, .. })) => {
                self.line = site.line;
                for (&value, shown) in values.iter().zip(places) {
                    let name = self.name(value);
                    self.each_row(shown.place, &shown.layout, |replay, spot| replay.reads(&spot, name, value))?;
                }
                Ok(())
            }
            _ => fault("a task became another step"),
        }
    }

    fn accesses(&self, values: &'a [Value], step: &'a KernelStep) -> Accesses<'a> {
        Accesses { kernel: &self.plan.kernels[step.kernel as usize], values, step }
    }

    /// Copies whole buffers to devices, each from an owner; without an owner, writes zeros.
    fn moves(
        &mut self,
        (from, source): (Value, Place),
        (to, target): (Value, Place),
        bytes: u64,
        devices: Vec<(usize, Option<usize>)>,
    ) -> Result<(), Stopped> {
        if bytes > self.bytes(from) {
            return fault(format!("{from} is copied beyond its end"));
        }
        let (name, other) = (self.name(from), self.name(to));
        self.count((bytes >> 10) * devices.len() as u64)?;
        let spot = |place, device| Spot { place, device, at: 0, len: bytes };
        // For each device the units that are known; None if all are.
        let known: Vec<Option<Vec<bool>>> = devices
            .iter()
            .map(|&(_, owner)| {
                let source = spot(source, owner?);
                (!self.shadow.holds(&source, name)).then(|| self.shadow.known(&source, name))
            })
            .collect();
        for (&(device, _), known) in devices.iter().zip(known) {
            let target = spot(target, device);
            self.writes(&target, to)?;
            match known {
                Some(known) => self.shadow.write_known(&target, other, &known),
                None => self.shadow.write(&target, other),
            }
        }
        Ok(())
    }

    fn collective(&mut self, (from, source): (Value, &Shards), (to, target): (Value, &Shards)) -> Result<(), Stopped> {
        let (name, other) = (self.name(from), self.name(to));
        self.each_row(source.place, &source.layout, |replay, spot| replay.reads(&spot, name, from))?;
        self.each_row(target.place, &target.layout, |replay, spot| {
            replay.writes(&spot, to)?;
            replay.shadow.write(&spot, other);
            Ok(())
        })
    }

    fn fetch(&mut self, (from, to): (Value, Value), part: &FetchBoxes) -> Result<(), Stopped> {
        let (name, other) = (self.name(from), self.name(to));
        let size = part.dtype.size() as u64;
        let lens = |len: fn(&spmdc_abi::FetchDim) -> usize| part.dims.iter().map(len).collect::<Vec<_>>();
        let (from_strides, to_strides) = (strides(&lens(|dim| dim.from_len)), strides(&lens(|dim| dim.to_len)));
        for device in 0..self.mesh.devices() {
            let runs: Vec<&Vec<FetchRun>> = part
                .dims
                .iter()
                .map(|dim| &dim.runs[self.mesh.linear(device, dim.axes.iter().map(|&axis| axis as usize))])
                .collect();
            let mut choices = Points::new(runs.iter().map(|runs| 0..runs.len() as i64).collect());
            while let Some(choice) = choices.next() {
                let boxes: Vec<&FetchRun> = choice.iter().zip(&runs).map(|(&at, runs)| &runs[at as usize]).collect();
                let owner = boxes.iter().zip(&part.dims).fold(device, |owner, (run, dim)| {
                    self.mesh.at(owner, dim.owners.iter().map(|&axis| axis as usize), run.owner as usize)
                });
                let mut ranges: Vec<Range<i64>> = boxes.iter().map(|run| 0..run.len as i64).collect();
                // The innermost dimension is contiguous on both sides.
                let mut len = size;
                if let (Some(range), Some(run)) = (ranges.last_mut(), boxes.last())
                    && run.step == 1
                    && run.len > 0
                {
                    len *= run.len as u64;
                    *range = 0..1;
                }
                let mut indices = Points::new(ranges);
                while let Some(index) = indices.next() {
                    self.count(1)?;
                    let at = |strides: &[i64], place: &dyn Fn(&FetchRun, i64) -> i64| -> u64 {
                        let places = boxes.iter().zip(index).map(|(run, &i)| place(run, i));
                        places.zip(strides).map(|(place, stride)| place * stride).sum::<i64>() as u64 * size
                    };
                    let read = at(&from_strides, &|run, i| run.from as i64 + i * run.step);
                    let write = at(&to_strides, &|run, i| run.to as i64 + i);
                    self.reads(&Spot { place: part.from, device: owner, at: read, len }, name, from)?;
                    let spot = Spot { place: part.to, device, at: write, len };
                    self.writes(&spot, to)?;
                    self.shadow.write(&spot, other);
                }
            }
        }
        Ok(())
    }

    /// A member may use any element of its values in memory. The rows that members exchange are in scratch memory.
    fn tiles(&mut self, tiles: &TiledGroup, step: &TileStep) -> Result<(), Stopped> {
        for device in 0..self.mesh.devices() {
            let counts = |device| -> Vec<i64> {
                let numbers = step.matrices.iter().chain([&step.rows]);
                numbers.map(|number| self.mesh.resolve(number, device)).collect()
            };
            if self.mesh.group(device, step.split).into_iter().any(|sharer| counts(sharer) != counts(device)) {
                return fault("devices that share memory divide tiles of different matrices");
            }
        }
        let layout = |replay: &Self, value: Value| {
            let ty = &replay.plan.schedule.types[value.0 as usize];
            (!ty.sharding.is_aligned()).then(|| layout_of(ty))
        };
        for value in tiles.reads() {
            let (name, place) = (self.name(value), self.place(value));
            let Some(layout) = layout(self, value) else { continue };
            self.each_row(place, &layout, |replay, spot| replay.reads(&spot, name, value))?;
        }
        let written = tiles.results();
        for &value in &written {
            let axes = self.plan.program.arenas[self.place(value).arena as usize].axes;
            if self.mesh.axes().minus(axes) != step.split.intersect(self.mesh.axes()) {
                return fault(format!("{value} is shared by devices that do not divide its tiles"));
            }
        }
        self.writes_all(tiles.scratch)?;
        for value in written {
            let (name, place) = (self.name(value), self.place(value));
            let Some(layout) = layout(self, value) else {
                return fault(format!("{value} has the blocks of another value"));
            };
            self.each_row(place, &layout, |replay, spot| {
                replay.writes(&spot, value)?;
                replay.shadow.write(&spot, name);
                Ok(())
            })?;
        }
        Ok(())
    }

    fn product(&mut self, [a, b, c]: [Value; 3], step: &GemmStep) -> Result<(), Stopped> {
        let names = [a, b, c].map(|value| self.name(value));
        let mut written = Vec::new();
        for device in 0..self.mesh.devices() {
            let ring = step.ring.as_ref();
            let owners = ring.map_or(vec![device], |ring| {
                let axes = || ring.axes.iter().map(|&axis| axis as usize);
                (0..self.mesh.count(axes())).map(|at| self.mesh.at(device, axes(), at)).collect()
            });
            for owner in owners {
                let of_owner = |dim: &GemmDim| ring.is_some_and(|ring| if ring.is_b { dim.b != 0 } else { dim.a != 0 });
                let extent = |dim: &GemmDim, device: usize| {
                    self.mesh.resolve(&dim.extent, if of_owner(dim) { owner } else { device }).max(0)
                };
                let free: Vec<&GemmDim> = [&step.m, &step.n].into_iter().chain(&step.loops).collect();
                let all: Vec<&GemmDim> = free.iter().copied().chain([&step.k]).chain(&step.contracted).collect();
                for sharer in self.mesh.group(device, step.split) {
                    if free.iter().any(|dim| extent(dim, sharer) != extent(dim, device)) {
                        return fault(format!("devices that share {c} divide products of different sizes"));
                    }
                }
                let start = ring.map_or(0, |ring| self.mesh.resolve(&ring.start, owner));
                let is_b = ring.is_some_and(|ring| ring.is_b);
                let other = ring.map_or(0, |ring| start * ring.other);
                let first = [if is_b { other } else { 0 }, if is_b { 0 } else { other }];
                let from = |operand: bool| if ring.is_some() && operand == is_b { owner } else { device };
                let lens: Vec<i64> = all.iter().map(|dim| extent(dim, device)).collect();
                let behind = ring.map_or(0, |ring| start * ring.c);
                if lens.contains(&0) {
                    // A sum over no elements is 0.
                    let strides: Vec<i64> = free.iter().map(|dim| dim.c).collect();
                    let lens = free.iter().map(|dim| extent(dim, device)).collect();
                    written.extend(offsets(lens, &strides).into_iter().map(|(at, run)| (device, behind + at, run)));
                    continue;
                }
                let sides = [(a, step.a, from(false)), (b, step.b, from(true))];
                for (side, (value, place, device)) in sides.into_iter().enumerate() {
                    let (first, size) = (first[side], step.operands[side].size() as u64);
                    let strides: Vec<i64> = all.iter().map(|dim| if side == 0 { dim.a } else { dim.b }).collect();
                    let offsets = offsets(lens.clone(), &strides);
                    self.count(offsets.len() as u64)?;
                    for (at, run) in offsets {
                        let spot = Spot { place, device, at: (first + at) as u64 * size, len: run * size };
                        self.reads(&spot, names[side], value)?;
                    }
                }
                let strides: Vec<i64> = all.iter().map(|dim| dim.c).collect();
                written.extend(offsets(lens, &strides).into_iter().map(|(at, run)| (device, behind + at, run)));
            }
        }
        let size = step.dtype.size() as u64;
        for (device, at, run) in written {
            let spot = Spot { place: step.c, device, at: at as u64 * size, len: run * size };
            self.writes(&spot, c)?;
            self.shadow.write(&spot, names[2]);
        }
        Ok(())
    }
}

/// A step of a list, with panels expanded.
#[derive(Clone, Copy)]
enum Flat<'a> {
    Kernel(&'a KernelStep),
    /// A kernel that runs by panels with its neighbours; `left` of them follow.
    Panels {
        kernel: &'a KernelStep,
        lag: u64,
        left: usize,
    },
    Other(&'a Step),
}

/// Appends a step without other steps in it; barriers have no task.
fn flatten<'a>(step: &'a Step, flat: &mut Vec<Flat<'a>>) {
    if let Step::Panels { kernels, lags, .. } = step {
        let members = kernels.iter().zip(lags).zip((0..kernels.len()).rev());
        flat.extend(members.map(|((kernel, &lag), left)| Flat::Panels { kernel, lag, left }));
    } else if let Step::Kernel(kernel) = step {
        flat.push(Flat::Kernel(kernel));
    } else if !matches!(step, Step::Sync { .. } | Step::Post { .. } | Step::Await { .. }) {
        flat.push(Flat::Other(step));
    }
}

/// The panels of a group that a step is a part of; `left` steps follow.
#[derive(Clone, Copy)]
struct GroupMember<'a> {
    panels: &'a GroupPanels,
    left: usize,
}

/// Row-major strides of a shape, in elements.
fn strides(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for dim in (1..shape.len()).rev() {
        strides[dim - 1] = strides[dim] * shape[dim] as i64;
    }
    strides
}

/// All combinations of numbers of some ranges; the last number changes fastest.
struct Points {
    ranges: Vec<Range<i64>>,
    /// The next combination, or the present one if there has been one.
    now: Vec<i64>,
    has_begun: bool,
    is_over: bool,
}

impl Points {
    fn new(ranges: Vec<Range<i64>>) -> Points {
        let (now, is_over) =
            (ranges.iter().map(|range| range.start).collect(), ranges.iter().any(|range| range.is_empty()));
        Points { ranges, now, has_begun: false, is_over }
    }

    /// The next combination. It is not an iterator, as it gives the same memory each time.
    fn next(&mut self) -> Option<&[i64]> {
        if std::mem::replace(&mut self.has_begun, true) && !self.is_over {
            self.is_over = !self.now.iter_mut().zip(&self.ranges).rev().any(|(number, range)| {
                *number += 1;
                let is_inside = *number < range.end;
                if !is_inside {
                    *number = range.start;
                }
                is_inside
            });
        }
        (!self.is_over).then_some(&self.now)
    }
}

/// The runs of neighbouring elements at the different sums of indices times strides: the first element and length of each.
fn offsets(lens: Vec<i64>, strides: &[i64]) -> Vec<(i64, u64)> {
    let mut ranges: Vec<Range<i64>> = lens.iter().map(|&len| 0..len).collect();
    let run = collapse(&mut ranges, |dim| strides[dim]);
    let mut points = Points::new(ranges);
    let mut found = Vec::new();
    while let Some(index) = points.next() {
        found.push((index.iter().zip(strides).map(|(&i, &stride)| i * stride).sum(), run));
    }
    found
}

/// Shortens ranges of indices so that each run of neighbouring elements is visited once: dimensions along which the next run begins where one
/// ends, or before, keep their first index only. Returns the length of a run in elements.
fn collapse(ranges: &mut [Range<i64>], stride: impl Fn(usize) -> i64) -> u64 {
    let mut run = 1;
    let mut joins = |dim: usize, range: &mut Range<i64>| {
        let (stride, len) = (stride(dim), range.end - range.start);
        let is_joined = len > 1 && (0..=run).contains(&stride);
        if is_joined {
            run += stride * (len - 1);
            range.end = range.start + 1;
        }
        is_joined
    };
    // A dimension may join runs that an inner one has made longer.
    while ranges.iter_mut().enumerate().rev().any(|(dim, range)| joins(dim, range)) {}
    run as u64
}

/// The values that tasks define, without the carried values of loops.
fn made_in(tasks: &[Task]) -> BTreeSet<Value> {
    let mut made = BTreeSet::new();
    for task in tasks {
        match task {
            Task::Work(Work::Copy { .. } | Work::Alias { .. }) => {}
            Task::Work(work) => made.extend(work.writes()),
            Task::For { body, stacked, .. } => {
                made.extend(made_in(body));
                made.extend(stacked);
            }
            Task::While { cond, body, .. } => {
                made.extend(made_in(cond));
                made.extend(made_in(body));
            }
            Task::If { then, otherwise, .. } => {
                made.extend(made_in(then));
                made.extend(made_in(otherwise));
            }
        }
    }
    made
}
