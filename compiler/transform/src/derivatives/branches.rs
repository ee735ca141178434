//! The reverse of `if`: an `if` on the same condition, with the reverse of each branch.
//!
//! The branch that is not taken returns zeros for the residuals of the other branch.

use super::cotangents::Reverse;
use super::repeat::repeat;
use super::repeat::substitute;
use super::residuals::Kept;
use super::{captured, conformed, missing, needed_for, parts, total, zeros};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::program::control::{Branch, Control};
use spmdc_ir::program::origin::DerivativePart;
use spmdc_ir::program::{Block, Stmt, Value};
use spmdc_layout::types::Type;
use spmdc_ops::broadcast::filled;
use std::collections::{BTreeMap, BTreeSet};

/// One branch of the reverse.
struct ReverseSide {
    block: Block,
    /// The cotangents of values from outside, by value.
    found: BTreeMap<Value, Value>,
}

/// Adds the reverse of an `if`.
pub(super) fn reverse(reverse: &mut Reverse<'_>, stmt: &mut Stmt) -> Result<(), Diagnostic> {
    let mut seeds = Vec::new();
    for &result in &stmt.results {
        seeds.push(reverse.take(result)?);
    }
    let mut needed: BTreeSet<Value> =
        stmt.results.iter().zip(&seeds).filter(|(_, seed)| seed.is_some()).map(|(&result, _)| result).collect();
    needed_for(reverse.build, std::slice::from_ref(stmt), &mut needed);
    let flag = stmt.args[0];
    let varies = reverse.build.ty(flag).varying;
    let Some(Control::Branch(Branch { then, otherwise })) = stmt.control_mut() else { return Err(missing(stmt)) };
    let condition = reverse.build.span();
    let mut sides = Vec::new();
    for side in [then, otherwise] {
        let outside: Vec<Value> =
            captured(reverse.build, side).into_iter().filter(|value| reverse.depends.contains(value)).collect();
        let around = std::mem::take(&mut reverse.cotangents);
        let (block, result) = reverse.under(varies, condition, |reverse| {
            reverse.in_block(Block::default(), |reverse| {
                for (&value, &seed) in side.results.iter().zip(&seeds) {
                    if let (Some(seed), true) = (seed, reverse.depends.contains(&reverse.build.resolved(value))) {
                        reverse.add(value, seed)?;
                    }
                }
                reverse.run(&mut side.stmts)
            })
        });
        result?;
        let own = std::mem::replace(&mut reverse.cotangents, around);
        let found = own.into_iter().filter(|(value, _)| outside.contains(value)).collect();
        sides.push(ReverseSide { block, found });
    }
    let values: BTreeSet<Value> = sides.iter().flat_map(|side| side.found.keys().copied()).collect();
    let mut types = Vec::new();
    for value in values {
        let ty = reverse.under(varies, condition, |reverse| joined(reverse.build, &mut sides, value))?;
        types.push((value, ty));
    }
    if types.is_empty() {
        return Ok(());
    }
    let blocks = sides.into_iter().map(|side| side.block).collect::<Vec<Block>>();
    let [mut then, mut otherwise] = <[Block; 2]>::try_from(blocks).expect("an `if` has two branches");
    reverse.computes(DerivativePart::Value, None);
    let changing = std::mem::take(&mut reverse.changing);
    let kept = with_residuals(reverse.build, stmt, 0, &mut then, &changing);
    let kept = kept.and_then(|()| with_residuals(reverse.build, stmt, 1, &mut otherwise, &changing));
    reverse.changing = changing;
    kept?;
    reverse.build.set_span(stmt.origin.span);
    reverse.computes(DerivativePart::Gradient, None);
    let origin = reverse.build.origin();
    let results: Vec<Value> = types.iter().map(|(_, ty)| reverse.build.new_value(ty.clone(), origin.clone())).collect();
    let control = Control::Branch(Branch { then, otherwise });
    reverse.build.innermost().stmts.push(Stmt::of_control(control, vec![flag], results.clone(), origin));
    for ((value, _), result) in types.into_iter().zip(results) {
        reverse.add(value, result)?;
    }
    Ok(())
}

/// Lets both sides return the cotangent of a value, of one type, which it gives.
fn joined(build: &mut CallBuilder, sides: &mut [ReverseSide], value: Value) -> Result<Type, Diagnostic> {
    let types: Vec<Type> =
        sides.iter().filter_map(|side| side.found.get(&value)).map(|&found| build.carried_type(found)).collect();
    let mut ty = types[0].clone();
    let wanted = build.gradient_type(value);
    let of = |ty: &Type| parts(ty, &wanted, build.manual());
    let are_whole = types.iter().any(|other| of(other) != of(&ty));
    if are_whole {
        ty = wanted;
    }
    for side in sides {
        let found = side.found.get(&value).copied();
        let cotangent = build.resume_block(&mut side.block, |build| match found {
            Some(found) => {
                let found = if are_whole { total(build, found, value)? } else { found };
                conformed(build, found, &ty)
            }
            None => zeros(build, value, &ty),
        })?;
        side.block.results.push(cotangent);
    }
    Ok(ty)
}

/// Lets the reverse of a branch have the values of the branch that it uses.
fn with_residuals(
    build: &mut CallBuilder,
    stmt: &mut Stmt,
    side: usize,
    block: &mut Block,
    changing: &BTreeSet<Value>,
) -> Result<(), Diagnostic> {
    let used = captured(build, block);
    let varies = build.ty(stmt.args[0]).varying;
    let origin = stmt.origin.clone();
    let Some(Control::Branch(op)) = stmt.control_mut() else { return Err(missing(stmt)) };
    let found = {
        let own = op.sides()[side];
        Kept { params: &[], stmts: &own.stmts, had: &[], is_loop: false, can_keep: true, changing }.find(build, &used)
    };
    let mut map = BTreeMap::new();
    let mut results = Vec::new();
    build.at(build.span(), origin.lineage, |build| {
        for value in found.kept {
            let mut ty = build.carried_type(value);
            ty.varying = ty.varying.union(varies);
            let (own, other) = match side {
                0 => (&mut op.then, &mut op.otherwise),
                _ => (&mut op.otherwise, &mut op.then),
            };
            let kept = build.resume_block(own, |build| conformed(build, value, &ty))?;
            own.results.push(kept);
            let filler = build.resume_block(other, |build| {
                let filler = filled(build, ty.dtype(), 0, ty.shape())?;
                conformed(build, filler, &ty)
            })?;
            other.results.push(filler);
            let result = build.new_value(ty, origin.clone());
            results.push(result);
            map.insert(value, result);
        }
        Ok::<_, Diagnostic>(())
    })?;
    stmt.results.extend(results);
    let rest = std::mem::take(&mut block.stmts);
    build.resume_block(block, |build| repeat(build, &found.repeated, &mut map))?;
    block.stmts.extend(rest);
    substitute(build, block, &mut map);
    Ok(())
}
