//! `spmdc fmt`: formats source files.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use similar::TextDiff;
use spmdc_driver::disk::{read, read_text};
use spmdc_driver::errors::CommandError;
use spmdc_driver::errors::unreadable;
use spmdc_driver::render::Reporter;
use spmdc_driver::sources::SourceTexts;
use spmdc_grammar::format::{FormatError, format};
use spmdc_grammar::span::FileId;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::{describe, write_file};

use crate::options::{FmtCommand, MessageOptions};
use crate::sources::{STANDARD_INPUT, named_files};

/// Formats files in place, or prints the differences. A file with errors stays as it is, and the others are formatted.
pub fn fmt(
    command: &FmtCommand,
    messages: &MessageOptions,
    reporter: &Reporter,
    texts: &mut SourceTexts,
) -> Result<(), CommandError> {
    let colored = messages.color.is_used(&std::io::stdout());
    if command.paths == [Path::new(STANDARD_INPUT)] {
        let text = read_text(std::io::stdin().lock()).map_err(|why| unreadable("<stdin>", &why))?;
        return match formatted("<stdin>", &text, texts) {
            Err(errors) => Err(errors),
            Ok(done) if command.check && done == text => Ok(()),
            Ok(done) if command.check => {
                crate::print(&difference("<stdin>", &text, &done, colored))?;
                Err(CommandError::Program(Vec::new()))
            }
            Ok(done) => crate::print(&done),
        };
    }
    let here = [PathBuf::from(".")];
    let paths = if command.paths.is_empty() { &here[..] } else { &command.paths };
    if let Some(path) = paths.iter().find(|path| path.extension().is_some_and(|extension| extension == "mlir")) {
        let message = format!("cannot format `{}`: it is StableHLO text", path.display());
        return Err(RunError::new(RunCode::E0703, message).with_help("`spmdc import` prints it as a program").into());
    }
    let files = named_files(paths)?;
    let (mut changed, mut failed) = (0, false);
    for path in &files {
        let name = path.to_string_lossy();
        let text = read(path).map_err(|why| unreadable(&name, &why))?;
        match formatted(&name, &text, texts) {
            Ok(done) if done == text => {}
            Ok(done) => {
                changed += 1;
                match command.check {
                    true => crate::print(&difference(&name, &text, &done, colored))?,
                    false => replace(path, &done)?,
                }
            }
            Err(CommandError::Program(errors)) => {
                reporter.diagnostics(&errors, texts);
                failed = true;
            }
            Err(error @ CommandError::Failure(_)) => return Err(error),
        }
    }
    if !command.check && std::io::stderr().is_terminal() {
        let count = |count: usize| if count == 1 { "1 file".to_string() } else { format!("{count} files") };
        eprintln!("formatted {} of {}", count(changed), files.len());
    }
    if failed || command.check && changed > 0 { Err(CommandError::Program(Vec::new())) } else { Ok(()) }
}

/// The formatted text of a file; otherwise its errors, whose text is kept for messages.
fn formatted(name: &str, text: &str, texts: &mut SourceTexts) -> Result<String, CommandError> {
    let file = FileId(u16::try_from(texts.iter().count()).unwrap_or(u16::MAX));
    format(text, file).map_err(|error| match error {
        FormatError::Syntax(diagnostics) => {
            texts.add(name, text);
            CommandError::Program(diagnostics)
        }
        FormatError::Changed(_) => {
            let message =
                format!("the formatted text of `{name}` would mean something else, so the file stays as it is");
            RunError::internal(message).into()
        }
    })
}

/// A unified diff of a file and its formatted text.
fn difference(name: &str, text: &str, formatted: &str, colored: bool) -> String {
    let diff = TextDiff::from_lines(text, formatted);
    let unified = diff.unified_diff().context_radius(2).header(name, &format!("{name} (formatted)")).to_string();
    if !colored {
        return unified;
    }
    let paint = |line: &str| match line.chars().next() {
        Some('+') => format!("\x1b[32m{line}\x1b[0m\n"),
        Some('-') => format!("\x1b[31m{line}\x1b[0m\n"),
        Some('@') => format!("\x1b[36m{line}\x1b[0m\n"),
        Some(_) | None => format!("{line}\n"),
    };
    unified.lines().map(paint).collect()
}

/// Gives a file another text, and leaves its permissions.
pub(super) fn replace(path: &Path, text: &str) -> Result<(), CommandError> {
    let unwritable = |why: &str| RunError::new(RunCode::E0704, format!("cannot write `{}`: {why}", path.display()));
    let permissions = fs::metadata(path).map_err(|error| unwritable(&describe(&error)))?.permissions();
    if permissions.readonly() {
        return Err(unwritable("it is read-only").into());
    }
    write_file(path, |out| out.write_all(text.as_bytes()))?;
    fs::set_permissions(path, permissions).map_err(|error| unwritable(&describe(&error)))?;
    Ok(())
}
