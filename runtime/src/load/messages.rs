//! Prepares steps that read the memory of other devices, with the messages that bring the bytes of those in other processes.

use std::collections::BTreeMap;

use super::{Counted, Loader};
use crate::collectives::reduce::{self, BoxReduction, Portion, Rounds};
use crate::data::boxes::Rows;
use crate::errors::trap::RunError;
use crate::processes::plans::{GroupMessages, Senders, plan_group};
use crate::processes::reads::DeviceReads;
use crate::run::device::Action;
use crate::run::memory::Memory;
use spmdc_abi::mesh::DeviceMesh;
use spmdc_abi::{AxisSet, ReduceStep, Site};

/// The most portions of a reduction.
const PORTIONS: u64 = 64;
/// The most places of partial values in the plans of all portions and devices together, which every process makes (2^18).
const PLANNED_PLACES: u64 = 1 << 18;

/// Prepares the part of a device in a step. One function serves all kinds of steps: it is large, and a copy for each would be in every
/// executable.
type PlanPart<'p> = dyn FnMut(&mut DeviceReads<'_>, usize) -> Result<(), RunError> + 'p;

/// Combines partial values into a message: gets their addresses, the message, and the rows.
type CombineParts<'p> = dyn Fn(&[*const u8], *mut u8, Rows) -> Result<BoxReduction, RunError> + 'p;

/// The groups of devices that move the messages of a step: in each of them all devices are in the same loops and branches.
struct StepGroups {
    /// The axes along which the devices of a group differ.
    joined: AxisSet,
    /// The axes along which the groups differ, and their number.
    others: Vec<usize>,
    count: usize,
}

impl StepGroups {
    fn members(&self, mesh: &DeviceMesh, group: usize) -> Vec<usize> {
        mesh.group(mesh.at(0, self.others.iter().copied(), group), self.joined)
    }
}

impl Loader<'_> {
    /// The parts of this process's devices in a step, by `plan`. If it reads the memory of other processes, a crossing comes before it:
    /// the plans of all devices say which bytes. `group`: the axes along which the devices differ that read from each other.
    pub(super) fn planned<T>(
        &mut self,
        (group, senders): (AxisSet, Senders),
        at: (Site, &'static str),
        mut plan: impl FnMut(&mut DeviceReads<'_>, usize) -> Result<T, RunError>,
    ) -> Result<Vec<T>, RunError> {
        let messages = self.messages(group, &mut |reads, device| plan(reads, device).map(drop))?;
        self.with_messages((group, senders, messages), at, plan, &|_, _, _| {
            Err(RunError::internal("only reductions combine values"))
        })
    }

    fn step_groups(&self, group: AxisSet) -> StepGroups {
        let mesh = self.mesh;
        let joined = group.union(mesh.axes().minus(self.varying)).intersect(mesh.axes());
        let others: Vec<usize> = mesh.axes().minus(joined).iter().collect();
        let count = mesh.count(others.iter().copied());
        StepGroups { joined, others, count }
    }

    /// The messages of a step, in each of its groups; none if there is one process.
    fn messages(&self, group: AxisSet, plan: &mut PlanPart<'_>) -> Result<Vec<GroupMessages>, RunError> {
        if self.mesh.processes() == 1 {
            return Ok(Vec::new());
        }
        let (memory, groups) = (self.memory, self.step_groups(group));
        (0..groups.count).map(|group| plan_group(memory, &groups.members(self.mesh, group), plan)).collect()
    }

    /// As `planned`, with messages that have been planned, and where values are combined before they are sent: `combine` gets the
    /// addresses of the partial values, the message, and the rows.
    fn with_messages<T>(
        &mut self,
        messages: (AxisSet, Senders, Vec<GroupMessages>),
        at: (Site, &'static str),
        mut plan: impl FnMut(&mut DeviceReads<'_>, usize) -> Result<T, RunError>,
        combine: &CombineParts<'_>,
    ) -> Result<Vec<T>, RunError> {
        let devices = self.memory.devices();
        let mut parts: Vec<Option<T>> = devices.iter().map(|_| None).collect();
        let mut plan = |reads: &mut DeviceReads<'_>, device: usize| {
            let own = devices.binary_search(&device).expect("the device is in this process");
            parts[own] = Some(plan(reads, device)?);
            Ok(())
        };
        self.plan_with_messages(messages, at, &mut plan, combine)?;
        debug_assert!(parts.iter().all(Option::is_some), "every device is in one group");
        Ok(parts.into_iter().flatten().collect())
    }

    /// As `with_messages`; `plan` keeps the parts.
    fn plan_with_messages(
        &mut self,
        (group, senders, all): (AxisSet, Senders, Vec<GroupMessages>),
        (site, what): (Site, &'static str),
        plan: &mut PlanPart<'_>,
        combine: &CombineParts<'_>,
    ) -> Result<(), RunError> {
        let (mesh, memory): (&DeviceMesh, &Memory) = (self.mesh, self.memory);
        if mesh.processes() == 1 {
            let mut reads = DeviceReads::resolve(memory, &[], &[]);
            return memory.devices().iter().try_for_each(|&device| plan(&mut reads, device));
        }
        let groups = self.step_groups(group);
        debug_assert_eq!(all.len(), groups.count, "the messages of every group have been planned");
        let members = |group| groups.members(mesh, group);
        let first = self.first();
        let is_sent = |from: usize, to: usize| match senders {
            Senders::Owners => false,
            Senders::AllToFirst => from != to && to == mesh.process(first),
            Senders::AllToAll => true,
        };
        let has_bytes = all.iter().flatten().flatten().any(|message| message.bytes() > 0);
        let mut arrivals: Vec<Vec<*mut u8>> = vec![vec![std::ptr::null_mut(); mesh.processes()]; groups.count];
        if has_bytes || senders != Senders::Owners {
            let first = match self.out.messages.first_group(groups.joined) {
                Some(first) => first,
                None => {
                    let mut barriers = Vec::new();
                    for group in 0..groups.count {
                        let barrier = self.barrier(members(group));
                        let is_here = !barrier.members.is_empty();
                        barriers.push(is_here.then_some(self.out.barriers.len()));
                        self.out.barriers.extend(is_here.then_some(barrier));
                    }
                    self.out.messages.add_groups(groups.joined, barriers)?
                }
            };
            let mut crossings = vec![None; groups.count];
            let mut combined: BTreeMap<usize, Vec<BoxReduction>> = BTreeMap::new();
            for (group, plans) in all.iter().enumerate() {
                let has = |process: usize| members(group).iter().any(|&member| mesh.process(member) == process);
                let is_sent = |from: usize, to: usize| is_sent(from, to) && has(from) && has(to);
                if !has(memory.process()) {
                    continue;
                }
                let waits = senders == Senders::AllToAll;
                let messages = self.out.messages.add(memory, (first + group, plans, waits), is_sent)?;
                for (receiver, plans) in plans.iter().enumerate().filter(|(other, _)| *other != memory.process()) {
                    for (number, planned) in plans[memory.process()].combined().enumerate() {
                        let from: Vec<*const u8> = planned
                            .owners
                            .iter()
                            .map(|&owner| memory.address(planned.place, owner).cast_const())
                            .collect();
                        let reduction = combine(&from, messages.departures[receiver], planned.rows.clone())?;
                        // Any of its devices may do it: they have all arrived at the barrier before the step.
                        let device = planned.owners[number % planned.owners.len()];
                        combined.entry(device).or_default().push(reduction);
                    }
                }
                (arrivals[group], crossings[group]) = (messages.arrivals, messages.crossing);
            }
            if all.iter().flatten().flatten().any(|message| message.combined().next().is_some()) {
                self.emit(site, what, |device, _| Action::Combine(combined.remove(&device).unwrap_or_default().into()));
            }
            let of = |device: usize| mesh.linear(device, groups.others.iter().copied());
            self.emit(site, what, |device, _| Action::Crossing { crossing: crossings[of(device)] });
        }
        // The devices of a process read in the same order as when their messages were planned.
        for (group, arrivals) in arrivals.iter().enumerate() {
            let mut reads = DeviceReads::resolve(memory, arrivals, &all[group][memory.process()]);
            for device in members(group).into_iter().filter(|device| memory.devices().contains(device)) {
                plan(&mut reads, device)?;
            }
        }
        Ok(())
    }

    pub(super) fn reduce(&mut self, step: &ReduceStep) -> Result<(), RunError> {
        let (group, components) = (self.participants(step.group, step.to.place), self.components);
        let at = (step.site, step.kind.name());
        let plan = |rounds: Rounds, portion: Portion| {
            move |reads: &mut DeviceReads<'_>, device: usize| {
                reduce::plan(reads, step, (group, rounds, portion), device, components)
            }
        };
        let gather = |reads: &mut DeviceReads<'_>, device: usize| reduce::gather(reads, step, group, device);
        let once = self.messages(group, &mut unkept(plan(Rounds::One, Portion::WHOLE)))?;
        let twice = if largest(&once) >= self.options.two_rounds_from {
            let first = self.messages(group, &mut unkept(plan(Rounds::Two, Portion::WHOLE)))?;
            let rounds = [first, self.messages(group, &mut unkept(gather))?];
            (most_received(&rounds) < most_received(std::slice::from_ref(&once))).then_some(rounds)
        } else {
            None
        };
        let (rounds, first, second) = match twice {
            Some([first, second]) => (Rounds::Two, first, Some(second)),
            None => (Rounds::One, once, None),
        };
        let combine = |from: &[*const u8], to, rows| reduce::combined(step, from, to, rows, components);
        // All processes plan all messages, so they agree on the number of portions.
        let places = (self.mesh.devices() * self.mesh.count(group.iter())) as u64;
        let most = (PLANNED_PLACES / places).clamp(1, PORTIONS);
        let count = largest(&first).div_ceil(self.options.portion).clamp(1, most) as usize;
        let portion = |number: usize| plan(rounds, Portion { number, count });
        let messages = match count {
            1 => vec![first],
            _ => {
                (0..count).map(|number| self.messages(group, &mut unkept(portion(number)))).collect::<Result<_, _>>()?
            }
        };
        for (number, messages) in messages.into_iter().enumerate() {
            let parts = self.with_messages((group, Senders::Owners, messages), at, portion(number), &combine)?;
            let work = parts.into_iter().map(|parts| Action::Combine(parts.into())).collect::<Vec<_>>();
            if number == 0 {
                let counted = Counted { kind: step.kind, bytes: step.bytes, counts: step.counts };
                self.collective((step.group, counted), step.site, Some(work));
            } else {
                self.emit_each(at.0, at.1, work.into_iter());
            }
        }
        if let Some(second) = second {
            let copies = self.with_messages((group, Senders::Owners, second), at, gather, &|_, _, _| {
                Err(RunError::internal("the second round combines nothing"))
            })?;
            self.emit_each(at.0, at.1, copies.into_iter().map(|copies| Action::Move(copies.into())));
        }
        Ok(())
    }
}

/// The plan for messages alone.
fn unkept<T>(
    mut plan: impl FnMut(&mut DeviceReads<'_>, usize) -> Result<T, RunError>,
) -> impl FnMut(&mut DeviceReads<'_>, usize) -> Result<(), RunError> {
    move |reads, device| plan(reads, device).map(drop)
}

/// Bytes of the largest message.
fn largest(groups: &[GroupMessages]) -> u64 {
    groups.iter().flatten().flatten().map(|message| message.bytes() as u64).max().unwrap_or(0)
}

/// The most bytes that a process receives, in all groups and rounds together.
fn most_received(rounds: &[Vec<GroupMessages>]) -> u64 {
    let mut received: BTreeMap<usize, u64> = BTreeMap::new();
    for (process, messages) in rounds.iter().flatten().flat_map(|plans| plans.iter().enumerate()) {
        *received.entry(process).or_default() += messages.iter().map(|message| message.bytes() as u64).sum::<u64>();
    }
    received.into_values().max().unwrap_or(0)
}
