//! Prints `docs/pipeline.svg`: `cargo run --bin timeline`.

use spmdc_tests::pipeline::{of_example, svg};
use std::process::ExitCode;

fn main() -> ExitCode {
    match of_example() {
        Ok(timeline) => {
            print!("{}", svg(&timeline));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
