//! Reverse mode: from the cotangents of results to the cotangents of operands, from the last statement to the first.
//!
//! In `manual` code a cotangent may vary along axes along which its value does not. Then each device has a part of it. The sum over the
//! devices is taken as late as possible: where a collective, a carried value of a loop or the end of the function needs it.

use super::cotangents::{Reverse, passed};
use super::{dependent, missing, product, total, units};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::origin::{DerivativePart, DerivedFrom, Lineage};
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use spmdc_ir::rules::derivative::{Derivative, Linearity, Tangents, Weights};
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::derivative::summed_to;
use spmdc_ops::reduce::reduced_shape;
use spmdc_ops::reshape::reshape;
use std::collections::{BTreeMap, BTreeSet};

/// The cotangents of `inputs` for the cotangents of some values (`seeds`), which the statements of the innermost block from `start` on
/// compute from the inputs: reverse mode. Control flow among these statements also returns the residuals from then on.
///
/// Each has the layout of its value on explicit axes. E0220 for a statement without a derivative.
pub fn pull_back(
    build: &mut CallBuilder,
    start: usize,
    inputs: &[Value],
    seeds: &[(Value, Value)],
) -> Result<Vec<Value>, Diagnostic> {
    let (stmts, cotangents) = reversed(build, start, inputs, seeds)?;
    build.innermost().stmts.extend(stmts);
    Ok(cotangents)
}

/// The function from cotangents of `outputs` to cotangents of `inputs`, as a block; otherwise as [`pull_back`].
pub fn pullback(
    build: &mut CallBuilder,
    start: usize,
    inputs: &[Value],
    outputs: &[Value],
) -> Result<Block, Diagnostic> {
    let mut seeds = Vec::new();
    for &output in outputs {
        let (ty, origin) = (build.gradient_type(output), build.origin());
        let seed = build.new_value(ty, origin);
        build.info_mut(seed).derived_from = Some(DerivedFrom::DerivativeOf(output));
        seeds.push((output, seed));
    }
    let (stmts, results) = reversed(build, start, inputs, &seeds)?;
    Ok(Block { params: seeds.iter().map(|&(_, seed)| seed).collect(), stmts, results })
}

/// The statements of the reverse, and the cotangents of the inputs.
fn reversed(
    build: &mut CallBuilder,
    start: usize,
    inputs: &[Value],
    seeds: &[(Value, Value)],
) -> Result<(Vec<Stmt>, Vec<Value>), Diagnostic> {
    let mut forward = build.innermost().stmts.split_off(start);
    let order = passed(&mut forward).max(build.lineage().order).saturating_add(1);
    let lineage = Lineage { part: DerivativePart::Gradient, of: None, order, ..Lineage::default() };
    let mut depends: BTreeSet<Value> = inputs.iter().copied().collect();
    dependent(build, &forward, &mut depends);
    let (Block { stmts, .. }, found) = build.at(build.span(), lineage, |build| {
        let mut reverse = Reverse { build, depends, cotangents: BTreeMap::new(), changing: BTreeSet::new() };
        reverse.in_block(Block::default(), |reverse| reverse.cotangents_of(&mut forward, inputs, seeds))
    });
    build.innermost().stmts.extend(forward);
    Ok((stmts, found?))
}

impl Scoped for Reverse<'_> {
    fn builder(&mut self) -> &mut CallBuilder {
        self.build
    }
}

impl Reverse<'_> {
    fn cotangents_of(
        &mut self,
        forward: &mut Vec<Stmt>,
        inputs: &[Value],
        seeds: &[(Value, Value)],
    ) -> Result<Vec<Value>, Diagnostic> {
        let around = self.build.origin();
        for &(value, seed) in seeds {
            self.add(value, seed)?;
        }
        self.run(forward)?;
        self.build.set_span(around.span);
        let mut found = Vec::new();
        for &input in inputs {
            found.push(match self.cotangents.get(&input) {
                Some(&cotangent) => self.gradient(cotangent, input, seeds)?,
                None => {
                    let ty = self.build.gradient_type(input);
                    super::zeros(self.build, input, &ty)?
                }
            });
        }
        Ok(found)
    }

    /// The whole gradient by an input.
    fn gradient(&mut self, cotangent: Value, input: Value, seeds: &[(Value, Value)]) -> Result<Value, Diagnostic> {
        let found = total(self.build, cotangent, input)?;
        let parts = self.build.ty(cotangent).varying.minus(self.build.ty(found).varying);
        let differs = |&(output, _): &(Value, Value)| !self.build.ty(output).varying.intersect(parts).is_empty();
        if seeds.iter().any(differs)
            && let Some(sum) = self.build.innermost().stmts.last_mut()
        {
            sum.origin.lineage.is_summed = true;
        }
        Ok(found)
    }

    /// The reverse of statements. It may replace control flow by such that gives more values.
    pub fn run(&mut self, forward: &mut Vec<Stmt>) -> Result<(), Diagnostic> {
        self.in_context(|reverse| reverse.stmts(forward))
    }

    fn stmts(&mut self, forward: &mut Vec<Stmt>) -> Result<(), Diagnostic> {
        let mut end = forward.len();
        while end > 0 {
            let at = end - 1;
            self.build.turn(forward[at].origin.turned);
            if let Some(unit) = units::of(self.build, &forward[at]) {
                end = units::start(self.build, &forward[..end], unit);
                units::reverse(self, forward, end..at + 1, unit)?;
                continue;
            }
            end = at;
            let stmt = &mut forward[at];
            if !stmt.results.iter().any(|result| self.cotangents.contains_key(result)) {
                continue;
            }
            self.build.set_span(stmt.origin.span);
            self.computes(DerivativePart::Gradient, None);
            match &stmt.kind {
                StmtKind::Op(_) => self.op(stmt)?,
                StmtKind::Control(Control::For(_)) => super::loops::reverse(self, stmt)?,
                StmtKind::Control(Control::While(_)) => {
                    if stmt.results.iter().any(|result| self.depends.contains(result)) {
                        return Err(super::loops::of_while(stmt));
                    }
                }
                StmtKind::Control(Control::Branch(_)) => super::branches::reverse(self, stmt)?,
                StmtKind::Control(Control::Manual(_)) => super::regions::reverse(self, stmt)?,
            }
        }
        Ok(())
    }

    fn op(&mut self, stmt: &Stmt) -> Result<(), Diagnostic> {
        let Some(op) = stmt.op() else { return Ok(()) };
        let takes_sum = op.rules().properties().group().is_some_and(|group| !group.transposes_to_sum());
        let mut found: Vec<Option<Value>> = Vec::new();
        for &result in &stmt.results {
            found.push(match takes_sum {
                true => self.take(result)?,
                false => self.cotangents.remove(&result),
            });
        }
        let args: Vec<Value> = stmt.args.iter().map(|&arg| self.build.resolved(arg)).collect();
        let mut operands: Vec<usize> = (0..args.len()).filter(|&at| self.depends.contains(&args[at])).collect();
        if operands.is_empty() {
            return Ok(());
        }
        match op.rules().derivative() {
            Derivative::Tangents(rule) => {
                if let (Some(linear), &[Some(cotangent)]) = (rule.linear(&operands), found.as_slice()) {
                    for at in operands {
                        self.computes(DerivativePart::Gradient, Some(args[at]));
                        let cotangent = linear.transposed(self.build, stmt, at, cotangent)?;
                        self.add(args[at], cotangent)?;
                    }
                    return Ok(());
                }
                return self.transposed(stmt, rule, &found, &operands);
            }
            Derivative::Joint(rule) => {
                let mut all = Vec::new();
                for (&found, &result) in found.iter().zip(&stmt.results) {
                    let ty = self.build.gradient_type(result);
                    all.push(match found {
                        Some(found) => found,
                        None => super::zeros(self.build, result, &ty)?,
                    });
                }
                let cotangents = rule.transposed(self.build, stmt, &all)?;
                for at in operands {
                    self.add(args[at], cotangents[at])?;
                }
                return Ok(());
            }
            Derivative::Zero | Derivative::Missing | Derivative::Pointwise(_) | Derivative::Weighted(_) => {}
            // The cotangent of an updated array is that of the result, changed in place when the new values have got theirs.
            Derivative::Linear(_) => operands.reverse(),
        }
        for at in operands {
            let &[Some(cotangent)] = found.as_slice() else { return Err(missing(stmt)) };
            self.computes(DerivativePart::Gradient, Some(args[at]));
            let cotangent = match op.rules().derivative() {
                Derivative::Zero => None,
                Derivative::Missing | Derivative::Tangents(_) | Derivative::Joint(_) => return Err(missing(stmt)),
                Derivative::Pointwise(rule) => {
                    let partial = rule.partial(self.build, stmt, at)?;
                    product(self.build, partial, cotangent)?
                }
                Derivative::Linear(rule) => {
                    let (Linearity::Together(linear) | Linearity::Apart(linear)) = rule.linearity(stmt);
                    if !linear.contains(&at) {
                        return Err(missing(stmt));
                    }
                    Some(rule.transposed(self.build, stmt, at, cotangent)?)
                }
                Derivative::Weighted(rule) => Some(spread(self.build, rule, stmt, cotangent)?),
            };
            if let Some(cotangent) = cotangent {
                let cotangent = summed_to(self.build, cotangent, args[at])?;
                self.add(args[at], cotangent)?;
            }
        }
        Ok(())
    }

    /// The cotangents of the operands of an op whose rule gives tangents: the statements of the rule are linear in the tangents of the
    /// operands, so they are transposed.
    fn transposed(
        &mut self,
        stmt: &Stmt,
        rule: &dyn Tangents,
        found: &[Option<Value>],
        operands: &[usize],
    ) -> Result<(), Diagnostic> {
        let mut given = vec![None; stmt.args.len()];
        for &at in operands {
            let (ty, origin) = (self.build.carried_type(stmt.args[at]), self.build.origin());
            given[at] = Some(self.build.new_value(ty, origin));
        }
        let (Block { stmts: mut linear, .. }, tangents) =
            self.in_block(Block::default(), |reverse| rule.tangents(reverse.build, stmt, &given));
        let tangents = tangents?;
        let mut depends: BTreeSet<Value> = given.iter().flatten().copied().collect();
        dependent(self.build, &linear, &mut depends);
        let mut inner = Reverse { build: self.build, depends, cotangents: BTreeMap::new(), changing: BTreeSet::new() };
        let (Block { stmts: reverse, .. }, result) = inner.in_block(Block::default(), |inner| {
            for (tangent, cotangent) in tangents.iter().zip(found) {
                if let (Some(tangent), Some(cotangent)) = (tangent, cotangent) {
                    inner.add(*tangent, *cotangent)?;
                }
            }
            inner.run(&mut linear)
        });
        let (depends, cotangents) = (inner.depends, inner.cotangents);
        result?;
        // What depends on the tangents is no part of the program.
        linear.retain(|stmt| !stmt.results.iter().any(|result| depends.contains(result)));
        self.build.innermost().stmts.extend(linear);
        self.build.innermost().stmts.extend(reverse);
        for &at in operands {
            let tangent = given[at].expect("each of these operands has a tangent");
            if let Some(&cotangent) = cotangents.get(&tangent) {
                self.add(stmt.args[at], cotangent)?;
            }
        }
        Ok(())
    }
}

/// The cotangent of the operand of a reduction.
fn spread(build: &mut CallBuilder, rule: &dyn Weights, stmt: &Stmt, cotangent: Value) -> Result<Value, Diagnostic> {
    let weights = rule.weights(build, stmt)?;
    let shape = build.ty(stmt.args[0]).shape().to_vec();
    let (axes, _) = rule.reduced();
    let cotangent = reshape(build, cotangent, &reduced_shape(&shape, axes, true))?;
    Arithmetic(build).mul(weights, cotangent)
}
