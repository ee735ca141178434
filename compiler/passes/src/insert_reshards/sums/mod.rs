//! Decides where partial sums are combined: where they arise, or after ops that are linear in them.
//!
//! ```text
//! x @ y + x @ z                        the products stay partial, one all_reduce after `+`
//! let s = x @ y; sum(s - s / 4)        `s` stays partial, one all_reduce of a number
//! for i in .. { g = g + x[i] @ y[i] }  `g` stays partial, one all_reduce after the loop
//! ```
//!
//! Such a sum may be cheaper in another layout than a sum that is needed whole immediately. For example, `x[i]` and `y[i]` of one trip are
//! gathered for fewer bytes than their product has, and the sum of all products moves once. So a sum of whole operands is priced in several
//! partial layouts (`sums_of`).
//!
//! A value that only linear statements use belongs to a graph of such statements. Going through a block, the pass computes for each result
//! the cost of having it whole, and the cost of each partial layout that one of its operands can have. This cost is zero for a sum over a
//! split dimension, which is partial anyway, and for a whole value that can be relabelled. Otherwise it is the cost of the move. The root
//! of a graph is wanted whole and takes the cheaper way: its operands are combined, or it is combined itself. A loop multiplies the cost of
//! its body by its trips, unless the carried value can stay partial throughout; collected values may be partial, too. If the program makes
//! the initial or next value of a loop partial, the loop carries it partially if it can, at any cost. In a tie, sums are combined at once.
//!
//! A gradient whose value has an annotation is pinned like the value. The annotation applies to the whole sum, so the gradient may stay
//! partial.
//!
//! Several users of a value share its cost. `sum(s - s / 4)` combines the total. If `s + a` and `s - b` are both needed whole, each pays
//! half of `s`, and would pay for all of its own sum. If the users want it in different layouts, they get it whole: then all values are
//! priced again without following that value.
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

mod decisions;
mod rewriter;

use super::costs::{Costs, more_held};
use super::{Inserter, OpenBlock, are_few};
use rewriter::Rewriter;
use spmdc_abi::ReduceOp;
use spmdc_ir::op::Op;
use spmdc_ir::program::control::{Branch, Control};
use spmdc_ir::program::local::{alignments_of, natural};
use spmdc_ir::program::partial_sums::{FactorBounds, passes_sums};
use spmdc_ir::program::{Block, Stmt, StmtKind, Value};
use spmdc_ir::rules::{Combines, Linear};
use spmdc_layout::cost;
use spmdc_layout::factors::FactorKind;
use spmdc_layout::projection::{Assignment, Projection};
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::AxisSet;
use spmdc_ops::reshard::Reshard;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of partial layouts of a value that are considered.
const MAX_WAYS: usize = 6;

/// Maximum number of partial layouts that are considered for a sum of whole operands, in addition to the cheapest one if it is needed
/// whole.
const MAX_SUMS: usize = 3;

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
    /// The cost of the bytes that loops hold for it more than for the layouts that propagation decided. It does not grow with the trips of a loop around.
    held: f64,
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
    /// For each value whose users may all take it partial: the first result of each user, or [`ROUND`].
    consumers: BTreeMap<Value, Vec<Value>>,
}

/// Stands for a user: a loop carries the value to its next trip, or collects it.
const ROUND: Value = Value(u32::MAX);

impl SumNodes {
    /// The costs of an operand, if it may be partial.
    fn child(&self, value: Value) -> Option<&SumNode> {
        self.consumers.get(&value).and_then(|_| self.of.get(&value))
    }
}

impl SumNode {
    /// The costs of a carried value inside a loop that already has it in one of these layouts.
    fn carried(layouts: impl Iterator<Item = Sharding>) -> SumNode {
        let partial = layouts.map(|layout| PartialLayout { layout, cost: 0.0, held: 0.0, operands: None }).collect();
        SumNode { partial, ..SumNode::default() }
    }

    fn way(&self, layout: &Sharding) -> Option<&PartialLayout> {
        self.partial.iter().find(|way| way.layout == *layout)
    }

    fn offer(&mut self, new: PartialLayout) {
        debug_assert!(!new.cost.is_nan() && new.held >= 0.0, "a partial layout has a cost");
        match self.partial.iter().position(|way| way.layout == new.layout) {
            Some(at) if new.cost + new.held < self.partial[at].cost + self.partial[at].held => self.partial[at] = new,
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
    /// Statements that every device can compute independently in any layout, by their results.
    makers: BTreeMap<Value, Stmt>,
    /// The layouts of all values that stay partial.
    held: BTreeMap<Value, Sharding>,
    /// By result: the partial layout in which a linear statement is computed, and the layouts of its operands.
    linear: BTreeMap<Value, (Sharding, Vec<Sharding>)>,
    /// By result of a loop or branch: the partial layout in which it is carried, collected or given.
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

/// Whether a statement gives a gradient the layout that the program gives its value: of the whole sum, which may be combined later.
fn is_pinned_gradient(stmt: &Stmt) -> bool {
    let is_pin = |op: &Reshard| op.step == ReshardStep::PinGradient && op.to.unreduced.is_empty();
    stmt.as_op::<Reshard>().is_some_and(is_pin)
}

/// The layout of values of a layout that a loop collects.
fn stacked(layout: &Sharding) -> Sharding {
    let mut layout = layout.clone();
    layout.dims.insert(0, DimSharding::closed(Vec::new()));
    layout
}

/// The layout of the value of one trip that a loop collects in this layout.
fn of_trip(layout: &Sharding) -> Sharding {
    let mut layout = layout.clone();
    layout.dims.remove(0);
    layout
}

/// The statement of a block, or of a branch in it, that makes a value.
fn maker(block: &Block, value: Value) -> Option<&Stmt> {
    block.stmts.iter().find_map(|stmt| match stmt.control() {
        _ if stmt.results.contains(&value) => Some(stmt),
        Some(Control::Branch(op)) => op.sides().into_iter().find_map(|side| maker(side, value)),
        Some(Control::For(_) | Control::While(_) | Control::Manual(_)) | None => None,
    })
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
        if is_pinned_gradient(stmt) || self.asked_partial(stmt).is_some() {
            return each(0);
        }
        let args = self.inserter.func.types(&stmt.args);
        // A product of partial operands repeats work.
        let repeats = op.rules().properties().linear == Linear::Contraction;
        if repeats || stmt.results.len() != 1 || args.is_empty() || self.is_aligned(stmt) {
            return Vec::new();
        }
        let mut sets = each(0);
        let together = match op.rules().properties().linear {
            Linear::Places(operands) => operands.to_vec(),
            Linear::No
            | Linear::Together
            | Linear::Apart
            | Linear::Product
            | Linear::Contraction
            | Linear::Quotient
            | Linear::Conversion(_) => (0..args.len()).collect(),
        };
        if together.len() > 1 {
            sets.push(together);
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

    /// The partial layout that the program gives a value.
    fn asked_partial<'s>(&self, stmt: &'s Stmt) -> Option<&'s Sharding> {
        let op = stmt.as_op::<Reshard>()?;
        let is_asked = matches!(op.step, ReshardStep::Request | ReshardStep::Pin | ReshardStep::PinGradient);
        Some(&op.to).filter(|to| is_asked && self.is_partial_sum(stmt.results[0], to) && !self.is_aligned(stmt))
    }

    /// Prices every value of the block.
    fn learn(&mut self, block: &Block, nodes: &mut SumNodes) {
        let mut linear: BTreeMap<Value, Vec<Value>> = BTreeMap::new();
        self.linear_uses(block, &mut linear);
        linear.retain(|value, users| {
            let several = !self.apart[value.0 as usize];
            self.is_used_once(*value) || several && users.len() == self.uses[value.0 as usize] as usize
        });
        nodes.consumers.extend(linear);
        self.price(block, nodes);
    }

    /// For each value, its users in a block and the branches in it that may take it partial.
    fn linear_uses(&self, block: &Block, linear: &mut BTreeMap<Value, Vec<Value>>) {
        for stmt in &block.stmts {
            let operands: BTreeSet<usize> = self.sets(stmt).into_iter().flatten().collect();
            for operand in operands {
                linear.entry(stmt.args[operand]).or_default().push(stmt.results[0]);
            }
            let Some(Control::Branch(op)) = stmt.control() else { continue };
            for side in op.sides() {
                self.linear_uses(side, linear);
                let given = side.results.iter().zip(&stmt.results);
                for (value, _) in given.filter(|(_, result)| !self.layout(**result).is_aligned()) {
                    linear.entry(*value).or_default().push(stmt.results[0]);
                }
            }
        }
    }

    fn price(&mut self, block: &Block, nodes: &mut SumNodes) {
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtKind::Op(op) => {
                    if let Some(node) = self.node(op, stmt, nodes) {
                        nodes.of.insert(stmt.results[0], node);
                    }
                }
                StmtKind::Control(Control::For(_) | Control::While(_)) => self.round(stmt, nodes),
                StmtKind::Control(Control::Branch(op)) => self.branch(op, stmt, nodes),
                StmtKind::Control(Control::Manual(_)) => {}
            }
        }
    }

    /// The costs of the result of a statement that is linear or sums.
    fn node(&self, op: &Op, stmt: &Stmt, nodes: &SumNodes) -> Option<SumNode> {
        let &[result] = stmt.results.as_slice() else { return None };
        let children: Vec<Option<&SumNode>> = stmt.args.iter().map(|&arg| nodes.child(arg)).collect();
        let is_sum = op.rules().properties().combines == Combines::Elements(ReduceOp::Sum);
        // Most sums have no linear users, and most requests are for whole values.
        let is_base = (is_sum && !self.is_aligned(stmt) || self.asked_partial(stmt).is_some())
            && nodes.consumers.contains_key(&result);
        if children.iter().all(Option::is_none) && !is_base {
            return None;
        }
        let projection = Projection::new(self.inserter.func.factors(op, stmt));
        let wanted = self.layout(result);
        let whole = stmt.args.iter().zip(&children).filter_map(|(&arg, &child)| Some(self.share(arg) * child?.whole));
        let whole: f64 = whole.sum();
        let mut node = SumNode { whole, ..SumNode::default() };
        if is_sum && !self.is_aligned(stmt) {
            for (rank, (layout, more)) in self.sums_of(&projection, stmt).into_iter().enumerate() {
                node.whole += if rank == 0 { self.cost(result, &layout, wanted) } else { 0.0 };
                if self.is_partial_sum(result, &layout) {
                    node.offer(PartialLayout { layout, cost: whole + more, held: 0.0, operands: None });
                }
            }
        }
        let own_work = self.work(stmt, wanted);
        for set in &self.sets(stmt) {
            let mut ways: Vec<(usize, Sharding)> = Vec::new();
            for &at in set {
                let child = children[at].map(|child| child.partial.as_slice()).unwrap_or_default();
                ways.extend(child.iter().map(|way| (at, way.layout.clone())));
            }
            ways.extend(self.asked_partial(stmt).map(|asked| (0, asked.clone())));
            ways.extend(self.joint(&ways, stmt));
            let turned = |value: Value| self.inserter.func.info(value).origin.turned;
            // A sum is combined where it leaves a function that turns axes.
            ways.retain(|&(at, _)| turned(stmt.args[at]) == turned(result));
            for (at, way) in ways {
                let Some((layout, operands)) = self.through(&projection, set, at, &way) else { continue };
                let needed =
                    stmt.args.iter().zip(&children).zip(&operands).map(|((&arg, &child), to)| (arg, child, to));
                let (moved, held) = self.operands(needed);
                let cost = moved + self.work(stmt, &layout) - own_work;
                node.offer(PartialLayout { layout, cost, held, operands: Some(operands) });
            }
        }
        self.settle(&mut node, result);
        (!node.partial.is_empty()).then_some(node)
    }

    /// The layouts in which a sum can be computed from whole operands, and the additional cost of each for one run, compared with the
    /// first. The first is the cheapest if the sum is needed whole immediately. Unless it is partial over all available axes, the others
    /// are partial sums, the cheapest first, and the sum is combined later. Operands may then be gathered for a sum of one trip, and remain
    /// in place for a sum over all trips.
    fn sums_of(&self, projection: &Projection, stmt: &Stmt) -> Vec<(Sharding, f64)> {
        let inserter = &*self.inserter;
        let chosen = inserter.choose(projection, stmt);
        let mut found = vec![(self.made(projection, stmt, &chosen), 0.0)];
        let candidates = inserter.candidates(projection, stmt);
        let of_factors = projection.rule.factors.iter().zip(&candidates);
        let summed = of_factors.filter(|(factor, _)| matches!(factor.kind, FactorKind::Reduce(_)));
        let mut axes = summed.flat_map(|(_, lists)| lists.iter().flatten());
        let may_sum_more = axes.any(|&axis| !found[0].0.unreduced.contains(axis.into()));
        if !may_sum_more || !are_few(&candidates) {
            return found;
        }
        let mut costs = Costs::new(inserter, projection, stmt, AxisSet::EMPTY);
        let runs = inserter.weight(inserter.open_blocks.len() - 1);
        let least = costs.of_operands(&chosen);
        // A loop without trips costs nothing in any way.
        if runs == 0.0 || least.is_infinite() {
            return found;
        }
        let others = costs
            .by_result(&candidates, |layout| self.is_partial_sum(stmt.results[0], layout) && *layout != found[0].0);
        found.extend(others.into_iter().take(MAX_SUMS).map(|(cost, layout)| (layout, (cost - least) / runs)));
        found
    }

    /// The layout in which a sum of whole operands is made.
    fn made(&self, projection: &Projection, stmt: &Stmt, chosen: &Assignment) -> Sharding {
        let alignments = alignments_of(&self.inserter.func, projection, stmt, chosen);
        natural(projection, &projection.rule.results[0], chosen, &alignments, AxisSet::EMPTY)
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
                let are_sums = [way, other].iter().all(|layout| self.is_partial_sum(stmt.results[0], layout));
                if is_alike || !same_shape || !are_sums {
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
            let cost = way.cost + way.held + self.cost(value, &way.layout, self.layout(value));
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
        for (i, (&param, &next)) in body.params[first..].iter().zip(&body.results).enumerate() {
            let summed = inside.child(next).map(|node| node.partial.as_slice()).unwrap_or_default();
            let asked =
                self.asked_to_carry(stmt.args[bounds + i], next).filter(|_| inside.consumers.contains_key(&next));
            let layouts: Vec<Sharding> = summed.iter().map(|way| way.layout.clone()).chain(asked).collect();
            if !layouts.is_empty() {
                round.of.insert(param, SumNode::carried(layouts.into_iter()));
            }
        }
        if !round.of.is_empty() {
            self.learn(body, &mut round);
        }
        self.inserter.open_blocks.pop();
        self.stacks(stmt, trips, &inside, nodes);
        if round.of.is_empty() {
            return;
        }
        for (i, &param) in body.params[first..].iter().enumerate() {
            let (next, result, init) = (body.results[i], stmt.results[i], stmt.args[bounds + i]);
            let decides = cond.is_some_and(|cond| self.uses[cond.params[i].0 as usize] > 0);
            let aligned = [init, result].into_iter().any(|value| self.layout(value).is_aligned());
            if decides || aligned || !inside.consumers.contains_key(&next) {
                continue;
            }
            let each = inside.child(next).map_or(0.0, |each| each.whole);
            let child = nodes.child(init);
            let whole = trips * each + child.map_or(0.0, |child| self.share(init) * child.whole);
            let mut node = SumNode { whole, ..SumNode::default() };
            for way in round.of.get(&next).map(|node| node.partial.as_slice()).unwrap_or_default() {
                if self.returns(body, &round, next, &way.layout, param) {
                    let (begin, held) = self.operands([(init, child, &way.layout)].into_iter());
                    let cost = trips * way.cost + begin;
                    let held = held + way.held + self.held(result, &way.layout);
                    node.offer(PartialLayout { layout: way.layout.clone(), cost, held, operands: None });
                }
            }
            debug_assert!(node.partial.len() <= MAX_WAYS, "more ways than are looked at");
            self.settle(&mut node, result);
            if let Some(way) = self.asked_to_carry(init, next).and_then(|asked| node.way(&asked).cloned()) {
                let whole = way.cost + self.cost(result, &way.layout, self.layout(result));
                node = SumNode { whole, through: Some(way.layout.clone()), partial: vec![way] };
            }
            if !node.partial.is_empty() {
                nodes.of.insert(result, node);
            }
        }
    }

    /// The costs of the results of a branch, each of which may be partial on both sides. Both sides count, as if both were taken.
    fn branch(&mut self, op: &Branch, stmt: &Stmt, nodes: &mut SumNodes) {
        self.inserter.enter(true, 1.0);
        op.sides().into_iter().for_each(|side| self.price(side, nodes));
        self.inserter.open_blocks.pop();
        for (i, &result) in stmt.results.iter().enumerate() {
            if self.layout(result).is_aligned() {
                continue;
            }
            let sides = op.sides().map(|side| side.results[i]);
            let children = || sides.iter().filter_map(|&side| Some((side, nodes.child(side)?)));
            let whole = children().map(|(side, child)| self.share(side) * child.whole).sum();
            let mut node = SumNode { whole, ..SumNode::default() };
            for layout in children().flat_map(|(_, child)| &child.partial).map(|way| &way.layout) {
                let (cost, held) = self.operands(sides.iter().map(|&side| (side, nodes.child(side), layout)));
                node.offer(PartialLayout { layout: layout.clone(), cost, held, operands: None });
            }
            self.settle(&mut node, result);
            if !node.partial.is_empty() {
                nodes.of.insert(result, node);
            }
        }
    }

    /// The partial layout that the program gives the initial value of a loop, or the next one: the loop carries it so if it only adds to it.
    fn asked_to_carry(&self, init: Value, next: Value) -> Option<Sharding> {
        let partial = [init, next].into_iter().find(|&value| self.is_partial_sum(value, self.layout(value)));
        partial.map(|value| self.layout(value).clone())
    }

    /// The costs of the values that a loop collects: partial sums of one trip become partial sums of all.
    fn stacks(&self, stmt: &Stmt, trips: f64, inside: &SumNodes, nodes: &mut SumNodes) {
        let Some(Round { bounds, body, .. }) = loop_of(stmt) else { return };
        for i in stmt.args.len() - bounds..stmt.results.len() {
            let result = stmt.results[i];
            let Some(each) = inside.child(body.results[i]).filter(|_| !self.layout(result).is_aligned()) else {
                continue;
            };
            let mut node = SumNode { whole: trips * each.whole, ..SumNode::default() };
            for way in &each.partial {
                let layout = stacked(&way.layout);
                let held = way.held + self.held(result, &layout);
                node.offer(PartialLayout { layout, cost: trips * way.cost, held, operands: None });
            }
            self.settle(&mut node, result);
            nodes.of.insert(result, node);
        }
    }

    /// Whether a value in this layout is computed from the parameter in the same layout wherever it is read, or the parameter is not
    /// read.
    fn returns(&self, body: &Block, nodes: &SumNodes, value: Value, layout: &Sharding, param: Value) -> bool {
        if self.uses[param.0 as usize] == 0 {
            return true;
        }
        let (mut at, mut seen) = (vec![(value, layout.clone())], Vec::new());
        let mut reads = 0;
        while let Some((value, found)) = at.pop() {
            if value == param {
                if found != *layout {
                    return false;
                }
                reads += 1;
                continue;
            }
            if seen.contains(&(value, found.clone())) {
                continue;
            }
            seen.push((value, found.clone()));
            let (Some(way), Some(maker)) = (nodes.child(value).and_then(|node| node.way(&found)), maker(body, value))
            else {
                continue;
            };
            if let Some(Round { bounds, .. }) = loop_of(maker) {
                let carried = maker.results.iter().zip(&maker.args[bounds..]).find(|(result, _)| **result == value);
                at.extend(carried.map(|(_, &init)| (init, found)));
            } else if let Some(Control::Branch(op)) = maker.control() {
                let given = maker.results.iter().position(|result| *result == value).expect("its maker gives it");
                at.extend(op.sides().map(|side| (side.results[given], found.clone())));
            } else if let Some(operands) = &way.operands {
                at.extend(maker.args.iter().copied().zip(operands.iter().cloned()));
            }
        }
        reads == self.uses[param.0 as usize] && nodes.consumers.contains_key(&param)
    }

    /// The initial state inside a loop.
    fn inside(&self, stmt: &Stmt) -> SumNodes {
        let mut nodes = SumNodes::default();
        if let Some(Round { body, .. }) = loop_of(stmt) {
            let nexts = body.results.iter();
            nodes.consumers.extend(nexts.filter(|&&next| self.is_used_once(next)).map(|&next| (next, vec![ROUND])));
        }
        nodes
    }

    /// Whether a value in this layout is a sum along axes along which the compiler decides its layout.
    fn is_partial_sum(&self, value: Value, layout: &Sharding) -> bool {
        let turned = self.inserter.func.info(value).origin.turned;
        let auto = self.inserter.mesh.auto_where(turned);
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
    fn operand<'n>(&self, value: Value, node: Option<&'n SumNode>, to: &Sharding) -> (f64, Option<&'n PartialLayout>) {
        let Some(node) = node else { return (self.cost(value, self.layout(value), to), None) };
        let share = self.share(value);
        debug_assert!((0.0..=1.0).contains(&share), "a use bears {share} of the cost");
        let mut best = (share * node.whole + self.cost(value, self.layout(value), to), None);
        for way in &node.partial {
            // As long as it stays so, what is held for it is not paid yet.
            let held = if way.layout == *to { 0.0 } else { way.held };
            let cost = share * way.cost + held + self.cost(value, &way.layout, to);
            if cost < best.0 || cost == best.0 && best.1.is_none() {
                best = (cost, Some(way));
            }
        }
        best
    }

    /// The cost of having operands in layouts, and the cost of the memory held for them that is not paid yet.
    fn operands<'n>(&self, needed: impl Iterator<Item = (Value, Option<&'n SumNode>, &'n Sharding)>) -> (f64, f64) {
        needed.fold((0.0, 0.0), |(all, all_held), (value, node, to)| {
            let (cost, way) = self.operand(value, node, to);
            let held = way.filter(|way| way.layout == *to).map_or(0.0, |way| way.held);
            (all + cost, all_held + held)
        })
    }

    /// The cost of the additional bytes of the values that a loop carries or collects in a partial layout.
    fn held(&self, value: Value, layout: &Sharding) -> f64 {
        let array = &self.inserter.func.ty(value).array;
        let more = more_held(array, self.layout(value), layout, self.inserter.mesh);
        cost::held_in_loop(more, self.inserter.room)
    }

    /// The work of a statement on one device, in bytes.
    fn work(&self, stmt: &Stmt, result: &Sharding) -> f64 {
        let blocks = self.inserter.mesh.size_of_set(result.used_axes());
        cost::operations(self.inserter.func.flops(stmt), blocks)
    }
}
