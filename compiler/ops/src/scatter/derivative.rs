//! Derivatives of scatters.

use crate::arithmetic::Arithmetic;
use crate::broadcast::{broadcast, filled};
use crate::cast::cast;
use crate::derivative::zeros_like;
use crate::elementwise::Unary;
use crate::iota::Iota;
use crate::products::{ScatteredFactors, exists};
use crate::reduce::Reduce;
use crate::reshape::reshape;
use crate::scatter::{FEW_PLACES, Onto, Scatter};
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::Infer;
use spmdc_ir::rules::derivative::{LinearMap, Linearity, Tangents};
use spmdc_ir::shape;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
use spmdc_layout::types::{ArrayType, DType};

impl LinearMap for Scatter {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together((0..=self.skipped()).collect())
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        at: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let replaces = self.combine.is_none();
        if at < self.skipped() {
            if !replaces {
                return Ok(cotangent);
            }
            let zero = Arithmetic(build).number(cotangent, 0.0)?;
            let args = self.with_indices(stmt, &[cotangent, zero]);
            return build.emit1(self.clone(), &args);
        }
        let found = self.taken(build, stmt, cotangent)?;
        let found = self.without_left_out(build, stmt, found)?;
        if !replaces {
            return Ok(found);
        }
        // Of several updates of one element, that which is left has its cotangent.
        let zero = Arithmetic(build).number(found, 0.0)?;
        let places: usize = self.places_shape(build, stmt).iter().product();
        if places == 1 && self.places.batch.is_empty() {
            return Ok(found);
        }
        if places <= FEW_PLACES && self.places.batch.is_empty() {
            let is_left = self.is_left_of_few(build, stmt, found)?;
            return Arithmetic(build).select(is_left, found, zero);
        }
        let full = build.ty(found).shape().to_vec();
        let count = full.iter().product();
        let numbers = build.emit1(Iota { ty: ArrayType::new(DType::I64, &[count]), axis: 0 }, &[])?;
        let numbers = reshape(build, numbers, &full)?;
        let shape = build.ty(cotangent).shape().to_vec();
        let none = filled(build, DType::I64, 0, &shape)?;
        let own = Scatter { onto: Onto::Operand, ..self.clone() };
        let left = build.emit1(own, &self.with_indices(stmt, &[none, numbers]))?;
        let left = build.emit1(self.places.clone(), &self.with_indices(stmt, &[left]))?;
        let is_left = Arithmetic(build).compare(CompareOp::Eq, left, numbers)?;
        Arithmetic(build).select(is_left, found, zero)
    }
}

impl Scatter {
    /// The shape of the index arrays together.
    fn places_shape(&self, build: &CallBuilder, stmt: &Stmt) -> Vec<usize> {
        let shapes: Vec<&[usize]> =
            stmt.args[self.skipped() + 1..].iter().map(|&array| build.ty(array).shape()).collect();
        shape::broadcast(&shapes).expect("typing refuses index arrays that do not broadcast")
    }

    /// Whether no later update has the same indices, for a few updates: each is compared with each. In the dimensions of `like`, the shape
    /// of the updates.
    fn is_left_of_few(&self, build: &mut CallBuilder, stmt: &Stmt, like: Value) -> Result<Value, Diagnostic> {
        let places = self.places_shape(build, stmt);
        let count: usize = places.iter().product();
        let numbers = build.emit1(Iota { ty: ArrayType::new(DType::I64, &[count]), axis: 0 }, &[])?;
        let beside = |build: &mut CallBuilder, array: Value| -> Result<[Value; 2], Diagnostic> {
            Ok([reshape(build, array, &[count, 1])?, reshape(build, array, &[1, count])?])
        };
        let [own, other] = beside(build, numbers)?;
        let mut replaced = Arithmetic(build).compare(CompareOp::Lt, own, other)?;
        for &array in &stmt.args[self.skipped() + 1..] {
            let array = broadcast(build, array, &places)?;
            let [own, other] = beside(build, array)?;
            let same = Arithmetic(build).compare(CompareOp::Eq, own, other)?;
            replaced = Arithmetic(build).binary(BinaryOp::And, replaced, same)?;
        }
        let replaced = build.emit1(Reduce::new(ReduceOp::Or, &[1], false), &[replaced])?;
        let is_left = build.emit1(Unary(UnaryOp::Not), &[replaced])?;
        let behind = build.ty(like).rank() - self.places.at - places.len();
        reshape(build, is_left, &[places.as_slice(), &vec![1; behind]].concat())
    }

    /// The elements of an array like the result at the indices of this scatter, in the layout of its updates on explicit axes.
    fn taken(&self, build: &mut CallBuilder, stmt: &Stmt, from: Value) -> Result<Value, Diagnostic> {
        let updates = stmt.args[self.skipped()];
        let args = self.with_indices(stmt, &[from]);
        let full = self.places.infer(&build.func().arrays(&args)).map_err(|mismatch| build.mismatch(mismatch))?;
        let full = &full[0].shape;
        let mut gather = self.places.clone();
        if build.has_explicit_axes() {
            let ty = build.ty(updates);
            let (own, shape, skipped) = (build.explicit_part(ty), ty.shape(), full.len() - ty.rank());
            let mut out = build.unknown_layout(full.len());
            for (at, dim) in own.dims.into_iter().enumerate().filter(|(at, _)| shape[*at] == full[skipped + at]) {
                out.dims[skipped + at] = dim;
            }
            let of = build.explicit_part(build.ty(from));
            let partial = of.unreduced.minus(out.used_axes());
            out.reduced = of.reduced.minus(out.used_axes());
            gather.out = Some(out.with_unreduced(partial, ReduceOp::Sum));
        }
        build.emit1(gather, &args)
    }
}

impl Tangents for Scatter {
    fn tangents(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        given: &[Option<Value>],
    ) -> Result<Vec<Option<Value>>, Diagnostic> {
        let total = match self.combine {
            Some(ReduceOp::Product) => self.tangent_of_product(build, stmt, given)?,
            Some(ReduceOp::Sum | ReduceOp::Max | ReduceOp::Min | ReduceOp::And | ReduceOp::Or) | None => {
                self.tangent_of_extreme(build, stmt, given)?
            }
        };
        Ok(vec![Some(total)])
    }
}

impl Scatter {
    /// The tangent of each factor times the product of all other factors of its element, as for `prod`.
    fn tangent_of_product(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        given: &[Option<Value>],
    ) -> Result<Value, Diagnostic> {
        let (updates, result) = (stmt.args[self.skipped()], stmt.results[0]);
        let old = if self.onto == Onto::Operand { Some(stmt.args[0]) } else { None };
        let (dtype, shape) = (build.ty(result).dtype(), build.ty(result).shape().to_vec());
        let mut total = None;
        if let (Some(_), Some(tangent)) = (old, given[0]) {
            let one = filled(build, DType::F64, DType::F64.narrow(1.0), &shape)?;
            let factors = cast(build, updates, DType::F64)?;
            let product = self.combined(build, stmt, ReduceOp::Product, Some(one), factors)?;
            let product = cast(build, product, dtype)?;
            total = Some(Arithmetic(build).mul(tangent, product)?);
        }
        if let Some(tangent) = given[self.skipped()] {
            let like = self.with_indices(stmt, &[result]);
            let like: Vec<&ArrayType> = like.iter().map(|&value| &build.ty(value).array).collect();
            let full = self.places.infer(&like).map_err(|mismatch| build.mismatch(mismatch))?.swap_remove(0).shape;
            let factors = cast(build, updates, DType::F64)?;
            let factors = broadcast(build, factors, &full)?;
            let indices = &stmt.args[self.skipped() + 1..];
            let mut weight =
                ScatteredFactors { places: &self.places, indices, target: &shape }.of_others(build, factors)?;
            if let Some(old) = old {
                let old = cast(build, old, DType::F64)?;
                let old = self.taken(build, stmt, old)?;
                weight = Arithmetic(build).mul(old, weight)?;
            }
            let weight = cast(build, weight, dtype)?;
            let tangent = broadcast(build, tangent, &full)?;
            let part = Arithmetic(build).mul(tangent, weight)?;
            let start = match total {
                Some(total) => Some(total),
                None => old.map(|old| zeros_like(build, old)).transpose()?,
            };
            total = Some(self.combined(build, stmt, ReduceOp::Sum, start, part)?);
        }
        match total {
            Some(total) => Ok(total),
            None => zeros_like(build, result),
        }
    }

    /// Updates combined at the indices of this scatter, from `start` on, or from identity elements.
    fn combined(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        op: ReduceOp,
        start: Option<Value>,
        updates: Value,
    ) -> Result<Value, Diagnostic> {
        let op = Scatter { combine: Some(op), ..self.clone() };
        let operands: Vec<Value> = start.into_iter().chain([updates]).collect();
        debug_assert_eq!(operands.len(), self.skipped() + 1, "the start is there if this scatter has one");
        build.emit1(op, &self.with_indices(stmt, &operands))
    }

    /// Equal largest or smallest elements share the derivative, as in a reduction.
    fn tangent_of_extreme(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        given: &[Option<Value>],
    ) -> Result<Value, Diagnostic> {
        let (updates, result) = (stmt.args[self.skipped()], stmt.results[0]);
        let shape = build.ty(result).shape().to_vec();
        let chosen = build.emit1(self.places.clone(), &self.with_indices(stmt, &[result]))?;
        let full = build.ty(chosen).shape().to_vec();
        let all = broadcast(build, updates, &full)?;
        let is_chosen = Arithmetic(build).compare(CompareOp::Eq, all, chosen)?;
        let share = Arithmetic(build).indicator(is_chosen, result)?;
        let share = self.without_left_out(build, stmt, share)?;
        let zero = Arithmetic(build).number(result, 0.0)?;
        let zeros = broadcast(build, zero, &shape)?;
        let sum = Scatter { combine: Some(ReduceOp::Sum), onto: Onto::Operand, places: self.places.clone(), out: None };
        let mut start = zeros;
        let mut own = None;
        if self.onto == Onto::Operand {
            let stays = Arithmetic(build).compare(CompareOp::Eq, stmt.args[0], result)?;
            let weight = Arithmetic(build).indicator(stays, result)?;
            (start, own) = (weight, Some(weight));
        }
        let count = build.emit1(sum.clone(), &self.with_indices(stmt, &[start, share]))?;
        let one = Arithmetic(build).number(result, 1.0)?;
        let count = Arithmetic(build).binary(BinaryOp::Maximum, count, one)?;
        let mut total = match (own, given[0]) {
            (Some(weight), Some(tangent)) => Arithmetic(build).mul(tangent, weight)?,
            (Some(_) | None, _) => zeros,
        };
        if let Some(tangent) = given[self.skipped()] {
            let tangent = broadcast(build, tangent, &full)?;
            let part = Arithmetic(build).mul(tangent, share)?;
            total = build.emit1(sum, &self.with_indices(stmt, &[total, part]))?;
        }
        Arithmetic(build).div(total, count)
    }

    /// Values of all updates, and zeros for updates that are left out because their element does not exist. Only a new array leaves out
    /// updates: the indices of updates of an existing array have been checked.
    fn without_left_out(&self, build: &mut CallBuilder, stmt: &Stmt, values: Value) -> Result<Value, Diagnostic> {
        let shape = match &self.onto {
            Onto::Identity(shape) => shape,
            Onto::Operand | Onto::Nothing(_) => return Ok(values),
        };
        let is_kept = exists(build, &self.places, &stmt.args[self.skipped() + 1..], shape)?;
        // Rows lie behind the dimensions of the indices.
        let (own, rank) = (build.ty(is_kept).shape().to_vec(), build.ty(values).rank());
        let behind = shape.len() - self.places.dims.len() - self.places.batch.len() - self.places.at;
        debug_assert!(own.len() + behind <= rank, "the indices are those of the updates");
        let is_kept = reshape(build, is_kept, &[own, vec![1; behind]].concat())?;
        let zero = Arithmetic(build).number(values, 0.0)?;
        Arithmetic(build).select(is_kept, values, zero)
    }

    /// Operands, followed by the index arrays.
    fn with_indices(&self, stmt: &Stmt, operands: &[Value]) -> Vec<Value> {
        operands.iter().chain(&stmt.args[self.skipped() + 1..]).copied().collect()
    }
}
