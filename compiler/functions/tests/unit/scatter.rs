//! Updates at indices: values, factors and text.

use crate::testing::{self, integers};
use spmdc_abi::ReduceOp;
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::{Infer, Semantics};
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::gather::Gather;
use spmdc_ops::scatter::{Onto, Scatter};

fn places(values: &[i128]) -> Array {
    Array::from_ints(DType::I64, &[values.len()], values)
}

fn scattered(combine: Option<ReduceOp>, onto: Onto, args: &[&Array]) -> Vec<i128> {
    Scatter { places: Gather::new(vec![0], Vec::new(), 0), combine, onto, out: None }.eval(args).unwrap()[0].ints()
}

#[test]
fn updates_apply_in_their_order() {
    let (x, v, i) = (integers(&[3], &[10, 20, 30]), integers(&[3], &[1, 2, 4]), places(&[2, 0, 2]));
    assert_eq!(scattered(None, Onto::Operand, &[&x, &v, &i]), [2, 20, 4]);
    assert_eq!(scattered(Some(ReduceOp::Sum), Onto::Operand, &[&x, &v, &i]), [12, 20, 35]);
    assert_eq!(scattered(Some(ReduceOp::Max), Onto::Identity(vec![4]), &[&v, &i])[2], 4);
    assert_eq!(scattered(Some(ReduceOp::Product), Onto::Identity(vec![4]), &[&v, &i]), [2, 1, 4, 1]);
}

#[test]
fn rows_pass_and_updates_without_an_array_are_reduced() {
    let ty = |dtype, shape: &[usize]| ArrayType::new(dtype, shape);
    let (x, v, i) = (ty(DType::F32, &[9, 4]), ty(DType::F32, &[5, 4]), ty(DType::I64, &[5]));
    let places = || Gather::new(vec![0], Vec::new(), 0);
    let op = Scatter { places: places(), combine: Some(ReduceOp::Sum), onto: Onto::Operand, out: None };
    assert_eq!(op.factors(&[&x, &v, &i], &[&x]).describe(), "ab,cb,c->ab, c is needed whole");
    let op = Scatter { places: places(), combine: Some(ReduceOp::Sum), onto: Onto::Identity(vec![9, 4]), out: None };
    assert_eq!(op.infer(&[&v, &i]).unwrap(), std::slice::from_ref(&x));
    assert_eq!(op.factors(&[&v, &i], &[&x]).describe(), "cb,c->ab, c is reduced by sum");
}

#[test]
fn the_call_of_a_dump_gives_the_same() {
    let mut build = testing::builder();
    let v = Term::Array(testing::parameter(&mut build, DType::F32, &[5]));
    let i = Term::Array(testing::parameter(&mut build, DType::I64, &[5]));
    let named = [("of", Term::Str("max".into())), ("shape", testing::ints(&[7])), ("dims", testing::ints(&[0]))];
    testing::call(&mut build, "scatter", &[v, i], &named).unwrap();
    assert_eq!(testing::printed(&build), ["scatter(a, b, of=\"max\", shape=(7,), dims=(0,), at=0)"]);
}
