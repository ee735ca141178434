//! The wording of the pages, of the command's help and of doc comments: the list of phrases in [`crate::wording`], with the number of
//! faults of each area, which may only fall.

use crate::wording::{assert_ratchet, paragraphs};
use spmdc_tests::root;
use std::fs;
use std::path::{Path, PathBuf};

/// Columns of the longest line of a page.
const MAX_COLUMNS: usize = 140;

/// Faults of the pages.
const FAULTS_OF_PAGES: [(&str, usize); 0] = [];

/// Faults of the doc comments in each folder of the root.
const FAULTS_OF_COMMENTS: [(&str, usize); 0] = [];

/// The files in a folder and in those below it, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true if ["target", "node_modules", "tests/golden"].iter().any(|other| path.ends_with(other)) => {}
            true => found.extend(files(&path, extension)),
            false => found.extend((path.extension().is_some_and(|e| e == extension)).then_some(path)),
        }
    }
    found.sort();
    found
}

/// All pages, with their paths below the root. The list of changes has one line an entry, and says what older versions did.
fn pages() -> Vec<(String, String)> {
    let pages = files(&root(), "md").into_iter().map(|page| {
        let name = page.strip_prefix(root()).unwrap().to_str().unwrap().to_string();
        (name, fs::read_to_string(page).unwrap())
    });
    pages.filter(|(name, _)| name != "CHANGELOG.md").collect()
}

#[test]
fn pages_are_plain_english() {
    let pages = pages();
    assert!(pages.len() > 100, "{} pages", pages.len());
    let texts = pages.iter().flat_map(|(name, page)| {
        // `docs/xla.md` lists the steps of a program in a cell of a table.
        let prose = paragraphs(page).into_iter().filter(|text| !text.contains("collective_permute 7936"));
        prose.map(|text| (name.clone(), text)).collect::<Vec<_>>()
    });
    assert_ratchet(texts, &FAULTS_OF_PAGES);
}

#[test]
fn pages_are_wrapped() {
    for (name, page) in pages() {
        let mut is_code = false;
        for (number, line) in page.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let is_prose = !is_code && !line.trim_start().starts_with('|');
            let columns = line.chars().count();
            assert!(!is_prose || columns <= MAX_COLUMNS, "{name}:{}: {columns} columns", number + 1);
        }
    }
}

/// The paragraphs of the doc comments of a file.
fn comments(source: &str) -> Vec<String> {
    let mut text = String::new();
    for line in source.lines().map(str::trim_start) {
        let comment = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        text.push_str(comment.map_or("", str::trim_start));
        text.push('\n');
    }
    paragraphs(&text)
}

#[test]
fn the_help_of_the_command_is_plain_english() {
    let options = fs::read_to_string(root().join("cli/src/options.rs")).unwrap();
    let mut texts = comments(&options);
    let executables = fs::read_to_string(root().join("runtime/src/run/args.rs")).unwrap();
    let helps = executables.split("help: \"").skip(1).map(|rest| rest.split('"').next().unwrap().replace("\\n\\", " "));
    texts.extend(helps);
    assert!(texts.len() > 60, "{} texts of help", texts.len());
    assert_ratchet(texts.into_iter().map(|text| ("help".to_string(), text)), &[]);
}

#[test]
fn doc_comments_are_plain_english() {
    let texts =
        ["cli", "compiler", "grammar", "runtime", "tests"].iter().flat_map(|folder| files(&root().join(folder), "rs"));
    let texts = texts.flat_map(|file| {
        let path = file.strip_prefix(root()).unwrap().to_str().unwrap().to_string();
        let name = path.split('/').next().unwrap().to_string();
        let source = fs::read_to_string(&file).unwrap();
        comments(&source).into_iter().map(move |text| (name.clone(), text)).collect::<Vec<_>>()
    });
    assert_ratchet(texts, &FAULTS_OF_COMMENTS);
}

#[test]
fn comments_of_sources_are_found() {
    let source = "//! A header\n//! in two lines.\n\n/// A function.\n///\n/// More.\nfn f() {} // not this\n";
    let found: Vec<String> = comments(source).iter().map(|text| text.trim().to_string()).collect();
    assert_eq!(found, ["A header in two lines.", "A function.", "More."]);
}
