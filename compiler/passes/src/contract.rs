//! Contracts between passes that the verifier does not check between stages; asserted on entry and exit.

use spmdc_ir::layout::types::ArrayType;
use spmdc_ir::program::{Block, Module, Stmt};

/// The types of a program's parameters and results, which no pass changes. None in release builds, which assert nothing.
pub fn signature(module: &Module) -> Option<Vec<ArrayType>> {
    let Block { params, results, .. } = &module.func.body;
    let arrays = || params.iter().chain(results).map(|&value| module.func.ty(value).array.clone()).collect();
    cfg!(debug_assertions).then(arrays)
}

/// The number of statements in all blocks for which this holds.
pub fn count(block: &Block, mut holds: impl FnMut(&Stmt) -> bool) -> usize {
    let mut found = 0;
    block.walk(&mut |stmt| found += usize::from(holds(stmt)));
    found
}
