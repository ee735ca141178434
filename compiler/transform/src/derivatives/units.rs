//! Functions that are differentiated as one: `checkpoint`, whose reverse recomputes the values, and `custom_vjp`, whose reverse the program
//! defines.
//!
//! The recomputed values depend on barriers (`ops/barrier.rs`), so that they are not the same expressions as the first ones.

use super::reverse::{Reverse, passed};
use super::{captured, conformed, dependent, forward, zeros};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::origin::{DerivativePart, Kin, Lineage};
use spmdc_ir::program::units::{CustomRule, Unit, UnitKind};
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use spmdc_ops::barrier::OptimizationBarrier;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The outermost unit to which a statement belongs.
pub(super) fn of(build: &CallBuilder, stmt: &Stmt) -> Option<Unit> {
    let first = *stmt.results.first()?;
    build.units.iter().filter(|unit| unit.contains(first)).max_by_key(|unit| unit.len()).cloned()
}

/// The tangents with numbers from `from` on were computed with this statement, and belong to its units.
pub(super) fn extend(build: &mut CallBuilder, first: Option<Value>, from: usize) {
    let tangents = from as u32..build.func.values.len() as u32;
    let Some(first) = first.filter(|_| !tangents.is_empty()) else { return };
    let units = build.units.iter_mut().filter(|unit| unit.contains(first));
    units.for_each(|unit| unit.extend(tangents.clone()));
}

/// The position of the first statement of a unit that the last of these statements belongs to.
pub(super) fn start(build: &CallBuilder, stmts: &[Stmt], unit: &Unit) -> usize {
    let mut start = stmts.len();
    for (at, stmt) in stmts.iter().enumerate().rev() {
        match of(build, stmt) {
            Some(own) if own.values == unit.values => start = at,
            None if stmt.results.is_empty() => {}
            Some(_) | None => break,
        }
    }
    start
}

/// E0220 for a statement of a function without a forward mode.
pub(super) fn refuse_forward(build: &CallBuilder, stmt: &Stmt) -> Result<(), Diagnostic> {
    let Some(&first) = stmt.results.first() else { return Ok(()) };
    let is_custom = |unit: &Unit| matches!(unit.kind, UnitKind::Custom(_)) && unit.contains(first);
    if build.units.iter().any(is_custom) { Err(forward::no_forward(stmt)) } else { Ok(()) }
}

/// The reverse of a unit, which consists of these statements.
pub(super) fn reverse(
    reverse: &mut Reverse<'_>,
    forward: &mut Vec<Stmt>,
    own: Range<usize>,
    unit: &Unit,
) -> Result<(), Diagnostic> {
    let results: Vec<Value> = forward[own.clone()].iter().flat_map(|stmt| stmt.results.iter().copied()).collect();
    if !results.iter().any(|result| reverse.cotangents.contains_key(result)) {
        return Ok(());
    }
    match &unit.kind {
        UnitKind::Recomputed => recomputed(reverse, &forward[own], &results),
        UnitKind::Custom(rule) => custom(reverse, forward, own, rule),
    }
}

/// The reverse of statements that are computed again.
fn recomputed(reverse: &mut Reverse<'_>, stmts: &[Stmt], results: &[Value]) -> Result<(), Diagnostic> {
    let block = Block { stmts: stmts.to_vec(), ..Block::default() };
    let mut map = BTreeMap::new();
    let mut outside = Vec::new();
    reverse.computes(DerivativePart::Value, None);
    for value in captured(reverse.build, &block) {
        // Rows of a stream are read again, by an index that is computed again or as they were.
        if reverse.build.ty(value).array.is_stream {
            continue;
        }
        let barrier = reverse.build.emit1(OptimizationBarrier, &[value])?;
        reverse.build.func.info_mut(barrier).kin = Some(Kin::CopyOf(value));
        if reverse.depends.contains(&value) {
            reverse.depends.insert(barrier);
        }
        map.insert(value, barrier);
        outside.push((value, barrier));
    }
    let (Block { stmts: mut again, .. }, repeated) =
        reverse.in_block(Block::default(), |reverse| repeat(reverse.build, stmts, &mut map));
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
        let span = reverse.build.func.info(outer).origin.span;
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

/// The replacement of a value: its entry, or the entry of the value that it aliases. If no derivative depends on a name, none depends on
/// its replacement.
pub(super) fn mapped(build: &mut CallBuilder, map: &mut BTreeMap<Value, Value>, value: Value) -> Value {
    if let Some(&new) = map.get(&value) {
        return new;
    }
    let Some(of) = build.aliases().next(value) else { return value };
    let is_differentiated = !build.aliases().is_stopped(value);
    let new = mapped(build, map, of);
    if new == of {
        return value;
    }
    if is_differentiated {
        return new;
    }
    let stopped = build.stopped_alias(new);
    map.insert(value, stopped);
    stopped
}

/// The replacement of a value where it is only named.
fn named(build: &CallBuilder, map: &BTreeMap<Value, Value>, value: Value) -> Value {
    build.aliases().first(value, |name| map.contains_key(&name)).map_or(value, |name| map[&name])
}

/// Emits statements again, with other values for those in `map`, to which their results are added. Statements that only act are left out.
pub fn repeat(build: &mut CallBuilder, stmts: &[Stmt], map: &mut BTreeMap<Value, Value>) -> Result<(), Diagnostic> {
    let first = build.func.values.len() as u32;
    build.restoring(|build| repeat_block(build, stmts, map))?;
    // Units inside are units again.
    let copies: BTreeSet<Value> = stmts.iter().filter_map(|stmt| stmt.results.first().copied()).collect();
    let whole = |unit: &Unit| copies.iter().all(|&value| unit.contains(value));
    let inner: Vec<Unit> =
        build.units.iter().filter(|unit| !whole(unit) && unit.values.start < first).cloned().collect();
    for unit in inner {
        let copies = unit.ranges().flat_map(|range| map.range(Value(range.start)..Value(range.end)));
        // Other names are of no statement.
        let copies = copies.filter(|&(&value, _)| build.aliases().next(value).is_none());
        let new: Vec<u32> = copies.map(|(_, new)| new.0).filter(|&new| new >= first).collect();
        let (Some(&start), Some(&last)) = (new.iter().min(), new.iter().max()) else { continue };
        let kind = match unit.kind {
            UnitKind::Recomputed => UnitKind::Recomputed,
            UnitKind::Custom(rule) => UnitKind::Custom(Box::new(repeated_rule(build, &rule, map)?)),
        };
        build.units.push(Unit::new(start..last + 1, kind));
    }
    Ok(())
}

fn repeated_rule(
    build: &mut CallBuilder,
    rule: &CustomRule,
    map: &BTreeMap<Value, Value>,
) -> Result<CustomRule, Diagnostic> {
    let mut map = map.clone();
    let mut inputs = Vec::new();
    for &(name, given) in &rule.inputs {
        let given = mapped(build, &mut map, given);
        let new = build.alias(given);
        map.insert(name, new);
        inputs.push((new, given));
    }
    let captured = rule.captured.iter().map(|&value| mapped(build, &mut map, value)).collect();
    let outputs = rule.outputs.iter().map(|&output| mapped(build, &mut map, output)).collect();
    let (Block { stmts, .. }, forward) =
        build.in_block(Block::default(), |build| repeat(build, &rule.forward, &mut map));
    forward?;
    let forward_outputs = rule.forward_outputs.iter().map(|&output| mapped(build, &mut map, output)).collect();
    let mut params = Vec::new();
    for &param in &rule.reverse.params {
        let (ty, origin) = (build.ty(param).clone(), build.func.info(param).origin.clone());
        let new = build.func.new_value(ty, origin);
        map.insert(param, new);
        params.push(new);
    }
    let (Block { stmts: reverse_stmts, .. }, reverse) =
        build.in_block(Block::default(), |build| repeat(build, &rule.reverse.stmts, &mut map));
    reverse?;
    let results = rule.reverse.results.iter().map(|&result| mapped(build, &mut map, result)).collect();
    Ok(CustomRule {
        inputs,
        captured,
        outputs,
        forward: stmts,
        forward_outputs,
        reverse: Block { params, stmts: reverse_stmts, results },
    })
}

/// As [`repeat_block`], for a block of a statement.
fn repeat_inside(
    build: &mut CallBuilder,
    block: &mut Block,
    map: &mut BTreeMap<Value, Value>,
) -> Result<(), Diagnostic> {
    let mut params = Vec::new();
    for &param in &block.params {
        let new = copied(build, param);
        map.insert(param, new);
        params.push(new);
    }
    let start = Block { params, ..Block::default() };
    let (new, repeated) = build.in_block(start, |build| repeat_block(build, &block.stmts, map));
    repeated?;
    let results = block.results.iter().map(|&result| mapped(build, map, result)).collect();
    *block = Block { results, ..new };
    Ok(())
}

fn repeat_block(build: &mut CallBuilder, stmts: &[Stmt], map: &mut BTreeMap<Value, Value>) -> Result<(), Diagnostic> {
    let outer = build.lineage();
    for stmt in stmts {
        build.follow(&stmt.origin, outer);
        let lineage = build.lineage();
        build.set_lineage(Lineage { of: lineage.of.map(|of| named(build, map, of)), ..lineage });
        let args: Vec<Value> = stmt.args.iter().map(|&arg| mapped(build, map, arg)).collect();
        let results = match &stmt.kind {
            StmtKind::Op(_) if stmt.results.is_empty() => continue,
            StmtKind::Op(op) => build.emit(op.clone(), &args)?,
            StmtKind::Control(control) => {
                let mut control = control.clone();
                let manual = if let Control::Manual(region) = &control { region.axes } else { build.manual() };
                for block in control.blocks_mut() {
                    build.in_region(manual, |build| repeat_inside(build, block, map))?;
                }
                let results: Vec<Value> = stmt.results.iter().map(|&result| copied(build, result)).collect();
                build.follow(&stmt.origin, outer);
                let origin = build.origin();
                build.innermost().stmts.push(Stmt::of_control(control, args, results.clone(), origin));
                results
            }
        };
        for (&value, &new) in stmt.results.iter().zip(&results) {
            let kin = build.func.info(value).kin.map(|kin| kin.mapped(|of| named(build, map, of)));
            build.func.info_mut(new).kin = kin.or(Some(Kin::CopyOf(value)));
            map.insert(value, new);
        }
    }
    Ok(())
}

/// A new value of the type of another one.
fn copied(build: &mut CallBuilder, value: Value) -> Value {
    let (ty, origin) = (build.ty(value).clone(), build.origin());
    let new = build.func.new_value(ty, origin);
    build.func.info_mut(new).kin = build.func.info(value).kin;
    new
}

/// The results of a block for these values of its parameters; its statements follow in the innermost block.
pub fn repeated(build: &mut CallBuilder, block: &Block, args: &[Value]) -> Result<Vec<Value>, Diagnostic> {
    let mut map = BTreeMap::new();
    for (&param, &arg) in block.params.iter().zip(args) {
        let ty = build.ty(param).clone();
        map.insert(param, conformed(build, arg, &ty)?);
    }
    repeat(build, &block.stmts, &mut map)?;
    Ok(block.results.iter().map(|&result| mapped(build, &mut map, result)).collect())
}
