//! Every small program is a test with a name of its own: `cargo test --test cases windows::roll_moves_one_row` runs one of them.
//!
//! | name | programs |
//! |---|---|
//! | `FOLDER::NAME` | `tests/cases/FOLDER/NAME.spmd` |
//! | `examples::NAME` | `examples/NAME.spmd` |
//! | `pages::NAME::2` | the second program of `docs/rules/NAME.md` |
//! | `golden::NAME` | `tests/golden/NAME.spmd`, compared with the results of another implementation |
//! | `stablehlo::NAME` | `tests/stablehlo/NAME.mlir`, which JAX printed, compared with its results |

#![allow(clippy::unwrap_used)]

mod golden;
mod programs;

use libtest_mimic::{Arguments, Failed, Trial};
use spmdc_tests::case::{self, Case, files};
use spmdc_tests::root;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The programs below a folder, each with its path in the folder as a name.
fn named(folder: &str) -> Vec<(String, PathBuf)> {
    let folder = root().join(folder);
    let named = case::programs(&folder).into_iter().map(|path| {
        let inside = path.strip_prefix(&folder).unwrap().with_extension("");
        let words: Vec<String> = inside.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        (words.join("::"), path)
    });
    let named: Vec<(String, PathBuf)> = named.collect();
    assert!(!named.is_empty(), "no programs in {}", folder.display());
    named
}

/// A test that fails with all that is wrong with a case.
fn trial(
    name: String,
    case: impl FnOnce() -> Result<Case, String> + Send + 'static,
    check: impl FnOnce(&Case) -> Vec<String> + Send + 'static,
) -> Trial {
    Trial::test(name, || {
        let wrong = check(&case()?);
        if wrong.is_empty() { Ok(()) } else { Err(Failed::from(wrong.join("\n"))) }
    })
}

fn of_page(page: &Path) -> Vec<Trial> {
    let name = page.file_stem().unwrap().to_string_lossy();
    let trial = |(index, text): (usize, String)| {
        let page = page.to_path_buf();
        let case = move || Case::parse(&page, &text);
        trial(format!("pages::{name}::{}", index + 1), case, |case| programs::check(case, false))
    };
    case::on_page(page).unwrap().into_iter().enumerate().map(trial).collect()
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    for (name, path) in named("tests/cases") {
        trials.push(trial(name, move || Case::read(&path), |case| programs::check(case, true)));
    }
    for (name, path) in named("examples") {
        trials.push(trial(format!("examples::{name}"), move || Case::read(&path), |case| programs::check(case, false)));
    }
    let pages = files(&root().join("docs/rules"), "md");
    assert!(!pages.is_empty(), "no pages in docs/rules");
    trials.extend(pages.iter().flat_map(|page| of_page(page)));
    let golden = named("tests/golden");
    assert!(golden.len() >= 40, "{} golden programs", golden.len());
    for (name, path) in golden {
        trials.push(trial(format!("golden::{name}"), move || Case::read(&path), golden::check));
    }
    let printed = files(&root().join("tests/stablehlo"), "mlir");
    assert!(printed.len() >= 12, "{} programs of JAX", printed.len());
    for path in printed {
        let name = format!("stablehlo::{}", path.file_stem().unwrap().to_string_lossy());
        trials.push(trial(name, move || Case::read(&path), golden::check));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}
