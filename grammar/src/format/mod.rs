//! Formats source text: one layout for all texts that differ only in spaces and line breaks.
//!
//! Comments stay where they are, and of several empty lines one. Lines have at most [`WIDTH`] columns where brackets or operators allow it.
//! The formatted text has the same tree, and is formatted already.

mod classify;
mod doc;
mod layout;

use crate::ast::ProgramNode;
use crate::diagnostic::{Diagnostic, Severity};
use crate::lexer::lex;
use crate::parse;
use crate::span::FileId;
use crate::strip_spans::strip_spans;

/// Maximum width of lines, in columns, as far as tokens and comments allow.
pub const WIDTH: usize = 100;

/// The reason why a text is not formatted.
#[derive(Debug)]
pub enum FormatError {
    /// The text has these errors.
    Syntax(Vec<Diagnostic>),
    /// The formatted text would mean something else, which is an error of the formatter.
    Changed(String),
}

/// The formatted text of a file.
///
/// ```
/// use spmdc_grammar::format::format;
/// use spmdc_grammar::span::FileId;
///
/// let text = format("fn f( x ){maximum(x,0)}  // why", FileId::default()).unwrap();
/// assert_eq!(text, "fn f(x) { maximum(x, 0) }  // why\n");
/// ```
pub fn format(source: &str, file: FileId) -> Result<String, FormatError> {
    let (program, diagnostics) = parse(source, file);
    if diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
        return Err(FormatError::Syntax(diagnostics));
    }
    let lexed = lex(source, file);
    let meanings = classify::Meanings::new(&program, &lexed.lexemes);
    let doc = layout::TokenLayout::new(source, &lexed, meanings).program(&program);
    let text = doc::print(&doc, WIDTH);
    let (formatted, _) = parse(&text, file);
    if meaning(program) == meaning(formatted) { Ok(text) } else { Err(FormatError::Changed(text)) }
}

/// The tree without positions, and the texts of its comments.
fn meaning(mut program: ProgramNode) -> ProgramNode {
    strip_spans(&mut program);
    program.comments.iter_mut().for_each(|comment| comment.trailing = false);
    program
}
