//! The formatter: programs of the repository are formatted, and one text comes of all layouts of a program.
//!
//! `FORMATS=10000` formats more random programs, `FORMAT=17` one of them.

use spmdc_grammar::ast::ProgramNode;
use spmdc_grammar::format::format;
use spmdc_grammar::parse;
use spmdc_grammar::span::FileId;
use spmdc_grammar::strip_spans::strip_spans;
use spmdc_tests::random::Draw;
use spmdc_tests::random::whole::program;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that are not formatted: scripts make some of them, and messages of others name lines or columns.
const OTHERWISE: [&str; 3] =
    ["tests/golden/", "tests/cases/output/characters.spmd", "tests/cases/manual/sums_of_gradients.spmd"];

fn formatted(text: &str) -> String {
    format(text, FileId::default()).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

fn tree(text: &str) -> ProgramNode {
    let (mut program, _) = parse(text, FileId::default());
    strip_spans(&mut program);
    program.comments.iter_mut().for_each(|comment| comment.trailing = false);
    program
}

/// Another layout of a program: other spaces where there are some, and more of them next to brackets and commas. Strings, comments and
/// empty lines stay.
pub fn relaid(text: &str, draw: &mut Draw) -> String {
    let spaces = [" ", "  ", "\n", "\n    ", " \n", "\t", "\r\n"];
    let mut other = String::new();
    // Two line breaks would be an empty line.
    let is_broken = |other: &str| other.is_empty() || other[other.trim_end().len()..].contains('\n');
    let space = |other: &mut String, draw: &mut Draw| {
        let space = draw.pick(&spaces);
        other.push_str(if is_broken(other) { " " } else { space });
    };
    for line in text.lines() {
        let is_plain = !line.contains("//") && !line.contains('"') && !line.trim().is_empty();
        if !is_plain || draw.chance(20) {
            other.push_str(if is_broken(&other) { "" } else { "\n" });
            other.push_str(line);
            other.push('\n');
            continue;
        }
        let mut rest = line.trim_start().chars();
        while let Some(character) = rest.next() {
            if character == ' ' {
                space(&mut other, draw);
                continue;
            }
            other.push(character);
            let is_edge = "([{,;".contains(character) || rest.as_str().starts_with([')', ']', '}', ',', ';']);
            if is_edge && draw.chance(20) {
                space(&mut other, draw);
            }
        }
        other.push_str(if draw.chance(50) && !is_broken(&other) { "\n" } else { " " });
    }
    other
}

/// Formats other layouts of a text, where they mean the same; the number of these.
fn same_from_other_layouts(text: &str, draw: &mut Draw, times: usize) -> usize {
    let once = formatted(text);
    assert_eq!(formatted(&once), once, "not a fixed point");
    let mut count = 0;
    for _ in 0..times {
        let other = relaid(&once, draw);
        // A line break makes a comment of `//`, and one between lines may be taken away with what follows a comment.
        if tree(&other) == tree(&once) {
            assert_eq!(formatted(&other), once, "formatted from\n{other}");
            count += 1;
        }
    }
    count
}

fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !name.starts_with('.') && name != "target" {
            programs(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "spmd") {
            found.push(path);
        }
    }
}

/// The programs of the repository, with their paths.
pub fn all_programs() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let root = spmdc_tests::root();
    for folder in ["cli", "compiler", "examples", "tests"] {
        programs(&root.join(folder), &mut found);
    }
    found.sort();
    let named = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.strip_prefix(&root).unwrap().to_string_lossy().into_owned(), text)
    };
    found.into_iter().map(named).collect()
}

#[test]
fn programs_of_the_repository_are_formatted() {
    let has_places = |text: &str| text.contains("//~");
    let is_otherwise =
        |name: &str, text: &str| has_places(text) || OTHERWISE.iter().any(|other| name.starts_with(other));
    let all = all_programs();
    let wrong = all.iter().filter(|(name, text)| !is_otherwise(name, text) && formatted(text) != *text);
    let wrong: Vec<&str> = wrong.map(|(name, _)| name.as_str()).collect();
    assert!(wrong.is_empty(), "`spmdc fmt` changes {}", wrong.join(" "));
}

#[test]
fn one_text_comes_of_all_layouts() {
    let mut draw = Draw::new("format", 0);
    let (mut same, mut all) = (0, 0);
    for (name, text) in all_programs() {
        if name != "tests/cases/errors/several_syntax_errors.spmd" {
            same += same_from_other_layouts(&text, &mut draw, 2);
            all += 2;
        }
    }
    assert!(2 * same > all, "only {same} of {all} layouts mean the same");
}

#[test]
fn random_programs_have_one_layout() {
    let mut same = 0;
    let numbers: Vec<u64> = crate::numbers("FORMAT", "FORMATS", 200).collect();
    for &number in &numbers {
        let (text, _) = program(number).unwrap();
        same += same_from_other_layouts(&text, &mut Draw::new("layouts", number), 3);
    }
    assert!(same > numbers.len(), "only {same} of {} layouts mean the same", 3 * numbers.len());
}
