//! Stable sorts of lines: by the bytes of keys, from the lowest to the highest (Knuth, The Art of Computer Programming 5.2.5), which takes
//! the same time for all contents; short lines by insertion.

use super::order::{KeyOrder, Word, with_key};
use super::{LibraryCall, Line, View, by_width};
use spmdc_abi::SortLines;
use std::ops::Range;

/// Lines up to this length are sorted by insertion.
const SHORT: usize = 32;

/// # Safety
/// As for [`PreparedLibrary::run`](super::PreparedLibrary::run); the call has the arrays that `check` demands.
pub(super) unsafe fn sort(call: &LibraryCall<'_>, order: &SortLines) {
    // SAFETY: as promised by the caller.
    unsafe {
        if call.operands() == 1 {
            let (from, to, scratch) = (call.operand(0, 0), call.result(0), call.result(1));
            by_width!(from.dtype, copy_line(from, to, 0, 0..from.dims[0].len));
            by_width!(to.dtype, sort_line(to, scratch, order));
        } else {
            let len = call.result(0).dims[0].len;
            sort_places(call, len, order, &|number| call.operand(number, 0));
            for number in 0..call.operands() {
                let (from, to) = (call.operand(number, 0), call.result(number));
                by_width!(from.dtype, take_places(from, to, call.result(call.operands())));
            }
        }
    }
}

/// Copies elements of a line, from `first` on, to a range of another.
///
/// # Safety
/// As for `sort`.
pub(super) unsafe fn copy_line<W: Word>(from: View<'_>, to: View<'_>, first: usize, range: Range<usize>) {
    let (from, to): (Line<W>, Line<W>) = (from.line(), to.line());
    for (i, at) in range.enumerate() {
        // SAFETY: as promised by the caller.
        unsafe { to.set(at, from.get(first + i)) }
    }
}

/// Sorts a line in its place, with scratch memory of two lines.
///
/// # Safety
/// As for `sort`.
pub(super) unsafe fn sort_line<W: Word>(line: View<'_>, scratch: View<'_>, order: &SortLines) {
    let keys = KeyOrder::<W>::new(line.dtype, order.descending);
    let line: Line<W> = line.line();
    // SAFETY: as promised by the caller; the scratch memory is the call's own.
    unsafe {
        let (own, other) = scratch.scratch(2 * line.len).split_at_mut(line.len);
        if let Some(elements) = line.slice() {
            with_key!(keys, sort_elements(elements, own));
        } else {
            own.iter_mut().enumerate().for_each(|(at, element)| *element = line.get(at));
            with_key!(keys, sort_elements(own, other));
            own.iter().enumerate().for_each(|(at, &element)| line.set(at, element));
        }
    }
}

fn sort_elements<W: Word>(elements: &mut [W], scratch: &mut [W], key: impl Fn(W) -> W) {
    if elements.len() <= SHORT {
        for end in 1..elements.len() {
            let (element, mut at) = (elements[end], end);
            while at > 0 && key(elements[at - 1]) > key(element) {
                elements[at] = elements[at - 1];
                at -= 1;
            }
            elements[at] = element;
        }
        return;
    }
    let counts = counts(elements.iter().map(|&element| key(element)));
    let (mut from, mut to) = (elements, scratch);
    let mut moved = false;
    for byte in 0..W::BYTES {
        let Some(mut next) = starts(&counts[byte], from.len()) else { continue };
        for &element in from.iter() {
            let at = &mut next[key(element).byte(byte)];
            to[*at as usize] = element;
            *at += 1;
        }
        std::mem::swap(&mut from, &mut to);
        moved = !moved;
    }
    if moved {
        to.copy_from_slice(from);
    }
}

/// For each byte of the keys, the number of keys with each of its values.
fn counts<W: Word>(keys: impl Iterator<Item = W>) -> [[u32; 256]; 8] {
    let mut counts = [[0; 256]; 8];
    for key in keys {
        for (byte, counts) in counts.iter_mut().enumerate().take(W::BYTES) {
            counts[key.byte(byte)] += 1;
        }
    }
    counts
}

/// The place of the first key with each value of a byte; None if all keys have the same.
fn starts(counts: &[u32; 256], len: usize) -> Option<[u32; 256]> {
    let mut starts = [0; 256];
    let mut sum = 0;
    for (start, &count) in starts.iter_mut().zip(counts) {
        if count as usize == len {
            return None;
        }
        *start = sum;
        sum += count;
    }
    Some(starts)
}

/// Sorts the places `0..len` of lines by their keys, into the first half of the call's scratch memory for places.
///
/// # Safety
/// As for `sort`.
pub(super) unsafe fn sort_places<'a>(
    call: &LibraryCall<'_>,
    len: usize,
    order: &SortLines,
    operand: &dyn Fn(usize) -> View<'a>,
) {
    let count = call.operands();
    // SAFETY: as promised by the caller; the scratch memory is the call's own.
    unsafe {
        let places = call.result(count).scratch::<i32>(2 * len);
        places[..len].iter_mut().enumerate().for_each(|(at, place)| *place = at as i32);
        // The last key decides least.
        for number in (0..order.keys).rev() {
            let key = operand(number);
            by_width!(key.dtype, sort_places_by(key, places, call.result(count + 1), order));
        }
    }
}

/// Sorts places by one more key; equal ones stay in their order.
///
/// # Safety
/// As for `sort`.
unsafe fn sort_places_by<W: Word>(line: View<'_>, places: &mut [i32], scratch: View<'_>, order: &SortLines) {
    let keys = KeyOrder::<W>::new(line.dtype, order.descending);
    let line: Line<W> = line.line();
    let (own, other) = places.split_at_mut(line.len);
    // SAFETY: as promised by the caller; the scratch memory is the call's own, and has room for the widest key.
    unsafe {
        let (key, scratch) = scratch.scratch(2 * line.len).split_at_mut(line.len);
        for (word, &place) in key.iter_mut().zip(own.iter()) {
            *word = keys.key(line.get(place as usize));
        }
        sort_pairs((key, own), (scratch, other));
    }
}

/// Sorts keys and the places with them.
fn sort_pairs<W: Word>((keys, places): (&mut [W], &mut [i32]), (other_keys, other_places): (&mut [W], &mut [i32])) {
    if keys.len() <= SHORT {
        for end in 1..keys.len() {
            let (key, place, mut at) = (keys[end], places[end], end);
            while at > 0 && keys[at - 1] > key {
                (keys[at], places[at]) = (keys[at - 1], places[at - 1]);
                at -= 1;
            }
            (keys[at], places[at]) = (key, place);
        }
        return;
    }
    let counts = counts(keys.iter().copied());
    let (mut from, mut to) = ((keys, places), (other_keys, other_places));
    let mut moved = false;
    for byte in 0..W::BYTES {
        let Some(mut next) = starts(&counts[byte], from.0.len()) else { continue };
        for (&key, &place) in from.0.iter().zip(from.1.iter()) {
            let at = &mut next[key.byte(byte)];
            (to.0[*at as usize], to.1[*at as usize]) = (key, place);
            *at += 1;
        }
        std::mem::swap(&mut from, &mut to);
        moved = !moved;
    }
    if moved {
        to.0.copy_from_slice(from.0);
        to.1.copy_from_slice(from.1);
    }
}

/// Takes the elements at places of the line.
///
/// # Safety
/// As for `sort`.
unsafe fn take_places<W: Word>(from: View<'_>, to: View<'_>, places: View<'_>) {
    let (from, to): (Line<W>, Line<W>) = (from.line(), to.line());
    // SAFETY: as promised by the caller; a sort permutes the places of the line.
    unsafe {
        for (at, &place) in places.scratch::<i32>(to.len).iter().enumerate() {
            to.set(at, from.get(place as usize));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize, modulus: u32) -> Vec<u32> {
        (0..len as u32).map(|i| i.wrapping_mul(2_654_435_761).rotate_left(7) % modulus).collect()
    }

    #[test]
    fn elements_are_sorted_at_every_length() {
        for len in [0, 1, 2, 31, 32, 33, 100, 1000] {
            for modulus in [1, 7, 300, u32::MAX] {
                let mut elements = noise(len, modulus);
                let mut expected = elements.clone();
                expected.sort_unstable();
                sort_elements(&mut elements, &mut vec![0; len], |bits| bits);
                assert_eq!(elements, expected, "{len} below {modulus}");
            }
        }
    }

    #[test]
    fn equal_keys_keep_their_places_in_order() {
        for len in [5, 32, 33, 700] {
            for modulus in [1, 3, 1000] {
                let mut keys = noise(len, modulus);
                let mut places: Vec<i32> = (0..len as i32).collect();
                let mut expected: Vec<(u32, i32)> = keys.iter().copied().zip(places.iter().copied()).collect();
                expected.sort();
                sort_pairs((&mut keys, &mut places), (&mut vec![0; len], &mut vec![0; len]));
                assert_eq!(keys.into_iter().zip(places).collect::<Vec<_>>(), expected, "{len} below {modulus}");
            }
        }
    }
}
