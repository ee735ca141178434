//! One mesh for all meshes of a module, whose axes are parts of theirs.
//!
//! A module may have several meshes of the same devices, and shardings over parts of axes, `"x":(2)4`. An axis, or a part of one, is a stride
//! and a size among the devices in the order of the first mesh: `"y"` of `<["x"=2, "y"=4]>` has stride 1 and size 4. The axes of the common
//! mesh are between all strides and ends, so that each axis of the text is one or several of them.

use super::group_axes::GroupAxes;
use super::sharding::NamedSharding;
use crate::cursor::{Cursor, Read};
use crate::tree::{Attribute, Attributes, MeshDeclaration, MlirModule, MlirOp};
use spmdc_grammar::codes::Code;
use spmdc_grammar::diagnostic::Diagnostic;
use std::collections::{BTreeMap, BTreeSet};

/// The mesh of a program.
pub(super) struct CommonMesh {
    pub declaration: MeshDeclaration,
    /// The axes of the text, by their mesh.
    factors: BTreeMap<(String, String), DeviceFactor>,
    /// The names of these meshes.
    meshes: BTreeSet<String>,
    /// The axes of the declaration.
    own: Vec<DeviceFactor>,
}

/// Devices at equal distances.
#[derive(Clone, Copy, Debug)]
struct DeviceFactor {
    stride: usize,
    size: usize,
}

impl DeviceFactor {
    fn end(self) -> usize {
        self.stride.saturating_mul(self.size)
    }

    /// `:(before)size` of an axis.
    fn part(self, before: usize, size: usize) -> Option<DeviceFactor> {
        let inner = self.size.checked_div(before.checked_mul(size)?)?;
        (before * size * inner == self.size).then_some(DeviceFactor { stride: self.stride * inner, size })
    }
}

impl CommonMesh {
    /// The common mesh of the meshes that shardings use; None for a module without meshes. E0111 for meshes of other devices, or whose axes
    /// have no common parts.
    pub fn of_module(module: &MlirModule) -> Read<Option<CommonMesh>> {
        let mut uses = SplitUses::default();
        for function in &module.functions {
            function.params.iter().for_each(|param| uses.note_all(&param.attributes));
            function.results.iter().for_each(|(_, attributes)| uses.note_all(attributes));
            uses.note_body(&function.body);
        }
        let inline = uses.meshes.keys().filter(|name| name.starts_with('<'));
        let inline: Vec<MeshDeclaration> = inline.filter_map(|name| inline_mesh(name)).collect();
        let all: Vec<&MeshDeclaration> =
            module.meshes.iter().chain(&inline).filter(|mesh| !mesh.axes.is_empty()).collect();
        let used: Vec<&MeshDeclaration> =
            all.iter().filter(|mesh| uses.meshes.contains_key(&mesh.name)).copied().collect();
        let Some(first) = used.first().or(all.first()).copied() else { return Ok(None) };
        let mut factors = BTreeMap::new();
        for mesh in used.iter().chain(std::iter::once(&first)) {
            let own = factors_of(mesh, first).ok_or_else(|| {
                let message =
                    format!("meshes of other devices, `@{}` and `@{}`, are not supported", first.name, mesh.name);
                Diagnostic::error(Code::E0111, mesh.span, message)
            })?;
            let names = mesh.axes.iter().map(|(axis, _)| (mesh.name.clone(), axis.clone()));
            factors.extend(names.zip(own));
        }
        let meshes = factors.keys().map(|(mesh, _)| mesh.clone()).collect();
        let mut common = CommonMesh { declaration: first.clone(), factors, meshes, own: Vec::new() };
        let mut ends: BTreeSet<usize> = common.factors.values().flat_map(|axis| [axis.stride, axis.end()]).collect();
        for (mesh, axes) in &uses.meshes {
            // A part that does not fit its axis is reported where it stands.
            let parts = axes.iter().filter_map(|axis| common.factor(mesh, axis));
            ends.extend(parts.flat_map(|part| [part.stride, part.end()]));
        }
        let ends: Vec<usize> = ends.into_iter().collect();
        if let Some(pair) = ends.windows(2).find(|pair| !pair[1].is_multiple_of(pair[0])) {
            let message = format!("meshes and parts of axes without common parts are not supported: {pair:?} devices");
            return Err(Diagnostic::error(Code::E0111, first.span, message));
        }
        common.cut(first, &ends);
        Ok(Some(common))
    }

    /// Gives the mesh an axis between each pair of neighbours of these numbers.
    fn cut(&mut self, first: &MeshDeclaration, ends: &[usize]) {
        let mut taken: BTreeSet<String> = first.axes.iter().map(|(axis, _)| axis.clone()).collect();
        self.declaration.axes.clear();
        for (axis, size) in &first.axes {
            let whole = self.factors[&(first.name.clone(), axis.clone())];
            let inside = ends.iter().copied().filter(|&end| whole.stride < end && end < whole.end());
            let mut cuts: Vec<usize> = inside.collect();
            if cuts.is_empty() {
                self.declaration.axes.push((axis.clone(), *size));
                self.own.push(whole);
                continue;
            }
            cuts.insert(0, whole.stride);
            cuts.push(whole.end());
            for (number, pair) in cuts.windows(2).rev().enumerate() {
                let mut name = format!("{axis}_{number}");
                while !taken.insert(name.clone()) {
                    name.push('_');
                }
                let part = DeviceFactor { stride: pair[0], size: pair[1] / pair[0] };
                self.declaration.axes.push((name, part.size));
                self.own.push(part);
            }
        }
    }

    /// Whether shardings of the program name a mesh with axes.
    pub fn has_mesh(&self, mesh: &str) -> bool {
        self.meshes.contains(mesh)
    }

    /// As [`CommonMesh::axes_of`], of the mesh that the shardings of an operation name, or of the first one.
    pub fn axes_of_operation(&self, operation: &MlirOp, axis: &str) -> Option<Vec<String>> {
        let mut uses = SplitUses::default();
        uses.note_all(&operation.attributes);
        let mesh = uses.meshes.keys().find(|mesh| self.has_mesh(mesh)).unwrap_or(&self.declaration.name);
        self.axes_of(mesh, axis)
    }

    fn factor(&self, mesh: &str, axis: &str) -> Option<DeviceFactor> {
        let of = |axis: &str| self.factors.get(&(mesh.to_string(), axis.to_string())).copied();
        let Some((name, part)) = axis.rsplit_once(":(") else { return of(axis) };
        let (before, size) = part.split_once(')')?;
        of(name)?.part(before.parse().ok()?, size.parse().ok()?)
    }

    /// The axes of the program that are an axis of the text, or a part of one, major to minor; None if its mesh has no such axis.
    pub fn axes_of(&self, mesh: &str, axis: &str) -> Option<Vec<String>> {
        if mesh == self.declaration.name && self.declaration.axes.iter().any(|(own, _)| own == axis) {
            return Some(vec![axis.to_string()]);
        }
        let wanted = self.factor(mesh, axis)?;
        let lies_inside = |own: &DeviceFactor| own.size > 1 && own.stride >= wanted.stride && own.end() <= wanted.end();
        let axes = self.declaration.axes.iter().zip(&self.own).filter(|(_, own)| lies_inside(own));
        Some(axes.map(|((name, _), _)| name.clone()).collect())
    }
}

/// The axes of a mesh among the devices in the order of the first one; None if they are other devices, or not at equal distances.
fn factors_of(mesh: &MeshDeclaration, first: &MeshDeclaration) -> Option<Vec<DeviceFactor>> {
    let count = |mesh: &MeshDeclaration| mesh.axes.iter().map(|(_, size)| size).product::<usize>();
    let devices = count(mesh);
    if devices != count(first) {
        return None;
    }
    let mut own = Vec::new();
    let mut stride = devices;
    for (_, size) in &mesh.axes {
        stride /= size;
        own.push(DeviceFactor { stride, size: *size });
    }
    if mesh.devices == first.devices {
        return Some(own);
    }
    let order = |mesh: &MeshDeclaration| mesh.devices.clone().unwrap_or_else(|| (0..devices).collect());
    let (first_order, order) = (order(first), order(mesh));
    let mut places = BTreeMap::new();
    places.extend(first_order.iter().enumerate().map(|(place, device)| (*device, place)));
    let places: Vec<usize> = order.iter().map(|device| places.get(device).copied()).collect::<Option<_>>()?;
    let moved: Vec<DeviceFactor> = own
        .iter()
        .map(|axis| {
            let stride = if axis.size == 1 { 1 } else { places[axis.stride].checked_sub(places[0])? };
            Some(DeviceFactor { stride, size: axis.size })
        })
        .collect::<Option<_>>()?;
    let expected = |number: usize| -> usize {
        own.iter().zip(&moved).map(|(axis, moved)| number / axis.stride % axis.size * moved.stride).sum()
    };
    (0..devices).all(|number| places[number] == expected(number)).then_some(moved)
}

/// `<["x"=2]>`
fn inline_mesh(text: &str) -> Option<MeshDeclaration> {
    let mut cursor = Cursor::of_part(text);
    let found = cursor.mesh_declaration_after(text.to_string());
    found.ok()
}

/// The meshes that shardings name, with the axes and parts of axes.
#[derive(Default)]
struct SplitUses {
    meshes: BTreeMap<String, BTreeSet<String>>,
}

impl SplitUses {
    fn note_body(&mut self, body: &[MlirOp]) {
        for operation in body {
            self.note_all(&operation.attributes);
            operation.regions.iter().for_each(|region| self.note_body(&region.body));
        }
    }

    fn note_all(&mut self, attributes: &Attributes) {
        for (name, value) in attributes {
            if matches!(name.as_str(), "sdy.sharding" | "sharding" | "in_shardings" | "out_shardings") {
                self.note(value);
            }
            if let Some(groups) = GroupAxes::of_attribute(value) {
                self.meshes.entry(groups.mesh).or_default().extend(groups.axes);
            }
        }
    }

    fn note(&mut self, attribute: &Attribute) {
        if let Attribute::List(all) = attribute {
            all.iter().for_each(|one| self.note(one));
        }
        let Attribute::Custom(name, inside) = attribute else { return };
        if name == "sdy.sharding_per_value" {
            if let Ok(list) = Cursor::of_part(inside).attribute() {
                self.note(&list);
            }
            return;
        }
        if let Ok(named) = NamedSharding::read(inside) {
            self.meshes.entry(named.mesh).or_default().extend(named.sharding.axes().cloned());
        }
    }
}
