//! Reductions: types, factors, values and text.

use crate::testing::{self, floats, int, integers, ints};
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::{Infer, Semantics};
use spmdc_layout::factors::FactorKind;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::reduce::Reduce;

fn x() -> Array {
    floats(&[2, 3], &[1.0, 5.0, 2.0, 4.0, -3.0, 6.0])
}

fn reduced(name: &'static str, named: &[(&str, Term)]) -> Array {
    testing::run(name, &[x()], |x| x, named).unwrap()
}

#[test]
fn dimensions_vanish_or_stay() {
    assert_eq!(reduced("sum", &[]).floats(), [15.0]);
    assert_eq!(reduced("sum", &[("axis", int(0))]).floats(), [5.0, 2.0, 8.0]);
    assert_eq!(reduced("max", &[("axis", int(-1))]).floats(), [5.0, 6.0]);
    let kept = reduced("min", &[("axis", ints(&[0, 1])), ("keepdims", Term::Bool(true))]);
    assert_eq!((kept.shape(), kept.floats()), (&[1, 1][..], vec![-3.0]));
    assert_eq!(reduced("prod", &[("axis", int(1))]).floats(), [10.0, -72.0]);
}

#[test]
fn small_integers_widen() {
    let bytes = Array::from_ints(DType::U8, &[3], &[200, 100, 7]);
    let sum = testing::run("sum", &[bytes], |x| x, &[]).unwrap();
    assert_eq!((sum.dtype(), sum.ints()), (DType::U32, vec![307]));
    let bools = Array::from_ints(DType::Bool, &[3], &[1, 1, 0]);
    let sum = testing::run("sum", std::slice::from_ref(&bools), |x| x, &[]).unwrap();
    assert_eq!((sum.dtype(), sum.ints()), (DType::I32, vec![2]));
    assert_eq!(testing::run("all", &[bools], |x| x, &[]).unwrap().ints(), [0]);
    assert_eq!(testing::run("any", &[integers(&[2], &[0, 3])], |x| x, &[]).unwrap().ints(), [1]);
}

#[test]
fn nothing_has_a_sum_but_no_maximum() {
    let empty = floats(&[0, 2], &[]);
    let sum = testing::run("sum", std::slice::from_ref(&empty), |x| x, &[("axis", int(0))]).unwrap();
    assert_eq!(sum.floats(), [0.0, 0.0]);
    let error = testing::run("max", std::slice::from_ref(&empty), |x| x, &[]).unwrap_err();
    assert_eq!(error.code, Code::E0205);
    assert_eq!(testing::run("argmin", &[empty], |x| x, &[]).unwrap_err().code, Code::E0205);
    assert_eq!(testing::run("sum", &[x()], |x| x, &[("axis", int(2))]).unwrap_err().code, Code::E0206);
}

#[test]
fn the_first_winner_counts_and_nan_wins() {
    assert_eq!(reduced("argmax", &[("axis", int(1))]).ints(), [1, 2]);
    assert_eq!(reduced("argmin", &[]).ints(), [4]);
    let ties = floats(&[5], &[2.0, 7.0, f64::NAN, 7.0, f64::NAN]);
    assert_eq!(testing::run("argmax", std::slice::from_ref(&ties), |x| x, &[]).unwrap().ints(), [2]);
    assert_eq!(testing::run("argmin", &[ties], |x| x, &[]).unwrap().ints(), [2]);
    let equal = integers(&[3], &[4, 4, 1]);
    assert_eq!(testing::run("argmax", &[equal], |x| x, &[]).unwrap().ints(), [0]);
}

#[test]
fn reduced_factors_leave_partial_values() {
    let ty = ArrayType::new(DType::F32, &[4, 8]);
    let op = Reduce::new(ReduceOp::Max, &[1], true);
    let result = op.infer(&[&ty]).unwrap();
    let rule = op.factors(&[&ty], &[&result[0]]);
    assert_eq!(rule.operands[0][0], rule.results[0][0]);
    assert_eq!(rule.factors[rule.operands[0][1][0]].kind, FactorKind::Reduce(ReduceOp::Max));
    assert_eq!(rule.factors[rule.results[0][1][0]].size, 1);
    assert_eq!(op.print(&["v1".into()], &Mesh::default()), "max(v1, axis=(1,), keepdims=true)");
}
