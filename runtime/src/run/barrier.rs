//! Synchronization: barriers of groups of devices, and threads that sleep until another thread wakes them.
//!
//! # Barriers
//! Every group of devices whose members wait for each other has one reusable [`Barrier`]: its generation is the number of times
//! that it has been completed. The crew of a worker counts its own arrived devices in its own memory and arrives at the barrier
//! when all of them have arrived. So a barrier of eight devices in two crews costs two atomic additions, and a barrier of the
//! devices of one crew costs none. This is a centralized barrier over crews in which the generation replaces the reversed sense
//! (Mellor-Crummey and Scott, "Algorithms for scalable synchronization on shared-memory multiprocessors", 1991).
//!
//! # Ordering
//! Every device that leaves the barrier sees the writes that each device made before it arrived. An arriving worker adds to `arrived` with
//! release. The last worker reads `arrived` with acquire and publishes the next generation with release. Every worker that continues has
//! read this generation with acquire. Within one crew, all of this happens under the lock of the crew.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Iterations of the first, busy wait: about 2 to 5 microseconds. A thread that arrives later may have lost its processor.
const SPINS: u32 = 150;

/// Duration of the second wait, in which the thread yields its processor between checks, before it goes to sleep.
const YIELDING: Duration = Duration::from_micros(100);

/// As [`YIELDING`] for a thread that looks at messages, which come from processes that may be at work: it sleeps longer than a message takes. It looks
/// several times before it yields, as that takes as long as a few looks.
const YIELDING_FOR_MESSAGES: Duration = Duration::from_micros(500);
const LOOKS_FOR_MESSAGES: usize = 8;

/// [`Barrier::broken_from`] of a barrier that no member has stopped.
const UNBROKEN: u64 = u64::MAX;

/// A reusable barrier of a group of devices. Its alignment keeps two barriers out of one cache line and out of one pair of
/// lines that are prefetched together.
#[repr(align(128))]
pub(crate) struct Barrier {
    /// The number of times that the barrier has been completed, modulo 2^32.
    generation: AtomicU32,
    /// The number of workers all of whose members have arrived in this generation.
    arrived: AtomicU32,
    /// The first generation at which a stopped member does not arrive, or [`UNBROKEN`].
    broken_from: AtomicU64,
    /// The devices that wait for each other, in the order of their numbers.
    pub members: Box<[usize]>,
    /// The workers of these devices.
    pub workers: Box<[usize]>,
}

impl Barrier {
    pub fn new(members: Box<[usize]>, workers: Box<[usize]>) -> Barrier {
        debug_assert!(members.is_sorted(), "members stand in the order of their numbers");
        debug_assert!(workers.is_empty() == members.is_empty(), "members have workers");
        debug_assert!(workers.len() <= members.len(), "each worker brings a member");
        let zero = || AtomicU32::new(0);
        Barrier { generation: zero(), arrived: zero(), broken_from: AtomicU64::new(UNBROKEN), members, workers }
    }

    /// The generation whose end a device that arrives now awaits. It cannot end before this device has arrived.
    pub fn current(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether the awaited generation has ended, so that its devices may continue.
    pub fn is_complete(&self, awaited: u32) -> bool {
        self.generation.load(Ordering::Acquire) != awaited
    }

    /// Counts the calling worker, all of whose members have arrived. True if it was the last worker, which completes the barrier;
    /// the other workers may have to be woken then.
    pub fn arrive(&self) -> bool {
        let is_last = self.come();
        if is_last {
            self.complete();
        }
        is_last
    }

    /// As [`Barrier::arrive`], but the barrier is not complete before [`Barrier::complete`] is called, once, after the last worker
    /// has come.
    pub fn come(&self) -> bool {
        let generation = self.current();
        if self.workers.len() > 1 {
            let before = self.arrived.fetch_add(1, Ordering::AcqRel);
            debug_assert!(before < self.workers.len() as u32, "a worker arrives twice at one barrier");
            if before + 1 < self.workers.len() as u32 {
                return false;
            }
            // No worker arrives again before it has seen the next generation.
            self.arrived.store(0, Ordering::Relaxed);
        }
        debug_assert_eq!(self.current(), generation, "only the worker that arrives last completes a barrier");
        true
    }

    /// Lets the devices continue: all workers have come.
    pub fn complete(&self) {
        self.generation.store(self.current().wrapping_add(1), Ordering::Release);
    }

    /// Breaks the barrier: a member has stopped and does not arrive from generation `missing` on.
    pub fn break_from(&self, missing: u32) {
        let is_earlier = |known: u64| known == UNBROKEN || (missing.wrapping_sub(known as u32) as i32) < 0;
        // The update fails where another member is missing from an earlier generation on.
        let _ = self
            .broken_from
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |known| is_earlier(known).then_some(u64::from(missing)));
    }

    /// Whether the awaited generation never ends: a member has stopped before it arrived.
    pub fn is_broken(&self, awaited: u32) -> bool {
        let broken_from = self.broken_from.load(Ordering::Acquire);
        broken_from != UNBROKEN && (awaited.wrapping_sub(broken_from as u32) as i32) >= 0 && !self.is_complete(awaited)
    }

    /// Resets the barrier to its initial state. No device may be using it.
    pub fn reset(&self) {
        self.arrived.store(0, Ordering::Relaxed);
        self.broken_from.store(UNBROKEN, Ordering::Relaxed);
    }
}

/// Lets one thread sleep until another thread wakes it.
#[derive(Default)]
pub(crate) struct Parker {
    parked: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Parker {
    /// Registers the calling thread as the thread to wake.
    pub fn register(&self) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
    }

    /// Waits until `ready` holds: with `spin` in a busy wait of [`SPINS`] iterations, then for [`YIELDING`] while other threads run, then
    /// asleep. False if the limit has passed. The argument of `ready` is false during the busy wait and true after it.
    ///
    /// No wake-up is lost. This thread marks itself parked and then checks once more. A waking thread makes `ready` true and then reads the
    /// mark. A full fence separates the two steps of each thread, so at least one thread sees the store of the other (the pattern of
    /// Dekker's algorithm).
    pub fn wait(&self, spin: bool, limit: Option<Duration>, ready: impl FnMut(bool) -> bool) -> bool {
        self.wait_in_naps(spin, limit, || None, ready)
    }

    /// As [`Parker::wait`], but while `nap` gives a time, it sleeps for that long at most before `ready` is asked again, and yields for longer before.
    pub fn wait_in_naps(
        &self,
        spin: bool,
        limit: Option<Duration>,
        nap: impl Fn() -> Option<Duration>,
        mut ready: impl FnMut(bool) -> bool,
    ) -> bool {
        for _ in 0..if spin { SPINS } else { 1 } {
            if ready(false) {
                return true;
            }
            std::hint::spin_loop();
        }
        let begin = Instant::now();
        let looks = || {
            let for_messages = nap().is_some();
            let (time, looks) = if for_messages { (YIELDING_FOR_MESSAGES, LOOKS_FOR_MESSAGES) } else { (YIELDING, 1) };
            (spin && begin.elapsed() < time).then_some(looks)
        };
        while let Some(looks) = looks() {
            if (0..looks).any(|_| ready(true)) {
                return true;
            }
            thread::yield_now();
        }
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        loop {
            self.parked.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
            let came = ready(true);
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            match (left, nap()) {
                _ if came => {}
                (None, None) => thread::park(),
                (Some(time), None) | (None, Some(time)) => thread::park_timeout(time),
                (Some(left), Some(nap)) => thread::park_timeout(left.min(nap)),
            }
            self.parked.store(false, Ordering::Relaxed);
            // The next round sees a wake-up that came in the meantime; the last round does not sleep.
            if came || left.is_some_and(|left| left.is_zero()) {
                return came || ready(true);
            }
        }
    }

    /// Wakes the thread if it sleeps. The caller must have made the awaited condition true.
    pub fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.parked.load(Ordering::Relaxed) && self.parked.swap(false, Ordering::Relaxed) {
            let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(thread) = thread.as_ref() {
                thread.unpark();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn the_last_worker_completes_the_barrier() {
        let barrier = Barrier::new(Box::new([0, 1, 2]), Box::new([0, 1]));
        for round in 0..3 {
            let awaited = barrier.current();
            assert_eq!(awaited, round);
            assert!(!barrier.arrive());
            assert!(!barrier.is_complete(awaited));
            assert!(barrier.arrive());
            assert!(barrier.is_complete(awaited));
        }
        let awaited = barrier.current();
        // One member has stopped after it posted in this generation, the other stops before it arrives.
        barrier.break_from(awaited + 1);
        assert!(!barrier.is_broken(awaited));
        barrier.break_from(awaited);
        barrier.break_from(awaited + 1);
        assert!(barrier.is_broken(awaited));
        assert!(!barrier.is_broken(awaited - 1));
    }

    #[test]
    fn threads_take_turns_without_losing_a_wake_up() {
        let turn = AtomicUsize::new(0);
        let parkers = [Parker::default(), Parker::default()];
        thread::scope(|scope| {
            for me in 0..2 {
                let (turn, parkers) = (&turn, &parkers);
                scope.spawn(move || {
                    parkers[me].register();
                    for round in 0..2000 {
                        // Without spinning, so that nearly every turn sleeps and is woken.
                        assert!(parkers[me].wait(false, None, |_| turn.load(Ordering::Acquire) == 2 * round + me));
                        turn.fetch_add(1, Ordering::Release);
                        parkers[1 - me].wake();
                    }
                });
            }
        });
        assert_eq!(turn.into_inner(), 4000);
    }

    #[test]
    fn waiting_ends_at_the_limit() {
        let parker = Parker::default();
        parker.register();
        let start = Instant::now();
        assert!(!parker.wait(true, Some(Duration::from_millis(20)), |_| false));
        assert!(start.elapsed() >= Duration::from_millis(20));
    }
}
