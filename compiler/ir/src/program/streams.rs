//! Errors about streams, which stay in their file.

use crate::mismatch::Mismatch;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, requires};
use spmdc_grammar::span::Span;
use spmdc_layout::types::ArrayType;

/// The ways out of E0223.
pub const WAYS_TO_READ: &str = "read rows of it, as in `data[i]`, `data[i : i + 128]` or `take(data, indices)`; a parameter without \
                                `stream` is in memory as a whole";

/// E0223: an op on a stream itself.
pub fn refused(op: &str, stream: &ArrayType) -> Mismatch {
    let message = requires(op, "an array in memory", format_args!("`{stream}`, which stays in its file"));
    Mismatch::new(Code::E0223, message).help(WAYS_TO_READ)
}

/// E0223: a stream where only an array can be.
pub fn refused_at(place: &str, stream: &ArrayType, span: Span) -> Diagnostic {
    let message = must_be(place, "an array in memory", format_args!("`{stream}`, which stays in its file"));
    Diagnostic::error(Code::E0223, span, message).help(WAYS_TO_READ)
}
