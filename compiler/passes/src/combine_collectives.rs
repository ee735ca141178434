//! Combines small collectives of one kind between the same devices.
//!
//! ```text
//! let s = all_reduce(v0, P(_));                 let n = print("..");
//! let a = s / 8;                                let (s, t) = all_reduce(v0, v1, to=[P(_), P(_,_)]);
//! print("..");                             =>   let a = s / 8;
//! let t = all_reduce(v1, P(_,_));
//! ```
//!
//! The combined collective is at the position of its last member; statements that need the result of an earlier member move after it.
//! Effects, control flow and other collectives never move, so a group that such a statement needs is closed. Effects keep their order, and
//! chains of collectives their length. The pass runs after all passes that move, share or drop statements.

use spmdc_ir::program::build::statement;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, Value};
use spmdc_layout::cost::HELD_FOR_COMBINING;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_ops::combined::{Combined, Common};
use spmdc_ops::reshard::Reshard;
use std::collections::BTreeMap;

/// Combines collectives, block by block. The module stays at its stage.
pub fn combine_collectives(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Partitioned, "collectives are statements of their own");
    let mut body = std::mem::take(&mut module.func.body);
    let values = module.func.values.len();
    let (func, mesh) = (&module.func, &module.mesh);
    let mut combiner =
        Combiner { func, mesh, groups: Vec::new(), waits: vec![Vec::new(); values], made: vec![false; values] };
    combiner.block(&mut body);
    debug_assert!(!combiner.made.contains(&true), "a value outlives its block");
    module.func.body = body;
    module
}

/// Collectives that may be combined, by their positions in the block.
struct CollectiveGroup {
    common: Common,
    members: Vec<usize>,
    bytes: usize,
    held: usize,
}

impl CollectiveGroup {
    fn last(&self) -> Option<usize> {
        self.members.last().copied().filter(|_| self.members.len() > 1)
    }
}

struct Combiner<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    /// The groups of all blocks.
    groups: Vec<CollectiveGroup>,
    /// For each value, the groups before it that could still grow when it was made.
    waits: Vec<Vec<usize>>,
    /// Values that statements of the block made.
    made: Vec<bool>,
}

impl Combiner<'_> {
    fn block(&mut self, block: &mut Block) {
        block.stmts.iter_mut().flat_map(Stmt::blocks_mut).for_each(|inner| self.block(inner));
        let first = self.groups.len();
        // The groups that may still grow, one of each kind.
        let mut open: Vec<usize> = Vec::new();
        let mut waiting: Vec<(usize, Vec<usize>)> = Vec::new();
        for (at, stmt) in block.stmts.iter().enumerate() {
            let mut waits = self.waits_of(stmt, &open);
            if self.stays(stmt) {
                open.retain(|group| !waits.contains(group));
                waits = self
                    .part(stmt)
                    .map(|(common, bytes)| self.join(at, common, bytes, &mut open))
                    .into_iter()
                    .collect();
            } else if !waits.is_empty() {
                self.hold(stmt, &mut waits, &mut open);
                waiting.push((at, waits.clone()));
            }
            for &result in &stmt.results {
                self.made[result.0 as usize] = true;
                self.waits[result.0 as usize].clone_from(&waits);
            }
        }
        block.stmts.iter().flat_map(|stmt| &stmt.results).for_each(|result| self.made[result.0 as usize] = false);
        if self.groups[first..].iter().any(|group| group.last().is_some()) {
            self.reorder(&mut block.stmts, first, &waiting);
        }
    }

    /// The open groups whose results a statement needs.
    fn waits_of(&self, stmt: &Stmt, open: &[usize]) -> Vec<usize> {
        let mut found = Vec::new();
        let mut visit = |value: Value| {
            for group in &self.waits[value.0 as usize] {
                if open.contains(group) && !found.contains(group) {
                    found.push(*group);
                }
            }
        };
        stmt.args.iter().for_each(|&arg| visit(arg));
        stmt.blocks().for_each(|inner| inner.each_use(&mut visit));
        found
    }

    /// Whether a statement is never moved after others.
    fn stays(&self, stmt: &Stmt) -> bool {
        let Some(op) = stmt.op() else { return true };
        op.has_effect() || op.exchange().is_some()
    }

    /// The properties that collectives must share to be combined, and the larger of the bytes of the operand and the result.
    fn part(&self, stmt: &Stmt) -> Option<(Common, usize)> {
        let op = stmt.as_op::<Reshard>()?;
        let ReshardStep::Collective(kind) = op.step else { return None };
        let from = self.func.ty(stmt.args[0]);
        let bytes = from.block_bytes(self.mesh).max(self.func.ty(stmt.results[0]).block_bytes(self.mesh));
        if bytes > self.mesh.machine.combined_bytes {
            return None;
        }
        Some((Common::of(kind, from, &op.to, self.mesh)?, bytes))
    }

    /// Puts a collective into the group of its kind, or into a new one where that would become too large.
    fn join(&mut self, at: usize, common: Common, bytes: usize, open: &mut Vec<usize>) -> usize {
        if let Some(position) = open.iter().position(|&group| self.groups[group].common == common) {
            let number = open[position];
            let group = &mut self.groups[number];
            if group.bytes + bytes <= self.mesh.machine.combined_bytes {
                debug_assert!(group.members.is_sorted() && group.members.last() < Some(&at), "members come in order");
                group.members.push(at);
                group.bytes += bytes;
                return number;
            }
            open.remove(position);
        }
        self.groups.push(CollectiveGroup { common, members: vec![at], bytes, held: 0 });
        open.push(self.groups.len() - 1);
        self.groups.len() - 1
    }

    /// Counts the operands that a statement keeps alive while it waits for these groups; groups that keep too many bytes alive are
    /// closed.
    fn hold(&mut self, stmt: &Stmt, waits: &mut Vec<usize>, open: &mut Vec<usize>) {
        let is_held =
            |arg: &&Value| self.made[arg.0 as usize] && !self.waits[arg.0 as usize].iter().any(|w| waits.contains(w));
        let bytes: usize = stmt.args.iter().filter(is_held).map(|&arg| self.func.ty(arg).block_bytes(self.mesh)).sum();
        waits.retain(|&group| {
            self.groups[group].held += bytes;
            let grows = self.groups[group].held <= HELD_FOR_COMBINING;
            if !grows {
                open.retain(|&other| other != group);
            }
            grows
        });
    }

    /// Combines the groups from `first` on. Each waiting statement moves after the last of its groups.
    fn reorder(&self, stmts: &mut Vec<Stmt>, first: usize, waiting: &[(usize, Vec<usize>)]) {
        let mut moved = vec![false; stmts.len()];
        let mut behind: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, waits) in waiting {
            let target = waits.iter().filter_map(|&group| self.groups[group].last()).max();
            if let Some(target) = target.filter(|target| target > at) {
                behind.entry(target).or_default().push(*at);
                moved[*at] = true;
            }
        }
        let mut ends: BTreeMap<usize, &CollectiveGroup> = BTreeMap::new();
        for group in &self.groups[first..] {
            if let Some(last) = group.last() {
                group.members.iter().for_each(|&member| moved[member] = member != last);
                ends.insert(last, group);
            }
        }
        let mut before: Vec<Option<Stmt>> = std::mem::take(stmts).into_iter().map(Some).collect();
        for at in 0..before.len() {
            if moved[at] {
                continue;
            }
            match ends.get(&at) {
                Some(group) => {
                    let members = group.members.iter().filter_map(|&member| before[member].take()).collect();
                    stmts.push(self.combined(group.common, members));
                }
                None => stmts.extend(before[at].take()),
            }
            let late = behind.get(&at).into_iter().flatten();
            stmts.extend(late.filter_map(|&late| before[late].take()));
        }
        debug_assert!(before.iter().all(Option::is_none), "a statement is lost");
    }

    /// One statement in place of these collectives, with each of their reasons once and the source position of the first.
    fn combined(&self, common: Common, members: Vec<Stmt>) -> Stmt {
        debug_assert!(members.len() > 1, "one collective alone is combined");
        let mut reasons: Vec<String> = Vec::new();
        for member in &members {
            let reason = self.func.reason(&member.origin);
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        let span = members.first().expect("several are combined").origin.span;
        let origin = Origin::at(span).because(reasons.join("; "));
        let (mut to, mut args, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for member in members {
            if let Some(op) = member.as_op::<Reshard>() {
                to.push(op.to.clone());
            }
            args.extend(member.args);
            results.extend(member.results);
        }
        debug_assert_eq!(to.len(), results.len(), "each result has its layout");
        statement(self.func, self.mesh, (Combined { kind: common.kind, to }, &args), &results, &origin)
    }
}
