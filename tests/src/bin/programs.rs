//! Writes the random programs of some numbers into a folder: `programs FOLDER FIRST COUNT`. `tests/compare_builds.py` reads them.

use spmdc_tests::random::whole::program;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Option<(u64, u64)> = match args.as_slice() {
        [_, first, count] => first.parse().ok().zip(count.parse().ok()),
        _ => None,
    };
    let Some((first, count)) = numbers else {
        eprintln!("usage: programs FOLDER FIRST COUNT");
        return ExitCode::FAILURE;
    };
    match write(Path::new(&args[0]), first, count) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path, first: u64, count: u64) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for number in first..first + count {
        let (text, _) = program(number)?;
        std::fs::write(folder.join(format!("{number}.spmd")), text).map_err(|error| error.to_string())?;
    }
    Ok(())
}
