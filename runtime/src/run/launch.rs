//! Workers: the threads that run the devices.
//!
//! There are as many workers as devices, or as cores if these are fewer. Every device belongs to the crew of one worker, in blocks of
//! neighbouring numbers. The thread that calls [`Workforce::run`] is worker 0: a program of one device starts no thread unless it uses a
//! team. A worker resumes the devices of its crew in turn. When all of them wait, it polls for a short time, then tends a crew whose worker
//! has lost its processor (see [`crate::run::crew`]), and finally sleeps until another worker completes a barrier of its devices. Between runs
//! workers sleep.

use std::io::Write;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::errors::trap::{RunCode, RunError};
use crate::processes::crossings::{Ending, NAP};
use crate::processes::numbered_processes;
use crate::run::barrier::{Barrier, Parker};
use crate::run::crew::{Crew, Tender};
use crate::run::device::{Attendance, Device, DeviceState, WorkerContext};
use crate::run::shared::{Position, Shared, WorkerOrder};
use crate::run::team::{Team, TeamDoor};
use spmdc_abi::mesh::share;

/// The numbers of workers and helpers of a program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Staff {
    /// The first device of this process.
    first: usize,
    /// For each device of this process its worker; neighbouring devices have the same one or neighbouring ones.
    worker_of: Vec<usize>,
    pub workers: usize,
    helpers: usize,
}

impl Staff {
    /// For devices that are numbered from `first` on and have these labels, in ascending order. Those of one label, which several meshes
    /// have in common, have one worker.
    pub fn new(first: usize, labels: &[usize], cores: usize) -> Staff {
        debug_assert!(labels.is_sorted(), "devices are in the order of their labels");
        let mut different = labels.to_vec();
        different.dedup();
        let cores = cores.max(1);
        // A process without devices has a worker that waits for the others.
        let workers = different.len().clamp(1, cores);
        let worker = |label: &usize| {
            let at = different.partition_point(|other| other < label);
            // The inverse of the shares, whose cuts are at `floor(worker * devices / workers)`.
            let worker = ((at + 1) * workers - 1) / different.len();
            debug_assert!(
                share(different.len() as i64, worker, workers).contains(&(at as i64)),
                "device {at} is not of worker {worker}"
            );
            worker
        };
        Staff { first, worker_of: labels.iter().map(worker).collect(), workers, helpers: cores - workers }
    }

    /// Whether the device is one of this process.
    pub fn has(&self, device: usize) -> bool {
        (self.first..self.first + self.worker_of.len()).contains(&device)
    }

    /// The worker of a device.
    pub fn worker_of(&self, device: usize) -> usize {
        self.worker_of[device - self.first]
    }

    pub fn devices_of(&self, worker: usize) -> Range<usize> {
        let before = |worker: usize| self.first + self.worker_of.partition_point(|other| *other < worker);
        before(worker)..before(worker + 1)
    }

    /// The number of all threads of this process. While the other workers wait, they help the one that works.
    pub fn threads(&self) -> usize {
        self.workers + self.helpers
    }

    /// The number of threads that work for a worker's devices, the worker included.
    pub fn team_of(&self, worker: usize) -> usize {
        1 + self.helpers / self.workers + usize::from(worker < self.helpers % self.workers)
    }
}

/// The number of crews of other workers that a waiting worker checks at a time.
const LOOKED_AT: usize = 4;

/// The shared state and the crews.
struct Floor {
    shared: Shared,
    crews: Vec<Crew>,
    /// The doors of the workers' teams, with the numbers of the workers.
    doors: Vec<(usize, TeamDoor)>,
}

/// The state of a worker on its own thread.
struct Worker {
    number: usize,
    team: Option<Team>,
    /// The crew of another worker that it checks next.
    next: usize,
    /// The door of another worker's team that it checks next.
    door: usize,
    /// The position of every device when this worker began to wait.
    marks: Vec<u64>,
}

impl Worker {
    fn new(number: usize, team: Option<Team>) -> Worker {
        Worker { number, team, next: number, door: number, marks: Vec::new() }
    }

    /// Tends crews until `is_over`, which must wake this worker when it becomes true. False if it waited for longer than the
    /// timeout in a run that had already been given up.
    fn work(&mut self, floor: &Floor, mut out: Option<&mut dyn Write>, is_over: &dyn Fn() -> bool) -> bool {
        let shared = &floor.shared;
        let own = &floor.crews[self.number];
        let is_alone = floor.crews.len() == 1 && shared.crossings.is_none();
        loop {
            if is_over() {
                return true;
            }
            debug_assert_eq!(own.number, self.number, "a worker has the crew of its number");
            let mut context = WorkerContext {
                shared,
                team: self.team.as_mut(),
                out: out.as_mut().map(|out| -> &mut dyn Write { *out }),
                worker: self.number,
            };
            if own.is_free(shared) && own.tend(Tender::Owner, &mut context) {
                continue;
            }
            // A lone worker without ready devices would wait forever: no other worker could complete a barrier.
            let limit = if is_alone { Duration::ZERO } else { shared.timeout };
            let limit = shared.is_running().then_some(limit);
            let was_halted = shared.failures.is_halted();
            let (mut other, mut host) = (None, None);
            let (next, door, marks) = (&mut self.next, &mut self.door, &mut self.marks);
            marks.clear();
            let ready = |late: bool| {
                if let Some(crossings) = shared.crossings.as_ref().filter(|crossings| crossings.is_active()) {
                    shared.with_run(|run| crossings.poll(run));
                }
                if late && marks.is_empty() {
                    marks.extend(shared.positions.iter().map(Position::mark));
                }
                if is_over() || own.is_free(shared) {
                    return true;
                }
                // A few at a time: waiting workers should not slow down working ones.
                host = (0..LOOKED_AT.min(floor.doors.len())).find_map(|_| {
                    *door = (*door + 1) % floor.doors.len();
                    let (worker, door) = &floor.doors[*door];
                    (*worker != self.number && door.is_open()).then_some(door)
                });
                if host.is_some() {
                    return true;
                }
                other = (0..LOOKED_AT.min(floor.crews.len())).find_map(|_| {
                    *next = (*next + 1) % floor.crews.len();
                    let crew = &floor.crews[*next];
                    let is_free =
                        (late || crew.is_taken_over.load(Ordering::Relaxed)) && may_take_over(self.number, crew);
                    Some(crew).filter(|crew| is_free && crew.is_left_alone(shared))
                });
                other.is_some()
            };
            // Messages arrive only while a worker looks at them.
            let is_active = || shared.crossings.as_ref().is_some_and(|crossings| crossings.is_active());
            let nap = || is_active().then_some(NAP);
            let came = shared.parkers[self.number].wait_in_naps(!is_alone, limit, nap, ready);
            if let Some(door) = host {
                door.help();
            } else if let Some(crew) = other {
                crew.tend(Tender::Other, &mut context);
            } else if !came && !floor.give_up(&self.marks) && was_halted {
                return false;
            }
        }
    }
}

/// Whether this worker may tend another worker's crew. The first worker must return to its caller in every case. It leaves a crew to its
/// owner until the owner has begun: if a device never returns from a kernel, the thread of its worker is abandoned.
fn may_take_over(worker: usize, crew: &Crew) -> bool {
    crew.number != worker && (worker > 0 || crew.has_begun.load(Ordering::Relaxed))
}

impl Floor {
    /// Ends the run because a wait took too long: stops the devices that have waited since these marks were taken. True if there was
    /// such a device.
    fn give_up(&self, marks: &[u64]) -> bool {
        let shared = &self.shared;
        let mut gave_up = false;
        for crew in &self.crews {
            // A crew that a worker tends makes progress.
            let Some(mut inner) = crew.try_lock() else { continue };
            for device in &mut inner.devices {
                let has_moved = shared.positions[device.number].mark() != marks[device.number];
                if has_moved || device.can_go_on(shared) {
                    continue;
                }
                if let DeviceState::Waiting { barrier, generation } = device.state {
                    shared.failures.halt(
                        device.clock(),
                        device.number,
                        shared.waited_too_long(device, barrier, generation),
                    );
                    device.state = DeviceState::Stopped;
                    shared.positions[device.number].clear();
                    gave_up = true;
                }
            }
            inner.settle(shared);
        }
        shared.wake_all();
        gave_up
    }
}

impl Shared {
    fn waited_too_long(&self, device: &Device, barrier: usize, generation: u32) -> RunError {
        let at = device.waits_at();
        let members = self.barriers[barrier].members.iter().copied();
        let late = members.filter(|&member| !self.positions[member].is(barrier, generation));
        let mut missing: Vec<usize> = late.map(|member| self.labels[member]).collect();
        missing.sort_unstable();
        missing.dedup();
        let outline = &self.outlines[device.part];
        let site = outline.site(at);
        let line = if site.line > 0 { format!(" of line {}", site.line) } else { String::new() };
        let what = outline.what(at);
        // A lone worker has not waited: there is no other worker to wait for.
        let is_alone = self.parkers.len() == 1 && self.crossings.is_none();
        let waited = if !is_alone { format!("waited {:?}", self.timeout) } else { "waits".into() };
        let processes = self.crossings.as_ref().map(|crossings| crossings.awaited(barrier)).unwrap_or_default();
        let (code, missing) = match processes.as_slice() {
            [] => (RunCode::E0804, numbered(&missing)),
            processes => (RunCode::E0809, numbered_processes(processes)),
        };
        RunError::new(code, format!("the {what}{line} {waited} for {missing}"))
            .at(site)
            .with_help("`--timeout` sets the longest wait in seconds")
    }
}

/// `device 3`, or `devices 1, 2 and 5`; of many devices only the first 8.
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

/// All workers of a session.
pub(crate) struct Workforce {
    floor: Arc<Floor>,
    /// The worker on the calling thread.
    first: Worker,
    threads: Vec<JoinHandle<()>>,
    /// Whether a device did not return from a kernel: then no further run is possible, and its thread is abandoned.
    lost: bool,
}

impl Workforce {
    /// Starts the threads and touches the memory.
    pub fn new(shared: Shared, staff: Staff, devices: Vec<Device>) -> Result<Workforce, RunError> {
        let mut devices = devices.into_iter();
        let (mut crews, mut workers, mut doors) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..staff.workers {
            let own: Vec<Device> = devices.by_ref().take(staff.devices_of(number).len()).collect();
            let mut attendance = vec![Attendance::default(); shared.barriers.len()];
            for (barrier, attendance) in shared.barriers.iter().zip(&mut attendance) {
                attendance.members =
                    barrier.members.iter().filter(|&&member| staff.worker_of(member) == number).count() as u32;
            }
            let helpers = staff.team_of(number) - 1;
            let wanted = staff.threads() > 1 && own.iter().any(Device::wants_team);
            let team = if wanted { Some(Team::new(helpers, shared.parkers.clone())?) } else { None };
            doors.extend(team.as_ref().map(|team| (number, team.door())));
            workers.push(Worker::new(number, team));
            crews.push(Crew::new(number, own, attendance));
        }
        debug_assert_eq!(devices.len(), 0, "a device has no worker");
        let floor = Arc::new(Floor { shared, crews, doors });
        let mut workers = workers.into_iter();
        let first = workers.next().ok_or_else(|| RunError::internal("no worker was started"))?;
        let mut workforce = Workforce { floor, first, threads: Vec::new(), lost: false };
        for worker in workers {
            let floor = workforce.floor.clone();
            let thread = thread::Builder::new()
                .name(format!("spmd-worker-{}", worker.number))
                .spawn(move || serve(&floor, worker))
                .map_err(|error| RunError::new(RunCode::E0803, format!("cannot start a thread: {error}")))?;
            workforce.threads.push(thread);
        }
        workforce.touch();
        Ok(workforce)
    }

    pub fn shared(&self) -> &Shared {
        &self.floor.shared
    }

    /// Runs the program once on all devices of this process, and waits until all processes have run it. On success, returns the time
    /// of the slowest process, and the number of executions of each collective.
    pub fn run(&mut self, out: &mut dyn Write) -> Result<Ending, RunError> {
        let begin = Instant::now();
        if self.lost {
            return Err(RunError::internal("a device of an earlier run is missing"));
        }
        let Floor { shared, crews, .. } = &*self.floor;
        debug_assert_eq!(shared.running.load(Ordering::Relaxed), 0, "the run before has ended");
        shared.failures.take();
        shared.barriers.iter().for_each(Barrier::reset);
        if let Some(crossings) = &shared.crossings {
            crossings.begin_run()?;
        }
        shared.running.store(crews.len() as u32, Ordering::Relaxed);
        shared.parkers[0].register();
        // A worker may tend a crew as soon as it is reset.
        crews.iter().for_each(|crew| crew.reset(shared));
        shared.parkers.iter().skip(1).for_each(Parker::wake);
        // A kernel may run for any time. But a device that does not respond within the timeout after the run was given up is lost;
        // the memory that it still uses stays allocated as long as its thread lives.
        self.lost = !self.first.work(&self.floor, Some(out), &|| !shared.is_running());
        let stop = shared.failures.take_stop();
        let counts = if stop.is_none() { self.counts() } else { Vec::new() };
        let run_ms = begin.elapsed().as_secs_f64() * 1e3;
        match (&shared.crossings, stop) {
            (Some(crossings), stop) => {
                let ended = shared.with_run(|run| crossings.end_run(run, (stop, run_ms, counts)));
                ended.map_err(|stop| stop.error)
            }
            (None, Some(stop)) => Err(stop.error),
            (None, None) => Ok(Ending { run_ms, counts }),
        }
    }

    /// Visits the devices of this process, in the order of their numbers, between two runs.
    pub fn each_device(&self, visit: &mut dyn FnMut(&Device)) {
        self.floor.crews.iter().for_each(|crew| crew.lock().devices.iter().for_each(&mut *visit));
    }

    /// The number of executions of each collective: the maximum over all devices, as devices with a lower count were not in its group.
    fn counts(&self) -> Vec<u64> {
        let mut counts = Vec::new();
        for crew in &self.floor.crews {
            for device in &crew.lock().devices {
                debug_assert!(
                    counts.is_empty() || counts.len() == device.counts.len(),
                    "devices count the same collectives"
                );
                counts.resize(device.counts.len(), 0);
                for (count, own) in counts.iter_mut().zip(&device.counts) {
                    *count = (*count).max(*own);
                }
            }
        }
        counts
    }

    /// Makes every worker touch the memory of its devices, the first one on this thread, and waits until all have.
    fn touch(&mut self) {
        let shared = &self.floor.shared;
        shared.parkers[0].register();
        shared.busy.store(self.threads.len() as u32, Ordering::Relaxed);
        self.order(WorkerOrder::Touch);
        self.floor.touch(0);
        let finished = |_| shared.busy.load(Ordering::Acquire) == 0;
        shared.parkers[0].wait(!self.threads.is_empty(), None, finished);
    }

    fn order(&self, order: WorkerOrder) {
        let shared = &self.floor.shared;
        *lock(&shared.order) = order;
        shared.orders.fetch_add(1, Ordering::Release);
        shared.parkers.iter().skip(1).for_each(Parker::wake);
    }
}

impl Drop for Workforce {
    fn drop(&mut self) {
        self.order(WorkerOrder::Quit);
        for thread in self.threads.drain(..) {
            if !self.lost {
                // Workers catch every panic, so joining cannot fail, and an error could not be reported.
                let _ = thread.join();
            }
        }
    }
}

impl Floor {
    fn touch(&self, crew: usize) {
        let own = self.crews[crew].lock();
        own.devices.iter().for_each(|device| self.shared.memories[device.part].touch(device.place));
    }
}

/// The main loop of a worker's thread.
fn serve(floor: &Floor, mut worker: Worker) {
    let shared = &floor.shared;
    shared.parkers[worker.number].register();
    let mut seen = 0;
    loop {
        let has_orders = || shared.orders.load(Ordering::Acquire) != seen;
        // The first worker reports a timeout; this one continues waiting.
        while !worker.work(floor, None, &has_orders) {}
        seen = seen.wrapping_add(1);
        let order = *lock(&shared.order);
        match order {
            WorkerOrder::Touch => {
                floor.touch(worker.number);
                let before = shared.busy.fetch_sub(1, Ordering::AcqRel);
                debug_assert!(before > 0, "a worker finishes an order twice");
                if before == 1 {
                    shared.parkers[0].wake();
                }
            }
            WorkerOrder::Quit => return,
        }
    }
}

/// A panic while one of these locks is held leaves no state that the next run does not reset.
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
                let staff = Staff::new(3, &(3..3 + devices).collect::<Vec<_>>(), cores);
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
