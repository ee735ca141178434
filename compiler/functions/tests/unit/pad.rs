//! Padding: the continuation of an array, its runs, and values.

use crate::testing::{self, int, integers};
use spmdc_ir::array::Array;
use spmdc_ir::call::term::Term;
use spmdc_ir::rules::Semantics;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::pad::{Pad, runs};

#[test]
fn arrays_go_on_as_numpy_says() {
    // The index of the element at each place, from three before the array to three behind it.
    let sources = |mode: &str, size: usize| {
        let x = integers(&[size], &(0..size as i128).collect::<Vec<_>>());
        let named = [("pad_width", int(3)), ("mode", Term::Str(mode.into()))];
        testing::run("pad", &[x], |x| x, &named).unwrap().ints()
    };
    assert_eq!(sources("edge", 2), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(sources("reflect", 3), [1, 2, 1, 0, 1, 2, 1, 0, 1]);
    assert_eq!(sources("symmetric", 2), [1, 1, 0, 0, 1, 1, 0, 0]);
    assert_eq!(sources("wrap", 2), [1, 0, 1, 0, 1, 0, 1, 0]);
    let steps: Vec<(usize, i64, usize)> =
        runs([2, 1, 0, 0, 0, 1, 3].into_iter()).iter().map(|run| (run.start, run.step, run.len)).collect();
    assert_eq!(steps, [(2, -1, 3), (0, 0, 2), (1, 1, 1), (3, 1, 1)]);
}

#[test]
fn the_operand_lies_inside_the_frame() {
    let pad = Pad { widths: vec![(1, 0), (0, 2)], value: 7 };
    let x = Array::new(ArrayType::new(DType::I32, &[1, 2]), vec![1, 2]);
    let y = pad.eval(&[&x]).map(|mut all| all.swap_remove(0));
    assert_eq!(y.map(|y| (y.ty.shape, y.bits)).ok(), Some((vec![2, 4], vec![7, 7, 7, 7, 1, 2, 7, 7])));
}
