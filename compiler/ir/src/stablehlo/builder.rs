//! The text under construction: numbers of values, lines, and private functions.

use super::literals;
use super::names::{HloElement, HloType, HloValue};
use spmdc_abi::DType;
use spmdc_kernel::number;
use spmdc_layout::mesh::Mesh;
use spmdc_layout::types::AxisSet;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Writes operations, one a line.
pub struct HloBuilder<'a> {
    /// The mesh of the program.
    pub mesh: &'a Mesh,
    /// The axes of the `manual` functions around the place of writing.
    pub manual: AxisSet,
    /// The position of a device along manual axes, where code is manual along some axes only.
    pub positions: BTreeMap<u8, HloValue>,
    lines: String,
    depth: usize,
    next: usize,
    channels: usize,
    /// Private functions that operations call, by name.
    functions: BTreeMap<String, String>,
    /// The values on which windows have been reduced.
    windowed: BTreeSet<String>,
}

impl<'a> HloBuilder<'a> {
    /// A builder without lines.
    pub fn new(mesh: &'a Mesh) -> HloBuilder<'a> {
        HloBuilder {
            mesh,
            manual: AxisSet::EMPTY,
            positions: BTreeMap::new(),
            lines: String::new(),
            depth: 2,
            next: 0,
            channels: 0,
            functions: BTreeMap::new(),
            windowed: BTreeSet::new(),
        }
    }

    /// The lines so far, and the private functions that they call.
    pub fn finish(self) -> (String, Vec<String>) {
        (self.lines, self.functions.into_values().collect())
    }

    /// A name that no value has.
    pub fn fresh(&mut self) -> String {
        self.next += 1;
        format!("%{}", self.next - 1)
    }

    /// The number of another channel for a collective.
    pub fn channel(&mut self) -> usize {
        self.channels += 1;
        self.channels
    }

    /// A line without a result.
    pub fn line(&mut self, text: &str) {
        let indent = 2 * self.depth;
        let _ = writeln!(self.lines, "{:indent$}{text}", "");
    }

    /// Indents the lines of a block.
    pub fn enter(&mut self) {
        self.depth += 1;
    }

    /// Ends the block of the last [`HloBuilder::enter`].
    pub fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Writes the lines of a block.
    pub fn deeper<T>(&mut self, write: impl FnOnce(&mut Self) -> T) -> T {
        self.enter();
        let made = write(self);
        self.leave();
        made
    }

    /// `%3 = text`, a value of this type.
    pub fn emit(&mut self, ty: HloType, text: &str) -> HloValue {
        let name = self.fresh();
        self.line(&format!("{name} = {text}"));
        HloValue { name, ty }
    }

    /// `%3:2 = text`, a value of each type; one type alone makes `%3 = text`.
    pub fn emit_all(&mut self, types: &[HloType], text: &str) -> Vec<HloValue> {
        let name = self.fresh();
        match types {
            [] => self.line(text),
            [_] => self.line(&format!("{name} = {text}")),
            _ => self.line(&format!("{name}:{} = {text}", types.len())),
        }
        HloValue::all(&name, types)
    }

    /// The value for a reduction of windows. XLA confuses the padding of two such reductions of one split value (jaxlib 0.10.2): all but
    /// the first one get a value of their own.
    pub fn own_value(&mut self, x: &HloValue) -> HloValue {
        if self.windowed.insert(x.name.clone()) { x.clone() } else { self.barrier(x) }
    }

    /// The same values, which count as others.
    pub fn barrier(&mut self, x: &HloValue) -> HloValue {
        self.emit(x.ty.clone(), &format!("stablehlo.optimization_barrier {} : {}", x.name, x.ty))
    }

    /// A constant of these elements.
    pub fn constant(&mut self, dtype: DType, shape: &[usize], bits: &[u64]) -> HloValue {
        let ty = HloType::new(dtype, shape);
        let text = format!("stablehlo.constant dense<{}> : {ty}", literals::dense(dtype, shape, bits));
        self.emit(ty, &text)
    }

    /// An array of equal elements with these bits.
    pub fn splat(&mut self, dtype: DType, bits: u64, shape: &[usize]) -> HloValue {
        let ty = HloType::new(dtype, shape);
        // An array without elements has none to repeat.
        let text = if ty.is_empty() { String::new() } else { literals::element(dtype, bits) };
        self.emit(ty.clone(), &format!("stablehlo.constant dense<{text}> : {ty}"))
    }

    /// An array of this integer, or the float or truth value of the same value.
    pub fn whole(&mut self, dtype: DType, value: i64, shape: &[usize]) -> HloValue {
        let bits = number::cast(DType::I64, dtype, value as u64).unwrap_or(value as u64);
        self.splat(dtype, bits, shape)
    }

    /// An array of this float, rounded to the element type.
    pub fn float(&mut self, dtype: DType, value: f64, shape: &[usize]) -> HloValue {
        self.splat(dtype, number::from_float(dtype, value), shape)
    }

    /// An array of this integer or float with the type and the shape of another one.
    pub fn whole_like(&mut self, like: &HloValue, value: i64) -> HloValue {
        let shape = like.ty.shape.clone();
        match like.ty.element {
            HloElement::Real(dtype) => self.whole(dtype, value, &shape),
            HloElement::Complex(dtype) => {
                let plane = self.whole(dtype, value, &shape);
                let zero = self.whole(dtype, 0, &shape);
                self.complex(&plane, &zero)
            }
        }
    }

    /// Calls a private function with one result, which `body` writes from its parameters if there is none of this name yet.
    pub fn call(
        &mut self,
        name: &str,
        args: &[&HloValue],
        results: &[HloType],
        body: impl FnOnce(&mut HloBuilder<'a>, &[HloValue]) -> Vec<HloValue>,
    ) -> Vec<HloValue> {
        let signature = signature(args, results);
        if !self.functions.contains_key(name) {
            let text = self.function(name, args, results, body);
            self.functions.insert(name.to_string(), text);
        }
        let operands: Vec<&str> = args.iter().map(|arg| arg.name.as_str()).collect();
        self.emit_all(results, &format!("func.call @{name}({}) : {signature}", operands.join(", ")))
    }

    fn function(
        &mut self,
        name: &str,
        args: &[&HloValue],
        results: &[HloType],
        body: impl FnOnce(&mut HloBuilder<'a>, &[HloValue]) -> Vec<HloValue>,
    ) -> String {
        let mut inner = HloBuilder::new(self.mesh);
        let number = |(at, arg): (usize, &&HloValue)| HloValue { name: format!("%arg{at}"), ty: arg.ty.clone() };
        let params: Vec<HloValue> = args.iter().enumerate().map(number).collect();
        let made = body(&mut inner, &params);
        let typed = |value: &HloValue| format!("{}: {}", value.name, value.ty);
        let params: Vec<String> = params.iter().map(typed).collect();
        let types: Vec<String> = results.iter().map(HloType::to_string).collect();
        let names: Vec<&str> = made.iter().map(|value| value.name.as_str()).collect();
        let (lines, others) = inner.finish();
        debug_assert!(others.is_empty(), "a private function calls none");
        format!(
            "  func.func private @{name}({}) -> ({}) {{\n{lines}    return {} : {}\n  }}\n",
            params.join(", "),
            types.join(", "),
            names.join(", "),
            types.join(", "),
        )
    }
}

/// `(tensor<2xf32>, tensor<f32>) -> tensor<2xf32>`
pub fn signature(args: &[&HloValue], results: &[HloType]) -> String {
    let from: Vec<String> = args.iter().map(|arg| arg.ty.to_string()).collect();
    let to: Vec<String> = results.iter().map(HloType::to_string).collect();
    let to = if let [one] = to.as_slice() { one.clone() } else { format!("({})", to.join(", ")) };
    format!("({}) -> {to}", from.join(", "))
}

/// `[0, 1]`
pub fn list<T: std::fmt::Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    format!("[{}]", items.join(", "))
}

/// `array<i64: 0, 1>`
pub fn array<T: std::fmt::Display>(items: &[T]) -> String {
    match items {
        [] => "array<i64>".to_string(),
        _ => format!("array<i64: {}>", list(items).trim_matches(['[', ']'])),
    }
}
