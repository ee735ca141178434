//! The names that are visible while a function is expanded.

use crate::Checker;
use crate::program::names::{Entity, ItemId};
use crate::transforms::derived::Derived;
use spmdc_functions::is_builtin;
use spmdc_functions::prelude::Helper;
use spmdc_grammar::ast::{Expr, ItemKind, ParamNode};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::expected;
use spmdc_grammar::span::{FileId, Span};
use spmdc_ir::call::term::{FunctionTerm, Term};
use spmdc_layout::types::{AxisSet, Type};
use std::collections::HashMap;
use std::rc::Rc;

/// A name and its term.
#[derive(Clone, Debug)]
pub struct NamedTerm {
    pub name: String,
    pub term: Term,
    pub mutable: bool,
    pub span: Span,
    /// In a dump: the declared type of the value that a loop carries in this variable, and the axes that the function around turns.
    pub declared: Option<(Type, AxisSet)>,
}

/// The function that a term denotes.
#[derive(Clone, Debug)]
pub enum Callable {
    Item(ItemId),
    Lambda(Rc<Lambda>),
    /// The name of an op, or of a function that the checker implements.
    Builtin(String),
    /// A transformation of another function.
    Derived(Rc<Derived>),
}

/// The source of a lambda.
#[derive(Debug)]
pub struct LambdaSource {
    pub file: FileId,
    pub params: Vec<ParamNode>,
    pub body: Expr,
    pub span: Span,
}

/// A lambda and its captured variables.
#[derive(Debug)]
pub struct Lambda {
    pub source: Rc<LambdaSource>,
    pub captures: Rc<Scope>,
}

impl Callable {
    pub fn into_term(self) -> Term {
        Term::Function(Rc::new(self))
    }
}

impl Derived {
    pub fn into_term(self) -> Term {
        Callable::Derived(Rc::new(self)).into_term()
    }
}

impl FunctionTerm for Callable {
    fn name(&self) -> String {
        match self {
            Callable::Item(id) => format!("function {}", id.index),
            Callable::Lambda(_) => "a lambda".to_string(),
            Callable::Builtin(name) => name.clone(),
            Callable::Derived(_) => "a transformed function".to_string(),
        }
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// A function that is being expanded.
#[derive(Debug)]
pub struct Expansion {
    pub file: FileId,
    pub name: String,
    /// None for a lambda.
    pub item: Option<ItemId>,
    /// The call that is expanded; None for the entry.
    pub call: Option<Span>,
    /// Whether its types follow from the call, because it has parameters without types, or size parameters.
    pub is_template: bool,
    /// The scopes, innermost last. Calls of a lambda share the one that it captured.
    pub scopes: Vec<Rc<Scope>>,
}

/// The names of one block, in the order of their bindings; a later one hides an earlier one of the same name.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    bindings: Vec<NamedTerm>,
    last: HashMap<String, usize>,
}

impl Scope {
    pub fn push(&mut self, binding: NamedTerm) {
        self.last.insert(binding.name.clone(), self.bindings.len());
        self.bindings.push(binding);
    }

    pub fn iter(&self) -> impl Iterator<Item = &NamedTerm> {
        self.bindings.iter()
    }

    fn find(&self, name: &str) -> Option<&NamedTerm> {
        self.bindings.get(*self.last.get(name)?)
    }

    fn find_mut(&mut self, name: &str) -> Option<&mut NamedTerm> {
        self.bindings.get_mut(*self.last.get(name)?)
    }
}

impl FromIterator<NamedTerm> for Scope {
    fn from_iter<I: IntoIterator<Item = NamedTerm>>(bindings: I) -> Scope {
        let mut scope = Scope::default();
        bindings.into_iter().for_each(|binding| scope.push(binding));
        scope
    }
}

impl Checker<'_> {
    pub(crate) fn file(&self) -> FileId {
        self.expansions.last().map_or(crate::SourceSet::ROOT, |expansion| expansion.file)
    }

    pub(crate) fn push_scope(&mut self) {
        if let Some(expansion) = self.expansions.last_mut() {
            expansion.scopes.push(Rc::default());
        }
    }

    pub(crate) fn pop_scope(&mut self) {
        if let Some(expansion) = self.expansions.last_mut() {
            expansion.scopes.pop();
        }
    }

    pub(crate) fn bind(&mut self, name: &str, term: Term, mutable: bool, span: Span) {
        if let Some(scope) = self.expansions.last_mut().and_then(|expansion| expansion.scopes.last_mut()) {
            let binding = NamedTerm { name: name.to_string(), term, mutable, span, declared: None };
            Rc::make_mut(scope).push(binding);
        }
    }

    pub(crate) fn local(&self, name: &str) -> Option<&NamedTerm> {
        let scopes = &self.expansions.last()?.scopes;
        scopes.iter().rev().find_map(|scope| scope.find(name))
    }

    pub(crate) fn local_mut(&mut self, name: &str) -> Option<&mut NamedTerm> {
        let scopes = &mut self.expansions.last_mut()?.scopes;
        let scope = scopes.iter_mut().rev().find(|scope| scope.find(name).is_some())?;
        Rc::make_mut(scope).find_mut(name)
    }

    /// The term of a name; Poison for an unknown name, which has been reported when names were resolved.
    pub(crate) fn name(&mut self, name: &str, span: Span) -> Term {
        if let Some(binding) = self.local(name) {
            return binding.term.clone();
        }
        if let Some(entity) = self.names.find(self.file(), name) {
            return self.entity(entity, name, span);
        }
        if let Some(axis) = self.build.mesh().find(name) {
            return Term::Axis(axis);
        }
        if let Some(mesh) = self.build.mesh().find_mesh(name) {
            return Term::Mesh(mesh as u8);
        }
        if is_builtin(name) {
            return Callable::Builtin(name.to_string()).into_term();
        }
        Term::Poison
    }

    /// As [`Checker::name`] for a called name: a variable `sum` does not hide the function. Functions of the prelude see no names
    /// of the program; the statements of a dump call shipped functions even if the dump has functions of the same names.
    pub(crate) fn function_name(&mut self, name: &str, span: Span) -> Term {
        if self.in_prelude() && (is_builtin(name) || Helper::named(name).is_some()) {
            return Callable::Builtin(name.to_string()).into_term();
        }
        if self.exact.is_some() && is_builtin(name) {
            return Callable::Builtin(name.to_string()).into_term();
        }
        let local = self.local(name).map(|binding| binding.term.clone());
        match local {
            Some(term @ (Term::Function(_) | Term::Type(_) | Term::Poison)) => term,
            // A mesh called `all` does not hide the function.
            None if is_builtin(name) && self.names.find(self.file(), name).is_none() => {
                Callable::Builtin(name.to_string()).into_term()
            }
            None => self.name(name, span),
            Some(other) => match self.names.find(self.file(), name) {
                Some(entity) if self.is_function(entity) => self.entity(entity, name, span),
                Some(_) | None if is_builtin(name) => Callable::Builtin(name.to_string()).into_term(),
                Some(_) | None => other,
            },
        }
    }

    pub(crate) fn is_function(&self, entity: Entity) -> bool {
        match entity {
            Entity::Item(id) => matches!(self.item(id), ItemKind::Fn(_)),
            Entity::Module(_) => false,
        }
    }

    pub(crate) fn item(&self, id: ItemId) -> &ItemKind {
        &self.set.file(id.file).program.items[id.index].kind
    }

    pub(crate) fn entity(&mut self, entity: Entity, name: &str, span: Span) -> Term {
        let id = match entity {
            Entity::Module(file) => return Term::Module(file.0 as usize),
            Entity::Item(id) => id,
        };
        match self.item(id) {
            ItemKind::Const { .. } => self.constant(id),
            ItemKind::Fn(_) => Callable::Item(id).into_term(),
            ItemKind::Type { .. } => {
                let message = expected("a value", format_args!("the type `{name}`"));
                self.report(Diagnostic::error(spmdc_grammar::codes::Code::E0210, span, message))
            }
            ItemKind::Mesh(_) | ItemKind::Import { .. } | ItemKind::Test(_) => Term::Poison,
        }
    }

    /// Adds the call for which the function with the finding was being expanded.
    pub(crate) fn with_call_site(&self, diagnostic: Diagnostic) -> Diagnostic {
        let Some(expansion) = self.expansions.iter().rev().find(|expansion| expansion.item.is_some()) else {
            return diagnostic;
        };
        match expansion.call {
            Some(call) if expansion.is_template && call != diagnostic.span => {
                diagnostic.label(call, format!("`{}` is expanded for this call", expansion.name))
            }
            Some(_) | None => diagnostic,
        }
    }
}
