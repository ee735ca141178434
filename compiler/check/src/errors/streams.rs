//! Streams: parameters that stay in their files.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_grammar::span::Span;

/// E0223: `stream` in the type of something else than a parameter.
pub fn no_parameter(span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0223, span, "only a parameter of a function can be a stream")
        .help("the rows of a stream are an ordinary array: `let rows: f32[128, 784] = data[0:128];`")
}

/// E0223: an array in memory for a parameter that is a stream.
pub fn no_stream(place: &str, wanted: &str, found: &str, span: Span) -> Diagnostic {
    let found = format_args!("`{found}`, an array in memory");
    Diagnostic::error(Code::E0223, span, must_be(place, format_args!("`{wanted}`"), found))
        .help("remove `stream` there, or the type: a parameter without a type takes both")
}

/// E0223: a stream of a value without rows.
pub fn of_no_array(found: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0223, span, must_be("a stream", "an array of numbers with rows", found))
        .help("declare one parameter per array: `images: stream u8[60000, 784], labels: stream u8[60000]`")
}
