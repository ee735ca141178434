//! Walks over blocks: which values they use from outside, and the same block with other values.

use super::{Block, Value};
use std::collections::BTreeSet;

/// The values that a block uses and that are defined outside of it, in the order of their first use.
pub fn free_values(block: &Block) -> Vec<Value> {
    let mut defined = BTreeSet::new();
    let mut free = Vec::new();
    collect_free(block, &mut defined, &mut free);
    free
}

fn collect_free(block: &Block, defined: &mut BTreeSet<Value>, free: &mut Vec<Value>) {
    let mut note = |value: Value, defined: &BTreeSet<Value>| {
        if !defined.contains(&value) && !free.contains(&value) {
            free.push(value);
        }
    };
    defined.extend(&block.params);
    for stmt in &block.stmts {
        stmt.args.iter().for_each(|&arg| note(arg, defined));
        for inner in &stmt.blocks {
            // What an inner block defines is visible in it only, but every value is defined once.
            let mut inner_free = Vec::new();
            collect_free(inner, defined, &mut inner_free);
            inner_free.into_iter().for_each(|value| note(value, defined));
        }
        defined.extend(&stmt.results);
    }
    block.results.iter().for_each(|&result| note(result, defined));
}

/// Puts `new` wherever a block uses `old`.
pub fn replace(block: &mut Block, old: Value, new: Value) {
    rename(block, &mut |value| if value == old { new } else { value });
}

/// Applies a function to every use of a value, in inner blocks too.
pub fn rename(block: &mut Block, to: &mut dyn FnMut(Value) -> Value) {
    for stmt in &mut block.stmts {
        stmt.args.iter_mut().for_each(|arg| *arg = to(*arg));
        stmt.blocks.iter_mut().for_each(|inner| rename(inner, to));
    }
    block.results.iter_mut().for_each(|result| *result = to(*result));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::Stmt;
    use crate::ir::origin::Origin;
    use crate::ops::control::Branch;

    #[test]
    fn values_from_outside_are_found_through_inner_blocks() {
        let [a, b, c] = [Value(0), Value(1), Value(2)];
        let inner = Block { results: vec![b], ..Block::default() };
        let stmt = Stmt {
            op: Branch.into(),
            args: vec![a],
            results: vec![c],
            blocks: vec![inner.clone(), inner],
            origin: Origin::default(),
        };
        let mut block = Block { params: vec![a], stmts: vec![stmt], results: vec![c] };
        assert_eq!(free_values(&block), [b]);
        replace(&mut block, b, a);
        assert_eq!(free_values(&block), []);
    }
}
