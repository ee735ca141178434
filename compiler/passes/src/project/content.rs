//! Where something happens in a statement.

use spmdc_ir::ops::rules::Effect;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::placement::Placement;
use spmdc_ir::program::{Stmt, StmtKind, Value};
use std::collections::BTreeSet;

/// The mesh of results that are on none: the first of the program.
pub(super) const DEFAULT: u8 = 0;

/// The effect of an op.
pub(super) fn effect(stmt: &Stmt) -> Option<Effect> {
    stmt.op().map(|op| op.rules().properties().effect)
}

/// The meshes on which a statement does something.
pub(super) fn content(stmt: &Stmt, of: &Placement, output: u8, found: &mut BTreeSet<u8>) {
    let at = |value: &Value| of[value.0 as usize];
    found.extend(stmt.results.iter().filter_map(at));
    match &stmt.kind {
        StmtKind::Op(op) => match op.rules().properties().effect {
            Effect::Text => {
                found.insert(output);
            }
            Effect::Layout if stmt.args.is_empty() => {
                found.insert(output);
            }
            Effect::None | Effect::Stops | Effect::Check | Effect::Layout | Effect::Message => {
                found.extend(stmt.args.iter().filter_map(at));
            }
        },
        StmtKind::Control(control) => {
            if let Control::Manual(_) = control {
                found.extend(stmt.args.iter().filter_map(at));
            }
            control.blocks().flat_map(|block| &block.stmts).for_each(|stmt| content(stmt, of, output, found));
        }
    }
}
