//! Every ambiguity on explicit axes lists what the program can choose; each choice is applied, compiles, and costs what is said.

#![allow(clippy::unwrap_used)]

use spmdc_compiler::check::sources::{NoSources, SourceSet};
use spmdc_compiler::ir::Stage;
use spmdc_compiler::pipeline::{Compilation, Options, compile};
use spmdc_compiler::report::plan::collectives;
use spmdc_grammar::diagnostic::Diagnostic;

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
    ("fn main(a: f32[8, 16@Y]) { cumsum(a) }", 1),
    ("fn main(a: f32[8@X, 16@Y]) { repeat(a, 2) }", 1),
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
    ("fn main(a: f32[8@X, 4@Y], r: f32[8@Y, 4]) { let mut u = a; u[:] += r; u }", 1),
    ("fn main(a: f32[8@X, 4], r: f32[4@X], i: i32) { let mut u = a; u[i] = r; u }", 2),
    ("fn main(a: f32[8@X, 4], i: i32) { a[i, 0] }", 1),
    ("fn main(a: f32[8@X, 4], i: i32) { dynamic_slice(a, (i, 0), (2, 4)) }", 1),
    ("fn main(a: f32[8@X, 6@Y], b: f32[6@Y, 5@X]) { tensordot(a, b, axes=1) }", 2),
    ("fn main(a: f32[8@(X, Y), 6], b: f32[8@X, 6]) { a * b }", 2),
    ("fn main(a: f32[8@X, 6@Y], b: f32[6@Y, 5], c: f32[5, 7]) { einsum(\"ij,jk,kl->il\", a, b, c) }", 4),
    ("fn main(a: f32[4@X, 8, 6], b: f32[4@Y, 6, 8]) { a @ b }", 2),
    ("fn main(a: f32[8, 4@X], b: f32[4@X, 8]) { cos(matmul(a, b, out=P(unreduced=X))) }", 1),
];

fn compiled(body: &str) -> Result<Compilation, Vec<Diagnostic>> {
    let (set, diagnostics) = SourceSet::load("edit.spmd", body, &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    compile(&set, &Options::default())
}

/// `one all_reduce over Y, 128 bytes per device`; nothing where nothing moves.
fn said(compilation: &Compilation) -> Vec<String> {
    let collectives = collectives(compilation.stage(Stage::Partitioned).unwrap()).into_iter();
    let said =
        collectives.map(|c| format!("one {} over {}, {} bytes per device", c.kind.name(), axes(&c.axes), c.bytes));
    said.collect()
}

fn bytes(said: &[impl AsRef<str>]) -> usize {
    let bytes = |text: &str| text.rsplit_once(", ").unwrap().1.split(' ').next().unwrap().parse::<usize>().unwrap();
    said.iter().map(|text| bytes(text.as_ref())).sum()
}

fn axes(names: &[String]) -> String {
    if names.len() == 1 { names[0].clone() } else { format!("({})", names.join(",")) }
}

#[test]
fn every_choice_is_one() {
    for (body, ways) in PROGRAMS {
        let text = format!("mesh (X: explicit = 2, Y: explicit = 4);\n{body}\n");
        let errors = compiled(&text).expect_err(body);
        let [error] = errors.as_slice() else { panic!("{body}: {errors:?}") };
        assert!(error.code.name().starts_with("E03"), "{body}: {error:?}");
        assert_eq!(error.edits.len(), *ways, "{body}: {:?}", error.edits);
        let mut received = 0;
        for edit in &error.edits {
            let mut edited = text.clone();
            edited.replace_range(edit.span.start as usize..edit.span.end as usize, &edit.replacement);
            let found = match compiled(&edited) {
                Ok(compilation) => {
                    let moved = collectives(compilation.stage(Stage::Partitioned).unwrap());
                    let moved: u64 = moved.iter().map(|collective| collective.received).sum();
                    assert!(received <= moved, "{body}: not the cheapest first: {edited}");
                    received = moved;
                    said(&compilation)
                }
                // Two things were ambiguous, and this was the first.
                Err(errors) if *ways == 1 && errors[0].code.name().starts_with("E03") => continue,
                Err(errors) => panic!("{edited}{errors:?}"),
            };
            let priced =
                if edit.note.starts_with("nothing moves") { Vec::new() } else { edit.note.split(", then ").collect() };
            if edit.replacement.contains("out=") {
                assert_eq!(found, priced, "{edited}");
            } else {
                // What is resharded may be wanted in another layout still: then it is brought there at once.
                assert!(bytes(&found) <= bytes(&priced), "{found:?} instead of {priced:?}: {edited}");
            }
        }
    }
}
