//! `spmdc import`: a JAX program as a program of the language.

use spmdc_driver::errors::CommandError;
use spmdc_driver::sources::SourceTexts;
use spmdc_runtime::errors::trap::{RunCode, RunError};

use crate::options::ImportCommand;
use crate::sources::load;
use spmdc_check::sources::SourceSet;
use spmdc_compiler::sources::import as import_text;

/// Maximum length of a line, where it can be broken.
const COLUMNS: usize = 120;

/// The text of a program that computes what StableHLO text does.
pub fn import(command: &ImportCommand, texts: &mut SourceTexts) -> Result<String, CommandError> {
    let name = command.program.program.display();
    if command.program.program.extension().is_none_or(|extension| extension != "mlir") {
        let message = format!("cannot import `{name}`: expected StableHLO text, in a file whose name ends in .mlir");
        return Err(RunError::new(RunCode::E0703, message).into());
    }
    let parsed = load(&command.program, texts)?;
    let program = import_text(&parsed.set.file(SourceSet::ROOT).text);
    let program = program.map_err(|error| CommandError::Program(vec![error]))?;
    Ok(spmdc_grammar::wrap(&spmdc_grammar::print(&program), COLUMNS))
}
