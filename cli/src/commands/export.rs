//! `spmdc export`: a program as StableHLO text, for XLA.

use spmdc_driver::errors::{CommandError, absent};
use spmdc_driver::render::Reporter;
use spmdc_driver::sources::SourceTexts;
use spmdc_export::HloText;
use spmdc_ir::program::Stage;

use crate::link;
use crate::options::ExportCommand;

/// Writes the text of the program, with a warning for each statement that it leaves out.
pub fn export(command: &ExportCommand, reporter: &Reporter, texts: &mut SourceTexts) -> Result<(), CommandError> {
    let compilation = super::compile(&command.program, Some(Stage::Differentiated), reporter, texts)?;
    let module = compilation.stage(Stage::Differentiated).ok_or_else(|| absent("program"))?;
    let HloText { text, warnings } = spmdc_export::export(module).map_err(CommandError::Program)?;
    reporter.diagnostics(&warnings, texts);
    match &command.output {
        Some(output) => Ok(link::write(text.as_bytes(), output)?),
        None => crate::print(&text),
    }
}
