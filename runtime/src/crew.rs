//! Crews: the devices of one worker, which other workers may take over.
//!
//! A worker tends its own crew. Where it has waited for some microseconds, and another crew could go on although nobody tends it,
//! the system has given that worker's processor to somebody else: whoever waits carries its devices on instead, one at a
//! time, until the worker is back. Whether a crew can go on is seen from outside, in the positions of its devices; whoever
//! runs them holds the crew's lock.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::device::{Attendance, Device, DeviceState, WorkerContext};
use crate::launch::{Shared, panic_message};
use crate::trap::RunError;

/// On cache lines of its own: its lock is taken in front of every collective.
#[repr(align(128))]
pub(crate) struct Crew {
    pub number: usize,
    /// The devices that belong to it.
    pub devices: Range<usize>,
    inner: Mutex<Inner>,
    /// Somebody carries it on just now. Whoever only looks must not take the lock: its worker might find it locked and go to
    /// sleep.
    is_tended: AtomicBool,
    /// Its own worker has been seen in this run.
    pub has_begun: AtomicBool,
    /// Somebody else was the last to carry it on.
    pub is_taken_over: AtomicBool,
}

pub(crate) struct Inner {
    pub devices: Vec<Device>,
    /// For each barrier, how many of these devices take part, and how many are there already.
    pub attendance: Vec<Attendance>,
    /// All devices are done, or have stopped, and that was told.
    has_ended: bool,
}

/// Who carries a crew on.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Tender {
    Owner,
    Other,
}

impl Crew {
    pub fn new(number: usize, devices: Vec<Device>, attendance: Vec<Attendance>) -> Crew {
        let first = devices.first().map_or(0, |device| device.number);
        debug_assert!(
            devices.iter().zip(first..).all(|(device, at)| device.number == at),
            "a crew is of neighbouring devices"
        );
        Crew {
            number,
            devices: first..first + devices.len(),
            inner: Mutex::new(Inner { devices, attendance, has_ended: true }),
            is_tended: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
            is_taken_over: AtomicBool::new(false),
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// None where somebody tends it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, Inner>> {
        match self.inner.try_lock() {
            Ok(inner) => Some(inner),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Back to the beginning of the program.
    pub fn reset(&self, shared: &Shared) {
        let mut inner = self.lock();
        self.has_begun.store(false, Ordering::Relaxed);
        self.is_taken_over.store(false, Ordering::Relaxed);
        inner.has_ended = false;
        inner.attendance.iter_mut().for_each(|attendance| attendance.present = 0);
        debug_assert!(
            inner.attendance.iter().all(|attendance| attendance.members as usize <= inner.devices.len()),
            "a crew brings its own devices only"
        );
        for device in &mut inner.devices {
            device.reset();
            shared.positions[device.number].start();
        }
    }

    /// Whether its worker could carry it on, as far as can be seen from outside.
    pub fn is_free(&self, shared: &Shared) -> bool {
        !self.is_tended.load(Ordering::Relaxed) && self.can_go_on(shared)
    }

    /// Whether somebody else could: no device asks for its own worker.
    pub fn is_left_alone(&self, shared: &Shared) -> bool {
        self.is_free(shared) && !self.devices.clone().any(|device| shared.positions[device].is_held())
    }

    fn can_go_on(&self, shared: &Shared) -> bool {
        self.devices.clone().any(|device| shared.positions[device].is_ready(shared))
    }

    /// Carries the devices on, as far as they can go: all of them by their own worker, one by anybody else, so that the worker
    /// can have its crew back. False if somebody else tends it, or nothing could go on.
    pub fn tend(&self, tender: Tender, context: &mut WorkerContext) -> bool {
        let Some(mut inner) = self.try_lock() else { return false };
        debug_assert!(!self.is_tended.load(Ordering::Relaxed), "who holds the lock is the only one who tends");
        self.is_tended.store(true, Ordering::Relaxed);
        match tender {
            Tender::Owner => {
                self.has_begun.store(true, Ordering::Relaxed);
                self.is_taken_over.store(false, Ordering::Relaxed);
            }
            Tender::Other => self.is_taken_over.store(true, Ordering::Relaxed),
        }
        let shared = context.shared;
        let done = catch_unwind(AssertUnwindSafe(|| inner.advance(tender, context)));
        let moved = done.unwrap_or_else(|panic| {
            let error = RunError::internal(format!("a worker panicked: {}", panic_message(&*panic)));
            shared.failures.halt(0, 0, error);
            // Where they are is unknown.
            for device in &mut inner.devices {
                device.state = DeviceState::Stopped;
                shared.positions[device.number].clear();
            }
            shared.wake_all();
            true
        });
        inner.settle(shared);
        self.is_tended.store(false, Ordering::Relaxed);
        drop(inner);
        if tender == Tender::Other {
            // Its worker may have gone to sleep because it could not have it: as in `Parker::wait`, either it sees now that nobody
            // tends it and what its devices wait for, or this thread sees that they can go on.
            fence(Ordering::SeqCst);
            if self.can_go_on(shared) {
                shared.parkers[self.number].wake();
            }
        }
        moved
    }
}

impl Inner {
    fn advance(&mut self, tender: Tender, context: &mut WorkerContext) -> bool {
        let shared = context.shared;
        let mut moved = false;
        loop {
            let before = moved;
            moved = false;
            for device in &mut self.devices {
                if device.can_go_on(shared) {
                    // SAFETY: a session makes its devices from a checked program; that its kernels keep to their buffers, and
                    // that its steps are ordered, was promised by who made its `Kernels`.
                    unsafe { device.advance(&mut self.attendance, context) };
                    moved = true;
                    if tender == Tender::Other {
                        return true;
                    }
                }
            }
            if !moved {
                return before;
            }
        }
    }

    /// Tells who waits for the end of the run when the last device has come to it.
    pub fn settle(&mut self, shared: &Shared) {
        let is_over = |device: &Device| matches!(device.state, DeviceState::Done | DeviceState::Stopped);
        if !self.has_ended && self.devices.iter().all(is_over) {
            self.has_ended = true;
            shared.crew_has_ended();
        }
    }
}
