//! The programs that come with the command, and their data: `:digits` names the example `digits`.

use std::path::Path;

use spmdc_runtime::errors::suggest::nearest;
use spmdc_runtime::errors::trap::{RunCode, RunError};

/// The names of the examples and their texts, in alphabetical order.
static PROGRAMS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));

/// The files that examples read: their paths below `examples/data`, and their contents.
static DATA: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/example_data.rs"));

/// The names of all examples with the first line of their descriptions.
pub fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    let line = |text: &'static str| text.lines().next().unwrap_or_default().trim_start_matches("//!").trim();
    PROGRAMS.iter().map(move |(name, text)| (*name, line(text)))
}

/// The text of the example that a path names; None if it names none. An unknown one is an E0703.
pub fn text(path: &Path) -> Option<Result<&'static str, RunError>> {
    path.to_str()?.strip_prefix(':').map(named)
}

/// The text of the example of this name. An unknown one is an E0703.
pub fn named(name: &str) -> Result<&'static str, RunError> {
    PROGRAMS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text).ok_or_else(|| {
        let error = RunError::new(RunCode::E0703, format!("no example is called `{name}`"));
        match nearest(name, PROGRAMS.iter().map(|(known, _)| *known)) {
            Some(near) => error.with_help(format!("did you mean `:{near}`?")),
            None => error.with_help("`spmdc examples` lists all of them"),
        }
    })
}

/// The contents of a file of the examples, by its path below `examples/data`.
pub fn data(path: &str) -> Option<&'static [u8]> {
    DATA.iter().find(|(known, _)| *known == path).map(|(_, bytes)| *bytes)
}
