//! Eigenvalues of symmetric matrices, and singular values, by `faer`: reduction to two diagonals, then implicit QR steps, or divide and
//! conquer for large matrices.

use crate::lanes::{column, largest_of, widest};
use crate::{MatrixElement, is_finite};
use faer::diag::DiagMut;
use faer::dyn_stack::{MemStack, StackReq};
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::linalg::svd::{self as factor, ComputeSvdVectors};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef, Par, Spec};
use std::mem::MaybeUninit;

pub(crate) fn elements<T>(request: StackReq) -> usize {
    request.unaligned_bytes_required().div_ceil(size_of::<T>())
}

pub(crate) fn stack<T: MatrixElement>(scratch: &mut [T]) -> &mut MemStack {
    let len = size_of_val(scratch);
    let first = scratch.as_mut_ptr().cast::<MaybeUninit<u8>>();
    // SAFETY: the bytes of the slice, which is borrowed for as long; any bytes are elements.
    MemStack::new(unsafe { std::slice::from_raw_parts_mut(first, len) })
}

/// Elements of the scratch memory of [`eigh`] for a matrix of `n` rows.
pub fn eigh_scratch<T: MatrixElement>(n: usize) -> usize {
    if n == 0 {
        return 0;
    }
    elements::<T>(evd::self_adjoint_evd_scratch::<T>(n, ComputeEigenvectors::Yes, Par::Seq, Spec::default()))
}

/// The eigenvalues of a symmetric matrix in ascending order, and their vectors as columns of length one, signed so that the first large
/// element is positive. The lower triangle is read, and the matrix is overwritten. NaN if an element of it is not finite, or if the
/// iteration does not converge.
pub fn eigh<T: MatrixElement>(mut a: MatMut<'_, T>, values: &mut [T], mut vectors: MatMut<'_, T>, scratch: &mut [T]) {
    let n = a.nrows();
    assert!(n == a.ncols() && n == values.len() && scratch.len() >= eigh_scratch::<T>(n), "memory for {n} eigenvalues");
    for j in 0..n {
        for i in 0..j {
            a[(i, j)] = a[(j, i)];
        }
    }
    let found = is_finite(a.rb()) && {
        let scale = scale(a.rb());
        scaled(a.rb_mut(), T::of(scale.recip()));
        let diagonal = DiagMut::from_slice_mut(values);
        let vectors = Some(vectors.rb_mut());
        let found = evd::self_adjoint_evd(a.rb(), diagonal, vectors, Par::Seq, stack(scratch), Spec::default()).is_ok();
        values.iter_mut().for_each(|value| *value *= T::of(scale));
        found
    };
    if !found {
        values.fill(T::of(f64::NAN));
        vectors.fill(T::of(f64::NAN));
    }
    for j in 0..n {
        if sign(vectors.rb(), j) < T::of(0.0) {
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

/// Elements of the scratch memory of [`svd`]; `vectors` is None without vectors, and otherwise whether they are square.
pub fn svd_scratch<T: MatrixElement>(rows: usize, columns: usize, vectors: Option<bool>) -> usize {
    let least = rows.min(columns);
    if least == 0 {
        return 0;
    }
    let of = |size: usize| kind(vectors.map(|full| if full { size } else { least }), least);
    elements::<T>(factor::svd_scratch::<T>(rows, columns, of(rows), of(columns), Par::Seq, Spec::default()))
}

/// The singular values in descending order, and the left and right vectors as columns: as many as there are values, or as rows and
/// columns. Left vectors are signed as eigenvectors, and right ones that which belongs to them. The matrix is overwritten.
/// NaN if an element is not finite, or if the iteration does not converge.
pub fn svd<T: MatrixElement>(
    mut a: MatMut<'_, T>,
    values: &mut [T],
    mut vectors: Option<(MatMut<'_, T>, MatMut<'_, T>)>,
    scratch: &mut [T],
) {
    let (m, n) = (a.nrows(), a.ncols());
    assert_eq!(values.len(), m.min(n), "a singular value for each row or column");
    if let Some((u, v)) = &mut vectors {
        // `faer` 0.24 leaves a part of square matrices of vectors as it was.
        u.fill(T::of(0.0));
        v.fill(T::of(0.0));
    }
    let found = is_finite(a.rb()) && {
        let scale = scale(a.rb());
        scaled(a.rb_mut(), T::of(scale.recip()));
        let diagonal = DiagMut::from_slice_mut(values);
        let (u, v) = vectors.as_mut().map(|(u, v)| (u.rb_mut(), v.rb_mut())).unzip();
        let found = factor::svd(a.rb(), diagonal, u, v, Par::Seq, stack(scratch), Spec::default()).is_ok();
        values.iter_mut().for_each(|value| *value *= T::of(scale));
        found
    };
    if !found {
        values.fill(T::of(f64::NAN));
    }
    if let Some((u, v)) = &mut vectors {
        if !found {
            u.fill(T::of(f64::NAN));
            v.fill(T::of(f64::NAN));
        }
        for j in 0..u.ncols() {
            if sign(u.as_ref(), j) < T::of(0.0) {
                negate(u.rb_mut(), j);
                if j < v.ncols() && j < values.len() {
                    negate(v.rb_mut(), j);
                }
            }
        }
        for j in values.len()..v.ncols() {
            if sign(v.as_ref(), j) < T::of(0.0) {
                negate(v.rb_mut(), j);
            }
        }
    }
}

/// The power of two near the largest magnitude: divided by it, a matrix has neither very large nor very small norms, and the same bits.
fn scale<T: MatrixElement>(a: MatRef<'_, T>) -> f64 {
    power_near::<T>(largest(a).wide())
}

/// The largest magnitude.
pub(crate) fn largest<T: MatrixElement>(a: MatRef<'_, T>) -> T {
    let larger = |most: T, own: T| if own > most { own } else { most };
    (0..a.ncols()).map(|j| widest(|| largest_of(column(a, j)))).fold(T::of(0.0), larger)
}

/// The power of two near a magnitude, as [`scale`] gives it.
pub(crate) fn power_near<T: MatrixElement>(largest: f64) -> f64 {
    if largest == 0.0 {
        return 1.0;
    }
    // Its reciprocal is a number, too.
    f64::from_bits(largest.to_bits() & 0x7ff0_0000_0000_0000)
        .clamp(2.0_f64.powi(-T::EXPONENT), 2.0_f64.powi(T::EXPONENT))
}

pub(crate) fn scaled<T: MatrixElement>(a: MatMut<'_, T>, factor: T) {
    a.col_iter_mut().for_each(|column| column.iter_mut().for_each(|element| *element *= factor));
}

/// Of the elements whose magnitude is at least nine tenths of the largest, the first is positive: so rounding, which may exchange equal
/// magnitudes, rarely changes a sign.
fn sign<T: MatrixElement>(vectors: MatRef<'_, T>, j: usize) -> T {
    let own = column(vectors, j);
    let least = T::of(0.9) * widest(|| largest_of(own));
    own.iter().copied().find(|x| x.magnitude() >= least).unwrap_or(T::of(1.0))
}

fn negate<T: MatrixElement>(vectors: MatMut<'_, T>, j: usize) {
    vectors.col_mut(j).iter_mut().for_each(|element| *element = -*element);
}
