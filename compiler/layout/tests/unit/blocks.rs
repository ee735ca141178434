//! Which layouts are slices of others, and which devices exchange blocks.

use crate::testing::mesh;
use spmdc_layout::blocks::{exchange_axes, is_slice};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::AxisSet;

fn rows(axes: &[u8]) -> Sharding {
    Sharding::closed(vec![axes.to_vec(), Vec::new()])
}

#[test]
fn a_finer_split_is_a_slice() {
    let mesh = mesh();
    assert!(is_slice(&[8, 16], &rows(&[]), &rows(&[1]), &mesh));
    assert!(is_slice(&[8, 16], &rows(&[0]), &rows(&[0, 1]), &mesh));
    assert!(!is_slice(&[8, 16], &rows(&[1]), &rows(&[0, 1]), &mesh));
    // Blocks of 5 and 5 contain some blocks of 2, 2, 2, 2, 2 only in part.
    assert!(!is_slice(&[10, 16], &rows(&[0]), &rows(&[0, 1]), &mesh));
}

#[test]
fn blocks_move_along_the_axes_that_split_them() {
    let mesh = mesh();
    assert_eq!(exchange_axes(&[8, 16], &rows(&[0, 1]), &rows(&[0]), &mesh), AxisSet::of(1));
    assert_eq!(exchange_axes(&[8, 16], &rows(&[0]), &rows(&[1]), &mesh), AxisSet::of(0));
    // Devices of both halves hold parts of the first 5 rows.
    assert_eq!(exchange_axes(&[10, 16], &rows(&[0, 1]), &rows(&[0]), &mesh), AxisSet::all(2));
    assert!(exchange_axes(&[0, 16], &rows(&[0]), &rows(&[1]), &mesh).is_empty());
}
