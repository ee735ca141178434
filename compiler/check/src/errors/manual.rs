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
            "the result of `{function}` is declared `{declared}`, unvarying over {axes}, but it varies over {axes}"
        ),
    )
    .here(format!("may differ between devices along {axes}"))
    .help(format!("combine the values, as in `psum(..., {axes})`, or declare a dimension split over {axes}"));
    if origin == span { error } else { error.label(origin, "computed here") }
}

/// E0503
pub fn does_not_divide(size: usize, axes: &str, blocks: usize, span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0503,
        span,
        format!("a dimension of size {size} does not divide evenly over the {blocks} devices of {axes}"),
    )
    .help("in a `manual` function, the blocks of all devices must have the same shape")
}

/// E0506
pub fn layout_over_manual(axes: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0506, span, format!("a layout inside this `manual` function cannot name {axes}"))
        .help("each value belongs to a single device here; collectives such as `all_gather` move data between devices")
}

/// E0506
pub fn nested(function: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0506, span, format!("the `manual` function `{function}` is called in a `manual` function"))
        .help("make it an ordinary function, or call it outside of the `manual` function")
}

/// E0506
pub fn region_over_manual(function: &str, kind: &str, axes: &str, span: Span) -> Diagnostic {
    let message = format!("`{function}` is `{kind}` along {axes}, but the caller is `manual` along {axes}");
    Diagnostic::error(Code::E0506, span, message)
        .help(format!("call it outside of the `manual` function, or remove {axes} from its axes"))
}

/// E0203
pub fn block_shape(declared: &str, wanted: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(
        Code::E0203,
        span,
        format!("the result is declared `{declared}`, so each device must return `{wanted}`; found `{found}`"),
    )
    .here(format!("this is `{found}` on each device"))
}

/// E0507
pub fn sum_again(name: &Option<String>, over: &str, again: &str, span: Span, sum: Span) -> Diagnostic {
    let (gradient, _) = of_name(name);
    let message = format!("{gradient} is already summed over {over}, but is combined over {again} once more");
    of_sum(Diagnostic::warning(Code::E0507, span, message), name, over, sum)
}

/// E0507
pub fn spread_sum(name: &Option<String>, over: &str, span: Span, sum: Span) -> Diagnostic {
    let (gradient, _) = of_name(name);
    let message = format!("{gradient} is summed over {over}, but is returned as the gradient of each device");
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
        warning
            .label(sum, format!("{value} is the same on all devices along {over}, so its gradient is summed over them"))
    };
    warning.help(format!("for the gradient of each device, differentiate with respect to `{varied}`"))
}
