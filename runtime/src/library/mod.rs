//! Functions on whole lines and matrices: [`Step::Library`](spmdc_abi::Step::Library).
//!
//! A call gets views of its operands and results: an address, extents and strides. It allocates nothing; its scratch memory is among
//! the results. The calls of a step, one for each index of the batch, are independent, so threads take them in any order.
//! The scratch memory belongs to a call, or is divided into slots, one for each thread at a time.
//!
//! The code of each family of functions is a component of the runtime: an executable has those of its program.

pub(crate) mod gemm;
pub(crate) mod matrix;
pub(crate) mod matrix_product;
mod merge;
mod order;
pub(crate) mod packed_products;
mod radix;
pub(crate) mod rows_and_transfers;
pub(crate) mod scatter;
mod select;
pub(crate) mod sort;
mod sort_line;
pub(crate) mod transform;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::processes::reads::DeviceReads;
use crate::run::team::{Team, WORTH_SHARING, first_trap};
use spmdc_abi::mesh::{DeviceMesh, share};
use spmdc_abi::{Check, DType, LibraryArray, LibraryFunction, LibraryStep, ScatterParts, TakenPlaces, trap};

/// Minimum estimated time of a call that is divided over a team, in nanoseconds: its parts wait for each other several times.
const WORTH_DIVIDING: f64 = 4.0 * WORTH_SHARING;

/// The arrays that functions expect.
pub(crate) trait LibraryCheck: Sync {
    /// Whether the arrays of a device's calls are those that the function expects; otherwise the difference. All extents are from 0 on.
    fn check(&self, arrays: &StepArrays<'_>) -> Result<(), String>;
}

/// A family of functions.
pub(crate) trait LibraryCode: LibraryCheck {
    /// The function of a checked step, for the calls of a device.
    fn prepare(&self, step: &LibraryStep, own: OwnCalls) -> Box<dyn PreparedFunction>;
}

/// The calls that a device makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnCalls {
    /// Elements of the result's first dimension; 0 if the device makes no calls.
    pub len: usize,
    /// The threads that make calls at a time; each has slots of its own.
    pub threads: usize,
    /// The most calls after one another whose elements at each place are neighbours in memory.
    pub neighbours: usize,
}

/// A function of a step.
pub(crate) trait PreparedFunction: fmt::Debug + Sync {
    /// The most neighbouring calls that are made together.
    fn together(&self) -> usize {
        1
    }

    /// Whether calls are made together whose elements are not neighbours in memory, too.
    fn gathers(&self) -> bool {
        false
    }

    /// Makes some parts of a call, or a few neighbouring calls; gives the code of the first failure.
    ///
    /// # Safety
    /// As for [`PreparedLibrary::run`]; the call has the arrays that [`LibraryCheck::check`] demands, and no other thread uses its slot of
    /// the scratch memory.
    unsafe fn call(&self, call: &LibraryCall<'_>, parts: Range<usize>) -> i64;

    /// Whether a call of one part can divide its work over a team itself.
    fn divides(&self) -> bool {
        false
    }

    /// Makes a call by all threads of a team, with the same bits as [`PreparedFunction::call`] gives.
    ///
    /// # Safety
    /// As for [`PreparedFunction::call`]; no thread of the team does anything else.
    unsafe fn call_divided(&self, call: &LibraryCall<'_>, _: &mut Team) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { self.call(call, 0..1) }
    }
}

/// The arrays of a device's calls, to be checked.
pub(crate) struct StepArrays<'a> {
    pub step: &'a LibraryStep,
    mesh: &'a DeviceMesh,
    device: usize,
    /// The devices whose operands the device reads.
    owners: Vec<usize>,
}

impl StepArrays<'_> {
    /// The extents of an array on a device.
    fn lens(&self, array: &LibraryArray, device: usize) -> Vec<usize> {
        extents(self.mesh, array, device).iter().map(|dim| dim.len).collect()
    }

    /// The extents of an array on the device itself.
    fn own(&self, array: &LibraryArray) -> Vec<usize> {
        self.lens(array, self.device)
    }

    /// Whether the operands are those of the device itself.
    fn are_own(&self, message: &str) -> Result<(), String> {
        expect(self.owners.len() == 1, message)
    }

    /// Whether all arrays are lines, and the operands those of the device itself.
    fn are_lines(&self, message: &str) -> Result<(), String> {
        let mut all = self.step.operands.iter().chain(&self.step.results);
        expect(self.owners.len() == 1 && all.all(|array| array.dims.len() == 1), message)
    }
}

fn expect(holds: bool, message: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(message.to_string()) }
}

/// A step was given to the code of another family.
fn other_function() -> String {
    "a function of another library".to_string()
}

/// A dimension of an array; the stride is in elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ViewDim {
    pub len: usize,
    pub stride: usize,
}

/// A step's calls, or a device's share of them.
#[derive(Debug)]
pub(crate) struct PreparedLibrary {
    function: Box<dyn PreparedFunction>,
    /// The index in the sorted order of the first element that a merge takes, or the place of the first element from which is selected.
    first: i64,
    /// The operands, then the results.
    arrays: Box<[StridedArray]>,
    operands: usize,
    batch: Box<[usize]>,
    /// For each indexed dimension of a scatter, or for the rows of a matrix, the index of the first element of the device's block.
    block: Box<[i64]>,
    /// The parts of a call.
    parts: usize,
    /// The calls, each in this number of parts.
    calls: Range<i64>,
    /// The calls that may be made together, in groups from a multiple of this number on.
    together: usize,
    /// Parts that a thread takes at a time; 0 if there is too little work for a team, or if each call divides its work.
    chunk: i64,
    /// Whether calls are made one after another, each by all threads.
    divided: bool,
    /// For each slot of the scratch memory whether a thread uses it; none if every call has separate scratch memory.
    slots: Box<[AtomicBool]>,
    /// The checks of the calls.
    pub checks: Box<[Check]>,
}

/// A slot of the scratch memory, while a thread uses it.
pub(crate) struct ScratchSlot<'a> {
    slots: &'a [AtomicBool],
    at: usize,
}

impl<'a> ScratchSlot<'a> {
    /// Waits for a slot that no thread uses, for the time of another thread's calls at most.
    pub fn take(slots: &'a [AtomicBool]) -> ScratchSlot<'a> {
        if slots.is_empty() {
            return ScratchSlot { slots, at: 0 };
        }
        loop {
            let is_free = |slot: &AtomicBool| !slot.swap(true, Ordering::Acquire);
            if let Some(at) = slots.iter().position(is_free) {
                return ScratchSlot { slots, at };
            }
            std::thread::yield_now();
        }
    }

    /// The number of the slot.
    pub fn at(&self) -> usize {
        debug_assert!(self.at < self.slots.len().max(1), "there is no slot {}", self.at);
        self.at
    }
}

impl Drop for ScratchSlot<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slots.get(self.at) {
            slot.store(false, Ordering::Release);
        }
    }
}

#[derive(Debug)]
struct StridedArray {
    dtype: DType,
    batch: Box<[usize]>,
    /// One, or the operand of each owner.
    blocks: Box<[StridedBlock]>,
}

#[derive(Debug)]
struct StridedBlock {
    base: *mut u8,
    dims: Box<[ViewDim]>,
}

// SAFETY: a step consists of data and pointers to the program's memory; `run` demands that threads make different calls of it.
unsafe impl Sync for PreparedLibrary {}

/// An operand or result of one call.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    base: *mut u8,
    pub dtype: DType,
    pub dims: &'a [ViewDim],
}

/// A view of one dimension whose elements have the type `T`, or are of its size.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a, T> {
    base: *mut T,
    pub len: usize,
    pub stride: usize,
    elements: PhantomData<&'a T>,
}

/// One call of the function.
pub(crate) struct LibraryCall<'a> {
    step: &'a PreparedLibrary,
    index: usize,
    /// The number of calls from this one on that are made together.
    count: usize,
    /// The slot of the scratch memory that the call uses.
    slot: usize,
}

impl<'a> LibraryCall<'a> {
    /// The number of devices whose operands the call reads.
    pub fn owners(&self) -> usize {
        self.step.arrays[..self.step.operands].first().map_or(1, |array| array.blocks.len())
    }

    pub fn operands(&self) -> usize {
        self.step.operands
    }

    /// The operand, in the block of an owner.
    pub fn operand(&self, number: usize, owner: usize) -> View<'a> {
        debug_assert!(number < self.step.operands, "there is no operand {number}");
        self.view(number, owner)
    }

    pub fn result(&self, number: usize) -> View<'a> {
        self.view(self.step.operands + number, 0)
    }

    /// The call's slot of the scratch memory, which is the last result.
    ///
    /// # Safety
    /// As for [`View::scratch`].
    pub unsafe fn slot(&self) -> &'a mut [f64] {
        let all = self.view(self.step.arrays.len() - 1, 0);
        let len = all.dims[1].len;
        assert!(all.dtype == DType::F64 && self.slot < all.dims[0].len && all.dims[1].stride == 1, "a slot of f64s");
        // SAFETY: the loader has checked that all slots lie within the device's own memory; no other thread uses this one now.
        unsafe { std::slice::from_raw_parts_mut(all.base.cast::<f64>().add(self.slot * all.dims[0].stride), len) }
    }

    /// One of the calls that are made together.
    pub fn member(&self, number: usize) -> LibraryCall<'a> {
        debug_assert!(number < self.count, "call {number} of {}", self.count);
        LibraryCall { index: self.index + number, count: 1, ..*self }
    }

    /// The last result of the call at the slot's distance from the first: threads reuse few pieces of scratch memory, which stay in their
    /// caches.
    pub fn scratch_of_slot(&self) -> View<'a> {
        debug_assert!((self.slot as i64) < self.step.calls.end - self.step.calls.start, "a slot without a call");
        self.view_of(self.step.arrays.len() - 1, 0, self.step.calls.start as usize + self.slot)
    }

    fn view(&self, number: usize, owner: usize) -> View<'a> {
        self.view_of(number, owner, self.index)
    }

    /// An array of another call of the step.
    fn view_of(&self, number: usize, owner: usize, mut index: usize) -> View<'a> {
        let array = &self.step.arrays[number];
        let block = &array.blocks[owner];
        let mut offset = 0;
        for (&len, stride) in self.step.batch.iter().zip(&array.batch).rev() {
            offset += index % len * stride;
            index /= len;
        }
        debug_assert_eq!(index, 0, "a call beyond the batch");
        View { base: block.base.wrapping_add(offset * array.dtype.size()), dtype: array.dtype, dims: &block.dims }
    }
}

impl<'a> View<'a> {
    /// The first elements of contiguous scratch memory, as another type.
    ///
    /// # Safety
    /// The memory of the step must be accessible as [`PreparedLibrary::run`] demands, and no other access to it may be in use.
    pub unsafe fn scratch<T>(&self, len: usize) -> &'a mut [T] {
        let elements = self.dims.iter().map(|dim| dim.len).product::<usize>();
        assert!(len * size_of::<T>() <= elements * self.dtype.size(), "scratch memory for {len} elements");
        assert!(self.dims.iter().all(|dim| dim.stride == 1) && align_of::<T>() <= 64, "scratch memory is contiguous");
        // SAFETY: the loader has checked that the elements lie within the program's memory, where buffers begin at multiples of 64;
        // their number is a multiple of their size in every call of the batch.
        unsafe { std::slice::from_raw_parts_mut(self.base.cast(), len) }
    }

    /// The address of the first element.
    pub fn base<T>(&self) -> *mut T {
        debug_assert_eq!(size_of::<T>(), self.dtype.size(), "elements have the size of their type");
        self.base.cast()
    }

    /// The address of an element of a matrix, or of a vector, whose second index is 0.
    pub fn at<T>(&self, row: usize, column: usize) -> *mut T {
        debug_assert_eq!(size_of::<T>(), self.dtype.size(), "elements have the size of their type");
        let places = self.dims.iter().zip([row, column]);
        let offset: usize = places
            .map(|(dim, at)| {
                debug_assert!(at < dim.len, "element {at} of {}", dim.len);
                at * dim.stride
            })
            .sum();
        self.base.cast::<T>().wrapping_add(offset)
    }

    /// The elements of a view of one dimension, as a type of the same size.
    pub fn line<T>(&self) -> Line<'a, T> {
        assert_eq!(size_of::<T>(), self.dtype.size(), "elements have the size of their type");
        assert_eq!(self.dims.len(), 1, "a line has one dimension");
        let ViewDim { len, stride } = self.dims[0];
        Line { base: self.base.cast(), len, stride, elements: PhantomData }
    }
}

impl<'a, T: Copy> Line<'a, T> {
    /// # Safety
    /// The memory of the step must be accessible as [`PreparedLibrary::run`] demands.
    pub unsafe fn get(&self, at: usize) -> T {
        debug_assert!(at < self.len, "element {at} of {}", self.len);
        // SAFETY: the loader has checked that all elements of the line lie within the program's memory.
        unsafe { self.base.add(at * self.stride).read() }
    }

    /// # Safety
    /// As for `get`.
    pub unsafe fn set(&self, at: usize, value: T) {
        debug_assert!(at < self.len, "element {at} of {}", self.len);
        // SAFETY: as in `get`.
        unsafe { self.base.add(at * self.stride).write(value) }
    }

    /// The elements at one place of `count` neighbouring lines, to be read: this one, and those of the calls after it.
    ///
    /// # Safety
    /// As for `get`, for all of the lines; and no element is written while the slice is in use.
    pub unsafe fn across(&self, at: usize, count: usize) -> &'a [T] {
        debug_assert!(at < self.len, "element {at} of {}", self.len);
        // SAFETY: as in `get`; neighbouring calls have neighbouring elements.
        unsafe { std::slice::from_raw_parts(self.base.add(at * self.stride), count) }
    }

    /// As [`Line::across`], to be written.
    ///
    /// # Safety
    /// As for `get`, for all of the lines; and no other access to these elements is in use.
    pub unsafe fn across_mut(&self, at: usize, count: usize) -> &'a mut [T] {
        debug_assert!(at < self.len, "element {at} of {}", self.len);
        // SAFETY: as in `across`.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(at * self.stride), count) }
    }

    /// The elements to be read as a slice, if they are contiguous.
    ///
    /// # Safety
    /// As for `get`; and no element is written while the slice is in use.
    pub unsafe fn elements(&self) -> Option<&'a [T]> {
        // SAFETY: as in `get`; the caller reads only.
        (self.stride == 1 || self.len <= 1).then(|| unsafe { std::slice::from_raw_parts(self.base, self.len) })
    }

    /// The elements as a slice, if they are contiguous.
    ///
    /// # Safety
    /// As for `get`; and no other line of these elements is in use.
    pub unsafe fn slice(&self) -> Option<&'a mut [T]> {
        // SAFETY: as in `get`; the caller has the only access.
        (self.stride == 1 || self.len <= 1).then(|| unsafe { std::slice::from_raw_parts_mut(self.base, self.len) })
    }
}

/// Calls a generic function with the unsigned integer of an element's size.
macro_rules! by_width {
    ($dtype:expr, $function:ident $(<$with:ty>)? ($($argument:expr),*)) => {
        match $dtype.width() {
            spmdc_abi::Width::W8 => $function::<u8 $(, $with)?>($($argument),*),
            spmdc_abi::Width::W16 => $function::<u16 $(, $with)?>($($argument),*),
            spmdc_abi::Width::W32 => $function::<u32 $(, $with)?>($($argument),*),
            spmdc_abi::Width::W64 => $function::<u64 $(, $with)?>($($argument),*),
        }
    };
}
pub(crate) use by_width;

/// The device's share of a step, for a worker with a team of this many threads, in a process of so many. The step has been checked.
pub(crate) fn plan(
    reads: &mut DeviceReads<'_>,
    step: &LibraryStep,
    device: usize,
    ((team, threads), code): ((usize, usize), &dyn LibraryCode),
) -> PreparedLibrary {
    let mesh = reads.mesh();
    let owners = owners(mesh, step, device);
    let batch: Box<[usize]> = step.batch.iter().map(|extent| mesh.resolve(extent, device) as usize).collect();
    let mut array = |array: &LibraryArray, owners: &[usize]| StridedArray {
        dtype: array.dtype,
        batch: array.batch.iter().map(|&stride| stride as usize).collect(),
        blocks: owners
            .iter()
            .map(|&owner| {
                let dims = extents(mesh, array, owner);
                let read = (0, bytes(array, &dims, &batch));
                StridedBlock { base: reads.span(owner, array.place, read), dims }
            })
            .collect(),
    };
    let arrays: Box<[StridedArray]> = {
        let operands = step.operands.iter().map(|operand| (operand, owners.as_slice()));
        let own = [device];
        let results = step.results.iter().map(|result| (result, own.as_slice()));
        operands.chain(results).map(|(operand, owners)| array(operand, owners)).collect()
    };
    let parts = step.parts(|scalar| mesh.resolve(scalar, device)) as usize;
    let all = (batch.iter().product::<usize>() * parts) as i64;
    let (rank, ranks) = mesh.rank(device, step.split);
    let calls = share(all, rank, ranks);
    let count = calls.end - calls.start;
    let cost = f64::from(step.cost).max(1.0) / parts.max(1) as f64;
    let shared = team > 1 && count > 1 && cost * count as f64 > WORTH_SHARING;
    let worthwhile = ((WORTH_SHARING / 2.0 / cost) as i64).max(count / (8 * team as i64));
    let is_repeated = match &step.function {
        LibraryFunction::Scatter(scatter) => parts > 1 && scatter.divided != ScatterParts::Updates,
        LibraryFunction::Sort(_)
        | LibraryFunction::Merge(_)
        | LibraryFunction::Matrix(_)
        | LibraryFunction::Rows(_)
        | LibraryFunction::Send(_)
        | LibraryFunction::Receive(_)
        | LibraryFunction::Select(_)
        | LibraryFunction::Fft(_) => false,
    };
    // Every part of the result of a scatter reads all indices: each thread takes as many parts as possible.
    let most = if is_repeated { (count + team as i64 - 1) / team as i64 } else { (count / team as i64).max(1) };
    let least = if is_repeated { most } else { 1 };
    let chunk = if shared { worthwhile.clamp(least, most) } else { 0 };
    let line = step.results.first().and_then(|result| result.dims.first()).filter(|_| !calls.is_empty());
    let len = line.map_or(0, |dim| mesh.resolve(&dim.extent, device) as usize);
    debug_assert!(calls.start >= 0 && calls.end <= all, "a share of {calls:?} of {all} calls");
    let adjacent = parts == 1 && arrays.iter().all(|array| array.batch.last() == Some(&1));
    // Every thread has some of them.
    let most = (count as usize / team.max(1)).max(1);
    let neighbours = batch.last().copied().filter(|_| adjacent).unwrap_or(1).min(most);
    let function = code.prepare(step, OwnCalls { len, threads: team.max(1), neighbours });
    let adjoining = if function.gathers() { batch.last().map_or(1, |&row| row.min(most)) } else { neighbours };
    let together = function.together().clamp(1, adjoining.max(1));
    // Long calls of which the threads would not have the same number. A worker without helpers has guests.
    let threads = if team > 1 { team } else { threads } as i64;
    let is_uneven = count > 0 && count < 8 * threads && count % threads != 0;
    let divided = threads > 1 && is_uneven && function.divides() && cost > WORTH_DIVIDING;
    PreparedLibrary {
        divided,
        function,
        together,
        first: first(mesh, &step.function, device),
        arrays,
        operands: step.operands.len(),
        batch,
        block: block(mesh, &step.function, device),
        parts,
        calls,
        chunk: if divided { 0 } else { (chunk as usize).next_multiple_of(together) as i64 },
        slots: {
            let in_scratch =
                |at: usize| step.results[at].dims.first().map_or(0, |dim| mesh.resolve(&dim.extent, device));
            let count = match step.function {
                LibraryFunction::Fft(_) => team.max(1) as i64,
                LibraryFunction::Sort(_) => count.min(team.max(1) as i64),
                LibraryFunction::Merge(_)
                | LibraryFunction::Select(_)
                | LibraryFunction::Scatter(_)
                | LibraryFunction::Matrix(_)
                | LibraryFunction::Rows(_)
                | LibraryFunction::Send(_)
                | LibraryFunction::Receive(_) => slots(step).map_or(0, in_scratch),
            };
            (0..count).map(|_| AtomicBool::new(false)).collect()
        },
        checks: step.checks.clone().into(),
    }
}

/// The result that is scratch memory divided into slots, which calls use one after another; None if each call has its own.
pub(crate) fn slots(step: &LibraryStep) -> Option<usize> {
    step.results.len().checked_sub(1).filter(|_| step.function.has_slots())
}

/// The devices whose operands a device reads, in the order of their positions.
pub(crate) fn owners(mesh: &DeviceMesh, step: &LibraryStep, device: usize) -> Vec<usize> {
    let Some(owners) = &step.owners else { return vec![device] };
    let axes = || owners.axes.iter().map(|&axis| axis as usize);
    (0..mesh.count(axes())).map(|position| mesh.at(device, axes(), position)).collect()
}

/// Bytes from the first element of an array to its last one, in all calls of the batch.
fn bytes(array: &LibraryArray, dims: &[ViewDim], batch: &[usize]) -> usize {
    let all = dims.iter().map(|dim| (dim.len, dim.stride));
    let all = all.chain(batch.iter().zip(&array.batch).map(|(&len, &stride)| (len, stride as usize)));
    if all.clone().any(|(len, _)| len == 0) {
        return 0;
    }
    (all.map(|(len, stride)| (len - 1) * stride).sum::<usize>() + 1) * array.dtype.size()
}

fn extents(mesh: &DeviceMesh, array: &LibraryArray, device: usize) -> Box<[ViewDim]> {
    let dims = array.dims.iter();
    dims.map(|dim| ViewDim { len: mesh.resolve(&dim.extent, device) as usize, stride: dim.stride as usize }).collect()
}

fn block(mesh: &DeviceMesh, function: &LibraryFunction, device: usize) -> Box<[i64]> {
    match function {
        LibraryFunction::Sort(_)
        | LibraryFunction::Merge(_)
        | LibraryFunction::Select(_)
        | LibraryFunction::Rows(_)
        | LibraryFunction::Send(_)
        | LibraryFunction::Receive(_)
        | LibraryFunction::Fft(_) => Box::new([]),
        LibraryFunction::Matrix(function) => {
            function.first().map(|first| mesh.resolve(first, device)).into_iter().collect()
        }
        LibraryFunction::Scatter(scatter) => scatter.first.iter().map(|first| mesh.resolve(first, device)).collect(),
    }
}

fn first(mesh: &DeviceMesh, function: &LibraryFunction, device: usize) -> i64 {
    match function {
        LibraryFunction::Sort(_)
        | LibraryFunction::Scatter(_)
        | LibraryFunction::Matrix(_)
        | LibraryFunction::Rows(_)
        | LibraryFunction::Send(_)
        | LibraryFunction::Receive(_)
        | LibraryFunction::Fft(_) => 0,
        LibraryFunction::Merge(merge) => match &merge.taken {
            TakenPlaces::From(first) => mesh.resolve(first, device),
            TakenPlaces::Places(_) => 0,
        },
        LibraryFunction::Select(select) => select.first.as_ref().map_or(0, |first| mesh.resolve(first, device)),
    }
}

/// Whether the arrays of a device's calls are those that the function expects; otherwise the difference. All extents are from 0 on.
pub(crate) fn check(
    mesh: &DeviceMesh,
    step: &LibraryStep,
    device: usize,
    code: &dyn LibraryCheck,
) -> Result<(), String> {
    code.check(&StepArrays { step, mesh, device, owners: owners(mesh, step, device) })
}

impl PreparedLibrary {
    /// Whether a team would help.
    pub fn wants_team(&self) -> bool {
        self.chunk > 0 || self.divided
    }

    /// Makes the calls; returns the code of the first failure, like a kernel.
    ///
    /// # Safety
    /// The memory that the step may read or write must be memory that this thread and the team's threads may access in this way; no other
    /// thread may write it meanwhile.
    pub unsafe fn run(&self, team: Option<&mut Team>) -> i64 {
        let work = move |begin: i64, end: i64| {
            // SAFETY: as promised by the caller; calls write different elements.
            unsafe { self.range(begin as usize..end as usize) }
        };
        match team {
            Some(team) if self.divided => (self.calls.start..self.calls.end).fold(trap::NONE, |code, at| {
                let call = LibraryCall { step: self, index: at as usize, count: 1, slot: 0 };
                // SAFETY: as promised by the caller; the calls use one slot after one another.
                first_trap(code, unsafe { self.function.call_divided(&call, team) })
            }),
            Some(team) if self.chunk > 0 => team.run(self.calls.start, self.calls.end, self.chunk, &work),
            _ => work(self.calls.start, self.calls.end),
        }
    }

    /// The number of calls from this one on that are made together.
    fn neighbours(&self, index: usize) -> usize {
        let Some(&row) = self.batch.last().filter(|_| self.together > 1) else { return 1 };
        let at = index % row;
        (self.together - at % self.together).min(row - at)
    }

    /// Makes parts of calls.
    ///
    /// # Safety
    /// As for `run`.
    unsafe fn range(&self, range: Range<usize>) -> i64 {
        let slot = ScratchSlot::take(&self.slots);
        let (mut at, mut code) = (range.start, trap::NONE);
        while at < range.end {
            let (index, part) = (at / self.parts, at % self.parts);
            let end = self.parts.min(part + (range.end - at));
            let count = self.neighbours(index).min(range.end - at);
            let call = LibraryCall { step: self, index, count, slot: slot.at };
            // SAFETY: as promised by the caller; `check` has found the arrays that the function expects.
            code = first_trap(code, unsafe { self.function.call(&call, part..end) });
            at += if count > 1 { count } else { end - part };
        }
        code
    }
}
