//! The wording of messages: a list of turns of phrase that a reader of English stumbles over.
//!
//! [`faults`] finds them in a text, and [`assert_ratchet`] holds a set of texts to the number of faults that is committed beside its test. The
//! number may only fall: the test fails if there are more faults, and also if there are fewer and the number was not lowered.

use spmdc_tests::messages::{listing, messages};
use std::collections::BTreeMap;

/// A turn of phrase, and the sentence that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A line of [`KINDS`].
    pub kind: &'static str,
    /// The whole sentence.
    pub sentence: String,
}

/// The kinds of faults that [`faults`] finds, and the better forms.
pub const KINDS: [(&str, &str); 9] = [
    (" is no ", "`is not a`, or the positive statement"),
    (" has not ", "`does not have`"),
    (", this is", "`expected X, found Y`"),
    (" are given", "`takes 2 arguments, but 3 were given`"),
    (" behind ", "`after`, unless a place is meant"),
    (" for ever", "`forever`"),
    ("leading `what`", "a noun as the subject"),
    ("`that of` or `those of` twice", "the noun itself"),
    ("more than 35 words", "two sentences"),
];

/// Words of the longest sentence.
const MAX_WORDS: usize = 35;

/// The faults of one paragraph of prose, or of one message. Code between backticks counts as one word and has no faults.
pub fn faults(paragraph: &str) -> Vec<Fault> {
    let mut found = Vec::new();
    for sentence in sentences(&without_code(paragraph)) {
        let lower = format!(" {} ", sentence.to_lowercase());
        let mut add = |kind| found.push(Fault { kind, sentence: sentence.clone() });
        for (kind, _) in KINDS.into_iter().filter(|(kind, _)| kind.starts_with([' ', ','])) {
            let is_whole =
                |at: usize| !lower[at + kind.len()..].starts_with(char::is_alphabetic) || kind.ends_with(' ');
            lower.match_indices(kind).filter(|&(at, _)| is_whole(at)).for_each(|_| add(kind));
        }
        if lower.trim_start().starts_with("what ") && !sentence.ends_with('?') {
            add("leading `what`");
        }
        if lower.matches(" that of ").count() + lower.matches(" those of ").count() > 1 {
            add("`that of` or `those of` twice");
        }
        if sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count() > MAX_WORDS {
            add("more than 35 words");
        }
    }
    found
}

/// The text with `_` in place of code between backticks, and spaces in place of line ends.
fn without_code(paragraph: &str) -> String {
    let mut prose = String::new();
    for (number, piece) in paragraph.split('`').enumerate() {
        match number % 2 {
            0 => prose.push_str(piece),
            _ => prose.push_str("C0DE"),
        }
    }
    prose.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn sentences(prose: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for word in prose.split(' ') {
        let last = found.last_mut().expect("there is a sentence from the beginning");
        if !last.is_empty() {
            last.push(' ');
        }
        last.push_str(word);
        let end = word.trim_end_matches([')', '"', '*', '_']);
        if end.ends_with(['.', '!', '?']) && !end.ends_with("..") && !["e.g.", "i.e."].contains(&end) {
            found.push(String::new());
        }
    }
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// The paragraphs of a page of Markdown: without code blocks, each item of a list and each cell of a table by itself.
pub fn paragraphs(markdown: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut is_code = false;
    for line in markdown.lines() {
        let text = line.trim();
        if text.starts_with("```") {
            is_code = !is_code;
            found.push(String::new());
        } else if is_code || text.is_empty() {
            found.push(String::new());
        } else if text.starts_with('|') {
            found.extend(text.split('|').map(str::to_string));
            found.push(String::new());
        } else {
            let is_item = text.split_once(' ').is_some_and(|(mark, _)| {
                ["-", "*", ">", "//!", "///"].contains(&mark)
                    || mark.starts_with('#')
                    || mark.strip_suffix('.').is_some_and(|number| number.parse::<u32>().is_ok())
            });
            if is_item {
                found.push(String::new());
            }
            let last = found.last_mut().expect("there is a paragraph from the beginning");
            last.push(' ');
            last.push_str(text);
            if text.starts_with('#') {
                found.push(String::new());
            }
        }
    }
    found.retain(|paragraph| !paragraph.trim().is_empty());
    found
}

/// Holds texts, each with its name, to the committed number of faults of each name. `allowed` has no name without faults.
#[track_caller]
pub fn assert_ratchet(texts: impl IntoIterator<Item = (String, String)>, allowed: &[(&str, usize)]) {
    let mut found: BTreeMap<String, Vec<Fault>> = BTreeMap::new();
    for (name, text) in texts {
        let faults = faults(&text);
        if !faults.is_empty() {
            found.entry(name).or_default().extend(faults);
        }
    }
    let allowed: BTreeMap<String, usize> = allowed.iter().map(|&(name, count)| (name.to_string(), count)).collect();
    let mut wrong = Vec::new();
    for (name, faults) in &found {
        let may = allowed.get(name).copied().unwrap_or(0);
        if faults.len() > may {
            wrong.push(format!("{name}: {} faults, {may} are allowed:", faults.len()));
            wrong.extend(faults.iter().map(|fault| format!("  {}: {}", fault.kind.trim(), fault.sentence)));
        }
    }
    for (name, &may) in &allowed {
        let has = found.get(name).map_or(0, Vec::len);
        if has < may {
            wrong.push(format!("{name}: {has} faults, lower its number from {may}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_kind_of_fault_is_found() {
    let kinds = |text: &str| faults(text).into_iter().map(|fault| fault.kind).collect::<Vec<_>>();
    assert_eq!(kinds("`f` is no function"), [" is no "]);
    assert_eq!(kinds("it has not 2 blocks"), [" has not "]);
    assert_eq!(kinds("a function is called, this is an array"), [", this is"]);
    assert_eq!(kinds("it takes 2 arguments, 3 are given"), [" are given"]);
    assert_eq!(kinds("the step behind it, the others for ever"), [" behind ", " for ever"]);
    assert_eq!(kinds("It runs. What it saves is printed"), ["leading `what`"]);
    assert_eq!(kinds("that of the mesh and those of the axes"), ["`that of` or `those of` twice"]);
    assert_eq!(kinds(&"word ".repeat(36)), ["more than 35 words"]);
    assert_eq!(
        kinds(
            "What does it save? Code: `is no x, this is`. e.g. this for every x. It has that of x. It has those of y."
        ),
        [""; 0]
    );
    assert_eq!(kinds(&"word ".repeat(35)), [""; 0]);
}

#[test]
fn code_blocks_are_not_prose() {
    let page = "# A title\nOne\nparagraph.\n```spmd\ncode is no prose\n```\n- an item\n- two\n| a | b |\n|---|---|\n";
    let found: Vec<String> = paragraphs(page).iter().map(|text| text.trim().to_string()).collect();
    assert_eq!(found, ["# A title", "One paragraph.", "- an item", "- two", "a", "b", "---", "---"]);
}

#[test]
#[should_panic(expected = "b: 0 faults, lower its number from 1")]
fn the_number_of_faults_must_be_lowered() {
    let texts = [("a", "it is no sum"), ("b", "fine")].map(|(name, text)| (name.to_string(), text.to_string()));
    assert_ratchet(texts, &[("a", 1), ("b", 1)]);
}

#[test]
#[should_panic(expected = "a: 1 faults, 0 are allowed")]
fn the_number_of_faults_must_not_rise() {
    assert_ratchet([("a".to_string(), "it is no sum".to_string())], &[]);
}

#[test]
fn the_listing_of_messages_is_up_to_date() {
    let written = std::fs::read_to_string(spmdc_tests::root().join("docs/messages.txt")).unwrap_or_default();
    let listed = listing().unwrap();
    let differs = written.lines().zip(listed.lines()).find(|(written, listed)| written != listed);
    let command = "cargo run -q -p spmdc-tests --bin messages > docs/messages.txt";
    assert!(written == listed, "{command}; the first difference: {differs:?}");
}

/// Faults of messages, by the folder that makes them.
const FAULTS_OF_MESSAGES: [(&str, usize); 1] = [
    // One text of several alternatives.
    ("compiler", 1),
];

#[test]
fn messages_are_plain_english() {
    let texts = messages().unwrap().into_iter().map(|message| {
        let folder = message.file.split("/src/").next().unwrap().to_string();
        (folder, message.template)
    });
    assert_ratchet(texts, &FAULTS_OF_MESSAGES);
}

/// Messages of these forms are made by `grammar/src/sentences.rs`, which the runtime does not use.
#[test]
fn forms_of_messages_stand_in_one_place() {
    const FORMS: [&[&str]; 5] = [
        &["format!(\"expected ", ", found {"],
        &[" must be ", "; found {"],
        &[" requires ", ", found {"],
        &[" takes {", " were given"],
        &[" is not defined for {"],
    ];
    let mut wrong = Vec::new();
    for folder in ["grammar", "compiler"] {
        for file in rust_files(&spmdc_tests::root().join(folder)) {
            let path = file.to_string_lossy().into_owned();
            if path.contains("/tests/") || path.ends_with("sentences.rs") {
                continue;
            }
            for line in std::fs::read_to_string(&file).unwrap().lines().filter(|line| line.contains("format!(\"")) {
                if FORMS.iter().any(|form| form.iter().all(|part| line.contains(part))) {
                    wrong.push(format!("{path}: {}", line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "build these by the functions of grammar/src/sentences.rs:\n{}", wrong.join("\n"));
}

fn rust_files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && path.file_name().unwrap() != "target" {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
