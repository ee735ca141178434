//! The reference of functions, generated from the table of signatures.
//!
//! `docs/functions.md` is what [`page`] says; `cargo run -p spmdc-tests --bin functions > docs/functions.md` writes it.

use crate::compare::{Tolerance, difference};
use crate::{engine, wrapped};
use spmdc_compiler::report::functions::{element_types, functions, parameters, program};
use spmdc_ir::call::signature::Signature;
use spmdc_runtime::data::outputs;
use std::fmt::Write as _;
use std::path::Path;

/// `docs/functions.md`
pub fn page() -> Result<String, String> {
    let mut text = "# Functions

This page lists the parameters of each function in order, each with its kind, and its default if there is one. Parameters after `*` are
passed by name only, and `*values` takes all remaining positions. \"Element types\" are the types that the first parameter of the example
can have. Below each example is its output for parameters that count from 0 (`--arg x=iota`). `spmdc explain sum` also shows the factor
rule, and the communication for each way to split the operands. The pages in `docs/rules/` explain the rules.

This page is generated.
"
    .to_string();
    for function in functions() {
        let signature = function.signature();
        let dtypes = element_types(&function).map_or(String::new(), |dtypes| format!(" Element types: {dtypes}."));
        let line = wrapped(&format!("{}{dtypes}", signature.line()), "");
        let _ = write!(text, "\n## `{}`\n\n```text\n{signature}\n```\n\n{line}", function.name);
        let answer = answer(signature).map_err(|error| format!("the example of `{}`: {error}", function.name))?;
        let _ = write!(text, "\n\n```spmd\n{}```\n\n```text\n{answer}```\n", program(signature));
    }
    Ok(text)
}

/// The output of the example; machine code and evaluator must agree.
fn answer(signature: &Signature) -> Result<String, String> {
    let text = program(signature);
    let explained = |failures: &[engine::Failure]| format!("{failures:?}");
    let compilation = engine::compiled("example.spmd", &text, "", None).map_err(|failures| explained(&failures))?;
    let args: Vec<String> = parameters(signature).iter().map(|name| format!("{name}=iota")).collect();
    let inputs = engine::inputs(&compilation, &args, Path::new(""))?;
    let outcome = engine::run(&compilation, &inputs, None).map_err(|failure| explained(&[failure]))?;
    let module = compilation.stages.first().ok_or("there is no typed program")?;
    let expected = engine::evaluated(&text, module, &inputs).map_err(|failure| explained(&[failure]))?;
    for (expected, actual) in expected.iter().zip(&outcome.results) {
        if let Some(text) = difference(expected, actual, Tolerance::sum_of_ones(expected.dtype)) {
            return Err(text);
        }
    }
    let results = compilation.program.map(|program| program.results).unwrap_or_default();
    let mut shown = outcome.printed.into_bytes();
    let arrays: Vec<_> = outcome.results.into_iter().map(Some).collect();
    outputs::print(&mut shown, &results, &arrays).map_err(|error| error.to_string())?;
    String::from_utf8(shown).map_err(|error| error.to_string())
}
