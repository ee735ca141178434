//! Batching preserves `checkpoint` and `custom_vjp`: the batched statements of a `checkpoint` form one unit again, and a `custom_vjp` has
//! its rule for all elements.
//!
//! As in JAX, the function, its forward and its backward function are each mapped. All results are mapped if the rule sees any mapped
//! value. The cotangent of an argument that is the same for all elements is the sum of the elements' cotangents.

use super::Batcher;
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::program::units::{CustomRule, UnitKind};
use spmdc_ir::program::{Block, Stmt, Value};
use spmdc_ir::rules::batching::BatchedOperand;
use spmdc_ops::batching::BatchForms;
use spmdc_ops::reduce::reduce;

impl Batcher<'_> {
    /// Whether a statement makes a result of a function of `custom_vjp` whose rule sees something mapped.
    pub(super) fn is_output_of_mapped(&self, stmt: &Stmt) -> bool {
        let &[result] = stmt.results.as_slice() else { return false };
        let mut units = self.build.units().within(stmt.origin.unit, self.units.of());
        units.any(|unit| match self.build.units().kind(unit) {
            UnitKind::Recomputed => false,
            UnitKind::Custom(rule) => {
                let mut seen = rule.inputs.iter().map(|&(_, given)| given).chain(rule.captured.iter().copied());
                rule.outputs.contains(&result) && seen.any(|value| self.is_mapped(value))
            }
        })
    }

    /// Whether a block of a statement makes such a result.
    pub(super) fn holds_output_of_mapped(&self, stmt: &Stmt) -> bool {
        let mut inner = stmt.blocks().flat_map(|block| &block.stmts);
        !self.build.units().is_empty()
            && inner.any(|stmt| self.is_output_of_mapped(stmt) || self.holds_output_of_mapped(stmt))
    }

    /// Closes the copies of units of `checkpoint`, whose statements are complete.
    pub(super) fn renew_checkpoints(&mut self) {
        for (unit, copy) in self.units.pairs() {
            if let UnitKind::Recomputed = self.build.units().kind(unit) {
                self.build.close_unit(copy, UnitKind::Recomputed);
            }
        }
    }

    /// Gives the copies of functions of `custom_vjp` whose results are among the statements, which have been emitted, their rules.
    pub(super) fn renew_rules(&mut self, stmts: &[Stmt]) -> Result<(), Diagnostic> {
        for (unit, copy) in self.units.pairs().collect::<Vec<_>>() {
            let UnitKind::Custom(rule) = self.build.units().kind(unit) else { continue };
            let is_here = |stmt: &Stmt| stmt.results.iter().any(|result| rule.outputs.contains(result));
            if stmts.iter().any(is_here) {
                let rule = rule.clone();
                let rule = self.renewed_rule(&rule)?;
                self.build.close_unit(copy, UnitKind::Custom(Box::new(rule)));
            }
        }
        Ok(())
    }

    fn renewed_rule(&mut self, rule: &CustomRule) -> Result<CustomRule, Diagnostic> {
        let mut inputs = Vec::new();
        for &(name, given) in &rule.inputs {
            inputs.push((self.operand(name).value(), self.operand(given).value()));
        }
        let captured = rule.captured.iter().map(|&value| self.operand(value).value()).collect();
        let outputs: Vec<BatchedOperand> = rule.outputs.iter().map(|&output| self.operand(output)).collect();
        let is_partial = self.active.is_some();
        self.mark(&rule.forward, is_partial);
        let (Block { stmts: forward, .. }, forward_outputs) = self
            .in_block(Block::default(), |batching| batching.template(&rule.forward, &rule.forward_outputs, &outputs));
        let forward_outputs = forward_outputs?;

        let mut params = Vec::new();
        for (&param, output) in rule.reverse.params.iter().zip(&outputs) {
            let (ty, origin) = (self.build.carried_type(output.value()), self.build.origin());
            let new = self.build.new_value(ty, origin);
            let operand = match output {
                BatchedOperand::Mapped(_) => {
                    self.mapped.insert(param);
                    BatchedOperand::Mapped(new)
                }
                BatchedOperand::Same(_) => BatchedOperand::Same(new),
            };
            self.values.insert(param, operand);
            params.push(new);
        }
        self.mark(&rule.reverse.stmts, is_partial);
        let wanted: Vec<BatchedOperand> = rule.inputs.iter().map(|&(_, given)| self.operand(given)).collect();
        let (block, results) = self.in_block(Block { params, ..Block::default() }, |batching| {
            batching.template(&rule.reverse.stmts, &rule.reverse.results, &wanted)
        });
        let reverse = Block { results: results?, ..block };
        let outputs = outputs.into_iter().map(BatchedOperand::value).collect();
        Ok(CustomRule { inputs, captured, outputs, forward, forward_outputs, reverse })
    }

    /// Emits the new statements of a template, and returns its results: each is mapped like the corresponding value.
    fn template(
        &mut self,
        stmts: &[Stmt],
        results: &[Value],
        wanted: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        self.stmts(stmts)?;
        let mut found = Vec::new();
        for (&result, wanted) in results.iter().zip(wanted) {
            let operand = self.operand(result);
            found.push(match (operand, wanted) {
                (_, BatchedOperand::Mapped(_)) => self.batch.mapped(self.build, operand)?,
                (BatchedOperand::Mapped(all), BatchedOperand::Same(_)) => {
                    reduce(self.build, ReduceOp::Sum, all, &[0], false)?
                }
                (BatchedOperand::Same(same), BatchedOperand::Same(_)) => same,
            });
        }
        Ok(found)
    }
}
