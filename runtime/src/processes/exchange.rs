//! Records that every process sends to every other one, outside of the steps of a program.

use std::time::Duration;

use super::Process;
use super::transport::ProcessPlace;
use crate::trap::RunError;

impl Process {
    /// Sends the same bytes to all other processes and receives as many from each, or waits in vain for longer than the limit: then
    /// None stands for the processes whose bytes did not arrive.
    pub(crate) fn exchange(&self, tag: u32, bytes: &[u8], limit: Duration) -> Result<Vec<Option<Vec<u8>>>, RunError> {
        let ProcessPlace { rank, count } = self.transport.place();
        let sent = bytes.to_vec();
        let mut received: Vec<Option<Vec<u8>>> = (0..count).map(|_| Some(vec![0; bytes.len()])).collect();
        let mut pending = Vec::new();
        let mut begin_and_wait = || {
            for (other, message) in received.iter_mut().enumerate().filter(|(other, _)| *other != rank) {
                let Some(message) = message else { continue };
                // SAFETY: the bytes live until the request is complete, or as long as the process: see below.
                unsafe {
                    pending.push((other, self.transport.receive(other, tag, message.as_mut_ptr(), message.len())?));
                    pending.push((other, self.transport.send(other, tag, sent.as_ptr(), sent.len())?));
                }
            }
            self.wait(&mut pending, limit)
        };
        let done = begin_and_wait();
        // What is not complete may still be read and written by the transport.
        if !pending.is_empty() {
            std::mem::forget(sent);
        }
        for (other, _) in pending {
            std::mem::forget(received[other].take());
        }
        done?;
        received[rank] = Some(bytes.to_vec());
        Ok(received)
    }
}
