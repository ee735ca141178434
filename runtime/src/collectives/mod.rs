//! Collectives: the copies and reductions of each device, planned when the program is loaded.
//!
//! All devices are in one address space, so in a collective every device reads exactly what it needs directly from other devices'
//! memory. Nothing is packed, sent or padded, and uneven and empty blocks need no special case. The barriers around a collective
//! (all source bytes written, all target bytes read) are steps of their own, placed where the program needs them.
//!
//! A *piece* is the overlap of a device's new block with one existing block. Devices that share the memory of the target divide the
//! pieces: the holder of a piece writes it, and several holders cut it among them.

pub(crate) mod exchange;
pub(crate) mod fetch;
pub(crate) mod permute;
pub(crate) mod reduce;

use std::ops::Range;

use crate::memory::Memory;
use crate::trap::RunError;
use spmdc_abi::mesh::{DeviceMesh, share, split_axes};
use spmdc_abi::{AxisSet, Layout, Shards, Site};

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

/// A part of a device's target block, and one device that holds it.
struct BlockPiece {
    owner: usize,
    /// The position of the piece in the whole array.
    range: Vec<Range<usize>>,
}

/// The two sides of a collective, as one device sees them.
struct Sides<'a> {
    memory: &'a Memory,
    device: usize,
    from: &'a Shards,
    to: &'a Shards,
    /// Axes along which several devices of the group share the target.
    sharing: AxisSet,
}

impl<'a> Sides<'a> {
    fn new(memory: &'a Memory, device: usize, group: AxisSet, from: &'a Shards, to: &'a Shards) -> Sides<'a> {
        Sides { memory, device, from, to, sharing: group.minus(memory.axes(to.place.arena)) }
    }

    fn mesh(&self) -> &'a DeviceMesh {
        self.memory.mesh()
    }

    /// The pieces that this device has to write, each with an owner within `group`.
    fn pieces(&self, group: AxisSet, site: Site) -> Result<Vec<BlockPiece>, RunError> {
        let mesh = self.mesh();
        let target = mesh.blocks(&self.to.layout, self.device);
        if target.iter().any(Range::is_empty) {
            return Ok(Vec::new());
        }
        // Dimension by dimension: the owner so far, and the range.
        let mut pieces = vec![BlockPiece { owner: self.device, range: Vec::new() }];
        for (dim, wanted) in self.from.layout.dims.iter().zip(&target) {
            let len = mesh.stored_len(dim);
            let axes = || dim.axes.iter().map(|&axis| axis as usize);
            let mut longer = Vec::new();
            for piece in &pieces {
                for position in wanted.start / len..=(wanted.end - 1) / len {
                    let mut range = piece.range.clone();
                    range.push(wanted.start.max(position * len)..wanted.end.min((position + 1) * len));
                    longer.push(BlockPiece { owner: mesh.at(piece.owner, axes(), position), range });
                }
            }
            pieces = longer;
        }
        debug_assert_eq!(
            pieces.iter().map(|piece| piece.range.iter().map(Range::len).product::<usize>()).sum::<usize>(),
            target.iter().map(Range::len).product::<usize>(),
            "pieces make up the block"
        );
        // Among the devices that share the target, the holders of a piece write it.
        let split = split_axes(&self.from.layout);
        let held = self.sharing.intersect(split);
        pieces.retain(|piece| mesh.difference(piece.owner, self.device).intersect(held).is_empty());
        if let Some(piece) = pieces.iter().find(|piece| !mesh.difference(piece.owner, self.device).is_subset_of(group))
        {
            let message = format!("device {} needs a block of device {}, outside its group", self.device, piece.owner);
            return Err(RunError::internal(message).at(site));
        }
        let holders = self.sharing.minus(split);
        let (rank, count) = (mesh.linear(self.device, holders.iter()), mesh.count(holders.iter()));
        pieces.retain_mut(|piece| cut(&mut piece.range, rank, count));
        Ok(pieces)
    }

    /// The position of the piece in its owner's block and in this device's block.
    fn rows(&self, piece: &BlockPiece) -> Rows {
        let mesh = self.mesh();
        let lens: Vec<usize> = piece.range.iter().map(Range::len).collect();
        let offsets = |layout: &Layout, device: usize| -> Vec<usize> {
            let blocks = mesh.blocks(layout, device);
            let offset = |(range, block): (&Range<usize>, Range<usize>)| {
                debug_assert!(
                    block.start <= range.start && range.end <= block.end,
                    "{range:?} is no part of {block:?}"
                );
                range.start - block.start
            };
            piece.range.iter().zip(blocks).map(offset).collect()
        };
        Rows::new(
            self.to.layout.dtype.size(),
            &lens,
            &mesh.stored_shape(&self.from.layout),
            &offsets(&self.from.layout, piece.owner),
            &mesh.stored_shape(&self.to.layout),
            &offsets(&self.to.layout, self.device),
        )
    }
}

/// Cuts a box into `count` parts along its first dimension that is long enough, otherwise along its longest, and keeps part `rank`.
/// False if that part is empty.
fn cut(range: &mut [Range<usize>], rank: usize, count: usize) -> bool {
    debug_assert!(rank < count, "part {rank} of {count}");
    if count == 1 {
        return true;
    }
    let longest = (0..range.len()).rev().max_by_key(|&i| range[i].len());
    let Some(dim) = (0..range.len()).find(|&i| range[i].len() >= count).or(longest) else {
        // A scalar cannot be cut.
        return rank == 0;
    };
    let part = share(range[dim].len() as i64, rank, count);
    range[dim] = range[dim].start + part.start as usize..range[dim].start + part.end as usize;
    !range[dim].is_empty()
}
