//! The functions that are written in the language: their list and their signatures.

use spmdc_functions::prelude::{FILES, NAMES, function};
use spmdc_ir::call::signature::Dtypes;

#[test]
fn the_prelude_has_the_functions_that_are_listed() {
    for name in NAMES {
        let prelude = function(name).unwrap();
        assert_eq!(prelude.function.name.name, name);
        assert!(prelude.source.starts_with("fn ") && prelude.source.ends_with('}'), "{}", prelude.source);
        assert_eq!(prelude.signature.name, name);
    }
    let functions = FILES.iter().flat_map(|(_, text)| text.lines()).filter(|line| line.starts_with("fn ")).count();
    assert_eq!(functions, NAMES.len());
    assert!(function("sum").is_none());
}

#[test]
fn a_signature_is_what_stands_above_a_function_and_in_its_head() {
    let mean = &function("mean").unwrap().signature;
    let expected =
        "mean(x: array, axis: ints = None, keepdims: bool = false, *, dtype: element type = None, where: mask = None)";
    assert_eq!((mean.to_string().as_str(), mean.line()), (expected, "The mean of the elements."));
    assert_eq!(mean.dtypes, Dtypes::NumbersAndBools);
    assert_eq!(mean.example, "(x: f32[4, 6]) { mean(x, axis=1) }");
}
