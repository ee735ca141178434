//! `spmdc-fuzz TARGET` calls one entry point of `spmdc_tests::fuzz` with what the fuzzer sends.

use spmdc_tests::fuzz::{TARGETS, Target};
use std::process::ExitCode;

fn main() -> ExitCode {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let found: Option<Target> = TARGETS.iter().find(|(name, _)| *name == wanted).map(|&(_, target)| target);
    let Some(target) = found else {
        let names: Vec<&str> = TARGETS.iter().map(|&(name, _)| name).collect();
        eprintln!("usage: spmdc-fuzz {}", names.join("|"));
        return ExitCode::from(2);
    };
    afl::fuzz!(|data: &[u8]| target(data));
    ExitCode::SUCCESS
}
