//! The common element type of operands, and operators on arrays or compile-time numbers.
//!
//! The lattice is JAX's: `u8` and `i8` join to `i16`, `i64` and `f16` to `f16`, `f16` and `bf16` to `f32`. A literal is weak:
//! `2 * x` has the type of `x`; only a float literal turns integers into `f32`. Where JAX takes its default float, the language takes
//! `f32`. Operators on two literals are computed at compile time, as in Python.

use crate::cast::Cast;
use crate::concatenate::concatenate;
use crate::einsum;
use crate::elementwise;
use crate::reshape::reshape;
use spmdc_abi::{Kind as ElementKind, Width};
use spmdc_grammar::ast;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::no_array;
use spmdc_ir::call::term::{StaticScalar, Term};
use spmdc_ir::mismatch::Mismatch;
use spmdc_ir::program::Value;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
use spmdc_layout::types::DType;

/// An operand and its source position.
pub type Operand<'a> = (&'a Term, Span);

/// The join of two types; None for keys together with numbers.
///
/// ```
/// use crate::promote::join;
/// use spmdc_abi::DType;
/// assert_eq!(join(DType::U32, DType::I32), Some(DType::I64));
/// assert_eq!(join(DType::I64, DType::Bf16), Some(DType::Bf16));
/// ```
pub fn join(a: DType, b: DType) -> Option<DType> {
    let wider = |a: DType, b: DType| if a.size() >= b.size() { a } else { b };
    if a == b {
        return Some(a);
    }
    if a == DType::Key || b == DType::Key {
        return None;
    }
    Some(match (a.is_float(), b.is_float()) {
        // A float of 8 bits is there to save room, and says itself what it becomes.
        (true, true) if a.width() == Width::W8 || b.width() == Width::W8 => return None,
        (true, true) if a.size() == b.size() => DType::F32,
        (true, true) => wider(a, b),
        (true, false) => a,
        (false, true) => b,
        (false, false) if a == DType::Bool => b,
        (false, false) if b == DType::Bool => a,
        (false, false) if a.is_signed_integer() == b.is_signed_integer() => wider(a, b),
        (false, false) => {
            let (signed, unsigned) = if a.is_signed_integer() { (a, b) } else { (b, a) };
            match unsigned.width() {
                Width::W8 => wider(signed, DType::I16),
                Width::W16 => wider(signed, DType::I32),
                Width::W32 => DType::I64,
                Width::W64 => DType::F32,
            }
        }
    })
}

/// The float type that functions such as `sin` and the operator `/` compute integers in.
pub fn inexact(dtype: DType) -> DType {
    match dtype.kind() {
        ElementKind::Float => dtype,
        ElementKind::Signed | ElementKind::Unsigned if dtype.size() == 8 => DType::F64,
        ElementKind::Bool | ElementKind::Signed | ElementKind::Unsigned | ElementKind::Key => DType::F32,
    }
}

/// The contribution of an operand to the common type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OperandKind {
    WeakInt,
    WeakFloat,
    Strong(DType),
}

fn kind(build: &CallBuilder, (term, span): Operand<'_>) -> Result<OperandKind, Diagnostic> {
    if let Term::Array(value) = term {
        return Ok(OperandKind::Strong(build.ty(*value).dtype()));
    }
    if let Term::List(items) = term {
        let mut joined = None;
        for item in items {
            joined = Some(meet(joined, kind(build, (item, span))?, span)?);
        }
        return Ok(joined.unwrap_or(OperandKind::WeakFloat));
    }
    match term.static_scalar() {
        Some(StaticScalar::Int(_)) => Ok(OperandKind::WeakInt),
        Some(StaticScalar::Float(_)) => Ok(OperandKind::WeakFloat),
        Some(StaticScalar::Bool(_)) => Ok(OperandKind::Strong(DType::Bool)),
        None => Err(no_array(term, span)),
    }
}

fn meet(known: Option<OperandKind>, other: OperandKind, span: Span) -> Result<OperandKind, Diagnostic> {
    let apart = |dtype: DType| {
        let message = format!("a {} and a number have no common type", dtype.name());
        Diagnostic::error(Code::E0203, span, message)
    };
    Ok(match (known.unwrap_or(other), other) {
        (OperandKind::Strong(a), OperandKind::Strong(b)) => {
            OperandKind::Strong(join(a, b).ok_or_else(|| no_common_type(a, b, span))?)
        }
        (OperandKind::Strong(DType::Key), _) | (_, OperandKind::Strong(DType::Key)) => return Err(apart(DType::Key)),
        (OperandKind::Strong(DType::Bool), weak) | (weak, OperandKind::Strong(DType::Bool)) => weak,
        (OperandKind::Strong(dtype), OperandKind::WeakInt) | (OperandKind::WeakInt, OperandKind::Strong(dtype)) => {
            OperandKind::Strong(dtype)
        }
        (OperandKind::Strong(dtype), OperandKind::WeakFloat) | (OperandKind::WeakFloat, OperandKind::Strong(dtype)) => {
            OperandKind::Strong(if dtype.is_float() { dtype } else { DType::F32 })
        }
        (OperandKind::WeakInt, OperandKind::WeakInt) => OperandKind::WeakInt,
        (OperandKind::WeakInt | OperandKind::WeakFloat, OperandKind::WeakInt | OperandKind::WeakFloat) => {
            OperandKind::WeakFloat
        }
    })
}

fn no_common_type(a: DType, b: DType, span: Span) -> Diagnostic {
    let message = format!("{} and {} have no common type", a.name(), b.name());
    let error = Diagnostic::error(Code::E0203, span, message);
    if !a.is_float() || !b.is_float() {
        return error;
    }
    let wider = if a.size() >= b.size() { a } else { b };
    error.help(format!("8-bit floats are not converted implicitly; write {}(x)", wider.name()))
}

/// The type to which all operands are converted.
pub fn common_dtype(build: &CallBuilder, operands: &[Operand<'_>]) -> Result<DType, Diagnostic> {
    let mut joined = None;
    for &operand in operands {
        joined = Some(meet(joined, kind(build, operand)?, operand.1)?);
    }
    Ok(match joined {
        Some(OperandKind::Strong(dtype)) => dtype,
        Some(OperandKind::WeakInt) => DType::I32,
        Some(OperandKind::WeakFloat) | None => DType::F32,
    })
}

/// A value converted to an element type, without a statement if it already has it.
pub fn cast(build: &mut CallBuilder, value: Value, to: DType) -> Result<Value, Diagnostic> {
    if build.ty(value).dtype() == to { Ok(value) } else { build.emit1(Cast { to }, &[value]) }
}

/// An operand as an array of this element type; a literal that does not fit it is an error.
pub fn to_dtype(build: &mut CallBuilder, (term, span): Operand<'_>, dtype: DType) -> Result<Value, Diagnostic> {
    let value = build.materialize(term, Some(dtype), span)?;
    cast(build, value, dtype)
}

/// All operands as arrays of their common type.
pub fn promoted(build: &mut CallBuilder, operands: &[Operand<'_>]) -> Result<Vec<Value>, Diagnostic> {
    let dtype = common_dtype(build, operands)?;
    operands.iter().map(|&operand| to_dtype(build, operand, dtype)).collect()
}

/// `[a, b]` as an array: its elements stacked along a new first dimension, of `dtype` if given.
pub fn stacked(build: &mut CallBuilder, items: &[Term], dtype: Option<DType>, span: Span) -> Result<Value, Diagnostic> {
    if items.is_empty() {
        return Err(Diagnostic::error(Code::E0210, span, "expected a list of arrays, found an empty one"));
    }
    let operands: Vec<Operand<'_>> = items.iter().map(|item| (item, span)).collect();
    let dtype = match dtype {
        Some(dtype) => dtype,
        None => common_dtype(build, &operands)?,
    };
    let mut parts = Vec::new();
    for &operand in &operands {
        let part = to_dtype(build, operand, dtype)?;
        let shape = [&[1], build.ty(part).shape()].concat();
        if parts.first().is_some_and(|&first| build.ty(first).shape() != shape) {
            return Err(Diagnostic::error(Code::E0205, span, "the arrays of this list have different shapes"));
        }
        parts.push(reshape(build, part, &shape)?);
    }
    concatenate(build, &parts, 0)
}

/// `lhs op rhs`, where each side is an array or a number.
pub fn binary(
    build: &mut CallBuilder,
    op: ast::InfixOp,
    lhs: Operand<'_>,
    rhs: Operand<'_>,
) -> Result<Term, Diagnostic> {
    if let Some(folded) = fold_binary(op, lhs.0, rhs.0) {
        return folded.map_err(|mismatch| build.mismatch(mismatch));
    }
    use ast::InfixOp as Ast;
    let value = match op {
        Ast::Or | Ast::And => {
            let symbol = if op == Ast::Or { "||" } else { "&&" };
            for operand in [lhs, rhs] {
                if kind(build, operand)? != OperandKind::Strong(DType::Bool) {
                    let message = format!("the operands of `{symbol}` must be bools");
                    let error = Diagnostic::error(Code::E0215, operand.1, message)
                        .help("compare the operands with `!= 0` first");
                    return Err(error);
                }
            }
            elementwise::binary(build, if op == Ast::Or { BinaryOp::Or } else { BinaryOp::And }, lhs, rhs)
        }
        Ast::Eq => elementwise::compare(build, CompareOp::Eq, lhs, rhs),
        Ast::Ne => elementwise::compare(build, CompareOp::Ne, lhs, rhs),
        Ast::Lt => elementwise::compare(build, CompareOp::Lt, lhs, rhs),
        Ast::Le => elementwise::compare(build, CompareOp::Le, lhs, rhs),
        Ast::Gt => elementwise::compare(build, CompareOp::Gt, lhs, rhs),
        Ast::Ge => elementwise::compare(build, CompareOp::Ge, lhs, rhs),
        Ast::BitOr => elementwise::binary(build, BinaryOp::Or, lhs, rhs),
        Ast::BitXor => elementwise::binary(build, BinaryOp::Xor, lhs, rhs),
        Ast::BitAnd => elementwise::binary(build, BinaryOp::And, lhs, rhs),
        Ast::Shl => elementwise::binary(build, BinaryOp::Shl, lhs, rhs),
        Ast::Shr => elementwise::binary(build, BinaryOp::Shr, lhs, rhs),
        Ast::Add => elementwise::binary(build, BinaryOp::Add, lhs, rhs),
        Ast::Sub => elementwise::binary(build, BinaryOp::Sub, lhs, rhs),
        Ast::Mul => elementwise::binary(build, BinaryOp::Mul, lhs, rhs),
        Ast::Div => elementwise::binary(build, BinaryOp::Div, lhs, rhs),
        Ast::FloorDiv => elementwise::binary(build, BinaryOp::FloorDiv, lhs, rhs),
        Ast::Rem => elementwise::binary(build, BinaryOp::Rem, lhs, rhs),
        Ast::Pow => power(build, lhs, rhs),
        Ast::MatMul => einsum::contract::matmul(build, lhs, rhs),
    }?;
    Ok(Term::Array(value))
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
        return elementwise::binary(build, BinaryOp::Pow, (&constant, lhs.1), rhs);
    }
    let (Term::Int(exponent), Term::Array(base)) = (rhs.0, lhs.0) else {
        return elementwise::binary(build, BinaryOp::Pow, lhs, rhs);
    };
    let (exponent, mut base) = (*exponent, *base);
    let dtype = build.ty(base).dtype();
    if exponent < 0 && dtype.is_integer() {
        let message = "an integer cannot be raised to a negative power";
        return Err(Diagnostic::error(Code::E0215, rhs.1, message).help("convert the base first, as in f32(x) ** -1"));
    }
    if dtype == DType::Bool || dtype == DType::Key || exponent.abs() > MULTIPLIED_EXPONENT {
        return elementwise::binary(build, BinaryOp::Pow, lhs, rhs);
    }
    if exponent < 0 {
        base = build.emit1(elementwise::Unary(UnaryOp::Reciprocal), &[base])?;
    }
    let mut product = None;
    let mut rest = exponent.abs();
    while rest > 0 {
        if rest & 1 == 1 {
            product = Some(match product {
                None => base,
                Some(product) => build.emit1(elementwise::Binary(BinaryOp::Mul), &[product, base])?,
            });
        }
        rest >>= 1;
        if rest > 0 {
            base = build.emit1(elementwise::Unary(UnaryOp::Square), &[base])?;
        }
    }
    Ok(product.unwrap_or(base))
}

/// `-x`, `!x`, where `x` is an array or a number.
pub fn unary(build: &mut CallBuilder, op: ast::PrefixOp, operand: Operand<'_>) -> Result<Term, Diagnostic> {
    if let Some(folded) = fold_unary(op, operand.0) {
        return folded.map_err(|mismatch| build.mismatch(mismatch));
    }
    let value = build.materialize(operand.0, None, operand.1)?;
    let op = match op {
        ast::PrefixOp::Neg => UnaryOp::Neg,
        ast::PrefixOp::Not => UnaryOp::Not,
    };
    Ok(Term::Array(build.emit1(elementwise::Unary(op), &[value])?))
}

/// The value of an operator on a number known at compile time; None for other terms.
pub fn fold_unary(op: ast::PrefixOp, term: &Term) -> Option<Result<Term, Mismatch>> {
    Some(Ok(match (op, term) {
        (ast::PrefixOp::Neg, Term::Int(value)) => match value.checked_neg() {
            Some(value) => Term::Int(value),
            None => return Some(Err(overflow())),
        },
        (ast::PrefixOp::Neg, Term::Float(value)) => Term::Float(-value),
        (ast::PrefixOp::Neg, Term::Bool(value)) => Term::Int(-i128::from(*value)),
        (ast::PrefixOp::Not, Term::Int(value)) => Term::Int(!value),
        (ast::PrefixOp::Not, Term::Bool(value)) => Term::Bool(!value),
        _ => return None,
    }))
}

fn overflow() -> Mismatch {
    Mismatch::new(Code::E0218, "this constant is too large")
}

/// The value of an operator on two numbers known at compile time, as in Python; None for other terms.
///
/// Float division by zero gives infinity or NaN instead of an exception.
pub fn fold_binary(op: ast::InfixOp, lhs: &Term, rhs: &Term) -> Option<Result<Term, Mismatch>> {
    if let (Term::Bool(a), Term::Bool(b)) = (lhs, rhs) {
        if let ast::InfixOp::Or | ast::InfixOp::BitOr = op {
            return Some(Ok(Term::Bool(a | b)));
        }
        if let ast::InfixOp::And | ast::InfixOp::BitAnd = op {
            return Some(Ok(Term::Bool(a & b)));
        }
        if op == ast::InfixOp::BitXor {
            return Some(Ok(Term::Bool(a ^ b)));
        }
    }
    match (whole(lhs), whole(rhs)) {
        (Some(a), Some(b)) => fold_ints(op, a, b),
        _ => fold_floats(op, number(lhs)?, number(rhs)?),
    }
}

fn whole(term: &Term) -> Option<i128> {
    match term.static_scalar()? {
        StaticScalar::Int(value) => Some(value),
        StaticScalar::Bool(value) => Some(i128::from(value)),
        StaticScalar::Float(_) => None,
    }
}

fn number(term: &Term) -> Option<f64> {
    if let Term::Float(value) = term { Some(*value) } else { whole(term).map(|value| value as f64) }
}

fn fold_ints(op: ast::InfixOp, a: i128, b: i128) -> Option<Result<Term, Mismatch>> {
    use ast::InfixOp as Ast;
    let int = |value: Option<i128>| Some(value.map(Term::Int).ok_or_else(overflow));
    let by_zero = || Some(Err(Mismatch::new(Code::E0802, "integer division by zero")));
    match op {
        Ast::Add => int(a.checked_add(b)),
        Ast::Sub => int(a.checked_sub(b)),
        Ast::Mul => int(a.checked_mul(b)),
        Ast::Div => Some(Ok(Term::Float(a as f64 / b as f64))),
        Ast::FloorDiv | Ast::Rem if b == 0 => by_zero(),
        Ast::FloorDiv => int(a.checked_div_euclid(b).and_then(|q| {
            // The Euclidean quotient makes the remainder positive; the floor differs for a negative divisor.
            if b < 0 && a.rem_euclid(b) != 0 { q.checked_sub(1) } else { Some(q) }
        })),
        Ast::Rem => {
            let rest = a.checked_rem_euclid(b);
            int(rest.map(|rest| if b < 0 && rest != 0 { rest + b } else { rest }))
        }
        Ast::Pow if b < 0 => Some(Ok(Term::Float((a as f64).powf(b as f64)))),
        Ast::Pow if matches!(a, -1..=1) => int(Some(if b == 0 || (a == -1 && b % 2 == 0) { 1 } else { a })),
        Ast::Pow => int(u32::try_from(b).ok().and_then(|b| a.checked_pow(b))),
        Ast::BitOr => int(Some(a | b)),
        Ast::BitXor => int(Some(a ^ b)),
        Ast::BitAnd => int(Some(a & b)),
        Ast::Shl | Ast::Shr if b < 0 => Some(Err(Mismatch::new(Code::E0218, "a shift by a negative number of bits"))),
        Ast::Shl if b < 127 => int(a.checked_mul(1 << b)),
        Ast::Shl => int(if a == 0 { Some(0) } else { None }),
        Ast::Shr => int(Some(a >> b.min(127))),
        Ast::Or | Ast::And | Ast::MatMul => None,
        Ast::Eq | Ast::Ne | Ast::Lt | Ast::Le | Ast::Gt | Ast::Ge => compare(op, a.partial_cmp(&b)),
    }
}

fn fold_floats(op: ast::InfixOp, a: f64, b: f64) -> Option<Result<Term, Mismatch>> {
    use ast::InfixOp as Ast;
    let float = |value: f64| Some(Ok(Term::Float(value)));
    let divided = |op: BinaryOp| {
        let bits = spmdc_kernel::number::eval_binary(op, DType::F64, a.to_bits(), b.to_bits())?;
        float(f64::from_bits(bits))
    };
    match op {
        Ast::Add => float(a + b),
        Ast::Sub => float(a - b),
        Ast::Mul => float(a * b),
        Ast::Div => float(a / b),
        Ast::FloorDiv => divided(BinaryOp::FloorDiv),
        Ast::Rem => divided(BinaryOp::Rem),
        Ast::Pow => float(a.powf(b)),
        Ast::Eq | Ast::Ne | Ast::Lt | Ast::Le | Ast::Gt | Ast::Ge => compare(op, a.partial_cmp(&b)),
        Ast::Or | Ast::And | Ast::BitOr | Ast::BitXor | Ast::BitAnd | Ast::Shl | Ast::Shr | Ast::MatMul => None,
    }
}

fn compare(op: ast::InfixOp, order: Option<std::cmp::Ordering>) -> Option<Result<Term, Mismatch>> {
    Some(Ok(Term::Bool(CompareOp::from_symbol(op.symbol())?.holds(order))))
}
