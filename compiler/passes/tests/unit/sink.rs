//! Tests of `sink`: statements run in the only side of an `if` that needs them.

use crate::testing::typed;
use spmdc_ir::program::Stage;
use spmdc_passes::cse::cse;
use spmdc_passes::dce::dce;
use spmdc_passes::sink::sink;

/// The program with this body, and the part of it from the first `if` on.
fn sunk(body: &str) -> (String, String) {
    let params = "x: f32[9, 64], v: f32[64], w: f32[64], n: i32, k: i32, c: bool";
    let mut module = typed(&format!("fn main({params}) {{ {body} }}"));
    module.stage = Stage::Partitioned;
    let text = spmdc_inspect::print::module(&dce(sink(cse(module))));
    let at = text.find(" if ").unwrap_or(text.len());
    (text[..at].to_string(), text[at..].to_string())
}

#[test]
fn a_side_computes_its_own_values() {
    let (before, branch) = sunk("let y = exp(v) * w; let z = if c { y } else { w }; z + v");
    assert!(!before.contains("exp") && branch.contains("exp") && branch.contains(" * "), "{before}{branch}");
    let (before, branch) =
        sunk("let y = exp(v); let z = if c { let t = 2 * w; if n > 3 { y } else { t } } else { w }; z");
    assert!(!before.contains("exp"), "into inner branches, too: {before}{branch}");
    let inner = branch.rfind(" if ").unwrap();
    assert!(branch[inner..].contains("exp") && branch[inner..].contains(" * "), "{branch}");
}

#[test]
fn a_view_is_taken_again() {
    let (before, branch) = sunk("let row = x[n]; let s = sum(row); let z = if s > 3 { row } else { w }; z");
    assert!(before.contains("index(") && branch.contains("index("), "{before}{branch}");
    assert!(!branch.contains("check_index"), "the place is checked once: {branch}");
    // A value that is computed is not computed twice.
    let (before, branch) = sunk("let y = exp(v); let s = sum(y); let z = if s > 3 { y } else { w }; z");
    assert!(before.contains("exp") && !branch.contains("exp"), "{before}{branch}");
}

#[test]
fn other_statements_stay() {
    for body in [
        // Both sides need it, or a statement behind.
        "let y = exp(v); let z = if c { y } else { -y }; z",
        "let y = exp(v); let z = if c { y } else { w }; z + y",
        // It may stop the program.
        "let y = f32(n // k) * v; let q = n // k; let z = if c { f32(q) * exp(w) } else { w }; z + exp(v)",
        // A statement between may change its operand in its place.
        "let a = 2 * v; let y = exp(a); let mut b = a; b[0] = 1; let z = if c { y } else { w }; z + b",
        // Sums take other elements.
        "let y = exp(v); let s = sum(y); let z = if c { s * v } else { w }; z",
    ] {
        let (before, branch) = sunk(body);
        let stays = before.contains("exp") || before.contains("//");
        assert!(stays && !branch.contains("//"), "{body}: {before}{branch}");
    }
}
