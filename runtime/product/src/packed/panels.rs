//! Copies of operands as panels of lanes, in the order in which kernels read them.
//!
//! ```text
//! panel of 2 columns, lanes of 4 terms     c0: t0 t1 t2 t3 | c1: t0 t1 t2 t3 | c0: t4 t5 t6 t7 | c1: ..
//! ```
//!
//! Terms and columns after the end of the operand are zeros.
//!
//! Bytes are multiplied as unsigned ones of `a` by signed ones of `b`. A signed `a` is stored as `a' = a + p`, an unsigned `b` as
//! `b' = b - q`, where `p` and `q` are 128; otherwise they are 0. Sums of the stored terms correct the product, exactly modulo 2^32:
//!
//! ```text
//! sum(a b) = sum(a' b') - p sum(b') + q sum(a') - k p q
//! ```

use super::kernel::{FloatLane, PanelKernel};
use super::{LaneFormat, PackedElement, PackedOperand};

/// Lanes of one column whose terms are adjacent that are copied before the next column: those of one cache line, or a few.
const RUN: usize = 16;

/// The part of an operand that is copied.
#[derive(Clone, Copy)]
struct PanelSource<S> {
    first: *const S,
    across: isize,
    along: isize,
    /// The rows of `a`, or columns of `b`.
    len: usize,
    terms: usize,
}

/// The bit that is flipped in each byte of a lane.
pub(super) const FLIP: i32 = 0x8080_8080_u32 as i32;

/// Copies a part of an operand, `W` rows or columns to a panel: those from the first on, and the terms from the first on.
///
/// # Safety
/// The elements can be read, and `into` has room for `len` rounded up to `W`, times the groups of terms, and a vector, in lanes.
#[inline(always)]
pub(super) unsafe fn pack<K: PanelKernel, const W: usize>(
    operand: &PackedOperand,
    is_b: bool,
    (first, len): (usize, usize),
    (term, terms): (usize, usize),
    into: *mut K::Lane,
) {
    let PackedOperand { across, along, element, .. } = *operand;
    let offset = (first as isize).wrapping_mul(across).wrapping_add((term as isize).wrapping_mul(along));
    macro_rules! source {
        ($type:ty) => {
            PanelSource { first: operand.first.cast::<$type>().wrapping_offset(offset), across, along, len, terms }
        };
    }
    macro_rules! copy {
        ($type:ty, $lane:expr) => {
            // SAFETY: as promised by the caller. The lanes of a format have the type with its name.
            unsafe { copy_panels::<K, $type, _, _, W>(source!($type), into.cast(), $lane) }
        };
    }
    macro_rules! words {
        ($type:ty) => {
            copy!($type, |[a, b]: [$type; 2]| i32::from(a as i16 as u16) | i32::from(b as i16) << 16)
        };
    }
    macro_rules! ints {
        ($type:ty) => {
            copy!($type, |[a]: [$type; 1]| a as i32)
        };
    }
    match (K::FORMAT, element) {
        (LaneFormat::Bytes, _) => {
            copy!(u8, |terms: [u8; 4]| i32::from_ne_bytes(terms));
            if flips(element, is_b) {
                let into = into.cast::<i32>();
                // SAFETY: as promised by the caller; these lanes have been written.
                (0..len.next_multiple_of(W) * terms.div_ceil(4)).for_each(|at| unsafe { *into.add(at) ^= FLIP });
            }
        }
        (LaneFormat::Words, PackedElement::I8) => words!(i8),
        (LaneFormat::Words, PackedElement::U8) => words!(u8),
        (LaneFormat::Words, _) => words!(i16),
        (LaneFormat::Ints, PackedElement::I8) => ints!(i8),
        (LaneFormat::Ints, PackedElement::U8) => ints!(u8),
        (LaneFormat::Ints, PackedElement::I16) => ints!(i16),
        (LaneFormat::Ints, PackedElement::U16) => ints!(u16),
        (LaneFormat::Ints, _) => ints!(i32),
        (LaneFormat::Longs, _) => copy!(i64, |[a]: [i64; 1]| a),
        (LaneFormat::Singles, _) => copy!(f32, |[a]: [f32; 1]| a),
        (LaneFormat::Doubles, _) => copy!(f64, |[a]: [f64; 1]| a),
        (LaneFormat::Floats, _) => copy!(u16, |[a, b]: [u16; 2]| FloatLane(u32::from(a) | u32::from(b) << 16)),
    }
}

/// Whether the bytes of an operand have flipped signs: `a` is stored unsigned, and `b` signed.
pub(super) fn flips(element: PackedElement, is_b: bool) -> bool {
    is_b == (element == PackedElement::U8)
}

/// # Safety
/// As for [`pack`].
#[inline(always)]
unsafe fn copy_panels<K: PanelKernel, S: Copy + Default, L: Copy, const G: usize, const W: usize>(
    source: PanelSource<S>,
    into: *mut L,
    lane: impl Fn([S; G]) -> L + Copy,
) {
    let PanelSource { first, across, along, len, terms } = source;
    let (groups, whole) = (terms.div_ceil(G), terms / G);
    // Lanes that are no wider than their elements are these elements, side by side.
    let as_stored = G * size_of::<S>() == size_of::<L>();
    // Rows are read by some groups of terms of all panels: a panel has a part of a cache line of each row.
    let panels = || (0..len).step_by(W).enumerate();
    let by_rows = if across == 1 { whole } else { 0 };
    for (begin, panel, at) in
        (0..by_rows).step_by(RUN).flat_map(|begin| panels().map(move |(panel, at)| (begin, panel, at)))
    {
        let (from, to) = (first.wrapping_add(at), into.wrapping_add(panel * groups * W));
        let width = W.min(len - at);
        for group in begin..whole.min(begin + RUN) {
            let row = |term: usize| from.wrapping_offset((group * G + term) as isize * along);
            // SAFETY: as promised by the caller: all of this is within the operand, and the panel.
            unsafe {
                let to = to.add(group * W);
                if width == W && as_stored && G == 1 {
                    to.copy_from_nonoverlapping(row(0).cast(), W);
                } else if width == W && as_stored && K::TRANSPOSES && (W * size_of::<S>()).is_multiple_of(16) {
                    let stride = along.wrapping_mul(size_of::<S>() as isize);
                    K::interleave(row(0).cast(), stride, W * size_of::<S>(), to.cast());
                } else {
                    let rows: [*const S; G] = std::array::from_fn(row);
                    if width == W {
                        (0..W).for_each(|column| to.add(column).write(lane(rows.map(|row| *row.add(column)))));
                    } else {
                        (0..width).for_each(|column| to.add(column).write(lane(rows.map(|row| *row.add(column)))));
                        (width..W).for_each(|column| to.add(column).write(lane([S::default(); G])));
                    }
                }
            }
        }
    }
    for (panel, at) in panels() {
        let from = first.wrapping_offset(at as isize * across);
        let to = into.wrapping_add(panel * groups * W);
        let width = W.min(len - at);
        let place = |column: usize, term: usize| {
            from.wrapping_offset(column as isize * across).wrapping_offset(term as isize * along)
        };
        // SAFETY: as promised by the caller: all of this is within the operand, and the panel.
        unsafe {
            let mut done = by_rows;
            if across == 1 {
                // Copied above.
            } else if along == 1 && K::TRANSPOSES && as_stored {
                let stride = across.wrapping_mul(size_of::<S>() as isize);
                let blocks = whole / K::LANES;
                done = blocks * K::LANES;
                // The last columns first: a vector may continue into the first columns of the next group.
                for column in (0..W).step_by(K::LANES).rev() {
                    for block in 0..blocks {
                        let from = place(column, block * K::LANES * G).cast();
                        let to = to.add(block * K::LANES * W + column).cast();
                        // In both cases the compiler knows how many vectors have no elements.
                        if width == W {
                            K::transpose(from, stride, (W - column).min(K::LANES), to, W);
                        } else {
                            K::transpose(from, stride, width.saturating_sub(column), to, W);
                        }
                    }
                }
            } else if along == 1 {
                while done < whole {
                    let run = RUN.min(whole - done);
                    for column in 0..W {
                        let row = place(column, done * G).cast::<[S; G]>();
                        for group in 0..run {
                            let terms =
                                if column < width { row.add(group).read_unaligned() } else { [S::default(); G] };
                            to.add((done + group) * W + column).write(lane(terms));
                        }
                    }
                    done += run;
                }
            }
            for group in done..groups {
                for column in 0..W {
                    let term = |term: usize| {
                        let term = group * G + term;
                        if column < width && term < terms { *place(column, term) } else { S::default() }
                    };
                    to.add(group * W + column).write(lane(std::array::from_fn(term)));
                }
            }
        }
    }
}

/// The sums of the stored terms of each row of panels of `a`, times `factor`, plus `constant`: the correction of each row.
///
/// # Safety
/// The panels have `len` rows, rounded up to `W`, of these groups of bytes; `into` has room for as many numbers.
#[inline(always)]
pub(super) unsafe fn sums_of_rows<const W: usize>(
    panels: *const i32,
    (len, groups): (usize, usize),
    (factor, constant): (i32, i32),
    into: *mut i32,
) {
    for panel in 0..len.div_ceil(W) {
        let mut sums = [0_u32; W];
        for group in 0..groups {
            // SAFETY: as promised by the caller.
            let lanes = unsafe { panels.add((panel * groups + group) * W).cast::<[u32; W]>().read_unaligned() };
            for (sum, lane) in sums.iter_mut().zip(lanes) {
                let pairs = (lane & 0x00ff_00ff) + (lane >> 8 & 0x00ff_00ff);
                *sum = sum.wrapping_add(pairs & 0xffff).wrapping_add(pairs >> 16);
            }
        }
        let corrections = sums.map(|sum| (sum as i32).wrapping_mul(factor).wrapping_add(constant));
        // SAFETY: as promised by the caller.
        unsafe { into.add(panel * W).cast::<[i32; W]>().write_unaligned(corrections) };
    }
}
