//! Decides which values stay partial, from the last statement to the first: the users of a value decide before the statement that makes it.

use super::{Round, SumNode, SumNodes, Sums, loop_of, of_trip};
use spmdc_abi::ReduceOp;
use spmdc_ir::program::control::{Branch, Control};
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use spmdc_ir::rules::Combines;
use spmdc_layout::projection::Projection;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::AxisSet;

impl Sums<'_, '_> {
    pub(super) fn block(&mut self, block: &Block, mut nodes: SumNodes) {
        self.learn(block, &mut nodes);
        self.decide_all(block, &nodes);
    }

    /// Decides the layouts of priced values.
    fn decide_all(&mut self, block: &Block, nodes: &SumNodes) {
        for stmt in block.stmts.iter().rev() {
            match &stmt.kind {
                StmtKind::Control(Control::For(_) | Control::While(_)) => self.decide_round(stmt, nodes),
                StmtKind::Control(Control::Branch(op)) => self.decide_branch(op, stmt, nodes),
                StmtKind::Control(Control::Manual(_)) => {
                    self.inserter.enter(true, 1.0);
                    stmt.blocks().for_each(|inner| self.block(inner, SumNodes::default()));
                    self.inserter.open_blocks.pop();
                }
                StmtKind::Op(_) => self.decide(stmt, nodes),
            }
        }
    }

    /// The partial layout in which a value is to be computed, if any.
    fn target(&self, value: Value, nodes: &SumNodes) -> Option<Sharding> {
        self.held.get(&value).cloned().or_else(|| nodes.of.get(&value).and_then(|node| node.through.clone()))
    }

    /// Asks for the partial layout of an operand from which `layout` is cheapest to reach, if there is one.
    fn hold(&mut self, value: Value, layout: &Sharding, user: Value, nodes: &SumNodes) {
        if !nodes.consumers.get(&value).is_some_and(|users| users.contains(&user)) {
            return;
        }
        let (_, made) = self.operand(value, nodes.of.get(&value), layout);
        if let Some(made) = made {
            self.asked.entry(value).or_default().push(made.layout.clone());
        }
    }

    /// Decides the layout of a value once all its users have asked for one.
    fn agree(&mut self, value: Value) {
        let Some(asked) = self.asked.remove(&value) else { return };
        debug_assert!(asked.len() <= self.uses[value.0 as usize] as usize, "{value} is asked for more often than used");
        if asked.len() == self.uses[value.0 as usize] as usize && asked.iter().all(|layout| *layout == asked[0]) {
            self.held.extend(asked.into_iter().next().map(|layout| (value, layout)));
        } else {
            self.disputed.push(value);
        }
    }

    fn decide(&mut self, stmt: &Stmt, nodes: &SumNodes) {
        let &[result] = stmt.results.as_slice() else { return };
        self.agree(result);
        let Some(layout) = self.target(result, nodes) else { return };
        let way = nodes.of.get(&result).and_then(|node| node.way(&layout));
        if let Some(operands) = way.and_then(|way| way.operands.clone()) {
            debug_assert_eq!(stmt.args.len(), operands.len(), "a linear statement says how all operands lie");
            // The statement may itself sum along explicit axes; its operands are partial along auto ones.
            debug_assert!(layout.combine == ReduceOp::Sum || layout.unreduced.is_empty(), "only sums are deferred");
            let is_sum = |layout: &Sharding| self.is_partial_sum(result, layout) || layout.unreduced.is_empty();
            debug_assert!(operands.iter().all(is_sum), "an operand is partial along axes whose types are fixed");
            let pairs = stmt.args.iter().zip(&operands);
            pairs.for_each(|(&arg, layout)| self.hold(arg, layout, result, nodes));
            self.linear.insert(result, (layout, operands));
        }
    }

    fn decide_branch(&mut self, op: &Branch, stmt: &Stmt, nodes: &SumNodes) {
        for (i, &result) in stmt.results.iter().enumerate() {
            self.agree(result);
            let Some(layout) = self.target(result, nodes) else { continue };
            op.sides().into_iter().for_each(|side| self.hold(side.results[i], &layout, stmt.results[0], nodes));
            self.rounds.insert(result, layout);
        }
        self.inserter.enter(true, 1.0);
        op.sides().into_iter().for_each(|side| self.decide_all(side, nodes));
        self.inserter.open_blocks.pop();
    }

    fn decide_round(&mut self, stmt: &Stmt, nodes: &SumNodes) {
        let Some(Round { bounds, trips, first, cond, body }) = loop_of(stmt) else { return };
        let mut inside = self.inside(stmt);
        for (i, &param) in body.params[first..].iter().enumerate() {
            self.agree(stmt.results[i]);
            let Some(layout) = self.target(stmt.results[i], nodes) else { continue };
            self.hold(stmt.args[bounds + i], &layout, stmt.results[0], nodes);
            self.rounds.insert(stmt.results[i], layout.clone());
            self.held.insert(body.results[i], layout.clone());
            inside.of.insert(param, SumNode::carried(std::iter::once(layout)));
        }
        for i in stmt.args.len() - bounds..stmt.results.len() {
            self.agree(stmt.results[i]);
            let Some(layout) = self.target(stmt.results[i], nodes) else { continue };
            self.held.insert(body.results[i], of_trip(&layout));
            self.rounds.insert(stmt.results[i], layout);
        }
        self.inserter.enter(false, trips);
        self.block(body, inside);
        self.keep_in_trips(&stmt.results[stmt.args.len() - bounds..], body);
        if let Some(cond) = cond {
            self.block(cond, SumNodes::default());
        }
        self.inserter.open_blocks.pop();
    }

    /// Combines collected values of a loop in each trip, if a trip combines other sums over the same axes: one collective then combines
    /// both. After the loop, it would be the same number of bytes in a separate collective.
    fn keep_in_trips(&mut self, collected: &[Value], body: &Block) {
        let values = &body.results[body.results.len() - collected.len()..];
        for (result, value) in collected.iter().zip(values) {
            if self.held.contains_key(result) {
                continue;
            }
            let Some(axes) = self.rounds.get(result).map(|layout| layout.unreduced) else { continue };
            if body.stmts.iter().any(|stmt| !stmt.results.contains(value) && self.is_combined(stmt, axes)) {
                self.rounds.remove(result);
                self.held.remove(value);
            }
        }
    }

    /// Whether the result of a statement is a sum over these axes that is combined at once.
    fn is_combined(&self, stmt: &Stmt, axes: AxisSet) -> bool {
        let (Some(op), &[result]) = (stmt.op(), stmt.results.as_slice()) else { return false };
        if self.held.contains_key(&result) || self.is_aligned(stmt) {
            return false;
        }
        if let Some((layout, _)) = self.linear.get(&result) {
            return layout.unreduced == axes;
        }
        let is_sum = op.rules().properties().combines == Combines::Elements(ReduceOp::Sum);
        is_sum && {
            let projection = Projection::new(self.inserter.func.factors(op, stmt));
            let chosen = self.inserter.choose(&projection, stmt);
            self.made(&projection, stmt, &chosen).unreduced == axes
        }
    }
}
