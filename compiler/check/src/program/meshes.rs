//! The meshes: from the program's `mesh` items and the command line's `--mesh`.

use crate::errors::items::mesh as error;
use crate::program::sources::SourceSet;
use spmdc_grammar::ast::{AxisKind, Expr, Ident, ItemKind, MeshAxisNode, MeshItem, MeshKind};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::sentences::{must_be, unknown};
use spmdc_grammar::span::Span;
use spmdc_ir::call::errors::nearest;
use spmdc_layout::mesh::MAX_AXES;
use spmdc_layout::mesh::{Axis, Mesh, NamedMesh};

/// Maximum number of devices, which are threads of one process: more are a mistake.
const MAX_DEVICES: usize = 4096;

/// Maximum number of axes of all meshes of a program: a set of axes has one bit for each.
const MAX_ALL_AXES: usize = 32;

/// The value of `--mesh`: `2x4`, or `data=4,model=2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeshOverride {
    /// `2x4`: a size for each axis, in the order of the axes.
    Sizes(Vec<usize>),
    /// `data=4,model=2`: the sizes of some axes, each named once.
    Named(Vec<(String, usize)>),
}

impl MeshOverride {
    /// Reads the argument of `--mesh`. Malformed text or an axis that is named twice is an error.
    pub fn parse(text: &str) -> Result<MeshOverride, Diagnostic> {
        let malformed = || {
            error(Span::default(), format!("--mesh {text}: malformed mesh"))
                .help("write the sizes in the order of the axes, as in 2x4, or name the axes, as in data=4,model=2")
        };
        let size = |digits: &str| digits.trim().parse::<usize>().map_err(|_| malformed());
        if text.contains('=') {
            let axes = text.split(',').map(|part| {
                let (name, digits) = part.split_once('=').ok_or_else(malformed)?;
                let name = name.trim();
                let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
                if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || !name.chars().all(letters) {
                    return Err(malformed());
                }
                Ok((name.to_string(), size(digits)?))
            });
            let axes: Vec<(String, usize)> = axes.collect::<Result<_, _>>()?;
            if let Some((_, (name, _))) =
                axes.iter().enumerate().find(|(i, (name, _))| axes[..*i].iter().any(|(earlier, _)| earlier == name))
            {
                return Err(error(Span::default(), format!("--mesh {text}: axis `{name}` is given twice")));
            }
            return Ok(MeshOverride::Named(axes));
        }
        text.split(['x', 'X', ',']).map(size).collect::<Result<_, _>>().map(MeshOverride::Sizes)
    }
}

/// The mesh items of a program, in order; several are named.
pub fn declared<'a>(set: &'a SourceSet, diagnostics: &mut Vec<Diagnostic>) -> Vec<(&'a MeshItem, Span)> {
    let mut found: Vec<(&MeshItem, Span)> = Vec::new();
    for item in set.files.iter().flat_map(|file| &file.program.items) {
        let ItemKind::Mesh(mesh) = &item.kind else { continue };
        let name = mesh.name.as_ref().map(|name| &name.name);
        if let Some((_, first)) =
            found.iter().find(|(other, _)| name.is_some() && other.name.as_ref().map(|name| &name.name) == name)
        {
            diagnostics.push(crate::errors::items::defined_twice(mesh.name.as_ref().expect("it has a name"), *first));
            continue;
        }
        found.push((mesh, item.span));
    }
    let unnamed = found.iter().position(|(mesh, _)| mesh.name.is_none());
    if let Some(unnamed) = unnamed.filter(|_| found.len() > 1) {
        let error = error(found[unnamed].1, "each mesh of a program with several meshes must have a name")
            .help("name it, as in `mesh all (X = 2, Y = 4);`, for types and `transfer`");
        diagnostics.push(error);
        found.remove(unnamed);
    }
    found
}

/// Reads the meshes of a program.
pub struct MeshReader<'a> {
    /// `--mesh`.
    pub given: Option<&'a MeshOverride>,
    /// Computes a size or a device number; it has reported the error if it returns None.
    pub size: &'a mut dyn FnMut(&Expr) -> Option<i128>,
    /// The errors.
    pub diagnostics: &'a mut Vec<Diagnostic>,
}

impl MeshReader<'_> {
    /// The mesh of the program; of several meshes, the axes of all of them.
    pub fn build(&mut self, declared: &[(&MeshItem, Span)]) -> Mesh {
        let roots = declared.iter().filter(|(item, _)| matches!(item.kind, MeshKind::Axes { .. })).count();
        let [(first, span), others @ ..] = declared else {
            let mut mesh = Mesh { axes: undeclared(self.given, self.diagnostics), ..Mesh::default() };
            let known = self.diagnostics.len();
            check_sizes(&mut mesh, Span::default(), self.diagnostics);
            self.of_command(known);
            return mesh;
        };
        if roots > 1 && self.given.is_some() {
            let message = "--mesh: the program has several meshes, each with its own sizes";
            let error = error(Span::default(), message).help("use constants for the sizes, and change them with --set");
            self.diagnostics.push(error.of_command());
        }
        let given = self.given.filter(|_| roots == 1);
        let mut all = Mesh::default();
        if others.is_empty() {
            let Some((mesh, devices)) = self.root(first, *span, given) else { return all };
            let is_plain = first.name.is_none() && devices.iter().enumerate().all(|(at, &device)| at == device);
            let axes = (0..mesh.axes.len() as u8).collect();
            let named = NamedMesh { name: name_of(first), axes, devices };
            return Mesh { named: if is_plain { Vec::new() } else { vec![named] }, ..mesh };
        }
        // A sub-mesh may be declared before its mesh.
        let mut found: Vec<Option<(Mesh, Vec<usize>)>> = Vec::new();
        for (item, span) in declared {
            found.push(self.root(item, *span, given));
        }
        loop {
            let mut moved = false;
            for at in 0..declared.len() {
                let MeshKind::Sub { of, fixed } = &declared[at].0.kind else { continue };
                let parent = declared.iter().position(|(other, _)| name_of(other) == of.name);
                if let (None, Some(Some(parent))) = (&found[at], parent.map(|parent| found[parent].clone())) {
                    found[at] = Some(self.sub(&parent, fixed));
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
        for ((item, span), found) in declared.iter().zip(found) {
            match (found, &item.kind) {
                (Some((mesh, devices)), _) => self.join(&mut all, &name_of(item), mesh, devices, *span),
                (None, MeshKind::Sub { of, .. }) => {
                    let names: Vec<String> = all.named.iter().map(|mesh| mesh.name.clone()).collect();
                    let error = error(of.span, unknown("mesh", &of.name));
                    self.diagnostics.push(match nearest(&of.name, names.iter().map(String::as_str)) {
                        Some(near) => error.help(format!("did you mean `{near}`?")),
                        None => error,
                    });
                }
                (None, MeshKind::Axes { .. }) => {}
            }
        }
        all
    }

    fn of_command(&mut self, known: usize) {
        if self.given.is_some() {
            // The sizes come from the command line.
            self.diagnostics[known..].iter_mut().for_each(|diagnostic| diagnostic.of_command = true);
        }
    }

    /// A mesh with its own axes and devices; None for a part of another one, or after an error.
    fn root(&mut self, item: &MeshItem, span: Span, given: Option<&MeshOverride>) -> Option<(Mesh, Vec<usize>)> {
        let MeshKind::Axes { axes, devices } = &item.kind else { return None };
        let mut mesh = Mesh::default();
        let needs_sizes = !matches!(given, Some(MeshOverride::Sizes(sizes)) if sizes.len() == axes.len());
        for axis in axes {
            declare(&mut mesh, axis, needs_sizes, self.size, self.diagnostics);
        }
        match given {
            Some(MeshOverride::Sizes(sizes)) if sizes.len() == mesh.axes.len() => {
                mesh.axes.iter_mut().zip(sizes).for_each(|(axis, size)| axis.size = *size);
            }
            Some(MeshOverride::Sizes(sizes)) => {
                let message = format!("--mesh gives {} sizes, but the mesh has {} axes", sizes.len(), mesh.axes.len());
                self.diagnostics.push(misfit(&mesh, span, message));
            }
            Some(MeshOverride::Named(named)) => {
                for (name, size) in named {
                    match mesh.axes.iter_mut().find(|axis| axis.name == *name) {
                        Some(axis) => axis.size = *size,
                        None => {
                            let message = format!("--mesh: unknown mesh axis `{name}`");
                            self.diagnostics.push(misfit(&mesh, span, message));
                        }
                    }
                }
            }
            None => {}
        }
        let known = self.diagnostics.len();
        check_sizes(&mut mesh, span, self.diagnostics);
        self.of_command(known);
        let count = mesh.device_count();
        let devices = match devices {
            None => (0..count).collect(),
            Some(listed) => {
                let numbers: Option<Vec<usize>> = listed.iter().map(|device| self.device(device)).collect();
                let numbers = numbers?;
                if numbers.len() != count {
                    let message = format!("the mesh has {count} devices, but {} are listed", numbers.len());
                    self.diagnostics.push(error(span, message));
                    return None;
                }
                if let Some(at) = (0..numbers.len()).find(|&at| numbers[..at].contains(&numbers[at])) {
                    let message = format!("device {} is listed twice", numbers[at]);
                    self.diagnostics.push(error(listed[at].span, message));
                    return None;
                }
                numbers
            }
        };
        Some((mesh, devices))
    }

    /// The number of a device.
    fn device(&mut self, number: &Expr) -> Option<usize> {
        let value = (self.size)(number)?;
        match usize::try_from(value) {
            Ok(value) if value < MAX_DEVICES => Some(value),
            Ok(_) | Err(_) => {
                let message =
                    format!("device {value} is out of range: devices are numbered from 0 to {}", MAX_DEVICES - 1);
                self.diagnostics.push(error(number.span, message));
                None
            }
        }
    }

    /// The devices of a mesh whose coordinates along some axes are these.
    fn sub(&mut self, (mesh, devices): &(Mesh, Vec<usize>), fixed: &[(Ident, Expr)]) -> (Mesh, Vec<usize>) {
        let mut wanted: Vec<Option<usize>> = vec![None; mesh.axes.len()];
        for (axis, at) in fixed {
            let Some(position) = mesh.find(&axis.name).map(usize::from) else {
                let names: Vec<String> = mesh.axes.iter().map(|axis| axis.name.clone()).collect();
                self.diagnostics.push(crate::errors::names::unknown_axis(&axis.name, axis.span, &names));
                continue;
            };
            let Some(value) = (self.size)(at) else { continue };
            let size = mesh.axes[position].size;
            match usize::try_from(value).ok().filter(|value| *value < size) {
                Some(value) => wanted[position] = Some(value),
                None => {
                    let message = format!(
                        "coordinate {value} is out of range: the coordinates along `{}` are 0 to {}",
                        axis.name,
                        size - 1
                    );
                    self.diagnostics.push(error(at.span, message));
                }
            }
        }
        let holds = |position: &usize| {
            let own = mesh.coordinates(*position);
            own.iter().zip(&wanted).all(|(own, wanted)| wanted.is_none_or(|wanted| wanted == *own))
        };
        let kept = (0..devices.len()).filter(holds).map(|position| devices[position]).collect();
        let axes = mesh.axes.iter().zip(&wanted).filter(|(_, fixed)| fixed.is_none()).map(|(axis, _)| axis.clone());
        (Mesh { axes: axes.collect(), ..Mesh::default() }, kept)
    }

    /// Adds a mesh to the program's meshes. Axes of one name are the same axis.
    fn join(&mut self, all: &mut Mesh, name: &str, mesh: Mesh, devices: Vec<usize>, span: Span) {
        debug_assert_eq!(mesh.device_count(), devices.len(), "each position of a mesh has a device");
        let mut axes = Vec::new();
        for axis in mesh.axes {
            let position = match all.find(&axis.name) {
                Some(known) => {
                    let other = &all.axes[usize::from(known)];
                    if *other != axis {
                        let first = all.named.iter().find(|mesh| mesh.axes.contains(&known));
                        let first = first.map_or("", |mesh| mesh.name.as_str());
                        let message =
                            format!("the axis `{}` differs between the meshes `{name}` and `{first}`", axis.name);
                        let how = |axis: &Axis| {
                            format!("{} {}", axis.size, if axis.kind == AxisKind::Auto { "auto" } else { "explicit" })
                        };
                        let text = format!("{} here, {} there", how(&axis), how(other));
                        self.diagnostics.push(
                            error(span, message)
                                .here(text)
                                .help("an axis name must mean the same on all meshes; choose another name"),
                        );
                    }
                    known
                }
                None => {
                    all.axes.push(axis);
                    (all.axes.len() - 1) as u8
                }
            };
            axes.push(position);
        }
        if all.axes.len() > MAX_ALL_AXES {
            self.diagnostics
                .push(error(span, format!("the meshes of a program have at most {MAX_ALL_AXES} axes altogether")));
            all.axes.clear();
            axes.clear();
        }
        all.named.push(NamedMesh { name: name.to_string(), axes, devices });
    }
}

/// The name of a mesh; empty if it has none.
fn name_of(item: &MeshItem) -> String {
    item.name.as_ref().map_or(String::new(), |name| name.name.clone())
}

/// `--mesh` names or counts axes differently from the program's mesh.
fn misfit(mesh: &Mesh, span: Span, message: String) -> Diagnostic {
    let sizes: Vec<String> = mesh.axes.iter().map(|axis| format!("{}={}", axis.name, axis.size)).collect();
    error(span, message)
        .here(format!("its axes are {}", names(mesh)))
        .help(format!("name the axes, as in --mesh {}, or give the sizes in this order", sizes.join(",")))
        .of_command()
}

fn declare(
    mesh: &mut Mesh,
    axis: &MeshAxisNode,
    needs_size: bool,
    size: &mut dyn FnMut(&Expr) -> Option<i128>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let kind = match axis.kind {
        None => AxisKind::Auto,
        Some((AxisKind::Manual, place)) => {
            let message = "a mesh axis must be `auto` or `explicit`; `manual(X) fn` makes it manual in a function";
            diagnostics.push(error(place, message));
            AxisKind::Auto
        }
        Some((kind, _)) => kind,
    };
    if mesh.find(&axis.name.name).is_some() {
        let first = axis.name.span;
        diagnostics.push(crate::errors::items::defined_twice(&axis.name, first));
        return;
    }
    let value = if needs_size { size(&axis.size).unwrap_or(1) } else { 1 };
    let size = usize::try_from(value).unwrap_or_else(|_| {
        diagnostics.push(error(
            axis.size.span,
            must_be(format_args!("the size of the axis `{}`", axis.name.name), "at least 0", value),
        ));
        1
    });
    mesh.axes.push(Axis::new(&axis.name.name, size, kind));
}

fn undeclared(given: Option<&MeshOverride>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Axis> {
    const NAMES: [&str; 4] = ["X", "Y", "Z", "W"];
    let axis = |name: &str, size: usize| Axis::new(name, size, AxisKind::Auto);
    match given {
        None => Vec::new(),
        Some(MeshOverride::Sizes(sizes)) => {
            if sizes.len() > NAMES.len() {
                let message = format!("--mesh gives {} sizes, but only the first four axes have names", sizes.len());
                let error = error(Span::default(), message).help("name the axes, as in --mesh a=2,b=2,c=2,d=2,e=2");
                diagnostics.push(error.of_command());
            }
            NAMES.iter().zip(sizes).map(|(name, size)| axis(name, *size)).collect()
        }
        Some(MeshOverride::Named(named)) => {
            for (position, (name, _)) in named.iter().enumerate() {
                if named[..position].iter().any(|(earlier, _)| earlier == name) {
                    let message = format!("--mesh: the axis `{name}` is given twice");
                    diagnostics.push(error(Span::default(), message).help("write each axis once").of_command());
                }
            }
            named.iter().map(|(name, size)| axis(name, *size)).collect()
        }
    }
}

fn check_sizes(mesh: &mut Mesh, span: Span, diagnostics: &mut Vec<Diagnostic>) {
    for axis in &mut mesh.axes {
        if axis.size == 0 {
            diagnostics.push(error(span, format!("the axis `{}` has no devices", axis.name)));
            axis.size = 1;
        }
    }
    let devices = mesh.axes.iter().try_fold(1usize, |devices, axis| devices.checked_mul(axis.size));
    if mesh.axes.len() > MAX_AXES || devices.is_none_or(|devices| devices > MAX_DEVICES) {
        let message = format!("a mesh has at most {MAX_AXES} axes and {MAX_DEVICES} devices");
        diagnostics.push(error(span, message));
        mesh.axes.clear();
    }
}

fn names(mesh: &Mesh) -> String {
    mesh.axes.iter().map(|axis| axis.name.as_str()).collect::<Vec<_>>().join(", ")
}
