//! Tests of `report::kept`: which values are kept for gradients, and what checkpoints save.

use crate::testing::{compiled, compiled_with_sources};
use spmdc_compiler::pipeline::Options;
use spmdc_compiler::report::kept::{checkpoints, costs, kept};
use std::collections::BTreeSet;

const LAYERS: &str = "mesh (X = 2);
fn layer(h: f32[64, 256], w: f32[256, 256]) { tanh(sin(h @ w) * h) }
fn main(x: f32[64@X, 256], w: f32[256, 256]) {
  grad(|w| { let mut h = x; for i in 0..100 { h = layer(h, w); } sum(h) })(w)
}";

#[test]
fn a_loop_keeps_values_of_each_trip() {
    let compilation = compiled(LAYERS);
    let values = kept(&compilation);
    let block = 32 * 256 * 4;
    assert_eq!(values.len(), 4, "{values:?}");
    assert!(values.iter().all(|value| (value.bytes, value.trips) == (100 * block, 100)), "{values:?}");
    assert!(values.iter().all(|value| value.ty == "f32[64@X,256]"), "{values:?}");
    let names: BTreeSet<&str> = values.iter().map(|value| value.name.as_str()).collect();
    assert!(names.contains("h") && names.contains("`h @ w`"), "{names:?}");
}

#[test]
fn checkpoints_are_measured() {
    let (set, compilation) = compiled_with_sources(LAYERS);
    let before = costs(&compilation).unwrap();
    let found = checkpoints(&compilation, &set, &Options::default());
    let functions: Vec<Option<&str>> = found.iter().map(|trial| trial.function.as_deref()).collect();
    // The body of the loop is a call of `layer`, and saves as much.
    assert_eq!(functions, [Some("layer")]);
    let (set, compilation) = compiled_with_sources(&LAYERS.replace("h = layer(h, w);", "h = tanh(sin(h @ w) * h);"));
    let loops = checkpoints(&compilation, &set, &Options::default());
    assert_eq!(loops.iter().map(|trial| &trial.function).collect::<Vec<_>>(), [&None]);
    assert_eq!(loops[0].costs, found[0].costs);
    // It is what the program with `checkpoint` keeps.
    let written = compiled(&LAYERS.replace("layer(h, w);", "checkpoint(layer)(h, w);"));
    for trial in found {
        assert_eq!(trial.costs, costs(&written).unwrap());
        assert_eq!(trial.costs.kept, before.kept / 4);
        assert!(trial.costs.peak < before.peak && trial.costs.flops > before.flops);
    }
}

#[test]
fn checkpoints_of_rows_are_checkpoints() {
    let rows = "fn row(h, w) { tanh(sin(h @ w) * h) }
fn main(x: f32[64, 256], w: f32[256, 256]) {
  grad(|w| { let mut h = x; for i in 0..100 { h = vmap(checkpoint(row), in_axes=(0, _))(h, w); } sum(h) })(w)
}";
    let values = kept(&compiled(rows));
    assert_eq!(values.len(), 1, "{values:?}");
    assert_eq!((values[0].name.as_str(), values[0].bytes), ("h", 100 * 64 * 256 * 4));
    assert_eq!(kept(&compiled(&rows.replace("checkpoint(row)", "row"))).len(), 4);
}

#[test]
fn values_of_the_program_alone_are_not_kept() {
    let keeps = |text: &str| kept(&compiled(text)).into_iter().map(|value| value.name).collect::<Vec<_>>();
    assert!(keeps("fn main(x: f32[64]) { let y = tanh(x); y * sum(y) }").is_empty());
    // An argument exists anyway, and so does what is computed before.
    assert!(keeps("fn main(x: f32[64]) { grad(|a| sum(sin(a)))(x) }").is_empty());
    assert!(keeps("fn main(x: f32[64]) { let s = cumsum(x); (s, grad(|a| sum(a * s))(x)) }").is_empty());
    assert_eq!(keeps("fn main(x: f32[64]) { grad(|a| { let c = cumsum(a); sum(sin(c)) })(x) }"), ["c"]);
}
