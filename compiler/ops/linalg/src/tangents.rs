//! The derivatives of factorizations: the formulas of JAX, which are linear in the tangents.
//!
//! They hold where the factors are unique: for positive definite matrices, invertible ones, distinct eigenvalues and singular values.

use crate::factorization::Factorization;
use spmdc_abi::{DType, MatrixFunction, TriangularSystem};
use spmdc_einsum_ops::contract::matmul;
use spmdc_einsum_ops::diagonal::Diagonal;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity, Tangents};
use spmdc_kernel::scalar::{CompareOp, UnaryOp};
use spmdc_layout::types::ArrayType;
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::cast::Cast;
use spmdc_ops::gather::Gather;
use spmdc_ops::iota::Iota;
use spmdc_ops::reshape::reshape;
use spmdc_ops::transpose::transpose;

/// Statements with matrices in the last two dimensions.
pub struct Matrices<'b>(pub &'b mut CallBuilder);

impl Matrices<'_> {
    pub fn terms(&mut self) -> Arithmetic<'_> {
        Arithmetic(self.0)
    }

    pub fn shape(&self, x: Value) -> Vec<usize> {
        self.0.ty(x).shape().to_vec()
    }

    pub fn product(&mut self, a: Value, b: Value) -> Result<Value, Diagnostic> {
        let span = self.0.span();
        matmul(self.0, (&Term::Array(a), span), (&Term::Array(b), span))
    }

    /// Rows and columns exchanged.
    pub fn turned(&mut self, x: Value) -> Result<Value, Diagnostic> {
        let rank = self.shape(x).len();
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        transpose(self.0, x, &order)
    }

    /// The elements where this holds of row and column, and zeros elsewhere.
    pub fn where_indices(&mut self, x: Value, holds: CompareOp) -> Result<Value, Diagnostic> {
        let shape = self.shape(x);
        let sizes = &shape[shape.len() - 2..];
        let mut index = |axis: usize| self.0.emit1(Iota { ty: ArrayType::new(DType::I32, sizes), axis }, &[]);
        let (rows, columns) = (index(0)?, index(1)?);
        let mask = self.terms().compare(holds, rows, columns)?;
        let mask = broadcast(self.0, mask, &shape)?;
        let zero = self.terms().number(x, 0.0)?;
        self.terms().select(mask, x, zero)
    }

    /// 1 / (s_i - s_j) for a vector, and zeros on the diagonal.
    fn inverse_differences(&mut self, s: Value) -> Result<Value, Diagnostic> {
        let (row, column) = (self.row(s)?, self.column(s)?);
        let differences = self.terms().sub(row, column)?;
        let shape = self.shape(differences);
        let one = self.terms().number(s, 1.0)?;
        let ones = broadcast(self.0, one, &shape)?;
        let unit = self.where_indices(ones, CompareOp::Eq)?;
        let safe = self.terms().add(differences, unit)?;
        let inverse = self.terms().inverse(safe)?;
        self.where_indices(inverse, CompareOp::Ne)
    }

    /// A vector as a matrix of one row.
    pub fn row(&mut self, s: Value) -> Result<Value, Diagnostic> {
        let mut shape = self.shape(s);
        shape.insert(shape.len() - 1, 1);
        reshape(self.0, s, &shape)
    }

    /// A vector as a matrix of one column.
    pub fn column(&mut self, s: Value) -> Result<Value, Diagnostic> {
        let mut shape = self.shape(s);
        shape.push(1);
        reshape(self.0, s, &shape)
    }

    pub fn diagonal(&mut self, x: Value) -> Result<Value, Diagnostic> {
        let rank = self.shape(x).len();
        let mut dims: Vec<usize> = (0..rank - 1).collect();
        dims.push(rank - 2);
        self.0.emit1(Diagonal { dims, summed: Vec::new() }, &[x])
    }

    pub fn solve(&mut self, system: TriangularSystem, a: Value, b: Value) -> Result<Value, Diagnostic> {
        self.0.emit1(Factorization(MatrixFunction::TriangularSolve(system)), &[a, b])
    }

    /// L φ(L⁻¹ ȧ L⁻ᵀ), where φ takes the lower triangle and half of the diagonal.
    fn cholesky(&mut self, l: Value, change: Value) -> Result<Value, Diagnostic> {
        let system = TriangularSystem { left: false, lower: true, transposed: true, unit: false };
        let right = self.solve(system, l, change)?;
        let both = self.solve(TriangularSystem { left: true, transposed: false, ..system }, l, right)?;
        let below = self.where_indices(both, CompareOp::Gt)?;
        let middle = self.where_indices(both, CompareOp::Eq)?;
        let half = self.terms().scaled(0.5, middle)?;
        let lower = self.terms().add(below, half)?;
        self.product(l, lower)
    }

    /// Right-hand sides, or zeros without any, minus a product.
    fn without(&mut self, sides: Option<Value>, product: Value) -> Result<Value, Diagnostic> {
        match sides {
            Some(sides) => self.terms().sub(sides, product),
            None => self.terms().unary(UnaryOp::Neg, product),
        }
    }

    /// The tangent of the solution of a triangular system.
    fn system(
        &mut self,
        system: TriangularSystem,
        (a, x): (Value, Value),
        (of_a, of_b): (Option<Value>, Option<Value>),
    ) -> Result<Option<Value>, Diagnostic> {
        let mut sides = of_b;
        if let Some(change) = of_a {
            let holds = match (system.lower, system.unit) {
                (true, false) => CompareOp::Ge,
                (true, true) => CompareOp::Gt,
                (false, false) => CompareOp::Le,
                (false, true) => CompareOp::Lt,
            };
            let change = self.where_indices(change, holds)?;
            let change = if system.transposed { self.turned(change)? } else { change };
            let product = if system.left { self.product(change, x)? } else { self.product(x, change)? };
            sides = Some(self.without(sides, product)?);
        }
        sides.map(|sides| self.solve(system, a, sides)).transpose()
    }

    /// The tangent of the solution of a system: the tangent of the right-hand sides minus the product of the matrix's tangent and the
    /// solution.
    fn solution(
        &mut self,
        (a, x): (Value, Value),
        (of_a, of_b): (Option<Value>, Option<Value>),
    ) -> Result<Option<Value>, Diagnostic> {
        let mut sides = of_b;
        if let Some(change) = of_a {
            let product = self.product(change, x)?;
            sides = Some(self.without(sides, product)?);
        }
        sides.map(|sides| self.0.emit1(Factorization(MatrixFunction::Solve), &[a, sides])).transpose()
    }

    fn lu(&mut self, factors: Value, source: Value, change: Value) -> Result<Value, Diagnostic> {
        let rows = self.rows_at(change, source)?;
        self.lu_of_rows(factors, rows)
    }

    /// The rows of these places.
    pub fn rows_at(&mut self, x: Value, places: Value) -> Result<Value, Diagnostic> {
        let rank = self.shape(x).len();
        let places = self.0.emit1(Cast { to: DType::I64 }, &[places])?;
        let batch = (0..rank - 2).map(|dim| (dim, dim)).collect();
        self.0.emit1(Gather::new(vec![rank - 2], batch, 0), &[x, places])
    }

    /// The rows and columns of these places.
    pub fn exchanged(&mut self, x: Value, rows: Value, columns: Value) -> Result<Value, Diagnostic> {
        let moved = self.rows_at(x, rows)?;
        let turned = self.turned(moved)?;
        let moved = self.rows_at(turned, columns)?;
        self.turned(moved)
    }

    /// The tangent of the factors of a matrix for that with its rows in the order of the factors.
    fn lu_of_rows(&mut self, factors: Value, rows: Value) -> Result<Value, Diagnostic> {
        let unit_lower = TriangularSystem { left: true, lower: true, transposed: false, unit: true };
        let left = self.solve(unit_lower, factors, rows)?;
        let both =
            self.solve(TriangularSystem { left: false, lower: false, unit: false, ..unit_lower }, factors, left)?;
        let (below, above) = (self.where_indices(both, CompareOp::Gt)?, self.where_indices(both, CompareOp::Le)?);
        let (lower, upper) = (self.where_indices(factors, CompareOp::Gt)?, self.where_indices(factors, CompareOp::Le)?);
        let product = self.product(lower, below)?;
        let of_lower = self.terms().add(below, product)?;
        let of_upper = self.product(above, upper)?;
        self.terms().add(of_lower, of_upper)
    }

    /// The tangents of Q and R.
    fn qr(&mut self, (q, r): (Value, Value), change: Value) -> Result<(Value, Value), Diagnostic> {
        let system = TriangularSystem { left: false, lower: false, transposed: false, unit: false };
        let right = self.solve(system, r, change)?;
        let turned = self.turned(q)?;
        let inner = self.product(turned, right)?;
        let lower = self.where_indices(inner, CompareOp::Gt)?;
        let upper = self.turned(lower)?;
        let turn = self.terms().sub(lower, upper)?;
        let rest = self.terms().sub(turn, inner)?;
        let product = self.product(q, rest)?;
        let of_q = self.terms().add(product, right)?;
        let stretch = self.terms().sub(inner, turn)?;
        Ok((of_q, self.product(stretch, r)?))
    }

    fn eigh(&mut self, (w, v): (Value, Value), change: Value) -> Result<(Value, Value), Diagnostic> {
        let turned = self.turned(v)?;
        let right = self.product(change, v)?;
        let inner = self.product(turned, right)?;
        let differences = self.inverse_differences(w)?;
        let weighted = self.terms().mul(differences, inner)?;
        Ok((self.diagonal(inner)?, self.product(v, weighted)?))
    }

    /// The tangents of U, the singular values, and V transposed.
    fn svd(&mut self, (u, s, vt): (Value, Value, Value), change: Value) -> Result<[Value; 3], Diagnostic> {
        let (ut, v) = (self.turned(u)?, self.turned(vt)?);
        let right = self.product(change, v)?;
        let inner = self.product(ut, right)?;
        let of_s = self.diagonal(inner)?;
        let squares = self.terms().unary(spmdc_kernel::scalar::UnaryOp::Square, s)?;
        let differences = self.inverse_differences(squares)?;
        let (row, column) = (self.row(s)?, self.column(s)?);
        let mut both = |by: Value| {
            let scaled = self.terms().mul(by, inner)?;
            let other = self.turned(scaled)?;
            let sum = self.terms().add(scaled, other)?;
            self.terms().mul(differences, sum)
        };
        let (left, turn) = (both(row)?, both(column)?);
        let mut of_u = self.product(u, left)?;
        let mut of_v = self.product(v, turn)?;
        let (rows, columns) = (self.shape(u), self.shape(v));
        let (m, n) = (rows[rows.len() - 2], columns[columns.len() - 2]);
        if m > n {
            // What lies outside of the space of the columns of U.
            let inside = self.product(u, inner)?;
            let outside = self.terms().sub(right, inside)?;
            let scaled = self.terms().div(outside, row)?;
            of_u = self.terms().add(of_u, scaled)?;
        }
        if n > m {
            let turned = self.turned(change)?;
            let left = self.product(turned, u)?;
            let own = self.product(vt, left)?;
            let inside = self.product(v, own)?;
            let outside = self.terms().sub(left, inside)?;
            let scaled = self.terms().div(outside, row)?;
            of_v = self.terms().add(of_v, scaled)?;
        }
        Ok([of_u, of_s, self.turned(of_v)?])
    }
}

impl Factorization {
    /// The derivative of this operation.
    pub fn own_derivative(&self) -> Derivative<'_> {
        match self.0 {
            MatrixFunction::Cholesky
            | MatrixFunction::TriangularSolve(_)
            | MatrixFunction::Solve
            | MatrixFunction::Lu
            | MatrixFunction::LuDiagonal
            | MatrixFunction::LuComplete
            | MatrixFunction::Qr { .. }
            | MatrixFunction::Eigh { .. }
            | MatrixFunction::Eig { .. }
            | MatrixFunction::Svd { .. } => Derivative::Tangents(self),
            MatrixFunction::QrBlock { .. }
            | MatrixFunction::QrSigns
            | MatrixFunction::CholeskyRows { .. }
            | MatrixFunction::CholeskyChecked { .. }
            | MatrixFunction::TriangularRows { .. }
            | MatrixFunction::TriangularSums { .. }
            | MatrixFunction::Product => Derivative::Missing,
        }
    }
}

fn refused(build: &CallBuilder, what: &str) -> Diagnostic {
    Diagnostic::error(Code::E0220, build.span(), format!("{what} has no derivative"))
}

impl Tangents for Factorization {
    fn linear(&self, operands: &[usize]) -> Option<&dyn LinearMap> {
        (matches!(self.0, MatrixFunction::TriangularSolve(_) | MatrixFunction::Solve) && operands == [1])
            .then_some(self as &dyn LinearMap)
    }

    fn tangents(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        given: &[Option<Value>],
    ) -> Result<Vec<Option<Value>>, Diagnostic> {
        let a = stmt.args[0];
        let shape = build.ty(a).shape().to_vec();
        let (m, n) = (shape[shape.len() - 2], shape[shape.len() - 1]);
        let mut matrices = Matrices(build);
        if let MatrixFunction::TriangularSolve(system) = self.0 {
            return Ok(vec![matrices.system(system, (a, stmt.results[0]), (given[0], given[1]))?]);
        }
        if self.0 == MatrixFunction::Solve {
            return Ok(vec![matrices.solution((a, stmt.results[0]), (given[0], given[1]))?]);
        }
        if let MatrixFunction::Eig { vectors } = self.0 {
            return matrices.eig(stmt, given, vectors);
        }
        let Some(change) = given[0] else { return Ok(vec![None; stmt.results.len()]) };
        Ok(match self.0 {
            MatrixFunction::Cholesky => vec![Some(matrices.cholesky(stmt.results[0], change)?)],
            MatrixFunction::Lu => {
                if m != n {
                    return Err(refused(build, "`lu` of nonsquare matrices"));
                }
                vec![Some(matrices.lu(stmt.results[0], stmt.results[2], change)?), None, None]
            }
            MatrixFunction::LuDiagonal => {
                let factors = matrices.0.emit(Factorization(MatrixFunction::Lu), &[a])?;
                let of_factors = matrices.lu(factors[0], factors[2], change)?;
                vec![Some(matrices.diagonal(of_factors)?), None]
            }
            MatrixFunction::LuComplete => {
                let rows = matrices.exchanged(change, stmt.results[1], stmt.results[2])?;
                vec![Some(matrices.lu_of_rows(stmt.results[0], rows)?), None, None]
            }
            MatrixFunction::Qr { full, q } => {
                if m < n || (full && m > n) {
                    return Err(refused(
                        build,
                        "`qr` of matrices with fewer rows than columns, or with the complete Q,",
                    ));
                }
                let factors = match q {
                    true => (stmt.results[0], stmt.results[1]),
                    false => {
                        let own = Factorization(MatrixFunction::Qr { full: false, q: true });
                        let results = matrices.0.emit(own, &[a])?;
                        (results[0], results[1])
                    }
                };
                let (of_q, of_r) = matrices.qr(factors, change)?;
                if q { vec![Some(of_q), Some(of_r)] } else { vec![Some(of_r)] }
            }
            MatrixFunction::Eigh { .. } => {
                let (of_w, of_v) = matrices.eigh((stmt.results[0], stmt.results[1]), change)?;
                vec![Some(of_w), Some(of_v)]
            }
            MatrixFunction::Svd { vectors } => {
                if vectors == Some(true) && m != n {
                    return Err(refused(build, "`svd` with `full_matrices` of nonsquare matrices"));
                }
                let factors = match vectors {
                    Some(_) => (stmt.results[0], stmt.results[1], stmt.results[2]),
                    None => {
                        let own = Factorization(MatrixFunction::Svd { vectors: Some(false) });
                        let results = matrices.0.emit(own, &[a])?;
                        (results[0], results[1], results[2])
                    }
                };
                let found = matrices.svd(factors, change)?.map(Some).to_vec();
                if vectors.is_some() { found } else { vec![found[1]] }
            }
            MatrixFunction::TriangularSolve(_)
            | MatrixFunction::Solve
            | MatrixFunction::Eig { .. }
            | MatrixFunction::QrBlock { .. }
            | MatrixFunction::QrSigns
            | MatrixFunction::CholeskyRows { .. }
            | MatrixFunction::CholeskyChecked { .. }
            | MatrixFunction::TriangularRows { .. }
            | MatrixFunction::TriangularSums { .. }
            | MatrixFunction::Product => return Err(refused(build, "this function of matrices")),
        })
    }
}

/// A system is linear in its right sides.
impl LinearMap for Factorization {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Apart(vec![1])
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        _: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let mut matrices = Matrices(build);
        if self.0 == MatrixFunction::Solve {
            let a = matrices.turned(stmt.args[0])?;
            return matrices.0.emit1(Factorization(MatrixFunction::Solve), &[a, cotangent]);
        }
        let MatrixFunction::TriangularSolve(system) = self.0 else {
            unreachable!("no other factorization is linear");
        };
        let system = TriangularSystem { transposed: !system.transposed, ..system };
        matrices.solve(system, stmt.args[0], cotangent)
    }
}
