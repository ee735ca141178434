//! The tangents of eigenvalues and eigenvectors of general matrices (Giles, "Collected matrix derivative results for forward and reverse
//! mode algorithmic differentiation", 2008, 3.1), where all eigenvalues differ. A vector has length one and a real largest element, and so
//! do its neighbours.

use crate::factorization::Factorization;
use crate::tangents::Matrices;
use spmdc_abi::{MatrixFunction, ReduceOp};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::program::{Stmt, Value};
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::cast::cast;
use spmdc_ops::concatenate::concatenate;
use spmdc_ops::iota::Iota;
use spmdc_ops::reduce::{ArgReduce, reduce};
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::{Slice, SliceRange};

/// The real and the imaginary plane.
type Planes = [Value; 2];

impl Matrices<'_> {
    /// The tangents of the results of `eig`: without vectors, only the tangents of the eigenvalues.
    pub fn eig(
        &mut self,
        stmt: &Stmt,
        given: &[Option<Value>],
        vectors: bool,
    ) -> Result<Vec<Option<Value>>, Diagnostic> {
        let made = if vectors {
            stmt.results.clone()
        } else {
            self.0.emit(Factorization(MatrixFunction::Eig { vectors: true }), &stmt.args)?
        };
        let (w, v) = ([made[0], made[1]], [made[2], made[3]]);
        let (re, im) = (given[0], given.get(1).copied().flatten());
        let Some(right) = self.changed(re, im, v)? else { return Ok(vec![None; stmt.results.len()]) };
        let inner = self.solved(v, right)?;
        let of_values = [self.diagonal(inner[0])?, self.diagonal(inner[1])?];
        if !vectors {
            return Ok(of_values.map(Some).to_vec());
        }
        let weights = self.inverse_complex_differences(w)?;
        let weighted = self.complex_mul(weights, inner)?;
        let turned = self.complex_product(v, weighted)?;
        let of_vectors = self.normalized(v, turned)?;
        Ok(of_values.into_iter().chain(of_vectors).map(Some).collect())
    }

    /// The product of a tangent with the vectors; either plane of the tangent may be zeros.
    fn changed(&mut self, re: Option<Value>, im: Option<Value>, v: Planes) -> Result<Option<Planes>, Diagnostic> {
        Ok(match (re, im) {
            (Some(re), Some(im)) => Some(self.complex_product([re, im], v)?),
            (Some(re), None) => Some([self.product(re, v[0])?, self.product(re, v[1])?]),
            (None, Some(im)) => {
                let less = self.product(im, v[1])?;
                Some([self.terms().unary(UnaryOp::Neg, less)?, self.product(im, v[0])?])
            }
            (None, None) => None,
        })
    }

    fn complex_product(&mut self, a: Planes, b: Planes) -> Result<Planes, Diagnostic> {
        let mut part = |i: usize, j: usize| self.product(a[i], b[j]);
        let parts = [part(0, 0)?, part(1, 1)?, part(0, 1)?, part(1, 0)?];
        Ok([self.terms().sub(parts[0], parts[1])?, self.terms().add(parts[2], parts[3])?])
    }

    fn complex_mul(&mut self, a: Planes, b: Planes) -> Result<Planes, Diagnostic> {
        let mut terms = self.terms();
        let mut part = |i: usize, j: usize| terms.mul(a[i], b[j]);
        let parts = [part(0, 0)?, part(1, 1)?, part(0, 1)?, part(1, 0)?];
        Ok([terms.sub(parts[0], parts[1])?, terms.add(parts[2], parts[3])?])
    }

    /// x with v x = b, from the real matrix of twice the size with the planes of v.
    fn solved(&mut self, v: Planes, b: Planes) -> Result<Planes, Diagnostic> {
        let shape = self.shape(v[0]);
        let (rows, n) = (shape.len() - 2, shape[shape.len() - 1]);
        let less = self.terms().unary(UnaryOp::Neg, v[1])?;
        let above = concatenate(self.0, &[v[0], less], rows + 1)?;
        let below = concatenate(self.0, &[v[1], v[0]], rows + 1)?;
        let whole = concatenate(self.0, &[above, below], rows)?;
        let sides = concatenate(self.0, &b, rows)?;
        let x = self.0.emit1(Factorization(MatrixFunction::Solve), &[whole, sides])?;
        let mut half = |start: usize| {
            let mut slice = Slice::identity(&self.0.ty(x).array);
            slice.ranges[rows].0 = SliceRange::between(start, start + n);
            self.0.emit1(slice, &[x])
        };
        Ok([half(0)?, half(n)?])
    }

    /// 1 / (w_j - w_i), and zeros on the diagonal.
    fn inverse_complex_differences(&mut self, w: Planes) -> Result<Planes, Diagnostic> {
        let mut difference = |plane: Value| {
            let (row, column) = (self.row(plane)?, self.column(plane)?);
            self.terms().sub(row, column)
        };
        let [re, im] = [difference(w[0])?, difference(w[1])?];
        let shape = self.shape(re);
        let one = self.terms().number(re, 1.0)?;
        let ones = broadcast(self.0, one, &shape)?;
        let unit = self.where_indices(ones, CompareOp::Eq)?;
        let mut terms = self.terms();
        let re = terms.add(re, unit)?;
        let size = terms.binary(BinaryOp::Hypot, re, im)?;
        let less = terms.unary(UnaryOp::Neg, im)?;
        let mut quotient = |plane: Value| {
            let unit = self.terms().div(plane, size)?;
            let whole = self.terms().div(unit, size)?;
            self.where_indices(whole, CompareOp::Ne)
        };
        Ok([quotient(re)?, quotient(less)?])
    }

    /// A change of the vectors without the parts that would change their lengths, and the angles of their largest elements.
    fn normalized(&mut self, v: Planes, u: Planes) -> Result<Planes, Diagnostic> {
        let shape = self.shape(v[0]);
        let axis = shape.len() - 2;
        let mut row = shape.clone();
        row[axis] = 1;
        let mask = self.largest(v)?;
        let mut sum = |x: Value, y: Value| {
            let parts = self.terms().mul(x, y)?;
            reduce(self.0, ReduceOp::Sum, parts, &[axis], true)
        };
        let [left, right] = [sum(v[0], u[0])?, sum(v[1], u[1])?];
        let [turn, pivot] = [sum(mask, u[1])?, sum(mask, v[0])?];
        let mut terms = self.terms();
        let length = terms.add(left, right)?;
        let angle = terms.div(turn, pivot)?;
        let factor = [terms.unary(UnaryOp::Neg, length)?, terms.unary(UnaryOp::Neg, angle)?];
        let whole = [broadcast(self.0, factor[0], &shape)?, broadcast(self.0, factor[1], &shape)?];
        let along = self.complex_mul(v, whole)?;
        Ok([self.terms().add(u[0], along[0])?, self.terms().add(u[1], along[1])?])
    }

    /// 1 at the largest element of each vector, 0 elsewhere.
    fn largest(&mut self, v: Planes) -> Result<Value, Diagnostic> {
        let shape = self.shape(v[0]);
        let axis = shape.len() - 2;
        let fixed = v.map(|plane| self.0.stopped_alias(plane));
        let sizes = self.terms().binary(BinaryOp::Hypot, fixed[0], fixed[1])?;
        let place = self.0.emit1(ArgReduce { largest: true, axes: vec![axis], keepdims: false }, &[sizes])?;
        let place = cast(self.0, place, DType::I32)?;
        let mut row = shape.clone();
        row[axis] = 1;
        let place = reshape(self.0, place, &row)?;
        let place = broadcast(self.0, place, &shape)?;
        let index = self.0.emit1(Iota { ty: ArrayType::new(DType::I32, &shape), axis }, &[])?;
        let is_largest = self.terms().compare(CompareOp::Eq, index, place)?;
        self.terms().indicator(is_largest, v[0])
    }
}
