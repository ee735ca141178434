//! A device: its list of prepared operations and its position in it.
//!
//! The steps of a program are flattened into one list per device, with jumps for loops and branches, and with every address and
//! number resolved. The lists of all devices have the same shape: an operation's index names the same step on each. A device runs
//! until it must wait for others, and is later resumed at that operation. Its whole state is an index and its loop counters, so a
//! worker can run any number of devices without a stack for each.

use std::io::Write;
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

use crate::collectives::permute::Receive;
use crate::collectives::reduce::BoxReduction;
use crate::data::boxes::BoxCopy;
use crate::errors::trap::{RunCode, RunError};
use crate::library::PreparedLibrary;
use crate::library::gemm::PreparedProduct;
use crate::library::gemm::sums::PreparedSum;
use crate::processes::crossings::Crossings;
use crate::run::kernels::{KernelCall, Panels, PanelsOfGroup, Sharing};
use crate::run::shared::Shared;
use crate::run::team::{PANICKED, Team};
use crate::run::tiles::PreparedTiles;
use crate::streams::PreparedRows;
use crate::text::trace::{Activity, Recorder};
use spmdc_abi::{Check, Checked, DType, Kind, Site, Width, counted_index, out_of_bounds, trap};

/// One prepared operation.
#[derive(Debug)]
pub(crate) enum Action {
    Kernel(KernelCall),
    Panels(Box<Panels>),
    GroupPanels(Box<PanelsOfGroup>),
    Products(Box<[PreparedProduct]>),
    /// The worker's share of a sum of products over devices, if it is the worker's first device among these.
    Sum(Option<Box<PreparedSum>>),
    Tiles(Box<PreparedTiles>),
    Library(Box<PreparedLibrary>),
    /// A read of rows of a stream.
    Read(Box<dyn PreparedRows>),
    /// An exchange.
    Move(Box<[BoxCopy]>),
    /// A reduction.
    Combine(Box<[BoxReduction]>),
    /// A permutation.
    Receive(Box<Receive>),
    /// A copy within the device, whose sides may overlap.
    Copy {
        from: *const u8,
        to: *mut u8,
        bytes: usize,
    },
    /// Arrives at the barrier and waits until it is complete.
    Sync {
        barrier: usize,
    },
    /// Arrives at the barrier and continues.
    Post {
        barrier: usize,
        slot: usize,
    },
    /// Arrives at the barrier of a crossing, and waits until its messages have been sent and received. None if the device takes no part.
    Crossing {
        crossing: Option<usize>,
    },
    /// Waits until the barrier that was posted in this slot is complete.
    Await {
        barrier: usize,
        slot: usize,
    },
    /// Arrives at the barrier and continues; the last device begins the crossing, if there is one, whose messages complete the
    /// barrier.
    PostMessages {
        barrier: usize,
        crossing: Option<usize>,
        slot: usize,
    },
    /// As `Await`, if the barrier was posted in this slot at all.
    AwaitPosted {
        barrier: usize,
        slot: usize,
    },
    /// Counts an execution of a collective.
    Count {
        collective: usize,
    },
    CheckIndex(Box<IndexCheck>),
    /// Begins a loop, or jumps to `exit` if the loop has no trips.
    For {
        counter: usize,
        start: LoopBound,
        end: LoopBound,
        exit: usize,
    },
    /// Stores the progress of a loop: the trip of this counter, which began at `start`, or all trips.
    Progress {
        counter: Option<usize>,
        start: i64,
        total: u64,
    },
    /// Jumps back to `body` for the next trip.
    Next {
        counter: usize,
        body: usize,
    },
    /// Jumps if the bool is false.
    Unless {
        flag: *const u8,
        target: usize,
    },
    Jump {
        target: usize,
    },
    /// Prints on device 0, between two barriers of all devices.
    Print {
        print: usize,
    },
    End,
}

impl Action {
    /// How a device spends the time of the operation; None if it takes next to none, or if the device waits.
    fn activity(&self) -> Option<Activity> {
        match self {
            Action::Kernel(_)
            | Action::Panels(_)
            | Action::GroupPanels(_)
            | Action::Products(_)
            | Action::Sum(_)
            | Action::Tiles(_)
            | Action::Library(_)
            | Action::Copy { .. } => Some(Activity::Compute),
            // The last device packs the messages.
            Action::Move(_)
            | Action::Combine(_)
            | Action::Receive(_)
            | Action::PostMessages { crossing: Some(_), .. } => Some(Activity::Communicate),
            Action::Read(_) => Some(Activity::Input),
            Action::Print { .. } => Some(Activity::Output),
            Action::Sync { .. }
            | Action::Post { .. }
            | Action::Crossing { .. }
            | Action::Await { .. }
            | Action::PostMessages { crossing: None, .. }
            | Action::AwaitPosted { .. }
            | Action::Count { .. }
            | Action::CheckIndex(_)
            | Action::For { .. }
            | Action::Progress { .. }
            | Action::Next { .. }
            | Action::Unless { .. }
            | Action::Jump { .. }
            | Action::End => None,
        }
    }
}

/// The parameters of `CheckIndex`.
#[derive(Debug)]
pub(crate) struct IndexCheck {
    pub index: *const u8,
    pub dtype: DType,
    pub extent: i64,
    pub len: i64,
    pub to: *const AtomicI64,
}

/// A loop bound: a number, or its place in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LoopBound {
    Known(i64),
    Memory(*const u8, DType),
}

/// A counter of a loop.
#[derive(Debug)]
pub(crate) struct Counter {
    /// The memory from which the program reads it.
    pub place: *const AtomicI32,
    pub current: i64,
    pub end: i64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum DeviceState {
    Ready,
    /// Has arrived at a barrier and awaits the end of this generation.
    Waiting {
        barrier: usize,
        generation: u32,
    },
    /// Before a print, which its own worker must do.
    Held,
    /// Reached the end of the program.
    Done,
    /// Failed, or gave up because another device did.
    Stopped,
}

#[derive(Debug)]
pub(crate) struct Device {
    /// Its number among the devices of all parts.
    pub number: usize,
    /// The part of the program that it runs; 0 for a program without parts.
    pub part: usize,
    /// Its position in the mesh of that part.
    pub place: usize,
    pub actions: Vec<Action>,
    pub buffers: Vec<*mut u8>,
    pub scalars: Vec<i64>,
    pub counters: Vec<Counter>,
    /// The number of executions of each collective.
    pub counts: Vec<u64>,
    /// All barriers that have this device as a member.
    pub barriers: Vec<usize>,
    /// For each slot, the barrier that the device has posted and not awaited yet, and its generation.
    pub posted: Vec<Option<(usize, u32)>>,
    pub state: DeviceState,
    /// Set if the run is recorded.
    pub recorder: Option<Box<Recorder>>,
    /// The next operation.
    at: usize,
    /// The number of executed operations; see [`crate::errors::trap::Failures`].
    clock: u64,
}

// SAFETY: the raw pointers of a device point into the program's memory, which lives as long as the session and belongs to no
// thread; only the thread that owns the device uses them.
unsafe impl Send for Device {}

/// The state of a worker that its devices use.
pub(crate) struct WorkerContext<'a> {
    pub shared: &'a Shared,
    pub team: Option<&'a mut Team>,
    /// Only the worker of device 0 has it.
    pub out: Option<&'a mut dyn Write>,
    pub worker: usize,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attendance {
    pub members: u32,
    pub present: u32,
}

impl Device {
    pub fn new(number: usize, part: usize, place: usize) -> Device {
        Device {
            number,
            part,
            place,
            actions: Vec::new(),
            buffers: Vec::new(),
            scalars: Vec::new(),
            counters: Vec::new(),
            counts: Vec::new(),
            barriers: Vec::new(),
            posted: Vec::new(),
            state: DeviceState::Ready,
            recorder: None,
            at: 0,
            clock: 0,
        }
    }

    /// Resets the device to the beginning of the program.
    pub fn reset(&mut self) {
        self.state = DeviceState::Ready;
        self.at = 0;
        self.clock = 0;
        self.counts.fill(0);
        self.posted.fill(None);
        if let Some(recorder) = &mut self.recorder {
            recorder.reset();
        }
    }

    /// Whether any operation of this device is long enough for a team.
    pub fn wants_team(&self) -> bool {
        self.actions.iter().any(|action| match action {
            Action::Kernel(call) => call.chunk > 0,
            Action::Panels(panels) => !matches!(panels.sharing, Sharing::Alone),
            Action::GroupPanels(panels) => panels.chunk > 0,
            Action::Products(products) => products.iter().any(PreparedProduct::wants_team),
            Action::Tiles(tiles) => tiles.wants_team(),
            Action::Library(calls) => calls.wants_team(),
            // Workers have helpers only if each has one device.
            Action::Sum(_)
            | Action::Read(_)
            | Action::Move(_)
            | Action::Combine(_)
            | Action::Receive(_)
            | Action::Copy { .. }
            | Action::Sync { .. }
            | Action::Post { .. }
            | Action::Await { .. }
            | Action::PostMessages { .. }
            | Action::AwaitPosted { .. }
            | Action::Crossing { .. }
            | Action::Count { .. }
            | Action::CheckIndex(_)
            | Action::For { .. }
            | Action::Progress { .. }
            | Action::Next { .. }
            | Action::Unless { .. }
            | Action::Jump { .. }
            | Action::Print { .. }
            | Action::End => false,
        })
    }

    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// The index of the operation at which the device waits: `at` is already the one after the barrier's operation.
    pub fn waits_at(&self) -> usize {
        self.at.saturating_sub(1)
    }

    /// Whether the device can be resumed, even if only to see that its barrier is broken.
    pub fn can_go_on(&self, shared: &Shared) -> bool {
        match self.state {
            DeviceState::Ready | DeviceState::Held => true,
            DeviceState::Waiting { barrier, generation } => {
                let barrier = &shared.barriers[barrier];
                barrier.is_complete(generation) || barrier.is_broken(generation) || shared.failures.is_halted()
            }
            DeviceState::Done | DeviceState::Stopped => false,
        }
    }

    /// Runs a resumable device until it has to wait, fails, or has finished.
    ///
    /// # Safety
    /// The list of operations must come from a checked program whose kernels stay within their buffers. Its steps must be ordered by
    /// barriers so that no device writes data that another device may be reading or writing.
    pub unsafe fn advance(&mut self, attendance: &mut [Attendance], context: &mut WorkerContext) {
        debug_assert!(self.can_go_on(context.shared), "device {} is resumed while it waits", self.number);
        context.shared.positions[self.number].clear();
        if let DeviceState::Waiting { barrier, generation } = self.state
            && !context.shared.barriers[barrier].is_complete(generation)
        {
            return self.stop(context);
        }
        if let Some(recorder) = &mut self.recorder {
            recorder.go_on();
        }
        self.state = DeviceState::Ready;
        // SAFETY: as promised by the caller.
        if let Err(error) = unsafe { self.execute(attendance, context) } {
            context.shared.failures.record(self.clock, self.number, error);
            self.stop(context);
        }
    }

    /// Leaves the run: breaks all barriers of this device and wakes the workers that wait there.
    pub fn stop(&mut self, context: &mut WorkerContext) {
        self.state = DeviceState::Stopped;
        for &index in &self.barriers {
            let barrier = &context.shared.barriers[index];
            // A posted barrier counts the device in the posted generation; the device is missing from the next generation on.
            let posted = self.posted.iter().flatten().find(|(posted, _)| *posted == index);
            barrier.break_from(posted.map_or_else(|| barrier.current(), |(_, generation)| generation.wrapping_add(1)));
            context.shared.wake(barrier, context.worker);
        }
    }

    /// Notes that the device is about to arrive at a barrier, which it awaits later.
    #[inline(always)]
    fn post(&mut self, barrier: usize, slot: usize, shared: &Shared) {
        let generation = shared.barriers[barrier].current();
        debug_assert!(self.posted[slot].is_none(), "a barrier or messages are posted twice");
        self.posted[slot] = Some((barrier, generation));
        shared.positions[self.number].post(barrier, generation);
    }

    /// Whether the device has to wait at the barrier that it has posted in this slot, if it has posted one.
    #[inline(always)]
    fn waits_for_posted(&mut self, barrier: usize, slot: usize, shared: &Shared) -> bool {
        match self.posted[slot].take() {
            Some((_, generation)) if !shared.barriers[barrier].is_complete(generation) => {
                shared.positions[self.number].set(barrier, generation);
                self.state = DeviceState::Waiting { barrier, generation };
                true
            }
            Some(_) | None => false,
        }
    }

    /// The error of a computation that returned this code; `checks` are its checks.
    #[cold]
    fn trap_at<'a>(&self, code: i64, checks: impl Iterator<Item = &'a Check>, shared: &Shared) -> RunError {
        trapped(code, checks, self.site(shared))
    }

    /// The source position of the operation that runs.
    fn site(&self, shared: &Shared) -> Site {
        shared.outlines[self.part].site(self.at - 1)
    }

    /// The interpreter. Returns when the device waits, has stopped or has finished.
    ///
    /// # Safety
    /// As for `advance`.
    unsafe fn execute(&mut self, attendance: &mut [Attendance], context: &mut WorkerContext) -> Result<(), RunError> {
        let shared = context.shared;
        // Messages move only while someone looks at them, and other meshes may wait for those of this one.
        let moving = shared.crossings.as_ref().filter(|_| shared.memories.len() > 1);
        let is_watched = self.recorder.is_some() || moving.is_some();
        loop {
            let action = &self.actions[self.at];
            if is_watched {
                if let Some(recorder) = &mut self.recorder {
                    recorder.begin(self.at, action.activity());
                }
                if let Some(crossings) = moving.filter(|crossings| crossings.is_active()) {
                    shared.with_run(|run| crossings.poll(run));
                }
            }
            self.clock += 1;
            self.at += 1;
            match action {
                Action::Kernel(call) => {
                    // SAFETY: as promised by the caller; the arguments were laid out for this call when it was prepared.
                    let code = unsafe { call.run(&self.buffers, &self.scalars, context.team.as_deref_mut()) };
                    if code != trap::NONE {
                        return Err(self.trap_at(code, call.checks.iter(), shared));
                    }
                }
                Action::Panels(panels) => {
                    // SAFETY: as for a single kernel.
                    let code = unsafe { panels.run(&self.buffers, &self.scalars, context.team.as_deref_mut()) };
                    if code != trap::NONE {
                        let checks = panels.calls.iter().flat_map(|call| &call.checks);
                        return Err(self.trap_at(code, checks, shared));
                    }
                }
                Action::GroupPanels(panels) => {
                    // SAFETY: as for a single kernel; all devices of the group have come to the barrier before the step.
                    let code = unsafe { panels.run(&self.buffers, &self.scalars, context.team.as_deref_mut()) };
                    if code != trap::NONE {
                        return Err(self.trap_at(code, [].iter(), shared));
                    }
                }
                Action::Tiles(tiles) => {
                    // SAFETY: as promised by the caller; all offsets were checked when the tiles were prepared.
                    let code = unsafe { tiles.run(context.team.as_deref_mut()) };
                    if code != trap::NONE {
                        return Err(self.trap_at(code, [].iter(), shared));
                    }
                }
                Action::Products(products) => {
                    for product in products {
                        // SAFETY: as promised by the caller; all offsets were checked when the product was prepared.
                        if !unsafe { product.run(context.team.as_deref_mut()) } {
                            return Err(self.trap_at(PANICKED, [].iter(), shared));
                        }
                    }
                }
                // SAFETY: as for products; all devices of the group have come to the barrier before the step.
                Action::Sum(sum) => sum.iter().for_each(|sum| unsafe { sum.run() }),
                Action::Library(calls) => {
                    // SAFETY: as promised by the caller; all extents were checked when the calls were prepared.
                    let code = unsafe { calls.run(context.team.as_deref_mut()) };
                    if code != trap::NONE {
                        return Err(self.trap_at(code, calls.checks.iter(), shared));
                    }
                }
                Action::Read(read) => {
                    // SAFETY: as promised by the caller; all extents were checked when the read was prepared.
                    let done = unsafe { read.run(&shared.streams) };
                    done.map_err(|error| error.at(self.site(shared)))?;
                }
                // SAFETY: as promised by the caller; ranges and overlaps were checked.
                Action::Move(moves) => moves.iter().for_each(|planned| unsafe { planned.exchange() }),
                // SAFETY: as for moves.
                Action::Combine(parts) => parts.iter().for_each(|planned| unsafe { planned.run() }),
                Action::Receive(receive) => match &**receive {
                    // SAFETY: as for moves.
                    Receive::Copy(planned) => unsafe { planned.exchange() },
                    Receive::Landed => {}
                    // SAFETY: the range was checked when the step was prepared.
                    Receive::Zeros { to, bytes } => unsafe { to.write_bytes(0, *bytes) },
                },
                // SAFETY: both ranges were checked when the step was prepared; this copy allows for overlap.
                Action::Copy { from, to, bytes } => unsafe { to.copy_from(*from, *bytes) },
                // Whatever waits for others, or lets others go on, first looks whether the run has failed.
                Action::Sync { .. }
                | Action::Post { .. }
                | Action::Await { .. }
                | Action::PostMessages { .. }
                | Action::AwaitPosted { .. }
                | Action::Crossing { .. }
                    if shared.failures.stops(self.clock) =>
                {
                    self.stop(context);
                    return Ok(());
                }
                Action::Sync { barrier } => {
                    let generation = shared.barriers[*barrier].current();
                    if !context.arrive(attendance, *barrier) {
                        shared.positions[self.number].set(*barrier, generation);
                        self.state = DeviceState::Waiting { barrier: *barrier, generation };
                        return Ok(());
                    }
                }
                &Action::Post { barrier, slot } => {
                    self.post(barrier, slot, shared);
                    context.arrive(attendance, barrier);
                }
                &Action::Await { barrier, slot } => {
                    debug_assert!(
                        self.posted[slot].is_some_and(|(posted, _)| posted == barrier),
                        "a barrier is awaited that was not posted"
                    );
                    if self.waits_for_posted(barrier, slot, shared) {
                        return Ok(());
                    }
                }
                &Action::AwaitPosted { barrier, slot } => {
                    if self.waits_for_posted(barrier, slot, shared) {
                        return Ok(());
                    }
                }
                &Action::PostMessages { barrier, crossing, slot } => {
                    self.post(barrier, slot, shared);
                    match (crossing, &shared.crossings) {
                        // SAFETY: as promised by the caller.
                        (Some(crossing), Some(crossings)) => unsafe {
                            context.arrive_at_crossing(attendance, barrier, crossing, crossings)?;
                        },
                        (Some(_), None) | (None, _) => {
                            context.arrive(attendance, barrier);
                        }
                    }
                }
                Action::Crossing { crossing } => {
                    let (Some(crossing), Some(crossings)) = (*crossing, &shared.crossings) else { continue };
                    let barrier = crossings.barrier(crossing);
                    let generation = shared.barriers[barrier].current();
                    // Set before the last arrival: the barrier may be completed by another thread at once.
                    shared.positions[self.number].set(barrier, generation);
                    // SAFETY: as promised by the caller.
                    if !unsafe { context.arrive_at_crossing(attendance, barrier, crossing, crossings)? } {
                        self.state = DeviceState::Waiting { barrier, generation };
                        return Ok(());
                    }
                    shared.positions[self.number].clear();
                }
                Action::Count { collective } => self.counts[*collective] += 1,
                // SAFETY: the addresses of index and target were checked when the step was prepared.
                Action::CheckIndex(check) => unsafe { check.run(self.site(shared))? },
                Action::For { counter, start, end, exit } => {
                    // SAFETY: the addresses of the bounds and of the counter were checked.
                    let (start, end) = unsafe { (start.read(), end.read()) };
                    if start < end {
                        let counter = &mut self.counters[*counter];
                        counter.end = end;
                        // SAFETY: as above.
                        unsafe { counter.set(start) };
                    } else {
                        self.at = *exit;
                    }
                }
                Action::Progress { counter, start, total } => {
                    if self.number == 0 {
                        let done = |counter: usize| self.counters[counter].current.abs_diff(*start);
                        shared.progress.set(counter.map_or(*total, done), *total);
                    }
                }
                Action::Next { counter, body } => {
                    let counter = &mut self.counters[*counter];
                    debug_assert!(counter.current < counter.end, "a trip beyond the end of its loop");
                    if counter.current + 1 < counter.end {
                        // SAFETY: the counter's address was checked.
                        unsafe { counter.set(counter.current + 1) };
                        self.at = *body;
                        if shared.failures.stops(self.clock) {
                            self.stop(context);
                            return Ok(());
                        }
                    }
                }
                Action::Unless { flag, target } => {
                    // SAFETY: the flag's address was checked. Any byte but 0 counts as true.
                    if unsafe { flag.read() } == 0 {
                        self.at = *target;
                    }
                }
                Action::Jump { target } => {
                    // Only a `while` jumps back; on other jumps the check costs too little to avoid.
                    self.at = *target;
                    if shared.failures.stops(self.clock) {
                        self.stop(context);
                        return Ok(());
                    }
                }
                Action::Print { print } => {
                    let (prepared, memory) = (&shared.prints[*print], &shared.memories[self.part]);
                    if prepared.actor() != Some(self.place) {
                        continue;
                    }
                    if prepared.saves() {
                        prepared.save(memory, &shared.saver)?;
                    } else {
                        // The first device of all: its worker is that of the calling thread.
                        debug_assert_eq!(self.number, 0, "text is printed where the first device is");
                        let Some(out) = context.out.as_deref_mut() else {
                            self.clock -= 1;
                            self.at -= 1;
                            self.state = DeviceState::Held;
                            shared.positions[self.number].hold();
                            shared.parkers[0].wake();
                            return Ok(());
                        };
                        prepared.write(memory, out)?;
                    }
                }
                Action::End => {
                    debug_assert!(self.posted.iter().all(Option::is_none), "a barrier is posted and never awaited");
                    self.state = DeviceState::Done;
                    return Ok(());
                }
            }
        }
    }
}

impl WorkerContext<'_> {
    /// Counts one device of the crew as arrived. True if it is the last of the crew.
    fn is_last(attendance: &mut Attendance) -> bool {
        attendance.present += 1;
        debug_assert!(attendance.present <= attendance.members, "a device arrives twice at one barrier");
        let is_last = attendance.present == attendance.members;
        if is_last {
            attendance.present = 0;
        }
        is_last
    }

    /// Counts one device of the crew as arrived at the barrier. True if that completes the barrier.
    fn arrive(&self, attendance: &mut [Attendance], index: usize) -> bool {
        if !WorkerContext::is_last(&mut attendance[index]) {
            return false;
        }
        let barrier = &self.shared.barriers[index];
        let is_complete = barrier.arrive();
        if is_complete {
            self.shared.wake(barrier, self.worker);
        }
        is_complete
    }

    /// As `arrive`; the last device begins the crossing, whose messages complete the barrier.
    ///
    /// # Safety
    /// The steps must be ordered by barriers, as for [`Device::advance`].
    unsafe fn arrive_at_crossing(
        &self,
        attendance: &mut [Attendance],
        index: usize,
        crossing: usize,
        crossings: &Crossings,
    ) -> Result<bool, RunError> {
        let barrier = &self.shared.barriers[index];
        if !WorkerContext::is_last(&mut attendance[index]) || !barrier.come() {
            return Ok(false);
        }
        // SAFETY: all devices of the group in this process have arrived; as promised by the caller, none uses what is sent.
        let is_complete = unsafe { crossings.begin(crossing)? };
        if is_complete {
            barrier.complete();
            self.shared.wake(barrier, self.worker);
        }
        Ok(is_complete)
    }
}

impl IndexCheck {
    /// # Safety
    /// Both places must be valid, aligned memory of the program.
    unsafe fn run(&self, site: Site) -> Result<(), RunError> {
        // SAFETY: as promised by the caller.
        let index = unsafe { read_integer(self.index, self.dtype) };
        let (extent, len) = (i128::from(self.extent), i128::from(self.len));
        debug_assert!(len >= 0 && extent >= 0, "{len} places of {extent}");
        let Some(counted) = counted_index(index, extent, len) else {
            return Err(RunError::new(RunCode::E0801, out_of_bounds(index, extent, len)).at(site));
        };
        // SAFETY: as promised by the caller. Devices that share the place all write the same number, so the store is atomic.
        unsafe { (*self.to).store(counted as i64, Ordering::Relaxed) };
        Ok(())
    }
}

impl LoopBound {
    /// # Safety
    /// The place must be valid, aligned memory of the program.
    unsafe fn read(self) -> i64 {
        match self {
            LoopBound::Known(value) => value,
            // SAFETY: as promised by the caller. A bound beyond i64 acts as the largest one.
            LoopBound::Memory(place, dtype) => unsafe { read_integer(place, dtype) }.min(i64::MAX as i128) as i64,
        }
    }
}

impl Counter {
    /// # Safety
    /// The place must be valid, aligned memory of the program.
    unsafe fn set(&mut self, value: i64) {
        debug_assert!(value < self.end, "trip {value} of a loop that ends at {}", self.end);
        self.current = value;
        // SAFETY: as promised by the caller.
        unsafe { (*self.place).store(value as i32, Ordering::Relaxed) };
    }
}

/// Reads a scalar of an integer type; bools count as 0 and 1, other types as 0.
///
/// # Safety
/// The address must be readable and aligned for the type.
unsafe fn read_integer(place: *const u8, dtype: DType) -> i128 {
    // SAFETY: as promised by the caller.
    unsafe {
        match (dtype.kind(), dtype.width()) {
            (Kind::Bool, _) | (Kind::Unsigned, Width::W8) => place.read() as i128,
            (Kind::Signed, Width::W8) => place.cast::<i8>().read() as i128,
            (Kind::Signed, Width::W16) => place.cast::<i16>().read() as i128,
            (Kind::Signed, Width::W32) => place.cast::<i32>().read() as i128,
            (Kind::Signed, Width::W64) => place.cast::<i64>().read() as i128,
            (Kind::Unsigned, Width::W16) => place.cast::<u16>().read() as i128,
            (Kind::Unsigned, Width::W32) => place.cast::<u32>().read() as i128,
            (Kind::Unsigned, Width::W64) => place.cast::<u64>().read() as i128,
            (Kind::Float | Kind::Key, _) => 0,
        }
    }
}

/// The error for the code that a kernel returned; `checks` are the kernel's.
fn trapped<'a>(code: i64, mut checks: impl Iterator<Item = &'a Check>, site: Site) -> RunError {
    match trap::check(code).and_then(|number| checks.nth(number)) {
        Some(&Check { site, of: Checked::Divisor }) => {
            RunError::new(RunCode::E0802, "integer division by zero").at(site)
        }
        Some(&Check { site, of: Checked::Index { extent } }) => {
            let message = match trap::value(code) {
                Some(index) => out_of_bounds(i128::from(index), i128::from(extent), 1),
                None => format!("an index is far out of bounds for a dimension of size {extent}"),
            };
            RunError::new(RunCode::E0801, message).at(site).with_value(trap::value(code))
        }
        None if code == PANICKED => RunError::internal("a computation panicked").at(site),
        None => RunError::internal(format!("a kernel returned the unknown code {code}")).at(site),
    }
}
