//! Computes `argmax` and `argmin` of a split dimension by two small reductions instead of a gather.
//!
//! ```text
//! let i: i32[8@X] = argmax(x, axis=1);                      // x: f32[8@X,16@Y]
//! =>
//! let m: f32[8@X,1] = max(x, axis=(1,), keepdims=true);
//! let i: i32[8@X] = min(where(x == m, iota(i32[8,16], axis=1), 16), axis=(1,));
//! ```
//!
//! The argmax is the first index at which the element equals the maximum, or, because NaN counts as the maximum, the first index of a
//! NaN if there is one. Two reductions of one element per row are received instead of the dimension; where these are more bytes,
//! the dimension is gathered. The argmax of a whole array is its row-major index, found in the same way; of an array on
//! one device it is the argmax of the flattened array.

use spmdc_abi::ReduceOp;
use spmdc_ir::op::Op;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, Value};
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::DimSharding;
use spmdc_layout::types::{ArrayType, DType, Type};
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{Binary, Compare, Select};
use spmdc_ops::iota::Iota;
use spmdc_ops::reduce::{ArgReduce, Reduce};
use spmdc_ops::reshape::Reshape;

/// Rewrites `argmax` and `argmin` of split dimensions, and of all dimensions.
pub fn local_argmax(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Propagated, "the layouts of all arrays are known");
    let mut body = std::mem::take(&mut module.func.body);
    let mut rewriter = ArgmaxRewriter { func: &mut module.func, mesh: &module.mesh };
    rewriter.block(&mut body);
    module.func.body = body;
    module
}

struct ArgmaxRewriter<'a> {
    func: &'a mut Func,
    mesh: &'a Mesh,
}

impl ArgmaxRewriter<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut stmts = Vec::with_capacity(block.stmts.len());
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.blocks_mut().for_each(|inner| self.block(inner));
            if let Some(find) = stmt.as_op::<ArgReduce>() {
                let mut found = self.local(find, &stmt);
                if found.is_empty() && find.axes.len() > 1 {
                    found = self.flat(find, &stmt);
                }
                if !found.is_empty() {
                    debug_assert!(
                        found.last().is_some_and(|last| last.results == stmt.results),
                        "the last statement defines the index"
                    );
                    stmts.extend(found);
                    continue;
                }
            }
            stmts.push(stmt);
        }
        block.stmts = stmts;
    }

    /// Statements that compute the argmax by reductions; none if the statement does not change.
    fn local(&mut self, find: &ArgReduce, stmt: &Stmt) -> Vec<Stmt> {
        let x = stmt.args[0];
        let ty = self.func.ty(x).clone();
        let axes = &find.axes;
        let pays = axes.iter().any(|&axis| self.pays(&ty, axis, axes.len() > 1));
        if !pays || ty.dtype() == DType::Bool || !ty.varying.is_empty() || !ty.sharding.unreduced.is_empty() {
            return Vec::new();
        }
        debug_assert!(axes.is_sorted(), "indices are row-major");
        let mut steps = Steps { build: Builder::new(self.func, self.mesh), stmt };
        let extreme = if find.largest { ReduceOp::Max } else { ReduceOp::Min };
        let mut kept = ty.clone();
        for &axis in axes {
            kept.array.shape[axis] = 1;
            kept.sharding.dims[axis] = DimSharding::closed(Vec::new());
        }
        let extremum = steps.add(Reduce::new(extreme, axes, true).into(), &[x], kept);
        let mut is_extremal = steps.add(Compare(CompareOp::Eq).into(), &[x, extremum], with_dtype(&ty, DType::Bool));
        if ty.dtype().is_float() {
            let nan = steps.add(Compare(CompareOp::Ne).into(), &[x, x], with_dtype(&ty, DType::Bool));
            is_extremal = steps.add(Binary(BinaryOp::Or).into(), &[is_extremal, nan], with_dtype(&ty, DType::Bool));
        }
        let indices = with_dtype(&ty, DType::I32);
        let mut index: Option<Value> = None;
        let mut stride = 1;
        for &axis in axes.iter().rev() {
            let mut part = steps.add(Iota { ty: indices.array.clone(), axis }.into(), &[], indices.clone());
            if stride != 1 {
                let scale = steps.number(stride);
                part = steps.add(Binary(BinaryOp::Mul).into(), &[part, scale], indices.clone());
            }
            index = Some(match index {
                Some(minor) => steps.add(Binary(BinaryOp::Add).into(), &[part, minor], indices.clone()),
                None => part,
            });
            stride *= ty.shape()[axis];
        }
        let Some(index) = index else { return Vec::new() };
        // The number of indices stands for elements that are not extremal: it is larger than every index.
        let none = steps.number(stride);
        let index = steps.add(Select.into(), &[is_extremal, index, none], indices);
        let first = Reduce::new(ReduceOp::Min, axes, find.keepdims);
        steps.end(first.into(), index)
    }

    /// The argmax of all elements as the argmax of the flattened array.
    fn flat(&mut self, find: &ArgReduce, stmt: &Stmt) -> Vec<Stmt> {
        let ty = self.func.ty(stmt.args[0]).clone();
        let whole = |array: ArrayType| Type { varying: ty.varying, ..Type::replicated(array) };
        let line = whole(ArrayType::new(ty.dtype(), &[ty.array.len()]));
        let index = whole(ArrayType::scalar(DType::I32));
        let kept = self.func.ty(stmt.results[0]).shape().to_vec();
        let mut steps = Steps { build: Builder::new(self.func, self.mesh), stmt };
        let line = steps.add(Reshape::new(ty.shape(), line.shape()).into(), &[stmt.args[0]], line.clone());
        let argmax = ArgReduce { axes: vec![0], keepdims: false, ..find.clone() };
        if kept.is_empty() {
            return steps.end(argmax.into(), line);
        }
        let argmax = steps.add(argmax.into(), &[line], index);
        steps.end(Reshape::new(&[], &kept).into(), argmax)
    }

    /// Whether two reductions of one element per row move fewer bytes than a gather of this dimension.
    fn pays(&self, ty: &Type, axis: usize, flattened: bool) -> bool {
        let dim = &ty.sharding.dims[axis];
        let devices = self.mesh.size_of(&dim.axes);
        let block = dim.block(ty.shape()[axis], self.mesh);
        let (size, index) = (ty.dtype().size(), DType::I32.size());
        devices > 1 && (flattened || devices * block * size > 2 * (size + index))
    }
}

fn with_dtype(ty: &Type, dtype: DType) -> Type {
    Type { array: ty.array.with_dtype(dtype), ..ty.clone() }
}

/// The statements that replace one statement.
struct Steps<'a> {
    build: Builder<'a>,
    stmt: &'a Stmt,
}

impl Steps<'_> {
    fn add(&mut self, op: Op, args: &[Value], ty: Type) -> Value {
        self.build.emit(op, args, ty, &self.stmt.origin)
    }

    /// All statements; the last one, `op`, defines the results of the replaced statement.
    fn end(mut self, op: Op, arg: Value) -> Vec<Stmt> {
        self.build.define(op, &[arg], &self.stmt.results, &self.stmt.origin);
        self.build.finish()
    }

    fn number(&mut self, number: usize) -> Value {
        let ty = Type::replicated(ArrayType::scalar(DType::I32));
        self.add(Constant::scalar(DType::I32, number as u64).into(), &[], ty)
    }
}
