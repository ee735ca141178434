//! The entry function: its parameters are the program's arguments, its result is the program's results, both leaf by leaf.

use crate::Checker;
use crate::errors::{self, items};
use crate::expand::calls::{function_expansion, size_params, value_span};
use crate::program::names::ItemId;
use crate::program::quotes;
use crate::program::sources::SourceSet;
use crate::types::declared::{SizeParams, Ty};
use crate::types::sizes::Bindings;
use spmdc_abi::Plane;
use spmdc_grammar::ast::{FnItem, ItemKind, PatternKind};
use spmdc_grammar::span::Span;
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees::{self, joined};
use spmdc_ir::program::placement;
use spmdc_ir::program::{Func, Module, Param, ResultInfo, Stage};
use spmdc_layout::sharding::Sharding;
use spmdc_ops::builder;

impl<'a> Checker<'a> {
    /// Expands the entry function, and then the functions that it did not reach.
    pub(crate) fn program(&mut self, entry: Option<&str>) -> Option<Module> {
        self.all_constants();
        let name = entry.unwrap_or_else(|| self.default_entry());
        // In dumps the name of a test would begin one.
        self.build.name_function(if name.contains('"') { "test" } else { name });
        let module = self.find_entry(name, entry.is_some()).map(|(id, function)| {
            if self.is_entry(function) {
                self.entry_body(id, function);
            }
            let mut func = self.build.take_function();
            if self.build.mesh().is_several() && !self.has_errors() {
                self.place(&mut func);
            }
            quotes::quote(&mut func, self.set);
            Module { stage: self.exact.unwrap_or(Stage::Typed), mesh: self.build.mesh().clone(), func }
        });
        if self.exact.is_none() {
            self.expand_uncalled();
        }
        module
    }

    /// Checks that operands are on one mesh, and names the meshes to which values go.
    fn place(&mut self, func: &mut Func) {
        if self.exact.is_some_and(|stage| stage >= Stage::Propagated) {
            let message = "running the dump of one of several meshes";
            self.report(errors::items::not_yet(Span::default(), message));
        } else if let Err(errors) = placement::resolve(func, self.build.mesh()) {
            errors.into_iter().for_each(|error| {
                self.report(error);
            });
        }
    }

    /// `main`. In a dump of another entry, the last function, after the manual functions that it calls.
    fn default_entry(&self) -> &'a str {
        let set: &'a SourceSet = self.set;
        let mut functions = set.file(SourceSet::ROOT).program.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Fn(function) => Some(function.name.name.as_str()),
            ItemKind::Mesh(_)
            | ItemKind::Test(_)
            | ItemKind::Const { .. }
            | ItemKind::Type { .. }
            | ItemKind::Import { .. } => None,
        });
        match self.exact {
            Some(_) if functions.clone().all(|name| name != "main") => functions.next_back().unwrap_or("main"),
            Some(_) | None => "main",
        }
    }

    /// Finds the entry function; `chosen` if the command line names it.
    fn find_entry(&mut self, name: &str, chosen: bool) -> Option<(ItemId, &'a FnItem)> {
        let set: &'a SourceSet = self.set;
        let items = &set.file(SourceSet::ROOT).program.items;
        let mut functions = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let ItemKind::Fn(function) | ItemKind::Test(function) = &item.kind {
                if function.name.name == name {
                    return Some((ItemId { file: SourceSet::ROOT, index }, function));
                }
                functions.push(function.name.name.as_str());
            }
        }
        // If the file has syntax errors, the entry may be among the unreadable functions.
        let end = items.last().map_or(0, |item| item.span.end as usize);
        let span = Span::new(SourceSet::ROOT, end, end);
        let error = items::no_entry(name, span, &functions);
        self.report(if chosen { error.of_command() } else { error });
        None
    }

    /// Checks that every parameter has a type, as arguments come from outside.
    fn is_entry(&mut self, function: &FnItem) -> bool {
        let name = &function.name.name;
        if let Some(first) = function.size_params.first() {
            self.report(items::generic_entry(name, first.span));
            return false;
        }
        if let Some((param, default)) = function.params.iter().find_map(|param| Some((param, param.default.as_ref()?)))
        {
            self.report(items::entry_default(name, &pattern_name(function, param, 0), default.span));
            return false;
        }
        let untyped: Vec<(String, Span)> = function
            .params
            .iter()
            .filter(|param| param.ty.is_none())
            .map(|param| (pattern_name(function, param, 0), param.span))
            .collect();
        for (param, span) in &untyped {
            self.report(items::untyped_entry(name, param, *span));
        }
        untyped.is_empty()
    }

    /// Runs `body` on a new function, which is discarded.
    pub(crate) fn in_new_function(&mut self, name: &str, body: impl FnOnce(&mut Self)) {
        let fresh = builder(self.build.mesh().clone(), Func::new(name));
        let outer = std::mem::replace(&mut self.build, fresh);
        body(self);
        let inner = std::mem::replace(&mut self.build, outer);
        self.build.fields.pairs.extend(inner.fields.pairs);
    }

    /// Expands a function whose arguments come from outside; all its types are declared.
    pub(crate) fn entry_body(&mut self, id: ItemId, function: &FnItem) {
        self.expanded.insert(id);
        self.expansions.push(function_expansion(id, function, None));
        let tys = self.parameter_types(function, &SizeParams::new());
        let terms: Vec<(Term, Span)> = function
            .params
            .iter()
            .zip(&tys)
            .enumerate()
            .map(|(position, (param, ty))| {
                let name = pattern_name(function, param, position);
                let ty = ty.as_ref().unwrap_or(&Ty::Poison);
                (self.entry_parameter(&name, ty, function.is_manual(), param.span), param.span)
            })
            .collect();
        let result = if function.is_manual() {
            self.expansions.pop();
            let result = self.call_manual(id, function, terms, function.name.span);
            self.expansions.push(function_expansion(id, function, None));
            result
        } else if let Some(region) = &function.region {
            self.expand_region(function, region, (terms, None), function.name.span)
        } else {
            for (param, (term, _)) in function.params.iter().zip(terms) {
                self.bind_pattern(&param.pattern, term, false);
            }
            let result = self.block(&function.body);
            match &function.ret {
                None => result,
                // The values of a dump have their types already.
                Some(_) if self.exact.is_some() => result,
                Some(ret) => {
                    let ty = self.resolve(ret, &size_params(function));
                    let place = format!("the result of `{}`", function.name.name);
                    self.annotate(result, &ty, &mut Bindings::new(), value_span(function), &place)
                }
            }
        };
        self.entry_results(&result, value_span(function));
        self.expansions.pop();
    }

    /// Adds a parameter of the program for each leaf.
    fn entry_parameter(&mut self, name: &str, declared: &Ty, is_manual: bool, span: Span) -> Term {
        let ty = declared;
        let mut leaves = Vec::new();
        if self.parameters(ty, &Bindings::new(), name, &mut leaves).is_none() {
            return Term::Poison;
        }
        let mut terms = Vec::new();
        let mut meshes = Vec::new();
        declared.meshes(self.build.mesh(), &mut meshes);
        debug_assert_eq!(meshes.len(), leaves.len(), "each leaf has its mesh");
        for ((path, mut ty, span, plane), on) in leaves.into_iter().zip(meshes) {
            if is_manual {
                // Inside, the value varies as its type says; outside, its dimensions are split.
                ty.varying = Default::default();
            }
            let is_stream = ty.array.is_stream;
            let origin = self.build.origin_at(span);
            let value = self.build.new_value(ty, origin);
            if let (true, false, Some(layout)) = (is_stream, is_manual || self.exact.is_some(), rows_of(declared)) {
                self.build.lay_out_rows(value, layout);
            }
            let info = self.build.info_mut(value);
            (info.name, info.named) = (Some(path.clone()), span);
            self.build.add_param(Param { name: path, span, plane, on }, value);
            terms.push(Term::Array(value));
        }
        let _ = span;
        tree_of(ty, &mut terms.into_iter())
    }

    fn entry_results(&mut self, result: &Term, span: Span) {
        let mut leaves = Vec::new();
        results_of(result, "", &mut leaves);
        for (path, leaf, plane) in leaves {
            if !trees::is_number(leaf) {
                if !matches!(leaf, Term::Poison) {
                    self.report(errors::types::wrong_kind("an array as the program's result", leaf.describe(), span));
                }
                continue;
            }
            let name = if path.is_empty() { "0".to_string() } else { path[1..].to_string() };
            if let Some(value) = self.value(leaf, span).and_then(|value| self.in_memory(value, "a result", span)) {
                self.build.add_result(ResultInfo { name, span, plane }, value);
            }
        }
        self.build.end_function();
        debug_assert!(
            !self.diagnostics.is_empty() || self.build.units().are_closed(),
            "only an error leaves a unit open"
        );
    }
}

/// The layout that the type of a stream gives to its rows.
fn rows_of(ty: &Ty) -> Option<Sharding> {
    match ty {
        Ty::Array(array) => array.layout(),
        Ty::Complex(_) | Ty::Tuple(_) | Ty::Struct(_) | Ty::Poison => None,
    }
}

/// The name of a parameter as an argument of the program; a pattern is named by its position, as `arg0`.
fn pattern_name(function: &FnItem, param: &spmdc_grammar::ast::ParamNode, position: usize) -> String {
    if let PatternKind::Name(name) = &param.pattern.kind {
        return name.clone();
    }
    let is_used = |name: &str| {
        function.params.iter().any(|param| matches!(&param.pattern.kind, PatternKind::Name(used) if used == name))
    };
    let mut name = format!("arg{position}");
    while is_used(&name) {
        name.push('_');
    }
    name
}

/// The leaves of the program's result, with their paths; the leaves of complex numbers are their planes.
fn results_of<'t>(term: &'t Term, path: &str, found: &mut Vec<(String, &'t Term, Option<Plane>)>) {
    if let Term::Tuple(parts) = term {
        for (position, part) in parts.iter().enumerate() {
            results_of(part, &format!("{path}.{position}"), found);
        }
    } else if let Term::Struct(fields) = term {
        for (name, field) in fields {
            results_of(field, &format!("{path}.{name}"), found);
        }
    } else if let Term::Complex(planes) = term {
        for (plane, part) in Plane::BOTH.into_iter().zip(planes.iter()) {
            found.push((format!("{path}.{}", plane.name()), part, Some(plane)));
        }
    } else {
        found.push((path.to_string(), term, None));
    }
}

fn tree_of(ty: &Ty, leaves: &mut impl Iterator<Item = Term>) -> Term {
    match ty {
        Ty::Array(_) => leaves.next().expect("each array of a parameter has its value"),
        Ty::Complex(_) => {
            let mut plane = || leaves.next().expect("complex numbers have two planes");
            joined(plane(), plane())
        }
        Ty::Tuple(parts) => Term::Tuple(parts.iter().map(|part| tree_of(part, leaves)).collect()),
        Ty::Struct(fields) => {
            Term::Struct(fields.iter().map(|(name, field)| (name.clone(), tree_of(field, leaves))).collect())
        }
        Ty::Poison => Term::Poison,
    }
}
