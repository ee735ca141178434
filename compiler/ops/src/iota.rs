//! `iota(f32[4, 8], axis=1)`: indices as values. Every device computes its own block from its global indices, so nothing moves.

use crate::reshard::with_layout;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::undefined;
use spmdc_ir::array::{Array, Trap, indices};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// `iota(f32[4, 8], axis=1)`: each element is its own index along one dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Iota {
    /// The element type and shape of the result.
    pub ty: ArrayType,
    /// The dimension whose indices are the elements.
    pub axis: usize,
}

impl Semantics for Iota {
    fn name(&self) -> &'static str {
        "iota"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, _: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims = results[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.results.push(dims);
        rule
    }

    fn eval(&self, _: &[&Array]) -> Result<Vec<Array>, Trap> {
        let bits = indices(&self.ty.shape).map(|index| {
            number::cast(DType::I64, self.ty.dtype, index[self.axis] as u64).expect("typing refuses keys")
        });
        Ok(vec![Array::new(self.ty.clone(), bits.collect())])
    }

    fn print(&self, _: &[String], _: &Mesh) -> String {
        format!("iota({}, axis={})", self.ty, self.axis)
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for Iota {
    fn infer(&self, _: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if matches!(self.ty.dtype, DType::Bool | DType::Key) {
            return Err(Mismatch::new(Code::E0215, undefined("`iota`", self.ty.dtype.name())));
        }
        Ok(vec![self.ty.clone()])
    }
}

impl Rules for Iota {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
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
            elements: Elements::Counted,
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

impl WritesStablehlo for Iota {
    fn write(&self, hlo: &mut HloBuilder<'_>, _: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        // Narrow floats do not hold all indices on the way.
        let dtype = self.ty.dtype;
        let counted = if dtype.is_narrow() { DType::I32 } else { dtype };
        let places = hlo.iota(counted, &self.ty.shape, self.axis);
        Ok(vec![hlo.convert(&places, dtype)])
    }
}

impl Point for Iota {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let ty = kernel.context.ty(stmt.results[0]);
        let global = kernel.global_index(ty, self.axis, &index[self.axis]);
        kernel.index(global, self.ty.dtype)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Call for Iota {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// At each element, its index along one dimension.
        iota(type: Type, axis: Int = None, [named] out: Sharding = None), Numbers, Made, "() { iota(f32[4, 6], axis=1) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let ty = args.ty("type")?.array;
        let axis = match args.optional_int("axis")? {
            Some(axis) => shape::axis(axis, ty.rank(), args.span)?,
            None if ty.rank() == 1 => 0,
            None => {
                let message = format!("`iota` of {ty} requires an `axis`, along which the numbers increase");
                return Err(Diagnostic::error(Code::E0201, args.span, message).help("write iota(f32[4, 8], axis=1)"));
            }
        };
        let value = build.emit1(Iota { ty, axis }, &[])?;
        with_layout(args, build, value)
    }
}
