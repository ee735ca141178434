//! The mesh: named axes over the devices.

use crate::hosts::Hosts;
use spmdc_abi::AxisSet;
pub use spmdc_grammar::ast::AxisKind;
use spmdc_kernel::machine::Machine;

/// Maximum number of axes of a mesh: an axis set has one bit for each.
pub const MAX_AXES: usize = 16;

/// A named axis, and who decides shardings along it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The name in dumps; also the name in the program, unless the axis is a part of another one.
    pub name: String,
    /// The number of devices along the axis.
    pub size: usize,
    /// Who decides shardings along it.
    pub kind: AxisKind,
    /// If the compiler has cut an axis of the program, the part that this one is.
    pub part: Option<SubAxis>,
}

/// A part of an axis of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubAxis {
    /// The program's name of the whole axis.
    pub of: String,
    /// Its index among the parts, major to minor. Parts are adjacent in the mesh.
    pub at: usize,
    /// The number of parts.
    pub count: usize,
}

impl Axis {
    /// An axis that is not a part of another one.
    pub fn new(name: &str, size: usize, kind: AxisKind) -> Axis {
        Axis { name: name.to_string(), size, kind, part: None }
    }
}

/// Devices are numbered row-major over the axes. Axes are referred to by their position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mesh {
    /// The axes, at most [`MAX_AXES`], major to minor.
    pub axes: Vec<Axis>,
    /// The sizes at which the compiler changes its choices.
    pub machine: Machine,
    /// The meshes that the program names, in the order of their declaration. Several of them share their axes of one name. Empty for
    /// a mesh without a name whose devices are in the order of their numbers.
    pub named: Vec<NamedMesh>,
    /// The hosts of the devices; None if nothing is known of them, or if there is one.
    pub hosts: Option<Hosts>,
}

/// A mesh that a program names: some axes of [`Mesh::axes`], over some devices of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedMesh {
    /// Its name; empty for a mesh without one.
    pub name: String,
    /// Its axes, major to minor, by their positions in [`Mesh::axes`].
    pub axes: Vec<u8>,
    /// The number of the device at each position, row-major.
    pub devices: Vec<usize>,
}

impl NamedMesh {
    /// Its axes, as a set.
    pub fn axis_set(&self) -> AxisSet {
        self.axes.iter().map(|&axis| usize::from(axis)).collect()
    }

    /// Its name and devices, for messages: `first` (devices 0 to 3).
    pub fn describe(&self) -> String {
        let consecutive = self.devices.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let list = match self.devices.as_slice() {
            [only] => format!("device {only}"),
            [first, .., last] if consecutive => format!("devices {first} to {last}"),
            all if all.len() <= 8 => {
                format!("devices {}", all.iter().map(usize::to_string).collect::<Vec<_>>().join(", "))
            }
            [first, second, .., last] => format!("{} devices, {first}, {second}, ..., {last}", self.devices.len()),
            [..] => "no devices".to_string(),
        };
        format!("`{}` ({list})", self.name)
    }
}

impl Mesh {
    /// Turns `auto` axes among these into `explicit` ones, and `explicit` ones into `auto` ones.
    pub fn turn(&mut self, axes: AxisSet) {
        for axis in axes.iter() {
            let kind = &mut self.axes[axis].kind;
            *kind = match *kind {
                AxisKind::Auto => AxisKind::Explicit,
                AxisKind::Explicit => AxisKind::Auto,
                AxisKind::Manual => AxisKind::Manual,
            };
        }
    }

    /// The axes along which the types decide where these axes are turned.
    pub fn explicit_where(&self, turned: AxisSet) -> AxisSet {
        self.of_kind(AxisKind::Explicit).either(turned)
    }

    /// The axes along which the compiler decides where these axes are turned.
    pub fn auto_where(&self, turned: AxisSet) -> AxisSet {
        self.of_kind(AxisKind::Auto).either(turned)
    }

    /// Whether the program has several meshes, so that each value is on one of them; these are axes and devices of all of them.
    pub fn is_several(&self) -> bool {
        self.named.len() > 1
    }

    /// The position of the mesh of this name.
    pub fn find_mesh(&self, name: &str) -> Option<usize> {
        self.named.iter().position(|mesh| !mesh.name.is_empty() && mesh.name == name)
    }

    /// The first mesh of the program that has all these axes, if any.
    pub fn first_with(&self, axes: AxisSet) -> Option<usize> {
        self.named.iter().position(|mesh| axes.is_subset_of(mesh.axis_set()))
    }

    /// The product of the sizes of all axes; 1 without axes.
    pub fn device_count(&self) -> usize {
        self.axes.iter().map(|axis| axis.size).product()
    }

    /// The axes along which there are several devices.
    pub fn several(&self) -> AxisSet {
        (0..self.axes.len()).filter(|&axis| self.axes[axis].size > 1).collect()
    }

    /// The position of the axis of this name; None if there is none.
    pub fn find(&self, name: &str) -> Option<u8> {
        self.axes.iter().position(|axis| axis.name == name).map(|position| position as u8)
    }

    /// The number of blocks of a dimension that is split over `axes`.
    pub fn size_of(&self, axes: &[u8]) -> usize {
        axes.iter().map(|&axis| self.axes[axis as usize].size).product()
    }

    /// The number of devices that differ along these axes only: the product of their sizes.
    pub fn size_of_set(&self, axes: AxisSet) -> usize {
        axes.iter().map(|axis| self.axes[axis].size).product()
    }

    /// The set of all axes.
    pub fn all(&self) -> AxisSet {
        AxisSet::all(self.axes.len())
    }

    /// The axes of this kind.
    pub fn of_kind(&self, kind: AxisKind) -> AxisSet {
        (0..self.axes.len()).filter(|&axis| self.axes[axis].kind == kind).collect()
    }

    /// The name of the axis at this position.
    pub fn name(&self, axis: u8) -> &str {
        &self.axes[axis as usize].name
    }

    /// The names of axes in the program: the name of the whole axis if all its parts occur in order.
    pub fn names(&self, axes: &[u8]) -> Vec<&str> {
        self.wholes(axes).into_iter().map(|(name, _)| name).collect()
    }

    /// As [`Mesh::names`], each with the axes that it denotes.
    pub fn wholes<'a>(&self, axes: &'a [u8]) -> Vec<(&str, &'a [u8])> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(&axis) = axes.get(at) {
            let Axis { name, part, .. } = &self.axes[axis as usize];
            let whole = part.as_ref().filter(|part| {
                let all = axes.get(at..at + part.count);
                part.at == 0 && all.is_some_and(|all| all.iter().zip(axis..).all(|(&other, next)| other == next))
            });
            let (name, count) = whole.map_or((name, 1), |part| (&part.of, part.count));
            found.push((name.as_str(), &axes[at..at + count]));
            at += count;
        }
        found
    }

    /// The mesh of the program, with parts joined to their axes.
    pub fn whole(&self) -> Mesh {
        let mut axes: Vec<Axis> = Vec::new();
        for axis in &self.axes {
            match (&axis.part, axes.last_mut()) {
                (Some(part), Some(whole)) if part.at > 0 => whole.size *= axis.size,
                (Some(part), _) => axes.push(Axis::new(&part.of, axis.size, axis.kind)),
                (None, _) => axes.push(axis.clone()),
            }
        }
        self.with_axes(axes)
    }

    /// The same devices on other axes.
    pub fn with_axes(&self, axes: Vec<Axis>) -> Mesh {
        let sizes: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
        let hosts = self.hosts.as_ref().map(|hosts| hosts.on(&sizes));
        Mesh { axes, machine: self.machine, named: self.named.clone(), hosts }
    }

    /// The same axes as separate axes, as dumps name them.
    pub fn plain(&self) -> Mesh {
        self.with_axes(self.axes.iter().map(|axis| Axis { part: None, ..axis.clone() }).collect())
    }

    /// `X`, or `(X,Y)` for several.
    pub fn display_axes(&self, axes: &[u8]) -> String {
        let names = self.names(axes);
        if names.len() == 1 { names[0].to_string() } else { format!("({})", names.join(",")) }
    }

    /// As [`Mesh::display_axes`], in the order of the mesh.
    pub fn display_set(&self, axes: AxisSet) -> String {
        let list: Vec<u8> = axes.iter().map(|axis| axis as u8).collect();
        self.display_axes(&list)
    }

    /// The coordinates of a device, in the order of the axes.
    pub fn coordinates(&self, device: usize) -> Vec<usize> {
        let mut rest = device;
        let mut coordinates = vec![0; self.axes.len()];
        for (axis, coordinate) in self.axes.iter().zip(&mut coordinates).rev() {
            *coordinate = rest % axis.size;
            rest /= axis.size;
        }
        coordinates
    }

    /// The coordinates of the position along these axes, major to minor; 0 along the others.
    pub fn positions(&self, axes: &[u8], position: usize) -> Vec<usize> {
        let mut coordinates = vec![0; self.axes.len()];
        self.set_position(axes, position, &mut coordinates);
        coordinates
    }

    /// Sets the coordinates along these axes to a position.
    pub fn set_position(&self, axes: &[u8], position: usize, coordinates: &mut [usize]) {
        let mut rest = position;
        for &axis in axes.iter().rev() {
            let size = self.axes[axis as usize].size;
            coordinates[axis as usize] = rest % size;
            rest /= size;
        }
    }

    /// The position along `axes`, major to minor.
    pub fn position(&self, axes: &[u8], coordinates: &[usize]) -> usize {
        axes.iter().fold(0, |position, &axis| position * self.axes[axis as usize].size + coordinates[axis as usize])
    }
}
