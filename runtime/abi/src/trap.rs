//! The return values of kernels.

/// The kernel has finished.
pub const NONE: i64 = 0;

/// Bits of a code below the number of the check: the checked value.
pub const VALUE_BITS: u32 = 48;
/// The smallest value that a code can contain; smaller values become this one.
pub const LEAST_VALUE: i64 = -(1 << (VALUE_BITS - 1));
/// The largest value that a code can contain; larger values become this one.
pub const LARGEST_VALUE: i64 = (1 << (VALUE_BITS - 1)) - 1;

/// The code of a failure of one of [`KernelStep::checks`](super::KernelStep::checks). If several fail, the kernel returns the least
/// code: the code of the first check, and among its failures the code of the least value.
pub fn code(check: usize, value: i64) -> i64 {
    first_code(check) + (value.clamp(LEAST_VALUE, LARGEST_VALUE) - LEAST_VALUE)
}

/// The least code of a check.
pub fn first_code(check: usize) -> i64 {
    debug_assert!(check < 0x7fff, "the number of a check has 15 bits");
    (check as i64 + 1) << VALUE_BITS
}

/// The number of the check that failed; None for other codes.
pub fn check(code: i64) -> Option<usize> {
    usize::try_from((code >> VALUE_BITS) - 1).ok()
}

/// The value for which the check failed; None if a code cannot contain it.
pub fn value(code: i64) -> Option<i64> {
    let value = (code & ((1 << VALUE_BITS) - 1)) + LEAST_VALUE;
    (LEAST_VALUE < value && value < LARGEST_VALUE).then_some(value)
}
