//! The options and the report of a run.

use std::time::Duration;

use spmdc_abi::CollectiveKind;
use spmdc_abi::mesh::TWO_ROUNDS_FROM;

/// The limits of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Maximum duration of a wait at a barrier, after which the program stops with E0804.
    pub timeout: Duration,
    /// Maximum number of busy threads; None for the number of available cores.
    pub workers: Option<usize>,
    /// Maximum number of bytes of the program's memory; None for the free memory of the machine.
    pub memory_limit: Option<u64>,
    /// Whether devices record their operations, for [`Session::trace`](crate::run::session::Session::trace).
    pub records: bool,
    /// Bytes of the largest message of a reduction between processes from which it takes two rounds where these receive fewer bytes. All
    /// processes must have the same; the bits do not depend on it.
    pub two_rounds_from: u64,
    /// Maximum bytes of a message of partial values, unless a reduction would have too many messages. The caches then hold them until they
    /// are combined, and their memory is the memory of one message. All processes must have the same value; the bits do not depend on it.
    pub portion: u64,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            timeout: Duration::from_secs(60),
            workers: None,
            memory_limit: None,
            records: false,
            two_rounds_from: TWO_ROUNDS_FROM,
            portion: 1 << 20,
        }
    }
}

/// The figures of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunReport {
    /// Milliseconds from the first step to the last.
    pub run_ms: f64,
    /// The kinds of collectives that ran, in the order of [`CollectiveKind::ALL`].
    pub collectives: Vec<CollectiveTotal>,
    /// Bytes of all arenas that one device uses.
    pub peak_bytes_per_device: u64,
}

/// All executions of the collectives of one kind: each counts once, however many devices took part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CollectiveTotal {
    /// The kind of the collectives.
    pub kind: CollectiveKind,
    /// The number of executions.
    pub count: u64,
    /// Bytes of one device's operand, summed over the executions.
    pub bytes: u64,
}
