//! Finds the cheapest plan from one layout to another by the A* algorithm over layouts (Hart, Nilsson and Raphael, 1968).
//!
//! Every device fetches exactly the elements that it lacks, so a single step could change any layout to any other with the minimum number
//! of bytes. The search only considers sequences of named steps, so that a plan shows the data that moves:
//!
//! | step | when | a device receives at most |
//! |---|---|---|
//! | `shard` | it has all elements that it needs | nothing |
//! | `collective_permute` | its new block is inside one old block | its block |
//! | `all_to_all` | the new blocks differ along every axis of the group, and they are not larger | its block |
//! | `all_gather` | the new blocks are equal along the axes of the group, and all its devices have a part | its block without its part |
//! | `all_reduce` over `n` | partial values of its own block, or of a part | twice `(n-1)/n` of the result |
//! | `reduce_scatter` over `n` | partial values, and the new blocks differ along the axes of the sum | `n` parts |
//!
//! A device may need only a part of another device's block, so slices are free within these steps. Plans are compared by the maximum bytes
//! received by any device plus a price for each collective; then by the bytes received by all devices, then by the simplicity of the steps.
//! If hosts are known, the cost of the bytes that a host receives from others is added ([`crate::hosts`]).
//!
//! No intermediate block is larger than the larger of the first and the last block. Partial values are combined before blocks move, and
//! blocks are joined last. So only a few layouts matter: the goal, the goal split further over axes that it does not have (joining these is
//! the last step), and, after a sum, the current layout split further. With many axes and dimensions there are still many layouts. The
//! search then ends after [`MAX_PRICED`] steps with the cheapest plan found.

use super::flow::{SAMPLE, flow, is_free, pattern};
use crate::cost::{self, EFFORT_OF_ALL_TO_ALL, EFFORT_OF_STEP};
use crate::crossings;
use crate::mesh::Mesh;
use crate::reshard::step::{PlanStep, ReshardStep};
use crate::sharding::{DimSharding, Sharding};
use crate::types::ArrayType;
use spmdc_abi::AxisSet;
use spmdc_abi::CollectiveKind;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Maximum number of further splits of a goal that are considered.
const MAX_SPLITS: usize = 256;

/// Maximum number of steps priced for one change of layout.
pub const MAX_PRICED: usize = 1024;

/// The cost of a plan, compared from the first field to the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Maximum bytes received by any device, plus the price of each collective ([`cost::collective`]) and of bytes between hosts
    /// ([`cost::Levels::between`]).
    pub bytes: u64,
    /// Bytes received by all devices together.
    pub total: u64,
    /// [`EFFORT_OF_STEP`] for each statement, and more for an `all_to_all`: of two equally cheap plans, the simpler one wins.
    pub effort: u32,
}

impl std::ops::Add for Cost {
    type Output = Cost;

    fn add(self, other: Cost) -> Cost {
        Cost {
            bytes: self.bytes.saturating_add(other.bytes),
            total: self.total.saturating_add(other.total),
            effort: self.effort + other.effort,
        }
    }
}

/// An intermediate layout.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    dims: Vec<DimSharding>,
    unreduced: AxisSet,
}

impl State {
    fn of(sharding: &Sharding) -> State {
        State { dims: sharding.close().dims, unreduced: sharding.unreduced }
    }

    fn axes(&self) -> AxisSet {
        self.dims.iter().flat_map(|dim| &dim.axes).map(|&axis| axis as usize).collect()
    }
}

/// The predecessor of a state, and the step from it.
type Arrival = (Cost, Option<(State, ReshardStep)>);

pub struct ReshardSearch<'a> {
    array: &'a ArrayType,
    mesh: &'a Mesh,
    from: &'a Sharding,
    to: &'a Sharding,
    /// The further splits of the goal, by the axes available.
    goals: BTreeMap<AxisSet, Rc<Vec<Vec<DimSharding>>>>,
    /// For each layout the maximum number of elements that any device lacks of the goal, and that any host lacks.
    lacks: BTreeMap<Vec<DimSharding>, (u64, u64)>,
    /// The number of steps priced.
    pub priced: usize,
}

impl<'a> ReshardSearch<'a> {
    pub fn new(array: &'a ArrayType, mesh: &'a Mesh, from: &'a Sharding, to: &'a Sharding) -> ReshardSearch<'a> {
        ReshardSearch { array, mesh, from, to, goals: BTreeMap::new(), lacks: BTreeMap::new(), priced: 0 }
    }

    /// The steps, and their total cost.
    pub fn run(&mut self) -> (Vec<PlanStep>, Cost) {
        let start = State::of(self.from);
        let goal = State::of(self.to);
        let cap = self.block(&start.dims).max(self.block(&goal.dims));
        let mut known: BTreeMap<State, Arrival> = BTreeMap::new();
        let mut waiting = BTreeSet::from([(Cost::default(), start.clone())]);
        known.insert(start.clone(), (Cost::default(), None));
        while let Some((_, state)) = waiting.pop_first() {
            let Some(&(cost, _)) = known.get(&state) else { continue };
            if state == goal {
                return (self.steps(&known, &goal), cost);
            }
            for (next, step, price) in self.steps_from(&state, &goal) {
                let price = cost + price;
                if self.block(&next.dims) > cap || known.get(&next).is_some_and(|(known, _)| *known <= price) {
                    continue;
                }
                let rest = self.least(&next, &goal);
                if let Some((known, _)) = known.get(&next) {
                    waiting.remove(&(*known + rest, next.clone()));
                }
                known.insert(next.clone(), (price, Some((state.clone(), step))));
                waiting.insert((price + rest, next));
            }
            if self.is_spent() {
                break;
            }
        }
        match known.get(&goal) {
            Some((cost, _)) => (self.steps(&known, &goal), *cost),
            None => self.direct(&start, &goal),
        }
    }

    /// A lower bound for the rest of a plan: each device must receive at least the elements that it lacks.
    fn least(&mut self, state: &State, goal: &State) -> Cost {
        if !state.unreduced.minus(goal.unreduced).is_empty() {
            return Cost::default();
        }
        let (lacks, crossing) = match self.lacks.get(&state.dims) {
            Some(&lacks) => lacks,
            None if self.is_spent() => (0, 0),
            None => {
                let lacks = (self.flow(&state.dims, &goal.dims).worst, self.moved(&state.dims, &goal.dims));
                self.lacks.insert(state.dims.clone(), lacks);
                lacks
            }
        };
        if lacks == 0 {
            Cost::default()
        } else {
            Cost { bytes: self.price(lacks, 0, crossing).bytes, ..Cost::default() }
        }
    }

    /// A lower bound for all plans. Each device receives the elements that it lacks, and of a sum as many elements as its block
    /// has: elements that it does not receive while values are combined are combined on another device.
    pub fn bound(&mut self) -> Cost {
        let (start, goal) = (State::of(self.from), State::of(self.to));
        if start.unreduced.is_subset_of(goal.unreduced) {
            return self.least(&start, &goal);
        }
        let lacks = self.flow(&start.dims, &goal.dims).worst;
        Cost { bytes: self.price(lacks.max(self.block(&goal.dims)), 0, 0).bytes, ..Cost::default() }
    }

    /// Whether the search has priced its maximum of steps.
    fn is_spent(&self) -> bool {
        self.priced >= MAX_PRICED
    }

    fn steps(&self, known: &BTreeMap<State, Arrival>, goal: &State) -> Vec<PlanStep> {
        let mut steps = Vec::new();
        let mut at = goal;
        while let Some((_, Some((before, step)))) = known.get(at) {
            steps.push(self.step(at, *step));
            at = before;
        }
        steps.reverse();
        steps
    }

    fn step(&self, to: &State, step: ReshardStep) -> PlanStep {
        let combine = if self.from.unreduced.is_empty() { self.to.combine } else { self.from.combine };
        let sharding = Sharding { dims: to.dims.clone(), ..Sharding::replicated(0) };
        PlanStep { to: sharding.with_unreduced(to.unreduced, combine), step }
    }

    /// If blocks do not divide, there may be no named steps to the goal under the cap: then sums are made whole, and blocks move in
    /// one step.
    fn direct(&self, start: &State, goal: &State) -> (Vec<PlanStep>, Cost) {
        let mut steps = Vec::new();
        let mut cost = Cost::default();
        let left = start.unreduced.minus(goal.unreduced);
        let mut at = start.clone();
        if !left.is_empty() {
            at.unreduced = start.unreduced.minus(left);
            cost = self.all_reduce(left, start, &at);
            steps.push(self.step(&at, ReshardStep::Collective(CollectiveKind::AllReduce)));
        }
        let kind = match pattern(&at.dims, &goal.dims, self.mesh).straight {
            true => CollectiveKind::AllGather,
            false => CollectiveKind::AllToAll,
        };
        let flow = flow(&self.array.shape, &at.dims, &goal.dims, self.mesh, Some(SAMPLE));
        let crossing = self.moved(&at.dims, &goal.dims);
        at.dims.clone_from(&goal.dims);
        steps.push(self.step(&at, ReshardStep::Collective(kind)));
        cost = cost + self.price(flow.worst, flow.total, crossing);
        if at != *goal {
            steps.push(self.step(goal, ReshardStep::Slice));
        }
        (steps, cost)
    }

    fn block(&self, dims: &[DimSharding]) -> u64 {
        let lens = self.array.shape.iter().zip(dims).map(|(&size, dim)| size.div_ceil(self.blocks(dim)) as u64);
        lens.product()
    }

    fn blocks(&self, dim: &DimSharding) -> usize {
        self.mesh.size_of(&dim.axes)
    }

    /// The cost of a collective in which a device receives at most this number of elements, all devices together, and a host from others.
    fn price(&self, worst: u64, total: u64, crossing: u64) -> Cost {
        let size = self.array.dtype.size() as u64;
        let mut cost =
            Cost { bytes: cost::collective(worst * size), total: total.saturating_mul(size), effort: EFFORT_OF_STEP };
        cost.bytes = cost.bytes.saturating_add(crossings::between((crossing * size) as f64, self.mesh) as u64);
        cost
    }

    /// Maximum number of elements that any host lacks after a step without sums.
    fn moved(&self, from: &[DimSharding], to: &[DimSharding]) -> u64 {
        crossings::moved(&self.array.shape, from, to, self.mesh)
    }

    /// Maximum number of elements of partial values, and of results, that any host receives while values along these axes are combined and
    /// blocks move.
    fn combined(&self, axes: AxisSet, from: &State, to: &State) -> u64 {
        let size = self.array.dtype.size();
        let bytes =
            crossings::combined((&self.array.shape, size), (&from.dims, &to.dims), (axes, to.unreduced), self.mesh);
        bytes / size as u64 + self.moved(&from.dims, &to.dims)
    }

    fn all_reduce(&self, axes: AxisSet, from: &State, to: &State) -> Cost {
        let n = self.mesh.size_of_set(axes) as u64;
        let worst = cost::all_reduce(n, self.block(&to.dims));
        self.price(worst, worst * self.mesh.device_count() as u64, self.combined(axes, from, to))
    }

    /// Every step that may be part of a cheapest plan.
    fn steps_from(&mut self, state: &State, goal: &State) -> Vec<(State, ReshardStep, Cost)> {
        let mut found = Vec::new();
        let left = state.unreduced.minus(goal.unreduced);
        if left.is_empty() {
            if state.dims == goal.dims {
                // A value becomes partial last: partial values forbid their axes elsewhere.
                found.push((goal.clone(), ReshardStep::Slice, Cost { effort: EFFORT_OF_STEP, ..Cost::default() }));
                return found;
            }
            for dims in self.goals(state.axes(), goal).iter().cloned() {
                if self.is_spent() {
                    break;
                }
                let next = State { dims, unreduced: state.unreduced };
                found.extend(self.exchange(state, &next).map(|(step, cost)| (next, step, cost)));
            }
            return found;
        }
        for axes in subsets(left) {
            let unreduced = state.unreduced.minus(axes);
            let wanted = goal.axes().minus(state.axes());
            let held = |next: &State| next.axes().intersect(unreduced).is_empty();
            for dims in splits(&state.dims, wanted.minus(state.unreduced), AxisSet::EMPTY) {
                if self.is_spent() {
                    return found;
                }
                let next = State { dims, unreduced };
                let flow = self.flow(&state.dims, &next.dims);
                if flow.worst == 0 && is_free(&self.array.shape, &state.dims, &next.dims, flow, self.mesh) {
                    let cost = self.all_reduce(axes, state, &next);
                    found.push((next, ReshardStep::Collective(CollectiveKind::AllReduce), cost));
                }
            }
            let n = self.mesh.size_of_set(axes) as u64;
            let scattered = splits(&state.dims, wanted.union(axes).minus(unreduced), axes);
            for dims in scattered.into_iter().chain(self.goals(state.axes().union(axes), goal).iter().cloned()) {
                if self.is_spent() {
                    return found;
                }
                let next = State { dims, unreduced };
                if axes.is_subset_of(next.axes()) && held(&next) && self.parts(&next) >= self.parts(state) * n {
                    let flow = self.flow(&state.dims, &next.dims);
                    let others = cost::reduce_scatter(n, self.block(&next.dims));
                    let total = others * self.mesh.device_count() as u64 + flow.total;
                    let cost = self.price(others + flow.worst, total, self.combined(axes, state, &next));
                    found.push((next, ReshardStep::Collective(CollectiveKind::ReduceScatter), cost));
                }
            }
        }
        found
    }

    fn flow(&mut self, from: &[DimSharding], to: &[DimSharding]) -> super::flow::ReshardFlow {
        self.priced += 1;
        flow(&self.array.shape, from, to, self.mesh, Some(SAMPLE))
    }

    /// The number of parts that the array is split into.
    fn parts(&self, state: &State) -> u64 {
        state.dims.iter().map(|dim| self.blocks(dim) as u64).product()
    }

    /// Moves blocks by one named step.
    fn exchange(&mut self, from: &State, to: &State) -> Option<(ReshardStep, Cost)> {
        let flow = self.flow(&from.dims, &to.dims);
        if is_free(&self.array.shape, &from.dims, &to.dims, flow, self.mesh) {
            return Some((ReshardStep::Slice, Cost { effort: EFFORT_OF_STEP, ..Cost::default() }));
        }
        let pattern = pattern(&from.dims, &to.dims, self.mesh);
        let split = to.axes();
        let kind = if pattern.single {
            CollectiveKind::CollectivePermute
        } else if pattern.straight && pattern.group.intersect(split).is_empty() {
            CollectiveKind::AllGather
        } else if pattern.group.is_subset_of(split) && self.parts(to) >= self.parts(from) {
            CollectiveKind::AllToAll
        } else {
            return None;
        };
        let mut cost = self.price(flow.worst, flow.total, self.moved(&from.dims, &to.dims));
        if kind == CollectiveKind::AllToAll {
            cost.effort += EFFORT_OF_ALL_TO_ALL;
        }
        Some((ReshardStep::Collective(kind), cost))
    }

    /// The goal's dimensions, and further splits of them over the axes in `at` that the goal does not have.
    fn goals(&mut self, at: AxisSet, goal: &State) -> Rc<Vec<Vec<DimSharding>>> {
        let further = at.minus(goal.axes());
        self.goals.entry(further).or_insert_with(|| Rc::new(splits(&goal.dims, further, AxisSet::EMPTY))).clone()
    }
}

/// All nonempty subsets; of many axes only the whole set and the single axes.
fn subsets(axes: AxisSet) -> Vec<AxisSet> {
    let list: Vec<usize> = axes.iter().collect();
    if list.len() > 3 {
        return std::iter::once(axes).chain(list.into_iter().map(AxisSet::of)).collect();
    }
    let chosen = |bits: usize| (0..list.len()).filter(|i| bits >> i & 1 == 1).map(|i| list[i]).collect();
    (1..1 << list.len()).map(chosen).collect()
}

/// The dimensions with some of the axes appended in any order, including all `needed` ones.
fn splits(dims: &[DimSharding], axes: AxisSet, needed: AxisSet) -> Vec<Vec<DimSharding>> {
    let mut found = vec![(dims.to_vec(), AxisSet::EMPTY)];
    let mut known = BTreeSet::from([dims.to_vec()]);
    let mut begin = 0;
    while begin < found.len() && found.len() < MAX_SPLITS {
        let (dims, used) = found[begin].clone();
        begin += 1;
        for axis in axes.minus(used).iter() {
            for dim in 0..dims.len() {
                let mut next = dims.clone();
                next[dim].axes.push(axis as u8);
                if known.insert(next.clone()) {
                    found.push((next, used.union(AxisSet::of(axis))));
                }
            }
        }
    }
    found.into_iter().filter(|(_, used)| needed.is_subset_of(*used)).map(|(dims, _)| dims).collect()
}
