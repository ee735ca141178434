//! Blocks of dimensions that do not divide.

use crate::testing::mesh;
use spmdc_layout::sharding::{DimSharding, block_range, blocks_hold_whole};
use std::ops::Range;

const Y: u8 = 1;

#[test]
fn parts_lie_where_the_whole_does() {
    let y = DimSharding::closed(vec![Y]);
    let lengths = |dim: &DimSharding, size| dim.blocks(size, &mesh()).iter().map(Range::len).collect::<Vec<_>>();
    let inner = y.part(32, (1, 1), 30, &mesh());
    assert_eq!((inner.display(&mesh()).as_str(), lengths(&inner, 30)), ("Y/32+1", vec![7, 8, 8, 7]));
    let padded = y.part(32, (-1, 1), 34, &mesh());
    assert_eq!((padded.display(&mesh()).as_str(), lengths(&padded, 34)), ("Y/32-1", vec![9, 8, 8, 9]));
    let third = inner.part(30, (2, 3), 9, &mesh());
    assert_eq!((third.display(&mesh()).as_str(), lengths(&third, 9)), ("Y/32+3:3", vec![2, 3, 2, 2]));
    // The first half has one block of its own for every two blocks of the whole.
    assert_eq!(lengths(&y.part(32, (0, 1), 16, &mesh()), 16), [8, 8, 0, 0]);
    // Every second element: blocks of half the size.
    assert_eq!(y.part(32, (0, 2), 16, &mesh()), y);
}

#[test]
fn blocks_of_a_product_are_blocks_of_its_major_factor() {
    for (major, minor, blocks) in (1..12).flat_map(|a| (1..5).flat_map(move |b| (1..9).map(move |n| (a, b, n)))) {
        let ends = |size: usize, scale: usize| -> Vec<usize> {
            (0..blocks).map(|position| block_range(size, blocks, position).end * scale).collect()
        };
        let are_same = ends(major * minor, 1) == ends(major, minor);
        assert_eq!(blocks_hold_whole(major, minor, blocks), are_same, "{major} * {minor} in {blocks}");
    }
}

#[test]
fn trailing_blocks_are_short_or_empty() {
    let lengths = |size, blocks| (0..blocks).map(|t| block_range(size, blocks, t).len()).collect::<Vec<_>>();
    assert_eq!(lengths(10, 4), [3, 3, 3, 1]);
    assert_eq!(lengths(9, 4), [3, 3, 3, 0]);
    assert_eq!(lengths(10, 8), [2, 2, 2, 2, 2, 0, 0, 0]);
    assert_eq!(lengths(0, 3), [0, 0, 0]);
}
