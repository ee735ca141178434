//! Random calls of every shipped function, most of them wrong: arguments of every rank, size, element type, literal, list and layout,
//! calls with their parameters changed, and all of them inside of transformations.

use super::calls;
use super::{Array, Draw, Mesh};
use spmdc_abi::DType;
use spmdc_check::sources::{NoSources, SourceSet};
use spmdc_grammar::ast::{ItemKind, PatternKind};
use spmdc_ir::call::signature::{Given, ParamKind, ParamSpec, Signature};

/// The libraries of the compiler, with the names that the programs give them.
const LIBRARIES: [&str; 4] = ["linalg", "nn", "optim", "stats"];

/// The call of a program.
pub enum Function {
    /// A function of the table.
    Shipped(&'static Signature),
    /// An operator or a form of the syntax, by its name in the calls that are right.
    Syntax(&'static str),
    /// A function of a library, with its parameters and whether each must be given.
    Library { name: String, params: Vec<(String, bool)> },
}

/// Everything that can be called.
pub fn functions() -> Vec<Function> {
    let shipped =
        spmdc_functions::functions().map(|function| function.signature()).filter(|form| form.is_for_programs());
    let mut all: Vec<Function> = shipped.map(Function::Shipped).collect();
    all.extend(calls::SYNTAX.iter().map(|name| Function::Syntax(name)));
    let (set, diagnostics) = SourceSet::load("libraries.spmd", &imports(), &NoSources);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    for file in set.files.iter().filter(|file| file.is_shipped) {
        let library = file.name.trim_start_matches("std/").trim_end_matches(".spmd");
        for item in &file.program.items {
            let ItemKind::Fn(function) = &item.kind else { continue };
            let param = |param: &spmdc_grammar::ast::ParamNode| match &param.pattern.kind {
                PatternKind::Name(name) => (name.clone(), param.default.is_none()),
                PatternKind::Wildcard | PatternKind::Tuple(_) | PatternKind::Struct(_) => ("_".to_string(), true),
            };
            let params = function.params.iter().map(param).collect();
            all.push(Function::Library { name: format!("{library}.{}", function.name.name), params });
        }
    }
    all
}

fn imports() -> String {
    LIBRARIES.map(|name| format!("import \"std/{name}.spmd\" as {name};\n")).concat()
}

/// A program with a call of one of the functions.
pub fn program(functions: &[Function], draw: &mut Draw) -> String {
    let function = &functions[draw.below(functions.len())];
    let (mode, mesh) = layouts(draw);
    let right = if draw.chance(40) { retyped(function, draw) } else { None };
    let names: &[&str] = mesh.as_ref().map_or(&[], |mesh| if mesh.axes.len() == 1 { &["X"] } else { &["X", "Y"] });
    let (mut types, before, call) = right.unwrap_or_else(|| {
        (Vec::new(), String::new(), Writer { draw, functions, axes: names, depth: 0 }.call(function))
    });
    while types.len() < 3 {
        types.push(random_type(draw));
    }
    let params: Vec<String> = types
        .iter()
        .zip(["a", "b", "c"])
        .map(|(ty, name)| format!("{name}: {}", laid_out(ty, mesh.as_ref(), draw)))
        .collect();
    let body = if before.is_empty() { wrapped(&call, draw) } else { format!("{before} {call}") };
    let mesh = mesh.map_or_else(String::new, |mesh| mesh.text());
    let text = format!("{mesh}{mode}fn main({}) {{ {body} }}\n", params.join(", "));
    let uses = |name: &&&str| text.contains(&format!("{name}."));
    let imports = LIBRARIES.iter().filter(uses).map(|name| format!("import \"std/{name}.spmd\" as {name};\n"));
    format!("{}{text}", imports.collect::<String>())
}

/// The words before `fn`, and the mesh.
fn layouts(draw: &mut Draw) -> (&'static str, Option<Mesh>) {
    if draw.chance(35) {
        return ("", None);
    }
    let explicit = draw.chance(50);
    let mesh = Mesh::random(draw, explicit);
    (draw.pick(&["", "", "", "", "", "", "", "", "manual ", "manual(X) "]), Some(mesh))
}

/// A type without a layout: of any element type, mostly one that most functions take.
fn random_type(draw: &mut Draw) -> String {
    let rank = draw.pick(&[0, 1, 1, 1, 2, 2, 2, 2, 3, 3, 4]);
    let size = draw.pick(&[2, 3, 4, 4]);
    // Functions of two arrays take those of equal sizes, mostly.
    let shape: Vec<usize> =
        (0..rank).map(|_| if draw.chance(70) { size } else { draw.pick(&[0, 1, 2, 3, 4, 5, 8]) }).collect();
    typed(element_type(draw), &shape)
}

fn typed(dtype: &str, shape: &[usize]) -> String {
    let sizes: Vec<String> = shape.iter().map(usize::to_string).collect();
    if sizes.is_empty() { dtype.to_string() } else { format!("{dtype}[{}]", sizes.join(", ")) }
}

fn element_type(draw: &mut Draw) -> &'static str {
    match draw.below(10) {
        0..=4 => "f32",
        5 => draw.pick(&["c64", "c128", "key", "bool"]),
        _ => draw.pick(&DType::ALL).name(),
    }
}

/// The type with a random layout on the mesh.
fn laid_out(ty: &str, mesh: Option<&Mesh>, draw: &mut Draw) -> String {
    let (Some(mesh), Some((dtype, dims))) = (mesh, ty.strip_suffix(']').and_then(|ty| ty.split_once('['))) else {
        return ty.to_string();
    };
    if draw.chance(30) {
        return ty.to_string();
    }
    let dims: Vec<&str> = dims.split(", ").collect();
    let axes = mesh.sharding(draw, dims.len());
    let partial = if draw.chance(6) { draw.pick(&["{U:X}", "{V:X}"]) } else { "" };
    let dims: Vec<String> = dims.iter().zip(axes).map(|(dim, axes)| format!("{dim}@{axes}")).collect();
    format!("{dtype}[{}]{partial}", dims.join(", "))
}

/// A right call, of parameters that have other types: the types, the statements in front, and the call.
fn retyped(function: &Function, draw: &mut Draw) -> Option<(Vec<String>, String, String)> {
    let name = match function {
        Function::Shipped(form) => form.name,
        Function::Syntax(name) => name,
        Function::Library { .. } => return None,
    };
    let call = calls::call(name, draw)?;
    let mut types: Vec<String> = call.params.iter().map(|array| array.text(&[])).collect();
    if !types.is_empty() {
        for _ in 0..1 + draw.below(2) {
            let at = draw.below(types.len());
            let Array { dtype, shape } = &call.params[at];
            types[at] = match draw.below(3) {
                0 => random_type(draw),
                1 => typed(element_type(draw), shape),
                _ => typed(dtype.name(), &other_shape(shape, draw)),
            };
        }
    }
    Some((types, call.before, call.expr))
}

/// A dimension less, more, or of another size.
fn other_shape(shape: &[usize], draw: &mut Draw) -> Vec<usize> {
    let mut shape = shape.to_vec();
    let size = draw.pick(&[0, 1, 2, 3, 9]);
    match draw.below(3) {
        0 => drop(shape.pop()),
        1 => shape.insert(draw.below(shape.len() + 1), size),
        _ => shape.iter_mut().rev().take(1).for_each(|last| *last = size),
    }
    shape
}

/// The program around a call: mostly the call itself.
fn wrapped(call: &str, draw: &mut Draw) -> String {
    const AROUND: [&str; 18] = [
        "grad(|a| sum(CALL))(a)",
        "grad(|a| sum(real(CALL)))(a)",
        "value_and_grad(|a, b| (sum(CALL), b), argnums=(0, 1), has_aux=true)(a, b)",
        "vmap(|a| CALL)(a)",
        "vmap(|a, b| CALL, in_axes=(0, _))(a, b)",
        "vmap(|a, b| CALL, in_axes=(_, 0))(a, b)",
        "vmap(|a, b| CALL, in_axes=(_, -1), out_axes=-1)(a, b)",
        "vmap(grad(|a| sum(CALL)))(a)",
        "jvp(|a| CALL, (a,), (a,))",
        "jacobian(|a| CALL)(a)",
        "hessian(|a| sum(CALL))(a)",
        "vjp(|a| CALL, a).0",
        "checkpoint(|a| CALL)(a)",
        "(CALL)[0]",
        "(CALL).shape",
        "tree_map(|p| p + 1, CALL)",
        "for i in 0..3 collect { CALL }",
        "if sum(b) > 0 { CALL } else { CALL }",
    ];
    if draw.chance(55) { call.to_string() } else { draw.pick(&AROUND).replace("CALL", call) }
}

/// Writes calls of arrays `a`, `b` and `c` on a mesh of these axes, or on none.
struct Writer<'d> {
    draw: &'d mut Draw,
    functions: &'d [Function],
    axes: &'static [&'static str],
    /// The number of calls around the present one.
    depth: usize,
}

impl Writer<'_> {
    /// A call with arguments that fit more or less.
    fn call(&mut self, function: &Function) -> String {
        self.depth += 1;
        let call = self.with_arguments(function);
        self.depth -= 1;
        call
    }

    fn with_arguments(&mut self, function: &Function) -> String {
        let mut args = Vec::new();
        let name = match function {
            Function::Syntax(_) => return self.syntax(),
            Function::Shipped(form) => {
                form.params.iter().for_each(|param| self.arguments(param, &mut args));
                form.name
            }
            Function::Library { name, params } => {
                for (param, is_required) in params {
                    if self.draw.chance(if *is_required { 97 } else { 30 }) {
                        let is_array = self.draw.chance(50);
                        let value = if is_array { self.array() } else { self.anything(2) };
                        args.push(if *is_required { value } else { format!("{param}={value}") });
                    }
                }
                name
            }
        };
        if self.draw.chance(4) {
            args.push(self.anything(2));
        }
        let is_method = !name.contains('.') && self.draw.chance(10);
        match args.split_first() {
            Some((first, rest)) if is_method && !first.contains('=') => {
                format!("({first}).{name}({})", rest.join(", "))
            }
            Some(_) | None => format!("{name}({})", args.join(", ")),
        }
    }

    fn arguments(&mut self, param: &ParamSpec, args: &mut Vec<String>) {
        let times = match (param.given, param.default) {
            (Given::InDumps(_), _) => 0,
            (Given::Rest, _) => self.draw.below(4),
            (Given::Either | Given::Named, None) => usize::from(self.draw.chance(97)),
            (Given::Either | Given::Named, Some(_)) => usize::from(self.draw.chance(40)),
        };
        for _ in 0..times {
            let value = if self.draw.chance(75) { self.fitting(param.kind) } else { self.anything(2) };
            let by_name = param.given == Given::Named || param.default.is_some() && self.draw.chance(80);
            args.push(if by_name { format!("{}={value}", param.name) } else { value });
        }
    }

    /// Operators, indices and assignments of anything.
    fn syntax(&mut self) -> String {
        match self.draw.below(5) {
            0 => format!("{}[{}]", self.draw.pick(&["a", "b", "(a, b)", "[1, 2]", "1"]), self.indices()),
            1 => {
                let op = self.draw.pick(&["=", "+=", "*=", "-=", "/=", "//=", "&="]);
                format!("{{ let mut u = a; u[{}] {op} {}; u }}", self.indices(), self.anything(2))
            }
            2 => format!("({}{})", self.draw.pick(&["-", "!"]), self.anything(2)),
            3 => {
                let field = self.draw.pick(&["shape", "T", "ndim", "dtype", "size", "0", "1", "p"]);
                format!("({}).{field}", self.anything(2))
            }
            _ => {
                const OPERATORS: [&str; 16] =
                    ["+", "-", "*", "/", "//", "%", "@", "**", "==", "<", "|", "^", "&", "<<", ">>", "&&"];
                let op = self.draw.pick(&OPERATORS);
                format!("({} {op} {})", self.anything(2), self.anything(2))
            }
        }
    }

    fn indices(&mut self) -> String {
        let indices: Vec<String> = (0..1 + self.draw.below(3)).map(|_| self.index()).collect();
        indices.join(", ")
    }

    fn index(&mut self) -> String {
        const INDICES: [&str; 12] =
            ["...", ":", "::2", "::-1", "None", "a", "b", "a > 0", "b:", "a:b", "::0", "b : b + 2"];
        match self.draw.below(4) {
            0 => format!("{}:{}", self.integer(), self.integer()),
            1 => self.draw.pick(&INDICES).to_string(),
            _ => self.anything(1),
        }
    }

    /// An argument of this kind.
    fn fitting(&mut self, kind: ParamKind) -> String {
        const TYPES: [&str; 9] =
            ["f32[3]", "f32[0]", "f32", "i32[2, 3]", "c64[4]", "f32[4, 4@_]", "bf16[1]", "bool[2]", "key[2]"];
        let text = match kind {
            ParamKind::Array => return self.array(),
            ParamKind::Int => return self.integer(),
            ParamKind::Ints if self.draw.chance(50) => return self.integer(),
            ParamKind::Ints => {
                let items: Vec<String> = (0..self.draw.below(4)).map(|_| self.integer()).collect();
                let is_list = items.is_empty() || self.draw.chance(50);
                return if is_list { format!("[{}]", items.join(", ")) } else { format!("({},)", items.join(", ")) };
            }
            ParamKind::String => return self.string(),
            ParamKind::Sharding => return self.sharding(),
            ParamKind::Of(_) | ParamKind::Count => return self.anything(2),
            ParamKind::Bool => self.draw.pick(&["true", "false"]),
            ParamKind::Type => self.draw.pick(&TYPES),
            ParamKind::ElementType => {
                self.draw.pick(&["f32", "f64", "i32", "i8", "u8", "bool", "bf16", "f8e4m3", "c64", "key"])
            }
            ParamKind::Axes if self.axes.len() == 2 => self.draw.pick(&["X", "Y", "(X, Y)", "(Y, X)", "(X, X)", "()"]),
            ParamKind::Axes => self.axes.first().unwrap_or(&"()"),
        };
        text.to_string()
    }

    fn array(&mut self) -> String {
        const MADE: [&str; 8] = ["sum(a)", "a[None]", "ravel(a)", "a.T", "(a @ a)", "i32(a)", "a[0]", "a > 0"];
        match self.draw.below(12) {
            0 => self.number(),
            1 => self.list(2),
            3 if self.depth < 3 => {
                let function = &self.functions[self.draw.below(self.functions.len())];
                self.call(function)
            }
            2 => self.draw.pick(&MADE).to_string(),
            _ => self.draw.pick(&["a", "a", "b", "c"]).to_string(),
        }
    }

    fn integer(&mut self) -> String {
        const HUGE: [&str; 4] = ["2147483648", "9223372036854775807", "(-9223372036854775807)", "18446744073709551615"];
        match self.draw.below(20) {
            0 => self.draw.pick(&HUGE).to_string(),
            1 => "1000000".to_string(),
            _ => self.draw.between(-3, 6).to_string(),
        }
    }

    fn number(&mut self) -> String {
        match self.draw.below(3) {
            0 => self.draw.pick(&["0.5", "-1.5", "1e400", "-0.0", "1e-320", "1e30"]).to_string(),
            _ => self.integer(),
        }
    }

    fn string(&mut self) -> String {
        const KNOWN: [&str; 24] = [
            "",
            "x",
            "ij,jk->ik",
            "ii->i",
            "i,i",
            "...i->...",
            "ij->jj",
            "same",
            "valid",
            "full",
            "SAME",
            "VALID",
            "linear",
            "nearest",
            "clip",
            "wrap",
            "fill",
            "reflect",
            "edge",
            "constant",
            "left",
            "ortho",
            "add",
            "lu",
        ];
        format!("\"{}\"", self.draw.pick(&KNOWN))
    }

    fn sharding(&mut self) -> String {
        const ON_ONE: [&str; 6] = ["P()", "P(X)", "P(X, _)", "P(_, X)", "P(X, X)", "P(unreduced=X)"];
        const ON_TWO: [&str; 6] = ["P((X, Y), _)", "P(Y, X)", "P(?)", "P(_, _, Y)", "P(X, unreduced=Y)", "P(Y)"];
        match self.axes {
            [] => "P()".to_string(),
            [_, _] if self.draw.chance(50) => self.draw.pick(&ON_TWO).to_string(),
            _ => self.draw.pick(&ON_ONE).to_string(),
        }
    }

    fn list(&mut self, depth: usize) -> String {
        const LISTS: [&str; 9] = [
            "[]",
            "[[]]",
            "[1, 2, 3]",
            "[0.5]",
            "[[1, 2], [3]]",
            "[true, 1]",
            "[[1, 2], [3, 4]]",
            "[1, 0.5]",
            "[0, 0, 1]",
        ];
        if depth == 0 || self.draw.chance(60) {
            return self.draw.pick(&LISTS).to_string();
        }
        let items: Vec<String> = (0..self.draw.below(3)).map(|_| self.anything(depth - 1)).collect();
        format!("[{}]", items.join(", "))
    }

    /// An expression of any kind, of so many levels at most.
    fn anything(&mut self, depth: usize) -> String {
        const OTHERS: [&str; 19] = [
            "None",
            "_",
            "()",
            "a.shape",
            "a.dtype",
            "key(0)",
            "split(key(1), 2)",
            "complex(1.0, 2.0)",
            "complex(a, a)",
            "(|p| p)",
            "(|p, q| p + q)",
            "(|p| sum(p))",
            "sin",
            "sum",
            "{ p: a, q: 1 }",
            "{ p: a, q: (b, { r: c }) }",
            "f32",
            "f32[3]",
            "f32[2, 2]",
        ];
        match self.draw.below(10) {
            0 | 1 => self.draw.pick(&["a", "b", "c"]).to_string(),
            2 => self.number(),
            3 => self.draw.pick(&["true", "false"]).to_string(),
            4 => self.string(),
            5 => self.list(depth),
            6 => {
                let items: Vec<String> = (0..self.draw.below(4))
                    .map(|_| if depth == 0 { self.integer() } else { self.anything(depth - 1) })
                    .collect();
                if items.is_empty() { "()".to_string() } else { format!("({},)", items.join(", ")) }
            }
            7 if self.draw.chance(50) => self.fitting(ParamKind::Axes),
            7 => self.sharding(),
            _ => self.draw.pick(&OTHERS).to_string(),
        }
    }
}
