//! Finds the updates of arrays that are not needed afterwards.
//!
//! ```text
//! for i in 1..n { let v = sin(p[i - 1]);  p = update(p, v, i); }
//! ```
//! The new `p` can take the memory of the old one if `v` is computed before. If the old array is still needed, it is copied anyway, and `v`
//! can be computed in the loop nest that stores it.

use spmdc_ir::op::Op;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::walk::free_values;
use spmdc_ir::program::{Block, Func, Stmt, StmtKind, Value};
use std::collections::BTreeSet;

/// For each value, whether the statement that gives it is the last that needs its first operand. `inlined` has the statements of the
/// values that are computed where they are used.
pub fn last_uses(func: &Func, inlined: &[Option<(&Op, &Stmt)>]) -> Vec<bool> {
    let mut finder = LastUses { inlined, needed: BTreeSet::new(), last: vec![false; func.values.len()] };
    // Parameters keep their values from run to run.
    finder.needed.extend(&func.body.params);
    finder.block(&func.body, &mut Vec::new());
    finder.last
}

struct LastUses<'a> {
    inlined: &'a [Option<(&'a Op, &'a Stmt)>],
    /// The values that are needed after the current statement.
    needed: BTreeSet<Value>,
    last: Vec<bool>,
}

impl LastUses<'_> {
    /// Marks a value as needed, or the operands of one that is computed here. `added` gets all that were not needed before.
    fn need(&mut self, value: Value, added: &mut Vec<Value>) {
        if !self.needed.insert(value) {
            return;
        }
        added.push(value);
        if let Some(Some((_, stmt))) = self.inlined.get(value.0 as usize) {
            stmt.args.iter().for_each(|&arg| self.need(arg, added));
        }
    }

    /// Visits a block from its end.
    fn block(&mut self, block: &Block, added: &mut Vec<Value>) {
        block.results.iter().for_each(|&result| self.need(result, added));
        block.stmts.iter().rev().for_each(|stmt| self.stmt(stmt, added));
    }

    fn stmt(&mut self, stmt: &Stmt, added: &mut Vec<Value>) {
        match &stmt.kind {
            StmtKind::Op(_) => {
                let is_inlined = |result: &Value| self.inlined[result.0 as usize].is_some();
                if stmt.results.first().is_some_and(is_inlined) {
                    return;
                }
                if let (&[result], Some(first)) = (stmt.results.as_slice(), stmt.args.first()) {
                    self.last[result.0 as usize] = !self.needed.contains(first);
                }
            }
            StmtKind::Control(Control::Branch(op)) => {
                let mut needed = Vec::new();
                for side in op.sides() {
                    let mut own = Vec::new();
                    self.block(side, &mut own);
                    self.needed.retain(|value| !own.contains(value));
                    needed.append(&mut own);
                }
                needed.into_iter().for_each(|value| self.need(value, added));
            }
            StmtKind::Control(Control::For(op)) => self.trips(&[&op.body], added),
            StmtKind::Control(Control::While(op)) => {
                // The condition leaves to the body what it has seen.
                op.cond.params.iter().for_each(|&param| self.need(param, added));
                self.trips(&[&op.body, &op.cond], added);
            }
            StmtKind::Control(Control::Manual(op)) => {
                // The parameters of a region are its operands under other names.
                for (arg, &param) in stmt.args.iter().zip(&op.body.params) {
                    if self.needed.contains(arg) {
                        self.need(param, added);
                    }
                }
                self.block(&op.body, added);
            }
        }
        stmt.args.iter().for_each(|&arg| self.need(arg, added));
    }

    /// Visits the blocks of a loop. All that a trip takes from outside is needed after it, by the next.
    fn trips(&mut self, blocks: &[&Block], added: &mut Vec<Value>) {
        for block in blocks {
            free_values(block).into_iter().for_each(|value| self.need(value, added));
        }
        blocks.iter().for_each(|block| self.block(block, added));
    }
}
