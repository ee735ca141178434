//! Tests of `dce`: unused statements are removed.

use crate::testing::typed;
use spmdc_inspect::print::module;
use spmdc_passes::dce::dce;

#[test]
fn only_what_is_needed_or_has_an_effect_stays() {
    let before = typed(
        "fn main(x: f32[4]) { let a = exp(x); let b = x + x; print(\"{}\", sum(x)); for i in 0..3 { let c = sin(x); } b }",
    );
    let text = module(&dce(before));
    assert!(!text.contains("exp") && !text.contains("for"), "{text}");
    assert!(text.contains("print") && text.contains("sum"), "{text}");
}
