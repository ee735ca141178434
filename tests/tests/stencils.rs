//! Stencils, however they are written, cost thin permutes: a device receives what lies around its block and no more, on every mesh.

#![allow(clippy::unwrap_used)]

use spmdc_compiler::ir::Stage;
use spmdc_compiler::report::plan::collectives;
use spmdc_runtime::abi::CollectiveKind;
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::engine;
use spmdc_tests::root;

const MESHES: [(usize, usize); 5] = [(2, 4), (4, 2), (1, 8), (3, 2), (5, 3)];

/// A step of a stencil on `u`, of size SHAPE or H by W; `f` is the mean of four neighbours.
const FORMULATIONS: &[(&str, &str)] = &[
    (
        "rolls",
        "let n = f(roll(u, 1, axis=0), roll(u, -1, axis=0), roll(u, 1, axis=1), roll(u, -1, axis=1)); 0.2 * (u + n)",
    ),
    (
        "rolls inside borders",
        "let r = iota(i32[SHAPE], axis=0); let c = iota(i32[SHAPE], axis=1);
         let n = f(roll(u, 1, axis=0), roll(u, -1, axis=0), roll(u, 1, axis=1), roll(u, -1, axis=1));
         where((r > 0) && (r < H - 1) && (c > 0) && (c < W - 1), n, u)",
    ),
    (
        "assignment to the interior",
        "let mut v = u; v[1:-1, 1:-1] = f(u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]); v",
    ),
    (
        "assignment to itself",
        "let mut v = u; v[1:-1, 1:-1] = f(v[:-2, 1:-1], v[2:, 1:-1], v[1:-1, :-2], v[1:-1, 2:]); v",
    ),
    (
        "addition to the interior",
        "let mut v = u; v[1:-1, 1:-1] += 0.1 * f(u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]); v",
    ),
    (
        "padded array",
        "let p = pad(u, ((1, 1), (1, 1))); 0.2 * (u + f(p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]))",
    ),
    (
        "array padded by its edges",
        "let p = pad(u, ((1, 1), (1, 1)), mode=\"edge\"); 0.2 * (u + f(p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]))",
    ),
    (
        "array padded round",
        "let p = pad(u, ((1, 1), (1, 1)), mode=\"wrap\"); 0.2 * (u + f(p[:-2, 1:-1], p[2:, 1:-1], p[1:-1, :-2], p[1:-1, 2:]))",
    ),
    ("padded interior", "pad(f(u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]), ((1, 1), (1, 1)))"),
    (
        "padded slices",
        "f(pad(u[:-1], ((1, 0), (0, 0))), pad(u[1:], ((0, 1), (0, 0))), pad(u[:, :-1], ((0, 0), (1, 0))), pad(u[:, 1:], ((0, 0), (0, 1))))",
    ),
    (
        "edges joined to the interior",
        "let n = f(u[:-2, 1:-1], u[2:, 1:-1], u[1:-1, :-2], u[1:-1, 2:]);
         let rows = concatenate([u[1:-1, :1], n, u[1:-1, -1:]], axis=1);
         concatenate([u[:1], rows, u[-1:]])",
    ),
    (
        "array joined to its edges",
        "let p = concatenate([u[:1], u, u[-1:]]); let q = concatenate([u[:, :1], u, u[:, -1:]], axis=1);
         f(p[:-2], p[2:], q[:, :-2], q[:, 2:])",
    ),
    (
        "array joined round",
        "let p = concatenate([u[-1:], u, u[:1]]); let q = concatenate([u[:, -1:], u, u[:, :1]], axis=1);
         f(p[:-2], p[2:], q[:, :-2], q[:, 2:])",
    ),
    (
        "borders put back",
        "let mut v = 0.2 * (u + f(roll(u, 1, axis=0), roll(u, -1, axis=0), roll(u, 1, axis=1), roll(u, -1, axis=1)));
         v[0] = u[0]; v[-1] = u[-1]; v[:, 0] = u[:, 0]; v[:, -1] = 0.0; v",
    ),
];

/// Where edges come from the other side, or stand on their own, they move for that.
const EDGES_APART: &[&str] = &[
    "array padded by its edges",
    "array padded round",
    "array joined to its edges",
    "array joined round",
    "borders put back",
];

fn program(step: &str, (height, width): (usize, usize), repeat: bool) -> String {
    let step = step.replace("SHAPE", &format!("{height}, {width}"));
    let step = step.replace("H ", &format!("{height} ")).replace("W ", &format!("{width} "));
    let body = if repeat { "let mut u = u; for t in 0..3 { u = step(u); } u" } else { "step(u)" };
    format!(
        "mesh (X = 2, Y = 4);
fn f(a, b, c, d) {{ 0.25 * (a + b + c + d) }}
fn step(u) {{ {step} }}
fn main(u: f32[{height}@X, {width}@Y]) -> f32[{height}@X, {width}@Y] {{ {body} }}\n"
    )
}

/// What is wrong with the traffic of a step.
fn check(text: &str, mesh: (usize, usize), shape: (usize, usize), times: usize) -> Result<(), String> {
    let name = format!("{}x{}", mesh.0, mesh.1);
    let compilation =
        engine::compiled("stencil.spmd", text, &name, None).map_err(|failures| format!("{failures:?}"))?;
    let found = collectives(compilation.stage(Stage::Partitioned).unwrap());
    let (height, width) = (shape.0.div_ceil(mesh.0), shape.1.div_ceil(mesh.1));
    let sides = 2 * (usize::from(mesh.0 > 1) * width + usize::from(mesh.1 > 1) * height);
    // With the corners.
    let around = 4 * (sides + 4 * times - 4) as u64;
    let received: u64 = found.iter().map(|step| step.received).sum();
    let is_thin = found.iter().all(|step| {
        let row = if step.axes == ["X"] { width + 2 } else { height + 2 };
        step.kind == CollectiveKind::CollectivePermute && step.received <= 4 * row as u64
    });
    if !is_thin || received > around * times as u64 {
        let steps: Vec<String> =
            found.iter().map(|step| format!("{} {:?} {}", step.kind.name(), step.local_shape, step.received)).collect();
        return Err(format!("{received} bytes are received, {around} lie around a block: {steps:?}"));
    }
    let inputs = engine::inputs(&compilation, &[], &root())?;
    let expected =
        engine::evaluated(text, &compilation.stages[0], &inputs).map_err(|failure| format!("{failure:?}"))?;
    let outcome = engine::run(&compilation, &inputs, None).map_err(|failure| format!("{failure:?}"))?;
    match difference(&expected[0], &outcome.results[0], Tolerance::reassociated(expected[0].dtype)) {
        Some(text) => Err(text),
        None => Ok(()),
    }
}

#[test]
fn every_formulation_costs_thin_permutes() {
    let mut wrong = Vec::new();
    for (name, step) in FORMULATIONS {
        let times = if EDGES_APART.contains(name) { 2 } else { 1 };
        for mesh in MESHES {
            for (shape, repeat) in [((16, 16), false), ((15, 24), true), ((17, 13), false)] {
                let text = program(step, shape, repeat);
                if let Err(text) = check(&text, mesh, shape, times) {
                    wrong.push(format!("{name}, {mesh:?} {shape:?}: {text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

/// What has ghost cells around a value `v` of 5 by 6: parts of itself, one after another.
const GHOSTS: &[(&str, (usize, usize))] = &[
    ("concatenate([v[:, 1:2], v], axis=1)", (5, 7)),
    ("concatenate([v, v[:1]])", (6, 6)),
    ("concatenate([v[-1:], v, v[:1]])", (7, 6)),
    ("concatenate([v[:, -2:], v[:, 3:4], v], axis=1)", (5, 9)),
    ("pad(v, 1, mode=\"wrap\")", (7, 8)),
    ("pad(v, ((0, 1), (1, 0)), mode=\"edge\")", (6, 7)),
    ("pad(v, ((1, 2), (0, 1)), mode=\"reflect\")", (8, 7)),
    ("pad(v, ((1, 0), (2, 1)), mode=\"symmetric\")", (6, 9)),
    ("pad(v[1:2], ((1, 1), (1, 1)), mode=\"wrap\")", (3, 8)),
];

/// Over which axes two dimensions can be split.
const LAYOUTS: [(&str, &str); 11] = [
    ("_", "_"),
    ("X", "_"),
    ("_", "X"),
    ("Y", "_"),
    ("_", "Y"),
    ("X", "Y"),
    ("Y", "X"),
    ("(X, Y)", "_"),
    ("_", "(X, Y)"),
    ("(Y, X)", "_"),
    ("_", "(Y, X)"),
];

#[test]
fn ghost_cells_may_lie_in_any_layout() {
    let mut wrong = Vec::new();
    for (number, (ghosts, (height, width))) in GHOSTS.iter().enumerate() {
        for (from, (a, b)) in LAYOUTS.iter().enumerate() {
            for (to, (c, d)) in LAYOUTS.iter().enumerate() {
                let mesh = ["2x2", "3x2"][(number + from + to) % 2];
                let text = format!(
                    "mesh (X = 2, Y = 2);\nfn main(v: i32[5@{a}, 6@{b}]) -> (i32[{height}@{c}, {width}@{d}], i32[5@{c}, 6@{d}]) {{
  ({ghosts}, v * 2)\n}}\n"
                );
                if let Err(problem) = same(&text, mesh) {
                    wrong.push(format!("on {mesh}: {problem}\n{text}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

/// Whether the devices of a mesh compute what the evaluator does.
fn same(text: &str, mesh: &str) -> Result<(), String> {
    let compilation = engine::compiled("ghosts.spmd", text, mesh, None).map_err(|failures| format!("{failures:?}"))?;
    let inputs = engine::inputs(&compilation, &[], &root())?;
    let expected =
        engine::evaluated(text, &compilation.stages[0], &inputs).map_err(|failure| format!("{failure:?}"))?;
    let outcome = engine::run(&compilation, &inputs, None).map_err(|failure| format!("{failure:?}"))?;
    let pairs = expected.iter().zip(&outcome.results);
    let found = pairs.filter_map(|(expected, actual)| difference(expected, actual, Tolerance::Exact)).next();
    found.map_or(Ok(()), Err)
}
