//! The common element type of operands, to which they are converted.
//!
//! The lattice is JAX's: `u8` and `i8` join to `i16`, `i64` and `f16` to `f16`, `f16` and `bf16` to `f32`. A literal is weak:
//! `2 * x` has the type of `x`; only a float literal turns integers into `f32`. Where JAX takes its default float, the language takes
//! `f32`.

use crate::cast::cast;
use spmdc_abi::{Kind as ElementKind, Width};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::errors::no_array;
use spmdc_ir::call::term::{Operand, StaticScalar, Term};
use spmdc_ir::program::Value;
use spmdc_layout::types::DType;

/// The join of two types; None for keys together with numbers.
///
/// ```
/// use spmdc_ops::promote::join;
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

/// New values in the type of the array: numbers take it, and arrays are converted if only precision is lost.
pub fn assigned(build: &mut CallBuilder, dtype: DType, (term, span): Operand<'_>) -> Result<Value, Diagnostic> {
    let value = build.materialize(term, Some(dtype), span)?;
    let given = build.ty(value).dtype();
    if given == dtype || join(given, dtype) == Some(dtype) || (given.is_float() && dtype.is_float()) {
        return cast(build, value, dtype);
    }
    let message = format!("elements of type {} cannot be assigned values of type {}", dtype.name(), given.name());
    Err(Diagnostic::error(Code::E0203, span, message)
        .help(format!("convert the values first, as in {}(v)", dtype.name())))
}
