//! Calls: the called function, the binding of arguments to parameters, and the expansion of the function.

use crate::errors::{self, calls as errors_of_calls, items};
use crate::expand::scopes::{Callable, Expansion, Lambda, LambdaSource, NamedTerm};
use crate::program::names::{Entity, ItemId};
use crate::types::choices::{WrittenOperator, with_terms};
use crate::types::declared::{SizeParams, Ty};
use crate::types::sizes::{Bindings, Size};
use crate::{Checker, MAX_EXPANDED};
use spmdc_functions::prelude::Helper;
use spmdc_functions::{Body, Function, builtin};
use spmdc_grammar::ast::{self, ElementType, Expr, ExprKind, FnItem, Ident, ItemKind, ParamNode, TypeExprKind};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::{FileId, Span};
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::build::CalledFunction;
use spmdc_ir::call::errors::{given_twice, missing, only_in_dumps, unknown_keyword};
use spmdc_ir::call::expand::Expanded;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::term::{Term, TypeTerm};
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_layout::types::{ArrayType, DType};
use spmdc_ops::reshard::Reshard;
use std::rc::Rc;

/// Maximum nesting of function expansions.
const MAX_CALLS: usize = 200;

impl Checker<'_> {
    pub(crate) fn lambda(&mut self, params: &[ParamNode], body: &Expr, span: Span) -> Term {
        let file = self.file();
        let new = || Rc::new(LambdaSource { file, params: params.to_vec(), body: body.clone(), span });
        // All lambdas of a function of the prelude have the position of its call.
        let source = if self.in_prelude() { new() } else { Rc::clone(self.lambdas.entry(span).or_insert_with(new)) };
        let scopes = self.expansions.last().map(|expansion| expansion.scopes.as_slice()).unwrap_or_default();
        // Variables hidden by a later binding of the same name are not captured.
        let captures = scopes
            .iter()
            .flat_map(|scope| scope.iter())
            .map(|binding| NamedTerm { mutable: false, ..binding.clone() })
            .collect();
        Callable::Lambda(Rc::new(Lambda { source, captures: Rc::new(captures) })).into_term()
    }

    pub(crate) fn call(&mut self, callee: &Expr, args: &[ast::ArgNode], span: Span) -> Term {
        if let ExprKind::Type(ty) = &callee.kind {
            return self.cast(ty, args, span);
        }
        let (function, receiver) = if let ExprKind::Name(name) = &callee.kind {
            (self.function_name(name, callee.span), None)
        } else if let ExprKind::Field { base, name } = &callee.kind {
            match self.module(base) {
                Some(file) => (self.member(file, name), None),
                None => self.method(base, name),
            }
        } else {
            (self.expr(callee), None)
        };
        let mut given: Vec<Arg> = receiver.into_iter().collect();
        let counts = match self.function_term(&function) {
            Some(Callable::Builtin(name)) => builtin(&name).is_some_and(|function| function.signature().takes_counts()),
            Some(Callable::Item(_) | Callable::Lambda(_) | Callable::Derived(_)) | None => false,
        };
        for arg in args {
            let mut term = self.expr(&arg.value);
            // The result has another element type for `N / 2` as a size than for its quotient.
            if counts
                && matches!(term, Term::Float(_))
                && let Some(Term::Int(size)) = self.static_expr(&arg.value)
            {
                term = Term::Int(size);
            }
            let span = self.place_of(&arg.value);
            given.push(Arg { name: arg.name.as_ref().map(|name| name.name.clone()), term, span });
        }
        self.call_term(&function, given, span, callee.span)
    }

    /// The source position of an argument; in the prelude, an argument that is passed on has its position in the program.
    fn place_of(&self, value: &Expr) -> Span {
        if let (ExprKind::Name(name), true) = (&value.kind, self.in_prelude())
            && let Some(binding) = self.local(name)
        {
            return binding.span;
        }
        value.span
    }

    /// `p.f(x)` calls the function in field `f` of a struct, and `f(p, x)` otherwise.
    fn method(&mut self, base: &Expr, name: &Ident) -> (Term, Option<Arg>) {
        let receiver = self.expr(base);
        if let Term::Struct(fields) = &receiver
            && let Some((own, field)) = fields.iter().find(|(field, _)| *field == name.name)
        {
            self.build.fields.link(own.place, name.span);
            return (field.clone(), None);
        }
        self.build.fields.link(name.span, name.span);
        let function = self.function_name(&name.name, name.span);
        if matches!(receiver, Term::Poison) {
            return (Term::Poison, None);
        }
        (function, Some(Arg { name: None, term: receiver, span: base.span }))
    }

    pub(crate) fn call_term(&mut self, function: &Term, args: Vec<Arg>, span: Span, callee: Span) -> Term {
        if function.is_poisoned() || args.iter().any(|arg| arg.term.is_poisoned()) {
            return Term::Poison;
        }
        if let (Term::Type(ty), [arg]) = (function, args.as_slice())
            && ty.array.rank() == 0
        {
            let args = vec![(None, arg.term.clone(), arg.span), (None, function.clone(), callee)];
            return self.call_builtin("cast", args, span);
        }
        match self.function_term(function) {
            Some(Callable::Item(id)) => self.call_item(id, args, span),
            Some(Callable::Lambda(lambda)) => self.call_lambda(&lambda, args, span),
            Some(Callable::Builtin(name)) => self.call_shipped(&name, args, span),
            Some(Callable::Derived(derived)) => {
                self.or_move_arguments(args, span, &|checker, args| checker.call_derived(&derived, args, span))
            }
            None => self.report(errors_of_calls::not_a_function(function.describe(), callee)),
        }
    }

    /// A call of a shipped function by the checker itself.
    pub(crate) fn call_builtin(&mut self, name: &str, args: Vec<(Option<&str>, Term, Span)>, span: Span) -> Term {
        let args = args.into_iter().map(|(name, term, span)| Arg { name: name.map(str::to_string), term, span });
        self.call_shipped(name, args.collect(), span)
    }

    pub(crate) fn call_shipped(&mut self, name: &str, args: Vec<Arg>, span: Span) -> Term {
        if let (true, Some(helper)) = (self.in_prelude(), Helper::named(name)) {
            self.build.set_span(span);
            let result = helper.call(&args, &mut self.build);
            return self.or_report(result);
        }
        if self.exact.is_none() && args.iter().any(|arg| arg.term.holds_complex()) {
            return self.call_complex(name, args, span);
        }
        self.call_real(name, args, span)
    }

    /// A call of a shipped function whose own code takes the arguments.
    pub(crate) fn call_real(&mut self, name: &str, args: Vec<Arg>, span: Span) -> Term {
        let Some(function) = builtin(name) else {
            return self.report(items::not_yet(span, format_args!("`{name}`")));
        };
        if let (None, false, Some(instead)) = (self.exact, self.in_prelude(), function.instead()) {
            return self.report(only_in_dumps(&format!("`{name}`"), instead, span));
        }
        match function.body(&args) {
            Body::Expanded(_) | Body::Transformed(_) => self.or_move_arguments(args, span, &|checker, args| {
                let result = checker.called(&function, args, span);
                checker.or_report(result)
            }),
            Body::Emitted(_) | Body::Prelude(_) => {
                let given: Vec<(Term, Span)> = args.iter().map(|arg| (arg.term.clone(), arg.span)).collect();
                let result = self.called(&function, args.clone(), span).map_err(|diagnostic| {
                    self.with_choices(diagnostic, span, &WrittenOperator::Call(name), &given, &|checker, moved, out| {
                        checker.called(&function, with_terms(&args, moved, out, span), span)
                    })
                });
                let term = self.or_report(result);
                if let Term::Poison = term {
                    return term;
                }
                self.laid_out_as_asked(&function, term, &given, span)
            }
        }
    }

    /// A call of a function of the table.
    pub(crate) fn called(&mut self, function: &Function, args: Vec<Arg>, span: Span) -> Result<Term, Diagnostic> {
        self.build.set_span(span);
        let body = function.body(&args);
        // Of a function of the prelude, the program has called that one.
        let outer = self.build.called().cloned();
        let of_prelude = outer.clone().filter(|_| self.in_prelude());
        let own = |is_emitted| Some(CalledFunction { name: function.name.to_string(), is_emitted });
        let called = match body {
            Body::Emitted(_) => of_prelude.or_else(|| own(true)),
            Body::Prelude(_) => of_prelude.or_else(|| own(false)),
            // The operators in the functions that it calls are not its own.
            Body::Expanded(_) | Body::Transformed(_) => outer,
        };
        self.in_call(called, |checker| {
            let mut args = function.bind(args, span, checker.build.is_exact())?;
            match body {
                Body::Emitted(emit) => emit(function.name, &mut args, &mut checker.build),
                Body::Prelude(written) => checker.call_prelude(written, &mut args, span),
                Body::Expanded(expand) => or_poison(expand(function.name, &mut args, checker)),
                Body::Transformed(transformation) => or_poison(checker.transformed(transformation, &mut args)),
            }
        })
    }

    /// `zeros(f32[8@X, 4])`: the type determines the layout of the new array.
    fn laid_out_as_asked(&mut self, function: &Function, term: Term, given: &[(Term, Span)], span: Span) -> Term {
        let asked = match given {
            [(Term::Type(ty), _), ..] if function.signature().is_laid_out_by_type() => ty.sharding.clone(),
            _ => None,
        };
        match (term, asked) {
            (Term::Array(value), Some(to)) => {
                self.build.set_span(span);
                let result = self.build.emit1(Reshard { to, step: ReshardStep::Pin }, &[value]).map(Term::Array);
                self.or_report(result)
            }
            (term, _) => term,
        }
    }

    /// `f32(x)`
    fn cast(&mut self, ty: &ast::TypeExpr, args: &[ast::ArgNode], span: Span) -> Term {
        let target = self.type_literal(ty);
        let mut terms: Vec<Term> = args.iter().map(|arg| self.expr(&arg.value)).collect();
        let Term::Type(wanted) = &target else { return Term::Poison };
        let (dtype, rank) = (wanted.array.dtype, wanted.array.rank());
        if rank > 0 {
            return self.report(errors_of_calls::cast_to_array(ty.span));
        }
        let value = match (terms.pop(), args) {
            (Some(value), [ast::ArgNode { name: None, .. }]) => value,
            _ => return self.report(errors_of_calls::too_many(dtype.name(), 1, args.len(), span)),
        };
        if let Term::Poison = value {
            return Term::Poison;
        }
        match dtype == DType::Key {
            // A key is created from a seed, not converted.
            true => self.call_builtin("key", vec![(None, value, span)], span),
            false => self.call_builtin("cast", vec![(None, value, span), (None, target, ty.span)], span),
        }
    }

    fn call_lambda(&mut self, lambda: &Lambda, args: Vec<Arg>, span: Span) -> Term {
        if self.expansions.len() >= MAX_CALLS {
            return self.report(items::too_many_calls(span));
        }
        if !self.may_expand("a lambda", span) {
            return Term::Poison;
        }
        let source = &lambda.source;
        if args.len() != source.params.len() {
            let error = errors_of_calls::too_many("this lambda", source.params.len(), args.len(), span);
            return self.report(error.label(source.span, "the lambda is here"));
        }
        if let Some(Arg { name: Some(keyword), span, .. }) = args.iter().find(|arg| arg.name.is_some()) {
            let error = unknown_keyword("this lambda", keyword, &[], *span);
            return self.report(error.help("a lambda takes positional arguments only"));
        }
        self.expansions.push(Expansion {
            file: source.file,
            name: "a lambda".to_string(),
            item: None,
            call: Some(span),
            is_template: true,
            scopes: vec![Rc::clone(&lambda.captures), Rc::default()],
        });
        for (param, arg) in source.params.iter().zip(args) {
            let mut term = arg.term;
            if let Some(ty) = &param.ty {
                let ty = self.resolve_parameter(ty, &SizeParams::new());
                term = self.annotate(term, &ty, &mut Bindings::new(), arg.span, "this parameter");
            }
            self.bind_pattern(&param.pattern, term, false);
        }
        let result = self.expr(&source.body);
        self.expansions.pop();
        result
    }

    fn call_item(&mut self, id: ItemId, mut args: Vec<Arg>, span: Span) -> Term {
        let set = self.set;
        let ItemKind::Fn(function) = &set.file(id.file).program.items[id.index].kind else { return Term::Poison };
        self.expanded.insert(id);
        if let Some(from) = self.expansions.iter().position(|expansion| expansion.item == Some(id)) {
            let mut calls: Vec<String> =
                self.expansions[from..].iter().map(|expansion| format!("`{}`", expansion.name)).collect();
            calls.push(format!("`{}`", function.name.name));
            return self.report(items::recursion(&function.name.name, span, &calls));
        }
        if self.expansions.len() >= MAX_CALLS {
            return self.report(items::too_many_calls(span));
        }
        if !self.may_expand(&function.name.name, span) {
            return Term::Poison;
        }
        let out = take_out(function, &mut args);
        let Some(terms) = self.assign_arguments(id.file, function, args, span) else { return Term::Poison };
        if function.is_manual() {
            return self.call_manual(id, function, terms, span);
        }
        self.expansions.push(function_expansion(id, function, Some(span)));
        let is_checkpoint = self.recomputed.contains(&function.body.span);
        let result = self.recomputed_if(is_checkpoint, |checker| match &function.region {
            Some(region) => checker.expand_region(function, region, (terms, out), span),
            None => checker.expand(function, terms, span),
        });
        self.expansions.pop();
        result
    }

    /// Counts a call that is expanded; false if there have been too many, which is reported once.
    fn may_expand(&mut self, function: &str, span: Span) -> bool {
        self.expanded_calls += 1;
        if self.expanded_calls == MAX_EXPANDED + 1 {
            let called = |expansion: &Expansion| match expansion.item {
                Some(_) => format!("`{}`", expansion.name),
                None => expansion.name.clone(),
            };
            let mut calls: Vec<String> = self.expansions.iter().map(called).collect();
            calls.push(if function == "a lambda" { function.to_string() } else { format!("`{function}`") });
            self.report(items::too_much_expanded(MAX_EXPANDED, &calls, span));
        }
        self.expanded_calls <= MAX_EXPANDED
    }

    /// The default value of a parameter: of constants only, so that it is the same everywhere.
    fn default_value(&mut self, file: FileId, default: &Expr) -> Term {
        self.expansions.push(Expansion {
            file,
            name: "a default value".to_string(),
            item: None,
            call: None,
            is_template: false,
            scopes: vec![Rc::default()],
        });
        let term = self.expr(default);
        self.expansions.pop();
        term
    }

    /// Orders a call's arguments by the function's parameters.
    fn assign_arguments(
        &mut self,
        file: FileId,
        function: &FnItem,
        args: Vec<Arg>,
        span: Span,
    ) -> Option<Vec<(Term, Span)>> {
        let name = &function.name.name;
        let params: Vec<&str> = function
            .params
            .iter()
            .map(|param| match &param.pattern.kind {
                ast::PatternKind::Name(name) => name.as_str(),
                ast::PatternKind::Wildcard | ast::PatternKind::Tuple(_) | ast::PatternKind::Struct(_) => "_",
            })
            .collect();
        let mut terms: Vec<Option<(Term, Span)>> = vec![None; params.len()];
        let positional = args.iter().filter(|arg| arg.name.is_none()).count();
        if positional > params.len() {
            let error = errors_of_calls::too_many(name, params.len(), args.len(), span);
            self.report(error.label(function.name.span, format!("`{name}` is declared here")));
            return None;
        }
        let mut next = 0;
        for arg in args {
            let at = match &arg.name {
                None => {
                    next += 1;
                    next - 1
                }
                Some(keyword) => match params.iter().position(|param| param == keyword) {
                    Some(at) => at,
                    None => {
                        let error = unknown_keyword(name, keyword, &params, arg.span);
                        self.report(error.label(function.name.span, format!("`{name}` is declared here")));
                        return None;
                    }
                },
            };
            if terms[at].is_some() {
                self.report(given_twice(name, params[at], arg.span));
                return None;
            }
            terms[at] = Some((arg.term, arg.span));
        }
        for (term, param) in terms.iter_mut().zip(&function.params) {
            if let (None, Some(default)) = (&term, &param.default) {
                *term = Some((self.default_value(file, default), default.span));
            }
        }
        if let Some(at) = terms.iter().position(Option::is_none) {
            let error = missing(name, params[at], span);
            self.report(error.label(function.params[at].span, "declared here"));
            return None;
        }
        Some(terms.into_iter().flatten().collect())
    }

    /// Expands the body of a function whose expansion has been pushed.
    fn expand(&mut self, function: &FnItem, terms: Vec<(Term, Span)>, call: Span) -> Term {
        let Some((params, tys, mut bindings)) = self.inferred(function, &terms, call) else { return Term::Poison };
        for ((param, ty), (term, span)) in function.params.iter().zip(&tys).zip(terms) {
            let term = match ty {
                None => term,
                Some(ty) => self.conform(term, ty, &bindings, span, &parameter_place(function, param)),
            };
            self.bind_pattern(&param.pattern, term, false);
        }
        self.note_template(function);
        let result = self.block(&function.body);
        match &function.ret {
            None => result,
            Some(ret) => {
                let ty = self.resolve(ret, &params);
                let place = format!("the result of `{}`", function.name.name);
                self.annotate(result, &ty, &mut bindings, value_span(function), &place)
            }
        }
    }

    /// The size parameters of a function, the types of its parameters, and the sizes, as the arguments of a call determine them; its
    /// element types are bound.
    pub(crate) fn inferred(
        &mut self,
        function: &FnItem,
        terms: &[(Term, Span)],
        call: Span,
    ) -> Option<(SizeParams, Vec<Option<Ty>>, Bindings)> {
        let params = size_params(function);
        self.bind_element_types(function, terms);
        let tys = self.parameter_types(function, &params);
        let bindings = self.infer_sizes(function, terms, &tys, call)?;
        Some((params, tys, bindings))
    }

    pub(crate) fn parameter_types(&mut self, function: &FnItem, params: &SizeParams) -> Vec<Option<Ty>> {
        function.params.iter().map(|param| param.ty.as_ref().map(|ty| self.resolve_parameter(ty, params))).collect()
    }

    /// Binds the function's element type parameters from its arguments; they become visible as types. Arrays take precedence over
    /// numbers, which take their type.
    fn bind_element_types(&mut self, function: &FnItem, terms: &[(Term, Span)]) {
        let mut found: Vec<(&Ident, Option<ElementOf>, Option<ElementOf>)> =
            function.size_params.iter().map(|param| (param, None, None)).collect();
        for (param, (term, _)) in function.params.iter().zip(terms) {
            if let Some(ty) = &param.ty {
                self.learn_element_types(ty, term, &mut found);
            }
        }
        for (param, of_array, of_number) in found {
            if let Some((dtype, complex)) = of_array.or(of_number) {
                let array = ArrayType::scalar(dtype);
                let ty = TypeTerm { array, complex, sharding: None, varying: Default::default() };
                self.bind(&param.name, Term::Type(ty), false, param.span);
            }
        }
    }

    fn learn_element_types(
        &self,
        ty: &ast::TypeExpr,
        term: &Term,
        found: &mut [(&Ident, Option<ElementOf>, Option<ElementOf>)],
    ) {
        let name = match &ty.kind {
            TypeExprKind::Array { dtype: ElementType::Param(name), .. } => name,
            TypeExprKind::Named { module: None, name, args } if args.is_empty() => name,
            TypeExprKind::Tuple(tys) => {
                if let Term::Tuple(terms) = term {
                    tys.iter().zip(terms).for_each(|(ty, term)| self.learn_element_types(ty, term, found));
                }
                return;
            }
            TypeExprKind::Struct(fields) => {
                if let Term::Struct(terms) = term {
                    for (name, ty) in fields {
                        if let Some((_, term)) = terms.iter().find(|(field, _)| *field == name.name) {
                            self.learn_element_types(ty, term, found);
                        }
                    }
                }
                return;
            }
            TypeExprKind::Stream(ty) | TypeExprKind::On { ty, .. } => {
                return self.learn_element_types(ty, term, found);
            }
            TypeExprKind::Array { .. } | TypeExprKind::Named { .. } => return,
        };
        if let Some((_, of_array, of_number)) = found.iter_mut().find(|(param, ..)| param.name == name.name) {
            if let Term::Array(value) = term {
                *of_array = of_array.or(Some((self.build.ty(*value).dtype(), false)));
            } else if let Some([re, _]) = term.planes() {
                *of_array = of_array.or(Some((self.build.ty(re).dtype(), true)));
            } else {
                *of_number = of_number.or_else(|| number_dtype(term).map(|dtype| (dtype, false)));
            }
        }
    }

    /// Binds the function's size parameters from the shapes of its arguments; they become visible as numbers.
    fn infer_sizes(
        &mut self,
        function: &FnItem,
        terms: &[(Term, Span)],
        tys: &[Option<Ty>],
        call: Span,
    ) -> Option<Bindings> {
        let mut bindings = Bindings::new();
        for plain in [true, false, false] {
            for ((term, _), ty) in terms.iter().zip(tys) {
                if let Some(ty) = ty {
                    self.learn(term, ty, &mut bindings, plain);
                }
            }
        }
        for param in &function.size_params {
            if matches!(self.local(&param.name).map(|binding| &binding.term), Some(Term::Type(_))) {
                continue;
            }
            let Some(size) = bindings.get(&param.name) else {
                let error = errors::sizes::unbound(&param.name, call);
                self.report(error.label(param.span, format!("`{}` is declared here", param.name)));
                return None;
            };
            self.bind(&param.name, Term::Int(*size), false, param.span);
        }
        Some(bindings)
    }

    /// Marks the expansion as a template, so that diagnostics name this call.
    pub(crate) fn note_template(&mut self, function: &FnItem) {
        let is_template = !function.size_params.is_empty() || function.params.iter().any(|param| param.ty.is_none());
        if let Some(expansion) = self.expansions.last_mut() {
            expansion.is_template = is_template;
        }
    }

    /// Expands functions that nothing calls, if their types are complete, so that their errors are found.
    pub(crate) fn expand_uncalled(&mut self) {
        let set = self.set;
        for (file, source) in set.files.iter().enumerate().filter(|(_, source)| !source.is_shipped) {
            for (index, item) in source.program.items.iter().enumerate() {
                let id = ItemId { file: FileId(file as u16), index };
                let function = match &item.kind {
                    ItemKind::Fn(function) => function,
                    ItemKind::Test(function) if self.checks_tests => function,
                    ItemKind::Test(_)
                    | ItemKind::Mesh(_)
                    | ItemKind::Const { .. }
                    | ItemKind::Type { .. }
                    | ItemKind::Import { .. } => continue,
                };
                let is_typed = function.params.iter().all(|param| param.ty.is_some());
                let is_own = self.names.find(id.file, &function.name.name) == Some(Entity::Item(id));
                if !self.expanded.contains(&id) && function.size_params.is_empty() && is_typed && is_own {
                    self.in_new_function(&function.name.name, |checker| checker.entry_body(id, function));
                }
            }
        }
    }
}

/// The result of an expansion; Poison if its error has been reported.
fn or_poison(result: Expanded<Term>) -> Result<Term, Diagnostic> {
    match result {
        Ok(term) => Ok(term),
        Err(Some(diagnostic)) => Err(diagnostic),
        Err(None) => Ok(Term::Poison),
    }
}

/// An element type: its own, or the type of the planes of complex numbers.
type ElementOf = (DType, bool);

/// The element type of a number or a list of numbers without another type.
fn number_dtype(term: &Term) -> Option<DType> {
    let Term::List(items) = term else { return term.default_dtype() };
    items.iter().filter_map(number_dtype).max_by_key(|dtype| dtype.is_float())
}

/// Takes `out=` from the arguments of an `auto` function that has no parameter of this name.
fn take_out(function: &FnItem, args: &mut Vec<Arg>) -> Option<Arg> {
    let is_auto = function.region.as_ref().is_some_and(|region| region.kind == ast::AxisKind::Auto);
    let is_param = function
        .params
        .iter()
        .any(|param| matches!(&param.pattern.kind, ast::PatternKind::Name(name) if name == "out"));
    let at = args.iter().position(|arg| arg.name.as_deref() == Some("out")).filter(|_| is_auto && !is_param)?;
    Some(args.remove(at))
}

pub fn function_expansion(id: ItemId, function: &FnItem, call: Option<Span>) -> Expansion {
    Expansion {
        file: id.file,
        name: function.name.name.clone(),
        item: Some(id),
        call,
        is_template: false,
        scopes: vec![Rc::default()],
    }
}

pub fn size_params(function: &FnItem) -> SizeParams {
    function.size_params.iter().map(|param| (param.name.clone(), Size::Param(param.name.clone()))).collect()
}

pub fn parameter_place(function: &FnItem, param: &ParamNode) -> String {
    match &param.pattern.kind {
        ast::PatternKind::Name(name) => format!("parameter `{name}` of `{}`", function.name.name),
        ast::PatternKind::Wildcard | ast::PatternKind::Tuple(_) | ast::PatternKind::Struct(_) => {
            format!("this parameter of `{}`", function.name.name)
        }
    }
}

/// The source position of a function's result: its last expression.
pub fn value_span(function: &FnItem) -> Span {
    let mut block = &function.body;
    loop {
        let Some(value) = &block.value else { return block.span };
        let ExprKind::Block(inner) = &value.kind else { return value.span };
        block = inner;
    }
}
