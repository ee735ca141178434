//! The truth: C's functions in wider formats (`reference/reference.c`).

use super::samples::exponents;
use spmdc_abi::DType;
use std::ffi::c_int;
use std::ptr;

/// A floating-point format, as far as errors depend on it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Format {
    digits: c_int,
    /// The exponent of the last place of subnormal numbers.
    last: c_int,
    /// The exponent of the largest number.
    largest: c_int,
}

impl Format {
    pub const F64: Format = Format { digits: 53, last: -1074, largest: 1023 };

    /// Of the elements of a float type.
    pub fn of(dtype: DType) -> Format {
        let (last, largest) = exponents(dtype);
        let digits = dtype.format().expect("a float type").mantissa as c_int + 1;
        Format { digits, last, largest }
    }
}

/// The result of a run of answers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub sum: f64,
    /// The largest error, in units in the last place, and which answer has it.
    pub max: f64,
    pub at: usize,
    /// How many answers are NaN or infinite and should not be, or the other way round, or are zeros of the wrong sign; and the
    /// first of them.
    pub wrong: usize,
    pub wrong_at: usize,
}

unsafe extern "C" {
    static reference_digits: c_int;
    fn reference_narrow(f: c_int, n: usize, x: *const f32, truth: *mut f64);
    fn reference_tally_narrow(format: Format, n: usize, truth: *const f64, got: *const f32, sign: f32) -> Tally;
    fn reference_tally_wide(format: Format, f: c_int, n: usize, x: *const f64, y: *const f64, got: *const f64)
    -> Tally;
    fn reference_exact(format: Format, f: c_int, x: *const f64, y: *const f64, got: f64, doubt: *mut f64) -> f64;
}

/// The digits of the widest format, in which the reference itself is checked.
pub fn digits() -> i32 {
    // SAFETY: a constant.
    unsafe { reference_digits }
}

/// The function of each number, in double precision.
pub fn narrow(f: c_int, x: &[f32]) -> Vec<f64> {
    let mut truth = vec![0.0; x.len()];
    // SAFETY: both arrays have `x.len()` elements.
    unsafe { reference_narrow(f, x.len(), x.as_ptr(), truth.as_mut_ptr()) };
    truth
}

/// Compares answers, each times `sign`, with what [`narrow`] gave.
pub fn tally_narrow(format: Format, truth: &[f64], got: &[f32], sign: f32) -> Tally {
    assert_eq!(truth.len(), got.len());
    // SAFETY: both arrays have so many elements.
    unsafe { reference_tally_narrow(format, got.len(), truth.as_ptr(), got.as_ptr(), sign) }
}

/// Compares answers with the function of `x`, or of `x` and `y`, in C's `long double`.
pub fn tally_wide(format: Format, f: c_int, x: &[f64], y: Option<&[f64]>, got: &[f64]) -> Tally {
    assert!(x.len() == got.len() && y.is_none_or(|y| y.len() == got.len()));
    let y = y.map_or(ptr::null(), <[f64]>::as_ptr);
    // SAFETY: all arrays have so many elements, and `y` may be null.
    unsafe { reference_tally_wide(format, f, got.len(), x.as_ptr(), y, got.as_ptr()) }
}

/// The error of one answer by the widest format, infinite where the answer is wrong; and how far the reference that the tallies
/// use is from that, in the same unit.
pub fn exact(format: Format, f: c_int, x: f64, y: Option<f64>, got: f64) -> (f64, f64) {
    let mut doubt = 0.0;
    let y = y.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the pointers are to numbers that live until the call returns, and `y` may be null.
    let error = unsafe { reference_exact(format, f, &raw const x, y, got, &raw mut doubt) };
    (error, doubt)
}
