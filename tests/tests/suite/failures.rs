//! Random programs that fail while running: whoever runs them, on whatever mesh, names the line of the statement that failed.
//!
//! 80 programs. `FAILURES=5000` tries more, `FAILURE=17` one.

use spmdc_tests::dumps::text;
use spmdc_tests::engine;
use spmdc_tests::random::Draw;
use spmdc_tests::random::failures::{ARGS, Failing, program};
use std::panic::catch_unwind;

fn holds(number: u64) -> Result<(), String> {
    let Failing { text: program, line, code } = program(&mut Draw::new("failing", number));
    for mesh in ["1x1", "2x3", "4x2"] {
        let failed = |what: String| format!("line {line} should stop it with {code}, on {mesh}: {what}\n{program}");
        let compilation = engine::compiled("failing.spmd", &program, mesh, None).map_err(|f| failed(text(&f)))?;
        let inputs = engine::inputs(&compilation, &ARGS.map(str::to_string), &spmdc_tests::root())?;
        let right =
            |outcome: Option<&engine::Failure>| outcome.is_some_and(|f| (f.line, f.code.as_str()) == (line, code));
        let expected = engine::evaluated(&program, &compilation.stages[0], &inputs);
        if !right(expected.as_ref().err()) {
            return Err(failed(format!("the evaluator says {:?}", expected.err())));
        }
        for workers in [None, Some(1)] {
            let run = engine::run(&compilation, &inputs, workers);
            if !right(run.as_ref().err()) {
                return Err(failed(format!("the run says {:?}", run.err())));
            }
        }
    }
    Ok(())
}

#[test]
fn failures_name_their_line() {
    let numbers = crate::numbers("FAILURE", "FAILURES", 80);
    let outcome = |number| catch_unwind(|| holds(number)).unwrap_or_else(|_| Err("panic".to_string()));
    let wrong: Vec<String> =
        numbers.filter_map(|number| outcome(number).err().map(|text| format!("program {number}: {text}"))).collect();
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

/// Of several statements that fail the first is named, though others fail at earlier places of the arrays: in one kernel, in parts of it
/// on several devices, and in kernels that run by panels.
#[test]
fn the_first_statement_that_fails_is_named() {
    let program = "mesh (X = 2);
        fn main(x: i32[64@X, 8]) {
          let place = iota(i32[64, 8], axis=0);
          let good = x // 3;
          let first = x // (place - 60);
          let second = x // (place - 1);
          good + first * 0 + second
        }";
    for mesh in ["1", "2", "7"] {
        let compilation = engine::compiled("failing.spmd", program, mesh, None).unwrap();
        let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root()).unwrap();
        for workers in [None, Some(1)] {
            let failure = engine::run(&compilation, &inputs, workers).unwrap_err();
            assert_eq!((failure.line, failure.code.as_str()), (5, "E0802"), "on {mesh}");
        }
    }
}
