//! The text of a program in either of its languages, as a set of files with syntax trees.

use spmdc_check::sources::{SourceSet, Sources};
use spmdc_grammar::ast::ProgramNode;
use spmdc_grammar::diagnostic::Diagnostic;

/// Reads a program and its imports, or StableHLO text if the name ends in `.mlir`. Returns all syntax errors; the texts are kept for messages.
pub fn load(name: &str, text: &str, sources: &dyn Sources) -> (SourceSet, Vec<Diagnostic>) {
    if !name.ends_with(".mlir") {
        return SourceSet::load(name, text, sources);
    }
    let is_shipped = |name: &str| spmdc_functions::builtin(name).is_some();
    match spmdc_stablehlo::read(text, SourceSet::ROOT, &is_shipped) {
        Ok(program) => (SourceSet::of_program(name, text, program), Vec::new()),
        Err(error) => (SourceSet::of_program(name, text, ProgramNode::default()), vec![error]),
    }
}
