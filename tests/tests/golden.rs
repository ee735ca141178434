//! Programs whose answers were computed by JAX (`golden/make.py`): on every mesh, by the evaluator and by the JIT.

#![allow(clippy::unwrap_used)]

use spmdc_runtime::array::HostArray;
use spmdc_runtime::io::npz::NpzArchive;
use spmdc_tests::case::{Case, programs};
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::{MESHES, engine, root};

fn tolerance(case: &Case) -> Tolerance {
    match case.tolerance.as_deref() {
        Some("exact") => Tolerance::Exact,
        Some("elementwise") => Tolerance::ELEMENTWISE,
        Some("reduction") => Tolerance::REDUCTION,
        other => panic!("{}: tolerance {other:?}", case.path.display()),
    }
}

fn array(archive: &NpzArchive, name: &str) -> HostArray {
    archive.array(name).unwrap().unwrap_or_else(|| panic!("no {name}")).read().unwrap()
}

#[test]
fn answers_equal_those_of_jax_on_every_mesh() {
    let mut wrong = Vec::new();
    let paths = programs(&root().join("tests/golden"));
    assert!(paths.len() >= 40, "{} golden programs", paths.len());
    for path in &paths {
        let case = Case::read(path).unwrap();
        let archive = NpzArchive::open(&path.with_extension("npz")).unwrap();
        for mesh in MESHES {
            let compilation = match engine::compiled("golden.spmd", &case.text, mesh, None) {
                Ok(compilation) => compilation,
                Err(failures) => {
                    wrong.push(format!("{} on {mesh}: {failures:?}", path.display()));
                    continue;
                }
            };
            let params = &compilation.program.as_ref().unwrap().params;
            let inputs: Vec<HostArray> =
                params.iter().map(|param| array(&archive, &format!("in.{}", param.name))).collect();
            let run = engine::run(&compilation, &inputs, None).map(|outcome| outcome.results);
            let eval = engine::evaluated(&case.text, &compilation.stages[0], &inputs);
            for (who, results) in [("run", run), ("evaluator", eval)] {
                match results {
                    Err(failure) => wrong.push(format!("{} on {mesh}, {who}: {failure:?}", path.display())),
                    Ok(results) => {
                        for (index, actual) in results.iter().enumerate() {
                            let expected = array(&archive, &format!("out.{index}"));
                            if let Some(text) = difference(&expected, actual, tolerance(&case)) {
                                wrong.push(format!("{} on {mesh}, {who}, result {index}: {text}", path.display()));
                            }
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
