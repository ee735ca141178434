//! The common part of `if` and loops: the variables that their blocks assign to become carried values and results.

use crate::Checker;
use crate::control::assigned::Assigned;
use crate::errors::control as errors;
use crate::expand::scopes::NamedTerm;
use spmdc_grammar::ast::{BlockNode, Expr};
use spmdc_grammar::span::Span;
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees;
use spmdc_ir::program::Value;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};

/// A variable that a block assigns to.
pub(crate) struct Carried {
    pub name: String,
    /// Its term before the block.
    pub term: Term,
    /// In a dump: the declared type of the carried value, and the axes that the function around turns.
    pub declared: Option<(Type, AxisSet)>,
}

impl Checker<'_> {
    /// The mutable outer variables that these blocks and expressions assign to.
    pub(crate) fn carried_variables(&self, blocks: &[&BlockNode], exprs: &[&Expr]) -> Vec<Carried> {
        let mut assigned = Assigned { scopes: Vec::new(), names: Vec::new() };
        blocks.iter().for_each(|block| assigned.block(block));
        exprs.iter().for_each(|expr| assigned.expr(expr));
        let mutable = |name: &String| {
            let NamedTerm { term, mutable, declared, .. } = self.local(name)?;
            mutable.then(|| Carried { name: name.clone(), term: term.clone(), declared: declared.clone() })
        };
        assigned.names.iter().filter_map(mutable).collect()
    }

    pub(crate) fn set_variable(&mut self, name: &str, term: Term) {
        if let Some(binding) = self.local_mut(name) {
            binding.term = term;
        }
    }

    /// After an error: the terms of the variables are unknown.
    pub(crate) fn poison(&mut self, carried: &[Carried]) {
        carried.iter().for_each(|variable| self.set_variable(&variable.name, Term::Poison));
    }

    /// A condition: one bool.
    pub(crate) fn condition(&mut self, term: &Term, span: Span) -> Option<Value> {
        if matches!(term, Term::Poison) {
            return None;
        }
        let found = self.display_term(term);
        if !trees::is_number(term) {
            self.report(errors::condition(term.describe(), false, span));
            return None;
        }
        let value = self.value(term, span)?;
        let ty = self.build.ty(value);
        if ty.array != ArrayType::scalar(DType::Bool) {
            let is_array = ty.rank() > 0;
            self.report(errors::condition(&found, is_array, span));
            return None;
        }
        Some(value)
    }
}

/// Whether two leaves are equal without any computation.
pub(crate) fn same_static(left: &Term, right: &Term) -> bool {
    match (left, right) {
        (Term::Array(left), Term::Array(right)) => left == right,
        (Term::Int(left), Term::Int(right)) => left == right,
        (Term::Float(left), Term::Float(right)) => left.to_bits() == right.to_bits(),
        (Term::Bool(left), Term::Bool(right)) => left == right,
        (Term::Str(left), Term::Str(right)) => left == right,
        (Term::Axis(left), Term::Axis(right)) => left == right,
        (Term::Mesh(left), Term::Mesh(right)) => left == right,
        (Term::Module(left), Term::Module(right)) => left == right,
        (Term::Nothing, Term::Nothing) => true,
        (Term::Function(left), Term::Function(right)) => std::rc::Rc::ptr_eq(left, right),
        _ => false,
    }
}
