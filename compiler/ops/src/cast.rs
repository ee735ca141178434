//! Conversion of the element type: `f32(x)`, `cast(x, bf16)`.
//!
//! Elementwise: every dimension passes through. Integers wrap, floats to integers saturate with NaN becoming 0, and bool is
//! "not zero"; see `number::cast`.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::{Operand, StaticScalar, Term};
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::{Derivative, LinearMap, Linearity, is_differentiable};
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing, one_each,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number;
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// `bf16(x)`: the elements of `x` converted to another element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cast {
    /// The element type of the result.
    pub to: DType,
}

impl Semantics for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::elementwise(&[&args[0].shape], &results[0].shape)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let from = args[0].dtype();
        let bits = args[0]
            .bits
            .iter()
            .map(|&bits| number::cast(from, self.to, bits).expect("typing refuses to cast keys"))
            .collect();
        Ok(vec![Array::new(args[0].ty.with_dtype(self.to), bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("{}({})", self.to.name(), args[0])
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for Cast {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let from = args[0].dtype;
        if number::cast(from, self.to, 0).is_none() {
            let message = format!("{} cannot be converted to {}", from.name(), self.to.name());
            return Err(Mismatch::new(Code::E0215, message));
        }
        Ok(vec![args[0].with_dtype(self.to)])
    }
}

impl Rules for Cast {
    fn derivative(&self) -> Derivative<'_> {
        if is_differentiable(self.to) { Derivative::Linear(self) } else { Derivative::Zero }
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
            linear: Linear::Conversion(self.to),
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

impl WritesStablehlo for Cast {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.convert(&args[0], self.to)])
    }
}

impl LinearMap for Cast {
    fn linearity(&self, _: &Stmt) -> Linearity {
        Linearity::Together(vec![0])
    }

    fn transposed(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        _: usize,
        cotangent: Value,
    ) -> Result<Value, Diagnostic> {
        let dtype = build.ty(stmt.args[0]).dtype();
        cast(build, cotangent, dtype)
    }
}

impl Point for Cast {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let from = kernel.context.ty(stmt.args[0]).dtype();
        let arg = kernel.operand(stmt.args[0], index);
        kernel.cast(from, self.to, arg)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// The statements of `f32(x)` and similar calls. A conversion of an array is always a statement; a literal becomes a constant.
pub fn convert(build: &mut CallBuilder, to: DType, (term, span): Operand<'_>) -> Result<Value, Diagnostic> {
    if !term.is_operand() {
        let message = format!("{} cannot be converted to {}", term.describe(), to.name());
        return Err(Diagnostic::error(Code::E0210, span, message));
    }
    if term.holds_array() {
        let array = build.materialize(term, None, span)?;
        return cast(build, array, to);
    }
    build.materialize(&convert_literal(term, to), Some(to), span)
}

/// A literal cut to the range of the type, so that it fits exactly: `u8(300)` is 44 and `i32(2.9)` is 2.
fn convert_literal(term: &Term, to: DType) -> Term {
    if let Term::List(items) = term {
        return Term::List(items.iter().map(|item| convert_literal(item, to)).collect());
    }
    match term.static_scalar() {
        Some(StaticScalar::Float(value)) if to.is_integer() => {
            let bits = number::cast(DType::F64, to, value.to_bits()).expect("a float converts to every integer type");
            Term::Int(number::to_int(to, bits))
        }
        Some(StaticScalar::Float(value)) if to == DType::Bool => Term::Bool(value != 0.0),
        Some(StaticScalar::Int(value)) if to.is_integer() => Term::Int(number::to_int(to, number::from_int(to, value))),
        Some(StaticScalar::Int(value)) if to == DType::Bool => Term::Bool(value != 0),
        Some(StaticScalar::Int(_) | StaticScalar::Float(_) | StaticScalar::Bool(_)) | None => term.clone(),
    }
}

impl Call for Cast {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The elements in another type; `bf16(x)` is the same as `cast(x, bf16)`.
        cast(x: Array, dtype: Type), NumbersAndBools, Cast, "(x: f32[4, 6]) { cast(x / 4, i32) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.required("x")?;
        let to = args.ty("dtype")?;
        if to.array.rank() != 0 {
            return Err(Diagnostic::error(
                Code::E0210,
                args.span,
                "`dtype` must be an element type such as bf16; found a type with dimensions",
            ));
        }
        Ok(Term::Array(convert(build, to.array.dtype, (&value.term, value.span))?))
    }
}

/// A value converted to an element type, without a statement if it already has it.
pub fn cast(build: &mut CallBuilder, value: Value, to: DType) -> Result<Value, Diagnostic> {
    if build.ty(value).dtype() == to { Ok(value) } else { build.emit1(Cast { to }, &[value]) }
}
