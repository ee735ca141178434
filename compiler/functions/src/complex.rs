//! Operators on complex numbers, the functions of `complex.spmd`, and the planes of terms.
//!
//! Each function's rule for complex arguments is in its signature ([`ComplexRule`](spmdc_ir::call::complex::ComplexRule)); the rules that are
//! written in the language are in `compiler/functions/prelude/complex.spmd`.

use crate::paragraph::{Paragraph, paragraph};
use spmdc_grammar::ast::{FnItem, InfixOp, PrefixOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::undefined;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
use spmdc_ir::call::complex::{INTEGERS, ORDER, REAL};
use spmdc_ir::call::term::Operand;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_ir::shape;
use spmdc_kernel::scalar::BinaryOp;
use spmdc_layout::types::DType;
use spmdc_ops::broadcast::{broadcast, filled};
use spmdc_ops::elementwise::Binary;
use spmdc_ops::promote;
use std::sync::OnceLock;

/// The rule of an operator for complex operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorRule {
    /// This function of `complex.spmd`.
    Written(&'static str),
    /// This function of the language.
    Function(&'static str),
    /// Multiplications for small integers, otherwise `pow`.
    Power,
    /// An error, for this reason.
    Refused(&'static str),
}

/// The rule of an operator between two operands.
pub fn infix(op: InfixOp) -> OperatorRule {
    match op {
        InfixOp::Add => OperatorRule::Written("op_add"),
        InfixOp::Sub => OperatorRule::Written("op_sub"),
        InfixOp::Mul => OperatorRule::Written("op_mul"),
        InfixOp::Div => OperatorRule::Written("op_div"),
        InfixOp::Pow => OperatorRule::Power,
        InfixOp::MatMul => OperatorRule::Function("matmul"),
        InfixOp::Eq => OperatorRule::Written("op_eq"),
        InfixOp::Ne => OperatorRule::Written("op_ne"),
        InfixOp::Lt | InfixOp::Le | InfixOp::Gt | InfixOp::Ge => OperatorRule::Refused(ORDER),
        InfixOp::FloorDiv | InfixOp::Rem => OperatorRule::Refused(REAL),
        InfixOp::Or | InfixOp::And => OperatorRule::Refused("it takes bools; compare with `!= 0` first"),
        InfixOp::BitOr | InfixOp::BitXor | InfixOp::BitAnd | InfixOp::Shl | InfixOp::Shr => {
            OperatorRule::Refused(INTEGERS)
        }
    }
}

/// The rule of an operator before its operand.
pub fn prefix(op: PrefixOp) -> OperatorRule {
    match op {
        PrefixOp::Neg => OperatorRule::Written("op_neg"),
        PrefixOp::Not => OperatorRule::Refused("it takes bools; compare with `== 0`"),
    }
}

/// E0215: the function is not defined for complex numbers.
pub fn refused(function: &str, why: &str, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0215, span, undefined(format_args!("`{function}`"), "complex numbers")).help(why)
}

/// The text of `complex.spmd`.
pub const FILE: &str = include_str!("../prelude/complex.spmd");

/// The functions of `complex.spmd`.
pub const NAMES: [&str; 50] = [
    "abs",
    "acos",
    "acosh",
    "all",
    "angle",
    "any",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "conj",
    "cos",
    "cosh",
    "cumprod",
    "exp",
    "exp2",
    "expm1",
    "imag",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "log",
    "log10",
    "log1p",
    "log2",
    "norm",
    "ones_like",
    "op_add",
    "op_div",
    "op_eq",
    "op_mul",
    "op_ne",
    "op_neg",
    "op_sub",
    "pow",
    "prod",
    "real",
    "reciprocal",
    "rsqrt",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "std",
    "tan",
    "tanh",
    "var",
    "vdot",
];

/// The function of this name in `complex.spmd`.
pub fn written(name: &str) -> Option<&'static FnItem> {
    static WRITTEN: [OnceLock<Paragraph>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    let at = NAMES.iter().position(|known| *known == name)?;
    Some(&WRITTEN[at].get_or_init(|| paragraph(&[FILE], NAMES[at])).function)
}

/// Zeros in the type and shape of a value.
pub fn zero_like(build: &mut CallBuilder, value: Value) -> Result<Value, Diagnostic> {
    let ty = build.ty(value).array.clone();
    filled(build, ty.dtype, 0, &ty.shape)
}

/// Real numbers and complex ones as planes. Numbers known at compile time, strings and the like stay as they are in the real plane, and
/// numbers are 0 in the imaginary one; lists, tuples and structs are taken apart.
pub fn planes(build: &mut CallBuilder, term: &Term) -> Result<[Term; 2], Diagnostic> {
    if let Term::Complex(planes) = term {
        return Ok((**planes).clone());
    }
    if let Term::Array(value) = term {
        let zero = zero_like(build, *value)?;
        return Ok([Term::Array(*value), Term::Array(zero)]);
    }
    if let Term::Type(ty) = term {
        let plane = Term::Type(spmdc_ir::call::term::TypeTerm { complex: false, ..ty.clone() });
        return Ok([plane.clone(), plane]);
    }
    if let Term::Bool(value) = term {
        return Ok([Term::Int(i128::from(*value)), Term::Int(0)]);
    }
    if term.static_scalar().is_some() {
        return Ok([term.clone(), Term::Int(0)]);
    }
    if let Term::Struct(fields) = term {
        let (mut re, mut im) = (Vec::new(), Vec::new());
        for (name, field) in fields {
            let [real, imaginary] = planes(build, field)?;
            re.push((name.clone(), real));
            im.push((name.clone(), imaginary));
        }
        return Ok([Term::Struct(re), Term::Struct(im)]);
    }
    let Some(parts) = term.sequence() else { return Ok([term.clone(), term.clone()]) };
    let (mut re, mut im) = (Vec::new(), Vec::new());
    for part in parts {
        let [real, imaginary] = planes(build, part)?;
        re.push(real);
        im.push(imaginary);
    }
    Ok(if let Term::List(_) = term { [Term::List(re), Term::List(im)] } else { [Term::Tuple(re), Term::Tuple(im)] })
}

/// An operand as complex numbers with planes of this type; None for the type that it has.
pub fn complex(build: &mut CallBuilder, operand: Operand<'_>, dtype: Option<DType>) -> Result<Term, Diagnostic> {
    let [re, im] = planes(build, operand.0)?;
    let dtype = match dtype {
        Some(dtype) => dtype,
        None => plane_dtype(build, &[(&re, operand.1), (&im, operand.1)])?,
    };
    let [re, im] = [re, im].map(|plane| promote::to_dtype(build, (&plane, operand.1), dtype));
    Ok(Term::complex(re?, im?))
}

/// Complex numbers of real and imaginary parts, in their common type and shape.
pub fn pair(build: &mut CallBuilder, re: Operand<'_>, im: Operand<'_>) -> Result<Term, Diagnostic> {
    let dtype = plane_dtype(build, &[re, im])?;
    let (re, im) = (promote::to_dtype(build, re, dtype)?, promote::to_dtype(build, im, dtype)?);
    let shape = shape::broadcast(&[build.ty(re).shape(), build.ty(im).shape()])
        .map_err(|mismatch| Diagnostic::error(mismatch.code, build.span(), mismatch.message))?;
    let [re, im] = [re, im].map(|plane| broadcast(build, plane, &shape));
    let (re, im) = laid_out_alike(build, re?, im?)?;
    Ok(Term::complex(re, im))
}

/// Both planes in the layout that the rule of an elementwise op gives on explicit axes.
fn laid_out_alike(build: &mut CallBuilder, re: Value, im: Value) -> Result<(Value, Value), Diagnostic> {
    if build.explicit_part(build.ty(re)) == build.explicit_part(build.ty(im)) {
        return Ok((re, im));
    }
    // The sum is not needed; it has the layout.
    let both = build.emit1(Binary(BinaryOp::Add), &[re, im]);
    let both = both.map_err(|mut diagnostic| {
        diagnostic.message = diagnostic.message.replacen("`+`", "`complex`", 1);
        diagnostic
    })?;
    Ok((build.in_layout_of(re, both)?, build.in_layout_of(im, both)?))
}

/// The type of the planes of complex numbers that all these real operands are part of.
fn plane_dtype(build: &CallBuilder, operands: &[Operand<'_>]) -> Result<DType, Diagnostic> {
    let common = promote::common_dtype(build, operands)?;
    Ok(if common == DType::F64 { DType::F64 } else { DType::F32 })
}

/// Both operands as complex numbers of one type.
pub fn promoted(build: &mut CallBuilder, operands: &[Operand<'_>]) -> Result<Vec<Term>, Diagnostic> {
    let mut real = Vec::new();
    for (term, span) in operands {
        real.push((planes(build, term)?[0].clone(), *span));
    }
    let real: Vec<Operand<'_>> = real.iter().map(|(term, span)| (term, *span)).collect();
    let dtype = plane_dtype(build, &real)?;
    operands.iter().map(|&operand| complex(build, operand, Some(dtype))).collect()
}
