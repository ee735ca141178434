//! The programs of `examples/jax`: each computes JAX's answers by the command line in the header of its script.

use std::fs;
use std::path::Path;

use crate::folder::{Folder, Said, spmdc};
use spmdc_runtime::data::array::HostArray;
use spmdc_runtime::io::npz::NpzArchive;
use spmdc_tests::case::files;
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::root;

/// The allowed error of a float, as a part of the largest magnitude of its array: other orders of sums.
const ERROR: f64 = 1e-4;

fn array(archive: &NpzArchive, name: &str) -> HostArray {
    archive.array(name).unwrap().unwrap_or_else(|| panic!("there is no result `{name}`")).read().unwrap()
}

/// Why results differ from JAX's; None if they agree.
fn difference_of_results(answers: &Path, results: &Path) -> Option<String> {
    let (answers, results) = (NpzArchive::open(answers).unwrap(), NpzArchive::open(results).unwrap());
    assert_eq!(answers.names().count(), results.names().count(), "numbers of results");
    answers.names().find_map(|name| {
        let expected = array(&answers, name);
        let tolerance = match expected.dtype.format() {
            Some(_) => Tolerance::Relative { relative: ERROR, of_largest: true },
            None => Tolerance::Exact,
        };
        difference(&expected, &array(&results, name), tolerance).map(|why| format!("result {name}, {why}"))
    })
}

#[test]
fn examples_of_jax_compute_its_answers() {
    let folder = Folder::with(&[]);
    let here = root().join("examples/jax");
    let readme = fs::read_to_string(here.join("README.md")).unwrap();
    let programs = files(&here, "mlir");
    assert!(programs.len() >= 6, "{} programs", programs.len());
    for program in programs {
        let name = program.file_stem().unwrap().to_str().unwrap();
        let script = fs::read_to_string(program.with_extension("py")).unwrap();
        assert!(
            script.contains(&format!("    python3 examples/jax/{name}.py\n")),
            "{name} does not say how to export it"
        );
        assert!(readme.contains(&format!("[{name}]({name}.py)")), "examples/jax/README.md does not list {name}");

        let words = script.lines().find_map(|line| line.strip_prefix("    spmdc "));
        let words = words.unwrap_or_else(|| panic!("{name} does not say how to run it"));
        assert!(words.contains(&format!("examples/jax/{name}.mlir")), "{name} runs another program: {words}");
        let results = folder.path().join(format!("{name}.npz"));
        let mut command = spmdc();
        command.args(words.split(' ')).arg("--out").arg(&results).current_dir(root());
        let said = Said::of(command.output().unwrap());
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{name}");
        let answers = here.join("answers").join(format!("{name}.npz"));
        assert_eq!(difference_of_results(&answers, &results), None, "{name}");
    }
}
