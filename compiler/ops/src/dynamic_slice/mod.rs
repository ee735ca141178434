//! `dynamic_slice(x, (i, 0), (4, 16))` and `dynamic_update_slice(x, v, (i, 0))`: a region of static size at a dynamic index.
//!
//! As in jax.lax, a start below zero counts from the end, and a region that would exceed the array is moved inside it; no index
//! stops the program. Along a split dimension the devices contribute their parts of the region to a sum, as for a single index. A
//! region is replaced in place: see `update`.

mod derivative;
pub mod update;

use crate::batching::BatchForms;
use crate::constant::Constant;
use crate::elementwise::{Binary, binary};
use crate::from_end::{as_i64, from_end};
use crate::gather::Gather;
use crate::index::{are_checked, beginnings, checked};
use crate::iota::Iota;
use crate::slice::{SliceRange, slice};
use crate::transpose::transpose;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{expected, must_be};
use spmdc_grammar::span::Span;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching};
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    ChosenRegion, Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties,
    Reads, Rules, Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// `dynamic_slice(x, i, j, dims=(0, 2), sizes=(4, 1))`: 4 elements of dimension 0 from `i` on and 1 of dimension 2 from `j` on. All
/// of them exist.
#[derive(Clone, Debug, PartialEq)]
pub struct DynamicSlice {
    /// The cut dimensions in order, and their sizes in the result.
    pub dims: Vec<(usize, usize)>,
}

impl DynamicSlice {
    /// The position of a dimension among the cut ones.
    fn cut(&self, dim: usize) -> Option<usize> {
        self.dims.iter().position(|&(cut, _)| cut == dim)
    }
}

impl Semantics for DynamicSlice {
    fn name(&self) -> &'static str {
        "dynamic_slice"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let (mut operand, mut result) = (Vec::new(), Vec::new());
        let found = FactorKind::one_has(args[0].dtype);
        for (dim, &size) in args[0].shape.iter().enumerate() {
            let cut = self.cut(dim).map(|at| self.dims[at].1);
            let factor = rule.add(size, if cut.is_some() { found } else { FactorKind::Pass });
            operand.push(vec![factor]);
            result.push(vec![cut.map_or(factor, |len| rule.add(len, FactorKind::Pass))]);
        }
        rule.operands.push(operand);
        rule.operands.resize(args.len(), Vec::new());
        rule.results.push(result);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let types: Vec<&ArrayType> = args.iter().map(|array| &array.ty).collect();
        let ty = self.infer(&types).expect("the checker has typed the slice").swap_remove(0);
        Ok(vec![Array::from_fn(ty, |index| {
            let start = |dim: usize| {
                self.cut(dim).map_or(0, |at| checked(args[1 + at], beginnings(args[0].shape()[dim], self.dims[at].1)))
            };
            let own: Vec<usize> = index.iter().enumerate().map(|(dim, &at)| start(dim) + at).collect();
            args[0].get(&own)
        })])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let (dims, sizes): (Vec<usize>, Vec<usize>) = self.dims.iter().copied().unzip();
        format!("dynamic_slice({}, dims={}, sizes={})", args.join(", "), shape::tuple(&dims), shape::tuple(&sizes))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for DynamicSlice {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        are_checked(&args[1..])?;
        let ordered = self.dims.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let fits = |&(dim, len): &(usize, usize)| args[0].shape.get(dim).is_some_and(|&size| len <= size);
        if self.dims.len() + 1 != args.len() || !ordered || !self.dims.iter().all(fits) {
            let message = format!("{} start indices for the dimensions {:?} of {}", args.len() - 1, self.dims, args[0]);
            return Err(Mismatch::new(Code::E0206, message));
        }
        let mut shape = args[0].shape.clone();
        self.dims.iter().for_each(|&(dim, len)| shape[dim] = len);
        Ok(vec![ArrayType::of(args[0].dtype, shape)])
    }
}

impl Rules for DynamicSlice {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::Places(&[0]),
            combines: Combines::Places(self.dims.iter().map(|&(dim, _)| dim).collect()),
            elements: Elements::Chosen(self),
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

impl WritesStablehlo for DynamicSlice {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let dims = self.dims.iter().map(|&(dim, _)| dim);
        let given: Vec<(usize, HloValue)> = dims.zip(args[1..].iter().cloned()).collect();
        let starts = hlo.starts(args[0].ty.rank(), &given);
        Ok(vec![hlo.dynamic_slice(&args[0], &starts, &results[0].shape)])
    }
}

/// The indices `start`, `start + step`, ... of one of several indexed dimensions, along the separate dimension that index arrays have for
/// each of them. `start` is a checked index, None for 0.
pub fn indices_along(
    build: &mut CallBuilder,
    (dim, count): (usize, usize),
    range: SliceRange,
    start: Option<Value>,
) -> Result<Value, Diagnostic> {
    let mut shape = vec![1; count];
    shape[dim] = range.len;
    let steps = build.emit1(Iota { ty: ArrayType::new(DType::I64, &shape), axis: dim }, &[])?;
    let step = build.emit1(Constant::scalar(DType::I64, range.step as u64), &[])?;
    let steps = if range.step == 1 { steps } else { build.emit1(Binary(BinaryOp::Mul), &[steps, step])? };
    let first = match start {
        Some(start) => start,
        None => build.emit1(Constant::scalar(DType::I64, range.start as u64), &[])?,
    };
    build.emit1(Binary(BinaryOp::Add), &[first, steps])
}

impl ChosenRegion for DynamicSlice {
    fn region(&self) -> Vec<(usize, usize)> {
        self.dims.clone()
    }
}

impl Batched for DynamicSlice {
    /// With a start for each element, a gather at the indices of each.
    fn batched(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let value = operands[0];
        if !operands[1..].iter().any(|start| start.is_mapped()) {
            let args: Vec<Value> = operands.iter().map(|operand| operand.value()).collect();
            let dims = self.dims.iter().map(|&(dim, len)| (dim + 1, len)).collect();
            return build.emit(DynamicSlice { dims }, &args);
        }
        let count = self.dims.len();
        let mut args = vec![value.value()];
        for (at, (&(_, len), &start)) in self.dims.iter().zip(&operands[1..]).enumerate() {
            let start = batch.aligned(build, start, count)?;
            args.push(indices_along(build, (at, count), SliceRange::all(len), Some(start))?);
        }
        let gather = Gather::new(self.dims.iter().map(|&(dim, _)| dim).collect(), Vec::new(), 0);
        let gathered = build.emit1(gather.in_batch(batch, value.is_mapped(), true), &args)?;
        let mut kept = 1 + count..;
        let place = |dim| self.cut(dim).map_or_else(|| kept.next().expect("there are numbers enough"), |at| 1 + at);
        let rank = build.ty(stmt.args[0]).rank();
        let order: Vec<usize> = std::iter::once(0).chain((0..rank).map(place)).collect();
        Ok(vec![transpose(build, gathered, &order)?])
    }
}

impl Point for DynamicSlice {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let (from, to) = (kernel.context.ty(stmt.args[0]), kernel.context.ty(stmt.results[0]));
        let (mut own, mut tests) = (Vec::new(), Vec::new());
        for (dim, at) in index.iter().enumerate() {
            let Some(cut) = self.cut(dim) else {
                own.push(at.clone());
                continue;
            };
            let start = kernel.dynamic_index(stmt.args[1 + cut], beginnings(from.shape()[dim], self.dims[cut].1));
            let place = kernel.global_index(to, dim, at).plus(&start);
            own.push(kernel.index_in_block(from, dim, &place, &mut tests));
        }
        kernel.operand_if(stmt.args[0], &own, &tests)
    }

    fn reads(&self, operand: usize, _: &[&ArrayType]) -> Reads {
        if operand == 0 { Reads::Once } else { Reads::Buffer }
    }
}

/// The start of a region along a dimension.
enum Start {
    Static(usize),
    /// An i64 scalar; the whole region from there on exists.
    Dynamic(Value),
}

/// The starts of a region, moved so that it is inside the array.
fn starts(build: &mut CallBuilder, given: Arg, sizes: &[usize], lens: &[usize]) -> Result<Vec<Start>, Diagnostic> {
    let span = given.span;
    let Some(items) = given.term.sequence() else {
        let message = must_be("the start indices", "a tuple with one entry per dimension", given.term.describe());
        return Err(Diagnostic::error(Code::E0210, span, message));
    };
    if items.len() != sizes.len() {
        let message =
            expected("one start index per dimension", format_args!("{} for {} dimensions", items.len(), sizes.len()));
        return Err(Diagnostic::error(Code::E0205, span, message));
    }
    let dims = items.iter().zip(sizes.iter().zip(lens));
    dims.map(|(item, (&size, &len))| start(build, item, (size, len), span)).collect()
}

fn start(build: &mut CallBuilder, item: &Term, (size, len): (usize, usize), span: Span) -> Result<Start, Diagnostic> {
    let room = (size - len) as i128;
    if let Term::Int(at) = item {
        let at = if *at < 0 { at + size as i128 } else { *at };
        return Ok(Start::Static(at.clamp(0, room) as usize));
    }
    let Term::Array(value) = item else {
        let message = must_be("a start index", "an integer", item.describe());
        return Err(Diagnostic::error(Code::E0210, span, message));
    };
    let ty = build.ty(*value).array.clone();
    if ty.rank() != 0 || !ty.dtype.is_integer() {
        let message = must_be("a start index", "an integer", &ty);
        return Err(Diagnostic::error(Code::E0203, span, message));
    }
    if room == 0 {
        return Ok(Start::Static(0));
    }
    let at = as_i64(build, *value, room, span)?;
    let at = from_end(build, at, size as i128, span)?;
    let at = binary(build, BinaryOp::Maximum, (&Term::Array(at), span), (&Term::Int(0), span))?;
    Ok(Start::Dynamic(binary(build, BinaryOp::Minimum, (&Term::Array(at), span), (&Term::Int(room), span))?))
}

/// E0205 unless a region of these lengths fits into the array.
fn check_lens(lens: &[usize], sizes: &[usize], span: Span) -> Result<(), Diagnostic> {
    if lens.len() == sizes.len() && lens.iter().zip(sizes).all(|(len, size)| len <= size) {
        return Ok(());
    }
    let (lens, sizes) = (shape::display(lens), shape::display(sizes));
    Err(Diagnostic::error(
        Code::E0205,
        span,
        format!("a slice of shape {lens} does not fit into an array of shape {sizes}"),
    ))
}

impl Call for DynamicSlice {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// A block of static size at a dynamic start; it is moved inside the array if necessary.
        dynamic_slice(operand: Array, start_indices: Of("tuple of ints or scalars"), slice_sizes: Ints),
            Any, Planes(operand), "(x: f32[4, 6], i: i32) { dynamic_slice(x, (i, 2), (2, 3)) }";
        /// Places of some dimensions from dynamic ones on.
        dynamic_slice(operand: Array, [rest] places: Array, [named] dims: Ints, [named] sizes: Ints)
        in_dumps "with `dims=`" "write dynamic_slice(x, (i, 0), (4, 16)): starts and sizes of all dimensions";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        if !args.signature().is_for_programs() {
            let (dims, lens) = (args.ints("dims")?, args.ints("sizes")?);
            let value = args.array(build, "operand")?;
            let dims = shape::axes(&dims, build.ty(value).rank(), args.span)?;
            let lens = lens.iter().map(|&len| usize::try_from(len).unwrap_or(usize::MAX));
            let dims = dims.into_iter().zip(lens).collect();
            let mut operands = vec![value];
            for arg in args.rest("places") {
                operands.push(build.materialize(&arg.term, Some(DType::I64), arg.span)?);
            }
            return Ok(Term::Array(build.emit1(DynamicSlice { dims }, &operands)?));
        }
        let value = args.array(build, "operand")?;
        let sizes = build.ty(value).shape().to_vec();
        let starts = args.required("start_indices")?;
        let lens = args.ints("slice_sizes")?;
        let lens: Option<Vec<usize>> = lens.iter().map(|&len| usize::try_from(len).ok()).collect();
        let negative = || Diagnostic::error(Code::E0218, args.span, "the size of a slice must be at least 0");
        let lens = lens.ok_or_else(negative)?;
        check_lens(&lens, &sizes, args.span)?;
        let starts = crate::dynamic_slice::starts(build, starts, &sizes, &lens)?;
        let mut ranges = Vec::new();
        let (mut dims, mut operands) = (Vec::new(), vec![value]);
        for (dim, (start, &len)) in starts.into_iter().zip(&lens).enumerate() {
            ranges.push(match start {
                Start::Static(at) => SliceRange::between(at, at + len),
                Start::Dynamic(at) => {
                    dims.push((dim, len));
                    operands.push(at);
                    SliceRange::all(sizes[dim])
                }
            });
        }
        operands[0] = slice(build, value, &ranges)?;
        if dims.is_empty() {
            return Ok(Term::Array(operands[0]));
        }
        Ok(Term::Array(build.emit1(DynamicSlice { dims }, &operands)?))
    }
}
