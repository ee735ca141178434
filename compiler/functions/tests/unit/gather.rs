//! Elements at indices: types, factors and text.

use crate::testing;
use spmdc_grammar::codes::Code;
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::{Infer, Semantics};
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::gather::Gather;

fn ty(dtype: DType, shape: &[usize]) -> ArrayType {
    ArrayType::new(dtype, shape)
}

#[test]
fn dimensions_of_the_indices_stand_where_they_are_put() {
    let (x, i) = (ty(DType::F32, &[8, 100, 4]), ty(DType::I64, &[5, 6]));
    let shape = |at: usize| Gather::new(vec![1], Vec::new(), at).infer(&[&x, &i]).unwrap()[0].shape.clone();
    assert_eq!((shape(0), shape(1), shape(2)), (vec![5, 6, 8, 4], vec![8, 5, 6, 4], vec![8, 4, 5, 6]));
    assert_eq!(Gather::new(vec![1], Vec::new(), 3).infer(&[&x, &i]).unwrap_err().code, Code::E0206);
}

#[test]
fn indexed_dimensions_are_reduced_and_all_others_pass() {
    let op = Gather::new(vec![1], vec![(0, 0)], 0);
    let args = [&ty(DType::F32, &[8, 100, 4]), &ty(DType::I64, &[8, 6])];
    let results = op.infer(&args).unwrap();
    assert_eq!(results[0].shape, [8, 6, 4]);
    let rule = op.factors(&args, &[&results[0]]);
    assert_eq!(rule.describe(), "adc,ab->abc, d is reduced by sum");
}

#[test]
fn the_call_of_a_dump_gives_the_same() {
    let mut build = testing::builder();
    let x = Term::Array(testing::parameter(&mut build, DType::F32, &[2, 3]));
    let i = Term::Array(testing::parameter(&mut build, DType::I64, &[2, 5]));
    let batch = Term::Tuple(vec![testing::ints(&[0, 0])]);
    testing::call(&mut build, "gather", &[x, i], &[("dims", testing::ints(&[1])), ("batch", batch)]).unwrap();
    let op = Gather::new(vec![1], vec![(0, 0)], 0);
    assert_eq!(build.blocks()[0].stmts[0].op(), Some(&op.into()));
    assert_eq!(testing::printed(&build), ["gather(a, b, dims=(1,), batch=((0, 0),), at=0)"]);
}
