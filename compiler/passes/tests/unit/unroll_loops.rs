//! Tests of `unroll_loops`: a short loop that chooses elements by its counter is the statements of its trips.

use crate::testing::typed;
use spmdc_ir::program::Stage;
use spmdc_passes::unroll_loops::unroll_loops;

fn unrolled(source: &str) -> String {
    let mut module = typed(source);
    module.stage = Stage::Partitioned;
    spmdc_inspect::print::module(&unroll_loops(module))
}

/// Whether a loop of these trips over `k` with this body, of arrays `p` and `x` of 64 elements, stays.
fn stays(trips: &str, body: &str) -> bool {
    let params = "x: f32[64], w: f32[40], rows: f32[40, 64], n: i32";
    unrolled(&format!("fn main({params}) {{ let mut p = x; for k in {trips} {{ {body} }} p }}")).contains("for ")
}

#[test]
fn places_are_constants() {
    let text = unrolled(
        "const A = [0.5, 2.0, -1.0];
        fn main(x: f32[64], rows: f32[3, 64]) {
            let mut p = x;
            for k in 0..3 { p = p * A[k] + rows[2 - k]; }
            p
        }",
    );
    assert!(!text.contains("for ") && !text.contains("check_index") && !text.contains(" index("), "{text}");
    for place in ["f32(2.0)", "rows[0:1, :]", "rows[2:3, :]"] {
        assert!(text.contains(place), "expected {place} in {text}");
    }
}

#[test]
fn other_loops_stay() {
    assert!(!stays("0..9", "p = p + w[k] * rows[k];"));
    assert!(!stays("0..9", "p = p + rows[3, k:k + 1];"), "windows, too");
    for (trips, body) in [
        ("0..33", "p = p + w[k];"),
        ("0..n", "p = p + w[k];"),
        ("0..9", "p = p + w[40 - k];"),
        ("0..9", "p = p + w[n];"),
        ("0..9", "p = p / sum(p) + w[k];"),
        ("0..9", "p = p * f32(k);"),
        ("0..9", "p[k] += 1;"),
        ("0..9", "for j in 0..n { p = p + w[k]; }"),
    ] {
        assert!(stays(trips, body), "{trips}: {body}");
    }
}
