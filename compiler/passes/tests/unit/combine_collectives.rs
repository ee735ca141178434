//! Tests of `combine_collectives`: which collectives become one.

use crate::testing::compiled;
use spmdc_compiler::report::plan::collectives;
use spmdc_inspect::print::module;
use spmdc_ir::program::Stage;

const PARAMS: &str = "x: f32[8@Y, 16@_], y: f32[8@Y, 32@_], z: f32[8@X, 64@_], n: i32[8@Y]";

/// The program on X = 2, Y = 4 at stage `optimized`: its text, and the bytes of its collectives.
fn optimized(params: &str, body: &str) -> (String, Vec<u64>) {
    let source = format!("mesh (X = 2, Y = 4);\nfn main({params}) {{ {body} }}");
    let compilation = compiled(&source);
    let optimized = compilation.stage(Stage::Optimized).unwrap();
    let bytes = collectives(optimized).iter().map(|found| found.bytes).collect();
    (module(optimized), bytes)
}

fn bytes(body: &str) -> Vec<u64> {
    optimized(PARAMS, body).1
}

#[test]
fn independent_sums_are_one() {
    let (text, found) = optimized(PARAMS, "(sum(x, axis=0), sum(y, axis=0))");
    assert_eq!(found, [64 + 128], "{text}");
    assert!(text.contains("all_reduce(v0, v1, to=[P(_), P(_)])"), "{text}");
    assert_eq!(bytes("(max(x, axis=0), 2 * sum(x), max(y), sum(y))"), [4 + 4, 64 + 4]);
    let gathers = "(reshard(x, P()), reshard(2 * y, P()))";
    assert_eq!(bytes(gathers), [128 + 256]);
}

#[test]
fn what_differs_or_depends_stays_apart() {
    assert_eq!(bytes("(sum(x, axis=0), sum(z, axis=0))"), [64, 256]);
    assert_eq!(bytes("(sum(x, axis=0), max(y, axis=0))"), [64, 128]);
    assert_eq!(bytes("(sum(x, axis=0), sum(n))"), [64, 4]);
    assert_eq!(bytes("let s = sum(x, axis=0); sum(x * s * s)"), [64, 4]);
    // Blocks move to other devices, then they are gathered.
    let (text, _) = optimized(PARAMS, "(reshard(x, P(X)), reshard(y, P(X)))");
    assert_eq!([text.matches("collective_permute(").count(), text.matches("all_gather(").count()], [2, 1], "{text}");
}

#[test]
fn levels_of_two_chains_are_combined() {
    let body = "let a = sum(x, axis=0); let c = a * a + 1; let b = sum(y, axis=0); let d = b * b;
        (sum(x * c, axis=0), sum(y * d, axis=0))";
    let (text, found) = optimized(PARAMS, body);
    assert_eq!(found, [192, 192], "{text}");
    // The statement that needs the first sum has moved after both.
    let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
    assert!(place("all_reduce(") < place("let c:") && place("let c:") < place("let d:"), "{text}");
    // An existing chain ends first.
    let body = "let a = sum(x, axis=0); let c = sum(x * a * a, axis=0); (c, sum(y, axis=0))";
    assert_eq!(bytes(body), [64, 192]);
}

#[test]
fn effects_keep_their_order() {
    let (text, found) = optimized(PARAMS, "let a = sum(x); print(\"one\"); let b = sum(y); print(\"{} {}\", a, b); a");
    assert_eq!(found, [8], "{text}");
    assert!(text.find("one") < text.find("all_reduce"), "{text}");
    assert_eq!(bytes("let a = sum(x); print(\"{}\", a); let b = sum(y); print(\"{}\", b); a"), [4, 4]);
    assert_eq!(bytes("let a = sum(x); if a > 0 { print(\"more\"); } (a, sum(y))"), [4, 4]);
}

#[test]
fn blocks_keep_their_own() {
    let body = "let mut s = 0.0; let mut t = 0.0;
        for i in 0..3 { s = sum(x * s); t = sum(y * t) + 1; } (s, t, sum(x), sum(y))";
    let (text, found) = optimized(PARAMS, body);
    assert_eq!(found, [8, 8], "{text}");
    // The loop needs the first sum.
    let body = "let mut s = sum(x); for i in 0..3 { s = s * s; } (s, sum(y))";
    assert_eq!(bytes(body), [4, 4]);
}

#[test]
fn large_ones_gain_nothing() {
    let params = |columns: usize| format!("x: f32[8@Y, {columns}@_], y: f32[8@Y, {columns}@_]");
    let body = "(sum(x, axis=0), sum(y, axis=0), sum(2 * x + y, axis=0))";
    assert_eq!(optimized(&params(8192), body).1, [64 << 10, 32 << 10]);
    assert_eq!(optimized(&params(8193), body).1, [4 * 8193; 3]);
    let gathers = "(reshard(x, P()), reshard(y, P()))";
    assert_eq!(optimized(&params(1024), gathers).1, [16 << 10]);
    assert_eq!(optimized(&params(1025), gathers).1, [8 * 1025; 2]);
}

#[test]
fn what_waits_holds_little() {
    let body = "let u = exp(x); let a = sum(u); let v = u / a; let w = exp(y); let b = sum(w); (v, w / b)";
    let params = |rows: usize| format!("x: f32[{rows}@Y, 16@_], y: f32[{rows}@Y, 16@_]");
    assert_eq!(optimized(&params(1 << 16), body).1, [8]);
    assert_eq!(optimized(&params(1 << 17), body).1, [4, 4]);
}
