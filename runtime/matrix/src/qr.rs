//! QR by Householder reflections.

use crate::lanes::{column, column_mut, dot, largest_of, power_near, subtract_multiple, vector_loop, widest};
use crate::workers::{SharedMatrix, StripTasks};
use crate::{MatrixElement, STRIP, Workers, multiply, subtract_product};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, MatRef};
use std::ops::Range;

/// Reflections of a block, whose product is applied to all further columns.
pub(crate) const BLOCK: usize = 32;
/// Reflections that are applied one by one to the columns after them.
const FEW: usize = 8;

/// Elements of the scratch memory of [`Reflections`] for a matrix of this many rows and columns, of which Q has up to `made`.
pub fn qr_scratch(rows: usize, columns: usize, made: usize) -> usize {
    // A triangular factor and a diagonal block of R for each block, two products with all columns, and two of a block with itself.
    let steps = rows.min(columns);
    2 * BLOCK * (steps + columns.max(made) + BLOCK)
}

/// The factorization of a matrix into Q and R.
///
/// The reflections of each block are the columns of the matrix V, explicit with their ones and the zeros above them. Their product is
/// `I - V T Vᵀ`, with a triangular T (Schreiber and Van Loan, "A storage-efficient WY representation for products of Householder
/// transformations", 1989).
pub struct Reflections<'a, T> {
    /// V in the columns of the blocks below the rows of earlier blocks, and R in the other elements.
    factors: MatMut<'a, T>,
    /// The triangular factors side by side.
    triangles: MatMut<'a, T>,
    /// The diagonal blocks of R side by side.
    diagonals: MatMut<'a, T>,
    scratch: &'a mut [T],
}

impl<'a, T: MatrixElement> Reflections<'a, T> {
    /// Factorizes a matrix; the scratch memory has at least [`qr_scratch`] elements.
    ///
    /// As in LAPACK's `geqrf`, an element of R's diagonal has the opposite sign of the element that the reflection maps to it, and a column
    /// that is zero below the diagonal has no reflection.
    pub fn of(a: MatMut<'a, T>, scratch: &'a mut [T], workers: &mut dyn Workers) -> Reflections<'a, T> {
        let (m, n) = (a.nrows(), a.ncols());
        let steps = m.min(n);
        assert!(scratch.len() >= qr_scratch(m, n, 0), "memory for {m} x {n}");
        let (triangles, scratch) = scratch.split_at_mut(BLOCK * steps);
        let (diagonals, scratch) = scratch.split_at_mut(BLOCK * steps);
        let mut made = Reflections {
            factors: a,
            triangles: MatMut::from_column_major_slice_mut(triangles, BLOCK, steps),
            diagonals: MatMut::from_column_major_slice_mut(diagonals, BLOCK, steps),
            scratch,
        };
        made.factorize(workers);
        made
    }

    fn factorize(&mut self, workers: &mut dyn Workers) {
        let (m, n) = (self.factors.nrows(), self.factors.ncols());
        let steps = m.min(n);
        let (products, own) = self.scratch.split_at_mut(2 * BLOCK * n);
        let products = SharedMatrix::new(MatMut::from_column_major_slice_mut(products, 2 * BLOCK, n));
        let own =
            SharedMatrix::new(MatMut::from_column_major_slice_mut(&mut own[..2 * BLOCK * BLOCK], BLOCK, 2 * BLOCK));
        let a = SharedMatrix::new(self.factors.rb_mut());
        let triangles = SharedMatrix::new(self.triangles.rb_mut());
        let diagonals = SharedMatrix::new(self.diagonals.rb_mut());
        let block = |first: usize| first..steps.min(first + BLOCK);
        // SAFETY: the task that factorizes a block has the only access to its columns, and to the memory of its factors; one block is
        // factorized at a time.
        let reflect = |block: Range<usize>| unsafe {
            let places = 0..block.len();
            let (mut t, r) = (triangles.part(places.clone(), block.clone()), diagonals.part(places, block.clone()));
            t.fill(T::of(0.0));
            panel(a.part(block.start..m, block), t, r, own.part(0..BLOCK, 0..2 * BLOCK));
        };
        reflect(block(0));
        for first in (0..steps).step_by(BLOCK) {
            let own = block(first);
            let next = block(own.end);
            let strips = StripTasks { next: (own.end, next.end), end: n, width: STRIP };
            // SAFETY: tasks write different columns, none of the block.
            workers.each(strips.count(), &|task| unsafe {
                let columns = strips.columns(task);
                let v = a.read(first..m, own.clone());
                let t = triangles.read(0..own.len(), own.clone());
                let memory = products.part(0..2 * BLOCK, columns.clone());
                apply((v, t.transpose()), a.part(first..m, columns), memory);
                if strips.is_next(task) {
                    reflect(next.clone());
                }
            });
        }
    }

    /// The element of R in a row and a column, on or above the diagonal.
    pub fn r(&self, i: usize, j: usize) -> T {
        let first = i - i % BLOCK;
        if j < first + BLOCK && j < self.triangles.ncols() {
            self.diagonals[(i - first, j)]
        } else {
            self.factors[(i, j)]
        }
    }

    /// Whether a column has a reflection.
    pub fn is_reflected(&self, j: usize) -> bool {
        self.triangles[(j % BLOCK, j)] != T::of(0.0)
    }

    /// The first columns of Q, as many as `q` has: the product of the reflections with the columns of the identity.
    pub fn form_q(&mut self, q: MatMut<'_, T>, workers: &mut dyn Workers) {
        let (m, n) = (q.nrows(), q.ncols());
        let steps = self.triangles.ncols();
        assert!(self.factors.nrows() == m && n <= m && self.scratch.len() >= 2 * BLOCK * n, "memory for {m} x {n}");
        let products = MatMut::from_column_major_slice_mut(&mut self.scratch[..2 * BLOCK * n], 2 * BLOCK, n);
        let (q, products) = (SharedMatrix::new(q), SharedMatrix::new(products));
        let (a, triangles) = (self.factors.rb(), self.triangles.rb());
        workers.each(n.div_ceil(STRIP), &|task| {
            let columns = task * STRIP..n.min((task + 1) * STRIP);
            // SAFETY: tasks have different columns.
            let (mut own, memory) =
                unsafe { (q.part(0..m, columns.clone()), products.part(0..2 * BLOCK, columns.clone())) };
            own.fill(T::of(0.0));
            columns.clone().for_each(|j| own[(j, j - columns.start)] = T::of(1.0));
            // Later blocks change only rows in which the columns are zero.
            apply_blocks((a, triangles), steps.min(columns.end), own, memory);
        });
    }

    /// `c = Q c`, where Q has all its columns, and `c` as many rows.
    pub(crate) fn multiply_by_q(&mut self, c: MatMut<'_, T>, workers: &mut dyn Workers) {
        multiply_by((self.factors.rb(), self.triangles.rb()), c, self.scratch, workers);
    }
}

/// Multiplies columns by the product of reflections, by their vectors and triangular factors. The memory has as many columns of twice
/// [`BLOCK`] elements.
pub(crate) fn multiply_by<T: MatrixElement>(
    reflections: (MatRef<'_, T>, MatRef<'_, T>),
    c: MatMut<'_, T>,
    memory: &mut [T],
    workers: &mut dyn Workers,
) {
    let (m, n) = (c.nrows(), c.ncols());
    let memory = MatMut::from_column_major_slice_mut(&mut memory[..2 * BLOCK * n], 2 * BLOCK, n);
    let (c, memory) = (SharedMatrix::new(c), SharedMatrix::new(memory));
    workers.each(n.div_ceil(STRIP), &|task| {
        let columns = task * STRIP..n.min((task + 1) * STRIP);
        // SAFETY: tasks have different columns.
        let (own, memory) = unsafe { (c.part(0..m, columns.clone()), memory.part(0..2 * BLOCK, columns)) };
        apply_blocks(reflections, reflections.1.ncols(), own, memory);
    });
}

/// Applies the blocks of reflections that begin before `end`, the last one first.
fn apply_blocks<T: MatrixElement>(
    (v, triangles): (MatRef<'_, T>, MatRef<'_, T>),
    end: usize,
    mut c: MatMut<'_, T>,
    mut memory: MatMut<'_, T>,
) {
    let (m, steps) = (c.nrows(), triangles.ncols());
    for first in (0..end).step_by(BLOCK).rev() {
        let width = BLOCK.min(steps - first);
        let v = v.submatrix(first, first, m - first, width);
        let t = triangles.submatrix(0, first, width, width);
        apply((v, t), c.rb_mut().subrows_mut(first, m - first), memory.rb_mut());
    }
}

/// `c -= v t (vᵀ c)`; the memory has the columns of `c`, and twice as many rows as `v` has columns, or more.
fn apply<T: MatrixElement>((v, t): (MatRef<'_, T>, MatRef<'_, T>), c: MatMut<'_, T>, memory: MatMut<'_, T>) {
    let width = v.ncols();
    let (mut products, more) = memory.split_at_row_mut(width);
    let mut turned = more.subrows_mut(0, width);
    multiply(products.rb_mut(), v.transpose(), c.rb());
    multiply(turned.rb_mut(), t, products.rb());
    subtract_product(c, v, turned.rb());
}

/// Makes the reflections of a block with at least as many rows: halves of it. `t` has zeros; the memory is of [`BLOCK`] times twice as many
/// columns.
fn panel<T: MatrixElement>(a: MatMut<'_, T>, t: MatMut<'_, T>, r: MatMut<'_, T>, mut memory: MatMut<'_, T>) {
    let n = a.ncols();
    if n <= FEW {
        widest(Reflect, (a, t, r));
        return;
    }
    let half = (n / 2).next_multiple_of(FEW);
    let rest = n - half;
    let (mut left, mut right) = a.split_at_col_mut(half);
    let (mut t_first, mut t_between, _, mut t_last) = t.split_at_mut(half, half);
    let (r_first, mut r_between, _, r_last) = r.split_at_mut(half, half);
    panel(left.rb_mut(), t_first.rb_mut(), r_first, memory.rb_mut());
    apply((left.rb(), t_first.rb().transpose()), right.rb_mut(), memory.rb_mut().subcols_mut(0, rest));
    let (mut top, mut below) = right.split_at_row_mut(half);
    r_between.copy_from(top.rb());
    top.fill(T::of(0.0));
    panel(below.rb_mut(), t_last.rb_mut(), r_last, memory.rb_mut());
    // The product of both: -t_first (leftᵀ right) t_last.
    let (products, more) = memory.split_at_col_mut(BLOCK);
    let (mut products, mut turned) = (products.submatrix_mut(0, 0, half, rest), more.submatrix_mut(0, 0, half, rest));
    multiply(products.rb_mut(), left.rb().split_at_row(half).1.transpose(), below.rb());
    multiply(turned.rb_mut(), products.rb(), t_last.rb());
    t_between.fill(T::of(0.0));
    subtract_product(t_between, t_first.rb(), turned.rb());
}

vector_loop!(Reflect, reflect, (MatMut<'_, T>, MatMut<'_, T>, MatMut<'_, T>) => ());
vector_loop!(Reflection, reflection, &mut [T] => (T, T));

/// Makes a few reflections one by one.
#[inline(always)]
fn reflect<T: MatrixElement>((mut a, mut t, mut r): (MatMut<'_, T>, MatMut<'_, T>, MatMut<'_, T>)) {
    let zero = T::of(0.0);
    for k in 0..a.ncols() {
        let (done, rest) = a.rb_mut().split_at_col_mut(k);
        let (first, mut rest) = rest.split_at_col_mut(1);
        let own = column_mut(first, 0);
        for i in 0..k {
            r[(i, k)] = own[i];
            own[i] = zero;
        }
        let (beta, tau) = reflection(&mut own[k..]);
        r[(k, k)] = beta;
        t[(k, k)] = tau;
        for j in 0..rest.ncols() {
            let other = &mut column_mut(rest.rb_mut(), j)[k..];
            let factor = tau * dot((&own[k..], other));
            subtract_multiple(other, &own[k..], factor);
        }
        // The products with the reflections before it, times their triangular factor.
        for j in 0..k {
            t[(j, k)] = -tau * dot((&column(done.rb(), j)[k..], &own[k..]));
        }
        for i in 0..k {
            t[(i, k)] = (i..k).fold(zero, |sum, j| sum + t[(i, j)] * t[(j, k)]);
        }
    }
}

/// Makes the reflection that leaves nothing below the first element: the column becomes its vector. Gives the element that is left, and the
/// factor (`larfg`).
#[inline(always)]
fn reflection<T: MatrixElement>(own: &mut [T]) -> (T, T) {
    let (zero, one) = (T::of(0.0), T::of(1.0));
    let (mut factor, mut is_scaled) = (one, false);
    loop {
        let alpha = std::mem::replace(&mut own[0], one);
        let below = &mut own[1..];
        let squares = dot((below, below));
        let is_safe = squares > T::of(T::SAFE) && squares < T::of(T::SAFE.recip());
        let length = if is_safe {
            squares.root()
        } else {
            let largest = largest_of(below);
            if largest == zero {
                return (alpha / factor, zero);
            }
            if !is_scaled {
                // Scaled, so that squares neither overflow nor vanish; the reflection is the same.
                let most = if alpha.magnitude() > largest { alpha.magnitude() } else { largest };
                factor = T::of(power_near::<T>(most.wide()).recip());
                own[0] = alpha;
                own.iter_mut().for_each(|x| *x *= factor);
                is_scaled = true;
                continue;
            }
            // Next to the first element, the others hardly count.
            squares.root()
        };
        let beta = -alpha.length(length).signed(alpha);
        let scale = alpha - beta;
        below.iter_mut().for_each(|x| *x /= scale);
        return (beta / factor, (beta - alpha) / beta);
    }
}

/// For each column of a matrix Q, the sign of this column if [`Reflections`] computes Q. `top` has the first rows of Q, as many as columns,
/// and is overwritten. Q belongs to a matrix with more rows than columns. (Ballard et al., "Reconstructing Householder vectors from
/// tall-skinny QR", 2014: applied to Q itself, `qr` returns a diagonal of these signs.) Q has been rounded to numbers of this distance
/// around one, so elements that would be zero or one are only close to them.
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
        let (done, mut rest) = top.rb_mut().split_at_col_mut(k + 1);
        let multiples = &mut column_mut(done, k)[k + 1..];
        multiples.iter_mut().for_each(|x| *x /= pivot);
        for j in 0..n - k - 1 {
            let (head, below) = column_mut(rest.rb_mut(), j).split_at_mut(k + 1);
            subtract_multiple(below, multiples, head[k]);
        }
    }
}
