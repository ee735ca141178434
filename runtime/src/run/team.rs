//! Teams: spare cores that help a worker with a long kernel or product.
//!
//! A worker with a team offers a range; the worker and its helpers take chunks of it until the range is done (dynamic
//! self-scheduling with a fixed chunk). The worker never waits for a helper to wake up, only for helpers that have begun a chunk.
//! The assignment of chunks to threads is not deterministic, so the result must not depend on how the range is cut.
//!
//! Other workers are guests of the team: while all devices of a guest wait, it takes a chunk, and then looks at its devices again.

use std::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};

use crate::errors::trap::{RunCode, RunError};
use crate::run::barrier::Parker;
use spmdc_abi::trap;

/// Minimum estimated time of work that is offered to helpers, in nanoseconds.
pub(crate) const WORTH_SHARING: f64 = 20_000.0;

/// The code of a chunk that panicked; no trap code is negative.
pub(crate) const PANICKED: i64 = -1;

/// The code to report of two: a panic, otherwise the failure that comes first in the source.
pub(crate) fn first_trap(known: i64, code: i64) -> i64 {
    debug_assert!(known >= PANICKED && code >= PANICKED, "no trap code is negative");
    if known == trap::NONE || known != PANICKED && code != trap::NONE && code < known { code } else { known }
}

pub(crate) struct Team {
    shared: Arc<TeamShared>,
    helpers: Vec<JoinHandle<()>>,
    /// The workers of the session, which may be asleep while they wait for others.
    guests: Arc<[Parker]>,
}

/// The entrance for guests.
#[derive(Clone)]
pub(crate) struct TeamDoor(Arc<TeamShared>);

impl TeamDoor {
    /// Whether there may be a chunk to take.
    pub fn is_open(&self) -> bool {
        self.0.open.load(Ordering::Relaxed) && self.0.next.load(Ordering::Relaxed) < self.0.end.load(Ordering::Relaxed)
    }

    /// Takes one chunk, if there is one.
    pub fn help(&self) {
        self.0.help(1);
    }
}

#[derive(Clone, Copy)]
struct Job {
    run: unsafe fn(*const (), i64, i64) -> i64,
    data: *const (),
    end: i64,
    chunk: i64,
}

struct TeamShared {
    /// Written by the worker while no job is open and no helper is active.
    job: UnsafeCell<Job>,
    /// Increases with every job, so that helpers detect a new one.
    epoch: AtomicU32,
    open: AtomicBool,
    /// The number of helpers that may be reading the job.
    active: AtomicU32,
    /// The start of the next chunk.
    next: AtomicI64,
    /// The end of the job's range, for threads that must not read the job.
    end: AtomicI64,
    /// The code of the failed chunk that comes first in the source; 0 if none failed.
    code: AtomicI64,
    quit: AtomicBool,
    parkers: Vec<Parker>,
}

// SAFETY: the job, with the raw pointer in it, is written only by the worker that owns the team, while `open` is false and `active`
// is zero; helpers read it only between incrementing and decrementing `active`, and only if `open` was true after the increment
// (see `TeamShared::help`). The pointer's target is `Sync` and outlives the job (see `Team::run`).
unsafe impl Send for TeamShared {}
// SAFETY: as above.
unsafe impl Sync for TeamShared {}

impl Team {
    /// A team with this many helpers in addition to the worker itself.
    pub fn new(helpers: usize, guests: Arc<[Parker]>) -> Result<Team, RunError> {
        unsafe fn nothing(_: *const (), _: i64, _: i64) -> i64 {
            0
        }
        let shared = Arc::new(TeamShared {
            job: UnsafeCell::new(Job { run: nothing, data: std::ptr::null(), end: 0, chunk: 1 }),
            epoch: AtomicU32::new(0),
            open: AtomicBool::new(false),
            active: AtomicU32::new(0),
            next: AtomicI64::new(0),
            end: AtomicI64::new(0),
            code: AtomicI64::new(0),
            quit: AtomicBool::new(false),
            parkers: (0..helpers).map(|_| Parker::default()).collect(),
        });
        let mut team = Team { shared: shared.clone(), helpers: Vec::with_capacity(helpers), guests };
        for index in 0..helpers {
            let shared = shared.clone();
            let helper = thread::Builder::new()
                .name(format!("spmd-helper-{index}"))
                .spawn(move || shared.serve(index))
                .map_err(|error| RunError::new(RunCode::E0803, format!("cannot start a thread: {error}")))?;
            team.helpers.push(helper);
        }
        Ok(team)
    }

    /// The entrance for other workers.
    pub fn door(&self) -> TeamDoor {
        TeamDoor(self.shared.clone())
    }

    /// Calls `work` for chunks of `begin..end` of this length until all is done; returns 0, or the first code by [`first_trap`].
    pub fn run<F: Fn(i64, i64) -> i64 + Sync>(&mut self, begin: i64, end: i64, chunk: i64, work: &F) -> i64 {
        /// Calls the closure that `data` points to.
        ///
        /// # Safety
        /// `data` is a valid `&F`.
        unsafe fn call<F: Fn(i64, i64) -> i64>(data: *const (), begin: i64, end: i64) -> i64 {
            // SAFETY: as promised by the caller.
            let work = unsafe { &*data.cast::<F>() };
            work(begin, end)
        }
        let shared = &*self.shared;
        debug_assert!(begin <= end, "a range of {begin}..{end}");
        debug_assert!(!shared.open.load(Ordering::SeqCst), "a job is open already");
        // SAFETY: no job is open and no helper reads one: the last call of this function waited for that, and `self` is borrowed
        // mutably, so no other call is in progress.
        unsafe {
            *shared.job.get() = Job { run: call::<F>, data: std::ptr::from_ref(work).cast(), end, chunk: chunk.max(1) };
        }
        shared.next.store(begin, Ordering::Relaxed);
        shared.end.store(end, Ordering::Relaxed);
        shared.code.store(0, Ordering::Relaxed);
        // Sequentially consistent, like the accesses of `help` to `active` and `open`: either a late helper sees that the job is
        // closed, or this thread sees that the helper is active.
        shared.open.store(true, Ordering::SeqCst);
        shared.epoch.fetch_add(1, Ordering::SeqCst);
        shared.parkers.iter().chain(&*self.guests).for_each(Parker::wake);
        // SAFETY: the job is open and valid until the end of this function.
        unsafe { shared.work(usize::MAX) };
        debug_assert!(shared.next.load(Ordering::Relaxed) >= end, "a chunk is left");
        shared.open.store(false, Ordering::SeqCst);
        let mut looks = 0;
        while shared.active.load(Ordering::SeqCst) != 0 {
            // A helper that takes longer than the busy wait may need this very processor.
            looks += 1;
            if looks < 1000 { std::hint::spin_loop() } else { thread::yield_now() }
        }
        shared.code.load(Ordering::Relaxed)
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.quit.store(true, Ordering::SeqCst);
        self.shared.epoch.fetch_add(1, Ordering::SeqCst);
        self.shared.parkers.iter().for_each(Parker::wake);
        for helper in self.helpers.drain(..) {
            // A helper catches every panic, so joining cannot fail, and an error could not be reported.
            let _ = helper.join();
        }
    }
}

impl TeamShared {
    /// The main loop of a helper's thread.
    fn serve(&self, index: usize) {
        let parker = &self.parkers[index];
        parker.register();
        let mut seen = 0;
        while !self.quit.load(Ordering::SeqCst) {
            parker.wait(true, None, |_| self.epoch.load(Ordering::SeqCst) != seen);
            seen = self.epoch.load(Ordering::SeqCst);
            self.help(usize::MAX);
        }
    }

    /// Takes this many chunks at most.
    fn help(&self, most: usize) {
        self.active.fetch_add(1, Ordering::SeqCst);
        if self.open.load(Ordering::SeqCst) {
            // SAFETY: the job was open after this helper became active, so its owner waits for it before it ends.
            unsafe { self.work(most) };
        }
        self.active.fetch_sub(1, Ordering::SeqCst);
    }

    /// Takes chunks of the job until all are taken, but this many at most.
    ///
    /// # Safety
    /// The job must be open, and stay valid until this returns.
    unsafe fn work(&self, most: usize) {
        // SAFETY: no thread writes the job while it is open.
        let job = unsafe { *self.job.get() };
        for _ in 0..most {
            let begin = self.next.fetch_add(job.chunk, Ordering::Relaxed);
            if begin >= job.end {
                return;
            }
            let end = begin.saturating_add(job.chunk).min(job.end);
            // SAFETY: the job's data is of the type that its function expects, see `Team::run`.
            let code =
                catch_unwind(AssertUnwindSafe(|| unsafe { (job.run)(job.data, begin, end) })).unwrap_or(PANICKED);
            if code != 0 {
                let first = |known: i64| Some(first_trap(known, code));
                // `first` returns a code for every other one, so this cannot fail.
                let _ = self.code.fetch_update(Ordering::Relaxed, Ordering::Relaxed, first);
                if code == PANICKED {
                    // The remaining chunks do not matter any more.
                    self.next.store(job.end, Ordering::Relaxed);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_part_is_done_once() {
        let mut team = Team::new(2, Arc::new([])).unwrap();
        let marks: Vec<AtomicU32> = (0..1000).map(|_| AtomicU32::new(0)).collect();
        for round in 1..200 {
            let code = team.run(10, 1000, 1 + round % 37, &|begin, end| {
                for mark in &marks[begin as usize..end as usize] {
                    mark.fetch_add(1, Ordering::Relaxed);
                }
                0
            });
            assert_eq!(code, 0);
            let expected = |i: usize| if i < 10 { 0 } else { round as u32 };
            assert!((0..1000).all(|i| marks[i].load(Ordering::Relaxed) == expected(i)));
        }
    }

    #[test]
    fn a_guest_takes_parts_while_the_job_is_open() {
        let mut team = Team::new(0, Arc::new([])).unwrap();
        let door = team.door();
        let (is_over, by_guest) = (AtomicBool::new(false), AtomicU32::new(0));
        thread::scope(|scope| {
            let owner = thread::current().id();
            let (is_over, by_guest) = (&is_over, &by_guest);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if door.is_open() {
                        door.help();
                    }
                    thread::yield_now();
                }
                assert!(!door.is_open());
            });
            let code = team.run(0, 8, 1, &|_, _| {
                match thread::current().id() == owner {
                    // The owner's first part lasts until the guest has taken another one.
                    true => {
                        while by_guest.load(Ordering::Relaxed) == 0 {
                            thread::yield_now();
                        }
                    }
                    false => drop(by_guest.fetch_add(1, Ordering::Relaxed)),
                }
                0
            });
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(code, 0);
        });
        assert!((1..8).contains(&by_guest.into_inner()));
    }

    #[test]
    fn a_failing_part_ends_the_job() {
        let mut team = Team::new(1, Arc::new([])).unwrap();
        assert_eq!(team.run(0, 100, 1, &|begin, _| i64::from(begin == 40)), 1);
        assert_eq!(team.run(0, 100, 1, &|_, _| 0), 0);
        assert_eq!(team.run(0, 100, 1, &|_, _| panic!("for the test")), PANICKED);
    }
}
