//! Worked examples with the collectives that a good plan has (`tests/worked_examples.txt`): ours receive at most as many bytes, and
//! the answers are the evaluator's on 1, 2, 3, 5 and 8 devices.

use spmdc_abi::CollectiveKind::{self, AllGather, AllReduce, AllToAll, CollectivePermute, ReduceScatter, Transfer};
use spmdc_compiler::report::plan::{Collective, collectives};
use spmdc_ir::program::Stage;
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::engine::{self, Failure};
use spmdc_tests::root;
use std::fs;

#[derive(Debug)]
struct Example {
    number: usize,
    mesh: String,
    program: String,
    /// The function that the language does not have yet.
    waits_for: Option<String>,
    /// Ours is not as good yet.
    misses: bool,
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    kind: CollectiveKind,
    /// Devices of a group.
    group: u64,
    /// Of one device's operand.
    bytes: u64,
    trips: u64,
}

impl Step {
    /// `all_reduce 4 256`, perhaps with `x 10` for a loop of so many trips.
    fn read(text: &str) -> Option<Step> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok());
        let kind = [AllReduce, AllGather, ReduceScatter, AllToAll, CollectivePermute]
            .into_iter()
            .find(|kind| kind.name() == words[0])?;
        let trips = if words.get(3) == Some(&"x") { number(4)? } else { 1 };
        Some(Step { kind, group: number(1)?, bytes: number(2)?, trips })
    }

    fn received(&self) -> f64 {
        received(self.kind, self.group, self.bytes) * self.trips as f64
    }
}

/// Bytes that a device receives, as the kind, the devices of a group and the bytes of an operand say.
fn received(kind: CollectiveKind, n: u64, bytes: u64) -> f64 {
    let (n, bytes) = (n as f64, bytes as f64);
    match kind {
        AllGather => (n - 1.0) * bytes,
        ReduceScatter | AllToAll => (n - 1.0) / n * bytes,
        AllReduce => 2.0 * (n - 1.0) / n * bytes,
        CollectivePermute | Transfer => bytes,
    }
}

/// The examples of one part of the file.
fn examples(part: &str) -> Vec<Example> {
    let text = fs::read_to_string(root().join("tests/worked_examples.txt")).unwrap();
    let (mut mesh, mut at, mut open, mut found) = (String::new(), "", None, Vec::new());
    for line in text.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            at = title;
        } else if line.starts_with("mesh ") {
            mesh = line.to_string();
        } else if let Some(steps) = line.strip_prefix("-> ") {
            let (number, program): (usize, String) =
                open.take().unwrap_or_else(|| panic!("no program before `{line}`"));
            let (waits_for, steps) = match steps.strip_prefix("waits for ") {
                Some(rest) => rest.split_once(": ").map(|(name, steps)| (Some(name.to_string()), steps)).unwrap(),
                None => (None, steps),
            };
            let (misses, steps) = steps.strip_prefix("misses ").map_or((false, steps), |steps| (true, steps));
            let read = |step| Step::read(step).unwrap_or_else(|| panic!("`{step}` is no collective"));
            let steps = if steps == "none" { Vec::new() } else { steps.split(", ").map(read).collect() };
            if at == part {
                found.push(Example { number, mesh: mesh.clone(), program, waits_for, misses, steps });
            }
        } else if let Some((number, program)) =
            line.split_once(": ").filter(|(number, _)| number.parse::<usize>().is_ok())
        {
            let function = if program.starts_with('(') { "fn main" } else { "" };
            open = Some((number.parse().unwrap(), format!("{function}{program}\n")));
        } else if let Some((_, program)) = &mut open {
            program.push_str(line);
            program.push('\n');
        }
    }
    assert!(!found.is_empty(), "there is no part `{part}`");
    found
}

fn check(example: &Example) -> Result<(), String> {
    let text = format!("{}\n{}", example.mesh, example.program);
    let compiled = engine::compiled("example.spmd", &text, "", None);
    let compilation = match (&example.waits_for, compiled) {
        (Some(name), Err(failures)) => {
            let waits =
                |f: &Failure| matches!(f.code.as_str(), "E0101" | "E0901" | "E0201") && f.message.contains(name);
            return if failures.iter().any(waits) { Ok(()) } else { Err(format!("{failures:?}")) };
        }
        (Some(name), Ok(_)) => return Err(format!("`{name}` has arrived: the example need not wait any more")),
        (None, compiled) => compiled.map_err(|failures| format!("{failures:?}"))?,
    };
    let found: Vec<Collective> = collectives(compilation.stage(Stage::Optimized).unwrap());
    let allowed: f64 = example.steps.iter().map(Step::received).sum();
    let trips = |step: &Collective| step.trips.unwrap_or(1);
    let usual = |step: &Collective| received(step.kind, step.group_size as u64, step.bytes) * trips(step) as f64;
    let usual: f64 = found.iter().map(usual).sum();
    let exact: u64 = found.iter().map(|step| step.received * trips(step)).sum();
    let more = usual > allowed || exact as f64 > allowed;
    if example.misses && !more {
        return Err("it receives no more any longer: take the mark away".to_string());
    }
    if !example.misses && more {
        return Err(format!("{usual} and {exact} bytes are received, not {allowed}: {found:#?}"));
    }
    let meshes = match example.mesh.matches('=').count() {
        1 => ["1", "2", "3", "5", "8"],
        _ => ["1x1", "2x1", "1x3", "5x1", "2x4"],
    };
    let inputs = engine::inputs(&compilation, &[], &root())?;
    let expected =
        engine::evaluated(&text, &compilation.stages[0], &inputs).map_err(|failure| format!("{failure:?}"))?;
    for mesh in meshes {
        let compilation = match engine::compiled("example.spmd", &text, mesh, None) {
            // `manual` code has blocks of one size only.
            Err(failures) if text.contains("manual") && failures.iter().all(|f| f.code == "E0503") => continue,
            compiled => compiled.map_err(|failures| format!("{mesh}: {failures:?}"))?,
        };
        let outcome = engine::run(&compilation, &inputs, None).map_err(|failure| format!("{mesh}: {failure:?}"))?;
        for (expected, actual) in expected.iter().zip(&outcome.results) {
            if let Some(text) = difference(expected, actual, Tolerance::reassociated(expected.dtype)) {
                return Err(format!("{mesh}: {text}"));
            }
        }
    }
    Ok(())
}

fn hold(part: &str) {
    let problem = |example: &Example| {
        check(example).err().map(|text| format!("example {}, {}: {text}", example.number, example.program))
    };
    let wrong: Vec<String> = examples(part).iter().filter_map(problem).collect();
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn products_and_reductions_receive_no_more_than_they_should() {
    hold("Elementwise, products, reductions");
}

#[test]
fn reshards_receive_no_more_than_they_should() {
    hold("Reshards");
}

#[test]
fn windows_receive_no_more_than_they_should() {
    hold("Parts of arrays, and arrays put together");
}

#[test]
fn rows_loops_and_gradients_receive_no_more_than_they_should() {
    hold("Rows by index, loops, gradients, explicit and manual axes");
}

#[test]
fn all_examples_are_there() {
    let parts = [
        "Elementwise, products, reductions",
        "Reshards",
        "Parts of arrays, and arrays put together",
        "Rows by index, loops, gradients, explicit and manual axes",
    ];
    let mut numbers: Vec<usize> = parts.iter().flat_map(|part| examples(part)).map(|example| example.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, (1..=99).collect::<Vec<usize>>());
}
