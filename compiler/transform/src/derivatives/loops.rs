//! The reverse of `for`: a loop over the same trips, from the last to the first.
//!
//! ```text
//! let mut h = x;                              let mut c = (the cotangent of h);
//! for i in 0..n { h = tanh(h @ w); }          let mut d = 0;
//!                                             for k in 0..n { c and d from c, w and what trip n - 1 - k has kept }
//! ```
//!
//! It carries the cotangents of the carried values, and the sums of the cotangents of captured values. The loop itself collects the
//! residuals of each trip, one array for each value.

use super::cotangents::Reverse;
use super::repeat::{repeat, substitute};
use super::residuals::Kept;
use super::sparse::accumulated;
use super::{captured, conformed, missing, needed_for, zeros};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::rank_too_large;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::program::control::{Control, ForLoop};
use spmdc_ir::program::origin::{DerivativePart, DerivedFrom, Origin};
use spmdc_ir::program::walk::defined_values;
use spmdc_ir::program::{Block, Stmt, Value};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::types::{DType, MAX_RANK, Type};
use spmdc_ops::cast::cast;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::Binary;
use spmdc_ops::index::Index;
use std::collections::{BTreeMap, BTreeSet};

/// The error for the reverse of `while`.
pub(super) fn of_while(stmt: &Stmt) -> Diagnostic {
    let message = "a `while` loop cannot be differentiated in reverse mode: its number of trips is unknown";
    Diagnostic::error(Code::E0222, stmt.origin.span, message).help(
        "write `for i in 0..N { if .. { .. } }` with the largest number of trips; `jvp` differentiates `while`, and \
         `stop_gradient` treats the value as a constant",
    )
}

/// The error for a loop between dynamic bounds whose reverse needs values of each trip.
fn of_dynamic(stmt: &Stmt, needed: &str) -> Diagnostic {
    let message = format!(
        "this loop cannot be differentiated in reverse mode: it needs {needed} of each trip, but the number of trips is unknown"
    );
    Diagnostic::error(Code::E0222, stmt.origin.span, message)
        .help("use a constant range with the largest number of trips, and an `if` in the body: `for i in 0..N { if i < n { .. } }`")
}

/// Adds the reverse of a `for`.
pub(super) fn reverse(reverse: &mut Reverse<'_>, stmt: &mut Stmt) -> Result<(), Diagnostic> {
    let Some(Control::For(op)) = stmt.control() else { return Err(missing(stmt)) };
    let (bounds, carries) = (op.bounds(), op.body.params.len() - 1);
    let mut seeds = Vec::new();
    for &result in &stmt.results {
        seeds.push(reverse.take(result)?);
    }
    if op.trips() == Some(0) {
        for (seed, &init) in seeds.iter().zip(&stmt.args) {
            if let (Some(seed), true) = (seed, reverse.depends.contains(&reverse.build.resolved(init))) {
                reverse.add(init, *seed)?;
            }
        }
        return Ok(());
    }
    let mut needed: BTreeSet<Value> =
        stmt.results.iter().zip(&seeds).filter(|(_, seed)| seed.is_some()).map(|(&result, _)| result).collect();
    needed_for(reverse.build, std::slice::from_ref(stmt), &mut needed);
    let params = op.body.params[1..].to_vec();
    let active: Vec<usize> = (0..carries)
        .filter(|&at| reverse.depends.contains(&params[at]) && (seeds[at].is_some() || needed.contains(&params[at])))
        .collect();
    let outside: Vec<Value> = captured(reverse.build, &op.body)
        .into_iter()
        .filter(|value| reverse.depends.contains(value) && needed.contains(value))
        .collect();

    // The body, whose counter says how many trips are behind the present one.
    let origin = reverse.build.origin();
    let counter_ty = reverse.build.ty(op.body.params[0]).clone();
    let counter = reverse.build.new_value(counter_ty, origin.clone());
    let (range, own_params, own_results) = (op.range, op.body.params.clone(), op.body.results.clone());
    let dynamic: Vec<Value> = stmt.args[..bounds].to_vec();
    let mut inits = Vec::new();
    let mut block = Block { params: vec![counter], ..Block::default() };
    for &at in &active {
        let ty = reverse.build.gradient_type(params[at]);
        let init = match seeds[at] {
            Some(seed) => conformed(reverse.build, seed, &ty)?,
            None => zeros(reverse.build, params[at], &ty)?,
        };
        inits.push(init);
        block.params.push(new_derivative(reverse.build, ty, &origin, params[at]));
    }
    let around = std::mem::take(&mut reverse.cotangents);
    let mut sums = Vec::new();
    let fill = |reverse: &mut Reverse<'_>| {
        let trip = mirrored(reverse.build, range, &dynamic, counter)?;
        let position = match range {
            Some((_, end)) => {
                let last = constant(reverse.build, end - 1)?;
                let position = reverse.build.emit1(Binary(BinaryOp::Sub), &[last, counter])?;
                Some(cast(reverse.build, position, DType::I64)?)
            }
            None => None,
        };
        let head = reverse.build.innermost().stmts.len();
        for (at, &seed) in active.iter().zip(&block.params[1..]) {
            reverse.add(own_results[*at], seed)?;
        }
        for (&seed, &value) in seeds[carries..].iter().zip(&own_results[carries..]) {
            let (Some(seed), Some(position)) = (seed, position) else { continue };
            if reverse.depends.contains(&reverse.build.resolved(value)) {
                let part = reverse.build.emit1(Index { dims: vec![0] }, &[seed, position])?;
                reverse.add(value, part)?;
            }
        }
        let Some(Control::For(op)) = stmt.control_mut() else { unreachable!("it has been matched above") };
        let mut changing = defined_values(&op.body);
        changing.remove(&op.body.params[0]);
        let around_changing = std::mem::replace(&mut reverse.changing, changing);
        reverse.run(&mut op.body.stmts)?;
        reverse.changing = around_changing;
        let mut next = Vec::new();
        for &at in &active {
            next.push(reverse.take_or_zeros(params[at])?);
        }
        for &value in &outside {
            if let Some(part) = reverse.cotangents.remove(&value) {
                let ty = reverse.build.carried_type(part);
                reverse.computes(DerivativePart::Gradient, Some(value));
                let sum = new_derivative(reverse.build, ty, &origin, value);
                block.params.push(sum);
                next.push(accumulated(reverse.build, sum, part, true)?);
                sums.push(value);
            }
        }
        Ok((next, trip, position, head))
    };
    let (body, filled) = reverse.in_block(Block::default(), fill);
    reverse.cotangents = around;
    let (next, trip, position, head) = filled?;
    block.stmts = body.stmts;
    block.results = next;

    // What it needs of the loop.
    reverse.computes(DerivativePart::Value, None);
    let taken = with_residuals(reverse.build, stmt, &mut block, (&own_params, trip, position, head))?;
    if let Some(needed) = taken {
        return Err(of_dynamic(stmt, &needed));
    }
    reverse.computes(DerivativePart::Gradient, None);
    for (&value, &sum) in sums.iter().zip(&block.params[1 + active.len()..]) {
        let ty = reverse.build.ty(sum).clone();
        inits.push(zeros(reverse.build, value, &ty)?);
    }
    let types: Vec<Type> = block.params[1..].iter().map(|&param| reverse.build.carried_type(param)).collect();
    // Each gradient comes from the statement that gives its last part.
    let ends: Vec<Origin> = block.results.iter().map(|&next| reverse.build.info(next).origin.clone()).collect();
    let results: Vec<Value> = types.into_iter().zip(ends).map(|(ty, end)| reverse.build.new_value(ty, end)).collect();
    let control = Control::For(ForLoop { range, collected: 0, body: block });
    let args = dynamic.into_iter().chain(inits).collect();
    reverse.build.innermost().stmts.push(Stmt::of_control(control, args, results.clone(), origin));
    let (of_carries, of_outside) = results.split_at(active.len());
    for (&at, &cotangent) in active.iter().zip(of_carries) {
        let init = stmt.args[bounds + at];
        if reverse.depends.contains(&reverse.build.resolved(init)) {
            reverse.add(init, cotangent)?;
        }
    }
    for (&value, &cotangent) in sums.iter().zip(of_outside) {
        reverse.add(value, cotangent)?;
    }
    Ok(())
}

/// A new value of this type, as the gradient of another one.
fn new_derivative(build: &mut CallBuilder, ty: Type, origin: &Origin, of: Value) -> Value {
    let value = build.new_value(ty, origin.clone());
    build.info_mut(value).derived_from = Some(DerivedFrom::DerivativeOf(of));
    value
}

fn constant(build: &mut CallBuilder, number: i64) -> Result<Value, Diagnostic> {
    build.emit1(Constant::scalar(DType::I32, u64::from((number as i32).cast_unsigned())), &[])
}

/// The trip of the loop in a trip of its reverse: `start + end - 1 - counter`, where all bounds are i32.
fn mirrored(
    build: &mut CallBuilder,
    range: Option<(i64, i64)>,
    bounds: &[Value],
    counter: Value,
) -> Result<Value, Diagnostic> {
    let last = match (range, bounds) {
        (Some((start, end)), _) => constant(build, start + end - 1)?,
        (None, &[start, end]) => {
            let (sum, one) = (build.emit1(Binary(BinaryOp::Add), &[start, end])?, constant(build, 1)?);
            build.emit1(Binary(BinaryOp::Sub), &[sum, one])?
        }
        (None, _) => unreachable!("a loop without a range has two bounds"),
    };
    build.emit1(Binary(BinaryOp::Sub), &[last, counter])
}

/// Supplies the reverse of a loop with the values of the loop that it uses; its first `head` statements compute the trip and the position
/// of the residuals. If there are residuals and the trip count is unknown, returns their types.
fn with_residuals(
    build: &mut CallBuilder,
    stmt: &mut Stmt,
    block: &mut Block,
    (params, trip, position, head): (&[Value], Value, Option<Value>, usize),
) -> Result<Option<String>, Diagnostic> {
    let used = captured(build, block);
    let Some(Control::For(op)) = stmt.control() else { return Err(missing(stmt)) };
    let (had, can_keep) = (&params[..1], op.range.is_some());
    let kept = Kept { params, stmts: &op.body.stmts, had, is_loop: true, can_keep, changing: &BTreeSet::new() };
    let found = kept.find(build, &used);
    let carries = params.len() - 1;
    if op.range.is_none() && !found.kept.is_empty() {
        let types: Vec<String> = found.kept.iter().map(|&value| build.display_closed(build.ty(value))).collect();
        return Ok(Some(types.join(", ")));
    }
    let mut map = BTreeMap::new();
    repeat(build, &found.invariant, &mut map)?;
    map.extend(found.params.iter().map(|&param| (param, trip)));
    let rest = block.stmts.split_off(head);
    build.resume_block(block, |build| {
        for value in found.kept {
            let Some(Control::For(op)) = stmt.control_mut() else { return Err(missing(stmt)) };
            let known = op.body.results[carries..].iter().position(|&collected| build.resolved(collected) == value);
            let stacked = match known {
                Some(at) => stmt.results[carries + at],
                None => {
                    let trips = op.trips().expect("the range of a loop that keeps values is known") as usize;
                    let rank = build.ty(value).rank() + 1;
                    if rank > MAX_RANK {
                        return Err(rank_too_large(rank, build.span()));
                    }
                    op.body.results.push(value);
                    op.collected += 1;
                    let ty = build.stacked_type(value, trips);
                    let stacked = build.new_value(ty, stmt.origin.clone());
                    stmt.results.push(stacked);
                    stacked
                }
            };
            let position = position.expect("the range of a loop that keeps values is known");
            let own = build.emit1(Index { dims: vec![0] }, &[stacked, position])?;
            let ty = build.ty(value).clone();
            let own = conformed(build, own, &ty)?;
            build.info_mut(own).derived_from = Some(DerivedFrom::CopyOf(value));
            map.insert(value, own);
        }
        repeat(build, &found.repeated, &mut map)
    })?;
    block.stmts.extend(rest);
    substitute(build, block, &mut map);
    Ok(None)
}
