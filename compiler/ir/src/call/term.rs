//! Arithmetic: the meaning of an expression during checking, an array of the program or an object that exists at compile time only.

use crate::call::fields::FieldName;
use crate::program::value::Value;
use spmdc_grammar::span::Span;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{ArrayType, AxisSet, DType};
use std::rc::Rc;

/// A term knows its leaves: structs and tuples never reach the IR.
#[derive(Clone, Debug)]
pub enum Term {
    /// A value of the IR.
    Array(Value),
    /// An integer literal or constant without a type yet.
    Int(i128),
    /// A float literal or constant without a type yet.
    Float(f64),
    /// A bool known at compile time.
    Bool(bool),
    /// A string; it never reaches the IR as a value.
    Str(String),
    /// Complex numbers: the arrays of their real and imaginary parts, of one float type and shape.
    Complex(Box<[Term; 2]>),
    /// `(a, b)`: terms of any kinds.
    Tuple(Vec<Term>),
    /// `[a, b]`: several operands, or an array literal.
    List(Vec<Term>),
    /// The fields in the order of their declaration.
    Struct(Vec<(FieldName, Term)>),
    /// `f32[3, 4@X]` as an argument.
    Type(TypeTerm),
    /// `P(X, _)` as an argument.
    Sharding(ShardingTerm),
    /// The name of a mesh axis.
    Axis(u8),
    /// The name of a mesh, by its position in [`Mesh::named`](spmdc_layout::mesh::Mesh::named).
    Mesh(u8),
    /// `_` or `None`.
    Nothing,
    /// A function of the program, a lambda, or the transformation of one.
    Function(Rc<dyn FunctionTerm>),
    /// An imported module.
    Module(usize),
    /// A term whose error has been reported, so that it is reported once.
    Poison,
}

/// A number or bool without a type yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StaticScalar {
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
}

/// A callable term; the checker implements it.
pub trait FunctionTerm: std::fmt::Debug {
    /// Its name for messages.
    fn name(&self) -> String;
    /// For the checker, which downcasts to its own functions.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A type given as an argument; `sharding` has an entry for each dimension.
#[derive(Clone, Debug)]
pub struct TypeTerm {
    /// The element type and shape; for complex numbers, of their planes.
    pub array: ArrayType,
    /// Whether the elements are complex.
    pub complex: bool,
    /// None if the type has no layout.
    pub sharding: Option<Sharding>,
    /// The axes along which the value varies (`{V:X}`).
    pub varying: AxisSet,
}

/// `P(...)`, before it is applied to a value: it may have fewer dimensions than the value.
#[derive(Clone, Debug)]
pub struct ShardingTerm {
    /// An entry for each written dimension, and the unreduced axes.
    pub sharding: Sharding,
}

impl TypeTerm {
    /// The type as a program writes it, without a layout: `c64[3]`.
    pub fn text(&self) -> String {
        let text = self.array.to_string();
        match self.array.dtype.complex_name() {
            Some(name) if self.complex => text.replacen(self.array.dtype.name(), name, 1),
            Some(_) | None => text,
        }
    }
}

impl Term {
    /// The term of a call whose op has these results: an array, or a tuple of them.
    pub fn of_results(values: &[Value]) -> Term {
        match values {
            [value] => Term::Array(*value),
            _ => Term::Tuple(values.iter().copied().map(Term::Array).collect()),
        }
    }

    /// Complex numbers of these planes.
    pub fn complex(re: Value, im: Value) -> Term {
        Term::Complex(Box::new([Term::Array(re), Term::Array(im)]))
    }

    /// The planes of complex numbers; None for anything else.
    pub fn planes(&self) -> Option<[Value; 2]> {
        let Term::Complex(planes) = self else { return None };
        let [Term::Array(re), Term::Array(im)] = **planes else { unreachable!("planes are arrays") };
        Some([re, im])
    }

    /// Whether it is complex numbers or their type, or contains such.
    pub fn holds_complex(&self) -> bool {
        if let Term::Type(ty) = self {
            return ty.complex;
        }
        matches!(self, Term::Complex(_)) || self.parts().into_iter().any(Term::holds_complex)
    }

    /// The kind of term for messages: "a tuple", "an array".
    pub fn describe(&self) -> &'static str {
        match self {
            Term::Array(_) => "an array",
            Term::Int(_) => "an integer",
            Term::Float(_) => "a number",
            Term::Bool(_) => "a bool",
            Term::Str(_) => "a string",
            Term::Complex(_) => "a complex array",
            Term::Tuple(_) => "a tuple",
            Term::List(_) => "a list",
            Term::Struct(_) => "a struct",
            Term::Type(_) => "a type",
            Term::Sharding(_) => "a sharding",
            Term::Axis(_) => "a mesh axis",
            Term::Mesh(_) => "a mesh",
            Term::Nothing => "nothing",
            Term::Function(_) => "a function",
            Term::Module(_) => "a module",
            Term::Poison => "an erroneous value",
        }
    }

    /// Whether it is an array, or a list that contains one.
    pub fn holds_array(&self) -> bool {
        if let Term::List(items) = self { items.iter().any(Term::holds_array) } else { matches!(self, Term::Array(_)) }
    }

    /// Whether the error of a part of it has been reported.
    pub fn is_poisoned(&self) -> bool {
        matches!(self, Term::Poison) || self.parts().into_iter().any(Term::is_poisoned)
    }

    /// The terms directly inside a tuple, list or struct; empty for other terms.
    pub fn parts(&self) -> Vec<&Term> {
        if let Term::Struct(fields) = self {
            return fields.iter().map(|(_, field)| field).collect();
        }
        self.sequence().unwrap_or_default().iter().collect()
    }

    /// The terms of a tuple or list; None for anything else.
    pub fn sequence(&self) -> Option<&[Term]> {
        if let Term::Tuple(terms) | Term::List(terms) = self { Some(terms) } else { None }
    }

    /// The terms of a tuple or list; for anything else the term itself.
    pub fn one_or_more(&self) -> &[Term] {
        self.sequence().unwrap_or(std::slice::from_ref(self))
    }

    /// The number or bool that it is; None for anything else, lists of numbers included.
    pub fn static_scalar(&self) -> Option<StaticScalar> {
        if let Term::Int(value) = self {
            return Some(StaticScalar::Int(*value));
        }
        if let Term::Float(value) = self {
            return Some(StaticScalar::Float(*value));
        }
        if let Term::Bool(value) = self { Some(StaticScalar::Bool(*value)) } else { None }
    }

    /// The integer or float that it is; None for anything else, bools included.
    pub fn number(&self) -> Option<f64> {
        match self.static_scalar()? {
            StaticScalar::Int(value) => Some(value as f64),
            StaticScalar::Float(value) => Some(value),
            StaticScalar::Bool(_) => None,
        }
    }

    /// Whether it can be used as an array: an array, a number, a bool or a list, whatever the items of the list are.
    pub fn is_operand(&self) -> bool {
        matches!(self, Term::Array(_) | Term::List(_)) || self.static_scalar().is_some()
    }

    /// The element type of a number that has no other type.
    pub fn default_dtype(&self) -> Option<DType> {
        self.static_scalar().map(|scalar| match scalar {
            StaticScalar::Int(_) => DType::I32,
            StaticScalar::Float(_) => DType::F32,
            StaticScalar::Bool(_) => DType::Bool,
        })
    }
}

/// A compile-time number used as a size or index: an integer, or a quotient such as `N / 2` if it is whole.
pub fn whole_number(term: &Term) -> Option<i128> {
    match term.static_scalar()? {
        StaticScalar::Int(number) => Some(number),
        StaticScalar::Float(number) => (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i128),
        StaticScalar::Bool(_) => None,
    }
}

/// An operand and its source position.
pub type Operand<'a> = (&'a Term, Span);
