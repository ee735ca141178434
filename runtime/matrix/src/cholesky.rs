//! Cholesky factors.

use crate::{BLOCK, solve_lower, solve_right_transposed, subtract_product};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef};

/// The lower triangle becomes L with `a = L Lᵀ`; the elements above the diagonal are neither read nor kept. False if the matrix is
/// not positive definite, or has NaN: then the contents are of no use.
pub fn cholesky(mut a: MatMut<'_, f64>) -> bool {
    let n = a.nrows();
    assert_eq!(n, a.ncols(), "the matrix is square");
    for first in (0..n).step_by(BLOCK) {
        let width = BLOCK.min(n - first);
        let own = a.rb_mut().submatrix_mut(first, first, n - first, n - first);
        let (mut diagonal, _, mut below, mut rest) = own.split_at_mut(width, width);
        if !factorize(diagonal.rb_mut()) {
            return false;
        }
        solve_right_transposed(diagonal.rb(), below.rb_mut());
        let below = below.rb();
        for column in (0..rest.ncols()).step_by(BLOCK) {
            let columns = BLOCK.min(rest.ncols() - column);
            let rows = rest.nrows() - column;
            let part = rest.rb_mut().submatrix_mut(column, column, rows, columns);
            let left = below.submatrix(column, 0, rows, width);
            subtract_product(part, left, left.submatrix(0, 0, columns, width).transpose());
        }
    }
    true
}

/// A step of the factorization of a matrix whose rows are split: `a` is a block of rows from `first` on, and `rows` are the rows of L that
/// end before row `rows.ncols()`. Rows from there on get their elements of L in the columns of these rows. Then the block that begins there
/// is completed, with zeros above the diagonal, or with NaN if a pivot is not positive.
pub fn cholesky_rows(mut a: MatMut<'_, f64>, first: usize, rows: MatRef<'_, f64>) {
    let (m, n, width, end) = (a.nrows(), a.ncols(), rows.nrows(), rows.ncols());
    if first < end || m == 0 {
        return;
    }
    assert!(width <= end && first + m <= n, "rows of one matrix");
    let start = end - width;
    let (known, rest) = a.rb_mut().split_at_col_mut(start);
    let mut own = rest.subcols_mut(0, width);
    subtract_product(own.rb_mut(), known.rb(), rows.subcols(0, start).transpose());
    solve_lower(rows.subcols(start, width), false, own.transpose_mut());
    if first > end {
        return;
    }
    let (known, mut rest) = a.rb_mut().split_at_col_mut(end);
    let mut diagonal = rest.rb_mut().subcols_mut(0, m);
    subtract_product(diagonal.rb_mut(), known.rb(), known.rb().transpose());
    let found = cholesky(diagonal);
    for j in 0..rest.ncols() {
        for i in 0..m {
            if i < j {
                rest[(i, j)] = 0.0;
            } else if !found {
                rest[(i, j)] = f64::NAN;
            }
        }
    }
}

/// One block, by columns (the order of Cholesky and Crout), each as a slice: a batch of small matrices spends its time here.
fn factorize(mut a: MatMut<'_, f64>) -> bool {
    for j in 0..a.nrows() {
        let (done, mut rest) = a.rb_mut().split_at_col_mut(j);
        let own = rest.rb_mut().col_mut(0).try_as_col_major_mut().expect("columns are contiguous").as_slice_mut();
        for column in done.rb().col_iter() {
            let column = column.try_as_col_major().expect("columns are contiguous").as_slice();
            let factor = column[j];
            own[j..].iter_mut().zip(&column[j..]).for_each(|(own, known)| *own -= known * factor);
        }
        let pivot = own[j];
        // NaN is not positive, either.
        if pivot.is_nan() || pivot <= 0.0 {
            return false;
        }
        let root = pivot.sqrt();
        own[j] = root;
        own[j + 1..].iter_mut().for_each(|element| *element /= root);
    }
    true
}
