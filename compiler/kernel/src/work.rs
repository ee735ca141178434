//! What the instructions of a loop nest cost: machine instructions for one element, roughly.

use super::loops::Inst;
use crate::scalar::{BinaryOp, UnaryOp};
use spmdc_abi::DType;

/// Instructions for one element.
pub fn work(inst: &Inst) -> f64 {
    let half = |dtype: DType| if dtype.is_narrow() { 8.0 } else { 0.0 };
    match inst {
        Inst::Const { .. } | Inst::LoopInvariant { .. } => 0.0,
        Inst::Load { dtype, .. } => 1.0 + half(*dtype),
        Inst::Index { .. } => 1.0,
        Inst::Unary { op, dtype, .. } => unary_work(*op) + half(*dtype),
        Inst::Binary { op, dtype, .. } => binary_work(*op, *dtype) + half(*dtype),
        Inst::Compare { .. } | Inst::Select { .. } => 1.0,
        Inst::Cast { from, to, .. } => 1.0 + half(*from) + half(*to),
        Inst::InRange { .. } => 3.0,
    }
}

fn unary_work(op: UnaryOp) -> f64 {
    match op {
        UnaryOp::Neg
        | UnaryOp::Not
        | UnaryOp::Abs
        | UnaryOp::Square
        | UnaryOp::IsNan
        | UnaryOp::IsInf
        | UnaryOp::IsFinite
        | UnaryOp::Floor
        | UnaryOp::Ceil
        | UnaryOp::Round
        | UnaryOp::Trunc => 1.0,
        UnaryOp::Sign => 3.0,
        UnaryOp::Reciprocal | UnaryOp::Sqrt => 6.0,
        UnaryOp::Rsqrt
        | UnaryOp::Cbrt
        | UnaryOp::Exp
        | UnaryOp::Exp2
        | UnaryOp::Expm1
        | UnaryOp::Log
        | UnaryOp::Log2
        | UnaryOp::Log10
        | UnaryOp::Log1p
        | UnaryOp::Sin
        | UnaryOp::Cos
        | UnaryOp::Tan
        | UnaryOp::Asin
        | UnaryOp::Acos
        | UnaryOp::Atan
        | UnaryOp::Sinh
        | UnaryOp::Cosh
        | UnaryOp::Tanh
        | UnaryOp::Asinh
        | UnaryOp::Acosh
        | UnaryOp::Atanh
        | UnaryOp::Erf
        | UnaryOp::Erfc
        | UnaryOp::ErfInv => 30.0,
    }
}

fn binary_work(op: BinaryOp, dtype: DType) -> f64 {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => 1.0,
        BinaryOp::Mul if dtype.size() == 8 && dtype.is_integer() => 4.0,
        BinaryOp::Mul => 1.0,
        BinaryOp::Shl | BinaryOp::Shr => 3.0,
        BinaryOp::Minimum | BinaryOp::Maximum => 3.0,
        BinaryOp::Div => 6.0,
        BinaryOp::FloorDiv | BinaryOp::Rem => 12.0,
        BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Hypot | BinaryOp::Logaddexp => 60.0,
    }
}
