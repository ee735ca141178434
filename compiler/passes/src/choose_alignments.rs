//! Chooses the alignment of values that are parts of other arrays: blocks of their own size, or the blocks of the array from which they are
//! sliced or into which they are written.
//!
//! ```text
//! u[1:-1] = 0.5 * (u[:-2] + u[2:]);            // u: f32[32@Y], Y = 4
//! ```
//! The interior has 30 elements: 8, 8, 8 and 6 in blocks of its own size, 7, 8, 8 and 7 aligned with u. If all values computed for the
//! interior are aligned with u (`f32[30@Y/32+1]`), no element moves when the interior is written back, and each slice needs one element
//! from a neighbour. Alignment is a notion of High Performance Fortran (`ALIGN`, 1993); the choice here is made by the compiler.
//!
//! Dimensions that an op needs in equal blocks form a *group*, which has one alignment. Groups are neighbours where values are sliced,
//! padded, joined or written back. Each group in turn takes the alignment, among those that its neighbours suggest, with the lowest cost of
//! the exchanges around it, until no group changes. Values that the program shows (parameters, results, requested layouts), and values of
//! ops without alignments, keep blocks of their own size.
//!
//! It runs after `propagate`, which decides the axes that split dimensions; these axes do not change here. The exception is dimensions of
//! size 1 that are sliced out to be written back: they stay on the device that needs them if the axes that split the target are free.

use spmdc_ir::op::Op;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::local::window_of;
use spmdc_ir::program::{Block, Func, Module, Stmt, StmtKind, Value};
use spmdc_ir::rules::Elements;
use spmdc_layout::cost::trips_inside;
use spmdc_layout::crossings;
use spmdc_layout::factors::FactorKind;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::projection::Projection;
use spmdc_layout::sharding::DimSharding;
use spmdc_layout::window::{DimMap, DimReach};
use spmdc_ops::reshape::Reshape;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of alignments that are tried for one group in a round.
const MAX_SUGGESTIONS: usize = 12;

/// Maximum number of rounds in which every group chooses.
const MAX_ROUNDS: usize = 4;

/// Gives dimensions of intermediate values their alignments.
pub fn choose_alignments(mut module: Module) -> Module {
    let mut graph = AlignmentGraph::new(&module.func, &module.mesh);
    graph.settle();
    let chosen = graph.layouts();
    for (value, dim, layout) in chosen {
        module.func.info_mut(value).ty.sharding.dims[dim] = layout;
    }
    module
}

/// A dimension of a value, by number.
type Node = usize;

/// A pair of dimensions whose elements correspond by a map.
struct AlignmentEdge {
    from: Node,
    to: Node,
    map: DimMap,
    /// Bytes of all elements at one index of the dimension, in a block.
    bytes: f64,
    /// The number of times that they are exchanged.
    trips: f64,
    /// The operand is a part of the result; else the result is a window on the operand.
    is_part: bool,
}

struct AlignmentGraph<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    /// The first node of each value.
    first: Vec<Node>,
    /// Value and dimension of each node.
    nodes: Vec<(Value, usize)>,
    parent: Vec<Node>,
    fixed: Vec<bool>,
    edges: Vec<AlignmentEdge>,
    /// Dimensions along which elements are in an order.
    ordered: BTreeSet<Node>,
    /// When all groups are known: the group of each node, and the nodes of each group.
    root: Vec<Node>,
    members: BTreeMap<Node, Vec<Node>>,
    /// For each group, the layout of its split dimensions.
    layouts: BTreeMap<Node, DimSharding>,
}

impl<'a> AlignmentGraph<'a> {
    fn new(func: &'a Func, mesh: &'a Mesh) -> AlignmentGraph<'a> {
        let (mut first, mut nodes) = (Vec::new(), Vec::new());
        for (index, info) in func.values.iter().enumerate() {
            first.push(nodes.len());
            nodes.extend((0..info.ty.rank()).map(|dim| (Value(index as u32), dim)));
        }
        let (parent, fixed) = ((0..nodes.len()).collect(), vec![false; nodes.len()]);
        let mut graph = AlignmentGraph {
            func,
            mesh,
            first,
            nodes,
            parent,
            fixed,
            edges: Vec::new(),
            ordered: BTreeSet::new(),
            root: Vec::new(),
            members: BTreeMap::new(),
            layouts: BTreeMap::new(),
        };
        func.body.params.iter().chain(&func.body.results).for_each(|&value| graph.fix(value));
        graph.block(&func.body, 1.0);
        graph.begin();
        graph
    }

    fn node(&self, value: Value, dim: usize) -> Node {
        self.first[value.0 as usize] + dim
    }

    fn group(&mut self, node: Node) -> Node {
        let mut root = node;
        while self.parent[root] != root {
            root = self.parent[root];
        }
        let mut at = node;
        while self.parent[at] != root {
            at = std::mem::replace(&mut self.parent[at], root);
        }
        root
    }

    fn join(&mut self, a: Node, b: Node) {
        debug_assert!(self.root.is_empty(), "groups are joined before they are numbered");
        let (a, b) = (self.group(a), self.group(b));
        let (keep, drop) = (a.min(b), a.max(b));
        self.parent[drop] = keep;
        self.fixed[keep] |= self.fixed[drop];
    }

    fn fix(&mut self, value: Value) {
        (0..self.func.ty(value).rank()).for_each(|dim| self.fix_dim(value, dim));
    }

    fn fix_dim(&mut self, value: Value, dim: usize) {
        let group = self.group(self.node(value, dim));
        self.fixed[group] = true;
    }

    fn join_all(&mut self, a: Value, b: Value) {
        let rank = self.func.ty(a).rank();
        debug_assert_eq!(rank, self.func.ty(b).rank(), "{a} and {b} are one value in turn");
        (0..rank).for_each(|dim| self.join(self.node(a, dim), self.node(b, dim)));
    }

    fn block(&mut self, block: &Block, weight: f64) {
        block.stmts.iter().for_each(|stmt| self.stmt(stmt, weight));
    }

    fn stmt(&mut self, stmt: &Stmt, weight: f64) {
        match &stmt.kind {
            StmtKind::Control(Control::For(op)) => {
                let body = &op.body;
                let carries = body.params.len() - 1;
                let inits = &stmt.args[op.bounds()..];
                for (i, (&param, &init)) in body.params[1..].iter().zip(inits).enumerate() {
                    [init, body.results[i], stmt.results[i]].iter().for_each(|&value| self.join_all(param, value));
                }
                stmt.results[carries..].iter().chain(&body.results[carries..]).for_each(|&value| self.fix(value));
                self.block(body, weight * trips_inside(op.trips()));
            }
            StmtKind::Control(Control::While(op)) => {
                let (cond, body) = (&op.cond, &op.body);
                for (i, &param) in body.params.iter().enumerate() {
                    let carried = [stmt.args[i], cond.params[i], body.results[i], stmt.results[i]];
                    carried.iter().for_each(|&value| self.join_all(param, value));
                }
                let weight = weight * trips_inside(None);
                self.block(cond, weight);
                self.block(body, weight);
            }
            StmtKind::Control(Control::Branch(op)) => {
                for (i, &result) in stmt.results.iter().enumerate() {
                    op.sides().into_iter().for_each(|block| self.join_all(result, block.results[i]));
                }
                op.sides().into_iter().for_each(|block| self.block(block, weight));
            }
            StmtKind::Control(Control::Manual(op)) => {
                let body = &op.body;
                let borders = stmt.args.iter().chain(&stmt.results).chain(&body.params).chain(&body.results);
                borders.for_each(|&value| self.fix(value));
                self.block(body, weight);
            }
            StmtKind::Op(op) => self.ordinary(op, stmt, weight),
        }
    }

    fn ordinary(&mut self, op: &Op, stmt: &Stmt, weight: f64) {
        if let Elements::Ordered(axis) = op.rules().properties().elements {
            let nodes: Vec<Node> = stmt.results.iter().map(|&result| self.node(result, axis)).collect();
            self.ordered.extend(nodes);
        }
        if let Some(map) = window_of(self.func, stmt) {
            let (from, to) = (stmt.args[0], stmt.results[0]);
            for (dim, &map) in map.dims.iter().enumerate() {
                if self.ordered.contains(&self.node(from, dim)) {
                    // Elements of an order are not fetched from its blocks, if they are few.
                    self.fix_dim(from, dim);
                    self.fix_dim(to, dim);
                } else if map.is_identity() {
                    self.join(self.node(from, dim), self.node(to, dim));
                } else {
                    let bytes = self.cross_section(to, dim);
                    let (from, to) = (self.node(from, dim), self.node(to, dim));
                    self.edges.push(AlignmentEdge { from, to, map, bytes, trips: weight, is_part: false });
                }
            }
            return;
        }
        if let Some(op) = op.as_op::<Reshape>() {
            // A new dimension of size 1 costs nothing on any device: the operand is on all devices along its axes.
            stmt.args.iter().for_each(|&arg| self.fix(arg));
            let others = op.shape.iter().enumerate().filter(|(_, size)| **size != 1);
            return others.for_each(|(dim, _)| self.fix_dim(stmt.results[0], dim));
        }
        if !op.rules().properties().keeps_alignment {
            return stmt.args.iter().chain(&stmt.results).for_each(|&value| self.fix(value));
        }
        let projection = Projection::new(self.func.factors(op, stmt));
        let rule = &projection.rule;
        debug_assert_eq!(
            (rule.operands.len(), rule.results.len()),
            (stmt.args.len(), stmt.results.len()),
            "the factor rule of `{}` covers every operand and result",
            op.rules().name()
        );
        let mut of_factor: Vec<Option<Node>> = vec![None; rule.factors.len()];
        let tensors = rule.results.iter().zip(&stmt.results).map(|tensor| (None, tensor));
        let operands = rule.operands.iter().zip(&stmt.args).enumerate().map(|(i, tensor)| (Some(i), tensor));
        let mut is_split_sum = false;
        for (operand, (dims, &value)) in tensors.chain(operands) {
            for (dim, factors) in dims.iter().enumerate() {
                let node = self.node(value, dim);
                let &[factor] = factors.as_slice() else {
                    self.fix_dim(value, dim);
                    continue;
                };
                let layout = &self.func.ty(value).sharding.dims[dim];
                match rule.factors[factor].kind {
                    FactorKind::Pass | FactorKind::Window => {}
                    FactorKind::Reduce(_) => is_split_sum |= !layout.axes.is_empty(),
                    FactorKind::Whole => self.fix_dim(value, dim),
                }
                match (operand.and_then(|operand| rule.part(operand, dim)), of_factor[factor]) {
                    (Some(part), Some(whole)) => {
                        let size = rule.factors[factor].size;
                        let len = self.func.ty(value).shape()[dim];
                        let map = DimMap { size, before: 0, start: part.start, step: part.step as i64, len, after: 0 };
                        let bytes = self.cross_section(value, dim);
                        self.edges.push(AlignmentEdge {
                            from: node,
                            to: whole,
                            map,
                            bytes,
                            trips: weight,
                            is_part: true,
                        });
                    }
                    (Some(_), None) => self.fix_dim(value, dim),
                    (None, Some(other)) => self.join(node, other),
                    (None, None) => of_factor[factor] = Some(node),
                }
            }
        }
        if is_split_sum {
            stmt.results.iter().for_each(|&value| self.fix(value));
        }
    }

    /// Bytes of all elements of a block at one index of a dimension.
    fn cross_section(&self, value: Value, dim: usize) -> f64 {
        let ty = self.func.ty(value);
        debug_assert!(dim < ty.rank(), "{value} has no dimension {dim}");
        let others = ty.block_shape(self.mesh).into_iter().enumerate().filter(|(other, _)| *other != dim);
        others.map(|(_, len)| len).product::<usize>() as f64 * ty.dtype().size() as f64
    }

    fn size(&self, node: Node) -> usize {
        let (value, dim) = self.nodes[node];
        self.func.ty(value).shape()[dim]
    }

    /// The layouts that propagation has chosen. A group whose members are split over different axes keeps its own blocks.
    fn begin(&mut self) {
        for node in 0..self.nodes.len() {
            let (value, dim) = self.nodes[node];
            let layout = self.func.ty(value).sharding.dims[dim].clone();
            let group = self.group(node);
            self.root.push(group);
            self.members.entry(group).or_default().push(node);
            let known = self.layouts.entry(group).or_default();
            if known.axes.is_empty() {
                *known = layout;
            } else if !layout.axes.is_empty() && known.axes != layout.axes {
                self.fixed[group] = true;
            }
        }
        for at in 0..self.edges.len() {
            let (from, to) = (self.group(self.edges[at].from), self.group(self.edges[at].to));
            (self.edges[at].from, self.edges[at].to) = (from, to);
        }
        debug_assert_eq!(self.root.len(), self.nodes.len(), "every dimension has a group");
        let groups: Vec<Node> = self.members.keys().copied().collect();
        for group in groups {
            if self.size(group) == 1 && !self.can_take(group, &self.layout(group).axes) {
                self.fixed[group] = true;
            }
        }
    }

    fn layout(&self, group: Node) -> &DimSharding {
        &self.layouts[&group]
    }

    fn settle(&mut self) {
        let mut around: BTreeMap<Node, Vec<usize>> = BTreeMap::new();
        for (at, edge) in self.edges.iter().enumerate() {
            for group in [edge.from, edge.to] {
                around.entry(group).or_default().push(at);
            }
        }
        for _ in 0..MAX_ROUNDS {
            let mut changed = false;
            for (&group, edges) in &around {
                if !self.fixed[group] {
                    changed |= self.choose(group, edges);
                }
            }
            if !changed {
                break;
            }
        }
    }

    /// Whether a group of dimensions of size 1 can be split over these axes: none of them splits another dimension of the same value.
    fn can_take(&self, group: Node, axes: &[u8]) -> bool {
        let is_free = |&node: &Node| {
            let (value, own) = self.nodes[node];
            let sharding = &self.func.ty(value).sharding;
            let others = (0..sharding.rank()).filter(|&dim| dim != own).map(|dim| self.node(value, dim));
            let taken = |axis: &u8| {
                sharding.unreduced.contains(usize::from(*axis))
                    || others.clone().any(|other| self.root[other] == group || self.given(other).axes.contains(axis))
            };
            !axes.iter().any(taken)
        };
        self.members[&group].iter().all(is_free)
    }

    /// The layout of a dimension under the present choices of the groups. Only dimensions of size 1 change their axes.
    fn given(&self, node: Node) -> &DimSharding {
        let (value, dim) = self.nodes[node];
        let now = &self.func.ty(value).sharding.dims[dim];
        let group = self.root[node];
        let layout = self.layout(group);
        let follows = !self.fixed[group] && (layout.axes == now.axes || self.size(node) == 1);
        if follows { layout } else { now }
    }

    /// Gives a group the layout of the lowest cost under the present choices of its neighbours. True if it changes.
    fn choose(&mut self, group: Node, edges: &[usize]) -> bool {
        debug_assert!(!self.fixed[group], "a fixed group chooses nothing");
        let size = self.size(group);
        let now = self.layout(group).clone();
        let single = size == 1 && edges.iter().any(|&at| self.edges[at].is_part);
        if now.axes.is_empty() && !single {
            return false;
        }
        let mut suggestions = vec![now.clone()];
        let mut suggest = |layout: DimSharding| {
            let is_possible = layout.axes == now.axes || single && self.can_take(group, &layout.axes);
            if is_possible && suggestions.len() < MAX_SUGGESTIONS && !suggestions.contains(&layout) {
                suggestions.push(layout);
            }
        };
        suggest(if single { DimSharding::default() } else { DimSharding::closed(now.axes.clone()) });
        for &at in edges {
            let edge = &self.edges[at];
            let other = if edge.from == group { edge.to } else { edge.from };
            if let Some(layout) = self.suggestion(edge, group, self.layout(other)) {
                suggest(layout);
            }
        }
        let mut best = 0;
        let mut least = (f64::INFINITY, f64::INFINITY);
        for (at, suggestion) in suggestions.iter().enumerate() {
            let cost = self.cost(group, edges, suggestion);
            if cost < least {
                (best, least) = (at, cost);
            }
        }
        debug_assert!(least.0.is_finite() && least.0 >= 0.0, "a layout costs {}", least.0);
        let best = suggestions.swap_remove(best);
        let changed = best != now;
        self.layouts.insert(group, best);
        changed
    }

    /// The layout in which a group is aligned with its neighbour at this edge.
    fn suggestion(&self, edge: &AlignmentEdge, group: Node, other: &DimSharding) -> Option<DimSharding> {
        let DimMap { size, before, start, step, .. } = edge.map;
        let step = usize::try_from(step).ok().filter(|_| edge.map.runs().len() == 1)?;
        let is_result = edge.to == group;
        let own = self.size(group);
        let part = |whole: usize, start: i64, step: usize| Some(other.part(whole, (start, step), own, self.mesh));
        match (edge.is_part, is_result) {
            // A window is aligned with the array that it is cut out of, a part with the array that it is put into.
            (false, true) => part(size, start as i64 - (step * before) as i64, step),
            (true, false) => part(size, start as i64, step),
            (false, false) if step == 1 => part(self.size(edge.to), before as i64 - start as i64, 1),
            (true, true) if step == 1 => part(self.size(edge.from), -(start as i64), 1),
            (false, false) | (true, true) => None,
        }
    }

    /// The cost of all exchanges at the edges of a group in this layout, and the cost of the exchanges whose operand is the group:
    /// that operand must be in memory.
    fn cost(&self, group: Node, edges: &[usize], layout: &DimSharding) -> (f64, f64) {
        let (mut all, mut given) = (0.0, 0.0);
        for &at in edges {
            let edge = &self.edges[at];
            let of = |node: Node| if node == group { layout } else { self.layout(node) };
            let (from, to) = (of(edge.from), of(edge.to));
            let reach = if edge.is_part {
                let DimMap { size, start, step, len, .. } = edge.map;
                let there = to.part(size, (start as i64, step as usize), len, self.mesh);
                DimReach::new(DimMap::identity(len), from, &there, self.mesh)
            } else {
                DimReach::new(edge.map, from, to, self.mesh)
            };
            let lacking = reach.average();
            let (bytes, axes) = (lacking * edge.bytes, from.axes.iter().chain(&to.axes));
            let beside = crossings::beside_others(axes.map(|&axis| usize::from(axis)).collect(), self.mesh);
            let cost = edge.trips * crossings::exchange(lacking > 0.0, bytes, bytes * beside as f64, self.mesh);
            all += cost;
            if edge.from == group {
                given += cost;
            }
        }
        (all, given)
    }

    /// The dimensions that get another layout, with that layout.
    fn layouts(&self) -> Vec<(Value, usize, DimSharding)> {
        let chosen = self.nodes.iter().enumerate().filter_map(|(node, &(value, dim))| {
            let given = self.given(node);
            (*given != self.func.ty(value).sharding.dims[dim]).then(|| (value, dim, given.clone()))
        });
        chosen.collect()
    }
}
