//! The arguments of a call of a shipped function, taken one by one.
//!
//! An op asks for what it needs by position and name, as `args.array(build, "x")?` or `args.optional_int("k")?`; whatever is left
//! when it returns is reported by the caller.

use super::term::{ShardingTerm, Term, TypeTerm};
use crate::layout::types::DType;
use crate::ops::call::build::Builder;
use crate::ops::call::term::whole_number;
use crate::program::Value;
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;

#[derive(Clone, Debug)]
pub struct Arg {
    pub name: Option<String>,
    pub term: Term,
    pub span: Span,
}

pub struct Args<'a> {
    /// The function's name as called.
    pub function: &'a str,
    pub span: Span,
    /// What has not been taken yet, in source order.
    pub rest: Vec<Arg>,
    /// The parameters that have been asked for.
    pub known: Vec<String>,
}

impl<'a> Args<'a> {
    pub fn new(function: &'a str, span: Span, rest: Vec<Arg>) -> Args<'a> {
        Args { function, span, rest, known: Vec::new() }
    }

    fn asked(&mut self, name: &str) {
        if !self.known.iter().any(|known| known == name) {
            self.known.push(name.to_string());
        }
    }

    /// The next positional argument, or the one of this name.
    pub fn take(&mut self, name: &str) -> Option<Arg> {
        self.asked(name);
        let at = self.rest.iter().position(|arg| match &arg.name {
            Some(given) => given == name,
            None => true,
        })?;
        // A keyword beats a positional that another parameter may still claim.
        let named = self.rest.iter().position(|arg| arg.name.as_deref() == Some(name));
        Some(self.rest.remove(named.unwrap_or(at)))
    }

    /// Only by keyword.
    pub fn take_named(&mut self, name: &str) -> Option<Arg> {
        self.asked(name);
        let at = self.rest.iter().position(|arg| arg.name.as_deref() == Some(name))?;
        Some(self.rest.remove(at))
    }

    /// Only by keyword, and only in dumps; `instead` says what programs write.
    pub fn take_in_dumps(&mut self, name: &str, instead: &str, build: &Builder) -> Result<Option<Arg>, Diagnostic> {
        if build.exact {
            return Ok(self.take_named(name));
        }
        match self.rest.iter().find(|arg| arg.name.as_deref() == Some(name)) {
            Some(arg) => Err(crate::ops::call::errors::only_in_dumps(
                &format!("`{}` with `{name}=`", self.function),
                instead,
                arg.span,
            )),
            None => Ok(None),
        }
    }

    pub fn required(&mut self, name: &str) -> Result<Arg, Diagnostic> {
        self.take(name).ok_or_else(|| {
            let error = crate::ops::call::errors::missing(self.function, name, self.span);
            let keywords = self.rest.iter().filter_map(|arg| arg.name.as_deref());
            match super::errors::nearest(name, keywords) {
                Some(near) => error.help(format!("did you mean `{name}` by `{near}`?")),
                None => error,
            }
        })
    }

    /// All positional arguments that are left.
    pub fn positional(&mut self) -> Vec<Arg> {
        let (positional, named) = std::mem::take(&mut self.rest).into_iter().partition(|arg| arg.name.is_none());
        self.rest = named;
        positional
    }

    /// An array; numbers and lists become constants of their default types.
    pub fn array(&mut self, build: &mut Builder, name: &str) -> Result<Value, Diagnostic> {
        let arg = self.required(name)?;
        build.materialize(&arg.term, None, arg.span)
    }

    /// As [`Args::array`], where a number takes the type of the other operands.
    pub fn array_like(&mut self, build: &mut Builder, name: &str, dtype: DType) -> Result<Value, Diagnostic> {
        let arg = self.required(name)?;
        build.materialize(&arg.term, Some(dtype), arg.span)
    }

    pub fn int(&mut self, name: &str) -> Result<i64, Diagnostic> {
        let arg = self.required(name)?;
        as_int(&arg, name)
    }

    pub fn optional_int(&mut self, name: &str) -> Result<Option<i64>, Diagnostic> {
        self.take(name).map(|arg| as_int(&arg, name)).transpose()
    }

    pub fn optional_bool(&mut self, name: &str) -> Result<Option<bool>, Diagnostic> {
        self.take(name).map_or(Ok(None), |arg| match arg.term {
            Term::Bool(value) => Ok(Some(value)),
            other => Err(kind_error(name, "true or false", &other, arg.span)),
        })
    }

    /// An integer, or a tuple or list of them.
    pub fn ints(&mut self, name: &str) -> Result<Vec<i64>, Diagnostic> {
        let arg = self.required(name)?;
        as_ints(&arg, name)
    }

    pub fn optional_ints(&mut self, name: &str) -> Result<Option<Vec<i64>>, Diagnostic> {
        match self.take(name) {
            None => Ok(None),
            Some(arg) if matches!(arg.term, Term::Nothing) => Ok(None),
            Some(arg) => as_ints(&arg, name).map(Some),
        }
    }

    pub fn string(&mut self, name: &str) -> Result<String, Diagnostic> {
        let arg = self.required(name)?;
        match arg.term {
            Term::Str(text) => Ok(text),
            other => Err(kind_error(name, "a string", &other, arg.span)),
        }
    }

    pub fn ty(&mut self, name: &str) -> Result<TypeTerm, Diagnostic> {
        let arg = self.required(name)?;
        match arg.term {
            Term::Type(ty) => Ok(ty),
            sizes @ (Term::Int(_) | Term::Tuple(_) | Term::List(_)) => {
                let error = kind_error(name, "a type", &sizes, arg.span);
                let sizes = as_ints(&Arg { name: None, term: sizes, span: arg.span }, name).unwrap_or_default();
                let sizes: Vec<String> = sizes.iter().map(i64::to_string).collect();
                let sizes = if sizes.is_empty() { "4, 8".to_string() } else { sizes.join(", ") };
                Err(error.help(format!("the element type stands before the sizes: `{}(f32[{sizes}])`", self.function)))
            }
            other => Err(kind_error(name, "a type", &other, arg.span)),
        }
    }

    /// One mesh axis, or a tuple of them, major to minor.
    pub fn axes(&mut self, name: &str) -> Result<Vec<u8>, Diagnostic> {
        let arg = self.required(name)?;
        let terms = match &arg.term {
            Term::Tuple(terms) | Term::List(terms) => terms.clone(),
            one => vec![one.clone()],
        };
        let axis = |term: &Term| match term {
            Term::Axis(axis) => Ok(*axis),
            other => Err(kind_error(name, "a mesh axis", other, arg.span)),
        };
        terms.iter().map(axis).collect()
    }

    /// `out=P(...)`
    pub fn optional_sharding(&mut self, name: &str) -> Result<Option<(ShardingTerm, Span)>, Diagnostic> {
        self.take_named(name).map_or(Ok(None), |arg| match arg.term {
            Term::Sharding(sharding) => Ok(Some((sharding, arg.span))),
            other => Err(kind_error(name, "a sharding such as P(X, _)", &other, arg.span)),
        })
    }
}

fn as_int(arg: &Arg, name: &str) -> Result<i64, Diagnostic> {
    // A quotient such as `N / 2` counts if it is whole.
    match (whole_number(&arg.term), &arg.term) {
        (Some(value), _) => i64::try_from(value)
            .map_err(|_| Diagnostic::error(Code::E0218, arg.span, format!("`{name}` does not fit into 64 bits"))),
        (None, Term::Float(value)) => Err(crate::ops::call::errors::not_whole(*value, arg.span)),
        (None, other) => Err(kind_error(name, "an integer known at compile time", other, arg.span)),
    }
}

fn as_ints(arg: &Arg, name: &str) -> Result<Vec<i64>, Diagnostic> {
    match &arg.term {
        Term::Tuple(terms) | Term::List(terms) => {
            terms.iter().map(|term| as_int(&Arg { name: None, term: term.clone(), span: arg.span }, name)).collect()
        }
        _ => Ok(vec![as_int(arg, name)?]),
    }
}

fn kind_error(name: &str, wanted: &str, found: &Term, span: Span) -> Diagnostic {
    Diagnostic::error(Code::E0210, span, format!("`{name}` must be {wanted}, not {}", found.describe()))
}
