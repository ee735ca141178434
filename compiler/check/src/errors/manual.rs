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

/// E0506
pub fn region_over_manual(function: &str, kind: &str, axes: &str, span: Span) -> Diagnostic {
    let message = format!("`{function}` is `{kind}` along {axes}, where code is written for each device");
    Diagnostic::error(Code::E0506, span, message)
        .help("call it outside of the `manual` function, or name its other axes alone")
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

/// E0507
pub fn sum_again(name: &Option<String>, over: &str, again: &str, span: Span, sum: Span) -> Diagnostic {
    let (gradient, _) = of_name(name);
    let message = format!("{gradient} is summed over {over} already, and combined over {again} once more");
    of_sum(Diagnostic::warning(Code::E0507, span, message), name, over, sum)
}

/// E0507
pub fn spread_sum(name: &Option<String>, over: &str, span: Span, sum: Span) -> Diagnostic {
    let (gradient, _) = of_name(name);
    let message = format!("{gradient} is a sum over {over}, and returned as the gradient of each device");
    of_sum(Diagnostic::warning(Code::E0507, span, message), name, over, sum)
}

/// The gradient by a value, and the value.
fn of_name(name: &Option<String>) -> (String, String) {
    match name {
        Some(name) => (format!("the gradient of `{name}`"), format!("`{name}`")),
        None => ("the gradient".to_string(), "its value".to_string()),
    }
}

fn of_sum(warning: Diagnostic, name: &Option<String>, over: &str, sum: Span) -> Diagnostic {
    let (_, value) = of_name(name);
    let varied = match name.as_deref().map(|name| (name, name.split_once('.'))) {
        None => format!("pvary(.., {over})"),
        Some((name, None)) => format!("pvary({name}, {over})"),
        Some((_, Some((all, _)))) => format!("tree_map(|v| pvary(v, {over}), {all})"),
    };
    let warning = warning.here(format!("the same on all devices along {over}"));
    let warning = if sum == warning.span {
        warning
    } else {
        warning.label(
            sum,
            format!("{value} is the same on all devices along {over}, so its gradient is the sum of theirs"),
        )
    };
    warning.help(format!("to get the gradient of each device, take it by `{varied}`"))
}
