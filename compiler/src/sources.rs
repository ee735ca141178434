//! The text of a program in either of its languages, as a set of files with syntax trees.

use spmdc_check::sources::{SecondNames, SourceSet, Sources};
use spmdc_grammar::ast::ProgramNode;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_stablehlo::JaxProgram;

/// The ending of names of StableHLO texts.
const ENDING: &str = ".mlir";

/// The line of Python, `model.py:12`, from which JAX made the part of a StableHLO text that ends at this offset, if its locations say it.
pub fn python_line(name: &str, text: &str, end: usize) -> Option<String> {
    if name.ends_with(ENDING) { spmdc_stablehlo::python_line(text, end) } else { None }
}

/// Reads a program and its imports, or StableHLO text if the name ends in `.mlir`. Returns all syntax errors; the texts are kept for messages.
pub fn load(name: &str, text: &str, sources: &dyn Sources) -> (SourceSet, Vec<Diagnostic>) {
    if !name.ends_with(ENDING) {
        return SourceSet::load(name, text, sources);
    }
    let is_shipped = |name: &str| spmdc_functions::builtin(name).is_some();
    let (read, errors) = match spmdc_stablehlo::read(text, SourceSet::ROOT, &is_shipped) {
        Ok(read) => (read, Vec::new()),
        Err(error) => (JaxProgram::default(), vec![error]),
    };
    let second_names = SecondNames { params: read.param_paths, results: read.result_paths };
    (SourceSet::of_program(name, text, read.program, second_names), errors)
}

/// The program of the language that StableHLO text becomes, for people.
pub fn import(text: &str) -> Result<ProgramNode, Diagnostic> {
    let is_shipped = |name: &str| spmdc_functions::builtin(name).is_some();
    spmdc_stablehlo::import(text, SourceSet::ROOT, &is_shipped)
}
