//! Eigenvalues of symmetric matrices, and singular values, by `faer`: reduction to two diagonals, then implicit QR steps, or divide and
//! conquer for large matrices.

use crate::is_finite;
use faer::diag::DiagMut;
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::svd::{self as factor, ComputeSvdVectors};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef, Par, Spec};
use std::mem::MaybeUninit;

fn elements(request: StackReq) -> usize {
    request.unaligned_bytes_required().div_ceil(size_of::<f64>())
}

fn stack(scratch: &mut [f64]) -> &mut MemStack {
    let len = size_of_val(scratch);
    let first = scratch.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // SAFETY: the bytes of the slice, which is borrowed for as long; any bytes are f64s.
    MemStack::new(unsafe { std::slice::from_raw_parts_mut(first, len) })
}

/// Elements of the scratch memory of [`eigh`] for a matrix of `n` rows.
pub fn eigh_scratch(n: usize) -> usize {
    if n == 0 {
        return 0;
    }
    elements(evd::self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, Par::Seq, Spec::default()))
}

/// The eigenvalues of a symmetric matrix, of which the lower triangle is read, in ascending order, and their vectors as columns of
/// length one, signed so that the first large element is positive. The matrix is overwritten. NaN if an element that is read is not finite, or if the
/// iteration does not converge.
pub fn eigh(mut a: MatMut<'_, f64>, values: &mut [f64], mut vectors: MatMut<'_, f64>, scratch: &mut [f64]) {
    let n = a.nrows();
    assert!(n == a.ncols() && n == values.len() && scratch.len() >= eigh_scratch(n), "memory for {n} eigenvalues");
    for j in 0..n {
        for i in 0..j {
            a[(i, j)] = a[(j, i)];
        }
    }
    let found = is_finite(a.rb()) && {
        let scale = scale(a.rb());
        scaled(a.rb_mut(), scale.recip());
        let diagonal = DiagMut::from_slice_mut(values);
        let vectors = Some(vectors.rb_mut());
        let found = evd::self_adjoint_evd(a.rb(), diagonal, vectors, Par::Seq, stack(scratch), Spec::default()).is_ok();
        values.iter_mut().for_each(|value| *value *= scale);
        found
    };
    if !found {
        values.fill(f64::NAN);
        vectors.fill(f64::NAN);
    }
    for j in 0..n {
        if sign(vectors.rb(), j) < 0.0 {
            negate(vectors.rb_mut(), j);
        }
    }
}

fn kind(columns: Option<usize>, least: usize) -> ComputeSvdVectors {
    match columns {
        None => ComputeSvdVectors::No,
        Some(columns) if columns > least => ComputeSvdVectors::Full,
        Some(_) => ComputeSvdVectors::Thin,
    }
}

/// Elements of the scratch memory of [`svd`]; `vectors` is None without vectors, else whether there are as many as rows and columns.
pub fn svd_scratch(rows: usize, columns: usize, vectors: Option<bool>) -> usize {
    let least = rows.min(columns);
    if least == 0 {
        return 0;
    }
    let of = |size: usize| kind(vectors.map(|full| if full { size } else { least }), least);
    elements(factor::svd_scratch::<f64>(rows, columns, of(rows), of(columns), Par::Seq, Spec::default()))
}

/// The singular values in descending order, and the left and right vectors as columns: as many as there are values, or as rows and
/// columns. Left vectors are signed as eigenvectors, and right ones that which belongs to them. The matrix is overwritten.
/// NaN if an element is not finite, or if the iteration does not converge.
pub fn svd(
    mut a: MatMut<'_, f64>,
    values: &mut [f64],
    mut vectors: Option<(MatMut<'_, f64>, MatMut<'_, f64>)>,
    scratch: &mut [f64],
) {
    let (m, n) = (a.nrows(), a.ncols());
    assert_eq!(values.len(), m.min(n), "a singular value for each row or column");
    if let Some((u, v)) = &mut vectors {
        // `faer` 0.24 leaves a part of square matrices of vectors as it was.
        u.fill(0.0);
        v.fill(0.0);
    }
    let found = is_finite(a.rb()) && {
        let scale = scale(a.rb());
        scaled(a.rb_mut(), scale.recip());
        let diagonal = DiagMut::from_slice_mut(values);
        let (u, v) = vectors.as_mut().map(|(u, v)| (u.rb_mut(), v.rb_mut())).unzip();
        let found = factor::svd(a.rb(), diagonal, u, v, Par::Seq, stack(scratch), Spec::default()).is_ok();
        values.iter_mut().for_each(|value| *value *= scale);
        found
    };
    if !found {
        values.fill(f64::NAN);
    }
    if let Some((u, v)) = &mut vectors {
        if !found {
            u.fill(f64::NAN);
            v.fill(f64::NAN);
        }
        for j in 0..u.ncols() {
            if sign(u.as_ref(), j) < 0.0 {
                negate(u.rb_mut(), j);
                if j < v.ncols() && j < values.len() {
                    negate(v.rb_mut(), j);
                }
            }
        }
        for j in values.len()..v.ncols() {
            if sign(v.as_ref(), j) < 0.0 {
                negate(v.rb_mut(), j);
            }
        }
    }
}

/// The power of two near the largest magnitude: divided by it, a matrix has neither very large nor very small norms, and the same bits.
fn scale(a: MatRef<'_, f64>) -> f64 {
    let largest = a.col_iter().flat_map(|column| column.iter()).fold(0.0, |largest: f64, x| largest.max(x.abs()));
    if largest == 0.0 {
        return 1.0;
    }
    // Its reciprocal is a number, too.
    f64::from_bits(largest.to_bits() & 0x7ff0_0000_0000_0000).clamp(2.0_f64.powi(-1021), 2.0_f64.powi(1021))
}

fn scaled(a: MatMut<'_, f64>, factor: f64) {
    a.col_iter_mut().for_each(|column| column.iter_mut().for_each(|element| *element *= factor));
}

/// Of the elements whose magnitude is at least nine tenths of the largest, the first is positive: so rounding, which may exchange equal
/// magnitudes, rarely changes a sign.
fn sign(vectors: MatRef<'_, f64>, j: usize) -> f64 {
    let column = || vectors.col(j).iter().copied();
    let largest = column().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    column().find(|x| x.abs() >= 0.9 * largest).unwrap_or(1.0)
}

fn negate(vectors: MatMut<'_, f64>, j: usize) {
    vectors.col_mut(j).iter_mut().for_each(|element| *element = -*element);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{largest, noise};
    use faer::Mat;

    /// Memory with contents of no use.
    fn used(rows: usize, columns: usize) -> Mat<f64> {
        Mat::from_fn(rows, columns, |_, _| 1e9)
    }

    fn eigen(a: &Mat<f64>) -> (Vec<f64>, Mat<f64>) {
        let n = a.nrows();
        let (mut values, mut vectors) = (vec![1e9; n], used(n, n));
        eigh(a.clone().as_mut(), &mut values, vectors.as_mut(), &mut vec![1e9; eigh_scratch(n)]);
        (values, vectors)
    }

    #[test]
    fn eigenvectors_diagonalize_the_matrix() {
        for n in [0, 1, 2, 3, 10, 32, 33, 64, 150] {
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

    type Svd = (Vec<f64>, Mat<f64>, Mat<f64>);

    fn decomposed(a: &Mat<f64>, full: bool) -> Svd {
        let (m, n) = (a.nrows(), a.ncols());
        let least = m.min(n);
        let (mut u, mut v) = match full {
            true => (used(m, m), used(n, n)),
            false => (used(m, least), used(n, least)),
        };
        let mut values = vec![1e9; least];
        let scratch = &mut vec![1e9; svd_scratch(m, n, Some(full))];
        svd(a.clone().as_mut(), &mut values, Some((u.as_mut(), v.as_mut())), scratch);
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
                svd(a.clone().as_mut(), &mut alone, None, &mut vec![0.0; svd_scratch(m, n, None)]);
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
                let close =
                    (values[0] - expected).abs() <= 1e-12 * expected || element == 5e-324 || !expected.is_finite();
                assert!(close && !values[0].is_nan(), "{element}: {values:?}");
                assert!(crate::is_finite(u.as_ref()) && crate::is_finite(v.as_ref()), "{element}");
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
}
