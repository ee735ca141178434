//! Windows of arrays: values and text.

use crate::testing::{self, integers};
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::Semantics;
use spmdc_layout::types::DType;
use spmdc_layout::window::{DimMap, WindowMap};
use spmdc_ops::window::Window;

/// The last three of five, then the first two, in a frame of nines.
fn around() -> WindowMap {
    WindowMap { dims: vec![DimMap { size: 5, before: 1, start: 2, step: 1, len: 5, after: 2 }], fill: 9 }
}

#[test]
fn elements_go_round_and_stand_in_a_frame() {
    let x = integers(&[5], &[0, 1, 2, 3, 4]);
    let of = |map| Window { map, halos: Vec::new(), margins: Vec::new() }.eval(&[&x]).unwrap()[0].ints();
    assert_eq!(of(around()), [9, 2, 3, 4, 0, 1, 9, 9]);
    let backwards = DimMap { size: 5, before: 0, start: 4, step: -2, len: 3, after: 0 };
    assert_eq!(of(WindowMap { dims: vec![backwards], fill: 0 }), [4, 2, 0]);
}

#[test]
fn the_call_of_a_dump_gives_the_same() {
    let mut build = testing::builder();
    let x = Term::Array(testing::parameter(&mut build, DType::I32, &[5, 3]));
    let mut map = around();
    map.dims.push(DimMap::identity(3));
    let dims = Term::List(vec![testing::ints(&[5, 1, 2, 1, 5, 2]), Term::Tuple(Vec::new())]);
    testing::call(&mut build, "window", &[x], &[("dims", dims), ("bits", Term::Int(9))]).unwrap();
    assert_eq!(testing::printed(&build), ["window(a, dims=[(5, 1, 2, 1, 5, 2), ()], halos=(), bits=9)"]);
    let wanted = Window { map, halos: Vec::new(), margins: Vec::new() }.into();
    assert_eq!(build.blocks()[0].stmts[0].op(), Some(&wanted));
}
