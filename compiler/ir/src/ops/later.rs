//! Functions of the language that are not there yet: a call of one says so, instead of calling the name unknown.

use super::Call;
use crate::ops::call::args::Args;
use crate::ops::call::build::Builder;
use crate::ops::call::term::Term;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// Answers every call with E0901.
pub struct Later;

impl Call for Later {
    fn call(name: &str, args: &mut Args<'_>, _: &mut Builder) -> Result<Term, Diagnostic> {
        Err(not_supported(name, args.span))
    }
}

pub fn not_supported(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0901, span, format!("`{name}` is not supported yet"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::ops::testing;

    #[test]
    fn a_later_function_says_so() {
        let error = testing::call(&mut testing::builder(), "sort", &[], &[]).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (Code::E0901, "`sort` is not supported yet"));
    }
}
