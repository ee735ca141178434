//! Stable sorts of lines: a lone line as it is, several together by records of a key and a place.

use super::order::{KeyOrder, Word, with_key};
use super::radix::{self, SortWords};
use super::{
    LibraryCall, LibraryCheck, LibraryCode, Line, PreparedFunction, StepArrays, View, by_width, expect, first, merge,
    other_function,
};
use spmdc_abi::{DType, LibraryArray, LibraryFunction, LibraryStep, MergeLines, SortLines, TakenPlaces, Width, trap};
use std::ops::Range;

/// Sorts, and merges of sorted lines.
pub(crate) struct SortCalls;

impl LibraryCheck for SortCalls {
    fn check(&self, arrays: &StepArrays<'_>) -> Result<(), String> {
        let step = arrays.step;
        match &step.function {
            LibraryFunction::Sort(order) => {
                arrays.are_lines("a sort of other arrays than lines")?;
                let len = step.operands.first().map_or(vec![], |operand| arrays.own(operand));
                expect(
                    step.operands.iter().all(|array| arrays.own(array) == len),
                    "a sort of lines of several lengths",
                )?;
                check_lines(order, arrays, len.first().copied().unwrap_or(0), 0)
            }
            LibraryFunction::Merge(merge) => check_merge(merge, arrays),
            LibraryFunction::Scatter(_)
            | LibraryFunction::Matrix(_)
            | LibraryFunction::Fft(_)
            | LibraryFunction::Rows(_)
            | LibraryFunction::Send(_)
            | LibraryFunction::Receive(_) => Err(other_function()),
        }
    }
}

impl LibraryCode for SortCalls {
    fn prepare(&self, step: &LibraryStep, _: (usize, usize)) -> Box<dyn PreparedFunction> {
        match &step.function {
            LibraryFunction::Sort(order) => Box::new(PreparedSort(order.clone())),
            LibraryFunction::Merge(merge) => Box::new(PreparedMerge(merge.clone())),
            LibraryFunction::Scatter(_)
            | LibraryFunction::Matrix(_)
            | LibraryFunction::Fft(_)
            | LibraryFunction::Rows(_)
            | LibraryFunction::Send(_)
            | LibraryFunction::Receive(_) => unreachable!("the step has been checked"),
        }
    }
}

fn check_merge(MergeLines { order, taken }: &MergeLines, arrays: &StepArrays<'_>) -> Result<(), String> {
    let (step, owners) = (arrays.step, &arrays.owners);
    let lines = step.operands.iter().chain(&step.results).all(|array| array.dims.len() == 1);
    expect(lines && !step.operands.is_empty(), "a merge of other arrays than lines")?;
    let mut total = 0;
    for &owner in owners {
        let len = arrays.lens(&step.operands[0], owner);
        let equal = step.operands.iter().all(|array| arrays.lens(array, owner) == len);
        expect(equal, "a merge of lines of several lengths")?;
        total += len[0];
    }
    let len = step.results.first().map_or(0, |result| arrays.own(result)[0]);
    let inside = match taken {
        TakenPlaces::From(_) => {
            let first = first(arrays.mesh, &step.function, arrays.device);
            first >= 0 && (first as u64).checked_add(len as u64).is_some_and(|end| end <= total as u64)
        }
        TakenPlaces::Places(places) => {
            places.len() == len && places.iter().all(|&place| (0..total as i64).contains(&place))
        }
    };
    expect(inside, "a merge of elements that do not exist")?;
    check_lines(order, arrays, len, MergeLines::SPLITS * owners.len())
}

/// Checks the lines of a sort whose results have this length, and its scratch memory, with an i64 for each of `splits`.
fn check_lines(order: &SortLines, arrays: &StepArrays<'_>, len: usize, splits: usize) -> Result<(), String> {
    let (step, lens) = (arrays.step, |array: &LibraryArray| arrays.own(array));
    let count = step.operands.len();
    expect(
        (1..=count).contains(&order.keys) && i32::try_from(len).is_ok(),
        "a sort without keys, or of too long lines",
    )?;
    expect(step.results.len() == count + 1 + usize::from(splits > 0), "a sort with other arrays than it needs")?;
    let (results, scratch) = step.results.split_at(count);
    let like =
        |(result, operand): (&LibraryArray, &LibraryArray)| result.dtype == operand.dtype && lens(result) == [len];
    expect(results.iter().zip(&step.operands).all(like), "a sort with other results than its operands")?;
    let dtypes: Vec<DType> = step.operands.iter().map(|operand| operand.dtype).collect();
    let mut wanted = vec![order.scratch(&dtypes, results[0].dims[0].stride == 1, len as u64)];
    wanted.extend((splits > 0).then_some((DType::I64, splits as u64)));
    let fits = |(array, &(dtype, least)): (&LibraryArray, &(DType, u64))| {
        array.dtype == dtype && lens(array)[0] as u64 >= least && array.dims[0].stride == 1
    };
    expect(scratch.iter().zip(&wanted).all(fits), "a sort with other scratch memory than it needs")
}

#[derive(Debug)]
struct PreparedSort(SortLines);

impl PreparedFunction for PreparedSort {
    unsafe fn call(&self, call: &LibraryCall<'_>, _: Range<usize>) -> i64 {
        let scratch = call.scratch_of_slot();
        // SAFETY: as promised by the caller.
        unsafe { Parts::new((call, scratch), &[0], &[0], call.result(0).dims[0].len, 0).sort(&self.0) };
        trap::NONE
    }
}

#[derive(Debug)]
struct PreparedMerge(MergeLines);

impl PreparedFunction for PreparedMerge {
    unsafe fn call(&self, call: &LibraryCall<'_>, _: Range<usize>) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { merge::merge(call, &self.0, call.step.first as usize) };
        trap::NONE
    }
}

/// Parts of the lines of all owners, one after another.
pub(super) struct Parts<'a> {
    call: &'a LibraryCall<'a>,
    scratch: View<'a>,
    /// The element of each owner's lines at which its part begins.
    begins: &'a [i64],
    /// The place of that element in the parts together.
    offsets: &'a [i64],
    len: usize,
    /// The element of the results that is the first of them in order.
    at: usize,
}

impl<'a> Parts<'a> {
    /// # Safety
    /// As for [`PreparedLibrary::run`](super::PreparedLibrary::run); the parts are within the operands of the call, which has the results
    /// that `check` requires. No other thread uses the scratch memory, which is sufficient for their sort.
    pub unsafe fn new(
        (call, scratch): (&'a LibraryCall<'a>, View<'a>),
        begins: &'a [i64],
        offsets: &'a [i64],
        len: usize,
        at: usize,
    ) -> Parts<'a> {
        debug_assert_eq!((begins.len(), offsets.len()), (call.owners(), call.owners()), "a part for each owner");
        debug_assert!(offsets.is_sorted() && offsets.first() == Some(&0), "parts follow each other from 0 on");
        Parts { call, scratch, begins, offsets, len, at }
    }

    /// Reads the elements of an operand, each to its own place.
    fn read<W: Word, T>(&self, number: usize, mut to: impl Iterator<Item = T>, set: impl Fn(T, W)) {
        for (owner, (&begin, &offset)) in self.begins.iter().zip(self.offsets).enumerate() {
            let end = self.offsets.get(owner + 1).map_or(self.len as i64, |&end| end);
            let line: Line<W> = self.call.operand(number, owner).line();
            for (at, to) in (begin as usize..(begin + end - offset) as usize).zip(&mut to) {
                // SAFETY: whoever made the parts has promised that they may be read.
                set(to, unsafe { line.get(at) });
            }
        }
    }

    /// The elements of the only operand if they are of one owner, contiguous, and in other memory than the result.
    ///
    /// # Safety
    /// As for `new`; the scratch memory and the results of the call are the only memory that is written.
    unsafe fn lone_line<W: Word>(&self) -> Option<&'a [W]> {
        let line: Line<W> = self.call.operand(0, 0).line();
        let result: Line<W> = self.call.result(0).line();
        let begin = *self.begins.first()? as usize;
        let apart =
            line.base.wrapping_add(line.len) <= result.base || result.base.wrapping_add(result.len) <= line.base;
        if self.begins.len() != 1 || line.stride != 1 || !apart {
            return None;
        }
        debug_assert!(begin + self.len <= line.len, "a part beyond the operand");
        // SAFETY: as promised by the caller.
        Some(unsafe { std::slice::from_raw_parts(line.base.add(begin), self.len) })
    }

    /// The owner of the element at a place, and its index in the owner's lines.
    fn find(&self, place: i64) -> (usize, usize) {
        debug_assert!((0..self.len as i64).contains(&place), "place {place} of {}", self.len);
        // Of empty parts, which have the offset of the next one, the last is the one that has the element.
        let owner = self.offsets.partition_point(|&offset| offset <= place) - 1;
        (owner, (self.begins[owner] + place - self.offsets[owner]) as usize)
    }

    /// Writes the elements to the results, sorted.
    pub fn sort(&self, order: &SortLines) {
        if self.call.operands() == 1 {
            return by_width!(self.call.result(0).dtype, sort_line(self, order));
        }
        let scratch = self.scratch;
        if (0..order.keys).any(|number| self.call.operand(number, 0).dtype.width() == Width::W64) {
            sort_places::<u64>(self, scratch, order);
        } else {
            sort_places::<u32>(self, scratch, order);
        }
    }
}

fn sort_line<W: Word>(parts: &Parts<'_>, order: &SortLines) {
    let (result, scratch) = (parts.call.result(0), parts.scratch);
    let keys = KeyOrder::<W>::new(result.dtype, order);
    let line: Line<W> = result.line();
    // SAFETY: whoever made the parts has promised that the call may write its results and scratch memory.
    unsafe {
        if let Some((from, to)) = parts.lone_line().zip(line.slice())
            && radix::is_short::<W>(parts.len)
        {
            return sort_lone(from, &mut to[parts.at..][..parts.len], scratch.scratch(parts.len), keys);
        }
        if let Some(line) = line.slice() {
            let elements = &mut line[parts.at..][..parts.len];
            parts.read(0, elements.iter_mut(), |to, element| *to = element);
            with_key!(keys, sort_elements(elements, scratch.scratch(parts.len)));
        } else {
            let (elements, other) = scratch.scratch(2 * parts.len).split_at_mut(parts.len);
            parts.read(0, elements.iter_mut(), |to, element| *to = element);
            with_key!(keys, sort_elements(elements, other));
            elements.iter().enumerate().for_each(|(at, &element)| line.set(parts.at + at, element));
        }
    }
}

/// Sorts a line into another.
fn sort_lone<W: Word>(from: &[W], to: &mut [W], scratch: &mut [W], keys: KeyOrder<W>) {
    let same = |word: W| word;
    if !keys.is_float() {
        let [encode, decode] = [|word: W| keys.whole(word); 2];
        radix::sort_line(from, to, scratch, SortWords { encode, key: same, decode });
    } else if from.iter().fold(false, |any, &bits| any | keys.is_merged(bits)) {
        radix::sort_line(from, to, scratch, SortWords { encode: same, key: |bits| keys.float(bits), decode: same });
    } else {
        let (encode, decode) = (|bits| keys.distinct(bits), |word| keys.float_of(word));
        radix::sort_line(from, to, scratch, SortWords { encode, key: same, decode });
    }
}

fn sort_elements<W: Word>(elements: &mut [W], scratch: &mut [W], key: impl Fn(W) -> W) {
    radix::sort(elements, scratch, key);
}

/// An element's key, and its place in the parts.
#[derive(Clone, Copy)]
struct KeyAndPlace<R> {
    key: R,
    place: i32,
}

/// Sorts lines together, with keys that fit into `R`.
fn sort_places<R: Word>(parts: &Parts<'_>, scratch: View<'_>, order: &SortLines) {
    // SAFETY: whoever made the parts has promised that the call may write its scratch memory.
    let (records, other) = unsafe { scratch.scratch::<KeyAndPlace<R>>(2 * parts.len) }.split_at_mut(parts.len);
    records.iter_mut().enumerate().for_each(|(at, record)| record.place = at as i32);
    // The last key decides least.
    for number in (0..order.keys).rev() {
        by_width!(parts.call.operand(number, 0).dtype, set_keys<R>(parts, number, order, records));
        radix::sort(records, other, |record| record.key);
    }
    for number in 0..parts.call.operands() {
        by_width!(parts.call.result(number).dtype, take<R>(parts, number, records));
    }
}

/// Gives records the keys of one operand.
fn set_keys<W: Word, R: Word>(parts: &Parts<'_>, number: usize, order: &SortLines, records: &mut [KeyAndPlace<R>]) {
    let keys = KeyOrder::<W>::new(parts.call.operand(number, 0).dtype, order);
    let key = |element| R::low(keys.key(element).wide());
    if number + 1 == order.keys {
        // The records are still in the order of the elements.
        return parts.read(number, records.iter_mut(), |record, element| record.key = key(element));
    }
    for record in records {
        let (owner, at) = parts.find(record.place.into());
        let line: Line<W> = parts.call.operand(number, owner).line();
        // SAFETY: whoever made the parts has promised that they may be read.
        record.key = key(unsafe { line.get(at) });
    }
}

/// Writes the elements of one operand in the order of the records.
fn take<W: Word, R: Word>(parts: &Parts<'_>, number: usize, records: &[KeyAndPlace<R>]) {
    let to: Line<W> = parts.call.result(number).line();
    for (at, record) in records.iter().enumerate() {
        let (owner, own) = parts.find(record.place.into());
        let from: Line<W> = parts.call.operand(number, owner).line();
        // SAFETY: whoever made the parts has promised that they may be read, and the results written; a sort permutes the places.
        unsafe { to.set(parts.at + at, from.get(own)) }
    }
}
