//! The state that all workers of a session share, and the position of each device in it.

use std::io::Write;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::errors::trap::{Failures, RunError};
use crate::processes::Process;
use crate::processes::crossings::{Crossings, RunningDevices};
use crate::run::barrier::{Barrier, Parker};
use crate::run::memory::{Mapping, Memory};
use crate::streams::Streams;
use crate::text::progress::LoopProgress;
use crate::text::save::Saver;
use spmdc_abi::Site;

/// The state that all workers of a session share.
pub(crate) struct Shared {
    /// The memory of each part; of a program without parts, its own.
    pub memories: Vec<Memory>,
    pub barriers: Vec<Barrier>,
    pub prints: Vec<Box<dyn PreparedText>>,
    pub saver: Saver,
    pub streams: Streams,
    /// The messages between processes; None if there is one process.
    pub crossings: Option<Crossings>,
    pub progress: Arc<LoopProgress>,
    /// As `memories`.
    pub outlines: Vec<Outline>,
    /// The numbers of the devices in the meshes of the program, in ascending order, for messages.
    pub labels: Vec<usize>,
    /// The memory of transfers under way.
    _mailboxes: Vec<Mapping>,
    /// The number of the first device of this process.
    first: usize,
    pub positions: Vec<Position>,
    pub failures: Failures,
    pub timeout: Duration,
    /// One for each worker.
    pub parkers: Arc<[Parker]>,
    /// The number of orders so far; workers detect a new one by it.
    pub orders: AtomicU32,
    pub order: Mutex<WorkerOrder>,
    /// The number of workers, apart from the first, that have not finished the order.
    pub busy: AtomicU32,
    /// The number of crews that have not reached the end of the run.
    pub running: AtomicU32,
}

/// A text of the program, prepared for the devices of this process.
pub(crate) trait PreparedText: Send + Sync {
    /// The place of the device that prints, or begins to write a file, if this process has one.
    fn actor(&self) -> Option<usize>;

    /// Whether it begins to write a file, for which each process has its part.
    fn saves(&self) -> bool;

    /// Whether a process has a part of a file that it begins to write.
    fn is_saved_by(&self, process: usize) -> bool;

    /// Writes the lines, or checks that the condition holds. All devices must have written the values, and wait.
    fn write(&self, memory: &Memory, out: &mut dyn Write) -> Result<(), RunError>;

    /// Begins to write what this process has of the file, whose name the process of the first device says. Called by one device of the
    /// process; all devices must have written the values, and wait.
    fn save(&self, memory: &Memory, saver: &Saver) -> Result<(), RunError>;
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum WorkerOrder {
    /// Touch the memory of the worker's own devices first, so that the system places it near the worker.
    Touch,
    Quit,
}

/// For every operation, which is the same step on all devices, its source position and its name in messages.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    entries: Vec<(Site, &'static str)>,
}

impl Outline {
    pub fn push(&mut self, site: Site, what: &'static str) {
        self.entries.push((site, what));
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn site(&self, operation: usize) -> Site {
        self.entries.get(operation).map_or(Site::default(), |entry| entry.0)
    }

    pub fn what(&self, operation: usize) -> &'static str {
        self.entries.get(operation).map_or("program", |entry| entry.1)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if self.crossings.as_ref().is_some_and(Crossings::is_unfinished) {
            // Messages are sent from the memory of the program and received there, and after a failure no one awaits them.
            std::mem::forget(std::mem::take(&mut self.memories));
        }
    }
}

impl Shared {
    pub fn new(
        (memories, mailboxes): (Vec<Memory>, Vec<Mapping>),
        barriers: Vec<Barrier>,
        prints: Vec<Box<dyn PreparedText>>,
        streams: Streams,
        crossings: Option<Crossings>,
        (outlines, labels, first): (Vec<Outline>, Vec<usize>, usize),
        (timeout, workers): (Duration, usize),
    ) -> Shared {
        debug_assert_eq!(
            labels.len(),
            memories.iter().map(|memory| memory.mesh().devices()).sum::<usize>(),
            "each device has a number"
        );
        let positions = labels.iter().map(|_| Position::new()).collect();
        let saves = prints.iter().any(|print| print.saves());
        let process = crossings.as_ref().filter(|_| saves).map(|crossings| crossings.process().clone());
        let rank = process.as_ref().map_or(0, Process::rank);
        let takes_part = prints.iter().any(|print| print.is_saved_by(rank));
        Shared {
            memories,
            barriers,
            prints,
            saver: Saver::new(process, takes_part, timeout),
            streams,
            crossings,
            progress: Arc::default(),
            outlines,
            labels,
            _mailboxes: mailboxes,
            first,
            positions,
            failures: Failures::new(),
            timeout,
            parkers: (0..workers).map(|_| Parker::default()).collect(),
            orders: AtomicU32::new(0),
            order: Mutex::new(WorkerOrder::Touch),
            busy: AtomicU32::new(0),
            running: AtomicU32::new(0),
        }
    }

    pub fn is_running(&self) -> bool {
        self.running.load(Ordering::Acquire) > 0
    }

    /// Records that all devices of a crew have reached the end of the run.
    pub fn crew_has_ended(&self) {
        let before = self.running.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "more crews end than run");
        if before == 1 {
            self.parkers[0].wake();
        }
    }

    /// Wakes the workers, other than the calling one, whose devices may be waiting at the barrier.
    pub fn wake(&self, barrier: &Barrier, caller: usize) {
        for &worker in barrier.workers.iter().filter(|&&worker| worker != caller) {
            self.parkers[worker].wake();
        }
    }

    /// Calls a function for messages of the run.
    pub fn with_run<T>(&self, call: impl FnOnce(RunningDevices<'_>) -> T) -> T {
        let wake = |barrier: Option<&Barrier>| match barrier {
            Some(barrier) => self.wake(barrier, usize::MAX),
            None => self.wake_all(),
        };
        let (first, timeout) = (self.first, self.timeout);
        call(RunningDevices { barriers: &self.barriers, failures: &self.failures, first, timeout, wake: &wake })
    }

    pub fn wake_all(&self) {
        self.parkers.iter().for_each(Parker::wake);
    }
}

/// The barrier and generation at which a device waits, and its most recent post, as other workers see them. On a separate cache line.
#[repr(align(64))]
pub(crate) struct Position {
    waits: AtomicU64,
    posted: AtomicU64,
}

impl Position {
    /// The device runs, or has ended.
    const NOWHERE: u64 = u64::MAX;
    /// The device is at the beginning of the program.
    const START: u64 = u64::MAX - 1;
    /// See [`DeviceState::Held`](crate::run::device::DeviceState::Held).
    const HELD: u64 = u64::MAX - 2;

    pub fn new() -> Position {
        let nowhere = || AtomicU64::new(Position::NOWHERE);
        Position { waits: nowhere(), posted: nowhere() }
    }

    fn packed(barrier: usize, generation: u32) -> u64 {
        debug_assert!(barrier < u32::MAX as usize, "the index of a barrier has 32 bits");
        (barrier as u64) << 32 | generation as u64
    }

    pub fn set(&self, barrier: usize, generation: u32) {
        self.waits.store(Position::packed(barrier, generation), Ordering::Relaxed);
    }

    pub fn post(&self, barrier: usize, generation: u32) {
        self.posted.store(Position::packed(barrier, generation), Ordering::Relaxed);
    }

    pub fn clear(&self) {
        self.waits.store(Position::NOWHERE, Ordering::Relaxed);
    }

    pub fn start(&self) {
        self.waits.store(Position::START, Ordering::Relaxed);
        self.posted.store(Position::NOWHERE, Ordering::Relaxed);
    }

    pub fn hold(&self) {
        self.waits.store(Position::HELD, Ordering::Relaxed);
    }

    pub fn is_held(&self) -> bool {
        self.waits.load(Ordering::Relaxed) == Position::HELD
    }

    /// A number for the present wait; the same number means the same wait.
    pub fn mark(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    /// Whether the device can be resumed, as in [`Device::can_go_on`](crate::run::device::Device::can_go_on). The answer may be out of date.
    pub fn is_ready(&self, shared: &Shared) -> bool {
        match self.waits.load(Ordering::Relaxed) {
            Position::NOWHERE => false,
            Position::START | Position::HELD => true,
            packed => {
                let (barrier, generation) = (&shared.barriers[(packed >> 32) as usize], packed as u32);
                barrier.is_complete(generation) || barrier.is_broken(generation) || shared.failures.is_halted()
            }
        }
    }

    /// Whether the device has arrived at this barrier in this generation.
    pub fn is(&self, barrier: usize, generation: u32) -> bool {
        [&self.waits, &self.posted].iter().any(|at| at.load(Ordering::Relaxed) == Position::packed(barrier, generation))
    }
}
