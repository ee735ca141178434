//! Calls of functions of the prelude: they are expanded like functions of the program, but every source position in them is that of
//! the call, and their errors are errors of the call.

use super::Checker;
use super::scopes::{Expansion, NamedTerm, Scope};
use spmdc_grammar::ast::PatternKind;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_grammar::strip_spans::move_spans;
use spmdc_ir::ops::call::args::Args;
use spmdc_ir::ops::call::signature::ParamKind;
use spmdc_ir::ops::call::term::Term;
use spmdc_ir::ops::prelude::{FILE, Written};
use spmdc_ir::program::Value;
use spmdc_ir::program::explicit::Choice;

/// The error in a call of the prelude: the first finding, and the choices if a layout is ambiguous.
pub(super) type Refusal = (Diagnostic, Option<(Vec<Value>, Vec<Choice>)>);

impl Checker<'_> {
    /// Whether a function of the prelude is being expanded.
    pub(super) fn in_prelude(&self) -> bool {
        self.expansions.last().is_some_and(|expansion| expansion.file == FILE)
    }

    pub(super) fn call_written(
        &mut self,
        written: &Written,
        args: &mut Args<'_>,
        span: Span,
    ) -> Result<Term, Diagnostic> {
        let mut function = written.function.clone();
        move_spans(&mut function, span);
        let mut arguments = Scope::default();
        let mut defaults = Vec::new();
        for (param, known) in function.params.iter().zip(written.signature.params) {
            let (term, place) = match (args.take(known.name), &param.default) {
                (Some(arg), _) if known.kind == ParamKind::Array => {
                    (Term::Array(self.build.materialize(&arg.term, None, arg.span)?), arg.span)
                }
                (Some(arg), _) => (arg.term, arg.span),
                (None, default) => {
                    defaults.push((known.name, default.as_ref().expect("the binder has seen that it is given")));
                    continue;
                }
            };
            let PatternKind::Name(own) = &param.pattern.kind else { panic!("a parameter of the prelude has a name") };
            arguments.push(NamedTerm { name: own.clone(), term, mutable: false, span: place, declared: None });
        }
        self.expansions.push(Expansion {
            file: FILE,
            name: written.signature.name.to_string(),
            item: None,
            call: Some(span),
            is_template: false,
            scopes: vec![arguments],
        });
        let (refused, acts) = (self.refused.take(), self.value_acts);
        for (name, default) in defaults {
            let term = self.expr(default);
            self.bind(name, term, false, span);
        }
        let term = self.block(&function.body);
        self.expansions.pop();
        self.build.span = span;
        self.value_acts = acts;
        match std::mem::replace(&mut self.refused, refused) {
            None => Ok(term),
            Some((diagnostic, conflict)) => {
                self.build.conflict = conflict;
                Err(diagnostic)
            }
        }
    }
}
