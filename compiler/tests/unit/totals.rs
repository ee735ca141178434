//! Tests of `totals`: how often what stands in loops counts.

use crate::testing::compiled;
use spmdc_compiler::totals::{Collective, collectives, cost};
use spmdc_ir::program::Stage;

/// The only collective of a program with this loop, and the operations of the program.
fn summed(sums: &str) -> (Collective, f64) {
    let source = format!(
        "mesh (Y = 4);
        fn main(x: f32[16384@Y], n: i32) {{ let mut s = 1.0; {sums} s }}"
    );
    let compilation = compiled(&source);
    let module = compilation.stage(Stage::Partitioned).unwrap();
    let mut found = collectives(module);
    assert_eq!(found.len(), 1, "{found:?}");
    (found.remove(0), cost(module))
}

#[test]
fn loops_with_unknown_bounds_count_for_whoever_compares() {
    let step = "s = sum(exp(x * s));";
    let (known, of_known) = summed(&format!("for i in 0..160 {{ {step} }}"));
    let (unknown, of_unknown) = summed(&format!("for i in 0..n {{ {step} }}"));
    let (nested, of_nested) = summed(&format!("for i in 0..n {{ for j in 0..10 {{ {step} }} }}"));
    assert_eq!((known.trips, known.assumed_trips), (Some(160), 160));
    assert_eq!((unknown.trips, unknown.assumed_trips), (None, 16));
    assert_eq!((nested.trips, nested.assumed_trips), (None, 160));
    // The operations inside count once for each trip, as the collective does.
    let (_, once) = summed(step);
    let is_near = |cost: f64, times: f64| (cost / once - times).abs() < 0.01 * times;
    assert!(is_near(of_known, 160.0) && is_near(of_nested, 160.0), "{of_known} {of_nested} {once}");
    assert!(is_near(of_unknown, 16.0), "{of_unknown} {once}");
}
