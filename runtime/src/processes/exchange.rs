//! Messages between processes outside of the steps of a program.

use std::mem::{forget, take};
use std::time::Duration;

use super::Process;
use super::transport::Request;
use crate::errors::trap::RunError;

/// The bytes of messages, each with the other process.
pub(crate) type Mail = Vec<(usize, Vec<u8>)>;

impl Process {
    /// Sends messages, receives others over the bytes that are there, and waits by `wait`, which returns when no request is left or when it
    /// gives up. Returns the processes whose messages are not complete, in ascending order: the transport may still use their memory, so
    /// it stays allocated, and they are left without bytes here.
    pub(crate) fn swap(
        &self,
        tag: u32,
        (sent, received): (&mut Mail, &mut Mail),
        wait: impl FnOnce(&mut Vec<(usize, Request)>) -> Result<(), RunError>,
    ) -> Result<Vec<usize>, RunError> {
        let mut pending = Vec::with_capacity(sent.len() + received.len());
        let begin_and_wait = || {
            for (other, bytes) in received.iter_mut() {
                // SAFETY: the bytes live until the request is complete, or as long as the process: see below.
                pending.push((*other, unsafe { self.receive(*other, tag, bytes)? }));
            }
            for (other, bytes) in sent.iter() {
                // SAFETY: as above.
                pending.push((*other, unsafe { self.send(*other, tag, bytes)? }));
            }
            wait(&mut pending)
        };
        let done = begin_and_wait();
        let mut missing: Vec<usize> = pending.into_iter().map(|(other, _)| other).collect();
        missing.sort_unstable();
        missing.dedup();
        for (other, bytes) in sent.iter_mut().chain(received) {
            if missing.binary_search(other).is_ok() {
                forget(take(bytes));
            }
        }
        done.map(|()| missing)
    }

    /// Sends the same bytes to all other processes and receives the same number from each, or times out: then None marks the processes
    /// whose bytes did not arrive.
    pub(crate) fn exchange(&self, tag: u32, bytes: &[u8], limit: Duration) -> Result<Vec<Option<Vec<u8>>>, RunError> {
        let others = || (0..self.count()).filter(|&other| other != self.rank());
        let mut sent: Mail = others().map(|other| (other, bytes.to_vec())).collect();
        let mut received: Mail = others().map(|other| (other, vec![0; bytes.len()])).collect();
        let missing = self.swap(tag, (&mut sent, &mut received), |pending| self.wait(pending, limit))?;
        let found = |(other, bytes)| missing.binary_search(&other).is_err().then_some(bytes);
        let mut all: Vec<Option<Vec<u8>>> = received.into_iter().map(found).collect();
        all.insert(self.rank(), Some(bytes.to_vec()));
        Ok(all)
    }
}
