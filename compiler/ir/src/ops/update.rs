//! Assignment to elements: `u[1:-1, 0] = v` makes a new `u` with a region replaced, and `u[1:-1, 0] += v` one with a region added to.
//!
//! Factors: the dimensions of the array pass, as every device writes the part of the region in its block. The new values are a part
//! of each dimension that the region cuts, and are needed where that part is; a single value for all elements is replicated anyway.

use super::elementwise::Unary;
use super::index::{self, IndexItem, IndexPlan, IndexedDim, Taken, are_checked, beginnings, checked};
use super::promote::{self, Operand};
use super::reshape::reshape;
use super::slice::SliceRange;
use super::{Call, Mismatch, put, shape};
use crate::array::{Array, Trap, indices};
use crate::layout::blocks::table;
use crate::layout::factors::{FactorKind, FactorPart, Factors};
use crate::layout::mesh::Mesh;
use crate::layout::types::{ArrayType, DType, Type};
use crate::lower::builder::KernelBuilder;
use crate::lower::work::Lowering;
use crate::ops::batching::{Batch, Batched, BatchedOperand, Batching, shifted};
use crate::ops::call::args::Args;
use crate::ops::call::build::CallBuilder;
use crate::ops::call::signature::{Signature, signatures};
use crate::ops::call::term::Term;
use crate::ops::derivative::{Derivative, LinearMap, Linearity, Terms};
use crate::ops::dynamic_slice::{DynamicSlice, indices_along};
use crate::ops::gather::Gather;
use crate::ops::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, Properties, Reads,
    Rules, Semantics, Typing,
};
use crate::ops::scatter::{Onto, Scatter};
use crate::ops::slice::slice;
use crate::ops::transpose::transpose;
use crate::program::{Stmt, Value};
use spmdc_abi::{ReduceOp, Scalar};
use spmdc_grammar::ast::InfixOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_kernel::loops::Affine;
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, UnaryOp};

/// The indices of a dimension that are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Places {
    /// Static indices; `step` is positive.
    Range(SliceRange),
    /// This many indices from the one that an operand gives.
    Dynamic(usize),
}

/// `update(x, v, i, at=((0, 1, 4), ()))`: operands are the array, the new values (which broadcast to the region), and a checked
/// index for each dynamic dimension, where `()` replaces one element and `(4,)` four. With `add=true` the new values are added to the
/// old elements, which no device needs of another.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// For each dimension of the array, the indices that are replaced.
    pub at: Vec<Places>,
    /// Whether the new values are added to the old elements.
    pub adds: bool,
}

impl Update {
    /// The replacement of a region.
    pub fn replacing(at: Vec<Places>) -> Update {
        Update { at, adds: false }
    }

    /// The shape of the region.
    pub fn region(&self) -> Vec<usize> {
        let len = |places: &Places| match places {
            Places::Range(range) => range.len,
            Places::Dynamic(len) => *len,
        };
        self.at.iter().map(len).collect()
    }
}

impl Semantics for Update {
    fn name(&self) -> &'static str {
        "update"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let (x, v) = (args[0], args[1]);
        let mut rule = Factors::new();
        let dims: Vec<usize> = x.shape.iter().map(|&size| rule.add(size, FactorKind::Pass)).collect();
        let skipped = x.rank() - v.rank();
        let mut new = Vec::new();
        for (own, &size) in v.shape.iter().enumerate() {
            let dim = skipped + own;
            new.push(vec![match self.at[dim] {
                Places::Range(range) if range.len == size && size > 0 => {
                    if range != SliceRange::all(x.shape[dim]) {
                        rule.parts.push(FactorPart {
                            operand: 1,
                            dim: own,
                            start: range.start,
                            step: range.step as usize,
                        });
                    }
                    dims[dim]
                }
                Places::Range(_) | Places::Dynamic(_) => rule.add(size, FactorKind::Whole),
            }]);
        }
        let all: Vec<Vec<usize>> = dims.iter().map(|&factor| vec![factor]).collect();
        rule.operands = vec![all.clone(), new];
        rule.operands.resize(args.len(), Vec::new());
        rule.results.push(all);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let mut result = args[0].clone();
        let strides = shape::strides(result.shape());
        for index in indices(&self.region()) {
            let mut dynamic = args[2..].iter();
            let places = self.at.iter().zip(&index).zip(args[0].shape()).map(|((places, &i), &size)| match places {
                Places::Range(range) => range.at(i),
                Places::Dynamic(len) => dynamic.next().map_or(0, |place| checked(place, beginnings(size, *len))) + i,
            });
            let address: usize = places.zip(&strides).map(|(place, stride)| place * stride).sum();
            let (new, old) = (args[1].get_broadcast(&index), result.bits[address]);
            result.bits[address] = match self.adds {
                false => new,
                true => {
                    number::eval_binary(BinaryOp::Add, args[0].dtype(), old, new).expect("typing knows the addition")
                }
            };
        }
        Ok(vec![result])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let places = self.at.iter().map(|places| match places {
            Places::Range(range) => format!("({}, {}, {})", range.start, range.step, range.len),
            Places::Dynamic(1) => "()".to_string(),
            Places::Dynamic(len) => format!("({len},)"),
        });
        let places: Vec<String> = places.collect();
        let add = if self.adds { ", add=true" } else { "" };
        format!("update({}, at={}{add})", args.join(", "), shape::tuple(&places))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        if self.adds { self.region().iter().map(|&len| len as u64).product() } else { 0 }
    }
}

impl Infer for Update {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let (x, v) = (args[0], args[1]);
        are_checked(&args[2..])?;
        let dynamic = self.at.iter().filter(|places| matches!(places, Places::Dynamic(_))).count();
        let inside = |places: &Places, size: usize| match places {
            Places::Range(range) => (1..=size.max(1) as i64).contains(&range.step) && range.lies_in(size),
            Places::Dynamic(len) => *len <= size,
        };
        let fits = self.at.len() == x.rank() && dynamic == args.len() - 2;
        if !fits || !self.at.iter().zip(&x.shape).all(|(places, &size)| inside(places, size)) {
            return Err(Mismatch::new(Code::E0205, format!("the places of an update do not fit {x}")));
        }
        if x.dtype != v.dtype {
            let message = format!("elements of {} cannot be replaced by {}", x.dtype.name(), v.dtype.name());
            return Err(Mismatch::new(Code::E0203, message));
        }
        if self.adds && !(x.dtype.is_float() || x.dtype.is_integer()) {
            return Err(Mismatch::new(Code::E0215, format!("addition is not defined for {}", x.dtype.name())));
        }
        let region = self.region();
        if shape::broadcast(&[&region, &v.shape]).ok().as_ref() != Some(&region) {
            let message = format!("{v} does not broadcast to the {} elements assigned to", shape::display(&region));
            return Err(Mismatch::new(Code::E0204, message));
        }
        Ok(vec![x.clone()])
    }
}

impl Rules for Update {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::Places(&[0, 1]),
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: true,
        }
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl Batched for Update {
    /// With a start for each element, a scatter at the indices of each.
    fn batched(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let array = batch.mapped(build, operands[0])?;
        let rank = self.at.len();
        if !operands[2..].iter().any(|start| start.is_mapped()) {
            let at = [&[Places::Range(SliceRange::all(batch.size))], self.at.as_slice()].concat();
            let mut args = vec![array, batch.aligned(build, operands[1], rank)?];
            args.extend(operands[2..].iter().map(|start| start.value()));
            return build.emit(Update { at, adds: self.adds }, &args);
        }
        let shape = build.ty(stmt.args[0]).shape().to_vec();
        let is_whole = |dim: &usize| self.at[*dim] == Places::Range(SliceRange::all(shape[*dim]));
        let (kept, dims): (Vec<usize>, Vec<usize>) = (0..rank).partition(is_whole);
        let mut starts = operands[2..].iter();
        let mut places = Vec::new();
        for (at, &dim) in dims.iter().enumerate() {
            let (range, start) = match self.at[dim] {
                Places::Range(range) => (range, None),
                Places::Dynamic(len) => {
                    let start = *starts.next().expect("each dynamic dimension has an index");
                    (SliceRange::all(len), Some(batch.aligned(build, start, dims.len())?))
                }
            };
            places.push(indices_along(build, (at, dims.len()), range, start)?);
        }
        // The dimensions of the region in the order of the scatter: those of the index arrays first.
        let mut order: Vec<usize> = dims.iter().chain(&kept).copied().collect();
        let value = match operands[1] {
            BatchedOperand::Mapped(_) => {
                order = std::iter::once(0).chain(shifted(&order)).collect();
                batch.aligned(build, operands[1], rank)?
            }
            BatchedOperand::Same(value) => {
                let mut shape = build.ty(value).shape().to_vec();
                shape.splice(0..0, vec![1; rank - shape.len()]);
                reshape(build, value, &shape)?
            }
        };
        let value = transpose(build, value, &order)?;
        let places_of = Gather::new(dims, Vec::new(), 0).in_batch(batch, true, true);
        let combine = self.adds.then_some(ReduceOp::Sum);
        let scatter = Scatter { places: places_of, combine, onto: Onto::Operand, out: None };
        build.emit(scatter, &[vec![array, value], places].concat())
    }
}

impl LinearMap for Update {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0, 1])
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        at: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let starts = &stmt.args[2..];
        if at == 0 && self.adds {
            return Ok(cotangent);
        }
        if at == 0 {
            let zero = Terms(build).number(cotangent, 0.0)?;
            let args: Vec<Value> = [cotangent, zero].into_iter().chain(starts.iter().copied()).collect();
            return build.emit1(self.clone(), &args);
        }
        let dynamic = |(dim, places): (usize, &Places)| match places {
            Places::Dynamic(len) => Some((dim, *len)),
            Places::Range(_) => None,
        };
        let dims: Vec<(usize, usize)> = self.at.iter().enumerate().filter_map(dynamic).collect();
        let mut part = cotangent;
        if !dims.is_empty() {
            let args: Vec<Value> = std::iter::once(part).chain(starts.iter().copied()).collect();
            part = build.emit1(DynamicSlice { dims }, &args)?;
        }
        let range = |places: &Places| match places {
            Places::Dynamic(len) => SliceRange::all(*len),
            Places::Range(range) => *range,
        };
        let ranges: Vec<SliceRange> = self.at.iter().map(range).collect();
        slice(build, part, &ranges)
    }
}

impl NestLowering for Update {
    /// A copy, which vanishes if the old array is not needed any more, and a kernel over a device's part of the region. Along a
    /// split dimension with a dynamic index each device tests all elements of its block. New values that are computed from other elements of
    /// a large array, most of which they replace, go into an array of their own, as do the elements around them.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let (x, result) = (stmt.args[0], stmt.results[0]);
        if self.region().contains(&0) {
            lowering.copy(x, result);
            return Ok(());
        }
        let (mut kernel, needs_old) = self.kernel(lowering, stmt, NewValues::Computed);
        let ty = lowering.ty(x);
        let is_large = ty.block_bytes(lowering.mesh) > lowering.mesh.machine.private_bytes;
        if needs_old
            && is_large
            && let Some(around) = self.around(ty.shape())
        {
            lowering.run(kernel);
            around.iter().for_each(|part| copy_part(lowering, stmt, part));
            return Ok(());
        }
        lowering.copy(x, result);
        if needs_old && lowering.is_last_use {
            kernel = self.kernel(lowering, stmt, NewValues::Stored).0;
        }
        lowering.run(kernel);
        Ok(())
    }

    fn reads(&self, operand: usize, args: &[&ArrayType]) -> Reads {
        match operand {
            1 if args[1].shape == self.region() => Reads::Once,
            1 => Reads::Often,
            _ => Reads::Buffer,
        }
    }
}

/// Where a kernel has the new values from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NewValues {
    /// It computes them if they are fused.
    Computed,
    /// They are computed into memory before.
    Stored,
}

impl Update {
    /// The parts of an array around the region, each by a range for each dimension, if the region is a box of at least half of the array.
    fn around(&self, shape: &[usize]) -> Option<Vec<Vec<SliceRange>>> {
        let range = |places: &Places| match places {
            Places::Range(range) if range.step == 1 && !self.adds => Some(*range),
            Places::Range(_) | Places::Dynamic(_) => None,
        };
        let region: Vec<SliceRange> = self.at.iter().map(range).collect::<Option<_>>()?;
        let len = |ranges: &[SliceRange]| ranges.iter().map(|range| range.len as u64).product::<u64>();
        let all: Vec<SliceRange> = shape.iter().map(|&size| SliceRange::all(size)).collect();
        if 2 * len(&region) < len(&all) {
            return None;
        }
        let mut parts = Vec::new();
        for dim in 0..shape.len() {
            let SliceRange { start, len, .. } = region[dim];
            for (start, len) in [(0, start), (start + len, shape[dim] - start - len)] {
                let own = SliceRange { start, len, step: 1 };
                let part = [&region[..dim], &[own], &all[dim + 1..]].concat();
                parts.extend((len > 0).then_some(part));
            }
        }
        Some(parts)
    }

    /// The kernel that stores the new values, and whether it needs the old array for them, in memory of its own.
    fn kernel<'a>(&self, lowering: &Lowering<'a>, stmt: &Stmt, values: NewValues) -> (KernelBuilder<'a>, bool) {
        let (x, v, result) = (stmt.args[0], stmt.args[1], stmt.results[0]);
        let mut kernel = lowering.kernel();
        let (ty, new) = (kernel.context.ty(result), kernel.context.ty(v));
        let skipped = ty.rank() - new.rank();
        let mut dynamic = stmt.args[2..].iter();
        let (mut to, mut from) = (Vec::new(), Vec::new());
        // Conditions under which an element is replaced, for dynamic indices of split dimensions.
        let mut tests = Vec::new();
        for (dim, places) in self.at.iter().enumerate() {
            // The number of the element among the elements of this device, and its index in the device's block.
            let (number, place) = match places {
                Places::Dynamic(len) => {
                    let &at = dynamic.next().expect("each dynamic place has its operand");
                    let place = kernel.dynamic_index(at, beginnings(ty.shape()[dim], *len));
                    if ty.sharding.dims[dim].axes.is_empty() {
                        let number = kernel.dim(Scalar::Const(*len as i64), *len, false);
                        let place = place.plus(&number);
                        (number, place)
                    } else {
                        let (own, max) = (kernel.context.block_len(ty, dim), ty.block_shape(kernel.context.mesh)[dim]);
                        let index = kernel.dim(own, max, false);
                        let whole = kernel.global_index(ty, dim, &index);
                        tests.push(kernel.in_range(whole.clone(), place.clone(), place.offset(*len as i64)));
                        (whole.plus(&place.times(-1)), index)
                    }
                }
                Places::Range(range) => own_places(&mut kernel, ty, dim, range),
            };
            if let Some(own) = dim.checked_sub(skipped) {
                from.push(if new.shape()[own] == 1 { Affine::default() } else { number });
            }
            to.push(place);
        }
        let mut elem = match values {
            NewValues::Computed => kernel.operand(v, &from),
            NewValues::Stored => kernel.stored(v, &from),
        };
        // The new array begins as the old one, so `x[i] += 1` has its element there, and the old array can become the new one.
        let needs_old = match kernel.reads_only_at(x, &to) {
            None => false,
            Some(true) => {
                kernel.read_instead(x, result);
                false
            }
            Some(false) => true,
        };
        if self.adds {
            let old = kernel.operand(result, &to);
            elem = kernel.binary(BinaryOp::Add, ty.dtype(), old, elem);
        }
        for test in tests {
            let old = kernel.operand(result, &to);
            elem = kernel.select(ty.dtype(), test, elem, old);
        }
        kernel.store(result, &to, elem);
        (kernel, needs_old)
    }
}

/// Copies the elements in these ranges from the old array to the new one.
fn copy_part(lowering: &mut Lowering<'_>, stmt: &Stmt, part: &[SliceRange]) {
    let (x, result) = (stmt.args[0], stmt.results[0]);
    let mut kernel = lowering.kernel();
    let ty = kernel.context.ty(result);
    let places = part.iter().enumerate().map(|(dim, range)| own_places(&mut kernel, ty, dim, range).1);
    let places: Vec<Affine> = places.collect();
    let elem = kernel.operand(x, &places);
    kernel.store(result, &places, elem);
    lowering.run(kernel);
}

/// A loop over the indices of a range in this device's block: the number among these, and the index in the block.
fn own_places(kernel: &mut KernelBuilder<'_>, ty: &Type, dim: usize, range: &SliceRange) -> (Affine, Affine) {
    let layout = &ty.sharding.dims[dim];
    let blocks = layout.blocks(ty.shape()[dim], kernel.context.mesh);
    // The number of indices of the range before a bound.
    let before = |bound: usize| bound.saturating_sub(range.start).div_ceil(range.step as usize).min(range.len);
    let lens: Vec<i64> = blocks.iter().map(|block| (before(block.end) - before(block.start)) as i64).collect();
    let first = blocks.iter().map(|block| range.at(before(block.start)) as i64 - block.start as i64).collect();
    let max = lens.iter().copied().max().unwrap_or(0) as usize;
    let number = kernel.dim(table(&layout.axes, lens), max, false);
    let first = kernel.scalar_affine(table(&layout.axes, first));
    let place = number.times(range.step).plus(&first);
    (number, place)
}

/// `x[items] = new`: the array with the elements replaced.
pub fn set(
    build: &mut CallBuilder,
    value: Value,
    items: &[IndexItem],
    new: Operand<'_>,
    span: Span,
) -> Result<Value, Diagnostic> {
    let shape = build.ty(value).shape().to_vec();
    let plan = index::plan(build, &shape, items, span)?;
    if plan.has_arrays() {
        return put::set(build, value, &plan, new);
    }
    assign(build, value, &plan, new, false)
}

/// `x[items] op= new` for `+=` and `-=` of numbers that the type of the array holds: with the new values added to the elements, of which no device
/// needs those of another. None for all others.
pub fn add(
    build: &mut CallBuilder,
    value: Value,
    items: &[IndexItem],
    op: InfixOp,
    new: Operand<'_>,
    span: Span,
) -> Result<Option<Value>, Diagnostic> {
    let dtype = build.ty(value).dtype();
    let is_own = if let Term::Array(new) = new.0 {
        let given = build.ty(*new).dtype();
        given == dtype || promote::join(given, dtype) == Some(dtype)
    } else {
        matches!(new.0, Term::Int(_)) || matches!(new.0, Term::Float(_)) && dtype.is_float()
    };
    let is_addition = matches!(op, InfixOp::Add | InfixOp::Sub) && (dtype.is_float() || dtype.is_integer());
    if !is_own || !is_addition || items.iter().any(|item| index::is_array(build, item)) {
        return Ok(None);
    }
    let shape = build.ty(value).shape().to_vec();
    let plan = index::plan(build, &shape, items, span)?;
    let mut addend = assigned(build, dtype, new)?;
    let (target, from) = (plan.result_shape(), build.ty(addend).shape().to_vec());
    // A longer sum does not fit, and neither does a sum that is broadcast.
    if from.len() > target.len() || shape::broadcast(&[&from, &target]).ok().as_ref() != Some(&target) {
        return Ok(None);
    }
    if op == InfixOp::Sub {
        addend = build.emit1(Unary(UnaryOp::Neg), &[addend])?;
    }
    assign(build, value, &plan, (&Term::Array(addend), new.1), true).map(Some)
}

/// Assigns to the elements that the plan takes without index arrays.
fn assign(
    build: &mut CallBuilder,
    value: Value,
    plan: &IndexPlan,
    new: Operand<'_>,
    adds: bool,
) -> Result<Value, Diagnostic> {
    let ty = build.ty(value).array.clone();
    let mut new_value = assigned(build, ty.dtype, new)?;
    let target = plan.result_shape();
    let from = build.ty(new_value).shape().to_vec();
    let fits = from.len() <= target.len() && shape::broadcast(&[&from, &target]).ok().as_ref() == Some(&target);
    if !fits {
        let (from, to) = (shape::display(&from), shape::display(&target));
        let message = format!("values of shape {from} do not broadcast to the {to} elements assigned to");
        return Err(Diagnostic::error(Code::E0204, new.1, message));
    }
    // The new values by the dimensions of the array, from the last one back: new dimensions vanish, single elements have size 1.
    let mut sizes = Vec::new();
    let mut slots = plan.result.iter().rev().zip(from.iter().rev().map(Some).chain(std::iter::repeat(None)));
    for (dim, taken) in plan.taken.iter().enumerate().rev() {
        if matches!(taken, Taken::Fixed(_) | Taken::Dynamic(_)) {
            sizes.push(Some(1));
            continue;
        }
        let slot = slots.find(|(slot, _)| **slot == IndexedDim::Dim(dim));
        sizes.push(slot.and_then(|(_, size)| size.copied()));
    }
    sizes.reverse();
    // Leading dimensions that the new values lack are broadcast.
    let first = sizes.iter().position(|size| matches!(size, Some(size) if *size != 1)).unwrap_or(sizes.len());
    let sizes: Vec<usize> = sizes[first..].iter().map(|size| size.unwrap_or(1)).collect();
    // Backward ranges become forward ranges with reversed values.
    let mut at = Vec::new();
    let mut reversed = vec![false; ty.rank()];
    let mut args = vec![value];
    for (dim, taken) in plan.taken.iter().enumerate() {
        at.push(match taken {
            Taken::Fixed(range) => Places::Range(*range),
            Taken::Range(range) if range.step < 0 => {
                reversed[dim] = true;
                let start = range.at(range.len - 1);
                Places::Range(SliceRange { start, step: -range.step, len: range.len })
            }
            Taken::Range(range) => Places::Range(*range),
            Taken::Dynamic(place) => {
                args.push(*place);
                Places::Dynamic(1)
            }
            Taken::Window(place, len) => {
                args.push(*place);
                Places::Dynamic(*len)
            }
            Taken::Places(_) => continue,
        });
    }
    new_value = reshape(build, new_value, &sizes)?;
    let skipped = ty.rank() - sizes.len();
    let turned: Vec<SliceRange> = sizes
        .iter()
        .enumerate()
        .map(|(dim, &size)| match reversed[skipped + dim] && size > 1 {
            true => SliceRange { start: size - 1, step: -1, len: size },
            false => SliceRange::all(size),
        })
        .collect();
    new_value = super::slice::slice(build, new_value, &turned)?;
    args.insert(1, new_value);
    build.emit1(Update { at, adds }, &args)
}

/// New values in the type of the array: numbers take it, and arrays are converted if only precision is lost.
pub(super) fn assigned(build: &mut CallBuilder, dtype: DType, (term, span): Operand<'_>) -> Result<Value, Diagnostic> {
    let value = build.materialize(term, Some(dtype), span)?;
    let given = build.ty(value).dtype();
    if given == dtype || promote::join(given, dtype) == Some(dtype) || (given.is_float() && dtype.is_float()) {
        return promote::cast(build, value, dtype);
    }
    let message = format!("elements of type {} cannot be assigned values of type {}", dtype.name(), given.name());
    Err(Diagnostic::error(Code::E0203, span, message).help(format!("convert them first, as in {}(v)", dtype.name())))
}

impl Call for Update {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// An array with a region replaced.
        update(
            x: Array, v: Array, [rest] places: Array, [named] at: Of("places") = None,
            [named] add: Bool = false,
        )
        in_dumps "" "write x[i] = v, for an `x` that is `let mut`";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let at = args.take("at");
        let adds = args.optional_bool("add")?.unwrap_or(false);
        let malformed = || {
            let message = "`update` needs `at=`, for each dimension (start, step, length), (length,) or ()";
            Diagnostic::error(Code::E0210, args.span, message)
        };
        let Some(Term::Tuple(dims)) = at.map(|arg| arg.term) else {
            return Err(malformed());
        };
        let places = |term: &Term| {
            let Term::Tuple(parts) = term else { return Err(malformed()) };
            match parts.as_slice() {
                [] => Ok(Places::Dynamic(1)),
                [Term::Int(len)] => usize::try_from(*len).map(Places::Dynamic).map_err(|_| malformed()),
                [Term::Int(start), Term::Int(step), Term::Int(len)] => {
                    let unsigned = |number: &i128| usize::try_from(*number).map_err(|_| malformed());
                    let step = i64::try_from(*step).map_err(|_| malformed())?;
                    Ok(Places::Range(SliceRange { start: unsigned(start)?, step, len: unsigned(len)? }))
                }
                _ => Err(malformed()),
            }
        };
        let at = dims.iter().map(places).collect::<Result<Vec<Places>, Diagnostic>>()?;
        let value = args.array(build, "x")?;
        let dtype = build.ty(value).dtype();
        let mut operands = vec![value, args.array_like(build, "v", dtype)?];
        for arg in args.rest("places") {
            operands.push(build.materialize(&arg.term, Some(DType::I64), arg.span)?);
        }
        Ok(Term::Array(build.emit1(Update { at, adds }, &operands)?))
    }
}
