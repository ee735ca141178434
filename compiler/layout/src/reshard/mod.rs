//! Plans a change of sharding as steps.
//!
//! ```text
//! f32[8@X,16]{U:Y} -> f32[8@X,16@Y]    reduce_scatter
//! f32[16@X,32@Y]   -> f32[16,32@Y]     all_gather
//! f32[16@X,32]     -> f32[16,32@X]     all_to_all
//! f32[16@X,32]     -> f32[16@Y,32]     collective_permute: each device needs a part of one block
//! f32[16@Y,32]     -> f32[16@X,32]     collective_permute to f32[16@(X,Y),32], then all_gather
//! ```
//!
//! `search` finds the steps, `flow` computes their cost. Every step fetches exact ranges, so sizes that are not divisible need no special
//! case: a kind only names a step. A device fetches from the device with its own coordinates along all axes that do not split the value. So
//! it never fetches elements that it has, other devices read other copies, and groups stay small.

pub mod flow;
mod search;
pub mod step;

use crate::blocks::{exchange_axes, is_summand};
use crate::cost;
use crate::crossings;
use crate::mesh::{AxisKind, Mesh};
use crate::reshard::step::{PlanStep, ReshardStep};
use crate::sharding::{Sharding, block_range};
use crate::types::{ArrayType, Type};
use search::ReshardSearch;
use spmdc_abi::CollectiveKind;
use spmdc_abi::{AxisSet, DType};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

pub use search::MAX_PRICED;

/// A plan from one layout to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The steps; empty if the layouts are the same.
    pub steps: Vec<PlanStep>,
    /// Maximum bytes received by any device, and the cost of each collective.
    pub cost: f64,
    /// The number of steps that were priced to find it.
    pub priced: usize,
}

/// The known plans. A plan depends only on the array, the layouts, the mesh and its hosts, so all compilations that compare costs share them.
/// A clone shares the same plans.
#[derive(Clone, Debug, Default)]
pub struct Plans(Rc<RefCell<BTreeMap<Vec<usize>, OnMesh>>>);

// Only looked up, so its order does not matter.
type OnMesh = Rc<RefCell<HashMap<Request, Rc<Plan>>>>;

type Request = (DType, Vec<usize>, Sharding, Sharding);

fn request(array: &ArrayType, from: &Sharding, to: &Sharding) -> Request {
    (array.dtype, array.shape.clone(), from.clone(), to.clone())
}

impl Plans {
    /// The number of known plans, on all meshes.
    pub fn count(&self) -> usize {
        self.0.borrow().values().map(|known| known.borrow().len()).sum()
    }

    /// The number of steps that were priced to find them.
    pub fn priced(&self) -> usize {
        self.0.borrow().values().map(|known| known.borrow().values().map(|plan| plan.priced).sum::<usize>()).sum()
    }
}

/// Maximum number of steps priced to compare ways to run the statements of one program. Beyond it lower bounds decide.
pub const MAX_COMPARED: usize = 1 << 16;

/// Finds each plan once.
pub struct Planner<'a> {
    mesh: &'a Mesh,
    known: OnMesh,
    /// The known lower bounds: the layers of a network ask for the same ones.
    bounds: RefCell<HashMap<Request, f64>>,
    /// The compared requests, including those found in `plans`, so that a choice does not depend on earlier compilations.
    compared: RefCell<HashSet<Request>>,
    /// The number of steps that were priced for them.
    priced: Cell<usize>,
}

impl<'a> Planner<'a> {
    /// A planner for a mesh that takes known plans from `plans` and adds new ones.
    pub fn new(mesh: &'a Mesh, plans: &Plans) -> Planner<'a> {
        let hosts = mesh.hosts.iter().flat_map(|hosts| hosts.key());
        let machine: Vec<usize> = mesh.axes.iter().map(|axis| axis.size).chain(hosts).collect();
        let known = plans.0.borrow_mut().entry(machine).or_default().clone();
        let (bounds, compared) = (RefCell::default(), RefCell::default());
        Planner { mesh, known, bounds, compared, priced: Cell::default() }
    }

    /// The cheapest plan from one layout of an array to another.
    pub fn plan(&self, array: &ArrayType, from: &Sharding, to: &Sharding) -> Rc<Plan> {
        let request = request(array, from, to);
        if let Some(known) = self.known.borrow().get(&request) {
            return known.clone();
        }
        let found = Rc::new(plan(array, from, to, self.mesh));
        self.known.borrow_mut().insert(request, found.clone());
        found
    }

    /// The cost of the cheapest plan, for comparisons: a lower bound once [`MAX_COMPARED`] steps have been priced.
    pub fn cost(&self, array: &ArrayType, from: &Sharding, to: &Sharding) -> f64 {
        if from == to {
            return 0.0;
        }
        let request = request(array, from, to);
        let is_new = !self.compared.borrow().contains(&request);
        if is_new && self.priced.get() >= MAX_COMPARED {
            return self.bound(array, from, to);
        }
        let plan = self.plan(array, from, to);
        if is_new {
            self.priced.set(self.priced.get() + plan.priced);
            self.compared.borrow_mut().insert(request);
        }
        plan.cost
    }

    /// A lower bound of the cost of all plans, without a search.
    pub fn bound(&self, array: &ArrayType, from: &Sharding, to: &Sharding) -> f64 {
        if from == to {
            return 0.0;
        }
        let request = request(array, from, to);
        *self.bounds.borrow_mut().entry(request).or_insert_with(|| bound(array, from, to, self.mesh))
    }
}

/// The cheapest steps from one layout to another.
pub fn plan(array: &ArrayType, from: &Sharding, to: &Sharding, mesh: &Mesh) -> Plan {
    let (source, target) = ends(from, to, mesh);
    if source.combine != target.combine && !source.unreduced.is_empty() && !target.unreduced.is_empty() {
        // Partial minima cannot become partial sums: they are made whole first.
        let whole = target.clone().with_unreduced(AxisSet::EMPTY, source.combine);
        let mut found = plan(array, &source, &whole, mesh);
        found.steps.push(PlanStep { to: target, step: ReshardStep::Slice });
        return found;
    }
    let mut search = ReshardSearch::new(array, mesh, &source, &target);
    let (mut steps, cost) = search.run();
    let priced = search.priced;
    if steps.is_empty() && *from != target {
        steps.push(PlanStep { to: target.clone(), step: ReshardStep::Slice });
    }
    let found = Plan { steps, cost: cost.bytes as f64, priced };
    match summand(array, &source, &target, mesh).filter(|_| found.cost > 0.0) {
        Some(own) => {
            // Blocks become summands where they lie.
            let mut direct = plan(array, &source, &own, mesh);
            direct.priced += found.priced;
            direct.steps.push(PlanStep { to: target, step: ReshardStep::Slice });
            if direct.cost < found.cost { direct } else { Plan { priced: direct.priced, ..found } }
        }
        None => found,
    }
}

/// The layout in which a device has its summand for `to`, if explicit axes that split `from` become unreduced. Along auto axes passes
/// choose the unreduced axes, by the cost of making the value whole again.
fn summand(array: &ArrayType, from: &Sharding, to: &Sharding, mesh: &Mesh) -> Option<Sharding> {
    let partial =
        to.unreduced.minus(from.unreduced).intersect(from.used_axes()).intersect(mesh.of_kind(AxisKind::Explicit));
    if partial.is_empty() {
        return None;
    }
    let mut own = to.clone().with_unreduced(to.unreduced.minus(partial), to.combine);
    for (own, from) in own.dims.iter_mut().zip(&from.dims) {
        own.axes.extend(from.axes.iter().filter(|&&axis| partial.contains(usize::from(axis))));
    }
    is_summand(&array.shape, &own, to, mesh).then_some(own)
}

/// A lower bound of the cost of all plans from one layout to another.
pub fn bound(array: &ArrayType, from: &Sharding, to: &Sharding, mesh: &Mesh) -> f64 {
    let (source, target) = ends(from, to, mesh);
    ReshardSearch::new(array, mesh, &source, &target).bound().bytes as f64
}

/// The layouts at both ends of the search.
fn ends(from: &Sharding, to: &Sharding, mesh: &Mesh) -> (Sharding, Sharding) {
    let (source, target) = (from.close(), to.close());
    // A sum over one device is already whole.
    let single = source.unreduced.iter().filter(|&axis| mesh.axes[axis].size == 1).collect::<AxisSet>();
    let (partial, combine) = (source.unreduced.minus(single.minus(target.unreduced)), source.combine);
    (source.with_unreduced(partial, combine), target)
}

/// The axes of the groups in which devices exchange data in this step.
pub fn group(array: &ArrayType, from: &Sharding, to: &Sharding, mesh: &Mesh) -> AxisSet {
    let pattern = flow::pattern(&from.dims, &to.dims, mesh);
    let exchanged = if pattern.odds.is_some() && flow::is_even(&array.shape, &from.dims, &to.dims, mesh) {
        pattern.group
    } else {
        exchange_axes(&array.shape, from, to, mesh)
    };
    exchanged.union(summed(from, to, mesh))
}

fn summed(from: &Sharding, to: &Sharding, mesh: &Mesh) -> AxisSet {
    from.unreduced.minus(to.unreduced).iter().filter(|&axis| mesh.axes[axis].size > 1).collect()
}

/// The data that one collective moves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// The shape of the part of a device's block that takes part.
    pub operand: Vec<usize>,
    /// Bytes of this part; for several operands, the bytes of all.
    pub bytes: u64,
    /// Maximum bytes received by any device.
    pub received: u64,
    /// Bytes received by all devices together.
    pub total: u64,
    /// Maximum bytes that any host receives from others; 0 if no hosts are known.
    pub crossing: u64,
}

impl Traffic {
    /// The traffic of a collective over these axes whose operand is whole blocks of the same length.
    pub fn usual(kind: CollectiveKind, group: AxisSet, of: &Type, mesh: &Mesh) -> Traffic {
        let (bytes, n) = (of.block_bytes(mesh) as u64, mesh.size_of_set(group) as u64);
        let received = match kind {
            CollectiveKind::AllReduce => cost::all_reduce(n, bytes),
            CollectiveKind::AllGather => (n - 1) * bytes,
            CollectiveKind::ReduceScatter | CollectiveKind::AllToAll => ((n - 1) * bytes).div_ceil(n),
            CollectiveKind::CollectivePermute | CollectiveKind::Transfer => bytes,
        };
        let (operand, total) = (of.block_shape(mesh), received * mesh.device_count() as u64);
        Traffic {
            operand,
            bytes,
            received,
            total,
            crossing: crossings::of_group(kind, (group, of.distinct_axes()), bytes, mesh),
        }
    }
}

/// The exact traffic of this step.
pub fn traffic(kind: CollectiveKind, from: &Type, to: &Type, mesh: &Mesh) -> Traffic {
    let (size, devices) = (from.dtype().size() as u64, mesh.device_count() as u64);
    let moved = flow::flow(from.shape(), &from.sharding.dims, &to.sharding.dims, mesh, None);
    let n = mesh.size_of_set(summed(&from.sharding, &to.sharding, mesh)) as u64;
    let block = to.block_bytes(mesh) as u64;
    let (worst, all) = (moved.worst * size, moved.total.saturating_mul(size));
    let (received, total) = match kind {
        CollectiveKind::AllReduce => {
            let received = cost::all_reduce(n, block);
            (received, received * devices)
        }
        CollectiveKind::ReduceScatter => {
            let others = cost::reduce_scatter(n, block);
            (others + worst, others * devices + all)
        }
        CollectiveKind::CollectivePermute
        | CollectiveKind::AllGather
        | CollectiveKind::AllToAll
        | CollectiveKind::Transfer => (worst, all),
    };
    let group = group(&from.array, &from.sharding, &to.sharding, mesh);
    let dims = from.shape().iter().zip(from.sharding.dims.iter().zip(&to.sharding.dims));
    let dims = dims.map(|(&size, (from, to))| (size, from.axes.as_slice(), to.axes.as_slice()));
    let operand = operand(kind, group, dims, mesh);
    let bytes = operand.iter().product::<usize>() as u64 * size;
    Traffic { bytes, operand, received, total, crossing: crossing(from, to, mesh) }
}

/// Maximum bytes that any host receives from others in this step.
fn crossing(from: &Type, to: &Type, mesh: &Mesh) -> u64 {
    let (summed, size) = (summed(&from.sharding, &to.sharding, mesh), from.dtype().size());
    let moved = crossings::moved(from.shape(), &from.sharding.dims, &to.sharding.dims, mesh) * size as u64;
    if summed.is_empty() {
        return moved;
    }
    let dims = (&from.sharding.dims[..], &to.sharding.dims[..]);
    moved + crossings::combined((from.shape(), size), dims, (summed, to.sharding.unreduced), mesh)
}

/// The shape of a collective's operand on one device: the part of its block that its group needs. For a permutation, which sends as
/// much as it receives, it is the size of the target. Each dimension is given by its size, and the axes that split it before and
/// after.
pub fn operand<'a>(
    kind: CollectiveKind,
    group: AxisSet,
    dims: impl Iterator<Item = (usize, &'a [u8], &'a [u8])>,
    mesh: &Mesh,
) -> Vec<usize> {
    let len = |(size, from, to): (usize, &[u8], &[u8])| match kind {
        CollectiveKind::AllReduce | CollectiveKind::CollectivePermute => size.div_ceil(mesh.size_of(to)),
        CollectiveKind::AllGather
        | CollectiveKind::ReduceScatter
        | CollectiveKind::AllToAll
        | CollectiveKind::Transfer => used(size, from, to, group, mesh),
    };
    dims.map(len).collect()
}

/// The number of indices of the first block of a dimension that some device in the group needs.
fn used(size: usize, from: &[u8], to: &[u8], group: AxisSet, mesh: &Mesh) -> usize {
    let mut positions = vec![0];
    for &axis in to {
        let count = mesh.axes[axis as usize].size;
        let coordinates = if group.contains(axis as usize) { count } else { 1 };
        let longer = |position: &usize| {
            let first = position * count;
            first..first + coordinates
        };
        positions = positions.iter().flat_map(longer).collect();
    }
    let (own, blocks) = (block_range(size, mesh.size_of(from), 0), mesh.size_of(to));
    let needed = positions.into_iter().map(|position| block_range(size, blocks, position));
    needed.map(|range| own.end.min(range.end).saturating_sub(range.start)).sum()
}
