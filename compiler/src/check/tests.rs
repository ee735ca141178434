//! Small programs and what the checker makes of them.

#![allow(clippy::unwrap_used)]

use super::sources::{NoSources, SourceSet};
use super::{CheckOptions, check};
use crate::ir::print;

fn options() -> CheckOptions {
    CheckOptions::default()
}

/// The program's statements without header and braces, trimmed.
fn typed(text: &str) -> String {
    let (set, diagnostics) = SourceSet::load("test.spmd", text, &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:#?}");
    match check(&set, &options()) {
        Ok((module, _)) => print::module(&module),
        Err(diagnostics) => panic!("{diagnostics:#?}"),
    }
}

/// `CODE line` for each error.
fn errors_with(text: &str, options: &CheckOptions) -> Vec<String> {
    let (set, mut diagnostics) = SourceSet::load("test.spmd", text, &NoSources);
    if diagnostics.is_empty() {
        diagnostics = check(&set, options).err().unwrap_or_default();
    }
    let line = |offset: u32| spmdc_grammar::span::line_column(text, offset as usize).0;
    diagnostics.iter().map(|d| format!("{} {}: {}", d.code, line(d.span.start), d.message)).collect()
}

#[track_caller]
fn assert_errors(text: &str, expected: &[&str]) {
    let found = errors_with(text, &options());
    let fits =
        found.len() == expected.len() && found.iter().zip(expected).all(|(found, wanted)| found.starts_with(wanted));
    assert!(fits, "found {found:#?}, expected {expected:#?}");
}

#[test]
fn calls_are_expanded() {
    let text = "
        fn twice(x) { let y = 2 * x; y }
        fn main(x: f32[4, 8]) -> f32[4, 8] { twice(sin(x)) }";
    assert_eq!(
        typed(text),
        "stage typed;
fn main(x: f32[4,8]) -> f32[4,8] {
  let v0: f32[4,8] = sin(x);
  let v1: f32 = f32(2.0);
  let y: f32[4,8] = v1 * v0;
  y
}
"
    );
}

#[test]
fn unknown_names_are_all_reported() {
    let text = "
        fn helper(x: f32[4]) -> f32[4] { sine(x) }
        fn main(x: f32[4]) -> f32[4] { let value = x; valeu }";
    assert_errors(text, &["E0101 2", "E0101 3"]);
}

#[test]
fn structs_are_their_leaves() {
    let text = "
        type Layer<I> = { w: f32[I], b: f32 };
        fn apply<I>(p: Layer<I>, x: f32[I]) -> f32[I] { p.w * x + p.b }
        fn main(p: Layer<3>, t: (f32[3], i32)) -> { y: f32[3], n: i32 } { { y: apply(p, t.0), n: t.1 } }";
    let printed = typed(text);
    assert!(
        printed.contains("fn main(p: { w: f32[3], b: f32 }, t: (f32[3], i32)) -> { y: f32[3], n: i32 } {"),
        "{printed}"
    );
    assert!(printed.contains("= p.w * t.0;"), "{printed}");
    assert!(printed.contains("{ y: v1, n: t.1 }"), "{printed}");
}

#[test]
fn literals_in_carried_variables_adapt() {
    let text = "
        fn main(x: f64[4]) -> (f64[4], i32) {
          let mut total = 0.0;
          let mut n = 0;
          let mut y = x;
          for i in 0..10 { y = y * y; total = total + y; n += i; }
          (total, n)
        }";
    assert_errors(text, &["E0212 6"]);
    let text = text.replace("total = total + y;", "y = y + total; total = 2.5;").replace("(total, n)", "(y, n)");
    let printed = typed(&text);
    assert!(printed.contains("let mut total: f32 = "), "{printed}");
    assert!(printed.contains("for i in 0..10 {"), "{printed}");
}

#[test]
fn one_mistake_does_not_hide_another() {
    let text = "
        fn main(x: f32[4], y: f32[5]) -> f32[4] {
          let a = x + y;
          let b = a * 2;
          let c = x + sin;
          let d: f32[3] = x;
          b + c + d
        }";
    assert_errors(text, &["E0204 3", "E0210 5", "E0203 6"]);
}

#[test]
fn size_parameters_are_inferred_and_checked() {
    let text = "
        fn f<N, M>(a: f32[N, 2 * M], b: f32[M]) -> f32[N, M] { N * b }
        fn main(a: f32[4, 6], b: f32[3]) -> f32[4, 3] { f(a, b) }";
    assert_errors(text, &["E0203 2: the result of `f` is declared `f32[4,3]`, the value is `f32[3]`"]);
    assert_errors("fn f<N>() -> f32[N] { 1.0 } fn main() -> f32 { f() }", &["E0209 1"]);
    assert_errors("const N = 10; fn main(x: f32[N / 4]) -> f32 { 1.0 }", &["E0208 1"]);
}

#[test]
fn branches_join() {
    let text = "
        fn main(c: bool, x: f32[4]) -> (f32[4], f32) {
          let mut y = x;
          let z = if c { y = y + 1; 2 } else { 0.5 };
          (y, z)
        }";
    let printed = typed(text);
    assert!(printed.contains("let (z, y): (f32, f32[4]) = if c {"), "{printed}");
    assert_errors("fn main(c: bool, x: f32[4]) -> f32 { if x { 1.0 } else { 2.0 } }", &["E0214 1"]);
    assert_errors("fn main(c: bool, x: f32[4]) -> f32[4] { if c { x } else { 2.0 } }", &["E0213 1"]);
}
