//! Boxes of elements in two arrays of different shapes, row by row: the units that collectives copy and combine.

/// One dimension of a simultaneous walk over two arrays: the number of steps, and the bytes per step in each array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WalkDim {
    pub count: usize,
    pub from: isize,
    pub to: usize,
}

/// A box of elements in two arrays of different shapes: rows that are contiguous in both, and the steps from row to row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rows {
    /// Outermost first. Every dimension has at least two steps and cannot be merged into the next.
    pub dims: Box<[WalkDim]>,
    /// Bytes of a row.
    pub row: usize,
    /// The offset of the first row, in bytes.
    pub from: usize,
    pub to: usize,
}

impl Rows {
    /// The box of this size that begins at `from_start` in an array stored as `from_shape`, and at `to_start` in an array stored as
    /// `to_shape`.
    pub fn new(
        size: usize,
        lens: &[usize],
        from_shape: &[usize],
        from_start: &[usize],
        to_shape: &[usize],
        to_start: &[usize],
    ) -> Rows {
        debug_assert!(
            [from_shape, from_start, to_shape, to_start].iter().all(|side| side.len() == lens.len()),
            "both sides have the rank of the box"
        );
        debug_assert!(
            lens.contains(&0) || (0..lens.len()).all(|i| from_start[i] + lens[i] <= from_shape[i]),
            "the box lies within the source"
        );
        debug_assert!(
            lens.contains(&0) || (0..lens.len()).all(|i| to_start[i] + lens[i] <= to_shape[i]),
            "the box lies within the target"
        );
        let mut dims = vec![WalkDim { count: 0, from: 0, to: 0 }; lens.len()];
        let (mut from, mut to) = (size, size);
        let (mut from_offset, mut to_offset) = (0, 0);
        for i in (0..lens.len()).rev() {
            from_offset += from_start[i] * from;
            to_offset += to_start[i] * to;
            dims[i] = WalkDim { count: lens[i], from: from as isize, to };
            from *= from_shape[i];
            to *= to_shape[i];
        }
        Rows::strided(size, &dims, from_offset, to_offset)
    }

    /// The elements visited by a walk in these dimensions, outermost first, from the elements at these offsets on.
    pub fn strided(size: usize, walk: &[WalkDim], from: usize, to: usize) -> Rows {
        let mut rows = Rows { dims: Box::new([]), row: size, from, to };
        let mut dims: Vec<WalkDim> = Vec::new();
        for &outer in walk.iter().rev().filter(|dim| dim.count != 1) {
            match dims.last_mut() {
                None if outer.from == rows.row as isize && outer.to == rows.row => rows.row *= outer.count,
                Some(inner)
                    if inner.from * inner.count as isize == outer.from && inner.to * inner.count == outer.to =>
                {
                    inner.count *= outer.count;
                }
                _ => dims.push(outer),
            }
        }
        if walk.iter().any(|dim| dim.count == 0) {
            return Rows { dims: Box::new([]), row: 0, ..rows };
        }
        dims.reverse();
        rows.dims = dims.into_boxed_slice();
        debug_assert_eq!(
            rows.count() * rows.row,
            walk.iter().map(|dim| dim.count).product::<usize>() * size,
            "rows make up the walk"
        );
        rows
    }

    /// A single row.
    pub fn contiguous(bytes: usize) -> Rows {
        Rows { dims: Box::new([]), row: bytes, from: 0, to: 0 }
    }

    /// The copies of the same box into packed memory, and from there to its target, both from offset 0 of the packed memory on.
    pub fn packed(&self) -> (Rows, Rows) {
        let mut stride = self.row;
        let (mut pack, mut unpack) = (self.dims.to_vec(), self.dims.to_vec());
        for at in (0..self.dims.len()).rev() {
            let WalkDim { count, from, to } = self.dims[at];
            pack[at] = WalkDim { count, from, to: stride };
            unpack[at] = WalkDim { count, from: stride as isize, to };
            stride *= count;
        }
        (Rows { dims: pack.into(), to: 0, ..*self }, Rows { dims: unpack.into(), from: 0, ..*self })
    }

    /// The number of rows.
    pub fn count(&self) -> usize {
        if self.row == 0 { 0 } else { self.dims.iter().map(|dim| dim.count).product() }
    }

    /// The offsets of a row.
    #[inline(always)]
    pub fn at(&self, row: usize) -> (usize, usize) {
        debug_assert!(row < self.count(), "there is no row {row}");
        let (mut from, mut to, mut rest) = (self.from, self.to, row);
        for (outer, dim) in self.dims.iter().enumerate().rev() {
            let i = if outer == 0 { rest } else { rest % dim.count };
            rest /= if outer == 0 { 1 } else { dim.count };
            (from, to) = (from.wrapping_add_signed(i as isize * dim.from), to + i * dim.to);
        }
        (from, to)
    }

    /// Calls `row` with the offsets of every row.
    #[inline]
    pub fn for_each(&self, row: &mut impl FnMut(usize, usize)) {
        fn walk(dims: &[WalkDim], from: usize, to: usize, row: &mut impl FnMut(usize, usize)) {
            match dims {
                [] => row(from, to),
                [dim] => {
                    (0..dim.count).for_each(|i| row(from.wrapping_add_signed(i as isize * dim.from), to + i * dim.to))
                }
                [dim, inner @ ..] => (0..dim.count).for_each(|i| {
                    walk(inner, from.wrapping_add_signed(i as isize * dim.from), to + i * dim.to, row);
                }),
            }
        }
        if self.row > 0 {
            walk(&self.dims, self.from, self.to, row);
        }
    }
}

/// A box of bytes to copy.
#[derive(Clone, Debug)]
pub(crate) struct BoxCopy {
    from: *const u8,
    to: *mut u8,
    rows: Rows,
}

impl BoxCopy {
    pub fn new(from: *const u8, to: *mut u8, rows: Rows) -> BoxCopy {
        BoxCopy { from, to, rows }
    }

    /// Whether all bytes are already in place.
    pub fn is_identity(&self) -> bool {
        let starts = self.from.wrapping_add(self.rows.from).addr() == self.to.addr() + self.rows.to;
        self.rows.row == 0 || starts && self.rows.dims.iter().all(|dim| dim.from == dim.to as isize)
    }

    /// Copies as `run` does, for a target that no device reads before a barrier: large boxes are stored past the caches.
    ///
    /// # Safety
    /// As of `run`.
    pub unsafe fn exchange(&self) {
        #[cfg(target_arch = "x86_64")]
        if self.rows.row >= STREAMED_ROW && self.rows.row * self.rows.count() >= STREAMED_BOX {
            // SAFETY: as promised by the caller. Stores past the caches are in no order with others, so a fence follows: the barrier after
            // the copy finds them done.
            unsafe {
                self.rows.for_each(&mut |from, to| stream(self.from.add(from), self.to.add(to), self.rows.row));
                std::arch::x86_64::_mm_sfence();
            }
            return;
        }
        // SAFETY: as promised by the caller.
        unsafe { self.run() }
    }

    /// Copies.
    ///
    /// # Safety
    /// All rows must be within memory that this thread may read and write, no other thread may write either side meanwhile, and the two
    /// sides must not overlap.
    pub unsafe fn run(&self) {
        /// Copies rows of one or a few elements by a load and a store each instead of a call.
        unsafe fn copy<T: Copy>(this: &BoxCopy) {
            this.rows.for_each(&mut |from, to| {
                // SAFETY: as promised by the caller of `run`.
                unsafe {
                    let value = this.from.add(from).cast::<T>().read_unaligned();
                    this.to.add(to).cast::<T>().write_unaligned(value);
                }
            });
        }
        // SAFETY: as promised by the caller; the size of `T` is that of a row.
        unsafe {
            match self.rows.row {
                1 => copy::<u8>(self),
                2 => copy::<u16>(self),
                4 => copy::<u32>(self),
                8 => copy::<u64>(self),
                16 => copy::<u128>(self),
                row => self.rows.for_each(&mut |from, to| {
                    std::ptr::copy_nonoverlapping(self.from.add(from), self.to.add(to), row);
                }),
            }
        }
    }
}

/// Minimum bytes of a box whose rows are stored past the caches. An ordinary store first reads its target, so three bytes move for each
/// byte instead of two. For 64 MiB this takes 1.7 times as long; for boxes that fit in a cache it takes less time.
#[cfg(target_arch = "x86_64")]
const STREAMED_BOX: usize = 16 << 20;
/// Bytes of a row from which on its unaligned ends cost little.
#[cfg(target_arch = "x86_64")]
const STREAMED_ROW: usize = 4 << 10;

/// Copies bytes, and stores them past the caches.
///
/// # Safety
/// As of [`std::ptr::copy_nonoverlapping`]; other threads see the bytes after a store fence of this one only.
#[cfg(target_arch = "x86_64")]
unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    /// A cache line, which is stored in one piece.
    const LINE: usize = 64;
    let head = to.align_offset(LINE).min(len);
    let lines = (len - head) / LINE * LINE;
    // SAFETY: all offsets are below `len`, and the targets of streamed stores are aligned; SSE2 is part of x86-64.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, head);
        for at in (head..head + lines).step_by(LINE) {
            let line: [__m128i; 4] = std::array::from_fn(|i| _mm_loadu_si128(from.add(at + 16 * i).cast()));
            for (i, part) in line.into_iter().enumerate() {
                _mm_stream_si128(to.add(at + 16 * i).cast(), part);
            }
        }
        let tail = head + lines;
        std::ptr::copy_nonoverlapping(from.add(tail), to.add(tail), len - tail);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Boxes of all alignments, some of them large enough to go past the caches.
    #[test]
    fn boxes_of_all_sizes_are_copied() {
        let bytes: Vec<u8> = (0..(18 << 20)).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for (rows, row, begin) in [(1, 17 << 20, 3), (4000, 4200, 1), (4100, 4096, 64), (3, 6 << 20, 0), (5, 100, 7)] {
            let mut copied = vec![0; rows * (row + 5) + 200];
            for first in [0, 9, 63] {
                copied.fill(0);
                let stride = if rows * (row + 1) + begin <= bytes.len() { row + 1 } else { 0 };
                let walk = [
                    WalkDim { count: rows, from: stride as isize, to: row + 5 },
                    WalkDim { count: row, from: 1, to: 1 },
                ];
                let plan = Rows::strided(1, &walk, begin, first);
                // SAFETY: the box is within both.
                unsafe { BoxCopy::new(bytes.as_ptr(), copied.as_mut_ptr(), plan).exchange() };
                for at in 0..rows {
                    let to = first + at * (row + 5);
                    let from = begin + at * stride;
                    assert!(copied[to..to + row] == bytes[from..from + row], "row {at} of {rows} of {row} bytes");
                    assert!(copied[to + row..to + row + 5] == [0; 5], "what follows row {at}");
                }
                assert!(copied[..first].iter().all(|&byte| byte == 0));
            }
        }
    }
}
