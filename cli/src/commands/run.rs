//! `spmdc run`: compiles in memory and runs.

use std::time::Instant;

use spmdc_compiler::codegen::jit;
use spmdc_runtime::start::execute;

use crate::Stop;
use crate::options::{MessageFormat, RunCommand};
use crate::render::Reporter;
use crate::sources::SourceTexts;

/// Runs the program; its results are printed or written as the options say.
pub fn run(
    command: &RunCommand,
    format: MessageFormat,
    reporter: &Reporter,
    texts: &mut SourceTexts,
) -> Result<(), Stop> {
    // A mistake in the options should not wait for the compiler.
    let args = command.run_args(format)?;
    let begin = Instant::now();
    let compilation = super::compile(&command.program, None, reporter, texts)?;
    let mut program = compilation.program.ok_or_else(|| super::absent("program"))?;
    let jit = jit::compile(&compilation.kernels).map_err(|error| super::no_code(&error))?;
    program.compile_ms = begin.elapsed().as_secs_f64() * 1e3;
    Ok(execute(program, jit.into_kernels(), &args)?)
}
