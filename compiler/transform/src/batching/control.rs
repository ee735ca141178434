//! Control flow for each element of a batch.
//!
//! A loop carries the values of all elements. If the elements disagree about a condition, both sides of an `if` are computed for all, and a
//! `while` runs until the last element has finished. `where` keeps the valid values, and inactive elements neither stop the program nor
//! print.

use super::Batcher;
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::op::Op;
use spmdc_ir::program::control::{Branch, Control, ForLoop, ManualRegion, WhileLoop};
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Block, Stmt, Value};
use spmdc_ir::rules::batching::BatchedOperand;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, DType, Type};
use spmdc_ops::batching::BatchForms;
use spmdc_ops::batching::in_front;
use spmdc_ops::cast::Cast;
use spmdc_ops::elementwise::{Binary, Compare, Unary};
use spmdc_ops::index::Index;
use spmdc_ops::reduce::Reduce;
use spmdc_ops::reshard::Reshard;

impl Batcher<'_> {
    /// As [`Batcher::mark`], for control flow.
    pub(super) fn mark_control(&mut self, stmt: &Stmt, control: &Control, partly: bool) {
        match control {
            Control::For(own) => {
                let (bounds, inits) = stmt.args.split_at(own.bounds());
                let disagree = bounds.iter().any(|&bound| self.is_mapped(bound));
                let carries = &own.body.params[1..];
                self.mark_carries(carries, inits, disagree);
                loop {
                    self.mark(&own.body.stmts, partly || disagree);
                    if !self.mark_next(carries, &own.body.results) {
                        break;
                    }
                }
                self.mark_like(&stmt.results, &own.body.results);
                self.mark_like(&stmt.results, carries);
            }
            Control::While(own) => {
                self.mark_carries(&own.cond.params, &stmt.args, partly);
                loop {
                    self.mark_like(&own.body.params, &own.cond.params);
                    self.mark(&own.cond.stmts, partly);
                    let disagree = partly || self.is_mapped(own.cond.results[0]);
                    if disagree {
                        self.mapped.extend(own.cond.params.iter().chain(&own.body.params));
                    }
                    self.mark(&own.body.stmts, disagree);
                    let found = self.mark_next(&own.body.params, &own.body.results);
                    self.mark_like(&own.cond.params, &own.body.params);
                    // A condition of carries that have just been found may be mapped, too.
                    self.mark(&own.cond.stmts, disagree);
                    if !found && disagree == (partly || self.is_mapped(own.cond.results[0])) {
                        break;
                    }
                }
                self.mark_like(&stmt.results, &own.body.params);
            }
            Control::Branch(own) => {
                let disagree = self.is_mapped(stmt.args[0]);
                for side in own.sides() {
                    self.mark(&side.stmts, partly || disagree);
                    self.mark_like(&stmt.results, &side.results);
                }
                if disagree {
                    self.mapped.extend(&stmt.results);
                }
            }
            Control::Manual(own) => {
                self.mark_like(&own.body.params, &stmt.args);
                self.mark(&own.body.stmts, partly);
                self.mark_like(&stmt.results, &own.body.results);
            }
        }
    }

    /// Marks carried values whose first value is mapped, or all of them.
    fn mark_carries(&mut self, carries: &[Value], inits: &[Value], all: bool) {
        self.mark_like(carries, inits);
        if all {
            self.mapped.extend(carries);
        }
    }

    /// Marks values that take their contents from mapped ones, one from each.
    fn mark_like(&mut self, values: &[Value], from: &[Value]) {
        for (&value, &from) in values.iter().zip(from) {
            if self.is_mapped(from) {
                self.mapped.insert(value);
            }
        }
    }

    /// Marks carried values that a trip makes mapped, and says whether there are new ones.
    fn mark_next(&mut self, carries: &[Value], next: &[Value]) -> bool {
        let before = self.mapped.len();
        self.mark_like(carries, next);
        self.mapped.len() > before
    }

    /// Emits control flow for all elements.
    pub(super) fn control(&mut self, stmt: &Stmt, control: &Control) -> Result<(), Diagnostic> {
        match control {
            Control::For(own) => self.for_loop(stmt, own),
            Control::While(own) => {
                if self.active.is_some() || self.is_mapped(own.cond.results[0]) {
                    self.while_any(stmt, own)
                } else {
                    self.while_loop(stmt, own)
                }
            }
            Control::Branch(own) => match self.operand(stmt.args[0]) {
                BatchedOperand::Mapped(condition) => self.both_sides(stmt, own, condition),
                BatchedOperand::Same(condition) => self.branch(stmt, own, condition),
            },
            Control::Manual(own) => self.manual(stmt, own),
        }
    }

    /// The type of a value of the function in the batched program.
    fn new_type(&self, value: Value) -> Type {
        let ty = self.build.carried_type(value);
        let varying = self.active.map_or(ty.varying, |active| ty.varying.union(self.build.ty(active).varying));
        if self.is_mapped(value) { Type { varying, ..self.batch.ty(&ty) } } else { ty }
    }

    fn new_value(&mut self, ty: Type) -> Value {
        let origin = self.build.origin();
        self.build.new_value(ty, origin)
    }

    /// A value of a block or loop, of this type; `like` is the function's own.
    fn entering(&mut self, like: Value, ty: &Type) -> Value {
        let new = self.new_value(ty.clone());
        self.build.move_name(like, new);
        let operand = if self.is_mapped(like) { BatchedOperand::Mapped(new) } else { BatchedOperand::Same(new) };
        self.values.insert(like, operand);
        new
    }

    /// A value for a block or loop that takes it as one of this type, where `like` says whether it is mapped.
    fn leaving(&mut self, value: Value, like: Value, ty: &Type) -> Result<Value, Diagnostic> {
        let operand = self.operand(value);
        if !self.is_mapped(like) {
            return Ok(operand.value());
        }
        let value = self.batch.mapped(self.build, operand)?;
        self.fitting(value, ty)
    }

    /// A block that takes these values, and returns those that `fill` gives.
    fn block(
        &mut self,
        params: Vec<Value>,
        fill: impl FnOnce(&mut Self) -> Result<Vec<Value>, Diagnostic>,
    ) -> Result<Block, Diagnostic> {
        let (block, results) = self.in_block(Block { params, ..Block::default() }, fill);
        Ok(Block { results: results?, ..block })
    }

    fn push(&mut self, control: Control, args: Vec<Value>, results: Vec<Value>, origin: &Origin) {
        let origin = Origin { unit: self.build.unit(), ..origin.clone() };
        let stmt = Stmt::of_control(control, args, results, origin);
        self.build.innermost().stmts.push(stmt);
    }

    /// The elements for which two conditions hold; one may be absent.
    fn both(&mut self, first: Option<Value>, second: Value) -> Result<Value, Diagnostic> {
        match first {
            None => Ok(second),
            Some(first) => self.build.emit1(Binary(BinaryOp::And), &[first, second]),
        }
    }

    fn for_loop(&mut self, stmt: &Stmt, own: &ForLoop) -> Result<(), Diagnostic> {
        let (bounds, inits) = stmt.args.split_at(own.bounds());
        let bounds = self.operands(bounds);
        let disagree = bounds.iter().any(|bound| bound.is_mapped());
        let mut args = Vec::new();
        for (bound, extreme) in bounds.iter().zip([ReduceOp::Min, ReduceOp::Max]) {
            args.push(match *bound {
                BatchedOperand::Same(bound) => bound,
                BatchedOperand::Mapped(bound) => self.build.emit1(Reduce::new(extreme, &[0], false), &[bound])?,
            });
        }
        let (counter, carries) = own.body.params.split_first().expect("a loop has a counter");
        let types: Vec<Type> = carries.iter().map(|&carry| self.new_type(carry)).collect();
        for ((&init, &carry), ty) in inits.iter().zip(carries).zip(&types) {
            args.push(self.leaving(init, carry, ty)?);
        }
        let ty = self.build.ty(*counter).clone();
        let mut params = vec![self.entering(*counter, &ty)];
        params.extend(carries.iter().zip(&types).map(|(&carry, ty)| self.entering(carry, ty)).collect::<Vec<_>>());
        let outer = self.active;
        let mut stacked = Vec::new();
        let body = self.block(params.clone(), |batching| {
            if disagree {
                // The loop runs from the first start to the last end, and each element takes part in its own trips.
                let begins = batching.build.emit1(Compare(CompareOp::Le), &[bounds[0].value(), params[0]])?;
                let continues = batching.build.emit1(Compare(CompareOp::Lt), &[params[0], bounds[1].value()])?;
                let runs = batching.both(Some(begins), continues)?;
                batching.active = Some(batching.both(outer, runs)?);
            }
            batching.stmts(&own.body.stmts)?;
            let (next, collected) = own.body.results.split_at(carries.len());
            let mut results = Vec::new();
            for ((&next, &carry), ty) in next.iter().zip(carries).zip(&types) {
                let mut value = batching.leaving(next, carry, ty)?;
                if let Some(active) = batching.active.filter(|_| disagree) {
                    let before = batching.operand(carry).value();
                    value = batching.chosen(active, value, before)?;
                    value = batching.fitting(value, ty)?;
                }
                results.push(value);
            }
            for &value in collected {
                let operand = batching.operand(value);
                results.push(operand.value());
                let trips = own.trips().unwrap_or_default() as usize;
                stacked.push((operand, batching.build.stacked_type(operand.value(), trips)));
            }
            Ok(results)
        })?;
        self.active = outer;
        let last: Vec<Value> = types.into_iter().map(|ty| self.new_value(ty)).collect();
        let lists: Vec<Value> = stacked.iter().map(|(_, ty)| self.new_value(ty.clone())).collect();
        let control = Control::For(ForLoop { range: own.range, collected: own.collected, body });
        self.push(control, args, [last.as_slice(), lists.as_slice()].concat(), &stmt.origin);
        self.leave_all(&stmt.results[..last.len()], carries, &last);
        for ((&result, (operand, _)), list) in stmt.results[last.len()..].iter().zip(stacked).zip(lists) {
            match operand {
                BatchedOperand::Same(_) => self.leave(result, BatchedOperand::Same(list)),
                BatchedOperand::Mapped(_) => {
                    // Trips come first, then elements.
                    let list = in_front(self.build, list, 1)?;
                    self.leave(result, BatchedOperand::Mapped(list));
                }
            }
        }
        Ok(())
    }

    /// A result of the function's control flow.
    fn leave(&mut self, result: Value, operand: BatchedOperand) {
        self.build.move_name(result, operand.value());
        self.values.insert(result, operand);
    }

    /// Results of the function's control flow, which are mapped where `like` are.
    fn leave_all(&mut self, results: &[Value], like: &[Value], new: &[Value]) {
        for ((&result, &like), &new) in results.iter().zip(like).zip(new) {
            let operand = if self.is_mapped(like) { BatchedOperand::Mapped(new) } else { BatchedOperand::Same(new) };
            self.leave(result, operand);
        }
    }

    /// A `while` whose condition is the same for all elements.
    fn while_loop(&mut self, stmt: &Stmt, own: &WhileLoop) -> Result<(), Diagnostic> {
        let carries = &own.body.params;
        let types: Vec<Type> = carries.iter().map(|&carry| self.new_type(carry)).collect();
        let mut args = Vec::new();
        for ((&init, &carry), ty) in stmt.args.iter().zip(carries).zip(&types) {
            args.push(self.leaving(init, carry, ty)?);
        }
        let params = own.cond.params.iter().zip(&types).map(|(&carry, ty)| self.entering(carry, ty)).collect();
        let cond = self.block(params, |batching| {
            batching.stmts(&own.cond.stmts)?;
            let flag = batching.same(own.cond.results[0]);
            Ok(vec![flag])
        })?;
        let params = carries.iter().zip(&types).map(|(&carry, ty)| self.entering(carry, ty)).collect();
        let body = self.block(params, |batching| {
            batching.stmts(&own.body.stmts)?;
            let mut results = Vec::new();
            for ((&next, &carry), ty) in own.body.results.iter().zip(carries).zip(&types) {
                results.push(batching.leaving(next, carry, ty)?);
            }
            Ok(results)
        })?;
        let last: Vec<Value> = types.into_iter().map(|ty| self.new_value(ty)).collect();
        self.push(Control::While(WhileLoop { cond, body }), args, last.clone(), &stmt.origin);
        self.leave_all(&stmt.results, carries, &last);
        Ok(())
    }

    /// The condition of a `while` for each element that takes part.
    fn condition(&mut self, own: &WhileLoop, carried: &[Value]) -> Result<Value, Diagnostic> {
        for (&param, &value) in own.cond.params.iter().zip(carried) {
            self.values.insert(param, BatchedOperand::Mapped(value));
        }
        self.stmts(&own.cond.stmts)?;
        let holds = self.of_each(own.cond.results[0])?;
        self.both(self.active, holds)
    }

    /// A `while` that runs until its condition fails for the last element. Elements that have finished keep their values.
    fn while_any(&mut self, stmt: &Stmt, own: &WhileLoop) -> Result<(), Diagnostic> {
        let carries = &own.body.params;
        let types: Vec<Type> = carries.iter().map(|&carry| self.new_type(carry)).collect();
        let mut inits = Vec::new();
        for ((&init, &carry), ty) in stmt.args.iter().zip(carries).zip(&types) {
            inits.push(self.leaving(init, carry, ty)?);
        }
        let first = self.condition(own, &inits)?;
        self.follow(stmt);
        let flags = self.batch.ty(&self.build.replicated(ArrayType::scalar(DType::Bool)));
        let varying = types.iter().fold(self.build.ty(first).varying, |all, ty| all.union(ty.varying));
        let flags = Type { varying, ..flags };
        let first = self.fitting(first, &flags)?;
        let outer = self.active;

        let carried = |batching: &mut Self| -> Vec<Value> {
            std::iter::once(&flags).chain(&types).map(|ty| batching.new_value(ty.clone())).collect()
        };
        let params = carried(self);
        let cond = self.block(params.clone(), |batching| {
            let any = batching.build.emit1(Reduce::new(ReduceOp::Or, &[0], false), &[params[0]])?;
            Ok(vec![any])
        })?;

        let params = carried(self);
        let body = self.block(params.clone(), |batching| {
            batching.active = Some(params[0]);
            for (&carry, &param) in carries.iter().zip(&params[1..]) {
                batching.build.move_name(carry, param);
                batching.values.insert(carry, BatchedOperand::Mapped(param));
            }
            batching.stmts(&own.body.stmts)?;
            let mut next = Vec::new();
            for ((&result, ty), &before) in own.body.results.iter().zip(&types).zip(&params[1..]) {
                let value = batching.of_each(result)?;
                let value = batching.chosen(params[0], value, before)?;
                next.push(batching.fitting(value, ty)?);
            }
            let continues = batching.condition(own, &next)?;
            batching.follow(stmt);
            next.insert(0, batching.fitting(continues, &flags)?);
            Ok(next)
        })?;
        self.active = outer;
        inits.insert(0, first);
        let last = carried(self);
        self.push(Control::While(WhileLoop { cond, body }), inits, last.clone(), &stmt.origin);
        self.leave_all(&stmt.results, carries, &last[1..]);
        Ok(())
    }

    /// An `if` whose condition is the same for all elements.
    fn branch(&mut self, stmt: &Stmt, own: &Branch, condition: Value) -> Result<(), Diagnostic> {
        let types: Vec<Type> = stmt.results.iter().map(|&result| self.new_type(result)).collect();
        let mut blocks = Vec::new();
        for side in own.sides() {
            let block = self.block(Vec::new(), |batching| {
                batching.stmts(&side.stmts)?;
                let mut results = Vec::new();
                for ((&value, &result), ty) in side.results.iter().zip(&stmt.results).zip(&types) {
                    results.push(batching.leaving(value, result, ty)?);
                }
                Ok(results)
            })?;
            blocks.push(block);
        }
        let results: Vec<Value> = types.into_iter().map(|ty| self.new_value(ty)).collect();
        let otherwise = blocks.pop().expect("an `if` has two sides");
        let then = blocks.pop().expect("an `if` has two sides");
        self.push(Control::Branch(Branch { then, otherwise }), vec![condition], results.clone(), &stmt.origin);
        self.leave_all(&stmt.results, &stmt.results, &results);
        Ok(())
    }

    /// An `if` with a condition for each element: both sides are computed, and each element has the results of one.
    fn both_sides(&mut self, stmt: &Stmt, own: &Branch, condition: Value) -> Result<(), Diagnostic> {
        let outer = self.active;
        let fails = self.build.emit1(Unary(UnaryOp::Not), &[condition])?;
        let mut sides = Vec::new();
        for (side, holds) in own.sides().into_iter().zip([condition, fails]) {
            self.follow(stmt);
            self.active = Some(self.both(outer, holds)?);
            self.stmts(&side.stmts)?;
            self.active = outer;
            let mut results = Vec::new();
            for &result in &side.results {
                results.push(self.of_each(result)?);
            }
            sides.push(results);
        }
        self.follow(stmt);
        for ((&result, &then), &otherwise) in stmt.results.iter().zip(&sides[0]).zip(&sides[1]) {
            let value = self.chosen(condition, then, otherwise)?;
            self.leave(result, BatchedOperand::Mapped(value));
        }
        Ok(())
    }

    /// The body of a `manual` function: its axes do not split the mapped dimension.
    fn manual(&mut self, stmt: &Stmt, own: &ManualRegion) -> Result<(), Diagnostic> {
        let split: Vec<u8> =
            self.batch.layout.axes.iter().copied().filter(|&axis| own.axes.contains(usize::from(axis))).collect();
        if !split.is_empty() {
            let axes = self.build.mesh().display_axes(&split);
            let message = format!(
                "the mapped dimension is split over {axes}, which is a manual axis of the function `{}`",
                own.name
            );
            return Err(Diagnostic::error(Code::E0303, self.build.span(), message)
                .help("reshard the argument before calling `vmap`, or call `vmap` inside the manual function"));
        }
        let operands = self.operands(&stmt.args);
        let (mut args, mut inputs, mut params) = (Vec::new(), Vec::new(), Vec::new());
        for ((operand, input), &param) in operands.into_iter().zip(&own.inputs).zip(&own.body.params) {
            args.push(operand.value());
            inputs.push(if operand.is_mapped() { with_first(input) } else { input.clone() });
            let ty = self.build.ty(param).clone();
            let ty = if operand.is_mapped() { self.batch.ty(&ty) } else { ty };
            params.push(self.entering(param, &ty));
        }
        let outer = self.active;
        if let Some(active) = outer {
            let ty = self.build.ty(active).clone();
            args.push(active);
            inputs.push(Sharding::replicated(1));
            let inner = self.new_value(ty);
            params.push(inner);
            self.active = Some(inner);
        }
        let (mut outputs, mut new) = (Vec::new(), Vec::new());
        let fill = |batching: &mut Self| {
            batching.stmts(&own.body.stmts)?;
            let mut results = Vec::new();
            for ((&value, output), &result) in own.body.results.iter().zip(&own.outputs).zip(&stmt.results) {
                let operand = batching.operand(value);
                results.push(operand.value());
                outputs.push(if operand.is_mapped() { with_first(output) } else { output.clone() });
                let ty = batching.build.ty(result).clone();
                let ty = if operand.is_mapped() { batching.batch.ty(&ty) } else { ty };
                let outside = batching.new_value(ty);
                let is_mapped = operand.is_mapped();
                new.push((
                    result,
                    if is_mapped { BatchedOperand::Mapped(outside) } else { BatchedOperand::Same(outside) },
                ));
            }
            Ok(results)
        };
        let body = self.in_region(own.axes, |batching| batching.block(params, fill))?;
        self.active = outer;
        let all = new.iter().map(|(_, operand)| operand.value()).collect();
        let region = ManualRegion { name: own.name.clone(), axes: own.axes, inputs, outputs, body };
        self.push(Control::Manual(region), args, all, &stmt.origin);
        new.into_iter().for_each(|(result, operand)| self.leave(result, operand));
        Ok(())
    }

    /// An op for one element after the other.
    pub(super) fn one_by_one(
        &mut self,
        stmt: &Stmt,
        op: &Op,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let counter = self.build.replicated(ArrayType::scalar(DType::I32));
        let counter = self.new_value(counter);
        // Every device takes each element in turn.
        let mut whole = Vec::new();
        let active = self.active.map(BatchedOperand::Mapped);
        for &operand in operands.iter().chain(&active) {
            let mut to = self.build.explicit_part(self.build.ty(operand.value()));
            let is_split = operand.is_mapped() && !to.dims[0].axes.is_empty();
            whole.push(if is_split {
                to.dims[0].axes.clear();
                BatchedOperand::Mapped(self.build.emit1(Reshard::request(to), &[operand.value()])?)
            } else {
                operand
            });
        }
        let body = self.block(vec![counter], |batching| {
            let place = batching.build.emit1(Cast { to: DType::I64 }, &[counter])?;
            let mut elements = Vec::new();
            for operand in whole {
                elements.push(match operand {
                    BatchedOperand::Same(value) => value,
                    BatchedOperand::Mapped(value) => batching.build.emit1(Index { dims: vec![0] }, &[value, place])?,
                });
            }
            if active.is_none() || !stmt.results.is_empty() {
                elements.truncate(operands.len());
                return batching.build.emit(op.clone(), &elements);
            }
            let takes_part = elements.pop().expect("it comes last");
            let then = batching.block(Vec::new(), |batching| batching.build.emit(op.clone(), &elements))?;
            let branch = Branch { then, otherwise: Block::default() };
            batching.push(Control::Branch(branch), vec![takes_part], Vec::new(), &stmt.origin);
            Ok(Vec::new())
        })?;
        let stacked: Vec<Type> =
            body.results.iter().map(|&result| self.build.stacked_type(result, self.batch.size)).collect();
        let stacked: Vec<Value> = stacked.into_iter().map(|ty| self.new_value(ty)).collect();
        let range = Some((0, self.batch.size as i64));
        let control = Control::For(ForLoop { range, collected: stacked.len(), body });
        self.push(control, Vec::new(), stacked.clone(), &stmt.origin);
        stacked.into_iter().map(|value| self.batch.laid_out(self.build, value)).collect()
    }
}

/// A layout with a first dimension that no axis splits.
fn with_first(layout: &Sharding) -> Sharding {
    let mut layout = layout.clone();
    layout.dims.insert(0, Default::default());
    layout
}
