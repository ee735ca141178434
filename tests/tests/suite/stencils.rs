//! Stencils, however they are written, cost thin permutes: a device receives what lies around its block and no more, on every mesh.

use spmdc_abi::CollectiveKind;
use spmdc_compiler::report::plan::collectives;
use spmdc_ir::program::Stage;
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

/// The problem with the traffic of a step.
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

/// An array with ghost cells around a value `v` of 5 by 6: parts of itself, one after another.
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

/// Windows of one value that reach `reach` places to every side along the first dimensions of `shape`, as many as `split`.
struct Neighbourhood {
    reach: usize,
    shape: &'static [usize],
    split: &'static [&'static str],
    meshes: &'static [&'static str],
}

const NEIGHBOURHOODS: &[Neighbourhood] = &[
    Neighbourhood { reach: 3, shape: &[40], split: &["X"], meshes: &["2x1", "4x1", "8x1"] },
    Neighbourhood { reach: 2, shape: &[13], split: &["X"], meshes: &["4x1", "3x1", "5x1"] },
    Neighbourhood { reach: 1, shape: &[16, 18], split: &["X", "Y"], meshes: &["2x2", "2x4", "3x2"] },
    Neighbourhood { reach: 4, shape: &[24, 48], split: &["X", "Y"], meshes: &["2x2", "2x4"] },
    Neighbourhood { reach: 3, shape: &[1030], split: &["X"], meshes: &["2x1", "4x1", "8x1"] },
    Neighbourhood { reach: 1, shape: &[34, 35], split: &["X", "Y"], meshes: &["2x4", "3x2"] },
    Neighbourhood { reach: 2, shape: &[13, 14], split: &["X", "Y"], meshes: &["4x2", "2x3"] },
    Neighbourhood { reach: 2, shape: &[6, 30], split: &["", "X"], meshes: &["3x1", "4x1"] },
    Neighbourhood { reach: 1, shape: &[6, 8, 10], split: &["X", "Y", "Z"], meshes: &["2x2x2", "3x2x1"] },
];

type Written = fn(&Neighbourhood, &[i64]) -> String;

/// How the elements around an element are written, given how far they are away along each dimension.
const WAYS: &[(&str, Written)] = &[
    ("slices", |near, away| slice("u", near, away)),
    ("slices of a padded array", |near, away| slice("p", near, away)),
    ("rolls", |_, away| {
        let rolls = away.iter().enumerate().filter(|(_, by)| **by != 0);
        rolls.fold("u".to_string(), |x, (axis, by)| format!("roll({x}, {by}, axis={axis})"))
    }),
];

fn slice(name: &str, near: &Neighbourhood, away: &[i64]) -> String {
    let dim = |by: &i64| {
        let start = by + near.reach as i64;
        match start - 2 * near.reach as i64 {
            0 => format!("{start}:"),
            end => format!("{start}:{end}"),
        }
    };
    format!("{name}[{}]", away.iter().map(dim).collect::<Vec<_>>().join(", "))
}

/// The distances along each dimension, all combinations.
fn distances(near: &Neighbourhood) -> Vec<Vec<i64>> {
    let reach = near.reach as i64;
    near.shape.iter().fold(vec![Vec::new()], |known, _| {
        known.iter().flat_map(|known| (-reach..=reach).map(move |by| [known.as_slice(), &[by]].concat())).collect()
    })
}

fn neighbourhood(near: &Neighbourhood, way: &str, dtype: &str) -> String {
    let (name, written) = WAYS.iter().find(|(name, _)| *name == way).unwrap();
    let weighted =
        distances(near).into_iter().enumerate().map(|(i, away)| format!("{} * {}", i % 7 + 1, written(near, &away)));
    let sum = weighted.collect::<Vec<_>>().join(" + ");
    let (reach, rank) = (near.reach, near.shape.len());
    let inner = vec![format!("{reach}:-{reach}"); rank].join(", ");
    let step = match *name {
        "slices" => format!("let mut v = u; v[{inner}] = {sum}; v"),
        "rolls" => sum,
        _ => format!("let p = pad(u, {reach}); {sum}"),
    };
    let dims: Vec<String> = near
        .shape
        .iter()
        .zip(near.split)
        .map(|(size, axis)| match *axis {
            "" => size.to_string(),
            axis => format!("{size}@{axis}"),
        })
        .collect();
    let axes = if rank == 3 { "X = 2, Y = 2, Z = 2" } else { "X = 2, Y = 2" };
    let ty = format!("{dtype}[{}]", dims.join(", "));
    // Small values would stay whole in a loop, because split ones need a barrier in every trip.
    let is_small = 4 * near.shape.iter().product::<usize>() <= 4096;
    let body = if is_small { "step(u)" } else { "let mut u = u; for t in 0..2 { u = step(u); } u" };
    format!("mesh ({axes});\nfn step(u) {{ {step} }}\nfn main(u: {ty}) -> {ty} {{ {body} }}\n")
}

/// The problem with a program that reads a neighbourhood. It has at most two exchanges for each split dimension, in which a device receives
/// the elements around its block.
fn thin(near: &Neighbourhood, text: &str, mesh: &str) -> Result<(), String> {
    let compilation = engine::compiled("near.spmd", text, mesh, None).map_err(|failures| format!("{failures:?}"))?;
    let found = collectives(compilation.stage(Stage::Partitioned).unwrap());
    let sizes: Vec<usize> = mesh.split('x').map(|size| size.parse().unwrap()).collect();
    let parts = |axis: &str| ["X", "Y", "Z"].iter().position(|name| *name == axis).map_or(1, |at| sizes[at]);
    let split = near.split.iter().filter(|axis| parts(axis) > 1).count();
    let blocks = || near.shape.iter().zip(near.split).map(|(size, axis)| (size.div_ceil(parts(axis)), parts(axis) > 1));
    let wide: usize = blocks().map(|(len, is_split)| len + if is_split { 2 * near.reach } else { 0 }).product();
    let around = 4 * (wide - blocks().map(|(len, _)| len).product::<usize>()) as u64;
    let received: u64 = found.iter().map(|step| step.received).sum();
    if found.len() > 2 * split || received > around {
        return Err(format!("{} exchanges of {received} bytes, {around} lie around a block", found.len()));
    }
    same(text, mesh)
}

#[test]
fn a_neighbourhood_costs_one_exchange_for_each_direction() {
    let mut wrong = Vec::new();
    for near in NEIGHBOURHOODS {
        for (number, (way, _)) in WAYS.iter().enumerate() {
            let dtype = if number == 0 && near.reach == 1 { "f32" } else { "i32" };
            let text = neighbourhood(near, way, dtype);
            for mesh in near.meshes {
                if let Err(problem) = thin(near, &text, mesh) {
                    wrong.push(format!("{way}, {:?} within {} on {mesh}: {problem}", near.shape, near.reach));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}
