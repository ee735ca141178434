//! Declared types: resolved against constants and size parameters, then matched against values.
//!
//! An annotation checks element type and shape, binds size parameters, and may have a layout: on explicit axes it is checked, on
//! auto axes it becomes a `pin` statement.

use crate::Checker;
use crate::errors::{self, shardings, streams, types as errors_of_types};
use crate::expand::scopes::Expansion;
use crate::program::names::{Entity, ItemId};
use crate::types::sizes::{Bindings, Size};
use spmdc_abi::{Plane, ReduceOp};
use spmdc_functions::complex;
use spmdc_grammar::ast::{
    self, DTypeName, DimAxes, ElementType, Expr, ExprKind, Ident, InfixOp, ItemKind, ShardingExpr, TypeExpr,
};
use spmdc_grammar::ast::{PrefixOp, TypeExprKind};
use spmdc_grammar::span::Span;
use spmdc_ir::call::errors::{not_whole, rank_too_large, too_large};
use spmdc_ir::call::fields::FieldName;
use spmdc_ir::call::limits::{MAX_LEAVES, MAX_NESTING};
use spmdc_ir::call::term::{ShardingTerm, StaticScalar, Term, TypeTerm, whole_number};
use spmdc_ir::call::trees::{self, joined};
use spmdc_ir::program::Value;
use spmdc_ir::program::choice::{cost_of_move, spaced};
use spmdc_ir::program::streams::refused_at;
use spmdc_ir::shape;
use spmdc_layout::mesh::{AxisKind, Mesh};
use spmdc_layout::reshard::step::ReshardStep;
use spmdc_layout::sharding::{self, DimSharding, Sharding};
use spmdc_layout::types::MAX_RANK;
use spmdc_layout::types::{ArrayType, AxisSet, DType, Type};
use spmdc_ops::reshard::Reshard;
use spmdc_ops::transfer;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A type whose names are resolved; its sizes may mention size parameters.
#[derive(Clone, Debug)]
pub enum Ty {
    Array(ArrayTy),
    /// Complex numbers; the type is the type of their planes.
    Complex(ArrayTy),
    Tuple(Vec<Ty>),
    Struct(Vec<(FieldName, Ty)>),
    /// An error that has been reported.
    Poison,
}

#[derive(Clone, Debug)]
pub struct ArrayTy {
    pub dtype: DType,
    pub dims: Vec<DimTy>,
    pub unreduced: AxisSet,
    pub reduced: AxisSet,
    pub varying: AxisSet,
    /// In a dump: the axes that the function around turns.
    pub turned: AxisSet,
    pub is_stream: bool,
    /// The mesh on which it is, by its position in [`Mesh::named`](spmdc_layout::mesh::Mesh::named), if the type says so.
    pub on: Option<u8>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub struct DimTy {
    pub size: Size,
    pub span: Span,
    /// None if the type has no layout for this dimension.
    pub axes: Option<DimSharding>,
}

impl Ty {
    /// Says of all its arrays on which mesh they are.
    pub fn put_on(&mut self, mesh: u8) {
        match self {
            Ty::Array(array) | Ty::Complex(array) => array.on = array.on.or(Some(mesh)),
            Ty::Tuple(parts) => parts.iter_mut().for_each(|part| part.put_on(mesh)),
            Ty::Struct(fields) => fields.iter_mut().for_each(|(_, field)| field.put_on(mesh)),
            Ty::Poison => {}
        }
    }

    /// For each leaf of a parameter, the mesh on which it is: that which the type names, or the first one that has its axes.
    pub fn meshes(&self, mesh: &Mesh, found: &mut Vec<Option<u8>>) {
        let of = |array: &ArrayTy| {
            let axes = array.layout().map_or(AxisSet::EMPTY, |layout| layout.named_axes());
            let first = (!axes.is_empty()).then(|| mesh.first_with(axes)).flatten();
            array.on.or(first.map(|on| on as u8)).filter(|_| mesh.is_several())
        };
        match self {
            Ty::Array(array) => found.push(of(array)),
            Ty::Complex(array) => found.extend([of(array); 2]),
            Ty::Tuple(parts) => parts.iter().for_each(|part| part.meshes(mesh, found)),
            Ty::Struct(fields) => fields.iter().for_each(|(_, field)| field.meshes(mesh, found)),
            Ty::Poison => {}
        }
    }
}

impl Ty {
    /// In a dump: the axes that the function around turns.
    pub fn turned(&self) -> AxisSet {
        match self {
            Ty::Array(array) | Ty::Complex(array) => array.turned,
            Ty::Tuple(parts) => parts.first().map_or(AxisSet::EMPTY, Ty::turned),
            Ty::Struct(fields) => fields.first().map_or(AxisSet::EMPTY, |(_, field)| field.turned()),
            Ty::Poison => AxisSet::EMPTY,
        }
    }
}

impl ArrayTy {
    /// The layout of the type; None if it has none. If some dimension is annotated, unannotated ones are replicated.
    pub fn layout(&self) -> Option<Sharding> {
        let is_annotated = self.dims.iter().any(|dim| dim.axes.is_some());
        if !is_annotated && self.unreduced.is_empty() && self.reduced.is_empty() {
            return None;
        }
        let bare = DimSharding { axes: Vec::new(), open: !is_annotated, alignment: None };
        let dims = self.dims.iter().map(|dim| dim.axes.clone().unwrap_or_else(|| bare.clone())).collect();
        Some(Sharding { dims, unreduced: self.unreduced, reduced: self.reduced, combine: ReduceOp::Sum })
    }
}

/// The progress of resolving a type, for its limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct TypeWork {
    pub depth: usize,
    pub parts: usize,
}

/// The size parameters that a type may mention.
pub type SizeParams = BTreeMap<String, Size>;

/// The element type of this name, or the type of the planes of complex numbers (true).
pub fn dtype(name: DTypeName) -> (DType, bool) {
    match DType::plane_of(name.name()) {
        Some(plane) => (plane, true),
        None => (DType::named(name.name()).expect("the grammar's names are those of the element types"), false),
    }
}

/// Resolves types.
impl Checker<'_> {
    pub(crate) fn resolve(&mut self, ty: &TypeExpr, params: &SizeParams) -> Ty {
        if self.types.depth == 0 {
            self.types.parts = 0;
        }
        self.types.parts += 1;
        let is_first = self.types.parts == MAX_LEAVES + 1 || self.types.depth == MAX_NESTING;
        if self.types.parts > MAX_LEAVES || self.types.depth >= MAX_NESTING {
            // The rest is not resolved: names can double the type over and over.
            self.types.parts = self.types.parts.max(MAX_LEAVES + 1);
            if is_first {
                self.report(errors_of_types::type_too_large(ty.span));
            }
            return Ty::Poison;
        }
        self.types.depth += 1;
        let resolved = self.resolve_part(ty, params);
        self.types.depth -= 1;
        resolved
    }

    /// The type of a function's parameter, which may be a stream.
    pub(crate) fn resolve_parameter(&mut self, ty: &TypeExpr, params: &SizeParams) -> Ty {
        let TypeExprKind::Stream(of) = &ty.kind else { return self.resolve(ty, params) };
        let refused = match self.resolve(of, params) {
            Ty::Poison => return Ty::Poison,
            Ty::Array(array) if array.dims.is_empty() => "a scalar",
            Ty::Array(array) if !array.unreduced.is_empty() || !array.varying.is_empty() => {
                "partial sums, or an array that varies"
            }
            Ty::Array(array) => return Ty::Array(ArrayTy { is_stream: true, span: ty.span, ..array }),
            Ty::Complex(_) => "an array of complex numbers",
            Ty::Tuple(_) | Ty::Struct(_) => "a struct or a tuple",
        };
        self.report(streams::of_no_array(refused, of.span));
        Ty::Poison
    }

    fn resolve_part(&mut self, ty: &TypeExpr, params: &SizeParams) -> Ty {
        match &ty.kind {
            TypeExprKind::Array { dtype: name, dims, unreduced, reduced, varying, turned, mesh } => {
                let on = mesh.as_ref().and_then(|mesh| self.build.mesh().find_mesh(&mesh.name)).map(|on| on as u8);
                let dims = dims
                    .iter()
                    .map(|dim| DimTy {
                        size: self.size(&dim.size, params),
                        span: dim.size.span,
                        axes: dim.axes.as_ref().and_then(|axes| self.dim_axes(axes)),
                    })
                    .collect();
                if !turned.is_empty() && self.exact.is_none() {
                    self.report(shardings::turned(ty.span));
                    return Ty::Poison;
                }
                let [unreduced, reduced, varying, turned] =
                    [unreduced, reduced, varying, turned].map(|axes| self.axis_set(axes));
                let (dtype, is_complex) = match name {
                    ElementType::Name(name) => dtype(*name),
                    ElementType::Param(name) => match self.element_type(name) {
                        Some(dtype) => dtype,
                        None => return Ty::Poison,
                    },
                };
                let is_stream = false;
                let array = ArrayTy { dtype, dims, unreduced, reduced, varying, turned, is_stream, on, span: ty.span };
                if let Some(axis) = array.layout().and_then(|layout| layout.repeated_axis()) {
                    self.report(shardings::axis_twice(&self.build.mesh().axes[axis as usize].name.clone(), ty.span));
                    return Ty::Poison;
                }
                if is_complex { Ty::Complex(array) } else { Ty::Array(array) }
            }
            TypeExprKind::Tuple(parts) => Ty::Tuple(parts.iter().map(|part| self.resolve(part, params)).collect()),
            TypeExprKind::Struct(fields) => {
                let mut resolved: Vec<(FieldName, Ty)> = Vec::new();
                for (name, field) in fields {
                    if resolved.iter().any(|(earlier, _)| *earlier == name.name) {
                        self.report(errors_of_types::field_twice(&name.name, name.span));
                        continue;
                    }
                    self.build.fields.link(name.span, name.span);
                    resolved.push((FieldName::new(name), self.resolve(field, params)));
                }
                Ty::Struct(resolved)
            }
            TypeExprKind::Named { module: None, name, args }
                if args.is_empty() && (params.contains_key(&name.name) || self.local(&name.name).is_some()) =>
            {
                match self.element_type(name) {
                    Some((dtype, is_complex)) => {
                        let array = ArrayTy {
                            dtype,
                            dims: Vec::new(),
                            unreduced: AxisSet::EMPTY,
                            reduced: AxisSet::EMPTY,
                            varying: AxisSet::EMPTY,
                            turned: AxisSet::EMPTY,
                            is_stream: false,
                            on: None,
                            span: ty.span,
                        };
                        if is_complex { Ty::Complex(array) } else { Ty::Array(array) }
                    }
                    None => Ty::Poison,
                }
            }
            TypeExprKind::Named { module, name, args } => {
                self.resolve_named(module.as_ref(), name, args, params, ty.span)
            }
            TypeExprKind::Stream(_) => {
                self.report(streams::no_parameter(ty.span));
                Ty::Poison
            }
            TypeExprKind::On { ty, mesh } => {
                let mut ty = self.resolve(ty, params);
                if let Some(on) = self.build.mesh().find_mesh(&mesh.name) {
                    ty.put_on(on as u8);
                }
                ty
            }
        }
    }

    /// The element type bound to a parameter of the function, and whether it is the type of the planes of complex numbers.
    fn element_type(&mut self, name: &Ident) -> Option<(DType, bool)> {
        match self.local(&name.name).map(|binding| binding.term.clone()) {
            Some(Term::Type(ty)) => Some((ty.array.dtype, ty.complex)),
            Some(Term::Poison) => None,
            Some(other) => {
                self.report(errors_of_types::wrong_kind("an element type", other.describe(), name.span));
                None
            }
            // Reported when names were resolved, or when the call's arguments did not determine it.
            None => None,
        }
    }

    fn resolve_named(
        &mut self,
        module: Option<&Ident>,
        name: &Ident,
        args: &[Expr],
        params: &SizeParams,
        span: Span,
    ) -> Ty {
        let file = match module {
            None => self.file(),
            Some(module) => match self.names.find(self.file(), &module.name) {
                Some(Entity::Module(file)) => file,
                Some(Entity::Item(_)) | None => return Ty::Poison,
            },
        };
        let Some(Entity::Item(id)) = self.names.find(file, &name.name) else { return Ty::Poison };
        let set = self.set;
        let ItemKind::Type { size_params, ty, .. } = &set.file(id.file).program.items[id.index].kind else {
            return Ty::Poison;
        };
        if size_params.len() != args.len() {
            self.report(errors_of_types::type_arguments(&name.name, size_params.len(), args.len(), span));
            return Ty::Poison;
        }
        if self.expansions.iter().any(|expansion| expansion.item == Some(id)) {
            self.report(errors_of_types::contains_itself(&name.name, span));
            return Ty::Poison;
        }
        let inner = size_params
            .iter()
            .zip(args)
            .map(|(param, arg)| (param.name.clone(), self.size(arg, params)))
            .collect::<SizeParams>();
        self.expansions.push(item_expansion(id, &name.name));
        let resolved = self.resolve(ty, &inner);
        self.expansions.pop();
        resolved
    }

    /// A size in a type.
    pub(crate) fn size(&mut self, size: &Expr, params: &SizeParams) -> Size {
        if let ExprKind::Int(number) = size.kind {
            return Size::Number(i128::from(number));
        }
        if let ExprKind::Name(name) = &size.kind
            && let Some(size) = params.get(name)
        {
            return size.clone();
        }
        if let ExprKind::Binary { op, lhs, rhs, .. } = &size.kind {
            let (lhs, rhs) = (self.size(lhs, params), self.size(rhs, params));
            if lhs == Size::Poison || rhs == Size::Poison {
                return Size::Poison;
            }
            return self.folded(Size::Binary(*op, Box::new(lhs), Box::new(rhs)), size.span);
        }
        if let ExprKind::Unary { op: PrefixOp::Neg, arg } = &size.kind {
            let arg = self.size(arg, params);
            return self.folded(Size::Binary(InfixOp::Sub, Box::new(Size::Number(0)), Box::new(arg)), size.span);
        }
        let term = self.expr(size);
        match (whole_number(&term), &term) {
            (Some(number), _) => Size::Number(number),
            (None, Term::Poison) => Size::Poison,
            (None, Term::Float(value)) => {
                self.report(not_whole(*value, size.span));
                Size::Poison
            }
            (None, other) => {
                self.report(errors::sizes::not_constant(size.span, other.describe()));
                Size::Poison
            }
        }
    }

    /// The number of a size without parameters.
    fn folded(&mut self, size: Size, span: Span) -> Size {
        match size.value(&Bindings::new()) {
            Ok(number) => Size::Number(number),
            Err(crate::types::sizes::SizeError::Unbound(_)) => size,
            Err(error) => {
                if let Some(diagnostic) = errors::sizes::arithmetic(&error, &size.to_string(), span) {
                    self.report(diagnostic);
                }
                Size::Poison
            }
        }
    }

    /// A size as a length; reports an invalid one.
    pub(crate) fn length(&mut self, size: &Size, bindings: &Bindings, span: Span) -> Option<usize> {
        match size.value(bindings) {
            Ok(number) => match usize::try_from(number) {
                Ok(length) => Some(length),
                Err(_) => {
                    self.report(errors::sizes::negative(number, span));
                    None
                }
            },
            Err(error) => {
                if let Some(diagnostic) = errors::sizes::arithmetic(&error, &size.to_string(), span) {
                    self.report(diagnostic);
                }
                None
            }
        }
    }

    /// The axes of a dimension. Axes that the mesh does not have were reported when names were resolved.
    fn dim_axes(&mut self, axes: &DimAxes) -> Option<DimSharding> {
        let known: Option<Vec<u8>> = axes.axes.iter().map(|axis| self.build.mesh().find(&axis.name)).collect();
        if axes.alignment.is_some() && self.exact.is_none() {
            self.report(shardings::alignment(axes.span));
            return None;
        }
        // Larger than any dimension, yet small enough to compute positions of blocks.
        const MOST: u64 = 1 << 40;
        let number = |number: u64| number.min(MOST) as usize;
        let alignment = axes.alignment.map(|ast::AlignmentNode { size, start, step }| sharding::Alignment {
            size: number(size),
            start: start.clamp(-(MOST as i64), MOST as i64),
            step: number(step).max(1),
        });
        Some(DimSharding { axes: known?, open: axes.open, alignment })
    }

    fn axis_set(&mut self, axes: &[Ident]) -> AxisSet {
        axes.iter().filter_map(|axis| self.build.mesh().find(&axis.name)).map(usize::from).collect()
    }

    pub(crate) fn sharding_literal(&mut self, literal: &ShardingExpr) -> Term {
        let dims: Option<Vec<DimSharding>> = literal.dims.iter().map(|dim| self.dim_axes(dim)).collect();
        let Some(dims) = dims else { return Term::Poison };
        let unreduced = self.axis_set(&literal.unreduced);
        let reduced = self.axis_set(&literal.reduced);
        let sharding = Sharding { dims, unreduced, reduced, combine: ReduceOp::Sum };
        if let Some(axis) = sharding.repeated_axis() {
            let name = self.build.mesh().name(axis).to_string();
            return self.report(shardings::axis_twice(&name, literal.span));
        }
        let manual = sharding.named_axes().intersect(self.build.manual());
        if !manual.is_empty() {
            let axes = self.build.mesh().display_set(manual);
            return self.report(errors::manual::layout_over_manual(&axes, literal.span));
        }
        Term::Sharding(ShardingTerm { sharding })
    }

    /// A type in the position of a value: `zeros(f32[3, 4])`.
    pub(crate) fn type_literal(&mut self, ty: &TypeExpr) -> Term {
        let (array, complex) = match self.resolve(ty, &SizeParams::new()) {
            Ty::Array(array) => (array, false),
            Ty::Complex(array) => (array, true),
            Ty::Tuple(_) | Ty::Struct(_) | Ty::Poison => return Term::Poison,
        };
        match self.array_type(&array, &Bindings::new()) {
            Some(ty) => Term::Type(TypeTerm { array: ty, complex, sharding: array.layout(), varying: array.varying }),
            None => Term::Poison,
        }
    }

    /// Element type and shape, with all sizes known.
    pub(crate) fn array_type(&mut self, ty: &ArrayTy, bindings: &Bindings) -> Option<ArrayType> {
        let shape: Option<Vec<usize>> = ty.dims.iter().map(|dim| self.length(&dim.size, bindings, dim.span)).collect();
        let array = ArrayType { is_stream: ty.is_stream, ..ArrayType::of(ty.dtype, shape?) };
        if array.rank() > MAX_RANK {
            self.report(rank_too_large(array.rank(), ty.span));
            return None;
        }
        if shape::elements(&array.shape).is_none() {
            self.report(too_large(ty.span));
            return None;
        }
        Some(array)
    }
}

/// Matches values.
impl Checker<'_> {
    /// Checks a value against a declared type, binding size parameters; returns the value, converted if it is a number, pinned if
    /// the type has a layout.
    pub(crate) fn annotate(&mut self, term: Term, ty: &Ty, bindings: &mut Bindings, span: Span, place: &str) -> Term {
        self.learn(&term, ty, bindings, true);
        self.learn(&term, ty, bindings, false);
        self.conform(term, ty, bindings, span, place)
    }

    /// Binds size parameters: single ones (`plain`), or those inside arithmetic.
    pub(crate) fn learn(&self, term: &Term, ty: &Ty, bindings: &mut Bindings, plain: bool) {
        match (ty, term) {
            (Ty::Array(array) | Ty::Complex(array), term) => {
                let Some(shape) = self.shape_of(term) else { return };
                if shape.len() == array.dims.len() {
                    for (dim, size) in array.dims.iter().zip(shape) {
                        if dim.size.is_plain() == plain {
                            dim.size.learn(size as i128, bindings);
                        }
                    }
                }
            }
            (Ty::Tuple(tys), Term::Tuple(terms)) => {
                tys.iter().zip(terms).for_each(|(ty, term)| self.learn(term, ty, bindings, plain));
            }
            (Ty::Struct(fields), Term::Struct(terms)) => {
                for (name, ty) in fields {
                    if let Some((_, term)) = terms.iter().find(|(field, _)| field == name) {
                        self.learn(term, ty, bindings, plain);
                    }
                }
            }
            (Ty::Tuple(_) | Ty::Struct(_) | Ty::Poison, _) => {}
        }
    }

    pub(crate) fn shape_of(&self, term: &Term) -> Option<Vec<usize>> {
        if let Term::Array(value) = term {
            return Some(self.build.ty(*value).shape().to_vec());
        }
        if let Some([re, _]) = term.planes() {
            return Some(self.build.ty(re).shape().to_vec());
        }
        if let Term::List(items) = term {
            let mut shape = vec![items.len()];
            if let Some(first) = items.first() {
                shape.extend(self.shape_of(first)?);
            }
            return Some(shape);
        }
        term.static_scalar().map(|_| Vec::new())
    }

    pub(crate) fn conform(&mut self, term: Term, ty: &Ty, bindings: &Bindings, span: Span, place: &str) -> Term {
        match (ty, term) {
            (_, Term::Poison) => Term::Poison,
            (Ty::Poison, term) => term,
            (Ty::Tuple(tys), Term::Tuple(terms)) if tys.len() == terms.len() => {
                let parts = tys.iter().zip(terms).enumerate().map(|(position, (ty, term))| {
                    self.conform(term, ty, bindings, span, &trees::part_of(place, &position.to_string()))
                });
                Term::Tuple(parts.collect())
            }
            (Ty::Struct(fields), Term::Struct(terms))
                if fields.len() == terms.len()
                    && fields.iter().all(|(name, _)| terms.iter().any(|(n, _)| n == name)) =>
            {
                let mut parts = Vec::new();
                for (name, ty) in fields {
                    let found = terms.iter().find(|(field, _)| field == name);
                    found.iter().for_each(|(field, _)| self.build.fields.link(field.place, name.place));
                    let term = found.map(|(_, term)| term.clone());
                    let part =
                        self.conform(term.unwrap_or(Term::Poison), ty, bindings, span, &trees::part_of(place, name));
                    parts.push((name.clone(), part));
                }
                Term::Struct(parts)
            }
            (Ty::Complex(array), term) if term.is_operand() || matches!(term, Term::Complex(_)) => {
                self.conform_complex(term, array, bindings, span, place)
            }
            (Ty::Array(array), term @ Term::Complex(_)) => {
                let wanted = self.display_ty(&Ty::Array(array.clone()), bindings);
                self.other_numbers(&term, &wanted, span, place)
            }
            (Ty::Array(array), term) if term.is_operand() => self.conform_array(term, array, bindings, span, place),
            (ty, term) => {
                let (wanted, found) = (self.display_ty(ty, bindings), self.display_term(&term));
                self.report(errors_of_types::mismatch(place, &wanted, &found, span))
            }
        }
    }

    fn conform_complex(&mut self, term: Term, ty: &ArrayTy, bindings: &Bindings, span: Span, place: &str) -> Term {
        let wanted = self.display_ty(&Ty::Complex(ty.clone()), bindings);
        let Some(declared) = self.array_type(ty, bindings) else { return Term::Poison };
        let is_array = matches!(term, Term::Array(_) | Term::Complex(_));
        if self.shape_of(&term).as_deref() != Some(&declared.shape) || matches!(term, Term::Array(_)) {
            return self.other_numbers(&term, &wanted, span, place);
        }
        self.build.set_span(span);
        let made = complex::complex(&mut self.build, (&term, span), (!is_array).then_some(ty.dtype));
        let Some(planes) = self.or_report(made).planes() else { return Term::Poison };
        if self.build.ty(planes[0]).dtype() != ty.dtype {
            return self.other_numbers(&term, &wanted, span, place);
        }
        let [re, im] = planes.map(|plane| self.conform_array(Term::Array(plane), ty, bindings, span, place));
        joined(re, im)
    }

    fn conform_array(&mut self, term: Term, ty: &ArrayTy, bindings: &Bindings, span: Span, place: &str) -> Term {
        let is_number = !matches!(term, Term::Array(_));
        let Some(wanted) = self.array_type(ty, bindings) else { return Term::Poison };
        if is_number && self.shape_of(&term).as_deref() != Some(&wanted.shape) {
            let found = self.display_term(&term);
            return self.report(errors_of_types::mismatch(place, &wanted.to_string(), &found, span));
        }
        self.build.set_span(span);
        let value = match self.build.materialize(&term, is_number.then_some(ty.dtype), span) {
            Ok(value) => value,
            Err(diagnostic) => return self.report(diagnostic),
        };
        let found = self.build.ty(value).clone();
        if found.array.is_stream != wanted.is_stream {
            let error = match wanted.is_stream {
                true => streams::no_stream(place, &wanted.to_string(), &found.array.to_string(), span),
                false => refused_at(place, &found.array, span),
            };
            return self.report(error.label(ty.span, "declared here"));
        }
        if found.array != wanted {
            let (wanted_text, found_text) = (wanted.to_string(), found.array.to_string());
            let error = match found.array.shape == wanted.shape {
                true => errors_of_types::element_type(place, &wanted_text, &found_text, wanted.dtype.name(), span),
                false => errors_of_types::mismatch(place, &wanted_text, &found_text, span),
            };
            return self.report(error.label(ty.span, "declared here"));
        }
        let value = match self.vary_as(value, ty.varying, span) {
            Ok(value) => value,
            Err(diagnostic) => return self.report(diagnostic),
        };
        let value = match ty.on.filter(|_| self.build.mesh().is_several() && self.exact.is_none()) {
            None => value,
            Some(on) => match transfer::declared(&mut self.build, value, on) {
                Ok(value) => value,
                Err(diagnostic) => return self.report(diagnostic),
            },
        };
        match ty.layout() {
            Some(layout) if ty.is_stream => Term::Array(self.stream_laid_out(value, layout)),
            Some(layout) => self.lay_out(value, layout, span, place),
            None if self.build.comes_in(value) => self.without_layout(place, span),
            None => Term::Array(value),
        }
    }

    /// Another name of a stream, whose rows are read in the layout of an annotation.
    fn stream_laid_out(&mut self, stream: Value, layout: Sharding) -> Value {
        if self.exact.is_some() {
            return stream;
        }
        let name = self.build.alias(stream);
        self.build.lay_out_rows(name, layout);
        name
    }

    /// Applies the layout of an annotation: checked on explicit axes, asked for where a value comes to them, pinned on auto ones.
    pub(crate) fn lay_out(&mut self, value: Value, layout: Sharding, span: Span, place: &str) -> Term {
        let manual = self.build.manual();
        let over_manual = layout.used_axes().intersect(manual);
        if !over_manual.is_empty() {
            let axes = self.build.mesh().display_set(over_manual);
            return self.report(errors::manual::layout_over_manual(&axes, span));
        }
        let explicit = self.build.mesh().of_kind(AxisKind::Explicit).minus(manual);
        let auto = self.build.mesh().of_kind(AxisKind::Auto).minus(manual);
        let value = match (self.crosses || self.build.comes_in(value)) && !explicit.is_empty() {
            true => {
                let ty = Type { sharding: layout.clone(), ..self.build.ty(value).clone() };
                self.build.set_span(span);
                match self.build.emit1(Reshard::request(self.build.explicit_part(&ty)), &[value]) {
                    Ok(value) => value,
                    Err(diagnostic) => return self.report(diagnostic),
                }
            }
            false => value,
        };
        let found = self.build.ty(value).clone();
        let only = |axes: &[u8]| -> Vec<u8> {
            axes.iter().copied().filter(|&axis| explicit.contains(axis as usize)).collect()
        };
        let agrees = layout.dims.iter().zip(&found.sharding.dims).all(|(wanted, found)| {
            let (wanted_axes, found_axes) = (only(&wanted.axes), only(&found.axes));
            if wanted.open { found_axes.starts_with(&wanted_axes) } else { wanted_axes == found_axes }
        });
        let decided = explicit.union(manual.intersect(layout.named_axes()));
        let agrees = agrees
            && layout.unreduced.intersect(decided) == found.sharding.unreduced.intersect(decided)
            && layout.reduced.intersect(decided) == found.sharding.reduced.intersect(decided);
        if !agrees {
            let wanted = self.build.annotated(&Type { sharding: layout.close(), ..found.clone() });
            let shown = self.build.annotated(&found);
            let reshard = spaced(&layout.close(), self.build.mesh());
            let origin = self.build.info(value).origin.span;
            let mut error = shardings::contradiction(place, &wanted, &shown, &reshard, span, origin);
            // A part of a struct or tuple has no text of its own.
            if !trees::is_part(place) {
                let note = cost_of_move(&found, &layout.close(), self.build.mesh()).0;
                error = error.edit(span, format!("reshard({}, {reshard})", self.source(span)), note);
            }
            return self.report(error);
        }
        let is_pinned = layout.dims.iter().any(|dim| !dim.open || !dim.axes.is_empty())
            || !layout.unreduced.union(layout.reduced).intersect(auto).is_empty();
        if auto.is_empty() || !is_pinned {
            return Term::Array(value);
        }
        let mut to = layout;
        for (wanted, found) in to.dims.iter_mut().zip(&found.sharding.dims) {
            // An open dimension keeps the explicit axes of the value.
            if wanted.open && only(&wanted.axes) != only(&found.axes) {
                wanted.axes.retain(|&axis| !explicit.contains(axis as usize));
                wanted.axes.splice(0..0, only(&found.axes));
            }
        }
        if to == found.sharding {
            return Term::Array(value);
        }
        self.build.set_span(span);
        let pinned = self.build.emit1(Reshard { to, step: ReshardStep::Pin }, &[value]).map(Term::Array);
        self.or_report(pinned)
    }

    /// Adds a parameter of the function under construction for each leaf of a type.
    pub(crate) fn parameters(
        &mut self,
        ty: &Ty,
        bindings: &Bindings,
        path: &str,
        leaves: &mut Vec<(String, Type, Span, Option<Plane>)>,
    ) -> Option<()> {
        match ty {
            Ty::Poison => None,
            Ty::Complex(array) => {
                for plane in Plane::BOTH {
                    let path = format!("{path}.{}", plane.name());
                    self.parameters(&Ty::Array(array.clone()), bindings, &path, leaves)?;
                    leaves.last_mut()?.3 = Some(plane);
                }
                Some(())
            }
            Ty::Array(array) => {
                let shape = self.array_type(array, bindings)?;
                let exact = self.exact_layout(array);
                let given = exact.clone().or_else(|| array.layout());
                let mut sharding = given.unwrap_or_else(|| self.build.unknown_layout(shape.rank()));
                if exact.is_none() && self.build.mesh().of_kind(AxisKind::Auto).is_empty() {
                    sharding = sharding.close();
                }
                if shape.is_stream {
                    // No device holds it; its rows have the layout.
                    sharding = Sharding::replicated(shape.rank());
                }
                leaves.push((
                    path.to_string(),
                    Type { array: shape, sharding, varying: AxisSet::EMPTY },
                    array.span,
                    None,
                ));
                Some(())
            }
            Ty::Tuple(parts) => parts.iter().enumerate().try_for_each(|(position, part)| {
                self.parameters(part, bindings, &format!("{path}.{position}"), leaves)
            }),
            Ty::Struct(fields) => fields
                .iter()
                .try_for_each(|(name, field)| self.parameters(field, bindings, &format!("{path}.{name}"), leaves)),
        }
    }
}

/// Formats types for messages.
impl Checker<'_> {
    pub(crate) fn display_ty(&self, ty: &Ty, bindings: &Bindings) -> String {
        match ty {
            Ty::Poison => "?".to_string(),
            Ty::Array(array) | Ty::Complex(array) => {
                let dims: Vec<String> = array
                    .dims
                    .iter()
                    .map(|dim| dim.size.value(bindings).map_or_else(|_| dim.size.to_string(), |size| size.to_string()))
                    .collect();
                let dims = if dims.is_empty() { String::new() } else { format!("[{}]", dims.join(",")) };
                let complex = if let Ty::Complex(_) = ty { array.dtype.complex_name() } else { None };
                let stream = if array.is_stream { "stream " } else { "" };
                format!("{stream}{}{dims}", complex.unwrap_or(array.dtype.name()))
            }
            Ty::Tuple(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.display_ty(part, bindings)).collect();
                format!("({})", parts.join(", "))
            }
            Ty::Struct(fields) => {
                let parts: Vec<String> =
                    fields.iter().map(|(name, ty)| format!("{name}: {}", self.display_ty(ty, bindings))).collect();
                format!("{{ {} }}", parts.join(", "))
            }
        }
    }

    pub(crate) fn display_term(&self, term: &Term) -> String {
        if let Term::Array(value) = term {
            let ty = self.build.ty(*value);
            return Type { sharding: ty.sharding.close(), ..ty.clone() }.display(self.build.mesh());
        }
        if let Some(planes) = term.planes() {
            let (plane, name) = (self.display_term(&Term::Array(planes[0])), self.complex_type(planes).text());
            let dtype = self.build.ty(planes[0]).dtype().name();
            let name = name.split('[').next().unwrap_or_default();
            return plane.replacen(dtype, name, 1);
        }
        if let Term::Tuple(parts) = term {
            let parts: Vec<String> = parts.iter().map(|part| self.display_term(part)).collect();
            return format!("({})", parts.join(", "));
        }
        if let Term::Struct(fields) = term {
            let parts: Vec<String> =
                fields.iter().map(|(name, term)| format!("{name}: {}", self.display_term(term))).collect();
            return format!("{{ {} }}", parts.join(", "));
        }
        if let (Term::List(_), Some(shape)) = (term, self.shape_of(term)) {
            return format!("a list of shape {shape:?}");
        }
        match term.static_scalar() {
            Some(StaticScalar::Int(number)) => format!("{number}"),
            Some(StaticScalar::Float(number)) => format!("{number:?}"),
            Some(StaticScalar::Bool(_)) | None => term.describe().to_string(),
        }
    }
}

fn item_expansion(id: ItemId, name: &str) -> Expansion {
    Expansion {
        file: id.file,
        name: name.to_string(),
        item: Some(id),
        call: None,
        is_template: false,
        scopes: vec![Rc::default()],
    }
}
