//! The order of indices.

use spmdc_ir::array::indices;

#[test]
fn indices_are_row_major() {
    let all: Vec<_> = indices(&[2, 2]).collect();
    assert_eq!(all, [[0, 0], [0, 1], [1, 0], [1, 1]]);
    assert_eq!(indices(&[]).count(), 1);
    assert_eq!(indices(&[3, 0]).count(), 0);
}
