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
mod identifiers;
mod layers;
mod locations;
mod lower;
mod merge_manual;
mod parse;
mod paths;
mod resources;
mod tidy;
mod tree;
mod types;
mod visit;

pub use crate::locations::python_line;

use crate::locations::{named_locations, param_path};
use crate::tree::{Attribute, Attributes, MlirModule, MlirParam, TensorType};
use spmdc_grammar::ast::ProgramNode;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::FileId;
use std::collections::BTreeMap;

/// A module as a program of the language.
#[derive(Debug, Default)]
pub struct JaxProgram {
    /// Its syntax tree.
    pub program: ProgramNode,
    /// The paths of the parameters of `main` in JAX, by their names: `state.params['w']` by `arg1`. Only texts with locations have them.
    pub param_paths: BTreeMap<String, String>,
    /// The paths of the results of `main` in JAX, by their names: `result[0]['loss']` by `2`.
    pub result_paths: BTreeMap<String, String>,
}

/// The program that computes what a module does. `is_shipped` says whether the language has a function of this name, so that no function of
/// the module hides it. E0110 for a text that is not a module, E0111 for what the language cannot express.
pub fn read(text: &str, file: FileId, is_shipped: &dyn Fn(&str) -> bool) -> Result<JaxProgram, Diagnostic> {
    let module = module(text, file)?;
    let program = lower::program(&module, is_shipped, None)?;
    let main = module.functions.iter().find(|function| function.name == "main");
    let locations = named_locations(text);
    let path = |(at, param): (usize, &MlirParam)| {
        let path = param_path(param, &locations).unwrap_or_else(|| param.name.clone());
        let name = format!("arg{at}");
        (path != name).then_some((name, path))
    };
    let param_paths = main.iter().flat_map(|main| &main.params).enumerate().filter_map(path).collect();
    let results = main.iter().flat_map(|main| &main.results).enumerate();
    let path = |(at, (_, attributes)): (usize, &(TensorType, Attributes))| match attributes.get("jax.result_info") {
        Some(Attribute::Text(path)) => Some((at.to_string(), path.clone())),
        Some(_) | None => None,
    };
    Ok(JaxProgram { program, param_paths, result_paths: results.filter_map(path).collect() })
}

/// As [`read`], as a program that a person reads: parameters have their paths as names, with a struct for each tree, and repeated layers
/// are functions.
pub fn import(text: &str, file: FileId, is_shipped: &dyn Fn(&str) -> bool) -> Result<ProgramNode, Diagnostic> {
    lower::program(&module(text, file)?, is_shipped, Some(&named_locations(text)))
}

/// A text as a module with shardings of Shardy alone.
fn module(text: &str, file: FileId) -> Result<MlirModule, Diagnostic> {
    let mut module = parse::parse(text, file)?;
    gspmd::to_shardy(&mut module)?;
    module.functions.iter_mut().for_each(merge_manual::merge);
    Ok(module)
}
