//! Sizes: not constant, not divisible, or not inferable.

use crate::types::sizes::SizeError;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_grammar::span::Span;

/// E0207
pub fn not_constant(span: Span, found: &str) -> Diagnostic {
    Diagnostic::error(Code::E0207, span, must_be("a size", "known at compile time", found))
        .help("sizes are computed from numbers, constants and size parameters")
}

/// E0208, E0209 or E0218
pub fn arithmetic(error: &SizeError, size: &str, span: Span) -> Option<Diagnostic> {
    match error {
        SizeError::Inexact(lhs, rhs) => {
            let message = format!("{lhs} / {rhs} leaves a remainder of {}", lhs % rhs);
            let rounded = size.contains('/').then(|| "write `//` to round down".to_string());
            let error = Diagnostic::error(Code::E0208, span, message);
            Some(match rounded {
                Some(help) => error.help(help),
                None => error,
            })
        }
        SizeError::DivisionByZero => Some(Diagnostic::error(Code::E0208, span, format!("`{size}` divides by zero"))),
        SizeError::Overflow => Some(Diagnostic::error(Code::E0218, span, format!("`{size}` is out of range"))),
        SizeError::Unbound(name) => Some(unbound(name, span)),
        SizeError::Poison => None,
    }
}

/// E0209
pub fn unbound(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0209, span, format!("the size parameter `{name}` cannot be inferred"))
        .help(format!("the type of no argument determines `{name}`"))
}

/// E0218
pub fn negative(value: i128, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0218, span, must_be("a size", "at least 0", value))
}
