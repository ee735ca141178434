//! `spmdc report`: all that is known of a program, as one page. With arguments the program also runs, and the page has its times.

use std::fs;

use spmdc_compiler::backends;
use spmdc_compiler::pipeline::Compilation;
use spmdc_driver::errors::{CommandError, absent, no_code};
use spmdc_driver::render::Reporter;
use spmdc_driver::reports::page::{MeasuredRun, page};
use spmdc_driver::sources::SourceTexts;
use spmdc_runtime::component_table::in_process;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::run::args::RunArgs;
use spmdc_runtime::run::start::{Viewer, execute_with};

use crate::link;
use crate::options::{MessageOptions, ReportCommand};
use crate::plots::Plots;

/// Writes the page.
pub fn report(
    command: &ReportCommand,
    messages: &MessageOptions,
    reporter: &Reporter,
    texts: &mut SourceTexts,
) -> Result<(), CommandError> {
    let args = command.options.run_args(messages.error_format)?;
    let compilation = super::compile(&command.program, None, reporter, texts)?;
    let runs = !args.arguments.is_empty() || args.archive.is_some() || args.bench.is_some() || !args.plots.is_empty();
    let run = if runs { Some(measured(&compilation, args, texts)?) } else { None };
    let title = command.program.program.file_name().unwrap_or(command.program.program.as_os_str()).to_string_lossy();
    let text = page(&title, &compilation, run.as_ref(), texts)?;
    let output = match &command.output {
        Some(output) => output.clone(),
        None => format!("{}.html", title.trim_start_matches(':').trim_end_matches(".spmd")).into(),
    };
    Ok(link::write(text.as_bytes(), &output)?)
}

/// Runs the program, and reads the times from its trace. Results go to `--out` and `--plot` only.
fn measured(compilation: &Compilation, mut args: RunArgs, texts: &SourceTexts) -> Result<MeasuredRun, CommandError> {
    let program = compilation.program.clone().ok_or_else(|| absent("program"))?;
    let code = backends::DEFAULT.load(&compilation.kernels).map_err(|error| no_code(&error))?;
    let kernels = code.into_kernels().map_err(|error| no_code(&error))?;
    let failed =
        |why: std::io::Error| RunError::new(RunCode::E0703, format!("cannot keep the trace of the run: {why}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let own = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let trace = args.trace.clone().unwrap_or_else(|| own("trace.json"));
    args.set("--trace", &trace)?;
    if args.outputs.is_empty() {
        args.set("--out", &own("results.npz"))?;
    }
    let mut plots = Plots::of(&args.plots);
    let viewer = plots.as_mut().map(|plots| plots as &mut dyn Viewer);
    execute_with(program, in_process(kernels), &args, viewer)?;
    MeasuredRun::of_trace(&fs::read_to_string(&trace).map_err(failed)?, texts)
}
