//! The bits of each element as another element type of the same size: `bitcast(x, i32)`.
//!
//! Elementwise: every dimension passes through. A NaN keeps its bits. The bits of a NaN that another operation returns are unspecified
//! (`spmdc_kernel::number`), and so is the integer made of them.

use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::undefined;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Stmt;
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing, one_each,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// `bitcast(x, i32)`: the bits of the elements of `x` as another element type of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bitcast {
    /// The element type of the result.
    pub to: DType,
}

/// Whether elements of the type are numbers, of which any bits are one.
fn is_number(dtype: DType) -> bool {
    dtype.is_integer() || dtype.is_float()
}

/// E0215 unless the bits of one type are an element of the other.
fn check(from: DType, to: DType) -> Result<(), Mismatch> {
    if let Some(other) = [from, to].into_iter().find(|&dtype| !is_number(dtype)) {
        let help = if other == DType::Key {
            "`key_data(k)` has the words of a key, and `wrap_key_data(x)` the key of two words"
        } else {
            "convert a bool with `u8(x)`, and a number to a bool with `x != 0`"
        };
        return Err(Mismatch::new(Code::E0215, undefined("`bitcast`", other.name())).help(help));
    }
    if from.size() != to.size() {
        let message = format!(
            "`bitcast` keeps the bits of {}: expected an element type of {} bits, found {}",
            from.name(),
            8 * from.size(),
            to.name()
        );
        let types = DType::ALL.into_iter().filter(|&dtype| is_number(dtype) && dtype.size() == from.size());
        let types: Vec<&str> = types.map(DType::name).collect();
        let help = format!(
            "the types of {} bits are {}; `cast(x, {})` converts the numbers",
            8 * from.size(),
            types.join(", "),
            to.name()
        );
        return Err(Mismatch::new(Code::E0215, message).help(help));
    }
    Ok(())
}

impl Semantics for Bitcast {
    fn name(&self) -> &'static str {
        "bitcast"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::elementwise(&[&args[0].shape], &results[0].shape)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        Ok(vec![Array::new(args[0].ty.with_dtype(self.to), args[0].bits.clone())])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("bitcast({}, {})", args[0], self.to.name())
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for Bitcast {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        check(args[0].dtype, self.to)?;
        Ok(vec![args[0].with_dtype(self.to)])
    }
}

impl Rules for Bitcast {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
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

impl WritesStablehlo for Bitcast {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        Ok(vec![hlo.bitcast(&args[0], self.to)])
    }
}

impl Point for Bitcast {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let from = kernel.context.ty(stmt.args[0]).dtype();
        let arg = kernel.operand(stmt.args[0], index);
        kernel.bitcast(from, self.to, arg)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Call for Bitcast {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The bits of each element as another type of the same size.
        bitcast(x: Array, dtype: ElementType), Numbers,
            Refused("take the bits of the planes, as in `bitcast(real(z), u32)`"), "(x: f32[6]) { bitcast(x, i32) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let value = args.required("x")?;
        let to = args.dtype("dtype")?;
        let array = build.materialize(&value.term, None, value.span)?;
        let is_same = build.ty(array).dtype() == to && is_number(to);
        Ok(Term::Array(if is_same { array } else { build.emit1(Bitcast { to }, &[array])? }))
    }
}
