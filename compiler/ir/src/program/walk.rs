//! Finds the values that a block uses from outside.

use crate::program::{Block, Value};
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
