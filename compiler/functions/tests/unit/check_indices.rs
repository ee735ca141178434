//! Checked indices, and the trap of one out of bounds.

use crate::testing::integers;
use spmdc_ir::rules::Semantics;
use spmdc_layout::types::DType;
use spmdc_ops::check_indices::CheckIndices;

#[test]
fn indices_count_from_both_ends() {
    let checked = CheckIndices { extent: 4 }.eval(&[&integers(&[3], &[3, -4, -1])]).unwrap();
    assert_eq!((checked[0].dtype(), checked[0].ints()), (DType::I64, vec![3, 0, 3]));
}

#[test]
fn the_least_invalid_index_is_reported() {
    let trap = CheckIndices { extent: 4 }.eval(&[&integers(&[4], &[3, 7, -5, 4])]).unwrap_err();
    assert_eq!(trap.message, "index -5 is out of bounds for a dimension of size 4");
    assert!(CheckIndices { extent: 0 }.eval(&[&integers(&[1], &[0])]).is_err());
    assert!(CheckIndices { extent: 0 }.eval(&[&integers(&[0], &[])]).is_ok());
}
