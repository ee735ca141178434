//! Operations with a function: reductions, windows, sorts, loops.

use super::builder::{HloBuilder, array, list, signature};
use super::names::{HloType, HloValue};
use spmdc_abi::{DType, ReduceOp};
use spmdc_kernel::number;

/// The operation that combines two elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HloCombination(pub ReduceOp);

/// The windows of a reduction along one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HloWindowDim {
    /// The number of elements of a window.
    pub size: usize,
    /// The places before the first element.
    pub before: usize,
    /// The places after the last element.
    pub after: usize,
}

impl HloCombination {
    /// The combination of elements of this type. The truth values of StableHLO have no order.
    pub fn of(op: ReduceOp, dtype: DType) -> HloCombination {
        HloCombination(match op {
            ReduceOp::Max if dtype == DType::Bool => ReduceOp::Or,
            ReduceOp::Min if dtype == DType::Bool => ReduceOp::And,
            ReduceOp::Sum | ReduceOp::Product | ReduceOp::Max | ReduceOp::Min | ReduceOp::And | ReduceOp::Or => op,
        })
    }

    /// The operation of StableHLO.
    pub fn name(self) -> &'static str {
        match self.0 {
            ReduceOp::Sum => "stablehlo.add",
            ReduceOp::Product => "stablehlo.multiply",
            ReduceOp::Max => "stablehlo.maximum",
            ReduceOp::Min => "stablehlo.minimum",
            ReduceOp::And => "stablehlo.and",
            ReduceOp::Or => "stablehlo.or",
        }
    }
}

impl HloBuilder<'_> {
    /// The elements of some dimensions combined. Narrow floats are combined in f32.
    pub fn reduce(&mut self, op: ReduceOp, x: &HloValue, dims: &[usize]) -> HloValue {
        let dtype = x.ty.dtype();
        if dtype.is_narrow() && matches!(op, ReduceOp::Sum | ReduceOp::Product) {
            let wide = self.convert(x, dtype.computed());
            let combined = self.reduce(op, &wide, dims);
            return self.convert(&combined, dtype);
        }
        let kept = (0..x.ty.rank()).filter(|dim| !dims.contains(dim)).map(|dim| x.ty.shape[dim]);
        let ty = x.ty.with_shape(&kept.collect::<Vec<usize>>());
        let HloCombination(op) = HloCombination::of(op, dtype);
        if x.ty.is_empty() {
            return self.splat(dtype, number::identity_element(op, dtype), &ty.shape);
        }
        let start = self.identity(op, dtype);
        let types = signature(&[x, &start], std::slice::from_ref(&ty));
        let applied = format!("applies {} across dimensions = {}", HloCombination(op).name(), list(dims));
        self.emit(ty, &format!("stablehlo.reduce({} init: {}) {applied} : {types}", x.name, start.name))
    }

    /// The combination of each window, padded with the identity element.
    pub fn reduce_window(&mut self, op: ReduceOp, x: &HloValue, windows: &[HloWindowDim]) -> HloValue {
        let x = &self.own_value(x);
        let dtype = x.ty.dtype();
        let size = |(&size, window): (&usize, &HloWindowDim)| {
            (size + window.before + window.after + 1).saturating_sub(window.size)
        };
        let shape: Vec<usize> = x.ty.shape.iter().zip(windows).map(size).collect();
        let ty = x.ty.with_shape(&shape);
        let start = self.identity(op, dtype);
        let sizes: Vec<usize> = windows.iter().map(|window| window.size).collect();
        let padding: Vec<String> =
            windows.iter().map(|window| format!("[{}, {}]", window.before, window.after)).collect();
        let padding = format!("dense<{}> : tensor<{}x2xi64>", list(&padding), windows.len());
        let attributes = format!("padding = {padding}, window_dimensions = {}", array(&sizes));
        let name = self.fresh();
        self.line(&format!("{name} = \"stablehlo.reduce_window\"({}, {}) <{{{attributes}}}> ({{", x.name, start.name));
        self.combination(HloCombination(op).name(), dtype);
        let types = signature(&[x, &start], std::slice::from_ref(&ty));
        self.line(&format!("}}) : {types}"));
        HloValue { name, ty }
    }

    /// The block of a function of two scalars: an operation, and its result.
    pub fn combination(&mut self, operation: &str, dtype: DType) {
        let ty = HloType::new(dtype, &[]);
        let [x, y] = [self.fresh(), self.fresh()].map(|name| HloValue { name, ty: ty.clone() });
        self.line(&format!("^bb0({}: {ty}, {}: {ty}):", x.name, y.name));
        self.deeper(|hlo| {
            let made = hlo.binary(operation, &x, &y);
            hlo.returns("stablehlo.return", &[made]);
        });
    }

    /// The values that a block returns.
    pub fn returns(&mut self, name: &str, values: &[HloValue]) {
        if values.is_empty() {
            return self.line(name);
        }
        let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
        let types: Vec<String> = values.iter().map(|value| value.ty.to_string()).collect();
        self.line(&format!("{name} {} : {}", names.join(", "), types.join(", ")));
    }

    /// The largest or smallest element along a dimension, NaN before all others, and its first index as i32.
    pub fn extreme(&mut self, is_largest: bool, x: &HloValue, dim: usize) -> [HloValue; 2] {
        let dtype = x.ty.dtype();
        let places = self.iota(DType::I32, &x.ty.shape, dim);
        let op = if is_largest { ReduceOp::Max } else { ReduceOp::Min };
        let start = self.identity(op, dtype);
        let zero = self.whole(DType::I32, 0, &[]);
        let mut shape = x.ty.shape.clone();
        shape.remove(dim);
        let types = [HloType::new(dtype, &shape), HloType::new(DType::I32, &shape)];
        let name = self.fresh();
        let inputs = format!("({} init: {}), ({} init: {})", x.name, start.name, places.name, zero.name);
        let signature = signature(&[x, &places, &start, &zero], &types);
        self.line(&format!("{name}:2 = stablehlo.reduce{inputs} across dimensions = [{dim}] : {signature}"));
        let element = HloType::new(dtype, &[]);
        let index = HloType::new(DType::I32, &[]);
        let value = |hlo: &mut Self, ty: &HloType| HloValue { name: hlo.fresh(), ty: ty.clone() };
        let [a, b] = [value(self, &element), value(self, &element)];
        let [i, j] = [value(self, &index), value(self, &index)];
        let [a_name, b_name, i_name, j_name] = [&a, &b, &i, &j].map(|value| &value.name);
        self.line(&format!(
            " reducer({a_name}: {element}, {b_name}: {element}) ({i_name}: {index}, {j_name}: {index}) {{"
        ));
        self.deeper(|hlo| {
            let beats = hlo.compare(if is_largest { "GT" } else { "LT" }, &a, &b);
            let is_nan = hlo.compare("NE", &a, &a);
            let picks = hlo.binary("stablehlo.or", &beats, &is_nan);
            let equal = hlo.compare("EQ", &a, &b);
            let before = hlo.compare("LT", &i, &j);
            let tie = hlo.binary("stablehlo.and", &equal, &before);
            let first = hlo.binary("stablehlo.or", &picks, &tie);
            let chosen = hlo.select(&picks, &a, &b);
            let place = hlo.select(&first, &i, &j);
            hlo.returns("stablehlo.return", &[chosen, place]);
        });
        self.line("}");
        let [extreme, place] = types;
        [HloValue { name: format!("{name}#0"), ty: extreme }, HloValue { name: format!("{name}#1"), ty: place }]
    }

    /// Lines along a dimension in the order of the first `keys` operands; stable. `is_zero_signed`: -0 is less than 0.
    pub fn sort(
        &mut self,
        operands: &[HloValue],
        dim: usize,
        (keys, is_descending, is_zero_signed): (usize, bool, bool),
    ) -> Vec<HloValue> {
        let types: Vec<HloType> = operands.iter().map(|operand| operand.ty.clone()).collect();
        let names: Vec<&str> = operands.iter().map(|operand| operand.name.as_str()).collect();
        let name = self.fresh();
        let made = if types.len() == 1 { name.clone() } else { format!("{name}:{}", types.len()) };
        let attributes = format!("dimension = {dim} : i64, is_stable = true");
        self.line(&format!("{made} = \"stablehlo.sort\"({}) <{{{attributes}}}> ({{", names.join(", ")));
        let mut params = Vec::new();
        for ty in &types {
            let element = ty.with_shape(&[]);
            params.push([self.fresh(), self.fresh()].map(|name| HloValue { name, ty: element.clone() }));
        }
        let listed: Vec<String> =
            params.iter().flatten().map(|value| format!("{}: {}", value.name, value.ty)).collect();
        self.line(&format!("^bb0({}):", listed.join(", ")));
        self.deeper(|hlo| {
            let mut order: Option<HloValue> = None;
            for pair in params[..keys].iter().rev() {
                let [x, y] = pair.each_ref().map(|key| hlo.sort_key(key, is_zero_signed));
                let kind = if x.ty.dtype().is_float() { "TOTALORDER" } else { "" };
                let compare = |hlo: &mut Self, direction: &str| match kind {
                    "" => hlo.compare(direction, &x, &y),
                    kind => hlo.compare_as(direction, kind, &x, &y),
                };
                let first = compare(hlo, if is_descending { "GT" } else { "LT" });
                order = Some(match order {
                    None => first,
                    Some(rest) => {
                        let equal = compare(hlo, "EQ");
                        let both = hlo.binary("stablehlo.and", &equal, &rest);
                        hlo.binary("stablehlo.or", &first, &both)
                    }
                });
            }
            let order = order.expect("a sort has a key");
            hlo.returns("stablehlo.return", &[order]);
        });
        let operands: Vec<&HloValue> = operands.iter().collect();
        self.line(&format!("}}) : {}", signature(&operands, &types)));
        HloValue::all(&name, &types)
    }

    /// A key such that the total order of its bits is the order of the elements: one zero, and one NaN, which is the largest.
    fn sort_key(&mut self, key: &HloValue, is_zero_signed: bool) -> HloValue {
        let dtype = key.ty.dtype();
        if !dtype.is_float() {
            return key.clone();
        }
        let mut own = key.clone();
        if !is_zero_signed {
            let zero = self.whole(dtype, 0, &[]);
            let is_zero = self.compare("EQ", &own, &zero);
            own = self.select(&is_zero, &zero, &own);
        }
        let nan = self.splat(dtype, number::from_float(dtype, f64::NAN), &[]);
        let is_nan = self.compare("NE", &own, &own);
        self.select(&is_nan, &nan, &own)
    }

    /// The first line of a loop with this state: the state at the start of a trip, and the state after the last one.
    pub fn while_head(&mut self, state: &[HloValue]) -> (Vec<HloValue>, Vec<HloValue>) {
        let types: Vec<HloType> = state.iter().map(|value| value.ty.clone()).collect();
        let name = self.fresh();
        let carried: Vec<HloValue> = types.iter().map(|ty| HloValue { name: self.fresh(), ty: ty.clone() }).collect();
        let pairs: Vec<String> =
            carried.iter().zip(state).map(|(inner, outer)| format!("{} = {}", inner.name, outer.name)).collect();
        let listed: Vec<String> = types.iter().map(HloType::to_string).collect();
        let made = if types.len() == 1 { name.clone() } else { format!("{name}:{}", types.len()) };
        self.line(&format!("{made} = stablehlo.while({}) : {}", pairs.join(", "), listed.join(", ")));
        (carried, HloValue::all(&name, &types))
    }

    /// `stablehlo.while`: the state after the last trip. `condition` and `body` take the state.
    pub fn while_loop(
        &mut self,
        state: &[HloValue],
        condition: impl FnOnce(&mut Self, &[HloValue]) -> HloValue,
        body: impl FnOnce(&mut Self, &[HloValue]) -> Vec<HloValue>,
    ) -> Vec<HloValue> {
        let (carried, made) = self.while_head(state);
        self.line("cond {");
        self.deeper(|hlo| {
            let holds = condition(hlo, &carried);
            hlo.returns("stablehlo.return", &[holds]);
        });
        self.line("} do {");
        self.deeper(|hlo| {
            let next = body(hlo, &carried);
            hlo.returns("stablehlo.return", &next);
        });
        self.line("}");
        made
    }
}
