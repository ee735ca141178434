//! Singular values and vectors of large matrices, with the work divided over threads.
//!
//! B, of two diagonals, is reduced to the tridiagonal matrix `Bᵀ B` in f64. Its eigenvalues are squares of the singular values; so their
//! errors are below those of numbers with half the digits of f64. Its eigenvectors V are right singular vectors. The left ones are the
//! orthogonal factor of `B V`, whose other factor is diagonal but for rounding: so they are orthogonal, too, if values are small.

use crate::bidiagonal::{ReflectionSet, bidiagonal_scratch, bidiagonalize};
use crate::qr::{BLOCK, multiply_by};
use crate::tridiagonal::{tridiagonal, tridiagonal_scratch};
use crate::workers::SharedMatrix;
use crate::{MatrixElement, Reflections, STRIP, Workers, qr_scratch};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef};

/// Rows for each column, times three, from which on a matrix is reduced to its factor R first: five.
fn is_tall(rows: usize, columns: usize) -> bool {
    3 * rows > 5 * columns
}

/// Elements of the scratch memory of [`singular`] for left vectors of this number of columns, or none.
pub(crate) fn singular_scratch<T: MatrixElement>(rows: usize, columns: usize, made: Option<usize>) -> usize {
    let (n, doubles) = (columns, size_of::<f64>() / size_of::<T>());
    let tall = if is_tall(rows, n) { qr_scratch(rows, n, made.unwrap_or(0)) + n * n } else { 0 };
    let height = if is_tall(rows, n) { n } else { rows };
    let sets = n * n + 2 * BLOCK * n;
    let lines = doubles * (4 * n + tridiagonal_scratch(n) + 1);
    let vectors = if made.is_some() { 0 } else { n * n };
    let steps = bidiagonal_scratch(height, n).max(lines);
    let back = made.map_or(0, |made| qr_scratch(n, n, n).max(2 * BLOCK * made.max(n)));
    tall + sets + vectors + 2 * n * n + steps + back + doubles * 2 * n
}

/// The singular values of a matrix with at least as many rows as columns in descending order. The vectors are as many left ones as
/// requested, as columns, and all right ones. The matrix is overwritten. False if the iteration does not converge.
pub(crate) fn singular<T: MatrixElement>(
    a: MatMut<'_, T>,
    values: &mut [T],
    vectors: Option<(MatMut<'_, T>, MatMut<'_, T>)>,
    scratch: &mut [T],
    workers: &mut dyn Workers,
) -> bool {
    let (m, n) = (a.nrows(), a.ncols());
    if !is_tall(m, n) {
        return squarish(a, values, vectors, scratch, workers);
    }
    let made = vectors.as_ref().map_or(0, |(u, _)| u.ncols());
    let (own, scratch) = scratch.split_at_mut(qr_scratch(m, n, made));
    let (r, scratch) = scratch.split_at_mut(n * n);
    let mut reflections = Reflections::of(a, own, workers);
    let mut r = MatMut::from_column_major_slice_mut(r, n, n);
    for j in 0..n {
        for i in 0..n {
            r[(i, j)] = if i <= j { reflections.r(i, j) } else { T::of(0.0) };
        }
    }
    let Some((mut u, v)) = vectors else {
        return squarish(r, values, None, scratch, workers);
    };
    let (mut top, mut below) = u.rb_mut().split_at_row_mut(n);
    below.fill(T::of(0.0));
    top.rb_mut().subcols_mut(n, made - n).fill(T::of(0.0));
    (n..made).for_each(|j| below[(j - n, j)] = T::of(1.0));
    if !squarish(r, values, Some((top.subcols_mut(0, n), v)), scratch, workers) {
        return false;
    }
    reflections.multiply_by_q(u, workers);
    true
}

fn squarish<T: MatrixElement>(
    a: MatMut<'_, T>,
    values: &mut [T],
    vectors: Option<(MatMut<'_, T>, MatMut<'_, T>)>,
    scratch: &mut [T],
    workers: &mut dyn Workers,
) -> bool {
    let (m, n) = (a.nrows(), a.ncols());
    let (memory, scratch) = scratch.split_at_mut(n * n);
    let (triangles, scratch) = scratch.split_at_mut(2 * BLOCK * n);
    let [left_triangles, right_triangles] = {
        let (first, second) = triangles.split_at_mut(BLOCK * n);
        [first, second].map(|memory| MatMut::from_column_major_slice_mut(memory, BLOCK, n))
    };
    let mut left = ReflectionSet { vectors: a, triangles: left_triangles };
    let mut right =
        ReflectionSet { vectors: MatMut::from_column_major_slice_mut(memory, n, n), triangles: right_triangles };
    let (packed, scratch) = scratch.split_at_mut(n * n);
    let (factors, scratch) = scratch.split_at_mut(n * n);
    let [mut packed, factors] = [packed, factors].map(|memory| MatMut::from_column_major_slice_mut(memory, n, n));
    let doubles = size_of::<f64>() / size_of::<T>();
    let (lines, scratch) = scratch.split_at_mut(doubles * (2 * n + 1));
    let (diagonal, beside) = T::doubles(lines).split_at_mut(n);
    let beside = &mut beside[..n];
    bidiagonalize(&mut left, &mut right, [diagonal, beside], scratch, workers);
    let (own, scratch) = match &vectors {
        None => scratch.split_at_mut(n * n),
        Some(_) => scratch.split_at_mut(0),
    };
    let (lines, memory) = scratch.split_at_mut(doubles * (2 * n + tridiagonal_scratch(n) + 1));
    let lines = T::doubles(lines);
    let (squares, lines) = lines.split_at_mut(n);
    let (products, lines) = lines.split_at_mut(n);
    for i in 0..n {
        let above = if i == 0 { 0.0 } else { beside[i - 1] };
        squares[i] = diagonal[i] * diagonal[i] + above * above;
        products[i] = diagonal[i] * beside[i];
    }
    let (u, mut v) = match vectors {
        Some((u, v)) => (Some(u), v),
        None => (None, MatMut::from_column_major_slice_mut(own, n, n)),
    };
    if !tridiagonal(squares, &products[..n - 1], v.rb_mut(), [packed.rb_mut(), factors], lines, workers) {
        return false;
    }
    values.iter_mut().zip(squares.iter().rev()).for_each(|(to, square)| *to = T::of(square.max(0.0).sqrt()));
    let Some(mut u) = u else { return true };
    reverse(v.rb_mut(), workers);
    multiply_by_diagonals([diagonal, beside], v.rb(), packed.rb_mut(), workers);
    let made = u.ncols();
    {
        let mut reflections = Reflections::of(packed.rb_mut(), memory, workers);
        let mut own = u.rb_mut().submatrix_mut(0, 0, n, n);
        reflections.form_q(own.rb_mut(), workers);
        for j in 0..n {
            if reflections.r(j, j) < T::of(0.0) {
                own.rb_mut().col_mut(j).iter_mut().for_each(|element| *element = -*element);
            }
        }
    }
    u.rb_mut().submatrix_mut(n, 0, m - n, made).fill(T::of(0.0));
    u.rb_mut().submatrix_mut(0, n, n, made - n).fill(T::of(0.0));
    (n..made).for_each(|j| u[(j, j)] = T::of(1.0));
    multiply_by((left.vectors.rb(), left.triangles.rb()), u, memory, workers);
    let vectors = right.vectors.rb().submatrix(1, 0, n - 1, n - 1);
    multiply_by((vectors, right.triangles.rb().subcols(0, n - 1)), v.subrows_mut(1, n - 1), memory, workers);
    true
}

/// Exchanges the first and the last column, the second and the one before the last, and so on.
fn reverse<T: MatrixElement>(a: MatMut<'_, T>, workers: &mut dyn Workers) {
    let (rows, columns) = (a.nrows(), a.ncols());
    let a = SharedMatrix::new(a);
    workers.each((columns / 2).div_ceil(STRIP), &|task| {
        for j in task * STRIP..(columns / 2).min((task + 1) * STRIP) {
            let other = columns - 1 - j;
            // SAFETY: no two tasks have the same column, nor does a task have one twice.
            let (first, second) = unsafe { (a.part(0..rows, j..j + 1), a.part(0..rows, other..other + 1)) };
            faer::zip!(first, second).for_each(|faer::unzip!(first, second)| std::mem::swap(first, second));
        }
    });
}

/// `to = b v` for the matrix with these elements on the diagonal and above it.
fn multiply_by_diagonals<T: MatrixElement>(
    [diagonal, beside]: [&[f64]; 2],
    v: MatRef<'_, T>,
    to: MatMut<'_, T>,
    workers: &mut dyn Workers,
) {
    let n = v.ncols();
    let to = SharedMatrix::new(to);
    workers.each(n.div_ceil(STRIP), &|task| {
        for j in task * STRIP..n.min((task + 1) * STRIP) {
            // SAFETY: tasks have different columns.
            let to = crate::lanes::column_mut(unsafe { to.part(0..n, j..j + 1) }, 0);
            let own = crate::lanes::column(v, j);
            for i in 0..n - 1 {
                to[i] = T::of(diagonal[i] * own[i].wide() + beside[i] * own[i + 1].wide());
            }
            to[n - 1] = T::of(diagonal[n - 1] * own[n - 1].wide());
        }
    });
}
