//! Mismatched types, and terms of the wrong kind.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{count, counted, expected};
use spmdc_grammar::span::Span;
use spmdc_ir::call::errors::nearest;
use spmdc_ir::call::limits::{MAX_LEAVES, MAX_NESTING, MAX_NUMBERS};

/// E0203
pub fn mismatch(place: &str, wanted: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0203, span, format!("{place} is declared `{wanted}`, but the value is `{found}`"))
        .here(format!("this is `{found}`"))
}

/// E0203: the shapes match, the element types do not.
pub fn element_type(place: &str, wanted: &str, found: &str, dtype: &str, span: Span) -> Diagnostic {
    mismatch(place, wanted, found, span).help(format!("convert it with `{dtype}(...)`"))
}

/// E0203
pub fn contains_itself(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0203, span, format!("the type `{name}` contains itself"))
}

/// E0201
pub fn type_arguments(name: &str, wanted: usize, found: usize, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0201, span, count(format_args!("the type `{name}`"), wanted, "size", found))
}

/// E0210
pub fn wrong_kind(wanted: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, expected(wanted, found))
}

/// E0211
pub fn unknown_field(field: &str, fields: &[&str], of: &str, span: Span) -> Diagnostic {
    let error = Diagnostic::error(Code::E0211, span, format!("{of} has no field `{field}`"));
    if field == "at" && of == "an array" {
        return error
            .help("values are immutable; assign to the elements of a variable: `let mut u = x; u[0] = v; u[i] += w;`");
    }
    match nearest(field, fields.iter().copied()) {
        Some(near) => error.help(format!("did you mean `{near}`?")).edit(span, near, "the nearest field"),
        None if fields.is_empty() => error,
        None => error.help(format!("its fields are {}", fields.join(", "))),
    }
}

/// E0211
pub fn no_tuple_field(index: usize, len: usize, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0211, span, format!("this tuple has no field {index}: it has {}", counted(len, "field")))
        .help("fields are numbered from 0")
}

/// E0217
pub fn pattern(wanted: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0217, span, format!("this pattern does not match its value: {}", expected(wanted, found)))
}

/// E0102
pub fn field_twice(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0102, span, format!("the field `{name}` is given twice"))
}

/// E0004
pub fn too_many_leaves(span: Span) -> Diagnostic {
    let message = format!(
        "this value has more than {MAX_LEAVES} parts, {MAX_NUMBERS} numbers, or {MAX_NESTING} levels of nesting"
    );
    Diagnostic::error(Code::E0004, span, message)
        .help("use an array for many values of one type; a loop stacks them with `collect`")
}

/// E0004
pub fn type_too_large(span: Span) -> Diagnostic {
    let message = format!("this type has more than {MAX_LEAVES} parts or {MAX_NESTING} levels of nesting");
    Diagnostic::error(Code::E0004, span, message).help("use an array for many values of one type")
}
