//! Measures the cost of communication inside a process and between processes, for the choices of the compiler (`spmdc tune`).

use std::hint::black_box;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::exchange::Mail;
use super::handshake::{Introduction, introduce};
use super::transport::ProcessPlace;
use super::{Process, devices, job, tags};
use crate::errors::failure::Failure;
use crate::errors::trap::{RunCode, RunError};
use crate::run::args::RunArgs;
use crate::run::barrier::{Barrier, Parker};

/// The time of each of the four measurements.
const EACH: Duration = Duration::from_millis(400);
/// Bytes that a thread copies at a time, and of a message.
const COPIED: usize = 1 << 20;
const SENT: usize = 4 << 20;
/// Maximum number of threads that copy at the same time.
const MAX_THREADS: usize = 16;
/// Maximum number of rounds of a measurement.
const MAX_ROUNDS: u64 = 20_000;

/// The speed of one level of communication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuredLevel {
    /// Bytes that a thread copies in a second while all do, or that a process receives while it sends as many.
    pub bytes_per_second: u64,
    /// Nanoseconds for which threads wait for each other, or of a message of a few bytes.
    pub latency_nanos: u64,
}

/// The speeds of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Among threads of a process.
    pub inside: MeasuredLevel,
    /// The number of threads.
    pub threads: usize,
    /// Between processes; None for a process that was started alone.
    pub between: Option<MeasuredLevel>,
    /// The number of processes.
    pub processes: usize,
    /// Whether this process reports: the first one does.
    pub reports: bool,
}

/// Measures in about two seconds. Processes that a launcher has started measure together. At the end the caller calls [`job::leave`].
pub fn measure(args: &RunArgs) -> Result<Measured, Failure> {
    let (threads, inside) = inside(EACH);
    let Some(process) = job::enter(args)? else {
        return Ok(Measured { inside, threads, between: None, processes: 1, reports: true });
    };
    let own = Introduction { program: 0, options: 0, mesh: "tune".into(), devices: 0, host: devices::host_name() };
    let limit = args.options.timeout;
    introduce(&process, &own, limit).map_err(Failure::new)?;
    let between = between(&process, EACH, limit).map_err(Failure::new)?;
    Ok(Measured { inside, threads, between, processes: process.count(), reports: process.rank() == 0 })
}

/// The speed of copies between threads, and their number.
fn inside(each: Duration) -> (usize, MeasuredLevel) {
    let threads = thread::available_parallelism().map_or(2, usize::from).clamp(2, MAX_THREADS);
    let buffers: Vec<Vec<u8>> = (0..threads).map(|own| vec![own as u8; COPIED]).collect();
    let copied = |own: usize| {
        let from = &buffers[(own + 1) % threads];
        let mut to = vec![0u8; COPIED];
        // The system provides the pages in the first round.
        to.copy_from_slice(from);
        let (begin, mut rounds) = (Instant::now(), 0u64);
        while rounds == 0 || begin.elapsed() < each {
            to.copy_from_slice(black_box(from));
            black_box(&mut to);
            rounds += 1;
        }
        (rounds * COPIED as u64) as f64 / begin.elapsed().as_secs_f64()
    };
    let rates: Vec<f64> = thread::scope(|scope| {
        let copied = &copied;
        let started: Vec<_> = (0..threads).map(|own| scope.spawn(move || copied(own))).collect();
        started.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    debug_assert_eq!(rates.len(), threads, "no thread panics");
    let bytes_per_second = (rates.iter().sum::<f64>() / rates.len().max(1) as f64) as u64;
    (threads, MeasuredLevel { bytes_per_second: bytes_per_second.max(1), latency_nanos: waited(threads, each) })
}

/// The median of the nanoseconds for which threads wait for each other at a barrier of the kind that devices wait at.
fn waited(threads: usize, each: Duration) -> u64 {
    let barrier = Barrier::new((0..threads).collect(), (0..threads).collect());
    let parkers: Vec<Parker> = (0..threads).map(|_| Parker::default()).collect();
    // The generation after which no thread arrives again: no thread may end before the others, which would wait for it.
    let last = AtomicU32::new(u32::MAX);
    let meet = |own: usize| {
        let awaited = barrier.current();
        if barrier.arrive() {
            parkers.iter().for_each(Parker::wake);
        } else {
            parkers[own].wait(true, None, |_| barrier.is_complete(awaited));
        }
        awaited
    };
    let follow = |own: usize| {
        parkers[own].register();
        while meet(own) != last.load(Ordering::Acquire) {}
    };
    thread::scope(|scope| {
        let follow = &follow;
        for own in 1..threads {
            scope.spawn(move || follow(own));
        }
        parkers[0].register();
        let begin = Instant::now();
        let mut times = Vec::new();
        loop {
            let start = Instant::now();
            let ends = begin.elapsed() > each || times.len() as u64 == MAX_ROUNDS;
            if ends {
                last.store(barrier.current(), Ordering::Release);
            }
            meet(0);
            if ends {
                return median(times);
            }
            times.push(start.elapsed().as_nanos() as u64);
        }
    })
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// The speed of messages between processes, each of which sends to the next one and receives from the previous one; None for a single one.
/// All processes get the same figures: the slowest process's.
fn between(process: &Process, each: Duration, limit: Duration) -> Result<Option<MeasuredLevel>, RunError> {
    if process.count() == 1 {
        return Ok(None);
    }
    let speed = |len: usize| -> Result<u64, RunError> {
        let mut ring = Ring::new(process, len, limit);
        // The first messages find their way.
        let first: Vec<u64> = (0..3).map(|_| ring.round()).collect::<Result<_, _>>()?;
        let slowest = ring.most(median(first))?.max(1);
        let rounds = (each.as_nanos() as u64 / slowest).clamp(3, MAX_ROUNDS);
        let times = (0..rounds).map(|_| ring.round()).collect::<Result<Vec<u64>, _>>()?;
        ring.most(median(times))
    };
    let (latency_nanos, nanos) = (speed(8)?, speed(SENT)?.max(1));
    let bytes_per_second = (SENT as f64 / (nanos as f64 * 1e-9)) as u64;
    Ok(Some(MeasuredLevel { bytes_per_second: bytes_per_second.max(1), latency_nanos }))
}

/// Messages from each process to the next one.
struct Ring<'a> {
    process: &'a Process,
    sent: Mail,
    received: Mail,
    limit: Duration,
}

impl Ring<'_> {
    /// For messages with this number of bytes.
    fn new(process: &Process, len: usize, limit: Duration) -> Ring<'_> {
        let ProcessPlace { rank, count } = process.transport.place();
        let (next, before) = ((rank + 1) % count, (rank + count - 1) % count);
        Ring { process, sent: vec![(next, vec![1; len])], received: vec![(before, vec![0; len])], limit }
    }

    /// The nanoseconds until this process has sent a message and received one.
    fn round(&mut self) -> Result<u64, RunError> {
        let (process, limit) = (self.process, self.limit);
        let begin = Instant::now();
        let messages = (&mut self.sent, &mut self.received);
        let missing = process.swap(tags::MEASURED, messages, |pending| process.wait(pending, limit))?;
        match missing.first() {
            None => Ok(begin.elapsed().as_nanos() as u64),
            Some(&other) => Err(self.silent(other)),
        }
    }

    /// The largest of the values of all processes.
    fn most(&self, own: u64) -> Result<u64, RunError> {
        let all = self.process.exchange(tags::AGREEMENT, &own.to_le_bytes(), self.limit)?;
        let mut most = own;
        for (other, bytes) in all.into_iter().enumerate() {
            let bytes = bytes.and_then(|bytes| <[u8; 8]>::try_from(bytes).ok()).ok_or_else(|| self.silent(other))?;
            most = most.max(u64::from_le_bytes(bytes));
        }
        Ok(most)
    }

    fn silent(&self, other: usize) -> RunError {
        RunError::new(RunCode::E0809, format!("process {other} did not answer within {:?}", self.limit))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn threads_that_wait_for_each_other_end_together() {
        for _ in 0..500 {
            // The first round is the last one.
            waited(2, Duration::ZERO);
            waited(3, Duration::ZERO);
        }
    }

    #[test]
    fn all_processes_find_the_same_speeds() {
        let each = Duration::from_millis(5);
        let found: Vec<MeasuredLevel> = thread::scope(|scope| {
            let measure = |process: Process| between(&process, each, Duration::from_secs(20)).unwrap().unwrap();
            let started: Vec<_> =
                Process::threads(3).into_iter().map(|process| scope.spawn(move || measure(process))).collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|one| one == &found[0] && one.latency_nanos > 0), "{found:?}");
        assert_eq!(between(&Process::threads(1)[0], each, each).unwrap(), None);
        let (threads, level) = inside(each);
        assert!(threads >= 2 && level.bytes_per_second > 1 && level.latency_nanos > 0, "{level:?}");
    }
}
