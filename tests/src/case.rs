//! A test program and what its comments expect of it. `CONTRIBUTING.md` lists the directives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

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
    pub tolerance: Option<String>,
    /// `//: TYPE`
    pub types: Vec<Expectation>,
    /// `//~ CODE word`
    pub errors: Vec<Expectation>,
    /// `//? CODE word`: all warnings of the program.
    pub warnings: Vec<Expectation>,
    /// `//> TEXT`: all that the program prints, line by line; empty: not asked.
    pub printed: Vec<String>,
}

impl Case {
    pub fn read(path: &Path) -> Result<Case, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Case::parse(path, &text))
    }

    /// The programs on a page of the documentation.
    pub fn on_page(path: &Path) -> Result<Vec<Case>, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let blocks = text.split("```spmd\n").skip(1).filter_map(|rest| rest.split_once("```"));
        Ok(blocks.map(|(program, _)| Case::parse(path, program)).collect())
    }

    fn parse(path: &Path, text: &str) -> Case {
        let mut case = Case {
            path: path.to_path_buf(),
            text: text.to_string(),
            meshes: None,
            args: Vec::new(),
            collectives: None,
            combined: None,
            bytes: None,
            tolerance: None,
            types: Vec::new(),
            errors: Vec::new(),
            warnings: Vec::new(),
            printed: Vec::new(),
        };
        for (number, line) in text.lines().enumerate() {
            if let Some(directive) = line.strip_prefix("//! ") {
                case.directive(directive);
            }
            if let Some((_, expected)) = line.split_once("//> ") {
                case.printed.push(expected.to_string());
            }
            let marks = [("//: ", &mut case.types), ("//~ ", &mut case.errors), ("//? ", &mut case.warnings)];
            for (mark, list) in marks {
                if let Some((_, expected)) = line.split_once(mark) {
                    list.push(Expectation { line: number + 1, text: expected.trim().to_string() });
                }
            }
        }
        case
    }

    fn directive(&mut self, text: &str) {
        let Some((name, value)) = text.split_once(": ") else { return };
        let words = || value.split_whitespace().map(str::to_string).collect::<Vec<_>>();
        match name {
            "meshes" => self.meshes = Some(words()),
            "args" => self.args = words(),
            // An example's header shows its command line; its arguments are the test's, too.
            "run" => {
                let words = words();
                let given = words.windows(2).filter(|pair| pair[0] == "--arg").map(|pair| pair[1].clone());
                self.args = given.collect();
            }
            "bytes" => self.bytes = Some(words().iter().filter_map(|word| word.parse().ok()).collect()),
            "tolerance" => self.tolerance = Some(value.to_string()),
            "collectives" => self.collectives = Some(counts(value)),
            "combined" => self.combined = Some(counts(value)),
            _ => {}
        }
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

/// `all_reduce 1, all_gather 2`; `none`
fn counts(text: &str) -> BTreeMap<String, usize> {
    let counts = text.split(',').filter_map(|part| part.trim().split_once(' '));
    counts.filter_map(|(kind, count)| Some((kind.to_string(), count.parse().ok()?))).collect()
}

/// Every `.spmd` file below a folder, in order.
pub fn programs(folder: &Path) -> Vec<PathBuf> {
    files(folder, "spmd")
}

/// Every file below a folder whose name ends so, in order.
pub fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Ok(entries) = std::fs::read_dir(folder) {
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                found.extend(files(&path, ending));
            } else if path.extension().is_some_and(|extension| extension == ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
