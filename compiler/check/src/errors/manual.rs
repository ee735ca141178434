//! Manual functions.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// E0501
pub fn result_varies(function: &str, declared: &str, axes: &str, span: Span, origin: Span) -> Diagnostic {
    let error = Diagnostic::error(
        Code::E0501,
        span,
        format!(
            "the result `{declared}` of `{function}` is declared the same on all devices along {axes}, but it varies"
        ),
    )
    .here(format!("may differ between devices along {axes}"))
    .help(format!("combine it, as in `psum(..., {axes})`, or declare a dimension split over {axes}"));
    if origin == span { error } else { error.label(origin, "computed here") }
}

/// E0503
pub fn does_not_divide(size: usize, axes: &str, blocks: usize, span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0503,
        span,
        format!("a dimension of {size} does not divide over {axes}, which has {blocks} devices"),
    )
    .help("in a `manual` function all devices see blocks of one shape")
}

/// E0506
pub fn layout_over_manual(axes: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0506, span, format!("inside this `manual` function no layout can name {axes}"))
        .help("values are one device's own here; collectives such as `all_gather` move data between devices")
}

/// E0506
pub fn nested(function: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0506, span, format!("`{function}` is `manual` and is called inside a `manual` function"))
        .help("write it as an ordinary function, or call it outside")
}

/// E0203
pub fn block_shape(declared: &str, wanted: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0203,
        span,
        format!("the result is declared `{declared}`, so each device gives `{wanted}`; this gives `{found}`"),
    )
    .here(format!("this is `{found}` on each device"))
}
