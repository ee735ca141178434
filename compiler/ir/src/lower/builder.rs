//! Builds one kernel. Ops describe their loop nests with it; fused operands are expanded in place.

use crate::lower::work::Temporaries;
use crate::op::Op;
use crate::program::{Func, Stmt, Value};
use spmdc_abi::{LayoutDim, Scalar};
use spmdc_grammar::span::Span;
use spmdc_kernel::loops::{
    Access, Affine, BufferSlot, Combine, Elem, Extent, Inst, Kernel, LoopDim, Store, affines, operands,
};
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
use spmdc_layout::blocks::table;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{DType, Type};
use std::ops::Range;

/// The facts about the program that a kernel needs.
#[derive(Clone, Copy)]
pub struct KernelContext<'a> {
    /// The function that is lowered.
    pub func: &'a Func,
    /// The mesh of the program.
    pub mesh: &'a Mesh,
    /// For each value that is fused into its users, the statement to expand in place of a load.
    pub inlined: &'a [Option<(&'a Op, &'a Stmt)>],
    /// The types of temporary values.
    pub temporaries: &'a Temporaries,
}

impl<'a> KernelContext<'a> {
    /// The type of a value of the function or of a temporary one.
    pub fn ty(&self, value: Value) -> &'a Type {
        self.temporaries.ty(value).unwrap_or_else(|| self.func.ty(value))
    }

    /// The statement to expand in place of a load.
    fn inlined(&self, value: Value) -> Option<(&'a Op, &'a Stmt)> {
        self.inlined.get(value.0 as usize).copied().flatten()
    }

    /// The length of this device's block along a dimension, resolved at load time.
    pub fn block_len(&self, ty: &Type, dim: usize) -> Scalar {
        let layout = layout_dim(ty, dim);
        if ty.sharding.dims[dim].alignment.is_some() {
            self.of_block(ty, dim, |block| block.len())
        } else if ty.shape()[dim].is_multiple_of(self.mesh.size_of(&layout.axes)) {
            Scalar::Const((ty.shape()[dim] / self.mesh.size_of(&layout.axes)) as i64)
        } else {
            Scalar::BlockLen(layout)
        }
    }

    /// The global index of the first element of this device's block along a dimension.
    pub fn block_start(&self, ty: &Type, dim: usize) -> Scalar {
        let layout = layout_dim(ty, dim);
        if ty.sharding.dims[dim].alignment.is_some() {
            self.of_block(ty, dim, |block| block.start)
        } else if self.mesh.size_of(&layout.axes) == 1 {
            // Even for axes of one device: a number read at run time would prevent vectorization.
            Scalar::Const(0)
        } else {
            Scalar::BlockStart(layout)
        }
    }

    /// A number computed from this device's block along a dimension.
    pub fn of_block(&self, ty: &Type, dim: usize, number: impl Fn(&Range<usize>) -> usize) -> Scalar {
        let layout = &ty.sharding.dims[dim];
        let values = layout.blocks(ty.shape()[dim], self.mesh).iter().map(|block| number(block) as i64).collect();
        table(&layout.axes, values)
    }

    /// Row-major strides of a value's block, in elements.
    pub fn strides(&self, ty: &Type) -> Vec<i64> {
        let mut strides = vec![1; ty.rank()];
        let shape = ty.block_shape(self.mesh);
        for dim in (1..ty.rank()).rev() {
            strides[dim - 1] = strides[dim] * shape[dim] as i64;
        }
        strides
    }
}

fn layout_dim(ty: &Type, dim: usize) -> LayoutDim {
    LayoutDim { size: ty.shape()[dim], axes: ty.sharding.dims[dim].axes.clone() }
}

/// A kernel under construction. Methods that return an element add its instruction to the body, unless the body already has it.
pub struct KernelBuilder<'a> {
    /// The program around the kernel.
    pub context: KernelContext<'a>,
    /// The kernel so far.
    pub kernel: Kernel,
    /// The value in each buffer of the kernel.
    pub values: Vec<Value>,
    /// Elements already computed at an index: a fused value that is used twice is computed once.
    computed: Vec<(Value, Vec<Affine>, Elem)>,
    /// The statement that is being expanded.
    span: Span,
}

impl<'a> KernelBuilder<'a> {
    /// `span` is the source position of the statement that the kernel computes.
    pub fn new(context: KernelContext<'a>, span: Span) -> KernelBuilder<'a> {
        KernelBuilder { context, kernel: Kernel::default(), values: Vec::new(), computed: Vec::new(), span }
    }

    /// A loop dimension over `extent`; reduced ones must come after all others.
    pub fn dim(&mut self, extent: Scalar, max: usize, reduced: bool) -> Affine {
        let extent = if let Scalar::Const(n) = extent {
            Extent::Static(n as u64)
        } else {
            Extent::Scalar { slot: self.scalar(extent), max: max as u64 }
        };
        self.kernel.dims.push(LoopDim { extent, reduced });
        Affine::dim(self.kernel.dims.len() - 1)
    }

    /// Loop dimensions over this device's block of a type, in order.
    pub fn block_dims(&mut self, ty: &Type, reduced: bool) -> Vec<Affine> {
        let max = ty.block_shape(self.context.mesh);
        (0..ty.rank()).map(|dim| self.dim(self.context.block_len(ty, dim), max[dim], reduced)).collect()
    }

    /// A per-device number as an affine value.
    pub fn scalar_affine(&mut self, scalar: Scalar) -> Affine {
        if let Scalar::Const(n) = scalar {
            return Affine::constant(n);
        }
        Affine { scalars: vec![(self.scalar(scalar), 1)], ..Affine::default() }
    }

    /// An index into the whole dimension, from an index into this device's block.
    pub fn global_index(&mut self, ty: &Type, dim: usize, local: &Affine) -> Affine {
        let start = self.scalar_affine(self.context.block_start(ty, dim));
        local.plus(&start)
    }

    /// An index into this device's block, from an index into the whole dimension. If the dimension is split, adds to `tests`
    /// whether the device has the element.
    pub fn index_in_block(&mut self, ty: &Type, dim: usize, place: &Affine, tests: &mut Vec<Elem>) -> Affine {
        let start = self.scalar_affine(self.context.block_start(ty, dim));
        if !ty.sharding.dims[dim].axes.is_empty() {
            let end = self.scalar_affine(self.context.of_block(ty, dim, |block| block.end));
            tests.push(self.in_range(place.clone(), start.clone(), end));
        }
        place.plus(&start.times(-1))
    }

    fn scalar(&mut self, scalar: Scalar) -> usize {
        if let Some(slot) = self.kernel.scalars.iter().position(|known| *known == scalar) {
            return slot;
        }
        self.kernel.scalars.push(scalar);
        self.kernel.scalars.len() - 1
    }

    /// The result of an instruction.
    pub fn push(&mut self, inst: Inst) -> Elem {
        if let Some(known) = self.kernel.insts.iter().position(|other| *other == inst) {
            return Elem(known as u32);
        }
        self.kernel.insts.push(inst);
        Elem(self.kernel.insts.len() as u32 - 1)
    }

    /// Element of a value at an index into this device's block: a load, or the expression of a fused value.
    pub fn operand(&mut self, value: Value, index: &[Affine]) -> Elem {
        if let Some((_, _, elem)) = self.computed.iter().find(|(v, i, _)| *v == value && i == index) {
            return *elem;
        }
        let inlined = self.context.inlined(value);
        let elem = match inlined.and_then(|(op, stmt)| Some((op.rules().lowered().expression()?, stmt))) {
            Some((point, stmt)) => {
                let outer = std::mem::replace(&mut self.span, stmt.origin.span);
                let elem = point.point(self, stmt, index);
                self.span = outer;
                elem
            }
            None => self.stored(value, index),
        };
        self.computed.push((value, index.to_vec(), elem));
        elem
    }

    /// Element of a value at an index into this device's block, from memory: a fused value is stored before the kernel.
    pub fn stored(&mut self, value: Value, index: &[Affine]) -> Elem {
        let access = self.access(value, index, false);
        let dtype = self.context.ty(value).dtype();
        self.push(Inst::Load { access, dtype })
    }

    /// Whether the kernel so far reads a value at this index only; None if it does not read it from memory.
    pub fn reads_only_at(&self, value: Value, index: &[Affine]) -> Option<bool> {
        let slot = self.values.iter().position(|known| *known == value)?;
        // The index of a dimension of one element is 0.
        let moving = |mut affine: Affine| {
            affine.terms.retain(|&(dim, _)| self.kernel.dims[dim].extent != Extent::Static(1));
            affine
        };
        let strides = self.context.strides(self.context.ty(value));
        let address = moving(address_of(index, &strides));
        let is_elsewhere = |inst: &Inst| match inst {
            Inst::Load { access, .. } => access.buffer == slot && moving(access.address.clone()) != address,
            Inst::LoopInvariant { buffer, .. } => *buffer == slot,
            Inst::Const { .. }
            | Inst::Index { .. }
            | Inst::CheckIndex { .. }
            | Inst::Limit { .. }
            | Inst::Unary { .. }
            | Inst::Binary { .. }
            | Inst::Compare { .. }
            | Inst::Select { .. }
            | Inst::Fma { .. }
            | Inst::Cast { .. }
            | Inst::Bitcast { .. }
            | Inst::RandomBits { .. }
            | Inst::Carried { .. }
            | Inst::Repeat { .. }
            | Inst::Last { .. }
            | Inst::InRange { .. } => false,
        };
        Some(!self.kernel.insts.iter().any(is_elsewhere))
    }

    /// Reads another value, of the same type, wherever the kernel so far reads `value` from memory.
    pub fn read_instead(&mut self, value: Value, other: Value) {
        debug_assert!(!self.values.contains(&other), "a kernel has one slot for each value");
        self.values.iter_mut().filter(|known| **known == value).for_each(|known| *known = other);
    }

    /// As [`KernelBuilder::operand`] if all tests hold; otherwise the identity element.
    pub fn operand_if(&mut self, value: Value, index: &[Affine], tests: &[Elem]) -> Elem {
        let dtype = self.context.ty(value).dtype();
        let elem = self.operand(value, index);
        tests.iter().fold(elem, |elem, &test| {
            let nothing = self.constant(dtype, number::nothing_added(dtype));
            self.select(dtype, test, elem, nothing)
        })
    }

    /// As [`KernelBuilder::operand_if`], for dynamic indices of elements of a dimension of a size. They are computed even if the operand has
    /// the same element everywhere, so that their checks are made.
    pub fn operand_at(&mut self, value: Value, index: &[Affine], dynamic: &[(Affine, usize)], tests: &[Elem]) -> Elem {
        let elem = self.operand(value, index);
        let mut tests = tests.to_vec();
        for (place, size) in dynamic {
            if !place.dynamic.iter().any(|&(at, _)| self.needs(elem, at)) {
                let end = Affine::constant(*size as i64);
                tests.push(self.in_range(place.clone(), Affine::default(), end));
            }
        }
        self.operand_if(value, index, &tests)
    }

    /// Whether an element is computed from another one.
    fn needs(&self, elem: Elem, other: Elem) -> bool {
        let mut seen = vec![false; self.kernel.insts.len()];
        let mut stack = vec![elem];
        while let Some(elem) = stack.pop() {
            if elem == other {
                return true;
            }
            if std::mem::replace(&mut seen[elem.0 as usize], true) {
                continue;
            }
            let inst = &self.kernel.insts[elem.0 as usize];
            stack.extend(operands(inst));
            stack.extend(affines(inst).flat_map(|affine| &affine.dynamic).map(|&(elem, _)| elem));
        }
        false
    }

    /// A dynamic index: the i64 scalar in `value`'s buffer, read once. It has been checked; in case a dump omits the check, it is
    /// limited to the last of `places`.
    pub fn dynamic_index(&mut self, value: Value, places: usize) -> Affine {
        let buffer = self.buffer(value, false);
        let elem = self.push(Inst::LoopInvariant { buffer, last: places.saturating_sub(1) as u64 });
        Affine { dynamic: vec![(elem, 1)], ..Affine::default() }
    }

    /// An i64 computed in the kernel, to be used as an index. It has been checked; in case a dump omits the check, it is limited to
    /// the last of `places`.
    pub fn place(&mut self, index: Elem, places: usize) -> Affine {
        let elem = self.push(Inst::Limit { arg: index, last: places.saturating_sub(1) as u64 });
        Affine { dynamic: vec![(elem, 1)], ..Affine::default() }
    }

    /// An index of type `dtype` as an i64 counted from the start of a dimension. An index out of bounds stops the program, with the
    /// source position of the statement.
    pub fn check_index(&mut self, dtype: DType, arg: Elem, extent: usize) -> Elem {
        self.push(Inst::CheckIndex { dtype, arg, extent: extent as i64, site: Some(self.span) })
    }

    /// A constant, by its bits.
    pub fn constant(&mut self, dtype: DType, bits: u64) -> Elem {
        self.push(Inst::Const { dtype, bits })
    }

    /// An index as an element of type `dtype`.
    pub fn index(&mut self, affine: Affine, dtype: DType) -> Elem {
        self.push(Inst::Index { affine, dtype })
    }

    /// The random bits of a counter under a key, as an unsigned integer or a key.
    pub fn random_bits(&mut self, dtype: DType, key: Elem, at: Affine) -> Elem {
        self.push(Inst::RandomBits { dtype, key, at })
    }

    /// `op(arg)` for an operand of type `dtype`.
    pub fn unary(&mut self, op: UnaryOp, dtype: DType, arg: Elem) -> Elem {
        self.push(Inst::Unary { op, dtype, arg })
    }

    /// `lhs op rhs` for operands of type `dtype`. An integer division records the source position of the statement, for its trap.
    pub fn binary(&mut self, op: BinaryOp, dtype: DType, lhs: Elem, rhs: Elem) -> Elem {
        let site = matches!(op, BinaryOp::FloorDiv | BinaryOp::Rem) && dtype.is_integer();
        self.push(Inst::Binary { op, dtype, lhs, rhs, site: site.then_some(self.span) })
    }

    /// `lhs op rhs` for operands of type `dtype`, as a bool.
    pub fn compare(&mut self, op: CompareOp, dtype: DType, lhs: Elem, rhs: Elem) -> Elem {
        self.push(Inst::Compare { op, dtype, lhs, rhs })
    }

    /// `if cond { then } else { otherwise }`, of type `dtype`.
    pub fn select(&mut self, dtype: DType, cond: Elem, then: Elem, otherwise: Elem) -> Elem {
        self.push(Inst::Select { dtype, cond, then, otherwise })
    }

    /// `x * y + z` for operands of a float type, rounded once.
    pub fn fma(&mut self, dtype: DType, x: Elem, y: Elem, z: Elem) -> Elem {
        self.push(Inst::Fma { dtype, x, y, z })
    }

    /// The operand converted from one type to another; the operand itself if they are the same.
    pub fn cast(&mut self, from: DType, to: DType, arg: Elem) -> Elem {
        if from == to { arg } else { self.push(Inst::Cast { from, to, arg }) }
    }

    /// The bits of the operand as another number type of the same size.
    pub fn bitcast(&mut self, from: DType, to: DType, arg: Elem) -> Elem {
        debug_assert_eq!(from.size(), to.size(), "the bits of {} are an element of {}", from.name(), to.name());
        if from == to {
            return arg;
        }
        self.moved(arg, to).unwrap_or_else(|| self.push(Inst::Bitcast { from, to, arg }))
    }

    /// The bits of an element that the kernel only moves, as an element of another type; None for an element that it computes. Registers
    /// hold narrow floats as f32, so moved bits need not be converted, and the processor's conversions do not make a NaN quiet.
    fn moved(&mut self, elem: Elem, to: DType) -> Option<Elem> {
        let inst = match &self.kernel.insts[elem.0 as usize] {
            Inst::Load { access, .. } => Inst::Load { access: access.clone(), dtype: to },
            Inst::Const { bits, .. } => Inst::Const { dtype: to, bits: *bits },
            Inst::Bitcast { from, arg, .. } => {
                let (from, arg) = (*from, *arg);
                return Some(self.bitcast(from, to, arg));
            }
            Inst::Select { cond, then, otherwise, .. } => {
                let (cond, then, otherwise) = (*cond, *then, *otherwise);
                let (then, otherwise) = (self.moved(then, to)?, self.moved(otherwise, to)?);
                Inst::Select { dtype: to, cond, then, otherwise }
            }
            Inst::Index { .. }
            | Inst::LoopInvariant { .. }
            | Inst::CheckIndex { .. }
            | Inst::Limit { .. }
            | Inst::Unary { .. }
            | Inst::Binary { .. }
            | Inst::Compare { .. }
            | Inst::Fma { .. }
            | Inst::Cast { .. }
            | Inst::RandomBits { .. }
            | Inst::Carried { .. }
            | Inst::Repeat { .. }
            | Inst::Last { .. }
            | Inst::InRange { .. } => return None,
        };
        Some(self.push(inst))
    }

    /// A value that a loop of the body carries from trip to trip, from its first value on.
    pub fn carried(&mut self, dtype: DType, init: Elem) -> Elem {
        let number = self.kernel.insts.iter().filter(|inst| matches!(inst, Inst::Carried { .. })).count() as u32;
        self.push(Inst::Carried { number, dtype, init })
    }

    /// A loop of the body: its carried values, each with the value of the next trip, and the number of trips in i64.
    pub fn repeat(&mut self, trips: Elem, carried: Vec<(Elem, Elem)>) -> Vec<Elem> {
        let dtypes: Vec<DType> = carried.iter().map(|&(value, _)| self.kernel.carried_dtype(value)).collect();
        let repeat = self.push(Inst::Repeat { trips, carried });
        let last = |(place, dtype)| self.push(Inst::Last { dtype, repeat, place });
        dtypes.into_iter().enumerate().map(last).collect()
    }

    /// Says which element a value has at an index into this device's block, for all that is expanded from now on.
    pub fn define(&mut self, value: Value, index: &[Affine], elem: Elem) {
        self.computed.push((value, index.to_vec(), elem));
    }

    /// `low <= affine < high`, as a bool.
    pub fn in_range(&mut self, affine: Affine, low: Affine, high: Affine) -> Elem {
        self.push(Inst::InRange { affine, low, high })
    }

    /// Writes an element of `value`'s block at every point.
    pub fn store(&mut self, value: Value, index: &[Affine], elem: Elem) {
        let access = self.access(value, index, true);
        let (dtype, elem) = self.in_memory(self.context.ty(value).dtype(), elem);
        self.kernel.stores.push(Store { access, dtype, value: elem, combine: None });
    }

    /// The type and the value with which an element of a narrow float type is stored: the bits, if the kernel has them.
    fn in_memory(&mut self, dtype: DType, elem: Elem) -> (DType, Elem) {
        if !dtype.is_narrow() {
            return (dtype, elem);
        }
        let bits = if dtype.size() == 1 { DType::U8 } else { DType::U16 };
        self.moved(elem, bits).map_or((dtype, elem), |moved| (bits, moved))
    }

    /// Combines `elem` (of type `dtype`) over the reduced dimensions into an element of `value`'s block.
    pub fn store_combined(&mut self, value: Value, index: &[Affine], dtype: DType, elem: Elem, combine: Combine) {
        let access = self.access(value, index, true);
        self.kernel.stores.push(Store { access, dtype, value: elem, combine: Some(combine) });
    }

    fn access(&mut self, value: Value, index: &[Affine], written: bool) -> Access {
        let strides = self.context.strides(self.context.ty(value));
        Access { buffer: self.buffer(value, written), address: address_of(index, &strides) }
    }

    fn buffer(&mut self, value: Value, written: bool) -> usize {
        if let Some(slot) = self.values.iter().position(|known| *known == value) {
            self.kernel.buffers[slot].written |= written;
            return slot;
        }
        self.values.push(value);
        let ty = self.context.ty(value);
        let len = ty.block_shape(self.context.mesh).iter().product();
        self.kernel.buffers.push(BufferSlot { dtype: ty.dtype(), written, len, streamed: false });
        self.values.len() - 1
    }
}

/// The address of the element at an index in a block with these strides.
fn address_of(index: &[Affine], strides: &[i64]) -> Affine {
    index.iter().zip(strides).fold(Affine::default(), |sum, (i, &stride)| sum.plus(&i.times(stride)))
}
