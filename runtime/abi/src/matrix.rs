//! Functions of matrices.

use crate::{DType, Scalar};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A function of matrices of f32 or f64, computed in the type of [`MatrixFunction::precision`].
///
/// Every array has the dimensions of a matrix, rows first, or of a vector. The last array is the scratch memory, of f64, with the
/// dimensions slots and elements. Each thread uses one of the slots, which have at least [`MatrixFunction::scratch`] elements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MatrixFunction {
    /// `a: [n, n]` gives L, with zeros above the diagonal: `a = L Lᵀ`. The elements of `a` above the diagonal are not read. If the matrix is
    /// not positive definite or has NaN, all on and below the diagonal are NaN.
    Cholesky,
    /// `a: [n, n]` and `b: [n, k]` give x of the shape of `b`, with `op(a) x = b`; or `b: [k, n]` with `x op(a) = b`.
    TriangularSolve(TriangularSystem),
    /// `a: [n, n]` and `b: [n, k]` give x of the shape of `b`, with `a x = b`, by elimination with row exchanges.
    Solve,
    /// `a: [m, n]` gives L and U in one matrix, the row exchanged with each row (i32), and the source of each row (i32, `[m]`).
    Lu,
    /// `a: [n, n]` gives the diagonal of U of [`MatrixFunction::Lu`], and the row exchanged with each row (i32).
    LuDiagonal,
    /// `a: [n, n]` is factorized into L and U in one matrix, the source of each row and the source of each column (i32), by elimination
    /// with exchanges of rows and columns.
    LuComplete,
    /// `a: [m, n]` gives Q and R, or R alone.
    Qr {
        /// Whether Q has as many columns as rows, and R as many rows as `a`; otherwise as the smaller side of `a`.
        full: bool,
        /// Whether Q is a result.
        q: bool,
    },
    /// `a: [m, n]` is factorized into Q with `width` columns and R with `width` rows. `width` is at least the smaller side of `a`; the
    /// other elements are zeros.
    QrBlock {
        /// The columns of Q.
        width: usize,
    },
    /// The first `n` rows of `q`, a matrix `[n, n]` with orthonormal columns below and above, give for each column the sign that
    /// [`MatrixFunction::Qr`] gives it: as one row, and as one column.
    QrSigns,
    /// A step of [`MatrixFunction::Cholesky`] of a matrix whose rows are split: `a: [m, n]` is a block of rows, `first` the index of its first
    /// one, and `b: [w, e]` the rows of L that end before row `e`. Rows from `e` on get their elements of L in the columns of these `w`
    /// rows; then the block that begins at row `e` is completed. Without `b` it is 0. A pivot that is not positive makes NaN.
    CholeskyRows {
        /// The index of the block's first row.
        first: Scalar,
    },
    /// The last step: if the last element of L, `b: [1, 1]`, is NaN, so are all elements of the block `a: [m, n]` on and below the diagonal.
    CholeskyChecked {
        /// The index of the block's first row.
        first: Scalar,
    },
    /// A step of [`MatrixFunction::TriangularSolve`] of a matrix whose rows are split, on the left. `a: [m, n]` is a block of rows, `first`
    /// the index of its first row, and `b: [m, k]` the same rows of the right-hand sides. The block of the rows `own` becomes a part of the
    /// solution.
    ///
    /// Without transposition `c: [w, k]` are the most recently solved rows of the solution, which are adjacent to `own`. Their products are
    /// subtracted from all unsolved rows. With transposition `c` are the products of [`MatrixFunction::TriangularSums`], which are
    /// subtracted from the rows `own` only. Without `c` there are no products.
    TriangularRows {
        /// The index of the block's first row.
        first: Scalar,
        /// The rows that are solved.
        own: Range<usize>,
        /// The system.
        system: TriangularSystem,
    },
    /// Computes the products `[own, k]` of the columns `own` with the solution, from `a: [m, n]` and `b: [m, k]`, blocks of rows of a
    /// matrix and of the solution of the transposed system. They are zeros if the rows are not solved before the rows of `own`.
    TriangularSums {
        /// The index of the block's first row.
        first: Scalar,
        /// The rows of the solution that are solved next.
        own: Range<usize>,
        /// The system.
        system: TriangularSystem,
    },
    /// `a: [m, k]` and `b: [k, n]` give their product.
    Product,
    /// `a: [n, n]` gives the eigenvalues in ascending order, and the eigenvectors as columns.
    Eigh {
        /// Whether the lower triangle is read, or the upper one.
        lower: bool,
    },
    /// `a: [m, n]` gives U, the singular values in descending order, and V transposed, or the values alone.
    Svd {
        /// None without vectors; otherwise whether their number is that of rows and columns, or of values.
        vectors: Option<bool>,
    },
    /// Computes the planes of the eigenvalues, and of the eigenvectors as columns, from `a: [n, n]` or from the real and the imaginary
    /// plane of a complex matrix.
    Eig {
        /// Whether the eigenvectors are results.
        vectors: bool,
    },
}

/// The form of a triangular system. The other triangle is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TriangularSystem {
    /// Whether the matrix is on the left of the solution.
    pub left: bool,
    /// Whether the elements are on and below the diagonal.
    pub lower: bool,
    /// Whether the matrix is transposed.
    pub transposed: bool,
    /// Whether the diagonal is not read and all its elements are 1.
    pub unit: bool,
}

impl TriangularSystem {
    /// Whether the first row is solved first: each row of the matrix on the left has its elements on and below the diagonal.
    pub fn is_forward(&self) -> bool {
        self.lower != (self.transposed == self.left)
    }

    /// Whether a row of the solution needs one row of `a`, and not one of its columns.
    pub fn is_of_rows(&self) -> bool {
        self.transposed != self.left
    }
}

impl MatrixFunction {
    /// The index of the first row of a device's block, for functions of blocks.
    pub fn first(&self) -> Option<&Scalar> {
        match self {
            MatrixFunction::CholeskyRows { first }
            | MatrixFunction::CholeskyChecked { first }
            | MatrixFunction::TriangularRows { first, .. }
            | MatrixFunction::TriangularSums { first, .. } => Some(first),
            MatrixFunction::Cholesky
            | MatrixFunction::TriangularSolve(_)
            | MatrixFunction::Solve
            | MatrixFunction::Lu
            | MatrixFunction::LuDiagonal
            | MatrixFunction::LuComplete
            | MatrixFunction::Qr { .. }
            | MatrixFunction::QrBlock { .. }
            | MatrixFunction::QrSigns
            | MatrixFunction::Product
            | MatrixFunction::Eigh { .. }
            | MatrixFunction::Svd { .. }
            | MatrixFunction::Eig { .. } => None,
        }
    }

    /// The type in which matrices of this type are computed, given the rows and columns of the first operand.
    ///
    /// Small matrices take little time: they are computed in f64, with one rounding of each result. So are functions whose pivots or
    /// iterations depend on small differences.
    pub fn precision(&self, dtype: DType, rows: usize, columns: usize) -> DType {
        match self {
            MatrixFunction::LuComplete | MatrixFunction::QrSigns | MatrixFunction::Eig { .. } => DType::F64,
            // The iteration for few values takes little time, too.
            MatrixFunction::Svd { .. } if rows.min(columns) <= FEW_VALUES => DType::F64,
            MatrixFunction::Cholesky
            | MatrixFunction::TriangularSolve(_)
            | MatrixFunction::Solve
            | MatrixFunction::Lu
            | MatrixFunction::LuDiagonal
            | MatrixFunction::Qr { .. }
            | MatrixFunction::QrBlock { .. }
            | MatrixFunction::CholeskyRows { .. }
            | MatrixFunction::CholeskyChecked { .. }
            | MatrixFunction::TriangularRows { .. }
            | MatrixFunction::TriangularSums { .. }
            | MatrixFunction::Product
            | MatrixFunction::Eigh { .. }
            | MatrixFunction::Svd { .. } => {
                if rows.saturating_mul(columns) <= SMALL_MATRIX {
                    DType::F64
                } else {
                    dtype
                }
            }
        }
    }

    /// Elements, each of f64, of the scratch memory for a first and a second operand of this type with these numbers of rows and columns.
    /// It has copies of all arrays, and an upper bound for the memory of the factorizations.
    pub fn scratch(&self, dtype: DType, rows: usize, columns: usize, other: [usize; 2]) -> usize {
        let precision = self.precision(dtype, rows, columns);
        let [rows, columns, height, width] = [rows, columns, other[0], other[1]].map(|size| size as u128);
        let (matrix, least, most) = (rows * columns, rows.min(columns), rows.max(columns));
        // Right sides of large systems are solved in whole groups.
        let sides = height.max(width).next_multiple_of(RIGHT_SIDES);
        let reflections = |made: u128| 64 * (least + columns.max(made) + 32);
        let elements = match self {
            // A batch of small matrices is factorized side by side.
            MatrixFunction::Cholesky => matrix * if rows <= SIDE_BY_SIDE { MATRICES_SIDE_BY_SIDE } else { 1 },
            MatrixFunction::Lu | MatrixFunction::LuDiagonal | MatrixFunction::LuComplete | MatrixFunction::QrSigns => {
                matrix
            }
            MatrixFunction::TriangularSolve(_) | MatrixFunction::Solve => matrix + rows * sides,
            MatrixFunction::CholeskyRows { .. } => matrix + height * width + height * rows,
            MatrixFunction::CholeskyChecked { .. } => 0,
            MatrixFunction::TriangularRows { .. } => matrix + (rows + columns) * width.next_multiple_of(RIGHT_SIDES),
            MatrixFunction::TriangularSums { own, .. } => matrix + (rows + own.len() as u128) * width,
            MatrixFunction::Product => matrix + columns * height.max(width) + rows * height.max(width),
            MatrixFunction::Qr { full, q } => {
                let made = if *q { if *full { rows } else { least } } else { 0 };
                matrix + rows * made + reflections(made)
            }
            MatrixFunction::QrBlock { .. } => matrix + rows * least + reflections(least),
            MatrixFunction::Eigh { .. } => 5 * matrix + (BLOCKS + 1) * rows + 128,
            // The planes, a complex matrix of vectors, and one that the iteration works on.
            MatrixFunction::Eig { .. } => 10 * matrix + (BLOCKS + 10) * rows + 256,
            MatrixFunction::Svd { vectors } => {
                let own = 2 * matrix + (BLOCKS + 1) * least + 128;
                match vectors {
                    None => own + 5 * least * least,
                    Some(false) => own + 8 * least * least + (rows + columns) * least,
                    Some(true) => own + 8 * least * least + rows * rows + columns * columns + BLOCKS * most,
                }
            }
        };
        let places = match self {
            MatrixFunction::Solve | MatrixFunction::Lu | MatrixFunction::LuDiagonal => least,
            MatrixFunction::Cholesky
            | MatrixFunction::TriangularSolve(_)
            | MatrixFunction::LuComplete
            | MatrixFunction::Qr { .. }
            | MatrixFunction::QrBlock { .. }
            | MatrixFunction::QrSigns
            | MatrixFunction::CholeskyRows { .. }
            | MatrixFunction::CholeskyChecked { .. }
            | MatrixFunction::TriangularRows { .. }
            | MatrixFunction::TriangularSums { .. }
            | MatrixFunction::Product
            | MatrixFunction::Eigh { .. }
            | MatrixFunction::Svd { .. }
            | MatrixFunction::Eig { .. } => 0,
        };
        let size = (DType::F64.size() / precision.size()) as u128;
        usize::try_from(places + elements.div_ceil(size)).unwrap_or(usize::MAX)
    }
}

/// Elements of a matrix of f32 up to which it is computed in f64.
const SMALL_MATRIX: usize = 64 * 64;

/// Singular values of a matrix of f32 up to which they are computed in f64.
const FEW_VALUES: usize = 64;

/// Rows of matrices up to which several of a batch are factorized side by side.
pub const SIDE_BY_SIDE: u128 = 32;

/// Matrices that are factorized side by side.
pub const MATRICES_SIDE_BY_SIDE: u128 = 16;

/// Right sides of a large system that are solved together.
pub const RIGHT_SIDES: u128 = 32;

/// Elements for each column that the iterations need besides whole matrices: they work on blocks of at most 256 columns.
const BLOCKS: u128 = 600;
