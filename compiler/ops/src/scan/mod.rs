//! Scans: `cumsum cumprod cummax cummin` along one dimension.
//!
//! Every dimension passes through. Along the scanned one each device scans its block; if it is split, the scan begins with the
//! totals of the preceding blocks (Blelloch, "Prefix sums and their applications", 1990). Of each block only one number per row is
//! sent, its total: the pass `distribute_scans` inserts [`BlockTotals`] and a gather, and makes the result an operand of the scan.

mod extremes;

use crate::arithmetic::Arithmetic;
use crate::cast::cast;
use crate::constant::Constant;
use crate::derivative::zeros_like;
use crate::flip::Flip;
use crate::iota::Iota;
use crate::pad::Pad;
use crate::reduce::{accumulated, summed_in};
use crate::reshape::reshape;
use crate::slice::{SliceRange, slice_dim};
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
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity, Tangents};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, PlacesResults,
    Properties, Reads, Rules, Semantics, Typing, one_each,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, HloWindowDim, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Combine};
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::blocks::table;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::{DimSharding, block_range};
use spmdc_layout::types::{ArrayType, DType, Type};

/// `cumsum(x, axis=1, reverse=true)`, or `cumsum(x, axis=1, exclusive=true)` of the elements before each; with `totals=t`, each device's
/// block begins with the totals of the preceding blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// The operation that combines the elements: sum, product, maximum or minimum.
    pub op: ReduceOp,
    /// The dimension that is scanned.
    pub axis: usize,
    /// Whether it runs from the last index to the first.
    pub reverse: bool,
    /// Whether each element combines those before it alone, and the first has the identity element.
    pub exclusive: bool,
}

/// `block_totals(x, of="cumsum", axis=1, parts=4)`: the total of each block of a split dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockTotals {
    /// The operation of the scan that needs the totals.
    pub op: ReduceOp,
    /// The dimension that the blocks divide; in the result its size is `parts`.
    pub axis: usize,
    /// The number of blocks.
    pub parts: usize,
}

impl BlockTotals {
    /// Whether these are the totals that a scan of the same operand needs.
    pub fn is_for(&self, scan: &Scan, parts: usize) -> bool {
        (self.op, self.axis, self.parts) == (scan.op, scan.axis, parts)
    }
}

const NAMES: [(&str, ReduceOp); 4] =
    [("cumsum", ReduceOp::Sum), ("cumprod", ReduceOp::Product), ("cummax", ReduceOp::Max), ("cummin", ReduceOp::Min)];

fn scan_name(op: ReduceOp) -> &'static str {
    NAMES
        .iter()
        .find(|(_, known)| *known == op)
        .map(|(name, _)| *name)
        .expect("a scan adds, multiplies or takes an extreme")
}

fn scan_op(name: &str) -> Option<ReduceOp> {
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, op)| *op)
}

/// Checks that values of this type can be scanned by this operation along this dimension.
fn check(op: ReduceOp, axis: usize, ty: &ArrayType) -> Result<(), Mismatch> {
    let name = scan_name(op);
    let (is_integer, size) = (ty.dtype.is_integer(), ty.dtype.size());
    let defined = match op {
        ReduceOp::Sum | ReduceOp::Product => ty.dtype.is_float() || is_integer && size >= 4,
        ReduceOp::Max | ReduceOp::Min | ReduceOp::And | ReduceOp::Or => ty.dtype.is_float() || is_integer,
    };
    if !defined {
        return Err(Mismatch::new(Code::E0215, undefined(format_args!("`{name}`"), ty.dtype.name())));
    }
    if axis >= ty.rank() {
        return Err(Mismatch::new(Code::E0206, format!("`{name}` cannot scan axis {axis} of {ty}")));
    }
    Ok(())
}

/// The running total. Sums and products of floats are kept in f64, and rounded when they are read.
enum Running {
    Float(f64),
    Bits(u64),
}

impl Running {
    fn new(op: ReduceOp, dtype: DType) -> Running {
        match op {
            ReduceOp::Sum if dtype.is_float() => Running::Float(-0.0),
            ReduceOp::Product if dtype.is_float() => Running::Float(1.0),
            ReduceOp::Sum | ReduceOp::Product | ReduceOp::Max | ReduceOp::Min | ReduceOp::And | ReduceOp::Or => {
                Running::Bits(number::identity_element(op, dtype))
            }
        }
    }

    fn take(&mut self, op: ReduceOp, dtype: DType, bits: u64) {
        let by = match op {
            ReduceOp::Sum => BinaryOp::Add,
            ReduceOp::Product => BinaryOp::Mul,
            ReduceOp::Max => BinaryOp::Maximum,
            ReduceOp::Min => BinaryOp::Minimum,
            ReduceOp::And | ReduceOp::Or => unreachable!("{op:?} is no scan"),
        };
        match self {
            Running::Float(value) if by == BinaryOp::Add => *value += number::to_float(dtype, bits),
            Running::Float(value) => *value *= number::to_float(dtype, bits),
            Running::Bits(value) => {
                *value =
                    number::eval_binary(by, dtype, *value, bits).expect("typing refuses scans without an operation")
            }
        }
    }

    fn bits(&self, dtype: DType) -> u64 {
        match self {
            Running::Float(value) => number::from_float(dtype, *value),
            Running::Bits(bits) => *bits,
        }
    }
}

/// The indices along a dimension in the order of a scan.
fn in_order(range: std::ops::Range<usize>, reverse: bool) -> Box<dyn Iterator<Item = usize>> {
    if reverse { Box::new(range.rev()) } else { Box::new(range) }
}

impl Scan {
    /// The number of blocks of the totals.
    fn parts(&self, args: &[&Array]) -> usize {
        args.get(1).map_or(1, |totals| totals.shape()[self.axis])
    }

    /// For each position along the axes, the number of blocks before it.
    fn blocks_before(&self, parts: usize) -> Vec<i64> {
        (0..parts).map(|part| if self.reverse { parts - 1 - part } else { part } as i64).collect()
    }

    /// Computes the initial value of each row of the block: the totals before it, combined in their order.
    fn lower_begin(&self, lowering: &mut Lowering<'_>, stmt: &Stmt, totals: Value) -> Value {
        let ty = lowering.ty(stmt.args[0]).clone();
        let axes = ty.sharding.dims[self.axis].axes.clone();
        let mut begin = ty.clone();
        begin.array.shape[self.axis] = 1;
        begin.sharding.dims[self.axis] = DimSharding::default();
        begin.varying = begin.varying.union(axes.iter().map(|&axis| usize::from(axis)).collect());
        let begin = lowering.temporary(begin);
        let mut kernel = lowering.kernel();
        let mut index = self.row_dims(&mut kernel, &ty);
        let parts = kernel.context.mesh.size_of(&axes);
        let block = kernel.dim(table(&axes, self.blocks_before(parts)), parts - 1, true);
        let mut from = index.clone();
        from[self.axis] = if self.reverse { block.times(-1).offset(parts as i64 - 1) } else { block };
        index[self.axis] = Affine::default();
        let elem = kernel.operand(totals, &from);
        kernel.store_combined(begin, &index, ty.dtype(), elem, Combine::Reduce(self.op));
        lowering.run(kernel);
        begin
    }

    /// Loops over all other dimensions.
    fn row_dims(&self, kernel: &mut KernelBuilder<'_>, ty: &Type) -> Vec<Affine> {
        row_dims(kernel, ty, self.axis)
    }
}

fn row_dims(kernel: &mut KernelBuilder<'_>, ty: &Type, axis: usize) -> Vec<Affine> {
    let blocks = ty.block_shape(kernel.context.mesh);
    let mut index = vec![Affine::default(); ty.rank()];
    for dim in (0..ty.rank()).filter(|&dim| dim != axis) {
        let extent = kernel.context.block_len(ty, dim);
        index[dim] = kernel.dim(extent, blocks[dim], false);
    }
    index
}

impl Semantics for Scan {
    fn name(&self) -> &'static str {
        scan_name(self.op)
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<Vec<usize>> = args[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.operands.push(dims.clone());
        if let Some(totals) = args.get(1) {
            let mut own = dims.clone();
            own[self.axis] = vec![rule.add(totals.shape[self.axis], FactorKind::Whole)];
            rule.operands.push(own);
        }
        rule.results.push(dims);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let (x, dtype, parts) = (args[0], args[0].dtype(), self.parts(args));
        let mut result = x.clone();
        let (firsts, stride) = shape::lines(x.shape(), self.axis);
        let totals = args.get(1).map(|totals| (shape::lines(totals.shape(), self.axis).0, *totals));
        for (row, first) in firsts.into_iter().enumerate() {
            for part in 0..parts {
                let mut running = Running::new(self.op, dtype);
                if let Some((firsts, totals)) = &totals {
                    let before = if self.reverse { part + 1..parts } else { 0..part };
                    for other in in_order(before, self.reverse) {
                        running.take(self.op, dtype, totals.bits[firsts[row] + other * stride]);
                    }
                }
                for place in in_order(block_range(x.shape()[self.axis], parts, part), self.reverse) {
                    let at = first + place * stride;
                    let before = running.bits(dtype);
                    running.take(self.op, dtype, x.bits[at]);
                    result.bits[at] = if self.exclusive { before } else { running.bits(dtype) };
                }
            }
        }
        Ok(vec![result])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let reverse = if self.reverse { ", reverse=true" } else { "" };
        let exclusive = if self.exclusive { ", exclusive=true" } else { "" };
        let totals = args.get(1).map_or_else(String::new, |totals| format!(", totals={totals}"));
        format!("{}({}, axis={}{reverse}{exclusive}{totals})", self.name(), args[0], self.axis)
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for Scan {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        check(self.op, self.axis, args[0])?;
        if self.exclusive && !matches!(self.op, ReduceOp::Sum | ReduceOp::Product) {
            return Err(Mismatch::new(
                Code::E0205,
                format!("`{}` cannot be exclusive: no element precedes the first", self.name()),
            ));
        }
        if let Some(totals) = args.get(1) {
            let mut wanted = args[0].clone();
            wanted.shape[self.axis] = totals.shape.get(self.axis).copied().unwrap_or(0);
            if **totals != wanted || wanted.shape[self.axis] == 0 {
                return Err(Mismatch::new(Code::E0205, format!("{totals} cannot hold the totals of {}", args[0])));
            }
        }
        Ok(vec![args[0].clone()])
    }
}

impl Rules for Scan {
    fn derivative(&self) -> Derivative<'_> {
        match self.op {
            ReduceOp::Sum => Derivative::Linear(self),
            ReduceOp::Product | ReduceOp::Max | ReduceOp::Min => Derivative::Tangents(self),
            ReduceOp::And | ReduceOp::Or => Derivative::Zero,
        }
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(Scan { axis: self.axis + 1, ..self.clone() })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
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

impl WritesStablehlo for Scan {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        if args.len() > 1 {
            return Err(HloGap("running total that begins with given totals".to_string()));
        }
        let (dtype, size) = (results[0].dtype(), results[0].shape[self.axis]);
        if results[0].is_empty() {
            return Ok(vec![args[0].clone()]);
        }
        // Narrow floats are summed in f32.
        let x = hlo.convert(&args[0], dtype.computed());
        let along = match self.reverse {
            false => HloWindowDim { size, before: size - 1, after: 0 },
            true => HloWindowDim { size, before: 0, after: size - 1 },
        };
        let mut windows = vec![HloWindowDim { size: 1, before: 0, after: 0 }; results[0].rank()];
        windows[self.axis] = along;
        let mut totals = hlo.reduce_window(self.op, &x, &windows);
        if self.exclusive {
            // Each total moves to the next element, and the first one is the identity element.
            let kept = if self.reverse { (1, size, 1) } else { (0, size - 1, 1) };
            let moved = hlo.slice_dim(&totals, self.axis, kept);
            let start = hlo.identity(self.op, dtype.computed());
            let mut widths = vec![(0, 0, 0); results[0].rank()];
            widths[self.axis] = if self.reverse { (0, 1, 0) } else { (1, 0, 0) };
            totals = hlo.pad(&moved, &start, &widths);
        }
        Ok(vec![hlo.convert(&totals, dtype)])
    }
}

impl LinearMap for Scan {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, build: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        build.emit1(Scan { reverse: !self.reverse, ..self.clone() }, &[cotangent])
    }
}

impl Tangents for Scan {
    /// Of a largest or smallest element so far, the tangent of that element: equal ones share. Of products, the recurrence
    /// `c[i] = x[i] c[i-1] + y[i-1] t[i]` by doubling, so that zeros need no care. If they are exclusive, `y[i]` is in the place of `y[i-1]`,
    /// and `c` moves on by one place.
    fn tangents(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        given: &[Option<Value>],
    ) -> Result<Vec<Option<Value>>, Diagnostic> {
        let Some(tangent) = given[0] else { return Ok(vec![None]) };
        let turned = |build: &mut CallBuilder, value: Value| match self.reverse {
            true => build.emit1(Flip { axes: vec![self.axis] }, &[value]),
            false => Ok(value),
        };
        let (x, y, t) = (turned(build, stmt.args[0])?, turned(build, stmt.results[0])?, turned(build, tangent)?);
        let shape = build.ty(x).shape().to_vec();
        let size = shape[self.axis];
        let dtype = build.ty(x).dtype();
        // The elements before by some places, behind these numbers.
        let before = |build: &mut CallBuilder, value: Value, by: usize, fill: u64| {
            let kept = slice_dim(build, value, self.axis, SliceRange::between(0, size - by))?;
            let mut widths = vec![(0, 0); shape.len()];
            widths[self.axis] = (by, 0);
            build.emit1(Pad { widths, value: fill }, &[kept])
        };
        let result = if size < 2 && self.exclusive {
            zeros_like(build, t)?
        } else if size < 2 {
            t
        } else if self.op == ReduceOp::Product {
            let previous = if self.exclusive { y } else { before(build, y, 1, dtype.narrow(1.0))? };
            let mut sums = Arithmetic(build).mul(t, previous)?;
            let places = build.emit1(Iota { ty: ArrayType::new(DType::I32, &shape), axis: self.axis }, &[])?;
            // Where nothing lies so many places before, the factor is zero: it may be infinite, and what is not there is zero.
            let behind = |build: &mut CallBuilder, value: Value, by: usize| {
                let [by, zero] = [(DType::I32, by as u64), (dtype, 0)]
                    .map(|(dtype, bits)| build.emit1(Constant::scalar(dtype, bits), &[]));
                let is_first = Arithmetic(build).compare(CompareOp::Lt, places, by?)?;
                Arithmetic(build).select(is_first, zero?, value)
            };
            let mut factors = behind(build, x, 1)?;
            let mut by = 1;
            loop {
                let earlier = before(build, sums, by, 0)?;
                let scaled = Arithmetic(build).mul(earlier, factors)?;
                sums = Arithmetic(build).add(sums, scaled)?;
                if 2 * by >= size {
                    break;
                }
                let (later, earlier) = (behind(build, factors, 2 * by)?, before(build, factors, by, 0)?);
                factors = Arithmetic(build).mul(later, earlier)?;
                by *= 2;
            }
            if self.exclusive { before(build, sums, 1, 0)? } else { sums }
        } else {
            extremes::tangent(build, self, x, y, t)?
        };
        Ok(vec![Some(turned(build, result)?)])
    }
}

impl NestLowering for Scan {
    /// The other dimensions are outer loops, the scanned one the inner loop.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let begin = stmt.args.get(1).map(|&totals| self.lower_begin(lowering, stmt, totals));
        let mut kernel = lowering.kernel();
        let ty = kernel.context.ty(stmt.args[0]);
        let mut index = self.row_dims(&mut kernel, ty);
        let (len, max) = (kernel.context.block_len(ty, self.axis), ty.block_shape(kernel.context.mesh)[self.axis]);
        let place = kernel.dim(len.clone(), max, true);
        let first = match begin {
            Some(begin) => kernel.operand(begin, &index),
            None if self.op == ReduceOp::Sum => kernel.constant(ty.dtype(), number::nothing_added(ty.dtype())),
            None => kernel.constant(ty.dtype(), number::identity_element(self.op, ty.dtype())),
        };
        let last = kernel.scalar_affine(len).offset(-1);
        index[self.axis] = if self.reverse { last.plus(&place.times(-1)) } else { place };
        let elem = kernel.operand(stmt.args[0], &index);
        let combine = Combine::Scan { op: self.op, first, exclusive: self.exclusive };
        kernel.store_combined(stmt.results[0], &index, ty.dtype(), elem, combine);
        lowering.run(kernel);
        Ok(())
    }

    fn reads(&self, operand: usize, _: &[&ArrayType]) -> Reads {
        if operand == 0 { Reads::Once } else { Reads::Buffer }
    }
}

impl Semantics for BlockTotals {
    fn name(&self) -> &'static str {
        "block_totals"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::OfBlocks(self)
    }

    /// Each block has one total; `place` puts it on the device of the block.
    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<Vec<usize>> = args[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        let mut totals = dims.clone();
        totals[self.axis] = vec![rule.add(self.parts, FactorKind::Pass)];
        rule.operands.push(dims);
        rule.results.push(totals);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let (x, dtype) = (args[0], args[0].dtype());
        let mut ty = x.ty.clone();
        ty.shape[self.axis] = self.parts;
        let mut result = Array::new(ty.clone(), vec![0; ty.len()]);
        let (firsts, stride) = shape::lines(x.shape(), self.axis);
        for (from, to) in firsts.into_iter().zip(shape::lines(&ty.shape, self.axis).0) {
            for part in 0..self.parts {
                let mut running = Running::new(self.op, dtype);
                for place in block_range(x.shape()[self.axis], self.parts, part) {
                    running.take(self.op, dtype, x.bits[from + place * stride]);
                }
                result.bits[to + part * stride] = running.bits(dtype);
            }
        }
        Ok(vec![result])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("block_totals({}, of={:?}, axis={}, parts={})", args[0], scan_name(self.op), self.axis, self.parts)
    }

    fn flops(&self, args: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        args[0].len() as u64
    }
}

impl PlacesResults for BlockTotals {
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        let ty = args[0];
        check(self.op, self.axis, &ty.array)?;
        let layout = &ty.sharding.dims[self.axis];
        if layout.alignment.is_some() || mesh.size_of(&layout.axes) != self.parts {
            let message =
                format!("{} is not split into {} blocks along axis {}", ty.display(mesh), self.parts, self.axis);
            return Err(Mismatch::new(Code::E0205, message));
        }
        let mut totals = ty.clone();
        totals.array.shape[self.axis] = self.parts;
        Ok(vec![totals])
    }
}

impl Rules for BlockTotals {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Missing
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
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
        Exported::AfterPartitioning
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl NestLowering for BlockTotals {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let mut kernel = lowering.kernel();
        let ty = kernel.context.ty(stmt.args[0]);
        let result = row_dims(&mut kernel, ty, self.axis);
        let (len, max) = (kernel.context.block_len(ty, self.axis), ty.block_shape(kernel.context.mesh)[self.axis]);
        let mut index = result.clone();
        index[self.axis] = kernel.dim(len, max, true);
        let elem = kernel.operand(stmt.args[0], &index);
        kernel.store_combined(stmt.results[0], &result, ty.dtype(), elem, Combine::Reduce(self.op));
        lowering.run(kernel);
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Call for Scan {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// For each element, the sum of the elements up to and including it; without an axis, of the flattened array.
        cumsum(x: Array, axis: Int = None, reverse: Bool = false, [named] dtype: ElementType = None,
            [in_dumps "leave it out"] exclusive: Bool = false, [in_dumps "leave it out"] totals: Array = None),
            NumbersAndBools, Planes(x), "(x: f32[4, 6]) { cumsum(x, axis=1) }";
        /// For each element, the product of the elements up to and including it; without an axis, of the flattened array.
        cumprod(x: Array, axis: Int = None, reverse: Bool = false, [named] dtype: ElementType = None,
            [in_dumps "leave it out"] exclusive: Bool = false, [in_dumps "leave it out"] totals: Array = None),
            NumbersAndBools, Written, "(x: f32[4, 6]) { cumprod(x, axis=0) }";
        /// For each element, the largest of the elements up to and including it.
        cummax(x: Array, axis: Int = 0, reverse: Bool = false, [in_dumps "leave it out"] totals: Array = None), Numbers, Refused(ORDER), "(x: f32[4, 6]) { cummax(x, axis=1) }";
        /// For each element, the smallest of the elements up to and including it.
        cummin(x: Array, axis: Int = 0, reverse: Bool = false, [in_dumps "leave it out"] totals: Array = None), Numbers, Refused(ORDER), "(x: f32[4, 6]) { cummin(x, axis=1, reverse=true) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let op = scan_op(name).expect("the table gives this op the names of scans only");
        let mut value = args.array(build, "x")?;
        let axis = args.optional_int("axis")?;
        let reverse = args.optional_bool("reverse")?.unwrap_or(false);
        let mut result = build.ty(value).dtype();
        let mut exclusive = false;
        if matches!(op, ReduceOp::Sum | ReduceOp::Product) {
            exclusive = args.optional_bool("exclusive")?.unwrap_or(false);
            let asked = args.optional_dtype("dtype")?;
            let dtype = asked.unwrap_or(result);
            result = asked.unwrap_or(if dtype == DType::Bool { accumulated(dtype) } else { dtype });
            // Small integers wrap in the same way at the end; the totals of narrow floats may exceed the largest number.
            value = cast(build, value, dtype)?;
            value = cast(build, value, summed_in(dtype))?;
            if axis.is_none() {
                let len = build.ty(value).array.len();
                value = reshape(build, value, &[len])?;
            }
        }
        let axis = shape::axes(&[axis.unwrap_or(0)], build.ty(value).rank(), args.span)?[0];
        let mut operands = vec![value];
        if let Some(totals) = args.take("totals") {
            operands.push(build.materialize(&totals.term, None, totals.span)?);
        }
        let scanned = build.emit1(Scan { op, axis, reverse, exclusive }, &operands)?;
        Ok(Term::Array(cast(build, scanned, result)?))
    }
}

impl Call for BlockTotals {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The totals of the blocks of a split dimension.
        block_totals(x: Array, of: String, axis: Int, parts: Int) in_dumps "" "write `cumsum` or the like";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let (of, axis, parts) = (args.string("of")?, args.int("axis")?, args.int("parts")?);
        let (Some(op), Ok(axis), Ok(parts)) = (scan_op(&of), usize::try_from(axis), usize::try_from(parts)) else {
            return Err(Diagnostic::error(
                Code::E0227,
                args.span,
                "the attributes of `block_totals` do not match a scan",
            ));
        };
        Ok(Term::Array(build.emit1(BlockTotals { op, axis, parts }, &[value])?))
    }
}
