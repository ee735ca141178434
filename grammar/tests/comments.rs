//! `//` begins a comment or divides: every case that the rule was made for, in both directions.

#![allow(clippy::unwrap_used)]

use spmdc_grammar::span::FileId;
use spmdc_grammar::{parse, print};

/// A program with this body and the comments in it, in a normal form.
fn read(body: &str) -> (String, Vec<String>) {
    let source = format!("mesh (X = 2);\nconst B = 2;\nfn f<H>(x, w, i, n, m, t, p) {{\n{body}\n}}\n");
    let (mut program, diagnostics) = parse(&source, FileId::default());
    assert!(diagnostics.is_empty(), "{source}\n{diagnostics:#?}");
    let comments = program.comments.drain(..).map(|comment| comment.text).collect();
    let text = print(&program);
    let body = text.split_once("p) {").unwrap().1.trim_end().strip_suffix('}').unwrap();
    (body.split_whitespace().collect::<Vec<_>>().join(" "), comments)
}

#[track_caller]
fn divides(body: &str, expected: &str) {
    let (text, comments) = read(body);
    let unparenthesized = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(&text);
    assert!(text == expected || unparenthesized == expected, "{text}");
    assert!(comments.is_empty(), "{body}: {comments:?}");
}

#[track_caller]
fn comments(body: &str, expected: &str, comment: &str) {
    let (text, comments) = read(body);
    assert_eq!(text, expected, "{body}");
    assert_eq!(comments, [comment], "{body}");
}

#[test]
fn divisions() {
    for body in [
        "i // 2",
        "i // n",
        "x // p.w",
        "i // (n - 1)",
        "i // -n",
        "i // size(x)",
        "let k = i // 2; k",
        "let k = i // unseen; k",
        "let k = f(i // 2, axis=unseen); k",
        "let k = f(i // unseen, 2); k",
        "let k = x[i // unseen]; k",
        "let k = x[i // 2, :, ::2, ..., None]; k",
        "let k = x[i // 2:n // 2]; k",
        "let k = x[:n // 2]; k",
        "let k = reshard(i // 2, P(X, _, ?)); k",
        "let k = zeros(f32[n // 2, m@X]); k",
        "let k: f32[n // 2, m@X] on a = x; k",
        "let k: f32[n // unseen]{U:X} = x; k",
        "let k: Layer<n // unseen, 2> on a = x; k",
        "let k: Layer<n // 2> on a = x; k",
        "let k: Layer<n // 2> = x; k",
        "let k = (i // 2, m); k",
        "let k = { w: i // 2, b: m }; k",
        "let k = if i // 2 == 0 { x } else { w }; k",
        "let k = for j in 0..n // 2 collect { x }; k",
        "for j in n // 4..n // 2 { g(x); } x",
        "for j in n // 4..on step m { g(x); } x",
        "for j in n // 4..-on step stream { g(x); } x",
        "while i // 2 > 0 { g(x); } x",
        "let k = i // 2 // 3; k",
        "let k = i // n // m; k",
        "let k = map(|a| a // 2, x); k",
        "let k = map(i // 2, |a| a); k",
        "let k = t.0 // t.1; k",
        "let k = f32(i) // 2.5; k",
    ] {
        divides(body, body);
    }
    divides("i//2", "i // 2");
    divides("let k = i//n; k", "let k = i // n; k");
    divides("let mut k = n; k //= 2; k", "let mut k = n; k //= 2; k");
    divides("let mut k = n; k[i // 2] += m; k", "let mut k = n; k[i // 2] += m; k");
    divides("let mut k = n; k[i // 2] = m; k", "let mut k = n; k[i // 2] = m; k");
    // The expression goes on below.
    divides("let k = i // n +\n  m; k", "let k = i // n + m; k");
    divides("let k = i // f(\n  m); k", "let k = i // f(m); k");
    for letter in ["U", "R", "V", "T"] {
        let text = format!("g(a // f(x=f32[4]{{{letter}:X}}))");
        divides(&text, &text);
    }
    divides("let k = g(i // n,\n  m); k", "let k = g(i // n, m); k");
    divides("let k = i // n\n  + m; k", "let k = i // n + m; k");
}

#[test]
fn comments_behind_code() {
    let lines = [
        ("let k = x; // why", "why"),
        ("let k = x; //why", "why"),
        ("let k = x; // 2", "2"),
        ("let k = x;  // i // 2", "i // 2"),
        ("let k = x;//", ""),
        ("let k = i // 2; // half", "half"),
        ("let k = i // 2;// half", "half"),
        ("let k = i; // x // n", "x // n"),
        ("// let k = i // 2;", "let k = i // 2;"),
        ("if x { g(); } // done", "done"),
        ("//// a line", "// a line"),
        ("//! a header", "! a header"),
        ("/// no item follows", "no item follows"),
    ];
    for (line, comment) in lines {
        assert_eq!(read(&format!("{line}\nx")).1, [comment], "{line}");
    }
    // The statement goes on below.
    assert_eq!(read("if x { // why\ng(); }\nx").1, ["why"]);
    assert_eq!(read("let k = f(x, // n\nn);\nx").1, ["n"]);
    assert_eq!(read("let k = x + // n\nn;\nx").1, ["n"]);
    assert_eq!(read("let k = // n\nn;\nx").1, ["n"]);
}

#[test]
fn comments_behind_values() {
    comments("x @ w  // two spaces", "x @ w", "two spaces");
    comments("x @ w  // 2", "x @ w", "2");
    comments("x @ w\t// n", "x @ w", "n");
    comments("x @ w // project it", "x @ w", "project it");
    comments("x @ w // projected", "x @ w", "projected");
    comments("x @ w // the n of it", "x @ w", "the n of it");
    comments("x @ w // n of it", "x @ w", "n of it");
    comments("x @ w // n, as above", "x @ w", "n, as above");
    comments("x @ w // (B, H)", "x @ w", "(B, H)");
    comments("x @ w // [B, H]", "x @ w", "[B, H]");
    comments("x @ w // f32[B, H] here", "x @ w", "f32[B, H] here");
    comments("x @ w // -> H", "x @ w", "-> H");
    comments("x @ w // = logits", "x @ w", "= logits");
    comments("x @ w // x's product", "x @ w", "x's product");
    comments("x @ w // 2x faster", "x @ w", "2x faster");
    comments("x @ w // 2 of them", "x @ w", "2 of them");
    comments("x @ w // (unused)", "x @ w", "(unused)");
    comments("x @ w // n.", "x @ w", "n.");
    comments("x @ w // why?", "x @ w", "why?");
    comments("x @ w //n", "x @ w", "n");
    comments("x @ w// n", "x @ w", "n");
    comments("x @ w /// n", "x @ w", "n");
    comments("x @ w //", "x @ w", "");
    comments("x @ w // // n", "x @ w", "// n");
    comments("f(x) // sums", "f(x)", "sums");
    comments("x.sum() // total, per device", "x.sum()", "total, per device");
    comments("x[0] // first", "x[0]", "first");
    comments("2 // it", "2", "it");
    comments("if n { x } else { w } // either", "if n { x } else { w }", "either");
    comments("{ w, n } // both", "{ w, n }", "both");
    comments("f(x // the data\n, n)", "f(x, n)", "the data");
    comments("x // first\n  .sum()", "x.sum()", "first");
}

#[test]
fn at_the_beginning_of_a_line_it_is_a_comment() {
    comments("i\n// 2\n", "i", "2");
    comments("i\n  // n;\n", "i", "n;");
}

#[test]
fn docs_belong_to_items() {
    let source = "/// One.\n///\n///  two\n// plain\nfn f() {}\n/// lost\n";
    let (program, diagnostics) = parse(source, FileId::default());
    assert!(diagnostics.is_empty());
    assert_eq!(program.items[0].doc, ["One.", "", " two"]);
    let texts: Vec<&str> = program.comments.iter().map(|comment| comment.text.as_str()).collect();
    assert_eq!(texts, ["plain", "lost"]);
}
