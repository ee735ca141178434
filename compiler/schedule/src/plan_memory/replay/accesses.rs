//! The reads and writes of kernel calls.

use super::shadow::{Name, Spot};
use super::{Points, Replay, Stopped, collapse, fault};
use spmdc_abi::{AxisSet, DType, KernelStep, ReduceStep, Scalar, Shards};
use spmdc_ir::program::Value;
use spmdc_kernel::loops::{Affine, Combine, Elem, Extent, Inst, Kernel, Store, affines, operands};
use spmdc_kernel::nest::Nest;
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};
use std::ops::Range;

/// A kernel with the step that calls it.
pub struct Accesses<'a> {
    pub kernel: &'a Kernel,
    pub values: &'a [Value],
    pub step: &'a KernelStep,
}

/// A device's call of the kernel.
struct KernelRun {
    device: usize,
    scalars: Vec<i64>,
    ranges: Vec<Range<i64>>,
    dynamic: DynamicIndices,
}

/// The values of a call's dynamic indices.
#[derive(Clone, Copy, PartialEq)]
enum DynamicIndices {
    First,
    Last,
    /// At each point another allowed value.
    Spread,
}

/// All choices of dynamic indices. A kernel without such indices is called with the first.
const DYNAMIC_INDICES: [DynamicIndices; 3] = [DynamicIndices::First, DynamicIndices::Last, DynamicIndices::Spread];

impl DynamicIndices {
    /// The value of an index between 0 and `last`, at a point.
    fn value(self, elem: Elem, last: u64, point: &[i64]) -> i64 {
        let value = match self {
            DynamicIndices::First => 0,
            DynamicIndices::Last => last,
            DynamicIndices::Spread => {
                let mix =
                    |hash: u64, i: &i64| (hash ^ i.cast_unsigned()).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23);
                point.iter().fold(u64::from(elem.0) + 1, mix) % last.saturating_add(1).max(1)
            }
        };
        i64::try_from(value).unwrap_or(i64::MAX)
    }
}

/// The bytes that a device reads and writes for a unit of a range.
pub struct UsedUnit {
    pub unit: i64,
    pub read: Vec<Spot>,
    pub written: Vec<Spot>,
}

/// A run of neighbouring elements that a call reads or writes.
struct Touch {
    slot: usize,
    spot: Spot,
    name: Name,
    /// The number of the point of the call's loops; 0 where it does not matter.
    point: u64,
}

/// The loads that are needed where conditions hold or do not: a binary tree with a level for each condition.
struct NeededLoads(Vec<LoadNode>);

/// The known facts where some conditions hold or do not.
#[derive(Default)]
struct LoadNode {
    /// The nodes for the next condition, if it does not hold and if it does; 0 for none.
    next: [usize; 2],
    /// The loads, if this was the last condition.
    loads: Option<Vec<usize>>,
}

impl Default for NeededLoads {
    fn default() -> NeededLoads {
        NeededLoads(vec![LoadNode::default()])
    }
}

impl NeededLoads {
    /// The loads where the conditions hold so; `needed` finds them the first time.
    fn find(&mut self, holds: &[bool], needed: impl FnOnce() -> Vec<usize>) -> &[usize] {
        let mut at = 0;
        for &is_held in holds {
            let new = self.0.len();
            let next = &mut self.0[at].next[usize::from(is_held)];
            if *next == 0 {
                *next = new;
                at = new;
                self.0.push(LoadNode::default());
            } else {
                at = *next;
            }
        }
        self.0[at].loads.get_or_insert_with(needed)
    }
}

/// Maximum number of parts into which a device's share of a range is cut to check whether they conflict.
const MAX_PARTS: u64 = 256;

/// The steps besides kernels that run by panels, and the devices that divide the range.
#[derive(Default)]
pub struct PanelSharers<'a> {
    /// The axes along which the devices differ for which one of them runs a panel; empty if each device runs its own.
    pub axes: AxisSet,
    pub reductions: Vec<&'a ReduceStep>,
}

impl PanelSharers<'_> {
    /// The group of a device, numbered by its first device.
    fn of(&self, replay: &Replay<'_>, device: usize) -> usize {
        replay.mesh.at(device, self.axes.iter().collect::<Vec<_>>(), 0)
    }

    /// The bytes of one side of a reduction that belong to each part of the range, with the numbers of the parts.
    fn spots(&self, replay: &Replay<'_>, (side, range): (&Shards, &Scalar)) -> Result<Vec<(u64, Spot)>, Stopped> {
        let Some(unit) = replay.mesh.unit_bytes(&side.layout, range) else {
            return fault("the units of a reduction do not lie one after another");
        };
        let spots = (0..replay.mesh.devices()).flat_map(|device| {
            let parts = cut(0..replay.mesh.resolve(range, device)).zip(0..);
            parts.map(move |(units, part)| {
                let (at, len) = (units.start as u64 * unit, (units.end - units.start) as u64 * unit);
                (part, Spot { place: side.place, device, at, len })
            })
        });
        Ok(spots.collect())
    }
}

/// The parts of a range, [`MAX_PARTS`] at most.
fn cut(units: Range<i64>) -> impl Iterator<Item = Range<i64>> {
    debug_assert!(units.start <= units.end, "a range of {units:?}");
    let len = ((units.end - units.start) as u64).div_ceil(MAX_PARTS).max(1) as i64;
    units.clone().step_by(len as usize).map(move |begin| begin..(begin + len).min(units.end))
}

/// Checks that kernels may run panel by panel: no part of the range touches an element that another part writes. Then neither the
/// order of the panels matters nor their division among workers.
pub fn run_by_panels(
    kernels: &[Accesses<'_>],
    group: &PanelSharers<'_>,
    replay: &mut Replay<'_>,
) -> Result<(), Stopped> {
    let count = if kernels.iter().any(Accesses::has_dynamic_indices) { DYNAMIC_INDICES.len() } else { 1 };
    DYNAMIC_INDICES[..count].iter().try_for_each(|&dynamic| run_by_panels_at(kernels, group, dynamic, replay))
}

/// As [`run_by_panels`], for one choice of dynamic indices: a run has no others, so panels of different choices never meet.
fn run_by_panels_at(
    kernels: &[Accesses<'_>],
    group: &PanelSharers<'_>,
    dynamic: DynamicIndices,
    replay: &mut Replay<'_>,
) -> Result<(), Stopped> {
    replay.shadow.next_step();
    let range = kernels.first().map(|kernel| &kernel.step.range);
    let mut written: Vec<(u16, Range<u64>)> = kernels.iter().flat_map(|kernel| kernel.spans(replay, true)).collect();
    for (reduction, range) in group.reductions.iter().zip(range.into_iter().cycle()) {
        for (part, spot) in group.spots(replay, (&reduction.to, range))? {
            written.push((spot.place.arena, spot.place.offset + spot.at..spot.place.offset + spot.at + spot.len));
            if !replay.shadow.claim(&spot, group.of(replay, spot.device), part) {
                return fault(format!("two panels write byte {} of a reduction", spot.at));
            }
        }
    }
    for kernel in kernels {
        for (part, call) in kernel.parts(replay, dynamic) {
            let writer = group.of(replay, call.device);
            for store in &kernel.kernel.stores {
                let ranges = kernel.stored(store, &call);
                kernel.each_run(replay, &call, &store.access.address, ranges, |replay, at, len| {
                    let Touch { slot, spot, .. } = kernel.touch(replay, &call, store.access.buffer, (at, len), part);
                    match replay.shadow.claim(&spot, writer, part) {
                        true => Ok(()),
                        false => fault(format!("two panels write byte {} of {}", spot.at, kernel.values[slot])),
                    }
                })?;
            }
        }
    }
    for (reduction, range) in group.reductions.iter().zip(range.into_iter().cycle()) {
        for (part, spot) in group.spots(replay, (&reduction.from, range))? {
            if !replay.shadow.is_undisturbed(&spot, group.of(replay, spot.device), part) {
                return fault(format!("one panel combines byte {}, which another one overwrites", spot.at));
            }
        }
    }
    for kernel in kernels {
        if !kernel.spans(replay, false).any(|read| written.iter().any(|written| overlap(&read, written))) {
            continue;
        }
        for (part, call) in kernel.parts(replay, dynamic) {
            let reader = group.of(replay, call.device);
            kernel.loads(replay, &call, false, &mut |replay, Touch { slot, spot, .. }| match replay
                .shadow
                .is_undisturbed(&spot, reader, part)
            {
                true => Ok(()),
                false => {
                    let value = kernel.values[slot];
                    fault(format!("one panel reads byte {} of {value}, which another one overwrites", spot.at))
                }
            })?;
        }
    }
    Ok(())
}

/// Whether two ranges of bytes of arenas have a byte in common.
fn overlap((arena, a): &(u16, Range<u64>), (other, b): &(u16, Range<u64>)) -> bool {
    arena == other && a.start < b.end && b.start < a.end
}

/// Changes the innermost index of a point, if it has one.
fn move_to(index: &mut [i64], innermost: i64) {
    if let Some(last) = index.last_mut() {
        *last = innermost;
    }
}

/// The change of a value from one index of the innermost of `dims` dimensions to the next; None if dynamic indices change it as well.
fn inner_stride(affine: &Affine, dims: usize) -> Option<i64> {
    let stride = dims.checked_sub(1).map_or(0, |dim| Nest::stride(affine, dim));
    affine.dynamic.is_empty().then_some(stride)
}

/// The number of steps by `slope` after which a value that was not negative is, or the other way round.
pub fn sign_change(value: i64, slope: i64) -> i64 {
    match value >= 0 {
        true if slope < 0 => value / -slope + 1,
        false if slope > 0 => (-value + slope - 1) / slope,
        true | false => i64::MAX,
    }
}

impl Accesses<'_> {
    /// Replays the step: marks its writes, checks that its reads find their values and no mark of another device, then writes.
    pub fn replay(&self, replay: &mut Replay<'_>) -> Result<(), Stopped> {
        let calls: Vec<KernelRun> = (0..replay.mesh.devices()).flat_map(|device| self.calls(replay, device)).collect();
        let in_place = self.overlaps(replay);
        let mut writes = Vec::new();
        for call in &calls {
            self.writes(replay, call, in_place, &mut writes)?;
        }
        for Touch { slot, spot, point, .. } in &writes {
            let value = self.values[*slot];
            replay.writes(spot, value)?;
            if !replay.shadow.mark(spot, *point) {
                return fault(format!("two devices write byte {} of {value}", spot.at));
            }
        }
        for call in &calls {
            self.reads(replay, call, in_place)?;
        }
        writes.iter().for_each(|touch| replay.shadow.write(&touch.spot, touch.name));
        Ok(())
    }

    /// The device's calls: none without a share of the range; three, with different dynamic indices, if it has any.
    fn calls(&self, replay: &Replay<'_>, device: usize) -> Vec<KernelRun> {
        let mesh = replay.mesh;
        let scalars: Vec<i64> = self.step.scalars.iter().map(|scalar| mesh.resolve(scalar, device)).collect();
        let units = mesh.units(self.step, device);
        if units.is_empty() {
            return Vec::new();
        }
        let dims = self.kernel.dims.iter().enumerate();
        let range = |(dim, of): (usize, &spmdc_kernel::loops::LoopDim)| match of.extent {
            _ if dim == 0 && self.kernel.range_dim => units.clone(),
            Extent::Static(extent) => 0..extent as i64,
            Extent::Scalar { slot, .. } => 0..scalars[slot],
        };
        let ranges: Vec<Range<i64>> = dims.map(range).collect();
        let count = if self.has_dynamic_indices() { DYNAMIC_INDICES.len() } else { 1 };
        let call = |&dynamic| KernelRun { device, scalars: scalars.clone(), ranges: ranges.clone(), dynamic };
        DYNAMIC_INDICES[..count].iter().map(call).collect()
    }

    fn has_dynamic_indices(&self) -> bool {
        self.kernel.insts.iter().any(|inst| matches!(inst, Inst::LoopInvariant { .. } | Inst::Limit { .. }))
    }

    /// The calls of all devices with these dynamic indices, each for a part of its share, and the numbers of the parts.
    fn parts(&self, replay: &Replay<'_>, dynamic: DynamicIndices) -> Vec<(u64, KernelRun)> {
        let dynamic = if self.has_dynamic_indices() { dynamic } else { DYNAMIC_INDICES[0] };
        let calls = (0..replay.mesh.devices()).flat_map(|device| self.calls(replay, device));
        let calls = calls.filter(|call| call.dynamic == dynamic);
        let parts = calls.flat_map(|call| {
            cut(call.ranges[0].clone()).zip(0..).map(move |(units, part)| {
                let mut ranges = call.ranges.clone();
                ranges[0] = units;
                (part, KernelRun { device: call.device, scalars: call.scalars.clone(), ranges, dynamic: call.dynamic })
            })
        });
        parts.collect()
    }

    /// The bytes that each unit of the range reads, and the bytes that it writes, on all devices.
    pub fn of_units(&self, replay: &mut Replay<'_>) -> Result<Vec<UsedUnit>, Stopped> {
        let calls: Vec<KernelRun> = (0..replay.mesh.devices()).flat_map(|device| self.calls(replay, device)).collect();
        let mut found = Vec::new();
        for call in calls {
            for unit in call.ranges[0].clone() {
                let mut ranges = call.ranges.clone();
                ranges[0] = unit..unit + 1;
                let KernelRun { device, ref scalars, dynamic, .. } = call;
                let one = KernelRun { device, scalars: scalars.clone(), ranges, dynamic };
                let mut used = UsedUnit { unit, read: Vec::new(), written: Vec::new() };
                self.loads(replay, &one, false, &mut |_, touch| {
                    used.read.push(touch.spot);
                    Ok(())
                })?;
                for store in &self.kernel.stores {
                    let ranges = self.stored(store, &one);
                    self.each_run(replay, &one, &store.access.address, ranges, |replay, at, len| {
                        used.written.push(self.touch(replay, &one, store.access.buffer, (at, len), 0).spot);
                        Ok(())
                    })?;
                }
                found.push(used);
            }
        }
        Ok(found)
    }

    /// Whether the step writes over a buffer that it reads.
    fn overlaps(&self, replay: &Replay<'_>) -> bool {
        self.spans(replay, true).any(|written| self.spans(replay, false).any(|read| overlap(&written, &read)))
    }

    /// The arena and bytes of each buffer that the step writes, or of each that it reads.
    fn spans(&self, replay: &Replay<'_>, written: bool) -> impl Iterator<Item = (u16, Range<u64>)> {
        let slots = self.kernel.buffers.iter().enumerate().filter(move |(_, slot)| slot.written == written);
        slots.map(|(slot, _)| {
            let place = self.step.buffers[slot];
            (place.arena, place.offset..place.offset + replay.bytes(self.values[slot]).max(1))
        })
    }

    /// The stores of a call. A store at a dynamic index changes some elements of a value that is there already.
    fn writes(
        &self,
        replay: &mut Replay<'_>,
        call: &KernelRun,
        in_place: bool,
        writes: &mut Vec<Touch>,
    ) -> Result<(), Stopped> {
        for store in &self.kernel.stores {
            let address = &store.access.address;
            let ranges = self.stored(store, call);
            let slot = store.access.buffer;
            if !address.dynamic.is_empty() {
                self.each_run(replay, call, address, ranges, |replay, at, len| {
                    let Touch { spot, name, .. } = self.touch(replay, call, slot, (at, len), 0);
                    replay.reads(&spot, name, self.values[slot])
                })?;
            } else if in_place {
                let mut points = Points::new(ranges.clone());
                while let Some(index) = points.next() {
                    replay.count(1)?;
                    let at = self.address(call, address, index);
                    writes.push(self.touch(replay, call, slot, (at, 1), self.number(index, &ranges)));
                }
            } else {
                self.each_run(replay, call, address, ranges, |replay, at, len| {
                    writes.push(self.touch(replay, call, slot, (at, len), 0));
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// The points of the call's loops at which it stores.
    fn stored(&self, store: &Store, call: &KernelRun) -> Vec<Range<i64>> {
        let mut ranges = call.ranges.clone();
        if !store.combine.is_none_or(Combine::is_scan) {
            // A reduction of nothing stores its initial value.
            let reduced = self.kernel.dims.iter().zip(&mut ranges).filter(|(dim, _)| dim.reduced);
            reduced.for_each(|(_, range)| *range = 0..1);
        }
        ranges
    }

    fn reads(&self, replay: &mut Replay<'_>, call: &KernelRun, in_place: bool) -> Result<(), Stopped> {
        self.loads(replay, call, in_place, &mut |replay, Touch { slot, spot, name, point }| {
            replay.reads(&spot, name, self.values[slot])?;
            if in_place && !replay.shadow.is_undisturbed(&spot, spot.device, point) {
                let (device, at, value) = (spot.device, spot.at, self.values[slot]);
                return fault(format!("device {device} reads byte {at} of {value}, which the same step overwrites"));
            }
            Ok(())
        })
    }

    /// The loads of a call, with the numbers of the points if they are asked for.
    fn loads(
        &self,
        replay: &mut Replay<'_>,
        call: &KernelRun,
        numbered: bool,
        each: &mut dyn FnMut(&mut Replay<'_>, Touch) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        for inst in &self.kernel.insts {
            if let Inst::LoopInvariant { buffer, .. } = inst {
                let touch = self.touch(replay, call, *buffer, (0, 1), u64::MAX);
                each(replay, touch)?;
            }
        }
        // Where conditions on indices choose between operands, an element of the other operand may be out of range.
        let conditions: Vec<Elem> = (0..self.kernel.insts.len() as u32)
            .map(Elem)
            .filter(|elem| matches!(self.kernel.insts[elem.0 as usize], Inst::InRange { .. }))
            .collect();
        if conditions.is_empty() && !numbered {
            for inst in &self.kernel.insts {
                if let Inst::Load { access, .. } = inst {
                    self.each_run(replay, call, &access.address, call.ranges.clone(), |replay, at, len| {
                        let touch = self.touch(replay, call, access.buffer, (at, len), u64::MAX);
                        each(replay, touch)
                    })?;
                }
            }
            return Ok(());
        }
        let mut known = NeededLoads::default();
        let (mut rows, mut index, mut holds) = (call.ranges.clone(), Vec::new(), Vec::new());
        // Along the innermost dimension, from one change of a condition to the next.
        let inner = rows.last_mut().map_or(0..1, |range| {
            let end = range.end.min(range.start + 1);
            range.start..std::mem::replace(&mut range.end, end)
        });
        let mut rows = Points::new(rows);
        while let Some(row) = rows.next() {
            index.clear();
            index.extend_from_slice(row);
            let mut begin = inner.start;
            while begin < inner.end {
                move_to(&mut index, begin);
                let mut len = if numbered { 1 } else { inner.end - begin };
                holds.clear();
                for &condition in &conditions {
                    let (is_held, steps) = self.condition(call, condition, &index);
                    holds.push(is_held);
                    len = len.min(steps);
                }
                replay.count(1)?;
                for &load in known.find(&holds, || self.needed(&conditions, &holds)) {
                    let Inst::Load { access, .. } = &self.kernel.insts[load] else { continue };
                    let (runs, run) = match inner_stride(&access.address, index.len()) {
                        Some(0) => (1, 1),
                        Some(1) => (1, len),
                        Some(_) | None => (len, 1),
                    };
                    replay.count(runs as u64)?;
                    for at in begin..begin + runs {
                        move_to(&mut index, at);
                        let elements = (self.address(call, &access.address, &index), run as u64);
                        let number = if numbered { self.number(&index, &call.ranges) } else { u64::MAX };
                        each(replay, self.touch(replay, call, access.buffer, elements, number))?;
                    }
                    move_to(&mut index, begin);
                }
                begin += len;
            }
        }
        Ok(())
    }

    /// Visits all addresses as runs of neighbours: the first element and the length of each run.
    fn each_run(
        &self,
        replay: &mut Replay<'_>,
        call: &KernelRun,
        address: &Affine,
        mut ranges: Vec<Range<i64>>,
        mut run: impl FnMut(&mut Replay<'_>, i64, u64) -> Result<(), Stopped>,
    ) -> Result<(), Stopped> {
        let stride = |dim: usize| match Nest::stride(address, dim) {
            // At each row a dynamic index has another value.
            stride if stride > 1 && !address.dynamic.is_empty() => -1,
            stride => stride,
        };
        let len = collapse(&mut ranges, stride);
        let mut points = Points::new(ranges);
        while let Some(index) = points.next() {
            replay.count(1)?;
            let at = self.address(call, address, index);
            run(replay, at, len)?;
        }
        Ok(())
    }

    fn touch(
        &self,
        replay: &Replay<'_>,
        call: &KernelRun,
        slot: usize,
        (element, len): (i64, u64),
        point: u64,
    ) -> Touch {
        let size = self.kernel.buffers[slot].dtype.size() as u64;
        // An element before the buffer is reported as one after it.
        let at = u64::try_from(element).map_or(u64::MAX / 2, |element| element * size);
        let spot = Spot { place: self.step.buffers[slot], device: call.device, at, len: len * size };
        Touch { slot, spot, name: replay.name(self.values[slot]), point }
    }

    /// A number for a point, the same for all points that are reduced to one element.
    fn number(&self, index: &[i64], ranges: &[Range<i64>]) -> u64 {
        let pairs = index.iter().zip(ranges).zip(&self.kernel.dims).filter(|(_, dim)| !dim.reduced);
        pairs.fold(0u64, |number, ((&i, range), _)| number.wrapping_mul(range.end as u64 + 1).wrapping_add(i as u64))
    }

    fn address(&self, call: &KernelRun, affine: &Affine, index: &[i64]) -> i64 {
        let dims = affine.terms.iter().map(|&(dim, stride)| index[dim] * stride);
        let known = affine.scalars.iter().map(|&(slot, stride)| call.scalars[slot] * stride);
        let dynamic = affine.dynamic.iter().map(|&(elem, stride)| {
            let inst = &self.kernel.insts[elem.0 as usize];
            let value = if let Inst::LoopInvariant { last, .. } = inst {
                call.dynamic.value(elem, *last, &[])
            } else if let Inst::Limit { last, .. } = inst {
                call.dynamic.value(elem, *last, index)
            } else {
                unreachable!("{inst:?} is no dynamic index")
            };
            value * stride
        });
        affine.constant + dims.sum::<i64>() + known.sum::<i64>() + dynamic.sum::<i64>()
    }

    /// Whether a condition on indices holds at a point, and the number of steps along the innermost dimension to where that may change.
    fn condition(&self, call: &KernelRun, condition: Elem, index: &[i64]) -> (bool, i64) {
        let Inst::InRange { affine, low, high } = &self.kernel.insts[condition.0 as usize] else {
            unreachable!("only ranges are conditions")
        };
        let [at, from, to] = [affine, low, high].map(|affine| self.address(call, affine, index));
        let [slope, low, high] = [affine, low, high].map(|affine| inner_stride(affine, index.len()));
        let steps = match (slope, low, high) {
            (Some(slope), Some(low), Some(high)) => {
                sign_change(at - from, slope - low).min(sign_change(to - 1 - at, high - slope))
            }
            _ => 1,
        };
        ((from..to).contains(&at), steps)
    }

    /// The loads that are needed where these conditions hold, or do not.
    fn needed(&self, conditions: &[Elem], holds: &[bool]) -> Vec<usize> {
        let insts = &self.kernel.insts;
        let mut seen = vec![false; insts.len()];
        let mut stack: Vec<Elem> = self.kernel.stores.iter().flat_map(|store| store.operands()).collect();
        let mut loads = Vec::new();
        while let Some(elem) = stack.pop() {
            let at = elem.0 as usize;
            if std::mem::replace(&mut seen[at], true) {
                continue;
            }
            let indices = affines(&insts[at]).flat_map(|affine| &affine.dynamic);
            stack.extend(indices.map(|&(index, _)| index));
            match &insts[at] {
                Inst::Load { .. } => loads.push(at),
                Inst::Select { cond, then, otherwise, .. } => match self.truth(*cond, conditions, holds) {
                    Some(true) => stack.push(*then),
                    Some(false) => stack.push(*otherwise),
                    None => stack.extend([*cond, *then, *otherwise]),
                },
                Inst::Unary { arg, .. }
                | Inst::Cast { arg, .. }
                | Inst::Bitcast { arg, .. }
                | Inst::CheckIndex { arg, .. }
                | Inst::RandomBits { key: arg, .. }
                | Inst::Limit { arg, .. } => stack.push(*arg),
                Inst::Binary { lhs, rhs, .. } | Inst::Compare { lhs, rhs, .. } => stack.extend([*lhs, *rhs]),
                Inst::Fma { x, y, z, .. } => stack.extend([*x, *y, *z]),
                inst @ (Inst::Carried { .. } | Inst::Repeat { .. } | Inst::Last { .. }) => stack.extend(operands(inst)),
                Inst::Const { .. } | Inst::Index { .. } | Inst::LoopInvariant { .. } | Inst::InRange { .. } => {}
            }
        }
        loads
    }

    /// Whether a bool is true, if that follows from the conditions.
    fn truth(&self, elem: Elem, conditions: &[Elem], holds: &[bool]) -> Option<bool> {
        match &self.kernel.insts[elem.0 as usize] {
            Inst::InRange { .. } => conditions.iter().position(|&known| known == elem).map(|at| holds[at]),
            Inst::Const { bits, .. } => Some(*bits != 0),
            Inst::Unary { op: UnaryOp::Not, dtype: DType::Bool, arg } => Some(!self.truth(*arg, conditions, holds)?),
            Inst::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), dtype: DType::Bool, lhs, rhs, .. } => {
                let decides = *op == BinaryOp::Or;
                match (self.truth(*lhs, conditions, holds), self.truth(*rhs, conditions, holds)) {
                    (Some(side), _) | (_, Some(side)) if side == decides => Some(decides),
                    (Some(_), Some(_)) => Some(!decides),
                    _ => None,
                }
            }
            Inst::CheckIndex { .. }
            | Inst::Limit { .. }
            | Inst::Unary { .. }
            | Inst::Binary { .. }
            | Inst::Load { .. }
            | Inst::Index { .. }
            | Inst::LoopInvariant { .. }
            | Inst::Compare { .. }
            | Inst::Select { .. }
            | Inst::Fma { .. }
            | Inst::RandomBits { .. }
            | Inst::Carried { .. }
            | Inst::Repeat { .. }
            | Inst::Last { .. }
            | Inst::Cast { .. }
            | Inst::Bitcast { .. } => None,
        }
    }
}
