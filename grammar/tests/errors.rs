//! Common mistakes and their reports: each program with its messages, places and help.

#![allow(clippy::unwrap_used)]

use spmdc_grammar::parse;
use spmdc_grammar::span::{FileId, Lines, line_column};

/// One line per diagnostic: `line:column code message | label | help`.
fn report(source: &str) -> String {
    let (_, diagnostics) = parse(source, FileId::default());
    let lines = diagnostics.iter().map(|diagnostic| {
        let (line, column) = line_column(source, diagnostic.span.start as usize);
        let mut text = format!("{line}:{column} {} {}", diagnostic.code, diagnostic.message);
        for label in &diagnostic.labels {
            let (line, column) = line_column(source, label.span.start as usize);
            text += &format!("\n    {line}:{column} {}", label.text);
        }
        if !diagnostic.label.is_empty() {
            text += &format!("\n    here: {}", diagnostic.label);
        }
        if let Some(help) = &diagnostic.help {
            text += &format!("\n    help: {help}");
        }
        text
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn messages() {
    let programs = [
        "fn f(x) {\n  let y = x\n  let z = y;\n  z\n}",
        "fn f(x) { let y = x }",
        "fn f(x) {\n  u = 1\n  u += 2\n  g(u)\n  h(u)\n}",
        "const N = 4\nconst M = 5;",
        "fn f(x) { if x = 1 { 2 } else { 3 } }",
        "fn f(x) { a < b < c }",
        "fn f(x) { let y = g(x;\n  y }",
        "fn f(x) {\n  if c {\n    g(x);\n  h(x)\n}\n\nfn g(x) { x }",
        "fn f(x) { g(x]; }",
        "fn f(x) { x) }",
        "fn f(key) { key }",
        "fn f(mesh) { x }",
        "fn f(x) { transfer(x, mesh) }",
        "fn P(x) { x }",
        "fn f(mut x) { x }",
        "fn f(x) { return x; }",
        "fn f(x) { let mut x = 0; x++; }",
        "fn f(x) { for i in range(10) { x } }",
        "fn f(x): x + 1",
        "def f(x) { x }",
        "let x = 3;\nfn f() {}",
        "fn f() {};\nfn g() {}",
        "fn f() {}\nx = 3;\nfn g() {}",
        "fn f(x) { if x { 1 } else { 2 } + 1; }",
        "fn f(x) { else { 1 } }",
        "fn f(x) { x[1..3] }",
        "fn f(p) { w: p.w, b: p.b }",
        "fn f(x) { a and b }",
        "fn f(x) { fn g() {} }",
        "const N: i32 = 4;",
        "fn f(x: g32[4) { x }",
        "fn f(x: f32[4@]) { x }",
        "fn f(x: f32[4@X, ]{U:}) { x }",
        "fn f(x: f32[4]{U:X}{U:Y}) { x }",
        "fn f(x -> f32 { x }",
        "fn f(x) { f(x, axis=) }",
        "fn f(x) { x. }",
        "fn f(x) { x + }",
        "fn f(x) { x y }",
        "fn f(x) { f(x y) }",
        "fn f(x) { 3 = x; }",
        "fn f(x) { f(x) = 3; }",
        "fn f(x) { a + b = 3; }",
        "fn f(x) { P(X, replicated=Y) }",
        "fn f(x) { \"a\\qb\" }",
        "fn f(x) { \"abc }",
        "fn f(x) { 12abc + 1f32 + 0xgg + 99999999999999999999 }",
        "fn f(x) { x # comment }",
        "fn f(x) { a × b }",
        "import nn;",
        "mesh X = 2;",
        "mesh (X);",
        "type T { w: f32 };",
        "fn f(x)",
        "fn",
        "fn f(x) { let = 3; }",
        "fn f(x) { let y: = 3; }",
        "fn f(x) { while { } }",
        "fn f(x) { x ?  }",
        "fn f(x) { |a, a + 1 }",
    ];
    let mut text = String::new();
    for program in programs {
        text += &format!("----\n{program}\n>>>>\n{}\n", report(program));
    }
    insta::assert_snapshot!(text);
}

/// The codes and lines alone.
fn lines(source: &str) -> Vec<usize> {
    let (_, diagnostics) = parse(source, FileId::default());
    diagnostics.iter().map(|diagnostic| line_column(source, diagnostic.span.start as usize).0).collect()
}

#[test]
fn every_mistake_is_reported_once() {
    let source = "const N = ;
fn f(x) {
  let y = ;
  let z = y + 1;
  z = z +;
  if z {
    g(z z);
    h(z);
    let = 3;
  }
  z[1;
  z
}
fn g(x {
  x
}
fn h(x) {
  let a = # 3;
  a }
type = f32;
fn i(x) -> { x }
fn j(x) { x x }
";
    assert_eq!(lines(source), [1, 3, 5, 7, 9, 11, 14, 18, 20, 21, 22]);
}

#[test]
fn what_is_right_is_kept() {
    let source = "fn f(x) { let a = 1; let b = ; let c = 3; c }\nfn g(x { x }\nconst N = 4\nfn h(x) { x }\n";
    let (program, diagnostics) = parse(source, FileId::default());
    assert_eq!(diagnostics.len(), 3, "{diagnostics:?}");
    let text = spmdc_grammar::print(&program);
    assert_eq!(text, "fn f(x) {\n  let a = 1;\n  let c = 3;\n  c\n}\n\nconst N = 4;\n\nfn h(x) { x }\n");
}

#[test]
fn columns_count_characters() {
    assert_eq!(line_column("a\nbé = 1", 5), (2, 3));
    assert_eq!(line_column("abc", 99), (1, 4));
    assert_eq!(line_column("", 0), (1, 1));
    let text = "a\n\nb\n";
    let lines = Lines::new(text);
    let places = [0, 1, 2, 3, 4, 5, 9].map(|at| lines.line_column(text, at));
    assert_eq!(places, [(1, 1), (1, 2), (2, 1), (3, 1), (3, 2), (4, 1), (4, 1)]);
}
