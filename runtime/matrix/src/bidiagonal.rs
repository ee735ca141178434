//! Reduction of a matrix to two diagonals by reflections from the left and from the right (Golub and Kahan, "Calculating the singular values
//! and pseudo-inverse of a matrix", 1965).
//!
//! Each step reads the matrix twice. A pass over columns applies the reflections of the step before, and multiplies by the vector from the
//! left. A pass over rows multiplies by the vector from the right.

use crate::lanes::{Dot, column, column_mut, dot, vector_loop, widest};
use crate::qr::{BLOCK, Reflection};
use crate::workers::SharedMatrix;
use crate::{MatrixElement, Workers, multiply};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef};

/// Terms of a sum that are added side by side. Passes begin at a multiple of it, where rows of earlier steps have numbers of no use.
const LANES: usize = 32;
/// Rows that a task multiplies at a time.
const ROWS: usize = 64;
/// Elements of a matrix that are worth a task.
const WORTH_A_TASK: usize = 1 << 14;

/// Elements of the scratch memory of [`bidiagonalize`].
pub(crate) fn bidiagonal_scratch(rows: usize, columns: usize) -> usize {
    2 * columns + rows
}

/// The vectors of reflections as columns, with their ones and the zeros above them, and the triangular factors of their blocks side by side.
pub(crate) struct ReflectionSet<'a, T> {
    pub vectors: MatMut<'a, T>,
    pub triangles: MatMut<'a, T>,
}

/// Reduces a matrix of at least as many rows as columns: `a = U B Vᵀ`, where B has these elements on the diagonal and above it. The matrix
/// becomes the vectors of U. Those of V have their ones below the diagonal; the last column of V is not used.
pub(crate) fn bidiagonalize<T: MatrixElement>(
    left: &mut ReflectionSet<'_, T>,
    right: &mut ReflectionSet<'_, T>,
    [diagonal, beside]: [&mut [f64]; 2],
    scratch: &mut [T],
    workers: &mut dyn Workers,
) {
    let (m, n) = (left.vectors.nrows(), left.vectors.ncols());
    assert!(m >= n && right.vectors.nrows() == n && right.vectors.ncols() == n, "at least {n} rows");
    left.triangles.fill(T::of(0.0));
    right.triangles.fill(T::of(0.0));
    right.vectors.fill(T::of(0.0));
    let (y, scratch) = scratch.split_at_mut(n);
    let (row, scratch) = scratch.split_at_mut(n);
    let z = &mut scratch[..m];
    z.fill(T::of(0.0));
    for k in 0..n {
        let (done, rest) = left.vectors.rb_mut().split_at_col_mut(k);
        let (first, mut others) = rest.split_at_col_mut(1);
        let own = column_mut(first, 0);
        // The reflections of the step before, which have not been applied yet.
        let before = (k > 0).then(|| (column(done.rb(), k - 1), column(right.vectors.rb(), k - 1)));
        if let Some((u, v)) = before {
            widest(SubtractBoth, (&mut own[k..], (&u[k..], y[k]), (&z[k..], v[k])));
        }
        own[..k].fill(T::of(0.0));
        let (beta, tau) = widest(Reflection, &mut own[k..]);
        diagonal[k] = beta.wide();
        left.triangles[(k % BLOCK, k)] = tau;
        if k + 1 == n {
            break;
        }
        let own = &*own;
        columns_pass((k, tau), own, before, z, [&mut y[k + 1..], &mut row[k + 1..]], others.rb_mut(), workers);
        let row = &mut row[k + 1..];
        let (beta, tau) = widest(Reflection, &mut *row);
        beside[k] = beta.wide();
        right.triangles[(k % BLOCK, k)] = tau;
        column_mut(right.vectors.rb_mut(), k)[k + 1..].copy_from_slice(row);
        let own_product = widest(Dot, (&y[k + 1..], &*row));
        let factors = [tau, tau * own_product];
        rows_pass(k + 1, others.rb(), row, (own, factors), z, workers);
    }
    complete(left, 0, workers);
    complete(right, 1, workers);
}

/// A column, and its factor.
type Multiple<'a, T> = (&'a [T], T);

vector_loop!(SubtractBoth, subtract_both, (&mut [T], Multiple<'_, T>, Multiple<'_, T>) => ());
vector_loop!(PassColumns, pass_columns, (ColumnStrip<'_, T>, T, usize) => ());
vector_loop!(PassRows, pass_rows, RowStrip<'_, T> => ());

/// Subtracts multiples of two columns.
#[inline(always)]
fn subtract_both<T: MatrixElement>((to, (u, y), (z, v)): (&mut [T], Multiple<'_, T>, Multiple<'_, T>)) {
    for ((to, u), z) in to.iter_mut().zip(u).zip(z) {
        *to = *to - *u * y - *z * v;
    }
}

/// Rows or columns of each task: of a matrix with this number of them, each of so many elements.
fn strip(count: usize, elements: usize, least: usize) -> usize {
    let own = (WORTH_A_TASK / elements.max(1)).next_multiple_of(least).max(least);
    own.min(count.max(1))
}

/// Applies the reflections of the step before to the columns after `k`. Gives, for each column, the product with the vector `own`, times
/// `tau`, and the element of row `k` after the reflection of this step.
fn columns_pass<T: MatrixElement>(
    (k, tau): (usize, T),
    own: &[T],
    before: Option<(&[T], &[T])>,
    z: &[T],
    [y, row]: [&mut [T]; 2],
    others: MatMut<'_, T>,
    workers: &mut dyn Workers,
) {
    let (m, count) = (others.nrows(), others.ncols());
    let start = k - k % LANES;
    let width = strip(count, m - start, 4);
    let (y, row) = (SharedMatrix::of_line(y), SharedMatrix::of_line(row));
    let others = SharedMatrix::new(others);
    workers.each(count.div_ceil(width), &|task| {
        let columns = task * width..count.min((task + 1) * width);
        // SAFETY: tasks have different columns.
        let (own_columns, y, row) = unsafe {
            let lines = (y.elements(columns.clone()), row.elements(columns.clone()));
            (others.part(start..m, columns.clone()), lines.0, lines.1)
        };
        let before = before.map(|(u, v)| (&u[start..], &v[k + 1..][columns]));
        let strip = ColumnStrip { columns: own_columns, before, z: &z[start..], own: &own[start..], y, row };
        widest(PassColumns, (strip, tau, k - start));
    });
}

/// Columns of a task, with the elements of the lines that belong to them.
struct ColumnStrip<'a, T> {
    columns: MatMut<'a, T>,
    /// The vector from the left, and the elements of the vector from the right, of the step before.
    before: Option<(&'a [T], &'a [T])>,
    z: &'a [T],
    own: &'a [T],
    y: &'a mut [T],
    row: &'a mut [T],
}

/// The columns of a task of [`columns_pass`].
#[inline(always)]
fn pass_columns<T: MatrixElement>((mut own, tau, place): (ColumnStrip<'_, T>, T, usize)) {
    for j in 0..own.columns.ncols() {
        let other = column_mut(own.columns.rb_mut(), j);
        let product = match own.before {
            Some((u, v)) => update_and_multiply(other, (u, own.y[j]), (own.z, v[j]), own.own),
            None => dot((other, own.own)),
        };
        own.y[j] = tau * product;
        own.row[j] = other[place] - own.y[j];
    }
}

/// Subtracts multiples of two columns, and multiplies the difference by a third one.
#[inline(always)]
fn update_and_multiply<T: MatrixElement>(to: &mut [T], (u, y): (&[T], T), (z, v): (&[T], T), own: &[T]) -> T {
    let mut sums = [T::of(0.0); LANES];
    let len = to.len();
    let (u, z, own) = (&u[..len], &z[..len], &own[..len]);
    let whole = len - len % LANES;
    for at in (0..whole).step_by(LANES) {
        let to: &mut [T; LANES] = (&mut to[at..at + LANES]).try_into().expect("a whole chunk");
        let [u, z, own]: [&[T; LANES]; 3] =
            [u, z, own].map(|line| line[at..at + LANES].try_into().expect("a whole chunk"));
        for lane in 0..LANES {
            to[lane] = to[lane] - u[lane] * y - z[lane] * v;
            sums[lane] += to[lane] * own[lane];
        }
    }
    for (lane, at) in (whole..len).enumerate() {
        to[at] = to[at] - u[at] * y - z[at] * v;
        sums[lane] += to[at] * own[at];
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for lane in 0..width {
            let other = sums[lane + width];
            sums[lane] += other;
        }
    }
    sums[0]
}

/// The product of the rows from `first` on with a vector from the right, times a factor, minus a multiple of the vector from the left.
fn rows_pass<T: MatrixElement>(
    first: usize,
    a: MatRef<'_, T>,
    v: &[T],
    (own, [tau, factor]): (&[T], [T; 2]),
    z: &mut [T],
    workers: &mut dyn Workers,
) {
    let m = a.nrows();
    let start = first - first % LANES;
    let height = strip(m - start, a.ncols(), ROWS);
    let z = SharedMatrix::of_line(z);
    workers.each((m - start).div_ceil(height), &|task| {
        let rows = start + task * height..m.min(start + (task + 1) * height);
        // SAFETY: tasks have different rows.
        let z = unsafe { z.elements(rows.clone()) };
        let strip =
            RowStrip { rows: a.subrows(rows.start, rows.len()), v, own: &own[rows.clone()], factors: [tau, factor], z };
        widest(PassRows, strip);
    });
}

/// Rows of a task, with the elements of the lines that belong to them.
struct RowStrip<'a, T> {
    rows: MatRef<'a, T>,
    v: &'a [T],
    own: &'a [T],
    factors: [T; 2],
    z: &'a mut [T],
}

/// The rows of a task of [`rows_pass`].
#[inline(always)]
fn pass_rows<T: MatrixElement>(strip: RowStrip<'_, T>) {
    let ([tau, factor], own) = (strip.factors, strip.own);
    let (chunks, rest) = strip.z.as_chunks_mut::<ROWS>();
    let done = chunks.len() * ROWS;
    for (at, chunk) in chunks.iter_mut().enumerate() {
        let first = at * ROWS;
        let sums = products(strip.rows.subrows(first, ROWS), strip.v);
        for lane in 0..ROWS {
            chunk[lane] = tau * sums[lane] - own[first + lane] * factor;
        }
    }
    rest.fill(T::of(0.0));
    for (j, &factor) in strip.v.iter().enumerate() {
        rest.iter_mut().zip(&column(strip.rows, j)[done..]).for_each(|(to, from)| *to += *from * factor);
    }
    rest.iter_mut().zip(&own[done..]).for_each(|(to, own)| *to = tau * *to - *own * factor);
}

/// The products of [`ROWS`] rows with a vector.
#[inline(always)]
fn products<T: MatrixElement>(a: MatRef<'_, T>, v: &[T]) -> [T; ROWS] {
    let mut sums = [T::of(0.0); ROWS];
    for (j, &factor) in v.iter().enumerate() {
        let own: &[T; ROWS] = column(a, j).try_into().expect("as many rows");
        for lane in 0..ROWS {
            sums[lane] += own[lane] * factor;
        }
    }
    sums
}

/// Makes the triangular factors of the blocks from the factors of their reflections. The ones of the vectors are this far below the diagonal.
fn complete<T: MatrixElement>(set: &mut ReflectionSet<'_, T>, below: usize, workers: &mut dyn Workers) {
    let (m, n) = (set.vectors.nrows(), set.vectors.ncols());
    let vectors = set.vectors.rb();
    let triangles = SharedMatrix::new(set.triangles.rb_mut());
    workers.each(n.div_ceil(BLOCK), &|task| {
        let columns = task * BLOCK..n.min((task + 1) * BLOCK);
        let width = columns.len();
        // SAFETY: tasks have different columns.
        let mut t = unsafe { triangles.part(0..width, columns.clone()) };
        let top = m.min(columns.start + below);
        let own = vectors.submatrix(top, columns.start, m - top, width);
        let mut products = [T::of(0.0); BLOCK * BLOCK];
        let mut products = MatMut::from_column_major_slice_mut(&mut products[..width * width], width, width);
        multiply(products.rb_mut(), own.transpose(), own);
        triangle(t.rb_mut(), products.rb());
    });
}

/// The triangular factor of reflections (`larft`), whose factors are on the diagonal, from the products of their vectors.
fn triangle<T: MatrixElement>(mut t: MatMut<'_, T>, products: MatRef<'_, T>) {
    for k in 0..t.ncols() {
        for i in 0..k {
            let sum = (i..k).fold(T::of(0.0), |sum, j| sum + t[(i, j)] * products[(j, k)]);
            t[(i, k)] = -t[(k, k)] * sum;
        }
    }
}
