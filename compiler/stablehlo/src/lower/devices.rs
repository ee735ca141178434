//! Numbers of devices as coordinates in the mesh.

use super::value::DevicePart;
use super::{FunctionReader, MlirValue, at, identifier, result_type, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::tree::{DenseNumber, MeshDeclaration, MlirOp};
use spmdc_grammar::ast::{Expr, InfixOp};

impl DevicePart {
    /// The axes of which it is the position; None if no axes of the mesh make it.
    fn axes(self, mesh: &MeshDeclaration) -> Option<&[(String, usize)]> {
        let before = |count: usize| mesh.axes[count..].iter().map(|(_, size)| size).product::<usize>();
        let end = (0..=mesh.axes.len()).rev().find(|&end| before(end) == self.stride)?;
        let Some(size) = self.size else { return Some(&mesh.axes[..end]) };
        let start = (0..=end).rev().find(|&start| before(start) == self.stride * size)?;
        Some(&mesh.axes[start..end])
    }
}

impl MeshDeclaration {
    /// The position of a device along each axis.
    pub(super) fn coordinates(&self, device: usize) -> Vec<usize> {
        let place = match &self.devices {
            Some(devices) => devices.iter().position(|&known| known == device).unwrap_or(device),
            None => device,
        };
        let mut rest = place;
        let mut found = vec![0; self.axes.len()];
        for (at, (_, size)) in self.axes.iter().enumerate().rev() {
            found[at] = rest % size;
            rest /= size;
        }
        found
    }
}

impl FunctionReader<'_> {
    /// The number of the device.
    pub(super) fn partition_id(&mut self, operation: &MlirOp) -> Read<()> {
        match self.context.mesh {
            Some(_) => self.define_part(operation, DevicePart { stride: 1, size: None }),
            None => self.only_one(operation),
        }
    }

    /// The number of the replica, of which there is one, or of the device without a mesh.
    pub(super) fn only_one(&mut self, operation: &MlirOp) -> Read<()> {
        let ty = result_type(operation)?;
        let build = at(operation);
        self.define(operation, MlirValue::new(build.cast(ty.element, build.int(0)), ty));
        Ok(())
    }

    /// Gives the result of a division, remainder or conversion of a part of the number of the device its value, as a position along axes.
    /// Returns whether it is one.
    pub(super) fn part_of_device(&mut self, operation: &MlirOp) -> Read<bool> {
        let Some(part) = operation.operands.first().and_then(|name| self.values.get(name)?.device) else {
            return Ok(false);
        };
        let constant = || {
            let divisor = self.values.get(operation.operands.get(1)?)?;
            match divisor.splat() {
                Some(DenseNumber::Int(value)) => usize::try_from(*value).ok().filter(|&value| value > 0),
                Some(DenseNumber::Decimal(_) | DenseNumber::Bits(_)) | None => None,
            }
        };
        let part = match (operation.name.as_str(), part.size) {
            ("stablehlo.convert", _) => Some(part),
            ("stablehlo.divide", None) => {
                constant().map(|by| DevicePart { stride: part.stride.saturating_mul(by), ..part })
            }
            ("stablehlo.remainder", None) => constant().map(|by| DevicePart { size: Some(by), ..part }),
            (_, _) => None,
        };
        let Some(part) = part.filter(|part| self.context.mesh.is_some_and(|mesh| part.axes(mesh).is_some())) else {
            return Ok(false);
        };
        self.define_part(operation, part)?;
        Ok(true)
    }

    fn define_part(&mut self, operation: &MlirOp, part: DevicePart) -> Read<()> {
        let Some(mesh) = self.context.mesh else { return Err(unsupported(operation, "without a mesh")) };
        let build = at(operation);
        let ty = result_type(operation)?;
        let axes = part.axes(mesh).unwrap_or_default();
        let expr = build.cast(ty.element, position(build, axes));
        self.define(operation, MlirValue { device: Some(part), ..MlirValue::new(expr, ty) });
        Ok(())
    }

    /// The axes along which a part of the number of the device differs.
    pub(super) fn axes_of_part(&self, part: DevicePart) -> Vec<String> {
        let axes = self.context.mesh.and_then(|mesh| part.axes(mesh)).unwrap_or_default();
        axes.iter().filter(|(_, size)| *size > 1).map(|(axis, _)| axis.clone()).collect()
    }
}

/// The position of the device along several axes, as one number.
pub(super) fn position(build: Build, axes: &[(String, usize)]) -> Expr {
    let mut number: Option<Expr> = None;
    for (axis, size) in axes.iter().filter(|(_, size)| *size > 1) {
        let own = build.call("axis_index", [build.name(identifier(axis))]);
        number = Some(match number {
            None => own,
            Some(major) => {
                let scaled = build.binary(InfixOp::Mul, major, build.int(*size as i128));
                build.binary(InfixOp::Add, scaled, own)
            }
        });
    }
    number.unwrap_or_else(|| build.int(0))
}
