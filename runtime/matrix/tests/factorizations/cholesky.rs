//! Cholesky factors, whole and by blocks of rows.

use crate::{largest, noise};
use faer::Mat;
use spmdc_matrix::{Alone, BATCH, cholesky, cholesky_batch, cholesky_rows};

#[test]
fn the_factor_times_its_transpose_is_the_matrix() {
    for n in [0, 1, 2, 31, 32, 33, 100, 200] {
        let b = noise(n, n);
        let a = &b * b.transpose() + Mat::<f64>::identity(n, n);
        let mut l = a.clone();
        assert!(cholesky(l.as_mut(), &mut Alone));
        let l = Mat::from_fn(n, n, |i, j| if i < j { 0.0 } else { l[(i, j)] });
        assert!(largest(&(&l * l.transpose() - &a)) < 1e-12, "{n}");
    }
}

#[test]
fn blocks_of_rows_give_the_factor() {
    for (n, height) in [(1, 1), (5, 2), (7, 3), (90, 40)] {
        let b = noise(n, n);
        let a = &b * b.transpose() + Mat::<f64>::identity(n, n);
        let mut whole = a.clone();
        assert!(cholesky(whole.as_mut(), &mut Alone));
        let (mut l, mut rows) = (a.clone(), Mat::zeros(0, 0));
        for end in (0..n).step_by(height) {
            for first in (0..n).step_by(height) {
                let block = l.as_mut().subrows_mut(first, height.min(n - first));
                cholesky_rows(block, first, rows.as_ref(), &mut vec![0.0; height * height], &mut Alone);
            }
            let next = (end + height).min(n);
            rows = l.as_ref().submatrix(end, 0, next - end, next).to_owned();
        }
        let whole = Mat::from_fn(n, n, |i, j| if i < j { 0.0 } else { whole[(i, j)] });
        assert!(largest(&(&l - &whole)) < 1e-12, "{n} {height}");
    }
}

#[test]
fn a_matrix_that_is_not_positive_definite_is_refused() {
    for at in [0, 40, 69] {
        let mut a = Mat::<f64>::identity(70, 70);
        for bad in [0.0, -1.0, f64::NAN] {
            a[(at, at)] = bad;
            assert!(!cholesky(a.clone().as_mut(), &mut Alone), "{bad} at {at}");
        }
    }
}

#[test]
fn matrices_side_by_side_have_the_bits_of_one() {
    for n in [1, 2, 7, 16, 32] {
        let matrix = |lane: usize| {
            let b = noise(n, n + lane).subcols(lane, n).to_owned();
            // One of them is not positive definite.
            &b * b.transpose() + Mat::<f64>::identity(n, n) * if lane == 3 { -9.0 } else { 1.0 }
        };
        let matrices: Vec<Mat<f64>> = (0..BATCH).map(matrix).collect();
        let place = |at: usize| std::array::from_fn(|lane| matrices[lane][(at % n, at / n)]);
        let mut all: Vec<[f64; BATCH]> = (0..n * n).map(place).collect();
        let found = cholesky_batch(&mut all, n);
        for (lane, mut matrix) in matrices.iter().cloned().enumerate() {
            assert_eq!(cholesky(matrix.as_mut(), &mut Alone), found[lane], "{n} {lane}");
            let is_same = |at: usize| all[at][lane].to_bits() == matrix[(at % n, at / n)].to_bits();
            assert!(!found[lane] || (0..n * n).all(is_same), "{n} {lane}");
        }
        assert!(!found[3]);
    }
}
