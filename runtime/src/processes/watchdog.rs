//! Ends waits that are not bounded otherwise.
//!
//! Waits for messages have their own bound, because they poll. But a call of MPI itself may not return: when processes connect, when a host
//! is unreachable, when they disconnect. A thread observes the calls that have not returned, and phases that have a limit.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::errors::trap::{RunCode, RunError};

/// The number of calls at the same time that are looked at; further ones are not.
const SLOTS: usize = 64;

/// The calls that have not returned. There are several for each message, so that a call does not read the clock: the watchdog notes the
/// time when it first sees a call.
pub(crate) struct Calls {
    /// The number of a call, from 1 on; 0 for a free slot.
    slots: [AtomicU64; SLOTS],
    begun: AtomicU64,
}

/// The calls that the watchdog has seen, each with the time when it has seen it first.
struct SeenCalls([(u64, Instant); SLOTS]);

impl SeenCalls {
    fn new() -> SeenCalls {
        SeenCalls([(0, Instant::now()); SLOTS])
    }

    /// Looks at the calls. How long the longest one has lasted, at least.
    fn look(&mut self, calls: &Calls) -> Duration {
        let now = Instant::now();
        let lasted = self.0.iter_mut().zip(&calls.slots).map(|(seen, slot)| {
            let number = slot.load(Ordering::Relaxed);
            if seen.0 != number {
                *seen = (number, now);
            }
            if number > 0 { now - seen.1 } else { Duration::ZERO }
        });
        lasted.max().unwrap_or_default()
    }
}

impl Calls {
    pub fn new() -> Calls {
        Calls { slots: [const { AtomicU64::new(0) }; SLOTS], begun: AtomicU64::new(0) }
    }

    /// A call of this thread, which ends when the value is dropped.
    pub fn enter(&self) -> MpiCall<'_> {
        let number = 1 + self.begun.fetch_add(1, Ordering::Relaxed);
        let is_taken =
            |slot: &&AtomicU64| slot.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        MpiCall { slot: self.slots.iter().find(is_taken) }
    }
}

/// See [`Calls::enter`].
pub(crate) struct MpiCall<'a> {
    /// None if all slots were taken.
    slot: Option<&'a AtomicU64>,
}

impl Drop for MpiCall<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            slot.store(0, Ordering::Relaxed);
        }
    }
}

/// A thread that ends waits.
pub(crate) struct Watchdog {
    watched: Arc<Watched>,
    thread: Option<JoinHandle<()>>,
}

struct Watched {
    state: Mutex<WatchState>,
    changed: Condvar,
}

#[derive(Default)]
struct WatchState {
    /// The current work of this process, and its time limit.
    phase: Option<(&'static str, Instant, Duration)>,
    is_over: bool,
}

impl Watchdog {
    /// Observes calls, each of which may take at most `limit`, and phases. When one takes longer, `bark` is called once, with a
    /// description.
    pub fn start(
        calls: Arc<Calls>,
        limit: Duration,
        bark: impl FnOnce(String) + Send + 'static,
    ) -> Result<Watchdog, RunError> {
        let watched = Arc::new(Watched { state: Mutex::default(), changed: Condvar::new() });
        let seen = watched.clone();
        let watch = move || {
            if let Some(what) = seen.wait(&calls, limit) {
                bark(what);
            }
        };
        let thread = thread::Builder::new()
            .name("spmd-watchdog".to_string())
            .spawn(watch)
            .map_err(|error| RunError::new(RunCode::E0803, format!("cannot start a thread: {error}")))?;
        Ok(Watchdog { watched, thread: Some(thread) })
    }

    /// Begins a phase, which ends when the value is dropped: it may not take longer than `limit`. There is one at a time.
    pub fn watch(&self, what: &'static str, limit: Duration) -> Phase<'_> {
        self.watched.set(Some((what, Instant::now(), limit)));
        Phase { watched: &self.watched }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.watched.state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.watched.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread could not be reported any more.
            let _ = thread.join();
        }
    }
}

/// See [`Watchdog::watch`].
pub(crate) struct Phase<'a> {
    watched: &'a Watched,
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        self.watched.set(None);
    }
}

impl Watched {
    fn set(&self, phase: Option<(&'static str, Instant, Duration)>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        debug_assert!(state.phase.is_none() || phase.is_none(), "one phase at a time");
        state.phase = phase;
        self.changed.notify_all();
    }

    /// The call or phase that took too long; None when the watchdog ends.
    fn wait(&self, calls: &Calls, limit: Duration) -> Option<String> {
        // Often enough for calls, whose beginnings wake nobody.
        let look = (limit / 4).clamp(Duration::from_millis(1), Duration::from_secs(1));
        let mut seen = SeenCalls::new();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.is_over {
                return None;
            }
            if let Some((what, begun, limit)) = state.phase
                && begun.elapsed() > limit
            {
                return Some(format!("{what} has taken {limit:?}"));
            }
            if seen.look(calls) > limit {
                return Some(format!("a call of the MPI library did not return within {limit:?}"));
            }
            let left = state.phase.map(|(_, begun, limit)| (begun + limit).saturating_duration_since(Instant::now()));
            let pause = left.map_or(look, |left| left.min(look)) + Duration::from_millis(1);
            state = self.changed.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_phase_or_a_call_that_takes_too_long_is_noticed() {
        let (said, heard) = channel();
        let calls = Arc::new(Calls::new());
        let day = Duration::from_secs(86400);
        let watchdog = Watchdog::start(calls.clone(), day, move |what| said.send(what).unwrap()).unwrap();
        drop(watchdog.watch("what ends at once", Duration::from_millis(1)));
        let phase = watchdog.watch("waiting for the others", Duration::from_millis(2));
        assert_eq!(heard.recv().unwrap(), "waiting for the others has taken 2ms");
        drop(phase);
        drop(watchdog);

        let (said, heard) = channel();
        let limit = Duration::from_millis(2);
        let watchdog = Watchdog::start(calls.clone(), limit, move |what| said.send(what).unwrap()).unwrap();
        drop(calls.enter());
        let call = calls.enter();
        assert_eq!(heard.recv().unwrap(), "a call of the MPI library did not return within 2ms");
        drop((call, watchdog));
        assert_eq!(SeenCalls::new().look(&calls), Duration::ZERO);
    }

    #[test]
    fn what_ends_in_time_is_left_alone() {
        let (said, heard) = channel();
        let calls = Arc::new(Calls::new());
        let day = Duration::from_secs(86400);
        let watchdog = Watchdog::start(calls.clone(), day, move |what| said.send(what).unwrap()).unwrap();
        drop(calls.enter());
        drop(watchdog.watch("a day", day));
        drop(watchdog);
        assert!(heard.recv().is_err(), "nothing was said");
    }

    #[test]
    fn more_calls_than_slots_are_possible() {
        let calls = Calls::new();
        let many: Vec<MpiCall> = (0..SLOTS + 3).map(|_| calls.enter()).collect();
        assert_eq!(many.iter().filter(|call| call.slot.is_none()).count(), 3);
        drop(many);
        assert!(calls.enter().slot.is_some());
    }
}
