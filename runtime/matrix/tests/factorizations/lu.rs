//! Elimination with exchanges of rows.

use crate::{largest, noise};
use faer::Mat;
use spmdc_matrix::{Alone, RIGHT, is_finite, lu, solve_triangular};

#[test]
fn the_factors_multiply_to_the_matrix_with_its_rows_exchanged() {
    for (m, n) in
        [(0, 0), (1, 1), (3, 3), (32, 32), (33, 33), (80, 80), (50, 20), (20, 50), (70, 40), (70, 200), (200, 131)]
    {
        let a = noise(m, n);
        let (mut factors, mut expected) = (a.clone(), a.clone());
        let steps = m.min(n);
        let mut pivots = vec![0; steps];
        lu(factors.as_mut(), Mat::<f64>::zeros(m, 0).as_mut(), &mut pivots, &mut Alone);
        for (k, pivot) in pivots.into_iter().enumerate() {
            for j in 0..n {
                let (upper, lower) = (expected[(k, j)], expected[(pivot, j)]);
                (expected[(k, j)], expected[(pivot, j)]) = (lower, upper);
            }
        }
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
    lu(a.as_mut(), Mat::<f64>::zeros(3, 0).as_mut(), &mut [0; 3], &mut Alone);
    assert_eq!(a[(1, 1)], 0.0);
    assert!(is_finite(a.as_ref()));
}

#[test]
fn further_columns_are_eliminated_with_the_matrix() {
    for n in [1, 32, 33, 70, 200] {
        let (a, b) = (noise(n, n) + Mat::<f64>::identity(n, n), noise(n, RIGHT));
        let (mut factors, mut x) = (a.clone(), b.clone());
        lu(factors.as_mut(), x.as_mut(), &mut vec![0; n], &mut Alone);
        solve_triangular(factors.as_ref(), (false, false), x.as_mut(), &mut Alone);
        assert!(largest(&(&a * &x - &b)) < 1e-12 * (1.0 + largest(&x)), "{n}");
    }
}
