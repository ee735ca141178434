//! Assignment to elements: `u[1:-1, 0] = v` makes a new `u` with a region replaced, and `u[1:-1, 0] += v` one with a region added to.
//!
//! Factors: the dimensions of the array pass, as every device writes the part of the region in its block. The new values are a part
//! of each dimension that the region cuts, and are needed where that part is; a single value for all elements is replicated anyway.

use crate::arithmetic::Arithmetic;
use crate::batching::BatchForms;
use crate::dynamic_slice::{DynamicSlice, indices_along};
use crate::gather::Gather;
use crate::region::{
    Places, RegionWrite, check_region, parse_places, print_places, region_factors, region_replaced, region_shape,
};
use crate::reshape::reshape;
use crate::scatter::{Onto, Scatter};
use crate::slice::{SliceRange, slice};
use crate::transpose::transpose;
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::undefined;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching, shifted};
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, Properties, Reads,
    Rules, Semantics, Typing,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::Elem;
use spmdc_kernel::number;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

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
        region_shape(&self.at)
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
        region_factors(&self.at, args, 1)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let dtype = args[0].dtype();
        let element = |old: u64, new: &[u64]| match self.adds {
            false => Some(new[0]),
            true => number::eval_binary(BinaryOp::Add, dtype, old, new[0]),
        };
        Ok(vec![region_replaced(&self.at, args, 1, element).expect("typing knows the addition")])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let add = if self.adds { ", add=true" } else { "" };
        format!("update({}, at={}{add})", args.join(", "), print_places(&self.at))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        if self.adds { self.region().iter().map(|&len| len as u64).product() } else { 0 }
    }
}

impl Infer for Update {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let (x, v) = (args[0], args[1]);
        check_region(&self.at, args, 1)?;
        if x.dtype != v.dtype {
            let message = format!("elements of {} cannot be replaced with {}", x.dtype.name(), v.dtype.name());
            return Err(Mismatch::new(Code::E0203, message));
        }
        if self.adds && !(x.dtype.is_float() || x.dtype.is_integer()) {
            return Err(Mismatch::new(Code::E0215, undefined("addition", x.dtype.name())));
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

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl WritesStablehlo for Update {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let (x, rank) = (&args[0], args[0].ty.rank());
        let sizes = region_shape(&self.at);
        if sizes.contains(&0) {
            return Ok(vec![x.clone()]);
        }
        // The block that the region lies in: with its elements, and those between them.
        let span = |(places, &len): (&Places, &usize)| match places {
            Places::Range(range) => (len - 1) * range.step.unsigned_abs() as usize + 1,
            Places::Dynamic(_) => len,
        };
        let spans: Vec<usize> = self.at.iter().zip(&sizes).map(span).collect();
        let mut dynamic = args[2..].iter();
        let mut starts = Vec::new();
        for places in &self.at {
            let start = match places {
                Places::Range(range) => Some(hlo.whole(DType::I64, range.start as i64, &[])),
                Places::Dynamic(_) => dynamic.next().cloned(),
            };
            starts.extend(start);
        }
        let new = hlo.broadcast(&args[1], &sizes);
        let replaced = if spans == sizes && !self.adds {
            new
        } else {
            let old = hlo.dynamic_slice(x, &starts, &spans);
            let between =
                |(&span, &len): (&usize, &usize)| (0, 0, if len > 1 { (span - 1) / (len - 1) - 1 } else { 0 });
            let widths: Vec<(usize, usize, usize)> = spans.iter().zip(&sizes).map(between).collect();
            let dtype = x.ty.dtype();
            let zero = hlo.splat(dtype, 0, &[]);
            let wide = hlo.pad(&new, &zero, &widths);
            let new = if self.adds { hlo.binary("stablehlo.add", &old, &wide) } else { wide };
            if spans == sizes {
                new
            } else {
                let inside = hlo.splat(DType::Bool, 1, &sizes);
                let outside = hlo.splat(DType::Bool, 0, &[]);
                let mask = hlo.pad(&inside, &outside, &widths);
                hlo.select(&mask, &new, &old)
            }
        };
        debug_assert_eq!(starts.len(), rank, "every dimension has a start");
        Ok(vec![hlo.dynamic_update_slice(x, &replaced, &starts)])
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
            let zero = Arithmetic(build).number(cotangent, 0.0)?;
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
    /// A copy, which is omitted if the old array is not needed any more, and a kernel over a device's part of the region. Along a split
    /// dimension with a dynamic index each device tests whether it has the element. If there are several, or blocks of several lengths, it
    /// tests all elements of its block. New values that are computed from other elements of a large array, most of which they replace, go
    /// into a separate array, as do the elements around them.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let ty = lowering.ty(stmt.args[0]);
        let dtype = ty.dtype();
        let element = |kernel: &mut KernelBuilder<'_>, old: Option<Elem>, new: &[Elem]| match old {
            None => new[0],
            Some(old) => kernel.binary(BinaryOp::Add, dtype, old, new[0]),
        };
        let write = RegionWrite { at: &self.at, values: 1, reads_old: self.adds, element: &element };
        let is_large = ty.block_bytes(lowering.mesh) > lowering.mesh.machine.private_bytes;
        let around = if is_large { self.around(ty.shape()) } else { None };
        write.lower(lowering, stmt, around);
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
            let message = "`at` of `update` must hold (start, step, length), (length,) or () for each dimension";
            Diagnostic::error(Code::E0227, args.span, message)
        };
        let at = at.and_then(|arg| parse_places(&arg.term)).ok_or_else(malformed)?;
        let value = args.array(build, "x")?;
        let dtype = build.ty(value).dtype();
        let mut operands = vec![value, args.array_like(build, "v", dtype)?];
        for arg in args.rest("places") {
            operands.push(build.materialize(&arg.term, Some(DType::I64), arg.span)?);
        }
        Ok(Term::Array(build.emit1(Update { at, adds }, &operands)?))
    }
}
