//! `spmdc check`: what is wrong with a program.

use crate::Stop;
use crate::options::ProgramOptions;
use crate::render::Reporter;
use crate::sources::SourceTexts;

/// Reports everything that is wrong with the program. It is compiled as far as anything can be found to be wrong.
pub fn check(options: &ProgramOptions, reporter: &Reporter, texts: &mut SourceTexts) -> Result<(), Stop> {
    super::compile(options, None, reporter, texts).map(drop)
}
