//! The entry points of the fuzzers, briefly: the cases and files of the tests, damaged.
//!
//! 60 inputs for each. `FUZZ=20000` tries more, from `FUZZ_FROM=0` on; `FUZZ_TARGET=check` only one entry point, `sizes` only the hostile
//! sizes. It says which input took longest and how much memory there was at once, and with
//! `FUZZ=1` what the input is.

use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::io::npy::write_npy;
use spmdc_runtime::io::npz::write_npz;
use spmdc_tests::case::{files, programs};
use spmdc_tests::fuzz::{self, TARGETS, Target, damaged, with_hostile_sizes};
use spmdc_tests::random::Draw;
use spmdc_tests::root;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Whole inputs of an entry point, to be damaged.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let array = HostArray::zeros(spmdc_abi::DType::F32, &[3, 4]);
    match target {
        "npy" => {
            let path = folder.path().join("a.npy");
            write_npy(&path, &array).unwrap();
            let golden = files(&root().join("tests/golden"), "npy");
            let small = golden.iter().map(|path| fs::read(path).unwrap()).filter(|data| data.len() < 4096);
            small.take(50).chain([fs::read(&path).unwrap()]).collect()
        }
        "npz" => {
            let path = folder.path().join("a.npz");
            write_npz(&path, &[("x", &array), ("p.w", &array)]).unwrap();
            vec![fs::read(&path).unwrap()]
        }
        "safetensors" => {
            let header = r#"{"x":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]},"y":{"dtype":"I64","shape":[1],"data_offsets":[48,56]}}"#;
            vec![[&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 56]].concat()]
        }
        "jax" => {
            let texts = files(&root().join("tests/stablehlo"), "mlir");
            texts.iter().map(|path| fs::read(path).unwrap()).filter(|data| data.len() < 20_000).collect()
        }
        _ => programs(&root().join("tests/cases")).iter().map(|path| fs::read(path).unwrap()).collect(),
    }
}

/// Calls the entry points of these names with as many inputs as wanted, and lists what is wrong.
fn try_all(targets: &[(&str, Target)], input: impl Fn(&str, &[Vec<u8>], u64) -> Vec<u8>) {
    let (from, count) = (crate::variable("FUZZ_FROM").unwrap_or(0), crate::variable("FUZZ").unwrap_or(60));
    let mut wrong = Vec::new();
    for &(name, target) in targets {
        let corpus = corpus(name);
        let mut slowest = (Duration::ZERO, 0);
        for number in from..from + count {
            let input = input(name, &corpus, number);
            if count == 1 {
                println!("{}", String::from_utf8_lossy(&input));
            }
            let start = Instant::now();
            if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
                let text = String::from_utf8_lossy(&input[..input.len().min(1000)]);
                wrong.push(format!("{name}, input {number}:\n{text}"));
            }
            slowest = slowest.max((start.elapsed(), number));
        }
        println!("{name}: {count} inputs, the slowest is {} with {:.0?}", slowest.1, slowest.0);
    }
    println!("{}", peak_memory());
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

/// The maximum memory of this process, as Linux reports it.
fn peak_memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("no peak of memory is known").to_string()
}

/// The only entry point to try; None: all.
fn only() -> Option<String> {
    let only = std::env::var("FUZZ_TARGET").ok()?;
    let is_known = only == "sizes" || TARGETS.iter().any(|(name, _)| *name == only);
    assert!(is_known, "FUZZ_TARGET names no entry point: `{only}`");
    Some(only)
}

#[test]
fn damaged_inputs_do_no_harm() {
    let wanted: Vec<(&str, Target)> =
        TARGETS.into_iter().filter(|(name, _)| only().is_none_or(|only| only == *name)).collect();
    try_all(&wanted, |name, corpus, number| {
        let mut draw = Draw::new(name, number);
        let (data, other) = (draw.below(corpus.len()), draw.below(corpus.len()));
        match name {
            // Any bytes choose a program.
            "run" => (0..200).map(|_| draw.below(256) as u8).collect(),
            _ => damaged(&corpus[data], &corpus[other], &mut draw),
        }
    });
}

#[test]
fn hostile_sizes_do_no_harm() {
    if only().is_some_and(|only| only != "sizes") {
        return;
    }
    try_all(&[("sizes", fuzz::check)], |name, corpus, number| {
        let mut draw = Draw::new(name, number);
        let data = draw.below(corpus.len());
        with_hostile_sizes(&corpus[data], &mut draw)
    });
}
