//! Keys with a number folded in.

use crate::testing::words;
use spmdc_ir::array::Array;
use spmdc_ir::rules::Semantics;
use spmdc_kernel::number;
use spmdc_layout::types::DType;
use spmdc_ops::fold_in::FoldIn;

#[test]
fn keys_are_those_of_jax() {
    let key = Array::scalar(DType::Key, number::cast(DType::U64, DType::Key, 42).unwrap());
    let folded = FoldIn.eval(&[&key, &Array::scalar(DType::U32, 7)]).unwrap();
    assert_eq!(words(folded[0].bits[0]), [2547012911, 1371500959]);
}
