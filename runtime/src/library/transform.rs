//! Fourier transforms of lines.
//!
//! Their tables and the memory in which a line is transformed are allocated when a program is loaded: a call allocates no memory. The
//! computation has the element type of the planes.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use spmdc_abi::{LibraryArray, LibraryFunction, LibraryStep, Transform, trap};
use spmdc_fourier::{Complex, ComplexToReal, Fft, LineElement, RealToComplex};

use super::{LibraryCall, LibraryCheck, LibraryCode, Line, PreparedFunction, StepArrays, other_function};

/// The transforms of an element type.
pub(crate) struct Transforms<T>(pub PhantomData<fn() -> T>);

impl<T: LineElement> LibraryCheck for Transforms<T> {
    fn check(&self, arrays: &StepArrays<'_>) -> Result<(), String> {
        let LibraryFunction::Fft(transform) = arrays.step.function else { return Err(other_function()) };
        arrays.are_lines("a transform of other arrays than lines")?;
        check::<T>(transform, arrays)
    }
}

impl<T: LineElement> LibraryCode for Transforms<T> {
    fn prepare(&self, step: &LibraryStep, (len, slots): (usize, usize)) -> Box<dyn PreparedFunction> {
        let LibraryFunction::Fft(transform) = step.function else { unreachable!("the step has been checked") };
        debug_assert!(len == 0 || slots > 0, "a thread that makes calls has a slot");
        // Without elements there are no calls.
        Box::new(PreparedTransform((len > 0).then(|| TransformTables::<T>::new(transform, len, slots))))
    }
}

/// Whether the arrays of a device's calls are those that a transform expects; otherwise the difference.
fn check<T>(transform: Transform, arrays: &StepArrays<'_>) -> Result<(), String> {
    let step = arrays.step;
    let lens = |array: &LibraryArray| arrays.own(array);
    let first = step.operands.first().ok_or("a transform of nothing")?;
    let (dtype, len) = (first.dtype, lens(first));
    let counts = (step.operands.len(), step.results.len());
    let fits = match transform {
        Transform::Complex { .. } => matches!(counts, (1 | 2, 2)),
        Transform::OfReal | Transform::ToReal => counts == (1, 1),
    };
    let alike = |array: &LibraryArray| array.dtype == dtype && lens(array) == len;
    let is_float = dtype.is_float() && dtype.size() == size_of::<T>();
    if fits && is_float && len.len() == 1 && step.operands.iter().chain(&step.results).all(alike) {
        Ok(())
    } else {
        Err(format!("{transform:?} of {counts:?} arrays like {} of {len:?}", dtype.name()))
    }
}

/// A transform of lines of one length, with memory for each thread that makes calls; None if there are no calls.
struct PreparedTransform<T>(Option<TransformTables<T>>);

impl<T> fmt::Debug for PreparedTransform<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a transform")
    }
}

// SAFETY: a thread uses only the memory of the slot that it has taken, as `call` demands.
unsafe impl<T: Sync> Sync for PreparedTransform<T> {}

impl<T: LineElement> PreparedFunction for PreparedTransform<T> {
    unsafe fn call(&self, call: &LibraryCall<'_>, _: Range<usize>) -> i64 {
        if let Some(tables) = &self.0 {
            // SAFETY: as promised by the caller.
            unsafe { tables.run(call, call.slot) };
        }
        trap::NONE
    }
}

struct TransformTables<T> {
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
    /// As for [`PreparedFunction::call`].
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
