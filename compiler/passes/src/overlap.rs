//! Moves independent work between the definition of a collective's operand and the collective.
//!
//! ```text
//! let v1 = einsum("ik,kj->ij", x, w);            let v1 = einsum("ik,kj->ij", x, w);
//! let v2 = all_reduce(v1, P(_,_));               let v3 = einsum("ik,kj->ij", y, w);
//! let v3 = einsum("ik,kj->ij", y, w);     =>     let v2 = all_reduce(v1, P(_,_));
//! let v4 = v2 * v3;                              let v4 = v2 * v3;
//! ```
//!
//! A device posts its arrival at a collective as soon as the operand is computed, and awaits the others at the collective itself
//! (`plan_memory`); statements in between run meanwhile. A collective therefore moves to its first user, and if that follows at
//! once, one later piece of work that does not need the collective moves before it. Both are limited in memory: a collective stays
//! where it is if holding its operand instead of its result would take more than [`HELD_FOR_OVERLAP`] bytes, and so does work with
//! larger results.
//!
//! Statements with an effect stay in order; no statement that may stop the program moves, and none moves into or out of a loop or
//! branch.

use crate::contract;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, Value};
use spmdc_layout::cost::HELD_FOR_OVERLAP;
use spmdc_layout::mesh::Mesh;

/// Number of statements after a collective's first user that are searched for work.
const WINDOW: usize = 32;

/// Reorders the statements of every block. The module stays at its stage.
pub fn overlap(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Partitioned, "collectives are statements of their own");
    let mut body = std::mem::take(&mut module.func.body);
    let statements = contract::statements(&body);
    let mut maker = vec![usize::MAX; module.func.values.len()];
    reorder(&mut body, &module.func, &module.mesh, &mut maker);
    debug_assert_eq!(contract::statements(&body), statements, "only the order changes");
    module.func.body = body;
    module
}

fn reorder(block: &mut Block, func: &Func, mesh: &Mesh, maker: &mut [usize]) {
    for stmt in &mut block.stmts {
        stmt.blocks_mut().for_each(|inner| reorder(inner, func, mesh, maker));
    }
    if !block.stmts.iter().any(|stmt| func.collective(stmt, mesh).is_some()) {
        return;
    }
    let order = StmtOrder::new(block, func, mesh, maker).run();
    debug_assert_eq!(order.len(), block.stmts.len(), "every statement is placed");
    let mut stmts: Vec<Option<Stmt>> = std::mem::take(&mut block.stmts).into_iter().map(Some).collect();
    block.stmts = order.into_iter().filter_map(|at| stmts[at].take()).collect();
    debug_assert_eq!(block.stmts.len(), stmts.len(), "a statement is placed twice");
}

/// The new order of a block's statements, by their old positions.
struct StmtOrder<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    stmts: &'a [Stmt],
    /// For each statement, the statements of this block that it needs or must not pass.
    needs: Vec<Vec<usize>>,
    placed: Vec<bool>,
    order: Vec<usize>,
}

impl<'a> StmtOrder<'a> {
    /// `maker` has an entry for each value; entries of values of sibling blocks are arbitrary.
    fn new(block: &'a Block, func: &'a Func, mesh: &'a Mesh, maker: &mut [usize]) -> StmtOrder<'a> {
        let stmts = block.stmts.as_slice();
        for (at, stmt) in stmts.iter().enumerate() {
            stmt.results.iter().for_each(|result| maker[result.0 as usize] = at);
        }
        let mut effect = None;
        let needs = stmts.iter().enumerate().map(|(at, stmt)| {
            let mut needs = Vec::new();
            let mut need = |value: Value| {
                let of = maker[value.0 as usize];
                // `maker` knows nothing of values of inner and enclosing blocks.
                if of < at && stmts[of].results.contains(&value) && !needs.contains(&of) {
                    needs.push(of);
                }
            };
            stmt.args.iter().for_each(|&arg| need(arg));
            stmt.blocks().for_each(|inner| inner.each_use(&mut need));
            if is_fixed(stmt) {
                needs.extend(effect.replace(at));
            }
            needs
        });
        let needs = needs.collect();
        StmtOrder { func, mesh, stmts, needs, placed: vec![false; stmts.len()], order: Vec::with_capacity(stmts.len()) }
    }

    fn run(mut self) -> Vec<usize> {
        let mut waiting = Vec::new();
        for at in 0..self.stmts.len() {
            if self.placed[at] {
                continue;
            }
            if self.may_wait(at) {
                waiting.push(at);
                continue;
            }
            if self.needs[at].iter().any(|&need| !self.placed[need]) {
                let work = self.independent(at);
                work.into_iter().for_each(|work| self.place(work));
            }
            self.place(at);
        }
        waiting.into_iter().for_each(|at| self.place(at));
        debug_assert!(self.is_sound(), "a statement stands before what it needs");
        self.order
    }

    /// Whether each statement comes after the statements that it needs.
    fn is_sound(&self) -> bool {
        let mut seen = vec![false; self.stmts.len()];
        self.order.iter().all(|&at| {
            seen[at] = true;
            self.needs[at].iter().all(|&need| seen[need])
        })
    }

    fn place(&mut self, at: usize) {
        if self.placed[at] {
            return;
        }
        self.placed[at] = true;
        for need in self.needs[at].clone() {
            self.place(need);
        }
        self.order.push(at);
    }

    fn communicates(&self, stmt: &Stmt) -> bool {
        self.func.collective(stmt, self.mesh).is_some()
    }

    fn bytes(&self, values: &[Value]) -> usize {
        values.iter().map(|&value| self.func.ty(value).block_bytes(self.mesh)).sum()
    }

    /// Whether this is a collective that may move later.
    fn may_wait(&self, at: usize) -> bool {
        let stmt = &self.stmts[at];
        !is_fixed(stmt)
            && self.communicates(stmt)
            && self.bytes(&stmt.args) <= self.bytes(&stmt.results) + HELD_FOR_OVERLAP
    }

    /// The next piece of work that needs no waiting collective, together with the statements that it needs.
    fn independent(&self, user: usize) -> Vec<usize> {
        let end = self.stmts.len().min(user + 1 + WINDOW);
        (user + 1..end).filter(|&at| self.is_worthwhile(at)).find_map(|at| self.movable(at, user)).unwrap_or_default()
    }

    fn is_worthwhile(&self, at: usize) -> bool {
        let stmt = &self.stmts[at];
        let ([result], Some(op)) = (stmt.results.as_slice(), stmt.op()) else { return false };
        if self.placed[at] || op.is_pointwise() {
            return false;
        }
        let ty = self.func.ty(*result);
        let blocks = self.mesh.size_of_set(ty.distinct_axes()).max(1) as u64;
        self.func.flops(stmt) / blocks >= self.mesh.machine.overlapped_operations
    }

    /// The statement and the statements that it needs, in order, if all of them may move before `user`.
    fn movable(&self, at: usize, user: usize) -> Option<Vec<usize>> {
        let mut found = vec![at];
        let mut next = 0;
        while let Some(&at) = found.get(next) {
            next += 1;
            let stmt = &self.stmts[at];
            if is_fixed(stmt) || self.func.may_stop(stmt) || self.communicates(stmt) {
                return None;
            }
            for &need in self.needs[at].iter().filter(|&&need| !self.placed[need]) {
                if need <= user {
                    return None;
                }
                if !found.contains(&need) {
                    found.push(need);
                }
            }
        }
        found.sort_unstable();
        debug_assert!(found.iter().all(|&at| at > user && !self.placed[at]), "only later work moves before {user}");
        let held: usize = found.iter().map(|&at| self.bytes(&self.stmts[at].results)).sum();
        (held <= HELD_FOR_OVERLAP).then_some(found)
    }
}

/// Whether a statement stays in order: it has an effect, or may contain a statement that has.
fn is_fixed(stmt: &Stmt) -> bool {
    stmt.is_control() || stmt.has_effect() || stmt.results.is_empty()
}
