//! Examples that learn: `digits_layouts.spmd` in its four layouts, which differ in annotations alone, learn the same and move what they
//! should; and others that get better, alike on every mesh.

use spmdc_compiler::report::plan;
use spmdc_grammar::span::FileId;
use spmdc_ir::program::Stage;
use spmdc_tests::compare::numbers;
use spmdc_tests::{engine, root};
use std::collections::BTreeMap;

/// Types of the parameters between the steps, and where a layer uses them.
struct Layout {
    name: &'static str,
    mesh: &'static str,
    stored: &'static str,
    used: &'static str,
    /// Collectives of the partitioned program, all of which are in the loop over the steps.
    collectives: &'static [(&'static str, usize)],
    /// The same after small ones have been combined.
    combined: &'static [(&'static str, usize)],
}

const PLAIN: &str = "w1: f32[64, 96], b1: f32[96], w2: f32[96, 48], b2: f32[48], w3: f32[48, 10], b3: f32[10]";
const TENSOR: &str =
    "w1: f32[64, 96@model], b1: f32[96@model], w2: f32[96@model, 48], b2: f32[48], w3: f32[48, 10], b3: f32[10]";
const SHARDED: &str = "w1: f32[64@data, 96], b1: f32[96@data], w2: f32[96@data, 48], b2: f32[48@data], w3: f32[48@data, 10], b3: f32[10@data]";
const WHOLE: &str =
    "w1: f32[64@_, 96@_], b1: f32[96@_], w2: f32[96@_, 48@_], b2: f32[48@_], w3: f32[48@_, 10@_], b3: f32[10@_]";

const LAYOUTS: [Layout; 6] = [
    Layout { name: "one device", mesh: "1x1", stored: PLAIN, used: PLAIN, collectives: &[], combined: &[] },
    // The loss and six gradients, once a step.
    Layout {
        name: "data parallel",
        mesh: "8x1",
        stored: PLAIN,
        used: PLAIN,
        collectives: &[("all_reduce", 7)],
        combined: &[("all_reduce", 1)],
    },
    // And the activation in front of the second bias.
    Layout {
        name: "data and tensor parallel",
        mesh: "4x2",
        stored: TENSOR,
        used: PLAIN,
        collectives: &[("all_reduce", 8)],
        combined: &[("all_reduce", 2)],
    },
    // Each parameter is gathered once, and its gradient scattered once; the loss is summed.
    Layout {
        name: "fully sharded",
        mesh: "8x1",
        stored: SHARDED,
        used: WHOLE,
        collectives: &[("all_gather", 6), ("all_reduce", 1), ("reduce_scatter", 6)],
        combined: &[("all_gather", 1), ("all_reduce", 1), ("reduce_scatter", 1)],
    },
    Layout {
        name: "tensor parallel on uneven blocks",
        mesh: "3x2",
        stored: TENSOR,
        used: PLAIN,
        collectives: &[("all_reduce", 8)],
        combined: &[("all_reduce", 2)],
    },
    Layout {
        name: "fully sharded in uneven blocks",
        mesh: "7x1",
        stored: SHARDED,
        used: WHOLE,
        collectives: &[("all_gather", 6), ("all_reduce", 1), ("reduce_scatter", 6)],
        combined: &[("all_gather", 1), ("all_reduce", 1), ("reduce_scatter", 1)],
    },
];

fn text(layout: &Layout) -> String {
    let text = std::fs::read_to_string(root().join("examples/digits_layouts.spmd")).unwrap();
    // With each type on one line.
    let text = spmdc_grammar::print(&spmdc_grammar::parse(&text, FileId::default()).0);
    let text = text.replace(&format!("type Stored = {{ {PLAIN} }}"), &format!("type Stored = {{ {} }}", layout.stored));
    let text = text.replace(&format!("type Used = {{ {PLAIN} }}"), &format!("type Used = {{ {} }}", layout.used));
    text.replace("const STEPS = 2;", "const STEPS = 25;")
}

#[test]
fn digits_are_learnt_alike_in_every_layout() {
    let data = |name: &str, file: &str| format!("{name}=@examples/data/digits/{file}.npy");
    let args = [data("images", "train_x"), data("labels", "train_y")];
    let mut losses: Vec<Vec<f64>> = Vec::new();
    for layout in &LAYOUTS {
        let text = text(layout);
        assert!(text.contains(layout.stored) && text.contains(layout.used) && text.contains("= 25;"));
        let compilation = engine::compiled("digits_layouts.spmd", &text, layout.mesh, None).unwrap();
        for (stage, expected) in [(Stage::Partitioned, layout.collectives), (Stage::Optimized, layout.combined)] {
            let mut found: BTreeMap<&str, usize> = BTreeMap::new();
            for collective in plan::collectives(compilation.stage(stage).unwrap()) {
                assert_eq!(collective.trips, Some(25), "{}: {:?} once a step", layout.name, collective.kind);
                *found.entry(collective.kind.name()).or_default() += 1;
            }
            assert_eq!(found, expected.iter().copied().collect(), "{} at stage `{}`", layout.name, stage.name());
        }
        let inputs = engine::inputs(&compilation, &args, &root()).unwrap();
        losses.push(numbers(&engine::run(&compilation, &inputs, None).unwrap().results[0]));
    }
    let learnt = &losses[0];
    assert!(learnt[0] > 2.0 && learnt[24] < 0.15, "{learnt:?}");
    for (layout, found) in LAYOUTS.iter().zip(&losses) {
        let furthest = learnt.iter().zip(found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(found.len() == 25 && furthest < 1e-4, "{} on {}: {furthest} apart", layout.name, layout.mesh);
    }
}

/// Runs an example with so many steps on some meshes; its first and its last loss.
fn learns(name: &str, steps: (&str, &str), args: &[String], meshes: [&str; 2]) -> [f64; 2] {
    let text = std::fs::read_to_string(root().join("examples").join(name)).unwrap();
    let text = text.replace(steps.0, steps.1);
    assert!(text.contains(steps.1), "{name} has no {:?}", steps.0);
    let found = meshes.map(|mesh| {
        let compilation = engine::compiled(name, &text, mesh, None).unwrap();
        let inputs = engine::inputs(&compilation, args, &root()).unwrap();
        let results = engine::run(&compilation, &inputs, None).unwrap().results;
        [0, 1].map(|at| numbers(&results[at])[0])
    });
    for (a, b) in found[0].iter().zip(&found[1]) {
        assert!((a - b).abs() < 1e-3 * a.abs(), "{name}: {a} on {}, {b} on {}", meshes[0], meshes[1]);
    }
    found[0]
}

#[test]
fn an_autoencoder_learns() {
    let images = ["images=@examples/data/digits/train_x.npy".to_string()];
    let [first, last] = learns("vae.spmd", ("STEPS = 2;", "STEPS = 40;"), &images, ["8", "3"]);
    assert!(first > 60.0 && last < 30.0, "from {first} to {last}");
}

#[test]
fn a_policy_learns() {
    let [first, last] = learns("policy.spmd", ("UPDATES = 3;", "UPDATES = 20;"), &[], ["1", "7"]);
    assert!(first > 50.0 && last < 14.0, "from {first} to {last}");
}
