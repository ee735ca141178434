//! Prints `docs/explained.svg`: `cargo run --bin screen -- target/release/spmdc`.

use spmdc_tests::screen::{explained_run, svg};
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let spmdc = std::env::args_os().nth(1).map_or("target/release/spmdc".into(), PathBuf::from);
    let spmdc = std::path::absolute(&spmdc).unwrap_or(spmdc);
    match explained_run(&spmdc) {
        Ok(lines) => {
            print!("{}", svg(&lines));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
