//! Places in sorted arrays: values and factors.

use crate::testing::floats;
use spmdc_ir::rules::{Infer, Semantics};
use spmdc_layout::types::{ArrayType, DType};
use spmdc_sort_ops::searchsorted::SearchSorted;

#[test]
fn equal_elements_are_before_or_behind() {
    let (a, v) = (floats(&[5], &[-1.0, 0.0, 0.0, 2.0, f64::NAN]), floats(&[4], &[-0.0, 5.0, f64::NAN, -9.0]));
    let found = |right| SearchSorted { right }.eval(&[&a, &v]).unwrap()[0].ints();
    assert_eq!(found(false), [1, 4, 4, 0]);
    assert_eq!(found(true), [3, 4, 5, 0]);
}

#[test]
fn counts_of_blocks_are_summed() {
    let (a, v) = (ArrayType::new(DType::F32, &[6]), ArrayType::new(DType::F32, &[4, 2]));
    let op = SearchSorted { right: false };
    let result = op.infer(&[&a, &v]).unwrap().remove(0);
    assert_eq!(op.factors(&[&a, &v], &[&result]).describe(), "c,ab->ab, c is reduced by sum");
}
