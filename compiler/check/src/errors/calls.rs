//! Calls: arguments by position and by name.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{count, expected};
use spmdc_grammar::span::Span;

/// E0201
pub fn too_many(function: &str, takes: usize, given: usize, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0201, span, count(format_args!("`{function}`"), takes, "argument", given))
}

/// E0210
pub fn not_a_function(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, expected("a function", found))
}

/// E0210
pub fn cast_to_array(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, "a cast converts to an element type, not to a shape")
        .help("write `f32(x)`; `reshape` and `broadcast_to` change the shape")
}
