//! Scratch memory of the functions of `faer`.

use crate::MatrixElement;
use faer::dyn_stack::{MemStack, StackReq};
use std::mem::MaybeUninit;

/// The number of elements that a request takes.
pub(crate) fn elements<T>(request: StackReq) -> usize {
    request.unaligned_bytes_required().div_ceil(size_of::<T>())
}

/// The memory of a slice.
pub(crate) fn stack<T: MatrixElement>(scratch: &mut [T]) -> &mut MemStack {
    let len = size_of_val(scratch);
    let first = scratch.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // SAFETY: the bytes of the slice, which is borrowed for as long; any bytes are elements.
    MemStack::new(unsafe { std::slice::from_raw_parts_mut(first, len) })
}
