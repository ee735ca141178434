//! Dead code elimination: removes statements whose results are not used.
//!
//! ```text
//! let a = exp(x);  let b = x + 1;  b      =>      let b = x + 1;  b
//! ```
//!
//! Statements with an effect stay, and so does control flow around one. Results of control flow that are not used go, with what a loop
//! carries for them alone.

use crate::contract;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Block, Module, Stmt, StmtKind, Value};

/// Removes statements that have neither a use nor an effect.
pub fn dce(mut module: Module) -> Module {
    let signature = contract::signature(&module);
    let mut needed = vec![false; module.func.values.len()];
    sweep(&mut module.func.body, &mut needed);
    debug_assert_eq!(
        contract::count(&module.func.body, |stmt| !has_effect(stmt)
            && !stmt.results.iter().any(|result| needed[result.0 as usize])),
        0,
        "a dead statement stays"
    );
    debug_assert_eq!(signature, contract::signature(&module), "the program takes and gives other arrays");
    module
}

/// Goes backward through a block: the values that its results and its remaining statements use are needed.
fn sweep(block: &mut Block, needed: &mut [bool]) {
    block.results.iter().for_each(|result| needed[result.0 as usize] = true);
    let mut kept = Vec::new();
    for mut stmt in std::mem::take(&mut block.stmts).into_iter().rev() {
        if !has_effect(&stmt) && !stmt.results.iter().any(|result| needed[result.0 as usize]) {
            continue;
        }
        prune(&mut stmt, needed);
        stmt.args.iter().for_each(|arg| needed[arg.0 as usize] = true);
        stmt.blocks_mut().for_each(|inner| sweep(inner, needed));
        kept.push(stmt);
    }
    kept.reverse();
    block.stmts = kept;
}

/// Removes results of control flow that are not needed, with what a loop carries for them.
fn prune(stmt: &mut Stmt, needed: &[bool]) {
    let is_needed = |value: &Value| needed[value.0 as usize];
    let mut keeps: Vec<bool> = stmt.results.iter().map(is_needed).collect();
    let (args, results) = (&mut stmt.args, &mut stmt.results);
    let StmtKind::Control(control) = &mut stmt.kind else { return };
    match control {
        Control::Branch(op) => {
            retain(&mut op.then.results, &keeps);
            retain(&mut op.otherwise.results, &keeps);
        }
        Control::Manual(region) => {
            retain(&mut region.body.results, &keeps);
            retain(&mut region.outputs, &keeps);
        }
        Control::For(op) => {
            let (bounds, carries) = (op.bounds(), op.body.params.len() - 1);
            carried(&[&op.body], &op.body, &op.body.params[1..], &mut keeps, needed);
            op.collected = keeps[carries..].iter().filter(|keep| **keep).count();
            let own = &keeps[..carries];
            let around = |count: usize| [vec![true; count].as_slice(), own].concat();
            retain(&mut op.body.params, &around(1));
            retain(args, &around(bounds));
            retain(&mut op.body.results, &keeps);
        }
        Control::While(op) => {
            carried(&[&op.cond, &op.body], &op.body, &op.body.params, &mut keeps, needed);
            // A condition has parameters of its own for the same values.
            retain(&mut op.cond.params, &keeps);
            retain(&mut op.body.params, &keeps);
            retain(args, &keeps);
            retain(&mut op.body.results, &keeps);
        }
    }
    retain(results, &keeps);
}

fn retain<T>(items: &mut Vec<T>, keeps: &[bool]) {
    debug_assert_eq!(items.len(), keeps.len(), "each is kept or not");
    let mut keep = keeps.iter();
    items.retain(|_| keep.next() == Some(&true));
}

/// Keeps the carried values, too, on which the kept results of a loop depend, or what its blocks do besides.
fn carried(blocks: &[&Block], body: &Block, params: &[Value], keeps: &mut [bool], needed: &[bool]) {
    while keeps.contains(&false) {
        let mut inside = needed.to_vec();
        let mut used = vec![false; params.len()];
        for block in blocks {
            let is_body = std::ptr::eq(*block, body);
            let mut block = (*block).clone();
            if is_body {
                retain(&mut block.results, keeps);
            }
            let own = block.params[block.params.len() - params.len()..].to_vec();
            sweep(&mut block, &mut inside);
            for (used, param) in used.iter_mut().zip(own) {
                *used |= inside[param.0 as usize];
            }
        }
        let more: Vec<usize> = (0..params.len()).filter(|&at| used[at] && !keeps[at]).collect();
        if more.is_empty() {
            return;
        }
        more.into_iter().for_each(|at| keeps[at] = true);
    }
}

fn has_effect(stmt: &Stmt) -> bool {
    stmt.has_effect() || stmt.blocks().any(|block| block.stmts.iter().any(has_effect))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::testing::typed;
    use spmdc_ir::print::module;

    #[test]
    fn only_what_is_needed_or_has_an_effect_stays() {
        let before = typed(
            "fn main(x: f32[4]) { let a = exp(x); let b = x + x; print(\"{}\", sum(x)); for i in 0..3 { let c = sin(x); } b }",
        );
        let text = module(&super::dce(before));
        assert!(!text.contains("exp") && !text.contains("for"), "{text}");
        assert!(text.contains("print") && text.contains("sum"), "{text}");
    }
}
