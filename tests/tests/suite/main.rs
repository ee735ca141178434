//! The tests of the whole, in one executable: they are linked once, and run at the same time. Small programs are tests of `--test cases`.
//!
//! `cargo test --workspace --test suite programs::` runs those of `programs.rs`.

#![allow(clippy::unwrap_used)]

mod backends;
mod batching;
mod benches;
mod choices;
mod directives;
mod draws;
mod editors;
mod edits;
mod export;
mod failures;
mod format;
mod functions;
mod fuzz;
mod guide;
mod hints;
mod layouts;
mod lies;
mod math;
mod matrices;
mod misuse;
mod ops;
mod processes;
mod programs;
mod prose;
mod reshards;
mod shapes;
mod shardings;
mod states;
mod stencils;
mod sums;
mod tidy;
mod transfers;
mod wording;
mod worked_examples;
mod xla;

use std::ops::Range;

/// The number in a variable of the environment; None if it is not set. `CONTRIBUTING.md` lists the variables.
fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("expected a number in {name}, found `{text}`")))
}

/// The functions to try: all of these, or the one that the variable `OPS_ONLY` names.
fn selected_functions() -> Vec<&'static str> {
    let names = spmdc_functions::builtin_names().chain(spmdc_tests::random::calls::SYNTAX.iter().copied());
    let Ok(only) = std::env::var("OPS_ONLY") else { return names.collect() };
    let found: Vec<&str> = names.filter(|name| *name == only).collect();
    assert!(!found.is_empty(), "OPS_ONLY names no function: `{only}`");
    found
}

/// The numbers of the random inputs to try. If the variable `first` is set, they begin with it, and `count` is their number, by default
/// one. Otherwise they begin with 0, and their number is `count`, by default `usual`.
fn numbers(first: &str, count: &str, usual: u64) -> Range<u64> {
    match variable(first) {
        Some(first) => first..first + variable(count).unwrap_or(1),
        None => 0..variable(count).unwrap_or(usual),
    }
}

/// The number of the only random input to try, by the variable `only`; without it those from 0 on, `usual` of them if `count` does not say how many.
fn only_or_all(only: &str, count: &str, usual: u64) -> Range<u64> {
    match variable(only) {
        Some(only) => only..only + 1,
        None => 0..variable(count).unwrap_or(usual),
    }
}

/// Holds `docs/NAME.md` to what the program NAME prints.
#[track_caller]
fn assert_page(name: &str, expected: &str) {
    let written = std::fs::read_to_string(spmdc_tests::root().join(format!("docs/{name}.md"))).unwrap_or_default();
    let differs = written.lines().zip(expected.lines()).find(|(written, expected)| written != expected);
    assert!(
        written == expected,
        "cargo run -p spmdc-tests --bin {name} > docs/{name}.md; the first difference: {differs:?}"
    );
}
