//! The module around the statements: the mesh, the parameters and the results of `main`.

use crate::exporter::Exporter;
use spmdc_abi::{DType, Plane};
use spmdc_ir::program::value::Value;
use spmdc_ir::program::whole_name;
use spmdc_ir::stablehlo::{HloElement, HloType, HloValue, sharding_text};
use spmdc_layout::mesh::Mesh;
use spmdc_layout::sharding::Sharding;
use spmdc_layout::types::{AxisSet, Type};
use std::collections::BTreeSet;

/// The text of a module with one public function, of this signature.
pub fn module_text(
    name: &str,
    mesh: &Mesh,
    signature: &str,
    lines: &str,
    returned: &str,
    functions: &[String],
) -> String {
    let devices = mesh.device_count();
    let mut text = format!(
        "module @jit_{name} attributes {{mhlo.num_partitions = {devices} : i32, mhlo.num_replicas = 1 : i32}} {{\n"
    );
    if !mesh.axes.is_empty() {
        let axes: Vec<String> = mesh.axes.iter().map(|axis| format!("\"{}\"={}", axis.name, axis.size)).collect();
        text += &format!("  sdy.mesh @mesh = <[{}]>\n", axes.join(", "));
    }
    text += &format!("  func.func public @main{signature} {{\n{lines}    {returned}\n  }}\n");
    functions.iter().for_each(|function| text += function);
    text + "}\n"
}

impl Exporter<'_> {
    /// Writes the statements of the program; the signature of `main` and its return.
    pub fn main(&mut self) -> (String, String) {
        let func = self.func;
        let mut taken = BTreeSet::new();
        let mut params = Vec::new();
        let mut at = 0;
        while let Some(param) = func.params.get(at) {
            let value = func.body.params[at];
            let name = unique(&whole_name(&param.name, param.plane), &mut taken);
            let planes = func.params[at..].iter().take_while(|other| other.plane.is_some()).count();
            let values = match param.plane {
                Some(Plane::Real) if planes > 1 => vec![value, func.body.params[at + 1]],
                Some(_) | None => vec![value],
            };
            params.push(self.param(&name, &whole_name(&param.name, param.plane), &values));
            at += values.len();
        }
        let made = self.block(&func.body);
        let mut results = Vec::new();
        let mut returned = Vec::new();
        let mut at = 0;
        while let Some(result) = func.results.get(at) {
            let value = func.body.results[at];
            let is_complex = result.plane == Some(Plane::Real) && made.len() > at + 1;
            let (value_text, ty) = match is_complex {
                true => {
                    let whole = self.hlo.complex(&made[at], &made[at + 1]);
                    (self.laid_out(whole, value), func.ty(value).clone())
                }
                false => (self.returned(made[at].clone(), value), func.ty(value).clone()),
            };
            let name = whole_name(&result.name, result.plane);
            let mut attributes = vec![format!("jax.result_info = \"{name}\"")];
            attributes.extend(self.sharding(&value_text.ty, &ty));
            results.push(format!("{} {{{}}}", value_text.ty, attributes.join(", ")));
            returned.push(value_text);
            at += if is_complex { 2 } else { 1 };
        }
        let names: Vec<&str> = returned.iter().map(|value| value.name.as_str()).collect();
        let types: Vec<String> = returned.iter().map(|value| value.ty.to_string()).collect();
        let returned = match names.is_empty() {
            true => "return".to_string(),
            false => format!("return {} : {}", names.join(", "), types.join(", ")),
        };
        let signature = format!("({}) -> ({})", params.join(", "), results.join(", "));
        (signature, returned)
    }

    /// A parameter of the text, of a value or of the planes of complex numbers.
    fn param(&mut self, name: &str, path: &str, values: &[Value]) -> String {
        let ty = self.func.ty(values[0]).clone();
        let own = HloType::of(&ty.array);
        let shown = match (values, ty.dtype()) {
            ([_, _], dtype) => HloType { element: HloElement::Complex(dtype), shape: own.shape.clone() },
            (_, DType::Key) => words_type(&own),
            (_, _) => own,
        };
        let param = HloValue { name: format!("%{name}"), ty: shown.clone() };
        let attributes: Vec<String> = self.sharding(&shown, &ty).into_iter().collect();
        let attributes = if attributes.is_empty() { String::new() } else { format!(" {{{}}}", attributes.join(", ")) };
        let text = format!("{}: {shown}{attributes} loc(\"{path}\")", param.name);
        if let [re, im] = values {
            let whole = self.laid_out(param, *re);
            let planes = self.hlo.planes(&whole);
            self.define(&[*re, *im], planes.to_vec());
        } else {
            let value = if ty.dtype() == DType::Key { self.joined(&param) } else { param };
            let value = self.laid_out(value, values[0]);
            self.define(values, vec![value]);
        }
        text
    }

    /// Keys as pairs of words become one number each, with the first word in the lower half.
    fn joined(&mut self, words: &HloValue) -> HloValue {
        let last = words.ty.rank() - 1;
        let shape = words.ty.shape[..last].to_vec();
        let [low, high] = [0, 1].map(|at| {
            let word = self.hlo.slice_dim(words, last, (at, at + 1, 1));
            let word = self.hlo.reshape(&word, &shape);
            self.hlo.convert(&word, DType::U64)
        });
        let half = self.hlo.splat(DType::U64, 32, &shape);
        let upper = self.hlo.binary("stablehlo.shift_left", &high, &half);
        let both = self.hlo.binary("stablehlo.or", &upper, &low);
        HloValue { ty: both.ty.with_dtype(DType::Key), ..both }
    }

    /// A result as the signature has it: keys are pairs of words.
    fn returned(&mut self, value: HloValue, of: Value) -> HloValue {
        if value.ty.dtype() != DType::Key {
            return self.laid_out(value, of);
        }
        let shape = words_type(&value.ty).shape;
        let half = self.hlo.splat(DType::U64, 32, &value.ty.shape);
        let upper = self.hlo.binary("stablehlo.shift_right_logical", &value, &half);
        let words = [value, upper].map(|word| {
            let number = HloValue { ty: word.ty.with_dtype(DType::U64), ..word };
            self.hlo.convert(&number, DType::U32)
        });
        self.hlo.stack(&words, shape.len() - 1)
    }

    /// The layout of a parameter or result with dimensions that its axes do not divide: XLA takes it inside of the program only.
    fn laid_out(&mut self, value: HloValue, of: Value) -> HloValue {
        let ty = self.func.ty(of);
        if even(ty, self.mesh) == ty.sharding {
            return value;
        }
        let sharding = sharding_text(&ty.sharding, self.mesh, AxisSet::EMPTY);
        let text = format!("sdy.sharding_constraint {} {sharding} : {}", value.name, value.ty);
        self.hlo.emit(value.ty.clone(), &text)
    }

    /// The attribute of a parameter or result; None if it says nothing. The words of keys are a dimension more.
    fn sharding(&self, shown: &HloType, ty: &Type) -> Option<String> {
        let mut sharding = even(ty, self.mesh);
        let is_silent = |sharding: &Sharding| sharding.dims.iter().all(|dim| dim.open && dim.axes.is_empty());
        if self.mesh.axes.is_empty() || is_silent(&sharding) {
            return None;
        }
        sharding.dims.resize(shown.rank(), Default::default());
        Some(format!("sdy.sharding = #sdy.sharding{}", sharding_text(&sharding, self.mesh, AxisSet::EMPTY)))
    }
}

/// The layout without the axes of dimensions that they do not divide.
fn even(ty: &Type, mesh: &Mesh) -> Sharding {
    let mut sharding = ty.sharding.clone();
    for (dim, &size) in sharding.dims.iter_mut().zip(ty.shape()) {
        if !size.is_multiple_of(mesh.size_of(&dim.axes).max(1)) {
            dim.axes.clear();
            dim.open = false;
        }
    }
    sharding
}

/// Keys as pairs of words.
fn words_type(keys: &HloType) -> HloType {
    let shape: Vec<usize> = keys.shape.iter().copied().chain([2]).collect();
    HloType::new(DType::U32, &shape)
}

/// A name of MLIR that no parameter has yet.
fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let plain: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let mut unique = if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain } else { format!("arg_{plain}") };
    while !taken.insert(unique.clone()) {
        unique.push('_');
    }
    unique
}
