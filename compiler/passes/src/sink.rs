//! Moves pointwise statements into the only side of an `if` that needs them.
//!
//! ```text
//! let row = x[t];  let s = sum(row);                let s = sum(x[t]);
//! let b = if s > a { row } else { best };      =>   let b = if s > a { x[t] } else { best };
//! ```
//!
//! A statement that only one side needs does not run if the other side is taken. A result that is a view, such as a row or a transpose, is
//! taken in its side again: the side reads the elements in place, and its other uses need no array in memory. Statements that have an
//! effect or may stop the program do not move.

use crate::contract;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_ir::rules::Elements;
use std::collections::{BTreeMap, BTreeSet};

/// Sinks statements into branches, outer ones first. The module stays at its stage.
pub fn sink(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Partitioned, "collectives are statements of their own");
    let mut body = std::mem::take(&mut module.func.body);
    let mut uses = Uses::new();
    body.each_use(&mut |value| *uses.entry(value).or_default() += 1);
    let statements = contract::statements(&body);
    Sinker { func: &mut module.func, uses }.block(&mut body);
    // A view is taken again in each side.
    debug_assert!(contract::statements(&body) >= statements, "a statement is lost on the way into a side");
    module.func.body = body;
    module
}

/// For each value the number of its uses.
type Uses = BTreeMap<Value, usize>;

struct Sinker<'a> {
    func: &'a mut Func,
    /// The uses in the whole function.
    uses: Uses,
}

impl Sinker<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut own: BTreeSet<Value> = block.params.iter().copied().collect();
        own.extend(block.stmts.iter().flat_map(|stmt| &stmt.results));
        let mut stmts: Vec<Option<Stmt>> = std::mem::take(&mut block.stmts).into_iter().map(Some).collect();
        for at in (0..stmts.len()).rev() {
            let (before, rest) = stmts.split_at_mut(at);
            let Some(stmt) = &mut rest[0] else { continue };
            if let StmtKind::Control(Control::Branch(_)) = stmt.kind {
                stmt.blocks_mut().for_each(|side| self.sink_into(side, before, &own));
            }
            stmt.blocks_mut().for_each(|inner| self.block(inner));
        }
        block.stmts = stmts.into_iter().flatten().collect();
    }

    /// Moves the statements before the branch that only this side needs into it; `own` are the values of their block.
    fn sink_into(&mut self, side: &mut Block, before: &mut [Option<Stmt>], own: &BTreeSet<Value>) {
        let mut inside = Uses::new();
        side.each_use(&mut |value| *inside.entry(value).or_default() += 1);
        // The values that statements between this one and the branch use.
        let mut between = BTreeSet::new();
        let mut sunk: Vec<Stmt> = Vec::new();
        for place in before.iter_mut().rev() {
            let Some(stmt) = place else { continue };
            // A value that another statement uses later may be changed there in its place: it must not be needed afterwards.
            let stays_whole =
                |arg: &Value| !own.contains(arg) || self.func.ty(*arg).rank() == 0 || !between.contains(arg);
            let needed = stmt.results.first().and_then(|result| inside.get(result)).copied().unwrap_or(0);
            let moves = needed > 0 && self.is_silent(stmt) && stmt.args.iter().all(stays_whole);
            let result = stmt.results.first().copied();
            let moved = match result {
                Some(result) if moves && needed == self.uses[&result] => place.take(),
                Some(result) if moves && side.results.contains(&result) && is_view(stmt) => {
                    Some(self.again(stmt, needed, (&mut *side, &mut sunk)))
                }
                Some(_) | None => None,
            };
            if let Some(stmt) = place {
                between.extend(stmt.args.iter().copied());
                stmt.blocks().for_each(|block| {
                    block.each_use(&mut |value| {
                        between.insert(value);
                    })
                });
            }
            if let Some(stmt) = moved {
                stmt.args.iter().for_each(|&arg| *inside.entry(arg).or_default() += 1);
                sunk.push(stmt);
            }
        }
        sunk.reverse();
        debug_assert!(sunk.iter().all(|stmt| self.is_silent(stmt)), "a statement that acts stays");
        side.stmts.splice(0..0, sunk);
    }

    /// Whether a statement computes one pointwise value, and neither acts nor may stop the program.
    fn is_silent(&self, stmt: &Stmt) -> bool {
        let pointwise = stmt.op().is_some_and(|op| op.is_pointwise() && op.rules().properties().group().is_none());
        pointwise && stmt.results.len() == 1 && !stmt.has_effect() && !self.func.may_stop(stmt)
    }

    /// The statement with a new result, which the side uses instead.
    fn again(&mut self, stmt: &Stmt, needed: usize, (side, sunk): (&mut Block, &mut Vec<Stmt>)) -> Stmt {
        let old = stmt.results[0];
        debug_assert!(needed < self.uses[&old], "a value with no other use is moved");
        let new = self.func.new_like(old);
        let rename = |value: &mut Value| {
            if *value == old {
                *value = new;
            }
        };
        side.each_use_mut(&mut { rename });
        sunk.iter_mut().flat_map(|stmt| &mut stmt.args).for_each(rename);
        *self.uses.entry(old).or_default() -= needed;
        self.uses.insert(new, needed);
        stmt.args.iter().for_each(|&arg| *self.uses.entry(arg).or_default() += 1);
        Stmt { results: vec![new], ..stmt.clone() }
    }
}

/// Whether the result has elements of the operand at other places, and no work.
fn is_view(stmt: &Stmt) -> bool {
    let Some(op) = stmt.op() else { return false };
    match op.rules().properties().elements {
        Elements::Repeated | Elements::Moved | Elements::Window(_) | Elements::Chosen(_) => true,
        Elements::Literal(_)
        | Elements::Counted
        | Elements::Drawn
        | Elements::Rows
        | Elements::Framed(_)
        | Elements::Ordered(_)
        | Elements::Elementwise
        | Elements::Negated
        | Elements::Transferred(_)
        | Elements::Other => false,
    }
}
