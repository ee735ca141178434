//! `barrier(x)`: the values of `x`, treated as different values.
//!
//! Two equal statements are different expressions if one of them depends on a barrier, so both are computed. `checkpoint` uses this to let
//! the reverse of a function recompute values instead of keeping them. No data is moved or copied.

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
    Alias, Combines, Copied, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties,
    Reads, Rules, Semantics, Typing,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, Type};

/// `barrier(x)`: the same values, which count as others.
#[derive(Clone, Debug, PartialEq)]
pub struct OptimizationBarrier;

impl Semantics for OptimizationBarrier {
    fn name(&self) -> &'static str {
        "barrier"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<Vec<usize>> = args[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.operands.push(dims.clone());
        rule.results.push(dims);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![args[0].clone()])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("barrier({})", args[0])
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for OptimizationBarrier {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(vec![args[0].clone()])
    }
}

impl Rules for OptimizationBarrier {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(self.clone())
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Alias(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::Apart,
            combines: Combines::Nothing,
            // Not `Moved`: passes look through that.
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

impl WritesStablehlo for OptimizationBarrier {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.barrier(&args[0])])
    }
}

impl LinearMap for OptimizationBarrier {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, _: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        Ok(cotangent)
    }
}

impl Alias for OptimizationBarrier {
    fn aliases(&self, from: &Type, to: &Type, _: &Mesh) -> bool {
        from.sharding
            .dims
            .iter()
            .zip(&to.sharding.dims)
            .all(|(from, to)| from.axes == to.axes && from.alignment == to.alignment)
    }

    fn copied(&self) -> Copied<'_> {
        Copied::Point(self)
    }
}

impl Point for OptimizationBarrier {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        kernel.operand(stmt.args[0], index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Call for OptimizationBarrier {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The same values, which count as others.
        barrier(x: Array) in_dumps "" "write checkpoint(f)(x): its reverse computes the values again";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        Ok(Term::Array(build.emit1(OptimizationBarrier, &[value])?))
    }
}
