//! Solutions of triangular systems, by forward substitution.

use crate::{BLOCK, subtract_product};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef};

/// `b` becomes x with `l x = b`; the elements of `l` above the diagonal are not read, nor those on it if `unit`, for which all are 1.
pub(crate) fn solve_lower(l: MatRef<'_, f64>, unit: bool, mut b: MatMut<'_, f64>) {
    let n = l.nrows();
    assert_eq!((n, n), (l.ncols(), b.nrows()), "the matrix is square, and has the rows of the right side");
    for first in (0..n).step_by(BLOCK) {
        let width = BLOCK.min(n - first);
        let (_, own) = b.rb_mut().split_at_row_mut(first);
        let (mut own, rest) = own.split_at_row_mut(width);
        let diagonal = l.submatrix(first, first, width, width);
        for j in 0..own.ncols() {
            for k in 0..width {
                let solved = if unit { own[(k, j)] } else { own[(k, j)] / diagonal[(k, k)] };
                own[(k, j)] = solved;
                for i in k + 1..width {
                    own[(i, j)] -= diagonal[(i, k)] * solved;
                }
            }
        }
        subtract_product(rest, l.submatrix(first + width, first, n - first - width, width), own.rb());
    }
}

/// `b` becomes x with `a x = b` for a triangular matrix: see `solve_lower`. A matrix with the elements on and above the diagonal is one with those
/// below, in the reverse order.
pub fn solve_triangular(a: MatRef<'_, f64>, lower: bool, unit: bool, b: MatMut<'_, f64>) {
    if lower {
        solve_lower(a, unit, b);
    } else {
        solve_lower(a.reverse_rows_and_cols(), unit, b.reverse_rows_mut());
    }
}

/// `b` becomes x with `x lᵀ = b`, for a block of few columns.
pub(crate) fn solve_right_transposed(l: MatRef<'_, f64>, mut b: MatMut<'_, f64>) {
    for k in 0..l.nrows() {
        let pivot = l[(k, k)];
        for i in 0..b.nrows() {
            b[(i, k)] /= pivot;
        }
        for j in k + 1..l.nrows() {
            let factor = l[(j, k)];
            for i in 0..b.nrows() {
                b[(i, j)] -= b[(i, k)] * factor;
            }
        }
    }
}
