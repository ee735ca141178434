//! The arguments of a call of a shipped function, bound to the parameters of its signature.
//!
//! The binder has checked that all arguments are present, and of the kinds in the signature. An op takes them by name, as
//! `args.array(build, "x")?` or `args.optional_int("k")?`; asking for a parameter that the signature does not have is a defect of
//! the op.

use crate::call::arg::{Arg, as_axes, as_bool, as_dtype, as_int, as_ints, as_sharding, as_string, as_type};
use crate::call::build::CallBuilder;
use crate::call::signature::Signature;
use crate::call::term::{ShardingTerm, Term, TypeTerm};
use crate::program::Value;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_layout::types::DType;

/// The arguments of one call; an op takes each of them out by the name of its parameter.
pub struct Args<'a> {
    /// The function's name as called.
    pub function: &'a str,
    /// The source position of the whole call.
    pub span: Span,
    signature: &'static Signature,
    /// The arguments of each parameter that are not taken yet.
    bound: Vec<Vec<Arg>>,
}

impl<'a> Args<'a> {
    /// Binds the arguments, which are `given` in the order of the source; `exact` if a dump is being read.
    pub fn bind(
        function: &'a str,
        signature: &'static Signature,
        given: Vec<Arg>,
        span: Span,
        exact: bool,
    ) -> Result<Args<'a>, Diagnostic> {
        let bound = signature.bind(function, given, span, exact)?;
        Ok(Args { function, span, signature, bound })
    }

    /// No arguments, for a function that is not called by name.
    pub fn none(function: &'a str, signature: &'static Signature, span: Span) -> Args<'a> {
        Args { function, span, signature, bound: vec![Vec::new(); signature.params.len()] }
    }

    /// The form of the call, with its parameters.
    pub fn signature(&self) -> &'static Signature {
        self.signature
    }

    /// The argument of this parameter, if it is given.
    pub fn take(&mut self, name: &str) -> Option<Arg> {
        self.bound[self.signature.position(name)].pop()
    }

    /// The argument that [`Args::take`] would take.
    pub fn peek(&self, name: &str) -> Option<&Arg> {
        self.bound[self.signature.position(name)].last()
    }

    /// All arguments of a parameter that takes several.
    pub fn rest(&mut self, name: &str) -> Vec<Arg> {
        std::mem::take(&mut self.bound[self.signature.position(name)])
    }

    /// An argument whose default is not of its kind, so that another argument may make it required.
    pub fn required(&mut self, name: &str) -> Result<Arg, Diagnostic> {
        self.take(name).ok_or_else(|| crate::call::errors::missing(self.function, name, self.span))
    }

    /// An array; numbers and lists become constants of their default types.
    pub fn array(&mut self, build: &mut CallBuilder, name: &str) -> Result<Value, Diagnostic> {
        let arg = self.required(name)?;
        build.materialize(&arg.term, None, arg.span)
    }

    /// All arrays of a parameter that takes several.
    pub fn arrays(&mut self, build: &mut CallBuilder, name: &str) -> Result<Vec<Value>, Diagnostic> {
        self.rest(name).iter().map(|arg| build.materialize(&arg.term, None, arg.span)).collect()
    }

    /// As [`Args::array`], except that a number takes the type of the other operands.
    pub fn array_like(&mut self, build: &mut CallBuilder, name: &str, dtype: DType) -> Result<Value, Diagnostic> {
        let arg = self.required(name)?;
        build.materialize(&arg.term, Some(dtype), arg.span)
    }

    /// An integer known at compile time; errors as of [`as_int`].
    pub fn int(&mut self, name: &str) -> Result<i64, Diagnostic> {
        as_int(&self.required(name)?, name)
    }

    /// As [`Args::int`]; None if the argument is not given.
    pub fn optional_int(&mut self, name: &str) -> Result<Option<i64>, Diagnostic> {
        self.take(name).map(|arg| as_int(&arg, name)).transpose()
    }

    /// A bool known at compile time; None if the argument is not given.
    pub fn optional_bool(&mut self, name: &str) -> Result<Option<bool>, Diagnostic> {
        self.take(name).map(|arg| as_bool(&arg, name)).transpose()
    }

    /// An integer, or a tuple or list of them.
    pub fn ints(&mut self, name: &str) -> Result<Vec<i64>, Diagnostic> {
        as_ints(&self.required(name)?, name)
    }

    /// As [`Args::ints`]; None if the argument is not given.
    pub fn optional_ints(&mut self, name: &str) -> Result<Option<Vec<i64>>, Diagnostic> {
        self.take(name).map(|arg| as_ints(&arg, name)).transpose()
    }

    /// A string; E0210 for anything else.
    pub fn string(&mut self, name: &str) -> Result<String, Diagnostic> {
        as_string(&self.required(name)?, name)
    }

    /// As [`Args::string`]; None if the argument is not given, or None.
    pub fn optional_string(&mut self, name: &str) -> Result<Option<String>, Diagnostic> {
        let given = self.take(name).filter(|arg| !matches!(arg.term, Term::Nothing));
        given.map(|arg| as_string(&arg, name)).transpose()
    }

    /// A type such as `f32[4, 8]`; E0210 for anything else.
    pub fn ty(&mut self, name: &str) -> Result<TypeTerm, Diagnostic> {
        as_type(&self.required(name)?, name, self.function)
    }

    /// An element type such as `f32`; E0210 for anything else.
    pub fn dtype(&mut self, name: &str) -> Result<DType, Diagnostic> {
        as_dtype(&self.required(name)?, name)
    }

    /// `dtype=f32`
    pub fn optional_dtype(&mut self, name: &str) -> Result<Option<DType>, Diagnostic> {
        self.take(name).map(|arg| as_dtype(&arg, name)).transpose()
    }

    /// One mesh axis, or a tuple of them, major to minor.
    pub fn axes(&mut self, name: &str) -> Result<Vec<u8>, Diagnostic> {
        as_axes(&self.required(name)?, name)
    }

    /// `out=P(...)`
    pub fn optional_sharding(&mut self, name: &str) -> Result<Option<(ShardingTerm, Span)>, Diagnostic> {
        self.take(name).map(|arg| Ok((as_sharding(&arg, name)?, arg.span))).transpose()
    }
}
