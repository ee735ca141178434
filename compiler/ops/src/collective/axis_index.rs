//! `axis_index(X)`: this device's position along the axes, an i32 that varies over them. `axis_size(X)` is a constant.

use crate::collective::{axis_set, group_properties, manual_axes};
use spmdc_abi::Scalar;
use spmdc_grammar::diagnostic::Diagnostic;
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
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::group::{GroupCollective, GroupMessage};
use spmdc_ir::rules::{Infer, Lowered, NamedAxes, Point, Properties, Reads, Rules, Semantics, Typing};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, AxisSet, DType};

/// `axis_index(X)`: this device's position in its group, an i32 scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisIndex {
    /// The mesh axes of the group, major to minor.
    pub axes: Vec<u8>,
}

impl Semantics for AxisIndex {
    fn name(&self) -> &'static str {
        "axis_index"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, _: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        Factors { results: vec![Vec::new()], ..Factors::new() }
    }

    fn eval(&self, _: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![Array::scalar(DType::I32, 0)])
    }

    fn print(&self, _: &[String], mesh: &Mesh) -> String {
        format!("axis_index({})", mesh.display_axes(&self.axes))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for AxisIndex {
    fn infer(&self, _: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(vec![ArrayType::scalar(DType::I32)])
    }
}

impl Rules for AxisIndex {
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
        group_properties(self)
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        vec![NamedAxes::List(&mut self.axes)]
    }
}

impl WritesStablehlo for AxisIndex {
    fn write(&self, hlo: &mut HloBuilder<'_>, _: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.axis_index(&self.axes)?])
    }
}

impl Point for AxisIndex {
    fn point(&self, kernel: &mut KernelBuilder<'_>, _: &Stmt, _: &[Affine]) -> Elem {
        let position = kernel.scalar_affine(Scalar::Coordinate(self.axes.clone()));
        kernel.index(position, DType::I32)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl GroupCollective for AxisIndex {
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

    fn communicates(&self) -> bool {
        false
    }

    fn message(&self, _: usize, _: usize) -> GroupMessage {
        GroupMessage::Nothing
    }

    fn eval_group(&self, members: &[Vec<&Array>]) -> Vec<Array> {
        (0..members.len()).map(|position| Array::scalar(DType::I32, position as u64)).collect()
    }
}

impl Call for AxisIndex {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The position of the device in its group.
        axis_index(axis_name: Axes), Nothing, Refused(INDICES), "manual(X) fn main(x: f32[4@X]) -> f32[4@X] { x + f32(axis_index(X)) }";
        /// The number of devices of a group.
        axis_size(axis_name: Axes), Nothing, Refused(INDICES), "manual(X) fn main(x: f32[4@X]) -> f32[4@X] { x * axis_size(X) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let axes = manual_axes(name, args, build)?;
        if name == "axis_size" {
            return Ok(Term::Int(build.mesh().size_of(&axes) as i128));
        }
        Ok(Term::Array(build.emit1(AxisIndex { axes }, &[])?))
    }
}
