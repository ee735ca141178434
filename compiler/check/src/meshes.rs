//! The mesh: from the program's `mesh` item and the command line's `--mesh`.

use crate::errors::items::mesh as error;
use crate::errors::items::not_yet;
use crate::sources::SourceSet;
use spmdc_grammar::ast::{AxisKind, Expr, ItemKind, MeshAxisNode, MeshItem, MeshKind};
use spmdc_grammar::diagnostic::Diagnostic;
use spmdc_grammar::span::Span;
use spmdc_ir::layout::mesh::MAX_AXES;
use spmdc_ir::layout::mesh::{Axis, Mesh};

/// Maximum number of devices, which are threads of one process: more are a mistake.
const MAX_DEVICES: usize = 4096;

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
            error(Span::default(), format!("--mesh {text}: not a mesh"))
                .help("write sizes in the order of the axes, as in 2x4, or name them: data=4,model=2")
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

/// The program's mesh item; several meshes, and sub-meshes, are not supported yet.
pub fn declared<'a>(set: &'a SourceSet, diagnostics: &mut Vec<Diagnostic>) -> Option<(&'a MeshItem, Span)> {
    let mut found: Option<(&MeshItem, Span)> = None;
    for item in set.files.iter().flat_map(|file| &file.program.items) {
        let ItemKind::Mesh(mesh) = &item.kind else { continue };
        match (&mesh.kind, found) {
            (MeshKind::Sub { .. }, _) => diagnostics.push(not_yet(item.span, "a sub-mesh")),
            (MeshKind::Axes { devices: Some(_), .. }, _) => diagnostics.push(not_yet(item.span, "an order of devices")),
            (MeshKind::Axes { .. }, Some((_, first))) => {
                diagnostics.push(not_yet(item.span, "a second mesh").label(first, "the first mesh is here"));
            }
            (MeshKind::Axes { .. }, None) => found = Some((mesh, item.span)),
        }
    }
    found
}

/// The mesh of the program. `size` computes a size expression; it has reported the error if it returns None.
pub fn build(
    declared: Option<(&MeshItem, Span)>,
    given: Option<&MeshOverride>,
    size: &mut dyn FnMut(&Expr) -> Option<i128>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Mesh {
    let mut mesh = Mesh::default();
    let mut span = Span::default();
    if let Some((item, place)) = declared
        && let MeshKind::Axes { axes, .. } = &item.kind
    {
        span = place;
        let needs_sizes = !matches!(given, Some(MeshOverride::Sizes(sizes)) if sizes.len() == axes.len());
        for axis in axes {
            declare(&mut mesh, axis, needs_sizes, size, diagnostics);
        }
        match given {
            Some(MeshOverride::Sizes(sizes)) if sizes.len() == mesh.axes.len() => {
                mesh.axes.iter_mut().zip(sizes).for_each(|(axis, size)| axis.size = *size);
            }
            Some(MeshOverride::Sizes(sizes)) => {
                let message = format!("--mesh gives {} sizes, the mesh has {} axes", sizes.len(), mesh.axes.len());
                diagnostics.push(misfit(&mesh, span, message));
            }
            Some(MeshOverride::Named(named)) => {
                for (name, size) in named {
                    match mesh.axes.iter_mut().find(|axis| axis.name == *name) {
                        Some(axis) => axis.size = *size,
                        None => {
                            let message = format!("--mesh names an axis `{name}`, which the mesh does not have");
                            diagnostics.push(misfit(&mesh, span, message));
                        }
                    }
                }
            }
            None => {}
        }
    } else {
        mesh.axes = undeclared(given, diagnostics);
    }
    let known = diagnostics.len();
    check_sizes(&mut mesh, span, diagnostics);
    if given.is_some() {
        // The sizes come from the command line.
        diagnostics[known..].iter_mut().for_each(|diagnostic| diagnostic.of_command = true);
    }
    mesh
}

/// `--mesh` names or counts axes differently from the program's mesh.
fn misfit(mesh: &Mesh, span: Span, message: String) -> Diagnostic {
    let sizes: Vec<String> = mesh.axes.iter().map(|axis| format!("{}={}", axis.name, axis.size)).collect();
    error(span, message)
        .here(format!("its axes are {}", names(mesh)))
        .help(format!("name them, as in --mesh {}, or give the sizes in this order", sizes.join(",")))
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
            let message = "an axis of the mesh is `auto` or `explicit`; `manual(X) fn` makes it manual in a function";
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
        diagnostics.push(error(axis.size.span, format!("the size of axis `{}` is {value}", axis.name.name)));
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
                let message = format!("--mesh gives {} sizes; only the first four axes have names", sizes.len());
                let error = error(Span::default(), message).help("name them: --mesh a=2,b=2,c=2,d=2,e=2");
                diagnostics.push(error.of_command());
            }
            NAMES.iter().zip(sizes).map(|(name, size)| axis(name, *size)).collect()
        }
        Some(MeshOverride::Named(named)) => {
            for (position, (name, _)) in named.iter().enumerate() {
                if named[..position].iter().any(|(earlier, _)| earlier == name) {
                    let message = format!("--mesh names the axis `{name}` twice");
                    diagnostics.push(error(Span::default(), message).help("each axis has one size").of_command());
                }
            }
            named.iter().map(|(name, size)| axis(name, *size)).collect()
        }
    }
}

fn check_sizes(mesh: &mut Mesh, span: Span, diagnostics: &mut Vec<Diagnostic>) {
    for axis in &mut mesh.axes {
        if axis.size == 0 {
            diagnostics.push(error(span, format!("axis `{}` has no devices", axis.name)));
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
