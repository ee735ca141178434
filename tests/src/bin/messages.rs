//! Prints `docs/messages.txt`.

use spmdc_tests::messages::listing;
use std::process::ExitCode;

fn main() -> ExitCode {
    match listing() {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}
