//! The commands, each in its own file.

pub mod build;
pub mod check;
pub mod dump;
pub mod examples;
pub mod explain;
pub mod export;
pub mod fmt;
pub mod import;
pub mod launch;
pub mod lsp;
pub mod man;
pub mod new;
pub mod overview;
pub mod plan;
pub mod report;
pub mod run;
pub mod shard;
pub mod test;
pub mod tune;
pub mod viz;
pub mod watch;
pub mod why;

use spmdc_check::sources::SourceSet;
use spmdc_compiler::pipeline::{Compilation, Options};
use spmdc_driver::errors::CommandError;
use spmdc_driver::render::Reporter;
use spmdc_driver::sources::{ParsedProgram, SourceTexts};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::program::Stage;

use crate::options::ProgramOptions;
use crate::sources::load;

/// Reads and compiles the program up to a stage, at most to the last one before machine code; reports its warnings.
fn compile(
    options: &ProgramOptions,
    stop_after: Option<Stage>,
    reporter: &Reporter,
    texts: &mut SourceTexts,
) -> Result<Compilation, CommandError> {
    Ok(compile_sources(options, stop_after, reporter, texts)?.0)
}

/// As [`compile`], with the sources and the options of the compiler.
fn compile_sources(
    options: &ProgramOptions,
    stop_after: Option<Stage>,
    reporter: &Reporter,
    texts: &mut SourceTexts,
) -> Result<(Compilation, SourceSet, Options), CommandError> {
    compile_with(options, reporter, texts, |options| Options { stop_after, ..options })
}

/// As [`compile_sources`], with the options of the compiler as `set` changes them.
fn compile_with(
    options: &ProgramOptions,
    reporter: &Reporter,
    texts: &mut SourceTexts,
    set: impl FnOnce(Options) -> Options,
) -> Result<(Compilation, SourceSet, Options), CommandError> {
    let parsed = load(options, texts)?;
    let of_compiler = set(compiler_options(options, &parsed));
    let (compilation, _) = compile_parsed(options, &parsed.set, &of_compiler, reporter, texts)?;
    Ok((compilation, parsed.set, of_compiler))
}

/// The options of the compiler for a program that is compiled to its end.
fn compiler_options(options: &ProgramOptions, parsed: &ParsedProgram) -> Options {
    let verify = options.verify.then_some(u64::MAX);
    let (hosts, memory) = (parsed.hosts, options.memory);
    Options { check: parsed.options.clone(), verify, hosts, memory, ..Options::default() }
}

/// Compiles a program and reports its warnings. Returns them, too, in the lists in which they were reported.
fn compile_parsed(
    options: &ProgramOptions,
    set: &SourceSet,
    of_compiler: &Options,
    reporter: &Reporter,
    texts: &SourceTexts,
) -> Result<(Compilation, Vec<Vec<Diagnostic>>), CommandError> {
    let mut report = |warnings: &[Diagnostic]| reporter.diagnostics(warnings, texts);
    spmdc_driver::compile::compile(set, of_compiler, &options.policy(), &mut report)
}
