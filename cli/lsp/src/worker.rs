//! Threads that work on the newest job only.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Stack bytes of the threads: trees may be deep.
pub const STACK_BYTES: usize = 64 << 20;

/// Locks a mutex. Each request is guarded against panics, so a value may have been left by one; all are replaced as a whole.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The newest job, which a thread waits for. A newer job replaces one that waits.
#[derive(Debug)]
pub struct Newest<T> {
    slot: Arc<(Mutex<NewestSlot<T>>, Condvar)>,
}

#[derive(Debug)]
struct NewestSlot<T> {
    job: Option<T>,
    is_closed: bool,
}

impl<T> Clone for Newest<T> {
    fn clone(&self) -> Newest<T> {
        Newest { slot: Arc::clone(&self.slot) }
    }
}

impl<T: Send + 'static> Newest<T> {
    /// A place without a job.
    pub fn new() -> Newest<T> {
        Newest { slot: Arc::new((Mutex::new(NewestSlot { job: None, is_closed: false }), Condvar::new())) }
    }

    /// Replaces the job.
    pub fn put(&self, job: T) {
        let (slot, changed) = &*self.slot;
        lock(slot).job = Some(job);
        changed.notify_all();
    }

    /// Ends the thread after its present job.
    pub fn close(&self) {
        let (slot, changed) = &*self.slot;
        lock(slot).is_closed = true;
        changed.notify_all();
    }

    /// Whether a newer job waits, or the server ends.
    pub fn is_outdated(&self) -> bool {
        let slot = lock(&self.slot.0);
        slot.job.is_some() || slot.is_closed
    }

    /// Waits for a job; None at the end of the server.
    fn take(&self) -> Option<T> {
        let (slot, changed) = &*self.slot;
        let mut slot = lock(slot);
        loop {
            if slot.is_closed {
                return None;
            }
            if let Some(job) = slot.job.take() {
                return Some(job);
            }
            slot = changed.wait(slot).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for this long. Returns whether no newer job has come.
    pub fn is_quiet_for(&self, time: Duration) -> bool {
        let (slot, changed) = &*self.slot;
        let waits = |slot: &mut NewestSlot<T>| slot.job.is_none() && !slot.is_closed;
        let waited = changed.wait_timeout_while(lock(slot), time, waits).unwrap_or_else(PoisonError::into_inner);
        waited.1.timed_out()
    }

    /// Starts a thread that does the jobs.
    pub fn start(&self, name: &str, mut work: impl FnMut(T) + Send + 'static) -> std::io::Result<()> {
        let own = self.clone();
        let body = move || {
            while let Some(job) = own.take() {
                work(job);
            }
        };
        thread::Builder::new().name(name.to_string()).stack_size(STACK_BYTES).spawn(body).map(drop)
    }
}

impl<T: Send + 'static> Default for Newest<T> {
    fn default() -> Newest<T> {
        Newest::new()
    }
}
