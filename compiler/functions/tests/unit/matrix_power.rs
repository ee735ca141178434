//! Powers of matrices.

use crate::testing::{self, integers};
use spmdc_functions::matrix_power::power;
use spmdc_layout::types::DType;

#[test]
fn powers_are_repeated_products() {
    let of = |n: i64| {
        let mut build = testing::builder();
        let x = testing::parameter(&mut build, DType::I32, &[2, 2]);
        let result = power(&mut build, x, n).unwrap();
        testing::evaluate(&build, &[x], &[integers(&[2, 2], &[1, 1, 1, 0])], result).ints()
    };
    assert_eq!(of(0), [1, 0, 0, 1]);
    assert_eq!(of(1), [1, 1, 1, 0]);
    assert_eq!(of(10), [89, 55, 55, 34]);
}
