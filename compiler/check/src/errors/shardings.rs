//! Layouts: axes, annotations, ambiguity on explicit axes.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// E0303
pub fn axis_twice(axis: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0303, span, format!("the axis `{axis}` is used twice here"))
        .help("a device has one coordinate along an axis, so an axis splits one dimension at most")
}

/// E0108
pub fn alignment(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0108, span, "only dumps say in which blocks of another dimension a dimension lies")
        .help("name the axes alone: the compiler decides where parts of arrays lie")
}

/// E0108
pub fn turned(span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0108,
        span,
        "only dumps say in types along which axes a function turns the rule of the mesh",
    )
    .help("write `auto(X) fn` or `explicit(X) fn` before its name")
}

/// E0305
pub fn contradiction(place: &str, wanted: &str, found: &str, reshard: &str, span: Span, origin: Span) -> Diagnostic {
    let error = Diagnostic::error(
        Code::E0305,
        span,
        format!("{place} is declared `{wanted}`, but on explicit axes the value is `{found}`"),
    )
    .here(format!("this is `{found}`"))
    .help(format!("an annotation moves nothing on explicit axes; `reshard(..., {reshard})` does"));
    if origin == span { error } else { error.label(origin, format!("`{found}` comes from here")) }
}
