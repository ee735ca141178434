//! Eigenvalues and eigenvectors of general matrices, in the order and with the scales of LAPACK's `geev`: balancing, reduction to a
//! Hessenberg matrix, and QR steps. `faer` computes them for real matrices, and `complex_qr` for complex ones.
//!
//! A complex matrix is a pair of planes, the real and the imaginary part.

use crate::lanes::power_near;
use crate::memory::{elements, stack};
use crate::spectral::{largest, scaled};
use crate::{complex_qr, is_finite};
use faer::diag::DiagMut;
use faer::linalg::evd::{self, ComputeEigenvectors};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{MatMut, Par, Spec};
use std::ops::Range;

/// Elements of the scratch memory of [`eig`] for a matrix of `n` rows with this number of planes.
pub fn eig_scratch(n: usize, planes: usize) -> usize {
    if n == 0 {
        return 0;
    }
    let balance = 2 * n;
    if planes == 2 {
        return balance + 2 * n * n + 2 * n;
    }
    let kind = ComputeEigenvectors::Yes;
    balance
        + n * n
        + elements::<f64>(evd::evd_scratch::<f64>(n, ComputeEigenvectors::No, kind, Par::Seq, Spec::default()))
}

/// The eigenvalues of a matrix of one or two planes, and the vectors as columns, each by planes. Vectors have length one; the largest
/// element of each is real, and for a complex matrix positive. The planes are overwritten. NaN if an element is not finite, or if the
/// iteration does not converge.
pub fn eig(
    planes: &mut [MatMut<'_, f64>],
    values: [&mut [f64]; 2],
    mut vectors: Option<[MatMut<'_, f64>; 2]>,
    scratch: &mut [f64],
) {
    let n = planes[0].nrows();
    assert!(planes.len() <= 2 && scratch.len() >= eig_scratch(n, planes.len()), "memory for {n} eigenvalues");
    if n == 0 {
        return;
    }
    let [re, im] = values;
    let found = planes.iter().all(|plane| is_finite(plane.rb())) && {
        let (scales, scratch) = scratch.split_at_mut(n);
        let (sources, scratch) = scratch.split_at_mut(n);
        let size = power_near::<f64>(planes.iter().fold(0.0, |most: f64, plane| most.max(largest(plane.rb()))));
        planes.iter_mut().for_each(|plane| scaled(plane.rb_mut(), size.recip()));
        let inner = balance(planes, scales, sources);
        let own = vectors.as_mut().map(|[re, im]| [re.rb_mut(), im.rb_mut()]);
        let found = match planes {
            [a] => real(a.rb_mut(), [re, im], own, scratch),
            [first, second] => complex_qr::eigen([first.rb_mut(), second.rb_mut()], [re, im], own, scratch),
            _ => unreachable!("a matrix has one plane or two"),
        };
        for value in re.iter_mut().chain(im.iter_mut()) {
            *value *= size;
        }
        if let Some([first, second]) = &mut vectors {
            for plane in [first.rb_mut(), second.rb_mut()] {
                restore(plane, scales, sources, inner.clone());
            }
            for j in 0..n {
                normalize([first.rb_mut(), second.rb_mut()], j, planes.len() == 1);
            }
        }
        found
    };
    if !found {
        re.fill(f64::NAN);
        im.fill(f64::NAN);
        vectors.into_iter().flatten().for_each(|mut plane| plane.fill(f64::NAN));
    }
}

/// For a real matrix: pairs of conjugate eigenvalues are adjacent, the one above the real axis first.
fn real(
    a: MatMut<'_, f64>,
    [re, im]: [&mut [f64]; 2],
    vectors: Option<[MatMut<'_, f64>; 2]>,
    scratch: &mut [f64],
) -> bool {
    let n = a.nrows();
    let (pairs, scratch) = scratch.split_at_mut(n * n);
    let mut pairs = MatMut::from_column_major_slice_mut(pairs, n, n);
    let wanted = vectors.is_some().then(|| pairs.rb_mut());
    let (own, other) = (DiagMut::from_slice_mut(re), DiagMut::from_slice_mut(im));
    if evd::evd_real(a.rb(), own, other, None, wanted, Par::Seq, stack(scratch), Spec::default()).is_err() {
        return false;
    }
    let Some([mut first, mut second]) = vectors else { return true };
    second.fill(0.0);
    let mut j = 0;
    while j < n {
        if im[j] == 0.0 {
            (0..n).for_each(|i| first[(i, j)] = pairs[(i, j)]);
            j += 1;
            continue;
        }
        for i in 0..n {
            (first[(i, j)], first[(i, j + 1)]) = (pairs[(i, j)], pairs[(i, j)]);
            (second[(i, j)], second[(i, j + 1)]) = (pairs[(i, j + 1)], -pairs[(i, j + 1)]);
        }
        j += 2;
    }
    true
}

/// Whether an element is not zero.
fn is_there(planes: &[MatMut<'_, f64>], i: usize, j: usize) -> bool {
    planes.iter().any(|plane| plane[(i, j)] != 0.0)
}

/// Exchanges two indices, of rows and of columns.
fn exchange(planes: &mut [MatMut<'_, f64>], i: usize, j: usize) {
    if i == j {
        return;
    }
    for plane in planes {
        let n = plane.nrows();
        for k in 0..n {
            let (x, y) = (plane[(k, i)], plane[(k, j)]);
            (plane[(k, i)], plane[(k, j)]) = (y, x);
        }
        for k in 0..n {
            let (x, y) = (plane[(i, k)], plane[(j, k)]);
            (plane[(i, k)], plane[(j, k)]) = (y, x);
        }
    }
}

/// Balances a matrix (`gebal`; Parlett and Reinsch, "Balancing a matrix for calculation of eigenvalues and eigenvectors", 1969). Indices
/// whose rows or columns have no other elements are moved to the ends. The rows and columns of the other indices, whose range is returned,
/// are scaled by powers of two to similar norms.
fn balance(planes: &mut [MatMut<'_, f64>], scales: &mut [f64], sources: &mut [f64]) -> Range<usize> {
    let n = planes[0].nrows();
    let (mut first, mut end) = (0, n);
    scales.fill(1.0);
    (0..n).for_each(|i| sources[i] = i as f64);
    while let Some(row) = (0..end).rev().find(|&i| (0..end).all(|j| i == j || !is_there(planes, i, j))) {
        end -= 1;
        sources[end] = row as f64;
        exchange(planes, row, end);
    }
    while let Some(column) = (first..end).find(|&j| (first..end).all(|i| i == j || !is_there(planes, i, j))) {
        sources[first] = column as f64;
        exchange(planes, column, first);
        first += 1;
    }
    let norm = |planes: &[MatMut<'_, f64>], elements: &dyn Fn(usize) -> (usize, usize)| {
        let all = planes.iter().flat_map(|plane| (first..end).map(move |k| plane[elements(k)]));
        all.map(|x| x * x).sum::<f64>().sqrt()
    };
    let mut is_done = first == end;
    while !is_done {
        is_done = true;
        for i in first..end {
            let (column, row) = (norm(planes, &|k| (k, i)), norm(planes, &|k| (i, k)));
            if column == 0.0 || row == 0.0 {
                continue;
            }
            let (mut factor, mut c, mut r) = (1.0_f64, column, row);
            while c < r / 2.0 && factor < 1e290 {
                (factor, c, r) = (factor * 2.0, c * 2.0, r / 2.0);
            }
            while c / 2.0 >= r && factor > 1e-290 {
                (factor, c, r) = (factor / 2.0, c / 2.0, r * 2.0);
            }
            let whole = scales[i] * factor;
            if c + r >= 0.95 * (column + row) || !(1e-290..1e290).contains(&whole) {
                continue;
            }
            is_done = false;
            scales[i] = whole;
            for plane in planes.iter_mut() {
                for k in 0..n {
                    plane[(i, k)] /= factor;
                }
                for k in 0..n {
                    plane[(k, i)] *= factor;
                }
            }
        }
    }
    first..end
}

/// Vectors of the matrix before [`balance`] (`gebak`).
fn restore(mut vectors: MatMut<'_, f64>, scales: &[f64], sources: &[f64], inner: Range<usize>) {
    let n = vectors.nrows();
    for j in 0..n {
        for i in inner.clone() {
            vectors[(i, j)] *= scales[i];
        }
        for i in (0..inner.start).rev().chain(inner.end..n) {
            let source = sources[i] as usize;
            let (x, y) = (vectors[(i, j)], vectors[(source, j)]);
            (vectors[(i, j)], vectors[(source, j)]) = (y, x);
        }
    }
}

/// Makes a vector one of length one whose largest element is real, and positive if `is_real` does not say that the matrix is real.
fn normalize([mut re, mut im]: [MatMut<'_, f64>; 2], j: usize, is_real: bool) {
    let n = re.nrows();
    let largest = (0..n).fold(0.0, |largest: f64, i| largest.max(re[(i, j)].abs()).max(im[(i, j)].abs()));
    if largest == 0.0 || !largest.is_finite() {
        return;
    }
    for i in 0..n {
        re[(i, j)] /= largest;
        im[(i, j)] /= largest;
    }
    let squares =
        |re: &MatMut<'_, f64>, im: &MatMut<'_, f64>, i: usize| re[(i, j)] * re[(i, j)] + im[(i, j)] * im[(i, j)];
    let length = (0..n).map(|i| squares(&re, &im, i)).sum::<f64>().sqrt();
    let pivot = (1..n).fold(0, |best, i| if squares(&re, &im, i) > squares(&re, &im, best) { i } else { best });
    let (x, y) = (re[(pivot, j)], im[(pivot, j)]);
    if is_real && y == 0.0 && (0..n).all(|i| im[(i, j)] == 0.0) {
        (0..n).for_each(|i| re[(i, j)] /= length);
        return;
    }
    let size = if is_real { x.hypot(y).copysign(x) } else { x.hypot(y) };
    let (cosine, sine) = (x / size, y / size);
    for i in 0..n {
        let (x, y) = (re[(i, j)], im[(i, j)]);
        re[(i, j)] = (x * cosine + y * sine) / length;
        im[(i, j)] = (y * cosine - x * sine) / length;
    }
    im[(pivot, j)] = 0.0;
}
