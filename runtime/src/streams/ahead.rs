//! Reads the rows of the next step while the current one computes.
//!
//! A device that reads rows in a loop mostly reads the rows directly after the last ones, or at the same distance as between the previous
//! reads. So after each read it asks a reader thread for the rows that it expects to need next, and takes them if the guess was right. A
//! wrong guess costs an unused read. After two of them in a row no guess is made until steps agree again. A device only waits for rows that
//! the reader is reading; otherwise it reads them itself.
//!
//! Rows read ahead are in separate memory, one block for each device and statement, from which they are copied. The memory of the rows in
//! the program may hold other values until then.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

use super::StreamSources;
use super::rows::{RowScratch, RowShape, RowTarget};
use crate::errors::trap::RunError;

/// Maximum number of reader threads.
const MAX_READERS: usize = 4;

/// Reads of one statement on one device.
#[derive(Debug)]
pub(crate) struct AheadSlot {
    /// The parameter.
    pub stream: usize,
    pub shape: RowShape,
    /// The number of rows of a read.
    pub count: usize,
    /// The number of rows in the file.
    pub rows: u64,
    state: Mutex<AheadState>,
}

#[derive(Debug)]
pub(crate) struct AheadState {
    /// The first of the rows that the reader is to read.
    asked: Option<u64>,
    /// Whether the slot is in the reader's list.
    is_listed: bool,
    /// The first of the rows that have been read ahead, and the result of the read.
    held: Option<(u64, Result<(), RunError>)>,
    bytes: Vec<u8>,
    pub scratch: RowScratch,
    guess: Guess,
}

/// The expected distance between reads.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Guess {
    /// The first row of the first read of the run, and of the last one.
    reads: Option<(u64, u64)>,
    step: i64,
    /// Increases with right guesses, up to 3; at 0 no guesses are made.
    trust: u8,
}

impl Guess {
    fn new(count: usize) -> Guess {
        Guess { reads: None, step: count as i64, trust: 1 }
    }

    /// Notes a read. Returns the first row of the next one, if it is known.
    fn next(&mut self, row: u64, (count, rows): (usize, u64)) -> Option<u64> {
        let (first, last) = self.reads.unwrap_or((row, row));
        if self.reads.is_some() {
            let expected = inside(last, self.step, (count, rows)).unwrap_or(first);
            if expected == row {
                self.trust = (self.trust + 1).min(3);
            } else if self.trust > 0 {
                self.trust -= 1;
            } else {
                self.step = row as i64 - last as i64;
            }
        }
        self.reads = Some((first, row));
        // Behind the last rows of the file a program begins again with the first ones that it read.
        (self.trust > 0).then(|| inside(row, self.step, (count, rows)).unwrap_or(first))
    }
}

/// The row at a distance, if the file has as many rows from there on.
fn inside(row: u64, step: i64, (count, rows): (usize, u64)) -> Option<u64> {
    row.checked_add_signed(step).filter(|next| next.checked_add(count as u64).is_some_and(|end| end <= rows))
}

impl AheadSlot {
    pub fn new(stream: usize, shape: RowShape, count: usize, rows: u64) -> AheadSlot {
        let state = AheadState {
            asked: None,
            is_listed: false,
            held: None,
            bytes: vec![0; count * shape.packed],
            scratch: RowScratch::for_rows(&shape),
            guess: Guess::new(count),
        };
        AheadSlot { stream, shape, count, rows, state: Mutex::new(state) }
    }

    /// The state; waits while the reader reads the rows.
    pub fn lock(&self) -> MutexGuard<'_, AheadState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the reads of the last run.
    pub fn reset(&self) {
        let mut state = self.lock();
        (state.asked, state.held, state.guess) = (None, None, Guess::new(self.count));
    }

    /// Reads the rows that are asked for.
    fn fill(&self, sources: &StreamSources) {
        let mut state = self.lock();
        state.is_listed = false;
        let AheadState { asked, held, bytes, scratch, .. } = &mut *state;
        let (Some(row), Some(source)) = (asked.take(), sources.get(self.stream)) else { return };
        *held = None;
        debug_assert_eq!(bytes.len(), self.count * self.shape.packed, "there is room for the rows of one read");
        let target = RowTarget { base: bytes.as_mut_ptr(), stride: self.shape.packed, packed: true };
        // SAFETY: the bytes have room for the rows, and this thread holds the lock.
        let read = unsafe { self.shape.read(&source, (row, self.count), target, scratch) };
        *held = Some((row, read));
    }
}

impl AheadState {
    /// The bytes of these rows if they have been read ahead.
    pub fn take(&mut self, row: u64) -> Option<Result<&[u8], RunError>> {
        self.asked = None;
        let (_, read) = self.held.take().filter(|(held, _)| *held == row)?;
        Some(read.map(|()| &*self.bytes))
    }

    /// Notes a read of the rows of a slot. True if the slot is to be listed, because it expects another one.
    pub fn expect(&mut self, row: u64, slot: (usize, u64)) -> bool {
        self.asked = self.guess.next(row, slot);
        let is_new = self.asked.is_some() && !self.is_listed;
        self.is_listed |= is_new;
        is_new
    }
}

/// The threads that read ahead; they start with the first rows.
pub(crate) struct AheadReaders {
    work: Arc<ReaderWork>,
    threads: Mutex<Option<Vec<JoinHandle<()>>>>,
}

/// The state of all readers.
struct ReaderWork {
    slots: Box<[AheadSlot]>,
    sources: Arc<StreamSources>,
    list: Mutex<ReaderList>,
    changed: Condvar,
}

#[derive(Default)]
struct ReaderList {
    /// Slots that wait for a reader, each at most once.
    slots: VecDeque<usize>,
    is_over: bool,
}

impl AheadReaders {
    pub fn new(slots: Vec<AheadSlot>, sources: Arc<StreamSources>) -> AheadReaders {
        let list = ReaderList { slots: VecDeque::with_capacity(slots.len()), is_over: false };
        let work = ReaderWork { slots: slots.into(), sources, list: Mutex::new(list), changed: Condvar::new() };
        AheadReaders { work: Arc::new(work), threads: Mutex::new(None) }
    }

    pub fn slot(&self, slot: usize) -> &AheadSlot {
        &self.work.slots[slot]
    }

    /// Discards the rows read in the last run.
    pub fn reset(&self) {
        self.work.slots.iter().for_each(AheadSlot::reset);
    }

    /// Lets a reader read the rows that a slot asks for. Without a thread nothing is read ahead.
    pub fn list(&self, slot: usize) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        if threads.is_none() {
            *threads = Some(self.start());
        }
        drop(threads);
        let mut list = self.work.lock();
        debug_assert!(!list.slots.contains(&slot), "a slot is listed twice");
        list.slots.push_back(slot);
        drop(list);
        self.work.changed.notify_one();
    }

    fn start(&self) -> Vec<JoinHandle<()>> {
        let readers = 0..self.work.slots.len().min(MAX_READERS);
        let started = readers.map_while(|_| {
            let work = Arc::clone(&self.work);
            Builder::new().name("read-ahead".to_string()).spawn(move || work.read_all()).ok()
        });
        started.collect()
    }
}

impl ReaderWork {
    fn lock(&self) -> MutexGuard<'_, ReaderList> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_all(&self) {
        loop {
            let mut list = self.lock();
            let slot = loop {
                if list.is_over {
                    return;
                }
                match list.slots.pop_front() {
                    Some(slot) => break slot,
                    None => list = self.changed.wait(list).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(list);
            self.slots[slot].fill(&self.sources);
        }
    }
}

impl Drop for AheadReaders {
    fn drop(&mut self) {
        self.work.lock().is_over = true;
        self.work.changed.notify_all();
        let threads = self.threads.get_mut().unwrap_or_else(PoisonError::into_inner);
        for thread in threads.take().into_iter().flatten() {
            // A reader that panicked has read nothing that anybody uses.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The guesses after reads of `count` of `rows` rows.
    fn guesses(reads: &[u64], count: usize, rows: u64) -> Vec<Option<u64>> {
        let mut guess = Guess::new(count);
        reads.iter().map(|&row| guess.next(row, (count, rows))).collect()
    }

    #[test]
    fn rows_behind_the_last_ones_are_expected() {
        assert_eq!(guesses(&[0, 4, 8], 4, 14), [Some(4), Some(8), Some(0)]);
        // The next epoch begins where the first one did.
        assert_eq!(guesses(&[1, 5, 1, 5], 4, 10), [Some(5), Some(1), Some(5), Some(1)]);
    }

    #[test]
    fn another_distance_is_found() {
        assert_eq!(guesses(&[0, 10, 20, 30], 4, 100), [Some(4), None, None, Some(40)]);
        assert_eq!(guesses(&[20, 16, 12, 8, 4], 4, 100)[3..], [Some(4), Some(0)]);
    }

    #[test]
    fn rows_in_no_order_are_not_read_ahead() {
        let found = guesses(&[50, 3, 77, 20, 61, 9, 33], 4, 100);
        assert_eq!(found[1..], [None; 6]);
    }

    #[test]
    fn one_other_read_does_not_change_what_is_expected() {
        assert_eq!(guesses(&[0, 4, 8, 60, 64], 4, 100)[2..], [Some(12), Some(64), Some(68)]);
    }
}
