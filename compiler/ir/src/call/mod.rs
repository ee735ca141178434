//! Calls of shipped functions: their arguments, the terms of arguments during checking, and their errors.

pub mod aliases;
pub mod arg;
pub mod args;
pub mod build;
pub mod complex;
pub mod errors;
pub mod expand;
pub mod fields;
mod layouts;
pub mod limits;
pub mod scoped;
pub mod signature;
pub mod term;
pub mod trees;

use self::args::Args;
use self::build::CallBuilder;
use self::signature::Signature;
use self::term::Term;
use spmdc_grammar::diagnostic::Diagnostic;

/// The translation of the language's call of an op into statements.
pub trait Call {
    /// The forms of calls, for each of the table's names of the op. If a name has several, the first is that of programs.
    const SIGNATURES: &'static [Signature];

    /// Emits the statements of a call. `name` is one of the table's names for the op, `args` are bound to the parameters of one of
    /// its signatures.
    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic>;
}
