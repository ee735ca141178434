//! The table of rules for complex operands, and the functions of `complex.spmd`.

use ComplexRule::{Made, Own, Planes, Products, Refused, Written as InLanguage};
use spmdc_functions::complex::{ComplexRule, FILE, NAMES, TABLE, written};
use spmdc_functions::functions;
use spmdc_grammar::ast::{FnItem, PatternKind};
use spmdc_ir::call::signature::Status;

#[test]
fn every_function_has_a_row() {
    assert!(TABLE.is_sorted_by_key(|(name, _)| name), "rows are found by their names");
    let shipped = functions().filter(|function| match function.signature().status {
        Status::Shipped => true,
        Status::InDumps { .. } => false,
    });
    let mut names: Vec<&str> = shipped.map(|function| function.name).collect();
    // The checker expands these.
    names.extend(["associative_scan", "tree_map", "tree_reduce"]);
    names.sort_unstable();
    names.dedup();
    let rows: Vec<&str> = TABLE.iter().map(|(name, _)| *name).collect();
    let missing: Vec<&&str> = names.iter().filter(|name| !rows.contains(name)).collect();
    let unknown: Vec<&&str> = rows.iter().filter(|name| !names.contains(name)).collect();
    assert!(missing.is_empty() && unknown.is_empty(), "no rows of {missing:?}; rows of unknown {unknown:?}");
}

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
    for (name, rule) in TABLE {
        let Some(function) = functions().find(|function| function.name == *name) else { continue };
        let signature = function.signature();
        let known = |params: &[&str]| params.iter().all(|param| signature.params.iter().any(|own| own.name == *param));
        match rule {
            Planes(params) | Products(params) => assert!(known(params), "`{name}` has no parameters {params:?}"),
            InLanguage => {
                let function = written(name).unwrap_or_else(|| panic!("`complex.spmd` has no `{name}`"));
                let params = parameters(function);
                assert!(known(&params), "`{name}` of `complex.spmd` has other parameters: {params:?}");
            }
            Own | Made | Refused(_) => assert!(written(name).is_none(), "`{name}` is written for nothing"),
        }
    }
    for name in NAMES {
        assert!(written(name).is_some());
    }
    let count = FILE.lines().filter(|line| line.starts_with("fn ")).count();
    assert_eq!(count, NAMES.len());
}
