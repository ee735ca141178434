//! Derivatives in random programs: of functions with any statements, loops, branches and `manual` functions among them, and of derivatives.
//!
//! Functions with a kink or a step are applied to exact values only, which are on the same side of it everywhere; in a *smooth* function
//! they are not applied.

use super::Array;
use super::precision::Precision;
use super::programs::{Variable, Writer};
use super::slopes::Differentiated;
use spmdc_abi::DType;
use std::fmt::Write;

/// Derivatives of derivatives of derivatives grow too large to say anything.
const DEEPEST: usize = 2;

/// A function of floats.
#[derive(Clone, Debug)]
struct Function {
    /// Its name, or an expression.
    text: String,
    args: Vec<Variable>,
    result: Variable,
}

impl Function {
    fn args(&self) -> String {
        self.args.iter().map(|arg| format!("{}, ", arg.name)).collect()
    }
}

/// Which derivative is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Forward,
    Gradient,
    Pullback,
    ForwardOfGradient,
    GradientOfGradient,
    ForwardOfForward,
    PullbackOfForward,
}

const MODES: [Mode; 10] = [
    Mode::Forward,
    Mode::Forward,
    Mode::Gradient,
    Mode::Gradient,
    Mode::Pullback,
    Mode::Pullback,
    Mode::ForwardOfGradient,
    Mode::GradientOfGradient,
    Mode::ForwardOfForward,
    Mode::PullbackOfForward,
];

impl Writer {
    /// Whether a function with a kink may be applied to this.
    pub(super) fn may_bend(&self, x: &Variable) -> bool {
        x.precision.slopes.is_none() || x.precision.is_exact() && !self.inside.smooth
    }

    /// Whether a function with steps may be applied to this, if it is exact.
    pub(super) fn may_step(&self, x: &Variable) -> bool {
        x.precision.slopes.is_none() || !self.inside.smooth
    }

    /// A function, and a derivative of it.
    pub(super) fn derivative(&mut self) {
        let mut before = self.clone();
        let mode = self.draw.pick(&MODES);
        if self.differentiated(mode).is_none() {
            std::mem::swap(&mut before.draw, &mut self.draw);
            *self = before;
        }
    }

    fn differentiated(&mut self, mode: Mode) -> Option<()> {
        if self.inside.depth == DEEPEST {
            return None;
        }
        let first = self.argument(None)?;
        let mut args = vec![first];
        if self.draw.chance(50) {
            args.extend(self.argument(Some(args[0].array.dtype)));
        }
        let reversed = !matches!(mode, Mode::Forward | Mode::ForwardOfForward);
        let f = self.function(args, reversed)?;
        match mode {
            Mode::Forward => self.forward(&f),
            Mode::Gradient => self.gradient(&f),
            Mode::Pullback => self.pullback(&f),
            Mode::ForwardOfGradient | Mode::GradientOfGradient => {
                let gradient = self.gradient_function(&f)?;
                if mode == Mode::ForwardOfGradient { self.forward(&gradient) } else { self.gradient(&gradient) }
            }
            Mode::ForwardOfForward | Mode::PullbackOfForward => {
                let tangent = self.tangent_function(&f)?;
                if mode == Mode::ForwardOfForward { self.forward(&tangent) } else { self.pullback(&tangent) }
            }
        }
    }

    /// A smooth function of f64, its derivatives, and what they must be. These are the results, in fours: a derivative, the quotient of
    /// differences that it must be, the same for differences twice as large, and a bound of the error of the first from roundings alone.
    pub fn smooth_function(&mut self) -> Option<()> {
        self.inside.smooth = true;
        let mut args = vec![self.argument_of(DType::F64)?];
        if self.draw.chance(50) {
            args.extend(self.argument_of(DType::F64));
        }
        let f = self.function(args, true)?;
        if f.result.array.dtype != DType::F64 {
            return None;
        }
        let gradient = self.gradient_function(&f)?;
        let compared = [self.by_differences(&f), self.by_products(&f), self.by_differences(&gradient)];
        for (name, array) in compared.into_iter().flatten() {
            self.keep(name, array, Precision::exact(1.0));
        }
        Some(())
    }

    /// A parameter of the program.
    fn argument_of(&mut self, dtype: DType) -> Option<Variable> {
        self.any(|v| v.array.dtype == dtype && !v.array.shape.is_empty())
    }

    /// Its tangent is the limit of a quotient of differences.
    fn by_differences(&mut self, f: &Function) -> Vec<(String, Array)> {
        let tangents = self.tangents(f);
        let directions: String = tangents.iter().map(|tangent| format!("{}, ", tangent.name)).collect();
        let t = self.new_name();
        let _ = writeln!(self.body, "  let {t} = jvp({}, ({}), ({directions})).1;", f.text, f.args());
        let mut results = vec![t];
        for step in ["1e-4", "2e-4"] {
            let at = |sign: &str| {
                let places = f.args.iter().zip(&tangents);
                let places = places.map(|(arg, tangent)| format!("{} {sign} {step} * {}, ", arg.name, tangent.name));
                format!("{}({})", f.text, places.collect::<String>())
            };
            let q = self.new_name();
            let _ = writeln!(self.body, "  let {q} = ({} - {}) / (2 * {step});", at("+"), at("-"));
            results.push(q);
        }
        self.compared(results, f.result.precision.error / 1e-4, &f.result.array)
    }

    /// The product of a cotangent and a tangent does not depend on which of them passes through the function.
    fn by_products(&mut self, f: &Function) -> Vec<(String, Array)> {
        let tangents = self.tangents(f);
        let directions: String = tangents.iter().map(|tangent| format!("{}, ", tangent.name)).collect();
        let [y, t, back, forward, same, reverse] = [(); 6].map(|()| self.new_name());
        let gradients: Vec<String> = f.args.iter().map(|_| self.new_name()).collect();
        let products = gradients.iter().zip(&tangents).map(|(g, s)| format!("sum({g} * {})", s.name));
        let products = products.collect::<Vec<_>>().join(" + ");
        let _ = write!(
            self.body,
            "  let ({y}, {t}) = jvp({text}, ({args}), ({directions}));\n  let {forward} = sum({t} * cos({y}));\n  let {same} = {forward};\n  \
             let {back} = vjp({text}, {args}).1;\n  let ({},) = {back}(cos({y}));\n  let {reverse} = {products};\n",
            gradients.join(", "),
            text = f.text,
            args = f.args(),
        );
        let terms = f.result.array.shape.iter().product::<usize>() as f64;
        let precision = f.result.precision.along(DType::F64, joined(&tangents), terms);
        self.compared(vec![reverse, forward, same], 4.0 * precision.error, &Array::new(DType::F64, &[]))
    }

    /// Three results, and the bound.
    fn compared(&mut self, results: Vec<String>, error: f64, array: &Array) -> Vec<(String, Array)> {
        let bound = self.new_name();
        let _ = writeln!(self.body, "  let {bound} = f64({error:e});");
        let mut compared: Vec<(String, Array)> = results.into_iter().map(|name| (name, array.clone())).collect();
        compared.push((bound, Array::new(DType::F64, &[])));
        compared
    }

    /// A variable of floats, perhaps as f64.
    fn argument(&mut self, dtype: Option<DType>) -> Option<Variable> {
        let narrow = self.draw.chance(10);
        let fits = |v: &Variable| {
            let own = v.array.dtype;
            let is_wanted = dtype.map_or(own.is_float() && (narrow || !own.is_narrow()), |dtype| dtype == own);
            is_wanted && v.precision.size <= 8.0 && v.precision.is_useful(own)
        };
        let x = self.any(fits)?;
        if dtype.is_some() || x.array.dtype == DType::F64 || self.draw.chance(40) {
            return Some(x);
        }
        let wide = Variable {
            name: self.new_name(),
            array: Array::new(DType::F64, &x.array.shape),
            precision: Precision::of(DType::F64, x.precision.size, 0.0, &[(1.0, x.precision)]),
        };
        let _ = writeln!(self.body, "  let {} = f64({});", wide.name, x.name);
        self.add(wide.clone());
        Some(wide)
    }

    /// A function of such arguments with random statements, and what it gives for these.
    fn function(&mut self, args: Vec<Variable>, reversed: bool) -> Option<Function> {
        let (inside, variables, complex) = (self.inside, self.variables.clone(), self.complex.clone());
        let outer = std::mem::take(&mut self.body);
        self.inside = Differentiated { depth: inside.depth + 1, reversed: inside.reversed || reversed, ..inside };
        let name = self.new_name();
        let is_item = self.draw.chance(30);
        let number = self.any(|v| v.array.dtype.is_integer());
        let streams = self.streams.clone();
        if is_item {
            // A function of the program sees nothing but its arguments.
            self.variables.clear();
            self.complex.clear();
            self.streams.clear();
            self.variables.extend(number.clone());
        }
        let mut params = String::new();
        // A statement about one argument does not hide the next argument.
        let kept = self.kept.len();
        self.kept.extend(args.iter().map(|arg| arg.name.clone()));
        for arg in &args {
            let slopes = arg.precision.slopes.of_parameter();
            let precision = Precision { slopes, ..arg.precision };
            let param = Variable { name: self.new_name(), precision, ..arg.clone() };
            let _ = write!(params, "{}, ", param.name);
            self.add(param.clone());
            // A function of the program does not see the argument by another name.
            if !is_item && self.draw.chance(40) {
                self.factors(arg, &param);
            }
        }
        self.kept.truncate(kept);
        for _ in 0..3 + self.draw.below(5) {
            self.statement();
        }
        let is_dependent = |v: &Variable| is_result(v) && !v.precision.slopes.is_none();
        let is_new = |v: &Variable| is_dependent(v) && variables.iter().all(|known| known.name != v.name);
        let result = self.any(|v| is_new(v) && v.precision.slopes.second > 0.0).or_else(|| self.any(is_dependent));
        let body = std::mem::replace(&mut self.body, outer);
        (self.inside, self.variables, self.complex, self.streams) = (inside, variables, complex, streams);
        let result = result?;
        if is_item {
            let item = self.new_name();
            let number = number.map_or(String::new(), |number| number.name);
            // Sometimes the compiler decides all layouts inside.
            let dims = self.mesh.sharding(&mut self.draw, result.array.shape.len());
            let (auto, out) = match self.draw.chance(30) {
                true => ("auto ", format!(", out=P({})", dims.join(", "))),
                false => ("", String::new()),
            };
            let number_and =
                if number.is_empty() { out.trim_start_matches(", ").to_string() } else { number.clone() + &out };
            let _ = writeln!(self.items, "{auto}fn {item}({params}{number}) {{\n{body}  {}\n}}", result.name);
            let _ = writeln!(self.body, "  let {name} = |{params}| {item}({params}{number_and});");
        } else {
            let _ = writeln!(self.body, "  let {name} = |{params}| {{\n{body}    {}\n  }};", result.name);
        }
        let text = if self.draw.chance(15) { format!("checkpoint({name})") } else { name };
        Some(Function { text, args, result })
    }

    /// A number computed from its result: its text, for the name of this result; its value; and the value and the directions whose sum it
    /// is. Their magnitudes add up to `total`.
    fn loss(&mut self, f: &Function) -> (&'static str, Precision, Precision, f64) {
        let (known, dtype) = (f.result.precision, f.result.array.dtype);
        let len = f.result.array.shape.iter().product::<usize>();
        let bent = Precision::of(dtype, 1.0, 1.0, &[(1.0, known)]);
        let (text, of, total) = match self.draw.below(3) {
            0 => ("mean(r)", known, 1.0),
            _ if len as f64 * known.slopes.first > 200.0 => ("mean(sin(r))", bent, 1.0),
            1 => ("sum(r)", known, len as f64),
            _ => ("sum(sin(r))", bent, len as f64),
        };
        let value = Precision::summed(dtype, len, total * of.size, &[(total, of)]);
        (text, value, of, total)
    }

    fn gradient(&mut self, f: &Function) -> Option<()> {
        let (loss, value, of, total) = self.loss(f);
        let (g, params) = (self.new_name(), params(f.args.len()));
        let (text, args) = (&f.text, f.args());
        let loss = format!("{{ let r = {text}({params}); {loss} }}");
        let along = |arg: &Variable| of.along(arg.array.dtype, Precision::exact(1.0), total);
        match self.draw.below(4) {
            0 => {
                let _ = writeln!(self.body, "  let {g} = grad(|{params}| {loss})({args});");
            }
            1 => {
                let (l, aux) = (self.new_name(), self.new_name());
                let aux_of = "{ let r = f; (loss, r) }".replace("f", &format!("{text}({params})"));
                let aux_of =
                    aux_of.replace("loss", loss.split_once("; ").map_or("", |(_, of)| of.trim_end_matches(" }")));
                let call = format!("value_and_grad(|{params}| {aux_of}, has_aux=true)({args})");
                let _ = writeln!(self.body, "  let (({l}, {aux}), {g}) = {call};");
                self.keep(l, Array::new(f.result.array.dtype, &[]), value);
                self.keep(aux, f.result.array.clone(), f.result.precision);
            }
            2 if f.args.len() == 2 => {
                let h = self.new_name();
                let _ = writeln!(self.body, "  let ({g}, {h}) = grad(|{params}| {loss}, argnums=(0, 1))({args});");
                self.keep(h, f.args[1].array.clone(), along(&f.args[1]));
            }
            _ => {
                let l = self.new_name();
                let _ = writeln!(self.body, "  let ({l}, {g}) = value_and_grad(|{params}| {loss})({args});");
                self.keep(l, Array::new(f.result.array.dtype, &[]), value);
            }
        }
        let precision = along(&f.args[0]);
        self.keep(g, f.args[0].array.clone(), precision);
        is_known(precision, f.args[0].array.dtype)
    }

    fn forward(&mut self, f: &Function) -> Option<()> {
        let tangents = self.tangents(f);
        let (y, t) = (self.new_name(), self.new_name());
        let directions: String = tangents.iter().map(|tangent| format!("{}, ", tangent.name)).collect();
        let _ = writeln!(self.body, "  let ({y}, {t}) = jvp({}, ({}), ({directions}));", f.text, f.args());
        let direction = joined(&tangents);
        let precision = f.result.precision.along(f.result.array.dtype, direction, 1.0);
        self.keep(y, f.result.array.clone(), f.result.precision);
        self.keep(t, f.result.array.clone(), precision);
        is_known(precision, f.result.array.dtype)
    }

    fn pullback(&mut self, f: &Function) -> Option<()> {
        let (y, back) = (self.new_name(), self.new_name());
        let _ = writeln!(self.body, "  let ({y}, {back}) = vjp({}, {});", f.text, f.args());
        self.keep(y.clone(), f.result.array.clone(), f.result.precision);
        let mut cotangent = self.any(|v| v.array == f.result.array && v.precision.size <= 8.0)?;
        cotangent.precision.size = cotangent.precision.size.max(1.0);
        let total = f.result.array.shape.iter().product::<usize>() as f64;
        let gradients: Vec<String> = f.args.iter().map(|_| self.new_name()).collect();
        let _ = writeln!(self.body, "  let ({},) = {back}({});", gradients.join(", "), cotangent.name);
        for (gradient, arg) in gradients.into_iter().zip(&f.args) {
            let precision = f.result.precision.along(arg.array.dtype, cotangent.precision, total);
            is_known(precision, arg.array.dtype)?;
            self.keep(gradient, arg.array.clone(), precision);
        }
        Some(())
    }

    /// The gradient by the first argument, as a function.
    fn gradient_function(&mut self, f: &Function) -> Option<Function> {
        let (loss, _, of, total) = self.loss(f);
        let (name, params) = (self.new_name(), params(f.args.len()));
        let loss = format!("{{ let r = {}({params}); {loss} }}", f.text);
        let _ = writeln!(self.body, "  let {name} = |{params}| grad(|{params}| {loss})({params});");
        let array = f.args[0].array.clone();
        let precision = of.along(array.dtype, Precision::exact(1.0), total);
        is_known(precision, array.dtype)?;
        let result = Variable { name: String::new(), array, precision };
        Some(Function { text: name, args: f.args.clone(), result })
    }

    /// The tangent along some directions, as a function.
    fn tangent_function(&mut self, f: &Function) -> Option<Function> {
        let (name, params, tangents) = (self.new_name(), params(f.args.len()), self.tangents(f));
        let directions: String = tangents.iter().map(|tangent| format!("{}, ", tangent.name)).collect();
        let call = format!("jvp({}, ({params}), ({directions})).1", f.text);
        let _ = writeln!(self.body, "  let {name} = |{params}| {call};");
        let precision = f.result.precision.along(f.result.array.dtype, joined(&tangents), 1.0);
        is_known(precision, f.result.array.dtype)?;
        let result = Variable { name: String::new(), precision, ..f.result.clone() };
        Some(Function { text: name, args: f.args.clone(), result })
    }

    /// A direction for each argument.
    fn tangents(&mut self, f: &Function) -> Vec<Variable> {
        let mut tangent = |arg: &Variable| {
            self.any(|v| v.array == arg.array && v.precision.size <= 8.0).unwrap_or_else(|| arg.clone())
        };
        f.args.iter().map(&mut tangent).collect()
    }

    /// A result of a derivative becomes a variable.
    fn keep(&mut self, name: String, array: Array, precision: Precision) {
        let is_outermost = self.inside.depth == 0;
        let precision = if is_outermost { precision.outside() } else { precision };
        if is_outermost {
            self.derived.push(name.clone());
        }
        self.add(Variable { name, array, precision });
    }
}

/// Whether derivatives of this are taken.
fn is_result(v: &Variable) -> bool {
    let dtype = v.array.dtype;
    dtype.is_float() && v.precision.size <= 100.0 && v.precision.is_useful(dtype)
}

/// Whether a comparison within the error still says something.
fn is_known(precision: Precision, dtype: DType) -> Option<()> {
    let most = if dtype.is_narrow() { 0.2 } else { 0.02 };
    (precision.error <= most && precision.size <= 1e4).then_some(())
}

/// Names of parameters.
fn params(count: usize) -> String {
    ["p, ", "q, "][..count].concat()
}

/// The known bound for all these directions together.
fn joined(directions: &[Variable]) -> Precision {
    let all = directions.iter().map(|direction| direction.precision).reduce(Precision::or);
    let mut all = all.expect("a function has a parameter");
    all.size = all.size.max(1.0);
    all
}
