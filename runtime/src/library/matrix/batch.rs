//! Batches of small matrices, each in a lane of vectors.

use crate::library::LibraryCall;
use spmdc_abi::DType;
use spmdc_matrix::{BATCH, MatrixElement, cholesky_batch};

/// Makes several calls of [`MatrixFunction::Cholesky`](spmdc_abi::MatrixFunction::Cholesky), at most [`BATCH`].
///
/// # Safety
/// As for [`PreparedFunction::call`](crate::library::PreparedFunction::call).
pub(super) unsafe fn cholesky(call: &LibraryCall<'_>) {
    // SAFETY: as promised by the caller.
    unsafe { if call.operand(0, 0).dtype == DType::F64 { cholesky_of::<f64>(call) } else { cholesky_of::<f32>(call) } }
}

/// # Safety
/// As for `cholesky`.
unsafe fn cholesky_of<T: MatrixElement>(call: &LibraryCall<'_>) {
    let n = call.operand(0, 0).dims[0].len;
    let count = call.count;
    assert!(count <= BATCH, "{count} matrices side by side");
    if n == 0 {
        return;
    }
    // SAFETY: the slot has memory for so many matrices, as has been checked; its contents are any numbers.
    let all = unsafe { &mut call.slot().as_chunks_mut::<BATCH>().0[..n * n] };
    // Lanes without a matrix have one that has a factor.
    for (at, place) in all.iter_mut().enumerate() {
        place[count..].fill(if at % n == at / n { 1.0 } else { 0.0 });
    }
    for (lane, from) in (0..count).map(|lane| call.member(lane).operand(0, 0)).enumerate() {
        let (first, [down, right]) = (from.at::<T>(0, 0), [from.dims[0].stride, from.dims[1].stride]);
        for row in 0..n {
            for column in 0..=row {
                // SAFETY: the loader has checked that all elements lie within the program's memory.
                let element = unsafe { first.add(row * down + column * right).read() };
                all[column * n + row][lane] = element.wide();
            }
        }
    }
    let found = cholesky_batch(all, n);
    for (lane, to) in (0..count).map(|lane| call.member(lane).result(0)).enumerate() {
        let (first, [down, right]) = (to.at::<T>(0, 0), [to.dims[0].stride, to.dims[1].stride]);
        for row in 0..n {
            for column in 0..n {
                let element = match column <= row {
                    true if found[lane] => all[column * n + row][lane],
                    true => f64::NAN,
                    false => 0.0,
                };
                // SAFETY: as above.
                unsafe { first.add(row * down + column * right).write(T::of(element)) }
            }
        }
    }
}
