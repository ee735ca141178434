//! Tests of `insert_reshards::sums`: which sums over devices are combined, and when.

use crate::testing::compiled;
use spmdc_compiler::report::plan::collectives;
use spmdc_ir::program::Stage;

/// The collectives of a function on X = 2, Y = 4: kind, trips, bytes.
fn plan(function: &str) -> Vec<String> {
    let source = format!("mesh (X = 2, Y = 4);\n{function}");
    let compilation = compiled(&source);
    let found = collectives(compilation.stage(Stage::Partitioned).unwrap());
    let trips = |trips: Option<u64>| trips.map_or("?".to_string(), |trips| trips.to_string());
    found.iter().map(|c| format!("{} {}x{}", c.kind.name(), trips(c.trips), c.bytes)).collect()
}

#[test]
fn sums_of_sums_are_combined_once() {
    let products = |result: &str| {
        plan(&format!("fn main(x: f32[8, 16@Y], y: f32[16@Y, 8], z: f32[16@Y, 8], s: f32) {{ {result} }}"))
    };
    assert_eq!(products("x @ y + x @ z"), ["all_reduce 1x256"]);
    assert_eq!(products("0.5 * (x @ y) - (x @ z).T / 3"), ["all_reduce 1x256"]);
    assert_eq!(products("reshard(x @ y + x @ z, P(Y, _))"), ["reduce_scatter 1x256"]);
    assert_eq!(products("x @ y + x @ z * 0.5 + 1"), ["all_reduce 1x256"]);
    // A total is smaller than its addends.
    assert_eq!(products("sum(x @ y)"), ["all_reduce 1x4"]);
    // Not linear, or linear with a number that may be infinite.
    assert_eq!(products("exp(x @ y) + x @ z").len(), 2);
    assert_eq!(products("s * (x @ y) + x @ z").len(), 2);
    // Addends may be larger than their sum, and overflow when they are scaled.
    assert_eq!(products("2 * (x @ y) + x @ z").len(), 2);
    assert_eq!(products("(x @ y) / 0.5 + x @ z").len(), 2);
    // A list of numbers is known, and so are values computed from it; integers wrap.
    assert_eq!(products("flip([1, -0.5], axis=0) * (x @ y)[:, :2] + (x @ z)[:, :2]"), ["all_reduce 1x64"]);
    assert_eq!(products("[1, 2] * (x @ y)[:, :2] + (x @ z)[:, :2]").len(), 2);
    assert_eq!(products("i32(s) * sum(i32(x), axis=1) + sum(i32(z), axis=0)"), ["all_reduce 1x32"]);
    // The addend is needed whole by itself, too.
    assert_eq!(products("{ let a = x @ y; a + x @ z + exp(a) }").len(), 2);
}

#[test]
fn a_sum_of_several_users_is_combined_where_it_is_small() {
    let products = |result: &str| {
        let body = format!("{{ let s = x @ y; {result} }}");
        plan(&format!("fn main(x: f32[8, 16@Y], y: f32[16@Y, 8], a: f32[8, 8], b: f32[8, 8]) {body}"))
    };
    assert_eq!(products("sum(s + s - s / 4)"), ["all_reduce 1x4"]);
    assert_eq!(products("exp((s + s)[:2])"), ["all_reduce 1x64"]);
    assert_eq!(products("let t = s.T - a; sum(t + t / 2 - s)"), ["all_reduce 1x4"]);
    // Each user needs a small part.
    assert_eq!(products("(sum(s + a), sum(s.T - b, axis=0))"), ["all_reduce 1x4", "all_reduce 1x32"]);
    // One user needs all of it: the others take it from there.
    assert_eq!(products("let t = s + a; let u = s - b; t * u"), ["all_reduce 1x256"]);
    assert_eq!(products("(sum(s + a), s - b)"), ["all_reduce 1x256"]);
    assert_eq!(products("(sum(s + a), exp(s))"), ["all_reduce 1x256"]);
}

#[test]
fn sums_over_different_axes_are_added_in_parts() {
    let sums =
        |sizes: &str, result: &str| plan(&format!("fn main(a: f32[8@X, {sizes}], b: f32[16@Y, {sizes}]) {result}"));
    let added = "{ exp(sum(a, axis=0) + sum(b, axis=0)) }";
    assert_eq!(sums("16, 8", added), ["reduce_scatter 1x128", "reduce_scatter 1x256", "all_gather 1x64"]);
    // No dimension divides by eight.
    assert_eq!(sums("63, 9", added), ["all_reduce 1x2268"]);
    assert_eq!(sums("16, 8", "{ sum(sum(a, axis=0) - 0.5 * sum(b, axis=0)) }"), ["all_reduce 1x4"]);
}

#[test]
fn what_a_loop_adds_up_is_combined_behind_it() {
    let gradients = |body: &str| {
        plan(&format!("fn main(x: f32[6, 8@X, 16], d: f32[6, 8@X, 4]) {{ let mut g = zeros(f32[16, 4]); {body} g }}"))
    };
    let step = "g = g + x[i].T @ d[i];";
    assert_eq!(gradients(&format!("for i in 0..6 {{ {step} }}")), ["all_reduce 1x256"]);
    assert_eq!(gradients(&format!("for k in 0..3 {{ for i in 0..6 {{ {step} }} }}")), ["all_reduce 1x256"]);
    assert_eq!(gradients(&format!("let mut i = 0; while i < 6 {{ {step} i = i + 1; }}")), ["all_reduce 1x256"]);
    assert_eq!(gradients("for i in 0..6 { g = 0.9 * g + 0.1 * (x[i].T @ d[i]); }"), ["all_reduce 1x256"]);
    assert_eq!(gradients("for i in 0..6 { g = tanh(g + x[i].T @ d[i]); }"), ["all_reduce 6x256"]);
    let until = "let mut i = 0; while g[0, 0] < 6 { g = g + x[i].T @ d[i]; i = i + 1; }";
    assert!(gradients(until).contains(&"all_reduce ?x256".to_string()));
}

#[test]
fn a_target_that_is_split_along_the_axis_gets_its_part() {
    let source = "fn main(x: f32[6, 8@X, 16], d: f32[6, 8@X, 4]) -> f32[16@X, 4] {
        let mut g = zeros(f32[16, 4]);
        for i in 0..6 { g = g + x[i].T @ d[i]; }
        reshard(g, P(X, _))
    }";
    assert_eq!(plan(source), ["reduce_scatter 1x256"]);
}
