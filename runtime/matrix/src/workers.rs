//! Division of a factorization over threads.

use faer::{MatMut, MatRef};
use std::marker::PhantomData;
use std::ops::Range;

/// Threads that do the tasks of a factorization.
pub trait Workers {
    /// Does the tasks `0..count`, in any order and side by side, and returns after all of them.
    fn each(&mut self, count: usize, task: &(dyn Fn(usize) + Sync));
}

/// The calling thread alone.
#[derive(Clone, Copy, Debug)]
pub struct Alone;

impl Workers for Alone {
    fn each(&mut self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..count).for_each(task);
    }
}

/// A matrix of which tasks use different parts side by side.
#[derive(Clone, Copy)]
pub(crate) struct SharedMatrix<'a, T> {
    first: *mut T,
    rows: usize,
    columns: usize,
    stride: isize,
    elements: PhantomData<&'a mut T>,
}

// SAFETY: it consists of an address and sizes; those who take parts promise that they are different.
unsafe impl<T: Send + Sync> Sync for SharedMatrix<'_, T> {}

impl<'a, T> SharedMatrix<'a, T> {
    pub fn new(a: MatMut<'a, T>) -> SharedMatrix<'a, T> {
        assert!(a.row_stride() == 1 || a.nrows() <= 1, "columns are contiguous");
        SharedMatrix {
            rows: a.nrows(),
            columns: a.ncols(),
            stride: a.col_stride(),
            first: a.as_ptr_mut(),
            elements: PhantomData,
        }
    }

    /// A column, as the shared elements of a line.
    pub fn of_line(line: &'a mut [T]) -> SharedMatrix<'a, T> {
        let rows = line.len();
        SharedMatrix::new(MatMut::from_column_major_slice_mut(line, rows, 1))
    }

    /// A part of the first column, to be written.
    ///
    /// # Safety
    /// No other access to the elements of the part is in use.
    pub unsafe fn elements(&self, rows: Range<usize>) -> &'a mut [T] {
        // SAFETY: as promised by the caller.
        crate::lanes::column_mut(unsafe { self.part(rows, 0..1) }, 0)
    }

    fn address(&self, rows: &Range<usize>, columns: &Range<usize>) -> *mut T {
        assert!(rows.start <= rows.end && rows.end <= self.rows, "rows {rows:?} of {}", self.rows);
        assert!(columns.start <= columns.end && columns.end <= self.columns, "columns {columns:?} of {}", self.columns);
        self.first.wrapping_offset(rows.start as isize + columns.start as isize * self.stride)
    }

    /// A part of the matrix, to be written.
    ///
    /// # Safety
    /// No other access to the elements of the part is in use.
    pub unsafe fn part(&self, rows: Range<usize>, columns: Range<usize>) -> MatMut<'a, T> {
        let first = self.address(&rows, &columns);
        // SAFETY: the elements lie within the matrix, which is borrowed for as long; the rest is promised by the caller.
        unsafe { MatMut::from_raw_parts_mut(first, rows.len(), columns.len(), 1, self.stride) }
    }

    /// A part of the matrix, to be read.
    ///
    /// # Safety
    /// Its elements are not written while the part is in use.
    pub unsafe fn read(&self, rows: Range<usize>, columns: Range<usize>) -> MatRef<'a, T> {
        let first = self.address(&rows, &columns);
        // SAFETY: as in `part`.
        unsafe { MatRef::from_raw_parts(first, rows.len(), columns.len(), 1, self.stride) }
    }
}

/// The columns that a step of a factorization updates, as tasks: the next block, which is then factorized, and strips of the others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StripTasks {
    /// The columns of the next block; none after the last one.
    pub next: (usize, usize),
    /// The end of the columns.
    pub end: usize,
    /// The columns of a strip.
    pub width: usize,
}

impl StripTasks {
    /// The number of tasks.
    pub fn count(&self) -> usize {
        usize::from(self.next.0 < self.next.1) + (self.end - self.next.1).div_ceil(self.width)
    }

    /// Whether the task is the next block.
    pub fn is_next(&self, task: usize) -> bool {
        task == 0 && self.next.0 < self.next.1
    }

    /// The columns of a task.
    pub fn columns(&self, task: usize) -> Range<usize> {
        if self.is_next(task) {
            return self.next.0..self.next.1;
        }
        let number = task - usize::from(self.next.0 < self.next.1);
        let first = self.next.1 + number * self.width;
        first..self.end.min(first + self.width)
    }
}
