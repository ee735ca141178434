//! Errors about streams, which stay in their file.

use crate::mismatch::Mismatch;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_layout::types::ArrayType;

/// The ways out of E0223.
pub const WAYS_TO_READ: &str = "read rows of it: `data[i]`, `data[i : i + 128]` or `take(data, indices)`; a parameter without \
                                `stream` is in memory as a whole";

/// E0223: an op on a stream itself.
pub fn refused(op: &str, stream: &ArrayType) -> Mismatch {
    let message = format!("{op} needs an array in memory, and this is `{stream}`, which stays in its file");
    Mismatch::new(Code::E0223, message).help(WAYS_TO_READ)
}

/// E0223: a stream where only an array can be.
pub fn refused_at(place: &str, stream: &ArrayType, span: Span) -> Diagnostic {
    let message = format!("{place} is an array in memory, and this is `{stream}`, which stays in its file");
    Diagnostic::error(Code::E0223, span, message).help(WAYS_TO_READ)
}
