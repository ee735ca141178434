//! `halo(x, dims=.., to=..)`: the elements of `x` that devices lack for a window on it, fetched from the devices that have them.
//!
//! ```text
//! let h: f32[4@Y] = halo(x, dims=[[(8, 0, 7, 1, 8, 0)]], to=[P(Y)]);                   // x: f32[8@Y], Y = 4
//! let y: f32[8@Y] = window(x, h, dims=[(8, 0, 7, 1, 8, 0)], halos=(0,), bits=0);       // roll(x, 1)
//! ```
//!
//! Each device gets exactly the elements that it lacks. There is a result for each dimension along which some device lacks
//! elements: the halos of all devices one after another, each padded to the longest. Several operands are fetched together.

use spmdc_abi::{CollectiveKind, FetchDim};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::work::{Fetch, Lowering};
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Exchange, FetchedBoxes, Linear, Lowered, Manual, NamedAxes, Placement, PlacesResults,
    Properties, Rules, Semantics, SentMessages, Typing,
};
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::factors::Factors;
use spmdc_layout::halo_flow::{HaloFlow, flow};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::reshard::Traffic;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, Type};
use spmdc_layout::window::{DimMap, Reaches};
use spmdc_ops::window::{display, read};

/// `halo(x, dims=[..], to=[..])`: one result for each dimension along which devices lack elements of a window on an operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Halo {
    /// One for each operand.
    pub parts: Vec<HaloWindow>,
}

/// A window, and the layout of its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct HaloWindow {
    /// For each dimension, the elements of the operand in the window.
    pub dims: Vec<DimMap>,
    /// The layout of the window.
    pub to: Sharding,
    /// The elements that the devices have and lack, computed from the other fields, the operand's layout and the mesh.
    pub reaches: Reaches,
}

impl HaloWindow {
    /// None if the missing elements have no layout.
    pub fn new(dims: Vec<DimMap>, from: &Sharding, to: &Sharding, mesh: &Mesh) -> Option<HaloWindow> {
        let reaches = Reaches::new(&dims, from, to, mesh)?;
        Some(HaloWindow { dims, to: to.clone(), reaches })
    }
}

impl Halo {
    /// For each result, the operand and the dimension of the halo.
    fn results(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let parts = self.parts.iter().enumerate();
        parts.flat_map(|(operand, part)| part.reaches.halos().into_iter().map(move |dim| (operand, dim)))
    }

    /// Whether the result of this number is the halo of a window on `operand` along a dimension, for a result with layout `to`.
    pub fn is_for(
        &self,
        result: usize,
        (operand, dim): (Value, usize),
        (dims, to): (&[DimMap], &Sharding),
        args: &[Value],
    ) -> bool {
        self.results().nth(result).is_some_and(|(part, along)| {
            let HaloWindow { dims: known, to: lies, .. } = &self.parts[part];
            args[part] == operand && along == dim && known == dims && lies == to
        })
    }

    fn fetches(&self, mesh: &Mesh) -> Vec<Vec<FetchDim>> {
        self.results().map(|(operand, dim)| self.parts[operand].reaches.fetch(dim, mesh)).collect()
    }

    fn types(&self, args: &[&Type], mesh: &Mesh) -> Vec<Type> {
        self.results().map(|(operand, dim)| self.parts[operand].reaches.halo_type(dim, args[operand], mesh)).collect()
    }

    /// The elements that the fetches move.
    pub fn flow(&self, mesh: &Mesh) -> HaloFlow {
        flow(&self.fetches(mesh), mesh)
    }

    /// A gather if all devices of the group get all blocks in full; otherwise a permutation.
    fn kind(&self, flow: &HaloFlow) -> CollectiveKind {
        let split = self.parts.iter().fold(AxisSet::EMPTY, |set, part| set.union(part.to.used_axes()));
        let is_shared = split.intersect(flow.group).is_empty();
        if is_shared && flow.received > flow.provided {
            CollectiveKind::AllGather
        } else {
            CollectiveKind::CollectivePermute
        }
    }
}

impl Semantics for Halo {
    fn name(&self) -> &'static str {
        "halo"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::OfBlocks(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::unrelated(args, results)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let value = |(operand, halo): (usize, usize)| {
            let (x, part) = (args[operand], &self.parts[operand]);
            let mut shape: Vec<usize> = part.dims.iter().map(DimMap::result).collect();
            let reach = &part.reaches.dims[halo];
            shape[halo] = reach.capacity() * reach.positions.len();
            Array::from_fn(ArrayType::new(x.dtype(), &shape), |index| {
                part.reaches.halo_place(halo, index).map_or(0, |places| x.get(&places))
            })
        };
        Ok(self.results().map(value).collect())
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        let list = |text: &dyn Fn(&HaloWindow) -> String| {
            format!("[{}]", self.parts.iter().map(text).collect::<Vec<_>>().join(", "))
        };
        let (dims, to) = (list(&|part| display(&part.dims)), list(&|part| part.to.display(mesh)));
        format!("halo({}, dims={dims}, to={to})", args.join(", "))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl PlacesResults for Halo {
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        self.check(args)?;
        Ok(self.types(args, mesh))
    }
}

impl Halo {
    fn check(&self, args: &[&Type]) -> Result<(), Mismatch> {
        let fits =
            |(part, arg): (&HaloWindow, &&Type)| part.dims.iter().map(|map| map.size).eq(arg.shape().iter().copied());
        if self.parts.len() != args.len() || !self.parts.iter().zip(args).all(fits) {
            return Err(Mismatch::new(Code::E0205, "the halo does not match the shape of the array"));
        }
        Ok(())
    }
}

impl Rules for Halo {
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

impl Exchange for Halo {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let mesh = lowering.mesh;
        let flow = self.flow(mesh);
        let pairs = self.results().zip(&stmt.results);
        let parts = pairs.zip(self.fetches(mesh)).map(|(((operand, _), &to), dims)| {
            let from = stmt.args[operand];
            Fetch { from, to, dtype: lowering.ty(to).dtype(), dims }
        });
        let (parts, sizes) = (parts.collect(), self.element_size(lowering, stmt));
        lowering.fetch(self.kind(&flow), flow.group, parts, (flow.provided * sizes) as u64);
        Ok(())
    }

    fn collective(&self, _: &[&Type], _: &[&Type], mesh: &Mesh) -> (CollectiveKind, AxisSet) {
        let flow = self.flow(mesh);
        (self.kind(&flow), flow.group)
    }

    fn traffic(&self, args: &[&Type], _: &[&Type], mesh: &Mesh) -> Traffic {
        let flow = self.flow(mesh);
        let size = args.first().map_or(0, |ty| ty.dtype().size());
        let bytes = |elements: usize| (elements * size) as u64;
        let provided = bytes(flow.shape.iter().product());
        let (received, total) = (bytes(flow.received), bytes(flow.total));
        let crossing = bytes(flow.crossing);
        Traffic { operand: flow.shape, bytes: provided, received, total, crossing }
    }

    fn messages(&self, _: &[&Type], mesh: &Mesh) -> SentMessages<'_> {
        let fetches = self.results().zip(self.fetches(mesh));
        SentMessages::Boxes(fetches.map(|((operand, _), dims)| FetchedBoxes { operand, dims }).collect())
    }
}

impl Halo {
    /// All operands have one element type, as the operands of a concatenation do.
    fn element_size(&self, lowering: &Lowering<'_>, stmt: &Stmt) -> usize {
        stmt.args.first().map_or(0, |&arg| lowering.ty(arg).dtype().size())
    }
}

impl Call for Halo {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The elements that devices lack for a window.
        halo([rest] operands: Array, [named] dims: Of("places") = None, [named] to: Of("shardings") = None)
        in_dumps "" "write x[1:3] or `roll`: what devices lack is fetched";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let span = args.span;
        let malformed = || Diagnostic::error(Code::E0227, span, "`halo` requires `dims=` and `to=` for each operand");
        let (dims, to) = (args.take("dims"), args.take("to"));
        let (Some(dims), Some(to)) = (dims, to) else { return Err(malformed()) };
        let (Term::List(dims), Term::List(to)) = (dims.term, to.term) else { return Err(malformed()) };
        let mut operands = Vec::new();
        for arg in args.rest("operands") {
            operands.push(build.materialize(&arg.term, None, arg.span)?);
        }
        if dims.len() != operands.len() || to.len() != operands.len() {
            return Err(malformed());
        }
        let mut parts = Vec::new();
        for ((&operand, dims), to) in operands.iter().zip(&dims).zip(&to) {
            let ty = build.ty(operand);
            let Term::Sharding(to) = to else { return Err(malformed()) };
            let to = complete(to.sharding.clone(), ty.rank(), args.span)?;
            let dims = read(dims, ty.shape(), args.span)?;
            let Some(part) = HaloWindow::new(dims, &ty.sharding, &to, build.mesh()) else { return Err(malformed()) };
            parts.push(part);
        }
        Ok(Term::of_results(&build.emit(Halo { parts }, &operands)?))
    }
}
