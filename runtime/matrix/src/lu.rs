//! Elimination with row exchanges.

use crate::lanes::{column, column_mut, place_of_largest, subtract_multiple, vector_loop, widest};
use crate::triangular::solve_lower;
use crate::workers::{SharedMatrix, StripTasks};
use crate::{BLOCK, MatrixElement, RIGHT, SMALL, STRIP, Workers, subtract_product};
use faer::MatMut;
use faer::prelude::{Reborrow, ReborrowMut};
use std::ops::Range;

/// Columns of a block that are eliminated one by one.
const FEW: usize = 8;

/// The matrix becomes U on and above the diagonal and L below it. L has an implicit diagonal of 1. They factorize the matrix with its rows
/// exchanged: step `k` exchanges row `k` and row `pivots[k]`, the first row with the largest magnitude in the column. A column without a
/// nonzero candidate is not changed, so that an element of the diagonal is zero.
///
/// `sides` are further columns, which are exchanged and eliminated like the others: they become x with `l x = sides`. If they are none,
/// the rows of L are in the order of the pivots; otherwise each block of L has the order that it had when it was made.
pub fn lu<T: MatrixElement>(a: MatMut<'_, T>, sides: MatMut<'_, T>, pivots: &mut [usize], workers: &mut dyn Workers) {
    let (m, n, right) = (a.nrows(), a.ncols(), sides.ncols());
    let steps = m.min(n);
    assert!(pivots.len() == steps && (right == 0 || sides.nrows() == m), "memory for {m} x {n}");
    if steps <= SMALL {
        widest(Eliminate, (a, sides, pivots));
        return;
    }
    let (a, sides) = (SharedMatrix::new(a), SharedMatrix::new(sides));
    let pivots = SharedMatrix::new(MatMut::from_column_major_slice_mut(pivots, steps, 1));
    let block = |first: usize| first..steps.min(first + BLOCK);
    // SAFETY: the task that factorizes a block has the only access to its columns and to its pivots; the others read those of the block
    // before it.
    let factorize = |own: Range<usize>| unsafe {
        let places = column_mut(pivots.part(own.clone(), 0..1), 0);
        panel(a.part(own.start..m, own.clone()), places);
        places.iter_mut().for_each(|place| *place += own.start);
    };
    factorize(block(0));
    for first in (0..steps).step_by(BLOCK) {
        let own = block(first);
        let next = block(own.end);
        let strips = StripTasks { next: (own.end, next.end), end: n, width: STRIP };
        let count = strips.count();
        // SAFETY: tasks write different columns, none of the block; see `factorize` for the pivots.
        workers.each(count + right.div_ceil(RIGHT), &|task| unsafe {
            let places = column(pivots.read(own.clone(), 0..1), 0);
            let (l, below) = (a.read(own.clone(), own.clone()), a.read(own.end..m, own.clone()));
            let (matrix, columns) = if task < count {
                (&a, strips.columns(task))
            } else {
                let first = (task - count) * RIGHT;
                (&sides, first..right.min(first + RIGHT))
            };
            exchange(matrix.part(0..m, columns.clone()), own.start, places);
            let mut top = matrix.part(own.clone(), columns.clone());
            solve_lower(l, true, top.rb_mut());
            subtract_product(matrix.part(own.end..m, columns), below, top.rb());
            if strips.is_next(task) {
                factorize(next.clone());
            }
        });
    }
    if right == 0 {
        // SAFETY: tasks have different columns.
        workers.each(steps.div_ceil(BLOCK), &|task| unsafe {
            let own = block(task * BLOCK);
            let places = column(pivots.read(own.end..steps, 0..1), 0);
            exchange(a.part(0..m, own.clone()), own.end, places);
        });
    }
}

/// Exchanges row `first` with the first of these rows, the next one with the second, and so on.
fn exchange<T: MatrixElement>(mut a: MatMut<'_, T>, first: usize, places: &[usize]) {
    for j in 0..a.ncols() {
        let own = column_mut(a.rb_mut(), j);
        places.iter().enumerate().for_each(|(step, &place)| own.swap(first + step, place));
    }
}

/// Eliminates the columns of a block with at least as many rows: halves of it, with products between them.
fn panel<T: MatrixElement>(a: MatMut<'_, T>, pivots: &mut [usize]) {
    let (m, n) = (a.nrows(), a.ncols());
    if n <= FEW {
        widest(Eliminate, (a, MatMut::from_column_major_slice_mut(&mut [], m, 0), pivots));
        return;
    }
    let half = (n / 2).next_multiple_of(FEW);
    let (mut left, mut right) = a.split_at_col_mut(half);
    let (first, last) = pivots.split_at_mut(half);
    panel(left.rb_mut(), first);
    exchange(right.rb_mut(), 0, first);
    let (mut top, mut rest) = right.split_at_row_mut(half);
    let (l, below) = left.rb().split_at_row(half);
    solve_lower(l, true, top.rb_mut());
    subtract_product(rest.rb_mut(), below, top.rb());
    panel(rest, last);
    last.iter_mut().for_each(|place| *place += half);
    exchange(left, half, last);
}

vector_loop!(Eliminate, eliminate, (MatMut<'_, T>, MatMut<'_, T>, &mut [usize]) => ());

/// Column by column.
#[inline(always)]
fn eliminate<T: MatrixElement>((mut a, mut sides, pivots): (MatMut<'_, T>, MatMut<'_, T>, &mut [usize])) {
    for (k, pivot) in pivots.iter_mut().enumerate() {
        let place = k + place_of_largest(&column(a.rb(), k)[k..]);
        *pivot = place;
        if place != k {
            for matrix in [a.rb_mut(), sides.rb_mut()] {
                exchange(matrix, k, &[place]);
            }
        }
        let (done, rest) = a.rb_mut().split_at_col_mut(k + 1);
        let own = column_mut(done, k);
        let element = own[k];
        if element != T::of(0.0) {
            own[k + 1..].iter_mut().for_each(|x| *x /= element);
        }
        let own = &own[k + 1..];
        for mut matrix in [rest, sides.rb_mut()] {
            for j in 0..matrix.ncols() {
                let other = column_mut(matrix.rb_mut(), j);
                let factor = other[k];
                subtract_multiple(&mut other[k + 1..], own, factor);
            }
        }
    }
}

/// Like [`lu`], for a square matrix with its rows and columns exchanged. Step `k` exchanges row and column `k` with the row and column of
/// `pivots(k, ..)`, the first element by columns with the largest remaining magnitude. If it is zero, so are all remaining elements.
pub fn lu_complete(mut a: MatMut<'_, f64>, mut pivots: impl FnMut(usize, [usize; 2])) {
    let n = a.nrows();
    for k in 0..n {
        let mut best = (k, k);
        for j in k..n {
            for i in k..n {
                if a[(i, j)].abs() > a[best].abs() {
                    best = (i, j);
                }
            }
        }
        let (row, column) = best;
        pivots(k, [row, column]);
        for j in 0..n {
            let (upper, lower) = (a[(k, j)], a[(row, j)]);
            (a[(k, j)], a[(row, j)]) = (lower, upper);
        }
        for i in 0..n {
            let (left, right) = (a[(i, k)], a[(i, column)]);
            (a[(i, k)], a[(i, column)]) = (right, left);
        }
        let element = a[(k, k)];
        if element == 0.0 {
            break;
        }
        for i in k + 1..n {
            a[(i, k)] /= element;
        }
        for j in k + 1..n {
            let factor = a[(k, j)];
            for i in k + 1..n {
                a[(i, j)] -= a[(i, k)] * factor;
            }
        }
    }
}
