//! Tests of `cse`: equal expressions are computed once.

use crate::testing::typed;
use spmdc_inspect::print::module;
use spmdc_passes::cse::cse;

#[test]
fn equal_expressions_are_computed_once_where_they_are_visible() {
    let source =
        "fn main(x: f32[4], c: bool) { let a = if c { sin(x) } else { cos(x) }; let b = sin(x); a + b + sin(x) }";
    let text = module(&cse(typed(source)));
    // One in the branch, which is not visible outside, and one for the other two.
    assert_eq!(text.matches("sin(").count(), 2, "{text}");
}

#[test]
fn an_index_is_checked_once() {
    let text = module(&cse(typed("fn main(x: f32[4], i: i32) { let mut u = x; u[i] += 1; u[i] + x[i - 1] }")));
    assert_eq!(text.matches("check_index(").count(), 2, "{text}");
}
