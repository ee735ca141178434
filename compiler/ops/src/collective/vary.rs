//! `pvary(x, X)`: marks a value as varying along the axes, although the devices still agree. Nothing moves.

use crate::collective::{axis_set, factors, manual_axes};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
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
    Semantics, Typing,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::ArrayType;

/// `pvary(x, X)`: the value of `x`, marked as varying along the axes; nothing moves.
#[derive(Clone, Debug, PartialEq)]
pub struct PVary {
    /// The mesh axes along which the result varies, besides those along which the operand does.
    pub axes: Vec<u8>,
}

impl Semantics for PVary {
    fn name(&self) -> &'static str {
        "pvary"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        factors(&args[0].shape, &results[0].shape, &[])
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![args[0].clone()])
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        format!("pvary({}, {})", args[0], mesh.display_axes(&self.axes))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for PVary {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(vec![args[0].clone()])
    }
}

impl Rules for PVary {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(self.clone())
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Varies(axis_set(&self.axes)),
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: true,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        vec![NamedAxes::List(&mut self.axes)]
    }
}

impl WritesStablehlo for PVary {
    fn write(&self, _: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![args[0].clone()])
    }
}

impl LinearMap for PVary {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, _: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        // The sum over the devices is taken where the cotangent is used.
        Ok(cotangent)
    }
}

impl Point for PVary {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        kernel.operand(stmt.args[0], index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Call for PVary {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The value, marked as varying over devices; if operands differ in this, the compiler marks them.
        pvary(x: Array, axis_name: Axes), Any, Planes(x), "manual(X) fn main(x: f32[4, 6]) -> f32[8@X, 6] { pvary(x, X) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let axes = manual_axes(name, args, build)?;
        Ok(Term::Array(build.emit1(PVary { axes }, &[value])?))
    }
}
