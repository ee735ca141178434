//! Random calls of every function with arguments that mostly do not fit: whatever a program calls, it is compiled, or refused by a code of
//! its own. Some of those that pass the checker go on to the end, where a run says what the evaluator says.
//!
//! 1500 programs. `CALLS=100000` tries more, `CALL=17` one, and with both as many from there on.

use spmdc_ir::program::Stage;
use spmdc_tests::engine::{self, Failure, Loaded};
use spmdc_tests::random::Draw;
use spmdc_tests::random::misuse::{self, Function};
use spmdc_tests::{dumps, problems};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Programs with more values, or elements in one of them, are only checked.
const MAX_VALUES: usize = 2000;
const MAX_ELEMENTS: usize = 1 << 12;

/// One of so many programs goes on to the end.
const RUNS: u64 = 12;

fn no_bug(failures: &[Failure]) -> Result<(), String> {
    let is_bug = failures.iter().any(|failure| failure.code == "E0999");
    if is_bug { Err(dumps::text(failures)) } else { Ok(()) }
}

fn holds(text: &str, number: u64) -> Result<(), String> {
    let typed = match engine::compiled("misuse.spmd", text, "", Some(Stage::Typed)) {
        Ok(typed) => typed,
        Err(failures) => return no_bug(&failures),
    };
    let values = &typed.stages[0].func.values;
    let is_small = values.len() <= MAX_VALUES && values.iter().all(|info| info.ty.array.len() <= MAX_ELEMENTS);
    if !is_small || !number.is_multiple_of(RUNS) {
        return Ok(());
    }
    let compilation = match engine::compiled("misuse.spmd", text, "", None) {
        Ok(compilation) => compilation,
        Err(failures) => return no_bug(&failures),
    };
    if text.contains("save(") {
        return Ok(());
    }
    let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root())?;
    let expected = engine::evaluated(text, &compilation.stages[0], &inputs).map(drop);
    let run = Loaded::new(&compilation).and_then(|loaded| loaded.run(&inputs, None)).map(drop);
    let code = |outcome: &Result<(), Failure>| outcome.as_ref().err().map(|failure| failure.code.clone());
    if code(&expected) == code(&run) {
        return no_bug(run.as_ref().err().into_iter().cloned().collect::<Vec<_>>().as_slice());
    }
    Err(format!("the evaluator says {expected:?}, the run {run:?}"))
}

fn wrong(functions: &[Function], number: u64) -> Vec<String> {
    let text = misuse::program(functions, &mut Draw::new("misuse", number));
    let outcome = catch_unwind(AssertUnwindSafe(|| holds(&text, number)));
    let outcome = outcome.unwrap_or_else(|_| Err("panic".to_string()));
    outcome.err().map(|what| format!("program {number}: {what}\n{text}")).into_iter().collect()
}

#[test]
fn no_call_meets_a_bug() {
    let functions = misuse::functions();
    let numbers: Vec<u64> = crate::numbers("CALL", "CALLS", 1500).collect();
    let wrong = problems(&numbers, |&number| wrong(&functions, number));
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}
