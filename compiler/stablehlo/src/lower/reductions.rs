//! Reductions, windows and sorts: regions that combine elements are recognized, or taken as functions.

use super::{FunctionReader, MlirReduction, MlirValue, ValueForm, at, dims, malformed, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, Attributes, DenseNumber, MlirBlock, MlirElement, MlirOp, TensorType, ValueName};
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
        let body: Vec<&MlirOp> = region.body.iter().filter(|operation| !is_identity(&operation.name)).collect();
        let [combine, end] = body.as_slice() else { return None };
        let uses = |name: &str| combine.operands.iter().any(|operand| operand.base == name);
        let returns_param = end.operands.iter().any(|operand| operand.base == *first || operand.base == *second);
        let combines = uses(first) && uses(second) && !returns_param;
        combines.then(|| RegionFunction::of_operation(&combine.name, ty.element)).flatten()
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

    pub fn scan(self) -> Option<&'static str> {
        match self {
            RegionFunction::Add => Some("cumsum"),
            RegionFunction::Multiply => Some("cumprod"),
            RegionFunction::Max => Some("cummax"),
            RegionFunction::Min => Some("cummin"),
            RegionFunction::And | RegionFunction::Or => None,
        }
    }

    pub fn window(self) -> &'static str {
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
            && (if is_max { RegionFunction::Max } else { RegionFunction::Min }).is_identity(&inits[0])
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
        match (operation.attributes.get("applies"), operation.regions.first()) {
            (_, Some(region)) => self.reduce_by_function(operation, (arrays, inits), &axes, region),
            (Some(Attribute::Word(name)), None) if count == 1 => {
                let region = applied_region(operation, name, arrays[0].ty.element);
                self.reduce_by_function(operation, (arrays, inits), &axes, &region)
            }
            (_, None) => Err(unsupported(operation, "with this function")),
        }
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
    pub(super) fn pair_function(&mut self, operation: &MlirOp, region: &MlirBlock, count: usize) -> Read<Expr> {
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
        let body = build.expr(ExprKind::Block(self.lifted_block(build, region)?));
        Ok(build.lambda(&names, body))
    }
}

/// A reduction of one array by a function of the table.
pub(super) fn reduced(build: Build, combination: RegionFunction, x: &MlirValue, axes: &[usize]) -> Expr {
    if axes.is_empty() {
        return x.expr.clone();
    }
    if x.ty.element.is_complex() && combination == RegionFunction::Multiply {
        // Products of complex numbers have one axis: the last one first, so that the others keep their numbers.
        let mut last_first = axes.to_vec();
        last_first.sort_unstable_by(|a, b| b.cmp(a));
        let along = |value: Expr, axis: usize| build.call_with("prod", [value], [("axis", build.int(axis as i128))]);
        return last_first.into_iter().fold(x.expr.clone(), along);
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

/// Whether an operation on a number is the number itself.
pub(super) fn is_identity(name: &str) -> bool {
    matches!(
        name,
        "sdy.sharding_constraint"
            | "sdy.propagation_barrier"
            | "sdy.reshard"
            | "stablehlo.broadcast_in_dim"
            | "stablehlo.reshape"
    )
}

/// One of several values of a tuple, or the only value.
pub(super) fn part(build: Build, values: &Expr, at: usize, count: usize) -> Expr {
    if count == 1 { values.clone() } else { build.part(values.clone(), at) }
}

/// Whether a region of (value, index) pairs chooses the largest value, or the smallest: a NaN if there is one, and the least index of equal
/// values. Such a region only compares and chooses, so the relations of its parameters decide: each of them is tried.
fn is_arg_extreme(region: &MlirBlock) -> Option<bool> {
    let ty = region.params.first().filter(|_| region.params.len() == 4).map(|(_, ty)| ty)?;
    let values: &[f64] = if ty.element.is_float() { &[1.0, 2.0, f64::NAN] } else { &[1.0, 2.0] };
    let chooses = |is_max: bool| {
        values.iter().all(|&a| {
            values.iter().all(|&b| {
                [(0.0, 1.0), (1.0, 0.0)].into_iter().all(|(i, j)| {
                    // Of two NaNs the first one is taken, whose index is less.
                    if a.is_nan() && b.is_nan() && i > j {
                        return true;
                    }
                    let is_better = if is_max { a > b } else { a < b };
                    let takes_first = a.is_nan() || (is_better && !b.is_nan()) || (a == b && i < j);
                    let (value, index) = if takes_first { (a, i) } else { (b, j) };
                    match chosen(region, [a, i, b, j]) {
                        Some([found, place]) => (found == value || found.is_nan() && value.is_nan()) && place == index,
                        None => false,
                    }
                })
            })
        })
    };
    match (chooses(true), chooses(false)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// The values that a region returns which compares and chooses its four parameters; None if it does anything else.
fn chosen(region: &MlirBlock, params: [f64; 4]) -> Option<[f64; 2]> {
    let mut values: BTreeMap<&str, f64> = region.params.iter().map(|(name, _)| name.as_str()).zip(params).collect();
    for operation in &region.body {
        let operands: Vec<f64> =
            operation.operands.iter().map(|name| values.get(name.base.as_str()).copied()).collect::<Option<_>>()?;
        let direction = match operation.attributes.get("comparison_direction") {
            Some(Attribute::Word(word)) => word.as_str(),
            _ => "",
        };
        let is = |holds: bool| if holds { 1.0 } else { 0.0 };
        let result = match (operation.name.as_str(), operands.as_slice(), direction) {
            (name, [value], _) if is_identity(name) => *value,
            ("stablehlo.return", [value, index], _) => return Some([*value, *index]),
            ("stablehlo.compare", [a, b], "EQ") => is(a == b),
            ("stablehlo.compare", [a, b], "NE") => is(a != b),
            ("stablehlo.compare", [a, b], "LT") => is(a < b),
            ("stablehlo.compare", [a, b], "LE") => is(a <= b),
            ("stablehlo.compare", [a, b], "GT") => is(a > b),
            ("stablehlo.compare", [a, b], "GE") => is(a >= b),
            ("stablehlo.and", [a, b], _) => a.min(*b),
            ("stablehlo.or", [a, b], _) => a.max(*b),
            ("stablehlo.not", [a], _) => 1.0 - a,
            ("stablehlo.select", [p, a, b], _) => {
                if *p != 0.0 {
                    *a
                } else {
                    *b
                }
            }
            _ => return None,
        };
        values.insert(operation.results.first()?.0.as_str(), result);
    }
    None
}

/// The region of a reduction that is printed as the name of its operation: `applies stablehlo.and`.
fn applied_region(operation: &MlirOp, name: &str, element: MlirElement) -> MlirBlock {
    let ty = TensorType { shape: Vec::new(), element };
    let value = |base: &str| ValueName { base: base.to_string(), index: 0 };
    let own = |name: &str, operands: Vec<ValueName>, results: Vec<(String, usize)>, types: Vec<TensorType>| MlirOp {
        name: name.to_string(),
        results,
        operands,
        attributes: Attributes::new(),
        regions: Vec::new(),
        types,
        location: operation.location.clone(),
        span: operation.span,
    };
    let combined = own(name, vec![value("a"), value("b")], vec![("combined".to_string(), 1)], vec![ty.clone()]);
    let end = own("stablehlo.return", vec![value("combined")], Vec::new(), Vec::new());
    MlirBlock { params: vec![("a".to_string(), ty.clone()), ("b".to_string(), ty)], body: vec![combined, end] }
}
