//! Elements of the sorted order of several sorted lines, by exact ranks: the number of elements of each line before a rank follows from
//! binary searches (Varman et al., "Merging multiple lists on hierarchical-memory multiprocessors", 1991), so a device reads only the
//! elements that it takes, and a few more in the search.

use super::order::{KeyOrder, Word};
use super::sort::{copy_line, sort_line, sort_places};
use super::{LibraryCall, Line, View, by_width};
use spmdc_abi::{MergeLines, SortLines, TakenPlaces};

/// # Safety
/// As for [`PreparedLibrary::run`](super::PreparedLibrary::run); the call has the arrays that `check` demands.
pub(super) unsafe fn merge(call: &LibraryCall<'_>, merge: &MergeLines, first: usize) {
    let lines = SortedLines { call, order: &merge.order };
    let (count, len) = (call.operands(), call.result(0).dims[0].len);
    let splits = call.result(count + if count == 1 { 1 } else { 2 });
    // SAFETY: as promised by the caller; the scratch memory is the call's own.
    unsafe {
        let splits = splits.scratch::<i64>(2 * call.owners());
        match &merge.taken {
            TakenPlaces::Places(places) => {
                for (at, &rank) in places.iter().enumerate() {
                    let (owner, place) = lines.element(rank as usize);
                    for number in 0..count {
                        let from = call.operand(number, owner);
                        by_width!(from.dtype, copy_line(from, call.result(number), place, at..at + 1));
                    }
                }
            }
            TakenPlaces::From(_) => {
                let (begins, offsets) = splits.split_at_mut(call.owners());
                lines.split(first, len, begins, offsets);
                lines.gather(begins, offsets, len);
                if count == 1 {
                    let line = call.result(0);
                    by_width!(line.dtype, sort_line(line, call.result(1), &merge.order));
                } else {
                    sort_places(call, len, &merge.order, &|number| call.result(number));
                    lines.take(begins, offsets, len);
                }
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

    /// Whether the element of one owner comes before that of another by the keys.
    ///
    /// # Safety
    /// As for `merge`, as for all functions here.
    unsafe fn less(&self, (owner, at): (usize, usize), (other, place): (usize, usize)) -> bool {
        for number in 0..self.order.keys {
            let (line, with) = (self.call.operand(number, owner), self.call.operand(number, other));
            // SAFETY: as promised by the caller.
            let (key, than) = unsafe {
                (
                    by_width!(line.dtype, key_at(line, at, self.order)),
                    by_width!(with.dtype, key_at(with, place, self.order)),
                )
            };
            if key != than {
                return key < than;
            }
        }
        false
    }

    /// The number of elements of all lines before this one.
    unsafe fn rank(&self, owner: usize, at: usize) -> usize {
        let others = (0..self.call.owners()).filter(|&other| other != owner);
        at + others
            .map(|other| {
                partition(self.len(other), |place| {
                    // SAFETY: as promised by the caller. Equal elements of preceding owners come first.
                    unsafe {
                        if other < owner {
                            !self.less((owner, at), (other, place))
                        } else {
                            self.less((other, place), (owner, at))
                        }
                    }
                })
            })
            .sum::<usize>()
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

    /// The part of each line whose ranks are among the `len` from `first` on: the place at which it begins, and its offset in the parts
    /// of all owners, one after another.
    unsafe fn split(&self, first: usize, len: usize, begins: &mut [i64], offsets: &mut [i64]) {
        let mut offset = 0;
        for owner in 0..self.call.owners() {
            // SAFETY: as promised by the caller.
            let (begin, end) = unsafe { (self.before(first, owner), self.before(first + len, owner)) };
            (begins[owner], offsets[owner]) = (begin as i64, offset as i64);
            assert!(begin <= end, "the lines are sorted");
            offset += end - begin;
        }
        assert_eq!(offset, len, "the lines are sorted");
    }

    /// Copies the parts of all owners into the results.
    unsafe fn gather(&self, begins: &[i64], offsets: &[i64], len: usize) {
        for number in 0..self.call.operands() {
            for (owner, (&begin, &offset)) in begins.iter().zip(offsets).enumerate() {
                let end = offsets.get(owner + 1).map_or(len, |&end| end as usize);
                let (from, to) = (self.call.operand(number, owner), self.call.result(number));
                let (begin, part) = (begin as usize, offset as usize..end);
                // SAFETY: as promised by the caller.
                unsafe { by_width!(from.dtype, copy_line(from, to, begin, part)) }
            }
        }
    }

    /// Writes the elements of the parts in the order of the sorted places.
    unsafe fn take(&self, begins: &[i64], offsets: &[i64], len: usize) {
        let count = self.call.operands();
        // SAFETY: as promised by the caller. The scratch memory has the places of the parts, one after another.
        unsafe {
            let places = self.call.result(count).scratch::<i32>(len);
            for number in 0..count {
                let dtype = self.call.result(number).dtype;
                by_width!(dtype, take_places(self.call, number, places, begins, offsets));
            }
        }
    }
}

/// Writes the elements of one operand at places of the parts of all owners, one after another.
///
/// # Safety
/// As for `merge`.
unsafe fn take_places<W: Word>(call: &LibraryCall<'_>, number: usize, places: &[i32], begins: &[i64], offsets: &[i64]) {
    let to: Line<W> = call.result(number).line();
    for (at, &place) in places.iter().enumerate() {
        // Of empty parts, which have the offset of the next one, the last is the one that has the element.
        let owner = offsets.partition_point(|&offset| offset <= i64::from(place)) - 1;
        let own = begins[owner] + i64::from(place) - offsets[owner];
        let from: Line<W> = call.operand(number, owner).line();
        // SAFETY: as promised by the caller.
        unsafe { to.set(at, from.get(own as usize)) }
    }
}

/// The word of an element's order.
///
/// # Safety
/// As for `merge`.
unsafe fn key_at<W: Word>(line: View<'_>, at: usize, order: &SortLines) -> u64 {
    let keys = KeyOrder::<W>::new(line.dtype, order.descending);
    let line: Line<W> = line.line();
    // SAFETY: as promised by the caller.
    keys.key(unsafe { line.get(at) }).wide()
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
