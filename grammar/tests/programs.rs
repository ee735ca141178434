//! Programs that use every form of the language once: they parse without complaint, print to canonical text, and that
//! text reads as the same tree.

#![allow(clippy::unwrap_used)]

use spmdc_grammar::span::FileId;
use spmdc_grammar::{parse, print};

#[track_caller]
fn prints(source: &str, expected: &str) {
    let (program, diagnostics) = parse(source, FileId::default());
    assert!(diagnostics.is_empty(), "{source}\n{diagnostics:#?}");
    let text = print(&program);
    assert_eq!(text.trim_end(), expected.trim_end());
    let (again, diagnostics) = parse(&text, FileId::default());
    assert!(diagnostics.is_empty(), "{text}\n{diagnostics:#?}");
    assert_eq!(print(&again), text);
}

#[track_caller]
fn is_canonical(source: &str) {
    prints(source, source);
}

/// An expression that prints as it was written.
#[track_caller]
fn same(expr: &str) {
    is_canonical(&format!("const c = {expr};"));
}

#[test]
fn items() {
    is_canonical(
        r#"mesh (X = 2, Y = 4);
mesh (data: auto = 4, model: explicit = 2);
mesh all (stage = 2, data = 4);
mesh first = all[stage = 0];
mesh other (a = 4) devices [0, 1, 2, 3];

const N = 4096;
const EPS = 1e-5;

type Layer<I, O> = { w: f32[I, O], b: f32[O] };
type Pair = (f32, i32[3]);

import "nn.spmd" as nn;
import "std/nn.spmd";

/// A dense layer.
///
/// Nothing more.
fn dense<B, I, O>(x: f32[B, I], p: Layer<I, O>) -> f32[B, O] { x @ p.w + p.b }

fn relu(x) { maximum(x, 0) }

manual(X) fn total(x: f32[N@X]) -> f32 { psum(sum(x), X) }

manual fn all(x: f32[N@(X, Y)]{V:(X, Y)}) -> f32{U:X} { x }

fn main(x: f32[64@data, 64] on first, p: nn.Layer<2 * N, N / 8> on first) -> (f32[64@data, 64], f32) on second {
  g(transfer(f(x), second))
}
"#,
    );
}

#[test]
fn statements() {
    is_canonical(
        r#"fn main(x: f32[N@X, M@_], { w, b }: Layer<N, M>, (a, c), _) {
  let y: f32[N@X, M@_] = f(x);
  let { w, b: bias } = p;
  let (a, (c, _)) = t;
  let mut u = x;
  u = step(u);
  u[0, :] = 1.0;
  u[idx] += v;
  p.w = w;
  t.0.1 -= 1;
  (a, b) = (b, a);
  a *= 2;
  a /= 2;
  a //= 2;
  a %= 2;
  a @= w;
  a **= 2;
  a &= 2;
  a |= 2;
  a ^= 2;
  a <<= 2;
  a >>= 2;
  for i in 0..STEPS {
    u = step(u);
  }
  let losses = for i in 0..30 collect {
    let l = loss(p);
    p = upd(p);
    l
  };
  while norm(r) > 1e-6 {
    r = next(r);
    if norm(r) < 1 {
      r = zeros_like(r);
    }
  }
  if c { f(x) } else if d { g(x) } else {
    h(x);
  }
  print("loss = {}\n", l);
  {
    let inner = 1;
    f(inner);
  }
  let z = if c { a } else { b };
  -x
}
"#,
    );
}

#[test]
fn block_values() {
    // What has no value is a statement; what ends in a brace and begins a statement takes no operator after it.
    is_canonical(
        "fn f(x) {
  while c {}
}

fn g(x) { if c { a } else { b } }

fn h(x) {
  if c { a } else { b };
}

fn i(x) { (while c {}) }

fn j(x) {
  if c {
    f();
  }
  -x
}

fn k(x) { { w: x } }

fn l(w, b) { { w, b } }

fn m(w) { { w, } }

fn n(w) { { w } }

fn o() {}
",
    );
    prints("fn f(x) { if c { f(); } (x) }", "fn f(x) {\n  if c {\n    f();\n  }\n  x\n}");
    prints("fn f(x) { for i in 0..3 collect { i } }", "fn f(x) { for i in 0..3 collect { i } }");
}

#[test]
fn operators() {
    same("a || b && c == d | e ^ f & g << h + i * -j ** k");
    // Each pair of parentheses is needed.
    same("a ** (b * (c + (d << (e & (f ^ (g | (h == (i && (j || k)))))))))");
}

#[test]
fn expressions() {
    for expr in [
        "a + b - c",
        "a - (b - c)",
        "-x ** 2",
        "(-x) ** 2",
        "2 ** -1",
        "a ** b ** c",
        "(a ** b) ** c",
        "!a && -b < c",
        "--x",
        "a // 2 % 3 @ b / 4",
        "(a < b) == c",
        "x.sum(axis=0).T",
        "x[i]",
        "x[-1]",
        "x[1:-1, :, ::2]",
        "x[..., None]",
        "x[:n]",
        "x[n:]",
        "x[a + 1:b:c, idx]",
        "t.0",
        "t.0.1.w",
        "f(x)(y)[0].z",
        "grad(f, argnums=(0, 1))(x, y)",
        "vmap(f, in_axes=(0, _))",
        "tree_map(|a, g| a - lr * g, p, g)",
        "|x: f32[3], (a, b)| x",
        "|| 1",
        "f32(x)",
        "cast(x, bf16)",
        "zeros(f32[3, 4@X])",
        "iota(f32[4, 8], axis=1)",
        "full(f32[3]{U:Y} on first, 7)",
        "full(f32[3]{R:Y}{V:X}, 7)",
        "(f32)[3]",
        "()",
        "(a,)",
        "(a, b)",
        "[]",
        "[a, [b, c]]",
        "{ w: a, b }",
        "{ key: k, w: 1 }",
        "P()",
        "P(X, _, (Y, Z), ?)",
        "P((X, ?), unreduced=Y)",
        "P(unreduced=(X, Y))",
        "P(_, X, reduced=Y)",
        "P(unreduced=X, reduced=(Y, Z))",
        "matmul(a, b, out=P(X, _))",
        "categorical(key=k, type=1)",
        "p.key[0]",
        "true || false",
        "\"a \\\"quoted\\\" \\\\ line\\n\"",
        "18446744073709551615",
        "1.5",
        "1e-5",
        "(2).sum()",
        "f(for i in 0..n collect { i }, {\n  let a = 1;\n  a\n})",
        "1 + (if c { a } else { b }) * 2",
        "(|a| a)(x)",
        "(P)(x)",
        "collect(on, auto, explicit, devices, stage)",
        "f32[(N + 1) * 2, -1 + N // 2, nn.N % 3]",
        "key(42)",
    ] {
        same(expr);
    }
}

#[test]
fn numbers() {
    prints("const c = 1_000;", "const c = 1000;");
    prints("const c = 0xff + 0b11 + 0o17;", "const c = 255 + 3 + 15;");
    prints("const c = 1. + .5 + 1_0.0_1E+5;", "const c = 1.0 + 0.5 + 10.01e+5;");
    prints("const c = x[1.] + f(2.);", "const c = x[1.0] + f(2.0);");
    prints("fn f() { for i in 0..5 {} }", "fn f() {\n  for i in 0..5 {}\n}");
    prints("fn f() { for i in t.0..t.1.0 {} }", "fn f() {\n  for i in t.0..t.1.0 {}\n}");
}

#[test]
fn stage_header() {
    is_canonical(
        "stage partitioned;
mesh (X: auto = 4);

manual(X) fn main(a: f32[8, 16@X], b: f32[16@X, 4]) -> f32[8, 4] {
  let v0: f32[8, 4]{V:X} = einsum(\"ik,kj->ij\", a, b);  // 3:17
  let v1: f32[8, 4] = psum(v0, X);  // 3:17, factor k is split over X
  v1
}
",
    );
}

#[test]
fn comments_keep_their_place() {
    is_canonical(
        "// A header.
//! also: 1x1
mesh (X = 2);

// Before f.
/// Doc of f.
fn f(x) {
  // First.
  let y = x;  // behind y
  // Before the value.
  y  // behind the value
  // At the end.
}

// After everything.
",
    );
}

/// A carriage return alone ends no line, nor the comment that it is in.
#[test]
fn only_newlines_end_lines() {
    let source = "const B = 1;  // one\r// the same\r\n// another\r\nmesh (X = 2);\r\n";
    let (program, diagnostics) = parse(source, FileId::default());
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let printed = print::program(&program);
    assert_eq!(printed, "const B = 1;  // one\r// the same\n\n// another\nmesh (X = 2);\n");
    is_canonical(&printed);
}

#[test]
fn parts_print_alone() {
    use spmdc_grammar::ast::{ExprKind, ItemKind};
    let source = "type T = f32[ 4@X,8 ]{V:Y};\nconst c = matmul( a+1,b,out=P(X ,_) );";
    let (program, _) = parse(source, FileId::default());
    let [ItemKind::Type { ty, .. }, ItemKind::Const { value, .. }] = [&program.items[0].kind, &program.items[1].kind]
    else {
        panic!("{program:?}")
    };
    assert_eq!(spmdc_grammar::print::type_expr(ty), "f32[4@X, 8]{V:Y}");
    assert_eq!(spmdc_grammar::print::expr(value), "matmul(a + 1, b, out=P(X, _))");
    let ExprKind::Call { args, .. } = &value.kind else { panic!("{value:?}") };
    let ExprKind::Sharding(sharding) = &args[2].value.kind else { panic!("{args:?}") };
    assert_eq!(spmdc_grammar::print::sharding(sharding), "P(X, _)");
}

#[test]
fn spans_cover_what_they_name() {
    let source = "fn f(x: f32[4@X]) {\n  let y = (a + b)[0].c(1, axis=2);\n  y.0 ** -z\n}";
    let (program, _) = parse(source, FileId::default());
    let mut texts = Vec::new();
    collect_spans(&format!("{program:?}"), source, &mut texts);
    for expected in [
        source,
        "x: f32[4@X]",
        "f32[4@X]",
        "let y = (a + b)[0].c(1, axis=2);",
        "(a + b)[0].c(1, axis=2)",
        "(a + b)",
        "axis",
        "y.0 ** -z",
        "y.0",
        "0",
        "**",
        "-z",
    ] {
        assert!(texts.contains(&expected.to_string()), "{expected}: {texts:?}");
    }
}

/// The text of every span in the debug form of a tree.
fn collect_spans(debug: &str, source: &str, texts: &mut Vec<String>) {
    for part in debug.split("span: ").skip(1) {
        let range = part.split([',', ' ', '}', ')']).next().unwrap();
        if let Some((start, end)) = range.split_once("..") {
            texts.push(source[start.parse().unwrap()..end.parse().unwrap()].to_string());
        }
    }
}
