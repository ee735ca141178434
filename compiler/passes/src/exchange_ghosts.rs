//! Makes the windows of `patches` on split dimensions local: a separate statement, `ghosted`, gives every device all elements that its
//! windows read.
//!
//! ```text
//! let p: f32[10@Y] = pad(x, [(1, 1)], bits=0);                                         // x: f32[8@Y], Y = 4
//! let w: f32[8@Y,3] = patches(p, dims=[(0, 8, 3, 1, 1, 1)], at=1);
//! =>
//! let g: f32[16@Y] = ghosted(x, maps=[(8, 1, 0, 1, 8, 1)], dims=[(0, 8, 3, 1, 1, 4)], to=P(Y), bits=0);
//! let w: f32[8@Y,3] = patches(g, dims=[(0, 8, 3, 1, 1, 4)], at=1);
//! ```
//!
//! It comes after `insert_reshards`, which has split operand and result by the same axes, and before `exchange_halos`. The padding of an
//! operand, or another window on it, becomes a part of `ghosted`, so no data moves for it. If the blocks of the windows need no elements
//! but those in the same blocks of the operand, nothing is copied.

use spmdc_ir::program::build::statement;
use spmdc_ir::program::local::window_of;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, Value};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::patch::PatchDim;
use spmdc_layout::window::{DimMap, WindowMap};
use spmdc_window_ops::ghosted::Ghosted;
use spmdc_window_ops::patches::Patches;
use std::collections::BTreeMap;

/// Gives the windows of `patches` all elements that they read.
pub fn exchange_ghosts(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Propagated, "windows are not local yet");
    let mut body = std::mem::take(&mut module.func.body);
    rewrite(&mut body, &mut module.func, &module.mesh);
    module.func.body = body;
    module
}

/// The windows of a block: the operand of each, and its elements in the result.
type GhostWindows = BTreeMap<Value, (Value, WindowMap)>;

fn rewrite(block: &mut Block, func: &mut Func, mesh: &Mesh) {
    let mut stmts: Vec<Stmt> = Vec::with_capacity(block.stmts.len());
    let mut views = GhostWindows::new();
    for mut stmt in std::mem::take(&mut block.stmts) {
        stmt.blocks_mut().for_each(|inner| rewrite(inner, func, mesh));
        if let Some(map) = window_of(func, &stmt)
            && stmt.args.len() == 1
        {
            views.insert(stmt.results[0], (stmt.args[0], map));
        }
        stmts.extend(ghosts(&mut stmt, func, mesh, &views));
        stmts.push(stmt);
    }
    block.stmts = stmts;
}

/// Divides the windows of a statement into blocks; the statement that makes the blocks of the operand, if it does not exist yet.
fn ghosts(stmt: &mut Stmt, func: &mut Func, mesh: &Mesh, views: &GhostWindows) -> Option<Stmt> {
    let (mut operand, result) = (*stmt.args.first()?, *stmt.results.first()?);
    let op = stmt.as_op_mut::<Patches>()?;
    let (from, to) = (func.ty(operand).clone(), func.ty(result).sharding.clone());
    let of = |patch: &PatchDim| &from.sharding.dims[patch.dim];
    debug_assert!(
        op.dims.iter().all(|patch| of(patch).axes == to.dims[op.result_dim(patch.dim)].axes),
        "windows and operand are split by the same axes"
    );
    for patch in &mut op.dims {
        patch.blocks = mesh.size_of(&of(patch).axes);
    }
    let is_local = |patch: &PatchDim| {
        let extent = from.shape()[patch.dim];
        of(patch).alignment.is_none() && patch.fits(extent) && patch.begins_with_blocks(extent)
    };
    if op.dims.iter().all(is_local) {
        return None;
    }
    let mut layout = from.sharding.clone();
    op.dims.iter().for_each(|patch| layout.dims[patch.dim].alignment = None);
    let whole = from.shape().iter().map(|&size| DimMap::identity(size)).collect();
    let mut map = WindowMap { dims: whole, fill: 0 };
    let made = |map: &WindowMap, operand: Value, func: &Func| {
        Ghosted::new(map, &op.dims, &func.ty(operand).sharding, &layout, mesh)
    };
    let mut ghosted = made(&map, operand, func).expect("windows and operand are split by the same axes");
    while let Some((inner, shown)) = views.get(&operand)
        && let Some(both) = map.after(shown)
        && let Some(other) = made(&both, *inner, func)
    {
        (operand, map, ghosted) = (*inner, both, other);
    }
    let ty = ghosted.result(func.ty(operand));
    let origin = stmt.origin.because("windows need elements that lie on other devices");
    let blocks = func.new_value(ty, origin.clone());
    stmt.args = vec![blocks];
    Some(statement(func, mesh, (ghosted, &[operand]), &[blocks], &origin))
}
