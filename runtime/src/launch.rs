//! Workers: the threads that carry the devices through a run.
//!
//! There are as many workers as devices, or as cores if these are fewer. Every device belongs to one worker for good, in blocks
//! of neighbouring numbers, and the thread that calls [`Workforce::run`] is worker 0: a program of one device starts no thread
//! at all unless a team helps it. A worker resumes its devices in turn; when all of them wait it looks for a short while whether
//! one can go on, and then sleeps until somebody completes one of their meetings. Between runs workers sleep.

use std::any::Any;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::abi::Site;
use crate::barrier::{Meeting, Parker};
use crate::device::{Attendance, Context, Device, Position, State};
use crate::memory::Memory;
use crate::mesh::share;
use crate::print::Print;
use crate::team::Team;
use crate::trap::{Failures, RunError};

/// What all workers of a session see.
pub(crate) struct Shared {
    pub memory: Memory,
    pub meetings: Vec<Meeting>,
    pub prints: Vec<Print>,
    pub outline: Outline,
    pub positions: Vec<Position>,
    pub failures: Failures,
    pub timeout: Duration,
    /// One for each worker.
    pub parkers: Vec<Parker>,
    /// Grows with every order, so that workers see that there is a new one.
    orders: AtomicU32,
    order: Mutex<Order>,
    /// Workers other than the first that have not finished the order.
    busy: AtomicU32,
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    /// First-touch the memory of one's devices.
    Touch,
    Run,
    Quit,
}

/// For every operation, which is the same step on all devices, where it is in the source and what a device that waits there
/// waits for.
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

impl Shared {
    pub fn new(
        memory: Memory,
        meetings: Vec<Meeting>,
        prints: Vec<Print>,
        outline: Outline,
        timeout: Duration,
        workers: usize,
    ) -> Shared {
        let positions = (0..memory.mesh().devices()).map(|_| Position::new()).collect();
        Shared {
            memory,
            meetings,
            prints,
            outline,
            positions,
            failures: Failures::new(),
            timeout,
            parkers: (0..workers).map(|_| Parker::default()).collect(),
            orders: AtomicU32::new(0),
            order: Mutex::new(Order::Touch),
            busy: AtomicU32::new(0),
        }
    }

    /// Wakes the workers, other than the calling one, whose devices may be waiting in the meeting.
    pub fn wake(&self, meeting: &Meeting, caller: usize) {
        for &worker in meeting.workers.iter().filter(|&&worker| worker != caller) {
            self.parkers[worker].wake();
        }
    }

    fn wake_all(&self) {
        self.parkers.iter().for_each(Parker::wake);
    }
}

/// How many workers and helpers a program gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Staff {
    devices: usize,
    pub workers: usize,
    helpers: usize,
}

impl Staff {
    pub fn new(devices: usize, cores: usize) -> Staff {
        let cores = cores.max(1);
        let workers = devices.min(cores);
        Staff { devices, workers, helpers: cores - workers }
    }

    /// The worker that a device belongs to.
    pub fn worker_of(&self, device: usize) -> usize {
        // The inverse of `devices_of`, whose cuts are at `floor(worker * devices / workers)`.
        ((device + 1) * self.workers - 1) / self.devices
    }

    pub fn devices_of(&self, worker: usize) -> std::ops::Range<usize> {
        let devices = share(self.devices as i64, worker, self.workers);
        devices.start as usize..devices.end as usize
    }

    /// How many threads work for a worker's devices, itself included.
    pub fn team_of(&self, worker: usize) -> usize {
        1 + self.helpers / self.workers + usize::from(worker < self.helpers % self.workers)
    }
}

/// One worker's part of a session.
struct Worker {
    number: usize,
    devices: Vec<Device>,
    attendance: Vec<Attendance>,
    team: Option<Team>,
}

impl Worker {
    /// Runs all devices to their end.
    fn run(&mut self, shared: &Shared, out: Option<&mut dyn Write>) {
        for attendance in &mut self.attendance {
            attendance.present = 0;
        }
        self.devices.iter_mut().for_each(Device::reset);
        let result = catch_unwind(AssertUnwindSafe(|| self.carry_on(shared, out)));
        if let Err(panic) = result {
            let error = RunError::internal(format!("a worker panicked: {}", panic_message(&*panic)));
            shared.failures.halt(0, 0, error);
            shared.wake_all();
        }
    }

    fn carry_on(&mut self, shared: &Shared, out: Option<&mut dyn Write>) {
        let spin = shared.parkers.len() > 1;
        let mut context = Context {
            shared,
            attendance: &mut self.attendance,
            team: self.team.as_mut(),
            out: out.map(|out| -> &mut dyn Write { out }),
            worker: self.number,
        };
        loop {
            let mut waiting = false;
            let mut moved = false;
            for device in &mut self.devices {
                if device.can_go_on(shared) {
                    // SAFETY: a session makes its devices from a checked program; that its kernels keep to their buffers, and
                    // that its steps are ordered, was promised by who made its `Kernels`.
                    unsafe { device.advance(&mut context) };
                    moved = true;
                }
                waiting |= matches!(device.state, State::Waiting { .. });
            }
            if !waiting {
                return;
            }
            if moved {
                continue;
            }
            // A lone worker that has nothing to do will never have: nobody else could complete a meeting.
            let limit = if spin { shared.timeout } else { Duration::ZERO };
            let devices = &self.devices;
            let ready = || devices.iter().any(|device| device.can_go_on(shared));
            if !shared.parkers[self.number].wait(spin, Some(limit), ready) {
                self.give_up(shared);
                return;
            }
        }
    }

    /// Ends the run because a wait took too long.
    fn give_up(&mut self, shared: &Shared) {
        for device in &mut self.devices {
            if let State::Waiting { meeting, generation } = device.state {
                let at = device.waits_at();
                let missing: Vec<usize> = shared.meetings[meeting]
                    .members
                    .iter()
                    .copied()
                    .filter(|&member| !shared.positions[member].is(meeting, generation))
                    .collect();
                let site = shared.outline.site(at);
                let line = if site.line > 0 { format!(" of line {}", site.line) } else { String::new() };
                let what = shared.outline.what(at);
                // A lone worker has not waited: there is nobody to wait for.
                let waited =
                    if shared.parkers.len() > 1 { format!("waited {:?}", shared.timeout) } else { "waits".into() };
                let message = format!("the {what}{line} {waited} for {}", numbered(&missing));
                let error = RunError::new("E0804", message)
                    .at(site)
                    .with_help("`--timeout` says how many seconds a wait may take");
                shared.failures.halt(device.clock(), device.number, error);
                device.state = State::Stopped;
            }
        }
        shared.wake_all();
    }
}

/// `device 3`, or `devices 1, 2 and 5`; only the first few of many.
fn numbered(devices: &[usize]) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<String> = devices.iter().take(SHOWN).map(usize::to_string).collect();
    if devices.len() > SHOWN {
        names.push(format!("{} more", devices.len() - SHOWN));
    }
    match (names.pop(), names.is_empty()) {
        (None, _) => "other devices".into(),
        (Some(last), true) => format!("device {last}"),
        (Some(last), false) => format!("devices {} and {last}", names.join(", ")),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// All workers of a session.
pub(crate) struct Workforce {
    shared: Arc<Shared>,
    workers: Vec<Arc<Mutex<Worker>>>,
    threads: Vec<JoinHandle<()>>,
    /// A worker did not come back: nothing can be run any more, and its thread is left alone.
    lost: bool,
}

impl Workforce {
    /// Starts the threads, and touches the memory.
    pub fn new(shared: Shared, staff: Staff, devices: Vec<Device>) -> Result<Workforce, RunError> {
        let shared = Arc::new(shared);
        let mut workforce = Workforce { shared: shared.clone(), workers: Vec::new(), threads: Vec::new(), lost: false };
        let mut devices = devices.into_iter();
        for number in 0..staff.workers {
            let own: Vec<Device> = devices.by_ref().take(staff.devices_of(number).len()).collect();
            let mut attendance = vec![Attendance::default(); shared.meetings.len()];
            for (meeting, attendance) in shared.meetings.iter().zip(&mut attendance) {
                attendance.members =
                    meeting.members.iter().filter(|&&member| staff.worker_of(member) == number).count() as u32;
            }
            let helpers = staff.team_of(number) - 1;
            let wanted = helpers > 0 && own.iter().any(Device::wants_team);
            let team = if wanted { Some(Team::new(helpers)?) } else { None };
            workforce.workers.push(Arc::new(Mutex::new(Worker { number, devices: own, attendance, team })));
        }
        for number in 1..staff.workers {
            let (shared, worker) = (shared.clone(), workforce.workers[number].clone());
            let thread = thread::Builder::new()
                .name(format!("spmd-worker-{number}"))
                .spawn(move || serve(&shared, &worker, number))
                .map_err(|error| RunError::new("E0803", format!("a thread could not be started: {error}")))?;
            workforce.threads.push(thread);
        }
        workforce.order(Order::Touch, None)?;
        Ok(workforce)
    }

    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Runs the program once on all devices. On success, gives how often each collective was executed.
    pub fn run(&mut self, out: &mut dyn Write) -> Result<Vec<u64>, RunError> {
        if self.lost {
            return Err(RunError::internal("a device of an earlier run has not come back"));
        }
        self.shared.failures.take();
        self.shared.meetings.iter().for_each(Meeting::reset);
        self.shared.positions.iter().for_each(Position::clear);
        let done = self.order(Order::Run, Some(out));
        if let Some(failure) = self.shared.failures.take() {
            return Err(failure);
        }
        done?;
        // A step counts as often as the device that executed it most: the others, if they differ at all, were not in its group.
        let mut counts = Vec::new();
        for worker in &self.workers {
            for device in &lock(worker).devices {
                counts.resize(device.counts.len(), 0);
                for (count, own) in counts.iter_mut().zip(&device.counts) {
                    *count = (*count).max(*own);
                }
            }
        }
        Ok(counts)
    }

    /// Has every worker do something, the first one on this thread, and waits until all have.
    fn order(&mut self, order: Order, out: Option<&mut dyn Write>) -> Result<(), RunError> {
        let shared = &*self.shared;
        *lock(&shared.order) = order;
        shared.parkers[0].register();
        shared.busy.store(self.threads.len() as u32, Ordering::Relaxed);
        shared.orders.fetch_add(1, Ordering::Release);
        shared.parkers.iter().skip(1).for_each(Parker::wake);
        lock(&self.workers[0]).obey(order, shared, out);
        let finished = || shared.busy.load(Ordering::Acquire) == 0;
        loop {
            let back = shared.parkers[0].wait(!self.threads.is_empty(), Some(shared.timeout), finished);
            if back {
                return Ok(());
            }
            // A device may compute for as long as it likes. But if the run has been given up, it has had time enough to notice;
            // what it still uses stays allocated for as long as its thread lives.
            if shared.failures.is_halted() {
                self.lost = true;
                return Err(RunError::internal("a device does not come back"));
            }
        }
    }
}

impl Drop for Workforce {
    fn drop(&mut self) {
        *lock(&self.shared.order) = Order::Quit;
        self.shared.orders.fetch_add(1, Ordering::Release);
        self.shared.wake_all();
        for thread in self.threads.drain(..) {
            if !self.lost {
                // Workers catch every panic, so joining cannot fail; and there is nobody to tell.
                let _ = thread.join();
            }
        }
    }
}

impl Worker {
    fn obey(&mut self, order: Order, shared: &Shared, out: Option<&mut dyn Write>) {
        match order {
            Order::Touch => self.devices.iter().for_each(|device| shared.memory.touch(device.number)),
            Order::Run => self.run(shared, out),
            Order::Quit => {}
        }
    }
}

/// The life of a worker's thread.
fn serve(shared: &Shared, worker: &Mutex<Worker>, number: usize) {
    let parker = &shared.parkers[number];
    parker.register();
    let mut seen = 0;
    loop {
        parker.wait(true, None, || shared.orders.load(Ordering::Acquire) != seen);
        seen = seen.wrapping_add(1);
        let order = *lock(&shared.order);
        lock(worker).obey(order, shared, None);
        if shared.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
            shared.parkers[0].wake();
        }
        if order == Order::Quit {
            return;
        }
    }
}

/// A panic while holding one of these locks leaves nothing half done that the next run does not reset.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_has_one_worker() {
        for devices in 1..20 {
            for cores in 1..9 {
                let staff = Staff::new(devices, cores);
                for worker in 0..staff.workers {
                    assert!(!staff.devices_of(worker).is_empty());
                    assert!(staff.devices_of(worker).all(|device| staff.worker_of(device) == worker));
                }
                let threads: usize = (0..staff.workers).map(|worker| staff.team_of(worker)).sum();
                assert_eq!(threads, cores);
            }
        }
    }

    #[test]
    fn many_missing_devices_are_shortened() {
        assert_eq!(numbered(&[3]), "device 3");
        assert_eq!(numbered(&[1, 2, 5]), "devices 1, 2 and 5");
        assert_eq!(numbered(&(0..20).collect::<Vec<_>>()), "devices 0, 1, 2, 3, 4, 5, 6, 7 and 12 more");
    }
}
