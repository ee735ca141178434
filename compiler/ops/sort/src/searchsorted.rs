//! `searchsorted(a, v)`: the number of elements of the sorted array `a` before each element of `v`, by binary search.
//!
//! The dimension of `a` is reduced by sum: of a split `a` each device counts the elements of its block, which is sorted, too. All
//! dimensions of `v` pass. NaN comes after all numbers, and -0 equals 0.

use spmdc_abi::{ReduceOp, Scalar};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::arg::as_string;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::unknown_value;
use spmdc_ir::call::signature::{Signature, signatures};
use spmdc_ir::call::term::Term;
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::{Batch, Batched, BatchedOperand, Batching};
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing,
};
use spmdc_ir::stablehlo::{Exported, HloBuilder, HloGap, HloType, HloValue, WritesStablehlo};
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
use spmdc_layout::factors::{FactorKind, Factors};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::batching::BatchForms;
use spmdc_ops::broadcast::broadcast;
use spmdc_ops::cast::Cast;
use spmdc_ops::constant::Constant;
use spmdc_ops::elementwise::{Binary, Compare, Select, Unary};
use spmdc_ops::gather::Gather;
use spmdc_ops::promote;

/// `searchsorted(a, v, side="left")`: counts of i32.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchSorted {
    /// Whether elements equal to an element of `v` are counted, too.
    pub right: bool,
}

impl Semantics for SearchSorted {
    fn name(&self) -> &'static str {
        "searchsorted"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        let mut rule = Factors::elementwise(&[&args[1].shape], &results[0].shape);
        let counted = rule.add(args[0].shape[0], FactorKind::Reduce(ReduceOp::Sum));
        rule.operands.insert(0, vec![vec![counted]]);
        rule
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let dtype = args[0].dtype();
        let holds = |op, a, b| number::eval_compare(op, dtype, a, b) == Some(true);
        let is_nan = |a| holds(CompareOp::Ne, a, a);
        let less = |a, b| holds(CompareOp::Lt, a, b) || (is_nan(b) && !is_nan(a));
        let bits = args[1].bits.iter().map(|&v| {
            let is_before = |&&a: &&u64| if self.right { !less(v, a) } else { less(a, v) };
            args[0].bits.iter().filter(is_before).count() as u64
        });
        Ok(vec![Array::new(args[1].ty.with_dtype(DType::I32), bits.collect())])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("searchsorted({}, {}, side=\"{}\")", args[0], args[1], if self.right { "right" } else { "left" })
    }

    fn flops(&self, args: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        results[0].len() as u64 * u64::from(steps(args[0].shape[0]).max(1))
    }
}

/// The number of comparisons that count up to `len` elements.
fn steps(len: usize) -> u32 {
    usize::BITS - len.leading_zeros()
}

impl Infer for SearchSorted {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if args[0].rank() != 1 || i32::try_from(args[0].len()).is_err() {
            let message = requires("`searchsorted`", "a sorted array with one dimension", args[0]);
            return Err(Mismatch::new(Code::E0205, message));
        }
        if args[0].dtype != args[1].dtype || args[0].dtype == DType::Key {
            let message =
                requires("`searchsorted`", "equal element types", format_args!("{} and {}", args[0], args[1]));
            return Err(Mismatch::new(Code::E0203, message));
        }
        Ok(vec![args[1].with_dtype(DType::I32)])
    }
}

impl Rules for SearchSorted {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Zero
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Rule(self)
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
            combines: Combines::Elements(ReduceOp::Sum),
            elements: Elements::Other,
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

impl WritesStablehlo for SearchSorted {
    fn write(&self, hlo: &mut HloBuilder<'_>, args: &[HloValue], _: &[HloType]) -> Result<Vec<HloValue>, HloGap> {
        // Every element is compared with all of the sorted array.
        let (sorted, values) = (&args[0], &args[1]);
        let rank = values.ty.rank();
        let mut shape = values.ty.shape.clone();
        shape.push(sorted.ty.len());
        let known = hlo.broadcast_in_dim(sorted, &[rank], &shape);
        let value = hlo.broadcast_in_dim(values, &(0..rank).collect::<Vec<usize>>(), &shape);
        let [low, high] = if self.right { [&value, &known] } else { [&known, &value] };
        let mut is_less = hlo.compare("LT", low, high);
        if sorted.ty.dtype().is_float() {
            // NaN comes after all numbers.
            let is_number = hlo.compare("EQ", low, low);
            let is_nan = hlo.compare("NE", high, high);
            let before = hlo.binary("stablehlo.and", &is_number, &is_nan);
            is_less = hlo.binary("stablehlo.or", &is_less, &before);
        }
        let counted = if self.right { hlo.unary("stablehlo.not", &is_less) } else { is_less };
        let counted = hlo.convert(&counted, DType::I32);
        Ok(vec![hlo.reduce(ReduceOp::Sum, &counted, &[rank])])
    }
}

impl SearchSorted {
    /// Whether an element comes before `v`.
    fn is_before(&self, kernel: &mut KernelBuilder<'_>, dtype: DType, a: Elem, v: Elem) -> Elem {
        let (first, second) = if self.right { (v, a) } else { (a, v) };
        let mut less = kernel.compare(CompareOp::Lt, dtype, first, second);
        if dtype.is_float() {
            let nan = kernel.unary(UnaryOp::IsNan, dtype, second);
            let other = kernel.compare(CompareOp::Eq, dtype, first, first);
            let last = kernel.binary(BinaryOp::And, DType::Bool, nan, other);
            less = kernel.binary(BinaryOp::Or, DType::Bool, less, last);
        }
        if self.right { kernel.unary(UnaryOp::Not, DType::Bool, less) } else { less }
    }
}

impl Batched for SearchSorted {
    /// With a sorted array for each element, a binary search in all of them at once: each step takes one element of each.
    fn batched(
        &self,
        build: &mut CallBuilder,
        stmt: &Stmt,
        batch: &Batch,
        operands: &[BatchedOperand],
    ) -> Result<Vec<Value>, Diagnostic> {
        let (sorted, values) = match operands[0] {
            BatchedOperand::Same(sorted) => return build.emit(self.clone(), &[sorted, operands[1].value()]),
            BatchedOperand::Mapped(sorted) => (sorted, batch.mapped(build, operands[1])?),
        };
        let size = build.ty(stmt.args[0]).shape()[0];
        let dtype = build.ty(sorted).dtype();
        let number =
            |build: &mut CallBuilder, number: usize| build.emit1(Constant::scalar(DType::I64, number as u64), &[]);
        let (zero, one, len) = (number(build, 0)?, number(build, 1)?, number(build, size)?);
        let mut counted = batch.mapped(build, BatchedOperand::Same(zero))?;
        counted = batch.aligned(build, BatchedOperand::Mapped(counted), build.ty(values).rank() - 1)?;
        let gather = Gather::new(vec![1], vec![(0, 0)], 0);
        for step in (0..steps(size)).rev() {
            let step = number(build, 1 << step)?;
            let next = build.emit1(Binary(BinaryOp::Add), &[counted, step])?;
            let exists = build.emit1(Compare(CompareOp::Le), &[next, len])?;
            let place = build.emit1(Binary(BinaryOp::Sub), &[next, one])?;
            let place = build.emit1(Select, &[exists, place, zero])?;
            let element = build.emit1(gather.clone(), &[sorted, place])?;
            let is_before = self.comes_before(build, dtype, element, values)?;
            let is_counted = build.emit1(Binary(BinaryOp::And), &[exists, is_before])?;
            counted = build.emit1(Select, &[is_counted, next, counted])?;
        }
        let shape = build.ty(values).shape().to_vec();
        let counted = broadcast(build, counted, &shape)?;
        build.emit(Cast { to: DType::I32 }, &[counted])
    }
}

impl SearchSorted {
    /// Whether elements of the sorted array precede the searched ones. NaN comes after all numbers.
    fn comes_before(
        &self,
        build: &mut CallBuilder,
        dtype: DType,
        element: Value,
        value: Value,
    ) -> Result<Value, Diagnostic> {
        let (a, b) = if self.right { (value, element) } else { (element, value) };
        let mut less = build.emit1(Compare(CompareOp::Lt), &[a, b])?;
        if dtype.is_float() {
            let is_number = build.emit1(Compare(CompareOp::Eq), &[a, a])?;
            let is_nan = build.emit1(Compare(CompareOp::Ne), &[b, b])?;
            let comes_first = build.emit1(Binary(BinaryOp::And), &[is_number, is_nan])?;
            less = build.emit1(Binary(BinaryOp::Or), &[less, comes_first])?;
        }
        if self.right { build.emit1(Unary(UnaryOp::Not), &[less]) } else { Ok(less) }
    }
}

impl Point for SearchSorted {
    /// A binary search without branches, from the highest bit of the count to the lowest.
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let ty = kernel.context.ty(stmt.args[0]);
        let v = kernel.operand(stmt.args[1], index);
        let most = ty.block_shape(kernel.context.mesh)[0];
        let len = kernel.context.block_len(ty, 0);
        let is_even = matches!(len, Scalar::Const(_));
        let end = kernel.scalar_affine(len);
        let len = kernel.index(end.clone(), DType::I64);
        let mut count = kernel.constant(DType::I64, 0);
        for bit in (0..steps(most)).rev() {
            let step = kernel.constant(DType::I64, 1 << bit);
            let before = kernel.constant(DType::I64, (1 << bit) - 1);
            let next = kernel.binary(BinaryOp::Add, DType::I64, count, step);
            let last = kernel.binary(BinaryOp::Add, DType::I64, count, before);
            let place = kernel.place(last, most);
            // Blocks may be shorter than the largest one.
            let test = (!is_even).then(|| kernel.in_range(place.clone(), Affine::constant(0), end.clone()));
            let a = kernel.operand_if(stmt.args[0], &[place], test.as_slice());
            let is_before = self.is_before(kernel, ty.dtype(), a, v);
            let exists = kernel.compare(CompareOp::Le, DType::I64, next, len);
            let counts = kernel.binary(BinaryOp::And, DType::Bool, is_before, exists);
            count = kernel.select(DType::I64, counts, next, count);
        }
        kernel.cast(DType::I64, DType::I32, count)
    }

    fn reads(&self, operand: usize, _: &[&ArrayType]) -> Reads {
        if operand == 0 { Reads::Often } else { Reads::Once }
    }
}

impl Call for SearchSorted {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The index at which each number would be inserted in a sorted array: before equal elements, or after them on the right side.
        searchsorted(a: Array, v: Array, side: String = "left"),
            NumbersAndBools, Refused(ORDER), "(a: f32[6], v: f32[4]) { searchsorted(a, v) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let (a, v) = (args.required("a")?, args.required("v")?);
        let right = match args.take("side") {
            None => false,
            Some(arg) => match as_string(&arg, "side")?.as_str() {
                "left" => false,
                "right" => true,
                _ => return Err(unknown_value("side", &["left", "right"], &arg.term, arg.span)),
            },
        };
        let values = promote::promoted(build, &[(&a.term, a.span), (&v.term, v.span)])?;
        Ok(Term::Array(build.emit1(SearchSorted { right }, &values)?))
    }
}
