//! Eigenvectors and singular vectors.

use crate::{largest, noise};
use faer::Mat;
use spmdc_matrix::{Alone, eigh, eigh_scratch, is_finite, svd, svd_scratch};

/// Memory with contents of no use.
fn used(rows: usize, columns: usize) -> Mat<f64> {
    Mat::from_fn(rows, columns, |_, _| 1e9)
}

fn eigen(a: &Mat<f64>) -> (Vec<f64>, Mat<f64>) {
    let n = a.nrows();
    let (mut values, mut vectors) = (vec![1e9; n], used(n, n));
    eigh(a.clone().as_mut(), &mut values, vectors.as_mut(), &mut vec![1e9; eigh_scratch::<f64>(n)], &mut Alone);
    (values, vectors)
}

#[test]
fn eigenvectors_diagonalize_the_matrix() {
    for n in [0, 1, 2, 3, 10, 32, 33, 64, 65, 150, 300] {
        for scale in [1.0, 1e-200, 1e300] {
            let b = noise(n, n);
            let a = (&b + b.transpose()) * faer::Scale(scale);
            let (values, vectors) = eigen(&a);
            assert!(values.is_sorted(), "{n}");
            let made = Mat::from_fn(n, n, |i, j| vectors[(i, j)] * values[j]) * vectors.transpose();
            assert!(largest(&(&made - &a)) <= 1e-13 * scale * (n as f64), "{n} {scale}");
            assert!(largest(&(vectors.transpose() * &vectors - Mat::<f64>::identity(n, n))) < 1e-12, "{n}");
        }
    }
}

/// Equal eigenvalues, and nearly equal ones, whose vectors are not combined with others.
#[test]
fn eigenvectors_of_clusters_are_orthogonal() {
    let n = 200;
    let diagonal: [&dyn Fn(usize) -> f64; 4] =
        [&|_| 0.0, &|i| (i % 3) as f64, &|i| 1.0 + 1e-14 * i as f64, &|i| 10.0_f64.powi(-(i as i32) / 12)];
    for (case, values) in diagonal.into_iter().enumerate() {
        let exact = Mat::from_fn(n, n, |i, j| if i == j { values(i) } else { 0.0 });
        let glued = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
            0 => (i as f64 % 21.0 - 10.0).abs(),
            1 => {
                if i.max(j) % 21 == 0 {
                    1e-13
                } else {
                    1.0
                }
            }
            _ => 0.0,
        });
        let full = noise(n, n);
        let (_, turned) = eigen(&(&full + full.transpose()));
        let dense = &turned * &exact * turned.transpose();
        for (kind, a) in [exact, glued, (&dense + dense.transpose()) * faer::Scale(0.5)].into_iter().enumerate() {
            let (values, vectors) = eigen(&a);
            let made = Mat::from_fn(n, n, |i, j| vectors[(i, j)] * values[j]) * vectors.transpose();
            assert!(largest(&(&made - &a)) <= 1e-12 * (1.0 + largest(&a)), "{case} {kind}");
            assert!(largest(&(vectors.transpose() * &vectors - Mat::<f64>::identity(n, n))) < 1e-12, "{case} {kind}");
        }
    }
}

type Svd = (Vec<f64>, Mat<f64>, Mat<f64>);

fn decomposed(a: &Mat<f64>, full: bool) -> Svd {
    let (m, n) = (a.nrows(), a.ncols());
    let least = m.min(n);
    let (mut u, mut v) = match full {
        true => (used(m, m), used(n, n)),
        false => (used(m, least), used(n, least)),
    };
    let mut values = vec![1e9; least];
    let scratch = &mut vec![1e9; svd_scratch::<f64>(m, n, Some(full))];
    svd(a.clone().as_mut(), &mut values, Some((u.as_mut(), v.as_mut())), scratch, &mut Alone);
    (values, u, v)
}

#[test]
fn singular_vectors_give_the_matrix() {
    for (m, n) in [(0, 0), (3, 0), (0, 2), (1, 1), (4, 1), (1, 4), (5, 3), (3, 5), (40, 40), (100, 30), (30, 150)] {
        for full in [false, true] {
            let a = noise(m, n);
            let (values, u, v) = decomposed(&a, full);
            assert!(values.iter().rev().is_sorted() && values.iter().all(|&value| value >= 0.0), "{m} {n}");
            let least = values.len();
            let left = Mat::from_fn(m, least, |i, j| u[(i, j)] * values[j]);
            let right = v.as_ref().submatrix(0, 0, n, least).to_owned();
            assert!(largest(&(left * right.transpose() - &a)) < 1e-12, "{m} {n}");
            for q in [&u, &v] {
                let identity = Mat::<f64>::identity(q.ncols(), q.ncols());
                assert!(largest(&(q.transpose() * q - identity)) < 1e-12, "{m} {n} {full}");
            }
            let mut alone = vec![0.0; least];
            svd(a.clone().as_mut(), &mut alone, None, &mut vec![0.0; svd_scratch::<f64>(m, n, None)], &mut Alone);
            assert!(values.iter().zip(&alone).all(|(a, b)| (a - b).abs() < 1e-12), "{m} {n}");
        }
    }
}

#[test]
fn special_matrices_have_answers() {
    for n in [2, 40] {
        for bad in [f64::NAN, f64::INFINITY] {
            let mut a = noise(n, n);
            a[(n - 1, 0)] = bad;
            let (values, vectors) = eigen(&a);
            assert!(values.iter().all(|x| x.is_nan()) && vectors[(0, 0)].is_nan());
            let (values, u, _) = decomposed(&a, true);
            assert!(values.iter().all(|x| x.is_nan()) && u[(0, 0)].is_nan());
        }
        for element in [0.0, 1.0, 5e-324, f64::MAX] {
            let a = Mat::from_fn(n, n, |_, _| element);
            let (values, u, v) = decomposed(&a, false);
            let expected = element * n as f64;
            let close = (values[0] - expected).abs() <= 1e-12 * expected || element == 5e-324 || !expected.is_finite();
            assert!(close && !values[0].is_nan(), "{element}: {values:?}");
            assert!(is_finite(u.as_ref()) && is_finite(v.as_ref()), "{element}");
        }
    }
}

#[test]
fn signs_are_those_of_the_first_large_elements() {
    let a = Mat::from_fn(2, 2, |i, j| if i == j { 2.0 } else { 1.0 });
    let (_, vectors) = eigen(&a);
    let root = 0.5_f64.sqrt();
    let expected = Mat::from_fn(2, 2, |i, j| if (i, j) == (1, 0) { -root } else { root });
    assert!(largest(&(vectors - expected)) < 1e-15);
}

/// Numbers of f32 whose matrix has values that decrease by factors of ten, from the first one to the last.
fn graded(rows: usize, columns: usize, factor: f64) -> Mat<f64> {
    let least = rows.min(columns);
    let (_, u, _) = decomposed(&noise(rows, least), false);
    let (_, _, v) = decomposed(&noise(least, columns), false);
    let scaled = Mat::from_fn(rows, least, |i, j| u[(i, j)] * factor.powf(j as f64 / least as f64));
    scaled * v.transpose()
}

#[test]
fn singular_vectors_of_large_matrices_give_the_matrix() {
    let sizes = [(65, 65), (66, 65), (96, 96), (130, 70), (70, 130), (100, 97), (128, 128), (300, 67), (200, 200)];
    for (m, n) in sizes {
        let mut zeros = noise(m, n);
        zeros.col_mut(n / 2).fill(0.0);
        zeros.row_mut(m / 3).fill(0.0);
        let equal = Mat::from_fn(m, n, |i, j| f64::from(i % 5 == j % 5));
        let all = [noise(m, n), zeros, equal, graded(m, n, 1e-3), graded(m, n, 1e-9), Mat::zeros(m, n)];
        for (case, (a, full)) in all.iter().zip([true, false].into_iter().cycle()).enumerate() {
            let single = Mat::from_fn(m, n, |i, j| a[(i, j)] as f32);
            let least = m.min(n);
            let widths = if full { [m, n] } else { [least; 2] };
            let [mut u, mut v] =
                [(m, widths[0]), (n, widths[1])].map(|(rows, columns)| Mat::<f32>::zeros(rows, columns));
            let mut values = vec![0.0; least];
            let scratch = &mut vec![1e9; svd_scratch::<f32>(m, n, Some(full))];
            let made = Some((u.as_mut(), v.as_mut()));
            svd(single.clone().as_mut(), &mut values, made, scratch, &mut Alone);
            assert!(values.iter().rev().is_sorted() && values.iter().all(|&value| value >= 0.0), "{m} {n} {case}");
            let [u, v] = [u, v].map(|q| Mat::from_fn(q.nrows(), q.ncols(), |i, j| f64::from(q[(i, j)])));
            let left = Mat::from_fn(m, least, |i, j| u[(i, j)] * f64::from(values[j]));
            let made = left * v.subcols(0, least).transpose();
            let most = 1e-6 * f64::from(values[0]) * (least as f64).sqrt();
            assert!(largest(&(made - a)) <= most, "{m} {n} {case}");
            for q in [&u, &v] {
                let identity = Mat::<f64>::identity(q.ncols(), q.ncols());
                assert!(largest(&(q.transpose() * q - identity)) < 1e-5, "{m} {n} {case}");
            }
            let (exact, ..) = decomposed(&Mat::from_fn(m, n, |i, j| f64::from(single[(i, j)])), false);
            let error = exact.iter().zip(&values).fold(0.0, |most: f64, (a, b)| most.max((a - f64::from(*b)).abs()));
            assert!(error <= 2e-6 * exact[0], "{m} {n} {case}: {error}");
            let mut alone = vec![0.0; least];
            let scratch = &mut vec![1e9; svd_scratch::<f32>(m, n, None)];
            svd(single.clone().as_mut(), &mut alone, None, scratch, &mut Alone);
            assert!(alone == values, "{m} {n} {case}");
        }
    }
}
