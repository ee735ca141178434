//! The timeline of several meshes that `spmdc plan` shows, and its picture.

use std::fs;

use crate::folder::{Folder, Said, spmdc};
use serde_json::{Value, json};
use spmdc_tests::pipeline::{of_example, svg};
use spmdc_tests::root;

const PIPELINE: [&str; 3] = ["examples/pipeline.spmd", "--arg", "batches=uniform:0"];

fn in_root(words: &[&str]) -> Said {
    Said::of(spmdc().args(words).current_dir(root()).output().unwrap())
}

#[test]
fn the_timeline_of_a_pipeline_has_one_round_for_each_microbatch_and_three_to_fill() {
    let said = in_root(&[&["plan"], &PIPELINE[..]].concat());
    said.expect(0, "12 trips in 15.0 rounds of `s", "");
    assert!(said.out.starts_with("timeline, estimated: "), "{}", said.out);
    said.expect(0, "`output` is the first device of all, where it prints for all meshes\n", "");
    let said = in_root(&[&["plan", "--format", "json"], &PIPELINE[..]].concat());
    let plan: Value = serde_json::from_str(&said.out).unwrap();
    let timeline = &plan["timeline"];
    let found = &timeline["loops"][0];
    assert_eq!((&found["trips"], &timeline["simulated_trips"]), (&json!(12), &Value::Null));
    let number = |value: &Value| value.as_f64().unwrap();
    assert!((number(&found["rounds"]) - 15.0).abs() < 0.05, "{found}");
    assert!((number(&found["rounds_in_turns"]) - 48.0).abs() < 0.5, "{found}");
    let meshes = timeline["meshes"].as_array().unwrap();
    assert_eq!(meshes.iter().map(|mesh| &mesh["mesh"]).collect::<Vec<_>>(), ["output", "s0", "s1", "s2", "s3"]);
    for stage in &meshes[1..] {
        let work = number(&stage["busy_ns"]) + number(&stage["idle_share"]) * number(&timeline["total_ns"]);
        assert!((work / number(&timeline["total_ns"]) - 1.0).abs() < 0.01, "{stage}");
    }
    // More microbatches than are simulated.
    let text = fs::read_to_string(root().join(PIPELINE[0])).unwrap().replace("12", "100000");
    let folder = Folder::with(&[("long.spmd", &text)]);
    let said = folder.spmdc(&["plan", "long.spmd"]);
    said.expect(0, "100,000 trips in 100,003.0 rounds of `s3`", "");
    assert!(said.out.contains("trips of each loop are simulated"), "{}", said.out);
    // A program with one mesh has no timeline.
    let one = Folder::with(&[("one.spmd", "mesh (X = 2);\nfn main(x: f32[8@X]) { 2 * x }\n")]);
    assert!(!one.spmdc(&["plan", "one.spmd"]).out.contains("timeline"));
    let run = in_root(&[&["run", "--plan"], &PIPELINE[..]].concat());
    run.expect(0, "timeline, estimated: ", "");
}

/// The plan of the pipeline with gradients for this much memory: bytes of all meshes, and the rounds of its loop.
fn within(memory: Option<u64>) -> (u64, f64) {
    let limit = memory.map(|bytes| bytes.to_string());
    let limit: Vec<&str> = limit.iter().flat_map(|bytes| ["--memory-limit", bytes]).collect();
    let said = in_root(&[&["plan", "--format", "json", "examples/pipeline_grad.spmd"], &limit[..]].concat());
    let plan: Value = serde_json::from_str(&said.out).unwrap();
    let bytes = plan["meshes"].as_array().unwrap().iter().map(|mesh| mesh["plan"]["process_bytes"].as_u64().unwrap());
    let loops = plan["timeline"]["loops"].as_array().unwrap();
    let rounds = loops.iter().find(|found| found["trips"] == json!(12)).unwrap()["rounds"].as_f64().unwrap();
    (bytes.sum(), rounds)
}

#[test]
fn stages_work_ahead_as_far_as_memory_has_room() {
    let (most, fewest_rounds) = within(None);
    assert_eq!(within(Some(1 << 30)), (most, fewest_rounds));
    let (less, more_rounds) = within(Some(most - 1));
    assert!(less < most && more_rounds > fewest_rounds + 0.5, "{less} of {most} bytes, {more_rounds} rounds");
    // In turns, however little memory there is: the runtime says that it does not suffice.
    let (least, most_rounds) = within(Some(1));
    assert!(least <= less && most_rounds > 40.0, "{least} of {less} bytes, {most_rounds} rounds");
    let run = |limit: &str| {
        let said =
            in_root(&["run", "examples/pipeline_grad.spmd", "--arg", "batches=normal:0", "--memory-limit", limit]);
        (said.status, said.out)
    };
    let whole = run("1G");
    assert_eq!((whole.0, &whole), (0, &run(&(most - 1).to_string())), "the losses are the same");
}

#[test]
fn stages_work_ahead_while_they_wait_for_cotangents() {
    let said = in_root(&["plan", "--format", "json", "examples/pipeline_grad.spmd"]);
    let plan: Value = serde_json::from_str(&said.out).unwrap();
    let loops = plan["timeline"]["loops"].as_array().unwrap();
    let found = loops.iter().find(|found| found["trips"] == json!(12)).unwrap();
    let number = |name: &str| found[name].as_f64().unwrap();
    assert!(number("rounds") < 16.0 && number("rounds_in_turns") > 44.0, "{found}");
}

#[test]
fn the_picture_shows_the_timeline_of_the_pipeline() {
    let drawn = svg(&of_example().unwrap());
    let kept = fs::read_to_string(root().join("docs/pipeline.svg")).unwrap_or_default();
    assert_eq!(drawn, kept, "cargo run --bin timeline > docs/pipeline.svg");
    assert!(drawn.contains("12 microbatches through 4 stages: 15.0 rounds"));
}
