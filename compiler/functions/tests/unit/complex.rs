//! The rules of signatures for complex operands, and the functions of `complex.spmd`.

use spmdc_functions::complex::{FILE, NAMES, written};
use spmdc_functions::functions;
use spmdc_grammar::ast::{FnItem, PatternKind};
use spmdc_ir::call::complex::{ComplexRule, REAL};

/// The names of the parameters of a function.
fn parameters(function: &FnItem) -> Vec<&str> {
    function
        .params
        .iter()
        .filter_map(|param| if let PatternKind::Name(name) = &param.pattern.kind { Some(name.as_str()) } else { None })
        .collect()
}

#[test]
fn rules_name_parameters_and_functions_that_exist() {
    for function in functions() {
        let (name, signature) = (function.name, function.signature());
        let known = |params: &[&str]| params.iter().all(|param| signature.params.iter().any(|own| own.name == *param));
        match signature.complex {
            ComplexRule::Planes(params) | ComplexRule::Products(params) => {
                assert!(known(params), "`{name}` has no parameters {params:?}")
            }
            ComplexRule::Written => {
                let function = written(name).unwrap_or_else(|| panic!("`complex.spmd` has no `{name}`"));
                let params = parameters(function);
                assert!(known(&params), "`{name}` of `complex.spmd` has other parameters: {params:?}");
            }
            ComplexRule::Own | ComplexRule::Cast | ComplexRule::Made | ComplexRule::Refused(_) => {
                assert!(written(name).is_none(), "`{name}` is written for nothing");
            }
        }
    }
    for name in NAMES {
        assert!(written(name).is_some());
    }
    let count = FILE.lines().filter(|line| line.starts_with("fn ")).count();
    assert_eq!(count, NAMES.len());
}

#[test]
fn the_words_of_the_prelude_are_rules() {
    let planes = ComplexRule::from_words("planes of `x`, `y`");
    assert_eq!(planes, Some(ComplexRule::Planes(&["x", "y"])));
    assert_eq!(ComplexRule::from_words("products of `a`"), Some(ComplexRule::Products(&["a"])));
    assert_eq!(ComplexRule::from_words("in complex.spmd"), Some(ComplexRule::Written));
    assert_eq!(ComplexRule::from_words("refused: real numbers"), Some(ComplexRule::Refused(REAL)));
    assert_eq!(ComplexRule::from_words("refused: write `fft`"), Some(ComplexRule::Refused("write `fft`")));
    assert_eq!(ComplexRule::from_words("some of them"), None);
}
