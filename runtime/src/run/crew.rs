//! Crews: the devices of one worker, which other workers may take over.
//!
//! A worker tends its own crew. If a crew has ready devices that no worker tends for some microseconds, its worker has lost its
//! processor. A waiting worker then runs the devices of that crew instead, one at a time, until the owner is back. Other workers
//! read in the positions of the devices whether a crew is ready; the worker that runs them holds the crew's lock.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::errors::trap::{RunError, panic_message};
use crate::run::device::{Attendance, Device, DeviceState, WorkerContext};
use crate::run::shared::Shared;

/// A crew, on separate cache lines: its lock is taken before every collective.
#[repr(align(128))]
pub(crate) struct Crew {
    pub number: usize,
    /// The devices of the crew.
    pub devices: Range<usize>,
    inner: Mutex<Inner>,
    /// Whether a worker tends it now. Workers that check the crew read this instead of taking the lock: the crew's own worker might
    /// find it locked and go to sleep.
    is_tended: AtomicBool,
    /// Whether its own worker has tended it in this run.
    pub has_begun: AtomicBool,
    /// Whether the last worker that tended it was another one.
    pub is_taken_over: AtomicBool,
}

pub(crate) struct Inner {
    pub devices: Vec<Device>,
    /// For each barrier, the number of these devices that are members, and the number that have arrived.
    pub attendance: Vec<Attendance>,
    /// Whether all devices are done or have stopped, and the session knows it.
    has_ended: bool,
}

/// The worker that tends a crew: its owner or another one.
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

    /// Takes the lock; None while another worker holds it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, Inner>> {
        match self.inner.try_lock() {
            Ok(inner) => Some(inner),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Resets the crew to the beginning of the program.
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
        if inner.devices.is_empty() {
            inner.settle(shared);
        }
    }

    /// Whether its own worker could tend it, as far as its positions show.
    pub fn is_free(&self, shared: &Shared) -> bool {
        !self.is_tended.load(Ordering::Relaxed) && self.can_go_on(shared)
    }

    /// Whether another worker could tend it: no device needs its own worker.
    pub fn is_left_alone(&self, shared: &Shared) -> bool {
        self.is_free(shared) && !self.devices.clone().any(|device| shared.positions[device].is_held())
    }

    fn can_go_on(&self, shared: &Shared) -> bool {
        self.devices.clone().any(|device| shared.positions[device].is_ready(shared))
    }

    /// Runs the ready devices until they wait: all of them if the owner calls, one if another worker does, so that the owner can
    /// get its crew back. False if another worker tends it, or if no device was ready.
    pub fn tend(&self, tender: Tender, context: &mut WorkerContext) -> bool {
        let Some(mut inner) = self.try_lock() else { return false };
        debug_assert!(!self.is_tended.load(Ordering::Relaxed), "only the worker that holds the lock tends the crew");
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
            // The positions of the devices in the program are unknown after a panic.
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
            // Its worker may have gone to sleep because the crew was locked. As in `Parker::wait`, either that worker now sees that
            // the crew is free and ready, or this thread sees that the crew is ready and wakes it.
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
                    // SAFETY: a session makes its devices from a checked program; the creator of its `Kernels` has promised that
                    // they stay within their buffers and that the steps are ordered.
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

    /// Reports the end of the crew's run when its last device is done or has stopped.
    pub fn settle(&mut self, shared: &Shared) {
        let is_over = |device: &Device| matches!(device.state, DeviceState::Done | DeviceState::Stopped);
        if !self.has_ended && self.devices.iter().all(is_over) {
            self.has_ended = true;
            shared.crew_has_ended();
        }
    }
}
