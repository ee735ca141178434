//! `data[i]` of a stream: the rows that are read of its file.

use crate::indexing::plan::{IndexItem, Taken, plan};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::Value;
use spmdc_ir::program::streams::refused_at;
use spmdc_layout::types::DType;
use spmdc_ops::constant::Constant;
use spmdc_ops::dynamic_slice::indices_along;
use spmdc_ops::read_rows::rows;
use spmdc_ops::slice::SliceRange;

/// `data[items]` of a stream: an index of its first dimension.
pub fn index(build: &mut CallBuilder, stream: Value, items: &[IndexItem], span: Span) -> Result<Value, Diagnostic> {
    let shape = build.ty(stream).shape().to_vec();
    if shape.is_empty() {
        return Err(refused_at("an indexed value", &build.ty(stream).array, span));
    }
    let plan = plan(build, &shape, items, span)?;
    let is_whole =
        |(taken, &size): (&Taken, &usize)| matches!(taken, Taken::Range(range) if *range == SliceRange::all(size));
    let kept = plan.result.len() == shape.len() - usize::from(plan.taken[0].has_vanished());
    if !kept || !plan.taken.iter().zip(&shape).skip(1).all(is_whole) {
        let message = format!("only the first dimension of `{}`, its rows, can be indexed", build.ty(stream).array);
        return Err(Diagnostic::error(Code::E0223, span, message).help("read rows first and index them: `data[i][j]`"));
    }
    let number = |build: &mut CallBuilder, number: usize| build.emit1(Constant::scalar(DType::I64, number as u64), &[]);
    let (len, at) = match plan.taken[0] {
        Taken::Range(range) if range.step == 1 => (Some(range.len), number(build, range.start)?),
        Taken::Range(range) => (None, indices_along(build, (0, 1), range, None)?),
        Taken::Fixed(range) => (None, number(build, range.start)?),
        Taken::Dynamic(at) | Taken::Places(at) => (None, at),
        Taken::Window(at, len) => (Some(len), at),
    };
    rows(build, stream, (len, at), None)
}
