//! `roll(x, shift, axis)`: rotates elements along dimensions, which are windows: devices fetch elements from other devices.

use crate::cast::cast;
use crate::concatenate::concatenate;
use crate::elementwise::binary;
use crate::gather::Gather;
use crate::iota::Iota;
use crate::slice::{SliceRange, slice_dim};
use crate::{reshape, window};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::{Arg, as_ints};
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing, Windowed,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_layout::window::{DimMap, WindowMap};

/// `roll(x, (1,0), axis=(0,1))`: along each dimension the elements move towards the end, and elements that pass it move to the front.
#[derive(Clone, Debug, PartialEq)]
pub struct Roll {
    /// For each dimension the distance that its elements move, from 0 up to its size.
    pub shifts: Vec<usize>,
}

impl Semantics for Roll {
    fn name(&self) -> &'static str {
        "roll"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        window::factors(&self.map(args[0]), args)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let sizes = args[0].shape();
        let strides = shape::strides(sizes);
        let mut bits = args[0].bits.clone();
        for (index, &from) in indices(sizes).zip(&args[0].bits) {
            let dims = index.iter().zip(&self.shifts).zip(sizes.iter().zip(&strides));
            bits[dims.map(|((at, shift), (size, stride))| (at + shift) % size * stride).sum::<usize>()] = from;
        }
        Ok(vec![Array::new(args[0].ty.clone(), bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let axes: Vec<usize> = (0..self.shifts.len()).collect();
        format!("roll({}, {}, axis={})", args[0], shape::tuple(&self.shifts), shape::tuple(&axes))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Roll {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(vec![args[0].clone()])
    }
}

impl Rules for Roll {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(Roll { shifts: [&[0], self.shifts.as_slice()].concat() })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::Together,
            combines: Combines::Nothing,
            elements: Elements::Window(self),
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

impl WritesStablehlo for Roll {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let mut x = args[0].clone();
        for (dim, &shift) in self.shifts.iter().enumerate() {
            let size = results[0].shape[dim];
            if shift == 0 || shift >= size {
                continue;
            }
            let end = hlo.slice_dim(&x, dim, (size - shift, size, 1));
            let start = hlo.slice_dim(&x, dim, (0, size - shift, 1));
            x = hlo.concatenate(&[end, start], dim);
        }
        Ok(vec![x])
    }
}

impl LinearMap for Roll {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, build: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        let sizes = build.ty(cotangent).shape();
        let back = |(&shift, &size): (&usize, &usize)| if shift == 0 { 0 } else { size - shift };
        let shifts = self.shifts.iter().zip(sizes).map(back).collect();
        build.emit1(Roll { shifts }, &[cotangent])
    }
}

impl Point for Roll {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let map = self.map(&kernel.context.ty(stmt.args[0]).array);
        window::point(kernel, stmt, &map, &[], index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Windowed for Roll {
    fn window(&self, args: &[&ArrayType]) -> WindowMap {
        self.map(args[0])
    }
}

impl Roll {
    fn map(&self, x: &ArrayType) -> WindowMap {
        let dim = |(&size, &shift): (&usize, &usize)| match shift {
            0 => DimMap::identity(size),
            shift => DimMap { start: size - shift, ..DimMap::identity(size) },
        };
        WindowMap { dims: x.shape.iter().zip(&self.shifts).map(dim).collect(), fill: 0 }
    }
}

/// An array of these sizes whose elements are rotated in row-major order, by way of the flattened array.
fn flat(build: &mut CallBuilder, value: Value, shift: usize, sizes: &[usize]) -> Result<Value, Diagnostic> {
    let line = reshape::reshape(build, value, &[sizes.iter().product()])?;
    let rolled = build.emit1(Roll { shifts: vec![shift] }, &[line])?;
    reshape::reshape(build, rolled, sizes)
}

/// Rotates the elements of the first `dims` dimensions in row-major order: the last of these dimensions by the remainder of
/// `shift`, with a carry into the dimensions before it.
fn carried(build: &mut CallBuilder, value: Value, shift: usize, dims: usize) -> Result<Value, Diagnostic> {
    let sizes = build.ty(value).shape().to_vec();
    let Some(last) = dims.checked_sub(1).filter(|_| shift > 0) else { return Ok(value) };
    let (rest, places) = (shift % sizes[last], shift / sizes[last]);
    if last == 0 || rest == 0 {
        let mut shifts = vec![0; sizes.len()];
        shifts[last] = rest;
        let value = if rest > 0 { build.emit1(Roll { shifts }, &[value])? } else { value };
        return carried(build, value, places, last);
    }
    let cut = sizes[last] - rest;
    let mut parts = Vec::new();
    for (from, to, places) in [(cut, sizes[last], places + 1), (0, cut, places)] {
        let part = slice_dim(build, value, last, SliceRange::between(from, to))?;
        parts.push(carried(build, part, places, last)?);
    }
    concatenate(build, &parts, last)
}

/// A roll by amounts known at run time: a gather of each element from its place before.
fn rolled_dynamically(
    args: &mut Args<'_>,
    build: &mut CallBuilder,
    value: Value,
    shift: &Arg,
) -> Result<Term, Diagnostic> {
    let sizes = build.ty(value).shape().to_vec();
    let shifts = shift.term.one_or_more();
    let (mut value, axes) = match args.optional_ints("axis")? {
        Some(axes) => (value, axes),
        None => (reshape::reshape(build, value, &[sizes.iter().product()])?, vec![0]),
    };
    if shifts.len() != axes.len() && shifts.len() != 1 {
        let message = format!("`roll` needs one shift per axis: got {} shifts for {} axes", shifts.len(), axes.len());
        return Err(Diagnostic::error(Code::E0206, args.span, message));
    }
    for (at, &axis) in axes.iter().enumerate() {
        let axis = shape::axis(axis, build.ty(value).rank(), args.span)?;
        let size = build.ty(value).shape()[axis];
        if size == 0 {
            continue;
        }
        let by = build.materialize(&shifts[at.min(shifts.len() - 1)], None, shift.span)?;
        let ty = build.ty(by).array.clone();
        if ty.rank() > 0 || !ty.dtype.is_integer() {
            return Err(Diagnostic::error(Code::E0203, shift.span, must_be("a shift", "an integer", &ty)));
        }
        let op = |build: &mut CallBuilder, op: BinaryOp, lhs: Value, rhs: &Term| {
            binary(build, op, (&Term::Array(lhs), shift.span), (rhs, shift.span))
        };
        // The remainder first: a difference of indices may be beyond i64.
        let by = cast(build, by, if ty.dtype == DType::U64 { DType::U64 } else { DType::I64 })?;
        let by = op(build, BinaryOp::Rem, by, &Term::Int(size as i128))?;
        let by = cast(build, by, DType::I64)?;
        let places = build.emit1(Iota { ty: ArrayType::new(DType::I64, &[size]), axis: 0 }, &[])?;
        let places = op(build, BinaryOp::Sub, places, &Term::Array(by))?;
        let places = op(build, BinaryOp::Rem, places, &Term::Int(size as i128))?;
        value = build.emit1(Gather::new(vec![axis], Vec::new(), axis), &[value, places])?;
    }
    Ok(Term::Array(reshape::reshape(build, value, &sizes)?))
}

impl Call for Roll {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The elements moved cyclically by the given number of positions; without an axis, in the flattened array.
        roll(x: Array, shift: Of("integers"), axis: Ints = None), Any, Planes(x), "(x: f32[4, 6]) { roll(x, 1, axis=1) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let shift = args.required("shift")?;
        if shift.term.one_or_more().iter().any(|term| matches!(term, Term::Array(_))) {
            return rolled_dynamically(args, build, value, &shift);
        }
        let given = as_ints(&shift, "shift")?;
        let sizes = build.ty(value).shape().to_vec();
        let Some(axes) = args.optional_ints("axis")? else {
            // Without an axis the elements are rotated in row-major order.
            let len = sizes.iter().product::<usize>().max(1) as i64;
            let shift = given.iter().sum::<i64>().rem_euclid(len) as usize;
            if shift == 0 {
                return Ok(Term::Array(value));
            }
            let rolled = match flat(build, value, shift, &sizes) {
                // The blocks are not blocks of the flattened array: the dimensions are rolled with carry.
                Err(_) if build.take_conflict().is_some() => carried(build, value, shift, sizes.len())?,
                rolled => rolled?,
            };
            return Ok(Term::Array(rolled));
        };
        if axes.len() != given.len() && given.len() != 1 {
            let message =
                format!("`roll` needs one shift per axis: got {} shifts for {} axes", given.len(), axes.len());
            return Err(Diagnostic::error(Code::E0206, args.span, message));
        }
        let mut shifts = vec![0i64; sizes.len()];
        for (at, &axis) in axes.iter().enumerate() {
            let dim = shape::axis(axis, sizes.len(), args.span)?;
            shifts[dim] += given[at.min(given.len() - 1)];
        }
        let shifts = shifts.iter().zip(&sizes).map(|(shift, &size)| shift.rem_euclid(size.max(1) as i64) as usize);
        Ok(Term::Array(build.emit1(Roll { shifts: shifts.collect() }, &[value])?))
    }
}
