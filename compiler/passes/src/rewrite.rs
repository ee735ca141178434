//! Replaces statements by others, one at a time.

use spmdc_ir::program::{Block, Func, Module, Stmt};
use spmdc_layout::mesh::Mesh;

/// Adds the statements that replace a statement to the block's statements so far.
pub type Replace = fn(Stmt, &mut Func, &Mesh, &mut Vec<Stmt>);

/// The module with other statements in place of each; statements in blocks are replaced before the one that holds them.
pub fn rewritten(mut module: Module, replace: Replace) -> Module {
    let mut body = std::mem::take(&mut module.func.body);
    rewrite(&mut body, &mut module.func, &module.mesh, replace);
    module.func.body = body;
    module
}

fn rewrite(block: &mut Block, func: &mut Func, mesh: &Mesh, replace: Replace) {
    let mut stmts = Vec::with_capacity(block.stmts.len());
    for mut stmt in std::mem::take(&mut block.stmts) {
        stmt.blocks_mut().for_each(|inner| rewrite(inner, func, mesh, replace));
        replace(stmt, func, mesh, &mut stmts);
    }
    block.stmts = stmts;
}
