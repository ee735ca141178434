//! `auto` and `explicit` functions, which override the axis types of the mesh along some axes.
//!
//! The builder overrides these axes while such a function is expanded, so that each statement is typed by the rule around it. Where types
//! decide, every array has a layout. An `explicit` function reshards each argument to the layout of its parameter, and the result of an
//! `auto` function gets the declared layout or the layout of `out=` at the call.

use crate::Checker;
use crate::errors::manual as errors_of_manual;
use crate::expand::calls::{parameter_place, value_span};
use crate::regions::manual::bare;
use spmdc_grammar::ast::{AxisKind, FnItem, RegionNode};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::requires;
use spmdc_grammar::span::Span;
use spmdc_ir::call::arg::Arg;
use spmdc_ir::call::arg::complete;
use spmdc_ir::call::errors::no_layout;
use spmdc_ir::call::fields::FieldName;
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees;
use spmdc_layout::types::AxisSet;

/// The arguments of a call, each with its position, and its `out=`.
type Given = (Vec<(Term, Span)>, Option<Arg>);

impl Checker<'_> {
    /// Expands the body of such a function, whose expansion has been pushed.
    pub(crate) fn expand_region(
        &mut self,
        function: &FnItem,
        region: &RegionNode,
        (terms, out): Given,
        call: Span,
    ) -> Term {
        let Some(axes) = self.axes_of_region(function, region, call) else { return Term::Poison };
        let outer = self.build.turned();
        let inner = outer.either(axes.minus(self.build.mesh().of_kind(region.kind)));
        let result = self.body_of_region(function, (region.kind == AxisKind::Explicit, inner), (terms, out), call);
        self.build.turn(outer);
        result
    }

    fn body_of_region(
        &mut self,
        function: &FnItem,
        (is_explicit, inner): (bool, AxisSet),
        (terms, out): Given,
        call: Span,
    ) -> Term {
        let Some((params, tys, mut bindings)) = self.inferred(function, &terms, call) else { return Term::Poison };
        let outer = self.build.turned();
        if is_explicit {
            self.build.turn(inner);
        }
        for ((param, ty), (term, span)) in function.params.iter().zip(&tys).zip(terms) {
            let place = parameter_place(function, param);
            let crosses = std::mem::replace(&mut self.crosses, is_explicit);
            let term = match ty {
                None => self.untyped(term, &place, span),
                Some(ty) => self.conform(term, ty, &bindings, span, &place),
            };
            self.crosses = crosses;
            self.bind_pattern(&param.pattern, term, false);
        }
        self.build.turn(inner);
        self.note_template(function);
        let result = self.block(&function.body);
        let (span, place) = (value_span(function), format!("the result of `{}`", function.name.name));
        let mut ty = function.ret.as_ref().map(|ret| self.resolve(ret, &params));
        let result = match ty.take_if(|_| out.is_some()) {
            Some(ty) => self.annotate(result, &bare(&ty), &mut bindings, span, &place),
            None => result,
        };
        if !is_explicit {
            self.build.turn(outer);
        }
        let crosses = std::mem::replace(&mut self.crosses, !is_explicit && (inner != outer || out.is_some()));
        let result = match (ty, out) {
            (Some(ty), None) => self.annotate(result, &ty, &mut bindings, span, &place),
            (None, None) => self.untyped(result, &place, span),
            (_, Some(out)) => self.in_layouts(result, &out.term, out.span, &place),
        };
        self.crosses = crosses;
        result
    }

    /// The axes of a region; None if there is an error.
    fn axes_of_region(&mut self, function: &FnItem, region: &RegionNode, call: Span) -> Option<AxisSet> {
        if region.axes.is_empty() {
            return Some(self.build.mesh().all().minus(self.build.manual()));
        }
        let known: Option<Vec<u8>> = region.axes.iter().map(|axis| self.build.mesh().find(&axis.name)).collect();
        let axes: AxisSet = known?.into_iter().map(usize::from).collect();
        let over_manual = axes.intersect(self.build.manual());
        if over_manual.is_empty() {
            return Some(axes);
        }
        let shown = self.build.mesh().display_set(over_manual);
        self.report(errors_of_manual::region_over_manual(&function.name.name, region.kind.name(), &shown, call));
        None
    }

    /// A term without a type: nothing in it may need a layout.
    fn untyped(&mut self, term: Term, place: &str, span: Span) -> Term {
        if self.holds_open(&term) { self.without_layout(place, span) } else { term }
    }

    /// Whether some array in a term comes to explicit axes without a layout.
    fn holds_open(&self, term: &Term) -> bool {
        let mut leaves = Vec::new();
        trees::leaves(term, "", &mut leaves);
        leaves.into_iter().any(|(_, leaf)| {
            let in_list = matches!(leaf, Term::List(parts) if parts.iter().any(|part| self.holds_open(part)));
            in_list || matches!(leaf, Term::Array(value) if self.build.comes_in(*value))
        })
    }

    /// E0307
    pub(crate) fn without_layout(&mut self, place: &str, span: Span) -> Term {
        self.report(no_layout(place, span))
    }

    /// The result of a call in the layouts of its `out=`.
    fn in_layouts(&mut self, term: Term, out: &Term, span: Span, place: &str) -> Term {
        match (term, out) {
            (Term::Poison, _) => Term::Poison,
            (Term::Tuple(parts), Term::Tuple(outs)) if parts.len() == outs.len() => {
                let parts = parts.into_iter().zip(outs);
                Term::Tuple(parts.map(|(part, out)| self.in_layouts(part, out, span, place)).collect())
            }
            (Term::Struct(parts), Term::Struct(outs))
                if parts.iter().map(|(name, _)| name).eq(outs.iter().map(|(name, _)| name)) =>
            {
                let fields = parts.into_iter().zip(outs);
                let field = |((name, part), (own, out)): ((FieldName, Term), &(FieldName, Term))| {
                    self.build.fields.link(name.place, own.place);
                    (name, self.in_layouts(part, out, span, place))
                };
                Term::Struct(fields.map(field).collect())
            }
            (Term::Complex(planes), Term::Sharding(_)) => {
                let planes = planes.iter().map(|plane| self.in_layouts(plane.clone(), out, span, place));
                let planes: Vec<Term> = planes.collect();
                trees::rebuild(&Term::Complex(Box::new([Term::Poison, Term::Poison])), &mut planes.into_iter())
            }
            (term, Term::Sharding(out)) if trees::is_number(&term) => {
                let Some(value) = self.value(&term, span) else { return Term::Poison };
                match complete(out.sharding.clone(), self.build.ty(value).rank(), span) {
                    Ok(layout) => self.lay_out(value, layout, span, place),
                    Err(diagnostic) => self.report(diagnostic),
                }
            }
            (term, out) => {
                let (found, out) = (self.display_term(&term), out.describe());
                let message = requires(
                    "`out`",
                    format_args!("a sharding such as P(X, _) for each array of {place}, `{found}`"),
                    out,
                );
                self.report(Diagnostic::error(Code::E0210, span, message))
            }
        }
    }
}
