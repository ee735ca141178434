//! Prints `docs/reshards.md`.

use spmdc_tests::reshards::page;
use std::process::ExitCode;

fn main() -> ExitCode {
    match page() {
        Ok(page) => {
            print!("{page}");
            ExitCode::SUCCESS
        }
        Err(failures) => {
            eprintln!("{failures:?}");
            ExitCode::FAILURE
        }
    }
}
