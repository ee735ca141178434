//! Constants: `const N = 4096;`, computed when first used, and changed by `--set`.

use crate::Checker;
use crate::errors::{self, items};
use crate::expand::scopes::Expansion;
use crate::program::names::ItemId;
use crate::types::sizes;
use spmdc_grammar::ast::{Expr, ExprKind, InfixOp, ItemKind};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::term::{StaticScalar, Term};
use std::rc::Rc;

#[derive(Clone, Debug)]
pub enum ConstValue {
    /// Being computed: a use now is a cycle.
    Open,
    Known(Term),
}

/// Whether it is known at compile time, and can become an array of the program. Other arrays belong to the function in which they
/// are computed.
fn is_literal(term: &Term) -> bool {
    if let Term::List(items) = term { items.iter().all(is_literal) } else { term.static_scalar().is_some() }
}

impl Checker<'_> {
    pub(crate) fn constant(&mut self, id: ItemId) -> Term {
        let ItemKind::Const { name, value } = &self.set.file(id.file).program.items[id.index].kind else {
            return Term::Poison;
        };
        match self.constants.get(&id) {
            Some(ConstValue::Known(term)) => return term.clone(),
            Some(ConstValue::Open) => return self.report(items::constant_cycle(&name.name, name.span)),
            None => {}
        }
        self.constants.insert(id, ConstValue::Open);
        let expansion = Expansion {
            file: id.file,
            name: name.name.clone(),
            item: None,
            call: None,
            is_template: false,
            scopes: vec![Rc::default()],
        };
        self.expansions.push(expansion);
        let default = self.constant_expr(value);
        self.expansions.pop();
        let given = self.sets.get(&name.name).filter(|_| !self.set.file(id.file).is_shipped).cloned();
        let term = match given {
            Some(text) => self.given_constant(&name.name, &text, &default, name.span),
            None => default,
        };
        self.constants.insert(id, ConstValue::Known(term.clone()));
        term
    }

    fn constant_expr(&mut self, value: &Expr) -> Term {
        match self.static_expr(value) {
            Some(term) if term.static_scalar().is_some() || matches!(term, Term::Poison) => term,
            // Converted to an array, to report errors of the list here; each user makes an array of its own.
            Some(list @ Term::List(_)) if is_literal(&list) => {
                let before = self.diagnostics.len();
                self.in_new_function("a constant", |checker| {
                    checker.value(&list, value.span);
                });
                if self.diagnostics.len() == before { list } else { Term::Poison }
            }
            Some(Term::List(_)) => self.report(items::not_constant(value.span, "a list computed at run time")),
            Some(other) => self.report(items::not_constant(value.span, other.describe())),
            None => self.report(items::not_constant(value.span, "a value computed at run time")),
        }
    }

    /// As an expression, except that a whole quotient of integers is an integer, as constants are mostly sizes.
    pub(crate) fn static_expr(&mut self, value: &Expr) -> Option<Term> {
        if let ExprKind::Binary { op, lhs: left, rhs: right, .. } = &value.kind {
            let (lhs, rhs) = (self.static_expr(left)?, self.static_expr(right)?);
            if let (InfixOp::Div, Term::Int(lhs), Term::Int(rhs)) = (op, &lhs, &rhs)
                && let Ok(quotient) = sizes::arithmetic(InfixOp::Div, *lhs, *rhs)
            {
                return Some(Term::Int(quotient));
            }
            return Some(self.binary_terms(*op, value.span, (lhs, left.span), (rhs, right.span)));
        }
        if let ExprKind::Unary { op, arg } = &value.kind {
            let term = self.static_expr(arg)?;
            return Some(self.unary_terms(*op, value.span, (term, arg.span)));
        }
        Some(self.expr(value)).filter(|term| !matches!(term, Term::Array(_) | Term::Complex(_)))
    }

    /// The value given by `--set`, of the kind of the default.
    fn given_constant(&mut self, name: &str, text: &str, default: &Term, span: Span) -> Term {
        let text = text.trim();
        let digits = text.replace('_', "");
        let (parsed, kind) = match default.static_scalar() {
            Some(StaticScalar::Int(_)) => (parse_int(&digits).map(Term::Int), "an integer"),
            Some(StaticScalar::Float(_)) => (digits.parse::<f64>().ok().map(Term::Float), "a number"),
            Some(StaticScalar::Bool(_)) => (text.parse::<bool>().ok().map(Term::Bool), "true or false"),
            None if matches!(default, Term::List(_)) => (None, "a scalar"),
            None => (Some(Term::Poison), ""),
        };
        match parsed {
            Some(term) => term,
            None => self.report(items::set_does_not_fit(name, text, kind, span)),
        }
    }

    /// Checks that every `--set` names a constant of the program, each constant at most once.
    pub(crate) fn check_sets(&mut self, given: &[(String, String)]) {
        for (i, (name, _)) in given.iter().enumerate() {
            if given[..i].iter().any(|(earlier, _)| earlier == name) {
                self.diagnostics.push(items::set_twice(name));
            }
        }
        let constants: Vec<&str> = self
            .set
            .files
            .iter()
            .filter(|file| !file.is_shipped)
            .flat_map(|file| &file.program.items)
            .filter_map(|item| match &item.kind {
                ItemKind::Const { name, .. } => Some(name.name.as_str()),
                ItemKind::Mesh(_)
                | ItemKind::Type { .. }
                | ItemKind::Import { .. }
                | ItemKind::Fn(_)
                | ItemKind::Test(_) => None,
            })
            .collect();
        let unknown: Vec<Diagnostic> = self
            .sets
            .keys()
            .filter(|name| !constants.contains(&name.as_str()))
            .map(|name| items::unknown_constant(name, &constants))
            .collect();
        self.diagnostics.extend(unknown);
    }

    /// The size of a mesh axis.
    pub(crate) fn mesh_size(&mut self, size: &Expr) -> Option<i128> {
        let expansion = Expansion {
            file: crate::SourceSet::ROOT,
            name: "mesh".to_string(),
            item: None,
            call: None,
            is_template: false,
            scopes: vec![Rc::default()],
        };
        self.expansions.push(expansion);
        let term = self.constant_expr(size);
        self.expansions.pop();
        if let Term::Int(size) = term {
            return Some(size);
        }
        if !matches!(term, Term::Poison) {
            self.report(errors::sizes::not_constant(size.span, term.describe()));
        }
        None
    }

    /// Computes all constants, used or not.
    pub(crate) fn all_constants(&mut self) {
        for (file, source) in self.set.files.iter().enumerate() {
            for (index, item) in source.program.items.iter().enumerate() {
                if let ItemKind::Const { .. } = item.kind {
                    self.constant(ItemId { file: spmdc_grammar::span::FileId(file as u16), index });
                }
            }
        }
    }
}

fn parse_int(digits: &str) -> Option<i128> {
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}
