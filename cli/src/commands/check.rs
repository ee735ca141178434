//! `spmdc check`: what is wrong with a program.

use spmdc_compiler::check;

use crate::Stop;
use crate::options::ProgramOptions;
use crate::render::Reporter;
use crate::sources::{SourceTexts, load};

/// Reports everything that is wrong with the program.
pub fn check(options: &ProgramOptions, reporter: &Reporter, texts: &mut SourceTexts) -> Result<(), Stop> {
    let loaded = load(options, texts)?;
    let (_, warnings) = check::check(&loaded.set, &loaded.options).map_err(Stop::Program)?;
    reporter.diagnostics(&warnings, texts);
    Ok(())
}
