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
pub mod run;
pub mod test;
pub mod timeline;
pub mod tune;
pub mod viz;
pub mod why;

use spmdc_check::sources::SourceSet;
use spmdc_compiler::pipeline::{self, Compilation, Options};
use spmdc_compiler::report::lints::findings;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::{Diagnostic, Severity};
use spmdc_grammar::span::Span;
use spmdc_ir::program::Stage;
use spmdc_kernel::backend::CodegenError;
use spmdc_layout::mesh::Mesh;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::run::start::Failure;

use crate::CommandError;
use crate::options::ProgramOptions;
use crate::render::Reporter;
use crate::sources::{ParsedProgram, SourceTexts, load};

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
    let policy = options.policy();
    let compilation = pipeline::compile(set, of_compiler).map_err(CommandError::Program)?;
    let mut reported = Vec::new();
    let mut report = |warnings: Vec<Diagnostic>| {
        reporter.diagnostics(&warnings, texts);
        reported.push(warnings);
    };
    report(compilation.warnings.clone());
    if compilation.doubtful {
        let message = "`--verify` checked only a part of the memory plan: the plan is too large or too deeply nested";
        let warning = Diagnostic::warning(Code::E0803, Span::default(), message);
        let warning = warning.help("make the arrays smaller with `--set`, or nest fewer loops");
        report(vec![warning]);
    }
    // A command that stops before the stage that lints need has no collectives to check.
    for module in compilation.of_meshes().into_iter().filter_map(|of_mesh| of_mesh.stage(Stage::Partitioned)) {
        let (errors, warnings): (Vec<_>, Vec<_>) =
            findings(module, &policy).into_iter().partition(|found| found.severity == Severity::Error);
        report(warnings);
        if !errors.is_empty() {
            return Err(CommandError::Program(errors));
        }
    }
    Ok((compilation, reported))
}

/// The texts of all meshes, one after the other.
fn each_part(
    compilation: &Compilation,
    show: impl FnMut(&Compilation) -> Result<String, CommandError>,
) -> Result<String, CommandError> {
    let texts: Result<Vec<String>, CommandError> = compilation.of_meshes().into_iter().map(show).collect();
    Ok(texts?.join("\n"))
}

/// The compilation of each mesh, under the heading of that mesh if there are several.
fn each_mesh(
    compilation: &Compilation,
    mut show: impl FnMut(&Compilation) -> Result<String, CommandError>,
) -> Result<String, CommandError> {
    if compilation.parts.is_empty() {
        return show(compilation);
    }
    let mut text = Vec::new();
    for part in &compilation.parts {
        text.push(format!("on {}\n\n{}", part.mesh.describe(), show(&part.compilation)?));
    }
    Ok(text.join("\n"))
}

/// The axes of a mesh, as the program has them, with their sizes: `X = 2`.
fn axes(mesh: &Mesh) -> Vec<String> {
    mesh.whole().axes.iter().map(|axis| format!("{} = {}", axis.name, axis.size)).collect()
}

/// An error for a missing output of the compiler.
fn absent(what: &str) -> CommandError {
    CommandError::Failure(Failure::new(RunError::internal(format!("the compiler did not produce a {what}"))))
}

/// An error for code that cannot be generated.
fn no_code(error: &CodegenError) -> CommandError {
    let error = match error {
        CodegenError::Machine(_) | CodegenError::Unsupported(_) => RunError::new(RunCode::E0805, error.to_string()),
        CodegenError::Internal(_) => RunError::internal(error.to_string()),
    };
    CommandError::Failure(Failure::new(error))
}
