//! Reductions, windows and sorts: regions that combine elements are recognized, or taken as functions.

use super::{
    FunctionReader, MlirReduction, MlirValue, ValueForm, at, dims, ints, malformed, optional_ints, unsupported,
};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, DenseNumber, MlirBlock, MlirElement, MlirOp, ValueName};
use spmdc_grammar::ast::{Expr, ExprKind, InfixOp};
use std::collections::BTreeMap;

/// A combination of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegionFunction {
    Add,
    Multiply,
    Max,
    Min,
    And,
    Or,
}

impl RegionFunction {
    pub fn of_operation(name: &str, element: MlirElement) -> Option<RegionFunction> {
        let is_bool = element == MlirElement::Bool;
        Some(match name {
            "stablehlo.add" | "stablehlo.maximum" | "stablehlo.or" if is_bool => RegionFunction::Or,
            "stablehlo.multiply" | "stablehlo.minimum" | "stablehlo.and" if is_bool => RegionFunction::And,
            "stablehlo.add" => RegionFunction::Add,
            "stablehlo.multiply" => RegionFunction::Multiply,
            "stablehlo.maximum" => RegionFunction::Max,
            "stablehlo.minimum" => RegionFunction::Min,
            _ => return None,
        })
    }

    /// The combination that a region computes of its two parameters.
    pub fn of_region(region: &MlirBlock) -> Option<RegionFunction> {
        let [(first, ty), (second, _)] = region.params.as_slice() else { return None };
        let body: Vec<&MlirOp> =
            region.body.iter().filter(|operation| operation.name != "sdy.sharding_constraint").collect();
        let [combine, _] = body.as_slice() else { return None };
        let uses = |name: &str| combine.operands.iter().any(|operand| operand.base == name);
        (uses(first) && uses(second)).then(|| RegionFunction::of_operation(&combine.name, ty.element)).flatten()
    }

    /// Whether a number does not change what it is combined with.
    pub fn is_identity(self, value: &MlirValue) -> bool {
        match self {
            RegionFunction::Add | RegionFunction::Or => value.is_number(0),
            RegionFunction::Multiply | RegionFunction::And => value.is_number(1),
            RegionFunction::Max => value.splat().is_some_and(|number| is_extreme(value.ty.element, number, true)),
            RegionFunction::Min => value.splat().is_some_and(|number| is_extreme(value.ty.element, number, false)),
        }
    }

    fn reduction(self) -> &'static str {
        match self {
            RegionFunction::Add => "sum",
            RegionFunction::Multiply => "prod",
            RegionFunction::Max => "max",
            RegionFunction::Min => "min",
            RegionFunction::And => "all",
            RegionFunction::Or => "any",
        }
    }

    fn scan(self) -> Option<&'static str> {
        match self {
            RegionFunction::Add => Some("cumsum"),
            RegionFunction::Multiply => Some("cumprod"),
            RegionFunction::Max => Some("cummax"),
            RegionFunction::Min => Some("cummin"),
            RegionFunction::And | RegionFunction::Or => None,
        }
    }

    fn window(self) -> &'static str {
        match self {
            RegionFunction::Add => "add",
            RegionFunction::Multiply => "mul",
            RegionFunction::Max => "max",
            RegionFunction::Min => "min",
            RegionFunction::And => "and",
            RegionFunction::Or => "or",
        }
    }

    /// Two values combined.
    pub fn of(self, build: Build, x: Expr, y: Expr) -> Expr {
        match self {
            RegionFunction::Add => build.binary(InfixOp::Add, x, y),
            RegionFunction::Multiply => build.binary(InfixOp::Mul, x, y),
            RegionFunction::Max => build.call("maximum", [x, y]),
            RegionFunction::Min => build.call("minimum", [x, y]),
            RegionFunction::And => build.binary(InfixOp::BitAnd, x, y),
            RegionFunction::Or => build.binary(InfixOp::BitOr, x, y),
        }
    }
}

/// Whether a number is the least of its type, or the greatest.
fn is_extreme(element: MlirElement, number: &DenseNumber, is_least: bool) -> bool {
    match (element, number) {
        (MlirElement::Signed(bits), DenseNumber::Int(value)) => {
            let half = 1i128 << (bits - 1);
            *value == if is_least { -half } else { half - 1 }
        }
        (MlirElement::Unsigned(bits), DenseNumber::Int(value)) => {
            *value == if is_least { 0 } else { (1i128 << bits) - 1 }
        }
        (_, DenseNumber::Bits(bits)) => {
            let infinity = match element {
                MlirElement::F64 => f64::INFINITY.to_bits(),
                MlirElement::F32 => u64::from(f32::INFINITY.to_bits()),
                MlirElement::Bf16 => 0x7F80,
                MlirElement::F16 => 0x7C00,
                MlirElement::F8e5m2 => 0x7C,
                MlirElement::Bool
                | MlirElement::Signed(_)
                | MlirElement::Unsigned(_)
                | MlirElement::F8e4m3
                | MlirElement::C64
                | MlirElement::C128 => return false,
            };
            let sign = if is_least { 1u64 << (element.bits() - 1) } else { 0 };
            *bits == infinity | sign
        }
        _ => false,
    }
}

impl FunctionReader<'_> {
    pub(super) fn reduce(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let count = operands.len() / 2;
        if count == 0 || operands.len() % 2 != 0 || operation.types.len() != count {
            return Err(malformed(operation, "a reduction has an initial number for each operand"));
        }
        let (arrays, inits) = operands.split_at(count);
        let axes = dims(operation, "dimensions", arrays[0].ty.rank())?;
        let combination = match (operation.attributes.get("applies"), operation.regions.first()) {
            (Some(Attribute::Word(name)), _) => RegionFunction::of_operation(name, arrays[0].ty.element),
            (_, Some(region)) => RegionFunction::of_region(region),
            _ => None,
        };
        if let (Some(combination), [x], [init]) = (combination, arrays, inits) {
            let is_trivial = axes.iter().all(|&axis| x.ty.shape[axis] == 1);
            if is_trivial && combination.is_identity(init) {
                let shape = operation.types[0].shape.clone();
                return self.reshape(operation, build, x, &shape, None);
            }
            let reduced = reduced(build, combination, x, &axes);
            if !combination.is_identity(init) {
                return self.emit(operation, combination.of(build, reduced, init.expr.clone()));
            }
            let form = ValueForm::Reduced(MlirReduction { function: combination.reduction(), of: x.shaped(), axes });
            let value = self.bound(operation, reduced)?;
            self.define(operation, MlirValue { form, ..value });
            return Ok(());
        }
        if let [x, places] = arrays
            && let [axis] = axes.as_slice()
            && let Some(region) = operation.regions.first()
            && let Some(is_max) = is_arg_extreme(region)
            && places.counts_along == Some(*axis)
        {
            let (find, value) = if is_max { ("argmax", "max") } else { ("argmin", "min") };
            let axis = build.int(*axis as i128);
            let index = build.call_with(find, [x.expr.clone()], [("axis", axis.clone())]);
            let index = build.cast(places.ty.element, index);
            let value = build.call_with(value, [x.expr.clone()], [("axis", axis)]);
            for ((name, ty), expr) in
                Self::result_names(operation).into_iter().zip(&operation.types).zip([value, index])
            {
                let variable = self.variable(build, find, expr);
                self.values.insert(name, MlirValue::new(variable, ty.clone()));
            }
            return Ok(());
        }
        let Some(region) = operation.regions.first() else {
            return Err(unsupported(operation, "with this function"));
        };
        self.reduce_by_function(operation, (arrays, inits), &axes, region)
    }

    /// The reduction by any associative function: the last element of its scan, along one dimension after the other.
    fn reduce_by_function(
        &mut self,
        operation: &MlirOp,
        (arrays, inits): (&[MlirValue], &[MlirValue]),
        axes: &[usize],
        region: &MlirBlock,
    ) -> Read<()> {
        let build = at(operation);
        let combine = self.pair_function(operation, region, arrays.len())?;
        let mut axes = axes.to_vec();
        axes.sort_unstable_by(|a, b| b.cmp(a));
        let mut values = build.together(arrays.iter().map(|array| array.expr.clone()).collect());
        for &axis in &axes {
            let args = [combine.clone(), values];
            let scanned = build.call_with("associative_scan", args, [("axis", build.int(axis as i128))]);
            let scanned = self.variable(build, "scanned", scanned);
            let last = |value: Expr| {
                let along = build.int(axis as i128);
                build.call_with("take", [value, build.int(-1)], [("axis", along)])
            };
            let parts = (0..arrays.len()).map(|at| last(part(build, &scanned, at, arrays.len()))).collect();
            values = build.together(parts);
        }
        let inits = build.together(inits.iter().map(|init| init.expr.clone()).collect());
        let values = self.variable(build, "values", values);
        let result = build.call_of(combine, [values, inits], []);
        self.emit_all(operation, result);
        Ok(())
    }

    /// A region of `2 n` parameters as a function of two tuples.
    fn pair_function(&mut self, operation: &MlirOp, region: &MlirBlock, count: usize) -> Read<Expr> {
        let build = at(operation);
        if region.params.len() != 2 * count {
            return Err(malformed(operation, "the function of a reduction has two parameters for each operand"));
        }
        if count == 1 {
            return self.lambda(operation, region);
        }
        let names = [self.fresh("a"), self.fresh("b")];
        for (at, (param, ty)) in region.params.iter().enumerate() {
            let of = build.name(&names[at / count]);
            let value = MlirValue::new(build.part(of, at % count), ty.clone());
            self.values.insert(ValueName { base: param.clone(), index: 0 }, value);
        }
        let body = build.expr(ExprKind::Block(self.block(build, region)?));
        Ok(build.lambda(&names, body))
    }

    pub(super) fn reduce_window(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let [x, init] = operands.as_slice() else {
            return Err(unsupported(operation, "of several arrays"));
        };
        let Some(region) = operation.regions.first() else {
            return Err(malformed(operation, "a reduction of windows has a function"));
        };
        let window = WindowAttributes::new(operation, x.ty.rank())?;
        let combination = RegionFunction::of_region(region);
        if let Some(combination) = combination
            && combination.is_identity(init)
            && let Some((axis, is_reverse)) = window.scanned(&x.ty.shape)
            && let Some(scan) = combination.scan()
        {
            let named = [("axis", build.int(axis as i128)), ("reverse", build.flag(is_reverse))];
            let scanned = build.call_with(scan, [x.expr.clone()], named);
            return self.emit(operation, build.cast(x.ty.element, scanned));
        }
        if let Some((axis, is_reverse)) = window.scanned(&x.ty.shape)
            && combination.is_none()
        {
            let function = self.lambda(operation, region)?;
            let named = [("reverse", build.flag(is_reverse)), ("axis", build.int(axis as i128))];
            return self.emit(operation, build.call_with("associative_scan", [function, x.expr.clone()], named));
        }
        let function = match combination {
            Some(combination) => build.text(combination.window()),
            None => self.lambda(operation, region)?,
        };
        let Some(number) = init.splat() else {
            return Err(unsupported(operation, "with an initial value that is computed"));
        };
        let number = super::literal(build, x.ty.element, number);
        let windows = window.call(build, x.expr.clone(), number, function);
        self.emit(operation, build.cast(x.ty.element, windows))
    }

    /// The gradient of the largest elements of windows.
    pub(super) fn select_and_scatter(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x, source, init] = self.some_operands(operation)?;
        let window = WindowAttributes::new(operation, x.ty.rank())?;
        let [select, scatter] = operation.regions.as_slice() else {
            return Err(malformed(operation, "two functions are required"));
        };
        let direction = select.body.first().and_then(|compare| compare.attributes.get("comparison_direction"));
        let is_max = match direction {
            Some(Attribute::Word(word)) if word == "GE" || word == "GT" => true,
            Some(Attribute::Word(word)) if word == "LE" || word == "LT" => false,
            _ => return Err(unsupported(operation, "with this function")),
        };
        if RegionFunction::of_region(scatter) != Some(RegionFunction::Add) || !init.is_number(0) {
            return Err(unsupported(operation, "with this function"));
        }
        let infinity = build.binary(InfixOp::Div, build.float("1.0"), build.float("0.0"));
        let (number, name) = if is_max { (build.negative(infinity), "max") } else { (infinity, "min") };
        let param = self.fresh("x");
        let windows = window.call(build, build.name(&param), number, build.text(name));
        let function = build.lambda(&[param], windows);
        let pullback = build.part(build.call("vjp", [function, x.expr]), 1);
        let name = self.fresh("pullback");
        self.stmts.push(build.bind(build.pattern(&name), pullback));
        let gradient = build.part(build.call(&name, [source.expr]), 0);
        self.emit(operation, gradient)
    }

    pub(super) fn sort(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let axis = super::shapes::first_of(operation, &["dimension"])?;
        let Some(region) = operation.regions.first() else {
            return Err(malformed(operation, "a sort has a comparator"));
        };
        if operands.is_empty() || region.params.len() != 2 * operands.len() {
            return Err(malformed(operation, "a comparator has two parameters for each operand"));
        }
        let keys = sort_keys(region).ok_or_else(|| unsupported(operation, "with this comparator"))?;
        let axis_node = || build.int(axis as i128);
        if let ([x], [key]) = (operands.as_slice(), keys.as_slice()) {
            let named = [("axis", axis_node()), ("descending", build.flag(key.is_descending))];
            return self.emit(operation, build.call_with("sort", [x.expr.clone()], named));
        }
        let order = match keys.as_slice() {
            [key] => {
                let named = [("axis", axis_node()), ("descending", build.flag(key.is_descending))];
                build.call_with("argsort", [operands[key.operand].expr.clone()], named)
            }
            keys if keys.iter().all(|key| !key.is_descending) => {
                let keys = keys.iter().rev().map(|key| operands[key.operand].expr.clone()).collect();
                build.call_with("lexsort", [build.tuple(keys)], [("axis", axis_node())])
            }
            _ => return Err(unsupported(operation, "by several keys in descending order")),
        };
        let order = self.variable(build, "order", order);
        let mut sorted = Vec::new();
        for operand in &operands {
            sorted.push(match operand.counts_along {
                Some(dim) if dim == axis => build.cast(operand.ty.element, order.clone()),
                _ => build.call_with("take_along_axis", [operand.expr.clone(), order.clone()], [("axis", axis_node())]),
            });
        }
        let result = build.together(sorted);
        self.emit_all(operation, result);
        Ok(())
    }

    pub(super) fn top_k(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x] = self.some_operands(operation)?;
        let k = ints(operation, "k")?.first().copied().unwrap_or(0);
        self.emit_all(operation, build.call("top_k", [x.expr, build.int(k)]));
        Ok(())
    }
}

/// A reduction of one array by a function of the table.
pub(super) fn reduced(build: Build, combination: RegionFunction, x: &MlirValue, axes: &[usize]) -> Expr {
    if axes.is_empty() {
        return x.expr.clone();
    }
    let axes = match axes {
        [axis] => build.int(*axis as i128),
        _ => build.ints(axes.iter().copied()),
    };
    let reduced = build.call_with(combination.reduction(), [x.expr.clone()], [("axis", axes)]);
    // Sums of small integers have a larger type in NumPy.
    let is_small = matches!(x.ty.element, MlirElement::Signed(8 | 16) | MlirElement::Unsigned(8 | 16));
    let is_widened = is_small && matches!(combination, RegionFunction::Add | RegionFunction::Multiply);
    if is_widened { build.cast(x.ty.element, reduced) } else { reduced }
}

fn part(build: Build, values: &Expr, at: usize, count: usize) -> Expr {
    if count == 1 { values.clone() } else { build.part(values.clone(), at) }
}

/// Whether a region of (value, index) pairs chooses the largest value and its first index, or the smallest.
fn is_arg_extreme(region: &MlirBlock) -> Option<bool> {
    if region.params.len() != 4 {
        return None;
    }
    let of_values = |operation: &&MlirOp| {
        operation.name == "stablehlo.compare"
            && operation.operands.first().is_some_and(|name| name.base == region.params[0].0)
            && operation.operands.get(1).is_some_and(|name| name.base == region.params[2].0)
    };
    let direction = |operation: &MlirOp| match operation.attributes.get("comparison_direction") {
        Some(Attribute::Word(word)) => word.clone(),
        _ => String::new(),
    };
    let selects = region.body.iter().filter(|operation| operation.name == "stablehlo.select").count();
    let found: Vec<String> = region.body.iter().filter(of_values).map(direction).collect();
    match selects {
        2 if found.iter().any(|word| word == "GT" || word == "GE") => Some(true),
        2 if found.iter().any(|word| word == "LT" || word == "LE") => Some(false),
        _ => None,
    }
}

/// A key of a sort.
struct SortKey {
    operand: usize,
    is_descending: bool,
}

/// The keys of a comparator that compares pairs of operands in turn; None for other comparators.
fn sort_keys(region: &MlirBlock) -> Option<Vec<SortKey>> {
    let known = [
        "stablehlo.constant",
        "stablehlo.compare",
        "stablehlo.select",
        "stablehlo.and",
        "stablehlo.or",
        "stablehlo.return",
    ];
    if region.body.iter().any(|operation| !known.contains(&operation.name.as_str())) {
        return None;
    }
    // The parameter of which each value is a canonical form.
    let mut of: BTreeMap<&str, usize> =
        region.params.iter().enumerate().map(|(at, (name, _))| (name.as_str(), at)).collect();
    let mut keys: Vec<SortKey> = Vec::new();
    for operation in &region.body {
        let sources: Vec<usize> =
            operation.operands.iter().filter_map(|name| of.get(name.base.as_str()).copied()).collect();
        let result = operation.results.first().map(|(name, _)| name.as_str());
        match operation.name.as_str() {
            "stablehlo.select" => {
                if let (Some(result), Some(&source)) = (result, sources.last()) {
                    of.insert(result, source);
                }
            }
            "stablehlo.compare" => {
                let [left, right] = sources[..] else { continue };
                if left / 2 != right / 2 || left == right {
                    continue;
                }
                let Some(Attribute::Word(direction)) = operation.attributes.get("comparison_direction") else {
                    return None;
                };
                let is_swapped = left > right;
                let is_descending = match direction.as_str() {
                    "LT" | "LE" => is_swapped,
                    "GT" | "GE" => !is_swapped,
                    _ => continue,
                };
                if keys.iter().all(|key| key.operand != left / 2) {
                    keys.push(SortKey { operand: left / 2, is_descending });
                }
            }
            _ => {}
        }
    }
    keys.sort_by_key(|key| key.operand);
    (!keys.is_empty()).then_some(keys)
}

/// The attributes of windows.
struct WindowAttributes {
    sizes: Vec<i128>,
    strides: Vec<i128>,
    padding: Vec<i128>,
    base_dilation: Vec<i128>,
    window_dilation: Vec<i128>,
}

impl WindowAttributes {
    fn new(operation: &MlirOp, rank: usize) -> Read<WindowAttributes> {
        let or_ones = |name: &str| {
            let found = optional_ints(operation, name);
            if found.is_empty() { vec![1; rank] } else { found }
        };
        let mut padding = optional_ints(operation, "padding");
        if padding.is_empty() {
            padding = vec![0; 2 * rank];
        }
        let window = WindowAttributes {
            sizes: ints(operation, "window_dimensions")?,
            strides: or_ones("window_strides"),
            padding,
            base_dilation: or_ones("base_dilations"),
            window_dilation: or_ones("window_dilations"),
        };
        let lists = [&window.sizes, &window.strides, &window.base_dilation, &window.window_dilation];
        if lists.iter().any(|list| list.len() != rank) || window.padding.len() != 2 * rank {
            return Err(malformed(operation, "windows have a size and a stride for each dimension"));
        }
        Ok(window)
    }

    /// The dimension along which the windows hold all elements up to one, or (`true`) from one on.
    fn scanned(&self, shape: &[usize]) -> Option<(usize, bool)> {
        let plain = [&self.strides, &self.base_dilation, &self.window_dilation];
        if plain.iter().any(|list| list.iter().any(|&one| one != 1)) {
            return None;
        }
        let mut found = None;
        for (dim, &size) in shape.iter().enumerate() {
            let (low, high) = (self.padding[2 * dim], self.padding[2 * dim + 1]);
            if (self.sizes[dim], low, high) == (1, 0, 0) {
                continue;
            }
            let all = size as i128;
            let reverse = match (low, high) {
                (low, 0) if low == all - 1 => false,
                (0, high) if high == all - 1 => true,
                _ => return None,
            };
            if self.sizes[dim] != all || found.is_some() {
                return None;
            }
            found = Some((dim, reverse));
        }
        found
    }

    fn call(&self, build: Build, x: Expr, init: Expr, function: Expr) -> Expr {
        let list = |values: &[i128]| build.tuple(values.iter().map(|&value| build.int(value)).collect());
        let pairs = self.padding.chunks(2).map(list).collect();
        build.call_with(
            "reduce_window",
            [x, init, function],
            [
                ("window_dimensions", list(&self.sizes)),
                ("window_strides", list(&self.strides)),
                ("padding", build.tuple(pairs)),
                ("base_dilation", list(&self.base_dilation)),
                ("window_dilation", list(&self.window_dilation)),
            ],
        )
    }
}
