//! Makes windows on split dimensions local: a separate statement, `halo`, fetches the elements of other devices.
//!
//! ```text
//! let y: f32[8@Y] = roll(x, 1);                // x: f32[8@Y]
//! =>
//! let h: f32[4@Y] = halo(x, ..);               // one element from the left
//! let y: f32[8@Y] = window(x, h, ..);
//! ```
//!
//! It comes after `insert_reshards`, which does not change windows: operand and result may have different layouts. A window along whole
//! dimensions only does not change. The halos of several operands of an op are fetched by one statement; equal halos are joined later, by
//! `cse`. A window on a window of the same block becomes a window on the operand of the inner one, where that moves no more bytes:
//! `roll(roll(u, 1, axis=0), 1, axis=1)` needs no memory in between.

use spmdc_ir::mismatch::called;
use spmdc_ir::program::build::statement;
use spmdc_ir::program::local::window_of;
use spmdc_ir::program::{Block, Func, Module, Stmt, StmtKind, Value};
use spmdc_layout::margin::Spread;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::window::{DimMap, WindowMap};
use spmdc_ops::window::Window;
use spmdc_window_ops::halo::{Halo, HaloWindow};
use std::collections::BTreeMap;

/// Gives every window the halos that it reads.
pub fn exchange_halos(mut module: Module) -> Module {
    let mut body = std::mem::take(&mut module.func.body);
    rewrite(&mut body, &mut module.func, &module.mesh, &mut BTreeMap::new());
    module.func.body = body;
    module
}

/// Windows that need no halos: other views of values in memory.
type WindowViews = BTreeMap<Value, (Value, WindowMap)>;

/// Windows of the block that need halos: the operand, the map, and the number of its elements that move.
type HaloWindows = BTreeMap<Value, (Value, WindowMap, usize)>;

fn rewrite(block: &mut Block, func: &mut Func, mesh: &Mesh, views: &mut WindowViews) {
    let mut stmts: Vec<Stmt> = Vec::with_capacity(block.stmts.len());
    // The index of the halo of the preceding operand, if the same op needs this one, too.
    let mut open: Option<usize> = None;
    let mut fetched = HaloWindows::new();
    for mut stmt in std::mem::take(&mut block.stmts) {
        stmt.blocks_mut().for_each(|inner| rewrite(inner, func, mesh, views));
        let map = window_of(func, &stmt);
        let is_operand = map.as_ref().is_some_and(|map| map.dims.iter().all(DimMap::is_identity));
        let halo = map.and_then(|map| placed(&mut stmt, map, func, mesh, (views, &mut fetched))).flatten();
        let known = open.filter(|&at| is_operand && stmts[at].origin.span == stmt.origin.span);
        match (halo, known) {
            (Some(halo), Some(at)) if !stmts[at..].iter().any(|before| before.results.contains(&halo.args[0])) => {
                join(&mut stmts[at], halo);
            }
            (Some(halo), _) => {
                open = is_operand.then_some(stmts.len());
                stmts.push(halo);
            }
            (None, _) if is_operand => {}
            (None, _) => open = None,
        }
        stmts.push(stmt);
    }
    debug_assert!(halos_are_read(&stmts), "a halo is read by no window behind it");
    block.stmts = stmts;
}

/// Whether each halo is an operand of a later window of the block.
fn halos_are_read(stmts: &[Stmt]) -> bool {
    let halos = stmts.iter().enumerate().filter(|(_, stmt)| stmt.is::<Halo>());
    let mut results = halos.flat_map(|(at, stmt)| stmt.results.iter().map(move |result| (at, result)));
    results
        .all(|(at, result)| stmts[at + 1..].iter().any(|stmt| stmt.is::<Window>() && stmt.args[1..].contains(result)))
}

/// Joins two halos to one statement.
fn join(first: &mut Stmt, second: Stmt) {
    let more = second.as_op::<Halo>().expect("a halo joins a halo only");
    let known = first.as_op_mut::<Halo>().expect("a halo joins a halo only");
    known.parts.extend(more.parts.iter().cloned());
    let parts = known.parts.len();
    first.args.extend(second.args);
    first.results.extend(second.results);
    debug_assert_eq!(parts, first.args.len(), "each operand has its part");
}

/// Turns a statement into a window and returns the statement of its halos, if it needs any; None if the statement is local already.
fn placed(
    stmt: &mut Stmt,
    map: WindowMap,
    func: &mut Func,
    mesh: &Mesh,
    (views, fetched): (&mut WindowViews, &mut HaloWindows),
) -> Option<Option<Stmt>> {
    let to = func.ty(stmt.results[0]).sharding.clone();
    let is_operand = map.dims.iter().all(DimMap::is_identity);
    let layout = |value: Value| func.ty(value).sharding.clone();
    let view = (stmt.args[0], map.clone());
    if map.is_local(&layout(stmt.args[0]), &to) {
        views.insert(stmt.results[0], view);
        return None;
    }
    let (mut operand, mut map) = view.clone();
    let mut part = HaloWindow::new(map.dims.clone(), &layout(operand), &to, mesh)?;
    // The operand of a view lies in memory already; the view itself does not.
    while !part.reaches.halos().is_empty()
        && let Some((inner, shown)) = views.get(&operand)
        && let Some(both) = map.after(shown)
        && let Some(other) = HaloWindow::new(both.dims.clone(), &layout(*inner), &to, mesh)
    {
        (operand, map, part) = (*inner, both, other);
    }
    let moved = |part: &HaloWindow| Halo { parts: vec![part.clone()] }.flow(mesh).total;
    let shares = |value: Value, map: &WindowMap| Spread::new(&map.dims, &layout(value), &to, mesh).is_some();
    let mut total = moved(&part);
    // Elements that an earlier window fetched are fetched again, mostly once for both: only where halos can be shared.
    while total > 0
        && !is_operand
        && shares(operand, &map)
        && let Some((inner, shown, more)) = fetched.get(&operand)
        && let Some(both) = map.after(shown)
        && shares(*inner, &both)
        && let Some(other) = HaloWindow::new(both.dims.clone(), &layout(*inner), &to, mesh)
        && moved(&other) <= total + more
    {
        (operand, map, total, part) = (*inner, both, moved(&other), other);
    }
    let halos = part.reaches.halos();
    let name = called(stmt.name());
    let from = func.ty(operand).clone();
    let results: Vec<Value> = halos
        .iter()
        .map(|&dim| func.new_value(part.reaches.halo_type(dim, &from, mesh), stmt.origin.clone()))
        .collect();
    if results.is_empty() {
        views.insert(stmt.results[0], (operand, map.clone()));
    } else {
        fetched.insert(stmt.results[0], (operand, map.clone(), total));
    }
    stmt.args = vec![operand];
    stmt.args.extend(&results);
    stmt.kind = StmtKind::Op(Window { map, halos, margins: Vec::new() }.into());
    debug_assert_eq!(stmt.args.len() - 1, results.len(), "a window has its halos behind its operand");
    if results.is_empty() {
        return Some(None);
    }
    // An operand that `insert_reshards` gave other blocks has its reason already.
    let origin = match stmt.origin.reason.is_empty() {
        true => stmt.origin.because(format!("{name} needs elements that lie on other devices")),
        false => stmt.origin.clone(),
    };
    Some(Some(statement(func, mesh, (Halo { parts: vec![part] }, &[operand]), &results, &origin)))
}
