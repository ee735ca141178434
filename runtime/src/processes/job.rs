//! From a launcher's variables to connected processes, and their end.
//!
//! A process joins its job before it reads any file, and leaves it after all output has been written. MPI starts and ends once in a
//! process, so the job is a value of the process, not of a session.
//!
//! | exit status | meaning |
//! |---|---|
//! | 65 | the processes of a job have different programs, options or versions |
//! | 75 | another process does not answer |
//!
//! `spmdc launch` names a job in [`RUN_VARIABLE`]. Exit statuses of launchers are not reliable. So a completed job reports its completion
//! in a line with this name on standard error, and so does a process that has failed; the command removes these lines.

use std::env;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::handshake::{Introduction, introduce};
use super::mpi::{MpiTransport, exit_now, unconnected};
use super::transport::Transport;
use super::watchdog::{Calls, Watchdog};
use super::{Process, devices, numbered_processes, patience, tags};
use crate::errors::failure::{Failure, FailureReport};
use crate::errors::trap::{RunCode, RunError};
use crate::run::args::RunArgs;
use spmdc_abi::Program;
use spmdc_abi::words::counted;
use spmdc_mpi::{LIBRARY_VARIABLE, Launched, MpiLibrary, World};

/// The environment variable with the name of this run, which `spmdc launch` sets.
pub const RUN_VARIABLE: &str = "SPMDC_RUN";

/// Marks a line for `spmdc launch`: after this character the word `spmdc`, the name of the run, and `completed`, or
/// `failed` with the exit status of the process.
pub const RUN_MARK: char = '\u{1e}';

/// How long processes may take to find each other, whatever the limit of other waits is.
const STARTING: Duration = Duration::from_secs(60);
/// How long a call of the MPI library may take, whatever the limit of other waits is.
const LONGEST_CALL: Duration = Duration::from_secs(10);
/// How long processes may take to part after everything has been written: some MPI libraries never return.
const PARTING: Duration = Duration::from_secs(5);

/// The job of this process.
static JOB: Mutex<Option<Arc<JoinedJob>>> = Mutex::new(None);

/// Several processes that run one program.
pub(crate) struct JoinedJob {
    process: Process,
    mpi: Arc<MpiTransport>,
    /// The host of each process, once they have introduced themselves.
    hosts: OnceLock<Vec<String>>,
    /// Maximum duration of a wait for other processes.
    timeout: Duration,
    /// It ends this process where a call of MPI does not return.
    watchdog: Watchdog,
}

impl JoinedJob {
    /// Joins the job of this process; None for a program that runs in one process.
    pub fn join(program: &Program, args: &RunArgs) -> Result<Option<Arc<JoinedJob>>, Failure> {
        let Some(job) = JoinedJob::enter(args)? else { return Ok(None) };
        let own = Introduction {
            program: program.fingerprint,
            options: hash(&format!("{args:?}")),
            mesh: devices::mesh_text(program),
            devices: program.device_numbers().len(),
            host: devices::host_name(),
        };
        let known = {
            let limit = job.timeout.max(STARTING);
            let _phase = job.watchdog.watch("telling the other processes what is run", 2 * limit);
            introduce(&job.process, &own, limit)
        };
        let known =
            known.map_err(
                |error| {
                    if error.code == RunCode::E0808 { job.known_to_all(error) } else { Failure::new(error) }
                },
            )?;
        check_deal(own.devices, job.process.count()).map_err(|error| job.known_to_all(error))?;
        let is_first = job.hosts.set(known.into_iter().map(|one| one.host).collect()).is_ok();
        debug_assert!(is_first, "processes introduce themselves once");
        Ok(Some(job))
    }

    /// Connects this process with the others that a launcher has started; None if it was started alone.
    fn enter(args: &RunArgs) -> Result<Option<Arc<JoinedJob>>, Failure> {
        let launched = Launched::find(|name| env::var(name).ok()).map_err(|error| Failure::new(unconnected(error)))?;
        let Some(launched) = launched.filter(|launched| launched.size > 1) else { return Ok(None) };
        let mut current = JOB.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_some() {
            return Err(Failure::new(RunError::internal("this process has already joined its job")));
        }
        // From here on the end of this process concerns the others.
        Ok(Some(current.insert(Arc::new(JoinedJob::connect(&launched, args).map_err(Failure::new)?)).clone()))
    }

    fn connect(launched: &Launched, args: &RunArgs) -> Result<JoinedJob, RunError> {
        let timeout = args.options.timeout;
        let calls = Arc::new(Calls::new());
        let connected: Arc<OnceLock<Arc<MpiTransport>>> = Arc::default();
        let (rank, format, to_report) = (launched.rank, args.error_format, connected.clone());
        let watchdog = Watchdog::start(calls.clone(), timeout.max(LONGEST_CALL), move |what| {
            let error = RunError::new(RunCode::E0809, format!("process {rank} ends the job, as {what}"))
                .with_help("another process may have ended, or a host may be unreachable");
            let failure = Failure::new(error);
            let report = to_report.get().map(|mpi| mpi.report()).unwrap_or_default();
            let _ = io::stderr().write_all((failure.render(format) + &report).as_bytes());
            tell_launch(&failed(&failure));
            match to_report.get() {
                Some(mpi) => mpi.abort(failure.status.into()),
                None => exit_now(failure.status.into()),
            }
        })?;
        let mpi = {
            let _phase = watchdog.watch("connecting the processes of the job", timeout.max(STARTING));
            let chosen = env::var(LIBRARY_VARIABLE).ok();
            let library = MpiLibrary::load(launched.launcher, chosen.as_deref()).map_err(unconnected)?;
            let world = World::join(library, launched).map_err(unconnected)?;
            Arc::new(MpiTransport::new(world, calls))
        };
        let is_first = connected.set(mpi.clone()).is_ok();
        debug_assert!(is_first, "processes are connected once");
        let process = Process { transport: mpi.clone() };
        debug_assert_eq!((process.rank(), process.count()), (launched.rank, launched.size), "MPI agrees");
        Ok(JoinedJob { process, mpi, hosts: OnceLock::new(), timeout, watchdog })
    }

    /// This process of the job.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The host of each process.
    pub fn hosts(&self) -> &[String] {
        self.hosts.get().expect("processes introduce themselves when they join")
    }

    /// A line for each of these processes with its host, as far as the hosts are known.
    fn places(&self, processes: &[usize]) -> String {
        let hosts = self.hosts.get().map_or(&[][..], Vec::as_slice);
        let line = |&process: &usize| Some(format!("process {process} runs on `{}`\n", hosts.get(process)?));
        processes.iter().filter_map(line).collect()
    }

    /// Ends a part of the work that may have failed in some processes: an error in one is one in all, and one process reports it.
    pub fn agree<T>(&self, outcome: Result<T, Failure>) -> Result<T, Failure> {
        agree(&self.process, outcome, self.timeout)
    }

    /// A failure that all processes find by themselves; the first one reports it.
    pub fn known_to_all(&self, error: RunError) -> Failure {
        let report = if self.process.rank() == 0 { FailureReport::ByThisForAll } else { FailureReport::ByAnother };
        Failure { report, ..Failure::new(error) }
    }

    /// Parts from the other processes, or ends them.
    fn end(&self, failure: Option<&Failure>) {
        let status = i32::from(failure.map_or(0, |failure| failure.status));
        match failure.map(|failure| failure.report) {
            Some(FailureReport::ByThisAlone) => self.mpi.abort(status),
            None | Some(FailureReport::ByThisForAll | FailureReport::ByAnother) => {
                let guard = thread::Builder::new().name("spmd-parting".to_string()).spawn(move || {
                    thread::sleep(PARTING);
                    exit_now(status)
                });
                // Without a guard the launcher has to notice that this process has ended.
                if guard.is_ok() {
                    // Everything has been written; whether MPI ends well does not matter any more.
                    let _ = self.mpi.leave();
                }
            }
        }
    }
}

/// This process of a job, for a caller that loads one program after the other, the same as all other processes
/// ([`Session::load_in`](crate::run::session::Session::load_in)); None if it was started alone. At the end it calls [`leave`].
pub fn enter(args: &RunArgs) -> Result<Option<Process>, Failure> {
    Ok(JoinedJob::enter(args)?.map(|job| job.process().clone()))
}

/// The number of processes that a launcher has started, including this one. It is 1 for a process that was started alone, or by a launcher
/// whose variables contradict each other, which is an error when the process joins its job.
pub fn started_processes() -> usize {
    Launched::find(|name| env::var(name).ok()).ok().flatten().map_or(1, |launched| launched.size)
}

/// Ends the part of this process in its job, if it has one, after all output has been written and the failure has been reported. Ends the
/// job, and does not return, after a failure that other processes do not know.
pub fn leave(failure: Option<&Failure>) {
    let job = JOB.lock().unwrap_or_else(PoisonError::into_inner).take();
    let rank = job.as_ref().map_or(0, |job| job.process.rank());
    if let (Some(job), Some(Failure { error, report, .. })) = (&job, failure)
        && [RunCode::E0804, RunCode::E0809].contains(&error.code)
        && *report != FailureReport::ByAnother
    {
        let report = format!("process {rank}: {}{}", job.mpi.report(), job.places(&job.mpi.awaited()));
        let _ = io::stderr().write_all(report.as_bytes());
    }
    match failure {
        Some(failure) => tell_launch(&failed(failure)),
        None if rank == 0 => tell_launch("completed"),
        None => (),
    }
    if let Some(job) = job {
        let _ = io::stdout().flush();
        job.end(failure);
    }
}

/// How a process has failed, for `spmdc launch`.
fn failed(failure: &Failure) -> String {
    format!("failed {}", failure.status)
}

/// See [`RUN_MARK`]. One write: lines of several processes do not mix.
fn tell_launch(how: &str) {
    if let Ok(run) = env::var(RUN_VARIABLE) {
        let _ = io::stderr().write_all(format!("{RUN_MARK}spmdc {run} {how}\n").as_bytes());
    }
}

/// See [`JoinedJob::agree`].
fn agree<T>(process: &Process, outcome: Result<T, Failure>, limit: Duration) -> Result<T, Failure> {
    let limit = patience(outcome.as_ref().err().map(|failure| &failure.error), limit);
    let own = outcome.as_ref().err().map_or(0, |failure| failure.status);
    debug_assert!(outcome.is_ok() == (own == 0), "a failure has a status");
    let answers = process.exchange(tags::AGREEMENT, &[own], limit).map_err(Failure::new)?;
    let missing: Vec<usize> = (0..answers.len()).filter(|&other| answers[other].is_none()).collect();
    if !missing.is_empty() {
        // What happened here may be why the others do not answer.
        outcome?;
        let message = format!("{} did not answer within {limit:?}", numbered_processes(&missing));
        let error = RunError::new(RunCode::E0809, message).with_help("`--timeout` sets the longest wait in seconds");
        return Err(Failure::new(error));
    }
    let statuses: Vec<u8> = answers.iter().flatten().map(|answer| answer[0]).collect();
    let Some(reporter) = statuses.iter().position(|&status| status != 0) else { return outcome };
    let status = statuses[reporter];
    match outcome {
        Err(failure) if reporter == process.rank() => Err(Failure { report: FailureReport::ByThisForAll, ..failure }),
        Ok(_) | Err(_) => {
            let error = RunError::new(RunCode::E0809, format!("process {reporter} failed"));
            Err(Failure { status, report: FailureReport::ByAnother, ..Failure::new(error) })
        }
    }
}

/// E0807 unless the processes divide the devices equally.
fn check_deal(devices: usize, processes: usize) -> Result<(), RunError> {
    debug_assert!(devices > 0 && processes > 0, "a mesh has a device, and a job a process");
    if devices.is_multiple_of(processes) {
        return Ok(());
    }
    let message = format!(
        "{} of the mesh cannot be divided equally among {}",
        counted(devices, "device"),
        counted(processes, "process")
    );
    let fitting: Vec<usize> = (1..=devices).filter(|&count| devices.is_multiple_of(count)).take(8).collect();
    let (last, others) = fitting.split_last().expect("one process has all devices");
    let fitting: String = others.iter().map(|count| format!("{count}, ")).chain([counted(*last, "process")]).collect();
    Err(RunError::new(RunCode::E0807, message).with_help(format!("start {}, or change the mesh", fitting)))
}

/// A hash that is the same on all hosts: FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The result of each process of a job for these outcomes: the code of its failure, its status, and the reporting process.
    fn agreed(outcomes: &[Option<RunCode>]) -> Vec<Result<usize, (RunCode, u8, FailureReport)>> {
        let limit = Duration::from_secs(60);
        thread::scope(|scope| {
            let processes: Vec<_> = Process::threads(outcomes.len())
                .into_iter()
                .zip(outcomes)
                .map(|(process, outcome)| {
                    let rank = process.rank();
                    let failure = outcome.map(|code| Failure::new(RunError::new(code, "")));
                    scope.spawn(move || agree(&process, failure.map_or(Ok(rank), Err), limit))
                })
                .collect();
            let ended = processes.into_iter().map(|process| process.join().unwrap());
            ended
                .map(|outcome| outcome.map_err(|failure| (failure.error.code, failure.status, failure.report)))
                .collect()
        })
    }

    #[test]
    fn an_error_in_one_process_is_one_in_all() {
        assert_eq!(agreed(&[None, None, None]), [Ok(0), Ok(1), Ok(2)]);
        let silent = Err((RunCode::E0809, 2, FailureReport::ByAnother));
        assert_eq!(
            agreed(&[None, Some(RunCode::E0703), Some(RunCode::E0801)]),
            [silent, Err((RunCode::E0703, 2, FailureReport::ByThisForAll)), silent]
        );
    }

    #[test]
    fn a_process_that_does_not_come_to_agree_ends_the_job() {
        let process = Process::threads(3).remove(1);
        let failure = agree(&process, Ok(()), Duration::from_millis(1)).unwrap_err();
        assert_eq!(failure.error.message, "processes 0 and 2 did not answer within 1ms");
        assert_eq!((failure.status, failure.report), (75, FailureReport::ByThisAlone));
        let own = Failure::new(RunError::new(RunCode::E0703, "its own"));
        let failure = agree(&process, Err::<(), _>(own.clone()), Duration::from_millis(1)).unwrap_err();
        assert_eq!(failure, own);
    }

    #[test]
    fn devices_are_dealt_equally_or_not_at_all() {
        assert_eq!(check_deal(8, 2), Ok(()));
        let error = check_deal(6, 4).unwrap_err();
        assert_eq!(error.code, RunCode::E0807);
        assert_eq!(error.help.as_deref(), Some("start 1, 2, 3, 6 processes, or change the mesh"));
        assert!(check_deal(2, 4).is_err());
        let error = check_deal(1, 2).unwrap_err();
        assert_eq!(error.message, "1 device of the mesh cannot be divided equally among 2 processes");
        assert_eq!(error.help.as_deref(), Some("start 1 process, or change the mesh"));
    }
}
