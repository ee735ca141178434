//! Compilation with the lints and the communication budget of a program.

use spmdc_check::sources::SourceSet;
use spmdc_compiler::pipeline::{self, Compilation, Options};
use spmdc_compiler::report::lints::{Policy, findings};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::{Diagnostic, Severity};
use spmdc_grammar::span::Span;
use spmdc_ir::program::Stage;

use crate::errors::CommandError;

/// Compiles a program, and gives each list of its warnings to `report` as soon as it is complete. Returns them, too.
pub fn compile(
    set: &SourceSet,
    options: &Options,
    policy: &Policy,
    report: &mut dyn FnMut(&[Diagnostic]),
) -> Result<(Compilation, Vec<Vec<Diagnostic>>), CommandError> {
    let compilation = pipeline::compile(set, options).map_err(CommandError::Program)?;
    let mut reported = Vec::new();
    let mut report = |warnings: Vec<Diagnostic>| {
        report(&warnings);
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
            findings(module, policy).into_iter().partition(|found| found.severity == Severity::Error);
        report(warnings);
        if !errors.is_empty() {
            return Err(CommandError::Program(errors));
        }
    }
    Ok((compilation, reported))
}
