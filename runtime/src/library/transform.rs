//! Fourier transforms of lines.
//!
//! Their tables and the memory in which lines are transformed are allocated when a program is loaded: a call allocates no memory. The
//! computation has the element type of the planes. Neighbouring lines along an outer dimension are read, transformed and written together,
//! because their elements share the cache lines.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

use spmdc_abi::{LibraryArray, LibraryFunction, LibraryStep, Transform, trap};
use spmdc_fourier::{Complex, ComplexToReal, Fft, LineElement, RealToComplex};

use super::{LibraryCall, LibraryCheck, LibraryCode, Line, OwnCalls, PreparedFunction, StepArrays, other_function};

/// The most bytes of an element of neighbouring lines that are transformed together.
const TOGETHER: usize = if cfg!(debug_assertions) { 24 } else { 128 };

/// The most bytes of lines that are transformed together.
const CACHED: usize = 1 << 20;

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
    fn prepare(&self, step: &LibraryStep, own: OwnCalls) -> Box<dyn PreparedFunction> {
        let LibraryFunction::Fft(transform) = step.function else { unreachable!("the step has been checked") };
        debug_assert!(own.len == 0 || own.threads > 0, "a thread that makes calls has a slot");
        let is_real = step.operands.len() == 1;
        // Without elements there are no calls.
        Box::new(PreparedTransform((own.len > 0).then(|| TransformTables::<T>::new((transform, is_real), own))))
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
    fn together(&self) -> usize {
        self.0.as_ref().map_or(1, |tables| tables.together)
    }

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
    /// The most lines that are transformed together.
    together: usize,
    slots: Box<[UnsafeCell<LineMemory<T>>]>,
}

enum TransformPlan<T> {
    Complex(Arc<dyn Fft<T>>),
    /// Of real numbers, with both halves of the result.
    Whole(Arc<dyn RealToComplex<T>>),
    OfReal(Arc<dyn RealToComplex<T>>),
    ToReal(Arc<dyn ComplexToReal<T>>),
}

/// Memory for the lines of a thread.
struct LineMemory<T> {
    real: LineGroup<T>,
    complex: LineGroup<Complex<T>>,
    scratch: Box<[Complex<T>]>,
}

/// Several lines of one length.
struct LineGroup<T> {
    elements: Box<[T]>,
    len: usize,
    /// The distance between lines: more than their length, because those at distances of powers of two share few sets of a cache.
    stride: usize,
}

impl<T: Copy> LineGroup<T> {
    fn new(zero: T, len: usize, count: usize) -> LineGroup<T> {
        let stride = if count > 1 { len + 64 / size_of::<T>() } else { len };
        LineGroup { elements: vec![zero; stride * count].into(), len, stride }
    }

    /// The first line, without the space after it.
    fn first(&self) -> &[T] {
        &self.elements[..self.len]
    }

    /// As [`LineGroup::first`], mutable.
    fn first_mut(&mut self) -> &mut [T] {
        &mut self.elements[..self.len]
    }

    /// The first `count` lines.
    fn each(&mut self, count: usize) -> impl Iterator<Item = &mut [T]> {
        self.elements.chunks_exact_mut(self.stride.max(1)).take(count).map(|line| &mut line[..self.len])
    }

    /// Sets the elements at one place of all lines.
    fn set(&mut self, at: usize, elements: impl Iterator<Item = T>) {
        debug_assert!(at < self.len, "element {at} of {}", self.len);
        let places = self.elements[at..].iter_mut().step_by(self.stride);
        places.zip(elements).for_each(|(place, element)| *place = element);
    }

    /// The elements at one place of all lines.
    fn across(&self, at: usize) -> impl Iterator<Item = &T> {
        debug_assert!(at < self.len, "element {at} of {}", self.len);
        self.elements[at..].iter().step_by(self.stride)
    }
}

impl<T: LineElement> TransformTables<T> {
    fn new(
        (transform, is_real): (Transform, bool),
        OwnCalls { len, threads, neighbours }: OwnCalls,
    ) -> TransformTables<T> {
        let plan = match transform {
            // The other half of the result are the conjugates of this one.
            Transform::Complex { inverse: false } if is_real => TransformPlan::Whole(T::of_real(len)),
            Transform::Complex { inverse } => TransformPlan::Complex(T::complex(len, inverse)),
            Transform::OfReal => TransformPlan::OfReal(T::of_real(len)),
            Transform::ToReal => TransformPlan::ToReal(T::to_real(len)),
        };
        let (real, complex, scratch) = match &plan {
            TransformPlan::Complex(plan) => (0, len, plan.get_inplace_scratch_len()),
            TransformPlan::Whole(plan) | TransformPlan::OfReal(plan) => (len, len / 2 + 1, plan.get_scratch_len()),
            TransformPlan::ToReal(plan) => (len, len / 2 + 1, plan.get_scratch_len()),
        };
        let size = size_of::<T>();
        let cached = (CACHED / (2 * size * len)).max(64 / size / 2);
        let together = neighbours.min(TOGETHER / size).min(cached).max(1);
        let zero = Complex::new(T::zero(), T::zero());
        let memory = || LineMemory {
            real: LineGroup::new(T::zero(), real, together),
            complex: LineGroup::new(zero, complex, together),
            scratch: vec![zero; scratch].into(),
        };
        let slots = (0..threads).map(|_| UnsafeCell::new(memory())).collect();
        TransformTables { plan, together, slots }
    }

    /// # Safety
    /// As for [`PreparedFunction::call`].
    unsafe fn run(&self, call: &LibraryCall<'_>, slot: usize) {
        debug_assert!(call.count <= self.together, "{} lines of at most {}", call.count, self.together);
        // SAFETY: no other thread uses the slot now.
        let memory = unsafe { &mut *self.slots[slot].get() };
        let (LineMemory { real, complex, scratch }, count) = (memory, call.count);
        let line = |number: usize| -> Line<'_, T> { call.operand(number, 0).line() };
        let result = |number: usize| -> Line<'_, T> { call.result(number).line() };
        // SAFETY: as promised by the caller; all lines have the length of the tables.
        unsafe {
            match &self.plan {
                TransformPlan::Complex(plan) => {
                    if call.operands() == 2 {
                        read_complex((line(0), line(1)), (complex, count));
                    } else {
                        let from = line(0);
                        for at in 0..complex.len {
                            let numbers = from.across(at, count).iter();
                            complex.set(at, numbers.map(|&re| Complex::new(re, T::zero())));
                        }
                    }
                    complex.each(count).for_each(|line| plan.process_with_scratch(line, scratch));
                    write_complex((complex, count), (result(0), result(1)));
                }
                TransformPlan::Whole(plan) => {
                    read_real(line(0), (real, count));
                    transform_real(&**plan, (real, complex, scratch), count);
                    write_halves((complex, count), (result(0), result(1)));
                }
                TransformPlan::OfReal(plan) => {
                    read_real(line(0), (real, count));
                    transform_real(&**plan, (real, complex, scratch), count);
                    let (to, n) = (result(0), real.len);
                    for at in 0..complex.len {
                        let re = to.across_mut(at, count).iter_mut();
                        re.zip(complex.across(at)).for_each(|(to, number)| *to = number.re);
                        if 0 < at && 2 * at < n {
                            let im = to.across_mut(n - at, count).iter_mut();
                            im.zip(complex.across(at)).for_each(|(to, number)| *to = number.im);
                        }
                    }
                }
                TransformPlan::ToReal(plan) => {
                    let (from, n) = (line(0), real.len);
                    for at in 0..complex.len {
                        let re = from.across(at, count).iter();
                        if 0 < at && 2 * at < n {
                            let im = from.across(n - at, count).iter();
                            complex.set(at, re.zip(im).map(|(&re, &im)| Complex::new(re, im)));
                        } else {
                            complex.set(at, re.map(|&re| Complex::new(re, T::zero())));
                        }
                    }
                    for (complex, real) in complex.each(count).zip(real.each(count)) {
                        let done = plan.process_with_scratch(complex, real, scratch);
                        debug_assert!(done.is_ok(), "the memory has the lengths of the tables");
                    }
                    let to = result(0);
                    for at in 0..n {
                        let places = to.across_mut(at, count).iter_mut();
                        places.zip(real.across(at)).for_each(|(to, &number)| *to = number);
                    }
                }
            }
        }
    }
}

/// Transforms lines of real numbers.
fn transform_real<T: LineElement>(
    plan: &dyn RealToComplex<T>,
    (real, complex, scratch): (&mut LineGroup<T>, &mut LineGroup<Complex<T>>, &mut [Complex<T>]),
    count: usize,
) {
    for (real, complex) in real.each(count).zip(complex.each(count)) {
        let done = plan.process_with_scratch(real, complex, scratch);
        debug_assert!(done.is_ok(), "the memory has the lengths of the tables");
    }
}

/// Reads lines of real numbers.
///
/// # Safety
/// As for [`PreparedFunction::call`].
unsafe fn read_real<T: LineElement>(from: Line<'_, T>, (to, count): (&mut LineGroup<T>, usize)) {
    // SAFETY: as promised by the caller.
    unsafe {
        if let (1, Some(from)) = (count, from.elements()) {
            return to.first_mut().copy_from_slice(from);
        }
        for at in 0..to.len {
            to.set(at, from.across(at, count).iter().copied());
        }
    }
}

/// Reads lines of complex numbers from their planes.
///
/// # Safety
/// As for [`PreparedFunction::call`].
unsafe fn read_complex<T: LineElement>(
    (re, im): (Line<'_, T>, Line<'_, T>),
    (to, count): (&mut LineGroup<Complex<T>>, usize),
) {
    // SAFETY: as promised by the caller.
    unsafe {
        if let (1, Some(re), Some(im)) = (count, re.elements(), im.elements()) {
            let planes = re.iter().zip(im);
            return to.first_mut().iter_mut().zip(planes).for_each(|(to, (&re, &im))| *to = Complex::new(re, im));
        }
        for at in 0..to.len {
            let planes = re.across(at, count).iter().zip(im.across(at, count));
            to.set(at, planes.map(|(&re, &im)| Complex::new(re, im)));
        }
    }
}

/// Writes the planes of lines of complex numbers.
///
/// # Safety
/// As for [`PreparedFunction::call`].
unsafe fn write_complex<T: LineElement>(
    (from, count): (&LineGroup<Complex<T>>, usize),
    (re, im): (Line<'_, T>, Line<'_, T>),
) {
    // SAFETY: as promised by the caller; the planes do not overlap.
    unsafe {
        if let (1, Some(re), Some(im)) = (count, re.slice(), im.slice()) {
            for ((re, im), number) in re.iter_mut().zip(im).zip(from.first()) {
                (*re, *im) = (number.re, number.im);
            }
            return;
        }
        for at in 0..from.len {
            let places = re.across_mut(at, count).iter_mut().zip(im.across_mut(at, count));
            for ((re, im), number) in places.zip(from.across(at)) {
                (*re, *im) = (number.re, number.im);
            }
        }
    }
}

/// Writes the planes of the transforms of real numbers, of which there is the first half: the others are conjugates.
///
/// # Safety
/// As for [`PreparedFunction::call`].
unsafe fn write_halves<T: LineElement>(
    (from, count): (&LineGroup<Complex<T>>, usize),
    (re, im): (Line<'_, T>, Line<'_, T>),
) {
    let n = re.len;
    // SAFETY: as promised by the caller; the planes do not overlap.
    unsafe {
        if let (1, Some(re), Some(im)) = (count, re.slice(), im.slice()) {
            let half = from.len;
            let ((re, re_rest), (im, im_rest)) = (re.split_at_mut(half), im.split_at_mut(half));
            for ((re, im), number) in re.iter_mut().zip(im).zip(from.first()) {
                (*re, *im) = (number.re, number.im);
            }
            // Element 0 has no other, and is not among the rest.
            let rest = re_rest.iter_mut().zip(im_rest).rev();
            for ((re, im), number) in rest.zip(&from.first()[1..]) {
                (*re, *im) = (number.re, -number.im);
            }
            return;
        }
        for at in 0..n {
            let (place, is_other) = if at < from.len { (at, false) } else { (n - at, true) };
            let places = re.across_mut(at, count).iter_mut().zip(im.across_mut(at, count));
            for ((re, im), number) in places.zip(from.across(place)) {
                (*re, *im) = (number.re, if is_other { -number.im } else { number.im });
            }
        }
    }
}
