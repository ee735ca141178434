//! Solutions of triangular systems.

use crate::{largest, noise};
use faer::Mat;
use spmdc_matrix::{Alone, solve_triangular};

#[test]
fn the_matrix_times_the_solution_is_the_right_side() {
    for n in [0, 1, 5, 32, 33, 70] {
        for columns in [0, 1, 3, 40] {
            let full = noise(n, n) + Mat::<f64>::identity(n, n);
            let b = noise(n, columns);
            for unit in [false, true] {
                let l = Mat::from_fn(n, n, |i, j| match i.cmp(&j) {
                    std::cmp::Ordering::Less => 0.0,
                    std::cmp::Ordering::Equal if unit => 1.0,
                    std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => full[(i, j)],
                });
                let mut x = b.clone();
                solve_triangular(full.as_ref(), (true, unit), x.as_mut(), &mut Alone);
                let scale = 1.0 + largest(&x);
                assert!(largest(&(&l * &x - &b)) < 1e-12 * scale, "{n} {columns} {unit}");
                let mut y = b.clone();
                let turned = full.transpose().to_owned();
                solve_triangular(turned.as_ref(), (false, unit), y.as_mut(), &mut Alone);
                let scale = 1.0 + largest(&y);
                assert!(largest(&(l.transpose() * &y - &b)) < 1e-12 * scale, "{n} {columns} {unit}, transposed");
            }
        }
    }
}

#[test]
fn a_zero_on_the_diagonal_divides() {
    let l = Mat::<f64>::zeros(2, 2);
    let mut b = Mat::from_fn(2, 1, |_, _| 1.0);
    solve_triangular(l.as_ref(), (true, false), b.as_mut(), &mut Alone);
    assert!(b[(0, 0)].is_infinite() && b[(1, 0)].is_nan());
}
