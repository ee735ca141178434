//! Tests of `share_halos`: which halos are fetched once.

use crate::testing::compiled;
use spmdc_compiler::report::plan::collectives;
use spmdc_inspect::print::module;
use spmdc_ir::program::Stage;

/// The program on X = 2, Y = 2 at stage `partitioned`, and the bytes that are received in each exchange.
fn partitioned(source: &str) -> (String, Vec<u64>) {
    let source = format!("mesh (X = 2, Y = 2);\nfn main({source} }}");
    let compilation = compiled(&source);
    let partitioned = compilation.stage(Stage::Partitioned).unwrap();
    (module(partitioned), collectives(partitioned).iter().map(|found| found.received).collect())
}

#[test]
fn overlapping_halos_are_fetched_once() {
    let (text, received) = partitioned("u: f32[32@X]) { roll(u, 1) + roll(u, 3) - roll(u, 2)");
    assert_eq!(received, [12], "{text}");
    assert!(text.contains("margins(u, parts=[(0, -1, [[(-3, 0), (13, 16)]])])"), "{text}");
    let (text, received) = partitioned("u: f32[32@X]) { roll(u, 1) + roll(u, 3) - roll(u, -2)");
    assert_eq!(received, [12, 8], "{text}");
}

#[test]
fn what_gains_nothing_stays() {
    let (text, received) = partitioned("u: f32[32@X]) { roll(u, 1) - roll(u, -2)");
    assert_eq!((received, text.matches("halo(").count()), (vec![4, 8], 2), "{text}");
    // The elements between two distant places are not fetched.
    let (text, received) = partitioned("u: f32[64@X]) { (u[2:3], u[30:31], roll(u, 1))");
    assert!(received.iter().sum::<u64>() <= 12, "{received:?} {text}");
}

#[test]
fn a_window_of_a_window_is_one() {
    let (text, received) = partitioned("u: f32[8@X, 8@Y]) { roll(roll(u, 1, axis=0), 1, axis=1)");
    assert_eq!((received, text.matches(" = window(").count()), (vec![28], 1), "{text}");
    // Along one dimension, too; nothing is fetched twice where both are needed.
    let (text, received) = partitioned("u: f32[32@X]) { let v = roll(u, 1); v * roll(v, 1)");
    assert_eq!((received, text.matches("window(u").count()), (vec![8], 2), "{text}");
}

#[test]
fn halos_are_shared_within_a_block() {
    let body =
        "u: f32[32@X]) { let mut s = u; for i in 0..3 { s += roll(s, 1) + roll(s, 2) + roll(u, 1) + roll(u, 2); } s";
    let (text, received) = partitioned(body);
    // Those of `u` in front of the loop.
    assert_eq!(received, [8, 8], "{text}");
    assert!(text.find("margins(u") < text.find("for "), "{text}");
    let (text, _) = partitioned("u: f32[32@X], c: bool) { if c { roll(u, 1) } else { roll(u, 2) }");
    assert_eq!(text.matches("halo(").count(), 2, "{text}");
}
