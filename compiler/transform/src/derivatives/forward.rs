//! Forward mode: tangents in addition to the values, through the same statements.

use super::product;
use super::{conformed, dependent, missing, needed_for, units, zeros};
use spmdc_abi::ReduceOp;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::op::Op;
use spmdc_ir::program::control::{Branch, Control, ForLoop, ManualRegion, WhileLoop};
use spmdc_ir::program::origin::{DerivativePart, DerivedFrom, Lineage, UnitId};
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_layout::types::Type;
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::derivative::zeros_like;
use spmdc_ops::reduce::reduce;
use spmdc_ops::reshard::Reshard;
use std::collections::{BTreeMap, BTreeSet};

/// The tangents of `outputs` for the tangents of some values (`tangents`), through the statements of the innermost block from `start` on:
/// forward mode. None for an output that does not depend on the values.
pub fn push_forward(
    build: &mut CallBuilder,
    start: usize,
    tangents: &[(Value, Value)],
    outputs: &[Value],
) -> Result<Vec<Option<Value>>, Diagnostic> {
    let (around, outside) = (build.lineage(), build.unit());
    let stmts = build.innermost().stmts.split_off(start);
    let mut depends: BTreeSet<Value> = tangents.iter().map(|&(value, _)| value).collect();
    dependent(build, &stmts, &mut depends);
    let outputs: Vec<Value> = outputs.iter().map(|&output| build.resolved(output)).collect();
    let mut needed: BTreeSet<Value> = outputs.iter().copied().collect();
    needed_for(build, &stmts, &mut needed);
    let mut forward = Forward { build, around, outside, depends, needed, tangents: tangents.iter().copied().collect() };
    forward.restoring(|forward| forward.run(stmts))?;
    let tangents = forward.tangents;
    Ok(outputs.iter().map(|output| tangents.get(output).copied()).collect())
}

/// A derivative under construction: it repeats the statements and adds statements for the tangents.
struct Forward<'b> {
    build: &'b mut CallBuilder,
    /// The lineage of the statements around.
    around: Lineage,
    /// The unit of the statements around.
    outside: Option<UnitId>,
    /// The values that depend on the inputs.
    depends: BTreeSet<Value>,
    /// The values on which the outputs depend.
    needed: BTreeSet<Value>,
    tangents: BTreeMap<Value, Value>,
}

impl Scoped for Forward<'_> {
    fn builder(&mut self) -> &mut CallBuilder {
        self.build
    }
}

impl Forward<'_> {
    fn has_tangent(&self, value: Value) -> bool {
        self.depends.contains(&value) && self.needed.contains(&value)
    }

    fn run(&mut self, stmts: Vec<Stmt>) -> Result<(), Diagnostic> {
        self.in_context(|forward| forward.stmts(stmts))
    }

    fn stmts(&mut self, stmts: Vec<Stmt>) -> Result<(), Diagnostic> {
        for stmt in stmts {
            if !stmt.results.iter().any(|&result| self.has_tangent(result)) {
                self.build.innermost().stmts.push(stmt);
                continue;
            }
            self.build.set_span(stmt.origin.span);
            self.build.turn(stmt.origin.turned);
            let own = Lineage { part: DerivativePart::Tangent, of: None, ..stmt.origin.lineage };
            self.build.set_lineage(own.within(self.around));
            units::refuse_forward(self.build, &stmt, self.outside)?;
            self.build.set_unit(stmt.origin.unit);
            self.stmt(stmt)?;
        }
        Ok(())
    }

    /// Repeats a statement, with the statements of its tangents.
    fn stmt(&mut self, stmt: Stmt) -> Result<(), Diagnostic> {
        let Stmt { kind, args, results, origin } = stmt;
        let (control, args, results) = match kind {
            StmtKind::Op(op) => {
                let stmt = Stmt::new(op, args, results, origin);
                self.build.innermost().stmts.push(stmt.clone());
                return self.op(&stmt);
            }
            StmtKind::Control(Control::For(op)) => self.for_loop(op, args, results)?,
            StmtKind::Control(Control::While(op)) => self.while_loop(op, args, results)?,
            StmtKind::Control(Control::Branch(op)) => self.branch(op, args, results)?,
            StmtKind::Control(Control::Manual(op)) => self.manual(op, args, results)?,
        };
        self.build.innermost().stmts.push(Stmt::of_control(control, args, results, origin));
        Ok(())
    }

    /// The tangent of a value, with this type; zeros if it has none.
    fn tangent(&mut self, value: Value, to: &Type) -> Result<Value, Diagnostic> {
        match self.tangents.get(&self.build.resolved(value)) {
            Some(&tangent) => conformed(self.build, tangent, to),
            None => zeros(self.build, value, to),
        }
    }

    /// A new value of the type of another one, as its tangent.
    fn new_tangent(&mut self, of: Value) -> Value {
        let (ty, origin) = (self.build.carried_type(of), self.build.origin());
        let tangent = self.build.new_value(ty, origin);
        self.build.info_mut(tangent).derived_from = Some(DerivedFrom::DerivativeOf(of));
        self.tangents.insert(of, tangent);
        tangent
    }

    /// The carried values that have tangents: their positions, and the first tangents.
    fn carries(
        &mut self,
        params: &[Value],
        results: &[Value],
        inits: &[Value],
    ) -> Result<(Vec<usize>, Vec<Value>), Diagnostic> {
        let has = |at: &usize| {
            self.depends.contains(&params[*at])
                && (self.needed.contains(&params[*at]) || self.needed.contains(&results[*at]))
        };
        let carries: Vec<usize> = (0..params.len()).filter(has).collect();
        let mut first = Vec::new();
        for &at in &carries {
            let ty = self.build.carried_type(params[at]);
            first.push(self.tangent(inits[at], &ty)?);
        }
        Ok((carries, first))
    }

    /// The block with the tangents of these parameters as further ones. `results` gives the tangents of the results.
    fn block(
        &mut self,
        mut block: Block,
        params: &[Value],
        results: impl FnOnce(&mut Self, &[Value]) -> Result<Vec<Value>, Diagnostic>,
    ) -> Result<Block, Diagnostic> {
        let own = params.iter().map(|&param| self.new_tangent(param)).collect::<Vec<_>>();
        block.params.extend(own);
        let (stmts, before) = (std::mem::take(&mut block.stmts), std::mem::take(&mut block.results));
        let (block, results) = self.in_block(block, |forward| {
            forward.run(stmts)?;
            results(forward, &before)
        });
        Ok(Block { results: results?, ..block })
    }

    fn for_loop(
        &mut self,
        op: ForLoop,
        mut args: Vec<Value>,
        results: Vec<Value>,
    ) -> Result<(Control, Vec<Value>, Vec<Value>), Diagnostic> {
        let params = op.body.params[1..].to_vec();
        let inits = args[op.bounds()..].to_vec();
        let (carries, first) = self.carries(&params, &results, &inits)?;
        args.extend(first);
        let stacked: Vec<usize> = (params.len()..results.len()).filter(|&at| self.has_tangent(results[at])).collect();
        let tangent_params: Vec<Value> = carries.iter().map(|&at| params[at]).collect();
        let body = self.block(op.body, &tangent_params, |forward, before| {
            let mut next = before[..params.len()].to_vec();
            for &at in &carries {
                let ty = forward.build.carried_type(params[at]);
                next.push(forward.tangent(before[at], &ty)?);
            }
            next.extend(&before[params.len()..]);
            for &at in &stacked {
                let ty = forward.build.carried_type(before[at]);
                next.push(forward.tangent(before[at], &ty)?);
            }
            Ok(next)
        })?;
        let mut all = results[..params.len()].to_vec();
        all.extend(carries.iter().map(|&at| self.new_tangent(results[at])));
        all.extend(&results[params.len()..]);
        all.extend(stacked.iter().map(|&at| self.new_tangent(results[at])));
        let control = ForLoop { range: op.range, collected: op.collected + stacked.len(), body };
        Ok((Control::For(control), args, all))
    }

    fn while_loop(
        &mut self,
        mut op: WhileLoop,
        mut args: Vec<Value>,
        mut results: Vec<Value>,
    ) -> Result<(Control, Vec<Value>, Vec<Value>), Diagnostic> {
        let params = op.body.params.clone();
        let (carries, first) = self.carries(&params, &results, &args)?;
        args.extend(first);
        for &at in &carries {
            let (ty, origin) = (self.build.carried_type(params[at]), self.build.origin());
            op.cond.params.push(self.build.new_value(ty, origin));
        }
        let varies = self.build.ty(op.cond.results[0]).varying;
        let tangent_params: Vec<Value> = carries.iter().map(|&at| params[at]).collect();
        let results_of = |forward: &mut Self, before: &[Value]| {
            let mut next = before.to_vec();
            for &at in &carries {
                let ty = forward.build.carried_type(params[at]);
                next.push(forward.tangent(before[at], &ty)?);
            }
            Ok(next)
        };
        let condition = self.build.span();
        let body = self.under(varies, condition, |forward| forward.block(op.body, &tangent_params, results_of))?;
        for at in carries {
            let tangent = self.new_tangent(results[at]);
            results.push(tangent);
        }
        Ok((Control::While(WhileLoop { cond: op.cond, body }), args, results))
    }

    fn branch(
        &mut self,
        op: Branch,
        args: Vec<Value>,
        mut results: Vec<Value>,
    ) -> Result<(Control, Vec<Value>, Vec<Value>), Diagnostic> {
        let changing: Vec<usize> = (0..results.len()).filter(|&at| self.has_tangent(results[at])).collect();
        let types: Vec<Type> = changing.iter().map(|&at| self.build.carried_type(results[at])).collect();
        let varies = self.build.ty(args[0]).varying;
        let condition = self.build.span();
        let mut side = |block: Block| {
            let results_of = |forward: &mut Self, before: &[Value]| {
                let mut all = before.to_vec();
                for (&at, ty) in changing.iter().zip(&types) {
                    all.push(forward.tangent(before[at], ty)?);
                }
                Ok(all)
            };
            self.under(varies, condition, |forward| forward.block(block, &[], results_of))
        };
        let (then, otherwise) = (side(op.then)?, side(op.otherwise)?);
        for at in changing {
            let tangent = self.new_tangent(results[at]);
            results.push(tangent);
        }
        Ok((Control::Branch(Branch { then, otherwise }), args, results))
    }

    fn manual(
        &mut self,
        op: ManualRegion,
        mut args: Vec<Value>,
        mut results: Vec<Value>,
    ) -> Result<(Control, Vec<Value>, Vec<Value>), Diagnostic> {
        let params = op.body.params.clone();
        let (mut inputs, mut outputs) = (op.inputs, op.outputs);
        let given: Vec<usize> = (0..params.len()).filter(|&at| self.has_tangent(params[at])).collect();
        for &at in &given {
            let ty = self.build.ty(args[at]).clone();
            let tangent = match self.tangents.get(&self.build.resolved(args[at])) {
                Some(&tangent) => tangent,
                None => zeros_like(self.build, args[at])?,
            };
            let is_laid_out = self.build.ty(tangent).sharding == ty.sharding;
            let tangent =
                if is_laid_out { tangent } else { self.build.emit1(Reshard::request(ty.sharding), &[tangent])? };
            args.push(tangent);
            inputs.push(inputs[at].clone());
        }
        let changing: Vec<usize> = (0..results.len()).filter(|&at| self.has_tangent(results[at])).collect();
        let tangent_params: Vec<Value> = given.iter().map(|&at| params[at]).collect();
        let results_of = |forward: &mut Self, before: &[Value]| {
            let mut all = before.to_vec();
            for &at in &changing {
                let ty = forward.build.ty(before[at]).clone();
                all.push(forward.tangent(before[at], &ty)?);
            }
            Ok(all)
        };
        let body = self.in_region(op.axes, |forward| forward.block(op.body, &tangent_params, results_of))?;
        for at in changing {
            let (ty, origin) = (self.build.ty(results[at]).clone(), self.build.origin());
            let tangent = self.build.new_value(ty, origin);
            self.tangents.insert(results[at], tangent);
            results.push(tangent);
            outputs.push(outputs[at].clone());
        }
        Ok((Control::Manual(ManualRegion { name: op.name, axes: op.axes, inputs, outputs, body }), args, results))
    }

    fn op(&mut self, stmt: &Stmt) -> Result<(), Diagnostic> {
        let Some(op) = stmt.op() else { return Ok(()) };
        let given: Vec<Option<Value>> =
            stmt.args.iter().map(|&arg| self.tangents.get(&self.build.resolved(arg)).copied()).collect();
        if let Derivative::Tangents(rule) = op.rules().derivative() {
            let tangents = rule.tangents(self.build, stmt, &given)?;
            for (&result, tangent) in stmt.results.iter().zip(tangents) {
                if let Some(tangent) = tangent {
                    self.set(result, tangent)?;
                }
            }
            return Ok(());
        }
        if let Derivative::Joint(_) = op.rules().derivative() {
            let mut args = Vec::new();
            for (&arg, tangent) in stmt.args.iter().zip(&given) {
                args.push(match tangent {
                    Some(tangent) => *tangent,
                    None => zeros_like(self.build, arg)?,
                });
            }
            let tangents = self.build.emit(op.clone(), &args)?;
            for (&result, tangent) in stmt.results.iter().zip(tangents) {
                self.set(result, tangent)?;
            }
            return Ok(());
        }
        let [result] = stmt.results[..] else { return Err(missing(stmt)) };
        self.build.set_lineage(Lineage { of: Some(result), ..self.build.lineage() });
        let mut terms = Vec::new();
        match op.rules().derivative() {
            Derivative::Zero => {}
            Derivative::Missing | Derivative::Tangents(_) | Derivative::Joint(_) => return Err(missing(stmt)),
            Derivative::Pointwise(rule) => {
                for (at, tangent) in given.iter().enumerate() {
                    let Some(tangent) = *tangent else { continue };
                    let partial = rule.partial(self.build, stmt, at)?;
                    terms.extend(product(self.build, partial, tangent)?);
                }
            }
            Derivative::Linear(rule) => terms = mapped(self.build, op, rule, stmt, &given)?,
            Derivative::Weighted(rule) => {
                if let Some(tangent) = given[0] {
                    let weights = rule.weights(self.build, stmt)?;
                    let weighted = Arithmetic(self.build).mul(weights, tangent)?;
                    let (axes, keeps) = rule.reduced();
                    terms.push(reduce(self.build, ReduceOp::Sum, weighted, axes, keeps)?);
                }
            }
        }
        let mut sum: Option<Value> = None;
        for term in terms {
            sum = Some(match sum {
                Some(sum) => Arithmetic(self.build).add(sum, term)?,
                None => term,
            });
        }
        match sum {
            Some(sum) => self.set(result, sum),
            None => Ok(()),
        }
    }

    /// Sets the tangent of a result.
    fn set(&mut self, result: Value, tangent: Value) -> Result<(), Diagnostic> {
        let ty = self.build.ty(result).clone();
        let tangent = broadcast(self.build, tangent, ty.shape())?;
        let tangent = conformed(self.build, tangent, &ty)?;
        self.build.info_mut(tangent).derived_from.get_or_insert(DerivedFrom::DerivativeOf(result));
        self.tangents.insert(result, tangent);
        Ok(())
    }
}

/// The terms of the tangent of a linear op's result.
fn mapped(
    build: &mut CallBuilder,
    op: &Op,
    rule: &dyn LinearMap,
    stmt: &Stmt,
    given: &[Option<Value>],
) -> Result<Vec<Value>, Diagnostic> {
    let linearity = rule.linearity(stmt);
    let (Linearity::Together(operands) | Linearity::Apart(operands)) = &linearity;
    if given.iter().enumerate().any(|(at, tangent)| tangent.is_some() && !operands.contains(&at)) {
        return Err(missing(stmt));
    }
    let op = rule.linear_part().unwrap_or_else(|| op.clone());
    match &linearity {
        Linearity::Together(operands) => {
            let mut args = stmt.args.clone();
            for &at in operands {
                args[at] = match given[at] {
                    Some(tangent) => tangent,
                    None => {
                        let ty = build.carried_type(args[at]);
                        zeros(build, args[at], &ty)?
                    }
                };
            }
            Ok(vec![build.emit1(op, &args)?])
        }
        Linearity::Apart(operands) => {
            let with = |&at: &usize| {
                let mut args = stmt.args.clone();
                args[at] = given[at]?;
                Some(args)
            };
            let args: Vec<Vec<Value>> = operands.iter().filter_map(with).collect();
            args.iter().map(|args| build.emit1(op.clone(), args)).collect()
        }
    }
}
