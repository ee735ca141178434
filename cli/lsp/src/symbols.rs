//! The names of a file: where each is bound, and the meaning of each use as far as the file alone says.
//!
//! The checker resolves names, too, but keeps no positions, and stops at errors. Here every name of every tree gets an answer.

use std::collections::BTreeMap;
use std::ops::Range;

use spmdc_functions::is_builtin;
use spmdc_grammar::ast::*;
use spmdc_grammar::span::Span;

/// The meaning of a name in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A variable or parameter, by the offset at which it is bound.
    Local(usize),
    /// A name of the file or of its imports, an axis, a mesh, or a shipped function.
    Global {
        /// The name before the dot.
        module: Option<String>,
    },
    /// The name after the dot of a call: a function, or the field of a struct.
    Method,
    /// The field of a struct.
    Field,
    /// The keyword of an argument.
    Keyword {
        /// The position of the called name among the occurrences; None if the call names no function.
        callee: Option<usize>,
    },
    /// An axis of a mesh.
    Axis,
    /// A mesh.
    Mesh,
}

/// A name in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Its bytes.
    pub range: Range<usize>,
    /// The name.
    pub name: String,
    /// Its meaning.
    pub meaning: Meaning,
    /// Whether the name is bound here.
    pub is_definition: bool,
    /// Whether it stands for a field and for a variable of the same name, as in `{ w, b }`.
    pub is_shorthand: bool,
}

/// The kind of a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingKind {
    /// A parameter of a function or lambda.
    Param,
    /// A size or element type of a function or type.
    SizeParam,
    /// A variable.
    Variable,
}

/// A local name.
#[derive(Clone, Debug)]
pub struct LocalBinding {
    /// The name.
    pub name: String,
    /// The bytes of the name where it is bound.
    pub range: Range<usize>,
    /// The bytes in which it is visible, unless a later binding hides it.
    pub scope: Range<usize>,
    /// The kind of the binding.
    pub kind: BindingKind,
    /// Whether it may be a function: a called variable that is none does not hide the function of its name.
    may_be_function: bool,
    /// The function or type that binds it.
    pub owner: String,
    /// The end of the type after the name, or of the name without one; of a variable in a larger pattern None.
    pub annotation: Option<Annotation>,
}

/// The type after a bound name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Annotation {
    /// No type is written.
    Absent,
    /// A type without a layout, with its span.
    WithoutLayout(Span),
    /// A type with a layout.
    WithLayout,
}

/// All names of a file.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    /// The names, in the order of the source.
    pub occurrences: Vec<Occurrence>,
    /// The local names, in the order in which they are bound.
    pub bindings: Vec<LocalBinding>,
    /// The positions of the local names in that list, by the offsets at which they are bound.
    by_start: BTreeMap<usize, usize>,
}

impl Symbols {
    /// The names of the tree of a text.
    pub fn of(tree: &ProgramNode, text: &str) -> Symbols {
        let mut walk = NameWalk { tree, text, found: Symbols::default(), scopes: Vec::new(), owner: String::new() };
        tree.items.iter().for_each(|item| walk.item(item));
        let mut found = walk.found;
        // Keywords refer to their callees by position, so the order of the tree is mapped to the order of the source.
        let mut order: Vec<usize> = (0..found.occurrences.len()).collect();
        order.sort_by_key(|&at| found.occurrences[at].range.start);
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(new, &old)| places[old] = new);
        for occurrence in &mut found.occurrences {
            if let Meaning::Keyword { callee: Some(callee) } = &mut occurrence.meaning {
                *callee = places[*callee];
            }
        }
        found.occurrences.sort_by_key(|occurrence| occurrence.range.start);
        found.by_start = found.bindings.iter().enumerate().map(|(at, binding)| (binding.range.start, at)).collect();
        found
    }

    /// The name at an offset, or the name that ends there.
    pub fn at(&self, offset: usize) -> Option<&Occurrence> {
        let next = self.occurrences.partition_point(|occurrence| occurrence.range.start <= offset);
        let found = self.occurrences.get(next.checked_sub(1)?)?;
        (offset <= found.range.end).then_some(found)
    }

    /// The local names that are visible at an offset; later bindings of a name come first.
    pub fn visible(&self, offset: usize) -> impl Iterator<Item = &LocalBinding> {
        self.bindings.iter().rev().filter(move |binding| binding.scope.contains(&offset))
    }

    /// The binding whose name is at this offset.
    pub fn binding(&self, start: usize) -> Option<&LocalBinding> {
        self.bindings.get(*self.by_start.get(&start)?)
    }
}

struct NameWalk<'a> {
    tree: &'a ProgramNode,
    text: &'a str,
    found: Symbols,
    /// The bindings of the open scopes, innermost last, by position.
    scopes: Vec<Vec<usize>>,
    owner: String,
}

fn bytes(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

impl NameWalk<'_> {
    fn item(&mut self, item: &ItemNode) {
        let global = || Meaning::Global { module: None };
        match &item.kind {
            ItemKind::Mesh(mesh) => self.mesh(mesh),
            ItemKind::Const { name, value } => {
                self.add(name, global(), true);
                self.expr(value);
            }
            ItemKind::Type { name, size_params, ty } => {
                self.add(name, global(), true);
                self.owner.clone_from(&name.name);
                self.scopes.push(Vec::new());
                size_params.iter().for_each(|param| self.bind_size(param, item.span));
                self.ty(ty);
                self.scopes.pop();
            }
            ItemKind::Import { alias, .. } => alias.iter().for_each(|alias| self.add(alias, global(), true)),
            ItemKind::Fn(function) => self.function(function, item.span),
            ItemKind::Test(test) => {
                self.owner.clone_from(&test.name.name);
                self.block(&test.body);
            }
        }
    }

    fn mesh(&mut self, mesh: &MeshItem) {
        mesh.name.iter().for_each(|name| self.add(name, Meaning::Mesh, true));
        match &mesh.kind {
            MeshKind::Axes { axes, devices } => {
                for axis in axes {
                    self.add(&axis.name, Meaning::Axis, true);
                    self.expr(&axis.size);
                }
                devices.iter().flatten().for_each(|device| self.expr(device));
            }
            MeshKind::Sub { of, fixed } => {
                self.add(of, Meaning::Mesh, false);
                for (axis, place) in fixed {
                    self.add(axis, Meaning::Axis, false);
                    self.expr(place);
                }
            }
        }
    }

    fn function(&mut self, function: &FnItem, span: Span) {
        self.add(&function.name, Meaning::Global { module: None }, true);
        self.owner.clone_from(&function.name.name);
        self.axes(function.region.iter().flat_map(|region| &region.axes));
        function.params.iter().filter_map(|param| param.default.as_ref()).for_each(|default| self.expr(default));
        self.scopes.push(Vec::new());
        function.size_params.iter().for_each(|param| self.bind_size(param, span));
        for param in &function.params {
            param.ty.iter().for_each(|ty| self.ty(ty));
            self.bind_param(param, function.body.span);
        }
        function.ret.iter().for_each(|ty| self.ty(ty));
        self.block(&function.body);
        self.scopes.pop();
    }

    fn bind_size(&mut self, name: &Ident, scope: Span) {
        self.bind_name(name.name.clone(), name.span, scope, (BindingKind::SizeParam, false), None);
    }

    fn bind_param(&mut self, param: &ParamNode, scope: Span) {
        self.bind(&param.pattern, scope, (BindingKind::Param, param.ty.is_none()), None);
    }

    fn bind_name(
        &mut self,
        name: String,
        span: Span,
        scope: Span,
        (kind, may_be_function): (BindingKind, bool),
        annotation: Option<Annotation>,
    ) {
        let range = bytes(span);
        let meaning = Meaning::Local(range.start);
        let (range, is_definition) = (range.clone(), true);
        let occurrence =
            Occurrence { range: range.clone(), name: name.clone(), meaning, is_definition, is_shorthand: false };
        self.found.occurrences.push(occurrence);
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(self.found.bindings.len());
        }
        let (owner, scope) = (self.owner.clone(), bytes(scope));
        self.found.bindings.push(LocalBinding { name, range, scope, kind, may_be_function, owner, annotation });
    }

    fn bind(&mut self, pattern: &PatternNode, scope: Span, kind: (BindingKind, bool), annotation: Option<Annotation>) {
        match &pattern.kind {
            PatternKind::Name(name) => self.bind_name(name.clone(), pattern.span, scope, kind, annotation),
            PatternKind::Wildcard => {}
            PatternKind::Tuple(parts) => parts.iter().for_each(|part| self.bind(part, scope, kind, None)),
            PatternKind::Struct(fields) => {
                for (field, part) in fields {
                    match part {
                        Some(part) => {
                            self.add(field, Meaning::Field, false);
                            self.bind(part, scope, kind, None);
                        }
                        None => {
                            self.bind_name(field.name.clone(), field.span, scope, kind, None);
                            self.shorten();
                        }
                    }
                }
            }
        }
    }

    /// Marks the last name as one that stands for a field, too.
    fn shorten(&mut self) {
        if let Some(last) = self.found.occurrences.last_mut() {
            last.is_shorthand = true;
        }
    }

    fn add(&mut self, name: &Ident, meaning: Meaning, is_definition: bool) {
        let (range, name) = (bytes(name.span), name.name.clone());
        self.found.occurrences.push(Occurrence { range, name, meaning, is_definition, is_shorthand: false });
    }

    fn axes<'i>(&mut self, axes: impl IntoIterator<Item = &'i Ident>) {
        axes.into_iter().for_each(|axis| self.add(axis, Meaning::Axis, false));
    }

    fn local(&self, name: &str) -> Option<&LocalBinding> {
        let mut bound = self.scopes.iter().rev().flat_map(|scope| scope.iter().rev());
        bound.find_map(|&at| Some(&self.found.bindings[at]).filter(|binding| binding.name == name))
    }

    /// A use of a name as a value, or as a called function.
    fn name(&mut self, name: &str, span: Span, is_called: bool) {
        let is_function = || {
            let of_file = |item: &ItemNode| matches!(&item.kind, ItemKind::Fn(function) if function.name.name == name);
            is_builtin(name) || self.tree.items.iter().any(of_file)
        };
        let local = self.local(name).filter(|binding| !is_called || binding.may_be_function || !is_function());
        let meaning = local.map_or(Meaning::Global { module: None }, |binding| Meaning::Local(binding.range.start));
        self.add(&Ident { name: name.to_string(), span }, meaning, false);
    }

    fn ty(&mut self, ty: &TypeExpr) {
        match &ty.kind {
            TypeExprKind::Array { dtype, dims, unreduced, reduced, varying, turned, mesh } => {
                if let ElementType::Param(name) = dtype {
                    self.name(&name.name, name.span, false);
                }
                for dim in dims {
                    self.expr(&dim.size);
                    self.axes(dim.axes.iter().flat_map(|axes| &axes.axes));
                }
                self.axes([unreduced, reduced, varying, turned].into_iter().flatten());
                mesh.iter().for_each(|mesh| self.add(mesh, Meaning::Mesh, false));
            }
            TypeExprKind::Tuple(parts) => parts.iter().for_each(|part| self.ty(part)),
            TypeExprKind::Struct(fields) => {
                for (field, part) in fields {
                    self.add(field, Meaning::Field, true);
                    self.ty(part);
                }
            }
            TypeExprKind::Named { module, name, args } => {
                match module {
                    Some(module) => {
                        self.add(module, Meaning::Global { module: None }, false);
                        self.add(name, Meaning::Global { module: Some(module.name.clone()) }, false);
                    }
                    None => self.name(&name.name, name.span, false),
                }
                args.iter().for_each(|arg| self.expr(arg));
            }
            TypeExprKind::Stream(ty) => self.ty(ty),
            TypeExprKind::On { ty, mesh } => {
                self.ty(ty);
                self.add(mesh, Meaning::Mesh, false);
            }
        }
    }

    fn block(&mut self, block: &BlockNode) {
        self.scopes.push(Vec::new());
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtNodeKind::Let { pattern, ty, value, .. } => {
                    self.expr(value);
                    ty.iter().for_each(|ty| self.ty(ty));
                    let scope = Span { start: stmt.span.end, end: block.span.end, ..stmt.span };
                    let may_be_function = matches!(
                        value.kind,
                        ExprKind::Lambda { .. } | ExprKind::Call { .. } | ExprKind::Name(_) | ExprKind::If { .. }
                    );
                    let annotation = ty.as_ref().map_or(Annotation::Absent, annotation);
                    self.bind(pattern, scope, (BindingKind::Variable, may_be_function), Some(annotation));
                }
                StmtNodeKind::Assign { target, value, .. } => {
                    self.expr(value);
                    self.expr(target);
                }
                StmtNodeKind::Expr(expr) => self.expr(expr),
            }
        }
        block.value.iter().for_each(|value| self.expr(value));
        self.scopes.pop();
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Str(_)
            | ExprKind::Wildcard
            | ExprKind::None => {}
            ExprKind::Name(name) => self.name(name, self.within(expr, name), false),
            ExprKind::Unary { arg, .. } => self.expr(arg),
            ExprKind::Binary { lhs, rhs, .. } => {
                self.expr(lhs);
                self.expr(rhs);
            }
            ExprKind::Call { callee, args } => self.call(callee, args),
            ExprKind::Index { base, indices } => {
                self.expr(base);
                indices.iter().flat_map(IndexNode::exprs).for_each(|expr| self.expr(expr));
            }
            ExprKind::Field { base, name } => self.field(base, name, Meaning::Field),
            ExprKind::TupleField { base, .. } => self.expr(base),
            ExprKind::Lambda { params, body } => {
                self.scopes.push(Vec::new());
                for param in params {
                    param.ty.iter().for_each(|ty| self.ty(ty));
                    self.bind_param(param, body.span);
                }
                self.expr(body);
                self.scopes.pop();
            }
            ExprKind::Tuple(parts) | ExprKind::List(parts) => parts.iter().for_each(|part| self.expr(part)),
            ExprKind::Struct(fields) => {
                for (field, value) in fields {
                    match value {
                        Some(value) => {
                            self.add(field, Meaning::Field, false);
                            self.expr(value);
                        }
                        None => {
                            self.name(&field.name, field.span, false);
                            self.shorten();
                        }
                    }
                }
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::If { cond, then, otherwise } => {
                self.expr(cond);
                self.block(then);
                otherwise.iter().for_each(|otherwise| self.expr(otherwise));
            }
            ExprKind::For { pattern, start, end, step, body, .. } => {
                self.expr(start);
                self.expr(end);
                step.iter().for_each(|step| self.expr(step));
                self.scopes.push(Vec::new());
                self.bind(pattern, body.span, (BindingKind::Variable, false), None);
                self.block(body);
                self.scopes.pop();
            }
            ExprKind::While { cond, body } => {
                self.expr(cond);
                self.block(body);
            }
            ExprKind::Sharding(sharding) => {
                self.axes(sharding.dims.iter().flat_map(|dim| &dim.axes));
                self.axes(sharding.unreduced.iter().chain(&sharding.reduced));
            }
            ExprKind::Type(ty) => self.ty(ty),
        }
    }

    fn call(&mut self, callee: &Expr, args: &[ArgNode]) {
        if let ExprKind::Name(name) = &callee.kind {
            self.name(name, self.within(callee, name), true);
        } else if let ExprKind::Field { base, name } = &callee.kind {
            self.field(base, name, Meaning::Method);
        } else {
            self.expr(callee);
        }
        let is_named = matches!(callee.kind, ExprKind::Name(_) | ExprKind::Field { .. });
        let place = self.found.occurrences.len().checked_sub(1).filter(|_| is_named);
        for arg in args {
            if let Some(name) = &arg.name {
                self.add(name, Meaning::Keyword { callee: place }, false);
            }
            self.expr(&arg.value);
        }
    }

    fn field(&mut self, base: &Expr, name: &Ident, otherwise: Meaning) {
        self.expr(base);
        let module = if let ExprKind::Name(module) = &base.kind { Some(module.clone()) } else { None };
        let module = module.filter(|module| self.local(module).is_none() && self.is_alias(module));
        let meaning = module.map_or(otherwise, |module| Meaning::Global { module: Some(module) });
        self.add(name, meaning, false);
    }

    /// The span of a name without the parentheses around it.
    fn within(&self, expr: &Expr, name: &str) -> Span {
        let range = bytes(expr.span);
        let at = self.text.get(range.clone()).and_then(|text| text.find(name)).unwrap_or(0);
        let start = expr.span.start + at as u32;
        Span { start, end: (start + name.len() as u32).min(expr.span.end), ..expr.span }
    }

    fn is_alias(&self, name: &str) -> bool {
        self.tree
            .items
            .iter()
            .any(|item| matches!(&item.kind, ItemKind::Import { alias: Some(alias), .. } if alias.name == name))
    }
}

fn annotation(ty: &TypeExpr) -> Annotation {
    if has_layout(ty) { Annotation::WithLayout } else { Annotation::WithoutLayout(ty.span) }
}

fn has_layout(ty: &TypeExpr) -> bool {
    match &ty.kind {
        TypeExprKind::Array { dims, unreduced, reduced, .. } => {
            dims.iter().any(|dim| dim.axes.is_some()) || !unreduced.is_empty() || !reduced.is_empty()
        }
        TypeExprKind::Tuple(parts) => parts.iter().any(has_layout),
        TypeExprKind::Struct(fields) => fields.iter().any(|(_, part)| has_layout(part)),
        // The type may have a layout where it is declared.
        TypeExprKind::Named { .. } => true,
        TypeExprKind::Stream(ty) | TypeExprKind::On { ty, .. } => has_layout(ty),
    }
}
