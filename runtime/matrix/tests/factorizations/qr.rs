//! Reflections, and the signs of their results.

use crate::{largest, noise};
use faer::Mat;
use spmdc_matrix::{Alone, Reflections, qr_scratch, qr_signs};

#[test]
fn the_factors_multiply_to_the_matrix() {
    for (m, n) in [(0, 0), (0, 3), (3, 0), (1, 1), (5, 3), (3, 5), (32, 32), (33, 70), (70, 33), (100, 64), (90, 200)] {
        let a = noise(m, n);
        let mut scratch = vec![0.0; qr_scratch(m, n, m)];
        let mut factors = a.clone();
        let mut reflections = Reflections::of(factors.as_mut(), &mut scratch, &mut Alone);
        for columns in [m.min(n), m] {
            let mut q = Mat::zeros(m, columns);
            reflections.form_q(q.as_mut(), &mut Alone);
            let upper = Mat::from_fn(columns, n, |i, j| if i <= j { reflections.r(i, j) } else { 0.0 });
            assert!(largest(&(&q * upper - &a)) < 1e-13, "{m} {n}");
            assert!(largest(&(q.transpose() * &q - Mat::<f64>::identity(columns, columns))) < 1e-13, "{m} {n}");
        }
    }
}

#[test]
fn signs_follow_from_the_first_rows_of_q() {
    for (m, n) in [(1, 1), (3, 1), (5, 3), (40, 33), (9, 8)] {
        let mut a = noise(m, n);
        let mut scratch = vec![0.0; qr_scratch(m, n, n)];
        let mut reflections = Reflections::of(a.as_mut(), &mut scratch, &mut Alone);
        let mut q = Mat::zeros(m, n);
        reflections.form_q(q.as_mut(), &mut Alone);
        for flip in [1.0, -1.0] {
            let mut top = Mat::from_fn(n, n, |i, j| q[(i, j)] * if j.is_multiple_of(2) { flip } else { 1.0 });
            let expected = |j: usize| if j.is_multiple_of(2) { flip } else { 1.0 };
            qr_signs(top.as_mut(), f64::EPSILON, |j, sign| {
                assert!(!reflections.is_reflected(j) || sign == expected(j), "{m} {n} {j}")
            });
        }
    }
}

#[test]
fn a_column_that_is_zero_below_the_diagonal_keeps_its_sign() {
    let mut a = Mat::from_fn(2, 2, |i, j| [[3.0, 1.0], [0.0, 2.0]][i][j]);
    let mut scratch = vec![0.0; qr_scratch(2, 2, 0)];
    let reflections = Reflections::of(a.as_mut(), &mut scratch, &mut Alone);
    assert_eq!([0, 1].map(|j| (reflections.is_reflected(j), reflections.r(j, j))), [(false, 3.0), (false, 2.0)]);
}

#[test]
fn columns_of_very_large_and_very_small_elements_have_reflections() {
    for scale in [1e30_f32, 1e-30] {
        let a = Mat::from_fn(5, 2, |i, j| scale * noise(5, 2)[(i, j)] as f32);
        let (mut factors, mut scratch) = (a.clone(), vec![0.0; qr_scratch(5, 2, 2)]);
        let reflections = Reflections::of(factors.as_mut(), &mut scratch, &mut Alone);
        let length = (0..5).map(|i| f64::from(a[(i, 0)]).powi(2)).sum::<f64>().sqrt();
        assert!((f64::from(reflections.r(0, 0).abs()) / length - 1.0).abs() < 1e-6, "{scale}");
    }
}
