//! `spmdc plan`: memory, FLOPs and collectives before the program runs.

use spmdc_compiler::pipeline::MemoryLimit;
use spmdc_compiler::report::kept::checkpoints;
use spmdc_driver::errors::CommandError;
use spmdc_driver::render::Reporter;
use spmdc_driver::reports;
use spmdc_driver::sources::SourceTexts;

use crate::options::{MessageFormat, PlanCommand};

/// The costs of the program, as tables.
pub fn plan(
    command: &PlanCommand,
    ascii: bool,
    reporter: &Reporter,
    texts: &mut SourceTexts,
) -> Result<String, CommandError> {
    let mut program = command.program.clone();
    let limit = command.not_needed.most_memory()?;
    program.memory = limit.map(|bytes| MemoryLimit { bytes, processes: program.hosts.unwrap_or(1) });
    let (compilation, set, options) = super::compile_sources(&program, None, reporter, texts)?;
    let trials = checkpoints(&compilation, &set, &options);
    match command.format {
        MessageFormat::Json => reports::plan::json(&compilation, &trials, texts),
        MessageFormat::Text => reports::plan::show(&compilation, &trials, ascii, texts),
    }
}
