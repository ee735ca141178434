//! `ghosted(x, maps=.., dims=.., to=.., bits=..)`: for each device a block with all elements that its windows read, including elements of
//! other devices and padding.
//!
//! ```text
//! let g: f32[16@Y] = ghosted(x, maps=[(8, 1, 0, 1, 8, 1)], dims=[(0, 8, 3, 1, 1, 4)], to=P(Y), bits=0);    // x: f32[8@Y], Y = 4
//! let w: f32[8@Y, 3] = patches(g, dims=[(0, 8, 3, 1, 1, 4)], at=1);                         // windows of 3 of pad(x, 1)
//! ```
//!
//! The result has the blocks of all devices one after another; each has room for the elements that the windows of a device read. Along
//! dimensions without windows blocks do not change. Each device receives exactly the elements that its windows read and it lacks. Unlike a
//! `halo`, the result also has the device's own elements, in one buffer: windows are read many times, and this avoids conditions.

use crate::patches;
use spmdc_abi::{CollectiveKind, FetchDim, FetchRun};
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
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Exchange, FetchedBoxes, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement,
    PlacesResults, Properties, Reads, Rules, Semantics, SentMessages, Typing,
};
use spmdc_ir::stablehlo::Exported;
use spmdc_kernel::loops::Affine;
use spmdc_layout::blocks::table;
use spmdc_layout::factors::Factors;
use spmdc_layout::halo_flow::{HaloFlow, flow};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::patch::{GhostDim, PatchDim};
use spmdc_layout::reshard::Traffic;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, Type};
use spmdc_layout::window::{DimMap, WindowMap};
use spmdc_ops::window;
use std::ops::Range;

/// `ghosted(x, maps=[..], dims=[..], to=P(..), bits=0)`: blocks with all elements that windows read.
#[derive(Clone, Debug, PartialEq)]
pub struct Ghosted {
    /// One for each dimension.
    pub dims: Vec<GhostDim>,
    /// The bits of the padding.
    pub fill: u64,
    /// The layout of the result.
    pub to: Sharding,
    /// The elements that devices copy, computed from the other fields, the operand's layout and the mesh.
    fetches: Vec<FetchDim>,
    /// The part of them that comes from other devices.
    pub flow: HaloFlow,
}

impl Ghosted {
    /// The blocks for windows on `map` of an operand that is split as `from`, for a result that is split as `to`; `patches` are the
    /// windows, in blocks. None if there are no such blocks.
    pub fn new(map: &WindowMap, patches: &[PatchDim], from: &Sharding, to: &Sharding, mesh: &Mesh) -> Option<Ghosted> {
        let along = |dim: usize| patches.iter().find(|patch| patch.dim == dim).copied();
        let dims: Vec<GhostDim> =
            map.dims.iter().enumerate().map(|(dim, &map)| GhostDim { map, patch: along(dim) }).collect();
        let layouts = || from.dims.iter().zip(&to.dims);
        let is_known = patches.iter().all(|patch| patch.dim < dims.len() && patch.is_sound());
        let fits = is_known
            && from.rank() == dims.len()
            && to.rank() == dims.len()
            && from.unreduced.is_empty()
            && to.unreduced.is_empty()
            && dims.iter().zip(layouts()).all(|(dim, (from, to))| dim.fits(from, to, mesh));
        if !fits {
            return None;
        }
        let fetches: Vec<FetchDim> =
            dims.iter().zip(layouts()).map(|(dim, (from, to))| dim.fetch(from, to, mesh)).collect();
        let flow = flow(std::slice::from_ref(&fetches), mesh);
        Some(Ghosted { dims, fill: map.fill, to: to.clone(), fetches, flow })
    }

    /// The result, for an operand of this type.
    pub fn result(&self, operand: &Type) -> Type {
        let sizes: Vec<usize> = self.dims.iter().map(GhostDim::size).collect();
        Type { array: ArrayType::new(operand.dtype(), &sizes), sharding: self.to.clone(), varying: operand.varying }
    }

    /// The windows for which the blocks are made.
    pub fn patches(&self) -> impl Iterator<Item = PatchDim> {
        self.dims.iter().filter_map(|dim| dim.patch)
    }

    fn map(&self) -> Vec<DimMap> {
        self.dims.iter().map(|dim| dim.map).collect()
    }
}

impl Semantics for Ghosted {
    fn name(&self) -> &'static str {
        "ghosted"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::OfBlocks(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::unrelated(args, results)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let sources: Vec<Vec<Option<usize>>> = self.dims.iter().map(GhostDim::sources).collect();
        let shape: Vec<usize> = sources.iter().map(Vec::len).collect();
        Ok(vec![Array::from_fn(ArrayType::new(args[0].dtype(), &shape), |index| {
            let places: Option<Vec<usize>> = index.iter().zip(&sources).map(|(&at, sources)| sources[at]).collect();
            places.map_or(self.fill, |places| args[0].get(&places))
        })])
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        let patched: Vec<PatchDim> = self.patches().collect();
        let (maps, dims) = (window::display(&self.map()), patches::display(&patched));
        format!("ghosted({}, maps={maps}, dims={dims}, to={}, bits={})", args[0], self.to.display(mesh), self.fill)
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl PlacesResults for Ghosted {
    fn place(&self, args: &[&Type], _: &Mesh) -> Result<Vec<Type>, Mismatch> {
        if !self.dims.iter().map(|dim| dim.map.size).eq(args[0].shape().iter().copied()) {
            return Err(Mismatch::new(Code::E0205, "the ghosted blocks do not match the shape of the array"));
        }
        Ok(vec![self.result(args[0])])
    }
}

impl Rules for Ghosted {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Missing
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
    }

    fn lowered(&self) -> Lowered<'_> {
        if self.flow.group.is_empty() { Lowered::Nest(self) } else { Lowered::Exchange(self) }
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

impl Exchange for Ghosted {
    /// Other devices' elements and the device's own ones are copied by one step.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        self.pad(lowering, stmt);
        let (from, to) = (stmt.args[0], stmt.results[0]);
        let dtype = lowering.ty(to).dtype();
        let part = Fetch { from, to, dtype, dims: self.fetches.clone() };
        let bytes = (self.flow.provided * dtype.size()) as u64;
        lowering.fetch(CollectiveKind::CollectivePermute, self.flow.group, vec![part], bytes);
        Ok(())
    }

    fn collective(&self, _: &[&Type], _: &[&Type], _: &Mesh) -> (CollectiveKind, AxisSet) {
        (CollectiveKind::CollectivePermute, self.flow.group)
    }

    fn traffic(&self, args: &[&Type], _: &[&Type], _: &Mesh) -> Traffic {
        let bytes = |elements: usize| (elements * args[0].dtype().size()) as u64;
        let provided = bytes(self.flow.shape.iter().product());
        Traffic {
            operand: self.flow.shape.clone(),
            bytes: provided,
            received: bytes(self.flow.received),
            total: bytes(self.flow.total),
            crossing: bytes(self.flow.crossing),
        }
    }

    fn messages(&self, _: &[&Type], _: &Mesh) -> SentMessages<'_> {
        SentMessages::Boxes(vec![FetchedBoxes { operand: 0, dims: self.fetches.clone() }])
    }
}

impl NestLowering for Ghosted {
    /// Every device has all elements that its windows read: it copies them.
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        debug_assert!(self.flow.group.is_empty(), "elements of other devices are exchanged");
        self.pad(lowering, stmt);
        let mut boxes: Vec<Vec<usize>> = vec![Vec::new()];
        for dim in &self.fetches {
            let most = dim.runs.iter().map(Vec::len).max().unwrap_or(0);
            boxes = boxes.iter().flat_map(|known| (0..most).map(|run| [known.as_slice(), &[run]].concat())).collect();
        }
        for numbers in boxes {
            let mut kernel = lowering.kernel();
            let (mut from, mut to) = (Vec::new(), Vec::new());
            for (&number, dim) in numbers.iter().zip(&self.fetches) {
                let scalar = |value: &dyn Fn(&FetchRun) -> i64| {
                    let of = |runs: &Vec<FetchRun>| runs.get(number).map_or(0, value);
                    table(&dim.axes, dim.runs.iter().map(of).collect())
                };
                let most = dim.runs.iter().filter_map(|runs| runs.get(number)).map(|run| run.len).max().unwrap_or(0);
                let step = dim.runs.iter().find_map(|runs| runs.get(number)).map_or(1, |run| run.step);
                let index = kernel.dim(scalar(&|run| run.len as i64), most, false);
                from.push(index.times(step).plus(&kernel.scalar_affine(scalar(&|run| run.from as i64))));
                to.push(index.plus(&kernel.scalar_affine(scalar(&|run| run.to as i64))));
            }
            let elem = kernel.operand(stmt.args[0], &from);
            kernel.store(stmt.results[0], &to, elem);
            lowering.run(kernel);
        }
        Ok(())
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Ghosted {
    /// Fills the padding: along each dimension that before and that after the elements, in all blocks of the other dimensions.
    fn pad(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) {
        let result = stmt.results[0];
        for (dim, ghost) in self.dims.iter().enumerate() {
            for side in ghost.padding() {
                let most = side.iter().map(Range::len).max().unwrap_or(0);
                if most == 0 {
                    continue;
                }
                let axes = &self.to.dims[dim].axes;
                let mut kernel = lowering.kernel();
                let ty = kernel.context.ty(result);
                let mut index: Vec<Affine> = Vec::new();
                for other in 0..ty.rank() {
                    index.push(if other == dim {
                        let len = table(axes, side.iter().map(|places| places.len() as i64).collect());
                        let first = table(axes, side.iter().map(|places| places.start as i64).collect());
                        kernel.dim(len, most, false).plus(&kernel.scalar_affine(first))
                    } else {
                        let (len, room) = (kernel.context.block_len(ty, other), ty.block_shape(lowering.mesh)[other]);
                        kernel.dim(len, room, false)
                    });
                }
                let fill = kernel.constant(ty.dtype(), self.fill);
                kernel.store(result, &index, fill);
                lowering.run(kernel);
            }
        }
    }
}

impl Call for Ghosted {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// Blocks with all elements that windows read.
        ghosted(x: Array, [named] maps: Of("places") = None, [named] dims: Of("windows") = None, [named] to: Sharding = None,
            [named] bits: Of("bits") = 0)
        in_dumps "" "write `reduce_window` or `conv`: what devices lack is fetched";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let span = args.span;
        let (maps, dims) = (args.required("maps")?, args.required("dims")?);
        let fill = args.take("bits").map_or(Term::Int(0), |arg| arg.term);
        let to = args.optional_sharding("to")?;
        let value = args.array(build, "x")?;
        let malformed = || Diagnostic::error(Code::E0227, span, "the attributes of `ghosted` do not match the array");
        let (Some((to, _)), Term::Int(fill)) = (to, fill) else { return Err(malformed()) };
        let ty = build.ty(value);
        let to = complete(to.sharding, ty.rank(), span)?;
        let map = WindowMap { dims: window::read(&maps.term, ty.shape(), span)?, fill: fill as u64 };
        let dims = patches::read(&dims.term, dims.span)?;
        let op = Ghosted::new(&map, &dims, &ty.sharding, &to, build.mesh()).ok_or_else(malformed)?;
        Ok(Term::Array(build.emit1(op, &[value])?))
    }
}
