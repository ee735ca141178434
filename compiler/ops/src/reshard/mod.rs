//! Another layout for the same value: `reshard(x, P(X, _))`, annotations, and, after partitioning, the collectives.
//!
//! On whole arrays it is the identity. Until partitioning it is a request, which `partition` replaces by steps that name their
//! collective: `all_gather(x, P())`. A step fetches exact ranges, so every kind works for every size.

pub mod step;

use crate::combined;
use crate::reshard::step::lower_step;
use spmdc_abi::{CollectiveKind, Scalar};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{counted, must_be, requires};
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching};
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Alias, Combines, Copied, Effect, Elements, Exchange, Linear, Lowered, Manual, NamedAxes, Placement, PlacesResults,
    Point, Properties, Reads, Rules, Semantics, SentMessages, Typing,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number::nothing_added;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::{AxisKind, Mesh};
use spmdc_layout::reshard::step::{PlanStep, ReshardStep};
use spmdc_layout::reshard::{self, Traffic};
use spmdc_layout::sharding::{Alignment, DimSharding, Sharding};
use spmdc_layout::types::{ArrayType, AxisSet, Type};

/// `reshard(x, P(X, _))`: the value in another layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Reshard {
    /// The layout after the step.
    pub to: Sharding,
    /// The kind of the step.
    pub step: ReshardStep,
}

impl Reshard {
    /// A request for this layout.
    pub fn request(to: Sharding) -> Reshard {
        Reshard { to, step: ReshardStep::Request }
    }

    /// A pin of a gradient to this layout.
    pub fn pin_of_gradient(to: Sharding) -> Reshard {
        Reshard { to, step: ReshardStep::PinGradient }
    }

    /// A pin to this layout.
    pub fn pin(to: Sharding) -> Reshard {
        Reshard { to, step: ReshardStep::Pin }
    }

    /// The kind of a collective.
    fn kind(&self) -> CollectiveKind {
        let ReshardStep::Collective(kind) = self.step else { unreachable!("only collectives exchange data") };
        kind
    }
}

impl From<PlanStep> for Reshard {
    fn from(PlanStep { to, step }: PlanStep) -> Reshard {
        Reshard { to, step }
    }
}

impl Semantics for Reshard {
    fn name(&self) -> &'static str {
        match self.step {
            ReshardStep::Request => "reshard",
            ReshardStep::Pin => "pin",
            ReshardStep::PinGradient => "pin_gradient",
            ReshardStep::Slice => "shard",
            ReshardStep::Collective(kind) => kind.name(),
        }
    }

    fn typing(&self) -> Typing<'_> {
        Typing::Placed(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        let mut rule = Factors::new();
        let dims: Vec<Vec<usize>> = args[0].shape.iter().map(|&size| vec![rule.add(size, FactorKind::Pass)]).collect();
        rule.operands.push(dims.clone());
        rule.results.push(dims);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![args[0].clone()])
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        format!("{}({}, {})", self.name(), args[0], self.to.display(mesh))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl PlacesResults for Reshard {
    fn place(&self, args: &[&Type], _: &Mesh) -> Result<Vec<Type>, Mismatch> {
        Ok(vec![Type { sharding: self.to.clone(), ..args[0].clone() }])
    }
}

impl Rules for Reshard {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    fn lowered(&self) -> Lowered<'_> {
        match &self.step {
            ReshardStep::Request | ReshardStep::Pin | ReshardStep::PinGradient => Lowered::Request,
            ReshardStep::Slice => Lowered::Alias(self),
            ReshardStep::Collective(_) => Lowered::Exchange(self),
        }
    }

    fn properties(&self) -> Properties<'_> {
        let placement = match self.step {
            ReshardStep::Request | ReshardStep::Pin | ReshardStep::PinGradient => Placement::Requested(&self.to),
            ReshardStep::Slice | ReshardStep::Collective(_) => Placement::Moved,
        };
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: false,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        vec![NamedAxes::Layout(&mut self.to)]
    }
}

impl WritesStablehlo for Reshard {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        match self.step {
            ReshardStep::Request | ReshardStep::Pin | ReshardStep::PinGradient => {}
            ReshardStep::Slice | ReshardStep::Collective(_) => {
                return Err(HloGap("step between two layouts".to_string()));
            }
        }
        Ok(vec![hlo.constrain(&args[0], &self.to)])
    }
}

impl Batched for Reshard {
    /// The mapped dimension keeps its layout.
    fn batched(
        &self,
        build: &mut CallBuilder,
        _: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let mut to = self.to.clone();
        batch.add_to(&mut to, 0);
        if let Some(axis) = to.repeated_axis() {
            let (axis, layout) = (build.mesh().display_axes(&[axis]), self.to.display(build.mesh()));
            let message =
                format!("each element would have the layout `{layout}`, but the mapped dimension is split over {axis}");
            return Err(Diagnostic::error(Code::E0303, build.span(), message)
                .help("the mapped dimension keeps its layout; reshard an argument before calling `vmap`".to_string()));
        }
        build.emit(Reshard { to, step: self.step }, &[operands[0].value()])
    }
}

impl LinearMap for Reshard {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, build: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        match self.step {
            // The layout is wanted of the cotangent, too.
            ReshardStep::Pin | ReshardStep::PinGradient => {
                build.emit1(Reshard { step: ReshardStep::PinGradient, ..self.clone() }, &[cotangent])
            }
            ReshardStep::Request | ReshardStep::Slice | ReshardStep::Collective(_) => Ok(cotangent),
        }
    }
}

impl Alias for Reshard {
    /// An axis of one device splits nothing.
    fn aliases(&self, from: &Type, to: &Type, mesh: &Mesh) -> bool {
        let several = |axis: usize| mesh.axes[axis].size > 1;
        let dividing = |ty: &Type| {
            let axes = |dim: &DimSharding| dim.axes.iter().copied().filter(|&axis| several(axis as usize)).collect();
            let dims = ty.sharding.dims.iter().map(|dim| (axes(dim), dim.alignment));
            let partial = ty.sharding.unreduced.iter().filter(|&axis| several(axis)).collect::<AxisSet>();
            (dims.collect::<Vec<(Vec<u8>, Option<Alignment>)>>(), partial)
        };
        dividing(from) == dividing(to)
    }

    fn copied(&self) -> Copied<'_> {
        Copied::Point(self)
    }
}

impl Point for Reshard {
    /// A free slice: the element at the same global index, in the larger block of the operand. If the result is a partial value,
    /// each device has its own block of the operand, and zeros elsewhere, which keep the sign of a zero; of a whole operand the first device has all.
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let (from, to) = (kernel.context.ty(stmt.args[0]).clone(), kernel.context.ty(stmt.results[0]).clone());
        let mut partial = to.sharding.unreduced.minus(from.sharding.unreduced);
        let (mut shifted, mut tests) = (Vec::new(), Vec::new());
        for (dim, local) in index.iter().enumerate() {
            if from.sharding.dims[dim] == to.sharding.dims[dim] {
                shifted.push(local.clone());
                continue;
            }
            let place = kernel.global_index(&to, dim, local);
            let summands = AxisSet::from_iter(from.sharding.dims[dim].axes.iter().map(|&axis| usize::from(axis)));
            let summands = summands.intersect(partial);
            if summands.is_empty() {
                let start = kernel.context.block_start(&from, dim);
                let start = kernel.scalar_affine(start).times(-1);
                shifted.push(place.plus(&start));
            } else {
                shifted.push(kernel.index_in_block(&from, dim, &place, &mut tests));
                partial = partial.minus(summands);
            }
        }
        let elem = kernel.operand_if(stmt.args[0], &shifted, &tests);
        if partial.is_empty() {
            return elem;
        }
        let position = Scalar::Coordinate(partial.iter().map(|axis| axis as u8).collect());
        let position = kernel.scalar_affine(position);
        let first = kernel.in_range(position, Affine::constant(0), Affine::constant(1));
        let nothing = kernel.constant(to.dtype(), nothing_added(to.dtype()));
        kernel.select(to.dtype(), first, elem, nothing)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// The step in which devices exchange data.
impl Exchange for Reshard {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        lower_step(lowering, self.kind(), stmt.args[0], stmt.results[0]);
        Ok(())
    }

    fn collective(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> (CollectiveKind, AxisSet) {
        (self.kind(), reshard::group(&args[0].array, &args[0].sharding, &results[0].sharding, mesh))
    }

    fn traffic(&self, args: &[&Type], results: &[&Type], mesh: &Mesh) -> Traffic {
        reshard::traffic(self.kind(), args[0], results[0], mesh)
    }

    fn messages(&self, _: &[&Type], _: &Mesh) -> SentMessages<'_> {
        SentMessages::Layouts
    }
}

/// Whether a call in a dump combines several steps.
fn is_of_several(args: &Args<'_>) -> bool {
    args.signature().params.iter().any(|param| param.name == "to")
}

impl Call for Reshard {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The same value in another layout: the given one, or on explicit axes the layout of another value.
        reshard(x: Array, sharding: Of("sharding") = None, [named] like: Array = None), Any, Planes(x), "(x: f32[4, 6]) { reshard(x, P(X, _)) }";
        /// A step of a change of layout.
        pin(x: Array, sharding: Of("sharding")) in_dumps "" "annotate the variable, or write reshard(x, P(X, _))";
        /// A step of a change of layout.
        pin_gradient(x: Array, sharding: Of("sharding")) in_dumps "" "annotate the variable, or write reshard(x, P(X, _))";
        /// A step of a change of layout.
        shard(x: Array, sharding: Of("sharding")) in_dumps "" "write reshard(x, P(X, _))";
        /// A step of a change of layout.
        all_reduce(x: Array, sharding: Of("sharding")) in_dumps "" "write reshard(x, P(X, _)), or `psum` in a manual function";
        /// Several steps at once.
        all_reduce([rest] operands: Array, [named] to: Of("shardings")) in_dumps "" "write reshard(x, P(X, _)), or `psum` in a manual function";
        /// A step of a change of layout.
        reduce_scatter(x: Array, sharding: Of("sharding")) in_dumps "" "write reshard(x, P(X, _)), or `psum_scatter` in a manual function";
        /// Several steps at once.
        reduce_scatter([rest] operands: Array, [named] to: Of("shardings")) in_dumps "" "write reshard(x, P(X, _)), or `psum_scatter` in a manual function";
        /// A step of a change of layout.
        collective_permute(x: Array, sharding: Of("sharding")) in_dumps "" "write reshard(x, P(X, _)), or `ppermute` in a manual function";
        /// Several steps at once.
        collective_permute([rest] operands: Array, [named] to: Of("shardings")) in_dumps "" "write reshard(x, P(X, _)), or `ppermute` in a manual function";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        if let (true, ReshardStep::Collective(kind)) = (is_of_several(args), ReshardStep::named(name)) {
            return combined::read(kind, args, build);
        }
        let value = args.array(build, "x")?;
        if name == "reshard" && args.peek("like").is_some() {
            return in_layout_of(args, build, value).map(Term::Array);
        }
        let arg = args.required("sharding")?;
        let Term::Sharding(given) = arg.term else {
            let message = requires("`reshard`", "a sharding such as P(X, _)", arg.term.describe());
            return Err(Diagnostic::error(Code::E0210, arg.span, message));
        };
        let to = complete(given.sharding, build.ty(value).rank(), arg.span)?;
        Ok(Term::Array(build.emit1(Reshard { to, step: ReshardStep::named(name) }, &[value])?))
    }
}

/// `reshard(x, like=y)`: the value in the layout that the type of another one says.
fn in_layout_of(args: &mut Args<'_>, build: &mut CallBuilder, value: Value) -> Result<Value, Diagnostic> {
    if let Some(given) = args.peek("sharding") {
        let message = "`reshard` takes either a sharding or `like=`";
        return Err(Diagnostic::error(Code::E0201, given.span, message));
    }
    let like = args.array(build, "like")?;
    let (own, other) = (build.ty(value), build.ty(like));
    if own.rank() != other.rank() {
        let [wanted, found] = [own, other].map(|ty| counted(ty.rank(), "dimension"));
        let message = must_be("`like`", format_args!("an array with {wanted}"), &found);
        return Err(Diagnostic::error(Code::E0205, args.span, message));
    }
    build.in_layout_of(value, like)
}

/// The part of `out=` that an op itself must know: the explicit axes; dimensions are open as long as there are auto ones. None
/// without explicit axes.
pub fn explicit_out(build: &CallBuilder, given: &Sharding) -> Option<Sharding> {
    let explicit = build.mesh().of_kind(AxisKind::Explicit).minus(build.manual());
    if explicit.is_empty() {
        return None;
    }
    let open = !build.mesh().of_kind(AxisKind::Auto).minus(build.manual()).is_empty();
    let keep = |axes: &[u8]| axes.iter().copied().filter(|&axis| explicit.contains(axis as usize)).collect();
    let dims = given.dims.iter().map(|dim| DimSharding { axes: keep(&dim.axes), open, alignment: None }).collect();
    let [unreduced, reduced] = [given.unreduced, given.reduced].map(|axes| axes.intersect(explicit));
    Some(Sharding { dims, unreduced, reduced, combine: given.combine })
}

/// The value in the layout of the call's `out=P(...)`, if it has one.
pub fn with_layout(args: &mut Args<'_>, build: &mut CallBuilder, value: Value) -> Result<Term, Diagnostic> {
    let Some((given, span)) = args.optional_sharding("out")? else {
        return Ok(Term::Array(value));
    };
    let to = complete(given.sharding, build.ty(value).rank(), span)?;
    Ok(Term::Array(build.emit1(Reshard::pin(to), &[value])?))
}

/// As [`with_layout`], for a value that `make` computes from an operand. If the operand's layout allows none for the result, the operand is
/// first resharded to the layout that `before` computes from `out=`.
pub fn made_with_layout(
    args: &mut Args<'_>,
    build: &mut CallBuilder,
    operand: Value,
    make: impl Fn(&mut CallBuilder, Value) -> Result<Value, Diagnostic>,
    before: impl Fn(&CallBuilder, &Sharding) -> Result<Option<Sharding>, Diagnostic>,
) -> Result<Term, Diagnostic> {
    let given = args.peek("out").and_then(|arg| {
        let Term::Sharding(given) = &arg.term else { return None };
        Some(given.sharding.clone())
    });
    let value = match (make(build, operand), given) {
        (Err(ambiguous), Some(out)) if build.take_conflict().is_some() => {
            let to = before(build, &out)?.ok_or(ambiguous)?;
            let laid_out = build.emit1(Reshard::request(to), &[operand])?;
            make(build, laid_out)?
        }
        (made, _) => made?,
    };
    with_layout(args, build, value)
}
