//! Calls: arguments by position and by name.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// E0201
pub fn too_many(function: &str, takes: usize, given: usize, span: Span) -> Diagnostic {
    let takes = if takes == 1 { "1 argument".to_string() } else { format!("{takes} arguments") };
    Diagnostic::error(Code::E0201, span, format!("`{function}` takes {takes}, {given} are given"))
}

/// E0210
pub fn not_a_function(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, format!("a function is called, this is {found}"))
}

/// E0210
pub fn cast_to_array(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, "a cast names an element type only, as in `f32(x)`")
        .help("the shape stays; `reshape` and `broadcast_to` change it")
}
