//! The rules of functions for complex numbers.
//!
//! A complex array is a pair of real arrays, its planes, until it reaches the IR, which has no complex element types. So every op, pass and
//! kernel handles real numbers: `docs/design/0011-complex-numbers.md` has the reasons. The table states for each function of the language
//! the treatment of complex arguments; `compiler/functions/prelude/complex.spmd` has the rules that are written in the language.

use crate::paragraph::{Paragraph, paragraph};
use ComplexRule::{Made, Own, Planes, Products, Refused, Written as InLanguage};
use spmdc_grammar::ast::{FnItem, InfixOp, PrefixOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::undefined;
use spmdc_grammar::span::Span;
use spmdc_ir::call::build::CallBuilder;
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

/// The rule of a function for complex arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ComplexRule {
    /// Its result for each plane: these parameters are taken by planes, all others are the same for both.
    Planes(&'static [&'static str]),
    /// A sum of products, linear in each of these parameters: the results for all pairs of planes are added up.
    Products(&'static [&'static str]),
    /// The function of the same name in `complex.spmd`, with the same parameters or the first ones of them.
    Written,
    /// Its own code knows complex numbers, or calls functions that do.
    Own,
    /// Real numbers of a complex type, as `eye(3, dtype=c64)` makes them; complex arguments are an error.
    Made,
    /// An error, for this reason.
    Refused(&'static str),
}

const ORDER: &str = "complex numbers have no order; compare `abs(z)`, or the planes `real(z)` and `imag(z)`";
const INTEGERS: &str = "its arguments are integers";
const REAL: &str = "its arguments are real numbers";
const INDICES: &str = "its elements are indices";
const MATRICES: &str = "factorizations of complex matrices are not supported yet";
const DRAWS: &str = "random numbers are real; only `normal` generates complex numbers";
/// Why functions with complex results have no gradient.
pub const DERIVATIVES: &str = "the function must return a real scalar, such as `real(z)` or `abs(z)`";
const STATISTICS: &str = "complex numbers are not supported here yet";

/// A row for each function of the language that programs can call.
pub const TABLE: &[(&str, ComplexRule)] = &[
    ("abs", InLanguage),
    ("acos", InLanguage),
    ("acosh", InLanguage),
    ("all", InLanguage),
    ("all_gather", Planes(&["x"])),
    ("all_to_all", Planes(&["x"])),
    ("allclose", Own),
    ("angle", InLanguage),
    ("any", InLanguage),
    ("arange", Made),
    ("argmax", Refused(ORDER)),
    ("argmin", Refused(ORDER)),
    ("argsort", Refused(ORDER)),
    ("asin", InLanguage),
    ("asinh", InLanguage),
    ("assert", Own),
    ("associative_scan", Own),
    ("atan", InLanguage),
    ("atan2", Refused(REAL)),
    ("atanh", InLanguage),
    ("attention", Refused(ORDER)),
    ("average", Own),
    ("avg_pool", Planes(&["x"])),
    ("axis_index", Refused(INDICES)),
    ("axis_size", Refused(INDICES)),
    ("bernoulli", Refused(DRAWS)),
    ("beta", Refused(DRAWS)),
    ("betainc", Refused(REAL)),
    ("bincount", Planes(&["weights"])),
    ("binomial", Refused(DRAWS)),
    ("bits", Refused(DRAWS)),
    ("broadcast_to", Planes(&["x"])),
    ("cast", Own),
    ("categorical", Refused(DRAWS)),
    ("cauchy", Refused(DRAWS)),
    ("cbrt", Refused("write `z ** (1 / 3)`, the principal root")),
    ("ceil", Refused(REAL)),
    ("checkpoint", Refused(DERIVATIVES)),
    ("chisquare", Refused(DRAWS)),
    ("choice", Planes(&["a"])),
    ("cholesky", Refused(MATRICES)),
    ("clamp", Refused(ORDER)),
    ("clip", Refused(ORDER)),
    ("clz", Refused(INTEGERS)),
    ("complex", Refused("its arguments are the real planes")),
    ("concatenate", Planes(&["arrays"])),
    ("conj", InLanguage),
    ("conv", Products(&["x", "w"])),
    ("conv_transpose", Products(&["x", "w"])),
    ("convolve", Products(&["a", "v"])),
    ("copysign", Refused(REAL)),
    ("corrcoef", Own),
    ("correlate", Own),
    ("cos", InLanguage),
    ("cosh", InLanguage),
    ("count_nonzero", Own),
    ("cov", Own),
    ("cross", Own),
    ("cummax", Refused(ORDER)),
    ("cummin", Refused(ORDER)),
    ("cumprod", InLanguage),
    ("cumsum", Planes(&["x"])),
    ("custom_vjp", Refused(DERIVATIVES)),
    ("deg2rad", Refused(REAL)),
    ("det", Refused(MATRICES)),
    ("diag", Planes(&["x"])),
    ("diagonal", Planes(&["a"])),
    ("diff", Planes(&["a", "prepend", "append"])),
    ("digamma", Refused(STATISTICS)),
    ("digitize", Refused(ORDER)),
    ("dirichlet", Refused(DRAWS)),
    ("divmod", Refused(REAL)),
    ("dot", Products(&["a", "b"])),
    ("dynamic_slice", Planes(&["operand"])),
    ("dynamic_update_slice", Planes(&["operand", "update"])),
    ("eig", Own),
    ("eigh", Refused(MATRICES)),
    ("eigvals", Own),
    ("eigvalsh", Refused(MATRICES)),
    ("einsum", Products(&["operands"])),
    ("elu", Refused(ORDER)),
    ("entr", Refused(REAL)),
    ("erf", Refused(REAL)),
    ("erf_inv", Refused(REAL)),
    ("erfc", Refused(REAL)),
    ("erfcx", Refused(REAL)),
    ("exp", InLanguage),
    ("exp2", InLanguage),
    ("expand_dims", Planes(&["x"])),
    ("expm", Refused(MATRICES)),
    ("expm1", InLanguage),
    ("exponential", Refused(DRAWS)),
    ("eye", Made),
    ("fft", Own),
    ("fft2", Own),
    ("fftfreq", Refused("frequencies are real")),
    ("fftn", Own),
    ("fftshift", Planes(&["x"])),
    ("flip", Planes(&["x"])),
    ("floor", Refused(REAL)),
    ("fma", Refused(REAL)),
    ("fold_in", Refused(DRAWS)),
    ("full", Planes(&["fill_value"])),
    ("full_like", Planes(&["x", "fill_value"])),
    ("gamma", Refused(DRAWS)),
    ("gammainc", Refused(REAL)),
    ("gammaincc", Refused(REAL)),
    ("gcd", Refused(INTEGERS)),
    ("gelu", Refused(ORDER)),
    ("grad", Refused(DERIVATIVES)),
    ("gumbel", Refused(DRAWS)),
    ("heaviside", Refused(ORDER)),
    ("hessian", Refused(DERIVATIVES)),
    ("histogram", Refused(ORDER)),
    ("hstack", Planes(&["tup"])),
    ("hypot", Refused(REAL)),
    ("i0", Refused(REAL)),
    ("i0e", Refused(REAL)),
    ("i1", Refused(REAL)),
    ("i1e", Refused(REAL)),
    ("ifft", Own),
    ("ifft2", Own),
    ("ifftn", Own),
    ("ifftshift", Planes(&["x"])),
    ("imag", InLanguage),
    ("interp", Planes(&["fp", "left", "right"])),
    ("inv", Refused(MATRICES)),
    ("iota", Made),
    ("irfft", Own),
    ("irfft2", Own),
    ("irfftn", Own),
    ("isclose", InLanguage),
    ("isfinite", InLanguage),
    ("isin", Own),
    ("isinf", InLanguage),
    ("isnan", InLanguage),
    ("jacobian", Refused(DERIVATIVES)),
    ("jvp", Own),
    ("key", Refused(DRAWS)),
    ("key_data", Refused(DRAWS)),
    ("kl_div", Refused(REAL)),
    ("kron", Products(&["a", "b"])),
    ("laplace", Refused(DRAWS)),
    ("layer_norm", Refused(STATISTICS)),
    ("lcm", Refused(INTEGERS)),
    ("leaky_relu", Refused(ORDER)),
    ("lexsort", Refused(ORDER)),
    ("lgamma", Refused(STATISTICS)),
    ("linspace", Made),
    ("log", InLanguage),
    ("log10", InLanguage),
    ("log1p", InLanguage),
    ("log2", InLanguage),
    ("log_softmax", Refused(ORDER)),
    ("logaddexp", Refused(ORDER)),
    ("logcumsumexp", Refused(ORDER)),
    ("loggamma", Refused(DRAWS)),
    ("logistic", Refused(DRAWS)),
    ("logit", Refused(REAL)),
    ("logspace", Made),
    ("logsumexp", Refused(ORDER)),
    ("lstsq", Refused(MATRICES)),
    ("lu", Refused(MATRICES)),
    ("map_coordinates", Refused(REAL)),
    ("matmul", Products(&["a", "b"])),
    ("matrix_power", Refused(MATRICES)),
    ("max", Refused(ORDER)),
    ("max_pool", Refused(ORDER)),
    ("maximum", Refused(ORDER)),
    ("mean", Own),
    ("median", Refused(ORDER)),
    ("meshgrid", Planes(&["xi"])),
    ("min", Refused(ORDER)),
    ("minimum", Refused(ORDER)),
    ("moveaxis", Planes(&["x"])),
    ("multivariate_normal", Refused(DRAWS)),
    ("nan_to_num", Planes(&["x"])),
    ("nanmax", Refused(ORDER)),
    ("nanmean", Refused(STATISTICS)),
    ("nanmedian", Refused(ORDER)),
    ("nanmin", Refused(ORDER)),
    ("nanstd", Refused(STATISTICS)),
    ("nansum", Refused(STATISTICS)),
    ("nanvar", Refused(STATISTICS)),
    ("nextafter", Refused(REAL)),
    ("nonzero", Refused("`nonzero(z != 0, size=N)` gives the indices")),
    ("norm", InLanguage),
    ("normal", Own),
    ("one_hot", Made),
    ("ones", Made),
    ("ones_like", InLanguage),
    ("outer", Products(&["a", "b"])),
    ("pad", Planes(&["x", "constant_values"])),
    ("pcast", Planes(&["x"])),
    ("percentile", Refused(ORDER)),
    ("permutation", Planes(&["x"])),
    ("pinv", Refused(MATRICES)),
    ("pmax", Refused(ORDER)),
    ("pmean", Planes(&["x"])),
    ("pmin", Refused(ORDER)),
    ("poisson", Refused(DRAWS)),
    ("polygamma", Refused(REAL)),
    ("popcount", Refused(INTEGERS)),
    ("pow", InLanguage),
    ("ppermute", Planes(&["x"])),
    ("print", Own),
    ("prod", InLanguage),
    ("pshift", Planes(&["x"])),
    ("psum", Planes(&["x"])),
    ("psum_scatter", Planes(&["x"])),
    ("ptp", Refused(ORDER)),
    ("pvary", Planes(&["x"])),
    ("qr", Refused(MATRICES)),
    ("quantile", Refused(ORDER)),
    ("rad2deg", Refused(REAL)),
    ("randint", Refused(DRAWS)),
    ("ravel", Planes(&["x"])),
    ("real", InLanguage),
    ("reciprocal", InLanguage),
    ("reduce_window", Refused("reduce the planes `real(z)` and `imag(z)`")),
    ("rel_entr", Refused(REAL)),
    ("relu", Refused(ORDER)),
    ("repeat", Planes(&["x"])),
    ("reshape", Planes(&["x"])),
    ("reshard", Planes(&["x"])),
    ("rfft", Refused("`rfft` transforms real numbers; write `fft`")),
    ("rfft2", Refused("`rfft2` transforms real numbers; write `fft2`")),
    ("rfftfreq", Refused("frequencies are real")),
    ("rfftn", Refused("`rfftn` transforms real numbers; write `fftn`")),
    ("rms_norm", Refused(STATISTICS)),
    ("roll", Planes(&["x"])),
    ("rot90", Planes(&["m"])),
    ("round", Planes(&["x"])),
    ("rsqrt", InLanguage),
    ("save", Own),
    ("searchsorted", Refused(ORDER)),
    ("segment_max", Refused(ORDER)),
    ("segment_min", Refused(ORDER)),
    ("segment_sum", Planes(&["data"])),
    ("select", Planes(&["choicelist", "default"])),
    ("select_n", Planes(&["cases"])),
    ("show_sharding", Own),
    ("sigmoid", Refused(STATISTICS)),
    ("sign", InLanguage),
    ("signbit", Refused(REAL)),
    ("silu", Refused(STATISTICS)),
    ("sin", InLanguage),
    ("sinc", Own),
    ("sinh", InLanguage),
    ("slogdet", Refused(MATRICES)),
    ("softmax", Refused(ORDER)),
    ("softplus", Refused(ORDER)),
    ("solve", Refused(MATRICES)),
    ("sort", Refused(ORDER)),
    ("split", Planes(&["x"])),
    ("sqrt", InLanguage),
    ("square", InLanguage),
    ("squeeze", Planes(&["x"])),
    ("stack", Planes(&["arrays"])),
    ("std", InLanguage),
    ("stop_gradient", Own),
    ("student_t", Refused(DRAWS)),
    ("sum", Planes(&["x", "initial"])),
    ("svd", Refused(MATRICES)),
    ("swapaxes", Planes(&["x"])),
    ("take", Planes(&["x", "fill_value"])),
    ("take_along_axis", Planes(&["x", "fill_value"])),
    ("tan", InLanguage),
    ("tanh", InLanguage),
    ("tensordot", Products(&["a", "b"])),
    ("tile", Planes(&["x"])),
    ("top_k", Refused(ORDER)),
    ("trace", Planes(&["x"])),
    ("transfer", Planes(&["x"])),
    ("transpose", Planes(&["x"])),
    ("trapezoid", Planes(&["y"])),
    ("tree_map", Own),
    ("tree_reduce", Own),
    ("triangular_solve", Refused(MATRICES)),
    ("tridiagonal_solve", Refused(MATRICES)),
    ("tril", Planes(&["x"])),
    ("triu", Planes(&["x"])),
    ("trunc", Refused(REAL)),
    ("truncated_normal", Refused(DRAWS)),
    ("uniform", Refused(DRAWS)),
    ("unique", Refused(ORDER)),
    ("unwrap", Refused(ORDER)),
    ("value_and_grad", Refused(DERIVATIVES)),
    ("var", InLanguage),
    ("vdot", InLanguage),
    ("vjp", Own),
    ("vmap", Own),
    ("vstack", Planes(&["tup"])),
    ("where", Planes(&["x", "y"])),
    ("wrap_key_data", Refused(DRAWS)),
    ("xlog1py", Refused(REAL)),
    ("xlogy", Refused(REAL)),
    ("zeros", Made),
    ("zeros_like", Planes(&["x"])),
    ("zeta", Refused(REAL)),
];

/// The row of a function; None for one that programs cannot call.
pub fn rule(function: &str) -> Option<ComplexRule> {
    TABLE.binary_search_by_key(&function, |(name, _)| name).ok().map(|at| TABLE[at].1)
}

/// The rule of an operator for complex operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorRule {
    /// This function of `complex.spmd`.
    Written(&'static str),
    /// This function of the language.
    Function(&'static str),
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
        InfixOp::Pow => OperatorRule::Function("pow"),
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

/// The complex numbers of two terms of equal form, such as the results of a function for both planes.
pub fn joined(re: Term, im: Term) -> Term {
    let join = |re: Vec<Term>, im: Vec<Term>| re.into_iter().zip(im).map(|(re, im)| joined(re, im)).collect();
    match (re, im) {
        (Term::Array(re), Term::Array(im)) => Term::complex(re, im),
        (Term::Tuple(re), Term::Tuple(im)) => Term::Tuple(join(re, im)),
        (Term::List(re), Term::List(im)) => Term::List(join(re, im)),
        (Term::Poison, _) | (_, Term::Poison) => Term::Poison,
        (re, _) => re,
    }
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
