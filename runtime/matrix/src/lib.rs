//! Factorizations of one matrix of f64, single-threaded, in memory that the caller plans.
//!
//! Matrices are column-major views. The factorizations by elimination and by reflections are implemented here, on blocks of `BLOCK`
//! columns with products by `faer`. They treat ties, zero pivots and NaN like LAPACK (`potrf`, `trsm`, `getrf`, `geqrf`), which
//! `jax.numpy.linalg` calls. The iterative ones, `eigh`, `svd` and `eig` of real matrices, are `faer`'s.

mod cholesky;
mod complex_qr;
mod eigen;
mod lu;
mod qr;
mod spectral;
mod triangular;

pub use cholesky::{cholesky, cholesky_rows};
pub use eigen::{eig, eig_scratch};
pub use faer::{MatMut, MatRef};
pub use lu::{lu, lu_complete};
pub use qr::{form_q, qr, qr_scratch, qr_signs};
pub use spectral::{eigh, eigh_scratch, svd, svd_scratch};
pub use triangular::solve_triangular;
pub(crate) use triangular::{solve_lower, solve_right_transposed};

use faer::linalg::matmul::matmul;
use faer::{Accum, Par};

/// Columns that are factorized at a time; all further ones are updated by a product.
pub(crate) const BLOCK: usize = 32;

/// `c -= a b`
pub fn subtract_product(c: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    debug_assert_eq!((a.ncols(), a.nrows(), b.ncols()), (b.nrows(), c.nrows(), c.ncols()), "shapes of a product");
    matmul(c, Accum::Add, a, b, -1.0, Par::Seq);
}

/// `c = a b`
pub fn multiply(c: MatMut<'_, f64>, a: MatRef<'_, f64>, b: MatRef<'_, f64>) {
    debug_assert_eq!((a.ncols(), a.nrows(), b.ncols()), (b.nrows(), c.nrows(), c.ncols()), "shapes of a product");
    matmul(c, Accum::Replace, a, b, 1.0, Par::Seq);
}

/// Whether no element is NaN or infinite.
pub fn is_finite(a: MatRef<'_, f64>) -> bool {
    a.col_iter().all(|column| column.iter().all(|element| element.is_finite()))
}
