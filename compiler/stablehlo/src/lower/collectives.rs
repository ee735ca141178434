//! Collectives of `manual_computation`: their groups of devices are those along axes of the mesh.

use super::group_axes::GroupAxes;
use super::reductions::RegionFunction;
use super::shapes::first_of;
use super::sharding::no_axis;
use super::{FunctionReader, MlirValue, at, malformed, unsupported};
use crate::cursor::Read;
use crate::identifiers::identifier;
use crate::tree::{Attribute, MeshDeclaration, MlirOp};
use std::collections::BTreeSet;

/// The attribute of the devices of a collective, and that of the devices between which a permutation sends.
const GROUPS: &str = "replica_groups";
const PAIRS: &str = "source_target_pairs";

impl FunctionReader<'_> {
    pub(super) fn collective(&mut self, operation: &MlirOp) -> Read<()> {
        let build = at(operation);
        let operands = self.all_operands(operation)?;
        let Some(x) = operands.first() else { return Err(malformed(operation, "an operand is missing")) };
        let permutes = operation.name == "stablehlo.collective_permute";
        let Some(mesh) = self.context.mesh else {
            let attribute = if permutes { PAIRS } else { GROUPS };
            // JAX prints no mesh for one device, which keeps its value.
            let has_others = device_lists(operation, attribute)?.iter().flatten().any(|&device| device != 0);
            if has_others {
                return Err(unsupported(operation, "without a mesh"));
            }
            return self.same_as_operands(operation);
        };
        if permutes {
            return self.permute(operation, x, mesh);
        }
        let axes = self.axes_of_collective(operation, mesh)?;
        if axes.is_empty() {
            return self.same_as_operands(operation);
        }
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

    /// The axes along which the devices of each group lie. A reduction also ends the differences along axes of one device, which no group
    /// shows.
    pub(super) fn axes_of_collective(&self, operation: &MlirOp, mesh: &MeshDeclaration) -> Read<Vec<String>> {
        let mut axes = self.axes_of_groups(operation, mesh)?;
        if operation.name == "stablehlo.all_reduce" {
            for name in &operation.operands {
                let varying = &self.value(operation, name)?.varying;
                let alone = mesh.axes.iter().filter(|(axis, size)| *size == 1 && varying.contains(axis));
                axes.extend(alone.map(|(axis, _)| axis.clone()));
            }
            let mut seen = BTreeSet::new();
            axes.retain(|axis| seen.insert(axis.clone()));
        }
        Ok(axes)
    }

    /// The axes along which the devices of each group lie; none for groups of one device. E0111 if the groups are others.
    fn axes_of_groups(&self, operation: &MlirOp, mesh: &MeshDeclaration) -> Read<Vec<String>> {
        let own = operation.attributes.get(GROUPS).and_then(GroupAxes::of_attribute);
        if let (Some(own), Some(common)) = (own, self.context.common) {
            let mut all = Vec::new();
            for axis in &own.axes {
                let axes = common.axes_of(&own.mesh, axis);
                all.extend(axes.ok_or_else(|| no_axis(operation.span, &own.mesh, axis))?);
            }
            return Ok(all);
        }
        let groups = device_lists(operation, GROUPS)?;
        let sizes: Vec<usize> = mesh.axes.iter().map(|(_, size)| *size).collect();
        // The axes along which the coordinates of the first group differ, the one that changes fastest last.
        let coordinates = |device: usize| mesh.coordinates(device);
        let Some(first) = groups.first() else { return Ok(Vec::new()) };
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
        Ok(order.iter().map(|&axis| mesh.axes[axis].0.clone()).collect())
    }

    /// Each device sends to at most one other.
    fn permute(&mut self, operation: &MlirOp, x: &MlirValue, mesh: &MeshDeclaration) -> Read<()> {
        let build = at(operation);
        let pairs = device_lists(operation, PAIRS)?;
        let pairs: Vec<(usize, usize)> = pairs.iter().map(|pair| (pair[0], pair[pair.len() - 1])).collect();
        let sizes: Vec<usize> = mesh.axes.iter().map(|(_, size)| *size).collect();
        let devices: usize = sizes.iter().product();
        if pairs.iter().any(|&(from, to)| from >= devices || to >= devices) {
            return Err(malformed(operation, "a permutation names devices of the mesh"));
        }
        if pairs.len() == devices && pairs.iter().all(|(from, to)| from == to) {
            self.define(operation, x.clone());
            return Ok(());
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

/// The lists of devices of an attribute, `dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>`, none of them empty.
fn device_lists(operation: &MlirOp, attribute: &str) -> Read<Vec<Vec<usize>>> {
    let lists = || {
        let Attribute::Dense(dense) = operation.attributes.get(attribute)? else { return None };
        let flat: Option<Vec<usize>> = dense.ints()?.into_iter().map(|device| usize::try_from(device).ok()).collect();
        let size = dense.ty.shape.last().copied().unwrap_or(0).max(1);
        Some(flat?.chunks(size).map(<[usize]>::to_vec).collect())
    };
    lists().ok_or_else(|| malformed(operation, format!("a collective has lists of devices as `{attribute}`")))
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
