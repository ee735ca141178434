//! Chooses the order in which operands of products are stored.
//!
//! A large operand stays as it is, as the product reads elements in any order:
//!
//! ```text
//! let v2: f32[4096,8192] = transpose(x, (1,0));  let v3: f32[4096,64] = einsum("ij,jk->ik", v2, y);
//! =>
//! let v3: f32[4096,64] = einsum("ji,jk->ik", x, y);
//! ```
//!
//! Operands that several devices share are transposed once for all of them:
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
use spmdc_ir::program::{Func, Module, Stage, Stmt, StmtKind};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::Type;
use spmdc_ops::cast::Cast;
use spmdc_ops::reshard::Reshard;
use spmdc_ops::transpose::Transpose;

/// Transposes shared operands. The module stays at its stage.
pub fn orient_products(module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Partitioned, "the blocks of all devices are known");
    rewritten(module, oriented)
}

fn oriented(stmt: Stmt, func: &mut Func, mesh: &Mesh, stmts: &mut Vec<Stmt>) {
    let stmt = as_stored(stmt, func, mesh, stmts);
    let Some(product) = stmt.as_op::<Einsum>() else { return stmts.push(stmt) };
    let Some(Turned { operand, transpose, product }) = product.turned(&stmt, func, mesh) else {
        return stmts.push(stmt);
    };
    let value = stmt.args[operand];
    let made = stmts.iter().find(|stmt| stmt.results.contains(&value));
    // Products of bf16 pack their operands in any order.
    let stays = |made: &Stmt| made.is::<Reshard>() || mesh.machine.native_bf16 && made.is::<Cast>();
    if made.is_some_and(stays) {
        return stmts.push(stmt);
    }
    let ty = turned_type(func.ty(value), &transpose.axes);
    let mut args = stmt.args.clone();
    let mut build = Builder::new(func, mesh);
    args[operand] = build.emit(transpose, &[value], ty, &stmt.origin);
    build.define(product, &args, &stmt.results, &stmt.origin);
    stmts.extend(build.finish());
}

/// The product of large operands in the order in which they are stored, where one before it in the block transposes them.
fn as_stored(mut stmt: Stmt, func: &Func, mesh: &Mesh, before: &[Stmt]) -> Stmt {
    for operand in 0..stmt.args.len() {
        let Some(product) = stmt.as_op::<Einsum>() else { return stmt };
        let value = stmt.args[operand];
        let Some(made) = before.iter().find(|made| made.results.contains(&value)) else { continue };
        let Some(transpose) = made.as_op::<Transpose>() else { continue };
        let is_large = func.ty(value).block_bytes(mesh) as u64 >= mesh.machine.tiled_bytes;
        let is_aligned = func.ty(value).sharding.is_aligned() || func.ty(made.args[0]).sharding.is_aligned();
        if !is_large || is_aligned {
            continue;
        }
        let mut stored = stmt.clone();
        stored.kind = StmtKind::Op(product.of_transposed(operand, &transpose.axes).into());
        stored.args[operand] = made.args[0];
        let keeps =
            |stmt: &Stmt| stmt.as_op::<Einsum>().is_some_and(|product| product.turned(stmt, func, mesh).is_none());
        if product.is_library_product_of(&stmt, func) && keeps(&stored) {
            stmt = stored;
        }
    }
    stmt
}

/// The type of the transposed value.
fn turned_type(ty: &Type, axes: &[usize]) -> Type {
    let mut turned = ty.clone();
    debug_assert_eq!(axes.len(), ty.rank(), "each dimension has its place");
    turned.array.shape = axes.iter().map(|&axis| ty.shape()[axis]).collect();
    turned.sharding.dims = axes.iter().map(|&axis| ty.sharding.dims[axis].clone()).collect();
    turned
}
