//! Blocks with the elements around them.

use crate::testing::{self, integers};
use spmdc_ir::rules::Semantics;
use spmdc_layout::patch::PatchDim;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::window::{DimMap, WindowMap};
use spmdc_window_ops::ghosted::Ghosted;

#[test]
fn blocks_overlap() {
    let map = DimMap { before: 1, after: 1, ..DimMap::identity(8) };
    let patch = PatchDim { blocks: 4, ..PatchDim::all(0, 10, (3, 1, 1)) };
    let split = Sharding::closed(vec![vec![1]]);
    let map = WindowMap { dims: vec![map], fill: 9 };
    let op = Ghosted::new(&map, &[patch], &split, &split, &testing::mesh()).unwrap();
    let x = integers(&[8], &[0, 1, 2, 3, 4, 5, 6, 7]);
    let blocks = op.eval(&[&x]).unwrap().swap_remove(0);
    assert_eq!(blocks.ints(), [9, 0, 1, 2, 1, 2, 3, 4, 3, 4, 5, 6, 5, 6, 7, 9]);
    assert_eq!((op.flow.provided, op.flow.received, op.flow.total), (2, 2, 12));
    // The operand needs the layout of the result.
    assert!(Ghosted::new(&map, &[patch], &Sharding::replicated(1), &split, &testing::mesh()).is_none());
}
