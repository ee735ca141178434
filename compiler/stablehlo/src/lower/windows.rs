//! Reductions of windows.

use super::reductions::{RegionFunction, is_identity, part};
use super::shapes::sliced;
use super::{FunctionReader, MlirValue, at, ints, malformed, optional_ints, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{Attribute, MlirBlock, MlirOp, TensorType};
use spmdc_grammar::ast::{Expr, InfixOp};

/// Maximum number of elements of a window that is reduced by a function that the language has no name for.
const MAX_WINDOW: i128 = 1024;

/// Sizes and steps of windows are less.
const MAX_EXTENT: i128 = 1 << 40;

impl FunctionReader<'_> {
    pub(super) fn reduce_window(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let count = operands.len() / 2;
        if count == 0 || operands.len() % 2 != 0 || operation.types.len() != count {
            return Err(malformed(operation, "a reduction of windows has an initial number for each operand"));
        }
        let (arrays, inits) = operands.split_at(count);
        let (x, init) = (&arrays[0], &inits[0]);
        if arrays.iter().any(|array| array.ty.shape != x.ty.shape) {
            return Err(malformed(operation, "the arrays of a reduction have the same shape"));
        }
        let Some(region) = operation.regions.first() else {
            return Err(malformed(operation, "a reduction of windows has a function"));
        };
        let window = WindowAttributes::new(operation, x.ty.rank())?;
        let combination = RegionFunction::of_region(region);
        let scanned = window.scanned(&x.ty.shape);
        if let Some(combination) = combination
            && combination.is_identity(init)
            && let Some((axis, is_reverse)) = scanned
            && let Some(scan) = combination.scan()
        {
            let named = [("axis", build.int(axis as i128)), ("reverse", build.flag(is_reverse))];
            let scanned = build.call_with(scan, [x.expr.clone()], named);
            return self.emit(operation, build.cast(x.ty.element, scanned));
        }
        if let (Some((axis, is_reverse)), None) = (scanned, combination) {
            let function = self.pair_function(operation, region, count)?;
            let values = build.together(arrays.iter().map(|array| array.expr.clone()).collect());
            let named = [("reverse", build.flag(is_reverse)), ("axis", build.int(axis as i128))];
            let scanned = build.call_with("associative_scan", [function, values], named);
            self.emit_all(operation, scanned);
            return Ok(());
        }
        let (Some(combination), Some(number)) = (combination, init.splat()) else {
            return self.fold_windows(operation, (arrays, inits), &window, region);
        };
        let number = super::constants::literal(build, x.ty.element, number);
        let windows = window.call(build, x.expr.clone(), number, build.text(combination.window()));
        self.emit(operation, build.cast(x.ty.element, windows))
    }

    /// Windows reduced by any function: the elements at each place of all windows are a slice, and the slices are combined in turn.
    fn fold_windows(
        &mut self,
        operation: &MlirOp,
        (arrays, inits): (&[MlirValue], &[MlirValue]),
        window: &WindowAttributes,
        region: &MlirBlock,
    ) -> Read<()> {
        let build = at(operation);
        let places = window.sizes.iter().try_fold(1i128, |count, &size| count.checked_mul(size));
        let Some(places) = places.filter(|places| (1..=MAX_WINDOW).contains(places)) else {
            return Err(unsupported(
                operation,
                format!("for windows of more than {MAX_WINDOW} elements with this function"),
            ));
        };
        let out = &operation.types[0].shape;
        if out.len() != window.sizes.len() || out.contains(&0) {
            return Err(unsupported(operation, "without windows"));
        }
        let (low, high): (Vec<i128>, Vec<i128>) = window.padding.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
        let gaps: Vec<i128> = window.base_dilation.iter().map(|&dilation| dilation - 1).collect();
        let shape: Vec<usize> = (0..out.len())
            .map(|dim| {
                let size = arrays[0].ty.shape[dim] as i128;
                let apart = if size == 0 { 0 } else { (size - 1) * window.base_dilation[dim] + 1 };
                usize::try_from((apart + low[dim] + high[dim]).max(0)).ok().filter(|&size| size < MAX_EXTENT as usize)
            })
            .collect::<Option<_>>()
            .ok_or_else(|| malformed(operation, "the padded array is too large"))?;
        let mut padded = Vec::new();
        for (array, init) in arrays.iter().zip(inits) {
            let value = self.padded_by(build, array, init, (&low, &high, &gaps));
            padded.push(self.variable(build, "padded", value));
        }
        let function = self.pair_function(operation, region, arrays.len())?;
        let mut folded: Option<Expr> = None;
        for place in 0..places {
            let mut rest = place;
            let mut ranges = vec![(0, 0, 1); out.len()];
            for dim in (0..out.len()).rev() {
                let start = rest % window.sizes[dim] * window.window_dilation[dim];
                rest /= window.sizes[dim];
                let last = start + (out[dim] as i128 - 1) * window.strides[dim];
                if last >= shape[dim] as i128 {
                    return Err(malformed(operation, "these windows do not lie in their array"));
                }
                ranges[dim] = (start as usize, last as usize + 1, window.strides[dim] as usize);
            }
            let slices = padded.iter().map(|padded| sliced(build, padded.clone(), &shape, &ranges)).collect();
            let slices = build.together(slices);
            folded = Some(match folded {
                None => self.variable(build, "slices", slices),
                Some(before) => {
                    let both = build.call_of(function.clone(), [before, slices], []);
                    self.variable(build, "both", both)
                }
            });
        }
        let folded = folded.expect("a window has elements");
        let inits = build.together(inits.iter().map(|init| init.expr.clone()).collect());
        let result = build.call_of(function, [inits, folded], []);
        let result = self.variable(build, "windows", result);
        // A function of the first or the second number alone has the shape of it.
        let whole = |at: usize| {
            let ty = TensorType { shape: out.clone(), element: operation.types[at].element };
            let value = part(build, &result, at, arrays.len());
            build.call("broadcast_to", [value, build.ints(ty.shape)])
        };
        let results = build.together((0..arrays.len()).map(whole).collect());
        self.emit_all(operation, results);
        Ok(())
    }

    /// The gradient of the largest elements of windows.
    pub(super) fn select_and_scatter(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x, source, init] = self.some_operands(operation)?;
        let window = WindowAttributes::new(operation, x.ty.rank())?;
        let [select, scatter] = operation.regions.as_slice() else {
            return Err(malformed(operation, "two functions are required"));
        };
        let is_max = match comparison_of_params(select) {
            Some("GE") => true,
            Some("LE") => false,
            Some(_) | None => return Err(unsupported(operation, "with this function")),
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
}

/// The direction in which a region compares its first parameter with its second one, and does nothing else.
fn comparison_of_params(region: &MlirBlock) -> Option<&str> {
    let [(first, _), (second, _)] = region.params.as_slice() else { return None };
    let body: Vec<&MlirOp> = region.body.iter().filter(|operation| !is_identity(&operation.name)).collect();
    let [compare, end] = body.as_slice() else { return None };
    let uses = |operation: &MlirOp, name: &str| operation.operands.iter().any(|operand| operand.base == *name);
    let returns_param = uses(end, first) || uses(end, second);
    let [left, right] = compare.operands.as_slice() else { return None };
    let compares = compare.name == "stablehlo.compare" && left.base == *first && right.base == *second;
    match compare.attributes.get("comparison_direction") {
        Some(Attribute::Word(word)) if compares && !returns_param => Some(word),
        _ => None,
    }
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
        let is_step = |&step: &i128| (1..MAX_EXTENT).contains(&step);
        let are_steps = lists[1..].iter().all(|list| list.iter().all(is_step));
        let are_sizes = window.sizes.iter().all(|size| (0..MAX_EXTENT).contains(size));
        if !are_steps || !are_sizes || window.padding.iter().any(|width| width.unsigned_abs() >= MAX_EXTENT as u128) {
            return Err(malformed(operation, "the sizes or strides of these windows are too large, or negative"));
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
