//! A test program and what its comments expect of it. `CONTRIBUTING.md` lists the directives.
//!
//! A header that would test nothing is an error: an unknown directive, a value that does not parse, an expectation without its
//! text, or one beside an expected error, where it is never compared.

use crate::compare::Tolerance;
use spmdc_abi::CollectiveKind;
use spmdc_grammar::codes::Code;
use spmdc_runtime::errors::suggest::nearest;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The directives of a header: `//! NAME: VALUE`.
pub const DIRECTIVES: [&str; 8] = ["args", "bytes", "collectives", "combined", "meshes", "run", "small", "tolerance"];

/// The marks of expectations at the end of a line.
pub const MARKS: [&str; 4] = ["//:", "//>", "//?", "//~"];

/// A type expected of the value named on a line, or a code expected there.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// One-based.
    pub line: usize,
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub path: PathBuf,
    pub text: String,
    /// None: all the usual ones that have as many axes as the program.
    pub meshes: Option<Vec<String>>,
    /// `name=value` as after `--arg`.
    pub args: Vec<String>,
    /// Kinds and counts on the program's own mesh; None: not asked.
    pub collectives: Option<BTreeMap<String, usize>>,
    /// As `collectives`, after small ones have been combined.
    pub combined: Option<BTreeMap<String, usize>>,
    /// Bytes of each collective on the program's own mesh, in its order; None: not asked.
    pub bytes: Option<Vec<u64>>,
    /// How far results may be from those of another implementation; None: not said.
    pub tolerance: Option<Tolerance>,
    /// Names and values of constants, for a benchmark at the size of a test.
    pub small: Vec<(String, String)>,
    /// `//: TYPE`
    pub types: Vec<Expectation>,
    /// `//~ CODE word`
    pub errors: Vec<Expectation>,
    /// `//? CODE word`: all warnings of the program.
    pub warnings: Vec<Expectation>,
    /// `//> TEXT`: all that the program prints, line by line; empty: not asked.
    pub printed: Vec<String>,
    /// The directives and marks that occur.
    used: BTreeSet<&'static str>,
}

impl Case {
    /// Reads and parses a file. An error names the file, and the line if the header is wrong.
    pub fn read(path: &Path) -> Result<Case, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Case::parse(path, &text)
    }

    /// Parses the text of a program, which is in this file.
    pub fn parse(path: &Path, text: &str) -> Result<Case, String> {
        let mut case = Case {
            path: path.to_path_buf(),
            text: text.to_string(),
            meshes: None,
            args: Vec::new(),
            collectives: None,
            combined: None,
            bytes: None,
            tolerance: None,
            small: Vec::new(),
            types: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            printed: Vec::new(),
            used: BTreeSet::new(),
        };
        for (index, line) in text.lines().enumerate() {
            let read = match directive(line) {
                Ok(Some((name, value))) => case.set(name, value),
                Ok(None) => case.expect(line, index + 1),
                Err(error) => Err(error),
            };
            read.map_err(|error| format!("{}:{}: {error}", path.display(), index + 1))?;
        }
        // The program of an expected error is not compared with anything.
        if case.used.contains("//~") {
            case.allow(&["//~", "args", "run"])
                .map_err(|error| format!("{error}: the program fails, so only its errors are compared"))?;
        }
        Ok(case)
    }

    /// Refuses directives and marks other than these. A test calls it with those that it compares, so that none stands in a header
    /// in vain.
    pub fn allow(&self, compared: &[&str]) -> Result<(), String> {
        match self.used.iter().find(|used| !compared.contains(used)) {
            Some(unused) => Err(format!("{}: `{unused}` has no effect here", self.path.display())),
            None => Ok(()),
        }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some(known) = DIRECTIVES.into_iter().find(|known| *known == name) else {
            return Err(unknown("directive", name, &DIRECTIVES));
        };
        if !self.used.insert(known) {
            return Err(format!("the directive `{name}` occurs twice"));
        }
        let value = value.trim();
        if value.is_empty() {
            return Err(format!("expected a value after `{name}:`"));
        }
        let words: Vec<&str> = value.split_whitespace().collect();
        match known {
            "meshes" => self.meshes = Some(all(&words, "a mesh such as `3x2`", mesh)?),
            "args" => self.args = all(&words, "an argument such as `x=iota`", argument)?,
            // An example's header shows its command line; its arguments are the test's, too.
            "run" => {
                let options = words.iter().enumerate().filter(|(_, word)| **word == "--arg");
                let given: Vec<&str> = options.map(|(at, _)| words.get(at + 1).copied().unwrap_or_default()).collect();
                self.args = all(&given, "an argument such as `x=iota` after `--arg`", argument)?;
            }
            "bytes" => self.bytes = Some(all(&words, "a number of bytes", |word| word.parse().ok())?),
            "tolerance" => {
                let named = Tolerance::NAMED.into_iter().find(|(name, _)| *name == value);
                let names = Tolerance::NAMED.map(|(name, _)| name).join(", ");
                self.tolerance = Some(named.ok_or(format!("expected one of {names}, found `{value}`"))?.1);
            }
            "small" => self.small = all(&words, "a constant such as `N=37`", constant)?,
            "collectives" => self.collectives = Some(counts(value)?),
            "combined" => self.combined = Some(counts(value)?),
            other => unreachable!("the directive {other} is in the list"),
        }
        Ok(())
    }

    /// Reads the expectation at the end of a line, if there is one.
    fn expect(&mut self, line: &str, number: usize) -> Result<(), String> {
        let Some((at, mark)) = MARKS.iter().filter_map(|mark| Some((line.find(mark)?, *mark))).min() else {
            return Ok(());
        };
        let rest = &line[at + mark.len()..];
        if let Some(second) = MARKS.iter().find(|mark| rest.contains(**mark)) {
            return Err(format!("expected one expectation on a line, found `{mark}` and `{second}`"));
        }
        self.used.insert(mark);
        // A printed line may be empty, and begin with spaces.
        let text = match rest.strip_prefix(' ') {
            Some(text) => text,
            None if mark == "//>" && rest.is_empty() => rest,
            None => return Err(format!("expected a space and a text after `{mark}`")),
        };
        if mark == "//>" {
            self.printed.push(text.to_string());
            return Ok(());
        }
        let expectation = Expectation { line: number, text: text.trim().to_string() };
        let Some(first) = expectation.text.split_whitespace().next() else {
            return Err(format!("expected a text after `{mark}`"));
        };
        if mark == "//:" {
            self.types.push(expectation);
            return Ok(());
        }
        // Upper case, as in messages.
        if Code::from_name(first).is_none_or(|code| code.name() != first) {
            return Err(format!("expected the code of a diagnostic after `{mark}`, found `{first}`"));
        }
        let list = if mark == "//~" { &mut self.errors } else { &mut self.warnings };
        list.push(expectation);
        Ok(())
    }

    /// The meshes to run on: those of the header, or the usual ones that fit.
    pub fn meshes_to_run(&self) -> Vec<String> {
        if let Some(meshes) = &self.meshes {
            return meshes.clone();
        }
        let axes =
            self.text.lines().find(|line| line.starts_with("mesh (")).map_or(0, |line| line.matches('=').count());
        match axes {
            2 => crate::MESHES.map(str::to_string).to_vec(),
            1 => ["1", "2", "3", "8"].map(str::to_string).to_vec(),
            _ => vec![String::new()],
        }
    }
}

/// The texts of the programs on a page of the documentation.
pub fn on_page(path: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let blocks = text.split("```spmd\n").skip(1).filter_map(|rest| rest.split_once("```"));
    Ok(blocks.map(|(program, _)| program.to_string()).collect())
}

/// The name and the value of the directive on a line; None for all other lines. A single word before a colon is the name of a
/// directive, whether there is such a directive or not; what else a header says is its description.
fn directive(line: &str) -> Result<Option<(&str, &str)>, String> {
    let Some(text) = line.strip_prefix("//!") else {
        if line.contains("//!") {
            return Err("expected `//!` at the beginning of its line".to_string());
        }
        // An ordinary comment has no effect.
        let name = line.strip_prefix("//").and_then(|text| text.split_once(':')).map(|(name, _)| name.trim());
        return match name.filter(|name| DIRECTIVES.contains(name)) {
            Some(name) => Err(format!("expected `//! {name}:`, found `// {name}:`")),
            None => Ok(None),
        };
    };
    if !text.is_empty() && !text.starts_with(' ') {
        return Err("expected a space after `//!`".to_string());
    }
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphabetic() || "_-".contains(c));
    if let Some((name, value)) = text.split_once(':')
        && is_name(name.trim())
    {
        return Ok(Some((name.trim(), value)));
    }
    let first = text.split_whitespace().next().unwrap_or_default();
    if DIRECTIVES.contains(&first) {
        return Err(format!("expected a colon after `{first}`"));
    }
    Ok(None)
}

/// An error for a name that is not in a list, with the list and the nearest name.
fn unknown(kind: &str, name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied()).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
    format!("unknown {kind} `{name}`: expected one of {}{near}", known.join(", "))
}

/// Parses every word, or says which one is not of the expected form.
fn all<T>(words: &[&str], expected: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, String> {
    words.iter().map(|word| parse(word).ok_or(format!("expected {expected}, found `{word}`"))).collect()
}

/// `3x2`: the sizes of the axes.
fn mesh(word: &str) -> Option<String> {
    let is_size = |size: &str| size.parse::<usize>().is_ok_and(|size| size > 0);
    word.split('x').all(is_size).then(|| word.to_string())
}

/// `x=iota`: the name of a parameter and its value.
fn argument(word: &str) -> Option<String> {
    word.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty()).map(|_| word.to_string())
}

/// `N=37`: the name of a constant and its value.
fn constant(word: &str) -> Option<(String, String)> {
    let (name, value) = word.split_once('=')?;
    (!name.is_empty() && !value.is_empty()).then(|| (name.to_string(), value.to_string()))
}

/// `all_reduce 1, all_gather 2`; `none`
fn counts(text: &str) -> Result<BTreeMap<String, usize>, String> {
    let mut found = BTreeMap::new();
    if text == "none" {
        return Ok(found);
    }
    let kinds = CollectiveKind::ALL.map(CollectiveKind::name);
    for part in text.split(',').map(str::trim) {
        let (kind, count) = part.split_once(' ').unwrap_or((part, ""));
        if !kinds.contains(&kind) {
            return Err(unknown("collective", kind, &kinds));
        }
        let count: usize = count.trim().parse().ok().filter(|count| *count > 0).ok_or_else(|| {
            format!("expected a collective and its number, such as `{kind} 1`, or `none`, found `{part}`")
        })?;
        if found.insert(kind.to_string(), count).is_some() {
            return Err(format!("the collective `{kind}` occurs twice"));
        }
    }
    Ok(found)
}

/// Every `.spmd` file below a folder, in order.
pub fn programs(folder: &Path) -> Vec<PathBuf> {
    files(folder, "spmd")
}

/// Every file below a folder whose name ends so, in order. A folder that cannot be read is a mistake of the test.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found = Vec::new();
    for path in entries.into_iter().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}
