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

/// E0502
pub fn collective_under_condition(name: &str, axes: &str, span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0502,
        span,
        format!("`{name}` needs all devices along {axes}, but the condition around it differs between them"),
    )
    .help("some devices would wait for ever: make the condition the same on all of them, as by `pmax`, or move the collective out")
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

/// E0504
pub fn outside_manual(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0504,
        span,
        format!("`{name}` is for `manual` functions, where code is written per device"),
    )
}

/// E0506
pub fn not_manual(axis: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0506, span, format!("the axis `{axis}` is not manual here"))
        .help(format!("list it in the function's `manual(...)`, as in `manual({axis}) fn`"))
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
