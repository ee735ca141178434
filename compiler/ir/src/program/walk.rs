//! Finds the values that a block uses from outside.

use super::{Block, Value};
use std::collections::BTreeSet;

/// The values that a block uses and that are defined outside it, in the order of their first use.
pub fn free_values(block: &Block) -> Vec<Value> {
    let mut defined = BTreeSet::new();
    define(block, &mut defined);
    let mut free = Vec::new();
    // Every value is defined once, so a value defined anywhere inside is not from outside.
    block.each_use(&mut |value| {
        if !defined.contains(&value) && !free.contains(&value) {
            free.push(value);
        }
    });
    free
}

/// The values that a block and the blocks inside it define.
pub fn defined_values(block: &Block) -> BTreeSet<Value> {
    let mut defined = BTreeSet::new();
    define(block, &mut defined);
    defined
}

fn define(block: &Block, defined: &mut BTreeSet<Value>) {
    defined.extend(&block.params);
    for stmt in &block.stmts {
        stmt.blocks().for_each(|inner| define(inner, defined));
        defined.extend(&stmt.results);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Stmt;
    use crate::program::control::{Branch, Control};
    use crate::program::origin::Origin;

    #[test]
    fn values_from_outside_are_found_through_inner_blocks() {
        let [a, b, c] = [Value(0), Value(1), Value(2)];
        let inner = Block { results: vec![b], ..Block::default() };
        let branch = Control::Branch(Branch { then: inner.clone(), otherwise: inner });
        let stmt = Stmt::of_control(branch, vec![a], vec![c], Origin::default());
        let block = Block { params: vec![a], stmts: vec![stmt], results: vec![c] };
        assert_eq!(free_values(&block), [b]);
    }
}
