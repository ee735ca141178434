//! `psum_scatter(x, X, axis=0)`: the sum over the devices along the axes; each device keeps its own part.

use crate::all_gather::PAllGather;
use crate::all_reduce::combined;
use spmdc_abi::{CollectiveKind, ReduceOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::group::{GroupCollective, GroupMessage};
use spmdc_ir::rules::{
    Exchange, Infer, Lowered, NamedAxes, Properties, Rules, Semantics, SentMessages, Typing, one_each, usual_traffic,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::Traffic;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use spmdc_ops::collective::{axis_set, cut, dimension, factors, group_properties, manual_axes, refuse_keys, sides};

/// `psum_scatter(x, X, axis=0)`: the sum of the local values of a group; each device keeps one part.
#[derive(Clone, Debug, PartialEq)]
pub struct PSumScatter {
    /// The mesh axes of the group, major to minor.
    pub axes: Vec<u8>,
    /// The dimension along which the sum is cut into parts; `members` divides its size.
    pub dim: usize,
    /// The number of devices in a group.
    pub members: usize,
}

impl Semantics for PSumScatter {
    fn name(&self) -> &'static str {
        "psum_scatter"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        factors(&args[0].shape, &results[0].shape, &[self.dim])
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![cut(args[0], self.dim, self.members).swap_remove(0)])
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        format!("psum_scatter({}, {}, axis={})", args[0], mesh.display_axes(&self.axes), self.dim)
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for PSumScatter {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if args[0].dtype == DType::Bool {
            return Err(Mismatch::new(Code::E0215, "`psum_scatter` is not defined for bool"));
        }
        divided(args[0], self.dim, self.members).map(|result| vec![result])
    }
}

impl Rules for PSumScatter {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(PSumScatter { dim: self.dim + 1, ..self.clone() })
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

impl WritesStablehlo for PSumScatter {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let x = &args[0];
        let groups = hlo.groups(&self.axes);
        let channel = hlo.channel_handle();
        let name = hlo.fresh();
        let attributes = format!(
            "{channel}, replica_groups = {groups}, scatter_dimension = {} : i64, use_global_device_ids",
            self.dim
        );
        hlo.line(&format!("{name} = \"stablehlo.reduce_scatter\"({}) <{{{attributes}}}> ({{", x.name));
        hlo.combination("stablehlo.add", x.ty.dtype());
        hlo.line(&format!("}}) : ({}) -> {}", x.ty, results[0]));
        Ok(vec![HloValue { name, ty: results[0].clone() }])
    }
}

impl LinearMap for PSumScatter {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, build: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        let (axes, dim, members) = (self.axes.clone(), self.dim, self.members);
        let whole = build.emit1(PAllGather { axes, dim, members }, &[cotangent])?;
        build.vary(whole, axis_set(&self.axes))
    }
}

impl Exchange for PSumScatter {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let group = axis_set(&self.axes);
        let (from, mut to) = sides(lowering, stmt);
        to.layout = from.layout.clone();
        to.layout.dims[self.dim].axes = self.axes.clone();
        lowering.reduce(CollectiveKind::ReduceScatter, ReduceOp::Sum, group, group, from, to);
        Ok(())
    }

    fn collective(&self, _: &[&Type], _: &[&Type], _: &Mesh) -> (CollectiveKind, AxisSet) {
        (CollectiveKind::ReduceScatter, axis_set(&self.axes))
    }

    fn traffic(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic {
        usual_traffic(self, args, results, mesh)
    }

    fn messages(&self, _: &[&Type], _: &Mesh) -> SentMessages<'_> {
        SentMessages::Group(self)
    }
}

/// A local type whose dimension is divided among the members of a group.
pub fn divided(ty: &ArrayType, dim: usize, members: usize) -> Result<ArrayType, Mismatch> {
    if !ty.shape[dim].is_multiple_of(members) {
        let message = format!("dimension {dim} of {ty} does not divide evenly over the {members} devices of the group");
        return Err(Mismatch::new(Code::E0503, message));
    }
    let mut result = ty.clone();
    result.shape[dim] /= members;
    Ok(result)
}

impl GroupCollective for PSumScatter {
    fn sums(&self) -> bool {
        true
    }

    fn transposes_to_sum(&self) -> bool {
        false
    }

    fn varying(&self, operands: AxisSet) -> AxisSet {
        operands.union(axis_set(&self.axes))
    }

    fn axes(&self) -> &[u8] {
        &self.axes
    }

    fn message(&self, _: usize, _: usize) -> GroupMessage {
        GroupMessage::Share(self.dim)
    }

    fn eval_group(&self, members: &[Vec<&Array>]) -> Vec<Array> {
        cut(&combined(ReduceOp::Sum, members), self.dim, members.len())
    }
}

impl Call for PSumScatter {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The sum over a group of devices; each keeps its part.
        psum_scatter(x: Array, axis_name: Axes, axis: Int = 0),
            Numbers, Planes(x), "manual(X) fn main(x: f32[4@X, 6]) -> f32[2, 6@X] { psum_scatter(x, X, axis=1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let axes = manual_axes(name, args, build)?;
        refuse_keys(name, value, build)?;
        let dim = args.optional_int("axis")?.unwrap_or(0);
        let dim = dimension(name, dim, build.ty(value).rank(), build)?;
        let members = build.mesh().size_of(&axes);
        Ok(Term::Array(build.emit1(PSumScatter { axes, dim, members }, &[value])?))
    }
}
