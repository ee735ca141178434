//! Fourier transforms of lines.
//!
//! Their tables and the memory in which a line is transformed are allocated when a program is loaded: a call allocates no memory. The
//! computation has the element type of the planes.

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;

use spmdc_abi::{DType, LibraryArray, LibraryStep, Transform};
use spmdc_fourier::{Complex, ComplexToReal, Fft, LineElement, RealToComplex};

use super::{LibraryCall, Line};

/// Checks whether the arrays of a device's calls have the form that a transform expects; otherwise returns the difference.
pub(super) fn check(
    transform: Transform,
    step: &LibraryStep,
    lens: impl Fn(&LibraryArray) -> Vec<usize>,
) -> Result<(), String> {
    let first = step.operands.first().ok_or("a transform of nothing")?;
    let (dtype, len) = (first.dtype, lens(first));
    let counts = (step.operands.len(), step.results.len());
    let fits = match transform {
        Transform::Complex { .. } => matches!(counts, (1 | 2, 2)),
        Transform::OfReal | Transform::ToReal => counts == (1, 1),
    };
    let alike = |array: &LibraryArray| array.dtype == dtype && lens(array) == len;
    let is_float = matches!(dtype, DType::F32 | DType::F64);
    if fits && is_float && len.len() == 1 && step.operands.iter().chain(&step.results).all(alike) {
        Ok(())
    } else {
        Err(format!("{transform:?} of {counts:?} arrays like {} of {len:?}", dtype.name()))
    }
}

/// A transform of lines of one length, with memory for each thread that makes calls.
pub(super) enum PreparedTransform {
    /// All lines are empty, so there are no calls.
    Empty,
    Single(TransformTables<f32>),
    Double(TransformTables<f64>),
}

impl fmt::Debug for PreparedTransform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a transform")
    }
}

pub(super) struct TransformTables<T> {
    plan: TransformPlan<T>,
    slots: Box<[UnsafeCell<LineMemory<T>>]>,
}

enum TransformPlan<T> {
    Complex(Arc<dyn Fft<T>>),
    OfReal(Arc<dyn RealToComplex<T>>),
    ToReal(Arc<dyn ComplexToReal<T>>),
}

/// Memory for one line.
struct LineMemory<T> {
    real: Box<[T]>,
    complex: Box<[Complex<T>]>,
    scratch: Box<[Complex<T>]>,
}

impl PreparedTransform {
    pub fn new(transform: Transform, dtype: DType, len: usize, slots: usize) -> PreparedTransform {
        debug_assert!(len == 0 || slots > 0, "a thread that makes calls has a slot");
        if len == 0 {
            PreparedTransform::Empty
        } else if dtype == DType::F64 {
            PreparedTransform::Double(TransformTables::new(transform, len, slots))
        } else {
            PreparedTransform::Single(TransformTables::new(transform, len, slots))
        }
    }

    /// # Safety
    /// As for [`PreparedLibrary::run`](super::PreparedLibrary::run); the call has the arrays that `check` demands, and no other thread
    /// uses its slot.
    pub unsafe fn run(&self, call: &LibraryCall<'_>, slot: usize) {
        // SAFETY: as promised by the caller.
        unsafe {
            match self {
                PreparedTransform::Empty => {}
                PreparedTransform::Single(tables) => tables.run(call, slot),
                PreparedTransform::Double(tables) => tables.run(call, slot),
            }
        }
    }
}

impl<T: LineElement> TransformTables<T> {
    fn new(transform: Transform, len: usize, slots: usize) -> TransformTables<T> {
        let plan = match transform {
            Transform::Complex { inverse } => TransformPlan::Complex(T::complex(len, inverse)),
            Transform::OfReal => TransformPlan::OfReal(T::of_real(len)),
            Transform::ToReal => TransformPlan::ToReal(T::to_real(len)),
        };
        let (real, complex, scratch) = match &plan {
            TransformPlan::Complex(plan) => (0, len, plan.get_inplace_scratch_len()),
            TransformPlan::OfReal(plan) => (len, len / 2 + 1, plan.get_scratch_len()),
            TransformPlan::ToReal(plan) => (len, len / 2 + 1, plan.get_scratch_len()),
        };
        let zero = Complex::new(T::zero(), T::zero());
        let memory = || LineMemory {
            real: vec![T::zero(); real].into(),
            complex: vec![zero; complex].into(),
            scratch: vec![zero; scratch].into(),
        };
        TransformTables { plan, slots: (0..slots).map(|_| UnsafeCell::new(memory())).collect() }
    }

    /// # Safety
    /// As for [`PreparedTransform::run`].
    unsafe fn run(&self, call: &LibraryCall<'_>, slot: usize) {
        // SAFETY: no other thread uses the slot now.
        let memory = unsafe { &mut *self.slots[slot].get() };
        let LineMemory { real, complex, scratch } = memory;
        let line = |number: usize| -> Line<'_, T> { call.operand(number, 0).line() };
        let result = |number: usize| -> Line<'_, T> { call.result(number).line() };
        // SAFETY: as promised by the caller; all lines have the length of the tables.
        unsafe {
            match &self.plan {
                TransformPlan::Complex(plan) => {
                    let re = line(0);
                    if call.operands() == 2 {
                        let im = line(1);
                        for (at, place) in complex.iter_mut().enumerate() {
                            *place = Complex::new(re.get(at), im.get(at));
                        }
                    } else {
                        for (at, place) in complex.iter_mut().enumerate() {
                            *place = Complex::new(re.get(at), T::zero());
                        }
                    }
                    plan.process_with_scratch(complex, scratch);
                    let (re, im) = (result(0), result(1));
                    for (at, number) in complex.iter().enumerate() {
                        re.set(at, number.re);
                        im.set(at, number.im);
                    }
                }
                TransformPlan::OfReal(plan) => {
                    let from = line(0);
                    for (at, place) in real.iter_mut().enumerate() {
                        *place = from.get(at);
                    }
                    let done = plan.process_with_scratch(real, complex, scratch);
                    debug_assert!(done.is_ok(), "the memory has the lengths of the tables");
                    let (to, n) = (result(0), real.len());
                    for (at, number) in complex.iter().enumerate() {
                        to.set(at, number.re);
                        if 0 < at && 2 * at < n {
                            to.set(n - at, number.im);
                        }
                    }
                }
                TransformPlan::ToReal(plan) => {
                    let (from, n) = (line(0), real.len());
                    for (at, place) in complex.iter_mut().enumerate() {
                        let im = if 0 < at && 2 * at < n { from.get(n - at) } else { T::zero() };
                        *place = Complex::new(from.get(at), im);
                    }
                    let done = plan.process_with_scratch(complex, real, scratch);
                    debug_assert!(done.is_ok(), "the memory has the lengths of the tables");
                    let to = result(0);
                    for (at, &number) in real.iter().enumerate() {
                        to.set(at, number);
                    }
                }
            }
        }
    }
}
