//! Factorizations of pseudorandom matrices, of all sizes around the size of a block.

mod cholesky;
mod lu;
mod qr;
mod spectral;
mod triangular;
mod workers;

use faer::Mat;

/// Numbers from -0.5 to 0.5 that look random.
fn noise(rows: usize, columns: usize) -> Mat<f64> {
    Mat::from_fn(rows, columns, |i, j| {
        let bits = ((i * 7919 + j * 104_729 + 17) as u32).wrapping_mul(2_654_435_761);
        f64::from(bits ^ (bits >> 15)) / f64::from(u32::MAX) - 0.5
    })
}

/// The largest magnitude.
fn largest(a: &Mat<f64>) -> f64 {
    a.col_iter().flat_map(|column| column.iter().copied().collect::<Vec<f64>>()).fold(0.0, |m, x| x.abs().max(m))
}
