//! QR by Householder reflections.

use crate::{BLOCK, multiply, subtract_product};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef};

/// Elements of the scratch memory of [`qr`] and [`form_q`] for this number of reflections with up to this number of rows and columns.
pub fn qr_scratch(steps: usize, rows: usize, columns: usize) -> usize {
    // The reflectors of a block with zeros and ones, their triangular factor, and two products of it with all columns.
    BLOCK.min(steps) * (rows + BLOCK + 2 * columns)
}

/// The matrix becomes R on and above the diagonal, and below it the reflectors without their leading 1; `tau` gets a factor for each.
///
/// As in LAPACK's `geqrf`, an element of R's diagonal has the opposite sign of the element that the reflection maps to it, and a column
/// that is zero below the diagonal has no reflection.
pub fn qr(mut a: MatMut<'_, f64>, tau: &mut [f64], scratch: &mut [f64]) {
    let (m, n) = (a.nrows(), a.ncols());
    let steps = m.min(n);
    assert!(tau.len() >= steps && scratch.len() >= qr_scratch(steps, m, n), "memory for {m} x {n}");
    for first in (0..steps).step_by(BLOCK) {
        let width = BLOCK.min(steps - first);
        for k in first..first + width {
            tau[k] = reflector(a.rb_mut(), k);
            for j in k + 1..first + width {
                let dot = a[(k, j)] + (k + 1..m).map(|i| a[(i, k)] * a[(i, j)]).sum::<f64>();
                let factor = tau[k] * dot;
                a[(k, j)] -= factor;
                for i in k + 1..m {
                    a[(i, j)] -= a[(i, k)] * factor;
                }
            }
        }
        let own = a.rb_mut().submatrix_mut(first, first, m - first, n - first);
        let (panel, rest) = own.split_at_col_mut(width);
        apply(panel.rb(), &tau[first..first + width], rest, true, scratch);
    }
}

/// The product of the first reflections with the first columns of the identity, as many as `q` has.
pub fn form_q(a: MatRef<'_, f64>, tau: &[f64], mut q: MatMut<'_, f64>, scratch: &mut [f64]) {
    let (m, columns) = (q.nrows(), q.ncols());
    let steps = m.min(a.ncols());
    assert!(a.nrows() == m && scratch.len() >= qr_scratch(steps, m, columns), "memory for {m} x {columns}");
    q.fill(0.0);
    for k in 0..m.min(columns) {
        q[(k, k)] = 1.0;
    }
    for first in (0..steps).step_by(BLOCK).rev() {
        let width = BLOCK.min(steps - first);
        let panel = a.submatrix(first, first, m - first, width);
        // Preceding columns are those of the identity, which have zeros here.
        let own = q.rb_mut().submatrix_mut(first, first, m - first, columns - first);
        apply(panel, &tau[first..first + width], own, false, scratch);
    }
}

/// For each column of a matrix Q, the sign of this column if [`qr`] computes Q. `top` has the first rows of Q, as many as columns, and is
/// overwritten. Q belongs to a matrix with more rows than columns. (Ballard et al., "Reconstructing Householder vectors from tall-skinny
/// QR", 2014: applied to Q itself, `qr` returns a diagonal of these signs.) Q has been rounded to numbers of this distance around one, so
/// elements that would be zero or one are only close to them.
pub fn qr_signs(mut top: MatMut<'_, f64>, epsilon: f64, mut sign: impl FnMut(usize, f64)) {
    let n = top.ncols();
    for k in 0..n {
        let element = top[(k, k)];
        // A column that is zero below the diagonal, so that no reflection is made.
        if element.abs() >= 1.0 - 4.0 * epsilon {
            sign(k, 1.0_f64.copysign(element));
            continue;
        }
        let own = if element < -64.0 * epsilon { 1.0 } else { -1.0 };
        sign(k, own);
        let pivot = element - own;
        for i in k + 1..n {
            top[(i, k)] /= pivot;
            for j in k + 1..n {
                top[(i, j)] -= top[(i, k)] * top[(k, j)];
            }
        }
    }
}

/// Makes the reflection of column `k` that leaves nothing below the diagonal: returns its factor (`larfg`).
fn reflector(mut a: MatMut<'_, f64>, k: usize) -> f64 {
    let m = a.nrows();
    let largest = (k + 1..m).fold(0.0, |largest: f64, i| largest.max(a[(i, k)].abs()));
    if largest == 0.0 {
        return 0.0;
    }
    // Scaled, so that squares neither overflow nor vanish.
    let below = largest * (k + 1..m).map(|i| (a[(i, k)] / largest).powi(2)).sum::<f64>().sqrt();
    let alpha = a[(k, k)];
    let beta = -alpha.hypot(below).copysign(alpha);
    for i in k + 1..m {
        a[(i, k)] /= alpha - beta;
    }
    a[(k, k)] = beta;
    (beta - alpha) / beta
}

/// Applies a block of reflections, or with `transposed` its inverse, to `c`: `c -= V op(T) (Vᵀ c)` (Schreiber and Van Loan, "A
/// storage-efficient WY representation for products of Householder transformations", 1989).
fn apply(panel: MatRef<'_, f64>, tau: &[f64], mut c: MatMut<'_, f64>, transposed: bool, scratch: &mut [f64]) {
    let (m, width, columns) = (panel.nrows(), panel.ncols(), c.ncols());
    if columns == 0 {
        return;
    }
    let (v, scratch) = scratch.split_at_mut(m * width);
    let (t, scratch) = scratch.split_at_mut(width * width);
    let (products, more) = scratch.split_at_mut(width * columns);
    let mut v = MatMut::from_column_major_slice_mut(v, m, width);
    for j in 0..width {
        for i in 0..m {
            v[(i, j)] = match i.cmp(&j) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => 1.0,
                std::cmp::Ordering::Greater => panel[(i, j)],
            };
        }
    }
    let v = v.rb();
    let mut t = MatMut::from_column_major_slice_mut(t, width, width);
    t.fill(0.0);
    for k in 0..width {
        for j in 0..k {
            // The products of reflector k with those before it, times their triangular factor.
            t[(j, k)] = -tau[k] * (k..m).map(|i| v[(i, j)] * v[(i, k)]).sum::<f64>();
        }
        for i in 0..k {
            t[(i, k)] = (i..k).map(|j| t[(i, j)] * t[(j, k)]).sum();
        }
        t[(k, k)] = tau[k];
    }
    let t = if transposed { t.rb().transpose() } else { t.rb() };
    let mut products = MatMut::from_column_major_slice_mut(products, width, columns);
    let mut more = MatMut::from_column_major_slice_mut(&mut more[..width * columns], width, columns);
    multiply(products.rb_mut(), v.transpose(), c.rb());
    multiply(more.rb_mut(), t, products.rb());
    subtract_product(c.rb_mut(), v, more.rb());
}
