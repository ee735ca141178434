//! Discrete Fourier transforms of lines along a dimension: `fft_lines fft_of_real fft_to_real`.
//!
//! Complex numbers are two operands or results, the real and the imaginary plane; the transform of real numbers has one operand. The
//! transforms are not scaled: an inverse after a transform multiplies by the number of points. Norms, sizes and several dimensions are
//! implemented in the language: `compiler/functions/prelude/spectral.spmd`.
//!
//! The transform of real numbers and its inverse have the same number of elements on both sides, so that both are split in the same way.
//! The order is the real parts of the elements 0 to n/2, then the imaginary parts of the elements before n/2, from the last to the first
//! (the order of FFTW's half-complex transforms).
//!
//! Every dimension passes through. A device transforms the lines of its own block, by a function of the runtime. If the dimension is split,
//! `distribute_transforms` moves the split to another dimension first.

use spmdc_abi::{LibraryFunction, Transform};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{requires, undefined};
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::calls::LibraryCalls;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Func, Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, JointMap, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Definitions, Effect, Elements, Infer, Library, Linear, Lowered, Manual, NamedAxes, NestLowering,
    Placement, Properties, Reads, Rules, Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloElement, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::cost;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::broadcast::{broadcast, filled};
use spmdc_ops::concatenate::concatenate;
use spmdc_ops::constant::Constant;
use spmdc_ops::flip::Flip;
use spmdc_ops::iota::Iota;
use spmdc_ops::reshape::reshape;
use spmdc_ops::slice::{Slice, SliceRange};
use std::f64::consts::TAU;

/// The transform of each line along a dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Fft {
    /// The dimension of the lines.
    pub axis: usize,
    /// The transform of one line.
    pub transform: Transform,
}

impl Fft {
    /// The numbers of operands and results.
    fn counts(&self, operands: usize) -> Option<usize> {
        match (self.transform, operands) {
            (Transform::Complex { .. }, 1 | 2) => Some(2),
            (Transform::OfReal | Transform::ToReal, 1) => Some(1),
            (Transform::Complex { .. } | Transform::OfReal | Transform::ToReal, _) => None,
        }
    }

    /// The transform of one line, whose operands have the numbers `re` and `im`.
    fn line(&self, re: &[f64], im: &[f64]) -> [Vec<f64>; 2] {
        let n = re.len();
        let sign = match self.transform {
            Transform::Complex { inverse: true } | Transform::ToReal => 1.0,
            Transform::Complex { inverse: false } | Transform::OfReal => -1.0,
        };
        let turns: Vec<(f64, f64)> = (0..n)
            .map(|at| {
                let (sin, cos) = (sign * TAU * at as f64 / n as f64).sin_cos();
                (cos, sin)
            })
            .collect();
        // So many numbers at once: each waits for its last sum, not for the others.
        const NUMBERS: usize = 4;
        let mut results = [Vec::with_capacity(n), Vec::with_capacity(n)];
        for first in (0..n).step_by(NUMBERS) {
            let steps: [usize; NUMBERS] = std::array::from_fn(|number| (first + number) % n);
            let mut sums = [[0.0; 2]; NUMBERS];
            // Each step times `at`, modulo `n`.
            let mut places = [0; NUMBERS];
            for (&re, &im) in re.iter().zip(im) {
                for ((sum, place), step) in sums.iter_mut().zip(&mut places).zip(steps) {
                    let (cos, sin) = turns[*place];
                    *place = if *place + step < n { *place + step } else { *place + step - n };
                    sum[0] += re * cos - im * sin;
                    sum[1] += re * sin + im * cos;
                }
            }
            for sum in &sums[..NUMBERS.min(n - first)] {
                results[0].push(sum[0]);
                results[1].push(sum[1]);
            }
        }
        results
    }

    /// The results for one line of each operand.
    fn apply(&self, operands: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let n = operands[0].len();
        match self.transform {
            Transform::Complex { .. } => {
                let zeros = vec![0.0; n];
                self.line(&operands[0], operands.get(1).unwrap_or(&zeros)).into()
            }
            Transform::OfReal => {
                let [re, im] = self.line(&operands[0], &vec![0.0; n]);
                let tail = im[1..n.div_ceil(2)].iter().rev();
                vec![re[..=n / 2].iter().chain(tail).copied().collect()]
            }
            Transform::ToReal => {
                let packed = &operands[0];
                let (mut re, mut im) = (packed.clone(), vec![0.0; n]);
                for at in n / 2 + 1..n {
                    re[at] = packed[n - at];
                    (im[n - at], im[at]) = (packed[at], -packed[at]);
                }
                let [real, _] = self.line(&re, &im);
                vec![real]
            }
        }
    }
}

impl Infer for Fft {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let name = self.name();
        let (Some(first), Some(results)) = (args.first(), self.counts(args.len())) else {
            let message = requires(format_args!("`{name}`"), "one or two planes", args.len());
            return Err(Mismatch::new(Code::E0205, message));
        };
        if self.axis >= first.rank() {
            return Err(Mismatch::new(Code::E0206, format!("`{name}` cannot transform axis {} of {first}", self.axis)));
        }
        if let Some(other) = args.iter().find(|other| **other != *first) {
            return Err(Mismatch::new(
                Code::E0205,
                format!("the planes of `{name}` have different types: {first} and {other}"),
            ));
        }
        if !matches!(first.dtype, DType::F32 | DType::F64) {
            return Err(Mismatch::new(Code::E0215, undefined(format_args!("`{name}`"), first.dtype.name())));
        }
        if first.shape[self.axis] == 0 {
            return Err(Mismatch::new(Code::E0205, requires("a Fourier transform", "at least one point", first)));
        }
        Ok(vec![(*first).clone(); results])
    }
}

impl Semantics for Fft {
    fn name(&self) -> &'static str {
        match self.transform {
            Transform::Complex { .. } => "fft_lines",
            Transform::OfReal => "fft_of_real",
            Transform::ToReal => "fft_to_real",
        }
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<Vec<usize>> = args[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.operands = vec![dims.clone(); args.len()];
        rule.results = vec![dims; results.len()];
        rule
    }

    /// By the definition, in f64.
    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let ty = &args[0].ty;
        let elements: Vec<Vec<f64>> = args.iter().map(|arg| arg.floats()).collect();
        let count = self.counts(args.len()).expect("the statement has been typed");
        let mut results = vec![vec![0.0; ty.len()]; count];
        let size = ty.shape[self.axis];
        let (firsts, stride) = shape::lines(&ty.shape, self.axis);
        for first in firsts {
            let line = |all: &Vec<f64>| (0..size).map(|at| all[first + at * stride]).collect::<Vec<f64>>();
            let made = self.apply(&elements.iter().map(line).collect::<Vec<_>>());
            for (result, made) in results.iter_mut().zip(made) {
                for (at, element) in made.into_iter().enumerate() {
                    result[first + at * stride] = element;
                }
            }
        }
        Ok(results.iter().map(|elements| Array::from_floats(ty.dtype, &ty.shape, elements)).collect())
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let inverse = if self.transform == (Transform::Complex { inverse: true }) { ", inverse=true" } else { "" };
        format!("{}({}, axis={}{inverse})", self.name(), args.join(", "), self.axis)
    }

    /// 5 n log2 n for each line, half of it for real ones, as is usual.
    fn flops(&self, args: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        let n = args[0].shape[self.axis].max(2) as f64;
        let each = match self.transform {
            Transform::Complex { .. } => 5.0,
            Transform::OfReal | Transform::ToReal => 2.5,
        };
        (args[0].len() as f64 * each * n.log2()) as u64
    }
}

impl Rules for Fft {
    fn derivative(&self) -> Derivative<'_> {
        match self.transform {
            Transform::Complex { .. } => Derivative::Joint(self),
            Transform::OfReal | Transform::ToReal => Derivative::Linear(self),
        }
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(Fft { axis: self.axis + 1, ..self.clone() })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Library(self)
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

impl WritesStablehlo for Fft {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let rank = args[0].ty.rank();
        let n = args[0].ty.shape[self.axis];
        // The lines are the last dimension, and return to their place.
        let mut order: Vec<usize> = (0..rank).filter(|&dim| dim != self.axis).chain([self.axis]).collect();
        let mut planes = Vec::new();
        for arg in args {
            planes.push(hlo.transpose(arg, &order));
        }
        let ty = planes[0].ty.clone();
        let half = |len: usize| {
            let mut shape = ty.shape.clone();
            shape[rank - 1] = len;
            shape
        };
        let last = rank - 1;
        let made = match self.transform {
            Transform::Complex { inverse } => {
                let im = match planes.get(1) {
                    Some(im) => im.clone(),
                    None => hlo.whole_like(&planes[0], 0),
                };
                let z = hlo.complex(&planes[0], &im);
                let z = hlo.fft(if inverse { "IFFT" } else { "FFT" }, &z, n, z.ty.clone());
                let mut made = hlo.planes(&z).to_vec();
                if inverse {
                    let scale = hlo.whole_like(&made[0], n as i64);
                    made = made.iter().map(|plane| hlo.binary("stablehlo.multiply", plane, &scale)).collect();
                }
                made
            }
            Transform::OfReal => {
                let to = HloType { element: HloElement::Complex(ty.dtype()), shape: half(n / 2 + 1) };
                let z = hlo.fft("RFFT", &planes[0], n, to);
                let [re, im] = hlo.planes(&z);
                let im = hlo.slice_dim(&im, last, (1, n.div_ceil(2), 1));
                let im = hlo.reverse(&im, &[last]);
                vec![if im.ty.is_empty() { re } else { hlo.concatenate(&[re, im], last) }]
            }
            Transform::ToReal => {
                let re = hlo.slice_dim(&planes[0], last, (0, n / 2 + 1, 1));
                let im = hlo.slice_dim(&planes[0], last, (n / 2 + 1, n, 1));
                let im = hlo.reverse(&im, &[last]);
                let zero = hlo.whole(ty.dtype(), 0, &[]);
                let mut widths = vec![(0, 0, 0); rank];
                widths[last] = (1, n / 2 + 1 - 1 - im.ty.shape[last], 0);
                let im = hlo.pad(&im, &zero, &widths);
                let z = hlo.complex(&re, &im);
                let real = hlo.fft("IRFFT", &z, n, ty.clone());
                let scale = hlo.whole_like(&real, n as i64);
                vec![hlo.binary("stablehlo.multiply", &real, &scale)]
            }
        };
        let inverse: Vec<usize> =
            (0..rank).map(|dim| order.iter().position(|&from| from == dim).unwrap_or(dim)).collect();
        order = inverse;
        let count = results.len();
        Ok(made.iter().take(count).map(|plane| hlo.transpose(plane, &order)).collect())
    }
}

impl JointMap for Fft {
    /// The transform with turns in the other direction.
    fn transposed(&self, build: &mut CallBuilder, stmt: &Stmt, cotangents: &[Value]) -> Result<Vec<Value>, Diagnostic> {
        let Transform::Complex { inverse } = self.transform else {
            unreachable!("transforms of real numbers have one result");
        };
        let back = Fft { axis: self.axis, transform: Transform::Complex { inverse: !inverse } };
        let mut planes = build.emit(back, cotangents)?;
        planes.truncate(stmt.args.len());
        Ok(planes)
    }
}

impl LinearMap for Fft {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    /// A number of the half-complex order counts twice in the real numbers, as its conjugate does, unless it is its own.
    fn transposed(&self, build: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        let shape = build.ty(cotangent).shape().to_vec();
        let n = shape[self.axis];
        let ty = ArrayType::new(DType::I32, &[n]);
        let place = build.emit1(Iota { ty, axis: 0 }, &[])?;
        let number =
            |build: &mut CallBuilder, number: usize| build.emit1(Constant::scalar(DType::I32, number as u64), &[]);
        let zero = number(build, 0)?;
        let mut is_own = Arithmetic(build).compare(CompareOp::Eq, place, zero)?;
        if n.is_multiple_of(2) {
            let middle = number(build, n / 2)?;
            let is_middle = Arithmetic(build).compare(CompareOp::Eq, place, middle)?;
            is_own = Arithmetic(build).binary(BinaryOp::Or, is_own, is_middle)?;
        }
        let to_real = self.transform == Transform::OfReal;
        let (one, other) = (
            Arithmetic(build).number(cotangent, 1.0)?,
            Arithmetic(build).number(cotangent, if to_real { 0.5 } else { 2.0 })?,
        );
        let weights = Arithmetic(build).select(is_own, one, other)?;
        let mut along = vec![1; shape.len()];
        along[self.axis] = n;
        let weights = reshape(build, weights, &along)?;
        let weights = broadcast(build, weights, &shape)?;
        if to_real {
            let scaled = Arithmetic(build).mul(cotangent, weights)?;
            return build.emit1(Fft { axis: self.axis, transform: Transform::ToReal }, &[scaled]);
        }
        let transformed = build.emit1(Fft { axis: self.axis, transform: Transform::OfReal }, &[cotangent])?;
        Arithmetic(build).mul(transformed, weights)
    }
}

impl NestLowering for Fft {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let axis = [self.axis];
        let arrays = |values: &[Value]| values.iter().map(|&value| lowering.call_array(value, &axis)).collect();
        let (operands, results) = (arrays(&stmt.args), arrays(&stmt.results));
        let batch = lowering.call_batch(stmt.results[0], &axis);
        let len = lowering.ty(stmt.args[0]).block_shape(lowering.mesh)[self.axis];
        lowering.library(LibraryCalls {
            function: LibraryFunction::Fft(self.transform),
            operands,
            results,
            batch,
            owners: None,
            cost: cost::of_transform(len),
            checks: Vec::new(),
        });
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Buffer
    }
}

impl Library for Fft {
    fn streams(&self, _: usize, _: &Stmt, _: &Stmt, _: &Func, _: &Mesh) -> bool {
        false
    }

    fn computes<'a>(&self, _: usize, _: &Stmt, _: &'a Func, _: &Mesh, _: Definitions<'a, '_>) -> Vec<Value> {
        Vec::new()
    }
}

impl Call for Fft {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The transforms of lines of complex numbers, by their planes, or of real numbers.
        fft_lines(re: Array, im: Array = None, [named] axis: Int, [named] inverse: Bool = false) in_dumps "" "write `fft` or `ifft`";
        /// The transforms of lines of real numbers, in the half-complex order.
        fft_of_real(x: Array, [named] axis: Int) in_dumps "" "write `rfft`";
        /// The real numbers of transforms in the half-complex order.
        fft_to_real(x: Array, [named] axis: Int) in_dumps "" "write `irfft`";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let (transform, operands) = match name {
            "fft_lines" => {
                let mut operands = vec![args.array(build, "re")?];
                if let Some(im) = args.take("im") {
                    operands.push(build.materialize(&im.term, None, im.span)?);
                }
                let inverse = args.optional_bool("inverse")?.unwrap_or(false);
                (Transform::Complex { inverse }, operands)
            }
            "fft_of_real" => (Transform::OfReal, vec![args.array(build, "x")?]),
            _ => (Transform::ToReal, vec![args.array(build, "x")?]),
        };
        let axis = shape::axis(args.int("axis")?, build.ty(operands[0]).rank(), args.span)?;
        Ok(Term::of_results(&build.emit(Fft { axis, transform }, &operands)?))
    }
}

/// The transform of complex numbers, given as their planes, or of real ones.
pub fn spectrum(
    build: &mut CallBuilder,
    planes: &[Value],
    axis: usize,
    inverse: bool,
) -> Result<[Value; 2], Diagnostic> {
    let results = build.emit(Fft { axis, transform: Transform::Complex { inverse } }, planes)?;
    Ok([results[0], results[1]])
}

/// Elements `start..end` along a dimension.
fn part(build: &mut CallBuilder, value: Value, axis: usize, start: usize, end: usize) -> Result<Value, Diagnostic> {
    if (start, end) == (0, build.ty(value).shape()[axis]) {
        return Ok(value);
    }
    let mut slice = Slice::identity(&build.ty(value).array);
    slice.ranges[axis].0 = SliceRange::between(start, end);
    build.emit1(slice, &[value])
}

fn reversed(build: &mut CallBuilder, value: Value, axis: usize) -> Result<Value, Diagnostic> {
    build.emit1(Flip { axes: vec![axis] }, &[value])
}

/// The planes of the first half of the transform of real numbers.
pub fn half_spectrum(build: &mut CallBuilder, value: Value, axis: usize) -> Result<[Value; 2], Diagnostic> {
    let packed = build.emit1(Fft { axis, transform: Transform::OfReal }, &[value])?;
    let ty = build.ty(packed).array.clone();
    let n = ty.shape[axis];
    let re = part(build, packed, axis, 0, n / 2 + 1)?;
    let mut one = ty.shape.clone();
    one[axis] = 1;
    let zero = filled(build, ty.dtype, 0, &one)?;
    let mut parts = vec![zero];
    if n > 2 {
        let tail = part(build, packed, axis, n / 2 + 1, n)?;
        parts.push(reversed(build, tail, axis)?);
    }
    if n.is_multiple_of(2) {
        parts.push(zero);
    }
    let im = if let [only] = parts[..] { only } else { concatenate(build, &parts, axis)? };
    Ok([re, im])
}

/// The `n` real numbers whose transform begins with these planes.
pub fn of_half_spectrum(
    build: &mut CallBuilder,
    [re, im]: [Value; 2],
    axis: usize,
    n: usize,
) -> Result<Value, Diagnostic> {
    debug_assert_eq!(build.ty(re).shape()[axis], n / 2 + 1, "the half of a spectrum of {n} points");
    let packed = if n > 2 {
        let tail = part(build, im, axis, 1, n.div_ceil(2))?;
        let tail = reversed(build, tail, axis)?;
        concatenate(build, &[re, tail], axis)?
    } else {
        re
    };
    build.emit1(Fft { axis, transform: Transform::ToReal }, &[packed])
}
