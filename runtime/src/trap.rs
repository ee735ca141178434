//! Errors while running, as values: what a program stops with, and the place in the source that it names.
//!
//! | code | meaning |
//! |---|---|
//! | E0801 | an index is out of bounds |
//! | E0802 | an integer division by zero |
//! | E0803 | the memory does not suffice |
//! | E0804 | devices did not come to a collective in time |
//! | E0701, E0703 | an argument has the wrong type, or cannot be read |
//! | E0999 | the compiler or the runtime broke its own rules |

use std::fmt;

use crate::abi::{Program, Site};

/// Why a program could not be loaded, or stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunError {
    /// A stable code such as `E0801`, explained by `spmdc explain`.
    pub code: &'static str,
    pub message: String,
    /// Where in the source; [`Site::file`] indexes the program's files.
    pub site: Option<Site>,
    pub help: Option<String>,
}

impl RunError {
    pub fn new(code: &'static str, message: impl Into<String>) -> RunError {
        RunError { code, message: message.into(), site: None, help: None }
    }

    /// A mistake of the compiler or the runtime, never of the user.
    pub fn internal(message: impl Into<String>) -> RunError {
        RunError::new("E0999", message).with_help("this is a bug in spmdc; please report it with the program")
    }

    pub fn at(mut self, site: Site) -> RunError {
        self.site = Some(site);
        self
    }

    pub fn with_help(mut self, help: impl Into<String>) -> RunError {
        self.help = Some(help.into());
        self
    }

    /// `file:line:column`, as far as it is known.
    pub fn location(&self, program: &Program) -> Option<String> {
        let site = self.site.filter(|site| site.line > 0)?;
        let file = program.files.get(site.file as usize)?;
        Some(format!("{file}:{}:{}", site.line, site.column))
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for RunError {}
