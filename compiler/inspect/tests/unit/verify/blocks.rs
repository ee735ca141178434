//! Blocks as ranges of each factor.

use spmdc_inspect::verify::blocks::as_box;

#[test]
fn blocks_are_boxes_of_factors_or_none() {
    assert_eq!(as_box(&(4..8), &[1, 12]), Some(vec![0..1, 4..8]));
    assert_eq!(as_box(&(4..8), &[3, 4]), Some(vec![1..2, 0..4]));
    assert_eq!(as_box(&(4..12), &[3, 4]), Some(vec![1..3, 0..4]));
    assert_eq!(as_box(&(6..8), &[3, 4]), Some(vec![1..2, 2..4]));
    assert_eq!(as_box(&(2..8), &[3, 4]), None);
    assert_eq!(as_box(&(12..18), &[2, 3, 6]), Some(vec![0..1, 2..3, 0..6]));
    assert_eq!(as_box(&(0..1), &[]), Some(Vec::new()));
}
