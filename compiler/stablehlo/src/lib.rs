//! JAX programs, as the StableHLO text that JAX prints, with Shardy's shardings: read into syntax trees of the language.
//!
//! [`read`] makes a program of the language, in which every node has the place of its operation in the text. So all that follows, from the
//! checker to reports, works as for a program that was written.

#![warn(missing_docs)]

mod attributes;
mod build;
mod cursor;
mod generic;
mod gspmd;
mod lower;
mod parse;
mod resources;
mod tidy;
mod tree;
mod types;

use spmdc_grammar::ast::ProgramNode;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::FileId;

/// The program that computes what a module does. `is_shipped` says whether the language has a function of this name, so that no function of
/// the module hides it. E0110 for a text that is not a module, E0111 for what the language cannot express.
pub fn read(text: &str, file: FileId, is_shipped: &dyn Fn(&str) -> bool) -> Result<ProgramNode, Diagnostic> {
    let mut module = parse::parse(text, file)?;
    gspmd::to_shardy(&mut module)?;
    lower::program(&module, is_shipped)
}
