//! The computations of a kernel at each depth of its loops, and the places of its elements.

use crate::graph::{Graph, LaneOp, LoadForm, Node};
use crate::level::VectorLevel;
use crate::ops::{Compared, Lane, Logic, Relation};
use crate::select::{self, Selection, load_form};
use crate::vex;
use spmdc_abi::{DType, Kind};
use spmdc_kernel::cut;
use spmdc_kernel::loops::{Access, Affine, Combine, Elem, Inst, Kernel, Store};
use spmdc_kernel::nest::{Nest, Order};
use spmdc_kernel::number;
use spmdc_kernel::order::{LANES, depends_on_order};

/// Maximum number of points of a kernel that scalars compute as well.
const FEW_POINTS: u64 = 64;

/// Bytes of the largest vector.
pub const VECTOR_BYTES: i64 = 64;

/// The largest displacement that addresses have in addition to their groups.
const FAR: i64 = 1 << 28;

/// Maximum number of operations of a kernel: registers are allocated in more than linear time.
const MANY_OPERATIONS: usize = 6000;

/// The depth of operations that are emitted where they are needed: on partial results.
pub const LOCAL: usize = usize::MAX;

/// Addresses that differ by constants only.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    pub buffer: usize,
    /// Bytes of an element.
    pub size: i64,
    /// The address without its constant, unless that is large.
    pub address: Affine,
    /// The loop whose index is a part of the machine's address, and the binary logarithm of its factor.
    pub scaled: Option<(usize, u8)>,
}

/// An access: its class, and its distance from the others in bytes.
#[derive(Clone, Copy, Debug)]
pub struct AccessPlace {
    pub class: usize,
    pub displacement: i64,
}

/// A store of the kernel.
pub struct StorePlan {
    pub reached: AccessPlace,
    pub form: LoadForm,
    pub kind: StoreKind,
}

/// A value at every point, or a combination.
pub enum StoreKind {
    Point {
        value: Node,
        /// The depth at which it is stored.
        depth: usize,
    },
    Combined(Combination),
}

/// Operations on partial results. The given values of a combination are its own.
pub struct Combination {
    pub combine: Combine,
    /// The terms.
    pub value: Node,
    /// The partial result of no terms.
    pub fresh: Node,
    pub old: Node,
    pub other: Node,
    /// `old`, then `other`.
    pub merged: Node,
    /// `merged` as an element in memory, of a partial result `old`.
    pub result: Node,
    pub position: Option<PositionPlan>,
    /// Whether the order of terms matters.
    pub in_order: bool,
    /// Whether lanes have 64 bits.
    pub double: bool,
}

/// Operations on the positions of the values.
pub struct PositionPlan {
    pub old: Node,
    pub other: Node,
    /// The position of `merged`.
    pub merged: Node,
    /// Value and position where the positions are in no order.
    pub folded: [Node; 2],
}

/// A kernel with all that its emission needs.
pub struct LanePlan<'k> {
    pub kernel: &'k Kernel,
    pub nest: Nest,
    /// The loop that runs in groups of lanes.
    pub cut: usize,
    /// The loop in lanes if results are combined over rows that are far apart.
    pub columns: Option<usize>,
    /// Groups side by side.
    pub groups: usize,
    pub graph: Graph,
    /// For each depth its operations, operands first.
    pub schedule: Vec<Vec<Node>>,
    /// For each operation the innermost loop of the body that computes it.
    pub inside: Vec<Option<Node>>,
    /// For each operation whether it differs between lanes.
    pub varies: Vec<bool>,
    pub uses: Vec<u32>,
    pub stores: Vec<StorePlan>,
    pub classes: Vec<Class>,
    /// For each instruction that loads its address.
    pub loads: Vec<Option<AccessPlace>>,
    /// Whether lanes of 64 bits occur.
    pub has_doubles: bool,
    /// The stores of large arrays, which bypass the caches where vectors are aligned.
    pub streams: Vec<usize>,
}

impl<'k> LanePlan<'k> {
    /// None if an operation or the form of the kernel is not supported.
    pub fn new(kernel: &'k Kernel, level: VectorLevel) -> Option<LanePlan<'k>> {
        let nest = Nest::uncut(kernel);
        let points = nest.dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(dim.length.max));
        let is_loop = |inst: &Inst| matches!(inst, Inst::Repeat { .. });
        let few = points.is_some_and(|points| points <= FEW_POINTS) && !nest.insts.iter().any(is_loop);
        if nest.dims.is_empty() || few {
            return None;
        }
        // A check before a loop counts if the loop has an iteration.
        if !kernel.checks().is_empty() && (nest.first_reduced()..nest.dims.len()).any(|dim| nest.may_be_empty(dim)) {
            return None;
        }
        // Tiles read memory in a better order.
        let chosen = cut::choose(&nest)?;
        if chosen.rows.is_some() {
            return None;
        }
        let columns = chosen.strips.map(|_| chosen.dim);
        let Selection { graph, effects, values } = select::select(kernel, &nest)?;
        let mut plan = LanePlan {
            kernel,
            nest,
            cut: 0,
            columns,
            groups: 1,
            graph,
            schedule: Vec::new(),
            inside: Vec::new(),
            varies: Vec::new(),
            uses: Vec::new(),
            stores: Vec::new(),
            classes: Vec::new(),
            loads: Vec::new(),
            has_doubles: false,
            streams: Vec::new(),
        };
        plan.place_stores(&values)?;
        plan.schedule(effects);
        if plan.schedule.iter().map(Vec::len).sum::<usize>() > MANY_OPERATIONS {
            return None;
        }
        plan.cut = match columns {
            Some(columns) => columns,
            None => plan.choose_cut(level)?,
        };
        plan.varies = plan.varying();
        plan.place_loads()?;
        plan.groups = plan.choose_groups(level);
        plan.has_doubles =
            (0..plan.graph.len()).any(|at| matches!(plan.graph.lane(Node(at as u32)), Lane::Double | Lane::DoubleMask));
        plan.streams = plan.choose_streams();
        plan.is_supported(level).then_some(plan)
    }

    /// The combination of a store that has one.
    pub fn combination(&self, store: usize) -> &Combination {
        match &self.stores[store].kind {
            StoreKind::Combined(combination) => combination,
            StoreKind::Point { .. } => unreachable!("stores at points combine nothing"),
        }
    }

    /// Whether lanes look up different elements, at computed indices, by the number of the load.
    fn looks_up(&self) -> Vec<bool> {
        let mut looks_up = vec![false; self.nest.insts.len()];
        for at in 0..self.graph.len() {
            if let LaneOp::Lookup { inst, index, .. } = self.graph.op(Node(at as u32)) {
                looks_up[inst as usize] |= self.varies[index.0 as usize];
            }
        }
        looks_up
    }

    /// The stride of an access along the loop in lanes.
    pub fn lane_stride(&self, class: usize) -> i64 {
        Nest::stride(&self.classes[class].address, self.cut)
    }

    /// Whether sums run by lanes along the loop that is cut.
    pub fn by_lanes(&self) -> bool {
        self.nest.sums.lanes_along(self.cut).is_some()
    }

    /// Whether the loop that is cut is reduced.
    pub fn reduces_across(&self) -> bool {
        self.nest.dims[self.cut].reduced
    }

    fn reach(&mut self, access: &Access, dtype: DType) -> Option<AccessPlace> {
        let size = dtype.size() as i64;
        let mut address = access.address.clone();
        // Others are looked up.
        let insts = &self.nest.insts;
        address.dynamic.retain(|(elem, _)| matches!(insts[elem.0 as usize], Inst::LoopInvariant { .. }));
        let displacement = address.constant.checked_mul(size)?;
        let displacement = if displacement.abs() < FAR {
            address.constant = 0;
            displacement
        } else {
            0
        };
        let deepest = address.terms.iter().max_by_key(|(dim, _)| *dim).copied();
        let scaled = deepest.and_then(|(dim, stride)| match stride * size {
            1 | 2 | 4 | 8 => Some((dim, (stride * size).trailing_zeros() as u8)),
            _ => None,
        });
        let class = Class { buffer: access.buffer, size, address, scaled };
        let at = self.classes.iter().position(|known| *known == class).unwrap_or_else(|| {
            self.classes.push(class);
            self.classes.len() - 1
        });
        Some(AccessPlace { class: at, displacement })
    }

    fn place_loads(&mut self) -> Option<()> {
        self.loads = vec![None; self.nest.insts.len()];
        for at in 0..self.nest.order.len() {
            let elem = self.nest.order[at].0 as usize;
            if let Some((access, dtype)) = self.nest.insts[elem].load() {
                let access = access.clone();
                self.loads[elem] = Some(self.reach(&access, dtype)?);
            }
        }
        Some(())
    }

    fn place_stores(&mut self, values: &[Option<Node>]) -> Option<()> {
        for at in 0..self.nest.stores.len() {
            let store = self.nest.stores[at].clone();
            let is_invariant =
                |(elem, _): &(Elem, i64)| matches!(self.nest.insts[elem.0 as usize], Inst::LoopInvariant { .. });
            if !store.access.address.dynamic.iter().all(is_invariant) {
                return None;
            }
            let value = values[store.value.0 as usize]?;
            let (kind, dtype) = match store.combine {
                None => {
                    let value = self.in_memory(store.dtype, value);
                    (StoreKind::Point { value, depth: self.nest.store_level(&store) }, store.dtype)
                }
                Some(combine) => {
                    let first = match combine.operand() {
                        Some(first) => Some(values[first.0 as usize]?),
                        None => None,
                    };
                    let dtype = if combine.is_position() { DType::I32 } else { store.dtype };
                    (StoreKind::Combined(self.combine(at as u32, &store, combine, value, first)?), dtype)
                }
            };
            let reached = self.reach(&store.access, dtype)?;
            self.stores.push(StorePlan { reached, form: load_form(dtype)?, kind });
        }
        Some(())
    }

    /// A value as an element in memory.
    fn in_memory(&mut self, dtype: DType, value: Node) -> Node {
        if dtype == DType::Bool { self.truth(value) } else { self.graph.encode(dtype, value) }
    }

    /// A mask as words of 0 and 1.
    fn truth(&mut self, mask: Node) -> Node {
        let (one, zero) = (self.graph.word(1), self.graph.word(0));
        self.graph.select(mask, one, zero)
    }

    fn combine(
        &mut self,
        number: u32,
        store: &Store,
        combine: Combine,
        value: Node,
        first: Option<Node>,
    ) -> Option<Combination> {
        let dtype = store.dtype;
        let as_word = |plan: &mut LanePlan, node: Node| if dtype == DType::Bool { plan.truth(node) } else { node };
        let value = as_word(self, value);
        let lane = self.graph.lane(value);
        let fresh = match (first, combine) {
            (Some(first), _) => as_word(self, first),
            (None, Combine::Reduce(op)) => self.identity(op, dtype)?,
            (None, Combine::ArgMax) => self.identity(spmdc_abi::ReduceOp::Max, dtype)?,
            (None, Combine::ArgMin) => self.identity(spmdc_abi::ReduceOp::Min, dtype)?,
            (None, Combine::Scan { .. }) => return None,
        };
        let given = |graph: &mut Graph, at: u32, lane: Lane| graph.add(LaneOp::Given { number: 4 * number + at, lane });
        let (old, other) = (given(&mut self.graph, 0, lane), given(&mut self.graph, 1, lane));
        let (merged, position) = match combine {
            Combine::Reduce(op) | Combine::Scan { op, .. } => (self.graph.reduce(op, dtype, old, other), None),
            Combine::ArgMax | Combine::ArgMin => {
                let largest = combine == Combine::ArgMax;
                let [before, behind] = [2, 3].map(|at| given(&mut self.graph, at, Lane::Word));
                let takes = self.is_better(largest, dtype, other, old);
                let keeps = self.is_better(largest, dtype, old, other);
                let graph = &mut self.graph;
                let earlier = graph.compare(Compared::S32, Relation::Less, behind, before);
                let worse = graph.not(keeps);
                let earlier = graph.logic(Logic::And, worse, earlier);
                let either = graph.logic(Logic::Or, takes, earlier);
                let merged = graph.select(takes, other, old);
                let position = PositionPlan {
                    old: before,
                    other: behind,
                    merged: graph.select(takes, behind, before),
                    folded: [graph.select(either, other, old), graph.select(either, behind, before)],
                };
                (merged, Some(position))
            }
        };
        let result = match &position {
            Some(position) => position.old,
            None if dtype == DType::Bool => old,
            None => {
                let rounded = self.graph.rounded(dtype, old);
                self.graph.encode(dtype, rounded)
            }
        };
        let (in_order, double) = (depends_on_order(combine, dtype), lane == Lane::Double);
        Some(Combination { combine, value, fresh, old, other, merged, result, position, in_order, double })
    }

    fn identity(&mut self, op: spmdc_abi::ReduceOp, dtype: DType) -> Option<Node> {
        let bits = number::identity_element(op, dtype);
        if dtype == DType::Bool { Some(self.graph.word(bits as u32)) } else { self.graph.number(dtype, bits) }
    }

    /// Whether `a` is strictly larger (or smaller) than `b`, where NaN exceeds all numbers.
    fn is_better(&mut self, largest: bool, dtype: DType, a: Node, b: Node) -> Node {
        let double = self.graph.lane(a) == Lane::Double;
        let compared = match (dtype.kind(), double) {
            (Kind::Float, false) => Compared::F32,
            (Kind::Float, true) => Compared::F64,
            (Kind::Signed, false) => Compared::S32,
            (Kind::Signed, true) => Compared::S64,
            (_, false) => Compared::U32,
            (_, true) => Compared::U64,
        };
        if !dtype.is_float() {
            let relation = if largest { Relation::Greater } else { Relation::Less };
            return self.graph.compare(compared, relation, a, b);
        }
        let relation = if largest { Relation::LessOrEqual } else { Relation::GreaterOrEqual };
        let within = self.graph.compare(compared, relation, a, b);
        let beyond = self.graph.not(within);
        let is_nan = self.graph.compare(compared, Relation::Unordered, b, b);
        let is_number = self.graph.not(is_nan);
        self.graph.logic(Logic::And, is_number, beyond)
    }

    /// Places every needed operation at its depth.
    fn schedule(&mut self, effects: Vec<Node>) {
        let graph = &self.graph;
        let mut depth = vec![0; graph.len()];
        for at in 0..graph.len() {
            let op = graph.op(Node(at as u32));
            let own = if let LaneOp::Given { .. } = op {
                LOCAL
            } else if let LaneOp::Load { inst, .. } | LaneOp::Lookup { inst, .. } = op {
                self.nest.levels[inst as usize]
            } else if let LaneOp::Index { index, .. } = op {
                let terms = &graph.indices[index as usize].terms;
                terms.iter().map(|&(dim, _)| dim + 1).max().unwrap_or(0)
            } else {
                0
            };
            depth[at] = graph.operands(op).map(|operand| depth[operand.0 as usize]).fold(own, usize::max);
        }
        self.inside = graph.inside();
        // Outer loops first.
        for at in (0..graph.len()).rev() {
            if let Some(repeat) = self.inside[at] {
                depth[at] = depth[repeat.0 as usize];
            }
        }
        let mut needed = vec![false; graph.len()];
        let mut stack = effects;
        for store in &self.stores {
            match &store.kind {
                StoreKind::Point { value, .. } => stack.push(*value),
                StoreKind::Combined(combination) => {
                    let positions = combination
                        .position
                        .iter()
                        .flat_map(|position| [position.merged, position.folded[0], position.folded[1]]);
                    let own = [combination.value, combination.fresh, combination.merged, combination.result];
                    stack.extend(own.into_iter().chain(positions));
                }
            }
        }
        self.uses = vec![0; graph.len()];
        for &root in &stack {
            // A root is read after its last operand.
            self.uses[root.0 as usize] += 1;
        }
        while let Some(node) = stack.pop() {
            if std::mem::replace(&mut needed[node.0 as usize], true) {
                continue;
            }
            // A check runs in its loop also if nothing needs the result of that.
            stack.extend(self.inside[node.0 as usize]);
            for operand in graph.operands(graph.op(node)) {
                // Nor does one that every trip of a loop of the body uses.
                let again = self.inside[operand.0 as usize] != self.inside[node.0 as usize];
                self.uses[operand.0 as usize] += 1 + u32::from(again);
                stack.push(operand);
            }
        }
        self.schedule = vec![Vec::new(); self.nest.dims.len() + 1];
        for at in 0..graph.len() {
            let node = Node(at as u32);
            if needed[at] && depth[at] != LOCAL && graph.constant(node).is_none() {
                self.schedule[depth[at]].push(node);
            }
        }
        // A value that loops further inside use again does not die at its first use there.
        for &node in self.schedule.iter().rev().skip(1).flatten() {
            self.uses[node.0 as usize] += 1;
        }
    }

    fn varying(&self) -> Vec<bool> {
        let mut varies = vec![false; self.graph.len()];
        // A carried value varies if the one of the next trip does.
        loop {
            self.mark_varying(&mut varies);
            let pairs = self.graph.repeats.iter().flatten();
            let late: Vec<Node> =
                pairs.filter(|(_, next)| varies[next.0 as usize]).map(|&(carried, _)| carried).collect();
            if late.iter().all(|carried| std::mem::replace(&mut varies[carried.0 as usize], true)) {
                return varies;
            }
        }
    }

    fn mark_varying(&self, varies: &mut [bool]) {
        let graph = &self.graph;
        for at in 0..graph.len() {
            let op = graph.op(Node(at as u32));
            let own = if let LaneOp::Load { inst, .. } | LaneOp::Lookup { inst, .. } = op {
                let load = self.nest.insts[inst as usize].load();
                load.is_some_and(|(access, _)| Nest::stride(&access.address, self.cut) != 0)
            } else if let LaneOp::Index { index, .. } = op {
                Nest::stride(&graph.indices[index as usize], self.cut) != 0
            } else {
                // Each group has partial results of its own.
                matches!(op, LaneOp::Given { .. })
            };
            let of_operands = if let LaneOp::Repeat { trips: of, .. } | LaneOp::Last { carried: of, .. } = op {
                varies[of.0 as usize]
            } else {
                graph.operands(op).any(|operand| varies[operand.0 as usize])
            };
            varies[at] |= own || of_operands;
        }
    }

    /// The accesses of loads and stores.
    fn accesses(&self) -> impl Iterator<Item = (&Access, usize)> {
        let loads = self.nest.order.iter().filter_map(|elem| {
            let (access, _) = self.nest.insts[elem.0 as usize].load()?;
            Some((access, self.nest.levels[elem.0 as usize]))
        });
        let stores = self.nest.stores.iter().map(|store| {
            let is_point = store.combine.is_none_or(Combine::is_scan);
            (&store.access, if is_point { self.nest.dims.len() } else { self.nest.first_reduced() })
        });
        loads.chain(stores)
    }

    /// The loop to run in groups: the cheapest one by the number of vector instructions; None if scalars are better.
    fn choose_cut(&self, level: VectorLevel) -> Option<usize> {
        if let Order::Lanes { dim } = self.nest.sums {
            return Some(dim);
        }
        let lanes = u64::from(level.lanes());
        let trips = self.trips();
        let costs = (0..self.nest.dims.len()).filter(|&dim| self.nest.can_cut(dim)).map(|dim| {
            let length = self.nest.dims[dim].length.max.max(1);
            let share = length.div_ceil(lanes) as f64 / length as f64;
            let mut total = 0.0;
            for (depth, nodes) in self.schedule.iter().enumerate() {
                let share = if depth > dim { share } else { 1.0 };
                total += nodes.len() as f64 * trips[depth] * share;
            }
            let varies = self.nest.varying(dim..dim + 1);
            for (access, depth) in self.accesses() {
                let looks_up = access.address.dynamic.iter().any(|(elem, _)| varies[elem.0 as usize]);
                total += trips[depth]
                    * match Nest::stride(&access.address, dim) {
                        _ if looks_up => 1.0,
                        0 if depth > dim => share,
                        1 => share,
                        0 => 1.0,
                        // An element of its own for each lane.
                        _ => 1.0,
                    };
            }
            // Loops inside this one run once for each group.
            (total, dim)
        });
        let best = costs.min_by(|(a, _), (b, _)| a.total_cmp(b))?.1;
        (self.nest.dims[best].length.max >= u64::from(level.lanes()) / 2).then_some(best)
    }

    fn choose_groups(&self, level: VectorLevel) -> usize {
        let lanes = level.lanes();
        if self.by_lanes() {
            return (LANES / lanes) as usize;
        }
        let body: usize = self.schedule[self.cut + 1..].iter().map(Vec::len).sum();
        let has_many = level.registers() >= 32;
        let most = match body {
            // A row is read in pieces as long as there are registers for partial results.
            length if self.columns.is_some() => self.groups_of_columns(level, length),
            // The trips of a loop in the body wait for each other: even with values on the stack, more groups take less time.
            length if !self.graph.repeats.is_empty() => match length {
                0..=40 if has_many => 8,
                0..=30 => 4,
                31..=70 if has_many => 4,
                31..=70 => 2,
                _ if has_many => 2,
                _ => 1,
            },
            0..=10 => 4,
            11..=70 => 2,
            _ => 1,
        };
        let length = self.nest.dims[self.cut].length.max;
        let fits = (length / u64::from(lanes)).max(1) as usize;
        let groups = most.min(fits);
        if self.columns.is_some() {
            return groups;
        }
        // A power of two, so that partial results can be halved.
        1 << groups.ilog2()
    }

    /// The number of groups of columns whose partial results are registers.
    fn groups_of_columns(&self, level: VectorLevel, length: usize) -> usize {
        let registers = |store: &StorePlan| match &store.kind {
            StoreKind::Point { .. } => 0,
            StoreKind::Combined(combination) => {
                1 + usize::from(combination.double) + usize::from(combination.position.is_some())
            }
        };
        let partial: usize = self.stores.iter().map(registers).sum();
        let most = match length {
            0..=4 => 16,
            5..=12 => 8,
            13..=40 => 4,
            _ => 2,
        };
        (level.registers() / 2 / partial.max(1)).clamp(1, most)
    }

    /// Stores that write streamed arrays in order.
    fn choose_streams(&self) -> Vec<usize> {
        if self.cut + 1 != self.nest.dims.len() || self.nest.has_reduction() {
            return Vec::new();
        }
        let is_large = |store: &StorePlan| {
            let class = &self.classes[store.reached.class];
            matches!(store.form, LoadForm::Word | LoadForm::Double)
                && self.lane_stride(store.reached.class) == 1
                && self.kernel.buffers[class.buffer].streamed
        };
        (0..self.stores.len()).filter(|&at| is_large(&self.stores[at])).collect()
    }

    /// Whether all accesses have a form.
    fn is_supported(&self, level: VectorLevel) -> bool {
        let lanes = i64::from(level.lanes());
        let trips = self.trips();
        let mut scattered = 0.0;
        let mut forms = true;
        let looks_up = self.looks_up();
        let loads = self
            .loads
            .iter()
            .enumerate()
            .filter_map(|(inst, reached)| Some((reached.as_ref()?, looks_up[inst], trips[self.nest.levels[inst]])));
        let stores = self.stores.iter().map(|store| (&store.reached, false, trips[self.store_depth(store)]));
        for (reached, looks_up, times) in loads.chain(stores) {
            let stride = self.lane_stride(reached.class);
            if looks_up || !matches!(stride, 0 | 1) {
                let size = self.classes[reached.class].size;
                scattered += if looks_up { 0.0 } else { times };
                forms &= size >= 4 && stride.checked_mul(size * lanes * 8).is_some_and(|reach| reach.abs() < FAR);
            }
        }
        // The elements of a copy in another order are better moved in tiles or one by one.
        let body: f64 = self.schedule.iter().zip(&trips).map(|(nodes, times)| nodes.len() as f64 * times).sum();
        let has_all = level.evex
            || (0..self.graph.len())
                .all(|at| !matches!(self.graph.op(Node(at as u32)), LaneOp::Unary(unary, _) if vex::lacks(unary)));
        forms && has_all && (scattered == 0.0 || body > 6.0 * scattered)
    }

    /// The depth at which a store is.
    fn store_depth(&self, store: &StorePlan) -> usize {
        match &store.kind {
            StoreKind::Point { depth, .. } => *depth,
            StoreKind::Combined(combination) if combination.combine.is_scan() => self.nest.dims.len(),
            StoreKind::Combined(_) => self.nest.first_reduced(),
        }
    }

    /// The number of executions of each depth.
    fn trips(&self) -> Vec<f64> {
        let mut trips = vec![1.0];
        for dim in &self.nest.dims {
            trips.push(trips[trips.len() - 1] * dim.length.max.max(1) as f64);
        }
        trips
    }
}
