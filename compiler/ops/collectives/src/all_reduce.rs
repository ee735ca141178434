//! `psum`, `pmean`, `pmax`, `pmin`: combines the local values of the devices along the axes, so that all have the result.
//!
//! The devices' values are combined in the order of their numbers, so all devices get the same bits. A mean is a sum and a
//! division.

use spmdc_abi::{CollectiveKind, ReduceOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::undefined;
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
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity, Tangents};
use spmdc_ir::rules::group::{GroupCollective, GroupMessage};
use spmdc_ir::rules::{
    Exchange, Infer, Lowered, NamedAxes, Properties, Rules, Semantics, SentMessages, Typing, one_each, usual_traffic,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::Traffic;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::collective::{axis_set, factors, group_properties, manual_axes, refuse_keys, sides};
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::Binary;

/// `psum(x, X)`: the local values of a group combined element by element; all devices have the result.
#[derive(Clone, Debug, PartialEq)]
pub struct PAllReduce {
    /// The operation that combines two devices' elements.
    pub op: ReduceOp,
    /// The mesh axes of the group, major to minor.
    pub axes: Vec<u8>,
}

/// Combines two elements as a reduction across devices does.
pub fn combine(op: ReduceOp, dtype: DType, lhs: u64, rhs: u64) -> u64 {
    let op = match op {
        ReduceOp::Sum => BinaryOp::Add,
        ReduceOp::Product => BinaryOp::Mul,
        ReduceOp::Max => BinaryOp::Maximum,
        ReduceOp::Min => BinaryOp::Minimum,
        ReduceOp::And => BinaryOp::And,
        ReduceOp::Or => BinaryOp::Or,
    };
    number::eval_binary(op, dtype, lhs, rhs).expect("typing refuses reductions without an operation")
}

/// Combines all members' values, in order. Sums of narrow floats accumulate in f32 and are rounded at the end.
pub fn combined(op: ReduceOp, members: &[Vec<&Array>]) -> Array {
    let first = members[0][0];
    let dtype = first.dtype();
    let wide = dtype.computed();
    let widened =
        |bits: u64| if wide == dtype { bits } else { number::cast(dtype, wide, bits).expect("narrow floats widen") };
    let element = |index: usize| {
        let start = widened(first.bits[index]);
        let total =
            members[1..].iter().fold(start, |total, member| combine(op, wide, total, widened(member[0].bits[index])));
        if wide == dtype { total } else { number::cast(wide, dtype, total).expect("f32 narrows") }
    };
    Array::new(first.ty.clone(), (0..first.bits.len()).map(element).collect())
}

/// The sum of the parts of a cotangent on the devices along some axes.
pub fn summed_over(build: &mut CallBuilder, cotangent: Value, axes: AxisSet) -> Result<Value, Diagnostic> {
    let ty = build.ty(cotangent);
    let axes = axes.intersect(ty.varying.union(ty.sharding.unreduced));
    if axes.is_empty() {
        return Ok(cotangent);
    }
    let over = build.mesh().display_set(axes);
    let axes = axes.iter().map(|axis| axis as u8).collect();
    let sum = build.emit1(PAllReduce { op: ReduceOp::Sum, axes }, &[cotangent])?;
    if let Some(stmt) = build.innermost().stmts.last_mut() {
        stmt.origin.reason = format!("it sums over the parts of it on the devices along {over}");
    }
    Ok(sum)
}

impl Semantics for PAllReduce {
    fn name(&self) -> &'static str {
        match self.op {
            ReduceOp::Sum => "psum",
            ReduceOp::Max => "pmax",
            ReduceOp::Min => "pmin",
            ReduceOp::Product => "pprod",
            ReduceOp::And => "pall",
            ReduceOp::Or => "pany",
        }
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
        format!("{}({}, {})", self.name(), args[0], mesh.display_axes(&self.axes))
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for PAllReduce {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if args[0].dtype == DType::Bool && self.op == ReduceOp::Sum {
            let mismatch = Mismatch::new(Code::E0215, "`psum` is not defined for bool");
            return Err(mismatch.help("convert the argument first, as in psum(i32(x), X)"));
        }
        Ok(vec![args[0].clone()])
    }
}

impl Rules for PAllReduce {
    fn derivative(&self) -> Derivative<'_> {
        match self.op {
            ReduceOp::Sum => Derivative::Linear(self),
            ReduceOp::Max | ReduceOp::Min => Derivative::Tangents(self),
            ReduceOp::And | ReduceOp::Or => Derivative::Zero,
            ReduceOp::Product => Derivative::Missing,
        }
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(self.clone())
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

impl WritesStablehlo for PAllReduce {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.all_reduce(self.op, &args[0], &self.axes)])
    }
}

impl LinearMap for PAllReduce {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        _: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        // That of summands is the same on all devices.
        let summands = build.ty(stmt.args[0]).sharding.unreduced;
        build.vary(cotangent, axis_set(&self.axes).minus(summands))
    }
}

impl Tangents for PAllReduce {
    /// The devices that have the largest or smallest element share its derivative, as equal elements of an array do.
    fn tangents(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        given: &[Option<Value>],
    ) -> Result<Vec<Option<Value>>, Diagnostic> {
        let Some(tangent) = given[0] else { return Ok(vec![None]) };
        let is_chosen = Arithmetic(build).compare(CompareOp::Eq, stmt.args[0], stmt.results[0])?;
        let share = Arithmetic(build).indicator(is_chosen, stmt.results[0])?;
        let sum = PAllReduce { op: ReduceOp::Sum, axes: self.axes.clone() };
        let count = build.emit1(sum.clone(), &[share])?;
        let weight = Arithmetic(build).div(share, count)?;
        let part = Arithmetic(build).mul(tangent, weight)?;
        Ok(vec![Some(build.emit1(sum, &[part])?)])
    }
}

impl Exchange for PAllReduce {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let group = axis_set(&self.axes);
        let (from, to) = sides(lowering, stmt);
        lowering.reduce(CollectiveKind::AllReduce, self.op, group, group, from, to);
        Ok(())
    }

    fn collective(&self, _: &[&Type], _: &[&Type], _: &Mesh) -> (CollectiveKind, AxisSet) {
        (CollectiveKind::AllReduce, axis_set(&self.axes))
    }

    fn traffic(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic {
        usual_traffic(self, args, results, mesh)
    }

    fn messages(&self, _: &[&Type], _: &Mesh) -> SentMessages<'_> {
        SentMessages::Group(self)
    }
}

impl GroupCollective for PAllReduce {
    fn sums(&self) -> bool {
        self.op == ReduceOp::Sum
    }

    fn transposes_to_sum(&self) -> bool {
        false
    }

    fn varying(&self, operands: AxisSet) -> AxisSet {
        operands.minus(axis_set(&self.axes))
    }

    fn axes(&self) -> &[u8] {
        &self.axes
    }

    fn message(&self, _: usize, _: usize) -> GroupMessage {
        GroupMessage::Summands
    }

    fn eval_group(&self, members: &[Vec<&Array>]) -> Vec<Array> {
        vec![combined(self.op, members); members.len()]
    }
}

impl Call for PAllReduce {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The sum over a group of devices.
        psum(x: Array, axis_name: Axes), Numbers, Planes(x), "manual(X) fn main(x: f32[4@X, 6]) -> f32[2, 6] { psum(x, X) }";
        /// The mean over a group of devices.
        pmean(x: Array, axis_name: Axes), Floats, Planes(x), "manual(X) fn main(x: f32[4@X, 6]) -> f32[2, 6] { pmean(x, X) }";
        /// The largest over a group of devices.
        pmax(x: Array, axis_name: Axes), NumbersAndBools, Refused(ORDER), "manual(X) fn main(x: f32[4@X, 6]) -> f32[2, 6] { pmax(x, X) }";
        /// The smallest over a group of devices.
        pmin(x: Array, axis_name: Axes), NumbersAndBools, Refused(ORDER), "manual(X) fn main(x: f32[4@X, 6]) -> f32[2, 6] { pmin(x, X) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let axes = manual_axes(name, args, build)?;
        refuse_keys(name, value, build)?;
        let op = match name {
            "pmax" => ReduceOp::Max,
            "pmin" => ReduceOp::Min,
            _ => ReduceOp::Sum,
        };
        let members = build.mesh().size_of(&axes);
        let dtype = build.ty(value).dtype();
        if name == "pmean" && !dtype.is_float() {
            let message = undefined("`pmean`", dtype.name());
            return Err(Diagnostic::error(Code::E0215, args.span, message)
                .help("convert the argument first, as in pmean(f32(x), X)"));
        }
        let sum = build.emit1(PAllReduce { op, axes }, &[value])?;
        if name != "pmean" {
            return Ok(Term::Array(sum));
        }
        let count = build.emit1(Constant::scalar(dtype, dtype.narrow(members as f64)), &[])?;
        Ok(Term::Array(build.emit1(Binary(BinaryOp::Div), &[sum, count])?))
    }
}
