//! `transfer(x, mesh, P(..))`: the same value on another mesh.
//!
//! On whole arrays it is the identity, so it means nothing to the evaluator. It exists until the program is projected on its meshes
//! (`docs/design/0016-several-meshes.md`): then it is a message from one of these to another one. The cotangent of a transfer goes back
//! to the mesh from which the value came; as that is known only when all statements are there, `placement` names it in the end.
//!
//! In a manual function each device sends its own value to those devices of the other mesh that have the same coordinates on the manual
//! axes. That mesh must have these axes, and all devices take part, so no condition around it varies.

use crate::reshard::Reshard;
use crate::reshard::explicit_out;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::transfer_target::{Target, TransferTarget};
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching};
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Linear, Lowered, Manual, NamedAxes, Placement, PlacesResults, Properties, Rules,
    Semantics, Typing,
};
use spmdc_ir::stablehlo::Exported;
use spmdc_layout::explicit::explicit_part;
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{ArrayType, AxisSet, Type};

/// `transfer(x, second)`: the value on this mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// The destination of the value.
    pub target: TransferTarget,
    /// The layout on explicit axes, if the program gives it.
    pub out: Option<Sharding>,
}

impl Semantics for Transfer {
    fn name(&self) -> &'static str {
        "transfer"
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
        let to = match self.target.to {
            Target::Mesh(to) | Target::Declared(to) => mesh.named.get(usize::from(to)).map_or("?", |mesh| &mesh.name),
            Target::Back => "?",
        };
        let out = self.out.as_ref().map_or(String::new(), |out| format!(", {}", out.display(mesh)));
        format!("transfer({}, {to}{out})", args[0])
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl PlacesResults for Transfer {
    /// Axes that the new mesh also has split the value as before; splits along auto axes are decided anew.
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        if let Some(out) = &self.out {
            return Ok(vec![Type { sharding: out.clone(), ..args[0].clone() }]);
        }
        let known = explicit_part(&args[0].sharding, mesh);
        let has = match self.target.to {
            Target::Mesh(to) => mesh.named[usize::from(to)].axis_set(),
            Target::Declared(_) | Target::Back => mesh.all(),
        };
        let keep = |axis: &u8| has.contains(usize::from(*axis));
        let dims = known
            .dims
            .into_iter()
            .map(|dim| DimSharding { axes: dim.axes.iter().copied().take_while(keep).collect(), ..dim });
        let [unreduced, reduced] = [known.unreduced, known.reduced].map(|axes| axes.intersect(has));
        let sharding = Sharding { dims: dims.collect(), unreduced, reduced, ..known };
        Ok(vec![Type { sharding, ..args[0].clone() }])
    }
}

impl Rules for Transfer {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
    }

    /// The projection on the meshes replaces it.
    fn lowered(&self) -> Lowered<'_> {
        Lowered::Request
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Transferred(self.target),
            keeps_alignment: false,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Missing("transfer between meshes")
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        let out = self.out.iter_mut().map(NamedAxes::Layout);
        out.chain([NamedAxes::Transfer(&mut self.target)]).collect()
    }
}

impl Batched for Transfer {
    /// The mapped dimension keeps its layout.
    fn batched(
        &self,
        build: &mut CallBuilder,
        _: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let mut op = self.clone();
        op.out.iter_mut().for_each(|out| batch.add_to(out, 0));
        build.emit(op, &[operands[0].value()])
    }
}

impl LinearMap for Transfer {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    /// A transfer back, or the transfer of a cotangent of a cotangent, which goes where the value went.
    fn transposed(&self, build: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        match self.target.to {
            Target::Mesh(_) => build.emit1(
                Transfer { target: TransferTarget { to: Target::Back, number: self.target.number }, out: None },
                &[cotangent],
            ),
            Target::Declared(_) => Ok(cotangent),
            Target::Back => {
                let to = build.transferred_to(self.target.number);
                let to = to.expect("the transfer of which this is the way back was emitted before");
                build.emit1(
                    Transfer { target: TransferTarget { to: Target::Mesh(to), number: self.target.number }, out: None },
                    &[cotangent],
                )
            }
        }
    }
}

/// The value, declared to be on a mesh.
pub fn declared(build: &mut CallBuilder, value: Value, mesh: u8) -> Result<Value, Diagnostic> {
    build.emit1(Transfer { target: TransferTarget { to: Target::Declared(mesh), number: 0 }, out: None }, &[value])
}

impl Call for Transfer {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The same value on another mesh of the program, in the given layout or one that the compiler chooses.
        transfer(x: Array, mesh: Of("mesh"), sharding: Sharding = None), Any, Planes(x), "(x: f32[4, 6]) { transfer(x, all, P(X, _)) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let mut value = args.array(build, "x")?;
        let arg = args.required("mesh")?;
        let Term::Mesh(to) = arg.term else {
            let message = requires("`transfer`", "the name of a mesh", arg.term.describe());
            let error = Diagnostic::error(Code::E0210, arg.span, message);
            return Err(error.help("declare one, as in `mesh first = all[stage = 0];`"));
        };
        if !build.mesh().is_several() {
            // It is there already.
            let Some(layout) = layout_of_call(args, build.ty(value).rank())? else {
                return Ok(Term::Array(value));
            };
            return Ok(Term::Array(build.emit1(Reshard::request(layout), &[value])?));
        }
        let lacking = build.manual().minus(build.mesh().named[usize::from(to)].axis_set());
        if !lacking.is_empty() {
            return Err(without_manual_axes(build, to, lacking));
        }
        let ty = build.ty(value);
        if !ty.sharding.unreduced.is_empty() {
            let sharding = Sharding { unreduced: Default::default(), ..ty.sharding.clone() };
            value = build.emit1(Reshard::request(sharding), &[value])?;
        }
        let span = args.peek("sharding").map_or(build.span(), |arg| arg.span);
        let wanted = layout_of_call(args, build.ty(value).rank())?.map(|layout| (layout, span));
        let own = build.mesh().named[usize::from(to)].axis_set();
        if let Some((layout, span)) = &wanted {
            let foreign = layout.used_axes().union(layout.unreduced).minus(own);
            if let Some(axis) = foreign.iter().next() {
                let mesh = &build.mesh().named[usize::from(to)];
                let message = format!("{} has no axis `{}`", mesh.describe(), build.mesh().axes[axis].name);
                let axes = format!("its axes are {}", build.mesh().display_axes(&mesh.axes));
                return Err(Diagnostic::error(Code::E0602, *span, message).help(axes));
            }
        }
        let number = build.add_transfer(to);
        let given = wanted.map(|(layout, _)| layout);
        let out = match build.is_exact() {
            true => given.clone(),
            false => given.as_ref().and_then(|given| explicit_out(build, given)),
        };
        let moved = build
            .emit1(Transfer { target: TransferTarget { to: Target::Mesh(to), number }, out: out.clone() }, &[value])?;
        match given {
            Some(given) if out.as_ref() != Some(&given) => Ok(Term::Array(build.emit1(Reshard::pin(given), &[moved])?)),
            Some(_) | None => Ok(Term::Array(moved)),
        }
    }
}

/// The layout that a call gives, for a value of this rank.
fn layout_of_call(args: &mut Args<'_>, rank: usize) -> Result<Option<Sharding>, Diagnostic> {
    let given = args.optional_sharding("sharding")?;
    given.map(|(given, span)| complete(given.sharding, rank, span)).transpose()
}

/// E0602: a block of one device has no place on a mesh without the axes along which the function has blocks.
fn without_manual_axes(build: &CallBuilder, to: u8, lacking: AxisSet) -> Diagnostic {
    let (mesh, axes) = (&build.mesh().named[usize::from(to)], build.mesh().display_set(lacking));
    let message = format!(
        "{} has no axis {axes}, over which this function is manual, so its devices have no coordinate along {axes}",
        mesh.describe()
    );
    let help = format!("return the value, and `transfer` it to `{}` outside of the `manual` function", mesh.name);
    Diagnostic::error(Code::E0602, build.span(), message).help(help)
}
