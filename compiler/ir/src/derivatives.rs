//! Derivatives of straight-line programs, statement by statement, by the rules of the ops.
//!
//! They are taken while a program is checked: the statements of a function have been emitted, and those of its derivative follow. So a
//! derivative can be differentiated again, and all passes see an ordinary program. Each statement has the source position of the one that
//! it was derived from.

use crate::layout::types::Type;
use crate::ops::Op;
use crate::ops::broadcast::broadcast;
use crate::ops::call::build::CallBuilder;
use crate::ops::derivative::{
    Derivative, LinearMap, Linearity, PartialDerivative, Terms, Weights, is_differentiable, summed_to, zeros_like,
};
use crate::ops::reduce::{reduce, reduced_shape};
use crate::ops::reshape::reshape;
use crate::program::walk::free_values;
use crate::program::{Stmt, StmtKind, Value};
use crate::reshard::step::Reshard;
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};
use std::collections::{BTreeMap, BTreeSet};

/// The statements with the values instead of their other names, up to the inputs.
fn resolved(build: &CallBuilder, stmts: &[Stmt], inputs: &[Value]) -> Vec<Stmt> {
    let mut stmts = stmts.to_vec();
    for stmt in &mut stmts {
        let visit = &mut |value: &mut Value| *value = build.resolved(*value, inputs);
        stmt.args.iter_mut().for_each(&mut *visit);
        stmt.blocks_mut().for_each(|block| block.each_use_mut(visit));
    }
    stmts
}

/// The values that depend on some others by statements that change them.
fn dependent(build: &CallBuilder, stmts: &[Stmt], on: &[Value]) -> BTreeSet<Value> {
    let mut found: BTreeSet<Value> = on.iter().copied().collect();
    for stmt in stmts {
        let is_zero = stmt.op().is_some_and(|op| matches!(op.rules().derivative(), Derivative::Zero));
        let depends = stmt.args.iter().any(|arg| found.contains(arg))
            || stmt.blocks().flat_map(free_values).any(|value| found.contains(&value));
        if is_zero || !depends {
            continue;
        }
        let changes = |value: &&Value| is_differentiable(build.ty(**value).dtype());
        found.extend(stmt.results.iter().filter(changes));
    }
    found
}

/// The values from which some others are computed, these included.
fn needed_for(stmts: &[Stmt], outputs: &[Value]) -> BTreeSet<Value> {
    let mut needed: BTreeSet<Value> = outputs.iter().copied().collect();
    for stmt in stmts.iter().rev() {
        if stmt.results.iter().any(|result| needed.contains(result)) {
            needed.extend(&stmt.args);
            needed.extend(stmt.blocks().flat_map(free_values));
        }
    }
    needed
}

/// The op of a statement that changes with its operands; an error for control flow.
fn op_of(stmt: &Stmt) -> Result<&Op, Diagnostic> {
    match &stmt.kind {
        StmtKind::Op(op) => Ok(op),
        StmtKind::Control(control) => {
            let message = format!("derivatives of `{}` are not supported yet", control.name());
            Err(Diagnostic::error(Code::E0901, stmt.origin.span, message))
        }
    }
}

fn missing(stmt: &Stmt) -> Diagnostic {
    let message = format!("`{}` has no derivative", stmt.name());
    Diagnostic::error(Code::E0220, stmt.origin.span, message)
        .help("where it does not matter, `stop_gradient(x)` leaves the dependence out")
}

/// The cotangents of `inputs` for those of some values (`seeds`), which `stmts` compute from the inputs: reverse mode.
///
/// Each has the layout of its value on explicit axes. E0220 for a statement without a derivative.
pub fn pull_back(
    build: &mut CallBuilder,
    stmts: &[Stmt],
    inputs: &[Value],
    seeds: &[(Value, Value)],
) -> Result<Vec<Value>, Diagnostic> {
    let stmts = resolved(build, stmts, inputs);
    let depends = dependent(build, &stmts, inputs);
    let mut cotangents: BTreeMap<Value, Value> = BTreeMap::new();
    let place = build.span;
    for &(value, seed) in seeds {
        let value = build.resolved(value, inputs);
        add(build, &mut cotangents, value, seed)?;
    }
    for stmt in stmts.iter().rev() {
        let is_needed = stmt.results.iter().any(|result| cotangents.contains_key(result) && depends.contains(result));
        if !is_needed {
            continue;
        }
        build.span = stmt.origin.span;
        let op = op_of(stmt)?;
        let result = stmt.results[0];
        let cotangent = cotangents.get(&result).copied();
        for at in (0..stmt.args.len()).filter(|&at| depends.contains(&stmt.args[at])) {
            let cotangent = cotangent.filter(|_| stmt.results.len() == 1).ok_or_else(|| missing(stmt))?;
            let found = match op.rules().derivative() {
                Derivative::Zero => None,
                Derivative::Missing => return Err(missing(stmt)),
                Derivative::Pointwise(rule) => {
                    let partial = rule.partial(build, stmt, at)?;
                    product(build, partial, cotangent)?
                }
                Derivative::Linear(rule) => {
                    let (Linearity::Together(operands) | Linearity::Apart(operands)) = rule.linearity(stmt);
                    if !operands.contains(&at) {
                        return Err(missing(stmt));
                    }
                    Some(rule.transposed(build, stmt, at, cotangent)?)
                }
                Derivative::Weighted(rule) => Some(spread(build, rule, stmt, cotangent)?),
            };
            if let Some(found) = found {
                let shape = build.ty(stmt.args[at]).shape().to_vec();
                let found = summed_to(build, found, &shape)?;
                add(build, &mut cotangents, stmt.args[at], found)?;
            }
        }
    }
    build.span = place;
    let mut of_input = |&input: &Value| match cotangents.get(&input) {
        Some(&found) => Ok(found),
        None => zeros_like(build, input),
    };
    inputs.iter().map(&mut of_input).collect()
}

/// Adds a cotangent to that of a value, in the value's layout on explicit axes.
fn add(
    build: &mut CallBuilder,
    cotangents: &mut BTreeMap<Value, Value>,
    value: Value,
    found: Value,
) -> Result<(), Diagnostic> {
    let found = laid_out_as(build, found, value)?;
    let sum = match cotangents.get(&value) {
        Some(&before) => Terms(build).add(before, found)?,
        None => found,
    };
    cotangents.insert(value, sum);
    Ok(())
}

/// A value in the layout that the type of another decides.
fn laid_out_as(build: &mut CallBuilder, value: Value, like: Value) -> Result<Value, Diagnostic> {
    let own = |build: &CallBuilder, ty: &Type| build.explicit_part(ty);
    let (from, to) = (own(build, build.ty(value)), own(build, build.ty(like)));
    if from == to { Ok(value) } else { build.emit1(Reshard::request(to), &[value]) }
}

/// A partial derivative times a tangent or cotangent; None if it is zero.
fn product(build: &mut CallBuilder, partial: PartialDerivative, of: Value) -> Result<Option<Value>, Diagnostic> {
    Ok(match partial {
        PartialDerivative::Zero => None,
        PartialDerivative::One => Some(of),
        PartialDerivative::MinusOne => Some(Terms(build).unary(UnaryOp::Neg, of)?),
        PartialDerivative::Array(partial) => Some(Terms(build).mul(of, partial)?),
    })
}

/// The cotangent of the operand of a reduction.
fn spread(build: &mut CallBuilder, rule: &dyn Weights, stmt: &Stmt, cotangent: Value) -> Result<Value, Diagnostic> {
    let weights = rule.weights(build, stmt)?;
    let shape = build.ty(stmt.args[0]).shape().to_vec();
    let (axes, _) = rule.reduced();
    let cotangent = reshape(build, cotangent, &reduced_shape(&shape, axes, true))?;
    Terms(build).mul(weights, cotangent)
}

/// The tangents of `outputs` for those of some values (`tangents`), on which `stmts` let them depend: forward mode. None for an output that
/// does not depend on them.
pub fn push_forward(
    build: &mut CallBuilder,
    stmts: &[Stmt],
    tangents: &[(Value, Value)],
    outputs: &[Value],
) -> Result<Vec<Option<Value>>, Diagnostic> {
    let inputs: Vec<Value> = tangents.iter().map(|&(value, _)| value).collect();
    let stmts = resolved(build, stmts, &inputs);
    let outputs: Vec<Value> = outputs.iter().map(|&output| build.resolved(output, &inputs)).collect();
    let depends = dependent(build, &stmts, &inputs);
    let needed = needed_for(&stmts, &outputs);
    let mut tangents: BTreeMap<Value, Value> = tangents.iter().copied().collect();
    let place = build.span;
    for stmt in &stmts {
        if !stmt.results.iter().any(|result| depends.contains(result) && needed.contains(result)) {
            continue;
        }
        build.span = stmt.origin.span;
        let op = op_of(stmt)?;
        let [result] = stmt.results[..] else { return Err(missing(stmt)) };
        let shape = build.ty(result).shape().to_vec();
        let given: Vec<Option<Value>> = stmt.args.iter().map(|arg| tangents.get(arg).copied()).collect();
        let mut terms = Vec::new();
        match op.rules().derivative() {
            Derivative::Zero => {}
            Derivative::Missing => return Err(missing(stmt)),
            Derivative::Pointwise(rule) => {
                for (at, tangent) in given.iter().enumerate() {
                    let Some(tangent) = *tangent else { continue };
                    let partial = rule.partial(build, stmt, at)?;
                    terms.extend(product(build, partial, tangent)?);
                }
            }
            Derivative::Linear(rule) => terms = mapped(build, op, rule, stmt, &given)?,
            Derivative::Weighted(rule) => {
                if let Some(tangent) = given[0] {
                    let weights = rule.weights(build, stmt)?;
                    let weighted = Terms(build).mul(weights, tangent)?;
                    let (axes, keeps) = rule.reduced();
                    terms.push(reduce(build, ReduceOp::Sum, weighted, axes, keeps)?);
                }
            }
        }
        let mut sum: Option<Value> = None;
        for term in terms {
            sum = Some(match sum {
                Some(sum) => Terms(build).binary(BinaryOp::Add, sum, term)?,
                None => term,
            });
        }
        if let Some(sum) = sum {
            let sum = broadcast(build, sum, &shape)?;
            let sum = laid_out_as(build, sum, result)?;
            tangents.insert(result, sum);
        }
    }
    build.span = place;
    Ok(outputs.iter().map(|output| tangents.get(output).copied()).collect())
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
                    None => zeros_like(build, args[at])?,
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
