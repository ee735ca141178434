//! Programs whose answers were computed by JAX (`golden/make.py`): on every mesh, by the evaluator and by the JIT.

use spmdc_abi::{Binding, Plane};
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::io::npz::NpzArchive;
use spmdc_tests::case::Case;
use spmdc_tests::compare::difference;
use spmdc_tests::{MESHES, engine};

/// The planes of complex numbers, which a file has as pairs.
fn planes(pairs: &HostArray) -> [HostArray; 2] {
    let (dtype, shape) = (pairs.dtype, &pairs.shape[..pairs.shape.len() - 1]);
    let size = dtype.size();
    [0, 1].map(|plane| {
        let parts = pairs.bytes.chunks_exact(2 * size).flat_map(|pair| pair[plane * size..][..size].to_vec());
        HostArray { dtype, shape: shape.to_vec(), bytes: parts.collect() }
    })
}

/// The arrays of these parameters or results, each by the name of its own or by that of the complex numbers of which it is a plane.
fn bound(archive: &NpzArchive, bindings: &[Binding], name: impl Fn(&Binding) -> String) -> Vec<HostArray> {
    let array = |binding: &Binding| {
        let array = array(archive, &name(binding));
        match binding.plane {
            None => array,
            Some(Plane::Real) => planes(&array)[0].clone(),
            Some(Plane::Imaginary) => planes(&array)[1].clone(),
        }
    };
    bindings.iter().map(array).collect()
}

fn array(archive: &NpzArchive, name: &str) -> HostArray {
    archive.array(name).unwrap().unwrap_or_else(|| panic!("no {name}")).read().unwrap()
}

/// Where the answers of a program are not those of its archive.
pub fn check(case: &Case) -> Vec<String> {
    let mut wrong: Vec<String> = case.allow(&["meshes", "tolerance"]).err().into_iter().collect();
    let Some(tolerance) = case.tolerance else {
        wrong.push("the header has no `//! tolerance:`".to_string());
        return wrong;
    };
    let archive = NpzArchive::open(&case.path.with_extension("npz")).unwrap();
    let name = case.path.file_name().unwrap().to_string_lossy().into_owned();
    let meshes = case.meshes.clone().unwrap_or_else(|| MESHES.map(str::to_string).to_vec());
    for mesh in &meshes {
        let compilation = match engine::compiled(&name, &case.text, mesh, None) {
            Ok(compilation) => compilation,
            Err(failures) => {
                wrong.push(format!("on {mesh}: {failures:?}"));
                continue;
            }
        };
        let program = compilation.program.as_ref().unwrap();
        let inputs = bound(&archive, &program.params, |param| format!("in.{}", param.name));
        // Results are numbered, those within tuples, too; both planes of complex numbers have one name.
        let mut names: Vec<&str> = program.results.iter().map(|result| result.name.as_str()).collect();
        names.dedup();
        let number = |result: &Binding| names.iter().position(|name| *name == result.name).unwrap();
        let expected = bound(&archive, &program.results, |result| format!("out.{}", number(result)));
        let run = engine::run(&compilation, &inputs, None).map(|outcome| outcome.results);
        let eval = engine::evaluated(&case.text, &compilation.stages[0], &inputs);
        for (who, results) in [("run", run), ("evaluator", eval)] {
            match results {
                Err(failure) => wrong.push(format!("on {mesh}, {who}: {failure:?}")),
                Ok(results) if results.len() != expected.len() => {
                    wrong.push(format!(
                        "on {mesh}, {who}: expected {} results, found {}",
                        expected.len(),
                        results.len()
                    ));
                }
                Ok(results) => {
                    for ((actual, expected), result) in results.iter().zip(&expected).zip(&program.results) {
                        if let Some(text) = difference(expected, actual, tolerance) {
                            let name = &result.name;
                            wrong.push(format!("on {mesh}, {who}, result {name}: {text}"));
                        }
                    }
                }
            }
        }
    }
    wrong
}
