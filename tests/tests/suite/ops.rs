//! Every function and operator of the language on random shapes, shardings, meshes and element types. The partitioned program means the
//! same as the whole one, machine code computes the same as the evaluator, and a dump of every stage reads back as itself.
//!
//! `OPS_SAMPLES=200` tries more of each, `OPS_ONLY=roll` one of them, `OPS_NUMBER=17` one sample.

use spmdc_ir::program::Stage;
use spmdc_runtime::data::array::HostArray;
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::dumps::{read_back, text};
use spmdc_tests::engine::Loaded;
use spmdc_tests::random::{Array, Draw, Mesh};
use spmdc_tests::random::{batching, composed, derivatives, manual, matrices, spectral};
use spmdc_tests::random::{call::Call, calls};
use spmdc_tests::{engine, problems};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A program, and what is needed to say what went wrong with it.
struct Sample {
    text: String,
    /// The layout may be ambiguous on explicit axes, and an empty array has no largest element.
    may_be_refused: bool,
    tolerance: fn(&HostArray) -> Tolerance,
}

const NAMES: [&str; 3] = ["a", "b", "c"];

fn program(mesh: &Mesh, call: &Call, params: &[String], result: &str) -> String {
    let params: Vec<String> = params.iter().zip(NAMES).map(|(ty, name)| format!("{name}: {ty}")).collect();
    format!("{}fn main({}) {{ {} {result} }}\n", mesh.text(), params.join(", "), call.before)
}

/// Elementwise functions have no freedom; sums may be taken in another order, and their terms are numbers around one.
fn tolerance(name: &str) -> fn(&HostArray) -> Tolerance {
    const SUMS: &[&str] = &[
        "sum",
        "prod",
        "cumsum",
        "cumprod",
        "mean",
        "var",
        "std",
        "norm",
        "average",
        "nansum",
        "nanmean",
        "nanvar",
        "nanstd",
        "layer_norm",
        "rms_norm",
        "attention",
        "vdot",
        "matrix_power",
        "logsumexp",
        "softmax",
        "log_softmax",
        "dirichlet",
        "multivariate_normal",
        "@",
        "matmul",
        "dot",
        "tensordot",
        "einsum",
        "trace",
        "reduce_window",
        "avg_pool",
        "conv",
        "conv_transpose",
        "convolve",
    ];
    let sums: [&[&str]; 6] =
        [SUMS, &matrices::NAMES, &spectral::SUMS, &composed::SUMS, &derivatives::NAMES, &batching::NAMES];
    if sums.iter().any(|names| names.contains(&name)) {
        |expected| Tolerance::sum_of_ones(expected.dtype)
    } else {
        |_| Tolerance::Exact
    }
}

/// The sample of this number, or why its call is refused before anything is laid out.
fn sample(name: &str, number: u64) -> Result<Sample, String> {
    let mut draw = Draw::new(name, number);
    let call = calls::call(name, &mut draw).ok_or("no call is known")?;
    let one = Mesh { axes: Vec::new() };
    let plain: Vec<String> = call.params.iter().map(|array| array.text(&[])).collect();
    let plain = program(&one, &call, &plain, &call.expr).replace("mesh ();\n", "");
    let empty = call.params.iter().any(|array| array.shape.contains(&0));
    let typed = match engine::compiled("plain.spmd", &plain, "", Some(Stage::Typed)) {
        Ok(compilation) => compilation,
        Err(failures) if empty && failures.iter().all(|failure| failure.code != "E0999") => {
            return Ok(Sample { text: plain, may_be_refused: true, tolerance: tolerance(name) });
        }
        Err(failures) => return Err(format!("{plain}{failures:?}")),
    };
    let func = &typed.stages[0].func;
    let rank = func.body.results.first().map_or(0, |&result| func.ty(result).rank());
    let explicit = draw.chance(30);
    let mesh = Mesh::random(&mut draw, explicit);
    let params: Vec<String> = call
        .params
        .iter()
        .map(|array: &Array| {
            let says_nothing = draw.chance(20);
            let dims = if says_nothing { Vec::new() } else { mesh.sharding_of(&mut draw, &array.shape) };
            array.text(&dims)
        })
        .collect();
    let result = match draw.chance(60) {
        true => format!("reshard({}, P({}))", call.expr, mesh.sharding(&mut draw, rank).join(", ")),
        false => call.expr.clone(),
    };
    Ok(Sample { text: program(&mesh, &call, &params, &result), may_be_refused: explicit, tolerance: tolerance(name) })
}

/// A sample of a collective in `manual` code; sums of partial values are all that is free.
fn manual_sample(name: &str, number: u64) -> Sample {
    let mut draw = Draw::new(name, number);
    let mesh = Mesh::random(&mut draw, false);
    let tolerance: fn(&HostArray) -> Tolerance = match name {
        "psum" | "pmean" | "psum_scatter" => |expected| Tolerance::sum_of_ones(expected.dtype),
        _ => |_| Tolerance::Exact,
    };
    Sample { text: manual::program(name, &mut draw, &mesh), may_be_refused: false, tolerance }
}

fn agree(what: &str, sample: &Sample, expected: &[HostArray], actual: &[HostArray]) -> Result<(), String> {
    for (expected, actual) in expected.iter().zip(actual) {
        if let Some(text) = difference(expected, actual, (sample.tolerance)(expected)) {
            return Err(format!("{what}: {text}"));
        }
    }
    if expected.len() == actual.len() { Ok(()) } else { Err(format!("{what}: {} results", actual.len())) }
}

/// Whether there was anything to compare.
fn holds(sample: &Sample, number: u64) -> Result<bool, String> {
    let compilation = match engine::compiled("sample.spmd", &sample.text, "", None) {
        Ok(compilation) => compilation,
        Err(failures) if sample.may_be_refused && failures.iter().all(|failure| failure.code != "E0999") => {
            return Ok(false);
        }
        Err(failures) => return Err(text(&failures)),
    };
    let inputs = engine::inputs(&compilation, &[], &spmdc_tests::root())?;
    let expected = engine::evaluated(&sample.text, &compilation.stages[0], &inputs);
    let loaded = Loaded::new(&compilation).map_err(|f| text(&[f]))?;
    let run = loaded.run(&inputs, None);
    let (expected, run) = match (expected, run) {
        (Ok(expected), Ok(run)) => (expected, run),
        (Err(expected), Err(run)) if expected.code == run.code => return Ok(false),
        (expected, run) => return Err(format!("the evaluator says {expected:?}, the run {run:?}")),
    };
    agree("run", sample, &expected, &run.results)?;
    if loaded.run(&inputs, Some(1)).map_err(|f| text(&[f]))?.results != run.results {
        return Err("one worker gives other bits".to_string());
    }
    for module in &compilation.stages {
        let results = engine::evaluated(&sample.text, module, &inputs).map_err(|f| text(&[f]))?;
        agree(module.stage.name(), sample, &expected, &results)?;
    }
    read_back(&compilation, &inputs, &run.results, number as usize)?;
    Ok(true)
}

#[test]
fn every_op_on_random_layouts() {
    let numbers = crate::only_or_all("OPS_NUMBER", "OPS_SAMPLES", 12);
    let wrong = problems(&crate::selected_functions(), |name| differences(name, numbers.clone()));
    assert!(wrong.is_empty(), "{} problems:\n{}", wrong.len(), wrong.join("\n"));
}

/// Which samples of a function's calls do not give the evaluator's answer.
fn differences(name: &str, numbers: Range<u64>) -> Vec<String> {
    let mut wrong = Vec::new();
    let sample: fn(&str, u64) -> Result<Sample, String> = match name {
        _ if manual::NAMES.contains(&name) => |name, number| Ok(manual_sample(name, number)),
        _ if calls::call(name, &mut Draw::new(name, 0)).is_some() => sample,
        _ => return wrong,
    };
    let mut compared = 0;
    for number in numbers.clone() {
        let sample = match sample(name, number) {
            Ok(sample) => sample,
            Err(text) => {
                wrong.push(format!("`{name}`, sample {number}: {text}"));
                continue;
            }
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| holds(&sample, number)));
        match outcome.unwrap_or_else(|_| Err("panic".to_string())) {
            Ok(was_compared) => compared += u64::from(was_compared),
            Err(text) => wrong.push(format!("`{name}`, sample {number}: {text}\n{}", sample.text)),
        }
    }
    if compared == 0 && numbers.end - numbers.start > 5 {
        wrong.push(format!("`{name}`: no sample had an answer"));
    }
    wrong
}

/// A function without a random call is one that is not supported yet, one for dumps, or a collective of `manual` code.
#[test]
fn no_function_is_left_out() {
    for name in spmdc_functions::builtin_names() {
        let known = calls::call(name, &mut Draw::new(name, 0)).is_some() || manual::NAMES.contains(&name);
        // Functions of trees make calls of other functions and no statement of their own; `save` writes files.
        // `transfer` has tests of its own, between several meshes.
        let is_elsewhere = matches!(name, "tree_map" | "tree_reduce" | "save" | "transfer");
        if known || spmdc_functions::instead_of(name).is_some() || is_elsewhere {
            continue;
        }
        let program = format!("fn main(x: f32[4]) {{ {name}({}) }}\n", if name == "key" { "42" } else { "x" });
        let failures = engine::compiled("later.spmd", &program, "", None).expect_err(name);
        assert_eq!(failures[0].code, "E0901", "`{name}` has no random call in tests/src/random/calls.rs");
    }
}
