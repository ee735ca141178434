//! Statements that are emitted again, on other values.

use super::conformed;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::origin::{DerivedFrom, Lineage, UnitId};
use spmdc_ir::program::units::{CustomRule, UnitCopies, UnitKind};
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use std::collections::BTreeMap;

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
    repeat_inside_of(build, build.unit(), stmts, map)
}

/// As [`repeat`], for statements of a unit: the units inside it are units again.
pub(super) fn repeat_inside_of(
    build: &mut CallBuilder,
    unit: Option<UnitId>,
    stmts: &[Stmt],
    map: &mut BTreeMap<Value, Value>,
) -> Result<(), Diagnostic> {
    let mut units = UnitCopies::new(unit, build.unit());
    build.restoring(|build| repeat_block(build, stmts, &mut units, map))?;
    for (unit, copy) in units.pairs() {
        let kind = match build.units().kind(unit).clone() {
            UnitKind::Recomputed => UnitKind::Recomputed,
            UnitKind::Custom(rule) => UnitKind::Custom(Box::new(repeated_rule(build, &rule, map)?)),
        };
        build.close_unit(copy, kind);
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
        let (ty, origin) = (build.ty(param).clone(), build.info(param).origin.clone());
        let new = build.new_value(ty, origin);
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
    units: &mut UnitCopies,
    map: &mut BTreeMap<Value, Value>,
) -> Result<(), Diagnostic> {
    let mut params = Vec::new();
    for &param in &block.params {
        let new = copied(build, param);
        map.insert(param, new);
        params.push(new);
    }
    let start = Block { params, ..Block::default() };
    let (new, repeated) = build.in_block(start, |build| repeat_block(build, &block.stmts, units, map));
    repeated?;
    let results = block.results.iter().map(|&result| mapped(build, map, result)).collect();
    *block = Block { results, ..new };
    Ok(())
}

fn repeat_block(
    build: &mut CallBuilder,
    stmts: &[Stmt],
    units: &mut UnitCopies,
    map: &mut BTreeMap<Value, Value>,
) -> Result<(), Diagnostic> {
    let outer = build.lineage();
    for stmt in stmts {
        build.follow(&stmt.origin, outer);
        let unit = build.copy_of_unit(units, stmt.origin.unit);
        build.set_unit(unit);
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
                    build.in_region(manual, |build| repeat_inside(build, block, units, map))?;
                }
                let results: Vec<Value> = stmt.results.iter().map(|&result| copied(build, result)).collect();
                build.follow(&stmt.origin, outer);
                let origin = build.origin();
                build.innermost().stmts.push(Stmt::of_control(control, args, results.clone(), origin));
                results
            }
        };
        for (&value, &new) in stmt.results.iter().zip(&results) {
            let derived_from =
                build.info(value).derived_from.map(|derived_from| derived_from.mapped(|of| named(build, map, of)));
            build.info_mut(new).derived_from = derived_from.or(Some(DerivedFrom::CopyOf(value)));
            map.insert(value, new);
        }
    }
    Ok(())
}

/// A new value of the type of another one.
fn copied(build: &mut CallBuilder, value: Value) -> Value {
    let (ty, origin) = (build.ty(value).clone(), build.origin());
    let new = build.new_value(ty, origin);
    build.info_mut(new).derived_from = build.info(value).derived_from;
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

/// Replaces values in a block.
pub(super) fn substitute(build: &mut CallBuilder, block: &mut Block, map: &mut BTreeMap<Value, Value>) {
    block.each_use_mut(&mut |value| *value = mapped(build, map, *value));
}
