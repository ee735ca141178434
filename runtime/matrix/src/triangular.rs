//! Solutions of triangular systems, by substitution.

use crate::lanes::{column, column_mut, subtract_multiple, vector_loop, widest};
use crate::workers::SharedMatrix;
use crate::{MatrixElement, RIGHT, SMALL, Workers, subtract_product};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef};

/// Rows that are solved in registers.
const ROWS: usize = 16;
/// Columns that are solved side by side.
const COLUMNS: usize = 4;

/// `b` becomes x with `a x = b` for a triangular matrix with its elements on and below the diagonal if `lower`, otherwise on and above
/// it. The other elements are not read, nor those on the diagonal if `unit`, for which all are 1.
///
/// The bits of a column of x do not depend on the other columns, if the matrix has at most [`SMALL`] rows or `b` whole groups of
/// [`RIGHT`] columns.
pub fn solve_triangular<T: MatrixElement>(
    a: MatRef<'_, T>,
    (lower, unit): (bool, bool),
    b: MatMut<'_, T>,
    workers: &mut dyn Workers,
) {
    let (n, columns) = (b.nrows(), b.ncols());
    assert_eq!((n, n), (a.nrows(), a.ncols()), "the matrix is square, and has the rows of the right side");
    let b = SharedMatrix::new(b);
    workers.each(columns.div_ceil(RIGHT), &|task| {
        let first = task * RIGHT;
        // SAFETY: tasks have different columns.
        let own = unsafe { b.part(0..n, first..columns.min(first + RIGHT)) };
        if lower { solve_lower(a, unit, own) } else { solve_upper(a, unit, own) }
    });
}

/// See [`solve_triangular`]; the columns are those of one task.
pub(crate) fn solve_lower<T: MatrixElement>(l: MatRef<'_, T>, unit: bool, mut b: MatMut<'_, T>) {
    let n = l.nrows();
    if n <= SMALL {
        return widest(LowerColumns, (l, unit, b));
    }
    lower_blocks(l, unit, b.rb_mut());
}

fn lower_blocks<T: MatrixElement>(l: MatRef<'_, T>, unit: bool, b: MatMut<'_, T>) {
    let n = l.nrows();
    if n <= ROWS {
        return widest(LowerInRegisters, (l, unit, b));
    }
    let half = (n / 2).next_multiple_of(ROWS);
    let (mut first, mut rest) = b.split_at_row_mut(half);
    lower_blocks(l.submatrix(0, 0, half, half), unit, first.rb_mut());
    subtract_product(rest.rb_mut(), l.submatrix(half, 0, n - half, half), first.rb());
    lower_blocks(l.submatrix(half, half, n - half, n - half), unit, rest);
}

fn solve_upper<T: MatrixElement>(u: MatRef<'_, T>, unit: bool, b: MatMut<'_, T>) {
    if u.nrows() <= SMALL { widest(UpperColumns, (u, unit, b)) } else { upper_blocks(u, unit, b) }
}

fn upper_blocks<T: MatrixElement>(u: MatRef<'_, T>, unit: bool, b: MatMut<'_, T>) {
    let n = u.nrows();
    if n <= ROWS {
        return widest(UpperInRegisters, (u, unit, b));
    }
    let half = (n / 2).next_multiple_of(ROWS);
    let (mut first, mut rest) = b.split_at_row_mut(half);
    upper_blocks(u.submatrix(half, half, n - half, n - half), unit, rest.rb_mut());
    subtract_product(first.rb_mut(), u.submatrix(0, half, half, n - half), rest.rb());
    upper_blocks(u.submatrix(0, 0, half, half), unit, first);
}

vector_loop!(LowerColumns, lower_columns, (MatRef<'_, T>, bool, MatMut<'_, T>) => ());
vector_loop!(UpperColumns, upper_columns, (MatRef<'_, T>, bool, MatMut<'_, T>) => ());
vector_loop!(LowerInRegisters, lower_in_registers, (MatRef<'_, T>, bool, MatMut<'_, T>) => ());
vector_loop!(UpperInRegisters, upper_in_registers, (MatRef<'_, T>, bool, MatMut<'_, T>) => ());

#[inline(always)]
fn lower_in_registers<T: MatrixElement>(system: (MatRef<'_, T>, bool, MatMut<'_, T>)) {
    in_registers::<T, true>(system);
}

#[inline(always)]
fn upper_in_registers<T: MatrixElement>(system: (MatRef<'_, T>, bool, MatMut<'_, T>)) {
    in_registers::<T, false>(system);
}

#[inline(always)]
fn lower_columns<T: MatrixElement>((l, unit, mut b): (MatRef<'_, T>, bool, MatMut<'_, T>)) {
    let n = l.nrows();
    for j in 0..b.ncols() {
        let own = column_mut(b.rb_mut(), j);
        for k in 0..n {
            let known = column(l, k);
            let solved = if unit { own[k] } else { own[k] / known[k] };
            own[k] = solved;
            subtract_multiple(&mut own[k + 1..], &known[k + 1..], solved);
        }
    }
}

#[inline(always)]
fn upper_columns<T: MatrixElement>((u, unit, mut b): (MatRef<'_, T>, bool, MatMut<'_, T>)) {
    let n = u.nrows();
    for j in 0..b.ncols() {
        let own = column_mut(b.rb_mut(), j);
        for k in (0..n).rev() {
            let known = column(u, k);
            let solved = if unit { own[k] } else { own[k] / known[k] };
            own[k] = solved;
            subtract_multiple(&mut own[..k], &known[..k], solved);
        }
    }
}

/// Systems of at most [`ROWS`] rows: each step subtracts from all rows. Those that are solved have been saved, and rows beyond the
/// matrix are dropped.
#[inline(always)]
fn in_registers<T: MatrixElement, const LOWER: bool>((a, unit, mut b): (MatRef<'_, T>, bool, MatMut<'_, T>)) {
    let (n, zero, one) = (a.nrows(), T::of(0.0), T::of(1.0));
    let (mut factors, mut pivots) = ([[zero; ROWS]; ROWS], [one; ROWS]);
    for k in 0..n {
        let own = column(a, k);
        if !unit {
            pivots[k] = own[k];
        }
        let unsolved = if LOWER { k + 1..n } else { 0..k };
        factors[k][unsolved.clone()].copy_from_slice(&own[unsolved]);
    }
    for first in (0..b.ncols()).step_by(COLUMNS) {
        let count = COLUMNS.min(b.ncols() - first);
        let (mut left, mut solved) = ([[zero; ROWS]; COLUMNS], [[zero; ROWS]; COLUMNS]);
        for (j, left) in left.iter_mut().enumerate().take(count) {
            left[..n].copy_from_slice(column(b.rb(), first + j));
        }
        for step in 0..ROWS {
            let k = if LOWER { step } else { ROWS - 1 - step };
            for j in 0..COLUMNS {
                let x = if unit { left[j][k] } else { left[j][k] / pivots[k] };
                solved[j][k] = x;
                for i in 0..ROWS {
                    left[j][i] -= factors[k][i] * x;
                }
            }
        }
        for (j, solved) in solved.iter().enumerate().take(count) {
            column_mut(b.rb_mut(), first + j).copy_from_slice(&solved[..n]);
        }
    }
}
