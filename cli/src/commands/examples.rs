//! `spmdc examples`: the programs that come with the command, and `spmdc run` of one.

use std::fs;
use std::path::PathBuf;

use clap::Parser;
use spmdc_driver::cache::folder_of_user;
use spmdc_driver::errors::CommandError;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::io::{describe, write_file};

use crate::examples;
use crate::options::{Command, CommandLine, RunCommand};

/// The folder of the data in the headers of examples.
const FOLDER: &str = "@examples/data/";

/// A line for each example, or the text of one.
pub fn examples(name: Option<&str>) -> Result<String, CommandError> {
    if let Some(name) = name {
        return Ok(examples::named(name.trim_start_matches(':'))?.to_string());
    }
    let width = examples::all().map(|(name, _)| name.len() + 1).max().unwrap_or(0);
    let mut text: String =
        examples::all().map(|(name, about)| format!("{:width$}  {about}\n", format!(":{name}"))).collect();
    text += "\n`spmdc run :digits` runs one, and `spmdc examples digits` prints it. Every command takes such names.\n";
    Ok(text)
}

/// The command that runs an example: with the arguments, constants and mesh of the example's header, as far as the command line does not
/// give them. The data is written into the folder of the user's caches. None for other programs.
pub fn completed(command: &RunCommand) -> Result<Option<RunCommand>, RunError> {
    let Some(text) = examples::text(&command.program.program) else { return Ok(None) };
    let line = text?.lines().find_map(|line| line.strip_prefix("//! run: "));
    let mut completed = command.clone();
    let Some(Ok(CommandLine { command: Command::Run(example), .. })) =
        line.map(|line| CommandLine::try_parse_from(line.split_whitespace()))
    else {
        return Ok(Some(completed));
    };
    let name = |setting: &str| setting.split('=').next().unwrap_or_default().to_string();
    let given: Vec<String> = command.options.arguments.iter().map(|argument| name(argument)).collect();
    if command.options.archive.is_none() {
        for argument in example.options.arguments.iter().filter(|argument| !given.contains(&name(argument))) {
            completed.options.arguments.push(with_data(argument)?);
        }
    }
    let is_set = |name: &String| command.program.settings.iter().any(|(known, _)| known == name);
    completed.program.settings.extend(example.program.settings.into_iter().filter(|(name, _)| !is_set(name)));
    if completed.program.mesh.is_none() {
        completed.program.mesh = example.program.mesh;
    }
    Ok(Some(completed))
}

/// An argument whose file, if it is one of an example, has been written.
fn with_data(argument: &str) -> Result<String, RunError> {
    let Some((start, path)) = argument.split_once(FOLDER) else { return Ok(argument.to_string()) };
    let Some(bytes) = examples::data(path) else {
        return Err(RunError::internal(format!("the data `{path}` of an example is missing")));
    };
    let folder = folder_of_user().ok_or_else(|| {
        let message = "no variable of the environment names a folder for the data of examples";
        RunError::new(RunCode::E0703, message).with_help("set HOME or XDG_CACHE_HOME, or pass the files with --arg")
    })?;
    let file: PathBuf = folder.join("examples").join(path);
    if fs::read(&file).ok().as_deref() != Some(bytes) {
        let parent = file.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(|error| {
            let message =
                format!("cannot write the data of the example into `{}`: {}", parent.display(), describe(&error));
            RunError::new(RunCode::E0704, message).with_help("pass the files with --arg")
        })?;
        write_file(&file, |out| out.write_all(bytes))?;
    }
    Ok(format!("{start}@{}", file.display()))
}
