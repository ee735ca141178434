//! The operators of the language, on arrays or compile-time numbers.
//!
//! Operators on two literals are computed at compile time, as in Python.

use spmdc_einsum_ops::contract::matmul;
use spmdc_grammar::ast;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::term::{Operand, StaticScalar, Term};
use spmdc_ir::mismatch::Mismatch;
use spmdc_kernel::scalar::{BinaryOp, CompareOp, UnaryOp};
use spmdc_layout::types::DType;
use spmdc_ops::elementwise::{self, power};
use spmdc_ops::promote::common_dtype;

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
                if common_dtype(build, &[operand])? != DType::Bool {
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
        Ast::MatMul => matmul(build, lhs, rhs),
    }?;
    Ok(Term::Array(value))
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
