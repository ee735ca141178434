//! `spmdc run`: compiles in memory, or takes the code from the cache, and runs.

use std::time::Instant;

use spmdc_abi::Program;
use spmdc_compiler::backends;
use spmdc_compiler::pipeline::MemoryLimit;
use spmdc_driver::cache::{self, CachePlace};
use spmdc_driver::errors::{CommandError, absent, no_code};
use spmdc_driver::render::Reporter;
use spmdc_driver::reports;
use spmdc_driver::sources::SourceTexts;
use spmdc_kernel::backend::LoadedCode;
use spmdc_layout::draw::Style;
use spmdc_runtime::component_table::in_process;
use spmdc_runtime::processes::job;
use spmdc_runtime::run::args::RunArgs;
use spmdc_runtime::run::start::{Viewer, execute_with};

use crate::options::{MessageOptions, RunCommand};
use crate::plots::Plots;
use crate::sources::load;

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
    let parsed = load(&program, texts)?;
    let of_compiler = super::compiler_options(&program, &parsed);
    // The reports need every stage, and `--verify` checks them.
    let is_whole = command.options.explain || command.options.plan || program.verify;
    let is_cached = !is_whole && !command.options.no_cache;
    let place = if is_cached {
        cache::executable().and_then(|file| CachePlace::of(&parsed.set, &of_compiler, &program.policy(), &file))
    } else {
        None
    };
    if let Some(cached) = place.as_ref().and_then(CachePlace::read) {
        cached.warnings.iter().for_each(|warnings| reporter.diagnostics(warnings, texts));
        return start(cached.program, cached.code, milliseconds(begin), &args);
    }
    let (compilation, warnings) = super::compile_parsed(&program, &parsed.set, &of_compiler, reporter, texts)?;
    let style = if messages.ascii { Style::Ascii } else { Style::Unicode };
    let overview =
        command.options.explain.then(|| super::overview::overview(&compilation, style, texts)).transpose()?;
    let plan =
        command.options.plan.then(|| reports::plan::show(&compilation, &[], messages.ascii, texts)).transpose()?;
    let mut program = compilation.program.ok_or_else(|| absent("program"))?;
    let code = backends::DEFAULT.load(&compilation.kernels).map_err(|error| no_code(&error))?;
    if let Some(place) = place {
        // The time is of this process; all that is kept follows from the key.
        program.compile_ms = 0.0;
        place.write(&program, &*code, &warnings);
    }
    let compile_ms = milliseconds(begin);
    for shown in [overview, plan].into_iter().flatten() {
        crate::print(&(shown + "\n"))?;
    }
    start(program, code, compile_ms, &args)
}

fn milliseconds(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e3
}

/// Runs a program whose compilation, or whose reading from the cache, took this long.
fn start(mut program: Program, code: Box<dyn LoadedCode>, compile_ms: f64, args: &RunArgs) -> Result<(), CommandError> {
    program.compile_ms = compile_ms;
    let kernels = code.into_kernels().map_err(|error| no_code(&error))?;
    let mut plots = Plots::of(&args.plots);
    let viewer = plots.as_mut().map(|plots| plots as &mut dyn Viewer);
    Ok(execute_with(program, in_process(kernels), args, viewer)?)
}
