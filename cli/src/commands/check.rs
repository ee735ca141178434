//! `spmdc check`: what is wrong with a program.

use spmdc_compiler::ir::Stage;
use spmdc_compiler::report::named::named_values;
use spmdc_compiler::report::plan::plan;

use crate::Stop;
use crate::options::CheckCommand;
use crate::render::Reporter;
use crate::sources::SourceTexts;

/// Reports everything that is wrong with the program. It is compiled as far as anything can be found to be wrong. Where nothing is,
/// a line says so, and what the program holds and communicates.
pub fn check(command: &CheckCommand, reporter: &Reporter, texts: &mut SourceTexts) -> Result<String, Stop> {
    let compilation = super::compile(&command.program, None, reporter, texts)?;
    if command.quiet {
        return Ok(String::new());
    }
    let module = compilation.stage(Stage::Propagated).ok_or_else(|| super::absent("layouts"))?;
    let values = module.func.params.len() + named_values(&module.func).len();
    let module = compilation.stage(Stage::Optimized).ok_or_else(|| super::absent("partitioned program"))?;
    let program = compilation.program.as_ref().ok_or_else(|| super::absent("program"))?;
    let collectives = plan(module, program).collectives;
    let counted = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let mut text = format!("ok: {}", counted(values, "value"));
    if collectives.is_empty() {
        return Ok(text + ", no collectives\n");
    }
    // Of the device that receives most; a `while` counts once.
    let received = |trips: u64, each: u64| trips.saturating_mul(each);
    let bytes = collectives
        .iter()
        .fold(0u64, |sum, collective| sum.saturating_add(received(collective.trips.unwrap_or(1), collective.received)));
    let known = if collectives.iter().all(|collective| collective.trips.is_some()) { "" } else { " or more" };
    text += &format!(", {}, {}{known} received\n", counted(collectives.len(), "collective"), super::bytes(bytes));
    Ok(text)
}
