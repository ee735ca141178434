//! `broadcast_to(x, shape)`: NumPy broadcasting to a given shape. `zeros`, `ones` and `full` are broadcasts of a number.
//!
//! Factors: as elementwise; a broadcast dimension of the result is new, so it splits freely. Nothing moves.

mod batching;

use crate::constant::Constant;
use crate::reshard::with_layout;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::too_large;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType, MAX_ELEMENTS};

/// `broadcast_to(x, (4,6))`: dimensions of size 1, and new leading dimensions, are repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct Broadcast {
    /// The shape of the result.
    pub shape: Vec<usize>,
}

impl Semantics for Broadcast {
    fn name(&self) -> &'static str {
        "broadcast_to"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::elementwise(&[&args[0].shape], &results[0].shape)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let from = args[0].shape();
        let offset = self.shape.len() - from.len();
        let strides = shape::strides(from);
        let bits = indices(&self.shape).map(|index| {
            let dims = from.iter().zip(&strides).zip(&index[offset..]);
            args[0].bits[dims.map(|((&size, &stride), &at)| if size == 1 { 0 } else { at * stride }).sum::<usize>()]
        });
        Ok(vec![Array::new(ArrayType::new(args[0].dtype(), &self.shape), bits.collect())])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("broadcast_to({}, {})", args[0], shape::tuple(&self.shape))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Broadcast {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let from = &args[0].shape;
        let fits = from.len() <= self.shape.len()
            && from.iter().rev().zip(self.shape.iter().rev()).all(|(&size, &wanted)| size == wanted || size == 1);
        if !fits {
            let message = format!("{} cannot be broadcast to shape {}", args[0], shape::display(&self.shape));
            let help = "counted from the last dimension, each size of the operand must be equal to the new size, or 1";
            return Err(Mismatch::new(Code::E0204, message).help(help));
        }
        Ok(vec![ArrayType::new(args[0].dtype, &self.shape)])
    }
}

impl Rules for Broadcast {
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
            linear: Linear::Together,
            combines: Combines::Nothing,
            elements: Elements::Repeated,
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

impl WritesStablehlo for Broadcast {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.broadcast(&args[0], &self.shape)])
    }
}

impl LinearMap for Broadcast {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, _: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        Ok(cotangent)
    }
}

impl Point for Broadcast {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let from = kernel.context.ty(stmt.args[0]);
        let offset = index.len() - from.rank();
        let dims = from.shape().iter().enumerate();
        let index: Vec<Affine> = dims
            .map(
                |(dim, &size)| {
                    if size == self.shape[offset + dim] { index[offset + dim].clone() } else { Affine::constant(0) }
                },
            )
            .collect();
        kernel.operand(stmt.args[0], &index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// A value broadcast to a shape; the value itself if it has that shape.
pub fn broadcast(build: &mut CallBuilder, value: Value, to: &[usize]) -> Result<Value, Diagnostic> {
    if build.ty(value).shape() == to {
        return Ok(value);
    }
    build.emit1(Broadcast { shape: to.to_vec() }, &[value])
}

/// An array of one number.
pub fn filled(build: &mut CallBuilder, dtype: DType, bits: u64, to: &[usize]) -> Result<Value, Diagnostic> {
    let number = build.emit1(Constant::scalar(dtype, bits), &[])?;
    broadcast(build, number, to)
}

/// Sizes given in a call, checked to be non-negative and no larger than any array.
pub fn sizes(given: &[i64], args: &Args<'_>) -> Result<Vec<usize>, Diagnostic> {
    let size = |&size: &i64| match usize::try_from(size) {
        Ok(size) if size <= MAX_ELEMENTS => Ok(size),
        Ok(_) => Err(too_large(args.span)),
        Err(_) => Err(Diagnostic::error(Code::E0218, args.span, must_be("a size", "at least 0", size))),
    };
    given.iter().map(size).collect()
}

impl Call for Broadcast {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The array in a larger shape: dimensions of size 1, and new leading dimensions, are repeated.
        broadcast_to(x: Array, shape: Ints, [named] out: Sharding = None), Any, Planes(x), "(x: f32[6]) { broadcast_to(x, (4, 6)) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let given = args.ints("shape")?;
        let to = sizes(&given, args)?;
        let value = broadcast(build, value, &to)?;
        with_layout(args, build, value)
    }
}

/// Zeros of the element type and shape of an array.
pub fn zeros_of(build: &mut CallBuilder, like: Value) -> Result<Value, Diagnostic> {
    let (dtype, shape) = (build.ty(like).dtype(), build.ty(like).shape().to_vec());
    let zero = build.emit1(Constant::float(dtype, 0.0), &[])?;
    broadcast(build, zero, &shape)
}
