//! Several small collectives of one kind at once: `all_reduce(x, y, to=[P(_), P(_,_)])`.
//!
//! Each operand gets its own layout, as by the step of a `reshard`; `combine_collectives` joins such steps. It occurs in dumps only.

use crate::reshard::step::lower_step;
use spmdc_abi::{CollectiveKind, ReduceOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Exchange, Linear, Lowered, Manual, NamedAxes, Placement, PlacesResults, Properties,
    Rules, Semantics, SentMessages, Typing,
};
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::{self, Traffic};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};

/// `all_reduce(x, y, to=[P(_), P(_,_)])`: the steps of several reshards as one collective.
#[derive(Clone, Debug, PartialEq)]
pub struct Combined {
    /// The kind of the collective, common to all steps.
    pub kind: CollectiveKind,
    /// The layout of each result.
    pub to: Vec<Sharding>,
}

/// The properties that collectives must share to be combined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common {
    /// The kind of the collective.
    pub kind: CollectiveKind,
    /// Reports give one element type for a collective.
    dtype: DType,
    group: AxisSet,
    /// The axes along which partial values are combined, and the operation.
    reduce: AxisSet,
    op: ReduceOp,
}

impl Common {
    /// None for collectives in which each device has individual partners, which may differ between two of them.
    pub fn of(kind: CollectiveKind, from: &Type, to: &Sharding, mesh: &Mesh) -> Option<Common> {
        if matches!(kind, CollectiveKind::CollectivePermute | CollectiveKind::Transfer) {
            return None;
        }
        let group = reshard::group(&from.array, &from.sharding, to, mesh);
        let reduce = from.sharding.unreduced.minus(to.unreduced);
        Some(Common { kind, dtype: from.dtype(), group, reduce, op: from.sharding.combine })
    }
}

impl Semantics for Combined {
    fn name(&self) -> &'static str {
        self.kind.name()
    }

    fn typing(&self) -> Typing<'_> {
        Typing::OfBlocks(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        for arg in args {
            let dims: Vec<Vec<usize>> = arg.shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
            rule.operands.push(dims.clone());
            rule.results.push(dims);
        }
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(args.iter().map(|&arg| arg.clone()).collect())
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        // The operation that combines partial values follows from the operands.
        let layout = |to: &Sharding| Sharding { combine: ReduceOp::Sum, ..to.clone() }.display(mesh);
        let to: Vec<String> = self.to.iter().map(layout).collect();
        format!("{}({}, to=[{}])", self.name(), args.join(", "), to.join(", "))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl PlacesResults for Combined {
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        let fits = args.len() == self.to.len() && args.iter().zip(&self.to).all(|(arg, to)| arg.rank() == to.rank());
        if !fits || args.is_empty() {
            return Err(Mismatch::new(Code::E0205, "every operand needs a layout with its number of dimensions"));
        }
        let parts = || args.iter().zip(&self.to);
        let mut common = parts().map(|(arg, to)| Common::of(self.kind, arg, to, mesh));
        let first = common.next().flatten();
        if first.is_none() || common.any(|other| other != first) {
            return Err(Mismatch::new(Code::E0227, "these collectives cannot be combined into one"));
        }
        Ok(parts().map(|(&arg, to)| Type { sharding: to.clone(), ..arg.clone() }).collect())
    }
}

impl Rules for Combined {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Missing
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Exchange(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Moved,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: false,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::AfterPartitioning
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        self.to.iter_mut().map(NamedAxes::Layout).collect()
    }
}

impl Exchange for Combined {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        stmt.args.iter().zip(&stmt.results).for_each(|(&from, &to)| lower_step(lowering, self.kind, from, to));
        lowering.join();
        Ok(())
    }

    fn collective(&self, args: &[&Type], _: &[&Type], mesh: &Mesh) -> (CollectiveKind, AxisSet) {
        (self.kind, reshard::group(&args[0].array, &args[0].sharding, &self.to[0], mesh))
    }

    /// The elements of all operands, one after another.
    fn traffic(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic {
        let parts = args.iter().zip(results).map(|(from, to)| reshard::traffic(self.kind, from, to, mesh));
        parts.fold(Traffic { operand: vec![0], bytes: 0, received: 0, total: 0, crossing: 0 }, |sum, part| Traffic {
            operand: vec![sum.operand[0] + part.operand.iter().product::<usize>()],
            bytes: sum.bytes + part.bytes,
            received: sum.received + part.received,
            total: sum.total + part.total,
            crossing: sum.crossing + part.crossing,
        })
    }

    fn messages(&self, _: &[&Type], _: &Mesh) -> SentMessages<'_> {
        SentMessages::Layouts
    }
}

/// Reads `all_reduce(x, y, to=[P(_), P(_,_)])` in a dump.
pub fn read(kind: CollectiveKind, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
    let given = args.required("to")?;
    let layouts = given.term.one_or_more();
    let mut operands = Vec::new();
    for arg in args.rest("operands") {
        operands.push(build.materialize(&arg.term, None, arg.span)?);
    }
    let mut to = Vec::new();
    for (layout, &operand) in layouts.iter().zip(&operands) {
        let Term::Sharding(layout) = layout else {
            let message = must_be("`to`", "a list of shardings such as [P(X, _)]", layout.describe());
            return Err(Diagnostic::error(Code::E0227, given.span, message));
        };
        to.push(complete(layout.sharding.clone(), build.ty(operand).rank(), given.span)?);
    }
    if to.len() != layouts.len() {
        return Err(Diagnostic::error(Code::E0227, given.span, "there are more layouts than operands"));
    }
    Ok(Term::of_results(&build.emit(Combined { kind, to }, &operands)?))
}
