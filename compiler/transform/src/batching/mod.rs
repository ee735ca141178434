//! Batching: the statements of a function become statements that compute it for each element of a batch, by the rules of the ops.
//!
//! This happens while a program is checked. A function has been expanded for one element, and the batched form of its statements replaces
//! them. So all passes see an ordinary program, and derivatives of mapped functions need no additional code. A value that depends on mapped
//! arguments has the mapped dimension first; all others do not change. Each statement has the source position of its origin.
//!
//! ```text
//! |x, w| x @ w    for x: f32[3] mapped over 8 elements
//! einsum("i,ij->j", x, w)        one element
//! einsum("ai,ij->aj", x, w)      all of them
//! ```

mod control;
mod units;

use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::op::Op;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::units::UnitCopies;
use spmdc_ir::program::walk::free_values;
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use spmdc_ir::rules::batching::{Batch, BatchedOperand, Batching};
use spmdc_layout::mesh::AxisKind;
use spmdc_layout::sharding::DimSharding;
use spmdc_layout::types::Type;
use spmdc_ops::batching::BatchForms;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::Select;
use spmdc_ops::reshard::Reshard;
use std::collections::{BTreeMap, BTreeSet};

/// The values of `outputs` for each element of a batch, which `stmts` compute from `inputs`. Each input is the value that the statements
/// use, and the value of all elements, with the mapped dimension first.
pub fn map_over(
    build: &mut CallBuilder,
    stmts: &[Stmt],
    inputs: &[(Value, Value)],
    outputs: &[Value],
    batch: Batch,
) -> Result<Vec<BatchedOperand>, Diagnostic> {
    let units = UnitCopies::new(build.unit(), build.unit());
    let (values, mapped) = (BTreeMap::new(), BTreeSet::new());
    let layout = batch.layout.clone();
    let mut batching = Batcher { build, batch, layout, values, mapped, active: None, units };
    for &(input, all) in inputs {
        batching.values.insert(input, BatchedOperand::Mapped(all));
        batching.mapped.insert(input);
    }
    batching.mark(stmts, false);
    batching.restoring(|batching| batching.stmts(stmts))?;
    batching.renew_checkpoints();
    Ok(outputs.iter().map(|&output| batching.operand(output)).collect())
}

/// The state of one batching.
struct Batcher<'b> {
    build: &'b mut CallBuilder,
    /// The layout of the mapped dimension where the batching was asked for.
    layout: DimSharding,
    batch: Batch,
    /// The new values for the function's values.
    values: BTreeMap<Value, BatchedOperand>,
    /// The values that depend on mapped ones, and have the mapped dimension.
    mapped: BTreeSet<Value>,
    /// For statements with inactive elements: bools along the mapped dimension.
    active: Option<Value>,
    /// The functions that derivatives treat as one, for all elements.
    units: UnitCopies,
}

impl Scoped for Batcher<'_> {
    fn builder(&mut self) -> &mut CallBuilder {
        self.build
    }
}

impl Batcher<'_> {
    /// Whether a value has the mapped dimension, also by another name.
    fn is_mapped(&self, value: Value) -> bool {
        self.build.aliases().first(value, |name| self.mapped.contains(&name)).is_some()
    }

    /// Whether a statement may stop the program, or print: for elements that are left out it must not.
    fn acts(&self, stmt: &Stmt) -> bool {
        self.build.func().may_stop(stmt) || stmt.op().is_some_and(|op| matches!(op.rules().batching(0), Batching::Loop))
    }

    /// Finds the values that depend on mapped ones. `partly` if some elements are left out.
    fn mark(&mut self, stmts: &[Stmt], partly: bool) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Op(_) => {
                    let depends = stmt.args.iter().any(|&arg| self.is_mapped(arg));
                    if depends || (partly && self.acts(stmt)) || self.is_output_of_mapped(stmt) {
                        self.mapped.extend(&stmt.results);
                    }
                }
                StmtKind::Control(control) => self.mark_control(stmt, control, partly),
            }
        }
    }

    /// The new value of a value of the function. Another name stays another name.
    fn operand(&mut self, value: Value) -> BatchedOperand {
        if let Some(&known) = self.values.get(&value) {
            return known;
        }
        let Some(of) = self.build.aliases().next(value) else { return BatchedOperand::Same(value) };
        let is_differentiated = !self.build.aliases().is_stopped(value);
        let new = match self.operand(of) {
            BatchedOperand::Same(same) if same == of => BatchedOperand::Same(value),
            BatchedOperand::Same(other) => BatchedOperand::Same(self.renamed(other, is_differentiated)),
            BatchedOperand::Mapped(other) => BatchedOperand::Mapped(self.renamed(other, is_differentiated)),
        };
        self.values.insert(value, new);
        new
    }

    fn renamed(&mut self, value: Value, is_differentiated: bool) -> Value {
        if is_differentiated { self.build.alias(value) } else { self.build.stopped_alias(value) }
    }

    fn operands(&mut self, values: &[Value]) -> Vec<BatchedOperand> {
        values.iter().map(|&value| self.operand(value)).collect()
    }

    /// The value for each element.
    fn of_each(&mut self, value: Value) -> Result<Value, Diagnostic> {
        let operand = self.operand(value);
        self.batch.mapped(self.build, operand)
    }

    /// Emits statements for all elements.
    fn stmts(&mut self, stmts: &[Stmt]) -> Result<(), Diagnostic> {
        self.in_context(|batching| stmts.iter().try_for_each(|stmt| batching.stmt(stmt)))?;
        self.renew_rules(stmts)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), Diagnostic> {
        self.follow(stmt);
        match &stmt.kind {
            StmtKind::Op(op) => self.op(stmt, op),
            StmtKind::Control(control) if self.changes(stmt) => self.control(stmt, control),
            StmtKind::Control(_) => self.copy(stmt),
        }
    }

    /// Gives new statements the position, the lineage and the unit of this one.
    fn follow(&mut self, stmt: &Stmt) {
        let mut lineage = stmt.origin.lineage;
        lineage.of = lineage.of.map(|of| self.values.get(&of).map_or(of, |known| known.value()));
        self.build.resume(&Origin { lineage, ..stmt.origin.clone() });
        let unit = self.build.copy_of_unit(&mut self.units, stmt.origin.unit);
        self.build.set_unit(unit);
        let explicit = self.build.mesh().of_kind(AxisKind::Explicit);
        self.batch.layout.axes.clone_from(&self.layout.axes);
        self.batch.layout.axes.retain(|&axis| explicit.contains(usize::from(axis)));
        self.batch.layout.open = self.build.unknown_layout(1).dims[0].open;
    }

    /// Whether a statement has something mapped in it, or some elements are left out of it.
    fn changes(&self, stmt: &Stmt) -> bool {
        let mut uses = stmt.args.iter().copied().chain(stmt.blocks().flat_map(free_values));
        self.active.is_some() || uses.any(|value| self.is_mapped(value)) || self.holds_output_of_mapped(stmt)
    }

    fn op(&mut self, stmt: &Stmt, op: &Op) -> Result<(), Diagnostic> {
        let mut operands = self.operands(&stmt.args);
        let is_partial = self.active.is_some() && self.acts(stmt);
        if !is_partial && !operands.iter().any(|operand| operand.is_mapped()) {
            self.copy(stmt)?;
            if let (true, &[result]) = (self.is_output_of_mapped(stmt), stmt.results.as_slice()) {
                let all = self.of_each(result)?;
                self.values.insert(result, BatchedOperand::Mapped(all));
            }
            return Ok(());
        }
        let mut batching = op.rules().batching(self.batch.size);
        if let Batching::Stops { at, harmless, batching: own } = batching {
            if let Some(active) = self.active.filter(|_| is_partial) {
                operands[at] = self.harmless(stmt, (at, operands[at]), harmless, active)?;
            }
            batching = *own;
        }
        let results = match batching {
            Batching::Elementwise => {
                let rank = self.build.ty(stmt.results[0]).rank();
                let mut args = Vec::new();
                for operand in operands {
                    args.push(self.batch.aligned(self.build, operand, rank)?);
                }
                self.build.emit(op.clone(), &args)?
            }
            Batching::Shifted(op) => {
                let mut args = Vec::new();
                for operand in operands {
                    args.push(self.batch.mapped(self.build, operand)?);
                }
                self.build.emit(op, &args)?
            }
            Batching::Rule(rule) => rule.batched(self.build, stmt, &self.batch, &operands)?,
            Batching::Loop => self.one_by_one(stmt, op, &operands)?,
            Batching::Stops { .. } | Batching::Never => {
                unreachable!("`{}` has nothing that is mapped", stmt.name())
            }
        };
        self.define(&stmt.results, &results);
        Ok(())
    }

    /// The values of all elements for the values of one element.
    fn define(&mut self, values: &[Value], all: &[Value]) {
        debug_assert_eq!(values.len(), all.len(), "a batched statement has as many results");
        for (&value, &all) in values.iter().zip(all) {
            debug_assert_eq!(
                self.batch.ty(self.build.ty(value)).array,
                self.build.ty(all).array,
                "a batched value has the mapped dimension in front"
            );
            self.build.move_name(value, all);
            let derived_from = self.build.info(value).derived_from;
            let now = |of: Value| self.values.get(&of).map_or(of, |known| known.value());
            self.build.info_mut(all).derived_from = derived_from.map(|derived_from| derived_from.mapped(now));
            self.values.insert(value, BatchedOperand::Mapped(all));
        }
    }

    /// An operand with a harmless number for elements that are left out.
    fn harmless(
        &mut self,
        stmt: &Stmt,
        (at, operand): (usize, BatchedOperand),
        number: u8,
        active: Value,
    ) -> Result<BatchedOperand, Diagnostic> {
        let ty = self.build.ty(stmt.args[at]);
        let (dtype, rank) = (ty.dtype(), ty.rank());
        let number = self.build.emit1(Constant::scalar(dtype, u64::from(number)), &[])?;
        let active = self.batch.aligned(self.build, BatchedOperand::Mapped(active), rank)?;
        let operand = self.batch.aligned(self.build, operand, rank)?;
        Ok(BatchedOperand::Mapped(self.build.emit1(Select, &[active, operand, number])?))
    }

    /// `before` for the elements that are left out, and `after` for the others.
    fn chosen(&mut self, active: Value, after: Value, before: Value) -> Result<Value, Diagnostic> {
        let rank = self.build.ty(after).rank() - 1;
        let active = self.batch.aligned(self.build, BatchedOperand::Mapped(active), rank)?;
        self.build.emit1(Select, &[active, after, before])
    }

    /// A value with the layout, and the axes along which it varies, of a type.
    fn fitting(&mut self, value: Value, ty: &Type) -> Result<Value, Diagnostic> {
        let value = self.build.vary(value, ty.varying)?;
        let to = self.build.explicit_part(ty);
        if self.build.explicit_part(self.build.ty(value)) == to {
            return Ok(value);
        }
        self.build.emit1(Reshard::request(to), &[value])
    }

    /// A statement without anything mapped, with new results, as it may be needed more than once.
    fn copy(&mut self, stmt: &Stmt) -> Result<(), Diagnostic> {
        let stmt = self.copied(stmt)?;
        self.build.innermost().stmts.push(stmt);
        Ok(())
    }

    fn copied(&mut self, stmt: &Stmt) -> Result<Stmt, Diagnostic> {
        let mut new = stmt.clone();
        new.args = stmt.args.iter().map(|&arg| self.same(arg)).collect();
        for block in new.blocks_mut() {
            let old = std::mem::take(block);
            *block = self.copied_block(&old)?;
        }
        new.results = self.renewed(&stmt.results);
        new.origin.unit = self.build.copy_of_unit(&mut self.units, stmt.origin.unit);
        Ok(new)
    }

    fn copied_block(&mut self, block: &Block) -> Result<Block, Diagnostic> {
        let params = self.renewed(&block.params);
        let stmts = block.stmts.iter().map(|stmt| self.copied(stmt)).collect::<Result<_, _>>()?;
        self.renew_rules(&block.stmts)?;
        let results = block.results.iter().map(|&result| self.same(result)).collect();
        Ok(Block { params, stmts, results })
    }

    fn same(&mut self, value: Value) -> Value {
        let operand = self.operand(value);
        debug_assert!(!operand.is_mapped(), "what depends on nothing mapped is not mapped");
        operand.value()
    }

    fn renewed(&mut self, values: &[Value]) -> Vec<Value> {
        let mut new = Vec::new();
        for &value in values {
            let renewed = self.build.renewed(value);
            self.values.insert(value, BatchedOperand::Same(renewed));
            new.push(renewed);
        }
        new
    }
}
