//! Processes that are threads of one, for tests: messages go through queues.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::transport::{ProcessPlace, Request, Transport};
use crate::errors::trap::RunError;

/// Sender, receiver and tag.
type QueueKey = (usize, usize, u32);

/// Messages that have been sent and not received yet.
type Queues = BTreeMap<QueueKey, VecDeque<Vec<u8>>>;

/// One process of a job whose processes are threads.
pub(crate) struct ThreadTransport {
    place: ProcessPlace,
    queues: Arc<Mutex<Queues>>,
    receives: Mutex<Receives>,
}

#[derive(Default)]
struct Receives {
    /// The pending receives, by token. A token is used once.
    all: Vec<Option<QueuedReceive>>,
    /// For each queue the receives that are not complete, in the order in which they have begun.
    waiting: BTreeMap<QueueKey, VecDeque<usize>>,
}

/// A receive that has begun.
struct QueuedReceive {
    queue: QueueKey,
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
            receives: Mutex::default(),
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
        Ok(Request { token: SENT, transfer: None })
    }

    unsafe fn receive(&self, from: usize, tag: u32, bytes: *mut u8, len: usize) -> Result<Request, RunError> {
        assert!(from < self.place.count && from != self.place.rank, "a message from process {from}");
        let mut receives = self.receives.lock().unwrap_or_else(PoisonError::into_inner);
        let (token, queue) = (receives.all.len(), (from, self.place.rank, tag));
        receives.all.push(Some(QueuedReceive { queue, bytes, len, delay: token as u32 % 5 }));
        receives.waiting.entry(queue).or_default().push_back(token);
        Ok(Request { token, transfer: None })
    }

    fn is_complete(&self, request: &mut Request) -> Result<bool, RunError> {
        if request.token == SENT {
            return Ok(true);
        }
        let mut receives = self.receives.lock().unwrap_or_else(PoisonError::into_inner);
        let Receives { all, waiting } = &mut *receives;
        let receive = all[request.token].as_mut().expect("a complete request is not asked for again");
        let waiting = waiting.get_mut(&receive.queue).expect("it waits in its queue");
        // Messages go to receives in the order in which these have begun.
        if receive.delay > 0 || waiting.front() != Some(&request.token) {
            receive.delay = receive.delay.saturating_sub(1);
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
        waiting.pop_front();
        all[request.token] = None;
        Ok(true)
    }

    fn abort(&self, status: i32) -> ! {
        panic!("process {} ends all others with status {status}", self.place.rank)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn messages_with_one_tag_go_to_receives_in_their_order() {
        let job = ThreadTransport::job(2);
        let mut received = [0u8; 9];
        // SAFETY: the bytes outlive all requests.
        let mut requests: Vec<Request> =
            received.iter_mut().map(|byte| unsafe { job[1].receive(0, 7, byte, 1).unwrap() }).collect();
        for byte in 0..9 {
            // SAFETY: as above.
            unsafe { job[0].send(1, 7, &raw const byte, 1).unwrap() };
        }
        while !requests.is_empty() {
            // The last one first.
            requests.reverse();
            requests.retain_mut(|request| !job[1].is_complete(request).unwrap());
            requests.reverse();
        }
        assert_eq!(received, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    }
}
