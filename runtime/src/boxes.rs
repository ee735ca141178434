//! Boxes of elements in two arrays of different shapes, row by row: what collectives copy and combine.

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
    /// Outermost first; no dimension with fewer than two steps, and none that could be merged into the next.
    pub dims: Box<[WalkDim]>,
    /// Bytes of a row.
    pub row: usize,
    /// The offset of the first row, in bytes.
    pub from: usize,
    pub to: usize,
}

impl Rows {
    /// The box of this size that begins at `from_start` in an array stored as `from_shape`, and likewise for `to`.
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

    /// Copies.
    ///
    /// # Safety
    /// All rows must lie within memory that this thread may read and write, no other thread may write either side meanwhile, and
    /// the two sides must not overlap.
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
