//! Plans the messages of a program's steps, and the groups of devices at whose barriers they are moved.
//!
//! A group contains all devices that are in the same loops and branches, so that a step has one message for each pair of processes. If
//! devices may be in different ones, each set of devices that stays together is a separate group, whose messages have a separate tag.

use std::collections::BTreeMap;
use std::ops::Range;

use super::crossings::{Crossing, CrossingGroup, PeerMessages};
use super::reads::{DeviceReads, DirectMessage, MessagePlan};
use super::tags;
use crate::errors::trap::RunError;
use crate::run::memory::{Mapping, MappingUse, Memory};
use spmdc_abi::AxisSet;

/// The processes that send a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Senders {
    /// Those that have bytes for another one.
    Owners,
    /// These, and all to the first process, if only to tell that they have come so far.
    AllToFirst,
    /// All to all others.
    AllToAll,
}

/// The messages of a program, as far as it has been loaded.
#[derive(Debug, Default)]
pub(crate) struct MessagePlans {
    /// For each set of axes along which the devices of a group differ, its first group; the others follow.
    sets: BTreeMap<AxisSet, usize>,
    pub groups: Vec<CrossingGroup>,
    /// The memory of the messages of each group, which its crossings use one after another.
    arenas: Vec<[Option<usize>; 2]>,
    pub crossings: Vec<Crossing>,
    pub messages: Vec<Mapping>,
}

/// The places of a step's messages in a group.
#[derive(Debug)]
pub(crate) struct StepMessages {
    /// The addresses at which messages for this process arrive, by sender.
    pub arrivals: Vec<*mut u8>,
    /// The addresses of the messages of this process, by receiver.
    pub departures: Vec<*mut u8>,
    /// The crossing, if there are messages of this process, or if devices wait for each other at it in any case.
    pub crossing: Option<usize>,
}

/// The messages of a step in one group: the plans by receiver and sender.
pub(crate) type GroupMessages = Vec<Vec<MessagePlan>>;

impl MessagePlans {
    /// Bytes of the memory of all messages.
    pub fn bytes(&self) -> u64 {
        // Half of each mapping is never used.
        self.messages.iter().map(|mapping| mapping.bytes() as u64 / 2).sum()
    }

    /// Begins the program of another mesh, whose sets of axes are others.
    pub fn begin_part(&mut self) {
        self.sets.clear();
    }

    /// The first group of a set of axes, if it is known.
    pub fn first_group(&self, axes: AxisSet) -> Option<usize> {
        self.sets.get(&axes).copied()
    }

    /// Adds the groups of a set of axes with their barriers. Returns the first one.
    pub fn add_groups(&mut self, axes: AxisSet, barriers: Vec<Option<usize>>) -> Result<usize, RunError> {
        let first = self.groups.len();
        let is_new = self.sets.insert(axes, first).is_none();
        debug_assert!(is_new, "groups are added once");
        self.extend(barriers)?;
        Ok(first)
    }

    fn extend(&mut self, barriers: impl IntoIterator<Item = Option<usize>>) -> Result<(), RunError> {
        self.groups.extend(barriers.into_iter().map(|barrier| CrossingGroup { barrier }));
        self.arenas.resize(self.groups.len(), [None; 2]);
        if self.groups.len() > tags::GROUPS as usize {
            let text = "devices of several processes take different branches in too many groups";
            return Err(RunError::internal(text));
        }
        Ok(())
    }

    /// Adds the messages of a transfer between meshes, with these lengths to and from each process, and a separate group for them. The
    /// group is the devices of both meshes in this process, whose barrier is passed if there are any.
    pub fn add_transfer(
        &mut self,
        (own, barrier): (usize, Option<usize>),
        sent: &[usize],
        received: &[usize],
    ) -> Result<StepMessages, RunError> {
        let group = self.groups.len();
        self.extend([barrier])?;
        debug_assert!(sent[own] == 0 && received[own] == 0, "no process sends to itself");
        let (arrivals, departures) = (self.places(group, 0, received)?, self.places(group, 1, sent)?);
        let mut peers = Vec::new();
        for other in (1..sent.len()).map(|step| (own + step) % sent.len()) {
            let peer = PeerMessages {
                process: other,
                packing: Box::new([]),
                sent: (sent[other] > 0).then_some((departures[other].cast_const(), sent[other])).into_iter().collect(),
                received: (received[other] > 0).then_some((arrivals[other], received[other])).into_iter().collect(),
            };
            peers.extend(peer.has_messages().then_some(peer));
        }
        debug_assert!(barrier.is_some() || peers.is_empty(), "devices of this process send and receive its messages");
        let crossing = self.crossing(group, peers, false);
        Ok(StepMessages { arrivals, departures, crossing })
    }

    /// Adds a crossing with these messages, if there are any, or if devices wait for each other in any case.
    fn crossing(&mut self, group: usize, peers: Vec<PeerMessages>, waits: bool) -> Option<usize> {
        if peers.is_empty() && !waits {
            return None;
        }
        self.crossings.push(Crossing { group, peers: peers.into() });
        Some(self.crossings.len() - 1)
    }

    /// Adds the messages of a step in a group.
    pub fn add(
        &mut self,
        memory: &Memory,
        (group, plans, waits): (usize, &GroupMessages, bool),
        is_sent: impl Fn(usize, usize) -> bool,
    ) -> Result<StepMessages, RunError> {
        debug_assert_eq!(plans.len(), memory.mesh().processes(), "there are plans for each process");
        debug_assert!(self.groups[group].barrier.is_some(), "the devices of the group wait for each other");
        let own = memory.process();
        let processes = 0..plans.len();
        let is_sent = |from: usize, to: usize| from != to && (plans[to][from].bytes() > 0 || is_sent(from, to));
        let received: Vec<usize> = processes.clone().map(|from| plans[own][from].bytes()).collect();
        let sent: Vec<usize> = processes.clone().map(|to| if to == own { 0 } else { plans[to][own].bytes() }).collect();
        let arrivals = self.places(group, 0, &received)?;
        let departures = self.places(group, 1, &sent)?;
        let mut peers = Vec::new();
        // Each process begins with the next one, so that not all send to the first at once.
        for other in (1..plans.len()).map(|step| (own + step) % plans.len()) {
            let (mut sent, mut packed): (Vec<(*const u8, usize)>, Vec<DirectMessage>) = Default::default();
            let plan = &plans[other][own];
            for part in if is_sent(own, other) { plan.parts() } else { Vec::new() } {
                let in_place = plan.in_place(memory, &part);
                let departs = || departures[other].wrapping_add(part.offset).cast_const();
                sent.push((in_place.unwrap_or_else(departs), part.bytes));
                packed.extend(in_place.is_none().then_some(part));
            }
            let packing = plan.packing(memory, &packed, departures[other]);
            let plan = &plans[own][other];
            let received = if is_sent(other, own) { plan.parts() } else { Vec::new() };
            let arrives = |part: DirectMessage| {
                let arrives = || arrivals[other].wrapping_add(part.offset);
                (plan.landing(&part).unwrap_or_else(arrives), part.bytes)
            };
            let received = received.into_iter().map(arrives).collect();
            let peer = PeerMessages { process: other, packing, sent: sent.into(), received };
            peers.extend(peer.has_messages().then_some(peer));
        }
        debug_assert!(are_apart(&peers), "no message is received where another one is sent from");
        let crossing = self.crossing(group, peers, waits);
        Ok(StepMessages { arrivals, departures, crossing })
    }

    /// Places for messages of these lengths in the memory of a group.
    fn places(&mut self, group: usize, direction: usize, bytes: &[usize]) -> Result<Vec<*mut u8>, RunError> {
        let mut total = 0;
        let mut offsets = Vec::new();
        for &bytes in bytes {
            offsets.push(total);
            total = (total + bytes).next_multiple_of(64);
        }
        let known = self.arenas[group][direction].filter(|&known| self.messages[known].bytes() >= total);
        debug_assert!(direction < 2, "messages come or go");
        let mapping = match known {
            Some(known) => known,
            None => {
                // Twice as much: memory that is not used costs nothing, and a program with ever larger messages has few mappings.
                self.messages.push(Mapping::new(2 * total, MappingUse::SeveralProcesses)?);
                self.messages.len() - 1
            }
        };
        self.arenas[group][direction] = Some(mapping);
        let base = self.messages[mapping].base();
        Ok(offsets.into_iter().map(|offset| base.wrapping_add(offset)).collect())
    }
}

/// Whether no message is received where another one is sent from, or received, meanwhile.
fn are_apart(peers: &[PeerMessages]) -> bool {
    let range = |begin: usize, bytes: usize| begin..begin + bytes;
    let overlaps = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
    let received = peers.iter().flat_map(|peer| &peer.received).map(|&(to, bytes)| range(to.addr(), bytes));
    let received: Vec<Range<usize>> = received.collect();
    let mut sent = peers.iter().flat_map(|peer| &peer.sent).map(|&(from, bytes)| range(from.addr(), bytes));
    let one_by_one = |(at, one)| received[..at].iter().all(|other| !overlaps(one, other));
    sent.all(|one| received.iter().all(|other| !overlaps(&one, other))) && received.iter().enumerate().all(one_by_one)
}

/// The plans of all messages of a step in a group with these members; `plan` makes the plans of one device.
pub(crate) fn plan_group(
    memory: &Memory,
    members: &[usize],
    plan: &mut dyn FnMut(&mut DeviceReads<'_>, usize) -> Result<(), RunError>,
) -> Result<GroupMessages, RunError> {
    let mesh = memory.mesh();
    let mut plans = GroupMessages::new();
    for process in 0..mesh.processes() {
        let mut reads = DeviceReads::plan(memory, process);
        for &device in members.iter().filter(|&&member| mesh.process(member) == process) {
            plan(&mut reads, device)?;
        }
        let messages = reads.messages();
        debug_assert_eq!(messages[process].bytes(), 0, "no process sends to itself");
        plans.push(messages);
    }
    Ok(plans)
}
