//! Elimination with row exchanges.

use crate::{BLOCK, solve_lower, subtract_product};
use faer::MatMut;
use faer::prelude::{Reborrow, ReborrowMut};

/// The matrix becomes U on and above the diagonal and L below it. L has an implicit diagonal of 1. They factorize the matrix with its rows
/// exchanged: step `k` exchanges row `k` and row `pivots[k]`, the first row with the largest magnitude in the column. A column without a
/// nonzero candidate is not changed, so that an element of the diagonal is zero.
pub fn lu(mut a: MatMut<'_, f64>, mut pivots: impl FnMut(usize, usize)) {
    let (m, n) = (a.nrows(), a.ncols());
    let steps = m.min(n);
    for first in (0..steps).step_by(BLOCK) {
        let width = BLOCK.min(steps - first);
        for k in first..first + width {
            let pivot = largest(a.rb(), k);
            pivots(k, pivot);
            if pivot != k {
                for j in 0..n {
                    let (upper, lower) = (a[(k, j)], a[(pivot, j)]);
                    (a[(k, j)], a[(pivot, j)]) = (lower, upper);
                }
            }
            let element = a[(k, k)];
            if element != 0.0 {
                for i in k + 1..m {
                    a[(i, k)] /= element;
                }
            }
            for j in k + 1..first + width {
                let factor = a[(k, j)];
                for i in k + 1..m {
                    a[(i, j)] -= a[(i, k)] * factor;
                }
            }
        }
        let own = a.rb_mut().submatrix_mut(first, first, m - first, n - first);
        let (diagonal, mut right, below, rest) = own.split_at_mut(width, width);
        solve_lower(diagonal.rb(), true, right.rb_mut());
        subtract_product(rest, below.rb(), right.rb());
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

/// The row from `k` on with the largest magnitude in column `k`; of equal ones the first.
fn largest(a: faer::MatRef<'_, f64>, k: usize) -> usize {
    let mut best = k;
    for i in k + 1..a.nrows() {
        if a[(i, k)].abs() > a[(best, k)].abs() {
            best = i;
        }
    }
    best
}
