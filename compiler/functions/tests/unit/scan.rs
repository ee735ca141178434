//! Running totals: values, types and the totals of blocks.

use crate::testing::{self, floats, int, integers};
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::Semantics;
use spmdc_layout::types::DType;
use spmdc_ops::scan::{BlockTotals, Scan};

fn scanned(name: &'static str, x: &Array, named: &[(&str, Term)]) -> Result<Array, Diagnostic> {
    testing::run(name, std::slice::from_ref(x), |x| x, named)
}

#[test]
fn each_place_has_what_comes_before_it() {
    let x = integers(&[2, 3], &[1, 5, 3, 4, 2, 6]);
    let ints = |name, named: &[(&str, Term)]| scanned(name, &x, named).unwrap().ints();
    assert_eq!(ints("cumsum", &[]), [1, 6, 9, 13, 15, 21]);
    assert_eq!(ints("cumsum", &[("axis", int(1))]), [1, 6, 9, 4, 6, 12]);
    assert_eq!(ints("cumprod", &[("axis", int(0)), ("reverse", Term::Bool(true))]), [4, 10, 18, 4, 2, 6]);
    assert_eq!(ints("cummax", &[("axis", int(-1))]), [1, 5, 5, 4, 4, 6]);
    assert_eq!(ints("cummin", &[]), [1, 5, 3, 1, 2, 3]);
}

#[test]
fn types_are_those_of_reductions() {
    let bools = Array::from_ints(DType::Bool, &[3], &[1, 0, 1]);
    let sums = scanned("cumsum", &bools, &[]).unwrap();
    assert_eq!((sums.dtype(), sums.ints()), (DType::I32, vec![1, 1, 2]));
    assert_eq!(scanned("cummax", &bools, &[]).unwrap_err().code, Code::E0215);
    let nan = floats(&[3], &[1.0, f64::NAN, 3.0]);
    let max = scanned("cummax", &nan, &[]).unwrap().floats();
    assert!(max[0] == 1.0 && max[1].is_nan() && max[2].is_nan());
    assert_eq!(scanned("cumsum", &nan, &[("axis", int(1))]).unwrap_err().code, Code::E0206);
}

#[test]
fn totals_replace_the_blocks_before() {
    let x = integers(&[5], &[1, 2, 3, 4, 5]);
    let totals = BlockTotals { op: ReduceOp::Sum, axis: 0, parts: 4 }.eval(&[&x]).unwrap().remove(0);
    assert_eq!(totals.ints(), [3, 7, 5, 0]);
    let scan = |reverse, totals: &Array| {
        Scan { op: ReduceOp::Sum, axis: 0, reverse, exclusive: false }.eval(&[&x, totals]).unwrap()[0].ints()
    };
    assert_eq!(scan(false, &totals), [1, 3, 6, 10, 15]);
    assert_eq!(scan(true, &totals), [15, 14, 12, 9, 5]);
    assert_eq!(scan(false, &integers(&[4], &[10, 20, 0, 0])), [1, 3, 13, 17, 35]);
}

#[test]
fn an_exclusive_scan_leaves_each_element_out() {
    let x = integers(&[4], &[2, 3, 4, 5]);
    let products = |reverse| Scan { op: ReduceOp::Product, axis: 0, reverse, exclusive: true };
    assert_eq!(products(false).eval(&[&x]).unwrap()[0].ints(), [1, 2, 6, 24]);
    assert_eq!(products(true).eval(&[&x]).unwrap()[0].ints(), [60, 20, 5, 1]);
    let totals = integers(&[2], &[6, 20]);
    assert_eq!(products(false).eval(&[&x, &totals]).unwrap()[0].ints(), [1, 2, 6, 24]);
    assert_eq!(products(true).eval(&[&x, &totals]).unwrap()[0].ints(), [60, 20, 5, 1]);
}
