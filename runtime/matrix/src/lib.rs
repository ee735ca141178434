//! Factorizations of one matrix of f32 or f64, in memory that the caller plans, over threads that the caller has.
//!
//! Matrices are column-major views. The factorizations by elimination and by reflections are implemented here, on blocks of columns with
//! products by `faer`. They treat ties, zero pivots and NaN like LAPACK (`potrf`, `trsm`, `getrf`, `geqrf`), which `jax.numpy.linalg`
//! calls. The iterative ones, `eigh`, `svd` and `eig` of real matrices, are `faer`'s for small matrices.
//!
//! The blocks, and the strips of columns that threads update, follow from the shape of the matrix only, and so do the bits of the results.

mod bidiagonal;
mod cholesky;
mod complex_qr;
mod eigen;
mod element;
mod lanes;
mod lu;
mod memory;
mod qr;
mod secular;
mod singular;
mod spectral;
mod triangular;
mod tridiagonal;
mod workers;

pub use cholesky::{BATCH, cholesky, cholesky_batch, cholesky_rows};
pub use eigen::{eig, eig_scratch};
pub use element::MatrixElement;
pub use faer::{MatMut, MatRef};
pub use lu::{lu, lu_complete};
pub use qr::{Reflections, qr_scratch, qr_signs};
pub use spectral::{eigh, eigh_scratch, svd, svd_scratch};
pub use triangular::solve_triangular;
pub use workers::{Alone, Workers};

use faer::linalg::matmul::matmul;
use faer::{Accum, Par};

/// Columns that are factorized at a time; all further ones are updated by products.
pub(crate) const BLOCK: usize = 64;

/// Columns of a matrix that a task updates.
pub(crate) const STRIP: usize = 64;

/// Right sides that a task solves. A product with fewer columns could have other bits, so larger systems have whole groups of them.
pub const RIGHT: usize = 32;

/// Rows or columns of matrices that are factorized one by one, without products.
pub const SMALL: usize = 32;

/// `c -= a b`
pub fn subtract_product<T: MatrixElement>(c: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>) {
    debug_assert_eq!((a.ncols(), a.nrows(), b.ncols()), (b.nrows(), c.nrows(), c.ncols()), "shapes of a product");
    matmul(c, Accum::Add, a, b, T::of(-1.0), Par::Seq);
}

/// `c = a b`
pub fn multiply<T: MatrixElement>(c: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>) {
    debug_assert_eq!((a.ncols(), a.nrows(), b.ncols()), (b.nrows(), c.nrows(), c.ncols()), "shapes of a product");
    matmul(c, Accum::Replace, a, b, T::of(1.0), Par::Seq);
}

/// Whether no element is NaN or infinite.
pub fn is_finite<T: MatrixElement>(a: MatRef<'_, T>) -> bool {
    a.col_iter().all(|column| column.iter().all(|element| element.is_number()))
}
