//! Norms of vectors.

use crate::testing::{self, floats, int};
use spmdc_ir::call::term::Term;

#[test]
fn norms_of_a_vector() {
    let norm =
        |named: &[(&str, Term)]| testing::run("norm", &[floats(&[2], &[3.0, -4.0])], |x| x, named).unwrap().floats();
    assert_eq!(norm(&[]), [5.0]);
    assert_eq!(norm(&[("ord", int(1))]), [7.0]);
    assert_eq!(norm(&[("ord", Term::Float(f64::INFINITY))]), [4.0]);
}
