//! Signatures: the parameters of each shipped function, in order, with its documentation.
//!
//! They are defined beside the [`Call`](crate::call::Call) of the op that implements the functions. The binder, the messages,
//! `spmdc explain` and `docs/functions.md` read them.

use crate::call::arg::{self, Arg};
use crate::call::complex::ComplexRule;
use crate::call::errors;
use crate::call::term::Term;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::habits;
use spmdc_grammar::span::Span;
use spmdc_layout::types::DType;
use std::fmt;

/// One form of a call of a shipped function. A function has one form in programs; dumps may have others of the same name.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// The name that calls use.
    pub name: &'static str,
    /// The parameters, in the order of their positions.
    pub params: &'static [ParamSpec],
    /// The documentation: one sentence.
    pub doc: &'static str,
    /// The element types for which the function is defined.
    pub dtypes: Dtypes,
    /// How a call with complex numbers becomes calls with real ones.
    pub complex: ComplexRule,
    /// The parameters and the body of a `main` that calls the function, or a whole `manual` one.
    pub example: &'static str,
    /// The programs or dumps that may call the function in this form.
    pub status: Status,
}

/// The programs or dumps that may call a function in this form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Programs and dumps.
    Shipped,
    /// Dumps only. `with` distinguishes the form from the form in programs, such as "with `dims=`"; `instead` is the form in programs.
    InDumps {
        /// The completion of "`name` ..." in the message to a program; empty if the name has no form for programs.
        with: &'static str,
        /// The help of that message, such as "write `x[i]`".
        instead: &'static str,
    },
}

/// A parameter of a shipped function.
#[derive(Clone, Copy, Debug)]
pub struct ParamSpec {
    /// The name by which calls can give it.
    pub name: &'static str,
    /// The kind of argument that it takes.
    pub kind: ParamKind,
    /// How calls can give the argument.
    pub given: Given,
    /// The value if no argument is given, as a program writes it; None if an argument is required.
    pub default: Option<&'static str>,
}

/// How calls can give an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// By position or by name.
    Either,
    /// By name only.
    Named,
    /// All remaining positions.
    Rest,
    /// By name, and only in dumps; the text is the form in programs.
    InDumps(&'static str),
}

/// The kind of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// An array, or a number or list of numbers that becomes one.
    Array,
    /// An integer known at compile time, of 64 bits.
    Int,
    /// A number known at compile time. A quotient of integers is an integer, as it is as a size.
    Count,
    /// An integer, or a tuple or list of integers.
    Ints,
    /// `true` or `false`, known at compile time.
    Bool,
    /// A string; it exists at compile time only.
    String,
    /// A type, such as `f32[4, 8]`.
    Type,
    /// An element type, such as `f32`.
    ElementType,
    /// A sharding, such as `P(X, _)`.
    Sharding,
    /// The name of a mesh axis, or a tuple of names.
    Axes,
    /// A kind described by this text, which the function itself checks.
    Of(&'static str),
}

/// The element types for which a function is defined: the types that can replace the first one in its example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dtypes {
    /// All, keys included.
    Any,
    /// All but keys.
    NumbersAndBools,
    /// All but keys, and floats below 32 bits.
    Wide,
    /// Integers and floats.
    Numbers,
    /// Signed and unsigned integers.
    Integers,
    /// Floats of any width.
    Floats,
    /// Bools only.
    Bools,
    /// It takes no array.
    Nothing,
}

impl Dtypes {
    /// Whether the function is defined for this element type.
    pub fn contains(self, dtype: DType) -> bool {
        match self {
            Dtypes::Any => true,
            Dtypes::NumbersAndBools => dtype != DType::Key,
            Dtypes::Wide => dtype != DType::Key && !dtype.is_narrow(),
            Dtypes::Numbers => dtype.is_integer() || dtype.is_float(),
            Dtypes::Integers => dtype.is_integer(),
            Dtypes::Floats => dtype.is_float(),
            Dtypes::Bools => dtype == DType::Bool,
            Dtypes::Nothing => false,
        }
    }

    /// The types in words; None if there is nothing to say.
    pub fn describe(self) -> Option<&'static str> {
        match self {
            Dtypes::Any => Some("all"),
            Dtypes::NumbersAndBools => Some("numbers and bools"),
            Dtypes::Wide => Some("numbers and bools, except floats below 32 bits"),
            Dtypes::Numbers => Some("numbers"),
            Dtypes::Integers => Some("integers"),
            Dtypes::Floats => Some("floats"),
            Dtypes::Bools => Some("bools"),
            Dtypes::Nothing => None,
        }
    }
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ParamKind::Array => "array",
            ParamKind::Int => "int",
            ParamKind::Count => "number",
            ParamKind::Ints => "ints",
            ParamKind::Bool => "bool",
            ParamKind::String => "string",
            ParamKind::Type => "type",
            ParamKind::ElementType => "element type",
            ParamKind::Sharding => "sharding",
            ParamKind::Axes => "mesh axes",
            ParamKind::Of(words) => words,
        })
    }
}

impl ParamKind {
    /// Checks that an argument is of this kind.
    fn check(self, function: &str, param: &str, arg: &Arg) -> Result<(), Diagnostic> {
        match self {
            ParamKind::Array if arg.term.is_operand() || matches!(arg.term, Term::Complex(_)) => Ok(()),
            ParamKind::Array => Err(errors::no_array(&arg.term, arg.span)),
            ParamKind::Int => arg::as_int(arg, param).map(drop),
            ParamKind::Ints => arg::as_ints(arg, param).map(drop),
            ParamKind::Bool => arg::as_bool(arg, param).map(drop),
            ParamKind::String => arg::as_string(arg, param).map(drop),
            ParamKind::Type => arg::as_type(arg, param, function).map(drop),
            ParamKind::ElementType => arg::as_dtype(arg, param).map(drop),
            ParamKind::Sharding => arg::as_sharding(arg, param).map(drop),
            ParamKind::Axes => arg::as_axes(arg, param).map(drop),
            ParamKind::Count | ParamKind::Of(_) => Ok(()),
        }
    }
}

impl ParamSpec {
    /// Whether programs can give it by name.
    fn is_known(&self) -> bool {
        match self.given {
            Given::Either | Given::Named => true,
            Given::Rest | Given::InDumps(_) => false,
        }
    }

    fn accepts(&self, function: &str, arg: &Arg) -> Result<(), Diagnostic> {
        if self.default == Some("None") && matches!(arg.term, Term::Nothing) {
            return Ok(());
        }
        self.kind.check(function, self.name, arg)
    }
}

/// The error for sizes where a function takes a type.
fn sizes_without_type(function: &str, parameter: &str, sizes: Arg) -> Diagnostic {
    arg::as_type(&sizes, parameter, function).expect_err("a tuple of numbers is not a type")
}

impl Signature {
    /// Whether programs may name this form.
    pub fn is_for_programs(&self) -> bool {
        match self.status {
            Status::Shipped => true,
            Status::InDumps { .. } => false,
        }
    }

    /// Whether programs give the type of a new array first, as in `zeros(f32[8@X, 4])`: then the array has the layout in the type.
    pub fn is_laid_out_by_type(&self) -> bool {
        self.is_for_programs() && self.params.first().is_some_and(|param| param.kind == ParamKind::Type)
    }

    /// Whether arguments such as `N / 2` count as sizes do.
    pub fn takes_counts(&self) -> bool {
        self.params.iter().any(|param| param.kind == ParamKind::Count)
    }

    /// The position of a parameter. Asking for an unknown one is a defect of the function, not of the call.
    pub fn position(&self, name: &str) -> usize {
        let found = self.params.iter().position(|param| param.name == name);
        found.unwrap_or_else(|| panic!("`{}` reads `{name}`, which its signature does not have", self.name))
    }

    /// The argument that distinguishes this form from the form of programs.
    pub fn mark<'a>(&self, programs: &Signature, given: &'a [Arg]) -> Option<&'a Arg> {
        let named = |signature: &Signature, name: &str| signature.params.iter().find(|param| param.name == name);
        let takes_layout = |signature: &Signature| {
            signature.params.iter().any(|param| param.given == Given::Either && param.kind == ParamKind::Sharding)
        };
        given.iter().find(|arg| match &arg.name {
            // One name may stand for a string in programs, and for layouts in dumps.
            Some(name) => match (named(self, name), named(programs, name)) {
                (None, _) => false,
                (Some(_), None) => true,
                (Some(_), Some(own)) => own.kind == ParamKind::String && !matches!(arg.term, Term::Str(_)),
            },
            None => matches!(arg.term, Term::Sharding(_)) && takes_layout(self) && !takes_layout(programs),
        })
    }

    /// Binds arguments to parameters. `given` are in the order of the source; `exact` if a dump is being read.
    pub fn bind(&self, function: &str, given: Vec<Arg>, call: Span, exact: bool) -> Result<Vec<Vec<Arg>>, Diagnostic> {
        let mut bound: Vec<Vec<Arg>> = vec![Vec::new(); self.params.len()];
        let mut by_position =
            self.params.iter().enumerate().filter(|(_, param)| param.given == Given::Either).map(|(at, _)| at);
        let rest = self.params.iter().position(|param| param.given == Given::Rest);
        let mut unfit = None;
        let mut unknown = Vec::new();
        let sizes = self.sizes(&given);
        for arg in given {
            let at = match &arg.name {
                None => by_position.next().or(rest),
                Some(name) => self.params.iter().position(|param| {
                    param.name == name && (param.is_known() || matches!(param.given, Given::InDumps(_)))
                }),
            };
            let problem = match (at, &arg.name) {
                (Some(at), _) if Some(at) == rest || bound[at].is_empty() => {
                    if let (Given::InDumps(instead), false) = (self.params[at].given, exact) {
                        let what = format!("`{function}` with `{}=`", self.params[at].name);
                        return Err(errors::only_in_dumps(&what, instead, arg.span));
                    }
                    bound[at].push(arg);
                    continue;
                }
                (Some(at), _) => errors::given_twice(function, self.params[at].name, arg.span),
                (None, Some(name)) => {
                    unknown.push(name.clone());
                    errors::unknown_keyword(function, name, &self.known(), arg.span)
                }
                (None, None) => errors::unused(function, arg.span),
            };
            unfit.get_or_insert(problem);
        }
        for (param, found) in self.params.iter().zip(&bound) {
            if found.is_empty() && param.default.is_none() && param.given != Given::Rest {
                let error = errors::missing(function, param.name, call);
                let elsewhere = unknown.iter().find(|name| habits::of_keyword(name, &[param.name]).is_some());
                let near = errors::nearest(param.name, unknown.iter().map(String::as_str));
                return Err(match elsewhere.map(String::as_str).or(near) {
                    Some(near) => error.help(format!("did you mean `{}` instead of `{near}`?", param.name)),
                    None => error,
                });
            }
        }
        if let Some(problem) = unfit {
            // Sizes in place of a type, as in `zeros(4, 8)`.
            return Err(sizes.map_or(problem, |sizes| sizes_without_type(function, self.params[0].name, sizes)));
        }
        for (param, found) in self.params.iter().zip(&mut bound) {
            found.iter().try_for_each(|arg| param.accepts(function, arg))?;
            // `axis=None` is the same as no argument if that is the default.
            found.retain(|arg| param.default != Some("None") || !matches!(arg.term, Term::Nothing));
        }
        Ok(bound)
    }

    /// The numbers that begin a call, if they are several and the first parameter is a type.
    fn sizes(&self, given: &[Arg]) -> Option<Arg> {
        let takes_type = self.params.first().is_some_and(|param| param.kind == ParamKind::Type);
        let numbers: Vec<&Arg> =
            given.iter().take_while(|arg| arg.name.is_none() && matches!(arg.term, Term::Int(_))).collect();
        let first = numbers.first().filter(|_| takes_type && numbers.len() > 1)?;
        let sizes = Term::Tuple(numbers.iter().map(|arg| arg.term.clone()).collect());
        Some(Arg { name: None, term: sizes, span: first.span })
    }

    /// Whether programs can give an argument this name.
    pub fn takes(&self, name: &str) -> bool {
        self.known().contains(&name)
    }

    /// The parameter names that programs can use.
    fn known(&self) -> Vec<&'static str> {
        self.params.iter().filter(|param| param.is_known()).map(|param| param.name).collect()
    }

    /// The line of documentation.
    pub fn line(&self) -> &'static str {
        self.doc.trim()
    }

    /// Compares names at compile time, for tables of names.
    pub const fn is_called(&self, name: &str) -> bool {
        let (a, b) = (self.name.as_bytes(), name.as_bytes());
        let mut at = 0;
        while at < a.len() && at < b.len() && a[at] == b[at] {
            at += 1;
        }
        at == a.len() && at == b.len()
    }
}

impl fmt::Display for Signature {
    /// `sum(x: array, axis: ints = None, keepdims: bool = false, *, dtype: element type = None)`; as in Python, parameters after `*` are
    /// passed by name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = |given: Given| self.params.iter().filter(move |param| param.given == given);
        let text = |param: &ParamSpec| {
            let default = param.default.map_or_else(String::new, |default| format!(" = {default}"));
            format!("{}: {}{default}", param.name, param.kind)
        };
        let mut params: Vec<String> = by(Given::Either).map(text).collect();
        params.extend(by(Given::Rest).map(|param| format!("*{}", text(param))));
        if by(Given::Rest).next().is_none() && by(Given::Named).next().is_some() {
            params.push("*".to_string());
        }
        params.extend(by(Given::Named).map(text));
        write!(f, "{}({})", self.name, params.join(", "))
    }
}

/// The signatures of an op's functions:
///
/// ```text
/// signatures! {
///     /// The sum of the elements.
///     sum(x: Array, axis: Ints = None, keepdims: Bool = false, [named] dtype: ElementType = None),
///         NumbersAndBools, Planes(x), "(x: f32[4, 6]) { sum(x, axis=1) }";
///     /// A collective of dumps.
///     shard(x: Array, sharding: Sharding) in_dumps "" "write reshard(x, P(X, _))";
/// }
/// ```
///
/// The element types come after the parameters, then the rule for complex numbers: [`ComplexRule`], with the names of parameters, or a reason as
/// a constant of [`complex`](crate::call::complex) or a text.
///
/// A parameter is marked `[named]` if it has no position, `[rest]` if it takes all remaining positions, and
/// `[in_dumps "what programs write"]` if programs do not have it.
#[doc(hidden)]
#[macro_export]
macro_rules! signatures_of_functions {
    ($(
        #[doc = $doc:literal]
        $name:ident($(
            $([$($mark:tt)+])? $param:ident: $kind:ident $(($words:literal))? $(= $default:expr)?
        ),* $(,)?) $(in_dumps $with:literal $instead:literal)?
        $(, $dtypes:ident, $complex:ident $(($($of:tt)*))?, $example:literal)?;
    )*) => {
        &[$($crate::call::signature::Signature {
            name: stringify!($name),
            params: &[$($crate::call::signature::ParamSpec {
                name: stringify!($param),
                kind: $crate::call::signature::ParamKind::$kind $(($words))?,
                given: $crate::call::signature::signatures!(@given $($($mark)+)?),
                default: $crate::call::signature::signatures!(@default $($default)?),
            }),*],
            doc: $doc,
            dtypes: $crate::call::signature::signatures!(@dtypes $($dtypes)?),
            complex: $crate::call::signature::signatures!(@complex $($complex $(($($of)*))?)?),
            example: concat!($($example)?),
            status: $crate::call::signature::signatures!(@status $($with $instead)?),
        }),*]
    };
    (@given) => { $crate::call::signature::Given::Either };
    (@given named) => { $crate::call::signature::Given::Named };
    (@given rest) => { $crate::call::signature::Given::Rest };
    (@given in_dumps $instead:literal) => { $crate::call::signature::Given::InDumps($instead) };
    (@default) => { None };
    (@default $default:expr) => { Some(stringify!($default)) };
    (@dtypes) => { $crate::call::signature::Dtypes::Nothing };
    (@dtypes $dtypes:ident) => { $crate::call::signature::Dtypes::$dtypes };
    (@complex) => { $crate::call::complex::ComplexRule::Refused($crate::call::complex::IN_DUMPS) };
    (@complex Planes($($param:ident),+)) => { $crate::call::complex::ComplexRule::Planes(&[$(stringify!($param)),+]) };
    (@complex Products($($param:ident),+)) => { $crate::call::complex::ComplexRule::Products(&[$(stringify!($param)),+]) };
    (@complex Refused($why:literal)) => { $crate::call::complex::ComplexRule::Refused($why) };
    (@complex Refused($why:ident)) => { $crate::call::complex::ComplexRule::Refused($crate::call::complex::$why) };
    (@complex $rule:ident) => { $crate::call::complex::ComplexRule::$rule };
    (@status) => { $crate::call::signature::Status::Shipped };
    (@status $with:literal $instead:literal) => {
        $crate::call::signature::Status::InDumps { with: $with, instead: $instead }
    };
}
pub use signatures_of_functions as signatures;
