//! Windows as separate dimensions: values and text.

use crate::testing::{self, integers};
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::Semantics;
use spmdc_layout::patch::PatchDim;
use spmdc_window_ops::patches::{Patches, patches};

#[test]
fn elements_come_where_they_are_asked_for() {
    let x = integers(&[3, 2], &[0, 1, 10, 11, 20, 21]);
    let op = Patches { dims: vec![PatchDim::all(0, 3, (2, 1, 1))], at: 1 };
    let y = op.eval(&[&x]).unwrap().swap_remove(0);
    assert_eq!((y.shape(), y.ints()), (&[2, 2, 2][..], vec![0, 1, 10, 11, 10, 11, 20, 21]));
}

#[test]
fn the_call_of_a_dump_gives_the_same() {
    let mut build = testing::builder();
    let x = testing::parameter(&mut build, spmdc_layout::types::DType::F32, &[8, 3]);
    patches(&mut build, x, &[(0, (3, 2, 1))], 2).unwrap();
    assert_eq!(testing::printed(&build), ["patches(a, dims=[(0, 3, 3, 2, 1, 1)], at=2)"]);
    let dims = Term::List(vec![testing::ints(&[0, 3, 3, 2, 1, 1])]);
    build.set_exact(true);
    testing::call(&mut build, "patches", &[Term::Array(x)], &[("dims", dims), ("at", testing::int(2))]).unwrap();
    assert_eq!(build.blocks()[0].stmts[0].op(), build.blocks()[0].stmts[1].op());
}
