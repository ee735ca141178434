//! Jobs of several processes, each with the same number of devices: device `d` is in process `d / T`.
//!
//! The devices of a process share its memory, wait for each other and copy from each other as if there were no other process. If a step
//! reads the memory of devices in other processes, a *crossing* comes before it. When all devices of the group in this process have
//! arrived, the last one packs the data that other processes read into one message for each process. It begins to send these messages and
//! to receive those of the others. The devices continue when all are complete, and read the bytes of other processes from the messages. The
//! contents of the messages follow from the mesh and the layouts. So each process makes the plans of all when it loads the program
//! ([`reads`]), and allocates nothing while it runs ([`crossings`]).
//!
//! A barrier needs no message: it protects the memory of one process, and bytes of other processes are copies.
//!
//! At the end of a run each process reports its outcome to all others ([`records`]). So all know of the first failure in the program, and a
//! process that waits for a message of a stopped process learns that it will not arrive.
//!
//! A launcher starts the processes; each reads its number from the launcher's variables, and MPI connects all of them ([`job`], [`mpi`]).
//! They compare their programs before the run ([`handshake`]). Every wait for another process is bounded ([`watchdog`]).

pub(crate) mod assignment;
pub(crate) mod crossings;
pub(crate) mod devices;
pub(crate) mod exchange;
pub mod group;
pub(crate) mod handshake;
pub mod job;
pub(crate) mod journal;
pub(crate) mod mpi;
pub(crate) mod plans;
pub(crate) mod reads;
pub(crate) mod records;
pub(crate) mod results;
pub(crate) mod threads;
pub(crate) mod transport;
pub mod tune;
pub(crate) mod watchdog;

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::errors::trap::{RunCode, RunError};
use threads::ThreadTransport;
use transport::{Request, Transport};

/// A process of a job.
#[derive(Clone)]
pub struct Process {
    transport: Arc<dyn Transport>,
}

/// Tags of messages outside of steps; the tags of steps are lower.
pub(crate) mod tags {
    /// Maximum number of groups of devices with separate messages.
    pub const GROUPS: u32 = 30_000;
    /// The records at the end of a run.
    pub const RECORD: u32 = GROUPS;
    /// Blocks of results.
    pub const RESULT: u32 = GROUPS + 1;
    /// Whether all processes have done a part of the work.
    pub const AGREEMENT: u32 = GROUPS + 2;
    /// The processes' descriptions of themselves at the beginning.
    pub const INTRODUCTION: u32 = GROUPS + 3;
    /// Files that a program saves.
    pub const SAVED: u32 = GROUPS + 4;
    /// How many of these each process has begun.
    pub const BEGUN: u32 = GROUPS + 5;
    /// Messages whose time is measured.
    pub const MEASURED: u32 = GROUPS + 6;
}

impl Process {
    /// The processes of a job that are threads of this process, for tests.
    pub fn threads(count: usize) -> Vec<Process> {
        ThreadTransport::job(count).into_iter().map(|transport| Process { transport: Arc::new(transport) }).collect()
    }

    /// The number of the process, from 0 on.
    pub fn rank(&self) -> usize {
        self.transport.place().rank
    }

    /// The number of processes.
    pub fn count(&self) -> usize {
        self.transport.place().count
    }

    /// Begins to send bytes.
    ///
    /// # Safety
    /// They must stay valid and untouched until the request is complete.
    pub(crate) unsafe fn send(&self, to: usize, tag: u32, bytes: &[u8]) -> Result<Request, RunError> {
        // SAFETY: as promised by the caller.
        unsafe { self.transport.send(to, tag, bytes.as_ptr(), bytes.len()) }
    }

    /// Begins to receive as many bytes.
    ///
    /// # Safety
    /// They must stay valid, and no one else may use them, until the request is complete.
    pub(crate) unsafe fn receive(&self, from: usize, tag: u32, bytes: &mut [u8]) -> Result<Request, RunError> {
        // SAFETY: as promised by the caller.
        unsafe { self.transport.receive(from, tag, bytes.as_mut_ptr(), bytes.len()) }
    }

    /// Waits until the requests are complete, or for the limit. Those that are not stay.
    pub(crate) fn wait(&self, pending: &mut Vec<(usize, Request)>, limit: Duration) -> Result<(), RunError> {
        let begin = Instant::now();
        loop {
            let mut failed = None;
            pending.retain_mut(|(_, request)| match self.transport.is_complete(request) {
                Ok(is_complete) => !is_complete,
                Err(error) => {
                    failed = Some(error);
                    true
                }
            });
            match failed {
                Some(error) => return Err(error),
                None if pending.is_empty() || begin.elapsed() > limit => return Ok(()),
                None => pause(begin.elapsed()),
            }
        }
    }
}

/// How long a process waits for all others to end a part of the work as it has itself ended it. Its own failure does not wait for the
/// limit again: above all one that has waited for another process in vain (E0809).
pub(crate) fn patience(error: Option<&RunError>, limit: Duration) -> Duration {
    match error.map(|error| error.code) {
        None => limit,
        Some(RunCode::E0809) => limit.min(Duration::from_secs(2)),
        Some(_) => limit.min(Duration::from_secs(10)),
    }
}

/// Waits for a moment between two polls; `since` is the time since the first.
fn pause(waited: Duration) {
    if waited < Duration::from_micros(200) { thread::yield_now() } else { thread::sleep(Duration::from_micros(30)) }
}

/// The beginning of a text, of at most this number of bytes.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_string()
}

/// E0809: something waited for so long for messages of these processes.
pub(crate) fn silent(what: &str, limit: Duration, processes: &[usize]) -> RunError {
    let text = format!("{what} waited {limit:?} for {}", numbered_processes(processes));
    RunError::new(RunCode::E0809, text).with_help("`--timeout` sets the longest wait in seconds")
}

/// `process 1`, or `processes 1, 2 and 5`.
pub(crate) fn numbered_processes(processes: &[usize]) -> String {
    let names: Vec<String> = processes.iter().map(usize::to_string).collect();
    match names.split_last() {
        None => "other processes".to_string(),
        Some((last, [])) => format!("process {last}"),
        Some((last, others)) => format!("processes {} and {last}", others.join(", ")),
    }
}
