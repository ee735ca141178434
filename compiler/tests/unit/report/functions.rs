//! Tests of `report::functions`: the rules and exchanges that documentation shows.

use spmdc_compiler::report::functions::{exchanges, rules};
use spmdc_functions::builtin;

#[test]
fn a_reduced_dimension_costs_an_all_reduce() {
    let sum = builtin("sum").unwrap().signature();
    assert_eq!(rules(sum).unwrap(), ["sum(x, axis=(1,)): ab->a, b is reduced by sum"]);
    let exchanges = exchanges(sum).unwrap();
    let kinds = exchanges.iter().map(|(ty, found)| (ty.as_str(), found.iter().map(|one| one.kind.name()).collect()));
    let expected: [(&str, Vec<&str>); 3] =
        [("x: f32[4@X, 6]", vec![]), ("x: f32[4, 6@X]", vec!["all_reduce"]), ("x: f32[4@X, 6@Y]", vec!["all_reduce"])];
    assert_eq!(kinds.collect::<Vec<_>>(), expected);
}
