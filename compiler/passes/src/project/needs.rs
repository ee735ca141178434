//! The meshes that need values on no mesh.
//!
//! A result of control flow may be on no mesh, although the condition is on one. It is computed on exactly the meshes that need it, to
//! which the condition is sent.

use super::content::{DEFAULT, OutputMeshes, content, decides};
use spmdc_ir::op::Op;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::placement::meshes::ValueMeshes;
use spmdc_ir::program::{Block, Func, Stmt, StmtKind, Value};
use spmdc_ir::rules::Effect;
use std::collections::{BTreeMap, BTreeSet};

/// For each value on no mesh, the meshes that need it.
#[derive(Default)]
pub(super) struct NeededMeshes(BTreeMap<Value, BTreeSet<u8>>);

impl NeededMeshes {
    /// Whether a mesh needs one of these values.
    pub fn any(&self, values: &[Value], on: u8) -> bool {
        values.iter().any(|value| self.0.get(value).is_some_and(|meshes| meshes.contains(&on)))
    }

    /// The meshes that need these values.
    pub fn of<'n>(&'n self, values: &'n [Value]) -> impl Iterator<Item = u8> + 'n {
        values.iter().filter_map(|value| self.0.get(value)).flatten().copied()
    }
}

/// The meshes that need each value; none where no condition on a mesh decides about a value on none.
pub(super) fn needs(func: &Func, of: &ValueMeshes, outputs: OutputMeshes) -> NeededMeshes {
    let is_at = |value: &Value| of[value.0 as usize].is_some();
    let mut is_needed = false;
    func.body.walk(&mut |stmt| is_needed |= !stmt.results.iter().all(is_at) && decides(stmt).iter().any(is_at));
    if !is_needed {
        return NeededMeshes::default();
    }
    let mut finder = NeedsFinder { of, outputs, needs: NeededMeshes::default(), changed: true };
    for &result in &func.body.results {
        finder.need(result, &BTreeSet::from([DEFAULT]));
    }
    // Each round adds a mesh to a value.
    while std::mem::take(&mut finder.changed) {
        finder.block(&func.body);
    }
    finder.needs
}

struct NeedsFinder<'a> {
    of: &'a ValueMeshes,
    outputs: OutputMeshes,
    needs: NeededMeshes,
    changed: bool,
}

impl NeedsFinder<'_> {
    /// The mesh of a value, or the meshes that need it.
    fn meshes(&self, value: Value) -> BTreeSet<u8> {
        match self.of[value.0 as usize] {
            Some(on) => BTreeSet::from([on]),
            None => self.needs.0.get(&value).cloned().unwrap_or_default(),
        }
    }

    fn need(&mut self, value: Value, on: &BTreeSet<u8>) {
        if self.of[value.0 as usize].is_some() || on.is_empty() {
            return;
        }
        let known = self.needs.0.entry(value).or_default();
        let before = known.len();
        known.extend(on);
        self.changed |= known.len() > before;
    }

    /// Each value is needed where those at its position are.
    fn pairs(&mut self, values: &[Value], users: &[Value]) {
        for (&value, &user) in values.iter().zip(users) {
            let on = self.meshes(user);
            self.need(value, &on);
        }
    }

    fn block(&mut self, block: &Block) {
        block.stmts.iter().rev().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Op(op) => {
                let on = self.meshes_of_op(op, stmt);
                stmt.args.iter().for_each(|&arg| self.need(arg, &on));
                return;
            }
            StmtKind::Control(Control::Branch(op)) => {
                op.sides().iter().for_each(|side| self.pairs(&side.results, &stmt.results));
            }
            StmtKind::Control(Control::For(op)) => {
                let starts = &stmt.args[op.bounds()..];
                self.pairs(&op.body.results, &stmt.results);
                self.pairs(&op.body.results[..starts.len()], &op.body.params[1..]);
                self.pairs(starts, &op.body.params[1..]);
                self.pairs(starts, &stmt.results);
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
        let mut on: BTreeSet<u8> = self.needs.of(&stmt.results).collect();
        content(stmt, self.of, self.outputs, &mut on);
        decides(stmt).into_iter().for_each(|value| self.need(value, &on));
        stmt.blocks().for_each(|inner| self.block(inner));
    }

    /// The meshes on which an op is computed; of a `transfer`, that to which it goes.
    fn meshes_of_op(&self, op: &Op, stmt: &Stmt) -> BTreeSet<u8> {
        match op.rules().properties().effect {
            effect @ (Effect::Text | Effect::File) => self.outputs.of(effect).into_iter().collect(),
            Effect::Layout => BTreeSet::from([DEFAULT]),
            Effect::None | Effect::Stops | Effect::Check | Effect::Message => {
                let results = stmt.results.iter().flat_map(|&result| self.meshes(result));
                stmt.args.iter().filter_map(|arg| self.of[arg.0 as usize]).chain(results).collect()
            }
        }
    }
}
