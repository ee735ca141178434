//! The cost of the instructions of a loop nest: approximate machine instructions for one element.

use super::loops::Inst;
use crate::scalar::{BinaryOp, UnaryOp};
use spmdc_abi::DType;

/// Approximate machine instructions for one element.
pub fn work(inst: &Inst) -> f64 {
    let narrow = |dtype: DType| if dtype.is_narrow() { 8.0 } else { 0.0 };
    match inst {
        Inst::Const { .. } | Inst::LoopInvariant { .. } => 0.0,
        Inst::Load { dtype, .. } => 1.0 + narrow(*dtype),
        Inst::Index { .. } => 1.0,
        Inst::CheckIndex { .. } => 4.0,
        Inst::Limit { .. } => 2.0,
        Inst::Unary { op, dtype, .. } => unary_work(*op) + narrow(*dtype),
        Inst::Binary { op, dtype, .. } => binary_work(*op, *dtype) + narrow(*dtype),
        Inst::Compare { .. } | Inst::Select { .. } => 1.0,
        Inst::Fma { dtype, .. } => 1.0 + narrow(*dtype),
        Inst::Cast { from, to, .. } => 1.0 + narrow(*from) + narrow(*to),
        Inst::Bitcast { from, to, .. } => narrow(*from) + narrow(*to),
        Inst::RandomBits { .. } => 200.0,
        Inst::InRange { .. } => 3.0,
        Inst::Carried { .. } | Inst::Last { .. } => 0.0,
        Inst::Repeat { .. } => 2.0,
    }
}

fn unary_work(op: UnaryOp) -> f64 {
    match op {
        UnaryOp::Neg
        | UnaryOp::Not
        | UnaryOp::Abs
        | UnaryOp::Square
        | UnaryOp::Relu
        | UnaryOp::IsNan
        | UnaryOp::IsInf
        | UnaryOp::IsFinite => 1.0,
        UnaryOp::Math(_) if op.is_rounding() => 1.0,
        UnaryOp::Sign | UnaryOp::Signbit => 3.0,
        UnaryOp::Popcount | UnaryOp::Clz => 6.0,
        UnaryOp::Reciprocal => 6.0,
        UnaryOp::Math(f) if f.description().is_instruction => 6.0,
        UnaryOp::Math(_) => 30.0,
    }
}

fn binary_work(op: BinaryOp, dtype: DType) -> f64 {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => 1.0,
        BinaryOp::Mul if dtype.size() == 8 && dtype.is_integer() => 4.0,
        BinaryOp::Mul => 1.0,
        BinaryOp::Shl | BinaryOp::Shr => 3.0,
        BinaryOp::Minimum | BinaryOp::Maximum | BinaryOp::Copysign => 3.0,
        BinaryOp::Nextafter => 12.0,
        // Half a dozen steps of a division each.
        BinaryOp::Gcd => 80.0,
        BinaryOp::Div => 6.0,
        BinaryOp::FloorDiv | BinaryOp::Rem => 12.0,
        BinaryOp::Pow | BinaryOp::Atan2 | BinaryOp::Hypot | BinaryOp::Logaddexp => 60.0,
    }
}
