//! Functions that are differentiated as one: `checkpoint`, whose reverse recomputes the values, and `custom_vjp`, whose reverse the program
//! defines.
//!
//! The recomputed values depend on barriers (`ops/barrier.rs`), so that they are not the same expressions as the first ones.

use super::cotangents::{Reverse, passed};
use super::repeat::{mapped, repeat, repeat_inside_of};
use super::{captured, conformed, dependent, zeros};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::program::origin::{DerivativePart, DerivedFrom, UnitId};
use spmdc_ir::program::units::{CustomRule, UnitKind};
use spmdc_ir::program::{Block, Stmt, Value};
use spmdc_ops::barrier::OptimizationBarrier;
use std::collections::BTreeMap;
use std::ops::Range;

/// The outermost unit that contains a statement, inside the unit whose statements the builder emits.
pub(super) fn of(build: &CallBuilder, stmt: &Stmt) -> Option<UnitId> {
    build.units().within(stmt.origin.unit, build.unit()).last()
}

/// The position of the first statement of a unit that the last of these statements belongs to.
pub(super) fn start(build: &CallBuilder, stmts: &[Stmt], unit: UnitId) -> usize {
    let others = stmts.iter().rposition(|stmt| of(build, stmt) != Some(unit));
    let start = others.map_or(0, |last| last + 1);
    debug_assert!(
        stmts[..start].iter().all(|stmt| of(build, stmt) != Some(unit)),
        "the statements of {unit:?} follow each other"
    );
    start
}

/// E0220 for a statement of a function without a forward mode, inside the unit `outside`.
pub(super) fn refuse_forward(build: &CallBuilder, stmt: &Stmt, outside: Option<UnitId>) -> Result<(), Diagnostic> {
    let mut units = build.units().within(stmt.origin.unit, outside);
    let is_custom = |unit| matches!(build.units().kind(unit), UnitKind::Custom(_));
    if units.any(is_custom) { Err(no_forward(stmt)) } else { Ok(()) }
}

/// The reverse of a unit, which consists of these statements.
pub(super) fn reverse(
    reverse: &mut Reverse<'_>,
    forward: &mut Vec<Stmt>,
    own: Range<usize>,
    unit: UnitId,
) -> Result<(), Diagnostic> {
    let results: Vec<Value> = forward[own.clone()].iter().flat_map(|stmt| stmt.results.iter().copied()).collect();
    if !results.iter().any(|result| reverse.cotangents.contains_key(result)) {
        return Ok(());
    }
    match reverse.build.units().kind(unit).clone() {
        UnitKind::Recomputed => recomputed(reverse, &forward[own], unit, &results),
        UnitKind::Custom(rule) => custom(reverse, forward, own, &rule),
    }
}

/// The reverse of statements that are computed again.
fn recomputed(reverse: &mut Reverse<'_>, stmts: &[Stmt], unit: UnitId, results: &[Value]) -> Result<(), Diagnostic> {
    let block = Block { stmts: stmts.to_vec(), ..Block::default() };
    let mut map = BTreeMap::new();
    let mut outside = Vec::new();
    let unit = all_of(reverse.build, stmts, unit);
    reverse.computes(DerivativePart::Value, None);
    for value in captured(reverse.build, &block) {
        // Rows of a stream are read again, by an index that is computed again or as they were.
        if reverse.build.ty(value).array.is_stream {
            continue;
        }
        let barrier = reverse.build.emit1(OptimizationBarrier, &[value])?;
        reverse.build.info_mut(barrier).derived_from = Some(DerivedFrom::CopyOf(value));
        if reverse.depends.contains(&value) {
            reverse.depends.insert(barrier);
        }
        map.insert(value, barrier);
        outside.push((value, barrier));
    }
    let (Block { stmts: mut again, .. }, repeated) =
        reverse.in_block(Block::default(), |reverse| repeat_inside_of(reverse.build, Some(unit), stmts, &mut map));
    repeated?;
    dependent(reverse.build, &again, &mut reverse.depends);
    for result in results {
        if let (Some(found), Some(&same)) = (reverse.cotangents.remove(result), map.get(result)) {
            reverse.add(same, found)?;
        }
    }
    let (Block { stmts, .. }, result) = reverse.in_block(Block::default(), |reverse| reverse.run(&mut again));
    result?;
    reverse.build.innermost().stmts.extend(again);
    reverse.build.innermost().stmts.extend(stmts);
    for (value, barrier) in outside {
        if let Some(found) = reverse.cotangents.remove(&barrier) {
            reverse.add(value, found)?;
        }
    }
    Ok(())
}

/// The innermost `checkpoint` that is all of this one, so that its values are not computed a third time.
fn all_of(build: &CallBuilder, stmts: &[Stmt], mut unit: UnitId) -> UnitId {
    let inside = |stmt: &Stmt, unit| build.units().within(stmt.origin.unit, Some(unit)).last();
    while let Some(inner) = stmts.first().and_then(|stmt| inside(stmt, unit))
        && matches!(build.units().kind(inner), UnitKind::Recomputed)
        && stmts.iter().all(|stmt| inside(stmt, unit) == Some(inner))
    {
        unit = inner;
    }
    unit
}

/// The reverse of a function with a custom rule, whose statements are replaced.
fn custom(
    reverse: &mut Reverse<'_>,
    forward: &mut Vec<Stmt>,
    own: Range<usize>,
    rule: &CustomRule,
) -> Result<(), Diagnostic> {
    let mut captured = rule.captured.iter().map(|&value| reverse.build.resolved(value));
    let outer = captured.find(|value| reverse.depends.contains(value));
    if let Some(outer) = outer {
        let span = reverse.build.info(outer).origin.span;
        let message = "a `custom_vjp` function captures a value that the derivative depends on";
        return Err(Diagnostic::error(Code::E0220, forward[own.start].origin.span, message)
            .label(span, "the captured value")
            .help("make it an argument: the reverse function returns cotangents of the arguments only"));
    }
    let mut map = BTreeMap::new();
    let mut seeds = Vec::new();
    for &output in &rule.outputs {
        let ty = reverse.build.gradient_type(output);
        let seed = match reverse.cotangents.remove(&output) {
            Some(found) => conformed(reverse.build, found, &ty)?,
            None => zeros(reverse.build, output, &ty)?,
        };
        seeds.push(seed);
    }
    map.extend(rule.reverse.params.iter().copied().zip(seeds));
    reverse.computes(DerivativePart::Gradient, None);
    repeat(reverse.build, &rule.reverse.stmts, &mut map)?;
    for (&(_, given), &found) in rule.inputs.iter().zip(&rule.reverse.results) {
        let given = reverse.build.resolved(given);
        if reverse.depends.contains(&given) {
            let found = mapped(reverse.build, &mut map, found);
            reverse.add(given, found)?;
        }
    }
    let mut replacing = rule.forward.clone();
    passed(&mut replacing);
    forward.splice(own, replacing);
    for (&output, &value) in rule.outputs.iter().zip(&rule.forward_outputs) {
        reverse.build.rename(output, value);
    }
    Ok(())
}

/// The error for a function with a custom reverse.
pub(super) fn no_forward(stmt: &Stmt) -> Diagnostic {
    let message = "a `custom_vjp` function cannot be differentiated in forward mode";
    Diagnostic::error(Code::E0220, stmt.origin.span, message)
        .help("`grad` and `vjp` use its reverse rule; for `jvp`, call the function without `custom_vjp`")
}
