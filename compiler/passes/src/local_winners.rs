//! Finds the winner of a split dimension without gathering it.
//!
//! ```text
//! let i: i32[8@X] = argmax(x, axis=1);                      // x: f32[8@X,16@Y]
//! =>
//! let m: f32[8@X,1] = max(x, axis=(1,), keepdims=true);
//! let i: i32[8@X] = min(where(x == m, iota(i32[8,16], axis=1), 16), axis=(1,));
//! ```
//!
//! The place of the winner is the first of those that equal the extreme, or, as NaN wins, the first NaN if there is one: the same
//! place that `argmax` finds. Two reductions of one element for each row travel instead of the dimension; where that would be
//! more, the dimension is gathered as usual. The winner of a whole array is found so, too, by its place in row-major order; where the
//! array is on one device, it is the winner of the flattened array.

use crate::contract;
use spmdc_abi::ReduceOp;
use spmdc_ir::layout::mesh::Mesh;
use spmdc_ir::layout::sharding::DimSharding;
use spmdc_ir::layout::types::{ArrayType, DType, Type};
use spmdc_ir::ops::Op;
use spmdc_ir::ops::constant::Constant;
use spmdc_ir::ops::elementwise::{Binary, Compare, Select};
use spmdc_ir::ops::iota::Iota;
use spmdc_ir::ops::reduce::{ArgReduce, Reduce};
use spmdc_ir::ops::reshape::Reshape;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::{Block, Func, Module, Stmt, Value};
use spmdc_kernel::scalar::{BinaryOp, CompareOp};

/// Rewrites `argmax` and `argmin` of split dimensions, and of all dimensions.
pub fn local_winners(mut module: Module) -> Module {
    let signature = contract::signature(&module);
    let mut body = std::mem::take(&mut module.func.body);
    let mut winners = Winners { func: &mut module.func, mesh: &module.mesh };
    winners.block(&mut body);
    module.func.body = body;
    debug_assert_eq!(signature, contract::signature(&module), "the program takes and gives other arrays");
    module
}

struct Winners<'a> {
    func: &'a mut Func,
    mesh: &'a Mesh,
}

impl Winners<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.blocks_mut().for_each(|inner| self.block(inner));
            if let Some(Op::ArgReduce(find)) = stmt.op() {
                let mut found = self.local(find, &stmt);
                if found.is_empty() && find.axes.len() > 1 {
                    found = self.flat(find, &stmt);
                }
                if !found.is_empty() {
                    debug_assert!(
                        found.last().is_some_and(|last| last.results == stmt.results),
                        "the last statement gives the place"
                    );
                    stmts.extend(found);
                    continue;
                }
            }
            stmts.push(stmt);
        }
        block.stmts = stmts;
    }

    /// Statements that find the winner by reductions; none where it has to be found as it is.
    fn local(&mut self, find: &ArgReduce, stmt: &Stmt) -> Vec<Stmt> {
        let x = stmt.args[0];
        let ty = self.func.ty(x).clone();
        let axes = &find.axes;
        let pays = axes.iter().any(|&axis| self.pays(&ty, axis, axes.len() > 1));
        if !pays || ty.dtype() == DType::Bool || !ty.varying.is_empty() || !ty.sharding.unreduced.is_empty() {
            return Vec::new();
        }
        debug_assert!(axes.is_sorted(), "places are numbered row-major");
        let mut steps = Steps { build: Builder::new(self.func, self.mesh), stmt };
        let extreme = if find.largest { ReduceOp::Max } else { ReduceOp::Min };
        let mut kept = ty.clone();
        for &axis in axes {
            kept.array.shape[axis] = 1;
            kept.sharding.dims[axis] = DimSharding::closed(Vec::new());
        }
        let best = steps.add(Reduce::new(extreme, axes, true).into(), &[x], kept);
        let mut wins = steps.add(Compare(CompareOp::Eq).into(), &[x, best], with_dtype(&ty, DType::Bool));
        if ty.dtype().is_float() {
            let nan = steps.add(Compare(CompareOp::Ne).into(), &[x, x], with_dtype(&ty, DType::Bool));
            wins = steps.add(Binary(BinaryOp::Or).into(), &[wins, nan], with_dtype(&ty, DType::Bool));
        }
        let places = with_dtype(&ty, DType::I32);
        let mut place: Option<Value> = None;
        let mut stride = 1;
        for &axis in axes.iter().rev() {
            let mut part = steps.add(Iota { ty: places.array.clone(), axis }.into(), &[], places.clone());
            if stride != 1 {
                let scale = steps.number(stride);
                part = steps.add(Binary(BinaryOp::Mul).into(), &[part, scale], places.clone());
            }
            place = Some(match place {
                Some(minor) => steps.add(Binary(BinaryOp::Add).into(), &[part, minor], places.clone()),
                None => part,
            });
            stride *= ty.shape()[axis];
        }
        let Some(place) = place else { return Vec::new() };
        // No place at all; the winner's is smaller.
        let none = steps.number(stride);
        let place = steps.add(Select.into(), &[wins, place, none], places);
        let first = Reduce::new(ReduceOp::Min, axes, find.keepdims);
        steps.end(first.into(), place)
    }

    /// The winner of all elements as that of the flattened array.
    fn flat(&mut self, find: &ArgReduce, stmt: &Stmt) -> Vec<Stmt> {
        let ty = self.func.ty(stmt.args[0]).clone();
        let whole = |array: ArrayType| Type { varying: ty.varying, ..Type::replicated(array) };
        let line = whole(ArrayType::new(ty.dtype(), &[ty.array.len()]));
        let place = whole(ArrayType::scalar(DType::I32));
        let kept = self.func.ty(stmt.results[0]).shape().to_vec();
        let mut steps = Steps { build: Builder::new(self.func, self.mesh), stmt };
        let line = steps.add(Reshape::new(ty.shape(), line.shape()).into(), &[stmt.args[0]], line.clone());
        let winner = ArgReduce { axes: vec![0], keepdims: false, ..find.clone() };
        if kept.is_empty() {
            return steps.end(winner.into(), line);
        }
        let winner = steps.add(winner.into(), &[line], place);
        steps.end(Reshape::new(&[], &kept).into(), winner)
    }

    /// Whether two reductions of one element for each row move fewer bytes than gathering this dimension.
    fn pays(&self, ty: &Type, axis: usize, flattened: bool) -> bool {
        let dim = &ty.sharding.dims[axis];
        let devices = self.mesh.size_of(&dim.axes);
        let block = dim.block(ty.shape()[axis], self.mesh);
        let (size, place) = (ty.dtype().size(), DType::I32.size());
        devices > 1 && (flattened || devices * block * size > 2 * (size + place))
    }
}

fn with_dtype(ty: &Type, dtype: DType) -> Type {
    Type { array: ty.array.with_dtype(dtype), ..ty.clone() }
}

/// The statements that one becomes.
struct Steps<'a> {
    build: Builder<'a>,
    stmt: &'a Stmt,
}

impl Steps<'_> {
    fn add(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        self.build.emit(op, args, ty, &self.stmt.origin)
    }

    /// All of them, the last one giving what the one gave.
    fn end(mut self, op: Op, arg: Value) -> Vec<Stmt> {
        self.build.define(op, &[arg], &self.stmt.results, &self.stmt.origin);
        self.build.finish()
    }

    fn number(&mut self, number: usize) -> Value {
        let ty = Type::replicated(ArrayType::scalar(DType::I32));
        self.add(Constant::scalar(DType::I32, number as u64).into(), &[], ty)
    }
}
