//! The same bits for any order of the tasks, and for tasks side by side.

use crate::noise;
use faer::Mat;
use spmdc_matrix::{
    Alone, MatrixElement, RIGHT, Reflections, Workers, cholesky, eigh, eigh_scratch, lu, qr_scratch, solve_triangular,
    svd, svd_scratch,
};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Threads that take one task after another, the last one first.
struct Threads(usize);

impl Workers for Threads {
    fn each(&mut self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..self.0 {
                scope.spawn(|| {
                    while let Some(left) = count.checked_sub(done.fetch_add(1, Ordering::Relaxed) + 1) {
                        task(left);
                    }
                });
            }
        });
    }
}

/// The results of all factorizations of a matrix, as bits.
fn bits<T: MatrixElement>(m: usize, n: usize, workers: &mut dyn Workers) -> Vec<u64> {
    let own = |rows: usize, columns: usize| {
        let numbers = noise(rows, columns);
        Mat::from_fn(rows, columns, |i, j| T::of(numbers[(i, j)]))
    };
    let a = own(m, n);
    let mut all = Vec::new();
    let mut keep = |matrix: &Mat<T>| {
        all.extend(matrix.col_iter().flat_map(|column| column.iter().map(|x| x.wide().to_bits()).collect::<Vec<_>>()))
    };
    let mut pivots = vec![0; m.min(n)];
    let mut factors = a.clone();
    lu(factors.as_mut(), Mat::<T>::zeros(m, 0).as_mut(), &mut pivots, workers);
    keep(&factors);
    let (mut factors, mut sides) = (a.clone(), own(m, 2 * RIGHT));
    lu(factors.as_mut(), sides.as_mut(), &mut pivots, workers);
    let least = m.min(n);
    let (square, mut top) = (factors.submatrix(0, 0, least, least), sides.subrows(0, least).to_owned());
    solve_triangular(square, (false, false), top.as_mut(), workers);
    keep(&top);
    let mut scratch = vec![T::of(0.0); qr_scratch(m, n, m)];
    let mut factors = a.clone();
    let mut reflections = Reflections::of(factors.as_mut(), &mut scratch, workers);
    let mut q = Mat::zeros(m, m);
    reflections.form_q(q.as_mut(), workers);
    keep(&q);
    let mut l = &a * a.transpose() + Mat::<T>::identity(m, m);
    let mut vectors = l.clone();
    let (mut values, mut scratch) = (vec![T::of(0.0); m], vec![T::of(0.0); eigh_scratch::<T>(m)]);
    eigh(l.clone().as_mut(), &mut values, vectors.as_mut(), &mut scratch, workers);
    keep(&vectors);
    let (mut u, mut v) = (Mat::zeros(m, m), Mat::zeros(n, n));
    let (mut values, mut scratch) = (vec![T::of(0.0); least], vec![T::of(0.0); svd_scratch::<T>(m, n, Some(true))]);
    svd(a.clone().as_mut(), &mut values, Some((u.as_mut(), v.as_mut())), &mut scratch, workers);
    keep(&u);
    keep(&v);
    assert!(cholesky(l.as_mut(), workers));
    keep(&l);
    all
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    for (m, n) in [(33, 33), (64, 65), (130, 70), (70, 130), (200, 200)] {
        let (single, double) = (bits::<f32>(m, n, &mut Alone), bits::<f64>(m, n, &mut Alone));
        for threads in [1, 2, 3, 8] {
            assert!(bits::<f32>(m, n, &mut Threads(threads)) == single, "{m} {n} on {threads}");
            assert!(bits::<f64>(m, n, &mut Threads(threads)) == double, "{m} {n} on {threads}");
        }
    }
}
