//! `ppermute(x, X, ((0, 1), (1, 2)))` and the cyclic `pshift(x, X, 1)`: whole local values from device to device.
//!
//! A pair gives a source and a target position along the axes. Positions that receive nothing get zeros.

use spmdc_abi::CollectiveKind;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
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
use spmdc_ops::arithmetic::Arithmetic;
use spmdc_ops::collective::{axis_set, factors, group_properties, manual_axes};
use spmdc_ops::derivative::zeros_like;

/// `ppermute(x, X, [(0, 1)])`: sends each local value from one position of the group to another; positions that receive nothing get
/// zeros.
#[derive(Clone, Debug, PartialEq)]
pub struct PPermute {
    /// The mesh axes of the group, major to minor.
    pub axes: Vec<u8>,
    /// For each position along the axes, the position from which it receives.
    pub source: Vec<Option<u32>>,
}

impl Semantics for PPermute {
    fn name(&self) -> &'static str {
        "ppermute"
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
        let pairs = self.source.iter().enumerate().filter_map(|(to, from)| from.map(|from| format!("({from}, {to})")));
        let pairs: Vec<String> = pairs.collect();
        format!("ppermute({}, {}, [{}])", args[0], mesh.display_axes(&self.axes), pairs.join(", "))
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for PPermute {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        Ok(vec![args[0].clone()])
    }
}

impl Rules for PPermute {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
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

impl WritesStablehlo for PPermute {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let x = &args[0];
        let sends = |(to, from): (usize, &Option<u32>)| from.map(|from| (from as usize, to));
        let sends: Vec<(usize, usize)> = self.source.iter().enumerate().filter_map(sends).collect();
        let pairs = hlo.pairs(&self.axes, &sends);
        let attributes = format!("{}, source_target_pairs = {pairs}", hlo.channel_handle());
        let text = format!("\"stablehlo.collective_permute\"({}) <{{{attributes}}}> : ({}) -> {}", x.name, x.ty, x.ty);
        Ok(vec![hlo.emit(x.ty.clone(), &text)])
    }
}

impl LinearMap for PPermute {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, build: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        // A position that sends to several others gets what comes back from each of them.
        let mut sum = None;
        let mut targets: Vec<usize> = (0..self.source.len()).filter(|&to| self.source[to].is_some()).collect();
        while !targets.is_empty() {
            let mut source = vec![None; self.source.len()];
            targets.retain(|&to| {
                let from = self.source[to].expect("only positions that receive are left") as usize;
                let is_taken = source[from].is_some();
                if !is_taken {
                    source[from] = Some(to as u32);
                }
                is_taken
            });
            let part = build.emit1(PPermute { axes: self.axes.clone(), source }, &[cotangent])?;
            sum = Some(match sum {
                Some(sum) => Arithmetic(build).add(sum, part)?,
                None => part,
            });
        }
        match sum {
            Some(sum) => Ok(sum),
            None => zeros_like(build, cotangent),
        }
    }
}

impl Exchange for PPermute {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lowering.permute(self.axes.clone(), self.source.clone(), stmt.args[0], stmt.results[0]);
        Ok(())
    }

    fn collective(&self, _: &[&Type], _: &[&Type], _: &Mesh) -> (CollectiveKind, AxisSet) {
        (CollectiveKind::CollectivePermute, axis_set(&self.axes))
    }

    fn traffic(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic {
        // A value that a device sends to itself does not move.
        let receives = |&(to, from): &(usize, &Option<u32>)| from.is_some_and(|from| from as usize != to);
        let receivers = (self.source.iter().enumerate().filter(receives).count() * mesh.device_count()) as u64;
        let usual = usual_traffic(self, args, results, mesh);
        let is_empty = receivers == 0;
        Traffic {
            received: if is_empty { 0 } else { usual.received },
            total: usual.received * receivers / self.source.len() as u64,
            crossing: if is_empty { 0 } else { usual.crossing },
            ..usual
        }
    }

    fn messages(&self, _: &[&Type], _: &Mesh) -> SentMessages<'_> {
        SentMessages::Group(self)
    }
}

impl GroupCollective for PPermute {
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

    fn message(&self, from: usize, to: usize) -> GroupMessage {
        if self.source[to] == Some(from as u32) { GroupMessage::Whole } else { GroupMessage::Nothing }
    }

    fn eval_group(&self, members: &[Vec<&Array>]) -> Vec<Array> {
        let received = |source: &Option<u32>| match source {
            Some(from) => members[*from as usize][0].clone(),
            None => Array::filled(members[0][0].ty.clone(), 0),
        };
        self.source.iter().map(received).collect()
    }
}

/// The sources given by pairs (from, to); an error if the pairs are invalid.
fn sources(pairs: &Arg, members: usize) -> Result<Vec<Option<u32>>, Diagnostic> {
    let malformed = |message: String| Diagnostic::error(Code::E0505, pairs.span, message);
    let Some(list) = pairs.term.sequence() else {
        return Err(malformed(must_be(
            "a permutation",
            "a list of pairs such as ((0, 1), (1, 2))",
            pairs.term.describe(),
        )));
    };
    let mut source = vec![None; members];
    let mut sends = vec![false; members];
    for pair in list {
        let ends = pair.sequence().unwrap_or_default();
        let [Term::Int(from), Term::Int(to)] = *ends else {
            let message = must_be("each entry of a permutation", "a pair of positions", pair.describe());
            return Err(malformed(message));
        };
        let position = |at: i128| {
            usize::try_from(at)
                .ok()
                .filter(|&at| at < members)
                .ok_or_else(|| malformed(format!("position {at} is out of range for {members} devices")))
        };
        let (from, to) = (position(from)?, position(to)?);
        if std::mem::replace(&mut sends[from], true) {
            return Err(malformed(format!("position {from} sends twice")));
        }
        if source[to].replace(from as u32).is_some() {
            return Err(malformed(format!("position {to} receives twice")));
        }
    }
    Ok(source)
}

impl Call for PPermute {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Values sent between devices by pairs of positions; a device to which none sends gets zeros.
        ppermute(x: Array, axis_name: Axes, perm: Of("pairs of positions")),
            Any, Planes(x), "manual(X) fn main(x: f32[4@X, 6]) -> f32[4@X, 6] { ppermute(x, X, ((0, 1),)) }";
        /// Values sent to the device at the given distance, wrapping around the group.
        pshift(x: Array, axis_name: Axes, shift: Int),
            Any, Planes(x), "manual(X) fn main(x: f32[4@X, 6]) -> f32[4@X, 6] { pshift(x, X, 1) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        let axes = manual_axes(name, args, build)?;
        let members = build.mesh().size_of(&axes);
        let source = if name == "pshift" {
            let shift = args.int("shift")?;
            (0..members as i64).map(|to| Some((to - shift).rem_euclid(members as i64) as u32)).collect()
        } else {
            sources(&args.required("perm")?, members)?
        };
        Ok(Term::Array(build.emit1(PPermute { axes, source }, &[value])?))
    }
}
