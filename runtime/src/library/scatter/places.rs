//! The places of updates, from their indices, a tile at a time.

use super::super::ViewDim;
use super::super::radix::prefetch;
use crate::run::team::first_trap;
use spmdc_abi::{DType, Kind, ScatterIndex, Width, trap};
use std::mem::MaybeUninit;

/// Updates whose places are found at a time.
pub(super) const TILE: usize = 256;

/// Number of updates whose indices are checked in place at a time.
pub(super) const GROUP: usize = 32;

/// The indices of one dimension of the result.
#[derive(Clone, Copy)]
pub(super) struct IndexArray<'a> {
    pub dims: &'a [ViewDim],
    pub base: *const u8,
    pub dtype: DType,
    pub meaning: ScatterIndex,
    /// The size of the dimension on all devices, if indices are checked.
    pub extent: i64,
    /// The index of the first element of the device's block.
    pub first: i64,
    /// The part of the block that the thread updates.
    pub range: (usize, usize),
    /// The stride of the dimension in the result.
    pub stride: usize,
}

/// The indices of a tile in one array: the first one, and their distance in elements.
#[derive(Clone, Copy)]
pub(super) struct TileIndices<'a> {
    pub array: &'a IndexArray<'a>,
    pub at: usize,
    pub step: usize,
}

/// Distance between the current updates and the prefetched ones. Computing the positions in between takes the time of the prefetch.
pub(super) const AHEAD: usize = 8 * GROUP;

/// Makes the lines of a group of elements ready. There need not be any.
#[inline(always)]
pub(super) fn prefetch_group<T>(first: *const T) {
    let first = first.cast::<u8>();
    (0..GROUP * size_of::<T>()).step_by(64).for_each(|at| prefetch(first.wrapping_add(at)));
}

/// Indices of 32 bits in a row, into the first part of a dimension.
#[derive(Clone, Copy)]
pub(super) struct DirectIndices {
    base: *const i32,
    last: i32,
}

impl IndexArray<'_> {
    /// The last index of the thread's part, if that begins with the first one of the dimension and 31 bits suffice.
    fn last(&self) -> Option<i32> {
        let last = i32::try_from(self.range.1).ok()? - 1;
        (self.first == 0 && self.range.0 == 0).then_some(last)
    }

    /// The indices from this one on, if they have 32 bits.
    pub fn direct(&self, at: usize) -> Option<DirectIndices> {
        let last = self.last().filter(|_| self.dtype.width() == Width::W32)?;
        Some(DirectIndices { base: self.base.cast::<i32>().wrapping_add(at), last })
    }
}

impl DirectIndices {
    /// Makes the indices ready that are needed some groups after this one.
    #[inline(always)]
    pub fn prefetch(&self, at: usize) {
        prefetch_group(self.base.wrapping_add(at + AHEAD));
    }

    /// So many indices from this one on, if all are of elements in the thread's part.
    ///
    /// # Safety
    /// There must be as many, which this thread may read.
    #[inline(always)]
    pub unsafe fn all_inside(&self, at: usize, count: usize) -> Option<*const u32> {
        let first = self.base.wrapping_add(at);
        // The sign of one of both is set if an index is negative or larger than the last.
        let signs = |signs: i32, index: &i32| signs | index | self.last.wrapping_sub(*index);
        // SAFETY: as promised by the caller.
        let signs = unsafe {
            if count == GROUP {
                (*first.cast::<[i32; GROUP]>()).iter().fold(0, signs)
            } else {
                std::slice::from_raw_parts(first, count).iter().fold(0, signs)
            }
        };
        (signs >= 0).then_some(first.cast())
    }
}

/// The updates of a tile that the thread makes.
pub(super) enum UpdatePlaces<'a> {
    /// All: the indices in the only indexed dimension, one for each.
    All(*const u32),
    /// The offsets of their elements in the result, and their positions in the tile.
    Some(&'a [usize], &'a [u16]),
}

/// Room for the places of a tile, and the first failure of a check so far.
pub(super) struct PlaceFinder {
    narrow: [MaybeUninit<u32>; TILE],
    indices: [i64; TILE],
    offsets: [usize; TILE],
    inside: [bool; TILE],
    positions: [u16; TILE],
    /// The code of the failure; see [`trap`].
    pub code: i64,
}

impl PlaceFinder {
    pub fn new() -> PlaceFinder {
        PlaceFinder {
            narrow: [MaybeUninit::uninit(); TILE],
            indices: [0; TILE],
            offsets: [0; TILE],
            inside: [false; TILE],
            positions: [0; TILE],
            code: trap::NONE,
        }
    }

    /// # Safety
    /// The arrays must have `len` indices at these places, which this thread may read.
    pub unsafe fn find<'a>(&'a mut self, arrays: &[TileIndices<'a>], len: usize) -> UpdatePlaces<'a> {
        debug_assert!((1..=TILE).contains(&len), "{len} updates are no tile");
        if let [indices] = arrays {
            // SAFETY: as promised by the caller.
            if let Some(all) = unsafe { indices.all_inside(len, &mut self.narrow) } {
                return UpdatePlaces::All(all);
            }
        }
        self.offsets[..len].fill(0);
        self.inside[..len].fill(true);
        for indices in arrays {
            // SAFETY: as promised by the caller.
            unsafe { self.dimension(*indices, len) };
        }
        let mut count = 0;
        for position in 0..len {
            // Without a branch, which could not be predicted.
            self.offsets[count] = self.offsets[position];
            self.positions[count] = position as u16;
            count += usize::from(self.inside[position]);
        }
        UpdatePlaces::Some(&self.offsets[..count], &self.positions[..count])
    }

    /// Adds the offsets along one dimension.
    ///
    /// # Safety
    /// As for `find`.
    unsafe fn dimension(&mut self, indices: TileIndices<'_>, len: usize) {
        let array = indices.array;
        // SAFETY: as promised by the caller.
        unsafe { indices.load(&mut self.indices[..len]) };
        match array.meaning {
            ScatterIndex::Plain => {}
            ScatterIndex::AtLeastZero => self.indices[..len].iter_mut().for_each(|index| *index = (*index).max(0)),
            ScatterIndex::Checked(number) => {
                let mut least = i64::MAX;
                let mut fails = false;
                for index in &mut self.indices[..len] {
                    let counted = if *index < 0 { index.wrapping_add(array.extent) } else { *index };
                    if !(0..array.extent).contains(&counted) {
                        (least, fails) = (least.min(*index), true);
                    }
                    *index = counted;
                }
                if fails {
                    self.code = first_trap(self.code, trap::code(number, least));
                }
            }
        }
        let own = (array.range.1 - array.range.0) as u64;
        let begin = array.first.wrapping_add(array.range.0 as i64);
        let each = self.indices[..len].iter().zip(&mut self.offsets).zip(&mut self.inside);
        for ((&index, offset), inside) in each {
            // An index before the part becomes a number beyond it.
            let local = index.wrapping_sub(begin) as u64;
            *inside &= local < own;
            *offset = (local as usize).wrapping_add(array.range.0).wrapping_mul(array.stride).wrapping_add(*offset);
        }
    }
}

/// Writes indices as 32 bits; returns whether all of them are from 0 to `last`.
///
/// # Safety
/// There must be `len` indices from `base` on, at most one tile, which this thread may read.
macro_rules! narrowed {
    ($base:expr, $ty:ty, $wide:ty, $step:expr, $last:expr, $to:expr, $len:expr) => {{
        let (base, last, mut signs) = ($base.cast::<$ty>(), $last as $wide, 0);
        for (at, to) in $to[..$len].iter_mut().enumerate() {
            // SAFETY: the caller has promised that there are as many indices.
            let index = unsafe { base.add(at * $step).read() } as $wide;
            signs |= index | last.wrapping_sub(index);
            to.write(index as u32);
        }
        signs >= 0
    }};
}

impl TileIndices<'_> {
    /// The indices as 32 bits if all of them are of elements in the thread's part, which is the first of the dimension.
    ///
    /// # Safety
    /// As for [`PlaceFinder::find`].
    unsafe fn all_inside(&self, len: usize, to: &mut [MaybeUninit<u32>; TILE]) -> Option<*const u32> {
        let last = self.array.last()?;
        let (base, step) = (self.base(), self.step);
        let is_signed = self.array.dtype.kind() == Kind::Signed;
        let inside = match (self.array.dtype.width(), is_signed) {
            (Width::W8, true) => narrowed!(base, i8, i32, step, last, to, len),
            (Width::W8, false) => narrowed!(base, u8, i32, step, last, to, len),
            (Width::W16, true) => narrowed!(base, i16, i32, step, last, to, len),
            (Width::W16, false) => narrowed!(base, u16, i32, step, last, to, len),
            // Numbers beyond the signed ones become negative, so they are not inside either.
            (Width::W32, _) => narrowed!(base, i32, i32, step, last, to, len),
            (Width::W64, _) => narrowed!(base, i64, i64, step, last, to, len),
        };
        inside.then(|| to.as_ptr().cast())
    }

    /// The indices; indices of more than 63 bits become the largest number.
    ///
    /// # Safety
    /// As for [`PlaceFinder::find`].
    unsafe fn load(&self, to: &mut [i64]) {
        macro_rules! load {
            ($ty:ty) => {
                for (at, to) in to.iter_mut().enumerate() {
                    // SAFETY: as promised by the caller.
                    *to = i64::try_from(unsafe { self.base().cast::<$ty>().add(at * self.step).read() })
                        .unwrap_or(i64::MAX);
                }
            };
        }
        match (self.array.dtype.width(), self.array.dtype.kind() == Kind::Signed) {
            (Width::W8, true) => load!(i8),
            (Width::W8, false) => load!(u8),
            (Width::W16, true) => load!(i16),
            (Width::W16, false) => load!(u16),
            (Width::W32, true) => load!(i32),
            (Width::W32, false) => load!(u32),
            (Width::W64, true) => load!(i64),
            (Width::W64, false) => load!(u64),
        }
    }

    fn base(&self) -> *const u8 {
        self.array.base.wrapping_add(self.at * self.array.dtype.size())
    }
}
