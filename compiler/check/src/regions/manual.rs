//! Manual functions: code per device.
//!
//! A call of `manual(X) fn f(x: f32[N@X]) -> f32` becomes a `manual` statement. Its operands are resharded to the layouts of the signature;
//! its block sees one device's part of each; its results are joined according to the result type. Inside, types have the set of these axes
//! along which a value varies: the union of the sets of its operands and of the enclosing conditions. A result that is declared equal on
//! all devices must not vary, and all devices of a collective's group must reach it.

use crate::Checker;
use crate::errors::{self, manual as errors_of_manual};
use crate::expand::calls::{function_expansion, parameter_place, value_span};
use crate::program::names::ItemId;
use crate::regions::summed::{self, SpreadResult};
use crate::types::declared::{ArrayTy, DimTy, Ty};
use crate::types::sizes::Bindings;
use spmdc_abi::ReduceOp;
use spmdc_grammar::ast::FnItem;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::call::scoped::Scoped;
use spmdc_ir::call::term::Term;
use spmdc_ir::call::trees;
use spmdc_ir::program::choice::{cost_of_move, spaced};
use spmdc_ir::program::control::{Control, ManualRegion};
use spmdc_ir::program::{Block, Stage, Stmt, Value, walk};
use spmdc_layout::mesh::AxisKind;
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{ArrayType, AxisSet, Type};
use spmdc_ops::collective::cast::{ManualState, cast};
use spmdc_ops::reshard::Reshard;

/// A leaf of an argument or result, with its declared type if there is one.
struct BorderLeaf<'t> {
    term: Term,
    ty: Option<&'t ArrayTy>,
}

/// The results of a region.
#[derive(Default)]
struct Left {
    /// The local values.
    values: Vec<Value>,
    /// The types of the joined values.
    types: Vec<Type>,
    /// The layouts of the joined values along the manual axes.
    outputs: Vec<Sharding>,
    /// The values that are the same on devices along axes over which the result is split.
    spread: Vec<SpreadResult>,
}

/// The manual axes along which a value is unreduced or reduced.
#[derive(Clone, Copy, Default)]
struct States {
    unreduced: AxisSet,
    reduced: AxisSet,
}

/// The block of a region under construction, and its operands.
struct Region {
    axes: AxisSet,
    operands: Vec<Value>,
    inputs: Vec<Sharding>,
    block: Block,
}

impl Checker<'_> {
    pub(crate) fn call_manual(&mut self, id: ItemId, function: &FnItem, terms: Vec<(Term, Span)>, span: Span) -> Term {
        let name = &function.name.name;
        if !self.build.manual().is_empty() {
            return self.report(errors_of_manual::nested(name, span));
        }
        let listed = function.region.as_ref().map_or(&[] as &[_], |region| &region.axes);
        let known: Option<Vec<u8>> = listed.iter().map(|axis| self.build.mesh().find(&axis.name)).collect();
        let Some(known) = known else { return Term::Poison };
        let axes: AxisSet = match known.is_empty() {
            true => self.build.mesh().all(),
            false => known.into_iter().map(usize::from).collect(),
        };
        self.expansions.push(function_expansion(id, function, Some(span)));
        let result = self.manual_region(function, axes, terms, span);
        self.expansions.pop();
        result.unwrap_or(Term::Poison)
    }

    fn manual_region(
        &mut self,
        function: &FnItem,
        axes: AxisSet,
        terms: Vec<(Term, Span)>,
        span: Span,
    ) -> Option<Term> {
        let (params, tys, bindings) = self.inferred(function, &terms, span)?;
        let mut region = Region { axes, operands: Vec::new(), inputs: Vec::new(), block: Block::default() };
        let mut inner = Vec::new();
        for ((param, ty), (term, arg_span)) in function.params.iter().zip(&tys).zip(terms) {
            let place = parameter_place(function, param);
            let term = match ty {
                Some(ty) => self.conform(term, &bare(ty), &bindings, arg_span, &place),
                None => term,
            };
            let mut leaves = Vec::new();
            pair(&term, ty.as_ref(), &mut leaves);
            let mut parts = Vec::new();
            for leaf in leaves {
                parts.push(self.enter(&mut region, leaf, &function.name.name, &place, arg_span)?);
            }
            inner.push(trees::rebuild(&term, &mut parts.into_iter()));
        }
        let start = std::mem::take(&mut region.block);
        let fill = |checker: &mut Self| {
            for (param, term) in function.params.iter().zip(inner) {
                checker.bind_pattern(&param.pattern, term, false);
            }
            checker.note_template(function);
            let result = checker.block(&function.body);
            let ret = function.ret.as_ref().map(|ret| checker.resolve(ret, &params));
            let left = checker.leave(function, axes, &result, ret.as_ref(), &bindings);
            (result, left)
        };
        let (block, (result, left)) = self.in_region(axes, |checker| checker.in_block(start, fill));
        region.block = block;
        let Left { values, types, outputs, spread } = left?;
        region.block.results = values;
        for warning in summed::warnings(&self.build, &region.block, &spread) {
            let warning = self.with_call_site(warning);
            self.warnings.push(warning);
        }
        self.take_captures(&mut region, span)?;
        let origin = self.build.origin_at(span);
        let results: Vec<Value> = types.into_iter().map(|ty| self.build.new_value(ty, origin.clone())).collect();
        let (name, inputs, body) = (function.name.name.clone(), region.inputs, region.block);
        let control = Control::Manual(ManualRegion { name, axes, inputs, outputs, body });
        let stmt = Stmt::of_control(control, region.operands, results.clone(), origin);
        self.build.innermost().stmts.push(stmt);
        Some(trees::rebuild(&result, &mut results.into_iter().map(Term::Array)))
    }

    /// Passes a leaf of an argument into the region; returns the term that the body sees.
    fn enter(
        &mut self,
        region: &mut Region,
        leaf: BorderLeaf,
        function: &str,
        place: &str,
        span: Span,
    ) -> Option<Term> {
        if !trees::is_number(&leaf.term) {
            // Functions and strings are no data: the body sees them unchanged.
            return Some(leaf.term);
        }
        if !matches!(leaf.term, Term::Array(_)) && leaf.ty.is_none() {
            return Some(leaf.term);
        }
        let value = self.value(&leaf.term, span)?;
        let found = self.build.ty(value).clone();
        let manual = region.axes;
        let others = self.build.mesh().all().minus(manual);
        let explicit = self.build.mesh().of_kind(AxisKind::Explicit).intersect(others);
        let has_auto = !self.build.mesh().of_kind(AxisKind::Auto).intersect(others).is_empty();
        let exact = leaf.ty.and_then(|ty| self.exact_layout(ty));
        let is_stream = found.array.is_stream;
        let layout = leaf.ty.and_then(ArrayTy::layout);
        let mut to = match (&exact, &layout) {
            (Some(exact), _) => exact.clone(),
            (None, Some(layout)) => layout.clone(),
            (None, None) if is_stream => Sharding::replicated(found.rank()),
            (None, None) => Sharding {
                dims: found
                    .sharding
                    .dims
                    .iter()
                    .map(|dim| DimSharding { axes: only(&dim.axes, explicit), open: true, alignment: None })
                    .collect(),
                unreduced: AxisSet::EMPTY,
                reduced: AxisSet::EMPTY,
                combine: ReduceOp::Sum,
            },
        };
        if !has_auto && exact.is_none() {
            to = to.close();
        }
        if let Some(ty) = leaf.ty
            && layout.is_some()
        {
            if exact.is_none() && !is_stream {
                self.check_explicit(value, &to, explicit, place, span)?;
            }
            self.check_division(&found.array, &to, manual, ty.span)?;
        }
        if to.dims.iter().any(|dim| !manual_axes_come_first(&dim.axes, manual)) {
            self.report(errors::items::not_yet(span, "a manual axis that is minor to another axis of one dimension"));
            return None;
        }
        let of_rows = without(&to, manual);
        let states = self.states(&to, manual);
        let local = Type {
            array: self.local_shape(&found.array, &to, manual),
            sharding: if is_stream { Sharding::replicated(found.rank()) } else { states.added_to(&of_rows) },
            varying: to.named_axes().minus(states.unreduced).minus(to.reduced).intersect(manual),
        };
        region.inputs.push(within(&to, manual));
        let operand = if found.sharding == to || exact.is_some() || is_stream {
            value
        } else {
            self.build.set_span(span);
            let moved = self.build.emit1(Reshard::request(to), &[value]);
            let moved = match moved {
                Ok(moved) => moved,
                Err(diagnostic) => {
                    self.report(diagnostic);
                    return None;
                }
            };
            if let Some(stmt) = self.build.innermost().stmts.last_mut() {
                stmt.origin.reason = format!("the signature of `{function}` says how {place} is cut");
            }
            moved
        };
        region.operands.push(operand);
        let origin = self.build.origin_at(span);
        let inner = self.build.new_value(local, origin);
        if let (Some(_), Some(ty)) = (&exact, leaf.ty) {
            self.build.info_mut(inner).origin.turned = ty.turned;
        }
        if exact.is_none() {
            let outer = self.build.info(value);
            let (name, named) = (outer.name.clone(), outer.named);
            let info = self.build.info_mut(inner);
            (info.name, info.named) = (name, named);
        }
        region.block.params.push(inner);
        if is_stream && exact.is_none() && layout.is_some() {
            self.build.lay_out_rows(inner, of_rows);
        }
        Some(Term::Array(inner))
    }

    /// Checks that the argument has the declared layout on axes that stay explicit inside, as for any function.
    fn check_explicit(
        &mut self,
        value: Value,
        to: &Sharding,
        explicit: AxisSet,
        place: &str,
        span: Span,
    ) -> Option<()> {
        let found = self.build.ty(value).clone();
        let agrees = to
            .dims
            .iter()
            .zip(&found.sharding.dims)
            .all(|(wanted, found)| wanted.open || only(&wanted.axes, explicit) == only(&found.axes, explicit));
        if agrees {
            return Some(());
        }
        let wanted = self.build.annotated(&Type { sharding: to.close(), ..found.clone() });
        let shown = self.build.annotated(&found);
        let origin = self.build.info(value).origin.span;
        let reshard = spaced(&to.close(), self.build.mesh());
        let mut error = errors::shardings::contradiction(place, &wanted, &shown, &reshard, span, origin);
        // A part of a struct or tuple has no text of its own.
        if !trees::is_part(place) {
            let note = cost_of_move(&found, &to.close(), self.build.mesh()).0;
            error = error.edit(span, format!("reshard({}, {reshard})", self.source(span)), note);
        }
        self.report(error);
        None
    }

    fn check_division(&mut self, array: &ArrayType, to: &Sharding, manual: AxisSet, span: Span) -> Option<()> {
        for (&size, dim) in array.shape.iter().zip(&to.dims) {
            let axes = only(&dim.axes, manual);
            let blocks = self.build.mesh().size_of(&axes);
            if size % blocks != 0 {
                let axes = self.build.mesh().display_axes(&axes);
                self.report(errors_of_manual::does_not_divide(size, &axes, blocks, span));
                return None;
            }
        }
        Some(())
    }

    fn local_shape(&self, array: &ArrayType, layout: &Sharding, manual: AxisSet) -> ArrayType {
        let dims = array.shape.iter().zip(&layout.dims);
        let shape: Vec<usize> =
            dims.map(|(size, dim)| size / self.build.mesh().size_of(&only(&dim.axes, manual))).collect();
        ArrayType { shape, ..array.clone() }
    }

    /// The region's results.
    fn leave(
        &mut self,
        function: &FnItem,
        axes: AxisSet,
        result: &Term,
        ret: Option<&Ty>,
        bindings: &Bindings,
    ) -> Option<Left> {
        let span = value_span(function);
        if matches!(result, Term::Poison) {
            return None;
        }
        if let Some(ret) = ret
            && !fits(result, ret)
        {
            let (wanted, found) = (self.display_ty(ret, bindings), self.display_term(result));
            let place = format!("the result of `{}`", function.name.name);
            self.report(errors::types::mismatch(&place, &wanted, &found, span));
            return None;
        }
        let mut leaves = Vec::new();
        pair(result, ret, &mut leaves);
        let (mut left, mut is_whole) = (Left::default(), true);
        for leaf in leaves {
            is_whole &= self.leave_leaf(function, axes, &leaf, (bindings, span), &mut left).is_some();
        }
        is_whole.then_some(left)
    }

    fn leave_leaf(
        &mut self,
        function: &FnItem,
        manual: AxisSet,
        leaf: &BorderLeaf,
        (bindings, span): (&Bindings, Span),
        left: &mut Left,
    ) -> Option<()> {
        if !trees::is_number(&leaf.term) {
            if !matches!(leaf.term, Term::Poison) {
                let found = leaf.term.describe();
                self.report(errors::types::wrong_kind("an array as a result of a `manual` function", found, span));
            }
            return None;
        }
        let is_literal = !matches!(leaf.term, Term::Array(_));
        self.build.set_span(span);
        let dtype = leaf.ty.filter(|_| is_literal).map(|ty| ty.dtype);
        let mut value = match self.build.materialize(&leaf.term, dtype, span) {
            Ok(value) => value,
            Err(diagnostic) => {
                self.report(diagnostic);
                return None;
            }
        };
        value = self.in_memory(value, "a result of a `manual` function", span)?;
        let layout = leaf.ty.and_then(ArrayTy::layout);
        let rank = self.build.ty(value).rank();
        let outer = layout.clone().unwrap_or_else(|| Sharding::replicated(rank));
        if let Some(ty) = leaf.ty {
            let declared = self.array_type(ty, bindings)?;
            self.check_division(&declared, &outer, manual, ty.span)?;
            let wanted = self.local_shape(&declared, &outer, manual);
            let found = self.build.ty(value).array.clone();
            if wanted != found {
                let declared = Type { array: declared, sharding: outer.close(), varying: AxisSet::EMPTY };
                let declared = declared.display(self.build.mesh());
                self.report(errors_of_manual::block_shape(&declared, &wanted.to_string(), &found.to_string(), span));
                return None;
            }
        }
        if outer.dims.iter().any(|dim| !manual_axes_come_first(&dim.axes, manual)) {
            self.report(errors::items::not_yet(span, "a manual axis that is minor to another axis of one dimension"));
            return None;
        }
        let output = within(&outer, manual);
        if let Some(ty) = leaf.ty
            && let Some(exact) = self.exact_type(ty)
        {
            left.add(value, exact, output);
            return Some(());
        }
        let own = self.build.ty(value).clone();
        let partial = own.sharding.unreduced.intersect(manual).minus(output.unreduced);
        let varies = own.varying.minus(output.used_axes()).minus(output.unreduced).union(partial);
        if !varies.is_empty() {
            let axes = self.build.mesh().display_set(varies);
            let origin = self.build.info(value).origin.span;
            let ty = Type { sharding: outer.close(), varying: AxisSet::EMPTY, ..self.build.ty(value).clone() };
            let declared = match leaf.ty {
                Some(declared) => self.display_ty(&Ty::Array(declared.clone()), bindings),
                None => ty.display(self.build.mesh()),
            };
            self.report(errors_of_manual::result_varies(&function.name.name, &declared, &axes, span, origin));
            return None;
        }
        let named = output.used_axes().union(output.unreduced);
        let axes = named.minus(own.varying).minus(own.sharding.unreduced);
        if !axes.is_empty() {
            left.spread.push(SpreadResult { value, axes, span });
        }
        let cast = self.cast_to(value, &output, span);
        value = cast.map_err(|diagnostic| self.report(diagnostic)).ok()?;
        // The other axes of the result type apply to the local value.
        if layout.is_some() {
            let inner = without(&outer, manual);
            let what = format!("the result of `{}`", function.name.name);
            let Term::Array(laid_out) = self.lay_out(value, inner, span, &what) else { return None };
            value = laid_out;
        }
        let local = self.build.ty(value).clone();
        let dims = local.shape().iter().zip(&output.dims);
        let shape: Vec<usize> = dims.map(|(size, dim)| size * self.build.mesh().size_of(&dim.axes)).collect();
        let others = self.build.mesh().of_kind(AxisKind::Auto).minus(manual);
        let mut sharding = if others.is_empty() { local.sharding.close() } else { local.sharding.clone() };
        for (dim, outer) in sharding.dims.iter_mut().zip(&output.dims) {
            dim.axes.splice(0..0, outer.axes.iter().copied());
        }
        sharding.unreduced = sharding.unreduced.union(output.unreduced);
        sharding.reduced = sharding.reduced.union(output.reduced);
        left.add(
            value,
            Type { array: ArrayType::new(local.dtype(), &shape), sharding, varying: AxisSet::EMPTY },
            output,
        );
        Some(())
    }

    /// The manual axes along which a layout says unreduced or reduced, for the types of the body. Once derivatives have been taken, summands are
    /// values that vary.
    fn states(&self, layout: &Sharding, manual: AxisSet) -> States {
        if self.exact.is_some_and(|stage| stage >= Stage::Propagated) {
            return States::default();
        }
        States { unreduced: layout.unreduced.intersect(manual), reduced: layout.reduced.intersect(manual) }
    }

    /// A result in the state along manual axes in which it leaves.
    fn cast_to(&mut self, value: Value, output: &Sharding, span: Span) -> Result<Value, Diagnostic> {
        self.build.set_span(span);
        let own = self.build.ty(value).clone();
        let varying = output.used_axes().union(output.unreduced.minus(own.sharding.unreduced));
        let value = self.build.vary(value, varying)?;
        let unreduced = output.unreduced.minus(own.sharding.unreduced);
        let reduced = output.reduced.minus(own.sharding.reduced);
        let value = cast(&mut self.build, value, unreduced, ManualState::Unreduced)?;
        cast(&mut self.build, value, reduced, ManualState::Reduced)
    }

    /// A value that the body uses from outside (for example through a lambda) becomes an operand that is equal on all devices.
    fn take_captures(&mut self, region: &mut Region, span: Span) -> Option<()> {
        let own = walk::defined_values(&region.block);
        for outer in walk::free_values(&region.block) {
            // Another name of a value of the body.
            if own.contains(&self.build.original(outer)) {
                continue;
            }
            let ty = self.build.ty(outer).clone();
            if !ty.distinct_axes().intersect(region.axes).is_empty() {
                let what = "a `manual` function that uses an outer value split over one of its axes";
                self.report(errors::items::not_yet(span, what));
                return None;
            }
            let origin = self.build.origin_at(span);
            let inner = self.build.new_value(ty.clone(), origin);
            region.block.each_use_mut(&mut |value| {
                if *value == outer {
                    *value = inner;
                }
            });
            region.block.params.push(inner);
            region.operands.push(outer);
            region.inputs.push(Sharding::replicated(ty.rank()));
        }
        Some(())
    }

    /// The value, marked as varying along further axes.
    pub(crate) fn vary_as(&mut self, value: Value, axes: AxisSet, span: Span) -> Result<Value, Diagnostic> {
        self.build.set_span(span);
        self.build.vary(value, axes)
    }
}

impl States {
    /// The layout of the other axes, with these states.
    fn added_to(self, rest: &Sharding) -> Sharding {
        let (unreduced, reduced) = (rest.unreduced.union(self.unreduced), rest.reduced.union(self.reduced));
        Sharding { reduced, ..rest.clone() }.with_unreduced(unreduced, rest.combine)
    }
}

impl Left {
    fn add(&mut self, value: Value, ty: Type, output: Sharding) {
        self.values.push(value);
        self.types.push(ty);
        self.outputs.push(output);
    }
}

fn only(axes: &[u8], set: AxisSet) -> Vec<u8> {
    axes.iter().copied().filter(|&axis| set.contains(usize::from(axis))).collect()
}

/// The part of a layout on these axes.
fn within(sharding: &Sharding, set: AxisSet) -> Sharding {
    let dims = sharding.dims.iter().map(|dim| only(&dim.axes, set)).collect();
    let reduced = sharding.reduced.intersect(set);
    Sharding { reduced, ..Sharding::closed(dims) }.with_unreduced(sharding.unreduced.intersect(set), sharding.combine)
}

/// The part of a layout on all other axes.
fn without(sharding: &Sharding, set: AxisSet) -> Sharding {
    let mut rest = sharding.clone();
    for dim in &mut rest.dims {
        dim.axes.retain(|&axis| !set.contains(usize::from(axis)));
    }
    rest.unreduced = rest.unreduced.minus(set);
    rest.reduced = rest.reduced.minus(set);
    rest
}

/// Whether the manual axes are the major ones: only then is a device's part of a dimension one block.
fn manual_axes_come_first(axes: &[u8], manual: AxisSet) -> bool {
    axes.iter().skip_while(|&&axis| manual.contains(usize::from(axis))).all(|&axis| !manual.contains(usize::from(axis)))
}

/// The type without layouts.
pub fn bare(ty: &Ty) -> Ty {
    match ty {
        Ty::Array(array) => Ty::Array(ArrayTy {
            dims: array.dims.iter().map(|dim| DimTy { axes: None, ..dim.clone() }).collect(),
            unreduced: AxisSet::EMPTY,
            reduced: AxisSet::EMPTY,
            varying: AxisSet::EMPTY,
            ..array.clone()
        }),
        Ty::Complex(array) => match bare(&Ty::Array(array.clone())) {
            Ty::Array(array) => Ty::Complex(array),
            other @ (Ty::Complex(_) | Ty::Tuple(_) | Ty::Struct(_) | Ty::Poison) => other,
        },
        Ty::Tuple(parts) => Ty::Tuple(parts.iter().map(bare).collect()),
        Ty::Struct(fields) => Ty::Struct(fields.iter().map(|(name, field)| (name.clone(), bare(field))).collect()),
        Ty::Poison => Ty::Poison,
    }
}

/// The leaves of a term in order, each with its declared type.
fn pair<'t>(term: &Term, ty: Option<&'t Ty>, leaves: &mut Vec<BorderLeaf<'t>>) {
    match (term, ty) {
        (Term::Tuple(terms), Some(Ty::Tuple(tys))) => {
            terms.iter().zip(tys).for_each(|(term, ty)| pair(term, Some(ty), leaves));
        }
        (Term::Struct(fields), Some(Ty::Struct(tys))) => {
            for (name, term) in fields {
                let ty = tys.iter().find(|(field, _)| field == name).map(|(_, ty)| ty);
                pair(term, ty, leaves);
            }
        }
        (Term::Tuple(terms), _) => terms.iter().for_each(|term| pair(term, None, leaves)),
        (Term::Struct(fields), _) => fields.iter().for_each(|(_, term)| pair(term, None, leaves)),
        (Term::Complex(planes), ty) => {
            let ty = if let Some(Ty::Complex(array)) = ty { Some(array) } else { None };
            leaves.extend(planes.iter().map(|plane| BorderLeaf { term: plane.clone(), ty }));
        }
        (term, Some(Ty::Array(array))) => leaves.push(BorderLeaf { term: term.clone(), ty: Some(array) }),
        (term, _) => leaves.push(BorderLeaf { term: term.clone(), ty: None }),
    }
}

/// Whether a term has the form of a type.
fn fits(term: &Term, ty: &Ty) -> bool {
    match (term, ty) {
        (Term::Poison, _) | (_, Ty::Poison) => true,
        (Term::Tuple(terms), Ty::Tuple(tys)) => {
            terms.len() == tys.len() && terms.iter().zip(tys).all(|(term, ty)| fits(term, ty))
        }
        (Term::Struct(fields), Ty::Struct(tys)) => {
            fields.len() == tys.len()
                && fields.iter().all(|(name, term)| {
                    tys.iter().find(|(field, _)| field == name).is_some_and(|(_, ty)| fits(term, ty))
                })
        }
        (term, Ty::Complex(_)) => matches!(term, Term::Complex(_)),
        (term, Ty::Array(_)) => trees::is_number(term),
        (_, Ty::Tuple(_) | Ty::Struct(_)) => false,
    }
}
