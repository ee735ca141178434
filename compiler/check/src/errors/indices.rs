//! Indexing.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_grammar::span::Span;

/// E0401
pub fn out_of_bounds(index: i128, size: usize, span: Span) -> Diagnostic {
    let range = match size {
        0 => "the dimension is empty".to_string(),
        _ => format!("valid indices are 0 to {}", size - 1),
    };
    Diagnostic::error(Code::E0401, span, format!("index {index} is out of bounds for a dimension of size {size}"))
        .help(range)
}

/// E0210
pub fn not_an_index(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, must_be("an index", "an integer, a slice, `None` or `...`", found))
}

/// E0207
pub fn dynamic_slice_length(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0207, span, "the length of a slice must be known at compile time")
        .help("shapes are static: `x[k : k + 4]` takes 4 elements from a dynamic `k` on, `x[k]` takes one; `where(arange(N) < n, x, 0)` masks")
}

/// E0207
pub fn unknown_step(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0207, span, "the step of a slice must be known at compile time")
}

/// E0207
pub fn dynamic_step(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0207, span, "a slice with dynamic bounds cannot have a step")
        .help("slice twice: `x[k : k + 4][::2]`")
}
