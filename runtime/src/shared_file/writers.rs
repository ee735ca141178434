//! The processes that write a file together, and their messages to each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, Thread};
use std::time::{Duration, Instant};

use crate::errors::trap::{DeviceStop, RunCode, RunError};
use crate::processes::exchange::Mail;
use crate::processes::records::{FailureRecord, decode, encode};
use crate::processes::{Process, silent};

/// How often a wait looks whether it is still worth waiting.
const LOOK: Duration = Duration::from_millis(20);
/// How long a process is silent at most while it is at work; less if waits have a short limit.
const SILENCE: Duration = Duration::from_secs(1);
/// Bytes of the record of an error.
const ERROR: usize = 2560;

/// The processes that write a file together. Of every wait for another one the limit is a part of the work of bounded size.
pub(crate) struct Writers<'a> {
    /// None if the program runs in one process.
    pub process: Option<&'a Process>,
    /// In ascending order; the first one makes the file.
    pub ranks: &'a [usize],
    pub tag: u32,
    pub limit: Duration,
    /// Whether the others can be expected to come: a run that has failed may not have begun a file everywhere.
    pub expects: &'a (dyn Fn() -> bool + Sync),
}

impl Writers<'_> {
    /// The number of this process.
    pub fn rank(&self) -> usize {
        self.process.map_or(0, Process::rank)
    }

    /// Whether this process makes the file, gives it its name, and removes it after a failure.
    pub fn is_first(&self) -> bool {
        self.ranks.first().is_none_or(|&first| first == self.rank())
    }

    /// Sends messages and receives others, of these lengths; each with the number of the other process.
    pub fn swap(&self, mut sent: Mail, received: Vec<(usize, usize)>) -> Result<Mail, RunError> {
        let mut messages: Mail = received.into_iter().map(|(other, len)| (other, vec![0; len])).collect();
        let Some(process) = self.process else {
            debug_assert!(sent.is_empty() && messages.is_empty(), "one process has no messages");
            return Ok(messages);
        };
        let missing = process.swap(self.tag, (&mut sent, &mut messages), |pending| {
            let begin = Instant::now();
            while !pending.is_empty() && begin.elapsed() <= self.limit && (self.expects)() {
                process.wait(pending, LOOK.min(self.limit))?;
            }
            Ok(())
        })?;
        if missing.is_empty() { Ok(messages) } else { Err(silent("a file", self.limit, &missing)) }
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<'_> {
        self.ranks.iter().copied().filter(|&other| other != self.rank())
    }

    /// The first process's message to all.
    pub fn announce(&self, said: Option<Vec<u8>>, len: usize) -> Result<Vec<u8>, RunError> {
        match (said, self.ranks.first()) {
            (Some(said), _) => {
                debug_assert!(self.is_first() && said.len() == len, "the first process announces");
                self.swap(self.others().map(|other| (other, said.clone())).collect(), Vec::new())?;
                Ok(said)
            }
            (None, Some(&first)) => {
                let heard = self.swap(Vec::new(), vec![(first, len)])?.pop();
                heard.map(|(_, heard)| heard).ok_or_else(|| RunError::internal("nothing was announced"))
            }
            (None, None) => Err(RunError::internal("no process announces")),
        }
    }

    /// A yes or no of each process, to all: the processes that say yes.
    pub fn ask(&self, own: bool) -> Result<Vec<usize>, RunError> {
        debug_assert!(
            self.ranks.is_sorted() && self.ranks.contains(&self.rank()),
            "this process is one of the writers"
        );
        let sent = self.others().map(|other| (other, vec![u8::from(own)])).collect();
        let heard = self.swap(sent, self.others().map(|other| (other, 1)).collect())?;
        let mut yes: Vec<usize> = heard.into_iter().filter(|(_, said)| said == &[1]).map(|(other, _)| other).collect();
        yes.extend(own.then_some(self.rank()));
        yes.sort_unstable();
        Ok(yes)
    }

    /// Does work that is limited by a disk. Meanwhile the processes send each other signs of life, until all have finished: the limit of a
    /// wait applies to a sign of life.
    pub fn at_work<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, RunError> {
        if self.ranks.len() < 2 {
            return Ok(work());
        }
        let panicked = || RunError::internal("the thread that writes a file ended in a panic");
        let (is_over, waiting) = (&AtomicBool::new(false), thread::current());
        thread::scope(|scope| {
            let worker = Builder::new().name("write".to_string()).spawn_scoped(scope, move || {
                let _over = EndOfWrite { is_over, waiting };
                work()
            });
            let worker =
                worker.map_err(|error| RunError::new(RunCode::E0803, format!("cannot start a thread: {error}")))?;
            let ended = loop {
                let silence = SILENCE.min(self.limit / 4);
                let begin = Instant::now();
                while !is_over.load(Ordering::Acquire) && begin.elapsed() < silence {
                    thread::park_timeout(silence.saturating_sub(begin.elapsed()));
                }
                match self.ask(!is_over.load(Ordering::Acquire)) {
                    Ok(busy) if busy.is_empty() => break Ok(()),
                    Ok(_) => {}
                    Err(error) => break Err(error),
                }
            };
            let done = worker.join().map_err(|_| panicked());
            // An error of the others comes first.
            ended.and(done)
        })
    }

    /// Ends a part of the work: the error of the first process that has one becomes the error of all.
    pub fn agree<T>(&self, outcome: Result<T, RunError>) -> Result<T, RunError> {
        if self.ranks.len() < 2 {
            return outcome;
        }
        let failed = self.ask(outcome.is_err())?;
        let Some(&reporter) = failed.first() else { return outcome };
        if reporter != self.rank() {
            let heard = self.swap(Vec::new(), vec![(reporter, ERROR)])?;
            let Some((_, heard)) = heard.first() else { return Err(RunError::internal("no error was reported")) };
            return Err(decode::<FailureRecord>(heard)?.stop().error);
        }
        let error = match outcome {
            Ok(_) => return Err(RunError::internal("a success was reported as an error")),
            Err(error) => error,
        };
        let record = encode(&FailureRecord::new(&DeviceStop { clock: 0, device: 0, error: error.clone() }), ERROR)?;
        self.swap(self.others().map(|other| (other, record.clone())).collect(), Vec::new())?;
        Err(error)
    }
}

/// Says at the end of work, also at that by a panic, that it is over.
struct EndOfWrite<'a> {
    is_over: &'a AtomicBool,
    waiting: Thread,
}

impl Drop for EndOfWrite<'_> {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.waiting.unpark();
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::processes::tags;

    /// The results of two processes; the second one works for this time.
    fn worked(ranks: &[usize], slow: Duration) -> Vec<Result<usize, RunError>> {
        let limit = Duration::from_millis(200);
        thread::scope(|scope| {
            let of_process = |process: Process| {
                let rank = process.rank();
                let writers =
                    Writers { process: Some(&process), ranks: &[0, 1], tag: tags::SAVED, limit, expects: &|| true };
                writers.at_work(|| {
                    thread::sleep(if rank == 1 { slow } else { Duration::ZERO });
                    rank
                })
            };
            let processes = Process::threads(2).into_iter().filter(|process| ranks.contains(&process.rank()));
            let threads: Vec<_> = processes.map(|process| scope.spawn(move || of_process(process))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    #[test]
    fn a_slow_disk_is_waited_for_and_a_lost_process_is_not() {
        assert_eq!(worked(&[0, 1], Duration::from_millis(700)), [Ok(0), Ok(1)]);
        let alone = worked(&[0], Duration::ZERO);
        let error = alone[0].as_ref().unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (RunCode::E0809, "a file waited 200ms for process 1"));
    }
}
