//! Differences of neighbouring elements.

use crate::testing::{self, int, integers};
use spmdc_ir::call::term::Term;

#[test]
fn differences_of_differences() {
    let run =
        |named: &[(&str, Term)]| testing::run("diff", &[integers(&[4], &[1, 4, 9, 16])], |x| x, named).unwrap().ints();
    assert_eq!(run(&[]), [3, 5, 7]);
    assert_eq!(run(&[("n", int(2))]), [2, 2]);
    assert_eq!(run(&[("n", int(5))]), [0; 0]);
    assert_eq!(run(&[("prepend", int(0)), ("append", int(25))]), [1, 3, 5, 7, 9]);
}
