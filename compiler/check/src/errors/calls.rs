//! Calls: arguments by position and by name.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::habits;
use spmdc_grammar::span::Span;
use spmdc_ir::ops::call::errors::nearest;

/// E0201
pub fn too_many(function: &str, takes: usize, given: usize, span: Span) -> Diagnostic {
    let takes = if takes == 1 { "1 argument".to_string() } else { format!("{takes} arguments") };
    Diagnostic::error(Code::E0201, span, format!("`{function}` takes {takes}, {given} are given"))
}

/// E0201
pub fn unused(function: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0201, span, format!("`{function}` does not take this argument"))
}

/// E0202
pub fn unknown_keyword(function: &str, keyword: &str, parameters: &[&str], span: Span) -> Diagnostic {
    let error = Diagnostic::error(Code::E0202, span, format!("`{function}` has no parameter `{keyword}`"));
    match habits::of_keyword(keyword, parameters).or_else(|| nearest(keyword, parameters.iter().copied())) {
        Some(near) => error.help(format!("did you mean `{near}`?")),
        None if parameters.is_empty() => error,
        None => error.help(format!("its parameters are {}", parameters.join(", "))),
    }
}

/// E0202
pub fn given_twice(function: &str, parameter: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0202, span, format!("`{parameter}` of `{function}` is given twice"))
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
