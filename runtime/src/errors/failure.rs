//! Errors as they are reported to the user.

use std::fmt::Write as _;

use crate::text::json::{JsonObject, quoted};

use crate::errors::trap::{RunCode, RunError};
use crate::run::args::ErrorFormat;

/// An error as it is reported to the user.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The error.
    pub error: RunError,
    /// The source file of the error, if it is known.
    pub file: Option<String>,
    /// The exit status.
    pub status: u8,
    /// The process that reports it.
    pub report: FailureReport,
}

/// The process of a job that reports a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureReport {
    /// Only this process knows of it, reports it, and ends the others.
    ByThisAlone,
    /// All processes know of it, and this one reports it.
    ByThisForAll,
    /// All processes know of it, and another one reports it.
    ByAnother,
}

impl Failure {
    /// An error without a source position: of the command line and its files, or of the machine.
    pub fn new(error: RunError) -> Failure {
        let status = error.code.exit_status();
        Failure { error, file: None, status, report: FailureReport::ByThisAlone }
    }

    /// An error of a program with these source files.
    pub fn of_program(error: RunError, files: &[String]) -> Failure {
        let site = error.site.filter(|site| site.line > 0);
        let file = site.and_then(|site| files.get(usize::from(site.file)).cloned());
        Failure { file, ..Failure::new(error) }
    }

    /// An error of a running program: also a file that cannot be written is one of its run.
    pub fn of_run(error: RunError, files: &[String]) -> Failure {
        let failure = Failure::of_program(error, files);
        let status = if failure.error.code == RunCode::E0809 { failure.status } else { 3 };
        Failure { status, ..failure }
    }

    /// Several lines of text, or a JSON object; with a newline at the end.
    pub fn render(&self, format: ErrorFormat) -> String {
        let RunError { code, message, help, .. } = &self.error;
        let place = self.error.site.filter(|_| self.file.is_some());
        match format {
            ErrorFormat::Text => {
                let mut text = format!("error[{code}]: {message}\n");
                if let (Some(file), Some(site)) = (&self.file, place) {
                    let _ = writeln!(text, "  --> {file}:{}:{}", site.line, site.column);
                }
                if let Some(help) = help {
                    let _ = writeln!(text, "  help: {help}");
                }
                text
            }
            ErrorFormat::Json => {
                let object = JsonMessage {
                    code: code.name(),
                    severity: "error",
                    message,
                    file: self.file.as_deref(),
                    line: place.map(|site| site.line),
                    column: place.map(|site| site.column),
                    help: help.as_deref(),
                };
                object.to_line()
            }
        }
    }
}

/// A message as one JSON object a line.
pub struct JsonMessage<'a> {
    /// The code, such as `E0801`.
    pub code: &'a str,
    /// `error` or `warning`.
    pub severity: &'a str,
    /// The message, without code and source position.
    pub message: &'a str,
    /// The source file, if it is known.
    pub file: Option<&'a str>,
    /// The source line, from 1.
    pub line: Option<u32>,
    /// The column of the source line, from 1.
    pub column: Option<u32>,
    /// The way out, if there is one.
    pub help: Option<&'a str>,
}

impl JsonMessage<'_> {
    /// The message as one line of JSON, with its line break.
    pub fn to_line(&self) -> String {
        let text = |value: Option<&str>| value.map_or("null".to_string(), quoted);
        let number = |value: Option<u32>| value.map_or("null".to_string(), |value| value.to_string());
        let object = JsonObject::new()
            .text("code", self.code)
            .text("severity", self.severity)
            .text("message", self.message)
            .field("file", text(self.file))
            .field("line", number(self.line))
            .field("column", number(self.column))
            .field("help", text(self.help));
        object.end() + "\n"
    }
}
