//! Applies the decisions: partial types, and requests where a graph of partial values begins and ends.

use super::{Inserter, Round, loop_of};
use spmdc_abi::ReduceOp;
use spmdc_ir::mismatch::called;
use spmdc_ir::program::build::statement;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{AxisSet, Type};
use spmdc_ops::reshard::Reshard;
use std::collections::BTreeMap;

/// The module after the decisions.
pub(super) struct Rewriter<'a, 'b> {
    pub inserter: &'a mut Inserter<'b>,
    pub makers: BTreeMap<Value, Stmt>,
    pub held: BTreeMap<Value, Sharding>,
    pub linear: BTreeMap<Value, (Sharding, Vec<Sharding>)>,
    pub rounds: BTreeMap<Value, Sharding>,
}

impl Rewriter<'_, '_> {
    pub fn block(&mut self, mut block: Block) -> Block {
        let mut stmts = Vec::new();
        for mut stmt in std::mem::take(&mut block.stmts) {
            let (mut after, mut given) = (Vec::new(), Vec::new());
            if let Some(Round { bounds, first, .. }) = loop_of(&stmt) {
                for i in 0..stmt.args.len() - bounds {
                    let Some(layout) = self.rounds.remove(&stmt.results[i]) else { continue };
                    stmt.args[bounds + i] = self.operand(stmt.args[bounds + i], &layout, &stmt.origin, &mut stmts);
                    for block in stmt.blocks() {
                        let param = block.params[first + i];
                        self.inserter.func.info_mut(param).ty.sharding = layout.clone();
                    }
                    self.result(&mut stmt, i, layout, &mut after);
                }
                for i in stmt.args.len() - bounds..stmt.results.len() {
                    let Some(layout) = self.rounds.remove(&stmt.results[i]) else { continue };
                    self.result(&mut stmt, i, layout, &mut after);
                }
            } else if let Some(Control::Branch(_)) = stmt.control() {
                for i in 0..stmt.results.len() {
                    let Some(layout) = self.rounds.remove(&stmt.results[i]) else { continue };
                    given.push((i, layout.clone()));
                    self.result(&mut stmt, i, layout, &mut after);
                }
            } else if let Some((layout, operands)) = stmt.results.first().and_then(|first| self.linear.remove(first)) {
                for (arg, layout) in stmt.args.iter_mut().zip(&operands) {
                    *arg = self.operand(*arg, layout, &stmt.origin, &mut stmts);
                }
                if let Some(pin) = stmt.as_op_mut::<Reshard>() {
                    pin.to.clone_from(&layout);
                }
                self.result(&mut stmt, 0, layout, &mut after);
            }
            let origin = stmt.origin.clone();
            for inner in stmt.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
                for (i, layout) in &given {
                    inner.results[*i] = self.operand(inner.results[*i], layout, &origin, &mut inner.stmts);
                }
            }
            stmts.push(stmt);
            stmts.append(&mut after);
        }
        block.stmts = stmts;
        block
    }

    /// The value in this layout, resharded before its user.
    fn operand(&mut self, value: Value, layout: &Sharding, origin: &Origin, stmts: &mut Vec<Stmt>) -> Value {
        let ty = self.inserter.func.ty(value).clone();
        if ty.sharding == *layout {
            return value;
        }
        let whole = layout.clone().with_unreduced(AxisSet::EMPTY, ReduceOp::Sum);
        if let Some(maker) = self.makers.get(&value)
            && ty.sharding != whole
        {
            let copy = self.inserter.new_value(Type { sharding: whole, ..ty.clone() }, &maker.origin, 0);
            stmts.push(maker.making(vec![copy]));
            return self.operand(copy, layout, origin, stmts);
        }
        let origin = origin.because("this is added to partial sums");
        let made = self.inserter.new_value(Type { sharding: layout.clone(), ..ty }, &origin, 0);
        let request = Reshard::request(layout.clone());
        stmts.push(statement(&self.inserter.func, self.inserter.mesh, (request, &[value]), &[made], &origin));
        made
    }

    /// Makes a result in this layout, and reshards it to the wanted one.
    fn result(&mut self, stmt: &mut Stmt, i: usize, layout: Sharding, after: &mut Vec<Stmt>) {
        let wanted = stmt.results[i];
        if self.held.get(&wanted) == Some(&layout) {
            return;
        }
        let axes = self.inserter.mesh.display_set(layout.unreduced);
        let behind = match &stmt.kind {
            StmtKind::Op(op) => called(op.rules().name()),
            StmtKind::Control(Control::Branch(_)) => "`if`".to_string(),
            StmtKind::Control(Control::For(_) | Control::While(_) | Control::Manual(_)) => "the loop".to_string(),
        };
        // A loop of a derivative gives several gradients, which have origins of their own.
        let own = &self.inserter.func.info(wanted).origin;
        let origin = if own.lineage.of.is_some() { own } else { &stmt.origin };
        let origin = origin.because(match layout.unreduced.is_empty() {
            true => format!("sums over different axes are added in parts, which are joined behind {behind}"),
            false => format!("partial sums over {axes} are combined once, behind {behind}"),
        });
        let ty = Type { sharding: layout, ..self.inserter.func.ty(wanted).clone() };
        let made = self.inserter.new_value(ty, &stmt.origin, 0);
        stmt.results[i] = made;
        let request = Reshard::request(self.inserter.sharding(wanted));
        after.push(statement(&self.inserter.func, self.inserter.mesh, (request, &[made]), &[wanted], &origin));
    }
}
