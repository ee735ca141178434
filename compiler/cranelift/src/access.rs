//! Loads and stores: addresses, memory patterns of neighbouring lanes, and guarded loads.

use super::arithmetic::memory_type;
use super::kernel::{Emitter, arguments};
use super::vector::{Bundle, constant_memory, int_of, memory};
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{Block, InstBuilder, MemFlagsData, StackSlotData, StackSlotKind, Type, Value};
use spmdc_abi::DType;
use spmdc_kernel::loops::{Access, Affine, Store};
use spmdc_kernel::nest::{Cut, Nest, SIDE};

/// The positions of the lanes' elements in memory.
#[derive(PartialEq)]
enum LanePattern {
    /// Consecutive elements.
    Forward,
    Backward,
    /// Four rows of four neighbours, at this distance.
    Rows(i64),
    /// Four columns of four neighbours, at this distance.
    Columns(i64),
    Scattered,
}

impl LanePattern {
    /// The pattern of each lane's distance to the first, in elements.
    fn of(steps: &[i64]) -> LanePattern {
        let all = |f: &dyn Fn(i64) -> i64| steps.iter().enumerate().all(|(i, &step)| step == f(i as i64));
        if all(&|i| i) {
            return LanePattern::Forward;
        }
        if all(&|i| -i) {
            return LanePattern::Backward;
        }
        if steps.len() == 16 {
            let (row, column) = (steps[4], steps[1]);
            if all(&|i| i % SIDE + i / SIDE * row) {
                return LanePattern::Rows(row);
            }
            if all(&|i| i % SIDE * column + i / SIDE) {
                return LanePattern::Columns(column);
            }
        }
        LanePattern::Scattered
    }
}

impl Emitter<'_, '_> {
    /// The difference of an affine value in each lane from its value in the first lane.
    pub fn lane_offsets(&self, affine: &Affine, lanes: u32) -> Vec<i64> {
        let lanes = 0..i64::from(lanes);
        match &self.nest.cut {
            Some(Cut { dim, rows: Some(row), .. }) if lanes.end > 1 => {
                let (column, row) = (Nest::stride(affine, *dim), Nest::stride(affine, *row));
                lanes.map(|i| i % SIDE * column + i / SIDE * row).collect()
            }
            Some(cut) => lanes.map(|i| i * Nest::stride(affine, cut.dim)).collect(),
            None => vec![0; lanes.end as usize],
        }
    }

    /// Whether an affine value differs between lanes.
    fn moves(&self, affine: &Affine) -> bool {
        self.nest.cut.as_ref().is_some_and(|cut| cut.dims().any(|dim| Nest::stride(affine, dim) != 0))
    }

    /// The address of an element at the first lane: a pointer and a constant. Its dynamic indices do not differ between lanes.
    fn address(&mut self, access: &Access, dtype: DType) -> (Value, i32) {
        let size = dtype.size() as i64;
        let constant = access.address.constant * size;
        // Vectors extend up to 256 bytes further.
        let (offset, rest) = match i32::try_from(constant) {
            Ok(offset) if offset.unsigned_abs() < 1 << 30 => (offset, 0),
            _ => (0, access.address.constant),
        };
        let variable = Affine { constant: rest, ..access.address.clone() };
        let base = self.buffers[access.buffer];
        let mut pointer = base;
        if variable.constant != 0 {
            pointer = self.builder.ins().iadd_imm_s(pointer, variable.constant * size);
        }
        for &(slot, stride) in &variable.scalars {
            pointer = self.add_product(Some(pointer), self.scalars[slot], stride * size);
        }
        for &(elem, stride) in &variable.dynamic {
            let value = self.values[elem.0 as usize].expect("dynamic indices come first").single();
            pointer = self.add_product(Some(pointer), value, stride * size);
        }
        for &(dim, stride) in &variable.terms {
            pointer = self.add_product(Some(pointer), self.indices[dim], stride * size);
        }
        (pointer, offset)
    }

    /// Loads elements; under a guard (which varies along the lanes or not) from scratch memory if the value is not needed.
    pub fn load(&mut self, access: &Access, dtype: DType, lanes: u32, guard: Option<(bool, Bundle)>) -> Bundle {
        let (differing, address) = self.differing(&access.address);
        let (pointer, offset) = self.address(&Access { address, ..*access }, dtype);
        let steps = self.lane_offsets(&access.address, lanes);
        let raw = match guard {
            guard if !differing.is_empty() => self.load_gathered((pointer, offset), &differing, &steps, dtype, guard),
            None => self.load_lanes(self.flags(access), pointer, offset, &steps, dtype),
            Some((false, condition)) if LanePattern::of(&steps) == LanePattern::Forward => {
                let pointer = self.guarded(condition.single(), pointer, offset);
                self.load_lanes(memory(), pointer, 0, &steps, dtype)
            }
            // Scratch memory has room for one bundle of neighbours.
            Some((false, condition)) => {
                let condition = condition.single();
                self.load_each(pointer, offset, &steps, dtype, |_, _| condition)
            }
            Some((true, mask)) => self.load_masked(pointer, offset, &steps, dtype, mask),
        };
        self.vector(lanes).decode_memory(dtype, raw)
    }

    /// Loads lane by lane, where dynamic indices differ between lanes; under a guard, from scratch memory if it does not hold.
    fn load_gathered(
        &mut self,
        (pointer, offset): (Value, i32),
        indices: &[(Bundle, i64)],
        steps: &[i64],
        dtype: DType,
        guard: Option<(bool, Bundle)>,
    ) -> Bundle {
        let (ty, size, lanes) = (memory_type(dtype), dtype.size() as i64, steps.len() as u32);
        let mut values = Vec::with_capacity(steps.len());
        for (lane, step) in (0..).zip(steps) {
            let (mut address, mut offset) = self.lane_address(pointer, offset, step * size);
            for &(index, stride) in indices {
                let index = self.vector(lanes).extract(index, lane);
                address = self.add_product(Some(address), index, stride * size);
            }
            if let Some((varies, condition)) = guard {
                let condition = if varies { self.vector(lanes).extract(condition, lane) } else { condition.single() };
                (address, offset) = (self.guarded(condition, address, offset), 0);
            }
            values.push(self.builder.ins().load(ty, memory(), address, offset));
        }
        self.vector(lanes).assemble(ty, &values)
    }

    /// The flags of a load without a guard.
    fn flags(&self, access: &Access) -> MemFlagsData {
        let is_written = self.nest.stores.iter().any(|store| store.access.buffer == access.buffer);
        if self.moves_loads && !is_written { constant_memory() } else { memory() }
    }

    /// Loads elements from memory, each at its distance from the first.
    fn load_lanes(&mut self, flags: MemFlagsData, pointer: Value, offset: i32, steps: &[i64], dtype: DType) -> Bundle {
        let (ty, size) = (memory_type(dtype), dtype.size() as i64);
        let lanes = steps.len() as u32;
        match LanePattern::of(steps) {
            // Cranelift makes the load of a float an operand of its comparison at any address, but not that of an integer.
            LanePattern::Forward if self.needs_alignment && ty.is_float() && lanes > 1 => {
                let mut v = self.vector(lanes);
                let bits = v.load_by(flags, int_of(ty), pointer, offset);
                v.bitcast(ty, bits)
            }
            LanePattern::Forward => self.vector(lanes).load_by(flags, ty, pointer, offset),
            LanePattern::Backward => {
                let (pointer, offset) = self.lane_address(pointer, offset, -i64::from(lanes - 1) * size);
                let mut v = self.vector(lanes);
                let forward = v.load_by(flags, ty, pointer, offset);
                v.reverse(forward)
            }
            LanePattern::Rows(stride) => {
                let rows = self.load_fours(pointer, offset, stride * size, ty);
                self.vector(lanes).join_rows(rows)
            }
            LanePattern::Columns(stride) => {
                let columns = self.load_fours(pointer, offset, stride * size, ty);
                self.vector(lanes).transpose(columns)
            }
            LanePattern::Scattered => {
                let values: Vec<Value> = steps
                    .iter()
                    .map(|&step| {
                        let (pointer, offset) = self.lane_address(pointer, offset, step * size);
                        self.builder.ins().load(ty, flags, pointer, offset)
                    })
                    .collect();
                self.vector(lanes).assemble(ty, &values)
            }
        }
    }

    /// Loads four times four neighbours.
    fn load_fours(&mut self, pointer: Value, offset: i32, stride: i64, ty: Type) -> [Bundle; 4] {
        std::array::from_fn(|i| {
            let (pointer, offset) = self.lane_address(pointer, offset, i as i64 * stride);
            self.vector(4).load(ty, pointer, offset)
        })
    }

    fn lane_address(&mut self, pointer: Value, offset: i32, distance: i64) -> (Value, i32) {
        match i32::try_from(i64::from(offset) + distance) {
            Ok(offset) => (pointer, offset),
            Err(_) => (self.builder.ins().iadd_imm_s(pointer, distance), offset),
        }
    }

    /// The address, or the address of scratch memory if the condition does not hold.
    fn guarded(&mut self, condition: Value, pointer: Value, offset: i32) -> Value {
        let scratch = self.scratch();
        let pointer = self.builder.ins().iadd_imm_s(pointer, i64::from(offset));
        self.builder.ins().select(condition, pointer, scratch)
    }

    /// Memory for one bundle of the widest elements.
    fn scratch(&mut self) -> Value {
        let slot = match self.scratch {
            Some(slot) => slot,
            None => {
                let data = StackSlotData::new(StackSlotKind::ExplicitSlot, 128, 4);
                *self.scratch.insert(self.builder.create_sized_stack_slot(data))
            }
        };
        self.builder.ins().stack_addr(I64, slot, 0)
    }

    /// Loads only the lanes under the mask: all, none, or one at a time.
    fn load_masked(&mut self, pointer: Value, offset: i32, steps: &[i64], dtype: DType, mask: Bundle) -> Bundle {
        let (ty, lanes) = (memory_type(dtype), steps.len() as u32);
        let mask = self.vector(lanes).mask_as(mask, ty);
        let blocks: [Block; 4] = std::array::from_fn(|_| self.builder.create_block());
        let [some, whole, single, after] = blocks;
        let mut v = self.vector(lanes);
        let zeros = v.int(ty, 0);
        let results: Vec<Value> = zeros
            .parts()
            .iter()
            .map(|&part| {
                let ty = v.builder.func.dfg.value_type(part);
                v.builder.append_block_param(after, ty)
            })
            .collect();
        let any = v.any(mask);
        v.builder.ins().brif(any, some, &[], after, &arguments(None, zeros.parts()));
        v.builder.switch_to_block(some);
        let unset = v.not_mask(mask);
        let any_unset = v.any(unset);
        v.builder.ins().brif(any_unset, single, &[], whole, &[]);

        self.builder.switch_to_block(whole);
        let value = self.load_lanes(memory(), pointer, offset, steps, dtype);
        self.builder.ins().jump(after, &arguments(None, value.parts()));

        self.builder.switch_to_block(single);
        let value = self.load_each(pointer, offset, steps, dtype, |it, i| it.vector(lanes).extract(mask, i));
        self.builder.ins().jump(after, &arguments(None, value.parts()));

        self.builder.switch_to_block(after);
        Bundle::new(ty, &results)
    }

    /// Loads lane by lane; lanes whose condition does not hold are loaded from scratch memory.
    fn load_each(
        &mut self,
        pointer: Value,
        offset: i32,
        steps: &[i64],
        dtype: DType,
        mut condition: impl FnMut(&mut Self, u32) -> Value,
    ) -> Bundle {
        let (ty, size) = (memory_type(dtype), dtype.size() as i64);
        let scratch = self.scratch();
        let mut values = Vec::with_capacity(steps.len());
        for (i, step) in (0..).zip(steps) {
            let condition = condition(self, i);
            let address = self.builder.ins().iadd_imm_s(pointer, i64::from(offset) + step * size);
            let address = self.builder.ins().select(condition, address, scratch);
            values.push(self.builder.ins().load(ty, memory(), address, 0));
        }
        self.vector(steps.len() as u32).assemble(ty, &values)
    }

    pub fn store_point(&mut self, store: &Store) {
        let varies = self.nest.varies[store.value.0 as usize] || self.moves(&store.access.address);
        let lanes = if varies { self.lanes } else { 1 };
        let value = self.operand(store.value, lanes);
        self.store(&store.access, store.dtype, value, lanes);
    }

    /// Writes a value of `dtype`, which is the buffer's element type.
    pub fn store(&mut self, access: &Access, dtype: DType, value: Bundle, lanes: u32) {
        let raw = self.vector(lanes).encode_memory(dtype, value);
        let (pointer, offset) = self.address(access, dtype);
        let (steps, size) = (self.lane_offsets(&access.address, lanes), dtype.size() as i64);
        match LanePattern::of(&steps) {
            LanePattern::Forward => self.vector(lanes).store(raw, pointer, offset),
            LanePattern::Backward => {
                let (pointer, offset) = self.lane_address(pointer, offset, -i64::from(lanes - 1) * size);
                let mut v = self.vector(lanes);
                let reversed = v.reverse(raw);
                v.store(reversed, pointer, offset);
            }
            LanePattern::Rows(stride) => {
                let rows = self.vector(lanes).split_rows(raw);
                self.store_fours(rows, pointer, offset, stride * size);
            }
            LanePattern::Columns(stride) => {
                let mut v = self.vector(lanes);
                let rows = v.split_rows(raw);
                let transposed = v.transpose(rows);
                let columns = v.split_rows(transposed);
                self.store_fours(columns, pointer, offset, stride * size);
            }
            LanePattern::Scattered => {
                for (i, step) in (0..lanes).zip(steps) {
                    let value = self.vector(lanes).extract(raw, i);
                    let (pointer, offset) = self.lane_address(pointer, offset, step * size);
                    self.builder.ins().store(memory(), value, pointer, offset);
                }
            }
        }
    }

    fn store_fours(&mut self, fours: [Bundle; 4], pointer: Value, offset: i32, stride: i64) {
        for (i, four) in fours.into_iter().enumerate() {
            let (pointer, offset) = self.lane_address(pointer, offset, i as i64 * stride);
            self.vector(4).store(four, pointer, offset);
        }
    }
}
