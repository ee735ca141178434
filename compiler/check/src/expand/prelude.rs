//! Calls of functions of the prelude: they are expanded like functions of the program, but every source position in them is the position of
//! the call, and their errors are errors of the call.

use crate::Checker;
use crate::expand::scopes::{Expansion, NamedTerm, Scope};
use spmdc_functions::paragraph::FILE;
use spmdc_functions::prelude::PreludeFunction;
use spmdc_grammar::ast::{FnItem, PatternKind};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_grammar::strip_spans::move_spans;
use spmdc_ir::call::args::Args;
use spmdc_ir::call::signature::ParamKind;
use spmdc_ir::call::term::Term;
use spmdc_ir::program::Value;
use spmdc_ir::program::choice::Choice;
use std::rc::Rc;

/// The error in a call of the prelude: the first finding, and the choices if a layout is ambiguous.
pub(crate) type Refusal = (Diagnostic, Option<(Vec<Value>, Vec<Choice>)>);

impl Checker<'_> {
    /// Whether a function of the prelude is being expanded.
    pub(crate) fn in_prelude(&self) -> bool {
        self.expansions.last().is_some_and(|expansion| expansion.file == FILE)
    }

    /// Whether the expanding call of a prelude function has an error: the rest of its body relies on conditions that do not hold.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.is_some() && self.in_prelude()
    }

    pub(crate) fn call_prelude(
        &mut self,
        written: &PreludeFunction,
        args: &mut Args<'_>,
        span: Span,
    ) -> Result<Term, Diagnostic> {
        let mut given = Vec::new();
        for (param, known) in written.function.params.iter().zip(written.signature.params) {
            let Some(arg) = args.take(known.name) else { continue };
            let term = match (known.kind == ParamKind::Array, &arg.term) {
                (true, Term::Complex(_)) | (false, _) => arg.term,
                (true, term) if term.holds_complex() => self.numeric(term, arg.span).unwrap_or(Term::Poison),
                (true, term) => Term::Array(self.build.materialize(term, None, arg.span)?),
            };
            given.push((parameter(&param.pattern.kind), term, arg.span));
        }
        self.expand_written(written.signature.name, &written.function, given, span)
    }

    /// Expands a function of the prelude with these arguments, by the names of its parameters.
    pub(crate) fn expand_written(
        &mut self,
        name: &str,
        function: &FnItem,
        given: Vec<(&str, Term, Span)>,
        span: Span,
    ) -> Result<Term, Diagnostic> {
        let mut function = function.clone();
        move_spans(&mut function, span);
        let mut arguments = Scope::default();
        let mut defaults = Vec::new();
        for param in &function.params {
            let own = parameter(&param.pattern.kind);
            match given.iter().find(|(name, ..)| *name == own) {
                Some((_, term, place)) => arguments.push(NamedTerm {
                    name: own.to_string(),
                    term: term.clone(),
                    mutable: false,
                    span: *place,
                    declared: None,
                }),
                None => defaults.push((own, param.default.as_ref().expect("the binder has seen that it is given"))),
            }
        }
        self.expansions.push(Expansion {
            file: FILE,
            name: name.to_string(),
            item: None,
            call: Some(span),
            is_template: false,
            scopes: vec![Rc::new(arguments)],
        });
        let (refused, acts) = (self.refused.take(), self.value_acts);
        for (name, default) in defaults {
            let term = self.expr(default);
            self.bind(name, term, false, span);
        }
        let term = self.block(&function.body);
        self.expansions.pop();
        self.build.set_span(span);
        self.value_acts = acts;
        match std::mem::replace(&mut self.refused, refused) {
            None => Ok(term),
            Some((diagnostic, conflict)) => {
                self.build.set_conflict(conflict);
                Err(diagnostic)
            }
        }
    }
}

fn parameter(pattern: &PatternKind) -> &str {
    if let PatternKind::Name(name) = pattern { name } else { unreachable!("parameters of the prelude have names") }
}
