//! The cost of running an op under an assignment of axes to its factors, and the cheapest assignment.
//!
//! Pricing an assignment searches a plan for each operand and result. The bytes that each device lacks are a lower bound that needs no
//! search. Assignments are priced in the order of their bounds, and assignments that cannot win are not priced.

use super::Inserter;
use spmdc_abi::ReduceOp;
use spmdc_ir::program::local::{Alignments, alignments_of, natural, needed};
use spmdc_ir::program::{Stmt, Value};
use spmdc_layout::blocks::received;
use spmdc_layout::cost::{Room, held_in_loop, operations};
use spmdc_layout::crossings;
use spmdc_layout::factors::FactorKind;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::projection::{Assignment, Projection};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, Type};
use std::collections::BTreeMap;

/// The costs of assignments; each tensor is priced once for each layout.
pub struct Costs<'a> {
    inserter: &'a Inserter<'a>,
    projection: &'a Projection,
    stmt: &'a Stmt,
    /// For each tensor, operands first, the weight of its bytes: the number of times that they move.
    weights: Vec<f64>,
    /// The number of times that the op runs.
    trips: f64,
    operations: u64,
    /// Whether more of the first operand than a trip of the loop takes can be gathered before the loop, and the room for that.
    before_loop: Option<Room>,
    /// The axes along which the operands stay partial.
    sums: AxisSet,
    moves: Vec<TensorMove<'a>>,
    /// The index of a move, by the layout that an assignment produces.
    known: BTreeMap<MoveKey, usize>,
}

/// A tensor, the value that moves for it, the axes of its dimensions, and those along which it is partial.
type MoveKey = (usize, Value, Vec<Vec<u8>>, AxisSet);

/// The move of a tensor from one layout to another.
struct TensorMove<'a> {
    array: &'a ArrayType,
    from: Sharding,
    to: Sharding,
    /// A lower bound of the cost.
    bound: f64,
    /// The cost, once it is known.
    cost: Option<f64>,
    /// The cost of the memory that is held for it throughout a loop.
    held: f64,
}

/// A statement under an assignment.
struct PricedAssignment {
    assignment: Assignment,
    /// Its operations, in bytes.
    work: f64,
    /// The index of the move of each tensor.
    moves: Vec<usize>,
    /// A lower bound of the cost.
    bound: f64,
}

impl<'a> Costs<'a> {
    pub fn new(inserter: &'a Inserter<'a>, projection: &'a Projection, stmt: &'a Stmt, sums: AxisSet) -> Costs<'a> {
        let trips = inserter.weight(inserter.open_blocks.len() - 1);
        // An operand moves where it is defined, however often the op runs.
        let moved: Vec<usize> = stmt.args.iter().map(|&arg| inserter.reach(arg)).collect();
        // `hoist` moves an exchange that is the same in every trip out of the loop.
        let defined = moved.iter().copied().max();
        let made = defined.filter(|_| !stmt.has_effect()).map_or(trips, |depth| inserter.weight(depth));
        let results = std::iter::repeat_n(made, stmt.results.len());
        // Where memory is scarce, gathers stay in loops.
        let operand = |depth: usize| if inserter.room == Room::Scarce { trips } else { inserter.weight(depth) };
        let weights = moved.into_iter().map(operand).chain(results).collect();
        let operations = inserter.func.flops(stmt);
        debug_assert!(trips.is_finite() && trips >= 0.0, "`{}` runs {trips} times", stmt.name());
        let (moves, known) = (Vec::new(), BTreeMap::new());
        let before_loop = inserter.before_loop(stmt);
        Costs { inserter, projection, stmt, weights, trips, operations, before_loop, sums, moves, known }
    }

    /// The cheapest of all combinations of candidates.
    pub fn cheapest_of_all(&mut self, candidates: &[Vec<Vec<u8>>]) -> Assignment {
        let best = self.cheapest(all_of(candidates), f64::INFINITY);
        best.map_or_else(|| vec![Vec::new(); candidates.len()], |(_, assignment)| assignment)
    }

    /// The cost of an assignment without the moves of the results: of the moves of operands, and of the work.
    pub fn of_operands(&mut self, assignment: &Assignment) -> f64 {
        let found = self.cheapest_for_operands([assignment.clone()].into_iter());
        found.map_or(f64::INFINITY, |(cost, _)| cost)
    }

    /// The layouts of the first result that are wanted and possible, each with the least cost without the moves of the results; the
    /// cheapest first.
    pub fn by_result(
        &mut self,
        candidates: &[Vec<Vec<u8>>],
        is_wanted: impl Fn(&Sharding) -> bool,
    ) -> Vec<(f64, Sharding)> {
        let mut groups: Vec<(Sharding, Vec<Assignment>)> = Vec::new();
        for assignment in all_of(candidates).filter(|assignment| self.is_possible(assignment)) {
            let alignments = alignments_of(&self.inserter.func, self.projection, self.stmt, &assignment);
            let made = natural(self.projection, &self.projection.rule.results[0], &assignment, &alignments, self.sums);
            if !is_wanted(&made) {
                continue;
            }
            match groups.iter_mut().find(|(layout, _)| *layout == made) {
                Some((_, assignments)) => assignments.push(assignment),
                None => groups.push((made, vec![assignment])),
            }
        }
        let cheapest = groups.into_iter().filter_map(|(layout, assignments)| {
            let (cost, _) = self.cheapest_for_operands(assignments.into_iter())?;
            Some((cost, layout))
        });
        let mut found: Vec<_> = cheapest.collect();
        found.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        found
    }

    /// The cheapest of these assignments where results need not move.
    fn cheapest_for_operands(&mut self, assignments: impl Iterator<Item = Assignment>) -> Option<(f64, Assignment)> {
        let operands = self.stmt.args.len();
        let results = self.weights.split_off(operands);
        let found = self.cheapest(assignments, f64::INFINITY);
        self.weights.extend(results);
        found
    }

    /// Optimizes one factor after the other until the cost no longer falls.
    pub fn cheapest_in_turn(&mut self, candidates: &[Vec<Vec<u8>>]) -> Assignment {
        let whole: Assignment = vec![Vec::new(); candidates.len()];
        let first = self.cheapest([whole.clone()].into_iter(), f64::INFINITY);
        let (mut least, mut best) = first.unwrap_or((f64::INFINITY, whole));
        loop {
            let before = least;
            for (factor, lists) in candidates.iter().enumerate() {
                let with = |axes: &Vec<u8>| {
                    let mut other = best.clone();
                    other[factor].clone_from(axes);
                    other
                };
                if let Some(found) = self.cheapest(lists.iter().map(with), least) {
                    (least, best) = found;
                }
            }
            if least >= before {
                return best;
            }
        }
    }

    /// The cheapest of these assignments, if it costs less than `least`; the first of equally cheap ones.
    fn cheapest(&mut self, assignments: impl Iterator<Item = Assignment>, least: f64) -> Option<(f64, Assignment)> {
        debug_assert!(!least.is_nan(), "what is known to be possible costs something");
        let mut ways: Vec<(usize, PricedAssignment)> = Vec::new();
        for (number, assignment) in assignments.enumerate() {
            if self.is_possible(&assignment) {
                ways.push((number, self.way(assignment)));
            }
        }
        ways.sort_by(|(i, a), (j, b)| a.bound.total_cmp(&b.bound).then(i.cmp(j)));
        let mut best: Option<(f64, usize, Assignment)> = None;
        for (number, way) in ways {
            let is_better = |cost: f64| {
                best.as_ref().map_or(cost < least, |&(least, first, _)| cost < least || cost == least && number < first)
            };
            if let Some(cost) = self.cost(&way, is_better) {
                best = Some((cost, number, way.assignment));
            }
        }
        debug_assert!(
            best.as_ref().is_none_or(|&(cost, ..)| cost < least),
            "what is found is better than what was known"
        );
        best.map(|(cost, _, assignment)| (cost, assignment))
    }

    /// Whether the op can run on the blocks of this assignment.
    fn is_possible(&self, assignment: &Assignment) -> bool {
        let factors = self.projection.rule.factors.iter().zip(assignment);
        let mut reductions = factors.filter_map(|(factor, axes)| match factor.kind {
            FactorKind::Reduce(op) if !axes.is_empty() => Some(op),
            FactorKind::Reduce(_) | FactorKind::Pass | FactorKind::Window | FactorKind::Whole => None,
        });
        let combine = reductions.next();
        !assignment.iter().flatten().any(|&axis| self.sums.contains(axis.into()))
            && reductions.all(|op| Some(op) == combine)
            && self.projection.is_valid(assignment, self.inserter.mesh)
    }

    fn way(&mut self, assignment: Assignment) -> PricedAssignment {
        let blocks: usize = assignment.iter().map(|axes| self.inserter.mesh.size_of(axes)).product();
        let work = operations(self.operations, blocks) * self.trips;
        let alignments = alignments_of(&self.inserter.func, self.projection, self.stmt, &assignment);
        let moves = (0..self.weights.len()).map(|tensor| self.of_tensor(tensor, &assignment, &alignments)).collect();
        let mut way = PricedAssignment { assignment, work, moves, bound: 0.0 };
        debug_assert_eq!(way.moves.len(), self.weights.len(), "every tensor moves, be it nowhere");
        way.bound = self.sum(&way);
        debug_assert!(way.bound >= way.work, "a move costs less than nothing");
        way
    }

    /// A lower bound of the cost, exact once all moves are priced. Arithmetic are always added in one order, so rounding cannot raise
    /// the bound above the cost.
    fn sum(&self, way: &PricedAssignment) -> f64 {
        let moves = way.moves.iter().map(|&number| &self.moves[number]);
        let weighted = moves.zip(&self.weights).map(|(m, weight)| m.cost.unwrap_or(m.bound) * weight + m.held);
        weighted.fold(way.work, |sum, cost| sum + cost)
    }

    /// The exact cost, if it is still better once it is known.
    fn cost(&mut self, way: &PricedAssignment, is_better: impl Fn(f64) -> bool) -> Option<f64> {
        let planner = &self.inserter.planner;
        for &number in &way.moves {
            if !is_better(self.sum(way)) {
                return None;
            }
            let m = &mut self.moves[number];
            m.cost.get_or_insert_with(|| planner.cost(m.array, &m.from, &m.to));
        }
        debug_assert!(self.sum(way) >= way.bound, "a way costs less than its bound");
        Some(self.sum(way)).filter(|&cost| is_better(cost))
    }

    /// The move of an operand to the layout that the op needs, or of a result to the wanted layout.
    fn of_tensor(&mut self, tensor: usize, assignment: &Assignment, alignments: &Alignments) -> usize {
        let rule = &self.projection.rule;
        let (func, mesh) = (&self.inserter.func, self.inserter.mesh);
        let (from, to, value) = match tensor.checked_sub(self.stmt.args.len()) {
            None => {
                let value = self.stmt.args[tensor];
                let from = func.ty(value).sharding.clone();
                let wanted = needed(self.projection, (tensor, func.ty(value).shape()), assignment, alignments, mesh);
                let kept = from.unreduced.intersect(self.sums);
                let wanted = wanted.with_unreduced(kept, ReduceOp::Sum);
                let (moved, to) = self.inserter.moved(value, &wanted);
                (func.ty(moved).sharding.clone(), to, moved)
            }
            Some(result) => {
                let value = self.stmt.results[result];
                let made = natural(self.projection, &rule.results[result], assignment, alignments, self.sums);
                (made, func.ty(value).sharding.clone(), value)
            }
        };
        let axes = if tensor < self.stmt.args.len() { &to } else { &from };
        let key = (tensor, value, axes.dims.iter().map(|dim| dim.axes.clone()).collect(), axes.unreduced);
        let array = &func.ty(value).array;
        *self.known.entry(key).or_insert_with(|| {
            let (bound, cost) = match from.is_aligned() || to.is_aligned() {
                true => {
                    let elements = received(&array.shape, &from, &to, mesh);
                    let bytes = elements * array.dtype.size() as f64;
                    let beside = crossings::beside_others(from.used_axes().union(to.used_axes()), mesh);
                    (0.0, Some(crossings::exchange(elements > 0.0, bytes, bytes * beside as f64, mesh)))
                }
                false => (self.inserter.planner.bound(array, &from, &to), None),
            };
            let room = self.before_loop.filter(|_| tensor == 0);
            let held = room.map_or(0.0, |room| held_in_loop(more_held(array, &from, &to, mesh), room));
            self.moves.push(TensorMove { array, from, to, bound, cost, held });
            self.moves.len() - 1
        })
    }
}

/// Bytes of a device by which an array is larger in another layout.
pub fn more_held(array: &ArrayType, from: &Sharding, to: &Sharding, mesh: &Mesh) -> usize {
    let [from, to] =
        [from, to].map(|layout| Type { sharding: layout.clone(), ..Type::replicated(array.clone()) }.block_bytes(mesh));
    to.saturating_sub(from)
}

/// All combinations of candidates, one for each factor.
fn all_of(candidates: &[Vec<Vec<u8>>]) -> impl Iterator<Item = Assignment> {
    let chosen = move |choice: Vec<usize>| choice.iter().zip(candidates).map(|(&i, list)| list[i].clone()).collect();
    let next = move |choice: &Vec<usize>| {
        let last = (0..choice.len()).rev().find(|&i| choice[i] + 1 < candidates[i].len())?;
        let mut choice = choice.clone();
        choice[last] += 1;
        choice[last + 1..].fill(0);
        Some(choice)
    };
    std::iter::successors(Some(vec![0; candidates.len()]), next).map(chosen)
}
