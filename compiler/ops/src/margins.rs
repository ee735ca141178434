//! `margins(x, parts=..)`: the elements of `x` that devices lack for several windows on it, fetched from other devices.
//!
//! ```text
//! let (v1, v2) = margins(x, parts=[(0, -1, [[(0, 0), (6, 8)]]), (0, 1, [[(8, 9), (16, 16)]])]);    // x: f32[16@Y], Y = 2
//! let v3: f32[14@Y/16+1] = window(x, v1, dims=[(16, 0, 0, 1, 14, 0)], halos=(0,), bits=0);
//! ```
//!
//! Each part is a margin (`layout/margin.rs`). It has its dimension, and -1 for places before the blocks or 1 for places after. For each
//! dimension and each position along the axes that split it, it has the first place and the end of its span. There is a result for each.

use spmdc_abi::{CollectiveKind, FetchDim};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::work::{Fetch, Lowering};
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Exchange, FetchedBoxes, Linear, Lowered, Manual, NamedAxes, Placement, PlacesResults,
    Properties, Rules, Semantics, SentMessages, Typing,
};
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::factors::Factors;
use spmdc_layout::halo_flow::{HaloFlow, flow};
use spmdc_layout::margin::Margin;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::Traffic;
use spmdc_layout::types::{ArrayType, AxisSet, Type};
use std::ops::Range;
use std::sync::Arc;

/// `margins(x, parts=[..])`: one result for each margin of the blocks of `x`.
#[derive(Clone, Debug, PartialEq)]
pub struct Margins {
    /// One for each result.
    pub parts: Vec<Arc<Margin>>,
}

impl Margins {
    fn fetches(&self, operand: &Type, mesh: &Mesh) -> Vec<Vec<FetchDim>> {
        self.parts.iter().map(|part| part.fetch(operand.shape(), &operand.sharding, mesh)).collect()
    }

    /// The elements that the fetches move.
    pub fn flow(&self, operand: &Type, mesh: &Mesh) -> HaloFlow {
        flow(&self.fetches(operand, mesh), mesh)
    }
}

impl Semantics for Margins {
    fn name(&self) -> &'static str {
        "margins"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::OfBlocks(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::unrelated(args, results)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let x = args[0];
        let value = |part: &Arc<Margin>| {
            let place = |index: &[usize]| part.place(index, x.shape());
            Array::from_fn(ArrayType::new(x.dtype(), &part.shape()), |index| {
                place(index).map_or(0, |places| x.get(&places))
            })
        };
        Ok(self.parts.iter().map(value).collect())
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let span = |span: &Range<i64>| format!("({}, {})", span.start, span.end);
        let part = |part: &Arc<Margin>| {
            let spans = part.spans.iter().map(|spans| list(spans, span));
            let side = if part.behind { 1 } else { -1 };
            format!("({}, {side}, [{}])", part.dim, spans.collect::<Vec<_>>().join(", "))
        };
        format!("margins({}, parts={})", args.join(", "), list(&self.parts, part))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl PlacesResults for Margins {
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        if args.len() != 1 || !self.parts.iter().all(|part| part.is_sound(args[0].shape())) {
            return Err(Mismatch::new(Code::E0205, "the margins do not match the shape of the array"));
        }
        let types = self.parts.iter().map(|part| part.ty(args[0], mesh)).collect::<Option<Vec<Type>>>();
        types.ok_or_else(|| Mismatch::new(Code::E0205, "the margins do not match the layout of the array"))
    }
}

impl Rules for Margins {
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
            placement: Placement::Follows,
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
        Vec::new()
    }
}

impl Exchange for Margins {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let mesh = lowering.mesh;
        let (from, operand) = (stmt.args[0], lowering.ty(stmt.args[0]));
        let (flow, dtype) = (self.flow(operand, mesh), operand.dtype());
        let fetches = stmt.results.iter().zip(self.fetches(operand, mesh));
        let parts = fetches.map(|(&to, dims)| Fetch { from, to, dtype, dims }).collect();
        lowering.fetch(CollectiveKind::CollectivePermute, flow.group, parts, (flow.provided * dtype.size()) as u64);
        Ok(())
    }

    fn collective(&self, args: &[&Type], _: &[&Type], mesh: &Mesh) -> (CollectiveKind, AxisSet) {
        (CollectiveKind::CollectivePermute, self.flow(args[0], mesh).group)
    }

    fn traffic(&self, args: &[&Type], _: &[&Type], mesh: &Mesh) -> Traffic {
        let flow = self.flow(args[0], mesh);
        let bytes = |elements: usize| (elements * args[0].dtype().size()) as u64;
        let provided = bytes(flow.shape.iter().product());
        let (received, total) = (bytes(flow.received), bytes(flow.total));
        let crossing = bytes(flow.crossing);
        Traffic { operand: flow.shape, bytes: provided, received, total, crossing }
    }

    fn messages(&self, args: &[&Type], mesh: &Mesh) -> SentMessages<'_> {
        let fetches = self.fetches(args[0], mesh).into_iter();
        SentMessages::Boxes(fetches.map(|dims| FetchedBoxes { operand: 0, dims }).collect())
    }
}

fn list<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// Reads one part as [`Margins::print`] writes it.
fn read(term: &Term) -> Option<Arc<Margin>> {
    let Term::Tuple(parts) = term else { return None };
    let [Term::Int(dim), Term::Int(side), Term::List(dims)] = parts.as_slice() else { return None };
    let span = |term: &Term| {
        let Term::Tuple(ends) = term else { return None };
        let [Term::Int(start), Term::Int(end)] = ends.as_slice() else { return None };
        Some(i64::try_from(*start).ok()?..i64::try_from(*end).ok()?)
    };
    let spans = |term: &Term| {
        let Term::List(spans) = term else { return None };
        spans.iter().map(span).collect::<Option<Vec<Range<i64>>>>()
    };
    let behind = match side {
        -1 => false,
        1 => true,
        _ => return None,
    };
    let spans = dims.iter().map(spans).collect::<Option<_>>()?;
    Some(Arc::new(Margin { dim: usize::try_from(*dim).ok()?, behind, spans }))
}

impl Call for Margins {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The elements that devices lack for several windows.
        margins(x: Array, [named] parts: Of("parts") = None) in_dumps "" "write x[1:3] or `roll`: what devices lack is fetched";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let parts = args.take("parts").map(|arg| arg.term);
        let value = args.array(build, "x")?;
        let shape = build.ty(value).shape();
        let parts = match &parts {
            Some(Term::List(parts)) => parts.iter().map(read).collect::<Option<Vec<_>>>(),
            _ => None,
        };
        let parts = parts.filter(|parts| !parts.is_empty() && parts.iter().all(|part| part.is_sound(shape)));
        let Some(parts) = parts else {
            let message = "`parts` of `margins` must be a list of (dimension, -1 or 1, [[(from, to), ..], ..])";
            return Err(Diagnostic::error(Code::E0227, args.span, message));
        };
        Ok(Term::of_results(&build.emit(Margins { parts }, &[value])?))
    }
}
