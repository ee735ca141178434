//! Translates expressions to terms.

use crate::errors::items;
use crate::errors::names as errors_of_names;
use crate::errors::types as errors;
use crate::expand::scopes::Callable;
use crate::program::names::Entity;
use crate::{Checker, with_stack};
use spmdc_functions::is_builtin;
use spmdc_grammar::ast::{Expr, ExprKind, Ident, InfixOp};
use spmdc_grammar::span::{FileId, Span};
use spmdc_ir::call::arg::not_static;
use spmdc_ir::call::fields::FieldName;
use spmdc_ir::call::term::{StaticScalar, Term, TypeTerm, whole_number};
use spmdc_ir::call::trees;
use spmdc_ir::program::Value;
use spmdc_layout::types::{ArrayType, DType};

impl Checker<'_> {
    pub(crate) fn expr(&mut self, expr: &Expr) -> Term {
        if self.depth >= crate::MAX_DEPTH {
            return self.report(items::too_many_calls(expr.span));
        }
        if self.is_refused() {
            return Term::Poison;
        }
        self.depth += 1;
        let term = with_stack(|| self.any_expr(expr));
        self.depth -= 1;
        term
    }

    fn any_expr(&mut self, expr: &Expr) -> Term {
        match &expr.kind {
            ExprKind::Int(number) => Term::Int(i128::from(*number)),
            ExprKind::Float(digits) => Term::Float(digits.parse().expect("the lexer lets numbers through only")),
            ExprKind::Bool(value) => Term::Bool(*value),
            ExprKind::Str(text) => {
                self.warn_of_names(text, expr.span);
                Term::Str(text.clone())
            }
            ExprKind::Name(name) => self.name(name, expr.span),
            ExprKind::Wildcard | ExprKind::None => Term::Nothing,
            ExprKind::Unary { op, arg } => {
                let term = self.expr(arg);
                self.unary_terms(*op, expr.span, (term, arg.span))
            }
            ExprKind::Binary { op, lhs, rhs, .. } => self.binary(*op, lhs, rhs, expr.span),
            ExprKind::Call { callee, args } => self.call(callee, args, expr.span),
            ExprKind::Index { base, indices } => {
                let term = self.expr(base);
                self.index(term, indices, expr.span, base.span)
            }
            ExprKind::Field { base, name } => self.field(base, name, expr.span),
            ExprKind::TupleField { base, index, index_span } => {
                let term = self.expr(base);
                self.tuple_field(term, *index, *index_span)
            }
            ExprKind::Lambda { params, body } => self.lambda(params, body, expr.span),
            ExprKind::Tuple(parts) => {
                let tuple = Term::Tuple(parts.iter().map(|part| self.expr(part)).collect());
                self.lists.insert(expr.span, parts.iter().map(|part| part.span).collect());
                self.limited(tuple, expr.span)
            }
            ExprKind::List(parts) => {
                let list = Term::List(parts.iter().map(|part| self.expr(part)).collect());
                self.lists.insert(expr.span, parts.iter().map(|part| part.span).collect());
                if list.is_poisoned() { Term::Poison } else { self.limited(list, expr.span) }
            }
            ExprKind::Struct(fields) => {
                let literal = self.struct_literal(fields);
                self.limited(literal, expr.span)
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::If { cond, then, otherwise } => self.branch(cond, then, otherwise.as_deref(), expr.span),
            ExprKind::For { pattern, start, end, step, collect, body } => {
                self.for_loop(pattern, (start, end, step.as_deref()), *collect, body, expr.span)
            }
            ExprKind::While { cond, body } => self.while_loop(cond, body, expr.span),
            ExprKind::Sharding(sharding) => self.sharding_literal(sharding),
            ExprKind::Type(ty) => self.type_literal(ty),
        }
    }

    /// Checks the size of a tree: later steps walk it, name its leaves by their paths, and copy it.
    fn limited(&mut self, tree: Term, span: Span) -> Term {
        match trees::is_within_limits(&tree) {
            true => tree,
            false => self.report(errors::too_many_leaves(span)),
        }
    }

    /// A chain such as `a + b + c` is left-recursive and may be long, so it is walked by a loop.
    fn binary(&mut self, op: InfixOp, lhs: &Expr, rhs: &Expr, span: Span) -> Term {
        let mut chain = vec![(op, rhs, span)];
        let mut first = lhs;
        while let ExprKind::Binary { op, lhs, rhs, .. } = &first.kind {
            chain.push((*op, rhs, first.span));
            first = lhs;
        }
        let mut result = (self.expr(first), first.span);
        for (op, rhs, span) in chain.into_iter().rev() {
            // As in other languages, the right side counts only if the left one does not decide.
            if let (InfixOp::And, Term::Bool(false)) | (InfixOp::Or, Term::Bool(true)) = (op, &result.0) {
                continue;
            }
            let term = self.expr(rhs);
            result = (self.binary_terms(op, span, result, (term, rhs.span)), span);
        }
        result.0
    }

    /// The array of a term; numbers and lists become constants.
    pub(crate) fn value(&mut self, term: &Term, span: Span) -> Option<Value> {
        if matches!(term, Term::Poison) {
            return None;
        }
        self.build.set_span(span);
        match self.build.materialize(term, None, span) {
            Ok(value) => Some(value),
            Err(diagnostic) => {
                self.report(diagnostic);
                None
            }
        }
    }

    /// The value, unless it is a stream, which is reported.
    pub(crate) fn in_memory(&mut self, value: Value, place: &str, span: Span) -> Option<Value> {
        self.build.in_memory(value, place, span).map_err(|diagnostic| self.report(diagnostic)).ok()
    }

    /// Warns of a text with the name of a variable in braces, as texts of Python and Rust may have it.
    fn warn_of_names(&mut self, text: &str, span: Span) {
        let text = text.replace("{{", "").replace("}}", "");
        let mut names = text.split('{').skip(1).filter_map(|rest| rest.split_once('}')?.0.split(':').next());
        if let Some(name) = names.find(|name| self.local(name).is_some()).filter(|_| !self.in_prelude()) {
            let warning = self.with_call_site(errors_of_names::name_in_braces(name, span));
            self.warnings.push(warning);
        }
    }

    fn struct_literal(&mut self, fields: &[(Ident, Option<Expr>)]) -> Term {
        let mut terms: Vec<(FieldName, Term)> = Vec::new();
        for (name, value) in fields {
            let term = match value {
                Some(value) => self.expr(value),
                None => self.name(&name.name, name.span),
            };
            if terms.iter().any(|(earlier, _)| *earlier == name.name) {
                self.report(errors::field_twice(&name.name, name.span));
                continue;
            }
            self.build.fields.link(name.span, name.span);
            terms.push((FieldName::new(name), term));
        }
        Term::Struct(terms)
    }

    /// The module named by an expression.
    pub(crate) fn module(&mut self, base: &Expr) -> Option<FileId> {
        let ExprKind::Name(name) = &base.kind else { return None };
        if self.local(name).is_some() {
            return None;
        }
        match self.names.find(self.file(), name) {
            Some(Entity::Module(file)) => Some(file),
            Some(Entity::Item(_)) | None => None,
        }
    }

    pub(crate) fn member(&mut self, file: FileId, name: &Ident) -> Term {
        match self.names.find(file, &name.name) {
            Some(entity) => self.entity(entity, &name.name, name.span),
            None => Term::Poison,
        }
    }

    fn field(&mut self, base: &Expr, name: &Ident, span: Span) -> Term {
        if let Some(file) = self.module(base) {
            return self.member(file, name);
        }
        let term = self.expr(base);
        self.field_of(term, name, span)
    }

    pub(crate) fn field_of(&mut self, term: Term, name: &Ident, span: Span) -> Term {
        if let Term::Poison = term {
            return Term::Poison;
        }
        if let Term::Struct(fields) = &term {
            if let Some((own, field)) = fields.iter().find(|(field, _)| *field == name.name) {
                self.build.fields.link(own.place, name.span);
                return field.clone();
            }
            let names: Vec<&str> = fields.iter().map(|(field, _)| &**field).collect();
            let error = errors::unknown_field(&name.name, &names, "this struct", name.span);
            return self.report(error);
        }
        // An attribute.
        self.build.fields.link(name.span, name.span);
        if let Some(planes) = term.planes() {
            return self.complex_field(planes, name, span);
        }
        if let Term::Type(ty) = &term
            && let Some(attribute) = attribute(&ty.array, ty.complex, &name.name)
        {
            return attribute;
        }
        // Alone, a number is a scalar of its own type.
        let alone = term.static_scalar().map(|number| match number {
            StaticScalar::Int(_) => DType::I32,
            StaticScalar::Float(_) => DType::F32,
            StaticScalar::Bool(_) => DType::Bool,
        });
        if let Some(attribute) = alone.and_then(|dtype| attribute(&ArrayType::scalar(dtype), false, &name.name)) {
            return attribute;
        }
        if alone.is_some() || !trees::is_number(&term) {
            let error = errors::unknown_field(&name.name, &[], term.describe(), name.span);
            return self.report(error);
        }
        let array = if let Term::Array(value) = term { Some(value) } else { self.value(&term, span) };
        array.map_or(Term::Poison, |array| self.array_field(array, name, span))
    }

    /// The attributes of an array: `x.T`, `x.shape`, `x.ndim`, `x.size`, `x.dtype`.
    fn array_field(&mut self, value: Value, name: &Ident, span: Span) -> Term {
        let array = self.build.ty(value).array.clone();
        if let Some(attribute) = attribute(&array, false, &name.name) {
            return attribute;
        }
        match name.name.as_str() {
            "T" => self.call_builtin("transpose", vec![(None, Term::Array(value), span)], span),
            "real" | "imag" => self.call_builtin(&name.name, vec![(None, Term::Array(value), span)], span),
            field if is_builtin(field) || self.names.find(self.file(), field).is_some() => {
                let error = errors::unknown_field(field, &[], "an array", name.span);
                self.report(error.help(format!("`{field}` is a function; call it: `x.{field}()`")))
            }
            field => {
                let error =
                    errors::unknown_field(field, &["T", "shape", "ndim", "size", "dtype"], "an array", name.span);
                self.report(error)
            }
        }
    }

    /// The attributes of complex numbers: the attributes of an array, and `z.real`, `z.imag`.
    fn complex_field(&mut self, planes: [Value; 2], name: &Ident, span: Span) -> Term {
        let whole = Term::complex(planes[0], planes[1]);
        match name.name.as_str() {
            "T" => self.call_builtin("transpose", vec![(None, whole, span)], span),
            "real" => Term::Array(planes[0]),
            "imag" => Term::Array(planes[1]),
            "dtype" => self.complex_dtype(planes),
            _ => self.array_field(planes[0], name, span),
        }
    }

    pub(crate) fn tuple_field(&mut self, term: Term, index: usize, span: Span) -> Term {
        match term.sequence() {
            Some(parts) => match parts.get(index) {
                Some(part) => part.clone(),
                None => self.report(errors::no_tuple_field(index, parts.len(), span)),
            },
            None if matches!(term, Term::Poison) => Term::Poison,
            None => self.report(errors::wrong_kind("a tuple", term.describe(), span)),
        }
    }

    /// `t[0]` of a tuple or list.
    pub(crate) fn index_tuple(&mut self, parts: &[Term], index: &Term, span: Span) -> Term {
        let Some(position) = whole_number(index) else {
            return self.report(not_static("index", "an integer", index, span));
        };
        let from_end = if position < 0 { position + parts.len() as i128 } else { position };
        match usize::try_from(from_end).ok().and_then(|position| parts.get(position)) {
            Some(part) => part.clone(),
            None => self.report(crate::errors::indices::out_of_bounds(position, parts.len(), span)),
        }
    }

    pub(crate) fn function_term(&self, term: &Term) -> Option<Callable> {
        let Term::Function(function) = term else { return None };
        function.as_any().downcast_ref::<Callable>().cloned()
    }
}

/// The attributes that an array has in common with its type: `shape`, `ndim`, `size`, `dtype`.
fn attribute(array: &ArrayType, complex: bool, name: &str) -> Option<Term> {
    Some(match name {
        "shape" => Term::Tuple(array.shape.iter().map(|&size| Term::Int(size as i128)).collect()),
        "ndim" => Term::Int(array.rank() as i128),
        "size" => Term::Int(array.len() as i128),
        "dtype" => {
            let array = ArrayType::scalar(array.dtype);
            Term::Type(TypeTerm { array, complex, sharding: None, varying: Default::default() })
        }
        _ => return None,
    })
}
