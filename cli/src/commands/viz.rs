//! `spmdc viz`: draws the layouts of parameters, results and named values.

use spmdc_driver::errors::CommandError;
use spmdc_driver::render::Reporter;
use spmdc_driver::reports;
use spmdc_driver::sources::SourceTexts;
use spmdc_ir::program::Stage;
use spmdc_layout::draw::Style;

use crate::options::VizCommand;

/// The drawings, each under its value's name and type.
pub fn viz(
    command: &VizCommand,
    style: Style,
    reporter: &Reporter,
    texts: &mut SourceTexts,
) -> Result<String, CommandError> {
    let compilation = super::compile(&command.program, Some(Stage::Propagated), reporter, texts)?;
    reports::viz::viz(&compilation, &command.values, style)
}
