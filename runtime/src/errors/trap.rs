//! Runtime errors as values, each with a code and a source position.
//!
//! | code | meaning |
//! |---|---|
//! | E0801 | an index is out of bounds |
//! | E0802 | an integer division by zero |
//! | E0803 | not enough memory |
//! | E0804 | devices did not arrive at a barrier in time |
//! | E0805 | the processor lacks instructions that the program was built with |
//! | E0806 | an assertion failed |
//! | E0807 | the processes of a job cannot be connected |
//! | E0808 | the processes of a job have different programs, options or versions |
//! | E0809 | another process does not answer |
//! | E0701, E0703 | an argument has the wrong type, or cannot be read |
//! | E0999 | the compiler or the runtime violated its own rules |

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

pub use spmdc_abi::RunCode;
use spmdc_abi::Site;

/// An error that stops a program or keeps it from being loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// A stable code such as `E0801`, explained by `spmdc explain`.
    pub code: RunCode,
    /// The message, without code and source position.
    pub message: String,
    /// The source position; [`Site::file`] indexes the program's files.
    pub site: Option<Site>,
    /// The way out, if there is one.
    pub help: Option<String>,
    /// The value that failed a check. Of several devices that fail at one statement, that with the least value is reported, so that
    /// the message does not depend on the mesh.
    pub(crate) value: Option<i64>,
}

impl RunError {
    /// An error without source position and help.
    pub fn new(code: RunCode, message: impl Into<String>) -> RunError {
        RunError { code, message: message.into(), site: None, help: None, value: None }
    }

    /// A mistake of the compiler or the runtime, never of the user.
    pub fn internal(message: impl Into<String>) -> RunError {
        RunError::new(RunCode::E0999, message).with_help("this is a bug in spmdc; please report it with the program")
    }

    /// The error at a source position.
    pub fn at(mut self, site: Site) -> RunError {
        self.site = Some(site);
        self
    }

    /// The error for a value that failed a check.
    pub(crate) fn with_value(mut self, value: Option<i64>) -> RunError {
        self.value = value;
        self
    }

    /// The error with a way out.
    pub fn with_help(mut self, help: impl Into<String>) -> RunError {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for RunError {}

/// A failure of a device, at a number of executed operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeviceStop {
    pub clock: u64,
    pub device: usize,
    pub error: RunError,
}

/// The failures of one run; the first in program order is reported.
///
/// Every device counts the operations that it has executed. Where control flow is the same on all devices these clocks agree, so the least
/// of `(clock, site, value, device)` is the same failure whatever the timing of the threads. The site decides because one operation may do
/// the work of several statements; then the value that failed decides. A device therefore runs until its clock passes the clock of a known
/// failure: it might still fail earlier in the program.
#[derive(Debug)]
pub(crate) struct Failures {
    /// The least clock at which a device failed.
    clock: AtomicU64,
    /// Whether an error stops all devices at once.
    halted: AtomicBool,
    first: Mutex<Option<(u64, usize, RunError)>>,
}

impl Failures {
    pub fn new() -> Failures {
        Failures { clock: AtomicU64::new(u64::MAX), halted: AtomicBool::new(false), first: Mutex::new(None) }
    }

    /// Whether a device at this clock can stop.
    pub fn stops(&self, clock: u64) -> bool {
        clock > self.clock.load(Ordering::Relaxed)
    }

    pub fn record(&self, clock: u64, device: usize, error: RunError) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let order = |clock, device, error: &RunError| (clock, error.site, error.value, device);
        if first.as_ref().is_none_or(|(at, who, known)| order(clock, device, &error) < order(*at, *who, known)) {
            *first = Some((clock, device, error));
        }
        debug_assert!(first.as_ref().is_some_and(|(at, ..)| *at <= clock), "the first failure is kept");
        self.clock.fetch_min(clock, Ordering::Relaxed);
    }

    /// Records the error and stops all devices at their next operation that checks for failures.
    pub fn halt(&self, clock: u64, device: usize, error: RunError) {
        self.record(clock, device, error);
        self.clock.store(0, Ordering::Relaxed);
        self.halted.store(true, Ordering::Release);
    }

    pub fn is_halted(&self) -> bool {
        self.halted.load(Ordering::Acquire)
    }

    /// Takes the first failure, if there was any, and resets the record.
    pub fn take(&self) -> Option<RunError> {
        self.take_stop().map(|stop| stop.error)
    }

    /// As `take`, with the device and its clock.
    pub fn take_stop(&self) -> Option<DeviceStop> {
        self.clock.store(u64::MAX, Ordering::Relaxed);
        self.halted.store(false, Ordering::Relaxed);
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        first.map(|(clock, device, error)| DeviceStop { clock, device, error })
    }
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_in_program_order_is_kept() {
        let failures = Failures::new();
        assert!(!failures.stops(u64::MAX));
        failures.record(7, 1, RunError::new(RunCode::E0801, "later"));
        failures.record(5, 3, RunError::new(RunCode::E0801, "device 3"));
        failures.record(5, 2, RunError::new(RunCode::E0802, "device 2"));
        failures.record(5, 4, RunError::new(RunCode::E0801, "device 4"));
        let at = |line| Site { file: 0, line, column: 1 };
        assert!(failures.stops(6) && !failures.stops(5));
        assert_eq!(failures.take().map(|error| error.message).as_deref(), Some("device 2"));
        failures.record(5, 0, RunError::new(RunCode::E0802, "its last statement").at(at(9)));
        failures.record(5, 1, RunError::new(RunCode::E0802, "its first statement").at(at(8)));
        assert_eq!(failures.take().map(|error| error.message).as_deref(), Some("its first statement"));
        assert_eq!(failures.take(), None);
    }
}
