//! A kernel as a Cranelift function: the loops, and in them loads, instructions, reductions and stores.
//!
//! The function is `extern "C" fn(buffers: *const *mut u8, scalars: *const i64, begin: i64, end: i64) -> i64`. Loops count
//! elements and test at the bottom; addresses are `buffer + index * stride + constant`, whose invariant parts Cranelift hoists.
//! For a row sum of `2 * x` over `f32[rows, 1000]`, cut into bundles of 16 lanes:
//!
//! ```text
//! for i in begin..end {
//!     sums = 4 registers of zeros; rest = 0
//!     for j in (0..992).step_by(16) { sums += 2 * x[1000 * i + j ..] }
//!     for j in 992..1000 { rest += 2 * x[1000 * i + j] }
//!     y[i] = lanes of sums, added up in a fixed order, + rest
//! }
//! ```
//!
//! In bundles of 4 lanes the same sums are four bundles that take turns.
//!
//! An output may be the same memory as an input that is accessed at the same index. At every point, or bundle of points, all loads come
//! before all stores, and no load moves over a store.

use super::accumulator::Accumulator;
use super::arithmetic::register_type;
use super::math_calls::MathStyle;
use super::vector::{Bundle, MAX_PARTS, Vector, int_of, memory};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{AbiParam, Block, BlockArg, Function, InstBuilder, Signature};
use cranelift_codegen::ir::{StackSlot, StackSlotData, StackSlotKind};
use cranelift_codegen::ir::{Type, UserFuncName, Value};
use cranelift_codegen::isa::{CallConv, TargetFrontendConfig};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use spmdc_abi::{DType, Kind, Stored, trap};
use spmdc_kernel::cut::LONG_CHAIN;
use spmdc_kernel::loops::{Affine, Elem, Inst, Kernel, KernelCheck};
use spmdc_kernel::nest::{Cut, Nest};
use spmdc_kernel::number;
use spmdc_kernel::scalar::BinaryOp;
use std::collections::HashMap;

/// The parameters of a kernel's code besides the kernel.
#[derive(Clone, Copy)]
pub struct EmitOptions {
    pub frontend: TargetFrontendConfig,
    /// Whether math functions are in the same object.
    pub near: bool,
    /// Whether loads of memory that nobody writes may move to their users: instructions accept operands at any address.
    pub moves_loads: bool,
}

/// Larger than every code, as an unsigned number.
const NOT_FAILED: i64 = -1;

/// Maximum number of points for which inlining math functions does not pay.
const FEW_POINTS: u64 = 64;

/// Number of instructions of a long chain after which the registers of a bundle are kept in step: the processors of today look ahead by
/// a few times as many.
const STEP: usize = 16;

/// The signature of every kernel.
pub fn signature(convention: CallConv) -> Signature {
    let mut signature = Signature::new(convention);
    signature.params = vec![AbiParam::new(I64); 4];
    signature.returns.push(AbiParam::new(I64));
    signature
}

/// The function of a kernel with this nest, not yet compiled.
pub fn emit(kernel: &Kernel, nest: &Nest, options: EmitOptions, context: &mut FunctionBuilderContext) -> Function {
    let mut function =
        Function::with_name_signature(UserFuncName::default(), signature(options.frontend.default_call_conv));
    let builder = FunctionBuilder::new(&mut function, context);
    Emitter::new(kernel, nest, builder, options).run(options.frontend);
    function
}

/// A tile of the elements of one instruction.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    pub draw: Elem,
    pub slot: StackSlot,
}

pub(super) struct Emitter<'n, 'f> {
    pub nest: &'n Nest,
    pub builder: FunctionBuilder<'f>,
    pub buffers: Vec<Value>,
    pub scalars: Vec<Value>,
    begin: Value,
    end: Value,
    /// The current index of each loop; in the vectorised one the index of the first lane.
    pub indices: Vec<Value>,
    /// The number of lanes of varying values: the lanes of the current bundle, or 1.
    pub lanes: u32,
    pub values: Vec<Option<Bundle>>,
    /// Whether these are the remaining elements of a reduced dimension that is cut.
    pub left_over: bool,
    pub accumulators: Vec<Accumulator>,
    math: MathStyle,
    /// Whether loads may be moved out of loops, and to their first use, where they become operands. So the values of an unrolled loop stay
    /// in registers from row to row, and other loads need no registers.
    pub moves_loads: bool,
    /// Whether operands of instructions in memory must be aligned.
    pub needs_alignment: bool,
    /// The kernel's checks, by number.
    checks: Vec<KernelCheck>,
    /// The least code of the failed checks, if the kernel has checks.
    failed: Option<StackSlot>,
    /// Memory for loads whose values are not needed.
    pub scratch: Option<StackSlot>,
    /// The products of each block with constants.
    products: HashMap<(Block, Value, i64), Value>,
    /// The tiles of random bits, and the index of their first point in the loop that is cut.
    pub tiles: Vec<Tile>,
    pub tile_start: Option<Value>,
    /// Memory that keeps the registers of a bundle in step, in kernels with long chains of instructions.
    in_step: Option<StackSlot>,
}

impl<'n, 'f> Emitter<'n, 'f> {
    fn new(kernel: &Kernel, nest: &'n Nest, mut builder: FunctionBuilder<'f>, options: EmitOptions) -> Emitter<'n, 'f> {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        let params = builder.block_params(entry).to_vec();
        let table = |builder: &mut FunctionBuilder<'f>, base: Value, len: usize| -> Vec<Value> {
            (0..len).map(|i| builder.ins().load(I64, memory(), base, 8 * i as i32)).collect()
        };
        let buffers = table(&mut builder, params[0], kernel.buffers.len());
        let scalars = table(&mut builder, params[1], kernel.scalars.len());
        let points = nest.dims.iter().try_fold(1_u64, |product, dim| product.checked_mul(dim.length.max));
        let few = points.is_some_and(|points| points <= FEW_POINTS);
        Emitter {
            nest,
            builder,
            buffers,
            scalars,
            begin: params[2],
            end: params[3],
            indices: vec![params[2]; nest.dims.len()],
            lanes: 1,
            values: vec![None; nest.insts.len()],
            left_over: false,
            accumulators: Vec::new(),
            math: MathStyle {
                call_scalars: few || nest.cut.is_some(),
                near: options.near,
                convention: options.frontend.default_call_conv,
            },
            moves_loads: options.moves_loads && nest.loads_move(),
            needs_alignment: !options.moves_loads,
            checks: kernel.checks(),
            failed: None,
            scratch: None,
            products: HashMap::new(),
            tiles: Vec::new(),
            tile_start: None,
            in_step: None,
        }
    }

    fn run(mut self, frontend: TargetFrontendConfig) {
        let done = self.builder.create_block();
        if !self.checks.is_empty() {
            let slot = self.builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 8, 3));
            let not_failed = self.builder.ins().iconst(I64, NOT_FAILED);
            self.builder.ins().stack_store(I64, not_failed, slot, 0);
            self.failed = Some(slot);
        }
        // Test for an empty part of the range, even without a loop over it. Without points nothing may be loaded before the loops:
        // an empty range of the result says nothing about the operands.
        let work = self.builder.create_block();
        let mut any = self.builder.ins().icmp(IntCC::SignedLessThan, self.begin, self.end);
        for dim in (0..self.nest.first_reduced()).filter(|&dim| self.nest.may_be_empty(dim)) {
            let length = self.length(dim);
            let is_run = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThan, length, 0);
            any = self.builder.ins().band(any, is_run);
        }
        self.builder.ins().brif(any, work, &[], done, &[]);
        self.builder.switch_to_block(work);
        self.level(0);
        self.builder.ins().jump(done, &[]);
        self.builder.switch_to_block(done);
        let none = self.builder.ins().iconst(I64, trap::NONE);
        let code = match self.failed {
            Some(slot) => {
                let code = self.builder.ins().stack_load(I64, I64, slot, 0);
                let has_failed = self.builder.ins().icmp_imm_s(IntCC::NotEqual, code, NOT_FAILED);
                self.builder.ins().select(has_failed, code, none)
            }
            None => none,
        };
        self.builder.ins().return_(&[code]);
        self.builder.seal_all_blocks();
        self.builder.finalize(frontend);
    }

    pub fn vector(&mut self, lanes: u32) -> Vector<'_, 'f> {
        Vector { builder: &mut self.builder, lanes }
    }

    /// Emits the instructions that belong inside `depth` loops and no deeper.
    pub fn instructions(&mut self, depth: usize) {
        let is_long = self.lanes > 4 && depth == self.nest.dims.len() && self.nest.chain() >= LONG_CHAIN;
        let mut since = 0;
        for at in 0..self.nest.order.len() {
            let elem = self.nest.order[at];
            // Loops of the body compute what is inside them.
            if self.nest.levels[elem.0 as usize] != depth || self.nest.inside[elem.0 as usize].is_some() {
                continue;
            }
            self.instruction(elem);
            since += 1;
            if is_long && since >= STEP && self.nest.varies[elem.0 as usize] {
                self.keep_in_step(elem);
                since = 0;
            }
        }
    }

    /// Cranelift computes a value where it is used: all of one register's chain, then all of the next one's, which a processor sees
    /// too late to overlap them. Writing the registers of an intermediate value keeps them in step.
    fn keep_in_step(&mut self, elem: Elem) {
        let bundle = self.values[elem.0 as usize].expect("the instruction was just emitted");
        let builder = &mut self.builder;
        let bytes = (16 * MAX_PARTS) as u32;
        let slot = *self.in_step.get_or_insert_with(|| {
            builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, bytes, 4))
        });
        for (part, &value) in bundle.parts().iter().enumerate() {
            let place = self.builder.ins().stack_addr(I64, slot, 16 * part as i32);
            self.builder.ins().store(memory(), value, place, 0);
        }
    }

    /// Emits the code inside `depth` loops, including deeper loops.
    pub fn level(&mut self, depth: usize) {
        self.instructions(depth);
        for at in 0..self.nest.stores.len() {
            let store = &self.nest.stores[at];
            if store.combine.is_none() && self.nest.store_level(store) == depth {
                self.store_point(store);
            }
        }
        let reduces_here = depth == self.nest.first_reduced() && self.nest.has_reduction();
        if let (true, Some(Cut { strips: Some(strips), .. })) = (reduces_here, &self.nest.cut) {
            return self.strips(*strips);
        }
        if reduces_here {
            self.start_reductions();
        }
        if depth < self.nest.dims.len() {
            self.dimension(depth);
        } else {
            self.update_reductions();
        }
        if reduces_here {
            self.finish_reductions();
        }
    }

    // Loops.

    /// The number of iterations of a loop at run time.
    pub fn length(&mut self, dim: usize) -> Value {
        let length = &self.nest.dims[dim].length;
        match length.slot {
            None => self.builder.ins().iconst(I64, length.factor as i64),
            Some(slot) => self.product(self.scalars[slot], length.factor as i64),
        }
    }

    /// The bounds of a loop, and its number of iterations if that is known.
    pub fn bounds(&mut self, dim: usize) -> (Value, Value, Option<u64>) {
        if let Some(range) = self.nest.range.as_ref().filter(|range| range.dim == dim) {
            let from = self.product(self.begin, range.scale);
            return (from, self.product(self.end, range.scale), None);
        }
        let from = self.builder.ins().iconst(I64, 0);
        (from, self.length(dim), self.nest.dims[dim].length.known())
    }

    pub fn dimension(&mut self, dim: usize) {
        match &self.nest.cut {
            Some(Cut { dim: column, rows: Some(row), .. }) if *row == dim => self.tiles(*row, *column),
            Some(cut) if cut.dim == dim => self.bundles(cut),
            Some(cut) if cut.dim == dim + 1 && self.finishes_later(cut) => self.overlapping_rows(dim),
            _ => {
                let (from, to, known) = self.bounds(dim);
                self.count_or_unroll(dim, (from, to), 1, known, |e, index| {
                    e.indices[dim] = index;
                    e.level(dim + 1);
                });
            }
        }
    }

    /// The loop over a dimension in bundles; with random bits in tiles, a loop over the tiles, and a loop over bundles in it.
    fn bundles(&mut self, cut: &Cut) {
        let (from, to, known) = self.bounds(cut.dim);
        let Some(tiles) = &self.nest.tiles else { return self.bundles_between(cut, from, to, known) };
        let points = u64::from(tiles.points);
        if let Some(known) = known.filter(|&known| known <= points) {
            let count = self.builder.ins().isub(to, from);
            self.fill_tiles(from, count);
            return self.bundles_between(cut, from, to, Some(known));
        }
        let whole = known.filter(|known| known.is_multiple_of(points)).map(|_| points);
        let trips = known.map(|known| known.div_ceil(points));
        self.count(from, to, tiles.points, trips, self.nest.dims[cut.dim].reduced, |e, first| {
            let end = e.builder.ins().iadd_imm_s(first, i64::from(tiles.points));
            let last = if whole.is_some() { end } else { e.builder.ins().smin(end, to) };
            let count = e.builder.ins().isub(last, first);
            e.fill_tiles(first, count);
            e.bundles_between(cut, first, last, whole);
        });
    }

    /// The part of a loop between two indices, `left` iterations if that is known; each size of bundle runs as far as it can.
    fn bundles_between(&mut self, cut: &Cut, mut from: Value, to: Value, mut left: Option<u64>) {
        let reduced = self.nest.dims[cut.dim].reduced;
        for (kind, &lanes) in cut.lanes.iter().enumerate() {
            if left == Some(0) {
                break;
            }
            // Whole bundles only, and all lanes of a sum; the last size fits by construction.
            let is_last = kind + 1 == cut.lanes.len();
            let all = self.nest.sums.lanes_along(cut.dim).filter(|_| kind == 0);
            let step = all.unwrap_or(lanes);
            let until = if is_last { to } else { self.whole(from, to, step) };
            let trips = left.map(|left| left / u64::from(step) * u64::from(step / lanes));
            self.lanes = lanes;
            self.left_over = reduced && kind > 0;
            self.count_or_unroll(cut.dim, (from, until), lanes, trips, |e, index| {
                e.indices[cut.dim] = index;
                e.level(cut.dim + 1);
                if all.is_some() {
                    e.take_turns();
                }
            });
            left = left.map(|left| left % u64::from(step));
            from = until;
        }
        self.left_over = false;
        self.lanes = 1;
    }

    /// The end of the last whole step between two bounds.
    pub fn whole(&mut self, from: Value, to: Value, step: u32) -> Value {
        let count = self.builder.ins().isub(to, from);
        let whole = self.builder.ins().band_imm_s(count, -i64::from(step));
        self.builder.ins().iadd(from, whole)
    }

    // Affine values and addresses.

    /// An affine value at the first lane; its dynamic indices do not differ between lanes.
    pub fn affine(&mut self, affine: &Affine) -> Value {
        let mut sum = None;
        for &(slot, stride) in &affine.scalars {
            sum = Some(self.add_product(sum, self.scalars[slot], stride));
        }
        for &(elem, stride) in &affine.dynamic {
            let value = self.values[elem.0 as usize].expect("dynamic indices come first").single();
            sum = Some(self.add_product(sum, value, stride));
        }
        for &(dim, stride) in &affine.terms {
            sum = Some(self.add_product(sum, self.indices[dim], stride));
        }
        match sum {
            Some(sum) if affine.constant == 0 => sum,
            Some(sum) => self.builder.ins().iadd_imm_s(sum, affine.constant),
            None => self.builder.ins().iconst(I64, affine.constant),
        }
    }

    /// The dynamic indices of an affine value that differ between the lanes of the current bundle, with their strides, and the
    /// affine value without them.
    pub fn differing(&self, affine: &Affine) -> (Vec<(Bundle, i64)>, Affine) {
        let differs = |elem: Elem| self.lanes > 1 && self.nest.varies[elem.0 as usize];
        let index = |elem: Elem| self.values[elem.0 as usize].expect("dynamic indices come first");
        let (differing, common): (Vec<_>, Vec<_>) = affine.dynamic.iter().partition(|(elem, _)| differs(*elem));
        let differing = differing.into_iter().map(|(elem, stride)| (index(elem), stride)).collect();
        (differing, Affine { dynamic: common, ..affine.clone() })
    }

    pub fn add_product(&mut self, sum: Option<Value>, value: Value, factor: i64) -> Value {
        let product = self.product(value, factor);
        match sum {
            Some(sum) => self.builder.ins().iadd(sum, product),
            None => product,
        }
    }

    /// The product, computed once for each block: most addresses of a point have the same ones.
    fn product(&mut self, value: Value, factor: i64) -> Value {
        if factor == 1 {
            return value;
        }
        let key = (self.builder.current_block().expect("the entry is a block"), value, factor);
        if let Some(&known) = self.products.get(&key) {
            return known;
        }
        let product = if factor > 0 && factor.count_ones() == 1 {
            self.builder.ins().ishl_imm_u(value, i64::from(factor.trailing_zeros()))
        } else {
            self.builder.ins().imul_imm_s(value, factor)
        };
        self.products.insert(key, product);
        product
    }

    /// An affine value in `lanes` lanes, exact in 32 or 64 bits.
    fn affine_lanes(&mut self, affine: &Affine, lanes: u32) -> Bundle {
        let fits = self.nest.fits_i32(affine);
        let (differing, affine) = self.differing(affine);
        let first = self.affine(&affine);
        let lane = if fits { I32 } else { I64 };
        let first = if fits { self.builder.ins().ireduce(I32, first) } else { first };
        let offsets = self.lane_offsets(&affine, lanes);
        let mut v = self.vector(lanes);
        let mut sum = v.splat(lane, first);
        if offsets.iter().any(|&offset| offset != 0) {
            let steps = v.int_lanes(lane, |i| offsets[i as usize]);
            sum = v.add(sum, steps);
        }
        for (index, stride) in differing {
            let index = v.resize(index, lane, true);
            let product = if stride == 1 {
                index
            } else {
                let stride = v.int(lane, stride);
                v.mul(index, stride)
            };
            sum = v.add(sum, product);
        }
        sum
    }

    // Instructions.

    /// An operand in the number of lanes of its user.
    pub fn operand(&mut self, elem: Elem, lanes: u32) -> Bundle {
        let at = elem.0 as usize;
        let value = self.values[at].expect("operands come before their users");
        if lanes == 1 || self.nest.varies[at] {
            return value;
        }
        let is_bool = self.nest.dtype(elem) == DType::Bool;
        let mut v = self.vector(lanes);
        if is_bool { v.splat_mask(I32, value.single()) } else { v.splat(value.lane, value.single()) }
    }

    pub fn instruction(&mut self, elem: Elem) {
        let at = elem.0 as usize;
        let lanes = if self.nest.varies[at] { self.lanes } else { 1 };
        let nest = self.nest;
        let value = match &nest.insts[at] {
            Inst::Load { access, dtype } => {
                let guard = nest.guards[at].map(|guard| {
                    let varies = nest.varies[guard.0 as usize] && lanes > 1;
                    (varies, self.operand(guard, if varies { lanes } else { 1 }))
                });
                self.load(access, *dtype, lanes, guard)
            }
            Inst::Const { dtype, bits } => self.constant(*dtype, *bits),
            Inst::Index { affine, dtype } => {
                let index = self.affine_lanes(affine, lanes);
                let from = if index.lane == I32 { DType::I32 } else { DType::I64 };
                self.vector(lanes).cast(from, *dtype, index)
            }
            Inst::LoopInvariant { buffer, last } => {
                let value = self.builder.ins().load(I64, memory(), self.buffers[*buffer], 0);
                let last = self.builder.ins().iconst(I64, *last as i64);
                let is_place = self.builder.ins().icmp(IntCC::UnsignedLessThan, value, last);
                let place = self.builder.ins().select(is_place, value, last);
                Bundle::new(I64, &[place])
            }
            inst @ Inst::CheckIndex { dtype, arg, extent, .. } => {
                let index = self.operand(*arg, lanes);
                let guard = nest.guards[at].map(|guard| self.operand(guard, lanes));
                let (counted, fails) = self.vector(lanes).counted_index(*dtype, index, *extent);
                let first = inst.trap(&self.checks, trap::LEAST_VALUE);
                self.record_failure(fails, guard, lanes, nest.levels[at], |e, lane| {
                    let value = e.vector(lanes).extract(index, lane);
                    e.code_of(first, *dtype, value)
                });
                counted
            }
            Inst::Limit { arg, last } => {
                let value = self.operand(*arg, lanes);
                self.vector(lanes).limit(value, *last)
            }
            Inst::Unary { op, dtype, arg } => {
                let arg = self.operand(*arg, lanes);
                let math = self.math;
                self.vector(lanes).unary(*op, *dtype, arg, math)
            }
            inst @ Inst::Binary { op, dtype, lhs, rhs, .. } => {
                let (lhs, rhs) = if self.loads_first(*op, *lhs, *rhs) { (*rhs, *lhs) } else { (*lhs, *rhs) };
                let (lhs, rhs) = (self.operand(lhs, lanes), self.operand(rhs, lanes));
                if inst.divides_integers() {
                    let guard = nest.guards[at].map(|guard| self.operand(guard, lanes));
                    let code = inst.trap(&self.checks, 0);
                    let mut v = self.vector(lanes);
                    let zero = v.int(rhs.lane, 0);
                    let is_zero = v.compare_ints(IntCC::Equal, rhs, zero);
                    self.record_failure(is_zero, guard, lanes, nest.levels[at], |e, _| {
                        e.builder.ins().iconst(I64, code)
                    });
                }
                let math = self.math;
                self.vector(lanes).binary(*op, *dtype, lhs, rhs, math)
            }
            Inst::Compare { op, dtype, lhs, rhs } => {
                let (lhs, rhs) = (self.operand(*lhs, lanes), self.operand(*rhs, lanes));
                self.vector(lanes).compare(*op, *dtype, lhs, rhs)
            }
            Inst::Select { dtype, cond, then, otherwise } => {
                let (cond, then, otherwise) =
                    (self.operand(*cond, lanes), self.operand(*then, lanes), self.operand(*otherwise, lanes));
                self.vector(lanes).select_values(*dtype, cond, then, otherwise)
            }
            Inst::Fma { dtype, x, y, z } => {
                let [x, y, z] = [x, y, z].map(|&operand| self.operand(operand, lanes));
                self.vector(lanes).fma(*dtype, x, y, z)
            }
            Inst::Cast { from, to, arg } => {
                let arg = self.operand(*arg, lanes);
                self.vector(lanes).cast(*from, *to, arg)
            }
            Inst::Bitcast { from, to, arg } => {
                let arg = self.operand(*arg, lanes);
                self.vector(lanes).bits_as(*from, *to, arg)
            }
            Inst::RandomBits { dtype, .. } => self.drawn(elem, *dtype, lanes),
            // The loop has computed it.
            Inst::Carried { .. } | Inst::Last { .. } => return,
            Inst::Repeat { trips, carried } => self.repeat(elem, *trips, carried),
            Inst::InRange { affine, low, high } => self.in_range(affine, low, high, lanes),
        };
        self.values[at] = Some(value);
    }

    /// Whether the first factor of a product should be the second one, which may be an operand in memory: a load that depends on more
    /// loops, and that is not kept in a register, therefore.
    fn loads_first(&self, op: BinaryOp, lhs: Elem, rhs: Elem) -> bool {
        let loops = |elem: Elem| {
            let load = self.nest.insts[elem.0 as usize].load();
            load.map(|(access, _)| access.address.terms.len())
        };
        op == BinaryOp::Mul && loops(lhs).is_some_and(|count| loops(rhs).is_none_or(|other| other < count))
    }

    /// A constant, as its scalar.
    fn constant(&mut self, dtype: DType, bits: u64) -> Bundle {
        let bits = match dtype.stored() {
            Stored::Same | Stored::Truth => bits,
            Stored::Narrow => number::cast(dtype, dtype.computed(), bits).expect("narrow floats widen"),
        };
        self.vector(1).constant(register_type(dtype), bits)
    }

    fn in_range(&mut self, affine: &Affine, low: &Affine, high: &Affine, lanes: u32) -> Bundle {
        let mut conditions = Vec::new();
        // `affine - low >= 0` and `high - affine - 1 >= 0`, unless the bounds imply them.
        for difference in [affine.plus(&low.times(-1)), high.plus(&affine.times(-1)).offset(-1)] {
            if self.nest.bounds(&difference).is_some_and(|(least, _)| least >= 0) {
                continue;
            }
            let value = self.affine_lanes(&difference, lanes);
            let mut v = self.vector(lanes);
            let zero = v.int(value.lane, 0);
            conditions.push(v.compare_ints(IntCC::SignedGreaterThanOrEqual, value, zero));
        }
        let mut v = self.vector(lanes);
        match conditions[..] {
            [] => {
                let truth = v.builder.ins().iconst(I8, 1);
                v.splat_mask(I32, truth)
            }
            [one] => one,
            _ => {
                let (a, b) = v.align_masks(conditions[0], conditions[1]);
                v.and(a, b)
            }
        }
    }

    /// Records the least code of all failures and continues: the first failing statement is known when all points are computed.
    /// Before the loops inside `depth` others, a failure counts if there is a point in them. `fails` is a mask, `code` gives the
    /// code of a failure in a lane.
    fn record_failure(
        &mut self,
        mut fails: Bundle,
        guard: Option<Bundle>,
        lanes: u32,
        depth: usize,
        code: impl Fn(&mut Self, u32) -> Value,
    ) {
        let mut v = self.vector(lanes);
        if let Some(guard) = guard {
            let guard = v.mask_as(guard, fails.lane);
            fails = v.and(fails, guard);
        }
        let mut any = v.any(fails);
        for dim in (depth..self.nest.dims.len()).filter(|&dim| self.nest.may_be_empty(dim)) {
            let length = self.length(dim);
            let is_run = self.builder.ins().icmp_imm_s(IntCC::SignedGreaterThan, length, 0);
            any = self.builder.ins().band(any, is_run);
        }
        let Some(slot) = self.failed else { return };
        let (failed, safe) = (self.builder.create_block(), self.builder.create_block());
        self.builder.set_cold_block(failed);
        self.builder.ins().brif(any, failed, &[], safe, &[]);
        self.builder.switch_to_block(failed);
        let mut least = self.builder.ins().stack_load(I64, I64, slot, 0);
        for lane in 0..lanes {
            let code = code(self, lane);
            let is_less = self.builder.ins().icmp(IntCC::UnsignedLessThan, code, least);
            let lane_fails = self.vector(lanes).extract(fails, lane);
            let less = self.builder.ins().select(is_less, code, least);
            least = self.builder.ins().select(lane_fails, less, least);
        }
        self.builder.ins().stack_store(I64, least, slot, 0);
        self.builder.ins().jump(safe, &[]);
        self.builder.switch_to_block(safe);
    }

    /// As [`trap::code`], of an index; `first` is the least code of the check.
    fn code_of(&mut self, first: i64, dtype: DType, index: Value) -> Value {
        let is_signed = dtype.kind() == Kind::Signed;
        let wide = match (dtype.size() == 8, is_signed) {
            (true, _) => index,
            (false, true) => self.builder.ins().sextend(I64, index),
            (false, false) => self.builder.ins().uextend(I64, index),
        };
        let most = self.builder.ins().iconst(I64, trap::LARGEST_VALUE);
        let value = if is_signed {
            let least = self.builder.ins().iconst(I64, trap::LEAST_VALUE);
            let value = self.builder.ins().smax(wide, least);
            self.builder.ins().smin(value, most)
        } else {
            self.builder.ins().umin(wide, most)
        };
        self.builder.ins().iadd_imm_s(value, first - trap::LEAST_VALUE)
    }

    /// The width of a bool that an instruction computes, in lanes.
    pub fn mask_lane(&self, elem: Elem) -> Type {
        match &self.nest.insts[elem.0 as usize] {
            _ if self.lanes == 1 => I8,
            Inst::Compare { dtype, lhs, .. } => {
                if *dtype == DType::Bool {
                    self.mask_lane(*lhs)
                } else {
                    int_of(register_type(*dtype))
                }
            }
            Inst::Load { .. } => I8,
            Inst::Const { .. }
            | Inst::Index { .. }
            | Inst::LoopInvariant { .. }
            | Inst::CheckIndex { .. }
            | Inst::Limit { .. }
            | Inst::Unary { .. }
            | Inst::Binary { .. }
            | Inst::Select { .. }
            | Inst::Fma { .. }
            | Inst::Cast { .. }
            | Inst::Bitcast { .. }
            | Inst::RandomBits { .. }
            | Inst::Carried { .. }
            | Inst::Repeat { .. }
            | Inst::Last { .. }
            | Inst::InRange { .. } => I32,
        }
    }

    pub fn current_lanes(&self) -> u32 {
        self.lanes
    }

    pub fn index(&self, dim: usize) -> Value {
        self.indices[dim]
    }
}

pub(super) fn arguments(first: Option<Value>, rest: &[Value]) -> Vec<BlockArg> {
    first.into_iter().chain(rest.iter().copied()).map(BlockArg::from).collect()
}
