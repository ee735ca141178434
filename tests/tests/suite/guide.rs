//! Pages about the project say what is so: the guide, the map of the code, the reasons for its design, and the list of changes.

use spmdc_tests::case::files;
use spmdc_tests::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The folders of the sources.
const SOURCES: [&str; 5] = ["grammar", "compiler", "runtime", "cli", "tests"];

fn page(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap()
}

/// The path of a file in the repository.
fn name(file: &Path) -> String {
    file.strip_prefix(root()).unwrap().to_str().unwrap().to_string()
}

/// The Rust files with their texts.
fn sources() -> Vec<(String, String)> {
    let files = SOURCES.iter().flat_map(|folder| files(&root().join(folder), "rs"));
    files.map(|file| (name(&file), fs::read_to_string(&file).unwrap())).collect()
}

/// The names of variables in the calls of functions that read the environment.
fn variables(text: &str) -> BTreeSet<String> {
    // The last three are functions of tests that take names of variables.
    const READERS: [&str; 6] = ["env::var(", "env::var_os(", " env(", "variable(", "numbers(", "only_or_all("];
    let calls =
        READERS.iter().flat_map(|reader| text.match_indices(reader).map(move |(at, _)| &text[at + reader.len()..]));
    let arguments = calls.map(|rest| rest.split(')').next().unwrap());
    let strings = arguments.flat_map(|arguments| arguments.split('"').skip(1).step_by(2));
    let is_name = |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    strings.filter(is_name).map(str::to_string).collect()
}

#[test]
fn the_guide_lists_every_variable_that_a_test_reads() {
    let guide = page("CONTRIBUTING.md");
    let (_, section) = guide.split_once("\n## Variables of the environment\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let listed = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('=')).map(|(name, _)| name);
    let listed: Vec<String> = listed.map(str::to_string).collect();
    let tests = sources().into_iter().filter(|(name, _)| {
        let is_of_tests = name.starts_with("tests/") && name != "tests/build.rs";
        is_of_tests || name.contains("/tests/") || name.ends_with("/tests.rs")
    });
    let read: BTreeSet<String> = tests.flat_map(|(_, text)| variables(&text)).collect();
    assert_eq!(listed.iter().cloned().collect::<BTreeSet<_>>(), read, "listed in CONTRIBUTING.md, read by tests");
    assert_eq!(listed.len(), read.len(), "a variable is listed twice");
}

/// A change must pass the tests that a reader of the README runs.
#[test]
fn the_gate_runs_the_tests_of_the_readme() {
    let readme = page("README.md");
    let (_, rest) = readme.split_once("\nAll tests:\n\n```sh\n").unwrap();
    let command = rest.lines().next().unwrap();
    let gate = page(".ci/run");
    assert!(gate.lines().any(|line| line.starts_with(&format!("step {command}"))), ".ci/run does not run `{command}`");
}

/// Days, the latest first, each with its additions, changes and corrections, one line for an entry.
#[test]
fn the_list_of_changes_has_its_form() {
    const KINDS: [&str; 3] = ["Added", "Changed", "Fixed"];
    let changes = page("CHANGELOG.md");
    let (_, days) = changes.split_once("\n## ").expect("a day");
    let (mut previous, mut entries) = (None, BTreeSet::new());
    for day in days.split("\n## ") {
        let (date, rest) = day.split_once('\n').unwrap();
        let parts: Vec<usize> = date.split('-').map(str::len).collect();
        let is_date = parts == [4, 2, 2] && date.chars().all(|c| c.is_ascii_digit() || c == '-');
        assert!(is_date, "`{date}` is not a date such as 2026-11-27");
        assert!(previous.is_none_or(|later| date < later), "{date} is not before {previous:?}");
        previous = Some(date);
        let (before, rest) = rest.split_once("### ").unwrap_or_else(|| panic!("{date} has no changes"));
        assert_eq!(before.trim(), "", "text before the first heading of {date}");
        let mut last_kind = None;
        for part in rest.split("\n### ") {
            let (heading, lines) = part.split_once('\n').unwrap();
            let kind = KINDS.iter().position(|kind| *kind == heading);
            assert!(kind.is_some(), "{date}: the headings are {KINDS:?}, not `{heading}`");
            assert!(kind > last_kind, "{date}: the order of the headings is {KINDS:?}");
            last_kind = kind;
            assert!(lines.lines().any(|line| !line.is_empty()), "{date}: `{heading}` is empty");
            for line in lines.lines().filter(|line| !line.is_empty()) {
                assert!(line.starts_with("- "), "{date}: an entry is one line, which begins with `- `: {line}");
                assert!(line.chars().count() <= 140, "{date}: more than 140 characters: {line}");
                assert!(line.ends_with('.'), "{date}: an entry is a sentence: {line}");
                assert!(entries.insert(line), "{date}: the entry stands twice: {line}");
            }
        }
    }
}

#[test]
fn the_map_lists_every_design_page() {
    let map = page("ARCHITECTURE.md");
    let mut numbers = BTreeMap::new();
    for file in files(&root().join("docs/design"), "md") {
        let file_name = file.file_name().unwrap().to_str().unwrap().to_string();
        let number = file_name[..4].to_string();
        let title = fs::read_to_string(&file).unwrap().lines().next().unwrap().to_string();
        // `# 0001: From source to devices (2026-11-21)`
        let rest = title.strip_prefix(&format!("# {number}: ")).unwrap_or_else(|| panic!("{file_name}: `{title}`"));
        let (words, date) = rest.rsplit_once(" (").unwrap_or_else(|| panic!("{file_name}: no date in `{title}`"));
        assert!(words.starts_with(char::is_uppercase), "{file_name}: `{title}`");
        let is_date = date.len() == 11 && date.ends_with(')') && date.matches('-').count() == 2;
        assert!(is_date, "{file_name}: `{date}` is not a date");
        assert!(map.contains(&format!("`{file_name}`")), "ARCHITECTURE.md does not list {file_name}");
        if let Some(other) = numbers.insert(number, file_name.clone()) {
            panic!("{file_name} has the number of {other}");
        }
    }
    assert!(numbers.len() > 10, "{} design pages", numbers.len());
}

/// The text after the parameters in angle brackets at its beginning.
fn without_parameters(text: &str) -> &str {
    if !text.starts_with('<') {
        return text;
    }
    let mut depth = 0;
    let end = text.find(|c| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth == 0
    });
    &text[end.unwrap() + 1..]
}

/// The members that a type declares: its fields, variants and functions, by its name.
fn members(sources: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let mut members: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let word = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    for (_, text) in sources {
        let mut current = None;
        for line in text.lines() {
            let item = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
            let declared = ["struct ", "enum ", "trait ", "union "].iter().find_map(|kind| item.strip_prefix(kind));
            if let Some(declared) = declared {
                current = Some(word(declared));
            } else if item.starts_with("impl") && line.contains('{') {
                // `impl<'a> Trait for Type<'a> {` and `impl Type {`
                let target = match item.split_once(" for ") {
                    Some((_, target)) => target,
                    None => without_parameters(item.trim_start_matches("impl")),
                };
                current = Some(word(target.trim().rsplit("::").next().unwrap()));
            } else if !line.starts_with([' ', ')', '}']) && !line.is_empty() {
                current = None;
            }
            if let Some(current) = &current
                && line.starts_with("    ")
            {
                let mut inner = line.trim();
                for before in ["pub(crate) ", "pub(super) ", "pub ", "const ", "unsafe ", "fn ", "type "] {
                    inner = inner.strip_prefix(before).unwrap_or(inner);
                }
                members.entry(current.clone()).or_default().insert(word(inner));
            }
        }
    }
    members
}

/// Every file of the sources, documentation and examples.
fn all_files() -> BTreeSet<String> {
    let folders = SOURCES.iter().chain(&["docs", "examples"]);
    let endings = ["rs", "md", "py", "toml", "spmd", "lalrpop", "c"];
    let found = folders.flat_map(|folder| endings.iter().flat_map(move |ending| files(&root().join(folder), ending)));
    // Pages leave out the folder `src`.
    let names = found.map(|file| name(&file)).flat_map(|name| [name.replace("/src/", "/"), name]);
    names.collect()
}

/// Code in the pages about the design names what there is: `Type::member`, and files by the end of their path.
#[test]
fn pages_about_the_design_name_what_exists() {
    let sources = sources();
    let (members, known) = (members(&sources), all_files());
    let mut wrong = Vec::new();
    let pages = files(&root().join("docs/design"), "md").into_iter().map(|file| name(&file));
    for name in pages.chain(["ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_string)) {
        let text = page(&name);
        // Blocks show programs.
        let prose = text.split("```").step_by(2).collect::<String>();
        for code in prose.split('`').skip(1).step_by(2) {
            let is_path = code.chars().all(|c| c.is_alphanumeric() || "_-/.".contains(c));
            let is_file = is_path && [".rs", ".md", ".py", ".spmd"].iter().any(|ending| code.ends_with(ending));
            // `.spmd` is a kind of file, and NAME stands for one.
            let is_one = !code.starts_with('.') && !code.contains("NAME");
            if is_file && is_one && root().join(code).symlink_metadata().is_err() {
                let is_there = known.iter().any(|file| file.ends_with(&format!("/{code}")));
                if !is_there {
                    wrong.push(format!("{name}: there is no file `{code}`"));
                }
            }
            let Some((owner, member)) = code.split_once("::") else { continue };
            let is_word = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_');
            if !is_word(owner) || !is_word(member) || !owner.starts_with(char::is_uppercase) {
                continue;
            }
            let is_member = members.get(owner).is_some_and(|members| members.contains(member));
            // What a macro declares is at least used by its whole name.
            if !is_member && !sources.iter().any(|(_, text)| text.contains(code)) {
                wrong.push(format!("{name}: there is no `{code}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
