//! Patterns of `let`, parameters and loops.

use crate::Checker;
use crate::errors::types as errors;
use crate::types::declared::Ty;
use spmdc_grammar::ast::{PatternKind, PatternNode};
use spmdc_grammar::span::Span;
use spmdc_inspect::print::is_number_name;
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees::{self, joined};

impl Checker<'_> {
    pub(crate) fn bind_pattern(&mut self, pattern: &PatternNode, term: Term, mutable: bool) {
        match &pattern.kind {
            PatternKind::Wildcard => {}
            PatternKind::Name(name) => {
                self.name_values(name, pattern.span, &term);
                self.bind(name, term, mutable, pattern.span);
            }
            PatternKind::Tuple(parts) => {
                let terms = self.taken_apart(&term, parts.len(), pattern.span);
                parts.iter().zip(terms).for_each(|(part, term)| self.bind_pattern(part, term, mutable));
            }
            PatternKind::Struct(fields) => {
                for (name, part) in fields {
                    let field = if let Term::Struct(_) | Term::Poison = &term {
                        self.field_of(term.clone(), name, name.span)
                    } else {
                        let found = self.display_term(&term);
                        self.report(errors::pattern("a struct", &found, pattern.span))
                    };
                    match part {
                        Some(part) => self.bind_pattern(part, field, mutable),
                        None => {
                            self.name_values(&name.name, name.span, &field);
                            self.bind(&name.name, field, mutable, name.span);
                        }
                    }
                }
            }
        }
    }

    /// The `count` terms that a tuple pattern binds; reports a term that does not have `count` parts.
    fn taken_apart(&mut self, term: &Term, count: usize, pattern: Span) -> Vec<Term> {
        if let Term::Array(value) = term
            && self.build.ty(*value).shape().first() == Some(&count)
        {
            // An array is taken apart along its first dimension, as in NumPy.
            return (0..count).map(|at| self.element(*value, at, pattern)).collect();
        }
        if let Some(planes) = term.planes()
            && self.build.ty(planes[0]).shape().first() == Some(&count)
        {
            let parts = (0..count).map(|at| {
                let [re, im] = planes.map(|plane| self.element(plane, at, pattern));
                joined(re, im)
            });
            return parts.collect();
        }
        if let Some(terms) = term.sequence()
            && terms.len() == count
        {
            return terms.to_vec();
        }
        if !matches!(term, Term::Poison) {
            let found = if let Term::Tuple(terms) = term {
                format!("a tuple of {}", terms.len())
            } else {
                self.display_term(term)
            };
            self.report(errors::pattern(&format!("a tuple of {count}"), &found, pattern));
        }
        vec![Term::Poison; count]
    }

    /// Binds the variables of a dump: a name is given to the values defined by the statement, those from `first` on, and a carried
    /// value has the type declared for its variable.
    pub(crate) fn bind_declared(&mut self, pattern: &PatternNode, term: Term, mutable: bool, ty: Ty, first: usize) {
        match (&pattern.kind, term) {
            (PatternKind::Name(name), Term::Array(value)) => {
                if value.0 as usize >= first {
                    self.name_values(name, pattern.span, &Term::Array(value));
                }
                self.bind(name, Term::Array(value), mutable, pattern.span);
                let declared = match &ty {
                    Ty::Array(array) if mutable => self.exact_type(array).map(|ty| (ty, array.turned)),
                    Ty::Array(_) | Ty::Complex(_) | Ty::Tuple(_) | Ty::Struct(_) | Ty::Poison => None,
                };
                if let Some(binding) = self.local_mut(name) {
                    binding.declared = declared;
                }
            }
            (_, term) => self.bind_pattern(pattern, term, mutable),
        }
    }

    /// Reports name a value by the first of the user's variables that it was assigned to, and know the others; leaves of a struct by path.
    pub(crate) fn name_values(&mut self, name: &str, place: Span, term: &Term) {
        let is_own = !self.in_prelude() && !self.set.file(self.file()).is_shipped;
        if !is_own || self.exact.is_some() && is_number_name(name) {
            return;
        }
        let mut leaves = Vec::new();
        trees::leaves(term, name, &mut leaves);
        for (path, leaf) in leaves {
            if let Term::Array(value) = leaf {
                let info = self.build.info_mut(*value);
                if info.name.is_none() {
                    (info.name, info.named) = (Some(path), place);
                } else if info.named != place {
                    self.build.add_other_name(place, path, *value);
                }
            }
        }
    }
}
