//! `transpose(x, axes)`, `x.T`, `swapaxes`, `moveaxis`: the dimensions in another order.
//!
//! Factors: each dimension passes to its new position. Nothing moves between devices.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::as_int;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::batching::shifted;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::ArrayType;

/// `transpose(x, (1,0))`: the dimensions of `x` in another order.
#[derive(Clone, Debug, PartialEq)]
pub struct Transpose {
    /// Result dimension `i` is operand dimension `axes[i]`.
    pub axes: Vec<usize>,
}

impl Semantics for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<Vec<usize>> = args[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.results.push(self.axes.iter().map(|&axis| dims[axis].clone()).collect());
        rule.operands.push(dims);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let strides = shape::strides(args[0].shape());
        let to: Vec<usize> = self.axes.iter().map(|&axis| args[0].shape()[axis]).collect();
        let address =
            |index: Vec<usize>| index.iter().zip(&self.axes).map(|(&at, &axis)| at * strides[axis]).sum::<usize>();
        let bits = indices(&to).map(|index| args[0].bits[address(index)]).collect();
        Ok(vec![Array::new(ArrayType::new(args[0].dtype(), &to), bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("transpose({}, {})", args[0], shape::tuple(&self.axes))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Transpose {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let mut seen = vec![false; args[0].rank()];
        let fits = self.axes.len() == seen.len()
            && self.axes.iter().all(|&axis| seen.get_mut(axis).is_some_and(|seen| !std::mem::replace(seen, true)));
        if !fits {
            let message = format!(
                "{} is not a permutation of the {} dimensions of {}",
                shape::tuple(&self.axes),
                seen.len(),
                args[0]
            );
            return Err(Mismatch::new(Code::E0206, message));
        }
        let sizes: Vec<usize> = self.axes.iter().map(|&axis| args[0].shape[axis]).collect();
        Ok(vec![ArrayType::new(args[0].dtype, &sizes)])
    }
}

impl Rules for Transpose {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(Transpose { axes: [&[0], shifted(&self.axes).as_slice()].concat() })
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
            elements: Elements::Moved,
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

impl WritesStablehlo for Transpose {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.transpose(&args[0], &self.axes)])
    }
}

impl LinearMap for Transpose {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, build: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        let mut axes = vec![0; self.axes.len()];
        self.axes.iter().enumerate().for_each(|(to, &from)| axes[from] = to);
        transpose(build, cotangent, &axes)
    }
}

impl Point for Transpose {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let mut from = vec![Affine::default(); index.len()];
        for (index, &axis) in index.iter().zip(&self.axes) {
            from[axis] = index.clone();
        }
        kernel.operand(stmt.args[0], &from)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// A value with its dimensions in another order; the value itself if the order is the same.
pub fn transpose(build: &mut CallBuilder, value: Value, axes: &[usize]) -> Result<Value, Diagnostic> {
    if axes.iter().enumerate().all(|(dim, &axis)| dim == axis) && axes.len() == build.ty(value).rank() {
        return Ok(value);
    }
    build.emit1(Transpose { axes: axes.to_vec() }, &[value])
}

impl Call for Transpose {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The array with its dimensions in another order, by default reversed.
        transpose(x: Array, axes: Ints = None, [rest] more: Of("int")), Any, Planes(x), "(x: f32[4, 6]) { transpose(x) }";
        /// Two dimensions exchanged.
        swapaxes(x: Array, axis1: Int, axis2: Int), Any, Planes(x), "(x: f32[4, 6]) { swapaxes(x, 0, 1) }";
        /// The array with dimensions moved to other positions; the others keep their order.
        moveaxis(x: Array, source: Ints, destination: Ints), Any, Planes(x), "(x: f32[4, 6]) { moveaxis(x, 0, 1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let rank = build.ty(value).rank();
        let axes = match name {
            "swapaxes" => {
                let first = shape::axis(args.int("axis1")?, rank, args.span)?;
                let second = shape::axis(args.int("axis2")?, rank, args.span)?;
                let mut axes: Vec<usize> = (0..rank).collect();
                axes.swap(first, second);
                axes
            }
            "moveaxis" => {
                let from = shape::axes(&args.ints("source")?, rank, args.span)?;
                let to = shape::axes(&args.ints("destination")?, rank, args.span)?;
                if from.len() != to.len() {
                    let message = "`moveaxis` requires as many destinations as sources";
                    return Err(Diagnostic::error(Code::E0206, args.span, message));
                }
                let mut rest = (0..rank).filter(|axis| !from.contains(axis));
                let place = |dim: usize| to.iter().position(|&target| target == dim).map(|at| from[at]);
                (0..rank).filter_map(|dim| place(dim).or_else(|| rest.next())).collect()
            }
            _ => match args.optional_ints("axes")? {
                Some(mut given) => {
                    for axis in args.rest("more") {
                        given.push(as_int(&axis, "axes")?);
                    }
                    shape::axes(&given, rank, args.span)?
                }
                None => (0..rank).rev().collect(),
            },
        };
        Ok(Term::Array(transpose(build, value, &axes)?))
    }
}
