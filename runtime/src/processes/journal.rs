//! The messages of a process: the incomplete ones, and the most recently completed ones. The journals of two processes show which of them
//! is late.

use std::collections::VecDeque;
use std::fmt;
use std::time::Instant;

use spmdc_abi::sorted::{distinct, order};

/// The number of complete messages that are kept.
const KEPT: usize = 256;
/// The numbers of incomplete and complete messages that are shown.
const SHOWN_INCOMPLETE: usize = 32;
const SHOWN_COMPLETE: usize = 8;

/// A message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalEntry {
    is_received: bool,
    other: usize,
    tag: u32,
    bytes: usize,
    begun: Instant,
}

impl JournalEntry {
    pub fn sent(to: usize, tag: u32, bytes: usize) -> JournalEntry {
        JournalEntry { is_received: false, other: to, tag, bytes, begun: Instant::now() }
    }

    pub fn received(from: usize, tag: u32, bytes: usize) -> JournalEntry {
        JournalEntry { is_received: true, other: from, tag, bytes, begun: Instant::now() }
    }
}

impl fmt::Display for JournalEntry {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let direction = if self.is_received { "from" } else { "to" };
        write!(f, "{} bytes {direction} process {}, tag {}", self.bytes, self.other, self.tag)
    }
}

/// The messages of a process. Incomplete ones are known by token.
#[derive(Default)]
pub(crate) struct Journal {
    incomplete: Vec<Option<JournalEntry>>,
    complete: VecDeque<JournalEntry>,
    /// The number of messages so far.
    begun: u64,
}

impl Journal {
    pub fn begin(&mut self, token: usize, entry: JournalEntry) {
        if token >= self.incomplete.len() {
            self.incomplete.resize(token + 1, None);
        }
        debug_assert!(self.incomplete[token].is_none(), "the message of token {token} is not complete");
        self.incomplete[token] = Some(entry);
        self.begun += 1;
    }

    pub fn complete(&mut self, token: usize) {
        let entry = self.incomplete[token].take().expect("a message is complete once");
        if self.complete.len() == KEPT {
            self.complete.pop_front();
        }
        self.complete.push_back(entry);
    }

    /// The processes whose messages have not arrived, in their order.
    pub fn awaited(&self) -> Vec<usize> {
        let received = self.incomplete.iter().flatten().filter(|entry| entry.is_received);
        distinct(received.map(|entry| entry.other))
    }
}

impl fmt::Display for Journal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let mut waiting: Vec<&JournalEntry> = self.incomplete.iter().flatten().collect();
        let first = waiting.iter().map(|entry| entry.begun).min();
        let waited = |entry: &&JournalEntry| first.map_or(0, |first| (entry.begun - first).as_nanos() as u64);
        let times: Vec<u64> = waiting.iter().map(waited).collect();
        waiting = order(&times).into_iter().map(|at| waiting[at]).collect();
        writeln!(f, "{} messages started, {} incomplete:", self.begun, waiting.len())?;
        for entry in waiting.iter().take(SHOWN_INCOMPLETE) {
            writeln!(f, "  {entry}, for {:.1} s", entry.begun.elapsed().as_secs_f64())?;
        }
        if !self.complete.is_empty() {
            writeln!(f, "most recently completed:")?;
        }
        for entry in self.complete.iter().rev().take(SHOWN_COMPLETE) {
            writeln!(f, "  {entry}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_shows_what_is_awaited() {
        let mut journal = Journal::default();
        for message in 0..300 {
            journal.begin(1, JournalEntry::sent(2, 5, message));
            journal.complete(1);
        }
        journal.begin(0, JournalEntry::received(3, 17, 4096));
        journal.begin(2, JournalEntry::sent(1, 17, 4096));
        assert_eq!(journal.complete.len(), KEPT);
        assert_eq!(journal.awaited(), [3]);
        let text = journal.to_string();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("302 messages started, 2 incomplete:"));
        assert!(
            lines.next().is_some_and(|line| line.starts_with("  4096 bytes from process 3, tag 17, for ")),
            "{text}"
        );
        assert!(lines.next().is_some_and(|line| line.starts_with("  4096 bytes to process 1, tag 17, for ")), "{text}");
        assert_eq!(lines.next(), Some("most recently completed:"));
        assert_eq!(lines.next(), Some("  299 bytes to process 2, tag 5"));
    }
}
