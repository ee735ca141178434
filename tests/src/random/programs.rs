//! Random whole programs: chains of operations with loops, branches, `manual` functions and annotations.
//!
//! Floats stay near one (every statement keeps them there), so that sums taken in another order differ in the last digits only. What
//! turns such a difference into another answer (comparisons, rounding, `argmax`) is applied to *exact* values only: those that no
//! sum of floats went into.

use super::{Array, Draw, Mesh};
use spmdc_runtime::abi::DType;
use std::fmt::Write;

/// A variable of the program.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    array: Array,
    exact: bool,
}

/// Makes statements one by one; whoever drives it says whether each is kept.
#[derive(Clone, Debug)]
pub struct Writer {
    draw: Draw,
    mesh: Mesh,
    params: Vec<Variable>,
    variables: Vec<Variable>,
    /// `manual` functions.
    items: String,
    body: String,
    next: usize,
    /// Names that no statement of the block may take, since they are assigned at its end.
    kept: Vec<String>,
    skipped: u64,
    /// Whether the results have layouts of their own; types with explicit axes have theirs already.
    pins_results: bool,
    /// No array has more elements.
    most: usize,
}

/// How large the arrays of a program are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Dimensions of about twelve.
    Small,
    /// Two of some hundred: beyond every size from which the compiler does something another way.
    Large,
}

/// Names that mean something elsewhere: numbers as a dump's own values have, words with a meaning in one place, shipped functions, axes.
const NAMES: &[&str] = &[
    "v0",
    "v1",
    "v2",
    "v3",
    "v7",
    "c0",
    "c1",
    "arg0",
    "i",
    "k",
    "x",
    "main",
    "as",
    "auto",
    "collect",
    "devices",
    "explicit",
    "on",
    "stage",
    "P",
    "T",
    "X",
    "Y",
    "sum",
    "max",
    "roll",
    "tanh",
    "reshape",
    "einsum",
    "shard",
    "all_reduce",
    "window",
    "undefined_0",
    "_v0",
    "__",
];

/// Functions that dumps call and that these programs do not, which a program may define anew.
const FUNCTIONS: &[&str] = &["v0", "v1", "x", "main_2", "shard", "pin", "all_reduce", "broadcast_to", "window", "halo"];

/// The text of an expression, its type, and whether it is exact.
type Made = (String, Array, bool);

impl Writer {
    pub fn new(mut draw: Draw, mesh: Mesh, scale: Scale) -> Writer {
        let mut params = Vec::new();
        let sizes = match scale {
            Scale::Small => [draw.size().max(1), 12, draw.size().max(1)],
            // Those of which twelve is a factor can be cut by `manual` code.
            Scale::Large => [130 + draw.below(200), 12 * (22 + draw.below(10)), draw.size().max(1)],
        };
        let (most_dims, most) = match scale {
            Scale::Small => (3, 20_000),
            Scale::Large => (2, 200_000),
        };
        for number in 0..4 {
            let rank = draw.rank(1, most_dims);
            let shape: Vec<usize> = (0..rank).map(|_| draw.pick(&sizes)).collect();
            let dtype = draw.pick(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::I32]);
            let name = draw.pick(NAMES);
            let is_free = draw.chance(50) && params.iter().all(|param: &Variable| param.name != name);
            let name = if is_free { name.to_string() } else { format!("p{number}") };
            params.push(Variable { name, array: Array::new(dtype, &shape), exact: true });
        }
        let variables = params.clone();
        let pins_results = draw.chance(50) && mesh.axes.iter().all(|&(_, _, explicit)| !explicit);
        let (items, body) = (String::new(), String::new());
        Writer { draw, mesh, params, variables, items, body, next: 0, kept: Vec::new(), skipped: 0, pins_results, most }
    }

    /// The program as it is now; `shardings` are those of the parameters.
    pub fn text(&self, mesh: &Mesh, shardings: &[Vec<String>]) -> String {
        let params = self.params.iter().zip(shardings);
        let params: Vec<String> = params.map(|(p, dims)| format!("{}: {}", p.name, p.array.text(dims))).collect();
        let results = &self.variables[self.variables.len().saturating_sub(5)..];
        let names: Vec<&str> = results.iter().map(|v| v.name.as_str()).collect();
        let mut types = String::new();
        if self.pins_results {
            let mut draw = self.draw.clone();
            let pinned = results.iter().map(|v| v.array.text(&mesh.sharding(&mut draw, v.array.shape.len())));
            types = format!(" -> ({})", pinned.collect::<Vec<_>>().join(", "));
        }
        format!(
            "{}{}fn main({}){types} {{\n{}  ({})\n}}\n",
            mesh.text(),
            self.items,
            params.join(", "),
            self.body,
            names.join(", ")
        )
    }

    /// The same program, about to go on in another way.
    pub fn skipping(mut self) -> Writer {
        self.skipped += 1;
        self.draw = Draw::new("skipped", self.draw.between(0, 1 << 40) as u64 + self.skipped);
        self
    }

    /// A random layout for each parameter.
    pub fn shardings(&mut self) -> Vec<Vec<String>> {
        let ranks: Vec<usize> = self.params.iter().map(|param| param.array.shape.len()).collect();
        ranks
            .into_iter()
            .map(|rank| if self.draw.chance(20) { Vec::new() } else { self.mesh.sharding(&mut self.draw, rank) })
            .collect()
    }

    /// Adds one statement, perhaps with others inside.
    pub fn statement(&mut self) {
        match self.draw.below(13) {
            0 => self.for_loop(),
            1 => self.branch(),
            2 if self.draw.chance(40) => self.places(),
            2 => self.assignment(),
            3 => self.manual(),
            4 => self.ghost_cells(),
            _ => {
                let (expr, array, exact) = self.expression();
                self.define(expr, array, exact);
            }
        }
    }

    /// A name for a new variable: its own, one that means something elsewhere, or that of a variable, which it hides.
    fn name(&mut self) -> String {
        let name = match self.draw.below(10) {
            0 | 1 => self.draw.pick(NAMES).to_string(),
            2 => self.variables[self.draw.below(self.variables.len())].name.clone(),
            _ => String::new(),
        };
        if !name.is_empty() && !self.kept.contains(&name) {
            return name;
        }
        self.next += 1;
        format!("v{}", self.next + 9)
    }

    /// The variable is visible from here on, and hides the one that had its name.
    fn add(&mut self, variable: Variable) {
        self.variables.retain(|v| v.name != variable.name);
        self.variables.push(variable);
    }

    fn define(&mut self, expr: String, array: Array, exact: bool) {
        let annotated = self.draw.chance(15);
        self.define_as(annotated, expr, array, exact);
    }

    /// With a layout of its own if it is annotated.
    fn define_as(&mut self, annotated: bool, expr: String, array: Array, exact: bool) {
        let name = self.name();
        let annotated = annotated && !array.shape.is_empty();
        let ty = match annotated {
            true => format!(": {}", array.text(&self.mesh.sharding(&mut self.draw, array.shape.len()))),
            false => String::new(),
        };
        let _ = writeln!(self.body, "  let {name}{ty} = {expr};");
        self.add(Variable { name, array, exact });
    }

    /// A variable that has elements.
    fn any(&mut self, fits: impl Fn(&Variable) -> bool) -> Option<Variable> {
        self.any_at_all(|v| !v.array.shape.contains(&0) && fits(v))
    }

    fn any_at_all(&mut self, fits: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let fitting: Vec<&Variable> = self.variables.iter().filter(|v| fits(v)).collect();
        // Late ones more often: chains grow long.
        let late = fitting.len().saturating_sub(4);
        let from = if self.draw.chance(60) { late } else { 0 };
        let number = fitting.len().checked_sub(from).filter(|&count| count > 0)?;
        Some(fitting[from + self.draw.below(number)].clone())
    }

    fn expression(&mut self) -> Made {
        let x = self.any_at_all(|_| true).expect("there are parameters");
        if x.array.shape.contains(&0) {
            return self.of_nothing(&x);
        }
        if self.draw.chance(4)
            && let Some(made) = self.nothing_of(&x)
        {
            return made;
        }
        for _ in 0..20 {
            let made = match self.draw.below(14) {
                0 | 1 => self.unary(&x),
                2..=4 => self.binary(&x),
                5 | 6 => self.product(&x),
                7 | 8 => self.reduction(&x),
                9..=12 => self.movement(&x),
                _ => self.choice(&x),
            };
            if let Some(made) = made
                && made.1.shape.iter().product::<usize>() <= self.most
            {
                return made;
            }
        }
        (format!("{} + 0", x.name), x.array, x.exact)
    }

    /// An empty window of something, perhaps of what nobody else needs.
    fn nothing_of(&mut self, x: &Variable) -> Option<Made> {
        let rank = x.array.shape.len();
        if rank == 0 || x.array.dtype == DType::Bool {
            return None;
        }
        let mut array = x.array.clone();
        let axis = self.draw.below(rank);
        let at = self.draw.below(array.shape[axis] + 1);
        array.shape[axis] = 0;
        let mut entries = vec![":".to_string(); rank];
        entries[axis] = format!("{at}:{at}");
        let of = if self.draw.chance(60) { format!("({} * 2)", x.name) } else { x.name.clone() };
        Some((format!("{of}[{}]", entries.join(", ")), array, x.exact))
    }

    /// What can be done with an array without elements.
    fn of_nothing(&mut self, x: &Variable) -> Made {
        let (name, mut array) = (&x.name, x.array.clone());
        let axis = self.draw.below(array.shape.len());
        let expr = match self.draw.below(8) {
            0 => format!("{name} * 2"),
            1 => format!("abs({name})"),
            2 => format!("roll({name}, 1, axis={axis})"),
            3 => format!("flip({name}, axis={axis})"),
            4 => {
                array.shape[axis] *= 2;
                format!("concatenate([{name}, {name}], axis={axis})")
            }
            5 => {
                array.shape.insert(0, 2);
                format!("stack([{name}, {name}])")
            }
            6 => {
                array.shape.remove(axis);
                format!("sum({name}, axis={axis})")
            }
            _ => {
                array.shape.reverse();
                format!("{name}.T")
            }
        };
        (expr, array, x.exact)
    }

    fn unary(&mut self, x: &Variable) -> Option<Made> {
        let name = &x.name;
        let expr = match x.array.dtype {
            DType::I32 => self.draw.pick(&["abs(x) % 7", "-x", "x * x % 5", "minimum(x, 3)", "f32(x) / 8"]),
            DType::Bool => "!x",
            _ => self.draw.pick(&["tanh(x)", "sin(x)", "abs(x) / 2", "x * 0.5", "sqrt(1 + x * x) - 1", "exp(-x * x)"]),
        };
        let mut array = x.array.clone();
        if expr.starts_with("f32") {
            array.dtype = DType::F32;
        }
        Some((filled(expr, name, ""), array, x.exact))
    }

    /// With another variable that broadcasts, or a number.
    fn binary(&mut self, x: &Variable) -> Option<Made> {
        if x.array.dtype == DType::Bool {
            let y = self.any(|y| y.array == x.array)?;
            return Some((
                format!("{} {} {}", x.name, self.draw.pick(&["&", "|", "^"]), y.name),
                x.array.clone(),
                true,
            ));
        }
        let (dtype, shape) = (x.array.dtype, x.array.shape.clone());
        let y = self.any(|y| y.array.dtype == dtype && shape.ends_with(&y.array.shape))?;
        let exact = x.exact && y.exact;
        let expr = match dtype {
            DType::I32 => self.draw.pick(&["(x + y) % 9", "x - y", "maximum(x, y)", "x * y % 11", "x & y"]),
            _ => self.draw.pick(&["(x + y) / 2", "(x - y) * 0.5", "maximum(x, y)", "sin(x * y)", "x / (1 + y * y)"]),
        };
        Some((filled(expr, &x.name, &y.name), x.array.clone(), exact))
    }

    fn product(&mut self, x: &Variable) -> Option<Made> {
        let &[n, k] = x.array.shape.as_slice() else { return None };
        let dtype = x.array.dtype;
        if dtype == DType::Bool {
            return None;
        }
        let y = self.any(|y| y.array.dtype == dtype && y.array.shape.len() == 2 && y.array.shape.contains(&k))?;
        let (m, right) = match *y.array.shape.as_slice() {
            [inner, m] if inner == k => (m, y.name.clone()),
            [m, _] => (m, format!("{}.T", y.name)),
            _ => return None,
        };
        let (scale, exact) = if dtype == DType::I32 { (" % 13".to_string(), true) } else { (format!(" / {k}"), false) };
        let left = if self.draw.chance(20) {
            format!("einsum(\"ik,kj->ij\", {}, {right})", x.name)
        } else {
            format!("({} @ {right})", x.name)
        };
        Some((format!("{left}{scale}"), Array::new(dtype, &[n, m]), exact && x.exact && y.exact))
    }

    fn reduction(&mut self, x: &Variable) -> Option<Made> {
        let rank = x.array.shape.len();
        if rank == 0 || x.array.dtype == DType::Bool {
            return None;
        }
        let axis = self.draw.below(rank);
        let float = x.array.dtype != DType::I32;
        let name = self.draw.pick(&["sum", "max", "min", "mean", "argmax", "softmax"]);
        let exact = x.exact && (!float || matches!(name, "max" | "min" | "argmax"));
        let mut array = x.array.clone();
        match name {
            "mean" | "softmax" if !float => return None,
            "argmax" if !x.exact => return None,
            "argmax" => array.dtype = DType::I32,
            _ => {}
        }
        if self.draw.chance(20) {
            let name = self.draw.pick(if float { &["cummax", "cummin"] } else { &["cumsum", "cummax", "cumprod"] });
            let reverse = if self.draw.chance(40) { ", reverse=true" } else { "" };
            return Some((format!("{name}({}, axis={axis}{reverse})", x.name), x.array.clone(), x.exact));
        }
        if name == "softmax" {
            return Some((format!("softmax({}, axis={axis})", x.name), array, false));
        }
        let keep = self.draw.chance(40);
        let size = array.shape[axis];
        array.shape[axis] = 1;
        if !keep {
            array.shape.remove(axis);
        }
        let keepdims = if keep { ", keepdims=true" } else { "" };
        let scale = if name == "sum" && float { format!(" / {size}") } else { String::new() };
        Some((format!("{name}({}, axis={axis}{keepdims}){scale}", x.name), array, exact))
    }

    fn movement(&mut self, x: &Variable) -> Option<Made> {
        let rank = x.array.shape.len();
        if rank == 0 {
            return None;
        }
        let (name, mut array, axis) = (&x.name, x.array.clone(), self.draw.below(rank));
        let size = array.shape[axis];
        let index = |entry: String| {
            let mut entries = vec![":".to_string(); rank];
            entries[axis] = entry;
            format!("{name}[{}]", entries.join(", "))
        };
        let expr = match self.draw.below(12) {
            0 | 1 => format!("roll({name}, {}, axis={axis})", self.draw.between(-5, 5)),
            2 | 3 => {
                let start = self.draw.below(size);
                let step = 1 + self.draw.below(3);
                array.shape[axis] = (size - start).div_ceil(step);
                index(format!("{start}::{step}"))
            }
            4 => {
                let stop = 1 + self.draw.below(size);
                array.shape[axis] = stop;
                index(format!(":{stop}"))
            }
            5 => format!("flip({name}, axis={axis})"),
            6 => {
                let (expr, padded) = super::calls::padded(&mut self.draw, name, &array);
                array = padded;
                expr
            }
            7 => {
                let dims: Vec<usize> = (0..rank).collect();
                let order = self.draw.shuffled(&dims);
                array.shape = order.iter().map(|&dim| x.array.shape[dim]).collect();
                let order: Vec<String> = order.iter().map(usize::to_string).collect();
                format!("transpose({name}, ({},))", order.join(", "))
            }
            8 => {
                let y = self.any(|y| {
                    y.array.dtype == x.array.dtype
                        && y.array.shape.len() == rank
                        && (0..rank).all(|dim| dim == axis || y.array.shape[dim] == x.array.shape[dim])
                })?;
                array.shape[axis] += y.array.shape[axis];
                let exact = x.exact && y.exact;
                return Some((format!("concatenate([{name}, {}], axis={axis})", y.name), array, exact));
            }
            9 => {
                let len = array.shape.iter().product();
                array.shape = super::calls::factored(&mut self.draw, len);
                format!("reshape({name}, {})", super::calls::sizes(&array.shape))
            }
            10 => {
                array.shape.remove(axis);
                index(self.draw.below(size).to_string())
            }
            _ => {
                let rank = self.draw.below(2);
                let place = format!("i32({})", self.draw.below(size));
                array.shape.remove(axis);
                // A dynamic place: the compiler does not see through the sum.
                let zero = self.any(|v| v.array.dtype == DType::I32 && v.exact && rank < 2)?;
                index(format!("{place} + 0 * sum({})", zero.name))
            }
        };
        Some((expr, array, x.exact))
    }

    /// A value beside slices of itself, or continued beyond its ends: mostly in another layout than it has.
    fn ghost_cells(&mut self) {
        let Some(x) = self.any(|v| v.array.shape.iter().product::<usize>() > 0 && !v.array.shape.is_empty()) else {
            return;
        };
        let (expr, array) = if self.draw.chance(50) {
            self.joined(&x)
        } else {
            super::calls::padded(&mut self.draw, &x.name, &x.array)
        };
        if array.shape.iter().product::<usize>() <= self.most {
            let annotated = self.draw.chance(60);
            self.define_as(annotated, expr, array, x.exact);
        }
    }

    /// A value and slices of it, one after another.
    fn joined(&mut self, x: &Variable) -> (String, Array) {
        let rank = x.array.shape.len();
        let axis = self.draw.below(rank);
        let size = x.array.shape[axis];
        let mut array = x.array.clone();
        array.shape[axis] = 0;
        let mut parts = Vec::new();
        for _ in 0..2 + self.draw.below(3) {
            if self.draw.chance(30) {
                array.shape[axis] += size;
                parts.push(x.name.clone());
                continue;
            }
            let len = 1 + self.draw.below(size.min(3));
            let anywhere = self.draw.below(size - len + 1);
            let start = self.draw.pick(&[0, size - len, anywhere]);
            array.shape[axis] += len;
            let mut entries = vec![":".to_string(); rank];
            entries[axis] = format!("{start}:{}", start + len);
            parts.push(format!("{}[{}]", x.name, entries.join(", ")));
        }
        (format!("concatenate([{}], axis={axis})", parts.join(", ")), array)
    }

    fn choice(&mut self, x: &Variable) -> Option<Made> {
        let y = self.any(|y| y.array == x.array)?;
        let condition = if x.exact && x.array.dtype != DType::Bool {
            format!("{} > 0", x.name)
        } else {
            let mask =
                self.any(|m| m.exact && m.array.dtype != DType::Bool && x.array.shape.ends_with(&m.array.shape))?;
            format!("{} < 1", mask.name)
        };
        Some((format!("where({condition}, {}, {})", x.name, y.name), x.array.clone(), x.exact && y.exact))
    }

    /// Statements of a block, each on a line; variables that they define are gone afterwards.
    fn block(&mut self, count: usize, result: &Variable) -> (String, bool) {
        let outer = std::mem::take(&mut self.body);
        let known = self.variables.clone();
        let mut exact = result.exact;
        let mut last = result.name.clone();
        for _ in 0..count {
            // Each step keeps the type of what the block gives.
            let current = Variable { name: last.clone(), exact, ..result.clone() };
            let made = match self.draw.below(4) {
                0 => self.unary(&current),
                1 | 2 => self.binary(&current),
                _ => self.movement(&current),
            };
            let Some((expr, array, is_exact)) = made.filter(|made| made.1 == result.array) else { continue };
            exact &= is_exact;
            self.define(expr, array, is_exact);
            last = self.variables.last().map_or(last, |v| v.name.clone());
        }
        self.variables = known;
        let inner = std::mem::replace(&mut self.body, outer);
        (format!("{inner}    {last}\n"), exact)
    }

    fn for_loop(&mut self) {
        let Some(start) = self.any(|_| true) else { return };
        let name = self.name();
        // The body sees the carried value, which is exact only if every trip leaves it so.
        let carried = Variable { name: name.clone(), exact: false, ..start.clone() };
        self.add(carried.clone());
        let counter = self.draw.pick(NAMES);
        let is_used = self.variables.iter().any(|variable| variable.name == counter);
        let counter = if is_used { format!("{name}_i") } else { counter.to_string() };
        self.kept.extend([name.clone(), counter.clone()]);
        let count = 1 + self.draw.below(4);
        let (block, _) = self.block(count, &carried);
        self.kept.truncate(self.kept.len() - 2);
        let (statements, last) = block.trim_end().rsplit_once('\n').unwrap_or(("", block.trim()));
        let trips = 1 + self.draw.below(4);
        let range = match self.draw.below(3) {
            0 => format!("0..{} step 2", 2 * trips - 1),
            1 => format!("{}..-1 step -3", 3 * trips - 3),
            _ => format!("0..{trips}"),
        };
        let _ = writeln!(self.body, "  let mut {name} = {};", start.name);
        let _ = match self.draw.below(3) {
            0 => {
                let stack = self.name();
                let array = [&[trips], start.array.shape.as_slice()].concat();
                let array = Array::new(start.array.dtype, &array);
                self.add(Variable { name: stack.clone(), array, exact: false });
                let last = last.trim();
                writeln!(
                    self.body,
                    "  let {stack} = for {counter} in {range} collect {{\n{statements}\n    {name} = {last};\n    {name} }};"
                )
            }
            1 => {
                let last = last.trim();
                writeln!(
                    self.body,
                    "  let mut {counter} = 0;\n  while {counter} < {trips} {{\n{statements}\n    {name} = {last};\n    {counter} = {counter} + 1;\n  }}"
                )
            }
            _ => {
                writeln!(self.body, "  for {counter} in {range} {{\n{statements}\n    {name} = {};\n  }}", last.trim())
            }
        };
    }

    fn branch(&mut self) {
        let Some(x) = self.any(|_| true) else { return };
        let Some(decides) = self.any(|v| v.exact && v.array.dtype == DType::I32) else { return };
        let (then, a) = self.block(2, &x);
        let (otherwise, b) = self.block(2, &x);
        let name = self.name();
        let _ = writeln!(
            self.body,
            "  let {name} = if sum({}) % 2 == {} {{\n{then}  }} else {{\n{otherwise}  }};",
            decides.name,
            self.draw.below(2)
        );
        self.add(Variable { name, array: x.array, exact: a && b });
    }

    /// Single places and rows, from what stands there or elsewhere in the same value, perhaps in a loop.
    fn places(&mut self) {
        let Some(x) = self.any(|v| !v.array.shape.is_empty() && v.array.dtype != DType::Bool) else { return };
        if x.array.shape.contains(&0) {
            return;
        }
        let name = self.name();
        let mut lines = String::new();
        for _ in 0..1 + self.draw.below(3) {
            let rank = x.array.shape.len();
            let always = self.draw.below(rank);
            let singles: Vec<bool> = (0..rank).map(|dim| dim == always || self.draw.chance(40)).collect();
            let mut place = || {
                let entry = |(&size, &single): (&usize, &bool)| match single {
                    true => (self.draw.below(size) as i64 - self.draw.pick(&[0, size as i64])).to_string(),
                    false => ":".to_string(),
                };
                x.array.shape.iter().zip(&singles).map(entry).collect::<Vec<_>>().join(", ")
            };
            let (at, from) = (place(), place());
            let _ = match (x.array.dtype, self.draw.below(3)) {
                (DType::I32, 0) => writeln!(lines, "  {name}[{at}] += 1;"),
                (DType::I32, _) => writeln!(lines, "  {name}[{at}] = ({name}[{at}] - 2 * {name}[{from}]) % 9;"),
                (_, 0) => writeln!(lines, "  {name}[{at}] *= 0.5;"),
                (_, _) => writeln!(lines, "  {name}[{at}] = 0.5 * ({name}[{at}] + sin({name}[{from}]));"),
            };
        }
        let trips = self.draw.below(3);
        let lines = if trips == 0 { lines } else { format!("  for _ in 0..{trips} {{\n{lines}  }}\n") };
        let _ = write!(self.body, "  let mut {name} = {};\n{lines}", x.name);
        self.add(Variable { name, array: x.array.clone(), exact: x.exact });
    }

    fn assignment(&mut self) {
        let Some(x) = self.any(|v| !v.array.shape.is_empty()) else { return };
        let rank = x.array.shape.len();
        let axis = self.draw.below(rank);
        let size = x.array.shape[axis];
        let (start, len) = (self.draw.below(size), 1 + self.draw.below(size));
        let stop = (start + len).min(size);
        let mut entries = vec![":".to_string(); rank];
        entries[axis] = format!("{start}:{stop}");
        let place = entries.join(", ");
        // As long, from another place of the same value or of another.
        let other = self.any(|y| y.array == x.array).unwrap_or_else(|| x.clone());
        let from = self.draw.below(size - (stop - start) + 1);
        entries[axis] = format!("{from}:{}", from + stop - start);
        let name = self.name();
        let value = format!("{}[{}]", other.name, entries.join(", "));
        let _ = writeln!(self.body, "  let mut {name} = {};\n  {name}[{place}] = {value};", x.name);
        self.add(Variable { name, array: x.array.clone(), exact: x.exact && other.exact });
    }

    /// A `manual` function over one axis, on a value whose first dimension divides by every size that the axis may have.
    fn manual(&mut self) {
        let Some(x) = self.any(|v| v.array.shape.first() == Some(&12) && v.array.dtype == DType::F32) else { return };
        let (axis, _, _) = self.draw.pick(&self.mesh.axes.clone());
        let name = self.name();
        let function = self.draw.pick(FUNCTIONS);
        let is_free = self.draw.chance(50) && !self.items.contains(&format!("fn {function}("));
        let function = if is_free {
            function.to_string()
        } else {
            self.next += 1;
            format!("local_{}", self.next)
        };
        let rest: String = x.array.shape[1..].iter().map(|size| format!(", {size}")).collect();
        let split = format!("f32[12@{axis}{rest}]");
        let (result, body, shape) = match self.draw.below(4) {
            0 => (split.clone(), format!("x - pmean(mean(x, axis=0), {axis})"), x.array.shape.clone()),
            1 => (format!("f32[12{rest}]"), format!("all_gather(tanh(x), {axis}, axis=0)"), x.array.shape.clone()),
            2 => (split.clone(), format!("x * 0.5 + pmax(max(x), {axis}) * 0.25"), x.array.shape.clone()),
            _ => match rest.as_str() {
                "" => ("f32".to_string(), format!("psum(sum(x), {axis}) / 12"), Vec::new()),
                _ => (
                    format!("f32[{}]", &rest[2..]),
                    format!("psum(sum(x, axis=0), {axis}) / 12"),
                    x.array.shape[1..].to_vec(),
                ),
            },
        };
        let _ = writeln!(self.items, "manual({axis}) fn {function}(x: {split}) -> {result} {{ {body} }}");
        let _ = writeln!(self.body, "  let {name} = {function}({});", x.name);
        self.add(Variable { name, array: Array::new(DType::F32, &shape), exact: false });
    }
}

/// The template with names for its variables `x` and `y`.
fn filled(template: &str, x: &str, y: &str) -> String {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text = String::new();
    let mut rest = template;
    while let Some(start) = rest.find(word) {
        let (before, from) = rest.split_at(start);
        let (name, after) = from.split_at(from.find(|c| !word(c)).unwrap_or(from.len()));
        text += before;
        text += match name {
            "x" => x,
            "y" => y,
            other => other,
        };
        rest = after;
    }
    text + rest
}
