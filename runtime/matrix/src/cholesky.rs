//! Cholesky factors.

use crate::lanes::{column, column_mut, subtract_multiple, vector_loop, widest};
use crate::triangular::solve_lower;
use crate::workers::{SharedMatrix, StripTasks};
use crate::{BLOCK, MatrixElement, SMALL, Workers, subtract_product};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Columns of a block that are computed one by one.
const FEW: usize = 8;

/// The lower triangle becomes L with `a = L Lᵀ`; the elements above the diagonal are neither read nor kept. False if the matrix is
/// not positive definite, or has NaN: then the contents are of no use.
pub fn cholesky<T: MatrixElement>(a: MatMut<'_, T>, workers: &mut dyn Workers) -> bool {
    let n = a.nrows();
    assert_eq!(n, a.ncols(), "the matrix is square");
    if n <= SMALL {
        return widest(Factorize, a);
    }
    let a = SharedMatrix::new(a);
    let block = |first: usize| first..n.min(first + BLOCK);
    // SAFETY: the task that factorizes a block has the only access to its columns.
    let columns = |own: Range<usize>| unsafe { panel(a.part(own.start..n, own)) };
    let mut found = AtomicBool::new(columns(block(0)));
    for first in (0..n).step_by(BLOCK) {
        if !*found.get_mut() {
            return false;
        }
        let own = block(first);
        let next = block(own.end);
        let strips = StripTasks { next: (own.end, next.end), end: n, width: BLOCK };
        // SAFETY: tasks write different columns, none of the block.
        workers.each(strips.count(), &|task| unsafe {
            let columns_of_task = strips.columns(task);
            let rows = columns_of_task.start..n;
            let left = a.read(rows.clone(), own.clone());
            let top = left.subrows(0, columns_of_task.len()).transpose();
            subtract_product(a.part(rows, columns_of_task), left, top);
            if strips.is_next(task) && !columns(next.clone()) {
                found.store(false, Ordering::Relaxed);
            }
        });
    }
    found.into_inner()
}

/// Computes the columns of a block with at least as many rows: halves of it, with a product between them.
fn panel<T: MatrixElement>(a: MatMut<'_, T>) -> bool {
    let n = a.ncols();
    if n <= FEW {
        return widest(Factorize, a);
    }
    let half = (n / 2).next_multiple_of(FEW);
    let (mut left, right) = a.split_at_col_mut(half);
    if !panel(left.rb_mut()) {
        return false;
    }
    let mut rest = right.split_at_row_mut(half).1;
    let below = left.rb().split_at_row(half).1;
    subtract_product(rest.rb_mut(), below, below.subrows(0, n - half).transpose());
    panel(rest)
}

vector_loop!(Factorize, factorize, MatMut<'_, T> => bool);
vector_loop!(FactorizeLanes, factorize_lanes, (&mut [[T; BATCH]], usize) => [bool; BATCH]);

/// One column after another (the order of Cholesky and Crout), each as a slice: a batch of small matrices spends its time here.
#[inline(always)]
fn factorize<T: MatrixElement>(mut a: MatMut<'_, T>) -> bool {
    for j in 0..a.ncols() {
        let (done, rest) = a.rb_mut().split_at_col_mut(j);
        let own = column_mut(rest, 0);
        for k in 0..j {
            let known = column(done.rb(), k);
            subtract_multiple(&mut own[j..], &known[j..], known[j]);
        }
        let pivot = own[j];
        // NaN is not positive, either.
        if pivot.partial_cmp(&T::of(0.0)).is_none_or(|order| order.is_le()) {
            return false;
        }
        let root = pivot.root();
        own[j] = root;
        own[j + 1..].iter_mut().for_each(|element| *element /= root);
    }
    true
}

/// Small matrices that are factorized side by side, each in a lane of vectors.
pub const BATCH: usize = 16;

/// Factorizes [`BATCH`] matrices of `n` rows like [`cholesky`], with the same bits. `a` has the elements of all of them at each place of a
/// column-major matrix. False for those that are not positive definite, whose contents are of no use.
pub fn cholesky_batch<T: MatrixElement>(a: &mut [[T; BATCH]], n: usize) -> [bool; BATCH] {
    assert_eq!(a.len(), n * n, "matrices of {n} rows");
    widest(FactorizeLanes, (a, n))
}

#[inline(always)]
fn factorize_lanes<T: MatrixElement>((a, n): (&mut [[T; BATCH]], usize)) -> [bool; BATCH] {
    let mut found = [true; BATCH];
    for j in 0..n {
        let (done, rest) = a.split_at_mut(j * n);
        let own = &mut rest[j..n];
        for known in done.chunks_exact(n) {
            let factor = known[j];
            for (own, known) in own.iter_mut().zip(&known[j..]) {
                for lane in 0..BATCH {
                    own[lane] -= known[lane] * factor[lane];
                }
            }
        }
        let mut root = own[0];
        for lane in 0..BATCH {
            found[lane] &= root[lane] > T::of(0.0);
            root[lane] = root[lane].root();
        }
        own[0] = root;
        for element in &mut own[1..] {
            for lane in 0..BATCH {
                element[lane] /= root[lane];
            }
        }
    }
    found
}

/// A step of the factorization of a matrix whose rows are split: `a` is a block of rows from `first` on, and `rows` are the rows of L that
/// end before row `rows.ncols()`. Rows from there on get their elements of L in the columns of these rows. Then the block that begins there
/// is completed, with zeros above the diagonal, or with NaN if a pivot is not positive. `a` has at least the columns up to there. `turned` is
/// memory for as many elements as the block has rows and `rows` has.
pub fn cholesky_rows<T: MatrixElement>(
    mut a: MatMut<'_, T>,
    first: usize,
    rows: MatRef<'_, T>,
    turned: &mut [T],
    workers: &mut dyn Workers,
) {
    let (m, n, width, end) = (a.nrows(), a.ncols(), rows.nrows(), rows.ncols());
    if first < end || m == 0 {
        return;
    }
    assert!(width <= end && end <= n && (first > end || first + m <= n), "rows of one matrix");
    let start = end - width;
    let (known, rest) = a.rb_mut().split_at_col_mut(start);
    let mut own = rest.subcols_mut(0, width);
    subtract_product(own.rb_mut(), known.rb(), rows.subcols(0, start).transpose());
    let mut turned = MatMut::from_column_major_slice_mut(&mut turned[..m * width], width, m);
    turned.copy_from(own.rb().transpose());
    solve_lower(rows.subcols(start, width), false, turned.rb_mut());
    own.copy_from(turned.rb().transpose());
    if first > end {
        return;
    }
    let (known, mut rest) = a.rb_mut().split_at_col_mut(end);
    let mut diagonal = rest.rb_mut().subcols_mut(0, m);
    subtract_product(diagonal.rb_mut(), known.rb(), known.rb().transpose());
    let found = cholesky(diagonal, workers);
    for j in 0..rest.ncols() {
        for i in 0..m {
            if i < j {
                rest[(i, j)] = T::of(0.0);
            } else if !found {
                rest[(i, j)] = T::of(f64::NAN);
            }
        }
    }
}
