//! Transposes operands of products that several devices share, once for all of them.
//!
//! ```text
//! let v3: f32[1024@X,512] = einsum("ij,kj->ik", d, w);      // w: f32[512,256]
//! =>
//! let v2: f32[256,512] = transpose(w, (1,0));
//! let v3: f32[1024@X,512] = einsum("ij,jk->ik", d, v2);
//! ```
//!
//! Otherwise each device would bring the whole operand into the order of its product: in data parallel training the weights, for the
//! gradients of activations. Which operands profit is a matter of the product (`ops/einsum/orient.rs`). An operand that a collective has
//! just made stays, as the product may read its blocks in place.
//!
//! It comes after `partition`, when the blocks that each device multiplies are known.

use crate::rewrite::rewritten;
use spmdc_einsum_ops::einsum::Einsum;
use spmdc_einsum_ops::orient::Turned;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::{Func, Module, Stage, Stmt};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::Type;
use spmdc_ops::reshard::Reshard;

/// Transposes shared operands. The module stays at its stage.
pub fn orient_products(module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Partitioned, "the blocks of all devices are known");
    rewritten(module, oriented)
}

fn oriented(stmt: Stmt, func: &mut Func, mesh: &Mesh, stmts: &mut Vec<Stmt>) {
    let Some(product) = stmt.as_op::<Einsum>() else { return stmts.push(stmt) };
    let Some(Turned { operand, transpose, product }) = product.turned(&stmt, func, mesh) else {
        return stmts.push(stmt);
    };
    let value = stmt.args[operand];
    let is_received = |stmt: &Stmt| stmt.results.contains(&value) && stmt.is::<Reshard>();
    if stmts.iter().any(is_received) {
        return stmts.push(stmt);
    }
    let ty = turned_type(func.ty(value), &transpose.axes);
    let mut args = stmt.args.clone();
    let mut build = Builder::new(func, mesh);
    args[operand] = build.emit(transpose, &[value], ty, &stmt.origin);
    build.define(product, &args, &stmt.results, &stmt.origin);
    stmts.extend(build.finish());
}

/// The type of the transposed value.
fn turned_type(ty: &Type, axes: &[usize]) -> Type {
    let mut turned = ty.clone();
    debug_assert_eq!(axes.len(), ty.rank(), "each dimension has its place");
    turned.array.shape = axes.iter().map(|&axis| ty.shape()[axis]).collect();
    turned.sharding.dims = axes.iter().map(|&axis| ty.sharding.dims[axis].clone()).collect();
    turned
}
