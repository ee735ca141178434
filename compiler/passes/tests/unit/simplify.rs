//! Tests of `simplify`: which identities vanish.

use crate::testing::typed;
use spmdc_inspect::print::module;
use spmdc_passes::simplify::simplify;

#[test]
fn exact_identities_vanish() {
    let text = module(&simplify(typed("fn main(x: f32[4]) { f32(x * 1) / (2 - 1) + 0 }")));
    assert!(!text.contains('*') && !text.contains('/'), "{text}");
    // x + 0 turns -0 into 0.
    assert!(text.contains('+'), "{text}");
}
