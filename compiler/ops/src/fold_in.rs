//! `fold_in(k, i)`: another key for each number. Elementwise: every dimension passes through, and nothing moves.

use crate::cast::{cast, convert};
use crate::elementwise;
use crate::random_bits::hlo_drawn;
use crate::random_bits::{OPERATIONS, element, needs_key, words};
use spmdc_abi::threefry;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, undefined};
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
    Semantics, Typing,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::draws;
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

/// `fold_in(k, i)`: the key that follows from a key and a u32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldIn;

impl Semantics for FoldIn {
    fn name(&self) -> &'static str {
        "fold_in"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        Factors::elementwise(&[&args[0].shape, &args[1].shape], &results[0].shape)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let (keys, data) = (args[0], args[1]);
        let shape =
            shape::broadcast(&[keys.shape(), data.shape()]).expect("typing refuses shapes that do not broadcast");
        let array = Array::from_fn(ArrayType::of(DType::Key, shape), |index| {
            let counter = threefry::words(data.get_broadcast(index));
            element(DType::Key, threefry::threefry2x32(words(keys.get_broadcast(index)), counter))
        });
        Ok(vec![array])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("fold_in({}, {})", args[0], args[1])
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        OPERATIONS * results[0].len() as u64
    }
}

impl Infer for FoldIn {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        needs_key("`fold_in`", args[0])?;
        if args[1].dtype != DType::U32 {
            let message = must_be("the data of `fold_in`", "a u32", args[1].dtype.name());
            return Err(Mismatch::new(Code::E0203, message));
        }
        let shape = shape::broadcast(&[&args[0].shape, &args[1].shape])?;
        Ok(vec![ArrayType::of(DType::Key, shape)])
    }
}

impl Rules for FoldIn {
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

impl WritesStablehlo for FoldIn {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], results: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        let [keys, data] = [0, 1].map(|at| hlo.broadcast(&args[at], &results[0].shape));
        let [keys, data] = [keys, data].map(|words| hlo.convert(&words, DType::U64));
        Ok(vec![hlo_drawn(hlo, &keys, &data, DType::Key)?])
    }
}

impl Point for FoldIn {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let result = kernel.context.ty(stmt.results[0]).shape();
        let key = elementwise::operand_at(kernel, stmt.args[0], result, index);
        let data = elementwise::operand_at(kernel, stmt.args[1], result, index);
        let zero = kernel.constant(DType::U32, 0);
        let mut add = |inst| kernel.push(inst);
        let words = draws::cipher(&mut add, key, [zero, data]);
        draws::element_of(&mut add, DType::Key, words)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Call for FoldIn {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// A different key for each number; an array of numbers gives an array of keys.
        fold_in(key: Array, data: Array), Integers, Refused(DRAWS), "(i: i32[3]) { fold_in(key(42), i) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let key = args.array(build, "key")?;
        let data = args.required("data")?;
        if !data.term.holds_array() {
            let data = convert(build, DType::U32, (&data.term, data.span))?;
            return Ok(Term::Array(build.emit1(FoldIn, &[key, data])?));
        }
        let value = build.materialize(&data.term, None, data.span)?;
        let dtype = build.ty(value).dtype();
        if !dtype.is_integer() {
            let message = undefined("`fold_in`", dtype.name());
            return Err(Diagnostic::error(Code::E0215, data.span, message));
        }
        let data = cast(build, value, DType::U32)?;
        Ok(Term::Array(build.emit1(FoldIn, &[key, data])?))
    }
}
