//! `all_gather(x, X, axis=0)`: the local values of the devices along the axes, one after another; all devices have the result.

mod derivative;

use spmdc_abi::CollectiveKind;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::group::{GroupCollective, GroupMessage};
use spmdc_ir::rules::{
    Exchange, Infer, Lowered, NamedAxes, Properties, Rules, Semantics, SentMessages, Typing, one_each, usual_traffic,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::Traffic;
use spmdc_layout::types::{ArrayType, AxisSet, Type};
use spmdc_ops::collective::cast::cast_by_name;
use spmdc_ops::collective::{axis_set, dimension, factors, group_properties, join, manual_axes, sides};
use spmdc_ops::reshard::Reshard;

/// `all_gather(x, X, axis=0)`: the local values of a group, one after another along a dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct PAllGather {
    /// The mesh axes of the group, major to minor.
    pub axes: Vec<u8>,
    /// The dimension along which the values are joined.
    pub dim: usize,
    /// The number of devices in a group.
    pub members: usize,
}

impl Semantics for PAllGather {
    fn name(&self) -> &'static str {
        "all_gather"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        factors(&args[0].shape, &results[0].shape, &[self.dim])
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![join(&vec![args[0]; self.members], self.dim)])
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        format!("all_gather({}, {}, axis={})", args[0], mesh.display_axes(&self.axes), self.dim)
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for PAllGather {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let mut result = args[0].clone();
        result.shape[self.dim] *= self.members;
        Ok(vec![result])
    }
}

impl Rules for PAllGather {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(PAllGather { dim: self.dim + 1, ..self.clone() })
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Exchange(self)
    }

    fn properties(&self) -> Properties<'_> {
        group_properties(self)
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        vec![NamedAxes::List(&mut self.axes)]
    }
}

impl WritesStablehlo for PAllGather {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let attributes = format!("all_gather_dim = {} : i64", self.dim);
        Ok(vec![hlo.exchange("all_gather", &args[0], &self.axes, &attributes, results[0].clone())])
    }
}

impl Exchange for PAllGather {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let (mut from, to) = sides(lowering, stmt);
        from.layout.dims[self.dim].size *= self.members;
        from.layout.dims[self.dim].axes = self.axes.clone();
        lowering.exchange(CollectiveKind::AllGather, axis_set(&self.axes), from, to);
        Ok(())
    }

    fn collective(&self, _: &[&Type], _: &[&Type], _: &Mesh) -> (CollectiveKind, AxisSet) {
        (CollectiveKind::AllGather, axis_set(&self.axes))
    }

    fn traffic(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic {
        usual_traffic(self, args, results, mesh)
    }

    fn messages(&self, _: &[&Type], _: &Mesh) -> SentMessages<'_> {
        SentMessages::Group(self)
    }
}

impl GroupCollective for PAllGather {
    fn sums(&self) -> bool {
        false
    }

    fn transposes_to_sum(&self) -> bool {
        true
    }

    fn varying(&self, operands: AxisSet) -> AxisSet {
        operands.minus(axis_set(&self.axes))
    }

    fn axes(&self) -> &[u8] {
        &self.axes
    }

    fn message(&self, _: usize, _: usize) -> GroupMessage {
        GroupMessage::Whole
    }

    fn eval_group(&self, members: &[Vec<&Array>]) -> Vec<Array> {
        let parts: Vec<&Array> = members.iter().map(|member| member[0]).collect();
        vec![join(&parts, self.dim); members.len()]
    }
}

impl Call for PAllGather {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The values of a group of devices, one after another.
        all_gather(x: Array, axis_name: Axes, axis: Int = 0, [named] to: String = None), Any, Planes(x), "manual(X) fn main(x: f32[4@X, 6]) -> f32[4, 6] { all_gather(x, X) }";
        /// A step of a change of layout.
        all_gather(x: Array, sharding: Sharding) in_dumps "with a layout" "write reshard(x, P(X, _)), or the axis of a manual function";
        /// Several steps at once.
        all_gather([rest] operands: Array, [named] to: Of("shardings")) in_dumps "with a layout" "write reshard(x, P(X, _)), or the axis of a manual function";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        // In dumps, `all_gather(v, P(...))` is the step of a reshard.
        if !args.signature().is_for_programs() {
            return Reshard::call(name, args, build);
        }
        let value = args.array(build, "x")?;
        let axes = manual_axes(name, args, build)?;
        let dim = args.optional_int("axis")?.unwrap_or(0);
        let dim = dimension(name, dim, build.ty(value).rank(), build)?;
        let members = build.mesh().size_of(&axes);
        let to = args.optional_string("to")?;
        let whole = build.emit1(PAllGather { axes: axes.clone(), dim, members }, &[value])?;
        match to {
            Some(to) => cast_by_name(build, whole, axes, (&to, args.span)).map(Term::Array),
            None => Ok(Term::Array(whole)),
        }
    }
}
