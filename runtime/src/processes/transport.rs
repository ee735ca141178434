//! The way of bytes between the processes of a job. The engine knows no other: MPI implements it, and so do queues between threads, for
//! tests.

use crate::errors::trap::RunError;
use spmdc_mpi::MpiTransfer;

/// The number of a process within its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessPlace {
    /// From 0 on; process 0 prints and reports.
    pub rank: usize,
    /// The number of processes, at least 1.
    pub count: usize,
}

/// A transfer that has begun. It is not asked for again once it is complete.
#[derive(Debug)]
pub(crate) struct Request {
    /// A number by which the transport knows the transfer.
    pub token: usize,
    /// The transfer itself, of MPI: to ask about it takes no lock.
    pub transfer: Option<MpiTransfer>,
}

/// Moves bytes between the processes of a job. Messages between two processes with the same tag arrive in the order in which they were
/// sent. Any thread may call; no call but [`Transport::abort`] waits for another process.
pub(crate) trait Transport: Send + Sync {
    /// The place of this process.
    fn place(&self) -> ProcessPlace;

    /// Begins to send. Tags are less than 32767.
    ///
    /// # Safety
    /// The bytes must stay valid and untouched until the request is complete.
    unsafe fn send(&self, to: usize, tag: u32, bytes: *const u8, len: usize) -> Result<Request, RunError>;

    /// Begins to receive a message of exactly this length.
    ///
    /// # Safety
    /// The bytes must stay valid, and no one else may use them, until the request is complete.
    unsafe fn receive(&self, from: usize, tag: u32, bytes: *mut u8, len: usize) -> Result<Request, RunError>;

    /// Whether the transfer is complete; never waits.
    fn is_complete(&self, request: &mut Request) -> Result<bool, RunError>;

    /// Ends all processes of the job with this exit status.
    fn abort(&self, status: i32) -> !;
}
