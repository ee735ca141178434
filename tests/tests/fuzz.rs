//! The entry points of the fuzzers, briefly: the cases and files of the tests, damaged.
//!
//! 60 inputs for each. `FUZZ=20000` tries more, from `FUZZ_FROM=0` on; `FUZZ_TARGET=check` only one entry point.

#![allow(clippy::unwrap_used)]

use spmdc_runtime::array::HostArray;
use spmdc_runtime::io::npy::write_npy;
use spmdc_runtime::io::npz::write_npz;
use spmdc_tests::case::{files, programs};
use spmdc_tests::fuzz::{TARGETS, damaged};
use spmdc_tests::random::Draw;
use spmdc_tests::root;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whole inputs of an entry point, to be damaged.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let array = HostArray::zeros(spmdc_runtime::abi::DType::F32, &[3, 4]);
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
        _ => programs(&root().join("tests/cases")).iter().map(|path| fs::read(path).unwrap()).collect(),
    }
}

#[test]
fn damaged_inputs_do_no_harm() {
    let env = |name: &str| std::env::var(name).ok();
    let number = |name: &str| env(name).and_then(|text| text.parse::<u64>().ok());
    let (from, count) = (number("FUZZ_FROM").unwrap_or(0), number("FUZZ").unwrap_or(60));
    let mut wrong = Vec::new();
    for (name, target) in TARGETS {
        if env("FUZZ_TARGET").is_some_and(|only| only != name) {
            continue;
        }
        let corpus = corpus(name);
        for number in from..from + count {
            let mut draw = Draw::new(name, number);
            let (data, other) = (draw.below(corpus.len()), draw.below(corpus.len()));
            let input = match name {
                // Any bytes choose a program.
                "run" => (0..200).map(|_| draw.below(256) as u8).collect(),
                _ => damaged(&corpus[data], &corpus[other], &mut draw),
            };
            if catch_unwind(AssertUnwindSafe(|| target(&input))).is_err() {
                let text = String::from_utf8_lossy(&input[..input.len().min(1000)]).into_owned();
                wrong.push(format!("{name}, input {number}:\n{text}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}
