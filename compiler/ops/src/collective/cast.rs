//! `pcast(x, X, to="reduced")`: the same values with another type along manual axes. Nothing moves.
//!
//! | from | to | on the devices along X |
//! |---|---|---|
//! | varying | unreduced | their values are summands of one value |
//! | the same | reduced | the same value, whose gradient is unreduced |
//! | reduced | the same | the same value, whose gradient is the same on all |
//!
//! `to="varying"` is [`PVary`].

use crate::broadcast::zeros_of;
use crate::collective::axis_index::AxisIndex;
use crate::collective::vary::PVary;
use crate::collective::{axis_set, factors, manual_axes};
use crate::constant::Constant;
use crate::elementwise::{Compare, Select};
use crate::reshard::Reshard;
use spmdc_abi::ReduceOp;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::unknown_value;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Linear, Lowered, Manual, NamedAxes, Placement, PlacesResults, Point, Properties, Reads,
    Rules, Semantics, Typing,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::scalar::CompareOp;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::{AxisKind, Mesh};
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};

/// `pcast(x, X, to="unreduced")`: the values of `x` with another type along the axes; nothing moves.
#[derive(Clone, Debug, PartialEq)]
pub struct PCast {
    /// The manual axes.
    pub axes: Vec<u8>,
    /// The state along them.
    pub to: ManualState,
}

/// The state of a value along a manual axis, as far as casts lead to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManualState {
    /// The devices have summands of one value.
    Unreduced,
    /// The devices have the same value, and its gradient is unreduced.
    Reduced,
    /// The devices have the same value. Only derivatives cast to it.
    Same,
}

impl ManualState {
    const ALL: [(ManualState, &'static str); 3] =
        [(ManualState::Unreduced, "unreduced"), (ManualState::Reduced, "reduced"), (ManualState::Same, "same")];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name)
    }
}

impl Semantics for PCast {
    fn name(&self) -> &'static str {
        "pcast"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::Placed(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        factors(&args[0].shape, &results[0].shape, &[])
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![args[0].clone()])
    }

    fn print(&self, args: &[String], mesh: &Mesh) -> String {
        format!("pcast({}, {}, to=\"{}\")", args[0], mesh.display_axes(&self.axes), self.to.name())
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl PlacesResults for PCast {
    fn place(&self, args: &[&Type], mesh: &Mesh) -> Result<Vec<Type>, Mismatch> {
        let (axes, from) = (axis_set(&self.axes), args[0]);
        let varies = axes.is_subset_of(from.varying);
        let is_same = from.varying.union(from.sharding.unreduced).intersect(axes).is_empty();
        let reduced = from.sharding.reduced.minus(axes);
        let own = Sharding { reduced, ..from.sharding.clone() };
        let unreduced = own.unreduced.union(axes);
        let (fits, needed, ty) = match self.to {
            ManualState::Unreduced => (
                varies,
                "varies",
                Type {
                    sharding: own.with_unreduced(unreduced, ReduceOp::Sum),
                    varying: from.varying.minus(axes),
                    ..from.clone()
                },
            ),
            ManualState::Reduced => {
                let sharding = Sharding { reduced: reduced.union(axes), ..own };
                (is_same, "is the same on all devices", Type { sharding, ..from.clone() })
            }
            ManualState::Same => (is_same, "is the same on all devices", Type { sharding: own, ..from.clone() }),
        };
        if fits {
            return Ok(vec![ty]);
        }
        let (over, to) = (mesh.display_axes(&self.axes), self.to.name());
        let shown = from.display(mesh);
        let message = format!("only a value that {needed} along {over} can be cast to {to}; found `{shown}`");
        let help = match self.to {
            ManualState::Unreduced => format!("mark it as varying first, with `pcast(x, {over}, to=\"varying\")`"),
            ManualState::Reduced | ManualState::Same => format!("`psum(x, {over})` is the same on all devices"),
        };
        Err(Mismatch::new(Code::E0306, message).help(help))
    }
}

impl Rules for PCast {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::shifted(self.clone())
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: true,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        vec![NamedAxes::List(&mut self.axes)]
    }
}

impl WritesStablehlo for PCast {
    fn write(&self, _: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![args[0].clone()])
    }
}

impl LinearMap for PCast {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(&self, _: &mut CallBuilder, _: &Stmt, _: usize, cotangent: Value) -> Result<Value, Diagnostic> {
        // The cotangent is cast to the state that the operand's decides.
        Ok(cotangent)
    }
}

impl Point for PCast {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        kernel.operand(stmt.args[0], index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Call for PCast {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The same values with another type along manual axes, or along explicit ones in the global view: `"varying"`, `"unreduced"` or `"reduced"`.
        pcast(x: Array, axis_name: Axes, [named] to: String), Any, Planes(x),
            "manual(X) fn main(x: f32[4, 6]) -> f32[8@X, 6] { pcast(x, X, to=\"varying\") }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.array(build, "x")?;
        if build.manual().is_empty() && build.has_explicit_axes() {
            return in_global_view(build, value, args).map(Term::Array);
        }
        let axes = manual_axes(name, args, build)?;
        let to = args.string("to")?;
        cast_by_name(build, value, axes, (&to, args.span)).map(Term::Array)
    }
}

/// In the global view, on explicit axes: the value with another state along them, in its own layout otherwise. Whole values become reduced or
/// partial sums, and nothing moves.
fn in_global_view(build: &mut CallBuilder, value: Value, args: &mut Args<'_>) -> Result<Value, Diagnostic> {
    let (axes, to, span) = (args.axes("axis_name")?, args.string("to")?, args.span);
    let (set, over) = (axis_set(&axes), build.mesh().display_axes(&axes));
    let explicit = build.mesh().of_kind(AxisKind::Explicit);
    if !set.is_subset_of(explicit) {
        let message =
            format!("`pcast` over {over} requires explicit axes, but the compiler chooses layouts along some of them");
        return Err(Diagnostic::error(Code::E0504, span, message).help("write `reshard(x, P(..))` on `auto` axes"));
    }
    let own = build.explicit_part(build.ty(value));
    let rest = own.reduced.minus(set);
    let to = match to.as_str() {
        "reduced" => Sharding { reduced: rest.union(set), ..own.clone() },
        "unreduced" => {
            let unreduced = own.unreduced.union(set);
            Sharding { reduced: rest, ..own.clone() }.with_unreduced(unreduced, ReduceOp::Sum)
        }
        other => {
            let error = unknown_value("to", &["unreduced", "reduced"], &Term::Str(other.to_string()), span);
            return Err(match other {
                "varying" => error.help("only values of `manual` functions vary"),
                _ => error,
            });
        }
    };
    if to.repeated_axis().is_some() {
        let shown = build.display_closed(build.ty(value));
        let message = format!("only a value that is whole along {over} can be cast this way; found `{shown}`");
        return Err(Diagnostic::error(Code::E0306, span, message).help("`reshard(x, P(..))` moves the data"));
    }
    if to == own { Ok(value) } else { build.emit1(Reshard::request(to), &[value]) }
}

/// A value in the state that a program names.
pub fn cast_by_name(
    build: &mut CallBuilder,
    value: Value,
    axes: Vec<u8>,
    (to, span): (&str, Span),
) -> Result<Value, Diagnostic> {
    if to == "varying" {
        return vary(build, value, axes);
    }
    let known = |&&(state, name): &&(ManualState, &str)| name == to && (build.is_exact() || state != ManualState::Same);
    let Some(&(to, _)) = ManualState::ALL.iter().find(known) else {
        return Err(unknown_value("to", &["varying", "unreduced", "reduced"], &Term::Str(to.to_string()), span));
    };
    let dtype = build.ty(value).dtype();
    if to == ManualState::Unreduced && (dtype == DType::Bool || dtype == DType::Key) {
        let message = format!("partial sums are not defined for {}", dtype.name());
        return Err(Diagnostic::error(Code::E0215, span, message));
    }
    build.emit1(PCast { axes, to }, &[value])
}

/// The value as one that varies. E0306 for partial sums: they have no meaning one by one.
fn vary(build: &mut CallBuilder, value: Value, axes: Vec<u8>) -> Result<Value, Diagnostic> {
    let partial = build.ty(value).sharding.unreduced.intersect(axis_set(&axes));
    if partial.is_empty() {
        return build.emit1(PVary { axes }, &[value]);
    }
    let (over, shown) = (build.mesh().display_set(partial), build.display_closed(build.ty(value)));
    let message = format!("`{shown}` holds partial sums over {over}, which cannot be cast to varying values");
    Err(Diagnostic::error(Code::E0306, build.span(), message).help(format!("`psum(x, {over})` is the whole sum")))
}

/// A cotangent in the state along manual axes that a type determines. Partial cotangents are an exception: their sum is taken later.
pub fn cast_to(build: &mut CallBuilder, value: Value, to: &Type) -> Result<Value, Diagnostic> {
    let own = build.ty(value).clone();
    let unreduced = to.sharding.unreduced.intersect(build.manual());
    let reduced = to.sharding.reduced.intersect(build.manual());
    let parts = own.varying.union(own.sharding.unreduced);
    // One summand is the value, the others are zero.
    let split = unreduced.minus(parts);
    let value = if split.is_empty() { value } else { kept_by_first(build, value, split)? };
    let value = cast(build, value, unreduced.minus(own.sharding.unreduced), ManualState::Unreduced)?;
    let value = cast(build, value, reduced.minus(own.sharding.reduced).minus(parts), ManualState::Reduced)?;
    let same = own.sharding.reduced.intersect(build.manual()).minus(reduced.union(unreduced).union(to.varying));
    cast(build, value, same, ManualState::Same)
}

/// The value in this state along some axes, possibly none.
pub fn cast(build: &mut CallBuilder, value: Value, axes: AxisSet, to: ManualState) -> Result<Value, Diagnostic> {
    if axes.is_empty() {
        return Ok(value);
    }
    build.emit1(PCast { axes: axes.iter().map(|axis| axis as u8).collect(), to }, &[value])
}

/// The value on the first device along some axes, zeros on the others.
fn kept_by_first(build: &mut CallBuilder, value: Value, axes: AxisSet) -> Result<Value, Diagnostic> {
    let position = build.emit1(AxisIndex { axes: axes.iter().map(|axis| axis as u8).collect() }, &[])?;
    let first = build.emit1(Constant::scalar(build.ty(position).dtype(), 0), &[])?;
    let is_first = build.emit1(Compare(CompareOp::Eq), &[position, first])?;
    let zeros = zeros_of(build, value)?;
    build.emit1(Select, &[is_first, value, zeros])
}
