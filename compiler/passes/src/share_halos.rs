//! Joins the halos of windows on the same value to one exchange for each direction.
//!
//! ```text
//! let h1 = halo(u, ..);                        // 1 element from the left
//! let a = window(u, h1, ..);
//! let h2 = halo(u, ..);                        // 2 elements from the left
//! let b = window(u, h2, ..);
//! =>
//! let m = margins(u, ..);                      // 2 elements from the left
//! let a = window(u, m, ..);
//! let b = window(u, m, ..);
//! ```
//!
//! Halos in one block are joined if the joined halo moves at most as many bytes as the separate ones, and saves bytes or exchanges. One
//! statement before a window fetches the elements that this window is the first to need. So there are at most as many exchanges as windows,
//! and at most two for each split dimension. It comes after `hoist` and `cse`, which determine the halos and their positions.

use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_layout::halo_flow::flow;
use spmdc_layout::margin::{Margin, Spread, cover, joined};
use spmdc_layout::mesh::Mesh;
use spmdc_ops::margins::Margins;
use spmdc_ops::window::Window;
use spmdc_window_ops::halo::Halo;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of groups of halos of one value that are tried for each further halo.
const MAX_GROUPS: usize = 8;

/// Joins halos, block by block. The module stays at its stage.
pub fn share_halos(mut module: Module) -> Module {
    debug_assert_eq!(module.stage, Stage::Partitioned, "halos are exchanged");
    let mut body = std::mem::take(&mut module.func.body);
    let mut sharer = Sharer { func: &mut module.func, mesh: &module.mesh, replaced: BTreeMap::new() };
    sharer.block(&mut body);
    let replaced = sharer.replaced;
    if !replaced.is_empty() {
        body.walk_mut(&mut |stmt| read_margins(stmt, &replaced));
    }
    module.func.body = body;
    module
}

/// By the first halo of a window, the margins that take the place of its halos.
type Replaced = BTreeMap<Value, Vec<(Value, Arc<Margin>)>>;

struct Sharer<'a> {
    func: &'a mut Func,
    mesh: &'a Mesh,
    replaced: Replaced,
}

/// The elements that an exchange moves.
#[derive(Clone, Copy, Default)]
struct Moved {
    /// Maximum number of elements received by any device.
    received: usize,
    /// The number of elements received by all devices together.
    total: usize,
}

impl Moved {
    fn and(self, other: Moved) -> Moved {
        Moved { received: self.received + other.received, total: self.total + other.total }
    }

    fn is_within(self, other: Moved) -> bool {
        self.received <= other.received && self.total <= other.total
    }
}

/// A halo of one window.
struct WindowHalo {
    /// The index of its statement in the block.
    at: usize,
    /// The margins that the window reads.
    needs: Vec<Margin>,
}

/// Halos that may be joined.
struct HaloGroup {
    members: Vec<WindowHalo>,
    /// The margins that all members together need.
    margins: Vec<Margin>,
    /// The elements that the members move apart.
    apart: Moved,
    /// The elements that they move joined.
    moved: Moved,
}

impl HaloGroup {
    /// For each margin, the first member that needs it.
    fn fetched(&self) -> Vec<usize> {
        let first = |margin: &Margin| {
            self.members.iter().position(|single| single.needs.iter().any(|need| need.is_beside(margin)))
        };
        self.margins.iter().map(|margin| first(margin).expect("a member of the group needs each margin")).collect()
    }

    /// Whether the joined halo moves fewer bytes than the members apart, or as many in fewer exchanges.
    fn gains(&self) -> bool {
        let mut exchanges = self.fetched();
        exchanges.sort_unstable();
        exchanges.dedup();
        self.members.len() > 1 && (self.moved.total < self.apart.total || exchanges.len() < self.members.len())
    }
}

impl Sharer<'_> {
    fn block(&mut self, block: &mut Block) {
        block.stmts.iter_mut().flat_map(Stmt::blocks_mut).for_each(|inner| self.block(inner));
        let mut groups: BTreeMap<Value, Vec<HaloGroup>> = BTreeMap::new();
        for (at, stmt) in block.stmts.iter().enumerate() {
            if let Some((needs, apart)) = self.single(stmt) {
                let margins = needs.clone();
                let one = HaloGroup { members: vec![WindowHalo { at, needs }], margins, apart, moved: apart };
                self.add(stmt.args[0], one, groups.entry(stmt.args[0]).or_default());
            }
        }
        // By the index of a halo, the margins that are fetched in its place.
        let mut fetched: BTreeMap<usize, Vec<(Value, Arc<Margin>)>> = BTreeMap::new();
        for (value, groups) in groups {
            for group in self.settled(value, groups).iter().filter(|group| group.gains()) {
                self.share(value, group, &block.stmts, &mut fetched);
            }
        }
        let stmts = std::mem::take(&mut block.stmts).into_iter().enumerate();
        let stmts = stmts.filter_map(|(at, mut stmt)| {
            let Some(fetched) = fetched.remove(&at) else { return Some(stmt) };
            let (results, parts): (Vec<Value>, Vec<Arc<Margin>>) = fetched.into_iter().unzip();
            (stmt.kind, stmt.results) = (StmtKind::Op(Margins { parts }.into()), results);
            (!stmt.results.is_empty()).then_some(stmt)
        });
        block.stmts = stmts.collect();
        debug_assert!(fetched.is_empty(), "margins are fetched in place of no halo");
    }

    /// The margins and elements that a statement fetches, if it is the halo of a window that can share it.
    fn single(&self, stmt: &Stmt) -> Option<(Vec<Margin>, Moved)> {
        let halo = stmt.as_op::<Halo>()?;
        let [part] = halo.parts.as_slice() else { return None };
        let needs = Spread::new(&part.dims, &self.func.ty(stmt.args[0]).sharding, &part.to, self.mesh)?.margins();
        let flow = halo.flow(self.mesh);
        (!needs.is_empty()).then_some((needs, Moved { received: flow.received, total: flow.total }))
    }

    fn moved(&self, value: Value, margins: &[Margin]) -> Moved {
        let ty = self.func.ty(value);
        let fetches: Vec<_> = margins.iter().map(|margin| margin.fetch(ty.shape(), &ty.sharding, self.mesh)).collect();
        let flow = flow(&fetches, self.mesh);
        Moved { received: flow.received, total: flow.total }
    }

    /// The margins of both groups joined, if these move no more elements than both apart.
    fn both(&self, value: Value, one: &HaloGroup, other: &HaloGroup) -> Option<(Vec<Margin>, Moved)> {
        if one.members.len() > 1 && cover(&one.margins, &other.margins) {
            return Some((one.margins.clone(), one.moved));
        }
        let margins = joined(&one.margins, &other.margins);
        let shape = self.func.ty(value).shape();
        if !margins.iter().all(|margin| margin.is_sound(shape)) {
            return None;
        }
        let moved = self.moved(value, &margins);
        moved.is_within(one.moved.and(other.moved)).then_some((margins, moved))
    }

    /// Adds a halo to the first group that it can join.
    fn add(&self, value: Value, one: HaloGroup, groups: &mut Vec<HaloGroup>) {
        for group in groups.iter_mut().take(MAX_GROUPS) {
            if let Some((margins, moved)) = self.both(value, group, &one) {
                (group.margins, group.moved) = (margins, moved);
                group.apart = group.apart.and(one.apart);
                group.members.extend(one.members);
                return;
            }
        }
        groups.push(one);
    }

    /// Joins groups once more: small groups that could not be joined may be joined when they have grown.
    fn settled(&self, value: Value, groups: Vec<HaloGroup>) -> Vec<HaloGroup> {
        let mut settled = Vec::new();
        groups.into_iter().for_each(|group| self.add(value, group, &mut settled));
        settled.iter_mut().for_each(|group| group.members.sort_by_key(|single| single.at));
        settled
    }

    fn share(
        &mut self,
        value: Value,
        group: &HaloGroup,
        stmts: &[Stmt],
        fetched: &mut BTreeMap<usize, Vec<(Value, Arc<Margin>)>>,
    ) {
        debug_assert!(group.members.iter().all(|single| !fetched.contains_key(&single.at)), "a halo is in two groups");
        for single in &group.members {
            fetched.entry(single.at).or_default();
        }
        let mut shared: Vec<(Value, Arc<Margin>)> = Vec::new();
        for (margin, member) in group.margins.iter().zip(group.fetched()) {
            let at = group.members[member].at;
            let Some(ty) = margin.ty(self.func.ty(value), self.mesh) else { continue };
            let result = self.func.new_value(ty, stmts[at].origin.clone());
            let part = (result, Arc::new(margin.clone()));
            fetched.entry(at).or_default().push(part.clone());
            shared.push(part);
        }
        for single in &group.members {
            let of = |need: &Margin| shared.iter().find(|(_, margin)| margin.is_beside(need)).cloned();
            let own: Vec<_> = single.needs.iter().filter_map(of).collect();
            debug_assert_eq!(own.len(), single.needs.len(), "each need has a margin");
            self.replaced.insert(stmts[single.at].results[0], own);
        }
    }
}

/// Lets a window whose halo was joined read the margins.
fn read_margins(stmt: &mut Stmt, replaced: &Replaced) {
    let Some(margins) = stmt.args.get(1).and_then(|halo| replaced.get(halo)) else { return };
    let Some(window) = stmt.as_op_mut::<Window>() else { return };
    debug_assert!(!window.halos.is_empty(), "a window without halos has one");
    window.halos = margins.iter().map(|(_, margin)| margin.dim).collect();
    window.margins = margins.iter().map(|(_, margin)| Arc::clone(margin)).collect();
    stmt.args.truncate(1);
    stmt.args.extend(margins.iter().map(|(value, _)| *value));
}
