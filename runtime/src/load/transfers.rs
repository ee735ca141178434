//! Prepares transfers between the meshes of a program: their messages and barriers.

use crate::collectives::transfer::TransferPlan;
use crate::errors::trap::RunError;
use crate::processes::plans::{MessagePlans, StepMessages};
use crate::run::barrier::Barrier;
use crate::run::launch::Staff;
use crate::run::memory::{Mapping, MappingUse, Memory};
use spmdc_abi::Channel;

/// A transfer between two parts.
pub(super) struct LoadedTransfer<'a> {
    pub channel: &'a Channel,
    pub plan: TransferPlan,
    /// The addresses of the messages from this process, by the process that receives them.
    pub departures: Vec<*mut u8>,
    /// The addresses of those to this process, by the process that sends them. That to itself is the same one in both.
    pub arrivals: Vec<*mut u8>,
    /// The messages from and to other processes.
    pub crossing: Option<usize>,
    /// The memory of the message to itself.
    pub mailbox: Mapping,
}

/// The devices at one end of a transfer, with their numbers among the devices of all parts.
#[derive(Clone, Copy)]
pub(super) struct TransferEnd<'a> {
    pub memory: &'a Memory,
    pub numbers: &'a [usize],
}

impl TransferEnd<'_> {
    /// The numbers of its devices in this process.
    fn own(&self) -> impl Iterator<Item = usize> {
        self.memory.devices().iter().map(|&place| self.numbers[place])
    }
}

impl<'a> LoadedTransfer<'a> {
    /// Plans a transfer. It has two barriers of all its devices in this process, see [`ends`].
    pub fn new(
        channel: &'a Channel,
        (from, to): (TransferEnd<'_>, TransferEnd<'_>),
        staff: &Staff,
        barriers: &mut Vec<Barrier>,
        messages: &mut MessagePlans,
    ) -> Result<LoadedTransfer<'a>, RunError> {
        let mut members: Vec<usize> = from.own().chain(to.own()).collect();
        members.sort_unstable();
        let mut workers: Vec<usize> = members.iter().map(|&member| staff.worker_of(member)).collect();
        workers.dedup();
        let barrier = (!members.is_empty()).then_some(barriers.len());
        for _ in 0..2 {
            barriers.push(Barrier::new(members.clone().into(), workers.clone().into()));
        }
        let plan = TransferPlan::new(channel, from.memory.mesh(), to.memory.mesh());
        let (own, processes) = (from.memory.process(), from.memory.mesh().processes());
        let far = |bytes: &dyn Fn(usize) -> usize| -> Vec<usize> {
            (0..processes).map(|other| if other == own { 0 } else { bytes(other) }).collect()
        };
        let (sent, received) = (far(&|other| plan.bytes(own, other)), far(&|other| plan.bytes(other, own)));
        let StepMessages { mut departures, mut arrivals, crossing } =
            messages.add_transfer((own, barrier), &sent, &received)?;
        let mailbox = Mapping::new(plan.bytes(own, own), MappingUse::OneProcess)?;
        (departures[own], arrivals[own]) = (mailbox.base(), mailbox.base());
        Ok(LoadedTransfer { channel, plan, departures, arrivals, crossing, mailbox })
    }
}

/// Two barriers. At the first, senders have packed the messages and the messages of other processes have arrived. At the second, receivers
/// have read them. The slots have the same numbers.
pub(super) fn ends(channel: u32) -> (usize, usize) {
    (2 * channel as usize, 2 * channel as usize + 1)
}
