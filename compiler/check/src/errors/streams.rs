//! Streams: parameters that stay in their files.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

/// E0223: `stream` in the type of something else than a parameter.
pub fn no_parameter(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0223, span, "only a parameter of a function is a stream")
        .help("rows of a stream are arrays, whose types do not name the stream: let rows: f32[128, 784] = data[0:128];")
}

/// E0223: an array in memory for a parameter that is a stream.
pub fn no_stream(place: &str, wanted: &str, found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0223, span, format!("{place} is `{wanted}`, and this is `{found}`, an array in memory"))
        .help("leave out `stream` there, or the type: a parameter without a type takes both")
}

/// E0223: a stream of what has no rows.
pub fn of_no_array(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0223, span, format!("a stream is an array of numbers with rows, and this is {found}"))
        .help("make each array a parameter of its own: `images: stream u8[60000, 784], labels: stream u8[60000]`")
}
