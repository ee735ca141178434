//! Operations whose shapes are operands: as those whose shapes are attributes, where the operands are constant or say what the types say.

use super::{FunctionReader, at, malformed, result_type, unsupported};
use crate::cursor::Read;
use crate::tree::{Attribute, Dense, DenseNumber, MlirElement, MlirOp};

impl FunctionReader<'_> {
    /// Whether the operation has its shape as an operand; then it is done.
    pub(super) fn dynamic_operation(&mut self, operation: &MlirOp) -> Read<bool> {
        let (name, kept, lists): (&str, usize, &[&str]) = match operation.name.as_str() {
            "stablehlo.dynamic_reshape" => ("stablehlo.reshape", 1, &[]),
            "stablehlo.dynamic_broadcast_in_dim" => ("stablehlo.broadcast_in_dim", 1, &[]),
            "stablehlo.dynamic_iota" => ("stablehlo.iota", 0, &[]),
            "stablehlo.dynamic_pad" => ("stablehlo.pad", 2, &["low", "high", "interior"]),
            "stablehlo.real_dynamic_slice" => ("stablehlo.slice", 1, &["start_indices", "limit_indices", "strides"]),
            "stablehlo.dynamic_gather" => ("stablehlo.gather", 2, &["slice_sizes"]),
            "stablehlo.dynamic_conv" => ("stablehlo.convolution", 2, &["padding"]),
            "stablehlo.get_dimension_size" => {
                self.dimension_size(operation)?;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        if operation.operands.len() < kept + lists.len() {
            return Err(malformed(operation, "an operand is missing"));
        }
        let mut attributes = operation.attributes.clone();
        for (list, operand) in lists.iter().zip(&operation.operands[kept..]) {
            let constant = self.value(operation, operand)?.constant.as_ref().and_then(Dense::ints);
            let ints = constant.ok_or_else(|| unsupported(operation, "with a shape that is computed"))?;
            attributes.insert((*list).to_string(), Attribute::Ints(ints));
        }
        let fixed = MlirOp {
            name: name.to_string(),
            results: operation.results.clone(),
            operands: operation.operands[..kept].to_vec(),
            attributes,
            regions: Vec::new(),
            types: operation.types.clone(),
            location: operation.location.clone(),
            span: operation.span,
        };
        self.lower(&fixed)?;
        Ok(true)
    }

    fn dimension_size(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let [x] = self.some_operands(operation)?;
        let dim = super::shapes::first_of(operation, &["dimension", "dim"])?;
        let size = x.ty.shape.get(dim).ok_or_else(|| malformed(operation, "the array has no such dimension"))?;
        let mut ty = result_type(operation)?;
        ty.element = MlirElement::Signed(32);
        let dense = Dense { ty, elements: vec![DenseNumber::Int(*size as i128)] };
        let value = super::MlirValue::new(super::constants::constant(build, &dense), dense.ty.clone());
        self.define(operation, super::MlirValue { constant: Some(dense), ..value });
        Ok(())
    }

    /// A function of numbers, applied to arrays.
    pub(super) fn map(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let Some(region) = operation.regions.first().filter(|region| region.params.len() == operands.len()) else {
            return Err(malformed(operation, "a map has a function of its operands"));
        };
        let function = self.lambda(operation, region)?;
        let ty = result_type(operation)?;
        let mapped = build.call_of(function, operands.into_iter().map(|operand| operand.expr), []);
        let whole = build.call("broadcast_to", [mapped, build.ints(ty.shape.iter().copied())]);
        self.emit(operation, whole)
    }
}
