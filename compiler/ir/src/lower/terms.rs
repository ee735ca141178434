//! Reductions of few elements as expressions.
//!
//! ```text
//! sum(x, axis=-1), x: f32[n, 3]    =>    x[i, 0] + x[i, 1] + x[i, 2]
//! ```
//!
//! The result is then fused like any pointwise value, and values computed from pairs, such as distances, are not stored. The terms are
//! combined row-major over the reduced dimensions, which is the order of a loop nest that reduces the same number of elements
//! ([`spmdc_kernel::order`]): the bits are the same.

use crate::lower::builder::{KernelBuilder, KernelContext};
use crate::lower::work::Temporaries;
use crate::program::{Func, Stmt};
use spmdc_abi::{ReduceOp, Scalar};
use spmdc_kernel::loops::{Affine, Combine, Elem, Inst};
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::DType;

/// The number of elements that a reduction over these axes combines into each one; None if it depends on the device.
pub fn combined(stmt: &Stmt, func: &Func, mesh: &Mesh, axes: &[usize]) -> Option<usize> {
    let temporaries = Temporaries::starting_at(func.values.len() as u32);
    let context = KernelContext { func, mesh, inlined: &[], temporaries: &temporaries };
    let ty = func.ty(stmt.args[0]);
    let length = |&axis: &usize| {
        let Scalar::Const(length) = context.block_len(ty, axis) else { return None };
        usize::try_from(length).ok()
    };
    axes.iter().map(length).try_fold(1, |product: usize, length| product.checked_mul(length?))
}

/// The combination of the elements along `axes` of the operand, at an index into the result.
pub fn combination(
    kernel: &mut KernelBuilder<'_>,
    stmt: &Stmt,
    (axes, keepdims): (&[usize], bool),
    combine: Combine,
    index: &[Affine],
) -> Elem {
    let ty = kernel.context.ty(stmt.args[0]);
    let extents = ty.block_shape(kernel.context.mesh);
    let mut kept = index.iter().enumerate().filter(|(dim, _)| !keepdims || !axes.contains(dim)).map(|(_, at)| at);
    let whole: Vec<Affine> = (0..ty.rank())
        .map(|dim| match axes.contains(&dim) {
            true => Affine::default(),
            false => kept.next().expect("the result has the dimensions that are kept").clone(),
        })
        .collect();
    let count: usize = axes.iter().map(|&axis| extents[axis]).product();
    debug_assert!(count > 0, "an expression has terms");
    let terms: Vec<Elem> = (0..count)
        .map(|position| {
            let (mut at, mut rest) = (whole.clone(), position);
            for &axis in axes.iter().rev() {
                at[axis] = Affine::constant((rest % extents[axis]) as i64);
                rest /= extents[axis];
            }
            kernel.operand(stmt.args[0], &at)
        })
        .collect();
    match combine {
        Combine::Reduce(op) => reduced(kernel, op, ty.dtype(), &terms),
        Combine::ArgMax => position(kernel, CompareOp::Gt, ty.dtype(), &terms),
        Combine::ArgMin => position(kernel, CompareOp::Lt, ty.dtype(), &terms),
        Combine::Scan { .. } => unreachable!("a scan has a result for each element"),
    }
}

/// The terms, combined in turn; sums and products of narrow floats in f32.
fn reduced(kernel: &mut KernelBuilder<'_>, op: ReduceOp, dtype: DType, terms: &[Elem]) -> Elem {
    let (by, of) = match op {
        ReduceOp::Sum => (BinaryOp::Add, dtype.computed()),
        ReduceOp::Product => (BinaryOp::Mul, dtype.computed()),
        ReduceOp::Max => (BinaryOp::Maximum, dtype),
        ReduceOp::Min => (BinaryOp::Minimum, dtype),
        ReduceOp::And => (BinaryOp::And, dtype),
        ReduceOp::Or => (BinaryOp::Or, dtype),
    };
    let is_zero_added = op == ReduceOp::Sum && dtype.is_float() && !terms.iter().any(|&term| has_no_sign(kernel, term));
    let mut terms = terms.iter().map(|&term| (dtype, term));
    // A sum begins with zero, which matters if all terms are negative zeros.
    let first = if is_zero_added { Some((of, kernel.constant(of, 0))) } else { terms.next() };
    let widened = |kernel: &mut KernelBuilder<'_>, (from, term)| kernel.cast(from, of, term);
    let first = widened(kernel, first.expect("an expression has terms"));
    let total = terms.fold(first, |total, term| {
        let term = widened(kernel, term);
        kernel.binary(by, of, total, term)
    });
    kernel.cast(of, dtype, total)
}

/// Whether a number is never negative zero: a square, for instance.
fn has_no_sign(kernel: &KernelBuilder<'_>, term: Elem) -> bool {
    match &kernel.kernel.insts[term.0 as usize] {
        Inst::Binary { op: BinaryOp::Mul, lhs, rhs, .. } => lhs == rhs,
        Inst::Unary { op: UnaryOp::Abs | UnaryOp::Square, .. } => true,
        Inst::Const { bits, .. } => *bits == 0,
        Inst::Load { .. }
        | Inst::Index { .. }
        | Inst::LoopInvariant { .. }
        | Inst::CheckIndex { .. }
        | Inst::Limit { .. }
        | Inst::Unary { .. }
        | Inst::Binary { .. }
        | Inst::Compare { .. }
        | Inst::Select { .. }
        | Inst::Fma { .. }
        | Inst::Cast { .. }
        | Inst::Bitcast { .. }
        | Inst::RandomBits { .. }
        | Inst::Carried { .. }
        | Inst::Repeat { .. }
        | Inst::Last { .. }
        | Inst::InRange { .. } => false,
    }
}

/// The i32 position of the first largest or smallest term; NaN counts as either.
fn position(kernel: &mut KernelBuilder<'_>, beats: CompareOp, dtype: DType, terms: &[Elem]) -> Elem {
    let number = |kernel: &mut KernelBuilder<'_>, position: usize| kernel.constant(DType::I32, position as u64);
    let mut best = (terms[0], number(kernel, 0));
    for (at, &term) in terms.iter().enumerate().skip(1) {
        let mut is_better = kernel.compare(beats, dtype, term, best.0);
        if dtype.is_float() {
            let is_nan = |kernel: &mut KernelBuilder<'_>, elem| kernel.compare(CompareOp::Ne, dtype, elem, elem);
            let (term_is_nan, best_is_number) =
                (is_nan(kernel, term), kernel.compare(CompareOp::Eq, dtype, best.0, best.0));
            is_better = kernel.binary(BinaryOp::Or, DType::Bool, is_better, term_is_nan);
            is_better = kernel.binary(BinaryOp::And, DType::Bool, is_better, best_is_number);
        }
        let at = number(kernel, at);
        best = (kernel.select(dtype, is_better, term, best.0), kernel.select(DType::I32, is_better, at, best.1));
    }
    best.1
}
