//! `spmdc export`: a program as StableHLO text, for XLA.

use spmdc_export::HloText;
use spmdc_ir::program::Stage;

use crate::CommandError;
use crate::link;
use crate::options::ExportCommand;
use crate::render::Reporter;
use crate::sources::SourceTexts;

/// Writes the text of the program, with a warning for each statement that it leaves out.
pub fn export(command: &ExportCommand, reporter: &Reporter, texts: &mut SourceTexts) -> Result<(), CommandError> {
    let compilation = super::compile(&command.program, Some(Stage::Differentiated), reporter, texts)?;
    let module = compilation.stage(Stage::Differentiated).ok_or_else(|| super::absent("program"))?;
    let HloText { text, warnings } = spmdc_export::export(module).map_err(CommandError::Program)?;
    reporter.diagnostics(&warnings, texts);
    match &command.output {
        Some(output) => Ok(link::write(text.as_bytes(), output)?),
        None => crate::print(&text),
    }
}
