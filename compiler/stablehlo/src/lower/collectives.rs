//! Collectives of `manual_computation`: their groups of devices are those along axes of the mesh.

use super::reductions::RegionFunction;
use super::shapes::first_of;
use super::{FunctionReader, MlirValue, at, malformed, result_type, unsupported};
use crate::build::Build;
use crate::cursor::Read;
use crate::identifiers::identifier;
use crate::tree::{Attribute, MeshDeclaration, MlirOp};
use spmdc_grammar::ast::{Expr, InfixOp};
use std::ops::Range;

impl FunctionReader<'_> {
    pub(super) fn collective(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let Some(mesh) = self.context.mesh else { return Err(unsupported(operation, "without a mesh")) };
        if operation.name == "stablehlo.partition_id" {
            return self.device_number(operation, mesh, 0..mesh.axes.len());
        }
        let operands = self.all_operands(operation)?;
        let Some(x) = operands.first() else { return Err(malformed(operation, "an operand is missing")) };
        if operation.name == "stablehlo.collective_permute" {
            return self.permute(operation, x, mesh);
        }
        let axes = self.axes_of_groups(operation, mesh)?;
        let names = |axes: &[String]| match axes {
            [axis] => build.name(identifier(axis)),
            _ => build.tuple(axes.iter().map(|axis| build.name(identifier(axis))).collect()),
        };
        let axis = names(&axes);
        let combination = operation.regions.first().map(RegionFunction::of_region);
        match operation.name.as_str() {
            "stablehlo.all_reduce" => {
                let function = match combination.flatten() {
                    Some(RegionFunction::Add) => "psum",
                    Some(RegionFunction::Max | RegionFunction::Or) => "pmax",
                    Some(RegionFunction::Min | RegionFunction::And) => "pmin",
                    Some(RegionFunction::Multiply) | None => return Err(unsupported(operation, "with this function")),
                };
                let mut all = Vec::new();
                for operand in &operands {
                    all.push(build.call(function, [operand.expr.clone(), axis.clone()]));
                }
                let result = build.together(all);
                self.emit_all(operation, result);
                Ok(())
            }
            "stablehlo.all_gather" => {
                let dim = first_of(operation, &["all_gather_dim"])?;
                let along = ("axis", build.int(dim as i128));
                let args = [x.expr.clone(), axis];
                let same = build.call_with("all_gather", args.clone(), [along.clone(), ("to", build.text("reduced"))]);
                let value = self.bound(operation, build.call_with("all_gather", args, [along]))?;
                self.define(operation, MlirValue { gathered: Some(Box::new(same)), ..value });
                Ok(())
            }
            "stablehlo.reduce_scatter" => {
                if combination.flatten() != Some(RegionFunction::Add) {
                    return Err(unsupported(operation, "with this function"));
                }
                let dim = first_of(operation, &["scatter_dimension"])?;
                let named = [("axis", build.int(dim as i128))];
                self.emit(operation, build.call_with("psum_scatter", [x.expr.clone(), axis], named))
            }
            _ => {
                let split = first_of(operation, &["split_dimension"])?;
                let concat = first_of(operation, &["concat_dimension"])?;
                let named = [("split", build.int(split as i128)), ("concat", build.int(concat as i128))];
                self.emit(operation, build.call_with("all_to_all", [x.expr.clone(), axis], named))
            }
        }
    }

    /// The axes along which the devices of each group lie; E0111 if the groups are others.
    pub(super) fn axes_of_groups(&self, operation: &MlirOp, mesh: &MeshDeclaration) -> Read<Vec<String>> {
        let Some(Attribute::Dense(dense)) = operation.attributes.get("replica_groups") else {
            return Err(malformed(operation, "a collective has groups of devices"));
        };
        let flat: Vec<usize> = dense.ints().unwrap_or_default().into_iter().map(|device| device as usize).collect();
        let size = dense.ty.shape.last().copied().unwrap_or(0).max(1);
        let groups: Vec<&[usize]> = flat.chunks(size).collect();
        let sizes: Vec<usize> = mesh.axes.iter().map(|(_, size)| *size).collect();
        // The axes along which the coordinates of the first group differ, the one that changes fastest last.
        let coordinates = |device: usize| -> Vec<usize> {
            let place = match &mesh.devices {
                Some(devices) => devices.iter().position(|&known| known == device).unwrap_or(device),
                None => device,
            };
            let mut rest = place;
            let mut found = vec![0; sizes.len()];
            for (at, &size) in sizes.iter().enumerate().rev() {
                found[at] = rest % size;
                rest /= size;
            }
            found
        };
        let Some(first) = groups.first() else {
            return Err(malformed(operation, "a collective has groups of devices"));
        };
        let base = coordinates(first[0]);
        let mut order: Vec<usize> = Vec::new();
        for &device in first.iter() {
            let own = coordinates(device);
            for axis in 0..sizes.len() {
                if own[axis] != base[axis] && !order.contains(&axis) {
                    order.insert(0, axis);
                }
            }
        }
        let expected = |base: &[usize]| -> Vec<Vec<usize>> {
            let mut all = vec![base.to_vec()];
            for &axis in &order {
                all = all
                    .iter()
                    .flat_map(|one| {
                        (0..sizes[axis]).map(move |coordinate| {
                            let mut next = one.clone();
                            next[axis] = coordinate;
                            next
                        })
                    })
                    .collect();
            }
            all
        };
        for group in &groups {
            let mut start = coordinates(group[0]);
            order.iter().for_each(|&axis| start[axis] = 0);
            let own: Vec<Vec<usize>> = group.iter().map(|&device| coordinates(device)).collect();
            if own != expected(&start) {
                return Err(unsupported(operation, format!("for groups of devices that no axes make: {groups:?}")));
            }
        }
        if order.is_empty() {
            // Groups of one device: along any axis of one device.
            return Err(unsupported(operation, "for groups of one device"));
        }
        Ok(order.iter().map(|&axis| mesh.axes[axis].0.clone()).collect())
    }

    /// Each device sends to at most one other.
    fn permute(&mut self, operation: &MlirOp, x: &MlirValue, mesh: &MeshDeclaration) -> Read<()> {
        let build = at(operation);
        let Some(Attribute::Dense(dense)) = operation.attributes.get("source_target_pairs") else {
            return Err(malformed(operation, "a permutation has pairs of devices"));
        };
        let flat: Vec<usize> = dense.ints().unwrap_or_default().into_iter().map(|device| device as usize).collect();
        let pairs: Vec<(usize, usize)> = flat.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let sizes: Vec<usize> = mesh.axes.iter().map(|(_, size)| *size).collect();
        let coordinate = |device: usize, axis: usize| {
            let after: usize = sizes[axis + 1..].iter().product();
            device / after % sizes[axis]
        };
        // One axis along which all devices do the same.
        for axis in 0..sizes.len() {
            let stays = |&(from, to): &(usize, usize)| {
                (0..sizes.len()).all(|other| other == axis || coordinate(from, other) == coordinate(to, other))
            };
            if !pairs.iter().all(stays) {
                continue;
            }
            let mut own: Vec<(usize, usize)> =
                pairs.iter().map(|&(from, to)| (coordinate(from, axis), coordinate(to, axis))).collect();
            own.sort_unstable();
            own.dedup();
            let others: usize = sizes.iter().product::<usize>() / sizes[axis];
            if own.len() * others != pairs.len() {
                continue;
            }
            let list = own.iter().map(|&(from, to)| build.ints([from, to])).collect();
            let args = [x.expr.clone(), build.name(identifier(&mesh.axes[axis].0)), build.list(list)];
            return self.emit(operation, build.call("ppermute", args));
        }
        Err(unsupported(operation, format!("for pairs of devices that no axis makes: {pairs:?}")))
    }
}

impl FunctionReader<'_> {
    /// The number of the device among those along these axes of the mesh.
    fn device_number(&mut self, operation: &MlirOp, mesh: &MeshDeclaration, axes: Range<usize>) -> Read<()> {
        let build = at(operation);
        let number = device_number(build, &mesh.axes[axes.clone()]);
        let value = self.bound(operation, build.cast(result_type(operation)?.element, number))?;
        self.define(operation, MlirValue { device: Some(axes), ..value });
        Ok(())
    }

    /// Whether the operation is the quotient or the remainder of a device's number by the number of devices along some axes, so that it is
    /// the number along other axes; then it is done.
    pub(super) fn coordinate(&mut self, operation: &MlirOp) -> Read<bool> {
        let Some(mesh) = self.context.mesh else { return Ok(false) };
        let operands = self.all_operands(operation)?;
        let axes = match (operation.name.as_str(), operands.as_slice()) {
            ("stablehlo.convert", [MlirValue { device: Some(axes), .. }]) => axes.clone(),
            ("stablehlo.divide" | "stablehlo.remainder", [MlirValue { device: Some(axes), .. }, divisor]) => {
                let is_quotient = operation.name == "stablehlo.divide";
                let size = |from: usize| mesh.axes[from..axes.end].iter().map(|(_, size)| *size as i128).product();
                let Some(cut) = (axes.start..=axes.end).find(|&cut| divisor.is_number(size(cut))) else {
                    return Ok(false);
                };
                if is_quotient { axes.start..cut } else { cut..axes.end }
            }
            _ => return Ok(false),
        };
        let is_integer = result_type(operation)?.element.is_integer();
        if is_integer {
            self.device_number(operation, mesh, axes)?;
        }
        Ok(is_integer)
    }
}

/// The coordinates of a device along these axes as one number.
fn device_number(build: Build, axes: &[(String, usize)]) -> Expr {
    let mut number: Option<Expr> = None;
    for (axis, size) in axes {
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
