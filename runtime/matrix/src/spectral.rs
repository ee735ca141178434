//! Eigenvalues of symmetric matrices, and singular values. Small matrices, and singular values in f64, by `faer`: reduction to two
//! diagonals, then implicit QR steps, or divide and conquer.

use crate::lanes::{LargestOf, column, power_near, widest};
use crate::memory::{elements, stack};
use crate::singular::{singular, singular_scratch};
use crate::tridiagonal::{tridiagonal, tridiagonal_scratch};
use crate::workers::SharedMatrix;
use crate::{MatrixElement, STRIP, Workers, is_finite};
use faer::diag::DiagMut;
use faer::linalg::evd::{self, ComputeEigenvectors, tridiag};
use faer::linalg::householder;
use faer::linalg::qr::no_pivoting::factor::recommended_block_size;
use faer::linalg::svd::{self as factor, ComputeSvdVectors};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Conj, MatMut, MatRef, Par, Spec};

/// Rows of a matrix from which on [`eigh`], and the smaller side from which on [`svd`] divides its work.
const DIVIDED: usize = 65;

/// Elements of the scratch memory of [`eigh`] for a matrix of `n` rows.
pub fn eigh_scratch<T: MatrixElement>(n: usize) -> usize {
    if n == 0 {
        return 0;
    }
    if n < DIVIDED {
        return elements::<T>(evd::self_adjoint_evd_scratch::<T>(
            n,
            ComputeEigenvectors::Yes,
            Par::Seq,
            Spec::default(),
        ));
    }
    let doubles = size_of::<f64>() / size_of::<T>();
    let reduction = elements::<T>(tridiag::tridiag_in_place_scratch::<T>(n, Par::Seq, Spec::default()));
    let lines = doubles * (2 * n + tridiagonal_scratch(n) + 1);
    let back = n.div_ceil(STRIP) * back_scratch::<T>(n);
    block_size::<T>(n) * n + (2 * n * n + lines).max(reduction).max(back)
}

/// Reflections of a block of the reduction to a tridiagonal matrix.
fn block_size<T: MatrixElement>(n: usize) -> usize {
    recommended_block_size::<T>(n, n)
}

/// Elements of memory for the reflections of a strip of vectors.
fn back_scratch<T: MatrixElement>(n: usize) -> usize {
    let request = householder::apply_block_householder_sequence_on_the_left_in_place_scratch::<T>(
        n - 1,
        block_size::<T>(n),
        STRIP,
    );
    elements::<T>(request)
}

/// The eigenvalues of a symmetric matrix in ascending order, and their vectors as columns of length one, signed so that the first large
/// element is positive. The lower triangle is read, and the matrix is overwritten. NaN if an element of it is not finite, or if the
/// iteration does not converge.
pub fn eigh<T: MatrixElement>(
    mut a: MatMut<'_, T>,
    values: &mut [T],
    mut vectors: MatMut<'_, T>,
    scratch: &mut [T],
    workers: &mut dyn Workers,
) {
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
        let found = if n < DIVIDED {
            let (diagonal, made) = (DiagMut::from_slice_mut(values), Some(vectors.rb_mut()));
            evd::self_adjoint_evd(a.rb(), diagonal, made, Par::Seq, stack(scratch), Spec::default()).is_ok()
        } else {
            divided(a.rb_mut(), values, vectors.rb_mut(), scratch, workers)
        };
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

/// Reduces a matrix to a tridiagonal one, and applies the reflections to the eigenvectors of that.
fn divided<T: MatrixElement>(
    mut a: MatMut<'_, T>,
    values: &mut [T],
    mut vectors: MatMut<'_, T>,
    scratch: &mut [T],
    workers: &mut dyn Workers,
) -> bool {
    let (n, block) = (a.nrows(), block_size::<T>(a.nrows()));
    let (reflections, scratch) = scratch.split_at_mut(block * (n - 1));
    let mut reflections = MatMut::from_column_major_slice_mut(reflections, block, n - 1);
    tridiag::tridiag_in_place(a.rb_mut(), reflections.rb_mut(), Par::Seq, stack(scratch), Spec::default());
    let (packed, rest) = scratch.split_at_mut(n * n);
    let (factors, rest) = rest.split_at_mut(n * n);
    let (diagonal, rest) = T::doubles(rest).split_at_mut(n);
    let (beside, rest) = rest.split_at_mut(n);
    for i in 0..n {
        diagonal[i] = a[(i, i)].wide();
        beside[i] = if i + 1 < n { a[(i + 1, i)].wide() } else { 0.0 };
    }
    let memory = [packed, factors].map(|memory| MatMut::from_column_major_slice_mut(memory, n, n));
    if !tridiagonal(diagonal, &beside[..n - 1], vectors.rb_mut(), memory, rest, workers) {
        return false;
    }
    values.iter_mut().zip(&*diagonal).for_each(|(to, &from)| *to = T::of(from));
    let len = back_scratch::<T>(n);
    let (vectors, memory) = (SharedMatrix::new(vectors), SharedMatrix::of_line(scratch));
    let (a, reflections) = (a.rb().submatrix(1, 0, n - 1, n - 1), reflections.rb());
    workers.each(n.div_ceil(STRIP), &|task| {
        // SAFETY: tasks have different columns, and memory of their own.
        let (own, memory) = unsafe {
            let columns = task * STRIP..n.min((task + 1) * STRIP);
            (vectors.part(1..n, columns), memory.elements(task * len..(task + 1) * len))
        };
        householder::apply_block_householder_sequence_on_the_left_in_place_with_conj(
            a,
            reflections,
            Conj::No,
            own,
            Par::Seq,
            stack(memory),
        );
    });
    true
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
    if is_divided::<T>(least) {
        let turned = if rows < columns { rows * columns } else { 0 };
        let made = vectors.map(|full| if full { rows.max(columns) } else { least });
        return turned + singular_scratch::<T>(rows.max(columns), least, made);
    }
    let of = |size: usize| kind(vectors.map(|full| if full { size } else { least }), least);
    elements::<T>(factor::svd_scratch::<T>(rows, columns, of(rows), of(columns), Par::Seq, Spec::default()))
}

/// Whether the work of [`svd`] is divided. The squares of the values, in f64, have half of its digits.
fn is_divided<T: MatrixElement>(least: usize) -> bool {
    least >= DIVIDED && T::EPSILON * T::EPSILON > f64::EPSILON
}

/// The singular values in descending order, and the left and right vectors as columns: as many as there are values, or as rows and
/// columns. Left vectors are signed as eigenvectors, and right ones that which belongs to them. The matrix is overwritten.
/// NaN if an element is not finite, or if the iteration does not converge.
pub fn svd<T: MatrixElement>(
    mut a: MatMut<'_, T>,
    values: &mut [T],
    mut vectors: Option<(MatMut<'_, T>, MatMut<'_, T>)>,
    scratch: &mut [T],
    workers: &mut dyn Workers,
) {
    let (m, n) = (a.nrows(), a.ncols());
    assert_eq!(values.len(), m.min(n), "a singular value for each row or column");
    let divided = is_divided::<T>(m.min(n));
    if let (Some((u, v)), false) = (&mut vectors, divided) {
        // `faer` 0.24 leaves a part of square matrices of vectors as it was.
        u.fill(T::of(0.0));
        v.fill(T::of(0.0));
    }
    let found = is_finite(a.rb()) && {
        let scale = scale(a.rb());
        scaled(a.rb_mut(), T::of(scale.recip()));
        let made = vectors.as_mut().map(|(u, v)| (u.rb_mut(), v.rb_mut()));
        let found = if !divided {
            let ((u, v), diagonal) = (made.unzip(), DiagMut::from_slice_mut(values));
            factor::svd(a.rb(), diagonal, u, v, Par::Seq, stack(scratch), Spec::default()).is_ok()
        } else if m >= n {
            singular(a.rb_mut(), values, made, scratch, workers)
        } else {
            let (turned, scratch) = scratch.split_at_mut(m * n);
            let mut turned = MatMut::from_column_major_slice_mut(turned, n, m);
            turned.copy_from(a.rb().transpose());
            singular(turned, values, made.map(|(u, v)| (v, u)), scratch, workers)
        };
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
    (0..a.ncols()).map(|j| widest(LargestOf, column(a, j))).fold(T::of(0.0), larger)
}

pub(crate) fn scaled<T: MatrixElement>(a: MatMut<'_, T>, factor: T) {
    a.col_iter_mut().for_each(|column| column.iter_mut().for_each(|element| *element *= factor));
}

/// Of the elements whose magnitude is at least nine tenths of the largest, the first is positive: so rounding, which may exchange equal
/// magnitudes, rarely changes a sign.
fn sign<T: MatrixElement>(vectors: MatRef<'_, T>, j: usize) -> T {
    let own = column(vectors, j);
    let least = T::of(0.9) * widest(LargestOf, own);
    own.iter().copied().find(|x| x.magnitude() >= least).unwrap_or(T::of(1.0))
}

fn negate<T: MatrixElement>(vectors: MatMut<'_, T>, j: usize) {
    vectors.col_mut(j).iter_mut().for_each(|element| *element = -*element);
}
