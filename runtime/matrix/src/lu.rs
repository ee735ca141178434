//! Elimination with row exchanges.

use crate::{BLOCK, solve_lower, subtract_product};
use faer::MatMut;
use faer::prelude::{Reborrow, ReborrowMut};

/// The matrix becomes U on and above the diagonal, and below it L, whose diagonal is 1, of the matrix with its rows exchanged: in step
/// `k` row `k` and row `pivots[k]`, whose element has the largest magnitude in the column, the first of those. A column without
/// such an element is left as it is, so that an element of the diagonal is zero.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{largest, noise};
    use faer::Mat;

    #[test]
    fn the_factors_multiply_to_the_matrix_with_its_rows_exchanged() {
        for (m, n) in [(0, 0), (1, 1), (3, 3), (32, 32), (33, 33), (80, 80), (50, 20), (20, 50), (70, 40)] {
            let a = noise(m, n);
            let (mut factors, mut expected) = (a.clone(), a.clone());
            lu(factors.as_mut(), |k, pivot| {
                for j in 0..n {
                    let (upper, lower) = (expected[(k, j)], expected[(pivot, j)]);
                    (expected[(k, j)], expected[(pivot, j)]) = (lower, upper);
                }
            });
            let steps = m.min(n);
            let l = Mat::from_fn(m, steps, |i, j| {
                if i == j {
                    1.0
                } else if i > j {
                    factors[(i, j)]
                } else {
                    0.0
                }
            });
            let u = Mat::from_fn(steps, n, |i, j| if i <= j { factors[(i, j)] } else { 0.0 });
            assert!(largest(&(l * u - expected)) < 1e-13, "{m} {n}");
            assert!(l_is_small(&factors), "{m} {n}");
        }
    }

    fn l_is_small(factors: &Mat<f64>) -> bool {
        (0..factors.ncols()).all(|j| (j + 1..factors.nrows()).all(|i| factors[(i, j)].abs() <= 1.0))
    }

    #[test]
    fn a_singular_matrix_has_a_zero_on_the_diagonal() {
        let mut a = Mat::from_fn(3, 3, |i, j| [[1.0, 2.0, 5.0], [2.0, 4.0, 1.0], [3.0, 6.0, 2.0]][i][j]);
        lu(a.as_mut(), |_, _| {});
        assert_eq!(a[(1, 1)], 0.0);
        assert!(crate::is_finite(a.as_ref()));
    }
}
