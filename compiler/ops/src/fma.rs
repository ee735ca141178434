//! `fma(x, y, z)`: a product and a sum that are rounded once. Elementwise: every dimension passes through, and nothing moves.

use crate::elementwise;
use crate::promote;
use crate::promote::inexact;
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
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, PartialDerivative, Partials};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing, one_each,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::ArrayType;
use spmdc_layout::types::DType;

/// `fma(x, y, z)`: x * y + z, rounded once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fma;

impl Semantics for Fma {
    fn name(&self) -> &'static str {
        "fma"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let shapes: Vec<&[usize]> = args.iter().map(|arg| arg.shape.as_slice()).collect();
        Factors::elementwise(&shapes, &results[0].shape)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let shape = shape::broadcast(&[args[0].shape(), args[1].shape(), args[2].shape()]);
        let shape = shape.expect("typing refuses shapes that do not broadcast");
        let dtype = args[0].dtype();
        let array = Array::from_fn(ArrayType::of(dtype, shape), |index| {
            let [x, y, z] = [0, 1, 2].map(|at| args[at].get_broadcast(index));
            number::eval_fma(dtype, x, y, z).expect("typing refuses all but floats")
        });
        Ok(vec![array])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("fma({}, {}, {})", args[0], args[1], args[2])
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        2 * one_each(results)
    }
}

impl Infer for Fma {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let dtype = args[0].dtype;
        if args[1].dtype != dtype || args[2].dtype != dtype {
            let [x, y, z] = [0, 1, 2].map(|at| args[at].dtype.name());
            return Err(Mismatch::new(
                Code::E0203,
                format!("the operands of `fma` have different element types: {x}, {y} and {z}"),
            ));
        }
        if !dtype.is_float() {
            return Err(Mismatch::new(Code::E0215, undefined("`fma`", dtype.name())));
        }
        let shape = shape::broadcast(&[&args[0].shape, &args[1].shape, &args[2].shape])?;
        Ok(vec![ArrayType::of(dtype, shape)])
    }
}

impl Rules for Fma {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Pointwise(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Elementwise
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Elementwise,
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

impl WritesStablehlo for Fma {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        // The product of two f32 is exact in f64; of two f64 it is rounded.
        let dtype = results[0].dtype();
        let [x, y, z] = [0, 1, 2].map(|at| {
            let wide = hlo.broadcast(&args[at], &results[0].shape);
            hlo.convert(&wide, DType::F64)
        });
        let product = hlo.binary("stablehlo.multiply", &x, &y);
        let sum = hlo.binary("stablehlo.add", &product, &z);
        Ok(vec![hlo.convert(&sum, dtype)])
    }
}

impl Partials for Fma {
    fn partial(&self, _: &mut CallBuilder, stmt: &Stmt, at: usize) -> Result<PartialDerivative, Diagnostic> {
        Ok(match stmt.args[..] {
            [x, y, _] if at < 2 => PartialDerivative::Array(if at == 0 { y } else { x }),
            _ => PartialDerivative::One,
        })
    }
}

impl Point for Fma {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let result = kernel.context.ty(stmt.results[0]).shape();
        let dtype = kernel.context.ty(stmt.results[0]).dtype();
        let [x, y, z] = [0, 1, 2].map(|at| elementwise::operand_at(kernel, stmt.args[at], result, index));
        kernel.fma(dtype, x, y, z)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Call for Fma {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// x * y + z, rounded once.
        fma(x: Array, y: Array, z: Array), NumbersAndBools, Refused(REAL), "(x: f32[4, 6], y: f32[6]) { fma(x, y, 0.5) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let given = [args.required("x")?, args.required("y")?, args.required("z")?];
        let operands = given.each_ref().map(|arg| (&arg.term, arg.span));
        let dtype = promote::common_dtype(build, &operands)?;
        let dtype = if dtype.is_integer() || dtype == spmdc_abi::DType::Bool { inexact(dtype) } else { dtype };
        let mut values = Vec::new();
        for operand in operands {
            values.push(promote::to_dtype(build, operand, dtype)?);
        }
        Ok(Term::Array(build.emit1(Fma, &values)?))
    }
}
