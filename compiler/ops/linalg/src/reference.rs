//! Factorizations of one matrix, by the plainest algorithms of the textbooks.

use spmdc_abi::TriangularSystem;
use spmdc_ir::array::Array;
use std::ops::Range;

/// A matrix; a vector is one column.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
    /// Row-major.
    pub elements: Vec<f64>,
}

impl Matrix {
    /// A matrix of this many rows and columns; `element` has the element of a row and a column.
    pub fn from_fn(rows: usize, columns: usize, element: impl Fn(usize, usize) -> f64) -> Matrix {
        let elements = (0..rows * columns).map(|at| element(at / columns, at % columns)).collect();
        Matrix { rows, columns, elements }
    }

    fn vector(elements: Vec<f64>) -> Matrix {
        Matrix { rows: elements.len(), columns: 1, elements }
    }

    /// Ones on the diagonal, zeros elsewhere.
    pub fn identity(n: usize) -> Matrix {
        Matrix::from_fn(n, n, |i, j| f64::from(u8::from(i == j)))
    }

    /// One of the matrices in the last two dimensions.
    pub fn of(array: &Array, number: usize) -> Matrix {
        let [.., rows, columns] = *array.shape() else { panic!("{} is no array of matrices", array.ty) };
        let all = array.floats();
        Matrix { rows, columns, elements: all[number * rows * columns..][..rows * columns].to_vec() }
    }

    /// The rows in a range.
    pub fn rows(&self, range: Range<usize>) -> Matrix {
        Matrix::from_fn(range.len(), self.columns, |i, j| self.get(range.start + i, j))
    }

    /// Row-major.
    pub fn elements(self) -> Vec<f64> {
        self.elements
    }

    /// The element of a row and a column.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.elements[i * self.columns + j]
    }

    fn at(&mut self, i: usize, j: usize) -> &mut f64 {
        &mut self.elements[i * self.columns + j]
    }

    /// Rows as columns.
    pub fn transposed(&self) -> Matrix {
        Matrix::from_fn(self.columns, self.rows, |i, j| self.get(j, i))
    }

    fn column(&self, j: usize) -> Vec<f64> {
        (0..self.rows).map(|i| self.get(i, j)).collect()
    }

    fn is_finite(&self) -> bool {
        self.elements.iter().all(|element| element.is_finite())
    }

    fn of_columns(rows: usize, columns: &[Vec<f64>]) -> Matrix {
        Matrix::from_fn(rows, columns.len(), |i, j| columns[j][i])
    }

    fn nan(rows: usize, columns: usize) -> Matrix {
        Matrix::from_fn(rows, columns, |_, _| f64::NAN)
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The lower factor, row by row (Cholesky and Banachiewicz). NaN on and below the diagonal if a pivot is not positive.
pub fn cholesky(a: &Matrix) -> Matrix {
    let n = a.rows;
    let mut l = Matrix::from_fn(n, n, |_, _| 0.0);
    for i in 0..n {
        for j in 0..=i {
            let rest = a.get(i, j) - (0..j).map(|k| l.get(i, k) * l.get(j, k)).sum::<f64>();
            if i != j {
                *l.at(i, j) = rest / l.get(j, j);
            } else if rest > 0.0 {
                *l.at(i, i) = rest.sqrt();
            } else {
                return Matrix::from_fn(n, n, |i, j| if i < j { 0.0 } else { f64::NAN });
            }
        }
    }
    l
}

/// The step of a factorization of split rows that [`MatrixFunction::CholeskyRows`](spmdc_abi::MatrixFunction::CholeskyRows) describes.
pub fn cholesky_rows(a: &Matrix, first: usize, known: Option<&Matrix>) -> Matrix {
    let (width, end) = known.map_or((0, 0), |known| (known.rows, known.columns));
    let mut l = a.clone();
    if first < end {
        return l;
    }
    for i in 0..l.rows {
        for (j, column) in (end - width..end).enumerate() {
            let known = known.expect("there are columns");
            let rest = l.get(i, column) - (0..column).map(|k| l.get(i, k) * known.get(j, k)).sum::<f64>();
            *l.at(i, column) = rest / known.get(j, column);
        }
    }
    if first > end || l.rows == 0 {
        return l;
    }
    let rest = Matrix::from_fn(l.rows, l.rows, |i, j| {
        l.get(i, end + j) - (0..end).map(|k| l.get(i, k) * l.get(j, k)).sum::<f64>()
    });
    let diagonal = cholesky(&rest);
    Matrix::from_fn(l.rows, l.columns, |i, j| match j.checked_sub(end) {
        None => l.get(i, j),
        Some(column) if column < l.rows => diagonal.get(i, column),
        Some(_) => 0.0,
    })
}

/// A block of rows of L, or NaN on and below the diagonal if the last element of L is NaN.
pub fn cholesky_checked(a: &Matrix, first: usize, last: &Matrix) -> Matrix {
    let failed = last.get(0, 0).is_nan();
    Matrix::from_fn(a.rows, a.columns, |i, j| if failed && j <= first + i { f64::NAN } else { a.get(i, j) })
}

/// The solution of a triangular system with right sides `b`: substitution, from the first unknown on or from the last.
pub fn triangular_solve(system: &TriangularSystem, a: &Matrix, b: &Matrix) -> Matrix {
    let TriangularSystem { left, lower, transposed, unit } = *system;
    if !left {
        // The transposed system.
        let turned = TriangularSystem { left: true, transposed: !transposed, ..*system };
        return triangular_solve(&turned, a, &b.transposed()).transposed();
    }
    let n = a.rows;
    let matrix = if transposed { a.transposed() } else { a.clone() };
    let is_lower = lower != transposed;
    let mut x = b.clone();
    for step in 0..n {
        let i = if is_lower { step } else { n - 1 - step };
        let known = if is_lower { 0..i } else { i + 1..n };
        for side in 0..b.columns {
            let rest = b.get(i, side) - known.clone().map(|k| matrix.get(i, k) * x.get(k, side)).sum::<f64>();
            *x.at(i, side) = if unit { rest } else { rest / matrix.get(i, i) };
        }
    }
    x
}

/// A step of a triangular system whose rows are split: see [`spmdc_abi::MatrixFunction::TriangularRows`].
pub fn triangular_rows(
    (system, own, first): (&TriangularSystem, &Range<usize>, usize),
    a: &Matrix,
    b: &Matrix,
    known: Option<&Matrix>,
) -> Matrix {
    let is_forward = system.is_forward();
    let is_own = first == own.start && a.rows == own.len();
    let is_later = if is_forward { first >= own.start } else { first + a.rows <= own.end };
    let width = known.map_or(0, |known| known.rows);
    let start = if is_forward { own.start.saturating_sub(width) } else { own.end };
    let rest = Matrix::from_fn(b.rows, b.columns, |i, side| {
        let products = match known {
            Some(known) if !system.is_of_rows() && is_own => known.get(i, side),
            Some(known) if system.is_of_rows() && is_later => {
                (0..width).map(|k| a.get(i, start + k) * known.get(k, side)).sum::<f64>()
            }
            Some(_) | None => return b.get(i, side),
        };
        b.get(i, side) - products
    });
    if !is_own {
        return rest;
    }
    let diagonal = Matrix::from_fn(own.len(), own.len(), |i, j| a.get(i, own.start + j));
    triangular_solve(system, &diagonal, &rest)
}

/// The products of solved rows: see [`spmdc_abi::MatrixFunction::TriangularSums`].
pub fn triangular_sums(
    (system, own, first): (&TriangularSystem, &Range<usize>, usize),
    a: &Matrix,
    x: &Matrix,
) -> Matrix {
    let is_solved = if system.is_forward() { first + a.rows <= own.start } else { first >= own.end };
    let rows = if is_solved { a.rows } else { 0 };
    Matrix::from_fn(own.len(), x.columns, |i, side| (0..rows).map(|k| a.get(k, own.start + i) * x.get(k, side)).sum())
}

/// L and U in one matrix, the row exchanged in each step, and the source of each row: elimination with partial pivoting (Doolittle).
pub fn lu(a: &Matrix) -> [Matrix; 3] {
    let (m, n) = (a.rows, a.columns);
    let mut lu = a.clone();
    let mut sources: Vec<usize> = (0..m).collect();
    let mut pivots = Vec::new();
    for k in 0..m.min(n) {
        // The first of the rows with the largest magnitude.
        let pivot = (k + 1..m).fold(k, |best, i| if lu.get(i, k).abs() > lu.get(best, k).abs() { i } else { best });
        pivots.push(pivot as f64);
        sources.swap(k, pivot);
        for j in 0..n {
            lu.elements.swap(k * n + j, pivot * n + j);
        }
        for i in k + 1..m {
            if lu.get(k, k) != 0.0 {
                *lu.at(i, k) /= lu.get(k, k);
            }
            for j in k + 1..n {
                *lu.at(i, j) -= lu.get(i, k) * lu.get(k, j);
            }
        }
    }
    [lu, Matrix::vector(pivots), Matrix::vector(sources.into_iter().map(|row| row as f64).collect())]
}

/// L and U in one matrix, the source of each row, and the source of each column: every pivot has the largest magnitude of all remaining
/// elements, and is the first of these by columns.
pub fn lu_complete(a: &Matrix) -> [Matrix; 3] {
    let n = a.rows;
    let mut lu = a.clone();
    let (mut rows, mut columns): (Vec<usize>, Vec<usize>) = ((0..n).collect(), (0..n).collect());
    for k in 0..n {
        let left = (k..n).flat_map(|j| (k..n).map(move |i| (i, j)));
        let (row, column) = left
            .fold((k, k), |best, at| if lu.get(at.0, at.1).abs() > lu.get(best.0, best.1).abs() { at } else { best });
        rows.swap(k, row);
        columns.swap(k, column);
        for at in 0..n {
            lu.elements.swap(k * n + at, row * n + at);
        }
        for at in 0..n {
            lu.elements.swap(at * n + k, at * n + column);
        }
        if lu.get(k, k) == 0.0 {
            break;
        }
        for i in k + 1..n {
            *lu.at(i, k) /= lu.get(k, k);
            for j in k + 1..n {
                *lu.at(i, j) -= lu.get(i, k) * lu.get(k, j);
            }
        }
    }
    let places = |order: Vec<usize>| Matrix::vector(order.into_iter().map(|place| place as f64).collect());
    [lu, places(rows), places(columns)]
}

/// The diagonal of U, and the row exchanged in each step.
pub fn lu_diagonal(a: &Matrix) -> [Matrix; 2] {
    let [factors, pivots, _] = lu(a);
    [Matrix::vector((0..a.rows).map(|i| factors.get(i, i)).collect()), pivots]
}

/// The solution of a system with right sides, by elimination with partial pivoting.
pub fn solve(a: &Matrix, sides: &Matrix) -> Matrix {
    let [factors, _, sources] = lu(a);
    let exchanged = Matrix::from_fn(sides.rows, sides.columns, |i, j| sides.get(sources.elements[i] as usize, j));
    let system = TriangularSystem { left: true, lower: true, transposed: false, unit: true };
    let middle = triangular_solve(&system, &factors, &exchanged);
    triangular_solve(&TriangularSystem { lower: false, unit: false, ..system }, &factors, &middle)
}

/// Q and R by Householder reflections with the signs of LAPACK. An element of the diagonal of R has the opposite sign of the element that
/// the reflection maps to it, and a column that is zero below the diagonal has no reflection.
pub fn qr(a: &Matrix, full: bool) -> [Matrix; 2] {
    let (m, n) = (a.rows, a.columns);
    let made = if full { m } else { m.min(n) };
    if !a.is_finite() {
        return [Matrix::nan(m, made), Matrix::from_fn(made, n, |i, j| if i > j { 0.0 } else { f64::NAN })];
    }
    let (mut r, mut q) = (a.clone(), Matrix::identity(m));
    for k in 0..m.min(n) {
        let below = (k + 1..m).fold(0.0, |norm: f64, i| norm.hypot(r.get(i, k)));
        if below == 0.0 {
            continue;
        }
        let alpha = r.get(k, k);
        let beta = -alpha.hypot(below).copysign(alpha);
        let v: Vec<f64> = (0..m)
            .map(|i| match i.cmp(&k) {
                std::cmp::Ordering::Less => 0.0,
                std::cmp::Ordering::Equal => 1.0,
                std::cmp::Ordering::Greater => r.get(i, k) / (alpha - beta),
            })
            .collect();
        let tau = (beta - alpha) / beta;
        for j in k..n {
            let factor = tau * dot(&v, &r.column(j));
            (k..m).for_each(|i| *r.at(i, j) -= factor * v[i]);
        }
        *r.at(k, k) = beta;
        for row in 0..m {
            let factor = tau * (k..m).map(|i| q.get(row, i) * v[i]).sum::<f64>();
            (k..m).for_each(|i| *q.at(row, i) -= factor * v[i]);
        }
    }
    let upper = Matrix::from_fn(made, n, |i, j| if i > j { 0.0 } else { r.get(i, j) });
    [Matrix::from_fn(m, made, |i, j| q.get(i, j)), upper]
}

/// As [`qr`], with this number of columns in Q and rows in R, padded with zeros.
pub fn qr_block(a: &Matrix, width: usize) -> [Matrix; 2] {
    let [q, r] = qr(a, false);
    let least = a.rows.min(a.columns);
    let wide = Matrix::from_fn(a.rows, width, |i, j| if j < least { q.get(i, j) } else { 0.0 });
    [wide, Matrix::from_fn(width, a.columns, |i, j| if i < least { r.get(i, j) } else { 0.0 })]
}

/// The signs that `qr` gives to the columns of a matrix with orthonormal columns, from its first rows, as a row and as a column (Ballard et
/// al., "Reconstructing Householder vectors from tall-skinny QR", 2014). Their elements have been rounded to numbers of this distance
/// around one.
pub fn qr_signs(top: &Matrix, epsilon: f64) -> [Matrix; 2] {
    let n = top.rows;
    let (mut rest, mut signs) = (top.clone(), Vec::new());
    for k in 0..n {
        let element = rest.get(k, k);
        if element.abs() >= 1.0 - 4.0 * epsilon {
            signs.push(1.0_f64.copysign(element));
            continue;
        }
        let sign = if element < -64.0 * epsilon { 1.0 } else { -1.0 };
        signs.push(sign);
        for i in k + 1..n {
            let factor = rest.get(i, k) / (element - sign);
            for j in k + 1..n {
                *rest.at(i, j) -= factor * rest.get(k, j);
            }
        }
    }
    [Matrix::from_fn(1, n, |_, j| signs[j]), Matrix::from_fn(n, 1, |i, _| signs[i])]
}

/// The product of two matrices.
pub fn product(a: &Matrix, b: &Matrix) -> Matrix {
    Matrix::from_fn(a.rows, b.columns, |i, j| dot(&a.elements[i * a.columns..][..a.columns], &b.column(j)))
}

/// The most sweeps of Jacobi's methods: they converge quadratically, after a few.
const SWEEPS: usize = 60;

/// The eigenvalues in ascending order, and the eigenvectors: by rotations in each pair of dimensions in turn (cyclic Jacobi; Golub and Van Loan,
/// "Matrix Computations", 8.5).
pub fn eigh(a: &Matrix, lower: bool) -> [Matrix; 2] {
    let n = a.rows;
    let mut a = Matrix::from_fn(n, n, |i, j| if (i >= j) == lower { a.get(i, j) } else { a.get(j, i) });
    if !a.is_finite() {
        return [Matrix::nan(n, 1), Matrix::nan(n, n)];
    }
    let mut v = Matrix::identity(n);
    for _ in 0..SWEEPS {
        let mut is_done = true;
        for p in 0..n {
            for q in p + 1..n {
                let (off, scale) = (a.get(p, q), a.get(p, p).abs() + a.get(q, q).abs());
                if off == 0.0 || off.abs() < f64::EPSILON * 1e-3 * scale {
                    continue;
                }
                is_done = false;
                let tau = (a.get(q, q) - a.get(p, p)) / (2.0 * off);
                let t = tau.signum() / (tau.abs() + tau.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                for k in 0..n {
                    let (x, y) = (a.get(k, p), a.get(k, q));
                    (*a.at(k, p), *a.at(k, q)) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..n {
                    let (x, y) = (a.get(p, k), a.get(q, k));
                    (*a.at(p, k), *a.at(q, k)) = (c * x - s * y, s * x + c * y);
                    let (x, y) = (v.get(k, p), v.get(k, q));
                    (*v.at(k, p), *v.at(k, q)) = (c * x - s * y, s * x + c * y);
                }
            }
        }
        if is_done {
            break;
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a.get(i, i).total_cmp(&a.get(j, j)));
    let columns: Vec<Vec<f64>> = order.iter().map(|&j| signed(&v.column(j), sign(&v.column(j)))).collect();
    [Matrix::vector(order.iter().map(|&j| a.get(j, j)).collect()), Matrix::of_columns(n, &columns)]
}

/// The left vectors, the singular values in descending order, and the right vectors as rows: by rotations that make each pair of columns
/// orthogonal (one-sided Jacobi; Hestenes, "Inversion of matrices by biorthogonalization", 1958).
pub fn svd(a: &Matrix, full: bool) -> [Matrix; 3] {
    let (m, n) = (a.rows, a.columns);
    let least = m.min(n);
    let of = |size: usize| if full { size } else { least };
    if !a.is_finite() {
        return [Matrix::nan(m, of(m)), Matrix::nan(least, 1), Matrix::nan(of(n), n)];
    }
    // The columns are those of the shorter side.
    let tall = if m < n { a.transposed() } else { a.clone() };
    let mut columns: Vec<Vec<f64>> = (0..least).map(|j| tall.column(j)).collect();
    let mut right: Vec<Vec<f64>> = (0..least).map(|j| Matrix::identity(least).column(j)).collect();
    for _ in 0..SWEEPS {
        let mut is_done = true;
        for p in 0..least {
            for q in p + 1..least {
                let (pp, qq) = (dot(&columns[p], &columns[p]), dot(&columns[q], &columns[q]));
                let pq = dot(&columns[p], &columns[q]);
                if pq.abs() <= f64::EPSILON * (pp * qq).sqrt() || pq == 0.0 {
                    continue;
                }
                is_done = false;
                let tau = (qq - pp) / (2.0 * pq);
                let t = tau.signum() / (tau.abs() + tau.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                for all in [&mut columns, &mut right] {
                    for k in 0..all[p].len() {
                        let (x, y) = (all[p][k], all[q][k]);
                        (all[p][k], all[q][k]) = (c * (x - t * y), c * (t * x + y));
                    }
                }
            }
        }
        if is_done {
            break;
        }
    }
    let norms: Vec<f64> = columns.iter().map(|column| column.iter().fold(0.0, |norm: f64, x| norm.hypot(*x))).collect();
    let mut order: Vec<usize> = (0..least).collect();
    order.sort_by(|&i, &j| norms[j].total_cmp(&norms[i]));
    let known = order.iter().filter(|&&j| norms[j] > 0.0).map(|&j| columns[j].iter().map(|x| x / norms[j]).collect());
    let mut long = completed(known.collect(), tall.rows, if full { tall.rows } else { least });
    let mut short: Vec<Vec<f64>> = order.iter().map(|&j| right[j].clone()).collect();
    // The signs are those of the left vectors.
    let (left, others) = if m < n { (&mut short, &mut long) } else { (&mut long, &mut short) };
    for (j, vector) in left.iter_mut().enumerate() {
        let sign = sign(vector);
        *vector = signed(vector, sign);
        if let Some(other) = others.get_mut(j).filter(|_| j < least) {
            *other = signed(other, sign);
        }
    }
    for vector in others.iter_mut().skip(least) {
        *vector = signed(vector, sign(vector));
    }
    let values = Matrix::vector(order.iter().map(|&j| norms[j]).collect());
    [Matrix::of_columns(m, left), values, Matrix::of_columns(n, others).transposed()]
}

/// Orthonormal vectors, `count` in total: the given ones, and unit vectors made orthogonal to them (Gram and Schmidt), each time the vector
/// with the largest remainder.
fn completed(mut vectors: Vec<Vec<f64>>, rows: usize, count: usize) -> Vec<Vec<f64>> {
    while vectors.len() < count {
        let rest = |unit: usize| {
            let mut vector: Vec<f64> = (0..rows).map(|i| f64::from(u8::from(i == unit))).collect();
            // Twice, as rounding leaves a little the first time.
            for other in vectors.iter().chain(&vectors) {
                let factor = dot(&vector, other);
                vector.iter_mut().zip(other).for_each(|(x, y)| *x -= factor * y);
            }
            let norm = dot(&vector, &vector).sqrt();
            (norm, vector)
        };
        let best = (0..rows).map(rest).max_by(|(a, _), (b, _)| a.total_cmp(b));
        let (norm, vector) = best.expect("there are at least as many unit vectors");
        vectors.push(vector.iter().map(|x| x / norm).collect());
    }
    vectors
}

/// Of the elements whose magnitude is at least nine tenths of the largest, the first is positive.
fn sign(vector: &[f64]) -> f64 {
    let largest = vector.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    vector.iter().find(|x| x.abs() >= 0.9 * largest).map_or(1.0, |x| 1.0_f64.copysign(*x))
}

fn signed(vector: &[f64], sign: f64) -> Vec<f64> {
    vector.iter().map(|x| sign * x).collect()
}
