//! Combines small collectives of one kind between the same devices.
//!
//! ```text
//! let s = all_reduce(v0, P(_));                 let n = print("..");
//! let a = s / 8;                                let (s, t) = all_reduce(v0, v1, to=[P(_), P(_,_)]);
//! print("..");                             =>   let a = s / 8;
//! let t = all_reduce(v1, P(_,_));
//! ```
//!
//! The combined collective stands at the position of its last member; statements that need the result of an earlier member move
//! after it. Effects, control flow and other collectives never move, so a group that such a statement needs is closed. Effects keep
//! their order, and chains of collectives their length. The pass runs after all passes that move, share or drop statements.

use crate::contract;
use spmdc_ir::cost::HELD_FOR_COMBINING;
use spmdc_ir::layout::mesh::Mesh;
use spmdc_ir::ops::Op;
use spmdc_ir::ops::combined::{Combined, Common};
use spmdc_ir::program::build::statement;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Block, Func, Module, Stmt, StmtKind, Value};
use spmdc_ir::reshard::step::ReshardStep;
use std::collections::BTreeMap;

/// Combines collectives, block by block. The module stays at its stage.
pub fn combine_collectives(mut module: Module) -> Module {
    let signature = contract::signature(&module);
    let mut body = std::mem::take(&mut module.func.body);
    let values = module.func.values.len();
    let (func, mesh) = (&module.func, &module.mesh);
    let mut combiner =
        Combiner { func, mesh, groups: Vec::new(), waits: vec![Vec::new(); values], made: vec![false; values] };
    combiner.block(&mut body);
    debug_assert!(!combiner.made.contains(&true), "a value outlives its block");
    module.func.body = body;
    debug_assert_eq!(signature, contract::signature(&module), "the program takes and gives other arrays");
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
        let Some(Op::Reshard(op)) = stmt.op() else { return None };
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
            if let StmtKind::Op(Op::Reshard(op)) = member.kind {
                to.push(op.to);
            }
            args.extend(member.args);
            results.extend(member.results);
        }
        debug_assert_eq!(to.len(), results.len(), "each result has its layout");
        statement(self.func, self.mesh, (Combined { kind: common.kind, to }, &args), &results, &origin)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use spmdc_check::sources::{NoSources, SourceSet};
    use spmdc_compiler::pipeline::{Options, compile};
    use spmdc_compiler::report::plan::collectives;
    use spmdc_ir::print::module;
    use spmdc_ir::program::Stage;

    const PARAMS: &str = "x: f32[8@Y, 16@_], y: f32[8@Y, 32@_], z: f32[8@X, 64@_], n: i32[8@Y]";

    /// The program on X = 2, Y = 4 at stage `optimized`: its text, and the bytes of its collectives.
    fn optimized(params: &str, body: &str) -> (String, Vec<u64>) {
        let source = format!("mesh (X = 2, Y = 4);\nfn main({params}) {{ {body} }}");
        let (set, diagnostics) = SourceSet::load("test.spmd", &source, &NoSources);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let compilation = compile(&set, &Options::default()).unwrap();
        let optimized = compilation.stage(Stage::Optimized).unwrap();
        let bytes = collectives(optimized).iter().map(|found| found.bytes).collect();
        (module(optimized), bytes)
    }

    fn bytes(body: &str) -> Vec<u64> {
        optimized(PARAMS, body).1
    }

    #[test]
    fn independent_sums_are_one() {
        let (text, found) = optimized(PARAMS, "(sum(x, axis=0), sum(y, axis=0))");
        assert_eq!(found, [64 + 128], "{text}");
        assert!(text.contains("all_reduce(v0, v1, to=[P(_), P(_)])"), "{text}");
        assert_eq!(bytes("(max(x, axis=0), 2 * sum(x), max(y), sum(y))"), [4 + 4, 64 + 4]);
        let gathers = "(reshard(x, P()), reshard(2 * y, P()))";
        assert_eq!(bytes(gathers), [128 + 256]);
    }

    #[test]
    fn what_differs_or_depends_stays_apart() {
        assert_eq!(bytes("(sum(x, axis=0), sum(z, axis=0))"), [64, 256]);
        assert_eq!(bytes("(sum(x, axis=0), max(y, axis=0))"), [64, 128]);
        assert_eq!(bytes("(sum(x, axis=0), sum(n))"), [64, 4]);
        assert_eq!(bytes("let s = sum(x, axis=0); sum(x * s * s)"), [64, 4]);
        // Blocks move to other devices, then they are gathered.
        let (text, _) = optimized(PARAMS, "(reshard(x, P(X)), reshard(y, P(X)))");
        assert_eq!(
            [text.matches("collective_permute(").count(), text.matches("all_gather(").count()],
            [2, 1],
            "{text}"
        );
    }

    #[test]
    fn levels_of_two_chains_are_combined() {
        let body = "let a = sum(x, axis=0); let c = a * a + 1; let b = sum(y, axis=0); let d = b * b;
            (sum(x * c, axis=0), sum(y * d, axis=0))";
        let (text, found) = optimized(PARAMS, body);
        assert_eq!(found, [192, 192], "{text}");
        // The statement that needs the first sum has moved after both.
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("no {what} in {text}"));
        assert!(place("all_reduce(") < place("let c:") && place("let c:") < place("let d:"), "{text}");
        // An existing chain ends first.
        let body = "let a = sum(x, axis=0); let c = sum(x * a * a, axis=0); (c, sum(y, axis=0))";
        assert_eq!(bytes(body), [64, 192]);
    }

    #[test]
    fn effects_keep_their_order() {
        let (text, found) =
            optimized(PARAMS, "let a = sum(x); print(\"one\"); let b = sum(y); print(\"{} {}\", a, b); a");
        assert_eq!(found, [8], "{text}");
        assert!(text.find("one") < text.find("all_reduce"), "{text}");
        assert_eq!(bytes("let a = sum(x); print(\"{}\", a); let b = sum(y); print(\"{}\", b); a"), [4, 4]);
        assert_eq!(bytes("let a = sum(x); if a > 0 { print(\"more\"); } (a, sum(y))"), [4, 4]);
    }

    #[test]
    fn blocks_keep_their_own() {
        let body = "let mut s = 0.0; let mut t = 0.0;
            for i in 0..3 { s = sum(x * s); t = sum(y * t) + 1; } (s, t, sum(x), sum(y))";
        let (text, found) = optimized(PARAMS, body);
        assert_eq!(found, [8, 8], "{text}");
        // The loop needs the first sum.
        let body = "let mut s = sum(x); for i in 0..3 { s = s * s; } (s, sum(y))";
        assert_eq!(bytes(body), [4, 4]);
    }

    #[test]
    fn large_ones_gain_nothing() {
        let params = |columns: usize| format!("x: f32[8@Y, {columns}@_], y: f32[8@Y, {columns}@_]");
        let body = "(sum(x, axis=0), sum(y, axis=0), sum(2 * x + y, axis=0))";
        assert_eq!(optimized(&params(8192), body).1, [64 << 10, 32 << 10]);
        assert_eq!(optimized(&params(8193), body).1, [4 * 8193; 3]);
        let gathers = "(reshard(x, P()), reshard(y, P()))";
        assert_eq!(optimized(&params(1024), gathers).1, [16 << 10]);
        assert_eq!(optimized(&params(1025), gathers).1, [8 * 1025; 2]);
    }

    #[test]
    fn what_waits_holds_little() {
        let body = "let u = exp(x); let a = sum(u); let v = u / a; let w = exp(y); let b = sum(w); (v, w / b)";
        let params = |rows: usize| format!("x: f32[{rows}@Y, 16@_], y: f32[{rows}@Y, 16@_]");
        assert_eq!(optimized(&params(1 << 16), body).1, [8]);
        assert_eq!(optimized(&params(1 << 17), body).1, [4, 4]);
    }
}
