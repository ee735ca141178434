//! Distributes scans along split dimensions: each device scans its own block from the totals of the preceding blocks, which all
//! devices gather first (Blelloch, "Prefix sums and their applications", 1990).
//!
//! ```text
//! let y: f32[16@Y] = cumsum(x, axis=0);                 // x: f32[16@Y], Y = 4
//! =>
//! let t: f32[4@Y] = block_totals(x, of="cumsum", axis=0, parts=4);
//! let g: f32[4] = reshard(t, P(_));
//! let y: f32[16@Y] = cumsum(x, axis=0, totals=g);
//! ```
//!
//! It comes after `insert_reshards`, which has given operand and result the same blocks, and before `partition`, which makes the
//! request an `all_gather`.

use crate::rewrite::rewritten;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::{Func, Module, Stmt};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::DimSharding;
use spmdc_ops::reshard::Reshard;
use spmdc_ops::scan::BlockTotals;
use spmdc_ops::scan::Scan;

/// Gives every scan along a split dimension the totals of all blocks.
pub fn distribute_scans(module: Module) -> Module {
    rewritten(module, with_totals)
}

fn with_totals(mut stmt: Stmt, func: &mut Func, mesh: &Mesh, stmts: &mut Vec<Stmt>) {
    if let Some(scan) = stmt.as_op::<Scan>()
        && stmt.args.len() == 1
    {
        let (x, axis) = (stmt.args[0], scan.axis);
        let mut ty = func.ty(x).clone();
        let parts = mesh.size_of(&ty.sharding.dims[axis].axes);
        if parts > 1 {
            let origin = stmt.origin.because(format!(
                "`{}` along the split dimension {axis} needs the totals of the preceding blocks",
                stmt.name()
            ));
            let totals = BlockTotals { op: scan.op, axis, parts };
            ty.array.shape[axis] = parts;
            let mut build = Builder::new(func, mesh);
            let own = build.emit(totals, &[x], ty.clone(), &origin);
            ty.sharding.dims[axis] = DimSharding::default();
            let all = build.emit(Reshard::request(ty.sharding.clone()), &[own], ty, &origin);
            stmts.extend(build.finish());
            stmt.args.push(all);
        }
        debug_assert_eq!(
            stmt.args.len(),
            if parts > 1 { 2 } else { 1 },
            "a scan has totals where its dimension is split"
        );
    }
    stmts.push(stmt);
}
