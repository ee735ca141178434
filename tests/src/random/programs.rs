//! Random whole programs: chains of operations with loops, branches, `manual` functions and annotations.
//!
//! Floats stay near one (every statement keeps them there), so that sums taken in another order differ in the last digits only: the writer
//! knows a bound for each value. Operations that turn such a difference into another answer (comparisons, rounding, `argmax`) is applied to
//! *exact* values only: those that no sum of floats went into.

use super::precision::{Precision, unit};
use super::slopes::{Differentiated, Slopes};
use super::{Array, Draw, Mesh, complex_type};
use crate::compare::Tolerance;
use spmdc_abi::DType;
use std::fmt::Write;

/// A variable of the program.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub name: String,
    pub array: Array,
    pub precision: Precision,
}

/// Makes statements one by one; whoever drives it says whether each is kept.
#[derive(Clone, Debug)]
pub struct Writer {
    pub(super) draw: Draw,
    pub(super) mesh: Mesh,
    params: Vec<Variable>,
    pub(super) variables: Vec<Variable>,
    /// Parameters and variables of complex numbers, with the types of their planes.
    complex_params: Vec<Variable>,
    pub(super) complex: Vec<Variable>,
    /// Parameters that stay in their files.
    pub(super) streams: Vec<Variable>,
    /// Functions besides `main`.
    pub(super) items: String,
    pub(super) body: String,
    pub(super) next: usize,
    /// Names that no statement of the block may take, since they are assigned at its end.
    pub(super) kept: Vec<String>,
    skipped: u64,
    /// Whether the results have layouts of their own; types with explicit axes have theirs already.
    pins_results: bool,
    /// No array has more elements.
    pub(super) most: usize,
    /// How statements are drawn that are part of a function of which a derivative is taken.
    pub(super) inside: Differentiated,
    /// One in so many statements takes a derivative; none if zero.
    derivatives: usize,
    /// Derivatives that are results of the program.
    pub(super) derived: Vec<String>,
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
const FUNCTIONS: &[&str] =
    &["v0", "v1", "x", "main_2", "shard", "pin", "all_reduce", "broadcast_to", "window", "halo", "margins", "patches"];

/// The text of an expression, its type, and how exact it is.
pub(super) type Made = (String, Array, Precision);

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
        let all = super::all();
        for number in 0..4 {
            let rank = draw.rank(1, most_dims);
            let shape: Vec<usize> = (0..rank).map(|_| draw.pick(&sizes)).collect();
            let common = [DType::F32, DType::F32, DType::F32, DType::F64, DType::I32];
            let dtype = if draw.chance(50) { draw.pick(&common) } else { draw.pick(&all) };
            let name = draw.pick(NAMES);
            let is_free = draw.chance(50) && params.iter().all(|param: &Variable| param.name != name);
            let name = if is_free { name.to_string() } else { format!("p{number}") };
            params.push(Variable { name, array: Array::new(dtype, &shape), precision: Precision::exact(2.0) });
        }
        let variables = params.clone();
        // Names that nothing else has.
        let count = if draw.chance(60) { 0 } else { 1 + draw.below(2) };
        let complex = (0..count).map(|number| {
            let rank = draw.rank(1, most_dims);
            let shape: Vec<usize> = (0..rank).map(|_| draw.pick(&sizes)).collect();
            let array = Array::new(draw.pick(&[DType::F32, DType::F64]), &shape);
            Variable { name: format!("c_{number}"), array, precision: Precision::exact(2.0) }
        });
        let complex_params: Vec<Variable> = complex.collect();
        let count = if draw.chance(70) { 0 } else { 1 + draw.below(2) };
        let streams = (0..count).map(|number| {
            let shape: Vec<usize> = (0..draw.rank(1, most_dims)).map(|_| draw.pick(&sizes)).collect();
            let array = Array::new(draw.pick(&all), &shape);
            Variable { name: format!("s_{number}"), array, precision: Precision::exact(2.0) }
        });
        let streams: Vec<Variable> = streams.collect();
        let pins_results = draw.chance(50) && mesh.axes.iter().all(|&(_, _, explicit)| !explicit);
        let (items, body) = (String::new(), String::new());
        Writer {
            draw,
            mesh,
            params,
            variables,
            complex: complex_params.clone(),
            complex_params,
            streams,
            items,
            body,
            next: 0,
            kept: Vec::new(),
            skipped: 0,
            pins_results,
            most,
            inside: Differentiated::default(),
            derivatives: 0,
            derived: Vec::new(),
        }
    }

    /// One in so many statements takes a derivative. Most parameters are floats.
    pub fn with_derivatives(mut self, derivatives: usize) -> Writer {
        for (at, param) in self.params.iter_mut().enumerate() {
            param.array.dtype = match at {
                0 => DType::F64,
                1 => self.draw.pick(&[DType::F32, DType::F64]),
                2 => param.array.dtype,
                _ => DType::I32,
            };
        }
        self.variables = self.params.clone();
        Writer { derivatives, ..self }
    }

    /// The program as it is now; `shardings` are those of the parameters.
    pub fn text(&self, mesh: &Mesh, types: &[String]) -> String {
        let params = self.params.iter().chain(&self.complex_params).chain(&self.streams).zip(types);
        let params: Vec<String> = params.map(|(param, ty)| format!("{}: {ty}", param.name)).collect();
        let (results, complex) = (self.results(), self.complex_results());
        let names: Vec<&str> = results.iter().copied().chain(complex).map(|v| v.name.as_str()).collect();
        let mut pins = String::new();
        if self.pins_results {
            let mut draw = self.draw.clone();
            let mut pinned: Vec<String> = results.iter().map(|v| mesh.laid_out(&mut draw, &v.array)).collect();
            pinned.extend(complex.iter().map(|z| complex_type(&mesh.laid_out(&mut draw, &z.array))));
            pins = format!(" -> ({})", pinned.join(", "));
        }
        format!(
            "{}{}fn main({}){pins} {{\n{}  ({})\n}}\n",
            mesh.text(),
            self.items,
            params.join(", "),
            self.body,
            names.join(", ")
        )
    }

    /// Bounds of the errors of the results, where they are not exact.
    pub fn tolerances(&self) -> Vec<Tolerance> {
        let tolerance = |precision: Precision| match precision.is_exact() {
            true => Tolerance::Exact,
            false => Tolerance::Within(2.0 * precision.error),
        };
        let complex = self.complex_results().iter().flat_map(|z| [tolerance(z.precision); 2]);
        self.results().iter().map(|result| tolerance(result.precision)).chain(complex).collect()
    }

    /// A type with a random layout.
    pub(super) fn laid_out(&mut self, array: &Array) -> String {
        self.mesh.laid_out(&mut self.draw, array)
    }

    /// Partial sums over an axis, or over all, where types do not decide about them.
    pub(super) fn unreduced(&mut self) -> Option<String> {
        let names: Vec<&str> = self.mesh.axes.iter().map(|&(name, _, _)| name).collect();
        let is_auto = self.mesh.axes.iter().all(|&(_, _, explicit)| !explicit);
        let all = format!("({})", names.join(", "));
        let axes = if self.draw.chance(30) { all } else { self.draw.pick(&names).to_string() };
        is_auto.then(|| format!("P(unreduced={axes})"))
    }

    fn complex_results(&self) -> &[Variable] {
        &self.complex[self.complex.len().saturating_sub(3)..]
    }

    /// The last variables, and all derivatives.
    fn results(&self) -> Vec<&Variable> {
        let first = self.variables.len().saturating_sub(5);
        let is_result = |&(at, v): &(usize, &Variable)| at >= first || self.derived.contains(&v.name);
        self.variables.iter().enumerate().filter(is_result).map(|(_, v)| v).collect()
    }

    /// The same program, about to go on in another way.
    pub fn skipping(mut self) -> Writer {
        self.skipped += 1;
        self.draw = Draw::new("skipped", self.draw.between(0, 1 << 40) as u64 + self.skipped);
        self
    }

    /// The program as it was before an attempt, with the choices that follow this.
    pub(super) fn going_on(self, attempt: &Writer) -> Writer {
        Writer { draw: attempt.draw.clone(), ..self }
    }

    /// A type for each parameter, with a random layout.
    pub fn param_types(&mut self) -> Vec<String> {
        let (draw, mesh) = (&mut self.draw, &self.mesh);
        let ty = |param: &Variable| match draw.chance(20) {
            true => param.array.text(&[]),
            false => mesh.laid_out(draw, &param.array),
        };
        let mut types: Vec<String> = self.params.iter().map(ty).collect();
        let complex = self.complex_params.iter();
        types.extend(complex.map(|param| complex_type(&self.mesh.laid_out(&mut self.draw, &param.array))));
        for stream in &self.streams {
            let laid_out = self.mesh.laid_out(&mut self.draw, &stream.array);
            // Rows are no partial sums.
            types.push(format!("stream {}", laid_out.split('{').next().unwrap_or_default()));
        }
        types
    }

    /// Adds one statement, perhaps with others inside.
    pub fn statement(&mut self) {
        if self.derivatives > 0 && self.draw.below(self.derivatives) == 0 {
            return self.derivative();
        }
        // What a reverse keeps of nested loops has a dimension more for each, and there are limits.
        if self.draw.chance(1) && self.inside.depth == 0 {
            return self.nest();
        }
        let has_complex = !self.complex_params.is_empty();
        if has_complex && self.draw.chance(25) || self.draw.chance(3) {
            return self.complex_statement();
        }
        if !self.streams.is_empty() && self.draw.chance(15) {
            return self.rows();
        }
        match self.draw.below(14) {
            0 if self.inside.depth == 0 && self.draw.chance(20) => self.accumulators(),
            0 => self.for_loop(),
            1 if self.draw.chance(20) => self.idle(),
            1 => self.branch(),
            2 if self.draw.chance(40) => self.places(),
            2 => self.assignment(),
            3 => self.manual(),
            4 => self.ghost_cells(),
            5 => self.neighbours(),
            6 if self.draw.chance(30) => self.pointwise_trips(),
            _ => {
                let (mut expr, array, mut precision) = self.expression();
                if self.inside.depth > 0 && !self.inside.smooth && array.dtype.is_float() && self.draw.chance(10) {
                    expr = format!("stop_gradient({expr})");
                    precision.slopes = Slopes::default();
                }
                self.define(expr, array, precision);
            }
        }
    }

    pub(super) fn stream(&mut self) -> Option<Variable> {
        let number = self.draw.below(self.streams.len().max(1));
        self.streams.get(number).cloned()
    }

    /// A name for a new variable: its own, one that means something elsewhere, or that of a variable, which it hides.
    fn name(&mut self) -> String {
        let name = match self.draw.below(10) {
            0 | 1 => self.draw.pick(NAMES).to_string(),
            2 => self.variables[self.draw.below(self.variables.len())].name.clone(),
            _ => String::new(),
        };
        if !name.is_empty() && !self.kept.contains(&name) && !self.derived.contains(&name) {
            return name;
        }
        self.new_name()
    }

    pub(super) fn new_name(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next + 9)
    }

    /// The variable is visible from here on, and hides the one that had its name.
    pub(super) fn add(&mut self, variable: Variable) {
        self.variables.retain(|v| v.name != variable.name);
        self.variables.push(variable);
    }

    pub(super) fn define(&mut self, expr: String, array: Array, precision: Precision) {
        let annotated = self.draw.chance(15);
        self.define_as(annotated, expr, array, precision);
    }

    /// With a layout of its own if it is annotated.
    fn define_as(&mut self, annotated: bool, expr: String, array: Array, precision: Precision) {
        let name = self.name();
        let ty = if annotated { format!(": {}", self.mesh.laid_out(&mut self.draw, &array)) } else { String::new() };
        let _ = writeln!(self.body, "  let {name}{ty} = {expr};");
        self.add(Variable { name, array, precision });
    }

    /// A variable that has elements.
    pub(super) fn any(&mut self, fits: impl Fn(&Variable) -> bool) -> Option<Variable> {
        self.any_at_all(|v| !v.array.shape.contains(&0) && fits(v))
    }

    pub(super) fn any_at_all(&mut self, fits: impl Fn(&Variable) -> bool) -> Option<Variable> {
        let mut fitting: Vec<&Variable> = self.variables.iter().filter(|v| fits(v)).collect();
        // In a function mostly what depends on its arguments.
        let dependent = fitting.iter().copied().filter(|v| !v.precision.slopes.is_none()).collect::<Vec<_>>();
        if !dependent.is_empty() && self.draw.chance(80) {
            fitting = dependent;
        }
        // Late ones more often: chains grow long.
        let late = fitting.len().saturating_sub(4);
        let from = if self.draw.chance(60) { late } else { 0 };
        let number = fitting.len().checked_sub(from).filter(|&count| count > 0)?;
        Some(fitting[from + self.draw.below(number)].clone())
    }

    /// So many places from a place on that the compiler does not know, written in one of several ways.
    pub(super) fn dynamic_range(&mut self, size: usize, len: usize) -> Option<String> {
        let zero = self.any(|v| v.array.dtype == DType::I32)?;
        let start = self.draw.below(size - len + 1) as i64;
        let from_end = start - size as i64;
        let start = if self.draw.chance(20) { from_end } else { start };
        let hidden = |number: i64| format!("(i32({number}) + 0 * sum({}))", zero.name);
        Some(match self.draw.below(3) {
            0 => format!("{k} : {k} + {len}", k = hidden(start)),
            1 => format!("2 * {k} - {start} : {k} * 2 + {}", len as i64 - start, k = hidden(start)),
            _ => {
                // Names that hide none of those in the slice.
                let (low, high) = (self.new_name(), self.new_name());
                let _ = writeln!(self.body, "  let {low} = {} - 3;\n  let {high} = {low} + {len};", hidden(start + 3));
                format!("{low}:{high}")
            }
        })
    }

    /// A value beside slices of itself, or continued beyond its ends: mostly in another layout than it has.
    fn ghost_cells(&mut self) {
        let Some(x) = self.any(|v| v.array.shape.iter().product::<usize>() > 0) else { return };
        let (expr, array) = if !x.array.shape.is_empty() && self.draw.chance(50) {
            self.joined(&x)
        } else {
            super::calls::padded(&mut self.draw, &x.name, &x.array)
        };
        if array.shape.iter().product::<usize>() <= self.most {
            let annotated = self.draw.chance(60);
            self.define_as(annotated, expr, array, x.precision);
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

    /// Statements of a block, each on a line; variables that they define are gone afterwards.
    fn block(&mut self, count: usize, result: &Variable) -> (String, Precision) {
        let outer = std::mem::take(&mut self.body);
        let known = self.variables.clone();
        let mut precision = result.precision;
        let mut last = result.name.clone();
        for _ in 0..count {
            // Each step keeps the type of what the block gives.
            let current = Variable { name: last.clone(), precision, ..result.clone() };
            let made = match self.draw.below(4) {
                0 => self.unary(&current),
                1 | 2 => self.binary(&current),
                _ => self.movement(&current),
            };
            let fits = |made: &Made| made.1 == result.array && made.2.is_useful(result.array.dtype);
            let Some((expr, array, known)) = made.filter(fits) else { continue };
            precision = known;
            self.define(expr, array, precision);
            last = self.variables.last().map_or(last, |v| v.name.clone());
        }
        self.variables = known;
        let inner = std::mem::replace(&mut self.body, outer);
        (format!("{inner}    {last}\n"), precision)
    }

    fn for_loop(&mut self) {
        let Some(start) = self.any(|_| true) else { return };
        let before = self.clone();
        let name = self.name();
        // No statement of a block makes floats larger than its largest operand.
        let sizes = self.variables.iter().map(|variable| variable.precision.size);
        let slopes = self.variables.iter().fold(Slopes::default(), |most, v| most.or(v.precision.slopes));
        // The error of the carried value is not known yet; the derivatives of what is made of it follow it.
        let slopes = slopes.rounded(64.0 * unit(start.array.dtype));
        let carried = Precision::carried(start.array.dtype, sizes.fold(1.0, f64::max), slopes);
        let carried = Variable { name: name.clone(), precision: carried, ..start.clone() };
        self.add(carried.clone());
        let counter = self.draw.pick(NAMES);
        let is_used = self.variables.iter().any(|variable| variable.name == counter);
        let counter = if is_used { format!("{name}_i") } else { counter.to_string() };
        self.kept.extend([name.clone(), counter.clone()]);
        let count = 1 + self.draw.below(4);
        let (block, in_trip) = self.block(count, &carried);
        self.kept.truncate(self.kept.len() - 2);
        let (statements, last) = block.trim_end().rsplit_once('\n').unwrap_or(("", block.trim()));
        let trips = 1 + self.draw.below(4);
        let precision = in_trip.after(trips, start.precision, carried.precision.slopes);
        if !precision.is_useful(start.array.dtype) {
            *self = before.going_on(self);
            return;
        }
        self.add(Variable { name: name.clone(), precision, ..start.clone() });
        let range = match self.draw.below(3) {
            0 => format!("0..{} step 2", 2 * trips - 1),
            1 => format!("{}..-1 step -3", 3 * trips - 3),
            _ => format!("0..{trips}"),
        };
        let _ = writeln!(self.body, "  let mut {name} = {};", start.name);
        let kind = self.draw.below(3);
        // How often `while` runs is not known, so it has no reverse.
        let _ = match if kind == 1 && self.inside.reversed { 2 } else { kind } {
            0 => {
                let stack = self.name();
                let array = [&[trips], start.array.shape.as_slice()].concat();
                let array = Array::new(start.array.dtype, &array);
                self.add(Variable { name: stack.clone(), array, precision });
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

    /// A loop whose trips need each point only at its own place. One of the carried arrays may start with a constant.
    fn pointwise_trips(&mut self) {
        let Some(x) = self.any(|v| v.array.dtype.is_float()) else { return };
        let (factor, product, counter) = (self.new_name(), self.new_name(), self.new_name());
        let (start, from_x) = match self.draw.below(4) {
            0 => (x.name.clone(), true),
            1 => (format!("zeros_like({})", x.name), false),
            2 => (format!("full_like({}, 0.75)", x.name), false),
            _ => (format!("ones_like({})", x.name), false),
        };
        let mut steps = vec!["tanh", "sin"];
        if !from_x {
            steps.push("0.5 * ");
        }
        let (step, trips) = (self.draw.pick(&steps), 2 + self.draw.below(4));
        let _ = writeln!(
            self.body,
            "  let mut {factor} = {start};\n  let mut {product} = {x};\n  for {counter} in 0..{trips} {{\n    {factor} = {step}({factor});\n    \
             {product} = {product} * {factor};\n  }}",
            x = x.name
        );
        let slope = 1.0 + if from_x { trips as f64 * x.precision.size } else { 0.0 };
        let roundings = 4.0 * (trips * trips) as f64;
        let precision = Precision::of(x.array.dtype, x.precision.size, roundings, &[(slope, x.precision)]);
        self.add(Variable { name: product, array: x.array, precision });
    }

    /// A loop that never runs, as its first bound shows only when the program runs, with statements that would stop the program.
    fn idle(&mut self) {
        let Some(x) = self.any(|v| matches!(v.array.dtype, DType::I32 | DType::I64) && !v.array.shape.is_empty())
        else {
            return;
        };
        let (name, none, left) = (self.new_name(), self.new_name(), self.new_name());
        let stops = match self.draw.below(3) {
            0 => format!("{} // {none}", x.name),
            1 => format!("{} % (2 * {none})", x.name),
            _ => format!("{}[[{none}, {none} + 1000000]]", x.name),
        };
        let dtype = x.array.dtype.name();
        let _ = writeln!(
            self.body,
            "  let {none} = {dtype}(0 * sum({x}));\n  let mut {name} = {x};\n  let mut {left} = {none};\n  while {left} > 0 {{\n    \
             {name} = {name} + {dtype}(sum({stops}));\n    {left} = {left} - 1;\n  }}",
            x = x.name
        );
        self.add(Variable { name, array: x.array.clone(), precision: x.precision });
    }

    fn branch(&mut self) {
        let Some(x) = self.any(|_| true) else { return };
        let Some(decides) = self.any(|v| v.array.dtype.is_integer()) else { return };
        let (then, a) = self.block(2, &x);
        let (otherwise, b) = self.block(2, &x);
        let name = self.name();
        let _ = writeln!(
            self.body,
            "  let {name} = if sum({}) % 2 == {} {{\n{then}  }} else {{\n{otherwise}  }};",
            decides.name,
            self.draw.below(2)
        );
        self.add(Variable { name, array: x.array, precision: a.or(b) });
    }

    fn assignment(&mut self) {
        let Some(x) = self.any(|v| !v.array.shape.is_empty()) else { return };
        let rank = x.array.shape.len();
        let axis = self.draw.below(rank);
        let size = x.array.shape[axis];
        let (start, len) = (self.draw.below(size), 1 + self.draw.below(size));
        let stop = (start + len).min(size);
        let mut entries = vec![":".to_string(); rank];
        let dynamic = if self.draw.chance(25) { self.dynamic_range(size, stop - start) } else { None };
        let is_dynamic = dynamic.is_some();
        entries[axis] = dynamic.unwrap_or(format!("{start}:{stop}"));
        let place = entries.join(", ");
        // As long, from another place of the same value or of another.
        let other = self.any(|y| y.array == x.array).unwrap_or_else(|| x.clone());
        let from = self.draw.below(size - (stop - start) + 1);
        entries[axis] = format!("{from}:{}", from + stop - start);
        // A bound that is computed in the assignment must not find another value by its name.
        let name = if is_dynamic { self.new_name() } else { self.name() };
        let value = format!("{}[{}]", other.name, entries.join(", "));
        let _ = writeln!(self.body, "  let mut {name} = {};\n  {name}[{place}] = {value};", x.name);
        self.add(Variable { name, array: x.array.clone(), precision: x.precision.or(other.precision) });
    }

    /// A `manual` function over one axis, on a value whose first dimension divides by every size that the axis may have.
    fn manual(&mut self) {
        let Some(x) = self.any(|v| v.array.shape.first() == Some(&12) && is_wide(v.array.dtype)) else { return };
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
        let dtype = x.array.dtype.name();
        let split = format!("{dtype}[12@{axis}{rest}]");
        let kind = self.draw.below(4);
        let (result, body, shape) = match if kind == 2 && !self.may_bend(&x) { 3 } else { kind } {
            0 => (split.clone(), format!("x - pmean(mean(x, axis=0), {axis})"), x.array.shape.clone()),
            1 => (format!("{dtype}[12{rest}]"), format!("all_gather(tanh(x), {axis}, axis=0)"), x.array.shape.clone()),
            2 => (split.clone(), format!("x * 0.5 + pmax(max(x), {axis}) * 0.25"), x.array.shape.clone()),
            _ => match rest.as_str() {
                "" => (dtype.to_string(), format!("psum(sum(x), {axis}) / 12"), Vec::new()),
                _ => (
                    format!("{dtype}[{}]", &rest[2..]),
                    format!("psum(sum(x, axis=0), {axis}) / 12"),
                    x.array.shape[1..].to_vec(),
                ),
            },
        };
        let _ = writeln!(self.items, "manual({axis}) fn {function}(x: {split}) -> {result} {{ {body} }}");
        let _ = writeln!(self.body, "  let {name} = {function}({});", x.name);
        // A value less the mean, or a mean of it: of numbers twice as large at most.
        let precision = Precision::summed(x.array.dtype, 12, 2.0 * x.precision.size, &[(2.0, x.precision)]);
        self.add(Variable { name, array: Array::new(x.array.dtype, &shape), precision });
    }
}

/// Element types for which `manual` functions are written.
fn is_wide(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64)
}
