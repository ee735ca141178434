//! Replaces every request for a layout by the collectives and slices that produce it.
//!
//! ```text
//! let h: f32[8,16] = reshard(v7, P(_,_));        // v7: f32[8,16]{U:Y}
//! =>
//! let h: f32[8,16] = all_reduce(v7, P(_,_));
//! ```
//!
//! Requests for the layout that a value has already vanish, and so do those for a layout that it had before an earlier request. A request whose only user is another request is part of
//! that one: a sum with a split target is scattered, not made whole and then cut. Afterwards all communication is explicit.

use crate::contract;
use spmdc_ir::program::build::Builder;
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, Value};
use spmdc_ir::rules::Placement;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::{Planner, Plans};
use spmdc_layout::types::Type;
use spmdc_ops::reshard::Reshard;
use std::collections::BTreeMap;

/// Makes all communication explicit. The module is at stage `partitioned` afterwards.
pub fn partition(module: Module, plans: &Plans) -> Module {
    debug_assert_eq!(module.stage, Stage::Propagated, "no dimension is open");
    let Module { mesh, mut func, .. } = module;
    let mut body = std::mem::take(&mut func.body);
    let mut uses = vec![0; func.values.len()];
    body.each_use(&mut |value| uses[value.0 as usize] += 1);
    let mut replaced: Vec<Value> = (0..func.values.len() as u32).map(Value).collect();
    let mut sums = BTreeMap::new();
    join_requests(&mut body, &func, &uses, &mut replaced, &mut sums);
    body.each_use_mut(&mut |value| *value = replaced[value.0 as usize]);

    let mut replaced: Vec<Value> = (0..func.values.len() as u32).map(Value).collect();
    let planner = Planner::new(&mesh, plans);
    expand(&mut body, &mut func, &mesh, &planner, &sums, (&mut replaced, &mut BTreeMap::new()));
    func.body = body;
    let module = Module { stage: Stage::Partitioned, mesh, func };
    debug_assert_eq!(contract::count(&module.func.body, is_request), 0, "a request is left");
    module
}

fn is_request(stmt: &Stmt) -> bool {
    let placement = stmt.op().map(|op| op.rules().properties().placement);
    matches!(placement, Some(Placement::Requested(_)))
}

/// Drops requests whose only user is another request in the same block. Values with a name in the source stay. Where a dropped
/// request completed a sum, `sums` keeps its origin, because the other request completes the sum now.
fn join_requests(
    block: &mut Block,
    func: &Func,
    uses: &[u32],
    replaced: &mut [Value],
    sums: &mut BTreeMap<Value, Origin>,
) {
    let mut asked_again = vec![false; uses.len()];
    for stmt in block.stmts.iter().filter(|stmt| is_request(stmt)) {
        asked_again[stmt.args[0].0 as usize] = true;
    }
    for stmt in &mut block.stmts {
        stmt.blocks_mut().for_each(|inner| join_requests(inner, func, uses, replaced, sums));
    }
    block.stmts.retain(|stmt| {
        let serves_one = |result: Value| {
            uses[result.0 as usize] == 1 && asked_again[result.0 as usize] && func.info(result).name.is_none()
        };
        let joined = is_request(stmt) && serves_one(stmt.results[0]);
        if joined {
            let from = replaced[stmt.args[0].0 as usize];
            debug_assert_ne!(from, stmt.results[0], "a request serves itself");
            replaced[stmt.results[0].0 as usize] = from;
            if !func.ty(from).sharding.unreduced.minus(func.ty(stmt.results[0]).sharding.unreduced).is_empty() {
                sums.entry(from).or_insert_with(|| stmt.origin.clone());
            }
        }
        !joined
    });
}

fn expand(
    block: &mut Block,
    func: &mut Func,
    mesh: &Mesh,
    planner: &Planner<'_>,
    sums: &BTreeMap<Value, Origin>,
    (replaced, earlier): (&mut [Value], &mut BTreeMap<Value, Value>),
) {
    let mut stmts = Vec::new();
    for mut stmt in std::mem::take(&mut block.stmts) {
        stmt.args.iter_mut().for_each(|arg| *arg = replaced[arg.0 as usize]);
        if !is_request(&stmt) {
            stmt.blocks_mut().for_each(|inner| expand(inner, func, mesh, planner, sums, (replaced, earlier)));
            stmts.push(stmt);
            continue;
        }
        let (from, to) = (stmt.args[0], stmt.results[0]);
        if let Some(sum) = sums.get(&from) {
            stmt.origin = sum.clone();
        }
        let goal = func.ty(to).clone();
        debug_assert_eq!(func.ty(from).array, goal.array, "a request changes the layout alone");
        // The value as it was before requests, if it was laid out so then.
        let mut before = std::iter::successors(Some(from), |value| earlier.get(value).copied());
        let from = before.find(|&value| func.ty(value).sharding == goal.sharding).unwrap_or(from);
        let plan = planner.plan(&goal.array, &func.ty(from).sharding, &goal.sharding);
        let steps = &plan.steps;
        let Some((last, before)) = steps.split_last() else {
            replaced[to.0 as usize] = from;
            let (name, named) = (func.info(to).name.clone(), func.info(to).named);
            let info = func.info_mut(from);
            if info.name.is_none() {
                (info.name, info.named) = (name, named);
            }
            continue;
        };
        earlier.insert(to, from);
        let mut build = Builder::new(func, mesh);
        let mut at = from;
        for step in before {
            let ty = Type { sharding: step.to.clone(), ..goal.clone() };
            at = build.emit(Reshard::from(step.clone()), &[at], ty, &stmt.origin);
        }
        debug_assert_eq!(last.to, goal.sharding, "the steps of a request end where it asks for");
        build.define(Reshard::from(last.clone()), &[at], &[to], &stmt.origin);
        stmts.extend(build.finish());
    }
    block.results.iter_mut().for_each(|result| *result = replaced[result.0 as usize]);
    block.stmts = stmts;
}
