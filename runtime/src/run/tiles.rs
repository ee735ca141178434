//! Kernels and products that run tile by tile: some rows of one matrix at a time.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use crate::library::ScratchSlot;
use crate::library::matrix_product::{GemmExtent, MatrixProduct, ProductFn};
use crate::run::kernels::finish_stores;
use crate::run::team::Team;
use spmdc_abi::{DType, KernelFn, TileRows};

/// The most buffers of a kernel in tiles, and the most numbers that it gets.
pub(crate) const MOST_ARGUMENTS: usize = 64;

/// A device's share of a step.
#[derive(Debug)]
pub(crate) struct PreparedTiles {
    pub members: Box<[PreparedMember]>,
    pub rows: i64,
    /// The most rows for which neighbouring kernels run one after the other.
    pub panel: i64,
    /// The rows of each tile but the last, and the number of tiles of a matrix.
    pub tile: i64,
    pub tiles: i64,
    /// Neighbouring matrices whose tiles run in order; 0 if a unit is a tile.
    pub chain: i64,
    /// The first unit and the end: tiles, or chains of matrices.
    pub units: Range<i64>,
    /// Units that a thread takes at a time; 0 if there is too little work for a team.
    pub chunk: i64,
    pub scratch: *mut u8,
    pub slot_bytes: usize,
    /// For each slot of the scratch memory whether a thread uses it.
    pub slots: Box<[AtomicBool]>,
}

// SAFETY: a step consists of data and pointers to the program's memory; `run` demands that threads run different units of it.
unsafe impl Sync for PreparedTiles {}

/// A part of [`PreparedTiles`].
#[derive(Debug)]
pub(crate) enum PreparedMember {
    /// Neighbouring kernels.
    Kernels(Vec<PreparedKernel>),
    Product(Box<PreparedTileProduct>),
}

/// A buffer in memory, or in the slot.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PreparedBuffer {
    Memory(*mut u8),
    Scratch { offset: usize, row: usize },
}

/// A kernel with its arguments.
#[derive(Debug)]
pub(crate) struct PreparedKernel {
    pub function: KernelFn,
    pub buffers: Box<[PreparedBuffer]>,
    pub scalars: Box<[i64]>,
    /// The number of matrices as a product.
    pub matrices: Box<[i64]>,
}

/// A product with its operands.
#[derive(Debug)]
pub(crate) struct PreparedTileProduct {
    pub multiply: ProductFn,
    /// The element type of operands and result.
    pub dtype: DType,
    pub buffers: [PreparedBuffer; 3],
    pub m: GemmExtent,
    pub n: GemmExtent,
    pub k: GemmExtent,
    /// The number of matrices as a product, with strides.
    pub matrices: Box<[GemmExtent]>,
    pub contracted: Box<[GemmExtent]>,
    pub rows: TileRows,
    /// Whether sums are along the contraction, which does not depend on the tile.
    pub lines: bool,
}

/// Some rows of a matrix.
#[derive(Clone, Copy)]
struct TileOfRows {
    matrix: i64,
    first: i64,
    end: i64,
    slot: *mut u8,
}

impl PreparedBuffer {
    /// The address of row 0 of a matrix, which for scratch memory may lie before the slot: only the rows of the tile are used.
    fn base(self, tile: &TileOfRows) -> *mut u8 {
        match self {
            PreparedBuffer::Memory(base) => base,
            PreparedBuffer::Scratch { offset, row } => {
                tile.slot.wrapping_add(offset).wrapping_sub(row * tile.first as usize)
            }
        }
    }
}

impl PreparedTiles {
    /// Whether a team would help.
    pub fn wants_team(&self) -> bool {
        self.chunk > 0
    }

    /// Runs the device's units; returns 0, or the code of a panic.
    ///
    /// # Safety
    /// The kernels must accept their arguments, and all elements of buffers and products lie within memory that the device may access in this
    /// way. For any row, members use only elements of each other that they write for the same row. No other thread may use the device's
    /// scratch memory, or write memory of these units, meanwhile.
    pub unsafe fn run(&self, team: Option<&mut Team>) -> i64 {
        let work = |begin: i64, end: i64| {
            let slot = ScratchSlot::take(&self.slots);
            for unit in begin..end {
                // SAFETY: as promised by the caller; no other thread uses the slot.
                unsafe { self.unit(unit, self.scratch.wrapping_add(slot.at() * self.slot_bytes)) };
            }
            finish_stores();
            0
        };
        match team {
            Some(team) if self.chunk > 0 => team.run(self.units.start, self.units.end, self.chunk, &work),
            _ => work(self.units.start, self.units.end),
        }
    }

    /// # Safety
    /// As for `run`; no other thread uses the slot.
    unsafe fn unit(&self, unit: i64, slot: *mut u8) {
        let (matrices, tiles) = match self.chain {
            0 => (unit / self.tiles..unit / self.tiles + 1, unit % self.tiles..unit % self.tiles + 1),
            chain => (unit * chain..(unit + 1) * chain, 0..self.tiles),
        };
        debug_assert!(self.units.contains(&unit), "unit {unit} of {:?}", self.units);
        debug_assert!(self.panel > 0 && self.tile > 0, "tiles and panels have rows");
        for matrix in matrices {
            for number in tiles.clone() {
                let first = (number * self.tile).min(self.rows);
                let end = (first + self.tile).min(self.rows);
                let tile = TileOfRows { matrix, first, end, slot };
                for member in &self.members {
                    match member {
                        PreparedMember::Kernels(kernels) => {
                            let mut at = first;
                            while at < end {
                                let rows = at..end.min(at + self.panel);
                                at = rows.end;
                                // SAFETY: as promised by the caller; a kernel uses for a row what others write for it.
                                kernels.iter().for_each(|kernel| unsafe { kernel.run(&tile, rows.clone()) });
                            }
                        }
                        // SAFETY: as promised by the caller.
                        PreparedMember::Product(product) => unsafe { product.run(&tile) },
                    }
                }
            }
        }
    }
}

impl PreparedKernel {
    /// # Safety
    /// As for [`PreparedTiles::run`].
    unsafe fn run(&self, tile: &TileOfRows, rows: Range<i64>) {
        let mut buffers = [std::ptr::null_mut(); MOST_ARGUMENTS];
        for (address, buffer) in buffers.iter_mut().zip(&self.buffers) {
            *address = buffer.base(tile);
        }
        let mut scalars = [0; MOST_ARGUMENTS];
        debug_assert!(rows.start < rows.end && tile.first <= rows.start && rows.end <= tile.end, "rows of the tile");
        let (own, indices) = scalars.split_at_mut(self.scalars.len());
        own.copy_from_slice(&self.scalars);
        let mut matrix = tile.matrix;
        for (index, len) in indices[..self.matrices.len()].iter_mut().zip(&self.matrices).rev() {
            *index = matrix % len;
            matrix /= len;
        }
        // SAFETY: as promised by the caller. A kernel in tiles does not stop the program.
        unsafe { (self.function)(buffers.as_ptr(), scalars.as_ptr(), rows.start, rows.end) };
    }
}

impl PreparedTileProduct {
    /// # Safety
    /// As for [`PreparedTiles::run`].
    unsafe fn run(&self, tile: &TileOfRows) {
        let (mut m, mut n, mut k) = (self.m, self.n, self.k);
        let row = self.rows.of(&mut m, &mut n, &mut k);
        row.len = (tile.end - tile.first) as usize;
        let first = tile.first as isize;
        let (mut a, mut b, mut c) = (first * row.a, first * row.b, first * row.c);
        let mut matrix = tile.matrix as usize;
        // A sum over the rows continues from tile to tile, and from matrix to matrix of a chain.
        let mut adds = self.rows == TileRows::K && tile.first > 0;
        for dim in self.matrices.iter().rev() {
            let index = (matrix % dim.len) as isize;
            matrix /= dim.len;
            (a, b, c) = (a + index * dim.a, b + index * dim.b, c + index * dim.c);
            adds |= self.rows == TileRows::K && dim.c == 0 && index > 0;
        }
        let [from_a, from_b, to] = self.buffers.map(|buffer| buffer.base(tile));
        let size = self.dtype.size() as isize;
        let product = MatrixProduct {
            operands: [self.dtype; 2],
            a: from_a.wrapping_offset(a * size),
            b: from_b.wrapping_offset(b * size),
            c: to.wrapping_offset(c * size),
            m,
            n,
            k,
            contracted: &self.contracted,
            adds,
            lines: self.lines,
        };
        // SAFETY: as promised by the caller.
        unsafe { (self.multiply)(&product) }
    }
}
