//! Layouts: axes, annotations, ambiguity on explicit axes.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// E0303
pub fn axis_twice(axis: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0303, span, format!("the axis `{axis}` is used twice in one layout"))
        .help("an axis can split at most one dimension of an array")
}

/// E0108
pub fn alignment(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0108, span, "alignments such as `X/32+1` are allowed in dumps only")
        .help("name the axes alone; the compiler chooses the alignment")
}

/// E0108
pub fn turned(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0108, span, "axis types inside an array type are allowed in dumps only")
        .help("write `auto(X) fn` or `explicit(X) fn` before the function's name")
}

/// E0305
pub fn contradiction(place: &str, wanted: &str, found: &str, reshard: &str, span: Span, origin: Span) -> Diagnostic {
    let error = Diagnostic::error(
        Code::E0305,
        span,
        format!("{place} is declared `{wanted}`, but on explicit axes the value is `{found}`"),
    )
    .here(format!("this is `{found}`"))
    .help(format!("an annotation moves no data on explicit axes; write `reshard(..., {reshard})`"));
    if origin == span { error } else { error.label(origin, format!("`{found}` comes from here")) }
}
