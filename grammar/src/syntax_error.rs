//! What the parser stopped at, in the words of somebody who writes programs.

use lalrpop_util::ParseError;

use crate::codes::Code;
use crate::diagnostic::Diagnostic;
use crate::span::{FileId, Span};
use crate::token::{Lexeme, Token};

/// How to go on after a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The item is complete before the token.
    EndItem,
    /// A `;` is missing before the token.
    InsertSemicolon,
    /// The statement around the token makes no sense.
    RemoveStatement,
}

/// The report of `error`, which the parser met at token `at`, and how to go on. There is no report where an earlier
/// one says it all.
pub fn explain(
    error: ParseError<usize, Token, Diagnostic>,
    at: usize,
    lexemes: &[Lexeme],
    source: &str,
    file: FileId,
    _is_whole: bool,
) -> (Option<Diagnostic>, Repair) {
    let expected = match error {
        ParseError::User { error } => return (Some(error), Repair::RemoveStatement),
        ParseError::UnrecognizedToken { expected, .. } | ParseError::UnrecognizedEof { expected, .. } => expected,
        ParseError::ExtraToken { .. } | ParseError::InvalidToken { .. } => Vec::new(),
    };
    let place = match lexemes.get(at) {
        Some(lexeme) if lexeme.token == Token::Malformed => return (None, Repair::RemoveStatement),
        Some(lexeme) => Span::new(file, lexeme.start, lexeme.end),
        None => Span::new(file, source.len(), source.len()),
    };
    let message = format!("expected {}", expected.join(", "));
    (Some(Diagnostic::error(Code::E0002, place, message)), Repair::RemoveStatement)
}
