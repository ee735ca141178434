//! Ops that put parts of their operands side by side: `concatenate`, `pad`, `roll` and their kin lower to copies of boxes.

use crate::codegen::builder::KernelBuilder;
use crate::codegen::loops::Affine;
use crate::codegen::lower::Lowering;
use crate::ir::{Stmt, Value};
use spmdc_runtime::abi::Scalar;

/// Along one dimension that an op needs whole: `len` elements from `from` on come to `to` and on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    pub len: usize,
    pub from: usize,
    pub to: usize,
}

/// Copies a box of an operand into the result. Dimensions without a span are copied as far as this device's block goes.
pub(super) fn copy_box(lowering: &mut Lowering<'_>, stmt: &Stmt, operand: Value, spans: &[Option<Span>]) {
    if spans.iter().flatten().any(|span| span.len == 0) {
        return;
    }
    let mut kernel = lowering.kernel();
    let (from, to) = box_indices(&mut kernel, stmt.results[0], spans);
    let elem = kernel.operand(operand, &from);
    kernel.store(stmt.results[0], &to, elem);
    lowering.run(kernel);
}

/// Loop dimensions over a box, and its indices in the operand and in the result.
pub(super) fn box_indices(
    kernel: &mut KernelBuilder<'_>,
    result: Value,
    spans: &[Option<Span>],
) -> (Vec<Affine>, Vec<Affine>) {
    let ty = kernel.context.ty(result);
    let blocks = ty.block_shape(kernel.context.mesh);
    let mut from = Vec::new();
    let mut to = Vec::new();
    for (dim, span) in spans.iter().enumerate() {
        match span {
            Some(span) => {
                let index = kernel.dim(Scalar::Const(span.len as i64), span.len, false);
                from.push(index.offset(span.from as i64));
                to.push(index.offset(span.to as i64));
            }
            None => {
                let len = kernel.context.block_len(ty, dim);
                let index = kernel.dim(len, blocks[dim], false);
                from.push(index.clone());
                to.push(index);
            }
        }
    }
    (from, to)
}
