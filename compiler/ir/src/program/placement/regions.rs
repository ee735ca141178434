//! The meshes of manual functions whose arguments are on no mesh.

use super::meshes::{ValueMeshes, destination};
use crate::program::control::Control;
use crate::program::transfer_target::Target;
use crate::program::{Block, Stmt, StmtKind, Value};
use crate::rules::Effect;
use spmdc_layout::mesh::Mesh;

/// The mesh of the values of a manual function that are on no mesh. It is the mesh of its arguments, of its results, or of other values in
/// it, and otherwise the first one with its axes; None if no mesh has them.
pub fn home(region: &Stmt, of: &ValueMeshes, mesh: &Mesh) -> Option<u8> {
    let Some(Control::Manual(op)) = region.control() else { return None };
    let at = |value: &Value| of[value.0 as usize];
    let mut inside = None;
    op.body.walk(&mut |stmt| inside = inside.or_else(|| stmt.results.iter().find_map(at)));
    let has_axes = |on: usize| op.axes.is_subset_of(mesh.named[on].axis_set());
    let first = || (0..mesh.named.len()).find(|&on| has_axes(on)).map(|on| on as u8);
    region.args.iter().chain(&region.results).find_map(at).or(inside).or_else(first)
}

/// As [`home`], for a function with results on no mesh: first of all a mesh that needs one of these.
pub(super) fn home_of_free(region: &Stmt, whole: &Block, of: &ValueMeshes, mesh: &Mesh) -> Option<u8> {
    let Some(Control::Manual(op)) = region.control() else { return None };
    let is_committed = region.args.iter().any(|arg| of[arg.0 as usize].is_some());
    let mut needs = WantedMeshes { wanted: of.clone(), changed: !is_committed };
    // Each round finds the mesh of a further value.
    while std::mem::take(&mut needs.changed) {
        needs.block(whole);
    }
    let fits = |on: &u8| op.axes.is_subset_of(mesh.named[usize::from(*on)].axis_set());
    let needed = region.results.iter().find_map(|result| needs.wanted[result.0 as usize]).filter(fits);
    needed.filter(|_| !is_committed).or_else(|| home(region, of, mesh))
}

/// For each value the mesh on which it is or is needed.
struct WantedMeshes {
    wanted: ValueMeshes,
    changed: bool,
}

impl WantedMeshes {
    fn want(&mut self, value: Value, on: Option<u8>) {
        let known = &mut self.wanted[value.0 as usize];
        if known.is_none() && on.is_some() {
            (*known, self.changed) = (on, true);
        }
    }

    /// Each value is needed where the one at its position is.
    fn pairs(&mut self, values: &[Value], users: &[Value]) {
        for (&value, user) in values.iter().zip(users) {
            self.want(value, self.wanted[user.0 as usize]);
        }
    }

    fn block(&mut self, block: &Block) {
        for stmt in block.stmts.iter().rev() {
            match &stmt.kind {
                StmtKind::Op(op) if let Some(op) = destination(op) => {
                    if let Target::Mesh(to) | Target::Declared(to) = op.to {
                        self.want(stmt.args[0], Some(to));
                    }
                }
                StmtKind::Op(op) => {
                    if !matches!(op.rules().properties().effect, Effect::Text | Effect::File) {
                        let on = stmt.args.iter().chain(&stmt.results).find_map(|value| self.wanted[value.0 as usize]);
                        stmt.args.iter().for_each(|&arg| self.want(arg, on));
                    }
                }
                StmtKind::Control(Control::Branch(op)) => {
                    op.sides().iter().for_each(|side| self.pairs(&side.results, &stmt.results));
                }
                StmtKind::Control(Control::For(op)) => {
                    let starts = &stmt.args[op.bounds()..];
                    self.pairs(&op.body.results, &stmt.results);
                    self.pairs(&op.body.results[..starts.len()], &op.body.params[1..]);
                    self.pairs(starts, &op.body.params[1..]);
                }
                StmtKind::Control(Control::While(op)) => {
                    for users in [&stmt.results, &op.body.params, &op.cond.params] {
                        self.pairs(&op.body.results, users);
                        self.pairs(&stmt.args, users);
                    }
                }
                StmtKind::Control(Control::Manual(op)) => {
                    self.pairs(&op.body.results, &stmt.results);
                    self.pairs(&stmt.args, &op.body.params);
                }
            }
            stmt.blocks().for_each(|inner| self.block(inner));
        }
    }
}
