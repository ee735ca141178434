//! The combination over the reduced dimensions.
//!
//! A reduction starts inside the loops over the kept dimensions, passes its partial results through the loops over the reduced ones, and
//! ends with a store. If the vectorised dimension is reduced, every lane has a separate partial result, and so do the remaining elements.
//! They are combined in the order of the kernel (`spmdc_kernel::order`), so that a result depends neither on the range of a call nor on the
//! machine. If a sum has more lanes than a bundle, several bundles take turns: each trip of the loop adds to the first and moves it to the
//! end. A scan stores the running total before or after every point, so its loop is never cut into lanes.

use super::accumulator::{Accumulator, Partial};
use super::arithmetic::register_type;
use super::kernel::Emitter;
use super::vector::{Bundle, Vector};
use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use spmdc_abi::{DType, ReduceOp};
use spmdc_kernel::loops::{Combine, Store};
use spmdc_kernel::order::{depends_on_order, fold_lanes};

impl Emitter<'_, '_> {
    pub fn start_reductions(&mut self) {
        let nest = self.nest;
        let across = nest.cut.as_ref().filter(|cut| nest.dims[cut.dim].reduced);
        let lanes = across.map_or(self.current_lanes(), |cut| cut.lanes[0]);
        let all = across.and_then(|cut| nest.sums.lanes_along(cut.dim));
        let turns = all.map_or(1, |all| (all / lanes) as usize);
        let has_rest = across.is_some_and(|cut| cut.lanes.len() > 1);
        let stores: Vec<&Store> = nest.stores.iter().filter(|store| store.combine.is_some()).collect();
        self.accumulators = Vec::with_capacity(stores.len());
        for store in stores {
            let combine = store.combine.expect("only combining stores were kept");
            let first = self.fresh(store, combine, lanes);
            let rest = has_rest.then(|| self.fresh(store, combine, 1));
            self.accumulators.push(Accumulator { bundles: vec![first; turns], rest, owes_zero: false });
        }
    }

    /// A partial result of no points.
    fn fresh(&mut self, store: &Store, combine: Combine, lanes: u32) -> Partial {
        let lane = self.accumulator_lane(store, lanes);
        if let Some(first) = combine.operand() {
            let first = self.operand(first, lanes);
            let value = self.vector(lanes).mask_or_value(store_dtype(store), first, lane);
            return Partial { lanes, value, position: None };
        }
        let mut v = self.vector(lanes);
        let bits = identity_element(combine, store_dtype(store), lane);
        // A true scalar bool is 1.
        let is_truth = v.is_scalar() && store_dtype(store) == DType::Bool;
        let value = v.constant(lane, if is_truth { bits & 1 } else { bits });
        let position = combine.is_position().then(|| v.int(I32, 0));
        Partial { lanes, value, position }
    }

    /// Moves the bundle that was added to after the others.
    pub fn take_turns(&mut self) {
        self.accumulators.iter_mut().for_each(|accumulator| accumulator.bundles.rotate_left(1));
    }

    fn accumulator_lane(&self, store: &Store, lanes: u32) -> Type {
        let dtype = store_dtype(store);
        match dtype == DType::Bool {
            true if lanes == 1 => I8,
            true => self.mask_lane(store.value),
            false => register_type(dtype),
        }
    }

    /// Combines the current point, or bundle of points, into the partial results.
    pub fn update_reductions(&mut self) {
        let lanes = self.current_lanes();
        let mut position = None;
        let stores = self.nest.stores.iter().filter(|store| store.combine.is_some());
        for (at, store) in stores.enumerate() {
            let combine = store.combine.expect("only combining stores were kept");
            let value = self.operand(store.value, lanes);
            if combine.is_position() && position.is_none() {
                position = Some(self.position(lanes));
            }
            let old = *self.current(at);
            let mut v = self.vector(lanes);
            let value = v.mask_or_value(store_dtype(store), value, old.value.lane);
            let new = Partial { lanes, value, position: position.filter(|_| combine.is_position()) };
            // The first trip of an unrolled loop adds its term to the constant zero. To add that to the total instead is one addition
            // less in every register but one, with the same bits: `(0 + a) + (0 + b)` is `0 + (a + b)`, also for zeros of either
            // sign.
            let owes_zero = lanes > 1
                && !self.left_over
                && combine == Combine::Reduce(ReduceOp::Sum)
                && depends_on_order(combine, store_dtype(store))
                && self.reduces_across()
                && self.vector(lanes).constant_bits(old.value) == Some(0);
            let sum = match owes_zero {
                true => new,
                false => self.vector(lanes).combine(combine, store_dtype(store), old, new, false),
            };
            self.accumulators[at].owes_zero |= owes_zero;
            *self.current(at) = sum;
            if combine.is_scan() {
                let total = if combine.is_exclusive() { old } else { sum };
                let value = self.vector(lanes).round_result(store_dtype(store), total.value);
                self.store(&store.access, store_dtype(store), value, lanes);
            }
        }
    }

    /// The partial result of the current points.
    fn current(&mut self, at: usize) -> &mut Partial {
        let Accumulator { bundles, rest, owes_zero: _ } = &mut self.accumulators[at];
        let partial = if self.left_over { rest.as_mut() } else { bundles.first_mut() };
        partial.expect("what is left over has a partial result of its own")
    }

    /// The row-major position over the reduced dimensions.
    fn position(&mut self, lanes: u32) -> Bundle {
        let nest = self.nest;
        let mut position = self.builder.ins().iconst(I64, 0);
        for dim in (0..nest.dims.len()).filter(|&dim| nest.dims[dim].reduced) {
            let length = self.length(dim);
            let outer = self.builder.ins().imul(position, length);
            let index = self.index(dim);
            position = self.builder.ins().iadd(outer, index);
        }
        let first = self.builder.ins().ireduce(I32, position);
        let in_lanes = nest.cut.as_ref().is_some_and(|cut| nest.dims[cut.dim].reduced);
        let mut v = self.vector(lanes);
        let base = v.splat(I32, first);
        if !in_lanes || lanes == 1 {
            return base;
        }
        let steps = v.int_lanes(I32, i64::from);
        v.add(base, steps)
    }

    /// Combines the partial results and stores them.
    pub fn finish_reductions(&mut self) {
        let nest = self.nest;
        let accumulators = std::mem::take(&mut self.accumulators);
        let stores = nest.stores.iter().filter(|store| store.combine.is_some());
        for (accumulator, store) in accumulators.into_iter().zip(stores) {
            let combine = store.combine.expect("only combining stores were kept");
            if combine.is_scan() {
                continue;
            }
            let dtype = store_dtype(store);
            let result = if self.reduces_across() {
                let Accumulator { bundles, rest, owes_zero } = accumulator;
                let rest = rest.or_else(|| owes_zero.then(|| self.fresh(store, combine, 1)));
                let lanes = self.vector(bundles[0].lanes).combine_lanes(combine, dtype, bundles);
                match rest {
                    Some(rest) => self.vector(1).combine(combine, dtype, lanes, rest, true),
                    None => lanes,
                }
            } else {
                accumulator.bundles[0]
            };
            let (value, dtype) = match result.position {
                Some(position) => (position, DType::I32),
                None => (self.vector(result.lanes).round_result(dtype, result.value), dtype),
            };
            self.store(&store.access, dtype, value, result.lanes);
        }
    }

    /// Whether the vectorised dimension is reduced.
    fn reduces_across(&self) -> bool {
        self.nest.cut.as_ref().is_some_and(|cut| self.nest.dims[cut.dim].reduced)
    }

    /// The values of all partial results, each followed by its position if it has one.
    pub fn accumulator_bundles(&self) -> Vec<Bundle> {
        let partials = self.accumulators.iter().flat_map(Accumulator::partials);
        partials.flat_map(|partial| std::iter::once(partial.value).chain(partial.position)).collect()
    }

    /// The values that loops over reduced dimensions carry.
    pub fn accumulator_values(&self) -> Vec<Value> {
        self.accumulator_bundles().iter().flat_map(|bundle| bundle.parts().to_vec()).collect()
    }

    pub fn set_accumulator_values(&mut self, values: &[Value]) {
        let mut rest = values;
        let partials = self.accumulators.iter_mut().flat_map(Accumulator::partials_mut);
        for bundle in partials.flat_map(|partial| std::iter::once(&mut partial.value).chain(&mut partial.position)) {
            let (parts, others) = rest.split_at(bundle.parts().len());
            *bundle = Bundle::new(bundle.lane, parts);
            rest = others;
        }
    }
}

impl Vector<'_, '_> {
    /// `b` after `a`. Their positions are in order unless `unordered`.
    fn combine(&mut self, combine: Combine, dtype: DType, a: Partial, b: Partial, unordered: bool) -> Partial {
        match combine {
            Combine::Reduce(op) | Combine::Scan { op, .. } => {
                Partial { value: self.reduce(op, dtype, a.value, b.value), ..a }
            }
            Combine::ArgMax | Combine::ArgMin => {
                let largest = combine == Combine::ArgMax;
                let mut takes = self.is_better(largest, dtype, b.value, a.value);
                let (position_a, position_b) =
                    (a.position.expect("searches know positions"), b.position.expect("searches know positions"));
                if unordered {
                    // For equal values, the one that comes first.
                    let keeps = self.is_better(largest, dtype, a.value, b.value);
                    let earlier = self.compare_ints(IntCC::SignedLessThan, position_b, position_a);
                    let worse = self.not_mask(keeps);
                    let (worse, earlier) = self.align_masks(worse, earlier);
                    let earlier = self.and(worse, earlier);
                    let (first, second) = self.align_masks(takes, earlier);
                    takes = self.or(first, second);
                }
                Partial {
                    lanes: a.lanes,
                    value: self.select_values(dtype, takes, b.value, a.value),
                    position: Some(self.select(takes, position_b, position_a)),
                }
            }
        }
    }

    fn reduce(&mut self, op: ReduceOp, dtype: DType, a: Bundle, b: Bundle) -> Bundle {
        let (signed, bool) = (dtype.is_signed_integer(), dtype == DType::Bool);
        match op {
            ReduceOp::Sum | ReduceOp::Max | ReduceOp::Or if bool => self.or(a, b),
            ReduceOp::Product | ReduceOp::Min | ReduceOp::And if bool => self.and(a, b),
            ReduceOp::Sum => self.add(a, b),
            ReduceOp::Product => self.mul(a, b),
            ReduceOp::And => self.and(a, b),
            ReduceOp::Or => self.or(a, b),
            ReduceOp::Max if a.lane.is_float() => self.float_maximum(a, b),
            ReduceOp::Min if a.lane.is_float() => self.float_minimum(a, b),
            ReduceOp::Max if signed => self.zip(a, b, |v, x, y| v.builder.ins().smax(x, y)),
            ReduceOp::Max => self.zip(a, b, |v, x, y| v.builder.ins().umax(x, y)),
            ReduceOp::Min if signed => self.zip(a, b, |v, x, y| v.builder.ins().smin(x, y)),
            ReduceOp::Min => self.zip(a, b, |v, x, y| v.builder.ins().umin(x, y)),
        }
    }

    /// Whether `a` is strictly larger (or smaller) than `b`, where NaN exceeds all numbers.
    fn is_better(&mut self, largest: bool, dtype: DType, a: Bundle, b: Bundle) -> Bundle {
        if dtype == DType::Bool {
            let (x, y) = if largest { (a, b) } else { (b, a) };
            let not = self.not_mask(y);
            return self.and(x, not);
        }
        if a.lane.is_float() {
            // Cranelift has no comparison for it on vectors of aarch64.
            let cc = if largest { FloatCC::LessThanOrEqual } else { FloatCC::GreaterThanOrEqual };
            let within = self.compare_floats(cc, a, b);
            let beyond = self.not_mask(within);
            let number = self.compare_floats(FloatCC::Ordered, b, b);
            return self.and(number, beyond);
        }
        let cc = match (largest, dtype.is_signed_integer()) {
            (true, true) => IntCC::SignedGreaterThan,
            (true, false) => IntCC::UnsignedGreaterThan,
            (false, true) => IntCC::SignedLessThan,
            (false, false) => IntCC::UnsignedLessThan,
        };
        self.compare_ints(cc, a, b)
    }

    /// Combines all lanes of the bundles, by halves: bundles, then registers, then lanes.
    fn combine_lanes(&mut self, combine: Combine, dtype: DType, bundles: Vec<Partial>) -> Partial {
        let partial = fold_lanes(bundles, |a, b| self.combine(combine, dtype, a, b, true));
        let partial = partial.expect("there is at least one bundle");
        let halves = |bundle: Bundle| {
            let (low, high) = bundle.parts().split_at(bundle.parts().len() / 2);
            (!low.is_empty() && low.len() == high.len())
                .then(|| (Bundle::new(bundle.lane, low), Bundle::new(bundle.lane, high)))
        };
        if let Some((low, high)) = halves(partial.value)
            && let positions = partial.position.map(halves)
            && !matches!(positions, Some(None))
        {
            let positions = positions.flatten();
            let lanes = partial.lanes / 2;
            let low = Partial { lanes, value: low, position: positions.map(|(low, _)| low) };
            let high = Partial { lanes, value: high, position: positions.map(|(_, high)| high) };
            return Vector { builder: self.builder, lanes }.combine_lanes(combine, dtype, vec![low, high]);
        }
        if let (Combine::Reduce(op), true) = (combine, dtype != DType::Bool) {
            return Partial { lanes: 1, value: self.combine_in_register(op, dtype, partial.value), position: None };
        }
        let lane = |i: u32| {
            let value = if dtype == DType::Bool && !self.is_scalar() {
                self.lane_truth(partial.value, i)
            } else {
                self.lane_value(partial.value, i)
            };
            let position = partial.position.map(|position| self.lane_value(position, i));
            Partial { lanes: 1, value, position }
        };
        let lanes: Vec<Partial> = (0..partial.lanes).map(lane).collect();
        let mut scalars = Vector { builder: self.builder, lanes: 1 };
        fold_lanes(lanes, |a, b| scalars.combine(combine, dtype, a, b, true)).expect("there is at least one lane")
    }

    /// Combines the lanes of one register, by halves: the upper half, moved down, into the lower one. The lanes above the result
    /// have other values, which nothing reads.
    fn combine_in_register(&mut self, op: ReduceOp, dtype: DType, value: Bundle) -> Bundle {
        debug_assert_eq!(value.parts().len(), 1, "registers are combined before lanes");
        let (mut value, mut lanes) = (value, self.lanes);
        while lanes > 1 {
            lanes /= 2;
            let upper = self.lanes_down(value, lanes);
            value = self.reduce(op, dtype, value, upper);
        }
        self.lane_value(value, 0)
    }

    /// One lane as a separate bundle.
    fn lane_value(&mut self, a: Bundle, lane: u32) -> Bundle {
        let value = self.extract(a, lane);
        Bundle::new(a.lane, &[value])
    }

    fn lane_truth(&mut self, mask: Bundle, lane: u32) -> Bundle {
        let value = self.extract(mask, lane);
        let truth = self.builder.ins().icmp_imm_s(IntCC::NotEqual, value, 0);
        Bundle::new(I8, &[truth])
    }

    /// A reduced value at the accumulator's width: masks have various widths.
    fn mask_or_value(&mut self, dtype: DType, value: Bundle, lane: Type) -> Bundle {
        if dtype == DType::Bool { self.mask_as(value, lane) } else { value }
    }

    fn round_result(&mut self, dtype: DType, value: Bundle) -> Bundle {
        if dtype.is_narrow() { self.round_to_narrow(dtype, value) } else { value }
    }
}

fn store_dtype(store: &Store) -> DType {
    store.dtype
}

/// The bits of the identity element, in a lane of the accumulator.
fn identity_element(combine: Combine, dtype: DType, lane: Type) -> u64 {
    let float = |value: f64| {
        if lane.bits() == 32 { u64::from((value as f32).to_bits()) } else { value.to_bits() }
    };
    // The largest number, if the type has no infinity.
    let infinity = dtype.format().map(|format| format.widen(format.last()));
    let (all_ones, sign) = (u64::MAX, 1_u64 << (lane.bits() - 1));
    let smallest = match infinity {
        Some(infinity) => float(-infinity),
        None if dtype.is_signed_integer() => sign,
        None => 0,
    };
    let largest = match infinity {
        Some(infinity) => float(infinity),
        None if dtype.is_signed_integer() => sign - 1,
        None => all_ones,
    };
    match combine {
        Combine::ArgMax | Combine::Reduce(ReduceOp::Max) => smallest,
        Combine::ArgMin | Combine::Reduce(ReduceOp::Min) => largest,
        Combine::Reduce(ReduceOp::Sum | ReduceOp::Or) => 0,
        Combine::Reduce(ReduceOp::And) => all_ones,
        Combine::Reduce(ReduceOp::Product) if dtype == DType::Bool => all_ones,
        Combine::Reduce(ReduceOp::Product) if dtype.is_float() => float(1.0),
        Combine::Reduce(ReduceOp::Product) => 1,
        Combine::Scan { .. } => unreachable!("a scan begins with a value of the body"),
    }
}
