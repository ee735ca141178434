//! `spmdc check`: reports the errors of a program.

use spmdc_abi::CollectiveKind;
use spmdc_abi::words::bytes;
use spmdc_check::CheckOptions;
use spmdc_compiler::pipeline::Options;
use spmdc_compiler::report::named::named_values;
use spmdc_compiler::report::plan::plan;
use spmdc_driver::errors::{CommandError, absent};
use spmdc_driver::render::Reporter;
use spmdc_driver::reports::plan::{Total, total};
use spmdc_driver::sources::SourceTexts;
use spmdc_ir::program::Stage;

use crate::options::CheckCommand;

/// Reports all errors of the program, which is compiled as far as errors can occur. Without errors, one line gives its memory and
/// communication.
pub fn check(command: &CheckCommand, reporter: &Reporter, texts: &mut SourceTexts) -> Result<String, CommandError> {
    let (compilation, ..) = super::compile_with(&command.program, reporter, texts, |options| {
        let check = CheckOptions { tests: true, ..options.check };
        Options { check, ..options }
    })?;
    if command.quiet {
        return Ok(String::new());
    }
    let (mut values, mut collectives) = (0, Vec::new());
    for of_mesh in compilation.of_meshes() {
        let module = of_mesh.stage(Stage::Propagated).ok_or_else(|| absent("layouts"))?;
        values += module.func.params.len() + named_values(&module.func).len();
        let module = of_mesh.stage(Stage::Optimized).ok_or_else(|| absent("partitioned program"))?;
        let program = of_mesh.program.as_ref().ok_or_else(|| absent("program"))?;
        let found = plan(module, program).collectives.into_iter();
        // A transfer is where it is received.
        collectives.extend(found.filter(|each| each.kind != CollectiveKind::Transfer || each.received > 0));
    }
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let mut text = format!("ok: {}", counted(values, "value"));
    if collectives.is_empty() {
        return Ok(text + ", no collectives\n");
    }
    let Total { received, is_known, .. } = total(&collectives);
    let known = if is_known { "" } else { " or more" };
    text += &format!(", {}, {}{known} received\n", counted(collectives.len(), "collective"), bytes(received));
    Ok(text)
}
