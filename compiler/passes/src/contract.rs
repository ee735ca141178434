//! What passes promise each other beyond what the verifier looks at between stages; asserted where they begin and end.

use spmdc_ir::layout::types::ArrayType;
use spmdc_ir::program::{Block, Module, Stmt};

/// The arrays that a program takes and gives. No pass changes them. None in release builds, which assert nothing.
pub fn signature(module: &Module) -> Option<Vec<ArrayType>> {
    let Block { params, results, .. } = &module.func.body;
    let arrays = || params.iter().chain(results).map(|&value| module.func.ty(value).array.clone()).collect();
    cfg!(debug_assertions).then(arrays)
}

/// How many statements are for which this holds, in all blocks.
pub fn count(block: &Block, mut holds: impl FnMut(&Stmt) -> bool) -> usize {
    let mut found = 0;
    block.walk(&mut |stmt| found += usize::from(holds(stmt)));
    found
}
