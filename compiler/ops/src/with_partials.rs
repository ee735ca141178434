//! `with_partials(y, x, d, ...)`: the values of `y`, which change with each `x` by the partial derivative `d`, and as `y` does.
//!
//! Functions of the prelude whose statements have no derivatives, or not theirs (series, iterations, values that are put in at limits), say
//! them by it. Nothing is computed: once derivatives have been taken, `simplify` replaces the result by `y`.

use crate::{elementwise, promote};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::undefined;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, PartialDerivative, Partials};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::ArrayType;

/// `with_partials(y, x, d, ...)`: y, plus a zero whose partial derivative with respect to each x is the following d.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithPartials;

impl Semantics for WithPartials {
    fn name(&self) -> &'static str {
        "with_partials"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let shapes: Vec<&[usize]> = args.iter().map(|arg| arg.shape.as_slice()).collect();
        Factors::elementwise(&shapes, &results[0].shape)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![args[0].clone()])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("with_partials({})", args.join(", "))
    }

    fn flops(&self, _: &[&ArrayType], _: &[&ArrayType]) -> u64 {
        0
    }
}

impl Infer for WithPartials {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if args.len().is_multiple_of(2) {
            let message = "`with_partials` takes a value, and then pairs of an array and a partial derivative";
            return Err(Mismatch::new(Code::E0205, message));
        }
        let value = args[0];
        if let Some(other) = args.iter().find(|arg| arg.dtype != value.dtype) {
            let (own, other) = (value.dtype.name(), other.dtype.name());
            return Err(Mismatch::new(
                Code::E0203,
                format!("the operands of `with_partials` do not match: {own} and {other}"),
            ));
        }
        if !value.dtype.is_float() {
            let message = undefined("`with_partials`", value.dtype.name());
            return Err(Mismatch::new(Code::E0215, message));
        }
        let shapes: Vec<&[usize]> = args.iter().map(|arg| arg.shape.as_slice()).collect();
        if shape::broadcast(&shapes)? != value.shape {
            let message = "the first operand of `with_partials` must have the broadcast shape of all operands";
            return Err(Mismatch::new(Code::E0205, message));
        }
        Ok(vec![value.clone()])
    }
}

impl Rules for WithPartials {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Pointwise(self)
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Elementwise
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
            elements: Elements::Elementwise,
            keeps_alignment: true,
        }
    }

    fn stablehlo(&self) -> Exported<'_> {
        Exported::Written(self)
    }

    fn named_axes(&mut self) -> Vec<NamedAxes<'_>> {
        Vec::new()
    }
}

impl WritesStablehlo for WithPartials {
    fn write(&self, _: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![args[0].clone()])
    }
}

impl Partials for WithPartials {
    fn partial(&self, _: &mut CallBuilder, stmt: &Stmt, at: usize) -> Result<PartialDerivative, Diagnostic> {
        Ok(match at {
            0 => PartialDerivative::One,
            _ if at % 2 == 1 => PartialDerivative::Array(stmt.args[at + 1]),
            _ => PartialDerivative::Zero,
        })
    }
}

impl Point for WithPartials {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let result = kernel.context.ty(stmt.results[0]).shape();
        elementwise::operand_at(kernel, stmt.args[0], result, index)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// The first argument, plus a zero whose partial derivative by the second is the third, and so on. Numbers take the element type of the first.
pub fn with_partials(build: &mut CallBuilder, args: &[Arg]) -> Result<Value, Diagnostic> {
    let value = build.materialize(&args[0].term, None, args[0].span)?;
    let dtype = build.ty(value).dtype();
    let mut operands = vec![value];
    for arg in &args[1..] {
        operands.push(promote::to_dtype(build, (&arg.term, arg.span), dtype)?);
    }
    build.emit1(WithPartials, &operands)
}

impl Call for WithPartials {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The values of y, plus zeros with a partial derivative by each array that follows.
        with_partials(y: Array, [rest] partials: Of("an array and a partial derivative in turn")) in_dumps "" "remove it; `custom_vjp` defines a derivative";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let mut values = vec![args.array(build, "y")?];
        for arg in args.rest("partials") {
            values.push(build.materialize(&arg.term, None, arg.span)?);
        }
        Ok(Term::Array(build.emit1(WithPartials, &values)?))
    }
}
