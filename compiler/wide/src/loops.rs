//! The loops of a kernel as blocks.
//!
//! One loop runs in groups of lanes: several groups side by side as long as they are whole, then one group at a time under a mask of
//! the lanes that are left. Everything inside is a vector; values that are equal in all lanes are vectors of equal lanes.
//!
//! Pointers go from trip to trip: each loop adds its strides to the pointers that it moves.

use crate::body::{BodyEmitter, GroupPlace, Registers};
use crate::code::{BlockTarget, INT, Instruction, Int, Mem, PARAMETERS, RegisterSlot, Rm, V, VectorLength};
use crate::emitter::{LoopEmitter, Tail};
use crate::encode::{Alu, JumpCondition, PoolConstant};
use crate::graph::{Graph, LaneOp, LoadForm, Node};
use crate::level::VectorLevel;
use crate::ops::{self, Lane};
use crate::plan::{AccessPlace, LanePlan, StoreKind, VECTOR_BYTES};
use spmdc_abi::trap;
use spmdc_kernel::loops::{Affine, Inst as KernelInst};
use spmdc_kernel::nest::Nest;
use std::collections::HashMap;

/// Distance at which lines are fetched before they are needed, in bytes.
const AHEAD: i64 = 1024;
/// The same, for rows that are read one piece at a time.
const ROWS_AHEAD: i64 = 8192;
/// Minimum size of a buffer, in bytes, whose lines are fetched: smaller ones stay in a cache.
const LARGE: usize = 1 << 20;
/// Minimum number of operations of a body in which lines are fetched: the processor sees far enough ahead in shorter ones.
const LONG_BODY: usize = 12;

/// The bounds of a loop.
struct Bounds {
    from: V,
    to: V,
    starts_at_zero: bool,
    /// The number of iterations, if it is the same for all calls.
    known: Option<u64>,
    /// Whether there is at least one.
    runs: bool,
}

/// Emits a kernel; `residents` are the constants in registers.
pub fn emit(plan: &LanePlan, level: VectorLevel, residents: &[PoolConstant]) -> BodyEmitter {
    let mut emitter = LoopEmitter {
        plan,
        body: BodyEmitter::new(level),
        scalars: Vec::new(),
        begin: None,
        end: None,
        indices: vec![None; plan.nest.dims.len()],
        pointers: Vec::new(),
        dynamic: HashMap::new(),
        values: vec![Vec::new(); plan.graph.len()],
        groups: 1,
        tail: None,
        accumulators: Vec::new(),
        in_main_loop: false,
        streams: false,
        codes: None,
    };
    emitter.run(residents);
    emitter.body
}

impl<'p> LoopEmitter<'p> {
    fn run(&mut self, residents: &[PoolConstant]) {
        let entry = self.body.function.block(Vec::new());
        let done = self.body.function.block(Vec::new());
        self.body.function.enter(entry);
        let parameters = PARAMETERS.map(|_| self.body.function.register(INT));
        self.body.function.push(Instruction::Parameters(parameters));
        let [buffers, scalars, begin, end] = parameters;
        (self.begin, self.end) = (Some(begin), Some(end));
        let load = |body: &mut BodyEmitter, base: V, at: usize| {
            let to = body.function.register(INT);
            body.function.push(Instruction::Load { to, from: Mem { base, index: None, displacement: 8 * at as i32 } });
            to
        };
        self.scalars = (0..self.plan.kernel.scalars.len()).map(|at| load(&mut self.body, scalars, at)).collect();
        let addresses: Vec<V> =
            (0..self.plan.kernel.buffers.len()).map(|at| load(&mut self.body, buffers, at)).collect();
        // Without points nothing may be loaded, also before the loops.
        self.unless_empty(begin, Int::Register(end), done);
        for dim in (0..self.plan.nest.first_reduced()).filter(|&dim| self.plan.nest.may_be_empty(dim)) {
            let zero = self.body.int(0);
            let length = self.length(dim);
            self.unless_empty(zero, Int::Register(length), done);
        }
        self.invariants(&addresses);
        self.constants(residents);
        self.start_checks();
        self.level(0);
        let result = self.result_of_checks();
        self.body.function.ret(result);
        self.body.function.enter(done);
        let none = self.body.int(trap::NONE);
        self.body.function.ret(none);
    }

    /// Goes on if `a < b`.
    fn unless_empty(&mut self, a: V, b: Int, done: BlockTarget) {
        let work = self.body.function.block(Vec::new());
        self.body.function.branch(JumpCondition::Less, a, b, (work, Vec::new()), (done, Vec::new()));
        self.body.function.enter(work);
    }

    /// Indices that are read once, and the pointers of all classes without the parts of loops.
    fn invariants(&mut self, addresses: &[V]) {
        let plan = self.plan;
        for &elem in &plan.nest.order {
            if let KernelInst::LoopInvariant { buffer, last } = plan.nest.insts[elem.0 as usize] {
                let value = self.body.function.register(INT);
                let from = Mem { base: addresses[buffer], index: None, displacement: 0 };
                self.body.function.push(Instruction::Load { to: value, from });
                let limit = self.body.int(last as i64);
                let place = self.body.function.register(INT);
                self.body.function.push(Instruction::Limit { to: place, a: value, b: limit });
                self.dynamic.insert(elem, place);
            }
        }
        for class in &plan.classes {
            let mut pointer = addresses[class.buffer];
            for &(slot, stride) in &class.address.scalars {
                pointer = self.body.add_product(pointer, self.scalars[slot], stride * class.size);
            }
            for (elem, stride) in &class.address.dynamic {
                pointer = self.body.add_product(pointer, self.dynamic[elem], stride * class.size);
            }
            pointer = self.body.add_constant(pointer, class.address.constant * class.size);
            self.pointers.push(pointer);
        }
    }

    /// Values that are registers from the beginning.
    fn constants(&mut self, residents: &[PoolConstant]) {
        let plan = self.plan;
        let strides = plan.loads.iter().flatten().chain(plan.stores.iter().map(|store| &store.reached));
        let strides: Vec<i64> = strides.map(|reached| plan.lane_stride(reached.class)).collect();
        let is_scattered = |stride: &&i64| !matches!(**stride, 0 | 1);
        let looks_up = |at: usize| matches!(plan.graph.op(Node(at as u32)), LaneOp::Lookup { .. });
        if strides.iter().any(|stride| is_scattered(&stride)) || (0..plan.graph.len()).any(looks_up) {
            self.body.everything = Some(self.body.truth(true));
        }
        self.body.first = self.body.first_lane();
        let indices =
            plan.graph.indices.iter().map(|index| Nest::stride(index, plan.cut)).filter(|&stride| stride != 0);
        let positions = self.plan.stores.iter().any(|store| match &store.kind {
            StoreKind::Combined(combination) => combination.position.is_some() && plan.reduces_across(),
            StoreKind::Point { .. } => false,
        });
        let steps: Vec<i64> =
            strides.iter().filter(is_scattered).copied().chain(indices).chain(positions.then_some(1)).collect();
        for step in steps {
            let vector = self.body.lane_steps(step);
            self.body.steps.insert(step, vector);
        }
        for &constant in residents {
            let register = self.body.load_constant(constant);
            self.body.residents.insert(constant, register);
        }
    }

    // Loops.

    fn level(&mut self, depth: usize) {
        let plan = self.plan;
        let nest = &plan.nest;
        self.operations(depth);
        for (at_store, store) in plan.stores.iter().enumerate() {
            if let StoreKind::Point { value, depth: at } = store.kind
                && at == depth
            {
                for group in 0..self.groups {
                    let registers = self.get(value, group);
                    let place = self.place(store.reached, group);
                    let mask = self.tail_of(store.form.lane());
                    let stream = self.streams && plan.streams.contains(&at_store);
                    self.body.store(store.form, &place, registers, mask, stream);
                }
            }
        }
        let reduces_here = depth == nest.first_reduced() && nest.has_reduction();
        if reduces_here {
            self.start_reductions();
        }
        if depth == nest.dims.len() {
            self.update_reductions();
        } else if depth == plan.cut {
            self.groups_of(depth);
        } else {
            let bounds = self.bounds(depth);
            let (to, runs) = (bounds.to, bounds.runs);
            let outer = self.pointers.clone();
            self.start_pointers(depth, &bounds);
            self.count(depth, bounds.from, to, 1, runs, |e, index| {
                e.indices[depth] = Some(index);
                e.level(depth + 1);
            });
            self.pointers = outer;
        }
        if reduces_here {
            self.finish_reductions();
        }
    }

    pub fn length(&mut self, dim: usize) -> V {
        let length = &self.plan.nest.dims[dim].length;
        match length.slot {
            None => self.body.int(length.factor as i64),
            Some(slot) => {
                let scalar = self.scalars[slot];
                self.body.product(scalar, length.factor as i64)
            }
        }
    }

    fn bounds(&mut self, dim: usize) -> Bounds {
        let plan = self.plan;
        if let Some(range) = plan.nest.range.as_ref().filter(|range| range.dim == dim) {
            let [from, to] = [self.begin, self.end].map(|bound| {
                let bound = bound.expect("the parameters were read");
                self.body.product(bound, range.scale)
            });
            return Bounds { from, to, starts_at_zero: false, known: None, runs: range.scale > 0 };
        }
        let known = plan.nest.dims[dim].length.known();
        let (from, to) = (self.body.int(0), self.length(dim));
        Bounds { from, to, starts_at_zero: true, known, runs: known.is_some_and(|known| known > 0) }
    }

    /// Bytes that the pointer of a class moves in one iteration of a loop.
    fn pace(&self, class: usize, dim: usize) -> i64 {
        let class = &self.plan.classes[class];
        match class.scaled {
            Some((scaled, _)) if scaled == dim => 0,
            _ => Nest::stride(&class.address, dim) * class.size,
        }
    }

    /// Moves the pointers to the first iteration of a loop.
    fn start_pointers(&mut self, dim: usize, bounds: &Bounds) {
        if bounds.starts_at_zero {
            return;
        }
        for class in 0..self.pointers.len() {
            let pace = self.pace(class, dim);
            if pace != 0 {
                self.pointers[class] = self.body.add_product(self.pointers[class], bounds.from, pace);
            }
        }
    }

    /// The values that a loop passes on: pointers that move, and partial results if it is reduced.
    fn carried(&self, moving: &[usize], reduced: bool) -> Vec<V> {
        let pointers = moving.iter().map(|&class| self.pointers[class]);
        let accumulators = self.accumulators.iter().filter(|_| reduced).flat_map(|accumulator| {
            let double = self.plan.combination(accumulator.store).double;
            let parts = accumulator.parts.iter().flat_map(move |part| {
                let value = part.value.into_iter().take(if double { 2 } else { 1 });
                value.chain(part.position)
            });
            parts.chain(accumulator.rest).collect::<Vec<_>>()
        });
        pointers.chain(accumulators).collect()
    }

    fn set_carried(&mut self, moving: &[usize], reduced: bool, values: &[V]) {
        let mut values = values.iter().copied();
        let mut next = || values.next().expect("as many values come back as went in");
        for &class in moving {
            self.pointers[class] = next();
        }
        if !reduced {
            return;
        }
        for at in 0..self.accumulators.len() {
            let double = self.plan.combination(self.accumulators[at].store).double;
            let accumulator = &mut self.accumulators[at];
            for part in &mut accumulator.parts {
                part.value[0] = next();
                part.value[1] = if double { next() } else { part.value[0] };
                part.position = part.position.map(|_| next());
            }
            accumulator.rest = accumulator.rest.map(|_| next());
        }
    }

    /// `for index in (from..to).step_by(step)`; returns the first index that is not in the loop.
    fn count(&mut self, dim: usize, from: V, to: V, step: i64, runs: bool, body: impl FnOnce(&mut Self, V)) -> V {
        let reduced = self.plan.nest.dims[dim].reduced;
        let moving: Vec<usize> = (0..self.pointers.len()).filter(|&class| self.pace(class, dim) != 0).collect();
        let first: Vec<V> = std::iter::once(from).chain(self.carried(&moving, reduced)).collect();
        let last = self.repeat_until(to, first, runs, |e, inside| {
            e.set_carried(&moving, reduced, &inside[1..]);
            body(e, inside[0]);
            let next = e.body.add_constant(inside[0], step);
            for &class in &moving {
                let pace = e.pace(class, dim) * step;
                e.pointers[class] = e.body.add_constant(e.pointers[class], pace);
            }
            std::iter::once(next).chain(e.carried(&moving, reduced)).collect()
        });
        self.set_carried(&moving, reduced, &last[1..]);
        last[0]
    }

    /// A loop on values, the first of which is the counter: while it is less than `to`, `body` computes the next values. Returns the last
    /// ones. It tests at the bottom, and at the top unless it `runs` at least once.
    pub fn repeat_until(
        &mut self,
        to: V,
        first: Vec<V>,
        runs: bool,
        body: impl FnOnce(&mut Self, &[V]) -> Vec<V>,
    ) -> Vec<V> {
        let like = |body: &mut BodyEmitter| -> Vec<V> {
            first.iter().map(|value| body.function.register(value.class())).collect()
        };
        let (inside, last) = (like(&mut self.body), like(&mut self.body));
        let (block, after) = (self.body.function.block(inside.clone()), self.body.function.block(last.clone()));
        let from = first[0];
        if runs {
            self.body.function.jump(block, first);
        } else {
            let (then, otherwise) = ((block, first.clone()), (after, first));
            self.body.function.branch(JumpCondition::Less, from, Int::Register(to), then, otherwise);
        }
        self.body.function.enter(block);
        let next = body(self, &inside);
        let (count, then, otherwise) = (next[0], (block, next.clone()), (after, next));
        self.body.function.branch(JumpCondition::Less, count, Int::Register(to), then, otherwise);
        self.body.function.enter(after);
        last
    }

    /// The loop in groups.
    fn groups_of(&mut self, dim: usize) {
        let plan = self.plan;
        let bounds = self.bounds(dim);
        let outer = self.pointers.clone();
        self.start_pointers(dim, &bounds);
        let lanes = i64::from(self.body.level.lanes());
        let step = plan.groups as i64 * lanes;
        let moves = (0..self.pointers.len()).any(|class| self.pace(class, dim) != 0);
        let has_main = bounds.known.is_none_or(|known| known >= step as u64);
        let last = self.body.add_constant(bounds.to, 1 - step);
        if has_main && !plan.streams.is_empty() && !moves {
            self.aligned_groups(dim, &bounds, last, step);
            self.indices[dim] = None;
            self.pointers = outer;
            return;
        }
        let mut from = bounds.from;
        if has_main {
            from = self.main_loop(dim, from, last, step, bounds.known.is_some());
        }
        // Every group that is left would read all rows again.
        let left = match bounds.known {
            _ if plan.columns.is_none() => 0,
            Some(known) => known as i64 % step / lanes,
            None => 4.min(plan.groups as i64 - 1),
        };
        if left > 1 {
            let last = self.body.add_constant(bounds.to, 1 - left * lanes);
            self.groups = left as usize;
            from = self.groups_loop(dim, from, last, left * lanes, bounds.known.is_some());
        }
        self.groups = 1;
        let is_whole = bounds.known.is_some_and(|known| known % step as u64 == 0)
            || plan.nest.range.as_ref().is_some_and(|range| range.dim == dim && range.scale % step == 0);
        if !is_whole {
            let runs = bounds.known.is_some_and(|known| left < 2 || known % lanes as u64 != 0);
            // Sums take the terms of the other loops in turn for each index.
            let lanes = if plan.by_lanes() && dim + 1 < plan.nest.dims.len() { 1 } else { lanes };
            self.count(dim, from, bounds.to, lanes, runs, |e, index| {
                e.masked_group(dim, index, bounds.to, lanes);
            });
        }
        self.indices[dim] = None;
        self.pointers = outer;
    }

    /// A group of at most `lanes` lanes before an end; returns their number.
    fn masked_group(&mut self, dim: usize, index: V, end: V, lanes: i64) -> V {
        let left = self.body.alu(Alu::Sub, end, Int::Register(index));
        let most = self.body.int(lanes);
        let count = self.body.function.register(INT);
        self.body.function.push(Instruction::Min { to: count, a: left, b: most });
        let mask = self.body.first_lanes(count);
        let halves = if self.plan.has_doubles { self.body.halves(mask) } else { [mask; 2] };
        self.tail = Some(Tail { mask, halves, count });
        self.indices[dim] = Some(index);
        self.level(dim + 1);
        self.tail = None;
        count
    }

    /// The loop in groups of a kernel that writes past the caches: the lanes before the first aligned vector run under a mask, by the same
    /// code as those after the last one.
    ///
    /// ```text
    /// masked lanes up to the alignment; groups side by side; masked lanes up to the end
    /// ```
    fn aligned_groups(&mut self, dim: usize, bounds: &Bounds, last: V, step: i64) {
        let lanes = i64::from(self.body.level.lanes());
        let head = self.unaligned(dim, bounds);
        let function = &mut self.body.function;
        let [index, end, phase] = [INT; 3].map(|class| function.register(class));
        let test = function.block(vec![index, end, phase]);
        let [masked, behind, main, done] = std::array::from_fn(|_| function.block(Vec::new()));
        let zero = self.body.int(0);
        let function = &mut self.body.function;
        function.jump(test, vec![bounds.from, head, zero]);
        function.enter(test);
        let (then, otherwise) = ((masked, Vec::new()), (behind, Vec::new()));
        function.branch(JumpCondition::Less, index, Int::Register(end), then, otherwise);
        function.enter(masked);
        self.groups = 1;
        let count = self.masked_group(dim, index, end, lanes);
        let next = self.body.add_product(index, count, 1);
        let function = &mut self.body.function;
        function.jump(test, vec![next, end, phase]);
        function.enter(behind);
        function.branch(JumpCondition::Equal, phase, Int::Constant(0), (main, Vec::new()), (done, Vec::new()));
        function.enter(main);
        let from = self.streamed_or_not(dim, index, last, step);
        let one = self.body.int(1);
        self.body.function.jump(test, vec![from, bounds.to, one]);
        self.body.function.enter(done);
        self.groups = 1;
    }

    /// The address that a streamed store has at an index.
    fn streamed_address(&mut self, dim: usize, store: usize, index: V) -> V {
        let AccessPlace { class, displacement } = self.plan.stores[store].reached;
        let size = self.plan.classes[class].size;
        debug_assert!(
            self.plan.classes[class].scaled.is_some_and(|(scaled, _)| scaled == dim),
            "neighbours are scaled"
        );
        let pointer = self.body.add_constant(self.pointers[class], displacement);
        self.body.add_product(pointer, index, size)
    }

    /// The first index at which the first streamed store is aligned, or the end.
    fn unaligned(&mut self, dim: usize, bounds: &Bounds) -> V {
        let store = self.plan.streams[0];
        let size = self.plan.classes[self.plan.stores[store].reached.class].size;
        let address = self.streamed_address(dim, store, bounds.from);
        let zero = self.body.int(0);
        let beyond = self.body.alu(Alu::Sub, zero, Int::Register(address));
        let bytes = self.body.alu(Alu::And, beyond, Int::Constant(VECTOR_BYTES as i32 - 1));
        let lanes = self.body.function.register(INT);
        self.body.function.push(Instruction::ShiftRight { to: lanes, a: bytes, by: size.trailing_zeros() as u8 });
        let first = self.body.add_product(bounds.from, lanes, 1);
        let end = self.body.function.register(INT);
        self.body.function.push(Instruction::Min { to: end, a: first, b: bounds.to });
        end
    }

    /// The loop over several groups; returns the first index after them.
    fn main_loop(&mut self, dim: usize, from: V, last: V, step: i64, runs: bool) -> V {
        self.groups = self.plan.groups;
        self.groups_loop(dim, from, last, step, runs)
    }

    fn groups_loop(&mut self, dim: usize, from: V, last: V, step: i64, runs: bool) -> V {
        self.in_main_loop = true;
        let behind = self.count(dim, from, last, step, runs, |e, index| {
            e.indices[dim] = Some(index);
            e.level(dim + 1);
        });
        self.in_main_loop = false;
        behind
    }

    /// The same loop twice: with stores that bypass the caches where all arrays that they write are aligned, and with others.
    fn streamed_or_not(&mut self, dim: usize, from: V, last: V, step: i64) -> V {
        let plan = self.plan;
        let mut bits = self.body.int(0);
        for &store in &plan.streams {
            let address = self.streamed_address(dim, store, from);
            bits = self.body.alu(Alu::Or, bits, Int::Register(address));
        }
        let bits = self.body.alu(Alu::And, bits, Int::Constant(VECTOR_BYTES as i32 - 1));
        let function = &mut self.body.function;
        let (aligned, other) = (function.block(Vec::new()), function.block(Vec::new()));
        let joined = function.register(INT);
        let join = function.block(vec![joined]);
        function.branch(JumpCondition::Equal, bits, Int::Constant(0), (aligned, Vec::new()), (other, Vec::new()));
        for (block, streams) in [(aligned, true), (other, false)] {
            self.body.function.enter(block);
            self.streams = streams;
            let behind = self.main_loop(dim, from, last, step, false);
            self.body.function.jump(join, vec![behind]);
        }
        self.streams = false;
        self.body.function.enter(join);
        joined
    }

    // Operations.

    pub fn get(&mut self, node: Node, group: usize) -> Registers {
        if let Some(constant) = BodyEmitter::constant_of(&self.plan.graph, node) {
            return [self.body.constant(constant); 2];
        }
        let group = if self.plan.varies[node.0 as usize] { group } else { 0 };
        self.values[node.0 as usize][group]
    }

    pub fn tail_of(&self, lane: Lane) -> Option<Registers> {
        let Tail { mask, halves, .. } = self.tail?;
        Some(if lane == Lane::Double { halves } else { [mask; 2] })
    }

    /// Emits the operations of a depth, each for all groups.
    fn operations(&mut self, depth: usize) {
        let plan = self.plan;
        let nodes = &plan.schedule[depth];
        let fetches =
            self.in_main_loop && depth == plan.nest.dims.len() && (nodes.len() > LONG_BODY || plan.columns.is_some());
        let mut fetched = Vec::new();
        for &node in nodes.iter().filter(|node| plan.inside[node.0 as usize].is_none()) {
            self.in_groups(depth, node, fetches.then_some(&mut fetched));
        }
    }

    /// Emits an operation for all groups.
    pub fn in_groups(&mut self, depth: usize, node: Node, mut fetched: Option<&mut Vec<(usize, i64)>>) {
        if let LaneOp::Repeat { number, trips } = self.plan.graph.op(node) {
            return self.repeat(depth, node, number, trips);
        }
        if let LaneOp::Fail { check, mask, value } = self.plan.graph.op(node) {
            return self.check(check, mask, value);
        }
        let groups = self.groups_of_value(node);
        let mut registers = Vec::with_capacity(groups);
        for group in 0..groups {
            registers.push(self.operation(node, group, fetched.as_deref_mut()));
        }
        self.values[node.0 as usize] = registers;
    }

    /// The number of groups in which a value differs.
    pub fn groups_of_value(&self, node: Node) -> usize {
        if self.plan.varies[node.0 as usize] { self.groups } else { 1 }
    }

    fn operation(&mut self, node: Node, group: usize, fetched: Option<&mut Vec<(usize, i64)>>) -> Registers {
        let plan = self.plan;
        let op = plan.graph.op(node);
        if let LaneOp::Load { inst, form, guard } = op {
            let reached = plan.loads[inst as usize].expect("loads have places");
            let place = self.place(reached, group);
            let mask = self.mask_of_load(form, guard, place.stride == 0, group);
            if let (Some(fetched), 1) = (fetched, place.stride) {
                self.fetch(reached, &place, group, fetched);
            }
            return self.body.load(form, &place, mask);
        }
        if let LaneOp::Lookup { inst, form, guard, index } = op {
            let reached = plan.loads[inst as usize].expect("loads have places");
            let mut place = self.place(reached, group);
            let index_registers = self.get(index, group);
            if plan.varies[index.0 as usize] {
                let mask = self.mask_of_load(form, guard, false, group);
                return self.body.look_up(form, &place, index_registers[0], mask);
            }
            let index = self.body.first_word(index_registers[0]);
            place.base = self.body.add_product(place.base, index, form.bytes());
            let mask = self.mask_of_load(form, guard, place.stride == 0, group);
            return self.body.load(form, &place, mask);
        }
        if let LaneOp::Last { carried, .. } = op {
            return self.get(carried, group);
        }
        if let LaneOp::Index { index, lane } = op {
            return self.index(&plan.graph.indices[index as usize], lane, group);
        }
        let (values, varies) = (&self.values, &plan.varies);
        let mut get =
            |_: &mut BodyEmitter, node: Node| values[node.0 as usize][if varies[node.0 as usize] { group } else { 0 }];
        self.body.operation(&plan.graph, op, &plan.uses, &mut get)
    }

    /// The lanes of a load: the lanes of its guard, and the remaining ones unless all have the same element.
    fn mask_of_load(&mut self, form: LoadForm, guard: Option<Node>, equal: bool, group: usize) -> Option<Registers> {
        let tail = if equal { None } else { self.tail_of(form.lane()) };
        let guard = guard.map(|guard| self.get(guard, group));
        match (guard, tail) {
            (Some(guard), Some(tail)) => {
                Some(self.body.for_registers(form.lane(), |body, at| body.logic(ops::Logic::And, guard[at], tail[at])))
            }
            (mask, None) | (None, mask) => mask,
        }
    }

    /// Fetches the lines that a group will need some trips later.
    fn fetch(&mut self, reached: AccessPlace, place: &GroupPlace, group: usize, fetched: &mut Vec<(usize, i64)>) {
        let class = &self.plan.classes[reached.class];
        if self.plan.kernel.buffers[class.buffer].len * (class.size as usize) < LARGE {
            return;
        }
        let bytes = i64::from(self.body.level.lanes()) * class.size;
        let start = group as i64 * bytes;
        let ahead = match self.plan.columns {
            None => AHEAD,
            Some(_) => {
                let row = Nest::stride(&class.address, self.plan.nest.dims.len() - 1) * class.size;
                row * (ROWS_AHEAD / (bytes * self.groups as i64)).max(1)
            }
        };
        for line in (start..start + bytes).step_by(64) {
            let displacement = place.displacement - start + line + ahead;
            // Neighbours share their lines.
            let key = (reached.class, displacement >> 6);
            if !fetched.contains(&key) {
                fetched.push(key);
                if let Ok(displacement) = i32::try_from(displacement) {
                    let of = Mem { base: place.base, index: place.index, displacement };
                    self.body.function.push(Instruction::Prefetch { of });
                }
            }
        }
    }

    /// The address of a group.
    pub fn place(&self, reached: AccessPlace, group: usize) -> GroupPlace {
        let plan = self.plan;
        let class = &plan.classes[reached.class];
        let index = class.scaled.and_then(|(dim, scale)| Some((self.indices[dim]?, scale)));
        let stride = if self.indices[plan.cut].is_some() { plan.lane_stride(reached.class) } else { 0 };
        let lanes = i64::from(self.body.level.lanes());
        let displacement = reached.displacement + group as i64 * lanes * stride * class.size;
        GroupPlace { base: self.pointers[reached.class], index, displacement, stride }
    }

    /// An affine value in a general register, without lanes.
    fn affine(&mut self, affine: &Affine) -> V {
        let scalars = affine.scalars.iter().map(|&(slot, stride)| (self.scalars[slot], stride));
        let indices = affine
            .terms
            .iter()
            .map(|&(dim, stride)| (self.indices[dim].expect("the loops of an index are entered"), stride));
        let terms: Vec<(V, i64)> = scalars.chain(indices).collect();
        let mut sum = None;
        for (value, stride) in terms {
            sum = Some(match sum {
                None => self.body.product(value, stride),
                Some(sum) => self.body.add_product(sum, value, stride),
            });
        }
        match sum {
            None => self.body.int(affine.constant),
            Some(sum) => self.body.add_constant(sum, affine.constant),
        }
    }

    fn index(&mut self, affine: &Affine, lane: Lane, group: usize) -> Registers {
        let stride = Nest::stride(affine, self.plan.cut);
        let first = self.affine(affine);
        let lanes = i64::from(self.body.level.lanes());
        let first = self.body.add_constant(first, group as i64 * lanes * stride);
        self.in_lanes(first, stride, lane)
    }

    /// A number and its multiples of a step in the lanes.
    pub fn in_lanes(&mut self, first: V, stride: i64, lane: Lane) -> Registers {
        if lane == Lane::Word {
            let base = self.body.spread(first, lane);
            if stride == 0 {
                return [base; 2];
            }
            let steps = self.body.lane_steps(stride);
            let add = ops::Binary::AddI32.opcode();
            return [self.body.vector(add, VectorLength::Whole, RegisterSlot::Use(base), Rm::Use(steps), None); 2];
        }
        let base = self.body.spread(first, lane);
        if stride == 0 {
            return [base; 2];
        }
        let steps = self.body.lane_steps(stride);
        let upper = self.body.upper_half(steps);
        [steps, upper].map(|half| {
            let extend = ops::Resize::SignExtend.opcode();
            let wide = self.body.vector(extend, VectorLength::Whole, RegisterSlot::None, Rm::Use(half), None);
            let add = ops::Binary::AddI64.opcode();
            self.body.vector(add, VectorLength::Whole, RegisterSlot::Use(base), Rm::Use(wide), None)
        })
    }

    /// Emits an operation on given values, and the operations that it needs.
    pub fn local(&mut self, node: Node, given: &[(Node, Registers)]) -> Registers {
        let mut known: HashMap<Node, Registers> = given.iter().copied().collect();
        let mut stack = vec![(node, false)];
        let graph: &Graph = &self.plan.graph;
        while let Some((node, ready)) = stack.pop() {
            if known.contains_key(&node) || graph.constant(node).is_some() {
                continue;
            }
            if ready {
                let mut get = |_: &mut BodyEmitter, node: Node| known[&node];
                let registers = self.body.operation(graph, graph.op(node), &self.plan.uses, &mut get);
                known.insert(node, registers);
            } else {
                stack.push((node, true));
                stack.extend(graph.operands(graph.op(node)).map(|operand| (operand, false)));
            }
        }
        known[&node]
    }
}
