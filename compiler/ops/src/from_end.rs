//! Indices that count from the end of a dimension when they are negative.

use crate::cast::cast;
use crate::elementwise::binary;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::types::DType;

/// Integers of any type as i64. An integer that has no i64, as half of those of u64, becomes `most`.
pub fn as_i64(build: &mut CallBuilder, value: Value, most: i128, span: Span) -> Result<Value, Diagnostic> {
    let is_wide = build.ty(value).dtype() == DType::U64;
    let value = if is_wide {
        binary(build, BinaryOp::Minimum, (&Term::Array(value), span), (&Term::Int(most), span))?
    } else {
        value
    };
    cast(build, value, DType::I64)
}

/// Indices into a dimension of this size, where -1 is the last element.
pub fn from_end(build: &mut CallBuilder, indices: Value, size: i128, span: Span) -> Result<Value, Diagnostic> {
    // All bits of the sign of a negative number, and with them the size.
    let sign = binary(build, BinaryOp::Shr, (&Term::Array(indices), span), (&Term::Int(63), span))?;
    let more = binary(build, BinaryOp::And, (&Term::Array(sign), span), (&Term::Int(size), span))?;
    binary(build, BinaryOp::Add, (&Term::Array(indices), span), (&Term::Array(more), span))
}
