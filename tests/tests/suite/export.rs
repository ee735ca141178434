//! Programs as StableHLO text: read again, they have the same results.

use spmdc_abi::DType;
use spmdc_export::export;
use spmdc_ir::program::{Module, Stage};
use spmdc_runtime::data::array::HostArray;
use spmdc_tests::case::{self, Case};
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::{engine, problems, root};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The outcome for a program.
enum RoundTrip {
    /// It has no text, or its results are not defined: a program with an error, or one that stops.
    Without,
    /// StableHLO cannot express it, for this reason.
    Inexpressible(String),
    Equal,
}

/// Keys are pairs of words in the text.
fn as_words(array: &HostArray) -> HostArray {
    if array.dtype != DType::Key {
        return array.clone();
    }
    let shape: Vec<usize> = array.shape.iter().copied().chain([2]).collect();
    HostArray { bytes: array.bytes.clone(), ..HostArray::zeros(DType::U32, &shape) }
}

/// The arguments of a case. Without any that it names, the program is not compiled for them.
fn inputs(case: &Case, module: &Module) -> Result<Vec<HostArray>, String> {
    if !case.args.is_empty() {
        let compilation =
            engine::compiled_quickly("case.spmd", &case.text, "").map_err(|failures| format!("{failures:?}"))?;
        return engine::inputs(&compilation, &case.args, &root());
    }
    let params = module.func.body.params.iter().enumerate();
    Ok(params
        .map(|(number, &param)| {
            let ty = module.func.ty(param);
            let mut array = HostArray::zeros(ty.dtype(), ty.shape());
            engine::generate(&mut array, number as u64);
            array
        })
        .collect())
}

/// The results of the program, and of the program that its text is.
fn round_trip(case: &Case) -> Result<RoundTrip, String> {
    let compiled = |name, text, stage| engine::compiled(name, text, "", Some(stage));
    let Ok(compilation) = compiled("case.spmd", &case.text, Stage::Differentiated) else {
        return Ok(RoundTrip::Without);
    };
    let module = compilation.stages.last().unwrap();
    let text = match export(module) {
        Ok(text) => text.text,
        Err(errors) => return Ok(RoundTrip::Inexpressible(errors[0].message.clone())),
    };
    let inputs = inputs(case, module)?;
    let Ok(expected) = engine::evaluated(&case.text, module, &inputs) else { return Ok(RoundTrip::Without) };
    let read = compiled("case.mlir", &text, Stage::Typed).map_err(|failures| format!("{failures:?}\n{text}"))?;
    let inputs: Vec<HostArray> = inputs.iter().map(as_words).collect();
    let found = engine::evaluated(&text, &read.stages[0], &inputs);
    let found = found.map_err(|failure| format!("{failure:?}\n{text}"))?;
    for (number, (expected, found)) in expected.iter().map(as_words).zip(&found).enumerate() {
        if let Some(text) = difference(&expected, found, Tolerance::reassociated(expected.dtype)) {
            return Err(format!("result {number}: {text}"));
        }
    }
    Ok(RoundTrip::Equal)
}

/// Abilities that StableHLO lacks, each with the programs that need it.
const INEXPRESSIBLE: [(&str, &[&str]); 2] = [
    ("writing of files", &["examples/resume.spmd", "tests/cases/output/values_of_texts_stay.spmd"]),
    (
        "several meshes",
        &["examples/halves.spmd", "examples/pipeline.spmd", "examples/pipeline_grad.spmd", "tests/cases/meshes/"],
    ),
];

#[test]
fn programs_have_the_same_results_after_export_and_import() {
    let folders = ["tests/cases", "examples"].iter();
    let paths: Vec<_> = folders.flat_map(|folder| case::programs(&root().join(folder))).collect();
    let equal = AtomicUsize::new(0);
    let wrong = problems(&paths, |path| {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        let problem = match Case::read(path).and_then(|case| round_trip(&case)) {
            Ok(RoundTrip::Without) => return Vec::new(),
            Ok(RoundTrip::Inexpressible(reason)) => {
                let is_known = |(lacking, programs): &(&str, &[&str])| {
                    reason.contains(lacking) && programs.iter().any(|known| name.starts_with(known))
                };
                if INEXPRESSIBLE.iter().any(is_known) {
                    return Vec::new();
                }
                reason
            }
            Ok(RoundTrip::Equal) => {
                equal.fetch_add(1, Ordering::Relaxed);
                return Vec::new();
            }
            Err(problem) => problem,
        };
        vec![format!("{name}: {problem}")]
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(equal.into_inner() >= 390, "too few programs have a text");
}
