//! Expressions of random programs, over all element types.

use super::precision::{Precision, fits};
use super::programs::{Made, Variable, Writer};
use super::{Array, all, floats, ints, of_size};
use spmdc_abi::{DType, Kind};
use spmdc_ops::reduce::accumulated;

/// An expression in `x`, how much of an error of `x` comes through, how many roundings it has, and how large it gets at most.
type Smooth = (&'static str, f64, f64, f64);

const SMOOTH: [Smooth; 7] = [
    ("tanh(x)", 1.0, 1.0, 1.0),
    ("sin(x)", 1.0, 1.0, 1.0),
    ("abs(x) / 2", 0.5, 1.0, 1000.0),
    ("x * 0.5", 0.5, 1.0, 1000.0),
    ("sqrt(1 + x * x) - 1", 1.0, 4.0, 1000.0),
    ("exp(-x * x)", 1.0, 3.0, 1.0),
    ("maximum(x, 0.25)", 1.0, 0.0, 1000.0),
];

const OF_ONE_INTEGER: [&str; 12] = [
    "abs(x) % 7",
    "-x",
    "x * x % 5",
    "minimum(x, 3)",
    "!x",
    "x << 1",
    "x >> 2",
    "square(x)",
    "x ** 3",
    "sign(x)",
    "clip(x, 1, 5)",
    "100 - x // 3",
];

const OF_TWO_INTEGERS: [&str; 15] = [
    "(x + y) % 9",
    "x - y",
    "maximum(x, y)",
    "minimum(x, y)",
    "x * y % 11",
    "x & y",
    "x | y",
    "x ^ y",
    "x * y",
    "x // (y | 1)",
    "x % (y | 1)",
    "x << y",
    "x >> (y & 7)",
    "x ** (y & 3)",
    "x // maximum(y, 1)",
];

impl Writer {
    pub(super) fn expression(&mut self) -> Made {
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
            let made = match self.draw.below(22) {
                0 | 1 => self.unary(&x),
                2..=4 => self.binary(&x),
                5 | 6 => self.product(&x),
                7 | 8 => self.reduction(&x),
                9..=12 => self.movement(&x),
                13 => self.choice(&x),
                14 => self.scan(&x),
                15 => self.comparison(&x),
                16 => self.windows(&x),
                17 => self.noise(&x),
                18 => self.multiplied(&x),
                19 => self.bits(&x),
                _ => self.conversion(&x),
            };
            if let Some(made) = made
                && made.1.shape.iter().product::<usize>() <= self.most
                && made.2.is_useful(made.1.dtype)
            {
                return made;
            }
        }
        (format!("{}[...]", x.name), x.array, x.precision)
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
        Some((format!("{of}[{}]", entries.join(", ")), array, x.precision))
    }

    /// The operations on an empty array.
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
                array.dtype = accumulated(array.dtype);
                format!("sum({name}, axis={axis})")
            }
            _ => {
                array.shape.reverse();
                format!("{name}.T")
            }
        };
        (expr, array, x.precision)
    }

    /// A function of one variable that leaves its type.
    pub(super) fn unary(&mut self, x: &Variable) -> Option<Made> {
        let dtype = x.array.dtype;
        if dtype.is_float() {
            let drawn = self.draw.pick(&SMOOTH);
            let has_kink = drawn.0.starts_with("abs") || drawn.0.starts_with("max");
            let (expr, slope, roundings, most) = if has_kink && !self.may_bend(x) { SMOOTH[0] } else { drawn };
            let size = x.precision.size.min(most).max(0.25);
            let precision = Precision::of(dtype, size, roundings, &[(slope, x.precision)]);
            return Some((filled(expr, &x.name, ""), x.array.clone(), precision));
        }
        let expr = if dtype == DType::Bool { "!x" } else { self.draw.pick(&OF_ONE_INTEGER) };
        Some((filled(expr, &x.name, ""), x.array.clone(), x.precision))
    }

    /// With random numbers, which are the same on every mesh.
    fn noise(&mut self, x: &Variable) -> Option<Made> {
        let (name, dtype) = (&x.name, x.array.dtype);
        let (key, ty) = (self.draw.below(1000), x.array.text(&[]));
        let (expr, precision) = match dtype.kind() {
            Kind::Float => {
                let draws = self.draw.pick(&["uniform", "bernoulli"]);
                let precision = Precision::of(dtype, x.precision.size, 1.0, &[(1.0, x.precision)]);
                match draws == "uniform" {
                    true => (format!("{name} * uniform(key({key}), {ty})"), precision),
                    false => (format!("where(bernoulli(key({key}), 0.7, {name}.shape), {name}, 0)"), precision),
                }
            }
            Kind::Signed | Kind::Unsigned => (format!("{name} ^ randint(key({key}), {ty}, 0, 90)"), x.precision),
            Kind::Bool => (format!("{name} ^ bernoulli(key({key}), shape={name}.shape)"), x.precision),
            Kind::Key => return None,
        };
        Some((expr, x.array.clone(), precision))
    }

    /// With another variable that broadcasts.
    pub(super) fn binary(&mut self, x: &Variable) -> Option<Made> {
        let (dtype, shape) = (x.array.dtype, x.array.shape.clone());
        let y = self.any(|y| y.array.dtype == dtype && shape.ends_with(&y.array.shape))?;
        if !dtype.is_float() {
            let expr = if dtype == DType::Bool {
                self.draw.pick(&["x & y", "x | y", "x ^ y"])
            } else {
                self.draw.pick(&OF_TWO_INTEGERS)
            };
            return Some((filled(expr, &x.name, &y.name), x.array.clone(), x.precision));
        }
        let (sx, sy) = (x.precision.size, y.precision.size);
        let largest = sx.max(sy);
        let kinds = [
            ("(x + y) / 2", (0.5, 0.5), 2.0, largest),
            ("(x - y) * 0.5", (0.5, 0.5), 2.0, largest),
            ("maximum(x, y)", (1.0, 1.0), 0.0, largest),
            ("sin(x * y)", (sy, sx), 1.0 + sx * sy, 1.0),
            ("x / (1 + y * y)", (1.0, 0.65 * sx), 4.0, sx),
        ];
        let drawn = self.draw.below(kinds.len());
        let bends = drawn == 2 && !(self.may_bend(x) && self.may_bend(&y));
        let (expr, slopes, roundings, size) = kinds[if bends { 0 } else { drawn }];
        let precision = Precision::of(dtype, size, roundings, &[(slopes.0, x.precision), (slopes.1, y.precision)]);
        Some((filled(expr, &x.name, &y.name), x.array.clone(), precision))
    }

    /// Another element type: of exact values any, of others a float type.
    fn conversion(&mut self, x: &Variable) -> Option<Made> {
        let from = x.array.dtype;
        let to = self.draw.pick(&if x.precision.is_exact() { all() } else { floats() });
        if !self.may_step(x) {
            return None;
        }
        let (name, to_name) = (&x.name, to.name());
        let (inner, size) = match (from.is_float(), to.is_float()) {
            (true, true) => (name.clone(), x.precision.size),
            // Beyond the ends of small types, too.
            (true, false) => (format!("{name} * 100"), 0.0),
            (false, true) if from != DType::Bool => (format!("{name} % 9"), 9.0),
            (false, _) => (name.clone(), 1.0),
        };
        let array = Array::new(to, &x.array.shape);
        let scale = if to.is_float() && !from.is_float() { " / 8" } else { "" };
        let call =
            if self.draw.chance(50) { format!("{to_name}({inner})") } else { format!("cast({inner}, {to_name})") };
        Some((call + scale, array, Precision::of(to, size, 1.0, &[(1.0, x.precision)])))
    }

    /// The bits of integers as integers of another type, or the bits of any number as another type and back: there are no bounds for the
    /// error of other results.
    fn bits(&mut self, x: &Variable) -> Option<Made> {
        let (name, from) = (&x.name, x.array.dtype);
        if from == DType::Bool || !self.may_step(x) {
            return None;
        }
        let to = self.draw.pick(&of_size(from.size()));
        if from.is_integer() && to.is_integer() {
            let array = Array::new(to, &x.array.shape);
            return Some((format!("bitcast({name}, {})", to.name()), array, x.precision));
        }
        let inner = format!("bitcast({name}, {})", to.name());
        // Moved in between, so that the bits are in memory as an array of the other type.
        let moved = if x.array.shape.is_empty() { inner } else { format!("flip({inner}, axis=0)") };
        let expr = format!("bitcast({moved}, {})", from.name());
        Some((expr, x.array.clone(), x.precision))
    }

    /// Bools, of exact values.
    fn comparison(&mut self, x: &Variable) -> Option<Made> {
        let (dtype, shape) = (x.array.dtype, x.array.shape.clone());
        let y = self.any(|y| y.precision.is_exact() && y.array.dtype == dtype && shape.ends_with(&y.array.shape))?;
        if !x.precision.is_exact() || dtype == DType::Bool || !self.may_step(x) || !self.may_step(&y) {
            return None;
        }
        let operator = self.draw.pick(&["<", "<=", ">", ">=", "==", "!="]);
        Some((format!("{} {operator} {}", x.name, y.name), Array::new(DType::Bool, &shape), Precision::exact(1.0)))
    }

    /// A product of integers of any sizes that is large enough for the library, of some copies of an array.
    fn large_product(&mut self, x: &Variable, [n, k]: [usize; 2]) -> Made {
        let widened = x.array.dtype.size() <= 4 && self.draw.chance(70);
        let to = if widened { self.draw.pick(&[DType::I32, DType::U32]) } else { x.array.dtype };
        let mut operand = |rows: usize| {
            let copies = format!("tile({}, ({rows}, 24))", x.name);
            if !widened {
                return copies;
            }
            let from = self.draw.pick(&[DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32]);
            format!("{}({}({copies}))", to.name(), from.name())
        };
        let expr = format!("({} @ {}.T)[:{n}, :{k}] % 13", operand(12), operand(12));
        (expr, Array::new(to, &[n, k]), x.precision)
    }

    fn product(&mut self, x: &Variable) -> Option<Made> {
        let &[n, k] = x.array.shape.as_slice() else { return None };
        let dtype = x.array.dtype;
        if dtype == DType::Bool {
            return None;
        }
        if dtype.is_integer() && (1..=8).contains(&n) && (1..=8).contains(&k) && self.draw.chance(40) {
            return Some(self.large_product(x, [n, k]));
        }
        let y = self.any(|y| y.array.dtype == dtype && y.array.shape.len() == 2 && y.array.shape.contains(&k))?;
        let (m, right) = match *y.array.shape.as_slice() {
            [inner, m] if inner == k => (m, y.name.clone()),
            [m, _] => (m, format!("{}.T", y.name)),
            _ => return None,
        };
        let left = if self.draw.chance(20) {
            format!("einsum(\"ik,kj->ij\", {}, {right})", x.name)
        } else {
            format!("({} @ {right})", x.name)
        };
        let array = Array::new(dtype, &[n, m]);
        if !dtype.is_float() {
            return Some((format!("{left} % 13"), array, x.precision));
        }
        // What is summed is of the order of `k`, and rounded there.
        let (sx, sy) = (x.precision.size, y.precision.size);
        let precision = Precision::summed(dtype, k, sx * sy, &[(sy, x.precision), (sx, y.precision)]);
        fits(dtype, k as f64 * sx * sy).then(|| (format!("{left} / {k}"), array, precision))
    }

    fn reduction(&mut self, x: &Variable) -> Option<Made> {
        let (rank, dtype) = (x.array.shape.len(), x.array.dtype);
        if rank == 0 {
            return None;
        }
        let axis = self.draw.below(rank);
        let name = self.draw.pick(match dtype.kind() {
            Kind::Bool => &["sum", "any", "all", "count_nonzero"],
            Kind::Float => &["sum", "max", "min", "mean", "argmax", "argmin", "softmax", "count_nonzero"],
            Kind::Signed | Kind::Unsigned | Kind::Key => {
                &["sum", "prod", "max", "min", "argmax", "argmin", "count_nonzero"]
            }
        });
        let steps = matches!(name, "argmax" | "argmin" | "count_nonzero");
        if steps && !(x.precision.is_exact() && self.may_step(x)) {
            return None;
        }
        if matches!(name, "max" | "min") && !self.may_bend(x) {
            return None;
        }
        let mut array = x.array.clone();
        let (size, known) = (array.shape[axis], x.precision);
        let mean = Precision::summed(dtype, size, known.size, &[(1.0, known)]);
        if name == "softmax" {
            let precision = Precision::summed(dtype, size, 1.0, &[(2.0, known)]);
            return Some((format!("softmax({}, axis={axis})", x.name), array, precision));
        }
        let keep = self.draw.chance(40);
        array.shape[axis] = 1;
        if !keep {
            array.shape.remove(axis);
        }
        let mut named = if keep { ", keepdims=true".to_string() } else { String::new() };
        let mut precision = known;
        let mut scale = String::new();
        match name {
            "sum" | "mean" if dtype.is_float() => {
                precision = mean;
                if name == "sum" {
                    // The sum itself is rounded, too.
                    scale = format!(" / {size}");
                    if !fits(dtype, size as f64 * known.size) {
                        return None;
                    }
                }
            }
            "sum" | "prod" => array.dtype = self.summed_as(accumulated(dtype), &mut named),
            "argmax" | "argmin" | "count_nonzero" => {
                array.dtype = DType::I32;
                precision = Precision::exact(0.0);
            }
            _ => {}
        }
        Some((format!("{name}({}, axis={axis}{named}){scale}", x.name), array, precision))
    }

    /// A reduction over windows. Each has an element that is not padding.
    fn windows(&mut self, x: &Variable) -> Option<Made> {
        let (rank, mut array) = (x.array.shape.len(), x.array.clone());
        if rank == 0 {
            return None;
        }
        let name = self.draw.pick(match array.dtype.kind() {
            Kind::Bool => &["and", "or"],
            Kind::Float => &["max", "min", "add"],
            Kind::Signed | Kind::Unsigned | Kind::Key => &["add", "mul", "max", "min"],
        });
        if name != "add" && !self.may_bend(x) {
            return None;
        }
        let mut numbers: [Vec<String>; 4] = Default::default();
        let mut terms = 1;
        for extent in &mut array.shape {
            let (size, stride) = (self.draw.pick(&[1, 1, 2, 3]), self.draw.pick(&[1, 1, 2, 3]));
            let [before, after] = [0; 2].map(|_: i32| self.draw.below(size));
            let dilation = if before + after == 0 { self.draw.pick(&[1, 1, 2]) } else { 1 };
            let room = (*extent + before + after).checked_sub((size - 1) * dilation + 1)?;
            *extent = room / stride + 1;
            terms *= size;
            let texts = [size.to_string(), stride.to_string(), format!("({before}, {after})"), dilation.to_string()];
            numbers.iter_mut().zip(texts).for_each(|(list, text)| list.push(text));
        }
        let [sizes, strides, padding, dilations] = numbers.map(|list| format!("({},)", list.join(", ")));
        let (mut precision, mut scale) = (x.precision, String::new());
        if name == "add" && array.dtype.is_float() {
            precision = Precision::summed(array.dtype, terms, precision.size, &[(1.0, precision)]);
            scale = format!(" / {terms}");
            if !fits(array.dtype, terms as f64 * precision.size) {
                return None;
            }
        }
        let call = format!("reduce_window({}, None, \"{name}\", {sizes}, {strides}, {padding}", x.name);
        Some((format!("{call}, window_dilation={dilations}){scale}"), array, precision))
    }

    /// The type of sums of integers or bools: `own`, or another by `dtype=`.
    fn summed_as(&mut self, own: DType, named: &mut String) -> DType {
        if self.draw.chance(60) {
            return own;
        }
        let asked = self.draw.pick(&ints());
        *named += &format!(", dtype={}", asked.name());
        asked
    }

    fn scan(&mut self, x: &Variable) -> Option<Made> {
        let (rank, mut array) = (x.array.shape.len(), x.array.clone());
        if rank == 0 {
            return None;
        }
        let axis = self.draw.below(rank);
        let name = self.draw.pick(match array.dtype.kind() {
            Kind::Bool => &["cumsum"],
            Kind::Float => &["cummax", "cummin", "cumsum"],
            Kind::Signed | Kind::Unsigned | Kind::Key => &["cumsum", "cumprod", "cummax", "cummin"],
        });
        let reverse = if self.draw.chance(40) { ", reverse=true" } else { "" };
        let may_bend = self.may_bend(x);
        if !may_bend && name != "cumsum" {
            return None;
        }
        // At ties the derivative of an associative scan depends on the association.
        if x.precision.slopes.is_none() && self.draw.chance(25) {
            let function = self.draw.pick(match array.dtype.kind() {
                Kind::Bool => &["|p, q| p ^ q", "|p, q| q"],
                Kind::Float | Kind::Signed | Kind::Unsigned | Kind::Key => &["maximum", "|p, q| where(q > 1, q, p)"],
            });
            return Some((
                format!("associative_scan({function}, {}, axis={axis}{reverse})", x.name),
                array,
                x.precision,
            ));
        }
        let mut named = reverse.to_string();
        let (mut precision, mut scale) = (x.precision, String::new());
        match name {
            "cumsum" if array.dtype.is_float() => {
                let len = array.shape[axis];
                precision = Precision::summed(array.dtype, len, precision.size, &[(1.0, precision)]);
                scale = format!(" / {len}");
                if !fits(array.dtype, len as f64 * precision.size) {
                    return None;
                }
            }
            "cumsum" | "cumprod" => {
                // Of integers bools alone widen.
                let own = if array.dtype == DType::Bool { DType::I32 } else { array.dtype };
                array.dtype = self.summed_as(own, &mut named);
            }
            _ => {}
        }
        Some((format!("{name}({}, axis={axis}{named}){scale}", x.name), array, precision))
    }

    pub(super) fn movement(&mut self, x: &Variable) -> Option<Made> {
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
        let expr = match self.draw.below(13) {
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
                let precision = x.precision.or(y.precision);
                return Some((format!("concatenate([{name}, {}], axis={axis})", y.name), array, precision));
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
            11 => {
                let len = 1 + self.draw.below(size);
                array.shape[axis] = len;
                index(self.dynamic_range(size, len)?)
            }
            _ => {
                let rank = self.draw.below(2);
                let place = format!("i32({})", self.draw.below(size));
                array.shape.remove(axis);
                // A dynamic place: the compiler does not see through the sum.
                let zero = self.any(|v| v.array.dtype == DType::I32 && rank < 2)?;
                index(format!("{place} + 0 * sum({})", zero.name))
            }
        };
        Some((expr, array, x.precision))
    }

    fn choice(&mut self, x: &Variable) -> Option<Made> {
        let y = self.any(|y| y.array == x.array)?;
        let shape = x.array.shape.clone();
        let mask = self.any(|m| m.precision.is_exact() && shape.ends_with(&m.array.shape))?;
        if !self.may_step(&mask) {
            return None;
        }
        let condition = if mask.array.dtype == DType::Bool { mask.name } else { format!("{} < 1", mask.name) };
        Some((format!("where({condition}, {}, {})", x.name, y.name), x.array.clone(), x.precision.or(y.precision)))
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
