//! The nearest name to one that is not known.

use spmdc_ir::call::errors::nearest;

#[test]
fn near_names_are_found_and_far_ones_are_not() {
    let names = ["sum", "softmax", "weights", "x"];
    assert_eq!(nearest("sotfmax", names), Some("softmax"));
    assert_eq!(nearest("weigth", names), Some("weights"));
    assert_eq!(nearest("Sum", names), Some("sum"));
    assert_eq!(nearest("X", names), Some("x"));
    assert_eq!(nearest("q", names), None);
    assert_eq!(nearest("xs", names), None);
    assert_eq!(nearest("len", ["log", "n"]), None);
    assert_eq!(nearest("gradient", names), None);
}
