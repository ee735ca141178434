//! The places of a program's main file at which a layout may be written, and the values that each of them decides.

use spmdc_grammar::ast::{
    BlockNode, DimAxes, DimExpr, Expr, ExprKind, FnItem, Ident, ItemKind, PatternKind, ProgramNode, StmtNode,
    StmtNodeKind, TypeExpr, TypeExprKind,
};
use spmdc_grammar::print;
use spmdc_grammar::span::Span;
use spmdc_ir::program::{Module, Value, whole_name};
use std::collections::BTreeMap;

/// The axes of each dimension, by their positions in the mesh, major to minor.
pub type DimAxesList = Vec<Vec<u8>>;

/// The kind of a place: its most important value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SiteKind {
    /// A parameter of the program, or a field of its type.
    Parameter,
    /// A result of the program, or a field of its type, and no parameter.
    Result,
    /// A value that a `let` names, or a field of its type.
    Named,
}

/// A place at which a layout may be written.
#[derive(Clone, Debug)]
pub struct AnnotationSite {
    /// Its kind.
    pub kind: SiteKind,
    /// Its name for people: `x`, `Layer.w`, `the result`.
    pub name: String,
    /// The source position of the array type, or of the name of a `let` without a type.
    pub span: Span,
    /// The value of a `let` without a type.
    value: Option<Span>,
    /// Whether the program says something of the layout there.
    pub is_kept: bool,
    /// The least size of each dimension, over all values.
    pub shape: Vec<usize>,
    /// The values with this annotation, by their numbers in the checked program.
    pub values: Vec<Value>,
}

/// Finds all places.
pub fn sites(program: &ProgramNode, module: &Module, entry: &str) -> Vec<AnnotationSite> {
    let mut found = SiteList { program, sites: Vec::new(), by_span: BTreeMap::new() };
    let func = &module.func;
    let functions = || program.items.iter().filter_map(|item| function(&item.kind));
    let Some(main) = functions().find(|function| function.name.name == entry) else { return Vec::new() };
    let mut leaves = BTreeMap::new();
    for param in &main.params {
        if let (PatternKind::Name(name), Some(ty)) = (&param.pattern.kind, &param.ty) {
            found.leaves(ty, name, (name, 0), &mut leaves);
        }
    }
    for (param, &value) in func.params.iter().zip(&func.body.params) {
        found.decides(module, &leaves, &whole_name(&param.name, param.plane), (SiteKind::Parameter, value));
    }
    leaves.clear();
    if let Some(ty) = &main.ret {
        found.leaves(ty, "", ("the result", 0), &mut leaves);
    }
    for (result, &value) in func.results.iter().zip(&func.body.results) {
        found.decides(module, &leaves, &whole_name(&result.name, result.plane), (SiteKind::Result, value));
    }
    let mut named: BTreeMap<Span, Vec<(&str, Value)>> = BTreeMap::new();
    for (index, info) in func.values.iter().enumerate() {
        if let Some(name) = &info.name {
            named.entry(info.named).or_default().push((name, Value(index as u32)));
        }
    }
    for function in functions() {
        each_let(&function.body, &mut |each| {
            let values = named.get(&each.span).map_or(&[][..], Vec::as_slice);
            leaves.clear();
            match each.ty {
                Some(ty) => {
                    found.leaves(ty, each.name, (each.name, 0), &mut leaves);
                    for (name, value) in values {
                        found.decides(module, &leaves, name, (SiteKind::Named, *value));
                    }
                }
                None if !each.is_mutable && function.region.is_none() => found.fresh(module, values, &each),
                None => {}
            }
        });
    }
    let is_known = |site: &AnnotationSite| !site.values.is_empty() && site.shape.iter().any(|&size| size > 1);
    found.sites.retain(is_known);
    found.sites
}

fn function(item: &ItemKind) -> Option<&FnItem> {
    if let ItemKind::Fn(function) = item { Some(function) } else { None }
}

/// Maximum depth of types in types that is followed.
const MAX_DEPTH: usize = 64;

/// The places found so far.
struct SiteList<'a> {
    program: &'a ProgramNode,
    sites: Vec<AnnotationSite>,
    by_span: BTreeMap<Span, usize>,
}

impl SiteList<'_> {
    /// The place of each array of a type, by its path. `shown` is the name of the whole for people, and the depth of the type.
    fn leaves(&mut self, ty: &TypeExpr, path: &str, (shown, depth): (&str, usize), out: &mut BTreeMap<String, usize>) {
        let below = |part: &str| if path.is_empty() { part.to_string() } else { format!("{path}.{part}") };
        match &ty.kind {
            TypeExprKind::Array { dims, unreduced, reduced, varying, .. } => {
                let says = dims.iter().any(|dim| dim.axes.is_some()) || !unreduced.is_empty() || !reduced.is_empty();
                let sites = &mut self.sites;
                let site = *self.by_span.entry(ty.span).or_insert_with(|| {
                    sites.push(AnnotationSite {
                        kind: SiteKind::Named,
                        name: shown.to_string(),
                        span: ty.span,
                        value: None,
                        is_kept: says || !varying.is_empty(),
                        shape: Vec::new(),
                        values: Vec::new(),
                    });
                    sites.len() - 1
                });
                out.insert(if path.is_empty() { "0".to_string() } else { path.to_string() }, site);
            }
            TypeExprKind::Tuple(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    self.leaves(part, &below(&at.to_string()), (&format!("{shown}.{at}"), depth), out);
                }
            }
            TypeExprKind::Struct(fields) => {
                for (field, ty) in fields {
                    self.leaves(ty, &below(&field.name), (&format!("{shown}.{}", field.name), depth), out);
                }
            }
            TypeExprKind::Named { module: None, name, .. } if depth < MAX_DEPTH => {
                let named = self.program.items.iter().find_map(|item| {
                    let ItemKind::Type { name: known, ty, .. } = &item.kind else { return None };
                    (known.name == name.name).then_some(ty)
                });
                if let Some(ty) = named {
                    self.leaves(ty, path, (&name.name, depth + 1), out);
                }
            }
            // The types of other files, and streams, which no device holds.
            TypeExprKind::Named { .. } | TypeExprKind::Stream(_) => {}
            TypeExprKind::On { ty, .. } => self.leaves(ty, path, (shown, depth), out),
        }
    }

    /// Adds a value to the place of its path.
    fn decides(
        &mut self,
        module: &Module,
        leaves: &BTreeMap<String, usize>,
        path: &str,
        (kind, value): (SiteKind, Value),
    ) {
        let Some(&site) = leaves.get(path) else { return };
        let site = &mut self.sites[site];
        if site.values.is_empty() || kind < site.kind {
            site.kind = kind;
        }
        add(site, module, value);
    }

    /// A `let` without a type, if its values have one type and live outside of `manual` functions.
    fn fresh(&mut self, module: &Module, values: &[(&str, Value)], of: &NamedLet<'_>) {
        let Some(&(_, first)) = values.first() else { return };
        let ty = &module.func.ty(first).array;
        let is_same = |(_, value): &(&str, Value)| {
            let other = module.func.ty(*value);
            other.rank() == ty.rank() && other.varying.is_empty()
        };
        // A struct has a value for each leaf.
        let is_whole = values.iter().all(|(name, _)| *name == of.name);
        if ty.rank() == 0 || ty.is_stream || !is_whole || !values.iter().all(is_same) {
            return;
        }
        let mut site = AnnotationSite {
            kind: SiteKind::Named,
            name: of.name.to_string(),
            span: of.span,
            value: Some(of.value),
            is_kept: false,
            shape: Vec::new(),
            values: Vec::new(),
        };
        values.iter().for_each(|(_, value)| add(&mut site, module, *value));
        self.by_span.insert(of.span, self.sites.len());
        self.sites.push(site);
    }
}

fn add(site: &mut AnnotationSite, module: &Module, value: Value) {
    let shape = module.func.ty(value).shape();
    if site.values.is_empty() {
        site.shape = shape.to_vec();
    }
    debug_assert_eq!(site.shape.len(), shape.len(), "the values of one type expression have one rank");
    site.shape.iter_mut().zip(shape).for_each(|(least, &size)| *least = size.min(*least));
    if !site.values.contains(&value) {
        site.values.push(value);
    }
}

/// A change of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEdit {
    /// The source position of the text to replace.
    pub span: Span,
    /// The text to replace.
    pub from: String,
    /// The text that replaces it.
    pub to: String,
}

impl AnnotationSite {
    /// The edit that writes a layout at this place of a program with this text.
    pub fn edit(&self, program: &ProgramNode, text: &str, split: &DimAxesList, axes: &[String]) -> Option<SourceEdit> {
        let value = |span: Span| text.get(span.start as usize..span.end as usize);
        if let Some(span) = self.value {
            let from = value(span)?;
            let to = format!("reshard({from}, {})", literal(split, axes));
            return Some(SourceEdit { span, from: from.to_string(), to });
        }
        let mut found = None;
        let mut write = |ty: &TypeExpr| {
            if ty.span == self.span
                && let TypeExprKind::Array { .. } = &ty.kind
            {
                let mut changed = ty.clone();
                if let TypeExprKind::Array { dims, .. } = &mut changed.kind {
                    split_dims(dims, split, axes);
                }
                found = Some(SourceEdit {
                    span: ty.span,
                    from: value(ty.span).unwrap_or_default().to_string(),
                    to: print::type_expr(&changed),
                });
            }
        };
        for item in &program.items {
            match &item.kind {
                ItemKind::Type { ty, .. } => each_array(ty, &mut write),
                ItemKind::Fn(function) => {
                    let types = function.params.iter().filter_map(|param| param.ty.as_ref()).chain(&function.ret);
                    types.for_each(|ty| each_array(ty, &mut write));
                    each_let(&function.body, &mut |each| each.ty.iter().for_each(|ty| each_array(ty, &mut write)));
                }
                ItemKind::Mesh(_) | ItemKind::Const { .. } | ItemKind::Import { .. } | ItemKind::Test(_) => {}
            }
        }
        found
    }

    /// The edit for people, who need not see the whole value of a `let`.
    pub fn shown(&self, edit: &SourceEdit, split: &DimAxesList, axes: &[String]) -> (String, String) {
        match self.value {
            Some(_) => {
                (format!("{} = ..", self.name), format!("{} = reshard(.., {})", self.name, literal(split, axes)))
            }
            None => (edit.from.clone(), edit.to.clone()),
        }
    }
}

/// `P(X, _, (Y, Z))`, without whole dimensions at the end.
fn literal(split: &DimAxesList, axes: &[String]) -> String {
    let names = |dim: &Vec<u8>| dim.iter().map(|&axis| axes[usize::from(axis)].as_str()).collect::<Vec<_>>();
    let last = split.iter().rposition(|dim| !dim.is_empty()).map_or(0, |last| last + 1);
    let dims = split[..last].iter().map(|dim| match names(dim).as_slice() {
        [] => "_".to_string(),
        [axis] => axis.to_string(),
        several => format!("({})", several.join(", ")),
    });
    format!("P({})", dims.collect::<Vec<_>>().join(", "))
}

/// Gives dimensions these axes. A dimension without axes stays as it is beside one that has some.
fn split_dims(dims: &mut [DimExpr], split: &DimAxesList, axes: &[String]) {
    debug_assert_eq!(dims.len(), split.len(), "a layout has each dimension of its type");
    let is_whole = split.iter().all(Vec::is_empty);
    for (at, (dim, split)) in dims.iter_mut().zip(split).enumerate() {
        let span = dim.size.span;
        let names = split.iter().map(|&axis| Ident { name: axes[usize::from(axis)].clone(), span }).collect();
        let written = DimAxes { axes: names, open: false, alignment: None, span };
        dim.axes = (!split.is_empty() || is_whole && at == 0).then_some(written);
    }
}

/// Visits every array type inside a type.
fn each_array(ty: &TypeExpr, visit: &mut dyn FnMut(&TypeExpr)) {
    match &ty.kind {
        TypeExprKind::Array { .. } => visit(ty),
        TypeExprKind::Tuple(parts) => parts.iter().for_each(|part| each_array(part, visit)),
        TypeExprKind::Struct(fields) => fields.iter().for_each(|(_, field)| each_array(field, visit)),
        TypeExprKind::Named { .. } => {}
        TypeExprKind::Stream(ty) | TypeExprKind::On { ty, .. } => each_array(ty, visit),
    }
}

/// A `let` of one name.
struct NamedLet<'a> {
    ty: &'a Option<TypeExpr>,
    name: &'a str,
    /// The position of the name.
    span: Span,
    is_mutable: bool,
    value: Span,
}

fn each_let(block: &BlockNode, visit: &mut dyn FnMut(NamedLet<'_>)) {
    for StmtNode { kind, .. } in &block.stmts {
        match kind {
            StmtNodeKind::Let { ty, value, pattern, mutable } => {
                if let PatternKind::Name(name) = &pattern.kind {
                    let (span, value) = (pattern.span, value.span);
                    visit(NamedLet { ty, name, span, is_mutable: *mutable, value });
                }
                each_let_in(value, visit);
            }
            StmtNodeKind::Assign { value, .. } | StmtNodeKind::Expr(value) => each_let_in(value, visit),
        }
    }
    if let Some(value) = &block.value {
        each_let_in(value, visit);
    }
}

/// The blocks of control flow, where other statements are.
fn each_let_in(expr: &Expr, visit: &mut dyn FnMut(NamedLet<'_>)) {
    if let ExprKind::Block(block) | ExprKind::For { body: block, .. } | ExprKind::While { body: block, .. } = &expr.kind
    {
        each_let(block, visit);
    } else if let ExprKind::If { then, otherwise, .. } = &expr.kind {
        each_let(then, visit);
        if let Some(otherwise) = otherwise {
            each_let_in(otherwise, visit);
        }
    }
}
