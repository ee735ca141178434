//! Elements of the sorted order of several sorted lines, by exact ranks. The number of elements of each line before a rank follows from
//! binary searches (Varman et al., "Merging multiple lists on hierarchical-memory multiprocessors", 1991). So a device only reads the
//! elements that it takes, and a few more in the search.

use super::order::{KeyOrder, Word};
use super::radix;
use super::sort_line::LineParts;
use super::{LibraryCall, Line, View, by_width};
use spmdc_abi::{MergeLines, SortLines, TakenPlaces};
use std::ops::Range;

/// Maximum number of comparisons to take the first elements one by one, which need no search.
const FEW: usize = if cfg!(debug_assertions) { 1 << 6 } else { 1 << 13 };

/// # Safety
/// As for [`PreparedLibrary::run`](super::PreparedLibrary::run); the call has the arrays that `check` demands.
pub(super) unsafe fn merge(call: &LibraryCall<'_>, merge: &MergeLines, first: usize) {
    let lines = SortedLines { call, order: &merge.order };
    let (count, len) = (call.operands(), call.result(0).dims[0].len);
    let splits = call.result(count + 1);
    // SAFETY: as promised by the caller; the scratch memory is the call's own.
    unsafe {
        let splits = splits.scratch::<i64>(MergeLines::SPLITS * call.owners());
        match &merge.taken {
            TakenPlaces::Places(places) => {
                for (at, &rank) in places.iter().enumerate() {
                    let (owner, place) = lines.element(rank as usize);
                    for number in 0..count {
                        let from = call.operand(number, owner);
                        by_width!(from.dtype, copy_element(from, place, call.result(number), at));
                    }
                }
            }
            TakenPlaces::From(_) if first == 0 && merge.order.keys == 1 && len * call.owners() <= FEW => {
                let (next, keys) = splits.split_at_mut(call.owners());
                lines.take_first(len, next, &mut keys[..call.owners()]);
            }
            TakenPlaces::From(_) => {
                let (now, rest) = splits.split_at_mut(call.owners());
                let (ends, rest) = rest.split_at_mut(call.owners());
                let (next, offsets) = rest.split_at_mut(call.owners());
                lines.split(first, len, now, ends);
                let mut at = 0;
                while at < len {
                    let count = lines.cut(now, ends, next, offsets);
                    LineParts::new((call, call.result(call.operands())), now, offsets, count, at).sort(&merge.order);
                    now.copy_from_slice(next);
                    at += count;
                }
                assert_eq!(at, len, "every element is in one part");
            }
        }
    }
}

/// The sorted lines of all owners.
struct SortedLines<'a> {
    call: &'a LibraryCall<'a>,
    order: &'a SortLines,
}

impl SortedLines<'_> {
    fn len(&self, owner: usize) -> usize {
        self.call.operand(0, owner).dims[0].len
    }

    /// The end of an owner's elements in this range that precede the element at another place by the keys, or are equal to it if equal
    /// elements count.
    ///
    /// # Safety
    /// As for `merge`, as for all functions here.
    unsafe fn end_of_smaller(
        &self,
        (owner, at): (usize, usize),
        other: usize,
        mut range: Range<usize>,
        equal: bool,
    ) -> usize {
        for number in 0..self.order.keys {
            let (line, with) = (self.call.operand(number, owner), self.call.operand(number, other));
            let is_last = number + 1 == self.order.keys;
            // SAFETY: as promised by the caller. Among elements with the same first keys, the line is in the order of the next one.
            unsafe {
                let key = by_width!(line.dtype, key_at(line, at, self.order));
                let end = |from, equal| by_width!(with.dtype, end_of_keys(with, from, (key, equal), self.order));
                if is_last {
                    return end(range, equal);
                }
                let begin = end(range.clone(), false);
                range = begin..end(begin..range.end, true);
            }
        }
        unreachable!("a sort has a key")
    }

    /// The number of elements of all lines before this one. Equal elements of preceding owners come first.
    unsafe fn rank(&self, owner: usize, at: usize) -> usize {
        let others = (0..self.call.owners()).filter(|&other| other != owner);
        // SAFETY: as promised by the caller.
        let smaller = |other| unsafe { self.end_of_smaller((owner, at), other, 0..self.len(other), other < owner) };
        at + others.map(smaller).sum::<usize>()
    }

    /// Takes the first elements of all lines by comparing their heads. `next` and `keys` have a number for each owner: its head and the key.
    unsafe fn take_first(&self, len: usize, next: &mut [i64], keys: &mut [i64]) {
        // SAFETY: as promised by the caller.
        let key = |owner: usize, at: usize| unsafe {
            let line = self.call.operand(0, owner);
            by_width!(line.dtype, key_at(line, at, self.order)) as i64
        };
        for (owner, (next, head)) in next.iter_mut().zip(&mut *keys).enumerate() {
            *next = 0;
            *head = if self.len(owner) > 0 { key(owner, 0) } else { 0 };
        }
        for at in 0..len {
            let heads = (0..self.call.owners()).filter(|&owner| (next[owner] as usize) < self.len(owner));
            // The first of equal ones.
            let best = heads.min_by_key(|&owner| keys[owner] as u64).expect("there are as many elements as are taken");
            let place = next[best] as usize;
            for number in 0..self.call.operands() {
                let from = self.call.operand(number, best);
                // SAFETY: as promised by the caller.
                unsafe { by_width!(from.dtype, copy_element(from, place, self.call.result(number), at)) };
            }
            next[best] += 1;
            if place + 1 < self.len(best) {
                keys[best] = key(best, place + 1);
            }
        }
    }

    /// The number of an owner's elements whose rank is below this one.
    unsafe fn before(&self, rank: usize, owner: usize) -> usize {
        // SAFETY: as promised by the caller.
        partition(self.len(owner), |at| unsafe { self.rank(owner, at) < rank })
    }

    /// The element of this rank: its owner and its place in the owner's line.
    unsafe fn element(&self, rank: usize) -> (usize, usize) {
        for owner in 0..self.call.owners() {
            // SAFETY: as promised by the caller.
            unsafe {
                let place = self.before(rank, owner);
                if place < self.len(owner) && self.rank(owner, place) == rank {
                    return (owner, place);
                }
            }
        }
        unreachable!("every rank below the number of elements is that of one element")
    }

    /// The part of each line whose ranks are among the `len` from `first` on.
    unsafe fn split(&self, first: usize, len: usize, begins: &mut [i64], ends: &mut [i64]) {
        for owner in 0..self.call.owners() {
            // SAFETY: as promised by the caller.
            let (begin, end) = unsafe { (self.before(first, owner), self.before(first + len, owner)) };
            (begins[owner], ends[owner]) = (begin as i64, end as i64);
            assert!(begin <= end, "the lines are sorted");
        }
    }

    /// Cuts the first elements in order from parts of all lines, about as many as can be sorted within a cache. Returns their number, the
    /// start of the remaining elements in each line, and the offsets of the cut parts, one after another.
    unsafe fn cut(&self, begins: &[i64], ends: &[i64], cuts: &mut [i64], offsets: &mut [i64]) -> usize {
        let len = |owner: usize| ends[owner] - begins[owner];
        let owners = 0..self.call.owners();
        let (left, most) = (owners.clone().map(len).sum::<i64>(), self.cached());
        let longest = owners.clone().max_by_key(|&owner| len(owner)).expect("a merge has an owner");
        // The least that can be cut off are the elements up to one of the longest line.
        let last = (longest, (begins[longest] + len(longest) * most / left.max(1)) as usize);
        let mut offset = 0;
        for owner in owners {
            let begin = begins[owner] as usize;
            let count = match left > most {
                // SAFETY: as promised by the caller.
                true => unsafe {
                    self.end_of_smaller(last, owner, begin..ends[owner] as usize, true) as i64 - begins[owner]
                },
                false => len(owner),
            };
            (cuts[owner], offsets[owner]) = (begins[owner] + count, offset);
            offset += count;
        }
        debug_assert!(offset > 0 || left == 0, "a cut of {left} elements takes some");
        offset as usize
    }

    /// The number of elements that are sorted within a cache.
    fn cached(&self) -> i64 {
        let size = if self.call.operands() == 1 { self.call.result(0).dtype.size() } else { 2 * size_of::<u64>() };
        (radix::CACHED / size) as i64
    }
}

/// The word of an element's order.
///
/// # Safety
/// As for `merge`.
unsafe fn key_at<W: Word>(line: View<'_>, at: usize, order: &SortLines) -> u64 {
    let keys = KeyOrder::<W>::new(line.dtype, order);
    let line: Line<W> = line.line();
    // SAFETY: as promised by the caller.
    keys.key(unsafe { line.get(at) }).wide()
}

/// The end of those elements in this range of a sorted line whose words are less than this one, or equal to it if those count.
///
/// # Safety
/// As for `merge`.
unsafe fn end_of_keys<W: Word>(
    line: View<'_>,
    range: Range<usize>,
    (key, equal): (u64, bool),
    order: &SortLines,
) -> usize {
    let keys = KeyOrder::<W>::new(line.dtype, order);
    let line: Line<W> = line.line();
    let is_smaller = |at: usize| {
        // SAFETY: as promised by the caller.
        let word = keys.key(unsafe { line.get(range.start + at) }).wide();
        word < key || equal && word == key
    };
    range.start + partition(range.len(), is_smaller)
}

/// The first of `0..len` for which the condition does not hold; it holds for all before.
fn partition(len: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut begin, mut end) = (0, len);
    while begin < end {
        let middle = begin + (end - begin) / 2;
        if holds(middle) { begin = middle + 1 } else { end = middle }
    }
    begin
}

/// # Safety
/// As for `merge`.
unsafe fn copy_element<W: Word>(from: View<'_>, place: usize, to: View<'_>, at: usize) {
    let (from, to): (Line<W>, Line<W>) = (from.line(), to.line());
    // SAFETY: as promised by the caller.
    unsafe { to.set(at, from.get(place)) }
}
