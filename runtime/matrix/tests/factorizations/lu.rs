//! Elimination with exchanges of rows.

use crate::{largest, noise};
use faer::Mat;
use spmdc_matrix::{is_finite, lu};

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
    assert!(is_finite(a.as_ref()));
}
