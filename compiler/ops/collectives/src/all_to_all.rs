//! `all_to_all(x, X, split=0, concat=1)`: each device divides its value along one dimension, sends a part to every device, and joins the
//! received parts along another dimension.

use crate::reduce_scatter::divided;
use spmdc_abi::{CollectiveKind, Layout, LayoutDim};
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
use spmdc_layout::types::{ArrayType, AxisSet, Type};
use spmdc_ops::collective::{axis_set, cut, dimension, factors, group_properties, join, manual_axes, sides};
use spmdc_ops::reshard::Reshard;

/// `all_to_all(x, X, split=0, concat=1)`: each device sends a part of its value to every device of its group, and joins the received parts.
#[derive(Clone, Debug, PartialEq)]
pub struct PAllToAll {
    /// The mesh axes of the group, major to minor.
    pub axes: Vec<u8>,
    /// The dimension that is cut into parts; `members` divides its size.
    pub split: usize,
    /// The dimension along which received parts are joined.
    pub concat: usize,
    /// The number of devices in a group.
    pub members: usize,
}

impl Semantics for PAllToAll {
    fn name(&self) -> &'static str {
        "all_to_all"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        factors(&args[0].shape, &results[0].shape, &[self.split, self.concat])
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![self.eval_group(&vec![vec![args[0]]; self.members]).swap_remove(0)])
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        let axes = mesh.display_axes(&self.axes);
        format!("all_to_all({}, {axes}, split={}, concat={})", args[0], self.split, self.concat)
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for PAllToAll {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let mut result = divided(args[0], self.split, self.members)?;
        result.shape[self.concat] *= self.members;
        Ok(vec![result])
    }
}

impl Rules for PAllToAll {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(PAllToAll { split: self.split + 1, concat: self.concat + 1, ..self.clone() })
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

impl WritesStablehlo for PAllToAll {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let dims = format!("concat_dimension = {} : i64, split_dimension = {} : i64", self.concat, self.split);
        let attributes = format!("{dims}, split_count = {} : i64", self.members);
        Ok(vec![hlo.exchange("all_to_all", &args[0], &self.axes, &attributes, results[0].clone())])
    }
}

impl LinearMap for PAllToAll {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, build: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        let (split, concat) = (self.concat, self.split);
        build.emit1(PAllToAll { split, concat, ..self.clone() }, &[cotangent])
    }
}

impl Exchange for PAllToAll {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let (mut from, mut to) = sides(lowering, stmt);
        let local = from.layout;
        from.layout = self.layout(&local, true);
        to.layout = self.layout(&local, false);
        lowering.exchange(CollectiveKind::AllToAll, axis_set(&self.axes), from, to);
        Ok(())
    }

    fn collective(&self, _: &[&Type], _: &[&Type], _: &Mesh) -> (CollectiveKind, AxisSet) {
        (CollectiveKind::AllToAll, axis_set(&self.axes))
    }

    fn traffic(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic {
        usual_traffic(self, args, results, mesh)
    }

    fn messages(&self, _: &[&Type], _: &Mesh) -> SentMessages<'_> {
        SentMessages::Group(self)
    }
}

impl PAllToAll {
    /// The group's blocks as one array: the cut dimension becomes (receiver, rest), and a dimension for the sender comes before the
    /// joined one. Before the exchange a device has one sender, afterwards one receiver. In memory both are the local blocks.
    fn layout(&self, local: &Layout, along_sender: bool) -> Layout {
        let axes = |here: bool| if here { self.axes.clone() } else { Vec::new() };
        let mut dims = Vec::new();
        for (dim, layout) in local.dims.iter().enumerate() {
            if dim == self.concat {
                dims.push(LayoutDim { size: self.members, axes: axes(along_sender) });
            }
            if dim == self.split {
                dims.push(LayoutDim { size: self.members, axes: axes(!along_sender) });
                dims.push(LayoutDim { size: layout.size / self.members, axes: Vec::new() });
            } else {
                dims.push(layout.clone());
            }
        }
        Layout { dtype: local.dtype, dims }
    }
}

impl GroupCollective for PAllToAll {
    fn sums(&self) -> bool {
        false
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
        GroupMessage::Share(self.split)
    }

    fn eval_group(&self, members: &[Vec<&Array>]) -> Vec<Array> {
        let sent: Vec<Vec<Array>> = members.iter().map(|member| cut(member[0], self.split, members.len())).collect();
        let received = |receiver: usize| {
            let parts: Vec<&Array> = sent.iter().map(|parts| &parts[receiver]).collect();
            join(&parts, self.concat)
        };
        (0..members.len()).map(received).collect()
    }
}

impl Call for PAllToAll {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Each device sends a part of one dimension to every other; the parts are joined along another.
        all_to_all(x: Array, axis_name: Axes, split: Int, concat: Int),
            Any, Planes(x), "manual(X) fn main(x: f32[4@X, 6]) -> f32[4, 6@X] { all_to_all(x, X, split=1, concat=0) }";
        /// A step of a change of layout.
        all_to_all(x: Array, sharding: Sharding) in_dumps "with a layout" "write reshard(x, P(X, _)), or the axis of a manual function";
        /// Several steps at once.
        all_to_all([rest] operands: Array, [named] to: Of("shardings")) in_dumps "with a layout" "write reshard(x, P(X, _)), or the axis of a manual function";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        // In dumps, `all_to_all(v, P(...))` is the step of a reshard.
        if !args.signature().is_for_programs() {
            return Reshard::call(name, args, build);
        }
        let value = args.array(build, "x")?;
        let axes = manual_axes(name, args, build)?;
        let rank = build.ty(value).rank();
        let split = dimension(name, args.int("split")?, rank, build)?;
        let concat = dimension(name, args.int("concat")?, rank, build)?;
        let members = build.mesh().size_of(&axes);
        Ok(Term::Array(build.emit1(PAllToAll { axes, split, concat, members }, &[value])?))
    }
}
