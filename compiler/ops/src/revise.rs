//! Assignment of values computed from the old elements: `u[k] = 0.9 * u[k] + v` along a split dimension.
//!
//! ```text
//! let v0: f32[32] = index(x, k, dims=(0,));                                            // x: f32[8@X,32], on one device along X
//! let v1: f32[32] = v0 * v;
//! let u: f32[8@X,32] = update(x, v1, k, at=((), (0, 1, 32)));
//! =>
//! let u: f32[8@X,32] = revise(x, v, k, at=((), (0, 1, 32)), by=(("mul", 0, 1),));
//! ```
//!
//! Each step of `by` is an operation and the numbers of its operands: 0 is the old element, then come the new values, then the steps. The
//! last step is the new element, which the device with the old one computes. The factors are the factors of an update. A pass makes it
//! after differentiation.

use crate::region::{
    Places, RegionWrite, check_region, parse_places, print_places, region_factors, region_replaced, region_shape,
};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::lower::work::Lowering;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, NestLowering, Placement, Properties, Reads,
    Rules, Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::Exported;
use spmdc_kernel::loops::Elem;
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// `revise(x, v, i, at=((), (0, 1, 4)), by=(("mul", 0, 1),))`: operands are the array, the new values, which broadcast to the region, and a
/// checked index for each dynamic dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Revise {
    /// For each dimension of the array, the indices that are replaced.
    pub at: Vec<Places>,
    /// The steps that compute a new element.
    pub by: Vec<ReviseStep>,
}

/// An operation on elements: 0 is the old element, then come the new values, then the steps before.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviseStep {
    /// The operation.
    pub op: ReviseOp,
    /// The numbers of its operands.
    pub args: Vec<usize>,
}

/// The operation of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviseOp {
    /// `-x`, `sin(x)`
    Unary(UnaryOp),
    /// `x + y`
    Binary(BinaryOp),
    /// `x < y`
    Compare(CompareOp),
    /// `where(c, x, y)`
    Select,
    /// `bf16(x)`
    Cast(DType),
}

const DEFINED: &str = "typing refuses what the element type has not";

impl ReviseOp {
    fn name(self) -> &'static str {
        match self {
            ReviseOp::Unary(op) => op.name(),
            ReviseOp::Binary(op) => op.name(),
            ReviseOp::Compare(op) => op.name(),
            ReviseOp::Select => "where",
            ReviseOp::Cast(to) => to.name(),
        }
    }

    /// The operation with this name on this number of operands.
    fn from_name(name: &str, operands: usize) -> Option<ReviseOp> {
        match operands {
            1 => {
                let cast = || DType::named(name).map(ReviseOp::Cast);
                UnaryOp::from_name(name).map(ReviseOp::Unary).or_else(cast)
            }
            2 => {
                let compare = || CompareOp::from_name(name).map(ReviseOp::Compare);
                BinaryOp::from_name(name).map(ReviseOp::Binary).or_else(compare)
            }
            3 => (name == "where").then_some(ReviseOp::Select),
            _ => None,
        }
    }

    /// The type of its result; None if it is not defined for these types.
    fn result(self, args: &[DType]) -> Option<DType> {
        match (self, args) {
            (ReviseOp::Unary(op), &[x]) => number::eval_unary(op, x, 0).map(|_| op.result_dtype(x)),
            (ReviseOp::Binary(op), &[x, y]) if x == y => number::eval_binary(op, x, 1, 1).map(|_| x),
            (ReviseOp::Compare(op), &[x, y]) if x == y => number::eval_compare(op, x, 0, 0).map(|_| DType::Bool),
            (ReviseOp::Select, &[DType::Bool, x, y]) if x == y => Some(x),
            (ReviseOp::Cast(to), &[x]) => number::cast(x, to, 0).map(|_| to),
            (
                ReviseOp::Unary(_) | ReviseOp::Binary(_) | ReviseOp::Compare(_) | ReviseOp::Select | ReviseOp::Cast(_),
                _,
            ) => None,
        }
    }

    /// Whether it stops the program for a divisor of zero, if it divides integers.
    pub fn may_stop(self) -> bool {
        matches!(self, ReviseOp::Binary(BinaryOp::FloorDiv | BinaryOp::Rem))
    }

    /// The bits of its result; None if it divides integers by zero.
    fn eval(self, dtype: DType, args: &[u64]) -> Option<u64> {
        match self {
            ReviseOp::Unary(op) => number::eval_unary(op, dtype, args[0]),
            ReviseOp::Binary(op) => number::eval_binary(op, dtype, args[0], args[1]),
            ReviseOp::Compare(op) => number::eval_compare(op, dtype, args[0], args[1]).map(u64::from),
            ReviseOp::Select => Some(args[if args[0] != 0 { 1 } else { 2 }]),
            ReviseOp::Cast(to) => number::cast(dtype, to, args[0]),
        }
    }

    fn emit(self, kernel: &mut KernelBuilder<'_>, dtype: DType, args: &[Elem]) -> Elem {
        match self {
            ReviseOp::Unary(op) => kernel.unary(op, dtype, args[0]),
            ReviseOp::Binary(op) => kernel.binary(op, dtype, args[0], args[1]),
            ReviseOp::Compare(op) => kernel.compare(op, dtype, args[0], args[1]),
            ReviseOp::Select => kernel.select(dtype, args[0], args[1], args[2]),
            ReviseOp::Cast(to) => kernel.cast(dtype, to, args[0]),
        }
    }
}

impl ReviseStep {
    /// The common type of the operands; for a choice, of the alternatives.
    fn dtype(&self, types: &[DType]) -> DType {
        types[*self.args.last().expect("an operation has an operand")]
    }
}

impl Revise {
    /// The number of new values among this number of operands.
    fn values(&self, operands: usize) -> usize {
        let dynamic = self.at.iter().filter(|places| matches!(places, Places::Dynamic(_))).count();
        operands.saturating_sub(1 + dynamic)
    }

    /// The types of the old element, the new values and the steps; None if a step is not defined.
    fn types(&self, given: impl Iterator<Item = DType>) -> Option<Vec<DType>> {
        let mut types: Vec<DType> = given.collect();
        for step in &self.by {
            let args = step.args.iter().map(|&arg| types.get(arg).copied());
            types.push(step.op.result(&args.collect::<Option<Vec<_>>>()?)?);
        }
        Some(types)
    }
}

impl Semantics for Revise {
    fn name(&self) -> &'static str {
        "revise"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], _: &[&ArrayType]) -> Factors {
        region_factors(&self.at, args, self.values(args.len()))
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let values = self.values(args.len());
        let types = self.types(args[..=values].iter().map(|arg| arg.dtype())).expect(DEFINED);
        let element = |old: u64, new: &[u64]| {
            let mut known = [&[old], new].concat();
            for step in &self.by {
                let args: Vec<u64> = step.args.iter().map(|&arg| known[arg]).collect();
                known.push(step.op.eval(step.dtype(&types), &args)?);
            }
            known.last().copied()
        };
        // Only the quotient of integers can be missing.
        Ok(vec![region_replaced(&self.at, args, values, element).ok_or_else(Trap::division_by_zero)?])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        let step = |step: &ReviseStep| {
            let args: Vec<String> = step.args.iter().map(usize::to_string).collect();
            format!("(\"{}\", {})", step.op.name(), args.join(", "))
        };
        let by = shape::tuple(&self.by.iter().map(step).collect::<Vec<_>>());
        format!("revise({}, at={}, by={by})", args.join(", "), print_places(&self.at))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        let elements: u64 = region_shape(&self.at).iter().map(|&len| len as u64).product();
        elements * self.by.len() as u64
    }
}

impl Infer for Revise {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let values = self.values(args.len());
        check_region(&self.at, args, values)?;
        let types = self.types(args[..=values].iter().map(|arg| arg.dtype));
        if self.by.is_empty() || types.and_then(|types| types.last().copied()) != Some(args[0].dtype) {
            let message = format!("the steps of `revise` do not compute {} from its operands", args[0].dtype.name());
            return Err(Mismatch::new(Code::E0203, message));
        }
        Ok(vec![args[0].clone()])
    }
}

impl Rules for Revise {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Missing
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Never
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Nest(self)
    }

    fn properties(&self) -> Properties<'_> {
        Properties {
            effect: if self.by.iter().any(|step| step.op.may_stop()) { Effect::Stops } else { Effect::None },
            manual: Manual::Local,
            placement: Placement::Follows,
            linear: Linear::No,
            combines: Combines::Nothing,
            elements: Elements::Other,
            keeps_alignment: true,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::AfterPartitioning
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl NestLowering for Revise {
    fn lower(&self, lowering: &mut Lowering<'_>, stmt: &Stmt) -> Result<(), Diagnostic> {
        let values = self.values(stmt.args.len());
        let given = stmt.args[..=values].iter().map(|&arg| lowering.ty(arg).dtype());
        let types = self.types(given).expect(DEFINED);
        let element = |kernel: &mut KernelBuilder<'_>, old: Option<Elem>, new: &[Elem]| {
            let mut known: Vec<Elem> = old.into_iter().chain(new.iter().copied()).collect();
            for step in &self.by {
                let args: Vec<Elem> = step.args.iter().map(|&arg| known[arg]).collect();
                known.push(step.op.emit(kernel, step.dtype(&types), &args));
            }
            known.pop().expect("the old element is known")
        };
        RegionWrite { at: &self.at, values, reads_old: true, element: &element }.lower(lowering, stmt, None);
        Ok(())
    }

    fn reads(&self, operand: usize, args: &[&ArrayType]) -> Reads {
        if operand == 0 || operand > self.values(args.len()) {
            return Reads::Buffer;
        }
        if args[operand].shape == region_shape(&self.at) { Reads::Once } else { Reads::Often }
    }
}

impl Call for Revise {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// An array with a region replaced by values computed from its old elements.
        revise(x: Array, [rest] operands: Array, [named] at: Of("places") = None, [named] by: Of("steps") = None)
        in_dumps "" "write u[k] = f(u[k]), for a `u` that is `let mut`";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let (at, by) = (args.take("at"), args.take("by"));
        let at = at.and_then(|arg| parse_places(&arg.term));
        let by = by.and_then(|arg| parse_steps(&arg.term));
        let (Some(at), Some(by)) = (at, by) else {
            let message =
                "`revise` requires `at=`, as `update` does, and `by=`, a list of steps such as (\"mul\", 0, 1)";
            return Err(Diagnostic::error(Code::E0227, args.span, message));
        };
        let mut operands = vec![args.array(build, "x")?];
        for arg in args.rest("operands") {
            operands.push(build.materialize(&arg.term, Some(DType::I64), arg.span)?);
        }
        Ok(Term::Array(build.emit1(Revise { at, by }, &operands)?))
    }
}

/// The steps in a text; None if it has another form.
fn parse_steps(term: &Term) -> Option<Vec<ReviseStep>> {
    let step = |term: &Term| {
        let Some([Term::Str(name), args @ ..]) = term.sequence() else { return None };
        let number = |arg: &Term| if let Term::Int(arg) = arg { usize::try_from(*arg).ok() } else { None };
        let args: Vec<usize> = args.iter().map(number).collect::<Option<_>>()?;
        Some(ReviseStep { op: ReviseOp::from_name(name, args.len())?, args })
    };
    term.sequence()?.iter().map(step).collect()
}
