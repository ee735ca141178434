//! The programs of `tests/benches/rows`, at the small sizes of their headers: the evaluator's answers on uneven blocks, and a peer for each.

use spmdc_runtime::data::array::HostArray;
use spmdc_tests::case::{self, Case};
use spmdc_tests::compare::{Tolerance, difference};
use spmdc_tests::{engine, root};
use std::path::Path;

/// The text with the constants of its line `//! small: N=37 T=3`.
fn small(case: &Case) -> String {
    assert!(!case.small.is_empty(), "{} has no line `//! small:`", case.path.display());
    case.small.iter().fold(case.text.clone(), |text, (name, size)| {
        let (before, rest) = text.split_once(&format!("const {name} = ")).expect("a constant of this name");
        format!("{before}const {name} = {size}{}", &rest[rest.find(';').unwrap()..])
    })
}

fn answers(path: &Path) -> Result<(), String> {
    let case = Case::read(path)?;
    case.allow(&["args", "small"])?;
    let text = small(&case);
    let meshes: &[&str] = if text.contains("\nmesh ") { &["", "3"] } else { &[""] };
    for mesh in meshes {
        let compiled = engine::compiled_quickly("row.spmd", &text, mesh).map_err(|failures| format!("{failures:?}"))?;
        let inputs = engine::inputs(&compiled, &case.args, &root())?;
        let expected =
            engine::evaluated(&text, &compiled.stages[0], &inputs).map_err(|failure| format!("{failure:?}"))?;
        let found = engine::run(&compiled, &inputs, None).map_err(|failure| format!("{failure:?}"))?.results;
        assert_eq!(expected.len(), found.len(), "{}", path.display());
        let differ =
            |(expected, found): (&HostArray, _)| difference(expected, found, Tolerance::reassociated(expected.dtype));
        if let Some(text) = expected.iter().zip(&found).find_map(differ) {
            return Err(format!("on `{mesh}`: {text}"));
        }
    }
    Ok(())
}

#[test]
fn the_rows_have_peers_and_the_evaluators_answers() {
    let programs = case::programs(&root().join("tests/benches/rows"));
    assert!(programs.len() >= 50, "{} programs", programs.len());
    for path in programs {
        let name = path.display();
        assert!(path.with_extension("c").exists(), "{name} has no peer");
        if let Err(why) = answers(&path) {
            panic!("{name}: {why}");
        }
    }
}
