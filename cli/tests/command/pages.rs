//! The pages of the documentation are true: every diagnostic's example raises its code, and what other pages show compiles.

use crate::folder::{SPMDC, starter};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("docs")
}

fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages
}

/// The `spmd` blocks of a page.
fn blocks(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    text.split("```spmd\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_string()).collect()
}

/// The first program of a page: of the language, or StableHLO text.
fn first_block(page: &Path) -> Option<(&'static str, String)> {
    let text = fs::read_to_string(page).unwrap();
    let languages = [("spmd", "```spmd\n"), ("mlir", "```mlir\n")];
    let first = languages.into_iter().filter_map(|(ending, fence)| Some((text.find(fence)?, ending, fence))).min()?;
    let (at, ending, fence) = first;
    let (block, _) = text[at + fence.len()..].split_once("```")?;
    Some((ending, block.to_string()))
}

/// Runs the command on a program of the language.
fn spmdc(command: &str, text: &str, words: &[&str]) -> Output {
    spmdc_on("page.spmd", command, text, words)
}

/// Runs the command on a text in a file of this name, in a folder of its own. A line of the text may name variables of the environment.
fn spmdc_on(file: &str, command: &str, text: &str, words: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    fs::write(&path, text).unwrap();
    let mut spmdc = starter(SPMDC);
    let variables = text.lines().find_map(|line| line.strip_prefix("// environment: ")).unwrap_or_default();
    spmdc.envs(variables.split_whitespace().filter_map(|variable| variable.split_once('=')));
    spmdc.arg(command).arg(&path).args(["--error-format", "json"]).args(words).current_dir(folder.path());
    spmdc.output().unwrap()
}

#[test]
fn every_example_of_a_diagnostic_raises_it() {
    // No program brings about a defect of the compiler, or a lesser processor than the one at hand. Others need several processes.
    let without_example = ["E0805", "E0808", "E0809", "E0999"];
    for page in pages(&docs().join("errors")) {
        let code = page.file_stem().unwrap().to_string_lossy().into_owned();
        let Some((ending, example)) = first_block(&page) else {
            assert!(without_example.contains(&code.as_str()), "{code} has no example");
            continue;
        };
        let words = example.lines().find_map(|line| line.strip_prefix("// run: ")).unwrap_or_default();
        let command = example.lines().find_map(|line| line.strip_prefix("// command: ")).unwrap_or("run");
        let output =
            spmdc_on(&format!("page.{ending}"), command, &example, &words.split_whitespace().collect::<Vec<_>>());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let raised = errors.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let raised: Vec<String> = raised.filter_map(|line| Some(line["code"].as_str()?.to_string())).collect();
        assert!(raised.contains(&code), "the example of {code} raises {raised:?}: {errors}");
        let is_warning = errors.contains("\"severity\":\"warning\"");
        assert_eq!(output.status.success(), is_warning, "the example of {code} ends with {}", output.status);
    }
}

#[test]
fn commands_on_pages_print_what_is_shown() {
    for page in ["language/derivatives.md", "language/meshes.md", "jax.md"] {
        let text = fs::read_to_string(docs().join(page)).unwrap();
        let mut program = "";
        let mut shown = 0;
        for fence in text.split("```").skip(1).step_by(2) {
            if let Some(block) = fence.strip_prefix("spmd\n") {
                program = block;
            }
            let Some(block) = fence.strip_prefix("\n$ spmdc ") else { continue };
            let mut lines = block.lines();
            let words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
            let output = spmdc(words[0], program, &words[1..]);
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            let mut rest = printed.lines();
            for line in lines {
                assert!(rest.any(|other| other == line), "{page}: `{line}` does not follow in:\n{printed}");
                shown += 1;
            }
        }
        assert!(shown > 0, "{page} shows no command");
    }
}

#[test]
fn programs_on_pages_compile() {
    let root = docs().parent().unwrap().to_path_buf();
    let mut all = pages(&docs().join("rules"));
    all.extend([root.join("README.md"), docs().join("language/types.md")]);
    for page in all {
        for (index, block) in blocks(&page).iter().enumerate() {
            let output = spmdc("check", block, &[]);
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "block {index} of {}: {errors}", page.display());
        }
    }
}
