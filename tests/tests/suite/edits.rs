//! Every ambiguity on explicit axes lists what the program can choose; each choice is applied, compiles, and costs what is said.

use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_compiler::pipeline::{Compilation, Options, compile};
use spmdc_compiler::report::plan::{Collective, collectives};
use spmdc_grammar::diagnostic::{Diagnostic, Edit};
use spmdc_ir::program::Stage;

/// Programs whose layout is ambiguous, each with how many ways out there are.
const PROGRAMS: &[(&str, usize)] = &[
    ("fn main(a: f32[8@X, 16@Y], b: f32[16@Y, 8]) { a @ b }", 4),
    ("fn main(a: f32[8@X, 16@Y], b: f32[16@Y, 8]) { matmul(a, b) }", 4),
    ("fn main(a: f32[8@X, 16@Y], b: f32[8, 16@Y]) { einsum(\"ij,kj->ik\", a, b) }", 4),
    ("fn main(a: f32[16@(X, Y)], b: f32[16@(X, Y)]) { dot(a, b) }", 2),
    ("fn main(a: f32[9@X, 14@Y], b: f32[14@Y, 7]) { a @ b }", 4),
    ("fn main(a: f32[8@X, 16], b: f32[8@Y, 16]) { a + b }", 2),
    ("fn main(a: f32[8@X, 16], b: f32[8, 16@X]) { a + b }", 2),
    ("fn main(a: f32[8@X, 16], b: f32[16, 8@X]) { a @ b }", 2),
    ("fn main(a: f32[8, 16@Y], b: f32[16@X, 8]) { a @ b }", 3),
    ("fn main(a: f32[4, 16@(X, Y)], b: f32[16@X, 8]) { matmul(a, b) }", 3),
    ("fn main(a: f32[13@X, 14@Y], b: f32[14@X, 7]) { a @ b }", 3),
    ("fn main(a: f32[8@X, 4], b: f32[8, 4@X], c: bool[8, 4]) { where(c, a, b) }", 2),
    ("fn main(a: f32[8@X], b: f32[16@X]) { outer(a, b) }", 2),
    ("fn main(a: f32[8@X, 16], i: i32) { a[i] }", 1),
    ("fn main(a: f32[8@Y, 16]) { reshape(a, (2, 4, 16)) }", 3),
    ("fn main(a: f32[8, 16@Y]) { reshape(a, (128,)) }", 3),
    ("fn main(a: f32[8, 16@Y]) { a.ravel() }", 3),
    ("fn main(a: f32[8@X, 6@Y, 4]) { reshape(a, (8, 24)) }", 3),
    ("fn main(a: f32[8, 16@Y]) { cumsum(a) }", 3),
    ("fn main(a: f32[8@X, 16@Y]) { repeat(a, 2) }", 3),
    ("fn main(a: f32[8@X, 4], b: f32[8@Y, 4]) { concatenate([a, b], axis=1) }", 2),
    ("fn main(a: f32[8@X, 4], b: f32[8@Y, 4]) { stack([a, b], axis=1) }", 2),
    ("fn main(a: f32[8@X, 4], b: f32[8@Y, 4], c: bool[8@X, 4]) { where(c, a, b) }", 2),
    ("fn main(a: f32[8@X, 4], b: f32[8@Y, 4], c: f32[8@X, 4]) { stack([a, b, c]) }", 2),
    ("fn main(a: f32[8@X, 8@Y], b: f32[8@Y, 8@X]) { a @ b }", 2),
    ("fn main(a: f32[8@X], b: f32[8@Y]) { clip(a, b, 3) }", 2),
    ("fn main(a: f32[8@X], b: i32[8@Y]) { a * b }", 2),
    ("fn main(a: f32[8@X], b: f32[8@Y]) { let mut c = a; c += b; c }", 2),
    ("fn main(a: f32[8@X, 4@Y], r: f32[4@X]) { let mut u = a; u[3] = r; u }", 2),
    ("fn main(a: f32[8@X, 4@Y], r: f32[8@Y]) { let mut u = a; u[:, 1] = r; u }", 2),
    ("fn main(a: f32[8@X, 4@Y], r: f32[8@Y, 4]) { let mut u = a; u[:] += r; u }", 2),
    ("fn main(a: f32[8@X, 4], r: f32[4@X], i: i32) { let mut u = a; u[i] = r; u }", 2),
    ("fn main(a: f32[8@X, 4], i: i32) { a[i, 0] }", 1),
    ("fn main(a: f32[8@X, 4], i: i32) { dynamic_slice(a, (i, 0), (2, 4)) }", 1),
    ("fn main(a: f32[8@X, 6@Y], b: f32[6@Y, 5@X]) { tensordot(a, b, axes=1) }", 2),
    ("fn main(a: f32[8@(X, Y), 6], b: f32[8@X, 6]) { a * b }", 2),
    ("fn main(a: f32[8@X, 6@Y], b: f32[6@Y, 5], c: f32[5, 7]) { einsum(\"ij,jk,kl->il\", a, b, c) }", 4),
    ("fn main(a: f32[4@X, 8, 6], b: f32[4@Y, 6, 8]) { a @ b }", 2),
    ("fn main(a: f32[8, 4@X], b: f32[4@X, 8]) { cos(matmul(a, b, out=P(unreduced=X))) }", 1),
    ("fn main(a: f32[8, 4@X], b: f32[4@X, 8], c: f32[8, 8]) { c / matmul(a, b, out=P(unreduced=X)) }", 1),
    ("fn main(a: f32[8, 4@X], b: f32[4@X, 8], c: f32[8]) { c @ floor(matmul(a, b, out=P(unreduced=X))) }", 1),
    (
        "fn main(a: f32[8, 4@X], b: f32[4@X, 8], c: f32[8]) { let mut g = matmul(a, b, out=P(unreduced=X)); g = sin(g) * c; g @ c }",
        1,
    ),
    ("fn main(a: f64[8, 4@X], b: f64[4@X, 8]) { cast(matmul(a, b, out=P(unreduced=X)), i32) }", 1),
    ("fn main(a: f32[4, 8@X], b: f32[8@X, 4], g: f32[4, 4]) { g - matmul(a, b, out=P(_, _, unreduced=X)) }", 2),
    (
        "fn main(a: f32[4, 8@X], b: f32[8@X, 4], g: f32[4, 4]) { concatenate([g, matmul(a, b, out=P(unreduced=X)), g]) }",
        2,
    ),
    (
        "fn main(a: f32[4, 8@X], b: f32[8@X, 4]) { let mut g = zeros(f32[4, 4]);
        for i in 0..3 { g += matmul(a, b, out=P(_, _, unreduced=X)); } reshard(g, P()) }",
        2,
    ),
    ("fn main(c: bool, x: f32[8@X, 16], y: f32[8@Y, 16]) { if c { x } else { y } }", 2),
    ("fn main(c: bool, x: f32[8@X, 16], y: f32[8, 16]) { if c { x } else { let z = y + 1; sin(z) } }", 2),
    ("fn main(i: i32, x: f32[8@X], y: f32[8@Y]) { if i > 0 { x } else if i < 0 { -x } else { y } }", 2),
    ("fn main(i: i32, x: f32[8@X], y: f32[8@Y]) { if i > 0 { y } else if i < 0 { -x } else { x } }", 2),
    ("fn main(c: bool, x: f32[9@X], y: f32[9@Y]) { let (a, _) = if c { (x, 1) } else { (y, 2) }; a }", 2),
    ("fn main(c: bool, w: f32[9@X], b: f32[9@Y]) { let p = if c { { w, k: b } } else { { w: b, k: b } }; p.w }", 2),
    ("fn main(c: bool, x: f32[8@X], y: f32[8@Y]) { let mut u = x; if c { u = y; } u }", 2),
    (
        "fn main(c: bool, x: f32[8@X], y: f32[8@Y]) { let mut u = x; if c { u = y; u[0] = 1.0; } else { u[1] = 0; } u }",
        2,
    ),
    ("fn main(i: i32, x: f32[8@X], y: f32[8@Y]) { let mut u = x; if i > 0 { u = y; } else if i < 0 { u = -x; } u }", 2),
    ("fn main(x: f32[8@X]) { let mut u = zeros(f32[8]); for i in 0..3 { u = u + x; } u }", 2),
    ("fn main(x: f32[8@X]) { let mut u = zeros(f32[8]); for i in 0..3 { u += x; } u }", 2),
    ("fn main(w: f32[8@Y], x: f32[8@X]) { let mut p = { w, k: 0 }; while p.k < 3 { p.w = x; p.k += 1; } p.w }", 2),
    ("fn main(x: f32[8@X], y: f32[8@Y]) { let mut (u, v) = (x, y); for i in 0..2 { v = u; u = x + 1; } v }", 2),
    ("fn main(x: f32[8@X], y: f32[8@Y]) { let mut u = x; for i in 0..2 { u = if i > 0 { y } else { y + 1 }; } u }", 2),
    ("fn main(x: f32[8@X]) { let mut u = ones(f32[8]); let r = for i in 0..3 collect { u *= x; -u }; r }", 2),
    ("fn main(x: f32[8@X, 8]) { let mut u = x; for i in 0..3 { u = u.T; } u }", 1),
    ("fn main(x: f32[8@X, 8]) { let y: f32[8@Y, 8] = x + 1; y }", 1),
    ("fn main(x: f32[8@X, 8]) -> f32[8, 8@X] { let y = x + 1; y * 2 }", 1),
    ("fn main(c: bool, x: f32[8@X, 8]) -> f32[8, 8@X] { if c { x } else { -x } }", 1),
    ("fn f(x: f32[8, 8@Y]) { x + 1 }\nfn main(x: f32[8@X, 8]) { f(f(x)) }", 1),
    ("fn main(x: f32[8@X, 8]) { let f = |v: f32[8, 8@X]| v + 1; f(x) }", 1),
    ("fn main(x: f32[9@X], w: f32[5@Y]) { let p: { a: f32[9@X], w: f32[5@X] } = { a: x, w }; p.w }", 0),
];

fn compiled(body: &str) -> Result<Compilation, Vec<Diagnostic>> {
    let (set, diagnostics) = SourceSet::load("edit.spmd", body, &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    compile(&set, &Options::default())
}

/// All but what makes the program's results whole: that is none of an edit's business.
fn moved(compilation: &Compilation) -> Vec<Collective> {
    let collectives = collectives(compilation.stage(Stage::Partitioned).unwrap()).into_iter();
    collectives.filter(|collective| collective.reason != "a result is whole where it leaves the program").collect()
}

/// `one all_reduce over Y, 128 bytes per device`; nothing where nothing moves.
fn said(compilation: &Compilation) -> Vec<String> {
    let said = moved(compilation)
        .into_iter()
        .map(|c| format!("one {} over {}, {} bytes per device", c.kind.name(), axes(&c.axes), c.bytes));
    said.collect()
}

fn bytes(said: &[impl AsRef<str>]) -> usize {
    let bytes = |text: &str| text.rsplit_once(", ").unwrap().1.split(' ').next().unwrap().parse::<usize>().unwrap();
    said.iter().map(|text| bytes(text.as_ref())).sum()
}

fn axes(names: &[String]) -> String {
    if names.len() == 1 { names[0].clone() } else { format!("({})", names.join(",")) }
}

fn applied(text: &str, edit: &Edit) -> String {
    let mut edited = text.to_string();
    edited.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.replacement);
    edited
}

/// Takes the cheapest way out of what is still ambiguous, until nothing is.
fn follow(mut text: String, mut errors: Vec<Diagnostic>) {
    for _ in 0..3 {
        assert!(!errors[0].edits.is_empty(), "{text}{errors:?}");
        text = applied(&text, &errors[0].edits[0]);
        match compiled(&text) {
            Ok(_) => return,
            Err(left) => errors = left,
        }
    }
    panic!("{text}{errors:?}");
}

#[test]
fn every_choice_is_one() {
    // An axis that the compiler decides about changes nothing of what the program has to.
    for (mesh, (body, ways)) in ["", "A = 2, "].into_iter().flat_map(|mesh| PROGRAMS.iter().map(move |p| (mesh, p))) {
        let text = format!("mesh ({mesh}X: explicit = 2, Y: explicit = 4);\n{body}\n");
        let errors = compiled(&text).expect_err(body);
        let [error] = errors.as_slice() else { panic!("{body}: {errors:?}") };
        let of_control = ["E0212", "E0213"].contains(&error.code.name());
        assert!(of_control || error.code.name().starts_with("E03"), "{body}: {error:?}");
        assert_eq!(error.edits.len(), *ways, "{body}: {:?}", error.edits);
        let mut received = 0;
        for edit in &error.edits {
            let edited = applied(&text, edit);
            let found = match compiled(&edited) {
                Ok(compilation) => {
                    let moved: u64 = moved(&compilation).iter().map(|collective| collective.received).sum();
                    assert!(received <= moved, "{body}: not the cheapest first: {edited}");
                    received = moved;
                    said(&compilation)
                }
                // Two things were ambiguous, and this was the first.
                Err(errors) => {
                    follow(edited, errors);
                    continue;
                }
            };
            let priced = if edit.note.starts_with("no communication") {
                Vec::new()
            } else {
                edit.note.split(", then ").collect()
            };
            if edit.replacement.starts_with("ravel(") {
                // The function communicates for itself, too.
                assert!(found.iter().map(String::as_str).collect::<Vec<_>>().starts_with(&priced), "{edited}{found:?}");
            } else if edit.replacement.contains("out=") {
                assert_eq!(found, priced, "{edited}");
            } else {
                // What is resharded may be wanted in another layout still: then it is brought there at once.
                assert!(bytes(&found) <= bytes(&priced), "{found:?} instead of {priced:?}: {edited}");
            }
        }
    }
}
