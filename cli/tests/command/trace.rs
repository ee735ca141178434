//! `--trace`: the record of a run, of `spmdc run` and of a built program.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::folder::{Folder, SPMDC, Said, starter};
use serde_json::{Value, json};
use spmdc_tests::root;

const PIPELINE: [&str; 3] = ["examples/pipeline.spmd", "--arg", "batches=uniform:0"];

fn in_root(program: &str, words: &[&str]) -> Said {
    Said::of(starter(program).args(words).current_dir(root()).output().unwrap())
}

/// The tracks of a trace by their names, and the spans of each in order. They are complete, name a line of the program, and do not overlap.
fn tracks(path: &Path, lines: usize) -> BTreeMap<String, Vec<Value>> {
    let trace: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(trace["otherData"]["dropped_spans"], 0);
    let events = trace["traceEvents"].as_array().unwrap();
    let mut tracks: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let is_name = |event: &&Value| event["name"] == "thread_name";
    for named in events.iter().filter(is_name) {
        let own = |event: &&Value| event["ph"] == "X" && event["tid"] == named["tid"] && event["pid"] == named["pid"];
        let spans: Vec<Value> = events.iter().filter(own).cloned().collect();
        let before = tracks.insert(named["args"]["name"].as_str().unwrap().to_string(), spans);
        assert!(before.is_none(), "two tracks have one name");
    }
    let spans = events.iter().filter(|event| event["ph"] == "X").count();
    assert_eq!(spans, tracks.values().map(Vec::len).sum::<usize>(), "each span is on a track");
    for (name, spans) in &tracks {
        let mut end = 0.0;
        for span in spans {
            let (begin, duration) = (span["ts"].as_f64().unwrap(), span["dur"].as_f64().unwrap());
            // Times in microseconds are rounded.
            assert!(begin >= end - 1e-6 && duration >= 0.0, "spans of {name} overlap: {span}");
            end = begin + duration;
            let line = span["args"]["line"].as_u64().unwrap();
            assert!((1..=lines as u64).contains(&line), "{span}");
        }
    }
    tracks
}

/// The activities, names and lines of a track.
fn kinds(spans: &[Value]) -> BTreeSet<(&str, &str, u64)> {
    let kind = |span: &'_ Value| span["args"]["line"].as_u64().unwrap();
    spans.iter().map(|span| (span["cat"].as_str().unwrap(), span["name"].as_str().unwrap(), kind(span))).collect()
}

#[test]
fn each_device_of_a_pipeline_has_a_track() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.json");
    let said = in_root(SPMDC, &[&["run"], &PIPELINE[..], &["--trace", path.to_str().unwrap()]].concat());
    said.expect(0, "f32 on s3\n", "");
    let source = fs::read_to_string(root().join(PIPELINE[0])).unwrap();
    let line_of = |text: &str| 1 + source.lines().position(|line| line.contains(text)).unwrap() as u64;
    let found = tracks(&path, source.lines().count());
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    assert_eq!(names, ["device 0 on output", "device 0 on s0", "device 1 on s1", "device 2 on s2", "device 3 on s3"]);
    let count = |track: &str, activity: &str, line: u64| {
        let is = |span: &&Value| span["cat"] == activity && span["args"]["line"] == line;
        found[track].iter().filter(is).count()
    };
    // Each stage sends a microbatch in each trip, which the next one receives.
    for (track, line) in [("device 0 on s0", "let b"), ("device 1 on s1", "let b"), ("device 3 on s3", "let d")] {
        assert_eq!(count(track, "communicate", line_of(line)), 12, "{track}: {:?}", kinds(&found[track]));
    }
    for track in &names[1..] {
        let products = found[*track].iter().filter(|span| span["name"].as_str().unwrap().starts_with("product"));
        assert_eq!(products.count(), 48, "{track}: {:?}", kinds(&found[*track]));
        assert!(count(track, "compute", line_of("fn weights")) > 0, "{track}: {:?}", kinds(&found[*track]));
    }
    assert_eq!(count("device 0 on output", "output", line_of("print(")), 3);
    let span = &found["device 0 on s0"][0];
    assert_eq!((&span["args"]["file"], &span["pid"]), (&json!("examples/pipeline.spmd"), &json!(0)));
    let others = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(others, 1, "the file is the only one");
}

#[test]
fn a_built_program_records_collectives_of_its_last_run() {
    let program = "mesh (X = 4);\nfn main(x: f32[64@X]) -> f32 {\n  sum(2 * x)\n}\n";
    let folder = Folder::with(&[("p.spmd", program)]);
    folder.spmdc(&["build", "p.spmd", "-o", "p"]).expect(0, "", "");
    let run = |words: &[&str]| {
        let mut command = Command::new(folder.path().join("p"));
        Said::of(command.args(["--arg", "x=ones"]).args(words).current_dir(folder.path()).output().unwrap())
    };
    run(&["--trace", "run.json", "--bench", "3"]).expect(0, "128.0\n3 runs: min", "");
    let found = tracks(&folder.path().join("run.json"), 4);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["device 0", "device 1", "device 2", "device 3"]);
    for spans in found.values() {
        let reduced = spans.iter().filter(|span| span["cat"] == "communicate" && span["name"] == "all_reduce");
        assert_eq!(reduced.count(), 1, "one run: {:?}", kinds(spans));
    }
    assert!(run(&["--help"]).out.contains("--trace FILE"));
}

#[test]
fn a_long_run_says_how_much_of_it_was_left_out() {
    let text =
        "fn main() -> f32[4] {\n  let mut y = ones(f32[4]);\n  for i in 0..100000 { y = sin(roll(y, 1)); }\n  y\n}\n";
    let folder = Folder::with(&[("p.spmd", text)]);
    let said = folder.spmdc(&["run", "p.spmd", "--trace", "run.json", "--error-format", "json"]);
    said.expect(0, "f32[4]", "");
    let warning = &said.messages()[0];
    assert_eq!((&warning["code"], &warning["severity"]), (&json!("E0704"), &json!("warning")));
    let trace: Value = serde_json::from_str(&fs::read_to_string(folder.path().join("run.json")).unwrap()).unwrap();
    let dropped = trace["otherData"]["dropped_spans"].as_u64().unwrap();
    assert!(dropped >= 100_000 - 65_536, "{dropped}");
    assert!(warning["message"].as_str().unwrap().contains(&format!("the last {dropped} spans")), "{warning}");
    assert!(trace["traceEvents"].as_array().unwrap().len() <= 65_536 + 3);
}

#[test]
fn a_trace_that_cannot_be_written_is_an_error_before_the_run() {
    let program = "fn main() -> f32 { print(\"runs\"); 1.0 }\n";
    let folder = Folder::with(&[("p.spmd", program), ("old.json", "old")]);
    let run = |words: &[&str]| folder.spmdc(&[&["run", "p.spmd"], words].concat());
    for (words, reason) in [
        (&["--trace", "no_such_folder/run.json"][..], "error[E0704]: cannot write `no_such_folder/run.json`"),
        (&["--trace", "."], "error[E0704]: cannot write `.`: it is a directory"),
        (&["--trace", "./y.npy", "--out", "y.npy"], "error[E0702]: `y.npy` would be written twice"),
        (&["--trace", ""], "--trace takes the name of a file"),
    ] {
        let said = run(words);
        said.expect(2, "", reason);
        assert_eq!(said.out, "", "{words:?}");
    }
    run(&["--trace", "old.json"]).expect(0, "runs\n", "");
    assert!(fs::read_to_string(folder.path().join("old.json")).unwrap().starts_with("{\"displayTimeUnit\""));
}
