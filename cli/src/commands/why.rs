//! `spmdc why PROG:LINE NAME`: the source of a layout, the cause of a collective, and the edit that avoids it.

use std::path::PathBuf;

use spmdc_compiler::pipeline::{self, Options};
use spmdc_driver::errors::CommandError;
use spmdc_driver::reports;
use spmdc_driver::sources::SourceTexts;
use spmdc_runtime::errors::trap::{RunCode, RunError};

use crate::options::WhyCommand;
use crate::sources::load;

/// The report on a line and its values.
pub fn why(command: &WhyCommand, texts: &mut SourceTexts) -> Result<String, CommandError> {
    let mut program = command.program.clone();
    let line = line_of(&mut program.program)?;
    let loaded = load(&program, texts)?;
    let options = Options { check: loaded.options, stop_after: None, hosts: loaded.hosts, ..Options::default() };
    let compilation = pipeline::compile(&loaded.set, &options).map_err(CommandError::Program)?;
    let asked = (line, command.name.as_deref());
    Ok(reports::why::why(&compilation, (&loaded.set, &options), asked, texts)?)
}

/// Splits the line number off `PROG:LINE`.
fn line_of(program: &mut PathBuf) -> Result<usize, RunError> {
    let text = program.to_string_lossy().into_owned();
    let split = text.rsplit_once(':').and_then(|(path, line)| Some((PathBuf::from(path), line.parse().ok()?)));
    let Some((path, line)) = split else {
        let error = RunError::new(RunCode::E0702, format!("`{text}` does not name a line"));
        return Err(error.with_help("write the program and a line, such as prog.spmd:7"));
    };
    *program = path;
    Ok(line)
}
