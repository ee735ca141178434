//! Eigenvalues of general matrices in complex arithmetic, by the simplest algorithm. It has rotations that reduce the matrix to one with a
//! single diagonal below the main one, QR steps with Wilkinson's shift, and substitution (Golub and Van Loan, "Matrix Computations",
//! chapter 7). They have the order of the iteration.

use crate::reference::Matrix;
use std::ops::{Add, Mul, Sub};

#[derive(Clone, Copy)]
struct Complex {
    re: f64,
    im: f64,
}

const ZERO: Complex = Complex { re: 0.0, im: 0.0 };
const ONE: Complex = Complex { re: 1.0, im: 0.0 };

impl Complex {
    fn conj(self) -> Complex {
        Complex { im: -self.im, ..self }
    }

    fn size(self) -> f64 {
        self.re.hypot(self.im)
    }

    fn times(self, factor: f64) -> Complex {
        Complex { re: self.re * factor, im: self.im * factor }
    }

    fn over(self, other: Complex) -> Complex {
        // Scaled, so that squares neither overflow nor vanish.
        let size = other.size();
        let unit = other.times(size.recip());
        (self * unit.conj()).times(size.recip())
    }

    fn root(self) -> Complex {
        let (size, angle) = (self.size().sqrt(), self.im.atan2(self.re) / 2.0);
        Complex { re: size * angle.cos(), im: size * angle.sin() }
    }
}

impl Add for Complex {
    type Output = Complex;

    fn add(self, other: Complex) -> Complex {
        Complex { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Complex {
    type Output = Complex;

    fn sub(self, other: Complex) -> Complex {
        self + other.times(-1.0)
    }
}

impl Mul for Complex {
    type Output = Complex;

    fn mul(self, other: Complex) -> Complex {
        Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// The planes of the eigenvalues, and of the eigenvectors: each has length one, and its largest element is real and positive. NaN if an
/// element is not finite, or if the iteration does not converge.
pub fn eig(re: &Matrix, im: Option<&Matrix>) -> Vec<Matrix> {
    let n = re.rows;
    let largest = re
        .elements
        .iter()
        .chain(im.into_iter().flat_map(|im| &im.elements))
        .fold(0.0, |most: f64, x| if x.is_finite() { most.max(x.abs()) } else { f64::INFINITY });
    let scale = if largest == 0.0 { 1.0 } else { largest };
    let part = |plane: &Matrix, i: usize, j: usize| plane.get(i, j) / scale;
    let mut t: Vec<Vec<Complex>> = (0..n)
        .map(|i| (0..n).map(|j| Complex { re: part(re, i, j), im: im.map_or(0.0, |im| part(im, i, j)) }).collect())
        .collect();
    let mut z: Vec<Vec<Complex>> = (0..n).map(|i| (0..n).map(|j| if i == j { ONE } else { ZERO }).collect()).collect();
    if !largest.is_finite() || !schur(&mut t, &mut z) {
        let (values, vectors) = (Matrix::from_fn(n, 1, |_, _| f64::NAN), Matrix::from_fn(n, n, |_, _| f64::NAN));
        return vec![values.clone(), values, vectors.clone(), vectors];
    }
    let vectors: Vec<Vec<Complex>> = (0..n).map(|k| vector(&t, &z, k)).collect();
    vec![
        Matrix::from_fn(n, 1, |i, _| t[i][i].re * scale),
        Matrix::from_fn(n, 1, |i, _| t[i][i].im * scale),
        Matrix::from_fn(n, n, |i, j| vectors[j][i].re),
        Matrix::from_fn(n, n, |i, j| vectors[j][i].im),
    ]
}

/// Rotates rows `p` and `q`, where p is the first, and the columns, by the rotation that makes the second number of the pair zero.
fn rotate(t: &mut [Vec<Complex>], z: &mut [Vec<Complex>], (p, q): (usize, usize), (x, y): (Complex, Complex)) {
    let size = x.size().hypot(y.size());
    if y.size() == 0.0 {
        return;
    }
    let (c, s) = (x.times(size.recip()), y.times(size.recip()));
    let (upper, lower) = t.split_at_mut(q);
    for (above, below) in upper[p].iter_mut().zip(&mut lower[0]) {
        (*above, *below) = (c.conj() * *above + s.conj() * *below, c * *below - s * *above);
    }
    for row in t.iter_mut().chain(z.iter_mut()) {
        let (left, right) = (row[p], row[q]);
        (row[p], row[q]) = (left * c + right * s, right * c.conj() - left * s.conj());
    }
}

/// Makes a matrix upper triangular by unitary similarities, whose product `z` becomes.
fn schur(t: &mut [Vec<Complex>], z: &mut [Vec<Complex>]) -> bool {
    let n = t.len();
    for k in 0..n.saturating_sub(2) {
        for i in k + 2..n {
            let pair = (t[k + 1][k], t[i][k]);
            rotate(t, z, (k + 1, i), pair);
            t[i][k] = ZERO;
        }
    }
    let mut last = n.saturating_sub(1);
    let mut step = 0_usize;
    while last > 0 {
        let is_small = |t: &[Vec<Complex>], k: usize| {
            let scale = t[k][k].size() + t[k - 1][k - 1].size();
            t[k][k - 1].size() <= f64::EPSILON * 0.1 * if scale == 0.0 { 1.0 } else { scale }
        };
        let first = (1..=last).rev().find(|&k| is_small(t, k)).unwrap_or(0);
        if first > 0 {
            t[first][first - 1] = ZERO;
        }
        if first == last {
            (last, step) = (last - 1, 0);
            continue;
        }
        step += 1;
        if step > 1000 {
            return false;
        }
        let shift = if step.is_multiple_of(10) {
            t[last][last] + Complex { re: t[last][last - 1].size(), im: 0.0 }
        } else {
            let (a, d) = (t[last - 1][last - 1], t[last][last]);
            let half = (a - d).times(0.5);
            let root = (half * half + t[last - 1][last] * t[last][last - 1]).root();
            let root = if half.re * root.re + half.im * root.im < 0.0 { root.times(-1.0) } else { root };
            let sum = half + root;
            if sum.size() == 0.0 { d } else { d - (t[last - 1][last] * t[last][last - 1]).over(sum) }
        };
        let mut pair = (t[first][first] - shift, t[first + 1][first]);
        for k in first..last {
            rotate(t, z, (k, k + 1), pair);
            if k > first {
                t[k + 1][k - 1] = ZERO;
            }
            if k + 2 <= last {
                pair = (t[k + 1][k], t[k + 2][k]);
            }
        }
    }
    true
}

fn vector(t: &[Vec<Complex>], z: &[Vec<Complex>], k: usize) -> Vec<Complex> {
    let n = t.len();
    let mut x = vec![ZERO; n];
    x[k] = ONE;
    for i in (0..k).rev() {
        let sum = (i + 1..=k).fold(ZERO, |sum, j| sum + t[i][j] * x[j]);
        let pivot = t[i][i] - t[k][k];
        let least = f64::EPSILON * t[k][k].size().max(1e-290);
        let pivot = if pivot.size() < least { Complex { re: least, im: 0.0 } } else { pivot };
        x[i] = ZERO - sum.over(pivot);
        let size = x[i].size();
        if size > 1e100 {
            x[i..=k].iter_mut().for_each(|x| *x = x.times(size.recip()));
        }
    }
    let mut v: Vec<Complex> = z.iter().map(|row| (0..=k).fold(ZERO, |sum, j| sum + row[j] * x[j])).collect();
    let largest = (1..n).fold(0, |best, i| if v[i].size() > v[best].size() { i } else { best });
    let unit = v[largest].conj().times(v[largest].size().recip());
    let length = v.iter().fold(0.0, |length: f64, x| length.hypot(x.size()));
    v.iter_mut().for_each(|x| *x = (*x * unit).times(length.recip()));
    v
}
