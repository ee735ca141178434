//! Dead code elimination: removes statements whose results are not used.
//!
//! ```text
//! let a = exp(x);  let b = x + 1;  b      =>      let b = x + 1;  b
//! ```
//!
//! Statements with an effect stay, and so does control flow around one.

use crate::contract;
use spmdc_ir::program::{Block, Module, Stmt};

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
        stmt.args.iter().for_each(|arg| needed[arg.0 as usize] = true);
        stmt.blocks_mut().for_each(|inner| sweep(inner, needed));
        kept.push(stmt);
    }
    kept.reverse();
    block.stmts = kept;
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
