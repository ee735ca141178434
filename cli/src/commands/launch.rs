//! `spmdc launch`: starts a program in several processes through the launcher of an MPI library.
//!
//! The command composes the launcher's command line, runs it in its own process group, and supervises its end. A launcher's exit status is
//! not reliable: some report success although a process was lost. The job itself reports its completion on standard error, in a line with
//! the name of the run, which the command removes. The command reports success if this line has arrived.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{self, Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use spmdc_abi::words::counted;
use spmdc_driver::errors::CommandError;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::describe;
use spmdc_runtime::processes::group::{EndingSignal, is_root, note_signals, noted_signal};
use spmdc_runtime::processes::job::{RUN_MARK, RUN_VARIABLE};
use spmdc_runtime::run::start::{Failure, FailureReport};

use crate::options::{LaunchCommand, MpiFamily};

/// How often the command looks at the launcher.
const LOOK: Duration = Duration::from_millis(20);
/// How long a launcher may take to end after SIGTERM, and its output to arrive after its end.
const PATIENCE: Duration = Duration::from_secs(2);

/// Starts the processes and waits for their end.
pub fn launch(command: &LaunchCommand) -> Result<(), CommandError> {
    let (processes, hosts) = assigned(command)?;
    let (family, launcher) = launcher(command.mpi, command.dry_run)?;
    let line = LaunchLine::new(family, launcher, processes, &hosts, is_root(), &command.words);
    if command.dry_run {
        return crate::print(&(line.to_string() + "\n"));
    }
    run(&line, Duration::from_secs_f64(command.grace))
}

/// Hosts with the numbers of their processes.
type Slots<'a> = Vec<(&'a str, usize)>;

/// The number of processes, and the number of processes on each host.
fn assigned(command: &LaunchCommand) -> Result<(usize, Slots<'_>), RunError> {
    let hosts = &command.hosts;
    let is_name = |host: &String| {
        let first_fits = host.starts_with(|c: char| c.is_ascii_alphanumeric());
        first_fits && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c))
    };
    if let Some(odd) = hosts.iter().find(|host| !is_name(host)) {
        return Err(
            RunError::new(RunCode::E0702, format!("invalid host name `{odd}`")).with_help("write --hosts a,b,c")
        );
    }
    let processes = match command.processes {
        Some(0) => return Err(RunError::new(RunCode::E0702, "a job requires at least one process")),
        Some(processes) => processes,
        None if hosts.is_empty() => {
            let error = RunError::new(RunCode::E0702, "the number of processes is missing");
            return Err(error.with_help("write -n P, or --hosts a,b for one process on each host"));
        }
        None => hosts.len(),
    };
    if processes < hosts.len() {
        let verb = if processes == 1 { "is" } else { "are" };
        let message = format!("{} {verb} fewer than {}", counted(processes, "process"), counted(hosts.len(), "host"));
        return Err(
            RunError::new(RunCode::E0702, message).with_help("remove hosts, or start at least one process on each")
        );
    }
    let share = |index: usize| processes / hosts.len() + usize::from(index < processes % hosts.len());
    let slots: Slots = hosts.iter().enumerate().map(|(i, host)| (host.as_str(), share(i))).collect();
    debug_assert!(
        hosts.is_empty() || slots.iter().map(|(_, share)| share).sum::<usize>() == processes,
        "all are assigned"
    );
    Ok((processes, slots))
}

impl MpiFamily {
    /// Those that are looked for. Slurm is asked for: in its allocations the launchers of MPI libraries work, too.
    const LOOKED_FOR: [MpiFamily; 2] = [MpiFamily::Openmpi, MpiFamily::Mpich];

    /// The names under which its launcher may be installed; another family's launcher may have the last name, too.
    fn commands(self) -> &'static [&'static str] {
        match self {
            MpiFamily::Openmpi => &["mpirun.openmpi", "mpirun"],
            MpiFamily::Mpich => &["mpiexec.hydra", "mpirun.mpich", "mpiexec"],
            MpiFamily::SlurmPmix | MpiFamily::SlurmPmi2 => &["srun"],
        }
    }

    /// The beginning of its launcher's version text.
    fn says(self) -> &'static str {
        match self {
            MpiFamily::Openmpi => "Open MPI",
            MpiFamily::Mpich => "HYDRA",
            MpiFamily::SlurmPmix | MpiFamily::SlurmPmi2 => "slurm",
        }
    }

    /// The launcher's command; None if it is not installed.
    fn installed(self) -> Option<&'static str> {
        self.commands().iter().copied().find(|name| {
            let version = Command::new(name).arg("--version").stdin(Stdio::null()).output();
            version.is_ok_and(|said| String::from_utf8_lossy(&said.stdout).contains(self.says()))
        })
    }
}

/// The family and its command: Open MPI where nothing else is asked for and it is installed.
fn launcher(wanted: Option<MpiFamily>, is_dry_run: bool) -> Result<(MpiFamily, &'static str), RunError> {
    let families = wanted.map_or(MpiFamily::LOOKED_FOR.to_vec(), |family| vec![family]);
    if let Some(found) = families.iter().find_map(|family| Some((*family, family.installed()?))) {
        return Ok(found);
    }
    if let (true, Some(family)) = (is_dry_run, wanted) {
        return Ok((family, family.commands()[family.commands().len() - 1]));
    }
    let names: Vec<&str> = families.iter().flat_map(|family| family.commands()).copied().collect();
    let message = format!("no MPI launcher was found; tried {}", names.join(", "));
    Err(RunError::new(RunCode::E0807, message).with_help(match wanted {
        Some(MpiFamily::SlurmPmix | MpiFamily::SlurmPmi2) => "`srun` is part of Slurm; without Slurm, remove --mpi",
        Some(MpiFamily::Openmpi | MpiFamily::Mpich) | None => {
            "install Open MPI or MPICH (on Debian the package `openmpi-bin` or `mpich`)"
        }
    }))
}

/// The line of a launcher.
struct LaunchLine {
    variables: Vec<(&'static str, &'static str)>,
    command: &'static str,
    /// The options before the options that only this command needs.
    options: Vec<String>,
    /// The options by which the name of the run reaches other hosts.
    passing: &'static [&'static str],
    words: Vec<OsString>,
}

impl LaunchLine {
    fn new(
        family: MpiFamily,
        command: &'static str,
        processes: usize,
        hosts: &[(&str, usize)],
        is_root: bool,
        words: &[OsString],
    ) -> LaunchLine {
        let slots = hosts.iter().map(|(host, slots)| format!("{host}:{slots}")).collect::<Vec<_>>().join(",");
        let mut options = Vec::new();
        let mut option = |words: &[&str]| options.extend(words.iter().map(|word| word.to_string()));
        let mut variables = Vec::new();
        match family {
            MpiFamily::Openmpi => {
                // By itself it binds each of one or two processes to one core, with all their threads.
                option(&["--bind-to", "none"]);
                if hosts.is_empty() {
                    option(&["--oversubscribe"]);
                } else {
                    option(&["--host", &slots]);
                }
                if is_root {
                    variables = vec![("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];
                }
            }
            MpiFamily::Mpich if hosts.is_empty() => (),
            MpiFamily::Mpich => option(&["-hosts", &slots]),
            MpiFamily::SlurmPmix | MpiFamily::SlurmPmi2 => {
                let protocol = if family == MpiFamily::SlurmPmix { "--mpi=pmix" } else { "--mpi=pmi2" };
                // Without -K1 the others wait for a process that was killed; bound ones would have one core for all their threads.
                option(&[protocol, "-K1", "--cpu-bind=none"]);
                if !hosts.is_empty() {
                    // It deals processes to the hosts in order, as `assigned` does.
                    let names: Vec<&str> = hosts.iter().map(|(host, _)| *host).collect();
                    option(&["-N", &hosts.len().to_string(), "-w", &names.join(","), "--distribution=block"]);
                }
            }
        }
        option(&["-n", &processes.to_string()]);
        let passing: &[&str] = match family {
            MpiFamily::Openmpi => &["-x", RUN_VARIABLE],
            // They pass all variables.
            MpiFamily::Mpich | MpiFamily::SlurmPmix | MpiFamily::SlurmPmi2 => &[],
        };
        LaunchLine { variables, command, options, passing, words: words.to_vec() }
    }
}

/// The command line quoted for a shell, without the options that only this command needs.
impl std::fmt::Display for LaunchLine {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let mut line = String::new();
        for (name, value) in &self.variables {
            let _ = write!(line, "{name}={value} ");
        }
        line += self.command;
        let words = self.words.iter().map(|word| word.to_string_lossy());
        for word in self.options.iter().map(|word| word.as_str().into()).chain(words) {
            let _ = write!(line, " {}", quoted(&word));
        }
        f.write_str(&line)
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Runs the launcher to its end.
fn run(line: &LaunchLine, grace: Duration) -> Result<(), CommandError> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let run = format!("{:x}-{since:x}", process::id());
    let mut command = Command::new(line.command);
    command.args(&line.options).args(line.passing).args(&line.words);
    command.envs(line.variables.iter().copied()).env(RUN_VARIABLE, &run);
    // In a group of its own the launcher could not read from a terminal.
    command.stdin(if io::stdin().is_terminal() { Stdio::null() } else { Stdio::inherit() });
    command.stderr(Stdio::piped()).process_group(0);
    note_signals();
    let mut launcher = command.spawn().map_err(|error| {
        RunError::new(RunCode::E0807, format!("`{}` could not be started: {}", line.command, describe(&error)))
    })?;
    let (said, heard) = channel();
    let errors = launcher.stderr.take().expect("it is a pipe");
    thread::spawn(move || forward(errors, &run, &said));
    Ok(supervise(&mut launcher, line.command, &heard, grace)?)
}

/// The messages of a job's processes to this command.
#[derive(Clone, Copy, Debug, PartialEq)]
enum RunEvent {
    Completed,
    /// With the exit status of the process.
    Failed(u8),
}

/// Waits for the end of the launcher. Ends its group when the time is over that it has after the first failure, or after a signal.
fn supervise(launcher: &mut Child, name: &str, heard: &Receiver<RunEvent>, grace: Duration) -> Result<(), Failure> {
    let (mut has_completed, mut failed) = (false, None);
    let mut signal = None;
    // Which signal comes next, and when.
    let mut ending: Option<(EndingSignal, Instant)> = None;
    let mut hear = |event| match event {
        RunEvent::Completed => has_completed = true,
        RunEvent::Failed(status) => failed = failed.or(Some(status)),
    };
    let status = loop {
        for event in heard.try_iter() {
            hear(event);
            if let RunEvent::Failed(_) = event {
                ending.get_or_insert((EndingSignal::Terminate, Instant::now() + grace));
            }
        }
        if let Some(noted) = noted_signal() {
            noted.send_to_group(launcher.id());
            signal = Some(noted);
            ending.get_or_insert((EndingSignal::Terminate, Instant::now() + grace));
        }
        if let Some((next, when)) = ending
            && Instant::now() > when
        {
            next.send_to_group(launcher.id());
            ending = Some((EndingSignal::Kill, Instant::now() + PATIENCE));
        }
        match launcher.try_wait() {
            Ok(None) => thread::sleep(LOOK),
            Ok(Some(status)) => break status,
            Err(error) => {
                let message = format!("cannot wait for `{name}`: {}", describe(&error));
                return Err(Failure::new(RunError::new(RunCode::E0809, message)));
            }
        }
    };
    // What is left of the group, such as connections to other hosts, has lost its launcher.
    EndingSignal::Terminate.send_to_group(launcher.id());
    // The sender is dropped at the end of the launcher's output. A process that outlives the launcher may hold it open.
    let until = Instant::now() + PATIENCE;
    while let Ok(event) = heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
        hear(event);
    }
    EndingSignal::Kill.send_to_group(launcher.id());
    ended(name, status, has_completed, failed, signal)
}

/// The meaning of a launcher's end. `failed` is the exit status of the first process that has failed.
fn ended(
    name: &str,
    status: ExitStatus,
    has_completed: bool,
    failed: Option<u8>,
    signal: Option<EndingSignal>,
) -> Result<(), Failure> {
    if has_completed && failed.is_none() {
        return Ok(());
    }
    let how = match status.code() {
        Some(code) => format!("exit status {code}"),
        None => "ended by a signal".to_string(),
    };
    let message = format!("the job did not complete (`{name}`: {how})");
    let failure =
        Failure::new(RunError::new(RunCode::E0809, message).with_help("a process ended early; see the messages above"));
    let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|&code| code != 0);
    match (signal, failed) {
        (Some(signal), _) => {
            let status = u8::try_from(128 + signal.number()).unwrap_or(u8::MAX);
            Err(Failure { status, report: FailureReport::ByAnother, ..failure })
        }
        // The process that failed has said why. The launcher's status may be that of a process that it has killed.
        (None, Some(status)) => Err(Failure { status, report: FailureReport::ByAnother, ..failure }),
        (None, None) => Err(Failure { status: code.unwrap_or(failure.status), ..failure }),
    }
}

/// Copies the errors of the job to this process's, except for the lines for this command.
fn forward(mut errors: impl Read, run: &str, said: &Sender<RunEvent>) {
    let mut lines = RunLines::new(run);
    let mut bytes = [0; 4096];
    let mut out = Vec::new();
    loop {
        let len = match errors.read(&mut bytes) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for event in lines.take(&bytes[..len], &mut out) {
            // Nobody listens any more once the command is about to end.
            let _ = said.send(event);
        }
        // Standard error may be closed; the job goes on.
        let _ = io::stderr().write_all(&out);
        out.clear();
    }
    let _ = io::stderr().write_all(&lines.held);
}

/// The longest content of a line that is meant for this command: `completed`, or `failed 255`.
const LONGEST_CONTENT: usize = 10;

/// Finds the lines that are meant for this command, wherever in the text they begin.
struct RunLines {
    /// The beginning of such lines.
    start: Vec<u8>,
    /// A line from its mark on, as far as it has come.
    held: Vec<u8>,
}

impl RunLines {
    fn new(run: &str) -> RunLines {
        RunLines { start: format!("{RUN_MARK}spmdc {run} ").into_bytes(), held: Vec::new() }
    }

    /// Adds to `out` the bytes that are not of such lines.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Vec<RunEvent> {
        let mut events = Vec::new();
        for &byte in bytes {
            self.held.push(byte);
            if let Some(event) = self.event() {
                events.push(event);
                self.held.clear();
            } else if !self.may_become_a_line() {
                // This byte may begin a line itself.
                self.held.pop();
                out.append(&mut self.held);
                if self.start[0] == byte { self.held.push(byte) } else { out.push(byte) }
            }
        }
        events
    }

    /// The message in the held line, if the line is complete.
    fn event(&self) -> Option<RunEvent> {
        let content = self.held.strip_prefix(self.start.as_slice())?.strip_suffix(b"\n")?;
        let content = std::str::from_utf8(content).ok()?;
        if content == "completed" {
            return Some(RunEvent::Completed);
        }
        content.strip_prefix("failed ")?.parse().ok().map(RunEvent::Failed)
    }

    fn may_become_a_line(&self) -> bool {
        match self.held.strip_prefix(self.start.as_slice()) {
            Some(content) => {
                let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b' ';
                content.len() <= LONGEST_CONTENT && content.iter().all(is_plain)
            }
            None => self.start.starts_with(&self.held),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn command(processes: Option<usize>, hosts: &[&str]) -> LaunchCommand {
        LaunchCommand {
            processes,
            hosts: hosts.iter().map(|host| host.to_string()).collect(),
            mpi: None,
            grace: 10.0,
            dry_run: false,
            words: vec!["./prog".into(), "--arg".into(), "x=[1, 2]".into()],
        }
    }

    #[test]
    fn lines_are_those_of_the_launchers() {
        use MpiFamily::{Mpich, Openmpi, SlurmPmi2, SlurmPmix};
        let on_hosts = command(None, &["a", "b"]);
        let line = |family, name, processes, hosts: &[(&str, usize)], is_root| {
            LaunchLine::new(family, name, processes, hosts, is_root, &on_hosts.words).to_string()
        };
        assert_eq!(
            line(Openmpi, "mpirun", 4, &[], true),
            "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --bind-to none --oversubscribe -n 4 ./prog --arg 'x=[1, 2]'"
        );
        assert_eq!(
            line(Openmpi, "mpirun", 3, &[("a", 2), ("b", 1)], false),
            "mpirun --bind-to none --host a:2,b:1 -n 3 ./prog --arg 'x=[1, 2]'"
        );
        assert_eq!(line(Mpich, "mpiexec", 2, &[], true), "mpiexec -n 2 ./prog --arg 'x=[1, 2]'");
        assert_eq!(
            line(Mpich, "mpiexec", 2, &[("a", 1), ("b", 1)], false),
            "mpiexec -hosts a:1,b:1 -n 2 ./prog --arg 'x=[1, 2]'"
        );
        assert_eq!(
            line(SlurmPmix, "srun", 4, &[], true),
            "srun --mpi=pmix -K1 --cpu-bind=none -n 4 ./prog --arg 'x=[1, 2]'"
        );
        assert_eq!(
            line(SlurmPmi2, "srun", 3, &[("a", 2), ("b", 1)], false),
            "srun --mpi=pmi2 -K1 --cpu-bind=none -N 2 -w a,b --distribution=block -n 3 ./prog --arg 'x=[1, 2]'"
        );
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn processes_are_dealt_to_hosts() {
        assert_eq!(assigned(&command(Some(3), &[])).unwrap(), (3, vec![]));
        assert_eq!(assigned(&command(None, &["a", "b"])).unwrap(), (2, vec![("a", 1), ("b", 1)]));
        assert_eq!(assigned(&command(Some(5), &["a", "b"])).unwrap(), (5, vec![("a", 3), ("b", 2)]));
        for (processes, hosts, message) in [
            (None, vec![], "the number of processes is missing"),
            (Some(0), vec![], "a job requires at least one process"),
            (Some(1), vec!["a", "b"], "1 process is fewer than 2 hosts"),
            (None, vec!["-x", "b"], "invalid host name `-x`"),
            (None, vec!["a b"], "invalid host name `a b`"),
        ] {
            assert_eq!(assigned(&command(processes, &hosts)).unwrap_err().message, message);
        }
    }

    #[test]
    fn lines_for_the_command_are_taken_out_wherever_they_begin() {
        let text = format!(
            "first\n{RUN_MARK}spmdc r1 failed 65\npart{RUN_MARK}spmdc r1 completed\n{RUN_MARK}spmdc r2 failed 3\n\u{1e}{RUN_MARK}spmdc r1 failed 255\n{RUN_MARK}spmdc r1 failed 256\n{RUN_MARK}spmdc r1 completed or not\nend"
        );
        for step in [1, 3, 1000] {
            let (mut lines, mut out, mut events) = (RunLines::new("r1"), Vec::new(), Vec::new());
            text.as_bytes().chunks(step).for_each(|bytes| events.extend(lines.take(bytes, &mut out)));
            assert_eq!(events, [RunEvent::Failed(65), RunEvent::Completed, RunEvent::Failed(255)]);
            let others = format!("{RUN_MARK}spmdc r1 failed 256\n{RUN_MARK}spmdc r1 completed or not\n");
            let expected = format!("first\npart{RUN_MARK}spmdc r2 failed 3\n\u{1e}{others}end");
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn success_is_what_the_job_says() {
        let exit = |code: i32| ExitStatus::from_raw(code << 8);
        let ended = |status, has_completed, failed, signal| {
            ended("mpirun", status, has_completed, failed, signal).map_err(|failure| (failure.status, failure.report))
        };
        assert_eq!(ended(exit(0), true, None, None), Ok(()));
        // Some libraries do not end well after everything has been written.
        assert_eq!(ended(exit(1), true, None, None), Ok(()));
        assert_eq!(ended(exit(0), false, None, None), Err((75, FailureReport::ByThisAlone)));
        assert_eq!(ended(exit(137), false, None, None), Err((137, FailureReport::ByThisAlone)));
        assert_eq!(ended(exit(0), true, Some(3), None), Err((3, FailureReport::ByAnother)));
        assert_eq!(ended(exit(137), false, Some(65), None), Err((65, FailureReport::ByAnother)));
        assert_eq!(ended(ExitStatus::from_raw(9), false, Some(75), None), Err((75, FailureReport::ByAnother)));
        assert_eq!(ended(ExitStatus::from_raw(9), false, None, None), Err((75, FailureReport::ByThisAlone)));
        assert_eq!(ended(exit(1), false, None, Some(EndingSignal::Interrupt)), Err((130, FailureReport::ByAnother)));
    }
}
