//! Prints `docs/functions.md`.

use spmdc_tests::functions::page;
use std::process::ExitCode;

fn main() -> ExitCode {
    match page() {
        Ok(page) => {
            print!("{page}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
