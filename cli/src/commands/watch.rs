//! `--watch`: repeats a command whenever a file that it reads changes, until a signal ends it.
//!
//! Each repetition is a process of its own, so that its errors do not end the watch. Files are polled: editors replace a file by another one
//! of its name, and files may be on any file system.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use spmdc_driver::errors::CommandError;
use spmdc_driver::sources::note_imports;
use spmdc_runtime::data::inputs::Argument;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::describe;
use spmdc_runtime::processes::group::{EndingSignal, note_signals, noted_signal};
use spmdc_runtime::processes::job;
use spmdc_runtime::run::args::RunArgs;
use spmdc_runtime::run::start::{Failure, FailureReport};

use crate::examples;
use crate::options::{MachineOption, MessageFormat, MessageOptions, ProgramOptions};
use crate::sources::STANDARD_INPUT;

/// The option, as a word.
const OPTION: &str = "--watch";

/// The time between two looks at the files.
const INTERVAL: Duration = Duration::from_millis(100);

/// The maximum number of looks until files stay as they are.
const MOST_LOOKS: usize = 20;

/// The time between two looks at a process.
const LOOK: Duration = Duration::from_millis(5);

/// How long a process may take to end after a signal.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file, and by which its versions differ.
#[derive(Clone, Debug, PartialEq)]
struct WatchedFile {
    path: PathBuf,
    /// Whether it is the file of an argument. The program may write such files, so they are not watched while it runs.
    is_argument: bool,
    /// Its number, length and time of modification; None if it does not exist.
    version: Option<(u64, u64, Option<SystemTime>)>,
}

impl WatchedFile {
    fn of(path: &Path, is_argument: bool) -> WatchedFile {
        let version = std::fs::metadata(path).ok().map(|found| (found.ino(), found.len(), found.modified().ok()));
        WatchedFile { path: path.to_path_buf(), is_argument, version }
    }

    /// The same file as it is now.
    fn again(&self) -> WatchedFile {
        WatchedFile::of(&self.path, self.is_argument)
    }
}

/// The files of a command, as they are now.
fn watched_files(program: &ProgramOptions, args: Option<&RunArgs>) -> Vec<WatchedFile> {
    let mut files = vec![WatchedFile::of(&program.program, false)];
    if let MachineOption::File(path) = &program.machine {
        files.push(WatchedFile::of(path, false));
    }
    // Each version is read before its file is, so that no change in between is missed.
    note_imports(&program.program, &mut |path| files.push(WatchedFile::of(path, false)));
    let arguments = args.iter().flat_map(|args| args.arguments.iter().filter_map(Argument::file));
    let archive = args.and_then(|args| args.archive.as_deref()).map(Path::new);
    files.extend(arguments.chain(archive).map(|path| WatchedFile::of(path, true)));
    files
}

/// Whether any of the files is not as it was. Then it waits until all of them stay as they are for one interval, because a file may be
/// written in several steps; at most for `MOST_LOOKS` intervals.
fn have_changed<'a>(files: impl Iterator<Item = &'a WatchedFile> + Clone) -> bool {
    let look = || files.clone().map(WatchedFile::again).collect::<Vec<_>>();
    let mut seen = look();
    if files.clone().eq(&seen) {
        return false;
    }
    for _ in 0..MOST_LOOKS {
        sleep(INTERVAL);
        let now = look();
        if now == seen {
            break;
        }
        seen = now;
    }
    true
}

/// Runs the command of this process without `--watch`, again and again.
pub fn watch(program: &ProgramOptions, args: Option<&RunArgs>, messages: &MessageOptions) -> Result<(), CommandError> {
    let wrong = |why: &str, help: &str| RunError::new(RunCode::E0702, format!("`{OPTION}` {why}")).with_help(help);
    if program.program.as_os_str() == STANDARD_INPUT || examples::text(&program.program).is_some() {
        let why = format!("watches files, but `{}` is none", program.program.display());
        return Err(wrong(&why, "write the program to a file").into());
    }
    if job::started_processes() > 1 {
        return Err(wrong("works in one process only", "start it without a launcher").into());
    }
    let failed =
        |error: &io::Error| RunError::new(RunCode::E0703, format!("cannot start spmdc again: {}", describe(error)));
    let own = std::env::current_exe().map_err(|error| failed(&error))?;
    let words: Vec<OsString> = std::env::args_os().skip(1).filter(|word| word != OPTION).collect();
    note_signals();
    loop {
        let mut files = watched_files(program, args);
        let begin = Instant::now();
        // In a group of its own, so that this process ends it and what it has started.
        let mut command = Command::new(&own);
        command.args(&words).stdin(Stdio::null()).process_group(0);
        let mut child = command.spawn().map_err(|error| failed(&error))?;
        let end = wait(&mut child, &files).map_err(|error| failed(&error))?;
        let time = begin.elapsed().as_secs_f64();
        match end {
            RepetitionEnd::Signal(signal) => return Err(ended(signal)),
            RepetitionEnd::Change => separate(&format!("{time:.2} s, stopped by a change"), &files, messages),
            RepetitionEnd::Done => {
                separate(&format!("{time:.2} s, waits for changes"), &files, messages);
                files.iter_mut().filter(|file| file.is_argument).for_each(|file| *file = file.again());
                while !have_changed(files.iter()) {
                    if let Some(signal) = noted_signal() {
                        return Err(ended(signal));
                    }
                    sleep(INTERVAL);
                }
            }
        }
    }
}

/// How a repetition has ended.
enum RepetitionEnd {
    Done,
    /// A file has changed.
    Change,
    Signal(EndingSignal),
}

/// Waits until the process ends, or ends it if a file changes or a signal comes.
fn wait(child: &mut Child, files: &[WatchedFile]) -> io::Result<RepetitionEnd> {
    let mut next_look = Instant::now() + INTERVAL;
    loop {
        if child.try_wait()?.is_some() {
            return Ok(RepetitionEnd::Done);
        }
        if let Some(signal) = noted_signal() {
            stop(child)?;
            return Ok(RepetitionEnd::Signal(signal));
        }
        sleep(LOOK);
        if next_look <= Instant::now() {
            if have_changed(files.iter().filter(|file| !file.is_argument)) {
                stop(child)?;
                return Ok(RepetitionEnd::Change);
            }
            next_look = Instant::now() + INTERVAL;
        }
    }
}

/// Ends a process and its group. It may remove its temporary files first.
fn stop(child: &mut Child) -> io::Result<()> {
    EndingSignal::Terminate.send_to_group(child.id());
    let until = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() {
        if until < Instant::now() {
            EndingSignal::Kill.send_to_group(child.id());
        }
        sleep(LOOK);
    }
    Ok(())
}

/// The end of the watch by a signal, with the status that a shell expects.
fn ended(signal: EndingSignal) -> CommandError {
    let status = u8::try_from(128 + signal.number()).unwrap_or(u8::MAX);
    let error = RunError::internal("a signal was reported as an error");
    CommandError::Failure(Failure { status, report: FailureReport::ByAnother, ..Failure::new(error) })
}

/// Writes the line between two repetitions to standard error.
fn separate(text: &str, files: &[WatchedFile], messages: &MessageOptions) {
    let names: BTreeSet<&Path> = files.iter().map(|file| file.path.as_path()).collect();
    let others = match names.len() - 1 {
        0 => String::new(),
        1 => " and 1 other file".to_string(),
        count => format!(" and {count} other files"),
    };
    let message = format!("{text} of `{}`{others}", files[0].path.display());
    let line = match messages.error_format {
        MessageFormat::Text => {
            let rule = if messages.ascii { "----" } else { "────" };
            format!("{rule} {message} {rule}")
        }
        MessageFormat::Json => serde_json::json!({
            "code": null, "severity": "note", "message": message, "file": null, "line": null, "column": null, "help": null,
        })
        .to_string(),
    };
    let _ = writeln!(io::stderr().lock(), "{line}");
}
