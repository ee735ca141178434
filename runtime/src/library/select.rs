//! The first elements of lines in an order, by one pass over each line.
//!
//! A buffer holds candidates, about twice as many as are wanted. When it is full, the better half stays, whose last one is the threshold for
//! the elements that follow. So a line costs a comparison for most of its elements and, in the worst case, a constant number of moves for
//! each; memory does not grow with the line.

use std::ops::Range;

use super::order::{KeyOrder, Word, with_key};
use super::{LibraryCall, Line, PreparedFunction, StepArrays, View, by_width, expect};
use spmdc_abi::mesh::share;
use spmdc_abi::{DType, LibraryArray, LibraryDim, SelectLines, Width, trap};

/// Elements that are compared with the threshold at once.
const AT_ONCE: usize = 64;

/// Elements that are added at once, if one of them may be among the first.
const FEW: usize = 8;

/// An element's key and its place in the line, in their order.
trait KeyedPlace: Copy + Ord {
    fn new(key: u64, place: usize) -> Self;
    fn key(self) -> u64;
    fn place(self) -> usize;
}

/// Keys of at most 32 bits.
impl KeyedPlace for u64 {
    fn new(key: u64, place: usize) -> u64 {
        key << 32 | place as u64
    }

    fn key(self) -> u64 {
        self >> 32
    }

    fn place(self) -> usize {
        (self & u64::from(u32::MAX)) as usize
    }
}

/// Keys of 64 bits.
impl KeyedPlace for u128 {
    fn new(key: u64, place: usize) -> u128 {
        u128::from(key) << 64 | place as u128
    }

    fn key(self) -> u64 {
        (self >> 64) as u64
    }

    fn place(self) -> usize {
        self as u64 as usize
    }
}

/// Whether the arrays of a device's calls are those that a selection expects; otherwise the difference.
pub(super) fn check(select: &SelectLines, arrays: &StepArrays<'_>) -> Result<(), String> {
    let step = arrays.step;
    arrays.are_own("a selection from lines of other devices")?;
    let Some((len, true)) = step.operands.first().map(|line| (arrays.own(line), line.dims.len() == 1)) else {
        return Err("a selection from other arrays than lines".to_string());
    };
    let alike = step.operands.iter().all(|array| arrays.own(array) == len);
    expect(alike && i32::try_from(len[0]).is_ok(), "a selection from lines of several lengths, or too long ones")?;
    expect(select.order.keys == 1, "a selection by several keys")?;
    let places = select.first.as_ref().map(|_| DType::I32);
    let dtypes: Vec<DType> = step.operands.iter().map(|operand| operand.dtype).chain(places).collect();
    expect(step.results.len() == dtypes.len() + 1, "a selection with other results than it makes")?;
    let (results, scratch) = step.results.split_at(dtypes.len());
    let [pieces, count] = arrays.own(&results[0])[..] else {
        return Err("a selection with other results than pieces".to_string());
    };
    let like = |(result, dtype): (&LibraryArray, &DType)| {
        result.dtype == *dtype && result.dims.len() == 2 && arrays.own(result) == [pieces, count]
    };
    expect(results.iter().zip(&dtypes).all(like), "a selection with other results than it makes")?;
    expect(pieces > 0 && count > 0 && len[0] / pieces >= count, "a selection of more elements than there are")?;
    let [scratch] = scratch else { return Err("a selection without scratch memory".to_string()) };
    let least = SelectLines::scratch(dtypes[0], count as u64) as usize;
    let fits = matches!(arrays.own(scratch)[..], [of, len] if of == pieces && len >= least);
    // Candidates with keys of 64 bits begin at multiples of 16 bytes.
    let is_even = |stride: i64| stride % 2 == 0;
    let aligned = scratch.batch.iter().all(|&stride| is_even(stride))
        && matches!(scratch.dims[..], [LibraryDim { stride, .. }, LibraryDim { stride: 1, .. }] if is_even(stride));
    expect(scratch.dtype == DType::I64 && fits && aligned, "a selection with other scratch memory than it needs")
}

#[derive(Debug)]
pub(super) struct PreparedSelect(pub SelectLines);

impl PreparedFunction for PreparedSelect {
    unsafe fn call(&self, call: &LibraryCall<'_>, pieces: Range<usize>) -> i64 {
        for piece in pieces {
            // SAFETY: as promised by the caller.
            unsafe {
                match call.operand(0, 0).dtype.width() {
                    Width::W8 => select::<u8, u64>(call, &self.0, piece),
                    Width::W16 => select::<u16, u64>(call, &self.0, piece),
                    Width::W32 => select::<u32, u64>(call, &self.0, piece),
                    Width::W64 => select::<u64, u128>(call, &self.0, piece),
                }
            }
        }
        trap::NONE
    }
}

/// Selects the first elements of a piece of the line.
///
/// # Safety
/// As for [`PreparedFunction::call`].
unsafe fn select<W: Word, C: KeyedPlace>(call: &LibraryCall<'_>, select: &SelectLines, piece: usize) {
    let (from, to) = (call.operand(0, 0), call.result(0));
    let (pieces, count) = (to.dims[0].len, to.dims[1].len);
    let range = share(from.dims[0].len as i64, piece, pieces);
    let range = range.start as usize..range.end as usize;
    debug_assert!(count <= range.len(), "{count} of {} elements", range.len());
    let keys = KeyOrder::<W>::new(from.dtype, &select.order);
    let own = call.operands() + usize::from(select.first.is_some());
    debug_assert!(piece < pieces, "piece {piece} of {pieces}");
    // SAFETY: as promised by the caller; `check` has found memory for the candidates of this piece, at a multiple of 16 bytes.
    let chosen = unsafe {
        let room = SelectLines::candidates(count as u64) as usize;
        let buffer = std::slice::from_raw_parts_mut(call.result(own).at::<i64>(piece, 0).cast::<C>(), room);
        let candidates = Candidates { buffer, held: 0, count, threshold: !W::ZERO };
        let line: Line<'_, W> = from.line();
        with_key!(keys, select_wide((line, range, candidates)))
    };
    for number in 0..call.operands() {
        let (from, to) = (call.operand(number, 0), call.result(number));
        // SAFETY: as promised by the caller.
        unsafe { by_width!(to.dtype, take_chosen<C>(from, (to, piece), chosen)) };
    }
    if select.first.is_some() {
        let places = call.result(call.operands());
        for (at, candidate) in chosen.iter().enumerate() {
            let place = call.step.first + candidate.place() as i64;
            // SAFETY: as promised by the caller.
            unsafe { places.at::<i32>(piece, at).write(place as i32) };
        }
    }
}

/// Writes the chosen elements of an operand.
///
/// # Safety
/// As for [`PreparedFunction::call`].
unsafe fn take_chosen<W: Word, C: KeyedPlace>(from: View<'_>, (to, piece): (View<'_>, usize), chosen: &[C]) {
    let from: Line<'_, W> = from.line();
    for (at, candidate) in chosen.iter().enumerate() {
        // SAFETY: as promised by the caller.
        unsafe { to.at::<W>(piece, at).write(from.get(candidate.place())) };
    }
}

/// The best elements so far.
struct Candidates<'a, W, C> {
    buffer: &'a mut [C],
    /// The number of elements in the buffer.
    held: usize,
    /// The number of elements that are wanted.
    count: usize,
    /// Elements from this key on are not among the first, once the buffer has been full.
    threshold: W,
}

impl<'a, W: Word, C: KeyedPlace> Candidates<'a, W, C> {
    /// Adds those of at most [`FEW`] elements from a place on that may be among the first.
    #[inline(always)]
    fn add(&mut self, elements: &[W], first: usize, key: impl Fn(W) -> W) {
        if self.held + elements.len() > self.buffer.len() {
            self.reduce();
        }
        for (place, &bits) in (first..).zip(elements) {
            let key = key(bits);
            // Whether an element is kept is as good as random: it is written in any case. Those with the threshold's key come after it.
            let is_kept = (key < self.threshold) | (self.held < self.count);
            self.buffer[self.held] = C::new(key.wide(), place);
            self.held += usize::from(is_kept);
        }
    }

    /// Keeps the elements that are wanted.
    fn reduce(&mut self) {
        debug_assert!(self.count > 0 && self.count + FEW <= self.buffer.len(), "a reduced buffer has room");
        if self.held > self.count {
            let (_, last, _) = self.buffer[..self.held].select_nth_unstable(self.count - 1);
            self.threshold = W::low(last.key());
            self.held = self.count;
        }
    }

    /// The chosen elements, in order.
    fn finish(mut self) -> &'a [C] {
        self.reduce();
        let chosen = &mut self.buffer[..self.held];
        chosen.sort_unstable();
        chosen
    }
}

/// The first elements of a part of a line, with the widest registers that there are.
///
/// # Safety
/// As for [`PreparedFunction::call`]; the part is within the line.
unsafe fn select_wide<'a, W: Word, C: KeyedPlace>(
    part: (Line<'_, W>, Range<usize>, Candidates<'a, W, C>),
    key: impl Fn(W) -> W,
) -> &'a [C] {
    /// # Safety
    /// As for `select_wide`, and the processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn with_avx2<'a, W: Word, C: KeyedPlace>(
        part: (Line<'_, W>, Range<usize>, Candidates<'a, W, C>),
        key: impl Fn(W) -> W,
    ) -> &'a [C] {
        // SAFETY: as promised by the caller.
        unsafe { scan(part, key) }
    }
    // SAFETY: as promised by the caller; the feature is available.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return with_avx2(part, key);
        }
        scan(part, key)
    }
}

/// # Safety
/// As for `select_wide`.
#[inline(always)]
unsafe fn scan<'a, W: Word, C: KeyedPlace>(
    (line, range, mut candidates): (Line<'_, W>, Range<usize>, Candidates<'a, W, C>),
    key: impl Fn(W) -> W,
) -> &'a [C] {
    let mut at = range.start;
    let mut gathered = [W::ZERO; AT_ONCE];
    // SAFETY: as promised by the caller.
    let whole = unsafe { line.elements() };
    while at < range.end {
        let end = range.end.min(at + AT_ONCE);
        let elements = match whole {
            Some(whole) => &whole[at..end],
            None => {
                for (to, at) in gathered.iter_mut().zip(at..end) {
                    // SAFETY: as promised by the caller.
                    *to = unsafe { line.get(at) };
                }
                &gathered[..end - at]
            }
        };
        // Until the buffer has been full once, the threshold rejects no element, not even of the last key.
        let below = candidates.threshold;
        let is_first = candidates.held < candidates.count;
        if is_first || elements.iter().fold(false, |any, &bits| any | (key(bits) < below)) {
            for (number, few) in elements.chunks(FEW).enumerate() {
                let below = candidates.threshold;
                let is_first = candidates.held < candidates.count;
                if is_first || few.iter().fold(false, |any, &bits| any | (key(bits) < below)) {
                    candidates.add(few, at + FEW * number, &key);
                }
            }
        }
        at = end;
    }
    candidates.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_keep_the_first_places_of_equal_keys() {
        let chosen = |keys: &[u32], count: usize| -> Vec<(u64, usize)> {
            let mut buffer = vec![0u64; SelectLines::candidates(count as u64) as usize];
            let mut candidates = Candidates { buffer: &mut buffer, held: 0, count, threshold: u32::MAX };
            for (number, few) in keys.chunks(FEW).enumerate() {
                candidates.add(few, FEW * number, |key| key);
            }
            candidates.finish().iter().map(|candidate| (candidate.key(), candidate.place())).collect()
        };
        for (len, modulus) in [(3, 1), (500, 1), (500, 7), (500, u32::MAX), (2000, 90)] {
            for descending in [false, true] {
                let mut keys: Vec<u32> = (0..len).map(|at: u32| at.wrapping_mul(2_654_435_761) % modulus).collect();
                if descending {
                    keys.sort_by(|a, b| b.cmp(a));
                }
                let mut expected: Vec<(u64, usize)> =
                    keys.iter().enumerate().map(|(place, &key)| (u64::from(key), place)).collect();
                expected.sort();
                for count in [1, 2, 3, len as usize / 2, len as usize].into_iter().filter(|&count| count > 0) {
                    assert_eq!(chosen(&keys, count), expected[..count], "{count} of {len} below {modulus}");
                }
            }
        }
        assert_eq!(chosen(&[u32::MAX; 200], 3), [0, 1, 2].map(|place| (u64::from(u32::MAX), place)));
    }
}
