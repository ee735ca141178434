//! One argument of a call, and what it is read as.

use crate::call::term::{ShardingTerm, Term, TypeTerm, whole_number};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::must_be;
use spmdc_grammar::span::Span;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::DType;

/// An argument of a call.
#[derive(Clone, Debug)]
pub struct Arg {
    /// The parameter's name if the call gives it, as in `axis=0`; None for an argument by position.
    pub name: Option<String>,
    /// The argument itself.
    pub term: Term,
    /// The source position of the argument.
    pub span: Span,
}

/// The bool of the argument of parameter `name`; E0210 for anything else.
pub fn as_bool(arg: &Arg, name: &str) -> Result<bool, Diagnostic> {
    if let Term::Bool(value) = arg.term { Ok(value) } else { Err(kind_error(name, "true or false", arg)) }
}

/// The string of the argument of parameter `name`; E0210 for anything else.
pub fn as_string(arg: &Arg, name: &str) -> Result<String, Diagnostic> {
    if let Term::Str(text) = &arg.term { Ok(text.clone()) } else { Err(kind_error(name, "a string", arg)) }
}

/// The type of the argument of parameter `name`, E0210 for anything else; for bare sizes the help shows a call of `function`.
pub fn as_type(arg: &Arg, name: &str, function: &str) -> Result<TypeTerm, Diagnostic> {
    if let Term::Type(ty) = &arg.term {
        return Ok(ty.clone());
    }
    let error = kind_error(name, "a type", arg);
    if !matches!(arg.term, Term::Int(_) | Term::Tuple(_) | Term::List(_)) {
        return Err(error);
    }
    let sizes: Vec<String> = as_ints(arg, name).unwrap_or_default().iter().map(i64::to_string).collect();
    let sizes = if sizes.is_empty() { "4, 8".to_string() } else { sizes.join(", ") };
    Err(error.help(format!("write the element type before the sizes: `{function}(f32[{sizes}])`")))
}

/// The element type of the argument of parameter `name`; E0210 for anything else, also for types with dimensions.
pub fn as_dtype(arg: &Arg, name: &str) -> Result<DType, Diagnostic> {
    if let Term::Type(ty) = &arg.term
        && ty.array.rank() == 0
    {
        return Ok(ty.array.dtype);
    }
    let message = must_be(format_args!("`{name}`"), "an element type such as f32", arg.term.describe());
    Err(Diagnostic::error(Code::E0210, arg.span, message))
}

/// The mesh axes in the argument of parameter `name`, or the single one; E0210 for anything else.
pub fn as_axes(arg: &Arg, name: &str) -> Result<Vec<u8>, Diagnostic> {
    let axis = |term: &Term| {
        if let Term::Axis(axis) = term { Ok(*axis) } else { Err(wrong_kind(name, "a mesh axis", term, arg.span)) }
    };
    arg.term.one_or_more().iter().map(axis).collect()
}

/// The sharding of the argument of parameter `name`; E0210 for anything else.
pub fn as_sharding(arg: &Arg, name: &str) -> Result<ShardingTerm, Diagnostic> {
    if let Term::Sharding(sharding) = &arg.term {
        return Ok(sharding.clone());
    }
    Err(kind_error(name, "a sharding such as P(X, _)", arg))
}

/// The integer of the argument of parameter `name`: E0208 for a fraction, E0218 beyond 64 bits, E0224 for an array, E0210 for anything
/// else.
pub fn as_int(arg: &Arg, name: &str) -> Result<i64, Diagnostic> {
    // A quotient such as `N / 2` is an integer if it is whole.
    match (whole_number(&arg.term), &arg.term) {
        (Some(value), _) => i64::try_from(value)
            .map_err(|_| Diagnostic::error(Code::E0218, arg.span, format!("`{name}` does not fit into 64 bits"))),
        (None, Term::Float(value)) => Err(crate::call::errors::not_whole(*value, arg.span)),
        (None, _) => Err(not_static(name, "an integer", &arg.term, arg.span)),
    }
}

/// An argument that is not a number known at compile time: E0224 for an array, E0210 for another kind of term.
pub fn not_static(name: &str, wanted: &str, found: &Term, span: Span) -> Diagnostic {
    let code = if let Term::Array(_) = found { Code::E0224 } else { Code::E0210 };
    let wanted = format_args!("{wanted} known at compile time");
    Diagnostic::error(code, span, must_be(format_args!("`{name}`"), wanted, found.describe()))
}

/// The integers of a tuple or list, or the single one; errors as of [`as_int`].
pub fn as_ints(arg: &Arg, name: &str) -> Result<Vec<i64>, Diagnostic> {
    let int = |term: &Term| as_int(&Arg { name: None, term: term.clone(), span: arg.span }, name);
    arg.term.one_or_more().iter().map(int).collect()
}

pub(super) fn kind_error(name: &str, wanted: &str, arg: &Arg) -> Diagnostic {
    wrong_kind(name, wanted, &arg.term, arg.span)
}

pub(super) fn wrong_kind(name: &str, wanted: &str, found: &Term, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, must_be(format_args!("`{name}`"), wanted, found.describe()))
}

/// A sharding for a value of this rank: trailing dimensions that it does not mention are not split.
pub fn complete(mut sharding: Sharding, rank: usize, span: Span) -> Result<Sharding, Diagnostic> {
    if sharding.rank() > rank {
        let message = format!("this sharding has {} dimensions, but the value has {rank}", sharding.rank());
        return Err(Diagnostic::error(Code::E0205, span, message));
    }
    sharding.dims.resize(rank, DimSharding::default());
    Ok(sharding)
}
