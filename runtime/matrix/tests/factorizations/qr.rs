//! Reflections, and the signs of their results.

use crate::{largest, noise};
use faer::Mat;
use spmdc_matrix::{form_q, qr, qr_scratch, qr_signs};

#[test]
fn the_factors_multiply_to_the_matrix() {
    for (m, n) in [(0, 0), (0, 3), (3, 0), (1, 1), (5, 3), (3, 5), (32, 32), (33, 70), (70, 33), (100, 64)] {
        let a = noise(m, n);
        let steps = m.min(n);
        let (mut tau, mut scratch) = (vec![0.0; steps], vec![0.0; qr_scratch(steps, m, m.max(n))]);
        let mut r = a.clone();
        qr(r.as_mut(), &mut tau, &mut scratch);
        for columns in [steps, m] {
            let mut q = Mat::zeros(m, columns);
            form_q(r.as_ref(), &tau, q.as_mut(), &mut scratch);
            let upper = Mat::from_fn(columns, n, |i, j| if i <= j { r[(i, j)] } else { 0.0 });
            assert!(largest(&(&q * upper - &a)) < 1e-13, "{m} {n}");
            assert!(largest(&(q.transpose() * &q - Mat::<f64>::identity(columns, columns))) < 1e-13, "{m} {n}");
        }
    }
}

#[test]
fn signs_follow_from_the_first_rows_of_q() {
    for (m, n) in [(1, 1), (3, 1), (5, 3), (40, 33), (9, 8)] {
        let mut r = noise(m, n);
        let (mut tau, mut scratch) = (vec![0.0; n], vec![0.0; qr_scratch(n, m, n)]);
        qr(r.as_mut(), &mut tau, &mut scratch);
        let mut q = Mat::zeros(m, n);
        form_q(r.as_ref(), &tau, q.as_mut(), &mut scratch);
        for flip in [1.0, -1.0] {
            let mut top = Mat::from_fn(n, n, |i, j| q[(i, j)] * if j.is_multiple_of(2) { flip } else { 1.0 });
            let expected = |j: usize| if j.is_multiple_of(2) { flip } else { 1.0 };
            let is_reflected = |j: usize| tau[j] != 0.0;
            qr_signs(top.as_mut(), f64::EPSILON, |j, sign| {
                assert!(!is_reflected(j) || sign == expected(j), "{m} {n} {j}")
            });
        }
    }
}

#[test]
fn a_column_that_is_zero_below_the_diagonal_keeps_its_sign() {
    let mut a = Mat::from_fn(2, 2, |i, j| [[3.0, 1.0], [0.0, 2.0]][i][j]);
    let mut tau = [1.0; 2];
    qr(a.as_mut(), &mut tau, &mut vec![0.0; qr_scratch(2, 2, 2)]);
    assert_eq!((tau, a[(0, 0)], a[(1, 1)]), ([0.0; 2], 3.0, 2.0));
}
