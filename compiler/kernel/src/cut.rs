//! Chooses the dimension of a nest that is vectorised, and the number of lanes of its bundles.
//!
//! Every dimension is tried: the cost of each instruction and each access along it, their repetitions, and the number of remaining
//! elements. Costs are in approximate machine instructions; only their order matters. They affect the speed of a nest and nothing
//! else: the order of sums is given ([`Order`]), and every cut keeps to it.

use super::draws::CHAIN;
use super::loops::{Access, Combine, Elem, Inst, Kernel, operands};
use super::nest::{Cut, Nest, Order, SIDE, Strips};
use super::repeats;
use super::work::work;
use crate::scalar::BinaryOp;
use spmdc_abi::DType;

/// Cost of a strided element: a scalar access and a move into or out of its lane.
const STRIDED: f64 = 2.0;

/// Bytes of a line, the distance in bytes of lines that share a set of the first cache, and the lines of a set.
const LINE: u64 = 64;
const SET_STRIDE: u64 = 4096;
const WAYS: f64 = 8.0;

/// Cost of an element at a dynamic index that differs between lanes: the index is moved out of its lane before the access.
const GATHERED: f64 = 3.5;

/// Cost of random bits in a tile.
const DRAWN: f64 = 12.0;

/// Cost of a point above which several registers at a time gain nothing.
const LONG_BODY: f64 = 24.0;

/// Least number of dependent instructions from which on a processor does not see far enough ahead to overlap one bundle with the next.
/// Random bits take more than a hundred.
pub const LONG_CHAIN: usize = 64;

/// Maximum number of registers that are live in a trip of a loop in the body whose bundles have 16 lanes: some are spilled. Measured with
/// 100 steps of `z * z + c` (10 for each 4 lanes: 1.08 times as fast with 8 lanes) and of Lorenz's equations (9: 1.23 times as fast
/// with 16).
const TRIP_REGISTERS: f64 = 36.0;

/// Maximum number of trips of a reduced loop that is unrolled, and the maximum cost of a point times these.
const FEW_TRIPS: u64 = 4;
const UNROLLED_WORK: f64 = 32.0;

/// Lanes of bundles that are computed by such chains, and the least number of points for which their code, which is long, pays.
const LONG_CHAIN_LANES: u32 = 16;
const LONG_CHAIN_POINTS: f64 = 4096.0;

impl Nest {
    /// The fastest nest, by estimate.
    pub fn new(kernel: &Kernel) -> Nest {
        let nest = Nest::uncut(kernel);
        let cut = choose(&nest);
        nest.with_cut(cut)
    }

    /// All nests of the kernel. All of them give the same bits.
    pub fn all(kernel: &Kernel) -> Vec<Nest> {
        let nest = Nest::uncut(kernel);
        choices(&nest).into_iter().map(|cut| nest.clone().with_cut(cut)).collect()
    }

    /// The nest before a loop is chosen to be cut.
    pub fn uncut(kernel: &Kernel) -> Nest {
        let mut nest = Nest::plain(kernel);
        nest.sums = Order::of(&nest);
        nest
    }

    /// The number of instructions of the longest chain in the body, in which each needs the result of the previous one.
    pub fn chain(&self) -> usize {
        let mut lengths = vec![0; self.insts.len()];
        for &elem in &self.order {
            let at = elem.0 as usize;
            if self.levels[at] == self.dims.len() {
                let before = operands(&self.insts[at]).map(|operand| lengths[operand.0 as usize]).max();
                lengths[at] = 1 + before.unwrap_or(0);
            }
        }
        lengths.into_iter().max().unwrap_or(0)
    }

    /// Whether code generators unroll a loop completely: it is the innermost one, reduced, and short. Values that are independent of the
    /// loops around it are then computed before them, and partial results need no additional registers.
    pub fn is_unrolled(&self, dim: usize, trips: u64) -> bool {
        let is_inside = |elem: &&Elem| self.levels[elem.0 as usize] == self.dims.len();
        let times = repeats::times(&self.insts, &self.inside);
        let cost = |elem: &Elem| times[elem.0 as usize] * work(&self.insts[elem.0 as usize]);
        let inside: f64 = self.order.iter().filter(is_inside).map(cost).sum();
        let is_innermost = dim + 1 == self.dims.len();
        is_innermost
            && self.dims[dim].reduced
            && (1..=FEW_TRIPS).contains(&trips)
            && inside * trips as f64 <= UNROLLED_WORK
    }

    /// Whether loads may be moved, also to before the loops around them, because no memory that the kernel reads is written meanwhile. An
    /// output may share memory with an input only if it is stored at every point, never if the output combines values. A reduced loop that
    /// may be empty has no addresses that may be loaded before it; kept loops are tested before all loads.
    pub fn loads_move(&self) -> bool {
        self.has_reduction()
            && self.stores.iter().all(|store| store.combine.is_some_and(|combine| !combine.is_scan()))
            && (self.first_reduced()..self.dims.len()).all(|dim| !self.may_be_empty(dim))
    }

    /// Whether a loop may run in lanes: each lane then has separate results, or terms that may be combined in any order.
    pub fn can_cut(&self, dim: usize) -> bool {
        let varies = self.varying(std::iter::once(dim));
        self.stores.iter().all(|store| {
            let moves = Nest::stride(&store.access.address, dim) != 0;
            match store.combine {
                // Positions are counted in lanes, which is simplest if lanes are neighbours.
                Some(Combine::ArgMax | Combine::ArgMin) if self.dims[dim].reduced => dim + 1 == self.dims.len(),
                // Each point needs the result of the one before.
                Some(Combine::Scan { .. }) if self.dims[dim].reduced => false,
                Some(_) if self.dims[dim].reduced => self.sums == Order::Any,
                Some(_) => moves,
                None => moves || !varies[store.value.0 as usize],
            }
        })
    }

    fn with_cut(mut self, cut: Option<Cut>) -> Nest {
        self.cut = cut;
        self.move_inward();
        self.place_draws();
        self.varies = match &self.cut {
            Some(cut) => self.varying(cut.dims()),
            None => vec![false; self.insts.len()],
        };
        self
    }
}

/// The best cut; None if scalars are better.
pub fn choose(nest: &Nest) -> Option<Cut> {
    let mut best: (f64, Option<Cut>) = (f64::INFINITY, None);
    for cut in whole(nest) {
        let lanes = cut.as_ref().map_or(1, |cut| cut.lanes[0]);
        if cut.as_ref().is_some_and(|cut| cut.rows.is_none() && lanes > preferred_lanes(nest, cut.dim)) {
            continue;
        }
        let cost = cost(nest, cut.as_ref(), lanes);
        if cost < best.0 {
            best = (cost, cut);
        }
    }
    let cut = best.1?;
    Some(in_strips(nest, &cut).unwrap_or(cut))
}

/// All cuts that may be chosen; None are scalars.
pub fn choices(nest: &Nest) -> Vec<Option<Cut>> {
    let whole = whole(nest);
    let mut strips: Vec<Option<Cut>> = Vec::new();
    for cut in whole.iter().flatten().filter_map(|cut| in_strips(nest, cut)) {
        if !strips.contains(&Some(cut.clone())) {
            strips.push(Some(cut));
        }
    }
    whole.into_iter().chain(strips).collect()
}

/// All cuts without strips.
fn whole(nest: &Nest) -> Vec<Option<Cut>> {
    if let Order::Lanes { dim } = nest.sums {
        let cut = |lanes| Some(Cut { dim, rows: None, lanes: steps(nest, dim, lanes), strips: None });
        return [16, 8, 4, 1].map(cut).to_vec();
    }
    let mut cuts = vec![None];
    for dim in (0..nest.dims.len()).rev() {
        if !nest.can_cut(dim) {
            continue;
        }
        for lanes in [32, 16, 8, 4] {
            if (lanes == 32 && !is_side_by_side(nest, dim)) || nest.dims[dim].length.max < u64::from(lanes) {
                continue;
            }
            cuts.push(Some(Cut { dim, rows: None, lanes: steps(nest, dim, lanes), strips: None }));
        }
        for rows in (0..nest.dims.len()).filter(|&rows| rows != dim && is_tile(nest, rows, dim)) {
            let lanes = (SIDE * SIDE) as u32;
            cuts.push(Some(Cut { dim, rows: Some(rows), lanes: vec![lanes, 1], strips: None }));
        }
    }
    cuts
}

/// The cut in strips, if these pay.
fn in_strips(nest: &Nest, cut: &Cut) -> Option<Cut> {
    if cut.rows.is_some() {
        return None;
    }
    let strips = Strips::choose(nest, cut.dim, point_work(nest, None) > LONG_BODY / 2.0)?;
    // Partial results are read and written for every bundle: a few registers suffice to do so in parallel.
    let lanes = cut.lanes[0].min(16);
    let is_whole = granularity(nest, cut.dim).is_multiple_of(u64::from(lanes));
    let lanes = if is_whole { vec![lanes] } else { vec![lanes, 1] };
    Some(Cut { lanes, strips: Some(strips), ..cut.clone() })
}

/// Whether tiles pay: some accesses are contiguous along the columns, others along the rows.
fn is_tile(nest: &Nest, rows: usize, columns: usize) -> bool {
    let is_long = |dim: usize| nest.dims[dim].length.max >= 2 * SIDE as u64;
    if nest.dims.iter().any(|dim| dim.reduced) || !is_long(rows) || !is_long(columns) {
        return false;
    }
    let strides = |access: &Access| (Nest::stride(&access.address, rows), Nest::stride(&access.address, columns));
    let stores: Vec<(i64, i64)> = nest.stores.iter().map(|store| strides(&store.access)).collect();
    let loads = nest.order.iter().filter_map(|elem| nest.insts[elem.0 as usize].load());
    let loads = loads.map(|(access, _)| strides(access));
    let all: Vec<(i64, i64)> = loads.chain(stores.iter().copied()).collect();
    stores.iter().all(|&(row, column)| row != 0 && column != 0)
        && all.iter().any(|&(row, column)| row == 1 && column != 0)
        && all.iter().any(|&(row, column)| column == 1 && row != 0)
}

/// Bundles of `lanes`, then smaller ones for the remaining elements.
fn steps(nest: &Nest, dim: usize, lanes: u32) -> Vec<u32> {
    let granularity = granularity(nest, dim);
    let mut steps = vec![lanes];
    if granularity.is_multiple_of(step(nest, dim, lanes)) {
        return steps;
    }
    // A loop of its own pays for a known remainder of some registers, unless it needs partial results of its own.
    if lanes > 4 && !nest.dims[dim].reduced && granularity > 1 && granularity % u64::from(lanes) >= 4 {
        steps.push(4);
        if granularity.is_multiple_of(4) {
            return steps;
        }
    }
    steps.push(1);
    steps
}

/// The granularity of the loop of the widest bundles: whole bundles, and all lanes of a sum.
fn step(nest: &Nest, dim: usize, lanes: u32) -> u64 {
    u64::from(nest.sums.lanes_along(dim).unwrap_or(lanes))
}

/// A known divisor of the number of iterations.
fn granularity(nest: &Nest, dim: usize) -> u64 {
    match &nest.range {
        Some(range) if range.dim == dim => range.scale as u64,
        _ => nest.dims[dim].length.factor,
    }
}

/// The number of lanes whose lines stay in the first cache while an inner loop goes along them: rows at a distance of many lines share few
/// of its sets. A row of 4096 elements has all its columns in one set.
fn lanes_in_cache(nest: &Nest, dim: usize) -> u32 {
    let innermost = nest.dims.len() - 1;
    let stores = nest.stores.iter().filter(|store| store.combine.is_none_or(Combine::is_scan));
    let stores = stores.map(|store| (&store.access, store.dtype));
    let loads = nest.order.iter().filter_map(|elem| nest.insts[elem.0 as usize].load());
    // Lines of a lane that are in the same set.
    let mut crowd = 0.0;
    for (access, dtype) in loads.chain(stores) {
        let bytes = Nest::stride(&access.address, dim).unsigned_abs() * dtype.size() as u64;
        if innermost != dim && bytes >= LINE && Nest::stride(&access.address, innermost).unsigned_abs() == 1 {
            let shift = bytes.trailing_zeros().min(SET_STRIDE.trailing_zeros());
            crowd += (1_u64 << shift) as f64 / SET_STRIDE as f64;
        }
    }
    let lanes = (WAYS / crowd).min(32.0) as u32;
    (1 << lanes.max(1).ilog2()).max(4)
}

/// Several registers at a time for short bodies, so that independent operations overlap, and for the longest, which code generators
/// interleave. One for other long bodies, whose instructions overlap with those of the next bundle.
fn preferred_lanes(nest: &Nest, dim: usize) -> u32 {
    // No trip of a loop in the body begins before the one before it ends: only other registers give a processor work meanwhile.
    if let Some(pressure) = nest.pressure_of_trips() {
        return if 4.0 * pressure <= TRIP_REGISTERS { 16 } else { 8 };
    }
    let work = point_work(nest, Some(dim));
    let points: f64 = nest.dims.iter().map(|dim| dim.length.max as f64).product();
    let chain = if nest.draws_inside(dim) { nest.chain().max(CHAIN) } else { nest.chain() };
    if work > LONG_BODY && points >= LONG_CHAIN_POINTS && chain >= LONG_CHAIN {
        return nest.sums.lanes_along(dim).unwrap_or(LONG_CHAIN_LANES);
    }
    if work > LONG_BODY {
        return 4;
    }
    // Narrower bundles take turns in the accumulators of a sum, which moves these from register to register.
    if let Some(lanes) = nest.sums.lanes_along(dim) {
        return lanes;
    }
    if work > LONG_BODY / 2.0 {
        return lanes_in_cache(nest, dim).min(8);
    }
    let lanes = if is_side_by_side(nest, dim) { 32 } else { 16 };
    lanes_in_cache(nest, dim).min(lanes)
}

/// Sums of adjacent columns need more registers to hide their latency, and read longer pieces of each row.
fn is_side_by_side(nest: &Nest, dim: usize) -> bool {
    let is_narrow = nest.order.iter().all(|&elem| nest.dtype(elem).size() <= 4);
    nest.has_reduction() && !nest.dims[dim].reduced && is_narrow
}

/// The cost of one point. Random bits count only if they are computed for each point, and not in tiles along a dimension.
fn point_work(nest: &Nest, tiled: Option<usize>) -> f64 {
    let is_inside = |elem: &&Elem| {
        !matches!(nest.insts[elem.0 as usize], Inst::RandomBits { .. })
            || nest.levels[elem.0 as usize] == nest.dims.len()
                && !tiled.is_some_and(|dim| nest.draws_along(**elem, dim))
    };
    nest.order.iter().filter(is_inside).map(|elem| work(&nest.insts[elem.0 as usize])).sum()
}

/// The cost of the whole nest, if it is cut into bundles of `lanes`.
fn cost(nest: &Nest, cut: Option<&Cut>, lanes: u32) -> f64 {
    let dim = cut.map(|cut| cut.dim);
    let varies = cut.map(|cut| nest.varying(cut.dims()));
    // The number of executions of each level.
    let mut trips = vec![1.0];
    for (at, loop_dim) in nest.dims.iter().enumerate() {
        let length = loop_dim.length.max.max(1) as f64;
        let outer = trips[at];
        trips.push(outer * length);
    }
    // Points in bundles share their cost; the remaining ones are scalars.
    let in_bundles = cut.map_or(0.0, |cut| {
        let side = |dim| if cut.rows.is_some() { SIDE as u64 } else { step(nest, dim, lanes) };
        cut.dims().map(|dim| whole_part(nest, dim, side(dim))).product()
    });
    let left_over = 1.0 - in_bundles;
    let share = |scalar: f64, bundle: f64| left_over * scalar + in_bundles * bundle;
    let times = repeats::times(&nest.insts, &nest.inside);
    let mut total = 0.0;
    for &elem in &nest.order {
        let inst = &nest.insts[elem.0 as usize];
        let work = work(inst);
        let each = match &varies {
            Some(varies) if varies[elem.0 as usize] => match inst.load() {
                Some((access, _)) if access.address.dynamic.iter().any(|(index, _)| varies[index.0 as usize]) => {
                    share(1.0, GATHERED)
                }
                Some((access, dtype)) => share(1.0, access_cost(access, dtype, cut)),
                None if cut.is_some_and(|cut| cut.rows.is_none() && nest.draws_along(elem, cut.dim)) => DRAWN,
                None => share(work, bundle_work(inst, work)),
            },
            _ => work,
        };
        total += each * trips[nest.levels[elem.0 as usize]] * times[elem.0 as usize];
    }
    for store in &nest.stores {
        let first_reduced = nest.first_reduced();
        match store.combine {
            None => {
                let at = nest.store_level(store);
                total += share(1.0, access_cost(&store.access, store.dtype, cut)) * trips[at];
            }
            Some(combine) => {
                total += share(1.0, 1.0 / registers_ratio(store.dtype)) * trips[nest.dims.len()];
                if combine.is_scan() {
                    total += share(1.0, access_cost(&store.access, store.dtype, cut)) * trips[nest.dims.len()];
                    continue;
                }
                // Lanes of a reduced dimension must be combined for every result. The partial results of bundles take turns.
                let by_lanes = dim.and_then(|dim| Some((dim, nest.sums.lanes_along(dim)?)));
                let finish = match (dim, by_lanes) {
                    (_, Some((dim, all))) => {
                        let bundles = f64::from(all / lanes);
                        total += trips[dim + 1] * (bundles - 1.0) / f64::from(lanes) / 4.0;
                        8.0 + 2.0 * f64::from(all)
                    }
                    (Some(dim), None) if nest.dims[dim].reduced => 8.0 + 2.0 * f64::from(lanes),
                    _ => share(1.0, access_cost(&store.access, store.dtype, cut)),
                };
                total += finish * trips[first_reduced];
            }
        }
    }
    // The loops themselves.
    let mut loops = 0.0;
    for at in 0..nest.dims.len() {
        let cut_here = dim.is_some_and(|dim| dim <= at);
        loops += 1.5 * trips[at + 1] * if cut_here { share(1.0, 1.0 / f64::from(lanes)) } else { 1.0 };
    }
    total + loops
}

/// The length of a dimension, rounded down to whole steps.
fn whole_part(nest: &Nest, dim: usize, step: u64) -> f64 {
    let length = nest.dims[dim].length.max.max(1);
    let rest = if granularity(nest, dim).is_multiple_of(step) { 0 } else { length % step };
    (length - rest) as f64 / length as f64
}

/// The number of lanes that share one instruction.
fn registers_ratio(dtype: DType) -> f64 {
    match dtype.size() {
        8 => 2.0,
        1 => 8.0,
        2 if dtype.is_integer() => 8.0,
        _ => 4.0,
    }
}

/// The cost of one element of an access in bundles.
fn access_cost(access: &Access, dtype: DType, cut: Option<&Cut>) -> f64 {
    let Some(cut) = cut else { return 1.0 };
    let ratio = registers_ratio(dtype);
    let column = Nest::stride(&access.address, cut.dim);
    match (column, cut.rows.map(|rows| Nest::stride(&access.address, rows))) {
        (0, None) => 1.0,
        (1, _) => 1.0 / ratio,
        // Transposing takes about two moves per register.
        (_, Some(1)) => 3.0 / ratio,
        (-1, None) => 2.0 / ratio,
        _ => STRIDED,
    }
}

fn bundle_work(inst: &Inst, work: f64) -> f64 {
    match inst {
        // Operations without vector instructions: lane by lane.
        Inst::Binary { op: BinaryOp::FloorDiv | BinaryOp::Rem, dtype, .. } if dtype.is_integer() => work + 4.0,
        Inst::Unary { dtype, .. }
        | Inst::Binary { dtype, .. }
        | Inst::Compare { dtype, .. }
        | Inst::Select { dtype, .. }
        | Inst::Fma { dtype, .. } => work / registers_ratio(*dtype),
        Inst::CheckIndex { dtype, .. } => work / registers_ratio(*dtype),
        Inst::Limit { .. } => work / registers_ratio(DType::I64),
        Inst::RandomBits { .. } => work / registers_ratio(DType::U32),
        Inst::Cast { from, to, .. } | Inst::Bitcast { from, to, .. } => {
            work / registers_ratio(*from).min(registers_ratio(*to))
        }
        Inst::Load { .. }
        | Inst::Const { .. }
        | Inst::Index { .. }
        | Inst::LoopInvariant { .. }
        | Inst::Carried { .. }
        | Inst::Repeat { .. }
        | Inst::Last { .. }
        | Inst::InRange { .. } => work / 4.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::{Affine, BufferSlot, Extent, LoopDim, Store};

    /// `y[i] = x[i] ^ 1 ^ 1 ^ ...`
    fn chained(points: u64, steps: u32) -> Kernel {
        let dtype = DType::U32;
        let access = |buffer| Access { buffer, address: Affine { terms: vec![(0, 1)], ..Affine::default() } };
        let buffer = |written| BufferSlot { dtype, written, len: points as usize, streamed: false };
        let mut insts = vec![Inst::Const { dtype, bits: 1 }, Inst::Load { access: access(0), dtype }];
        let step = |at| Inst::Binary { op: BinaryOp::Xor, dtype, lhs: Elem(at), rhs: Elem(0), site: None };
        insts.extend((1..=steps).map(step));
        Kernel {
            dims: vec![LoopDim { extent: Extent::Static(points), reduced: false }],
            range_dim: true,
            buffers: vec![buffer(false), buffer(true)],
            scalars: Vec::new(),
            insts,
            stores: vec![Store { access: access(1), dtype, value: Elem(steps + 1), combine: None }],
        }
    }

    /// `y[i] = sum(x[i, j])`, in lanes.
    fn rows(columns: u64) -> Nest {
        let dtype = DType::F32;
        let access = |buffer, terms| Access { buffer, address: Affine { terms, ..Affine::default() } };
        let buffer = |written, len: u64| BufferSlot { dtype, written, len: len as usize, streamed: false };
        let dim = |length, reduced| LoopDim { extent: Extent::Static(length), reduced };
        Nest::new(&Kernel {
            dims: vec![dim(100, false), dim(columns, true)],
            range_dim: true,
            buffers: vec![buffer(false, 100 * columns), buffer(true, 100)],
            scalars: Vec::new(),
            insts: vec![Inst::Load { access: access(0, vec![(0, columns as i64), (1, 1)]), dtype }],
            stores: vec![Store {
                access: access(1, vec![(0, 1)]),
                dtype,
                value: Elem(0),
                combine: Some(Combine::Reduce(spmdc_abi::ReduceOp::Sum)),
            }],
        })
    }

    #[test]
    fn short_reduced_loops_are_unrolled() {
        let nest = rows(64);
        let trips = |trips| (nest.is_unrolled(1, trips), nest.is_unrolled(0, trips));
        assert_eq!([0, 1, 4, 5].map(trips), [(false, false), (true, false), (true, false), (false, false)]);
    }

    #[test]
    fn long_chains_of_many_points_take_several_registers() {
        let lanes = |points, steps| Nest::new(&chained(points, steps)).cut.map(|cut| cut.lanes[0]);
        assert_eq!(Nest::uncut(&chained(64, 100)).chain(), 101);
        assert_eq!(lanes(1 << 16, 100), Some(16));
        assert_eq!(lanes(64, 100), Some(4));
        assert_eq!(lanes(1 << 16, 40), Some(4));
    }
}
