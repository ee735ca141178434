//! Functions of functions: the checker expands their calls by the code beside their signatures.

use crate::call::arg::Arg;
use crate::call::args::Args;
use crate::call::build::CallBuilder;
use crate::call::signature::Signature;
use crate::call::term::Term;
use crate::program::{Stmt, Value};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// The result of an expansion. A failure is a diagnostic; None if it has been reported.
pub type Expanded<T> = Result<T, Option<Diagnostic>>;

/// The expansion of calls of a function that takes functions of the program.
pub trait Expand {
    /// The forms of calls, for each of the table's names.
    const SIGNATURES: &'static [Signature];

    /// Emits the statements of a call. `name` is one of the table's names, `args` are bound to the parameters of its signature.
    fn expand(name: &str, args: &mut Args<'_>, checker: &mut dyn Expander) -> Expanded<Term>;
}

/// The abilities of the checker that an expansion needs.
pub trait Expander {
    /// The statements so far.
    fn build(&self) -> &CallBuilder;

    /// The statements so far, to add others.
    fn build_mut(&mut self) -> &mut CallBuilder;

    /// The result of calling the function of an argument; Poison after an error, which has been reported.
    fn call(&mut self, function: &Arg, args: Vec<Arg>, span: Span) -> Term;

    /// The result of calling the shipped function of this name; Poison after an error, which has been reported.
    fn call_shipped(&mut self, name: &str, args: Vec<Arg>, span: Span) -> Term;

    /// The statement whose result a value is; None if that is far away, or if the value is a parameter.
    fn made_by(&self, value: Value) -> Option<&Stmt>;

    /// The type of a term, for messages.
    fn display(&self, term: &Term) -> String;
}
