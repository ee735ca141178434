//! The values that have names in the source.

use spmdc_ir::ops::rules::Placement;
use spmdc_ir::program::{Block, Func, Value};
use std::collections::BTreeSet;

/// The variables of `let` and of assignments in program order; parts of structs and tuples by path. For an annotated variable it is
/// the value with the annotation's layout, for a variable that a loop carries the value after the loop.
pub fn named_values(func: &Func) -> Vec<(&str, Value)> {
    let mut found = Vec::new();
    let mut before = BTreeSet::new();
    collect(func, &func.body, &mut found, &mut before);
    found.retain(|(_, value)| !before.contains(value) && !func.body.params.contains(value));
    found
}

fn collect<'f>(func: &'f Func, block: &Block, found: &mut Vec<(&'f str, Value)>, before: &mut BTreeSet<Value>) {
    for stmt in &block.stmts {
        stmt.blocks().for_each(|inner| collect(func, inner, found, before));
        for (at, &result) in stmt.results.iter().enumerate() {
            let info = func.info(result);
            let Some(name) = &info.name else { continue };
            // An annotation is a statement of its own, and its operand has the variable's name, too.
            let placement = stmt.op().map(|op| op.rules().properties().placement);
            if let Some(Placement::Requested(_) | Placement::Moved) = placement {
                before.extend(stmt.args.get(at).filter(|arg| func.info(**arg).name.as_ref() == Some(name)));
            }
            let same = |(other, value): &(&str, Value)| other == name && func.info(*value).named == info.named;
            let carried = found.iter().position(same).filter(|_| stmt.is_control());
            match carried {
                Some(at) => found[at].1 = result,
                None => found.push((name, result)),
            }
        }
    }
}
