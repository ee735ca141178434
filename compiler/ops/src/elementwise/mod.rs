//! Elementwise operations, with NumPy broadcasting.
//!
//! Operands have one element type: calls and operators convert before (see `promote`). All dimensions pass through: a block of the
//! result needs only the corresponding blocks of the operands, and nothing is communicated. `spmdc_kernel::number` defines the
//! result of each operation for each type, to the bit.

mod stablehlo;

use crate::cast::cast;
use crate::constant::Constant;
use crate::promote;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{self, must_be};
use spmdc_ir::array::{Array, Trap};
use spmdc_ir::call::Call;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::complex::{ComplexRule, IN_DUMPS, NOT_YET, REAL};
use spmdc_ir::call::signature::{Dtypes, Signature, Status, signatures};
use spmdc_ir::call::term::{Operand, Term};
use spmdc_ir::lower::builder::KernelBuilder;
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::{Stmt, Value};
use spmdc_ir::rules::batching::Batching;
use spmdc_ir::rules::derivative::Derivative;
use spmdc_ir::rules::{
    Combines, Effect, Elements, Infer, Linear, Lowered, Manual, NamedAxes, Placement, Point, Properties, Reads, Rules,
    Semantics, Typing, one_each,
};
use spmdc_ir::shape;
use spmdc_ir::stablehlo::Exported;
use spmdc_kernel::loops::{Affine, Elem};
use spmdc_kernel::number;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, MathFn, UnaryOp};
use spmdc_layout::factors::Factors;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::{ArrayType, DType};

const DEFINED: &str = "typing refuses what the element type has not";
const BROADCAST: &str = "typing refuses shapes that do not broadcast";

/// `sin(x)`, `-x`, `isnan(x)`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unary(pub UnaryOp);

/// `x + y`, `minimum(x, y)`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binary(pub BinaryOp);

/// `x < y`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compare(pub CompareOp);

/// `where(c, x, y)`: an element of `x` if the bool is true, otherwise of `y`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Select;

fn elementwise_factors(args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
    let shapes: Vec<&[usize]> = args.iter().map(|arg| arg.shape.as_slice()).collect();
    Factors::elementwise(&shapes, &results[0].shape)
}

/// The element of an operand for an index of the result, both relative to the device's blocks.
pub fn operand_at(kernel: &mut KernelBuilder<'_>, operand: Value, result: &[usize], index: &[Affine]) -> Elem {
    let shape = kernel.context.ty(operand).shape();
    let skipped = result.len() - shape.len();
    let own = shape.iter().zip(&result[skipped..]).zip(&index[skipped..]);
    // Every device has the whole of a broadcast dimension.
    let own: Vec<Affine> =
        own.map(|((mine, theirs), index)| if mine == theirs { index.clone() } else { Affine::default() }).collect();
    kernel.operand(operand, &own)
}

fn undefined(title: &str, dtype: DType) -> Mismatch {
    Mismatch::new(Code::E0215, sentences::undefined(format_args!("`{title}`"), dtype.name()))
}

fn same_dtype(title: &str, lhs: &ArrayType, rhs: &ArrayType) -> Result<DType, Mismatch> {
    if lhs.dtype == rhs.dtype {
        return Ok(lhs.dtype);
    }
    let message = format!(
        "the operands of `{title}` have different element types: {} and {}",
        lhs.dtype.name(),
        rhs.dtype.name()
    );
    Err(Mismatch::new(Code::E0203, message))
}

impl Semantics for Unary {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        elementwise_factors(args, results)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let dtype = args[0].dtype();
        let ty = args[0].ty.with_dtype(self.0.result_dtype(dtype));
        let bits = args[0].bits.iter().map(|&bits| number::eval_unary(self.0, dtype, bits).expect(DEFINED)).collect();
        Ok(vec![Array::new(ty, bits)])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        match self.symbol() {
            Some(symbol) => format!("{symbol}{}", args[0]),
            None => format!("{}({})", self.0.name(), args[0]),
        }
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Unary {
    /// The prefix operator, if it is not written as a function.
    fn symbol(&self) -> Option<&'static str> {
        match self.0 == UnaryOp::Neg {
            true => Some("-"),
            false => (self.0 == UnaryOp::Not).then_some("!"),
        }
    }
}

impl Infer for Unary {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let dtype = args[0].dtype;
        let title = self.symbol().unwrap_or(self.0.name());
        number::eval_unary(self.0, dtype, 0).ok_or_else(|| undefined(title, dtype))?;
        Ok(vec![args[0].with_dtype(self.0.result_dtype(dtype))])
    }
}

impl Rules for Unary {
    fn derivative(&self) -> Derivative<'_> {
        self.own_derivative()
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        Batching::Elementwise
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        let (linear, elements) = match self.0 == UnaryOp::Neg {
            true => (Linear::Together, Elements::Negated),
            false => (Linear::No, Elements::Elementwise),
        };
        Properties {
            effect: Effect::None,
            manual: Manual::Local,
            placement: Placement::Follows,
            linear,
            combines: Combines::Nothing,
            elements,
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

impl Point for Unary {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let dtype = kernel.context.ty(stmt.args[0]).dtype();
        let arg = kernel.operand(stmt.args[0], index);
        kernel.unary(self.0, dtype, arg)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Semantics for Binary {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        elementwise_factors(args, results)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let (lhs, rhs) = (args[0], args[1]);
        let shape = shape::broadcast(&[lhs.shape(), rhs.shape()]).expect(BROADCAST);
        let mut is_defined = true;
        let array = Array::from_fn(ArrayType::of(lhs.dtype(), shape), |index| {
            let (x, y) = (lhs.get_broadcast(index), rhs.get_broadcast(index));
            number::eval_binary(self.0, lhs.dtype(), x, y).unwrap_or_else(|| {
                is_defined = false;
                0
            })
        });
        // The type has the operation: only the quotient can be missing.
        if is_defined { Ok(vec![array]) } else { Err(Trap::division_by_zero()) }
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        match self.0.symbol() {
            Some(symbol) => format!("{} {symbol} {}", args[0], args[1]),
            None => format!("{}({}, {})", self.0.name(), args[0], args[1]),
        }
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for Binary {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let dtype = same_dtype(self.0.title(), args[0], args[1])?;
        let shape = shape::broadcast(&[&args[0].shape, &args[1].shape])?;
        number::eval_binary(self.0, dtype, 1, 1).ok_or_else(|| undefined(self.0.title(), dtype))?;
        Ok(vec![ArrayType::of(dtype, shape)])
    }
}

impl Binary {
    /// Whether it stops the program for a divisor of zero, if it divides integers.
    fn may_stop(&self) -> bool {
        matches!(self.0, BinaryOp::FloorDiv | BinaryOp::Rem)
    }
}

impl Rules for Binary {
    fn derivative(&self) -> Derivative<'_> {
        self.own_derivative()
    }

    fn batching(&self, _: usize) -> Batching<'_> {
        if self.may_stop() { Batching::stops(1, 1, Batching::Elementwise) } else { Batching::Elementwise }
    }

    fn lowered(&self) -> Lowered<'_> {
        Lowered::Point(self)
    }

    fn properties(&self) -> Properties<'_> {
        let linear = match self.0 {
            BinaryOp::Add | BinaryOp::Sub => Linear::Together,
            BinaryOp::Mul => Linear::Product,
            // Quotients of integers are rounded.
            BinaryOp::Div => Linear::Quotient,
            BinaryOp::FloorDiv
            | BinaryOp::Rem
            | BinaryOp::Pow
            | BinaryOp::Minimum
            | BinaryOp::Maximum
            | BinaryOp::Atan2
            | BinaryOp::Hypot
            | BinaryOp::Logaddexp
            | BinaryOp::Copysign
            | BinaryOp::Nextafter
            | BinaryOp::Gcd
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => Linear::No,
        };
        Properties {
            effect: if self.may_stop() { Effect::Stops } else { Effect::None },
            manual: Manual::Local,
            placement: Placement::Follows,
            linear,
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

impl Point for Binary {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let result = kernel.context.ty(stmt.results[0]).shape();
        let dtype = kernel.context.ty(stmt.args[0]).dtype();
        let lhs = operand_at(kernel, stmt.args[0], result, index);
        let rhs = operand_at(kernel, stmt.args[1], result, index);
        kernel.binary(self.0, dtype, lhs, rhs)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Semantics for Compare {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        elementwise_factors(args, results)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let (lhs, rhs) = (args[0], args[1]);
        let shape = shape::broadcast(&[lhs.shape(), rhs.shape()]).expect(BROADCAST);
        let array = Array::from_fn(ArrayType::of(DType::Bool, shape), |index| {
            let (x, y) = (lhs.get_broadcast(index), rhs.get_broadcast(index));
            u64::from(number::eval_compare(self.0, lhs.dtype(), x, y).expect(DEFINED))
        });
        Ok(vec![array])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("{} {} {}", args[0], self.0.symbol(), args[1])
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for Compare {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        let dtype = same_dtype(self.0.symbol(), args[0], args[1])?;
        let shape = shape::broadcast(&[&args[0].shape, &args[1].shape])?;
        number::eval_compare(self.0, dtype, 0, 0).ok_or_else(|| undefined(self.0.symbol(), dtype))?;
        Ok(vec![ArrayType::of(DType::Bool, shape)])
    }
}

impl Rules for Compare {
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

impl Point for Compare {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let result = kernel.context.ty(stmt.results[0]).shape();
        let dtype = kernel.context.ty(stmt.args[0]).dtype();
        let lhs = operand_at(kernel, stmt.args[0], result, index);
        let rhs = operand_at(kernel, stmt.args[1], result, index);
        kernel.compare(self.0, dtype, lhs, rhs)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

impl Semantics for Select {
    fn name(&self) -> &'static str {
        "where"
    }

    fn typing(&self) -> Typing<'_> {
        Typing::ByFactors(self)
    }

    fn factors(&self, args: &[&ArrayType], results: &[&ArrayType]) -> Factors {
        elementwise_factors(args, results)
    }

    fn eval(&self, args: &[&Array]) -> Result<Vec<Array>, Trap> {
        let shape = shape::broadcast(&[args[0].shape(), args[1].shape(), args[2].shape()]).expect(BROADCAST);
        let array = Array::from_fn(ArrayType::of(args[1].dtype(), shape), |index| {
            let chosen = if args[0].get_broadcast(index) != 0 { args[1] } else { args[2] };
            chosen.get_broadcast(index)
        });
        Ok(vec![array])
    }

    fn print(&self, args: &[String], _: &Mesh) -> String {
        format!("where({}, {}, {})", args[0], args[1], args[2])
    }

    fn flops(&self, _: &[&ArrayType], results: &[&ArrayType]) -> u64 {
        one_each(results)
    }
}

impl Infer for Select {
    fn infer(&self, args: &[&ArrayType]) -> Result<Vec<ArrayType>, Mismatch> {
        if args[0].dtype != DType::Bool {
            let message = must_be("the condition of `where`", "a bool", args[0].dtype.name());
            return Err(Mismatch::new(Code::E0203, message));
        }
        let dtype = same_dtype("where", args[1], args[2])?;
        let shape = shape::broadcast(&[&args[0].shape, &args[1].shape, &args[2].shape])?;
        Ok(vec![ArrayType::of(dtype, shape)])
    }
}

impl Rules for Select {
    fn derivative(&self) -> Derivative<'_> {
        Derivative::Linear(self)
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
            linear: Linear::Places(&[1, 2]),
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

impl Point for Select {
    fn point(&self, kernel: &mut KernelBuilder<'_>, stmt: &Stmt, index: &[Affine]) -> Elem {
        let result = kernel.context.ty(stmt.results[0]).shape();
        let dtype = kernel.context.ty(stmt.results[0]).dtype();
        let cond = operand_at(kernel, stmt.args[0], result, index);
        let then = operand_at(kernel, stmt.args[1], result, index);
        let otherwise = operand_at(kernel, stmt.args[2], result, index);
        kernel.select(dtype, cond, then, otherwise)
    }

    fn reads(&self, _: usize, _: &[&ArrayType]) -> Reads {
        Reads::Once
    }
}

/// A function of one operand; integers are converted to floats if the function needs them.
pub fn unary(build: &mut CallBuilder, op: UnaryOp, value: Value) -> Result<Value, Diagnostic> {
    let dtype = build.ty(value).dtype();
    if dtype.is_float() || dtype == DType::Key {
        return build.emit1(Unary(op), &[value]);
    }
    if op.is_rounding() {
        return Ok(value);
    }
    // Integers are finite numbers.
    if let UnaryOp::IsNan | UnaryOp::IsInf = op {
        return build.emit1(Compare(CompareOp::Ne), &[value, value]);
    }
    if op == UnaryOp::IsFinite {
        return build.emit1(Compare(CompareOp::Eq), &[value, value]);
    }
    if op == UnaryOp::Signbit {
        let zero = build.emit1(Constant::scalar(dtype, 0), &[])?;
        return build.emit1(Compare(CompareOp::Lt), &[value, zero]);
    }
    let mut computed = dtype;
    if op.is_inexact() {
        computed = promote::inexact(dtype);
    } else if matches!(op, UnaryOp::Square | UnaryOp::Relu) && dtype == DType::Bool {
        computed = DType::I32;
    }
    let value = cast(build, value, computed)?;
    build.emit1(Unary(op), &[value])
}

/// `round(x, decimals=2)`: scaled, rounded to the even neighbour, and scaled back.
fn rounded(build: &mut CallBuilder, value: Value, decimals: i64, args: &Args<'_>) -> Result<Value, Diagnostic> {
    let dtype = build.ty(value).dtype();
    if dtype.is_integer() && decimals >= 0 {
        return Ok(value);
    }
    if !dtype.is_float() {
        let message = sentences::undefined(format_args!("`round` to {decimals} decimals"), dtype.name());
        return Err(
            Diagnostic::error(Code::E0215, args.span, message).help("convert it to a float first, as in f32(x)")
        );
    }
    // Larger powers of ten overflow: then no digit remains to be rounded.
    let largest = dtype.widen(dtype.format().map_or(0, |format| format.largest())).log10().floor();
    if decimals as f64 > largest {
        return Ok(value);
    }
    // The scaled number is computed in a wider type if it could overflow.
    let inner = if largest < 38.0 { dtype.computed() } else { dtype };
    let value = cast(build, value, inner)?;
    let factor = build.emit1(Constant::float(inner, 10f64.powi(decimals as i32)), &[])?;
    let scaled = build.emit1(Binary(BinaryOp::Mul), &[value, factor])?;
    let whole = build.emit1(Unary(UnaryOp::Math(MathFn::Round)), &[scaled])?;
    let result = build.emit1(Binary(BinaryOp::Div), &[whole, factor])?;
    cast(build, result, dtype)
}

/// A function of two operands, converted to their common type.
pub fn binary(build: &mut CallBuilder, op: BinaryOp, lhs: Operand<'_>, rhs: Operand<'_>) -> Result<Value, Diagnostic> {
    let mut dtype = promote::common_dtype(build, &[lhs, rhs])?;
    if op.is_inexact() && dtype != DType::Key {
        dtype = promote::inexact(dtype);
    } else if op.is_of_numbers() && dtype == DType::Bool {
        dtype = DType::I32;
    }
    let lhs = promote::to_dtype(build, lhs, dtype)?;
    let rhs = promote::to_dtype(build, rhs, dtype)?;
    build.emit1(Binary(op), &[lhs, rhs])
}

/// A comparison of two operands, converted to their common type; the result has type bool.
pub fn compare(
    build: &mut CallBuilder,
    op: CompareOp,
    lhs: Operand<'_>,
    rhs: Operand<'_>,
) -> Result<Value, Diagnostic> {
    let values = promote::promoted(build, &[lhs, rhs])?;
    build.emit1(Compare(op), &values)
}

/// A bool unchanged, a number as "not zero".
pub fn truth(build: &mut CallBuilder, value: Value) -> Result<Value, Diagnostic> {
    cast(build, value, DType::Bool)
}

/// The signatures of functions that are not in the table of math functions, and of `round`, which takes more than a number.
const OTHERS: &[Signature] = signatures! {
    /// The magnitude.
    abs(x: Array), NumbersAndBools, Written, "(x: f32[6]) { abs(x - 3) }";
    /// -1, 0 or 1, by the sign.
    sign(x: Array), NumbersAndBools, Written, "(x: f32[6]) { sign(x - 3) }";
    /// x times x.
    square(x: Array), NumbersAndBools, Written, "(x: f32[6]) { square(x) }";
    /// The larger of x and 0; its derivative at zero is 0.
    relu(x: Array), NumbersAndBools, Refused(ORDER), "(x: f32[6]) { relu(x - 3) }";
    /// 1 / x.
    reciprocal(x: Array), NumbersAndBools, Written, "(x: f32[6]) { reciprocal(x + 1) }";
    /// The nearest integer, or the nearest number with the given number of decimals; ties round to even.
    round(x: Array, decimals: Int = 0), NumbersAndBools, Planes(x), "(x: f32[6]) { round(x / 4) }";
    /// Whether x is NaN.
    isnan(x: Array), NumbersAndBools, Written, "(x: f32[6]) { isnan(x / x) }";
    /// Whether x is infinite.
    isinf(x: Array), NumbersAndBools, Written, "(x: f32[6]) { isinf(x / x) }";
    /// Whether x is neither NaN nor infinite.
    isfinite(x: Array), NumbersAndBools, Written, "(x: f32[6]) { isfinite(x / x) }";
    /// Whether x has a minus sign, as -0 does; false for NaN.
    signbit(x: Array), NumbersAndBools, Refused(REAL), "(x: f32[6]) { signbit(x - 3) }";
    /// The number of one bits of an integer.
    popcount(x: Array), Integers, Refused(INTEGERS), "(x: i32[6]) { popcount(x) }";
    /// The number of leading zero bits of an integer.
    clz(x: Array), Integers, Refused(INTEGERS), "(x: i32[6]) { clz(x) }";
};

/// The rule of a math function for complex numbers.
const fn rule_of_math(f: MathFn) -> ComplexRule {
    match f {
        MathFn::Sqrt
        | MathFn::Rsqrt
        | MathFn::Exp
        | MathFn::Exp2
        | MathFn::Expm1
        | MathFn::Log
        | MathFn::Log2
        | MathFn::Log10
        | MathFn::Log1p
        | MathFn::Sin
        | MathFn::Cos
        | MathFn::Tan
        | MathFn::Asin
        | MathFn::Acos
        | MathFn::Atan
        | MathFn::Sinh
        | MathFn::Cosh
        | MathFn::Tanh
        | MathFn::Asinh
        | MathFn::Acosh
        | MathFn::Atanh => ComplexRule::Written,
        MathFn::Round => ComplexRule::Planes(&["x"]),
        MathFn::Cbrt => ComplexRule::Refused("write `z ** (1 / 3)`, the principal root"),
        MathFn::Sigmoid | MathFn::Lgamma | MathFn::Digamma => ComplexRule::Refused(NOT_YET),
        MathFn::Deg2Rad
        | MathFn::Rad2Deg
        | MathFn::Erf
        | MathFn::Erfc
        | MathFn::ErfInv
        | MathFn::Floor
        | MathFn::Ceil
        | MathFn::Trunc => ComplexRule::Refused(REAL),
        MathFn::XlaLog | MathFn::XlaLog1p | MathFn::XlaErf | MathFn::XlaErfInv => ComplexRule::Refused(IN_DUMPS),
    }
}

/// The signatures of the functions of one operand: [`OTHERS`], and one for each math function but `round`.
const UNARY: [Signature; OTHERS.len() + MathFn::ALL.len() - 1] = {
    let mut all = [OTHERS[0]; OTHERS.len() + MathFn::ALL.len() - 1];
    let mut at = 0;
    while at < OTHERS.len() {
        all[at] = OTHERS[at];
        at += 1;
    }
    let mut of = 0;
    while of < MathFn::ALL.len() {
        let f = MathFn::ALL[of];
        if !matches!(f, MathFn::Round) {
            let mut math = Signature {
                name: f.name(),
                doc: f.doc(),
                complex: rule_of_math(f),
                example: f.description().example,
                ..OTHERS[0]
            };
            if f.is_internal() {
                math.dtypes = Dtypes::Nothing;
                math.status = Status::InDumps { with: "", instead: "call the function without `xla_`" };
            }
            all[at] = math;
            at += 1;
        }
        of += 1;
    }
    all
};

/// The names of the functions of one operand.
pub const UNARY_NAMES: [&str; UNARY.len()] = {
    let mut names = [""; UNARY.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = UNARY[at].name;
        at += 1;
    }
    names
};

impl Call for Unary {
    const SIGNATURES: &'static [Signature] = &UNARY;

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let op = UnaryOp::from_name(name).ok_or_else(|| unknown(name, args))?;
        let arg = args.required("x")?;
        let wanted = (op.is_inexact() && matches!(arg.term, Term::Int(_))).then_some(DType::F32);
        let value = build.materialize(&arg.term, wanted, arg.span)?;
        if op == UnaryOp::Math(MathFn::Round)
            && let decimals = args.optional_int("decimals")?.unwrap_or(0)
            && decimals != 0
        {
            return Ok(Term::Array(rounded(build, value, decimals, args)?));
        }
        Ok(Term::Array(unary(build, op, value)?))
    }
}

impl Call for Binary {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The smaller of two numbers; NaN if one is NaN.
        minimum(x1: Array, x2: Array), NumbersAndBools, Refused(ORDER), "(x: f32[4, 6], y: f32[6]) { minimum(x, y) }";
        /// The larger of two numbers; NaN if one is NaN.
        maximum(x1: Array, x2: Array), NumbersAndBools, Refused(ORDER), "(x: f32[4, 6], y: f32[6]) { maximum(x, y) }";
        /// The angle of the point with the ordinate x1 and the abscissa x2.
        atan2(x1: Array, x2: Array), NumbersAndBools, Refused(REAL), "(x: f32[4, 6], y: f32[6]) { atan2(x, y) }";
        /// sqrt(x1 ** 2 + x2 ** 2), without intermediate overflow.
        hypot(x1: Array, x2: Array), NumbersAndBools, Refused(REAL), "(x: f32[4, 6], y: f32[6]) { hypot(x, y) }";
        /// log(exp(x1) + exp(x2)), without intermediate overflow.
        logaddexp(x1: Array, x2: Array), NumbersAndBools, Refused(ORDER), "(x: f32[4, 6], y: f32[6]) { logaddexp(x, y) }";
        /// The magnitude of x1 with the sign of x2; positive if x2 is NaN.
        copysign(x1: Array, x2: Array), NumbersAndBools, Refused(REAL), "(x: f32[4, 6], y: f32[6]) { copysign(x, y - 3) }";
        /// The next number after x in the direction of y, in their element type.
        nextafter(x: Array, y: Array), NumbersAndBools, Refused(REAL), "(x: f32[4, 6], y: f32[6]) { nextafter(x, y) }";
        /// The greatest common divisor.
        gcd(x1: Array, x2: Array), Integers, Refused(INTEGERS), "(x: i32[4, 6], y: i32[6]) { gcd(x, y) }";
        /// x1 raised to the power x2.
        pow(x1: Array, x2: Array), NumbersAndBools, Written, "(x: f32[4, 6], y: f32[6]) { pow(x, y) }";
    };

    fn call(name: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let op = BinaryOp::from_name(name).ok_or_else(|| unknown(name, args))?;
        let [lhs, rhs] = args.signature().params else { return Err(unknown(name, args)) };
        let (lhs, rhs) = (args.required(lhs.name)?, args.required(rhs.name)?);
        let (lhs, rhs) = ((&lhs.term, lhs.span), (&rhs.term, rhs.span));
        let value = if op == BinaryOp::Pow { power(build, lhs, rhs)? } else { binary(build, op, lhs, rhs)? };
        Ok(Term::Array(value))
    }
}

fn unknown(name: &str, args: &Args<'_>) -> Diagnostic {
    Diagnostic::error(Code::E0999, args.span, format!("the table of operations has `{name}` in the wrong row"))
}

impl Call for Select {
    const SIGNATURES: &'static [Signature] = signatures! {
        /// The elements of x where the condition holds, and the elements of y elsewhere.
        where(condition: Array, x: Array, y: Array), NumbersAndBools, Planes(x, y), "(x: f32[4, 6], y: f32[6]) { where(x > y, x, y) }";
    };

    fn call(_: &str, args: &mut Args<'_>, build: &mut CallBuilder) -> Result<Term, Diagnostic> {
        let condition = args.array(build, "condition")?;
        let (then, otherwise) = (args.required("x")?, args.required("y")?);
        let condition = truth(build, condition)?;
        let values = promote::promoted(build, &[(&then.term, then.span), (&otherwise.term, otherwise.span)])?;
        Ok(Term::Array(build.emit1(Select, &[condition, values[0], values[1]])?))
    }
}

/// Maximum literal exponent that is expanded into multiplications.
const MULTIPLIED_EXPONENT: i128 = 64;

/// `x ** n` with a literal integer is repeated squaring, exact for integers; otherwise it is the function `pow`. Negative powers are powers
/// of the inverse, so that derivatives have no product of zero and infinity.
pub fn power(build: &mut CallBuilder, lhs: Operand<'_>, rhs: Operand<'_>) -> Result<Value, Diagnostic> {
    if let Term::Array(base) = lhs.0
        && rhs.0.number() == Some(0.0)
    {
        // 1 for all numbers and for NaN: no derivative depends on the base.
        let constant = Term::Array(build.stopped_alias(*base));
        return binary(build, BinaryOp::Pow, (&constant, lhs.1), rhs);
    }
    let (Term::Int(exponent), Term::Array(base)) = (rhs.0, lhs.0) else {
        return binary(build, BinaryOp::Pow, lhs, rhs);
    };
    let (exponent, mut base) = (*exponent, *base);
    let dtype = build.ty(base).dtype();
    if exponent < 0 && dtype.is_integer() {
        let message = "an integer cannot be raised to a negative power";
        return Err(Diagnostic::error(Code::E0215, rhs.1, message).help("convert the base first, as in f32(x) ** -1"));
    }
    if dtype == DType::Bool || dtype == DType::Key || exponent.abs() > MULTIPLIED_EXPONENT {
        return binary(build, BinaryOp::Pow, lhs, rhs);
    }
    if exponent < 0 {
        base = build.emit1(Unary(UnaryOp::Reciprocal), &[base])?;
    }
    let mut product = None;
    let mut rest = exponent.abs();
    while rest > 0 {
        if rest & 1 == 1 {
            product = Some(match product {
                None => base,
                Some(product) => build.emit1(Binary(BinaryOp::Mul), &[product, base])?,
            });
        }
        rest >>= 1;
        if rest > 0 {
            base = build.emit1(Unary(UnaryOp::Square), &[base])?;
        }
    }
    Ok(product.unwrap_or(base))
}
