//! The reason why a program is not compiled, or does not run.

use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_kernel::backend::CodegenError;
use spmdc_runtime::errors::trap::{RunCode, RunError};
use spmdc_runtime::run::start::Failure;

/// The reason why a command failed.
pub enum CommandError {
    /// The program is wrong, or the mesh, constants or entry given for it.
    Program(Vec<Diagnostic>),
    /// The command line is wrong, or the program failed while running.
    Failure(Failure),
}

impl From<RunError> for CommandError {
    fn from(error: RunError) -> CommandError {
        CommandError::Failure(Failure::new(error))
    }
}

impl From<Failure> for CommandError {
    fn from(failure: Failure) -> CommandError {
        CommandError::Failure(failure)
    }
}

/// An error for a missing output of the compiler.
pub fn absent(what: &str) -> CommandError {
    CommandError::Failure(Failure::new(RunError::internal(format!("the compiler did not produce a {what}"))))
}

/// An error for code that cannot be generated.
pub fn no_code(error: &CodegenError) -> CommandError {
    let error = match error {
        CodegenError::Machine(_) | CodegenError::Unsupported(_) => RunError::new(RunCode::E0805, error.to_string()),
        CodegenError::Internal(_) => RunError::internal(error.to_string()),
    };
    CommandError::Failure(Failure::new(error))
}

/// The error for a file or folder that cannot be read.
pub fn unreadable(name: &str, why: &str) -> CommandError {
    RunError::new(RunCode::E0703, format!("cannot read `{name}`: {why}")).into()
}
