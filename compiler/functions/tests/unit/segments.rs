//! Sums and maxima of segments, and counts.

use crate::testing::{self, int, integers};

#[test]
fn rows_outside_of_the_segments_are_left_out() {
    let (x, i) = (integers(&[4], &[1, 2, 4, 8]), integers(&[4], &[1, -1, 1, 7]));
    let run = |name| testing::run(name, &[x.clone(), i.clone()], |terms| terms, &[("num_segments", int(3))]);
    assert_eq!(run("segment_sum").unwrap().ints(), [0, 5, 0]);
    assert_eq!(run("segment_max").unwrap().ints(), [i128::from(i32::MIN), 4, i128::from(i32::MIN)]);
}

#[test]
fn negative_numbers_count_as_zero() {
    let found = testing::run("bincount", &[integers(&[4], &[1, -5, 1, 7])], |terms| terms, &[("length", int(3))]);
    assert_eq!(found.unwrap().ints(), [1, 2, 0]);
}
