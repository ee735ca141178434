//! Reductions: `sum prod max min any all` over dimensions, and `argmax`, `argmin` over one or all of them.
//!
//! The factors of reduced dimensions are of kind *reduce*: if one is split, every device reduces its block to a partial value, and
//! a collective combines the partial values. The others pass through. The position of an extreme is not combined in this way:
//! `argmax` needs its dimensions whole, until the pass `local_argmax` computes it from split ones.

mod derivative;

use crate::batching::BatchForms;
use crate::broadcast::broadcast;
use crate::cast::cast;
use crate::constant::Constant;
use crate::elementwise::{self, Select};
use crate::promote;
use crate::reshape::reshape;
use spmdc_abi::{Kind, ReduceOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, undefined};
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::lower::terms;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching, shifted};
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, Point, Properties,
    Reads, Reduction, Rules, Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Combine, Elem};
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// The name of a reduction in the language.
pub fn reduction_name(op: ReduceOp) -> &'static str {
    match op {
        ReduceOp::Sum => "sum",
        ReduceOp::Product => "prod",
        ReduceOp::Max => "max",
        ReduceOp::Min => "min",
        ReduceOp::And => "all",
        ReduceOp::Or => "any",
    }
}

/// `sum(x, axis=(0,))`
#[derive(Clone, Debug, PartialEq)]
pub struct Reduce {
    /// The operation that combines the elements.
    pub op: ReduceOp,
    /// The reduced dimensions, in order.
    pub axes: Vec<usize>,
    /// Whether they stay with size 1.
    pub keepdims: bool,
}

/// `argmax(x, axis=0)`: the i32 position of the first largest element; NaN counts as largest, and for `argmin` as smallest.
/// `argmax(x, axis=(0,1))` over all dimensions gives the position in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgReduce {
    /// Whether it is `argmax`; otherwise `argmin`.
    pub largest: bool,
    /// One dimension, or all of several in order.
    pub axes: Vec<usize>,
    /// Whether the reduced dimensions stay with size 1.
    pub keepdims: bool,
}

impl ArgReduce {
    /// The axes in the syntax of the language: `0`, or `(0,1)`.
    fn axis(&self) -> String {
        if let [axis] = *self.axes { axis.to_string() } else { shape::tuple(&self.axes) }
    }

    fn combine(&self) -> Combine {
        if self.largest { Combine::ArgMax } else { Combine::ArgMin }
    }
}

/// The shape of the result.
pub fn reduced_shape(shape: &[usize], axes: &[usize], keepdims: bool) -> Vec<usize> {
    let sizes = shape.iter().enumerate().map(|(dim, &size)| if axes.contains(&dim) { None } else { Some(size) });
    if keepdims { sizes.map(|size| size.unwrap_or(1)).collect() } else { sizes.flatten().collect() }
}

/// The factors, with `kind` for the reduced dimensions.
fn reduced_factors(shape: &[usize], axes: &[usize], keepdims: bool, kind: FactorKind) -> Factors {
    let mut rule = Factors::new();
    let (mut operand, mut result) = (Vec::new(), Vec::new());
    for (dim, &size) in shape.iter().enumerate() {
        let reduced = axes.contains(&dim);
        let factor = rule.add(size, if reduced { kind } else { FactorKind::Pass });
        operand.push(vec![factor]);
        if !reduced {
            result.push(vec![factor]);
        } else if keepdims {
            result.push(vec![rule.add(1, FactorKind::Whole)]);
        }
    }
    rule.operands.push(operand);
    rule.results.push(result);
    rule
}

/// One kernel: the result's dimensions outside, the reduced ones inside.
fn lower_reduction(lowering: &mut Lowering<'_>, stmt: &Stmt, axes: &[usize], keepdims: bool, combine: Combine) {
    let mut kernel = lowering.kernel();
    let ty = kernel.context.ty(stmt.args[0]);
    let blocks = ty.block_shape(kernel.context.mesh);
    let mut index = vec![Affine::default(); ty.rank()];
    for reduced in [false, true] {
        for dim in (0..ty.rank()).filter(|dim| axes.contains(dim) == reduced) {
            let extent = kernel.context.block_len(ty, dim);
            index[dim] = kernel.dim(extent, blocks[dim], reduced);
        }
    }
    let result: Vec<Affine> = (0..ty.rank())
        .filter_map(|dim| match axes.contains(&dim) {
            false => Some(index[dim].clone()),
            true => keepdims.then(Affine::default),
        })
        .collect();
    let elem = kernel.operand(stmt.args[0], &index);
    kernel.store_combined(stmt.results[0], &result, ty.dtype(), elem, combine);
    lowering.run(kernel);
}

fn print_reduction(name: &str, arg: &str, axis: &str, keepdims: bool) -> String {
    let keepdims = if keepdims { ", keepdims=true" } else { "" };
    format!("{name}({arg}, axis={axis}{keepdims})")
}

impl Reduce {
    /// `axes` may be in any order; they are sorted.
    pub fn new(op: ReduceOp, axes: &[usize], keepdims: bool) -> Reduce {
        let mut axes = axes.to_vec();
        axes.sort_unstable();
        Reduce { op, axes, keepdims }
    }
}

/// The identity element of the reduction, which is its result for an empty array, if it exists.
fn identity(op: ReduceOp, dtype: DType) -> Option<u64> {
    match op {
        ReduceOp::Sum | ReduceOp::Or => Some(0),
        ReduceOp::Product | ReduceOp::And => number::cast(DType::Bool, dtype, 1),
        ReduceOp::Max | ReduceOp::Min => None,
    }
}

/// Combines elements in order. Sums and products of floats are kept in f64 and rounded once.
fn combine(op: ReduceOp, dtype: DType, mut bits: impl Iterator<Item = u64>) -> u64 {
    let by = match op {
        ReduceOp::Sum => BinaryOp::Add,
        ReduceOp::Product => BinaryOp::Mul,
        ReduceOp::Max => BinaryOp::Maximum,
        ReduceOp::Min => BinaryOp::Minimum,
        ReduceOp::And => BinaryOp::And,
        ReduceOp::Or => BinaryOp::Or,
    };
    if dtype.is_float() && matches!(op, ReduceOp::Sum | ReduceOp::Product) {
        let values = bits.map(|bits| number::to_float(dtype, bits));
        let total: f64 = if op == ReduceOp::Sum { values.fold(0.0, |a, b| a + b) } else { values.product() };
        return number::from_float(dtype, total);
    }
    let first = identity(op, dtype).or_else(|| bits.next()).expect("typing refuses an extreme of nothing");
    bits.fold(first, |a, b| {
        number::eval_binary(by, dtype, a, b).expect("typing refuses reductions without an operation")
    })
}

impl Semantics for Reduce {
    fn name(&self) -> &'static str {
        reduction_name(self.op)
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        reduced_factors(&args[0].shape, &self.axes, self.keepdims, FactorKind::Reduce(self.op))
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let array = args[0];
        let result = ArrayType::new(array.dtype(), &reduced_shape(array.shape(), &self.axes, self.keepdims));
        let mut groups: Vec<Vec<u64>> = vec![Vec::new(); result.len()];
        let strides = shape::strides(&reduced_shape(array.shape(), &self.axes, true));
        for (index, &bits) in indices(array.shape()).zip(&array.bits) {
            let kept = (0..index.len()).filter(|dim| !self.axes.contains(dim));
            groups[kept.map(|dim| index[dim] * strides[dim]).sum::<usize>()].push(bits);
        }
        let bits = groups.into_iter().map(|group| combine(self.op, array.dtype(), group.into_iter())).collect();
        Ok(vec![Array::new(result, bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        print_reduction(self.name(), &args[0], &shape::tuple(&self.axes), self.keepdims)
    }

    fn flops(&self, args: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        args[0].len() as u64
    }
}

impl Infer for Reduce {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let (ty, name) = (args[0], self.name());
        let defined = match self.op {
            ReduceOp::Sum | ReduceOp::Product => ty.dtype.is_float() || (ty.dtype.is_integer() && ty.dtype.size() >= 4),
            ReduceOp::Max | ReduceOp::Min => ty.dtype != DType::Key,
            ReduceOp::And | ReduceOp::Or => ty.dtype == DType::Bool,
        };
        if !defined {
            return Err(Mismatch::new(Code::E0215, undefined(format_args!("`{name}`"), ty.dtype.name())));
        }
        if self.axes.iter().any(|&axis| axis >= ty.rank()) || self.axes.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(Mismatch::new(Code::E0206, format!("`{name}` cannot reduce the axes {:?} of {ty}", self.axes)));
        }
        if identity(self.op, ty.dtype).is_none() && self.axes.iter().any(|&axis| ty.shape[axis] == 0) {
            let message = format!("`{name}` of an empty array is undefined (`{ty}`)");
            return Err(Mismatch::new(Code::E0205, message).help("pass `initial=`, the value of an empty array"));
        }
        Ok(vec![ArrayType::of(ty.dtype, reduced_shape(&ty.shape, &self.axes, self.keepdims))])
    }
}

impl Rules for Reduce {
    fn derivative(&self) -> Derivative<'_> {
        match self.op {
            ReduceOp::Sum => Derivative::Linear(self),
            ReduceOp::Product | ReduceOp::Max | ReduceOp::Min => Derivative::Weighted(self),
            ReduceOp::And | ReduceOp::Or => Derivative::Zero,
        }
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(Reduce { axes: shifted(&self.axes), ..self.clone() })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Reduction(self)
    }

    fn properties(&self) -> Properties<'_> {
        // A sum of sums is a sum.
        let linear = if self.op == ReduceOp::Sum { Linear::Together } else { Linear::No };
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear,
            combines: Combines::Elements(self.op),
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

impl WritesStablehlo for Reduce {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let combined = hlo.reduce(self.op, &args[0], &self.axes);
        Ok(vec![hlo.reshape(&combined, &results[0].shape)])
    }
}

impl LinearMap for Reduce {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        _: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let shape = build.ty(stmt.args[0]).shape().to_vec();
        let cotangent = reshape(build, cotangent, &reduced_shape(&shape, &self.axes, true))?;
        broadcast(build, cotangent, &shape)
    }
}

impl Reduction for Reduce {
    fn nest(&self) -> &dyn NestLowering {
        self
    }

    fn point(&self) -> &dyn Point {
        self
    }

    fn combined(&self, stmt: &Stmt, func: &Func, mesh: &Mesh) -> Option<usize> {
        terms::combined(stmt, func, mesh, &self.axes)
    }
}

impl Point for Reduce {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        terms::combination(kernel, stmt, (&self.axes, self.keepdims), Combine::Reduce(self.op), index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl NestLowering for Reduce {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lower_reduction(lowering, stmt, &self.axes, self.keepdims, Combine::Reduce(self.op));
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Semantics for ArgReduce {
    fn name(&self) -> &'static str {
        if self.largest { "argmax" } else { "argmin" }
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        reduced_factors(&args[0].shape, &self.axes, self.keepdims, FactorKind::Whole)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let (array, dtype) = (args[0], args[0].dtype());
        let is_nan = |bits| dtype.is_float() && number::to_float(dtype, bits).is_nan();
        let better = if self.largest { CompareOp::Gt } else { CompareOp::Lt };
        let beats = |a, b| !is_nan(b) && (is_nan(a) || number::eval_compare(better, dtype, a, b) == Some(true));
        let kept = ArrayType::new(DType::I32, &reduced_shape(array.shape(), &self.axes, true));
        let places: Vec<usize> = self.axes.iter().map(|&axis| array.shape()[axis]).collect();
        let places = Array::from_fn(kept, |index| {
            let mut index = index.to_vec();
            let mut best: Option<(usize, u64)> = None;
            for (number, place) in indices(&places).enumerate() {
                self.axes.iter().zip(&place).for_each(|(&axis, &at)| index[axis] = at);
                let bits = array.get(&index);
                if best.is_none_or(|(_, held)| beats(bits, held)) {
                    best = Some((number, bits));
                }
            }
            best.map_or(0, |(number, _)| number as u64)
        });
        let shape = reduced_shape(array.shape(), &self.axes, self.keepdims);
        Ok(vec![Array::new(ArrayType::new(DType::I32, &shape), places.bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        print_reduction(self.name(), &args[0], &self.axis(), self.keepdims)
    }

    fn flops(&self, args: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        args[0].len() as u64
    }
}

impl Infer for ArgReduce {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let (ty, name) = (args[0], self.name());
        if ty.dtype == DType::Key {
            return Err(Mismatch::new(Code::E0215, undefined(format_args!("`{name}`"), "key")));
        }
        let is_all = self.axes.len() > 1 && self.axes.iter().copied().eq(0..ty.rank());
        let is_one = matches!(*self.axes, [axis] if axis < ty.rank());
        if !is_one && !is_all {
            return Err(Mismatch::new(Code::E0206, format!("`{name}` cannot reduce axis {} of {ty}", self.axis())));
        }
        if self.axes.iter().any(|&axis| ty.shape[axis] == 0) {
            return Err(Mismatch::new(Code::E0205, format!("`{name}` of an empty array is undefined (`{ty}`)")));
        }
        Ok(vec![ArrayType::new(DType::I32, &reduced_shape(&ty.shape, &self.axes, self.keepdims))])
    }
}

impl Rules for ArgReduce {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Reduction(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: false,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl WritesStablehlo for ArgReduce {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        // Several dimensions are all of them: the position is row-major.
        let (x, axis) = match *self.axes {
            [axis] => (args[0].clone(), axis),
            _ => (hlo.reshape(&args[0], &[args[0].ty.len()]), 0),
        };
        let [_, places] = hlo.extreme(self.largest, &x, axis);
        Ok(vec![hlo.reshape(&places, &results[0].shape)])
    }
}

impl Batched for ArgReduce {
    fn batched(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let mut value = batch.mapped(build, operands[0])?;
        let shape = build.ty(stmt.args[0]).shape().to_vec();
        if let [axis] = *self.axes {
            return build.emit(ArgReduce { axes: vec![axis + 1], ..self.clone() }, &[value]);
        }
        // Over all dimensions of one element: the position in row-major order.
        value = reshape(build, value, &[batch.size, shape.iter().product()])?;
        let places = build.emit1(ArgReduce { axes: vec![1], keepdims: false, largest: self.largest }, &[value])?;
        let kept = [&[batch.size], reduced_shape(&shape, &self.axes, self.keepdims).as_slice()].concat();
        Ok(vec![reshape(build, places, &kept)?])
    }
}

impl Reduction for ArgReduce {
    fn nest(&self) -> &dyn NestLowering {
        self
    }

    fn point(&self) -> &dyn Point {
        self
    }

    fn combined(&self, stmt: &Stmt, func: &Func, mesh: &Mesh) -> Option<usize> {
        terms::combined(stmt, func, mesh, &self.axes)
    }
}

impl Point for ArgReduce {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        terms::combination(kernel, stmt, (&self.axes, self.keepdims), self.combine(), index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl NestLowering for ArgReduce {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lower_reduction(lowering, stmt, &self.axes, self.keepdims, self.combine());
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// The `axis=` and `keepdims=` of a call: all dimensions if no axis is given.
pub fn axes_of(args: &mut Args<'_>, rank: usize) -> Result<(Vec<usize>, bool), Diagnostic> {
    let axes = match args.optional_ints("axis")? {
        None => (0..rank).collect(),
        Some(given) => shape::axes(&given, rank, args.span)?,
    };
    Ok((axes, args.optional_bool("keepdims")?.unwrap_or(false)))
}

/// A reduction, without a statement if nothing is reduced.
pub fn reduce(
    build: &mut CallBuilder,
    op: ReduceOp,
    value: Value,
    axes: &[usize],
    keepdims: bool,
) -> Result<Value, Diagnostic> {
    let dtype = build.ty(value).dtype();
    let (value, result) = match op {
        ReduceOp::Sum | ReduceOp::Product => {
            let result = accumulated(dtype);
            (cast(build, value, summed_in(dtype))?, result)
        }
        ReduceOp::And | ReduceOp::Or => (elementwise::truth(build, value)?, DType::Bool),
        ReduceOp::Max | ReduceOp::Min => (value, dtype),
    };
    let value = if axes.is_empty() { value } else { build.emit1(Reduce::new(op, axes, keepdims), &[value])? };
    cast(build, value, result)
}

/// The type of sums and products: small integers widen to 32 bits.
pub fn accumulated(dtype: DType) -> DType {
    match dtype.kind() {
        Kind::Bool => DType::I32,
        Kind::Signed if dtype.size() < 4 => DType::I32,
        Kind::Unsigned if dtype.size() < 4 => DType::U32,
        Kind::Signed | Kind::Unsigned | Kind::Float | Kind::Key => dtype,
    }
}

/// The type in which products are summed: integers below 32 bits widen to 32 bits, whose low bits are the same; narrow floats widen to
/// f32.
pub fn summed_in(dtype: DType) -> DType {
    accumulated(dtype).computed()
}

impl Call for Reduce {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The sum of the elements.
        sum(x: Array, axis: Ints = None, keepdims: Bool = false, [named] dtype: ElementType = None, [named] initial: Of("number") = None, [named] where: Of("mask") = None),
            NumbersAndBools, Planes(x, initial), "(x: f32[4, 6]) { sum(x, axis=1) }";
        /// The product of the elements.
        prod(x: Array, axis: Ints = None, keepdims: Bool = false, [named] dtype: ElementType = None, [named] initial: Of("number") = None, [named] where: Of("mask") = None),
            NumbersAndBools, Written, "(x: f32[4, 6]) { prod(x, axis=0) }";
        /// The largest element; NaN if an element is NaN.
        max(x: Array, axis: Ints = None, keepdims: Bool = false, [named] initial: Of("number") = None, [named] where: Of("mask") = None),
            NumbersAndBools, Refused(ORDER), "(x: f32[4, 6]) { max(x, axis=1) }";
        /// The smallest element; NaN if an element is NaN.
        min(x: Array, axis: Ints = None, keepdims: Bool = false, [named] initial: Of("number") = None, [named] where: Of("mask") = None),
            NumbersAndBools, Refused(ORDER), "(x: f32[4, 6]) { min(x, axis=1) }";
        /// Whether all elements are true, or not zero.
        all(x: Array, axis: Ints = None, keepdims: Bool = false, [named] where: Of("mask") = None),
            NumbersAndBools, Written, "(x: f32[4, 6]) { all(x, axis=1) }";
        /// Whether an element is true, or not zero.
        any(x: Array, axis: Ints = None, keepdims: Bool = false, [named] where: Of("mask") = None),
            NumbersAndBools, Written, "(x: f32[4, 6]) { any(x, axis=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let op = match name {
            "sum" => ReduceOp::Sum,
            "prod" => ReduceOp::Product,
            "max" => ReduceOp::Max,
            "min" => ReduceOp::Min,
            "all" => ReduceOp::And,
            _ => ReduceOp::Or,
        };
        let value = args.array(build, "x")?;
        let (axes, keepdims) = axes_of(args, build.ty(value).rank())?;
        let dtype = if matches!(op, ReduceOp::Sum | ReduceOp::Product) { args.optional_dtype("dtype")? } else { None };
        let value = match dtype {
            Some(dtype) => cast(build, value, dtype)?,
            None => value,
        };
        let counts = !matches!(op, ReduceOp::And | ReduceOp::Or);
        let initial = if counts { args.take("initial") } else { None };
        let value = chosen(build, args, op, value, initial.as_ref())?;
        let empty = axes.iter().any(|&axis| build.ty(value).shape()[axis] == 0);
        let result = match &initial {
            Some(initial) if empty && matches!(op, ReduceOp::Max | ReduceOp::Min) => {
                let first = promote::to_dtype(build, (&initial.term, initial.span), build.ty(value).dtype())?;
                let shape = reduced_shape(build.ty(value).shape(), &axes, keepdims);
                broadcast(build, first, &shape)?
            }
            Some(initial) => {
                let result = Term::Array(reduce(build, op, value, &axes, keepdims)?);
                let by = match op {
                    ReduceOp::Sum => BinaryOp::Add,
                    ReduceOp::Product => BinaryOp::Mul,
                    ReduceOp::Min => BinaryOp::Minimum,
                    ReduceOp::Max | ReduceOp::And | ReduceOp::Or => BinaryOp::Maximum,
                };
                elementwise::binary(build, by, (&result, args.span), (&initial.term, initial.span))?
            }
            None => reduce(build, op, value, &axes, keepdims)?,
        };
        Ok(Term::Array(match dtype {
            Some(dtype) => cast(build, result, dtype)?,
            None => result,
        }))
    }
}

/// The mask of a call's `where=`, in the shape of the reduced array.
fn mask_of(build: &mut CallBuilder, args: &mut Args<'_>, shape: &[usize]) -> Result<Option<Value>, Diagnostic> {
    args.take("where").map(|arg| mask(build, &arg, shape)).transpose()
}

/// A mask, in the shape of the reduced array.
pub fn mask(build: &mut CallBuilder, arg: &Arg, shape: &[usize]) -> Result<Value, Diagnostic> {
    let mask = build.materialize(&arg.term, None, arg.span)?;
    if build.ty(mask).dtype() != DType::Bool {
        let message = must_be("the mask of a reduction", "an array of bools", &build.ty(mask).array);
        return Err(Diagnostic::error(Code::E0203, arg.span, message).help("compare it, as in `x > 0`"));
    }
    broadcast(build, mask, shape)
}

/// The operand, with the identity element where the mask of `where=` is false.
fn chosen(
    build: &mut CallBuilder,
    args: &mut Args<'_>,
    op: ReduceOp,
    value: Value,
    initial: Option<&Arg>,
) -> Result<Value, Diagnostic> {
    let shape = build.ty(value).shape().to_vec();
    let Some(mask) = mask_of(build, args, &shape)? else { return Ok(value) };
    let value = if matches!(op, ReduceOp::And | ReduceOp::Or) { elementwise::truth(build, value)? } else { value };
    let dtype = build.ty(value).dtype();
    let other = match (identity(op, dtype), initial) {
        (Some(bits), _) => build.emit1(Constant::scalar(dtype, bits), &[])?,
        (None, Some(initial)) => promote::to_dtype(build, (&initial.term, initial.span), dtype)?,
        (None, None) => {
            let message =
                format!("`{}` with `where=` requires `initial=`: the mask may select no element", args.function);
            return Err(Diagnostic::error(Code::E0201, args.span, message));
        }
    };
    build.emit1(Select, &[mask, value, other])
}

impl Call for ArgReduce {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The position of the largest element, or of the first of several; without an axis, the position in the flattened array.
        argmax(x: Array, axis: Of("int") = None, keepdims: Bool = false), NumbersAndBools, Refused(ORDER), "(x: f32[4, 6]) { argmax(x, axis=1) }";
        /// The position of the smallest element, or of the first of several; without an axis, the position in the flattened array.
        argmin(x: Array, axis: Of("int") = None, keepdims: Bool = false), NumbersAndBools, Refused(ORDER), "(x: f32[4, 6]) { argmin(x, axis=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let mut value = args.array(build, "x")?;
        let rank = build.ty(value).rank();
        let given = args.take("axis");
        let keepdims = args.optional_bool("keepdims")?.unwrap_or(false);
        let axes = match given {
            Some(Arg { term: Term::Int(axis), span, .. }) => vec![shape::axis(axis as i64, rank, span)?],
            // As a dump says "all of them".
            Some(Arg { term: Term::Tuple(_), .. }) if build.is_exact() => (0..rank).collect(),
            Some(Arg { term, span, .. }) => {
                let message = must_be("`axis`", "an integer", term.describe());
                return Err(Diagnostic::error(Code::E0210, span, message));
            }
            None if rank == 0 => {
                value = reshape(build, value, &[1])?;
                vec![0]
            }
            None => (0..rank).collect(),
        };
        let keepdims = keepdims && rank > 0;
        Ok(Term::Array(build.emit1(ArgReduce { largest: name == "argmax", axes, keepdims }, &[value])?))
    }
}
