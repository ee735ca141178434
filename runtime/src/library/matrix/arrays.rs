//! The matrices of a call, and their copies in scratch memory.

use crate::library::View;
use spmdc_matrix::{MatMut, MatrixElement, Workers};
use std::marker::PhantomData;
use std::ops::Range;

/// Rows and columns of the tiles by which matrices are copied: the elements of a tile are in the nearest cache in both orders.
const TILE: usize = 16;
/// Columns that a thread copies at a time.
const COLUMNS: usize = 64;
/// Elements of a matrix that is worth copying by several threads.
const WORTH_DIVIDING: usize = 1 << 16;

/// A matrix or vector of the call.
pub(super) struct MatrixArray<'a, T> {
    base: *mut T,
    sizes: [usize; 2],
    /// Elements from one row to the next, and from one column to the next.
    strides: [usize; 2],
    call: PhantomData<View<'a>>,
}

/// The address of a copy, for threads that write different elements.
struct CopyAddress<W>(*mut W);

// SAFETY: it is data; those who write promise to write different elements.
unsafe impl<W> Sync for CopyAddress<W> {}

// SAFETY: the address of memory that threads access as promised to the functions here.
unsafe impl<T> Sync for MatrixArray<'_, T> {}

impl<'a, T: MatrixElement> MatrixArray<'a, T> {
    pub fn new(view: View<'a>) -> MatrixArray<'a, T> {
        debug_assert!(view.dims.len() <= 2, "a matrix or a vector");
        let dim = |dim: usize| view.dims.get(dim).map_or((1, 0), |dim| (dim.len, dim.stride));
        let [(rows, down), (columns, along)] = [dim(0), dim(1)];
        MatrixArray { base: view.base(), sizes: [rows, columns], strides: [down, along], call: PhantomData }
    }

    pub fn size(&self, dim: usize) -> usize {
        self.sizes[dim]
    }

    fn at(&self, row: usize, column: usize) -> *mut T {
        debug_assert!(row < self.sizes[0] && column < self.sizes[1], "element {row}, {column} of {:?}", self.sizes);
        self.base.wrapping_add(row * self.strides[0] + column * self.strides[1])
    }

    /// # Safety
    /// As for `run`, as for all functions here.
    pub unsafe fn get(&self, row: usize, column: usize) -> T {
        // SAFETY: the loader has checked that all elements lie within the program's memory.
        unsafe { self.at(row, column).read() }
    }

    pub unsafe fn set(&self, row: usize, column: usize, value: T) {
        // SAFETY: as in `get`.
        unsafe { self.at(row, column).write(value) }
    }

    /// Copies the matrix to the first elements of a slice, and returns it with the other elements of the slice.
    pub unsafe fn load<'s, W: MatrixElement>(
        &self,
        scratch: &'s mut [W],
        workers: &mut dyn Workers,
    ) -> (MatMut<'s, W>, &'s mut [W]) {
        // SAFETY: as promised by the caller.
        unsafe { self.load_columns(0..self.size(1), scratch, workers) }
    }

    /// As [`MatrixArray::load`], of these columns alone.
    pub unsafe fn load_columns<'s, W: MatrixElement>(
        &self,
        columns: Range<usize>,
        scratch: &'s mut [W],
        workers: &mut dyn Workers,
    ) -> (MatMut<'s, W>, &'s mut [W]) {
        let (mut own, rest) = matrix(scratch, self.size(0), columns.len());
        // SAFETY: as promised by the caller.
        unsafe { self.copy_to(own.as_mut(), |row, column| (row, columns.start + column), workers) };
        (own, rest)
    }

    /// As [`MatrixArray::load_columns`], with rows as columns and columns as rows.
    pub unsafe fn load_turned<'s, W: MatrixElement>(
        &self,
        columns: Range<usize>,
        scratch: &'s mut [W],
        workers: &mut dyn Workers,
    ) -> (MatMut<'s, W>, &'s mut [W]) {
        let (mut own, rest) = matrix(scratch, columns.len(), self.size(0));
        // SAFETY: as promised by the caller.
        unsafe { self.copy_to(own.as_mut(), |row, column| (column, columns.start + row), workers) };
        (own, rest)
    }

    /// Copies elements to a matrix; `place` has the row and the column of each.
    pub unsafe fn copy_to<W: MatrixElement>(
        &self,
        to: MatMut<'_, W>,
        place: impl Fn(usize, usize) -> (usize, usize) + Sync,
        workers: &mut dyn Workers,
    ) {
        let (rows, columns) = (to.nrows(), to.ncols());
        debug_assert!(to.row_stride() == 1 && to.col_stride() == rows as isize, "a matrix that has been made here");
        let address = CopyAddress(to.as_ptr_mut());
        in_tiles([0..rows, 0..columns], workers, &|tile_rows, tile_columns| {
            let first = &address;
            for column in tile_columns {
                for row in tile_rows.clone() {
                    let (i, j) = place(row, column);
                    // SAFETY: as promised by the caller; tiles have different elements of the matrix.
                    unsafe { first.0.add(column * rows + row).write(W::of(self.get(i, j).wide())) }
                }
            }
        });
    }

    /// Sets all elements.
    pub unsafe fn store<W: MatrixElement>(&self, from: impl Fn(usize, usize) -> W + Sync, workers: &mut dyn Workers) {
        // SAFETY: as promised by the caller.
        unsafe { self.store_columns(0..self.size(1), from, workers) }
    }

    /// Sets all elements of these columns.
    pub unsafe fn store_columns<W: MatrixElement>(
        &self,
        columns: Range<usize>,
        from: impl Fn(usize, usize) -> W + Sync,
        workers: &mut dyn Workers,
    ) {
        in_tiles([0..self.size(0), columns], workers, &|rows, columns| {
            for row in rows {
                for column in columns.clone() {
                    // SAFETY: as promised by the caller; tiles have different elements.
                    unsafe { self.set(row, column, T::of(from(row, column).wide())) }
                }
            }
        });
    }

    /// Copies these columns of a matrix of the same size.
    pub unsafe fn copy_columns(&self, from: &MatrixArray<'_, T>, columns: Range<usize>) {
        debug_assert!(self.sizes == from.sizes && columns.end <= self.sizes[1], "columns of matrices of one size");
        let is_contiguous = self.strides[1] == 1 && from.strides[1] == 1;
        for row in 0..self.sizes[0] {
            // SAFETY: as promised by the caller. Both are one memory or different ones, which `copy_from` allows.
            unsafe {
                match is_contiguous && !columns.is_empty() {
                    true => self.at(row, columns.start).copy_from(from.at(row, columns.start), columns.len()),
                    false => columns.clone().for_each(|column| self.set(row, column, from.get(row, column))),
                }
            }
        }
    }
}

/// A matrix in the first elements of a slice, and the others.
pub(super) fn matrix<W: MatrixElement>(scratch: &mut [W], rows: usize, columns: usize) -> (MatMut<'_, W>, &mut [W]) {
    let (own, rest) = scratch.split_at_mut(rows * columns);
    (MatMut::from_column_major_slice_mut(own, rows, columns), rest)
}

/// Calls a function for the tiles of a matrix, by several threads if it is large.
fn in_tiles(
    [rows, columns]: [Range<usize>; 2],
    workers: &mut dyn Workers,
    tile: &(dyn Fn(Range<usize>, Range<usize>) + Sync),
) {
    let strip = |task: usize| {
        let start = columns.start + task * COLUMNS;
        let end = columns.end.min(start + COLUMNS);
        for row in rows.clone().step_by(TILE) {
            for column in (start..end).step_by(TILE) {
                tile(row..rows.end.min(row + TILE), column..end.min(column + TILE));
            }
        }
    };
    let strips = columns.len().div_ceil(COLUMNS);
    if rows.len() * columns.len() >= WORTH_DIVIDING {
        workers.each(strips, &strip)
    } else {
        (0..strips).for_each(strip)
    }
}
