//! Postconditions of passes that the verifier does not check; asserted on exit.

use spmdc_ir::program::{Block, Stmt};

/// The number of statements in all blocks for which this holds.
pub fn count(block: &Block, mut holds: impl FnMut(&Stmt) -> bool) -> usize {
    let mut found = 0;
    block.walk(&mut |stmt| found += usize::from(holds(stmt)));
    found
}

/// The number of statements in all blocks; None in release builds, which assert nothing.
pub fn statements(block: &Block) -> Option<usize> {
    cfg!(debug_assertions).then(|| count(block, |_| true))
}
