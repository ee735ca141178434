//! Gradients that a `manual` function uses as the gradient of each device, although they are sums over the devices.
//!
//! The gradient with respect to a value that is the same on all devices is the sum of the gradients of each device's result. Combining it
//! over the devices again, or returning it as split over them, is right only for the separate gradient of each device: the gradient with
//! respect to `pvary(w, X)`.
//!
//! Gradients are followed through ops that scale, move, join and add such gradients, and through loops with such ops. They are not followed
//! into sums with other values, as in `w - lr * g`, and not into products with varying values, as in `dot(g, x)`: these intend the sum.

use crate::errors::manual as errors;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::op::Op;
use spmdc_ir::program::control::{Control, ForLoop};
use spmdc_ir::program::origin::DerivativePart;
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use spmdc_ir::rules::{Effect, Elements, Linear, Manual};
use spmdc_layout::types::AxisSet;
use std::collections::{BTreeMap, BTreeSet};

/// A result that is made to vary along axes because it is declared split over them.
pub struct SpreadResult {
    /// The result before.
    pub value: Value,
    /// The axes along which it does not vary.
    pub axes: AxisSet,
    /// The source position of the result.
    pub span: Span,
}

/// A gradient that is a sum over devices.
#[derive(Clone, Copy)]
struct Summed {
    /// The axes over which it is summed.
    axes: AxisSet,
    /// The value that was differentiated.
    of: Option<Value>,
    /// The source position of the derivative.
    span: Span,
}

struct Search<'b> {
    build: &'b CallBuilder,
    summed: BTreeMap<Value, Summed>,
    /// Values that no operand decides.
    constant: BTreeSet<Value>,
    found: Vec<Diagnostic>,
}

/// Warnings (E0507) about gradients in the body of a `manual` function with these results.
pub fn warnings(build: &CallBuilder, body: &Block, spread: &[SpreadResult]) -> Vec<Diagnostic> {
    let mut search = Search { build, summed: BTreeMap::new(), constant: BTreeSet::new(), found: Vec::new() };
    search.block(body);
    for SpreadResult { value, axes, span } in spread {
        if let Some(summed) = search.of(*value).filter(|summed| !summed.axes.intersect(*axes).is_empty()) {
            let over = build.mesh().display_set(summed.axes);
            search.found.push(errors::spread_sum(&search.name(summed), &over, *span, summed.span));
        }
    }
    search.found
}

impl Search<'_> {
    fn of(&self, value: Value) -> Option<Summed> {
        self.summed.get(&self.build.original(value)).copied()
    }

    fn is_constant(&self, value: Value) -> bool {
        self.constant.contains(&self.build.original(value))
    }

    /// The differentiated value, in words.
    fn name(&self, summed: Summed) -> Option<String> {
        let of = summed.of?;
        let names = [of, self.build.original(of)].map(|value| self.build.info(value).name.clone());
        names.into_iter().flatten().next()
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtKind::Op(op) => self.op(stmt, op),
                StmtKind::Control(Control::For(of)) => self.loop_of(stmt, of),
                StmtKind::Control(Control::Branch(branch)) => {
                    for side in branch.sides() {
                        self.block(side);
                        self.pass(&side.results, &stmt.results);
                    }
                }
                StmtKind::Control(Control::While(_) | Control::Manual(_)) => {
                    stmt.blocks().for_each(|block| self.block(block));
                }
            }
        }
    }

    /// A carried value that is zero at first may accumulate gradients.
    fn loop_of(&mut self, stmt: &Stmt, of: &ForLoop) {
        let carried = &stmt.args[of.bounds()..];
        for (&init, &param) in carried.iter().zip(&of.body.params[1..]) {
            if self.is_constant(init) {
                self.constant.insert(param);
            }
        }
        self.pass(carried, &of.body.params[1..]);
        self.block(&of.body);
        self.pass(&of.body.results, &stmt.results);
    }

    /// Values that are the values of a block, or become them.
    fn pass(&mut self, from: &[Value], to: &[Value]) {
        for (&from, &to) in from.iter().zip(to) {
            if let Some(summed) = self.of(from) {
                self.summed.insert(to, summed);
            }
        }
    }

    fn op(&mut self, stmt: &Stmt, op: &Op) {
        let properties = op.rules().properties();
        let lineage = stmt.origin.lineage;
        if let Manual::Group(group) = properties.manual {
            let axes: AxisSet = group.axes().iter().map(|&axis| usize::from(axis)).collect();
            if lineage.is_summed {
                self.summed.insert(stmt.results[0], Summed { axes, of: lineage.of, span: stmt.origin.span });
            } else if lineage.part == DerivativePart::Value && group.communicates() {
                let mut sums = stmt.args.iter().filter_map(|&arg| self.of(arg));
                if let Some(summed) = sums.find(|summed| !summed.axes.intersect(axes).is_empty()) {
                    let mesh = self.build.mesh();
                    let (over, again) = (mesh.display_set(summed.axes), mesh.display_set(axes));
                    let name = self.name(summed);
                    self.found.push(errors::sum_again(&name, &over, &again, stmt.origin.span, summed.span));
                }
            }
            return;
        }
        let is_number = matches!(properties.elements, Elements::Literal(_) | Elements::Counted);
        if is_number || (properties.effect == Effect::None && stmt.args.iter().all(|&arg| self.is_constant(arg))) {
            self.constant.extend(&stmt.results);
            return;
        }
        let Some(summed) = stmt.args.iter().find_map(|&arg| self.of(arg)) else { return };
        let scales = matches!(properties.linear, Linear::Product | Linear::Contraction | Linear::Quotient);
        let is_followed = stmt.args.iter().all(|&arg| {
            let varies = !self.build.ty(arg).varying.intersect(summed.axes).is_empty();
            self.of(arg).is_some() || self.is_constant(arg) || (scales && !varies)
        });
        if is_followed {
            self.summed.extend(stmt.results.iter().map(|&result| (result, summed)));
        }
    }
}
