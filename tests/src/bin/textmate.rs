//! Prints `grammar/editors/vscode/syntaxes/spmd.tmLanguage.json`.

use spmdc_tests::textmate::grammar;
use std::process::ExitCode;

fn main() -> ExitCode {
    match grammar() {
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
