//! The plain algorithms of the factorizations: products of the factors, systems, and NaN.

use spmdc_abi::TriangularSystem;
use spmdc_linalg_ops::reference::{Matrix, cholesky, eigh, lu, product, qr, svd, triangular_solve};

fn noise(rows: usize, columns: usize) -> Matrix {
    Matrix::from_fn(rows, columns, |i, j| {
        let bits = ((i * 7919 + j * 104_729 + 17) as u32).wrapping_mul(2_654_435_761);
        f64::from(bits ^ (bits >> 15)) / f64::from(u32::MAX) - 0.5
    })
}

fn distance(a: &Matrix, b: &Matrix) -> f64 {
    assert_eq!((a.rows, a.columns), (b.rows, b.columns));
    a.elements.iter().zip(&b.elements).fold(0.0, |most: f64, (a, b)| most.max((a - b).abs()))
}

fn diagonal(values: &Matrix, rows: usize, columns: usize) -> Matrix {
    Matrix::from_fn(rows, columns, |i, j| if i == j { values.elements[i] } else { 0.0 })
}

const SIZES: [(usize, usize); 8] = [(0, 0), (1, 1), (3, 3), (8, 8), (1, 4), (5, 2), (2, 5), (9, 6)];

#[test]
fn factors_multiply_to_the_matrix() {
    for (m, n) in SIZES {
        let a = noise(m, n);
        for full in [false, true] {
            let [q, r] = qr(&a, full);
            assert!(distance(&product(&q, &r), &a) < 1e-14, "{m} {n}");
            assert!(distance(&product(&q.transposed(), &q), &Matrix::identity(q.columns)) < 1e-14);
            let [u, values, v] = svd(&a, full);
            let made = product(&product(&u, &diagonal(&values, u.columns, v.rows)), &v);
            assert!(distance(&made, &a) < 1e-14, "{m} {n} {full}");
            assert!(distance(&product(&u.transposed(), &u), &Matrix::identity(u.columns)) < 1e-13);
            assert!(distance(&product(&v, &v.transposed()), &Matrix::identity(v.rows)) < 1e-13);
        }
        let [factors, _, sources] = lu(&a);
        let least = m.min(n);
        let l = Matrix::from_fn(m, least, |i, j| {
            if i == j {
                1.0
            } else if i > j {
                factors.get(i, j)
            } else {
                0.0
            }
        });
        let u = Matrix::from_fn(least, n, |i, j| if i <= j { factors.get(i, j) } else { 0.0 });
        let rows = Matrix::from_fn(m, n, |i, j| a.get(sources.elements[i] as usize, j));
        assert!(distance(&product(&l, &u), &rows) < 1e-14, "{m} {n}");
    }
}

#[test]
fn symmetric_matrices_have_eigenvectors_and_positive_ones_a_root() {
    for n in [0, 1, 2, 5, 12] {
        let b = noise(n, n);
        let square = product(&b, &b.transposed());
        let a = Matrix::from_fn(n, n, |i, j| square.get(i, j) + f64::from(u8::from(i == j)));
        let [values, vectors] = eigh(&a, true);
        let made = product(&product(&vectors, &diagonal(&values, n, n)), &vectors.transposed());
        assert!(distance(&made, &a) < 1e-13, "{n}");
        assert!(values.elements.is_sorted());
        let l = cholesky(&a);
        assert!(distance(&product(&l, &l.transposed()), &a) < 1e-13, "{n}");
    }
}

#[test]
fn all_forms_of_triangular_systems_are_solved() {
    for bits in 0..16 {
        let [left, lower, transposed, unit] = [0, 1, 2, 3].map(|bit| bits >> bit & 1 == 1);
        let a = Matrix::from_fn(5, 5, |i, j| noise(5, 5).get(i, j) + f64::from(u8::from(i == j)));
        let b = if left { noise(5, 3) } else { noise(3, 5) };
        let x = triangular_solve(&TriangularSystem { left, lower, transposed, unit }, &a, &b);
        let own = Matrix::from_fn(5, 5, |i, j| {
            if i == j && unit {
                1.0
            } else if i == j || (i > j) == lower {
                a.get(i, j)
            } else {
                0.0
            }
        });
        let own = if transposed { own.transposed() } else { own };
        let made = if left { product(&own, &x) } else { product(&x, &own) };
        assert!(distance(&made, &b) < 1e-12, "{left} {lower} {transposed} {unit}");
    }
}

#[test]
fn nothing_iterates_over_nan() {
    let a = Matrix::from_fn(3, 3, |_, _| f64::NAN);
    assert!(eigh(&a, true)[0].elements.iter().all(|x| x.is_nan()));
    assert!(svd(&a, false)[1].elements.iter().all(|x| x.is_nan()));
    assert!(cholesky(&a).get(0, 0).is_nan());
    assert_eq!(svd(&Matrix::from_fn(3, 2, |_, _| 0.0), true)[1].elements, [0.0, 0.0]);
}
