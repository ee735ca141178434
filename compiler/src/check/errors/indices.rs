//! Indexing.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// E0401
pub fn out_of_bounds(index: i128, size: usize, span: Span) -> Diagnostic {
    let range = match size {
        0 => "it is empty".to_string(),
        _ => format!("it has the indices 0 to {}", size - 1),
    };
    Diagnostic::error(Code::E0401, span, format!("index {index} is out of bounds for a dimension of size {size}"))
        .help(range)
}

/// E0210
pub fn not_an_index(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, format!("an index is an integer, a slice, `None` or `...`, this is {found}"))
}

/// E0207
pub fn dynamic_slice_bound(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0207, span, "the bounds of a slice must be known when the program is compiled")
        .help("shapes are static: `dynamic_slice(x, (k,), (4,))` takes 4 elements from a dynamic k on, `x[i]` one; `where(arange(N) < n, x, 0)` masks")
}
