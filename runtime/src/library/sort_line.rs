//! Stable sorts of one line: as it is if it is alone, otherwise by records of a key and a place.

use super::order::{KeyOrder, Word, with_key};
use super::radix::{self, SortWords};
use super::{LibraryCall, Line, View, by_width};
use spmdc_abi::{SortLines, Width};
/// LineParts of the lines of all owners, one after another.
pub(super) struct LineParts<'a> {
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

impl<'a> LineParts<'a> {
    /// # Safety
    /// As for [`PreparedLibrary::run`](super::PreparedLibrary::run); the parts are within the operands of the call, which has the results
    /// that `check` requires. No other thread uses the scratch memory, which is sufficient for their sort.
    pub unsafe fn new(
        (call, scratch): (&'a LibraryCall<'a>, View<'a>),
        begins: &'a [i64],
        offsets: &'a [i64],
        len: usize,
        at: usize,
    ) -> LineParts<'a> {
        debug_assert_eq!((begins.len(), offsets.len()), (call.owners(), call.owners()), "a part for each owner");
        debug_assert!(offsets.is_sorted() && offsets.first() == Some(&0), "parts follow each other from 0 on");
        LineParts { call, scratch, begins, offsets, len, at }
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

fn sort_line<W: Word>(parts: &LineParts<'_>, order: &SortLines) {
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
fn sort_places<R: Word>(parts: &LineParts<'_>, scratch: View<'_>, order: &SortLines) {
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
fn set_keys<W: Word, R: Word>(parts: &LineParts<'_>, number: usize, order: &SortLines, records: &mut [KeyAndPlace<R>]) {
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
fn take<W: Word, R: Word>(parts: &LineParts<'_>, number: usize, records: &[KeyAndPlace<R>]) {
    let to: Line<W> = parts.call.result(number).line();
    for (at, record) in records.iter().enumerate() {
        let (owner, own) = parts.find(record.place.into());
        let from: Line<W> = parts.call.operand(number, owner).line();
        // SAFETY: whoever made the parts has promised that they may be read, and the results written; a sort permutes the places.
        unsafe { to.set(parts.at + at, from.get(own)) }
    }
}
