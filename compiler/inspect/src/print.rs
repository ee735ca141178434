//! Prints a module as text: a program of the language that reads back as the same module.
//!
//! ```text
//! stage typed;
//! mesh (X = 2, Y = 4);
//! fn main(x: f32[4@X,8]) -> f32[4,8] {
//!   let y: f32[4,8] = sin(x);  // 3:11
//!   let v0: f32[4,8] = y + y;  // 4:3
//!   v0
//! }
//! ```
//!
//! Each statement has one line and its types. A value has the name of the user's variable if that is unique, and otherwise a number in the
//! order of printing. After differentiation, names that are not unique get a number, and the derivative of `h` is `d_h`. Control flow is
//! printed as in the language, and a manual region as a `manual fn` above and a call of it.

use spmdc_abi::ReduceOp;
use spmdc_functions::is_builtin;
use spmdc_grammar::ast::DTypeName;
use spmdc_grammar::span::Span;
use spmdc_ir::program::control::{Branch, Control, ForLoop, ManualRegion, WhileLoop};
use spmdc_ir::program::origin::{DerivativePart, DerivedFrom};
use spmdc_ir::program::{Block, Func, Module, Stage, Stmt, StmtKind, Value};
use spmdc_ir::rules::Semantics;
use spmdc_layout::mesh::{AxisKind, Mesh, NamedMesh};
use spmdc_layout::sharding::{DimSharding, Sharding};
use spmdc_layout::types::{ArrayType, Type};
use spmdc_ops::reshard::Reshard;
use std::collections::{BTreeMap, BTreeSet};

/// Gives the position of a span as `line:column`; None omits the comment.
pub type Places<'a> = &'a dyn Fn(Span) -> Option<String>;

/// The text of a module without comments.
pub fn module(module: &Module) -> String {
    module_with_places(module, &|_| None)
}

/// The text of a module; comments give the origin of each statement, and its reason.
pub fn module_with_places(module: &Module, places: Places<'_>) -> String {
    // A dump is a program, and its axes have no parts.
    let mesh = module.mesh.plain();
    let mut printer = Printer::new(module, &mesh, places);
    let body = printer.entry();
    let mut text = format!("stage {};\n", module.stage.name());
    if !module.mesh.axes.is_empty() || !module.mesh.named.is_empty() {
        text += &meshes(&module.mesh);
    }
    for function in &printer.manual_functions {
        text += function;
    }
    text + &body
}

/// The declarations of the meshes of a program.
fn meshes(mesh: &Mesh) -> String {
    let axes =
        |axes: &[u8]| axes.iter().map(|&axis| axis_text(&mesh.axes[usize::from(axis)])).collect::<Vec<_>>().join(", ");
    let all: Vec<u8> = (0..mesh.axes.len() as u8).collect();
    if mesh.named.is_empty() {
        return format!("mesh ({});\n", axes(&all));
    }
    let line = |named: &NamedMesh| {
        let name = if named.name.is_empty() { String::new() } else { format!("{} ", named.name) };
        let is_in_order = named.devices.iter().enumerate().all(|(at, &device)| at == device);
        let numbers = named.devices.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let devices = if is_in_order { String::new() } else { format!(" devices [{numbers}]") };
        // The axes of the only mesh may have parts.
        format!("mesh {name}({}){devices};\n", axes(if mesh.is_several() { &named.axes } else { &all }))
    };
    mesh.named.iter().map(line).collect()
}

fn axis_names(mesh: &Mesh) -> BTreeSet<String> {
    mesh.axes.iter().map(|axis| &axis.name).chain(mesh.named.iter().map(|named| &named.name)).cloned().collect()
}

fn axis_text(axis: &spmdc_layout::mesh::Axis) -> String {
    match axis.kind {
        AxisKind::Auto => format!("{} = {}", axis.name, axis.size),
        kind @ (AxisKind::Explicit | AxisKind::Manual) => format!("{}: {} = {}", axis.name, kind.name(), axis.size),
    }
}

struct Printer<'a> {
    func: &'a Func,
    mesh: &'a Mesh,
    stage: Stage,
    places: Places<'a>,
    names: BTreeMap<Value, String>,
    /// The names of carried values, including values that temporarily have another name.
    bases: BTreeMap<Value, String>,
    /// Names for the residuals that loops collect.
    kept: BTreeMap<Value, String>,
    /// Names that no value can take any more.
    taken: BTreeSet<String>,
    next: usize,
    /// The functions of manual regions, in the order of their calls.
    manual_functions: Vec<String>,
    out: String,
    depth: usize,
}

impl<'a> Printer<'a> {
    fn new(module: &'a Module, mesh: &'a Mesh, places: Places<'a>) -> Printer<'a> {
        let mut taken = axis_names(mesh);
        taken.insert(module.func.name.clone());
        Printer {
            func: &module.func,
            mesh,
            stage: module.stage,
            places,
            names: BTreeMap::new(),
            bases: BTreeMap::new(),
            kept: BTreeMap::new(),
            taken,
            next: 0,
            manual_functions: Vec::new(),
            out: String::new(),
            depth: 0,
        }
    }

    fn entry(&mut self) -> String {
        let func = self.func;
        for (param, &value) in func.params.iter().zip(&func.body.params) {
            self.taken.insert(param.name.split('.').next().unwrap_or_default().to_string());
            self.names.insert(value, param.name.clone());
        }
        let types = func.params.iter().zip(&func.body.params).map(|(param, &value)| {
            let on = param.on.and_then(|on| self.mesh.named.get(usize::from(on)));
            on.map_or(self.ty(value), |on| format!("{} on {}", self.ty(value), on.name))
        });
        let params = Tree::of(func.params.iter().map(|param| param.name.as_str()).zip(types));
        let params: Vec<String> = match params {
            Tree::Node(parts) => parts.iter().map(|(name, ty)| format!("{name}: {}", ty.text())).collect(),
            Tree::Leaf(_) => Vec::new(),
        };
        let result = |texts: Vec<String>| match texts.as_slice() {
            [] => None,
            [text] if func.results[0].name == "0" => Some(text.clone()),
            _ => Some(Tree::of(func.results.iter().map(|result| result.name.as_str()).zip(texts)).text()),
        };
        let types = func.body.results.iter().map(|&value| self.ty(value)).collect();
        let ret = result(types).map_or(String::new(), |text| format!(" -> {text}"));
        self.line(&format!("fn {}({}){ret} {{", func.name, params.join(", ")));
        self.depth += 1;
        self.stmts(&func.body);
        let values = func.body.results.iter().map(|value| self.name(*value)).collect();
        if let Some(text) = result(values) {
            self.line(&text);
        }
        self.depth -= 1;
        self.line("}");
        std::mem::take(&mut self.out)
    }

    fn line(&mut self, text: &str) {
        self.out += &"  ".repeat(self.depth);
        self.out += text;
        self.out.push('\n');
    }

    fn stmts(&mut self, block: &Block) {
        block.stmts.iter().for_each(|stmt| self.stmt(stmt));
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Op(op) => {
                let args: Vec<String> = stmt.args.iter().map(|&arg| self.name(arg)).collect();
                let text = if let Some(op) = op.as_op::<Reshard>() {
                    let to = Sharding { combine: ReduceOp::Sum, ..op.to.clone() };
                    Reshard { to, step: op.step }.print(&args, self.mesh)
                } else {
                    op.rules().print(&args, self.mesh)
                };
                let line = format!("{}{text};{}", self.binding(&stmt.results), self.comment(stmt));
                self.line(&line);
            }
            StmtKind::Control(Control::For(op)) => self.for_loop(op, stmt),
            StmtKind::Control(Control::While(op)) => self.while_loop(op, stmt),
            StmtKind::Control(Control::Branch(op)) => self.branch(op, stmt),
            StmtKind::Control(Control::Manual(op)) => self.manual(op, stmt),
        }
    }

    /// `let v1: f32 = `, `let (a, b): (f32, f32) = `; nothing for statements without results.
    fn binding(&mut self, results: &[Value]) -> String {
        let names: Vec<String> = results.iter().map(|&result| self.fresh(result)).collect();
        let types: Vec<String> = results.iter().map(|&result| self.ty(result)).collect();
        match (names.as_slice(), types.as_slice()) {
            ([], _) => String::new(),
            ([name], [ty]) => format!("let {name}: {ty} = "),
            _ => format!("let ({}): ({}) = ", names.join(", "), types.join(", ")),
        }
    }

    /// The comment of a statement: its source position, the user's names of its results if other values had them first, and its
    /// reason.
    fn comment(&self, stmt: &Stmt) -> String {
        let Some(place) = (self.places)(stmt.origin.span) else { return String::new() };
        let mut parts = vec![place];
        if self.stage == Stage::Differentiated
            && stmt.origin.reason.is_empty()
            && let Some(derivative) = self.func.derivative(&stmt.origin)
        {
            let quote = self.func.quotes.get(&stmt.origin.span);
            parts.push(quote.map_or(derivative.clone(), |quote| format!("{derivative}, {quote}")));
        }
        for result in &stmt.results {
            if let Some(name) = &self.func.info(*result).name
                && self.names.get(result) != Some(name)
            {
                parts.push(name.clone());
            }
        }
        if !stmt.origin.reason.is_empty() {
            parts.push(self.func.reason(&stmt.origin));
        }
        format!("  // {}", parts.join(", "))
    }

    /// Carried values are variables: the loop's parameters and its results have their names.
    fn carries(&mut self, inits: &[Value], params: &[Value], results: &[Value]) -> Vec<String> {
        let mut names = Vec::new();
        for ((&init, &param), &result) in inits.iter().zip(params).zip(results) {
            let init = self.name(init);
            let named = if self.func.info(result).name.is_some() { result } else { param };
            let name = self.fresh(named);
            let ty = self.ty(param);
            self.line(&format!("let mut {name}: {ty} = {init};"));
            self.names.insert(param, name.clone());
            self.names.insert(result, name.clone());
            self.bases.insert(param, name.clone());
            names.push(name);
        }
        names
    }

    fn assign(&mut self, names: &[String], values: &[Value]) {
        let values: Vec<String> = values.iter().map(|&value| self.name(value)).collect();
        match (names, values.as_slice()) {
            ([], _) => {}
            ([name], [value]) => self.line(&format!("{name} = {value};")),
            _ => self.line(&format!("({}) = ({});", names.join(", "), values.join(", "))),
        }
    }

    fn for_loop(&mut self, op: &ForLoop, stmt: &Stmt) {
        let (bounds, inits) = stmt.args.split_at(op.bounds());
        let (start, end) = match (op.range, bounds) {
            (Some((start, end)), _) => (start.to_string(), end.to_string()),
            (None, [start, end]) => (self.name(*start), self.name(*end)),
            (None, _) => Default::default(),
        };
        let body = &op.body;
        let (finals, collected) = stmt.results.split_at(inits.len());
        let names = self.carries(inits, &body.params[1..], finals);
        // What a loop collects for its reverse has names after the values of a trip, so these come first.
        let is_late = self.stage == Stage::Differentiated;
        let binding = if is_late { String::new() } else { self.binding(collected) };
        let counter = self.fresh(body.params[0]);
        let around = std::mem::take(&mut self.out);
        self.depth += 1;
        self.trip(body, &names);
        self.depth -= 1;
        let trip = std::mem::replace(&mut self.out, around);
        if is_late && stmt.origin.lineage.is_reversed {
            self.name_kept(collected, &body.results[inits.len()..]);
        }
        let binding = if is_late { self.binding(collected) } else { binding };
        let collect = if collected.is_empty() { "" } else { "collect " };
        let comment = self.comment(stmt);
        self.line(&format!("{binding}for {counter} in {start}..{end} {collect}{{{comment}"));
        self.out += &trip;
        self.line(if collected.is_empty() { "}" } else { "};" });
    }

    /// The body of a `for`, which assigns to these variables and gives the other results.
    fn trip(&mut self, body: &Block, names: &[String]) {
        self.stmts(body);
        let (next, values) = body.results.split_at(names.len());
        // What is collected of the carried values is what they are before the assignment.
        for &value in values.iter().filter(|value| body.params[1..].contains(value)) {
            let (name, before) = (self.number_name(), self.name(value));
            let line = format!("let {name}: {} = {before};", self.ty(value));
            self.line(&line);
            self.names.insert(value, name);
        }
        self.assign(names, next);
        if let Some(value) = self.joined(values) {
            self.line(&value);
        }
    }

    /// Names arrays after the values of each trip that they have.
    fn name_kept(&mut self, collected: &[Value], values: &[Value]) {
        for (&stacked, value) in collected.iter().zip(values) {
            let name = self.bases.get(value).or_else(|| self.names.get(value));
            if let Some(name) = name.filter(|name| !is_number_name(name)) {
                self.kept.insert(stacked, format!("kept_{name}"));
            }
        }
    }

    /// `a`, or `(a, b)`; None for nothing.
    fn joined(&mut self, values: &[Value]) -> Option<String> {
        let names: Vec<String> = values.iter().map(|&value| self.name(value)).collect();
        match names.as_slice() {
            [] => None,
            [name] => Some(name.clone()),
            _ => Some(format!("({})", names.join(", "))),
        }
    }

    fn while_loop(&mut self, op: &WhileLoop, stmt: &Stmt) {
        let (cond, body) = (&op.cond, &op.body);
        let names = self.carries(&stmt.args, &body.params, &stmt.results);
        for (param, name) in cond.params.iter().zip(&names) {
            self.names.insert(*param, name.clone());
        }
        let comment = self.comment(stmt);
        self.line(&format!("while {{{comment}"));
        self.depth += 1;
        self.stmts(cond);
        if let Some(flag) = self.joined(&cond.results) {
            self.line(&flag);
        }
        self.depth -= 1;
        self.line("} {");
        self.depth += 1;
        self.stmts(body);
        self.assign(&names, &body.results);
        self.depth -= 1;
        self.line("}");
    }

    fn branch(&mut self, op: &Branch, stmt: &Stmt) {
        let flag = self.name(stmt.args[0]);
        let binding = self.binding(&stmt.results);
        let comment = self.comment(stmt);
        self.line(&format!("{binding}if {flag} {{{comment}"));
        for (position, block) in op.sides().into_iter().enumerate() {
            if position == 1 {
                self.line("} else {");
            }
            self.depth += 1;
            self.stmts(block);
            if let Some(value) = self.joined(&block.results) {
                self.line(&value);
            }
            self.depth -= 1;
        }
        self.line(if stmt.results.is_empty() { "}" } else { "};" });
    }

    fn manual(&mut self, op: &ManualRegion, stmt: &Stmt) {
        let is_derivative = self.stage == Stage::Differentiated && stmt.origin.lineage.part != DerivativePart::Value;
        let name = self.function_name(&if is_derivative { format!("d_{}", op.name) } else { op.name.clone() });
        let args: Vec<String> = stmt.args.iter().map(|&arg| self.name(arg)).collect();
        let line = format!("{}{name}({});{}", self.binding(&stmt.results), args.join(", "), self.comment(stmt));
        // The function has its own lines and its own names.
        let outer = std::mem::take(&mut self.out);
        let depth = std::mem::take(&mut self.depth);
        let next = std::mem::take(&mut self.next);
        let taken = std::mem::replace(&mut self.taken, axis_names(self.mesh));
        let block = &op.body;
        let params: Vec<String> = block
            .params
            .iter()
            .zip(&op.inputs)
            .map(|(&param, input)| {
                let name = self.fresh(param);
                format!("{name}: {}", self.joined_type(param, input))
            })
            .collect();
        let types: Vec<String> = stmt.results.iter().map(|&result| self.ty(result)).collect();
        let ret = match types.as_slice() {
            [] => String::new(),
            [ty] => format!(" -> {ty}"),
            _ => format!(" -> ({})", types.join(", ")),
        };
        let axes: Vec<&str> = op.axes.iter().map(|axis| self.mesh.name(axis as u8)).collect();
        self.line(&format!("manual({}) fn {name}({}){ret} {{", axes.join(", "), params.join(", ")));
        self.depth = 1;
        self.stmts(block);
        if let Some(value) = self.joined(&block.results) {
            self.line(&value);
        }
        self.depth = 0;
        self.line("}");
        let function = std::mem::replace(&mut self.out, outer);
        self.manual_functions.push(function);
        (self.depth, self.next, self.taken) = (depth, next, taken);
        self.line(&line);
    }

    /// The type outside a manual region of a value inside it.
    fn joined_type(&self, inside: Value, split: &Sharding) -> String {
        let local = self.func.ty(inside);
        let shape: Vec<usize> =
            local.shape().iter().zip(&split.dims).map(|(size, dim)| size * self.mesh.size_of(&dim.axes)).collect();
        let dims = local.sharding.dims.iter().zip(&split.dims).map(|(inner, outer)| DimSharding {
            axes: outer.axes.iter().chain(&inner.axes).copied().collect(),
            open: inner.open,
            alignment: None,
        });
        let sharding = Sharding {
            dims: dims.collect(),
            unreduced: local.sharding.unreduced.union(split.unreduced),
            reduced: local.sharding.reduced.union(split.reduced),
            combine: local.sharding.combine,
        };
        let array = ArrayType { shape, ..local.array.clone() };
        let ty = Type { array, sharding, varying: Default::default() };
        self.turned(&ty, inside)
    }

    fn ty(&self, value: Value) -> String {
        self.turned(self.func.ty(value), value)
    }

    /// A type with the axes that the function turns in which a value is: until layouts are decided, they say who decides.
    fn turned(&self, ty: &Type, value: Value) -> String {
        let turned = self.func.info(value).origin.turned;
        if turned.is_empty() || self.stage > Stage::Propagated {
            return type_text(ty, self.mesh, self.stage);
        }
        let mut mesh = self.mesh.clone();
        mesh.turn(turned);
        format!("{}{{T:{}}}", type_text(ty, &mesh, self.stage), mesh.display_set(turned))
    }

    fn name(&mut self, value: Value) -> String {
        match self.names.get(&value) {
            Some(name) => name.clone(),
            // Only a module that does not verify uses a value before its definition.
            None => format!("undefined_{}", value.0),
        }
    }

    /// A name for a value that is defined here.
    fn fresh(&mut self, value: Value) -> String {
        let name = match self.wanted(value) {
            Some(name) if is_plain_name(&name) => self.unique(name).unwrap_or_else(|| self.number_name()),
            Some(_) | None => self.number_name(),
        };
        self.names.insert(value, name.clone());
        name
    }

    /// The user's name for a value, or a name derived from the value whose derivative it is.
    fn wanted(&self, value: Value) -> Option<String> {
        let info = self.func.info(value);
        if let Some(name) = info.name.as_ref().or_else(|| self.kept.get(&value)) {
            return Some(name.replace('.', "_"));
        }
        let derived_from = info.derived_from.filter(|_| self.stage == Stage::Differentiated)?;
        let user = |of: Value| self.func.values.get(of.0 as usize)?.name.as_ref();
        let printed = |of: Value| self.bases.get(&of).or_else(|| self.names.get(&of));
        let name = match derived_from {
            DerivedFrom::DerivativeOf(of) => format!("d_{}", printed(of).or_else(|| user(of))?),
            DerivedFrom::CopyOf(of) => user(of).or_else(|| printed(of)).filter(|name| !is_number_name(name))?.clone(),
        };
        Some(name.replace('.', "_"))
    }

    /// The name, followed by a number after differentiation if another value has it; None without a name.
    fn unique(&mut self, name: String) -> Option<String> {
        if self.taken.insert(name.clone()) {
            return Some(name);
        }
        if self.stage != Stage::Differentiated {
            return None;
        }
        let free = (2..).map(|count| format!("{name}_{count}")).find(|name| !self.taken.contains(name));
        free.inspect(|name| {
            self.taken.insert(name.clone());
        })
    }

    /// The next number that is not the name of a parameter, an axis or a function.
    fn number_name(&mut self) -> String {
        loop {
            let name = format!("v{}", self.next);
            self.next += 1;
            if !self.taken.contains(&name) {
                return name;
            }
        }
    }

    /// A name for a manual function. A dump calls shipped functions by their own names and begins with `main`.
    fn function_name(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_string();
        let mut count = 1;
        while name == "main" || is_builtin(&name) || !self.taken.insert(name.clone()) {
            count += 1;
            name = format!("{wanted}_{count}");
        }
        name
    }
}

/// Whether the name can be a variable's, has no other meaning, and is not one of the printer's own.
fn is_plain_name(name: &str) -> bool {
    const WORDS: &[&str] = &[
        "const", "else", "false", "fn", "for", "if", "import", "in", "let", "manual", "mesh", "mut", "true", "type",
        "while", "None", "P", "_",
    ];
    let is_word = WORDS.contains(&name) || DTypeName::named(name).is_some();
    !is_word
        && !is_number_name(name)
        && !is_builtin(name)
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Whether this is a name that the printer gives: `v0`, `v1`, ...
pub fn is_number_name(name: &str) -> bool {
    name.strip_prefix('v').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

/// A type that reads back as itself at its stage: before propagation a bare dimension is open, later it is replicated. The
/// operation that combines partial values is not written, because it follows from the op that makes them.
pub fn type_text(ty: &Type, mesh: &Mesh, stage: Stage) -> String {
    let ty = &Type { sharding: Sharding { combine: ReduceOp::Sum, ..ty.sharding.clone() }, ..ty.clone() };
    let has_auto = !mesh.of_kind(AxisKind::Auto).is_empty();
    let dims = &ty.sharding.dims;
    let says_nothing = dims.iter().all(|dim| dim.axes.is_empty() && dim.open);
    let is_quiet = dims.iter().all(|dim| dim.axes.is_empty() && !dim.open);
    // Whatever its stage, no device holds a stream.
    let is_quiet_stream = is_quiet && ty.array.is_stream;
    if says_nothing || is_quiet_stream || is_quiet && (stage >= Stage::Propagated || !has_auto) || dims.is_empty() {
        return ty.display(mesh);
    }
    let dims: Vec<String> = ty
        .shape()
        .iter()
        .zip(dims)
        .map(|(size, dim)| match dim.axes.is_empty() && !dim.open && !is_quiet {
            true => size.to_string(),
            false => format!("{size}@{}", dim.display(mesh)),
        })
        .collect();
    let scalar = Type { array: ArrayType::scalar(ty.dtype()), ..ty.clone() };
    let suffixes = scalar.display(mesh);
    let suffixes = suffixes.strip_prefix(ty.dtype().name()).unwrap_or_default();
    let stream = if ty.array.is_stream { "stream " } else { "" };
    format!("{stream}{}[{}]{suffixes}", ty.dtype().name(), dims.join(","))
}

/// Names with paths, as the structs and tuples that they belong to.
enum Tree {
    Leaf(String),
    Node(Vec<(String, Tree)>),
}

impl Tree {
    fn of<'p>(leaves: impl Iterator<Item = (&'p str, String)>) -> Tree {
        let mut root = Tree::Node(Vec::new());
        for (path, text) in leaves {
            root.insert(path, text);
        }
        root
    }

    fn insert(&mut self, path: &str, text: String) {
        let Tree::Node(parts) = self else { return };
        let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
        let at = match parts.iter().position(|(name, _)| name == first) {
            Some(at) => at,
            None => {
                parts.push((first.to_string(), Tree::Node(Vec::new())));
                parts.len() - 1
            }
        };
        match rest {
            Some(rest) => parts[at].1.insert(rest, text),
            None => parts[at].1 = Tree::Leaf(text),
        }
    }

    /// `(a, (), b)` if the names are numbers, since an empty tuple has no name; otherwise `{ w: a, b: b }`.
    fn text(&self) -> String {
        match self {
            Tree::Leaf(text) => text.clone(),
            Tree::Node(parts) => {
                let numbers: Option<Vec<usize>> = parts.iter().map(|(name, _)| name.parse().ok()).collect();
                let Some(numbers) = numbers else {
                    let fields = parts.iter().map(|(name, part)| format!("{name}: {}", part.text()));
                    return format!("{{ {} }}", fields.collect::<Vec<_>>().join(", "));
                };
                let mut texts = Vec::new();
                for (at, (_, part)) in numbers.into_iter().zip(parts) {
                    texts.resize(at.max(texts.len()), "()".to_string());
                    texts.push(part.text());
                }
                match texts.as_slice() {
                    [text] => format!("({text},)"),
                    texts => format!("({})", texts.join(", ")),
                }
            }
        }
    }
}
