//! The command `spmdc`.
//!
//! | exit status | meaning |
//! |---|---|
//! | 0 | success |
//! | 1 | an error in the program |
//! | 2 | an error in the command line, or in a file that it names |
//! | 3 | an error at run time |
//! | 65, 75 | a job of several processes, see `spmdc_runtime::processes::job` |

mod allocator;
mod ar;
mod commands;
mod examples;
mod header;
mod link;
mod machine;
mod options;
mod plots;
mod sources;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use spmdc_driver::errors::CommandError;
use spmdc_driver::render::Reporter;
use spmdc_driver::sources::SourceTexts;
use spmdc_layout::draw::Style;
use spmdc_runtime::errors::exhausted::{self, NotingAllocator};
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::unwritable_output;
use spmdc_runtime::processes::job;
use spmdc_runtime::run::args::{ErrorFormat, RunArgs};
use spmdc_runtime::run::start::{Failure, FailureReport, without_panic};

use crate::allocator::BySize;
use crate::options::{CheckCommand, Command, CommandLine, MessageOptions, ReportCommand, RunCommand};

#[global_allocator]
static ALLOCATOR: NotingAllocator<BySize> = NotingAllocator(BySize);

fn main() -> ExitCode {
    exhausted::end_with_status();
    let words: Vec<OsString> = std::env::args_os().collect();
    let options = match CommandLine::try_parse_from(&words) {
        Ok(options) => options,
        Err(error) => return refuse(&error, RunArgs::error_format_of(&words)),
    };
    let MessageOptions { error_format, color, ascii } = options.messages;
    let reporter = Reporter::new(error_format.into(), ascii, color.is_used(&io::stderr()));
    let mut texts = SourceTexts::default();
    let done = without_panic(|| Ok(perform(&options, &reporter, &mut texts)));
    match done.unwrap_or_else(|failure| Err(CommandError::Failure(failure))) {
        Ok(()) => {
            job::leave(None);
            ExitCode::SUCCESS
        }
        Err(CommandError::Program(diagnostics)) => {
            reporter.diagnostics(&diagnostics, &texts);
            let is_command = diagnostics.iter().all(|diagnostic| diagnostic.of_command);
            ExitCode::from(if is_command && !diagnostics.is_empty() { 2 } else { 1 })
        }
        Err(CommandError::Failure(failure)) => {
            if failure.report != FailureReport::ByAnother {
                reporter.failure(&failure, &texts);
            }
            job::leave(Some(&failure));
            ExitCode::from(failure.status)
        }
    }
}

fn perform(options: &CommandLine, reporter: &Reporter, texts: &mut SourceTexts) -> Result<(), CommandError> {
    let messages = &options.messages;
    match &options.command {
        Command::Run(RunCommand { watch: true, program, options: settings, .. })
        | Command::Report(ReportCommand { watch: true, program, options: settings, .. }) => {
            commands::watch::watch(program, Some(&settings.run_args(messages.error_format)?), messages)
        }
        Command::Check(CheckCommand { watch: true, program, .. }) => commands::watch::watch(program, None, messages),
        Command::New { folder } => print(&commands::new::new(folder)?),
        Command::Examples { name } => print(&commands::examples::examples(name.as_deref())?),
        Command::Run(command) => {
            let example = commands::examples::completed(command)?;
            commands::run::run(example.as_ref().unwrap_or(command), messages, reporter, texts)
        }
        Command::Launch(command) => commands::launch::launch(command),
        Command::Build(command) => commands::build::build(command, reporter, texts),
        Command::Check(command) => print(&commands::check::check(command, reporter, texts)?),
        Command::Test(command) => commands::test::test(command, reporter),
        Command::Fmt(command) => commands::fmt::fmt(command, messages, reporter, texts),
        Command::Export(command) => commands::export::export(command, reporter, texts),
        Command::Import(command) => print(&commands::import::import(command, texts)?),
        Command::Dump(command) => print(&commands::dump::dump(command, reporter, texts)?),
        Command::Viz(command) => {
            let style = if options.messages.ascii { Style::Ascii } else { Style::Unicode };
            print(&commands::viz::viz(command, style, reporter, texts)?)
        }
        Command::Shard(command) => print(&commands::shard::shard(command, options.messages.ascii, texts)?),
        Command::Plan(command) => print(&commands::plan::plan(command, options.messages.ascii, reporter, texts)?),
        Command::Report(command) => commands::report::report(command, messages, reporter, texts),
        Command::Why(command) => print(&commands::why::why(command, texts)?),
        Command::Tune(command) => commands::tune::tune(command),
        Command::Lsp => commands::lsp::lsp(),
        Command::Explain { topic } => print(&commands::explain::explain(topic.as_deref(), texts)?),
        Command::Man { folder } => commands::man::man(folder),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut CommandLine::command(), "spmdc", &mut script);
            print(&String::from_utf8_lossy(&script))
        }
    }
}

/// Writes to standard output. A closed pipe is not an error.
fn print(text: &str) -> Result<(), CommandError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CommandError::Failure(Failure { status: 3, ..Failure::new(unwritable_output(&error)) }))
        }
        _ => Ok(()),
    }
}

/// Reports that the words do not fit the options, or prints the requested help.
fn refuse(error: &clap::Error, format: ErrorFormat) -> ExitCode {
    if format == ErrorFormat::Json && error.use_stderr() {
        let text = error.render().to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let tips: Vec<&str> = text.lines().filter_map(|line| line.trim().strip_prefix("tip: ")).collect();
        let mut wrong = RunError::new(RunCode::E0702, message);
        if !tips.is_empty() {
            wrong = wrong.with_help(tips.join("\n"));
        }
        let _ = io::stderr().write_all(Failure::new(wrong).render(format).as_bytes());
    } else {
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
