//! Measures how far the math functions are from the truth, in units in the last place.
//!
//! ```text
//! cargo run --release -p spmdc-tests --bin ulp                       every function in every type
//! cargo run --release -p spmdc-tests --bin ulp -- --f64 exp log      two functions in double precision
//! cargo run --release -p spmdc-tests --bin ulp -- --samples 1000000  a quick look
//! ```
//!
//! In `f32` every number is tried, in `f16` and `bf16` too; functions of two numbers and `f64` get 10^8 samples. Prints one row of
//! a table per function: the largest error and its argument, the mean error, and the error of the reference. Then follow the number of
//! answers of a wrong kind (NaN or not, infinite or not, the sign of a zero), and the number of answers with other bits than the
//! evaluator's. The number of arguments and the seconds are last. The exit status is 1 if a bound is exceeded.

use spmdc_abi::DType;
use spmdc_tests::accuracy::{Errors, Function, Sweep, bound, reference};
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// The floats of 16 bits and more.
fn measured() -> Vec<DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_float() && dtype.size() > 1).collect()
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<bool, String> {
    let mut sweep = Sweep { samples: None, threads: 2 };
    let (mut dtypes, mut functions) = (Vec::new(), Vec::new());
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|n| n.parse().ok()).ok_or(format!("{argument} needs a number"));
        match argument.as_str() {
            "--samples" => sweep.samples = Some(number()?),
            "--threads" => sweep.threads = number()? as usize,
            flag if flag.starts_with("--") => {
                let dtype = DType::named(&flag[2..]).filter(|dtype| measured().contains(dtype));
                dtypes.push(dtype.ok_or(format!("there is no option `{flag}`"))?);
            }
            name => functions.push(Function::from_name(name).ok_or(format!("there is no function `{name}`"))?),
        }
    }
    if dtypes.is_empty() {
        dtypes = measured();
    }
    if functions.is_empty() {
        functions = Function::all().collect();
    }
    println!("The reference: C's `double` for functions of one `f32`, else its `long double`. It is compared with the");
    println!(
        "{} digits of the widest format, at 16 of 65536 arguments, every special argument and every",
        reference::digits()
    );
    println!("largest error so far. The largest difference is the column `doubt`; a bound must hold with it added.");
    let mut good = true;
    for dtype in dtypes {
        println!("\n## {}: at most {} ULP\n", dtype.name(), bound(dtype));
        println!("| function | max ULP | at | mean | doubt | wrong | evaluator differs | arguments | seconds |");
        println!("|---|---|---|---|---|---|---|---|---|");
        for &function in &functions {
            let start = Instant::now();
            let errors = sweep.run(function, dtype)?;
            println!("{} {:.0} |", row(&errors), start.elapsed().as_secs_f64());
            std::io::stdout().flush().map_err(|error| error.to_string())?;
            good &= errors.good();
        }
    }
    Ok(good)
}

fn row(errors: &Errors) -> String {
    let count = |n: u64, first: &str| if n == 0 { "0".to_string() } else { format!("{n}: {first}") };
    format!(
        "| {} | {:.4} | {} | {:.4} | {:.0e} | {} | {} | {} |",
        errors.function.name(),
        errors.max,
        errors.at,
        errors.mean,
        errors.doubt,
        count(errors.wrong, &errors.wrong_at),
        count(errors.unequal, &errors.unequal_at),
        errors.tried,
    )
}
