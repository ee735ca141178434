//! `concatenate` and `stack`: arrays one after another along a dimension.
//!
//! Factors: each operand is a part of the joined dimension, and is needed where that part of the result is; all other dimensions
//! pass.

use crate::cast::cast;
use crate::promote::{self, common_dtype, to_dtype};
use crate::reshape::{self, reshape};
use crate::slice::{SliceRange, slice_dim};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_grammar::span::Span;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::{Operand, Term};
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, Properties, Reads,
    Rules, Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_layout::blocks::table;
use spmdc_layout::factors::{FactorKind, FactorRange, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// `concatenate([x, y], axis=0)`: the operands one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Concatenate {
    /// The dimension along which they are joined; the sizes of all others are equal.
    pub axis: usize,
}

impl Semantics for Concatenate {
    fn name(&self) -> &'static str {
        "concatenate"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let kind = |dim| if dim == self.axis { FactorKind::Window } else { FactorKind::Pass };
        let sizes = results[0].shape.iter().enumerate();
        let dims: Vec<Vec<usize>> = sizes.map(|(dim, &size)| vec![rule.add(size, kind(dim))]).collect();
        let mut start = 0;
        for (operand, arg) in args.iter().enumerate() {
            rule.operands.push(dims.clone());
            rule.parts.push(FactorRange { operand, dim: self.axis, start, step: 1 });
            start += arg.shape[self.axis];
        }
        rule.results.push(dims);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let outer: usize = args[0].shape()[..self.axis].iter().product();
        let mut ty = args[0].ty.clone();
        ty.shape[self.axis] = args.iter().map(|arg| arg.shape()[self.axis]).sum();
        let mut bits = Vec::with_capacity(ty.len());
        for row in 0..outer {
            for arg in args {
                let len: usize = arg.shape()[self.axis..].iter().product();
                bits.extend_from_slice(&arg.bits[row * len..(row + 1) * len]);
            }
        }
        Ok(vec![Array::new(ty, bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("concatenate([{}], axis={})", args.join(", "), self.axis)
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Concatenate {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let first = args[0];
        let mut result = first.clone();
        for other in &args[1..] {
            let dims = || first.shape.iter().zip(&other.shape).enumerate();
            let same = other.rank() == first.rank() && dims().all(|(dim, (a, b))| dim == self.axis || a == b);
            if !same {
                let message = format!("{first} and {other} cannot be concatenated along dimension {}", self.axis);
                return Err(Mismatch::new(Code::E0205, message).help("all other dimensions must be equal"));
            }
            if other.dtype != first.dtype {
                return Err(Mismatch::new(Code::E0203, format!("{first} and {other} have different element types")));
            }
            result.shape[self.axis] += other.shape[self.axis];
        }
        Ok(vec![result])
    }
}

impl Rules for Concatenate {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(Concatenate { axis: self.axis + 1 })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::Together,
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

impl WritesStablehlo for Concatenate {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.concatenate(args, self.axis)])
    }
}

impl LinearMap for Concatenate {
    fn linearity(&self, stmt: &Stmt) -> Linearity {
        Linearity::Together((0..stmt.args.len()).collect())
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        at: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let len = |&arg: &Value| build.ty(arg).shape()[self.axis];
        let (start, len) = (stmt.args[..at].iter().map(len).sum(), len(&stmt.args[at]));
        slice_dim(build, cotangent, self.axis, SliceRange { start, step: 1, len })
    }
}

impl NestLowering for Concatenate {
    /// Copies each operand: a device's part of it is a part of its block of the result.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let result = stmt.results[0];
        let mut at = 0;
        for &arg in &stmt.args {
            let size = lowering.ty(arg).shape()[self.axis];
            if !lowering.ty(arg).shape().contains(&0) {
                let mut kernel = lowering.kernel();
                let (ty, to_ty) = (kernel.context.ty(arg), kernel.context.ty(result));
                let from = kernel.block_dims(ty, false);
                let (layout, mesh) = (&to_ty.sharding.dims[self.axis], kernel.context.mesh);
                let blocks = layout.blocks(to_ty.shape()[self.axis], mesh);
                let own = ty.sharding.dims[self.axis].blocks(size, mesh);
                let distances =
                    blocks.iter().zip(&own).map(|(block, own)| (at + own.start) as i64 - block.start as i64);
                let distance = kernel.scalar_affine(table(&layout.axes, distances.collect()));
                let mut to = from.clone();
                to[self.axis] = to[self.axis].plus(&distance);
                let elem = kernel.operand(arg, &from);
                kernel.store(result, &to, elem);
                lowering.run(kernel);
            }
            at += size;
        }
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// The arrays of a list or tuple, converted to one element type.
fn operands(args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Vec<Value>, Diagnostic> {
    let arg = args.required(args.signature().params[0].name)?;
    let Some(items) = arg.term.sequence() else {
        let message = requires(format_args!("`{}`", args.function), "a list of arrays", arg.term.describe());
        return Err(
            Diagnostic::error(Code::E0210, arg.span, message).help("write the arrays in brackets, as in [a, b]")
        );
    };
    if items.is_empty() {
        return Err(Diagnostic::error(
            Code::E0201,
            arg.span,
            format!("`{}` requires at least one array", args.function),
        ));
    }
    let operands: Vec<_> = items.iter().map(|item| (item, arg.span)).collect();
    promote::promoted(build, &operands)
}

/// Concatenates arrays, at least one, leaving out empty ones.
pub fn concatenate(build: &mut CallBuilder, values: &[Value], axis: usize) -> Result<Value, Diagnostic> {
    assert!(!values.is_empty(), "no arrays have no element type");
    if values.len() == 1 {
        return Ok(values[0]);
    }
    Concatenate { axis }.infer(&build.func().arrays(values)).map_err(|mismatch| build.mismatch(mismatch))?;
    let filled: Vec<Value> = values.iter().copied().filter(|&value| build.ty(value).shape()[axis] > 0).collect();
    match filled.as_slice() {
        [] => Ok(values[0]),
        [one] => Ok(*one),
        several => build.emit1(Concatenate { axis }, several),
    }
}

/// `hstack` and `vstack`: operands with few dimensions get the missing ones.
fn beside_or_below(
    beside: bool,
    args: &mut Args<'_>,
    build: &mut CallBuilder,
    mut values: Vec<Value>,
) -> Result<Value, Diagnostic> {
    let dtype = args.optional_dtype("dtype")?;
    let least = if beside { 1 } else { 2 };
    for value in &mut values {
        let shape = build.ty(*value).shape().to_vec();
        let missing = usize::saturating_sub(least, shape.len());
        *value = reshape::reshape(build, *value, &[vec![1; missing], shape].concat())?;
        if let Some(dtype) = dtype {
            *value = cast(build, *value, dtype)?;
        }
    }
    let axis = usize::from(beside && build.ty(values[0]).rank() > 1);
    concatenate(build, &values, axis)
}

impl Call for Concatenate {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The arrays joined along a dimension; with `axis=None` the flattened arrays.
        concatenate(arrays: Of("list of arrays"), axis: Of("int or None") = 0), Any, Planes(arrays), "(x: f32[4, 6], y: f32[2, 6]) { concatenate([x, y]) }";
        /// The arrays joined along the second dimension, or along the only one.
        hstack(tup: Of("list of arrays"), [named] dtype: ElementType = None), Any, Planes(tup), "(x: f32[4, 6], y: f32[4, 2]) { hstack([x, y]) }";
        /// The arrays joined along the first dimension; a one-dimensional array is a row.
        vstack(tup: Of("list of arrays"), [named] dtype: ElementType = None), Any, Planes(tup), "(x: f32[4, 6], y: f32[6]) { vstack([x, y]) }";
        /// Arrays of one shape along a new dimension.
        stack(arrays: Of("list of arrays"), axis: Int = 0), Any, Planes(arrays), "(x: f32[4, 6], y: f32[4, 6]) { stack([x, y], axis=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let mut values = operands(args, build)?;
        if name == "hstack" || name == "vstack" {
            return Ok(Term::Array(beside_or_below(name == "hstack", args, build, values)?));
        }
        if name == "concatenate" && args.peek("axis").is_some_and(|arg| matches!(arg.term, Term::Nothing)) {
            // `axis=None` joins the flattened arrays.
            for value in &mut values {
                let len = build.ty(*value).array.len();
                *value = reshape::reshape(build, *value, &[len])?;
            }
            return Ok(Term::Array(concatenate(build, &values, 0)?));
        }
        let axis = args.optional_int("axis")?.unwrap_or(0);
        let rank = build.ty(values[0]).rank();
        if name == "concatenate" {
            let axis = shape::axis(axis, rank, args.span)?;
            return Ok(Term::Array(concatenate(build, &values, axis)?));
        }
        let axis = shape::axis(axis, rank + 1, args.span)?;
        let sizes = build.ty(values[0]).shape().to_vec();
        for value in &mut values {
            if build.ty(*value).shape() != sizes {
                let (first, other) = (shape::display(&sizes), shape::display(build.ty(*value).shape()));
                let message = requires("`stack`", "arrays of the same shape", format_args!("{first} and {other}"));
                return Err(Diagnostic::error(Code::E0205, args.span, message));
            }
            let mut wider = sizes.clone();
            wider.insert(axis, 1);
            *value = reshape::reshape(build, *value, &wider)?;
        }
        Ok(Term::Array(concatenate(build, &values, axis)?))
    }
}

/// `[a, b]` as an array: its elements stacked along a new first dimension, of `dtype` if given.
pub fn stacked(build: &mut CallBuilder, items: &[Term], dtype: Option<DType>, span: Span) -> Result<Value, Diagnostic> {
    if items.is_empty() {
        return Err(Diagnostic::error(Code::E0210, span, "expected a list of arrays, found an empty one"));
    }
    let operands: Vec<Operand<'_>> = items.iter().map(|item| (item, span)).collect();
    let dtype = match dtype {
        Some(dtype) => dtype,
        None => common_dtype(build, &operands)?,
    };
    let mut parts = Vec::new();
    for &operand in &operands {
        let part = to_dtype(build, operand, dtype)?;
        let shape = [&[1], build.ty(part).shape()].concat();
        if parts.first().is_some_and(|&first| build.ty(first).shape() != shape) {
            return Err(Diagnostic::error(Code::E0205, span, "the arrays of this list have different shapes"));
        }
        parts.push(reshape(build, part, &shape)?);
    }
    concatenate(build, &parts, 0)
}
