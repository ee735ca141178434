//! Crossings between the processes of a job while a program runs.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use super::records::{EndRecord, FailureRecord, decode, encode, record_bytes};
use super::transport::Request;
use super::{Process, numbered_processes, patience, pause, tags};
use crate::data::boxes::BoxCopy;
use crate::errors::trap::{DeviceStop, Failures, RunCode, RunError};
use crate::run::barrier::Barrier;
use crate::run::memory::Mapping;

/// The time for which a thread sleeps between two looks at messages that take long.
pub(crate) const NAP: Duration = Duration::from_micros(30);

/// The run whose messages are moved.
#[derive(Clone, Copy)]
pub(crate) struct RunningDevices<'a> {
    pub barriers: &'a [Barrier],
    pub failures: &'a Failures,
    /// The first device of this process.
    pub first: usize,
    pub timeout: Duration,
    /// Wakes the workers whose devices may be waiting at a barrier; at any, without one.
    pub wake: &'a dyn Fn(Option<&Barrier>),
}

/// The number of looks at messages of steps after which a thread looks whether other processes have ended the run, too: to ask MPI
/// about a message takes as long as a short message.
const LOOKS: u32 = 16;

/// Devices of this process at whose barrier messages are moved. The number of the group is the tag of its messages.
#[derive(Debug)]
pub(crate) struct CrossingGroup {
    /// The barrier; None if the group has no device in this process.
    pub barrier: Option<usize>,
}

/// The messages of one step.
#[derive(Debug)]
pub(crate) struct Crossing {
    pub group: usize,
    pub peers: Box<[PeerMessages]>,
}

/// The messages between this process and another one.
#[derive(Debug)]
pub(crate) struct PeerMessages {
    pub process: usize,
    /// Packs the data that is not sent directly from its place.
    pub packing: Box<[BoxCopy]>,
    /// The bytes of each message, in the order in which they are sent and received.
    pub sent: Box<[(*const u8, usize)]>,
    pub received: Box<[(*mut u8, usize)]>,
}

impl PeerMessages {
    /// Whether there are any.
    pub fn has_messages(&self) -> bool {
        !self.sent.is_empty() || !self.received.is_empty()
    }
}

/// Everything that a process needs for its messages.
pub(crate) struct Crossings {
    process: Process,
    groups: Vec<CrossingGroup>,
    crossings: Vec<Crossing>,
    /// The memory of all messages.
    messages: Option<Vec<Mapping>>,
    state: Mutex<CrossingState>,
    /// The number of groups whose messages are under way.
    active: AtomicUsize,
    /// Bytes of the messages of this run to this process.
    received: AtomicU64,
    collectives: usize,
}

// SAFETY: the pointers lead to the program's memory and to that of messages. The worker whose device arrives last at the barrier of a
// group packs its messages; they are received before the barrier is complete, and read after it.
unsafe impl Send for Crossings {}
// SAFETY: as above.
unsafe impl Sync for Crossings {}

struct CrossingState {
    groups: Vec<GroupState>,
    peers: Vec<PeerState>,
    /// Whether a run has failed: messages may still be in transit, so another run is impossible.
    has_failed: bool,
    /// How often a thread has looked at messages.
    looks: u32,
}

/// The messages of a group that are under way.
#[derive(Default)]
struct GroupState {
    is_active: bool,
    pending: Vec<PendingMessage>,
    /// The number of messages of this run to each process, and from each.
    sent: Vec<u64>,
    received: Vec<u64>,
}

struct PendingMessage {
    process: usize,
    is_receive: bool,
    request: Request,
}

/// Another process, in this run.
struct PeerState {
    record: Vec<u8>,
    request: Option<Request>,
    ended: Option<EndRecord>,
}

/// How all processes have ended a run.
pub(crate) struct Ending {
    pub run_ms: f64,
    pub counts: Vec<u64>,
}

impl Crossings {
    pub fn new(
        process: Process,
        groups: Vec<CrossingGroup>,
        crossings: Vec<Crossing>,
        messages: Vec<Mapping>,
        collectives: usize,
    ) -> Crossings {
        let count = process.count();
        let peers = |group: usize| crossings.iter().filter(move |crossing| crossing.group == group);
        let count_of = |peer: &PeerMessages| peer.sent.len() + peer.received.len();
        let most =
            |group: usize| peers(group).map(|crossing| crossing.peers.iter().map(count_of).sum()).max().unwrap_or(0);
        let states = (0..groups.len()).map(|group| GroupState {
            is_active: false,
            pending: Vec::with_capacity(most(group)),
            sent: vec![0; count],
            received: vec![0; count],
        });
        let bytes = record_bytes(groups.len(), collectives);
        let peer = |_| PeerState { record: vec![0; bytes], request: None, ended: None };
        let state = CrossingState {
            groups: states.collect(),
            peers: (0..count).map(peer).collect(),
            has_failed: false,
            looks: 0,
        };
        let (messages, active, received) = (Some(messages), AtomicUsize::new(0), AtomicU64::new(0));
        Crossings { process, groups, crossings, messages, state: Mutex::new(state), active, received, collectives }
    }

    pub fn process(&self) -> &Process {
        &self.process
    }

    fn lock(&self) -> MutexGuard<'_, CrossingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The barrier of a crossing.
    pub fn barrier(&self, crossing: usize) -> usize {
        let group = &self.groups[self.crossings[crossing].group];
        group.barrier.expect("a device that arrives is in the group")
    }

    /// Whether the transport may still use the memory of the program, after a failure.
    pub fn is_unfinished(&self) -> bool {
        self.lock().is_used()
    }

    /// Whether messages are under way.
    pub fn is_active(&self) -> bool {
        self.active.load(Ordering::Acquire) > 0
    }

    /// Bytes of the messages of this run to this process, apart from the messages at its end.
    pub fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Prepares a run: receives of the records at its end begin.
    pub fn begin_run(&self) -> Result<(), RunError> {
        let mut state = self.lock();
        if state.has_failed {
            return Err(RunError::internal("an earlier run of several processes has failed"));
        }
        debug_assert!(state.groups.iter().all(|group| !group.is_active), "no message is under way between runs");
        self.received.store(0, Ordering::Relaxed);
        for group in &mut state.groups {
            group.sent.fill(0);
            group.received.fill(0);
        }
        for (other, peer) in state.peers.iter_mut().enumerate().filter(|(other, _)| *other != self.process.rank()) {
            let (bytes, len) = (peer.record.as_mut_ptr(), peer.record.len());
            peer.ended = None;
            // SAFETY: the record is as long-lived as the session, or stays allocated: see `drop`. Nothing else uses it until it is complete.
            peer.request = Some(unsafe { self.process.transport.receive(other, tags::RECORD, bytes, len)? });
        }
        Ok(())
    }

    /// Packs the messages of a crossing, and begins to send and to receive. True if all are complete.
    ///
    /// # Safety
    /// All devices of the group in this process must have arrived, so that no other thread uses the packed data or the messages.
    pub unsafe fn begin(&self, crossing: usize) -> Result<bool, RunError> {
        let Crossing { group, peers } = &self.crossings[crossing];
        // SAFETY: as promised by the caller; all rows were checked when the crossing was planned.
        peers.iter().flat_map(|peer| &peer.packing).for_each(|copy| unsafe { copy.run() });
        let mut state = self.lock();
        let state = &mut state.groups[*group];
        debug_assert!(!state.is_active && state.pending.is_empty(), "a group has one crossing at a time");
        // All receives first: a message that is expected needs no memory of the library.
        for (peer, &(bytes, len)) in peers.iter().flat_map(|peer| peer.received.iter().map(move |bytes| (peer, bytes)))
        {
            // SAFETY: the memory of messages and of the program lives as long as the session, or after a failure as long as the process, and
            // is not used before the crossing is complete.
            let request = unsafe { self.process.transport.receive(peer.process, *group as u32, bytes, len)? };
            debug_assert_ne!(peer.process, self.process.rank(), "no process receives from itself");
            self.received.fetch_add(len as u64, Ordering::Relaxed);
            state.pending.push(PendingMessage { process: peer.process, is_receive: true, request });
        }
        for (peer, &(bytes, len)) in peers.iter().flat_map(|peer| peer.sent.iter().map(move |bytes| (peer, bytes))) {
            // SAFETY: as above; no device of the group writes its memory before the crossing is complete.
            let request = unsafe { self.process.transport.send(peer.process, *group as u32, bytes, len)? };
            state.sent[peer.process] += 1;
            state.pending.push(PendingMessage { process: peer.process, is_receive: false, request });
        }
        state.look(&self.process)?;
        if state.pending.is_empty() {
            return Ok(true);
        }
        state.is_active = true;
        self.active.fetch_add(1, Ordering::AcqRel);
        Ok(false)
    }

    /// Polls the messages in transit, unless another thread does. Completes the barriers of messages that have arrived, and breaks the
    /// barriers of messages that will not arrive.
    pub fn poll(&self, run: RunningDevices<'_>) {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        if let Err(error) = self.advance(&mut state, run) {
            run.failures.halt(0, run.first, error);
            state.has_failed = true;
            (run.wake)(None);
        }
    }

    fn advance(&self, state: &mut CrossingState, run: RunningDevices<'_>) -> Result<(), RunError> {
        let CrossingState { groups, peers, has_failed, looks } = state;
        *looks = looks.wrapping_add(1);
        if looks.is_multiple_of(LOOKS) {
            self.records(peers, run.failures)?;
        }
        for (number, group) in groups.iter_mut().enumerate().filter(|(_, group)| group.is_active) {
            group.look(&self.process)?;
            let mut never = false;
            group.pending.retain(|message| {
                let stopped = peers[message.process].ended.as_ref().filter(|ended| ended.failure.is_some());
                let Some(stopped) = stopped else { return true };
                *has_failed = true;
                let comes = message.is_receive && stopped.sent[number] > group.received[message.process];
                never |= message.is_receive && !comes;
                comes
            });
            let barrier = self.groups[number].barrier.map(|barrier| &run.barriers[barrier]);
            let barrier = barrier.expect("a group that is active has a barrier");
            if never {
                group.pending.clear();
                barrier.break_from(barrier.current());
            } else if group.pending.is_empty() {
                barrier.complete();
            } else {
                continue;
            }
            group.is_active = false;
            self.active.fetch_sub(1, Ordering::AcqRel);
            (run.wake)(Some(barrier));
        }
        Ok(())
    }

    /// Looks for the records of processes that have ended. A failure stops the devices here as one of theirs does.
    fn records(&self, peers: &mut [PeerState], failures: &Failures) -> Result<(), RunError> {
        for peer in peers.iter_mut() {
            let Some(request) = &mut peer.request else { continue };
            if self.process.transport.is_complete(request)? {
                peer.request = None;
                let ended: EndRecord = decode(&peer.record)?;
                if let Some(failure) = ended.failure.clone() {
                    let DeviceStop { clock, device, error } = failure.stop();
                    failures.record(clock, device, error);
                }
                peer.ended = Some(ended);
            }
        }
        Ok(())
    }

    /// The processes whose messages the devices at this barrier await.
    pub fn awaited(&self, barrier: usize) -> Vec<usize> {
        let state = self.lock();
        let group = self.groups.iter().position(|group| group.barrier == Some(barrier));
        let pending = group.map(|group| state.groups[group].pending.iter());
        let mut found: Vec<usize> = pending.into_iter().flatten().map(|message| message.process).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Ends a run: tells all other processes how it ended here, and waits until all have ended, for the timeout at most. The first
    /// failure of all, if there is one.
    pub fn end_run(
        &self,
        run: RunningDevices<'_>,
        own: (Option<DeviceStop>, f64, Vec<u64>),
    ) -> Result<Ending, DeviceStop> {
        let (stop, run_ms, mut counts) = own;
        let limit = patience(stop.as_ref().map(|stop| &stop.error), run.timeout);
        let first = run.first;
        let internal = |error| DeviceStop { clock: 0, device: first, error };
        let mut state = self.lock();
        let failure = stop.as_ref().map(FailureRecord::new);
        debug_assert!(counts.is_empty() || counts.len() == self.collectives, "all collectives are counted");
        counts.resize(self.collectives, 0);
        let rank = self.process.rank();
        let mut sends = Vec::new();
        let mut records = Vec::new();
        for other in (0..state.peers.len()).filter(|&other| other != rank) {
            let sent = state.groups.iter().map(|group| group.sent[other]).collect();
            let record = EndRecord { failure: failure.clone(), run_ms, sent, counts: counts.clone() };
            records.push((other, encode(&record, state.peers[other].record.len()).map_err(internal)?));
        }
        for (other, bytes) in &records {
            // SAFETY: the bytes live until the request is complete, or stay allocated.
            let sent = unsafe { self.process.transport.send(*other, tags::RECORD, bytes.as_ptr(), bytes.len()) };
            sends.push((*other, sent.map_err(internal)?));
        }
        if let Some(stop) = stop {
            state.has_failed = true;
            run.failures.record(stop.clock, stop.device, stop.error);
        }
        let begin = std::time::Instant::now();
        let is_over = loop {
            self.records(&mut state.peers, run.failures).map_err(internal)?;
            if state.peers.iter().all(|peer| peer.request.is_none()) {
                break true;
            }
            if begin.elapsed() > limit {
                break false;
            }
            pause(begin.elapsed());
        };
        if is_over {
            self.process.wait(&mut sends, limit).map_err(internal)?;
        }
        if !sends.is_empty() {
            std::mem::forget(records);
        }
        let missing: Vec<usize> =
            (0..state.peers.len()).filter(|&other| state.peers[other].request.is_some()).collect();
        if !missing.is_empty() {
            let text = format!("{} did not finish within {limit:?} after this one", numbered_processes(&missing));
            let error = RunError::new(RunCode::E0809, text).with_help("`--timeout` sets the longest wait in seconds");
            run.failures.record(u64::MAX, first, error);
        }
        if let Some(stop) = run.failures.take_stop() {
            state.has_failed = true;
            state.groups.iter_mut().for_each(|group| group.is_active = false);
            self.active.store(0, Ordering::Release);
            return Err(stop);
        }
        let mut ending = Ending { run_ms, counts };
        for ended in state.peers.iter().filter_map(|peer| peer.ended.as_ref()) {
            ending.run_ms = ending.run_ms.max(ended.run_ms);
            ending.counts.iter_mut().zip(&ended.counts).for_each(|(count, other)| *count = (*count).max(*other));
        }
        Ok(ending)
    }

    /// Whether this process reports the failure of a run: the first one that is known to have ended.
    pub fn reports(&self) -> bool {
        let state = self.lock();
        (0..self.process.rank()).all(|other| state.peers[other].ended.is_none())
    }
}

impl GroupState {
    /// Drops the messages that are complete.
    fn look(&mut self, process: &Process) -> Result<(), RunError> {
        let mut failed = None;
        self.pending.retain_mut(|message| match process.transport.is_complete(&mut message.request) {
            Ok(is_complete) => {
                self.received[message.process] += u64::from(is_complete && message.is_receive);
                !is_complete
            }
            Err(error) => {
                failed = Some(error);
                true
            }
        });
        failed.map_or(Ok(()), Err)
    }
}

impl CrossingState {
    /// Whether the transport may still use the memory of messages that no one awaits any more.
    fn is_used(&self) -> bool {
        self.has_failed || self.peers.iter().any(|peer| peer.request.is_some())
    }
}

impl Drop for Crossings {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.is_used() {
            // The transport may still use the memory of messages that no one awaits any more.
            std::mem::forget(self.messages.take());
            std::mem::forget(std::mem::take(&mut state.peers));
        }
    }
}
