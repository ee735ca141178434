//! Resolves the names of each file, and reports unknown ones.
//!
//! Every function of the program is visited, called or not, before any is expanded. So errors in two functions are both reported.

use crate::errors;
use crate::program::sources::SourceSet;
use spmdc_functions::is_builtin;
use spmdc_grammar::ast::*;
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::habits;
use spmdc_grammar::span::{FileId, Span};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// An item of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ItemId {
    pub file: FileId,
    pub index: usize,
}

/// The entity that a name of a file denotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entity {
    Item(ItemId),
    /// `import ".." as nn`
    Module(FileId),
}

/// The names that each file may use, without local names of its functions.
pub struct Names {
    files: Vec<BTreeMap<String, Entity>>,
}

impl Names {
    /// Collects the items of all files; a name that a file defines twice is an error.
    pub fn collect(set: &SourceSet, diagnostics: &mut Vec<Diagnostic>) -> Names {
        let own: Vec<BTreeMap<String, Entity>> =
            (0..set.files.len()).map(|file| own_names(set, FileId(file as u16), diagnostics)).collect();
        let mut files = own.clone();
        for (position, file) in set.files.iter().enumerate() {
            for (at, imported) in &file.imports {
                let ItemKind::Import { alias: None, .. } = &file.program.items[*at].kind else { continue };
                for (name, entity) in &own[imported.0 as usize] {
                    files[position].entry(name.clone()).or_insert(*entity);
                }
            }
        }
        Names { files }
    }

    /// Finds a name; None in the file of the prelude, which sees no names of the program.
    pub fn find(&self, file: FileId, name: &str) -> Option<Entity> {
        self.files.get(file.0 as usize)?.get(name).copied()
    }

    pub fn of_file(&self, file: FileId) -> impl Iterator<Item = &str> {
        self.files[file.0 as usize].keys().map(String::as_str)
    }
}

fn own_names(set: &SourceSet, file: FileId, diagnostics: &mut Vec<Diagnostic>) -> BTreeMap<String, Entity> {
    let mut names = BTreeMap::new();
    let mut places: BTreeMap<String, Span> = BTreeMap::new();
    for (index, item) in set.file(file).program.items.iter().enumerate() {
        let id = Entity::Item(ItemId { file, index });
        let (ident, entity) = match &item.kind {
            ItemKind::Const { name, .. } | ItemKind::Type { name, .. } => (name, id),
            ItemKind::Fn(function) | ItemKind::Test(function) => (&function.name, id),
            ItemKind::Import { alias: Some(alias), .. } => match set.file(file).imports.get(&index) {
                Some(imported) => (alias, Entity::Module(*imported)),
                None => continue,
            },
            ItemKind::Import { alias: None, .. } | ItemKind::Mesh(_) => continue,
        };
        if let Some(first) = places.get(&ident.name) {
            diagnostics.push(errors::items::defined_twice(ident, *first));
            continue;
        }
        places.insert(ident.name.clone(), ident.span);
        names.insert(ident.name.clone(), entity);
    }
    names
}

/// Reports every unknown name in every function and every test that is compiled, given the names of axes and of meshes.
pub fn resolve(
    set: &SourceSet,
    names: &Names,
    is_compiled: &dyn Fn(&FnItem) -> bool,
    (axes, meshes): (&[String], &[String]),
    diagnostics: &mut Vec<Diagnostic>,
) {
    let fields = field_names(set);
    for (position, file) in set.files.iter().enumerate() {
        let id = FileId(position as u16);
        for item in &file.program.items {
            if matches!(&item.kind, ItemKind::Test(test) if !is_compiled(test)) {
                continue;
            }
            let mut resolver = Resolver {
                set,
                names,
                axes,
                meshes,
                fields: &fields,
                file: id,
                scopes: Vec::new(),
                locals: HashMap::new(),
                signature: None,
                is_size: false,
                diagnostics,
            };
            resolver.item(item);
        }
    }
}

/// All field names of structs, because `p.f(x)` may call a function in a field.
fn field_names(set: &SourceSet) -> BTreeSet<String> {
    fn of_type(ty: &TypeExpr, fields: &mut BTreeSet<String>) {
        match &ty.kind {
            TypeExprKind::Array { .. } | TypeExprKind::Named { .. } => {}
            TypeExprKind::Tuple(parts) => parts.iter().for_each(|part| of_type(part, fields)),
            TypeExprKind::Struct(parts) => {
                for (name, part) in parts {
                    fields.insert(name.name.clone());
                    of_type(part, fields);
                }
            }
            TypeExprKind::Stream(ty) | TypeExprKind::On { ty, .. } => of_type(ty, fields),
        }
    }
    let mut fields = BTreeSet::new();
    for file in &set.files {
        for item in &file.program.items {
            match &item.kind {
                ItemKind::Type { ty, .. } => of_type(ty, &mut fields),
                ItemKind::Fn(function) => {
                    function
                        .params
                        .iter()
                        .filter_map(|param| param.ty.as_ref())
                        .for_each(|ty| of_type(ty, &mut fields));
                }
                ItemKind::Mesh(_) | ItemKind::Const { .. } | ItemKind::Import { .. } | ItemKind::Test(_) => {}
            }
        }
    }
    fields
}

struct Resolver<'a> {
    set: &'a SourceSet,
    names: &'a Names,
    axes: &'a [String],
    meshes: &'a [String],
    fields: &'a BTreeSet<String>,
    file: FileId,
    /// The local names of the function, innermost scope last.
    scopes: Vec<Vec<String>>,
    /// The number of scopes with each of them.
    locals: HashMap<String, usize>,
    /// The function whose declared types are resolved.
    signature: Option<&'a FnItem>,
    /// Whether a size of a type is resolved.
    is_size: bool,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Resolver<'a> {
    fn item(&mut self, item: &'a ItemNode) {
        match &item.kind {
            ItemKind::Const { value, .. } => self.expr(value),
            ItemKind::Type { size_params, ty, .. } => {
                self.push(size_params.iter().map(|param| param.name.clone()).collect());
                self.ty(ty);
                self.pop();
            }
            ItemKind::Fn(function) | ItemKind::Test(function) => self.function(function),
            // The mesh is read before names are resolved, and reports its own errors.
            ItemKind::Mesh(_) | ItemKind::Import { .. } => {}
        }
    }

    fn function(&mut self, function: &'a FnItem) {
        let mut scope: Vec<String> = function.size_params.iter().map(|param| param.name.clone()).collect();
        for axis in function.region.iter().flat_map(|region| &region.axes) {
            self.axis(axis);
        }
        // A default value is the same for all calls, so it sees no parameters.
        function.params.iter().filter_map(|param| param.default.as_ref()).for_each(|default| self.expr(default));
        self.push(scope.clone());
        self.signature = Some(function);
        for param in &function.params {
            if let Some(ty) = &param.ty {
                self.ty(ty);
            }
        }
        if let Some(ret) = &function.ret {
            self.ty(ret);
        }
        self.signature = None;
        self.pop();
        for param in &function.params {
            if let Some(twice) = repeated_name(&param.pattern, &mut scope) {
                self.diagnostics.push(errors::items::parameter_twice(&twice));
            }
        }
        self.push(scope);
        self.block(&function.body);
        self.pop();
    }

    fn ty(&mut self, ty: &TypeExpr) {
        match &ty.kind {
            TypeExprKind::Array { dtype, dims, unreduced, reduced, varying, turned, mesh } => {
                mesh.iter().for_each(|mesh| self.mesh(mesh));
                if let ElementType::Param(name) = dtype
                    && !self.is_local(&name.name)
                {
                    self.diagnostics.push(errors::names::unknown_element_type(&name.name, name.span));
                }
                for dim in dims {
                    let outer = std::mem::replace(&mut self.is_size, true);
                    self.expr(&dim.size);
                    self.is_size = outer;
                    dim.axes.iter().flat_map(|axes| &axes.axes).for_each(|axis| self.axis(axis));
                }
                [unreduced, reduced, varying, turned].into_iter().flatten().for_each(|axis| self.axis(axis));
            }
            TypeExprKind::Tuple(parts) => parts.iter().for_each(|part| self.ty(part)),
            TypeExprKind::Struct(parts) => parts.iter().for_each(|(_, part)| self.ty(part)),
            // An element type parameter of the function.
            TypeExprKind::Named { module: None, name, args } if args.is_empty() && self.is_local(&name.name) => {}
            TypeExprKind::Named { module, name, args } => {
                self.type_name(module.as_ref(), name);
                let outer = std::mem::replace(&mut self.is_size, true);
                args.iter().for_each(|arg| self.expr(arg));
                self.is_size = outer;
            }
            TypeExprKind::Stream(ty) => self.ty(ty),
            TypeExprKind::On { ty, mesh } => {
                self.mesh(mesh);
                self.ty(ty);
            }
        }
    }

    fn type_name(&mut self, module: Option<&Ident>, name: &Ident) {
        let file = match module {
            None => self.file,
            Some(module) => match self.names.find(self.file, &module.name) {
                Some(Entity::Module(file)) => file,
                Some(Entity::Item(_)) | None => {
                    self.unknown(&module.name, module.span);
                    return;
                }
            },
        };
        let is_type = |entity: Entity| match entity {
            Entity::Item(id) => matches!(self.set.file(id.file).program.items[id.index].kind, ItemKind::Type { .. }),
            Entity::Module(_) => false,
        };
        if !self.names.find(file, &name.name).is_some_and(is_type) {
            let types: Vec<&str> = self
                .names
                .of_file(file)
                .filter(|candidate| self.names.find(file, candidate).is_some_and(is_type))
                .chain(DTypeName::ALL.iter().map(|(_, name)| *name))
                .collect();
            self.diagnostics.push(errors::names::unknown_type(&name.name, name.span, &types));
        }
    }

    fn axis(&mut self, axis: &Ident) {
        if !self.axes.contains(&axis.name) {
            self.diagnostics.push(errors::names::unknown_axis(&axis.name, axis.span, self.axes));
        }
    }

    fn mesh(&mut self, mesh: &Ident) {
        if !self.meshes.contains(&mesh.name) {
            self.diagnostics.push(errors::names::unknown_mesh(&mesh.name, mesh.span, self.meshes));
        }
    }

    fn block(&mut self, block: &BlockNode) {
        self.push(Vec::new());
        for stmt in &block.stmts {
            match &stmt.kind {
                StmtNodeKind::Let { pattern, ty, value, .. } => {
                    self.expr(value);
                    if let Some(ty) = ty {
                        self.ty(ty);
                    }
                    self.bind(pattern);
                }
                StmtNodeKind::Assign { target, value, .. } => {
                    self.expr(value);
                    self.expr(target);
                }
                StmtNodeKind::Expr(expr) => self.expr(expr),
            }
        }
        if let Some(value) = &block.value {
            self.expr(value);
        }
        self.pop();
    }

    fn push(&mut self, names: Vec<String>) {
        names.iter().for_each(|name| *self.locals.entry(name.clone()).or_default() += 1);
        self.scopes.push(names);
    }

    fn pop(&mut self) {
        for name in self.scopes.pop().expect("a scope is open") {
            if let Some(count) = self.locals.get_mut(&name) {
                *count -= 1;
            }
        }
    }

    fn bind(&mut self, pattern: &PatternNode) {
        let mut names = Vec::new();
        pattern_names(pattern, &mut names);
        names.iter().for_each(|name| *self.locals.entry(name.clone()).or_default() += 1);
        if let Some(scope) = self.scopes.last_mut() {
            scope.append(&mut names);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Int(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::Str(_)
            | ExprKind::Wildcard
            | ExprKind::None => {}
            ExprKind::Name(name) => {
                if !self.is_known(name) {
                    self.unknown(name, expr.span);
                }
            }
            ExprKind::Unary { arg, .. } => self.expr(arg),
            ExprKind::Binary { lhs, rhs, .. } => {
                self.expr(lhs);
                self.expr(rhs);
            }
            ExprKind::Call { callee, args } => {
                if let ExprKind::Field { base, name } = &callee.kind {
                    if !self.foreign(base, name, callee.span, expr.span) {
                        self.method(base, name);
                    }
                } else {
                    self.expr(callee);
                }
                args.iter().for_each(|arg| self.expr(&arg.value));
            }
            ExprKind::Index { base, indices } => {
                self.expr(base);
                indices.iter().flat_map(IndexNode::exprs).for_each(|expr| self.expr(expr));
            }
            ExprKind::Field { base, name } => match self.module(base) {
                Some(file) => self.module_member(file, name),
                None if self.foreign(base, name, expr.span, expr.span) => {}
                None => self.expr(base),
            },
            ExprKind::TupleField { base, .. } => self.expr(base),
            ExprKind::Lambda { params, body } => {
                self.push(Vec::new());
                for param in params {
                    if let Some(ty) = &param.ty {
                        self.ty(ty);
                    }
                    self.bind(&param.pattern);
                }
                self.expr(body);
                self.pop();
            }
            ExprKind::Tuple(parts) | ExprKind::List(parts) => parts.iter().for_each(|part| self.expr(part)),
            ExprKind::Struct(fields) => {
                for (name, value) in fields {
                    match value {
                        Some(value) => self.expr(value),
                        None if self.is_known(&name.name) => {}
                        None => self.unknown(&name.name, name.span),
                    }
                }
            }
            ExprKind::Block(block) => self.block(block),
            ExprKind::If { cond, then, otherwise } => {
                self.expr(cond);
                self.block(then);
                if let Some(otherwise) = otherwise {
                    self.expr(otherwise);
                }
            }
            ExprKind::For { pattern, start, end, step, body, .. } => {
                self.expr(start);
                self.expr(end);
                step.iter().for_each(|step| self.expr(step));
                self.push(Vec::new());
                self.bind(pattern);
                self.block(body);
                self.pop();
            }
            ExprKind::While { cond, body } => {
                self.expr(cond);
                self.block(body);
            }
            ExprKind::Sharding(sharding) => {
                sharding.dims.iter().flat_map(|dim| &dim.axes).for_each(|axis| self.axis(axis));
                sharding.unreduced.iter().chain(&sharding.reduced).for_each(|axis| self.axis(axis));
            }
            ExprKind::Type(ty) => self.ty(ty),
        }
    }

    /// `np.linalg.norm(x)`: a function with the name of a library before it. Reports it, and returns whether it is one.
    fn foreign(&mut self, base: &Expr, name: &Ident, callee: Span, call: Span) -> bool {
        let mut root = base;
        while let ExprKind::Field { base, .. } = &root.kind {
            root = base;
        }
        let ExprKind::Name(prefix) = &root.kind else { return false };
        if !habits::is_library(prefix) || self.is_known(prefix) {
            return false;
        }
        let text = &self.set.file(self.file).text;
        let own = text.get(name.span.start as usize..call.end as usize).unwrap_or_default();
        self.diagnostics.push(errors::names::foreign(prefix, name, own, (root.span, callee)));
        true
    }

    /// `x.sum(..)`, `nn.dense(..)`, `p.f(..)`.
    fn method(&mut self, base: &Expr, name: &Ident) {
        if let Some(file) = self.module(base) {
            self.module_member(file, name);
            return;
        }
        let before = self.diagnostics.len();
        self.expr(base);
        // `x.at[0].set(v)`: the checker has a better message for `at`, and an unknown prefix is reported by its name.
        let is_at = matches!(&base.kind, ExprKind::Index { base, .. }
            if matches!(&base.kind, ExprKind::Field { name, .. } if name.name == "at"));
        if is_at || self.diagnostics.len() > before && matches!(base.kind, ExprKind::Name(_)) {
            return;
        }
        let is_field = self.fields.contains(&name.name);
        if !is_field && !is_builtin(&name.name) && self.names.find(self.file, &name.name).is_none() {
            self.unknown(&name.name, name.span);
        }
    }

    fn module(&self, base: &Expr) -> Option<FileId> {
        let ExprKind::Name(name) = &base.kind else { return None };
        if self.is_local(name) {
            return None;
        }
        match self.names.find(self.file, name) {
            Some(Entity::Module(file)) => Some(file),
            Some(Entity::Item(_)) | None => None,
        }
    }

    fn module_member(&mut self, file: FileId, name: &Ident) {
        if self.names.find(file, &name.name).is_none() {
            let candidates: Vec<&str> = self.names.of_file(file).collect();
            let module = &self.set.file(file).name;
            self.diagnostics.push(errors::names::unknown_member(&name.name, module, name.span, &candidates));
        }
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.get(name).is_some_and(|&count| count > 0)
    }

    fn is_known(&self, name: &str) -> bool {
        self.is_local(name)
            || self.names.find(self.file, name).is_some()
            || self.axes.iter().chain(self.meshes).any(|known| known == name)
            || is_builtin(name)
    }

    fn unknown(&mut self, name: &str, span: Span) {
        let mut candidates: Vec<&str> = self.scopes.iter().flatten().map(String::as_str).collect();
        candidates.extend(self.names.of_file(self.file));
        candidates.extend(self.axes.iter().chain(self.meshes).map(String::as_str));
        // `extend` would require all names to live as long as these.
        spmdc_functions::builtin_names()
            .filter(|name| spmdc_functions::instead_of(name).is_none())
            .for_each(|name| candidates.push(name));
        candidates.extend(["true", "false", "None"]);
        let unknown = match self.signature.filter(|_| self.is_size) {
            Some(function) => errors::names::unknown_size(name, span, function, &candidates),
            None => errors::names::unknown_name(name, span, &candidates),
        };
        self.diagnostics.push(unknown);
    }
}

pub fn pattern_names(pattern: &PatternNode, names: &mut Vec<String>) {
    match &pattern.kind {
        PatternKind::Name(name) => names.push(name.clone()),
        PatternKind::Wildcard => {}
        PatternKind::Tuple(parts) => parts.iter().for_each(|part| pattern_names(part, names)),
        PatternKind::Struct(fields) => {
            for (name, part) in fields {
                match part {
                    Some(part) => pattern_names(part, names),
                    None => names.push(name.name.clone()),
                }
            }
        }
    }
}

/// Adds the names of a parameter to `scope`; returns one that it already has.
fn repeated_name(pattern: &PatternNode, scope: &mut Vec<String>) -> Option<Ident> {
    let mut names = Vec::new();
    pattern_names(pattern, &mut names);
    let twice = names.iter().find(|name| scope.contains(name)).cloned();
    scope.append(&mut names);
    twice.map(|name| Ident { name, span: pattern.span })
}
