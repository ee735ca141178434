//! Functions of f64 on explicit meshes, with random states of parameters and of what they compute, and their gradients.
//!
//! A *state* says for each mesh axis whether a value is split, whole, reduced or partial sums along it. The program often has no single layout;
//! then its errors list choices.

use super::{Draw, Mesh};
use std::fmt::Write;

/// A variable of the function.
#[derive(Clone)]
struct Variable {
    name: String,
    shape: Vec<usize>,
}

/// Writes one function, statement by statement.
struct StateWriter<'d> {
    draw: &'d mut Draw,
    mesh: Mesh,
    /// Functions in which other rules decide layouts.
    items: String,
    body: String,
    variables: Vec<Variable>,
    names: usize,
}

/// Sizes of which some divide by no axis.
const SIZES: [usize; 4] = [4, 6, 5, 12];

/// A program on this mesh. Its results are the gradients of a function, whole.
pub fn program(draw: &mut Draw, mesh: &Mesh) -> String {
    let count = 1 + draw.below(3);
    let params: Vec<Variable> = (0..count).map(|at| Variable { name: format!("p{at}"), shape: shape(draw) }).collect();
    let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
    let (items, body) = (String::new(), String::new());
    let mut writer = StateWriter { draw, mesh: mesh.clone(), items, body, variables: params.clone(), names: 0 };
    for _ in 0..3 + writer.draw.below(6) {
        writer.statement();
    }
    let last: Vec<String> = writer.variables.iter().rev().take(3).map(|of| format!("sum({})", of.name)).collect();
    let mut text = mesh.text();
    let _ = writeln!(text, "{}fn f({}) {{\n{}  {}\n}}", writer.items, names.join(", "), writer.body, last.join(" + "));
    let types: Vec<String> = params
        .iter()
        .map(|param| {
            let dims: Vec<String> = param.shape.iter().zip(mesh.sharding(draw, param.shape.len())).map(dim).collect();
            format!("{}: f64[{}]", param.name, dims.join(", "))
        })
        .collect();
    let args: Vec<String> = params
        .iter()
        .map(|param| match draw.chance(60) {
            true => format!("reshard({}, {})", param.name, state(draw, mesh, param.shape.len(), false)),
            false => param.name.clone(),
        })
        .collect();
    let numbers: Vec<String> = (0..count).map(|at| format!("{at}, ")).collect();
    let _ = writeln!(text, "fn main({}) {{", types.join(", "));
    let _ = writeln!(text, "  let g = grad(f, argnums=({}))({});", numbers.concat().trim_end(), args.join(", "));
    let results: Vec<String> = (0..count).map(|at| format!("reshard(g.{at}, P()), ")).collect();
    let _ = writeln!(text, "  ({})\n}}", results.concat().trim_end());
    text
}

fn dim((size, axes): (&usize, String)) -> String {
    format!("{size}@{axes}")
}

fn shape(draw: &mut Draw) -> Vec<usize> {
    (0..1 + draw.below(2)).map(|_| draw.pick(&SIZES)).collect()
}

/// `P(..)` with a random state along each axis.
fn state(draw: &mut Draw, mesh: &Mesh, rank: usize, may_be_partial: bool) -> String {
    let mut dims = vec![Vec::new(); rank];
    let (mut unreduced, mut reduced) = (Vec::new(), Vec::new());
    for (axis, _, _) in &mesh.axes {
        match draw.below(4) {
            0 => dims[draw.below(rank)].push(*axis),
            1 => reduced.push(*axis),
            2 if may_be_partial => unreduced.push(*axis),
            _ => {}
        }
    }
    let list = |axes: &Vec<&str>| match axes.as_slice() {
        [] => "_".to_string(),
        [axis] => (*axis).to_string(),
        _ => format!("({})", axes.join(", ")),
    };
    let mut parts: Vec<String> = dims.iter().map(list).collect();
    for (keyword, axes) in [("unreduced", &unreduced), ("reduced", &reduced)] {
        if !axes.is_empty() {
            parts.push(format!("{keyword}={}", list(axes)));
        }
    }
    format!("P({})", parts.join(", "))
}

impl StateWriter<'_> {
    fn keep(&mut self, shape: Vec<usize>, expr: &str) {
        let name = format!("v{}", self.names);
        self.names += 1;
        let _ = writeln!(self.body, "  let {name} = {expr};");
        self.variables.push(Variable { name, shape });
    }

    fn any(&mut self) -> Variable {
        // Later ones more often.
        let count = self.variables.len();
        let at = self.draw.below(count).max(self.draw.below(count));
        self.variables[at].clone()
    }

    /// Another variable for which this holds.
    fn other(&mut self, fits: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let fitting: Vec<Variable> = self.variables.iter().filter(|of| fits(of)).cloned().collect();
        (!fitting.is_empty()).then(|| fitting[self.draw.below(fitting.len())].clone())
    }

    /// A call of an `auto` function with its layout, or of an `explicit` one, each perhaps from one of the other kind.
    fn region(&mut self, x: &Variable) {
        let Some(y) = self.other(|y| y.shape == x.shape) else { return };
        let (mesh, number) = (self.mesh.clone(), self.names);
        let axes: Vec<&str> = mesh.axes.iter().map(|&(name, _, _)| name).collect();
        let axes = if self.draw.chance(50) { String::new() } else { format!("({})", self.draw.pick(&axes)) };
        let dims: Vec<String> = x.shape.iter().zip(mesh.sharding(self.draw, x.shape.len())).map(dim).collect();
        let body = self.draw.pick(&[
            "tanh(a) * b",
            "{ let h = a - mean(b, axis=0); h * sum(a) / 10 }",
            "{ let mut h = a; for i in 0..3 { h = tanh(h) * b; } h }",
            "where(a > b, sin(a), cos(b))",
        ]);
        let _ = writeln!(self.items, "explicit fn e{number}(a: f64[{}]) {{ sin(a) * a }}", dims.join(", "));
        let inner = if self.draw.chance(30) { format!(" + e{number}(b)") } else { String::new() };
        let _ = writeln!(self.items, "auto{axes} fn r{number}(a, b) {{ ({body}){inner} }}");
        let state = state(self.draw, &mesh, x.shape.len(), true);
        let call = match self.draw.chance(25) {
            true => format!("e{number}({})", x.name),
            false => format!("r{number}({}, {}, out={state})", x.name, y.name),
        };
        self.keep(x.shape.clone(), &call);
    }

    fn statement(&mut self) {
        let x = self.any();
        let (name, rank) = (x.name.clone(), x.shape.len());
        match self.draw.below(18) {
            0 => self.keep(x.shape, &format!("tanh({name})")),
            1 => self.keep(x.shape, &format!("sin({name}) * 0.5")),
            2 => self.keep(x.shape, &format!("{name} * {name} / 3.0 - {name}")),
            3 | 4 => {
                let Some(y) = self.other(|y| y.shape == x.shape || y.shape[..] == x.shape[1..]) else { return };
                let operator = self.draw.pick(&["+", "-", "*"]);
                self.keep(x.shape, &format!("{name} {operator} {}", y.name));
            }
            5 | 6 if rank == 2 => {
                let Some(y) = self.other(|y| y.shape[0] == x.shape[1]) else { return };
                let shape = [&x.shape[..1], &y.shape[1..]].concat();
                self.keep(shape, &format!("{name} @ {}", y.name));
            }
            7 if rank == 2 => {
                let axis = self.draw.below(2);
                self.keep(vec![x.shape[1 - axis]], &format!("sum({name}, axis={axis})"));
            }
            8 if rank == 2 => self.keep(vec![x.shape[1], x.shape[0]], &format!("{name}.T")),
            9 if rank == 2 => {
                self.keep(vec![x.shape[0] * x.shape[1]], &format!("{name}.reshape({})", x.shape[0] * x.shape[1]))
            }
            10 if x.shape[0] > 3 => {
                let shape = [&[x.shape[0] - 2][..], &x.shape[1..]].concat();
                self.keep(shape, &format!("{name}[1:-1]"));
            }
            11 if x.shape[0] > 2 => {
                let shape = [&[3][..], &x.shape[1..]].concat();
                self.keep(shape, &format!("take({name}, [2, 0, 2], axis=0)"));
            }
            12 => {
                let body = self.draw.pick(&["tanh(h * 0.5)", "h - 0.1 * h * h", "h + W"]).replace('W', &name);
                self.keep(x.shape, &format!("{{ let mut h = {name}; for i in 0..3 {{ h = {body}; }} h }}"));
            }
            13 if x.shape[0] > 2 => {
                let row = x.shape[1..].to_vec();
                if row.is_empty() {
                    return;
                }
                let zeros = format!("zeros(f64[{}])", row[0]);
                self.keep(row, &format!("{{ let mut s = {zeros}; for i in 0..3 {{ s = s + sin({name}[i]); }} s }}"));
            }
            14 if rank == 2 && self.draw.chance(50) => {
                let body = self.draw.pick(&[
                    "vmap(|r| tanh(r) * r)(X)",
                    "vmap(|r| grad(|a| sum(sin(a) * r))(r))(X)",
                    "vmap(|r| r * tanh(sum(X)))(X)",
                ]);
                self.keep(x.shape, &body.replace('X', &name));
            }
            14 => {
                let body =
                    self.draw.pick(&["checkpoint(|a| tanh(a) * a)(X)", "if sum(X) > 0.5 { X * 2.0 } else { sin(X) }"]);
                self.keep(x.shape, &body.replace('X', &name));
            }
            15 | 16 => self.region(&x),
            _ => {
                let state = state(self.draw, &self.mesh, rank, true);
                self.keep(x.shape, &format!("reshard({name}, {state})"));
            }
        }
    }
}
