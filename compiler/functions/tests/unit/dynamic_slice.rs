//! Regions whose place is an operand.

use crate::testing::{self, integers};
use spmdc_grammar::codes::Code;
use spmdc_ir::call::term::Term;
use spmdc_layout::types::DType;

fn called(name: &'static str, i: i128, region: Term, is_update: bool) -> Vec<i128> {
    let mut build = testing::builder();
    let x = testing::parameter(&mut build, DType::I32, &[5]);
    let start = testing::parameter(&mut build, DType::I32, &[]);
    let v = testing::parameter(&mut build, DType::I32, &[2]);
    let starts = Term::Tuple(vec![Term::Array(start)]);
    let args = if is_update { [Term::Array(x), Term::Array(v), starts] } else { [Term::Array(x), starts, region] };
    let result = testing::call(&mut build, name, &args, &[]).unwrap();
    let Term::Array(result) = result else { panic!("{result:?}") };
    let arrays = [integers(&[5], &[0, 1, 2, 3, 4]), integers(&[], &[i]), integers(&[2], &[8, 9])];
    testing::evaluate(&build, &[x, start, v], &arrays, result).ints()
}

#[test]
fn regions_are_moved_inside() {
    let cut = |i| called("dynamic_slice", i, testing::ints(&[2]), false);
    assert_eq!([cut(1), cut(4), cut(-2), cut(-9)], [[1, 2], [3, 4], [3, 4], [0, 1]]);
    let put = |i| called("dynamic_update_slice", i, Term::Nothing, true);
    assert_eq!([put(1), put(9), put(-4)], [[0, 8, 9, 3, 4], [0, 1, 2, 8, 9], [0, 8, 9, 3, 4]]);
}

#[test]
fn known_starts_are_slices() {
    let mut build = testing::builder();
    let x = Term::Array(testing::parameter(&mut build, DType::F32, &[8, 3]));
    let starts = testing::ints(&[-3, 1]);
    testing::call(&mut build, "dynamic_slice", &[x, starts, testing::ints(&[4, 3])], &[]).unwrap();
    assert_eq!(testing::printed(&build), ["a[4:8, :]"]);
}

#[test]
fn a_region_must_fit() {
    let code = |starts: &[i64], sizes: &[i64]| {
        let mut build = testing::builder();
        let x = Term::Array(testing::parameter(&mut build, DType::F32, &[8, 3]));
        let args = [x, testing::ints(starts), testing::ints(sizes)];
        testing::call(&mut build, "dynamic_slice", &args, &[]).unwrap_err().code
    };
    assert_eq!([code(&[0, 0], &[9, 1]), code(&[0], &[1, 1]), code(&[0, 0], &[1])], [Code::E0205; 3]);
    assert_eq!(code(&[0, 0], &[-1, 1]), Code::E0218);
}
