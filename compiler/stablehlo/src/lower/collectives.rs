//! Collectives of `manual_computation`: their groups of devices are those along axes of the mesh.

use super::reductions::RegionFunction;
use super::shapes::first_of;
use super::{FunctionReader, MlirValue, at, malformed, unsupported};
use crate::cursor::Read;
use crate::identifiers::identifier;
use crate::tree::{Attribute, MeshDeclaration, MlirOp};

impl FunctionReader<'_> {
    pub(super) fn collective(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let Some(mesh) = self.context.mesh else { return Err(unsupported(operation, "without a mesh")) };
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
        let coordinates = |device: usize| mesh.coordinates(device);
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
        let devices: usize = sizes.iter().product();
        if pairs.iter().any(|&(from, to)| from >= devices || to >= devices) {
            return Err(malformed(operation, "a permutation names devices of the mesh"));
        }
        // As few axes as possible along which all devices do the same: first those along which a device sends.
        let changes =
            |axis: &usize| pairs.iter().any(|&(from, to)| mesh.coordinates(from)[*axis] != mesh.coordinates(to)[*axis]);
        let mut axes: Vec<usize> = (0..sizes.len()).filter(changes).collect();
        let others: Vec<usize> = (0..sizes.len()).filter(|axis| !axes.contains(axis)).collect();
        if axes.is_empty() {
            axes.push(sizes.len() - 1);
        }
        let mut more = others.into_iter();
        let steps = loop {
            if let Some(steps) = steps_along(&pairs, &axes, mesh) {
                break steps;
            }
            let Some(axis) = more.next() else {
                return Err(unsupported(operation, format!("for pairs of devices that no axes make: {pairs:?}")));
            };
            axes.push(axis);
            axes.sort_unstable();
            axes.dedup();
        };
        let list = steps.iter().map(|&(from, to)| build.ints([from, to])).collect();
        let names = axes.iter().map(|&axis| build.name(identifier(&mesh.axes[axis].0))).collect();
        self.emit(operation, build.call("ppermute", [x.expr.clone(), build.together(names), build.list(list)]))
    }
}

/// The pairs of positions along some axes between which all devices send that differ in other axes only; None if they do not do the same.
fn steps_along(pairs: &[(usize, usize)], axes: &[usize], mesh: &MeshDeclaration) -> Option<Vec<(usize, usize)>> {
    let place = |device: usize| {
        let coordinates = mesh.coordinates(device);
        axes.iter().fold(0, |place, &axis| place * mesh.axes[axis].1 + coordinates[axis])
    };
    let stays = |&(from, to): &(usize, usize)| {
        let (from, to) = (mesh.coordinates(from), mesh.coordinates(to));
        (0..mesh.axes.len()).all(|axis| axes.contains(&axis) || from[axis] == to[axis])
    };
    let mut steps: Vec<(usize, usize)> = pairs.iter().map(|&(from, to)| (place(from), place(to))).collect();
    steps.sort_unstable();
    steps.dedup();
    let devices: usize = mesh.axes.iter().map(|(_, size)| size).product();
    let group: usize = axes.iter().map(|&axis| mesh.axes[axis].1).product();
    (pairs.iter().all(stays) && steps.len() * (devices / group) == pairs.len()).then_some(steps)
}
