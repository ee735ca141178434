//! Dead code elimination: removes statements whose results are not used.
//!
//! ```text
//! let a = exp(x);  let b = x + 1;  b      =>      let b = x + 1;  b
//! ```
//!
//! Statements with an effect stay, and so does control flow around one. Unused results of control flow are removed, with the carried values
//! of a loop that only they need.

use crate::contract;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Block, Module, Stmt, StmtKind, Value};

/// Removes statements that have neither a use nor an effect.
pub fn dce(mut module: Module) -> Module {
    let mut needs = Needs::new(module.func.values.len());
    needs.block(&module.func.body);
    let needed = needs.found(&module.func.body.results);
    sweep(&mut module.func.body, &needed);
    debug_assert_eq!(
        contract::count(&module.func.body, |stmt| !has_effect(stmt)
            && !stmt.results.iter().any(|result| needed[result.0 as usize])),
        0,
        "a dead statement stays"
    );
    module
}

/// The values that each value needs. The values of a loop need each other in a circle, so they are found by reachability.
struct Needs {
    of: Vec<Vec<Value>>,
    /// The values that are needed in any case.
    always: Vec<Value>,
}

impl Needs {
    fn new(values: usize) -> Needs {
        Needs { of: vec![Vec::new(); values], always: Vec::new() }
    }

    fn each(&mut self, values: &[Value], needed: &[Value]) {
        for value in values {
            self.of[value.0 as usize].extend(needed);
        }
    }

    /// Each value needs those at its position.
    fn pairs(&mut self, values: &[Value], needed: &[Value]) {
        for (value, needed) in values.iter().zip(needed) {
            self.of[value.0 as usize].push(*needed);
        }
    }

    fn block(&mut self, block: &Block) {
        for stmt in &block.stmts {
            // What the statement needs as a whole, whichever of its results is needed.
            let mut whole: Vec<Value> = Vec::new();
            match &stmt.kind {
                StmtKind::Op(_) => whole.extend(&stmt.args),
                StmtKind::Control(Control::Branch(op)) => {
                    whole.extend(&stmt.args);
                    self.pairs(&stmt.results, &op.then.results);
                    self.pairs(&stmt.results, &op.otherwise.results);
                }
                StmtKind::Control(Control::Manual(region)) => {
                    whole.extend(&stmt.args);
                    self.pairs(&stmt.results, &region.body.results);
                }
                StmtKind::Control(Control::For(op)) => {
                    let (bounds, starts) = stmt.args.split_at(op.bounds());
                    whole.extend(bounds);
                    self.pairs(&stmt.results, &op.body.results);
                    for carried in [&stmt.results[..starts.len()], &op.body.params[1..]] {
                        self.pairs(carried, starts);
                        self.pairs(carried, &op.body.results);
                    }
                }
                StmtKind::Control(Control::While(op)) => {
                    whole.extend(&op.cond.results);
                    for carried in [&stmt.results, &op.cond.params, &op.body.params] {
                        self.pairs(carried, &stmt.args);
                        self.pairs(carried, &op.body.results);
                    }
                }
            }
            self.each(&stmt.results, &whole);
            if has_effect(stmt) {
                self.always.extend(whole);
            }
            stmt.blocks().for_each(|inner| self.block(inner));
        }
    }

    /// Whether each value is needed for some results.
    fn found(mut self, results: &[Value]) -> Vec<bool> {
        let mut needed = vec![false; self.of.len()];
        let mut waiting = std::mem::take(&mut self.always);
        waiting.extend(results);
        while let Some(value) = waiting.pop() {
            if !std::mem::replace(&mut needed[value.0 as usize], true) {
                waiting.append(&mut self.of[value.0 as usize]);
            }
        }
        needed
    }
}

/// Removes unneeded statements from a block.
fn sweep(block: &mut Block, needed: &[bool]) {
    block.stmts.retain(|stmt| has_effect(stmt) || stmt.results.iter().any(|result| needed[result.0 as usize]));
    for stmt in &mut block.stmts {
        prune(stmt, needed);
        stmt.blocks_mut().for_each(|inner| sweep(inner, needed));
    }
}

/// Removes unneeded results of control flow, and the carried values of a loop that only they need.
fn prune(stmt: &mut Stmt, needed: &[bool]) {
    let is_needed = |value: &Value| needed[value.0 as usize];
    let mut keeps: Vec<bool> = stmt.results.iter().map(is_needed).collect();
    let (args, results) = (&mut stmt.args, &mut stmt.results);
    let StmtKind::Control(control) = &mut stmt.kind else { return };
    // A carried value stays where the loop itself needs it.
    let carry = |keeps: &mut [bool], params: &[Value]| {
        keeps.iter_mut().zip(params).for_each(|(keep, param)| *keep |= is_needed(param));
    };
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
            carry(&mut keeps[..carries], &op.body.params[1..]);
            op.collected = keeps[carries..].iter().filter(|keep| **keep).count();
            let own = &keeps[..carries];
            let around = |count: usize| [vec![true; count].as_slice(), own].concat();
            retain(&mut op.body.params, &around(1));
            retain(args, &around(bounds));
            retain(&mut op.body.results, &keeps);
        }
        Control::While(op) => {
            carry(&mut keeps, &op.cond.params);
            carry(&mut keeps, &op.body.params);
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

fn has_effect(stmt: &Stmt) -> bool {
    stmt.has_effect() || stmt.blocks().any(|block| block.stmts.iter().any(has_effect))
}
