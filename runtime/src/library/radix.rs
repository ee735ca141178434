//! Stable sorts by the digits of keys (Knuth, The Art of Computer Programming 5.2.5), which take about the same time for all contents; a
//! few records by insertion.
//!
//! Records that fit into a cache are sorted from the lowest digit to the highest. More are first divided by the highest bits of their
//! keys: a pass over all of memory costs several times one within a cache.

use super::order::Word;

/// Maximum number of records that are sorted by insertion.
const SHORT: usize = 32;
/// Minimum number of records for which digits have 11 bits instead of 8: fewer passes, for longer tables.
const LONG: usize = 1 << 12;
/// Maximum bytes of records that are sorted within a cache. It is small in debug builds, so that small programs test larger sorts.
pub(super) const CACHED: usize = if cfg!(debug_assertions) { 1 << 7 } else { 1 << 18 };

/// Maximum bytes of a line that are sorted as a whole from the elements of another.
const WHOLE: usize = if cfg!(debug_assertions) { 1 << 10 } else { 1 << 18 };

/// Sorts records. The scratch memory has a place for each.
pub(super) fn sort<T: Copy, W: Word>(records: &mut [T], scratch: &mut [T], key: impl Fn(T) -> W) {
    assert_eq!(records.len(), scratch.len(), "scratch memory for all records");
    if size_of_val(records) <= CACHED || W::BYTES <= 2 {
        if sort_by_digits(records, scratch, &key) {
            records.copy_from_slice(scratch);
        }
        return;
    }
    let mut begin = 0;
    for end in divide(records, scratch, &key) {
        let (divided, to) = (&mut scratch[begin..end as usize], &mut records[begin..end as usize]);
        if !sort_by_digits(divided, to, &key) {
            to.copy_from_slice(divided);
        }
        begin = end as usize;
    }
}

/// Three conversions for a line while it is sorted: from an element to its stored word, from this to the key, and back to the element.
pub(super) struct SortWords<E, K, D> {
    pub encode: E,
    pub key: K,
    pub decode: D,
}

/// Whether a line of words may be sorted by [`sort_line`].
pub(super) fn is_short<W: Word>(len: usize) -> bool {
    SHORT < len && len <= WHOLE / W::BYTES && W::BYTES <= 4
}

/// Sorts elements of at most 32 bits from one line into another, which has no copy of them yet. The scratch memory has a place for each.
pub(super) fn sort_line<W: Word>(
    from: &[W],
    to: &mut [W],
    scratch: &mut [W],
    stored: SortWords<impl Fn(W) -> W, impl Fn(W) -> W, impl Fn(W) -> W>,
) {
    debug_assert!(is_short::<W>(from.len()), "{} words of {} bytes are no short line", from.len(), W::BYTES);
    match (W::BYTES, from.len() < LONG) {
        (1, _) => sort_line_by::<256, 1, W>(from, to, scratch, stored),
        (2, _) => sort_line_by::<256, 2, W>(from, to, scratch, stored),
        (_, true) => sort_line_by::<256, 4, W>(from, to, scratch, stored),
        (_, false) => sort_line_by::<2048, 3, W>(from, to, scratch, stored),
    }
}

/// Sorts a line by its digits.
fn sort_line_by<const SIZE: usize, const DIGITS: usize, W: Word>(
    from: &[W],
    to: &mut [W],
    scratch: &mut [W],
    SortWords { encode, key, decode }: SortWords<impl Fn(W) -> W, impl Fn(W) -> W, impl Fn(W) -> W>,
) {
    let digit = |key: W, number: usize| (key >> (number as u32 * SIZE.trailing_zeros())).low_bits() % SIZE;
    let mut counts = [[0; SIZE]; DIGITS];
    // Both lines are in a cache from here on: words are moved to places all over them.
    for (&element, to) in from.iter().zip(&mut *to) {
        let word = encode(element);
        let key = key(word);
        for (number, counts) in counts.iter_mut().enumerate() {
            counts[digit(key, number)] += 1;
        }
        *to = word;
    }
    let (mut own, mut other, mut moved) = (&mut *to, &mut *scratch, false);
    for (number, counts) in counts.iter_mut().enumerate() {
        if counts.contains(&(from.len() as u32)) {
            continue;
        }
        scatter::<SIZE, false, W>(own, other, places(counts), |word| digit(key(word), number));
        (own, other) = (other, own);
        moved = !moved;
    }
    if moved {
        to.iter_mut().zip(&*scratch).for_each(|(to, &word)| *to = decode(word));
    } else {
        to.iter_mut().for_each(|word| *word = decode(*word));
    }
}

/// Sorts records; whether they are in the other slice then.
fn sort_by_digits<T: Copy, W: Word>(records: &mut [T], other: &mut [T], key: impl Fn(T) -> W) -> bool {
    if records.len() <= SHORT {
        insert(records, key);
        return false;
    }
    // The digits from the lowest on in which keys differ.
    let width = width(records, &key);
    if records.len() < LONG {
        match width.div_ceil(8) {
            0 => false,
            1 => sort_by::<256, 1, T, W>(records, other, key),
            2 => sort_by::<256, 2, T, W>(records, other, key),
            3 | 4 => sort_by::<256, 4, T, W>(records, other, key),
            _ => sort_by::<256, 8, T, W>(records, other, key),
        }
    } else {
        match width.div_ceil(11) {
            0 => false,
            1 => sort_by::<2048, 1, T, W>(records, other, key),
            2 => sort_by::<2048, 2, T, W>(records, other, key),
            3 => sort_by::<2048, 3, T, W>(records, other, key),
            _ => sort_by::<2048, 6, T, W>(records, other, key),
        }
    }
}

fn insert<T: Copy, W: Word>(records: &mut [T], key: impl Fn(T) -> W) {
    for end in 1..records.len() {
        let (record, mut at) = (records[end], end);
        while at > 0 && key(records[at - 1]) > key(record) {
            records[at] = records[at - 1];
            at -= 1;
        }
        records[at] = record;
    }
}

/// The number of bits, from the lowest on, that are not the same in all keys.
fn width<T: Copy, W: Word>(records: &[T], key: impl Fn(T) -> W) -> u32 {
    let (mut all, mut any) = (!W::ZERO, W::ZERO);
    for &record in records {
        let key = key(record);
        (all, any) = (all & key, any | key);
    }
    u64::BITS - (any & !all).wide().leading_zeros()
}

/// Sorts records by this number of digits of `SIZE` values, the lowest ones; returns whether they are in the other slice then.
fn sort_by<const SIZE: usize, const DIGITS: usize, T: Copy, W: Word>(
    records: &mut [T],
    other: &mut [T],
    key: impl Fn(T) -> W,
) -> bool {
    let digit = |key: W, number: usize| (key >> (number as u32 * SIZE.trailing_zeros())).low_bits() % SIZE;
    let mut counts = [[0; SIZE]; DIGITS];
    for &record in &*records {
        let key = key(record);
        for (number, counts) in counts.iter_mut().enumerate() {
            counts[digit(key, number)] += 1;
        }
    }
    let (mut from, mut to) = (records, other);
    let mut moved = false;
    for (number, counts) in counts.iter_mut().enumerate() {
        if counts.contains(&(from.len() as u32)) {
            continue;
        }
        scatter::<SIZE, false, T>(from, to, places(counts), |record| digit(key(record), number));
        (from, to) = (to, from);
        moved = !moved;
    }
    moved
}

/// Moves records in the order of the highest bits of their keys; gives the ends of those with the same bits.
fn divide<T: Copy, W: Word>(from: &[T], to: &mut [T], key: impl Fn(T) -> W) -> [u32; 2048] {
    let digit = |record| (key(record) >> (8 * W::BYTES as u32 - 11)).low_bits() % 2048;
    let mut counts = [0; 2048];
    from.iter().for_each(|&record| counts[digit(record)] += 1);
    scatter::<2048, true, T>(from, to, places(&mut counts), digit);
    counts
}

/// The place of the first record with each value of a digit, in the place of the number of those records.
fn places<const SIZE: usize>(counts: &mut [u32; SIZE]) -> &mut [u32; SIZE] {
    let mut sum = 0;
    for count in &mut *counts {
        (*count, sum) = (sum, sum + *count);
    }
    counts
}

/// Moves records to the places that a digit gives them, where equal ones stay in their order; then `next` has their ends. `FAR` says that
/// the places are not in a cache.
fn scatter<const SIZE: usize, const FAR: bool, T: Copy>(
    from: &[T],
    to: &mut [T],
    next: &mut [u32; SIZE],
    digit: impl Fn(T) -> usize,
) {
    let first = to.as_ptr();
    for &record in from {
        let place = &mut next[digit(record)];
        if FAR {
            prefetch(first.wrapping_add(*place as usize + 64 / size_of::<T>()));
        }
        to[*place as usize] = record;
        *place += 1;
    }
}

/// Makes a cache line ready that will soon be read or written: stores wait for their lines one after another.
#[inline(always)]
pub(super) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch changes no value and may have any address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(len: usize, modulus: u32) -> Vec<(u32, usize)> {
        (0..len).map(|i| ((i as u32).wrapping_mul(2_654_435_761).rotate_left(7) % modulus, i)).collect()
    }

    #[test]
    fn records_are_sorted_and_equal_ones_stay_in_order_at_every_length() {
        let cached = CACHED / size_of::<(u32, usize)>();
        for len in [0, 1, 2, SHORT, SHORT + 1, 100, 1000, LONG - 1, LONG, cached, cached + 1, 3 * cached] {
            for modulus in [1, 7, 300, 1 << 20, u32::MAX] {
                let records = noise(len, modulus);
                let mut expected = records.clone();
                expected.sort();
                let mut scratch = vec![(0, 0); len];
                let mut sorted = records.clone();
                sort(&mut sorted, &mut scratch, |(key, _)| key);
                assert_eq!(sorted, expected, "{len} below {modulus}");
                sorted.copy_from_slice(&records);
                sort(&mut sorted, &mut scratch, |(key, _)| u64::from(key) << 30);
                assert_eq!(sorted, expected, "{len} with wide keys below {modulus}");
                if modulus <= 1 << 16 {
                    sorted.copy_from_slice(&records);
                    sort(&mut sorted, &mut scratch, |(key, _)| key as u16);
                    assert_eq!(sorted, expected, "{len} with narrow keys below {modulus}");
                }
            }
        }
    }
}
