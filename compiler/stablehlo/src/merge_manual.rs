//! Code for each device that follows other such code on its results becomes one `manual_computation` with it.
//!
//! JAX prints one for each `shard_map`, and differentiation makes two of one: the backward part takes residuals of the forward part, and
//! gathers the same parameters again. In one region, common collectives are made once, as XLA does.

use crate::tree::{Attribute, MlirBlock, MlirFunction, MlirOp, ValueName};
use std::collections::{BTreeMap, BTreeSet};

/// Merges the computations of a function that follow each other.
pub fn merge(function: &mut MlirFunction) {
    let mut number = 0;
    let mut at = 0;
    while at < function.body.len() {
        match follower(&function.body, at) {
            Some(next) => {
                number += 1;
                let second = function.body.remove(next);
                let first = function.body.remove(at);
                // The operations between do not use the first one.
                function.body.insert(next - 1, merged(first, second, number));
                at = next - 1;
            }
            None => at += 1,
        }
    }
}

fn is_manual(operation: &MlirOp) -> bool {
    operation.name == "sdy.manual_computation" && operation.regions.len() == 1
}

/// The names of the results of an operation, in order.
fn results(operation: &MlirOp) -> Vec<ValueName> {
    let names = |(base, count): &(String, usize)| {
        (0..*count).map(|index| ValueName { base: base.clone(), index }).collect::<Vec<_>>()
    };
    operation.results.iter().flat_map(names).collect()
}

/// The elements of a list among the attributes.
fn listed<'o>(operation: &'o MlirOp, name: &str) -> &'o [Attribute] {
    match operation.attributes.get(name) {
        Some(Attribute::List(all)) => all,
        Some(_) | None => &[],
    }
}

/// The next computation that can be one with that at `at`: it has the same axes, takes results of it as they lie, and nothing between uses
/// it.
fn follower(body: &[MlirOp], at: usize) -> Option<usize> {
    let first = body.get(at).filter(|operation| is_manual(operation))?;
    let made = results(first);
    let bases: BTreeSet<&str> = made.iter().map(|name| name.base.as_str()).collect();
    for (next, second) in body.iter().enumerate().skip(at + 1) {
        if !is_manual(second) {
            if uses(second, &bases) {
                return None;
            }
            continue;
        }
        let (outs, ins) = (listed(first, "out_shardings"), listed(second, "in_shardings"));
        let is_complete = outs.len() == made.len()
            && ins.len() == second.operands.len()
            && ends(first).is_some_and(|last| last.operands.len() == made.len())
            && second.regions[0].params.len() == second.operands.len()
            && first.regions[0].params.len() == first.operands.len()
            && listed(first, "in_shardings").len() == first.operands.len()
            && ends(second).is_some_and(|last| last.operands.len() == results(second).len())
            && listed(second, "out_shardings").len() == results(second).len();
        let fits = |(operand, sharding): (&ValueName, &Attribute)| {
            made.iter().position(|name| name == operand).is_none_or(|place| outs[place] == *sharding)
        };
        let takes = second.operands.iter().any(|operand| made.contains(operand));
        // The results may be used in the second one only as operands.
        let is_closed = !second.regions.iter().any(|region| region.body.iter().any(|inner| uses(inner, &bases)));
        let same_axes = first.attributes.get("manual_axes") == second.attributes.get("manual_axes");
        let is_follower = is_complete && takes && is_closed && same_axes && second.operands.iter().zip(ins).all(fits);
        return is_follower.then_some(next);
    }
    None
}

/// The operation that returns the values of a computation.
fn ends(operation: &MlirOp) -> Option<&MlirOp> {
    operation.regions[0].body.last().filter(|last| last.name == "sdy.return")
}

/// Whether an operation, or one inside of it, uses one of these values.
fn uses(operation: &MlirOp, bases: &BTreeSet<&str>) -> bool {
    operation.operands.iter().any(|operand| bases.contains(operand.base.as_str()))
        || operation.regions.iter().any(|region| region.body.iter().any(|inner| uses(inner, bases)))
}

fn merged(mut first: MlirOp, mut second: MlirOp, number: usize) -> MlirOp {
    let made = results(&first);
    let mut region = first.regions.remove(0);
    rename_inside(&mut region, &format!("m{number}a_"), &BTreeMap::new());
    let mut back = region.body.pop().expect("a computation returns values");

    let mut next = second.regions.remove(0);
    let mut ins = listed(&first, "in_shardings").to_vec();
    let mut replaced: BTreeMap<String, ValueName> = BTreeMap::new();
    let mut params = Vec::new();
    for ((operand, sharding), param) in
        second.operands.iter().zip(listed(&second, "in_shardings")).zip(std::mem::take(&mut next.params))
    {
        let same = first.operands.iter().zip(&ins).position(|known| known == (operand, sharding));
        if let Some(place) = made.iter().position(|name| name == operand) {
            replaced.insert(param.0, back.operands[place].clone());
        } else if let Some(place) = same.filter(|place| *place < region.params.len()) {
            replaced.insert(param.0, ValueName { base: region.params[place].0.clone(), index: 0 });
        } else {
            first.operands.push(operand.clone());
            ins.push(sharding.clone());
            params.push(param);
        }
    }
    next.params = params;
    rename_inside(&mut next, &format!("m{number}b_"), &replaced);
    let last = next.body.pop().expect("a computation returns values");
    back.operands.extend(last.operands);
    region.params.extend(next.params);
    region.body.extend(next.body);
    region.body.push(back);
    let outs = [listed(&first, "out_shardings"), listed(&second, "out_shardings")].concat();
    first.attributes.insert("in_shardings".into(), Attribute::List(ins));
    first.attributes.insert("out_shardings".into(), Attribute::List(outs));
    first.results.extend(second.results);
    first.types.extend(second.types);
    first.regions.push(region);
    first
}

/// Gives all values that a region makes names with a prefix; those of `replaced` are other values.
fn rename_inside(region: &mut MlirBlock, prefix: &str, replaced: &BTreeMap<String, ValueName>) {
    let mut own = BTreeSet::new();
    defined(region, &mut own);
    rename_block(region, prefix, &own, replaced);
}

fn defined(region: &MlirBlock, names: &mut BTreeSet<String>) {
    names.extend(region.params.iter().map(|(name, _)| name.clone()));
    for operation in &region.body {
        names.extend(operation.results.iter().map(|(name, _)| name.clone()));
        operation.regions.iter().for_each(|inner| defined(inner, names));
    }
}

fn rename_block(region: &mut MlirBlock, prefix: &str, own: &BTreeSet<String>, replaced: &BTreeMap<String, ValueName>) {
    let renamed = |name: &String| format!("{prefix}{name}");
    region.params.iter_mut().for_each(|(name, _)| *name = renamed(name));
    for operation in &mut region.body {
        for operand in &mut operation.operands {
            if let Some(other) = replaced.get(&operand.base) {
                *operand = other.clone();
            } else if own.contains(&operand.base) {
                operand.base = renamed(&operand.base);
            }
        }
        operation.results.iter_mut().for_each(|(name, _)| *name = renamed(name));
        operation.regions.iter_mut().for_each(|inner| rename_block(inner, prefix, own, replaced));
    }
}
