//! Tests of `hoist`: which exchanges leave a loop.

use crate::testing::compiled;
use spmdc_compiler::report::plan::collectives;
use spmdc_ir::program::Stage;

/// The trips of the collectives of a function on X = 2, Y = 4.
fn trips(body: &str) -> Vec<Option<u64>> {
    let source =
        format!("mesh (X = 2, Y = 4);\nfn main(x: f32[8@X, 16], w: f32[16@Y, 16]) {{ let mut h = x; {body} }}");
    let compilation = compiled(&source);
    collectives(compilation.stage(Stage::Partitioned).unwrap()).iter().map(|found| found.trips).collect()
}

#[test]
fn what_is_the_same_in_every_trip_is_moved_once() {
    assert_eq!(trips("for i in 0..10 { h = h * sum(w * w); } h"), [Some(1)]);
    assert_eq!(trips("for i in 0..10 { for j in 0..9 { h = h * sum(w + j) + sum(w * w); } } h"), [Some(1), Some(90)]);
    assert_eq!(trips("for i in 0..10 { for j in 0..9 { h = h * sum(w + i); } } h"), [Some(10)]);
    assert_eq!(trips("while h[0, 0] > sum(w) { h = h * sum(w) - 1; } h").iter().filter(|&&t| t == Some(1)).count(), 1);
    // It is unknown whether the branch is taken, and known that the loop never runs.
    assert_eq!(trips("for i in 0..10 { if i > 11 { h = h * sum(w); } } h"), [Some(10)]);
    assert_eq!(trips("for i in 0..0 { h = h * sum(w * w); } h"), [Some(0)]);
    // A division of integers leaves a loop that runs, unless something acts before it.
    let divided = |loops: &str| {
        let n = "let n = i32(x[0, 0]); let mut s = 0; let mut i = 0;";
        trips(&format!("{n} {loops} h + s + i"))
    };
    let sum = "s *= sum(reshard(i32(w) // n, P(Y)));";
    assert_eq!(divided(&format!("for i in 0..10 {{ {sum} }}"))[1..], [Some(1)]);
    assert_eq!(divided(&format!("for i in 0..10 {{ print(\"{{}}\", i); {sum} }}"))[1..], [Some(10)]);
    assert_eq!(divided(&format!("for i in 0..10 {{ s += i % n; {sum} }}"))[1..], [Some(10)]);
    assert_eq!(divided(&format!("while i < n {{ {sum} i += 1; }}"))[1..], [None]);
    assert_eq!(divided("while i < sum(reshard(i32(w) // n, P(Y))) { i += 1; }")[1..], [Some(1)]);
    // The index is checked in the loop.
    assert_eq!(trips("for i in 0..10 { let k = 9 - 9; h = h * sum(w[k]); } h").len(), 1);
}
