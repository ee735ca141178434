//! Loop-invariant code motion of collectives: moves a collective whose operand is the same in every trip out of the loop, with the
//! computations that it needs.
//!
//! ```text
//! for i in 0..10 {                          let v2 = w * w;
//!   let v2 = w * w;                         let v3 = all_gather(v2, P(_,_));
//!   let v3 = all_gather(v2, P(_,_));   =>   for i in 0..10 {
//!   ..                                        ..
//! }                                         }
//! ```
//!
//! Only the computations that a collective needs move: others may be fused into their users, and would need memory before the loop. If
//! memory is limited ([`Room::Scarce`]), no gather leaves a loop, because its result would be held through all trips.
//!
//! No statement leaves a branch, which may not be taken, or a loop known never to run; no statement with an effect moves. A statement that
//! may stop the program, such as a division of integers, leaves a loop only if the loop is known to run. In addition, no statement that has
//! an effect or may stop the program may come before it and stay.

use spmdc_ir::program::control::Control;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_layout::cost::Room;
use spmdc_layout::mesh::Mesh;

/// Hoists collectives, from the innermost loop outwards. The module stays at its stage.
pub fn hoist(mut module: Module, room: Room) -> Module {
    debug_assert_eq!(module.stage, Stage::Partitioned, "only collectives leave loops, with their operands");
    let mut body = std::mem::take(&mut module.func.body);
    let before = body.stmts.len();
    let mut varies = vec![false; module.func.values.len()];
    let mut hoister = Hoister { func: &module.func, mesh: &module.mesh, room, varies: &mut varies };
    hoister.block(&mut body);
    debug_assert!(body.stmts.len() >= before, "a statement is lost on the way out of a loop");
    debug_assert!(!varies.contains(&true), "a loop that has been left still counts");
    module.func.body = body;
    module
}

struct Hoister<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    room: Room,
    /// Values that are defined in the current loop, except those that leave it.
    varies: &'a mut [bool],
}

impl Hoister<'_> {
    fn block(&mut self, block: &mut Block) {
        let mut stmts = Vec::new();
        for mut stmt in std::mem::take(&mut block.stmts) {
            stmt.blocks_mut().for_each(|inner| self.block(inner));
            // For each block, whether it is known to run; none of a statement whose blocks nothing leaves.
            let runs = match &stmt.kind {
                StmtKind::Control(Control::For(op)) => match op.trips() {
                    Some(0) => &[][..],
                    Some(_) => &[true],
                    None => &[false],
                },
                // The condition, and the body.
                StmtKind::Control(Control::While(_)) => &[true, false],
                StmtKind::Control(Control::Branch(_) | Control::Manual(_)) | StmtKind::Op(_) => &[],
            };
            if !runs.is_empty() {
                debug_assert_eq!(stmt.blocks().count(), runs.len(), "it is known of every block whether it runs");
                stmt.blocks().for_each(|inner| self.mark(inner, true));
                for (inner, &runs) in stmt.blocks_mut().zip(runs) {
                    stmts.extend(self.leaving(inner, runs));
                }
                stmt.blocks().for_each(|inner| self.mark(inner, false));
            }
            stmts.push(stmt);
        }
        block.stmts = stmts;
    }

    fn mark(&mut self, block: &Block, varies: bool) {
        block.params.iter().for_each(|param| self.varies[param.0 as usize] = varies);
        for stmt in &block.stmts {
            stmt.results.iter().for_each(|result| self.varies[result.0 as usize] = varies);
            stmt.blocks().for_each(|inner| self.mark(inner, varies));
        }
    }

    /// Whether the statement, or one in its blocks, acts or may stop the program.
    fn acts(&self, stmt: &Stmt) -> bool {
        stmt.has_effect()
            || self.func.may_stop(stmt)
            || stmt.blocks().flat_map(|block| &block.stmts).any(|s| self.acts(s))
    }

    /// The statements that leave a block of a loop; `runs` says whether it is known to run.
    fn leaving(&mut self, body: &mut Block, runs: bool) -> Vec<Stmt> {
        // Statements from here on that may stop the program stay.
        let mut limit = if runs { body.stmts.len() } else { 0 };
        let same = loop {
            let same = self.same(body, limit);
            let acts = |at: &usize| self.acts(&body.stmts[*at]);
            let Some(staying) = (0..limit).find(|at| !same[*at] && acts(at)) else { break same };
            if !(staying..limit).any(|at| same[at] && acts(&at)) {
                break same;
            }
            limit = staying;
        };
        if !same.contains(&true) {
            return Vec::new();
        }
        let mut at = same.into_iter();
        body.stmts.extract_if(.., |_| at.next() == Some(true)).collect()
    }

    /// Whether a collective gives a device more bytes than it takes.
    fn gathers(&self, stmt: &Stmt) -> bool {
        let bytes = |values: &[Value]| -> usize {
            values.iter().map(|&value| self.func.ty(value).block_bytes(self.mesh)).sum()
        };
        self.func.collective(stmt, self.mesh).is_some() && bytes(&stmt.results) > bytes(&stmt.args)
    }

    /// For each statement, whether it is a collective or needed by one, and is the same in every trip. From `limit` on, no statement that
    /// may stop the program qualifies.
    fn same(&mut self, body: &Block, limit: usize) -> Vec<bool> {
        let mut same = vec![false; body.stmts.len()];
        for (at, stmt) in body.stmts.iter().enumerate() {
            let movable = !stmt.is_control() && !stmt.has_effect() && !stmt.results.is_empty();
            let stays = at >= limit && self.func.may_stop(stmt) || self.room == Room::Scarce && self.gathers(stmt);
            same[at] = movable && !stays && !stmt.args.iter().any(|arg| self.varies[arg.0 as usize]);
            stmt.results.iter().for_each(|result| self.varies[result.0 as usize] = !same[at]);
        }
        let mut needed = Vec::new();
        for (at, stmt) in body.stmts.iter().enumerate().rev() {
            let is_needed = stmt.results.iter().any(|result| needed.contains(result));
            same[at] &= is_needed || self.func.collective(stmt, self.mesh).is_some();
            match same[at] {
                true => needed.extend(&stmt.args),
                false => stmt.results.iter().for_each(|result| self.varies[result.0 as usize] = true),
            }
        }
        same
    }
}
