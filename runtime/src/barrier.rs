//! Waiting for others: the meetings of groups of devices, and threads that sleep until something happens.
//!
//! # Meetings
//! Every group of devices that ever waits for each other has one [`Meeting`], used again and again: its generation says how
//! often it has taken place. The crew of a worker counts those of its devices that have arrived in memory of its own; only
//! when all of them are there does it touch the meeting. So a meeting of eight devices in two crews costs two atomic
//! additions, and one whose devices are all of one crew costs none.
//!
//! # Ordering
//! What a device wrote before it arrived is seen by every device that leaves the meeting: an arriving worker adds to
//! `arrived` with release, the last one reads that with acquire and publishes the next generation with release, and whoever
//! goes on has read that generation with acquire. Within one crew all of this happens under its lock.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How often a thread looks at first: for some 2 to 5 microseconds. Who comes later than that may have lost its processor.
const SPINS: u32 = 150;

/// How long it goes on looking while it lets others run, until it goes to sleep.
const YIELDING: Duration = Duration::from_micros(100);

/// No member of a meeting has stopped.
const ALIVE: u64 = u64::MAX;

/// Where a group of devices meets. Aligned so that two meetings never share a cache line, or a pair of them.
#[repr(align(128))]
pub(crate) struct Meeting {
    /// How often the meeting has taken place.
    generation: AtomicU32,
    /// Workers all of whose members have arrived for the next time.
    arrived: AtomicU32,
    /// The first generation that a member which has stopped will not take part in, or [`ALIVE`].
    dead: AtomicU64,
    /// The devices that meet, in the order of their numbers.
    pub members: Box<[usize]>,
    /// The workers that these devices belong to.
    pub workers: Box<[usize]>,
}

impl Meeting {
    pub fn new(members: Box<[usize]>, workers: Box<[usize]>) -> Meeting {
        debug_assert!(!members.is_empty() && members.is_sorted(), "members stand in the order of their numbers");
        debug_assert!(!workers.is_empty() && workers.len() <= members.len(), "each worker brings a member");
        let zero = || AtomicU32::new(0);
        Meeting { generation: zero(), arrived: zero(), dead: AtomicU64::new(ALIVE), members, workers }
    }

    /// The generation that a device which has just arrived waits to see replaced. It cannot pass without this device.
    pub fn current(&self) -> u32 {
        self.generation.load(Ordering::Relaxed)
    }

    /// Whether a meeting that was awaited in this generation has taken place.
    pub fn is_over(&self, awaited: u32) -> bool {
        self.generation.load(Ordering::Acquire) != awaited
    }

    /// All members that belong to the calling worker have arrived. True if they were the last ones, so that the meeting takes
    /// place; the other workers may need waking then.
    pub fn arrive(&self) -> bool {
        let generation = self.current();
        if self.workers.len() > 1 {
            let before = self.arrived.fetch_add(1, Ordering::AcqRel);
            debug_assert!(before < self.workers.len() as u32, "a worker arrives twice at one meeting");
            if before + 1 < self.workers.len() as u32 {
                return false;
            }
            // Nobody arrives again before the next generation is there to be seen.
            self.arrived.store(0, Ordering::Relaxed);
        }
        debug_assert_eq!(self.current(), generation, "only who arrives last ends a meeting");
        self.generation.store(generation.wrapping_add(1), Ordering::Release);
        true
    }

    /// A member has stopped, and will not take part from this generation on. It gives up waiting if it did.
    pub fn bury(&self, missing: u32) {
        let is_earlier = |known: u64| known == ALIVE || (missing.wrapping_sub(known as u32) as i32) < 0;
        // Failing to update means that another member has been missing longer.
        let _ = self
            .dead
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |known| is_earlier(known).then_some(u64::from(missing)));
    }

    /// Whether waiting is in vain: a member stopped before the awaited meeting took place.
    pub fn is_in_vain(&self, awaited: u32) -> bool {
        let dead = self.dead.load(Ordering::Acquire);
        dead != ALIVE && (awaited.wrapping_sub(dead as u32) as i32) >= 0 && !self.is_over(awaited)
    }

    /// Makes the meeting as new. No device may be using it.
    pub fn reset(&self) {
        self.arrived.store(0, Ordering::Relaxed);
        self.dead.store(ALIVE, Ordering::Relaxed);
    }
}

/// Lets one thread sleep until others wake it.
#[derive(Default)]
pub(crate) struct Parker {
    parked: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Parker {
    /// Says that the calling thread is the one to wake.
    pub fn register(&self) {
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread::current());
    }

    /// Waits until `ready` holds: if `spin`, looking again and again, then looking while others run; then asleep. False when
    /// the limit has passed. `ready` is told whether it has been asked for longer than a thread on a processor takes.
    ///
    /// No wake-up is lost: this thread marks itself parked and then looks once more, a waking thread makes `ready` true and then
    /// looks for the mark, and a full fence lies between the two steps of each, so at least one sees what the other did.
    pub fn wait(&self, spin: bool, limit: Option<Duration>, mut ready: impl FnMut(bool) -> bool) -> bool {
        for _ in 0..if spin { SPINS } else { 1 } {
            if ready(false) {
                return true;
            }
            std::hint::spin_loop();
        }
        let begin = Instant::now();
        while spin && begin.elapsed() < YIELDING {
            if ready(true) {
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
            match left {
                _ if came => {}
                None => thread::park(),
                Some(left) => thread::park_timeout(left),
            }
            self.parked.store(false, Ordering::Relaxed);
            // Whether it came meanwhile is seen in the next round; the last one does not sleep.
            if came || left.is_some_and(|left| left.is_zero()) {
                return came || ready(true);
            }
        }
    }

    /// Wakes the thread if it sleeps. What it waits for must have been made true before.
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
    fn the_last_worker_makes_the_meeting_take_place() {
        let meeting = Meeting::new(Box::new([0, 1, 2]), Box::new([0, 1]));
        for round in 0..3 {
            let awaited = meeting.current();
            assert_eq!(awaited, round);
            assert!(!meeting.arrive());
            assert!(!meeting.is_over(awaited));
            assert!(meeting.arrive());
            assert!(meeting.is_over(awaited));
        }
        let awaited = meeting.current();
        // One member has posted for this time and stopped then, the other stops before it comes.
        meeting.bury(awaited + 1);
        assert!(!meeting.is_in_vain(awaited));
        meeting.bury(awaited);
        meeting.bury(awaited + 1);
        assert!(meeting.is_in_vain(awaited));
        assert!(!meeting.is_in_vain(awaited - 1));
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
                        // Without spinning, so that nearly every turn is a sleep and a wake-up.
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
