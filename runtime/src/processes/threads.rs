//! Processes that are threads of one, for tests: messages go through queues.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::transport::{ProcessPlace, Request, Transport};
use crate::trap::RunError;

/// Messages that have been sent and not received yet, by sender, receiver and tag.
type Queues = BTreeMap<(usize, usize, u32), VecDeque<Vec<u8>>>;

/// One process of a job whose processes are threads.
pub(crate) struct ThreadTransport {
    place: ProcessPlace,
    queues: Arc<Mutex<Queues>>,
    /// By token: what is to be received. A token is used once.
    receives: Mutex<Vec<Option<QueuedReceive>>>,
}

/// A receive that has begun.
struct QueuedReceive {
    queue: (usize, usize, u32),
    bytes: *mut u8,
    len: usize,
    /// Asked for so often before the message is there: late messages are the usual case between hosts.
    delay: u32,
}

// SAFETY: the pointer is used by the thread that asks whether the receive is complete, under the lock; the caller of `receive` has
// promised that the bytes are valid until then.
unsafe impl Send for QueuedReceive {}

/// The token of a send, which is complete at once.
const SENT: usize = usize::MAX;

impl ThreadTransport {
    /// The processes of a job.
    pub fn job(count: usize) -> Vec<ThreadTransport> {
        let queues = Arc::new(Mutex::new(Queues::new()));
        let process = |rank| ThreadTransport {
            place: ProcessPlace { rank, count },
            queues: Arc::clone(&queues),
            receives: Mutex::new(Vec::new()),
        };
        (0..count).map(process).collect()
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Transport for ThreadTransport {
    fn place(&self) -> ProcessPlace {
        self.place
    }

    unsafe fn send(&self, to: usize, tag: u32, bytes: *const u8, len: usize) -> Result<Request, RunError> {
        assert!(to < self.place.count && to != self.place.rank, "a message to process {to}");
        // SAFETY: as promised by the caller.
        let message = if len == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(bytes, len) }.to_vec() };
        self.queues().entry((self.place.rank, to, tag)).or_default().push_back(message);
        Ok(Request { token: SENT })
    }

    unsafe fn receive(&self, from: usize, tag: u32, bytes: *mut u8, len: usize) -> Result<Request, RunError> {
        assert!(from < self.place.count && from != self.place.rank, "a message from process {from}");
        let mut receives = self.receives.lock().unwrap_or_else(PoisonError::into_inner);
        let delay = receives.len() as u32 % 5;
        receives.push(Some(QueuedReceive { queue: (from, self.place.rank, tag), bytes, len, delay }));
        Ok(Request { token: receives.len() - 1 })
    }

    fn is_complete(&self, request: &mut Request) -> Result<bool, RunError> {
        if request.token == SENT {
            return Ok(true);
        }
        let mut receives = self.receives.lock().unwrap_or_else(PoisonError::into_inner);
        let receive = receives[request.token].as_mut().expect("a complete request is not asked for again");
        if receive.delay > 0 {
            receive.delay -= 1;
            return Ok(false);
        }
        let Some(message) = self.queues().get_mut(&receive.queue).and_then(VecDeque::pop_front) else {
            return Ok(false);
        };
        if message.len() != receive.len {
            let QueuedReceive { queue, len, .. } = receive;
            let text = format!("a message of {} bytes instead of {len} in {queue:?}", message.len());
            return Err(RunError::internal(text));
        }
        // SAFETY: the caller of `receive` has promised that the bytes are valid and used by no one else.
        unsafe { receive.bytes.copy_from_nonoverlapping(message.as_ptr(), message.len()) };
        receives[request.token] = None;
        Ok(true)
    }

    fn abort(&self, status: i32) -> ! {
        panic!("process {} ends all others with status {status}", self.place.rank)
    }
}
