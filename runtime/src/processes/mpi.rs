//! The messages of a job over MPI.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::journal::{Journal, JournalEntry};
use super::transport::{ProcessPlace, Request, Transport};
use super::watchdog::Calls;
use crate::errors::trap::{RunCode, RunError};
use spmdc_mpi::{MpiError, MpiTransfer, World};

/// Time for a launcher to pass on this process's output before it learns that the job ends: some discard output that they have not read.
const PASSING_ON: Duration = Duration::from_millis(100);
/// How long a process that ends the job waits for MPI to end it, too.
const LAST_WAIT: Duration = Duration::from_secs(1);

/// This process as a part of a job, connected by MPI.
pub(crate) struct MpiTransport {
    world: Arc<World>,
    messages: Mutex<Messages>,
    /// The calls of MPI that have not returned.
    calls: Arc<Calls>,
}

/// The messages that are under way, by token.
#[derive(Default)]
struct Messages {
    /// The number of tokens so far.
    tokens: usize,
    free: Vec<usize>,
    journal: Journal,
}

impl MpiTransport {
    pub fn new(world: World, calls: Arc<Calls>) -> MpiTransport {
        MpiTransport { world: Arc::new(world), messages: Mutex::default(), calls }
    }

    /// Leaves the job. May wait forever.
    pub fn leave(&self) -> Result<(), MpiError> {
        self.world.leave()
    }

    /// The incomplete messages, and the most recently completed ones, as lines of text.
    pub fn report(&self) -> String {
        self.messages().journal.to_string()
    }

    /// The processes whose messages have not arrived.
    pub fn awaited(&self) -> Vec<usize> {
        self.messages().journal.awaited()
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, transfer: MpiTransfer, entry: JournalEntry) -> Request {
        let mut messages = self.messages();
        let token = messages.free.pop().unwrap_or(messages.tokens);
        messages.tokens = messages.tokens.max(token + 1);
        debug_assert!(messages.free.len() < messages.tokens, "token {token} is in use");
        messages.journal.begin(token, entry);
        Request { token, transfer: Some(transfer) }
    }
}

impl Transport for MpiTransport {
    fn place(&self) -> ProcessPlace {
        ProcessPlace { rank: self.world.rank(), count: self.world.size() }
    }

    unsafe fn send(&self, to: usize, tag: u32, bytes: *const u8, len: usize) -> Result<Request, RunError> {
        let call = self.calls.enter();
        // SAFETY: as promised by the caller.
        let transfer = unsafe { self.world.send(to, tag, bytes, len) }.map_err(lost)?;
        drop(call);
        Ok(self.keep(transfer, JournalEntry::sent(to, tag, len)))
    }

    unsafe fn receive(&self, from: usize, tag: u32, bytes: *mut u8, len: usize) -> Result<Request, RunError> {
        let call = self.calls.enter();
        // SAFETY: as promised by the caller.
        let transfer = unsafe { self.world.receive(from, tag, bytes, len) }.map_err(lost)?;
        drop(call);
        Ok(self.keep(transfer, JournalEntry::received(from, tag, len)))
    }

    fn is_complete(&self, request: &mut Request) -> Result<bool, RunError> {
        let transfer = request.transfer.as_mut().expect("a request of MPI is not complete when it is asked about");
        let call = self.calls.enter();
        let is_complete = self.world.is_complete(transfer).map_err(lost)?;
        drop(call);
        if is_complete {
            request.transfer = None;
            let mut messages = self.messages();
            messages.journal.complete(request.token);
            messages.free.push(request.token);
        }
        Ok(is_complete)
    }

    fn abort(&self, status: i32) -> ! {
        thread::sleep(PASSING_ON);
        let world = self.world.clone();
        let code = u8::try_from(status).unwrap_or(u8::MAX);
        // MPI may not return where the connection to other hosts is lost.
        let aborting = thread::Builder::new().name("spmd-abort".to_string()).spawn(move || world.abort(code));
        if aborting.is_ok() {
            thread::sleep(LAST_WAIT);
        }
        exit_now(status)
    }
}

/// Ends this process without the functions that are called at its end, which could wait for other processes.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(status) }
}

/// A message cannot be sent or received any more.
fn lost(error: MpiError) -> RunError {
    let help = "another process may have ended, or a host may be unreachable; start the job again";
    RunError::new(RunCode::E0809, error.message).with_help(error.help.as_deref().unwrap_or(help))
}

/// Processes that cannot be connected.
pub(crate) fn unconnected(error: MpiError) -> RunError {
    let unhelped = RunError::new(RunCode::E0807, error.message);
    match error.help {
        Some(help) => unhelped.with_help(help),
        None => unhelped,
    }
}
