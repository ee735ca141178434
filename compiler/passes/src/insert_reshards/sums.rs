//! Decides where partial sums are combined: where they arise, or after ops that are linear in them.
//!
//! ```text
//! x @ y + x @ z                        the products stay partial, one all_reduce after `+`
//! let s = x @ y; sum(s - s / 4)        `s` stays partial, one all_reduce of a number
//! for i in .. { g = g + x[i] @ y[i] }  `g` stays partial, one all_reduce after the loop
//! ```
//!
//! A value that only linear statements use belongs to a graph of such statements. Going through a block, the pass computes for each
//! result the cost of having it whole, and the cost of each partial layout that one of its operands can have: nothing for a sum
//! over a split dimension, which is partial anyway; nothing for a whole value that can be relabelled; otherwise the cost of the
//! move. The root of a graph is wanted whole and takes the cheaper way: its operands are combined, or it is combined itself. A loop
//! multiplies the cost of its body by its trips, unless the carried value can stay partial all the way round. In a tie, sums are
//! combined at once.
//!
//! Several users of a value share its cost: `sum(s - s / 4)` combines the total, while of `s + a` and `s - b`, both needed whole,
//! each pays half of `s` and would pay for all of its own. If the users want it in different layouts, they get it whole: then all
//! values are priced again without following that value.
//!
//! Addends over different axes, over X of `n` devices and over Y of `m`, of `B` bytes each, receive
//!
//! ```text
//! combined each          2B(1-1/n) + 2B(1-1/m)
//! as one sum over X, Y   2B(1-1/nm)                                    the addend over X counts on the first device of Y only
//! scattered first        B(1-1/n)/m + B(1-1/m)/n + B(1-1/nm)           added where they are split over X and Y, then gathered
//! ```
//!
//! Each row is less than the one above it: by 2B(1-1/n)(1-1/m), then by half of that. It takes more collectives, so for small
//! arrays, or where no dimension divides, the row above may win. Both are offered, and priced like all others.
//!
//! Then values that stay partial get partial types, and requests are inserted at the border of a graph: before whole operands and
//! after the root.
//!
//! This applies to auto axes only: on explicit axes the types say which values are partial. A product with a factor that is unknown
//! or larger than 1 stays after the sum: addends that are larger than their sum might overflow, or give NaN where the factor is
//! infinite.

use super::{Inserter, OpenBlock};
use spmdc_abi::ReduceOp;
use spmdc_ir::cost;
use spmdc_ir::layout::factors::FactorKind;
use spmdc_ir::layout::mesh::AxisKind;
use spmdc_ir::layout::projection::{Assignment, Projection};
use spmdc_ir::layout::sharding::Sharding;
use spmdc_ir::layout::types::{AxisSet, Type};
use spmdc_ir::ops::rules::{Combines, Linear};
use spmdc_ir::ops::{Op, called};
use spmdc_ir::program::build::statement;
use spmdc_ir::program::control::Control;
use spmdc_ir::program::local::{alignments_of, natural};
use spmdc_ir::program::origin::Origin;
use spmdc_ir::program::partial_sums::{FactorBounds, passes_sums};
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use spmdc_ir::reshard::step::Reshard;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of partial layouts of a value that are considered.
const MAX_WAYS: usize = 6;

/// Maximum number of attempts; the last one follows no value of several uses.
const MAX_ATTEMPTS: usize = 3;

/// The costs of a value: whole, and in partial layouts.
#[derive(Clone, Debug, Default)]
struct SumNode {
    whole: f64,
    partial: Vec<PartialLayout>,
    /// The partial layout in which it is computed first to have it whole, if that is cheaper.
    through: Option<Sharding>,
}

/// A partial layout that a value can have, or a split layout in which scattered partial sums are added.
#[derive(Clone, Debug)]
struct PartialLayout {
    layout: Sharding,
    cost: f64,
    /// The layouts of the operands; None for a sum of whole operands.
    operands: Option<Vec<Sharding>>,
}

/// Gives partial types to the values that stay partial, and inserts requests around them.
pub fn defer(inserter: &mut Inserter<'_>, body: Block) -> Block {
    depths(&body, 0, &mut inserter.depth);
    inserter.enter(true, 1.0);
    let mut apart = vec![false; inserter.func.values.len()];
    let mut attempt = 1;
    let (makers, held, linear, rounds) = loop {
        let mut sums = Sums::new(&mut *inserter, &body, apart.clone());
        sums.block(&body, SumNodes::default());
        let Sums { makers, held, linear, rounds, disputed, .. } = sums;
        if disputed.is_empty() {
            break (makers, held, linear, rounds);
        }
        attempt += 1;
        disputed.iter().for_each(|value| apart[value.0 as usize] = true);
        if attempt == MAX_ATTEMPTS {
            apart.fill(true);
        }
    };
    inserter.open_blocks.pop();
    debug_assert!(inserter.open_blocks.is_empty(), "a block was entered and not left");
    debug_assert!(attempt <= MAX_ATTEMPTS, "nothing is disputed where no value of several uses is followed");
    for (&value, layout) in &held {
        inserter.func.info_mut(value).ty.sharding = layout.clone();
    }
    Rewriter { inserter, makers, held, linear, rounds }.block(body)
}

/// Sets the number of blocks around each value.
fn depths(block: &Block, depth: usize, of: &mut [usize]) {
    let results = block.stmts.iter().flat_map(|stmt| &stmt.results);
    block.params.iter().chain(results).for_each(|value| of[value.0 as usize] = depth);
    block.stmts.iter().flat_map(Stmt::blocks).for_each(|inner| depths(inner, depth + 1, of));
}

impl Inserter<'_> {
    /// Opens a block, so that costs are those inside it.
    fn enter(&mut self, closed: bool, trips: f64) {
        debug_assert!(trips >= 0.0, "a block runs {trips} times");
        self.open_blocks.push(OpenBlock {
            stmts: Vec::new(),
            made: Vec::new(),
            closed,
            trips,
            shared: BTreeMap::new(),
        });
    }
}

/// The costs of the values of a block.
#[derive(Clone, Default)]
struct SumNodes {
    of: BTreeMap<Value, SumNode>,
    /// For each value whose users may all take it partial: the position of each use, or [`ROUND`].
    consumers: BTreeMap<Value, Vec<usize>>,
}

/// Stands for a position: a loop carries the value to its next trip.
const ROUND: usize = usize::MAX;

impl SumNodes {
    /// The costs of an operand, if it may be partial.
    fn child(&self, value: Value) -> Option<&SumNode> {
        self.consumers.get(&value).and_then(|_| self.of.get(&value))
    }
}

impl SumNode {
    /// The costs of a carried value inside a loop that already has it in one of these layouts.
    fn carried(layouts: impl Iterator<Item = Sharding>) -> SumNode {
        let partial = layouts.map(|layout| PartialLayout { layout, cost: 0.0, operands: None }).collect();
        SumNode { partial, ..SumNode::default() }
    }

    fn way(&self, layout: &Sharding) -> Option<&PartialLayout> {
        self.partial.iter().find(|way| way.layout == *layout)
    }

    fn offer(&mut self, new: PartialLayout) {
        debug_assert!(!new.cost.is_nan(), "a partial layout has a cost");
        match self.partial.iter().position(|way| way.layout == new.layout) {
            Some(at) if new.cost < self.partial[at].cost => self.partial[at] = new,
            Some(_) => {}
            None if self.partial.len() < MAX_WAYS => self.partial.push(new),
            None => {}
        }
    }
}

struct Sums<'a, 'b> {
    inserter: &'a mut Inserter<'b>,
    uses: Vec<u32>,
    /// Values that are followed only if they are used once.
    apart: Vec<bool>,
    /// The layouts that users of a value have chosen for it.
    asked: BTreeMap<Value, Vec<Sharding>>,
    /// Values whose users chose different layouts.
    disputed: Vec<Value>,
    /// Bounds of values as factors of partial sums.
    constants: Vec<FactorBounds>,
    /// Statements that every device can compute by itself in any layout, by their results.
    makers: BTreeMap<Value, Stmt>,
    /// The layouts of all values that stay partial.
    held: BTreeMap<Value, Sharding>,
    /// By result: the partial layout in which a linear statement is computed, and the layouts of its operands.
    linear: BTreeMap<Value, (Sharding, Vec<Sharding>)>,
    /// By result of a loop: the partial layout in which it is carried.
    rounds: BTreeMap<Value, Sharding>,
}

/// A loop of either kind.
struct Round<'a> {
    /// The index of the first carried operand.
    bounds: usize,
    /// Trip count, assumed if unknown.
    trips: f64,
    /// The index of the first carried parameter of its body.
    first: usize,
    /// The condition of a `while`.
    cond: Option<&'a Block>,
    body: &'a Block,
}

fn loop_of(stmt: &Stmt) -> Option<Round<'_>> {
    match stmt.control()? {
        Control::For(op) => {
            let (bounds, trips) = (op.bounds(), cost::trips(op.trips()) as f64);
            Some(Round { bounds, trips, first: 1, cond: None, body: &op.body })
        }
        Control::While(op) => {
            let trips = cost::trips(None) as f64;
            Some(Round { bounds: 0, trips, first: 0, cond: Some(&op.cond), body: &op.body })
        }
        Control::Branch(_) | Control::Manual(_) => None,
    }
}

/// The costs of values.
impl<'a, 'b> Sums<'a, 'b> {
    fn new(inserter: &'a mut Inserter<'b>, body: &Block, apart: Vec<bool>) -> Sums<'a, 'b> {
        let count = inserter.func.values.len();
        let mut uses = vec![0; count];
        body.each_use(&mut |value| uses[value.0 as usize] += 1);
        let mut constants = vec![FactorBounds::default(); count];
        body.walk(&mut |stmt| {
            if let ([result], Some(op)) = (stmt.results.as_slice(), stmt.op()) {
                let operands: Vec<FactorBounds> = stmt.args.iter().map(|arg| constants[arg.0 as usize]).collect();
                constants[result.0 as usize] = FactorBounds::of(op, &operands);
            }
        });
        let mut makers = BTreeMap::new();
        body.walk(&mut |stmt| {
            let are_numbers =
                stmt.args.iter().all(|arg| makers.contains_key(arg) && inserter.func.ty(*arg).is_scalar());
            let is_free = |op: &Op| op.rules().properties().elements.are_made_anywhere();
            if are_numbers && stmt.op().is_some_and(is_free) {
                makers.insert(stmt.results[0], stmt.clone());
            }
        });
        let (held, linear, rounds) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (asked, disputed) = (BTreeMap::new(), Vec::new());
        Sums { inserter, uses, apart, asked, disputed, constants, makers, held, linear, rounds }
    }

    fn layout(&self, value: Value) -> &Sharding {
        &self.inserter.func.ty(value).sharding
    }

    fn cost(&self, value: Value, from: &Sharding, to: &Sharding) -> f64 {
        let is_free = from.unreduced.is_empty() && self.makers.contains_key(&value);
        if is_free { 0.0 } else { self.inserter.planner.cost(&self.inserter.func.ty(value).array, from, to) }
    }

    fn is_used_once(&self, value: Value) -> bool {
        self.uses[value.0 as usize] == 1
    }

    /// The fraction of a value's cost that one of its users pays.
    fn share(&self, value: Value) -> f64 {
        1.0 / f64::from(self.uses[value.0 as usize].max(1))
    }

    /// Whether an operand or result is aligned with another array; partial values have blocks of their own size.
    fn is_aligned(&self, stmt: &Stmt) -> bool {
        stmt.args.iter().chain(&stmt.results).any(|&value| self.layout(value).is_aligned())
    }

    /// The sets of operands that may be partial together while all others are whole.
    fn sets(&self, stmt: &Stmt) -> Vec<Vec<usize>> {
        let each = |first: usize| (first..stmt.args.len()).map(|at| vec![at]).collect::<Vec<_>>();
        if let Some(Round { bounds, .. }) = loop_of(stmt) {
            return each(bounds);
        }
        let Some(op) = stmt.op() else { return Vec::new() };
        let args = self.inserter.func.types(&stmt.args);
        // A product of partial operands repeats work.
        let repeats = op.rules().properties().linear == Linear::Contraction;
        if repeats || stmt.results.len() != 1 || args.is_empty() || self.is_aligned(stmt) {
            return Vec::new();
        }
        let mut sets = each(0);
        if args.len() > 1 {
            sets.push((0..args.len()).collect());
        }
        let partial = AxisSet::of(0);
        sets.retain(|set| {
            let axes = |at: usize| if set.contains(&at) { partial } else { AxisSet::EMPTY };
            let axes: Vec<AxisSet> = (0..args.len()).map(axes).collect();
            let factors: Vec<FactorBounds> = stmt.args.iter().map(|arg| self.constants[arg.0 as usize]).collect();
            passes_sums(op, &args, &axes, &factors)
        });
        sets
    }

    /// Prices every value of the block.
    fn learn(&mut self, block: &Block, nodes: &mut SumNodes) {
        let mut linear: BTreeMap<Value, Vec<usize>> = BTreeMap::new();
        for (position, stmt) in block.stmts.iter().enumerate() {
            let operands: BTreeSet<usize> = self.sets(stmt).into_iter().flatten().collect();
            operands.into_iter().for_each(|operand| linear.entry(stmt.args[operand]).or_default().push(position));
        }
        linear.retain(|value, positions| {
            // A carried value is followed only if it has a single use.
            let several = !self.apart[value.0 as usize] && !block.params.contains(value);
            self.is_used_once(*value) || several && positions.len() == self.uses[value.0 as usize] as usize
        });
        nodes.consumers.extend(linear);
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtKind::Op(op) => {
                    if let Some(node) = self.node(op, stmt, nodes) {
                        nodes.of.insert(stmt.results[0], node);
                    }
                }
                StmtKind::Control(Control::For(_) | Control::While(_)) => self.round(stmt, nodes),
                StmtKind::Control(Control::Branch(_) | Control::Manual(_)) => {}
            }
        }
    }

    /// The costs of the result of a statement that is linear or sums.
    fn node(&self, op: &Op, stmt: &Stmt, nodes: &SumNodes) -> Option<SumNode> {
        let &[result] = stmt.results.as_slice() else { return None };
        let children: Vec<Option<&SumNode>> = stmt.args.iter().map(|&arg| nodes.child(arg)).collect();
        let is_sum = op.rules().properties().combines == Combines::Elements(ReduceOp::Sum);
        // Most sums have no linear users.
        let is_base = is_sum && !self.is_aligned(stmt) && nodes.consumers.contains_key(&result);
        if children.iter().all(Option::is_none) && !is_base {
            return None;
        }
        let projection = Projection::new(self.inserter.func.factors(op, stmt));
        let wanted = self.layout(result);
        let whole = stmt.args.iter().zip(&children).filter_map(|(&arg, &child)| Some(self.share(arg) * child?.whole));
        let whole: f64 = whole.sum();
        let mut node = SumNode { whole, ..SumNode::default() };
        if is_sum && !self.is_aligned(stmt) {
            let assignment = self.inserter.choose(&projection, stmt);
            let alignments = alignments_of(&self.inserter.func, &projection, stmt, &assignment);
            let layout = natural(&projection, &projection.rule.results[0], &assignment, &alignments, AxisSet::EMPTY);
            if self.is_partial_sum(&layout) {
                node.whole += self.cost(result, &layout, wanted);
                node.offer(PartialLayout { layout, cost: whole, operands: None });
            }
        }
        let own_work = self.work(stmt, wanted);
        for set in &self.sets(stmt) {
            let mut ways: Vec<(usize, Sharding)> = Vec::new();
            for &at in set {
                let child = children[at].map(|child| child.partial.as_slice()).unwrap_or_default();
                ways.extend(child.iter().map(|way| (at, way.layout.clone())));
            }
            ways.extend(self.joint(&ways, stmt));
            for (at, way) in ways {
                let Some((layout, operands)) = self.through(&projection, set, at, &way) else { continue };
                let needed = stmt.args.iter().zip(&children).zip(&operands);
                let moved: f64 = needed.map(|((&arg, &child), to)| self.operand(arg, child, to).0).sum();
                let cost = moved + self.work(stmt, &layout) - own_work;
                node.offer(PartialLayout { layout, cost, operands: Some(operands) });
            }
        }
        self.settle(&mut node, result);
        (!node.partial.is_empty()).then_some(node)
    }

    /// For operands that are partial over different axes: one sum over all of them, and a layout that is split over all of them.
    fn joint(&self, ways: &[(usize, Sharding)], stmt: &Stmt) -> Vec<(usize, Sharding)> {
        let ty = self.inserter.func.ty(stmt.results[0]);
        let mut found = Vec::new();
        for (i, (at, way)) in ways.iter().enumerate() {
            for (other_at, other) in &ways[i + 1..] {
                let is_alike = other_at == at || other.unreduced == way.unreduced || other.dims != way.dims;
                let same_shape =
                    [at, other_at].iter().all(|at| self.inserter.func.ty(stmt.args[**at]).array == ty.array);
                if is_alike || !same_shape || !self.is_partial_sum(way) || !self.is_partial_sum(other) {
                    continue;
                }
                let axes = way.unreduced.union(other.unreduced);
                found.push((*at, way.clone().with_unreduced(axes, ReduceOp::Sum)));
                let mut split = self.layout(stmt.results[0]).clone();
                let more: Vec<u8> = axes.minus(split.used_axes()).iter().map(|axis| axis as u8).collect();
                let block = |dim: usize| ty.shape()[dim] / self.inserter.mesh.size_of(&split.dims[dim].axes);
                let divides = |&dim: &usize| block(dim).is_multiple_of(self.inserter.mesh.size_of(&more));
                if let Some(dim) = (0..ty.rank()).rev().filter(divides).max_by_key(|&dim| block(dim))
                    && !more.is_empty()
                {
                    split.dims[dim].axes.extend(more);
                    found.push((*at, split));
                }
            }
        }
        found
    }

    /// Uses one of the partial layouts for the whole value, if that is cheaper.
    fn settle(&self, node: &mut SumNode, value: Value) {
        for way in &node.partial {
            let cost = way.cost + self.cost(value, &way.layout, self.layout(value));
            if cost < node.whole {
                (node.whole, node.through) = (cost, Some(way.layout.clone()));
            }
        }
    }

    /// The costs of the results of a loop whose body may add to a carried value while it is partial.
    fn round(&mut self, stmt: &Stmt, nodes: &mut SumNodes) {
        let Some(Round { bounds, trips, first, cond, body }) = loop_of(stmt) else { return };
        let mut inside = self.inside(stmt);
        self.inserter.enter(false, trips);
        self.learn(body, &mut inside);
        let mut round = SumNodes { consumers: inside.consumers.clone(), ..SumNodes::default() };
        for (&param, &next) in body.params[first..].iter().zip(&body.results) {
            if let Some(node) = inside.child(next) {
                round.of.insert(param, SumNode::carried(node.partial.iter().map(|way| way.layout.clone())));
            }
        }
        if !round.of.is_empty() {
            self.learn(body, &mut round);
        }
        self.inserter.open_blocks.pop();
        if round.of.is_empty() {
            return;
        }
        for (i, &param) in body.params[first..].iter().enumerate() {
            let (next, result, init) = (body.results[i], stmt.results[i], stmt.args[bounds + i]);
            let decides = cond.is_some_and(|cond| self.uses[cond.params[i].0 as usize] > 0);
            let aligned = [init, result].into_iter().any(|value| self.layout(value).is_aligned());
            let Some(each) = inside.child(next).filter(|_| !decides && !aligned) else { continue };
            let child = nodes.child(init);
            let whole = trips * each.whole + child.map_or(0.0, |child| self.share(init) * child.whole);
            let mut node = SumNode { whole, ..SumNode::default() };
            for way in round.of.get(&next).map(|node| node.partial.as_slice()).unwrap_or_default() {
                if self.returns(body, &round, next, &way.layout, param) {
                    let cost = trips * way.cost + self.operand(init, child, &way.layout).0;
                    node.offer(PartialLayout { layout: way.layout.clone(), cost, operands: None });
                }
            }
            debug_assert!(node.partial.len() <= MAX_WAYS, "more ways than are looked at");
            self.settle(&mut node, result);
            if !node.partial.is_empty() {
                nodes.of.insert(result, node);
            }
        }
    }

    /// Whether a value in this layout is computed from the parameter in the same layout, or the parameter is not read.
    fn returns(&self, body: &Block, nodes: &SumNodes, value: Value, layout: &Sharding, param: Value) -> bool {
        if self.uses[param.0 as usize] == 0 {
            return true;
        }
        let mut at = vec![(value, layout.clone())];
        while let Some((value, found)) = at.pop() {
            if value == param {
                return found == *layout && nodes.consumers.contains_key(&param);
            }
            let (Some(way), Some(maker)) = (
                nodes.child(value).and_then(|node| node.way(&found)),
                body.stmts.iter().find(|stmt| stmt.results.contains(&value)),
            ) else {
                continue;
            };
            if let Some(Round { bounds, .. }) = loop_of(maker) {
                let carried = maker.results.iter().zip(&maker.args[bounds..]).find(|(result, _)| **result == value);
                at.extend(carried.map(|(_, &init)| (init, found)));
            } else if let Some(operands) = &way.operands {
                at.extend(maker.args.iter().copied().zip(operands.iter().cloned()));
            }
        }
        false
    }

    /// The initial state inside a loop.
    fn inside(&self, stmt: &Stmt) -> SumNodes {
        let mut nodes = SumNodes::default();
        if let Some(Round { bounds, body, .. }) = loop_of(stmt) {
            let nexts = body.results.iter().take(stmt.args.len() - bounds);
            nodes.consumers.extend(nexts.filter(|&&next| self.is_used_once(next)).map(|&next| (next, vec![ROUND])));
        }
        nodes
    }

    /// Whether a value in this layout is a sum along auto axes.
    fn is_partial_sum(&self, layout: &Sharding) -> bool {
        let auto = self.inserter.mesh.of_kind(AxisKind::Auto);
        !layout.unreduced.is_empty() && layout.combine == ReduceOp::Sum && layout.unreduced.is_subset_of(auto)
    }

    /// The layouts of the result and of all operands if the operand `at` has this partial layout.
    fn through(
        &self,
        projection: &Projection,
        set: &[usize],
        at: usize,
        layout: &Sharding,
    ) -> Option<(Sharding, Vec<Sharding>)> {
        debug_assert!(set.contains(&at), "operand {at} is partial with the others");
        let rule = &projection.rule;
        let lists = projection.factors_of(&rule.operands[at], |dim| &layout.dims[dim].axes, self.inserter.mesh);
        let assignment: Assignment = lists.into_iter().map(|axes| axes.unwrap_or_default().to_vec()).collect();
        let is_used = assignment.iter().flatten().any(|&axis| layout.unreduced.contains(axis.into()));
        let mut factors = rule.factors.iter().zip(&assignment);
        let moves = factors.any(|(factor, axes)| factor.kind == FactorKind::Window && !axes.is_empty());
        let axes = layout.dims.iter().map(|dim| &dim.axes);
        let fits = projection.dims_of(&rule.operands[at], &assignment).iter().eq(axes)
            && projection.is_valid(&assignment, self.inserter.mesh)
            && !is_used
            && !moves;
        let operand = |(at, dims): (usize, &Vec<Vec<usize>>)| {
            let axes = if set.contains(&at) { layout.unreduced } else { AxisSet::EMPTY };
            Sharding::closed(projection.dims_of(dims, &assignment)).with_unreduced(axes, ReduceOp::Sum)
        };
        fits.then(|| {
            let alignments = vec![None; rule.factors.len()];
            let result = natural(projection, &rule.results[0], &assignment, &alignments, layout.unreduced);
            (result, rule.operands.iter().enumerate().map(operand).collect())
        })
    }

    /// The cost of having an operand in a layout, and the partial layout in which it is computed for that, if any.
    fn operand<'n>(&self, value: Value, node: Option<&'n SumNode>, to: &Sharding) -> (f64, Option<&'n Sharding>) {
        let Some(node) = node else { return (self.cost(value, self.layout(value), to), None) };
        let share = self.share(value);
        debug_assert!((0.0..=1.0).contains(&share), "a use bears {share} of the cost");
        let mut best = (share * node.whole + self.cost(value, self.layout(value), to), None);
        for way in &node.partial {
            let cost = share * way.cost + self.cost(value, &way.layout, to);
            if cost < best.0 || cost == best.0 && best.1.is_none() {
                best = (cost, Some(&way.layout));
            }
        }
        best
    }

    /// The work of a statement on one device, in bytes.
    fn work(&self, stmt: &Stmt, result: &Sharding) -> f64 {
        let blocks = self.inserter.mesh.size_of_set(result.used_axes());
        cost::operations(self.inserter.func.flops(stmt), blocks)
    }
}

/// The decisions, from the last statement to the first: the users of a value decide before the statement that makes it.
impl Sums<'_, '_> {
    fn block(&mut self, block: &Block, mut nodes: SumNodes) {
        self.learn(block, &mut nodes);
        for (position, stmt) in block.stmts.iter().enumerate().rev() {
            match &stmt.kind {
                StmtKind::Control(Control::For(_) | Control::While(_)) => self.decide_round(stmt, position, &nodes),
                StmtKind::Control(Control::Branch(_) | Control::Manual(_)) => {
                    self.inserter.enter(true, 1.0);
                    stmt.blocks().for_each(|inner| self.block(inner, SumNodes::default()));
                    self.inserter.open_blocks.pop();
                }
                StmtKind::Op(_) => self.decide(stmt, position, &nodes),
            }
        }
    }

    /// The partial layout in which a value is to be computed, if any.
    fn target(&self, value: Value, nodes: &SumNodes) -> Option<Sharding> {
        self.held.get(&value).cloned().or_else(|| nodes.of.get(&value).and_then(|node| node.through.clone()))
    }

    /// Asks for the partial layout of an operand from which `layout` is cheapest to reach, if there is one.
    fn hold(&mut self, value: Value, layout: &Sharding, position: usize, nodes: &SumNodes) {
        if !nodes.consumers.get(&value).is_some_and(|positions| positions.contains(&position)) {
            return;
        }
        let (_, made) = self.operand(value, nodes.of.get(&value), layout);
        if let Some(made) = made {
            self.asked.entry(value).or_default().push(made.clone());
        }
    }

    /// Decides the layout of a value once all its users have asked for one.
    fn agree(&mut self, value: Value) {
        let Some(asked) = self.asked.remove(&value) else { return };
        debug_assert!(asked.len() <= self.uses[value.0 as usize] as usize, "{value} is asked for more often than used");
        if asked.len() == self.uses[value.0 as usize] as usize && asked.iter().all(|layout| *layout == asked[0]) {
            self.held.extend(asked.into_iter().next().map(|layout| (value, layout)));
        } else {
            self.disputed.push(value);
        }
    }

    fn decide(&mut self, stmt: &Stmt, position: usize, nodes: &SumNodes) {
        let &[result] = stmt.results.as_slice() else { return };
        self.agree(result);
        let Some(layout) = self.target(result, nodes) else { return };
        let way = nodes.of.get(&result).and_then(|node| node.way(&layout));
        if let Some(operands) = way.and_then(|way| way.operands.clone()) {
            debug_assert_eq!(stmt.args.len(), operands.len(), "a linear statement says how all operands lie");
            // The statement may itself sum along explicit axes; its operands are partial along auto ones.
            debug_assert!(layout.combine == ReduceOp::Sum || layout.unreduced.is_empty(), "only sums are deferred");
            let is_sum = |layout: &Sharding| self.is_partial_sum(layout) || layout.unreduced.is_empty();
            debug_assert!(operands.iter().all(is_sum), "an operand is partial along axes whose types are fixed");
            let pairs = stmt.args.iter().zip(&operands);
            pairs.for_each(|(&arg, layout)| self.hold(arg, layout, position, nodes));
            self.linear.insert(result, (layout, operands));
        }
    }

    fn decide_round(&mut self, stmt: &Stmt, position: usize, nodes: &SumNodes) {
        let Some(Round { bounds, trips, first, cond, body }) = loop_of(stmt) else { return };
        let mut inside = self.inside(stmt);
        for (i, &param) in body.params[first..].iter().enumerate() {
            self.agree(stmt.results[i]);
            let Some(layout) = self.target(stmt.results[i], nodes) else { continue };
            self.hold(stmt.args[bounds + i], &layout, position, nodes);
            self.rounds.insert(stmt.results[i], layout.clone());
            self.held.insert(body.results[i], layout.clone());
            inside.of.insert(param, SumNode::carried(std::iter::once(layout)));
        }
        self.inserter.enter(false, trips);
        self.block(body, inside);
        if let Some(cond) = cond {
            self.block(cond, SumNodes::default());
        }
        self.inserter.open_blocks.pop();
    }
}

struct Rewriter<'a, 'b> {
    inserter: &'a mut Inserter<'b>,
    makers: BTreeMap<Value, Stmt>,
    held: BTreeMap<Value, Sharding>,
    linear: BTreeMap<Value, (Sharding, Vec<Sharding>)>,
    rounds: BTreeMap<Value, Sharding>,
}

impl Rewriter<'_, '_> {
    fn block(&mut self, mut block: Block) -> Block {
        let mut stmts = Vec::new();
        for mut stmt in std::mem::take(&mut block.stmts) {
            let mut after = Vec::new();
            if let Some(Round { bounds, first, .. }) = loop_of(&stmt) {
                for i in 0..stmt.args.len() - bounds {
                    let Some(layout) = self.rounds.remove(&stmt.results[i]) else { continue };
                    stmt.args[bounds + i] = self.operand(stmt.args[bounds + i], &layout, &stmt.origin, &mut stmts);
                    for block in stmt.blocks() {
                        let param = block.params[first + i];
                        self.inserter.func.info_mut(param).ty.sharding = layout.clone();
                    }
                    self.result(&mut stmt, i, layout, &mut after);
                }
            } else if let Some((layout, operands)) = stmt.results.first().and_then(|first| self.linear.remove(first)) {
                for (arg, layout) in stmt.args.iter_mut().zip(&operands) {
                    *arg = self.operand(*arg, layout, &stmt.origin, &mut stmts);
                }
                self.result(&mut stmt, 0, layout, &mut after);
            }
            for inner in stmt.blocks_mut() {
                *inner = self.block(std::mem::take(inner));
            }
            stmts.push(stmt);
            stmts.append(&mut after);
        }
        block.stmts = stmts;
        block
    }

    /// The value in this layout, resharded before its user.
    fn operand(&mut self, value: Value, layout: &Sharding, origin: &Origin, stmts: &mut Vec<Stmt>) -> Value {
        let ty = self.inserter.func.ty(value).clone();
        if ty.sharding == *layout {
            return value;
        }
        let whole = layout.clone().with_unreduced(AxisSet::EMPTY, ReduceOp::Sum);
        if let Some(maker) = self.makers.get(&value)
            && ty.sharding != whole
        {
            let copy = self.inserter.new_value(Type { sharding: whole, ..ty.clone() }, &maker.origin, 0);
            stmts.push(maker.making(vec![copy]));
            return self.operand(copy, layout, origin, stmts);
        }
        let origin = origin.because("this is added to partial sums");
        let made = self.inserter.new_value(Type { sharding: layout.clone(), ..ty }, &origin, 0);
        let request = Reshard::request(layout.clone());
        stmts.push(statement(&self.inserter.func, self.inserter.mesh, (request, &[value]), &[made], &origin));
        made
    }

    /// Makes a result in this layout, and reshards it to the wanted one.
    fn result(&mut self, stmt: &mut Stmt, i: usize, layout: Sharding, after: &mut Vec<Stmt>) {
        let wanted = stmt.results[i];
        if self.held.get(&wanted) == Some(&layout) {
            return;
        }
        let axes = self.inserter.mesh.display_set(layout.unreduced);
        let behind = match &stmt.kind {
            StmtKind::Op(op) => called(op.rules().name()),
            StmtKind::Control(_) => "the loop".to_string(),
        };
        // A loop of a derivative gives several gradients, which have origins of their own.
        let own = &self.inserter.func.info(wanted).origin;
        let origin = if own.lineage.of.is_some() { own } else { &stmt.origin };
        let origin = origin.because(match layout.unreduced.is_empty() {
            true => format!("sums over different axes are added in parts, which are joined behind {behind}"),
            false => format!("partial sums over {axes} are combined once, behind {behind}"),
        });
        let ty = Type { sharding: layout, ..self.inserter.func.ty(wanted).clone() };
        let made = self.inserter.new_value(ty, &stmt.origin, 0);
        stmt.results[i] = made;
        let request = Reshard::request(self.inserter.sharding(wanted));
        after.push(statement(&self.inserter.func, self.inserter.mesh, (request, &[made]), &[wanted], &origin));
    }
}
