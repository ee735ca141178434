//! `spmdc run`: compiles in memory and runs.

use std::time::Instant;

use spmdc_compiler::backends;
use spmdc_compiler::pipeline::MemoryLimit;
use spmdc_layout::draw::Style;
use spmdc_runtime::component_table::in_process;
use spmdc_runtime::processes::job;
use spmdc_runtime::run::start::execute;

use crate::CommandError;
use crate::options::{MessageOptions, RunCommand};
use crate::render::Reporter;
use crate::sources::SourceTexts;

/// Runs the program and prints or writes its results.
pub fn run(
    command: &RunCommand,
    messages: &MessageOptions,
    reporter: &Reporter,
    texts: &mut SourceTexts,
) -> Result<(), CommandError> {
    // Errors in the options are reported before compilation.
    let args = command.run_args(messages.error_format)?;
    let begin = Instant::now();
    let mut program = command.program.clone();
    // All processes of a job compile the same program, for their number.
    let processes = job::started_processes();
    program.launched = Some(processes).filter(|processes| *processes > 1);
    program.memory = args.options.memory_limit.map(|bytes| MemoryLimit { bytes, processes });
    let compilation = super::compile(&program, None, reporter, texts)?;
    let style = if messages.ascii { Style::Ascii } else { Style::Unicode };
    let overview =
        command.options.explain.then(|| super::overview::overview(&compilation, style, texts)).transpose()?;
    let plan = command.options.plan.then(|| super::plan::show(&compilation, &[], messages.ascii, texts)).transpose()?;
    let mut program = compilation.program.ok_or_else(|| super::absent("program"))?;
    let code = backends::DEFAULT.load(&compilation.kernels).map_err(|error| super::no_code(&error))?;
    program.compile_ms = begin.elapsed().as_secs_f64() * 1e3;
    for shown in [overview, plan].into_iter().flatten() {
        crate::print(&(shown + "\n"))?;
    }
    let kernels = code.into_kernels().map_err(|error| super::no_code(&error))?;
    Ok(execute(program, in_process(kernels), &args)?)
}
