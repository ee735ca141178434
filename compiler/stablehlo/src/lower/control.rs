//! Loops and branches.

use super::{FunctionReader, MlirValue, ValueForm, at, malformed};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, DenseNumber, MlirBlock, MlirElement, MlirOp, ValueName};
use crate::visit::names as names_of;
use spmdc_grammar::ast::{BlockNode, Expr, ExprKind, PatternKind, StmtNode, StmtNodeKind};
use std::collections::BTreeSet;

/// A loop with a counter that no trip changes otherwise.
struct CountedLoop {
    /// The position of the counter among the carried values.
    counter: usize,
    start: i128,
    end: i128,
}

impl FunctionReader<'_> {
    pub(super) fn while_loop(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [cond, body] = operation.regions.as_slice() else {
            return Err(malformed(operation, "a loop has a condition and a body"));
        };
        let inits = self.all_operands(operation)?;
        if inits.len() != cond.params.len() || inits.len() != body.params.len() {
            return Err(malformed(operation, "a loop carries as many values as it is given"));
        }
        let counted = self.counted(cond, body, &inits);
        let names: Vec<String> = body.params.iter().map(|(name, _)| self.fresh(name)).collect();
        // A value that every trip passes on as it is has the same elements in all of them.
        let is_constant = |at: usize| {
            let next = body.body.last().and_then(|last| last.operands.get(at));
            next.is_some_and(|next| next.base == body.params[at].0)
        };
        let is_counter = |at: usize| counted.as_ref().is_some_and(|counted| counted.counter == at);
        let carried: Vec<usize> = (0..inits.len()).filter(|&at| !is_counter(at) && !is_constant(at)).collect();
        let mutable = |at: usize| build.bind_mutable(&names[at], inits[at].expr.clone());
        let statement = match &counted {
            Some(CountedLoop { counter, start, end }) => {
                let trip = self.fresh("i");
                self.enter(build, body, &names);
                self.keep(body, &inits, &is_constant);
                let element = body.params[*counter].1.element;
                let counter_value = MlirValue {
                    range: Some((*start, (*end - 1).max(*start))),
                    trip: Some(trip.clone()),
                    ..MlirValue::new(build.cast(element, build.name(&trip)), body.params[*counter].1.clone())
                };
                self.values.insert(ValueName { base: body.params[*counter].0.clone(), index: 0 }, counter_value);
                let (mut stmts, values) = self.body(&body.body)?;
                let trips = if *start == 0 { *end } else { -1 };
                let mut rows = Vec::new();
                let mut stacked = Vec::new();
                for &at in &carried {
                    let own = (at, names[at].as_str());
                    if let Some(row) = self.take_stacked(body, own, (&trip, trips), (&mut stmts, &values)) {
                        stacked.push(at);
                        rows.push(row);
                    }
                }
                let carried: Vec<usize> = carried.into_iter().filter(|at| !stacked.contains(at)).collect();
                self.stmts.extend(carried.iter().map(|&at| mutable(at)));
                let body = self.trip(build, (stmts, values), &names, (&carried, rows));
                let trips = build.expr(ExprKind::For {
                    pattern: build.pattern(&trip),
                    start: Box::new(build.int(*start)),
                    end: Box::new(build.int((*end).max(*start))),
                    step: None,
                    collect: !stacked.is_empty(),
                    body,
                });
                let names: Vec<String> = stacked.iter().map(|&at| names[at].clone()).collect();
                match names.is_empty() {
                    true => StmtNode { kind: StmtNodeKind::Expr(trips), span: build.0 },
                    false => build.bind(build.patterns(&names), trips),
                }
            }
            None => {
                self.enter(build, cond, &names);
                self.keep(cond, &inits, &is_constant);
                let condition = self.block(build, cond)?;
                let condition = match condition.stmts.is_empty() {
                    true => *condition.value.expect("a condition has a value"),
                    false => build.expr(ExprKind::Block(condition)),
                };
                self.enter(build, body, &names);
                self.keep(body, &inits, &is_constant);
                let lowered = self.body(&body.body)?;
                self.stmts.extend(carried.iter().map(|&at| mutable(at)));
                let body = self.trip(build, lowered, &names, (&carried, Vec::new()));
                let kind = StmtNodeKind::Expr(build.expr(ExprKind::While { cond: Box::new(condition), body }));
                StmtNode { kind, span: build.0 }
            }
        };
        self.stmts.push(statement);
        for (at, (name, ty)) in Self::result_names(operation).into_iter().zip(&operation.types).enumerate() {
            let value = match &counted {
                Some(counted) if counted.counter == at => {
                    MlirValue::new(build.cast(ty.element, build.int(counted.end.max(counted.start))), ty.clone())
                }
                Some(_) | None if is_constant(at) => inits[at].clone(),
                Some(_) | None => MlirValue::new(build.name(&names[at]), ty.clone()),
            };
            self.values.insert(name, value);
        }
        Ok(())
    }

    /// The counter of a loop whose condition is `counter < end`, with a constant first value, and a step of 1.
    fn counted(&self, cond: &MlirBlock, body: &MlirBlock, inits: &[MlirValue]) -> Option<CountedLoop> {
        let constant_in = |block: &MlirBlock, name: &ValueName| {
            let Some(found) =
                block.body.iter().find(|operation| operation.results.iter().any(|(base, _)| *base == name.base))
            else {
                // A constant may be defined before the loop. Other loops may have parameters of the same name.
                if block.params.iter().any(|(param, _)| *param == name.base) {
                    return None;
                }
                return match self.values.get(name)?.splat() {
                    Some(DenseNumber::Int(value)) => Some(*value),
                    Some(DenseNumber::Decimal(_) | DenseNumber::Bits(_)) | None => None,
                };
            };
            match found.attributes.get("value") {
                Some(Attribute::Dense(dense)) if found.name == "stablehlo.constant" => {
                    match dense.elements.as_slice() {
                        [DenseNumber::Int(value)] => Some(*value),
                        _ => None,
                    }
                }
                _ => None,
            }
        };
        let last = cond.body.last()?;
        let test = cond.body.iter().find(|operation| {
            operation
                .results
                .first()
                .is_some_and(|(name, _)| last.operands.first().is_some_and(|used| used.base == *name))
        })?;
        let is_less =
            matches!(test.attributes.get("comparison_direction"), Some(Attribute::Word(word)) if word == "LT");
        if test.name != "stablehlo.compare" || !is_less {
            return None;
        }
        let [left, right] = test.operands.as_slice() else { return None };
        let counter = cond.params.iter().position(|(name, _)| *name == left.base)?;
        let end = constant_in(cond, right)?;
        let Some(DenseNumber::Int(start)) = inits[counter].splat() else { return None };
        if !matches!(body.params[counter].1.element, MlirElement::Signed(_)) || body.params[counter].1.rank() > 0 {
            return None;
        }
        let next = body.body.last()?.operands.get(counter)?;
        let step = body.body.iter().find(|operation| operation.results.iter().any(|(name, _)| *name == next.base))?;
        let own = &body.params[counter].0;
        let is_step = step.name == "stablehlo.add"
            && step.operands.first().is_some_and(|left| left.base == *own)
            && step.operands.get(1).is_some_and(|right| constant_in(body, right) == Some(1));
        let fits = |value: i128| i32::try_from(value).is_ok();
        (is_step && fits(*start) && fits(end)).then_some(CountedLoop { counter, start: *start, end })
    }

    /// Gives the parameters of a block these variables.
    fn enter(&mut self, build: Build, block: &MlirBlock, names: &[String]) {
        for ((param, ty), name) in block.params.iter().zip(names) {
            let value = MlirValue::new(build.name(name), ty.clone());
            self.values.insert(ValueName { base: param.clone(), index: 0 }, value);
        }
    }

    /// Gives the parameters that are the same in all trips their first values.
    fn keep(&mut self, block: &MlirBlock, inits: &[MlirValue], is_constant: &dyn Fn(usize) -> bool) {
        for (at, ((param, _), init)) in block.params.iter().zip(inits).enumerate() {
            if is_constant(at) {
                self.values.insert(ValueName { base: param.clone(), index: 0 }, init.clone());
            }
        }
    }

    /// A trip: the statements of the body, the assignments of the values that it carries on, and the rows that it adds to arrays.
    fn trip(
        &mut self,
        build: Build,
        (mut stmts, values): (Vec<StmtNode>, Vec<Expr>),
        names: &[String],
        (carried, mut rows): (&[usize], Vec<Expr>),
    ) -> BlockNode {
        if rows.is_empty()
            && let Some(assigned) = assigned_together(&mut stmts, &values, names, carried)
        {
            stmts.push(assigned);
            return build.block(stmts, None);
        }
        let is_carried = |expr: &Expr| matches!(&expr.kind, ExprKind::Name(name) if names.contains(name));
        // A carried value that another one takes, or that is a row, is read before it is assigned.
        let mut before = |value: &Expr| {
            if !is_carried(value) {
                return value.clone();
            }
            let name = self.fresh("next");
            stmts.push(build.bind(build.pattern(&name), value.clone()));
            build.name(name)
        };
        rows.iter_mut().for_each(|row| *row = before(row));
        let mut assignments = Vec::new();
        for &at in carried {
            let Some(value) = values.get(at) else { continue };
            if !matches!(&value.kind, ExprKind::Name(name) if *name == names[at]) {
                assignments.push(build.assign(&names[at], before(value)));
            }
        }
        stmts.extend(assignments);
        let value = (!rows.is_empty()).then(|| build.together(rows));
        build.block(stmts, value)
    }

    /// One of several branches, by a number; the last one for numbers without a branch.
    pub(super) fn case(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [index] = self.some_operands(operation)?;
        let Some((last, first)) = operation.regions.split_last() else {
            return Err(malformed(operation, "a case has branches"));
        };
        if let (ValueForm::Truth(condition), [otherwise, then]) = (&index.form, operation.regions.as_slice()) {
            let (condition, then) = (condition.clone(), self.branch(build, then)?);
            let otherwise = build.expr(ExprKind::Block(self.branch(build, otherwise)?));
            self.emit_all(operation, either(build, condition, then, otherwise));
            return Ok(());
        }
        let index = self.variable(build, "branch", index.expr);
        let mut chosen = build.expr(ExprKind::Block(self.branch(build, last)?));
        for (number, region) in first.iter().enumerate().rev() {
            let is_chosen = build.binary(spmdc_grammar::ast::InfixOp::Eq, index.clone(), build.int(number as i128));
            let then = self.branch(build, region)?;
            chosen = either(build, is_chosen, then, chosen);
        }
        self.emit_all(operation, chosen);
        Ok(())
    }

    pub(super) fn if_else(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [condition] = self.some_operands(operation)?;
        let [then, otherwise] = operation.regions.as_slice() else {
            return Err(malformed(operation, "an if has two branches"));
        };
        let then = self.branch(build, then)?;
        let otherwise = build.expr(ExprKind::Block(self.branch(build, otherwise)?));
        self.emit_all(operation, either(build, condition.expr, then, otherwise));
        Ok(())
    }

    fn branch(&mut self, build: Build, region: &MlirBlock) -> Read<BlockNode> {
        self.block(build, region)
    }

    /// As [`FunctionReader::block`], of a function of numbers that is applied to arrays.
    pub(super) fn lifted_block(&mut self, build: Build, region: &MlirBlock) -> Read<BlockNode> {
        let outer = std::mem::replace(&mut self.is_lifted, true);
        let block = self.block(build, region);
        self.is_lifted = outer;
        block
    }

    /// A region as a function of its parameters: `|a, b| ..`.
    pub(super) fn lambda(&mut self, operation: &MlirOp, region: &MlirBlock) -> Read<Expr> {
        let build = at(operation);
        let names: Vec<String> = region.params.iter().map(|(name, _)| self.fresh(name)).collect();
        self.enter(build, region, &names);
        let block = self.lifted_block(build, region)?;
        let body = match block.stmts.is_empty() {
            true => *block.value.expect("a region has a value"),
            false => build.expr(ExprKind::Block(block)),
        };
        Ok(build.lambda(&names, body))
    }
}

/// A statement of a trip as `(a, b) = f(..);` at its end, if it makes exactly the values that are carried on.
fn assigned_together(
    stmts: &mut Vec<StmtNode>,
    values: &[Expr],
    names: &[String],
    carried: &[usize],
) -> Option<StmtNode> {
    let is_tuple = |stmt: &StmtNode| matches!(&stmt.kind, StmtNodeKind::Let { mutable: false, pattern, .. } if matches!(pattern.kind, PatternKind::Tuple(_)));
    let at = stmts.iter().rposition(is_tuple)?;
    let last = &stmts[at];
    let StmtNodeKind::Let { mutable: false, pattern, value, .. } = &last.kind else { return None };
    let PatternKind::Tuple(parts) = &pattern.kind else { return None };
    let made: BTreeSet<String> = names_of(pattern).into_iter().map(str::to_string).collect();
    // Statements after it do not use what it makes, so it may run after them.
    if stmts[at + 1..].iter().any(|stmt| crate::tidy::uses(stmt, &made)) {
        return None;
    }
    let mut targets = Vec::new();
    for part in parts {
        let PatternKind::Name(made) = &part.kind else { return None };
        let own =
            |&at: &usize| matches!(values.get(at).map(|value| &value.kind), Some(ExprKind::Name(name)) if name == made);
        let mut places = carried.iter().filter(|at| own(at));
        let (Some(&at), None) = (places.next(), places.next()) else { return None };
        targets.push(Build(last.span).name(&names[at]));
    }
    if targets.len() != carried.len() {
        return None;
    }
    let target = Build(last.span).tuple(targets);
    let kind = StmtNodeKind::Assign { target, op: None, value: value.clone() };
    let span = last.span;
    stmts.remove(at);
    Some(StmtNode { kind, span })
}

fn either(build: Build, cond: Expr, then: BlockNode, otherwise: Expr) -> Expr {
    build.expr(ExprKind::If { cond: Box::new(cond), then, otherwise: Some(Box::new(otherwise)) })
}
