//! The table of signatures says what is so: the page that is made of it, and the element types.

use spmdc_abi::DType;
use spmdc_compiler::report::functions::{functions, program};
use spmdc_ir::call::signature::Dtypes;
use spmdc_ir::program::Stage;
use spmdc_tests::engine::compiled;
use spmdc_tests::functions::page;

#[test]
fn the_page_is_what_the_command_prints() {
    crate::assert_page("functions", &page().unwrap());
}

/// The program with another element type for the first one that it names.
fn with_dtype(text: &str, dtype: &str) -> Option<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let first = text.split(|c| !is_word(c)).find(|word| DType::ALL.iter().any(|dtype| dtype.name() == *word))?;
    let words = text.split_inclusive(|c| !is_word(c));
    let replaced = words.map(|piece| {
        let word = piece.trim_end_matches(|c| !is_word(c));
        if word == first { piece.replacen(first, dtype, 1) } else { piece.to_string() }
    });
    Some(replaced.collect())
}

/// Functions that name a type of the same size in their example: another type is paired with itself.
const OF_ONE_SIZE: &[&str] = &["bitcast"];

#[test]
fn element_types_are_those_of_the_table() {
    let mut wrong = Vec::new();
    for function in functions() {
        let signature = function.signature();
        if signature.dtypes == Dtypes::Nothing {
            continue;
        }
        let mut text = program(signature);
        if OF_ONE_SIZE.contains(&function.name) {
            text = text.replace("i32", "f32");
        }
        let accepted = |dtype: &DType| {
            let text = with_dtype(&text, dtype.name()).unwrap_or_else(|| panic!("{text}"));
            compiled("example.spmd", &text, "", Some(Stage::Typed)).is_ok()
        };
        let (is, not): (Vec<DType>, Vec<DType>) = DType::ALL.iter().copied().partition(accepted);
        let listed = |dtypes: &[DType]| dtypes.iter().all(|&dtype| signature.dtypes.contains(dtype));
        if !listed(&is) || not.iter().any(|&dtype| signature.dtypes.contains(dtype)) {
            let names = |dtypes: &[DType]| dtypes.iter().map(|dtype| dtype.name()).collect::<Vec<_>>().join(" ");
            wrong.push(format!("`{}` takes {}, and not {}", function.name, names(&is), names(&not)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Examples whose parameters are compared, are indices, or become complex or real before the function takes them.
const OTHERWISE: &[&str] = &[
    "all",
    "angle",
    "any",
    "assert",
    "axis_index",
    "axis_size",
    "bincount",
    "cast",
    "cholesky",
    "complex",
    "interp",
    "irfft",
    "isclose",
    "key_data",
    "normal",
    "one_hot",
    "select",
    "where",
];

#[test]
fn complex_numbers_are_taken_as_the_table_says() {
    let mut wrong = Vec::new();
    for function in functions().into_iter().filter(|function| !OTHERWISE.contains(&function.name)) {
        let text = program(function.signature());
        let Some(text) = with_dtype(&text, "c64") else { continue };
        let outcome = compiled("example.spmd", &text, "", Some(Stage::Typed));
        let is_refused = !function.signature().complex.is_defined();
        match (outcome, is_refused) {
            (Ok(_), true) => wrong.push(format!("`{}` takes complex numbers: {text}", function.name)),
            (Err(failures), false) => {
                wrong.push(format!("`{}`: {text}{failures:?}", function.name));
            }
            (Err(failures), true) if failures.iter().any(|failure| failure.code != "E0215") => {
                wrong.push(format!("`{}`: {text}{failures:?}", function.name));
            }
            (Ok(_) | Err(_), _) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
